# SPDX-License-Identifier: BSD-3-Clause
"""bpf/tests/marks.py: its exit code is 0 only if it compared the object files of all hosts."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest
from command import REPOSITORY

PLAIN = "int sum(int n);\nint sum(int n) { int i, all = 0; for (i = 0; i < n; i++) all += i * i; return all; }\n"
"""A core of one file."""
GCC = {"gcc": ("gcc", "-std=c11", "-O2")}
ABSENT = {"another": ("no-such-compiler",)}
NO_HEADERS = {"gcc for little": ("gcc", "-nostdinc")}


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(REPOSITORY / "bpf/tests")
    module = importlib.import_module("marks")
    for folder in ("core/src", "core/include", "marked"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "core/src/sum.c").write_text(PLAIN)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["marks.py", str(tmp_path / "marked")])
    return module


@pytest.mark.parametrize(
    ("hosts", "zero", "code", "last"),
    [
        (
            GCC,
            "lw_zero()",
            0,
            "2 hosts get the same; not the same: none; not compared, because something is missing here: none",
        ),
        ({**GCC, **ABSENT}, "lw_zero()", 3, "because something is missing here: another"),
        ({**GCC, **NO_HEADERS}, "lw_zero()", 3, "because something is missing here: gcc for little"),
        (GCC, "lw_zero() + 1", 1, "1 hosts get the same; not the same: gcc;"),
        (GCC, "lw_zero() +", 1, "1 hosts get the same; not the same: gcc;"),
        (GCC, "0", 1, "2 hosts get the same;"),
    ],
)
def test_success_means_that_all_hosts_were_compared(
    marks: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    hosts: dict[str, tuple[str, ...]],
    zero: str,
    code: int,
    last: str,
) -> None:
    (tmp_path / "marked/sum.c").write_text(PLAIN.replace("i = 0", f"i = {zero}"))
    monkeypatch.setattr(marks, "HOSTS", hosts)
    monkeypatch.setattr(marks, "module", lambda _tree, _release, _source: {"module": b"the same"})
    assert marks.main() == code
    assert last in capsys.readouterr().out.splitlines()[-1]


def test_nothing_compared_is_no_success(marks: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "marked/sum.c").write_text(PLAIN.replace("i = 0", "i = lw_zero()"))
    monkeypatch.setattr(marks, "HOSTS", ABSENT)
    monkeypatch.setattr(marks, "MODULES", tmp_path)
    assert marks.main() == 1
