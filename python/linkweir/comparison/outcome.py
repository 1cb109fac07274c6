# SPDX-License-Identifier: BSD-3-Clause
"""The outcome of a comparison: its results, its report and its directory."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from linkweir.comparison.page import answer, page, tables
from linkweir.comparison.plan import Facts
from linkweir.comparison.results import Results
from linkweir.directories.provenance import REPORT, dump, write_whole, writing
from linkweir.fault import DirectoryError
from linkweir.sweeps.directory import COMPARISON
from linkweir.sweeps.outcome import Sweep

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison(Results):
    """The outcome of a comparison.

    Attributes:
        facts: the scenario, policies and promises that were compared.
        sweep: the runs: their data set, and the list of those that failed.
    """

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report: one HTML file with the answer, tables, figures and provenance.

        Raises:
            DirectoryError: it cannot be written.
        """
        target = Path(path)
        with writing(target.parent):
            write_whole(target, page(self))
        return target

    def to_pandas(self) -> pd.DataFrame:
        """`table` as a pandas data frame."""
        return self.table.to_pandas()

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Comparison:
        """Opens an earlier comparison, also an incomplete one.

        Raises:
            DirectoryError: the directory holds no comparison, or the comparison did not end.
        """
        folder = Path(directory)
        sweep = Sweep.load(folder)
        try:
            facts = Facts.from_dict(json.loads((folder / COMPARISON).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DirectoryError(f"{folder / COMPARISON}: cannot be read ({error}); is it a comparison?") from error
        return cls(facts, sweep)

    def write(self) -> None:
        """Writes what `load` needs and the report into its directory."""
        assert self.directory is not None
        with writing(self.directory):
            write_whole(self.directory / COMPARISON, dump(self.facts.to_dict()))
        if self.sweep.runs_done:
            self.report(self.directory / REPORT)

    def __repr__(self) -> str:
        policies = ", ".join(one.label for one in self.facts.variants)
        return f"<Comparison {self.facts.name!r} of {policies}: {self.status}, {self.sweep.runs_done} runs>"

    def _repr_html_(self) -> str:
        return answer(self) + tables(self)
