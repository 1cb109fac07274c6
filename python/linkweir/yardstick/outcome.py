# SPDX-License-Identifier: BSD-3-Clause
"""The outcome of the yardstick: its results, its page and its directory."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from linkweir.directories.build import build
from linkweir.directories.provenance import REPORT, dump, read_provenance, write_whole, writing
from linkweir.fault import DirectoryError
from linkweir.sweeps.directory import YARDSTICK
from linkweir.sweeps.outcome import KIND, Sweep
from linkweir.yardstick.page import page
from linkweir.yardstick.plan import Facts
from linkweir.yardstick.results import Results


@dataclass(frozen=True)
class Yardstick(Results):
    """The outcome of the yardstick; `rows` has a row for each policy in each case.

    Attributes:
        facts: the policies, cases and seeds.
        sweep: the runs: their data set, and the list of those that failed.
    """

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page: one HTML file.

        Raises:
            DirectoryError: it cannot be written.
        """
        target = Path(path)
        folder = self.sweep.directory
        about = build() if folder is None else read_provenance(folder, KIND)
        with writing(target.parent):
            write_whole(target, page(self, about))
        return target

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Yardstick:
        """Opens an earlier one, also an incomplete one.

        Raises:
            DirectoryError: the directory holds none, or it did not end.
        """
        folder = Path(directory)
        sweep = Sweep.load(folder)
        try:
            facts = Facts.from_dict(json.loads((folder / YARDSTICK).read_text(encoding="utf-8"))["facts"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DirectoryError(f"{folder / YARDSTICK}: cannot be read ({error}); is it a yardstick?") from error
        return cls(facts, sweep)

    def write(self) -> None:
        """Writes what `load` needs, the rows and the page into its directory."""
        assert self.sweep.directory is not None
        with writing(self.sweep.directory):
            content = {"facts": self.facts.to_dict(), "rows": self.records}
            write_whole(self.sweep.directory / YARDSTICK, dump(content))
        if self.sweep.runs_done or self.sweep.failures:
            self.report(self.sweep.directory / REPORT)

    def __repr__(self) -> str:
        return f"<Yardstick of {', '.join(self.facts.policies)}: {self.sweep.status}, {self.sweep.runs_done} runs>"
