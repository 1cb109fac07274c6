# SPDX-License-Identifier: BSD-3-Clause
"""Places in which schedulers run, made ready one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from linkweir.lab import LaboratoryError

Made = TypeVar("Made")


def available(makers: Mapping[str, Callable[[], Made | None]], say: Callable[[str], None]) -> Iterator[Made]:
    """What can be had here, in this order; `say` gets the reason for each that cannot.

    Args:
        makers: make a place ready, by its name. One returns None, or raises LaboratoryError, if it cannot be had.
        say: called with a sentence.
    """
    for name, make in makers.items():
        try:
            made = make()
        except LaboratoryError as error:
            say(f"{name}: NOT RUN: {error}")
            continue
        if made is None:
            say(f"{name}: NOT RUN: it is not here")
        else:
            yield made
