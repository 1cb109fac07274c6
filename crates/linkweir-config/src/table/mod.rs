// SPDX-License-Identifier: BSD-3-Clause
//! Tables of text as programs write them: how the bytes become text, what separates the fields and the decimals, what a
//! column's name says of its unit, and how clocks write times. Traces, delays, attenuations, fading, lists of packets and
//! distributions are read by these rules.

pub mod clock;
pub mod decode;
pub mod dialect;
pub mod header;

pub use clock::{Clock, Dates};
pub use dialect::{data_lines, Dialect};
