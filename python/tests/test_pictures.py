# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of the policies' pages: each page has one, its sentence agrees with the values drawn; they repeat."""

from __future__ import annotations

import re
import sys

import pytest
from command import REPOSITORY

import linkweir

sys.path.insert(0, str(REPOSITORY / "docs/pictures"))

import draw
import policies
from policy_cases import CASES, Case

# test_new_policy.py adds these to copies of the repository
ADDED_BY_TESTS = {page.parent.name for page in (REPOSITORY / "core/tests").glob("*/page.md")}
PAGES = {page.stem for page in (REPOSITORY / "docs/reference/policies").glob("*.md")} - ADDED_BY_TESTS


def test_every_policy_has_a_page_with_a_picture() -> None:
    assert {case.policy for case in CASES} == PAGES
    assert {policy.name for policy in linkweir.policies()} - ADDED_BY_TESTS <= PAGES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.policy)
def test_the_page_says_what_the_values_say(case: Case) -> None:
    page = (policies.PAGES / f"{case.policy}.md").read_text()
    assert policies.passage(case, policies.load(case.policy)) in page, "run: make pictures"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.policy)
def test_the_picture_has_the_text_and_size_that_the_values_give(case: Case) -> None:
    # positions may differ in the last digit with another matplotlib
    committed = (policies.PAGES / "images" / f"{case.policy}.svg").read_text()
    drawn = draw.svg(policies.panels(case, policies.load(case.policy)), case.size)
    assert len(committed) <= draw.LARGEST_BYTES
    assert words(committed) == words(drawn), "run: make pictures"
    assert same_curves(committed, drawn), "run: make pictures"


def words(svg: str) -> list[str]:
    """The texts of a picture, which matplotlib writes into comments."""
    return sorted(re.findall(r"<!-- (.*?) -->", svg))


def same_curves(one: str, other: str) -> bool:
    """Whether what is drawn inside the axes is at the same places, to a quarter of a point."""
    found = [re.findall(r'<path d="([^"]*)" clip-path', svg) for svg in (one, other)]
    if not found[0] or len(found[0]) != len(found[1]):
        return False
    ours, theirs = (re.findall(r"-?[\d.]+", " ".join(paths)) for paths in found)
    return len(ours) == len(theirs) and all(abs(float(a) - float(b)) < 0.25 for a, b in zip(ours, theirs, strict=True))


def test_a_picture_of_other_values_is_found() -> None:
    case = next(case for case in CASES if case.policy == "drr")
    values = policies.load(case.policy)
    drawn = draw.svg(policies.panels(case, values), case.size)
    assert same_curves(drawn, drawn)
    values.panels[0][0]["y"][3] *= 1.1
    other = draw.svg(policies.panels(case, values), case.size)
    assert words(other) == words(drawn)
    assert not same_curves(drawn, other)


@pytest.mark.parametrize("policy", ["rr", "wrr"])
def test_the_values_are_those_of_runs(policy: str) -> None:
    again(policy)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["pss", "codel", "mlwdf"])
def test_the_values_of_longer_runs_are_those_of_runs(policy: str) -> None:
    again(policy)


def again(policy: str) -> None:
    case = next(case for case in CASES if case.policy == policy)
    assert policies.measured([case])[policy] == policies.load(policy), "run: make pictures"
