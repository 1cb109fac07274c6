#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the files of a release from a commit, in an empty folder: `make release COMMIT=v0.1.0 OUT=DIR`.

    python3 release/release.py [--commit HEAD] [--out build/release] [--tools DIR]

A clone of that commit is built, by the release/build.py that it has itself, so changes that are not committed have no
influence. The clone is in /tmp/linkweir-release, always, because compilers and lists of components note paths: two
releases of a commit by the same compilers have the same bytes. It is removed at the end, and kept if a step fails.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = Path("/tmp/linkweir-release")


class ReleaseError(Exception):
    """The release cannot be made."""


def git(*words: object, at: Path | None = None) -> str:
    command = ["git", "-c", "safe.directory=*", "-C", at or ROOT, *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {' '.join(map(str, words))}: {done.stderr.strip() or 'failed'}")
    return done.stdout.strip()


def empty(out: Path) -> Path:
    """Makes a folder, or takes an empty one."""
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ReleaseError(f"{out} is not an empty folder; name another with OUT=DIR, or remove it")
    out.mkdir(parents=True, exist_ok=True)
    return out


def clone(commit: str) -> Path:
    """A clean clone of one commit.

    Raises:
        ReleaseError: the commit is unknown, or a release is being made already.
    """
    named = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    try:
        WORK.mkdir(mode=0o700)
    except FileExistsError:
        raise ReleaseError(f"{WORK} exists: another release is being made, or one failed; then remove it") from None
    source = WORK / "linkweir"
    git("init", "--quiet", "--initial-branch=main", source)
    git("fetch", "--quiet", ROOT, named, at=source)
    git("checkout", "--quiet", "--detach", "FETCH_HEAD", at=source)
    if not (source / "release/build.py").exists():
        raise ReleaseError(f"commit {named} is older than `make release`")
    return source


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes the files of a release from a commit, in an empty folder.")
    parser.add_argument("--commit", default="HEAD", help="default: HEAD")
    parser.add_argument("--out", type=Path, default=ROOT / "build/release", help="default: build/release")
    parser.add_argument(
        "--tools", type=Path, default=ROOT / "target/tools/bin", help="folder of cargo-deb, cargo-cyclonedx"
    )
    options = parser.parse_args()
    try:
        out = empty(options.out.resolve())
        source = clone(options.commit)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    if git("status", "--porcelain", "--untracked-files=no"):
        print("release: uncommitted changes are left out")
    words = ["--out", out, "--tools", options.tools.resolve()]
    done = subprocess.run([sys.executable, source / "release/build.py", *words], cwd=source, check=False)
    if done.returncode:
        print(f"release: FAILED; what was made is in {out}, and the clone in {WORK}", file=sys.stderr)
        return 1
    shutil.rmtree(WORK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
