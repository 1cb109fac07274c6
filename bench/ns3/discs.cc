// SPDX-License-Identifier: GPL-2.0-only
//
// Cost of queue discs: discs NAME [PACKETS], for callgrind. NAME is linkweir-strict, prio, linkweir-pss, linkweir-fq_codel, fq_codel.
//
// Packets of three classes arrive in turn and leave one by one with 60 waiting. An arrival and a departure each cost the event loop
// nothing: the clock stands, except for a step of 1 us a packet.

#include "ns3/core-module.h"
#include "ns3/linkweir-helper.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/uinteger.h"

#include <iostream>

using namespace ns3;

namespace
{

constexpr uint32_t CLASSES = 3;
constexpr uint32_t WAITING = 60;
constexpr uint32_t PACKET_BYTES = 1000;

class Item : public QueueDiscItem
{
  public:
    explicit Item(uint32_t queue)
        : QueueDiscItem(g_packet, Address(), 0),
          m_queue(queue)
    {
    }

    void AddHeader() override
    {
    }

    bool Mark() override
    {
        return false;
    }

    uint32_t Hash(uint32_t) const override
    {
        return m_queue;
    }

    static inline Ptr<Packet> g_packet = Create<Packet>(PACKET_BYTES);
    const uint32_t m_queue;
};

class Filter : public PacketFilter
{
  private:
    bool CheckProtocol(Ptr<QueueDiscItem>) const override
    {
        return true;
    }

    int32_t DoClassify(Ptr<QueueDiscItem> item) const override
    {
        return static_cast<int32_t>(static_cast<const Item&>(*item).m_queue);
    }
};

Ptr<QueueDisc>
Make(const std::string& name)
{
    if (name == "prio")
    {
        auto prio = CreateObject<PrioQueueDisc>();
        for (uint32_t q = 0; q < CLASSES; q++)
        {
            auto band = CreateObject<QueueDiscClass>();
            band->SetQueueDisc(CreateObject<FifoQueueDisc>());
            prio->AddQueueDiscClass(band);
        }
        return prio;
    }
    if (name == "fq_codel")
    {
        auto disc = CreateObject<FqCoDelQueueDisc>();
        disc->SetQuantum(1514);
        return disc;
    }
    LinkweirHelper helper(name.substr(name.find('-') + 1), "LinkRate", StringValue("1Gbps"));
    for (uint32_t q = 0; q < CLASSES; q++)
    {
        helper.AddClass("c" + std::to_string(q), {});
    }
    auto disc = helper.Create();
    if (name == "linkweir-pss")
    {
        disc->GetClass(1)->SetAttribute("LowLevel", UintegerValue(3));
        disc->GetClass(1)->SetAttribute("Rate", StringValue("200Mbps"));
    }
    return disc;
}

uint32_t g_left = 0;

void
Step(Ptr<QueueDisc> disc, uint32_t packets)
{
    disc->Enqueue(Create<Item>(packets % CLASSES));
    g_left += disc->Dequeue() ? 1 : 0;
    if (packets)
    {
        Simulator::Schedule(MicroSeconds(1), &Step, disc, packets - 1);
    }
}

} // namespace

int
main(int argc, char* argv[])
{
    const std::string name = argc > 1 ? argv[1] : "linkweir-strict";
    auto disc = Make(name);
    // helpers add a filter of code points, which asks first and finds none in these packets
    disc->AddPacketFilter(CreateObject<Filter>());
    disc->Initialize();
    for (uint32_t i = 0; i < WAITING; i++)
    {
        disc->Enqueue(Create<Item>(i % CLASSES));
    }
    Step(disc, argc > 2 ? static_cast<uint32_t>(std::stoul(argv[2])) : 100'000);
    Simulator::Run();
    std::cout << name << ": " << g_left << " packets left\n";
    disc->Dispose();
    Simulator::Destroy();
    return 0;
}
