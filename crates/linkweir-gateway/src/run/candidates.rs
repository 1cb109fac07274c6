// SPDX-License-Identifier: BSD-3-Clause
//! The addresses that a peer's name has. They are tried one after the other, as in Happy Eyeballs (RFC 8305): first the
//! resolver's choice, then the other version of IP, and so on in turn (section 4). The next one is tried after a few handshakes
//! without an answer, not after 250 ms (section 5), because an answer may have a satellite's round trip. The address
//! that answered last is kept.

use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Handshakes without an answer after which the next address is tried.
const UNANSWERED: u32 = 3;
/// Most addresses of a name.
const MOST: usize = 16;

/// The addresses of a peer's name, and how often the present one was asked in vain.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    /// What the resolver said last.
    found: BTreeSet<SocketAddr>,
    /// In the order in which they are tried.
    order: Vec<SocketAddr>,
    /// The address that answered last.
    answered: Option<SocketAddr>,
    unanswered: u32,
    /// When the name was asked for last, ns.
    asked_ns: Option<u64>,
}

impl Candidates {
    /// Whether the name is to be asked for, so long after the last time; then it counts as asked for.
    pub(super) fn ask(&mut self, now_ns: u64, wait_ns: u64) -> bool {
        let due = self.asked_ns.is_none_or(|ns| ns + wait_ns <= now_ns);
        if due {
            self.asked_ns = Some(now_ns);
        }
        due
    }

    /// Takes the addresses that the name has now. Returns where to send from now on, if that is not the present endpoint.
    pub(super) fn found(
        &mut self,
        found: &[SocketAddr],
        present: Option<SocketAddr>,
    ) -> Option<SocketAddr> {
        let found = &found[..found.len().min(MOST)];
        let set: BTreeSet<SocketAddr> = found.iter().copied().collect();
        // The order differs from answer to answer; it is no reason to leave an address.
        if set == self.found && present.is_some() {
            return None;
        }
        self.order = alternating(found);
        self.found = set;
        if present.is_some_and(|at| self.found.contains(&at)) {
            return None;
        }
        self.unanswered = 0;
        // A peer behind an address that its name does not have may be there again.
        self.order
            .extend(self.answered.filter(|at| !self.found.contains(at)));
        self.order.first().copied()
    }

    /// A handshake is to be sent. Returns where to, if another address is to be tried than the present one.
    pub(super) fn attempt(&mut self, present: SocketAddr) -> Option<SocketAddr> {
        self.unanswered += 1;
        if self.unanswered <= UNANSWERED {
            return None;
        }
        self.unanswered = 1;
        let at = self.order.iter().position(|address| *address == present);
        let next = at.map_or(0, |at| (at + 1) % self.order.len());
        let next = self.order.get(next).copied();
        next.filter(|address| *address != present)
    }

    /// Whether there is another address to try.
    pub(super) fn has_other(&self) -> bool {
        self.order.len() > 1
    }

    /// The peer answered from there.
    pub(super) fn answered(&mut self, from: SocketAddr) {
        self.answered = Some(from);
        self.unanswered = 0;
    }
}

/// Addresses whose versions of IP take turns; each version keeps its order, and the first address stays the first.
fn alternating(found: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = found.first() else {
        return Vec::new();
    };
    let mut seen = BTreeSet::new();
    let once = found
        .iter()
        .copied()
        .filter(|address| seen.insert(*address));
    let (one, other): (Vec<_>, Vec<_>) = once.partition(|at| at.is_ipv4() == first.is_ipv4());
    let longer = one.len().max(other.len());
    let turns = (0..longer).flat_map(|at| [one.get(at), other.get(at)]);
    turns.flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        format!("{text}:51820").parse().unwrap()
    }

    fn all(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| at(text)).collect()
    }

    /// Where so many handshakes are sent.
    fn tried(
        candidates: &mut Candidates,
        mut present: SocketAddr,
        count: usize,
    ) -> Vec<SocketAddr> {
        let attempts = (0..count).map(|_| {
            present = candidates.attempt(present).unwrap_or(present);
            present
        });
        attempts.collect()
    }

    #[test]
    fn versions_of_ip_take_turns() {
        // RFC 8305, section 4: the first family of the resolver's order first, then each in turn.
        let found = all(&["[::1]", "[::2]", "[::3]", "10.0.0.1", "[::2]", "10.0.0.2"]);
        let order = all(&["[::1]", "10.0.0.1", "[::2]", "10.0.0.2", "[::3]"]);
        assert_eq!(alternating(&found), order);
        assert_eq!(alternating(&[]), []);
    }

    #[test]
    fn each_address_has_three_handshakes_and_then_the_next_its_turn() {
        let mut candidates = Candidates::default();
        let (v6, v4) = (at("[::1]"), at("10.0.0.1"));
        assert_eq!(candidates.found(&[v6, v4], None), Some(v6));
        let expected = [v6, v6, v6, v4, v4, v4, v6, v6, v6, v4];
        assert_eq!(tried(&mut candidates, v6, 10), expected);
    }

    #[test]
    fn an_address_that_answers_is_kept_until_the_name_has_others() {
        let mut candidates = Candidates::default();
        let [dead, good, new, roamed] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9"].map(at);
        assert_eq!(candidates.found(&[dead, good], None), Some(dead));
        assert_eq!(tried(&mut candidates, dead, 4)[3], good);
        candidates.answered(good);
        assert_eq!(candidates.found(&[dead, good], Some(good)), None);
        assert_eq!(
            candidates.found(&[good, dead], Some(good)),
            None,
            "another order"
        );
        assert_eq!(
            candidates.found(&[good, new], Some(good)),
            None,
            "it has it still"
        );
        assert_eq!(tried(&mut candidates, good, 3), [good; 3]);
        // It moved: the new address first, and the one that answered stays one of those that are tried.
        assert_eq!(candidates.found(&[new], Some(good)), Some(new));
        let expected = [new, new, new, good, good, good, new];
        assert_eq!(tried(&mut candidates, new, 7), expected);
        // A peer that sends from elsewhere is where it sends from, whatever its name says as before.
        candidates.answered(roamed);
        assert_eq!(candidates.found(&[new], Some(roamed)), None);
    }

    #[test]
    fn a_single_address_is_tried_on_and_on() {
        let mut candidates = Candidates::default();
        let only = at("10.0.0.1");
        assert_eq!(
            tried(&mut Candidates::default(), only, 10),
            [only; 10],
            "no name"
        );
        assert_eq!(candidates.found(&[only], None), Some(only));
        assert_eq!(tried(&mut candidates, only, 10), [only; 10]);
        assert_eq!(candidates.found(&[], Some(only)), None, "the name has gone");
        assert_eq!(tried(&mut candidates, only, 10), [only; 10]);
    }

    #[test]
    fn a_name_is_asked_for_again_after_a_while() {
        let mut candidates = Candidates::default();
        let asked: Vec<u64> = (0..50).filter(|now| candidates.ask(*now, 20)).collect();
        assert_eq!(asked, [0, 20, 40]);
    }
}
