# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the papers for a reader's own link: what changes, what is left out, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from linkweir.commands.reproduce import app
from linkweir.reproduce.own_link import OwnLink, on_link
from linkweir.reproduce.papers import codes, pss

runner = CliRunner()


def moved(name: str, traffic: str = "backlogged", **own: Any) -> Any:
    figure = pss.FIGURES[name](pss.PssOptions(traffic, quick=True))
    return on_link([figure], OwnLink(**own), pss.LINK_BPS, scales=True)[0]


def test_without_options_figures_are_the_paper_s() -> None:
    figure = pss.FIGURES["6"](pss.PssOptions())
    assert on_link([figure], OwnLink(), pss.LINK_BPS, scales=True)[0] is figure


def test_on_another_link_every_run_has_another_identity_and_no_printed_numbers(tmp_path: Path) -> None:
    of_paper = {case.key for case in pss.FIGURES["6"](pss.PssOptions("tcp", quick=True)).cases}
    trace = tmp_path / "mine.csv"
    trace.write_text("# end=loop\n# period_s=2\nt_s,capacity_bps\n0,30e6\n1,50e6\n")
    for own in ({"link": "40Mbit"}, {"delay": "20ms"}, {"trace": trace}):
        figure = moved("6", "tcp", **own)
        assert figure.printed is None
        assert not figure.claimed
        assert not of_paper & {case.key for case in figure.cases}


def test_a_satellite_s_es_n0_makes_other_runs() -> None:
    figure = codes.TABLES["journal-2"](codes.CodesOptions(quick=True))
    seven, thirteen = (on_link([figure], OwnLink(esn0=db), codes.LINK_BPS, scales=False)[0] for db in (7, 13))
    assert {case.scenario["link"]["satellite"]["esn0_db"] for case in seven.cases} == {7}
    assert "brackets" in figure.title
    assert "brackets" not in seven.title
    assert seven.summary is None
    assert len({case.key for one in (figure, seven, thirteen) for case in one.cases}) == 3 * len(
        {case.key for case in figure.cases}
    )


def test_loads_and_reservations_are_the_same_parts_of_another_link() -> None:
    """Twice the link: twice EF's rate, AF's reservation and EF's queue, the same memory."""
    before, after = pss.FIGURES["7"](pss.PssOptions(quick=True)).cases[0].scenario, moved("7", link="40Mbit").cases[0]
    after = after.scenario
    assert after["link"]["rate"]["mean"] == "40000000bit"
    assert after["link"]["nominal"] == "40000000bit"
    assert after["flow"][0]["rate"]["mean"] == f"{2 * int(before['flow'][0]['rate']['mean'][:-3])}bit"
    af = [next(one for one in run["class"] if one["name"] == "af") for run in (before, after)]
    assert int(af[1]["rate"][:-3]) == 2 * int(af[0]["rate"][:-3])
    assert [run["class"][0]["limit"] for run in (before, after)] == ["500p", "1000p"]


@pytest.mark.slow
def test_the_rates_on_another_link_are_those_of_the_equations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 4 Mbit/s with EF expected at half: K_AF 0.5 reserves 1 Mbit/s, and EF at three quarters leaves 1 Mbit/s."""
    monkeypatch.chdir(tmp_path)
    words = ["pss", "--figure", "6", "--quick", "--duration", "10s", "--link", "4Mbit", "--json"]
    done = runner.invoke(app, words)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    row = next(r for r in rows if (r["scheduler"], r["k_af"], r["ef_share"]) == ("pss", 0.5, 0.75))
    assert row["af_theory_mbps"] == pytest.approx(1)
    assert row["af_mbps"] == pytest.approx(1, rel=0.03)
    row = next(r for r in rows if (r["scheduler"], r["k_af"], r["ef_share"]) == ("dwrr", 0.5, 0.25))
    assert row["af_mbps"] == pytest.approx(row["af_theory_mbps"], rel=0.03) == pytest.approx(1.5, rel=0.03)


def test_a_trace_without_header_is_read_by_the_keys_that_are_given(tmp_path: Path) -> None:
    """10 and 50 Mbit/s for a second each are 30 Mbit/s: one and a half times the paper's link."""
    trace = tmp_path / "mine.csv"
    trace.write_text("0;10\n1;50\n")
    keys = {"columns": {"t": 1, "capacity": {"column": 2, "unit": "Mbit"}}}
    link = moved("6", "tcp", trace=trace, trace_keys=keys).cases[0].scenario["link"]
    assert link["trace"] == str(trace)
    assert link["columns"] == keys["columns"]
    assert link["nominal"] == "30000000bit"
    columns = 'columns={ t = 1, capacity = { column = 2, unit = "Mbit" } }'
    words = ["pss", "--figure", "13", "--trace", str(trace)]
    without, told = (runner.invoke(app, [*words, *more]) for more in ([], ["--trace-key", columns]))
    assert without.exit_code == 2
    assert "has no header" in without.stderr
    assert "read: " in told.stderr
    assert "mean 30Mbit" in told.stderr
    assert "is theory" in told.stderr


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["pss", "--figure", "6", "--esn0", "7"], "only those of codes"),
        (["pss", "--figure", "6", "--delay", "20ms"], "do not react to delay"),
        (["pss", "--figure", "13", "--link", "4Mbit"], "is theory"),
        (["pss", "--figure", "6", "--link", "4"], "needs a unit"),
        (["pss", "--figure", "6", "--link", "11bit"], "is allowed"),
        (["pss", "--figure", "6", "--trace", "none.csv"], "cannot be read"),
        (["pss", "--figure", "6", "--link", "4Mbit", "--into", "doc.md"], "keeps tables of the paper's link"),
        (["pss", "--where", "virtual", "--link", "4Mbit"], "is for --where sim"),
        (["pss", "--figure", "6", "--trace-key", "end=loop"], "give --trace, too"),
        (["pds", "--link", "4Mbit"], "about ratios"),
        (["codes", "--table", "2", "--trace", "t.csv"], "sets what its link carries"),
        (["codes", "--table", "2", "--esn0", "99"], "7 .. 20 dB"),
    ],
)
def test_what_a_figure_does_not_have_is_refused(
    words: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("doc.md").write_text("text\n")
    Path("t.csv").write_text("# end=loop\n# period_s=2\nt_s,capacity_bps\n0,50e6\n1,50e6\n")
    done = runner.invoke(app, words)
    assert done.exit_code == 2, done.output
    assert part in done.stderr
