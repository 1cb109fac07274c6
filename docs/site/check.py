# SPDX-License-Identifier: BSD-3-Clause
"""Checks the built site: links, menu, words, and every page in a browser, on a phone and on a screen, light and dark.

    .venv/bin/python docs/site/check.py build/site [--pictures FOLDER]

With --pictures it also takes pictures of some pages, for a person to look at. Links to other hosts are listed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import itertools
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "python/tests"))

from browser import MISSING, PROGRAM, Browser  # noqa: E402

PHONE, SCREEN = (360, 740), (1280, 900)
ADDRESSES = Path(__file__).with_name("addresses.txt")
"""Addresses that the site once had, and has to lead on from."""
MOST_MENU_ENTRIES = 30
MOST_WORDS = 80_000
"""In all Markdown of the repository except records of measurements and of changes."""
RECORDS = "docs/records/"
HISTORY = "CHANGELOG.md"
OTHERS = "third-party/"
"""Words of other projects."""
TOP_PAGES = 9
OF_SPHINX = ("search.html", "genindex.html")
MOST_STEPS = 2
"""From one of the first pages of the menu to any page, by the links in their texts."""
SEARCHED = {
    "pss": "docs/reference/policies/pss",
    "reservation": "docs/reference/policies/pss",
    "WireGuard": "docs/howto/gateway",
    "EarliestDeadline": "api/python",
}
"""Words, and a part of an address that a search for them must find."""
ONLY_RECORDED = "survivors"
"""A word that only records have: a search finds them, but after all other pages."""
FIRST_RANKS = 10
LEAST_CONTRAST = 4.5
"""WCAG 2.1, 1.4.3."""
PICTURED = ("index", "docs/tutorial/first-scenario", "docs/reference/policies/pss", "api/python", "api/contract")
HOSTS = (
    "datatracker.ietf.org",
    "github.com",
    "gitlab.com",
    "pradyunsg.me",
    "semver.org",
    "taplo.tamasfe.dev",
    "www.nsnam.org",
    "www.sphinx-doc.org",
)
"""Other hosts that pages may lead to; a person looked at each. No registry of packages: the lock files name those."""
CONTRAST = """(() => {
  const channels = (colour) => {
    const [r, g, b, opacity = 1] = colour.match(/[\\d.]+/g).map(Number);
    return colour.startsWith('color(') ? [r * 255, g * 255, b * 255, opacity] : [r, g, b, opacity];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const canvas = matchMedia('(prefers-color-scheme: dark)').matches ? [0, 0, 0, 1] : [255, 255, 255, 1];
  const known = new Map();
  const ground = (element) => {
    if (!element) return canvas;
    if (!known.has(element)) {
      const own = channels(getComputedStyle(element).backgroundColor);
      known.set(element, own[3] === 1 ? own : over(own, ground(element.parentElement)));
    }
    return known.get(element);
  };
  let worst = [21, ''];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || element.closest('svg, .headerlink, script, style, noscript, template')) continue;
    if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const below = ground(element);
    const [one, other] = [light(over(channels(getComputedStyle(element).color), below)), light(below)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < worst[0]) worst = [ratio, `${element.tagName}.${element.className}: ${text.slice(0, 40)}`];
  }
  return worst;
})()"""
"""The smallest contrast of a text with its ground, and where it is."""
TOO_WIDE = """[...document.querySelectorAll('article *')].filter((element) => {
  const box = element.getBoundingClientRect();
  if (box.right <= WIDTH + 1 || box.width === 0) return false;
  for (let at = element.parentElement; at && at.tagName !== 'ARTICLE'; at = at.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(at).overflowX)) return false;
  return true;
}).map((element) => `${element.tagName} ${element.textContent.trim().slice(0, 40)}`).slice(0, 3)"""
"""What ends outside of a window of this WIDTH, and has no box of its own in which it scrolls.

A phone's browser makes `innerWidth` as wide as such a page, and the theme lets the article as a whole scroll there.
"""
CUT = """[...document.querySelectorAll('article *, .sidebar-tree *')].filter((element) => {
  const style = getComputedStyle(element);
  return style.overflowX === 'hidden' && element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1
    && element.textContent.trim();
}).map((element) => `${element.tagName} ${element.textContent.trim().slice(0, 40)}`).slice(0, 3)"""
"""Text that ends outside its box and cannot be scrolled to."""

BROKEN = """[...document.querySelectorAll('article td code')].filter((element) =>
  /^[\\w.]+$/.test(element.textContent.trim()) && element.getClientRects().length > 1
).map((element) => element.textContent).slice(0, 3)"""
"""Names in a table that are broken in two."""


class Page(HTMLParser):
    """The addresses that a page names, its anchors, and what of its links are in its text and in the menu."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.in_text: list[str] = []
        self.in_menu: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.leads_to = ""
        """Where a page leads on to that has moved."""
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: Sequence[tuple[str, str | None]]) -> None:
        """Keeps what a tag leads to or loads."""
        given = {name: value or "" for name, value in attributes}
        if tag == "article" or (tag == "div" and "sidebar-tree" in given.get("class", "").split()):
            self._open.append(tag)
        elif tag == "div" and self._open:
            self._open.append("")
        if tag == "meta" and given.get("http-equiv") == "refresh":
            self.leads_to = given["content"].partition("url=")[2]
            self.links.append(self.leads_to)
        elif tag == "a" and "href" in given and self._open:
            (self.in_text if "article" in self._open else self.in_menu).append(given["href"])
        for name, value in attributes:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif tag == "a" and name == "href":
                self.links.append(value)
            elif name in ("src", "poster", "data") or (tag == "link" and name == "href"):
                self.loaded.append(value)
            elif name == "srcset":
                self.loaded += [part.split()[0] for part in value.split(",")]

    def handle_endtag(self, tag: str) -> None:
        """Leaves the text or the menu."""
        if self._open and (tag == "div" or tag == self._open[-1]):
            self._open.pop()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


def main() -> int:
    """Prints what is wrong; 1 if anything is."""
    options = argparse.ArgumentParser(description="Checks the built site.")
    options.add_argument("site", type=Path)
    options.add_argument("--pictures", type=Path, metavar="FOLDER", help="take pictures of some pages")
    given = options.parse_args()
    site: Path = given.site.resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for address, count in sorted(elsewhere(pages).items()):
        print(f"site: leads to another host, from {count} page{'' if count == 1 else 's'}: {address}")
    faults = sorted([*links(site, pages), *addresses(site), *menu(site, pages), *far(site, pages), *wordy()])
    if PROGRAM is None:
        print(f"site: NOT CHECKED in a browser: {MISSING}")
    else:
        faults += in_browsers(site, given.pictures)
    for fault in faults:
        print(f"site: {fault}")
    if not faults:
        print(f"site: {len(pages)} pages are in order; begin with {site / 'index.html'}")
    return 1 if faults else 0


def elsewhere(pages: Mapping[Path, Page]) -> Counter[str]:
    """Links to other hosts, with the number of pages that have them."""
    return Counter(address for page in pages.values() for address in set(page.links) if urlsplit(address).netloc)


def links(site: Path, pages: Mapping[Path, Page]) -> Iterator[str]:
    """Links and files that are not there, what would be loaded from other hosts, and links to hosts not in HOSTS."""
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in (*page.links, *page.loaded):
            parts = urlsplit(address)
            if parts.scheme in ("http", "https") or parts.netloc:
                if address in page.loaded:
                    yield f"{name}: is loaded from another host: {address}"
                elif parts.hostname not in HOSTS:
                    yield f"{name}: leads to a host that is not among HOSTS in docs/site/check.py: {address}"
            elif not parts.scheme:
                target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                target = target / "index.html" if target.is_dir() else target
                if not target.exists():
                    yield f"{name}: leads nowhere: {address}"
                elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                    yield f"{name}: no such place: {address}"


def addresses(site: Path, known: Path = ADDRESSES) -> Iterator[str]:
    """Addresses that the site once had and that lead nowhere now."""
    for address in known.read_text(encoding="utf-8").split():
        if not (site / f"{address}.html").exists():
            yield f"{address}.html: was a page and is gone; add where it has moved to docs/site/moved.toml"


def menu(site: Path, pages: Mapping[Path, Page]) -> Iterator[str]:
    """Menus that are too long."""
    entries = len(dict.fromkeys(pages[site / "index.html"].in_menu))
    if entries > MOST_MENU_ENTRIES:
        yield f"the menu has {entries} entries; at most {MOST_MENU_ENTRIES} are allowed"


def far(site: Path, pages: Mapping[Path, Page]) -> Iterator[str]:
    """Pages that are more steps away from the first pages of the menu than allowed, or out of reach."""

    def reached(path: Path, addresses: Iterable[str]) -> Iterator[Path]:
        for address in addresses:
            parts = urlsplit(address)
            if parts.path and not parts.scheme and not parts.netloc:
                yield (path.parent / unquote(parts.path)).resolve()

    front = site / "index.html"
    near = {front, *list(dict.fromkeys(reached(front, ("index.html", *pages[front].in_menu))))[:TOP_PAGES]}
    for _ in range(MOST_STEPS):
        near |= {target for path in near if path in pages for target in reached(path, pages[path].in_text)}
    for path in sorted(pages.keys() - near):
        name = path.relative_to(site)
        if not (pages[path].leads_to or shows_a_file(site, path) or name.as_posix() in OF_SPHINX):
            yield f"{name}: is more than {MOST_STEPS} steps from the first {TOP_PAGES} pages of the menu"


def shows_a_file(site: Path, path: Path) -> bool:
    """Whether a page shows a file of the repository that is no page, or lists a folder of such files."""
    name = path.relative_to(site)
    if name.parts[0] in ("_static", "_downloads"):
        return True
    source = REPOSITORY / name.with_suffix("")
    folder = name.name == "index.html" and name.parts[0] != "docs" and len(name.parts) > 1
    return folder or (source.is_file() and source.suffix != ".html")


def wordy(limit: int = MOST_WORDS) -> Iterator[str]:
    """Whether the repository has too many words outside of records. What has no letter or digit is no word."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines() if name != HISTORY and not name.startswith((RECORDS, OTHERS))]
    paths = [REPOSITORY / name for name in names]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.is_file() and not path.is_symlink()]
    words = sum(1 for text in texts for word in text.split() if re.search(r"\w", word))
    print(f"site: the repository has {words} words of Markdown outside of {RECORDS} and {HISTORY}")
    if words > limit:
        yield f"the repository has {words} words outside of {RECORDS} and {HISTORY}; at most {limit} are allowed"


def in_browsers(site: Path, pictures: Path | None) -> list[str]:
    """What browsers see, half of the pages each."""
    with served(site) as root:
        pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
        pages = [page for page in pages if not page.startswith("_static") and not Page(site / page).leads_to]
        stop = threading.Event()
        with ThreadPoolExecutor(2) as workers:
            halves = [workers.submit(look, root, pages[at::2], stop) for at in range(2)]
            try:
                faults = [fault for half in halves for fault in half.result()]
            finally:
                stop.set()  # after Ctrl-C, or an error of one half, the other does not go on to its end
        faults += search(root)
        if pictures is not None:
            take_pictures(root, pictures)
    return faults


@contextlib.contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a server on this machine that has the site."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def look(root: str, pages: Iterable[str], stop: threading.Event) -> list[str]:
    """Opens pages in a browser of their own: each once, then in other windows and with the other theme."""
    faults = []
    with Browser() as browser:
        for page in pages:
            if stop.is_set():
                break
            browser.resize(*PHONE)
            browser.open(root + page)
            for size in (PHONE, SCREEN):
                browser.resize(*size)
                wide = browser.value(TOO_WIDE.replace("WIDTH", str(size[0])))
                width = browser.value("document.documentElement.scrollWidth")
                if wide or width > size[0]:
                    faults.append(f"{page}: is {width} pixels wide on a screen of {size[0]}: {wide}")
                if cut := browser.value(CUT):
                    faults.append(f"{page}: is cut on a screen of {size[0]}: {cut}")
                if broken := browser.value(BROKEN):
                    faults.append(f"{page}: is broken in two on a screen of {size[0]}: {broken}")
            for scheme in ("light", "dark"):
                browser.scheme(scheme)
                ratio, where = browser.value(CONTRAST)
                if ratio < LEAST_CONTRAST:
                    faults.append(f"{page}: a contrast of {ratio:.2f}, {scheme}: {where}")
            faults += [f"{page}: {problem}" for problem in browser.problems()]
    return faults


def take_pictures(root: str, folder: Path) -> None:
    """Pictures of some pages, in both themes and sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    with Browser() as browser:
        for page, size, scheme in itertools.product(PICTURED, (PHONE, SCREEN), ("light", "dark")):
            browser.resize(*size)
            browser.scheme(scheme)
            browser.open(f"{root}{page}.html")
            name = f"{page.replace('/', '-')}-{size[0]}-{scheme}.png"
            (folder / name).write_bytes(browser.screenshot())


def search(root: str) -> list[str]:
    """Asks the site's own search."""
    faults = []
    with Browser() as browser:
        for word, expected in SEARCHED.items():
            found = asked(browser, root, word)
            if not any(expected in address for address in found):
                faults.append(f"search for {word} finds {found[:5]}, not {expected}")
            if any(RECORDS in address for address in found[:FIRST_RANKS]):
                faults.append(f"search for {word} finds records among the first {FIRST_RANKS}: {found[:FIRST_RANKS]}")
        found = asked(browser, root, ONLY_RECORDED)
        if not any(RECORDS in address for address in found):
            faults.append(f"search for {ONLY_RECORDED} finds {found[:5]}, and no record")
    return faults


def asked(browser: Browser, root: str, word: str) -> list[str]:
    """The addresses that the site's search finds, in its order."""
    browser.open(f"{root}search.html?q={word}")
    browser.wait("document.querySelectorAll('#search-results ul.search li a').length > 0", 20)
    browser.wait("/found/.test(document.querySelector('#search-results .search-summary')?.textContent)", 20)
    found: list[str] = browser.value(
        "[...document.querySelectorAll('#search-results ul.search li a')].map((a) => a.href)"
    )
    return found


if __name__ == "__main__":
    sys.exit(main())
