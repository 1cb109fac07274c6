// SPDX-License-Identifier: GPL-2.0-only
//
// PSS on the down-link of an LTE modem in a moving car, whose capacity fades to nothing at times.
//
//   linkweir trace export TRACE --out lte.csv
//   linkweir-pss-lte --trace=lte.csv [--duration=60] [--memory=10s]
//
// Telemetry (AF, always backlogged) has a reserved rate of 1.5 Mbit/s, speech (EF) sends 640 kbit/s, and CS0 takes the rest. Prints
// each class's rate for every second as CSV: in a fade AF gets less, and afterwards PSS makes up for it.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/linkweir-capacity.h"
#include "ns3/linkweir-helper.h"
#include "ns3/network-module.h"

#include <array>
#include <iostream>

using namespace ns3;

namespace
{

constexpr uint32_t PAYLOAD_BYTES = 1472;
constexpr std::array<uint8_t, 3> DSCPS = {46, 10, 0};
constexpr std::array<const char*, 3> RATES = {"640kbps", "20Mbps", "20Mbps"};

void
Print(Ptr<LinkweirQueueDisc> disc, Ptr<LinkweirCapacity> capacity, std::array<uint64_t, 3>* before)
{
    const auto now = Simulator::Now();
    std::cout << now.GetSeconds() << ',' << 1e-6 * static_cast<double>(capacity->GetRate(now).GetBitRate());
    for (uint32_t q = 0; q < 3; q++)
    {
        const auto bytes = disc->GetClass(q)->GetStats().sentBytes;
        std::cout << ',' << 8e-6 * static_cast<double>(bytes - (*before)[q]);
        (*before)[q] = bytes;
    }
    std::cout << ',' << disc->GetStatistic(1, "credit") << std::endl;
    Simulator::Schedule(Seconds(1), &Print, disc, capacity, before);
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string trace;
    double durationS = 60;
    std::string memory = "10s";
    CommandLine command(__FILE__);
    command.AddValue("trace", "CSV that `linkweir trace export` writes", trace);
    command.AddValue("duration", "simulated seconds", durationS);
    command.AddValue("memory", "longest fade that PSS makes up for", memory);
    command.Parse(argc, argv);

    NodeContainer nodes;
    nodes.Create(2);
    InternetStackHelper().Install(nodes);
    auto devices = LinkweirHelper::Connect(nodes.Get(0), nodes.Get(1), DataRate("5Mbps"), MilliSeconds(25));
    LinkweirHelper helper("pss");
    helper.AddClass("ef", {DSCPS[0]}, "Level", UintegerValue(0), "MaxPackets", UintegerValue(50));
    helper.AddClass("af", {DSCPS[1]}, "Level", UintegerValue(1), "LowLevel", UintegerValue(3), "Rate", StringValue("1.5Mbps"),
                    "Memory", StringValue(memory), "MaxPackets", UintegerValue(200));
    helper.AddClass("cs0", {DSCPS[2]}, "Level", UintegerValue(2), "MaxPackets", UintegerValue(200));
    auto disc = helper.Install(devices.Get(0));
    const auto to = Ipv4AddressHelper("10.0.0.0", "255.255.255.252").Assign(devices).GetAddress(1);

    auto capacity = CreateObject<LinkweirCapacity>();
    if (trace.empty())
    {
        capacity->SetSteps({{Time(), DataRate("5Mbps")}, {Seconds(10), DataRate("500kbps")}, {Seconds(20), DataRate(0)}, {Seconds(22), DataRate("5Mbps")}}, Seconds(60));
    }
    else
    {
        capacity->Load(trace);
    }
    capacity->Attach(devices.Get(0)); // the fades are not reported to the scheduler, as in scenarios/lte-drive.toml

    for (uint16_t q = 0; q < 3; q++)
    {
        const uint16_t port = 9 + q;
        OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(to, port));
        source.SetConstantRate(DataRate(RATES[q]), PAYLOAD_BYTES);
        source.SetAttribute("Tos", UintegerValue(static_cast<uint32_t>(DSCPS[q]) << 2));
        source.Install(nodes.Get(0)).Start(Seconds(0));
        PacketSinkHelper("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port)).Install(nodes.Get(1));
    }
    std::cout << "t_s,capacity_mbps,ef_mbps,af_mbps,cs0_mbps,af_credit_bits" << std::endl;
    std::array<uint64_t, 3> before{};
    Simulator::Schedule(Seconds(1), &Print, disc, capacity, &before);
    Simulator::Stop(Seconds(durationS + 0.5));
    Simulator::Run();
    Simulator::Destroy();
    return 0;
}
