# SPDX-License-Identifier: BSD-3-Clause
"""Carries packets between both ends until the command ends."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from linkweir.emulation.conveyor import Conveyor, Delays
from linkweir.emulation.ends import Ended, Ends, EndsError
from linkweir.emulation.settings import Way

PATIENCE_S = 5.0
"""How long the command may take to end after SIGTERM."""
LATE_S = 0.001
"""A delay is as set if 99 of 100 packets were at most this late, s."""
_BATCH = 64
_PACKET_BYTES = 65_536


@dataclass(frozen=True)
class Report:
    """What the link did.

    Attributes:
        code: exit code of the command.
        duration_s: how long the link was there, s.
        realtime: whether the emulator had real-time priority.
        ways: for `down` and `up`, what became of the packets of each class.
        missed_pkts: packets that the emulator read too late, by direction; they are in no other count.
        late_p99_s: one of 100 packets was later than its time by more than this, s; None without packets.
        faults: what was not as set, a sentence each.
    """

    code: int
    duration_s: float
    realtime: bool
    ways: Mapping[str, Sequence[Mapping[str, Any]]]
    missed_pkts: Mapping[str, int]
    late_p99_s: float | None
    faults: tuple[str, ...]


def emulate(down: Way, up: Way, command: Sequence[str], *, serve: str | None = None) -> Report:
    """Runs a command behind an emulated link.

    Args:
        down: the direction towards the command.
        up: the direction from it.
        command: the command and its arguments.
        serve: a shell's command that runs at the far end, if any.

    Raises:
        EndsError: namespaces or devices cannot be made, or the commands' processes were killed.
    """
    with _stopping() as stops:
        ends = Ends(command, serve)
        began_ns = time.monotonic_ns()

        def clock() -> int:
            return time.monotonic_ns() - began_ns

        try:
            near, far = ends.devices
            ways = [Conveyor(down, clock, _writer(near)), Conveyor(up, clock, _writer(far))]
            loop = _Loop(ends, ways, clock, stops)
            with _priority() as realtime:
                ended = loop.run()
            duration_s = clock() / 1e9
        finally:
            ends.close()
    found = _report(ways, ended, duration_s, realtime=realtime)
    if not loop.over:
        return found
    end_ns, shorter = min(((ways[0].end_ns, down), (ways[1].end_ns, up)), key=lambda pair: pair[0])
    return replace(found, faults=(f"the link was over after {end_ns / 1e9:g} s; {shorter.cure}", *found.faults))


def _writer(device: int) -> Callable[[bytes], None]:
    def write(packet: bytes) -> None:
        with contextlib.suppress(OSError):  # a device that is down loses packets, as a cable would
            os.write(device, packet)

    return write


class _Loop:
    """The emulator's own process."""

    def __init__(self, ends: Ends, ways: Sequence[Conveyor], clock: Callable[[], int], stops: _Stops) -> None:
        self._ends = ends
        self._ways = ways
        self._clock = clock
        self._stops = stops
        near, far = ends.devices
        self._sources = {far: ways[0], near: ways[1]}
        self._socket = ends.socket.fileno()
        self._kill_ns: int | None = None
        self.over = False

    def run(self) -> Ended:
        """Until the command ends."""
        watched = [*self._sources, self._socket, self._stops.waking]
        end_ns = min(way.end_ns for way in self._ways)
        collects = gc.isenabled()
        gc.disable()  # its pauses would show as delay, and the loop makes no cycles
        try:
            while True:
                due_ns = [way.next_ns for way in self._ways if way.next_ns is not None]
                due_ns += [end_ns] if self._kill_ns is None else [self._kill_ns]
                ready, _, _ = select.select(watched, [], [], max(min(due_ns) - self._clock(), 0) / 1e9)
                for device, way in self._sources.items():
                    if device in ready:
                        _read(device, way)
                for way in self._ways:
                    way.deliver()
                if self._socket in ready:
                    return self._ends.ended()
                if self._stops.waking in ready:
                    os.read(self._stops.waking, _PACKET_BYTES)
                while self._stops.numbers:
                    self._stop(self._stops.numbers.pop(0))
                if self._kill_ns is None and self._clock() >= end_ns:
                    self.over = True
                    self._stop(signal.SIGTERM)
                elif self._kill_ns is not None and self._clock() >= self._kill_ns:
                    return Ended(128 + signal.SIGKILL, (0, 0))
        finally:
            if collects:
                gc.enable()

    def _stop(self, number: int) -> None:
        self._ends.forward(number)
        if number == signal.SIGTERM and self._kill_ns is None:
            self._kill_ns = self._clock() + round(1e9 * PATIENCE_S)


def _read(device: int, way: Conveyor) -> None:
    for _ in range(_BATCH):
        try:
            packet = os.read(device, _PACKET_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise EndsError(f"the device of the link has gone: {error.strerror}") from None
        way.arrive(packet)


@dataclass
class _Stops:
    """Signals that came.

    Attributes:
        numbers: those to forward.
        waking: a descriptor that can be read when one has come.
    """

    numbers: list[int]
    waking: int


@contextlib.contextmanager
def _stopping() -> Iterator[_Stops]:
    """Signals that ask the command to end: SIGTERM, and SIGINT if no terminal has sent it to the command as well."""
    # A handler alone does not end the sleep of select (PEP 475).
    waking, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    stops = _Stops([], waking)

    def stop(number: int, _: object) -> None:
        if number == signal.SIGTERM or not _in_front():
            stops.numbers.append(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    earlier = signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    try:
        yield stops
    finally:
        signal.set_wakeup_fd(earlier)
        os.close(waking)
        os.close(woken)
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_front() -> bool:
    """Whether a terminal sends its signals to this process, and so to the command."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@contextlib.contextmanager
def _priority() -> Iterator[bool]:
    """The lowest real-time priority where it is allowed, for a while; gives whether this process has it."""
    policy, numbers = os.sched_getscheduler(0), os.sched_getparam(0)
    if policy == os.SCHED_OTHER:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)
    finally:
        os.sched_setscheduler(0, policy, numbers)


def _report(ways: Sequence[Conveyor], ended: Ended, duration_s: float, *, realtime: bool) -> Report:
    names = ("down", "up")
    missed = dict(zip(names, reversed(ended.missed_pkts), strict=True))
    late = Delays.merged([way.late for way in ways]).quantile_s(0.99)
    faults = [
        f"{name}: {count} packets were lost in front of the emulator, which read them too late"
        for name, count in missed.items()
        if count
    ]
    if late is not None and late > LATE_S:
        cure = "" if realtime else "; with sudo it has real-time priority"
        faults.append(f"delay: one of 100 packets was more than {1e3 * late:.1f} ms late, 1 ms is allowed{cure}")
    figures = {name: way.figures() for name, way in zip(names, ways, strict=True)}
    return Report(ended.code, duration_s, realtime, figures, missed, late, tuple(faults))
