# SPDX-License-Identifier: BSD-3-Clause
"""A figure for another link than the paper's: its rate, its delay, its record of capacity, its Es/N0.

Only the runs change, so their identities do, and no run of the paper's link is taken for one of these. What the paper
prints is about its own link and is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from linkweir.reproduce.figure import Figure, FigureCase, Measure, Row, Scenario, Tables
from linkweir.scenarios import quantity
from linkweir.scenarios.quantity import OptionError
from linkweir.sizing import shortage

FASTER = (1e-3, 1e3)
"""Rates of links, as multiples of the paper's."""
ESN0_DB = (7, 20)
BRACKETS = " (the paper in brackets)"
"""Ends the titles of figures whose summaries show the paper's values."""


@dataclass(frozen=True)
class OwnLink:
    """What the reader gives of a link, as typed; None: the paper's."""

    link: str | None = None
    delay: str | None = None
    trace: Path | None = None
    esn0: int | None = None
    trace_keys: Mapping[str, Any] | None = None
    """Keys of ``[link]`` that describe `trace`."""

    @property
    def given(self) -> dict[str, Any]:
        """The options that are given, by their names."""
        options = {"--link": self.link, "--delay": self.delay, "--trace": self.trace, "--esn0": self.esn0}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def words(self) -> str:
        """For titles, and for the sentence below a figure."""
        return ", ".join(f"{name} {value}" for name, value in self.given.items())

    @property
    def suffix(self) -> str:
        """For the names of directories."""
        values = (Path(str(value)).stem if name == "--trace" else value for name, value in self.given.items())
        return "".join(f"-{name.strip('-')}-{value}" for name, value in zip(self.given, values, strict=True))


def on_link(figures: Sequence[Figure], own: OwnLink, paper_bps: float, *, scales: bool) -> list[Figure]:
    """The figures on the reader's link.

    Args:
        figures: the paper's.
        own: the reader's link.
        paper_bps: rate of the paper's link.
        scales: whether loads and reservations are parts of the link, and change with it.

    Raises:
        OptionError: a figure has no such quantity, or the value cannot be used.
    """
    if not own.given:
        return list(figures)
    for figure in figures:
        if not figure.cases:
            name, value = next(iter(own.given.items()))
            raise OptionError(name, value, f"{figure.heading} is theory: it has no runs; choose another figure")
    rate_bps = paper_bps
    if own.link is not None:
        rate_bps = quantity.rate_bps("--link", own.link)
    if own.trace is not None:
        if own.link is not None:
            raise OptionError(f"--link {own.link} --trace", own.trace, "give only one of --link, --trace")
        rate_bps = shortage.read(own.trace, own.trace_keys).mean_bps()
    factor = rate_bps / paper_bps
    if not FASTER[0] <= factor <= FASTER[1]:
        name = "--link" if own.trace is None else "--trace"
        least, most = (quantity.rate_text(times * paper_bps) for times in FASTER)
        raise OptionError(
            name, own.given[name], f"has a rate of {quantity.rate_text(rate_bps)}; {least} .. {most} is allowed"
        )
    return [_moved(figure, own, factor, scales=scales) for figure in figures]


def _moved(figure: Figure, own: OwnLink, factor: float, *, scales: bool) -> Figure:
    def converted(measure: Measure | None) -> Measure | None:
        return (
            None if measure is None else lambda results: [_row(r, own, factor, scales=scales) for r in measure(results)]
        )

    def measured(results: Sequence[tuple[FigureCase, Tables]]) -> list[Row]:
        return [_row(row, own, factor, scales=scales) for row in figure.measure(results)]

    reference = figure.reference
    if reference is not None and scales and own.trace is None:
        of_paper = reference
        reference = lambda: [_row(row, own, factor, scales=True, every=True) for row in of_paper()]  # noqa: E731
    else:
        reference = None
    in_brackets = figure.printed is not None and figure.printed.in_brackets
    return replace(
        figure,
        title=f"{figure.title.removesuffix(BRACKETS)} ({own.words})",
        cases=tuple(FigureCase(case.labels, _scenario(case.scenario, own, factor, scales)) for case in figure.cases),
        measure=measured,
        details=converted(figure.details),
        other_rows=converted(figure.other_rows),
        panels=tuple(replace(panel, theory=None) if own.trace is not None else panel for panel in figure.panels),
        columns=tuple(c for c in figure.columns if own.trace is None or "theory" not in c),
        reference=reference,
        summary=None if own.trace is not None or in_brackets else figure.summary,
        claimed=False,
        printed=None,
    )


def _row(row: Row, own: OwnLink, factor: float, *, scales: bool, every: bool = False) -> Row:
    """A row without theory on a record of capacity, which no theory here knows, or with theory's rates scaled."""
    if own.trace is not None:
        return {key: None if "theory" in key else value for key, value in row.items()}
    if not scales:
        return row
    theirs = {key for key, value in row.items() if key.endswith("_mbps") and ("theory" in key or every) and value}
    theirs |= {"theory_mbps", "level"} & row.keys() if every else {"theory_mbps"} & row.keys()
    return {key: value * factor if key in theirs and value is not None else value for key, value in row.items()}


def _scenario(scenario: Scenario, own: OwnLink, factor: float, scales: bool) -> Scenario:
    link = dict(scenario["link"])
    if own.esn0 is not None:
        if "satellite" not in link:
            raise OptionError("--esn0", own.esn0, "this paper's link has no Es/N0: only those of codes have")
        if not ESN0_DB[0] <= own.esn0 <= ESN0_DB[1]:
            raise OptionError("--esn0", own.esn0, f"must be {ESN0_DB[0]} .. {ESN0_DB[1]} dB")
        link["satellite"] = {**link["satellite"], "esn0_db": own.esn0}
    if own.delay is not None:
        if "delay" not in link:
            raise OptionError(
                "--delay", own.delay, "these sources do not react to delay, so it changes nothing; give --traffic tcp"
            )
        one_way_s = quantity.time_s("--delay", own.delay)
        link["delay"] = quantity.time_text(one_way_s)
        if "return_delay" in link:
            link["return_delay"] = link["delay"]
    if own.link is None and own.trace is None:
        return {**scenario, "link": link}
    if own.trace is not None:
        if "satellite" in link:
            raise OptionError(
                "--trace", own.trace, "the channel of codes sets what its link carries; give --link or --esn0"
            )
        del link["rate"]
        link |= {"trace": str(own.trace.resolve()), **(own.trace_keys or {})}
    else:
        link["rate"] = _times(link["rate"], factor)
    if "nominal" in link:
        link["nominal"] = _times(link["nominal"], factor)
    if not scales:
        return {**scenario, "link": link}
    return {
        **scenario,
        "link": link,
        "class": [_scaled(one, factor) for one in scenario["class"]],
        "flow": [_scaled(one, factor) for one in scenario["flow"]],
    }


def _scaled(table: Scenario, factor: float) -> Scenario:
    """A class or flow whose rate, and whose limit, is the same part of the link as before."""
    table = dict(table)
    if "rate" in table:
        table["rate"] = _times(table["rate"], factor)
    if "limit" in table:
        table["limit"] = f"{max(math.ceil(int(table['limit'].removesuffix('p')) * factor - 1e-9), 2)}p"
    return table


def _times(rate: Any, factor: float) -> Any:
    if isinstance(rate, dict):
        return {**rate, "mean": _times(rate["mean"], factor)}
    return f"{round(quantity.rate_bps('rate', rate) * factor)}bit"
