# SPDX-License-Identifier: BSD-3-Clause
"""No name that docs/reference/stability.md promises to keep goes away, or comes, without a line in CHANGELOG.md."""

from __future__ import annotations

import json
from typing import Any

import pytest
import stable_names

KEPT: dict[str, list[str]] = json.loads(stable_names.FILE.read_text())


@pytest.fixture(scope="module")
def now() -> dict[str, list[str]]:
    return stable_names.names()


@pytest.mark.parametrize("group", KEPT)
def test_names_are_those_that_were_kept(group: str, now: dict[str, list[str]]) -> None:
    gone = [name for name in KEPT[group] if name not in now[group]]
    new = [name for name in now[group] if name not in KEPT[group]]
    assert gone == [], "others may use these names: keep them, or write a line in CHANGELOG.md and run make names"
    if group != stable_names.GROWS:
        assert new == [], "say in CHANGELOG.md what is new and run make names"
        assert now[group] == KEPT[group]  # also the order, where it counts


def test_every_group_has_names(now: dict[str, list[str]]) -> None:
    assert set(now) == set(KEPT)
    for example in (
        *(
            "run(scenario)",
            "Result.to_pandas",
            "Parameter.unit",
            "compare --seeds",
            "exit code 2",
            "link.rate",
            "flow.size.mean",
        ),
        *("gateway.listen", "peer.allowed_ips", "link.across.policy", "class.match.dscp", "pss class.rate"),
        *("classes.rate_bps: double", "packets.t_ns: uint64", "provenance.json", "linkweir_peer_session", "LW_ABI 3u"),
        *("TCA_LINKWEIR_CLASSES 2", "up --dry-run", "set capacity --peer", "harq.class: string"),
    ):
        assert any(example in group for group in now.values()), example


def test_a_name_is_dropped_only_if_the_changes_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    changes: Any = "# Changes\n\n## Not released\n\n* `--fresh` is gone.\n\n## 0.1.0\n\n* `--old`\n"
    monkeypatch.setattr(stable_names, "_text", lambda path: changes)
    gone = stable_names.missing({"commands": ["run --fresh", "run --old", "run"]}, {"commands": ["run"]})
    assert gone == ["run --fresh", "run --old"]
    assert stable_names.unannounced(gone) == ["run --old"]
