# SPDX-License-Identifier: BSD-3-Clause
"""A scenario as a C++ program for ns-3, with the module of `ns3/`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkweir import _native
from linkweir.deploy.copies import classes_of
from linkweir.fault import unfit
from linkweir.scenarios.scenario import Scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = Mapping[str, Any]
"""A table of a resolved scenario."""

TCP = {"cubic": "TcpCubic", "reno": "TcpLinuxReno", "bbr": "TcpBbr", "newreno": "TcpNewReno", "dctcp": "TcpDctcp"}
"""Congestion controls that ns-3 has, too."""
_LEFT_OUT_OF_LINK = {"loss": 0.0, "reorder": None, "satellite": None, "beam": None, "mpu": "0B"}
"""Keys of the link that the program has nothing for, and the values that need nothing."""
_LEFT_OUT_OF_CLASS = ("max_age", "full", "least", "flows")
_STEP_S = 0.01
"""Width of the steps that a rate along lines becomes."""


@dataclass(frozen=True)
class Program:
    """A program for ns-3.

    Attributes:
        text: its source.
        notes: what was chosen or could not be carried over, a line each.
    """

    text: str
    notes: tuple[str, ...]


def ns3_program(scenario: Scenario, inputs: Path | None = None) -> Program:
    """Makes the program.

    Args:
        scenario: its link, scheduler, classes and flows.
        inputs: the trace of the link, if it has one, in place of the scenario's own.

    Raises:
        ScenarioError: the module has nothing like it.
    """
    keys = tomllib.loads(scenario.resolved)
    scheduler, link, classes = keys["scheduler"], keys["link"], classes_of(keys)
    known = {policy["name"]: policy for policy in _native.policies()}
    policy = known.get(scheduler["policy"]) if isinstance(scheduler["policy"], str) else None
    if policy is None:
        raise unfit("scheduler.policy", scheduler["policy"], f"must be one of {', '.join(known)} in ns-3")
    if len(classes) > 63:
        raise unfit("class", len(classes), "must be at most 63: the program gives each class a code point of its own")
    notes = list(_of_the_link(link))
    body = [*_link(link, inputs, notes), *_scheduler(scheduler, classes, policy, link, notes)]
    numbers = {entry["name"]: number for number, entry in enumerate(classes)}
    for number, flow in enumerate(keys["flow"]):
        body += _flow(number, flow, numbers, notes)
    warmup_s = _native.quantity(keys.get("warmup", "0s"), "time")
    body += [
        f"    Simulator::Schedule(Seconds({warmup_s:.17g}), &Begin, disc);",
        f"    Simulator::Stop(Seconds({_native.quantity(keys['duration'], 'time'):.17g}));",
        "    Simulator::Run();",
        f"    Print(disc, {_native.quantity(keys['duration'], 'time') - warmup_s:.17g});",
        "    Simulator::Destroy();",
        "    return 0;",
        "}",
    ]
    notes.append(f"seed = {keys['seed']}: ns-3 draws other random numbers")
    parts = [
        _HEAD.format(notes="".join(f"//   {_printable(note)}\n" for note in notes), name=_printable(scenario.name)),
        "\n".join(body),
        "\n",
    ]
    return Program("".join(parts), tuple(notes))


def camel(name: str) -> str:
    """A parameter's name in ns-3.

    >>> camel("low_level"), camel("mtu")
    ('LowLevel', 'Mtu')
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def attribute(value: Any, unit: str) -> str:
    """A parameter's value as a string that ns-3 reads.

    >>> attribute("5Mbit", "rate"), attribute("1.5s", "time"), attribute("20p", "packets"), attribute("1kB", "size")
    ('5000000bps', '1500000000ns', '20p', '1000B')
    >>> attribute("25%", "fraction"), attribute("exact", "choice"), attribute(7, "number"), attribute("2kbit", "bits")
    ('0.25', 'exact', '7', '2000')
    """
    if unit in ("number", "choice"):
        return str(value)
    amount = _native.quantity(str(value), unit)
    if unit == "fraction":
        return f"{amount:.17g}"
    if unit == "time":
        return f"{round(1e9 * amount)}ns"
    return f"{round(amount)}" + {"rate": "bps", "size": "B", "packets": "p", "bits": ""}[unit]


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _quoted(text: str) -> str:
    return json.dumps(_printable(text))


def _set(keys: Table, params: Sequence[Any]) -> Iterator[str]:
    """Arguments for the parameters that differ from their defaults."""
    for param in params:
        value = keys.get(param["name"])
        if value is not None and value != param["default"]:
            yield f'"{camel(param["name"])}", StringValue("{attribute(value, param["unit"])}")'


def _of_the_link(link: Table) -> Iterator[str]:
    for key, harmless in _LEFT_OUT_OF_LINK.items():
        if key in link and link[key] != harmless:
            yield f"link.{key}: left out, the program has nothing for it"


def _seconds(text: str) -> float:
    return _native.quantity(text, "time")


def _bps(text: str) -> int:
    return round(_native.quantity(text, "rate"))


def _steps(points: Sequence[tuple[float, int]], period_s: float | None) -> list[str]:
    lines = ["    capacity->SetSteps({"]
    lines += [f"        {{NanoSeconds({round(1e9 * t_s)}), DataRate({bps})}}," for t_s, bps in points]
    period = "Time()" if period_s is None else f"NanoSeconds({round(1e9 * period_s)})"
    return [*lines, f"    }}, {period});"]


def _along_lines(points: Sequence[Sequence[str]]) -> list[tuple[float, int]]:
    """Steps of `_STEP_S` along straight lines, each the mean of its step."""
    ends = [(_seconds(t), _bps(rate)) for t, rate in points]
    made: list[tuple[float, int]] = []
    for last in range(1, len(ends)):
        (a_s, a_bps), (b_s, b_bps) = ends[last - 1 : last + 1]
        count = max(round((b_s - a_s) / _STEP_S), 1)
        slope = (b_bps - a_bps) / count
        made += [(a_s + i * (b_s - a_s) / count, round(a_bps + (i + 0.5) * slope)) for i in range(count)]
    return [*made, ends[-1]]


def _link(link: Table, inputs: Path | None, notes: list[str]) -> list[str]:
    nominal = _bps(link["nominal"])
    rate = link.get("rate")
    delay = link["delay"]
    if not isinstance(delay, str):
        notes.append("link.delay: it changes over time; the program has none")
        delay = "0s"
    if any(key in link for key in ("satellite", "beam")):
        notes.append(f"link: the program's link has the constant rate nominal = {link['nominal']}")
        rate = link["nominal"]
    overhead = round(_native.quantity(link["overhead"], "size"))
    first = _bps(rate) if isinstance(rate, str) else nominal
    lines = [
        "    NodeContainer nodes;",
        "    nodes.Create(2);",
        "    InternetStackHelper().Install(nodes);",
        f"    auto devices = LinkweirHelper::Connect(nodes.Get(0), nodes.Get(1), DataRate({first}), "
        f"NanoSeconds({round(1e9 * _seconds(delay))}));",
        f'    devices.Get(0)->SetAttribute("Overhead", UintegerValue({overhead}));',
        f'    devices.Get(0)->SetAttribute("Ring", UintegerValue({link["ring"]}));',
        '    devices.Get(1)->SetAttribute("Capacity", StringValue("100Gbps"));',
    ]
    if isinstance(link["delay"], str) and link.get("return_delay", delay) != delay:
        notes.append(f"link.return_delay = {link['return_delay']}: both directions have the delay {delay}")
    if isinstance(rate, str):
        return lines
    lines.append("    auto capacity = CreateObject<LinkweirCapacity>();")
    if "trace" in link:
        path = inputs or Path(link["trace"])
        notes.append(f"link.trace: the program reads trace.csv; linkweir trace export {path} --out trace.csv writes it")
        lines.append('    capacity->Load("trace.csv");')
    elif isinstance(rate, dict) and "steps" in rate:
        points = [(_seconds(t), _bps(value)) for t, value in rate["steps"]]
        period = _seconds(rate["period"]) if rate.get("end") == "loop" and "period" in rate else None
        lines += _steps(points, period)
    elif isinstance(rate, dict) and "lines" in rate:
        notes.append(f"link.rate: its lines are steps of {_STEP_S:g} s in the program")
        lines += _steps(_along_lines(rate["lines"]), None)
    elif isinstance(rate, dict) and "amplitude" in rate:
        notes.append("link.rate: its cosine is steps of 10 ms in the program")
        lines.append(
            f"    capacity->SetCosine(DataRate({_bps(rate['mean'])}), {float(rate['amplitude']):.17g}, "
            f"NanoSeconds({round(1e9 * _seconds(rate['period']))}));"
        )
    else:
        raise unfit("link.rate", rate, "has no counterpart in ns-3: give a rate, steps, lines, a cosine or a trace")
    return lines


def _scheduler(scheduler: Table, classes: Sequence[Table], policy: Any, link: Table, notes: list[str]) -> list[str]:
    own = "".join(f", {words}" for words in _set(scheduler, policy["params"]))
    lines = [
        f'    LinkweirHelper helper("{policy["name"]}", "LinkRate", StringValue("{_bps(link["nominal"])}bps"){own});'
    ]
    for number, entry in enumerate(classes):
        words = [_quoted(entry["name"]), f"{{{number + 1}}}", *_set(entry, policy["class_params"])]
        words += _limits(number, entry, link, notes)
        notes += [
            f"class[{number}].{key} = {entry[key]}: queue discs have no such limit"
            for key in _LEFT_OUT_OF_CLASS
            if key in entry and entry[key] not in ("tail", False)
        ]
        if "match" in entry:
            notes.append(f"class[{number}].match: left out, the program's packets carry the code point {number + 1}")
        lines.append(f"    helper.AddClass({', '.join(words)});")
    lines += [
        "    auto disc = helper.Install(devices.Get(0));",
        '    disc->SetAttribute("Record", StringValue(record));',
        '    const auto to = Ipv4AddressHelper("10.0.0.0", "255.255.255.252").Assign(devices).GetAddress(1);',
    ]
    if "trace" in link or isinstance(link.get("rate"), dict):
        reported = "disc" if link.get("follow") else "nullptr"
        lines.append(f"    capacity->Attach(devices.Get(0), {reported});")
    return lines


def _limits(number: int, entry: Table, link: Table, notes: list[str]) -> Iterator[str]:
    if "limit" in entry and entry["limit"].endswith("p"):
        yield f'"MaxPackets", UintegerValue({round(_native.quantity(entry["limit"], "packets"))})'
    elif "limit" in entry:
        size = max(round(_native.quantity(entry["limit"], "time") * _bps(link["nominal"]) / 8), 3000)
        notes.append(f"class[{number}].limit = {entry['limit']}: became the bytes that the link carries in this time")
        yield f'"MaxPackets", UintegerValue(4294967295), "MaxBytes", UintegerValue({size})'
    if "limit_bytes" in entry:
        yield f'"MaxBytes", UintegerValue({round(_native.quantity(entry["limit_bytes"], "size"))})'


def _flow(number: int, flow: Table, numbers: Mapping[str, int], notes: list[str]) -> list[str]:
    kind, place = flow["kind"], f"flow[{number}] {_quoted(flow['name'])}"
    if kind not in ("cbr", "greedy", "onoff", "tcp"):
        notes.append(f"{place}: kind = {kind} is left out; cbr, greedy, onoff and tcp have counterparts")
        return []
    if flow["class"] not in numbers:
        notes.append(f"{place}: left out, its class {flow['class']} has several copies")
        return []
    queue = numbers[flow["class"]]
    stagger_s = _seconds(flow.get("stagger", "0s"))
    if _seconds(flow.get("access_delay", "0s")):
        notes.append(f"{place}: access_delay = {flow['access_delay']} is left out")
    start, stop = _seconds(flow["start"]), _seconds(flow["stop"])
    made = _source(kind, flow, queue, place, notes)
    if made is None:
        return []
    return [
        f"    for (uint16_t i = 0; i < {flow['count']}; i++) // {_printable(flow['name'])}",
        "    {",
        f"        const Time start = NanoSeconds({round(1e9 * start)}) + i * NanoSeconds({round(1e9 * stagger_s)});",
        f"        const Time stop = NanoSeconds({round(1e9 * stop)});",
        *(f"        {line}" for line in made),
        "    }",
    ]


def _source(kind: str, flow: Table, queue: int, place: str, notes: list[str]) -> list[str] | None:
    if kind == "tcp":
        cc = flow["cc"]
        if cc not in TCP:
            notes.append(f"{place}: cc = {cc} is left out; ns-3 has {', '.join(TCP)}")
            return None
        notes.append(f"{place}: ns-3's {TCP[cc]}, whose states and timers differ from Linux's")
        size = 0
        if "bytes" in flow:
            size = round(_native.quantity(flow["bytes"], "size"))
        mss = round(_native.quantity(flow["mss"], "size"))
        return [f'AddTcp(nodes, to, {queue + 1}, "ns3::{TCP[cc]}", {mss}, {size}, start, stop);']
    size = round(_native.quantity(flow["packet"], "size"))
    if kind == "greedy":
        pkts = round(_native.quantity(flow["backlog"], "packets"))
        return [f"AddGreedy(nodes, to, {queue + 1}, {size}, {pkts}, disc->GetClass({queue}), start, stop);"]
    if not isinstance(flow["rate"], str):
        notes.append(f"{place}: a rate that changes over time is left out, and with it the flow")
        return None
    if flow.get("jitter"):
        notes.append(f"{place}: jitter = {flow['jitter']} is left out; the gaps are constant")
    bps = _bps(flow["rate"])
    if not bps:
        notes.append(f"{place}: left out, its rate is 0")
        return None
    if kind == "cbr":
        return [f"AddCbr(nodes, to, {queue + 1}, {bps}, {size}, start, stop);"]
    shape = "ExponentialRandomVariable[Mean={:.17g}]"
    if flow["lengths"] != "exponential":
        shape = "ConstantRandomVariable[Constant={:.17g}]"
        if flow["lengths"] != "constant":
            notes.append(f"{place}: lengths = {flow['lengths']} are constant in the program")
    on, off = shape.format(_seconds(flow["on"])), shape.format(_seconds(flow["off"]))
    return [f'AddOnOff(nodes, to, {queue + 1}, {bps}, {size}, "ns3::{on}", "ns3::{off}", start, stop);']


_HEAD = """// {name}, written by linkweir export ns3.
//
// In ns-3's tree with the module linkweir: copy it into scratch/ and ./ns3 run it.
//
// Packets carry the code point of their class: 1 for the first class, 2 for the second, and so on.
//
// Not as in the scenario:
{notes}
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/linkweir-capacity.h"
#include "ns3/linkweir-helper.h"
#include "ns3/network-module.h"

#include <functional>
#include <iostream>
#include <memory>
#include <vector>

using namespace ns3;

namespace
{{

constexpr uint32_t UDP_HEADERS_BYTES = 28;
uint16_t g_port = 1000;
std::vector<LinkweirClass::Stats> g_before;

/// Keeps packets of a class waiting: sends one whenever one has left.
struct Greedy
{{
    void Left(Ptr<const QueueDiscItem>)
    {{
        if (Simulator::Now() >= start && Simulator::Now() < stop)
        {{
            Simulator::ScheduleNow(&Greedy::Send, this);
        }}
    }}

    void Send()
    {{
        socket->Send(Create<Packet>(bytes - UDP_HEADERS_BYTES));
    }}

    Ptr<Socket> socket;
    uint32_t bytes;
    Time start;
    Time stop;
}};

std::vector<std::unique_ptr<Greedy>> g_greedy;

[[maybe_unused]] void
AddGreedy(NodeContainer nodes, Ipv4Address to, uint8_t dscp, uint32_t bytes, uint32_t backlog,
          Ptr<LinkweirClass> queue, Time start, Time stop)
{{
    auto socket = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
    socket->Bind();
    socket->Connect(InetSocketAddress(to, g_port++));
    socket->SetIpTos(static_cast<uint8_t>(dscp << 2)); // Connect sets it to 0 before ns-3.42
    g_greedy.push_back(std::make_unique<Greedy>(Greedy{{socket, bytes, start, stop}}));
    for (uint32_t i = 0; i < backlog; i++)
    {{
        Simulator::Schedule(start, &Greedy::Send, g_greedy.back().get());
    }}
    queue->TraceConnectWithoutContext("Sent", MakeCallback(&Greedy::Left, g_greedy.back().get()));
}}

/// Sends packets at a constant rate, the first one at the start; OnOffApplication sends its first one a gap later.
struct Cbr
{{
    void Send()
    {{
        if (Simulator::Now() >= stop)
        {{
            return;
        }}
        socket->Send(Create<Packet>(bytes - UDP_HEADERS_BYTES));
        owed += 8'000'000'000 * bytes;
        Simulator::Schedule(NanoSeconds(owed / bps), &Cbr::Send, this);
        owed %= bps;
    }}

    Ptr<Socket> socket;
    uint64_t bytes;
    uint64_t bps;
    Time stop;
    uint64_t owed; // 1e-9 bit of the next gap that are not whole nanoseconds
}};

std::vector<std::unique_ptr<Cbr>> g_cbr;

[[maybe_unused]] void
AddCbr(NodeContainer nodes, Ipv4Address to, uint8_t dscp, uint64_t bps, uint32_t bytes, Time start, Time stop)
{{
    const auto port = g_port++;
    auto socket = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
    socket->Bind();
    socket->Connect(InetSocketAddress(to, port));
    socket->SetIpTos(static_cast<uint8_t>(dscp << 2)); // Connect sets it to 0 before ns-3.42
    g_cbr.push_back(std::make_unique<Cbr>(Cbr{{socket, bytes, bps, stop, 0}}));
    Simulator::Schedule(start, &Cbr::Send, g_cbr.back().get());
    PacketSinkHelper("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port)).Install(nodes.Get(1));
}}

[[maybe_unused]] void
AddOnOff(NodeContainer nodes, Ipv4Address to, uint8_t dscp, uint64_t bps, uint32_t bytes,
         std::string on, std::string off, Time start, Time stop)
{{
    const auto port = g_port++;
    OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(to, port));
    source.SetAttribute("DataRate", DataRateValue(DataRate(bps * (bytes - UDP_HEADERS_BYTES) / bytes)));
    source.SetAttribute("PacketSize", UintegerValue(bytes - UDP_HEADERS_BYTES));
    source.SetAttribute("OnTime", StringValue(on));
    source.SetAttribute("OffTime", StringValue(off));
    source.SetAttribute("Tos", UintegerValue(static_cast<uint32_t>(dscp) << 2));
    auto apps = source.Install(nodes.Get(0));
    apps.Start(start);
    apps.Stop(stop);
    PacketSinkHelper("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port)).Install(nodes.Get(1));
}}

[[maybe_unused]] void
AddTcp(NodeContainer nodes, Ipv4Address to, uint8_t dscp, std::string type, uint32_t mss, uint64_t bytes,
       Time start, Time stop)
{{
    const auto port = g_port++;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(type)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 22));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 22));
    nodes.Get(0)->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", TypeIdValue(TypeId::LookupByName(type)));
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(to, port));
    source.SetAttribute("MaxBytes", UintegerValue(bytes));
    source.SetAttribute("Tos", UintegerValue(static_cast<uint32_t>(dscp) << 2));
    auto apps = source.Install(nodes.Get(0));
    apps.Start(start);
    apps.Stop(stop);
    PacketSinkHelper("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port)).Install(nodes.Get(1));
}}

void
Begin(Ptr<LinkweirQueueDisc> disc)
{{
    for (uint32_t q = 0; q < disc->GetNClasses(); q++)
    {{
        g_before.push_back(disc->GetClass(q)->GetStats());
    }}
}}

void
Print(Ptr<LinkweirQueueDisc> disc, double seconds)
{{
    std::cout << "class,rate_mbps,sent_pkts,dropped_pkts,delay_mean_ms\\n";
    for (uint32_t q = 0; q < disc->GetNClasses(); q++)
    {{
        const auto& stats = disc->GetClass(q)->GetStats();
        const auto& before = g_before[q];
        const auto sent = stats.sentPackets - before.sentPackets;
        const auto bytes = static_cast<double>(stats.sentBytes - before.sentBytes);
        const auto waitedMs = 1e3 * (stats.sojourn - before.sojourn).GetSeconds();
        std::cout << disc->GetClass(q)->GetName() << ',' << 8e-6 * bytes / seconds << ',' << sent << ','
                  << stats.GetDropped() - before.GetDropped() << ','
                  << (sent ? waitedMs / static_cast<double>(sent) : 0) << std::endl;
    }}
}}

}} // namespace

int
main(int argc, char* argv[])
{{
    std::string record;
    CommandLine command(__FILE__);
    command.AddValue("record", "file that receives the calls of the policy", record);
    command.Parse(argc, argv);
"""
