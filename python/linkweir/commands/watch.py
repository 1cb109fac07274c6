# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir run --watch`: how far a run is, when it will end, and what each class has got so far."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from linkweir.commands.terminal import one_line
from linkweir.scenarios.scenario import Scenario

Watcher = Callable[[float, Sequence[int]], None]
"""Takes the simulated time, s, and the bytes that each class has sent."""
_FRAME_ROWS = 7
"""Rows of the terminal that are no classes."""
_BAR_LETTERS = 20
_RATE_LETTERS = 31
"""What the two columns of rates take, with the space before each."""
_WIDE_LETTERS = _RATE_LETTERS + _BAR_LETTERS + 8
"""What all columns but the classes' names take."""
_LINE_PARTS = 10
"""Without a terminal there is a line at each of so many parts of the run."""
_MOST_IN_A_LINE = 8


class State:
    """What is known of a run: how far it is, how fast, and the rates of its classes.

    Args:
        scenario: what is run.
        clock: seconds of real time.
    """

    def __init__(self, scenario: Scenario, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_s = clock()
        self.names = scenario.classes
        self.duration_s = scenario.duration_s
        self.simulated_s = 0.0
        self.sent_bytes: Sequence[int] = [0] * len(self.names)
        self._before: tuple[float, Sequence[int]] = (0.0, self.sent_bytes)

    def update(self, simulated_s: float, sent_bytes: Sequence[int]) -> None:
        """Takes what the simulator reports."""
        self._before = (self.simulated_s, self.sent_bytes)
        self.simulated_s, self.sent_bytes = simulated_s, sent_bytes

    @property
    def part(self) -> float:
        """The part of the run that is done, 0 to 1."""
        return min(1.0, self.simulated_s / self.duration_s) if self.duration_s else 1.0

    @property
    def elapsed_s(self) -> float:
        """Real time since the run began."""
        return self._clock() - self._began_s

    @property
    def left_s(self) -> float | None:
        """Real time until it will end if it keeps its speed; None before anything is known."""
        return self.elapsed_s * (1 - self.part) / self.part if self.part else None

    def mean_bps(self, number: int) -> float:
        """The rate of a class since the start of the run."""
        return 8 * self.sent_bytes[number] / self.simulated_s if self.simulated_s else 0.0

    def now_bps(self, number: int) -> float:
        """The rate of a class between the last two reports."""
        then_s, then_bytes = self._before
        between_s = self.simulated_s - then_s
        return 8 * (self.sent_bytes[number] - then_bytes[number]) / between_s if between_s > 0 else 0.0

    def order(self, most: int) -> list[int]:
        """The classes that are shown: all in their order, or those that sent most if there are many."""
        numbers = list(range(len(self.names)))
        return numbers if len(numbers) <= most else sorted(numbers, key=lambda n: -self.sent_bytes[n])[:most]


@contextlib.contextmanager
def watching(scenario: Scenario) -> Iterator[Watcher]:
    """Shows a run in the terminal until it ends; without a terminal, lines on stderr.

    Args:
        scenario: what is run.
    """
    console = Console(stderr=True)
    state = State(scenario)
    if not console.is_terminal:
        yield _Lines(state)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def watcher(simulated_s: float, sent_bytes: Sequence[int]) -> None:
            state.update(simulated_s, sent_bytes)
            live.update(_picture(scenario, state, console), refresh=True)

        live.update(_picture(scenario, state, console), refresh=True)
        yield watcher


def _picture(scenario: Scenario, state: State, console: Console) -> RenderableType:
    title = Text(f"{scenario.name}: {scenario.policy}, seed {scenario.seed}", no_wrap=True, overflow="ellipsis")
    bar = ProgressBar(total=1.0, completed=state.part, width=max(10, min(60, console.width - 8)))
    progress = Table.grid(padding=(0, 1))
    progress.add_row(bar, f"{100 * state.part:.0f} %")
    shown = state.order(max(1, console.height - _FRAME_ROWS))
    wide = console.width >= _WIDE_LETTERS + 8
    table = Table(box=None, pad_edge=False)
    table.add_column(
        "class", no_wrap=True, max_width=max(4, console.width - (_WIDE_LETTERS if wide else _RATE_LETTERS))
    )
    # Names give way, rates never do.
    for heading in ("now (Mbit/s)", "so far (Mbit/s)"):
        table.add_column(heading, justify="right", no_wrap=True)
    if wide:
        table.add_column("share of what was sent", no_wrap=True)
    total = sum(state.sent_bytes) or 1
    for number in shown:
        part = state.sent_bytes[number] / total
        cells = [
            one_line(state.names[number]),
            f"{state.now_bps(number) / 1e6:,.3f}",
            f"{state.mean_bps(number) / 1e6:,.3f}",
        ]
        if wide:
            cells.append("\N{FULL BLOCK}" * round(part * _BAR_LETTERS) + f" {100 * part:.0f} %")
        table.add_row(*map(Text, cells))
    more = len(state.names) - len(shown)
    lines: list[RenderableType] = [title, progress, Text(_words(state)), table]
    if more:
        lines.append(Text(f"and {more:,} more, which sent less"))
    return Group(*lines)


def _words(state: State) -> str:
    speed = state.simulated_s / state.elapsed_s if state.elapsed_s > 0 else 0.0
    left = "" if state.left_s is None else f", about {duration(state.left_s)} left"
    return (
        f"{state.simulated_s:,.0f} of {state.duration_s:,.0f} s simulated, {duration(state.elapsed_s)} elapsed{left}; "
        f"{speed:,.0f} s simulated per second"
    )


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(8.4), duration(192), duration(7500)
    ('8 s', '3 min 12 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class _Lines:
    """A line at each tenth of a run, for logs."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._said = 0

    def __call__(self, simulated_s: float, sent_bytes: Sequence[int]) -> None:
        self._state.update(simulated_s, sent_bytes)
        part = int(self._state.part * _LINE_PARTS)
        if part <= self._said:
            return
        self._said = part
        shown = self._state.order(_MOST_IN_A_LINE)
        rates = ", ".join(f"{one_line(self._state.names[n])} {self._state.mean_bps(n) / 1e6:.3g}" for n in shown)
        print(f"linkweir: {_words(self._state)}; so far in Mbit/s: {rates}", file=sys.stderr)
