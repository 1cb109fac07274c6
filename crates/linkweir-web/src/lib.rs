// SPDX-License-Identifier: BSD-3-Clause
//! The simulator for a page of a browser: scenario and files go in, tables and the numbers of charts come out.
//!
//! A [`Request`] and the answer are bytes, made of [`parts`]: the page's worker writes the one and reads the other in the memory
//! that it shares with this module. The same request gives the same bytes in every browser and natively, where this crate compiles
//! too, so that its tests need no browser.
//!
//! ```
//! use linkweir_web::{answer, parts};
//!
//! let scenario = r#"
//! duration = "1s"
//! [link]
//! rate = "12Mbit"
//! [scheduler]
//! policy = "fifo"
//! [[class]]
//! name = "all"
//! [[flow]]
//! class = "all"
//! kind = "greedy"
//! "#;
//! let mut request = Vec::new();
//! for part in ["scenario", "one.toml", scenario, "key", "link.rate", "\"6Mbit\""] {
//!     parts::add(&mut request, part.as_bytes());
//! }
//! let answer = answer(&request, &mut |_simulated_s| true);
//! let found: Vec<&[u8]> = parts::read(&answer).unwrap();
//! assert_eq!(found[0], b"text");
//! assert_eq!(found[1], scenario.replace("12Mbit", "6Mbit").as_bytes());
//! ```
#![deny(unsafe_code)]

mod answer;
mod files;
pub mod parts;
mod request;
#[cfg(target_family = "wasm")]
mod shared;

pub use answer::answer;
pub use request::Request;
