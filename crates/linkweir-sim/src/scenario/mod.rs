// SPDX-License-Identifier: BSD-3-Clause
//! Scenarios: experiments as people write them, in TOML, with units.
//!
//! [`parse`] checks everything before anything runs: units, names, ranges, keys that exclude or need each other, the trace
//! file, and, with the core's own tables, every parameter of the policy. Its result needs no further check. The first error
//! is returned as a [`Fault`] with file, line, key and cure.
//!
//! ```
//! use std::path::Path;
//!
//! let text = r#"
//! duration = "10s"
//! [link]
//! rate = "20Mbit"
//! [scheduler]
//! policy = "fifo"
//! [[class]]
//! name = "all"
//! [[flow]]
//! class = "all"
//! kind = "greedy"
//! "#;
//! let scenario = linkweir_sim::scenario::parse(text, Path::new("one.toml")).unwrap();
//! assert_eq!(scenario.experiment.link.nominal_bps, 20_000_000);
//!
//! let fault = linkweir_sim::scenario::parse(&text.replace("20Mbit", "20"), Path::new("one.toml")).unwrap_err();
//! assert!(fault.to_string().starts_with("one.toml:4: link.rate = \"20\": needs a unit"));
//! ```

mod across;
mod attenuation;
mod beam;
mod bond;
mod brought;
mod changed;
mod checked;
mod constellation;
mod crossed;
mod fading;
mod finder;
mod inputs;
pub mod keys;
mod knobs;
mod limits;
mod link;
mod measures;
mod network;
mod one_link;
mod overrides;
mod queued;
mod route;
mod run_keys;
mod satellite;
mod scheduler;
mod shell;
mod sky;
mod sources;
mod tle;
mod traffic;
mod users;

use std::path::Path;

use linkweir_config::reader::{Section, Source};
use linkweir_config::trace;
use toml::de::DeTable;

use run_keys::RunKeys;

pub use changed::changed;
pub use checked::Scenario;
pub use finder::{Finder, Found};
pub use inputs::Input;
pub use knobs::Knob;
pub use linkweir_config::fault::Fault;
pub use linkweir_config::parameters::written as written_parameter;
pub use linkweir_config::reader::{Files, Value, Written};
pub use linkweir_config::trace::{
    parse as parse_trace, read as read_trace, Column, Format, Hints, NamedColumns, Place, Trace,
    TraceEnd,
};
pub use linkweir_config::units::{
    parse as parse_quantity, show_real as show_quantity, Decimal, Kind,
};
pub use overrides::Overrides;

/// Reads a scenario; paths in it are relative to the folder of `file`.
///
/// # Errors
/// The first thing wrong with it.
pub fn parse(text: &str, file: &Path) -> Result<Scenario, Fault> {
    parse_with(text, Some(file), &Overrides::default())
}

/// As [`parse`]; without a file, paths are relative to the working directory and faults carry no line.
///
/// # Errors
/// The first thing wrong with it.
pub fn parse_with(
    text: &str,
    file: Option<&Path>,
    overrides: &Overrides,
) -> Result<Scenario, Fault> {
    let text = changed(text, file, &overrides.keys)?;
    let source = Source::new(&text, file).with_files(overrides.files.as_deref());
    let document = source.parse(limits::SCENARIO_BYTES)?;
    read(&source, document.get_ref(), overrides)
}

/// Reads a scenario file.
///
/// # Errors
/// When it cannot be read, or the first thing wrong with it.
pub fn load(file: &Path, overrides: &Overrides) -> Result<Scenario, Fault> {
    let text = trace::read_text(file, limits::SCENARIO_BYTES)?;
    parse_with(&text, Some(file), overrides)
}

fn read<'i>(
    source: &Source<'i>,
    document: &DeTable<'i>,
    overrides: &Overrides,
) -> Result<Scenario, Fault> {
    let mut top = Section::new(source, document, String::new(), 0);
    if overrides.driven {
        refuse_several(&mut top, document)?;
    }
    let run = RunKeys::read(&mut top, source, overrides)?;
    let bond = top.find(keys::top::BOND.name);
    if let Some(entry) = top.find(keys::top::CONSTELLATION.name) {
        if let Some(bond) = bond {
            let message =
                "is over [[link]]s, and [constellation] makes links of its own; leave one out";
            return Err(network::of_table(&bond, message));
        }
        return shell::read(top, &entry, &run, overrides);
    }
    if let Some(tables) = network::tables(document, &mut top)? {
        return network::read(top, &tables, &run, overrides);
    }
    if let Some(bond) = bond {
        let message =
            "is over several links; write [[link]]s whose names are in its links, or leave it out";
        return Err(network::of_table(&bond, message));
    }
    one_link::read(top, &run, overrides)
}

/// Refuses a network, where the caller sends packets into one link.
fn refuse_several<'i>(top: &mut Section<'_, 'i>, document: &DeTable<'i>) -> Result<(), Fault> {
    let is_network = network::tables(document, top)?.is_some();
    let many = match top.find(keys::top::CONSTELLATION.name) {
        None if is_network => top.find(keys::top::LINK.name),
        found => found,
    };
    many.map_or(Ok(()), |entry| {
        Err(Fault {
            value: String::new(),
            ..entry.fault("must be one link here; write one [link] instead of several")
        })
    })
}
