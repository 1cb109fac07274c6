# SPDX-License-Identifier: BSD-3-Clause
"""The cases: links, loads and where they come from, as data. `linkweir.yardstick.traffic` makes scenarios of them.

They follow RFC 7928 (Kuhn et al. 2016), RFC 8867 (Sarker et al. 2021) and RFC 8869 (Sarker, Zhu and Fu 2021). The
texts of these were not at hand: only those after RFC 8867 were compared with a text, its draft
draft-ietf-rmcat-eval-test-03 (Sarker et al. 2016), whose sections they name. `Case.source` says so of each case.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from linkweir import _native, traces

AQM, MEDIA, WIRELESS, FIELD = "RFC 7928", "RFC 8867", "RFC 8869", "links of our field"
_FIXED = (
    "the media's congestion control: media send at a fixed rate; a call is added, and a download where there is no TCP"
)
GROUPS = {
    AQM: "other buffers and ECN; two calls and a media flow are added",
    MEDIA: _FIXED,
    WIRELESS: _FIXED,
    FIELD: "",
}
"""The groups of cases, and what all cases of a group leave out or change."""
LEFT_OUT = {
    "RFC 7928, senders that yield to all others": "the simulator has no such transport",
    "RFC 7928, paths of several links": "a case has one link",
    "RFC 8867, section 5.3 of the draft": "it needs two links",
    "RFC 8867, section 6 of the draft": "it needs several links, ECN or the media's congestion control",
    "RFC 8869, more stations": "they share a medium, which the simulator does not have",
}
"""Parts of the RFCs that have no case, and why."""


@dataclass(frozen=True)
class Load:
    """How much traffic a link of our field carries.

    Attributes:
        name: its name.
        calls: calls in the urgent class.
        downloads: TCP downloads in the class without a promise.
        camera: what the reserved class offers, as a part of what it is promised.
    """

    name: str
    calls: int
    downloads: int
    camera: float


LOADS = {load.name: load for load in (Load("light", 2, 1, 0.9), Load("busy", 4, 4, 0.9), Load("crowded", 8, 12, 1.5))}
"""The three loads of a link of our field. In ``crowded`` the reserved class sends more than it is promised."""
AS_WRITTEN = "as written"
"""The load of a case whose own flows are its load."""


@dataclass(frozen=True)
class Case:
    """A link with its traffic.

    Attributes:
        name: its name.
        title: what it is, in a line.
        group: one of `GROUPS`.
        source: the RFC and what of its text was read, or the shipped file that it is built on.
        left_out: what the source has and this case does not, or what was changed, besides what `GROUPS` says.
        link: keys of ``[link]``.
        promised: rate that the reserved class is promised.
        duration_s: length of a run.
        warmup_s: what is not counted at its start.
        trace: the link's capacity over time, if it is a trace.
        memory: how long a fade the reservation makes up for.
        fade_least_s: a time with less than half of the mean capacity is a fade if it lasts for so long.
        calls: calls in the urgent class, where the load does not say.
        media: keys of the reserved class's flows, where the load does not say; None: one flow of the load.
        flows: keys of the flows of the class without a promise, where the load does not say.
        quick: whether ``--quick`` has it.
        slot_s: the link changes in slots of this length, s, which begin at a time that the seed gives; None: it changes
            at the times of `link`.
    """

    name: str
    title: str
    group: str
    source: str
    left_out: str
    link: Mapping[str, Any]
    promised: str
    duration_s: int
    warmup_s: int = 5
    trace: Callable[[], traces.Trace] | None = None
    memory: str = "5s"
    fade_least_s: float = 0.25
    calls: int = 2
    media: tuple[Mapping[str, Any], ...] | None = None
    flows: tuple[Mapping[str, Any], ...] = field(default=())
    quick: bool = False
    slot_s: float | None = None

    def of_seed(self, seed: int) -> Case:
        """The case as a seed runs it: its slots begin later by a part of a slot.

        >>> CASES["leo-slots"].of_seed(1) == CASES["leo-slots"].of_seed(1) != CASES["leo-slots"].of_seed(2)
        True
        """
        if self.slot_s is None:
            return self
        # Whole milliseconds, which all hosts take exactly.
        phase_ms = random.Random(f"{self.name} {seed}").randrange(round(1000 * self.slot_s))
        link = {key: _later(value, phase_ms / 1000) if _loops(value) else value for key, value in self.link.items()}
        return replace(self, link=link)

    @property
    def loads(self) -> tuple[str, ...]:
        """The loads it is run with."""
        return tuple(LOADS) if self.group == FIELD else (AS_WRITTEN,)


# --- Flows ----------------------------------------------------------------------------------------------------------


def _tcp(name: str, count: int = 1, cc: str = "newreno", **keys: Any) -> dict[str, Any]:
    return {"name": name, "kind": "tcp", "cc": cc, "count": count, "stagger": "100ms", **keys}


def _cbr(name: str, rate: Any, **keys: Any) -> dict[str, Any]:
    return {"name": name, "kind": "cbr", "rate": rate, "packet": "1200B", "jitter": 0.1, **keys}


def _media(name: str, rate: Any, **keys: Any) -> dict[str, Any]:
    return {"name": name, "kind": "cbr", "rate": rate, "packet": "1200B", "jitter": 0.1, **keys}


def _steps(*steps: tuple[float, str], period_s: float | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"steps": [[f"{at_s:g}s", value] for at_s, value in steps]}
    return found if period_s is None else {**found, "end": "loop", "period": f"{period_s:g}s"}


def _loops(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("end") == "loop"


def _later(value: Mapping[str, Any], by_s: float) -> dict[str, Any]:
    """Steps in a loop, all of them later.

    >>> _later(_steps((0, "1Mbit"), (8, "2Mbit"), period_s=10), 3)["steps"]
    [['0s', '1Mbit'], ['1s', '2Mbit'], ['3s', '1Mbit']]
    """
    period_s = _native.quantity(value["period"], "time")
    moved = sorted(((_native.quantity(at, "time") + by_s) % period_s, of_step) for at, of_step in value["steps"])
    first = [] if moved[0][0] == 0 else [(0.0, moved[-1][1])]
    return {**value, "steps": [[f"{at_s:.9g}s", of_step] for at_s, of_step in (*first, *moved)]}


FILM = {
    "name": "film",
    "kind": "video",
    "ladder": ["300kbit", "750kbit", "1.5Mbit", "3Mbit"],
    "segment": "2s",
    "buffer": "10s",
}
"""A film that adapts, in the class without a promise."""
_PAGES = {
    "name": "reader",
    "kind": "web",
    "main": {"mean": "40kB", "distribution": "lognormal", "deviation": "40kB", "max": "1MB"},
    "objects": {"mean": 15, "max": 60},
    "object": {"mean": "12kB", "distribution": "lognormal", "deviation": "30kB", "max": "1MB"},
    "server_time": "20ms",
    "think": {"mean": "3s"},
}
_WIRE = {"rate": "10Mbit", "delay": "25ms"}


# --- RFC 7928: queue management -------------------------------------------------------------------------------------


_NOTHING = "nothing more"
_NONE_KNOWN = "nothing that is known"
_UNREAD = "after {}, parameters not checked against its text"
_DRAFT = "after RFC 8867, parameters checked against draft-ietf-rmcat-eval-test-03, section {}, not the RFC's text"
_OUR_FLOWS = "our number of flows"
_OUR_RATES = "our rates and times"


def _aqm(
    name: str,
    title: str,
    flows: tuple[Mapping[str, Any], ...],
    left_out: str = _NONE_KNOWN,
    *,
    link: Mapping[str, Any] = _WIRE,
    duration_s: int = 30,
    quick: bool = False,
    trace: Callable[[], traces.Trace] | None = None,
) -> Case:
    return Case(
        name,
        title,
        AQM,
        _UNREAD.format(AQM),
        left_out,
        link,
        "1Mbit",
        duration_s,
        flows=flows,
        quick=quick,
        trace=trace,
    )


_AQM = (
    _aqm("same-window", "Two TCP senders", (_tcp("download", 2),)),
    _aqm(
        "other-window",
        "Two TCP senders with initial windows of 3 and 10 segments",
        (_tcp("small", initial_window="3p"), _tcp("large", initial_window="10p", start="10s")),
    ),
    _aqm(
        "aggressive",
        "New Reno beside CUBIC",
        (_tcp("newreno", 2), _tcp("cubic", 2, "cubic")),
        "senders more aggressive than CUBIC",
    ),
    _aqm(
        "unresponsive",
        "Four TCP senders beside 8 Mbit/s that do not react",
        (_tcp("download", 4), _cbr("flood", "8Mbit")),
        "the run without TCP",
    ),
    _aqm(
        "rtt",
        "TCP senders with round trips of 5, 100 and 560 ms",
        (
            _tcp("near", access_delay="500us"),
            _tcp("middle", access_delay="48ms"),
            _tcp("far", access_delay="278ms"),
        ),
        "round trips between these",
        link={"rate": "10Mbit", "delay": "2ms"},
        duration_s=60,
    ),
    _aqm(
        "bursts",
        "Web pages, a film, a constant rate and a download",
        ({**_PAGES, "count": 2}, FILM, _cbr("constant", "500kbit"), _tcp("download")),
        quick=True,
    ),
    _aqm("mild", "Mild congestion", (_tcp("download", 4),), _OUR_FLOWS),
    _aqm("medium", "Medium congestion", (_tcp("download", 10),), _OUR_FLOWS),
    _aqm("heavy", "Heavy congestion", (_tcp("download", 14),), _OUR_FLOWS),
    _aqm(
        "phases",
        "Mild, medium and heavy congestion in turn",
        (
            _tcp("mild", 4),
            _tcp("medium", 6, start="10s", stop="30s"),
            _tcp("heavy", 4, start="20s", stop="30s"),
        ),
        "our numbers of flows and times",
        duration_s=40,
    ),
    _aqm(
        "slow-capacity",
        "Capacity of 20 and 2 Mbit/s in turn, 10 s each",
        (_tcp("download", 4),),
        _OUR_RATES,
        link={"rate": _steps((0, "20Mbit"), (10, "2Mbit"), period_s=20), "delay": "25ms", "nominal": "20Mbit"},
        duration_s=45,
    ),
    _aqm(
        "fast-capacity",
        "Capacity of 20 and 2 Mbit/s in turn, 100 ms each",
        (_tcp("download", 4),),
        _OUR_RATES,
        link={"rate": _steps((0, "20Mbit"), (0.1, "2Mbit"), period_s=0.2), "delay": "25ms", "nominal": "20Mbit"},
        duration_s=20,
    ),
    _aqm(
        "mix",
        "Calls, web pages, a film, a constant rate and downloads",
        ({**_PAGES, "count": 2}, FILM, _cbr("constant", "500kbit"), _tcp("download", 4, "cubic")),
    ),
)


# --- RFC 8867: media over wires -------------------------------------------------------------------------------------


def _wired(
    name: str,
    title: str,
    section: str,
    rate: Any,
    promised: str,
    media: tuple[Mapping[str, Any], ...],
    flows: tuple[Mapping[str, Any], ...],
    left_out: str,
    *,
    duration_s: int,
    nominal: str | None = None,
    quick: bool = False,
) -> Case:
    link = {"rate": rate, "delay": "50ms", **({} if nominal is None else {"nominal": nominal})}
    source = _DRAFT.format(section)
    return Case(
        name,
        title,
        MEDIA,
        source,
        left_out,
        link,
        promised,
        duration_s,
        calls=1,
        media=media,
        flows=flows,
        quick=quick,
    )


_MEDIA = (
    _wired(
        "media-one",
        "Media while the capacity changes",
        "5.1",
        _steps((0, "1Mbit"), (40, "2.5Mbit"), (60, "600kbit"), (80, "1Mbit")),
        "300kbit",
        (_media("media", "270kbit"),),
        (_tcp("download"),),
        "the run with 100 ms each way",
        duration_s=100,
        nominal="1Mbit",
        quick=True,
    ),
    _wired(
        "media-two",
        "Two media flows while the capacity changes",
        "5.2",
        _steps((0, "4Mbit"), (25, "2Mbit"), (50, "3.5Mbit"), (75, "1Mbit"), (100, "2Mbit")),
        "600kbit",
        (_media("media", "270kbit", count=2),),
        (_tcp("download"),),
        _NOTHING,
        duration_s=125,
        nominal="2Mbit",
    ),
    _wired(
        "media-arrive",
        "Three media flows that start one after another",
        "5.4",
        "3.5Mbit",
        "1500kbit",
        (
            _media("first", "450kbit"),
            _media("second", "450kbit", start="20s"),
            _media("third", "450kbit", start="40s"),
        ),
        (_tcp("download"),),
        "80 s, not 120",
        duration_s=80,
    ),
    _wired(
        "media-rtt",
        "Five flows with one-way delays of 10, 25, 50, 100 and 150 ms",
        "5.5",
        "4Mbit",
        "500kbit",
        (_media("media", "450kbit"),),
        tuple(_tcp(f"flow-{ms}ms", access_delay=f"{ms}ms") for ms in (10, 25, 50, 100, 150)),
        "TCP flows in place of media, all from the start, 50 ms more; the rate is ours; 100 s, not 300",
        duration_s=100,
    ),
    _wired(
        "media-long-tcp",
        "Media beside a long TCP flow",
        "5.6",
        "2Mbit",
        "1Mbit",
        (_media("media", "900kbit"),),
        (_tcp("long", start="5s"),),
        "media from 0 s and TCP from 5 s, not the other way round; 60 s, not 120",
        duration_s=60,
    ),
    _wired(
        "media-short-tcp",
        "Two media flows beside ten short TCP flows",
        "5.7",
        "2Mbit",
        "1Mbit",
        (_media("media", "450kbit", count=2),),
        (
            {
                "name": "short",
                "kind": "requests",
                "response": {"mean": "40kB"},
                "think": {"mean": "10s"},
                "count": 10,
                "start": "5s",
            },
        ),
        "files of 40 kB on average, not 100 kB to 1 MB; media from 0 s, not 5 s; 100 s, not 300",
        duration_s=100,
    ),
    _wired(
        "media-pause",
        "Three media flows, of which one pauses",
        "5.8",
        "3.5Mbit",
        "1500kbit",
        (_media("media", "450kbit", count=2), _media("pausing", _steps((0, "450kbit"), (40, "0bit"), (60, "450kbit")))),
        (_tcp("download"),),
        "80 s, not 120",
        duration_s=80,
    ),
)


# --- RFC 8869: media over radio -------------------------------------------------------------------------------------


def _wireless(name: str, title: str, left_out: str, link: Mapping[str, Any], **keys: Any) -> Case:
    media = (_media("media", "450kbit"),)
    return Case(
        name,
        title,
        WIRELESS,
        _UNREAD.format(WIRELESS),
        left_out,
        link,
        "500kbit",
        duration_s=keys.pop("duration_s", 60),
        media=media,
        flows=(_tcp("download", keys.pop("downloads", 2), "cubic"),),
        **keys,
    )


_WIFI = {"mean": "0.5%", "burst": "3p"}
_WIRELESS = (
    _wireless(
        "cell-load",
        "A cell in which users come and go",
        "other users: their number divides the capacity",
        {
            "rate": _steps(
                (0, "6Mbit"), (10, "3Mbit"), (20, "2Mbit"), (30, "1.2Mbit"), (40, "2Mbit"), (50, "6Mbit"), period_s=60
            ),
            "delay": "30ms",
            "nominal": "3Mbit",
        },
        quick=True,
    ),
    _wireless(
        "cell-edge",
        "Bad coverage at walking pace",
        "the radio's model: a generated drive",
        {"delay": "30ms", "nominal": "1.5Mbit"},
        trace=lambda: traces.lte_drive(seed=2, duration_s=120, mean_mbit=1.5),
        memory="10s",
    ),
    _wireless(
        "wifi-wire",
        "Wi-Fi behind a slower wire",
        "Wi-Fi's delay variation",
        {"rate": "3Mbit", "delay": "15ms", "loss": _WIFI},
        downloads=4,
    ),
    _wireless(
        "wifi",
        "Wi-Fi as the bottleneck",
        "other stations, the uplink, 802.11's access",
        {
            "rate": _steps((0, "16Mbit"), (12, "8Mbit"), (20, "4Mbit"), (28, "12Mbit"), period_s=40),
            "delay": "5ms",
            "loss": _WIFI,
            "overhead": "34B",
            "nominal": "12Mbit",
        },
        downloads=4,
    ),
)


# --- Links of our field ---------------------------------------------------------------------------------------------


def _field(
    name: str,
    title: str,
    source: str,
    left_out: str,
    link: Mapping[str, Any],
    promised: str,
    duration_s: int,
    **keys: Any,
) -> Case:
    return Case(name, title, FIELD, source, left_out, link, promised, duration_s, **keys)


_FIELD = (
    _field(
        "geo-rain",
        "A terminal of a GEO beam in rain",
        "scenarios/geo-beam-rain.toml",
        "99 terminals, four fifths of the carrier; the delay after fades",
        {
            "delay": "250ms",
            "beam": {
                "symbol_rate": "5MBd",
                "clear_sky_esn0_db": [13, 13, 13],
                "modcods": "dvb_s2x",
                "margin_db": 1.0,
                "hysteresis_db": 0.5,
                "tick": "100ms",
                "rain": {
                    "exceeded": [
                        ["0.01%", 14.487],
                        ["0.02%", 10.937],
                        ["0.05%", 7.184],
                        ["0.1%", 5.038],
                        ["0.2%", 3.423],
                        ["0.5%", 1.956],
                        ["1%", 1.235],
                    ],
                    "probability": "4.83%",
                    "correlation": 1,
                    "start": "0.05%",
                },
            },
        },
        "1500kbit",
        60,
        warmup_s=10,
        memory="10s",
    ),
    _field(
        "geo",
        "A GEO link with a round trip of 600 ms",
        "scenarios/geo.toml",
        "half of the rate; 300 ms each way, not 250",
        {"rate": "10Mbit", "delay": "300ms"},
        "2500kbit",
        60,
        warmup_s=15,
    ),
    _field(
        "leo-slots",
        "LEO: a new rate and delay every 15 s, after a stall of 100 ms",
        "scenarios/handover.toml",
        "five sixths of the rates; slots begin as the seed says",
        {
            "rate": _steps(
                (0, "20Mbit"),
                (14.9, "0bit"),
                (15, "10Mbit"),
                (29.9, "0bit"),
                (30, "26Mbit"),
                (44.9, "0bit"),
                (45, "15Mbit"),
                (59.9, "0bit"),
                period_s=60,
            ),
            "delay": _steps((0, "18ms"), (15, "28ms"), (30, "15ms"), (45, "23ms"), period_s=60),
            "nominal": "16Mbit",
        },
        "4Mbit",
        35,
        fade_least_s=0.1,
        slot_s=15.0,
    ),
    _field(
        "leo-drive",
        "LEO on the road, with obstructions",
        "scenarios/starlink.toml",
        "nine tenths of the rates",
        {"delay": "20ms", "nominal": "15Mbit"},
        "4Mbit",
        75,
        trace=lambda: traces.starlink(seed=1, duration_s=600, mean_mbit=15),
    ),
    _field(
        "lte-drive",
        "LTE in a moving car",
        "scenarios/traces/lte-drive.csv",
        "the end of the trace",
        {"delay": "25ms", "nominal": "5Mbit"},
        "1500kbit",
        60,
        trace=lambda: traces.lte_drive(seed=6, duration_s=300),
        memory="10s",
        quick=True,
    ),
    _field(
        "5g-blockage",
        "5G that is blocked for 300 ms every 5 s",
        "scenarios/5g-blockage.toml",
        "nine tenths of the rate",
        {
            "rate": _steps((0, "20Mbit"), (4, "0bit"), (4.3, "20Mbit"), period_s=5),
            "delay": "5ms",
            "nominal": "20Mbit",
        },
        "5Mbit",
        25,
        warmup_s=3,
        quick=True,
    ),
    _field(
        "radio-rain",
        "A radio that lowers its modulation in rain",
        "scenarios/fade.toml",
        "one step: here one for each modulation",
        {
            "rate": _steps(
                (0, "20Mbit"),
                (15, "14Mbit"),
                (18, "8Mbit"),
                (21, "3Mbit"),
                (31, "8Mbit"),
                (34, "14Mbit"),
                (37, "20Mbit"),
            ),
            "delay": "20ms",
            "nominal": "20Mbit",
        },
        "4Mbit",
        50,
    ),
    _field(
        "aircraft",
        "An aircraft that changes beams, with gaps of 2 s",
        "scenarios/handover.toml",
        "its rates; gaps last 2 s",
        {
            "rate": _steps((0, "12Mbit"), (15, "0bit"), (17, "6Mbit"), (32, "0bit"), (34, "16Mbit"), period_s=60),
            "delay": _steps((0, "40ms"), (17, "55ms"), (34, "35ms"), period_s=60),
            "nominal": "12Mbit",
        },
        "2500kbit",
        50,
    ),
)

CASES = {case.name: case for case in (*_AQM, *_MEDIA, *_WIRELESS, *_FIELD)}
"""All cases by name."""
