# SPDX-License-Identifier: BSD-3-Clause
"""Capacity by feedback between real gateways, in virtual time: a link whose capacity and delay change by themselves.

Voice and four downloads pass a tunnel over an emulated link. Its capacity (3.5 to 16 Mbit/s) and delay (18 to 45 ms)
change every 15 s, as those of a satellite terminal do; a seed says how. The gateways know no number: the sender has
`feedback = true`. Voice is compared packet by packet with the same link without downloads.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from test_tunnel import program

from linkweir.lab import guest, host, kernel, namespaces, tunnel
from linkweir.lab.guest import Guest
from linkweir.lab.world import ZERO_NS
from linkweir.scenario import as_scenario

BEFORE = "dace0b54^"
"""The last commit before the rule of feedback was written again."""
LEVEL_S, END_S = 15, 300
SETTLE_S = 20
"""The capacity to begin with is unknown, and TCP begins slowly."""
EF_NS = 10_000_000
CAME = np.dtype([("flow", "<u4"), ("bytes", "<u4"), ("sent_ns", "<u8"), ("came_ns", "<u8")])
NUMBERS = {
    "today": ("", "feedback = true"),
    "before": ('rate = "10Mbit"\nstale = "10s"\nfloor = "1Mbit"\n', 'feedback = { ceiling = "40Mbit" }'),
}
"""What a sender of each version is told: below `[link]`, and of its peer."""


@dataclass(frozen=True)
class Outcome:
    """A run.

    Attributes:
        used: the part of the link's capacity that carried packets.
        took_ms: how long each packet of voice took, by the time it was sent, ns.
        show: what the sender's gateway showed at the end.
    """

    used: float
    took_ms: Mapping[int, float]
    show: Mapping[str, object]


def levels(seed: int) -> list[tuple[int, float, float]]:
    """From when on each level holds, s, its capacity, Mbit/s, and the delay, ms."""
    drawn = random.Random(seed)
    return [(at_s, drawn.uniform(3.5, 16.0), drawn.uniform(18.0, 45.0)) for at_s in range(0, END_S + 60, LEVEL_S)]


def run(made: Guest, seed: int, *, downloads: int, ends: tuple[str, str] = ("today", "today")) -> Outcome:
    """Runs the tunnel over the link of a seed; `ends` are the versions of the sender and the receiver."""
    flows = [{"name": "ef", "class": "ef", "kind": "cbr", "rate": "160kbit", "packet": "200B"}]
    flows += [{"name": f"tcp{n}", "class": "rest", "kind": "tcp"} for n in range(downloads)]
    scenario = as_scenario(
        {
            "duration": f"{END_S}s",
            "interval": "1s",
            "link": {"rate": "16Mbit", "delay": "30ms", "return_delay": "25ms"},
            "scheduler": {"policy": "strict"},
            "class": [{"name": "ef", "level": 0, "limit": "100p"}, {"name": "rest", "level": 1, "limit": "200p"}],
            "flow": flows,
            "seed": seed,
        }
    )
    job = dict(tunnel.tunnel(scenario).job)
    steps = levels(seed)
    there = (
        f"rate = {{ steps = {json.dumps([[f'{at}s', f'{round(1e6 * mbit)}bit'] for at, mbit, _ in steps])} }}\n"
        f"delay = {{ steps = {json.dumps([[f'{at}s', f'{round(1e3 * ms)}us'] for at, _, ms in steps])} }}\n"
        'limit = "100p"\n'
    )
    link = job["link.toml"].decode()
    before, rest = link.split("[a_to_b]\n")
    job["link.toml"] = f"{before}[a_to_b]\n{there}\n[b_to_a]\n{rest.split('[b_to_a]')[1]}".encode()
    of_link, of_peer = NUMBERS[ends[0]]
    text = job["sender.toml"].decode()
    head, rest = text.split("[link]\n")
    job["sender.toml"] = f"{head}[link]\n{of_link}\n[scheduler]{rest.split('[scheduler]')[1]}{of_peer}\n".encode()
    job["receiver.toml"] += b"report = true\n"
    script = job["run"].decode()
    for end, version in zip(("sender", "receiver"), ends, strict=True):
        if version == "before":
            script = script.replace(f"linkweir-gateway up {end}.toml", f"gateway-before up {end}.toml")
    job["run"] = script.encode()
    files = host.start(made, job, seed)
    return outcome(files, steps)


def outcome(files: Mapping[str, bytes], steps: list[tuple[int, float, float]]) -> Outcome:
    """Reads what a run left."""
    answers, decoder, text = [], json.JSONDecoder(), files["counters"].decode().strip()
    while text:
        answer, at = decoder.raw_decode(text)
        answers.append(answer)
        text = text[at:].lstrip()
    sent = [sum(entry["sent_bytes"] for entry in answer["peers"][0]["classes"]) for answer in answers]
    # Counters are looked at every second. The emulator's clock began a little earlier than theirs.
    began_s = json.loads(files["emulator"])["began_ns"] / 1e9
    offset_s = ZERO_NS / 1e9 - began_s

    def bits(to_s: float) -> float:
        ends = [*(step[0] for step in steps[1:]), float("inf")]
        parts = zip(steps, ends, strict=True)
        return sum(1e6 * mbit * max(0.0, min(end, to_s) - at_s) for (at_s, mbit, _), end in parts)

    carried = bits(END_S + offset_s) - bits(SETTLE_S + offset_s)
    packets = np.frombuffer(files["datagrams"], CAME)
    voice = packets[packets["flow"] == 0]
    took_ms = (voice["came_ns"].astype(np.int64) - voice["sent_ns"].astype(np.int64)) / 1e6
    sent_ns = (int(ns) for ns in voice["sent_ns"])
    return Outcome(8 * (sent[END_S] - sent[SETTLE_S]) / carried, dict(zip(sent_ns, took_ms, strict=True)), answers[-1])


def later_ms(loaded: Outcome, empty: Outcome) -> float:
    """The 99th percentile of how much longer voice took than without downloads."""
    # Datagrams leave up to some microseconds after their time, so both runs are compared by the number of the packet.
    by_number = {round(ns / EF_NS): ms for ns, ms in empty.took_ms.items()}
    later = [
        ms - by_number[round(ns / EF_NS)]
        for ns, ms in loaded.took_ms.items()
        if round(ns / EF_NS) in by_number and ns > SETTLE_S * 1e9
    ]
    assert len(later) > 0.9 * (END_S - SETTLE_S) * 100
    return float(np.quantile(later, 0.99))


def made_of(*programs: Path) -> Guest:
    return guest.prepare(kernel.build("fast"), *programs)


@pytest.fixture(scope="module")
def gateway() -> Path:
    lacks = guest.why_not() or (None if kernel.built() else kernel.why_not())
    if lacks:
        pytest.skip(f"NO RUN IN VIRTUAL TIME: {lacks}")
    found = program()
    if found is None:
        pytest.skip(namespaces.NO_GATEWAY)
    return found


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The gateway of the version before, built from the history."""
    folder = tmp_path_factory.mktemp("before")
    archive = ["git", "-C", str(kernel.tree()), "archive", "--format=tar", "--output", str(folder / "tree.tar"), BEFORE]
    done = subprocess.run(archive, capture_output=True, text=True, check=False) if shutil.which("git") else None
    if done is None or done.returncode:
        pytest.skip(f"NO GATEWAY OF BEFORE: the history is not here: {done.stderr.strip() if done else 'no git'}")
    subprocess.run(["tar", "-xf", "tree.tar"], cwd=folder, check=True)
    build = ["cargo", "build", "--locked", "-j2", "-p", "linkweir-gateway"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target")}
    subprocess.run(build, cwd=folder, env=environment, check=True)
    built = folder / "gateway-before"
    (folder / "target/debug/linkweir-gateway").rename(built)
    yield built
    shutil.rmtree(folder)


@pytest.mark.long
def test_feedback_alone_uses_a_link_that_nobody_knows_and_keeps_voice_short(gateway: Path) -> None:
    made = made_of(gateway)
    for seed in (1, 2):
        empty, loaded = run(made, seed, downloads=0), run(made, seed, downloads=4)
        used, ef_ms = loaded.used, later_ms(loaded, empty)
        print(f"seed {seed}: {100 * used:.1f} % of the link, voice {ef_ms:.1f} ms later")
        assert used >= 0.92, seed
        assert ef_ms <= 20.0, seed


@pytest.mark.long
def test_gateways_of_the_version_before_work_with_this_one_both_ways(gateway: Path, before: Path) -> None:
    made = made_of(gateway, before)
    empty = run(made, 1, downloads=0)
    both = {ends: run(made, 1, downloads=4, ends=ends) for ends in (("today", "before"), ("before", "today"))}
    old = run(made, 1, downloads=4, ends=("before", "before"))
    for ends, found in {**both, ("before", "before"): old}.items():
        reports = found.show["peers"][0]["feedback"]["reports"]  # type: ignore[index]
        print(f"{ends}: {100 * found.used:.1f} %, voice {later_ms(found, empty):.1f} ms later, {reports} reports")
        assert reports > 5 * END_S, ends
    # Today's rule with the reports of before, of which there are fewer; and a sender of before as with its own far end.
    assert both["today", "before"].used >= 0.85
    assert later_ms(both["today", "before"], empty) <= 150.0
    assert both["before", "today"].used > old.used - 0.05
