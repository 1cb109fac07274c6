// SPDX-License-Identifier: GPL-2.0-only
#include "linkweir-parameter.h"

#include "ns3/data-rate.h"
#include "ns3/double.h"
#include "ns3/nstime.h"
#include "ns3/object-base.h"
#include "ns3/queue-size.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <limits>
#include <sstream>

namespace ns3
{

namespace
{

constexpr double MILLION = 1e6;

std::vector<std::string>
Choices(const lw_param& param)
{
    std::vector<std::string> words;
    std::istringstream list(param.choices);
    for (std::string word; std::getline(list, word, '|');)
    {
        words.push_back(word);
    }
    return words;
}

QueueSize
SizeOf(const lw_param& param, uint64_t value)
{
    const auto most = std::numeric_limits<uint32_t>::max();
    return QueueSize(param.unit == LW_PKTS ? QueueSizeUnit::PACKETS : QueueSizeUnit::BYTES,
                     static_cast<uint32_t>(std::min<uint64_t>(value, most)));
}

Ptr<AttributeValue>
ValueOf(const lw_param& param, uint64_t value)
{
    switch (param.unit)
    {
    case LW_BPS:
        return Create<DataRateValue>(DataRate(value));
    case LW_NS:
        return Create<TimeValue>(value == LW_UNSET ? Time::Max() : NanoSeconds(value));
    case LW_BYTES:
    case LW_PKTS:
        return Create<QueueSizeValue>(SizeOf(param, value));
    case LW_PPM:
        return Create<DoubleValue>(value == LW_UNSET ? -1.0 : static_cast<double>(value) / MILLION);
    case LW_CHOICE:
        return Create<StringValue>(Choices(param).at(value));
    default:
        return Create<UintegerValue>(value);
    }
}

Ptr<const AttributeChecker>
CheckerOf(const lw_param& param)
{
    switch (param.unit)
    {
    case LW_BPS:
        return MakeDataRateChecker();
    case LW_NS:
        return MakeTimeChecker();
    case LW_BYTES:
    case LW_PKTS:
        return MakeQueueSizeChecker();
    case LW_PPM:
        return MakeDoubleChecker<double>();
    case LW_CHOICE:
        return MakeStringChecker();
    default:
        return MakeUintegerChecker<uint64_t>();
    }
}

std::string
Range(const lw_param& param)
{
    if (param.unit == LW_CHOICE)
    {
        return param.choices;
    }
    std::string text = LinkweirPrint(param, param.min) + " .. " + LinkweirPrint(param, param.max);
    return param.def == LW_UNSET ? text + ", or 18446744073709551615: unset" : text;
}

bool
Refuse(const lw_param& param, const std::string& value)
{
    std::cerr << "linkweir: " << LinkweirCamelCase(param.name) << " = " << value << " is refused: must be " << Range(param)
              << std::endl;
    return false;
}

bool
SizeFrom(const lw_param& param, const QueueSize& size, uint64_t& value)
{
    const bool packets = size.GetUnit() == QueueSizeUnit::PACKETS;
    if (packets != (param.unit == LW_PKTS))
    {
        std::ostringstream text;
        text << size;
        return Refuse(param, text.str());
    }
    value = size.GetValue();
    return true;
}

bool
ChoiceFrom(const lw_param& param, const std::string& word, uint64_t& value)
{
    const auto words = Choices(param);
    for (value = 0; value < words.size(); value++)
    {
        if (words[value] == word)
        {
            return true;
        }
    }
    return Refuse(param, word);
}

/// Reads an attribute's value as the core's number; false: it was refused, and why was printed.
bool
NumberOf(const lw_param& param, const AttributeValue& attribute, uint64_t& value)
{
    if (const auto* rate = dynamic_cast<const DataRateValue*>(&attribute))
    {
        value = rate->Get().GetBitRate();
    }
    else if (const auto* time = dynamic_cast<const TimeValue*>(&attribute))
    {
        if (time->Get().IsStrictlyNegative())
        {
            return Refuse(param, std::to_string(time->Get().GetNanoSeconds()) + "ns");
        }
        value = time->Get() == Time::Max() ? LW_UNSET : static_cast<uint64_t>(time->Get().GetNanoSeconds());
    }
    else if (const auto* size = dynamic_cast<const QueueSizeValue*>(&attribute))
    {
        return SizeFrom(param, size->Get(), value);
    }
    else if (const auto* fraction = dynamic_cast<const DoubleValue*>(&attribute))
    {
        if (!(fraction->Get() >= 0 && fraction->Get() <= 1e9))
        {
            return Refuse(param, std::to_string(fraction->Get()));
        }
        value = static_cast<uint64_t>(std::llround(fraction->Get() * MILLION));
    }
    else if (const auto* word = dynamic_cast<const StringValue*>(&attribute))
    {
        return ChoiceFrom(param, word->Get(), value);
    }
    else if (const auto* number = dynamic_cast<const UintegerValue*>(&attribute))
    {
        value = number->Get();
    }
    else
    {
        return false;
    }
    return true;
}

/// Sets and gets the parameter at an index of a LinkweirParameters.
class ParameterAccessor : public AttributeAccessor
{
  public:
    ParameterAccessor(const lw_param& param, uint32_t index)
        : m_param(param),
          m_index(index)
    {
    }

    bool Set(ObjectBase* object, const AttributeValue& attribute) const override
    {
        auto* parameters = dynamic_cast<LinkweirParameters*>(object);
        uint64_t value = 0;
        return parameters && NumberOf(m_param, attribute, value) && parameters->SetParameter(m_index, value);
    }

    bool Get(const ObjectBase* object, AttributeValue& attribute) const override
    {
        const auto* parameters = dynamic_cast<const LinkweirParameters*>(object);
        if (!parameters)
        {
            return false;
        }
        const auto value = ValueOf(m_param, parameters->GetParameters()[m_index]);
        if (auto* text = dynamic_cast<StringValue*>(&attribute))
        {
            text->Set(value->SerializeToString(CheckerOf(m_param)));
            return true;
        }
        return CheckerOf(m_param)->Copy(*value, attribute);
    }

    bool HasGetter() const override
    {
        return true;
    }

    bool HasSetter() const override
    {
        return true;
    }

  private:
    const lw_param& m_param; //!< in the policy's table
    uint32_t m_index;        //!< its place there
};

} // namespace

LinkweirParameters::LinkweirParameters(const lw_param* table, uint32_t count)
    : m_table(table)
{
    for (uint32_t i = 0; i < count; i++)
    {
        m_values.push_back(table[i].def);
    }
}

bool
LinkweirParameters::SetParameter(uint32_t index, uint64_t value)
{
    const auto& param = m_table[index];
    if (!LinkweirInRange(param, value))
    {
        return Refuse(param, LinkweirPrint(param, value));
    }
    const auto old = m_values[index];
    m_values[index] = value;
    if (ParametersChanged())
    {
        return true;
    }
    m_values[index] = old;
    return false;
}

const std::vector<uint64_t>&
LinkweirParameters::GetParameters() const
{
    return m_values;
}

const lw_param*
LinkweirParameters::GetTable() const
{
    return m_table;
}

void
LinkweirAddAttributes(TypeId& tid, const lw_param* table, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
    {
        const auto& param = table[i];
        tid.AddAttribute(LinkweirCamelCase(param.name),
                         std::string(param.help) + " [" + Range(param) + "]",
                         *ValueOf(param, param.def),
                         Ptr<const AttributeAccessor>(new ParameterAccessor(param, i), false),
                         CheckerOf(param));
    }
}

std::string
LinkweirCamelCase(const std::string& name)
{
    std::string camel;
    bool upper = true;
    for (const char letter : name)
    {
        if (letter == '_')
        {
            upper = true;
            continue;
        }
        camel += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
        upper = false;
    }
    return camel;
}

std::string
LinkweirPrint(const lw_param& param, uint64_t value)
{
    if (value == LW_UNSET)
    {
        return "unset";
    }
    if (param.unit == LW_CHOICE)
    {
        return value <= param.max ? Choices(param).at(value) : std::to_string(value);
    }
    if (param.unit == LW_PPM)
    {
        std::ostringstream text;
        text << static_cast<double>(value) / MILLION;
        return text.str();
    }
    static const char* const units[] = {"", "bps", "ns", "B", "bit", "p", "", ""};
    return std::to_string(value) + units[param.unit];
}

bool
LinkweirInRange(const lw_param& param, uint64_t value)
{
    return (value >= param.min && value <= param.max) || (value == LW_UNSET && param.def == LW_UNSET);
}

} // namespace ns3
