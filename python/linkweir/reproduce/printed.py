# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that a paper prints of its figures and tables, and how ours compare with them.

We had only the texts of the papers, not their pictures. A point of a curve that no sentence and no table prints
is therefore unknown, and figures, pages and reports say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Row = dict[str, Any]
"""The same as in `figure.py`, which knows this module."""

How = Literal["exactly", "about", "up to", "expected", "at least", "at most", "between"]
"""How a paper prints a number: as a value, roughly, as the largest that is reached, as what theory wants and the paper
finds; or as a bound, or as two."""
BOUNDS = ("at least", "at most", "between")
WORDS: dict[How, str] = {
    "exactly": "",
    "about": "about ",
    "up to": "up to ",
    "expected": "",
    "at least": "more than ",
    "at most": "at most ",
    "between": "",
}
UNITS = ("%", "Mbit/s", "bit", "ms", "s", "MOS", "ratio", "users")

UNREAD = "The published figure could not be read: we had only the paper's text"


@dataclass(frozen=True)
class Number:
    """One printed number.

    Attributes:
        what: which quantity, of which curve and where.
        printed: the digits as they are printed; the lower one of two bounds.
        unit: one of `UNITS`.
        source: section or table of the paper.
        column: the column of our rows with the same quantity.
        where: the rows it is about, by their columns.
        how: how exactly it is printed.
        upper: the upper one of two bounds, as printed.
        scale: units per unit of the column.
        shown: format of our value.
        measure: gives our value from all rows, in the unit, where no single row has it.
        again: whether the same digits are counted elsewhere already.
        remark: what is known of it otherwise.
    """

    what: str
    printed: str
    unit: str
    source: str
    column: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    how: How = "exactly"
    upper: str = ""
    scale: float = 1.0
    shown: str = ".2f"
    measure: Callable[[Sequence[Row]], float | None] | None = None
    again: bool = False
    remark: str = ""

    @property
    def value(self) -> float:
        """The printed number; the lower one of two bounds."""
        return float(self.printed)

    @property
    def text(self) -> str:
        """As a table shows it.

        >>> Number("loss", "3", "%", "Section V", how="about").text
        'about 3 %'
        >>> Number("best and worst flow", "10", "%", "Section 6.3.3", how="between", upper="40").text
        '10 to 40 %'
        """
        unit = {"ratio": "", "MOS": ""}.get(self.unit, f" {self.unit}")
        return f"{WORDS[self.how]}{self.printed}{f' to {self.upper}' if self.upper else ''}{unit}"

    def ours(self, rows: Sequence[Row]) -> float | None:
        """Our value, rounded as it is shown, or None where no row has it."""
        found = self.measure(rows) if self.measure is not None else self._of_row(rows)
        return None if found is None else float(format(found, self.shown))

    def _of_row(self, rows: Sequence[Row]) -> float | None:
        for row in rows:
            same = all(key in row and row[key] == wanted for key, wanted in self.where.items())
            if same and row.get(self.column) is not None:
                return float(row[self.column]) * self.scale
        return None


@dataclass(frozen=True)
class Comparison:
    """A printed number and ours."""

    number: Number
    ours: float

    @property
    def difference(self) -> float:
        """Ours less the printed number; of bounds how far ours is outside, 0 inside."""
        number = self.number
        if number.how == "at least":
            return min(self.ours - number.value, 0.0)
        if number.how == "at most":
            return max(self.ours - number.value, 0.0)
        if number.how == "between":
            return min(self.ours - number.value, 0.0) or max(self.ours - float(number.upper), 0.0)
        return self.ours - number.value

    @property
    def holds(self) -> bool | None:
        """Whether ours is inside the bounds; None for a number that is none."""
        return self.difference == 0 if self.number.how in BOUNDS else None

    @property
    def part(self) -> float:
        """The difference as a part of the printed number."""
        return abs(self.difference) / abs(self.number.value)

    @property
    def text(self) -> str:
        """The difference as a table shows it.

        >>> Comparison(Number("a", "0.55", "Mbit/s", "Table 3", shown=".3f"), 0.538).text
        '-0.012 (-2.2 %)'
        >>> Comparison(Number("a", "3", "%", "Section V", how="about"), 2.18).text
        '-0.82 points'
        >>> Comparison(Number("a", "20", "%", "Section V", how="at least"), 21.6).text
        'holds'
        """
        if self.holds:
            return "holds"
        lead = "" if self.holds is None else "does not hold: "
        gap = _signed(self.difference, decimals(self.number, self.ours))
        if self.number.unit == "%":
            return f"{lead}{gap} points"
        return f"{lead}{gap} ({_signed(100 * self.difference / self.number.value, 1)} %)"


def decimals(number: Number, ours: float) -> int:
    """Digits behind the point of a difference: as many as the two have."""
    shown = format(ours, number.shown)
    return max(len(text.partition(".")[2]) for text in (shown, number.printed))


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return text.replace("+", "").replace("-", "") if float(text) == 0 else text


@dataclass(frozen=True)
class Printed:
    """What the paper's text prints of a figure or table.

    Attributes:
        numbers: each with our counterpart.
        table: whether it is a table of the paper, which can be read as a whole.
        in_brackets: whether our summary has the numbers in brackets already.
        remark: a sentence on what else the text says of the values.
    """

    numbers: tuple[Number, ...] = ()
    table: bool = False
    in_brackets: bool = False
    remark: str = ""

    @property
    def sentence(self) -> str:
        """What could be read of it."""
        if self.table:
            return self.remark
        some = (
            "; we compare with the numbers that its text or tables print"
            if self.numbers
            else ", which prints no value of it"
        )
        return f"{UNREAD}{some}." + (f" {self.remark}" if self.remark else "")

    def said(self, compared: Sequence[Comparison]) -> str:
        """The sentence, where these are the numbers that our rows have a counterpart of."""
        if self.table or not self.numbers or compared:
            return self.sentence
        return f"{UNREAD}; the numbers that it prints belong to cases that were not run here."

    def compare(self, rows: Sequence[Row]) -> list[Comparison]:
        """The numbers that our rows have a counterpart of."""
        pairs = [(number, number.ours(rows)) for number in self.numbers]
        return [Comparison(number, ours) for number, ours in pairs if ours is not None]


HEADINGS = ["printed number", "published", "source", "ours", "difference"]


def grid(compared: Sequence[Comparison]) -> tuple[list[str], list[list[str]]]:
    """The comparisons as a table."""
    return HEADINGS, [
        [
            one.number.what,
            one.number.text + (f" ({one.number.remark})" if one.number.remark else ""),
            one.number.source,
            format(one.ours, one.number.shown),
            one.text,
        ]
        for one in compared
    ]


NEAR = (0.05, 0.1, 0.25)
"""Parts of a printed number within which ours are counted."""


def tally(compared: Iterable[Comparison]) -> str:
    """How many numbers agree within what, in a sentence.

    >>> numbers = [Number("a", "1.0", "ratio", "Table 3"), Number("b", "3", "%", "Section V", how="at least")]
    >>> tally([Comparison(numbers[0], 1.07), Comparison(numbers[1], 2.9)])
    '1 printed value: 0 within 5 %, 1 within 10 %, 1 within 25 % of it. 1 printed bound: 0 hold.'
    """
    every = list(compared)
    values = [one for one in every if one.holds is None]
    bounds = [one for one in every if one.holds is not None]
    said = []
    if values:
        # a difference of 0.05 of 1.0 is one of 5 %, whatever binary fractions make of it
        near = ", ".join(f"{sum(o.part <= part + 1e-9 for o in values)} within {100 * part:g} %" for part in NEAR)
        said.append(f"{len(values)} printed value{'s' * (len(values) > 1)}: {near} of it.")
    if bounds:
        held = sum(bool(one.holds) for one in bounds)
        said.append(f"{len(bounds)} printed bound{'s' * (len(bounds) > 1)}: {held} hold.")
    return " ".join(said)


def furthest(compared: Iterable[Comparison]) -> Comparison | None:
    """The value that is furthest from the printed one, as a part of it."""
    values = [one for one in compared if one.holds is None]
    return max(values, key=lambda one: one.part, default=None)
