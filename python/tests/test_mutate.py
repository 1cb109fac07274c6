# SPDX-License-Identifier: BSD-3-Clause
"""core/tests/mutate.py, which changes the core's sources and runs its tests."""

import importlib.util
import queue
import re
import threading
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def mutate():
    spec = importlib.util.spec_from_file_location("mutate", ROOT / "core/tests/mutate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mutants_are_tried_on_the_vectors_of_every_policy_and_of_nothing_else(mutate):
    names = re.findall(r"^LW_POLICY\((\w+)\)", (ROOT / "core/include/linkweir/policies.def").read_text(), re.M)
    assert names
    assert mutate.Sources().policies("policies.c") == sorted(names)


def test_a_file_is_done_when_its_survivors_are_the_explained_ones(mutate, tmp_path, capsys):
    known = mutate.Known(tmp_path / "known.json", mutate.Sources())

    def judged(*explained):
        mutants = [mutate.Mutant("src/rr.c", "rr_pick", line, "", "") for line in ("a;", "b;", "c;")]
        why = {("src/rr.c", "rr_pick", line, ""): "changes nothing" for line in explained}
        why["src/wrr.c", "wrr_pick", "a;", ""] = "of another file"
        verdicts = zip(mutants, ("vectors", "survived", "repeated"), strict=True)
        count, done = mutate.judge("src/rr.c", verdicts, len(mutants), why, known)
        assert count == {"vectors": 1, "survived": 1, "repeated": 1}
        return done, capsys.readouterr().out

    assert judged("b;") == (True, "")
    assert judged("b;", "c;") == (True, "")  # the mutant with the same code survived
    assert judged() == (False, "survived, not explained: src/rr.c rr_pick\n  was b;\n  now \n")
    assert judged("a;", "b;") == (False, "explained, but found or gone: src/rr.c rr_pick\n  was a;\n  now \n")


def test_twins_count_once_though_two_workers_meet_them_at_once(mutate, tmp_path):
    meeting = threading.Barrier(2, timeout=60)

    class Bench(mutate.Bench):
        """Compiles nothing: the names say what the tests would find, and both benches are at it at the same time."""

        def __init__(self, known):
            self.known = known

        def try_out(self, mutant, seen):
            meeting.wait()
            return mutant.function, mutant.now

    known = mutate.Known(tmp_path / "known.json", mutate.Sources())
    benches = queue.Queue()
    benches.put(Bench(known))
    benches.put(Bench(known))
    found = [("vectors", "1"), ("vectors", "1"), ("survived", "2"), ("survived", "2"), ("invalid", ""), ("invalid", "")]
    mutants = [mutate.Mutant("src/rr.c", how, "", code, f"{i};") for i, (how, code) in enumerate(found)]
    verdicts = list(mutate.verdicts(mutants, benches, set()))
    assert [mutant for mutant, _ in verdicts] == mutants
    assert Counter(how for _, how in verdicts) == {"vectors": 1, "survived": 1, "repeated": 2, "invalid": 2}
    again = list(mutate.verdicts(mutants, benches, set()))  # remembered
    assert again == verdicts
