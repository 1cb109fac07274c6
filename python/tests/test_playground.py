# SPDX-License-Identifier: BSD-3-Clause
"""The simulator as WebAssembly gives the bytes of the native one, and the playground's knobs move what they promise."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from browser import MISSING, PROGRAM, Browser
from command import REPOSITORY
from firefox import MISSING as WITHOUT_FIREFOX
from firefox import PROGRAM as FIREFOX
from firefox import Firefox

import linkweir
from linkweir import _native
from linkweir.report import knobs

sys.path.insert(0, str(REPOSITORY / "docs/site"))

import check
import playground

SCENARIOS = REPOSITORY / "scenarios"
QUICK = ("pss-fade", "geo-dwrr", "lte-drive", "pds", "camera", "codecs")
"""Of the shipped scenarios: TCP, traces, recordings, random sources."""
NODE = """
const { readFileSync } = require("node:fs");
const { createHash } = require("node:crypto");
const [script, module, request] = process.argv.slice(1);
require(script);
const { run, unpacked, read } = globalThis.linkweirSimulator;
const compiled = new WebAssembly.Module(readFileSync(module));
const instance = new WebAssembly.Instance(compiled, { env: { linkweir_progress: () => 1 } });
const { answer, trap } = run(instance, unpacked(readFileSync(request)));
const { tables, ...others } = read(answer);
const hash = createHash("sha256");
for (const table of tables) hash.update(table);
console.log(JSON.stringify({ ...others, trap: trap && String(trap), tables: hash.digest("hex") }));
"""


def packed(parts: Sequence[str | bytes]) -> bytes:
    """Parts as linkweir-web's `parts.rs` describes them."""
    all_bytes = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join(len(part).to_bytes(4, "little") + part for part in all_bytes)


def request(name: str, *more: str | bytes) -> bytes:
    """A request for a shipped scenario."""
    parts: list[str | bytes] = ["scenario", f"scenarios/{name}.toml", (SCENARIOS / f"{name}.toml").read_bytes()]
    for path in sorted(SCENARIOS.rglob("*.csv")):
        parts += ["file", f"scenarios/{path.relative_to(SCENARIOS)}", path.read_bytes()]
    return packed([*parts, *more])


def native_hash(name: str) -> str:
    """SHA-256 over the tables of a native run, in the form of linkweir-web's `answer.rs`."""
    found = hashlib.sha256()

    def take(table: str, columns: Sequence[tuple[str, str, int, bytes, bytes | None, list[str] | None]]) -> None:
        parts: list[str | bytes] = [table]
        for column, kind, _, values, validity, words in columns:
            parts += [column, kind, values, validity or b"", packed(words or [])]
        found.update(packed(parts))

    _native.run(_native.load(SCENARIOS / f"{name}.toml"), take)
    return found.hexdigest()


def compiled(profile: str) -> Path:
    """The simulator."""
    try:
        return playground.built(profile)
    except playground.MissingError as error:
        pytest.skip(f"NOT TESTED: the playground: {error}")


@pytest.fixture(scope="module")
def module() -> Path:
    """The playground's simulator."""
    return compiled(playground.FAST)


@pytest.fixture
def node() -> str:
    """The program."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("NOT TESTED: the simulator in node, which is missing: ./setup.sh playground")
    return found


def in_node(node: str, module: Path, wanted: bytes, folder: Path) -> dict[str, Any]:
    """The answer to a request, with a hash in place of the tables."""
    (folder / "request").write_bytes(wanted)
    script = REPOSITORY / "python/linkweir/report/simulator.js"
    command = [node, "-e", NODE, script, module, folder / "request"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def shipped() -> list[str]:
    """The scenarios that a browser can run: those without a policy of the user's own."""
    names = sorted(path.stem for path in SCENARIOS.glob("*.toml"))
    names = [name for name in names if "policy = {" not in (SCENARIOS / f"{name}.toml").read_text()]
    assert len(names) > 25
    return names


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in shipped()]
)
def test_node_gives_the_bytes_of_a_native_run(name: str, node: str, module: Path, tmp_path: Path) -> None:
    answer = in_node(node, module, request(name, "want", "tables"), tmp_path)
    assert answer["tables"] == native_hash(name)
    assert answer["outcome"]["complete"]


@pytest.mark.long
@pytest.mark.parametrize("name", shipped())
def test_the_simulator_of_reports_gives_the_bytes_of_a_native_run(name: str, node: str, tmp_path: Path) -> None:
    answer = in_node(node, compiled(playground.SMALL), request(name, "want", "tables"), tmp_path)
    assert answer["tables"] == native_hash(name)


def test_another_seed_gives_other_bytes(node: str, module: Path, tmp_path: Path) -> None:
    answer = in_node(node, module, request("codecs", "want", "tables", "key", "seed", "77"), tmp_path)
    assert answer["tables"] != native_hash("codecs")


def test_a_fault_has_line_and_key(node: str, module: Path, tmp_path: Path) -> None:
    answer = in_node(node, module, request("pss-fade", "key", "class.af.memory", '"2"'), tmp_path)
    assert answer["fault"]["line"] == 28
    assert answer["fault"]["key"] == "class[1].memory"


def test_a_trap_hands_its_sentence_over_and_a_fresh_instance_works(node: str, module: Path) -> None:
    script = """
    require(process.argv[1]);
    const { run, read } = globalThis.linkweirSimulator;
    const compiled = new WebAssembly.Module(require("node:fs").readFileSync(process.argv[2]));
    const begun = () => new WebAssembly.Instance(compiled, { env: { linkweir_progress: () => 1 } });
    const broken = begun();
    const exports = { ...broken.exports, linkweir_room: () => broken.exports.linkweir_room(-1) };
    const { answer, trap } = run({ exports }, ["song"]);
    const fresh = run(begun(), ["song"]);
    console.log(JSON.stringify([String(trap), read(answer).trap, read(fresh.answer).fault.sentence]));
    """
    command = [node, "-e", script, REPOSITORY / "python/linkweir/report/simulator.js", module]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    trap, sentence, fresh = json.loads(done.stdout)
    assert "unreachable" in trap
    assert "capacity overflow" in sentence
    assert "unknown part" in fresh


def test_bytes_that_a_page_brings_along_are_read_back(node: str) -> None:
    contents = [bytes(range(n)) + bytes([255, 0, 254]) * n for n in range(12)] + [random.Random(1).randbytes(5000)]
    texts = [knobs.as_text(gzip.compress(content, 9, mtime=0)) for content in contents]
    assert {len(text) % 5 for text in texts} > {2, 3, 4}
    script = """
    require(process.argv[1]);
    const all = JSON.parse(process.argv[2]).map(globalThis.linkweirSimulator.inflated);
    const hex = (found) => found.map((bytes) => Buffer.from(bytes).toString("hex"));
    Promise.all(all).then((found) => console.log(JSON.stringify(hex(found))));
    """
    command = [node, "-e", script, REPOSITORY / "python/linkweir/report/simulator.js", json.dumps(texts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [content.hex() for content in contents]


# --- without the toolchain ------------------------------------------------------------------------------------------


def program(folder: Path, name: str, script: str) -> None:
    """A program of this name in the folder."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_without_the_toolchain_the_site_is_made_and_says_what_is_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    playground.write(tmp_path)
    said = "NOT BUILT: the playground's simulator: cargo is missing; ./setup.sh playground"
    assert capsys.readouterr().out.startswith(f"site: {said}")
    data = (tmp_path / "playground-data.js").read_text()
    assert '"module": null' in data
    assert '"missing": "cargo is missing' in data


def test_a_compiler_that_fails_does_not_end_the_making_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("clang", "llvm-ar", "wasm-ld"):
        program(tmp_path, name, "")
    program(tmp_path, "rustc", f"echo {tmp_path}")
    program(tmp_path, "cargo", "echo 'error: the sources are damaged' >&2; exit 101")
    (tmp_path / "libstd-1.rlib").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    playground.write(tmp_path)
    said = capsys.readouterr().out
    assert said.startswith("site: NOT BUILT: the playground's simulator: cargo failed with exit code 101")
    assert "error: the sources are damaged" in said
    program(tmp_path, "rustc", "echo 'error: damaged itself' >&2; exit 1")
    with pytest.raises(playground.MissingError, match="rustc --print sysroot failed: error: damaged itself"):
        playground.built(playground.FAST)


def test_the_module_is_where_cargo_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("clang", "llvm-ar", "wasm-ld", "cargo"):
        program(tmp_path, name, "")
    program(tmp_path, "rustc", f"echo {tmp_path}")
    (tmp_path / "libstd-1.rlib").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("CARGO_TARGET_DIR", "elsewhere")
    monkeypatch.chdir(tmp_path)  # cargo is called in the repository
    assert playground.built("fast") == REPOSITORY / "elsewhere/wasm32-unknown-unknown/fast/linkweir_web.wasm"


@pytest.mark.parametrize("brought", [True, False])
def test_where_rust_brings_no_linker_the_systems_is_named(
    brought: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("clang", "llvm-ar", "wasm-ld"):
        program(tmp_path, name, "")
    program(tmp_path, "cargo", f'echo "$CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER" >{tmp_path}/named')
    program(tmp_path, "rustc", f"echo {tmp_path}")
    (tmp_path / "libstd-1.rlib").touch()
    if brought:
        (tmp_path / "lib/rustlib/host/bin").mkdir(parents=True)
        (tmp_path / "lib/rustlib/host/bin/rust-lld").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    playground.built(playground.FAST)
    assert (tmp_path / "named").read_text().strip() == ("" if brought else "wasm-ld")


def test_the_sources_are_hashed_as_by_the_build_of_the_native_module(tmp_path: Path) -> None:
    folder = tmp_path / "crates/linkweir-py"
    folder.mkdir(parents=True)
    (folder / "sources.txt").write_text("a\nmissing\n")
    (tmp_path / "a").write_text("")
    assert playground.sources(tmp_path) == "af63dc4c8601ec8c"  # of "a", in the authors' list of FNV-1a's test vectors
    (tmp_path / "a").unlink()
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_text("2")
    (tmp_path / "a/b.c").write_text("1")
    joined = 0xCBF29CE484222325
    for byte in b"a/b/c2a/b.c1":  # folders before what follows their names, as paths are sorted in Rust
        joined = (joined ^ byte) * 0x100000001B3 % 2**64
    assert playground.sources(tmp_path) == f"{joined:016x}"


def test_every_crate_of_the_simulator_is_among_the_sources() -> None:
    command = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    needed = {
        package["name"]: [found["name"] for found in package["dependencies"] if "path" in found and not found["kind"]]
        for package in json.loads(done.stdout)["packages"]
    }
    crates, more = set[str](), {"linkweir-web"}
    while more:
        crates |= more
        more = {name for crate in more for name in needed[crate]} - crates
    assert len(crates) > 4
    listed = (REPOSITORY / "crates/linkweir-py/sources.txt").read_text().splitlines()
    assert {f"crates/{crate}/src" for crate in crates} <= set(listed)


@pytest.mark.parametrize("changed", ["crates/linkweir-web/src/answer.rs", "crates/linkweir-panels/src/apart.rs"])
def test_another_answer_or_panel_is_another_simulator(changed: str, tmp_path: Path) -> None:
    for name in ("crates/linkweir-py/sources.txt", changed):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    before = playground.sources(tmp_path)
    (tmp_path / changed).write_text((tmp_path / changed).read_text() + "// planted\n")
    assert playground.sources(tmp_path) != before


# --- the page -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def root(module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a folder with the playground alone."""
    folder = tmp_path_factory.mktemp("playground")
    playground.write(folder)
    for name in ("playground.js", "playground.css"):
        shutil.copy(playground.REPOSITORY / "docs/site/static" / name, folder)
    styles = "".join(f'<link rel="stylesheet" href="{name}">' for name in playground.STYLES)
    scripts = "".join(f'<script defer src="{name}"></script>' for name in playground.SCRIPTS)
    (folder / "index.html").write_text(
        f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Playground</title>
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width, initial-scale=1">{styles}{scripts}
</head><body><article><section id="playground"><h1>Playground</h1><div id="knobs"></div></section></article>
</body></html>"""
    )
    with check.served(folder) as address:
        yield address


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A browser."""
    if PROGRAM is None:
        pytest.skip(f"NOT TESTED: the playground in a browser: {MISSING}")
    with Browser() as opened:
        yield opened


DONE = "/simulated in/.test(document.querySelector('#knobs .state').textContent)"
CELLS = """[...document.querySelectorAll("#knobs .numbers tbody tr")].map((row) =>
  [...row.cells].map((cell) => cell.innerText))"""


def opened(browser: Browser | Firefox, root: str, knobs: str) -> list[list[str]]:
    """The numbers of an experiment with these knobs."""
    browser.open("about:blank")
    browser.open(f"{root}index.html#{knobs}")
    browser.wait(DONE)
    cells: list[list[str]] = browser.value(CELLS)
    return cells


def test_memory_decides_what_is_made_up_for(browser: Browser, root: str) -> None:
    got = [opened(browser, root, f"piece=memory&memory={memory}")[0] for memory in ("100ms", "2s", "10s")]
    assert got == [["af", "5.00", "4.02"], ["af", "5.00", "4.34"], ["af", "5.00", "5.00"]]
    assert browser.value("linkweirReport.panels.map(({ panel }) => panel.name)") == ["rates", "levels-credit_bits"]
    assert browser.value("document.querySelector('#knobs .command').textContent") == (
        "linkweir run scenarios/pss-fade.toml"
    )
    assert browser.value("document.querySelector('h1').textContent") == "Playground"
    assert browser.problems() == []


@pytest.mark.parametrize(
    ("policy", "got"),
    [("pss", ("5.00", "5.00", "5.00")), ("drr", ("9.50", "5.00", "2.50"))],
)
def test_only_a_reservation_holds_while_voice_grows(
    policy: str, got: tuple[str, ...], browser: Browser, root: str
) -> None:
    found = [opened(browser, root, f"piece=voice&policy={policy}&voice={voice}Mbit")[1] for voice in (1, 10, 15)]
    for (_, promised, rate), expected in zip(found, got, strict=True):
        assert promised == "5.00"
        assert float(rate) == pytest.approx(float(expected), abs=0.06)


def test_strict_priority_leaves_af_what_voice_leaves(browser: Browser, root: str) -> None:
    for voice in (1, 10, 15):
        rows = opened(browser, root, f"piece=voice&policy=strict&voice={voice}Mbit")
        rates = {name: float(got) for name, _, got in rows}
        assert sum(rates.values()) == pytest.approx(20, abs=0.02)
        if voice == 1:  # 200 packets of queue are too few for TCP to fill 19 Mbit/s over 500 ms: CS0 gets the rest
            assert rates["cs0"] < 1 < 10 < rates["af"] <= 19
        else:
            assert rates["af"] == pytest.approx(20 - voice, abs=0.06)


def test_ratios_stay_while_the_load_grows(browser: Browser, root: str) -> None:
    losses = []
    for load in (13.5, 18):
        rows = opened(browser, root, f"piece=overload&load={load}Mbit")
        losses.append(float(rows[0][1]))
        for _, _, promised, got, *_ in rows:
            assert float(got[2:]) == pytest.approx(float(promised[2:]), abs=0.03)
    assert losses[0] == pytest.approx(17.5, abs=0.1)
    assert losses[1] == pytest.approx(58, abs=1)


def native_loss(timeout: str, vehicles: str) -> float:
    """What all vehicles of a native run with these values lost together, %."""
    text = (SCENARIOS / "leo-voice.toml").read_text()
    changed = text.replace('timeout = "100ms"', f'timeout = "{timeout}"').replace("count = 84", f"count = {vehicles}")
    rows = linkweir.run(linkweir.Scenario.parse(changed)).classes.to_pylist()
    arrived = sum(row["arrived_pkts"] for row in rows)
    return 100 * sum(row["arrived_pkts"] * (row["loss"] or 0) for row in rows) / arrived


def test_a_timeout_trades_late_packets_for_lost_ones(browser: Browser, root: str) -> None:
    longer_saves = {}
    for vehicles in ("84", "110", "150"):
        losses = []
        for timeout in (100, 400):
            [row] = opened(browser, root, f"piece=timeout&timeout={timeout}ms&vehicles={vehicles}")
            assert row[0] == vehicles
            assert row[1] == f"{native_loss(f'{timeout}ms', vehicles):.1f}"
            assert row[2] == str(timeout)
            assert 0.9 * timeout < float(row[3]) <= timeout
            losses.append(float(row[1]))
        longer_saves[vehicles] = losses[1] < losses[0]
    assert longer_saves == {"84": True, "110": False, "150": False}  # just full, overloaded, more so


def test_memory_decides_what_a_drive_gives_back(browser: Browser, root: str) -> None:
    text = (SCENARIOS / "lte-drive.toml").read_text()
    rates = []
    for memory in ("100ms", "1s", "10s", "60s"):
        [af] = [row for row in opened(browser, root, f"piece=trace&memory={memory}") if row[0] == "af"]
        assert af[1] == "1.50"
        changed = text.replace('memory = "10s"', f'memory = "{memory}"')
        native = linkweir.run(linkweir.Scenario.parse(changed, path=SCENARIOS / "lte-drive.toml")).classes.to_pylist()
        [rate_bps] = [row["rate_bps"] for row in native if row["class"] == "af"]
        assert af[2] == f"{rate_bps / 1e6:.2f}"
        rates.append(float(af[2]))
    assert rates == sorted(rates)
    assert rates[0] < 0.9 * 1.5
    assert rates[-1] == pytest.approx(1.5, abs=0.01)


@pytest.mark.parametrize("address", ["piece=voice&voice=10", "piece=voice&voice=abc", "piece=memory&memory=-1s"])
def test_a_wrong_address_leaves_the_slider_at_the_usual_value(address: str, browser: Browser, root: str) -> None:
    opened(browser, root, address)
    usual = {"voice": "10Mbit", "memory": "2s"}[address[6:].partition("&")[0]]
    assert browser.value("document.querySelector('#knobs input[type=range] + output').textContent") == usual
    assert browser.value("document.querySelector('#knobs .fault').hidden")
    assert browser.problems() == []


def test_sliders_have_the_ranges_of_the_policies_tables(browser: Browser, root: str) -> None:
    opened(browser, root, "piece=timeout&timeout=100ms")
    [codes] = (policy for policy in linkweir.policies() if policy.name == "codes")
    [timeout] = (param for param in codes.class_params if param.name == "timeout")
    slider = "document.getElementById('knob-timeout')"
    assert browser.value(f"{slider}.title") == timeout.help
    ends = []
    for end in ("0", f"{slider}.max"):
        browser.value(f"{slider}.value = {end}, {slider}.dispatchEvent(new Event('input')), 0")
        ends.append(browser.value(f"{slider}.getAttribute('aria-valuetext')"))
    assert ends == [timeout.min, "60s"]  # the scenario's duration; the table's end is an hour
    opened(browser, root, "piece=voice")
    slider = "document.getElementById('knob-voice')"
    browser.value(f"{slider}.value = {slider}.max, {slider}.dispatchEvent(new Event('input')), 0")
    assert browser.value(f"{slider}.getAttribute('aria-valuetext')") == "19Mbit"


def test_nothing_moves_by_itself_where_motion_is_to_be_reduced(browser: Browser, root: str) -> None:
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    opened(browser, root, "piece=memory&memory=2s")
    assert browser.value("matchMedia('(prefers-reduced-motion: reduce)').matches")
    assert browser.value("document.getAnimations().length") == 0
    assert browser.value("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    browser.value("[...document.querySelectorAll('#knobs .pieces button')].at(1).click()")
    browser.wait(DONE)
    assert browser.value("document.getAnimations().length") == 0


def test_a_dropped_trace_takes_the_place_of_the_link(browser: Browser, root: str) -> None:
    before = opened(browser, root, "piece=trace&memory=10s")
    browser.value("""(() => {
      const data = new DataTransfer();
      data.items.add(new File(["t_s,capacity_bps\\n0,1000000\\n300,1000000\\n"], "mine.csv"));
      document.querySelector('#knobs .state').textContent = "";
      document.getElementById("knobs").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
    })()""")
    browser.wait(DONE)
    after = browser.value(CELLS)
    assert sum(float(row[2]) for row in after) < 1.01 < sum(float(row[2]) for row in before)
    assert browser.value("document.querySelector('#knobs .command').textContent") == (
        "linkweir run scenarios/lte-drive.toml --trace mine.csv"
    )
    assert {address.rsplit("/", 1)[0] + "/" for address in browser.requests() if address.startswith("http")} == {root}


SLIDER = "document.getElementById('knob-memory')"


def test_a_slider_is_moved_by_the_keyboard_and_the_address_carries_it(browser: Browser, root: str) -> None:
    opened(browser, root, "piece=memory&memory=2s")
    browser.value(f"{SLIDER}.focus(); document.querySelector('#knobs .state').textContent = ''")
    for kind in ("keyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key="End", code="End", windowsVirtualKeyCode=35)
    browser.wait(DONE)
    most = f"{linkweir.Scenario.load(SCENARIOS / 'pss-fade.toml').duration_s:g}s"  # the table's range is longer
    assert browser.value("location.hash") == f"#piece=memory&memory={most}"
    assert browser.value("document.querySelector('#knobs a[href^=\\'#\\']').hash") == f"#piece=memory&memory={most}"
    assert browser.value(CELLS) == [["af", "5.00", "5.00"]]


CODES = {"Tab": 9, "Enter": 13, "End": 35, "ArrowRight": 39}


def press(browser: Browser, key: str) -> None:
    """Presses a key and lets it go."""
    text = {"text": "\r"} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        more = text if kind == "keyDown" else {}
        browser.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=CODES[key], **more)


def tab_to(browser: Browser, found: str) -> None:
    """Presses Tab until the focus is where an expression is true; each place on the way must be seen."""
    for _ in range(100):
        press(browser, "Tab")
        assert browser.value(
            "document.activeElement === document.body || "
            "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
        ), browser.value("document.activeElement.outerHTML.slice(0, 99)")
        if browser.value(found):
            return
    raise AssertionError(f"no Tab leads there: {found}")


PIECES = ("memory", "voice", "overload", "timeout", "trace", "edit")


def test_every_piece_is_reached_and_turned_by_the_keyboard_alone(browser: Browser, root: str) -> None:
    opened(browser, root, "piece=edit")
    for number, piece in enumerate(PIECES):
        browser.value("document.activeElement.blur(), document.querySelector('#knobs .state').textContent = '', 0")
        tab_to(browser, f"document.activeElement === document.querySelectorAll('#knobs .pieces button')[{number}]")
        press(browser, "Enter")
        browser.wait(f"location.hash.startsWith('#piece={piece}') && {DONE}")
        control = "button.does" if piece == "edit" else "input[type=range]"
        tab_to(browser, f"document.activeElement.matches('#knobs .knob {control}')")
        before = browser.value("location.hash")
        browser.value("document.querySelector('#knobs .state').textContent = '', 0")
        press(browser, "Enter" if piece == "edit" else "ArrowRight")
        browser.wait(DONE)
        assert (browser.value("location.hash") == before) == (piece == "edit")
        tab_to(browser, "document.activeElement.textContent === 'Link to this setting'")
    assert browser.problems() == []


@pytest.mark.parametrize("piece", PIECES)
def test_it_fits_a_phone(piece: str, browser: Browser, root: str) -> None:
    browser.resize(360, 740)
    opened(browser, root, f"piece={piece}")
    assert browser.value("innerWidth") == 360
    assert browser.value("document.documentElement.scrollWidth") <= 360
    cut = """[...document.querySelectorAll("#knobs :is(button, input, select, label, output, canvas)")]
    .filter((each) => {
      const { left, right, width } = each.getBoundingClientRect();
      return width > 0 && (left < 0 || right > 360);
    }).map((each) => each.outerHTML.slice(0, 99))"""
    assert browser.value(cut) == []
    assert browser.problems() == []


def test_the_changed_key_is_marked(browser: Browser, root: str) -> None:
    opened(browser, root, "piece=memory&memory=2s")
    assert browser.value("[...document.querySelectorAll('#knobs mark')].map((mark) => mark.textContent)") == [
        'memory = "2s"\n'
    ]
    assert browser.value("document.querySelector('#knobs .command').textContent") == (
        "linkweir run scenarios/pss-fade-changed.toml"
    )
    assert "save it as scenarios/pss-fade-changed.toml" in browser.value("document.getElementById('knobs').innerText")


EDITED = """(() => {
  const editor = document.getElementById("scenario-text");
  editor.value = editor.value.replace(BEFORE, AFTER);
  document.querySelector("#knobs .state").textContent = "";
  [...document.querySelectorAll("#knobs button")].find((button) => button.textContent === "Run").click();
})()"""
FAULT = "document.querySelector('#knobs .fault')"


def edited(before: str, after: str) -> str:
    """Clicks Run after a change of the text."""
    return EDITED.replace("BEFORE", json.dumps(before)).replace("AFTER", json.dumps(after))


def test_faults_and_refusals_show_their_line(browser: Browser, root: str) -> None:
    opened(browser, root, "piece=edit&scenario=pss-fade")
    browser.value(edited('\nmemory = "10s"', '\nmemory = "10"'))  # a comment has the key, too
    browser.wait(f"!{FAULT}.hidden")
    assert "scenarios/pss-fade.toml:28: class[1].memory" in browser.value(f"{FAULT}.textContent")
    selected = "(({ value, selectionStart, selectionEnd }) => value.slice(selectionStart, selectionEnd))"
    assert browser.value(f"{selected}(document.getElementById('scenario-text'))") == 'memory = "10"'
    browser.value(edited('policy = "pss"', 'policy = { c = "mine.c" }'))
    browser.wait(f"{FAULT}.textContent.includes('a policy of your own does not run in a browser')")
    browser.value(edited('policy = { c = "mine.c" }', 'policy = "pss"'))
    browser.value(edited('memory = "10"', 'memory = "10s"'))
    browser.wait(f"{DONE} && {FAULT}.hidden")


def test_a_class_that_offers_less_than_its_reservation_keeps_it(browser: Browser, root: str) -> None:
    opened(browser, root, "piece=edit&scenario=pss-fade")
    browser.value(edited('kind = "greedy"                 # always', 'kind = "cbr"\nrate = "1Mbit"  # always'))
    browser.wait(DONE)
    promised = "#knobs .numbers tr:nth-child(2) td:last-child"
    assert browser.value(CELLS)[1] == ["af", "5.00", "1.00"]
    assert browser.value(f"document.querySelector('{promised}').className") == "kept"
    opened(browser, root, "piece=memory&memory=0s")
    promised = "#knobs .numbers td:last-child"
    assert browser.value(f"document.querySelector('{promised}').className") == "missed"


def test_every_link_of_a_network_has_its_classes(browser: Browser, root: str) -> None:
    rows = opened(browser, root, "piece=edit&scenario=household")
    native = linkweir.run(linkweir.Scenario.load(SCENARIOS / "household.toml")).classes.to_pylist()
    assert rows == [[row["link"], row["class"], "\N{EN DASH}", f"{row['rate_bps'] / 1e6:.2f}"] for row in native]
    assert len(rows) == 4
    assert browser.value("linkweirReport.data.links.map(({ name }) => name)") == list(
        dict.fromkeys(row[0] for row in rows)
    )


def test_a_trace_is_quoted_for_a_shell_and_a_large_one_is_refused(browser: Browser, root: str) -> None:
    opened(browser, root, "piece=trace&memory=10s")
    drop = """(() => {
      const data = new DataTransfer();
      data.items.add(new File(PARTS, "it's my drive.csv"));
      document.querySelector('#knobs .state').textContent = "";
      document.getElementById("knobs").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
    })()"""
    browser.value(drop.replace("PARTS", '["t_s,capacity_bps\\n0,1000000\\n300,1000000\\n"]'))
    browser.wait(DONE)
    command = browser.value("document.querySelector('#knobs .command').textContent")
    assert shlex.split(command)[-2:] == ["--trace", "./it's my drive.csv"]
    browser.value(drop.replace("PARTS", "Array(65).fill(new Uint8Array(2 ** 20))"))
    browser.wait(f"!{FAULT}.hidden")
    assert "has 65.0 MiB; a trace has at most 64 MiB here" in browser.value(f"{FAULT}.textContent")


LONG = """(async () => {
  const { Simulator, compiled } = linkweirSimulator;
  const simulator = new Simulator(await compiled(linkweirPlayground.module));
  const text = linkweirPlayground.scenarios["pss-fade"];
  const scenario = (duration) => ["scenario", "one.toml", text, "key", "duration", `"${duration}"`];
  const times = [];
  const reported = new Promise((resolve) => {
    window.first = simulator.ask(scenario("9000s"), (simulatedS) => { times.push(simulatedS); resolve(); });
  });
  await reported;
  THEN
  const second = simulator.ask(scenario("1s"));
  return [await window.first, times[0] > 0, (await second).outcome.complete];
})()"""


# a request that comes this late gives up the run before it, as one soon after the beginning does not
@pytest.mark.parametrize("then", ["simulator.stop();", "await new Promise((resolve) => setTimeout(resolve, 500));"])
def test_a_long_run_reports_progress_and_is_given_up(then: str, browser: Browser, root: str) -> None:
    opened(browser, root, "piece=memory")
    assert browser.value(LONG.replace("THEN", then)) == [None, True, True]


def test_a_worker_that_fails_is_replaced(browser: Browser, root: str) -> None:
    opened(browser, root, "piece=memory")
    found = browser.value("""(async () => {
      const { Simulator, compiled } = linkweirSimulator;
      const simulator = new Simulator(await compiled(linkweirPlayground.module));
      const failed = await simulator.ask([null]).catch((error) => error.message);
      const { fault } = await simulator.ask(["song"]);
      return [failed, fault.sentence];
    })()""")
    assert "null" in found[0]
    assert "unknown part" in found[1]


HASHES = """(async () => {
  const { Simulator, compiled } = linkweirSimulator;
  const { module, scenarios, files } = linkweirPlayground;
  const simulator = new Simulator(await compiled(module));
  const parts = ["scenario", "scenarios/NAME.toml", scenarios["NAME"], "want", "tables"];
  for (const [path, content] of Object.entries(files)) parts.push("file", `scenarios/${path}`, content);
  const { tables } = await simulator.ask(parts);
  const bytes = await new Blob(tables).arrayBuffer();
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
})()"""


@pytest.mark.parametrize("name", QUICK)
def test_a_browser_gives_the_bytes_of_a_native_run(name: str, browser: Browser, root: str) -> None:
    opened(browser, root, "piece=memory")
    assert browser.value(HASHES.replace("NAME", name)) == native_hash(name)


def hashes_of_all(browser: Browser | Firefox, root: str) -> None:
    """Compares all shipped scenarios with native runs."""
    opened(browser, root, "piece=memory")
    assert {name: browser.value(HASHES.replace("NAME", name)) for name in shipped()} == {
        name: native_hash(name) for name in shipped()
    }


@pytest.mark.long
def test_a_browser_gives_the_bytes_of_all_native_runs(browser: Browser, root: str) -> None:
    hashes_of_all(browser, root)


@pytest.fixture
def gecko() -> Iterator[Firefox]:
    """Firefox."""
    if FIREFOX is None:
        pytest.skip(f"NOT TESTED: the playground in Firefox: {WITHOUT_FIREFOX}")
    with Firefox() as opened:
        yield opened


def test_firefox_gives_the_bytes_of_native_runs(gecko: Firefox, root: str) -> None:
    opened(gecko, root, "piece=memory")
    for name in QUICK:
        assert gecko.value(HASHES.replace("NAME", name)) == native_hash(name), name


@pytest.mark.long
def test_firefox_gives_the_bytes_of_all_native_runs(gecko: Firefox, root: str) -> None:
    hashes_of_all(gecko, root)
