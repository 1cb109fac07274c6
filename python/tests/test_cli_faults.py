# SPDX-License-Identifier: BSD-3-Clause
"""Bad input ends with exit code 2 and one line that says file, line, key, value and cure, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import SCENARIOS, SMALL, linkweir

from linkweir import Scenario
from linkweir.reproduce.papers import codes
from linkweir.scenarios.policy import IN_SIMULATOR


def refused(path: Path, *options: object) -> str:
    out = path.parent / "out"
    done = linkweir("run", path, "--out", out, *options)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert not out.exists()
    return done.stderr


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("delay =", "dealy =", 'small.toml:5: link.dealy = "10ms": unknown key; did you mean delay?'),
        ('"2Mbit"', "2", 'small.toml:4: link.rate = 2: needs a unit: one of Gbit, Mbit, kbit, bit, like "20Mbit"'),
        ('"2Mbit"', '"2Mbps"', "in tc it means bytes per second"),
        ('"500kbit"', '"2Mbit"', 'small.toml:18: class[1].rate = "2Mbit": the reservation must be below the link\'s'),
        ('rate = "500kbit"', "share = 1.5", "small.toml:18: class[1].share = 1.5: must be 0% .. 99.9999%"),
        ('"500kbit"', '"500kbit"\nlr = "60kbit"\nlm = "40kbit"', "lm must be above lr: raise lm, lower lr"),
        ("level = 2", "level = 3", "small.toml:"),
        (
            '"pss"',
            '"psss"',
            'dualpi2; did you mean "pss"?',
        ),
        ("[link]", "[link", "small.toml:3: is not TOML"),
    ],
)
def test_scenario_faults(small: Path, old: str, new: str, expected: str) -> None:
    small.write_text(SMALL.replace(old, new, 1))
    assert expected in refused(small)


def test_duplicate_levels_name_the_class(small: Path) -> None:
    small.write_text(SMALL.replace("level = 2", "level = 3"))
    message = refused(small)
    assert "class[2].level = 3" in message or "class[1].low_level = 3" in message
    assert "level" in message.split(": ", 3)[-1]


def test_a_near_match_is_not_suggested_where_nothing_is_near(small: Path) -> None:
    for old, new, listed in (
        ('"pss"', '"wfq"', "must be one of fifo, strict, rr, wrr, drr, pss"),
        ('kind = "tcp"', 'kind = "udp"', "cbr, poisson and onoff send datagrams as over UDP"),
    ):
        small.write_text(SMALL.replace(old, new, 1))
        message = refused(small)
        assert listed in message
        assert "did you mean" not in message


def test_voice_quality_is_refused_before_a_run_without_voice(small: Path) -> None:
    done = linkweir("run", small, "--mos", "g711", "--out", small.parent / "out")
    assert (done.returncode, done.stdout) == (2, "")
    message = " ".join(done.stderr.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", "").split())
    assert "has no flow with a play-out buffer" in message
    assert "leave --mos out" in message
    assert not (small.parent / "out").exists()
    voice = SMALL.replace('kind = "poisson"', 'kind = "poisson"\nplayout = "60ms"')
    small.write_text(voice)
    assert linkweir("run", small, "--mos", "g711", "--out", small.parent / "out").returncode == 0


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("t_s,capacity_bps\n0,1e6\n1,-5\n", 'trace.csv:3: capacity_bps = "-5": must be bit/s, 0 .. 400e9'),
        ("t_s,capacity_bps\n0,1e6\n1,fast\n", 'trace.csv:3: capacity_bps = "fast": is not a number'),
        ("1\n2\n-3\n", "trace.csv: holds one number per line, which may be rates at a fixed interval"),
        ("1\n2\n", "trace.csv: holds one number per line, which may be times in ms at which 1500 bytes can leave"),
        ("", "trace.csv: is empty"),
    ],
)
def test_trace_faults(small: Path, content: str, expected: str) -> None:
    trace = small.with_name("trace.csv")
    trace.write_text(content)
    assert expected in refused(small, "--trace", trace)
    small.write_text(SMALL.replace('rate = "2Mbit"', 'trace = "trace.csv"', 1))
    assert expected in refused(small)


def test_missing_files(tmp_path: Path, small: Path) -> None:
    assert "none.toml: cannot be read" in refused(tmp_path / "none.toml")
    assert "none.csv: cannot be read" in refused(small, "--trace", tmp_path / "none.csv")
    assert "is not a regular file" in refused(small, "--trace", "/dev/zero")


def test_unwritable_directories_are_refused_before_the_run(tmp_path: Path, small: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for out in (file / "below", "/proc/nowhere/out", file):
        done = linkweir("run", small, "--out", out)
        assert done.returncode == 2, done
        assert done.stdout == ""
        named = done.stderr.removeprefix("linkweir: ").split(": ", maxsplit=1)[0]
        assert str(out).startswith(named)
        assert done.stderr.count("\n") == 1
    assert file.read_text() == "mine"


def test_a_directory_with_other_things_is_never_touched(tmp_path: Path, small: Path) -> None:
    out = tmp_path / "precious"
    out.mkdir()
    (out / "thesis.tex").write_text("mine")
    for options in ([], ["--force"]):
        done = linkweir("run", small, "--out", out, *options)
        assert done.returncode == 2
        assert "is not empty and is not an earlier run" in done.stderr
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]


def test_an_earlier_run_is_overwritten_only_by_force(tmp_path: Path, small: Path) -> None:
    out = tmp_path / "out"
    assert linkweir("run", small, "--out", out).returncode == 0
    done = linkweir("run", small, "--out", out)
    assert done.returncode == 2
    assert "overwrite it with --force" in done.stderr
    assert linkweir("run", small, "--out", out, "--force").returncode == 0


def test_usage_faults() -> None:
    for arguments in (
        ["frobnicate"],
        ["run"],
        ["run", "x.toml", "--sed", "1"],
        ["policies", "psss"],
        ["run", "x", "--seed", "a"],
    ):
        done = linkweir(*arguments)
        assert done.returncode == 2, done
        assert "Traceback" not in done.stderr


def test_policies_of_the_simulator_alone_are_named_as_such() -> None:
    for name in IN_SIMULATOR:
        scenario = codes.scenario(codes.JOURNAL, "PF", 2, 1, 9.0)
        assert Scenario.from_dict({**scenario, "scheduler": {"policy": name}}).policy == name
        done = linkweir("policies", name)
        assert done.returncode == 2
        assert f"{name} is in the simulator only; see docs/reference/scenarios.md" in " ".join(
            done.stderr.replace("│", "").split()
        )


def test_a_seed_out_of_range_is_refused(small: Path) -> None:
    for seed in (-1, 2**63, 2**70):
        done = linkweir("check", small, "--seed", seed)
        assert done.returncode == 2
        assert "must be a whole number 0 .. 9223372036854775807" in done.stderr


def test_a_trace_that_is_missing_is_the_fault_of_who_names_it(tmp_path: Path, small: Path) -> None:
    given = linkweir("check", SCENARIOS / "lte-drive.toml", "--trace", "none.csv")
    assert given.returncode == 2
    assert given.stderr.startswith("linkweir: none.csv: cannot be read: No such file")
    small.write_text(SMALL.replace('rate = "2Mbit"', 'trace = "none.csv"'))
    written = linkweir("check", small)
    assert written.returncode == 2
    assert f'{small}:4: link.trace = "none.csv": {tmp_path / "none.csv"}: cannot be read' in written.stderr


def test_no_run_directory(tmp_path: Path) -> None:
    for command in ("report", "rerun"):
        done = linkweir(command, tmp_path)
        assert done.returncode == 2
        assert "is not a run directory" in done.stderr
