# SPDX-License-Identifier: BSD-3-Clause
"""Tries the committed tree on bare Debian systems that have only make, git and ca-certificates.

    python3 machines/fresh.py [--part demo|check|deb] [--mirror URL] [--security-mirror URL] [SYSTEM ...]

* demo: `make demo` as a plain user prints an apt-get line for root; root's `make demo` works; then a plain user's does.
  The printed line is run on a second bare system and must install the same packages as root's `make demo`.
* check: root's `make check`, and `make format`.
* deb: root's `make deb` on a separate bare system; on another one `dpkg -i` and `apt-get -f install`, and the
  installed program runs. A package built on Debian 12 is also installed on Debian 13.

The system debian-12-security needs an archive of Debian's security updates. If this machine's apt has none, name one
with --security-mirror URL: `make fresh SYSTEMS="--security-mirror URL"`, or for this system alone
`make fresh SYSTEMS="--security-mirror URL debian-12-security"`.

The output ends with a table of times, which is also written to build/fresh/record.md after each system. A bare system
is made once and kept in build/fresh for later runs, until --renew. A system on which a step failed is kept, with its
log.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import bare

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build/fresh"
PRESENT = ["make", "git", "ca-certificates"]
PARTS = ("demo", "check", "deb")
BUNDLE = "srv/linkweir.bundle"
CLONE = f"git -c init.defaultBranch=main init -q linkweir; cd linkweir; git pull -q /{BUNDLE} HEAD"
CLEAN = "cd linkweir; make clean; test ! -e target"
INSTALLED = "dpkg-query --show --showformat '${Package} ${Version}\\n'"
EXAMPLES = "/usr/share/doc/linkweir-gateway/examples"
# With `set -e` a grep that finds nothing ends the script; in the words of `for` its exit code would be lost.
CHECK_EXAMPLES = (
    f"gateways=$(grep -l '^\\[gateway\\]' {EXAMPLES}/*); "
    "for f in $gateways; do linkweir-gateway check --cleartext $f; done"
)
NO_SECURITY_MIRROR = (
    "this machine's apt knows no security archive of Debian, which debian-12-security needs. Name one with "
    '--security-mirror URL, or make fresh SYSTEMS="--security-mirror URL"; or leave that system out: '
    'make fresh SYSTEMS="debian-12 debian-13"'
)


@dataclass(frozen=True)
class System:
    """A release of Debian, and whether its security archive is known to apt."""

    name: str
    suite: str
    security: bool


SYSTEMS = {
    system.name: system
    for system in (
        System("debian-12", "bookworm", security=False),
        System("debian-12-security", "bookworm", security=True),
        System("debian-13", "trixie", security=False),
    )
}


class TrialError(Exception):
    """A step did not do what it should."""


@dataclass
class Trial:
    """The trial on one system."""

    system: System
    options: argparse.Namespace
    record: list[tuple[str, str, float, float]] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return WORK / f"{self.system.name}.log"

    def base(self) -> Path:
        """The bare system of a release, as a tar file."""
        packed, place = WORK / f"{self.system.suite}.tar", WORK / f"{self.system.suite}-base"
        if not packed.exists():
            with self.log.open("ab") as log:
                if not bare.bootstrap(self.system.suite, place, PRESENT, log, self.options.mirror):
                    raise TrialError(f"debootstrap failed, see {self.log}")
            # as in an image: without apt's lists and archives
            for path in (*place.glob("var/lib/apt/lists/*_*"), *place.glob("var/cache/apt/archives/*.deb")):
                path.unlink()
            run("tar", "-C", place, "-c", "-f", packed.with_suffix(".new"), ".")
            packed.with_suffix(".new").rename(packed)
            shutil.rmtree(place)
        return packed

    def machine(self, name: str) -> Path:
        """A bare system to work in, with an account `user`."""
        place = WORK / f"{self.system.name}-{name}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        run("tar", "-C", place, "-x", "-f", self.base())
        if self.system.security:
            with (place / "etc/apt/sources.list").open("a") as sources:
                sources.write(f"deb {self.options.security_mirror} {self.system.suite}-security main\n")
        (place / "etc/apt/apt.conf.d/91yes").write_text('APT::Get::Assume-Yes "true";\n')
        with self.log.open("ab") as log:
            bare.carry_settings(place, log)
        git("bundle", "create", "--quiet", place / BUNDLE, "HEAD")
        self.step(place, "", "useradd --create-home --shell /bin/sh user")
        return place

    def step(self, place: Path, what: str, script: str, user: str = "root", *, fails: bool = False) -> str:
        """Runs a script and returns its output. Records its times if `what` names it."""
        if what:
            print(f"fresh: {self.system.name}: {what}", flush=True)
        wall, processor = time.monotonic(), processor_s()
        with self.log.open("ab") as log:
            log.write(f"\n=== {what or script}\n".encode())
            log.flush()
            begin = log.tell()
            code = bare.run(place, script, log, user)
        with self.log.open("rb") as log:
            log.seek(begin)
            printed = log.read().decode(errors="replace")
        if (code != 0) != fails:
            print(printed[-3000:], file=sys.stderr)
            raise TrialError(f"{what or script}: exit code {code}; see {self.log} and {place}")
        if what:
            self.record.append((self.system.name, what, time.monotonic() - wall, processor_s() - processor))
        return printed

    def run(self) -> None:
        if {"demo", "check"} & set(self.options.parts):
            self.demo_and_check()
        if "deb" in self.options.parts:
            self.deb()

    def demo_and_check(self) -> None:
        place = self.machine("machine")
        self.step(place, "", CLONE)
        self.step(place, "", CLONE, "user")
        if "demo" in self.options.parts:
            self.demo(place)
        if "check" in self.options.parts:
            printed = self.step(place, "make check as root", "cd linkweir; make check")
            for line in re.findall(r"^(?:check: .*|\d+ passed.*)$", printed, re.MULTILINE):
                print(f"fresh: {self.system.name}: {line}", flush=True)
            self.step(place, "", "cd linkweir; make format")
        self.step(place, "", CLEAN)
        shutil.rmtree(place)

    def deb(self) -> None:
        # a separate system: after `make demo`, tools that `make deb` forgets to install would already be there
        place = self.machine("deb")
        self.step(place, "", CLONE)
        self.step(place, "make deb as root", "cd linkweir; make deb")
        package = WORK / f"{self.system.name}.deb"
        shutil.copy(place / "root/linkweir/build/linkweir-gateway.deb", package)
        self.install(package)
        if self.system.name == "debian-13" and (older := WORK / "debian-12.deb").exists():
            self.install(older)
        self.step(place, "", CLEAN)
        shutil.rmtree(place)

    def demo(self, place: Path) -> None:
        demo = "cd linkweir; make demo"
        printed = self.step(place, "", demo, "user", fails=True)
        lines = re.findall(r"as root: (apt-get .*)$", printed, re.MULTILINE)
        if len(lines) != 1:
            raise TrialError(
                f"make demo as a plain user prints {len(lines)} apt-get lines for root, not one:\n{printed}"
            )
        self.step(place, "make demo as root", demo)
        other = self.machine("line")
        self.step(other, "", lines[0])
        if (ours := self.step(place, "", INSTALLED)) != (theirs := self.step(other, "", INSTALLED)):
            differing = sorted(set(ours.splitlines()) ^ set(theirs.splitlines()))
            raise TrialError(f"make demo as root installs other packages than '{lines[0]}': {differing}")
        print(f"fresh: {self.system.name}: the apt line shown to a plain user is sufficient: {lines[0]}", flush=True)
        shutil.rmtree(other)
        self.step(place, "make demo as a plain user", demo, "user")

    def install(self, package: Path) -> None:
        place = self.machine("installed")
        shutil.copy(package, place / "root/linkweir-gateway.deb")
        script = "apt-get update -qq; dpkg -i linkweir-gateway.deb || apt-get -f install\n"
        script += f"cd /; linkweir-gateway --version; {CHECK_EXAMPLES}"
        self.step(place, f"{package.name} installed", script)
        shutil.rmtree(place)


def processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True)


def git(*words: object) -> str:
    """Runs git in this checkout, which may belong to another user, and returns its output."""
    command = ["git", "--no-optional-locks", "-c", f"safe.directory={ROOT}", "-C", ROOT, *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise TrialError(f"git {words[0]} in {ROOT} failed: {done.stderr.strip()}")
    return done.stdout


def minutes(seconds: float) -> str:
    return f"{int(seconds // 60)} min {int(seconds % 60):02} s"


def table(record: list[tuple[str, str, float, float]]) -> str:
    lines = ["| system | step | time | processor time |", "|---|---|---|---|"]
    lines += [f"| {name} | {what} | {minutes(wall)} | {minutes(used)} |" for name, what, wall, used in record]
    return "\n".join(lines) + "\n"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Tries the committed tree on bare Debian systems.")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"{', '.join(SYSTEMS)}; default: all")
    parser.add_argument("--part", dest="parts", action="append", choices=PARTS, help="may be repeated; default: all")
    parser.add_argument("--mirror", default=bare.mirror("Debian"), help="Debian mirror (default: this machine's)")
    parser.add_argument(
        "--security-mirror", default=bare.mirror("Debian-Security"), help="mirror of Debian's security updates"
    )
    parser.add_argument("--renew", action="store_true", help="make the bare systems again")
    options = parser.parse_args()
    if unknown := set(options.systems) - set(SYSTEMS):
        parser.error(f"no system {', '.join(sorted(unknown))}; there are {', '.join(SYSTEMS)}")
    options.systems = options.systems or list(SYSTEMS)
    if options.security_mirror is None and any(SYSTEMS[name].security for name in options.systems):
        parser.error(NO_SECURITY_MIRROR)
    options.parts = options.parts or PARTS
    return options


def main() -> int:
    options = parse()
    if os.geteuid() != 0:
        print("fresh: bare systems need root", file=sys.stderr)
        return 1
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        commit, changes = git("rev-parse", "--short", "HEAD"), git("status", "--porcelain")
    except TrialError as error:
        print(f"fresh: {error}", file=sys.stderr)
        return 1
    if changes:
        print("fresh: uncommitted changes are ignored")
    if options.renew:
        for system in SYSTEMS.values():
            (WORK / f"{system.suite}.tar").unlink(missing_ok=True)
    about = [commit.strip(), time.strftime("%Y-%m-%d"), f"{os.cpu_count()} processors", f"Linux {platform.release()}"]
    record: list[tuple[str, str, float, float]] = []
    failures: list[str] = []
    text = ""
    for name in options.systems:
        trial = Trial(SYSTEMS[name], options)
        trial.log.unlink(missing_ok=True)
        try:
            trial.run()
        except (TrialError, subprocess.CalledProcessError, RuntimeError, OSError) as error:
            failures.append(f"{name}: {error}")
            print(f"fresh: {name}: FAILED: {error}", file=sys.stderr)
        record += trial.record
        # after each system, so that what is finished is kept if a later one is killed
        text = ", ".join(about) + "\n\n" + table(record) + "".join(f"\nFAILED: {failure}\n" for failure in failures)
        (WORK / "record.md").write_text(text)
    print(text)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
