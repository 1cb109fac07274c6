// SPDX-License-Identifier: GPL-2.0-only
#include "linkweir-fifo.h"

#include <iterator>
#include <limits>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("LinkweirFifo");
NS_OBJECT_ENSURE_REGISTERED(LinkweirFifo);

TypeId
LinkweirFifo::GetTypeId()
{
    static TypeId tid = TypeId("ns3::LinkweirFifo")
                            .SetParent<Queue<QueueDiscItem>>()
                            .SetGroupName("Linkweir")
                            .AddConstructor<LinkweirFifo>();
    return tid;
}

LinkweirFifo::LinkweirFifo()
    : NS_LOG_TEMPLATE_DEFINE("LinkweirFifo")
{
    SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, std::numeric_limits<uint32_t>::max()));
}

bool
LinkweirFifo::Enqueue(Ptr<QueueDiscItem> item)
{
    return DoEnqueue(GetContainer().end(), item);
}

Ptr<QueueDiscItem>
LinkweirFifo::Dequeue()
{
    return DoDequeue(GetContainer().begin());
}

Ptr<QueueDiscItem>
LinkweirFifo::Remove()
{
    return DoRemove(GetContainer().begin());
}

Ptr<const QueueDiscItem>
LinkweirFifo::Peek() const
{
    return DoPeek(GetContainer().begin());
}

Ptr<QueueDiscItem>
LinkweirFifo::DequeueTail()
{
    return GetContainer().empty() ? nullptr : DoDequeue(std::prev(GetContainer().end()));
}

} // namespace ns3
