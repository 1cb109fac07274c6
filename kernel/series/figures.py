# SPDX-License-Identifier: GPL-2.0-only
"""Runs fade.toml in the laboratory with pss, and with qdiscs that Linux has, and writes the cover letter's table.

    .venv/bin/python kernel/series/figures.py [--seeds N] [--out figures.txt] [QDISC...]

Named qdiscs replace their rows of the table; without names all are run.

The laboratory is a Linux kernel in virtual time with the kernel's own TCP. The device takes packets from its qdisc as
fast as the link carries them, so each qdisc sees a link that fades. All but fq_codel are told the capacity when it
changes, in the same instant:

    pss        class 2 has reserved 8 Mbit/s, with a memory of 15 s
    htb+ets    htb at the capacity; ets with voice strict, and quanta that divide 19 Mbit/s into 8 and 11
    cake       diffserv4 at the capacity; classes are the tins Voice, Video and Best Effort
    fq_codel   no classes
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import pyarrow as pa

from linkweir.lab.collect import Counted, Counters, tables, tc_counters
from linkweir.lab.experiment import Laboratory
from linkweir.lab.world import World
from linkweir.runs.result import Result
from linkweir.scenarios.scenario import Scenario

HERE = Path(__file__).parent
CLASSES = 3
FADE_S, RECOVERED_S = (20, 34), (20, 50)
"""The fade, and the time until the class with a reservation has been made good."""


@dataclass(frozen=True)
class Contender:
    """A qdisc at the place of pss.

    Attributes:
        lines: of tc, below the link's class 1:1.
        change: a line of tc for a new capacity in bit/s; None if it is not told.
        handles: of the three classes, which need not exist.
    """

    lines: tuple[str, ...]
    change: Callable[[str], str] | None
    handles: tuple[str, ...]


def _filters(parent: str, end: Callable[[int], str]) -> tuple[str, ...]:
    """Packets of class n carry the code point n."""
    return tuple(
        f"filter add dev r1 parent {parent} protocol ip prio 1 u32 match ip dsfield {n << 2:#x} 0xfc {end(n)}"
        for n in range(1, CLASSES + 1)
    )


NONE = ("ffff:1",) * CLASSES
"""Where the qdisc counts nothing by class."""
TINS = {1: 4, 2: 3, 3: 2}
"""Minor numbers of cake's tins Voice, Video and Best Effort in diffserv4."""

CONTENDERS = {
    "pss": None,
    "htb+ets": Contender(
        (
            "qdisc add dev r1 parent 1:1 handle 10: htb default 1",
            "class add dev r1 parent 10: classid 10:1 htb rate 20mbit burst 3k cburst 3k",
            "qdisc add dev r1 parent 10:1 handle 20: ets bands 3 strict 1 quanta 8000 11000",
            *(f"qdisc add dev r1 parent 20:{n} pfifo limit {1000 if n == 1 else 200}" for n in range(1, CLASSES + 1)),
            *_filters("20:", lambda n: f"flowid 20:{n}"),
        ),
        lambda bps: f"class change dev r1 parent 10: classid 10:1 htb rate {bps} burst 3k cburst 3k",
        ("20:1", "20:2", "20:3"),
    ),
    "cake": Contender(
        (
            "qdisc add dev r1 parent 1:1 handle 10: cake bandwidth 20mbit diffserv4 raw",
            *_filters("10:", lambda n: f"flowid 10:0 action skbedit priority 10:{TINS[n]}"),
        ),
        lambda bps: f"qdisc change dev r1 parent 1:1 handle 10: cake bandwidth {bps}",
        NONE,
    ),
    "fq_codel": Contender(("qdisc add dev r1 parent 1:1 handle 10: fq_codel",), None, NONE),
}


def sent_only(world: World, text: bytes) -> Counted:
    """Counters without what waits and was dropped, which not every qdisc counts by class; only flows are shown here."""
    link, classes, stats = tc_counters(world, text)
    return link, [[Counters(one.sent_pkts, one.sent_bytes) for one in row] for row in classes], stats


class Beside(Laboratory):
    """A laboratory whose scenarios have another qdisc at the place of pss."""

    def __init__(self, contender: Contender | None) -> None:
        super().__init__()
        self._contender = contender

    def _made(self, scenario: Scenario) -> World:
        made = super()._made(scenario)
        if self._contender is None:
            return made
        script, found = re.subn(
            r"^tc -n router qdisc add dev r1 parent 1:1 handle 10: pss .*$",
            "\n".join(f"tc -n router {line}" for line in self._contender.lines),
            made.job["run"].decode(),
            flags=re.MULTILINE,
        )
        changes = [self._changed(line) for line in made.job["changes"].decode().splitlines()]
        if found != 1 or not any(changes):
            raise ValueError("the laboratory sets pss otherwise than expected")
        job = {**made.job, "run": script.encode(), "changes": "".join(filter(None, changes)).encode()}
        return replace(made, job=job, handles=self._contender.handles)

    def _tables(self, made: World, files: Mapping[str, bytes]) -> dict[str, pa.Table]:
        return super()._tables(made, files) if self._contender is None else tables(made, files, sent_only)

    def _changed(self, line: str) -> str | None:
        """A line of the job for tc: its time, and what is changed or shown."""
        at_ns, command = line.split(" ", 1)
        report = re.fullmatch(r"qdisc change dev r1 parent 1:1 handle 10: pss link (\w+)", command)
        if not report:
            return f"{line}\n"
        assert self._contender is not None
        return f"{at_ns} {self._contender.change(report[1])}\n" if self._contender.change else None


def rate_mbps(result: Result, name: str, from_s: float, to_s: float) -> float:
    """Goodput of the flows of a class within a time."""
    rows = result.flow_series.to_pylist()
    inside = [row for row in rows if row["class"] == name and from_s <= row["t_s"] < to_s]
    return sum(row["goodput_bps"] for row in inside) / (to_s - from_s) / 1e6


def figures(results: list[Result]) -> list[str]:
    """The columns of a qdisc, means over the seeds; of the delays the largest of any call."""
    voice = [row for result in results for row in result.flows.to_pylist() if row["class"] == "voice"]
    lost = sum(row["arrived_pkts"] - row["delivered_pkts"] for row in voice) / sum(row["arrived_pkts"] for row in voice)
    spans = [("reserved", 5, 20), ("reserved", *FADE_S), ("reserved", *RECOVERED_S), ("other", 5, 60)]
    rates = [mean(rate_mbps(result, name, from_s, to_s) for result in results) for name, from_s, to_s in spans]
    return [
        f"{1e3 * max(row['delay_p99_s'] for row in voice):.1f}",
        f"{1e3 * max(row['delay_max_s'] for row in voice):.1f}",
        f"{100 * lost:.2f}",
        *(f"{rate:.2f}" for rate in rates),
    ]


HEAD = ["qdisc", "p99 ms", "max ms", "lost %", "before", "fade", "30 s", "other"]


def kept(path: Path, seeds: int) -> dict[str, list[str]]:
    """The rows of a table of as many seeds."""
    text = path.read_text() if path.exists() else ""
    if not text.endswith(f"seeds: {seeds}\n"):
        return {}
    return {words[0]: words[1:] for words in map(str.split, text.splitlines()) if words and words[0] in CONTENDERS}


def table(rows: dict[str, list[str]], seeds: int) -> str:
    lines = [HEAD, *([name, *rows[name]] for name in CONTENDERS if name in rows)]
    return (
        "".join("  " + f"{line[0]:<9}" + "".join(f"{word:>9}" for word in line[1:]) + "\n" for line in lines)
        + f"  seeds: {seeds}\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="writes the figures of the cover letter")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "figures.txt")
    parser.add_argument("only", nargs="*", help="qdiscs; all unless named")
    options = parser.parse_args()
    rows = kept(options.out, options.seeds)
    for name in options.only or CONTENDERS:
        laboratory = Beside(CONTENDERS[name])
        scenarios = [Scenario.load(HERE / "fade.toml", seed=seed) for seed in range(1, options.seeds + 1)]
        rows[name] = figures(laboratory.run_many(scenarios, jobs=1))
        options.out.write_text(table(rows, options.seeds))
    print(options.out.read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
