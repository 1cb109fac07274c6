// SPDX-License-Identifier: GPL-2.0-only
#include "linkweir-policies.h"

#include "ns3/abort.h"

namespace ns3
{

namespace
{

/// Registers the types of all policies before main() begins, so that names and ConfigStore find them.
struct Registration
{
    Registration()
    {
#define LW_POLICY(name)                                                                                                     \
    LinkweirQueueDiscOf<lw_policy_##name>::GetTypeId().SetSize(sizeof(LinkweirQueueDiscOf<lw_policy_##name>));               \
    LinkweirClassOf<lw_policy_##name>::GetTypeId().SetSize(sizeof(LinkweirClassOf<lw_policy_##name>));
#include <linkweir/policies.def>
#undef LW_POLICY
    }
} g_registration; //!< static variable for registration

} // namespace

std::vector<std::string>
LinkweirQueueDisc::GetPolicies()
{
    return {
#define LW_POLICY(name) #name,
#include <linkweir/policies.def>
#undef LW_POLICY
    };
}

const lw_policy*
LinkweirQueueDisc::GetCore(uint32_t index)
{
    return lw_policies[index];
}

TypeId
LinkweirQueueDisc::GetTypeIdOf(const std::string& name)
{
#define LW_POLICY(known)                                                                                                    \
    if (name == #known)                                                                                                     \
    {                                                                                                                       \
        return LinkweirQueueDiscOf<lw_policy_##known>::GetTypeId();                                                         \
    }
#include <linkweir/policies.def>
#undef LW_POLICY
    std::string all;
    for (const auto& policy : GetPolicies())
    {
        all += (all.empty() ? "" : ", ") + policy;
    }
    NS_FATAL_ERROR("linkweir: there is no policy \"" << name << "\", only " << all);
    return TypeId();
}

} // namespace ns3
