# SPDX-License-Identifier: BSD-3-Clause
"""Capacity by feedback between real gateways, in virtual time, over links that lab/feedback/links.py makes.

One test builds a gateway of the history, of the version before the present rule, and runs it against this one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from command import REPOSITORY
from test_tunnel import program

from linkweir.lab import guest, kernel, namespaces

sys.path.insert(0, str(REPOSITORY / "lab/feedback"))
import links
import stored_runs

RULE_BEFORE = "dace0b5^"
"""The last commit before the rule of feedback was written again."""
SECONDS = 600
SHORT_S = 120
"""Of a run with a gateway of the version before."""


def test_links_are_those_of_their_seeds() -> None:
    for kind in [kind for kind in links.KINDS.values() if not kind.slots]:
        steps = links.steps_of(kind, 7, 600)
        assert steps == links.steps_of(kind, 7, 600)
        assert steps != links.steps_of(kind, 8, 600)
        assert [at_s for at_s, _ in steps.delay] == [15.0 * number for number in range(40)]
        assert all(18 <= ms <= 45 for _, ms in steps.delay)
        apart_s = {after - before for (before, _), (after, _) in pairwise(steps.capacity)}
        assert apart_s == ({0.5} if kind.ripple else {15.0})
        # A ripple stays within its part of the level, which the kind without one shows for the same seed.
        levels = dict(links.steps_of(links.KINDS["a"], 7, 600).capacity)
        parts = [bps / levels[at_s // 15 * 15] for at_s, bps in steps.capacity]
        assert all(3.5e6 <= bps <= 16e6 for bps in levels.values())
        assert all(abs(part - 1) <= kind.ripple + 1e-6 for part in parts)
        if kind.ripple:
            assert max(parts) > 1.15
            assert min(parts) < 0.85


def test_voice_after_changes_is_told_from_that_of_other_times() -> None:
    # A packet each 10 ms for 10 s. The level changes at 1 and 5 s; for 2 s after that each takes 50 ms longer.
    empty = links.Outcome(0.0, dict.fromkeys(range(1000), 20.0), 0, {}, [])
    took = {n: 70.0 if 100 <= n < 300 or 500 <= n < 700 else 21.0 for n in range(1000) if n != 550}
    loaded = links.Outcome(0.0, took, 0, {}, [1.0, 5.0])
    assert links.later_ms(loaded, empty) == links.Later(50.0, 50.0, 1.0)


def test_a_link_carries_what_its_steps_say() -> None:
    steps = links.Steps([(0.0, 1_000_000), (10.0, 2_000_000), (20.0, 4_000_000)], [(0.0, 20.0)])
    assert steps.bits(0, 10) == 10_000_000
    assert steps.bits(5, 25) == 5_000_000 + 20_000_000 + 20_000_000


@pytest.fixture(scope="module")
def gateway() -> Path:
    lacks = guest.why_not() or (None if kernel.built() else kernel.why_not())
    if lacks:
        pytest.skip(f"NO RUN IN VIRTUAL TIME: {lacks}")
    found = program()
    if found is None:
        pytest.skip(namespaces.NO_GATEWAY)
    return found


@pytest.fixture(scope="module")
def before() -> Path:
    """The gateway of the version before, built from the history."""
    if shutil.which("git") is None:
        pytest.skip("NO GATEWAY OF THE VERSION BEFORE: git is missing")
    # Crates that both versions use are not compiled again. Build scripts hold the folder in which they were compiled.
    target = REPOSITORY / "target/before"
    folder = target / "tree"
    folder.mkdir(parents=True, exist_ok=True)
    archive = ["git", "-C", str(REPOSITORY), "archive", "--format=tar", "--output", str(folder / "tree.tar")]
    done = subprocess.run([*archive, RULE_BEFORE], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"NO GATEWAY OF THE VERSION BEFORE: the history is not here: {done.stderr.strip()}")
    subprocess.run(["tar", "-xf", "tree.tar"], cwd=folder, check=True)
    build = ["cargo", "build", "--locked", "--release", "--quiet", "-j2", "-p", "linkweir-gateway"]
    subprocess.run(build, cwd=folder, env={**os.environ, "CARGO_TARGET_DIR": str(target)}, check=True)
    built = folder / links.BEFORE
    shutil.copyfile(target / "release/linkweir-gateway", built)
    built.chmod(0o755)
    return built


@pytest.mark.long
def test_links_with_slots_are_interrupted_where_the_level_changes() -> None:
    links_of_seeds = [links.steps_of(links.KINDS["slots"], seed, SECONDS) for seed in (1, 2)]
    for steps in links_of_seeds:
        changes_s = [at_s for at_s, _ in steps.delay[1:]]
        assert {round(after - before, 6) for before, after in pairwise(changes_s)} == {15.0}
        stops = {at_s: back_s for (at_s, bps), (back_s, _) in pairwise(steps.capacity) if bps == 0}
        assert list(stops) == changes_s
        assert all(0.05 <= back_s - at_s <= 0.15 for at_s, back_s in stops.items())
    assert links_of_seeds[0] != links_of_seeds[1]


@pytest.mark.long
@pytest.mark.parametrize("name", links.KINDS)
def test_feedback_alone_uses_a_link_that_nobody_knows_and_keeps_voice_short(name: str, gateway: Path) -> None:
    kind = links.KINDS[name]
    made = guest.prepare(kernel.build("fast"), gateway)
    # Runs of this kernel and this gateway that measure.py has stored are not made again.
    empty, loaded = (stored_runs.run(made, one, 1, SECONDS) for one in (links.without_load(kind), kind))
    later_ms = links.later_ms(loaded, empty)
    print(f"{name}: {100 * loaded.used:.1f} % of the link, voice {later_ms} later")
    assert len(loaded.took_ms) > 0.97 * SECONDS * 1e9 / links.VOICE_NS
    assert loaded.used >= kind.least_used
    assert later_ms.all <= kind.most_later_ms
    assert later_ms.other <= kind.most_other_ms
    if kind.slots:
        assert later_ms.after <= links.of_autorate(1)[0] / 2


@pytest.mark.long
def test_gateways_of_the_version_before_work_with_this_one_both_ways(gateway: Path, before: Path) -> None:
    made = guest.prepare(kernel.build("fast"), gateway, before)
    kind = links.KINDS["b"]
    empty = links.run(made, links.without_load(kind), 1, SHORT_S)
    found = {
        ends: links.run(made, kind, 1, SHORT_S, ends)
        for ends in ((links.TODAY, links.BEFORE), (links.BEFORE, links.TODAY), (links.BEFORE, links.BEFORE))
    }
    reports = {ends: int(str(outcome.feedback["reports"])) for ends, outcome in found.items()}
    for ends, outcome in found.items():
        later_ms = links.later_ms(outcome, empty).all
        print(f"{ends}: {100 * outcome.used:.1f} %, {later_ms:.1f} ms, {reports[ends]} reports")
    # The receiver of the version before reports up to twenty times a second.
    assert reports[links.TODAY, links.BEFORE] > 10 * SHORT_S
    # A sender of the version before gets as many reports as from its own far end.
    assert reports[links.BEFORE, links.TODAY] > 0.95 * reports[links.BEFORE, links.BEFORE]
    old = found[links.BEFORE, links.BEFORE]
    # This sender needs no more than the few reports of an older receiver, as linkweir-rate has it.
    with_old = found[links.TODAY, links.BEFORE]
    assert with_old.used >= kind.least_used
    assert links.later_ms(with_old, empty).all <= 150.0
    # An older sender is served as well as by its own far end.
    served = found[links.BEFORE, links.TODAY]
    assert served.used > old.used - 0.02
    assert links.later_ms(served, empty).all < 1.2 * links.later_ms(old, empty).all
