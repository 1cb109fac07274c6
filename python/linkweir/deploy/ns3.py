# SPDX-License-Identifier: BSD-3-Clause
"""A scenario as a C++ program for ns-3, with the module of `ns3/`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkweir import _native
from linkweir.deploy.copies import classes_of, each_copy
from linkweir.fault import unfit
from linkweir.scenarios.declared import refuse_scheduler, rows, table_of, told, traffic_kinds, treated
from linkweir.scenarios.networks import refuse_network
from linkweir.scenarios.scenario import Scenario
from linkweir.scenarios.typed import Class, Flow, Link, Scheduler

Table = Mapping[str, Any]
"""A table of a resolved scenario."""

TCP = {"cubic": "TcpCubic", "reno": "TcpLinuxReno", "bbr": "TcpBbr", "newreno": "TcpNewReno"}
"""Congestion controls that ns-3 has, too."""
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
    refuse_network(scenario, "ns3")
    keys, tables = scenario.native.written(), scenario.native.tables()
    scheduler, link, classes = tables["scheduler"], keys["link"], each_copy(tables["classes"])
    shown_classes = classes_of(keys)
    # the program sorts packets by their code points, and its sockets do not set the ECN codepoint
    known = {policy["name"]: policy for policy in _native.policies() if not policy["sorted_by_ecn"]}
    policy = known.get(scheduler["policy"]) if isinstance(scheduler["policy"], str) else None
    refuse_scheduler("ns3", keys["scheduler"])
    if policy is None:
        raise unfit("scheduler.policy", scheduler["policy"], f"must be one of {', '.join(known)} in ns-3")
    if len(classes) > 63:
        raise unfit("class", len(classes), "must be at most 63: the program gives each class a code point of its own")
    notes = list(_of_the_link(link))
    body = [
        *_link(tables["link"], link, inputs, notes),
        *_scheduler(scheduler, list(zip(classes, shown_classes, strict=True)), policy, tables["link"], notes),
    ]
    numbers = {entry["name"]: number for number, entry in enumerate(shown_classes)}
    for number, (flow, shown) in enumerate(zip(tables["flows"], keys["flow"], strict=True)):
        body += _flow(number, flow, shown, numbers, notes)
    duration_s, warmup_s = tables["top"]["duration_s"], tables["top"]["warmup_s"]
    body += [
        f"    Simulator::Schedule(Seconds({warmup_s:.17g}), &Begin, disc);",
        f"    Simulator::Stop(Seconds({duration_s:.17g}));",
        "    Simulator::Run();",
        f"    Print(disc, {duration_s - warmup_s:.17g});",
        "    Simulator::Destroy();",
        "    return 0;",
        "}",
    ]
    notes += [words.format(value=keys[key]) for key, words in treated("", "ns3", "adapted")]
    notes += [words.format(key=key, value=keys[key]) for key, words in told("", "ns3", keys, "left_out")]
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


def attribute(amount: Any, unit: str) -> str:
    """A parameter's value in its base unit as a string that ns-3 reads.

    >>> attribute(5e6, "rate"), attribute(1.5, "time"), attribute(20, "packets"), attribute(1000, "size")
    ('5000000bps', '1500000000ns', '20p', '1000B')
    >>> attribute(0.25, "fraction"), attribute("exact", "choice"), attribute(7, "number"), attribute(2e3, "bits")
    ('0.25', 'exact', '7', '2000')
    """
    if unit in ("number", "choice"):
        return str(amount)
    if unit == "fraction":
        return f"{amount:.17g}"
    if unit == "time":
        return f"{round(1e9 * amount)}ns"
    return f"{round(amount)}" + {"rate": "bps", "size": "B", "packets": "p", "bits": ""}[unit]


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _quoted(text: str) -> str:
    return json.dumps(_printable(text))


def _set(values: Mapping[str, Any], params: Sequence[_native._Param]) -> Iterator[str]:
    """Arguments for the parameters that differ from their defaults, and for all plain numbers, such as levels."""
    for param in params:
        value = values.get(param["name"])
        if value is not None and (value != param["usual"] or param["unit"] == "number"):
            yield f'"{camel(param["name"])}", StringValue("{attribute(value, param["unit"])}")'


def _of_the_link(link: Table) -> Iterator[str]:
    for key, words in told("link", "ns3", link, "left_out"):
        yield words.format(key=f"link.{key}")


def _steps(points: Sequence[tuple[float, int]], period_s: float | None) -> list[str]:
    lines = ["    capacity->SetSteps({"]
    lines += [f"        {{NanoSeconds({round(1e9 * t_s)}), DataRate({bps})}}," for t_s, bps in points]
    period = "Time()" if period_s is None else f"NanoSeconds({round(1e9 * period_s)})"
    return [*lines, f"    }}, {period});"]


def _along_lines(points: Sequence[tuple[float, float]]) -> list[tuple[float, int]]:
    """Steps of `_STEP_S` along straight lines, each the mean of its step."""
    ends = [(t_s, round(rate_bps)) for t_s, rate_bps in points]
    made: list[tuple[float, int]] = []
    for last in range(1, len(ends)):
        (a_s, a_bps), (b_s, b_bps) = ends[last - 1 : last + 1]
        count = max(round((b_s - a_s) / _STEP_S), 1)
        slope = (b_bps - a_bps) / count
        made += [(a_s + i * (b_s - a_s) / count, round(a_bps + (i + 0.5) * slope)) for i in range(count)]
    return [*made, ends[-1]]


def _link(link: Link, shown: Table, inputs: Path | None, notes: list[str]) -> list[str]:
    rate, delay_s = link["rate_bps"], link["delay_s"]
    if not isinstance(delay_s, float):
        notes.append("link.delay: it changes over time; the program has none")
        delay_s = 0.0
    if link["satellite"] is not None or link["beam"] is not None:
        notes.append(f"link: the program's link has the constant rate nominal = {shown['nominal']}")
        rate = link["nominal_bps"]
    first = round(rate if isinstance(rate, float) else link["nominal_bps"])
    lines = [
        "    NodeContainer nodes;",
        "    nodes.Create(2);",
        "    InternetStackHelper().Install(nodes);",
        f"    auto devices = LinkweirHelper::Connect(nodes.Get(0), nodes.Get(1), DataRate({first}), "
        f"NanoSeconds({round(1e9 * delay_s)}));",
        f'    devices.Get(0)->SetAttribute("Overhead", UintegerValue({link["overhead_bytes"]}));',
        f'    devices.Get(0)->SetAttribute("Ring", UintegerValue({link["ring"]}));',
        '    devices.Get(1)->SetAttribute("Capacity", StringValue("100Gbps"));',
    ]
    if isinstance(link["delay_s"], float) and link["return_delay_s"] != delay_s:
        words = _words("link", "return_delay")
        notes.append(words.format(key="link.return_delay", value=shown["return_delay"], delay=shown["delay"]))
    if isinstance(rate, float):
        return lines
    lines.append("    auto capacity = CreateObject<LinkweirCapacity>();")
    if link["trace"] is not None:
        path = inputs or Path(link["trace"])
        notes.append(f"link.trace: the program reads trace.csv; linkweir trace export {path} --out trace.csv writes it")
        lines.append('    capacity->Load("trace.csv");')
    elif rate is not None and "steps" in rate:
        points = [(t_s, round(rate_bps)) for t_s, rate_bps in rate["steps"]]
        period = rate["period_s"] if rate["end"] == "loop" else None
        lines += _steps(points, period)
    elif rate is not None and "lines" in rate:
        notes.append(f"link.rate: its lines are steps of {_STEP_S:g} s in the program")
        lines += _steps(_along_lines(rate["lines"]), None)
    elif rate is not None:
        notes.append("link.rate: its cosine is steps of 10 ms in the program")
        lines.append(
            f"    capacity->SetCosine(DataRate({round(rate['mean'])}), {rate['amplitude']:.17g}, "
            f"NanoSeconds({round(1e9 * rate['period_s'])}));"
        )
    else:
        raise unfit("link.rate", "", "has no counterpart in ns-3: give a rate, steps, lines, a cosine or a trace")
    return lines


def _scheduler(
    scheduler: Scheduler,
    classes: Sequence[tuple[Class, Table]],
    policy: _native._Policy,
    link: Link,
    notes: list[str],
) -> list[str]:
    own = "".join(f", {words}" for words in _set(scheduler["params"], policy["params"]))
    nominal_bps = round(link["nominal_bps"])
    lines = [f'    LinkweirHelper helper("{policy["name"]}", "LinkRate", StringValue("{nominal_bps}bps"){own});']
    for number, (entry, shown) in enumerate(classes):
        words = [_quoted(shown["name"]), f"{{{number + 1}}}", *_set(entry["params"], policy["class_params"])]
        words += _limits(number, entry, shown, link, notes)
        left_out = dict(told("class", "ns3", shown, "left_out"))
        of_packets = left_out.pop("match", None)
        notes += [
            f"class[{number}].{key} = {shown[key]}: {why}"
            for key, why in left_out.items()
            if shown[key] != "tail"  # what a queue disc does
        ]
        if of_packets is not None:
            notes.append(f"class[{number}].match: " + of_packets.format(code_point=number + 1))
        lines.append(f"    helper.AddClass({', '.join(words)});")
    lines += [
        "    auto disc = helper.Install(devices.Get(0));",
        '    disc->SetAttribute("Record", StringValue(record));',
        '    const auto to = Ipv4AddressHelper("10.0.0.0", "255.255.255.252").Assign(devices).GetAddress(1);',
    ]
    if link["trace"] is not None or isinstance(link["rate_bps"], dict):
        reported = "disc" if link["follow"] else "nullptr"
        lines.append(f"    capacity->Attach(devices.Get(0), {reported});")
    return lines


def _limits(number: int, entry: Class, shown: Table, link: Link, notes: list[str]) -> Iterator[str]:
    if entry["limit_pkts"] is not None:
        yield f'"MaxPackets", UintegerValue({entry["limit_pkts"]})'
    elif entry["limit_s"] is not None:
        size = max(round(entry["limit_s"] * round(link["nominal_bps"]) / 8), 3000)
        notes.append(f"class[{number}].limit = {shown['limit']}: {_words('class', 'limit')}")
        yield f'"MaxPackets", UintegerValue(4294967295), "MaxBytes", UintegerValue({size})'
    if entry["limit_bytes"] is not None:
        yield f'"MaxBytes", UintegerValue({entry["limit_bytes"]})'


def _flow(number: int, flow: Flow, shown: Table, numbers: Mapping[str, int], notes: list[str]) -> list[str]:
    kind, place = flow["kind"], f"flow[{number}] {_quoted(flow['name'])}"
    treatment = traffic_kinds()[kind]["ns3"]
    if treatment.words is not None:
        notes.append(f"{place}: " + treatment.words.format(value=kind))
        return []
    if flow["class"] not in numbers:
        notes.append(f"{place}: left out, its class {flow['class']} has several copies")
        return []
    queue = numbers[flow["class"]]
    if flow["access_delay_s"]:
        notes.append(f"{place}: " + _words("flow", "access_delay").format(value=shown["access_delay"]))
    made = _source(flow, queue, place, shown, notes)
    if made is None:
        return []
    return [
        f"    for (uint16_t i = 0; i < {flow['count']}; i++) // {_printable(flow['name'])}",
        "    {",
        f"        const Time start = NanoSeconds({_ns(flow['start_s'])}) + i * NanoSeconds({_ns(flow['stagger_s'])});",
        f"        const Time stop = NanoSeconds({_ns(flow['stop_s'])});",
        *(f"        {line}" for line in made),
        "    }",
    ]


def _ns(time_s: float) -> int:
    return round(1e9 * time_s)


def _words(path: str, key: str) -> str:
    """What users see of a key where ns-3 has something else or nothing."""
    return rows(path)[key].of("ns3").words or ""


def _source(flow: Flow, queue: int, place: str, shown: Table, notes: list[str]) -> list[str] | None:
    path = table_of(flow["kind"])
    if flow["kind"] == "tcp":
        cc = flow["cc"]
        if cc not in TCP:
            message = (
                f"must be one of {', '.join(TCP)} in ns-3: the program's sockets have no ECN, which the others need"
            )
            raise unfit(f"{place.split()[0]}.cc", cc, message)
        notes.append(f"{place}: " + _words(path, "cc").format(value=TCP[cc]))
        notes += [f"{place}: {words}" for _, words in told(path, "ns3", shown, "left_out")]
        size, mss = flow["bytes"] or 0, flow["mss_bytes"]
        return [f'AddTcp(nodes, to, {queue + 1}, "ns3::{TCP[cc]}", {mss}, {size}, start, stop);']
    if not (flow["kind"] == "cbr" or flow["kind"] == "greedy" or flow["kind"] == "onoff"):
        raise AssertionError(f"{flow['kind']} is declared to be in ns-3, and nothing here makes it")
    if not isinstance(flow["packet_bytes"], int):
        notes.append(f"{place}: " + _words(path, "packet"))
        return None
    size = flow["packet_bytes"]
    if flow["kind"] == "greedy":
        pkts = flow["backlog_pkts"]
        return [f"AddGreedy(nodes, to, {queue + 1}, {size}, {pkts}, disc->GetClass({queue}), start, stop);"]
    if not isinstance(flow["rate_bps"], float):
        notes.append(f"{place}: " + _words(path, "rate"))
        return None
    if flow["kind"] == "cbr" and flow["jitter"]:
        notes.append(f"{place}: " + _words(path, "jitter").format(value=flow["jitter"]))
    bps = round(flow["rate_bps"])
    if not bps:
        notes.append(f"{place}: left out, its rate is 0")
        return None
    if flow["kind"] == "cbr":
        return [f"AddCbr(nodes, to, {queue + 1}, {bps}, {size}, start, stop);"]
    shape = "ExponentialRandomVariable[Mean={:.17g}]"
    if flow["lengths"] != "exponential":
        shape = "ConstantRandomVariable[Constant={:.17g}]"
        if flow["lengths"] != "constant":
            notes.append(f"{place}: " + _words(path, "lengths").format(value=flow["lengths"]))
    on, off = shape.format(flow["on_s"]), shape.format(flow["off_s"])
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
