// SPDX-License-Identifier: GPL-2.0-only
//
// A vector is read line by line, with the core's own reader (core/tests/vector.h), which also keeps the values of parameters.
// Operations that a disc makes are scheduled at their times:
//
//   enqueue, and its drops     Enqueue() of a packet whose filter names the class; the drops are those of the classes' traces
//   pick, without a departure  GetNextClass()
//   pick, verdicts, send       one Dequeue(), which asks for all verdicts that the vector lists
//   link, rate, change         SetLinkRate(), SetChannelRates(), attributes between BeginChange() and EndChange()
//   observe, refuse            GetStatistic(), CheckSettings()
//
// A vector with any other operation has a reason why no disc can make it.

#include "vectors.h"

#include "ns3/linkweir-queue-disc.h"
#include "ns3/packet-filter.h"
#include "ns3/packet.h"
#include "ns3/queue-item.h"
#include "ns3/simulator.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <unistd.h>
#include <vector>

#define main linkweir_replay_main
extern "C"
{
#include "replay.c"
}
#undef main

namespace linkweir_test
{

using namespace ns3;

namespace
{

using Words = std::vector<std::string>;

/// A packet of a class; whether it can carry a mark is what the vector says when the disc asks.
class Item : public QueueDiscItem
{
  public:
    Item(uint32_t queue, uint32_t bytes, std::deque<bool>& ecn)
        : QueueDiscItem(Create<Packet>(bytes), Address(), 0),
          m_queue(queue),
          m_ecn(ecn)
    {
    }

    void AddHeader() override
    {
    }

    bool Mark() override
    {
        return true;
    }

    bool GetUint8Value(Uint8Values, uint8_t& value) const override
    {
        value = 0;
        if (!m_ecn.empty())
        {
            value = m_ecn.front();
            m_ecn.pop_front();
        }
        return true;
    }

    const uint32_t m_queue; //!< class

  private:
    std::deque<bool>& m_ecn; //!< answers still to be given
};

class Filter : public PacketFilter
{
  private:
    bool CheckProtocol(Ptr<QueueDiscItem>) const override
    {
        return true;
    }

    int32_t DoClassify(Ptr<QueueDiscItem> item) const override
    {
        return static_cast<int32_t>(static_cast<const Item&>(*item).m_queue);
    }
};

struct Line
{
    unsigned number;
    Words words;
};

class Replay
{
  public:
    explicit Replay(std::vector<Line> lines)
        : m_lines(std::move(lines)),
          m_read(std::make_unique<::vector>())
    {
        vector_begin(m_read.get());
    }

    ~Replay()
    {
        vector_close(m_read.get());
    }

    Outcome Run();

  private:
    void Build();
    void Refuse(const Line& line);
    void Step();
    void Operate(std::size_t& at);
    void Depart(std::size_t& at);
    void Arrive(const Line& line);
    void Observe(const Line& line);
    void Hand(Words& words);
    void Set(const Line& line, uint32_t last);
    void Apply();
    void Dropped(uint32_t queue, Ptr<const QueueDiscItem> item, const char* reason);
    void Wrong(const Line& line, const std::string& what);

    std::vector<Line> m_lines;
    std::size_t m_next{0};
    std::unique_ptr<::vector> m_read; //!< the policy, its queues and link, and the parameters that hold
    Ptr<LinkweirQueueDisc> m_disc;
    std::deque<bool> m_ecn;
    std::vector<uint32_t> m_drops;
    std::string m_outside; //!< parameter that was refused when it was set
    Outcome m_outcome;
};

void
Replay::Wrong(const Line& line, const std::string& what)
{
    if (m_outcome.error.empty())
    {
        m_outcome.error = std::to_string(line.number) + ": " + what;
    }
}

void
Replay::Dropped(uint32_t queue, Ptr<const QueueDiscItem>, const char*)
{
    m_drops.push_back(queue);
}

void
Replay::Build()
{
    ObjectFactory factory;
    factory.SetTypeId(LinkweirQueueDisc::GetTypeIdOf(m_read->policy->name));
    m_disc = factory.Create<LinkweirQueueDisc>();
    m_disc->SetLinkRate(DataRate(m_read->link_bps));
    for (uint32_t q = 0; q < m_read->nqueues; q++)
    {
        auto queue = m_disc->CreateClass();
        queue->SetAttribute("MaxPackets", UintegerValue(4294967295U));
        queue->TraceConnectWithoutContext("Drop", MakeCallback(&Replay::Dropped, this).Bind(q));
        m_disc->AddClass(queue);
    }
    // a link that is not known leaves the channels at 0 in a vector
    if (!m_read->link_bps)
    {
        for (uint32_t q = 0; q < m_read->nqueues; q++)
        {
            m_disc->SetChannelRates({{q, 0}});
        }
    }
    m_disc->AddPacketFilter(CreateObject<Filter>());
}

/// Hands words to the core's reader, which cuts those at their signs of equality.
void
Replay::Hand(Words& words)
{
    m_read->nwords = static_cast<uint32_t>(words.size());
    for (std::size_t i = 0; i < words.size(); i++)
    {
        m_read->words[i] = words[i].data();
    }
}

/// Gives the disc all parameters that hold.
void
Replay::Apply()
{
    const lw_policy& core = *m_read->policy;
    for (uint32_t i = 0; i < core.nparams; i++)
    {
        if (!m_disc->SetParameter(i, m_read->plane.params[i]))
        {
            m_outside = core.params[i].name;
        }
    }
    for (uint32_t q = 0; q < m_read->nqueues; q++)
    {
        const auto of = m_disc->GetClass(q);
        for (uint32_t i = 0; i < core.nqparams; i++)
        {
            if (!of->SetParameter(i, m_read->plane.qparams[q * core.nqparams + i]))
            {
                m_outside = core.qparams[i].name;
            }
        }
    }
}

/// ... [set] k=v... [queue N k=v...]... from the fourth word on, or of `refuse` from the second, to before `last`
void
Replay::Set(const Line& line, uint32_t last)
{
    auto words = line.words;
    Hand(words);
    if (!vector_open(m_read.get()) || !vector_configure(m_read.get(), words[0] == "refuse" ? 1 : 3, last))
    {
        Wrong(line, m_read->plane.wrong);
        return;
    }
    m_disc->BeginChange();
    Apply();
}

/// refuse [set k=v...] [queue N k=v...]... => PARAM QUEUE
void
Replay::Refuse(const Line& line)
{
    Build();
    const auto& words = line.words;
    const auto queue = words.back();
    const auto param = words[words.size() - 2];
    std::string why;
    Set(line, static_cast<uint32_t>(words.size()) - 3);
    const auto place = (queue == "-" ? "" : ", class " + queue + " ");
    if (!m_outside.empty())
    {
        // a value outside its range is refused when it is set
        if (m_outside != param)
        {
            Wrong(line, "refused for " + m_outside);
        }
        m_outside.clear();
    }
    else if (m_disc->CheckSettings(why))
    {
        Wrong(line, "accepted");
    }
    else if (why.find(", " + LinkweirCamelCase(param) + ": ") == std::string::npos || why.find(place) == std::string::npos)
    {
        Wrong(line, "refused as " + why);
    }
    m_outcome.answers++;
    plane_default(&m_read->plane);
    m_disc->Dispose();
    m_disc = nullptr;
}

void
Replay::Arrive(const Line& line)
{
    m_drops.clear();
    m_disc->Enqueue(Create<Item>(static_cast<uint32_t>(std::stoul(line.words[3])), static_cast<uint32_t>(std::stoul(line.words[4])), m_ecn));
    std::vector<uint32_t> expected;
    for (std::size_t i = 6; i < line.words.size(); i++)
    {
        expected.push_back(static_cast<uint32_t>(std::stoul(line.words[i].substr(line.words[i][0] == 'h'))));
    }
    m_outcome.answers += 1 + expected.size();
    if (m_drops != expected)
    {
        Wrong(line, "other packets were dropped");
    }
}

void
Replay::Observe(const Line& line)
{
    for (std::size_t i = 4; i < line.words.size(); i++)
    {
        const auto equals = line.words[i].find('=');
        const auto name = line.words[i].substr(0, equals);
        const auto found = m_disc->GetStatistic(static_cast<uint32_t>(std::stoul(line.words[3])), name);
        m_outcome.answers++;
        if (found != std::stoll(line.words[i].substr(equals + 1)))
        {
            Wrong(line, name + " is " + std::to_string(found));
        }
    }
}

/// pick [verdict drop, pick]... [verdict pass|mark] send, or a pick alone
void
Replay::Depart(std::size_t& at)
{
    const auto& first = m_lines[at];
    std::vector<uint32_t> dropped;
    std::size_t end = at;
    std::string last = first.words[3];
    m_ecn.clear();
    for (end = at + 1; end < m_lines.size() && m_lines[end].words[1] == first.words[1]; end++)
    {
        const auto& words = m_lines[end].words;
        if (words[2] == "verdict")
        {
            m_ecn.push_back(words.size() == 5);
            if (words[3] == "drop")
            {
                dropped.push_back(static_cast<uint32_t>(std::stoul(last)));
                if (end + 1 < m_lines.size() && m_lines[end + 1].words[2] == "pick")
                {
                    last = m_lines[++end].words[3];
                    while (end + 1 < m_lines.size() && m_lines[end + 1].words == m_lines[end].words)
                    {
                        end++; // the same question again
                    }
                    continue;
                }
            }
            continue;
        }
        break;
    }
    const bool sends = end < m_lines.size() && m_lines[end].words[2] == "send" && m_lines[end].words[1] == first.words[1];
    if (!sends && dropped.empty())
    {
        const auto answer = m_disc->GetNextClass();
        m_outcome.answers++;
        if ((answer == LW_NONE ? "none" : std::to_string(answer)) != first.words[3])
        {
            Wrong(first, "pick is " + std::to_string(answer));
        }
        at++;
        return;
    }
    m_drops.clear();
    const auto item = m_disc->Dequeue();
    m_outcome.answers += 1 + dropped.size();
    const auto left = item ? std::to_string(static_cast<const Item&>(*item).m_queue) : "none";
    if (left != (sends ? last : "none") || m_drops != dropped)
    {
        Wrong(first, "class " + left + " sends, " + std::to_string(m_drops.size()) + " dropped");
    }
    at = end + sends;
}

void
Replay::Operate(std::size_t& at)
{
    const auto& line = m_lines[at];
    const auto& words = line.words;
    const auto& what = words[2];
    if (what == "pick")
    {
        Depart(at);
        return;
    }
    if (what == "init")
    {
        m_disc->Initialize();
    }
    else if (what == "enqueue")
    {
        Arrive(line);
    }
    else if (what == "link")
    {
        m_disc->SetLinkRate(DataRate(std::stoull(words[3])));
    }
    else if (what == "rate")
    {
        std::vector<std::pair<uint32_t, uint64_t>> rates;
        for (std::size_t i = 3; i + 1 < words.size(); i += 2)
        {
            rates.emplace_back(static_cast<uint32_t>(std::stoul(words[i])), std::stoull(words[i + 1]));
        }
        m_disc->SetChannelRates(rates);
    }
    else if (what == "change")
    {
        Set(line, static_cast<uint32_t>(words.size()));
        m_disc->EndChange();
    }
    else if (what == "observe")
    {
        Observe(line);
    }
    at++;
}

void
Replay::Step()
{
    const auto now = m_lines[m_next].words[1];
    while (m_next < m_lines.size() && m_lines[m_next].words[1] == now && m_outcome.error.empty())
    {
        Operate(m_next);
    }
    if (m_next < m_lines.size() && m_outcome.error.empty())
    {
        Simulator::Schedule(NanoSeconds(std::stoull(m_lines[m_next].words[1])) - Simulator::Now(), &Replay::Step, this);
    }
}

Outcome
Replay::Run()
{
    std::size_t at = 0;
    for (; at < m_lines.size() && m_lines[at].words[0] != "at"; at++)
    {
        auto words = m_lines[at].words;
        if (words[0] == "refuse")
        {
            Refuse(m_lines[at]);
        }
        else
        {
            Hand(words);
            if (!vector_statement(m_read.get()))
            {
                Wrong(m_lines[at], m_read->plane.wrong);
            }
        }
        if (!m_outcome.error.empty())
        {
            return m_outcome;
        }
    }
    if (at < m_lines.size())
    {
        if (!vector_open(m_read.get())) // which a vector without values of its own has not needed so far
        {
            Wrong(m_lines[at], m_read->plane.wrong);
            return m_outcome;
        }
        Build();
        Apply();
        m_next = at;
        Simulator::Schedule(NanoSeconds(std::stoull(m_lines[at].words[1])), &Replay::Step, this);
        Simulator::Run();
    }
    if (m_disc)
    {
        m_disc->Dispose();
    }
    Simulator::Destroy();
    return m_outcome;
}

/// Why a disc cannot make the operations of a vector; empty if it can.
std::string
Obstacle(const std::vector<Line>& lines)
{
    bool started = false;
    bool judges = false;
    bool dropped = false; // a verdict dropped a packet, and none has answered since
    std::string now = "0";
    std::string last;
    std::string lastAt;
    std::string verdict;
    for (const auto& line : lines)
    {
        const auto& words = line.words;
        if (words[0] == "policy")
        {
            const auto* policy = vector_policy(words[1].c_str());
            judges = policy && policy->leaving; // Run() says that a policy is unknown
        }
        if (words[0] != "at")
        {
            continue;
        }
        const auto& what = words[2];
        if (std::stoull(words[1]) < std::stoull(now))
        {
            return "the clock steps back";
        }
        if (std::stoull(words[1]) >> 62)
        {
            return "the time is beyond what ns-3 schedules";
        }
        now = words[1];
        started = started || what == "init";
        if (what == "enqueue" && !started)
        {
            return "packets wait before the policy is initialised";
        }
        if (what == "rate" && !started)
        {
            return "rates are reported before the policy is initialised";
        }
        if (what == "lead")
        {
            return "the head of a queue changes without an event";
        }
        if (what == "drop")
        {
            return "the data plane drops a packet unasked";
        }
        if (what == "expired")
        {
            return "expired() is asked though the class is not full";
        }
        if (what == "verdict" && (lastAt != now || last != "pick"))
        {
            return "a verdict comes without a pick at the same time";
        }
        if (what == "send" && (words.size() == 4 || lastAt != now || (last != "pick" && !(last == "verdict" && verdict != "drop"))))
        {
            return "a packet leaves without a pick at the same time";
        }
        if (judges && what == "send" && last != "verdict")
        {
            return "a packet leaves without a verdict";
        }
        if (dropped && what != "pick" && what != "verdict")
        {
            return "the departure after a verdict to drop is not asked for";
        }
        dropped = what == "verdict" ? words[3] == "drop" : dropped && words.back() != "none";
        if (last == "verdict" && verdict == "drop" && (what != "pick" || lastAt != now))
        {
            return "no pick follows a packet dropped by a verdict";
        }
        if (last == "verdict" && verdict != "drop" && what != "send")
        {
            return "no departure follows a verdict";
        }
        verdict = what == "verdict" ? words[3] : "";
        last = what;
        lastAt = now;
    }
    return "";
}

} // namespace

Outcome
ReplayThroughDisc(const std::string& file)
{
    std::ifstream in(file);
    std::vector<Line> lines;
    const auto read = std::make_unique<::vector>();
    Outcome outcome;
    unsigned number = 0;
    for (std::string text; std::getline(in, text);)
    {
        number++;
        if (!vector_words(read.get(), text.data()))
        {
            outcome.error = std::to_string(number) + ": " + read->plane.wrong;
            return outcome;
        }
        if (read->nwords)
        {
            lines.push_back({number, Words(read->words, read->words + read->nwords)});
        }
    }
    outcome.reason = Obstacle(lines);
    return outcome.reason.empty() ? Replay(lines).Run() : outcome;
}

bool
ReplayThroughCore(const std::string& file)
{
    static ::vector state;
    return replay_file(file.c_str(), &state);
}

bool
ReplayTextThroughCore(const std::string& text)
{
    const auto file = std::filesystem::temp_directory_path() / ("linkweir-" + std::to_string(::getpid()) + ".vec");
    std::ofstream(file) << text;
    const bool good = ReplayThroughCore(file.string());
    std::filesystem::remove(file);
    return good;
}

} // namespace linkweir_test
