# SPDX-License-Identifier: BSD-3-Clause
"""The scheduling policies, as the core's own tables describe them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from linkweir import _native

IN_SIMULATOR = ("tauran_pf", "tauran_codes", "ubmt_like", "bbs_like", "bps_like")
"""Further ones, which scenarios may name and no data plane has."""


@dataclass(frozen=True)
class Parameter:
    """One key of ``[scheduler]`` or of a ``[[class]]``; values are as a scenario writes them.

    Attributes:
        name: the key.
        help: its meaning.
        unit: number, rate, time, size, bits, packets, fraction or choice.
        choices: the words of a choice.
        min: smallest value.
        max: largest value.
        default: value when the key is left out; None if there is none.
    """

    name: str
    help: str
    unit: str
    choices: tuple[str, ...]
    min: str | None
    max: str | None
    default: str | None

    @property
    def range(self) -> str:
        """The values allowed, as one text."""
        if self.unit == "choice":
            return " | ".join(self.choices)
        return f"{self.min} .. {_bound(self.max, self.unit)}"


@dataclass(frozen=True)
class Statistic:
    """One column of the table `levels`.

    Attributes:
        column: name of the column, with its unit.
        help: what it shows of each class.
        unit: as for `Parameter`.
    """

    column: str
    help: str
    unit: str


@dataclass(frozen=True)
class Policy:
    """A scheduling policy.

    Attributes:
        name: value of ``scheduler.policy``.
        help: what it does.
        max_classes: largest number of classes.
        isolates_flows: whether classes may have the key ``flows``.
        params: further keys of ``[scheduler]``.
        class_params: its keys in every ``[[class]]``.
        stats: state of each class that it shows over time.
    """

    name: str
    help: str
    max_classes: int
    isolates_flows: bool
    params: tuple[Parameter, ...]
    class_params: tuple[Parameter, ...]
    stats: tuple[Statistic, ...]

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain lists and dicts."""
        return asdict(self)


def _bound(written: str | None, unit: str) -> str:
    """A largest value; where it is but the end of the arithmetic, as a power of two.

    >>> _bound("1152921504.606846976Gbit", "bits"), _bound("400Gbit", "rate")
    ('2^60 bit', '400Gbit')
    """
    if unit == "bits" and written is not None:
        bits = int(_native.quantity(written, unit))
        if bits >= 1 << 40 and bits & (bits - 1) == 0:
            return f"2^{bits.bit_length() - 1} bit"
    return str(written)


def policies() -> list[Policy]:
    """All policies, in the core's order.

    >>> [policy.name for policy in policies()][:7]
    ['fifo', 'strict', 'rr', 'wrr', 'drr', 'pss', 'pds']
    """
    return [
        Policy(
            name=policy["name"],
            help=policy["help"],
            max_classes=policy["max_classes"],
            isolates_flows=policy["isolates_flows"],
            params=tuple(map(_parameter, policy["params"])),
            class_params=tuple(map(_parameter, policy["class_params"])),
            stats=tuple(Statistic(stat["column"], stat["help"], stat["unit"]) for stat in policy["stats"]),
        )
        for policy in _native.policies()
    ]


def _parameter(param: _native._Param) -> Parameter:
    return Parameter(
        name=param["name"],
        help=param["help"],
        unit=param["unit"],
        choices=tuple(param["choices"]),
        min=param["min"],
        max=param["max"],
        default=param["default"],
    )
