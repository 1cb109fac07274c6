# SPDX-License-Identifier: BSD-3-Clause
"""Runs scenarios in ns-3: with the module's examples, or as `linkweir export ns3` writes them."""

from __future__ import annotations

import csv
import hashlib
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linkweir.deploy.ns3 import ns3_program
from linkweir.scenarios.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ns3"))

import releases  # noqa: E402

EXAMPLES = ("linkweir-pss-figures", "linkweir-pds-figures")
LIBRARY = "liblinkweir.so"
LINES = "class,rate_mbps,sent_pkts"
"""An exported program prints a line for each class behind this one."""


@dataclass(frozen=True)
class Ns3:
    """Programs for ns-3.

    Attributes:
        folder: where they are.
        identities: hash of the module and each program, by its name.
    """

    folder: Path
    identities: Mapping[str, str]

    def run(self, words: Sequence[str]) -> list[Mapping[str, str]]:
        """Runs a program with arguments and returns the lines of its CSV.

        Raises:
            RuntimeError: it failed.
        """
        command = [str(self.folder / words[0]), *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr[-2000:]}")
        lines = [line for line in done.stdout.splitlines() if "," in line]
        return list(csv.DictReader(lines))


def build(exported: Mapping[str, Scenario], *, examples: bool = True) -> Ns3 | None:
    """Builds the module and a program for each scenario, by name; None if there is no ns-3.

    Args:
        exported: the scenarios.
        examples: builds the examples, too. They and scenarios with TCP need PyPI's ns-3; without them it is Debian 12's
            if that is installed and the module is not built with PyPI's already. Each is built in the folder in which
            `make ns3` builds the module.
    """
    releases.WORK.mkdir(parents=True, exist_ok=True)
    wheel = releases.WORK / "3.44"
    prefix = releases.wheel_prefix() if examples or (wheel / LIBRARY).exists() else None
    if prefix is None and not examples and releases.have_debian_12():
        folder, options = releases.WORK / "3.37", ["-DCMAKE_CXX_STANDARD=17"]
    else:
        prefix = prefix or releases.wheel_prefix()
        if prefix is None:
            return None
        folder, options = wheel, [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_STANDARD=20"]
    folder.mkdir(parents=True, exist_ok=True)
    programs = [_write(folder / f"{name}.cc", ns3_program(scenario).text) for name, scenario in exported.items()]
    names = [*(EXAMPLES if examples else ()), *exported]
    options.append(f"-DLINKWEIR_PROGRAMS={';'.join(map(str, programs))}")
    releases.run_or_stop("cmake", "-S", ROOT / "ns3", "-B", folder, *options)
    releases.run_or_stop("make", "--no-print-directory", "-s", "-C", folder, "-j", releases.JOBS, *names)
    return Ns3(folder, {name: _hash([folder / LIBRARY, folder / name]) for name in names})


def _write(path: Path, text: str) -> Path:
    """Writes a program unless it is there already, so that it is not compiled again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def _hash(paths: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for path in paths:
        whole.update(path.read_bytes())
    return whole.hexdigest()
