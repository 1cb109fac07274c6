// SPDX-License-Identifier: BSD-3-Clause
//! The sender of the `Linux` profile: TCP as Linux 6.12 sends it, in whole segments.
//!
//! | file | holds |
//! |---|---|
//! | `sender` | the state of a sender |
//! | `ack` | what an acknowledgement changes: SACK, the states, PRR, undo |
//! | `send`, `plan` | what is sent next: retransmissions, new segments, probes; pacing |
//! | `timers`, `timer` | retransmission timeout, tail loss probe, reordering timeout |
//! | `losses`, `rack` | losses by time |
//! | `flight`, `rate`, `rtt`, `clock`, `minmax` | outstanding segments, delivery rates, round trips, ticks, extremes over time |
//! | `congestion`, `control`, `cubic`, `bbr`, `prague`, `dctcp`, `alpha` | congestion control |
//! | `receiver`, `buffer` | the other end, and its window |
//!
//! The states are those of the kernel: open; disorder (SACKs, no loss yet); reduced after a congestion mark (CWR); recovery;
//! loss (after a timeout). Sources: RFC 5681, 6298, 6675, 6937 (PRR with the slow start bound), 8985 (RACK-TLP), 5682
//! (F-RTO), 3522 and 4015 (undo by timestamps), 2883 and 3708 (undo by D-SACK), 3168 (ECN), 7323, 2861 (windows after
//! idle times), 9768 (accurate ECN), and the behaviour of Linux 6.12 where that differs. Prague is not in Linux 6.12; see its file.

mod ack;
mod alpha;
mod bbr;
mod buffer;
mod clock;
mod congestion;
mod control;
mod cubic;
mod dctcp;
mod flight;
mod losses;
mod minmax;
mod plan;
mod prague;
mod rack;
mod rate;
mod receiver;
mod rtt;
mod send;
mod sender;
mod timer;
mod timers;

pub use receiver::Receiver;
pub use sender::Sender;
