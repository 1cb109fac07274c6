// SPDX-License-Identifier: BSD-3-Clause
//
// The two benchmark cases in ns-3.37: dumbbell --case=geo|many [--duration=100] [--hosts=0|1].
//
//   senders of a class -- 1 Gbit/s, 1 ms -- r0 == bottleneck == r1 -- 1 Gbit/s, 1 ms -- receivers of a class     hosts 1
//                                senders on r0 == bottleneck == r1 with the receivers                            hosts 0
//
// geo   20 Mbit/s, RTT 500 ms, EF CBR 10 Mbit/s, 10 + 10 CUBIC flows in AF and CS0. The queue disc is PrioQueueDisc:
//       band 0 holds EF (FifoQueueDisc, 500 packets), band 1 holds FqCoDelQueueDisc used as plain DRR: a packet filter
//       puts all AF into one of its queues and all CS0 into the other, its CoDel target is longer than the run, each
//       of its queues drops arrivals beyond 500 packets.
// many  50 Mbit/s, RTT 160 ms, 100 CUBIC flows, FifoQueueDisc of 1000 packets.
//
// Every packet has 1500 bytes of IP, timestamps are off so that an ACK has 40 (more with SACK blocks), receivers
// acknowledge each packet; no trace is written. A point-to-point device adds two bytes of PPP to each packet: its rate is
// raised by 1502/1500 so that the link carries 1500-byte packets at the named rate.
// Prints one line of JSON. "packets" are departures of the bottleneck's queue disc, "mbps" their bytes over the duration.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t PACKET_BYTES = 1500;
constexpr uint32_t PPP_BYTES = 2;
constexpr uint32_t MSS_BYTES = PACKET_BYTES - 40;
constexpr uint32_t UDP_PAYLOAD_BYTES = PACKET_BYTES - 28;
constexpr uint64_t CBR_BPS = 10'000'000;
constexpr double STAGGER_S = 0.1;
constexpr uint64_t ACCESS_BPS = 1'000'000'000;
constexpr double ACCESS_DELAY_S = 0.001;

struct TrafficClass
{
    std::string name;
    uint8_t tos;
    uint32_t flows;
    bool tcp;
};

struct Case
{
    std::string name;
    uint64_t bottleneckBps;
    double rttS;
    uint32_t socketBufferBytes; // far above what one flow gets into flight
    std::vector<TrafficClass> classes;
};

const uint8_t TOS_EF = 46 << 2;
const uint8_t TOS_AF = 10 << 2;
const uint8_t TOS_CS0 = 0;

// Answers 0 for the packets of one DS field and 1 for all others.
class TosFilter : public Ipv4PacketFilter
{
  public:
    explicit TosFilter(uint8_t tos)
        : m_tos(tos)
    {
    }

  private:
    int32_t DoClassify(Ptr<QueueDiscItem> item) const override
    {
        auto packet = StaticCast<Ipv4QueueDiscItem>(item);
        return packet->GetHeader().GetTos() == m_tos ? 0 : 1;
    }

    uint8_t m_tos;
};

Ptr<QueueDisc>
Fifo(const std::string& limit)
{
    auto fifo = CreateObject<FifoQueueDisc>();
    fifo->SetMaxSize(QueueSize(limit));
    return fifo;
}

Ptr<FqCoDelQueueDisc>
DeficitRoundRobin()
{
    auto drr = CreateObject<FqCoDelQueueDisc>();
    drr->SetAttribute("MaxSize", QueueSizeValue(QueueSize("500p")));
    drr->SetAttribute("Target", StringValue("1000000s"));
    drr->SetAttribute("Interval", StringValue("1000000s"));
    drr->SetAttribute("UseEcn", BooleanValue(false));
    drr->SetQuantum(PACKET_BYTES); // as a child it cannot see the device's MTU, and without a quantum it loops for ever
    drr->AddPacketFilter(CreateObject<TosFilter>(TOS_AF));
    // Its queues take their limit from it when it is initialised; from then on the common limit must not bind.
    Simulator::Schedule(MilliSeconds(1), &FqCoDelQueueDisc::SetMaxSize, drr, QueueSize("1001p"));
    return drr;
}

void
AddBand(Ptr<QueueDisc> parent, Ptr<QueueDisc> child)
{
    auto band = CreateObject<QueueDiscClass>();
    band->SetQueueDisc(child);
    parent->AddQueueDiscClass(band);
}

void
InstallRoot(Ptr<NetDevice> device, Ptr<QueueDisc> root)
{
    device->GetNode()->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, root);
}

NetDeviceContainer
Connect(Ptr<Node> a, Ptr<Node> b, uint64_t bps, double delayS, const std::string& deviceQueue)
{
    static Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(bps)));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delayS)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(deviceQueue));
    auto devices = link.Install(a, b);
    addresses.Assign(devices);
    addresses.NewNetwork();
    TrafficControlHelper().Uninstall(devices);
    return devices;
}

void
WriteClass(std::ostream& out, const std::string& name, const QueueDisc::Stats& stats, double durationS)
{
    out << "{\"class\": \"" << name << "\", \"mbps\": " << stats.nTotalDequeuedBytes * 8.0 / durationS / 1e6
        << ", \"packets\": " << stats.nTotalDequeuedPackets << ", \"dropped\": " << stats.nTotalDroppedPackets << "}";
}

const Case*
FindCase(const std::vector<Case>& cases, const std::string& name)
{
    for (const auto& candidate : cases)
    {
        if (candidate.name == name)
        {
            return &candidate;
        }
    }
    return nullptr;
}

void
ConfigureTcp(const Case& chosen)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    // A timeout is max(srtt + max(ClockGranularity, 4 rttvar), MinRto), so Linux's srtt + max(200 ms, 4 rttvar) needs both.
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(chosen.socketBufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(chosen.socketBufferBytes));
}

// Only the device of the first router has the rate of the bottleneck; the way back has the access links' rate.
NetDeviceContainer
ConnectBottleneck(const NodeContainer& routers, const Case& chosen, double accessDelayS)
{
    auto bottleneck = Connect(routers.Get(0),
                              routers.Get(1),
                              chosen.bottleneckBps * (PACKET_BYTES + PPP_BYTES) / PACKET_BYTES,
                              chosen.rttS / 2 - 2 * accessDelayS,
                              "1p");
    bottleneck.Get(1)->SetAttribute("DataRate", DataRateValue(DataRate(ACCESS_BPS)));
    bottleneck.Get(1)->SetAttribute("TxQueue",
                                    PointerValue(CreateObjectWithAttributes<DropTailQueue<Packet>>(
                                        "MaxSize", QueueSizeValue(QueueSize("100000p")))));
    return bottleneck;
}

// The queue disc of the bottleneck; `drr` is the one below it, or null if there is one class.
struct Discs
{
    Ptr<QueueDisc> root;
    Ptr<FqCoDelQueueDisc> drr;
};

Discs
MakeDiscs(const Case& chosen)
{
    Discs discs;
    if (chosen.classes.size() == 1)
    {
        discs.root = Fifo("1000p");
    }
    else
    {
        discs.root = CreateObject<PrioQueueDisc>();
        discs.root->AddPacketFilter(CreateObject<TosFilter>(TOS_EF));
        discs.drr = DeficitRoundRobin();
        AddBand(discs.root, Fifo("500p"));
        AddBand(discs.root, discs.drr);
    }
    return discs;
}

void
AddFlow(Ptr<Node> from, Ptr<Node> to, const TrafficClass& cls, Ipv4Address address, uint16_t port, double startS)
{
    InetSocketAddress remote(address, port);
    remote.SetTos(cls.tos);
    ApplicationContainer source;
    const std::string protocol = cls.tcp ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
    if (cls.tcp)
    {
        BulkSendHelper bulk(protocol, remote);
        bulk.SetAttribute("SendSize", UintegerValue(MSS_BYTES));
        source = bulk.Install(from);
    }
    else
    {
        OnOffHelper cbr(protocol, remote);
        cbr.SetConstantRate(DataRate(CBR_BPS * UDP_PAYLOAD_BYTES / PACKET_BYTES), UDP_PAYLOAD_BYTES);
        source = cbr.Install(from);
    }
    source.Start(Seconds(startS));
    PacketSinkHelper(protocol, InetSocketAddress(Ipv4Address::GetAny(), port)).Install(to);
}

void
AddTraffic(const InternetStackHelper& stack, const NodeContainer& routers, const Case& chosen, bool hosts)
{
    uint16_t port = 1000;
    for (const auto& cls : chosen.classes)
    {
        Ptr<Node> from = routers.Get(0);
        Ptr<Node> to = routers.Get(1);
        if (hosts)
        {
            NodeContainer pair;
            pair.Create(2);
            stack.Install(pair);
            from = pair.Get(0);
            to = pair.Get(1);
            Connect(from, routers.Get(0), ACCESS_BPS, ACCESS_DELAY_S, "100000p");
            Connect(routers.Get(1), to, ACCESS_BPS, ACCESS_DELAY_S, "100000p");
        }
        const auto address = to->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal();
        for (uint32_t i = 0; i < cls.flows; i++)
        {
            AddFlow(from, to, cls, address, ++port, i * STAGGER_S);
        }
    }
}

void
WriteClasses(std::ostream& out, const Case& chosen, const Discs& discs, double durationS)
{
    if (!discs.drr)
    {
        WriteClass(out, chosen.classes[0].name, discs.root->GetStats(), durationS);
        return;
    }
    WriteClass(out, "ef", discs.root->GetQueueDiscClass(0)->GetQueueDisc()->GetStats(), durationS);
    // FqCoDel makes its queues in the order of their first packets; their index says which is whose.
    for (uint32_t slot = 0; slot < 2; slot++)
    {
        for (std::size_t i = 0; i < discs.drr->GetNQueueDiscClasses(); i++)
        {
            auto queue = StaticCast<FqCoDelFlow>(discs.drr->GetQueueDiscClass(i));
            if (queue->GetIndex() == slot)
            {
                out << ", ";
                WriteClass(out, slot == 0 ? "af" : "cs0", queue->GetQueueDisc()->GetStats(), durationS);
            }
        }
    }
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string caseName = "geo";
    double durationS = 100;
    bool hosts = true;
    CommandLine command(__FILE__);
    command.AddValue("case", "geo or many", caseName);
    command.AddValue("duration", "simulated seconds", durationS);
    command.AddValue("hosts", "1: a host per class and side behind access links; 0: applications on the routers", hosts);
    command.Parse(argc, argv);

    const std::vector<Case> cases = {
        {"geo", 20'000'000, 0.5, 2 << 20, {{"ef", TOS_EF, 1, false}, {"af", TOS_AF, 10, true}, {"cs0", TOS_CS0, 10, true}}},
        {"many", 50'000'000, 0.16, 1 << 20, {{"tcp", TOS_CS0, 100, true}}},
    };
    const Case* chosen = FindCase(cases, caseName);
    if (!chosen || durationS <= 0)
    {
        std::cerr << "dumbbell: --case must be geo or many, --duration above 0\n";
        return 2;
    }

    ConfigureTcp(*chosen);
    NodeContainer routers;
    routers.Create(2);
    InternetStackHelper stack;
    stack.Install(routers);
    auto bottleneck = ConnectBottleneck(routers, *chosen, hosts ? ACCESS_DELAY_S : 0);
    const Discs discs = MakeDiscs(*chosen);
    InstallRoot(bottleneck.Get(0), discs.root);
    AddTraffic(stack, routers, *chosen, hosts);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Stop(Seconds(durationS));
    Simulator::Run();

    std::ostringstream classes;
    WriteClasses(classes, *chosen, discs, durationS);
    std::cout << "{\"simulator\": \"ns-3\", \"case\": \"" << chosen->name << "\", \"duration_s\": " << durationS
              << ", \"packets\": " << discs.root->GetStats().nTotalDequeuedPackets
              << ", \"events\": " << Simulator::GetEventCount() << ", \"classes\": [" << classes.str() << "]}" << std::endl;
    Simulator::Destroy();
    return 0;
}
