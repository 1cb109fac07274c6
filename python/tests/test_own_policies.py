# SPDX-License-Identifier: BSD-3-Clause
"""Policies that a scenario brings along, as Python classes and as C files."""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from command import COMMAND, REPOSITORY, linkweir
from processes import wait_until

import linkweir as lw
from linkweir import own
from linkweir.own import parameter

PYTHON = '''
from linkweir.own import parameter


class RoundRobin:
    """One packet of each queue in turn."""

    def __init__(self, view, params, classes):
        self.turn = []
        self.rated(view)

    def follow(self, view, q):
        ready = view.queues[q].ready
        if ready and q not in self.turn:
            self.turn.append(q)
        elif not ready and q in self.turn:
            self.turn.remove(q)

    def pick(self, view):
        return self.turn[0] if self.turn else None

    def enqueued(self, view, q, size):
        self.follow(view, q)

    dropped = enqueued

    def rated(self, view):
        for q in range(len(view.queues)):
            self.follow(view, q)

    def sent(self, view, q, size):
        if q in self.turn:
            self.turn.remove(q)
            self.turn.append(q)
        self.follow(view, q)


class Deadline:
    params = {"slack": parameter("time", default="0s", help="added to every deadline")}
    class_params = {
        "deadline": parameter("time", default="100ms", min="1us", max="60s", help="time a packet may wait"),
        "kind": parameter("choice", default="soft", choices=("soft", "hard")),
    }
    stats = {"sent": ("packets", "packets sent"), "late": ("packets", "of these, after the deadline")}

    def __init__(self, view, params, classes):
        self.deadline = [one["deadline"] + params["slack"] for one in classes]
        self.hard = [one["kind"] == "hard" for one in classes]
        self.counts = [[0, 0] for _ in classes]
        if params["slack"] > 10**9:
            raise ValueError("slack is longer than a second")

    def pick(self, view):
        ready = [(queue.head_arrival_ns + self.deadline[q], q) for q, queue in enumerate(view.queues) if queue.ready]
        return min(ready)[1] if ready else None

    def expired(self, view, q):
        return self.hard[q] and view.now_ns > view.queues[q].head_arrival_ns + self.deadline[q]

    def leaving(self, view, q, ecn):
        late = view.now_ns > view.queues[q].head_arrival_ns + self.deadline[q]
        if late and self.hard[q]:
            return "drop"
        self.counts[q][1] += late
        return "pass"

    def sent(self, view, q, size):
        self.counts[q][0] += 1

    def observe(self, view, q):
        return self.counts[q]


class Broken:
    def __init__(self, view, params, classes):
        self.calls = 0

    def pick(self, view):
        self.calls += 1
        FAULT


class NoPick:
    pass


class NoObserve(Broken):
    stats = {"late": ("packets", "packets after the deadline")}


class First:
    "   "

    def pick(self, view):
        return next((q for q, queue in enumerate(view.queues) if queue.ready), None)
'''

EDF = (REPOSITORY / "python" / "linkweir" / "templates" / "policy.c").read_text().replace("NAME", "edf")


def scenario(folder: Path, policy: Any, *, scheduler: dict[str, Any] | None = None, **of_class: Any) -> lw.Scenario:
    keys = {
        "duration": "3s",
        "link": {"rate": "5Mbit"},
        "scheduler": {"policy": policy, **(scheduler or {})},
        "class": [{"name": "a", "limit": "40p", **of_class}, {"name": "b", "limit": "60p"}, {"name": "c"}],
        "flow": [
            {"class": "a", "kind": "poisson", "rate": "2Mbit", "packet": "400B"},
            {"class": "b", "kind": "onoff", "rate": "6Mbit", "on": "100ms", "off": "50ms"},
            {"class": "c", "kind": "tcp", "count": 2},
        ],
        "log": "packets",
    }
    return lw.Scenario.from_dict(keys, path=folder / "own.toml")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PYTHON)
    return tmp_path


def test_docstrings() -> None:
    assert doctest.testmod(own, extraglobs={"parameter": parameter}, optionflags=doctest.ELLIPSIS).failed == 0


def test_round_robin_in_python_serves_every_packet_as_that_of_the_core_does(mine: Path) -> None:
    ours = lw.run(scenario(mine, {"python": "mine.py:RoundRobin"}))
    theirs = lw.run(scenario(mine, "rr"))
    assert ours.log.num_rows > 3_000
    assert ours.log.equals(theirs.log)
    assert ours.classes.equals(theirs.classes)
    assert ours.series.equals(theirs.series)


def test_earliest_deadline_first_is_the_same_in_python_and_in_c(mine: Path) -> None:
    (mine / "edf.c").write_text(EDF)
    deadlines = {"deadline": "5ms"}
    python = lw.run(scenario(mine, {"python": "mine.py:Deadline"}, **deadlines))
    guarded = lw.run(scenario(mine, {"c": "edf.c"}, **deadlines))
    trusted = lw.run(scenario(mine, {"c": "edf.c", "trusted": True}, **deadlines))
    assert python.classes.equals(guarded.classes)
    assert guarded.log.equals(trusted.log)
    other = lw.run(scenario(mine, {"c": "edf.c"}, deadline="1s"))
    assert not guarded.classes.equals(other.classes)


def test_what_a_class_declares_is_read_shown_and_used(mine: Path) -> None:
    policy = {"python": "mine.py:Deadline"}
    sound = scenario(mine, policy, scheduler={"slack": "1ms"}, deadline="2ms", kind="hard")
    assert sound.policy == "Deadline"
    assert 'slack = "1ms"' in sound.resolved
    assert 'deadline = "100ms"' in sound.resolved
    assert 'kind = "hard"' in sound.resolved
    result = lw.run(sound)
    dropped = result.rows("classes")[0]["dropped_policy_pkts"]
    assert dropped > 0
    last = [row for row in result.levels.to_pylist() if row["class"] == "b"][-1]
    assert last["sent_pkts"] > last["late_pkts"] >= 0
    # No packet of the hard class waited for longer than its deadline.
    assert max(row["delay_max_s"] for row in result.rows("classes")[:1]) <= 0.003


def test_a_class_needs_pick_only(mine: Path) -> None:
    result = lw.run(scenario(mine, {"python": "mine.py:First"}))
    assert [row["sent_bytes"] > 0 for row in result.rows("classes")] == [True, True, True]


@pytest.mark.parametrize(
    ("policy", "keys", "words"),
    [
        ({"python": "mine.py"}, {}, 'must be a file and a class in it: "mine.py:EarliestDeadline"'),
        ({"python": "mine.py:Nothing"}, {}, "there is no class Nothing in"),
        ({"python": "mine.py:Deadlin"}, {}, "its policies are RoundRobin, Deadline, Broken, NoObserve, First"),
        ({"python": "mine.py:NoObserve"}, {}, "NoObserve has stats, but no method observe(self, view, queue)"),
        ({"python": "half.py:Mine"}, {}, "1.5: must be a whole number, or a text with a unit"),
        ({"python": "mine.py:NoPick"}, {}, "NoPick has no method pick(self, view)"),
        ({"python": "none.py:Mine"}, {}, "none.py"),
        ({"python": "wrong.py:Mine"}, {}, "cannot be run: SyntaxError"),
        ({"python": "raises.py:Mine"}, {}, "cannot be run: ZeroDivisionError: division by zero (line 2)"),
        ({"python": "mine.py:Deadline", "trusted": True}, {}, "is for a policy in C only"),
        ({"python": "mine.py:Deadline"}, {"slack": "2s"}, "slack is longer than a second"),
        ({"python": "mine.py:Deadline"}, {"slack": "2"}, "needs a unit"),
        ({"python": "mine.py:Deadline"}, {"slak": "2s"}, "did you mean slack?"),
        ({"c": "mine.py"}, {}, "defines no policy"),
        ({"c": "none.c"}, {}, "none.c"),
        ({"c": "mine.c", "python": "mine.py:Deadline"}, {}, "must be a policy's name"),
        ({"rust": "mine.rs"}, {}, "must be a policy's name"),
        ({}, {}, "must be a policy's name"),
        (7, {}, "must be one of"),
    ],
)
def test_what_is_no_policy_is_refused_with_the_cure(mine: Path, policy: Any, keys: dict[str, str], words: str) -> None:
    (mine / "wrong.py").write_text("class Mine(:\n")
    (mine / "raises.py").write_text("\nx = 1 / 0\n")
    (mine / "half.py").write_text("from linkweir.own import parameter\nparameter('number', default=1.5)\n")
    with pytest.raises(lw.ScenarioError, match=re.escape(words)):
        scenario(mine, policy, scheduler=keys)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("return 7", "named queue 7; there are 0 .. 2"),
        ("return -1", "returned -1; it must return a queue's number, None, or (None, time in ns to ask again)"),
        ('return "a"', "returned 'a'"),
        ("return None", "named no queue and no time to ask again, though a packet of queue"),
        ("return (None, 2**64 - 1)", "named no queue and no time to ask again, though a packet of queue"),
        ("return (None, view.now_ns)", "a time to ask again that is not in the future"),
        ("return {}['x']", "KeyError: 'x' (line "),
        ("view.queues[0].backlog_pkts = 3", "AttributeError"),
        ("view.now_ns = 3", "AttributeError"),
    ],
)
def test_a_class_that_breaks_the_contract_ends_the_run_with_the_call(mine: Path, fault: str, words: str) -> None:
    (mine / "mine.py").write_text(PYTHON.replace("FAULT", fault))
    with pytest.raises(lw.RunError, match=re.escape(words)) as caught:
        lw.run(scenario(mine, {"python": "mine.py:Broken"}))
    assert str(caught.value).startswith("mine.py:Broken: pick() at 0")


def test_a_file_that_changed_is_read_again(mine: Path) -> None:
    policy = {"python": "mine.py:Broken"}
    for fault in ("return 7", "return 8"):
        (mine / "mine.py").write_text(PYTHON.replace("FAULT", fault))
        with pytest.raises(lw.RunError, match=f"named queue {fault[-1]};"):
            lw.run(scenario(mine, policy))


@pytest.mark.parametrize("policy", [{"python": "mine.py:RoundRobin"}, {"c": "edf.c"}])
def test_a_run_directory_holds_the_file_and_runs_again(mine: Path, policy: dict[str, str]) -> None:
    (mine / "edf.c").write_text(EDF)
    first = lw.run(scenario(mine, policy), out=mine / "out")
    for name in ("mine.py", "edf.c"):
        (mine / name).unlink()
    again = lw.run(mine / "out" / "scenario.toml")
    assert again.classes.equals(first.classes)


def test_sweeps_comparisons_and_threads_take_them(mine: Path) -> None:
    (mine / "edf.c").write_text(EDF)
    several = [scenario(mine, {"c": "edf.c"}, deadline=f"{n}ms") for n in (1, 10, 100)]
    alone = [lw.run(one).rows("classes") for one in several]
    assert [result.rows("classes") for result in lw.run_many(several, jobs=3)] == alone


def test_a_comparison_has_the_scenarios_own_policy_beside_others(mine: Path) -> None:
    own = mine / "own.toml"
    text = """
duration = "2s"
[link]
rate = "2Mbit"
[scheduler]
policy = { python = "mine.py:Deadline" }
[[class]]
name = "a"
deadline = "5ms"
[[class]]
name = "b"
[[flow]]
class = "a"
kind = "poisson"
rate = "1Mbit"
[[flow]]
class = "b"
kind = "poisson"
rate = "1.5Mbit"
"""
    own.write_text(text)
    found = lw.compare(own, ["Deadline", "rr"], seeds=1, jobs=1)
    assert [one.label for one in found.facts.variants] == ["Deadline", "rr"]
    assert any("left out: deadline" in note for note in found.notes)
    (link,) = found.facts.links
    first, second = (found.estimate(link.label, name, "a", "delay_mean").mean for name in ("Deadline", "rr"))
    assert first is not None
    assert second is not None
    assert first != second
    with pytest.raises(lw.PlanError, match="no policy is called Deadlin"):
        lw.compare(own, ["Deadlin"], seeds=1, jobs=1)


def test_the_laboratory_says_that_it_has_none_of_these(mine: Path) -> None:
    from linkweir.lab.world import world

    keys = {
        "duration": "2s",
        "link": {"rate": "5Mbit"},
        "scheduler": {"policy": {"python": "mine.py:RoundRobin"}},
        "class": [{"name": "a"}],
        "flow": [{"class": "a", "kind": "cbr", "rate": "2Mbit"}],
    }
    with pytest.raises(lw.ScenarioError, match="runs in the simulator only"):
        world(lw.Scenario.from_dict(keys, path=mine / "own.toml"), frozenset())


@pytest.mark.slow
def test_a_c_file_runs_within_two_seconds_of_being_written(mine: Path) -> None:
    """Processor time counts, not that of the clock: other work on the machine does not change it."""
    (mine / "edf.c").write_text(EDF + f"/* {time.time_ns()} */\n")
    before = os.times()
    lw.run(scenario(mine, {"c": "edf.c"}))
    after = os.times()
    spent_s = sum(after[:4]) - sum(before[:4])
    assert spent_s < 2


def test_the_command_writes_a_policy_to_begin_with(tmp_path: Path) -> None:
    for name, policy in (("first.c", '{ c = "first.c" }'), ("second.py", '{ python = "second.py:Second" }')):
        done = linkweir("policies", "--new", tmp_path / name)
        assert (done.returncode, done.stderr) == (0, "")
        assert policy in done.stdout
        key = {"c": name} if name.endswith(".c") else {"python": f"{name}:Second"}
        assert lw.run(scenario(tmp_path, key, deadline="3ms")).packets > 0
        again = linkweir("policies", "--new", tmp_path / name)
        assert again.returncode == 2
        assert "there already" in " ".join(again.stderr.replace("│", " ").split())
    wrong = linkweir("policies", "--new", tmp_path / "Third.c")
    assert wrong.returncode == 2
    assert "lower-case" in " ".join(wrong.stderr.replace("│", " ").split())


def test_the_scenarios_of_the_page_run(tmp_path: Path) -> None:
    """Those of own-policy.md, with the files that the command writes and the class that the page shows."""
    page = (REPOSITORY / "docs" / "howto" / "own-policy.md").read_text()
    shown = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (longest,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for name in ("earliest.py", "earliest.c"):
        assert linkweir("policies", "--new", tmp_path / name).returncode == 0
    (tmp_path / "mine.py").write_text(longest)
    rest = """
duration = "1s"
[link]
rate = "1Mbit"
[[flow]]
class = "voice"
kind = "poisson"
rate = "900kbit"
"""
    assert [text.count("policy = ") for text in shown] == [1, 1]
    classes = re.search(r"\[\[class\]\].*", shown[0], re.DOTALL)
    assert classes is not None
    for scheduler in (shown[0], shown[1] + classes[0], '[scheduler]\npolicy = { python = "mine.py:LongestQueue" }\n'):
        whole = scheduler if "[[class]]" in scheduler else f'{scheduler}[[class]]\nname = "voice"\nweight = 2\n'
        first, _, after = rest.partition("[link]")
        text = f"{first}{whole}\n[link]{after}"
        assert lw.run(lw.Scenario.parse(text, path=tmp_path / "own.toml")).packets > 0


ONE_CLASS = """\
duration = "5s"
link = { rate = "1Mbit" }
scheduler = { policy = { POLICY } }
class = [{ name = "all" }]
flow = [{ class = "all", kind = "cbr", rate = "500kbit" }]
"""


def test_ctrl_c_stops_a_call_that_does_not_return_and_names_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def __init__(self, view, params, classes): ...\n    def pick(self, view):\n"
        "        print('begun', flush=True)\n        while True: pass\n"
    )
    (tmp_path / "own.toml").write_text(ONE_CLASS.replace("POLICY", 'python = "mine.py:Mine"'))
    words = [*COMMAND, "run", "own.toml", "--out", "out"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1
    assert "mine.py:Mine: pick() at " in errors
    assert "had not returned when Ctrl-C stopped it" in errors


def test_a_file_that_ends_the_program_is_refused_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(ValueError, match="ends the program when it is loaded; put that below"):
        own.describe(str(tmp_path / "mine.py"), (tmp_path / "mine.py").read_bytes(), "Mine")


def test_a_file_is_loaded_once_though_several_threads_ask_for_it(tmp_path: Path) -> None:
    methods = b"    def __init__(self, view, params, classes): ...\n    def pick(self, view): ...\n"
    text = b"import time\ntime.sleep(0.2)\nclass Mine:\n" + methods
    (tmp_path / "mine.py").write_bytes(text)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: own.describe(str(tmp_path / "mine.py"), text, "Mine")["make"], range(4)))
    assert len(set(map(id, found))) == 1


def test_the_process_of_a_policy_that_sleeps_ends_when_its_run_is_killed(tmp_path: Path) -> None:
    done = linkweir("policies", "--new", tmp_path / "sleeper.c")
    assert done.returncode == 0, done.stderr
    text = (
        (tmp_path / "sleeper.c")
        .read_text()
        .replace("uint32_t q, best = LW_NONE;", "uint32_t q, best = LW_NONE; for (;;) sleep(9);")
    )
    (tmp_path / "sleeper.c").write_text(f"#include <unistd.h>\n{text}")
    (tmp_path / "own.toml").write_text(ONE_CLASS.replace("POLICY", 'c = "sleeper.c"'))
    process = subprocess.Popen([*COMMAND, "run", "own.toml", "--out", "out"], cwd=tmp_path, stderr=subprocess.DEVNULL)

    def children() -> set[int]:
        found = set()
        for path in Path(f"/proc/{process.pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # a thread that has just ended
                for pid in path.read_text().split():
                    with contextlib.suppress(OSError):  # a compiler that has just ended
                        if "(deleted)" in str(Path(f"/proc/{pid}/exe").readlink()):
                            found.add(int(pid))
        return found

    try:
        wait_until(lambda: (tmp_path / "out").exists() and len(children()) > 0)
        left = children()
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
