// SPDX-License-Identifier: GPL-2.0-only
//
// The vectors are found in vectors/ of the module (in the tarball) or beside it (in Linkweir's repository), or in the folder that
// the environment's LINKWEIR_VECTORS names.

#include "differences.h"
#include "vectors.h"

#include "ns3/linkweir-capacity.h"
#include "ns3/linkweir-helper.h"
#include "ns3/linkweir-net-device.h"
#include "ns3/linkweir-queue-disc.h"
#include "ns3/linkweir-turns.h"
#include "ns3/double.h"
#include "ns3/fifo-queue-disc.h"
#include "ns3/packet-filter.h"
#include "ns3/packet.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/prio-queue-disc.h"
#include "ns3/random-variable-stream.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/tbf-queue-disc.h"
#include "ns3/traffic-control-layer.h"
#include "ns3/uinteger.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace ns3;

namespace
{

// ---- vectors ----

std::filesystem::path
VectorFolder()
{
    if (const char* named = std::getenv("LINKWEIR_VECTORS"))
    {
        return named;
    }
    for (const auto* where : {LINKWEIR_FOLDER "/vectors", LINKWEIR_FOLDER "/../vectors"})
    {
        if (std::filesystem::exists(where))
        {
            return where;
        }
    }
    return {};
}

/// Every vector whose operations a disc can make goes through it, and all go through the compiled-in policy.
class VectorsTestCase : public TestCase
{
  public:
    VectorsTestCase()
        : TestCase("all vectors give the answers they state")
    {
    }

  private:
    void DoRun() override
    {
        const auto folder = VectorFolder();
        NS_TEST_ASSERT_MSG_EQ(folder.empty(), false, "no vectors: set LINKWEIR_VECTORS to their folder");
        std::map<std::string, unsigned> reasons;
        unsigned through = 0;
        unsigned all = 0;
        unsigned long answers = 0;
        for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
        {
            if (file.path().extension() != ".vec")
            {
                continue;
            }
            all++;
            const auto name = file.path().string();
            NS_TEST_EXPECT_MSG_EQ(linkweir_test::ReplayThroughCore(name), true, name << ": the core answers otherwise");
            const auto outcome = linkweir_test::ReplayThroughDisc(name);
            NS_TEST_EXPECT_MSG_EQ(outcome.error, "", name << ":" << outcome.error);
            through += outcome.reason.empty();
            answers += outcome.answers;
            if (!outcome.reason.empty())
            {
                reasons[outcome.reason]++;
            }
        }
        std::cout << all << " vectors: " << through << " through a disc, " << answers << " answers; all through the core\n";
        for (const auto& [reason, count] : reasons)
        {
            std::cout << "  " << count << " not through a disc: " << reason << '\n';
        }
        NS_TEST_EXPECT_MSG_GT(through, 50U, "too few vectors go through a disc");
    }
};

// ---- random operations ----

/// A packet with a class and a DS field.
class RandomItem : public QueueDiscItem
{
  public:
    RandomItem(uint32_t queue, uint32_t bytes, bool markable)
        : QueueDiscItem(Create<Packet>(bytes), Address(), 0),
          m_queue(queue),
          m_markable(markable)
    {
    }

    void AddHeader() override
    {
    }

    bool Mark() override
    {
        return m_markable;
    }

    bool GetUint8Value(Uint8Values, uint8_t& value) const override
    {
        value = m_markable ? 2 : 0;
        return true;
    }

    const uint32_t m_queue; //!< class

  private:
    bool m_markable;
};

class RandomFilter : public PacketFilter
{
  private:
    bool CheckProtocol(Ptr<QueueDiscItem>) const override
    {
        return true;
    }

    int32_t DoClassify(Ptr<QueueDiscItem> item) const override
    {
        return static_cast<int32_t>(static_cast<const RandomItem&>(*item).m_queue);
    }
};

/// All packets go to the first band.
class FirstBand : public PacketFilter
{
  private:
    bool CheckProtocol(Ptr<QueueDiscItem>) const override
    {
        return true;
    }

    int32_t DoClassify(Ptr<QueueDiscItem>) const override
    {
        return 0;
    }
};

enum Place
{
    ROOT,
    BELOW_TBF,
    BELOW_PRIO
};

/// Arrivals, departures, peeks, and changes of rates and limits in random order.
class RandomTestCase : public TestCase
{
  public:
    RandomTestCase(const std::string& policy, Place place)
        : TestCase(policy + (place == ROOT ? " at the root" : place == BELOW_TBF ? " below TBF" : " below Prio")),
          m_policy(policy),
          m_place(place)
    {
    }

  private:
    static constexpr uint32_t OPERATIONS = 100'000;
    static constexpr uint32_t CLASSES = 5;

    void Build()
    {
        ObjectFactory factory;
        factory.SetTypeId(LinkweirQueueDisc::GetTypeIdOf(m_policy));
        m_disc = factory.Create<LinkweirQueueDisc>();
        for (uint32_t q = 0; q < CLASSES; q++)
        {
            auto queue = m_disc->CreateClass();
            queue->SetAttribute("MaxPackets", UintegerValue(20 + 10 * q));
            queue->SetAttribute("MaxBytes", UintegerValue(q % 2 ? 30'000 : 0));
            queue->TraceConnectWithoutContext("Sojourn", MakeCallback(&RandomTestCase::Waited, this));
            m_disc->AddClass(queue);
        }
        m_disc->SetLinkRate(DataRate("10Mbps"));
        m_disc->AddPacketFilter(CreateObject<RandomFilter>());
        m_top = m_disc;
        if (m_place == BELOW_TBF)
        {
            m_top = CreateObjectWithAttributes<TbfQueueDisc>("Rate", DataRateValue(DataRate("10Mbps")), "Burst", UintegerValue(10'000), "Mtu", UintegerValue(0));
        }
        else if (m_place == BELOW_PRIO)
        {
            m_top = CreateObject<PrioQueueDisc>();
            m_top->AddPacketFilter(CreateObject<FirstBand>());
        }
        if (m_top != m_disc)
        {
            auto below = CreateObject<QueueDiscClass>();
            below->SetQueueDisc(m_disc);
            m_top->AddQueueDiscClass(below);
            if (m_place == BELOW_PRIO)
            {
                auto second = CreateObject<QueueDiscClass>();
                second->SetQueueDisc(CreateObject<FifoQueueDisc>());
                m_top->AddQueueDiscClass(second);
            }
        }
    }

    void Waited(Time sojourn)
    {
        m_negative = m_negative || sojourn.IsStrictlyNegative();
    }

    void Step()
    {
        const auto action = m_random->GetInteger(0, 99);
        const auto queue = m_random->GetInteger(0, m_disc->GetNClasses() - 1);
        if (action < 55)
        {
            m_top->Enqueue(Create<RandomItem>(queue, m_random->GetInteger(40, 1500), m_random->GetInteger(0, 1)));
        }
        else if (action < 92)
        {
            if (m_top->Dequeue())
            {
                m_left++;
            }
        }
        else if (action < 94)
        {
            m_top->Peek();
        }
        else if (action < 96)
        {
            m_disc->SetLinkRate(DataRate(m_random->GetInteger(0, 20) * 1'000'000));
        }
        else if (action < 98)
        {
            m_disc->SetChannelRates({{queue, m_random->GetInteger(0, 9) * 1'000'000}});
        }
        else
        {
            m_disc->GetClass(queue)->SetAttribute("MaxPackets", UintegerValue(m_random->GetInteger(1, 60)));
        }
        Check();
        if (++m_steps < OPERATIONS)
        {
            Simulator::Schedule(MicroSeconds(m_random->GetInteger(0, 1500)), &RandomTestCase::Step, this);
        }
    }

    void Check()
    {
        const auto& stats = m_disc->GetStats();
        m_broken = m_broken || stats.nTotalReceivedPackets != stats.nTotalEnqueuedPackets + stats.nTotalDroppedPacketsBeforeEnqueue ||
                   stats.nTotalReceivedBytes != stats.nTotalEnqueuedBytes + stats.nTotalDroppedBytesBeforeEnqueue ||
                   stats.nTotalEnqueuedPackets != stats.nTotalDequeuedPackets + m_disc->GetNPackets();
        uint64_t waiting = 0;
        uint64_t received = 0;
        uint64_t gone = 0;
        for (uint32_t q = 0; q < m_disc->GetNClasses(); q++)
        {
            const auto queue = m_disc->GetClass(q);
            waiting += queue->GetNPackets();
            received += queue->GetStats().receivedPackets;
            gone += queue->GetStats().sentPackets + queue->GetStats().GetDropped();
            m_broken = m_broken || queue->GetNPackets() != m_disc->GetInternalQueue(q)->GetNPackets() ||
                       (!m_disc->GetQueue(q).backlog_pkts && m_disc->GetQueue(q).backlog_bytes);
        }
        m_broken = m_broken || received != waiting + gone || received != stats.nTotalReceivedPackets;
    }

    void DoRun() override
    {
        Build();
        m_random = CreateObject<UniformRandomVariable>();
        m_random->SetStream(7);
        std::ostringstream record;
        m_disc->RecordTo(record);
        m_top->Initialize();
        Simulator::ScheduleNow(&RandomTestCase::Step, this);
        Simulator::Run();
        NS_TEST_EXPECT_MSG_EQ(m_broken, false, "packets are not conserved");
        NS_TEST_EXPECT_MSG_EQ(m_negative, false, "a sojourn is negative");
        NS_TEST_EXPECT_MSG_GT(m_left, OPERATIONS / 20, "too few packets left");
        NS_TEST_EXPECT_MSG_EQ(linkweir_test::ReplayTextThroughCore(record.str()), true, "the core, given the same calls, decides otherwise");
        m_top->Dispose();
        Simulator::Destroy();
    }

    std::string m_policy;
    Place m_place;
    Ptr<LinkweirQueueDisc> m_disc;
    Ptr<QueueDisc> m_top;
    Ptr<UniformRandomVariable> m_random;
    uint32_t m_steps{0};
    uint32_t m_left{0};
    bool m_broken{false};
    bool m_negative{false};
};

// ---- settings ----

/// Settings that the core refuses are refused with its sentence, the class and the parameter.
class RefusedTestCase : public TestCase
{
  public:
    RefusedTestCase()
        : TestCase("settings are refused with the core's sentence")
    {
    }

  private:
    Ptr<LinkweirQueueDisc> Pss(uint32_t second, const std::string& rate)
    {
        LinkweirHelper helper("pss", "LinkRate", StringValue("10Mbps"));
        helper.AddClass("voice", {46}, "Level", UintegerValue(1));
        helper.AddClass("video", {10}, "Level", UintegerValue(second), "LowLevel", UintegerValue(9), "Rate", StringValue(rate));
        return helper.Create();
    }

    void Refused(Ptr<LinkweirQueueDisc> disc, const std::string& place)
    {
        std::string why;
        NS_TEST_EXPECT_MSG_EQ(disc->CheckSettings(why), false, "accepted");
        NS_TEST_EXPECT_MSG_NE(why.find(place), std::string::npos, why << " does not name " << place);
        NS_TEST_EXPECT_MSG_GT(why.size(), place.size() + 20, "no sentence: " << why);
        disc->Dispose();
    }

    void DoRun() override
    {
        Refused(Pss(1, "1Mbps"), "ns3::LinkweirPssQueueDisc, class 1 \"video\", Level: ");
        Refused(Pss(2, "20Mbps"), "ns3::LinkweirPssQueueDisc, class 1 \"video\", Rate: ");
        auto disc = Pss(2, "1Mbps");
        std::string why;
        NS_TEST_EXPECT_MSG_EQ(disc->CheckSettings(why), true, why);
        disc->Initialize();
        auto video = disc->GetClass(1);
        NS_TEST_EXPECT_MSG_EQ(video->SetAttributeFailSafe("Rate", StringValue("20Mbps")), false, "above the link");
        NS_TEST_EXPECT_MSG_EQ(video->SetAttributeFailSafe("Mtu", StringValue("10B")), false, "outside its range");
        NS_TEST_EXPECT_MSG_EQ(video->SetAttributeFailSafe("Quantum", StringValue("10B")), false, "of no policy");
        NS_TEST_EXPECT_MSG_EQ(video->SetAttributeFailSafe("Rate", StringValue("2Mbps")), true, "a good value");
        DataRateValue rate;
        video->GetAttribute("Rate", rate);
        NS_TEST_EXPECT_MSG_EQ(rate.Get(), DataRate("2Mbps"), "the value in force");
        disc->Dispose();
        Simulator::Destroy();
    }
};

/// What ends the simulation says whose setting is wrong, which one, and what to do. Each case runs in a process of its own.
class FatalTestCase : public TestCase
{
  public:
    FatalTestCase()
        : TestCase("mistakes are fatal and name the class and the parameter")
    {
    }

  private:
    /// What a process that does this prints to standard error before it is aborted; empty if it is not aborted.
    static std::string LastWords(const std::function<void()>& mistake)
    {
        int ends[2];
        if (pipe(ends) != 0)
        {
            return "";
        }
        std::cout.flush();
        const auto child = fork();
        if (child == 0)
        {
            dup2(ends[1], STDERR_FILENO);
            mistake();
            _exit(0);
        }
        close(ends[1]);
        std::string words;
        char part[512];
        for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;)
        {
            words.append(part, static_cast<std::size_t>(n));
        }
        close(ends[0]);
        int status = 0;
        waitpid(child, &status, 0);
        return WIFSIGNALED(status) ? words : "";
    }

    /// A disc of two classes on a device of 10 Mbit/s, started.
    static void Start(uint32_t level, const std::string& attribute, const std::string& value)
    {
        auto node = CreateObject<Node>();
        node->AggregateObject(CreateObject<TrafficControlLayer>());
        auto devices = LinkweirHelper::Connect(node, CreateObject<Node>(), DataRate("10Mbps"), Time());
        LinkweirHelper helper("pss");
        helper.AddClass("voice", {46}, "Level", UintegerValue(1));
        helper.AddClass("video", {10}, "Level", UintegerValue(level), "LowLevel", UintegerValue(9), attribute, StringValue(value));
        helper.Install(devices.Get(0))->Initialize();
    }

    void Says(const std::function<void()>& mistake, const std::vector<std::string>& parts)
    {
        const auto words = LastWords(mistake);
        for (const auto& part : parts)
        {
            NS_TEST_EXPECT_MSG_NE(words.find(part), std::string::npos, "\"" << words << "\" has no \"" << part << '"');
        }
    }

    void DoRun() override
    {
        const std::string video = "ns3::LinkweirPssQueueDisc, class 1 \"video\", ";
        NS_TEST_EXPECT_MSG_EQ(LastWords([] { Start(2, "Rate", "5Mbps"); }), "", "good settings are refused");
        Says([] { Start(2, "Rates", "5Mbps"); }, {"Rates"});
        Says([] { Start(1, "Rate", "5Mbps"); }, {video + "Level: another queue has this level: all levels, high and low, must differ"});
        Says([] { Start(2, "Rate", "20Mbps"); }, {video + "Rate: the reservation must be below the link's capacity: give a smaller one"});
        Says(
            [] {
                auto node = CreateObject<Node>();
                node->AggregateObject(CreateObject<TrafficControlLayer>());
                auto device = CreateObject<PointToPointNetDevice>(); // without the queue interface that a helper would add
                node->AddDevice(device);
                LinkweirHelper helper("pss");
                helper.AddClass("voice", {46}, "Level", UintegerValue(1));
                helper.Install(device);
            },
            {"ns3::PointToPointNetDevice", "NetDeviceQueueInterface"});
    }
};

// ---- device and capacity ----

/// A packet has left when the capacity adds up to its bits, an outage included.
class DeviceTestCase : public TestCase
{
  public:
    DeviceTestCase()
        : TestCase("a device integrates a capacity that changes under a packet")
    {
    }

  private:
    void Received(Ptr<const Packet>)
    {
        m_arrivals.push_back(Simulator::Now());
    }

    void DoRun() override
    {
        auto a = CreateObject<Node>();
        auto b = CreateObject<Node>();
        auto devices = LinkweirHelper::Connect(a, b, DataRate("1Mbps"), MilliSeconds(1));
        auto device = DynamicCast<LinkweirNetDevice>(devices.Get(0));
        device->SetAttribute("Overhead", UintegerValue(0));
        auto capacity = CreateObject<LinkweirCapacity>();
        // 8 kbit: 4 kbit in 4 ms at 1 Mbit/s, nothing for 10 ms, 1 kbit in 2 ms, 3 kbit in 1 ms
        capacity->SetSteps({{Time(), DataRate("1Mbps")}, {MilliSeconds(4), DataRate(0)}, {MilliSeconds(14), DataRate("500kbps")}, {MilliSeconds(16), DataRate("3Mbps")}});
        capacity->Attach(device);
        devices.Get(1)->TraceConnectWithoutContext("MacRx", MakeCallback(&DeviceTestCase::Received, this));
        Simulator::ScheduleNow([device] { device->Send(Create<Packet>(1000), device->GetBroadcast(), 0x0800); });
        Simulator::Run();
        NS_TEST_ASSERT_MSG_EQ(m_arrivals.size(), 1, "one packet");
        NS_TEST_EXPECT_MSG_EQ(m_arrivals[0], MilliSeconds(18), "17 ms of transmission and 1 ms of propagation");
        Simulator::Destroy();
    }

    std::vector<Time> m_arrivals;
};

/// Steps, rounds and the mean of a cosine.
class CapacityTestCase : public TestCase
{
  public:
    CapacityTestCase()
        : TestCase("a capacity over time has the values it was given")
    {
    }

  private:
    void DoRun() override
    {
        auto capacity = CreateObject<LinkweirCapacity>();
        capacity->SetSteps({{Time(), DataRate(5)}, {Seconds(1), DataRate(0)}}, Seconds(3));
        NS_TEST_EXPECT_MSG_EQ(capacity->GetRate(MilliSeconds(999)).GetBitRate(), 5, "first step");
        NS_TEST_EXPECT_MSG_EQ(capacity->GetRate(Seconds(1)).GetBitRate(), 0, "second step");
        NS_TEST_EXPECT_MSG_EQ(capacity->GetRate(Seconds(3)).GetBitRate(), 5, "second round");
        capacity->SetCosine(DataRate("20Mbps"), 0.3, Seconds(15));
        double sum = 0;
        for (int i = 0; i < 1500; i++)
        {
            sum += static_cast<double>(capacity->GetRate(MilliSeconds(10 * i)).GetBitRate());
        }
        NS_TEST_EXPECT_MSG_EQ_TOL(sum / 1500, 20e6, 1, "mean over a period");
        NS_TEST_EXPECT_MSG_EQ_TOL(static_cast<double>(capacity->GetRate(Time()).GetBitRate()), 26e6, 1e3, "largest value");
    }
};

/// Turns of queues that another module keeps.
class TurnsTestCase : public TestCase
{
  public:
    TurnsTestCase()
        : TestCase("turns follow the policy")
    {
    }

  private:
    /// As sns3's scheduling objects are.
    struct Waiting : public SimpleRefCount<Waiting>
    {
        Waiting(uint8_t flow, uint32_t bytes)
            : flow(flow),
              bytes(bytes)
        {
        }

        uint8_t GetFlowId() const
        {
            return flow;
        }

        uint32_t GetBufferedBytes() const
        {
            return bytes;
        }

        uint8_t flow;
        uint32_t bytes;
    };

    void DoRun() override
    {
        LinkweirHelper helper("drr", "LinkRate", StringValue("10Mbps"));
        helper.AddClass("control", {}, "Level", UintegerValue(0));
        helper.AddClass("AF", {}, "Level", UintegerValue(1), "Quantum", StringValue("3000B"));
        helper.AddClass("BE", {}, "Level", UintegerValue(1), "Quantum", StringValue("1000B"));
        LinkweirTurns turns(helper, 1000);
        NS_TEST_EXPECT_MSG_EQ(turns.Next({0, 0, 0}), 3, "nothing waits");
        NS_TEST_EXPECT_MSG_EQ(turns.Next({10, 5000, 5000}), 0, "the urgent one first");
        std::vector<uint32_t> count(3);
        for (int i = 0; i < 4000; i++)
        {
            count[turns.Next({0, 1'000'000, 1'000'000})]++;
        }
        NS_TEST_EXPECT_MSG_EQ_TOL(count[1], 3000U, 3U, "by their quanta");
        NS_TEST_EXPECT_MSG_EQ_TOL(count[2], 1000U, 3U, "by their quanta");
        std::vector<Ptr<Waiting>> objects{Create<Waiting>(7, 0), Create<Waiting>(7, 900), Create<Waiting>(1, 0)};
        const auto found = turns.Next(objects.begin(), objects.end());
        NS_TEST_EXPECT_MSG_EQ((found == objects.begin() + 1), true, "a flow beyond the last class belongs to that");
        objects.pop_back();
        objects.pop_back();
        NS_TEST_EXPECT_MSG_EQ((turns.Next(objects.begin(), objects.end()) == objects.end()), true, "nothing waits");
        Simulator::Destroy();
    }
};

class LinkweirTestSuite : public TestSuite
{
  public:
    LinkweirTestSuite()
        : TestSuite("linkweir", linkweir_test::Types<TestSuite>::UNIT)
    {
        const auto quick = linkweir_test::Durations<TestCase>::QUICK;
        AddTestCase(new RefusedTestCase, quick);
        AddTestCase(new FatalTestCase, quick);
        AddTestCase(new TurnsTestCase, quick);
        AddTestCase(new DeviceTestCase, quick);
        AddTestCase(new CapacityTestCase, quick);
        AddTestCase(new VectorsTestCase, quick);
        for (const auto& policy : LinkweirQueueDisc::GetPolicies())
        {
            for (const auto place : {ROOT, BELOW_TBF, BELOW_PRIO})
            {
                AddTestCase(new RandomTestCase(policy, place), quick);
            }
        }
    }
} g_linkweirTestSuite; //!< static variable for registration

} // namespace
