# SPDX-License-Identifier: BSD-3-Clause
"""Measures and draws what each policy is for, and writes picture and sentence into the policy's page.

    make pictures
    .venv/bin/python docs/pictures/policies.py pss drr

The values drawn are in docs/pictures/values/POLICY.json, the pictures in docs/reference/policies/images/. `--draw` uses
the values as they are. What is measured is in policy_cases.py.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import draw
import measure
from policy_cases import CASES, Case, Values

HERE = Path(__file__).parent
VALUES = HERE / "values"
PAGES = HERE.parent / "reference" / "policies"
BEGIN, END = "<!-- picture, written by make pictures -->", "<!-- end of the picture -->"
HOW = "[How this was measured](../../pictures/policy_cases.py)."
WIDTH = 140


def measured(cases: list[Case]) -> dict[str, Values]:
    """Runs what the cases need, each scenario once, and returns the curves of every case by panel."""
    wanted: dict[str, tuple[measure.Scenario, list[Any]]] = {}
    for case in cases:
        for sketch in case.panels:
            for plot in sketch.plots:
                for _, scenario in plot.points:
                    wanted.setdefault(measure.key(scenario), (scenario, []))[1].append(plot.measure)
    found = dict(zip(wanted, measure.values(list(wanted.values())), strict=True))
    answers = {key: iter(values) for key, values in found.items()}

    def curve(plot: Any) -> dict[str, Any]:
        one = [(x, next(answers[measure.key(scenario)])) for x, scenario in plot.points]
        xs, ys = one[0][1] if one[0][0] is None else zip(*one, strict=True)
        return {"label": plot.label, "x": [_short(x) for x in xs], "y": [_short(y) for y in ys]}

    return {case.policy: Values([[curve(plot) for plot in sketch.plots] for sketch in case.panels]) for case in cases}


def _short(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(f"{value:.4g}")


def panels(case: Case, values: Values) -> list[draw.Panel]:
    """The case as pictures' data."""
    return [
        draw.Panel(
            sketch.title,
            sketch.x_label,
            sketch.y_label,
            [
                draw.Curve(plot.label, curve["x"], curve["y"], plot.quiet)
                for plot, curve in zip(sketch.plots, curves, strict=True)
            ],
            **sketch.look,
        )
        for sketch, curves in zip(case.panels, values.panels, strict=True)
    ]


def passage(case: Case, values: Values) -> str:
    """What the page has of the picture."""
    facts = {name: fact(values) for name, fact in case.facts.items()}
    words = f"{case.says.format(**facts)} {HOW}"
    return "\n".join(
        [
            BEGIN,
            f"![{case.alt}](images/{case.policy}.svg)",
            "",
            *textwrap.wrap(words, WIDTH, break_long_words=False, break_on_hyphens=False),
            END,
        ]
    )


def load(policy: str) -> Values:
    """The committed values of a policy's picture."""
    return Values(json.loads((VALUES / f"{policy}.json").read_text()))


def store(policy: str, values: Values) -> None:
    """Writes the values, a curve per line."""
    VALUES.mkdir(exist_ok=True)
    parts = [",\n".join("  " + json.dumps(curve) for curve in curves) for curves in values.panels]
    (VALUES / f"{policy}.json").write_text("[\n [\n" + "\n ],\n [\n".join(parts) + "\n ]\n]\n")


def into_page(case: Case, values: Values) -> None:
    """Replaces the passage of the page, or adds it before the page's source."""
    page = PAGES / f"{case.policy}.md"
    text = page.read_text()
    written = passage(case, values)
    if BEGIN in text:
        text = re.sub(f"{BEGIN}.*?{END}", lambda _: written, text, flags=re.DOTALL)
    else:
        text = text.replace("**Source.**", f"{written}\n\n**Source.**", 1)
    page.write_text(text)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", nargs="*", help="only the pictures of these policies")
    parser.add_argument("--draw", action="store_true", help="draw the committed values, without measuring")
    asked = parser.parse_args()
    cases = [case for case in CASES if not asked.policy or case.policy in asked.policy]
    found = {case.policy: load(case.policy) for case in cases} if asked.draw else measured(cases)
    for case in cases:
        values = found[case.policy]
        store(case.policy, values)
        draw.write(PAGES / "images" / f"{case.policy}.svg", panels(case, values), case.size)
        into_page(case, values)
        print(case.policy, *passage(case, values).splitlines()[3:-1])


if __name__ == "__main__":
    main()
