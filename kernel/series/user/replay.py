# SPDX-License-Identifier: GPL-2.0-only
"""Replays the vectors on the functions that the series gives to sch_pss.c, in user space: no kernel source is needed.

    python3 replay.py [--plant OLD NEW]     --plant replaces a text that must be in the algorithm once
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import files  # noqa: E402
from facts import parameters  # noqa: E402


def without_kernel(code: str) -> str:
    """The parts of sch_pss.c between its headers and the packet path that touch neither packets nor devices."""
    begin = code.index("#define PSS_UNSET")
    algorithm = code[begin : code.index("/* ---- the qdisc ---- */")]
    tables = code[code.index("static const struct netlink_range_validation") : code.index("/* ---- packets ---- */")]
    return algorithm + tables


def main() -> int:
    parser = argparse.ArgumentParser(description="replays vectors on the functions of sch_pss.c")
    parser.add_argument("--plant", nargs=2, metavar=("OLD", "NEW"))
    planted = parser.parse_args().plant
    params = parameters()
    code = without_kernel(files.qdisc(params, None))
    if planted:
        if code.count(planted[0]) != 1:
            sys.exit(f"{planted[0]} is not in the algorithm once")
        code = code.replace(*planted)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        test = re.sub(r"^#include <.*\n", "", files.test(params), flags=re.MULTILINE)
        written = {
            "pss_algorithm.c": code,
            "pss_uapi.h": re.sub(r"__u(32|64)", r"uint\1_t", files.uapi(params)),
            "sch_pss_test.c": test,
            "sch_pss_vectors.h": files.vector_header(),
        }
        for path, text in written.items():
            (folder / path).write_text(text)
        flags = ["-std=gnu11", "-O1", "-Wall", "-Wno-unused-function", "-Wno-unused-variable", "-fsanitize=undefined"]
        subprocess.run(["gcc", *flags, f"-I{HERE}", f"-I{folder}", HERE / "replay.c", "-o", folder / "replay"], check=True)
        return subprocess.run([folder / "replay"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
