# SPDX-License-Identifier: BSD-3-Clause
"""The build of Linkweir: results of different builds are never combined."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from linkweir import _native


@functools.cache
def build() -> dict[str, str]:
    """Version, commit and hash of the sources, with their names in provenance.json.

    Two builds of one commit differ in ``sources_sha256`` if their tree was changed in between, and so do those whose
    commit is unknown. It covers the sources that the native module was built from, and those of this package.
    """
    digest = hashlib.sha256(_native.sources.encode())
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(f"\n{path.relative_to(package).as_posix()}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return {"linkweir": _native.__version__, "commit": _native.commit, "sources_sha256": digest.hexdigest()}
