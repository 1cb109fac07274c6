// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_CLASS_H
#define LINKWEIR_CLASS_H

#include "linkweir-parameter.h"

#include "ns3/data-rate.h"
#include "ns3/nstime.h"
#include "ns3/object.h"
#include "ns3/queue-item.h"
#include "ns3/traced-callback.h"
#include "ns3/traced-value.h"

#include <array>
#include <deque>

namespace ns3
{

class LinkweirQueueDisc;

/**
 * \ingroup linkweir
 * \brief One class of a LinkweirQueueDisc: its parameters, limits and statistics.
 *
 * Each policy has a subclass with an attribute for each of its parameters of a class, such as ns3::LinkweirPssClass.
 */
class LinkweirClass : public Object, public LinkweirParameters
{
  public:
    /// Why packets of the class were dropped.
    enum Reason
    {
        LIMIT,   //!< the class was full
        VICTIM,  //!< the policy dropped it when a packet arrived
        EXPIRED, //!< it made room for a packet, as it was too old
        LEAVING, //!< the policy dropped it when it would have left
        REASONS  //!< how many
    };

    /// What happened to the packets of the class.
    struct Stats
    {
        uint64_t receivedPackets{0};                //!< that arrived, whether or not they were dropped
        uint64_t receivedBytes{0};                  //!< of these, as the policy counts them
        uint64_t sentPackets{0};                    //!< that left
        uint64_t sentBytes{0};                      //!< of these
        std::array<uint64_t, REASONS> dropped{};    //!< packets by reason
        uint64_t droppedBytes{0};                   //!< for all reasons
        uint64_t markedPackets{0};                  //!< with Congestion Experienced
        Time sojourn;                               //!< of all packets that left, added up
        Time longestSojourn;                        //!< of any packet that left

        /// \return packets dropped for all reasons
        uint64_t GetDropped() const;
        /// \return the mean sojourn of the packets that left, 0 if there are none
        Time GetMeanSojourn() const;
    };

    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();

    /// \param policy whose class it is
    explicit LinkweirClass(const lw_policy& policy);
    ~LinkweirClass() override;

    /// \return its name in messages
    std::string GetName() const;
    /// \return what happened to its packets
    const Stats& GetStats() const;
    /// \return packets that wait
    uint32_t GetNPackets() const;
    /// \return bytes that wait, as the policy counts them
    uint64_t GetNBytes() const;
    /**
     * \param name of a statistic of the policy, such as `credit`
     * \return its present value
     */
    int64_t GetStatistic(const std::string& name) const;

    /**
     * \param reason why a packet was dropped
     * \return the reason in the statistics of the queue disc
     */
    static const char* GetReason(Reason reason);

    /**
     * TracedCallback signature for drops.
     * \param item that was dropped
     * \param reason of GetReason()
     */
    typedef void (*DropTracedCallback)(Ptr<const QueueDiscItem> item, const char* reason);

  protected:
    void DoDispose() override;
    bool ParametersChanged() override;

    /**
     * Add a trace source for each statistic of a policy.
     * \param tid of the subclass
     * \param policy with the statistics
     */
    static void AddStatistics(TypeId& tid, const lw_policy& policy);

  private:
    friend class LinkweirQueueDisc;
    friend class LinkweirStatisticAccessor;

    void SetChannelRate(DataRate rate);
    DataRate GetChannelRate() const;

    const lw_policy& m_policy;                             //!< whose class it is
    LinkweirQueueDisc* m_disc{nullptr};                    //!< that it was added to
    uint32_t m_index{0};                                   //!< its place there
    std::string m_name;                                    //!< in messages
    uint32_t m_maxPackets{0};                              //!< that may wait
    uint64_t m_maxBytes{0};                                //!< that may wait; 0: no such limit
    uint64_t m_channelRate{LW_UNSET};                      //!< bit/s; LW_UNSET: the link's
    Stats m_stats;                                         //!< what happened to its packets
    std::deque<TracedValue<int64_t>> m_observed;           //!< statistics of the policy
    TracedCallback<Ptr<const QueueDiscItem>> m_traceSent;  //!< a packet left
    TracedCallback<Ptr<const QueueDiscItem>, const char*> m_traceDrop; //!< a packet was dropped
    TracedCallback<Time> m_traceSojourn;                   //!< of a packet that left
};

} // namespace ns3

#endif /* LINKWEIR_CLASS_H */
