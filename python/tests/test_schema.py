# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schemas of `linkweir schema` agree with the parsers, in both directions.

What a parser accepts, its schema accepts, without exception. What a parser refuses, its schema refuses, except what is
in `BEYOND`: ranges of quantities with units, rules across keys, and the content of files.
"""

from __future__ import annotations

import copy
import functools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY, SCENARIOS, linkweir
from test_scenario_reference import AMOUNTS, BASE, KINDS, SECTIONS, SIGNALS, SIZES, rows, with_flow, with_keys

from linkweir import Scenario, ScenarioError, policies, traces
from linkweir.scenarios.declared import rows as declared
from linkweir.scenarios.policy import IN_SIMULATOR
from linkweir.scenarios.schema import KINDS as FILES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

jsonschema = pytest.importorskip("jsonschema")

_QUANTITY = r"-?[\d.]+([kMG]?(bit|B|Bd)|s|ms|us|ns|p|%)"
BEYOND = [
    r"is for L4S packets, which the class does not sort",
    rf"must be (whole and |whole; must be )?{_QUANTITY} \.\. ",
    r"must be a whole number .*, without a point",  # to JSON Schema 2.0 is a whole number
    r"must not be (empty|below)|must be (above|below|at least|at most|one word|the path|longer|later|whole)",
    r"^link\.satellite\.(elevation_deg|esn0_db)|^(link\.satellite\.)?constellation\.(spacing_deg|phasing|step)",
    r"no station has this name",
    r"no link has this name|passes this link a second time|the flow passes no link|matches no class on ",
    r"does not say which class|two links have this name|leads back to this link|no class on ",
    r"needs log = |is only for |is a key of |is the state of the rain|has delays of its own|exclude each other",
    r"no class has this name|two (classes|flows|peers) |names \S+ twice|must hold |makes packets of |counts as ",
    r"reservoir and cushion|gives a transfer every|must (fall|rise)|must (not )?(fall|rise|exceed|come)|leaves no rate",
    r"the last source would start|raise interval|whole segments|the first time|knows its users|mean capacity",
    r"cannot be read|does not say its unit|must be left out|must be [01] in front|satellites join|is no use",
    r"is empty and would take everything|takes all packets of a rule",
    r"has no packet of flow|is for a capture|places to compute|more than .* (packets|classes|flows)",
    r"must be (cubic|false|a file and a class)|needs a policy that leaves the choice",
    rf"\(({'|'.join(policy.name for policy in policies())})(, link\.nominal = .*)?\)$",  # what a policy checks
]
"""What parsers refuse and schemas do not: ranges of quantities, rules across keys, and the content of files."""
BEYOND_IT = re.compile("|".join(f"(?:{pattern})" for pattern in BEYOND))

VALUES: list[Any] = [
    *(0, 1, 2, -1, 0.5, 1.5, 2.0, 10**12, True, False, "", "x", "1", "-1"),
    *(
        "1s",
        " 1.5 ms ",
        "+1e3us",
        ".5h",
        "5.min",
        "1kbit",
        "1Mbit",
        "1bps",
        "1000B",
        "1KiB",
        "5p",
        "10%",
        "0.1",
        "2MBd",
    ),
    *(
        [],
        [1],
        ["1ms"],
        ["1Mbit", "2Mbit"],
        [["0s", "1Mbit"]],
        [["0s", "1ms"]],
        {},
        {"x": 1},
        {"mean": 5},
        [[]],
        "1s x",
    ),
    *({"mean": "1ms"}, {"mean": "1kB"}, {"probability": 0.1, "delay": "1ms"}, {"mean": "1%", "burst": "5p"}),
    *([{"dscp": "EF"}], [{"dscp": "XX"}], [{"port": [1, "2-3"]}], [{"protocol": "udp", "address": "10.0.0.0/8"}]),
    *([{"dscp": 46, "source_port": "x"}], [{"destination": "x"}], [{"protocol": 256}], [{}]),
    *({"lat_deg": 1, "lon_deg": 1.5}, {"min": 1, "max": 2}, {"every": "1s"}, {"load": "1Mbit"}, {"at": ["1s"]}),
]
"""Tried for every key."""


@functools.cache
def validator(kind: str) -> Any:
    schema = FILES[kind]()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def complaint(kind: str, document: dict[str, Any]) -> str | None:
    """The first fault that the schema finds, None if it accepts."""
    error = next(validator(kind).iter_errors(document), None)
    return None if error is None else f"{error.json_path}: {error.message[:200]}"


def refusal(scenario: dict[str, Any]) -> str | None:
    """What the parser says, None if it accepts."""
    try:
        Scenario.from_dict(scenario)
    except ScenarioError as error:
        return str(error)
    return None


def compare(kind: str, document: dict[str, Any], said: str | None, beyond: re.Pattern[str]) -> str | None:
    """How the schema differs from a parser that said this; None if it does not. It may miss what is `beyond` it."""
    if said is not None and beyond.search(said):
        return None
    found = complaint(kind, document)
    if said is None and found is not None:
        return f"accepted, but the schema says {found}"
    if said is not None and found is None:
        return f"the schema does not refuse: {said}"
    return None


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all values of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copied = copy.deepcopy(document)
    at: Any = copied
    for key in path[:-1]:
        at = at[key]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copied


def bases() -> list[dict[str, Any]]:
    """Scenarios that have every table."""
    found = [with_keys(section) for section in SECTIONS if not section.startswith("kind")]
    found += [with_flow(kind) for kind in KINDS]
    found += [with_flow("requests", response=amount) for amount in AMOUNTS]
    found += [with_flow("cbr", rate=signal) for signal in SIGNALS]
    found += [with_flow("cbr", packet=size) for size in SIZES]
    found += [tomllib.loads((SCENARIOS / f"{name}.toml").read_text()) for name in ("geo-return", "leo-shell")]
    return found


def words_of(cell: str) -> list[int | str]:
    """The words and numbers in a cell, as values."""
    return [*map(int, re.findall(r"\b\d+\b", cell)), *re.findall(r"[\w.-]+", cell)]


FROM_FILES = ["trace", *traces.KEYS, "fading", "delays", "attenuation", "file", "tle"]
UNTRIED = {
    *FROM_FILES,
    *("satellite", "beam", "rain", "constellation", "link", "scheduler", "class", "flow", "policy", "across", "coded"),
    *("delays_start", "delays_shift", "delays_before", "lengths", "only", "start", "log_rows", "exceeded", "name"),
    *("mtu", "reservoir", "cushion", "history", "safety", "l4s_step"),
    *("dscp", "path", "back", "from", "to", "bond"),  # of a network
}
"""Keys that need another one, or a file."""


@pytest.mark.parametrize("section", SECTIONS)
def test_every_value_of_every_key_is_judged_alike(section: str) -> None:
    differing = []
    for key, cells in rows(section).items():
        accepted = 0
        for value in [*VALUES, *words_of(cells[0])]:
            scenario = with_keys(section, **{key: value})
            said = refusal(scenario)
            difference = compare("scenario", scenario, said, BEYOND_IT)
            if difference is not None:
                differing.append(f"{key} = {value!r}: {difference}")
            accepted += said is None
        assert accepted or key in UNTRIED, key
    assert differing == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(bases())))
def test_every_change_of_a_scenario_is_judged_alike(number: int) -> None:
    """A key left out, a value of another type, a key that nothing knows."""
    scenario = bases()[number]
    assert refusal(scenario) is None
    assert complaint("scenario", scenario) is None
    differing = []
    for path in places(scenario):
        for value in (..., 3, "x", True, [], {}, [3], {"qqq": 1}):
            other = changed(scenario, path, value)
            difference = compare("scenario", other, refusal(other), BEYOND_IT)
            if difference is not None:
                differing.append(f"{path} = {value!r}: {difference}")
    tables = [path[:-1] for path in places(scenario) if isinstance(path[-1], str)]
    for path in dict.fromkeys(tables):
        strange = changed(scenario, (*path, "q" * 30), 1)
        assert refusal(strange) is not None
        if complaint("scenario", strange) is None:
            differing.append(f"{path}: the schema takes an unknown key")
    assert differing == []


def policy_scenarios() -> list[dict[str, Any]]:
    found = []
    for policy in policies():
        scheduler = {"policy": policy.name} | {p.name: written(p.default, p.unit) for p in policy.params}
        keys = {p.name: written(p.default, p.unit) for p in policy.class_params if p.default is not None}
        found.append({**BASE, "scheduler": scheduler, "class": [{"name": "all", **keys}]})
    return found


def written(value: str | None, unit: str) -> Any:
    return int(str(value)) if unit == "number" else value


@pytest.mark.parametrize("name", [policy.name for policy in policies()])
def test_every_parameter_of_a_policy_is_judged_alike(name: str) -> None:
    [policy] = [policy for policy in policies() if policy.name == name]
    differing = []
    for params, place in ((policy.params, "scheduler"), (policy.class_params, "class")):
        for param in params:
            for value in [*VALUES, *param.choices]:
                scenario = {**copy.deepcopy(BASE), "scheduler": {"policy": name}}
                table = scenario["class"][0] if place == "class" else scenario["scheduler"]
                table[param.name] = value
                said = refusal(scenario)
                ranged = said is not None and f"({param.help})" not in said
                difference = None if ranged else compare("scenario", scenario, said, BEYOND_IT)
                if difference is not None:
                    differing.append(f"{param.name} = {value!r}: {difference}")
        scenario = {**copy.deepcopy(BASE), "scheduler": {"policy": name}}
        (scenario["class"][0] if place == "class" else scenario["scheduler"])["q" * 30] = 1
        assert complaint("scenario", scenario) is not None
    assert differing == []


@pytest.mark.parametrize("name", IN_SIMULATOR)
def test_a_policy_that_only_reproduces_a_paper_is_read_but_not_offered(name: str) -> None:
    """Editors offer the words of an `enum` and the names of properties."""
    scenario = {**copy.deepcopy(BASE), "scheduler": {"policy": name}}
    if name == "ubmt_like":
        scenario["scheduler"]["target"] = "80ms"
        scenario["class"][0]["target_rate"] = "64kbit"
    assert complaint("scenario", scenario) is None
    assert complaint("scenario", {**scenario, "scheduler": {"policy": f"{name}s"}}) is not None
    offered: set[str] = set()

    def collect(schema: Any) -> None:
        if isinstance(schema, dict):
            offered.update(map(str, schema.get("enum", ())), schema.get("properties", ()), [str(schema.get("const"))])
            for part in schema.values():
                collect(part)
        elif isinstance(schema, list):
            for part in schema:
                collect(part)

    collect(FILES["scenario"]())
    assert "pss" in offered
    assert not offered & {*IN_SIMULATOR, "target_rate"}


def strings_of_rust_tests() -> Iterator[tuple[str, str]]:
    """Texts in the tests of the parser that are whole scenarios."""
    for path in sorted((REPOSITORY / "crates").rglob("*.rs")):
        for text in re.findall(r'r#"(.*?)"#', path.read_text(encoding="utf-8"), flags=re.DOTALL):
            if "duration" in text and "[[flow]]" in text:
                yield path.name, text


def test_what_the_parser_accepts_the_schema_accepts(tmp_path: Path) -> None:
    texts = [(path.name, path.read_text()) for path in SCENARIOS.glob("*.toml")]
    texts += [(path.name, path.read_text()) for path in (REPOSITORY / "bench/scenarios").glob("*.toml")]
    texts += strings_of_rust_tests()
    for page in (REPOSITORY / "docs").rglob("*.md"):
        blocks = re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        texts += [(page.name, block) for block in blocks if "duration" in block]
    documents = [(name, toml(text)) for name, text in texts] + [("policy", each) for each in policy_scenarios()]
    resolved = [(name, toml(full)) for name, text in texts if (full := resolved_form(text))]
    assert len(resolved) > 15
    for name, document in [*documents, *resolved]:
        if document is not None and refused_here(document) is None:
            assert complaint("scenario", document) is None, name


def resolved_form(text: str) -> str | None:
    try:
        return Scenario.parse(text, path=SCENARIOS / "x.toml").resolved
    except ScenarioError:
        return None


def refused_here(document: dict[str, Any]) -> str | None:
    """As `refusal`, with files as they are for scenarios of the repository."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(SCENARIOS)
        return refusal(document)


def toml(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


@pytest.mark.parametrize("links", [1, 2])
def test_flows_need_a_path_where_there_are_several_links(links: int) -> None:
    names = ["first", "second"][:links]
    made = [{**BASE["link"], "name": name, "scheduler": BASE["scheduler"], "class": BASE["class"]} for name in names]
    document = {key: value for key, value in BASE.items() if key not in ("scheduler", "class")} | {"link": made}
    assert (refusal(document) is None, complaint("scenario", document) is None) == (links == 1,) * 2
    with_path = {**document, "flow": [{**flow, "path": names} for flow in BASE["flow"]]}
    assert (refusal(with_path), complaint("scenario", with_path)) == (None, None)


def test_a_policy_of_ones_own_may_have_any_key() -> None:
    for own in ({"python": "mine.py:Mine"}, {"c": "mine.c"}, {"c": "mine.c", "trusted": True}):
        scenario = {**BASE, "scheduler": {"policy": own, "fast": 3}, "class": [{"name": "all", "deadline": "1ms"}]}
        assert complaint("scenario", scenario) is None
    for wrong in ({"python": "mine.py:Mine", "trusted": True}, {"c": "a.c", "python": "b.py:B"}, {}):
        assert complaint("scenario", {**BASE, "scheduler": {"policy": wrong}}) is not None


# --- the gateway  ---

CONFIGS = REPOSITORY / "crates/linkweir-gateway/configs"


@functools.cache
def program() -> Path:
    built = [REPOSITORY / "target" / profile / "linkweir-gateway" for profile in ("debug", "release")]
    there = sorted((path for path in built if path.is_file()), key=lambda path: path.stat().st_mtime)
    if not there:
        pytest.skip("THE SCHEMA OF THE GATEWAY IS NOT COMPARED: cargo build -p linkweir-gateway")
    return there[-1]


def gateway_refusal(document: dict[str, Any], folder: Path) -> str | None:
    file = folder / "gateway.toml"
    file.write_text("".join(f"{key} = {inline(value)}\n" for key, value in document.items()))
    # The schema knows names of files, not what is in them.
    for name in re.findall(r'(?:private|preshared)_key_file = "([^"/]+)"', file.read_text()):
        key = folder / name
        key.write_text("hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n")
        key.chmod(0o600)
    done = subprocess.run([program(), "check", "--cleartext", file], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2), done.stderr
    return None if done.returncode == 0 else done.stderr.strip()


def inline(value: Any) -> str:
    """A value as inline TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


KEY = "A" * 43 + "="
GATEWAYS: dict[str, dict[str, Any]] = {
    "link": {
        "stale": "5s",
        "floor": "1Mbit",
        "feedback": {"ceiling": "40Mbit", "delay": "9ms", "anticipate": True},
        "nominal": "9Mbit",
    },
    "unknown": {"feedback": True, "floor": "1Mbit"},
    "shared": {"across": {"policy": "drr", "quantum": "3kB"}, "below": "9kB", "mpu": "84B", "follow": False},
    "unknown and shared": {"across": {"policy": "drr"}, "feedback": {"delay": "9ms"}},
    "over time": {"rate": {"steps": [["0s", "20Mbit"], ["1s", "5Mbit"]], "end": "loop", "period": "2s"}},
}


def gateways() -> list[dict[str, Any]]:
    shipped = [tomllib.loads(path.read_text()) for path in sorted(CONFIGS.glob("*.toml"))]
    found = [document for document in shipped if "gateway" in document]
    first = next(document for document in found if document["gateway"]["mode"] == "cleartext")
    found += [{**first, "link": {"rate": "20Mbit", **keys}} for keys in GATEWAYS.values()]
    own = {"mode": "wireguard", "private_key_file": "key", "dscp": "pipe", "outer_dscp": "AF41", "drain": "1s"}
    peers = [{**peer, "public_key": KEY, "keepalive": "25s", "report": True} for peer in first["peer"][:1]]
    found.append({**first, "gateway": {**first["gateway"], **own}, "peer": peers})
    return found


GATEWAY_BEYOND = [
    *BEYOND,
    r"must be (an address|a port|the name of a network|a key|a code point)|must have a port|IPv[46]",
    r"only one class takes what no other does",
    r"is missing|one class must take|matches no packet|needs (stale|floor|a rate|a capacity)|is not a file|is empty",
    r"is used by no peer",
    r"lies in|is that of peer|has \S+ already|may hold|and link.across|measures one interface|must be one of",
]
BEYOND_THE_GATEWAYS = re.compile("|".join(f"(?:{pattern})" for pattern in GATEWAY_BEYOND))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(gateways())))
def test_every_change_of_a_gateways_file_is_judged_alike(number: int, tmp_path: Path) -> None:
    document = gateways()[number]
    assert gateway_refusal(document, tmp_path) is None
    assert complaint("gateway", document) is None
    differing = []
    paths = list(places(document))
    strange = [(*path, "q" * 30) for path in dict.fromkeys(p[:-1] for p in paths if isinstance(p[-1], str))]
    for path in [*paths, *strange]:
        for value in (..., 3, "x", True, [], {"qqq": 1}) if path in paths else (1,):
            other = changed(document, path, value)
            difference = compare("gateway", other, gateway_refusal(other, tmp_path), BEYOND_THE_GATEWAYS)
            if difference is not None:
                differing.append(f"{path} = {value!r}: {difference}")
            if path in strange:
                assert complaint("gateway", other) is not None, path
    assert differing == []


def test_the_gateways_schema_has_every_key_of_its_page() -> None:
    schema = FILES["gateway"]()["properties"]
    tables = {
        "gateway": schema["gateway"],
        "link": schema["link"],
        "feedback": schema["link"]["properties"]["feedback"]["anyOf"][1],
        "peer": schema["peer"]["items"],
        "record": schema["record"],
    }
    for path, table in tables.items():
        assert set(declared(path, file="gateway")) <= set(table["properties"]), path
    rule = schema["class"]["items"]["properties"]["match"]["items"]
    assert set(declared("match", file="gateway")) == set(rule["properties"])


def test_the_table_of_the_page_on_recordings_is_one_of_a_gateway() -> None:
    page = (REPOSITORY / "docs/howto/replay.md").read_text()
    (shown,) = re.findall(r"^```toml\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    (name, table), *others = tomllib.loads(shown).items()
    own = FILES["gateway"]()["properties"][name]
    assert not others
    assert [error.message for error in jsonschema.Draft202012Validator(own).iter_errors(table)] == []


# --- the command  ---


def test_the_command_prints_a_schema_with_meanings_units_and_defaults() -> None:
    for words in (["schema"], ["schema", "scenario"], ["schema", "gateway"]):
        done = linkweir(*words)
        assert done.returncode == 0
        schema = json.loads(done.stdout)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    link = FILES["scenario"]()["properties"]["link"]["anyOf"][0]["properties"]
    assert "one-way propagation delay" in link["delay"]["description"].lower()
    assert "0s .. 3600s" in link["delay"]["description"]
    assert link["delay"]["default"] == "0s"
    assert linkweir("schema", "sweep").returncode == 2


def test_the_command_writes_a_file_and_says_how_to_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = linkweir("schema", "gateway", "--out", "gateway.schema.json")
    assert done.stdout.endswith("#:schema ./gateway.schema.json\n")
    assert json.loads((tmp_path / "gateway.schema.json").read_text())["title"] == "Linkweir gateway"


def test_every_key_has_a_form() -> None:
    def check(schema: Any, key: str) -> None:
        if isinstance(schema, dict):
            for name, inner in schema.get("properties", {}).items():
                if isinstance(inner, dict) and "description" in inner:
                    assert set(inner) - {"description", "default"}, name
            for inner in schema.values():
                check(inner, key)
        elif isinstance(schema, list):
            for inner in schema:
                check(inner, key)

    for kind in FILES:
        check(FILES[kind](), kind)


TAPLO = shutil.which("taplo") or shutil.which("taplo", path=str(Path(sys.executable).parent)) or "taplo"


EDITOR = (REPOSITORY / "docs/howto/editor.md").read_text()


@pytest.mark.parametrize("where", ["first line", ".taplo.toml"])
def test_the_checker_of_editors_takes_it_as_the_page_says(where: str, tmp_path: Path) -> None:
    first_line, settings = re.findall(r"^```toml\n(.*?)^```", EDITOR, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "scenario.schema.json").write_text(linkweir("schema").stdout)
    text = (SCENARIOS / "geo.toml").read_text()
    if where == "first line":
        text = first_line + text
    else:
        (tmp_path / where).write_text(settings)
    for content, sound in ((text, True), (text.replace("delay =", "dealy ="), False)):
        (tmp_path / "geo.toml").write_text(content)
        words = [TAPLO, "lint", "geo.toml"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == sound, done.stderr


def test_satellites_are_listed_or_in_a_pattern_and_their_links_have_no_delays() -> None:
    document = tomllib.loads((SCENARIOS / "leo-shell.toml").read_text(encoding="utf-8"))
    of_pattern = document["constellation"]
    listed = {key: value for key, value in of_pattern.items() if key not in declared("walker")} | {"tle": "x.tle"}
    ground = {key: value for key, value in listed["ground"].items() if key != "rate"}
    columns = {"capacity": 1, "loss": 2}
    traced = {**ground, "trace": "x.csv", "columns": columns}
    delayed = {**traced, "columns": {**columns, "delay": 3}}
    for constellation, is_sound in [
        (of_pattern, True),
        (listed, True),
        ({**listed, "ground": traced}, True),
        ({**listed, "ground": delayed}, False),
        ({**of_pattern, "tle": "x.tle"}, False),
        ({key: value for key, value in listed.items() if key != "tle"}, False),
    ]:
        found = complaint("scenario", {**document, "constellation": constellation})
        assert (found is None) == is_sound, (constellation, found)
