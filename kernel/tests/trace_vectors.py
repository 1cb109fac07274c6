# SPDX-License-Identifier: GPL-2.0-only
"""Makes vectors (vectors/README.md) from a recording of the module's tracepoints.

    python3 trace_vectors.py TRACE CHOICES OUT

TRACE is the text of tracefs' `trace` file, begun before the qdisc was made; CHOICES is the output of
`bounds --choices`. Each run of each qdisc, from one init() to the next, becomes OUT-1.vec, OUT-2.vec and so on.
core/tests/replay.c then checks whether the core, given the same packets at the same times, decides as it did in the
kernel.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

EVENT = re.compile(r"linkweir_(\w+): ifindex=(\d+) handle=(\w+): (.*)")
VERDICTS = ("pass", "mark", "drop")
UNSET = str(2**64 - 1)

Choices = dict[tuple[str, str, str], list[str]]


class UnreadableError(Exception):
    """A recording that is incomplete or contradicts itself."""


def read_choices(path: Path) -> Choices:
    """The words of each parameter that is a choice: lines `KIND qdisc|class NAME a|b|c`, by policy."""
    choices: Choices = {}
    for line in path.read_text().splitlines():
        kind, scope, name, words = line.split()
        choices[kind.removeprefix("lw_"), scope, name] = words.split("|")
    return choices


@dataclass
class Qdisc:
    """The state of one qdisc while its events are read.

    Attributes:
        params: recorded, but not yet in force; class (0 for the qdisc) to name to value.
        channels: the same of rates in bit/s, class 0 being the link.
        rates: in force.
        lines: of the present run; none before its init().
        expected: drops that the vector implies and the recording must show next, as class and end of the queue.
        arriving: class of the last arrival while policy's victims may follow.
    """

    params: dict[int, dict[str, str]] = field(default_factory=dict)
    channels: dict[int, str] = field(default_factory=dict)
    rates: dict[int, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    expected: tuple[int, str] | None = None
    arriving: bool = False

    def settings(self, policy: str, choices: Choices) -> list[str]:
        """`set ...` and `queue N ...` of all parameters recorded."""
        rows = []
        for number, values in sorted(self.params.items()):
            scope = "class" if number else "qdisc"
            words = [f"queue {number - 1}" if number else "set"]
            for name, value in values.items():
                named = choices.get((policy, scope, name))
                words.append(f"{name}={'unset' if value == UNSET else named[int(value)] if named else value}")
            rows.append(" ".join(words))
        self.params = {}
        return rows

    def changed_rates(self, now: str) -> list[str]:
        """The channels that differ from those in force."""
        rows = []
        for number, rate in sorted(self.channels.items()):
            if self.rates.get(number) != rate:
                rows.append(f"at {now} link {rate}" if number == 0 else f"at {now} rate {number - 1} {rate}")
        self.rates.update(self.channels)
        self.channels = {}
        return rows

    def begin(self, policy: str, now: str, classes: int, choices: Choices) -> None:
        """init()."""
        if set(self.channels) != set(range(classes + 1)):
            raise UnreadableError("a qdisc began whose channels were not recorded")
        link = self.channels[0]
        self.rates = dict.fromkeys(range(classes + 1), link)
        self.lines = ["linkweir-vectors 1", f"policy {policy}", f"queues {classes}", f"link {link}"]
        self.lines += self.settings(policy, choices) + self.changed_rates(now) + [f"at {now} init"]
        self.expected, self.arriving = None, False

    def happened(self, what: str, fact: dict[str, str]) -> None:
        """An event of a packet, or an answer of the policy."""
        now, number = fact["now_ns"], int(fact["class"])
        head = what == "dropped_head"
        if head or what == "dropped_tail":
            if self.expected:
                if self.expected != (number, "head" if head else "tail"):
                    raise UnreadableError(f"at {now}: {what} of class {number}, not {self.expected}")
                self.expected = None
            elif self.arriving:
                begun = self.lines[-1] if " drops" in self.lines[-1] else self.lines[-1] + " drops"
                self.lines[-1] = f"{begun} {'h' if head else ''}{number - 1}"
            else:
                raise UnreadableError(f"at {now}: {what} of class {number}, which nothing had asked for")
            return
        if self.expected:
            raise UnreadableError(f"at {now}: {what}, where {self.expected} had to be dropped")
        self.arriving = what == "enqueued"
        queue = number - 1
        if what == "enqueued":
            self.lines.append(f"at {now} enqueue {queue} {fact['bytes']}")
        elif what == "sent":
            self.lines.append(f"at {now} send {queue}")
        elif what == "pick":
            self.lines.append(f"at {now} pick {queue if number else 'none'}")
        elif what == "verdict":
            verdict = VERDICTS[int(fact["answer"])]
            self.lines.append(f"at {now} verdict {verdict}{' ecn' if fact['ecn'] == '1' else ''}")
            self.expected = (number, "head") if verdict == "drop" else None
        elif what == "dropped_reset":
            self.lines.append(f"at {now} drop {queue}")
        elif what == "expired":
            yes = fact["answer"] == "1"
            self.lines.append(f"at {now} expired {queue} {'yes' if yes else 'no'}")
            self.expected = (number, "head") if yes else None
        elif what != "dropped_limit":  # which is not reported to the policy
            raise UnreadableError(f"at {now}: no such event: {what}")


def vectors(text: str, choices: Choices) -> list[str]:
    """Every run in a recording in which the policy was asked, as the text of a vector.

    Raises:
        UnreadableError: events were lost, or do not fit together.
    """
    if re.search(r"LOST \d+ EVENTS", text):
        raise UnreadableError("events were lost: give tracefs a larger buffer_size_kb")
    qdiscs: dict[tuple[str, str], Qdisc] = {}
    runs: list[list[str]] = []
    for what, ifindex, handle, rest in EVENT.findall(text):
        qdisc = qdiscs.setdefault((ifindex, handle), Qdisc())
        fact = dict(word.split("=", 1) for word in rest.split())
        if what == "param":
            qdisc.params.setdefault(int(fact["class"]), {})[fact["name"]] = fact["value"]
        elif what == "channel":
            qdisc.channels[int(fact["class"])] = fact["rate_bps"]
        elif what == "configured" and fact["what"] == "init":
            qdisc.begin(fact["policy"], fact["now_ns"], int(fact["classes"]), choices)
            runs.append(qdisc.lines)
        elif not qdisc.lines:
            raise UnreadableError(f"{what} of qdisc {handle}: before its init: begin to record before it is made")
        elif what == "configured" and fact["what"] == "rated":
            qdisc.lines += qdisc.changed_rates(fact["now_ns"])
        elif what == "configured":
            rows = qdisc.settings(fact["policy"], choices)
            qdisc.lines.append(" ".join([f"at {fact['now_ns']} change", *rows]).replace(" change set ", " change "))
        else:
            qdisc.happened(what, fact)
    return ["\n".join(run) + "\n" for run in runs if any(" pick " in line for line in run)]


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    trace, choices, out = sys.argv[1:]
    try:
        runs = vectors(Path(trace).read_text(), read_choices(Path(choices)))
    except UnreadableError as error:
        print(f"{trace}: {error}", file=sys.stderr)
        return 1
    for number, run in enumerate(runs, 1):
        Path(f"{out}-{number}.vec").write_text(run)
        print(f"{out}-{number}.vec: {len(run.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
