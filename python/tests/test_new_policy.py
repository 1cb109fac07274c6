# SPDX-License-Identifier: BSD-3-Clause
"""A policy is added by `make policy` and by filling in the files that it makes; no other file is edited.

core/tests/edf is such a policy. It is added to a copy of the repository. Core, models, proofs and the help of tc are
tested there in `make test`. The hosts are tested in `make test-long`, because everything is built from nothing.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import REPOSITORY

POLICY = "edf"
WRITTEN = REPOSITORY / "core/tests" / POLICY
sys.path.insert(0, str(REPOSITORY / "core/template"))
import lay_down  # noqa: E402

pytestmark = pytest.mark.slow

SCENARIO = """\
duration = "20s"

[link]
rate = "2Mbit"

[scheduler]
policy = "edf"

[[class]]
name = "rest"
deadline = "500ms"

[[class]]
name = "urgent"
deadline = "20ms"

[[flow]]
class = "rest"
kind = "poisson"
rate = "900kbit"

[[flow]]
class = "urgent"
kind = "poisson"
rate = "900kbit"
"""
"""The urgent class is the second one, which would not be preferred in a tie."""

HERE_ALONE = ("CARGO_TARGET_DIR", "PYTHONPATH", "VIRTUAL_ENV")
"""Variables that would lead a build in the copy to what was built of the repository."""


def run_both(where: Path, *command: str, **variables: str) -> tuple[str, str]:
    """The output and the messages of a command that has to succeed."""
    own = {key: value for key, value in os.environ.items() if key not in HERE_ALONE}
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False, env=own | variables)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout, done.stderr


def run(where: Path, *command: str, **variables: str) -> str:
    """The output of a command that has to succeed."""
    return run_both(where, *command, **variables)[0]


def changed(where: Path) -> set[str]:
    """Files that differ from the commit of the copy, and new ones."""
    return {line[3:] for line in run(where, "git", "status", "--porcelain", "--untracked-files=all").splitlines()}


@pytest.fixture(scope="module")
def laid_down(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the repository after `make policy NAME=edf`."""
    copy = tmp_path_factory.mktemp("repository")
    listed = run(REPOSITORY, "git", "ls-files", "--cached", "--others", "--exclude-standard")
    vectors = run(REPOSITORY, "git", "ls-files", "--others", "--ignored", "--exclude-standard", "vectors")
    for name in (listed + vectors).splitlines():
        if (REPOSITORY / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, copy / name)
    run(copy, "git", "init", "--quiet")
    run(copy, "git", "add", "--all")
    run(copy, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "--message=start")
    run(copy, "make", "policy", f"NAME={POLICY}")
    yield copy
    shutil.rmtree(copy / "target", ignore_errors=True)  # 2.4 GB, which pytest would keep three times


@pytest.fixture(scope="module")
def written(laid_down: Path) -> Path:
    """The same with the policy in place of the stubs."""
    for source, place in lay_down.PLACES.items():
        shutil.copyfile(WRITTEN / source, laid_down / place.replace("NAME", POLICY))
    run(laid_down, sys.executable, "oracle/generate.py", POLICY)
    return laid_down


def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(laid_down: Path) -> None:
    before = changed(laid_down)
    for name, why in {
        "Edf": "a policy is named by 1 to 15 of a-z",
        "earliest_deadline": "a policy is named by 1 to 15 of a-z",
        "pf": "lists it already",
        "select": "would hide a module of Python",
        "tauran_pf": "has it already",
        POLICY: "lists it already",
    }.items():
        done = subprocess.run(
            ["make", "policy", f"NAME={name}"], cwd=laid_down, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert why in done.stderr
    assert changed(laid_down) == before


def test_nothing_is_written_when_a_part_cannot_be(laid_down: Path) -> None:
    before, page = changed(laid_down), laid_down / "docs/howto/choose.md"
    text = page.read_text()
    page.write_text(text.replace("| policy | guarantees | source |", "| policy |"))
    table_gone = changed(laid_down)
    done = subprocess.run(["make", "policy", "NAME=other"], cwd=laid_down, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert changed(laid_down) == table_gone
    page.write_text(text)
    generator = laid_down / "oracle/generate.py"
    works = generator.read_text()
    generator.write_text("raise SystemExit(1)\n")
    done = subprocess.run(["make", "policy", "NAME=other"], cwd=laid_down, capture_output=True, text=True, check=False)
    generator.write_text(works)
    assert done.returncode == 2
    assert changed(laid_down) == before


def test_the_manual_page_has_the_date_of_its_making(monkeypatch: pytest.MonkeyPatch) -> None:
    class Calendar(datetime.date):
        @classmethod
        def today(cls) -> Calendar:
            return cls(2031, 4, 5)

    monkeypatch.setattr(datetime, "date", Calendar)
    assert lay_down.filled("man.8", POLICY).splitlines()[1] == '.TH EDF 8 2031-04-05 "Linkweir" "Linux"'


def test_stubs_give_the_answers_of_their_vectors(laid_down: Path) -> None:
    run(laid_down, "make", "-C", "core", "complete", "build/gcc/replay")
    vectors = sorted((laid_down / "vectors" / POLICY).glob("*.vec"))
    assert len(vectors) > 3
    run(laid_down, "core/build/gcc/replay", *map(str, vectors))


def test_the_core_without_a_part_of_a_policy_is_refused(laid_down: Path) -> None:
    parts = lay_down.places(POLICY, laid_down)
    parts.pop("man.8")  # test_manual_pages.py misses that: a policy that Linux has is no qdisc of ours
    for part in parts.values():
        hidden = part.with_name("hidden")
        part.rename(hidden)
        done = subprocess.run(
            ["make", "-C", "core", "quick"], cwd=laid_down, capture_output=True, text=True, check=False
        )
        hidden.rename(part)
        assert done.returncode == 2
        assert f"the policy {POLICY} lacks" in done.stderr


@pytest.fixture(scope="module")
def package(written: Path) -> Path:
    """A folder with the Python package of the copy, installed."""
    tools, built, folder = Path(sys.executable).parent, written / "target/wheel", written / "target/package"
    maturin = (str(tools / "maturin"), "build", "--release", "--locked", "--quiet", "--out", str(built))
    run(written, *maturin, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")
    [wheel] = built.iterdir()
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps")
    run(written, *pip, "--disable-pip-version-check", "--target", str(folder), str(wheel))
    return folder


def assert_only_laid_down(written: Path) -> None:
    """What is touched is what `make policy` made, and one line in the list of policies."""
    assert changed(written) == {
        "core/include/linkweir/policies.def",
        "core/proofs/plan.toml",
        *lay_down.ROWS,
        *(place.replace("NAME", POLICY) for place in lay_down.PLACES.values()),
        f"vectors/{POLICY}/SHA256SUMS",
    }
    added = run(written, "git", "diff", "--numstat", "core/include/linkweir/policies.def")
    assert added.split()[:2] == ["1", "0"]


def test_only_what_was_laid_down_is_touched(written: Path) -> None:
    assert_only_laid_down(written)


def test_the_policy_passes_the_tests_of_core_and_models(written: Path) -> None:
    run(written, "make", "-C", "core", "quick", "CC_QUICK=gcc", "SEEDS=20")
    run(written, sys.executable, "-m", "pytest", "--quiet", "oracle", "-k", f"{POLICY} or every_policy")
    run(written, sys.executable, "oracle/generate.py", "--check", POLICY)


def test_tc_explains_the_policy(written: Path) -> None:
    tc = shutil.which("tc", path=f"{os.environ['PATH']}{os.pathsep}/sbin{os.pathsep}/usr/sbin")
    if tc is None:
        pytest.skip("tc is missing: ./setup.sh kernel-test names its package")
    run(written, "make", "-C", "kernel", "plugins")
    words = [tc, "qdisc", "add", "dev", "lo", "root", POLICY, "help"]
    plugins = os.environ | {"TC_LIB_DIR": str(written / "kernel/build/tc")}
    shown = subprocess.run(words, env=plugins, capture_output=True, text=True, check=False).stderr
    assert f"Usage: ... {POLICY} classes N" in shown
    of_a_class = shown.split("\nof a class:\n")[1]
    assert re.search(r"^  deadline +how long .* is due\n +0ns \.\. 3600s, default 100ms$", of_a_class, re.M)


def test_the_policy_is_proved(written: Path) -> None:
    if shutil.which("frama-c") is None:
        pytest.skip("frama-c is missing: ./setup.sh prove names its package")
    shown = run(written, "make", "-C", "core", "prove", f"ONLY={POLICY}")
    rows = [line.split() for line in shown.splitlines() if line.startswith(f"eva    {POLICY} ")]
    assert [row[2] for row in rows] == ["1", "2", "3", "64"]
    assert all(int(row[3]) > 0 for row in rows)
    assert "proofs: all as recorded" in shown


@pytest.mark.long
def test_the_policy_passes_the_tests_of_rust(written: Path) -> None:
    shown = run(written, "cargo", "test", "--locked", "--workspace", "--", "--skip", "long::")
    for name in ("the_classes_of_a_peer_are_served", "the_peers_of_a_hub_are_served"):
        assert re.search(rf"^test {name}_as_the_policy_says \.\.\. ok$", shown, re.M)
    assert_only_laid_down(written)


@pytest.mark.long
def test_the_simulator_serves_by_deadline(written: Path, package: Path, tmp_path: Path) -> None:
    def linkweir(*words: str) -> str:
        return run(tmp_path, str(package / "bin/linkweir"), *words, PYTHONPATH=str(package))

    assert re.search(rf"^{POLICY} +earliest deadline first$", linkweir("policies"), re.M)
    assert "how long after its arrival a packet is due" in linkweir("policies", POLICY)
    (tmp_path / "edf.toml").write_text(SCENARIO)
    rest, urgent = json.loads(linkweir("run", "edf.toml", "--json"))["classes"]
    assert urgent["class"] == "urgent"
    assert urgent["sent_pkts"] > 1000
    assert urgent["delay_mean_s"] < rest["delay_mean_s"] / 2
    assert_only_laid_down(written)


@pytest.mark.long
def test_the_policy_passes_the_tests_of_python(written: Path, package: Path) -> None:
    tests = (sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "oracle", "python/tests")
    run(written, *tests, "-m", "not slow and not long", PYTHONPATH=str(package))
    assert_only_laid_down(written)


@pytest.mark.long
def test_the_module_passes_the_suite_of_the_kernel(written: Path) -> None:
    output, messages = run_both(written, "make", "-C", "kernel", "test", f"PYTHON={sys.executable}")
    if "checks held" not in output:
        pytest.skip(messages.strip())
    kernels = re.findall(r"^(\S+): \d+ checks held, 0 failed \((.*)\)$", output, re.M)
    assert len(kernels) + messages.count("NOT TESTED on") == 2
    for kernel, log in kernels:
        assert f"{kernel}: {POLICY} replayed: " in output
        text = (written / "kernel" / log).read_text(errors="replace")
        for check in (POLICY, f"{POLICY} takes deadline 100000000ns of a class", f"{POLICY} drains"):
            assert f"ok - {check}\n" in text.replace("\r", "")
        assert f"ok - {POLICY} deadline 3600000000001ns" in text
    assert_only_laid_down(written)
