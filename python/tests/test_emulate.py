# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir emulate`: packets of this machine's kernel through real devices, and what stays when they end.

Expected counts are by hand, from the scenario's keys; times are only bounded from below, by what the link can carry.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import COMMAND, SCENARIOS, linkweir, read_terminal
from processes import wait_until

from linkweir.deploy.matching import Sorting
from linkweir.emulation.conveyor import Conveyor
from linkweir.emulation.ends import FAR, FAR6, NEAR, Ends, EndsError
from linkweir.emulation.settings import Front, Way, again, other_numbers, way_of
from linkweir.emulation.sorter import Sorter, ecn, header_of, marked

MOST_S = 300.0
"""Bounds every process here; only a defect, or a machine that does nothing else for minutes, takes that long."""
OUTAGE = 'rate = { steps = [["0s", "0bit"], ["12s", "10Mbit"]] }\nnominal = "10Mbit"'
MAHIMAHI = ("--trace-key", "trace_format=mahimahi")  # two lines could be anything


@functools.cache
def lack() -> str | None:
    """Why nothing can be emulated here."""
    try:
        Ends._check()
    except EndsError as error:
        return str(error)
    tried = subprocess.run(["unshare", "-rnmpf", "true"], capture_output=True, text=True, check=False)
    return tried.stderr if tried.returncode else None


def needs_namespaces() -> None:
    """Skips a test that runs a command; headers, refusals and virtual time are tested on every machine."""
    if lack() is not None:
        pytest.skip(f"NOT EMULATED: {lack()}")


def scenario(folder: Path, **changes: str) -> Path:
    """A fast link of 10 ms each way; changes are whole tables."""
    tables = {
        "link": 'rate = "100Mbit"\ndelay = "10ms"',
        "scheduler": 'policy = "fifo"',
        "class": 'name = "all"',
        **changes,
    }
    path = folder / "link.toml"
    heads = {"class": "[[class]]"}
    path.write_text("".join(f"{heads.get(name, f'[{name}]')}\n{keys}\n" for name, keys in tables.items()))
    return path


def emulate(
    folder: Path, *words: object, before: tuple[str, ...] = (), code: int = 0
) -> tuple[str, str, dict[str, Any]]:
    """What an emulation prints, and its report."""
    needs_namespaces()
    report = folder / "report.json"
    command = [*before, *COMMAND, "emulate", "--report", str(report), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_S, check=False)
    assert done.returncode == code, done
    return done.stdout, done.stderr, json.loads(report.read_text())


def script(folder: Path, name: str, text: str) -> str:
    """A program in Python as a shell starts it; it has a socket for UDP, and ends within MOST_S."""
    path = folder / name
    head = f"import json, os, signal, socket, struct, sys, time\nsignal.alarm({MOST_S:.0f})\n"
    path.write_text(
        f"{head}far, near = {FAR!r}, {NEAR!r}\nudp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n{text}"
    )
    return f"{sys.executable} {path}"


def receiver(folder: Path, count: int) -> str:
    """Writes the numbers of the datagrams that come to the far end, and when they came, until so many have."""
    text = f"""
udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
udp.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
udp.bind(("", 9000))
rows = []
while len(rows) < {count}:
    data, ancillary, _, _ = udp.recvmsg(2000, 100)
    rows.append([int(data[:8]), time.monotonic(), ancillary[0][2][0]])
with open("{folder}/part", "w") as file:
    json.dump(rows, file)
os.rename("{folder}/part", "{folder}/came.json")
"""
    return script(folder, "receiver.py", text)


def sender(folder: Path, count: int, size: int, tos: int = 0) -> list[str]:
    """Sends so many numbered datagrams at once, and ends when the far end has written what came."""
    text = f"""
udp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, {tos})
print(time.monotonic())
for number in range({count}):
    udp.sendto(b"%08d" % number + bytes({size} - 36), (far, 9000))
while not os.path.exists("{folder}/came.json"):
    time.sleep(0.02)
"""
    return script(folder, "sender.py", text).split()


def came(folder: Path) -> list[tuple[int, float, int]]:
    """Number, time in s and TOS of the datagrams that came."""
    return json.loads((folder / "came.json").read_text())


# --- What the link does ---------------------------------------------------------------------------------------------


def test_each_packet_crosses_the_link_once_each_way(tmp_path: Path) -> None:
    shown, said, report = emulate(tmp_path, scenario(tmp_path), "--", "ping", "-c", 5, "-i", "0.02", FAR)
    times_ms = [float(text) for text in re.findall(r"time=([\d.]+) ms", shown)]
    assert len(times_ms) == 5
    assert min(times_ms) >= 20
    for way in "down", "up":
        (row,) = report["ways"][way]
        # 56 bytes of data, 8 of ICMP, 20 of IP.
        assert (row["sent_pkts"], row["arrived_pkts"], row["arrived_bytes"]) == (5, 5, 5 * 84)
        assert row["dropped_pkts"] == {}
        assert row["delay_p50_s"] >= 0.01 * (1 - 1 / 128)
        assert re.search(f"^{way}: all: 5 packets, 5 arrived \\(420 bytes\\); delay p50 ", said, re.MULTILINE)
    assert report["missed_pkts"] == {"down": 0, "up": 0}


def test_the_ends_have_names_and_ipv6_where_the_kernel_has_it(tmp_path: Path) -> None:
    ask = 'test "$LINKWEIR_FAR $LINKWEIR_NEAR" = "100.64.0.1 100.64.0.2"'
    if Path("/proc/sys/net/ipv6").exists():
        ask += f" && ping -6 -c 1 {FAR6}"
    emulate(tmp_path, scenario(tmp_path), "--", "sh", "-c", ask)


def carried(way: Way, packets: list[bytes]) -> tuple[list[bytes], list[dict[str, Any]]]:
    """What comes out of a direction in virtual time if all packets are sent at second 0, and its figures."""
    now_ns, found = 0, list[bytes]()
    conveyor = Conveyor(way, lambda: now_ns, found.append)
    for packet in packets:
        conveyor.arrive(packet)
    conveyor.deliver()
    while conveyor.next_ns is not None:
        now_ns = conveyor.next_ns
        conveyor.deliver()
    return found, conveyor.figures()


def test_what_waits_in_an_outage_is_the_limit_in_order_and_the_rest_is_dropped(tmp_path: Path) -> None:
    # 0 bit/s until second 12: one packet is on the link, 10 wait, 29 of 40 have no room.
    link = scenario(tmp_path, link=OUTAGE, **{"class": 'name = "all"\nlimit = "10p"'})
    packets = [ipv4(bytes([number])) for number in range(40)]
    found, (row,) = carried(way_of(link, Front()), packets)
    assert found == packets[:11]
    assert (row["sent_pkts"], row["arrived_pkts"], row["dropped_pkts"]) == (40, 11, {"limit": 29})
    assert row["delay_p50_s"] >= 12 * (1 - 1 / 128)


def test_the_report_tells_of_drops(tmp_path: Path) -> None:
    link = scenario(tmp_path, link='rate = "100Mbit"\nloss = "100%"')
    words = ("--", "ping", "-c", 3, "-i", "0.02", "-W", "0.1", FAR)
    _, said, report = emulate(tmp_path, link, *words, code=1)
    assert report["ways"]["down"][0]["sent_pkts"] == 3
    assert "down: all: 3 packets, 0 arrived (0 bytes), 3 dropped (link 3)" in said


def test_both_directions_lose_other_packets(tmp_path: Path) -> None:
    down = way_of(scenario(tmp_path, link='rate = "100Mbit"\nloss = "50%"'), Front())
    packets = [ipv4(bytes([number])) for number in range(64)]
    (first, _), (second, _), (other, _) = (carried(way, packets) for way in (down, down, again(down)))
    assert first == second == sorted(first, key=packets.index)
    assert 0 < len(first) < 64
    assert other != first


def test_two_directions_of_one_file_lose_other_packets(tmp_path: Path) -> None:
    trace = tmp_path / "fast.trace"
    trace.write_text("1\n2\n")
    words = ("--uplink", trace, *MAHIMAHI, "--loss", "50%")
    _, _, report = emulate(tmp_path, trace, *words, "--", "ping", "-c", 20, "-i", "0.01", "-W", "1", FAR)
    way = way_of(trace, Front(loss="50%"), trace_keys={"trace_format": "mahimahi"})
    packets = [ipv4(bytes([number])) for number in range(20)]
    first, second = (carried(one, packets)[0] for one in (way, other_numbers(way)))
    answers, _ = carried(way, packets[: len(second)])
    (down,), (up,) = report["ways"]["down"], report["ways"]["up"]
    assert (up["sent_pkts"], up["arrived_pkts"]) == (20, len(second))
    assert (down["sent_pkts"], down["arrived_pkts"]) == (len(second), len(answers))
    assert len(first) != len(second)  # or the counts above would not tell the seeds apart


def test_a_trace_of_mahimahi_carries_a_packet_at_each_line(tmp_path: Path) -> None:
    trace = tmp_path / "slow.trace"
    trace.write_text("5\n10\n")  # a packet of 1500 bytes every 5 ms
    words = (
        "--uplink",
        trace,
        *MAHIMAHI,
        "--delay",
        "30ms",
        "--serve",
        receiver(tmp_path, 50),
        "--",
        *sender(tmp_path, 50, 1500),
    )
    shown, said, report = emulate(tmp_path, trace, *words)
    rows = came(tmp_path)
    assert [number for number, _, _ in rows] == list(range(50))
    # The first opportunity may come at once, the 49 others 5 ms apart, and the way takes 30 ms.
    assert rows[-1][1] - float(shown) >= 49 * 0.005 + 0.03
    assert report["ways"]["up"][0]["arrived_pkts"] == 50
    assert "mahimahi" in said


CLASSES = 'name = "voice"\nmatch = [{ dscp = "EF" }]\n[[class]]\nname = "rest"'


def test_urgent_packets_pass_those_that_wait(tmp_path: Path) -> None:
    link = scenario(tmp_path, link=OUTAGE, scheduler='policy = "strict"', **{"class": CLASSES})
    # The last ten of twenty have EF, 46 << 2. Number 0 was on the link before an urgent one was there.
    packets = [ipv4(bytes([number]), tos=184 * (number >= 10)) for number in range(20)]
    found, rows = carried(way_of(link, Front()), packets)
    assert [packets.index(packet) for packet in found] == [0, *range(10, 20), *range(1, 10)]
    assert [(row["class"], row["arrived_pkts"]) for row in rows] == [("voice", 10), ("rest", 10)]


def test_the_kernels_packets_belong_to_the_class_of_their_code_point(tmp_path: Path) -> None:
    link = scenario(tmp_path, scheduler='policy = "strict"', **{"class": CLASSES})
    words = sender(tmp_path, 20, 1000)
    path = Path(words[-1])
    text = path.read_text().replace(
        "    udp.sendto", "    udp.setsockopt(0, socket.IP_TOS, 184 * (number >= 13))\n    udp.sendto"
    )
    path.write_text(text)
    _, _, report = emulate(tmp_path, link, "--uplink", "same", "--serve", receiver(tmp_path, 20), "--", *words)
    numbers = [number for number, _, _ in came(tmp_path)]
    assert [number for number in numbers if number < 13] == list(range(13))
    assert [number for number in numbers if number >= 13] == list(range(13, 20))
    assert [(row["class"], row["arrived_pkts"]) for row in report["ways"]["up"]] == [("voice", 7), ("rest", 13)]


def test_marks_arrive_as_the_kernel_accepts_them(tmp_path: Path) -> None:
    trace = tmp_path / "slow.trace"
    trace.write_text("10\n")
    # ECT(1); each of 6 packets waits 10 ms longer than the one before, the step is 1 ms: RFC 9332, appendix A.
    words = (*MAHIMAHI, "--policy", "dualpi2", "--uplink", trace, "--serve", receiver(tmp_path, 6))
    _, _, report = emulate(tmp_path, trace, *words, "--", *sender(tmp_path, 6, 1500, tos=1))
    fields = [tos & 3 for _, _, tos in came(tmp_path)]
    l4s = next(row for row in report["ways"]["up"] if row["class"] == "l4s")
    assert fields.count(3) == l4s["marked_pkts"]
    assert set(fields) <= {1, 3}
    assert l4s["arrived_pkts"] == 6
    # A sender that had to wait for its processor may have had no queue; these packets are sent at once.
    way = way_of(trace, Front(policy="dualpi2"), trace_keys={"trace_format": "mahimahi"})
    found, rows = carried(way, [ipv4(bytes(1480), tos=1) for _ in range(6)])
    assert [ecn(packet) for packet in found].count(3) == sum(row["marked_pkts"] for row in rows) > 0


def test_a_scenarios_own_python_policy_decides(tmp_path: Path) -> None:
    assert linkweir("policies", "--new", tmp_path / "mine.py").returncode == 0
    (name,) = re.findall(r"^class (\w+)", (tmp_path / "mine.py").read_text(), re.MULTILINE)
    link = scenario(tmp_path, scheduler=f'policy = {{ python = "mine.py:{name}" }}')
    _, _, report = emulate(tmp_path, link, "--", "ping", "-c", 3, "-i", "0.02", FAR)
    assert report["ways"]["down"][0]["arrived_pkts"] == 3


@pytest.mark.parametrize(
    "words",
    [
        ("lte-drive.toml",),
        ("starlink.toml", "--uplink", "same"),
        ("terminals.toml", "--class", "terminal-1"),
        ("geo-return.toml", "--link", "forward", "--uplink", "return"),
        ("household.toml", "--link", "down", "--flows"),
    ],
)
def test_shipped_scenarios_are_emulated(tmp_path: Path, words: tuple[str, ...]) -> None:
    name, *options = words
    _, _, report = emulate(tmp_path, SCENARIOS / name, *options, "--", "ping", "-c", 1, "-w", 20, FAR)
    assert sum(row["arrived_pkts"] for row in report["ways"]["down"]) >= 1


# --- Exit codes and signals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 0", 0), ("exit 1", 1), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
def test_the_commands_exit_code_is_passed_on(tmp_path: Path, command: str, code: int) -> None:
    emulate(tmp_path, scenario(tmp_path), "--", "sh", "-c", command, code=code)


def test_a_command_that_cannot_be_started_has_the_shells_codes(tmp_path: Path) -> None:
    _, said, _ = emulate(tmp_path, scenario(tmp_path), "--", "no-such-program", code=127)
    assert "linkweir emulate: no-such-program: No such file or directory" in said
    emulate(tmp_path, scenario(tmp_path), "--", tmp_path, code=126)


def test_a_far_command_that_ends_at_once_is_an_error(tmp_path: Path) -> None:
    done = linkweir_process(scenario(tmp_path), "--serve", "exit 3", "--", "true")
    assert done.returncode == 1
    assert "--serve exit 3: ended before it listened on a port; try the command by itself" in done.stderr


def linkweir_process(*words: object) -> subprocess.CompletedProcess[str]:
    needs_namespaces()
    command = [*COMMAND, "emulate", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=MOST_S, check=False)


@contextlib.contextmanager
def started(*words: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """An emulation, killed when the block ends, or after MOST_S: then what is read from it ends, too."""
    needs_namespaces()
    command = [*COMMAND, "emulate", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        killer = threading.Timer(MOST_S, process.kill)
        killer.start()
        try:
            yield process
        finally:
            killer.cancel()
            process.kill()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@contextlib.contextmanager
def on_terminal(*words: object, **environment: str) -> Iterator[tuple[int, int]]:
    """An emulation on a terminal of its own, bounded as in `started`: its process, and the terminal's other end."""
    needs_namespaces()
    command = [*COMMAND, "emulate", *map(str, words)]
    pid, terminal = pty.fork()
    if pid == 0:
        signal.alarm(round(MOST_S))  # outlives exec
        os.execvpe(command[0], command, {**os.environ, **environment})
    try:
        yield pid, terminal
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


INTERRUPTED = """
def stop(number, frame):
    print("stopped by", number, flush=True)
    sys.exit(5)

signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_for_the_emulator_reaches_the_command(tmp_path: Path, number: signal.Signals) -> None:
    words = [scenario(tmp_path), "--", *script(tmp_path, "waits.py", INTERRUPTED).split()]
    with started(*words, start_new_session=True) as process:
        assert read_line(process) == "ready\n"
        process.send_signal(number)
        shown, _ = process.communicate(timeout=MOST_S)
    assert (shown, process.returncode) == (f"stopped by {number:d}\n", 5)


def test_ctrl_c_of_a_terminal_reaches_the_command_once(tmp_path: Path) -> None:
    words = [scenario(tmp_path), "--", *script(tmp_path, "waits.py", INTERRUPTED).split()]
    with on_terminal(*words) as (pid, terminal):
        seen = b""
        while b"ready" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        seen += read_terminal(terminal)
        assert exit_code(pid) == 5
    assert seen.count(b"stopped by 2") == 1


SLOW_TO_SERVE = ("--serve", "echo waiting; exec sleep 1000", "--", "sleep", "1000")


@pytest.mark.parametrize("moment", ["at first", "while the far command does not listen"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_command_starts_is_not_lost(tmp_path: Path, number: signal.Signals, moment: str) -> None:
    link = scenario(tmp_path)
    with started(link, *SLOW_TO_SERVE, stderr=subprocess.PIPE, start_new_session=True) as process:
        if moment == "at first":
            wait_until(lambda: children(process.pid) != [], MOST_S)
        else:
            assert process.stderr is not None
            assert "waiting\n" in iter(process.stderr.readline, "")
        process.send_signal(number)
        assert process.wait(timeout=MOST_S) == 128 + number


def test_ctrl_c_before_the_command_starts_is_not_lost(tmp_path: Path) -> None:
    with on_terminal(scenario(tmp_path), *SLOW_TO_SERVE) as (pid, terminal):
        seen = b""
        while b"waiting" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        read_terminal(terminal)
        assert exit_code(pid) == 128 + signal.SIGINT


def test_a_shell_on_a_terminal_works(tmp_path: Path) -> None:
    shell = [scenario(tmp_path), "--", "bash", "--norc", "--noprofile", "-i"]
    mark = {"LINKWEIR_TEST": str(tmp_path)}
    with on_terminal(*shell, PS1="", TERM="dumb", **mark) as (pid, terminal):
        os.write(terminal, b"sleep 1234.5\n")
        wait_until(lambda: any(is_sleep(found) for found in processes_with(f"LINKWEIR_TEST={tmp_path}")), MOST_S)
        os.write(terminal, b"\x03")  # ends sleep, and not the shell
        os.write(terminal, b"echo $((6 * 7)); exit 3\n")
        seen = read_terminal(terminal)
        assert exit_code(pid) == 3, seen
    assert b"42" in seen
    assert b"job control" not in seen
    assert b"linkweir emulate: " in seen


@pytest.mark.slow
def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    words = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"]
    with started(scenario(tmp_path), "--", *words) as process:
        assert read_line(process) == "ready\n"
        process.terminate()
        assert process.wait(timeout=MOST_S) == 137


# --- Nothing is left ------------------------------------------------------------------------------------------------


def namespaces_in_use() -> set[str]:
    """Network namespaces of all processes, and those with a name."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.add(str((process / "ns/net").readlink()))
    for named in Path("/run/netns").glob("*"):
        with contextlib.suppress(OSError):
            found.add(f"net:[{named.stat().st_ino}]")
    return found


def processes_with(mark: str) -> list[int]:
    """Processes that have this in their command line or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "cmdline").read_bytes() + (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def is_sleep(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x001234.5\0"
    return False


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], set[str], str]]:
    """An emulation whose commands have children of their own; its namespaces; and a mark of all its processes."""
    mark = f"LINKWEIR_TEST={tmp_path}"
    tells = "readlink /proc/self/ns/net; setsid sleep 1000 & sleep 1000 & wait"
    listens = script(
        tmp_path, "listens.py", 'udp.bind(("", 1))\nos.system("readlink /proc/self/ns/net >&2; sleep 1000")'
    )
    words = (scenario(tmp_path), "--serve", listens, "--", "sh", "-c", tells)
    environment = {**os.environ, "LINKWEIR_TEST": str(tmp_path)}
    with started(*words, stderr=subprocess.PIPE, env=environment) as process:
        names = {read_line(process).strip()}
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("net:["):
                names.add(line.strip())
                break
        assert len(names) == 2
        assert names <= namespaces_in_use()
        # Emulator, keeper, init, listens.py and its sleep, the shell of `tells` and both of its sleeps.
        wait_until(lambda: len(processes_with(mark)) >= 8, MOST_S)
        yield process, names, mark


@pytest.mark.parametrize("victim", ["emulator", "keeper", "init"])
def test_whichever_process_is_killed_nothing_stays(
    running: tuple[subprocess.Popen[str], set[str], str], victim: str
) -> None:
    process, names, mark = running
    keeper = children(process.pid)[0]
    pids = {"emulator": process.pid, "keeper": keeper, "init": children(keeper)[0]}
    os.kill(pids[victim], signal.SIGKILL)
    assert process.wait(timeout=MOST_S) == (-signal.SIGKILL if victim == "emulator" else 1)
    wait_until(lambda: not processes_with(mark), MOST_S)
    wait_until(lambda: not names & namespaces_in_use(), MOST_S)


def test_nothing_stays_after_the_end_or_sigterm(running: tuple[subprocess.Popen[str], set[str], str]) -> None:
    process, names, mark = running
    process.terminate()
    assert process.wait(timeout=MOST_S) == 143
    wait_until(lambda: not processes_with(mark), MOST_S)
    wait_until(lambda: not names & namespaces_in_use(), MOST_S)


def test_after_the_end_of_a_constellation_the_report_says_so(tmp_path: Path) -> None:
    text = (SCENARIOS / "leo-constellation.toml").read_text()
    path = tmp_path / "short.toml"
    path.write_text(text.replace('"60s"', '"2s"', 1).replace('"10s"', '"0s"', 1))
    words = (path, "--uplink", "same", "--class", "vehicle-1", "--", "sleep", "1000")
    _, said, report = emulate(tmp_path, *words, code=143)
    assert report["faults"][0] == f"the link was over after 2 s; raise duration in {path}"
    assert f"not as set: {report['faults'][0]}" in said


def test_a_report_that_cannot_be_written_is_refused_before_the_command_runs(tmp_path: Path) -> None:
    for report, message in (tmp_path / "none/r.json", "No such file or directory"), (tmp_path, "is a folder"):
        words = ("--report", report, "--", "touch", tmp_path / "ran")
        done = linkweir_process(scenario(tmp_path), *words)
        assert done.returncode in (1, 2)
        assert message in done.stderr
        assert not (tmp_path / "ran").exists()


def test_the_devices_in_sys_are_those_of_the_end(tmp_path: Path) -> None:
    shown, said, _ = emulate(tmp_path, scenario(tmp_path), "--", "ls", "/sys/class/net")
    if "/sys shows the host's devices" in said:
        pytest.skip(f"NOT EMULATED: {said}")
    assert {"lo", "link"} <= set(shown.split())
    assert "eth0" not in shown.split()


def test_the_hosts_devices_are_as_before(tmp_path: Path) -> None:
    shown = tmp_path / "devices"
    emulate(tmp_path, scenario(tmp_path), "--", "sh", "-c", f"ip -o link >{shown}")
    new = subprocess.run(["unshare", "--net", "ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    # Modules that are loaded may add devices to every namespace.
    inside = re.findall(r"^\d+: (\w+)", shown.read_text(), re.MULTILINE)
    assert sorted(inside) == sorted([*re.findall(r"^\d+: (\w+)", new, re.MULTILINE), "link"])
    here = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert "link" not in re.findall(r"^\d+: ([^:@]+)", here, re.MULTILINE)


# --- Without root ---------------------------------------------------------------------------------------------------


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user may write to; those of pytest are root's alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def as_user(mode: str) -> tuple[str, ...]:
    """Begins a command as a user without rights but to find Python, with a /dev/net/tun of this mode."""
    needs_namespaces()
    if os.geteuid() != 0:
        pytest.skip("NOT TRIED AS ANOTHER USER: that needs root")
    if shutil.which("setpriv") is None:
        pytest.skip("NOT TRIED AS ANOTHER USER: setpriv of util-linux is missing")
    tried = "mount -t tmpfs tun /dev/net && mknod /dev/net/tun c 10 200 && : <>/dev/net/tun"
    if subprocess.run(["unshare", "--mount", "sh", "-c", tried], capture_output=True, check=False).returncode:
        pytest.skip("NOT TRIED AS ANOTHER USER: this container may not make a device node")
    made = f'mount -t tmpfs tun /dev/net && mknod /dev/net/tun c 10 200 && chmod {mode} /dev/net/tun && exec "$@"'
    user = ("--reuid=65534", "--regid=65534", "--clear-groups")
    rights = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search")
    return ("unshare", "--mount", "sh", "-c", made, "sh", "setpriv", *user, *rights)


@pytest.mark.slow
def test_a_user_emulates_without_root_and_stays_the_user(public: Path) -> None:
    asks = f"ping -c 2 -i 0.2 {FAR} && id -u && grep CapEff /proc/self/status"
    words = ("--serve", "id -u >&2; exec sleep 1000")
    shown, said, report = emulate(public, scenario(public), *words, "--", "sh", "-c", asks, before=as_user("666"))
    assert shown.splitlines()[-2:] == ["65534", "CapEff:\t0000000000000000"]
    assert "\n65534\n" in f"\n{said}"
    assert "--serve listens on no port after 5 s; the command starts anyway" in said
    assert report["ways"]["up"][0]["arrived_pkts"] == 2
    assert not report["realtime"]


def test_who_may_not_open_the_device_is_told_what_to_do(public: Path) -> None:
    command = [*as_user("600"), *COMMAND, "emulate", str(scenario(public)), "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_S, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "linkweir: /dev/net/tun: Permission denied; run it with sudo, or let users open the device: "
        "chmod 666 /dev/net/tun\n"
    )


@pytest.mark.slow
def test_a_machine_without_user_namespaces_is_told_what_to_do(public: Path) -> None:
    needs_namespaces()
    # A user namespace in which none may be made below it: user.max_user_namespaces counts per namespace.
    inner = 'echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    begin = ["unshare", "--user", "--map-root-user", "sh", "-c", inner, "sh"]
    done = subprocess.run(
        [*begin, *COMMAND, "emulate", str(scenario(public)), "--", "true"],
        capture_output=True,
        text=True,
        timeout=MOST_S,
        check=False,
    )
    assert done.returncode == 1
    assert "does not let users without root make namespaces and devices" in done.stderr
    assert "run it with sudo, or allow it: sysctl " in done.stderr
    assert "Traceback" not in done.stderr


# --- Refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["household.toml"], "a network cannot be emulated as a whole; choose one of its links with --link: up, down"),
        (["household.toml", "--link", "middle"], "no link has this name"),
        (["lte-drive.toml", "--link", "up"], "--link = up: names a link of a network"),
        (["leo-shell.toml"], "its links come and go with the satellites"),
        (["boat.toml", "--link", "boat"], "several links behind one scheduler cannot be emulated"),
        (["geo-bbr.toml"], "or choose a class for all packets with --class"),
        (["lte-drive.toml", "--class", "best"], "is no class of the scenario; there are ef, af, cs0"),
        (["leo-constellation.toml", "--class", "vehicle-1"], "give it with --uplink"),
        (["lte-drive.toml", "--delay", "1ms"], "--delay = 1ms: is for a trace; write it in "),
        (["lte-drive.toml", "--trace-key", "trace_unit=Mbit"], "--trace-key = trace_unit: is for a trace"),
        (["traces/lte-drive.csv", "--flows"], "--flows = given: is for a scenario"),
        (["traces/lte-drive.csv", "--delay", "1"], "needs a unit"),
        (["README.md"], "README.md"),
        (["none.toml"], "none.toml"),
    ],
)
def test_what_cannot_be_emulated_is_refused_with_a_cure(words: list[str], message: str) -> None:
    done = linkweir("emulate", SCENARIOS / words[0], *words[1:], "--", "true")
    assert done.returncode == 2, done
    assert message in " ".join(done.stderr.split())
    assert len(done.stderr.splitlines()) == 1


# --- Headers --------------------------------------------------------------------------------------------------------


def ipv4(payload: bytes, *, tos: int = 0, protocol: int = 17, options: bytes = b"", fragment: int = 0) -> bytes:
    """A packet from 10.0.0.1 to 10.0.0.2 as RFC 791 has it."""
    ends = socket.inet_aton("10.0.0.1") + socket.inet_aton("10.0.0.2")
    first = 0x45 + len(options) // 4
    head = struct.pack("!BBHHHBBH", first, tos, 20 + len(options) + len(payload), 7, fragment, 64, protocol, 0)
    head += ends + options
    return head[:10] + checksum(head) + head[12:] + payload


def checksum(head: bytes) -> bytes:
    """RFC 1071: the complement of the sum of all words, carries added again."""
    total = sum(struct.unpack(f"!{len(head) // 2}H", head))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)


def ipv6(payload: bytes, *, traffic: int = 0, protocol: int = 17) -> bytes:
    """A packet from fd00::1 to fd00::2 as RFC 8200 has it."""
    ends = b"".join(ipaddress.ip_address(f"fd00::{last}").packed for last in (1, 2))
    return struct.pack("!IHBB", 6 << 28 | traffic << 20, len(payload), protocol, 64) + ends + payload


UDP = struct.pack("!HHHH", 5060, 53, 8, 0)


@pytest.mark.parametrize("tos", range(256))
def test_a_marked_packet_has_ce_and_the_right_checksum(tos: int) -> None:
    packet = ipv4(UDP, tos=tos)
    found = marked(packet)
    assert found == ipv4(UDP, tos=tos | 3)
    assert ecn(found) == 3
    assert marked(ipv6(UDP, traffic=tos)) == ipv6(UDP, traffic=tos | 3)
    assert ecn(ipv6(UDP, traffic=tos)) == ecn(packet) == tos & 3


def test_ports_are_found_behind_options_and_only_in_first_fragments() -> None:
    for packet in (
        ipv4(UDP),
        ipv4(UDP, options=bytes(8)),
        ipv4(UDP, fragment=0x2000),
        ipv6(UDP),
        ipv6(bytes([17, 1]) + bytes(14) + UDP, protocol=0),
        ipv6(bytes([17, 0, 0, 1]) + bytes(4) + UDP, protocol=44),
    ):
        header = header_of(packet)
        assert header is not None
        assert header[2] == 17
        assert header[5:] == (5060, 53)
    for packet in ipv4(UDP, fragment=1), ipv6(bytes([17, 0, 0, 8]) + bytes(4) + UDP, protocol=44), ipv4(b"\0\1"):
        header = header_of(packet)
        assert header is not None
        assert header[5:] == (None, None)
    for broken in b"", b"\x45", b"\x60" + bytes(30), b"\x20" + bytes(60):
        assert header_of(broken) is None


@pytest.mark.parametrize(
    ("rule", "yes", "no"),
    [
        ({"dscp": ["EF", "CS1"]}, ipv4(UDP, tos=184), ipv4(UDP, tos=4)),
        ({"dscp": 8}, ipv6(UDP, traffic=33), ipv6(UDP)),
        ({"protocol": "udp"}, ipv4(UDP), ipv4(UDP, protocol=6)),
        ({"protocol": ["icmp", 99]}, ipv6(b"", protocol=58), ipv4(UDP)),
        ({"port": 53}, ipv4(UDP), ipv4(UDP[:2] + b"\0\1" + UDP[4:])),
        ({"source_port": "5000-5060"}, ipv4(UDP), ipv4(UDP[2:4] + UDP[:2] + UDP[4:])),
        ({"destination_port": [1, 53]}, ipv6(UDP), ipv6(UDP[2:4] + UDP[:2] + UDP[4:])),
        ({"address": "10.0.0.2"}, ipv4(UDP), ipv6(UDP)),
        ({"source": "10.0.0.0/31"}, ipv4(UDP), ipv6(UDP)),
        ({"destination": ["10.0.0.1", "fd00::/126"]}, ipv6(UDP), ipv4(UDP)),
        ({"dscp": "EF", "port": 53}, ipv4(UDP, tos=185), ipv4(UDP[:2] + b"\0\1" + UDP[4:], tos=184)),
    ],
)
def test_rules_take_the_packets_they_describe(rule: dict[str, Any], yes: bytes, no: bytes) -> None:
    sorter = Sorter(Sorting((None, (rule,)), 0))
    for _ in range(2):  # the second answer is a kept one
        assert sorter.place(yes)[0] == 1
        assert sorter.place(no)[0] == 0


def test_flows_differ_by_addresses_and_ports_and_l4s_goes_to_its_class() -> None:
    sorter = Sorter(Sorting(((), None), 1), l4s=0)
    first = sorter.place(ipv4(UDP))
    assert first[0] == 1
    assert sorter.place(ipv4(UDP, tos=2)) == first
    assert sorter.place(ipv4(UDP, tos=1)) == sorter.place(ipv4(UDP, tos=3)) == (0, first[1])
    assert sorter.place(ipv4(UDP[:2] + b"\0\1" + UDP[4:]))[1] != first[1]


def test_time_in_a_handler_is_not_needed_to_wake_the_loop(tmp_path: Path) -> None:
    """A signal that comes while no packet is on its way ends an idle emulation at once, not at the link's end."""
    with started(scenario(tmp_path), "--", "sh", "-c", "echo ready; exec sleep 1000") as process:
        assert read_line(process) == "ready\n"
        time.sleep(0.5)
        process.terminate()
        assert process.wait(timeout=MOST_S) == 143
