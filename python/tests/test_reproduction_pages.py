# SPDX-License-Identifier: BSD-3-Clause
"""What the reproduction pages say in words is what their own tables hold: their sentences are made from the tables."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable

import pytest
import recorded
from recorded import MEASURED, PAGES, RESULTS, Block, blocks

from linkweir.reproduce import plot, printed
from linkweir.reproduce.figure import Figure, Panel
from linkweir.reproduce.page import FigureResult, published, report
from linkweir.reproduce.papers import codes_printed
from linkweir.reproduce.printed import Comparison, Number, Printed

PDS = "pss pds pss-pds-kernel pss-gateways"
CODES = "codes codes-journal codes-conference"
CORRECTED = "codes-corrected codes-journal-corrected codes-conference-corrected"
CORRECTED_AGE = "codes-corrected codes-journal-corrected-age codes-conference-corrected-age"
VERDICTS = "README"


@functools.cache
def text(pages: str) -> str:
    """What the pages of one work say together: findings are on one, the tables they are made from on others."""
    return "\n".join((RESULTS / f"{page}.md").read_text(encoding="utf-8") for page in pages.split())


@functools.cache
def table(page: str, name: str) -> tuple[dict[str, str], ...]:
    """The first table under a mark, a dict for each line."""
    (body,) = (after.split("<!-- end -->")[0] for after in text(page).split(f"<!-- table {name} -->")[1:])
    lines = re.search(r"(?:^\|.*\n)+", body, re.MULTILINE)
    assert lines is not None, name
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[0].splitlines()]
    return tuple(dict(zip(head, row, strict=True)) for row in rows)


def value(page: str, name: str, column: str, **where: str) -> float:
    """A cell's number, without its interval, of the one line that has these values."""
    (row,) = (row for row in table(page, name) if all(row[key] == wanted for key, wanted in where.items()))
    return float(row[column].split()[0])


def at(name: str, users: int, policy: str, page: str = CORRECTED) -> float:
    return value(page, name, policy, users=str(users))


def error(history: str) -> float:
    return value(PDS, "pds-11", "error_in_windows", history=history, phase="loaded")


def pair(name: str, k_af: str, column: str, number: int) -> tuple[float, float]:
    """Kernel and simulation of AF (0) or CS0 (1)."""
    (row,) = (row for row in table(PDS, name) if row["K_AF"] == k_af)
    kernel, simulation = row[column].split(", ")[number].split(" (")[0].split(" / ")
    return float(kernel), float(simulation)


def more(name: str, k_af: str, column: str) -> float:
    kernel, simulation = pair(name, k_af, column, 0)
    return 100 * (simulation / kernel - 1)


def difference(name: str, k_af: str, column: str, number: int) -> float:
    kernel, simulation = pair(name, k_af, column, number)
    return abs(simulation - kernel)


def lost_less(users: int, figure: str, policy: str) -> float:
    return at(figure, users, "PF") - at(figure, users, policy)


CONFERENCE_LOSS, JOURNAL_LOSS = "codes-conference-5-corrected", "codes-journal-6-corrected"
CONFERENCE_LATENCY = "codes-conference-7-corrected"

LATENCY, GAIN = "codes-journal-timeouts-corrected", "codes-journal-16-corrected"
FRAMES = ("BPS-like", "BBS-like")


def longer_timeout_ms(users: int) -> float:
    return at(LATENCY, users, "CoDeS 200 ms") - at(LATENCY, users, "CoDeS 50 ms")


def onset() -> list[float]:
    return [lost_less(users, JOURNAL_LOSS, policy) for users in (400, 450) for policy in FRAMES]


def drops(policy: str, cause: str) -> float:
    return value(CODES, "codes-conference-11", cause, policy=policy, users="75")


def codes(name: str, users: int, *policies: str) -> list[float]:
    """A line of a table of the published simulations."""
    return [at(name, users, policy, page=CODES) for policy in policies]


def pf_and_others(name: str, users: int) -> list[float]:
    return codes(name, users, "PF", "RR", "DT_H", "DT_S")


CODES_TIMEOUTS = ("CoDeS 200 ms", "CoDeS 100 ms", "CoDeS 50 ms", "PF")


def at_age_0(paper: str, figure: str, users: int, *policies: str) -> list[float]:
    """A line of a table of the corrected simulations with perfect channel knowledge."""
    name = f"codes-{paper}-{figure}-corrected-age-0s"
    return [at(name, users, policy, page=CORRECTED_AGE) for policy in policies]


CODES_BY_TIMEOUT = ("CoDeS 50 ms", "CoDeS 100 ms", "CoDeS 200 ms", "PF")


def gain_at_age_0() -> list[float]:
    pf, rr = at_age_0("journal", "4", 450, "PF", "RR")
    return [100 * (pf / rr - 1)]


SENTENCES: list[tuple[str, str, Callable[[], list[float]]]] = [
    (
        CORRECTED_AGE,
        "yes: {:.0f} against {:.0f} % at 450 users, and 3.2 ± 0.2 against 18.5 ± 1.7 % lost; it carries {:.0f} % more",
        lambda: [*at_age_0("journal", "5", 450, "PF", "RR"), *gain_at_age_0()],
    ),
    (
        CORRECTED_AGE,
        "and {:.1f} ± 0.2 against {:.1f} ± 1.7 % lost",
        lambda: at_age_0("journal", "6", 450, "PF", "RR"),
    ),
    (
        CORRECTED_AGE,
        "{:.0f} against {:.0f} ms at 100 users (conference), {:.0f} against {:.0f} ms at 450 (journal)",
        lambda: [*at_age_0("conference", "8", 100, "PF", "RR"), *at_age_0("journal", "9", 450, "PF", "RR")],
    ),
    (
        CORRECTED_AGE,
        "among 125 users of the conference paper it has more, {:.0f} against {:.0f} ms",
        lambda: at_age_0("conference", "8", 125, "PF", "RR"),
    ),
    (
        CORRECTED_AGE,
        "{:.1f}, {:.1f}, {:.1f} and {:.1f} ms, jitter {:.1f}, {:.1f}, {:.1f} and {:.1f} ms",
        lambda: [
            *at_age_0("conference", "timeouts", 100, *CODES_BY_TIMEOUT),
            *at_age_0("conference", "12", 100, *CODES_BY_TIMEOUT),
        ],
    ),
    (
        CORRECTED_AGE,
        "In the journal's case latencies differ by at most {:.1f} ms",
        lambda: [
            max(
                max(found) - min(found)
                for users in (100, 300, 350, 400, 450, 500)
                for found in [at_age_0("journal", "timeouts", users, *CODES_BY_TIMEOUT)]
            )
        ],
    ),
    (
        CORRECTED_AGE,
        "at 75 users {:.2f}, {:.2f}, {:.2f} against {:.2f} %, at 100 users {:.2f}, {:.2f}, {:.2f} against {:.2f} %",
        lambda: [
            *at_age_0("conference", "13", 75, *CODES_BY_TIMEOUT),
            *at_age_0("conference", "13", 100, *CODES_BY_TIMEOUT),
        ],
    ),
    (
        CORRECTED_AGE,
        "({:.2f} and {:.2f} at 100 users); CoDeS the same as PF within the intervals, {:.2f} there",
        lambda: at_age_0("conference", "14", 100, "PF", "DT_S", "CoDeS 100 ms"),
    ),
    (
        CORRECTED_AGE,
        "yes, and beyond: {:.2f} among 500 users of the journal version",
        lambda: at_age_0("journal", "10", 500, "PF"),
    ),
    (
        CORRECTED_AGE,
        "lose less than PF at 75 users ({:.1f} to {:.1f} against {:.1f} %), `BBS-like` more ({:.1f} %)",
        lambda: [
            min(at_age_0("conference", "5", 75, "M-LWDF", "EXP/PF", "UBMT-like", "BPS-like")),
            max(at_age_0("conference", "5", 75, "M-LWDF", "EXP/PF", "UBMT-like", "BPS-like")),
            *at_age_0("conference", "5", 75, "PF", "BBS-like"),
        ],
    ),
    (
        CORRECTED_AGE,
        "lose as much as PF, the others more: {:.0f}, {:.0f} and {:.0f} %",
        lambda: at_age_0("conference", "5", 100, "M-LWDF", "UBMT-like", "BBS-like"),
    ),
    (
        CORRECTED_AGE,
        "with knowledge as old as reports are, and {:.1f} % with perfect knowledge",
        lambda: at_age_0("conference", "5", 100, "PF"),
    ),
    (
        VERDICTS,
        "{:.2f} % at 75 users, RR {:.2f}, DT_H {:.2f}, DT_S {:.2f}",
        lambda: pf_and_others("codes-conference-5", 75),
    ),
    (
        VERDICTS,
        "{:.1f} % at 300 users, RR {:.1f}, DT_H {:.1f}, DT_S {:.1f}",
        lambda: pf_and_others("codes-journal-6", 300),
    ),
    (
        VERDICTS,
        "({:.0f} and {:.0f} ms at 75 users, {:.0f} and {:.0f} at 100)",
        lambda: [*codes("codes-conference-7", 75, "DT_H", "PF"), *codes("codes-conference-7", 100, "DT_H", "PF")],
    ),
    (
        VERDICTS,
        "({:.0f} and {:.0f} ms at 300 users)",
        lambda: codes("codes-journal-8", 300, "DT_H", "PF"),
    ),
    (
        VERDICTS,
        "{:.1f} ms at 75 users, the others at most {:.1f}",
        lambda: [
            *codes("codes-conference-8", 75, "PF"),
            max(codes("codes-conference-8", 75, "DT_S", "DT_H", "RR")),
        ],
    ),
    (
        VERDICTS,
        "CoDeS loses {:.1f} times as much as PF at 75 users",
        lambda: codes("codes-conference-9", 75, "loss"),
    ),
    (
        VERDICTS,
        "CoDeS loses {:.1f} times as much as PF at 300 users",
        lambda: codes("codes-journal-11", 300, "loss"),
    ),
    (VERDICTS, "{:.2f} and {:.2f} at 50 users", lambda: codes("codes-conference-10", 50, "PF", "DT_S")),
    (VERDICTS, "{:.2f} and {:.2f} at 200 users", lambda: codes("codes-journal-10", 200, "PF", "DT_S")),
    (
        VERDICTS,
        "at 75 users {:.1f}, {:.1f} and {:.1f} % (200, 100, 50 ms) against {:.1f}",
        lambda: codes("codes-conference-13", 75, *CODES_TIMEOUTS),
    ),
    (
        VERDICTS,
        "at 75 users, where PF has {:.1f} and CoDeS {:.1f}",
        lambda: codes("codes-conference-14", 75, "PF", "CoDeS 100 ms"),
    ),
    (
        VERDICTS,
        "at 300 users, where PF has {:.1f} and CoDeS {:.1f}",
        lambda: codes("codes-journal-14", 300, "PF", "CoDeS 100 ms"),
    ),
    (
        VERDICTS,
        "where RR gains {:.0f} % and PF {:.0f};",
        lambda: codes("codes-journal-16", 20, "RR", "PF"),
    ),
    (
        VERDICTS,
        "at 100 users PF decodes {:.0f} % and CoDeS {:.0f} % at the first attempt, RR {:.0f}, DT {:.0f}",
        lambda: codes("codes-journal-19", 100, "PF", "CoDeS 100 ms", "RR", "DT_S"),
    ),
    (
        VERDICTS,
        "RR gains {:.0f} and {:.0f} % at 10 and 20 users, {:.0f} and {:.0f} % at 40 and 100",
        lambda: [at("codes-journal-21", users, "RR", page=CODES) for users in (10, 20, 40, 100)],
    ),
    (
        CORRECTED,
        "in the conference's {:.1f} and {:.1f} points at 75 users, {:.1f} and {:.1f} at 100",
        lambda: [lost_less(users, CONFERENCE_LOSS, policy) for users in (75, 100) for policy in FRAMES],
    ),
    (
        CORRECTED,
        "{:.1f} to {:.1f} points less than PF in the journal's case (400 and 450 users)",
        lambda: [min(onset()), max(onset())],
    ),
    (
        CORRECTED,
        "75 users: {:.1f} %; PF {:.1f}), but at 100 users, with everything late, it loses {:.0f} against PF's {:.0f} %",
        lambda: [at(CONFERENCE_LOSS, users, policy) for users in (75, 100) for policy in ("EXP/PF", "PF")],
    ),
    (
        CORRECTED,
        "50 and 200 ms differ by {:.0f} ms at 450 users and by {:.0f} at 500",
        lambda: [longer_timeout_ms(450), longer_timeout_ms(500)],
    ),
    (
        CORRECTED,
        "RR loses {:.0f}, {:.0f} and {:.0f} % at 20, 40 and 100 users, PF {:.0f}, {:.0f} and {:.0f} %",
        lambda: [-at(GAIN, users, policy) for policy in ("RR", "PF") for users in (20, 40, 100)],
    ),
    (
        CORRECTED,
        "{:.1f} Mbit/s at 40 users; RR carries {:.1f} there and PF {:.1f}",
        lambda: [at("codes-journal-17-corrected", 40, policy) for policy in ("DT_H", "RR", "PF")],
    ),
    (
        CORRECTED,
        "under PF ({:.1f} %) as under RR ({:.1f}) and DT_H ({:.1f})",
        lambda: [at("codes-journal-19-corrected", 40, policy) for policy in ("PF", "RR", "DT_H")],
    ),
    (
        CORRECTED,
        "PF sends {:.1f} % of the segments again, DT_H {:.1f}, RR {:.1f}",
        lambda: [at("codes-journal-18-corrected", 40, policy) for policy in ("PF", "DT_H", "RR")],
    ),
    (
        CORRECTED,
        "{:.0f} against {:.0f} ms at 450 users (journal), and {:.0f} against {:.0f} ms at 100 users (conference)",
        lambda: [
            at(figure, users, policy)
            for figure, users in (("codes-journal-8-corrected", 450), (CONFERENCE_LATENCY, 100))
            for policy in ("FQ-CoDel", "RR")
        ],
    ),
    (
        CODES,
        "{:.1f} times as many at the onset of saturation",
        lambda: [drops("CoDeS 100 ms", "loss_late") / drops("PF", "loss_full")],
    ),
    (
        PDS,
        "Decayed counters come nearer there ({:.1f})",
        lambda: [value(PDS, "pds-11", "ratio", history="decayed 1500", phase="light")],
    ),
    (
        PDS,
        "have {:.1f} (K 1500) and {:.1f} (5000) of the error of the ring",
        lambda: [error(f"decayed {k}") / error(f"ring {k}") for k in (1500, 5000)],
    ),
    (
        PDS,
        "most {:.1f} % (Figures 11 and 12, DWRR, EF 0.5, K_AF 0.9); where it gives less, by at most {:.2f} Mbit/s (CS0",
        lambda: [more("pss-11-virtual", "0.9", "DWRR EF 0.5"), difference("pss-11-virtual", "0.9", "DWRR EF 0.5", 1)],
    ),
]
"""Page, sentence and the figures in it, from the page's tables."""


@pytest.mark.parametrize(("page", "sentence", "figures"), SENTENCES)
def test_prose_says_what_its_tables_hold(page: str, sentence: str, figures: Callable[[], list[float]]) -> None:
    assert sentence.format(*figures()) in re.sub(r"\s+", " ", text(page))


def test_every_figure_and_table_of_a_paper_has_a_verdict() -> None:
    rows = [line for line in text(VERDICTS).splitlines() if re.search(r"\.md#", line) and line.startswith("| ")]
    for line in rows:
        verdict = line.split("|")[3]
        assert re.search(r"\*\*(reproduced|refuted|theory only)\*\*", verdict), line
    linked = set(re.findall(r"\(((?:pss|pds|codes-journal|codes-conference)\.md#[\w-]+)\)", "\n".join(rows)))
    for page in ("pss", "pds", "codes-journal", "codes-conference"):
        headings = re.findall(r"^##+ ((?:Figures?|Table) .*)$", text(page), re.MULTILINE)
        assert headings
        for heading in headings:
            anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            assert f"{page}.md#{anchor}" in linked, heading


def test_the_page_of_results_counts_the_verdicts() -> None:
    counted: Counter[tuple[str, ...]] = Counter()
    for line in text(VERDICTS).splitlines():
        if re.search(r"\.md#", line) and line.startswith("| "):
            _, numbers, _, verdict, *_ = (cell.strip() for cell in line.split("|"))
            first, _, last = numbers.partition(" to ")
            found = sorted(set(re.findall(r"\*\*(reproduced|refuted|theory only)\*\*", verdict)))
            counted[tuple(found)] += int(last) - int(first) + 1 if last else numbers.count(",") + 1
    reproduced, partly = counted["reproduced",], counted["refuted", "reproduced"]
    said = re.sub(r"\s+", " ", (RESULTS.parent / "results.md").read_text())
    assert (
        f"Of their {counted.total()} figures and tables, {reproduced} are reproduced, {partly} partly, "
        f"{counted['refuted',]} are refuted, and {counted['theory only',]} is theory only."
    ) in said


def test_the_policies_that_lose_least_are_named_so() -> None:
    for figure, users in ((CONFERENCE_LOSS, 75), (CONFERENCE_LOSS, 100), (JOURNAL_LOSS, 400), (JOURNAL_LOSS, 450)):
        (row,) = (row for row in table(CORRECTED, figure) if row["users"] == str(users))
        losses = {name: float(cell.split()[0]) for name, cell in row.items() if name != "users" and cell}
        assert sorted(losses, key=lambda name: losses[name])[:2] == ["BPS-like", "BBS-like"], (figure, users)


def test_the_largest_differences_of_kernel_and_simulation_are_those_named() -> None:
    large: list[tuple[float, str]] = []
    small: list[tuple[float, str]] = []
    for name in (f"pss-{number}-virtual" for number in (5, 6, 7, 9, 11, 12)):
        for row in table(PDS, name):
            for column in (column for column in row if column != "K_AF" and row[column]):
                for number in (0, 1):
                    kernel, simulation = pair(name, row["K_AF"], column, number)
                    theory = float(row[column].split(", ")[number].split("(")[1].rstrip(")"))
                    place = f"{column} K_AF {row['K_AF']}"
                    if theory >= 2:
                        large.append((abs(simulation / kernel - 1), place))
                    else:
                        small.append((abs(simulation - kernel), place))
    assert max(large)[1] == max(small)[1] == "DWRR EF 0.5 K_AF 0.9"


def test_figure_7_agrees_in_kernel_and_simulation_at_every_point() -> None:
    rows = table(PDS, "pss-7-virtual")
    points = [(row["K_AF"], column) for row in rows for column in row if column != "K_AF"]
    assert len(points) == 60
    for k_af, column in points:
        kernel, simulation = pair("pss-7-virtual", k_af, column, 0)
        assert abs(simulation - kernel) <= max(0.05, 0.1 * kernel), (k_af, column)


def test_tables_of_a_report_are_open() -> None:
    rows = [{"x": 1.0, "y": 2.0}]
    figure = Figure("one", "One", "claim", (), lambda _: rows, (), ("x", "y"))
    page = report("title", "command", {}, [FigureResult(figure, rows, details=rows, other=rows)], complete=True)
    assert page.count("<table>") == 3
    assert page.count("<details open>") == page.count("<details") == 3
    for name in (PDS, CODES, CORRECTED):
        assert "<details" not in text(name)


def test_pictures_of_a_report_keep_their_identifiers_apart() -> None:
    """matplotlib gives the parts of every picture the same names, and a page has many pictures."""
    picture = '<svg><clipPath id="a"/><use href="#a"/><path clip-path="url(#a)"/></svg>'
    rows = [{"x": 1.0}]
    shown = [
        FigureResult(Figure(name, name.title(), "claim", (), lambda _: rows, (), ("x",)), rows, picture=picture)
        for name in ("one", "two")
    ]
    page = report("title", "command", {}, shown, complete=False)
    for name in ("one", "two"):
        assert page.count(f'id="{name}-a"') == page.count(f'href="#{name}-a"') == page.count(f"url(#{name}-a)") == 1
    assert 'id="a"' not in page
    assert '<p class="warning">Interrupted: only the runs that had finished are shown.</p>' in page


# --- What the papers print ------------------------------------------------------------------------------------------

BLOCKS = [(page, block) for page in (*PAGES, *MEASURED) for block in blocks(page) if block.figure.printed is not None]
NAMES = [f"{page} {block.name}" for page, block in BLOCKS]


def of_figures() -> list[tuple[str, Printed]]:
    """What is printed of each figure and table of the papers."""
    return [(name, figure.printed) for name, figure in recorded.figures().items() if figure.printed is not None]


def test_every_printed_number_names_its_source_and_unit() -> None:
    source = re.compile(r"(Sections? [\w.-]+( and [\w.-]+)?|Table \w+|Equation \(\d\)|Abstract|axis of Figure \d+)")
    for name, of in of_figures():
        for number in of.numbers:
            assert number.unit in printed.UNITS, (name, number)
            assert source.fullmatch(number.source), (name, number)
            assert number.what
            assert number.column or number.measure is not None, (name, number)
            assert bool(number.upper) == (number.how == "between"), (name, number)
            assert number.value != 0


def test_every_figure_says_what_could_be_read_of_it() -> None:
    names = {name for name, _ in of_figures()}
    assert {f"pss-{n}" for n in range(5, 14)} | {f"pds-{n}" for n in range(4, 12)} <= names
    assert {f"codes-journal-{n}" for n in (2, *range(4, 29), "table-3", "table-4", "table-5")} <= names
    assert {f"codes-conference-{n}" for n in range(2, 15)} <= names
    for name, figure in recorded.figures().items():
        of = figure.printed
        assert (of is None) == (name not in names)
        if of is None or (of.table and of.numbers):
            continue
        assert of.table or of.sentence.startswith(printed.UNREAD), name
        if not of.numbers and figure.panels:
            assert "which prints no value of it" in of.sentence, name


def test_pictures_say_so_too() -> None:
    rows = [{"users": n, "policy": "PF", "y": float(n)} for n in (10, 20)]
    panel = Panel("y", "users", "y", "users", "y", ("policy",), lines=True)
    at_20 = {"users": 20, "policy": "PF"}

    def drawn(*numbers: Number) -> str:
        figure = Figure("1", "One", "claim", (), lambda _: rows, (panel,), ("y",), printed=Printed(numbers))
        canvas = plot.canvas(figure, rows)
        legend = canvas.axes[0].get_legend()
        marks = [(line.get_marker(), *line.get_xydata().tolist()) for line in canvas.axes[0].lines]
        return f"{[text.get_text() for text in legend.get_texts()]} {marks} {canvas.get_supxlabel()}"

    without = drawn()
    assert "which prints no value of it" in without.replace("\n", " ")
    assert "published" not in without.split("The published")[0]
    both = drawn(
        Number("y", "17", "ms", "Section 5", "y", at_20),
        Number("y", "15", "ms", "Section 6", "y", at_20, how="at least"),
        Number("z", "15", "ms", "Section 7", "z", at_20),
    )
    assert "'published (text, Sec. 5)', 'published (text, Sec. 6; more than)'" in both
    assert "('*', [20.0, 17.0])" in both
    assert "('^', [20.0, 15.0])" in both
    assert "Sec. 7" not in both


def test_points_of_tables_are_drawn_into_figures() -> None:
    expected = {
        "journal-5": 4,
        "journal-17": 18,
        "journal-20": 12,
        "journal-26": 12,
        "journal-27": 6,
        "conference-4": 4,
    }
    for name, count in expected.items():
        figure = recorded.figures()[f"codes-{name}"]
        assert figure.printed is not None
        places = [plot._place(panel, number) for panel in figure.panels for number in figure.printed.numbers]
        assert sum(place is not None for place in places) == count, name
    cdf = recorded.figures()["codes-journal-27"]
    assert cdf.printed is not None
    assert plot._place(cdf.panels[0], cdf.printed.numbers[0]) == (0.38, 1 / 40)


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=NAMES)
def test_pages_compare_what_the_papers_print(page: str, block: Block) -> None:
    """The printed numbers are those of the data, ours those of the page's own table, and the differences follow."""
    of = block.figure.printed
    assert of is not None
    compared = of.compare(block.rows)
    known = {_key(number): number for number in of.numbers}
    listed = [Comparison(known[line["printed number"]], float(line["ours"])) for line in _lines(block)]
    assert of.said(listed or compared) in block.text
    assert printed.grid(listed)[1] == [[*line.values()] for line in block.published]
    missing = [one.number for one in compared if one.number not in [other.number for other in listed]]
    assert not missing or of.in_brackets
    for one in listed:
        table = one.number.ours(block.rows)
        if table is not None:
            last = 10.0 ** -printed.decimals(one.number, one.ours)
            # What follows from several values of the table has the rounding of each.
            allowed = 1.01 * last if one.number.measure is None else 0.01 * abs(table)
            assert one.ours == pytest.approx(table, abs=allowed), one.number.what
    if of.in_brackets:
        _check_brackets(block, compared)


def _lines(block: Block) -> list[dict[str, str]]:
    """Lines on printed numbers; a number of two tables is told apart by its source."""
    return [{**line, "printed number": f"{line['printed number']}, {line['source']}"} for line in block.published]


def _key(number: Number) -> str:
    return f"{number.what}, {number.source}"


def _check_brackets(block: Block, compared: list[Comparison]) -> None:
    cells = re.findall(r"(\d+\.\d+) ± \d+\.\d+ \((\d+\.\d+); ([+-]\d+\.\d+)\)", block.text)
    values = [one for one in compared if one.number.measure is None]
    assert sorted((one.ours, one.number.value) for one in values) == sorted((float(a), float(b)) for a, b, _ in cells)
    for ours, of, gap in cells:
        assert float(gap) == pytest.approx(float(ours) - float(of), abs=1e-9)
    assert printed.tally(values) in block.text


def simulated() -> list[Comparison]:
    """What the pages of the simulator compare, each printed number once."""
    once = [block for page in PAGES for block in blocks(page) if not block.name.endswith("-tcp")]
    found: list[Comparison] = []
    for block in once:
        of = block.figure.printed
        if of is None:
            continue
        known = {_key(number): number for number in of.numbers}
        listed = [Comparison(known[line["printed number"]], float(line["ours"])) for line in _lines(block)]
        if of.in_brackets:
            listed += [one for one in of.compare(block.rows) if one.number.measure is None]
        found += [one for one in listed if not one.number.again]
    return found


def test_the_summary_counts_what_the_pages_compare() -> None:
    verdicts = re.sub(r"\s+", " ", text(VERDICTS))
    every = simulated()
    tables = [one for one in every if one.number.source.startswith("Table ")]
    assert len(tables) == 184
    assert printed.tally(tables) in verdicts
    rest = [one for one in every if one not in tables]
    assert printed.tally(rest) in verdicts
    assert f"print {len(every)} numbers" in verdicts
    silent = [name for name, of in of_figures() if not of.numbers]
    assert f"{len(silent)} of the {len(of_figures())} figures and tables give no number" in verdicts
    for one in every:
        if one.holds is False:
            outside = rf"{re.escape(one.number.text)}; ours( reach)? {one.ours:g}\b"
            assert re.search(outside, verdicts), one.number


def test_the_summary_counts_means_spreads_and_shares() -> None:
    def near(*columns: str) -> tuple[int, int]:
        found = [one for one in simulated() if one.number.column in columns and one.number.source.startswith("Table ")]
        return sum(one.part <= 0.1 + 1e-9 for one in found), len(found)

    verdicts = re.sub(r"\s+", " ", text(VERDICTS))
    assert "{} of the {} means of goodput".format(*near("goodput_mbps_mean")) in verdicts
    assert "{} of the {} standard deviations".format(*near("goodput_mbps_sd")) in verdicts
    assert "{} of the {} shares of packets".format(*near(*codes_printed.SPLIT)) in verdicts


def test_figures_without_a_table_say_so_in_prose() -> None:
    for page, heading in (("pss", "## Figure 13"), ("pds", "## Figures 10 and 11")):
        section = text(page).split(heading)[1].split("\n## ")[0]
        assert "which prints no value of it" in re.sub(r"\s+", " ", section)


def test_misprints_are_named() -> None:
    remarks = {one.remark for name, of in of_figures() for one in of.numbers if name.startswith("codes-journal")}
    assert set(codes_printed.MISPRINTS.values()) <= remarks


def test_a_report_has_the_comparison_next_to_the_values() -> None:
    rows = [{"x": 1.0, "y": 2.0}]
    number = Number("y at 1", "4", "Mbit/s", "Section 5", "y", {"x": 1.0})
    figure = Figure("1", "One", "claim", (), lambda _: rows, (), ("x", "y"), printed=Printed((number,)))
    shown = FigureResult(figure, rows)
    page = report("title", "command", {}, [shown], complete=True)
    assert "<td>-2.00 (-50.0 %)</td>" in page
    assert printed.UNREAD in page.replace("&#x27;", "'")
    assert published(shown)[1].splitlines()[-1] == "| y at 1 | 4 Mbit/s | Section 5 | 2.00 | -2.00 (-50.0 %) |"
    elsewhere = FigureResult(figure, [{"x": 3.0, "y": 2.0}])
    assert published(elsewhere) == [
        f"{printed.UNREAD}; the numbers that it prints belong to cases that were not run here."
    ]
