// SPDX-License-Identifier: BSD-3-Clause
//! The last hop of a satellite link to a moving user: how the channel fades, what a transmission then brings, and how
//! often a packet is sent until it is understood.
//!
//! | module | answers |
//! |---|---|
//! | [`fading`] | how many dB is the signal above or below the line of sight, now? |
//! | [`lms`] | a land-mobile-satellite channel: three Markov states, Loo's distribution in each |
//! | [`qpsk`] | how many bits does a QPSK symbol carry at this Es/N0? |
//! | [`harq`] | how many symbols are sent at each attempt, and is the packet decoded? |
//! | [`reorder`] | what does the receiver hold back until what went before it is there? |

pub mod fading;
pub mod harq;
pub mod lms;
pub mod qpsk;
pub mod reorder;
