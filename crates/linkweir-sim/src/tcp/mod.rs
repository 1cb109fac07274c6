// SPDX-License-Identifier: BSD-3-Clause
//! TCP as state machines without clock, queue or I/O.
//!
//! Sequence numbers count segments; segment 0 is the SYN, the others are full-sized. The event engine carries segments and
//! acknowledgements between a [`Sender`] and a [`Receiver`] and calls their timers:
//!
//! ```
//! use linkweir_sim::tcp::{Algorithm, Config, Profile, Receiver, Sender};
//!
//! let config = Config::new(Algorithm::Cubic, Profile::Linux);
//! let (mut sender, mut receiver) = (Sender::new(&config), Receiver::new(&config));
//! let mut now_ns = 0;
//! // The exchange of SYNs, and two round trips of the initial window.
//! for _ in 0..3 {
//!     let mut acks = Vec::new();
//!     while let Some(segment) = sender.next_segment(now_ns) {
//!         acks.extend(receiver.on_segment(now_ns + 50_000_000, &segment));
//!     }
//!     now_ns += 100_000_000;
//!     for ack in acks {
//!         sender.on_ack(now_ns, &ack);
//!     }
//! }
//! assert_eq!(receiver.delivered_segments(), 1 + 10 + 20);
//! ```
//!
//! Two profiles. [`Profile::Linux`] behaves as Linux 6.12 does (`linux/mod.rs`). [`Profile::Ns2`] follows the TCP-Linux
//! agent of ns-2.35 with its SACK sink (`ns2.rs`).

mod blocks;
mod config;
mod linux;
mod ns2;
mod ns2_cubic;
mod ns2_receiver;
mod ns2_rto;
mod ring_bits;
mod scoreboard;
mod segment;
mod state;
mod stream;

pub use config::{Algorithm, Config, Profile, REQUEST_BYTES};
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
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every sender is Linux's, and a box would cost a cache miss per segment"
)]
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
    pub fn supply(&mut self, now_ns: u64, segments: u64) {
        match &mut self.0 {
            Machine::Linux(sender) => sender.supply(now_ns, segments),
            Machine::Ns2(sender) => sender.supply(segments),
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

/// The receiving side of one connection.
#[derive(Clone, Debug)]
pub struct Receiver(End);

#[derive(Clone, Debug)]
enum End {
    Linux(Box<linux::Receiver>),
    Ns2(ns2_receiver::Receiver),
}

impl Receiver {
    /// A receiver that expects segment 0.
    pub fn new(config: &Config) -> Receiver {
        Receiver(match config.profile {
            Profile::Linux => End::Linux(Box::new(linux::Receiver::new(config))),
            Profile::Ns2 => End::Ns2(ns2_receiver::Receiver::new(config)),
        })
    }

    /// A segment arrived; returns the acknowledgement to send now, if one is due.
    #[inline]
    pub fn on_segment(&mut self, now_ns: u64, segment: &Segment) -> Option<Ack> {
        match &mut self.0 {
            End::Linux(receiver) => receiver.on_segment(now_ns, segment),
            End::Ns2(receiver) => receiver.on_segment(now_ns, segment),
        }
    }

    /// When an acknowledgement held back is due.
    #[inline]
    pub fn deadline_ns(&self) -> Option<u64> {
        match &self.0 {
            End::Linux(receiver) => receiver.deadline_ns(),
            End::Ns2(receiver) => receiver.deadline_ns(),
        }
    }

    /// The acknowledgement held back, if it is due.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Ack> {
        match &mut self.0 {
            End::Linux(receiver) => receiver.on_timer(now_ns),
            End::Ns2(receiver) => receiver.on_timer(now_ns),
        }
    }

    /// Segments received in order.
    #[inline]
    pub fn delivered_segments(&self) -> u64 {
        match &self.0 {
            End::Linux(receiver) => receiver.delivered_segments(),
            End::Ns2(receiver) => receiver.delivered_segments(),
        }
    }
}
