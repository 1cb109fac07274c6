// SPDX-License-Identifier: BSD-3-Clause
//! A link whose capacity changes, for tests of transports and applications. It has no clock, socket, thread or file: a program
//! passes in the time, sends packets, and receives those that have arrived.
//!
//! The link is the one that `linkweir run` simulates: a rate or a recorded capacity, a delay, single losses or
//! bursts, reordering, a satellite or a beam, behind queues of classes and a scheduling policy. The same packets at the same times give
//! the same result, on every machine.
//!
//! ```
//! use linkweir_link::Link;
//!
//! // 1500 bytes take 1 ms at 12 Mbit/s, and 20 ms to the other end.
//! let mut link = Link::from_toml(r#"
//!     [link]
//!     rate = "12Mbit"
//!     delay = "20ms"
//!     [scheduler]
//!     policy = "strict"
//!     [[class]]
//!     name = "voice"
//!     [[class]]
//!     name = "rest"
//!     limit = "100p"
//! "#)?;
//! let (voice, rest) = (link.class("voice").unwrap(), link.class("rest").unwrap());
//! link.send(0, rest, 1500, "a")?;
//! link.send(0, rest, 1500, "b")?;
//! link.send(0, voice, 1500, "c")?;
//!
//! let mut arrived = Vec::new();
//! while let Some(now_ns) = link.next_ns() {
//!     while let Some(packet) = link.receive(now_ns) {
//!         arrived.push((packet.arrived_ns / 1_000_000, packet.payload));
//!     }
//! }
//! // "a" was on the link already when the voice came; "b" had to wait.
//! assert_eq!(arrived, [(21, "a"), (22, "c"), (23, "b")]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The link
//!
//! [`Link::from_toml`] takes the tables `[link]`, `[scheduler]` and `[[class]]` of a scenario, as the reference of scenarios
//! describes them. The link exists for the scenario's `duration`, or for an hour. Flows of the scenario, if it has any, are
//! other traffic on the link. Random numbers depend on `seed` only.
//!
//! A recorded capacity is a trace. Its file may be in memory:
//!
//! ```
//! use linkweir_link::Link;
//!
//! // Mahimahi's format: at each of these milliseconds 1500 bytes may leave.
//! let text = "duration = \"1s\"\n[link]\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"all\"\n";
//! let mut link: Link<u32> = Link::with_trace(text, "drive.down", b"5\n9\n20\n")?;
//! link.send(0, 0, 1500, 1)?;
//! link.send(0, 0, 1500, 2)?;
//! assert_eq!(link.receive(5_000_000).map(|packet| packet.payload), Some(1));
//! assert_eq!(link.receive(8_999_999), None);
//! assert_eq!(link.receive(9_000_000).map(|packet| packet.payload), Some(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Time
//!
//! Times are nanoseconds since the start of the link, and never go back: an earlier time counts as the latest one. What is due
//! at a time happens before a packet that is sent at that time comes to its queue. [`Link::next_ns`] says when to ask again.
//!
//! A run of the simulator that replays the same packets does the same to them, unless a packet comes at the very nanosecond of
//! another event of the link: a run orders those by when they were scheduled. This is rare if a program sends each answer 1 us
//! after the packet that it answers.
//!
//! # Policies that panic
//!
//! A link whose policy the program brings passes that policy's panics on. A program that catches one has a broken link: see
//! [`Link::is_broken`].
//!
//! # Losses
//!
//! A packet that is dropped or lost comes back with the reason, see [`Link::dropped`].
//!
//! ```
//! use linkweir_link::{Link, Reason};
//!
//! let mut link = Link::from_toml(r#"
//!     [link]
//!     rate = "1Mbit"
//!     [scheduler]
//!     policy = "fifo"
//!     [[class]]
//!     name = "all"
//!     limit = "2p"
//! "#)?;
//! for number in 0..4 {
//!     link.send(0, 0, 1000, number)?;
//! }
//! // One is on the link and two wait.
//! let dropped = link.dropped(0).unwrap();
//! assert_eq!((dropped.payload, dropped.reason), (3, Reason::Limit));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod error;
mod inside;
mod link;
mod packet;

pub use error::{Error, Refused};
pub use link::Link;
pub use packet::{Counts, Dropped, Packet, Reason, Received};

pub use linkweir_sim::experiment;
pub use linkweir_sim::scenario::{Fault, Overrides};
