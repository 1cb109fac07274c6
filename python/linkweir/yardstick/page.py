# SPDX-License-Identifier: BSD-3-Clause
"""The page of the yardstick: promises, who dominates whom, pictures, every figure, and where the cases come from.

It has no times and no paths of directories, so that two runs give the same bytes.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linkweir.comparison.promises import KEPT, MISSED, UNCLEAR, UNKNOWN
from linkweir.report import html_page
from linkweir.report.html_page import Cell, Group
from linkweir.sweeps.page import BUILD, unfinished
from linkweir.yardstick import plot
from linkweir.yardstick.cases import AS_WRITTEN, CASES, FIELD, GROUPS
from linkweir.yardstick.figures import FIGURES
from linkweir.yardstick.results import Results, Row

_MARKS = {KEPT: "good", MISSED: "bad", UNCLEAR: "open", UNKNOWN: "open"}
_MOST_FAULTS = 3


def page(results: Results, about: Mapping[str, Any]) -> str:
    """The whole page.

    Args:
        results: what it shows.
        about: the build that did the runs, as `linkweir.directories.build.build` has it.
    """
    facts, sweep = results.facts, results.sweep
    title = f"Yardstick: {', '.join(facts.policies)}"
    groups = [(group, [place for place in facts.places if CASES[place[0]].group == group]) for group in GROUPS]
    pictures = "".join(
        f"<h3>{html.escape(_heading(group))}</h3>"
        + html_page.figure(f"group-{number}", f"figures of each case: {group}", plot.picture(results, places))
        for number, (group, places) in enumerate(groups)
        if places
    )
    body = f"""{unfinished(sweep.runs_done, sweep.runs_planned)}
<p>{html.escape(_what(results))}</p>
{"".join(html_page.warning(line) for line in faults(results))}
<h2>Promises</h2>{_promises(results)}
<h2>Who dominates whom</h2>{_dominance(results)}
{_cost(results)}<h2>Pictures</h2>{pictures}
<p class="below">Smaller is better, except for what is used. Values below 1 kbit and 0.1 ms are drawn there.</p>
<h2>Every figure</h2>{_every_figure(results)}
<h2>The cases</h2>{_cases(results)}
<h2>How each policy was set</h2>{_settings(results)}
<h2>How this was made</h2>{html_page.table([], html_page.facts(about, BUILD))}"""
    return html_page.document(title, body)


def place_name(case: str, load: str) -> str:
    """A case with its load, as tables show it."""
    return case if load == AS_WRITTEN else f"{case} ({load})"


def _heading(group: str) -> str:
    return f"{group[:1].upper()}{group[1:]}" if group == FIELD else group


def _what(results: Results) -> str:
    facts = results.facts
    seeds = len(facts.seeds)
    return (
        f"{len(facts.places)} cases, {len(facts.policies)} policies, {seeds} {'seeds' if seeds > 1 else 'seed'} each. "
        "In every case calls are urgent, a media class is promised a rate, and the rest has no promise. Figures are "
        "means over the seeds; percentiles are of the packets of all seeds together."
        + (f" The runs were done by {facts.kernel}." if facts.kernel else "")
    )


def faults(results: Results) -> Iterator[str]:
    """For each policy with failed runs how many and the first reasons; of a user's file, what breaks the contract."""
    for policy in results.facts.policies:
        found = results.faults(policy)
        if not found:
            continue
        planned = len(results.facts.seeds) * len(results.facts.places)
        word = "breaks the contract" if policy in results.facts.files else "failed"
        first = {fault: row for row, fault in reversed(found)}
        shown = list(reversed(first.items()))[:_MOST_FAULTS]
        reasons = "; ".join(f"{place_name(row.entry.case, row.entry.load)}: {fault}" for fault, row in shown)
        more = len(first) - len(shown)
        yield f"{policy} {word} in {len(found)} of {planned} runs: {reasons}{f'; and {more} more' if more else ''}"


def _promises(results: Results) -> str:
    facts = results.facts
    lines: list[Sequence[str | Cell]] = []
    for case, load in facts.places:
        rows = [results.row(case, load, policy) for policy in facts.policies]
        if all(row.promise == KEPT for row in rows):
            continue
        lines.append([place_name(case, load), *(Cell(_owed(row), _MARKS[row.promise]) for row in rows)])
    said = "".join(f"<li>{html.escape(line)}</li>" for line in promise_sentences(results))
    note = (
        "The media class should be sent its rate, or all that arrived if that is less; what is missing at the end of "
        "the run is owed. Kept and missed are judged over the seeds, as comparisons judge them."
    )
    table = html_page.table(["case", *facts.policies], lines) if lines else ""
    hidden = len(facts.places) - len(lines)
    kept = f" {hidden} cases in which every policy kept the promise are not listed." if hidden else ""
    return f'<ul>{said}</ul>{table}<p class="below">{note}{kept}</p>'


def _owed(row: Row) -> str:
    if row.promise == UNKNOWN:
        return row.verdict
    return f"{row.verdict}\nowes {FIGURES['owed'].shown(row.found.values['owed'])} kbit"


def promise_sentences(results: Results) -> Iterator[str]:
    """For each policy in how many cases it kept the promise, and which it missed."""
    facts = results.facts
    for policy in facts.policies:
        rows = [results.row(case, load, policy) for case, load in facts.places]
        parts = [f"{policy} kept the promise in {sum(row.promise == KEPT for row in rows)} of {len(rows)} cases"]
        for verdict in (MISSED, UNCLEAR, UNKNOWN):
            hit = [place_name(row.entry.case, row.entry.load) for row in rows if row.promise == verdict]
            if hit:
                parts.append(f"{verdict}: {', '.join(hit)}")
        yield "; ".join(parts)


def _dominance(results: Results) -> str:
    facts = results.facts
    lines: list[Sequence[str | Cell]] = []
    for case, load in facts.places:
        cells: list[str | Cell] = [place_name(case, load)]
        for policy in facts.policies:
            row = results.row(case, load, policy)
            if row.dominated_by:
                cells.append(f"by {', '.join(row.dominated_by)}")
            elif row.runs < row.planned:
                cells.append(f"not compared, {row.runs} of {row.planned} runs")
            else:
                cells.append(Cell("not dominated", "good"))
        lines.append(cells)
    note = (
        "A policy dominates another one in a case if none of its figures is worse as shown and one is better, "
        "certainly so over the seeds. What is not dominated is a choice between figures; there is no sum of them."
    )
    return f'{html_page.table(["case", *facts.policies], lines)}<p class="below">{note}</p>'


def cost_sentence(results: Results) -> str:
    """Instructions per packet of each policy; empty if they were not asked for."""
    counts = results.facts.instructions
    said = ", ".join(f"{policy} {_count(count)}" for policy, count in counts.items())
    return f"instructions per packet: {said}" if said else ""


def _count(count: int | None) -> str:
    return "not counted" if count is None else f"{count:,}"


def _cost(results: Results) -> str:
    counts = results.facts.instructions
    if not counts:
        return ""
    table = html_page.table(["policy", "instructions per packet"], [[one, _count(n)] for one, n in counts.items()])
    note = (
        "Of the simulator with the policy, counted by callgrind on an overloaded link without TCP; differences below "
        "2 % between policies mean nothing."
    )
    missing = "; ".join(f"{policy}: {why}" for policy, why in results.facts.not_counted.items())
    if missing:
        note += f" Not counted: {html.escape(missing)}."
    return f'<h2>Cost</h2>{table}<p class="below">{note}</p>'


def _every_figure(results: Results) -> str:
    facts = results.facts
    lines: list[Sequence[str | Cell] | Group] = []
    for case, load in facts.places:
        lines.append(Group(f"{place_name(case, load)}: {CASES[case].title}"))
        rows = [results.row(case, load, policy) for policy in facts.policies]
        lines += [[row.entry.policy, Cell(row.verdict, _MARKS[row.promise]), *_cells(row, rows)] for row in rows]
    headings = ["policy", "promise", *(about.heading.removesuffix(" ()") for about in FIGURES.values())]
    note = (
        "Bold: the best of a case. - : the case has no such figure, because it has no fade, no film, or no two "
        "downloads that send all the time. "
        "> : a percentile of the packets that left; more were dropped than it leaves out."
    )
    return f'{html_page.table(headings, lines)}<p class="below">{note}</p>'


def _cells(row: Row, rows: Sequence[Row]) -> Iterator[str | Cell]:
    for key, about in FIGURES.items():
        ranks = [other.found.rank(key) for other in rows if key in other.found.values]
        best = (max if about.more_is_better else min)(ranks, default=0.0)
        shown = row.found.shown(key)
        yield Cell(shown, "best") if len(set(ranks)) > 1 and row.found.rank(key) == best else shown


def _cases(results: Results) -> str:
    facts = results.facts
    hashes = {entry.case: entry.trace_sha256 for entry in facts.entries}
    lines: list[Sequence[str | Cell] | Group] = []
    for group, common in GROUPS.items():
        found = [case for case in CASES.values() if case.group == group and case.name in hashes]
        if found:
            lines.append(Group(f"{_heading(group)}{f', all without {common}' if common else ''}"))
        lines += [
            [case.name, case.title, case.source, case.left_out, f"{case.duration_s} s", hashes[case.name] or "-"]
            for case in found
        ]
    headings = ["case", "what", "source", "left out or changed", "duration", "SHA-256 of the trace"]
    return html_page.table(headings, lines)


def _settings(results: Results) -> str:
    facts = results.facts
    parts = []
    for policy in facts.policies:
        notes: dict[tuple[str, ...], list[str]] = {}
        for entry in facts.entries:
            if entry.policy == policy:
                notes.setdefault(entry.notes, []).append(place_name(entry.case, entry.load))
        lines = [
            ["; ".join(note) or "as the case has it", _where(places, facts.places)] for note, places in notes.items()
        ]
        parts.append(f"<h3>{html.escape(policy)}</h3>{html_page.folded(['set', 'in'], lines)}")
    return "".join(parts)


def _where(here: Sequence[str], places: Sequence[tuple[str, str]]) -> str:
    return "every case" if len(here) == len(places) else ", ".join(here)
