# SPDX-License-Identifier: BSD-3-Clause
"""The keys of scenarios and of the gateway are declared once; pages, schemas and exports are made of the declarations."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from command import REPOSITORY

from linkweir.scenarios.declared import kinds, rows, treated

HOSTS = {"laboratory", "gateway", "tc", "ns3", "bounds"}


def site_keys() -> Any:
    spec = importlib.util.spec_from_file_location("site_keys", REPOSITORY / "docs/site/keys.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["scenarios", "gateway"])
def test_the_reference_has_the_keys_as_they_are_declared(page: str) -> None:
    text = (REPOSITORY / f"docs/reference/{page}.md").read_text(encoding="utf-8")
    assert text.count("<!-- keys: ") == text.count("<!-- end of keys -->") > 5
    assert site_keys().filled(text) == text, "run make keys"


def test_a_table_of_another_declaration_is_noticed() -> None:
    text = (REPOSITORY / "docs/reference/scenarios.md").read_text(encoding="utf-8")
    changed = text.replace("| `ring` | 1 .. 65536 |", "| `ring` | 1 .. 65535 |")
    assert changed != text
    assert site_keys().filled(changed) == text


def test_every_host_has_a_decision_for_every_key_and_every_kind_of_traffic() -> None:
    for path in ("", "link", "scheduler", "class", "flow"):
        for key, row in rows(path).items():
            assert row.hosts is not None
            assert set(row.hosts) == HOSTS, key
    assert all(set(hosts) == HOSTS for hosts in kinds().values())


def test_users_see_words_for_what_a_host_leaves_out_or_refuses() -> None:
    for path in ("", "link", "scheduler", "class", "flow"):
        for host in HOSTS:
            assert all(words for _, words in treated(path, host, "adapted", "left_out", "refused")), (path, host)
