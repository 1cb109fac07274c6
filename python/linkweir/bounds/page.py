# SPDX-License-Identifier: BSD-3-Clause
"""The curves of all classes on one page: arrivals, service, and the longest distances between them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from linkweir.bounds.answer import Bound
from linkweir.bounds.bond import BondBound
from linkweir.bounds.bonds import BoundsOfBond
from linkweir.bounds.curve import Curve
from linkweir.panels.plot import COLOURS, Chart, svg
from linkweir.report import html_page
from linkweir.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WAY_HEADINGS = ["flow", "path", "worst delay", "of it propagation", "bounded together"]
MARGIN = Fraction(5, 4)
"""How much further than the distances the curves are drawn."""


@dataclass(frozen=True)
class Distance:
    """The longest distance between two curves: where it begins, and its length in seconds or bits."""

    start_s: Fraction
    bits: Fraction
    length: Fraction


def longest_delay(arrivals: Curve, service: Curve) -> Distance:
    """Where the horizontal distance is longest; both curves are straight lines between the places looked at."""
    places = {Fraction(0), *arrivals.starts}
    for level in {service(t) for t in service.starts} | {service.before(t) for t in service.starts}:
        if (t := arrivals.first(level)) is not None:
            places.add(t)
    found = [(service.first(arrivals(t)), t) for t in places]
    return max(
        (Distance(t, arrivals(t), reached - t) for reached, t in found if reached is not None),
        key=lambda distance: distance.length,
    )


def largest_backlog(arrivals: Curve, service: Curve) -> Distance:
    """Where the vertical distance is longest; its `bits` are those of the service."""
    places = {Fraction(0), *arrivals.starts, *service.starts}
    return max(
        (Distance(t, service.before(t), arrivals(t) - service.before(t)) for t in places),
        key=lambda distance: distance.length,
    )


def page(scenario: Scenario, found: Sequence[Bound], ways: Sequence[Sequence[str]] = ()) -> str:
    """An HTML page that needs no other file; `ways` are the rows of a table of flows over several links."""
    rows = [
        [
            bound.name,
            "-" if bound.delay_s is None else f"{float(bound.delay_s) * 1e3:.3f} ms",
            "-" if bound.backlog_bits is None else f"{-int(-bound.backlog_bits // 8)} B",
            "-" if bound.limit_pkts is None else f"{bound.limit_pkts}p",
            "-" if bound.memory_s is None else f"{float(bound.memory_s):.6g} s",
        ]
        for bound in found
    ]
    headings = ["class", "worst delay", "worst backlog", "limit that loses nothing", "memory that loses nothing"]
    body = html_page.table(WAY_HEADINGS, ways) if ways else ""
    body += html_page.table(headings, rows)
    body += "".join(f"<p>{html.escape(f'{b.name}: {b.why_none}')}</p>" for b in found if b.why_none)
    body += (
        '<p class="below">The horizontal line is the longest delay between the curves, the vertical one the largest '
        "backlog. A bound in the table may be smaller: it is the least of several service curves, and counts whole "
        "packets.</p>"
    )
    for number, bound in enumerate(found):
        if bound.arrivals is not None or bound.service is not None:
            title = f"Arrivals and service of {bound.name}"
            body += html_page.figure(f"class{number}", title, svg(_chart(bound, title)))
    return html_page.document(f"Bounds of {scenario.name}", body)


def bond_page(
    scenario: Scenario,
    headings: Sequence[str],
    bonds: Sequence[tuple[BoundsOfBond, Sequence[Sequence[str]], tuple[Sequence[str], Sequence[Sequence[str]]]]],
    sentences: Sequence[str],
) -> str:
    """The same of bonds: for each the rows of its classes, and headings and rows of what is left without each link."""
    body = ""
    for bond, rows, (of_left, left) in bonds:
        body += html_page.table([f"class of {bond.name}", *headings[1:]], rows)
        body += html_page.table(of_left, left) if bond.without else ""
    body += "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)
    body += (
        '<p class="below">The curves are those of the queue. A delay in the tables also has the transmission and the '
        "propagation on the slowest link.</p>"
    )
    for number, (name, bound) in enumerate((bond.name, bound) for bond, _, _ in bonds for bound in bond.classes):
        if bound.arrivals is not None or bound.service is not None:
            title = f"Arrivals and service of {name}: {bound.name}"
            body += html_page.figure(f"class{number}", title, svg(_chart(bound, title)))
    return html_page.document(f"Bounds of {scenario.name}", body)


def _chart(bound: Bound | BondBound, title: str) -> Chart:
    arrivals, service = bound.arrivals, bound.service
    known = bound.delay_s is not None and arrivals is not None and service is not None
    delay = longest_delay(arrivals, service) if known and arrivals is not None and service is not None else None
    backlog = largest_backlog(arrivals, service) if known and arrivals is not None and service is not None else None
    until = _until(bound, delay, backlog)

    def draw(axes: Axes) -> None:
        for name, curve, colour in (("arrivals", arrivals, COLOURS[1]), ("service", service, COLOURS[0])):
            if curve is not None:
                times, bits = points(curve, until)
                axes.plot(times, bits, color=colour, label=name)
        if delay is not None:
            ends = [float(delay.start_s), float(delay.start_s + delay.length)]
            label = f"delay {float(delay.length) * 1e3:.3f} ms"
            axes.plot([x * 1e3 for x in ends], [float(delay.bits) / 8000] * 2, "k-", marker="|", label=label)
        if backlog is not None:
            ends = [float(backlog.bits) / 8000, float(backlog.bits + backlog.length) / 8000]
            label = f"backlog {float(backlog.length) / 8000:.3f} kB"
            axes.plot([float(backlog.start_s) * 1e3] * 2, ends, "k:", marker="_", label=label)
        axes.set_xlabel("length of the interval, ms")
        axes.set_ylabel("kB")
        axes.legend()

    return Chart(bound.name, title, draw)


def _until(bound: Bound | BondBound, delay: Distance | None, backlog: Distance | None) -> Fraction:
    """The end of the drawing: beyond the distances, or where the curves have shown their shape."""
    if delay is not None and backlog is not None:
        return MARGIN * max(delay.start_s + delay.length, backlog.start_s, Fraction(1, 1000))
    curves = [curve for curve in (bound.arrivals, bound.service) if curve is not None]
    bends = [start for curve in curves for start in curve.starts[:8]]
    return MARGIN * max(*bends, Fraction(1, 100))


def points(curve: Curve, until_s: Fraction) -> tuple[list[float], list[float]]:
    """Corners of a curve up to a time: ms and kB; a jump has two points.

    >>> from linkweir.bounds.curve import rate_latency
    >>> points(rate_latency(8000, 1), Fraction(2))
    ([0.0, 1000.0, 1000.0, 2000.0], [0.0, 0.0, 0.0, 1.0])
    """
    corners = [(Fraction(0), curve(0))]
    for start in curve.starts[1:]:
        if start >= until_s:
            break
        corners += [(start, curve.before(start)), (start, curve(start))]
    corners.append((until_s, curve.before(until_s)))
    return [float(t) * 1e3 for t, _ in corners], [float(bits) / 8000 for _, bits in corners]
