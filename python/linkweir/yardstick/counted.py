# SPDX-License-Identifier: BSD-3-Clause
"""A program for callgrind: runs scenarios one after the other, and marks where each run begins and ends.

    python -s -S counted.py PACKAGE SEARCH SCENARIO...

PACKAGE is the folder of linkweir, of which only the native module is loaded: the others would take minutes under
callgrind. SEARCH is a JSON list of folders for modules that a policy in Python imports. A mark is a call of
`sched_yield`, which nothing else makes. It prints a JSON list of the packets that each run sent.
"""

import json
import os
import sys
import types


def main(package: str, search: str, scenarios: list[str]) -> None:
    """Runs the scenarios."""
    empty = types.ModuleType("linkweir")
    empty.__path__ = [package]
    sys.modules["linkweir"] = empty
    sys.path[:] = json.loads(search)
    from linkweir import _native

    packets = []
    for path in scenarios:
        scenario = _native.load(path)
        os.sched_yield()
        packets.append(_native.run(scenario, _drop)["packets"])
        os.sched_yield()
    print(json.dumps(packets))


def _drop(table: str, columns: object) -> None:
    """No results are kept."""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
