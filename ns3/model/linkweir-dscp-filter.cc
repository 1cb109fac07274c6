// SPDX-License-Identifier: GPL-2.0-only
#include "linkweir-dscp-filter.h"

#include "ns3/abort.h"
#include "ns3/queue-item.h"

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(LinkweirDscpFilter);

TypeId
LinkweirDscpFilter::GetTypeId()
{
    static TypeId tid = TypeId("ns3::LinkweirDscpFilter")
                            .SetParent<PacketFilter>()
                            .SetGroupName("Linkweir")
                            .AddConstructor<LinkweirDscpFilter>();
    return tid;
}

LinkweirDscpFilter::LinkweirDscpFilter()
{
    m_classOf.fill(int32_t{PF_NO_MATCH}); // a copy: ns-3 declares the constant but does not define it
}

void
LinkweirDscpFilter::SetClass(uint8_t dscp, uint32_t queue)
{
    NS_ABORT_MSG_IF(dscp >= m_classOf.size(),
                    "LinkweirDscpFilter: a code point is 0 .. 63, not " << +dscp
                                                                         << "; a DS field is four times its code point");
    m_classOf[dscp] = static_cast<int32_t>(queue);
}

bool
LinkweirDscpFilter::CheckProtocol(Ptr<QueueDiscItem> item) const
{
    uint8_t field = 0;
    return item->GetUint8Value(QueueItem::IP_DSFIELD, field);
}

int32_t
LinkweirDscpFilter::DoClassify(Ptr<QueueDiscItem> item) const
{
    uint8_t field = 0;
    item->GetUint8Value(QueueItem::IP_DSFIELD, field);
    return m_classOf[field >> 2];
}

} // namespace ns3
