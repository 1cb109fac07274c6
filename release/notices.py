#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the licences of the Rust crates that are linked into the wheel, the gateway and the loader of BPF disciplines.

    python3 release/notices.py           writes LICENSES/THIRD-PARTY-wheel.txt, -gateway.txt and -bpf.txt
    python3 release/notices.py --check   exits with 1 if they would change

The crates are those of Cargo.lock that cargo links for x86-64 and aarch64; the texts come from the crates themselves.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LICENSES = ROOT / "LICENSES"
PACKAGES = {
    "wheel": ("linkweir-py",),
    "gateway": ("linkweir-gateway",),
    "bpf": ("linkweir-bpf", "--features", "kernel"),
}
"""The package that is in each, and what it is built with."""
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
TEXT = re.compile(r"^(licen[cs]e|copying|notice)", re.IGNORECASE)
# of crates that offer a choice, the text of the choice that we take
TAKEN = ("LICENSE-MIT", "LICENSE.BSD-2-Clause")
# a crate that comes without a text, and the line that opens its sources
BARE = {"boringtun": "Copyright (c) 2019 Cloudflare, Inc. All rights reserved."}
RULE = "-" * 100
HEAD = """Third-party software in Linkweir's {what}

Linkweir's own licences are in the files BSD-3-Clause.txt and GPL-2.0-only.txt.
The {what} has the following crates linked in, and Rust's standard library
(Copyright (c) The Rust Project Contributors, MIT OR Apache-2.0; with LLVM's libunwind,
Apache-2.0 WITH LLVM-exception, where the linker adds it).
Where a crate offers a choice that includes MIT, Linkweir uses it under MIT.
"""


@dataclass(frozen=True)
class Crate:
    """A crate that is linked in."""

    name: str
    version: str
    licence: str
    folder: Path

    def text(self) -> str:
        """The text or texts of its licence, as the crate has them.

        Raises:
            SystemExit: the crate has none.
        """
        files = sorted(path for path in self.folder.iterdir() if path.is_file() and TEXT.match(path.name))
        if "AND" not in self.licence:
            files = [path for path in files if path.name in TAKEN] or files
        if files:
            return "\n\n".join("\n".join(map(str.rstrip, path.read_text().splitlines())).strip("\n") for path in files)
        if self.name in BARE and self.licence == "BSD-3-Clause":
            ours = (LICENSES / "BSD-3-Clause.txt").read_text()
            return BARE[self.name] + "\n\n" + ours[ours.index("Redistribution") :].strip()
        raise SystemExit(f"notices: {self.name} {self.version} ({self.licence}) has no licence text in {self.folder}")


def cargo(*words: str) -> str:
    return subprocess.run(["cargo", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(package: tuple[str, ...], known: dict[tuple[str, str], Crate]) -> list[Crate]:
    """The crates linked into a package, without our own."""
    words = ("tree", "--locked", "--quiet", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}")
    shown = "".join(cargo(*words, "--package", *package, "--target", target) for target in TARGETS)
    found = {tuple(line.split()[:2]) for line in shown.splitlines() if line and not line.startswith("linkweir")}
    return [known[name, version.removeprefix("v")] for name, version in sorted(found)]


def listing(what: str, crates: list[Crate]) -> str:
    """All crates with their licences; a text that several have in common is printed once."""
    by_text: dict[str, list[Crate]] = {}
    for crate in crates:
        by_text.setdefault(crate.text(), []).append(crate)
    parts = [HEAD.format(what=what)]
    parts += [
        "\n".join([RULE, *(f"{crate.name} {crate.version} ({crate.licence})" for crate in group), RULE, "", text, ""])
        for text, group in by_text.items()
    ]
    return "\n".join(parts)


def main() -> int:
    described = json.loads(cargo("metadata", "--locked", "--quiet", "--all-features", "--format-version", "1"))
    known = {
        (it["name"], it["version"]): Crate(
            it["name"], it["version"], it["license"] or "", Path(it["manifest_path"]).parent
        )
        for it in described["packages"]
    }
    stale = []
    for what, package in PACKAGES.items():
        path, text = LICENSES / f"THIRD-PARTY-{what}.txt", listing(what, linked(package, known))
        if not path.exists() or path.read_text() != text:
            stale.append(path.name)
            if "--check" not in sys.argv[1:]:
                path.write_text(text)
    if stale and "--check" in sys.argv[1:]:
        print(f"notices: not as Cargo.lock has it: {', '.join(stale)}; run python3 release/notices.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
