// SPDX-License-Identifier: BSD-3-Clause
//! The last hop of a satellite link, to moving users or to the terminals of a beam: how the channel fades, what a
//! transmission then brings, and how often a packet is sent until it is understood.
//!
//! | module | answers |
//! |---|---|
//! | [`fading`] | how many dB is the signal above or below the line of sight, now? |
//! | [`lms`] | a land-mobile-satellite channel: three Markov states, Loo's distribution in each |
//! | [`qpsk`] | how many bits does a QPSK symbol carry at this Es/N0? |
//! | [`harq`] | how many symbols are sent at each attempt, and is the packet decoded? |
//! | [`rain`] | how many dB does rain take from each terminal of a beam, now? |
//! | [`modcod`] | which modulation and code does a terminal get, and what does a symbol then carry? |

pub mod fading;
pub mod harq;
pub mod lms;
pub mod modcod;
pub mod qpsk;
pub mod rain;
