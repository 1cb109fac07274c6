# SPDX-License-Identifier: BSD-3-Clause
"""Links that nobody knows, made from seeds, and a tunnel between real gateways over them, in virtual time.

Voice and other traffic pass two gateways over an emulated link whose capacity and delay change by themselves, as those
of a satellite terminal do. The sender has `feedback` and knows no number. Voice is compared packet by packet with the
same link without other traffic. Links of the kind "slots" are those of bench/linkweir-rate with the same seed, so
that its rules can be compared.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from linkweir.lab import LaboratoryError, host, tunnel
from linkweir.lab.guest import Guest
from linkweir.lab.world import ZERO_NS
from linkweir.scenarios.scenario import as_scenario

LEVEL_S = 15.0
"""A new capacity and a new delay come so often."""
RIPPLE_S = 0.5
"""So often the capacity varies around its level."""
LEVELS_MBIT = (3.5, 16.0)
DELAYS_MS = (18.0, 45.0)
BACK_MS = 25.0
QUEUE_PKTS = 100
"""Packets that may wait in the link itself."""
AFTER_S = 60
"""The link goes on for so long after the run, because it begins before it."""
VOICE_NS = 10_000_000
"""Time between two packets of voice."""
VOICE = {"name": "ef", "class": "ef", "kind": "cbr", "rate": "160kbit", "packet": "200B"}
DOWNLOADS = tuple({"name": f"tcp{n}", "class": "rest", "kind": "tcp", "cc": "cubic"} for n in range(4))
ABOVE = ({"name": "load", "class": "rest", "kind": "cbr", "rate": "24Mbit", "packet": "1400B"},)
"""Constant load above every link."""
AFTER_CHANGE_S = 2.0
"""So long after a change of the level voice counts as after it."""
TODAY, BEFORE = "linkweir-gateway", "gateway-before"
"""Names of the programs of this version and of one before the present rule of feedback."""
NUMBERS = {
    TODAY: "feedback = true",
    BEFORE: 'rate = "10Mbit"\nstale = "10s"\nfloor = "1Mbit"\nfeedback = { ceiling = "40Mbit" }',
}
"""What a sender of each version is told: in `[link]`, and of its peer. The one before needs numbers."""
ANTICIPATES = "feedback = { anticipate = true }"
_CAME = np.dtype([("flow", "<u4"), ("bytes", "<u4"), ("sent_ns", "<u8"), ("came_ns", "<u8")])


@dataclass(frozen=True)
class Kind:
    """A kind of link, and what it is loaded with.

    Attributes:
        ripple: by what part of its level the capacity varies every 0.5 s, evenly distributed.
        jitter_ms: greatest additional delay of a packet.
        loss: probability that a packet is lost behind the queue.
        load: flows besides voice.
        least_used: part of the capacity that must be used.
        most_later_ms: how much longer voice may take at the 99th percentile.
        most_other_ms: the same for voice at times other than the 2 s after a change of the level.
        slots: levels change at times that the seed gives, and each change interrupts the link for 50 to 150 ms.
        anticipate: the sender anticipates falls of the capacity.
    """

    ripple: float
    jitter_ms: float
    loss: float
    load: tuple[Mapping[str, str], ...]
    least_used: float
    most_later_ms: float
    most_other_ms: float = float("inf")
    slots: bool = False
    anticipate: bool = False


KINDS = {
    "a": Kind(0.0, 0.0, 0.0, DOWNLOADS, 0.92, 20.0),
    "b": Kind(0.17, 0.0, 0.0, DOWNLOADS, 0.85, 50.0),
    "c": Kind(0.17, 15.0, 0.01, ABOVE, 0.82, 60.0),
    "slots": Kind(0.17, 0.0, 0.0, DOWNLOADS, 0.90, float("inf"), 20.0, slots=True, anticipate=True),
}


@dataclass(frozen=True)
class Steps:
    """A link over time: from when on each value holds, s; capacities in bit/s, delays in ms."""

    capacity: list[tuple[float, int]]
    delay: list[tuple[float, float]]

    def bits(self, from_s: float, to_s: float) -> float:
        """What the link carries between two times."""
        ends = [*(at_s for at_s, _ in self.capacity[1:]), float("inf")]
        return sum(
            bps * max(0.0, min(end_s, to_s) - max(at_s, from_s))
            for (at_s, bps), end_s in zip(self.capacity, ends, strict=True)
        )


def steps_of(kind: Kind, seed: int, end_s: float) -> Steps:
    """The link of this kind that the seed gives: every 15 s a level and a delay.

    Kinds of one seed share them, but for "slots", whose links have 600 s, after which nothing changes.
    """
    if kind.slots:
        return _with_slots(seed)
    levels, ripples = random.Random(f"levels {seed}"), random.Random(f"ripples {seed}")
    capacity, delay = [], []
    for level in range(round(end_s / LEVEL_S)):
        from_s = level * LEVEL_S
        level_mbit = levels.uniform(*LEVELS_MBIT)
        delay.append((from_s, levels.uniform(*DELAYS_MS)))
        for step in range(round(LEVEL_S / RIPPLE_S) if kind.ripple else 1):
            part = 1 + kind.ripple * ripples.uniform(-1, 1)
            capacity.append((from_s + step * RIPPLE_S, round(1e6 * level_mbit * part)))
    return Steps(capacity, delay)


def linkweir_rate(*arguments: str) -> list[str]:
    """The lines that bench/linkweir-rate prints."""
    command = ["cargo", "run", "--locked", "--release", "--quiet", "-p", "linkweir-rate", *arguments]
    root = Path(__file__).resolve().parents[2]
    # It fails where `feedback` misses an aim, which is no matter here.
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise LaboratoryError(f"linkweir-rate {' '.join(arguments)} printed nothing: exit code {done.returncode}")
    return done.stdout.splitlines()


@lru_cache
def _with_slots(seed: int) -> Steps:
    line = linkweir_rate(str(seed), "slots", "steps")[-1]
    steps = [(from_ns / 1e9, bps, delay_ns / 1e6) for from_ns, bps, delay_ns in json.loads(line)]
    capacity = [(at_s, round(bps)) for at_s, bps, _ in steps]
    delay = [(at_s, ms) for n, (at_s, _, ms) in enumerate(steps) if n == 0 or steps[n - 1][2] != ms]
    return Steps(capacity, delay)


def of_autorate(seeds: int) -> list[float]:
    """How much longer voice takes under a model of cake-autorate's rule, over the links with slots of so many seeds.

    At the 99th percentile, in the 2 s after changes, ms.
    """
    rows = linkweir_rate(str(seeds), "slots", "autorate")[2:]
    if len(rows) != seeds:
        raise LaboratoryError(f"linkweir-rate printed {len(rows)} links of {seeds}")
    return [float(row.split("|")[5]) for row in rows]


@dataclass(frozen=True)
class Outcome:
    """A run.

    Attributes:
        used: the part of the link's capacity that carried packets.
        took_ms: how long each packet of voice took, by its number.
        dropped_pkts: packets for which the link's own queue had no room.
        feedback: what the sender's gateway showed of it at the end.
        changes_s: when the level of the link changed, after the first packet of voice.
    """

    used: float
    took_ms: Mapping[int, float]
    dropped_pkts: int
    feedback: Mapping[str, object]
    changes_s: list[float]


def run(made: Guest, kind: Kind, seed: int, seconds: int, ends: tuple[str, str] = (TODAY, TODAY)) -> Outcome:
    """Runs the tunnel over the link of a seed; `ends` are the programs of the sender and the receiver."""
    scenario = as_scenario(
        {
            "duration": f"{seconds}s",
            "interval": "1s",
            "link": {"rate": "16Mbit", "delay": "30ms", "return_delay": f"{BACK_MS}ms"},
            "scheduler": {"policy": "strict"},
            "class": [{"name": "ef", "level": 0, "limit": "100p"}, {"name": "rest", "level": 1, "limit": "200p"}],
            "flow": [VOICE, *kind.load],
            "seed": seed,
        }
    )
    job = dict(tunnel.tunnel(scenario).job)
    steps = steps_of(kind, seed, seconds + AFTER_S)
    job["link.toml"] = _emulated(job["link.toml"].decode(), kind, steps).encode()
    head, rest = job["sender.toml"].decode().split("[link]\n")
    told = ANTICIPATES if kind.anticipate else NUMBERS[ends[0]]
    job["sender.toml"] = f"{head}[link]\n[scheduler]{rest.split('[scheduler]')[1]}{told}\n".encode()
    job["receiver.toml"] += b"report = true\n"
    script = job["run"].decode()
    for end, program in zip(("sender", "receiver"), ends, strict=True):
        script, found = re.subn(rf"(exec {end} (?:\$\w+ )*){TODAY} up", rf"\g<1>{program} up", script)
        if found != 1:
            raise ValueError(f"the job starts the {end} in another way: {script}")
    job["run"] = script.encode()
    return _outcome(host.start(made, job, seed), steps, seconds)


def without_load(kind: Kind) -> Kind:
    """The same link with voice alone."""
    return replace(kind, load=())


def _emulated(text: str, kind: Kind, steps: Steps) -> str:
    """The emulator's file with the link of the seed towards the receiver."""
    rates = json.dumps([[f"{round(1e9 * at)}ns", f"{bps}bit"] for at, bps in steps.capacity])
    delays = json.dumps([[f"{round(1e9 * at)}ns", f"{round(1e3 * ms)}us"] for at, ms in steps.delay])
    there = f"rate = {{ steps = {rates} }}\ndelay = {{ steps = {delays} }}\n"
    there += f'limit = "{QUEUE_PKTS}p"\njitter = "{kind.jitter_ms:g}ms"\nloss = {kind.loss}\n'
    head, rest = text.split("[a_to_b]\n")
    return f"{head}[a_to_b]\n{there}\n[b_to_a]\n{rest.split('[b_to_a]')[1]}"


def _answers(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        answer, at = decoder.raw_decode(text)
        yield answer
        text = text[at:]


def _outcome(files: Mapping[str, bytes], steps: Steps, seconds: int) -> Outcome:
    """Reads what a run left."""
    answers = list(_answers(files["counters"].decode()))
    sent = [sum(entry["sent_bytes"] for entry in answer["peers"][0]["classes"]) for answer in answers]
    emulator = json.loads(files["emulator"])
    # The gateway is asked at each second; the emulator's clock began before that.
    offset_s = ZERO_NS / 1e9 - emulator["began_ns"] / 1e9
    there = emulator["directions"][0]
    kept = 1 - there["dropped_limit_pkts"] / there["arrived_pkts"]
    packets = np.frombuffer(files["datagrams"], _CAME)
    voice = packets[packets["flow"] == 0]
    # Datagrams leave up to some microseconds after their time.
    numbers = np.round(voice["sent_ns"] / VOICE_NS).astype(np.int64)
    took_ms = (voice["came_ns"].astype(np.int64) - voice["sent_ns"].astype(np.int64)) / 1e6
    used = 8 * kept * (sent[seconds] - sent[0]) / steps.bits(offset_s, offset_s + seconds)
    by_number = dict(zip(numbers.tolist(), took_ms.tolist(), strict=True))
    changes_s = [at_s - offset_s for at_s, _ in steps.delay[1:]]
    return Outcome(used, by_number, there["dropped_limit_pkts"], answers[-1]["peers"][0]["feedback"], changes_s)


@dataclass(frozen=True)
class Later:
    """How much longer voice took than without other traffic, packet by packet: the 99th percentile, ms.

    Attributes:
        all: of all packets.
        after: of those sent in the 2 s after a change of the link's level.
        other: of all others.
    """

    all: float
    after: float
    other: float


def later_ms(loaded: Outcome, empty: Outcome) -> Later:
    """Compares a run with the same link without load."""
    numbers = np.array(sorted(loaded.took_ms.keys() & empty.took_ms.keys()))
    longer = np.array([loaded.took_ms[number] - empty.took_ms[number] for number in numbers])
    sent_s = numbers * VOICE_NS / 1e9
    begun = np.searchsorted(loaded.changes_s, sent_s, side="right")
    changes_s = np.array([-np.inf, *loaded.changes_s])
    after = sent_s - changes_s[begun] < AFTER_CHANGE_S
    return Later(*(float(np.quantile(part, 0.99)) for part in (longer, longer[after], longer[~after])))
