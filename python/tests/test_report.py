# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: its numbers compared with the tables, and the page as a browser shows it."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser
from command import SCENARIOS, SMALL
from matplotlib.figure import Figure

import linkweir
from linkweir import Result, Scenario, quality
from linkweir.panels import Panels, plot
from linkweir.panels.picture import Picture
from linkweir.report import page as report_page

MOST_BYTES = 3_000_000
PANELS = [
    "rates",
    "delays",
    "drops",
    "levels-credit_bits",
    "levels-low",
    "distribution-queueing",
    "distribution-one-way",
]


def hundred() -> str:
    """A scenario of 100 classes with different names, reservations and rates, ten of them with calls."""
    lines = [
        'name = "A hundred customers"\nduration = "200s"\nwarmup = "20s"\ninterval = "50ms"\n',
        '[link]\nrate = { steps = [["0s", "20Mbit"], ["70s", "8Mbit"], ["130s", "20Mbit"]] }\ndelay = "20ms"\n',
        '[scheduler]\npolicy = "pss"\n',
    ]
    for n in range(100):
        name = f"customer-{n}" if n % 10 else f"a customer with quite a long name, number {n}"
        reserved = f'low_level = {200 + n}\nrate = "{100 + 2 * n}kbit"\n' if n < 50 else ""
        lines.append(f'[[class]]\nname = "{name}"\nlevel = {n}\nlimit = "50p"\n{reserved}')
        if n % 10 == 3:
            call = f'name = "call {n}"\nkind = "voice"\ncodec = "g711"\nplayout = ["60ms", "adaptive"]\ndelays = true\n'
            lines.append(f'[[flow]]\nclass = "{name}"\n{call}')
        rate = f'rate = "{200 + 37 * n % 400}kbit"\npacket = "500B"\non = "1s"\noff = "1s"\n'
        lines.append(f'[[flow]]\nclass = "{name}"\nkind = "onoff"\n{rate}')
    return "".join(lines)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return linkweir.run(SCENARIOS / "geo.toml", out=tmp_path_factory.mktemp("three") / "run")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return linkweir.run(Scenario.parse(hundred()), out=tmp_path_factory.mktemp("many") / "run")


def page_of(run: Result) -> Path:
    assert run.directory is not None
    return run.directory / "report.html"


def data_of(run: Result) -> dict[str, Any]:
    """What the script of a report draws."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page_of(run).read_text())
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def panel_of(run: Result, name: str) -> dict[str, Any]:
    [panel] = (panel for panel in data_of(run)["panels"] if panel["name"] == name)
    return dict(panel)


def line_of(panel: dict[str, Any], label: str) -> Any:
    """Values of a line; one that never changes is written once."""
    [line] = (line for line in panel["lines"] if line["label"] == label)
    values = line["y"]
    return np.array(values if isinstance(values, list) else [values] * len(panel["x"]), dtype=float)


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_is_one_small_file_that_names_no_other(three: Result, many: Result) -> None:
    for run in (three, many):
        text = page_of(run).read_text()
        assert page_of(run).stat().st_size < MOST_BYTES
        assert "default-src 'none'" in text
        assert "Copyright (c) 2022 Leon Sorokin" in text
        assert len(re.findall(r"<script", text)) == 3
    assert len(data_of(many)["classes"]) == 100


def test_lines_are_the_tables(three: Result) -> None:
    data = data_of(three)
    assert [panel["name"] for panel in data["panels"]] == PANELS
    assert data["classes"] == ["ef", "af", "cs0"]
    assert data["warmup"] == 10
    series = three.series.to_pandas()
    for name in data["classes"]:
        rows = series[series["class"] == name]
        for panel, column, scale in (("rates", "sent_bps", 1e-6), ("delays", "delay_mean_s", 1e3)):
            drawn = line_of(panel_of(three, panel), name)
            assert drawn[:-1] == pytest.approx(rows[column].to_numpy() * scale, rel=1e-3)
            assert drawn[-1] == drawn[-2]  # the last interval lasts until the end
        gone = rows[["dropped_limit_pkts", "dropped_policy_pkts", "lost_link_pkts"]].sum(axis=1).to_numpy()
        assert line_of(panel_of(three, "drops"), name)[:-1] == pytest.approx(gone / 1.0, rel=1e-3)
    capacity = three.link["capacity_bps"].to_numpy() / 1e6
    assert line_of(panel_of(three, "rates"), "capacity")[:-1] == pytest.approx(capacity)


def test_panels_over_time_have_the_same_ends(three: Result, many: Result) -> None:
    for run in (three, many):
        timed = [panel for panel in data_of(run)["panels"] if panel["overTime"]]
        assert len(timed) >= 5
        assert {(panel["x"][0], panel["x"][-1]) for panel in timed} == {(0, run.simulated_s)}
        assert all(np.all(np.diff(panel["x"]) > 0) for panel in timed)


def test_delays_are_logarithmic_and_axes_have_units(many: Result) -> None:
    for panel in data_of(many)["panels"]:
        assert panel["logY"] == (panel["name"] == "delays")
        assert panel["logX"] == panel["name"].startswith("distribution")
        for label in (panel["xLabel"], panel["yLabel"]):
            assert re.fullmatch(r"[\w ]+ \([\w% /]+\)|MOS, 1 to 4\.5", label), label


def test_a_distribution_is_that_of_the_packets(tmp_path: Path) -> None:
    """The delay of each packet comes from the log, not from the histogram: a queue sends in the order of arrival."""
    run = linkweir.run(Scenario.parse('log = "packets"\n' + SMALL), out=tmp_path / "run")
    log = run.log.to_pandas()
    log = log[log["class"] == "ef"]
    assert not (log["event"] == "dropped").any()
    enqueued, sent = (log[log["event"] == event]["t_ns"].to_numpy() for event in ("enqueued", "sent"))
    waited_ms = np.sort(sent - enqueued[: len(sent)]) / 1e6
    panel = panel_of(run, "distribution-queueing")
    drawn, x = line_of(panel, "ef"), np.array(panel["x"])
    assert len(waited_ms) == run.rows("classes")[0]["sent_pkts"] > 100
    # An edge of a bucket is written with seven digits, so it may lie on either side of a delay.
    for sign, edge in ((1, x * (1 - 1e-6)), (-1, x * (1 + 1e-6))):
        counted = 100 * np.searchsorted(waited_ms, edge, side="right") / len(waited_ms)
        assert np.all(sign * (drawn - counted) >= -0.05), sign
    assert drawn[-1] == 100
    assert drawn[0] < 100


def test_a_distribution_has_the_quantiles_of_the_table(three: Result, many: Result) -> None:
    for run in (three, many):
        panel = panel_of(run, "distribution-queueing")
        x = np.array(panel["x"])
        for row in run.rows("classes"):
            if row["delay_p95_s"] is None or row["delay_p95_s"] < 1e-5:
                continue
            drawn = line_of(panel, row["class"])
            assert drawn[x >= row["delay_p95_s"] * 1e3 * 1.02].min(initial=100) >= 95 - 0.01
            assert drawn[x <= row["delay_p95_s"] * 1e3 * 0.98].max(initial=0) <= 95 + 0.01


RESERVED = """\
duration = "60s"
interval = "1s"
[link]
rate = { steps = [["0s", "20Mbit"], ["20500ms", "8Mbit"], ["40500ms", "16Mbit"]] }
nominal = "10Mbit"
follow = true
[scheduler]
policy = "pss"
[[class]]
name = "share"
level = 0
low_level = 4
share = "25%"
memory = "200ms"
[[class]]
name = "rate"
level = 1
low_level = 5
rate = "1Mbit"
memory = "1ms"
[[class]]
name = "given"
level = 2
low_level = 6
rate = "1Mbit"
lr = "100kbit"
lm = "300kbit"
[[class]]
name = "busy"
level = 3
low_level = 7
rate = "4Mbit"
[[class]]
name = "rest"
level = 6
"""


def reserved(follow: bool = True) -> str:
    text = RESERVED if follow else RESERVED.replace("follow = true", "follow = false")
    for name in ("share", "rate", "given"):
        text += f'[[flow]]\nclass = "{name}"\nkind = "cbr"\nrate = "10kbit"\nstart = "59900ms"\n'
    for name in ("busy", "rest"):
        text += f'[[flow]]\nclass = "{name}"\nkind = "greedy"\n'
    return text.replace("level = 6\n[[flow]]", "level = 8\n[[flow]]", 1)


@pytest.mark.parametrize("follow", [True, False])
def test_lr_and_lm_are_the_policys(follow: bool, tmp_path: Path) -> None:
    """The credit of a class that sends nothing is LR, whatever the link does; that of a greedy one reaches LM."""
    run = linkweir.run(Scenario.parse(reserved(follow)), out=tmp_path / "run")
    panel = panel_of(run, "levels-credit_bits")
    kbit = {"credit (kbit)": 1.0, "credit (Mbit)": 1e3}[panel["yLabel"]]
    for name in ("share", "rate", "given"):
        credit, lower = (line_of(panel, label) for label in (name, f"{name}, LR"))
        assert credit[1:-1] == pytest.approx(lower[1:-1], rel=2e-3), name
    changes = len(set(line_of(panel, "share, LR").tolist()))
    assert changes == (3 if follow else 1)
    assert set(line_of(panel, "given, LM").tolist()) == {300 / kbit}
    credit, lower, upper = (kbit * line_of(panel, f"busy{bound}") for bound in ("", ", LR", ", LM"))
    assert np.all(credit <= upper + 12.2)
    assert np.all(credit >= lower - 12.2)
    assert credit.max() > upper.min() - 0.2 * (upper.min() - lower.min())
    assert "LM" in panel["note"]


def test_the_part_of_the_time_at_the_low_level(three: Result) -> None:
    panel = panel_of(three, "levels-low")
    levels = three.levels.to_pandas()
    low = levels[levels["class"] == "af"]["low"].to_numpy()
    assert line_of(panel, "af")[:-1] == pytest.approx([100 * low[at : at + 10].mean() for at in range(0, 100, 10)])
    assert panel["note"].startswith("Each value is the part of 10 instants, 1 s apart")


@pytest.mark.parametrize(("unit", "label"), [("bytes", "mean (Mbit/s)"), ("airtime", "mean (ppm of the time)")])
def test_means_of_policies_that_serve_in_proportion_have_a_unit(unit: str, label: str, tmp_path: Path) -> None:
    names = ("one", "two")
    scenario = {
        "duration": "5s",
        "link": {"rate": "20Mbit"},
        "scheduler": {"policy": "pf", "unit": unit},
        "class": [{"name": name} for name in names],
        "flow": [{"class": name, "kind": "greedy"} for name in names],
    }
    panel = panel_of(linkweir.run(scenario, out=tmp_path / "run"), "levels-mean")
    assert (panel["title"], panel["yLabel"]) == ("Mean service of the queue", label)


def test_mos_is_that_of_the_intervals(many: Result) -> None:
    panel = panel_of(many, "mos")
    rows = quality.intervals(many).to_pylist()
    mine = {row["t_s"]: row["mos"] for row in rows if (row["flow"], row["buffer"]) == ("call 3", "60ms")}
    drawn = dict(zip(panel["x"], line_of(panel, "call 3, 60ms, g711"), strict=True))
    assert np.isnan(drawn[0])  # the warm-up is not rated
    assert {t_s: drawn[t_s] for t_s in mine} == pytest.approx(mine, rel=1e-3)
    assert panel["yRange"] == [1, 4.5]


def test_of_many_classes_the_busiest_are_shown_first(many: Result) -> None:
    data = data_of(many)
    sent = {row["class"]: row["sent_bytes"] for row in many.rows("classes")}
    assert data["shown"] == 8
    assert [sent[name] for name in data["classes"]] == sorted(sent.values(), reverse=True)
    text = page_of(many).read_text()
    assert "the first 8 are shown" in text
    [capacity] = (line for line in panel_of(many, "rates")["lines"] if line["label"] == "capacity")
    assert capacity["off"] is True  # 0.6 Mbit/s are flat under 20


def test_a_long_run_is_drawn_with_fewer_points_and_says_so(three: Result, many: Result) -> None:
    intervals = round(many.simulated_s / 0.05)
    panel = panel_of(many, "rates")
    step = -(-intervals // (len(panel["x"]) - 1))
    assert step > 1
    assert f"each point is the mean of {step} intervals of 0.05 s" in page_of(many).read_text()
    assert "Each point is the mean of an interval of 1 s" in page_of(three).read_text()
    name = data_of(many)["classes"][0]
    series = many.series.to_pandas()
    rates = series[series["class"] == name]["sent_bps"].to_numpy()[:step]
    assert line_of(panel, name)[0] == pytest.approx(rates.mean() / 1e6, rel=1e-3)


def test_classes_beyond_those_drawn_are_counted(many: Result, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(report_page, "_MOST_CLASSES", 30)
    assert many.directory is not None
    (tmp_path / "provenance.json").write_bytes((many.directory / "provenance.json").read_bytes())
    text = report_page.write_report(many, [], tmp_path).read_text()
    assert "70 more classes, which sent least, are not drawn." in text


def test_long_tables_are_folded(three: Result, many: Result) -> None:
    text = page_of(three).read_text()
    assert "<details><summary>Table of 21 rows</summary>" in text  # flows
    assert re.search(r"<h2>Classes</h2><div", text)
    assert re.search(r"<h2>Classes</h2><details><summary>Table of 100 rows", page_of(many).read_text())
    assert text.index("Over time") < text.index("<h2>Classes</h2>")


def contrast(one: str, two: str) -> float:
    """WCAG 2.2, contrast ratio of two colours such as #0072b2."""

    def luminance(colour: str) -> float:
        full = colour if len(colour) == 7 else "#" + "".join(2 * letter for letter in colour[1:])
        parts = [int(full[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    lighter, darker = sorted((luminance(one), luminance(two)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_lines_can_be_told_from_the_ground_in_both_themes(three: Result) -> None:
    text = page_of(three).read_text()
    grounds = re.findall(r"--ground: (#\w+); --ink: (#\w+)", text)
    palettes = re.findall(r"--c0: (#\w+); --c1: (#\w+); --c2: (#\w+); --c3: (#\w+)", text)
    assert len(grounds) == len(palettes) == 2
    for (ground, ink), colours in zip(grounds, palettes, strict=True):
        assert all(contrast(colour, ground) >= 3 for colour in colours)
        assert contrast(ink, ground) >= 7
    assert tuple(colour.lower() for colour in plot.COLOURS) == palettes[0]


# How readers see linear red, green and blue who lack one kind of cones (Machado, Oliveira and Fernandes 2009).
LACKING = {
    "red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]


def seen(colour: str, by: list[list[float]]) -> Any:
    """CIE L*a*b* of a colour as such a reader sees it."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    x, y, z = np.array(TO_XYZ) @ np.clip(np.array(by) @ linear, 0, 1) / np.array([0.95047, 1, 1.08883])
    fx, fy, fz = (np.cbrt(part) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


def test_readers_without_one_kind_of_cones_tell_the_colours_apart(three: Result) -> None:
    palettes = re.findall(r"--c0: (#\w+); --c1: (#\w+); --c2: (#\w+); --c3: (#\w+)", page_of(three).read_text())
    assert len(palettes) == 2
    for colours in palettes:
        for reader, by in LACKING.items():
            for one, two in itertools.combinations(colours, 2):
                assert np.linalg.norm(seen(one, by) - seen(two, by)) > 15, (reader, one, two)


def test_figures_for_papers_draw_the_same_panels(three: Result) -> None:
    drawn = [*plot.charts(three), *plot.delay_charts(three)]
    assert [chart.name for chart in drawn] == PANELS
    assert Panels(three, 12, 5000).over_time[1].log_y
    assert all(plot.drawn(chart, "pdf") == plot.drawn(chart, "pdf") for chart in drawn[:1])


@pytest.mark.slow
@pytest.mark.parametrize("form", plot.FORMATS)
def test_a_layout_without_a_drawing_is_the_same(three: Result, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    charts = [*plot.charts(three), *plot.delay_charts(three)]
    once = [plot.drawn(chart, form) for chart in charts]
    monkeypatch.setattr(Picture, "draw", Figure.draw)
    assert [plot.drawn(chart, form) for chart in charts] == once


def test_so_it_is_with_a_legend_outside_and_axes_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    def document() -> bytes:
        def drawn() -> Picture:
            figure = Picture(figsize=(6, 4), layout="constrained")
            for row in figure.subplots(2, 2, sharey=True):
                for axes in row:
                    axes.plot([1, 2, 3], label="a long name")
                    axes.set_ylabel("rate in Mbit/s")
            figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
            return figure

        return plot.document(drawn)

    once = document()
    monkeypatch.setattr(Picture, "draw", Figure.draw)
    assert document() == once


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Two classes of which all values are equal, and a third; the first has a reservation."""
    out = tmp_path_factory.mktemp("equal") / "run"
    scenario = {
        "duration": "20s",
        "link": {"rate": "10Mbit"},
        "scheduler": {"policy": "pss"},
        "class": [
            {"name": "one", "level": 0, "low_level": 3, "rate": "3Mbit"},
            {"name": "two", "level": 1},
            {"name": "three", "level": 2},
        ],
        "flow": [
            {"class": "one", "kind": "cbr", "rate": "2Mbit"},
            {"class": "two", "kind": "cbr", "rate": "2Mbit"},
            {"class": "three", "kind": "cbr", "rate": "1Mbit"},
        ],
    }
    return linkweir.run(scenario, out=out)


def test_equal_lines_are_marked_and_named(equal: Result) -> None:
    rates = panel_of(equal, "rates")
    turns = {line["label"]: line["turn"] for line in rates["lines"]}
    assert turns == {"capacity": None, "one": [0, 2], "two": [1, 2], "three": None, "one, promised": None}
    assert rates["note"].endswith("Equal lines are drawn in turns: one and two.")


def test_the_chart_of_rates_shows_what_was_promised(equal: Result) -> None:
    rates = panel_of(equal, "rates")
    assert set(line_of(rates, "one, promised").tolist()) == {3.0}  # Mbit/s
    [line] = (line for line in rates["lines"] if line["label"] == "one, promised")
    assert (line["look"], line["of"]) == ("lower", 0)
    [chart] = (chart for chart in plot.charts(equal) if chart.name == "rates")
    figure = plot._figure([chart])
    drawn = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert set(drawn["one, promised"].get_ydata()) == {3.0}
    assert drawn["two"].is_dashed()
    assert not drawn["one"].is_dashed()


def test_a_promised_share_follows_the_capacity_that_the_scheduler_knows(tmp_path: Path) -> None:
    link = {"rate": {"steps": [["0s", "20Mbit"], ["5s", "8Mbit"]]}, "follow": True}
    scenario = {
        "duration": "10s",
        "link": link,
        "scheduler": {"policy": "pss"},
        "class": [{"name": "af", "level": 0, "low_level": 2, "share": "25%"}, {"name": "rest", "level": 1}],
        "flow": [{"class": "af", "kind": "greedy"}, {"class": "rest", "kind": "greedy"}],
    }
    rates = panel_of(linkweir.run(scenario, out=tmp_path / "run"), "rates")
    assert line_of(rates, "af, promised").tolist() == [5.0] * 5 + [2.0] * 6  # Mbit/s


# --- in a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


def show(browser: Browser, run: Result, *, width: int = 1280, dark: bool = False) -> None:
    """Opens the report of a run and waits until it is drawn."""
    browser.resize(width, 900)
    browser.scheme("dark" if dark else "light")
    browser.open(page_of(run).as_uri())
    browser.value(FRAMES)


FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def overflow(browser: Browser) -> int:
    """By how many pixels the page is wider than the window."""
    return int(browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def centre(browser: Browser, selector: str) -> tuple[float, float]:
    """The middle of an element, which is scrolled into view."""
    x, y = browser.value(
        f"""(() => {{
          const found = document.querySelector({json.dumps(selector)});
          found.scrollIntoView({{ block: "center" }});
          const box = found.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        }})()"""
    )
    return x, y


def point(browser: Browser, x: float, y: float) -> None:
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)


ENDS = """linkweirReport.panels.map(({ panel, plot }) =>
  [panel.name, panel.overTime, plot.scales.x.min, plot.scales.x.max, panel.x[0], panel.x[panel.x.length - 1]])"""


def ends(browser: Browser) -> dict[str, tuple[float, float]]:
    return {name: (least, most) for name, _, least, most, _, _ in browser.value(ENDS)}


def over(name: str) -> str:
    return f'[data-panel="{name}"] .u-over'


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("which", ["three", "many"])
def test_a_browser_draws_it(
    browser: Browser, request: pytest.FixtureRequest, which: str, width: int, dark: bool
) -> None:
    run: Result = request.getfixturevalue(which)
    show(browser, run, width=width, dark=dark)
    assert browser.problems() == []
    assert browser.requests() == [page_of(run).as_uri()]
    assert overflow(browser) == 0
    if width == 1280:
        wide = "[...document.querySelectorAll('.wide')].filter((box) => box.scrollWidth > box.clientWidth).length"
        assert (
            browser.value(f"document.querySelectorAll('details').forEach((box) => {{ box.open = true; }}), {wide}") == 0
        )
    shown = browser.value(
        """linkweirReport.panels.map(({ panel, plot, holder }) => {
          const { ctx, bbox } = plot;
          const pixels = ctx.getImageData(bbox.left, bbox.top, bbox.width, bbox.height).data;
          const style = getComputedStyle(document.documentElement);
          const colours = ["--c0", "--c1", "--c2", "--c3"].map((name) => {
            const hex = style.getPropertyValue(name).trim();
            return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
          });
          let drawn = 0;
          for (let at = 0; at < pixels.length; at += 4) {
            const is = (colour) => colour.every((part, k) => Math.abs(pixels[at + k] - part) < 6);
            if (pixels[at + 3] > 250 && colours.some(is)) drawn += 1;
          }
          const [x, y] = plot.axes;
          ctx.font = "12px system-ui, sans-serif";
          return {
            name: panel.name, overTime: panel.overTime, drawn, left: bbox.left, width: bbox.width,
            right: plot.root.getBoundingClientRect().right - holder.getBoundingClientRect().right,
            crowded: x._values.some((text, at) => at && x._splits.length === x._values.length &&
              plot.valToPos(x._splits[at], "x") - plot.valToPos(x._splits[at - 1], "x") <
              (ctx.measureText(text ?? "").width + ctx.measureText(x._values[at - 1] ?? "").width) / 2 + 3),
            label: ctx.measureText(panel.yLabel).width - bbox.height,
            ticks: Math.max(...y._values.map((text) => ctx.measureText(text ?? "").width)) + 15 - y._size,
          };
        })"""
    )
    assert len(shown) == len(data_of(run)["panels"])
    for panel in shown:
        assert panel["drawn"] > 50, f"no line in {panel['name']}"
        assert panel["right"] <= 0, "wider than its place"
        assert not panel["crowded"], f"numbers under {panel['name']} overlap"
        assert panel["label"] <= 0, "the label of an axis is cut"
        assert panel["ticks"] <= 0, "numbers of an axis are cut"
    timed = [(panel["left"], panel["width"]) for panel in shown if panel["overTime"]]
    assert len(set(timed)) == 1, "panels do not line up"


PARTS = """(() => {
          const { plot } = linkweirReport.panels.find(({ panel }) => panel.name === "rates");
          const { ctx, bbox } = plot;
          const y = Math.round(plot.valToPos(VALUE, "y", true));
          const style = getComputedStyle(document.documentElement);
          return COLOURS.map((name) => {
            const hex = style.getPropertyValue(name).trim();
            const colour = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
            let columns = 0;
            for (let x = bbox.left; x < bbox.left + bbox.width; x += 1) {
              const pixels = ctx.getImageData(x, y - 2, 1, 5).data;
              const at = [0, 4, 8, 12, 16];
              if (at.some((k) => colour.every((part, j) => Math.abs(pixels[k + j] - part) < 30))) columns += 1;
            }
            return columns / bbox.width;
          });
        })()"""


def parts_with(browser: Browser, value: float, *colours: str) -> list[float]:
    """In which part of the chart of rates, from left to right, each colour is drawn at a rate, Mbit/s."""
    found: list[float] = browser.value(PARTS.replace("VALUE", str(value)).replace("COLOURS", json.dumps(colours)))
    return found


@pytest.mark.browser
def test_lines_that_are_equal_are_both_seen(browser: Browser, equal: Result) -> None:
    show(browser, equal)
    seen = parts_with(browser, 2, "--c0", "--c1")
    assert all(0.3 < part < 0.7 for part in seen), seen


@pytest.mark.browser
def test_af_and_cs0_are_both_seen_where_dwrr_gives_them_the_same(browser: Browser, tmp_path: Path) -> None:
    run = linkweir.run(SCENARIOS / "geo-dwrr.toml", out=tmp_path / "run")
    turns = {line["label"]: line["turn"] for line in panel_of(run, "rates")["lines"]}
    assert turns == {"capacity": None, "ef": None, "af": [0, 2], "cs0": [1, 2]}
    show(browser, run)
    seen = parts_with(browser, 5, "--c1", "--c2")
    assert all(0.3 < part < 0.7 for part in seen), seen


@pytest.mark.browser
def test_the_line_of_what_is_promised_is_seen(browser: Browser, equal: Result) -> None:
    show(browser, equal)
    found = browser.value(
        """(() => {
          const { plot } = linkweirReport.panels.find(({ panel }) => panel.name === "rates");
          const { ctx, bbox } = plot;
          const y = Math.round(plot.valToPos(3, "y", true));
          let columns = 0;
          for (let x = bbox.left; x < bbox.left + bbox.width; x += 1) {
            const pixels = ctx.getImageData(x, y - 2, 1, 5).data;
            if ([0, 4, 8, 12, 16].some((k) => pixels[k + 2] - pixels[k] > 60)) columns += 1;
          }
          return columns / bbox.width;
        })()"""
    )
    assert 0.3 < found < 0.9  # a thin line of dots in the blue of its class, and there is no other blue


@pytest.mark.browser
def test_zoom_is_that_of_all_panels_over_time(browser: Browser, three: Result) -> None:
    show(browser, three)
    whole = ends(browser)
    assert {whole[name] for name in PANELS[:5]} == {(0, 100)}
    x, y = centre(browser, over("delays"))
    browser.drag((x - 100, y), (x + 100, y))
    zoomed = ends(browser)
    [(least, most)] = {zoomed[name] for name in PANELS[:5]}
    assert 30 < least < 45
    assert 55 < most < 70
    assert {name: zoomed[name] for name in PANELS[5:]} == {name: whole[name] for name in PANELS[5:]}
    rate = browser.value("linkweirReport.panels[2].plot.scales.y.max")
    browser.click(x, y, times=2)
    assert ends(browser) == whole
    assert browser.value("linkweirReport.panels[2].plot.scales.y.max") > rate  # the drops at 27 s are back
    browser.drag((x - 100, y), (x + 100, y))
    [(left, top)] = [centre(browser, "#legend > .tool:last-child")]
    browser.click(left, top)
    assert ends(browser) == whole


@pytest.mark.browser
def test_an_update_changes_values_and_keeps_what_is_shown(browser: Browser, three: Result) -> None:
    """As a page does whose sliders run the scenario again: half the rates, a time twice as long, then other classes."""
    show(browser, three)
    drawn = "linkweirReport.panels[0].plot"
    browser.value("window.first = linkweirReport.panels[0].plot; document.querySelector('#legend .key').click()")
    browser.value(f"{drawn}.setScale('x', {{ min: 20, max: 40 }})")
    half = """(() => {
      const { warmup, shown, classes, panels } = structuredClone(linkweirReport.data);
      const rates = panels[0];
      for (const line of rates.lines) line.y = Array.isArray(line.y) ? line.y.map((y) => y / 2) : line.y / 2;
      rates.yLabel = "rate (half)";
      rates.note = "Half.";
      return { warmup, shown, classes, panels };
    })()"""
    before = browser.value(f"{drawn}.data[2][30]")
    browser.value(f"linkweirReport.update({half})")
    browser.value(FRAMES)
    assert browser.value(f"window.first === {drawn}")
    assert browser.value(f"{drawn}.data[2][30]") == pytest.approx(before / 2)
    assert ends(browser)["rates"] == (20, 40)
    assert browser.value(f"{drawn}.series[2].show") is False
    assert browser.value(f"{drawn}.axes[1].label") == "rate (half)"
    assert browser.value(f"{drawn}.scales.y.max") <= 11  # of 20 Mbit/s
    assert browser.value("document.querySelector('[data-panel=rates] .below').textContent") == "Half."
    browser.value("document.querySelector('#legend .tool:last-child').click()")
    longer = f"(() => {{ const d = {half}; for (const p of d.panels) p.x = p.x.map((x) => 2 * x); return d; }})()"
    browser.value(f"linkweirReport.update({longer})")
    assert ends(browser)["rates"] == (0, 200)
    other = f"(() => {{ const d = {half}; d.classes[0] = 'other'; return d; }})()"
    browser.value(f"linkweirReport.update({other})")
    assert browser.value(f"window.first === {drawn}") is False
    assert browser.value("document.querySelector('#legend .key').textContent") == "other"
    assert browser.problems() == []


@pytest.mark.browser
def test_an_update_may_need_another_axis_and_another_place(browser: Browser, three: Result) -> None:
    """Delays that spread over more than a decade have a logarithmic axis; a run may have no distributions at first."""
    show(browser, three)
    name = "distribution-queueing"
    found = f"linkweirReport.panels.find(({{ panel }}) => panel.name === '{name}')"
    scaled = """(() => {
      const { warmup, shown, classes, panels } = structuredClone(linkweirReport.data);
      const one = panels.find(({ name }) => name === "NAME");
      one.x = one.x.map((_, at) => 1 + SPREAD * at / one.x.length);
      return { warmup, shown, classes, panels };
    })()""".replace("NAME", name)
    for spread, kind in ((5, 1), (5000, 3), (5, 1)):
        browser.value(f"linkweirReport.update({scaled.replace('SPREAD', str(spread))})")
        browser.value(FRAMES)
        assert browser.value(f"{found}.plot.scales.x.distr") == kind
    without = """(() => {
      const { warmup, shown, classes, panels } = structuredClone(linkweirReport.data);
      return { warmup, shown, classes, panels: panels.filter(({ overTime }) => overTime) };
    })()"""
    words = "document.body.innerText.includes('Distributions of delay')"
    browser.value(f"window.whole = structuredClone(linkweirReport.data); linkweirReport.update({without})")
    assert browser.value(words) is False
    browser.value("linkweirReport.update(window.whole)")
    assert browser.value(words) is True
    assert browser.value(f"{found}.plot.width") > 500
    assert browser.problems() == []


@pytest.mark.browser
def test_a_finger_zooms_sideways_and_scrolls_up_and_down(three: Result) -> None:
    with Browser(size=(390, 800)) as phone:
        phone.ask("Emulation.setTouchEmulationEnabled", enabled=True)
        phone.open(page_of(three).as_uri())
        whole = ends(phone)

        def swipe(to_x: float, to_y: float) -> None:
            x, y = centre(phone, over("drops"))
            phone.ask("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
            for step in range(1, 6):
                place = {"x": x + to_x * step / 5, "y": y + to_y * step / 5}
                phone.ask("Input.dispatchTouchEvent", type="touchMove", touchPoints=[place])
            phone.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
            phone.value(FRAMES)

        swipe(3, 80)
        assert ends(phone) == whole
        swipe(60, 2)
        [(least, most)] = {ends(phone)[name] for name in PANELS[:5]}
        assert 45 < least < 55 < 65 < most < 80


HIDDEN = """linkweirReport.panels.map(({ panel, plot }) =>
  panel.lines.map((line, at) => [line.label, plot.series[at + 1].show]))"""


@pytest.mark.browser
def test_a_click_hides_a_class_in_every_panel(browser: Browser, three: Result) -> None:
    show(browser, three)
    assert all(on for panel in browser.value(HIDDEN) for _, on in panel)
    browser.click(*centre(browser, "#legend .key:nth-child(2)"))
    for panel in browser.value(HIDDEN):
        assert all(on == (not label.startswith("af")) for label, on in panel), panel
    browser.click(*centre(browser, "#legend .key:nth-child(2)"))
    assert all(on for panel in browser.value(HIDDEN) for _, on in panel)
    browser.click(*centre(browser, "#legend .key:nth-child(3)"), times=2)
    for panel in browser.value(HIDDEN):
        assert [label for label, on in panel if on] in (["capacity", "cs0"], ["cs0"], []), panel


@pytest.mark.browser
def test_values_are_shown_under_the_cursor(browser: Browser, three: Result) -> None:
    show(browser, three)
    x, y = centre(browser, over("rates"))
    point(browser, x, y)
    point(browser, x + 1, y)
    words = browser.value("""document.querySelector('[data-panel="rates"] .tip').innerText""")
    assert re.search(r"time (49|50|51) s", words)
    at = round(float(re.findall(r"time (\d+) s", words)[0]))
    panel = panel_of(three, "rates")
    for name in ("ef", "af", "cs0", "capacity"):
        assert re.search(rf"{name}\s+{line_of(panel, name)[at]:.4g} Mbit/s", words), words
    other = (
        """[...document.querySelectorAll('.tip')].filter((tip) => getComputedStyle(tip).display !== "none").length"""
    )
    assert browser.value(other) == 1
    where = (
        "linkweirReport.panels.filter(({ panel }) => panel.overTime).map(({ plot }) => Math.round(plot.cursor.left))"
    )
    assert len(set(browser.value(where))) == 1  # the same instant in all panels


@pytest.mark.browser
def test_of_a_hundred_classes_eight_are_shown_and_the_others_a_click_away(browser: Browser, many: Result) -> None:
    show(browser, many)
    on = "linkweirReport.panels[1].plot.series.slice(1).filter((line) => line.show).length"
    assert browser.value(on) == 8
    browser.click(*centre(browser, "#legend summary"))
    browser.click(*centre(browser, "#legend .more .key:nth-child(2)"))
    assert browser.value(on) == 9
    browser.click(*centre(browser, "#legend > .tool"))
    assert browser.value(on) == 100
    assert overflow(browser) == 0


@pytest.mark.browser
def test_colours_follow_the_theme_and_paper_is_white(browser: Browser, three: Result) -> None:
    drawn = "linkweirReport.panels[0].plot.series[2].stroke()"
    show(browser, three)
    light = browser.value(drawn)
    browser.scheme("dark")
    browser.value(FRAMES)
    dark = browser.value(drawn)
    assert light == plot.COLOURS[0].lower() != dark
    browser.value("dispatchEvent(new Event('beforeprint'))")
    assert browser.value(drawn) == light
    assert browser.value("Math.max(...linkweirReport.panels.map(({ plot }) => plot.width))") <= 700
    browser.value("dispatchEvent(new Event('afterprint'))")
    assert browser.value(drawn) == dark
    assert browser.value("linkweirReport.panels[0].plot.width") > 1000
    assert len(base64.b64decode(browser.ask("Page.printToPDF", printBackground=True)["data"])) > 20_000
    assert browser.problems() == []


@pytest.mark.browser
def test_without_scripts_the_tables_are_of_use(three: Result) -> None:
    with Browser(javascript=False) as plain:
        plain.open(page_of(three).as_uri())
        words = plain.value("document.body.innerText")
    assert "The charts need JavaScript" in words
    assert re.search(r"ef\s+10\.000\s+75,000", words)


@pytest.mark.slow
@pytest.mark.browser
def test_the_warm_up_is_shaded(browser: Browser, three: Result) -> None:
    show(browser, three)
    alpha = """(() => {
      const { plot } = linkweirReport.panels.find(({ panel }) => panel.name === "drops");
      const at = (t_s) => plot.ctx.getImageData(plot.valToPos(t_s, "x", true), plot.bbox.top + 3, 1, 1).data[3];
      return [at(1.3), at(9.3), at(11.3), at(98.7)];
    })()"""
    first, last, after, end = browser.value(alpha)
    assert first == last > 20
    assert after == end == 0
    assert "Shaded: the warm-up, 0 to 10 s" in browser.value("document.body.innerText")
