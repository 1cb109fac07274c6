# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of gateways: what arrived, left and was dropped in each class, and the capacity.

A gateway with ``[record]`` writes them; docs/reference/recordings.md describes the files.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from linkweir import _native
from linkweir.fault import PlanError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BIN_NS = 10_000_000
"""Length of a bin."""
MOST_PATHS = 8
"""Most paths to a peer."""
ENDING = ".lwrec"
NOMINAL = "20Mbit"
"""The nominal rate of a link or path of which a recording does not say what was configured."""
_NS = 1_000_000_000
_OWN_KEYS = ("origin_unix_ns", "version", "packets", "addresses")
"""Keys of settings that say nothing about how packets were treated."""
_SPANS = 4
"""Most times that a message about damage lists."""


@dataclass(frozen=True)
class Sums:
    """What happened to the packets of a class in an interval."""

    arrived_pkts: int = 0
    arrived_bytes: int = 0
    tcp_pkts: int = 0
    sent_pkts: int = 0
    sent_bytes: int = 0
    dropped_pkts: int = 0
    dropped_bytes: int = 0


@dataclass(frozen=True)
class RecordedPath:
    """One of several paths to a peer that were used at once.

    Attributes:
        name: of the path.
        settings: what was configured: ``nominal``, ``follow`` and ``cost``.
        states: when it changed, s after the beginning, and its capacity, bit/s, and one-way delay, s, from then on. The
            capacity is 0 while the path carried nothing.
    """

    name: str
    settings: Mapping[str, Any]
    states: tuple[tuple[float, int, float], ...]


@dataclass(frozen=True)
class _Section:
    text: str
    settings: dict[str, Any]
    origin_unix_ns: int
    from_ns: int
    to_ns: int
    peers: tuple[dict[str, Any], ...]
    gaps: tuple[tuple[int, int], ...]


class Recording:
    """Files of a recording, read as one.

    Attributes:
        name: for messages.
    """

    def __init__(self, name: str, contents: Sequence[bytes]) -> None:
        self.name = name
        try:
            self._native = _native.Recording(contents)
        except ValueError as fault:
            raise PlanError(f"{name}: {fault}; give files that a gateway with [record] wrote") from fault
        self._knows_paths: dict[str, list[bool]] = {}
        self.sections = [_section(*found) for found in self._native.sections]
        for text in (text for section in self.sections for text in _names(section)):
            if any(unicodedata.category(letter) == "Cc" for letter in text):
                raise PlanError(f"{name}: has the name {text!r}; no gateway writes names with control characters")
        devices = sorted({str(one.settings["device"]) for one in self.sections if "device" in one.settings})
        if len(devices) > 1:
            listed = f"{', '.join(devices[:-1])} and {devices[-1]}"
            raise PlanError(f"{name}: these are recordings of {listed}; give the files of one")

    @classmethod
    def load(cls, paths: Sequence[str | os.PathLike[str]]) -> Recording:
        """Reads files, or all files of folders; several are read in the order of their names.

        Raises:
            PlanError: there is no file, it is no recording, or they are of several gateways.
            OSError: a file cannot be read.
        """
        files: list[Path] = []
        for path in map(Path, paths):
            found = sorted(path.glob(f"*{ENDING}")) if path.is_dir() else [path]
            if not found:
                raise PlanError(f"{path}: holds no recordings, files that end in {ENDING}")
            files.extend(found)
        if not files:
            raise PlanError("no recording is given; name files that a gateway with [record] wrote")
        # A file that was given by itself and in its folder would count twice.
        files = list({file.resolve(): file for file in files}.values())
        files.sort(key=lambda file: file.name)
        name = str(files[0]) if len(files) == 1 else f"{files[0]} .. {files[-1].name}"
        return cls(name, [file.read_bytes() for file in files])

    @property
    def began(self) -> datetime:
        """When its clock began, UTC."""
        return _utc(self.sections[0].origin_unix_ns)

    @property
    def damaged_bytes(self) -> int:
        """Bytes that could not be read, as of a block that was being written when the gateway was killed."""
        return sum(length for _, _, length in self._native.damages)

    @property
    def damage(self) -> str | None:
        """What of it can be read, where some of it cannot; None: all."""
        if not self.damaged_bytes:
            return None
        spans: list[tuple[int, int]] = []
        for section in self.sections:
            if spans and spans[-1][1] >= section.from_ns:
                spans[-1] = (spans[-1][0], max(spans[-1][1], section.to_ns))
            elif section.to_ns > section.from_ns:
                spans.append((section.from_ns, section.to_ns))
        times = [tuple(f"{_utc(self._unix(ns)):%H:%M:%S}" for ns in span) for span in spans]
        shown = ", ".join("-".join(one) for one in times[:_SPANS]) + (", ..." if len(times) > _SPANS else "")
        return f"only {shown} UTC of it can be read: {self.damaged_bytes} bytes are damaged or incomplete"

    @cached_property
    def peers(self) -> dict[str, Sums]:
        """Peers with the sums of all their classes."""
        return {name: Sums(*found) for name, found in self._native.peers.items()}

    def knows_paths(self, peer: str) -> list[bool]:
        """For each section whether it says what each of the paths to a peer was."""
        if peer not in self._knows_paths:
            self._knows_paths[peer] = self._native.knows_paths(peer)
        return self._knows_paths[peer]

    def part(self, peer: str | None = None, start: str | None = None, stop: str | None = None) -> Part:
        """The part about one peer, from a time to a time.

        Args:
            peer: its name; it may be left out if only one peer has packets.
            start: the time at which it begins: after the beginning, like "10min", or a time stamp like
                "2026-01-31T02:00", which is UTC unless it names a zone.
            stop: the time at which it ends, in the same way.

        Raises:
            PlanError: there is no such peer or time.
        """
        first_ns, last_ns = self._native.span_ns
        if last_ns == 0:
            raise PlanError(f"{self.name}: holds no packets")
        from_ns = self._time("--from", start, first_ns)
        to_ns = self._time("--to", stop, last_ns)
        from_ns, to_ns = max(from_ns, first_ns), min(to_ns, last_ns)
        if from_ns >= to_ns:
            span = f"{_utc(self._unix(first_ns)):%Y-%m-%dT%H:%M:%SZ} to {_utc(self._unix(last_ns)):%Y-%m-%dT%H:%M:%SZ}"
            raise PlanError(f"{self.name}: has nothing between --from and --to; it is from {span}")
        return Part(self, self._peer(peer), (from_ns // BIN_NS * BIN_NS, to_ns))

    def _peer(self, name: str | None) -> str:
        known = self.peers
        if name is not None:
            if name not in known:
                raise PlanError(f"{self.name}: has no peer {name}; it has {', '.join(known)}")
            return name
        used = [name for name, sums in known.items() if sums.arrived_pkts or sums.sent_pkts]
        if len(used) == 1:
            return used[0]
        if not used:
            raise PlanError(f"{self.name}: holds no packets")
        listed = ", ".join(used[:20]) + (" ..." if len(used) > 20 else "")
        raise PlanError(f"{self.name}: has packets of {len(used)} peers; choose one with --peer: {listed}")

    def _unix(self, ns: int) -> int:
        return self.sections[0].origin_unix_ns + ns

    def _time(self, option: str, text: str | None, otherwise_ns: int) -> int:
        if text is None:
            return otherwise_ns
        try:
            return round(_native.quantity(text, "time") * _NS) + self._native.span_ns[0]
        except ValueError:
            pass
        try:
            stamp = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError as fault:
            cure = "write a time after the beginning, like 10min, or a time stamp, like 2026-01-31T02:00"
            raise PlanError(f"{option} {text}: is no time; {cure}") from fault
        if stamp.tzinfo is None:
            stamp = stamp.replace(tzinfo=timezone.utc)
        return round((stamp - self.began).total_seconds() * _NS)


class Part:
    """What was recorded of one peer, from one time to another.

    Attributes:
        recording: of which it is a part.
        peer: name of the peer.
        span_ns: begin and end on the recording's clock.
    """

    def __init__(self, recording: Recording, peer: str, span_ns: tuple[int, int]) -> None:
        self.recording = recording
        self.peer = peer
        self.span_ns = span_ns
        inside = [
            (number, section)
            for number, section in enumerate(recording.sections)
            if section.from_ns < span_ns[1]
            and section.to_ns > span_ns[0]
            and any(one.get("name") == peer for one in section.peers)
        ]
        if not inside:
            raise PlanError(f"{recording.name}: has nothing of peer {peer} in this time")
        self._number, self._section = inside[0]
        if not _is_whole(self._section.settings):
            raise PlanError(f"{recording.name}: does not say what was configured")
        self._later = [section for _, section in inside[1:]]

    @property
    def duration_s(self) -> float:
        """Its length, s."""
        return (self.span_ns[1] - self.span_ns[0]) / _NS

    @property
    def began(self) -> datetime:
        """When it begins, UTC."""
        return _utc(self.recording._unix(self.span_ns[0]))

    @property
    def settings(self) -> Mapping[str, Any]:
        """What was configured when it began."""
        return self._section.settings

    @property
    def link(self) -> Mapping[str, Any]:
        """What was configured of the peer's link: ``nominal`` and ``follow``."""
        return _peer_of(self._section, self.peer)

    @property
    def paths(self) -> list[str]:
        """Names of the paths to the peer, if it had several that were used at once."""
        return _names_of_paths(self.link)

    @cached_property
    def recorded_paths(self) -> list[RecordedPath]:
        """These paths, if the file in which the part begins says what each was; those before 2026-12 name them only."""
        names = self.paths
        if not names or not self.recording.knows_paths(self.peer)[self._number]:
            return []
        states = self.recording._native.path_states(self.peer, names, self.span_ns)
        if not all(states):  # of a part that ends before its first packet
            return []
        listed = self.link.get("path", [])
        tables = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return [
            RecordedPath(
                name,
                next((one for one in tables if one.get("name") == name), {}),
                tuple((ns / _NS, bps, delay_ns / _NS) for ns, bps, delay_ns in changes),
            )
            for name, changes in zip(names, states, strict=True)
        ]

    @property
    def paths_known_from_s(self) -> float | None:
        """When a file begins that says what each path was, s after the recording's first packet; None: never."""
        known = self.recording.knows_paths(self.peer)
        first_ns = self.recording._native.span_ns[0]
        later = self.recording.sections[self._number + 1 :]
        starts = [one.from_ns for one, knows in zip(later, known[self._number + 1 :], strict=True) if knows]
        inside = [start for start in starts if start < self.span_ns[1]]
        return (min(inside) - first_ns) / _NS if inside else None

    @cached_property
    def carried(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Packets and bytes that each path sent of each class, copies and repetitions included."""
        names = (self.paths, self.classes)
        found = self.recording._native.carried(self.peer, names, self.span_ns)
        return {path: dict(zip(names[1], row, strict=True)) for path, row in zip(names[0], found, strict=True)}

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in queue order."""
        return [str(entry["name"]) for entry in self.settings.get("class", [])]

    @property
    def capacity(self) -> list[tuple[float, int]]:
        """When the capacity changed, s after the beginning, and to what, bit/s."""
        found = self.recording._native.capacity(self.peer, self.span_ns)
        return [(ns / _NS, bps) for ns, bps in found]

    def sums(self, interval_s: float) -> list[list[Sums]]:
        """Sums of each class over intervals, a list per interval."""
        interval_ns = round(interval_s * _NS)
        found = self.recording._native.sums(self.peer, self.classes, self.span_ns, interval_ns)
        return [[Sums(*one) for one in row] for row in found]

    def content(self) -> bytes:
        """The part as a recording of its own, for ``kind = "replay"``."""
        return self.recording._native.cut(self.peer, self._number, self.span_ns)

    def notes(self) -> Iterator[str]:
        """What a reader should know about it, a sentence each."""
        from_ns, to_ns = self.span_ns
        sections = self.recording.sections
        gaps = [gap for section in sections for gap in section.gaps if gap[0] < to_ns and gap[1] > from_ns]
        if gaps:
            lost_s = sum(min(end, to_ns) - max(begin, from_ns) for begin, end in gaps) / _NS
            yield f"{lost_s:.3g} s are missing in it, because the disk was too slow or full"
        if self.recording.damage:
            yield self.recording.damage
        changed = [one for one in self._later if _treatment(one.settings) != _treatment(self.settings)]
        if changed:
            after_s = (changed[0].from_ns - from_ns) / _NS
            yield f"its settings changed after {after_s:.0f} s; those of its beginning hold all the time here"
        others = [one for one in self._later if _names_of_paths(_peer_of(one, self.peer)) != self.paths]
        if others:
            after_s = (others[0].from_ns - from_ns) / _NS
            yield f"its paths changed after {after_s:.0f} s; those of its beginning are there all the time here"
        if "across" in self.settings:
            yield (
                f"peers shared the link; here {self.peer} has the capacity of its channel for itself, so it gets more "
                "than it did"
            )
        if from_ns - self._section.from_ns > BIN_NS:
            yield "it begins while the gateway runs; here it begins with empty queues and a policy without history"


def _utc(unix_ns: int) -> datetime:
    return datetime.fromtimestamp(unix_ns // _NS, tz=timezone.utc).replace(microsecond=unix_ns % _NS // 1000)


def _peer_of(section: _Section, name: str) -> Mapping[str, Any]:
    return next(one for one in section.peers if one.get("name") == name)


def _names_of_paths(peer: Mapping[str, Any]) -> list[str]:
    found = peer.get("paths", [])
    return [str(name) for name in found[:MOST_PATHS]] if isinstance(found, list) else []


def nominal_of(settings: Mapping[str, Any]) -> str:
    """What was configured as the nominal rate of a link or path, or `NOMINAL`.

    Raises:
        PlanError: a stranger's file has something else there.
    """
    given = settings.get("nominal", NOMINAL)
    try:
        _native.quantity(given, "rate")
    except (TypeError, ValueError) as fault:
        raise PlanError(f"the recording has nominal = {given!r}, which is no rate") from fault
    return str(given)


def _names(section: _Section) -> Iterator[str]:
    """The names in it, of whatever type a stranger's file has there."""
    classes = section.settings.get("class")
    tables = [one for one in classes if isinstance(one, dict)] if isinstance(classes, list) else []
    yield from (str(one.get("name")) for one in [*tables, *section.peers])
    yield from (path for one in section.peers for path in _names_of_paths(one))
    yield str(section.settings.get("device"))


def _is_whole(settings: Mapping[str, Any]) -> bool:
    """Whether they say how packets were treated."""
    classes = settings.get("class")
    named = isinstance(classes, list) and all(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in classes
    )
    return named and bool(classes) and isinstance(settings.get("scheduler"), dict)


def _treatment(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in _OWN_KEYS}


def _section(
    text: str, origin_unix_ns: int, from_ns: int, to_ns: int, peers: list[str], gaps: list[tuple[int, int]]
) -> _Section:
    return _Section(text, _toml(text), origin_unix_ns, from_ns, to_ns, tuple(map(_toml, peers)), tuple(gaps))


def _toml(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}  # of a stranger's file; what is missing is said where it is needed
    return found
