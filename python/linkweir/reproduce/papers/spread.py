# SPDX-License-Identifier: BSD-3-Clause
"""Means over runs and their 95 % confidence intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from linkweir.reproduce.figure import Row

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % quantiles of Student's distribution for 1, 2, ... degrees of freedom."""


def student(freedom: int) -> float:
    """97.5 % quantile of Student's distribution; beyond the table by the normal one's expansion, to 0.1 %.

    >>> [round(student(freedom), 2) for freedom in (1, 9, 11, 39)]
    [12.71, 2.26, 2.2, 2.02]
    """
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % confidence interval of the mean, or None from one value.

    >>> round(half_width([1.0, 2.0, 3.0]), 2)
    2.48
    """
    if len(values) < 2:
        return None
    return student(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def means(runs: Sequence[Mapping[str, float]]) -> Row:
    """Means over the runs, each with half the width of its interval as `_ci95`."""
    row: Row = {}
    for name in runs[0]:
        values = [run[name] for run in runs]
        row[name] = statistics.fmean(values)
        row[f"{name}_ci95"] = half_width(values)
    return row


def with_spread(row: Row, name: str, digits: int) -> str:
    """A mean and half the width of its interval.

    >>> with_spread({"loss": 1.604, "loss_ci95": 0.25}, "loss", 2), with_spread({"x": None, "x_ci95": None}, "x", 2)
    ('1.60 ± 0.25', '-')
    """
    if row[name] is None:
        return "-"
    spread = row[f"{name}_ci95"]
    return f"{row[name]:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread is not None else "")
