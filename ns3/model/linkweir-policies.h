// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_POLICIES_H
#define LINKWEIR_POLICIES_H

#include "linkweir-queue-disc.h"

/// \file
/// \ingroup linkweir
/// A queue disc and a class for each line of policies.def.

namespace ns3
{

/**
 * \ingroup linkweir
 * \brief Class of one policy; its name in ns-3 is that of the policy, such as ns3::LinkweirPssClass.
 */
template <const lw_policy& POLICY>
class LinkweirClassOf : public LinkweirClass
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId()
    {
        static TypeId tid = [] {
            TypeId made = TypeId("ns3::Linkweir" + LinkweirCamelCase(POLICY.name) + "Class")
                              .SetParent<LinkweirClass>()
                              .SetGroupName("Linkweir")
                              .template AddConstructor<LinkweirClassOf<POLICY>>();
            LinkweirAddAttributes(made, POLICY.qparams, POLICY.nqparams);
            AddStatistics(made, POLICY);
            return made;
        }();
        return tid;
    }

    LinkweirClassOf()
        : LinkweirClass(POLICY)
    {
    }
};

/**
 * \ingroup linkweir
 * \brief Queue disc of one policy; its name in ns-3 is that of the policy, such as ns3::LinkweirPssQueueDisc.
 */
template <const lw_policy& POLICY>
class LinkweirQueueDiscOf : public LinkweirQueueDisc
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId()
    {
        static TypeId tid = [] {
            TypeId made = TypeId("ns3::Linkweir" + LinkweirCamelCase(POLICY.name) + "QueueDisc")
                              .SetParent<LinkweirQueueDisc>()
                              .SetGroupName("Linkweir")
                              .template AddConstructor<LinkweirQueueDiscOf<POLICY>>();
            LinkweirAddAttributes(made, POLICY.params, POLICY.nparams);
            return made;
        }();
        return tid;
    }

    LinkweirQueueDiscOf()
        : LinkweirQueueDisc(POLICY)
    {
    }

    Ptr<LinkweirClass> CreateClass() const override
    {
        return CreateObject<LinkweirClassOf<POLICY>>();
    }
};

} // namespace ns3

#endif /* LINKWEIR_POLICIES_H */
