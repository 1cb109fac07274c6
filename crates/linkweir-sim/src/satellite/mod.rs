// SPDX-License-Identifier: BSD-3-Clause
//! The last hop of a satellite link, to moving users or to the terminals of a beam: how long the way there is, how the
//! channel fades, how much a transmission then carries, and how often a packet is sent until it is decoded.
//!
//! | module | answers |
//! |---|---|
//! | [`constellation`] | how long do signals take to the last satellite, and from it? |
//! | [`catalogue`] | where are satellites whose orbits are listed, and which of them have links to each other? |
//! | [`sgp4`] | where is a satellite whose mean elements are known? |
//! | [`routes`] | over which satellites do packets go from one place to another, and how long is each link? |
//! | [`fading`] | how many dB is the signal above or below the line of sight, now? |
//! | [`lms`] | the channel of a land-mobile satellite: Loo's distribution along a drive |
//! | [`loo`] | Loo's distribution: which levels does the signal have at one place of the drive? |
//! | [`perez_fontan`] | how do Loo's parameters change along the drive: three states of a Markov chain |
//! | [`p681`] | how do Loo's parameters change along the drive: two states, each visit with new parameters |
//! | `recent` | were these samples generated recently? |
//! | [`qpsk`] | how many bits does a QPSK symbol carry at this Es/N0? |
//! | [`harq`] | how many symbols are sent at each attempt, and is the packet decoded? |
//! | [`reorder`] | which packets does the receiver hold until earlier ones arrive? |
//! | [`rain`] | how many dB does rain take from each terminal of a beam, now? |
//! | [`modcod`] | which modulation and code does a terminal get, and what does a symbol then carry? |

pub mod catalogue;
pub mod constellation;
pub mod fading;
pub mod harq;
pub mod lms;
pub mod loo;
pub mod modcod;
pub mod p681;
pub mod perez_fontan;
pub mod qpsk;
pub mod rain;
pub(crate) mod recent;
pub mod reorder;
pub mod routes;
pub mod sgp4;

/// Speed of light, m/s.
const LIGHT_M_S: f64 = 299_792_458.0;
