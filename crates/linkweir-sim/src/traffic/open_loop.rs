// SPDX-License-Identifier: BSD-3-Clause
//! Open-loop sources, which do not react to losses and delays: when is the next packet created, and how long is it?
//!
//! A rate that changes over time is integrated, not sampled: the next packet is created when the rate has added up to
//! the bits of the gap. A constant rate gives constant gaps, an outage of the source delays its next packet, and a
//! Poisson source becomes the inhomogeneous Poisson process of its rate.

use linkweir_config::signal::{Instant, Track};

use crate::experiment::{Lengths, Signal, Sizes, Traffic};
use crate::random::Random;

/// An open-loop source. Times are those of creation at the source.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    random: Random,
    sizes: Sizes,
    rate: Track,
    gaps: Gaps,
    /// Each gap is multiplied by a random number of 1 - jitter .. 1 + jitter; not Poisson's.
    jitter: f64,
    /// Creation of the next packet.
    next: Instant,
    stop_ns: u64,
}

#[derive(Clone, Debug)]
enum Gaps {
    Regular,
    Poisson {
        mean_bits: f64,
    },
    /// Regular, but calls that start together are not in step.
    Calls,
    Bursts {
        on_ns: f64,
        off_ns: f64,
        lengths: Lengths,
        end: Instant,
    },
}

impl Source {
    /// The source of this traffic and the time of its first packet; `None` for other traffic. Nothing is created
    /// at `stop_ns` or later.
    pub(crate) fn new(
        traffic: &Traffic,
        start_ns: u64,
        stop_ns: u64,
        random: Random,
    ) -> Option<Source> {
        let packets;
        let mut jitter = 0.0;
        let (rate, sizes, gaps) = match traffic {
            Traffic::Cbr {
                rate_bps,
                jitter: of_gaps,
                packet,
            } => {
                jitter = *of_gaps;
                (rate_bps.clone(), packet, Gaps::Regular)
            }
            Traffic::Poisson { rate_bps, packet } => (
                rate_bps.clone(),
                packet,
                Gaps::Poisson {
                    mean_bits: 8.0 * packet.mean_bytes(),
                },
            ),
            Traffic::OnOff {
                rate_bps,
                on_ns,
                off_ns,
                lengths,
                packet,
            } => (
                Signal::Constant(*rate_bps),
                packet,
                Gaps::Bursts {
                    on_ns: *on_ns as f64,
                    off_ns: *off_ns as f64,
                    lengths: *lengths,
                    end: Instant::at(start_ns),
                },
            ),
            Traffic::Voice {
                packet_bytes,
                interval_ns,
                talkspurts_ns,
                jitter: of_gaps,
            } => {
                jitter = *of_gaps;
                let rate_bps = 8e9 * f64::from(*packet_bytes) / *interval_ns as f64;
                packets = Sizes::Fixed(*packet_bytes);
                let gaps = match talkspurts_ns {
                    None => Gaps::Calls,
                    Some((on_ns, off_ns)) => Gaps::Bursts {
                        on_ns: *on_ns as f64,
                        off_ns: *off_ns as f64,
                        lengths: Lengths::Exponential,
                        end: Instant::at(start_ns),
                    },
                };
                (Signal::Constant(rate_bps), &packets, gaps)
            }
            Traffic::Greedy { .. }
            | Traffic::Tcp(_)
            | Traffic::Replay { .. }
            | Traffic::Application(_) => return None,
        };
        let mut source = Source {
            random,
            sizes: sizes.clone(),
            rate: Track::new(&rate),
            gaps,
            jitter,
            next: Instant::at(start_ns),
            stop_ns,
        };
        source.begin();
        Some(source)
    }

    /// When the next packet is created, if ever.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (self.next.ns < self.stop_ns).then_some(self.next.ns)
    }

    /// Creates the packet that is due; returns its bytes.
    pub(crate) fn create(&mut self) -> u32 {
        let bytes = self.sizes.draw(&mut self.random);
        let bits = 8.0 * f64::from(bytes);
        match self.gaps {
            Gaps::Poisson { mean_bits } => {
                let bits = mean_bits * self.random.exponential();
                self.wait(bits);
            }
            Gaps::Regular | Gaps::Calls => {
                let stretch = self.stretch();
                self.wait(bits * stretch);
            }
            Gaps::Bursts { .. } => {
                let stretch = self.stretch();
                self.wait_in_bursts(bits * stretch);
            }
        }
        bytes
    }

    /// What jitter multiplies the next gap by.
    fn stretch(&mut self) -> f64 {
        if self.jitter > 0.0 {
            1.0 + self.jitter * (2.0 * self.random.unit() - 1.0)
        } else {
            1.0
        }
    }

    /// From the start to the first packet: a regular source sends as soon as its rate is not 0, a Poisson source after
    /// one gap, bursts and calls at a random phase of a gap.
    fn begin(&mut self) {
        match self.gaps {
            Gaps::Regular => self.wait(0.0),
            Gaps::Calls => {
                let bits = 8.0 * self.sizes.mean_bytes() * self.random.unit();
                self.wait(bits);
            }
            Gaps::Poisson { mean_bits } => {
                let bits = mean_bits * self.random.exponential();
                self.wait(bits);
            }
            Gaps::Bursts { on_ns, lengths, .. } => {
                let length = on_ns * self.draw(lengths);
                let Gaps::Bursts { end, .. } = &mut self.gaps else {
                    unreachable!("matched above")
                };
                *end = end.plus(length);
                let bits = 8.0 * self.sizes.mean_bytes() * self.random.unit();
                self.wait_in_bursts(bits);
            }
        }
    }

    fn wait(&mut self, bits: f64) {
        self.next = self
            .rate
            .reaches(self.next, bits, self.stop_ns)
            .unwrap_or(Instant::at(u64::MAX));
    }

    /// The rate adds up during bursts only, so that the mean rate is exactly rate * on / (on + off).
    fn wait_in_bursts(&mut self, bits: f64) {
        let Gaps::Bursts {
            on_ns,
            off_ns,
            lengths,
            mut end,
        } = self.gaps
        else {
            unreachable!("only for bursts");
        };
        let rate = self.rate.value(0);
        let mut left_ns = if rate > 0.0 {
            bits * 1e9 / rate
        } else {
            f64::INFINITY
        };
        let mut at = self.next;
        while at.ns < self.stop_ns {
            let burst_ns = end.since(at);
            if left_ns < burst_ns {
                at = at.plus(left_ns);
                break;
            }
            left_ns -= burst_ns;
            at = end.plus(off_ns * self.draw(lengths));
            end = at.plus(on_ns * self.draw(lengths));
        }
        self.next = at;
        let Gaps::Bursts { end: slot, .. } = &mut self.gaps else {
            unreachable!("matched above")
        };
        *slot = end;
    }

    fn draw(&mut self, lengths: Lengths) -> f64 {
        match lengths {
            Lengths::Exponential => self.random.exponential(),
            Lengths::Pareto { shape } => self.random.pareto(shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn times(traffic: &Traffic, stop_ns: u64) -> Vec<u64> {
        let mut source = Source::new(traffic, S, stop_ns, Random::new(5, 1)).unwrap();
        let mut times = Vec::new();
        while let Some(at_ns) = source.next_ns() {
            times.push(at_ns);
            source.create();
        }
        times
    }

    #[test]
    fn a_constant_rate_gives_constant_gaps() {
        let traffic = Traffic::Cbr {
            rate_bps: Signal::Constant(12e6),
            jitter: 0.0,
            packet: Sizes::Fixed(1500),
        };
        assert_eq!(
            times(&traffic, S + 3_000_001),
            [S, S + 1_000_000, S + 2_000_000, S + 3_000_000]
        );
        assert_eq!(times(&traffic, S + 3_000_000).len(), 3);
    }

    #[test]
    fn a_changing_rate_is_integrated() {
        // 1 packet/s, silent from 2.5 s to 4 s, then 2 packets/s: half of the gap begun at 2 s is left at 4 s.
        let packet = Sizes::Fixed(125);
        let points = [(0, 1e3), (2_500_000_000, 0.0), (4 * S, 2e3)].into();
        let rate_bps = Signal::Steps {
            points,
            end: crate::experiment::End::Hold,
        };
        let traffic = Traffic::Cbr {
            rate_bps,
            jitter: 0.0,
            packet,
        };
        assert_eq!(
            times(&traffic, 5 * S),
            [S, 2 * S, 4_250_000_000, 4_750_000_000]
        );
    }

    #[test]
    fn jitter_stays_inside_its_bounds_and_keeps_the_mean() {
        let traffic = Traffic::Cbr {
            rate_bps: Signal::Constant(12e6),
            jitter: 0.3,
            packet: Sizes::Fixed(1500),
        };
        let times = times(&traffic, 101 * S);
        assert!(times
            .windows(2)
            .all(|w| (700_000..=1_300_000).contains(&(w[1] - w[0]))));
        // 100,000 gaps of sd 0.1732 ms: four standard errors of their sum are 0.219 s of 100 s.
        assert!((times.len() as f64 - 100_000.0).abs() < 219.0);
    }

    #[test]
    fn calls_send_at_even_intervals_or_in_talkspurts() {
        let voice = |talkspurts_ns| Traffic::Voice {
            packet_bytes: 200,
            interval_ns: 20_000_000,
            talkspurts_ns,
            jitter: 0.0,
        };
        let always = times(&voice(None), 11 * S);
        assert_eq!(always.len(), 500);
        assert!(always[0] < S + 20_000_000 && always[0] > S);
        let even = |w: &[u64]| w[1] - w[0] == 20_000_000;
        assert!(always.windows(2).all(even));
        // Active for 1.004 s of 2.591 s, 7,720 times: a standard error is 1 %.
        let spurts = times(&voice(Some((1_004_000_000, 1_587_000_000))), 20_001 * S).len() as f64;
        let expected = 1e6 * 1.004 / 2.591;
        assert!((spurts - expected).abs() < 0.04 * expected, "{spurts}");
    }

    #[test]
    fn calls_with_jitter_keep_their_mean_rate_and_lose_their_phase() {
        let voice = |talkspurts_ns| Traffic::Voice {
            packet_bytes: 200,
            interval_ns: 20_000_000,
            talkspurts_ns,
            jitter: 0.5,
        };
        let always = times(&voice(None), 2001 * S);
        let gaps: Vec<u64> = always.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps
            .iter()
            .all(|gap| (10_000_000..=30_000_000).contains(gap)));
        // Uniform: a tenth of the gaps is in each tenth of the range; the standard deviation of the count is 95.
        let short = gaps.iter().filter(|gap| **gap < 12_000_000).count();
        assert!(short.abs_diff(10_000) < 400, "{short}");
        // 100,000 gaps of sd 5.77 ms: four standard errors of their sum are 7.3 s, 365 packets.
        assert!(always.len().abs_diff(100_000) < 365, "{}", always.len());
        // In talk spurts as well: active for 1.004 s of 2.591 s, 7,720 times, with a standard error of 1 %.
        let spurts = times(&voice(Some((1_004_000_000, 1_587_000_000))), 20_001 * S);
        let expected = 1e6 * 1.004 / 2.591;
        assert!((spurts.len() as f64 - expected).abs() < 0.04 * expected);
        let even = spurts.windows(2).filter(|w| w[1] - w[0] == 20_000_000);
        assert!(even.count() < 100);
    }

    #[test]
    fn poisson_and_bursts_have_their_mean_rates() {
        let packet = Sizes::Fixed(125);
        let poisson = Traffic::Poisson {
            rate_bps: Signal::Constant(1e6),
            packet: packet.clone(),
        };
        assert!((times(&poisson, 101 * S).len() as f64 - 1e5).abs() < 4.0 * 316.3);
        // On half of the time; 5000 cycles of sd(on) = 10 ms each, so four standard errors are about 4 % / sqrt(2).
        for lengths in [Lengths::Exponential, Lengths::Pareto { shape: 2.5 }] {
            let on_ns = S / 100;
            let traffic = Traffic::OnOff {
                rate_bps: 1e6,
                on_ns,
                off_ns: on_ns,
                lengths,
                packet: packet.clone(),
            };
            let count = times(&traffic, 101 * S).len() as f64;
            assert!(
                (count - 5e4).abs() < 0.04 * 5e4,
                "{lengths:?}: {count} packets instead of 50000"
            );
        }
    }
}
