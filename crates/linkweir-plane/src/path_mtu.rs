// SPDX-License-Identifier: BSD-3-Clause
//! The largest packet that a path carries, where routers do not say so: their ICMP messages may be filtered. Packets are
//! probed as in RFC 8899, inside the tunnel.
//!
//! A probe is two messages sent together: a small one, and one as long as the packet in question. The peer answers both.
//!
//! * Only the small one is answered, three times: packets of that length do not pass. An outage proves nothing, as then
//!   neither is answered.
//! * The longest packet is probed first. If it does not pass, the least length holds at once, and a binary search finds
//!   what passes.
//! * What was found is probed again every minute, in case the path has changed, and the longest every ten minutes. If that
//!   does not pass, what is longer than what was found is searched again.

/// Time that a long message may take longer than the small one, ns.
const LATER_NS: u64 = 1_000_000_000;
/// After this time without an answer to the small one, a probe has failed to prove anything, ns.
const SILENCE_NS: u64 = 5_000_000_000;
/// Failures that prove that a length does not pass.
const FAILURES: u32 = 3;
/// The search ends when it knows the length this exactly, bytes.
const EXACT_BYTES: u32 = 4;
/// Time between probes of what was found, ns.
const AGAIN_NS: u64 = 60_000_000_000;
/// So many of them, and then the longest is tried.
const LONGER: u32 = 10;

/// A probe that is on its way.
#[derive(Clone, Copy, Debug)]
struct Trial {
    bytes: u32,
    sent_ns: u64,
    /// When the small message was answered, ns.
    heard_ns: Option<u64>,
}

/// What is known of a path.
#[derive(Clone, Debug)]
pub struct PathMtu {
    /// Shortest and longest length in question, bytes.
    least: u32,
    full: u32,
    /// The longest length that is known to pass, and the shortest that is known not to, bytes.
    passes: u32,
    fails: Option<u32>,
    /// What is used, bytes.
    found: u32,
    trial: Option<Trial>,
    failures: u32,
    /// Probes of what was found since the longest was tried.
    again: u32,
    next_ns: u64,
}

impl PathMtu {
    /// A path of which nothing is known; packets of `least` bytes pass, and none is longer than `full`.
    #[must_use]
    pub fn new(now_ns: u64, least: u32, full: u32) -> PathMtu {
        PathMtu {
            least: least.min(full),
            full,
            passes: least.min(full),
            fails: None,
            found: full,
            trial: None,
            failures: 0,
            again: 0,
            next_ns: now_ns,
        }
    }

    /// The longest packet to send, bytes.
    #[must_use]
    pub fn found(&self) -> u32 {
        self.found
    }

    /// When the next probe is due, ns.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        match self.trial {
            None => self.next_ns,
            Some(Trial {
                heard_ns: Some(ns), ..
            }) => ns + LATER_NS,
            Some(Trial { sent_ns, .. }) => sent_ns + SILENCE_NS,
        }
    }

    /// The path may be another: what is known of it is probed again, soon.
    pub fn changed(&mut self, now_ns: u64) {
        let found = self.found;
        *self = PathMtu::new(now_ns, self.least, self.full);
        self.found = found;
    }

    /// No packet is longer than `full` from now on. One that is longer than before is sent once such a length has passed.
    pub fn set_full(&mut self, now_ns: u64, full: u32) {
        if full == self.full {
            return;
        }
        let found = self.found.min(full);
        *self = PathMtu::new(now_ns, self.least, full);
        self.found = found;
    }

    /// The length of the probe to send now, bytes; none: it is not time. Call [`PathMtu::found`] afterwards.
    pub fn probe(&mut self, now_ns: u64) -> Option<u32> {
        if now_ns < self.due_ns() {
            return None;
        }
        if let Some(trial) = self.trial.take() {
            if trial.heard_ns.is_some() {
                self.failures += 1;
            }
            if self.failures == FAILURES {
                self.failed(now_ns, trial.bytes);
                if now_ns < self.next_ns {
                    return None;
                }
            }
        }
        let bytes = self.candidate();
        self.trial = Some(Trial {
            bytes,
            sent_ns: now_ns,
            heard_ns: None,
        });
        Some(bytes)
    }

    /// The message sent at a time was answered: the small one (`bytes` is 0), or that of this length.
    pub fn answered(&mut self, now_ns: u64, sent_ns: u64, bytes: u32) {
        let Some(trial) = &mut self.trial else {
            return;
        };
        if trial.sent_ns != sent_ns {
            return;
        }
        if bytes == 0 {
            trial.heard_ns.get_or_insert(now_ns);
        } else if bytes == trial.bytes {
            self.trial = None;
            self.failures = 0;
            self.passed(now_ns, bytes);
        }
    }

    /// The length to probe next.
    fn candidate(&self) -> u32 {
        match self.fails {
            None => self.full,
            Some(fails) if fails - self.passes > EXACT_BYTES => self.passes.midpoint(fails),
            Some(_) if self.again == LONGER => self.full,
            Some(_) => self.passes,
        }
    }

    fn passed(&mut self, now_ns: u64, bytes: u32) {
        self.again = if self.again == LONGER {
            0
        } else {
            self.again + 1
        };
        if self.fails.is_some_and(|fails| fails <= bytes) {
            // A longer one passes again.
            self.fails = None;
        }
        self.passes = self.passes.max(bytes);
        self.found = self.passes;
        let knows = match self.fails {
            None => self.passes == self.full,
            Some(fails) => fails - self.passes <= EXACT_BYTES,
        };
        self.next_ns = if knows { now_ns + AGAIN_NS } else { now_ns };
    }

    fn failed(&mut self, now_ns: u64, bytes: u32) {
        (self.failures, self.again) = (0, 0);
        if bytes <= self.passes {
            // What passed passes no longer.
            self.passes = self.least;
        }
        self.fails = Some(bytes.max(self.least + 1));
        self.found = self.passes;
        // Nothing shorter can be tried.
        self.next_ns = if bytes <= self.least {
            now_ns + AGAIN_NS
        } else {
            now_ns
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1000 * MS;

    /// A path with a round trip of 30 ms that carries so many bytes; none: it carries nothing. Returns what was used at the
    /// end, and the number of probes.
    fn run(path: &mut PathMtu, (from_s, to_s): (u64, u64), carries: Option<u32>) -> (u32, usize) {
        let mut answers: Vec<(u64, u64, u32)> = Vec::new();
        let mut probes = 0;
        for ms in from_s * 1000..to_s * 1000 {
            let now_ns = ms * MS;
            answers.retain(|(at_ns, sent_ns, bytes)| {
                if *at_ns == now_ns {
                    path.answered(now_ns, *sent_ns, *bytes);
                }
                *at_ns > now_ns
            });
            if let Some(bytes) = path.probe(now_ns) {
                probes += 1;
                let later_ns = now_ns + 30 * MS;
                if let Some(most) = carries {
                    answers.push((later_ns, now_ns, 0));
                    if bytes <= most {
                        answers.push((later_ns + MS, now_ns, bytes));
                    }
                }
            }
        }
        (path.found(), probes)
    }

    #[test]
    fn what_passes_is_found_exactly_enough() {
        for most in [1280, 1281, 1300, 1337, 1400, 1432, 1439] {
            let mut path = PathMtu::new(0, 1280, 1440);
            let (found, probes) = run(&mut path, (0, 60), Some(most));
            assert!(
                found <= most && most - found < EXACT_BYTES,
                "{most}: {found}"
            );
            assert!(probes <= 30, "{most}: {probes}");
        }
    }

    #[test]
    fn a_path_that_carries_all_is_probed_once_a_minute() {
        let mut path = PathMtu::new(0, 1280, 1440);
        assert_eq!(run(&mut path, (0, 600), Some(1440)), (1440, 10));
    }

    #[test]
    fn after_three_failures_only_the_least_is_used() {
        let mut path = PathMtu::new(0, 1280, 1440);
        run(&mut path, (0, 3), Some(1350));
        assert_eq!(path.found(), 1440, "two prove nothing");
        run(&mut path, (3, 4), Some(1350));
        assert_eq!(path.found(), 1280);
    }

    /// The device's MTU is raised: longer packets are sent once such a length has passed. It is lowered: at once.
    #[test]
    fn longer_packets_must_pass_first() {
        let mut path = PathMtu::new(0, 1280, 1428);
        assert_eq!(run(&mut path, (0, 10), Some(1500)).0, 1428);
        path.set_full(10 * S, 1440);
        assert_eq!(path.found(), 1428);
        assert_eq!(run(&mut path, (10, 12), Some(1500)).0, 1440);
        path.set_full(12 * S, 1428);
        assert_eq!(path.found(), 1428);
        path.set_full(12 * S, 1440);
        let (found, _) = run(&mut path, (12, 60), Some(1430));
        assert!((1427..=1430).contains(&found), "{found}");
    }

    #[test]
    fn an_outage_proves_nothing() {
        let mut path = PathMtu::new(0, 1280, 1440);
        let (found, probes) = run(&mut path, (0, 100), None);
        assert_eq!((found, probes), (1440, 20));
        assert_eq!(run(&mut path, (100, 110), Some(1440)).0, 1440);
        assert_eq!(run(&mut path, (110, 300), None).0, 1440);
    }

    #[test]
    fn a_path_that_becomes_narrower_or_wider_is_noticed() {
        let mut path = PathMtu::new(0, 1280, 1440);
        run(&mut path, (0, 10), Some(1440));
        let narrow = run(&mut path, (10, 120), Some(1380)).0;
        assert!((1377..=1380).contains(&narrow), "{narrow}");
        let narrower = run(&mut path, (120, 300), Some(1300)).0;
        assert!((1297..=1300).contains(&narrower), "{narrower}");
        let wider = run(&mut path, (300, 1200), Some(1400)).0;
        assert!((1397..=1400).contains(&wider), "{wider}");
        let wide = run(&mut path, (1200, 2000), Some(1440)).0;
        assert_eq!(wide, 1440);
        // Another way to the peer, which is probed at once.
        path.changed(2000 * S);
        let narrow = run(&mut path, (2000, 2030), Some(1350)).0;
        assert!((1347..=1350).contains(&narrow), "{narrow}");
    }

    #[test]
    fn answers_that_were_not_asked_for_are_ignored() {
        let mut path = PathMtu::new(0, 1280, 1440);
        path.answered(0, 0, 1440);
        let bytes = path.probe(5).unwrap();
        path.answered(6, 4, bytes);
        path.answered(6, 5, bytes + 1);
        assert!(path.trial.is_some());
    }

    #[test]
    fn there_is_nothing_to_find_where_the_least_is_all() {
        let mut path = PathMtu::new(0, 1280, 1280);
        assert_eq!(run(&mut path, (0, 100), Some(1000)).0, 1280);
    }
}
