# SPDX-License-Identifier: BSD-3-Clause
"""Which policies are qdiscs, as the documentation says, and the manual page of each."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import REPOSITORY

import linkweir
from linkweir.scenarios.policy import Parameter

sys.path.insert(0, str(REPOSITORY / "python"))
import manual

KERNEL = REPOSITORY / "kernel"
PAGES = [manual.PAGE, REPOSITORY / "crates/linkweir-gateway/manual/linkweir-gateway.8"]
MAKEFILE = (KERNEL / "Makefile").read_text()
POLICIES = {policy.name: policy for policy in linkweir.policies()}
LEFT_OUT = re.findall(r"^IN_TREE := (.*)$", MAKEFILE, re.MULTILINE)[0].split()
PREFIXED = re.findall(r"^PREFIXED := (.*)$", MAKEFILE, re.MULTILINE)[0].split()
KINDS = {f"lw_{name}" if name in PREFIXED else name: name for name in POLICIES if name not in LEFT_OUT}
"""The policy of each qdisc."""
OF_MANY_QUEUES = re.findall(r"^MQ := \$\(filter (.*),\$\(KINDS\)\)$", MAKEFILE, re.MULTILINE)[0].split()
MQ_NAMES = [f"{kind}_mq" for kind in OF_MANY_QUEUES]
NAMES = [*KINDS, *MQ_NAMES]


def page(kind: str) -> str:
    return (KERNEL / "man" / f"tc-{kind}.8").read_text()


def entries(text: str) -> dict[str, str]:
    """What a page says of each parameter, by name; one entry may be of several."""
    parameters = text.split(".SH PARAMETERS\n")[1].split(".SH STATISTICS")[0]
    found: dict[str, str] = {}
    for entry in parameters.split(".TP\n")[1:]:
        head, body = entry.split("\n", 1)
        shown = "".join(shlex.split(head)[1:])  # without the macro
        for name in (part.split()[0] for part in shown.split(", ")):
            found[name] = found.get(name, "") + shown + "\n" + re.split(r"^\.(?:PP|SS)", body, flags=re.MULTILINE)[0]
    return found


def test_the_docs_say_which_policies_are_qdiscs() -> None:
    table = (
        (REPOSITORY / "docs" / "howto" / "kernel.md")
        .read_text()
        .split("| policies | in the module |")[1]
        .split("\n\n")[0]
    )
    rows = [line.split("|")[1:3] for line in table.split("\n")[2:]]
    stated = {
        name: answer.strip().startswith("yes") for names, answer in rows for name in re.findall(r"`(\w+)`", names)
    }
    assert stated == {name: name not in LEFT_OUT for name in (*POLICIES, *MQ_NAMES)}
    page = (REPOSITORY / "docs" / "howto" / "choose.md").read_text()
    table = page.split("| policy | guarantees | source |")[1].split("\n\n")[0]
    names = [name for row in table.split("\n")[2:] for name in re.findall(r"\[(\w+)\]\(", row.split("|")[1])]
    assert sorted(names) == sorted(POLICIES)
    package = (KERNEL / "debian" / "control").read_text().split("with a qdisc", 1)[1].split("and others", 1)[0]
    named = re.findall(r"\b\w+\b", package.split("(")[1])
    assert named
    assert set(named) <= set(KINDS)


def test_every_qdisc_has_a_page_and_no_page_is_without_its_qdisc() -> None:
    assert sorted(path.name for path in (KERNEL / "man").iterdir()) == sorted(f"tc-{kind}.8" for kind in NAMES)
    assert "PAGES := $(NAMES:%=man/tc-%.8)" in MAKEFILE  # what make install and the packages take
    assert "man/*.8" in (KERNEL / "debian" / "rules").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_explains_every_parameter_with_its_default(kind: str) -> None:
    policy, text = POLICIES[KINDS[kind]], page(kind)
    stated = entries(text)
    synopsis = text.split(".SH SYNOPSIS\n")[1].split(".SH DESCRIPTION")[0]
    assert text.startswith('.\\" SPDX-License-Identifier: GPL-2.0-only\n')
    assert f"{kind} \\- " in text.split(".SH NAME\n")[1]
    for parameter in (*policy.params, *policy.class_params):
        assert re.search(rf"\b{parameter.name}\b", synopsis), parameter.name
        assert parameter.name in stated, parameter.name
        assert explains(stated[parameter.name], parameter), f"{parameter.name}: {stated[parameter.name]}"
    known = {parameter.name for parameter in (*policy.params, *policy.class_params)}
    assert set(stated) - known <= {"classes", "link", "rate", "limit", "limit_bytes"}


OF_FIGURES = ("sat", "on_empty", "early")
"""Variants of pss that only reproduce published figures: named together."""


def explains(stated: str, parameter: Parameter) -> bool:
    """Whether all choices are named, and the default, if there is one that means something."""
    if parameter.name in OF_FIGURES and "published figures" in stated:
        return True
    if not all(choice in stated for choice in parameter.choices):
        return False
    if parameter.default in (None, "0bit", "0%"):  # unset
        return True
    bare = re.sub(r"(?<=\d)[pB]$", "", str(parameter.default))
    return re.search(rf"default\s+{re.escape(bare)}(?!\w)", stated) is not None


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("formatter", [["groff", "-man", "-ww", "-z", "-Tutf8"], ["mandoc", "-Tlint", "-Wwarning"]])
def test_a_page_is_well_formed(kind: str, formatter: list[str]) -> None:
    if shutil.which(formatter[0]) is None:
        pytest.skip(f"{formatter[0]} is not installed")
    path = Path("man") / f"tc-{kind}.8"
    done = subprocess.run([*formatter, str(path)], cwd=KERNEL, capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr).strip() == ""


def test_the_page_of_the_command_is_made_of_its_help() -> None:
    assert manual.PAGE.read_text() == manual.page(), "the help has changed: make manuals"
    words = [words for words, _ in manual.commands()]
    assert {"run", "sweep", "reproduce pss", "lab run"} <= set(words)
    assert len(words) == len(set(words)) > 15


def test_an_option_is_described_with_value_and_default() -> None:
    text = manual.page()
    assert "\n\\fB\\-\\-seeds\\fR \\fIN\\fR\nHow many runs of each" in text
    assert "(default 10)" in text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
@pytest.mark.parametrize("formatter", [["groff", "-man", "-ww", "-z", "-Tutf8"], ["mandoc", "-Tlint", "-Wwarning"]])
def test_a_page_of_a_program_is_well_formed(path: Path, formatter: list[str]) -> None:
    if shutil.which(formatter[0]) is None:
        pytest.skip(f"{formatter[0]} is not installed")
    done = subprocess.run([*formatter, path], capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr).strip() == ""
