// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_HELPER_H
#define LINKWEIR_HELPER_H

#include "ns3/linkweir-queue-disc.h"
#include "ns3/net-device-container.h"
#include "ns3/node.h"
#include "ns3/object-factory.h"
#include "ns3/queue-disc-container.h"
#include "ns3/string.h"

#include <string>
#include <vector>

namespace ns3
{

/**
 * \ingroup linkweir
 * \brief Installs a policy with its classes as the root queue disc of devices.
 *
 * \code
 *   LinkweirHelper linkweir("pss");
 *   linkweir.AddClass("ef", {46}, "Level", UintegerValue(0));
 *   linkweir.AddClass("af", {10, 12, 14}, "Level", UintegerValue(1), "LowLevel", UintegerValue(3),
 *                     "Rate", StringValue("5Mbps"));
 *   linkweir.AddClass("cs0", {}, "Level", UintegerValue(2));
 *   linkweir.Install(device);
 * \endcode
 */
class LinkweirHelper
{
  public:
    /**
     * \param policy such as `pss`
     * \param args names and values of attributes of the queue disc
     */
    template <typename... Args>
    explicit LinkweirHelper(const std::string& policy, Args&&... args);

    /**
     * Add a class, after those before.
     * \param name in messages
     * \param dscps code points of its packets; packets of no class go to the last one
     * \param args names and values of attributes of the class
     * \return index of the class
     */
    template <typename... Args>
    uint32_t AddClass(const std::string& name, const std::vector<uint8_t>& dscps, Args&&... args);

    /**
     * Make the root queue disc of a device. The device's own queue is set to one packet, because packets there have left the
     * policy's control; a line on standard error says so.
     * \param device of a node with a TrafficControlLayer
     * \return the queue disc
     */
    Ptr<LinkweirQueueDisc> Install(Ptr<NetDevice> device) const;

    /**
     * \param devices each gets a queue disc of its own
     * \return the queue discs
     */
    QueueDiscContainer Install(const NetDeviceContainer& devices) const;

    /// \return a queue disc with its classes that belongs to no device, such as for a parent disc
    Ptr<LinkweirQueueDisc> Create() const;

    /**
     * Connect two nodes with LinkweirNetDevices.
     * \param a the one end
     * \param b the other end
     * \param capacity of both directions
     * \param delay of propagation
     * \return both devices
     */
    static NetDeviceContainer Connect(Ptr<Node> a, Ptr<Node> b, DataRate capacity, Time delay);

  private:
    /// What AddClass() was given.
    struct ClassSettings
    {
        ObjectFactory factory;      //!< of the class
        std::vector<uint8_t> dscps; //!< of its packets
    };

    std::string m_policy;                //!< name
    ObjectFactory m_disc;                //!< of the queue disc
    std::vector<ClassSettings> m_classes; //!< in the order of their indices
};

template <typename... Args>
LinkweirHelper::LinkweirHelper(const std::string& policy, Args&&... args)
    : m_policy(policy)
{
    m_disc.SetTypeId(LinkweirQueueDisc::GetTypeIdOf(policy));
    m_disc.Set(args...);
}

template <typename... Args>
uint32_t
LinkweirHelper::AddClass(const std::string& name, const std::vector<uint8_t>& dscps, Args&&... args)
{
    ObjectFactory factory;
    factory.SetTypeId("ns3::Linkweir" + LinkweirCamelCase(m_policy) + "Class");
    factory.Set("Name", StringValue(name));
    factory.Set(args...);
    m_classes.push_back({factory, dscps});
    return static_cast<uint32_t>(m_classes.size() - 1);
}

} // namespace ns3

#endif /* LINKWEIR_HELPER_H */
