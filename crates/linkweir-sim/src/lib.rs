// SPDX-License-Identifier: BSD-3-Clause
//! Event simulator of links whose capacity changes: a scheduler of the core between sources, TCP among them, and a
//! link that fades.
//!
//! An [`Experiment`](experiment::Experiment) describes what to simulate; [`run`] simulates it and hands result tables to a
//! [`Sink`](table::Sink) during the run. The same experiment gives the same bytes on any machine.
//!
//! ```
//! use std::path::Path;
//! use linkweir_sim::{run, scenario, table};
//!
//! struct Names(Vec<&'static str>);
//! impl table::Sink for Names {
//!     fn chunk(&mut self, table: table::Table) -> Result<(), String> {
//!         self.0.push(table.name);
//!         Ok(())
//!     }
//! }
//!
//! let text = r#"
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
//! packet = "1500B"
//! "#;
//! let scenario = scenario::parse(text, Path::new("one.toml")).unwrap();
//! let mut names = Names(Vec::new());
//! let outcome = run(&scenario.experiment, &mut names).unwrap();
//! assert_eq!(outcome.packets, 1000);
//! assert_eq!(names.0, ["series", "link", "flow_series", "classes", "flows", "delays"]);
//! ```
#![forbid(unsafe_code)]

pub mod codec;
pub mod experiment;
pub mod network;
pub mod satellite;
pub mod scenario;
pub mod table;
pub mod tcp;

mod engine;
mod metrics;
mod policies;
mod random;
mod traffic;

pub use engine::driven::{Driven, Happened, Happening, NotTaken, Outside};
pub use engine::network::run as run_network;
pub use engine::{fates, run, Fate, Outcome, RunError};
pub use metrics::columns::{
    columns, empty_network_tables, empty_tables, network_columns, ColumnInfo,
};
