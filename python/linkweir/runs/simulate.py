# SPDX-License-Identifier: BSD-3-Clause
"""Running scenarios: one, with its results on disk if wanted, or many in parallel."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from linkweir import _native
from linkweir.own import MODULES_OF_USERS
from linkweir.runs.result import Interrupted, Result
from linkweir.scenarios.scenario import AnyTrace, Scenario, as_scenario

if TYPE_CHECKING:
    import pyarrow as pa

AnyScenario = Scenario | Mapping[str, Any] | str | os.PathLike[str]
"""A scenario to run: a `Scenario`, a dict, or the path of a TOML file."""
_PATIENCE_S = 1.0
"""How long after Ctrl-C a policy in Python may take to return."""
_Watch = Callable[[float, Sequence[int]], None]


class _DeferredInterrupt:
    """Defers Ctrl-C to a safe point, so that no table is cut in the middle; a second Ctrl-C acts at once.

    A user's policy in Python may never let the run get there. If its call has not returned a second after Ctrl-C, it is
    interrupted, and the error names it.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._before: Any = None
        self._impatient: threading.Timer | None = None

    def __enter__(self) -> _DeferredInterrupt:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # otherwise Ctrl-C is ignored, or not handled by Python
                self._before = before
                signal.signal(signal.SIGINT, self._press)
        return self

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            self._before(number, frame)
        self.pressed = True
        self._impatient = threading.Timer(_PATIENCE_S, self._interrupt_policy)
        self._impatient.daemon = True
        self._impatient.start()

    def _interrupt_policy(self) -> None:
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        while frame is not None:
            if str(frame.f_globals.get("__name__")).startswith(MODULES_OF_USERS):
                _thread.interrupt_main()
                return
            frame = frame.f_back

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._impatient is not None:
            self._impatient.cancel()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


def run(
    scenario: AnyScenario,
    *,
    seed: int | None = None,
    trace: AnyTrace | None = None,
    trace_keys: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    figures: Sequence[str] = (),
    progress: Callable[[float], None] | None = None,
    watch: Callable[[float, Sequence[int]], None] | None = None,
    threads: int = 1,
) -> Result:
    """Simulates a scenario.

    Args:
        scenario: a `Scenario`, a dict with the keys of the TOML form, or the path of a TOML file.
        seed: takes the place of the scenario's seed.
        trace: capacity trace that takes the place of ``link.rate`` or ``link.trace``: the path of a file, a
            `linkweir.traces.Trace`, or a data frame; see `Scenario.load`.
        trace_keys: keys of ``[link]`` that describe `trace`; see `Scenario.load`.
        out: directory for the results, made by the run; without it they are kept in memory.
        force: `out` may be an earlier run directory, which is overwritten.
        figures: ``svg``, ``pdf`` or both: the charts of the report are also drawn as files in `out`, for papers.
        progress: called from time to time with the simulated time reached, in seconds.
        watch: called at most five times a second with the simulated time, in seconds, and the bytes that each class has
            sent since the start, in the scenario's order.
        threads: processors for a network of several links; the results are the same for any number.

    Returns:
        The result. The same scenario and seed give the same tables on any machine.

    Raises:
        ScenarioError: the scenario is wrong; nothing was run or written.
        ValueError: there is no such format of figures, or no `out` for them, or `threads` is below 1; nothing was run.
        DirectoryError: `out` cannot be written; nothing was run.
        RunError: the run failed; `out` is marked ``failed``.
        Interrupted: Ctrl-C; its `result` holds the results so far, and `out` is marked ``interrupted``.
    """
    sound = as_scenario(scenario, seed=seed, trace=trace, trace_keys=trace_keys)
    forms = _known_formats(figures, out)
    if threads < 1:
        raise ValueError("threads must be at least 1")
    look = _Look(progress, watch, threads)
    if out is None:
        return _run_in_memory(sound, look)
    return _run_to_disk(sound, Path(out), force, forms, look)


def _known_formats(figures: Sequence[str], out: str | os.PathLike[str] | None) -> Sequence[str]:
    """Formats of figures, refused before the run if they are none."""
    from linkweir.panels.plot import FORMATS

    forms = [figures] if isinstance(figures, str) else list(figures)
    for form in forms:
        if form not in FORMATS:
            raise ValueError(f"figures: no format is called {form!r}; there are {', '.join(FORMATS)}")
    if forms and out is None:
        raise ValueError("figures: are files in the run directory; give out, too")
    return forms


@dataclass(frozen=True)
class _Look:
    """How a run is simulated: who looks on, and on how many threads."""

    progress: Callable[[float], None] | None
    watch: _Watch | None
    threads: int


def _simulate(
    scenario: Scenario,
    take: Callable[[str, list[_native._Column]], None],
    interrupt: _DeferredInterrupt,
    how: _Look,
) -> _native._Outcome:
    def look(simulated_s: float) -> None:
        if how.progress is not None:
            how.progress(simulated_s)
        if interrupt.pressed:
            raise KeyboardInterrupt

    return _native.run(scenario.native, take, look, how.watch, threads=how.threads)


def _run_in_memory(scenario: Scenario, look: _Look) -> Result:
    from linkweir.tables import arrow

    chunks: dict[str, list[list[_native._Column]]] = {}
    with _DeferredInterrupt() as interrupt:
        outcome = _simulate(
            scenario, lambda name, columns: chunks.setdefault(name, []).append(columns), interrupt, look
        )
        sources = {name: _kept(arrow.joined(parts)) for name, parts in chunks.items()}
        result = _in_memory(scenario, outcome, sources)
    return _unless_interrupted(result, interrupt)


def _run_to_disk(
    scenario: Scenario,
    out: Path,
    force: bool,
    figures: Sequence[str],
    look: _Look,
) -> Result:
    from linkweir.runs.directory import RunDirectory
    from linkweir.tables import arrow

    with _DeferredInterrupt() as interrupt:
        directory = RunDirectory(out, scenario, force=force)
        try:
            outcome = _simulate(
                scenario, lambda name, columns: directory.add(name, arrow.table(columns)), interrupt, look
            )
            result = directory.finish(outcome, figures)
        except BaseException as error:
            directory.fail(error)
            raise
    return _unless_interrupted(result, interrupt)


def _unless_interrupted(result: Result, interrupt: _DeferredInterrupt) -> Result:
    if result.status != "complete":
        raise Interrupted(result)
    if interrupt.pressed:
        raise KeyboardInterrupt  # came after the last safe point: the result is whole
    return result


def _kept(table: pa.Table) -> Callable[[], pa.Table]:
    return partial(_table, table)  # unlike a lambda, it can be pickled


def _table(table: pa.Table) -> pa.Table:
    return table


def _in_memory(scenario: Scenario, outcome: _native._Outcome, sources: Mapping[str, Callable[[], pa.Table]]) -> Result:
    return Result(
        scenario,
        sources,
        status="complete" if outcome["complete"] else "interrupted",
        simulated_s=outcome["simulated_s"],
        events=outcome["events"],
        packets=outcome["packets"],
        log_cut_s=outcome["log_cut_s"],
    )


def processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_many(
    scenarios: Sequence[AnyScenario],
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    on_result: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    """Simulates several scenarios in parallel and keeps the results in memory.

    All are checked before the first one runs. Results do not depend on `jobs` or on the order in which runs end.

    Args:
        scenarios: each in one of the forms that `run` takes.
        jobs: how many run at a time; as many as there are processors when None.
        progress: called after each run with the number of finished runs and the number of all.
        on_result: called with the index and result of each run when it ends, from the calling thread.

    Returns:
        The results, in the order of the scenarios.

    Raises:
        ScenarioError: one of them is wrong; nothing was run.
        TypeError: `scenarios` is one scenario instead of several.
        RunError: the first failure; the other runs are stopped.
        KeyboardInterrupt: Ctrl-C; the results that `on_result` received are complete.

    >>> base = {"duration": "1s", "scheduler": {"policy": "fifo"}, "class": [{"name": "all"}],
    ...         "flow": [{"class": "all", "kind": "greedy"}]}
    >>> results = run_many([{**base, "link": {"rate": f"{mbit}Mbit"}} for mbit in (1, 2, 3)])
    >>> [round(result.rows("classes")[0]["rate_bps"] / 1e6) for result in results]
    [1, 2, 3]
    """
    from linkweir.tables import arrow

    if jobs is not None and jobs < 1:
        raise ValueError("jobs must be at least 1")
    if isinstance(scenarios, (Mapping, Scenario, str, os.PathLike)):
        kind = type(scenarios).__name__
        raise TypeError(f"scenarios: is one scenario, a {kind}; run it with run(...), or give a list: run_many([...])")
    sound = [as_scenario(scenario) for scenario in scenarios]
    results: dict[int, Result] = {}

    def take(index: int, outcome: _native._Outcome, chunks: dict[str, list[list[_native._Column]]]) -> None:
        if not outcome["complete"]:
            return
        sources = {name: _kept(arrow.joined(parts)) for name, parts in chunks.items()}
        results[index] = _in_memory(sound[index], outcome, sources)
        if on_result is not None:
            on_result(index, results[index])
        if progress is not None:
            progress(len(results), len(sound))

    _native.run_batch([scenario.native for scenario in sound], jobs or processors(), take)
    return [results[index] for index in range(len(sound))]
