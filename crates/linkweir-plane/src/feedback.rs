// SPDX-License-Identifier: BSD-3-Clause
//! Estimates a link's capacity from what the far end reports that it received, and says how fast to send.
//!
//! ```text
//!   sender ── packets, and fifty times a second a mark with the time it was sent ──▶ receiver
//!          ◀── a report: the mark's time, the time it came, all that came so far ──
//! ```
//!
//! Both are packets inside the tunnel, so WireGuard seals them and rejects replays. They look like IPv6 of an experimental
//! protocol (RFC 3692) between two link-local addresses, and never reach the device. The two clocks need not agree, because
//! only differences count.
//!
//! The rule compares delay and received rate, as that of Carlucci, De Cicco, Holmer and Mascolo, 2016. Theirs raises and
//! lowers a rate until the delay is steady. Ours computes the queue:
//!
//! * `estimate.rs` tells capacity, base delay and queue apart.
//! * The queue now is that of the last answered mark, with what was sent since then, less what the link has sent meanwhile.
//!   The pace is the capacity plus or minus what brings it to its target within `HORIZON_NS` (`Feedback::pace`).
//! * Now and then the pace dips, so that a queue shows that was there all the time, as in BBR (Cardwell, Cheng, Gunn, Yeganeh
//!   and Jacobson, 2016).
//! * While no mark is answered, little is sent. The capacity stays, so that its rate is taken up again after an outage.
//! * `schedule.rs` learns the period at which the path changes. Little is sent while it does (`Cut`).
//! * `lowest.rs` bounds the growth of the capacity, if the user wants falls to be anticipated.

mod estimate;
mod lowest;
mod message;
mod reporter;
mod schedule;

use std::collections::VecDeque;

use crate::setup::{Bounds, Wire};

use estimate::{Estimate, Sample};
use message::apart_ns;
pub use message::{
    is_message, Message, PathName, PathProbe, Probe, Report, MESSAGE_BYTES, OF_LENGTH,
};
pub use reporter::Reporter;
use schedule::Schedule;

/// Time between marks while packets are sent, ns.
pub const MARK_NS: u64 = 20_000_000;
/// Time between marks while no packets are sent, ns.
const IDLE_MARK_NS: u64 = 1_000_000_000;
/// Time between marks while none is answered, ns.
const OUT_MARK_NS: u64 = 100_000_000;
/// Most marks remembered that have no report yet.
const UNANSWERED: usize = 256;
/// Time in which the queue is brought to its target, ns.
const HORIZON_NS: f64 = 80e6;
/// Jitter that would leave all of the rate unused, ns, and the greatest part that is left unused.
const MARGIN_NS: f64 = 30e6;
const MOST_MARGIN: f64 = 0.13;
/// Least and greatest part of the capacity at which packets are sent.
const LEAST: f64 = 0.15;
const MOST: f64 = 1.3;
/// The part of the capacity at which packets are sent while no mark is answered.
const OUT: f64 = 0.03;
/// The part of what is received at which packets are sent to find out whether a queue is one.
const DOUBT: f64 = 0.7;
/// How much longer than the last round trip an answer may take before an outage is assumed, ns.
const PATIENCE_NS: u64 = 120_000_000;
/// The part of the capacity that is sent in a dip, how long one is, the longest, and the time from one to the next, ns.
const DIPPED: f64 = 0.75;
const DIP_NS: u64 = 20_000_000;
const LONGEST_DIP_NS: u64 = 80_000_000;
const DIPS_NS: u64 = 1_000_000_000;
/// A base delay that is less by so much shows a queue that was always there, ns.
const EMPTIER_NS: f64 = 0.7e6;
/// How much more may be received between two marks than was sent: packets may overtake a mark.
const MOST_CAME: f64 = 2.0;
/// How long before the path changes by schedule the rate is lowered, ns, and how long after it the capacity is looked for, ns.
const BEFORE_NS: u64 = 30_000_000;
const AFTER_NS: u64 = 25_000_000;
/// The part of the lowest capacity seen at such times at which packets are then sent.
const LOWEST: f64 = 0.85;
/// The part of the capacity that is taken for the lowest before others are known.
const FIRST_LOWEST: f64 = 0.4;
/// How long after a change it is compared with what was before, ns.
const COMPARE_NS: u64 = 1_500_000_000;
/// How many such times are remembered.
const REMEMBERED: usize = 16;
/// The part of the highest capacity seen at such times that a burst has, and how long the slowest link takes to send it, ns.
const BURST: f64 = 1.3;
const BURST_NS: f64 = 30e6;
/// Greatest jitter with which a burst shows the capacity, ns.
const BURST_NOISE_NS: f64 = 0.4e6;

/// Counters of the packets sent to a peer since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub pkts: u64,
    /// Their bytes on the link.
    pub bytes: u64,
    /// Where peers share the link: bytes sent on it to all of them.
    pub shared_bytes: Option<u64>,
}

/// How fast to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steer {
    /// The rate at which packets leave, bit/s.
    pub pace_bps: u64,
    /// The capacity that is estimated, bit/s.
    pub capacity_bps: u64,
    /// Whether a report said so.
    pub reported: bool,
}

/// A mark without a report.
#[derive(Clone, Copy, Debug)]
struct Mark {
    sent_ns: u64,
    /// What was sent before it, and what the rule allowed to be sent, bits on the link.
    sent_bits: f64,
    allowed_bits: f64,
    /// What was sent before it to this peer alone, marks included, and the marks alone, bits.
    own_bits: f64,
    mark_bits: f64,
}

/// What is done about a change of the path that is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cut {
    /// Little is sent until some time after the change, ns.
    Before(u64),
    /// A burst is sent until then, ns; it began with a mark sent at that time.
    Burst(u64, u64),
    /// Little is sent until a mark is answered that was sent at this time or later, ns; the burst began then, ns.
    Answer(u64, Option<u64>),
}

/// Less is sent for a short time, so that a queue shows which is always there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Dip {
    /// Until when less is sent, and when its effect is known, ns; and when the next begins, ns.
    until_ns: u64,
    known_ns: u64,
    next_ns: u64,
    /// How long it is, ns, and the base delay before it.
    long_ns: u64,
    base_ns: i64,
}

/// The sender's end: what the reports of a peer say about the path to it.
#[derive(Debug)]
pub struct Feedback {
    bounds: Bounds,
    estimate: Estimate,
    /// The rate at which packets are sent, bit/s, since when, ns, and what was allowed before that, bits.
    rate_bps: f64,
    since_ns: u64,
    allowed_bits: f64,
    /// Marks without a report, the earliest first.
    unanswered: VecDeque<Mark>,
    /// When the last mark was sent, ns, the packets sent before it, and the least time until the next, ns.
    marked_ns: Option<u64>,
    marked_pkts: u64,
    apart_ns: u64,
    /// Bits of all marks so far.
    mark_bits: f64,
    /// What was sent until the last mark, and bits that the link sent to all peers.
    sent: Sent,
    whole_bits: f64,
    /// The last report and its mark.
    last: Option<(Report, Mark)>,
    /// The shortest round trip of late, ns.
    rtt_ns: u64,
    /// Whether no mark has been answered for too long.
    out: bool,
    reports: u64,
    schedule: Schedule,
    cut: Option<Cut>,
    dip: Dip,
    /// Whether less is sent for it now.
    dips: bool,
    /// Whether a mark is due whatever else is.
    mark_now: bool,
    /// The capacities that changes of the path have ended, bit/s.
    levels_bps: VecDeque<f64>,
    /// The capacity and the base delay before the last change, and when to compare them with those after it, ns.
    compare: Option<(f64, i64, u64)>,
}

/// Facts known about the path to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Reports accepted.
    pub reports: u64,
    /// The last queueing delay, ns.
    pub queue_ns: u64,
    /// The received rate of the last reports, bit/s on the link.
    pub received_bps: u64,
    /// The period at which the path changes by schedule, ns; none while none is known.
    pub period_ns: Option<u64>,
}

impl Feedback {
    /// Begins with this capacity and no reports.
    #[must_use]
    pub fn new(bounds: Bounds, capacity_bps: u64) -> Feedback {
        let mut begins = Feedback {
            bounds,
            estimate: Estimate::new(capacity_bps as f64),
            rate_bps: capacity_bps as f64,
            since_ns: 0,
            allowed_bits: 0.0,
            unanswered: VecDeque::new(),
            marked_ns: None,
            marked_pkts: 0,
            apart_ns: 0,
            mark_bits: 0.0,
            sent: Sent::default(),
            whole_bits: 0.0,
            last: None,
            rtt_ns: 0,
            out: false,
            reports: 0,
            schedule: Schedule::default(),
            cut: None,
            dip: Dip::default(),
            dips: false,
            mark_now: false,
            levels_bps: VecDeque::new(),
            compare: None,
        };
        begins.clamp();
        begins
    }

    /// The bounds of the capacity.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Changes the bounds. What was learned stays.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
        if !bounds.anticipate {
            self.estimate.do_not_anticipate();
        }
        self.clamp();
    }

    /// Keeps the capacity within its bounds.
    fn clamp(&mut self) {
        let Bounds {
            floor_bps,
            ceiling_bps,
            ..
        } = self.bounds;
        let (least, most) = (floor_bps as f64, ceiling_bps as f64);
        let bps = &mut self.estimate.capacity_bps;
        *bps = bps.max(least).min(most);
        self.rate_bps = self.rate_bps.max(least).min(most);
    }

    /// When the next mark is due, ns, if `sent_pkts` packets were sent so far.
    #[must_use]
    pub fn due_ns(&self, sent_pkts: u64) -> u64 {
        if self.mark_now {
            return 0;
        }
        let idle = sent_pkts == self.marked_pkts;
        let apart_ns = match (self.out, idle) {
            (true, _) => OUT_MARK_NS,
            (false, true) => IDLE_MARK_NS,
            (false, false) => MARK_NS,
        };
        self.marked_ns
            .map_or(0, |ns| ns + apart_ns.max(self.apart_ns))
    }

    /// What the rule allowed to be sent until now, bits.
    fn allowed_bits(&self, now_ns: u64) -> f64 {
        let time_ns = now_ns.saturating_sub(self.since_ns);
        self.allowed_bits + self.rate_bps * time_ns as f64 * 1e-9
    }

    /// Makes the mark that is due now. It takes `wire_bytes` on the link; `sent` is what was sent before it.
    pub fn mark(&mut self, now_ns: u64, sent: Sent, wire_bytes: u32) -> Message {
        self.apart_ns = apart_ns(wire_bytes, self.estimate.capacity_bps, 1);
        self.marked_ns = Some(now_ns);
        self.mark_now = false;
        self.marked_pkts = sent.pkts;
        if self.unanswered.len() == UNANSWERED {
            self.unanswered.pop_front();
        }
        let bits = 8.0 * f64::from(wire_bytes);
        self.whole_bits += self.whole_since(sent, bits);
        self.mark_bits += bits;
        self.sent = sent;
        self.unanswered.push_back(Mark {
            sent_ns: now_ns,
            sent_bits: self.whole_bits,
            allowed_bits: self.allowed_bits(now_ns),
            own_bits: 8.0 * sent.bytes as f64 + self.mark_bits,
            mark_bits: self.mark_bits,
        });
        Message::Mark { sent_ns: now_ns }
    }

    /// Bits that the link has sent since the last mark, with so many of a mark. On a shared link these are all peers': they
    /// are in the queue that the marks of each pass.
    fn whole_since(&self, sent: Sent, mark_bits: f64) -> f64 {
        let own_bytes = sent.bytes.saturating_sub(self.sent.bytes);
        let shared = self.sent.shared_bytes.zip(sent.shared_bytes);
        let all_bytes = shared.map_or(own_bytes, |(before, now)| now.saturating_sub(before));
        8.0 * all_bytes.max(own_bytes) as f64 + mark_bits
    }

    /// Takes a report; `wire` is what a packet takes on the link. Returns how fast to send; none if no mark waits for this
    /// report.
    pub fn reported(
        &mut self,
        now_ns: u64,
        report: Report,
        sent: Sent,
        wire: Wire,
    ) -> Option<Steer> {
        let mut marks = self.unanswered.iter();
        let place = marks.position(|mark| mark.sent_ns == report.sent_ns)?;
        // Earlier marks are dropped with it: of several, the receiver answers only the last.
        let mark = self.unanswered.drain(..=place).next_back()?;
        if let Some((last, _)) = self.last {
            let continues = report.received_ns > last.received_ns
                && report.pkts >= last.pkts
                && report.bytes >= last.bytes;
            if !continues {
                // The counters went back, so the receiver was restarted, and nothing is known about it.
                self.estimate.forget_path();
            }
        }
        self.reports += 1;
        let rtt_ns = now_ns.saturating_sub(report.sent_ns);
        // The round trip without a queue changes little; it forgets by an eighth.
        self.rtt_ns = if self.rtt_ns == 0 {
            rtt_ns
        } else {
            rtt_ns.min(self.rtt_ns + self.rtt_ns / 64 + 1)
        };
        let sample = self.sample(report, mark, wire);
        self.last = Some((report, mark));
        self.out = false;
        let path = (self.rtt_ns, self.bounds.delay_ns);
        if let Some(surprise) = self.estimate.add(now_ns, sample, path) {
            self.schedule.surprised(surprise);
        }
        self.end_cut(now_ns, report.sent_ns);
        self.dip(now_ns);
        self.clamp();
        if self.bounds.anticipate {
            self.estimate.anticipate(now_ns, self.rtt_ns + MARK_NS);
        }
        let steer = self.pace(now_ns, sent);
        Some(Steer {
            reported: true,
            ..steer
        })
    }

    /// A report and what is known of its mark.
    fn sample(&self, report: Report, mark: Mark, wire: Wire) -> Sample {
        let before = self.estimate.last();
        let (received_bits, sent_bits) =
            before.map_or((0.0, 0.0), |last| (last.received_bits, last.sent_bits));
        let whole_bits = mark.sent_bits - sent_bits;
        // Without a report before, no rate is measured.
        let part = self.last.map_or(1.0, |(last, last_mark)| {
            let own_bits = mark.own_bits - last_mark.own_bits;
            let pkts = report.pkts.saturating_sub(last.pkts);
            let bytes = report.bytes.saturating_sub(last.bytes);
            // The receiver does not count marks.
            let marks = mark.mark_bits - last_mark.mark_bits;
            let came_bits = 8.0 * wire.bytes(pkts, bytes) + marks;
            if own_bits > 0.0 {
                (came_bits / own_bits).clamp(0.0, MOST_CAME)
            } else {
                1.0
            }
        });
        Sample {
            sent_ns: report.sent_ns,
            received_ns: report.received_ns,
            sent_bits: mark.sent_bits,
            allowed_bits: mark.allowed_bits,
            received_bits: received_bits + part * whole_bits,
        }
    }

    /// Ends the time around a change once a mark that was sent after it is answered.
    fn end_cut(&mut self, now_ns: u64, sent_ns: u64) {
        if let Some(Cut::Answer(from_ns, burst)) = self.cut {
            if sent_ns >= from_ns {
                self.cut = None;
                self.estimate.capacity_bps = self.low_bps();
                self.estimate.searching = true;
                if let Some(begun_ns) = burst {
                    let most_bps = self.burst_bps();
                    self.estimate.of_burst(begun_ns, most_bps);
                }
                self.estimate.rebase(burst.unwrap_or(sent_ns), now_ns);
                self.dip.next_ns = now_ns;
            }
        }
        if let Some((bps, base_ns, until_ns)) = self.compare {
            if now_ns >= until_ns {
                let ratio = (self.estimate.capacity_bps / bps).ln().abs();
                let moved_ns = self.estimate.base_ns().abs_diff(base_ns) as f64;
                let noise_ns = self.estimate.noise_ns;
                self.schedule
                    .changed(ratio > 0.2 || moved_ns > 2e6 + 2.0 * noise_ns);
                self.compare = None;
            }
        }
    }

    /// Begins a dip that is due. One that found the path shorter than it seemed is repeated at once.
    fn dip(&mut self, now_ns: u64) {
        let base_ns = self.estimate.base_ns();
        let dip = &mut self.dip;
        if dip.known_ns != 0 && now_ns >= dip.known_ns {
            let found = dip.base_ns - base_ns > (EMPTIER_NS + self.estimate.noise_ns) as i64;
            dip.long_ns = if found {
                (2 * dip.long_ns).min(LONGEST_DIP_NS)
            } else {
                DIP_NS
            };
            dip.next_ns = if found { now_ns } else { now_ns + DIPS_NS };
            dip.known_ns = 0;
        }
        if dip.known_ns == 0 && now_ns >= dip.next_ns && self.estimate.used && self.cut.is_none() {
            // Long enough for a mark to be sent at its end.
            dip.long_ns = dip.long_ns.max(DIP_NS).max(self.apart_ns * 3 / 2);
            dip.base_ns = base_ns;
            dip.until_ns = now_ns + dip.long_ns;
            dip.known_ns = dip.until_ns + self.rtt_ns + MARK_NS;
        }
    }

    /// The rate at which packets are sent while the path changes, bit/s.
    fn low_bps(&self) -> f64 {
        let lowest_bps = self.levels_bps.iter().copied().fold(f64::MAX, f64::min);
        (LOWEST * lowest_bps).min(self.estimate.capacity_bps)
    }

    /// When [`Feedback::turn`] changes the rate by itself, ns.
    #[must_use]
    pub fn turn_ns(&self) -> u64 {
        let out_ns = if self.out { u64::MAX } else { self.out_ns() };
        let cut_ns = match self.cut {
            None => self
                .schedule
                .next_ns()
                .map_or(u64::MAX, |ns| ns.saturating_sub(BEFORE_NS)),
            Some(Cut::Before(ns) | Cut::Burst(ns, _)) => ns,
            Some(Cut::Answer(..)) => u64::MAX,
        };
        let dip_ns = if self.dips {
            self.dip.until_ns
        } else {
            u64::MAX
        };
        out_ns.min(cut_ns).min(dip_ns)
    }

    /// When an outage is assumed if no mark is answered until then, ns. One mark alone may have been lost.
    fn out_ns(&self) -> u64 {
        match self.unanswered.front() {
            Some(mark) if self.reports > 0 && self.unanswered.len() > 1 => {
                mark.sent_ns + self.rtt_ns + PATIENCE_NS
            }
            _ => u64::MAX,
        }
    }

    /// Changes the rate as time passes.
    pub fn turn(&mut self, now_ns: u64, sent: Sent) -> Steer {
        self.out |= self.out_ns() <= now_ns;
        match self.cut {
            None => self.begin_cut(now_ns),
            Some(Cut::Before(ns)) if ns <= now_ns => {
                self.mark_now = true;
                self.cut = Some(
                    if self.estimate.noise_ns <= BURST_NOISE_NS && self.estimate.used {
                        let time_ns = BURST_NS * self.low_bps() / self.burst_bps();
                        Cut::Burst(now_ns + time_ns as u64, now_ns)
                    } else {
                        Cut::Answer(now_ns, None)
                    },
                );
            }
            Some(Cut::Burst(ns, begun_ns)) if ns <= now_ns => {
                self.mark_now = true;
                self.cut = Some(Cut::Answer(now_ns, Some(begun_ns)));
            }
            Some(_) => {}
        }
        self.pace(now_ns, sent)
    }

    /// Begins to send little if the path is about to change.
    fn begin_cut(&mut self, now_ns: u64) {
        let Some(next_ns) = self.schedule.next_ns() else {
            return;
        };
        if now_ns + BEFORE_NS < next_ns {
            return;
        }
        self.schedule.passed(next_ns.max(now_ns));
        if self.out || now_ns > next_ns {
            return;
        }
        if self.levels_bps.len() == REMEMBERED {
            self.levels_bps.pop_front();
        }
        let bps = self.estimate.capacity_bps;
        self.levels_bps.push_back(bps);
        if self.levels_bps.len() == 1 {
            self.levels_bps.push_back(FIRST_LOWEST * bps);
        }
        self.compare = Some((bps, self.estimate.base_ns(), next_ns + COMPARE_NS));
        self.cut = Some(Cut::Before(next_ns + AFTER_NS));
    }

    /// The rate of a burst, bit/s.
    fn burst_bps(&self) -> f64 {
        BURST * self.levels_bps.iter().copied().fold(1.0, f64::max)
    }

    /// The rate that brings the queue to its target.
    fn pace(&mut self, now_ns: u64, sent: Sent) -> Steer {
        let allowed_bits = self.allowed_bits(now_ns);
        self.dips = false;
        let capacity_bps = self.estimate.capacity_bps;
        let target_ns = self.estimate.target_ns(self.bounds.delay_ns);
        let rate_bps = if self.out {
            OUT * capacity_bps
        } else if let Some(cut) = self.cut {
            match cut {
                Cut::Burst(..) => self.burst_bps(),
                Cut::Before(_) | Cut::Answer(..) => self.low_bps(),
            }
        } else if !self.estimate.used {
            capacity_bps
        } else {
            let queue_ns = self.queue_now_ns(now_ns, sent);
            let noise_ns = self.estimate.noise_ns;
            let steer = 1.0 + (target_ns - queue_ns) / (HORIZON_NS + 5.0 * noise_ns);
            let margin = (noise_ns / MARGIN_NS).min(MOST_MARGIN);
            let mut bps = capacity_bps * (steer.clamp(LEAST, MOST) - margin);
            self.dips = now_ns < self.dip.until_ns;
            if self.dips {
                bps = bps.min(DIPPED * capacity_bps);
            }
            if self.estimate.doubts(now_ns, self.rtt_ns) {
                bps = bps.min(DOUBT * capacity_bps);
            }
            bps
        };
        self.allowed_bits = allowed_bits;
        self.since_ns = now_ns;
        self.rate_bps = rate_bps;
        self.clamp();
        Steer {
            pace_bps: self.rate_bps as u64,
            capacity_bps: self.estimate.capacity_bps as u64,
            reported: false,
        }
    }

    /// The queue in front of the link now, as far as it can be predicted from what was sent since the last mark that was
    /// answered, ns.
    fn queue_now_ns(&self, now_ns: u64, sent: Sent) -> f64 {
        let Some(last) = self.estimate.last() else {
            return 0.0;
        };
        let per_bit_ns = 1e9 / self.estimate.capacity_bps;
        let marks = self
            .unanswered
            .iter()
            .map(|mark| (mark.sent_ns, mark.sent_bits));
        let now = (now_ns, self.whole_bits + self.whole_since(sent, 0.0));
        let (mut at_ns, mut bits) = (last.sent_ns, last.sent_bits);
        let mut queue_ns = self.estimate.queue_ns;
        for (next_ns, next_bits) in marks.chain([now]) {
            let passed_ns = next_ns.saturating_sub(at_ns) as f64;
            queue_ns = (queue_ns + (next_bits - bits) * per_bit_ns - passed_ns).max(0.0);
            (at_ns, bits) = (next_ns, next_bits);
        }
        queue_ns
    }

    /// When the first mark was sent that is not answered, ns.
    pub(crate) fn unanswered_ns(&self) -> Option<u64> {
        self.unanswered.front().map(|mark| mark.sent_ns)
    }

    /// The bytes that were sent before the mark of this time, marks left out; none if it does not wait for a report.
    pub(crate) fn sent_before(&self, sent_ns: u64) -> Option<u64> {
        let mark = self
            .unanswered
            .iter()
            .find(|mark| mark.sent_ns == sent_ns)?;
        Some(((mark.own_bits - mark.mark_bits) / 8.0) as u64)
    }

    /// Whether no mark has been answered for too long.
    pub(crate) fn is_out(&self) -> bool {
        self.out
    }

    /// The shortest round trip of late, ns.
    pub(crate) fn rtt_ns(&self) -> u64 {
        self.rtt_ns
    }

    /// Reports come from another receiver now: the capacity stays, the delay is another one.
    pub(crate) fn other_path(&mut self) {
        let searching = self.estimate.searching;
        self.estimate.forget_path();
        self.estimate.searching = searching;
        self.rtt_ns = 0;
    }

    /// Facts known about the path.
    #[must_use]
    pub fn known(&self) -> Known {
        Known {
            reports: self.reports,
            queue_ns: self.estimate.queue_ns as u64,
            received_bps: self.estimate.received_bps as u64,
            period_ns: self.schedule.period_ns(),
        }
    }
}

#[cfg(test)]
mod tests;
