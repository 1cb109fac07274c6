// SPDX-License-Identifier: BSD-3-Clause
//! Whether a peer answers. A peer that receives something and has nothing to send sends a keepalive after 10 s, so a peer that
//! sent nothing for 15 s after something was sent to it does not receive (Donenfeld 2017, section 6.5).
//!
//! The clock is not read for each datagram: a datagram sets a flag, and the time is that of the next look.

/// For how long a peer that receives something may send nothing, ns: KEEPALIVE_TIMEOUT of the protocol.
const HEARD_NS: u64 = 10_000_000_000;
/// How long nothing comes before a peer is silent, ns: KEEPALIVE_TIMEOUT and REKEY_TIMEOUT of the protocol.
const SILENT_NS: u64 = 15_000_000_000;
/// How long before a peer is looked for elsewhere, ns: a keepalive may be lost. After 15 s the protocol asks for a handshake, which
/// has 5 s for its answer (REKEY_TIMEOUT).
const LOST_NS: u64 = 20_000_000_000;

/// When something was heard of a peer, and since when it owes an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    heard: bool,
    heard_ns: Option<u64>,
    /// When the first datagram was sent since something was heard, ns.
    waits_since_ns: Option<u64>,
    sent_pkts: u64,
}

impl Silence {
    /// A datagram came that only the peer can have sent.
    pub(super) fn hear(&mut self) {
        self.heard = true;
    }

    /// Takes note of what was heard and sent since the last look: `sent_pkts` were sent so far. Returns whether something was
    /// heard.
    pub(super) fn look(&mut self, now_ns: u64, sent_pkts: u64) -> bool {
        let heard = std::mem::take(&mut self.heard);
        if heard {
            self.heard_ns = Some(now_ns);
            self.waits_since_ns = None;
        } else if sent_pkts != self.sent_pkts {
            self.waits_since_ns.get_or_insert(now_ns);
        }
        self.sent_pkts = sent_pkts;
        heard
    }

    /// Something was sent that is not counted as a packet: a handshake or a keepalive.
    pub(super) fn sent(&mut self, now_ns: u64) {
        self.waits_since_ns.get_or_insert(now_ns);
    }

    /// Whether the peer does not answer.
    pub(super) fn is_silent(&self, now_ns: u64) -> bool {
        self.waits_since_ns
            .is_some_and(|ns| now_ns.saturating_sub(ns) >= SILENT_NS)
    }

    /// Whether the peer is to be looked for elsewhere, which was done at that time last, ns; none: it was not.
    pub(super) fn is_lost(&self, now_ns: u64, tried_ns: Option<u64>) -> bool {
        let since = |ns: Option<u64>| ns.map_or(0, |ns| now_ns.saturating_sub(ns));
        let has_time = tried_ns.is_some() && since(tried_ns) < SILENT_NS;
        since(self.waits_since_ns) >= LOST_NS && !has_time
    }

    /// Whether something was heard so recently that the peer cannot be called silent.
    pub(super) fn is_heard(&self, now_ns: u64) -> bool {
        self.heard_ns
            .is_some_and(|ns| now_ns.saturating_sub(ns) <= HEARD_NS)
    }

    /// How long ago something was heard, s; none: nothing ever was.
    pub(super) fn heard_age_s(&self, now_ns: u64) -> Option<u64> {
        let heard_ns = self.heard_ns?;
        Some(now_ns.saturating_sub(heard_ns) / 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_peer_is_silent_15_s_after_what_it_did_not_answer() {
        let mut silence = Silence::default();
        assert_eq!(silence.heard_age_s(0), None);
        assert!(!silence.look(0, 0));
        assert!(!silence.is_heard(0));
        assert!(!silence.is_silent(100 * S), "nothing was sent");
        silence.hear();
        assert!(silence.look(100 * S, 3));
        assert!(silence.is_heard(110 * S));
        assert!(!silence.is_heard(110 * S + 1));
        assert!(!silence.look(200 * S, 3));
        assert!(!silence.is_silent(200 * S), "nothing was sent since");
        silence.look(200 * S, 4);
        silence.look(210 * S, 9);
        assert!(!silence.is_silent(215 * S - 1));
        assert!(silence.is_silent(215 * S), "counted from the first packet");
        assert_eq!(silence.heard_age_s(215 * S), Some(115));
        silence.hear();
        silence.look(216 * S, 9);
        assert!(!silence.is_silent(300 * S));
        silence.sent(301 * S);
        silence.sent(310 * S);
        assert!(!silence.is_lost(321 * S - 1, None));
        assert!(silence.is_lost(321 * S, None));
        assert!(!silence.is_lost(336 * S - 1, Some(321 * S)));
        assert!(silence.is_lost(336 * S, Some(321 * S)));
        assert!(
            silence.is_silent(316 * S),
            "a keepalive that nothing followed"
        );
    }
}
