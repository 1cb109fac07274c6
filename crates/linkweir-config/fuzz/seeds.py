# SPDX-License-Identifier: BSD-3-Clause
"""Writes the files of python/tests/data/dialects as inputs of the fuzzer: a line with their keys, then the file."""

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parents[3] / "python" / "tests" / "data" / "dialects"


def main(out: Path) -> None:
    """Writes one input for each file."""
    out.mkdir(parents=True, exist_ok=True)
    for name, case in tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8")).items():
        keys = case.get("keys", "").strip().replace("\n", ";")
        (out / name).write_bytes(keys.encode() + b"\n" + (FOLDER / name).read_bytes())


main(Path(sys.argv[1]))
