# SPDX-License-Identifier: BSD-3-Clause
"""Classes and flows that are there several times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def copies(entry: Mapping[str, Any]) -> list[str]:
    """Names of a class or flow that is there several times."""
    count = entry["count"]
    return [entry["name"]] if count == 1 else [f"{entry['name']}-{n}" for n in range(1, count + 1)]


def classes_of(keys: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tables `[[class]]` of a resolved scenario, a table for each copy, with its name and without a count."""
    return [
        {key: value for key, value in entry.items() if key != "count"} | {"name": name}
        for entry in keys["class"]
        for name in copies(entry)
    ]
