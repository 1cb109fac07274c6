# SPDX-License-Identifier: BSD-3-Clause
"""Puts together what Sphinx makes the site from: the pages of the repository, and pages made from its sources.

The Markdown of the repository stays as it is and reads well without a site. Here it is copied, in the layout of the
repository, so that relative links keep their meaning. Links to files that are no pages, such as a header or a scenario,
lead to a page that shows the file; links to folders lead to the folder's README or to a list of its pages. README.md
becomes the site's first page, with its readers as cards, and menu.md below it.

If there is docs/pictures/gallery.py, it is called with a folder, into which it writes pages and pictures. They get
their place in docs/gallery, as if they were in the repository: their links lead from there.

    .venv/bin/python docs/site/stage.py build/site-source
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import playground
import reference

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
OWN = DOCS / "site"
GALLERY = DOCS / "pictures" / "gallery.py"
FRONT = "README.md"
ROOT_PAGES = (
    FRONT,
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    ".github/SECURITY.md",
    ".github/CODE_OF_CONDUCT.md",
)
MARKUP = {".c": "c", ".h": "c", ".def": "c", ".py": "python", ".rs": "rust", ".toml": "toml", ".sh": "sh", ".js": "js"}
PICTURES = (".svg", ".png")
PAGES = (".md", ".ipynb")
ORPHAN = "---\norphan: true\n---\n\n"
"""Before pages that no list of the site names; links lead to them."""
SOURCE = ORPHAN.replace("true\n", "true\nnosearch: true\n")
"""Before sources, which a search need not find."""
MOST_BYTES = 200_000
"""Of a source that is shown; a longer one is offered as a file."""
_LINK = re.compile(r"""(?:(?<=\]\()|(?<=<img src="))([^)"\s#]+)(#[^)"\s]*)?""")
_CODE = re.compile(r"^```.*?^```$|(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", re.DOTALL | re.MULTILINE)
"""A fenced block, or code within a paragraph."""
MADE = {
    "docs/howto/simulate.md": (
        "On this site are also a [gallery](../gallery/index.md) of all shipped scenarios, the [command "
        "line](../../api/command-line.md) and the [Python package](../../api/python.md)."
    ),
    "docs/howto/choose.md": "The site also has [all parameters](../../api/policies.md) on one page.",
    "docs/howto/extend.md": "The site also has [the contract in C](../../api/contract.rst), call by call.",
}
"""Paragraphs at the ends of pages: links to what only the site has, as it is made."""
_READER = re.compile(r"^\* \*\*(.+?)\*\*: (.+)$", re.MULTILINE)
_TOCTREE = re.compile(r"^```\{toctree\}\n((?::[^\n]*\n)*)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def main() -> None:
    """Writes the folder named on the command line anew."""
    into = Path(sys.argv[1])
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    stage(into, gallery(into.with_name("gallery")))
    list_pages(into / "docs/gallery/index.md")
    reference.write(into / "api")
    reference.write_policies(into / reference.POLICY_PAGES)
    shutil.copytree(OWN / "static", into / "static")
    playground.write(into / "static")
    for name in ("conf.py", "playground.py", "moved.toml", "addresses.txt"):
        shutil.copy(OWN / name, into)
    for page, words in MADE.items():
        with (into / page).open("a", encoding="utf-8") as end:
            end.write(f"\n{words}\n")
    menu = navigation((OWN / "menu.md").read_text(encoding="utf-8"), into)
    front = into / FRONT
    (into / "index.md").write_text(f"{cards(front.read_text(encoding='utf-8'))}\n{menu}", encoding="utf-8")
    front.unlink()


def gallery(folder: Path) -> dict[Path, Path]:
    """The files that the gallery's program makes, by their place in the repository."""
    if not GALLERY.exists():
        return {}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run([sys.executable, GALLERY, folder], check=True)
    return {DOCS / "gallery" / path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}


def stage(into: Path, made: Mapping[Path, Path] | None = None) -> None:
    """Copies all pages, and what they link to and show.

    Args:
        into: an empty folder.
        made: files that are not in the repository, by their place in it.
    """
    made = made or {}
    waiting = [REPOSITORY / name for name in ROOT_PAGES] + sorted(
        path for suffix in PAGES for path in DOCS.rglob(f"*{suffix}")
    )
    waiting = [page for page in waiting if OWN not in page.parents and ".ipynb_checkpoints" not in page.parts] + list(
        made
    )
    done: set[Path] = set()
    while waiting:
        source = waiting.pop()
        if source in done:
            continue
        done.add(source)
        content = made.get(source, source)
        place = into / source.relative_to(REPOSITORY)
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix in PAGES:
            relink = relinked if source.suffix == ".md" else notebook_relinked
            text, linked = relink(content.read_text(encoding="utf-8"), source, made)
            listed_elsewhere = source.parent in (REPOSITORY, REPOSITORY / ".github") or DOCS in source.parents
            place.write_text(text if listed_elsewhere else ORPHAN + text, encoding="utf-8")
            waiting += linked
        elif source.suffix in PICTURES:
            shutil.copy(content, place)
        elif source.is_dir():
            (place / "index.md").parent.mkdir(parents=True, exist_ok=True)
            (place / "index.md").write_text(listing(source), encoding="utf-8")
            waiting += listed(source)
        else:
            place.with_name(place.name + ".md").write_text(shown(source, content), encoding="utf-8")
            shutil.copy(content, place)


def relinked(text: str, page: Path, made: Mapping[Path, Path]) -> tuple[str, list[Path]]:
    """The text of a page with links as the site needs them, and the files that they lead to."""
    linked: list[Path] = []

    def link(found: re.Match[str]) -> str:
        address, anchor = found[1], found[2] or ""
        if re.match(r"[a-z]+:", address):
            return found[0]
        target = (page.parent / address).resolve()
        if target.is_dir() and (target / "README.md").exists():
            target /= "README.md"
            address = f"{address.rstrip('/')}/README.md"
        if not target.exists() and target not in made:
            return found[0]  # Sphinx refuses it, with page and line
        linked.append(target)
        if target == REPOSITORY / FRONT:
            return f"{address.removesuffix(FRONT)}index.md{anchor}"
        if target.is_dir():
            address = f"{address.rstrip('/')}/index.md"
        elif target.suffix not in (*PAGES, *PICTURES):
            address += ".md"
        return address + anchor

    return _outside_code(text, lambda part: _LINK.sub(link, part)), linked


def notebook_relinked(text: str, page: Path, made: Mapping[Path, Path]) -> tuple[str, list[Path]]:
    """The same for a notebook: the links of its texts."""
    notebook = json.loads(text)
    linked: list[Path] = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"], found = relinked("".join(cell["source"]), page, made)
            linked += found
    return json.dumps(notebook, ensure_ascii=False), linked


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """Changes what is not code. In a link the words may be code, so it is put away for the time of the change."""
    codes: list[str] = []

    def put_away(code: re.Match[str]) -> str:
        codes.append(code[0])
        return f"\0{len(codes) - 1}\0"

    changed = change(_CODE.sub(put_away, text))
    return re.sub(r"\0(\d+)\0", lambda place: codes[int(place[1])], changed)


def cards(text: str) -> str:
    """The front page with a card for each kind of reader, in place of a list of them."""
    found = list(_READER.finditer(text))
    shown = "\n\n".join(
        f"::::{{container}} card\n**{reader[1]}**\n\n{reader[2][:1].upper()}{reader[2][1:]}\n::::" for reader in found
    )
    return f"{text[: found[0].start()]}:::::{{container}} cards\n\n{shown}\n\n:::::\n{text[found[-1].end() :]}"


def navigation(text: str, into: Path) -> str:
    """The menu, whose lists of pages name only what is there; `*` stands for the pages not named before."""
    named = {words.split("<")[-1].rstrip(">") for _, entries in _TOCTREE.findall(text) for words in entries.split("\n")}

    def entries(written: str) -> Iterator[str]:
        for entry in written.strip().split("\n"):
            pattern = entry.split("<")[-1].rstrip(">")
            files = [path for path in into.glob(f"{pattern}.*") if path.suffix in (*PAGES, ".rst")]
            pages = sorted({path.relative_to(into).as_posix().removesuffix(path.suffix) for path in files} - named)
            yield from pages if "*" in pattern else [entry] * (bool(files) or pattern == "self")

    def toctree(block: re.Match[str]) -> str:
        found = list(entries(block[2]))
        return "\n".join(["```{toctree}", f"{block[1]}", *found, "```", ""]) if found else ""

    return _TOCTREE.sub(toctree, text)


def list_pages(index: Path) -> None:
    """Adds to a page, if it is there, the hidden list of the pages in its folder, in the order of its links."""
    if not index.exists():
        return
    text = index.read_text(encoding="utf-8")
    others = {path.name for path in index.parent.glob("*.md")} - {index.name}
    # sources that are shown have the names of their files, as in a.toml.md
    pages = {name for name in others if "." not in name.removesuffix(".md")}
    named = [name for name in dict.fromkeys(re.findall(r"\]\(([\w.-]+\.md)\)", text)) if name in pages]
    entries = "\n".join(name.removesuffix(".md") for name in [*named, *sorted(pages - set(named))])
    if "{toctree}" not in text and entries:
        index.write_text(f"{text.rstrip()}\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n", encoding="utf-8")


def listed(folder: Path) -> list[Path]:
    """The files of a folder that a list of it shows."""
    known = (".md", *MARKUP)
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in known)


def listing(folder: Path) -> str:
    """A page for a folder that has none."""
    name = folder.relative_to(REPOSITORY).as_posix()
    paths = listed(folder)
    links = [f"* [{path.name}]({path.name if path.suffix == '.md' else path.name + '.md'})" for path in paths]
    if DOCS not in folder.parents:
        return "\n".join([f"{SOURCE}# {name}", "", *links, ""])
    return "\n".join([f"# {folder.name.capitalize()}", "", "```{toctree}", *(path.stem for path in paths), "```", ""])


def shown(source: Path, content: Path) -> str:
    """A page that shows a file, and offers it."""
    name = source.relative_to(REPOSITORY).as_posix()
    head = f"{SOURCE}# {name}\n\n{{download}}`Download {source.name} <{source.name}>`\n\n"
    if content.stat().st_size > MOST_BYTES:
        return head
    text = content.read_text(encoding="utf-8", errors="replace")
    fence = "`" * 8
    return f"{head}{fence}{MARKUP.get(source.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


if __name__ == "__main__":
    main()
