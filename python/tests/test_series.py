# SPDX-License-Identifier: BSD-3-Clause
"""The kernel series: its scheduling functions come from the core's and pass its vectors; no kernel source is needed."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import REPOSITORY

from linkweir.scenarios.policy import policies

SERIES = REPOSITORY / "kernel/series"


@pytest.fixture
def series(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(SERIES)
    return SERIES


def replay(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SERIES / "user/replay.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_functions_of_the_series_pass_the_vectors() -> None:
    done = replay()
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.findall(r"^ok \d+ (\w+)$", done.stdout, re.MULTILINE)
    assert {"hand_refuse", "hand_range", "hand_spare", "random_switching_3", "plain_restless_1"} <= set(passed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (due <= now) {", "if (due < now) {"),
        ("rest >= rate_bps - rest)\n\t\tpace.mult++", "rest > rate_bps)\n\t\tpace.mult++"),
        ("if (row->low_level <= pss_level_of", "if (row->low_level < pss_level_of"),
        (".max = 65535,\n};\n\nstatic const struct netlink_range_validation pss_class_low_level_range", None),
    ],
)
def test_the_vectors_notice_a_fault_in_the_functions(old: str, new: str | None) -> None:
    done = replay("--plant", old, old.replace("65535", "65536") if new is None else new)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^not ok", done.stdout, re.MULTILINE)


def test_a_source_that_changed_is_named(series: Path) -> None:
    transform = importlib.import_module("transform")
    with pytest.raises(transform.DriftError, match="no longer defines pss_soar"):
        transform.extract("static void pss_sink(void)\n{\n}\n", "pss_soar", "core/src/pss.c")
    part = transform.Part("core/src/pss.c", "pss_sink", (("a text that is not there", ""),))
    with pytest.raises(transform.DriftError, match="pss_sink contains 0 times, expected once"):
        transform.edited(part)


def test_an_unknown_name_of_the_core_is_named(series: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transform = importlib.import_module("transform")
    monkeypatch.setattr(transform, "PARTS", (transform.Part("core/src/pss.c", "pss_charge"),))
    with pytest.raises(transform.DriftError, match=r"pss_charge: .* has no form here"):
        transform.algorithm()


def test_every_parameter_of_a_class_is_an_attribute(series: Path) -> None:
    files, facts = importlib.import_module("files"), importlib.import_module("facts")
    params = facts.parameters()
    pss = next(policy for policy in policies() if policy.name == "pss")
    names = [param.name for param in pss.class_params]
    assert [param.name for param in params] == names
    header, sets = files.uapi(params), files.yaml_sets(params)
    for param in params:
        assert f"\tTCA_PSS_CLASS_{param.symbol},\t" in header
        assert f"        name: {param.name.replace('_', '-')}\n        type: u{param.bits}\n" in sets


def test_the_cover_letter_has_the_figures_of_all_qdiscs() -> None:
    rows = (SERIES / "figures.txt").read_text().splitlines()
    assert [row.split()[0] for row in rows] == ["qdisc", "pss", "htb+ets", "cake", "fq_codel", "seeds:"]
    assert {len(row.split()) for row in rows[1:-1]} == {8}
    assert all(len(row) <= 75 for row in rows)
