// SPDX-License-Identifier: BSD-3-Clause
//! Links over time, made from seeds: capacity and delay change together every 15 s, as a satellite terminal's do when it is
//! given another satellite.

use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A millisecond, ns.
pub const MS: u64 = 1_000_000;
/// A second, ns.
pub const S: u64 = 1000 * MS;
/// Time between two levels, ns.
pub const LEVEL_NS: u64 = 15 * S;
/// Time between two changes within a level, ns.
const RIPPLE_NS: u64 = S / 2;

/// What a link does.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Whether the capacity and the delay change every 15 s.
    pub levels: bool,
    /// Whether these changes begin at a time that the seed gives, and interrupt the link for 50 to 150 ms.
    pub stalls: bool,
    /// By what part of its level the capacity varies every 0.5 s.
    pub ripple: f64,
    /// Whether it varies between the two ends of that range only.
    pub ends_only: bool,
    /// By how much the way there is longer than 30 ms, or than 18 to 45 ms where the delay changes, ns.
    pub further_ns: u64,
    /// The way back, ns.
    pub back_ns: u64,
    /// Greatest additional delay of a packet, ns.
    pub jitter_ns: u64,
    /// Probability that a packet is lost behind the queue.
    pub loss: f64,
    /// When the link is interrupted, ns, and when it returns.
    pub outage_ns: Option<(u64, u64)>,
}

/// A step of the link: from when on it holds, ns, the capacity, bit/s, and the delay, ns.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub from_ns: u64,
    pub bps: f64,
    pub delay_ns: u64,
}

/// A link over time.
#[derive(Clone, Debug)]
pub struct Trace {
    pub steps: Vec<Step>,
    /// When the level changes, ns.
    pub changes_ns: Vec<u64>,
    pub back_ns: u64,
    pub jitter_ns: u64,
    pub loss: f64,
    pub end_ns: u64,
}

/// A random number between two others.
pub fn between(random: &mut Pcg64, least: f64, most: f64) -> f64 {
    let unit = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    least + unit * (most - least)
}

/// The same steps, later by less than 15 s, and the link interrupted where the level changes: a terminal is given another
/// satellite at times that it shares with its neighbours, and that nobody outside knows.
fn stalled(steps: Vec<Step>, phase_ns: u64, random: &mut Pcg64, end_ns: u64) -> Vec<Step> {
    let mut later: Vec<Step> = Vec::new();
    for mut step in steps {
        if step.from_ns > 0 {
            let changes = step.from_ns % LEVEL_NS == 0;
            step.from_ns += phase_ns;
            if changes {
                later.push(Step { bps: 0.0, ..step });
                step.from_ns += (between(random, 50.0, 150.0) * MS as f64) as u64;
            }
        }
        later.push(step);
    }
    later.retain(|step| step.from_ns < end_ns);
    later
}

impl Trace {
    /// The link of this kind that the seed gives.
    pub fn new(kind: Kind, seed: u64, end_ns: u64) -> Trace {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut steps = Vec::new();
        let (mut level_bps, mut delay_ns) = (10e6, 30 * MS);
        let mut ripples = Pcg64::seed_from_u64(seed ^ (1 << 32));
        for from_ns in (0..end_ns).step_by(RIPPLE_NS as usize) {
            if kind.levels && from_ns % LEVEL_NS == 0 {
                level_bps = between(&mut random, 3.5e6, 16e6);
                delay_ns = (between(&mut random, 18.0, 45.0) * MS as f64) as u64;
            }
            let mut part = between(&mut ripples, -1.0, 1.0);
            if kind.ends_only {
                part = part.signum();
            }
            let bps = level_bps * (1.0 + kind.ripple * part);
            let last: Option<&Step> = steps.last();
            if last
                .is_none_or(|last| last.bps != bps || last.delay_ns != delay_ns + kind.further_ns)
            {
                steps.push(Step {
                    from_ns,
                    bps,
                    delay_ns: delay_ns + kind.further_ns,
                });
            }
        }
        if let Some((from_ns, to_ns)) = kind.outage_ns {
            let after = *steps
                .iter()
                .rfind(|step| step.from_ns <= to_ns)
                .expect("the trace begins at 0");
            let before = *steps
                .iter()
                .rfind(|step| step.from_ns <= from_ns)
                .expect("the trace begins at 0");
            steps.retain(|step| step.from_ns < from_ns || step.from_ns > to_ns);
            steps.push(Step {
                from_ns,
                bps: 0.0,
                ..before
            });
            steps.push(Step {
                from_ns: to_ns,
                ..after
            });
            steps.sort_by_key(|step| step.from_ns);
        }
        let mut phase_ns = 0;
        if kind.stalls {
            phase_ns = between(&mut random, 0.0, LEVEL_NS as f64) as u64;
            steps = stalled(steps, phase_ns, &mut random, end_ns);
        }
        let changes = (LEVEL_NS + phase_ns..end_ns).step_by(LEVEL_NS as usize);
        Trace {
            steps,
            changes_ns: changes.filter(|_| kind.levels).collect(),
            back_ns: kind.back_ns,
            jitter_ns: kind.jitter_ns,
            loss: kind.loss,
            end_ns,
        }
    }

    /// The least capacity but for interruptions, and the greatest, bit/s.
    pub fn range_bps(&self) -> (f64, f64) {
        let rates = self.steps.iter().map(|step| step.bps);
        let rates = rates.filter(|bps| *bps > 0.0);
        rates.fold((f64::MAX, 0.0), |(least, most), bps| {
            (bps.min(least), bps.max(most))
        })
    }

    /// The step that holds at a time.
    pub fn at(&self, ns: u64) -> Step {
        let after = self.steps.partition_point(|step| step.from_ns <= ns);
        self.steps[after.saturating_sub(1)]
    }

    /// When a packet of so many bits ends that begins at `from_ns`.
    pub fn ends_ns(&self, from_ns: u64, bits: f64) -> u64 {
        let mut at = self
            .steps
            .partition_point(|step| step.from_ns <= from_ns)
            .saturating_sub(1);
        let (mut now, mut left) = (from_ns as f64, bits);
        loop {
            let bps = self.steps[at].bps;
            let until = self
                .steps
                .get(at + 1)
                .map_or(f64::MAX, |next| next.from_ns as f64);
            let most = if bps > 0.0 && until < f64::MAX {
                bps * (until - now) * 1e-9
            } else if bps > 0.0 {
                f64::MAX
            } else {
                0.0
            };
            if left <= most {
                return (now + left / bps * 1e9).ceil() as u64;
            }
            if until == f64::MAX {
                return u64::MAX / 4;
            }
            left -= most;
            now = until;
            at += 1;
        }
    }

    /// The bits that the link carries between two times.
    pub fn bits(&self, from_ns: u64, to_ns: u64) -> f64 {
        let ends = self.steps.iter().skip(1).map(|step| step.from_ns);
        let ends = ends.chain([u64::MAX]);
        self.steps
            .iter()
            .zip(ends)
            .map(|(step, end_ns)| {
                let time_ns = end_ns.min(to_ns).saturating_sub(step.from_ns.max(from_ns));
                step.bps * time_ns as f64 * 1e-9
            })
            .sum()
    }
}
