// SPDX-License-Identifier: BSD-3-Clause
//! Bulk TCP, NewReno and CUBIC with SACK, as state machines without clock, queue or I/O.
//!
//! Sequence numbers count full-sized segments from 0. The event engine carries segments and
//! acknowledgements between a [`Sender`] and a [`Receiver`] and calls their timers:
//!
//! ```
//! use linkweir_sim::tcp::{Algorithm, Config, Profile, Receiver, Sender};
//!
//! let config = Config::new(Algorithm::Cubic, Profile::Linux);
//! let (mut sender, mut receiver) = (Sender::new(&config), Receiver::new(&config));
//! let mut sent = 0;
//! while let Some(segment) = sender.next_segment(0) {
//!     sent += 1;
//!     if let Some(ack) = receiver.on_segment(50_000_000, &segment) {
//!         sender.on_ack(100_000_000, &ack);
//!     }
//!     if sent == 10 {
//!         break;
//!     }
//! }
//! assert_eq!(receiver.delivered_segments(), 10);
//! ```
//!
//! Two profiles. [`Profile::Linux`] follows the RFCs the Linux stack follows: RFC 9438 (CUBIC), 5681 and
//! 6582 (NewReno), 6675 (SACK recovery), 6937 (proportional rate reduction), 6298 with Linux's floor
//! (retransmission timer), 6928 (initial window), 3042 (limited transmit), 9406 (HyStart++), delayed
//! acknowledgements. It has no pacing, no RACK-TLP (RFC 8985), no adaptation to reordering and no undo.
//! [`Profile::Ns2`] follows the TCP-Linux agent of ns-2.35 with its SACK sink; `ns2.rs` states what that is.

mod config;
mod cubic;
mod hystart;
mod linux;
mod newreno;
mod ns2;
mod ns2_cubic;
mod receiver;
mod ring_bits;
mod rto;
mod scoreboard;
mod segment;
mod state;
mod stream;

pub use config::{Algorithm, Config, Profile};
pub use receiver::Receiver;
pub use segment::{Ack, Block, Segment};
pub use state::{Counters, Phase, Window};
pub use stream::Stream;

/// The sending side of one connection.
///
/// After [`on_ack`](Sender::on_ack) and [`on_timer`](Sender::on_timer), and once at the start, call
/// [`next_segment`](Sender::next_segment) until it returns `None`. Times never decrease.
#[derive(Clone, Debug)]
pub struct Sender(Machine);

#[derive(Clone, Debug)]
enum Machine {
    Linux(linux::Sender),
    Ns2(ns2::Sender),
}

impl Sender {
    /// A sender with nothing sent.
    pub fn new(config: &Config) -> Sender {
        Sender(match config.profile {
            Profile::Linux => Machine::Linux(linux::Sender::new(config)),
            Profile::Ns2 => Machine::Ns2(ns2::Sender::new(config)),
        })
    }

    /// An acknowledgement arrived.
    #[inline]
    pub fn on_ack(&mut self, now_ns: u64, ack: &Ack) {
        match &mut self.0 {
            Machine::Linux(sender) => sender.on_ack(now_ns, ack),
            Machine::Ns2(sender) => sender.on_ack(now_ns, ack),
        }
    }

    /// The retransmission timer is due. Does nothing before [`deadline_ns`](Sender::deadline_ns).
    pub fn on_timer(&mut self, now_ns: u64) {
        match &mut self.0 {
            Machine::Linux(sender) => sender.on_timer(now_ns),
            Machine::Ns2(sender) => sender.on_timer(now_ns),
        }
    }

    /// The next segment to put on the wire now, `None` when window or data are used up.
    #[inline]
    pub fn next_segment(&mut self, now_ns: u64) -> Option<Segment> {
        match &mut self.0 {
            Machine::Linux(sender) => sender.next_segment(now_ns),
            Machine::Ns2(sender) => sender.next_segment(now_ns),
        }
    }

    /// The application has written so many more segments, as [`Stream::supply`] counts them. Call
    /// [`next_segment`](Sender::next_segment) then. With `bytes_to_send: Some(0)` this is all the data there is.
    pub fn supply(&mut self, segments: u64) {
        match &mut self.0 {
            Machine::Linux(sender) => sender.supply(segments),
            Machine::Ns2(sender) => sender.supply(segments),
        }
    }

    /// The exchange of SYNs took this long and was not repeated: the first sample of the round-trip time. With `Ns2`
    /// the SYN is segment 0, so this does nothing.
    pub fn on_handshake(&mut self, rtt_ns: u64) {
        match &mut self.0 {
            Machine::Linux(sender) => sender.on_handshake(rtt_ns),
            Machine::Ns2(_) => {}
        }
    }

    /// When [`on_timer`](Sender::on_timer) is due. It nearly always moves later, and an engine may then leave its
    /// event where it is and look again when it fires; when the timeout shrinks it can move earlier.
    #[inline]
    pub fn deadline_ns(&self) -> Option<u64> {
        match &self.0 {
            Machine::Linux(sender) => sender.deadline_ns(),
            Machine::Ns2(sender) => sender.deadline_ns(),
        }
    }

    /// Window and timer now.
    pub fn window(&self) -> Window {
        match &self.0 {
            Machine::Linux(sender) => sender.window(),
            Machine::Ns2(sender) => sender.window(),
        }
    }

    /// Counters.
    pub fn counters(&self) -> Counters {
        match &self.0 {
            Machine::Linux(sender) => sender.counters(),
            Machine::Ns2(sender) => sender.counters(),
        }
    }

    /// All data, of `bytes_to_send` and supplied later, is acknowledged; never true without an end.
    pub fn is_done(&self) -> bool {
        match &self.0 {
            Machine::Linux(sender) => sender.is_done(),
            Machine::Ns2(sender) => sender.is_done(),
        }
    }
}
