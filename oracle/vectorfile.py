# SPDX-License-Identifier: BSD-3-Clause
"""Reads and replays the vector files of vectors/README.md against the models."""

from dataplane import DataPlane


class Mismatch(Exception):
    """The model answers something else than the file expects."""


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


def replay(path):
    """Returns the number of answers compared; raises Mismatch at the first that differs."""
    header, params, qparams, plane, compared = {}, {}, {}, None, 0
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if not words:
                continue

            def expect(expected, answer):
                nonlocal compared
                compared += 1
                if expected != answer:
                    raise Mismatch(f"{path}:{number}: expected {expected}, the model answers {answer}: {line.strip()}")

            if words[0] in ("linkweir-vectors", "policy", "queues", "link"):
                header[words[0]] = words[1]
            elif words[0] == "set":
                params.update(values_of(words[1:]))
            elif words[0] == "queue":
                qparams.setdefault(int(words[1]), {}).update(values_of(words[2:]))
            elif words[0] == "refuse":
                arrow = words.index("=>")
                refused = DataPlane(header["policy"], int(header["queues"]), int(header["link"]), *groups_of(words[1:arrow]))
                expect((words[arrow + 1], None if words[arrow + 2] == "-" else int(words[arrow + 2])), refused.fault())
            else:
                if plane is None:
                    plane = DataPlane(header["policy"], int(header["queues"]), int(header["link"]), params, qparams)
                now_ns, operation, rest = int(words[1]), words[2], words[3:]
                if operation == "init":
                    plane.init(now_ns)
                elif operation == "enqueue":
                    drops = [int(word) for word in rest[3:]] if len(rest) > 2 else []
                    expect(drops, plane.enqueue(now_ns, int(rest[0]), int(rest[1])))
                elif operation == "pick":
                    expect(None if rest[0] == "none" else int(rest[0]), plane.pick(now_ns))
                elif operation == "send":
                    plane.send(now_ns, int(rest[0]) if rest else None)
                elif operation == "drop":
                    plane.drop(now_ns, int(rest[0]))
                elif operation == "rate":
                    plane.rate(now_ns, int(rest[0]), int(rest[1]))
                elif operation == "link":
                    plane.link(now_ns, int(rest[0]))
                elif operation == "change":
                    plane.change(now_ns, *groups_of(rest))
                elif operation == "observe":
                    answer = plane.observe(now_ns, int(rest[0]))
                    expected = values_of(rest[1:])
                    expect(expected, {name: answer.get(name) for name in expected})
                else:
                    raise ValueError(f"{path}:{number}: unknown operation {operation}")
    return compared
