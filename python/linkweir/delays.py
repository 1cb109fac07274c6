# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of delays: the table `delays` of runs, merged over seeds, its quantiles and its cumulative form.

A row of the table is a bucket of an HDR histogram: ``class``, ``flow`` (empty for all flows of the class), ``kind``
(``queueing`` or ``one-way``), ``lower_s``, ``upper_s`` and ``count_pkts``. The bounds are the same in every run, and a
bucket's width is at most 1/128 of its lower bound. So distributions of several runs are merged without loss by adding
counts.

>>> import linkweir
>>> scenario = {"duration": "1s", "link": {"rate": "12Mbit"}, "scheduler": {"policy": "fifo"},
...             "class": [{"name": "all"}], "flow": [{"class": "all", "kind": "greedy"}]}
>>> runs = linkweir.run_many([{**scenario, "seed": seed} for seed in (1, 2)])
>>> both = merge(run.delays for run in runs)
>>> queueing = quantiles(both)[0]
>>> queueing["kind"], queueing["count_pkts"], round(queueing["p50_s"], 3)
('queueing', 2000, 0.02)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkweir.columns import floats, reals, wholes

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

QUANTILES = (0.5, 0.95, 0.99, 0.999)
"""Quantiles that reports show."""
_OWNER = ("class", "flow", "kind")
_BUCKET = (*_OWNER, "lower_s", "upper_s")


def merge(tables: Iterable[pa.Table]) -> pa.Table:
    """One table for several runs: the counts of equal buckets are added.

    Args:
        tables: tables `delays`, of runs with different seeds for example, one at a time. Further columns are left out,
            so rows of a data set can be given as they are.

    Returns:
        A table `delays`: distributions in the order in which they first occur, buckets in rising order.

    Raises:
        ValueError: there is no table.
    """
    import pyarrow as pa

    merged: pa.Table | None = None
    for table in tables:
        part = with_links(table).select([*_BUCKET, "count_pkts"])
        merged = _summed(part if merged is None else pa.concat_tables([merged, part]))
    if merged is None:
        raise ValueError("tables: holds no table; give at least one")
    return merged


def with_links(table: pa.Table) -> pa.Table:
    """A table `delays` of a network, with the link in front of the class, as classes of several links may share a name.

    Args:
        table: a table `delays`; without a column ``link`` it is returned as it is.
    """
    if "link" not in table.column_names:
        return table
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [table[name].cast(pa.string()) for name in ("link", "class")]
    both = pc.binary_join_element_wise(*names, ": ")
    return table.set_column(table.column_names.index("class"), "class", both).drop_columns(["link"])


def _summed(table: pa.Table) -> pa.Table:

    order: dict[tuple[str, ...], int] = {}
    owners = zip(*(table[name].to_pylist() for name in _OWNER), strict=True)
    places = [order.setdefault(owner, len(order)) for owner in owners]
    table = table.append_column("place", wholes(places))
    found = table.group_by(["place", *_BUCKET], use_threads=False).aggregate([("count_pkts", "sum")])
    found = found.sort_by([("place", "ascending"), ("lower_s", "ascending")])
    return found.select([*_BUCKET, "count_pkts_sum"]).rename_columns([*_BUCKET, "count_pkts"])


@dataclass(frozen=True)
class Distribution:
    """One distribution of a table `delays`.

    Attributes:
        of: class.
        flow: flow; empty for all flows of the class.
        kind: ``queueing`` or ``one-way``.
        upper_s: upper bounds of its buckets, rising.
        packets: packets in each bucket.
    """

    of: str
    flow: str
    kind: str
    upper_s: np.ndarray[Any, np.dtype[np.float64]]
    packets: np.ndarray[Any, np.dtype[np.float64]]

    @property
    def name(self) -> str:
        """The flow, or the class where it is of all its flows."""
        return self.flow or self.of

    def cdf(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Part of the packets whose delay is below each of `upper_s`."""
        import numpy as np

        return np.asarray(np.cumsum(self.packets) / self.packets.sum(), dtype=float)

    def quantile(self, q: float) -> float:
        """The delay, seconds, that a part `q` of the packets does not exceed: at most 1/128 above the exact value.

        Raises:
            ValueError: q is not 0 .. 1.
        """
        import numpy as np

        if not 0.0 <= q <= 1.0:
            raise ValueError(f"q = {q!r}: must be 0 .. 1")
        rank = max(1.0, np.ceil(q * self.packets.sum() - 1e-9))
        return float(self.upper_s[np.searchsorted(np.cumsum(self.packets), rank)])


def distributions(table: pa.Table, kind: str | None = None) -> Iterator[Distribution]:
    """The distributions of a table `delays` one by one, each with at least one packet.

    Args:
        table: a table `delays` of one run, or what `merge` returns.
        kind: ``queueing`` or ``one-way``; both when None.
    """
    import numpy as np

    if not table.num_rows:
        return
    table = with_links(table)
    columns = [np.asarray(table[name].to_pylist()) for name in _OWNER]
    changes = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    starts = [0, *(np.flatnonzero(changes) + 1).tolist(), table.num_rows]
    upper_s = floats(table["upper_s"])
    packets = floats(table["count_pkts"])
    for start, end in itertools.pairwise(starts):
        of, flow, found = (str(column[start]) for column in columns)
        if kind in (None, found):
            yield Distribution(of, flow, found, upper_s[start:end], packets[start:end])


def quantiles(table: pa.Table, q: Sequence[float] = QUANTILES) -> list[dict[str, Any]]:
    """Quantiles of every distribution of a table `delays`.

    Args:
        table: a table `delays` of one run, or what `merge` returns.
        q: the quantiles, 0 .. 1.

    Returns:
        One row for each distribution: ``class``, ``flow``, ``kind``, ``count_pkts``, and for 0.99 ``p99_s``.

    Raises:
        ValueError: one of `q` is not 0 .. 1.
    """
    return [
        {"class": one.of, "flow": one.flow, "kind": one.kind, "count_pkts": int(one.packets.sum())}
        | {f"p{100 * part:g}_s": one.quantile(part) for part in q}
        for one in distributions(table)
    ]


def cdf(table: pa.Table) -> pa.Table:
    """The cumulative form of a table `delays`.

    Args:
        table: a table `delays` of one run, or what `merge` returns.

    Returns:
        ``class``, ``flow``, ``kind``, ``delay_s``, and ``part``: of the packets, those with a delay below ``delay_s``.
    """
    import numpy as np

    table = with_links(table)
    parts = [one.cdf() for one in distributions(table)]
    part = np.concatenate(parts) if parts else np.array([], dtype=float)
    found = table.select([*_OWNER, "upper_s"]).rename_columns([*_OWNER, "delay_s"])
    return found.append_column("part", reals(part.tolist()))
