# SPDX-License-Identifier: BSD-3-Clause
"""Creates the files of a new policy, each with something that works: `make policy NAME=edf`.

    core/src/NAME.c                the policy
    core/proofs/NAME/eva.c         its proof, listed at the end of core/proofs/plan.toml
    oracle/NAME.py                 a naive model of it
    oracle/lives/NAME.py           draws its parameters for random lives
    vectors/NAME/                  vectors by hand; the random ones are generated
    docs/reference/policies/NAME.md, kernel/man/tc-NAME.8    its pages

and adds its line to core/include/linkweir/policies.def and to the tables of policies in docs/howto/choose.md and
docs/howto/kernel.md. It overwrites nothing; core/src/NAME.c may be there already. Places to fill in are marked FILL IN.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import sys
from pathlib import Path

TEMPLATE = Path(__file__).resolve().parent
ROOT = TEMPLATE.parents[1]
LISTED = ROOT / "core/include/linkweir/policies.def"
PLAN = ROOT / "core/proofs/plan.toml"
SIMULATOR = ROOT / "python/linkweir/scenarios/policy.py"
PAGE = "docs/reference/policies/NAME.md"
PLACES = {
    "policy.c": "core/src/NAME.c",
    "eva.c": "core/proofs/NAME/eva.c",
    "model.py": "oracle/NAME.py",
    "lives.py": "oracle/lives/NAME.py",
    "hand-ties.vec": "vectors/NAME/hand-ties.vec",
    "page.md": PAGE,
    "man.8": "kernel/man/tc-NAME.8",
}
BROUGHT = "policy.c"
"""May be there already: a file that its author used with `policy = { c = "NAME.c" }`, which stays as it is."""
ROWS = {
    "docs/howto/choose.md": (
        "| policy | guarantees | source |",
        "| [NAME](../reference/policies/NAME.md) | FILL IN | FILL IN |",
    ),
    "docs/howto/kernel.md": ("| policies | in the module | why |", "| `NAME` | yes | Linux has nothing like it |"),
}
"""Tables that list the policies: the head of each, and the row of a new one."""
LONGEST = 15
"""Bytes of a qdisc's name in Linux (IFNAMSIZ - 1)."""


def fault(name: str) -> str | None:
    """Why no policy can have this name."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or len(name) > LONGEST:
        return f'"{name}": a policy is named by 1 to {LONGEST} of a-z, 0-9 and _, a letter first'
    if name in sys.stdlib_module_names:
        return f'"{name}": oracle/{name}.py would hide a module of Python'
    only_simulated = re.findall(r"^IN_SIMULATOR = (.*)$", SIMULATOR.read_text(encoding="utf-8"), re.M)[0]
    if f'"{name}"' in only_simulated:
        return f'"{name}": {SIMULATOR.relative_to(ROOT)} has it already'
    if f"LW_POLICY({name})\n" in LISTED.read_text(encoding="utf-8"):
        return f'"{name}": {LISTED.relative_to(ROOT)} lists it already'
    there = [place for source, place in places(name).items() if source != BROUGHT and place.exists()]
    return f"{there[0].relative_to(ROOT)} exists already: remove it, or choose another name" if there else None


def places(name: str, root: Path = ROOT) -> dict[str, Path]:
    """Where each file of the template goes in the repository at `root`."""
    return {source: root / place.replace("NAME", name) for source, place in PLACES.items()}


def filled(source: str, name: str) -> str:
    """The text of a file of the template for this policy."""
    text = (TEMPLATE / source).read_text(encoding="utf-8")
    text = text.replace("DATE", datetime.date.today().isoformat())
    # the section of a manual page keeps its title
    return text.replace("CAPITALS", name.upper()).replace("NAME", name).replace(f".SH {name}\n", ".SH NAME\n")


def with_row(text: str, head: str, row: str) -> str:
    """A page with one row more at the end of the table that begins with `head`."""
    before, table = text.split(head + "\n", 1)
    rows, after = table.split("\n\n", 1)
    return f"{before}{head}\n{rows}\n{row}\n\n{after}"


def lay_down(name: str) -> None:
    """Writes the files and the lines in lists, or nothing at all if one of them cannot be written."""
    there = {place for source, place in places(name).items() if source == BROUGHT and place.exists()}
    texts = {place: filled(source, name) for source, place in places(name).items() if place not in there}
    texts[PLAN] = PLAN.read_text(encoding="utf-8") + "\n" + filled("plan.toml", name)
    for page, (head, row) in ROWS.items():
        texts[ROOT / page] = with_row((ROOT / page).read_text(encoding="utf-8"), head, row.replace("NAME", name))
    texts[LISTED] = LISTED.read_text(encoding="utf-8") + f"LW_POLICY({name})\n"
    before = {place: place.read_text(encoding="utf-8") if place.exists() else None for place in texts}
    made = [folder for folder in (ROOT / "vectors" / name, ROOT / "core/proofs" / name) if not folder.exists()]
    try:
        for place, text in texts.items():
            place.parent.mkdir(exist_ok=True)
            place.write_text(text, encoding="utf-8")
        subprocess.run([sys.executable, ROOT / "oracle/generate.py", name], check=True)
    except BaseException:
        for place, old in before.items():
            if old is None:
                place.unlink(missing_ok=True)
            else:
                place.write_text(old, encoding="utf-8")
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    for place in there:
        print(f"policy: {place.relative_to(ROOT)}: stays as it is")
    for place, old in before.items():
        print(f"policy: {place.relative_to(ROOT)}" + ("" if old is None else ": a line more"))
    print(f"policy: move the line in {LISTED.relative_to(ROOT)} to change its place in lists")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", metavar="NAME")
    name = parser.parse_args().name
    why = fault(name)
    if why:
        print(f"policy: {why}", file=sys.stderr)
        return 2
    lay_down(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
