// SPDX-License-Identifier: GPL-2.0-only
//
// Figures 5, 6, 7 and 12 of Finzi, Perrier, Frances and Lochin 2023: PSS and DWRR on a link of 20 Mbit/s of which EF takes a
// quarter, a half or three quarters. The scheduler expects this load in Figures 5 and 7, and a half in Figures 6 and 12.
//
//   linkweir-pss-figures [--figure=6] [--duration=100] [--tcp=0|1] [--kaf=0.5] [--ef=0.5] [--scheduler=pss] [--memory=15]
//                        [--record=FILE]
//
// In Figures 7 and 12 the capacity swings by 30 % with a period of 15 s and EF by 60 % with 6.1 s. Figure 7 compares PSS with and
// without memory. AF and CS0 are always backlogged, or with --tcp=1 ten CUBIC connections each over a round trip of 500 ms. Every
// packet has 1500 bytes of IP. Without --kaf, --ef, --scheduler and --memory it runs all points of the figure. Prints CSV.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/linkweir-capacity.h"
#include "ns3/linkweir-helper.h"
#include "ns3/network-module.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>
#include <iostream>

using namespace ns3;

namespace
{

constexpr uint64_t LINK_BPS = 20'000'000;
constexpr uint32_t PACKET_BYTES = 1500;
constexpr uint32_t UDP_PAYLOAD_BYTES = PACKET_BYTES - 28;
constexpr uint32_t MSS_BYTES = PACKET_BYTES - 40;
constexpr uint32_t BACKLOG_PKTS = 20;
constexpr uint32_t EF_QUEUE_PKTS = 500;
constexpr uint32_t BDP_PKTS = 833;
constexpr double SLOW_START_S = 10;
constexpr double CAPACITY_SWING = 0.3;
constexpr double CAPACITY_PERIOD_S = 15;
constexpr double EF_SWING = 0.6;
constexpr double EF_PERIOD_S = 6.1;
constexpr double FIXED_MEMORY_S = 0.01;
constexpr uint8_t DSCP_EF = 46;
constexpr uint8_t DSCP_AF = 10;
constexpr uint8_t DSCP_CS0 = 0;

struct Point
{
    std::string scheduler;
    double ef;       // a part of the link
    double expected; // what the scheduler expects of EF
    double kaf;
    double memoryS; // of AF under PSS; 0: none
    bool changing;  // capacity and EF swing
};

std::vector<Point>
Points(int figure)
{
    const bool changing = figure == 7 || figure == 12;
    std::vector<Point> points;
    for (const int run : {0, 1})
    {
        // Figure 7 compares memories, the others schedulers
        const std::string scheduler = run && figure != 7 ? "dwrr" : "pss";
        const double memoryS = run ? 0 : changing ? CAPACITY_PERIOD_S : FIXED_MEMORY_S;
        for (const double ef : {0.25, 0.5, 0.75})
        {
            for (const double kaf : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.81, 0.9})
            {
                if (kaf != 0.81 || figure == 7)
                {
                    points.push_back({scheduler, ef, figure == 5 || figure == 7 ? ef : 0.5, kaf, memoryS, changing});
                }
            }
        }
    }
    return points;
}

/// Sends EF at its rate, which may swing.
class Source
{
  public:
    Source(Ptr<Node> node, Ipv4Address to, uint16_t port, const Point& point)
        : m_point(point),
          m_socket(Socket::CreateSocket(node, UdpSocketFactory::GetTypeId()))
    {
        m_socket->Bind();
        m_socket->Connect(InetSocketAddress(to, port));
        m_socket->SetIpTos(static_cast<uint8_t>(DSCP_EF << 2)); // Connect sets it to 0 before ns-3.42
        Simulator::ScheduleNow(&Source::Send, this);
    }

  private:
    void Send()
    {
        m_socket->Send(Create<Packet>(UDP_PAYLOAD_BYTES));
        const double phase = 2 * M_PI * Simulator::Now().GetSeconds() / EF_PERIOD_S;
        const double bps = m_point.ef * LINK_BPS * (m_point.changing ? 1 + EF_SWING * std::cos(phase) : 1);
        Simulator::Schedule(Seconds(8 * PACKET_BYTES / bps), &Source::Send, this);
    }

    Point m_point;
    Ptr<Socket> m_socket;
};

/// Keeps packets of one class waiting: sends one whenever one has left.
class Backlog
{
  public:
    Backlog(Ptr<Node> node, Ipv4Address to, uint16_t port, uint8_t dscp, Ptr<LinkweirClass> queue)
        : m_socket(Socket::CreateSocket(node, UdpSocketFactory::GetTypeId()))
    {
        m_socket->Bind();
        m_socket->Connect(InetSocketAddress(to, port));
        m_socket->SetIpTos(static_cast<uint8_t>(dscp << 2)); // Connect sets it to 0 before ns-3.42
        queue->TraceConnectWithoutContext("Sent", MakeCallback(&Backlog::Left, this));
        for (uint32_t i = 0; i < BACKLOG_PKTS; i++)
        {
            Simulator::ScheduleNow(&Backlog::Send, this);
        }
    }

  private:
    void Left(Ptr<const QueueDiscItem> item)
    {
        Simulator::ScheduleNow(&Backlog::Send, this);
    }

    void Send()
    {
        m_socket->Send(Create<Packet>(UDP_PAYLOAD_BYTES));
    }

    Ptr<Socket> m_socket;
};

LinkweirHelper
Pss(const Point& point, uint32_t limit)
{
    LinkweirHelper helper("pss");
    // equation (3): the share of what is left when EF takes what is expected
    const auto reserved = static_cast<uint64_t>(std::llround(point.kaf * (1 - point.expected) * LINK_BPS));
    const auto memory = static_cast<int64_t>(std::llround(1e9 * point.memoryS));
    const auto lr = static_cast<uint64_t>(std::llround(8.0 * PACKET_BYTES * static_cast<double>(reserved) / LINK_BPS));
    helper.AddClass("ef", {DSCP_EF}, "Level", UintegerValue(1), "MaxPackets", UintegerValue(EF_QUEUE_PKTS));
    helper.AddClass("af",
                    {DSCP_AF},
                    "Level",
                    UintegerValue(2),
                    "LowLevel",
                    UintegerValue(4),
                    "Rate",
                    DataRateValue(DataRate(reserved)),
                    "Burst",
                    StringValue("20p"),
                    "Mtu",
                    StringValue("1500B"),
                    memory ? "Memory" : "Lr",
                    StringValue(memory ? std::to_string(memory) + "ns" : std::to_string(lr)),
                    "MaxPackets",
                    UintegerValue(limit));
    helper.AddClass("cs0", {DSCP_CS0}, "Level", UintegerValue(3), "MaxPackets", UintegerValue(limit));
    return helper;
}

LinkweirHelper
Dwrr(const Point& point, uint32_t limit)
{
    LinkweirHelper helper("drr");
    const auto total = static_cast<uint32_t>(std::ceil(PACKET_BYTES / std::min(point.kaf, 1 - point.kaf) - 1e-9));
    const auto af = static_cast<uint32_t>(std::llround(point.kaf * total));
    helper.AddClass("ef", {DSCP_EF}, "Level", UintegerValue(0), "MaxPackets", UintegerValue(EF_QUEUE_PKTS));
    helper.AddClass("af",
                    {DSCP_AF},
                    "Level",
                    UintegerValue(1),
                    "Quantum",
                    QueueSizeValue(QueueSize(QueueSizeUnit::BYTES, af)),
                    "MaxPackets",
                    UintegerValue(limit));
    helper.AddClass("cs0",
                    {DSCP_CS0},
                    "Level",
                    UintegerValue(1),
                    "Quantum",
                    QueueSizeValue(QueueSize(QueueSizeUnit::BYTES, total - af)),
                    "MaxPackets",
                    UintegerValue(limit));
    return helper;
}

void
AddTcp(Ptr<Node> from, Ptr<Node> to, Ipv4Address address, uint16_t port, uint8_t dscp)
{
    InetSocketAddress remote(address, port);
    BulkSendHelper bulk("ns3::TcpSocketFactory", remote);
    bulk.SetAttribute("SendSize", UintegerValue(MSS_BYTES));
    bulk.SetAttribute("Tos", UintegerValue(static_cast<uint32_t>(dscp) << 2));
    bulk.Install(from).Start(Seconds(0));
    PacketSinkHelper("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port)).Install(to);
}

/// Bytes that each class had sent by the time the measurement begins.
struct Before
{
    std::vector<uint64_t> bytes;
};

void
Note(Before* before, Ptr<LinkweirQueueDisc> disc)
{
    for (uint32_t q = 0; q < disc->GetNClasses(); q++)
    {
        before->bytes.push_back(disc->GetClass(q)->GetStats().sentBytes);
    }
}

void
Run(const Point& point, double durationS, bool tcp, const std::string& record)
{
    NodeContainer nodes;
    nodes.Create(2);
    InternetStackHelper().Install(nodes);
    auto devices = LinkweirHelper::Connect(nodes.Get(0), nodes.Get(1), DataRate(LINK_BPS), tcp ? MilliSeconds(250) : Time());
    devices.Get(0)->SetAttribute("Overhead", UintegerValue(0));
    devices.Get(1)->SetAttribute("Overhead", UintegerValue(0));
    devices.Get(1)->SetAttribute("Capacity", StringValue("1Gbps"));
    auto helper = point.scheduler == "pss" ? Pss(point, tcp ? BDP_PKTS : 1000) : Dwrr(point, tcp ? BDP_PKTS : 1000);
    auto disc = helper.Install(devices.Get(0));
    disc->SetAttribute("Record", StringValue(record));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    const auto to = addresses.Assign(devices).GetAddress(1);

    auto capacity = CreateObject<LinkweirCapacity>();
    if (point.changing)
    {
        capacity->SetCosine(DataRate(LINK_BPS), CAPACITY_SWING, Seconds(CAPACITY_PERIOD_S));
        capacity->Attach(devices.Get(0));
    }
    Source ef(nodes.Get(0), to, 9, point);
    PacketSinkHelper("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9)).Install(nodes.Get(1));

    std::vector<std::unique_ptr<Backlog>> backlogs;
    const uint8_t dscps[] = {DSCP_AF, DSCP_CS0};
    for (uint32_t q = 0; q < 2; q++)
    {
        for (uint16_t i = 0; tcp && i < 10; i++)
        {
            AddTcp(nodes.Get(0), nodes.Get(1), to, static_cast<uint16_t>(1000 + 10 * q + i), dscps[q]);
        }
        if (!tcp)
        {
            backlogs.push_back(std::make_unique<Backlog>(nodes.Get(0), to, 9, dscps[q], disc->GetClass(q + 1)));
        }
    }
    Before before;
    const double fromS = tcp && durationS > SLOW_START_S ? SLOW_START_S : 0;
    Simulator::Schedule(Seconds(fromS), &Note, &before, disc);
    Simulator::Stop(Seconds(durationS));
    Simulator::Run();
    std::cout << point.scheduler << ',' << (tcp ? "tcp" : "backlogged") << ',' << point.ef << ',' << point.kaf << ',' << point.memoryS;
    for (uint32_t q = 0; q < 3; q++)
    {
        const auto bytes = disc->GetClass(q)->GetStats().sentBytes - before.bytes[q];
        std::cout << ',' << 8e-6 * static_cast<double>(bytes) / (durationS - fromS);
    }
    std::cout << std::endl;
    Simulator::Destroy();
}

} // namespace

int
main(int argc, char* argv[])
{
    int figure = 6;
    double durationS = 100;
    double memoryS = -1;
    bool tcp = false;
    double kaf = 0;
    double ef = 0;
    std::string scheduler;
    std::string record;
    CommandLine command(__FILE__);
    command.AddValue("figure", "5, 6, 7 or 12", figure);
    command.AddValue("duration", "simulated seconds", durationS);
    command.AddValue("tcp", "AF and CS0 are ten CUBIC connections each, not always backlogged", tcp);
    command.AddValue("kaf", "only this share of AF", kaf);
    command.AddValue("ef", "only this load of EF, a part of the link", ef);
    command.AddValue("scheduler", "only this one, pss or dwrr", scheduler);
    command.AddValue("memory", "only this memory of AF under PSS, s; 0: none", memoryS);
    command.AddValue("record", "file that receives the calls of the policy, with one point only", record);
    command.Parse(argc, argv);
    NS_ABORT_MSG_IF(figure != 5 && figure != 6 && figure != 7 && figure != 12, "--figure=" << figure << ": must be 5, 6, 7 or 12");

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 22));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 22));
    // A timeout is max(srtt + max(ClockGranularity, 4 rttvar), MinRto), so Linux's srtt + max(200 ms, 4 rttvar) needs both.
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(200)));

    std::cout << "scheduler,traffic,ef_share,k_af,memory_s,ef_mbps,af_mbps,cs0_mbps" << std::endl;
    for (const auto& point : Points(figure))
    {
        if ((scheduler.empty() || scheduler == point.scheduler) && (ef == 0 || std::abs(ef - point.ef) < 1e-9) &&
            (kaf == 0 || std::abs(kaf - point.kaf) < 1e-9) && (memoryS < 0 || std::abs(memoryS - point.memoryS) < 1e-9))
        {
            Run(point, durationS, tcp, record);
        }
    }
    return 0;
}
