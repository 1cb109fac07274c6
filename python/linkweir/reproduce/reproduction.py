# SPDX-License-Identifier: BSD-3-Clause
"""Where the figures of a reproduction run: in the simulator, or on real kernels and in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from linkweir.reproduce import ef_delay, page, virtual
from linkweir.reproduce.execute import Outcome, Runner, distinct, execute, show
from linkweir.reproduce.figure import Figure


class Reproduction(Protocol):
    """Figures and where they run."""

    @property
    def where(self) -> str:
        """Its name in the directory."""

    @property
    def figures(self) -> Sequence[Figure]:
        """All figures, of every seed."""

    @property
    def runs(self) -> int:
        """Number of runs."""

    def run(
        self, simulator: Runner, folder: Path, on_done: Callable[[], None]
    ) -> tuple[Outcome, list[page.FigureResult]]:
        """Runs the figures and returns what there is to show.

        Args:
            simulator: runs scenarios in the simulator.
            folder: the directory of the reproduction, to keep files in.
            on_done: called after each run.
        """


@dataclass(frozen=True)
class Simulated:
    """Figures that run in the simulator."""

    figures: Sequence[Figure]
    where: str = "sim"

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(distinct(self.figures))

    def run(
        self,
        simulator: Runner,
        folder: Path,  # noqa: ARG002
        on_done: Callable[[], None],
    ) -> tuple[Outcome, list[page.FigureResult]]:
        """Results of the simulator."""
        outcome = execute(distinct(self.figures), simulator, on_done)
        return outcome, [show(figure, outcome) for figure in self.figures]


@dataclass(frozen=True)
class OnKernels:
    """Figures that run on real kernels and, to compare, in the simulator.

    Attributes:
        sets: the figures, once for every seed.
        runner: makes what runs them, given the directory of the reproduction.
        name: what their rows say in `where`.
        where: its name in the directory.
        delays: tables of EF's delays.
    """

    sets: Sequence[Sequence[Figure]]
    runner: Callable[[Path], Runner]
    name: str = virtual.KERNEL
    where: str = "virtual"
    delays: Callable[[Sequence[Sequence[Figure]], Outcome], list[page.FigureResult]] = ef_delay.in_kernel

    @property
    def figures(self) -> list[Figure]:
        """All figures, of every seed."""
        return [figure for figures in self.sets for figure in figures]

    @property
    def runs(self) -> int:
        """Number of runs: each in the kernel and in the simulator."""
        return 2 * len(distinct(self.figures))

    def run(
        self, simulator: Runner, folder: Path, on_done: Callable[[], None]
    ) -> tuple[Outcome, list[page.FigureResult]]:
        """Results of kernels and of the simulator, how far they are apart, and EF's delays."""
        outcome, shown = virtual.run_all(self.sets, self.runner(folder), simulator, on_done, self.name)
        return outcome, [*shown, *virtual.distances(shown, self.name), *self.delays(self.sets, outcome)]
