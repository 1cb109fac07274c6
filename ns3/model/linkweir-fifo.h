// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_FIFO_H
#define LINKWEIR_FIFO_H

#include "ns3/queue-item.h"
#include "ns3/queue.h"

namespace ns3
{

/**
 * \ingroup linkweir
 * \brief The packets of one class in order of arrival, of which the policy may drop the first or the last.
 *
 * It has no limit of its own: LinkweirQueueDisc applies the limits of the class, because the policy may first drop expired
 * packets to make room.
 */
class LinkweirFifo : public Queue<QueueDiscItem>
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();
    LinkweirFifo();

    bool Enqueue(Ptr<QueueDiscItem> item) override;
    Ptr<QueueDiscItem> Dequeue() override;
    Ptr<QueueDiscItem> Remove() override;
    Ptr<const QueueDiscItem> Peek() const override;

    /**
     * Take the last packet, not the first.
     * \return the packet, or null if there is none
     */
    Ptr<QueueDiscItem> DequeueTail();

  private:
    NS_LOG_TEMPLATE_DECLARE; //!< redefinition of the log component
};

} // namespace ns3

#endif /* LINKWEIR_FIFO_H */
