# SPDX-License-Identifier: BSD-3-Clause
"""Runs the scenarios of the gallery and writes its pages: an index, and for each scenario picture, figures and file.

    .venv/bin/python docs/pictures/gallery.py build/gallery     index.md, NAME.md, NAME.svg and NAME-small.svg
    .venv/bin/python docs/pictures/gallery.py --list            the list in scenarios/README.md

gallery.toml says what is shown. A picture's runs use all cores; run times are those of one processor on this machine.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import draw
import linkweir
import measure
from linkweir import Result, quality

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIOS = REPOSITORY / "scenarios"
DATA = Path(__file__).parent / "gallery.toml"
LIST = SCENARIOS / "README.md"
MOST_POINTS = 160
MOST_CURVES = 8
FACT = re.compile(
    r"(?:(?P<run>[^:]+): )?(?:(?P<of>sum|mean|min|max) )?"
    r"(?P<table>\w+)/(?P<name>[\w.: -]*)/(?P<column>[\w.-]+(?: [\d.]+)?)(?: \* (?P<scale>[\d.e+-]+))?"
)


@dataclass(frozen=True)
class Entry:
    """One scenario of the gallery.

    Attributes:
        file: its file in scenarios/.
        question: what it answers.
        see: what its run shows; names in braces are facts.
        facts: numbers of the run, such as "classes/af/rate_bps * 1e-6"; "drr: ..." is of a variant.
        ratios: further numbers, computed from facts.
        claims: what holds of the facts and ratios.
        panels: what the picture shows, see `panel`.
        variants: further runs, with keys that differ; an empty text removes a key, `words` describe it.
        title: heading.
    """

    file: str
    title: str
    question: str
    see: str
    facts: Mapping[str, str]
    claims: list[str]
    panels: list[dict[str, Any]]
    ratios: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    main: str = ""
    """How the scenario's own run is called where variants are drawn, too."""

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.file.removesuffix(".toml")

    @property
    def command(self) -> str:
        """What runs it."""
        return f"linkweir run scenarios/{self.file} --out runs/{self.name}"


@dataclass(frozen=True)
class Seen:
    """What the runs of an entry gave."""

    facts: dict[str, float]
    panels: list[draw.Panel]
    classes: list[dict[str, Any]]
    seconds: float
    packets: int


def entries() -> list[Entry]:
    """The entries of gallery.toml."""
    return [Entry(**one) for one in tomllib.loads(DATA.read_text())["entry"]]


def look(entry: Entry) -> Seen:
    """Runs an entry with its variants and measures it."""
    keys = tomllib.loads((SCENARIOS / entry.file).read_text())
    path = SCENARIOS / entry.file
    linkweir.run(SCENARIOS / "pss-fade.toml")  # what is loaded once is not a part of the time measured
    start = time.process_time()
    results = {"": linkweir.run(path)}
    seconds = time.process_time() - start
    for name, changes in entry.variants.items():
        results[name] = linkweir.run(linkweir.Scenario.from_dict(changed(keys, changes), path=path))
    facts = {name: fact(results, text) for name, text in entry.facts.items()}
    facts |= {name: computed(text, facts) for name, text in entry.ratios.items()}
    labels = {"": entry.main, **{name: name for name in entry.variants}}
    panels = [panel(results, labels, facts, **one) for one in entry.panels]
    return Seen(facts, panels, measure.all_rows(results[""], "classes"), seconds, results[""].packets)


def changed(keys: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario with other values; `class.0.limit` is a key of the first class, and `class.*.limit` of all."""
    import copy

    found = copy.deepcopy(keys)
    for place, value in changes.items():
        if place == "words":
            continue
        *way, last = place.split(".")
        tables: list[Any] = [found]
        for step in way:
            tables = [
                below
                for table in tables
                for below in (table if step == "*" else [table[int(step)] if isinstance(table, list) else table[step]])
            ]
        for table in tables:
            if value == "":
                table.pop(last, None)
            else:
                table[last] = value
    return found


def fact(results: Mapping[str, Result], text: str) -> float:
    """A number of a run, such as "classes/af/rate_bps * 1e-6" or "delays/call/0.99 * 1e3"."""
    found = FACT.fullmatch(text)
    if found is None:
        raise ValueError(f"not the notation of a fact: {text}")
    result, scale = results[found["run"] or ""], float(found["scale"] or 1)
    if found["table"] == "delays":
        kind, _, quantile = found["column"].rpartition(" ")
        return measure.distribution(result, found["name"], kind).quantile(float(quantile)) * scale
    rows = (
        [row for row in quality.voice(result).to_pylist() if measure.is_copy(row["flow"], found["name"])]
        if found["table"] == "calls"
        else measure.rows(result, found["table"], found["name"])
        if found["name"]
        else result.table(found["table"]).to_pylist()
    )
    values = [row[found["column"]] for row in rows if row[found["column"]] is not None]
    if found["of"] is None and len(values) != 1:
        raise ValueError(f"{text}: {len(values)} values; say sum, mean, min or max")
    mean = sum(values) / len(values)
    return {"sum": sum(values), "min": min(values), "max": max(values), "mean": mean, None: mean}[found["of"]] * scale


def panel(
    results: Mapping[str, Result],
    labels: Mapping[str, str],
    facts: Mapping[str, float],
    *,
    show: str,
    title: str,
    of: list[str] | None = None,
    runs: list[str] | None = None,
    bars: Mapping[str, Mapping[str, str]] | None = None,
    y: str = "",
    x: str = "",
    log: bool = False,
    capacity: bool = True,
    shaded: tuple[float, float] | None = None,
) -> draw.Panel:
    """One pair of axes, by `show`.

    Over time `rates`, `delays` or `goodput`, or a column of the table levels; `distribution` (in the queue) and
    `one-way` of delays; `bars` of facts. `of` names classes (flows for goodput), `runs` the variants; the scenario's
    own run is "". `shaded` is a part of the time, such as a fade.
    """
    if show == "bars":
        assert bars is not None
        curves = [
            draw.Curve(label, list(groups), [facts[name] for name in groups.values()]) for label, groups in bars.items()
        ]
        return draw.Panel(title, x, y, curves, "bars", top=1.15 * max(max(curve.y) for curve in curves))
    chosen = [(run, name) for run in (runs or [""]) for name in (of or _shown(results[run], show))]
    curves = []
    for run, name in chosen:
        words = [labels[run]] if run in labels and runs and labels[run] else []
        words = [name, *words] if not words or len({each for _, each in chosen}) > 1 else words
        curves.append(draw.Curve(", ".join(words), *_points(results[run], show, name)))
    if show == "rates" and capacity:
        own = results[(runs or [""])[0]]
        curves.append(draw.Curve("link", *_thinned(*measure.capacity(own)), quiet=True))
    if show in ("distribution", "one-way"):
        words = "delay in the queue (ms)" if show == "distribution" else "delay from end to end (ms)"
        return draw.Panel(title, words, "packets with at most this (%)", curves, log_x=log, labels="middle")
    quantity = {"rates": "rate (Mbit/s)", "goodput": "goodput (Mbit/s)", "delays": "mean delay in the queue (ms)"}
    kind = "lines" if show == "delays" else "steps"
    grey = (shaded,) if shaded else ()
    return draw.Panel(title, "time (s)", y or quantity.get(show, show), curves, kind, log_y=log, shaded=grey)


def _shown(result: Result, show: str) -> list[str]:
    if show == "goodput":
        return result.scenario.flows[:MOST_CURVES]
    return result.scenario.classes[:MOST_CURVES]


def _points(result: Result, show: str, name: str) -> measure.Points:
    if show == "distribution":
        return measure.cumulative(result, name)
    if show == "one-way":
        return measure.cumulative(result, name, "one-way")
    if show == "delays":
        times, values = measure.over_time(result, name, "delay_mean_s", 1e3)
        copies = sum(measure.is_copy(each, name) for each in result.scenario.classes)
        return _thinned(times, [value / copies for value in values])
    if show == "rates":
        return _thinned(*measure.over_time(result, name, "sent_bps", 1e-6))
    if show == "goodput":
        return _thinned(*measure.over_time(result, name, "goodput_bps", 1e-6, "flow_series"))
    return _thinned(*measure.over_time(result, name, show, 1.0, "levels"))


def _thinned(times: list[float], values: list[float]) -> measure.Points:
    """Means of neighbours, so that a picture has few points."""
    width = -(-len(times) // MOST_POINTS)
    groups = range(0, len(times), width)
    return [times[at] for at in groups], [sum(values[at : at + width]) / len(values[at : at + width]) for at in groups]


def sentence(entry: Entry, seen: Seen) -> str:
    """What to see, with the figures of this run."""
    return entry.see.format(**seen.facts)


def write(entry: Entry, into: Path) -> tuple[Entry, Seen]:
    """Runs an entry and writes its page and pictures."""
    seen = look(entry)
    draw.write(into / f"{entry.name}.svg", seen.panels)
    draw.write(into / f"{entry.name}-small.svg", seen.panels[:1], (3.6, 2.3))
    (into / f"{entry.name}.md").write_text(page(entry, seen))
    return entry, seen


def page(entry: Entry, seen: Seen) -> str:
    """The page of one scenario."""
    columns = {"class": "class", "rate (Mbit/s)": "rate_bps", "loss (%)": "loss"}
    delays = {"mean delay (ms)": "delay_mean_s", "99th percentile (ms)": "delay_p99_s"}
    scale = {"rate_bps": 1e-6, "loss": 100.0, "delay_mean_s": 1e3, "delay_p99_s": 1e3}
    columns |= delays
    lines = [f"# {entry.title}", "", f"**{entry.question}**", "", sentence(entry, seen), ""]
    lines += [f"![{entry.title}: {', '.join(one.title for one in seen.panels)}]({entry.name}.svg)", ""]
    for name, changes in entry.variants.items():
        lines += [f"Where the picture says “{name}”, the same scenario has {differences(changes)}.", ""]
    lines += ["```sh", entry.command, "```", ""]
    lines += [f"The run takes {_seconds(seen)} of one processor for {seen.packets:,} packets.", ""]
    lines += ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in seen.classes[:12]:
        cells = [
            str(row[column])
            if column == "class"
            else ""
            if row[column] is None
            else f"{row[column] * scale[column]:.4g}"
            for column in columns.values()
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if len(seen.classes) > 12:
        lines.append(f"| and {len(seen.classes) - 12} more |" + " |" * (len(columns) - 1))
    text = (SCENARIOS / entry.file).read_text().rstrip()
    return "\n".join([*lines, "", f"The file `scenarios/{entry.file}`:", "", "```toml", text, "```", ""])


def _seconds(seen: Seen) -> str:
    return f"{max(seen.seconds, 0.01):.2f} s"


def differences(changes: Mapping[str, Any]) -> str:
    """How a variant differs, in words.

    >>> differences({"scheduler.policy": "pf", "class.0.timeout": ""})
    '`policy = "pf"` and no `timeout` in the first `[[class]]`'
    """
    if "words" in changes:
        return str(changes["words"])
    places = ("first", "second", "third", "fourth")
    words = []
    for place, value in changes.items():
        *way, key = place.split(".")
        what = f"no `{key}`" if value == "" else f"`{key} = {_toml(value)}`"
        each = f" in every `[[{way[0]}]]`" if way[1:] == ["*"] else ""
        words.append(what + (f" in the {places[int(way[1])]} `[[{way[0]}]]`" if way[1:] and not each else each))
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def index(seen: list[tuple[Entry, Seen]]) -> str:
    """The gallery's first page, for the site."""
    lines = [
        "# Gallery",
        "",
        f"{len(seen)} scenarios, each with a question, a picture, the file and the time its run takes.",
        "",
    ]
    lines += ["| | scenario |", "|---|---|"]
    for entry, found in seen:
        picture = f'[<img src="{entry.name}-small.svg" alt="{entry.title}" width="260">]({entry.name}.md)'
        words = f"**[{entry.title}]({entry.name}.md)**<br>{entry.question}<br>`{entry.file}`, {_seconds(found)}"
        lines.append(f"| {picture} | {words} |")
    return "\n".join([*lines, ""])


def listing(found: list[Entry]) -> str:
    """The list that is committed, for readers of the repository."""
    lines = ["# Scenarios", "", INTRODUCTION, "", "| scenario | the question it answers |", "|---|---|"]
    lines += [f"| [{one.title}]({one.file}) | {one.question} |" for one in found]
    return "\n".join([*lines, "", OUTRO, ""])


INTRODUCTION = """\
Each file is short, has comments, and runs in seconds: `linkweir run scenarios/geo.toml`. Copy the closest one and
change it; [Scenarios](../docs/reference/scenarios.md) explains every key. `traces` has capacities over time,
`recordings` packets to replay. [gallery.toml](../docs/pictures/gallery.toml) says what each run shows.

**What they may know.** The keys of a scenario. **Begin with** [geo.toml](geo.toml). **Test them alone:**
`.venv/bin/python -m pytest -q python/tests/test_gallery.py` runs all and checks what the list says they show."""
OUTRO = "`make pictures` writes this page."


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("into", nargs="?", type=Path, help="folder for the pages")
    parser.add_argument("--list", action="store_true", help="write the list in scenarios/README.md")
    parser.add_argument("--only", action="append", help="only these files")
    asked = parser.parse_args()
    found = [entry for entry in entries() if not asked.only or entry.name in asked.only]
    if asked.list:
        LIST.write_text(listing(found))
    if asked.into is None:
        return
    asked.into.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        seen = list(pool.map(write, found, [asked.into] * len(found)))
    (asked.into / "index.md").write_text(index(seen))
    for entry, one in seen:
        print(f"{entry.file}: {one.seconds:.2f} s, {sentence(entry, one)}")
        for claim in entry.claims:
            if not computed(claim, one.facts):
                print(f"  does not hold: {claim}")


def computed(expression: str, facts: Mapping[str, float]) -> float:
    """The value of an expression of facts, such as "100 * af / all"; of a comparison 1 or 0."""
    return float(eval(expression, {"__builtins__": {}}, dict(facts)))


if __name__ == "__main__":
    main()
