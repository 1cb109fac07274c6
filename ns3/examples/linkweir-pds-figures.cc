// SPDX-License-Identifier: GPL-2.0-only
//
// Figures 4 and 6 of Gaidioz, Goutelle and Primet 2002: waiting-time priority with eight classes on 100 Mbit/s. In Figure 6 losses
// are differentiated, too: the fastest class loses most.
//
//   linkweir-pds-figures [--figure=4] [--history=ring] [--seed=1] [--seeds=20] [--duration=9] [--record=FILE]
//
// Each class sends 1100 packets/s; classes 8, 1 and 5 in turn dip to 400 for half a second at 1.5, 2.5 and 3.5 s; from 4 to 9 s all
// rise to 1500. Each gap varies by 30 %; class i starts at (i - 1) * 0.1 s. A packet has 1500 bytes, and 38 more on the wire. Prints
// the mean delay of each class and its ratio to that of class 1 for several spans, as CSV. Packets and delays of all seeds are added
// up before dividing.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/linkweir-helper.h"
#include "ns3/network-module.h"

#include <array>
#include <iostream>
#include <memory>

using namespace ns3;

namespace
{

constexpr uint64_t LINK_BPS = 100'000'000;
constexpr uint32_t PACKET_BYTES = 1500;
constexpr uint32_t OVERHEAD_BYTES = 38;
constexpr uint32_t CLASSES = 8;
constexpr uint32_t BINS = 90;
constexpr double BIN_S = 0.1;
constexpr std::array<uint32_t, CLASSES> COEFFICIENTS = {157, 78, 52, 39, 31, 26, 22, 19};

/// What differs between runs.
struct Variant
{
    int figure;
    std::string history; // ring, decayed, or peld: decayed with proportional early loss
    std::string record;
};

/// Waits of one class by tenths of a second.
struct Waits
{
    std::array<uint64_t, BINS> packets{};
    std::array<double, BINS> waitedS{};
};

double
PacketsPerSecond(uint32_t number, double t)
{
    if (t >= 4)
    {
        return 1100 + 400 * std::min(1.0, (t - 4) / 5);
    }
    const double dip = number == 8 ? 1.5 : number == 1 ? 2.5 : number == 5 ? 3.5 : 10;
    if (t < dip || t >= dip + 0.5)
    {
        return 1100;
    }
    return 1100 - 700 * (t < dip + 0.25 ? (t - dip) / 0.25 : (dip + 0.5 - t) / 0.25);
}

/// Sends packets of one class, each gap drawn around the present rate.
class Source
{
  public:
    Source(Ptr<Node> node, Ipv4Address to, uint32_t number, Ptr<LinkweirClass> queue, Waits& waits)
        : m_number(number),
          m_waits(waits),
          m_random(CreateObject<UniformRandomVariable>()),
          m_socket(Socket::CreateSocket(node, UdpSocketFactory::GetTypeId()))
    {
        m_socket->Bind();
        m_socket->Connect(InetSocketAddress(to, 9));
        m_socket->SetIpTos(static_cast<uint8_t>(number << 2)); // Connect sets it to 0 before ns-3.42
        queue->TraceConnectWithoutContext("Sojourn", MakeCallback(&Source::Left, this));
        Simulator::Schedule(MilliSeconds(100 * (number - 1)), &Source::Send, this);
    }

  private:
    void Left(Time sojourn)
    {
        const auto bin = std::min<std::size_t>(static_cast<std::size_t>(Simulator::Now().GetSeconds() / BIN_S + 1e-9), BINS - 1);
        m_waits.packets[bin]++;
        m_waits.waitedS[bin] += sojourn.GetSeconds();
    }

    void Send()
    {
        m_socket->Send(Create<Packet>(PACKET_BYTES - 28));
        const double gap = m_random->GetValue(0.7, 1.3) / PacketsPerSecond(m_number, Simulator::Now().GetSeconds());
        Simulator::Schedule(Seconds(gap), &Source::Send, this);
    }

    uint32_t m_number;
    Waits& m_waits;
    Ptr<UniformRandomVariable> m_random;
    Ptr<Socket> m_socket;
};

void
Run(uint32_t seed, double durationS, const Variant& variant, std::array<Waits, CLASSES>& waits)
{
    RngSeedManager::SetRun(seed);
    NodeContainer nodes;
    nodes.Create(2);
    InternetStackHelper().Install(nodes);
    auto devices = LinkweirHelper::Connect(nodes.Get(0), nodes.Get(1), DataRate(LINK_BPS), Time());
    devices.Get(0)->SetAttribute("Overhead", UintegerValue(OVERHEAD_BYTES));
    const bool peld = variant.history == "peld";
    LinkweirHelper helper("pds",
                          "Limit",
                          StringValue("80p"),
                          "History",
                          StringValue(peld ? "decayed" : variant.history),
                          "Early",
                          StringValue(peld ? "peld" : "off"),
                          "K",
                          StringValue("1500p"),
                          "Record",
                          StringValue(variant.record));
    for (uint32_t i = 0; i < CLASSES; i++)
    {
        helper.AddClass("class " + std::to_string(i + 1),
                        {static_cast<uint8_t>(i + 1)},
                        "Delay",
                        UintegerValue(COEFFICIENTS[i]),
                        "Loss",
                        UintegerValue(variant.figure == 6 ? COEFFICIENTS[CLASSES - 1 - i] : 1));
    }
    auto disc = helper.Install(devices.Get(0));
    const auto to = Ipv4AddressHelper("10.0.0.0", "255.255.255.252").Assign(devices).GetAddress(1);
    std::vector<std::unique_ptr<Source>> sources;
    for (uint32_t i = 1; i <= CLASSES; i++)
    {
        sources.push_back(std::make_unique<Source>(nodes.Get(0), to, i, disc->GetClass(i - 1), waits[i - 1]));
    }
    Simulator::Stop(Seconds(durationS));
    Simulator::Run();
    Simulator::Destroy();
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t first = 1;
    uint32_t seeds = 20;
    double durationS = 9;
    Variant variant{4, "ring", ""};
    CommandLine command(__FILE__);
    command.AddValue("figure", "4 or 6", variant.figure);
    command.AddValue("history", "of losses: ring, decayed, or peld (decayed with early drops)", variant.history);
    command.AddValue("seed", "first seed", first);
    command.AddValue("seeds", "number of runs", seeds);
    command.AddValue("duration", "simulated seconds, at most 9", durationS);
    command.AddValue("record", "file that receives the calls of the policy, with one seed only", variant.record);
    command.Parse(argc, argv);
    NS_ABORT_MSG_IF(variant.figure != 4 && variant.figure != 6, "--figure=" << variant.figure << ": must be 4 or 6");

    std::array<Waits, CLASSES> waits;
    for (uint32_t seed = first; seed < first + seeds; seed++)
    {
        Run(seed, durationS, variant, waits);
    }
    std::cout << "t_from_s,t_to_s,class,delay_ms,delay_ratio\n";
    const std::array<std::pair<double, double>, 5> spans{{{0.9, 1.5}, {1, 4}, {4, 5}, {4, 9}, {8, 9}}};
    for (const auto& [fromS, toS] : spans)
    {
        double fastest = 0;
        for (uint32_t i = 0; i < CLASSES; i++)
        {
            uint64_t packets = 0;
            double waitedS = 0;
            for (auto bin = static_cast<std::size_t>(fromS / BIN_S + 0.5); bin < static_cast<std::size_t>(toS / BIN_S + 0.5); bin++)
            {
                packets += waits[i].packets[bin];
                waitedS += waits[i].waitedS[bin];
            }
            const double mean = packets ? waitedS / static_cast<double>(packets) : 0;
            fastest = i ? fastest : mean;
            std::cout << fromS << ',' << toS << ',' << i + 1 << ',' << 1e3 * mean << ',' << mean / fastest << '\n';
        }
    }
    return 0;
}
