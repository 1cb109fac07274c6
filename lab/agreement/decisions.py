#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the decisions of all places, packet by packet, for four policies.

    python lab/agreement/decisions.py [--departures N] [--place NAME]... [--policy NAME]... [--into FILE]

Three classes of constant rates offer 1.15 times a constant capacity. Each place records the calls of its policy with
their times and answers: the simulator and the gateway themselves, the disc of ns-3 (attribute Record), the qdisc by its
tracepoints, the BPF discipline in a map (bpf/, LW_RECORD). Then

* the core (core/tests/replay.c) is given the same calls and must decide the same at every departure;
* the order of departures is compared with the simulator's, and what differs is counted by cause. The simulator gets the
  arrival times of the place: its packets arrive as much later or earlier than departures as they do there.

No packet arrives when another leaves, in any place with an exact clock: see `scenario`. Recordings are stored, so an
interrupted comparison continues where it was. Exit code 0: the core decided the same everywhere, and at least 99.9 %
of the positions agree; or 3.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "kernel/tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import bpf_guest
import ns3_programs
import page
import trace_vectors
from places import available
from stored import OUTSIDE, Processors

from linkweir import _native
from linkweir.directories.provenance import write_whole
from linkweir.lab import guest, host, kernel
from linkweir.lab.gateways import VirtualGateways
from linkweir.lab.world import world
from linkweir.reproduce.orders import Agreement, Departure, Timing, Urgency, compare_orders, later_ns, read_departures
from linkweir.scenarios.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
POLICIES = ("pss", "pds", "drr", "pf")
LINK_BPS = 20_000_000
PACKET_BYTES = 1000
LEAST_PART = 0.999
"""Of the positions that must agree."""
BPF_DEPARTURES = 20_000
"""Emulation with a clock that counts instructions takes minutes for them."""
BEGIN, END = "<!-- decisions -->", "<!-- end of decisions -->"

OWN_KEYS: Mapping[str, tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]] = {
    "pss": ({}, ({"level": 0}, {"level": 1, "low_level": 3, "rate": "6Mbit"}, {"level": 2})),
    "pds": ({"limit": "80p"}, ({"delay": 4, "loss": 1}, {"delay": 2, "loss": 2}, {"delay": 1, "loss": 4})),
    "drr": ({}, ({"quantum": "1500B"}, {"quantum": "3000B"}, {"quantum": "2000B"})),
    "pf": ({}, ({"weight": 1}, {"weight": 2}, {"weight": 3})),
}
"""Keys of the scheduler and of each class."""


URGENCIES: Mapping[str, Urgency] = {
    "pds": lambda queue, wait_ns: float(OWN_KEYS["pds"][1][queue]["delay"] * wait_ns),
}
"""Of policies that go by waits."""
REMEMBER = ("pss", "pf")
"""Policies that remember when packets left: in a credit, or in a mean."""


def scenario(policy: str, departures: int, later_ns: int = 0) -> Scenario:
    """Three classes of constant rates.

    A first packet at 0 begins a busy period, so packets leave at multiples of 400 us. Others arrive every 1.6, 0.8 and
    1 ms, whose common divisor with 400 us is 200 us, from 53, 119 and 171 us on: never within 29 us of a departure.

    Args:
        policy: of the three classes.
        departures: how many packets leave.
        later_ns: all but the first packet arrive so much later.
    """
    scheduler, rows = OWN_KEYS[policy]
    flows = [
        (name, rate, f"{start_ns + later_ns}ns")
        for name, rate, start_ns in (("a", "5Mbit", 53_000), ("b", "10Mbit", 119_000), ("c", "8Mbit", 171_000))
    ]
    lasts_s = departures * 8 * PACKET_BYTES / LINK_BPS
    cbr = {"kind": "cbr", "packet": f"{PACKET_BYTES}B"}
    return Scenario.from_dict(
        {
            "name": f"decisions of {policy}",
            "duration": f"{lasts_s:.6f}s",
            "interval": f"{max(lasts_s / 100, 1.0):.6f}s",
            "link": {"rate": f"{LINK_BPS}bit"},
            "scheduler": {"policy": policy, **scheduler},
            "class": [{"name": name, "limit": "50p", **row} for name, row in zip("abc", rows, strict=True)],
            "flow": [
                {"name": "first", "class": "a", "rate": "8Mbit", "stop": "500us", **cbr},
                *({"name": name, "class": name, "rate": rate, "start": start, **cbr} for name, rate, start in flows),
            ],
        }
    )


# --- Recording ------------------------------------------------------------------------------------------------------


EXACT = Timing()


@dataclass(frozen=True)
class Recorder:
    """Where decisions are recorded.

    Attributes:
        name: in tables.
        record: writes the calls of a policy into a file, on a processor.
        identity: of everything that the place is made of, by policy.
        timing: what of the place can change an order.
        most: departures of a policy that are recorded, as many as take minutes there.
    """

    name: str
    record: Callable[[str, Scenario, Path, int], None]
    identity: Callable[[str], str]
    timing: Timing = EXACT
    most: int = sys.maxsize


def simulator() -> Recorder:
    """The simulator records its own calls."""

    def record(_policy: str, whole: Scenario, path: Path, _processor: int) -> None:
        _native.run(whole.native, lambda _table, _columns: None, calls=path)

    return Recorder(page.SIMULATOR, record, lambda _policy: f"simulator {_native.sources}")


def in_ns3(departures: int) -> Recorder | None:
    """Discs of ns-3 do, too."""
    exported = {f"decisions-{policy}": scenario(policy, departures) for policy in POLICIES}
    ns3 = ns3_programs.build(exported, examples=False)
    if ns3 is None:
        return None

    def record(policy: str, _whole: Scenario, path: Path, _processor: int) -> None:
        ns3.run([f"decisions-{policy}", f"--record={path}"])

    return Recorder(page.NS3, record, lambda policy: f"ns-3 {ns3.identities[f'decisions-{policy}']}")


def gateway() -> Recorder:
    """A gateway in virtual time, with LINKWEIR_CALLS."""
    gateways = VirtualGateways(below=None, calls=True, sent_when_due=True)

    def record(_policy: str, whole: Scenario, path: Path, processor: int) -> None:
        path.write_bytes(gzip.decompress(gateways.files(whole, processor)["calls.gz"]))

    return Recorder(page.VIRTUAL, record, lambda _policy: gateways.identity)


# dd reads and writes; cat would call sendfile, by which text of trace_pipe is lost. It is stopped most of the time,
# because it would wake up at each event. The events of 2 s take a tenth of the buffer, and 1 ms is enough to read them
# all, because programs take no virtual time.
TRACE_FIRST = """\
mount -t tracefs tracefs /sys/kernel/tracing
echo 32000 >/sys/kernel/tracing/buffer_size_kb
echo nocontext-info >/sys/kernel/tracing/trace_options
mkfifo /tmp/events
gzip -1 </tmp/events >/out/trace.gz & packing=$!
dd bs=64k if=/sys/kernel/tracing/trace_pipe of=/tmp/events & reading=$!
while sleep 2; do kill -CONT $reading; sleep 0.001; kill -STOP $reading; done & pausing=$!
echo 1 >/sys/kernel/tracing/events/linkweir/enable
"""
TRACE_LAST = """\
echo 0 >/sys/kernel/tracing/events/linkweir/enable
kill $pausing
kill -CONT $reading
sleep 1
kill $reading
wait $packing
"""


def qdisc(say: Callable[[str], None]) -> Recorder:
    """A qdisc, by its tracepoints, in a kernel that has them. Its module has the core's drr in place of Linux's."""
    made = guest.prepare(kernel.build("traced", say=say), kinds=POLICIES, sent_when_due=True)
    choices = _choices()

    def record(_policy: str, whole: Scenario, path: Path, processor: int) -> None:
        job = world(whole, made.kinds).job
        run = TRACE_FIRST.encode() + job["run"] + TRACE_LAST.encode()
        files = host.start(made, {**job, "run": run}, whole.seed, processor=processor)
        (vector,) = trace_vectors.vectors(gzip.decompress(files["trace.gz"]).decode(), choices)
        path.write_text(vector)

    return Recorder(page.QDISC, record, lambda _policy: made.identity)


def bpf() -> Recorder:
    """BPF disciplines on Debian's kernel in QEMU, whose clock counts instructions. They pace packets themselves."""
    made = bpf_guest.prepare(POLICIES)

    def record(policy: str, whole: Scenario, path: Path, _processor: int) -> None:
        path.write_text(made.calls(policy, whole))

    return Recorder(page.BPF, record, lambda policy: made.identity(policy), most=BPF_DEPARTURES)


def _choices() -> trace_vectors.Choices:
    """The words of each parameter that is a choice, from the kernel suite's own program."""
    make = ["make", "--no-print-directory", "-s", "-C", str(ROOT / "kernel"), "build/bounds.txt"]  # writes both
    subprocess.run(make, check=True)
    return trace_vectors.read_choices(ROOT / "kernel/build/choices.txt")


# --- Comparing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """What was found in a place for a policy.

    Attributes:
        place, policy: which.
        departures: recorded.
        same: the core, given the same calls, decided the same at all of them.
        later_ns: how much later than in the simulator's own run packets arrive, counted from departures. Those of the
            simulation that it is compared with arrive as late.
        orders: compared with the simulator's; None for the simulator itself.
    """

    place: str
    policy: str
    departures: int
    same: bool
    later_ns: int
    orders: Agreement | None

    @property
    def kept(self) -> bool:
        """Whether both hold."""
        return self.same and (self.orders is None or self.orders.part >= LEAST_PART)


def replay_program(folder: Path) -> Path:
    """The core's checker of vectors."""
    core, program = ROOT / "core", folder / "replay"
    sources = [core / "tests/replay.c", *sorted((core / "src").glob("*.c"))]
    command = ["cc", "-std=gnu11", "-O2", f"-I{core / 'include'}", *map(str, sources), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def recorded(place: Recorder, policy: str, whole: Scenario, folder: Path, processor: int) -> Path:
    """The calls of a policy in a place, recorded unless they are there."""
    depends = hashlib.sha256(f"{place.identity(policy)} {whole.resolved}".encode()).hexdigest()[:16]
    path = folder / f"{place.name}-{policy}-{depends}.vec"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}.part")
        place.record(policy, whole, part, processor)
        part.replace(path)
    return path


def compared(
    recorders: Sequence[Recorder],
    policies: Sequence[str],
    departures: int,
    folder: Path,
    say: Callable[[str], None],
    jobs: int,
) -> list[Found]:
    """Records, replays and compares, some policies at the same time; the first recorder is the simulator."""
    replay = replay_program(folder)
    processors = Processors(jobs)

    def found_for(policy: str, processor: int) -> list[Found]:
        found = []
        reference: list[Departure] = []
        for place in recorders:
            began = time.monotonic()
            here = min(departures, place.most)
            path = recorded(place, policy, scenario(policy, here), folder, processor)
            done = subprocess.run([replay, path], capture_output=True, text=True, check=False)
            order = read_departures(path)
            same, orders, later = done.returncode == 0, None, 0
            if reference:
                later = later_ns(reference, order)
                aligned = reference
                if later:
                    made = recorded(recorders[0], policy, scenario(policy, departures, later), folder, processor)
                    aligned = read_departures(made)
                urgency, remembers = URGENCIES.get(policy), policy in REMEMBER
                # after the last of them no packets arrive at the place
                orders = compare_orders(aligned, order[:here], place.timing, urgency, remembers=remembers)
            else:
                reference = order
            found.append(Found(place.name, policy, len(order), same, later, orders))
            say(f"{place.name}, {policy}: {len(order)} departures, {time.monotonic() - began:.0f} s")
            if done.returncode:
                say(done.stderr.strip()[-2000:])
        return found

    def on_free_processor(policy: str) -> list[Found]:
        with processors.one() as processor:
            return found_for(policy, processor)

    with ThreadPoolExecutor(jobs) as pool:
        return [one for found in pool.map(on_free_processor, policies) for one in found]


def table(found: Sequence[Found]) -> str:
    """A line for each policy and place."""
    head = [
        "policy",
        "place",
        "departures",
        "the core decides the same",
        "arrivals later by",
        "positions",
        "as the simulator",
        "the others, by cause",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for one in found:
        orders = one.orders
        cells = [one.policy, one.place, f"{one.departures:,}", "at all" if one.same else "**no**"]
        if orders is None:
            cells += ["", "", "", ""]
        else:
            part = f"{100 * orders.part:.4f} %"
            causes = ", ".join(f"{cause} {count:,}" for cause, count in sorted(orders.differing.items()))
            later = f"{one.later_ns / 1e3:.3f} µs"
            cells += [later, f"{orders.positions:,}", part if one.kept else f"**{part}**", causes or "none"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """Records, compares and shows."""
    names = (page.NS3, page.VIRTUAL, page.QDISC, page.BPF)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--departures", type=int, default=1_000_000, metavar="N", help="of each policy in each place")
    parser.add_argument("--place", action="append", choices=names, help="only these and the simulator")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="only these")
    parser.add_argument(
        "--jobs",
        type=int,
        default=min(2, len(os.sched_getaffinity(0))),
        metavar="N",
        help="policies at a time; one may need 4 GB for a million departures",
    )
    parser.add_argument("--store", type=Path, default=ROOT / "runs/agreement/calls", metavar="DIR", help="recordings")
    parser.add_argument("--into", type=Path, metavar="FILE", help="replaces the marked part of this page")
    options = parser.parse_args()
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    options.store.mkdir(parents=True, exist_ok=True)
    makers: Mapping[str, Callable[[], Recorder | None]] = {
        page.NS3: lambda: in_ns3(options.departures),
        page.VIRTUAL: gateway,
        page.QDISC: lambda: qdisc(say),
        page.BPF: bpf,
    }
    wanted = [name for name in names if not options.place or name in options.place]
    recorders = [simulator(), *available({name: makers[name] for name in wanted}, say)]
    policies = options.policy or POLICIES
    found = compared(recorders, policies, options.departures, options.store, say, options.jobs)
    print(table(found))
    if options.into:
        today = time.strftime("%Y-%m-%d", time.gmtime())
        origin = f"Measured on {today}: commit {_native.commit}."
        before, rest = options.into.read_text().split(BEGIN)
        _, after = rest.split(END)
        write_whole(options.into, f"{before}{BEGIN}\n\n{origin}\n\n{table(found)}\n\n{END}{after}")
    return 0 if all(one.kept for one in found) else OUTSIDE


if __name__ == "__main__":
    sys.exit(main())
