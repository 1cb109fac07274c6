# SPDX-License-Identifier: BSD-3-Clause
"""Measured series as programs write them are read the same by every command, or refused with the key that helps."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest
from dialects import make
from typer.testing import CliRunner

import linkweir
from linkweir import ScenarioError, traces
from linkweir.commands import cli
from linkweir.comparison.plan import prepare
from linkweir.lab.fault import LaboratoryError
from linkweir.sizing import shortage
from linkweir.sweeps.plan import Plan

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "data" / "dialects"
CASES = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))
REST = """
[scheduler]
policy = "fifo"
[[class]]
name = "a"
[[flow]]
class = "a"
kind = "cbr"
rate = "10kbit"
"""


class _NoLaboratory:
    """In the place of the laboratory, which needs a kernel: what is printed before a run is all that is asked for."""

    def run(self, *_: object, **__: object) -> None:
        raise LaboratoryError("no kernel")


def _steps(scenario: linkweir.Scenario) -> list[tuple[float, float]]:
    starts_ns, rates = scenario.native.link_steps("rate", 1.0)
    return _joined([(ns / 1e9, bps) for ns, bps in zip(starts_ns, rates, strict=True)])


def _joined(steps: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without steps that change nothing."""
    return [step for i, step in enumerate(steps) if i == 0 or step[1] != steps[i - 1][1]]


def _close(found: list[tuple[float, float]], expected: list[tuple[float, float]]) -> bool:
    pairs = zip(found, expected, strict=False)
    return len(found) == len(expected) and all(
        abs(t - t0) < 1e-6 and abs(bps - bps0) <= 1e-9 * bps0 for (t, bps), (t0, bps0) in pairs
    )


def test_there_are_thirty_files_and_each_has_its_case() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*CASES, "cases.toml"}
    assert len(CASES) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_dialect_is_read_the_same_everywhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = FOLDER / name
    expected = [(float(t_s), float(bps)) for t_s, bps in CASES[name]["steps"]]
    text = CASES[name].get("keys", "")
    keys = tomllib.loads(text)
    # In a scenario, in the place of its link, and as a run directory repeats it.
    written = f'duration = "100s"\n[link]\ntrace = "{path}"\n{text}{REST}'
    scenario = linkweir.Scenario.parse(written)
    assert _close(_steps(scenario), _joined(expected)), scenario.readings
    other = f'duration = "100s"\n[link]\nrate = "1Mbit"\n{REST}'
    in_place = linkweir.Scenario.parse(other, trace=path, trace_keys=keys)
    assert _steps(in_place) == _steps(scenario)
    (tmp_path / "inputs").mkdir()
    for copy, _, content in scenario.inputs:
        (tmp_path / copy).write_bytes(content)
    again = linkweir.Scenario.parse(scenario.resolved, path=tmp_path / "scenario.toml")
    assert _steps(again) == _steps(scenario)
    # For sizing, for other programs, and for a comparison.
    capacity = shortage.read(path, keys)
    assert _close(_joined(list(zip(capacity.starts_s, capacity.rates, strict=True))), _joined(expected))
    out = [line.split(",") for line in traces.exported(path, keys=keys).splitlines() if line[0].isdigit()]
    assert _close(_joined([(float(t_s), float(bps)) for t_s, bps in out]), _joined(expected))
    file = tmp_path / "s.toml"
    file.write_text(other, encoding="utf-8")
    _, facts = prepare(file, ["fifo"], [path], 1, [], trace_keys=keys)
    # All say the same of it.
    reading = traces.reading(path, keys=keys).text
    assert scenario.readings == in_place.readings == list(facts.readings) == [reading]
    options = [word for key, value in keys.items() for word in ("--trace-key", f"{key} = {json.dumps(value)}")]
    commands = [["trace", "show", str(path)], ["check", str(file), "--trace", str(path)]]
    own = tmp_path / "own.toml"  # with the keys of the trace in the scenario, for commands without options for them
    own.write_text(written, encoding="utf-8")
    plan = tmp_path / "plan.toml"
    plan.write_text('scenario = "own.toml"\nseeds = [1, 2]\n', encoding="utf-8")
    assert [case.readings for case in Plan.load(plan).cases] == [(reading,)]
    for command in (["sweep", str(plan), "--dry-run"], ["lab", "run", str(own)], ["check", str(own)]):
        monkeypatch.setattr("linkweir.lab.choice.experiments", lambda *args, **more: _NoLaboratory())
        monkeypatch.setattr(sys, "argv", ["linkweir", *command])
        found = CliRunner().invoke(cli.app, command)
        assert found.output.count(f"read: {reading}\n") == 1, (command, found.output)
    whole = name in ("gzip.csv.gz", "decimal-comma-three.csv", "gap-outage.csv")
    if whole:  # these take longer
        commands.append(["plan", "pss", "--link", "5Mbit", "--rate", "1Mbit", "--trace", str(path)])
        commands.append(["run", str(file), "--trace", str(path), "--out", str(tmp_path / "run")])
        commands.append(["bounds", str(file), "--trace", str(path)])
        compared = ["compare", str(file), "--traces", str(path), "--policies", "fifo,drr", "--seeds", "2"]
        commands.append([*compared, "--out", str(tmp_path / "compared")])
    for command in commands if all(isinstance(value, str) for value in keys.values()) else []:
        monkeypatch.setattr(sys, "argv", ["linkweir", *command])  # by which commands are found
        found = CliRunner().invoke(cli.app, [*command, *options])
        assert found.exit_code == 0, found.output
        assert f"read: {reading}\n" in found.output, command
    if whole:
        provenance = json.loads((tmp_path / "run" / "provenance.json").read_text(encoding="utf-8"))
        assert provenance["readings"] == [reading]


def test_columns_are_named_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = "columns = { t = 1, capacity = { column = 3, unit = 'Mbit' } }"
    command = ["trace", "show", str(FOLDER / "no-header.csv"), "--trace-key", columns]
    monkeypatch.setattr(sys, "argv", ["linkweir", *command])
    found = CliRunner().invoke(cli.app, command)
    assert found.exit_code == 0, found.output
    assert "capacity from column 3 in Mbit/s" in found.output


@pytest.mark.parametrize(
    ("content", "cure"),
    [
        ("12\n12\n15\n20\n", "trace_unit"),
        ("100000\n" * 300, 'trace_format = "mahimahi"'),
        ("5.5\n6.5\n4\n", "trace_interval"),
        ("0,5\n1,6\n", "columns = { t = 1, capacity = { column = 2"),
        ("t;x_mbps\n0;1,234\n1;2,345\n", "decimal ="),
        ("t_s,RATE_MBPS\n0,5\n1,6\n", "bits or bytes"),
        ("t_s,DL_bitrate\n0,5\n1,6\n", "columns ="),
        ("t_s,up_kbps,down_kbps\n0,5,6\n1,6,7\n", "name one: columns ="),
        ("t_s,total_mbit\n0,5\n1,6\n", "columns ="),
        ("when,x_mbps\n01/02/2020 00:00:00,5\n", "dates ="),
        ("t_s,x_mbit\n0,5\n0,6\n", "equal_times ="),
        ("t_s,x_mbit\n5,5\n0,6\n", "earlier_times ="),
    ],
)
def test_what_may_be_two_things_is_refused_with_the_choices(content: str, cure: str, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"x\.txt") as fault:
        traces.reading(path)
    assert cure in str(fault.value)


@pytest.mark.parametrize(
    ("content", "keys", "doubt"),
    [
        ("t_s,x_mbit\n" + "".join(f"{t},5\n" for t in (0, 1, 2, 3, 4, 34, 35)), {}, "no lines for 30s before line 7"),
        ("time,x_mbit\n" + "".join(f"{1000 * t},5\n" for t in range(9)), {}, 'unit = "ms"'),
        ("t_s,x_mbit\n" + "".join(f"{t},{t + 1}\n" for t in range(12)), {}, "running total"),
        (
            "t_s,x_mbit,loss\n0,5,0\n1,5,1\n2,5,0\n",
            {"columns": {"t": "t_s", "capacity": "x_mbit", "loss": {"column": "loss", "unit": "1"}}},
            'unit = "%"',
        ),
        (
            "when,x_mbps\n"
            + "".join(
                f"2026-03-29 0{h}:{m:02}:00,5\n"
                for h, m in [(1, 50 + m) for m in range(10)] + [(3, m) for m in range(10)]
            ),
            {},
            "zone = ",
        ),
    ],
)
def test_what_is_doubtful_is_said(content: str, keys: dict[str, object], doubt: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(content, encoding="utf-8")
    assert any(doubt in one for one in traces.reading(path, keys=keys).doubts)
    text = f'duration = "100s"\n[link]\nrate = "1Mbit"\n{REST}'
    notes = linkweir.Scenario.parse(text, trace=path, trace_keys=keys).notes
    assert any(one.startswith("link.trace: ") and doubt in one for one in notes)


@pytest.mark.slow
def test_every_command_says_what_is_doubtful_of_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"{t},5\n" for t in (0, 1, 2, 3, 4, 34, 35))
    (tmp_path / "x.csv").write_text(f"t_s,x_mbit\n{lines}", encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(f'duration = "2s"\n[link]\ntrace = "x.csv"\n{REST}', encoding="utf-8")
    plan = tmp_path / "plan.toml"
    plan.write_text('scenario = "own.toml"\n[grid]\n"link.delay" = ["1ms", "2ms"]\n', encoding="utf-8")
    trace = str(tmp_path / "x.csv")
    for command in (
        ["run", str(own), "--out", str(tmp_path / "run")],
        ["check", str(own)],
        ["compare", str(own), "--policies", "fifo,drr", "--seeds", "2", "--out", str(tmp_path / "compared")],
        ["sweep", str(plan), "--out", str(tmp_path / "swept")],
        ["lab", "run", str(own)],
        ["trace", "show", trace],
        ["plan", "pss", "--link", "5Mbit", "--rate", "1Mbit", "--trace", trace],
        ["bounds", str(own)],
    ):
        monkeypatch.setattr("linkweir.lab.choice.experiments", lambda *args, **more: _NoLaboratory())
        monkeypatch.setattr(sys, "argv", ["linkweir", *command])
        found = CliRunner().invoke(cli.app, command)
        assert found.output.count("read: ") == 1, (command, found.output)
        assert found.output.count("no lines for 30s before line 7") == 1, (command, found.output)


def test_delays_longer_than_the_run_are_said(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("t_s,capacity_bps,delay_s\n0,5e6,76.8\n1,5e6,80\n", encoding="utf-8")
    text = f'duration = "60s"\n[link]\ntrace = "d.csv"\n{REST}'
    (note,) = linkweir.Scenario.parse(text, path=tmp_path / "s.toml").notes
    assert "never below 76.8s" in note
    assert 'unit = "ms"' in note


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_a_thousand_files_of_mixed_dialects_are_read_right_or_refused_with_a_cure(first: int, tmp_path: Path) -> None:
    read = refused = 0
    for seed in range(first, first + 250):
        made = make(seed)
        path = tmp_path / made.name
        path.write_bytes(made.content)
        shown = f"seed {seed}: {made.keys}\n{_text(made.content)}"
        try:
            _, (starts_s, rates, _, _) = linkweir._native.trace(path, traces.as_toml(made.keys))
        except ScenarioError as fault:
            assert made.steps is None, f"{fault}\n{shown}"
            assert any(key in str(fault) for key in traces.KEYS), f"{fault}\n{shown}"
            refused += 1
            continue
        assert made.steps is not None, f"read as {starts_s}, {rates}\n{shown}"
        assert _close(list(zip(starts_s, rates, strict=True)), made.steps), f"{starts_s}, {rates}\n{shown}"
        read += 1
    assert read > 150
    assert refused > 10


def _text(content: bytes) -> str:
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8", "replace")[:800]


def test_other_series_are_read_in_the_same_dialects(tmp_path: Path) -> None:
    def parsed(link: str, flow: str = "", satellite: str = "") -> linkweir.Scenario:
        rest = REST.replace('kind = "cbr"\nrate = "10kbit"', flow) if flow else REST
        return linkweir.Scenario.parse(f'duration = "9s"\n[link]\n{link}\n{satellite}{rest}', path=tmp_path / "s.toml")

    def same(name: str, plain: str, **parts: str) -> None:
        """The same scenario of a plain file, and of one with semicolons, decimal commas, quotes, UTF-16 and gzip."""
        variants = {
            "plain": plain.encode(),
            "semicolons": plain.replace(",", ";").replace(".", ",").encode("utf-16"),
            "tabs": plain.replace(",", "\t").encode(),
            "quotes": "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in plain.split("\n"))
            .replace('""', "")
            .encode(),
            "zipped": gzip.compress(f"% a remark\n// another\n{plain}".encode()),
        }
        found = {}
        for variant, content in variants.items():
            (tmp_path / name).write_bytes(content)
            result = linkweir.run(parsed(**parts))
            found[variant] = {table: result.tables[table].to_pylist() for table in ("classes", "link")}
        assert all(one == found["plain"] for one in found.values())

    rate = 'rate = "1Mbit"'
    same("p.csv", "t_s,bytes\n0,100\n0.5,1500\n", link=rate, flow='kind = "replay"\nfile = "p.csv"')
    same(
        "z.csv",
        "bytes,cumulative\n1000,0.25\n9000,1\n",
        link=rate,
        flow='kind = "transfers"\narrivals = { load = "200kbit" }\nsize = { file = "z.csv" }',
    )
    hop = '[link.satellite]\npacket = "1500B"\n'
    same(
        "d.csv",
        "t_s,to_satellite_s,to_ground_s\n0,0.1,0.01\n2,0.2,0.02\n",
        link=rate,
        satellite=f'{hop}delays = "d.csv"\n',
    )
    same("f.csv", "t_s,attenuation_db\n0,-1.5\n1,-2.5\n2,-9.5\n", link=rate, satellite=f'{hop}fading = "f.csv"\n')
    beam = '[link.beam]\nsymbol_rate = "1MBd"\nclear_sky_esn0_db = 12\nattenuation = "a.csv"\n'
    same("a.csv", "t_s,attenuation_db\n0,1.5\n3,8.5\n", link="", satellite=beam)
