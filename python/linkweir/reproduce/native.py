# SPDX-License-Identifier: BSD-3-Clause
"""Where figures meet the simulator: their runs are done by whoever does those of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from linkweir.fault import RunError
from linkweir.reproduce.execute import Runner
from linkweir.reproduce.figure import Row, Scenario, Tables
from linkweir.scenario import Scenario as Sound
from linkweir.sweeps.execute import Executor
from linkweir.sweeps.job import Answer, Job, identity, read_rows, read_tables
from linkweir.sweeps.local import LocalProcesses
from linkweir.sweeps.parts import Parts


class Run:
    """The tables of a run, kept as small as they came: a reproduction has thousands."""

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
    """Runs scenarios wherever the executor has them run.

    Args:
        executor: who does the runs.
        parts: where the results of single runs are kept; what is there already is not run again.

    Returns:
        A runner that raises `linkweir.RunError` at the first run that fails, and `linkweir.ExecutorError` when the
        executor has no workers.
    """

    def run(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
        names: dict[int, str] = {}

        def missing() -> Iterator[Job]:
            for number, scenario in enumerate(scenarios, 1):
                job = job_of(number, scenario)
                found = None if parts is None else parts.read(job.identity, read_tables)
                if found is not None:
                    take(number - 1, Run(found))
                else:
                    names[number] = job.identity
                    yield job

        def keep(answer: Answer) -> None:
            name = names.pop(answer.number, None)
            if name is None:
                return
            if answer.rows is None or answer.fault:
                raise RunError(f"{scenarios[answer.number - 1].get('name', 'a run')}: {answer.fault}")
            if parts is not None:
                parts.add(name, answer.rows)
            take(answer.number - 1, Run(read_tables(answer.rows)))

        executor.run(missing(), keep)
        if names:
            raise RunError(f"{len(names)} of {len(scenarios)} runs: the executor gave no answer")

    return run


def job_of(number: int, scenario: Scenario) -> Job:
    """A run of which all tables are wanted."""
    sound = Sound.from_dict(scenario)
    inputs = tuple((name, content) for name, _, content in sound.inputs)
    same = identity(sound.resolved, sound.seed, inputs)
    return Job(number, same, sound.resolved, sound.seed, inputs, whole=True)
