# SPDX-License-Identifier: BSD-3-Clause
"""Runs the fenced blocks of the documentation: commands end well, Python works, TOML is read, output is as shown.

The blocks of a page run in the page's order in a copy of what its reader has: `scenarios/` and the files of `GIVEN`.
Whatever is not run is in `NOT_RUN` with the reason, or in `NOT_COMMANDS`; an entry without its block fails.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY, SCENARIOS, linkweir

import linkweir as package
from linkweir import Scenario, ScenarioError

KERNEL = "needs root and a kernel module; kernel/tests boot one"
GATEWAY = "needs root and the gateway; crates/linkweir-gateway/tests run it in namespaces"
DOCUMENTATION = "crates/linkweir-gateway/tests/documentation.rs runs it, where cargo has built the gateway"
LABORATORY = "needs a kernel built for the laboratory; test_laboratory.py and test_tunnel.py run such"
PEERS = "needs a kernel built for the laboratory; test_peers.py runs such"
REAL = "needs root and real time; test_tunnel.py runs such"
MINUTES = "takes minutes"
WINDOW = "opens a window; test_view.py runs it"
DASK = "needs a Dask cluster at this address; test_sweep.py starts one"

NS3 = "needs ns-3; make ns3 builds the module and runs its suite"

NOT_RUN: dict[tuple[str, str], str] = {
    (
        "docs/reference/report.md",
        r"linkweir report runs/geo --knobs",
    ): "needs the simulator as WebAssembly; test_knobs.py",
    ("docs/howto/ns3.md", "make *"): NS3,
    ("docs/howto/ns3.md", "tar *"): NS3,
    ("docs/howto/ns3.md", "cd *"): NS3,
    ("docs/howto/ns3.md", "./ns3 *"): NS3,
    ("docs/howto/ns3.md", "cmake *"): NS3,
    ("docs/howto/ns3.md", "build/ns3-alone/*"): NS3,
    ("README.md", "make demo"): "installs packages and takes minutes",
    ("README.md", "make test"): "is what runs this",
    ("README.md", ".venv/bin/linkweir compare *"): "test_readme.py runs it and compares every word",
    ("README.md", "apt-get install *"): "installs packages",
    ("README.md", "git clone *"): "needs the network",
    ("README.md", "cd linkweir"): "is where this runs",
    ("bench/README.md", "apt-get install *"): "installs packages",
    ("bench/README.md", "cargo run --release -p linkweir-rate"): MINUTES,
    ("bench/README.md", "bench/*.py"): "measures for minutes, on a machine that does nothing else",
    ("docs/reference/report.md", "linkweir view *"): WINDOW,
    ("docs/records/bounds.md", "bench/bounds.py *"): "searches for hours",
    ("docs/records/bounds.md", "bench/bounds_network.py *"): "searches for half an hour",
    ("docs/records/bounds.md", "bench/bounds_bond.py *"): "searches for many minutes",
    ("docs/records/bounds.md", "bench/memory.py *"): "needs recorded traces that are not ours to distribute",
    ("docs/records/l4s.md", "bench/l4s.py *"): MINUTES,
    ("docs/records/l4s.md", "bench/l4s_kernel.py *"): LABORATORY,
    ("docs/records/networks.md", "*bench/*.py *"): "runs for minutes, or needs ns-3",
    ("docs/records/networks.md", "cargo test *"): MINUTES,
    (
        "docs/records/paths.md",
        "bench/bond_traces.py *",
    ): "needs root, and recorded traces that are not ours to distribute",
    ("docs/records/voice.md", "bench/voice.py *"): "needs recorded traces that are not ours to distribute",
    ("docs/records/agreement.md", "make agreement"): LABORATORY,
    ("docs/howto/simulate.md", "linkweir emulate *"): "prints what the other command prints; test_emulate.py runs such",
    ("docs/howto/peers.md", "./setup.sh lab"): "installs packages",
    ("docs/howto/peers.md", "linkweir compare *"): PEERS,
    ("docs/records/peers.md", "linkweir compare *"): PEERS,
    ("docs/records/transport.md", "python lab/transport/transport.py *"): LABORATORY,
    ("docs/howto/deploy.md", "linkweir lab run *"): "test_deploy.py runs such, where the laboratory's kernel is",
    ("docs/howto/deploy.md", "{ tc *"): KERNEL,
    ("docs/howto/deploy.md", "linkweir import shown.txt *"): "reads what tc shows; test_deploy.py does",
    ("docs/howto/gateway.md", "cargo build --release -p linkweir-gateway"): MINUTES,
    ("docs/howto/gateway.md", "linkweir-gateway keygen *"): DOCUMENTATION,
    ("docs/howto/gateway.md", "linkweir-gateway check *"): DOCUMENTATION,
    ("docs/howto/gateway.md", "linkweir-gateway import *"): "its tests run it, with a file of their own",
    ("docs/howto/gateway.md", "wg-quick down wg0"): "changes this machine",
    ("docs/howto/gateway.md", "linkweir-gateway up *"): GATEWAY,
    ("docs/howto/gateway.md", "linkweir-gateway show"): GATEWAY,
    ("docs/howto/gateway.md", "linkweir-gateway page"): GATEWAY,
    ("docs/howto/gateway.md", "linkweir-gateway metrics *"): GATEWAY,
    ("docs/howto/gateway.md", "linkweir-gateway set *"): GATEWAY,
    ("docs/howto/gateway.md", "linkweir-gateway emulate *"): GATEWAY,
    ("docs/howto/gateway.md", "tc *"): GATEWAY,
    ("docs/howto/gateway.md", "apt-get install *"): "installs; machines/sites.py does this in systems of its own",
    ("docs/howto/gateway.md", "ping *"): GATEWAY,
    ("docs/howto/gateway.md", "linkweir-gateway rate *"): GATEWAY,
    ("docs/howto/gateway.md", "kill -HUP PID"): GATEWAY,
    ("docs/howto/gateway.md", "mkdir -p /etc/linkweir"): "changes this machine",
    ("docs/howto/gateway.md", "useradd *"): "changes this machine",
    ("docs/howto/gateway.md", "editor /etc/linkweir/ground.toml"): "waits for a person",
    (
        "docs/howto/gateway.md",
        "systemctl * linkweir-gateway*@*",
    ): "needs systemd; test_package.py reads the units",
    ("docs/howto/gateway.md", "ip netns add ground; ip netns add ship"): GATEWAY,
    (
        "docs/records/geo-beam.md",
        ".venv/bin/python scenarios/geo_beam_policies.py *",
    ): "takes longer; test_beam.py runs it shortened",
    ("docs/explanation/geo-beam.md", "*itu*"): "needs the package itur, which nothing else here does",
    ("docs/howto/install.md", "*"): "installs; machines/installs.py does this in systems of its own",
    (
        "docs/howto/release.md",
        "make *",
    ): "takes minutes; test_release.py has the rules, docs/records/release.md the record",
    ("docs/howto/release.md", "diff *"): "compares two releases",
    ("docs/howto/kernel.md", "make -C kernel*"): "needs kernel headers; make -C kernel test does this",
    (
        "docs/howto/router.md",
        "*",
    ): "changes this machine; make -C kernel test-router follows it in systems of their own",
    ("docs/howto/kernel.md", "sudo *"): "installs; make -C kernel test-install does this in a system of its own",
    ("docs/howto/kernel.md", "tc *"): KERNEL,
    ("docs/howto/kernel.md", "echo 1 >/sys/kernel/tracing/*"): KERNEL,
    ("docs/howto/kernel.md", "cp /sys/kernel/tracing/*"): KERNEL,
    ("docs/howto/kernel.md", "python3 tests/trace_vectors.py *"): KERNEL,
    ("docs/howto/laboratory.md", "./setup.sh lab"): "installs packages",
    ("docs/howto/laboratory.md", "linkweir lab build-kernel"): MINUTES,
    ("docs/howto/laboratory.md", "linkweir lab run *"): LABORATORY,
    ("docs/howto/laboratory.md", "linkweir lab pss *"): REAL,
    ("docs/howto/laboratory.md", "linkweir reproduce p?s --where virtual *"): LABORATORY,
    ("docs/howto/laboratory.md", "cargo build --release -p linkweir-gateway"): MINUTES,
    ("docs/howto/reproduce.md", "linkweir reproduce p?s --figure * --*"): MINUTES,
    ("docs/howto/reproduce.md", "linkweir reproduce codes *"): MINUTES,
    ("docs/howto/reproduce.md", "linkweir reproduce pss --where virtual *"): LABORATORY,
    ("docs/records/pss.md", "linkweir reproduce *"): MINUTES,
    ("docs/records/pds.md", "linkweir reproduce *"): MINUTES,
    ("docs/records/pss-gateways.md", "linkweir lab pss *"): REAL,
    ("docs/records/codes.md", "linkweir reproduce codes * --into *"): MINUTES,
    ("docs/records/codes.md", "linkweir reproduce codes * --table 3"): MINUTES,
    ("docs/records/codes-corrected.md", "linkweir reproduce codes *"): MINUTES,
    (
        "docs/records/sweep.md",
        "linkweir compare *",
    ): "needs traces A and B; the command of docs/howto/compare.md is run",
    ("docs/howto/sweep.md", ".venv/bin/python -m pip wheel *"): "takes minutes; test_wheel.py does this",
    ("docs/howto/sweep.md", "python3 -m venv lw && lw/bin/pip install *"): "installs packages",
    ("docs/howto/replay.md", "linkweir replay *"): "needs a recording; test_replay.py runs such",
    ("docs/howto/sweep.md", "dask *"): DASK,
    ("docs/howto/sweep.md", "linkweir sweep plan.toml --dask *"): DASK,
    ("docs/reference/yardstick.md", "linkweir *"): "takes minutes; test_yardstick.py runs some of the cases",
    ("docs/howto/sweep.md", "linkweir reproduce codes *"): MINUTES,
    ("docs/howto/sweep.md", "from distributed import Client"): DASK,
    ("docs/howto/sweep.md", "linkweir.sweep('plan.toml', client=*"): DASK,
}
"""Commands and Python statements that are not run: page and a pattern of the command, and why."""

PRINTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("README.md", ".venv/bin/linkweir run scenarios/geo.toml"): ("class", "ef ", "af ", "cs0 ", "report: runs/geo"),
    ("README.md", ".venv/bin/linkweir run scenarios/lte-home.toml *"): ("voice ", "film ", "report: runs/lte-home"),
    ("docs/explanation/geo-beam.md", "linkweir run *"): ("terminal-1 ", "report: runs/geo-beam-rain/report.html"),
    ("docs/reference/quality.md", "linkweir run scenario.toml --mos g711"): (
        "delay",
        "loss",
        "MOS",
        "worst",
        "BurstR",
    ),
    ("docs/howto/compare.md", "linkweir compare scenarios/lte-drive.toml *"): (
        "drr: left out: low_level, rate and memory of class af\n",
        "drr: af and cs0 share level 1; quantum from the reservations and the 4.42 Mbit/s",
        "fq_codel: left out: level of classes ef and cs0; level, low_level, rate and memory of class af\n",
        "class  policy    rate (Mbit/s)  TCP goodput (Mbit/s)",
        "af: rate at least 1.5 Mbit/s  ",
        "ef: loss at most 5 %  ",
        "30 of 30 runs done: 30 now, 0 before\nreport: runs/compare-lte-drive/report.html\n",
    ),
    ("docs/howto/sweep.md", "linkweir sweep plan.toml --dry-run"): ("run 1: case 1 (", "run 40: case 4 ("),
}
"""What the page says that a command prints, in the words of the output."""

ILLUSTRATION = "a picture"
NOT_COMMANDS: dict[tuple[str, str], str] = {
    ("ARCHITECTURE.md", "flow → queue of its class*"): ILLUSTRATION,
    ("crates/linkweir-gateway/README.md", "TUN → classify → Link*"): ILLUSTRATION,
    ("docs/explanation/laboratory.md", "scenario.toml"): ILLUSTRATION,
    ("docs/explanation/laboratory.md", "sender ---- router*"): ILLUSTRATION,
    ("docs/explanation/laboratory.md", "sender *receiver"): ILLUSTRATION,
    ("docs/howto/paths.md", "peer base: packets use lte*"): "lines of a gateway's log; " + GATEWAY,
    ("docs/reference/kernel.md", "class pss 10:2 parent 10:*"): "output of tc; " + KERNEL,
    ("docs/reference/diagnosis.md", "delay class af*"): "output of the block before, which is compared",
    ("vectors/README.md", "linkweir-vectors 1"): "one line of each kind, no life; core/tests/replay.c reads such files",
    ("docs/reference/scenarios.md", "geo.toml:19: link.dealy*"): "messages, which test_messages_are_as_shown compares",
    ("docs/howto/compare.md", "drr: left out*"): "output of the block before; PRINTS compares its words",
    ("docs/howto/sweep.md", "plan.json *"): "a directory, which test_a_sweep_leaves_what_is_shown compares",
}
"""Blocks without language that hold no commands: page and a pattern of the first line, and what they hold."""

VOICE = """\
duration = "5s"
link = { rate = "1Mbit" }
scheduler = { policy = "fifo" }
class = [{ name = "all" }]
flow = [{ class = "all", kind = "cbr", rate = "64kbit", packet = "200B", playout = "60ms", count = 3 }]
"""
LINK = """\
duration = "5s"
link = { rate = "1Mbit" }
scheduler = { policy = "fifo" }
class = [{ name = "voice" }, { name = "rest" }]
"""


def _quality() -> dict[str, Any]:
    import numpy as np

    result = package.run(Scenario.parse(VOICE))
    return {"result": result, "runs": [result, result], "delays_s": np.linspace(0.01, 0.09, 100)}


def _sweep() -> dict[str, Any]:
    return {"scenario": lambda users: Scenario.parse(VOICE.replace("count = 3", f"count = {users}"))}


@dataclass(frozen=True)
class Given:
    """What a reader of a page is to have."""

    files: Callable[[], dict[str, str]] = dict
    names: Callable[[], dict[str, Any]] = dict


def _blocks_text(page: str, language: str) -> list[str]:
    return [block.text for block in blocks(REPOSITORY / page) if block.language == language]


def _shortened(**seconds: int) -> dict[str, str]:
    """Scenarios of the repository that last only so long, where a page shows the form of the output alone."""
    found = {}
    for name, duration_s in seconds.items():
        text = (SCENARIOS / f"{name}.toml").read_text()
        found[f"scenarios/{name}.toml"], changes = re.subn(
            r'^duration = "\d+s"', f'duration = "{duration_s}s"', text, flags=re.MULTILINE
        )
        assert changes == 1, name
    return found


MAHIMAHI = "".join(f"{ms}\n" for ms in (*range(1, 60_000, 3), *range(65_000, 120_000, 3)))
"""4 Mbit/s, and none for 5 s."""
GIVEN = {
    "docs/howto/compare.md": Given(files=lambda: _shortened(**{"geo": 20, "lte-drive": 40})),
    "docs/howto/simulate.md": Given(files=lambda: _shortened(geo=20)),
    "docs/records/calls-and-downloads.md": Given(files=lambda: _shortened(**{"calls-and-downloads": 15})),
    "docs/reference/report.md": Given(files=lambda: _shortened(geo=20)),
    "docs/reference/policies/pss.md": Given(files=lambda: {"ATT-LTE-driving-2016.down": MAHIMAHI}),
    "docs/reference/scenarios.md": Given(
        files=lambda: {
            "drive.csv": "when,dl_mbps\n2026-01-31 11:00:00,12\n2026-01-31 11:01:00,8\n",
            "packets.csv": "t_s,bytes,flow\n0,1500,camera\n",
        }
    ),
    "README.md": Given(files=lambda: {"my.csv": "t_s,capacity_bps\n0,20e6\n50,10e6\n100,0\n"}),
    "docs/reference/log.md": Given(files=lambda: {"mine.toml": 'log = "packets"\n' + VOICE}, names=_quality),
    "docs/reference/quality.md": Given(files=lambda: {"scenario.toml": VOICE}, names=_quality),
    "docs/howto/sweep.md": Given(
        files=lambda: {
            "plan.toml": _blocks_text("docs/howto/sweep.md", "toml")[0],
            "geo.toml": (SCENARIOS / "geo.toml").read_text().replace('"100s"', '"20s"'),
        },
        names=_sweep,
    ),
}


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: str
    line: int
    language: str
    text: str

    @property
    def first(self) -> str:
        return self.text.strip().split("\n", 1)[0].strip()

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Every page of the project."""
    program = ("bench", "core", "crates", "kernel", "lab", "machines", "ns3", "oracle", "release", "third-party")
    folders = (*program, "docs", "scenarios", "vectors")
    found = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob(".github/*.md"), REPOSITORY / "python" / "README.md"]
    found += [path for folder in folders for path in (REPOSITORY / folder).rglob("*.md")]
    # the site's front page is checked where the site is built, as its links are those of the site
    return sorted(path for path in found if not {"build", "site"} & set(path.relative_to(REPOSITORY).parts))


@functools.cache
def blocks(path: Path) -> tuple[Block, ...]:
    """The fenced blocks of a page."""
    found, begun, lines = [], None, []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif begun is None:
            begun, lines = (number, line.removeprefix("```").strip()), []
        else:
            name = path.relative_to(REPOSITORY).as_posix()
            found.append(Block(name, *begun, "\n".join(lines) + "\n"))
            begun = None
    assert begun is None, f"{path}: a block is not closed"
    return tuple(found)


def commands(block: Block) -> list[str]:
    """The commands of a block without what explains them: a comment, or words after three blanks or more."""
    joined = re.sub(r"\\\n\s*", "", block.text)
    lines = (re.split(r"\s+#|\s{3,}", line.strip(), maxsplit=1)[0] for line in joined.split("\n"))
    return [line for line in lines if line]


def listed(register: Iterable[tuple[str, str]], page: str, words: str) -> list[tuple[str, str]]:
    """The entries of a register that mean this."""
    return [entry for entry in register if entry[0] == page and fnmatchcase(words, entry[1])]


def units(block: Block) -> list[str]:
    """What can be left out one by one: commands of a shell, statements of Python."""
    if block.language == "python":
        return [ast.unparse(statement) for statement in ast.parse(block.text).body]
    return commands(block) if is_shell(block) else []


def is_shell(block: Block) -> bool:
    return block.language in ("", "sh", "console") and not listed(NOT_COMMANDS, block.page, block.first)


TUTORIALS = REPOSITORY / "docs/tutorial"
"""test_tutorials.py runs these, each from top to bottom."""
ALL = [block for path in pages() if path.parent != TUTORIALS for block in blocks(path)]
SCENARIO_PAGES = ("docs/reference/scenarios.md",)
"""Pages whose TOML is of scenarios."""
RUN = sorted({block.page for block in ALL if block.language == "python" or is_shell(block)})
SLOW = (
    "docs/explanation/geo-beam.md",
    "docs/howto/compare.md",
    "docs/howto/reproduce.md",
    "docs/howto/simulate.md",
    "docs/howto/sweep.md",
    "docs/records/calls-and-downloads.md",
    "docs/records/codes.md",
    "docs/reference/report.md",
)
"""Pages whose commands take more than a few seconds."""
assert set(SLOW) <= set(RUN)


def without_blocks(path: Path) -> str:
    """A page's text with its fenced blocks blank, so that line numbers stay."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)


@functools.cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors that the headings of a page get when it is shown."""
    found: list[str] = []
    for title in re.findall(r"^#+ (.*)$", without_blocks(path), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        again = sum(re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", other) is not None for other in found)
        found.append(f"{anchor}-{again}" if again else anchor)
    return frozenset(found)


def broken_links(path: Path) -> list[str]:
    """The links and pictures of a page within the repository that lead nowhere, with their lines."""
    text = without_blocks(path)
    broken = []
    for link in re.finditer(r"""\]\(([^)\s]+)\)|<img src="([^"]+)\"""", text):
        address = link[1] or link[2]
        target, _, anchor = address.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        page = (path.parent / target).resolve() if target else path
        if not page.exists() or (anchor and (page.suffix != ".md" or anchor not in anchors(page))):
            broken.append(f"{path}:{text[: link.start()].count(chr(10)) + 1}: {address}")
    return broken


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    assert broken_links(path) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One `x`\n\n## Two, too\n\n## Two, too\n\n```\n# Three\n```\n")
    (tmp_path / "page.md").write_text(
        "# Here\n[a](other.md) [b](other.md#two-too) [c](other.md#two-too-1) [d](#here) [e](other.md#one-x)\n"
        "[f](none.md)\n```\n[not a link](none.md)\n```\n[g](other.md#two) ![h](none.svg) [i](#there)\n"
        "[j](other.md#three)\n"
        '<img src="none.png" width="9" alt="">\n'
    )
    lines = [link.removeprefix(str(tmp_path)) for link in broken_links(tmp_path / "page.md")]
    assert lines == [
        "/page.md:3: none.md",
        "/page.md:7: other.md#two",
        "/page.md:7: none.svg",
        "/page.md:7: #there",
        "/page.md:8: other.md#three",
        "/page.md:9: none.png",
    ]


def test_docs_are_sorted_into_rooms_and_listed() -> None:
    rooms = {"tutorial", "notebooks", "howto", "reference", "explanation", "records"}
    docs = REPOSITORY / "docs"
    assert {path.name for path in docs.iterdir()} == rooms | {
        "README.md",
        "results.md",
        "playground.md",
        "images",
        "pictures",
        "site",
    }
    shown = {
        (page.parent / link).resolve()
        for page in (docs / "README.md", docs / "records" / "README.md")
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text())
    }
    # a folder of pages of one kind, such as the policies', is linked as a whole
    pages = {path for path in docs.rglob("*.md") if path.parent != docs / "site"}
    hidden = {path for path in pages if not {path, path.parent} & shown}
    assert hidden == {docs / "README.md"}


def pages_named_in(text: str) -> set[str]:
    """The paths of pages that a text names."""
    return set(re.findall(r"\bdocs/[\w/.-]*\.(?:md|svg)\b", text))


def test_pages_named_in_code_are_there() -> None:
    assert pages_named_in("see docs/none.md, docs/a/b.svg.") == {"docs/none.md", "docs/a/b.svg"}
    folders = ("bench", "core", "crates", "kernel", "lab", "machines", "oracle", "python/linkweir", "scenarios")
    files = [
        path
        for folder in folders
        for path in (REPOSITORY / folder).rglob("*")
        if path.suffix in (".c", ".h", ".py", ".rs", ".sh", ".toml") and "build" not in path.parts
    ]
    named = {name for path in (*files, REPOSITORY / "Makefile") for name in pages_named_in(path.read_text())}
    assert len(named) > 5
    # NAME is a placeholder for a policy
    assert [name for name in sorted(named) if "NAME" not in name and not (REPOSITORY / name).exists()] == []


def test_pictures_are_small_enough_for_a_repository() -> None:
    large = [path.name for path in (REPOSITORY / "docs").rglob("*.svg") if path.stat().st_size > 100_000]
    assert large == []


def shape(text: str) -> str:
    """A text with all numbers and blanks replaced by one."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "0", text)).strip()


@pytest.mark.parametrize("page", [pytest.param(page, marks=pytest.mark.slow if page in SLOW else ()) for page in RUN])
def test_the_commands_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = GIVEN.get(page, Given())
    shutil.copytree(SCENARIOS, tmp_path / "scenarios")
    for name, content in given.files().items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # which the laboratory empties
    names = given.names() | {"__name__": "documentation"}
    mine = [block for block in ALL if block.page == page]
    for block, after in zip(mine, [*mine[1:], None], strict=True):
        if block.language == "python":
            printed = run_python(block, names)
            if after is not None and listed(NOT_COMMANDS, page, after.first) and printed:
                assert shape(printed) == shape(after.text), str(after)
        elif is_shell(block):
            for command in commands(block):
                if not listed(NOT_RUN, page, command):
                    run_command(block, command)


def run_command(block: Block, command: str) -> None:
    program, *words = shlex.split(command)
    assert program in ("linkweir", ".venv/bin/linkweir"), f"{block}: {command}: cannot be run here; list it in NOT_RUN"
    done = linkweir(*words)
    assert done.returncode == 0, f"{block}: {command}: {done.stderr}"
    assert done.stdout, f"{block}: {command}: printed nothing"
    for entry in listed(PRINTS, block.page, command):
        assert [words for words in PRINTS[entry] if words not in done.stdout] == [], (
            f"{block}: {command}: {done.stdout}"
        )


def run_python(block: Block, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for statement in units(block):
            if not listed(NOT_RUN, block.page, statement):
                exec(compile(statement, str(block), "exec"), names)
    return printed.getvalue()


def test_every_entry_of_the_registers_has_its_block() -> None:
    left_out = {entry for block in ALL for unit in units(block) for entry in listed(NOT_RUN, block.page, unit)}
    no_commands = {entry for block in ALL for entry in listed(NOT_COMMANDS, block.page, block.first)}
    run = {entry for block in ALL for unit in units(block) for entry in listed(PRINTS, block.page, unit)}
    assert set(NOT_RUN) - left_out == set()
    assert set(PRINTS) - run == set()
    assert set(NOT_COMMANDS) - no_commands == set()


def test_every_block_has_a_language_known_here() -> None:
    assert {block.language for block in ALL} <= {"", "sh", "console", "cpp", "python", "text", "toml"}


def keys_of(key: str, block: Block) -> Iterator[str]:
    """The lines of a block that give one key."""
    for line in block.text.strip().split("\n"):
        assert line.startswith(f"{key} = "), f"{block}: {line}"
        yield line


@pytest.mark.parametrize(
    "block",
    [block for block in ALL if block.language == "toml" and block.page in SCENARIO_PAGES],
    ids=str,
)
def test_scenarios_in_the_documentation_are_sound(block: Block, tmp_path: Path) -> None:
    for name, content in GIVEN[block.page].files().items():
        (tmp_path / name).write_text(content)
    if block.first.startswith("rate = "):
        whole = [VOICE.replace('rate = "1Mbit"', line, 1) for line in keys_of("rate", block)]
    elif block.first.startswith("packet = "):
        whole = [VOICE.replace('packet = "200B"', line) for line in keys_of("packet", block)]
    elif block.first.startswith("size = "):
        flow = '[[flow]]\nclass = "voice"\nkind = "transfers"\narrivals = { every = "1s" }'
        whole = [f"{LINK}{flow}\n{line}" for line in keys_of("size", block)]
    elif block.first == "[[flow]]":
        whole = [LINK + block.text]
    elif block.first == "[link]":
        whole = [re.sub(r"^link = .*\n", "", VOICE, flags=re.MULTILINE) + block.text]
    elif block.first == "[scheduler]":
        whole = [re.sub(r"^scheduler = .*\n", "", VOICE, flags=re.MULTILINE) + block.text]
    else:
        whole = [block.text]
    for text in whole:
        assert text not in ("", VOICE)
        Scenario.parse(text, path=tmp_path / "scenario.toml")


def test_plans_and_gateways_in_toml_are_checked_elsewhere() -> None:
    elsewhere = {
        "docs/howto/sweep.md": "python/tests/test_sweep_plan.py",
        "docs/records/geo-beam.md": "python/tests/test_beam.py",
        "docs/howto/gateway.md": "crates/linkweir-gateway/tests/documentation.rs",
        "docs/howto/paths.md": "crates/linkweir-gateway/tests/documentation.rs",
        "docs/howto/own-policy.md": "python/tests/test_own_policies.py",
        "docs/howto/editor.md": "python/tests/test_schema.py",
        "docs/howto/deploy.md": "python/tests/test_deploy.py",
        "docs/howto/replay.md": "python/tests/test_schema.py",
    }
    assert {block.page for block in ALL if block.language == "toml"} == {*SCENARIO_PAGES, *elsewhere}
    for page, test in elsewhere.items():
        assert Path(page).name in (REPOSITORY / test).read_text(), test


def test_messages_are_as_shown(tmp_path: Path) -> None:
    (block,) = (
        block for block in ALL if block.page == "docs/reference/scenarios.md" and block.first.startswith("geo.toml:19")
    )
    geo = (SCENARIOS / "geo.toml").read_text()
    (tmp_path / "cell.csv").write_text("t_s,capacity_bps\n0,1e6\n1,-5\n")
    wrong = [
        geo.replace("\ndelay = ", "\ndealy = "),
        geo.replace('\nrate = "20Mbit"', "\nrate = 20"),
        geo.replace('\nrate = "20Mbit"', '\nrate = "20mbit"'),
        geo.replace('[[class]]\nname = "af"', '[class]\nname = "af"'),
        geo.replace('\nrate = "20Mbit"', '\ntrace = "cell.csv"'),
    ]
    messages = []
    for text in wrong:
        (tmp_path / "geo.toml").write_text(text)
        with pytest.raises(ScenarioError) as fault:
            Scenario.load(tmp_path / "geo.toml")
        messages.append(str(fault.value).replace(f"{tmp_path}/", ""))
    assert [shape(line) for line in messages] == [shape(line) for line in block.text.strip().split("\n")]


def test_a_sweep_leaves_what_is_shown(tmp_path: Path) -> None:
    (block,) = (block for block in ALL if block.page == "docs/howto/sweep.md" and block.first.startswith("plan.json"))
    (tmp_path / "small.toml").write_text(VOICE)
    (tmp_path / "plan.toml").write_text('scenario = "small.toml"\nseeds = [1, 2]\n')
    assert linkweir("sweep", tmp_path / "plan.toml", "--out", tmp_path / "out").returncode == 0
    shown = {line.split()[0].rstrip("/") for line in block.text.strip().split("\n")}
    left = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*")} - {"results"}
    assert left <= shown
    assert shown - left <= {"parts", "inputs"}  # those of runs under way, and of scenarios that name files
