// SPDX-License-Identifier: GPL-2.0-only
#include "linkweir-helper.h"

#include "ns3/abort.h"
#include "ns3/drop-tail-queue.h"
#include "ns3/linkweir-dscp-filter.h"
#include "ns3/linkweir-net-device.h"
#include "ns3/mac48-address.h"
#include "ns3/net-device-queue-interface.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/pointer.h"
#include "ns3/queue.h"
#include "ns3/traffic-control-layer.h"
#include "ns3/uinteger.h"

#include <iostream>

namespace ns3
{

namespace
{

const QueueSize ONE_PACKET("1p");

/// Packets in the queue of a device have left the policy's control, so it gets room for one only.
void
ShrinkQueue(Ptr<NetDevice> device)
{
    PointerValue pointer;
    if (!device->GetAttributeFailSafe("TxQueue", pointer))
    {
        std::cerr << "linkweir: the queue of device " << device->GetInstanceTypeId().GetName()
                  << " cannot be seen; packets in it have left the policy's control" << std::endl;
        return;
    }
    const auto queue = pointer.Get<QueueBase>();
    if (queue && queue->GetMaxSize() != ONE_PACKET && !DynamicCast<LinkweirNetDevice>(device))
    {
        std::cerr << "linkweir: the queue of device " << device->GetIfIndex() << " of node " << device->GetNode()->GetId()
                  << " becomes 1p, not " << queue->GetMaxSize() << ", so that packets wait where the policy decides" << std::endl;
        queue->SetMaxSize(ONE_PACKET);
    }
}

DataRate
RateOf(Ptr<NetDevice> device)
{
    DataRateValue rate(DataRate(0));
    if (!device->GetAttributeFailSafe("Capacity", rate))
    {
        device->GetAttributeFailSafe("DataRate", rate);
    }
    return rate.Get();
}

} // namespace

Ptr<LinkweirQueueDisc>
LinkweirHelper::Create() const
{
    auto disc = m_disc.Create<LinkweirQueueDisc>();
    auto filter = CreateObject<LinkweirDscpFilter>();
    for (const auto& settings : m_classes)
    {
        const auto index = disc->AddClass(settings.factory.Create<LinkweirClass>());
        for (const auto dscp : settings.dscps)
        {
            filter->SetClass(dscp, index);
        }
    }
    disc->AddPacketFilter(filter);
    return disc;
}

Ptr<LinkweirQueueDisc>
LinkweirHelper::Install(Ptr<NetDevice> device) const
{
    const auto name = device->GetInstanceTypeId().GetName();
    const auto layer = device->GetNode()->GetObject<TrafficControlLayer>();
    NS_ABORT_MSG_IF(!layer, "LinkweirHelper: node " << device->GetNode()->GetId() << " has no TrafficControlLayer; install InternetStackHelper first");
    const auto interface = device->GetObject<NetDeviceQueueInterface>();
    NS_ABORT_MSG_IF(!interface,
                    "LinkweirHelper: device " << name << " has no NetDeviceQueueInterface, so a queue disc would never hold a packet; "
                                                 "use a device with flow control, or LinkweirHelper::Connect()");
    if (interface->GetNTxQueues() > 1)
    {
        std::cerr << "linkweir: device " << name << " has " << interface->GetNTxQueues()
                  << " transmission queues; it may return packets that the policy counts as sent" << std::endl;
    }
    ShrinkQueue(device);
    auto disc = Create();
    if (!disc->GetLinkRate().GetBitRate())
    {
        disc->SetLinkRate(RateOf(device));
    }
    UintegerValue overhead;
    disc->GetAttribute("Overhead", overhead);
    if (!overhead.Get() && DynamicCast<PointToPointNetDevice>(device))
    {
        UintegerValue own(2); // PPP
        device->GetAttributeFailSafe("Overhead", own);
        disc->SetAttribute("Overhead", own);
    }
    if (layer->GetRootQueueDiscOnDevice(device))
    {
        layer->DeleteRootQueueDiscOnDevice(device);
    }
    layer->SetRootQueueDiscOnDevice(device, disc);
    return disc;
}

QueueDiscContainer
LinkweirHelper::Install(const NetDeviceContainer& devices) const
{
    QueueDiscContainer discs;
    for (auto device = devices.Begin(); device != devices.End(); ++device)
    {
        discs.Add(Install(*device));
    }
    return discs;
}

NetDeviceContainer
LinkweirHelper::Connect(Ptr<Node> a, Ptr<Node> b, DataRate capacity, Time delay)
{
    auto channel = CreateObjectWithAttributes<PointToPointChannel>("Delay", TimeValue(delay));
    NetDeviceContainer devices;
    for (const auto& node : {a, b})
    {
        auto device = CreateObjectWithAttributes<LinkweirNetDevice>("Capacity", DataRateValue(capacity));
        device->SetAddress(Mac48Address::Allocate());
        node->AddDevice(device);
        device->SetQueue(CreateObjectWithAttributes<DropTailQueue<Packet>>("MaxSize", QueueSizeValue(ONE_PACKET)));
        device->AggregateObject(CreateObject<NetDeviceQueueInterface>());
        device->Attach(channel);
        devices.Add(device);
    }
    return devices;
}

} // namespace ns3
