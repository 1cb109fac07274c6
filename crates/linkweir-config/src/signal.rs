// SPDX-License-Identifier: BSD-3-Clause
//! Values as functions of time, walked forwards: their value now, what they add up to, and when they have added up to a
//! given amount.
//!
//! Everything is made of straight pieces, whose integrals and their inverses are exact (one square root). A cosine is
//! cut into 4096 chords per period: they differ from it by less than 3e-7 of its amplitude, and their sum over a period
//! is that of the cosine itself. Rounds that lie whole inside a request are counted, not walked.

use std::sync::Arc;

/// Chords per period; fewer where they would be shorter than 1 us.
const CHORDS: u64 = 4096;
const FOREVER: u64 = u64::MAX;

/// The capacity that a link offers.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// A rate in bit/s as a function of time; 0 is an outage.
    Rate(Signal),
    /// Delivery opportunities, as recorded by mahimahi: at each instant this many bytes may leave; what is not used is lost.
    Opportunities {
        /// Instants in ns, non-decreasing; the last one is the period, after which the list wraps.
        at_ns: Arc<[u64]>,
        /// Bytes per opportunity (1500 in mahimahi).
        bytes: u32,
    },
}

/// A value as a function of time.
#[derive(Clone, Debug, PartialEq)]
pub enum Signal {
    /// Always the same.
    Constant(f64),
    /// `mean * (1 + amplitude * cos(2 pi t / period + phase))`.
    Cosine {
        /// Mean value.
        mean: f64,
        /// Relative amplitude, 0..=1.
        amplitude: f64,
        /// Period, ns.
        period_ns: u64,
        /// Phase at t = 0, radian.
        phase_rad: f64,
    },
    /// Value `v[i]` from `t[i]` until `t[i+1]`.
    Steps {
        /// (start in ns, value), starts strictly increasing, the first one 0.
        points: Arc<[(u64, f64)]>,
        /// What follows the last point.
        end: End,
    },
    /// Straight lines between points; the last value holds.
    Lines {
        /// (time in ns, value), times strictly increasing, the first one 0.
        points: Arc<[(u64, f64)]>,
    },
}

/// What a list of steps does at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Starts again; the period is this many ns.
    Loop {
        /// Length of one round, ns; larger than the last start.
        period_ns: u64,
    },
    /// Keeps the last value.
    Hold,
    /// The value is 0 from this instant on, ns.
    Stop {
        /// End of the last step, ns.
        at_ns: u64,
    },
}

impl Signal {
    /// A value that it is not below before `until_ns`, and nearly its least one there.
    #[must_use]
    pub fn least(&self, until_ns: u64) -> f64 {
        match self {
            Signal::Constant(value) => *value,
            // Chords lie between two values of the cosine; the last bits are those of rounding.
            Signal::Cosine {
                mean, amplitude, ..
            } => (mean * (1.0 - amplitude)) * (1.0 - 1e-12),
            Signal::Steps { points, end } => {
                let least = points
                    .iter()
                    .map(|point| point.1)
                    .fold(f64::INFINITY, f64::min);
                match end {
                    End::Stop { at_ns } if *at_ns < until_ns => least.min(0.0),
                    _ => least,
                }
            }
            Signal::Lines { points } => {
                let least = points
                    .iter()
                    .map(|point| point.1)
                    .fold(f64::INFINITY, f64::min);
                least - least.abs() * 1e-12
            }
        }
    }
}

/// A point in time: whole nanoseconds and a fraction of one, in [0, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instant {
    /// Whole nanoseconds.
    pub ns: u64,
    fraction: f64,
}

impl Instant {
    /// A whole nanosecond.
    pub fn at(ns: u64) -> Instant {
        Instant { ns, fraction: 0.0 }
    }

    /// `ns` later.
    pub fn plus(self, ns: f64) -> Instant {
        let sum = self.fraction + ns;
        let whole = sum as u64;
        Instant {
            ns: self.ns.saturating_add(whole),
            fraction: sum - whole as f64,
        }
    }

    /// Nanoseconds from `earlier` to this; negative by what a sum of hours was rounded up.
    pub fn since(self, earlier: Instant) -> f64 {
        let whole = i128::from(self.ns) - i128::from(earlier.ns);
        whole as f64 + (self.fraction - earlier.fraction)
    }
}

/// Times from .. until in ns, in order and apart from each other.
pub type Outages = Arc<[(u64, u64)]>;

/// The outage that has begun last by a time, whether or not it lasts, and the beginning of the next.
fn outage_at(outages: &[(u64, u64)], now_ns: u64) -> (Option<(u64, u64)>, Option<u64>) {
    let next = outages.partition_point(|outage| outage.0 <= now_ns);
    let last = next.checked_sub(1).map(|index| outages[index]);
    (last, outages.get(next).map(|outage| outage.0))
}

/// Whether a time lies in an outage.
pub fn is_out(outages: &[(u64, u64)], now_ns: u64) -> bool {
    let (last, _) = outage_at(outages, now_ns);
    last.is_some_and(|(_, until_ns)| now_ns < until_ns)
}

/// A signal and the piece of it that was asked for last.
#[derive(Clone, Debug)]
pub struct Track {
    signal: Signal,
    /// Times at which the value is 0 whatever the signal is.
    outages: Outages,
    piece: Piece,
    /// Length of a round in ns and its integral over ns, where the signal repeats itself.
    round: Option<(u64, f64)>,
}

/// A straight line from one time to another, the end excluded.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from_ns: u64,
    until_ns: u64,
    value: f64,
    slope_per_ns: f64,
}

impl Piece {
    fn flat(from_ns: u64, until_ns: u64, value: f64) -> Piece {
        Piece {
            from_ns,
            until_ns,
            value,
            slope_per_ns: 0.0,
        }
    }

    fn sloped(from_ns: u64, until_ns: u64, first: f64, last: f64) -> Piece {
        Piece {
            from_ns,
            until_ns,
            value: first,
            slope_per_ns: (last - first) / (until_ns - from_ns) as f64,
        }
    }

    /// The part of it that an outage is, or that lies between two, and in which a time lies.
    fn part(self, outages: &[(u64, u64)], now_ns: u64) -> Piece {
        let (last, next_ns) = outage_at(outages, now_ns);
        let until_ns = next_ns.map_or(self.until_ns, |next_ns| next_ns.min(self.until_ns));
        match last {
            Some((from_ns, end_ns)) if now_ns < end_ns => {
                Piece::flat(from_ns.max(self.from_ns), end_ns.min(self.until_ns), 0.0)
            }
            Some((_, end_ns)) if end_ns > self.from_ns => Piece {
                from_ns: end_ns,
                until_ns,
                value: self.value_at(Instant::at(end_ns)),
                ..self
            },
            _ => Piece { until_ns, ..self },
        }
    }

    fn value_at(&self, at: Instant) -> f64 {
        self.value + self.slope_per_ns * ((at.ns - self.from_ns) as f64 + at.fraction)
    }

    /// Time left from `at` to the end, ns.
    fn left(&self, at: Instant) -> f64 {
        if self.until_ns == FOREVER {
            return f64::INFINITY;
        }
        (self.until_ns - at.ns) as f64 - at.fraction
    }
}

impl Track {
    /// At the start of a signal.
    pub fn new(signal: &Signal) -> Track {
        Track::interrupted(signal, &Outages::default())
    }

    /// At the start of a signal that is 0 in outages.
    pub fn interrupted(signal: &Signal, outages: &Outages) -> Track {
        Track {
            signal: signal.clone(),
            outages: outages.clone(),
            piece: locate(signal, 0).part(outages, 0),
            round: round(signal).filter(|_| outages.is_empty()),
        }
    }

    /// The value at a time.
    pub fn value(&mut self, now_ns: u64) -> f64 {
        self.seek(now_ns);
        self.piece.value_at(Instant::at(now_ns))
    }

    /// First time after `now_ns` at which the line changes its course.
    pub fn next_change_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.seek(now_ns);
        (self.piece.until_ns != FOREVER).then_some(self.piece.until_ns)
    }

    /// Integral over time in seconds: bits, where the signal is a rate in bit/s.
    pub fn sum(&mut self, from_ns: u64, until_ns: u64) -> f64 {
        self.sum_from(Instant::at(from_ns), until_ns)
    }

    /// For how long the signal is 0 from one time to another, ns.
    pub fn empty_ns(&mut self, from_ns: u64, until_ns: u64) -> u64 {
        let (mut at_ns, mut empty_ns) = (from_ns, 0);
        while at_ns < until_ns {
            self.seek(at_ns);
            let end_ns = self.piece.until_ns.min(until_ns);
            if self.piece.slope_per_ns == 0.0 && self.piece.value <= 0.0 {
                empty_ns += end_ns - at_ns;
            }
            at_ns = end_ns;
        }
        empty_ns
    }

    /// As [`Track::sum`], from within a nanosecond.
    pub fn sum_from(&mut self, from: Instant, until_ns: u64) -> f64 {
        let mut at = from;
        let mut sum = 0.0;
        while at.ns < until_ns {
            if let Some((period_ns, whole)) = self.round_from(at) {
                let rounds = (until_ns - at.ns) / period_ns;
                sum += rounds as f64 * whole;
                at.ns += rounds * period_ns;
                if at.ns == until_ns {
                    break;
                }
            }
            self.seek(at.ns);
            let end_ns = self.piece.until_ns.min(until_ns);
            let span = (end_ns - at.ns) as f64 - at.fraction;
            sum += (self.piece.value_at(at) + 0.5 * self.piece.slope_per_ns * span) * span;
            at = Instant::at(end_ns);
        }
        sum * 1e-9
    }

    /// The first time at which the integral from `start` on reaches `amount` (with `amount` 0: at which the signal is
    /// not 0); none when that is not before `horizon_ns`.
    #[inline]
    pub fn reaches(&mut self, start: Instant, amount: f64, horizon_ns: u64) -> Option<Instant> {
        if let (Signal::Constant(value), true) = (&self.signal, self.outages.is_empty()) {
            let end = (*value > 0.0).then(|| start.plus(amount * 1e9 / value));
            return end.filter(|end| start.ns < horizon_ns && end.ns < horizon_ns);
        }
        self.walk_to(start, amount, horizon_ns)
    }

    /// The same over any signal, piece by piece.
    fn walk_to(&mut self, start: Instant, amount: f64, horizon_ns: u64) -> Option<Instant> {
        let mut at = start;
        let mut left = amount * 1e9;
        while at.ns < horizon_ns {
            if let Some((period_ns, whole)) = self.round_from(at) {
                let most = (horizon_ns - at.ns) / period_ns;
                if whole <= 0.0 {
                    return None;
                }
                // The last round is walked: the end may lie before its quiet part. Floats saturate as integers.
                let rounds = (((left / whole).ceil() - 1.0) as u64).min(most);
                left = (left - rounds as f64 * whole).max(0.0);
                at.ns += rounds * period_ns;
                if at.ns >= horizon_ns {
                    break;
                }
            }
            self.seek(at.ns);
            let Piece {
                until_ns,
                slope_per_ns,
                ..
            } = self.piece;
            let value = self.piece.value_at(at).max(0.0);
            let span = self.piece.left(at);
            if slope_per_ns == 0.0 {
                // A picosecond of rounding does not carry a packet over an outage.
                if value > 0.0 && left <= value * (span + 1e-3) {
                    let left = left.min(value * span);
                    return Some(at.plus(left / value)).filter(|end| end.ns < horizon_ns);
                }
                if value > 0.0 {
                    left -= value * span;
                }
            } else {
                let whole = (value + 0.5 * slope_per_ns * span) * span;
                if left <= whole && whole > 0.0 {
                    // The stable root of value * d + slope / 2 * d^2 = left.
                    let root = (value * value + 2.0 * slope_per_ns * left).max(0.0).sqrt();
                    let after = if left > 0.0 {
                        2.0 * left / (value + root)
                    } else {
                        0.0
                    };
                    return Some(at.plus(after.min(span))).filter(|end| end.ns < horizon_ns);
                }
                left -= whole;
            }
            if until_ns == FOREVER {
                return None;
            }
            left = left.max(0.0);
            at = Instant::at(until_ns);
        }
        None
    }

    /// The round that begins at this point, if one does.
    #[inline]
    fn round_from(&self, at: Instant) -> Option<(u64, f64)> {
        self.round
            .filter(|(period_ns, _)| at.fraction == 0.0 && at.ns % period_ns == 0)
    }

    #[inline]
    fn seek(&mut self, now_ns: u64) {
        if now_ns < self.piece.from_ns || now_ns >= self.piece.until_ns {
            self.piece = locate(&self.signal, now_ns).part(&self.outages, now_ns);
        }
    }
}

/// A signal from 0 to a time as steps that have its means: as they are where it is constant, otherwise cut into steps of at most
/// `finest_ns`. Each is a start in ns and a value; equal neighbours are one step.
pub fn as_steps(signal: &Signal, until_ns: u64, finest_ns: u64) -> Vec<(u64, f64)> {
    let mut track = Track::new(signal);
    let mut steps: Vec<(u64, f64)> = Vec::new();
    let mut at_ns = 0;
    while at_ns < until_ns {
        track.seek(at_ns);
        let sloped = matches!(signal, Signal::Cosine { .. } | Signal::Lines { .. });
        let (value, end_ns) = if sloped && track.piece.until_ns != FOREVER {
            let end_ns = (at_ns + finest_ns).min(until_ns);
            let span_s = (end_ns - at_ns) as f64 * 1e-9;
            (track.sum(at_ns, end_ns) / span_s, end_ns)
        } else {
            (track.piece.value, track.piece.until_ns)
        };
        if steps.last().is_none_or(|(_, last)| *last != value) {
            steps.push((at_ns, value));
        }
        at_ns = end_ns;
    }
    steps
}

/// Length and integral of a round.
fn round(signal: &Signal) -> Option<(u64, f64)> {
    match signal {
        Signal::Cosine {
            mean, period_ns, ..
        } => Some((*period_ns, mean * *period_ns as f64)),
        Signal::Steps {
            points,
            end: End::Loop { period_ns },
        } => {
            let ends = points
                .iter()
                .skip(1)
                .map(|point| point.0)
                .chain([*period_ns]);
            let whole = points
                .iter()
                .zip(ends)
                .map(|(&(from_ns, value), end_ns)| value * (end_ns - from_ns) as f64);
            Some((*period_ns, whole.sum()))
        }
        Signal::Steps { .. } | Signal::Constant(_) | Signal::Lines { .. } => None,
    }
}

/// The piece that holds at a time.
fn locate(signal: &Signal, now_ns: u64) -> Piece {
    match signal {
        Signal::Constant(value) => Piece::flat(0, FOREVER, *value),
        Signal::Cosine {
            mean,
            amplitude,
            period_ns,
            phase_rad,
        } => {
            let chords = u128::from((period_ns / 1000).clamp(16, CHORDS));
            let start = |chord: u128| (chord * u128::from(*period_ns)).div_ceil(chords) as u64;
            let value = |ns: u64| {
                let turn = (ns % period_ns) as f64 / *period_ns as f64;
                mean * (1.0 + amplitude * libm::cos(std::f64::consts::TAU * turn + phase_rad))
            };
            // Chord i covers ceil(i p / n) .. ceil((i + 1) p / n); this is the last one that begins by now.
            let chord = u128::from(now_ns) * chords / u128::from(*period_ns);
            let (from_ns, until_ns) = (start(chord), start(chord + 1));
            Piece::sloped(from_ns, until_ns, value(from_ns), value(until_ns))
        }
        Signal::Steps { points, end } => {
            let (offset, inside) = match *end {
                End::Loop { period_ns } => (now_ns - now_ns % period_ns, now_ns % period_ns),
                End::Hold | End::Stop { .. } => (0, now_ns),
            };
            let last_end = match *end {
                End::Loop { period_ns } => period_ns,
                End::Hold => FOREVER,
                End::Stop { at_ns } => at_ns,
            };
            if inside >= last_end {
                return Piece::flat(last_end, FOREVER, 0.0);
            }
            let next = points.partition_point(|point| point.0 <= inside);
            let (from_ns, value) = points[next - 1];
            let until_ns = points
                .get(next)
                .map_or(last_end, |point| point.0.min(last_end));
            Piece::flat(offset + from_ns, offset.saturating_add(until_ns), value)
        }
        Signal::Lines { points } => {
            let next = points.partition_point(|point| point.0 <= now_ns);
            let (from_ns, value) = points[next - 1];
            match points.get(next) {
                Some(&(until_ns, last)) => Piece::sloped(from_ns, until_ns, value, last),
                None => Piece::flat(from_ns, FOREVER, value),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn steps_have_the_means_of_the_signal() {
        let until_ns = 20 * S;
        for signal in [
            Signal::Constant(3.0),
            cosine(),
            Signal::Lines {
                points: [(0, 1e6), (S / 3, 2e6), (2 * S, 0.0)].into(),
            },
            Signal::Steps {
                points: [(0, 5.0), (S, 5.0), (2 * S, 0.0)].into(),
                end: End::Loop { period_ns: 3 * S },
            },
        ] {
            let steps = as_steps(&signal, until_ns, S / 1000);
            let ends = steps.iter().skip(1).map(|step| step.0);
            let mut sum = 0.0;
            for ((from_ns, value), end_ns) in steps.iter().zip(ends.chain([until_ns])) {
                let span_s = (end_ns - from_ns) as f64 * 1e-9;
                sum += value * span_s;
                let whole = Track::new(&signal).sum(0, end_ns);
                assert!((sum - whole).abs() <= 1e-9 * whole + 1e-9, "{end_ns}");
            }
        }
        let repeated = Signal::Steps {
            points: [(0, 5.0), (S, 5.0), (2 * S, 0.0)].into(),
            end: End::Loop { period_ns: 3 * S },
        };
        assert_eq!(
            as_steps(&repeated, 5 * S, 1),
            [(0, 5.0), (2 * S, 0.0), (3 * S, 5.0)]
        );
    }

    fn cosine() -> Signal {
        Signal::Cosine {
            mean: 20e6,
            amplitude: 0.3,
            period_ns: 15 * S,
            phase_rad: 0.0,
        }
    }

    #[test]
    fn an_instant_may_be_rounded_past_another() {
        // At 2^45 ns a step of the float is 1/128 ns: 0.999 on top becomes the next whole ns.
        let end = Instant {
            ns: 1 << 45,
            fraction: 0.999,
        };
        let late = Instant::at(0).plus((1u64 << 45) as f64 + 0.999);
        assert_eq!(late.ns, end.ns + 1);
        assert!((end.since(late) + 0.001).abs() < 1e-12);
    }

    #[test]
    fn constant_rates_lose_no_fraction() {
        // 3 bits at 7 bit/s take 428571428.57 ns; seven of them take 3 s to the ns.
        let mut track = Track::new(&Signal::Constant(7.0));
        let mut at = Instant::at(0);
        for _ in 0..7_000 {
            at = track.reaches(at, 3.0, FOREVER).unwrap();
        }
        let late = at.ns as f64 + at.fraction - 3e12;
        assert!(late.abs() < 1e-2, "off by {late} ns");
    }

    #[test]
    fn nothing_adds_up_in_outages() {
        let steps = |end| Signal::Steps {
            points: [(0, 8e6), (4 * S, 3e6), (7 * S, 5e6)].into(),
            end,
        };
        let lines = Signal::Lines {
            points: [(0, 1e6), (3 * S, 9e6), (9 * S, 2e6)].into(),
        };
        let signals = [
            Signal::Constant(4e6),
            cosine(),
            steps(End::Hold),
            steps(End::Loop { period_ns: 11 * S }),
            lines,
        ];
        let outages: Outages = [(0, S), (2 * S, 5 * S), (8 * S, 9 * S), (20 * S, 23 * S)].into();
        let open = [
            (S, 2 * S),
            (5 * S, 8 * S),
            (9 * S, 20 * S),
            (23 * S, 30 * S),
        ];
        for signal in signals {
            let mut plain = Track::new(&signal);
            let mut track = Track::interrupted(&signal, &outages);
            let mut whole = 0.0;
            for (from_ns, until_ns) in open {
                let part = plain.sum(from_ns, until_ns);
                assert!((track.sum(from_ns, until_ns) - part).abs() < 1e-9 * part);
                // What lacks the last bit of a part comes at its very end, and one more after the next outage.
                whole += part;
                let end = track.reaches(Instant::at(0), whole - 1.0, FOREVER).unwrap();
                assert!(
                    end.ns < until_ns && until_ns - end.ns < 10_000,
                    "{signal:?}"
                );
                if until_ns < 30 * S {
                    let end = track.reaches(Instant::at(0), whole + 1.0, FOREVER).unwrap();
                    let next_ns = open
                        .map(|part| part.0)
                        .into_iter()
                        .find(|ns| *ns > until_ns);
                    assert!(
                        (0..10_000).contains(&(end.ns - next_ns.unwrap())),
                        "{signal:?}"
                    );
                }
                for at_ns in [from_ns, until_ns - 1] {
                    let value = plain.value(at_ns);
                    assert!((track.value(at_ns) - value).abs() < 1e-9 * value);
                }
            }
            assert!((track.sum(0, 30 * S) - whole).abs() < 1e-9 * whole);
            for (from_ns, until_ns) in outages.iter().copied() {
                assert_eq!(
                    (track.value(from_ns), track.value(until_ns - 1)),
                    (0.0, 0.0)
                );
                assert!(is_out(&outages, from_ns) && is_out(&outages, until_ns - 1));
                assert!(!is_out(&outages, until_ns));
            }
            let begins = track.reaches(Instant::at(2 * S), 0.0, FOREVER);
            assert_eq!(begins.unwrap().ns, 5 * S);
            assert_eq!(track.reaches(Instant::at(2 * S), 1.0, 5 * S), None);
        }
    }

    #[test]
    fn a_cosine_adds_up_to_its_closed_form() {
        // Integral of m (1 + a cos(2 pi t / p)) = m (t + a p / (2 pi) sin(2 pi t / p)).
        let mut track = Track::new(&cosine());
        for ms in [1, 100, 3_750, 7_500, 9_001, 15_000, 47_123] {
            let t = f64::from(ms) / 1e3;
            let exact = 20e6
                * (t + 0.3 * 15.0 / std::f64::consts::TAU
                    * libm::sin(std::f64::consts::TAU * t / 15.0));
            let sum = track.sum(0, u64::from(ms as u32) * 1_000_000);
            assert!(
                (sum - exact).abs() < 1e-6 * exact,
                "{ms} ms: {sum} instead of {exact}"
            );
        }
        let period = track.sum(0, 15 * S);
        assert!(
            (period - 300e6).abs() < 1e-3,
            "a period adds up to {period}"
        );
    }

    #[test]
    fn reaching_is_the_inverse_of_the_sum() {
        let lines = Signal::Lines {
            points: [
                (0, 0.0),
                (S, 10.0),
                (3 * S, 0.0),
                (4 * S, 0.0),
                (5 * S, 8.0),
            ]
            .into(),
        };
        for signal in [cosine(), lines] {
            let mut track = Track::new(&signal);
            let total = track.sum(0, 6 * S);
            for part in 1..20 {
                let amount = total * f64::from(part) / 20.0;
                let end = track.reaches(Instant::at(0), amount, FOREVER).unwrap();
                let back = track.sum(0, end.ns);
                let next = track.sum(0, end.ns + 1);
                let slack = 1e-12 * total;
                assert!(
                    back <= amount + slack && amount <= next + slack,
                    "{back} .. {next} holds {amount}"
                );
            }
        }
    }

    #[test]
    fn steps_wait_through_outages_and_end_as_chosen() {
        let points: std::sync::Arc<[(u64, f64)]> = [(0, 1000.0), (S, 0.0), (2 * S, 500.0)].into();
        let steps = |end| {
            Track::new(&Signal::Steps {
                points: points.clone(),
                end,
            })
        };
        let reach = |track: &mut Track, from_ns, bits| {
            track
                .reaches(Instant::at(from_ns), bits, 100 * S)
                .map(|end| end.ns)
        };
        let mut hold = steps(End::Hold);
        assert_eq!(reach(&mut hold, 0, 900.0), Some(900_000_000));
        // 500 bits before the outage, 500 more behind it at half the rate.
        assert_eq!(reach(&mut hold, 500_000_000, 1000.0), Some(3 * S));
        assert_eq!(reach(&mut hold, S, 0.0), Some(2 * S));
        let mut round = steps(End::Loop { period_ns: 3 * S });
        assert_eq!(
            reach(&mut round, 0, 1500.0 + 1500.0 + 250.0),
            Some(6 * S + 250_000_000)
        );
        assert_eq!(round.next_change_ns(4 * S), Some(5 * S));
        let mut stop = steps(End::Stop { at_ns: 3 * S });
        assert_eq!(reach(&mut stop, 0, 1500.0), Some(3 * S));
        assert_eq!(reach(&mut stop, 0, 1501.0), None);
        assert_eq!(stop.value(3 * S), 0.0);
        let mut never = Track::new(&Signal::Steps {
            points: [(0, 0.0)].into(),
            end: End::Loop { period_ns: S },
        });
        assert_eq!(reach(&mut never, 0, 1.0), None);
        assert_eq!(reach(&mut never, 5, 0.0), None);
    }

    /// Signals that repeat a million times inside a request are as quick as slow ones, and as right.
    #[test]
    fn whole_rounds_are_counted() {
        let points: std::sync::Arc<[(u64, f64)]> = [(0, 2e9), (300, 0.0)].into();
        let mut fast = Track::new(&Signal::Steps {
            points,
            end: End::Loop { period_ns: 1000 },
        });
        // 600 bits per us: 1.5 s and 100 ns hold 900,000,200 bits.
        assert_eq!(fast.sum(0, 3 * S / 2 + 100), 900_000_200.0);
        assert_eq!(fast.sum(999, 2_100), 800.0);
        let end = |track: &mut Track, from_ns, bits| {
            track
                .reaches(Instant::at(from_ns), bits, FOREVER)
                .map(|i| i.ns)
        };
        assert_eq!(end(&mut fast, 0, 900_000_200.0), Some(3 * S / 2 + 100));
        assert_eq!(end(&mut fast, 100, 400.0), Some(300));
        assert_eq!(end(&mut fast, 0, 1_200.0), Some(1_300));
        assert_eq!(end(&mut fast, 100, 401.0), Some(1_000));
        let cosine = Signal::Cosine {
            mean: 1e9,
            amplitude: 1.0,
            period_ns: 1000,
            phase_rad: 0.0,
        };
        let mut fast = Track::new(&cosine);
        assert!((fast.sum(0, S) - 1e9).abs() < 1.0);
        assert_eq!(end(&mut fast, 0, 1e9), Some(S));
    }
}
