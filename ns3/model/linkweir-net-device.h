// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_NET_DEVICE_H
#define LINKWEIR_NET_DEVICE_H

#include "ns3/data-rate.h"
#include "ns3/event-id.h"
#include "ns3/nstime.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/traced-value.h"

#include <deque>

namespace ns3
{

/**
 * \ingroup linkweir
 * \brief A point-to-point device whose capacity may change while it sends a packet, and may be 0.
 *
 * PointToPointNetDevice fixes the duration of a packet when it starts, and divides by its rate. Here a packet has left when
 * the capacity since its start adds up to its bits. Its capacity is the attribute Capacity; the inherited DataRate has no
 * meaning, because the packet is handed to the inherited device, whose rate is practically infinite, when it has left. So the
 * inherited traces of a packet's start and end both fire at its end.
 */
class LinkweirNetDevice : public PointToPointNetDevice
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();
    LinkweirNetDevice();
    ~LinkweirNetDevice() override;

    /// \param capacity from now on; 0: nothing can be sent
    void SetCapacity(DataRate capacity);
    /// \return the present capacity
    DataRate GetCapacity() const;

    bool Send(Ptr<Packet> packet, const Address& destination, uint16_t protocol) override;

  protected:
    void NotifyConstructionCompleted() override;

  private:
    /// A packet as it was given to Send().
    struct Outgoing
    {
        Ptr<Packet> packet;  //!< without the header of the link
        Address destination; //!< of the next hop
        uint16_t protocol;   //!< of layer 3
    };

    void Start();
    void Settle();
    void Arrange();
    void Finish();

    TracedValue<DataRate> m_capacity; //!< present capacity
    uint32_t m_overhead{2};           //!< bytes that the link adds to each packet
    uint32_t m_ring{1};               //!< packets that the device holds
    std::deque<Outgoing> m_held;      //!< the first is being sent
    uint64_t m_remaining{0};          //!< of the first: bits times 10^9
    Time m_settled;                   //!< until when the remainder is up to date
    EventId m_end;                    //!< the first packet has left
};

} // namespace ns3

#endif /* LINKWEIR_NET_DEVICE_H */
