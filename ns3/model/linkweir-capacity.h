// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_CAPACITY_H
#define LINKWEIR_CAPACITY_H

#include "linkweir-queue-disc.h"

#include "ns3/data-rate.h"
#include "ns3/event-id.h"
#include "ns3/net-device.h"
#include "ns3/nstime.h"
#include "ns3/object.h"
#include "ns3/traced-value.h"

#include <string>
#include <vector>

namespace ns3
{

/**
 * \ingroup linkweir
 * \brief A capacity over time, which sets the rate of a device and reports it to a queue disc.
 *
 * It follows steps, a file that `linkweir trace export` writes, or a cosine. On a PointToPointNetDevice a change counts from
 * the next packet on and the rate cannot be 0; on a LinkweirNetDevice it counts at once and may be 0.
 */
class LinkweirCapacity : public Object
{
  public:
    /// A rate that holds from a time on.
    struct Step
    {
        Time from;     //!< since the start of a round, the first 0
        DataRate rate; //!< 0: an outage
    };

    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();
    LinkweirCapacity();
    ~LinkweirCapacity() override;

    /**
     * \param steps with increasing times, the first 0
     * \param period length of a round, after which the steps repeat; 0: the last one stays
     */
    void SetSteps(std::vector<Step> steps, Time period = Time());

    /// \param file that `linkweir trace export` wrote
    void Load(const std::string& file);

    /**
     * The capacity is mean * (1 + amplitude * cos(2 pi t / period)), in steps of the attribute Interval.
     * \param mean over a period
     * \param amplitude 0 .. 1, a part of the mean
     * \param period of the cosine
     */
    void SetCosine(DataRate mean, double amplitude, Time period);

    /**
     * From the start of the simulation on the device follows this capacity.
     * \param device whose attribute Capacity, or else DataRate, is set
     * \param disc to report to, or null
     */
    void Attach(Ptr<NetDevice> device, Ptr<LinkweirQueueDisc> disc = nullptr);

    /// \return the capacity at a time since the start, by which devices and discs go
    DataRate GetRate(Time t) const;

  protected:
    void DoDispose() override;

  private:
    void Follow();
    void Apply(DataRate rate);
    Time NextChange(Time t) const;

    std::vector<Step> m_steps;                 //!< of one round
    Time m_period;                             //!< length of a round; 0: no repetition
    Time m_interval;                           //!< width of steps of a cosine
    TracedValue<DataRate> m_rate;              //!< present capacity
    Ptr<NetDevice> m_device;                   //!< that follows
    Ptr<LinkweirQueueDisc> m_disc;             //!< that is told
    EventId m_change;                          //!< the next change
};

} // namespace ns3

#endif /* LINKWEIR_CAPACITY_H */
