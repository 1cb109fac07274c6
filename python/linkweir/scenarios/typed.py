# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a checked scenario: numbers, with their units in the names of the keys.

Written by `make keys` from the declarations of the keys; `python/tests/test_declared.py` compares.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, final


@final
class Cosine(TypedDict):
    """mean x (1 + amplitude x cos(2 pi t / period + phase))."""

    mean: float
    amplitude: float
    period_s: float
    phase: float


@final
class Steps(TypedDict):
    """Each value lasts until the next time; `period_s` with the end loop, `at_s` with stop."""

    steps: list[tuple[float, float]]
    end: str
    period_s: float
    at_s: float


@final
class Lines(TypedDict):
    """Straight lines between points."""

    lines: list[tuple[float, float]]


@final
class LossBursts(TypedDict):
    """Losses that come in bursts."""

    mean: float
    burst_pkts: float


@final
class Drawn(TypedDict, total=False):
    """Amounts from a distribution with a mean."""

    mean: float
    distribution: str
    shape: float
    deviation: float
    max: float


@final
class Measured(TypedDict, total=False):
    """Amounts from a measured distribution."""

    cdf: list[tuple[float, float]]
    file: str
    decimal: str


@final
class Sizes(TypedDict):
    """Sizes of packets with their weights."""

    sizes: list[int]
    weights: list[float]


@final
class SizesBetween(TypedDict):
    """Sizes of packets from one to another."""

    min: int
    max: int


@final
class Reorder(TypedDict):
    """The table `link.reorder`."""

    probability: float
    delay_s: float


@final
class Place(TypedDict):
    """The table `place`."""

    lat_deg: float
    lon_deg: float


SatelliteConstellation = TypedDict(
    "SatelliteConstellation",
    {
        "pattern": str | None,
        "spacing_deg": Any | None,
        "planes": int,
        "per_plane": int,
        "phasing": int | None,
        "altitude_km": float,
        "inclination_deg": float,
        "min_elevation_deg": float | None,
        "from": Place,
        "to": Place,
        "step_s": float | None,
    },
)
"""The table `link.satellite.constellation`."""


@final
class Satellite(TypedDict):
    """The table `link.satellite`."""

    fading: str | None
    model: str | None
    environment: str | None
    elevation_deg: int | None
    speed_kmh: float | None
    carrier_ghz: float | None
    period_s: float | None
    fading_seed: int | None
    user_offset_s: float | None
    users: str | None
    csi_tick_s: float | None
    csi_age: str | None
    packet_bytes: int
    esn0_db: int | None
    ground_delay_s: float | None
    delays: str | None
    decimal: str | None
    constellation: SatelliteConstellation | None
    delays_start_s: float | None
    delays_shift_s: float | None
    delays_before_s: float | None
    repeats_see: str | None
    first_attempt: str | None
    reorder: str | None
    reorder_pkts: int | None
    reorder_timeout_s: float | None


@final
class Rain(TypedDict):
    """The table `link.beam.rain`."""

    exceeded: Any | None
    m: float | None
    sigma: float | None
    probability: float | None
    correlation_time_s: float | None
    correlation: float | None
    start: float | None


@final
class Beam(TypedDict):
    """The table `link.beam`."""

    symbol_rate_baud: float
    clear_sky_esn0_db: float | list[float] | dict[str, float]
    modcods: str | None
    margin_db: float | None
    hysteresis_db: float | None
    tick_s: float | None
    channel_seed: int | None
    rain: Rain | None
    attenuation: str | None
    decimal: str | None


@final
class Link(TypedDict):
    """The table `link`."""

    rate_bps: float | Cosine | Steps | Lines | None
    trace: str | None
    trace_format: str | None
    trace_column: str | None
    columns: dict[str, Any] | None
    end: str | None
    trace_unit: str | None
    trace_interval_s: float | None
    decimal: str | None
    zone: str | None
    dates: str | None
    covers: str | None
    equal_times: str | None
    earlier_times: str | None
    gap: str | None
    nominal_bps: float
    follow: bool
    delay_s: float | Cosine | Steps | Lines
    return_delay_s: float
    loss: float | Cosine | Steps | Lines | LossBursts
    reorder: Reorder | None
    ring: int
    overhead_bytes: int
    mpu_bytes: int
    satellite: Satellite | None
    beam: Beam | None


@final
class Top(TypedDict):
    """The top level."""

    name: str
    duration_s: float
    warmup_s: float
    interval_s: float
    seed: int
    log: str
    log_rows: int | None


@final
class Scheduler(TypedDict):
    """The table `scheduler`."""

    policy: str | dict[str, Any]
    across: dict[str, Any] | None
    params: dict[str, Any]


@final
class Class(TypedDict):
    """The table `class`."""

    name: str
    count: int
    match: list[dict[str, Any]] | None
    limit_pkts: int | None
    limit_s: float | None
    limit_bytes: int | None
    max_age_s: float | None
    full: str | None
    least: float | None
    flows: str | None
    l4s_step_s: float | None
    user: str | None
    coded: str | None
    across: dict[str, Any] | None
    params: dict[str, Any]


FlowCbr = TypedDict(
    "FlowCbr",
    {
        "kind": Literal["cbr"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "rate_bps": float | Cosine | Steps | Lines,
        "jitter": float,
        "packet_bytes": int | Sizes | SizesBetween,
    },
)
"""A flow of kind cbr."""


FlowPoisson = TypedDict(
    "FlowPoisson",
    {
        "kind": Literal["poisson"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "rate_bps": float | Cosine | Steps | Lines,
        "packet_bytes": int | Sizes | SizesBetween,
    },
)
"""A flow of kind poisson."""


FlowOnoff = TypedDict(
    "FlowOnoff",
    {
        "kind": Literal["onoff"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "rate_bps": float,
        "on_s": float,
        "off_s": float,
        "lengths": str,
        "shape": float,
        "packet_bytes": int | Sizes | SizesBetween,
    },
)
"""A flow of kind onoff."""


FlowGreedy = TypedDict(
    "FlowGreedy",
    {
        "kind": Literal["greedy"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "backlog_pkts": int,
        "packet_bytes": int | Sizes | SizesBetween,
    },
)
"""A flow of kind greedy."""


FlowBulk = TypedDict(
    "FlowBulk",
    {
        "kind": Literal["tcp"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "cc": str,
        "profile": str,
        "ecn": bool,
        "mss_bytes": int,
        "header_bytes": int,
        "ack_bytes": int,
        "window_pkts": int,
        "initial_window_pkts": int,
        "min_rto_s": float,
        "max_rto_s": float,
        "initial_rto_s": float,
        "tick_s": float,
        "delayed_ack": bool,
        "delayed_ack_timeout_s": float,
        "quick_acks_pkts": int,
        "hystart": bool,
        "timestamps": bool,
        "bytes": int | None,
    },
)
"""A flow of kind tcp."""


FlowVoice = TypedDict(
    "FlowVoice",
    {
        "kind": Literal["voice"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "codec": str,
        "header_bytes": int,
        "talkspurts": bool,
        "jitter": float,
    },
)
"""A flow of kind voice."""


FlowReplay = TypedDict(
    "FlowReplay",
    {
        "kind": Literal["replay"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "file": str,
        "only": str | None,
        "decimal": str | None,
        "lengths": str | None,
        "mtu_bytes": int | None,
        "period_s": float | None,
    },
)
"""A flow of kind replay."""


FlowTransfers = TypedDict(
    "FlowTransfers",
    {
        "kind": Literal["transfers"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "cc": str,
        "profile": str,
        "ecn": bool,
        "mss_bytes": int,
        "header_bytes": int,
        "ack_bytes": int,
        "window_pkts": int,
        "initial_window_pkts": int,
        "min_rto_s": float,
        "max_rto_s": float,
        "initial_rto_s": float,
        "tick_s": float,
        "delayed_ack": bool,
        "delayed_ack_timeout_s": float,
        "quick_acks_pkts": int,
        "hystart": bool,
        "timestamps": bool,
        "arrivals": dict[str, Any],
        "size_bytes": int | Drawn | Measured,
        "concurrent": int,
    },
)
"""A flow of kind transfers."""


FlowRequests = TypedDict(
    "FlowRequests",
    {
        "kind": Literal["requests"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "cc": str,
        "profile": str,
        "ecn": bool,
        "mss_bytes": int,
        "header_bytes": int,
        "ack_bytes": int,
        "window_pkts": int,
        "initial_window_pkts": int,
        "min_rto_s": float,
        "max_rto_s": float,
        "initial_rto_s": float,
        "tick_s": float,
        "delayed_ack": bool,
        "delayed_ack_timeout_s": float,
        "quick_acks_pkts": int,
        "hystart": bool,
        "timestamps": bool,
        "response_bytes": int | Drawn | Measured,
        "think_s": float | Drawn | Measured,
        "server_time_s": float | Drawn | Measured,
    },
)
"""A flow of kind requests."""


FlowWeb = TypedDict(
    "FlowWeb",
    {
        "kind": Literal["web"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "cc": str,
        "profile": str,
        "ecn": bool,
        "mss_bytes": int,
        "header_bytes": int,
        "ack_bytes": int,
        "window_pkts": int,
        "initial_window_pkts": int,
        "min_rto_s": float,
        "max_rto_s": float,
        "initial_rto_s": float,
        "tick_s": float,
        "delayed_ack": bool,
        "delayed_ack_timeout_s": float,
        "quick_acks_pkts": int,
        "hystart": bool,
        "timestamps": bool,
        "main_bytes": int | Drawn | Measured,
        "objects": float | Drawn | Measured,
        "object_bytes": int | Drawn | Measured,
        "connections": int,
        "think_s": float | Drawn | Measured,
        "server_time_s": float | Drawn | Measured,
    },
)
"""A flow of kind web."""


FlowVideo = TypedDict(
    "FlowVideo",
    {
        "kind": Literal["video"],
        "name": str,
        "class": Any,
        "dscp": str | int | None,
        "path": list[str] | None,
        "back": list[str] | None,
        "from": str | None,
        "to": str | None,
        "start_s": float,
        "stop_s": float,
        "access_delay_s": float,
        "count": int,
        "stagger_s": float,
        "delays": bool,
        "playout": str | list[str] | None,
        "cc": str,
        "profile": str,
        "ecn": bool,
        "mss_bytes": int,
        "header_bytes": int,
        "ack_bytes": int,
        "window_pkts": int,
        "initial_window_pkts": int,
        "min_rto_s": float,
        "max_rto_s": float,
        "initial_rto_s": float,
        "tick_s": float,
        "delayed_ack": bool,
        "delayed_ack_timeout_s": float,
        "quick_acks_pkts": int,
        "hystart": bool,
        "timestamps": bool,
        "ladder_bps": list[float],
        "segment_s": float,
        "buffer_s": float,
        "startup_s": float,
        "adaptation": str,
        "reservoir_s": float | None,
        "cushion_s": float | None,
        "history": int | None,
        "safety": float | None,
        "server_time_s": float | Drawn | Measured,
    },
)
"""A flow of kind video."""


Flow = (
    FlowCbr
    | FlowPoisson
    | FlowOnoff
    | FlowGreedy
    | FlowBulk
    | FlowVoice
    | FlowReplay
    | FlowTransfers
    | FlowRequests
    | FlowWeb
    | FlowVideo
)
"""An entry of `flow`: which one, its kind says."""


@final
class Tables(TypedDict):
    """A scenario."""

    top: Top
    link: Link
    scheduler: Scheduler
    classes: list[Class]
    flows: list[Flow]
