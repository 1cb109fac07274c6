# SPDX-License-Identifier: BSD-3-Clause
"""Reads and replays the vector files of vectors/README.md against the models."""

import pathlib

from dataplane import DataPlane


class MismatchError(Exception):
    """The model's answer differs from the file's."""


def value_of(word):
    if word == "unset":
        return None
    return int(word) if word.isdigit() else word


def values_of(words):
    return {name: value_of(value) for name, value in (word.split("=") for word in words)}


def groups_of(words):
    """`set k=v ... queue N k=v ...` or `k=v ... queue N k=v ...` to (params, qparams)."""
    params, qparams, i = {}, {}, 0
    place = params
    while i < len(words):
        if words[i] == "set":
            place = params
        elif words[i] == "queue":
            i += 1
            place = qparams.setdefault(int(words[i]), {})
        else:
            place.update(values_of([words[i]]))
        i += 1
    return params, qparams


class Replay:
    def __init__(self, path):
        self.path = path
        self.header, self.params, self.qparams = {}, {}, {}
        self.plane = None
        self.compared = 0
        self.place = ""

    def expect(self, expected, answer):
        self.compared += 1
        if expected != answer:
            raise MismatchError(f"{self.place}: expected {expected}, the model answers {answer}")

    def new_plane(self, params, qparams):
        header = self.header
        return DataPlane(header["policy"], int(header["queues"]), int(header["link"]), params, qparams)

    def run(self):
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            self.place = f"{self.path}:{number}: {line.strip()}"
            words = line.split("#")[0].split()
            if words:
                self.execute(words)

    def execute(self, words):
        if words[0] in ("linkweir-vectors", "policy", "queues", "link"):
            self.header[words[0]] = words[1]
        elif words[0] == "set":
            self.params.update(values_of(words[1:]))
        elif words[0] == "queue":
            self.qparams.setdefault(int(words[1]), {}).update(values_of(words[2:]))
        elif words[0] == "refuse":
            arrow = words.index("=>")
            parameter, q = words[arrow + 1 :]
            refused = self.new_plane(*groups_of(words[1:arrow]))
            self.expect((parameter, None if q == "-" else int(q)), refused.fault())
        else:
            if self.plane is None:
                self.plane = self.new_plane(self.params, self.qparams)
            self.operate(int(words[1]), words[2], words[3:])

    def operate(self, now_ns, operation, rest):
        plane = self.plane
        if operation == "init":
            plane.init(now_ns)
        elif operation == "enqueue":
            drops = [word if word[0] == "h" else int(word) for word in rest[3:]]
            self.expect(drops, plane.enqueue(now_ns, int(rest[0]), int(rest[1])))
        elif operation == "pick":
            self.expect(None if rest[0] == "none" else int(rest[0]), plane.pick(now_ns))
        elif operation == "verdict":
            self.expect(rest[0], plane.verdict(now_ns, "ecn" in rest[1:]))
        elif operation == "expired":
            self.expect(rest[1], plane.expired(now_ns, int(rest[0])))
        elif operation == "send":
            plane.send(now_ns, int(rest[0]) if rest else None)
        elif operation == "drop":
            plane.drop(now_ns, int(rest[0]))
        elif operation == "rate":
            plane.rate(now_ns, {int(q): int(rate_bps) for q, rate_bps in zip(rest[::2], rest[1::2], strict=True)})
        elif operation == "lead":
            plane.lead(now_ns, int(rest[0]), int(rest[1]))
        elif operation == "link":
            plane.link(now_ns, int(rest[0]))
        elif operation == "change":
            plane.change(now_ns, *groups_of(rest))
        elif operation == "observe":
            answer = plane.observe(now_ns, int(rest[0]))
            expected = values_of(rest[1:])
            self.expect(expected, {name: answer.get(name) for name in expected})
        else:
            raise ValueError(f"{self.place}: unknown operation {operation}")


def replay(path):
    """Returns the number of answers compared; raises MismatchError at the first that differs."""
    running = Replay(pathlib.Path(path))
    running.run()
    return running.compared
