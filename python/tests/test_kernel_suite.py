# SPDX-License-Identifier: BSD-3-Clause
"""The programs of the kernel suite: parts that need no guest."""

from __future__ import annotations

import importlib
import subprocess
import time
from pathlib import Path
from types import ModuleType

import pytest
from command import REPOSITORY


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    monkeypatch.syspath_prepend(REPOSITORY / "kernel/tests")
    return importlib.import_module(request.param)


@pytest.mark.parametrize("suite", ["kernels", "router"], indirect=True)
def test_a_program_of_parts_runs_without_words(suite: ModuleType) -> None:
    assert vars(suite.arguments([]))["parts" if suite.__name__ == "kernels" else "systems"] == []


def test_a_module_has_no_kind_of_an_earlier_build(tmp_path: Path) -> None:
    """Kbuild takes all files of kinds that are in the folder. The headers here build nothing."""
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers/Makefile").write_text("modules:\n")
    folder = tmp_path / "build/6.1"
    folder.mkdir(parents=True)
    stale = [folder / f"kind_old.{ending}" for ending in ("c", "o", "mod")]
    for path in stale:
        path.write_text("")
    build = [f"B={tmp_path / 'build'}", f"HEADERS={tmp_path / 'headers'}", str(folder / "sch_linkweir.ko")]
    subprocess.run(["make", "-s", "-C", REPOSITORY / "kernel", *build], check=True, capture_output=True)
    assert (folder / "kind_pss.c").exists()
    assert [path.name for path in stale if path.exists()] == []


@pytest.mark.parametrize("suite", ["broken"], indirect=True)
def test_each_planted_fault_fits_one_place_of_the_module(suite: ModuleType, tmp_path: Path) -> None:
    build = ["make", "-s", "-C", REPOSITORY / "kernel", f"B={tmp_path}", str(tmp_path / "tree/.made")]
    subprocess.run(build, check=True, capture_output=True)
    places = {mutant.name: (tmp_path / "tree" / mutant.file).read_text().count(mutant.old) for mutant in suite.MUTANTS}
    assert [name for name, number in places.items() if number != 1] == []


@pytest.mark.parametrize("suite", ["broken"], indirect=True)
def test_planted_faults_are_chosen_by_name_and_by_script(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = []

    def run(_: object, fault: str, *__: object) -> tuple[int, str]:
        tried.append(fault)
        return int(fault != "none"), "a check failed"

    monkeypatch.setattr(suite, "BUILD", tmp_path)
    monkeypatch.setattr(suite, "build", lambda _, mutant: mutant.name if mutant else "none")
    monkeypatch.setattr(suite, "run", run)

    def main(*names: str) -> int:
        monkeypatch.setattr("sys.argv", ["broken.py", "6.12", *names])
        return int(suite.main())

    of_queues = [mutant.name for mutant in suite.MUTANTS if mutant.script == "queues"]
    assert main("queues", "memory is not counted") == 0
    assert tried == ["none", *of_queues, "memory is not counted"]
    assert capsys.readouterr().out.endswith(f"{len(of_queues) + 1} of {len(of_queues) + 1} faults noticed\n")
    for name in ("memory", "settings are used after they are freed"):  # the second is for another kernel
        with pytest.raises(SystemExit, match=f"broken: no fault for a stock kernel and no script is called '{name}'"):
            main("queues", name)


@pytest.mark.parametrize("suite", ["run"], indirect=True)
def test_a_name_that_the_kernel_has_is_refused(suite: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "lib/modules/6.1"
    folder.mkdir(parents=True)
    (folder / "modules.order").write_text("kernel/net/sched/sch_htb.ko\nkernel/net/sched/sch_lw_pf.ko\n")
    (folder / "modules.builtin").write_text("kernel/net/sched/sch_fq_codel.ko\n")
    kinds = ["pss", "lw_pf", "lw_codes", "fq_codel"]
    assert suite.taken(tmp_path, "6.1", kinds) == [
        "this kernel has a qdisc lw_pf of its own",
        "this kernel has a qdisc fq_codel of its own",
    ]
    assert suite.taken(tmp_path, "6.1", ["pss"]) == []
    for path in folder.iterdir():
        path.write_text("")
    assert suite.taken(tmp_path, "6.1", kinds) == [f"no qdisc in {folder}/modules.order"]


@pytest.mark.parametrize("suite", ["run"], indirect=True)
@pytest.mark.parametrize(("until", "ended"), [("lock state", True), ("data-race", False)])
def test_a_guest_that_hangs_after_a_fault_that_was_looked_for_is_ended(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, until: str, ended: bool
) -> None:
    """A report of a race that does not count is not whole at first: the guest writes the rest during the wait."""
    sleep, waited = time.sleep, []

    def wait(seconds: float) -> None:
        if seconds == suite.REPORT_S:
            waited.append(seconds)
            (tmp_path / "waits").touch()
            while not (tmp_path / "log").read_text().endswith(f"x\n{rule}\n"):
                sleep(0.01)
        else:
            sleep(0.01)

    monkeypatch.setattr(suite.time, "sleep", wait)
    rule = "=" * 66
    race = f"{rule}\nBUG: KCSAN: data-race in tc_fill_qdisc / linkweir_apply\n\nread: tc_fill_qdisc+0x1\n\nwrite: x"
    rest = f"until [ -e '{tmp_path}/waits' ]; do sleep 0.1; done; echo {rule}; exec sleep {60 if ended else 3}"
    hangs = f"echo WARNING: inconsistent lock state; echo '{race}'; {rest}"
    with (tmp_path / "log").open("wb") as log:
        guest = subprocess.Popen(["timeout", "120", "sh", "-c", hangs], stdout=log)
        assert suite.finished(guest, tmp_path / "log", until) not in ({0, 124} if ended else {124})
    assert guest.returncode == 0 or ended
    assert len(waited) >= 1


@pytest.mark.parametrize("suite", ["run"], indirect=True)
@pytest.mark.parametrize(
    ("write", "read", "counts"),
    [
        ("linkweir_dequeue+0x1/0x2 [sch_linkweir]", "linkweir_class_dump_stats+0x1/0x2 [sch_linkweir]", True),
        (
            "linkweir_dequeue+0x1/0x2 [sch_linkweir]",
            "linkweir_dump+0x1/0x2 [sch_linkweir]\n tc_fill_qdisc+0x1/0x2",
            True,
        ),
        ("linkweir_dequeue+0x1/0x2 [sch_linkweir]", "gnet_stats_add_queue+0x1/0x2\n tc_fill_qdisc+0x1/0x2", False),
        ("netem_enqueue+0x1/0x2", "udp_sendmsg+0x1/0x2", False),
    ],
)
def test_a_race_counts_if_the_module_could_prevent_it(suite: ModuleType, write: str, read: str, counts: bool) -> None:
    title = f"BUG: KCSAN: data-race in {write.split('+')[0]} / {read.split('+')[0]}"
    accesses = f"write to 0x1 of 4 bytes:\n {write}\n\nread to 0x1 of 4 bytes:\n {read}"
    rule = "=" * 66
    report = f"{rule}\n{title}\n\n{accesses}\n\nvalue changed: 0x1 -> 0x2\n{rule}"
    wrong = suite.judge(f"# stress\nok - packets pass\n{report}\nended stress", ["stress"])
    assert [line.startswith("kernel log: BUG: KCSAN") for line in wrong] == ([True] if counts else [])
