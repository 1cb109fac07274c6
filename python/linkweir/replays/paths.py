# SPDX-License-Identifier: BSD-3-Clause
"""Several recorded paths to a peer as the links of a bond, and what each of them sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkweir import _native
from linkweir.deploy.paths import DETECT, OF_A_CLASS, ROOM
from linkweir.fault import PlanError
from linkweir.replays.recording import NOMINAL, Part, RecordedPath, nominal_of
from linkweir.runs.result import Result
from linkweir.sweeps.keys import Key, nearest

CAPACITY = "path-{number}.csv"
_WAKES = "1kbit"
"""Rate of a path that carried nothing, behind the end of the run: a trace must have some rate."""


@dataclass(frozen=True)
class PathAgreement:
    """A class on a path as it was recorded and as it was replayed, copies and repetitions included.

    Attributes:
        path: name of the path.
        name: the class.
        recorded_bytes: what the path sent of it.
        replayed_bytes: what it sends now; None for a path that is left out.
    """

    path: str
    name: str
    recorded_bytes: int
    replayed_bytes: int | None


def chosen(part: Part, without: Sequence[str]) -> list[RecordedPath]:
    """The recorded paths but those of these names; none if the recording only names them.

    Raises:
        PlanError: there is no such path, or none is left.
    """
    known = part.paths
    for name in without:
        if name not in known:
            there = f"it had {', '.join(known)}" if known else "it had one link"
            raise PlanError(f"--without {name}: {part.peer} had no such path; {there}{nearest(name, known)}")
    left = [path for path in part.recorded_paths if path.name not in without]
    if part.recorded_paths and not left:
        raise PlanError(f"--without {', '.join(without)}: no path to {part.peer} is left; leave one in")
    return left


def nominal_bps(paths: Sequence[RecordedPath]) -> float:
    """The sum of the nominal rates."""
    return sum(_native.quantity(nominal_of(path.settings), "rate") for path in paths)


def bond_name(part: Part) -> str:
    """The name of the bond: that of the peer, unless a path is called so."""
    return f"{part.peer}-bond" if part.peer in part.paths else part.peer


def bonded(part: Part, written: Mapping[str, Any], paths: Sequence[RecordedPath], folder: Path) -> dict[str, Any]:
    """A scenario of one link as one of a bond over these paths; writes the files of their capacities.

    Args:
        part: what is replayed.
        written: the scenario, whose link is replaced.
        paths: the links of the bond.
        folder: where the files are written.
    """
    name = bond_name(part)
    names = [path.name for path in paths]
    own = {str(entry["name"]): entry for entry in part.settings["class"]}
    bond = {
        "name": name,
        "links": names,
        "room": ROOM,
        "detect": DETECT,
        "scheduler": written["scheduler"],
        "class": [{**entry, **_uses(own[entry["name"]], names)} for entry in written["class"]],
    }
    link = [_link(number, path, part.duration_s, folder) for number, path in enumerate(paths, 1)]
    flows = [{**flow, "path": [name]} for flow in written["flow"]]
    rest = {key: value for key, value in written.items() if key not in ("link", "scheduler", "class", "flow")}
    return {**rest, "link": link, "bond": [bond], "flow": flows}


def own_key(part: Part, key: Key) -> Key:
    """A key of the scheduler or a class, as it is in the scenario of the bond; other keys stay as they are."""
    return ("bond", bond_name(part), *key) if key[0] in ("class", "scheduler") else key


def compare_paths(part: Part, result: Result) -> list[PathAgreement]:
    """What each path sent, next to what the links of a bond send."""
    rows = {(row["member"], row["class"]): row for row in result.bond_paths.to_pylist()}
    found = []
    for path, carried in part.carried.items():
        for name, (_, recorded_bytes) in carried.items():
            row = rows.get((path, name))
            now = None if row is None else round((row["sent_bps"] or 0.0) * part.duration_s / 8)
            if recorded_bytes or now:
                found.append(PathAgreement(path, name, recorded_bytes, now))
    return found


def notes(part: Part, paths: Sequence[RecordedPath]) -> Iterator[str]:
    """What a reader should know about the paths, a sentence each."""
    silent = [path.name for path in paths if not any(bps for _, bps, _ in path.states)]
    if silent:
        yield f"{', '.join(silent)} carried nothing in this time, and does not here"
    unknown = [path.name for path in paths if "nominal" not in path.settings]
    if unknown:
        yield f"{', '.join(unknown)}: the recording has no nominal rate; {NOMINAL} is assumed"
    left_out = [name for name in part.paths if all(path.name != name for path in paths)]
    if left_out:
        yield f"left out: {', '.join(left_out)}"


def _uses(entry: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """How a class uses the paths that there are; a list of which none is left is as ``best``, as in a gateway."""
    found = {key: entry[key] for key in OF_A_CLASS if key in entry}
    uses = found.get("paths")
    if isinstance(uses, list):
        found["paths"] = [name for name in uses if name in names] or "best"
    return found


def _link(number: int, path: RecordedPath, duration_s: float, folder: Path) -> dict[str, Any]:
    """A path as a link; writes its capacity over time, and its delays."""
    states = list(path.states) or [(0.0, 0, 0.0)]
    link: dict[str, Any] = {"name": path.name}
    delays = {delay_s for _, _, delay_s in states}
    if len(states) == 1 and states[0][1] > 0:
        link["rate"] = f"{states[0][1]}bit"
    else:
        if not any(bps for _, bps, _ in states):
            states.append((duration_s, round(_native.quantity(_WAKES, "rate")), states[-1][2]))
        elif states[-1][0] < duration_s:
            states.append((duration_s, *states[-1][1:]))  # so that the trace is as long as the run
        rows = [f"{at_s:.9f},{bps},{delay_s:.9f}\n" for at_s, bps, delay_s in states]
        name = CAPACITY.format(number=number)
        (folder / name).write_text(f"t_s,capacity_bps,delay_s\n{''.join(rows)}", encoding="utf-8")
        link |= {"trace": name, "trace_format": "csv", "end": "hold"}
        capacity = {"column": "capacity_bps", "unit": "bit"}
        link["columns"] = {"t": "t_s", "capacity": capacity, "delay": {"column": "delay_s", "unit": "s"}}
    if len(delays) == 1 and "rate" in link:
        link["delay"] = f"{delays.pop():.9f}s"
    # What answers take: half the round trip that was measured last.
    link["return_delay"] = f"{states[-1][2]:.9f}s"
    link["nominal"] = nominal_of(path.settings)
    for key, otherwise in (("follow", True), ("cost", 0)):
        link[key] = path.settings.get(key, otherwise)
    return link
