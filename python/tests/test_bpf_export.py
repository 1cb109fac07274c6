# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir export bpf`: what it writes is read by linkweir-bpf; what BPF has not is refused or said."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from built import program

from linkweir.deploy.bpf import POLICIES, bpf_settings
from linkweir.fault import ScenarioError
from linkweir.scenarios.scenario import Scenario

ROOT = Path(__file__).parents[2]
SCENARIO = """
duration = "1s"
link = { rate = "10Mbit" }
scheduler = { policy = "pss" }
class = [{ name = "ef" }, { name = "be" }]
flow = [{ class = "be", kind = "cbr", rate = "1Mbit" }]
"""


@pytest.fixture(scope="module")
def loader() -> Path:
    return program("linkweir-bpf", test="settings")


def test_the_loader_reads_what_is_written(loader: Path, tmp_path: Path) -> None:
    written = 0
    for path in sorted((ROOT / "scenarios").glob("*.toml")):
        try:
            found = bpf_settings(Scenario.load(path))
        except ScenarioError as fault:
            refused = ("scheduler.policy", "scheduler.across", "class.match", "link.name", "constellation", "bond")
            assert fault.key in refused or re.match(r"class\[\d+]\.", fault.key or ""), path
            continue
        file = tmp_path / path.name
        file.write_text(found.text)
        done = subprocess.run([loader, "check", file], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        written += 1
    assert written >= 10


def test_policies_are_those_that_are_built() -> None:
    lines = (ROOT / "bpf/policies").read_text().splitlines()
    assert tuple(line for line in lines if not line.startswith("#")) == POLICIES
    page = (ROOT / "docs/reference/bpf.md").read_text()
    listed = page[page.index("such programs:") : page.index("The\nkernel does not accept")]
    assert tuple(re.findall(r"`(\w+)`", listed)) == POLICIES


@pytest.mark.parametrize(
    ("change", "by", "key", "told"),
    [
        ('"pss"', '"mlwdf"', "scheduler.policy", "must be one of fifo, strict"),
        ('"ef"', '"ef", match = [{ address = "10.0.0.0/8" }]', "class[0].match", "give code points"),
        ('"ef"', '"ef", limit = "20ms"', "class[0].limit", "is no number of packets"),
        ('"ef"', '"ef", flows = "fq_codel"', "class[0].flows", "a class is one queue"),
        ('"pss"', '"pss", across = { policy = "pf" }', "scheduler.across", "packets have no users"),
    ],
)
def test_what_bpf_has_not_is_refused(change: str, by: str, key: str, told: str) -> None:
    with pytest.raises(ScenarioError, match=told) as caught:
        bpf_settings(Scenario.parse(SCENARIO.replace(change, by)))
    assert caught.value.key == key


def test_ports_and_protocols_are_written(loader: Path, tmp_path: Path) -> None:
    rule = '{ protocol = "udp", port = [5060, "6000-6010"], order = 1 }'
    file = tmp_path / "ports.toml"
    file.write_text(bpf_settings(Scenario.parse(SCENARIO.replace('"ef"', f'"ef", match = [{rule}]'))).text)
    assert f"match = [{rule}]" in file.read_text()
    subprocess.run([loader, "check", file], check=True)


def test_what_is_left_out_is_said() -> None:
    changed = SCENARIO.replace('"10Mbit"', '"10Mbit", overhead = "18B"')
    notes = bpf_settings(Scenario.parse(changed)).notes
    assert any(note.startswith("link.overhead = 18B: a BPF discipline counts") for note in notes)
    varying = SCENARIO.replace('{ rate = "10Mbit" }', '{ rate = { mean = "10Mbit", amplitude = 0.5, period = "10s" } }')
    assert "linkweir-bpf follow" in bpf_settings(Scenario.parse(varying)).warnings[0]
