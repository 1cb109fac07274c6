# SPDX-License-Identifier: GPL-2.0-only
"""Writes sch_pss as patches for the newest kernel and iproute2 of Debian, and tries them.

    python3 series.py write [--out FOLDER] [--author "NAME <ADDRESS>"]     the patches; needs gcc, clang-format, git
    python3 series.py try [--out FOLDER] [STEP...]                         checkpatch, sparse, builds, KUnit, ynl, tc, tdc

FOLDER/linux/ and FOLDER/iproute2/ get a file for each patch and a cover letter, as git format-patch writes them. The
patches are made against the files as Debian ships them, and written only if they apply there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import attempts
from files import Edit, Text, iproute2_patches, kernel_patches
from sources import Missing, cache, iproute2, linux

HERE = Path(__file__).parent
OUT = HERE.parent / "build/series"
AUTHOR = "Linkweir maintainers <linkweir@localhost>"


def git(folder: Path, *words: str, author: str = AUTHOR, stdin: str | None = None) -> str:
    """git with no settings but ours, so that the patches do not depend on who runs it."""
    name, address = author[:-1].split(" <")
    identity = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", name), ("EMAIL", address))}
    clean = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", **identity}
    done = subprocess.run(
        ["git", *words], cwd=folder, input=stdin, capture_output=True, text=True, check=False, env={**os.environ, **clean}
    )
    if done.returncode:
        sys.exit(f"series: git {' '.join(words)}: {done.stderr}")
    return done.stdout


Patches = list[tuple[str, Text, dict[str, Edit]]]


def touched(patches: Patches) -> list[str]:
    """Files of the tree that the patches change."""
    added = {path for _, new, _ in patches for path in new}
    return sorted({path for _, _, edits in patches for path in edits} - added)


def message(part: str, name: str, author: str) -> str:
    return (HERE / part / "messages" / f"{name}.txt").read_text() + f"\nSigned-off-by: {author}\n"


def pristine(tree: Path, paths: list[str]) -> Path:
    """The named files as Debian ships them; kept aside, because `try` applies the patches to the tree."""
    folder = tree.parent / f"{tree.name}.files"
    for path in paths:
        if not (folder / path).exists():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / path, folder / path)
    return folder


def write(tree: Path, part: str, patches: Patches, out: Path, author: str, prefix: str) -> None:
    """Commits each patch on a repository of the files that are touched, and formats the commits."""
    repository = cache() / f"{part}.git"
    shutil.rmtree(repository, ignore_errors=True)
    repository.mkdir()
    shutil.copytree(pristine(tree, touched(patches)), repository, dirs_exist_ok=True)
    git(repository, "init", "-q", "-b", "main")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", f"{tree.name}, as Debian ships it")
    for name, new, edits in patches:
        for path, text in new.items():
            (repository / path).parent.mkdir(parents=True, exist_ok=True)
            (repository / path).write_text(text)
        for path, edit in edits.items():
            (repository / path).write_text(edit((repository / path).read_text()))
        git(repository, "add", "-A")
        git(repository, "commit", "-q", "-F", "-", author=author, stdin=message(part, name, author))
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    words = ["format-patch", "-q", "--no-signature", f"--subject-prefix={prefix}", "-o", str(out.resolve())]
    many = ["--cover-letter"] if len(patches) > 1 else []
    git(repository, *words, *many, f"-{len(patches)}", author=author)
    cover = out / "0000-cover-letter.patch"
    if cover.exists():
        subject, _, body = (HERE / part / "messages/cover.txt").read_text().partition("\n\n")
        body = body.replace("@FIGURES@", (HERE / "figures.txt").read_text().rstrip("\n") + "\n")
        text = cover.read_text().replace("*** SUBJECT HERE ***", subject).replace("*** BLURB HERE ***\n", body)
        cover.write_text(text)
    print(f"series: {len(patches)} patches for {tree.name} in {out}")


def apply(tree: Path, patches: Patches, out: Path) -> None:
    """Puts the files as they are shipped into the tree, then applies the patches to it."""
    with_patches = cache() / "applied"
    shutil.rmtree(with_patches, ignore_errors=True)
    shutil.copytree(pristine(tree, touched(patches)), with_patches)
    git(with_patches, "init", "-q")
    for patch in sorted(out.glob("*.patch")):
        if not patch.name.startswith("0000"):
            git(with_patches, "apply", "--whitespace=error-all", str(patch.resolve()))
    for path in sorted(path for path in with_patches.rglob("*") if path.is_file() and ".git" not in path.parts):
        there = tree / path.relative_to(with_patches)
        # equal files keep their times, so that little is compiled again
        if not there.exists() or there.read_bytes() != path.read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, there)


def main() -> int:
    parser = argparse.ArgumentParser(description="writes sch_pss as patches for Linux and iproute2, and tries them")
    parser.add_argument("what", choices=["write", "try"])
    parser.add_argument("steps", nargs="*", help=f"of try: {' '.join(attempts.STEPS)}; all unless named")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--author", default=AUTHOR)
    options = parser.parse_args()
    if unknown := set(options.steps) - set(attempts.STEPS):
        parser.error(f"no such step: {' '.join(sorted(unknown))}")
    try:
        tree = linux()
        patches = kernel_patches(tree / ".clang-format", options.author)
        write(tree, "kernel", patches, options.out / "linux", options.author, "PATCH net-next")
        apply(tree, patches, options.out / "linux")
        tools = iproute2()
        tool_patches = iproute2_patches(tools)
        write(tools, "iproute2", tool_patches, options.out / "iproute2", options.author, "PATCH iproute2-next")
        apply(tools, tool_patches, options.out / "iproute2")
        if options.what == "try":
            return attempts.run(tree, tools, options.out, options.steps or list(attempts.STEPS))
    except Missing as missing:
        print(f"series: NOT WRITTEN: {missing}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
