# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of gateways and `linkweir replay`.

The files of ``data`` are made by the gateway's code in virtual time, in crates/linkweir-gateway/tests/recorded.rs.
Other recordings are written here, as docs/reference/recordings.md says.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from command import linkweir

from linkweir import run
from linkweir.fault import PlanError
from linkweir.replays.paths import compare_paths, nominal_bps
from linkweir.replays.recording import Recording
from linkweir.replays.replay import compare, prepare

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).parent / "data"
COUNTS = DATA / "voyage.lwrec"
"""Of a version that listed no packets unless it was asked to."""
LISTED = DATA / "voyage-listed.lwrec"
PACKETS = DATA / "voyage-packets.lwrec"
PATHS = DATA / "voyage-paths.lwrec"
"""Over two paths: the first fades, the second is dead from 3 s to 6 s and has a longer way afterwards."""
BIN_NS = 10_000_000
MAGIC = b"\x89LWREC\x01\n"
WITH_PATHS = b"\x89LWREC\x02\n"
SIZES = [1, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024, 1152, 1280, 1344, 1408]
SIZES += [1456, 1488, 1520, 1600, 2048]
BURST_BYTES = 20 * 1514
"""What pss sends back to back at the high level, by default."""


def number(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def block(body: bytes) -> bytes:
    return len(body).to_bytes(4, "little") + zlib.crc32(body).to_bytes(4, "little") + body


def head(origin_s: int, classes: Iterable[str], scheduler: str = 'policy = "fifo"') -> bytes:
    listed = "".join(f'[[class]]\nname = "{name}"\nlimit = "100p"\n' for name in classes)
    text = f"origin_unix_ns = {origin_s}000000000\nbin_ns = {BIN_NS}\nsizes_bytes = {SIZES}\npackets = false\n"
    text += f"[link]\noverhead_bytes = 60\nmpu_bytes = 0\n[scheduler]\n{scheduler}\n{listed}"
    return MAGIC + block(b"\x01" + text.encode())


def peer(of: int, name: str, more: str = "") -> bytes:
    return block(b"\x02" + number(of) + f'name = "{name}"\nnominal = "20Mbit"\nfollow = true\n{more}'.encode())


def size_class(size: int) -> int:
    return max(at for at, bound in enumerate(SIZES) if bound <= size)


def cell(class_number: int, pkts: int, size: int, tcp: int = 0, sent: int | None = None, same: bool = True) -> bytes:
    """A cell of packets of one size, of which so many were sent and the rest dropped."""
    sent = pkts if sent is None else sent
    at = size_class(size)
    mask = bool(sent) | 2 * (sent < pkts) | 4 * bool(tcp) | 8
    found = bytes([1 | 4 * same | class_number << 3]) + (b"" if same else number(1)) + bytes([mask, at])
    found += number(pkts) + number(pkts * (size - SIZES[at]))
    if tcp:
        found += number(tcp)
    if sent:
        found += number(sent) + number(sent * size)
    if sent < pkts:
        found += number(pkts - sent) + number((pkts - sent) * size)
    return found


def capacity(bps: int) -> bytes:
    """From the beginning of the bin."""
    return bytes([2 | 4]) + number(BIN_NS) + number(bps)


def counts(first_bin: int, entries: bytes) -> bytes:
    return block(b"\x03" + number(first_bin) + entries)


def simple(tmp_path: Path, extra: bytes = b"") -> Path:
    """Three seconds of 5 packets of 1500 bytes each bin, of TCP, of which 4 are sent."""
    parts = [head(1_769_824_800, ["all"]), peer(0, "ship")]
    for second in range(3):
        entries = capacity(5_000_000) if second == 0 else b""
        for at in range(100):
            entries += (b"\x00\x01" if at else b"") + cell(0, 5, 1500, tcp=5, sent=4)
        parts.append(counts(100 * second, entries))
    path = tmp_path / "simple.lwrec"
    path.write_bytes(b"".join(parts) + extra)
    return path


def test_a_recording_written_by_the_book_is_read(tmp_path: Path) -> None:
    recording = Recording.load([simple(tmp_path)])
    assert f"{recording.began:%Y-%m-%dT%H:%M:%S}" == "2026-01-31T02:00:00"
    sums = recording.peers["ship"]
    assert (sums.arrived_pkts, sums.arrived_bytes, sums.tcp_pkts) == (1500, 1500 * 1500, 1500)
    assert (sums.sent_pkts, sums.sent_bytes) == (1200, 1200 * 1500)
    assert (sums.dropped_pkts, sums.dropped_bytes) == (300, 300 * 1500)
    part = recording.part()
    assert (part.duration_s, part.classes, part.capacity) == (3.0, ["all"], [(0.0, 5_000_000)])
    assert [row[0].arrived_pkts for row in part.sums(1.0)] == [500, 500, 500]


def path_state(path: int, bps: int, delay_ns: int) -> bytes:
    """Of a path from the beginning of the bin."""
    return bytes([2 | 4 | (path + 1) << 3]) + number(BIN_NS) + number(bps) + number(delay_ns)


def carried(class_number: int, path: int, pkts: int, size: int) -> bytes:
    """What a path sent of a class."""
    return bytes([1 | 4 | class_number << 3, 31 << 3 | path]) + number(pkts) + number(pkts * size)


OF_THE_PATHS = """paths = ["starlink", "lte"]
[[path]]
name = "starlink"
nominal = "4Mbit"
follow = true
cost = 1
[[path]]
name = "lte"
nominal = "2Mbit"
follow = true
cost = 10
"""


def named_only(seconds: int, origin_s: int = 1_769_824_800) -> bytes:
    """As `over_paths`, by a gateway of before 2026-12: it names the paths, and has the capacity of them all."""
    entries = capacity(6_000_000)
    for at in range(100 * seconds):
        entries += (b"\x00\x01" if at else b"") + cell(0, 5, 1500)
    return head(origin_s, ["all"]) + peer(0, "ship", 'paths = ["starlink", "lte"]\n') + counts(0, entries)


def over_paths(lte: Iterable[tuple[int, int, int]] = ((0, 2_000_000, 50_000_000),), uses: str = '"spill"') -> bytes:
    """Three seconds of 5 packets of 1500 bytes each bin, 6 Mbit/s, over starlink with 4 Mbit/s and lte.

    Args:
        lte: what lte is: bin, bit/s and ns.
        uses: how the class uses the paths.
    """
    begin = head(1_769_824_800, ["all"])
    text = begin[len(MAGIC) + 8 :] + f'paths = {uses}\nreorder = "none"\nresend = false\n'.encode()
    changes = {at: path_state(1, bps, delay_ns) for at, bps, delay_ns in lte}
    entries = path_state(0, 4_000_000, 20_000_000)
    for at in range(300):
        entries += b"\x00\x01" if at else b""
        entries += changes.get(at, b"") + cell(0, 5, 1500) + carried(0, 0, 3, 1500) + carried(0, 1, 2, 1500)
    return WITH_PATHS + block(text) + peer(0, "ship", OF_THE_PATHS) + counts(0, entries)


def test_paths_written_by_the_book_are_read_and_replayed(tmp_path: Path) -> None:
    part = Recording("paths", [over_paths([(0, 2_000_000, 50_000_000), (100, 1_000_000, 30_000_000)])]).part()
    assert part.paths == ["starlink", "lte"]
    starlink, lte = part.recorded_paths
    assert starlink.states == ((0.0, 4_000_000, 0.02),)
    assert lte.states == ((0.0, 2_000_000, 0.05), (1.0, 1_000_000, 0.03))
    assert lte.settings["cost"] == 10
    assert part.carried == {"starlink": {"all": (900, 900 * 1500)}, "lte": {"all": (600, 600 * 1500)}}
    made = prepare(part, tmp_path)
    assert [link["cost"] for link in made.keys["link"]] == [1, 10]
    result = run(made.scenario)
    now = {one.path: one.replayed_bytes for one in compare_paths(part, result)}
    # 4 Mbit/s for 3 s; then what one link can have of 2 Mbit/s for 1 s and 1 Mbit/s for 2 s, but for the first 10 ms.
    assert now["starlink"] == pytest.approx(1_500_000, abs=1500)
    assert now["lte"] == pytest.approx(500_000, abs=4500)


def test_paths_are_those_of_the_file_in_which_a_replay_begins(tmp_path: Path) -> None:
    """The gateway was upgraded after 2 s: until then nothing is known of each path."""
    upgraded = over_paths().replace(b"origin_unix_ns = 1769824800", b"origin_unix_ns = 1769824802")
    # Another text needs another checksum.
    length = int.from_bytes(upgraded[8:12], "little")
    upgraded = WITH_PATHS + block(upgraded[16 : 16 + length]) + upgraded[16 + length :]
    recording = Recording("upgraded", [named_only(2), upgraded])
    assert recording.part().recorded_paths == []
    with pytest.raises(PlanError, match="replay it over one link, or --from 2s, from when on it has each"):
        prepare(recording.part(), tmp_path)
    part = recording.part(start="2s")
    assert [path.states for path in part.recorded_paths] == [((0.0, 4_000_000, 0.02),), ((0.0, 2_000_000, 0.05),)]
    assert [link["cost"] for link in prepare(part, tmp_path).keys["link"]] == [1, 10]
    with pytest.raises(PlanError, match=r"over one link$"):
        prepare(recording.part(stop="1s"), tmp_path)


def test_a_path_of_which_nothing_is_known_is_not_held_to_be_dead(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="give --rate or --trace"):
        prepare(Recording("unknown", [over_paths([])]).part(), tmp_path)


def test_a_replay_over_paths_gives_the_bytes_of_each_path_and_class(tmp_path: Path) -> None:
    part = Recording.load([PATHS]).part()
    made = prepare(part, tmp_path)
    result = run(made.scenario)
    for found in compare(made, result):
        assert found.intervals >= 11
        assert found.worst <= 0.001, found
        assert found.replayed_loss == pytest.approx(found.recorded_loss, abs=0.001)
    of_paths = compare_paths(part, result)
    assert len(of_paths) == 6
    for one in of_paths:
        assert one.recorded_bytes > 100_000
        assert one.replayed_bytes == pytest.approx(one.recorded_bytes, rel=0.001), one


def test_a_replay_says_what_a_path_was_worth(tmp_path: Path) -> None:
    part = Recording.load([PATHS]).part()

    def replayed(name: str, **words: object) -> dict[tuple[str, str], int | None]:
        folder = tmp_path / name
        folder.mkdir()
        made = prepare(part, folder, **words)  # type: ignore[arg-type]
        result = run(made.scenario)
        assert {one.name for one in compare(made, result)} == set(part.classes)
        return {(one.path, one.name): one.replayed_bytes for one in compare_paths(part, result)}

    alone = replayed("alone", without=["lte"])
    assert {of for of, now in alone.items() if now is None} == {("lte", name) for name in part.classes}
    # 12 Mbit/s for 5.004 s, 5 for 3.996 s and 11 for 3 s, all of which are used.
    assert sum(now or 0 for now in alone.values()) == pytest.approx(14_128_500, rel=0.001)
    dear = replayed("dear", changes={("class", "voice", "paths"): ["starlink"], ("link", "lte", "rate"): "1Mbit"})
    assert ("lte", "voice") not in {of for of, now in dear.items() if now}
    assert sum(dear[of] or 0 for of in dear if of[0] == "lte") == pytest.approx(12 * 125_000, rel=0.001)
    strict = replayed("strict", policy="strict")
    assert (strict["starlink", "rest"] or 0) < (replayed("pss", policy="pss")["starlink", "rest"] or 0)
    (tmp_path / "one").mkdir()
    one = prepare(part, tmp_path / "one", rate="10Mbit")
    assert "ship had several paths, starlink, lte; here it has one link" in one.notes
    assert one.keys["link"]["rate"] == "10Mbit"
    for words, said in [
        ({"without": ["lt"]}, "--without lt: ship had no such path; it had starlink, lte; did you mean lte?"),
        ({"without": ["lte", "starlink"]}, "no path to ship is left"),
        ({"without": ["lte"], "rate": "1Mbit"}, "give one of them"),
        ({"policy": "drr"}, "--policy drr: cannot serve a bond"),
    ]:
        with pytest.raises(PlanError, match=said):
            prepare(part, tmp_path, **words)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="it had one link"):
        prepare(Recording.load([COUNTS]).part(), tmp_path, without=["lte"])


def test_a_path_that_was_dead_all_the_time_is_dead_in_the_replay(tmp_path: Path) -> None:
    part = Recording("dead", [over_paths([(0, 0, 0)])]).part()
    made = prepare(part, tmp_path)
    assert "lte carried nothing in this time, and does not here" in made.notes
    now = {one.path: one.replayed_bytes for one in compare_paths(part, run(made.scenario))}
    assert now["lte"] == 0
    # A class that lists paths of which none is left uses the best one, as in a gateway.
    listed = Recording("listed", [over_paths(uses='["lte"]')]).part()
    made = prepare(listed, tmp_path, without=["lte"])
    assert made.keys["bond"][0]["class"][0]["paths"] == "best"
    assert prepare(listed, tmp_path).keys["bond"][0]["class"][0]["paths"] == ["lte"]


def test_a_nominal_rate_that_is_not_recorded_is_assumed_and_said(tmp_path: Path) -> None:
    """The same one for a link, for a path, and for the policy that gets the sum."""
    begin = head(1_769_824_800, ["all"])
    one = peer(0, "ship")
    text = one[8:].replace(b'nominal = "20Mbit"\n', b"")
    entries = b"".join((b"\x00\x01" if at else capacity(5_000_000)) + cell(0, 5, 1500, sent=4) for at in range(100))
    part = Recording("link", [begin + block(text) + counts(0, entries)]).part()
    made = prepare(part, tmp_path)
    assert made.keys["link"]["nominal"] == "20Mbit"
    assert "the recording has no nominal rate of the link to ship; 20Mbit is assumed" in made.notes
    assert not any("assumed" in note for note in prepare(part, tmp_path, rate="5Mbit").notes)
    without = peer(0, "ship", OF_THE_PATHS.replace('nominal = "2Mbit"\n', ""))
    part = Recording("path", [over_paths().replace(peer(0, "ship", OF_THE_PATHS), without)]).part()
    assert nominal_bps(part.recorded_paths) == 24e6
    made = prepare(part, tmp_path)
    assert [link["nominal"] for link in made.keys["link"]] == ["4Mbit", "20Mbit"]
    assert "lte: the recording has no nominal rate; 20Mbit is assumed" in made.notes
    strange = peer(0, "ship", OF_THE_PATHS.replace('nominal = "2Mbit"', "nominal = 5"))
    part = Recording("strange", [over_paths().replace(peer(0, "ship", OF_THE_PATHS), strange)]).part()
    with pytest.raises(PlanError, match="the recording has nominal = 5, which is no rate"):
        prepare(part, tmp_path, policy="strict")


@pytest.mark.parametrize("name", [r"lt\u001b[2Je", r"lte\nlinkweir: all is well", r"lt\u009be"])
def test_names_that_control_a_terminal_are_refused_and_escaped(name: str, tmp_path: Path) -> None:
    """Those of paths, classes, peers and the device."""
    good = over_paths()
    length = int.from_bytes(good[8:12], "little")
    settings, rest = good[16 : 16 + length], good[16 + length :]
    of_peer = peer(0, "ship", OF_THE_PATHS)
    files = [
        good.replace(of_peer, peer(0, "ship", OF_THE_PATHS.replace("lte", name))),
        good.replace(of_peer, peer(0, name, OF_THE_PATHS)),
        WITH_PATHS + block(settings.replace(b'name = "all"', f'name = "{name}"'.encode())) + rest,
        WITH_PATHS + block(settings.replace(b"packets = false", f'device = "{name}"'.encode())) + rest,
    ]
    for content in files:
        path = tmp_path / "strange.lwrec"
        path.write_bytes(content)
        done = linkweir("replay", path, "--out", tmp_path / "out")
        assert done.returncode == 2
        assert "no gateway writes names with control characters" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "\x1b" not in done.stderr
        assert "\x9b" not in done.stderr


def test_closed_sources_react_to_the_paths(tmp_path: Path) -> None:
    part = Recording.load([PATHS]).part()
    made = prepare(part, tmp_path, closed=True)
    assert made.closed == ("rest",)
    assert any("round trip as recorded of each path" in note for note in made.notes)
    by_name = {one.name: one for one in compare(made, run(made.scenario))}
    # It gets 7.5 % less: connections of CUBIC do not fill the paths at all times, as the recorded packets did.
    assert by_name["rest"].replayed_bps == pytest.approx(by_name["rest"].recorded_bps, rel=0.1)


def test_a_later_version_is_refused_by_name(tmp_path: Path) -> None:
    later = tmp_path / "later.lwrec"
    later.write_bytes(b"\x89LWREC\x03\n" + over_paths()[len(MAGIC) :])
    done = linkweir("replay", later, "--out", tmp_path / "out")
    assert done.returncode == 2
    said = "is of version 3 of the format, and this Linkweir reads versions up to 2; read it with a newer one"
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize("seed", range(30))
def test_changed_bytes_about_paths_never_end_in_a_traceback(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    content = bytearray(over_paths([(0, 2_000_000, 50_000_000), (100, 0, 0), (200, 1_000_000, 9_000_000)]))
    at = len(MAGIC)
    found = []
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "little")
        found.append((at, length))
        at += 8 + length
    for _ in range(draw.randint(1, 4)):
        content[draw.randrange(len(content))] = draw.randrange(256)
    for at, length in found:  # with sound checksums, so that what was changed is read
        content[at : at + 4] = length.to_bytes(4, "little")
        body = content[at + 8 : at + 8 + length]
        content[at + 4 : at + 8] = zlib.crc32(body).to_bytes(4, "little")
    try:
        made = prepare(Recording("changed", [bytes(content)]).part(), tmp_path)
        compare_paths(made.part, run(made.scenario))
    except ValueError:
        pass  # PlanError and ScenarioError


@pytest.mark.parametrize(
    "more",
    [
        'paths = ["a", "a"]\n',
        'paths = ["", "lte"]\n',
        "paths = [1, 2]\n",
        'paths = ["ship", "lte"]\npath = 3\n',
        'paths = ["starlink", "lte"]\npath = [3, { name = "lte", nominal = 5, cost = "x", follow = "no" }]\n',
        f"paths = {[str(at) for at in range(9)]}\n",
    ],
)
def test_paths_of_strangers_are_replayed_or_refused(more: str, tmp_path: Path) -> None:
    content = over_paths().replace(peer(0, "ship", OF_THE_PATHS), peer(0, "ship", more))
    try:
        made = prepare(Recording("strange", [content]).part(), tmp_path)
        compare_paths(made.part, run(made.scenario))
    except ValueError as fault:
        assert str(fault)  # PlanError and ScenarioError


@pytest.mark.parametrize(("file", "seconds"), [(PACKETS, 18), (LISTED, 12)])
def test_single_packets_give_the_same_bytes_in_every_second(file: Path, seconds: int, tmp_path: Path) -> None:
    made = prepare(Recording.load([file]).part(), tmp_path)
    for found in compare(made, run(made.scenario)):
        assert found.intervals >= seconds - 1
        # The simulator and the gateway have the same scheduler, queues and pace: only times below 1 ns differ.
        assert found.worst <= 0.001, found
        assert found.replayed_loss == pytest.approx(found.recorded_loss, abs=0.001)


def test_counts_give_the_same_rates_to_within_a_burst(tmp_path: Path) -> None:
    part = Recording.load([COUNTS]).part()
    made = prepare(part, tmp_path)
    result = run(made.scenario)
    for found in compare(made, result):
        assert found.replayed_bps == pytest.approx(found.recorded_bps, rel=0.001)
        assert found.replayed_loss == pytest.approx(found.recorded_loss, abs=0.005)
        if found.name == "voice":
            assert found.worst <= 0.01
    # The order of sizes within a bin is not recorded. So a burst of pss may fall into the next second.
    recorded = part.sums(1.0)
    for at, name in enumerate(part.classes):
        rows = [row for row in result.series.to_pylist() if row["class"] == name]
        for before, now in zip(recorded, rows, strict=True):
            assert abs(before[at].sent_bytes - now["sent_bytes"]) <= BURST_BYTES + 1500, (name, now["t_s"])
            assert before[at].arrived_bytes == now["arrived_bytes"]


def test_another_policy_and_link_change_what_is_sent(tmp_path: Path) -> None:
    part = Recording.load([COUNTS]).part()
    found = {}
    for name, changes in {
        "strict": {"policy": "strict"},
        "narrow": {"rate": "1Mbit", "policy": "strict"},
        "wide": {"rate": "100Mbit"},
        "shares": {"changes": {("class", "video", "rate"): "1Mbit"}},
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        made = prepare(part, folder, **changes)
        found[name] = {one.name: one.replayed_bps for one in compare(made, run(made.scenario))}
    assert found["strict"]["video"] > 5e6 > found["shares"]["video"]
    assert found["narrow"]["voice"] == pytest.approx(1e6, rel=0.01)
    offered = {name: total.arrived_bytes * 8 / 40 for name, total in zip(part.classes, part.sums(40.0)[0], strict=True)}
    assert found["wide"] == pytest.approx(offered, rel=0.001)


def test_closed_sources_transfer_what_was_sent(tmp_path: Path) -> None:
    part = Recording.load([COUNTS]).part()
    made = prepare(part, tmp_path, closed=True)
    assert made.closed == ("rest",)
    flows = [flow for flow in made.keys["flow"] if flow["class"] == "rest"]
    payload = sum(int(flow["bytes"].rstrip("B")) for flow in flows)
    sent = part.sums(40.0)[0][2].sent_bytes
    # A segment of 1388 bytes is 1500 with its headers; each transfer is rounded to a byte.
    assert payload == pytest.approx(sent * 1388 / 1500, abs=len(flows))
    assert any("sent by TCP" in note for note in made.notes)
    by_name = {one.name: one for one in compare(made, run(made.scenario))}
    assert by_name["voice"].replayed_bps == pytest.approx(by_name["voice"].recorded_bps, rel=0.01)
    assert by_name["rest"].replayed_bps == pytest.approx(by_name["rest"].recorded_bps, rel=0.2)


def test_times_cut_a_part(tmp_path: Path) -> None:
    recording = Recording.load([COUNTS])
    part = recording.part(start="10s", stop="2026-01-31T02:00:30Z")
    assert (part.duration_s, f"{part.began:%H:%M:%S}") == (20.0, "02:00:10")
    assert [rate for _, rate in part.capacity] == [20_000_000, 8_000_000, 16_000_000]
    assert part.capacity[1][0] == pytest.approx(5.004)
    whole = recording.part().sums(1.0)
    assert part.sums(1.0) == whole[10:30]
    assert any("empty queues" in note for note in part.notes())
    for words in ({"start": "41s"}, {"start": "3s", "stop": "2s"}, {"start": "soon"}, {"peer": "boat"}):
        with pytest.raises(PlanError):
            recording.part(**words)


def test_several_peers_runs_and_damages_are_named(tmp_path: Path) -> None:
    entries = cell(0, 5, 1500) + cell(0, 7, 100, same=False)
    later = head(1_769_824_900, ["all"], 'policy = "strict"') + peer(0, "ship") + peer(1, "boat") + counts(0, entries)
    path = simple(tmp_path, later + counts(2, cell(0, 1, 100))[:-3])
    recording = Recording.load([path])
    assert list(recording.peers) == ["boat", "ship"]
    with pytest.raises(PlanError, match="choose one with --peer: boat, ship"):
        recording.part()
    notes = list(recording.part("ship").notes())
    assert any("settings changed after 100 s" in note for note in notes)
    assert any("damaged" in note for note in notes)
    assert recording.part("boat").duration_s == pytest.approx(100.01)


def test_damage_inside_a_recording_says_first_which_time_can_be_read(tmp_path: Path) -> None:
    path = simple(tmp_path)
    content = bytearray(path.read_bytes())
    at = 2 * len(content) // 3 - 100  # in the second of three seconds
    content[at : at + 200] = bytes(200)
    path.write_bytes(content)
    recording = Recording.load([path])
    assert recording.damage is not None
    assert re.fullmatch(
        r"only 02:00:00-02:00:0[12] UTC of it can be read: \d+ bytes are damaged or incomplete", recording.damage
    )
    done = linkweir("replay", path, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"linkweir: {path}: {recording.damage}\n")
    assert recording.damage in list(recording.part().notes())


def test_a_file_that_was_just_begun_spoils_no_folder(tmp_path: Path) -> None:
    whole = simple(tmp_path).read_bytes()
    for name, content in {"begun": b"", "cut": MAGIC[:5], "lone": MAGIC}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "lw0-1.lwrec").write_bytes(whole)
        (folder / "lw0-2.lwrec").write_bytes(content)
        assert Recording.load([folder]).peers["ship"].arrived_pkts == 1500


def test_a_file_given_by_itself_and_in_its_folder_counts_once(tmp_path: Path) -> None:
    path = simple(tmp_path)
    assert Recording.load([tmp_path, path, path]).peers["ship"].arrived_pkts == 1500


def test_recordings_of_two_gateways_are_not_read_as_one(tmp_path: Path) -> None:
    for device, origin_s in (("lw0", 1_769_824_800), ("lw1", 1_769_824_801)):
        begin = head(origin_s, ["all"], f'policy = "fifo"\n[extra]\ndevice = "{device}"')
        begin = begin.replace(b"[link]", f'device = "{device}"\n[link]'.encode())
        text = begin[len(MAGIC) + 8 :]
        content = MAGIC + block(text) + peer(0, "ship") + counts(0, cell(0, 5, 1500))
        (tmp_path / f"{device}-1.lwrec").write_bytes(content)
    with pytest.raises(PlanError, match="of lw0 and lw1; give the files of one"):
        Recording.load([tmp_path])
    assert Recording.load([tmp_path / "lw1-1.lwrec"]).part().classes == ["all"]


def test_flows_that_a_gateway_kept_apart_share_a_queue_and_a_note_says_so(tmp_path: Path) -> None:
    entries = b"".join((b"\x00\x01" if at else capacity(5_000_000)) + cell(0, 5, 1500, sent=4) for at in range(100))
    begin = head(1_769_824_800, ["all"])
    text = begin[len(MAGIC) + 8 :] + b'flows = "fq_codel"\n'
    content = MAGIC + block(text) + peer(0, "ship") + counts(0, entries)
    made = prepare(Recording("flows", [content]).part(), tmp_path)
    assert "flows" not in made.keys["class"][0]
    assert any("all: the gateway kept its flows apart (fq_codel)" in note for note in made.notes)


def test_a_peer_with_several_paths_is_replayed_over_one_link_only_if_that_is_asked_for(tmp_path: Path) -> None:
    entries = b"".join((b"\x00\x01" if at else capacity(5_000_000)) + cell(0, 5, 1500, sent=4) for at in range(100))
    of_ship = peer(0, "ship", 'paths = ["starlink", "lte"]\n')
    part = Recording("paths", [head(1_769_824_800, ["all"]) + of_ship + counts(0, entries)]).part()
    assert part.paths == ["starlink", "lte"]
    with pytest.raises(PlanError, match=r"ship had several paths, starlink, lte, of which .* give --rate or --trace"):
        prepare(part, tmp_path)
    with pytest.raises(PlanError, match="of which this recording has the sum; give --rate or --trace"):
        prepare(part, tmp_path, without=["lte"])
    made = prepare(part, tmp_path, rate="5Mbit")
    assert made.keys["link"]["rate"] == "5Mbit"
    assert "ship had several paths, starlink, lte; here it has one link" in made.notes
    # Other peers, and what a stranger writes there, are as before.
    for more in ("", "paths = 3\n"):
        other = Recording("one", [head(1_769_824_800, ["all"]) + peer(0, "ship", more) + counts(0, entries)]).part()
        assert prepare(other, tmp_path).keys["link"]["rate"] == "5000000bit"


def test_a_file_that_states_the_capacity_is_replayed_by_itself(tmp_path: Path) -> None:
    begin = head(1_769_824_800, ["all"]) + peer(0, "ship")
    second = b"".join((b"\x00\x01" if at else b"") + cell(0, 5, 1500, sent=4) for at in range(100))
    first = begin + counts(0, capacity(5_000_000) + second)
    stated = begin + counts(100, capacity(5_000_000)) + counts(100, second)
    made = prepare(Recording("stated", [stated]).part(), tmp_path)
    assert made.keys["link"]["rate"] == "5000000bit"
    assert made.part.duration_s == pytest.approx(1.0)
    # Together with the file before it, nothing changes.
    assert Recording("both", [first, stated]).part().capacity == [(0.0, 5_000_000)]
    # As older gateways wrote it.
    older = Recording("older", [begin + counts(100, second)]).part()
    with pytest.raises(PlanError, match="does not say what the link to ship carried; give --rate"):
        prepare(older, tmp_path)
    assert prepare(older, tmp_path, rate="5Mbit").keys["link"]["rate"] == "5Mbit"


def test_files_that_are_no_recordings_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.lwrec"
    for content in (b"", b"t_s,bytes\n", MAGIC, MAGIC + b"\x00" * 100, head(1, ["all"])):
        other.write_bytes(content)
        done = linkweir("replay", other, "--out", tmp_path / "out")
        assert done.returncode == 2, content
        assert done.stderr.startswith(f"linkweir: {other}: "), done.stderr
        assert not (tmp_path / "out").exists()
    assert linkweir("replay", tmp_path / "none").returncode in (1, 2)


@pytest.mark.parametrize("seed", range(20))
def test_changed_bytes_never_end_in_a_traceback(tmp_path: Path, seed: int) -> None:
    content = bytearray(simple(tmp_path).read_bytes())
    draw = random.Random(seed)
    body_at = content.index(b"\x03", 400)
    for _ in range(draw.randint(1, 4)):
        content[draw.randrange(len(content))] = draw.randrange(256)
    if draw.random() < 0.5:  # with a sound checksum again
        length = int.from_bytes(content[body_at - 8 : body_at - 4], "little")
        content[body_at - 4 : body_at] = zlib.crc32(content[body_at : body_at + length]).to_bytes(4, "little")
    try:
        made = prepare(Recording("changed", [bytes(content)]).part(), tmp_path)
        run(made.scenario)
    except ValueError:
        pass  # PlanError and ScenarioError


@pytest.mark.slow
def test_the_command_shows_both_and_can_be_repeated(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = linkweir("replay", COUNTS, "--out", out, "--set", "class.video.memory=1s")
    assert done.returncode == 0, done.stderr
    assert "recorded towards ship from 2026-01-31 02:00:00 UTC, 40 s" in done.stdout
    assert "open-loop" in done.stdout
    assert "rest had TCP" in done.stdout
    again = linkweir("rerun", out)
    assert again.returncode == 0, again.stdout
    assert linkweir("compare", out / "scenario.toml", "--policies", "pss,drr", "--out", tmp_path / "c").returncode == 0
    done = linkweir("replay", COUNTS, "--out", tmp_path / "closed", "--closed", "--policy", "drr", "--json")
    found = json.loads(done.stdout)
    assert {one["name"] for one in found["recorded"]} == {"voice", "video", "rest"}
    for words, what in [
        (["--policy", "dr"], "did you mean drr?"),
        (["--set", "class.vido.memory=1s"], "did you mean video?"),
        (["--set", "class.video.memory=1"], "--set changes this"),
        (["--rate", "fast"], "--rate"),
        (["--rate", "1Mbit", "--trace", "x"], "exclude each other"),
    ]:
        done = linkweir("replay", COUNTS, "--out", tmp_path / "bad", *words)
        assert done.returncode == 2, words
        assert what in done.stderr, done.stderr


def packet(class_number: int, after_ns: int, size: int) -> bytes:
    """A packet so long after the one before."""
    return bytes([3 | 4 | class_number << 3]) + number(after_ns) + number(size << 1)


def second_of_packets(draw: random.Random) -> tuple[bytes, int]:
    """The entries of a second in which each packet is listed, and how many they are."""
    entries, packets, before_ns = b"", 0, 0
    for at in range(100):
        loads = [(0, 250)] * 10 + [(1, 1500)] * 5 + [(2, 1476)] * draw.randint(9, 13)
        draw.shuffle(loads)
        entries += b"\x00\x01" if at else b""
        for place, (of, size) in enumerate(loads):
            at_ns = BIN_NS * at + BIN_NS * place // len(loads)
            entries += packet(of, at_ns - before_ns, size)
            before_ns = at_ns
        packets += len(loads)
    return entries, packets


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "0bit"], "Invalid value for --rate: 0bit: must be above 0"),
        (["--rate", "900Gbit"], "--rate 900Gbit: must be 0bit .. 400Gbit"),
        (["--rate", "1bit"], "--rate 1bit: must be 1kbit .. 400Gbit"),
        (["--rtt", "-3ms", "--closed"], "Invalid value for --rtt: -3ms: must be 0s .. 7200s"),
        (["--rtt", "3h"], "Invalid value for --rtt: 3h: must be 0s .. 7200s"),
        (["--trace", "gone.csv"], "--trace gone.csv: "),
    ],
)
def test_an_option_with_a_wrong_value_is_named(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = linkweir("replay", PACKETS, *arguments, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert not (tmp_path / "run").exists()


def test_keys_describe_the_trace_of_another_link(tmp_path: Path) -> None:
    trace = tmp_path / "mine.csv"
    trace.write_text("0;2\n1;4\n2;2\n")
    words = ["replay", simple(tmp_path), "--trace", trace, "--json"]
    without = linkweir(*words, "--out", tmp_path / "without")
    assert without.returncode == 2
    assert "has no header" in without.stderr
    keys = ["--trace-key", 'columns={ t = 1, capacity = { column = 2, unit = "Mbit" } }', "--trace-key", "end=loop"]
    done = linkweir(*words, *keys, "--out", tmp_path / "told")
    assert done.returncode == 0, done.stderr
    link = tomllib.loads((tmp_path / "told/scenario.toml").read_text())["link"]
    assert link["columns"]["capacity"] == {"column": 2, "unit": "Mbit"}
    assert link["end"] == "loop"
    alone = linkweir("replay", tmp_path / "simple.lwrec", *keys, "--out", tmp_path / "alone")
    assert alone.returncode == 2
    assert "give --trace, too" in " ".join(alone.stderr.replace("│", " ").split())


@pytest.mark.slow
@pytest.mark.parametrize("listed", [False, True])
def test_an_hour_at_20_mbit_takes_less_than_20_s(listed: bool, tmp_path: Path) -> None:
    parts = [
        head(1_769_824_800, ["voice", "video", "rest"], 'policy = "pss"'),
        peer(0, "ship"),
    ]
    draw = random.Random(1)
    packets = 0
    one_second, its_packets = second_of_packets(draw)
    for second in range(3600):
        entries = capacity(20_000_000) if second == 0 else b""
        if listed:
            parts.append(counts(100 * second, entries + one_second))
            packets += its_packets
            continue
        for at in range(100):
            # 2 + 6 + 13 Mbit/s, a little more than the link carries.
            loads = [(10, 250), (5, 1500), (draw.randint(9, 13), 1476)]
            packets += sum(count for count, _ in loads)
            entries += b"\x00\x01" if at else b""
            entries += b"".join(cell(number, *load) for number, load in enumerate(loads))
        parts.append(counts(100 * second, entries))
    path = tmp_path / "hour.lwrec"
    path.write_bytes(b"".join(parts))
    assert packets > 6_000_000
    # Time of the processor, because other tests run on this machine. All of it is one thread.
    begun_s = time.process_time()
    recording = Recording.load([path])
    made = prepare(recording.part(), tmp_path)
    found = compare(made, run(made.scenario, out=tmp_path / "out"))
    took_s = time.process_time() - begun_s
    assert recording.damaged_bytes == 0
    assert len(found) == 3
    print(f"{packets} packets, {path.stat().st_size / 1e6:.1f} MB, {took_s:.1f} s")
    assert took_s < 20


def test_a_scenario_may_name_a_recording(tmp_path: Path) -> None:
    simple(tmp_path)
    text = 'duration = "3s"\n[link]\nrate = "8Mbit"\n[scheduler]\npolicy = "fifo"\n[[class]]\nname = "all"\n[[flow]]\n'
    text += 'class = "all"\nkind = "replay"\nfile = "simple.lwrec"\n'
    file = tmp_path / "scenario.toml"
    for keys, what in [
        ("", 'a recording has several classes, so write only = "CLASS"'),
        ('only = "rest"', "has no class rest; it has all"),
        ('only = "all"\nlengths = "frame"', "a recording has the bytes on the link"),
        ('only = "all"', ""),
    ]:
        file.write_text(text + keys)
        done = linkweir("check", file)
        assert (done.returncode, what in done.stderr) == (0 if not what else 2, True), done.stderr
    # 5 packets of 1500 bytes each 10 ms: 6 Mbit/s.
    row = run(file).classes.to_pylist()[0]
    assert (row["arrived_pkts"], row["rate_bps"]) == (1500, pytest.approx(6e6, rel=0.01))
