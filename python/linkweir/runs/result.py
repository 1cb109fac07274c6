# SPDX-License-Identifier: BSD-3-Clause
"""The result of a run: tables, a summary, figures."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkweir import _native
from linkweir.directories.provenance import SCENARIO, read_provenance
from linkweir.fault import DirectoryError
from linkweir.scenarios.scenario import Scenario
from linkweir.tables import bins
from linkweir.tables.links import links
from linkweir.tables.run_tables import RunTables, table_files

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.figure import Figure

    from linkweir.diagnose import Finding

_ENDED = ("complete", "interrupted")
"""Status of the runs whose result can be read."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run early.

    Attributes:
        result: the results up to the interruption, with ``status == "interrupted"``.
    """

    def __init__(self, result: Result) -> None:
        super().__init__(f"interrupted at {result.simulated_s:g} s of {result.scenario.duration_s:g} s")
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.result,)


class Result(RunTables):
    """The result of a run.

    Tables are `pyarrow.Table`. The names of columns end in their units (`_s`, `_bps`, `_bytes`, `_pkts`); undefined
    values are null. A table that does not apply to a run, such as `harq` without a satellite, has its columns and no
    rows.

    Attributes:
        scenario: the scenario that was run.
        status: ``complete`` or ``interrupted``.
        simulated_s: simulated time reached, s.
        events: events the simulator ran.
        packets: packets the scheduler handed to the link.
        log_cut_s: simulated time at which the log of packets was full, if it was; later events are not in it.
        directory: the run directory, if one was written.
        tables: the tables the run has, by name.
    """

    def __init__(
        self,
        scenario: Scenario,
        sources: Mapping[str, Callable[[], pa.Table]],
        *,
        status: str,
        simulated_s: float,
        events: int,
        packets: int,
        log_cut_s: float | None = None,
        directory: Path | None = None,
    ) -> None:
        super().__init__(
            scenario, sources, status=status, simulated_s=simulated_s, log_cut_s=log_cut_s, directory=directory
        )
        self.events = events
        self.packets = packets

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Result:
        """Opens the result of an earlier run.

        Args:
            directory: a run directory whose run is complete or was interrupted.

        Raises:
            DirectoryError: it is not a run directory, or its run did not end.
        """
        return open_result(Path(directory))

    @property
    def series(self) -> pa.Table:
        """One row per bin and class: packets and bytes that arrived, left and were lost, sent_bps, delay, backlog."""
        return self.table("series")

    @property
    def link(self) -> pa.Table:
        """One row per bin: mean capacity_bps and used_bps. A beam's capacity is the rate of its best terminal."""
        return self.table("link")

    @property
    def hops(self) -> pa.Table:
        """One row per flow and link of a network that it passes, there or back: packets, losses, queueing delay."""
        return self.table("hops")

    @property
    def flow_series(self) -> pa.Table:
        """One row per bin and flow: delivered packets and bytes, goodput_bps; cwnd_pkts and srtt_s of TCP."""
        return self.table("flow_series")

    @property
    def levels(self) -> pa.Table:
        """One row per instant and class: the policy's state, such as credits; no rows if it shows none."""
        return self.table("levels")

    @property
    def classes(self) -> pa.Table:
        """One row per class over warmup .. duration: counts, rate_bps, loss, queueing delay and jitter.

        ``loss`` is a fraction: of the packets that arrived at the queue in this time, those that the queue dropped
        until the end of the run. Packets that still wait at the end are not lost, and losses on the link are in
        ``lost_link_pkts`` only. The counts are of events in this time, so ``dropped_limit_pkts`` and
        ``dropped_policy_pkts`` include packets that arrived during the warm-up. In the laboratory, whose kernel does
        not track single packets, ``loss`` is an upper bound.

        Jitter is the absolute difference between the one-way delays of consecutive packets of a flow, in order of
        delivery: mean (``jitter_mad_s``), 50th, 95th and 99th percentile over all flows of the class.
        """
        return self.table("classes")

    @property
    def flows(self) -> pa.Table:
        """One row per flow over warmup .. duration: counts, rates, one-way delay, jitter, and statistics of TCP.

        For TCP, ``transmitted_pkts`` counts all segments sent and ``retransmitted_pkts`` the retransmissions among
        them, in fast recovery (``_fast_``) or after a timeout (``_rto_``); ``spurious_pkts`` counts segments that were
        received twice, so that one of the two was sent in vain.

        ``jitter_mad_s`` and the percentiles are of the absolute difference between successive delays, and
        ``jitter_rfc3550_s`` is the last running estimate of RFC 3550, section 6.4.1.
        """
        return self.table("flows")

    @property
    def delays(self) -> pa.Table:
        """Distributions over warmup .. duration, one row per bucket: ``lower_s``, ``upper_s`` and ``count_pkts``.

        There are rows for every class, with an empty ``flow``, and for each flow with ``delays = true``. The ``kind``
        ``queueing`` is the delay in the queue, of packets sent; ``one-way`` is the delay from source to receiver, of
        packets delivered. `linkweir.delays` computes quantiles and cumulative distributions, and merges several runs.
        """
        return self.table("delays")

    @property
    def voice(self) -> pa.Table:
        """One row per interval of 10 s, flow and play-out buffer (the key ``playout``) over warmup .. duration.

        Of the packets that were due to be played, ``lost_pkts`` were dropped or lost and ``late_pkts`` came too late.
        ``gaps`` counts the runs of such packets, ``loss`` is their fraction, ``burst_r`` measures how bursty they are,
        and ``delay_s`` is the mean delay from creation to play-out. `linkweir.quality` rates the intervals.
        """
        return self.table("voice")

    @property
    def harq(self) -> pa.Table:
        """One row per flow of a satellite link over warmup .. duration: packets by attempts, coded bits, and packets
        the receiver held for too long and dropped.
        """
        return self.table("harq")

    @property
    def channel(self) -> pa.Table:
        """One row per bin and terminal of a beam: means of esn0_db, attenuation_db and the channel's rate_bps.

        ``outage`` is the fraction of the time without a rate, ``airtime`` the fraction in which the carrier sent to
        this terminal, and ``modcod`` the terminal's ModCod at the end of the bin (``none`` in an outage).
        """
        return self.table("channel")

    @property
    def carrier(self) -> pa.Table:
        """One row per bin of a beam: the carrier's occupancy, means over terminals of rate_mean_bps and outage."""
        return self.table("carrier")

    @property
    def terminals(self) -> pa.Table:
        """One row per terminal of a beam over warmup .. duration: Es/N0, attenuation, its channel, outage, airtime.

        ``modcod_changes`` counts changes of the ModCod; the beginning and the end of an outage count as changes.
        """
        return self.table("terminals")

    @property
    def members(self) -> pa.Table:
        """One row per bin and link of a bond: capacity_bps, used_bps, and ``up``, the fraction of the time in which the
        scheduler knew the link to be up.
        """
        return self.table("members")

    @property
    def bond_paths(self) -> pa.Table:
        """One row per class and link of a bond over warmup .. duration: packets sent over it, copies, repetitions,
        losses, and what the receiver dropped of it as duplicate or late.
        """
        return self.table("bond_paths")

    @property
    def bond_receivers(self) -> pa.Table:
        """One row per class of a bond over warmup .. duration: what its receiver handed out, held, gave up and dropped.

        ``reordered_pkts`` came after a later packet, ``late_pkts`` after they were given up.
        """
        return self.table("bond_receivers")

    @property
    def log(self) -> pa.Table:
        """One row per event of a packet, with ``log = "packets"``; read large logs with `batches`.

        ``event`` is ``created``, ``enqueued``, ``sent`` (the scheduler handed it to the link), ``delivered`` or
        ``dropped``; docs/reference/log.md has the details.
        """
        return self.table("packets")

    @property
    def transfers(self) -> pa.Table:
        """One row per transfer, response, page or segment of video that is complete: start, bytes, completion time."""
        return self.table("transfers")

    @property
    def completions(self) -> pa.Table:
        """One row per application: transfers, responses, pages or segments that began in warmup .. duration.

        ``finished`` counts those that were complete at the end of the run; the mean and percentiles of the completion
        times are over these. ``refused`` counts transfers that would have exceeded ``concurrent``.
        """
        return self.table("completions")

    @property
    def video(self) -> pa.Table:
        """One row per video, over its whole time: mean bit rate, switches, start-up delay, stalls, time played."""
        return self.table("video")

    def to_pandas(self, table: str) -> pd.DataFrame:
        """A table as a pandas data frame.

        Raises:
            TableError: no table is called so.
        """
        return self.table(table).to_pandas()

    def to_polars(self, table: str) -> pl.DataFrame:
        """A table as a polars data frame.

        Raises:
            TableError: no table is called so.
        """
        import polars as pl

        frame = pl.from_arrow(self.table(table))
        assert isinstance(frame, pl.DataFrame)
        return frame

    @property
    def summary(self) -> dict[str, Any]:
        """The run in a few numbers, for JSON: no NaN, units in the keys.

        ``classes`` has one entry per class, the columns of the table `classes`; ``link`` the means of capacity and use,
        of a network ``links`` one entry per link;
        ``carrier``, of a beam only, those of the table `carrier`. These means are over the time warmup .. duration; a
        bin in which the warm-up ends counts with its mean, weighted by the part after the warm-up. ``completions`` and
        ``video``, of applications only, are the tables of these names. ``notes`` are the notes of the run, and
        ``warnings`` those of `warnings`.
        """
        totals = self.tables["classes"].to_pylist() if "classes" in self.tables else []
        carrier = ("occupancy", "rate_mean_bps", "outage")
        return {
            "name": self.scenario.name,
            "status": self.status,
            "policy": self.scenario.policy,
            "seed": self.scenario.seed,
            "duration_s": self.scenario.duration_s,
            "warmup_s": self.scenario.warmup_s,
            "simulated_s": self.simulated_s,
            "packets": self.packets,
            **({"links": links(self)} if self.scenario.is_network else {"link": self._link_means()}),
            **({"carrier": self._means("carrier", carrier)} if "carrier" in self.tables else {}),
            "classes": totals,
            **{name: self.rows(name) for name in ("completions", "video") if name in self.tables},
            "notes": self.notes,
            "warnings": [finding.to_dict() for finding in self.warnings],
        }

    @cached_property
    def warnings(self) -> list[Finding]:
        """What should be known before the run is trusted, such as a missed reservation: docs/reference/diagnosis.md.

        Each has `kind`, `where`, `what`, `cure`, `figures` and `advice` (keys and values that remove the warning); as
        text it is one sentence with the cure.
        """
        from linkweir.diagnose import findings

        return findings(self)

    def _link_means(self) -> dict[str, float | None]:
        return self._means("link", ("capacity_bps", "used_bps"))

    def _means(self, table: str, columns: Sequence[str]) -> dict[str, float | None]:
        """Means from the warm-up to the end of the run."""
        return bins.means(
            self.batches(table, ["t_s", *columns]),
            columns,
            interval_s=self.scenario.interval_s,
            from_s=self.scenario.warmup_s,
            to_s=self.simulated_s,
        )

    def plot(self) -> Figure:
        """One figure over time: rates with the capacity, delays, drops, and the policy's state.

        A notebook shows the figure if it is the last value of a cell, or with ``display(result.plot())``. Elsewhere,
        save it with ``result.plot().savefig("run.pdf")``.
        """
        from linkweir.panels.plot import overview

        return overview(self)

    def __repr__(self) -> str:
        kept = "" if self.directory is None else f", in {self.directory}"
        return f"<Result {self.scenario.name!r}: {self.status}, {self.simulated_s:g} s, {self.packets} packets{kept}>"

    def _repr_html_(self) -> str:
        from linkweir.report import class_table

        return f"<p><b>{html.escape(self.scenario.name)}</b>: {self.status}</p>{class_table(self)}"


def open_result(directory: Path) -> Result:
    """Opens the result in a run directory.

    Raises:
        DirectoryError: it is not a run directory, or its run did not end.
    """
    provenance = read_provenance(directory)
    status = provenance["status"]
    if status not in _ENDED:
        why = "failed" if status == "failed" else "is still running or was killed"
        raise DirectoryError(f"{directory}: the run {why} (status {status}); there is no result to read")
    try:
        scenario = Scenario.load(directory / SCENARIO)
    except _native.ScenarioError as fault:
        raise DirectoryError(f"{directory}: its scenario cannot be read: {fault}") from fault
    return Result(
        scenario,
        table_files(directory),
        status=status,
        simulated_s=float(provenance["simulated_s"]),
        events=int(provenance["events"]),
        packets=int(provenance["packets"]),
        log_cut_s=provenance.get("log_cut_s"),
        directory=directory,
    )
