# SPDX-License-Identifier: BSD-3-Clause
"""The log of packets: against the totals of the run, as pcapng read by a parser of its own, and cut."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command import SMALL, linkweir, strict_json

import linkweir as package
from linkweir import Result, Scenario
from linkweir.commands.pcapng import INTERFACES

LOGGED = 'log = "packets"\n' + SMALL.replace('name = "ef"\n', 'name = "ef"\nlimit = "1p"\n', 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    (folder / "logged.toml").write_text(LOGGED)
    assert linkweir("run", folder / "logged.toml", "--out", folder / "out").returncode == 0
    return folder / "out"


def blocks(data: bytes) -> list[tuple[int, bytes]]:
    """Types and bodies of the blocks of a pcapng file."""
    found, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        found.append((kind, data[at + 8 : at + length - 4]))
        at += length
    return found


def options(data: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while True:
        code, length = struct.unpack_from("<HH", data, at)
        if code == 0:
            assert at + 4 == len(data)
            return found
        found[code] = data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def captured(data: bytes) -> list[dict[str, Any]]:
    """The packets of a capture, with what Wireshark shows of them."""
    (section, header), *rest = blocks(data)
    assert section == 0x0A0D0D0A
    assert struct.unpack_from("<IHHq", header) == (0x1A2B3C4D, 1, 0, -1)
    interfaces: list[str] = []
    found = []
    for kind, body in rest:
        if kind == 1:
            assert struct.unpack_from("<H", body) == (101,)
            own = options(body[8:])
            assert own[9] == b"\x09"
            interfaces.append(own[2].decode())
            continue
        assert kind == 6
        place, high, low, kept, length = struct.unpack_from("<IIIII", body)
        packet = body[20 : 20 + kept]
        words = struct.unpack(">10H", packet[:20])
        assert sum(words) % 0xFFFF == 0, "the header's checksum"
        assert words[0] >> 8 == 0x45
        own = options(body[20 + (kept + 3) // 4 * 4 :])
        found.append(
            {
                "on": interfaces[place],
                "t_ns": high << 32 | low,
                "dscp": words[0] >> 2 & 0x3F,
                "bytes": length,
                "total": words[1],
                "protocol": words[4] & 0xFF,
                "inner": packet[20:],
                "comment": own[1].decode(),
            }
        )
    assert interfaces == list(INTERFACES)
    return found


def test_the_log_agrees_with_the_totals(run: Path) -> None:
    result = Result.load(run)
    rows = result.log.to_pylist()
    for flow in result.rows("flows"):
        count = Counter((row["event"], row["reason"]) for row in rows if row["flow"] == flow["flow"])
        assert count["enqueued", ""] == flow["arrived_pkts"] == count["created", ""]
        assert count["delivered", ""] == flow["delivered_pkts"]
        assert count["dropped", "limit"] == flow["dropped_limit_pkts"]
    in_order = [row["t_ns"] for row in rows if row["event"] != "created"]
    assert in_order == sorted(in_order)
    shown = linkweir("log", run)
    assert f"{len(in_order):>12}" not in shown.stdout
    assert {line.split()[1] for line in shown.stdout.splitlines()} == {*INTERFACES, "created", "dropped:"} - {"dropped"}


def test_a_file_that_exists_is_not_overwritten_unasked(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.pcapng"
    file.write_text("mine")
    done = linkweir("log", run, "--pcapng", file)
    assert done.returncode != 0
    assert "overwrite it with --force" in done.stderr
    assert file.read_text() == "mine"
    assert linkweir("log", run, "--pcapng", file, "--force").returncode == 0
    assert len(captured(file.read_bytes())) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["run.pcapng"]


def test_the_capture_holds_the_packets(run: Path, tmp_path: Path) -> None:
    done = linkweir("log", run, "--pcapng", tmp_path / "run.pcapng")
    assert done.returncode == 0, done.stderr
    found = captured((tmp_path / "run.pcapng").read_bytes())
    rows = [row for row in Result.load(run).log.to_pylist() if row["event"] != "created"]
    assert len(found) == len(rows)
    kinds = {row["flow"]: row["kind"] for row in Result.load(run).rows("flows")}
    dscps = {"ef": 46, "af": 1, "cs0": 0}
    for packet, row in zip(found, rows, strict=True):
        assert (packet["on"], packet["t_ns"], packet["bytes"]) == (row["event"], row["t_ns"], row["size_bytes"])
        assert packet["dscp"] == dscps[row["class"]]
        assert packet["total"] == row["size_bytes"]
        assert packet["comment"].startswith(f"{row['flow']} {row['number']}")
        assert packet["comment"].endswith("dropped: limit") == (row["event"] == "dropped")
        if kinds[row["flow"]] == "tcp":
            assert packet["protocol"] == 6
            # The SYN, of 60 bytes, counts as one; then comes an acknowledgement with nothing in it.
            expected = 1 + (row["number"] - 1) * 1448 if row["number"] else int(row["size_bytes"] == 52)
            assert struct.unpack_from(">HHI", packet["inner"])[2] == expected % 2**32
            assert packet["comment"].count("sent before") == row["retransmission"]
        else:
            assert packet["protocol"] == 17
            assert struct.unpack_from(">HHHH", packet["inner"])[2] == row["size_bytes"] - 20


TRANSFERS = """
duration = "20s"
log = "packets"
[link]
rate = "8Mbit"
delay = "20ms"
[scheduler]
policy = "fifo"
[[class]]
name = "all"
limit = "20p"
[[flow]]
name = "files"
class = "all"
kind = "transfers"
arrivals = { every = "150ms" }
size = { mean = "60kB", distribution = "pareto", shape = 1.3 }
concurrent = 40
[[flow]]
name = "page"
class = "all"
kind = "web"
count = 2
main = "20kB"
objects = 12
object = "8kB"
think = "500ms"
connections = 3
"""


def test_connections_of_applications_are_told_apart(tmp_path: Path) -> None:
    """By number in the log, by port in the capture, where sequence numbers count the bytes of each."""
    (tmp_path / "files.toml").write_text(TRANSFERS)
    assert linkweir("run", tmp_path / "files.toml", "--out", tmp_path / "out").returncode == 0
    result = Result.load(tmp_path / "out")
    rows = [row for row in result.log.to_pylist() if row["event"] != "created"]
    files = [row for row in rows if row["flow"] == "files"]
    opened = list(dict.fromkeys(row["connection"] for row in files))
    assert opened == list(range(1, len(opened) + 1))
    (completions,) = (row for row in result.rows("completions") if row["flow"] == "files")
    assert completions["finished"] > 80
    assert len(opened) == completions["begun"]
    assert max(row["connection"] for row in rows if row["flow"] == "page-1") >= 3

    # Each connection carries what its transfer had, and every segment of it once.
    sizes = Counter(row["size_bytes"] for row in result.transfers.to_pylist() if row["flow"] == "files")
    carried: Counter[int] = Counter()
    segments: dict[int, dict[int, int]] = {}
    for row in files:
        if row["event"] == "delivered":
            segments.setdefault(row["connection"], {})[row["number"]] = row["size_bytes"]
    whole = {number for number, found in segments.items() if sorted(found) == list(range(len(found)))}
    for number in whole:
        carried[sum(size - 52 for segment, size in segments[number].items() if segment)] += 1
    assert not sizes - carried

    done = linkweir("log", tmp_path / "out", "--pcapng", tmp_path / "run.pcapng")
    assert done.returncode == 0, done.stderr
    found = captured((tmp_path / "run.pcapng").read_bytes())
    assert len(found) == len(rows)
    ports: dict[tuple[str, int], set[int]] = {}
    after: dict[tuple[str, int], int] = {}
    for packet, row in zip(found, rows, strict=True):
        key = (row["flow"], row["connection"])
        port, _, sequence = struct.unpack_from(">HHI", packet["inner"])
        ports.setdefault(key, set()).add(port)
        if row["event"] == "enqueued" and not row["retransmission"]:
            assert sequence == after.get(key, 0), row
            is_syn = row["number"] == 0 and row["size_bytes"] == 60
            after[key] = sequence + (1 if is_syn else row["size_bytes"] - 52)
    assert all(len(of) == 1 for of in ports.values())
    for flow in ("files", "page-1", "page-2"):
        own = [of for (name, _), of in ports.items() if name == flow]
        assert len(set.union(*own)) == len(own)


def test_a_log_that_is_cut_says_so(tmp_path: Path) -> None:
    (tmp_path / "cut.toml").write_text("log_rows = 100\n" + LOGGED)
    done = linkweir("run", tmp_path / "cut.toml", "--out", tmp_path / "out")
    note = next(line for line in done.stdout.splitlines() if line.startswith("note: the log of packets was full at "))
    result = Result.load(tmp_path / "out")
    assert result.log.num_rows == 100
    assert result.log_cut_s is not None
    assert result.log["t_ns"].to_pylist()[-1] <= result.log_cut_s * 1e9
    assert note.removeprefix("note: ") in (tmp_path / "out" / "report.html").read_text()
    assert strict_json((tmp_path / "out" / "summary.json").read_text())["notes"] == [note.removeprefix("note: ")]
    assert "was full" in linkweir("log", tmp_path / "out").stderr


def test_a_run_without_a_log_has_none(tmp_path: Path) -> None:
    result = package.run(Scenario.parse(SMALL), out=tmp_path / "out")
    assert result.log.num_rows == 0
    assert "size_bytes" in result.log.column_names
    refused = linkweir("log", tmp_path / "out")
    assert refused.returncode == 2
    assert 'run its scenario with log = "packets"' in refused.stderr
