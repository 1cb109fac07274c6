// SPDX-License-Identifier: GPL-2.0-only
#include "linkweir-turns.h"

#include "ns3/packet-filter.h"
#include "ns3/packet.h"

namespace ns3
{

namespace
{

/// Stands for what waits in a queue.
class Token : public QueueDiscItem
{
  public:
    Token(uint32_t queue, uint32_t bytes)
        : QueueDiscItem(Create<Packet>(bytes), Address(), 0),
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

    const uint32_t m_queue; //!< the queue
};

class TokenFilter : public PacketFilter
{
  private:
    bool CheckProtocol(Ptr<QueueDiscItem> item) const override
    {
        return DynamicCast<Token>(item) ? true : false;
    }

    int32_t DoClassify(Ptr<QueueDiscItem> item) const override
    {
        return static_cast<int32_t>(static_cast<const Token&>(*item).m_queue);
    }
};

} // namespace

LinkweirTurns::LinkweirTurns(const LinkweirHelper& helper, uint32_t mostBytes)
    : m_disc(helper.Create()),
      m_mostBytes(mostBytes)
{
    m_disc->AddPacketFilter(CreateObject<TokenFilter>());
    m_disc->Initialize();
}

LinkweirTurns::~LinkweirTurns()
{
    m_disc->Dispose();
}

uint32_t
LinkweirTurns::Next(const std::vector<uint32_t>& waiting)
{
    for (uint32_t q = 0; q < waiting.size(); q++)
    {
        if (waiting[q] && !m_disc->GetClass(q)->GetNPackets())
        {
            m_disc->Enqueue(Create<Token>(q, std::min(waiting[q], m_mostBytes)));
        }
    }
    while (const auto token = m_disc->Dequeue())
    {
        const auto queue = static_cast<const Token&>(*token).m_queue;
        if (queue < waiting.size() && waiting[queue])
        {
            return queue;
        }
        // the queue became empty although it was not its turn
    }
    return static_cast<uint32_t>(waiting.size());
}

} // namespace ns3
