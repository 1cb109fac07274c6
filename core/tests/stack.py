# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""Fails if a call of a policy needs more stack than the contract allows: stack.py SOURCE...

gcc writes the frame of each function and who calls whom (-fcallgraph-info=su). The frames of the deepest chain of calls
from each function are added up. memset and memcpy of the host are not counted.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

MOST_BYTES = 512
"""Of one call; policy.h."""
INCLUDE = Path(__file__).resolve().parents[1] / "include"
NODE = re.compile(r'node: \{ title: "([^"]+)" label: "[^"]*?\\n(\d+) bytes \(([\w,]+)\)')
EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')


def deepest(function: str, frames: dict[str, int], calls: dict[str, set[str]], above: tuple[str, ...] = ()) -> int:
    """Bytes of the deepest chain of calls from a function."""
    if function in above:
        sys.exit(f"stack: {function} calls itself")
    below = (deepest(called, frames, calls, (*above, function)) for called in calls.get(function, ()))
    return frames.get(function, 0) + max(below, default=0)


def needs(source: Path, folder: Path) -> dict[str, int]:
    """Bytes that each function of a source needs, with all that it calls."""
    output = folder / "object.o"
    options = ["-std=c11", "-O2", "-ffreestanding", "-fcallgraph-info=su", f"-I{INCLUDE}"]
    subprocess.run(["gcc", *options, "-c", source, "-o", output], check=True)
    graph = output.with_suffix(".ci").read_text(encoding="utf-8")
    frames = {}
    for name, size, kind in NODE.findall(graph):
        if kind != "static":
            sys.exit(f"stack: {source.name}: the frame of {name} has no fixed size")
        frames[name] = int(size)
    calls: dict[str, set[str]] = {}
    for caller, called in EDGE.findall(graph):
        calls.setdefault(caller, set()).add(called)
    return {name: deepest(name, frames, calls) for name in frames}


def main() -> int:
    most = (0, "", "")
    with tempfile.TemporaryDirectory() as folder:
        for source in map(Path, sys.argv[1:]):
            for function, size in needs(source, Path(folder)).items():
                most = max(most, (size, source.name, function))
                if size > MOST_BYTES:
                    needed = f"{function} needs {size} bytes, more than {MOST_BYTES}"
                    print(f"stack: {source.name}: {needed}", file=sys.stderr)
    if not most[0]:
        sys.exit("stack: gcc reported no frame")
    print(f"stack: at most {most[0]} bytes, in {most[2]} of {most[1]}")
    return most[0] > MOST_BYTES


if __name__ == "__main__":
    sys.exit(main())
