# SPDX-License-Identifier: GPL-2.0-only
"""Tries the series on the trees that it was applied to. Each step prints what it found, and fails at the first fault.

checkpatch   scripts/checkpatch.pl --strict has nothing to say about any patch
lines        net/sched/sch_pss.c has at most 1,900 lines
i386         sch_pss.o for 32 bits with W=1, without a warning and without a division that the kernel lacks
sparse       has nothing to say about sch_pss.c, except where it says the same about a qdisc of the kernel's own
kunit        user-mode Linux with sch_pss built in boots, and every vector passes; then a module, sch_pss.ko
planted      the vectors find a fault that is planted in the algorithm
ynl          the specification is valid, and code is made from it
tc           iproute2 with q_pss.c compiles without a warning; its manual page is well-formed
tdc          the kernel's own tdc runs its cases for pss, in user-mode Linux with this tc
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sources import cache

HERE = Path(__file__).parent
I386 = """CONFIG_KUNIT=y
CONFIG_PRINTK=y
CONFIG_MODULES=y
CONFIG_NET=y
CONFIG_INET=y
CONFIG_NET_SCHED=y
CONFIG_NET_CLS_ACT=y
CONFIG_NET_SCH_PSS=y
CONFIG_NET_SCH_PSS_KUNIT_TEST=y
CONFIG_DEBUG_NET=y
"""
MOST_LINES = 1900
TIMED_OUT = 124
"""Exit code of timeout."""
DIVISIONS = ("__udivdi3", "__divdi3", "__umoddi3", "__moddi3")


class FaultError(Exception):
    """A step found something wrong."""


def call(command: list[str | Path], folder: Path, good: tuple[int, ...] = (0,), **words: str) -> str:
    """Output of a command, errors included.

    Raises:
        FaultError: its exit code is none of `good`.
    """
    environment = {**os.environ, "LC_ALL": "C", **words}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    text = done.stdout.decode(errors="replace")
    if done.returncode not in good:
        raise FaultError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{text[-3000:]}")
    return text


class Trial:
    def __init__(self, tree: Path, tools: Path, out: Path) -> None:
        self.tree, self.tools, self.out = tree, tools, out

    def made(self, architecture: str, config: str) -> Path:
        """A folder of builds with this configuration."""
        folder = cache() / f"build-{architecture}"
        folder.mkdir(exist_ok=True)
        wanted = folder / "wanted.config"
        if not wanted.exists() or wanted.read_text() != config or not (folder / ".config").exists():
            self.make(architecture, folder, "tinyconfig")
            wanted.write_text(config)
            merge = self.tree / "scripts/kconfig/merge_config.sh"
            call([merge, "-m", "-O", folder, folder / ".config", wanted], self.tree)
        self.make(architecture, folder, "olddefconfig")
        chosen = (folder / ".config").read_text().splitlines()
        for line in config.splitlines():
            if line.startswith("CONFIG_") and not line.endswith("=n") and line not in chosen:
                raise FaultError(f"{line} is refused by {self.tree.name}")
        return folder

    def make(self, architecture: str, folder: Path, *words: str) -> str:
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        return call(["make", "-s", jobs, f"ARCH={architecture}", f"O={folder}", *words], self.tree)

    def i386_folder(self) -> Path:
        return self.made("i386", I386)

    def um_folder(self) -> Path:
        return self.made("um", (HERE / "um.config").read_text())


def checkpatch(trial: Trial) -> str:
    patches = sorted(path for path in trial.out.glob("linux/*.patch") if not path.name.startswith("0000"))
    for patch in patches:
        # 1 as its exit code says that it has found something, which the text tells
        text = call(["perl", "scripts/checkpatch.pl", "--strict", patch], trial.tree, good=(0, 1))
        if "total: 0 errors, 0 warnings, 0 checks" not in text:
            raise FaultError(text)
    return f"{len(patches)} patches, nothing to say"


def lines(trial: Trial) -> str:
    count = len((trial.tree / "net/sched/sch_pss.c").read_text().splitlines())
    if count > MOST_LINES:
        raise FaultError(f"sch_pss.c has {count} lines")
    return f"{count} lines"


def i386(trial: Trial) -> str:
    folder = trial.i386_folder()
    (folder / "net/sched/sch_pss.o").unlink(missing_ok=True)
    said = trial.make("i386", folder, "W=1", "net/sched/sch_pss.o")
    if "warning" in said:
        raise FaultError(said)
    wanted = call(["nm", "-u", folder / "net/sched/sch_pss.o"], folder).split()
    if lacking := set(DIVISIONS) & set(wanted):
        raise FaultError(f"sch_pss.o needs {', '.join(lacking)}")
    return "no warning, no division that the kernel lacks"


def sparse(trial: Trial) -> str:
    folder = trial.i386_folder()
    for name in ("sch_pss", "sch_ets"):
        (folder / f"net/sched/{name}.o").unlink(missing_ok=True)
    # Debian's sparse does not know this word of C23; the difference, qualifiers, does not matter to it
    check = "CHECK=sparse -D__typeof_unqual__=__typeof__"
    said = trial.make("i386", folder, "C=2", check, "net/sched/sch_pss.o", "net/sched/sch_ets.o")
    found = re.findall(r"net/sched/(sch_\w+)\.[ch]:(\d+):\d+: (.*)", said)
    source = (trial.tree / "net/sched/sch_pss.c").read_text().splitlines()
    # an old sparse rejects what MODULE_LICENSE() and the like are in this kernel, in every module
    accepted = {text for file, _, text in found if file == "sch_ets"}
    ours = [(line, text) for file, line, text in found if file.startswith("sch_pss")]
    left = [
        f"{line}: {text}"
        for line, text in ours
        if text not in accepted or not source[int(line) - 1].startswith("MODULE_")
    ]
    if left:
        raise FaultError("\n".join(left))
    return f"nothing to say, except about {len(ours)} lines MODULE_..., as in sch_ets.c"


def booted(trial: Trial, *words: str) -> str:
    """What user-mode Linux prints. Without a root it ends in a panic, by a signal."""
    kernel = trial.um_folder() / "linux"
    return call(
        ["timeout", "300", kernel, "mem=512M", "time-travel=inf-cpu", f"uml_dir={cache() / 'uml'}", *words],
        cache(),
        good=tuple(code for code in range(-64, 256) if code != TIMED_OUT),
    )


def results(text: str) -> tuple[int, int]:
    """How many vectors passed and failed, of what KUnit printed."""
    inner = re.findall(r"^ {8}(not ok|ok) \d+ ", text, re.MULTILINE)
    return inner.count("ok"), inner.count("not ok")


def kunit(trial: Trial) -> str:
    folder = trial.um_folder()
    said = trial.make("um", folder, "linux")
    if "sch_pss" in said:
        raise FaultError(said)
    text = booted(trial, "root=/dev/null")
    good, bad = results(text)
    expected = (trial.tree / "net/sched/sch_pss_vectors.h").read_text().count("ARRAY_SIZE(")
    if bad or good != expected or "BUG:" in text or "WARNING:" in text:
        raise FaultError(f"{good} of {expected} vectors passed\n{text[-3000:]}")
    return f"{good} vectors passed; {module(trial, folder)}"


def module(trial: Trial, folder: Path) -> str:
    """sch_pss.ko against the kernel that was just built."""
    separate = cache() / "build-module"
    shutil.rmtree(separate, ignore_errors=True)
    shutil.copytree(folder, separate, symlinks=True, ignore=shutil.ignore_patterns("*.o.cmd", "linux", "vmlinux"))
    config = (separate / ".config").read_text().replace("CONFIG_NET_SCH_PSS=y", "CONFIG_NET_SCH_PSS=m")
    (separate / ".config").write_text(
        config.replace("CONFIG_NET_SCH_PSS_KUNIT_TEST=y", "CONFIG_NET_SCH_PSS_KUNIT_TEST=n")
    )
    trial.make("um", separate, "olddefconfig")
    trial.make("um", separate, "net/sched/sch_pss.ko")
    stripped = separate / "stripped.ko"
    call(["strip", "--strip-debug", "-o", stripped, separate / "net/sched/sch_pss.ko"], separate)
    return f"sch_pss.ko of {stripped.stat().st_size} bytes"


def planted(trial: Trial) -> str:
    """A class at its low level returns one credit too late."""
    source = trial.tree / "net/sched/sch_pss.c"
    sound = source.read_text()
    old, new = "if (due <= now) {", "if (due < now) {"
    if sound.count(old) != 1:
        raise FaultError(f"{old} is not there once")
    try:
        source.write_text(sound.replace(old, new))
        trial.make("um", trial.um_folder(), "linux")
        good, bad = results(booted(trial, "root=/dev/null"))
    finally:
        source.write_text(sound)
        trial.make("um", trial.um_folder(), "linux")
    if not bad:
        raise FaultError(f"none of the vectors failed, {good} passed")
    return f"{bad} vectors failed, as they must"


def ynl(trial: Trial) -> str:
    tools = trial.tree / "tools/net/ynl/pyynl"
    spec = trial.tree / "Documentation/netlink/specs/tc.yaml"
    call([sys.executable, tools / "cli.py", "--spec", spec, "--validate"], trial.tree)
    code = call([sys.executable, tools / "ynl_gen_c.py", "--spec", spec, "--mode", "user", "--header"], trial.tree)
    if "struct tc_pss_class_attrs" not in code:
        raise FaultError("no structure for the attributes of a class")
    return "valid; code for user space was made"


def tc(trial: Trial) -> str:
    call(["./configure"], trial.tools)
    (trial.tools / "tc/q_pss.o").unlink(missing_ok=True)
    said = call(["make", "SUBDIRS=lib tc"], trial.tools)
    if re.search(r"q_pss\.c:.*warning", said):
        raise FaultError(said)
    shown = call(["mandoc", "-Tlint", "-Wwarning", "man/man8/tc-pss.8"], trial.tools, good=(0, 2))
    if shown.strip():
        raise FaultError(shown)
    return call([trial.tools / "tc/tc", "-V"], trial.tools).strip()


def tdc(trial: Trial) -> str:
    """In a kernel whose root is this machine's, read-only."""
    here = cache() / "tdc"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(trial.tree / "tools/testing/selftests/tc-testing", here)
    # tdc ends without ethtool, which no case here calls
    names = {"TC": f"{trial.tools}/tc/tc", "IP": shutil.which("ip"), "ETHTOOL": "/bin/true"}
    (here / "tdc_config_local.py").write_text(f"EXTRA_NAMES = {names}\n")
    init = here / "init.sh"
    init.write_text((HERE / "tdc_init.sh").read_text())
    init.chmod(0o755)
    text = booted(trial, "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}", "kunit.enable=0")
    good = len(re.findall(r"^ok \d+ \S+ - (?!.*# skipped)", text, re.MULTILINE))
    bad = re.findall(r"^not ok .*(?:\n\t.*)*", text, re.MULTILINE)
    expected = (here / "tc-tests/qdiscs/pss.json").read_text().count('"id":')
    if bad or good != expected:
        raise FaultError(f"{good} of {expected} cases passed\n" + "\n".join(bad) + f"\n{text[-2500:]}")
    return f"{good} cases passed"


STEPS: dict[str, Callable[[Trial], str]] = {
    step.__name__: step for step in (checkpatch, lines, i386, sparse, kunit, planted, ynl, tc, tdc)
}


def run(tree: Path, tools: Path, out: Path, steps: list[str]) -> int:
    held = [tried(name, Trial(tree, tools, out)) for name in steps]
    return 0 if all(held) else 1


def tried(name: str, trial: Trial) -> bool:
    try:
        print(f"series: {name}: {STEPS[name](trial)}", flush=True)
    except FaultError as fault:
        print(f"series: {name}: FAILED: {fault}", flush=True)
        return False
    return True
