# SPDX-License-Identifier: BSD-3-Clause
"""Compares what `linkweir import` reads of tc with what the kernel does.

    python lab/imported/compare.py [COUNT [FIRST]] [--kernel fast|classifiers] [--out FILE]

Random configurations are set up with tc in a kernel in virtual time. Packets are sent, and the kernel's counters say
which class each came to. Then linkweir imports what tc showed, and exports the scenario; the script is run in the
kernel, the same packets are sent, and what tc shows is imported again. For each packet the program compares

* the kernel's class with that of the naive reading in configurations.py;
* the kernel's class under the exported script with that of the naive reading without what the import named as left out;
* the scenario of the second import with the first.

A disagreement ends it with exit code 1.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from configurations import DEVICE, Configuration, Packet, configuration, probes

from linkweir.deploy.found import Found
from linkweir.deploy.from_tc import from_tc
from linkweir.deploy.imported import imported
from linkweir.deploy.script import tc_scripts
from linkweir.fault import ScenarioError
from linkweir.lab import guest, host, kernel
from linkweir.scenarios.scenario import Scenario
from linkweir.scratch import scratch

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
PROBES = 80
BATCH = 50
"""Configurations in one start of the kernel."""
ONCE_WRONG = (60, 107, 252, 427, 581, 714, 750, 820, 922)
"""Configurations of which an import was wrong, or differed from that of its export; they are always stored."""
_EMATCHES = "1\tcmp\n2\tnbyte\n3\tu32\n4\tmeta\n"
_RUN = f"""
mkdir -p /etc/iproute2 && cp /job/ematch_map /etc/iproute2/
ip link add {DEVICE} type dummy
ip link set {DEVICE} up
for number in $(cat /job/numbers); do
	# one tc for all commands of the script
	(tc() {{ echo "$*"; }}; . /job/$number.up) >/tmp/batch 2>/out/$number.log
	tc -batch /tmp/batch >>/out/$number.log 2>&1 || echo "failed" >>/out/$number.log
	sh /job/$number.show >/out/$number.shown 2>>/out/$number.log
	/job/probe {DEVICE} /job/$number.packets >/out/$number.classes 2>>/out/$number.log
	tc qdisc del dev {DEVICE} root 2>/dev/null
done
exit 0
"""


@dataclass
class Answer:
    """What the kernel did with a configuration.

    Attributes:
        shown: the output of tc.
        places: of each packet, the class at whose end it waits, `direct` or `dropped` where there is none.
        log: errors of tc.
    """

    shown: str
    places: list[str]
    log: str


@dataclass
class Tally:
    """What came out."""

    packets: int = 0
    named: collections.Counter[str] = field(default_factory=collections.Counter)
    shapes: collections.Counter[str] = field(default_factory=collections.Counter)
    refused: collections.Counter[str] = field(default_factory=collections.Counter)
    moved: int = 0
    faults: list[str] = field(default_factory=list)


def ask(made: guest.Guest, scripts: dict[int, tuple[str, str, list[Packet]]]) -> dict[int, Answer]:
    """Sets up configurations in a kernel, one after the other: script, commands that show it, packets, by number."""
    with scratch() as folder:
        probe = folder / "probe"
        options = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-static"]
        subprocess.run(["gcc", *options, str(HERE / "probe.c"), "-o", str(probe)], check=True)
        job = {"run": _RUN.encode(), "probe": probe.read_bytes(), "ematch_map": _EMATCHES.encode()}
    job["numbers"] = "\n".join(map(str, scripts)).encode()
    for number, (up, show, packets) in scripts.items():
        lines = "".join(f"0 {packet.priority} {packet.frame().hex()}\n" for packet in packets)
        job |= {f"{number}.up": up.encode(), f"{number}.show": show.encode(), f"{number}.packets": lines.encode()}
    files = host.start(made, job, 1)
    found = {}
    for number in scripts:
        shown, grown, log = (files[f"{number}.{name}"].decode() for name in ("shown", "classes", "log"))
        said = "".join(f"{line}\n" for line in log.splitlines() if line and not line.startswith("Warning: "))
        ends = [_end([] if line == "-" else line.split(), shown) for line in grown.splitlines()]
        found[number] = Answer(shown, ends, said)
    return found


def _end(grown: list[str], shown: str) -> str:
    """Of the classes that counted a packet, the one that has no other of them below it."""
    parents = dict(re.findall(r"^class htb (\S+) parent (\S+)", shown, re.MULTILINE))
    heads = dict(re.findall(r'"handle":"([^"]+)","parent":"([^"]+)"', shown))

    def above(handle: str) -> str:
        return parents.get(handle) or heads.get(f"{handle.partition(':')[0]}:", "")

    uppers = {above(handle) for handle in grown}
    ends = [handle for handle in grown if handle not in uppers and handle not in parents.values()]
    # what a queueing discipline with classes drops is counted by the class above it only
    sharing = set(re.findall(r'"kind":"(?:prio|ets|drr|pss)","handle":"[^"]+","parent":"([^"]+)"', shown))
    if not ends or ends[0] in sharing:
        return "dropped"
    return ends[0] if len(ends) == 1 else f"several: {ends}"


_NOTE = re.compile(r"filter parent (\S+) pref (\d+) (\w+)(?: handle (\S+))?: (.*)")


@dataclass
class Named:
    """What an import named: filters that do not count, changes of others, and packets whose class it does not keep."""

    removed: frozenset[int]
    changes: dict[int, frozenset[str]]
    main: str | None
    drops: bool


def named(made: Configuration, found: Found) -> Named:
    """What the notes of an import say, in terms of the configuration."""
    removed, changes, main, drops = set(), {}, None, False
    for note in found.notes:
        match = _NOTE.match(note)
        if match is None:
            main = (
                re.sub(r".*they come to (\S+): left out", r"\1", note) if "packets without a filter" in note else main
            )
            drops |= "drops packets that no filter" in note
            continue
        parent, pref, kind, handle, why = match.groups()
        group = [
            n for n, one in enumerate(made.filters) if (one.parent, one.pref, one.kind) == (parent, int(pref), kind)
        ]
        index = (
            0
            if handle is None or kind in ("basic", "matchall", "fw")
            else (int(handle) - 1 if kind == "flower" else int(handle.rpartition(":")[2], 16) - 0x800)
        )
        number = group[index]
        if "ECN bits, too" in why:
            changes[number] = changes.get(number, frozenset()) | {"ecn"}
        elif "its rule only those of tcp" in why:
            changes[number] = changes.get(number, frozenset()) | {"ports"}
        elif why.endswith("left out"):
            removed.add(number)
        else:
            raise AssertionError(note)
    return Named(frozenset(removed), changes, main, drops)


def scenario_of(shown: str) -> Scenario:
    """The scenario of what tc showed, with a flow, and with limits that all policies of Linux have."""
    keys: dict[str, Any] = tomllib.loads(imported(shown).text)
    for entry in keys["class"]:
        entry.pop("limit_bytes", None)
        entry.pop("flows", None)
        if keys["scheduler"]["policy"] == "fq_codel":
            entry["limit"] = keys["scheduler"].get("limit", "10240p")
    flow = {"class": keys["class"][0]["name"], "kind": "cbr", "rate": "1Mbit", "packet": "200B"}
    return Scenario.from_dict({"duration": "1s", **keys, "flow": [flow]})


def compare(made: guest.Guest, numbers: range, extras: bool, tally: Tally) -> None:
    """Compares the configurations of some seeds."""
    batch = {number: configuration(number, extras) for number in numbers}
    packets = {number: probes(random.Random(number), PROBES) for number in numbers}
    first = ask(made, {n: (_up(one.lines()), _up(one.shows()), packets[n]) for n, one in batch.items()})
    scenarios: dict[int, tuple[Found, Scenario]] = {}
    again: dict[int, tuple[str, str, list[Packet]]] = {}
    for number, one in batch.items():
        answer = first[number]
        tally.shapes[one.shape] += 1
        tally.packets += len(packets[number])
        if answer.log:
            tally.faults.append(f"{number}: {answer.log}")
            continue
        if one.shape not in ("cake", "mq"):
            _check_reading(number, one, packets[number], answer, tally)
        try:
            found, scenario = from_tc(answer.shown), scenario_of(answer.shown)
            up = tc_scripts(scenario, DEVICE).up
        except Exception as error:
            tally.refused[_kind(str(error))] += 1
            if one.shape not in ("sqm", "cake", "mq") or not isinstance(error, ScenarioError):
                tally.faults.append(f"{number}: refused: {error!r}")
            continue
        for note in found.notes:
            tally.named[_kind(note)] += 1
        if found.scheduler["policy"] not in ("fq_codel", "fifo"):
            scenarios[number] = (found, scenario)
            again[number] = (up, _up(_shows_of(up)), packets[number])
    second = ask(made, again)
    for number, (found, scenario) in scenarios.items():
        _check_export(number, batch[number], packets[number], found, scenario, second[number], tally)


def _up(lines: list[str]) -> str:
    return "set -e\n" + "".join(f"tc {line}\n" for line in lines)


def _shows_of(up: str) -> list[str]:
    nested = re.findall(rf"qdisc add dev {DEVICE} parent \S+ handle (\S+) (?:prio|drr|pss|ets)", up)
    shows = [f"-d -j qdisc show dev {DEVICE}", f"-d class show dev {DEVICE}", f"-j filter show dev {DEVICE}"]
    return shows + [f"-j filter show dev {DEVICE} parent {handle}" for handle in nested]


def _kind(text: str) -> str:
    """A message without the numbers that differ between configurations."""
    return re.sub(r"\b[0-9a-f]*\d[0-9a-f:.]*\b:?|Mbit|Kbit", "N", text)[:110]


def _check_reading(number: int, one: Configuration, packets: list[Packet], answer: Answer, tally: Tally) -> None:
    for packet, place in zip(packets, answer.places, strict=True):
        wanted = one.place(packet)
        if place != ("dropped" if wanted == "direct" else wanted):
            tally.faults.append(f"{number}: the kernel has {packet} in {place}, the naive reading in {wanted}")
            return


def _check_export(
    number: int,
    one: Configuration,
    packets: list[Packet],
    found: Found,
    scenario: Scenario,
    answer: Answer,
    tally: Tally,
) -> None:
    if answer.log:
        tally.faults.append(f"{number}: exported: {answer.log}")
        return
    try:
        back, said = from_tc(answer.shown), named(one, found)
        same = _rules(scenario_of(answer.shown))
    except (ScenarioError, AssertionError, IndexError) as error:
        tally.faults.append(f"{number}: {error!r}")
        return
    if same != _rules(scenario):
        tally.faults.append(f"{number}: imported again: {same}, before {_rules(scenario)}")
    left = [note for note in back.notes if "left out" in note]
    if left:
        tally.faults.append(f"{number}: an export needs no notes: {left}")
    for packet, place in zip(packets, answer.places, strict=True):
        wanted = one.place(packet, said.removed, said.changes, said.main)
        if wanted == "dropped" and said.drops:
            tally.moved += 1
            continue
        if (
            place not in back.places
            or wanted not in found.places
            or back.places.index(place) != found.places.index(wanted)
        ):
            tally.faults.append(
                f"{number}: {packet} comes to {place}, and should to what {wanted} became; {found.notes}"
            )
            return
        tally.moved += wanted != one.place(packet)


def _rules(scenario: Scenario) -> list[Any]:
    keys = tomllib.loads(scenario.resolved)
    return [{key: entry.get(key) for key in ("match", "level", "quantum")} for entry in keys["class"]]


def store(made: guest.Guest, count: int, into: Path) -> None:
    """Stores what tc shows of configurations with filters, and the kernel's classes, for machines without a kernel."""
    without = ("cake", "mq", "sqm", "leaf")
    chosen = [n for n in range(10 * count) if configuration(n, True).shape not in without][:count]
    chosen += [n for n in ONCE_WRONG if n not in chosen]
    batch = {n: configuration(n, True) for n in chosen}
    packets = {n: probes(random.Random(n), PROBES) for n in chosen}
    answers = ask(made, {n: (_up(one.lines()), _up(one.shows()), packets[n]) for n, one in batch.items()})
    stored = [{"seed": n, "shown": one.shown, "places": one.places} for n, one in answers.items()]
    into.write_text(json.dumps(stored, indent=0) + "\n")


def report(tally: Tally, count: int, first: int, kernel_name: str, took_s: float) -> str:
    """The record."""
    lines = [
        f"python lab/imported/compare.py {count} {first} --kernel {kernel_name}: {took_s:.0f} s",
        f"{count} configurations, {tally.packets} packets, {len(tally.faults)} disagreements",
        f"{tally.moved} packets have another class than in the kernel, all by something that the import named",
    ]
    for title, counts in (("shapes", tally.shapes), ("refused", tally.refused), ("named", tally.named)):
        lines += ["", f"{title}:"] + [f"{number:6} {text}" for text, number in counts.most_common(60)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the comparison of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--kernel", choices=("fast", "classifiers"), default="classifiers")
    parser.add_argument("--out", type=Path, help="the record")
    parser.add_argument("--store", type=Path, help="store what tc shows of COUNT configurations and of ONCE_WRONG")
    given = parser.parse_args()
    began = time.monotonic()
    made = guest.prepare(kernel.build(given.kernel, say=print))
    if given.store:
        store(made, given.count, given.store)
        return 0
    tally, text = Tally(), ""
    for start in range(given.first, given.first + given.count, BATCH):
        end = min(start + BATCH, given.first + given.count)
        compare(made, range(start, end), given.kernel == "classifiers", tally)
        print(f"{end - given.first}: {len(tally.faults)} disagreements", flush=True)
        text = report(tally, end - given.first, given.first, given.kernel, time.monotonic() - began)
        if given.out:
            given.out.write_text(text)
    print("\n".join(tally.faults[:40]), text, sep="\n")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
