// SPDX-License-Identifier: GPL-2.0-only
//
// The order of calls is that of linkweir/policy.h. Three rules of ns-3's queue discs decide the rest:
//
//   * QueueDisc keeps its statistics itself and learns of packets from internal queues only, so packets wait there.
//   * Enqueue() compares its counters after each call, so a newcomer that the policy gives up must never have been in an
//     internal queue: victim() is asked with the newcomer in the view only.
//   * Enqueue() stamps a packet after DoEnqueue(), and an internal queue computes the sojourn from this stamp, so a packet is
//     stamped before it enters its queue.

#include "linkweir-queue-disc.h"

#include "ns3/abort.h"
#include "ns3/object-vector.h"
#include "ns3/simulator.h"
#include "ns3/socket.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("LinkweirQueueDisc");
NS_OBJECT_ENSURE_REGISTERED(LinkweirQueueDisc);

namespace
{

constexpr uint64_t ANY_RATE_BPS = 1'000'000'000; // of channels, while the rate of the link is not known
constexpr uint8_t ECN_MASK = 3;
constexpr uint32_t WORD_BYTES = 8;

bool
CanBeMarked(const QueueDiscItem& item)
{
    uint8_t field = 0;
    return item.GetUint8Value(QueueItem::IP_DSFIELD, field) && (field & ECN_MASK);
}

uint64_t
NowNs()
{
    return static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
}

} // namespace

// ---- settings ----

TypeId
LinkweirQueueDisc::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::LinkweirQueueDisc")
            .SetParent<QueueDisc>()
            .SetGroupName("Linkweir")
            .AddAttribute("LinkRate",
                          "Capacity of the link as the policy knows it; 0 before the start: not known, later: an outage.",
                          DataRateValue(DataRate(0)),
                          MakeDataRateAccessor(&LinkweirQueueDisc::SetLinkRateAttribute, &LinkweirQueueDisc::GetLinkRate),
                          MakeDataRateChecker())
            .AddAttribute("Overhead",
                          "Bytes that the link adds to each packet, such as 2 of PPP, for the policy's arithmetic.",
                          UintegerValue(0),
                          MakeUintegerAccessor(&LinkweirQueueDisc::m_overhead),
                          MakeUintegerChecker<uint32_t>(0, 65535))
            .AddAttribute("Record",
                          "File that receives all calls of the policy, in the format of vectors/README.md; empty: none.",
                          StringValue(""),
                          MakeStringAccessor(&LinkweirQueueDisc::m_recordFile),
                          MakeStringChecker())
            .AddAttribute("ClassList",
                          "The classes.",
                          ObjectVectorValue(),
                          MakeObjectVectorAccessor(&LinkweirQueueDisc::m_classList),
                          MakeObjectVectorChecker<LinkweirClass>());
    return tid;
}

LinkweirQueueDisc::LinkweirQueueDisc(const lw_policy& policy)
    : QueueDisc(QueueDiscSizePolicy::NO_LIMITS),
      LinkweirParameters(policy.params, policy.nparams),
      m_policy(policy)
{
}

LinkweirQueueDisc::~LinkweirQueueDisc() = default;

void
LinkweirQueueDisc::DoDispose()
{
    m_wakeUp.Cancel();
    for (const auto& queue : m_classList)
    {
        queue->Dispose();
    }
    m_classList.clear();
    m_fifos.clear();
    m_record = nullptr;
    m_file.reset();
    QueueDisc::DoDispose();
}

uint32_t
LinkweirQueueDisc::AddClass(Ptr<LinkweirClass> queue)
{
    NS_ABORT_MSG_IF(m_started, GetInstanceTypeId().GetName() << ": classes are added before the simulation starts");
    NS_ABORT_MSG_IF(&queue->m_policy != &m_policy,
                    GetInstanceTypeId().GetName() << ": a class of policy " << queue->m_policy.name
                                                  << " cannot be added; CreateClass() makes one of " << m_policy.name);
    NS_ABORT_MSG_IF(queue->m_disc, GetInstanceTypeId().GetName() << ": the class was added to a queue disc before");
    const auto index = static_cast<uint32_t>(m_classList.size());
    queue->m_disc = this;
    queue->m_index = index;
    if (queue->m_name.empty())
    {
        queue->m_name = "class " + std::to_string(index);
    }
    m_observing = m_observing || !queue->m_observed.empty();
    m_classList.push_back(queue);
    m_fifos.push_back(CreateObject<LinkweirFifo>());
    m_queues.push_back({});
    AddInternalQueue(m_fifos.back());
    return index;
}

uint32_t
LinkweirQueueDisc::GetNClasses() const
{
    return static_cast<uint32_t>(m_classList.size());
}

Ptr<LinkweirClass>
LinkweirQueueDisc::GetClass(uint32_t index) const
{
    return m_classList.at(index);
}

const lw_queue&
LinkweirQueueDisc::GetQueue(uint32_t index) const
{
    return m_queues.at(index);
}

std::vector<uint64_t>
LinkweirQueueDisc::Rows() const
{
    std::vector<uint64_t> rows;
    for (const auto& queue : m_classList)
    {
        rows.insert(rows.end(), queue->GetParameters().begin(), queue->GetParameters().end());
    }
    return rows;
}

bool
LinkweirQueueDisc::Accepts(const std::vector<uint64_t>& rows, std::string& why) const
{
    lw_fault fault{};
    lw_view view = m_view;
    view.link_bps = std::max(m_largestRate, m_view.link_bps);
    view.queues = m_queues.data();
    view.nqueues = GetNClasses();
    if (!m_policy.check || m_policy.check(&view, GetParameters().data(), rows.data(), &fault))
    {
        return true;
    }
    std::ostringstream text;
    text << GetInstanceTypeId().GetName();
    if (fault.queue != LW_NONE)
    {
        text << ", class " << fault.queue << " \"" << m_classList.at(fault.queue)->GetName() << '"';
    }
    text << ", " << LinkweirCamelCase(fault.param) << ": " << fault.what;
    why = text.str();
    return false;
}

bool
LinkweirQueueDisc::CheckSettings(std::string& why) const
{
    if (m_classList.empty() || m_classList.size() > m_policy.max_queues)
    {
        why = GetInstanceTypeId().GetName() + ": must have 1 .. " + std::to_string(m_policy.max_queues) +
              " classes, which AddClass() or LinkweirHelper::AddClass() add, not " + std::to_string(m_classList.size());
        return false;
    }
    return Accepts(Rows(), why);
}

bool
LinkweirQueueDisc::CheckConfig()
{
    NS_ABORT_MSG_IF(GetNQueueDiscClasses() > 0,
                    GetInstanceTypeId().GetName() << ": child queue discs are not supported, as a policy must see each packet; "
                                                     "add classes with AddClass()");
    NS_ABORT_MSG_IF(GetNInternalQueues() != m_classList.size(),
                    GetInstanceTypeId().GetName() << ": internal queues are made by AddClass(); add none yourself");
    std::string why;
    if (!CheckSettings(why))
    {
        NS_FATAL_ERROR(why);
    }
    return true;
}

void
LinkweirQueueDisc::InitializeParams()
{
    m_rows = Rows();
    m_largestRate = std::max(m_largestRate, m_view.link_bps);
    for (uint32_t q = 0; q < GetNClasses(); q++)
    {
        const auto own = m_classList[q]->m_channelRate;
        m_queues[q].rate_bps = own != LW_UNSET ? own : m_view.link_bps ? m_view.link_bps : ANY_RATE_BPS;
    }
    m_view.queues = m_queues.data();
    m_view.nqueues = GetNClasses();
    UpdateClock();
    m_state.resize(m_policy.state_size(m_view.nqueues, GetParameters().data()) / WORD_BYTES + 1);
    m_policy.init(m_state.data(), &m_view, GetParameters().data(), m_rows.data());
    m_started = true;
    RecordStart();
    Observe();
}

bool
LinkweirQueueDisc::ParametersChanged()
{
    if (!m_started || m_held)
    {
        return true;
    }
    const auto rows = Rows();
    std::string why;
    if (!Accepts(rows, why))
    {
        std::cerr << "linkweir: " << why << std::endl;
        return false;
    }
    m_rows = rows;
    UpdateClock();
    if (m_policy.change)
    {
        m_policy.change(m_state.data(), &m_view, GetParameters().data(), m_rows.data());
    }
    if (m_record)
    {
        *m_record << "at " << m_view.now_ns << " change";
        RecordSettings(*m_record, true);
        *m_record << '\n';
    }
    Observe();
    return true;
}

void
LinkweirQueueDisc::BeginChange()
{
    m_held = true;
}

void
LinkweirQueueDisc::EndChange()
{
    m_held = false;
    std::string why;
    if (m_started && !Accepts(Rows(), why))
    {
        NS_FATAL_ERROR(why);
    }
    ParametersChanged();
}

void
LinkweirQueueDisc::SetLinkRateAttribute(DataRate rate)
{
    NS_ABORT_MSG_IF(rate.GetBitRate() > LW_MAX_RATE_BPS,
                    "LinkweirQueueDisc: LinkRate = " << rate << " is above " << LW_MAX_RATE_BPS << " bit/s");
    if (!m_started)
    {
        m_view.link_bps = rate.GetBitRate();
        return;
    }
    SetLinkRate(rate);
}

void
LinkweirQueueDisc::SetLinkRate(DataRate rate)
{
    if (!m_started)
    {
        SetLinkRateAttribute(rate);
        return;
    }
    UpdateClock();
    m_view.link_bps = rate.GetBitRate();
    m_largestRate = std::max(m_largestRate, m_view.link_bps);
    if (m_record)
    {
        *m_record << "at " << m_view.now_ns << " link " << m_view.link_bps << '\n';
    }
    Rated();
}

DataRate
LinkweirQueueDisc::GetLinkRate() const
{
    return DataRate(m_view.link_bps);
}

void
LinkweirQueueDisc::SetChannelRates(const std::vector<std::pair<uint32_t, uint64_t>>& rates)
{
    for (const auto& [queue, rate] : rates)
    {
        NS_ABORT_MSG_IF(rate > LW_MAX_RATE_BPS, "LinkweirQueueDisc: a rate of " << rate << " bit/s is above " << LW_MAX_RATE_BPS);
        m_classList.at(queue)->m_channelRate = rate;
    }
    if (!m_started || rates.empty())
    {
        return;
    }
    UpdateClock();
    for (const auto& [queue, rate] : rates)
    {
        m_queues[queue].rate_bps = rate;
    }
    if (m_record)
    {
        *m_record << "at " << m_view.now_ns << " rate";
        for (const auto& [queue, rate] : rates)
        {
            *m_record << ' ' << queue << ' ' << rate;
        }
        *m_record << '\n';
    }
    Rated();
}

void
LinkweirQueueDisc::Rated()
{
    if (m_policy.rated)
    {
        m_policy.rated(m_state.data(), &m_view);
    }
    Observe();
    WakeUp();
}

void
LinkweirQueueDisc::WakeUp()
{
    // only the root has a device to send to; a child is asked by its parent
    if (GetSendCallback() && GetNPackets() && m_wakeUp.IsExpired())
    {
        m_wakeUp = Simulator::ScheduleNow(&LinkweirQueueDisc::Run, this);
    }
}

// ---- the view ----

void
LinkweirQueueDisc::UpdateClock()
{
    m_view.now_ns = NowNs();
}

uint32_t
LinkweirQueueDisc::BytesOf(const QueueDiscItem& item) const
{
    return std::min(item.GetSize() + m_overhead, LW_MAX_PACKET_BYTES - 1);
}

/// The view after a packet of `bytes` has left a queue.
void
LinkweirQueueDisc::Show(uint32_t queue, uint32_t bytes)
{
    auto& shown = m_queues[queue];
    shown.backlog_pkts--;
    shown.backlog_bytes -= bytes;
    if (const auto head = m_fifos[queue]->Peek())
    {
        shown.head_bytes = BytesOf(*head);
        shown.head_arrival_ns = static_cast<uint64_t>(head->GetTimeStamp().GetNanoSeconds());
    }
}

Ptr<QueueDiscItem>
LinkweirQueueDisc::Take(uint32_t queue, bool head)
{
    auto item = head ? m_fifos[queue]->Dequeue() : m_fifos[queue]->DequeueTail();
    Show(queue, BytesOf(*item));
    return item;
}

uint32_t
LinkweirQueueDisc::GetNextClass()
{
    uint64_t retry = LW_NEVER;
    UpdateClock();
    const auto answer = m_policy.pick(m_state.data(), &m_view, &retry);
    if (m_record)
    {
        *m_record << "at " << m_view.now_ns << " pick " << (answer == LW_NONE ? "none" : std::to_string(answer)) << '\n';
    }
    return answer;
}

int64_t
LinkweirQueueDisc::GetStatistic(uint32_t index, const std::string& name) const
{
    std::vector<int64_t> values(m_policy.nstats);
    NS_ABORT_MSG_IF(index >= GetNClasses(), GetInstanceTypeId().GetName() << ": there is no class " << index);
    for (uint32_t i = 0; i < m_policy.nstats; i++)
    {
        if (name == m_policy.stats[i].name)
        {
            lw_view view = m_view;
            view.now_ns = NowNs();
            m_policy.observe(m_state.data(), &view, index, values.data());
            return values[i];
        }
    }
    NS_FATAL_ERROR(GetInstanceTypeId().GetName() << ": there is no statistic \"" << name << '"');
    return 0;
}

void
LinkweirQueueDisc::Observe()
{
    if (!m_observing || !m_policy.observe)
    {
        return;
    }
    std::vector<int64_t> values(m_policy.nstats);
    for (uint32_t q = 0; q < GetNClasses(); q++)
    {
        auto& observed = m_classList[q]->m_observed;
        if (!observed.empty())
        {
            m_policy.observe(m_state.data(), &m_view, q, values.data());
            std::copy(values.begin(), values.end(), observed.begin());
        }
    }
}

// ---- arrivals ----

uint32_t
LinkweirQueueDisc::ClassOf(Ptr<QueueDiscItem> item)
{
    const auto last = GetNClasses() - 1;
    if (last == 0)
    {
        return 0;
    }
    const auto found = Classify(item);
    if (found >= 0 && static_cast<uint32_t>(found) <= last)
    {
        return static_cast<uint32_t>(found);
    }
    // ns-3's sockets derive the priority of IP packets from their DS field, which a filter for code points may not know
    uint8_t field = 0;
    SocketPriorityTag tag;
    if (!(item->GetUint8Value(QueueItem::IP_DSFIELD, field) && field >> 2) && item->GetPacket()->PeekPacketTag(tag) &&
        tag.GetPriority() > 0 && tag.GetPriority() - 1U <= last)
    {
        return tag.GetPriority() - 1U;
    }
    return last;
}

bool
LinkweirQueueDisc::HasRoom(uint32_t queue, uint32_t bytes) const
{
    const auto& shown = m_queues[queue];
    const auto& limits = *m_classList[queue];
    return shown.backlog_pkts < limits.m_maxPackets && (!limits.m_maxBytes || shown.backlog_bytes + bytes <= limits.m_maxBytes);
}

/// Drops expired packets of a full class, at most LW_MOST_DROPS.
bool
LinkweirQueueDisc::MakeRoom(uint32_t queue, uint32_t bytes)
{
    for (uint32_t drops = 0; !HasRoom(queue, bytes); drops++)
    {
        if (drops == LW_MOST_DROPS || !m_policy.expired || !m_queues[queue].backlog_pkts)
        {
            return false;
        }
        const bool expired = m_policy.expired(m_state.data(), &m_view, queue);
        if (m_record)
        {
            *m_record << "at " << m_view.now_ns << " expired " << queue << (expired ? " yes\n" : " no\n");
        }
        if (!expired)
        {
            return false;
        }
        Drop(queue, true, LinkweirClass::EXPIRED);
    }
    return true;
}

void
LinkweirQueueDisc::Drop(uint32_t queue, bool head, LinkweirClass::Reason reason)
{
    const auto item = Take(queue, head);
    const auto bytes = BytesOf(*item);
    auto& owner = *m_classList[queue];
    owner.m_stats.dropped[reason]++;
    owner.m_stats.droppedBytes += bytes;
    DropAfterDequeue(item, LinkweirClass::GetReason(reason));
    owner.m_traceDrop(item, LinkweirClass::GetReason(reason));
    if (m_policy.dropped)
    {
        m_policy.dropped(m_state.data(), &m_view, queue, bytes);
    }
}

void
LinkweirQueueDisc::DropNewcomer(uint32_t queue, Ptr<QueueDiscItem> item, uint32_t bytes, LinkweirClass::Reason reason)
{
    auto& owner = *m_classList[queue];
    owner.m_stats.dropped[reason]++;
    owner.m_stats.droppedBytes += bytes;
    DropBeforeEnqueue(item, LinkweirClass::GetReason(reason));
    owner.m_traceDrop(item, LinkweirClass::GetReason(reason));
}

/// Drops what victim() names; false if it named the newcomer, which only the view shows yet.
bool
LinkweirQueueDisc::DropVictims(uint32_t queue, Ptr<QueueDiscItem> item, uint32_t bytes)
{
    bool stays = true;
    for (uint32_t drops = 0; drops < LW_MOST_DROPS; drops++)
    {
        const auto answer = m_policy.victim(m_state.data(), &m_view, queue, bytes);
        if (answer == LW_NONE)
        {
            break;
        }
        const bool head = answer & LW_FROM_HEAD;
        const auto victim = answer & ~LW_FROM_HEAD;
        NS_ABORT_MSG_IF(victim >= m_view.nqueues || !m_queues[victim].backlog_pkts,
                        GetInstanceTypeId().GetName() << ": the policy drops from class " << victim << ", which has no packet");
        if (m_record)
        {
            *m_record << (drops ? " " : " drops ") << (head ? "h" : "") << victim;
        }
        if (stays && victim == queue && (!head || m_queues[queue].backlog_pkts == 1))
        {
            stays = false;
            m_newcomer = false;
            Show(queue, bytes);
            DropNewcomer(queue, item, bytes, LinkweirClass::VICTIM);
            if (m_policy.dropped)
            {
                m_policy.dropped(m_state.data(), &m_view, queue, bytes);
            }
        }
        else
        {
            Drop(victim, head, LinkweirClass::VICTIM);
            if (stays && victim == queue && m_queues[queue].backlog_pkts == 1)
            {
                // the newcomer became the head
                m_queues[queue].head_bytes = bytes;
                m_queues[queue].head_arrival_ns = m_view.now_ns;
            }
        }
    }
    return stays;
}

bool
LinkweirQueueDisc::DoEnqueue(Ptr<QueueDiscItem> item)
{
    const auto queue = ClassOf(item);
    const auto bytes = BytesOf(*item);
    auto& shown = m_queues[queue];
    auto& owner = *m_classList[queue];

    UpdateClock();
    owner.m_stats.receivedPackets++;
    owner.m_stats.receivedBytes += bytes;
    if (!HasRoom(queue, bytes) && !MakeRoom(queue, bytes))
    {
        DropNewcomer(queue, item, bytes, LinkweirClass::LIMIT);
        Observe();
        return false;
    }
    item->SetTimeStamp(Simulator::Now());
    if (!shown.backlog_pkts++)
    {
        shown.head_arrival_ns = m_view.now_ns;
        shown.head_bytes = bytes;
    }
    shown.backlog_bytes += bytes;
    if (m_record)
    {
        *m_record << "at " << m_view.now_ns << " enqueue " << queue << ' ' << bytes;
    }
    if (m_policy.enqueued)
    {
        m_policy.enqueued(m_state.data(), &m_view, queue, bytes);
    }
    const bool stays = !m_policy.victim || DropVictims(queue, item, bytes);
    if (m_record)
    {
        *m_record << '\n';
    }
    if (stays)
    {
        m_fifos[queue]->Enqueue(item);
    }
    Observe();
    return stays;
}

// ---- departures ----

Ptr<QueueDiscItem>
LinkweirQueueDisc::Leave(uint32_t queue, bool mark)
{
    auto item = Take(queue, true);
    const auto bytes = BytesOf(*item);
    auto& owner = *m_classList[queue];
    const auto sojourn = Simulator::Now() - item->GetTimeStamp();

    owner.m_stats.sentPackets++;
    owner.m_stats.sentBytes += bytes;
    owner.m_stats.sojourn += sojourn;
    owner.m_stats.longestSojourn = std::max(owner.m_stats.longestSojourn, sojourn);
    if (mark && Mark(item, LinkweirClass::GetReason(LinkweirClass::LEAVING)))
    {
        owner.m_stats.markedPackets++;
    }
    if (m_record)
    {
        *m_record << "at " << m_view.now_ns << " send " << queue << '\n';
    }
    if (m_policy.sent)
    {
        m_policy.sent(m_state.data(), &m_view, queue, bytes);
    }
    Observe();
    owner.m_traceSojourn(sojourn);
    owner.m_traceSent(item);
    return item;
}

Ptr<QueueDiscItem>
LinkweirQueueDisc::DoDequeue()
{
    UpdateClock();
    for (;;)
    {
        uint64_t retry = LW_NEVER;
        const auto queue = m_policy.pick(m_state.data(), &m_view, &retry);
        if (m_record)
        {
            *m_record << "at " << m_view.now_ns << " pick " << (queue == LW_NONE ? "none" : std::to_string(queue)) << '\n';
        }
        if (queue == LW_NONE)
        {
            if (retry != LW_NEVER && GetSendCallback() && m_wakeUp.IsExpired())
            {
                const auto wait = NanoSeconds(retry > m_view.now_ns ? retry - m_view.now_ns : 0);
                m_wakeUp = Simulator::Schedule(wait, &LinkweirQueueDisc::Run, this);
            }
            Observe();
            return nullptr;
        }
        if (!m_policy.leaving)
        {
            return Leave(queue, false);
        }
        const bool markable = CanBeMarked(*m_fifos[queue]->Peek());
        const auto verdict = m_policy.leaving(m_state.data(), &m_view, queue, markable);
        if (m_record)
        {
            static const char* const words[] = {"pass", "mark", "drop"};
            *m_record << "at " << m_view.now_ns << " verdict " << words[verdict] << (markable ? " ecn\n" : "\n");
        }
        if (verdict != LW_DROP)
        {
            return Leave(queue, verdict == LW_MARK);
        }
        // no simulated time passes, so this repeats until a packet may leave
        Drop(queue, true, LinkweirClass::LEAVING);
    }
}

// ---- recording ----

void
LinkweirQueueDisc::RecordTo(std::ostream& out)
{
    NS_ABORT_MSG_IF(m_started, GetInstanceTypeId().GetName() << ": a recording begins before the simulation starts");
    m_record = &out;
}

void
LinkweirQueueDisc::RecordSettings(std::ostream& out, bool oneLine) const
{
    const auto write = [&out](const lw_param* table, const uint64_t* values, uint32_t count) {
        for (uint32_t i = 0; i < count; i++)
        {
            out << ' ' << table[i].name << '=';
            if (values[i] == LW_UNSET)
            {
                out << "unset";
            }
            else if (table[i].unit == LW_CHOICE)
            {
                out << LinkweirPrint(table[i], values[i]);
            }
            else
            {
                out << values[i];
            }
        }
    };
    if (m_policy.nparams)
    {
        out << (oneLine ? "" : "set");
        write(m_policy.params, GetParameters().data(), m_policy.nparams);
        out << (oneLine ? "" : "\n");
    }
    for (uint32_t q = 0; q < GetNClasses() && m_policy.nqparams; q++)
    {
        out << (oneLine ? " queue " : "queue ") << q;
        write(m_policy.qparams, m_rows.data() + std::size_t{q} * m_policy.nqparams, m_policy.nqparams);
        out << (oneLine ? "" : "\n");
    }
}

void
LinkweirQueueDisc::RecordStart()
{
    if (!m_recordFile.empty())
    {
        m_file = std::make_unique<std::ofstream>(m_recordFile);
        NS_ABORT_MSG_IF(!*m_file, GetInstanceTypeId().GetName() << ", Record: cannot write " << m_recordFile);
        m_record = m_file.get();
    }
    if (!m_record)
    {
        return;
    }
    *m_record << "linkweir-vectors 1\npolicy " << m_policy.name << "\nqueues " << m_view.nqueues << "\nlink "
              << m_view.link_bps << '\n';
    RecordSettings(*m_record, false);
    *m_record << "at " << m_view.now_ns << " rate";
    for (uint32_t q = 0; q < m_view.nqueues; q++)
    {
        *m_record << ' ' << q << ' ' << m_queues[q].rate_bps;
    }
    *m_record << "\nat " << m_view.now_ns << " init\n";
}

} // namespace ns3
