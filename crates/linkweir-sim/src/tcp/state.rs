// SPDX-License-Identifier: BSD-3-Clause
//! State of a sender that others may see: phase, window and counters.

/// The phase of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Slow start.
    SlowStart,
    /// Congestion avoidance.
    CongestionAvoidance,
    /// Fast recovery, or a reduction after a congestion mark.
    Recovery,
    /// After a retransmission timeout, until all that was outstanding is acknowledged.
    Loss,
}

/// A sender's window and timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window, segments. With `Ns2`, what ns-2 traces as `cwnd_`.
    pub cwnd_segments: f64,
    /// Slow start threshold, segments; `None` until a congestion event or HyStart sets it.
    pub ssthresh_segments: Option<f64>,
    /// Segments held to be in the network.
    pub flight_segments: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt_ns: Option<u64>,
    /// Retransmission timeout, backed off.
    pub rto_ns: u64,
    /// The phase of the sender.
    pub phase: Phase,
}

impl Counters {
    /// Adds those of another sender.
    pub(crate) fn add(&mut self, other: &Counters) {
        let Counters {
            sent,
            retransmitted,
            retransmitted_fast,
            retransmitted_rto,
            spurious,
            recoveries,
            timeouts,
        } = other;
        self.sent += sent;
        self.retransmitted += retransmitted;
        self.retransmitted_fast += retransmitted_fast;
        self.retransmitted_rto += retransmitted_rto;
        self.spurious += spurious;
        self.recoveries += recoveries;
        self.timeouts += timeouts;
    }
}

/// Counters of a sender since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions: `retransmitted_fast` + `retransmitted_rto`.
    pub retransmitted: u64,
    /// Retransmissions in fast recovery, and tail loss probes.
    pub retransmitted_fast: u64,
    /// Retransmissions after a timeout, that of a SYN included.
    pub retransmitted_rto: u64,
    /// Acknowledgements that reported a segment received twice.
    pub spurious: u64,
    /// Fast recoveries begun.
    pub recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}
