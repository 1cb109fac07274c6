// SPDX-License-Identifier: GPL-2.0-only
#include "linkweir-capacity.h"

#include "linkweir-net-device.h"

#include "ns3/abort.h"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(LinkweirCapacity);

namespace
{

constexpr double TWO_PI = 6.283185307179586;

Time
FromSeconds(double seconds)
{
    return NanoSeconds(std::llround(seconds * 1e9));
}

/// A number that takes all of a word; fatal, with file and line, otherwise.
double
Number(const std::string& word, const std::string& file, uint32_t line)
{
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    NS_ABORT_MSG_IF(word.empty() || *end || !(value >= 0 && value <= 1e12),
                    file << ":" << line << ": \"" << word << "\" must be a number from 0 to 1e12; linkweir trace export writes such files");
    return value;
}

} // namespace

TypeId
LinkweirCapacity::GetTypeId()
{
    static TypeId tid = TypeId("ns3::LinkweirCapacity")
                            .SetParent<Object>()
                            .SetGroupName("Linkweir")
                            .AddConstructor<LinkweirCapacity>()
                            .AddAttribute("Interval",
                                          "Width of the steps of a cosine.",
                                          TimeValue(MilliSeconds(10)),
                                          MakeTimeAccessor(&LinkweirCapacity::m_interval),
                                          MakeTimeChecker(NanoSeconds(1)))
                            .AddTraceSource("Rate",
                                            "The capacity changed.",
                                            MakeTraceSourceAccessor(&LinkweirCapacity::m_rate),
                                            "ns3::TracedValueCallback::DataRate");
    return tid;
}

LinkweirCapacity::LinkweirCapacity() = default;
LinkweirCapacity::~LinkweirCapacity() = default;

void
LinkweirCapacity::DoDispose()
{
    m_change.Cancel();
    m_device = nullptr;
    m_disc = nullptr;
    Object::DoDispose();
}

void
LinkweirCapacity::SetSteps(std::vector<Step> steps, Time period)
{
    NS_ABORT_MSG_IF(steps.empty() || !steps.front().from.IsZero(), "LinkweirCapacity: the first step must begin at 0 s");
    for (std::size_t i = 1; i < steps.size(); i++)
    {
        NS_ABORT_MSG_IF(steps[i].from <= steps[i - 1].from,
                        "LinkweirCapacity: step " << i << " at " << steps[i].from.As(Time::S) << " must be after the one before");
    }
    NS_ABORT_MSG_IF(!period.IsZero() && period <= steps.back().from,
                    "LinkweirCapacity: the period must end after the last step, at " << steps.back().from.As(Time::S));
    m_steps = std::move(steps);
    m_period = period;
}

void
LinkweirCapacity::Load(const std::string& file)
{
    std::ifstream in(file);
    NS_ABORT_MSG_IF(!in, "LinkweirCapacity: cannot read " << file);
    std::vector<Step> steps;
    Time period;
    bool loops = false;
    bool named = false;
    uint32_t line = 0;
    for (std::string text; std::getline(in, text);)
    {
        line++;
        if (!text.empty() && text.back() == '\r')
        {
            text.pop_back();
        }
        if (text.rfind("# end=", 0) == 0)
        {
            loops = text == "# end=loop";
            NS_ABORT_MSG_IF(!loops && text != "# end=hold", file << ":" << line << ": end must be loop or hold");
        }
        else if (text.rfind("# period_s=", 0) == 0)
        {
            period = FromSeconds(Number(text.substr(11), file, line));
        }
        else if (!text.empty() && text[0] != '#' && !named)
        {
            NS_ABORT_MSG_IF(text != "t_s,capacity_bps", file << ":" << line << ": the columns must be t_s,capacity_bps; linkweir trace export writes such files from any trace");
            named = true;
        }
        else if (!text.empty() && text[0] != '#')
        {
            const auto comma = text.find(',');
            NS_ABORT_MSG_IF(comma == std::string::npos, file << ":" << line << ": must be TIME,RATE");
            steps.push_back({FromSeconds(Number(text.substr(0, comma), file, line)),
                             DataRate(static_cast<uint64_t>(Number(text.substr(comma + 1), file, line)))});
        }
    }
    SetSteps(steps, loops ? period : Time());
}

void
LinkweirCapacity::SetCosine(DataRate mean, double amplitude, Time period)
{
    NS_ABORT_MSG_IF(!(amplitude >= 0 && amplitude <= 1), "LinkweirCapacity: amplitude = " << amplitude << " must be 0 .. 1");
    NS_ABORT_MSG_IF(!period.IsStrictlyPositive(), "LinkweirCapacity: the period must be above 0 s");
    std::vector<Step> steps;
    for (Time from; from < period; from += m_interval)
    {
        // the mean over the step, so that no capacity is gained or lost
        const double a = TWO_PI * from.GetSeconds() / period.GetSeconds();
        const double b = TWO_PI * std::min(from + m_interval, period).GetSeconds() / period.GetSeconds();
        const double wave = (std::sin(b) - std::sin(a)) / (b - a);
        steps.push_back({from, DataRate(static_cast<uint64_t>(std::llround(static_cast<double>(mean.GetBitRate()) * (1 + amplitude * wave))))});
    }
    SetSteps(steps, period);
}

void
LinkweirCapacity::Attach(Ptr<NetDevice> device, Ptr<LinkweirQueueDisc> disc)
{
    NS_ABORT_MSG_IF(m_steps.empty(), "LinkweirCapacity: call SetSteps(), Load() or SetCosine() before Attach()");
    m_device = device;
    m_disc = disc;
    Apply(GetRate(Simulator::Now()));
    m_change = Simulator::ScheduleNow(&LinkweirCapacity::Follow, this);
}

DataRate
LinkweirCapacity::GetRate(Time t) const
{
    const auto inRound = m_period.IsZero() ? t : NanoSeconds(t.GetNanoSeconds() % m_period.GetNanoSeconds());
    const auto after = std::upper_bound(m_steps.begin(), m_steps.end(), inRound, [](const Time& time, const Step& step) {
        return time < step.from;
    });
    return std::prev(after)->rate;
}

Time
LinkweirCapacity::NextChange(Time t) const
{
    const auto round = m_period.IsZero() ? 0 : t.GetNanoSeconds() / m_period.GetNanoSeconds();
    const auto start = NanoSeconds(round * m_period.GetNanoSeconds());
    const auto after = std::upper_bound(m_steps.begin(), m_steps.end(), t - start, [](const Time& time, const Step& step) {
        return time < step.from;
    });
    if (after != m_steps.end())
    {
        return start + after->from;
    }
    return m_period.IsZero() ? Time::Max() : start + m_period;
}

void
LinkweirCapacity::Follow()
{
    const auto now = Simulator::Now();
    Apply(GetRate(now));
    const auto next = NextChange(now);
    if (next != Time::Max())
    {
        m_change = Simulator::Schedule(next - now, &LinkweirCapacity::Follow, this);
    }
}

void
LinkweirCapacity::Apply(DataRate rate)
{
    m_rate = rate;
    if (const auto device = DynamicCast<LinkweirNetDevice>(m_device))
    {
        device->SetCapacity(rate);
    }
    else
    {
        NS_ABORT_MSG_IF(!rate.GetBitRate(), "LinkweirCapacity: a device of type " << m_device->GetInstanceTypeId().GetName() << " cannot have a rate of 0; use ns3::LinkweirNetDevice");
        m_device->SetAttribute("DataRate", DataRateValue(rate));
    }
    if (m_disc)
    {
        m_disc->SetLinkRate(rate);
    }
}

} // namespace ns3
