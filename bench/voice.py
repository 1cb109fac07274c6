#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""MOS behind play-out buffers, computed twice: by linkweir's receivers, and from the log of packets.

Runs scenarios/lte-drive.toml, with its ten calls in the class that is sent first, over each trace given. The
simulator's receivers have fixed buffers of 60 and 200 ms. The log of packets is then read here without linkweir:
delays, rule of the buffer, intervals, BurstR and E-model (ITU-T G.107 with its default values) are written again,
naively, from docs/reference/quality.md and the recommendation. Exits with 1 if an interval differs by more than 0.05.

    bench/voice.py --trace "NAME=FILE" [--trace ...] [--duration 300s] [--json | --markdown] [--out FILE]
"""

import argparse
import math
import re
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import report

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios" / "lte-drive.toml"
BUFFERS_MS = (60, 200)
INTERVAL_NS = 10_000_000_000
MOST = 0.05
CODECS = {"g711": (0.0, 4.3), "g711-plc": (0.0, 25.1)}  # Ie and Bpl of G.113: without and with concealment
COLUMNS = ("trace", "codec", "buffer", "intervals", "MOS mean", "MOS worst", "largest difference")


# The naive side.


def packets_of(log, flow):
    """Of each packet of a flow, in order of its number: creation, ns, and delay, ns; inf if lost, None if under way."""
    rows = pq.read_table(log, filters=[("flow", "=", flow)]).to_pylist()
    created = {row["number"]: row["created_ns"] for row in rows if row["event"] == "created"}
    delay = {row["number"]: row["t_ns"] - row["created_ns"] for row in rows if row["event"] == "delivered"}
    lost = {row["number"] for row in rows if row["event"] == "dropped"}
    assert not lost & delay.keys()
    return [(created[i], math.inf if i in lost else delay.get(i)) for i in range(len(created))]


def heard(packets, buffer_ms, from_ns, end_ns):
    """By interval: for each packet due, whether it is played, and the play-out delay, ns."""
    last = max((end_ns - from_ns) // INTERVAL_NS, 1) - 1
    intervals = {}
    least = None
    for created_ns, delay in packets:
        if delay is not None and delay < math.inf:
            least = delay if least is None else min(least, delay)
        playout = None if least is None else least + buffer_ms * 1_000_000
        due = playout if playout is not None else buffer_ms * 1_000_000
        if delay is None and created_ns + due >= end_ns:
            continue  # nobody knows yet
        played = delay is not None and delay < math.inf and delay <= playout
        if created_ns >= from_ns:
            interval = min((created_ns - from_ns) // INTERVAL_NS, last)
            intervals.setdefault(from_ns + interval * INTERVAL_NS, []).append((played, playout))
    return intervals


def rating(loss, burst_r, delay_ms, ie, bpl):
    """R of G.107 with its defaults: Ro = 94.77, Is = 1.41, No = -61.18 dBm0p, TELR 65 dB, WEPL 110 dB."""
    terv = 65 - 40 * math.log10((1 + delay_ms / 10) / (1 + delay_ms / 150)) + 6 * math.exp(-0.3 * delay_ms**2)
    roe, re_ = 1.5 * (61.18 + 2), 80 + 2.5 * (terv - 14)
    idte = ((roe - re_) / 2 + math.sqrt((roe - re_) ** 2 / 4 + 100) - 1) * (1 - math.exp(-delay_ms))
    rle = 10.5 * 117 * (2 * delay_ms + 1) ** -0.25
    idle = (94.77 - rle) / 2 + math.sqrt((94.77 - rle) ** 2 / 4 + 169)
    idd = 0.0
    if delay_ms > 100:
        x = math.log(delay_ms / 100) / math.log(2)
        idd = 25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2)
    ppl = 100 * loss
    equipment = min(ie + (95 - ie) * ppl / (ppl / burst_r + bpl), 95)
    return 94.77 - 1.41 - idte - idle - idd - equipment


def mos(r):
    return 1.0 if r < 0 else 4.5 if r > 100 else max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)


def rated(packets, buffer_ms, from_ns, end_ns, codec, codec_ms=20.0):
    """MOS by start of the interval, s."""
    found = {}
    for start_ns, parts in sorted(heard(packets, buffer_ms, from_ns, end_ns).items()):
        pattern = "".join("." if played else "x" for played, _ in parts)
        loss = pattern.count("x") / len(pattern)
        gaps = re.findall("x+", pattern)
        burst_r = max(1.0, sum(map(len, gaps)) / len(gaps) * (1 - loss)) if gaps else 1.0
        known = [playout for _, playout in parts if playout is not None]
        delay_ms = (sum(known) / len(known) / 1e6 + codec_ms) if known else 0.0
        found[start_ns / 1e9] = mos(rating(loss, min(burst_r, 100.0), min(delay_ms, 60e3), *CODECS[codec]))
    return found


# Both.


def with_log(text, duration=None):
    """A scenario with a log of packets and with buffers at its calls, which are flows of kind onoff."""
    if duration:
        text = re.sub(r"(?m)^duration = .*$", f'duration = "{duration}"', text, count=1)
    buffers = ", ".join(f'"{ms}ms"' for ms in BUFFERS_MS)
    text = text.replace('kind = "onoff"', f'kind = "onoff"\nplayout = [{buffers}]', 1)
    return 'log = "packets"\n' + text


def compared(result):
    """Of each codec and buffer: MOS of every interval of every call, linkweir's and the naive one."""
    from linkweir import quality

    log = Path(result.directory) / "results" / "packets.parquet"
    from_ns, end_ns = round(result.scenario.warmup_s * 1e9), round(result.simulated_s * 1e9)
    streamed = {}
    for codec in CODECS:
        for row in quality.intervals(result, codec).to_pylist():
            streamed.setdefault((row["flow"], codec, row["buffer"]), {})[row["t_s"]] = row["mos"]
    pairs = {(codec, buffer_ms): [] for codec in CODECS for buffer_ms in BUFFERS_MS}
    for flow in sorted({flow for flow, _, _ in streamed}):
        packets = packets_of(log, flow)
        for codec, buffer_ms in pairs:
            ours = streamed[flow, codec, f"{buffer_ms}ms"]
            naive = rated(packets, buffer_ms, from_ns, end_ns, codec)
            if ours.keys() != naive.keys():
                raise SystemExit(f"{flow}: intervals {sorted(ours)} and {sorted(naive)}")
            pairs[codec, buffer_ms] += [(ours[t], naive[t]) for t in sorted(ours)]
    return pairs


def rows_of(name, pairs):
    for (codec, buffer_ms), scores in pairs.items():
        yield {
            "trace": name,
            "codec": codec,
            "buffer_ms": buffer_ms,
            "intervals": len(scores),
            "mos_mean": sum(ours for ours, _ in scores) / len(scores),
            "mos_worst": min(ours for ours, _ in scores),
            "largest_difference": max(abs(ours - naive) for ours, naive in scores),
        }


def render(rows, markdown):
    numbers = (("mos_mean", 2), ("mos_worst", 2), ("largest_difference", 4))
    lines = [
        [
            row["trace"],
            row["codec"],
            f"{row['buffer_ms']} ms",
            str(row["intervals"]),
            *(report.cell(row[name], digits) for name, digits in numbers),
        ]
        for row in rows
    ]
    met = all(row["largest_difference"] <= MOST for row in rows)
    verdict = f"the two differ by {MOST} at most in every interval: {report.verdict(met)}"
    return report.table(COLUMNS, lines, [verdict], markdown=markdown)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trace", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--duration", metavar="TIME", help="in place of the scenario's")
    options = report.options_of(parser)
    sys.path.insert(0, str(ROOT / "python"))
    import linkweir

    rows = []
    for given in options.trace:
        name, _, file = given.partition("=")
        text = with_log(SCENARIO.read_text(), options.duration)
        scenario = linkweir.Scenario.parse(text, path=SCENARIO, trace=Path(file))
        with tempfile.TemporaryDirectory() as scratch:
            result = linkweir.run(scenario, out=Path(scratch) / "run")
            if result.log_cut_s is not None:
                raise SystemExit(f"{name}: the log was cut; use a shorter --duration")
            rows += rows_of(name, compared(result))
    report.write(options, rows, lambda markdown: render(rows, markdown))
    return int(any(row["largest_difference"] > MOST for row in rows))


if __name__ == "__main__":
    sys.exit(main())
