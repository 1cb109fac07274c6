// SPDX-License-Identifier: BSD-3-Clause
//! When handshakes are sent to a peer that does not answer.
//!
//! Attempts begin when something is to be sent and end with an answer, or after 90 s as in WireGuard (Donenfeld 2017, section
//! 6.4); the next packet begins them again. The protocol repeats a handshake every 5 s. Here it is repeated sooner, so that a
//! peer that was restarted is back within a second; the more peers are away, the later, so that this stays a small part of
//! the processor's time. Then attempts to several peers are made at the same times, so that the processor sleeps in between.

/// Time between attempts with few peers that are away, ns. An answer must come before the next attempt but one, so this
/// works for round trips up to 1.5 s.
const SOON_NS: u64 = 750_000_000;
/// Time between attempts as in the protocol, ns: for distant peers, and where many are away.
const LATER_NS: u64 = 5_000_000_000;
/// Attempts may be so much later, ns, so that two ends do not always send at the same time.
const JITTER_NS: u64 = 333_000_000;
/// Time between ticks of open sessions, ns. Where many peers are away, attempts are made at multiples of it.
pub const TICK_NS: u64 = 250_000_000;
/// How long a peer is tried, ns.
const GIVE_UP_NS: u64 = 90_000_000_000;
/// Number of peers that are away from which on attempts are further apart.
const FEW: u64 = 16;

/// The attempts to reach one peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempts {
    /// When they began, ns; none: there are none.
    began_ns: Option<u64>,
    next_ns: u64,
    sent: u64,
    /// Whether an answer came too late, so that the protocol's own time is kept.
    far: bool,
}

impl Attempts {
    /// Something is to be sent: attempts begin unless they are under way.
    pub(super) fn want(&mut self, now_ns: u64) {
        if self.began_ns.is_none() {
            self.began_ns = Some(now_ns);
            self.next_ns = now_ns;
        }
    }

    /// An answer came, so that there is nothing left to try.
    pub(super) fn end(&mut self) {
        self.began_ns = None;
    }

    /// An answer came too late.
    pub(super) fn too_late(&mut self) {
        self.far = true;
    }

    /// When the next is due, ns; none: none are under way.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.began_ns.map(|_| self.next_ns)
    }

    /// Whether so many peers are away that each is asked less often.
    pub(super) fn are_many(away: usize) -> bool {
        away as u64 > FEW
    }

    /// Counts an attempt now and sets the time of the next; `away` peers do not answer. False: the peer was tried for long
    /// enough, and no attempt is made.
    pub(super) fn attempt(&mut self, now_ns: u64, away: usize) -> bool {
        let Some(began_ns) = self.began_ns else {
            return false;
        };
        if now_ns.saturating_sub(began_ns) >= GIVE_UP_NS {
            self.end();
            return false;
        }
        self.sent += 1;
        let wait_ns = if self.far {
            LATER_NS
        } else {
            (SOON_NS * away as u64 / FEW).clamp(SOON_NS, LATER_NS)
        };
        // Any spread will do that differs from attempt to attempt; a multiplier of a known generator gives one.
        let jitter_ns = self.sent.wrapping_mul(6_364_136_223_846_793_005) >> 32;
        self.next_ns = now_ns + wait_ns;
        if wait_ns > SOON_NS {
            self.next_ns += jitter_ns % JITTER_NS;
        }
        if Attempts::are_many(away) {
            self.next_ns = self.next_ns.next_multiple_of(TICK_NS);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Times of the attempts that are made with so many peers away, s.
    fn times(attempts: &mut Attempts, away: usize) -> Vec<f64> {
        let mut times = Vec::new();
        while let Some(due_ns) = attempts.due_ns() {
            if attempts.attempt(due_ns, away) {
                times.push(due_ns as f64 / S as f64);
            }
        }
        times
    }

    #[test]
    fn a_peer_that_is_away_is_tried_for_90_s() {
        let mut attempts = Attempts::default();
        assert_eq!(attempts.due_ns(), None);
        assert!(!attempts.attempt(0, 1), "nothing is to be sent");
        attempts.want(10 * S);
        let soon = times(&mut attempts, 1);
        assert_eq!(soon[..3], [10.0, 10.75, 11.5]);
        assert_eq!(soon.len(), 120);
        assert!(*soon.last().unwrap() < 100.0);
        attempts.want(200 * S);
        assert_eq!(attempts.due_ns(), Some(200 * S), "another packet");
    }

    #[test]
    fn many_that_are_away_are_tried_as_often_together_as_few() {
        let mut attempts = Attempts::default();
        attempts.want(0);
        let forty = times(&mut attempts, 64);
        assert!(forty
            .windows(2)
            .all(|two| (3.0..3.6).contains(&(two[1] - two[0]))));
        attempts.want(0);
        let many = times(&mut attempts, 10_000);
        assert!(many
            .windows(2)
            .all(|two| (5.0..5.6).contains(&(two[1] - two[0]))));
        assert!(
            many[1..].iter().all(|at| (at * 4.0).fract() == 0.0),
            "together with those to other peers: {many:?}"
        );
        let waits: std::collections::BTreeSet<u64> = many[1..]
            .windows(2)
            .map(|two| ((two[1] - two[0]) * 1e6) as u64)
            .collect();
        assert!(waits.len() > 1, "not all wait equally long");
    }

    #[test]
    fn an_answer_ends_them_and_a_late_one_makes_them_rarer() {
        let mut attempts = Attempts::default();
        attempts.want(0);
        assert!(attempts.attempt(0, 1));
        attempts.end();
        assert_eq!(attempts.due_ns(), None);
        attempts.too_late();
        attempts.want(S);
        assert!(attempts.attempt(S, 1));
        assert!(attempts.due_ns().unwrap() >= 6 * S);
    }
}
