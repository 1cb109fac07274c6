# SPDX-License-Identifier: BSD-3-Clause
"""Temporary folders go with their process, also with one that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import wait_until

from linkweir import scratch

HOLD = """
import sys
from linkweir.scratch import scratch
with scratch() as folder:
    (folder / "inner").mkdir()
    (folder / "inner/file").write_text("content")
    print(folder, flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that uses a folder until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    """Lets it end by itself."""
    process.communicate("")
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_next_process_removes_what_a_killed_one_left_and_nothing_else(
    tmp_path: Path, number: signal.Signals
) -> None:
    killed, left = holder(tmp_path)
    living, used = holder(tmp_path)
    killed.send_signal(number)
    killed.communicate()
    # Folders of others: a name that only looks similar, a file, a link, and a mode that no folder of ours has.
    near = tmp_path / f"{scratch.PREFIX}abcdefgh.kept"
    near.mkdir(mode=0o700)
    open_to_all = tmp_path / f"{scratch.PREFIX}open_000"
    open_to_all.mkdir(mode=0o755)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    link = tmp_path / f"{scratch.PREFIX}link_000"
    link.symlink_to(elsewhere)
    file = tmp_path / f"{scratch.PREFIX}file_000"
    file.write_text("")
    later, new = holder(tmp_path)
    assert not left.exists()
    assert (used / "inner/file").read_text() == "content"
    assert new.is_dir()
    end(living)
    end(later)
    assert set(tmp_path.iterdir()) == {near, open_to_all, elsewhere, link, file}


def test_a_folder_that_is_being_made_is_made_again_if_another_process_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    lock, removed = scratch.fcntl.flock, []

    def remove_first(held: int, how: int) -> None:
        if not removed:
            (folder,) = tmp_path.iterdir()
            folder.rmdir()
            removed.append(folder)
        lock(held, how)

    monkeypatch.setattr(scratch.fcntl, "flock", remove_first)
    with scratch.scratch() as folder:
        assert folder.is_dir()
        assert folder not in removed
    wait_until(lambda: not list(tmp_path.iterdir()), 5)
