# SPDX-License-Identifier: BSD-3-Clause
"""Runs scenarios over real gateways and an emulated link: in namespaces of this machine, or in virtual time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkweir import _native
from linkweir.directories.provenance import dump
from linkweir.lab import guest, host, kernel, namespaces
from linkweir.lab.collect import Counted, Counters, Shown, tables
from linkweir.lab.experiment import Experiments
from linkweir.lab.fault import LaboratoryError
from linkweir.lab.tunnel import ENDS, LINK_BELOW, tunnel
from linkweir.lab.world import World
from linkweir.scenarios.scenario import Scenario
from linkweir.scratch import scratch

if TYPE_CHECKING:
    import pyarrow as pa

EMULATOR = "emulator"


class OverGateways(Experiments):
    """Runs over gateways, in real or in virtual time."""

    on = "gateway"

    def __init__(self, below: Mapping[str, Any] | None, *, exported: bool = False, calls: bool = False) -> None:
        self._below = below
        self._exported = exported
        self._calls = calls

    def stop(self) -> None:
        """Ends all runs."""

    def _made(self, scenario: Scenario) -> World:
        return tunnel(scenario, self._below, exported=self._exported, calls=self._calls)

    def files(self, scenario: Scenario, processor: int | None = None) -> dict[str, bytes]:
        """What a run leaves, by name; with `calls` also the recorded calls of the sender's policy, in `calls.gz`."""
        return self._files(self._made(scenario), processor)

    def _tables(self, made: World, files: Mapping[str, bytes]) -> dict[str, pa.Table]:
        return tables(made, files, gateway_counters)

    def _extra_files(self, _files: Mapping[str, bytes]) -> dict[str, bytes]:
        last = list(_answers(_files["counters"]))[-1]
        emulator = {} if self._below is None else {f"{EMULATOR}.json": _files[EMULATOR]}
        processes = tuple(ENDS) if self._below is None else (*ENDS, EMULATOR)
        memory = memory_csv(_files["memory"], processes)
        return {"gateway.json": dump(last).encode(), **emulator, "memory.csv": memory.encode()}


class Gateways(OverGateways):
    """Two gateways and an emulator in namespaces, made for each run and gone after it.

    Args:
        gateway: the program `linkweir-gateway`; the one cargo built, or the one installed, when None.
        below: keys of the emulated link towards the receiver, but for its delay.
        exported: the sender has the configuration that `linkweir export gateway` writes.

    Raises:
        LaboratoryError: runs are not possible here; it names everything that is missing.
    """

    where = "real"

    def __init__(
        self, gateway: Path | None = None, *, below: Mapping[str, Any] = LINK_BELOW, exported: bool = False
    ) -> None:
        super().__init__(below, exported=exported)
        found = gateway or namespaces.find_gateway()
        opened = contextlib.ExitStack()
        folder = opened.enter_context(scratch())
        weakref.finalize(self, opened.close)
        self.tools = namespaces.prepare(found, folder)
        programs = [(self.tools.programs / name).read_bytes() for name in ("linkweir-gateway", "workload")]
        self.identity = hashlib.sha256(b"".join(programs)).hexdigest()

    def stop(self) -> None:
        """Ends all runs."""
        self.tools.stop()

    def _files(self, made: World, _processor: int | None) -> dict[str, bytes]:
        return namespaces.start(self.tools, made.job, made.scenario.duration_s)


class VirtualGateways(OverGateways):
    """The same programs in one user-mode Linux: runs of a seed repeat exactly.

    Args: those of `Gateways`; `below`: None has the kernel delay packets between the gateways, without an emulator, in
        less real time; `calls`: the sender records the calls of its policy; `sent_when_due`: as for `guest.prepare`;
        `say`: called with what is built.

    Raises:
        LaboratoryError: it cannot be built, or there is no gateway.
    """

    where = "virtual"

    def __init__(
        self,
        gateway: Path | None = None,
        *,
        below: Mapping[str, Any] | None = LINK_BELOW,
        exported: bool = False,
        calls: bool = False,
        sent_when_due: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(below, exported=exported, calls=calls)
        found = gateway or namespaces.find_gateway()
        if found is None:
            raise LaboratoryError(f"missing here: {namespaces.NO_GATEWAY}")
        self.guest = guest.prepare(kernel.build("fast", say=say), found, sent_when_due=sent_when_due)
        self.identity = self.guest.identity + (" netem" if below is None else "")

    def _files(self, made: World, _processor: int | None) -> dict[str, bytes]:
        return host.start(self.guest, made.job, made.scenario.seed, processor=_processor)


def _answers(text: bytes) -> Iterator[dict[str, Any]]:
    """JSON objects, one after the other."""
    words, decoder, at = text.decode(), json.JSONDecoder(), 0
    while at < len(words):
        answer, at = decoder.raw_decode(words, at)
        yield answer
        while at < len(words) and words[at].isspace():
            at += 1


def gateway_counters(world: World, text: bytes) -> Counted:
    """Counters of the sender's gateway at the ends of the bins."""
    answers = list(_answers(text))
    if len(answers) != len(world.bins):
        raise LaboratoryError(f"the gateway answered {len(answers)} times, not {len(world.bins)}")
    rows = [answer["peers"][0]["classes"] for answer in answers]
    classes = [[_counters(row) for row in of_bin] for of_bin in rows]
    link = [_sum(of_bin) for of_bin in classes]
    columns = {stat["column"]: stat["name"] for stat in _stats(world)}
    return link, classes, [[_shown(row, columns) for row in of_bin] for of_bin in rows]


def _stats(world: World) -> list[Any]:
    return next(list(policy["stats"]) for policy in _native.policies() if policy["name"] == world.scenario.policy)


def _counters(row: Mapping[str, Any]) -> Counters:
    return Counters(
        row["sent_pkts"],
        row["sent_bytes"],
        row["dropped_limit_pkts"] + row["dropped_policy_pkts"],
        row["dropped_policy_pkts"],
        row["backlog_pkts"],
        row["backlog_bytes"],
    )


def _sum(classes: list[Counters]) -> Counters:
    return Counters(sum(one.sent_pkts for one in classes), sum(one.sent_bytes for one in classes))


def _shown(row: Mapping[str, Any], columns: Mapping[str, str]) -> Shown:
    """The state that the policy shows, by its own names."""
    state = {columns[column]: value for column, value in row["state"].items()}
    return {**state, "sojourn_max": row["sojourn_max_ns"]}


def memory_csv(text: bytes, processes: Sequence[str]) -> str:
    """Resident memory of each process at the ends of the bins, bytes, from lines of kB.

    >>> print(memory_csv(b"4 3 5", ("sender", "receiver", "emulator")), end="")
    sender_bytes,receiver_bytes,emulator_bytes
    4096,3072,5120
    """
    kilobytes = [int(word) for word in text.split()]
    rows = [kilobytes[n : n + len(processes)] for n in range(0, len(kilobytes), len(processes))]
    head = ",".join(f"{name}_bytes" for name in processes)
    return head + "\n" + "".join(",".join(str(1024 * kb) for kb in row) + "\n" for row in rows)
