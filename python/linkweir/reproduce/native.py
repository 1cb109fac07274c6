# SPDX-License-Identifier: BSD-3-Clause
"""Runs what figures need in the simulator, on the executors that sweeps use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from linkweir.directories.parts import Parts
from linkweir.fault import RunError
from linkweir.reproduce.execute import Runner
from linkweir.reproduce.figure import Row, Scenario, Tables, identity
from linkweir.scenarios.scenario import Scenario as Sound
from linkweir.sweeps.execute import Executor
from linkweir.sweeps.job import Answer, Job, read_rows, read_tables
from linkweir.sweeps.local import LocalProcesses


class PackedTables:
    """The tables of a run, still compressed: a reproduction keeps thousands."""

    def __init__(self, tables: dict[str, bytes]) -> None:
        self._tables = tables

    def rows(self, table: str) -> list[Row]:
        """All rows of a table as dicts, null as None.

        Raises:
            KeyError: there is no table of this name.
        """
        rows: list[Row] = read_rows(self._tables[table]).to_pylist()
        return rows


def runner(jobs: int | None) -> Runner:
    """Runs scenarios on `jobs` processes of this machine; on as many as there are processors when None."""
    return on(LocalProcesses(jobs))


def on(executor: Executor, parts: Parts | None = None) -> Runner:
    """Runs scenarios on an executor.

    Args:
        executor: does the runs.
        parts: where the results of single runs are kept; what is there already is not run again.

    Returns:
        A runner that raises `linkweir.RunError` at the first run that fails, and `linkweir.ExecutorError` when the
        executor has no workers.
    """

    def run(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        names: dict[int, str] = {}

        # The executor draws jobs while it hands over answers: `names` has just the runs that are drawn and unanswered.
        def missing() -> Iterator[Job]:
            for number, scenario in enumerate(scenarios, 1):
                name = identity(scenario)
                found = None if parts is None else parts.read(name, read_tables)
                if found is not None:
                    take(number - 1, PackedTables(found))
                else:
                    names[number] = name
                    yield _job(number, name, scenario)

        def keep(answer: Answer) -> None:
            name = names.pop(answer.number, None)
            if name is None:
                return
            if answer.rows is None or answer.fault:
                raise RunError(f"{scenarios[answer.number - 1].get('name', 'a run')}: {answer.fault}")
            if parts is not None:
                parts.add(name, answer.rows)
            take(answer.number - 1, PackedTables(read_tables(answer.rows)))

        executor.run(missing(), keep)
        if names:
            raise RunError(f"{len(names)} of {len(scenarios)} runs: the executor gave no answer")

    return run


def _job(number: int, name: str, scenario: Scenario) -> Job:
    """A job that returns all tables.

    Its identity is that of the figure's run, which is made of the scenario alone. So the scenario may name no files:
    what they hold would not count.
    """
    sound = Sound.from_dict(scenario)
    if sound.inputs:
        raise ValueError(f"{sound.name}: names {sound.inputs[0][1]}; the scenarios of figures name no files")
    return Job(number, name, sound.resolved, sound.seed, (), whole=True)
