# SPDX-License-Identifier: BSD-3-Clause
"""The report of a comparison: one HTML file, with the answer before the figures that support it."""

from __future__ import annotations

import html
import json
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from linkweir.comparison import plot
from linkweir.comparison.plan import Link, Variant
from linkweir.comparison.promises import KEPT, MISSED, SINGLE, UNCLEAR, UNKNOWN, Promise
from linkweir.directories.build import build
from linkweir.directories.provenance import read_provenance
from linkweir.report import html_page
from linkweir.report.html_page import Cell, Group
from linkweir.sweeps.measures import CAPACITY, MEASURES, SHOWN, USED
from linkweir.sweeps.page import BUILD, unfinished

if TYPE_CHECKING:
    from linkweir.comparison.results import Results, Verdict

_MARKS = {KEPT: "good", MISSED: "bad", UNCLEAR: "open"}
_MOST_CLASSES = 40


def page(comparison: Results) -> str:
    """The whole page."""
    facts = comparison.facts
    labels = [one.label for one in facts.variants]
    title = f"{facts.name}: {_listed(labels)} compared"
    sweep = comparison.sweep
    body = f"""{unfinished(sweep.runs_done, sweep.runs_planned)}
<p>{_what(comparison)}</p>
<h2>Answer</h2>{answer(comparison)}
<h2>What each class got</h2>{tables(comparison)}
<h2>Distribution of the queueing delay</h2>
<p>Part of the packets that waited for at most so long, all seeds together. The further left a curve is, the shorter the
delay.</p>
{_figures(comparison, "delays")}
<h2>Rate, loss and delay side by side</h2>
{_figures(comparison, "measures")}
<h2>How each policy was set</h2>{_settings(comparison)}
<h2>How this was made</h2>{_provenance(comparison)}"""
    return html_page.document(title, body)


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _what(comparison: Results) -> str:
    facts = comparison.facts
    seeds = len(facts.seeds)
    links = _listed([link.label for link in facts.links])
    where = f"the link {links}" if len(facts.links) == 1 else f"{len(facts.links)} links ({links})"
    runs = "one run" if seeds == 1 else f"{seeds} runs with different random numbers"
    policies = _listed([one.label for one in facts.variants])
    on = f" by the TCP of {facts.where}" if facts.where else ""
    text = (
        f"The same traffic was sent over {where}{on}, scheduled by {policies} in turn. Each combination had {runs} of "
        f"{facts.duration_s:g} s; the first {facts.warmup_s:g} s of each are not counted. "
    )
    if seeds > 1:
        text += (
            "Figures are means over the runs, ± half of the 95 % confidence interval (Student's t). What is kept, "
            "missed or best is judged by wider limits, as losses and delays are skewed."
        )
    return html.escape(text)


def answer(comparison: Results) -> str:
    """Which policy kept which promise, as HTML."""
    facts = comparison.facts
    if not facts.promises:
        best = "".join(f"<li>{line}</li>" for line in _best(comparison))
        return f"<p>The scenario promises nothing to any class. The best policy for each:</p><ul>{best}</ul>"
    verdicts = comparison.verdicts
    said = "".join(f"<li>{line}</li>" for line in _sentences(comparison, verdicts))
    several = len(facts.links) > 1
    lines: list[Sequence[str | Cell] | Group] = []
    for promise in facts.promises:
        if several:
            lines.append(Group(promise.text))
        for link in facts.links:
            here = [v for v in verdicts if v.promise == promise and v.trace == link.label]
            cells = [Cell(_verdict(v), _MARKS.get(v.verdict, "open")) for v in here]
            lines.append([link.label if several else promise.text, *cells])
    headings = ["promise and link" if several else "promise", *(one.label for one in facts.variants)]
    below = (
        "A promise is about the mean over all seeds that there could be, of which the runs are a sample. Kept: this "
        "mean is within the bound (rates: within 1 % of it), missed: it is outside. Each is meant to be wrong at most "
        "once in 40 times. In each cell the mean, and in how many of the runs it was within the bound."
    )
    if any(v.verdict == UNCLEAR for v in verdicts):
        below += (
            " Unclear: these seeds cannot tell. The number of seeds that would decide supposes that further runs are "
            "like these."
        )
    if any(v.verdict == UNKNOWN for v in verdicts):
        below += " No data: the runs measured nothing of the class, because it sent nothing or because no run ended."
    if any(v.found.count == 1 for v in verdicts):
        below += f" 1 seed: {SINGLE[0].lower()}{SINGLE[1:]}"
    return f'<ul>{said}</ul>{html_page.table(headings, lines)}<p class="below">{below}</p>'


def _verdict(found: Verdict) -> str:
    """A verdict with the figures that it is about."""
    measure = MEASURES[found.promise.measure]
    lines = [found.text, measure.shown(found.found.mean, found.found.half)]
    return "\n".join([*lines, found.runs] if found.found.count > 1 else lines)


def _sentences(comparison: Results, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """For each policy what it kept and missed, policies of the same outcome together."""
    facts = comparison.facts
    outcomes: dict[tuple[str, ...], list[str]] = {}
    for one in facts.variants:
        mine = [v for v in verdicts if v.policy == one.label]
        outcomes.setdefault(tuple(v.verdict for v in mine), []).append(one.label)
    single = " in a single run" if any(v.found.count == 1 for v in verdicts) else ""
    ranked = sorted(outcomes.items(), key=lambda item: -sum(verdict == KEPT for verdict in item[0]))
    places = [(promise, link) for promise in facts.promises for link in facts.links]
    for outcome, labels in ranked:
        who = f"<b>{html.escape(_listed(labels))}</b>"
        parts = []
        for verdict, words in ((MISSED, "missed"), (UNCLEAR, "may have missed"), (UNKNOWN, "gave no data on")):
            hit = [place for place, found in zip(places, outcome, strict=True) if found == verdict]
            if hit:
                parts.append(f"{words} {html.escape(_listed(list(_places(hit, len(facts.links)))))}")
        if set(outcome) == {UNKNOWN}:
            yield f"{who}: no data."
        elif not parts:
            promises = "the promise" if len(facts.promises) == 1 else "every promise"
            yield f"{who} kept {promises}{_everywhere(comparison)}{single}."
        else:
            yield f"{who} {' and '.join(parts)}{' and kept all else' if KEPT in outcome else ''}{single}."
    free = [name for name in facts.classes[:_MOST_CLASSES] if name not in {promise.name for promise in facts.promises}]
    for name in free:
        for link in facts.links:
            who = f"class <b>{html.escape(name)}</b>, which has no promise,"
            where = "" if len(facts.links) == 1 else f"On {html.escape(link.label)} "
            line = f"{where}{who} lost {html.escape(_lost(comparison, link.label, name))}."
            yield line[:1].upper() + line[1:]


def _best(comparison: Results) -> Iterator[str]:
    """For each class and link the policies with the best figures."""
    facts = comparison.facts
    for name in facts.classes[:_MOST_CLASSES]:
        for link in facts.links:
            parts = []
            for key in ("rate", "loss", "delay_p99"):
                measure = MEASURES[key]
                means = {
                    one.label: comparison.estimate(link.label, one.label, name, key).mean for one in facts.variants
                }
                known = {label: measure.shown(mean) for label, mean in means.items() if mean is not None}
                labels = comparison.best(link.label, name, key)
                if not labels:
                    continue
                figures = list(dict.fromkeys(known[label] for label in labels))
                shown = f"({_listed(figures)}\N{NO-BREAK SPACE}{measure.unit})"
                who = f"under {_listed(labels)}"
                if len(figures) > 1:
                    parts.append(f"{measure.words} too close to tell {who} {shown}")
                elif len(labels) == len(known) > 1:
                    parts.append(f"{measure.words} the same under all {shown}")
                else:
                    parts.append(f"{'highest' if measure.more_is_better else 'lowest'} {measure.words} {who} {shown}")
            where = "" if len(facts.links) == 1 else f" on {link.label}"
            if parts:
                yield f"class <b>{html.escape(name)}</b>{html.escape(f'{where}: {_listed(parts)}.')}"


def _everywhere(comparison: Results) -> str:
    links = len(comparison.facts.links)
    return "" if links == 1 else " on both links" if links == 2 else " on every link"


def _lost(comparison: Results, trace: str, name: str) -> str:
    """The loss of a class, policies with the same figure together."""
    same: dict[str, list[str]] = {}
    for one in comparison.facts.variants:
        loss = comparison.estimate(trace, one.label, name, "loss").mean
        if loss is None and name in comparison.facts.fixed_load:
            same.setdefault("nothing, as it sent nothing,", []).append(one.label)
        elif comparison.estimate(trace, one.label, name, "rate").mean == 0:
            same.setdefault("everything or still waits for it", []).append(one.label)
        elif loss is not None:
            share = f"{100 * loss:.2g}" if loss < 0.1 else f"{100 * loss:.0f}"
            same.setdefault(f"{share}\N{NO-BREAK SPACE}%", []).append(one.label)
    return _listed([f"{share} under {_listed(labels)}" for share, labels in same.items()]) or "an unknown part"


def _places(hit: Sequence[tuple[Promise, Link]], links: int) -> Iterator[str]:
    """Promises with the links on which they were missed."""
    by_promise: dict[str, list[str]] = {}
    for promise, link in hit:
        by_promise.setdefault(promise.text, []).append(link.label)
    for text, labels in by_promise.items():
        everywhere = " on both links" if links == 2 else " on every link"
        where = "" if links == 1 else everywhere if len(labels) == links else f" on {_listed(labels)}"
        yield f"“{text}”{where}"


def tables(comparison: Results) -> str:
    """What each class got under each policy, a table for each link, as HTML."""
    facts = comparison.facts
    found = []
    for link in facts.links:
        if len(facts.links) > 1:
            found.append(f"<h3>{html.escape(link.label)}</h3>")
        lines: list[Sequence[str | Cell] | Group] = [Group("link"), *_link(comparison, link.label)]
        for name in facts.classes[:_MOST_CLASSES]:
            lines.append(Group(f"class {name}"))
            for key in SHOWN:
                line = _measured(comparison, link.label, name, key)
                if line is not None:
                    lines.append(line)
        found.append(html_page.table(["measure", *(one.label for one in facts.variants)], lines))
    more = len(facts.classes) - _MOST_CLASSES
    hidden = f" {more} more classes are in the data set only." if more > 0 else ""
    found.append(
        '<p class="below">Bold: the best of the line, and all that are not certainly worse. '
        f"Delays are queueing delays.{hidden}</p>"
    )
    return "".join(found)


def _link(comparison: Results, trace: str) -> Iterator[list[str | Cell]]:
    """The mean capacity of a link, and the part of it that was used."""
    labels = [one.label for one in comparison.facts.variants]
    for measure in (CAPACITY, USED):
        estimates = [comparison.link_estimate(trace, label, measure) for label in labels]
        yield [measure.heading, *(measure.shown(one.mean, one.half) for one in estimates)]


def _measured(comparison: Results, trace: str, name: str, key: str) -> list[str | Cell] | None:
    """One measure of a class under each policy; None if no policy has a value."""
    measure = MEASURES[key]
    estimates = [comparison.estimate(trace, one.label, name, key) for one in comparison.facts.variants]
    known = [one for one in estimates if one.mean is not None]
    if not known:
        return None
    best = comparison.best(trace, name, key)
    line: list[str | Cell] = [measure.heading]
    for variant, one in zip(comparison.facts.variants, estimates, strict=True):
        text = measure.shown(one.mean, one.half)
        line.append(Cell(text, "best") if len(best) < len(known) and variant.label in best else text)
    return line


def _figures(comparison: Results, kind: str) -> str:
    drawer = {"delays": plot.delays, "measures": plot.measures}[kind]
    found = []
    for number, link in enumerate(comparison.facts.links):
        if len(comparison.facts.links) > 1:
            found.append(f"<h3>{html.escape(link.label)}</h3>")
        title = f"{kind} of each class under each policy on {link.label}"
        found.append(html_page.figure(f"{kind}-{number}", title, drawer(comparison, link.label)))
    more = len(comparison.facts.classes) - plot.MOST_CLASSES
    if more > 0:
        found.append(f'<p class="below">{more} more classes are not drawn.</p>')
    return "".join(found)


def _settings(comparison: Results) -> str:
    facts = comparison.facts
    parts = [
        "<p>Keys of the scenario for which a policy has no parameter were left out. "
        "Everything else is the same for all:</p><ul>"
    ]
    for one in facts.variants:
        notes = "<br>".join(f"{html.escape(note)}." for note in one.notes or ("as the scenario has it",))
        name = one.label if one.label == one.policy else f"{one.label} ({one.policy})"
        parts.append(f"<li><b>{html.escape(name)}</b>: {notes}{_commands(one)}</li>")
    parts.append("</ul>")
    parts += [f"<p>{html.escape(note)}.</p>" for note in comparison.remarks]
    lines = [
        [one.label, where, ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items())]
        for one in facts.variants
        for where, keys in (("scheduler", one.scheduler), *((f"class {name}", k) for name, k in one.classes.items()))
        if keys
    ]
    table = html_page.table(["policy", "of", "parameters, with defaults"], lines)
    parts.append(f"<details><summary>All parameters as they ran</summary>{table}</details>")
    parts.append(
        "<details><summary>The scenario, with every default written out</summary>"
        f"<pre>{html.escape(facts.resolved)}</pre></details>"
    )
    return "".join(parts)


def _commands(variant: Variant) -> str:
    """The commands of tc that set a policy up in the laboratory."""
    if not variant.commands:
        return ""
    return f"<pre>{html.escape(chr(10).join(one if one[0] == '#' else f'tc {one}' for one in variant.commands))}</pre>"


def _provenance(comparison: Results) -> str:
    facts = comparison.facts
    about: dict[str, Any] = dict(build())
    command = ""
    if comparison.directory is not None:
        about = read_provenance(comparison.directory, comparison.sweep_kind)
        words = [str(word) for word in about.get("command", [])]
        if words[1:2] == ["compare"]:
            command = f'<pre class="command">{html.escape(shlex.join(["linkweir", *words[1:]]))}</pre>'
    lines = [
        ["scenario", facts.scenario or "given from Python"],
        *([["where", facts.where]] if facts.where else []),
        *([f"link {link.label}", f"{link.source}, SHA-256 {link.sha256}"] for link in facts.links if link.source),
        ["seeds", ", ".join(map(str, facts.seeds))],
        ["runs", f"{comparison.sweep.runs_done} of {comparison.sweep.runs_planned}"],
        *html_page.facts(about, {**BUILD, "started_utc": "started (UTC)", "platform": "platform"}),
    ]
    return f"{command}{html_page.table([], lines)}"
