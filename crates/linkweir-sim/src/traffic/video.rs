// SPDX-License-Identifier: BSD-3-Clause
//! Adaptive video (as DASH and HLS): the player fetches a segment after another over one connection, each at one of the
//! rates of a ladder, and keeps them in a play-out buffer.
//!
//! The player asks for the next segment as soon as the one before is complete, unless the buffer has no room for it; then
//! it waits until there is. Playing begins when the buffer holds `startup`, and begins again at the same level after a
//! stall. Rates follow one of two rules:
//!
//! * BBA-0 of Huang et al. ("A buffer-based approach to rate adaptation", SIGCOMM 2014, algorithm 1): the buffer's level
//!   maps to a rate, the lowest up to the reservoir and from there linearly to the highest at reservoir + cushion. The rate
//!   changes only when that map passes the next higher or lower rate of the ladder.
//! * Throughput: the highest rate that is at most a part of the harmonic mean of the throughputs of the last segments, as
//!   FESTIVE estimates it (Jiang, Sekar and Zhang, CoNEXT 2012, section 4), without its gradual switching.
//!
//! The first segment has the lowest rate. All segments of a rate have the same size.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::experiment::{self, Amount, RateRule};
use crate::random::Random;

use super::action::{Action, Opener};

#[derive(Clone, Debug)]
pub(crate) struct Video {
    random: Random,
    ladder_bps: Arc<[f64]>,
    segment_ns: u64,
    most_ns: u64,
    startup_ns: u64,
    rule: RateRule,
    server_ns: Amount,
    stop_ns: u64,
    begin_ns: u64,
    /// Start of the segment on its way.
    asked_ns: u64,
    /// Rate of the last segment asked for: its place in the ladder.
    rung: usize,
    /// Throughput of the last segments, bit/s.
    throughputs_bps: VecDeque<f64>,
    buffer: Buffer,
    seen: Playback,
}

/// What a viewer saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Playback {
    /// Segments received.
    pub(crate) segments: u64,
    /// Sum of their rates, bit/s.
    pub(crate) rates_bps: f64,
    /// Times a segment's rate differed from that of the one before.
    pub(crate) switches: u64,
    /// From the start to the first picture, ns; none before that.
    pub(crate) startup_ns: Option<u64>,
    /// Times the buffer ran empty after that.
    pub(crate) stalls: u64,
    /// How long playing then stood still, ns.
    pub(crate) stalled_ns: u64,
    /// Time played, ns.
    pub(crate) played_ns: u64,
}

/// The play-out buffer at an instant.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    at_ns: u64,
    level_ns: u64,
    playing: bool,
}

impl Video {
    pub(super) fn new(video: &experiment::Video, stop_ns: u64, random: Random) -> Video {
        Video {
            random,
            ladder_bps: video.ladder_bps.clone(),
            segment_ns: video.segment_ns,
            most_ns: video.buffer_ns,
            startup_ns: video.startup_ns,
            rule: video.adaptation,
            server_ns: video.server_ns.clone(),
            stop_ns,
            begin_ns: 0,
            asked_ns: 0,
            rung: 0,
            throughputs_bps: VecDeque::new(),
            buffer: Buffer::default(),
            seen: Playback::default(),
        }
    }

    pub(super) fn begin(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        self.begin_ns = now_ns;
        self.buffer.at_ns = now_ns;
        actions.push(Action::Open {
            connection: 0,
            by: Opener::Receiver,
        });
        self.ask(now_ns, actions);
    }

    /// Asks for the next segment.
    pub(super) fn ask(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        self.advance(now_ns);
        let rung = match self.rule {
            _ if self.seen.segments == 0 => 0,
            RateRule::Buffer {
                reservoir_ns,
                cushion_ns,
            } => self.by_buffer(reservoir_ns, cushion_ns),
            RateRule::Throughput { safety, .. } => self.by_throughput(safety),
        };
        self.seen.switches += u64::from(self.seen.segments > 0 && rung != self.rung);
        self.rung = rung;
        self.asked_ns = now_ns;
        let server_ns = self.server_ns.draw(&mut self.random);
        actions.extend([
            Action::Begun,
            Action::Ask {
                connection: 0,
                bytes: self.bytes(),
                server_ns,
            },
        ]);
    }

    pub(super) fn on_received(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        self.advance(now_ns);
        let bytes = self.bytes();
        actions.push(Action::Finished {
            start_ns: self.asked_ns,
            bytes,
        });
        self.seen.segments += 1;
        self.seen.rates_bps += self.ladder_bps[self.rung];
        if let RateRule::Throughput { segments, .. } = self.rule {
            let span_s = (now_ns - self.asked_ns).max(1) as f64 / 1e9;
            self.throughputs_bps.push_back(bytes as f64 * 8.0 / span_s);
            if self.throughputs_bps.len() > segments as usize {
                self.throughputs_bps.pop_front();
            }
        }
        self.buffer.level_ns += self.segment_ns;
        if !self.buffer.playing && self.buffer.level_ns >= self.startup_ns {
            self.buffer.playing = true;
            let startup_ns = now_ns - self.begin_ns;
            self.seen.startup_ns.get_or_insert(startup_ns);
        }
        // When there is room for the next one.
        let wait_ns = (self.buffer.level_ns + self.segment_ns).saturating_sub(self.most_ns);
        let at_ns = now_ns.saturating_add(wait_ns);
        if at_ns >= self.stop_ns {
            return;
        }
        if wait_ns == 0 {
            self.ask(now_ns, actions);
        } else {
            actions.push(Action::Wake { at_ns });
        }
    }

    /// What the viewer saw until now, or until the stop.
    pub(super) fn playback(&mut self, now_ns: u64) -> Playback {
        self.advance(now_ns);
        self.seen
    }

    /// Plays what is there, up to now.
    fn advance(&mut self, now_ns: u64) {
        let now_ns = now_ns.min(self.stop_ns).max(self.buffer.at_ns);
        let Buffer {
            at_ns,
            level_ns,
            playing,
        } = &mut self.buffer;
        let span_ns = now_ns - *at_ns;
        *at_ns = now_ns;
        if *playing {
            let played_ns = span_ns.min(*level_ns);
            *level_ns -= played_ns;
            self.seen.played_ns += played_ns;
            if span_ns > played_ns {
                *playing = false;
                self.seen.stalls += 1;
                self.seen.stalled_ns += span_ns - played_ns;
            }
        } else if self.seen.startup_ns.is_some() {
            self.seen.stalled_ns += span_ns;
        }
    }

    /// Bytes of a segment of the present rate.
    fn bytes(&self) -> u64 {
        let bits = self.ladder_bps[self.rung] * self.segment_ns as f64 / 1e9;
        ((bits / 8.0 + 0.5) as u64).max(1)
    }

    fn by_buffer(&self, reservoir_ns: u64, cushion_ns: u64) -> usize {
        let highest = self.ladder_bps.len() - 1;
        let level_ns = self.buffer.level_ns;
        if level_ns <= reservoir_ns {
            return 0;
        }
        if level_ns >= reservoir_ns + cushion_ns {
            return highest;
        }
        let (lowest_bps, highest_bps) = (self.ladder_bps[0], self.ladder_bps[highest]);
        let along = (level_ns - reservoir_ns) as f64 / cushion_ns as f64;
        let mapped_bps = lowest_bps + (highest_bps - lowest_bps) * along;
        let above_bps = self.ladder_bps[(self.rung + 1).min(highest)];
        let below_bps = self.ladder_bps[self.rung.saturating_sub(1)];
        if mapped_bps >= above_bps {
            // The highest rate below the map.
            self.ladder_bps
                .partition_point(|bps| *bps < mapped_bps)
                .max(1)
                - 1
        } else if mapped_bps <= below_bps {
            // The lowest rate above it.
            self.ladder_bps
                .partition_point(|bps| *bps <= mapped_bps)
                .min(highest)
        } else {
            self.rung
        }
    }

    fn by_throughput(&self, safety: f64) -> usize {
        let inverse: f64 = self.throughputs_bps.iter().map(|bps| 1.0 / bps).sum();
        let mean_bps = self.throughputs_bps.len() as f64 / inverse;
        self.ladder_bps
            .partition_point(|bps| *bps <= safety * mean_bps)
            .max(1)
            - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Distribution;

    const S: u64 = 1_000_000_000;

    fn video(rule: RateRule, startup_s: u64) -> Video {
        let video = experiment::Video {
            ladder_bps: [1e6, 2e6, 4e6, 8e6].into(),
            segment_ns: 4 * S,
            buffer_ns: 20 * S,
            startup_ns: startup_s * S,
            adaptation: rule,
            server_ns: Amount {
                distribution: Distribution::Fixed(0.0),
                least: 0.0,
                most: 0.0,
            },
        };
        Video::new(&video, 1000 * S, Random::new(1, 1))
    }

    /// Time and bytes of the request among the actions, and when the player wakes up.
    fn asked(actions: &[Action]) -> (Option<u64>, Option<u64>) {
        let bytes = actions.iter().find_map(|action| match action {
            Action::Ask { bytes, .. } => Some(*bytes),
            _ => None,
        });
        let wake = actions.iter().find_map(|action| match action {
            Action::Wake { at_ns } => Some(*at_ns),
            _ => None,
        });
        (bytes, wake)
    }

    fn received(video: &mut Video, now_ns: u64) -> (Option<u64>, Option<u64>) {
        let mut actions = Vec::new();
        video.on_received(now_ns, &mut actions);
        asked(&actions)
    }

    const BBA: RateRule = RateRule::Buffer {
        reservoir_ns: 6 * S,
        cushion_ns: 10 * S,
    };

    #[test]
    fn playback_worked_by_hand() {
        let mut video = video(BBA, 8);
        let mut actions = Vec::new();
        video.begin(S, &mut actions);
        // Four seconds at 1 Mbit/s.
        assert_eq!(asked(&actions), (Some(500_000), None));
        received(&mut video, 3 * S);
        assert_eq!(video.playback(4 * S).startup_ns, None);
        // 8 s are there at 6 s; nothing more comes for 10 s: 2 s of stall, and it goes on when 8 s are there again.
        received(&mut video, 6 * S);
        received(&mut video, 16 * S);
        received(&mut video, 19 * S);
        let seen = video.playback(20 * S);
        assert_eq!(seen.startup_ns, Some(5 * S));
        assert_eq!((seen.stalls, seen.stalled_ns), (1, 5 * S));
        assert_eq!((seen.segments, seen.played_ns), (4, 9 * S));
        // A stall that lasts counts as far as it has come.
        let seen = video.playback(30 * S);
        assert_eq!((seen.stalls, seen.stalled_ns), (2, 8 * S));
        assert_eq!(seen.played_ns, 16 * S);
    }

    #[test]
    fn a_full_buffer_waits_for_room() {
        let mut video = video(BBA, 4);
        let mut actions = Vec::new();
        video.begin(0, &mut actions);
        for _ in 0..4 {
            let (bytes, wake) = received(&mut video, 0);
            assert!(bytes.is_some() && wake.is_none());
        }
        // Five segments of 4 s fill 20 s: the next is asked for when 4 s are played.
        assert_eq!(received(&mut video, 0), (None, Some(4 * S)));
    }

    #[test]
    fn the_buffer_chooses_as_bba_does() {
        let mut video = video(BBA, 4);
        // From 6 s to 16 s the map rises from 1 to 8 Mbit/s: 0.7 Mbit/s per second.
        let mut choose = |rung: usize, level_s: f64| {
            video.rung = rung;
            video.buffer.level_ns = (level_s * 1e9) as u64;
            video.by_buffer(6 * S, 10 * S)
        };
        assert_eq!(choose(3, 6.0), 0);
        assert_eq!(choose(0, 16.0), 3);
        // At 8 s: 2.4 Mbit/s. From 1 up to 2; 2 stays; 4 stays, as the map is above 2; 8 falls to 4.
        assert_eq!([0, 1, 2, 3].map(|rung| choose(rung, 8.0)), [1, 1, 2, 2]);
        // At 12 s: 5.2 Mbit/s.
        assert_eq!([0, 1, 2, 3].map(|rung| choose(rung, 12.0)), [2, 2, 2, 3]);
        // The map just at a rate: the rate must lie below the map to be taken.
        assert_eq!(choose(0, 6.0 + 1.0 / 0.7 + 1e-9), 1);
    }

    #[test]
    fn throughput_is_a_harmonic_mean() {
        let rule = RateRule::Throughput {
            segments: 2,
            safety: 0.5,
        };
        let mut video = video(rule, 4);
        let mut actions = Vec::new();
        video.begin(0, &mut actions);
        // 4 Mbit in 1 s: half of it is 2 Mbit/s.
        assert_eq!(received(&mut video, S).0, Some(1_000_000));
        // 8 Mbit in 0.5 s: 16 Mbit/s. The harmonic mean of 4 and 16 is 6.4.
        assert_eq!(received(&mut video, S + S / 2).0, Some(1_000_000));
        // 8 Mbit in 0.25 s: of 16 and 32 it is 21.3, half of which is above 8.
        assert_eq!(received(&mut video, S + 3 * S / 4).0, Some(4_000_000));
        assert_eq!(video.playback(2 * S).switches, 2);
    }
}
