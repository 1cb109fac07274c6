// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_TURNS_H
#define LINKWEIR_TURNS_H

#include "linkweir-helper.h"

#include "ns3/simple-ref-count.h"

#include <algorithm>
#include <vector>


namespace ns3
{

/**
 * \ingroup linkweir
 * \brief Says whose turn it is among queues that another module keeps, such as those of a satellite's link layer.
 *
 * Each queue that has bytes has a token in a queue disc, and the next token that leaves the disc names the queue. A token is
 * as long as the bytes that wait, up to a packet: that is what the policy charges for the turn.
 */
class LinkweirTurns : public SimpleRefCount<LinkweirTurns>
{
  public:
    /**
     * \param helper with the policy and a class for each queue, in order; its policy must not drop
     * \param mostBytes what is sent in a turn, at most
     */
    explicit LinkweirTurns(const LinkweirHelper& helper, uint32_t mostBytes = 1500);
    ~LinkweirTurns();

    /**
     * \param waiting bytes that wait in each queue
     * \return the queue whose turn it is; their number if nothing waits
     */
    uint32_t Next(const std::vector<uint32_t>& waiting);

    /**
     * Of objects with GetFlowId() and GetBufferedBytes(), the first one of the flow whose turn it is. Flows beyond the last class
     * share that class.
     * \param begin of pointers to such objects
     * \param end of them
     * \return its place, or the end if nothing waits
     */
    template <typename Iterator>
    Iterator Next(Iterator begin, Iterator end)
    {
        std::vector<uint32_t> waiting(m_disc->GetNClasses());
        std::vector<Iterator> first(waiting.size(), end);
        for (auto it = begin; it != end; ++it)
        {
            const auto queue = std::min<std::size_t>((*it)->GetFlowId(), waiting.size() - 1);
            if ((*it)->GetBufferedBytes() && first[queue] == end)
            {
                first[queue] = it;
                waiting[queue] = (*it)->GetBufferedBytes();
            }
        }
        const auto queue = Next(waiting);
        return queue < first.size() ? first[queue] : end;
    }

  private:
    Ptr<LinkweirQueueDisc> m_disc; //!< that holds a token for each queue with bytes
    uint32_t m_mostBytes;          //!< length of a token, at most
};

} // namespace ns3

#endif /* LINKWEIR_TURNS_H */
