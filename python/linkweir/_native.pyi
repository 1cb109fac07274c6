# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypedDict, final

from linkweir.fault import RunError, ScenarioError
from linkweir.scenarios.typed import Tables

__all__ = [
    "Link",
    "Panels",
    "Recording",
    "RunError",
    "Scenario",
    "ScenarioError",
    "__version__",
    "codecs",
    "commit",
    "e_model",
    "empty_tables",
    "load",
    "mos",
    "parse",
    "policies",
    "quantity",
    "reading",
    "run",
    "run_batch",
    "show",
    "shown_classes",
    "sources",
    "tables",
    "trace",
    "traffic_kinds",
    "units",
]

__version__: str
commit: str
sources: str
shown_classes: int

class _Param(TypedDict):
    name: str
    help: str
    unit: str
    choices: list[str]
    min: str | None
    max: str | None
    default: str | None
    usual: Any
    at_init: bool

class _Stat(TypedDict):
    name: str
    help: str
    unit: str
    column: str

class _Policy(TypedDict):
    name: str
    help: str
    max_classes: int
    isolates_flows: bool
    sorted_by_ecn: bool
    params: list[_Param]
    class_params: list[_Param]
    stats: list[_Stat]

class _Shape(TypedDict):
    """What a value may be; which of the keys but `form` there are depends on it."""

    form: str
    noun: str
    least: Any
    most: Any
    words: list[str]
    table: str
    tables: str
    key: str

class _Key(TypedDict):
    name: str
    values: str
    default: str
    second_default: str | None
    always: bool
    meaning: str
    shape: _Shape
    hosts: dict[str, tuple[str, str | None]]

class _Table(TypedDict):
    path: str
    keys: list[_Key]
    own: list[_Key]

class _TrafficKind(TypedDict):
    name: str
    table: str
    hosts: dict[str, tuple[str, str | None]]

class _Outcome(TypedDict):
    complete: bool
    simulated_s: float
    events: int
    packets: int
    log_cut_s: float | None

class _Codec(TypedDict):
    name: str
    payload_bytes: int
    interval_s: float
    delay_s: float
    impairment: tuple[float, float] | None

_Column = tuple[str, str, int, bytes, bytes | None, list[str] | None]

@final
class Link:
    """A link that a program drives; see `linkweir.Link`."""

    def __new__(cls, scenario: Scenario) -> Link: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def end_ns(self) -> int: ...
    def send(
        self, now_ns: int, class_: int, length: int, flow: int, codepoint: tuple[bool, bool], payload: Any
    ) -> None: ...
    def next_ns(self) -> int | None: ...
    def forget_dropped(self) -> None: ...
    def receive(self, now_ns: int) -> tuple[Any, int, int, int, int, int, bool] | None: ...
    def dropped(self, now_ns: int) -> tuple[Any, int, int, int, int, str] | None: ...
    def counts(self, class_: int) -> tuple[int, int, int, int] | None: ...

@final
class Scenario:
    @property
    def links(self) -> list[Scenario]:
        """Each link of a network alone, in the network's order, with the flows that pass it on their way there."""
    @property
    def link_names(self) -> list[str] | None:
        """Names of the links of a network, in the network's order; None for one link."""
    def ways(self) -> list[tuple[str, list[tuple[str, str]], list[tuple[str, str]]]]:
        """Of each flow of a network its name, and the links with their classes that it passes there and back."""
    def ways_over_time(
        self,
    ) -> list[tuple[str, list[tuple[float, list[tuple[str, str]]]], list[tuple[float, list[tuple[str, str]]]]]]:
        """The same over time: the ways there and back with the time in s from which packets take them."""
    @property
    def name(self) -> str: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def warmup_s(self) -> float: ...
    @property
    def interval_s(self) -> float: ...
    @property
    def capacity_length_s(self) -> float | None: ...
    @property
    def seed(self) -> int: ...
    @property
    def policy(self) -> str: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def flows(self) -> list[str]: ...
    @property
    def resolved(self) -> str: ...
    @property
    def inputs(self) -> list[tuple[str, str, bytes]]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def readings(self) -> list[str]: ...
    def tables(self) -> Tables: ...
    def written(self) -> dict[str, Any]: ...
    def link_steps(self, of: str, finest_s: float) -> tuple[list[int], list[float]]:
        """Capacity ("rate", bit/s), "delay" (s) or "loss" of the link as steps of its means: starts in ns, values."""
    def kept(self, promised_bps: Sequence[int]) -> list[list[tuple[int, int]]]:
        """Of a bond alone, what its links carry of what is promised to classes, bit/s: with all, then without each."""
    @property
    def reorder(self) -> tuple[float, float] | None:
        """Part of the packets that is held back, and for how long, s."""
    def fates(self, count: int) -> bytes | None:
        """Of the first packets that leave the device: 0 travels on, 1 is lost, 2 is held back; None if loss changes."""
    def opportunities(self) -> tuple[list[int], int]:
        """Instants in ns up to the end at which bytes may leave, and how many; none where the capacity is a rate."""

    def replayed(self, flow: str) -> list[tuple[int, int]] | None:
        """Packets of a flow of kind replay, or of its first copy: ns after its start, bytes; None for other kinds."""

class _Panel(TypedDict):
    name: str
    title: str
    x: bytes
    x_label: str
    y_label: str
    over_time: bool
    steps: bool
    log_x: bool
    log_y: bool
    y_range: tuple[float, float] | None
    from_zero: bool
    note: str
    lines: list[tuple[str, bytes, int | None, str, bool, tuple[int, int] | None]]
    json: str

@final
class Panels:
    """Tables of a run on their way to panels; see `linkweir.panels.Panels`."""

    def __new__(
        cls,
        scenario: Scenario,
        simulated_s: float,
        comes_and_goes: bool,
        most_classes: int,
        most_points: int,
        sent_bytes: dict[str, float] | None = None,
    ) -> Panels: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def left_out(self) -> int: ...
    @property
    def step(self) -> int: ...
    def wanted(self, distributions: bool) -> list[tuple[str, list[str]]]:
        """The tables whose rows are wanted, with the columns: for panels over time, or for distributions."""
    def take(self, table: str, columns: Sequence[tuple[str, bytes, list[str] | None]]) -> None: ...
    def over_time(self) -> list[_Panel]: ...
    def distributions(self) -> list[_Panel]: ...

_Sums = tuple[int, int, int, int, int, int, int]

@final
class Recording:
    """A recording of a gateway. Times are ns on its clock; spans are a begin and an end."""

    def __new__(cls, files: Sequence[bytes]) -> Recording: ...
    @property
    def sections(self) -> list[tuple[str, int, int, int, list[str], list[tuple[int, int]]]]:
        """Settings, origin in ns of UNIX time, begin, end, texts of the peers, gaps."""
    @property
    def span_ns(self) -> tuple[int, int]: ...
    @property
    def damages(self) -> list[tuple[int, int, int]]:
        """What could not be read: number of the file, first byte, how many bytes."""
    @property
    def peers(self) -> dict[str, _Sums]: ...
    def sums(self, peer: str, classes: list[str], span_ns: tuple[int, int], interval_ns: int) -> list[list[_Sums]]:
        """Per interval and class: arrived packets, bytes, TCP packets; sent packets, bytes; dropped packets, bytes."""
    def capacity(self, peer: str, span_ns: tuple[int, int]) -> list[tuple[int, int]]:
        """Changes: ns after the begin of the span, bit/s."""
    def path_states(self, peer: str, paths: list[str], span_ns: tuple[int, int]) -> list[list[tuple[int, int, int]]]:
        """Per path its changes: ns after the begin of the span, bit/s, delay in ns."""
    def knows_paths(self, peer: str) -> list[bool]:
        """For each section whether it says what each of the paths to a peer was."""
    def carried(
        self, peer: str, names: tuple[list[str], list[str]], span_ns: tuple[int, int]
    ) -> list[list[tuple[int, int]]]:
        """Packets and bytes that the paths of these names sent of the classes of these names, a list per path."""
    def cut(self, peer: str, section: int, span_ns: tuple[int, int]) -> bytes: ...

def codecs() -> list[_Codec]: ...
def policies() -> list[_Policy]: ...
def tables(of: str) -> list[_Table]: ...
def traffic_kinds() -> list[_TrafficKind]: ...
def units() -> dict[str, list[str]]: ...
def load(
    path: str | PathLike[str],
    *,
    seed: int | None = None,
    trace: str | PathLike[str] | None = None,
    trace_content: bytes | None = None,
    trace_keys: str = "",
    driven: bool = False,
) -> Scenario: ...
def parse(
    text: str,
    path: str | PathLike[str] | None = None,
    *,
    seed: int | None = None,
    trace: str | PathLike[str] | None = None,
    trace_content: bytes | None = None,
    trace_keys: str = "",
    driven: bool = False,
) -> Scenario: ...
def run(
    scenario: Scenario,
    on_chunk: Callable[[str, list[_Column]], Any],
    on_progress: Callable[[float], Any] | None = None,
    on_sent: Callable[[float, list[int]], Any] | None = None,
    calls: str | PathLike[str] | None = None,
    threads: int = 1,
) -> _Outcome: ...
def run_batch(
    scenarios: Sequence[Scenario],
    threads: int,
    on_done: Callable[[int, _Outcome, dict[str, list[list[_Column]]]], Any],
) -> None: ...
def e_model(
    delay_s: float,
    loss: float,
    factors: tuple[float, float],
    burst_r: float,
    line: dict[str, float] | None = None,
) -> tuple[float, float, float, float]:
    """Ro, Is, Id and Ie,eff of the E-model; `line` has its other parameters by name, or the usual ones."""

def mos(rating: float) -> float:
    """Mean opinion score of a rating."""

def empty_tables(network: bool = False) -> dict[str, list[_Column]]:
    """All tables but `levels`, whose columns are those of the policy, without rows; of a network or of one link."""

def quantity(text: str, kind: str) -> float:
    """A quantity in base units; kind: rate, time (s), size, bits, packets, fraction, symbol_rate. Raises ValueError."""

def show(value: float, kind: str) -> str:
    """A quantity as it is written in scenarios."""

def reading(path: PathLike[str], keys: str = "") -> tuple[str, list[str], float, float | None]:
    """What a capacity trace is taken for, what is doubtful, its mean in bit/s and its length in s."""

def trace(path: PathLike[str], keys: str = "") -> tuple[str, tuple[list[float], list[float], float | None, str]]:
    """A capacity trace: "rate" or "opportunities", and starts in s, values in bit/s or bytes, the end in s (None while
    the last value holds) and what follows it. Raises ScenarioError.
    """
