# SPDX-License-Identifier: BSD-3-Clause
"""The command `linkweir compare`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkweir.commands.executor import executor_of
from linkweir.commands.present import emit, emit_json, say, shown_stem
from linkweir.commands.progress import bar, report_failures, warnings_in_a_line
from linkweir.commands.terminal import print_table
from linkweir.commands.trace_keys import TraceKeys, trace_keys
from linkweir.comparison.execute import PLACES, run_comparison
from linkweir.comparison.fitting import listed_policies
from linkweir.comparison.outcome import Comparison
from linkweir.comparison.plan import label_and_policy, prepare
from linkweir.comparison.promises import MOST_SEEDS, SINGLE, UNCLEAR, UNKNOWN, VERDICTS, marked
from linkweir.comparison.results import Verdict
from linkweir.directories.provenance import REPORT
from linkweir.sweeps.keys import nearest
from linkweir.sweeps.measures import MEASURES, SHOWN
from linkweir.sweeps.outcome import SweepInterrupted
from linkweir.sweeps.plan import MOST_SEED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from linkweir.comparison.virtual import VirtualTime

app = typer.Typer(add_completion=False)

_MOST_CLASSES = 20


@app.command()
def compare(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario in TOML.")],
    policies: Annotated[
        str, typer.Option(metavar="NAMES", help="Policies, separated by commas; LABEL=NAME gives one another label.")
    ],
    traces: Annotated[
        str | None,
        typer.Option(
            "--traces",
            "--trace",
            metavar="FILES",
            help="Capacity traces in place of the scenario's link, separated by commas.",
        ),
    ] = None,
    trace_key: TraceKeys = None,
    seeds: Annotated[int, typer.Option(metavar="N", help="How many runs of each, from the first seed on.")] = 10,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="First seed (default: the scenario's).")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="POLICY.KEY=VALUE", help="A key for one policy, or VALUE unset; repeat."),
    ] = None,
    promises: Annotated[
        list[str] | None,
        typer.Option(
            "--promise",
            metavar="CLASS.MEASURE=VALUE",
            help=f"A bound to judge: rates at least, the rest at most; repeat. Measures: {', '.join(MEASURES)}.",
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option("--link", metavar="NAME", help="Of a network: the link that gets the policies and is judged."),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Of a network: the other links get the policies, too.")
    ] = False,
    where: Annotated[
        str,
        typer.Option(
            help="simulator; or virtual: a kernel's queues and TCP in virtual time, also its own cake, htb, ..."
        ),
    ] = "simulator",
    kernel: Annotated[
        str, typer.Option("--kernel", help="With --where virtual: 6.12, or newest, that of Debian's backports.")
    ] = "6.12",
    jobs: Annotated[int | None, typer.Option(help="Processes (default: one per processor).", min=1)] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that does the runs.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Directory (default: runs/compare-SCENARIO).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Start over: overwrite what is there.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns, also those that do not fit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
) -> None:
    """Compare policies on one scenario: who keeps which promise, and what each class gets.

    Parameters that a policy does not have are left out, and the command says which. The same command resumes a
    comparison that was interrupted.
    """
    chosen = _with_changes(_listed(policies, "--policies", "names of policies, like pss,drr"), changes or [])
    laboratory = laboratory_of(where, kernel, jobs, dask)
    files = [] if traces is None else _listed(traces, "--traces", "paths of capacity traces, or leave it out")
    plan, facts = prepare(
        scenario,
        chosen,
        files,
        _seeds(seeds, seed),
        promises or [],
        trace_keys=trace_keys(trace_key, traces),
        link=link,
        everywhere=everywhere,
        laboratory=laboratory,
    )
    if not as_json:
        for line in facts.readings:
            emit(f"read: {line}\n")
    directory = Path("runs") / f"compare-{shown_stem(scenario)}" if out is None else out
    try:
        with executor_of(jobs, dask) as local, warnings_in_a_line(), bar() as progress:
            found = run_comparison(plan, facts, laboratory or local, out=directory, force=force, progress=progress)
    except SweepInterrupted as interrupted:
        show(Comparison(facts, interrupted.sweep), as_json=as_json, wide=wide)
        say(f"linkweir: {interrupted}; the same command resumes it")
        raise typer.Exit(1) from interrupted
    show(found, as_json=as_json, wide=wide)
    if found.sweep.failures:
        raise typer.Exit(1)


def laboratory_of(where: str, kernel: str, jobs: int | None, dask: str | None) -> VirtualTime | None:
    """The laboratory, if the runs are done there."""
    if where not in PLACES:
        raise typer.BadParameter(f"{where}: must be one of {', '.join(PLACES)}", param_hint="--where")
    if where != "virtual":
        return None
    if dask is not None:
        message = "a cluster does runs of the simulator; leave it out with --where virtual"
        raise typer.BadParameter(message, param_hint="--dask")
    from linkweir.comparison.virtual import KERNELS, VirtualTime

    if kernel not in KERNELS:
        raise typer.BadParameter(f"{kernel}: must be one of {', '.join(KERNELS)}", param_hint="--kernel")
    # SIGTERM ends the runs as Ctrl-C does, and their kernels with them.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return VirtualTime(kernel, jobs, say=lambda text: say(f"linkweir: {text}"))


def _listed(text: str, option: str, cure: str) -> list[str]:
    """The parts of a list with commas, none of them empty."""
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        known = f"; there are {', '.join(listed_policies())}" if option == "--policies" else ""
        empty = "holds an empty name" if any(found) else "names nothing"
        raise typer.BadParameter(f'"{text}" {empty}; give {cure}{known}', param_hint=option)
    return found


def _seeds(count: int, first: int | None) -> int | range:
    if not 1 <= count <= MOST_SEEDS:
        raise typer.BadParameter(
            f"{count}: must be 1 .. {MOST_SEEDS}; 10 give a confidence interval", param_hint="--seeds"
        )
    if first is None:
        return count
    if not 0 <= first <= MOST_SEED - (count - 1):
        message = f"{first}: must be 0 .. {MOST_SEED - (count - 1)} with --seeds {count}"
        raise typer.BadParameter(message, param_hint="--seed")
    return range(first, first + count)


def _with_changes(names: Sequence[str], changes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The keys that each policy changes."""
    found: dict[str, dict[str, Any]] = {}
    labels: dict[str, str] = {}
    for text in names:
        label, policy = label_and_policy(text)
        if label in labels:
            message = f"{label} is given twice; give one of them another label, like mine={policy or label}"
            raise typer.BadParameter(message, param_hint="--policies")
        labels[label] = text
        found[text] = {}
    for text in changes:
        path, equals, written = text.partition("=")
        label, dot, key = path.strip().partition(".")
        if not (equals and dot and key):
            raise typer.BadParameter(
                f'"{text}": write POLICY.KEY=VALUE, like drr.class.af.quantum=3kB', param_hint="--set"
            )
        if label not in labels:
            cure = f"there are {', '.join(labels)}{nearest(label, labels)}"
            raise typer.BadParameter(f"{text}: {label} is not compared; {cure}", param_hint="--set")
        changed = found[labels[label]]
        if key in changed:
            message = f"{text}: {label}.{key} is given twice; leave one out"
            raise typer.BadParameter(message, param_hint="--set")
        changed[key] = _value(written.strip())
    return found


def _value(text: str) -> Any:
    """A value as TOML has it; what TOML does not know is text, and the word unset is None."""
    if text == "unset":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def show(comparison: Comparison, *, as_json: bool, wide: bool) -> None:
    """Prints the notes, the table of each link, the promises and where the report is."""
    if as_json:
        emit_json({**comparison.summary, "directory": str(comparison.directory)})
        return
    for note in comparison.notes:
        emit(f"{note}\n")
    facts = comparison.facts
    left_out: list[str] = []
    if comparison.sweep.runs_done:
        for link in facts.links:
            emit(f"\n{link.label}\n")
            left_out = _table(comparison, link.label, wide=wide) or left_out
        _promises(comparison, wide=wide)
    if left_out:
        emit(f"not shown: {', '.join(left_out)}; the report has all, and --wide\n")
    emit("\n")
    if len(facts.seeds) > 1:
        emit("Means over the seeds ± half of the 95 % confidence interval. Delays are queueing delays.\n")
        if facts.promises:
            emit("Promises are about the mean over all seeds; kept and missed are judged with wider limits.\n")
    elif comparison.sweep.runs_done:
        emit(f"{SINGLE} Delays are queueing delays.\n")
    found = comparison.sweep.runs_done - comparison.sweep.runs_now
    emit(
        f"{comparison.sweep.runs_done} of {comparison.sweep.runs_planned} runs done: "
        f"{comparison.sweep.runs_now} now, {found} before\n"
    )
    if comparison.sweep.runs_done and comparison.directory is not None:
        emit(f"report: {comparison.directory / REPORT}\n")
    report_failures(comparison.sweep)


def _table(comparison: Comparison, trace: str, *, wide: bool) -> list[str]:
    facts = comparison.facts
    rows = []
    for name in facts.classes[:_MOST_CLASSES]:
        for one in facts.variants:
            cells = []
            for key in SHOWN:
                found = comparison.estimate(trace, one.label, name, key)
                cells.append(MEASURES[key].shown(found.mean, found.half))
            rows.append([name, one.label, *cells])
    left_out = print_table(["class", "policy", *(MEASURES[key].heading for key in SHOWN)], rows, wide=wide, left=2)
    if len(facts.classes) > _MOST_CLASSES:
        emit(f"and {len(facts.classes) - _MOST_CLASSES} more classes\n")
    return left_out


def _judged(found: Verdict) -> str:
    """A policy in the table of promises."""
    if found.verdict == UNCLEAR:
        return f"{found.policy} ({found.runs})"
    return marked(found.policy, found.found)


def _promises(comparison: Comparison, *, wide: bool) -> None:
    """For each promise and link the policies that kept it."""
    if not comparison.facts.promises:
        return
    several = len(comparison.facts.links) > 1
    shown = [one for one in VERDICTS if one != UNKNOWN or any(v.verdict == UNKNOWN for v in comparison.verdicts)]
    rows = []
    for promise in comparison.facts.promises:
        for link in comparison.facts.links:
            here = [v for v in comparison.verdicts if v.promise == promise and v.trace == link.label]
            lists = [", ".join(_judged(v) for v in here if v.verdict == one) or "-" for one in shown]
            rows.append([promise.text, *([link.label] if several else []), *lists])
    emit("\n")
    headings = ["promise", *(["link"] if several else []), *shown]
    print_table(headings, rows, wide=wide, left=len(headings))
