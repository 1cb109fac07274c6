// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_DSCP_FILTER_H
#define LINKWEIR_DSCP_FILTER_H

#include "ns3/packet-filter.h"

#include <array>
#include <cstdint>

namespace ns3
{

/**
 * \ingroup linkweir
 * \brief Classifies IPv4 and IPv6 packets by their code point (RFC 2474).
 */
class LinkweirDscpFilter : public PacketFilter
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();
    LinkweirDscpFilter();

    /**
     * Put packets of a code point into a class.
     * \param dscp code point, 0 .. 63
     * \param queue index of the class, 0 the first
     */
    void SetClass(uint8_t dscp, uint32_t queue);

  private:
    bool CheckProtocol(Ptr<QueueDiscItem> item) const override;
    int32_t DoClassify(Ptr<QueueDiscItem> item) const override;

    std::array<int32_t, 64> m_classOf; //!< by code point; PF_NO_MATCH: none
};

} // namespace ns3

#endif /* LINKWEIR_DSCP_FILTER_H */
