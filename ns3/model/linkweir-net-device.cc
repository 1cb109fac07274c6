// SPDX-License-Identifier: GPL-2.0-only
#include "linkweir-net-device.h"

#include "ns3/abort.h"
#include "ns3/net-device-queue-interface.h"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"
#include "ns3/uinteger.h"

#include <algorithm>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(LinkweirNetDevice);

namespace
{

constexpr uint64_t NS_PER_S = 1'000'000'000;
constexpr uint64_t MOST_BPS = 1'000'000'000'000;
constexpr uint64_t NO_TIME_BPS = 1'000'000'000'000'000; // a packet takes less than a nanosecond

} // namespace

TypeId
LinkweirNetDevice::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::LinkweirNetDevice")
            .SetParent<PointToPointNetDevice>()
            .SetGroupName("Linkweir")
            .AddConstructor<LinkweirNetDevice>()
            .AddAttribute("Capacity",
                          "Capacity of the link; it may change at any time, and 0 stops the packet being sent.",
                          DataRateValue(DataRate("10Mbps")),
                          MakeDataRateAccessor(&LinkweirNetDevice::SetCapacity, &LinkweirNetDevice::GetCapacity),
                          MakeDataRateChecker())
            .AddAttribute("Overhead",
                          "Bytes that the link adds to each packet, by default those of PPP.",
                          UintegerValue(2),
                          MakeUintegerAccessor(&LinkweirNetDevice::m_overhead),
                          MakeUintegerChecker<uint32_t>(0, 65535))
            .AddAttribute("Ring",
                          "Packets that the device holds, the one being sent included; it takes more when all have left.",
                          UintegerValue(1),
                          MakeUintegerAccessor(&LinkweirNetDevice::m_ring),
                          MakeUintegerChecker<uint32_t>(1, 65536))
            .AddTraceSource("CapacityTrace",
                            "The capacity changed.",
                            MakeTraceSourceAccessor(&LinkweirNetDevice::m_capacity),
                            "ns3::TracedValueCallback::DataRate");
    return tid;
}

LinkweirNetDevice::LinkweirNetDevice() = default;
LinkweirNetDevice::~LinkweirNetDevice()
{
    m_end.Cancel();
}

void
LinkweirNetDevice::NotifyConstructionCompleted()
{
    PointToPointNetDevice::NotifyConstructionCompleted();
    SetDataRate(DataRate(NO_TIME_BPS));
}

void
LinkweirNetDevice::SetCapacity(DataRate capacity)
{
    NS_ABORT_MSG_IF(capacity.GetBitRate() > MOST_BPS, "LinkweirNetDevice: Capacity = " << capacity << " is above " << MOST_BPS << " bit/s");
    Settle();
    m_capacity = capacity;
    Arrange();
}

DataRate
LinkweirNetDevice::GetCapacity() const
{
    return m_capacity.Get();
}

bool
LinkweirNetDevice::Send(Ptr<Packet> packet, const Address& destination, uint16_t protocol)
{
    // a device without queue interface gets packets that it did not ask for
    if (!IsLinkUp() || m_held.size() >= m_ring)
    {
        return false;
    }
    m_held.push_back({packet, destination, protocol});
    if (m_held.size() == 1)
    {
        Start();
    }
    const auto interface = GetObject<NetDeviceQueueInterface>();
    if (interface && m_held.size() >= m_ring)
    {
        interface->GetTxQueue(0)->Stop();
    }
    return true;
}

void
LinkweirNetDevice::Start()
{
    m_remaining = 8 * NS_PER_S * (uint64_t{m_held.front().packet->GetSize()} + m_overhead);
    m_settled = Simulator::Now();
    Arrange();
}

/// Subtracts what has left since the last change.
void
LinkweirNetDevice::Settle()
{
    const auto now = Simulator::Now();
    if (!m_held.empty())
    {
        // at most the remainder, because the packet ends when nothing remains
        const auto passed = static_cast<uint64_t>((now - m_settled).GetNanoSeconds());
        const auto rate = m_capacity.Get().GetBitRate();
        m_remaining = rate && passed > m_remaining / rate ? 0 : m_remaining - passed * rate;
    }
    m_settled = now;
}

/// Schedules the end of the packet being sent.
void
LinkweirNetDevice::Arrange()
{
    m_end.Cancel();
    const auto rate = m_capacity.Get().GetBitRate();
    if (!m_held.empty() && rate)
    {
        const auto rest = m_remaining / rate + (m_remaining % rate != 0);
        m_end = Simulator::Schedule(NanoSeconds(rest), &LinkweirNetDevice::Finish, this);
    }
}

void
LinkweirNetDevice::Finish()
{
    const auto sent = m_held.front();
    m_held.pop_front();
    PointToPointNetDevice::Send(sent.packet, sent.destination, sent.protocol);
    if (!m_held.empty())
    {
        Start();
        return;
    }
    if (const auto interface = GetObject<NetDeviceQueueInterface>())
    {
        interface->GetTxQueue(0)->Wake();
    }
}

} // namespace ns3
