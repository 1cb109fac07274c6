# SPDX-License-Identifier: BSD-3-Clause
"""The networks that are compared: open sources, and transfers of CUBIC with the kernel's defaults and its tick."""

from __future__ import annotations

from typing import Any


def link(name: str, rate: str, delay: str, packets: int, **more: Any) -> dict[str, Any]:
    """A link with a FIFO."""
    classes = [{"name": "all", "limit": f"{packets}p"}]
    return {"name": name, "rate": rate, "delay": delay, "scheduler": {"policy": "fifo"}, "class": classes, **more}


_TCP = {"kind": "tcp", "cc": "cubic", "tick": "10ms", "class": "all", "count": 2}
_OPEN = {"kind": "poisson", "packet": {"min": "700B", "max": "1500B"}}
_TWO = [{"name": name, "limit": "50p"} for name in ("long", "cross")]

_SERIES = [
    link("first", "10Mbit", "10ms", 50),
    link("second", "8Mbit", "5ms", 50, scheduler={"policy": "drr"}, **{"class": _TWO}),
    link("return", "2Mbit", "15ms", 50),
]
_PARKING = [link(name, "10Mbit", "10ms", 50) for name in ("hop1", "hop2", "hop3")]
_GEO = [link("forward", "10Mbit", "250ms", 250), link("return", "1Mbit", "250ms", 100)]

OPEN: dict[str, dict[str, Any]] = {
    "two in series, one back": {
        "duration": "5s",
        "link": _SERIES,
        "flow": [
            {**_OPEN, "name": "long", "rate": "4Mbit", "class": {"first": "all", "second": "long"}}
            | {"path": ["first", "second"]},
            {**_OPEN, "name": "one", "rate": "5Mbit", "class": "all", "path": ["first"]},
            {**_OPEN, "name": "two", "rate": "4Mbit", "class": {"second": "cross", "return": "all"}}
            | {"path": ["second", "return"]},
        ],
    },
}
"""Open sources; some queues overflow."""

CASES: dict[str, dict[str, Any]] = {
    "two in series, one back": {
        "duration": "60s",
        "warmup": "10s",
        "link": _SERIES,
        "flow": [
            {**_TCP, "name": "long", "class": {"first": "all", "second": "long", "return": "all"}}
            | {"path": ["first", "second"], "back": ["return"]},
            {**_TCP, "name": "cross", "class": "cross", "path": ["second"], "access_delay": "20ms"},
            {"name": "upload", "kind": "cbr", "jitter": 0.5, "rate": "1.8Mbit", "packet": "1000B"}
            | {"class": "all", "path": ["return"]},
        ],
    },
    "parking lot": {
        "duration": "60s",
        "warmup": "10s",
        "link": _PARKING,
        "flow": [
            {**_TCP, "name": "long", "path": ["hop1", "hop2", "hop3"]},
            *({**_TCP, "name": f"cross{n}", "path": [f"hop{n}"], "access_delay": "20ms"} for n in (1, 2, 3)),
        ],
    },
    "GEO, 1 Mbit/s back": {
        "duration": "120s",
        "warmup": "30s",
        "link": _GEO,
        "flow": [
            {**_TCP, "name": "download", "count": 4, "stagger": "1300ms", "path": ["forward"], "back": ["return"]},
            {"name": "open-forward", "kind": "poisson", "rate": "500kbit", "packet": "1000B"}
            | {"class": "all", "path": ["forward"]},
            {"name": "open-return", "kind": "poisson", "rate": "500kbit", "packet": "1000B"}
            | {"class": "all", "path": ["return"]},
        ],
    },
}
"""Transfers; acknowledgements wait in the queue of the link back where there is one."""
