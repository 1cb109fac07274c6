// SPDX-License-Identifier: BSD-3-Clause
//! Play-out buffers: the delay and the loss that a listener gets, of which the E-model computes how a call sounds.
//!
//! A packet received is played at its creation plus the play-out delay; one that arrives later counts as lost. Packets are
//! looked at in the order in which they were created, as soon as it is known what became of each, so a call holds only the
//! packets that are under way.
//!
//! * A fixed buffer's play-out delay is its length above the least delay of the flow so far (ITU-T G.1020, section 7.2, with
//!   the least delay known so far).
//! * The adaptive buffer is algorithm 4 of Ramjee, Kurose, Towsley and Schulzrinne 1994 (INFOCOM, "Adaptive playout
//!   mechanisms for packetized audio applications in wide-area networks"): means of delay and of its variation with a
//!   weight of 1/8 for the newest packet, four variations above the mean, and a mode in which the mean follows a spike. Its
//!   thresholds are 800 and 63 samples at 8 kHz. Deviations: the variation starts at 15 ms instead of 0, the play-out delay
//!   is at least 10 ms above the mean, and where no pause begins a talk spurt it changes once a second.
//!
//! Counts are written once per 10 s. BurstR (ITU-T G.107, section 3.5) is the mean length of the gaps divided by the one that
//! the same loss at random would give, 1 / (1 - loss).

use std::collections::VecDeque;

use crate::experiment::{self, CALL_INTERVAL_NS as INTERVAL_NS};

use super::column::{packets, seconds, unitless, Column};

/// A longer time between two packets is a pause, and the second one begins a talk spurt.
const PAUSE_NS: u64 = 100_000_000;
/// Longest time for which the adaptive buffer keeps its play-out delay.
const ADJUST_NS: u64 = 1_000_000_000;
/// Variation with which the adaptive buffer starts, ns.
const FIRST_VARIATION_NS: f64 = 15e6;
/// Least play-out delay of the adaptive buffer above the mean, ns.
const LEAST_MARGIN_NS: f64 = 10e6;
/// Thresholds of the spike mode: 800 and 63 samples of 125 us.
const SPIKE_NS: f64 = 100e6;
const SPIKE_OVER_NS: f64 = 7_875_000.0;
/// A packet under way for longer is late for every buffer, so that those behind it need not wait.
const LONGEST_NS: u64 = 100_000_000_000;

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate {
    UnderWay,
    Lost,
    /// It was delivered with this delay.
    Received(u64),
}

/// The receivers of one flow, one for each buffer.
#[derive(Debug)]
pub(super) struct Call {
    /// Packets under way, and those behind them: time of creation, and fate.
    packets: VecDeque<(u64, Fate)>,
    /// Number of the first of them.
    first: u64,
    receivers: Vec<Receiver>,
    /// Start of the first interval, and the number of the last one.
    from_ns: u64,
    last: u64,
}

impl Call {
    pub(super) fn new(
        flow: &experiment::Flow,
        class: &str,
        from_ns: u64,
        duration_ns: u64,
    ) -> Option<Call> {
        let buffers = &flow.measures.playout;
        let receivers = buffers
            .iter()
            .map(|buffer| Receiver::new(class, &flow.name, buffer));
        (!buffers.is_empty()).then(|| Call {
            packets: VecDeque::new(),
            first: 0,
            receivers: receivers.collect(),
            from_ns,
            last: (duration_ns.saturating_sub(from_ns) / INTERVAL_NS).max(1) - 1,
        })
    }

    /// The next packet was created.
    pub(super) fn created(&mut self, created_ns: u64) {
        self.packets.push_back((created_ns, Fate::UnderWay));
    }

    /// It is known what became of a packet. Intervals that are over go to `write`. One that was under way for too long counted
    /// as late already.
    pub(super) fn ended(&mut self, number: u64, fate: Fate, write: &mut impl FnMut(&Receiver)) {
        let Some(place) = number.checked_sub(self.first) else {
            return;
        };
        let packet = self.packets.get_mut(place as usize);
        packet.expect("a packet ends once").1 = fate;
        let newest_ns = self.packets.back().map_or(0, |newest| newest.0);
        while let Some(&(created_ns, fate)) = self.packets.front() {
            let delay_ns = match fate {
                Fate::UnderWay if newest_ns - created_ns > LONGEST_NS => Some(u64::MAX),
                Fate::UnderWay => break,
                Fate::Lost => None,
                Fate::Received(delay_ns) => Some(delay_ns),
            };
            self.packets.pop_front();
            self.first += 1;
            let interval = self.interval(created_ns);
            for receiver in &mut self.receivers {
                receiver.take(created_ns, delay_ns, interval, write);
            }
        }
    }

    /// The run ends: packets under way that should have been played by now are late.
    pub(super) fn finish(&mut self, now_ns: u64, write: &mut impl FnMut(&Receiver)) {
        let packets = std::mem::take(&mut self.packets);
        for (created_ns, fate) in packets {
            let interval = self.interval(created_ns);
            for receiver in &mut self.receivers {
                match fate {
                    Fate::UnderWay if receiver.is_due(created_ns, now_ns) => {
                        receiver.take(created_ns, Some(u64::MAX), interval, write);
                    }
                    Fate::UnderWay => {}
                    Fate::Lost => receiver.take(created_ns, None, interval, write),
                    Fate::Received(delay_ns) => {
                        receiver.take(created_ns, Some(delay_ns), interval, write);
                    }
                }
            }
        }
        for receiver in &mut self.receivers {
            receiver.end_interval(write);
        }
    }

    /// Start of the interval to which a packet counts, if any, ns. The last one also has what does not fill one.
    fn interval(&self, created_ns: u64) -> Option<u64> {
        let since_ns = created_ns.checked_sub(self.from_ns)?;
        Some(self.from_ns + (since_ns / INTERVAL_NS).min(self.last) * INTERVAL_NS)
    }
}

/// What a buffer did in an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    due_pkts: u64,
    lost_pkts: u64,
    late_pkts: u64,
    /// Runs of packets that are not played.
    gaps: u64,
    /// The last packet was not played.
    in_gap: bool,
    /// Play-out delays, and of how many packets.
    playout_ns: u128,
    playout_pkts: u64,
}

/// A receiver with one buffer.
#[derive(Debug)]
pub(super) struct Receiver {
    class: String,
    flow: String,
    name: String,
    buffer: Buffer,
    /// Start of the interval being counted, ns.
    interval_ns: Option<u64>,
    counts: Counts,
}

#[derive(Debug)]
enum Buffer {
    Fixed {
        length_ns: u64,
        least_ns: Option<u64>,
    },
    Adaptive(Adaptive),
}

impl Receiver {
    fn new(class: &str, flow: &str, playout: &experiment::Playout) -> Receiver {
        Receiver {
            class: class.to_owned(),
            flow: flow.to_owned(),
            name: playout.name.clone(),
            buffer: match playout.buffer_ns {
                Some(length_ns) => Buffer::Fixed {
                    length_ns,
                    least_ns: None,
                },
                None => Buffer::Adaptive(Adaptive::default()),
            },
            interval_ns: None,
            counts: Counts::default(),
        }
    }

    /// The next packet in the order of creation; `u64::MAX` is the delay of one that is still under way.
    fn take(
        &mut self,
        created_ns: u64,
        delay_ns: Option<u64>,
        interval_ns: Option<u64>,
        write: &mut impl FnMut(&Receiver),
    ) {
        let known_ns = delay_ns.filter(|delay_ns| *delay_ns < u64::MAX);
        let playout_ns = match &mut self.buffer {
            Buffer::Fixed {
                length_ns,
                least_ns,
            } => {
                *least_ns = match (*least_ns, known_ns) {
                    (Some(least_ns), Some(delay_ns)) => Some(least_ns.min(delay_ns)),
                    (least_ns, delay_ns) => least_ns.or(delay_ns),
                };
                least_ns.map(|least_ns| least_ns + *length_ns)
            }
            Buffer::Adaptive(adaptive) => adaptive.playout_ns(created_ns, known_ns),
        };
        if interval_ns != self.interval_ns {
            self.end_interval(write);
            self.interval_ns = interval_ns;
        }
        if interval_ns.is_none() {
            return;
        }
        let late = delay_ns.is_some_and(|delay_ns| playout_ns.is_none_or(|ns| delay_ns > ns));
        let counts = &mut self.counts;
        counts.due_pkts += 1;
        counts.lost_pkts += u64::from(delay_ns.is_none());
        counts.late_pkts += u64::from(late);
        let missing = delay_ns.is_none() || late;
        counts.gaps += u64::from(missing && !counts.in_gap);
        counts.in_gap = missing;
        if let Some(playout_ns) = playout_ns {
            counts.playout_ns += u128::from(playout_ns);
            counts.playout_pkts += 1;
        }
    }

    /// Whether a packet should have been played by now.
    fn is_due(&self, created_ns: u64, now_ns: u64) -> bool {
        let playout_ns = match &self.buffer {
            Buffer::Fixed {
                length_ns,
                least_ns,
            } => least_ns.unwrap_or(0) + length_ns,
            Buffer::Adaptive(adaptive) => adaptive.playout_ns.unwrap_or(SPIKE_NS as u64),
        };
        created_ns + playout_ns < now_ns
    }

    fn end_interval(&mut self, write: &mut impl FnMut(&Receiver)) {
        if self.counts.due_pkts > 0 {
            write(self);
        }
        self.counts = Counts::default();
    }

    fn loss(&self) -> f64 {
        (self.counts.lost_pkts + self.counts.late_pkts) as f64 / self.counts.due_pkts as f64
    }

    /// Never below 1, which stands for losses at random; also where nothing is lost.
    fn burst_r(&self) -> f64 {
        if self.counts.gaps == 0 {
            return 1.0;
        }
        let missing_pkts = self.counts.lost_pkts + self.counts.late_pkts;
        (missing_pkts as f64 / self.counts.gaps as f64 * (1.0 - self.loss())).max(1.0)
    }
}

/// State of the adaptive buffer; delays in ns.
#[derive(Debug, Default)]
struct Adaptive {
    mean_ns: f64,
    variation_ns: f64,
    /// The last two delays, the newest first; none before the first packet.
    delays_ns: Option<[f64; 2]>,
    /// In the spike mode, the slope of the delays.
    spike_ns: Option<f64>,
    playout_ns: Option<u64>,
    /// Creation of the packet at which it was set, and of the last packet.
    set_at_ns: u64,
    last_created_ns: u64,
    /// A talk spurt has begun of which no packet was received yet.
    begins: bool,
}

impl Adaptive {
    /// The play-out delay of the next packet.
    fn playout_ns(&mut self, created_ns: u64, delay_ns: Option<u64>) -> Option<u64> {
        self.begins |= created_ns - self.last_created_ns > PAUSE_NS;
        self.last_created_ns = created_ns;
        let Some(delay_ns) = delay_ns else {
            return self.playout_ns;
        };
        self.estimate(delay_ns as f64);
        let old = self.playout_ns.is_none() || created_ns - self.set_at_ns >= ADJUST_NS;
        if self.begins || old {
            let margin_ns = (4.0 * self.variation_ns).max(LEAST_MARGIN_NS);
            self.playout_ns = Some((self.mean_ns + margin_ns) as u64);
            self.set_at_ns = created_ns;
            self.begins = false;
        }
        self.playout_ns
    }

    fn estimate(&mut self, now_ns: f64) {
        let Some([before_ns, second_ns]) = self.delays_ns else {
            self.mean_ns = now_ns;
            self.variation_ns = FIRST_VARIATION_NS;
            self.delays_ns = Some([now_ns, now_ns]);
            return;
        };
        self.delays_ns = Some([now_ns, before_ns]);
        match &mut self.spike_ns {
            None => {
                if (now_ns - before_ns).abs() > 2.0 * self.variation_ns + SPIKE_NS {
                    self.spike_ns = Some(0.0);
                }
            }
            Some(slope_ns) => {
                *slope_ns = *slope_ns / 2.0 + ((2.0 * now_ns - before_ns - second_ns) / 8.0).abs();
                if *slope_ns <= SPIKE_OVER_NS {
                    self.spike_ns = None;
                    return;
                }
            }
        }
        self.mean_ns = match self.spike_ns {
            None => 0.125 * now_ns + 0.875 * self.mean_ns,
            Some(_) => self.mean_ns + now_ns - before_ns,
        };
        let away_ns = (now_ns - self.mean_ns).abs();
        self.variation_ns = 0.125 * away_ns + 0.875 * self.variation_ns;
    }
}

/// Columns of table `voice`.
pub(super) const VOICE: &[Column<Receiver, ()>] = &[
    seconds(
        "t_s",
        "Start of the interval of 10 s; the last one may be longer.",
    )
    .real(|r, ()| r.interval_ns.map(|ns| ns as f64 / 1e9)),
    unitless("class", "Name of the class.").name(|r, ()| &r.class),
    unitless("flow", "Name of the flow.").name(|r, ()| &r.flow),
    unitless("buffer", "The play-out buffer: its length, or adaptive.").name(|r, ()| &r.name),
    packets(
        "due_pkts",
        "Packets created in the interval whose time to be played has come.",
    )
    .count(|r, ()| r.counts.due_pkts),
    packets(
        "lost_pkts",
        "Those of them that were dropped or lost on the way.",
    )
    .count(|r, ()| r.counts.lost_pkts),
    packets(
        "late_pkts",
        "Those of them that came too late to be played.",
    )
    .count(|r, ()| r.counts.late_pkts),
    unitless("gaps", "Runs of packets that were not played.").count(|r, ()| r.counts.gaps),
    unitless("loss", "Part of the packets that were not played.").real(|r, ()| Some(r.loss())),
    unitless(
        "burst_r",
        "BurstR of ITU-T G.107: mean length of the gaps over that of losses at random, at least 1.",
    )
    .real(|r, ()| Some(r.burst_r())),
    seconds(
        "delay_s",
        "Mean play-out delay: from a packet's creation to its turn to be played.",
    )
    .real(|r, ()| {
        let counts = &r.counts;
        let known = counts.playout_pkts > 0;
        known.then(|| counts.playout_ns as f64 / counts.playout_pkts as f64 / 1e9)
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_behind_one_that_never_ends_do_not_wait_for_it() {
        const S: u64 = 1_000_000_000;
        let buffer = experiment::Playout {
            name: "60ms".to_owned(),
            buffer_ns: Some(S / 20),
        };
        let mut call = Call {
            packets: VecDeque::new(),
            first: 0,
            receivers: vec![Receiver::new("class", "flow", &buffer)],
            from_ns: 0,
            last: 1000,
        };
        let mut counted = (0, 0, 0);
        let mut write = |receiver: &Receiver| {
            counted.0 += receiver.counts.due_pkts;
            counted.1 += receiver.counts.lost_pkts;
            counted.2 += receiver.counts.late_pkts;
        };
        for number in 0..1000 {
            call.created(number * S);
            if number > 0 {
                call.ended(number, Fate::Lost, &mut write);
            }
            assert!(call.packets.len() <= 102);
        }
        call.ended(0, Fate::Lost, &mut write);
        call.finish(1000 * S, &mut write);
        assert_eq!(counted, (1000, 999, 1));
    }
}
