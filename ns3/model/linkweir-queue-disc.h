// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_QUEUE_DISC_H
#define LINKWEIR_QUEUE_DISC_H

#include "linkweir-class.h"
#include "linkweir-fifo.h"
#include "linkweir-parameter.h"

#include "ns3/data-rate.h"
#include "ns3/event-id.h"
#include "ns3/queue-disc.h"

#include <memory>
#include <ostream>
#include <utility>
#include <vector>

namespace ns3
{

/**
 * \defgroup linkweir Linkweir
 * \brief The scheduling policies of Linkweir's core as queue discs.
 */

/**
 * \ingroup linkweir
 * \brief The data plane of a policy of Linkweir's core: a FIFO for each class, and the order of calls of policy.h.
 *
 * Each policy has a subclass with an attribute for each of its parameters, such as ns3::LinkweirPssQueueDisc. Classes are
 * added before the disc is initialised; attributes of both may change at any time, and take effect at once.
 *
 * As the queueing disciplines of Linux, it keeps a packet that was peeked: Peek() takes the packet from its class, and the
 * next Dequeue() returns it, whatever arrives in between. As a child disc it cannot ask its device to try again, so the
 * channel of a class should not be blocked there.
 */
class LinkweirQueueDisc : public QueueDisc, public LinkweirParameters
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();

    /**
     * \param name of a policy, such as `fq_codel`
     * \return its type, such as ns3::LinkweirFqCodelQueueDisc; fatal if there is no such policy
     */
    static TypeId GetTypeIdOf(const std::string& name);

    /**
     * \param index in GetPolicies()
     * \return the policy of the core
     */
    static const lw_policy* GetCore(uint32_t index);

    /// \return the names of all policies
    static std::vector<std::string> GetPolicies();

    /// \param policy that decides
    explicit LinkweirQueueDisc(const lw_policy& policy);
    ~LinkweirQueueDisc() override;

    /// \return a class of this policy with default attributes, not yet added
    virtual Ptr<LinkweirClass> CreateClass() const = 0;

    /**
     * Add a class, after those before.
     * \param queue the class
     * \return its index
     */
    uint32_t AddClass(Ptr<LinkweirClass> queue);

    /// \return number of classes
    uint32_t GetNClasses() const;

    /**
     * \param index of a class
     * \return the class
     */
    Ptr<LinkweirClass> GetClass(uint32_t index) const;

    /**
     * Report the capacity of the link to the policy.
     * \param rate 0: an outage
     */
    void SetLinkRate(DataRate rate);

    /// \return the capacity last reported
    DataRate GetLinkRate() const;

    /**
     * Report the rates of several channels to the policy at once.
     * \param rates indices of classes and rates in bit/s; 0 blocks the class
     */
    void SetChannelRates(const std::vector<std::pair<uint32_t, uint64_t>>& rates);

    /// From here on changes of attributes are collected until EndChange().
    void BeginChange();

    /// All changes since BeginChange() take effect; fatal if the policy refuses them.
    void EndChange();

    /**
     * \param why receives the reason if the settings are refused
     * \return whether the policy accepts the present settings
     */
    bool CheckSettings(std::string& why) const;

    /// \return index of the class that would send now, or LW_NONE
    uint32_t GetNextClass();

    /**
     * \param index of a class
     * \param name of a statistic of the policy
     * \return its present value
     */
    int64_t GetStatistic(uint32_t index, const std::string& name) const;

    /**
     * \param index of a class
     * \return what the policy sees of it
     */
    const lw_queue& GetQueue(uint32_t index) const;

    /**
     * Record the calls of the policy from the initialisation on, in the format of vectors/README.md. The attribute Record does
     * the same into a file.
     * \param out where to; it must live as long as the disc
     */
    void RecordTo(std::ostream& out);

    bool ParametersChanged() override;

  protected:
    void DoDispose() override;

  private:
    friend class LinkweirStatisticAccessor;

    bool DoEnqueue(Ptr<QueueDiscItem> item) override;
    Ptr<QueueDiscItem> DoDequeue() override;
    bool CheckConfig() override;
    void InitializeParams() override;

    uint32_t ClassOf(Ptr<QueueDiscItem> item);
    uint32_t BytesOf(const QueueDiscItem& item) const;
    bool MakeRoom(uint32_t queue, uint32_t bytes);
    bool HasRoom(uint32_t queue, uint32_t bytes) const;
    Ptr<QueueDiscItem> Take(uint32_t queue, bool head);
    void Show(uint32_t queue, uint32_t bytes);
    void Drop(uint32_t queue, bool head, LinkweirClass::Reason reason);
    void DropNewcomer(uint32_t queue, Ptr<QueueDiscItem> item, uint32_t bytes, LinkweirClass::Reason reason);
    bool DropVictims(uint32_t queue, Ptr<QueueDiscItem> item, uint32_t bytes);
    Ptr<QueueDiscItem> Leave(uint32_t queue, bool mark);
    void UpdateClock();
    void Rated();
    void Observe();
    void WakeUp();
    void SetLinkRateAttribute(DataRate rate);
    void CollectParameters();
    bool Accepts(const std::vector<uint64_t>& rows, std::string& why) const;
    std::vector<uint64_t> Rows() const;
    void RecordSettings(std::ostream& out, bool all) const;
    void RecordStart();

    const lw_policy& m_policy;                 //!< that decides
    std::vector<Ptr<LinkweirClass>> m_classList; //!< in the order of their indices
    std::vector<Ptr<LinkweirFifo>> m_fifos;    //!< of the classes
    std::vector<lw_queue> m_queues;            //!< what the policy sees of them
    std::vector<uint64_t> m_rows;              //!< parameters of the classes that are in force
    std::vector<uint64_t> m_state;             //!< of the policy
    lw_view m_view{};                          //!< what the policy sees
    uint64_t m_largestRate{0};                 //!< the largest capacity reported, bit/s
    uint32_t m_overhead{0};                    //!< bytes that the link adds to each packet
    bool m_started{false};                     //!< the policy was initialised
    bool m_held{false};                        //!< changes are collected
    bool m_observing{false};                   //!< a statistic of a class is traced
    bool m_newcomer{false};                    //!< the view shows a packet that is not in its FIFO yet
    EventId m_wakeUp;                          //!< the queue disc runs
    std::string m_recordFile;                  //!< attribute Record
    std::unique_ptr<std::ostream> m_file;      //!< of that name
    std::ostream* m_record{nullptr};           //!< where calls are recorded
};

} // namespace ns3

#endif /* LINKWEIR_QUEUE_DISC_H */
