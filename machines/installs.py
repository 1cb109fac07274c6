# SPDX-License-Identifier: BSD-3-Clause
"""Installs the files of a release on bare Debian systems, as its users would, and uses them there.

    python3 machines/installs.py [--release build/release] [--part wheel|sdist|gateway|kernel|image] [SYSTEM ...]

* wheel: without compiler, as a plain user: `python3 -m venv`, `pip install`, `linkweir init`, `linkweir run`.
* sdist: the same with gcc and Debian's Rust; the run's tables must have the bytes of the wheel's.
* gateway: the package, then a gateway that starts, shows its queues and stops.
* kernel: both packages, with headers of Debian's kernel: DKMS builds the module, tc knows the qdiscs.
* image: on Debian 13, the images that the Containerfile describes, built by buildah from that system.

Needs root, as machines/fresh.py does, whose bare systems it uses. The output ends with a table of times and what was
seen, which is also written to build/fresh/installs.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import bare
from fresh import CHECK_EXAMPLES, ROOT, SYSTEMS, WORK, System, Trial, TrialError, minutes, run

NAMES = ("debian-12", "debian-13")
RELEASE = "/srv/release"
NO_COMPILER = "for tool in cc gcc clang rustc cargo; do ! command -v $tool || exit 1; done"
VENV = "python3 -m venv env; env/bin/pip install --quiet --disable-pip-version-check"
# `linkweir init` writes scenarios/geo.toml
USE = """
mkdir own; cd own; PATH=~/env/bin:$PATH
linkweir --version; linkweir init; linkweir run scenarios/geo.toml --out out
linkweir policies --new mine.py; grep -q "^class" mine.py
echo SUM; cat out/results/*.parquet out/summary.json | sha256sum
"""
WITHOUT_COMPILER = """
cd own; PATH=~/env/bin:$PATH; linkweir policies --new mine.c
cat >mine.toml <<END
duration = "1s"
link = { rate = "10Mbit" }
scheduler = { policy = { c = "mine.c" } }
class = [{ name = "one" }]
flow = [{ class = "one", kind = "cbr", rate = "1Mbit" }]
END
linkweir run mine.toml
"""
TUNNEL = """
mkdir -p /dev/net; test -e /dev/net/tun || mknod /dev/net/tun c 10 200
unshare --net sh -ec '
linkweir-gateway up --cleartext {examples}/ground.toml & gateway=$!
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1; linkweir-gateway show --json >shown && break; done
kill $gateway; wait $gateway; grep -o "\\"policy\\": *\\"[a-z_]*\\"" shown'
"""
MODULE = """
for headers in /lib/modules/*/build; do
	kernel=$(basename $(dirname $headers))
	dkms status -m linkweir -k $kernel | grep -q installed || dkms install linkweir/{version} -k $kernel
	dkms status -m linkweir -k $kernel
	modinfo -k $kernel -F vermagic sch_linkweir
done
for page in /usr/share/man/man8/tc-*.8.gz; do
	kind=${{page##*/tc-}}; kind=${{kind%.8.gz}}
	test -e /usr/lib/*/tc/q_$kind.so || continue
	tc qdisc add dev lo root $kind help 2>&1 | grep -q "$kind" && echo "tc knows $kind"
done
"""


class Install(Trial):
    """The trial of a release on one system."""

    def __init__(self, system: System, options: argparse.Namespace) -> None:
        super().__init__(system, options)
        self.seen: list[tuple[str, str, str]] = []
        self.sums: dict[str, str] = {}

    @property
    def log(self) -> Path:
        return WORK / f"installs-{self.system.name}.log"

    def bare_machine(self, name: str) -> Path:
        """A bare system that has the files of the release."""
        place = self.machine(f"installs-{name}")
        shutil.copytree(self.options.release, place / RELEASE.lstrip("/"))
        self.step(place, "", f"chmod -R a+rX {RELEASE}; apt-get update -qq")
        return place

    def note(self, what: str, seen: str) -> None:
        self.seen.append((self.system.name, what, seen))
        print(f"installs: {self.system.name}: {what}: {seen}", flush=True)

    def run(self) -> None:
        parts: dict[str, Callable[[], None]] = {
            "wheel": self.wheel,
            "sdist": self.sdist,
            "gateway": self.gateway,
            "kernel": self.kernel,
            "image": self.image,
        }
        for name in self.options.parts:
            parts[name]()

    def use(self, place: Path, what: str, pattern: str) -> None:
        python = self.step(place, "", "python3 --version").split()[1]
        printed = self.step(
            place, f"pip install of the {what}, and a run", f"{VENV} {RELEASE}/{pattern}; {USE}", "user"
        )
        self.sums[what] = printed.split("SUM")[1].split()[0]
        version = re.search(r"^linkweir .*$", printed, re.MULTILINE)
        compiler = "without compiler" if what == "wheel" else self.step(place, "", "rustc --version").strip()
        self.note(what, f"Python {python}, {compiler}: {version[0] if version else '?'}; sum {self.sums[what][:12]}")
        if len(set(self.sums.values())) != 1:
            raise TrialError(f"wheel and sdist give different tables: {self.sums}")

    def wheel(self) -> None:
        place = self.bare_machine("wheel")
        self.step(place, "", f"apt-get install --no-install-recommends python3-venv; {NO_COMPILER}")
        self.use(place, "wheel", "linkweir-*_x86_64.whl")
        printed = " ".join(self.step(place, "", WITHOUT_COMPILER, "user", fails=True).split())
        said = re.search(r"no C compiler.*apt-get install gcc libc6-dev", printed)
        if said is None:
            raise TrialError(f"without compiler, a policy in C does not name the apt line: {printed}")
        self.note("wheel, a policy in C", said[0])
        shutil.rmtree(place)

    def sdist(self) -> None:
        place = self.bare_machine("sdist")
        suffix = "-web" if self.system.suite == "bookworm" else ""
        tools = f"gcc libc6-dev rustc{suffix} cargo{suffix}"
        self.step(place, "", f"apt-get install --no-install-recommends python3-venv {tools}")
        self.use(place, "sdist", f"linkweir-{self.options.version}.tar.gz")
        shutil.rmtree(place)

    def gateway(self) -> None:
        place = self.bare_machine("gateway")
        script = f"apt-get install --no-install-recommends {RELEASE}/linkweir-gateway_*_amd64.deb"
        script += f"; linkweir-gateway --version; cd /; {CHECK_EXAMPLES}"
        printed = self.step(place, "package of the gateway", script)
        examples = "/usr/share/doc/linkweir-gateway/examples"
        shown = self.step(place, "a gateway", TUNNEL.format(examples=examples))
        version = re.search(r"^linkweir-gateway .*$", printed, re.MULTILINE)
        self.note(
            "gateway", f"{version[0] if version else '?'}; its examples hold; a gateway shows {shown.splitlines()[-1]}"
        )
        shutil.rmtree(place)

    def kernel(self) -> None:
        place = self.bare_machine("kernel")
        debs = f"{RELEASE}/linkweir-dkms_*_all.deb {RELEASE}/iproute2-linkweir_*_amd64.deb"
        script = f"apt-get install --no-install-recommends linux-headers-cloud-amd64 {debs}"
        printed = self.step(place, "packages of module and tc", script + MODULE.format(version=self.options.version))
        kernels = re.findall(r"^(\S+) SMP", printed, re.MULTILINE)
        kinds = re.findall(r"^tc knows (\w+)$", printed, re.MULTILINE)
        if not kernels or not kinds:
            raise TrialError(f"DKMS built for {kernels}, tc knows {kinds}; see {self.log}")
        self.note("kernel", f"DKMS built the module for {', '.join(kernels)}; tc knows {', '.join(kinds)}")
        shutil.rmtree(place)

    def image(self) -> None:
        """Debian's own image is at a registry of images; this system stands in for it."""
        if self.system.name != "debian-13":
            return
        if shutil.which("buildah") is None:
            self.note("image", "NOT TRIED: buildah is missing")
            return
        place, store = self.machine("installs-image"), WORK / "buildah"
        began = time.monotonic()
        try:
            self.images(
                place, ["buildah", "--root", f"{store}/root", "--runroot", f"{store}/run", "--storage-driver", "vfs"]
            )
        finally:
            shutil.rmtree(store, ignore_errors=True)
        self.record.append((self.system.name, "container images", time.monotonic() - began, 0.0))
        shutil.rmtree(place)

    def images(self, place: Path, buildah: list[str]) -> None:
        def call(*words: object) -> str:
            with self.log.open("ab") as log:
                done = subprocess.run(
                    [*buildah, *map(str, words)], stdout=subprocess.PIPE, stderr=log, text=True, check=False
                )
                log.write(done.stdout.encode())
            if done.returncode:
                raise TrialError(f"buildah {words[0]}: exit code {done.returncode}; see {self.log}")
            return done.stdout.strip()

        container = call("from", "scratch")
        run("cp", "-a", f"{place}/.", call("mount", container))
        call("umount", container)
        call("commit", "--quiet", container, "localhost/debian:13")
        settings = [word for name, value in bare.settings().items() for word in ("--env", f"{name}={value}")]
        answers = []
        used = "cd /tmp && linkweir init start && linkweir run start/geo.toml --out out"
        for target, words in (("gateway", ("linkweir-gateway", "--version")), ("cli", ("sh", "-c", used))):
            described = ("--target", target, "--file", self.options.release / "Containerfile", self.options.release)
            chosen = (
                "--isolation",
                "chroot",
                "--build-arg",
                "DEBIAN=localhost/debian:13",
                "--tag",
                f"localhost/{target}",
            )
            call("bud", *chosen, *settings, *described)
            answer = call("run", "--isolation", "chroot", call("from", f"localhost/{target}"), "--", *words)
            answers.append(f"{target}: `{words[-1]}` ends with `{answer.splitlines()[-1]}`")
        self.note("image", "; ".join(answers))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Installs the files of a release on bare Debian systems.")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"{', '.join(NAMES)}; default: both")
    parser.add_argument("--release", type=Path, default=ROOT / "build/release", help="default: build/release")
    parts = ("wheel", "sdist", "gateway", "kernel", "image")
    parser.add_argument("--part", dest="parts", action="append", choices=parts, help="may be repeated; default: all")
    parser.add_argument("--mirror", default=bare.mirror("Debian"), help="Debian mirror (default: this machine's)")
    options = parser.parse_args()
    if unknown := set(options.systems) - set(NAMES):
        parser.error(f"no system {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    options.systems, options.parts = options.systems or NAMES, options.parts or parts
    options.release = options.release.resolve()
    found = [re.fullmatch(r"linkweir-(\d[^-]*)\.tar\.gz", path.name) for path in options.release.glob("*.tar.gz")]
    versions = [match[1] for match in found if match]
    if len(versions) != 1:
        parser.error(f"{options.release} holds no release; make release makes one")
    options.version = versions[0]
    return options


def main() -> int:
    options = parse()
    if os.geteuid() != 0:
        print("installs: bare systems need root", file=sys.stderr)
        return 1
    WORK.mkdir(parents=True, exist_ok=True)
    trials = [Install(SYSTEMS[name], options) for name in options.systems]
    failures = []
    for trial in trials:
        trial.log.unlink(missing_ok=True)
        try:
            trial.run()
        except (TrialError, subprocess.CalledProcessError, RuntimeError, OSError) as error:
            failures.append(f"{trial.system.name}: {error}")
            print(f"installs: {trial.system.name}: FAILED: {error}", file=sys.stderr)
    lines = ["| system | step | time | processor time |", "|---|---|---|---|"]
    lines += [f"| {a} | {b} | {minutes(c)} | {minutes(d)} |" for trial in trials for a, b, c, d in trial.record]
    lines += ["", "| system | part | seen |", "|---|---|---|"]
    lines += [f"| {a} | {b} | {c} |" for trial in trials for a, b, c in trial.seen]
    lines += [f"\nFAILED: {failure}" for failure in failures]
    text = "\n".join(lines) + "\n"
    (WORK / "installs.md").write_text(text)
    print(text)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
