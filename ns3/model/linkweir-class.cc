// SPDX-License-Identifier: GPL-2.0-only
#include "linkweir-class.h"

#include "linkweir-queue-disc.h"

#include "ns3/abort.h"
#include "ns3/string.h"
#include "ns3/trace-source-accessor.h"
#include "ns3/uinteger.h"

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(LinkweirClass);

/// Connects to one statistic of the policy; from then on the disc reads the statistics after each event.
class LinkweirStatisticAccessor : public TraceSourceAccessor
{
  public:
    /// \param index of the statistic in the policy's table
    explicit LinkweirStatisticAccessor(uint32_t index)
        : m_index(index)
    {
    }

    bool ConnectWithoutContext(ObjectBase* object, const CallbackBase& callback) const override
    {
        auto* value = Find(object);
        if (value)
        {
            value->ConnectWithoutContext(callback);
        }
        return value != nullptr;
    }

    bool Connect(ObjectBase* object, std::string context, const CallbackBase& callback) const override
    {
        auto* value = Find(object);
        if (value)
        {
            value->Connect(callback, context);
        }
        return value != nullptr;
    }

    bool DisconnectWithoutContext(ObjectBase* object, const CallbackBase& callback) const override
    {
        auto* value = Find(object);
        if (value)
        {
            value->DisconnectWithoutContext(callback);
        }
        return value != nullptr;
    }

    bool Disconnect(ObjectBase* object, std::string context, const CallbackBase& callback) const override
    {
        auto* value = Find(object);
        if (value)
        {
            value->Disconnect(callback, context);
        }
        return value != nullptr;
    }

  private:
    TracedValue<int64_t>* Find(ObjectBase* object) const
    {
        auto* queue = dynamic_cast<LinkweirClass*>(object);
        if (!queue)
        {
            return nullptr;
        }
        queue->m_observed.resize(queue->m_policy.nstats);
        if (queue->m_disc)
        {
            queue->m_disc->m_observing = true;
        }
        return &queue->m_observed[m_index];
    }

    uint32_t m_index; //!< in the policy's table
};

uint64_t
LinkweirClass::Stats::GetDropped() const
{
    uint64_t sum = 0;
    for (const auto packets : dropped)
    {
        sum += packets;
    }
    return sum;
}

Time
LinkweirClass::Stats::GetMeanSojourn() const
{
    return sentPackets ? NanoSeconds(sojourn.GetNanoSeconds() / static_cast<int64_t>(sentPackets)) : Time();
}

TypeId
LinkweirClass::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::LinkweirClass")
            .SetParent<Object>()
            .SetGroupName("Linkweir")
            .AddAttribute("Name",
                          "Name of the class in messages.",
                          StringValue(""),
                          MakeStringAccessor(&LinkweirClass::m_name),
                          MakeStringChecker())
            .AddAttribute("MaxPackets",
                          "Packets that may wait; further ones are dropped. A lower limit drops no packets that wait.",
                          UintegerValue(1000),
                          MakeUintegerAccessor(&LinkweirClass::m_maxPackets),
                          MakeUintegerChecker<uint32_t>(1))
            .AddAttribute("MaxBytes",
                          "Bytes that may wait; 0: no such limit.",
                          UintegerValue(0),
                          MakeUintegerAccessor(&LinkweirClass::m_maxBytes),
                          MakeUintegerChecker<uint64_t>())
            .AddAttribute("ChannelRate",
                          "Rate of this class's channel, for policies that weigh channels; 0 blocks the class; the default "
                          "is the rate of the link at the start.",
                          DataRateValue(DataRate(LW_UNSET)),
                          MakeDataRateAccessor(&LinkweirClass::SetChannelRate, &LinkweirClass::GetChannelRate),
                          MakeDataRateChecker())
            .AddTraceSource("Sent",
                            "A packet of the class leaves.",
                            MakeTraceSourceAccessor(&LinkweirClass::m_traceSent),
                            "ns3::QueueDiscItem::TracedCallback")
            .AddTraceSource("Drop",
                            "A packet of the class is dropped, and why.",
                            MakeTraceSourceAccessor(&LinkweirClass::m_traceDrop),
                            "ns3::LinkweirClass::DropTracedCallback")
            .AddTraceSource("Sojourn",
                            "How long a packet of the class that leaves has waited.",
                            MakeTraceSourceAccessor(&LinkweirClass::m_traceSojourn),
                            "ns3::Time::TracedCallback");
    return tid;
}

LinkweirClass::LinkweirClass(const lw_policy& policy)
    : LinkweirParameters(policy.qparams, policy.nqparams),
      m_policy(policy)
{
}

LinkweirClass::~LinkweirClass() = default;

std::string
LinkweirClass::GetName() const
{
    return m_name;
}

const LinkweirClass::Stats&
LinkweirClass::GetStats() const
{
    return m_stats;
}

uint32_t
LinkweirClass::GetNPackets() const
{
    return m_disc ? m_disc->GetQueue(m_index).backlog_pkts : 0;
}

uint64_t
LinkweirClass::GetNBytes() const
{
    return m_disc ? m_disc->GetQueue(m_index).backlog_bytes : 0;
}

int64_t
LinkweirClass::GetStatistic(const std::string& name) const
{
    NS_ABORT_MSG_IF(!m_disc, "LinkweirClass: a class has statistics once it was added to a queue disc");
    return m_disc->GetStatistic(m_index, name);
}

const char*
LinkweirClass::GetReason(Reason reason)
{
    static const char* const reasons[] = {"Linkweir: the class is full",
                                          "Linkweir: chosen by the policy at an arrival",
                                          "Linkweir: too old, made room for a packet",
                                          "Linkweir: dropped by the policy when leaving"};
    return reasons[reason];
}

void
LinkweirClass::DoDispose()
{
    m_disc = nullptr;
    Object::DoDispose();
}

bool
LinkweirClass::ParametersChanged()
{
    return !m_disc || m_disc->ParametersChanged();
}

void
LinkweirClass::AddStatistics(TypeId& tid, const lw_policy& policy)
{
    for (uint32_t i = 0; i < policy.nstats; i++)
    {
        tid.AddTraceSource(LinkweirCamelCase(policy.stats[i].name),
                           policy.stats[i].help,
                           Ptr<const TraceSourceAccessor>(new LinkweirStatisticAccessor(i), false),
                           "ns3::TracedValueCallback::Int64");
    }
}

void
LinkweirClass::SetChannelRate(DataRate rate)
{
    m_channelRate = rate.GetBitRate();
    NS_ABORT_MSG_IF(m_channelRate != LW_UNSET && m_channelRate > LW_MAX_RATE_BPS,
                    "LinkweirClass: ChannelRate = " << rate << " is above " << LW_MAX_RATE_BPS << " bit/s");
    if (m_disc && m_channelRate != LW_UNSET)
    {
        m_disc->SetChannelRates({{m_index, m_channelRate}});
    }
}

DataRate
LinkweirClass::GetChannelRate() const
{
    return DataRate(m_channelRate);
}

} // namespace ns3
