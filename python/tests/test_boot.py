# SPDX-License-Identifier: BSD-3-Clause
"""The scripts that set a queueing discipline at boot, with programs that stand for tc and systemctl."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command import REPOSITORY

BOOT = REPOSITORY / "kernel/boot"
WORDS = "preset voice bandwidth 18mbit"
PRESENT = "qdisc pss 8001: root refcnt 2 classes 3 link 18Mbit"


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def called(folder: Path, script: str, *words: str, present: str = PRESENT, **settings: str) -> str:
    """What a script of kernel/boot gives to tc, or to the other script, in a system whose files are in `folder`."""
    text = (BOOT / script).read_text()
    for place in ("/etc/linkweir/qdisc", "/usr/lib/linkweir", "/run/systemd"):
        text = text.replace(place, f"{folder}{place}")
    program(folder / script, text.removeprefix("#!/bin/sh\n"))
    (folder / "bin").mkdir(exist_ok=True)
    program(folder / "bin/tc", f'[ "$*" = "qdisc show dev $4 root" ] && exec echo "{present}"\necho "$@"')
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", **settings}
    done = subprocess.run([folder / script, *words], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def describe(folder: Path, device: str, text: str) -> None:
    place = folder / "etc/linkweir/qdisc"
    place.mkdir(parents=True, exist_ok=True)
    (place / device).write_text(text)


def test_the_words_of_a_file_are_given_to_tc(tmp_path: Path) -> None:
    describe(tmp_path, "eth0", "# the uplink\npss preset voice  # three classes\n\tbandwidth 18mbit\n")
    assert called(tmp_path, "qdisc", "start", "eth0") == f"qdisc replace dev eth0 root pss {WORDS}\n"


@pytest.mark.parametrize("before", ["", "handle 1: ", "est 1s 8s ", "handle 1: stab overhead 20 linklayer atm "])
def test_what_a_file_made_is_removed(tmp_path: Path, before: str) -> None:
    describe(tmp_path, "eth0", f"{before}pss {WORDS}\n")
    assert called(tmp_path, "qdisc", "stop", "eth0") == "qdisc del dev eth0 root\n"


@pytest.mark.parametrize(
    "present", ["qdisc fq_codel 0: root refcnt 2 limit 10240p", "qdisc noqueue 0: root refcnt 2", ""]
)
def test_another_qdisc_stays(tmp_path: Path, present: str) -> None:
    describe(tmp_path, "eth0", f"pss {WORDS}\n")
    assert called(tmp_path, "qdisc", "stop", "eth0", present=present) == ""


@pytest.mark.parametrize(("device", "instance"), [("eth0", "eth0"), ("br-lan", "br\\x2dlan")])
def test_ifupdown_leaves_a_device_to_its_unit(tmp_path: Path, device: str, instance: str) -> None:
    describe(tmp_path, device, f"pss {WORDS}\n")
    (tmp_path / "usr/lib/linkweir").mkdir(parents=True)
    program(tmp_path / "usr/lib/linkweir/qdisc", 'echo "$@"')
    (tmp_path / "bin").mkdir()
    # of systemd: its escape of a name, and a list of the units that are enabled
    program(tmp_path / "bin/systemd-escape", 'printf "%s\\n" "$1" | sed "s/-/\\\\\\\\x2d/g"')
    program(tmp_path / "bin/systemctl", '[ "$3" = "$(cat "${0%/*}/enabled")" ]')
    enabled = tmp_path / "bin/enabled"
    enabled.write_text("linkweir-qdisc@eth9\n")
    assert called(tmp_path, "if-up", IFACE=device) == f"start {device}\n"
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    assert called(tmp_path, "if-up", IFACE=device) == f"start {device}\n"
    enabled.write_text(f"linkweir-qdisc@{instance}\n")
    assert called(tmp_path, "if-up", IFACE=device) == ""
