# SPDX-License-Identifier: BSD-3-Clause
"""The report with knobs: one file that runs the simulator from file://, asks for nothing, and refuses some runs."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import MISSING, PROGRAM, Browser
from command import SCENARIOS, SMALL, linkweir
from firefox import MISSING as WITHOUT_FIREFOX
from firefox import PROGRAM as FIREFOX
from firefox import Firefox
from test_playground import compiled, playground, press, tab_to

import linkweir as package
from linkweir import Scenario, _native
from linkweir.report import knobs

MOST_BYTES = 1_200_000
DONE = "/simulated in/.test(document.querySelector('#knobs .state').textContent)"
FAULT = "document.querySelector('#knobs .fault')"
CELLS = """Object.fromEntries([...document.querySelectorAll("#knobs .numbers tbody tr")].map((row) =>
  [...row.cells].map((cell) => cell.innerText)).map(([name, ...others]) => [name, others]))"""
ONE_CLASS = """\
duration = "5s"
link = { rate = "1Mbit" }
scheduler = { policy = { python = "mine.py:Mine" } }
class = [{ name = "all" }]
flow = [{ class = "all", kind = "cbr", rate = "500kbit" }]
"""
ONE_LINK = """\
duration = "5s"
[[link]]
name = "feeder"
rate = "1Mbit"
scheduler = { policy = { python = "mine.py:Mine" } }
class = [{ name = "all" }]
[[flow]]
class = "all"
path = ["feeder"]
kind = "cbr"
rate = "500kbit"
"""
MINE = """\
class Mine:
    def __init__(self, view, params, classes): ...
    def pick(self, view):
        return 0 if view.queues[0].ready else None
"""


@pytest.fixture(scope="module")
def module() -> Path:
    """The simulator of reports."""
    return compiled(playground.SMALL)


@pytest.fixture
def brought(module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package with the compiled simulator."""
    packed = tmp_path / "simulator.wasm.gz"
    packed.write_bytes(gzip.compress(module.read_bytes(), 9, mtime=0))
    packed.with_name(knobs.SOURCES).write_text(_native.sources)
    monkeypatch.setattr(knobs, "_module", lambda: packed)


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package with a file in place of the simulator, for tests that open no page."""
    packed = tmp_path / "simulator.wasm.gz"
    packed.write_bytes(b"module")
    packed.with_name(knobs.SOURCES).write_text(_native.sources)
    monkeypatch.setattr(knobs, "_module", lambda: packed)


@pytest.fixture
def missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package as it is built without the toolchain."""
    monkeypatch.setattr(knobs, "_module", lambda: tmp_path / "simulator.wasm.gz")


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A browser."""
    if PROGRAM is None:
        pytest.skip(f"NOT TESTED: a report with knobs in a browser: {MISSING}")
    with Browser() as opened:
        yield opened


def ran(scenario: str | Path, folder: Path) -> Path:
    """The directory of a run."""
    loaded = Scenario.load(scenario) if isinstance(scenario, Path) else Scenario.parse(scenario)
    directory = package.run(loaded, out=folder / "run").directory
    assert directory is not None
    return directory


def with_knobs(scenario: str | Path, folder: Path) -> Path:
    """The report of a run, with knobs."""
    directory = ran(scenario, folder)
    done = linkweir("report", directory, "--knobs")
    assert done.returncode == 0, done.stderr
    return directory / "report.html"


def opened(browser: Browser, report: Path) -> dict[str, list[str]]:
    """The numbers of the run that the page makes when it is opened."""
    browser.open(report.as_uri())
    browser.wait(DONE)
    cells: dict[str, list[str]] = browser.value(CELLS)
    return cells


def turned(browser: Browser, key: str, value: str) -> None:
    """Turns a knob to a value as people read it."""
    browser.value(f"""(() => {{
      document.querySelector("#knobs .state").textContent = "";
      const row = document.querySelector("#knobs [data-key='{key}']");
      const slider = row.querySelector("input");
      for (let place = 0; place <= slider.max; place++) {{
        slider.value = place;
        slider.dispatchEvent(new Event("input", {{ bubbles: true }}));
        if (row.querySelector("output").textContent === "{value}") return;
      }}
      throw new Error("no such value");
    }})()""")


# --- the page ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("brought")
def test_a_report_with_knobs_is_one_small_file_with_a_strict_policy(tmp_path: Path) -> None:
    report = with_knobs(SCENARIOS / "geo.toml", tmp_path)
    assert report.stat().st_size < MOST_BYTES
    text = report.read_text()
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy == (
        "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; worker-src blob:; "
        "style-src 'unsafe-inline'; img-src data:"
    )
    assert not re.search(r"<(?:script|link|img)[^>]* (?:src|href)=", text)


@pytest.mark.usefixtures("pretended")
def test_the_directory_is_named_from_inside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = ran(SMALL, tmp_path)
    monkeypatch.chdir(directory)
    done = linkweir("report", ".", "--knobs")
    assert done.returncode == 0, done.stderr
    text = (directory / "report.html").read_text()
    assert '"file": "run/scenario.toml"' in text
    assert "<pre>linkweir rerun run</pre>" in text


def test_a_class_may_have_a_name_that_javascript_knows() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("NOT TESTED: promises in node, which is missing: ./setup.sh playground")
    script = """
    globalThis.window = globalThis;
    require(process.argv[1]);
    const classes = { class: ["constructor", "af"], rate_bps: [1e6, 2e6], arrived_bytes: [1, 1] };
    const outcome = { simulated_s: 1, warmup_s: 0 };
    const found = linkweirShown.promises({ classes, promised: { af: 2e6 }, open_loop: [], outcome });
    console.log(JSON.stringify(found.map(linkweirShown.cellsOf)));
    """
    command = [node, "-e", script, Path(knobs.__file__).with_name("shown.js")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [["constructor", "\N{EN DASH}", ["1.00", None]], ["af", "2.00", ["2.00", True]]]


@pytest.mark.usefixtures("brought")
def test_knobs_move_their_numbers_and_nothing_is_asked_for(tmp_path: Path, browser: Browser) -> None:
    report = with_knobs(SCENARIOS / "pss-fade.toml", tmp_path)
    rates = {name: cells[:3] for name, cells in opened(browser, report).items()}
    assert rates["af"][0] == "5.00"
    assert rates["af"][1] == rates["af"][2]  # of this run and of the report's
    charts = "JSON.stringify(linkweirReport.data.links ?? linkweirReport.data.panels)"
    before = browser.value(charts)
    for memory, got in (("100ms", "4.02"), ("2s", "4.34"), ("10s", "5.00")):
        turned(browser, "class.af.memory", memory)
        browser.wait(DONE)
        assert browser.value(CELLS)["af"][:2] == ["5.00", got]
    turned(browser, "class.af.rate", "4Mbit")
    browser.wait(DONE)
    assert browser.value(CELLS)["af"][0] == "4.00"
    assert browser.value(charts) != before
    assert browser.requests()[0] == report.as_uri()
    assert [address for address in browser.requests()[1:] if not address.startswith(("blob:", "data:"))] == []
    assert browser.problems() == []


@pytest.mark.usefixtures("brought")
def test_firefox_opens_the_file_too(tmp_path: Path) -> None:
    if FIREFOX is None:
        pytest.skip(f"NOT TESTED: a report with knobs in Firefox: {WITHOUT_FIREFOX}")
    report = with_knobs(SCENARIOS / "pss-fade.toml", tmp_path)
    with Firefox(in_page=False) as gecko:
        gecko.open(report.as_uri())
        gecko.wait(DONE)
        rates = gecko.value(CELLS)["af"]
    assert rates[0] == "5.00"
    assert rates[1] == rates[2]  # of this run and of the report's


@pytest.mark.usefixtures("brought")
def test_the_changed_key_is_marked_and_can_be_run_at_home(tmp_path: Path, browser: Browser) -> None:
    report = with_knobs(SCENARIOS / "pss-fade.toml", tmp_path)
    opened(browser, report)
    turned(browser, "class.af.memory", "2s")
    browser.wait(DONE)
    marks = "[...document.querySelectorAll('#knobs mark')].map((mark) => mark.textContent)"
    assert browser.value(marks) == ['memory = "2s"\n']
    assert browser.value("document.querySelector('#knobs .command').textContent") == (
        "linkweir run run/scenario-changed.toml"
    )
    changed = browser.value("document.querySelector('#knobs .toml').textContent")
    (report.parent / "scenario-changed.toml").write_text(changed)
    home = package.run(Scenario.load(report.parent / "scenario-changed.toml"))
    [af] = (row for row in home.classes.to_pylist() if row["class"] == "af")
    assert browser.value(CELLS)["af"][1] == f"{af['rate_bps'] / 1e6:.2f}"
    browser.value("document.querySelector('#knobs .does').click()")  # as it was run
    browser.wait(f"{DONE} && document.querySelectorAll('#knobs mark').length === 0")
    row = browser.value(CELLS)["af"]
    assert row[1] == row[2]


@pytest.mark.usefixtures("brought")
def test_a_fault_shows_line_and_key_and_the_next_value_runs(tmp_path: Path, browser: Browser) -> None:
    report = with_knobs(SCENARIOS / "pss-fade.toml", tmp_path)
    opened(browser, report)
    text = (report.parent / "scenario.toml").read_text()
    level = Scenario.load(report.parent / "scenario.toml").native.written()["class"][0]["level"]
    turned(browser, "class.af.low_level", str(level))
    browser.wait(f"!{FAULT}.hidden")
    sentence = browser.value(f"{FAULT}.textContent")
    found = re.match(r"run/scenario\.toml:(\d+): class\[1\]\.(?:low_)?level = ", sentence)
    assert found, sentence
    assert "level" in text.splitlines()[int(found[1]) - 1]
    assert browser.value("document.querySelectorAll('#knobs mark.missed').length") == 1
    browser.value("document.querySelector('#knobs .does').click()")
    browser.wait(f"{DONE} && {FAULT}.hidden")


@pytest.mark.usefixtures("brought")
def test_files_of_the_scenario_and_links_of_a_network_are_there(tmp_path: Path, browser: Browser) -> None:
    for name in ("lte-drive", "household"):
        report = with_knobs(SCENARIOS / f"{name}.toml", tmp_path / name)
        browser.open(report.as_uri())
        browser.wait(DONE)  # without the words about other numbers
        assert browser.value(f"{FAULT}.hidden")
        assert browser.problems() == []


@pytest.mark.usefixtures("brought")
def test_charts_of_another_run_have_as_many_points_as_the_reports(tmp_path: Path, browser: Browser) -> None:
    flow = '[[flow]]\nclass = "c{0}"\nkind = "cbr"\nrate = "90kbit"\n'
    many = "".join(f'[[class]]\nname = "c{n}"\n{flow.format(n)}' for n in range(20))
    report = with_knobs(
        f'duration = "60s"\ninterval = "100ms"\n[link]\nrate = "2Mbit"\n[scheduler]\npolicy = "drr"\n{many}', tmp_path
    )
    opened(browser, report)
    points = browser.value("JSON.parse(document.getElementById('data').textContent).panels[0].x.length")
    assert points <= 201  # of 600 intervals, each the mean of three, and the end
    assert browser.value("linkweirReport.panels[0].panel.x.length") == points


@pytest.mark.usefixtures("brought")
def test_of_a_network_with_many_links_the_charts_stay_and_the_page_says_so(tmp_path: Path, browser: Browser) -> None:
    link = '[[link]]\nname = "l{0}"\nrate = "1Mbit"\nscheduler = {{ policy = "fifo" }}\nclass = [{{ name = "all" }}]\n'
    flow = '[[flow]]\nclass = "all"\npath = ["l{0}"]\nkind = "cbr"\nrate = "500kbit"\n'
    links = "".join(f"{link.format(n)}{flow.format(n)}" for n in range(51))
    report = with_knobs(f'duration = "2s"\n{links}', tmp_path)
    opened(browser, report)
    assert "The charts stay as they are" in browser.value("document.querySelector('#knobs .state').textContent")


@pytest.mark.usefixtures("brought")
def test_another_simulator_than_the_runs_is_noticed(tmp_path: Path, browser: Browser) -> None:
    report = with_knobs(SMALL, tmp_path)
    text = report.read_text()
    [rate] = re.findall(r'"af": \{"sent_bytes": \d+, "rate_bps": ([\d.]+)', text)
    report.write_text(text.replace(f'"rate_bps": {rate}', '"rate_bps": 1.5'))
    browser.open(report.as_uri())
    browser.wait("/built from other sources/.test(document.querySelector('#knobs .state').textContent)")


@pytest.mark.usefixtures("brought")
def test_knobs_are_found_and_turned_by_the_keyboard_alone(tmp_path: Path, browser: Browser) -> None:
    report = with_knobs(SCENARIOS / "geo.toml", tmp_path)  # so many knobs that all but the first table are folded
    opened(browser, report)
    summary = "document.activeElement.matches('#knobs details:not([open]) summary')"
    tab_to(browser, f"{summary} && document.activeElement.textContent === 'class af'")
    press(browser, "Enter")
    assert browser.value("document.activeElement.closest('details').open")
    tab_to(browser, "document.activeElement.matches('#knobs [data-key=\\'class.af.memory\\'] input')")
    shown = "document.activeElement.getAttribute('aria-valuetext')"
    before = browser.value(shown)
    browser.value("document.querySelector('#knobs .state').textContent = '', 0")
    press(browser, "ArrowRight")
    browser.wait(DONE)
    after = browser.value(shown)
    assert after != before
    assert browser.value("document.querySelector('#knobs mark').textContent").startswith(f'memory = "{after}"')
    tab_to(browser, "document.activeElement.textContent === 'As it was run'")
    browser.value("document.querySelector('#knobs .state').textContent = '', 0")
    press(browser, "Enter")
    browser.wait(f"{DONE} && document.querySelectorAll('#knobs mark').length === 0")


@pytest.mark.usefixtures("brought")
def test_it_fits_a_phone_and_moves_nothing_by_itself(tmp_path: Path, browser: Browser) -> None:
    report = with_knobs(SCENARIOS / "geo.toml", tmp_path)
    browser.resize(360, 740)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    opened(browser, report)
    assert browser.value("matchMedia('(prefers-reduced-motion: reduce)').matches")
    assert browser.value("document.getAnimations().length") == 0
    assert browser.value("document.documentElement.scrollWidth") <= 360
    slider = "document.querySelector(\"#knobs [data-key='class.af.memory'] input\")"
    browser.value(f"{slider}.closest('details').open = true, {slider}.focus(), 0")
    browser.value("document.querySelector('#knobs .state').textContent = '', 0")
    for kind in ("keyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key="End", code="End", windowsVirtualKeyCode=35)
    browser.wait(DONE)
    assert browser.value(f"{slider}.getAttribute('aria-valuetext')") == "100s"  # the scenario's duration
    assert browser.value("document.getAnimations().length") == 0


# --- what a browser cannot run ----------------------------------------------------------------------------------------


def refused(directory: Path) -> str:
    """The one line of a command that fails; the report that was there stays."""
    before = (directory / "report.html").read_bytes()
    done = linkweir("report", directory, "--knobs")
    assert done.returncode != 0
    assert (directory / "report.html").read_bytes() == before
    return done.stderr


@pytest.mark.usefixtures("missing")
def test_a_package_without_the_simulator_says_how_to_build_it(tmp_path: Path) -> None:
    said = refused(ran(SMALL, tmp_path))
    assert "simulator.wasm.gz: is missing, as this package was built without the simulator for browsers" in said
    assert "install the wheel of a release, which has it, or build this package after `make playground`" in said


@pytest.mark.usefixtures("pretended")
def test_a_simulator_of_other_sources_is_refused(tmp_path: Path) -> None:
    directory = ran(SMALL, tmp_path)
    noted = tmp_path / knobs.SOURCES
    noted.write_text("0123456789abcdef\n")
    assert "was compiled from other sources (0123456789abcdef) than this package (" in refused(directory)
    noted.unlink()
    assert "from other sources (unknown) than this package" in (said := refused(directory))
    assert "compile it again with `make playground`, then build the package" in said


@pytest.mark.usefixtures("missing")
def test_a_policy_of_the_users_own_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "own.toml").write_text(ONE_CLASS)
    said = refused(ran(tmp_path / "own.toml", tmp_path))
    assert 'scheduler.policy = {"python": "inputs/mine.py:Mine"}: is a policy of your own' in said
    assert "a browser has neither a compiler nor Python" in said


@pytest.mark.usefixtures("missing")
def test_a_policy_of_the_users_own_is_named_with_its_link(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "own.toml").write_text(ONE_LINK)
    said = refused(ran(tmp_path / "own.toml", tmp_path))
    assert said.count('link.feeder.scheduler.policy = {"python": "inputs/mine.py:Mine"}: is a policy of your own') == 1


@pytest.mark.usefixtures("missing")
def test_an_interrupted_run_is_refused(tmp_path: Path) -> None:
    directory = ran(SMALL, tmp_path)
    provenance = json.loads((directory / "provenance.json").read_text())
    stopped = {"status": "interrupted", "simulated_s": 1.0}
    (directory / "provenance.json").write_text(json.dumps(provenance | stopped))
    said = refused(directory)
    assert "the run was interrupted at 1 s of " in said
    assert "run its scenario to the end, or write its report without --knobs" in said


@pytest.mark.slow
@pytest.mark.usefixtures("missing")
def test_files_that_are_large_together_are_refused(tmp_path: Path) -> None:
    capacities = random.Random(1)
    for name in ("a", "b"):
        lines = (f"{n / 10:.1f},{capacities.randrange(10**6, 10**7)}\n" for n in range(200_000))
        (tmp_path / f"{name}.csv").write_text("t_s,capacity_bps\n" + "".join(lines))
    link = (
        '[[link]]\nname = "{0}"\ntrace = "{0}.csv"\nscheduler = {{ policy = "fifo" }}\nclass = [{{ name = "all" }}]\n'
    )
    flow = '[[flow]]\nclass = "all"\npath = ["{0}"]\nkind = "cbr"\nrate = "500kbit"\n'
    scenario = tmp_path / "long.toml"
    scenario.write_text('duration = "2s"\n' + "".join(link.format(name) + flow.format(name) for name in ("a", "b")))
    said = refused(ran(scenario, tmp_path))
    assert re.search(r"files have 3\.\d MB as a page brings them along, of which inputs/[ab]\.csv has 1\.\d MB;", said)
    assert "a report with knobs takes at most 2 MB" in said


@pytest.mark.usefixtures("missing")
def test_a_measured_run_and_a_sweep_are_refused(tmp_path: Path) -> None:
    directory = ran(SMALL, tmp_path)
    provenance = json.loads((directory / "provenance.json").read_text())
    (directory / "provenance.json").write_text(json.dumps(provenance | {"on": "qdisc", "where": "virtual"}))
    assert "was measured in the laboratory (provenance.json: on = qdisc)" in refused(directory)
    sweep = tmp_path / "sweep"
    sweep.mkdir()
    (sweep / "provenance.json").write_text(json.dumps(provenance | {"kind": "sweep"}))
    done = linkweir("report", sweep, "--knobs")
    assert done.returncode == 2
    assert "are those of a run; this directory holds several" in done.stderr
