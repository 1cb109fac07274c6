// SPDX-License-Identifier: GPL-2.0-only
#ifndef LINKWEIR_PARAMETER_H
#define LINKWEIR_PARAMETER_H

#include "ns3/attribute.h"
#include "ns3/type-id.h"

#include <linkweir/policy.h>
#include <string>
#include <vector>

/// \file
/// \ingroup linkweir
/// Attributes of ns-3 made from the tables of parameters that each policy of the core declares.

namespace ns3
{

/// Values of the parameters of a policy, or of one of its classes, in the order and the units of the policy's table.
class LinkweirParameters
{
  public:
    /**
     * \param table of the policy
     * \param count its length
     */
    LinkweirParameters(const lw_param* table, uint32_t count);
    virtual ~LinkweirParameters() = default;

    /**
     * \param index in the table
     * \param value in the table's unit
     * \return false if the value is refused; the reason was printed then
     */
    bool SetParameter(uint32_t index, uint64_t value);

    /// \return the values
    const std::vector<uint64_t>& GetParameters() const;

    /// \return the table
    const lw_param* GetTable() const;

  protected:
    /**
     * The values have changed.
     * \return false if they are refused
     */
    virtual bool ParametersChanged() = 0;

  private:
    const lw_param* m_table;        //!< of the policy
    std::vector<uint64_t> m_values; //!< in its units
};

/**
 * Add an attribute for each parameter of a table.
 * \param tid of a class that is a LinkweirParameters
 * \param table of the policy
 * \param count its length
 */
void LinkweirAddAttributes(TypeId& tid, const lw_param* table, uint32_t count);

/**
 * \param name as in the core, such as `low_level`
 * \return as in ns-3, such as `LowLevel`
 */
std::string LinkweirCamelCase(const std::string& name);

/**
 * \param param of a table
 * \param value of it
 * \return the value with its unit
 */
std::string LinkweirPrint(const lw_param& param, uint64_t value);

/**
 * \param param of a table
 * \param value of it
 * \return whether the table allows it
 */
bool LinkweirInRange(const lw_param& param, uint64_t value);

} // namespace ns3

#endif /* LINKWEIR_PARAMETER_H */
