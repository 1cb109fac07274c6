# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir view` opens a report, and `linkweir run --watch` shows a run while it goes on."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import webbrowser
from pathlib import Path

import pytest
from command import COMMAND, SMALL, linkweir, read_terminal
from rich.console import Console

import linkweir as package
from linkweir import Scenario
from linkweir.commands import watch


@pytest.fixture
def finished(tmp_path: Path, small: Path) -> Path:
    assert linkweir("run", small, "--out", tmp_path / "my run").returncode == 0
    return tmp_path / "my run"


def without_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)


def test_the_browser_gets_the_address_of_the_report(monkeypatch: pytest.MonkeyPatch, finished: Path) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))  # type: ignore[func-returns-value]
    monkeypatch.setenv("DISPLAY", ":7")
    done = linkweir("view", finished)
    assert (done.returncode, done.stderr) == (0, "")
    assert opened == [(finished / "report.html").resolve().as_uri()]
    assert done.stdout == f"report: {finished / 'report.html'}\n"


def test_without_a_screen_it_says_how_to_get_the_report(monkeypatch: pytest.MonkeyPatch, finished: Path) -> None:
    without_screen(monkeypatch)
    monkeypatch.setattr(webbrowser, "open", lambda _: pytest.fail("opened"))
    done = linkweir("view", finished)
    assert done.returncode == 0
    assert done.stdout == f"report: {finished / 'report.html'}\n"
    assert "no screen" in done.stderr
    assert re.search(r"scp '\S+:.*/my run/report\.html' \.", done.stderr)
    serve = re.search(r"python3 (-m http\.server .*'.*/my run' \d+)", done.stderr)
    assert serve is not None


def test_without_a_browser_it_says_so(monkeypatch: pytest.MonkeyPatch, finished: Path) -> None:
    monkeypatch.setenv("DISPLAY", ":7")
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    done = linkweir("view", finished)
    assert done.returncode == 0
    assert "no browser was found" in done.stderr


def test_what_has_no_report_is_refused(tmp_path: Path, finished: Path) -> None:
    for folder, why in ((tmp_path, "is not a run directory"), (tmp_path / "none", "is not a run directory")):
        done = linkweir("view", folder)
        assert done.returncode == 2
        assert why in done.stderr
    (finished / "report.html").unlink()
    done = linkweir("view", finished)
    assert done.returncode == 2
    assert f"linkweir report '{finished}' writes it" in done.stderr
    provenance = finished / "provenance.json"
    provenance.write_text(provenance.read_text().replace('"complete"', '"running"'))
    assert "still running or was killed" in linkweir("view", finished).stderr


LONG = SMALL.replace('"5s"', '"2000s"').replace("[link]", 'interval = "10s"\n[link]', 1)


def test_a_watcher_gets_what_each_class_has_sent() -> None:
    seen: list[tuple[float, list[int]]] = []
    result = package.run(Scenario.parse(LONG), watch=lambda simulated_s, sent: seen.append((simulated_s, list(sent))))
    assert len(seen) >= 1
    series = result.series.to_pandas()
    for simulated_s, sent in seen:
        assert 0 < simulated_s < 2000
        for name, sent_bytes in zip(("ef", "af", "cs0"), sent, strict=True):
            mine = series[series["class"] == name]
            whole = mine[mine["t_s"] + 10 <= simulated_s]["sent_bytes"].sum()
            begun = mine[mine["t_s"] <= simulated_s]["sent_bytes"].sum()
            assert whole <= sent_bytes <= begun
    assert [bytes_ for _, bytes_ in seen] == sorted(bytes_ for _, bytes_ in seen)


def test_a_watched_run_has_the_same_results(tmp_path: Path) -> None:
    scenario = tmp_path / "long.toml"
    scenario.write_text(LONG)
    assert linkweir("run", scenario, "--out", tmp_path / "out", "--watch", "--json").returncode == 0
    done = linkweir("rerun", tmp_path / "out")
    assert done.returncode == 0
    assert "identical: " in done.stdout


def test_a_terminal_shows_time_left_and_rates(tmp_path: Path) -> None:
    scenario = tmp_path / "long.toml"
    scenario.write_text(LONG)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "90", "LINES": "20"}
    words = [*COMMAND, "run", str(scenario), "--out", str(tmp_path / "out"), "--watch"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read_terminal(ours).decode())
    assert process.wait() == 0
    assert "of 2,000 s simulated" in shown
    assert re.search(r"about \d+ s left", shown)
    assert re.search(r"ef +0\.[45]\d\d +0\.[45]\d\d ", shown)  # 500 kbit/s, now and so far
    assert "so far (Mbit/s)" in shown


def test_without_a_terminal_there_is_a_line_at_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with watch.watching(Scenario.parse(SMALL)) as watcher:
        for tenths in (0.5, 1.2, 1.9, 2.1, 9.9):
            watcher(5.0 * tenths / 10, [62_500, 0, 0])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("linkweir: 1 of 5 s simulated, 0 s elapsed")
    assert lines[0].endswith("so far in Mbit/s: ef 0.833, af 0, cs0 0")


def test_the_rates_and_the_time_left_are_computed_from_the_reports() -> None:
    now_s = 0.0
    state = watch.State(Scenario.parse(SMALL), clock=lambda: now_s)
    assert state.left_s is None
    now_s = 2.0
    state.update(1.0, [125_000, 0, 0])
    assert (state.part, state.elapsed_s, state.left_s) == (0.2, 2.0, 8.0)
    assert (state.mean_bps(0), state.now_bps(0)) == (1e6, 1e6)
    state.update(2.0, [125_000, 250_000, 0])
    assert (state.mean_bps(0), state.now_bps(0)) == (5e5, 0.0)
    assert (state.mean_bps(1), state.now_bps(1)) == (1e6, 2e6)
    assert state.order(3) == [0, 1, 2]
    assert state.order(2) == [1, 0]  # those that sent most


def test_many_classes_fit_the_terminal() -> None:
    text = 'duration = "10s"\n[link]\nrate = "1Mbit"\n[scheduler]\npolicy = "rr"\n'
    text += '[[class]]\nname = "c"\ncount = 100\n[[flow]]\nclass = "c"\ncount = 100\nkind = "cbr"\nrate = "1kbit"\n'
    scenario = Scenario.parse(text)
    state = watch.State(scenario, clock=lambda: 1.0)
    state.update(5.0, list(range(100)))
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    console.print(watch._picture(scenario, state, console))
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert len(written.splitlines()) <= 23
    assert "c-100" in written
    assert "83 more, which sent less" in written


NAMED = 'duration = "10s"\n[link]\nrate = "1Mbit"\n[scheduler]\npolicy = "rr"\n[[class]]\nname = "NAME"\n'
NAMED += '[[flow]]\nclass = "NAME"\nkind = "cbr"\nrate = "1kbit"\n'


def seen_at(width: int, name: str) -> str:
    scenario = Scenario.parse(NAMED.replace("NAME", name))
    state = watch.State(scenario, clock=lambda: 1.0)
    state.update(5.0, [1_000_000])
    file = io.StringIO()
    console = Console(file=file, width=width, height=24, force_terminal=True, color_system=None)
    console.print(watch._picture(scenario, state, console))
    return file.getvalue()


@pytest.mark.parametrize("name", ["ef", "a-class-with-a-name-that-is-longer-than-the-terminal-is-wide"])
def test_a_narrow_terminal_shows_the_rates_whole(name: str) -> None:
    written = seen_at(40, name)
    assert re.search(r" 1\.600 +1\.600", written)
    assert "now (Mbit/s)" in written


def test_the_name_of_a_class_does_not_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in seen_at(80, r"x\u001b[2Jy")
    with watch.watching(Scenario.parse(NAMED.replace("NAME", r"x\u001b[2Jy\nz"))) as watcher:
        watcher(5.0, [1_000_000])
    written = capsys.readouterr().err
    assert "\x1b" not in written
    assert len(written.splitlines()) == 1
