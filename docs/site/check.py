# SPDX-License-Identifier: BSD-3-Clause
"""Checks the built site: links, and every page in a real browser, on a phone and on a screen, light and dark.

    .venv/bin/python docs/site/check.py build/site [--pictures FOLDER]

With --pictures it also takes pictures of some pages, for a person to look at. Links to other hosts are listed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import itertools
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

PHONE, SCREEN = (390, 844), (1280, 900)
SEARCHED = {
    "pss": "docs/reference/policies/pss",
    "reservation": "docs/reference/policies/pss",
    "WireGuard": "docs/howto/gateway",
    "EarliestDeadline": "api/python",
}
"""Words, and a part of an address that a search for them must find."""
LEAST_CONTRAST = 4.5
"""WCAG 2.1, 1.4.3."""
PICTURED = ("index", "docs/tutorial/first-scenario", "docs/reference/policies/pss", "api/python", "api/contract")
HOSTS = ("github.com", "pradyunsg.me", "semver.org", "taplo.tamasfe.dev", "www.sphinx-doc.org")
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
    """The addresses that a page names, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: Sequence[tuple[str, str | None]]) -> None:
        """Keeps what a tag leads to or loads."""
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
    faults = sorted(links(site, pages))
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


def in_browsers(site: Path, pictures: Path | None) -> list[str]:
    """What browsers see, half of the pages each."""
    with served(site) as root:
        pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
        pages = [page for page in pages if not page.startswith("_static")]
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
            browser.open(f"{root}search.html?q={word}")
            browser.wait("document.querySelectorAll('#search-results ul.search li a').length > 0", 20)
            browser.wait("/found/.test(document.querySelector('#search-results .search-summary')?.textContent)", 20)
            found = browser.value("[...document.querySelectorAll('#search-results ul.search li a')].map((a) => a.href)")
            if not any(expected in address for address in found):
                faults.append(f"search for {word} finds {found[:5]}, not {expected}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
