// SPDX-License-Identifier: BSD-3-Clause
//! Scenarios with one `[link]`, a `[scheduler]` and its classes.

use linkweir_config::reader::{Section, Value};
use linkweir_config::Fault;

use super::checked::Scenario;
use super::inputs::Told;
use super::keys;
use super::network;
use super::overrides::Overrides;
use super::queued::{all_written, held, series_rows, Context, Queued};
use super::route::Ways;
use super::run_keys::RunKeys;
use super::sources::{flow_tables, Sources};

/// Reads the rest of a scenario with one link.
pub(super) fn read(
    mut top: Section<'_, '_>,
    run: &RunKeys,
    overrides: &Overrides,
) -> Result<Scenario, Fault> {
    let mut inputs = Vec::new();
    let mut told = Told::default();
    let section = top.need_table(keys::top::LINK.name, keys::top::LINK.default.0)?;
    network::refuse_tables_of_links(&section)?;
    let mut context = Context {
        duration_ns: run.times.duration_ns,
        seed: run.seed,
        overrides,
        inputs: &mut inputs,
        told: &mut told,
    };
    let queued = Queued::read(section, Some(&mut top), &mut context)?;
    held(&top, &[&queued])?;
    let is_driven = overrides.driven && top.find(keys::top::FLOW.name).is_none();
    let mut flow_sections = if is_driven {
        Vec::new()
    } else {
        flow_tables(&mut top)?
    };
    top.known()?; // before the flows, which may name a class of a misspelt table
    let ways = Ways::One {
        link: &queued.link,
        names: &queued.classes.names,
        classes: &queued.classes.classes,
    };
    let sources = Sources::read(
        &mut flow_sections,
        &ways,
        &run.times,
        (&mut inputs, &mut told),
    )?;
    series_rows(
        &top,
        run.bins,
        std::iter::once(&queued),
        sources.flows.len(),
    )?;

    let mut written = top.finish()?;
    // Unknown keys are refused before the core checks: one of them may be a misspelt key that the core needs.
    let (link, tables) = queued.written()?;
    let flow_tables = all_written(&flow_sections)?;
    let experiment = run.experiment(&queued, sources.flows);
    queued.fits(&experiment, &|_| true)?;
    written.write(keys::top::LINK.name, Value::Table(link));
    tables.into(&mut written);
    written.write(keys::top::FLOW.name, Value::Tables(flow_tables));
    Ok(Scenario {
        experiment,
        network: None,
        links: Vec::new(),
        resolved_toml: written.toml(),
        written,
        inputs,
        notes: told.notes,
        readings: told.readings,
    })
}
