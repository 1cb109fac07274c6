# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir reproduce codes`: modes, documents and what it refuses. No simulator is needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from result_tables import Fake
from typer.testing import CliRunner

from linkweir.commands.reproduce import app
from linkweir.reproduce import native
from linkweir.reproduce.figure import Scenario, Tables

runner = CliRunner()
FLOW = {
    "arrived_pkts": 120,
    "delivered_pkts": 96,
    "delivered_bytes": 96 * 210,
    "dropped_limit_pkts": 15,
    "dropped_policy_pkts": 5,
    "delay_mean_s": 0.2,
    "jitter_mad_s": 0.01,
    "jitter_rfc3550_s": 0.004,
    "goodput_bps": 1e6,
    "transmitted_pkts": 200.0,
    "retransmitted_pkts": 20.0,
    "retransmitted_fast_pkts": 15.0,
    "retransmitted_rto_pkts": 5.0,
    "spurious_pkts": 4.0,
}
ATTEMPTS = {
    "decoded_first_pkts": 50,
    "decoded_second_pkts": 30,
    "decoded_third_pkts": 10,
    "decoded_fourth_pkts": 6,
    "given_up_pkts": 4,
    "coded_bits": 300_000,
}


def alike(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
    """All runs give the same."""
    for number, scenario in enumerate(scenarios):
        take(number, Fake(harq=[ATTEMPTS], flows=[FLOW] * len(scenario["flow"])))


def broken_off(scenarios: Sequence[Scenario], take: Callable[[int, Tables], None]) -> None:
    """The user interrupts after half of the runs."""
    alike(scenarios[: len(scenarios) // 2], take)
    raise KeyboardInterrupt


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(native, "on", lambda *_: alike)
    return tmp_path


def codes(*words: str) -> Any:
    return runner.invoke(app, ["codes", "--quick", *words])


@pytest.mark.usefixtures("faked")
def test_each_mode_has_its_rows() -> None:
    published = json.loads(codes("--table", "2", "--json").stdout)
    assert {(row["users"], row["mode"]) for row in published["rows"]} == {(300, "published")}
    corrected = json.loads(codes("--table", "2", "--mode", "corrected", "--json").stdout)
    assert {(row["users"], row["mode"]) for row in corrected["rows"]} == {(300, "corrected"), (450, "corrected")}
    both = json.loads(codes("--table", "2", "--mode", "both", "--json").stdout)
    assert both == [published, corrected]
    assert [answer["figure"] for answer in both] == ["journal-2", "journal-2-corrected"]


@pytest.mark.slow
@pytest.mark.usefixtures("faked")
def test_no_figure_lacks_a_mode() -> None:
    for number in range(4, 29):
        answer = codes("--figure", str(number), "--mode", "both", "--json")
        assert answer.exit_code == 0, answer.output
        assert {row["mode"] for shown in json.loads(answer.stdout) for row in shown["rows"]} == {
            "published",
            "corrected",
        }
    for number in range(3, 15):
        answer = codes("--paper", "conference", "--figure", str(number), "--mode", "corrected")
        assert answer.exit_code == 0, answer.output


@pytest.mark.usefixtures("faked")
def test_rows_of_transfers_have_the_columns_of_voice_and_their_own() -> None:
    wanted = {"policy", "users", "mode", "cc", "reordering"}
    link = ("tx0", "tx1", "tx2", "tx3", "drop", "loss", "throughput_mbps", "latency_ms", "jitter_ms", "coded_mbps")
    own = ("goodput_mbps_min", "goodput_mbps_mean", "goodput_mbps_max", "goodput_mbps_sd", "retx_share", "rto_share")
    for name in (*link, "useful_mbps", *own):
        wanted |= {name, f"{name}_ci95"}
    for words in (["--figure", "17"], ["--figure", "27"], ["--table", "3"], ["--table", "5"]):
        for row in json.loads(codes(*words, "--json").stdout)["rows"]:
            assert wanted <= set(row), words


def test_headings_are_the_papers_and_say_the_mode(faked: Path) -> None:
    shown = codes("--table", "4", "--mode", "both", "--markdown", "--out", "out").stdout
    headings = [line for line in shown.splitlines() if line.startswith("#")]
    rest = ": goodput of the users with reordering, Mbit/s (the paper in brackets)"
    assert headings == [
        f"### Table 4 of the journal paper{rest}",
        f"### Table 4 of the journal paper, as corrected{rest}",
    ]
    text = (faked / "out/report.html").read_text()
    assert "<h2>Table 4 of the journal paper: goodput" in text
    assert "<p>Claimed: RR spreads least" in text
    codes("--table", "assumptions", "--out", "other")
    assert "Claimed:" not in (faked / "other/report.html").read_text()


def test_a_rival_at_one_load_has_a_mark(faked: Path) -> None:
    assert codes("--figure", "17", "--mode", "corrected", "--out", "out").exit_code == 0
    # Matplotlib draws each mark by a <use>; a line of one point is nothing else.
    picture = (faked / "out/figure-journal-17-corrected.svg").read_text()
    curve = [part for part in picture.split('<g id="line2d_')[1:] if "#000000" in part and "<use" in part]
    assert curve


def test_documents_get_what_has_a_place(faked: Path) -> None:
    document = faked / "doc.md"
    place = "<!-- table codes-journal-2 -->\nold\n<!-- end -->\n"
    document.write_text(place)
    answer = codes("--table", "2", "--mode", "both", "--into", "doc.md")
    assert answer.exit_code == 0
    assert "no place for codes-journal-2-corrected" in answer.stderr
    assert "codes-journal-2," not in answer.stderr
    assert "| 300 | RR | 14 | 50.00 ± 0.00 (50.96; -0.96) |" in document.read_text()


def test_documents_without_any_place_are_a_fault(faked: Path) -> None:
    (faked / "doc.md").write_text("# nothing here\n")
    answer = codes("--table", "2", "--into", "doc.md")
    assert answer.exit_code == 1
    assert "no place for codes-journal-2; one is two lines, <!-- table codes-journal-2 -->" in answer.stderr
    assert (faked / "doc.md").read_text() == "# nothing here\n"


def test_an_interrupted_run_leaves_documents_alone(faked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "on", lambda *_: broken_off)
    place = "<!-- table codes-journal-2 -->\nold\n<!-- end -->\n"
    (faked / "doc.md").write_text(place)
    answer = codes("--table", "2", "--into", "doc.md", "--out", "out")
    assert answer.exit_code == 1
    assert "doc.md was not changed" in answer.stderr
    assert (faked / "doc.md").read_text() == place


@pytest.mark.usefixtures("faked")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--json", "--markdown"], "give --json or --markdown, not both"),
        (["--figure", "3"], "must be one of 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,"),
        (["--table", "7"], "must be one of 2, 3, 4, 5, "),
        (["--table", "reordering", "--mode", "both"], '--mode = "both": --table reordering is published only'),
        (["--figure", "8", "--duration", "30s"], '--duration = "30s": must be at least 31s'),
        (["--figure", "17", "--duration", "20s"], '--duration = "20s": must be at least 21s'),
        (["--mode", "true"], "must be one of published, corrected, both"),
        (["--paper", "thesis"], "must be one of journal, conference"),
    ],
)
def test_what_is_refused(words: list[str], message: str) -> None:
    answer = codes(*words)
    assert answer.exit_code == 2
    assert message in answer.stderr
