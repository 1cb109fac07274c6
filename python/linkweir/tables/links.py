# SPDX-License-Identifier: BSD-3-Clause
"""The links of a network in a few numbers each, and which of many are worth a look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkweir.tables import bins

if TYPE_CHECKING:
    from linkweir.tables.run_tables import RunTables

_GONE = ("dropped_limit_pkts", "dropped_policy_pkts", "dropped_age_pkts", "lost_link_pkts", "absent_pkts")


def links(run: RunTables) -> list[dict[str, Any]]:
    """One row per link of a network over warmup .. duration, in the network's order.

    Each has the ``link`` and its ``policy``, the means ``capacity_bps`` and ``used_bps``, and sums over its classes:
    ``sent_pkts``, ``sent_bytes`` and ``gone_pkts``, which were dropped by the queues, lost on the link, or came while
    it was absent.
    """
    scenario = run.scenario
    rows = _counted(run)
    means = bins.means_by(
        run.batches("link", ["link", "t_s", "capacity_bps", "used_bps"]),
        "link",
        ("capacity_bps", "used_bps"),
        interval_s=scenario.interval_s,
        from_s=scenario.warmup_s,
        to_s=run.simulated_s,
    )
    none = {"capacity_bps": None, "used_bps": None}
    return [row | means.get(link, none) for link, row in rows.items()]


def _counted(run: RunTables) -> dict[str, dict[str, Any]]:
    """The rows of `links` without means, by the name of the link."""
    scenario = run.scenario
    rows: dict[str, dict[str, Any]] = {
        link: {"link": link, "policy": scenario.of_link(link).policy, "sent_pkts": 0, "sent_bytes": 0, "gone_pkts": 0}
        for link in scenario.links
    }
    for row in run.rows("classes"):
        mine = rows[row["link"]]
        mine["sent_pkts"] += row["sent_pkts"]
        mine["sent_bytes"] += row["sent_bytes"]
        mine["gone_pkts"] += sum(row.get(key) or 0 for key in _GONE)
    return rows


def busiest(run: RunTables, most: int) -> list[str]:
    """Names of links in the network's order: all, or those that lost most packets and then those that sent most."""
    names = run.scenario.links
    if len(names) <= most or "classes" not in run.tables:
        return names[:most]
    rank = {row["link"]: (-row["gone_pkts"], -row["sent_bytes"]) for row in _counted(run).values()}
    kept = set(sorted(names, key=rank.__getitem__)[:most])
    return [name for name in names if name in kept]
