// SPDX-License-Identifier: BSD-3-Clause
//
// A network in ns-3.37: network FILE [--delays=1] [--idle=1]. bench/network.py writes FILE from a scenario with several links.
//
// Each link is one direction of a point-to-point pair: a queue disc per link, a device, a delay. Lines of FILE, in this order,
// numbers in ns, bit/s, bytes and packets; links and flows are numbered from 0 in the order of their lines:
//
//   run DURATION WARMUP SEED NODES SEND_BUFFER RECEIVE_BUFFER TCP_SETTINGS...   (settings: name=value, see TcpSettings)
//   link FROM TO RATE DELAY CLASSES LIMIT...          CLASSES queues under strict priority, the first goes first
//   tcp START MSS                                      a CUBIC transfer until the end
//   poisson START STOP RATE BYTES
//   cbr START STOP RATE BYTES JITTER
//   list FILE                                          packets at recorded times: lines TIME BYTES
//   there HOPS LINK CLASS ...                          way of the flow in the line before
//   back HOPS LINK CLASS ...                           HOPS is 0: acknowledgements wait in no queue
//
// A link without one in the other direction has a device of 400 Gbit/s there, without queue disc, for acknowledgements that wait
// nowhere. Each end of each flow has an address of its own and host routes along its way, so ways may cross as they like.
// A point-to-point device adds 2 bytes of PPP to each packet; the scenarios have `overhead = "2B"`.
//
// --idle=1: a device takes a packet from its queue disc when it has sent the one before, as the scenarios mean it. ns-3's own
// flow control (--idle=0) keeps one more packet in the device.
// --delays=1: measure the delay of each packet, end to end and at each queue; 0 measures speed.
//
// Prints one line of JSON. Delays, drops, timeouts, packets and bytes count from WARMUP on.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint64_t OPEN_WAY_BPS = 400'000'000'000;
constexpr uint32_t UDP_HEADERS_BYTES = 28;
constexpr uint16_t FIRST_PORT = 1000;
constexpr uint32_t ENDS_BASE = 0x0a000000; // 10.0.0.0: flow i has 10.0.0.0 + 4 i + 1 where it begins and + 2 where it ends

enum Direction
{
    BACK = 1,
    THERE = 2
};

struct Hop
{
    uint32_t link;
    uint32_t cls;
};

// What was measured of packets: how long each took.
struct Delays
{
    std::vector<int64_t> ns;

    void Write(std::ostream& out)
    {
        if (ns.empty())
        {
            out << "{\"packets\": 0}";
            return;
        }
        std::sort(ns.begin(), ns.end());
        double sum = 0;
        for (auto one : ns)
        {
            sum += one;
        }
        // The smallest value that at least 95 % of the packets do not exceed.
        const auto rank = static_cast<std::size_t>(std::ceil(0.95 * ns.size()));
        out << "{\"packets\": " << ns.size() << ", \"mean_s\": " << sum / ns.size() / 1e9 << ", \"p95_s\": " << ns[rank - 1] / 1e9
            << ", \"max_s\": " << ns.back() / 1e9 << "}";
    }
};

struct Link
{
    uint32_t from;
    uint32_t to;
    uint64_t rateBps;
    int64_t delayNs;
    std::vector<uint32_t> limitPkts;
    Ptr<NetDevice> device;
    Ptr<QueueDisc> disc;
    std::vector<QueueDisc::Stats> before; // of each class at the end of the warm-up
    std::vector<Delays> waits;
    // Class of each flow's packets here, by 4 x flow + direction.
    std::map<uint32_t, uint32_t> classes;

    const QueueDisc::Stats& StatsOf(std::size_t cls) const
    {
        return limitPkts.size() == 1 ? disc->GetStats() : disc->GetQueueDiscClass(cls)->GetQueueDisc()->GetStats();
    }
};

struct Flow
{
    std::string kind;
    int64_t startNs = 0;
    int64_t stopNs = 0;
    uint64_t rateBps = 0;
    uint32_t bytes = 0; // of a packet with its headers; of a segment's payload for tcp
    double jitter = 0;
    std::string file;
    std::vector<Hop> there;
    std::vector<Hop> back;
    uint64_t goodBytes = 0;
    uint64_t goodBefore = 0;
    uint32_t timeouts = 0; // how often a retransmission timeout ended another state
    uint32_t timeoutsBefore = 0;
    Delays delays;
};

struct Network
{
    int64_t durationNs;
    int64_t warmupNs;
    uint32_t seed;
    uint32_t nodes;
    uint32_t sendBuffer;
    uint32_t receiveBuffer;
    std::vector<std::string> tcp;
    std::vector<Link> links;
    std::vector<Flow> flows;
    bool measured = false; // the warm-up is over, and delays are wanted
};

Network g_network;
NodeContainer g_nodes;

Ipv4Address
AddressOf(uint32_t flow, Direction towards)
{
    return Ipv4Address(ENDS_BASE + 4 * flow + towards);
}

// 4 x flow + direction of a packet, by its destination.
uint32_t
IndexOf(Ipv4Address destination)
{
    return destination.Get() - ENDS_BASE;
}

[[noreturn]] void
Refuse(const std::string& why)
{
    std::cerr << "network: " << why << "\n";
    std::exit(2);
}

// When a packet was handed to IP where it begins.
class CreatedTag : public Tag
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("linkweir::CreatedTag").SetParent<Tag>().AddConstructor<CreatedTag>();
        return tid;
    }

    TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    uint32_t GetSerializedSize() const override
    {
        return 8;
    }

    void Serialize(TagBuffer buffer) const override
    {
        buffer.WriteU64(atNs);
    }

    void Deserialize(TagBuffer buffer) override
    {
        atNs = buffer.ReadU64();
    }

    void Print(std::ostream& out) const override
    {
        out << atNs;
    }

    int64_t atNs = 0;
};

void
Created(const Ipv4Header&, Ptr<const Packet> packet, uint32_t)
{
    CreatedTag tag;
    tag.atNs = Simulator::Now().GetNanoSeconds();
    packet->AddPacketTag(tag);
}

void
Delivered(const Ipv4Header& header, Ptr<const Packet> packet, uint32_t)
{
    const uint32_t index = IndexOf(header.GetDestination());
    CreatedTag tag;
    if (!g_network.measured || index % 4 != THERE || !packet->PeekPacketTag(tag))
    {
        return;
    }
    g_network.flows[index / 4].delays.ns.push_back(Simulator::Now().GetNanoSeconds() - tag.atNs);
}

void
Dequeued(Link* link, Ptr<const QueueDiscItem> item)
{
    if (g_network.measured)
    {
        const auto index = IndexOf(StaticCast<const Ipv4QueueDiscItem>(item)->GetHeader().GetDestination());
        link->waits[link->classes.at(index)].ns.push_back((Simulator::Now() - item->GetTimeStamp()).GetNanoSeconds());
    }
}

// Answers the class of a packet's flow on this link.
class ClassFilter : public Ipv4PacketFilter
{
  public:
    explicit ClassFilter(const Link* link)
        : m_link(link)
    {
    }

  private:
    int32_t DoClassify(Ptr<QueueDiscItem> item) const override
    {
        return m_link->classes.at(IndexOf(StaticCast<Ipv4QueueDiscItem>(item)->GetHeader().GetDestination()));
    }

    const Link* m_link;
};

Ptr<QueueDisc>
Fifo(uint32_t limitPkts)
{
    auto fifo = CreateObject<FifoQueueDisc>();
    fifo->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, limitPkts));
    return fifo;
}

Ptr<QueueDisc>
DiscOf(const Link& link)
{
    if (link.limitPkts.size() == 1)
    {
        return Fifo(link.limitPkts[0]);
    }
    auto strict = CreateObject<PrioQueueDisc>();
    strict->AddPacketFilter(CreateObject<ClassFilter>(&link));
    for (auto limitPkts : link.limitPkts)
    {
        auto band = CreateObject<QueueDiscClass>();
        band->SetQueueDisc(Fifo(limitPkts));
        strict->AddQueueDiscClass(band);
    }
    return strict;
}

void
Stop(Ptr<NetDeviceQueue> queue, Ptr<const Packet>)
{
    queue->Stop();
}

void
WakeLater(Ptr<NetDeviceQueue> queue, Ptr<const Packet>)
{
    Simulator::ScheduleNow(&NetDeviceQueue::Wake, queue);
}

// From now on the queue disc hands the device a packet only when it is idle.
void
FeedWhenIdle(Ptr<NetDevice> device)
{
    auto queues = CreateObject<NetDeviceQueueInterface>();
    device->AggregateObject(queues);
    device->TraceConnectWithoutContext("PhyTxBegin", MakeBoundCallback(&Stop, queues->GetTxQueue(0)));
    device->TraceConnectWithoutContext("PhyTxEnd", MakeBoundCallback(&WakeLater, queues->GetTxQueue(0)));
}

// A pair of devices for a link and, if there is one, the link in the other direction.
void
Connect(Link& link, Link* other, bool idle)
{
    static Ipv4AddressHelper addresses("172.16.0.0", "255.255.255.252");
    PointToPointHelper helper;
    helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds(link.delayNs)));
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    if (idle)
    {
        helper.DisableFlowControl();
    }
    auto devices = helper.Install(g_nodes.Get(link.from), g_nodes.Get(link.to));
    addresses.Assign(devices);
    addresses.NewNetwork();
    if (!idle) // without flow control, no queue disc has been installed
    {
        TrafficControlHelper().Uninstall(devices);
    }
    Link* const sides[] = {&link, other};
    for (uint32_t side = 0; side < 2; side++)
    {
        auto device = devices.Get(side);
        if (!sides[side])
        {
            device->SetAttribute("DataRate", DataRateValue(DataRate(OPEN_WAY_BPS)));
            device->SetAttribute("TxQueue",
                                 PointerValue(CreateObjectWithAttributes<DropTailQueue<Packet>>(
                                     "MaxSize", QueueSizeValue(QueueSize("100000p")))));
            continue;
        }
        sides[side]->device = device;
        device->SetAttribute("DataRate", DataRateValue(DataRate(sides[side]->rateBps)));
        if (idle)
        {
            FeedWhenIdle(device);
        }
        sides[side]->disc = DiscOf(*sides[side]);
        device->GetNode()->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, sides[side]->disc);
    }
}

void
ConnectAll(bool idle)
{
    std::map<std::pair<uint32_t, uint32_t>, std::vector<Link*>> open; // links that wait for one in the other direction
    std::vector<std::pair<Link*, Link*>> pairs;
    for (auto& link : g_network.links)
    {
        auto& others = open[{link.to, link.from}];
        if (others.empty())
        {
            open[{link.from, link.to}].push_back(&link);
            pairs.emplace_back(&link, nullptr);
            continue;
        }
        if (others.back()->delayNs != link.delayNs)
        {
            Refuse("two links between the same nodes in opposite directions must have the same delay");
        }
        for (auto& pair : pairs)
        {
            if (pair.first == others.back())
            {
                pair.second = &link;
            }
        }
        others.pop_back();
    }
    for (auto& pair : pairs)
    {
        Connect(*pair.first, pair.second, idle);
    }
}

// The device at the far end of a link.
Ptr<NetDevice>
FarEnd(Ptr<NetDevice> device)
{
    auto channel = device->GetChannel();
    return channel->GetDevice(channel->GetDevice(0) == device ? 1 : 0);
}

// Packets for `to` leave through `device`.
void
RouteThrough(Ptr<NetDevice> device, Ipv4Address to)
{
    auto ipv4 = device->GetNode()->GetObject<Ipv4>();
    auto far = FarEnd(device);
    auto next = far->GetNode()->GetObject<Ipv4>();
    const auto gateway = next->GetAddress(next->GetInterfaceForDevice(far), 0).GetLocal();
    Ipv4StaticRoutingHelper().GetStaticRouting(ipv4)->AddHostRouteTo(to, gateway, ipv4->GetInterfaceForDevice(device));
}

// Both addresses of a flow are in one /30, so that ns-3 takes the one of this end as source of what goes to the other.
void
AddEnd(Ptr<NetDevice> device, Ipv4Address address)
{
    auto ipv4 = device->GetNode()->GetObject<Ipv4>();
    ipv4->AddAddress(ipv4->GetInterfaceForDevice(device), Ipv4InterfaceAddress(address, Ipv4Mask("255.255.255.252")));
}

void
Route(uint32_t index)
{
    Flow& flow = g_network.flows[index];
    auto& links = g_network.links;
    for (const auto& hop : flow.there)
    {
        RouteThrough(links[hop.link].device, AddressOf(index, THERE));
        links[hop.link].classes[4 * index + THERE] = hop.cls;
    }
    for (const auto& hop : flow.back)
    {
        RouteThrough(links[hop.link].device, AddressOf(index, BACK));
        links[hop.link].classes[4 * index + BACK] = hop.cls;
    }
    auto begins = links[flow.there.front().link].device;
    auto ends = FarEnd(links[flow.there.back().link].device);
    if (flow.back.empty())
    {
        for (const auto& hop : flow.there)
        {
            RouteThrough(FarEnd(links[hop.link].device), AddressOf(index, BACK));
        }
    }
    else
    {
        ends = links[flow.back.front().link].device;
    }
    AddEnd(begins, AddressOf(index, BACK));
    AddEnd(ends, AddressOf(index, THERE));
}

void
StateChanged(Flow* flow, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
{
    flow->timeouts += now == TcpSocketState::CA_LOSS;
}

// The socket of a transfer exists once its application has started.
void
WatchTimeouts(Ptr<BulkSendApplication> bulk, Flow* flow)
{
    bulk->GetSocket()->TraceConnectWithoutContext("CongState", MakeBoundCallback(&StateChanged, flow));
}

// A source that does not react to losses.
class OpenSource
{
  public:
    OpenSource(Ptr<Socket> socket, const Flow& flow)
        : m_socket(socket),
          m_flow(flow)
    {
        if (flow.kind == "list")
        {
            std::ifstream file(flow.file);
            for (int64_t atNs, bytes; file >> atNs >> bytes;)
            {
                m_list.emplace_back(atNs, bytes);
            }
            if (m_list.empty())
            {
                Refuse(flow.file + ": has no packets");
            }
            Wait(m_list[0].first);
            return;
        }
        m_draw = CreateObject<UniformRandomVariable>();
        Wait(flow.startNs + (flow.kind == "poisson" ? Gap() : 0));
    }

  private:
    int64_t Gap()
    {
        const double meanNs = m_flow.bytes * 8e9 / m_flow.rateBps;
        const double factor = m_flow.kind == "poisson" ? -std::log(1.0 - m_draw->GetValue(0.0, 1.0))
                                                       : m_draw->GetValue(1.0 - m_flow.jitter, 1.0 + m_flow.jitter);
        return std::llround(meanNs * factor);
    }

    void Wait(int64_t atNs)
    {
        m_atNs = atNs;
        Simulator::Schedule(NanoSeconds(atNs) - Simulator::Now(), &OpenSource::SendOne, this);
    }

    void SendOne()
    {
        if (m_flow.kind == "list")
        {
            m_socket->Send(Create<Packet>(m_list[m_next].second - UDP_HEADERS_BYTES));
            if (++m_next < m_list.size())
            {
                Wait(m_list[m_next].first);
            }
            return;
        }
        if (m_atNs < m_flow.stopNs)
        {
            m_socket->Send(Create<Packet>(m_flow.bytes - UDP_HEADERS_BYTES));
            Wait(m_atNs + Gap());
        }
    }

    Ptr<Socket> m_socket;
    const Flow& m_flow;
    Ptr<UniformRandomVariable> m_draw;
    std::vector<std::pair<int64_t, uint32_t>> m_list;
    std::size_t m_next = 0;
    int64_t m_atNs = 0;
};

std::vector<std::unique_ptr<OpenSource>> g_sources;

void
AddTraffic(uint32_t index)
{
    Flow& flow = g_network.flows[index];
    auto from = g_network.links[flow.there.front().link].device->GetNode();
    auto to = FarEnd(g_network.links[flow.there.back().link].device)->GetNode();
    const uint16_t port = FIRST_PORT + index;
    const InetSocketAddress local(AddressOf(index, BACK), port);
    const InetSocketAddress remote(AddressOf(index, THERE), port);
    const bool tcp = flow.kind == "tcp";
    const std::string protocol = tcp ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
    if (tcp)
    {
        BulkSendHelper bulk(protocol, remote);
        bulk.SetAttribute("Local", AddressValue(local));
        bulk.SetAttribute("SendSize", UintegerValue(flow.bytes));
        auto installed = bulk.Install(from);
        installed.Start(NanoSeconds(flow.startNs));
        Simulator::Schedule(NanoSeconds(flow.startNs + 1), &WatchTimeouts, DynamicCast<BulkSendApplication>(installed.Get(0)), &flow);
    }
    else
    {
        auto socket = Socket::CreateSocket(from, UdpSocketFactory::GetTypeId());
        socket->Bind(local);
        socket->Connect(remote);
        g_sources.push_back(std::make_unique<OpenSource>(socket, flow));
    }
    PacketSinkHelper(protocol, remote).Install(to);
    to->GetApplication(to->GetNApplications() - 1)
        ->TraceConnectWithoutContext("Rx",
                                     MakeBoundCallback(
                                         +[](Flow* flow, Ptr<const Packet> packet, const Address&) {
                                             flow->goodBytes +=
                                                 packet->GetSize() + (flow->kind == "tcp" ? 0 : UDP_HEADERS_BYTES);
                                         },
                                         &flow));
}

void
EndWarmup(bool delays)
{
    g_network.measured = delays;
    for (auto& link : g_network.links)
    {
        for (std::size_t cls = 0; cls < link.limitPkts.size(); cls++)
        {
            link.before[cls] = link.StatsOf(cls);
        }
    }
    for (auto& flow : g_network.flows)
    {
        flow.goodBefore = flow.goodBytes;
        flow.timeoutsBefore = flow.timeouts;
    }
}

std::vector<Hop>
ReadWay(std::istream& line)
{
    std::size_t hops = 0;
    line >> hops;
    std::vector<Hop> way(hops);
    for (auto& hop : way)
    {
        line >> hop.link >> hop.cls;
        if (hop.link >= g_network.links.size() || hop.cls >= g_network.links[hop.link].limitPkts.size())
        {
            Refuse("a way has a link or a class that does not exist");
        }
    }
    return way;
}

void
ReadLink(std::istream& line)
{
    Link link;
    std::size_t classes = 0;
    line >> link.from >> link.to >> link.rateBps >> link.delayNs >> classes;
    link.limitPkts.resize(classes);
    link.before.resize(classes);
    link.waits.resize(classes);
    for (auto& limitPkts : link.limitPkts)
    {
        line >> limitPkts;
    }
    g_network.links.push_back(link);
}

void
ReadFlow(const std::string& kind, std::istream& line)
{
    Flow flow;
    flow.kind = kind;
    if (kind == "tcp")
    {
        line >> flow.startNs >> flow.bytes;
    }
    else if (kind == "poisson")
    {
        line >> flow.startNs >> flow.stopNs >> flow.rateBps >> flow.bytes;
    }
    else if (kind == "cbr")
    {
        line >> flow.startNs >> flow.stopNs >> flow.rateBps >> flow.bytes >> flow.jitter;
    }
    else
    {
        line >> flow.file;
    }
    g_network.flows.push_back(flow);
}

void
Read(const std::string& path)
{
    std::ifstream file(path);
    if (!file)
    {
        Refuse(path + ": cannot be read");
    }
    for (std::string text; std::getline(file, text);)
    {
        std::istringstream line(text);
        std::string word;
        line >> word;
        if (word == "run")
        {
            line >> g_network.durationNs >> g_network.warmupNs >> g_network.seed >> g_network.nodes >> g_network.sendBuffer >>
                g_network.receiveBuffer;
            for (std::string setting; line >> setting;)
            {
                g_network.tcp.push_back(setting);
            }
            continue;
        }
        if (word == "link")
        {
            ReadLink(line);
        }
        else if (word == "there")
        {
            g_network.flows.back().there = ReadWay(line);
        }
        else if (word == "back")
        {
            g_network.flows.back().back = ReadWay(line);
        }
        else if (word == "tcp" || word == "poisson" || word == "cbr" || word == "list")
        {
            ReadFlow(word, line);
        }
        else
        {
            Refuse("unknown line: " + text);
        }
        if (!line)
        {
            Refuse("incomplete line: " + text);
        }
    }
}

// Settings are attributes of ns-3: ns3::TcpSocket::DelAckCount=2.
void
ConfigureTcp()
{
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(g_network.sendBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(g_network.receiveBuffer));
    for (const auto& setting : g_network.tcp)
    {
        const auto equals = setting.find('=');
        Config::SetDefault(setting.substr(0, equals), StringValue(setting.substr(equals + 1)));
    }
}

void
WriteResults(double wallS)
{
    const double measuredS = (g_network.durationNs - g_network.warmupNs) / 1e9;
    uint64_t hops = 0;
    std::ostringstream links;
    for (auto& link : g_network.links)
    {
        hops += link.disc->GetStats().nTotalDequeuedPackets;
        links << (links.tellp() > 0 ? ", [" : "[");
        for (std::size_t cls = 0; cls < link.waits.size(); cls++)
        {
            const auto& now = link.StatsOf(cls);
            links << (cls ? ", " : "") << "{\"sent\": " << now.nTotalDequeuedPackets - link.before[cls].nTotalDequeuedPackets
                  << ", \"dropped\": " << now.nTotalDroppedPackets - link.before[cls].nTotalDroppedPackets << ", \"wait\": ";
            link.waits[cls].Write(links);
            links << "}";
        }
        links << "]";
    }
    std::ostringstream flows;
    for (auto& flow : g_network.flows)
    {
        flows << (flows.tellp() > 0 ? ", " : "") << "{\"goodput_bps\": " << (flow.goodBytes - flow.goodBefore) * 8 / measuredS
              << ", \"timeouts\": " << flow.timeouts - flow.timeoutsBefore << ", \"delay\": ";
        flow.delays.Write(flows);
        flows << "}";
    }
    std::cout << "{\"simulator\": \"ns-3\", \"hops\": " << hops << ", \"events\": " << Simulator::GetEventCount()
              << ", \"run_s\": " << wallS << ", \"links\": [" << links.str() << "], \"flows\": [" << flows.str() << "]}"
              << std::endl;
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string file;
    bool delays = true;
    bool idle = true;
    CommandLine command(__FILE__);
    command.AddValue("delays", "measure the delay of each packet", delays);
    command.AddValue("idle", "devices take a packet only when they are idle", idle);
    command.AddNonOption("file", "the network", file);
    command.Parse(argc, argv);

    std::cout.precision(12);
    Read(file);
    RngSeedManager::SetSeed(g_network.seed);
    ConfigureTcp();
    g_nodes.Create(g_network.nodes);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
    stack.Install(g_nodes);
    ConnectAll(idle);
    for (uint32_t i = 0; i < g_network.flows.size(); i++)
    {
        Route(i);
        AddTraffic(i);
    }
    if (delays)
    {
        for (uint32_t i = 0; i < g_nodes.GetN(); i++)
        {
            auto ipv4 = g_nodes.Get(i)->GetObject<Ipv4L3Protocol>();
            ipv4->TraceConnectWithoutContext("SendOutgoing", MakeCallback(&Created));
            ipv4->TraceConnectWithoutContext("LocalDeliver", MakeCallback(&Delivered));
        }
        for (auto& link : g_network.links)
        {
            link.disc->TraceConnectWithoutContext("Dequeue", MakeBoundCallback(&Dequeued, &link));
        }
    }
    Simulator::Schedule(NanoSeconds(g_network.warmupNs), &EndWarmup, delays);
    Simulator::Stop(NanoSeconds(g_network.durationNs));
    const auto begin = std::chrono::steady_clock::now();
    Simulator::Run();
    WriteResults(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    g_sources.clear();
    Simulator::Destroy();
    return 0;
}
