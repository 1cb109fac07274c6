# SPDX-License-Identifier: BSD-3-Clause
"""core/tests/mutate.py, which changes the core's sources and runs its tests."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_mutants_are_tried_on_the_vectors_of_every_policy_and_of_nothing_else():
    spec = importlib.util.spec_from_file_location("mutate", ROOT / "core/tests/mutate.py")
    mutate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mutate)
    names = re.findall(r"^LW_POLICY\((\w+)\)", (ROOT / "core/include/linkweir/policies.def").read_text(), re.M)
    assert names
    assert mutate.Sources().policies("policies.c") == sorted(names)
