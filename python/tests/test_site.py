# SPDX-License-Identifier: BSD-3-Clause
"""What makes and checks the site: links are rewritten, references are whole, and planted faults are found."""

from __future__ import annotations

import doctest
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from browser import Browser
from command import REPOSITORY

import linkweir

sys.path.insert(0, str(REPOSITORY / "docs/site"))

import check
import stage

SOUND = """<!doctype html>
<html><head><link rel="icon" href="data:,"><meta name="viewport" content="width=device-width"><style>
body { color: #222; background: #fff }
a { color: inherit }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #111 } }
</style></head>
<body><article><h1 id="top">Sound</h1><p>Text. <a href="#top">up</a></p></article></body></html>"""


def with_text(words: str) -> str:
    return SOUND.replace("Text.", words)


def site(folder: Path, **pages: str) -> Path:
    for name, text in {"index": SOUND, **pages}.items():
        (folder / f"{name}.html").write_text(text)
    return folder


def link_faults(folder: Path) -> list[str]:
    return list(check.links(folder, {path: check.Page(path) for path in folder.rglob("*.html")}))


def test_a_page_without_faults_has_none(tmp_path: Path) -> None:
    assert link_faults(site(tmp_path)) == []


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ('<a href="none.html">x</a>', "leads nowhere: none.html"),
        ('<a href="index.html#none">x</a>', "no such place: index.html#none"),
        ('<img src="none.png">', "leads nowhere: none.png"),
        ('<img src="https://example.org/x.png">', "is loaded from another host: https://example.org/x.png"),
        ('<img srcset="//example.org/x.png 2x">', "is loaded from another host: //example.org/x.png"),
        ('<link rel="stylesheet" href="https://example.org/x.css">', "is loaded from another host"),
        ('<script src="https://example.org/x.js"></script>', "is loaded from another host"),
        ('<a href="https://example.org/project/linkweir">x</a>', "leads to a host that is not among HOSTS"),
        ('<a href="https://github.com.example.org/">x</a>', "leads to a host that is not among HOSTS"),
        ('<a href="//example.org/">x</a>', "leads to a host that is not among HOSTS"),
    ],
)
def test_a_planted_link_is_found(planted: str, found: str, tmp_path: Path) -> None:
    (fault,) = link_faults(site(tmp_path, faulty=with_text(planted)))
    assert fault.startswith("faulty.html: ")
    assert found in fault


def test_links_to_other_hosts_are_listed(tmp_path: Path) -> None:
    page = with_text('<a href="https://semver.org/">x</a> <a href="https://semver.org/">x</a> <a href="#top">x</a>')
    folder = site(tmp_path, one=page, two=page)
    assert link_faults(folder) == []
    assert check.elsewhere({path: check.Page(path) for path in folder.rglob("*.html")}) == {"https://semver.org/": 2}


@pytest.mark.browser
@pytest.mark.slow
def test_what_only_a_browser_sees_is_found(tmp_path: Path) -> None:
    planted = {
        "wide": (
            '<div style="width: 500px">x</div>',
            r"wide\.html: is \d+ pixels wide on a screen of 360: \['DIV x'\]",
        ),
        "clipped": (
            '<style>body { overflow: hidden }</style><div style="width: 500px">y</div>',
            r"clipped\.html: is \d+ pixels wide on a screen of 360: \['DIV y'\]",
        ),
        "pale": ('<p style="color: #999">x</p>', r"pale\.html: a contrast of 2\.8\d, light: P\.: x"),
        "grey": ('<p style="color: #555">x</p>', r"grey\.html: a contrast of 2\.5\d, dark: P\.: x"),
        "veil": ('<p style="background: rgb(0 0 0 / 80%)">x</p>', r"veil\.html: a contrast of \d\.\d\d, light"),
        "cut": (
            '<p style="overflow: hidden; white-space: nowrap">' + "cut " * 500 + "</p>",
            r"cut\.html: is cut on a screen of 1280: \['P cut cut",
        ),
        "broken": (
            "<table style='width: 60px; table-layout: fixed'><td>"
            "<code style='overflow-wrap: anywhere'>interval_s</code></table>",
            r"broken\.html: is broken in two on a screen of 360: \['interval_s'\]",
        ),
        "script": ("<script>throw new Error('planted')</script>", r"script\.html: exception: Error: planted"),
        "console": ("<script>console.error('planted')</script>", r"console\.html: console: \['planted'\]"),
        "loads": (
            "<script>fetch('https://example.org/').catch(() => 0)</script>",
            r"loads\.html: request to another host: https://example\.org/",
        ),
    }
    scrolls = with_text('<div style="overflow-x: auto"><div style="width: 2000px">x</div></div>')
    pages = {name: with_text(words) for name, (words, _) in planted.items()}
    folder = site(tmp_path, scrolls=scrolls, **pages)
    with check.served(folder) as root:
        faults = check.look(root, ["index.html", "scrolls.html", *(f"{name}.html" for name in planted)], Event())
    for _, pattern in planted.values():
        assert any(re.match(pattern, fault) for fault in faults), (pattern, faults)
    assert {fault.split(".html")[0] for fault in faults} == set(planted)


@pytest.mark.browser
def test_a_browser_leaves_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name:  # the browser's sockets need a short path
        monkeypatch.setenv("TMPDIR", name)
        monkeypatch.setattr(tempfile, "tempdir", None)
        with Browser() as browser:
            browser.open("about:blank")
            assert list(Path(name).iterdir())
        assert list(Path(name).iterdir()) == []


def test_one_half_ends_when_the_other_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(root: str, pages: list[str], stop: Event) -> list[str]:
        if "index.html" in pages:
            raise RuntimeError("planted")
        ended.append(stop.wait(20))
        return []

    ended: list[bool] = []
    monkeypatch.setattr(check, "look", look)
    with pytest.raises(RuntimeError, match="planted"):
        check.in_browsers(site(tmp_path, other=SOUND), None)
    assert ended == [True]


def far_faults(folder: Path) -> list[str]:
    pages = {path: check.Page(path) for path in folder.rglob("*.html")}
    return [*check.menu(folder, pages), *check.far(folder, pages)]


def framed(menu: str, text: str) -> str:
    return f'<div class="sidebar-tree"><div><ul>{menu}</ul></div></div><div><article><div>{text}</div></article></div>'


def test_a_page_that_is_three_steps_from_the_menu_is_found(tmp_path: Path) -> None:
    def link(name: str) -> str:
        return f'<a href="{name}.html">x</a>'

    pages = {"one": framed("", link("two")), "two": framed("", link("three")), "three": framed("", link("four"))}
    front = framed(link("one"), "text")
    site(tmp_path, index=front, **pages, four=SOUND, moved='<meta http-equiv="refresh" content="0; url=one.html">')
    assert far_faults(tmp_path) == ["four.html: is more than 2 steps from the first 9 pages of the menu"]
    # what only the menu names, and not among its first pages, does not count
    (tmp_path / "index.html").write_text(framed("".join(map(link, [*"abcdefgh", "one", "three"])), "text"))
    assert [fault.split(".")[0] for fault in far_faults(tmp_path)] == ["four", "one", "three", "two"]


def test_a_menu_with_too_many_entries_is_found(tmp_path: Path) -> None:
    entries = "".join(f'<a href="page.html#{number}">x</a>' for number in range(31))
    site(tmp_path, index=framed(entries, "text"), page=SOUND)
    assert far_faults(tmp_path) == ["the menu has 31 entries; at most 30 are allowed"]


def test_an_old_address_that_is_gone_is_found(tmp_path: Path) -> None:
    known = tmp_path / "addresses.txt"
    known.write_text("index\ndocs/gone\n")
    faults = list(check.addresses(site(tmp_path), known))
    assert faults == ["docs/gone.html: was a page and is gone; add where it has moved to docs/site/moved.toml"]


def test_a_page_that_leads_on_to_nowhere_is_found(tmp_path: Path) -> None:
    (fault,) = link_faults(site(tmp_path, old='<meta http-equiv="refresh" content="0; url=new.html">'))
    assert fault == "old.html: leads nowhere: new.html"


def test_too_many_words_are_found() -> None:
    assert list(check.wordy()) == []
    (fault,) = check.wordy(1)
    assert fault.endswith("words outside of docs/records/ and CHANGELOG.md; at most 1 are allowed")


Lay = Callable[[str, str], str]


@pytest.fixture
def laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lay:
    """Lays out a small repository with one page, and gives the text that Sphinx would read of a file of it."""
    repository = tmp_path / "repository"
    monkeypatch.setattr(stage, "REPOSITORY", repository)
    monkeypatch.setattr(stage, "DOCS", repository / "docs")
    monkeypatch.setattr(stage, "OWN", repository / "docs/site")
    monkeypatch.setattr(stage, "ROOT_PAGES", ())
    (repository / "README.md").parent.mkdir(parents=True, exist_ok=True)
    (repository / "README.md").write_text("# Front\n")
    for name in ("docs/howto/other.md", "docs/reference/policies/pss.md", "bench/README.md", "core/a.h", "runs/x.csv"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("# Other\n" if name.endswith(".md") else "int a; /* ``` */\n")
    shutil.copy(REPOSITORY / "docs/images/core.svg", repository / "docs/howto/core.svg")

    def lay(words: str, name: str) -> str:
        (repository / "docs/howto/page.md").write_text(f"# Page\n\n{words}\n")
        stage.stage(tmp_path / "laid")
        text: str = (tmp_path / "laid" / name).read_text()
        return text

    return lay


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("[a](other.md)", "[a](other.md)"),
        ("[a](other.md#place)", "[a](other.md#place)"),
        ("[a](#place)", "[a](#place)"),
        ("[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("![a](core.svg)", "![a](core.svg)"),
        ("[`a.h`](../../core/a.h)", "[`a.h`](../../core/a.h.md)"),
        ("[a](../reference/policies)", "[a](../reference/policies/index.md)"),
        ("[a](../../bench)", "[a](../../bench/README.md)"),
        ("[a](../../README.md#start)", "[a](../../index.md#start)"),
        ("[a](../../core)", "[a](../../core/index.md)"),
        ("`[a](../../core/a.h)`", "`[a](../../core/a.h)`"),
        ("```\n[a](../../core/a.h)\n```", "```\n[a](../../core/a.h)\n```"),
    ],
)
def test_links_lead_to_pages(link: str, becomes: str, laid: Lay) -> None:
    assert laid(link, "docs/howto/page.md") == f"# Page\n\n{becomes}\n"


def test_a_source_that_is_linked_has_a_page_which_no_search_finds(laid: Lay) -> None:
    page = laid("[a](../../core/a.h)", "core/a.h.md")
    assert "# core/a.h" in page
    assert "int a; /* ``` */" in page
    assert "nosearch: true" in page


def test_a_source_that_nothing_links_to_has_none(laid: Lay) -> None:
    with pytest.raises(FileNotFoundError):
        laid("Text.", "core/a.h.md")


def test_links_of_notebooks_lead_to_pages_too(laid: Lay, tmp_path: Path) -> None:
    folder = tmp_path / "repository/docs/notebooks"
    folder.mkdir()
    cells = (
        '{"cell_type": "markdown", "metadata": {}, "source": ["# A\\n", "[a](../../core/a.h)"]}, '
        '{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1, "source": ["[a](../../core/a.h)"]}'
    )
    (folder / "study.ipynb").write_text(f'{{"cells": [{cells}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}')
    laid("Text.", "docs/howto/page.md")
    text = (tmp_path / "laid/docs/notebooks/study.ipynb").read_text()
    assert text.count("../../core/a.h.md") == 1
    assert (tmp_path / "laid/core/a.h.md").exists()


def test_the_front_page_has_a_card_for_each_reader() -> None:
    front = stage.cards("# Front\n\n* **A**: to a. [x](y.md), 1 minute\n* **B**: b.\n\nEnd.\n")
    card = "::::{{container}} card\n**{}**\n\n{}\n::::\n\n"
    cards = card.format("A", "To a. [x](y.md), 1 minute") + card.format("B", "B.")
    assert front == f"# Front\n\n:::::{{container}} cards\n\n{cards}:::::\n\n\nEnd.\n"
    readers = check.REPOSITORY / "README.md"
    assert stage.cards(readers.read_text()).count("{container} card\n") == 5


def test_the_menu_lists_only_pages_that_are_there(tmp_path: Path) -> None:
    for name in ("a/first.md", "a/zebra.md", "a/ant.ipynb", "b/one.rst", "a/picture.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    lists = "\n".join(
        f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"
        for caption, entries in (("A", "One <a/first>\na/*"), ("B", "b/one\nb/*"), ("C", "c/index\nc/*"))
    )
    assert stage.navigation(f"# Front\n\n{lists}", tmp_path).split("\n") == [
        *("# Front", "", "```{toctree}", ":hidden:", ":caption: A", "", "One <a/first>", "a/ant", "a/zebra", "```", ""),
        *("```{toctree}", ":hidden:", ":caption: B", "", "b/one", "```", "", ""),
    ]


def test_pages_of_the_gallery_lead_from_where_they_will_be(laid: Lay, tmp_path: Path) -> None:
    laid("Text.", "docs/howto/page.md")
    made = tmp_path / "made"
    made.mkdir()
    (made / "voice.md").write_text("![p](voice.svg) [a](../../core/a.h) [b](../howto/page.md) [c](voice.toml)")
    for name in ("voice.svg", "voice.toml"):
        (made / name).write_text("x = 1")
    place = tmp_path / "repository/docs/gallery"
    stage.stage(tmp_path / "again", {place / path.name: path for path in made.iterdir()})
    folder = tmp_path / "again/docs/gallery"
    links = "![p](voice.svg) [a](../../core/a.h.md) [b](../howto/page.md) [c](voice.toml.md)"
    assert (folder / "voice.md").read_text() == links
    assert "x = 1" in (folder / "voice.toml.md").read_text()
    assert (folder / "voice.svg").exists()


def test_the_index_of_the_gallery_lists_its_pages_in_its_order(tmp_path: Path) -> None:
    for name in ("ant", "zebra", "unnamed", "ant.toml"):
        (tmp_path / f"{name}.md").touch()
    index = tmp_path / "index.md"
    stage.list_pages(index)
    assert not index.exists()
    index.write_text("# Gallery\n\n[z](zebra.md) [a](ant.md) [z](zebra.md) [f](ant.toml.md) [o](../other.md)\n")
    for _ in range(2):
        stage.list_pages(index)
        assert index.read_text().split("\n\n", 2)[2] == "```{toctree}\n:hidden:\n\nzebra\nant\nunnamed\n```\n"


def test_the_examples_in_docstrings_hold() -> None:
    for module in (stage.reference, stage.reference.headers):
        failed, attempted = doctest.testmod(module)
        assert attempted
        assert not failed


def test_the_reference_has_every_public_name_policy_and_command(tmp_path: Path) -> None:
    stage.reference.write(tmp_path / "api")
    python = (tmp_path / "api/python.md").read_text()
    assert [name for name in linkweir.__all__ if f"linkweir.{name}" not in python] == ["__version__"]
    policies = (tmp_path / "api/policies.md").read_text()
    for policy in linkweir.policies():
        section = policies.split(f"\n## {policy.name}\n")[1].split("\n## ")[0]
        for param in (*policy.params, *policy.class_params):
            assert f"| `{param.name}` |" in section
    commands = (tmp_path / "api/command-line.md").read_text()
    for words in ("run", "check", "compare", "lab run", "reproduce pss", "plan pss"):
        assert f"\n## linkweir {words}\n" in commands, words
    assert "`--trace`" in commands


def test_each_policy_page_has_its_parameters_and_its_place_in_the_list(tmp_path: Path) -> None:
    for name in (*(policy.name for policy in linkweir.policies()), "ours_like"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nSends. And more.\n")
    stage.reference.write_policies(tmp_path)
    assert "\n## Parameters\n" in (tmp_path / "pss.md").read_text()
    assert "| `low_level` |" in (tmp_path / "pss.md").read_text()
    assert (tmp_path / "ours_like.md").read_text() == "# ours_like\n\nSends. And more.\n"
    index = (tmp_path / "index.md").read_text()
    assert "| [ours_like](ours_like.md) | Sends. |" in index
    listed = index.split(":hidden:\n\n")[1].split("\n```")[0].split("\n")
    assert listed == [*(policy.name for policy in linkweir.policies()), "ours_like"]


def test_the_contract_has_every_declaration_of_its_headers(tmp_path: Path) -> None:
    stage.reference.write(tmp_path / "api")
    page = (tmp_path / "api/contract.rst").read_text()
    header = (REPOSITORY / "core/include/linkweir/policy.h").read_text()
    for name in re.findall(r"^#define (LW_\w+) ", header, re.MULTILINE):
        assert re.search(rf"^\.\. c:macro:: {name}$", page, re.MULTILINE), name
    for name in re.findall(r"^(?:struct|enum) (\w+) \{", header, re.MULTILINE):
        assert re.search(rf"^\.\. c:(struct|enum):: {name}$", page, re.MULTILINE), name
    calls = re.findall(r"\(\*(\w+)\)\(", header)
    assert len(calls) > 10
    for name in calls:
        assert re.search(rf"^   \.\. c:member:: .*\(\*{name}\)\(", page, re.MULTILINE), name
    for name in re.findall(r"^\t(LW_\w+)", header, re.MULTILINE):
        assert re.search(rf"^   \.\. c:enumerator:: {name}\b", page, re.MULTILINE), name
    sent = page.split("(*sent)(")[1].split(".. c:member::")[0]
    assert "optional event" in sent
