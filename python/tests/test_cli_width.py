# SPDX-License-Identifier: BSD-3-Clause
"""Tables in terminals of 80 and 60 columns: no line is longer, no heading and no value is cut."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command import SMALL, linkweir, on_a_terminal

from linkweir import policies
from linkweir.report import CLASS_COLUMNS

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
TALKING = SMALL.replace('kind = "poisson"', 'kind = "poisson"\nplayout = "60ms"')


def table_of(text: str, last: str) -> list[str]:
    """The lines up to the one that begins so."""
    lines = text.splitlines()
    return lines[: next(i for i, line in enumerate(lines) if line.startswith(last))]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "small.toml").write_text(SMALL)
    (folder / "talking.toml").write_text(TALKING)
    assert linkweir("run", folder / "small.toml", "--out", folder / "out").returncode == 0
    return folder / "out"


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 60])
def test_the_table_of_a_run_fits(width: int, run: Path) -> None:
    text = on_a_terminal(width, "report", run)
    lines = table_of(text, "not shown: ")
    assert max(map(len, lines)) <= width
    assert ELLIPSIS not in text
    # Every value of the table without a limit that is shown here is shown whole, and so is each word of its heading.
    whole = linkweir("report", run).stdout.splitlines()
    values = {row.split()[0]: set(row.split()) for row in whole[1:4]}
    for row in lines[-3:]:
        assert set(row.split()) <= values[row.split()[0]]
    words = {word for title, *_ in CLASS_COLUMNS for word in title.split()} | {"class"}
    assert {word for line in lines[:-3] for word in line.split()} <= words
    # What is left out is named, and nothing else is.
    [named] = [line for line in text.splitlines() if line.startswith("not shown: ")]
    missing = named.removeprefix("not shown: ").split("; ")[0].split(", ")
    assert set(missing) < {title for title, *_ in CLASS_COLUMNS}
    assert len(lines[-1].split()) == 1 + len(CLASS_COLUMNS) - len(missing)
    assert "rate (Mbit/s)" not in missing
    assert "loss (%)" not in missing


@pytest.mark.slow
def test_wide_shows_every_column_in_any_terminal(run: Path) -> None:
    text = on_a_terminal(60, "report", run, "--wide")
    for title, *_ in CLASS_COLUMNS:
        assert title in text.splitlines()[0]
    assert "not shown" not in text
    assert text.splitlines()[:4] == linkweir("report", run).stdout.splitlines()[:4]


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 60])
def test_the_table_of_voice_fits(width: int, run: Path) -> None:
    text = on_a_terminal(
        width, "run", run.parent / "talking.toml", "--out", run.parent / f"voice{width}", "--mos", "g711"
    )
    at = next(i for i, line in enumerate(text.splitlines()) if "MOS" in line)
    lines = text.splitlines()[at:]
    assert max(map(len, lines[:2])) <= width
    assert "worst" in lines[0] + lines[1]
    call = next(line for line in lines if line.startswith("poisson1, 60ms, g711 "))
    assert len(call.split()) >= 3 + 3
    assert ELLIPSIS not in text


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 60])
def test_parameters_of_policies_fit(width: int) -> None:
    for policy in policies():
        lines = on_a_terminal(width, "policies", policy.name).splitlines()
        assert not [line for line in lines if ELLIPSIS in line], policy.name
        for param in (*policy.params, *policy.class_params):
            rows = [line for line in lines if line.startswith(f"{param.name} ")]
            assert rows, (policy.name, param.name)
            assert max(len(row.rstrip()) for row in rows) <= width, policy.name
            shown = {word for line in lines for word in line.split()}
            assert {*param.range.split(), *param.help.split()} <= shown, (policy.name, param.name)


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 60])
def test_tables_of_a_plan_fit_and_lose_nothing(width: int) -> None:
    rates = [word for mbit in (1, 2, 3, 1, 2, 3, 1, 2) for word in ("--rate", f"{mbit}Mbit")]
    lines = table_of(on_a_terminal(width, "plan", "pss", "--link", "20Mbit", *rates), "[scheduler]")
    tables = [line for line in lines if not line.startswith("warning: ")]
    assert max(map(len, tables)) <= width
    text = "\n".join(tables)
    assert ELLIPSIS not in text
    for i in range(1, 9):
        assert re.search(rf"(?m)\baf{i}\b", text)
        assert re.search(rf"PSS af{i}|PSS.*\n.*af{i}", text)
    targets = [float(value) for line in tables if line.startswith("target Mbit/s") for value in line.split()[2:]]
    assert targets == [1, 2, 3, 1, 2, 3, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 40])
def test_tables_of_a_reproduction_fit(width: int, tmp_path: Path) -> None:
    arguments = ["--figure", "6", "--quick", "--duration", "2s", "--out", tmp_path / "out"]
    text = on_a_terminal(width, "reproduce", "pss", *arguments)
    assert ELLIPSIS not in text
    lines = [line for line in text.splitlines() if not line.startswith("report: ")]
    assert max(map(len, lines)) <= width
    assert "PSS EF" in text
    assert ("not shown: DWRR EF 0.25," in text) == (width == 40)


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 60, 54, 38, 20])
def test_each_queue_of_a_plan_is_shown_once_on_a_terminal_of_any_width(width: int) -> None:
    wanted = {"af1": "0.100", "af2": "3.000", "af3": "0.100", "af4": "50.000", "af5": "0.000", "af6": "0.012"}
    given = ("100kbit", "3Mbit", "100kbit", "50Mbit", "10bit", "12345bit")
    rates = [word for rate in given for word in ("--rate", rate)]
    text = on_a_terminal(width, "plan", "pss", "--link", "1Gbit", *rates)
    first, second = re.split(r"Rates\s+with\s+everything\s+backlogged", text)
    targets: dict[str, str] = {}
    for table in first.split("\n\n")[1:]:
        names = [name for line in table.splitlines()[:1] for name in line.split()]
        row = re.search(r"(?m)^target[^0-9]*((?:[0-9.]+ *)+)$", table)
        if row and names:
            assert not set(names) & set(targets)
            targets |= dict(zip(names, row[1].split(), strict=True))
    assert targets == wanted
    for name in wanted:
        assert len(re.findall(rf"\b{name}\b", second.split("[scheduler]")[0])) == 1
