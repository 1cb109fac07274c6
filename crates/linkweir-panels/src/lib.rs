// SPDX-License-Identifier: BSD-3-Clause
//! What the charts of a run show, as numbers: reports, pages and figures for papers draw the same panels.
//!
//! [`Panels`] takes rows of the tables of a run over one link, or of one link of a network, and keeps thinned columns only, so
//! that charts of a long run take no more memory than those of a short one.
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//! use linkweir_panels::{Limits, Panels, Rows, Run};
//! use linkweir_sim::{run, scenario, table};
//!
//! struct Kept(Vec<table::Table>);
//! impl table::Sink for Kept {
//!     fn chunk(&mut self, table: table::Table) -> Result<(), String> {
//!         self.0.push(table);
//!         Ok(())
//!     }
//! }
//!
//! let text = r#"
//! duration = "10s"
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
//! let scenario = Arc::new(scenario::parse(text, Path::new("one.toml")).unwrap());
//! let mut kept = Kept(Vec::new());
//! run(&scenario.experiment, &mut kept).unwrap();
//! let limits = Limits { classes: 12, points: 5000 };
//! let mut panels = Panels::new(scenario, Run { simulated_s: 10.0, comes_and_goes: false }, limits, None);
//! for table in &kept.0 {
//!     panels.take(table.name, &Rows::of(table)).unwrap();
//! }
//! let over_time = panels.over_time();
//! assert_eq!(over_time[0].title, "Rate of each class and capacity of the link");
//! assert_eq!(over_time[0].lines[1].label, "all");
//! ```
#![forbid(unsafe_code)]

mod apart;
mod beam;
mod calls;
mod collected;
mod distribution;
pub mod e_model;
mod json;
mod levels;
mod outline;
mod panel;
mod panels;
mod reservation;
mod rows;
mod series;
mod words;

pub use collected::{Limits, Run, SHOWN};
pub use json::{quoted, written};
pub use panel::{Line, Look, Panel};
pub use panels::Panels;
pub use reservation::reserved_bps;
pub use rows::{Cells, Rows};
