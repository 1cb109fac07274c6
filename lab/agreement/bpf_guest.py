# SPDX-License-Identifier: BSD-3-Clause
"""The policies in BPF as a place: Debian's kernel in QEMU, with objects that note down all calls (bpf/, LW_RECORD).

The guest sends what the simulator's flows send, at the same times, into a device whose root is the discipline; it paces
packets at the link's capacity. The guest's clock counts instructions.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bpf/tests"), str(ROOT / "kernel/tests"), str(ROOT / "machines")]

from run import boot  # noqa: E402

import suite  # noqa: E402
from linkweir.deploy.bpf import bpf_settings  # noqa: E402
from linkweir.deploy.policy import ETHERNET_BYTES  # noqa: E402
from linkweir.lab import LaboratoryError  # noqa: E402
from linkweir.lab.world import due, flows_of  # noqa: E402
from linkweir.scenarios.scenario import Scenario  # noqa: E402
from linkweir.scratch import scratch  # noqa: E402

BUILD = ROOT / "bpf/build"
MOST_S = 7200
"""After which a guest is ended."""


@dataclass(frozen=True)
class Made:
    """What a guest needs.

    Attributes:
        release: of the kernel.
        root: where its packages are.
        files: of this machine, by their places in the guest.
    """

    release: str
    root: Path
    files: Mapping[str, Path]

    def identity(self, policy: str) -> str:
        """A hash of what decides there."""
        parts = [self.files[f"guest/{policy}.bpf.o"], self.files["bin/workload"], BUILD / "linkweir-bpf"]
        parts += [ROOT / "bpf/tests/guest" / script for script in ("decisions.sh", "bpf.sh")]
        whole = b"".join(path.read_bytes() for path in parts)
        return f"bpf {self.release} {hashlib.sha256(whole).hexdigest()}"

    def calls(self, policy: str, whole: Scenario) -> str:
        """The calls of a policy in a run, as a vector.

        Raises:
            LaboratoryError: the guest failed.
        """
        flows = flows_of(whole)
        packets = due(flows, whole)
        packets["bytes"] -= ETHERNET_BYTES  # the discipline counts them, the simulator's packets have them
        with scratch() as folder:
            job = {
                "settings.toml": bpf_settings(matched(whole)).text.encode(),
                "due": packets.tobytes(),
                "flows": " ".join(str(flow.of_class + 1) for flow in flows).encode(),
            }
            for name, content in job.items():
                (folder / name).write_bytes(content)
            files = {**self.files, **{f"guest/job/{name}": folder / name for name in job}}
            image, log = folder / "image", BUILD / f"decisions-{policy}.log"
            suite.make_initramfs(self.release, self.root, ["decisions"], image, files)
            text = boot(suite.find(self.root, self.release, "vmlinuz*"), image, log, MOST_S, "all", 1)
        parts = re.findall(r"^calls (\S+)$", text, re.M)
        wrong = re.findall(r"^not ok - .*$", text, re.M)
        if wrong or not parts:
            raise LaboratoryError(f"bpf: {'; '.join(wrong) or 'no calls were printed'}; the log is {log}")
        return gzip.decompress(base64.b64decode("".join(parts))).decode()


def matched(whole: Scenario) -> Scenario:
    """The scenario with a code point for each class, from 1; the last class takes the rest."""
    keys = whole.native.written()
    rows = [{**row, "match": [{"dscp": n}]} for n, row in enumerate(keys["class"], 1)]
    rows[-1]["match"].append({})
    return Scenario.from_dict({**keys, "class": rows})


def prepare(policies: Sequence[str]) -> Made:
    """Builds what the guest needs.

    Raises:
        LaboratoryError: something cannot be built, or the kernel cannot be obtained.
    """
    objects = [f"build/record/{policy}.bpf.o" for policy in policies]
    programs = [f"build/guest/{tool}" for tool in suite.GUEST]
    make = ["make", "-s", "-C", str(ROOT / "bpf"), "loader", "objects", *programs, *objects]
    done = subprocess.run(make, capture_output=True, text=True)
    if done.returncode:
        raise LaboratoryError(f"the programs in BPF cannot be built: {done.stderr.strip()[-500:]}")
    workload = BUILD / "guest/workload"
    source = ROOT / "lab/guest/workload.c"
    options = ["-std=gnu11", "-O2", "-static", "-DSENT_WHEN_DUE=1"]
    done = subprocess.run(["gcc", *options, source, "-o", workload], capture_output=True, text=True)
    if done.returncode:
        raise LaboratoryError(f"the traffic tool cannot be built: {done.stderr.strip()[-500:]}")
    try:
        release, root = suite.kernel()
    except suite.MissingError as error:
        raise LaboratoryError(str(error)) from error
    files = {f"guest/{policy}.bpf.o": ROOT / "bpf" / path for policy, path in zip(policies, objects, strict=True)}
    return Made(release, root, {**files, "bin/workload": workload})
