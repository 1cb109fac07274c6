// SPDX-License-Identifier: BSD-3-Clause
//! Flows over several links, or over several kinds of links, as they were read.

use std::sync::Arc;

use linkweir_config::reader::{Section, Value, Written};
use linkweir_config::Fault;

use crate::experiment::{Experiment, Flow, Link};
use crate::network::Network;

use super::checked::Scenario;
use super::inputs::{Input, Told};
use super::queued::{all_written, Queued, Tables};
use super::route::{Route, Stop};
use super::run_keys::RunKeys;
use super::sources::Sources;
use super::{keys, traffic};

/// Links and the flows over them.
pub(super) struct Crossed<'r, 's, 'i> {
    pub(super) run: &'r RunKeys,
    pub(super) links: &'r [Queued<'s, 'i>],
    pub(super) sources: &'r Sources<'r>,
}

/// The flows that pass a link on their way there.
#[derive(Clone, Default)]
pub(super) struct Passing {
    flows: Vec<Flow>,
    /// Which of them begin at the link.
    begins: Vec<bool>,
    /// Their tables, as on one link.
    pub(super) tables: Vec<Written>,
}

impl Passing {
    pub(super) fn add(&mut self, flow: &Flow, class: usize, begins: bool) {
        self.flows.push(Flow {
            class,
            ..flow.clone()
        });
        self.begins.push(begins);
    }
}

/// What links that were read make.
pub(super) struct Made {
    pub(super) network: Network,
    /// Each link as a scenario of its own, in the order of the network.
    pub(super) links: Vec<Arc<Scenario>>,
    /// A link whose keys are those of the run.
    pub(super) first: usize,
    /// The keys and the values that make the links in the resolved form.
    pub(super) written: Vec<(&'static str, Value)>,
}

impl Crossed<'_, '_, '_> {
    /// The scenario. `make` is given the resolved form without links and flows, and those of links and of flows.
    pub(super) fn scenario(
        &self,
        top: Section<'_, '_>,
        flow_sections: &[Section<'_, '_>],
        (inputs, told): (Vec<Input>, Told),
        make: impl FnOnce(&Written, &[(Written, Tables)], &[Written]) -> Result<Made, Fault>,
    ) -> Result<Scenario, Fault> {
        let mut written = top.finish()?;
        let of_flows = all_written(flow_sections)?;
        let of_links = self.links.iter().map(Queued::written);
        let of_links = of_links.collect::<Result<Vec<_>, _>>()?;
        let made = make(&written, &of_links, &of_flows)?;
        for (key, links) in made.written {
            written.write(key, links);
        }
        written.write(keys::top::FLOW.name, Value::Tables(of_flows));
        Ok(Scenario {
            experiment: self.keys_of_the_run(made.first),
            network: Some(made.network),
            links: made.links,
            resolved_toml: written.toml(),
            written,
            inputs,
            notes: told.notes,
            readings: told.readings,
        })
    }

    /// The flows with their ways and their numbers among the copies of an entry.
    pub(super) fn flows(&self) -> impl Iterator<Item = (&Flow, &Route<'_>, u64)> {
        let mut copy = 0;
        let entries = &self.sources.entries;
        self.sources
            .flows
            .iter()
            .enumerate()
            .map(move |(at, flow)| {
                let begins = at == 0 || entries[at - 1] != entries[at];
                copy = if begins { 0 } else { copy + 1 };
                (flow, &self.sources.routes[entries[at]], copy)
            })
    }

    /// Refuses a way back that cannot carry what goes back on it, or has no room for it.
    pub(super) fn ways_back_fit(&self, flow_sections: &[Section<'_, '_>]) -> Result<(), Fault> {
        for ((flow, route, copy), entry) in self.flows().zip(&self.sources.entries) {
            let Some((least, most)) = traffic::sizes_back_bytes(&flow.traffic) else {
                continue;
            };
            for stop in &route.back {
                let on_wire = traffic::on_wire_bytes(least, stop.link);
                if on_wire < 1 {
                    let message = format!(
                        "{least}B with {key}.overhead and {key}.mpu counts as {on_wire}B; it must be 1B or more",
                        key = stop.key
                    );
                    return Err(flow_sections[*entry].fault_at(keys::kinds::TCP_ACK.name, message));
                }
                if let Some(coded) = stop.coded_bytes.filter(|coded| most > *coded) {
                    let message = format!(
                        "has packets of up to {most}B, acknowledgements or requests, more than the {coded}B that {}.satellite.packet codes, or coded of its class; raise that",
                        stop.key
                    );
                    return Err(flow_sections[*entry].fault_at(keys::flow::BACK.name, message));
                }
                let on_wire = traffic::on_wire_bytes(most, stop.link);
                let queued = &self.links[stop.at];
                let class = stop.class_of(copy);
                let held = queued.classes.classes[class].limit_bytes;
                if held.is_some_and(|held| i64::try_from(held).is_ok_and(|held| held < on_wire)) {
                    let message = format!(
                        "must hold the largest packet of flow {} on its way back, {on_wire}B on the wire; raise it",
                        flow.name
                    );
                    let section = queued.class_section(class);
                    return Err(section.fault_at(keys::class::LIMIT_BYTES.name, message));
                }
            }
        }
        Ok(())
    }

    /// A link as a scenario of its own, checked. `link` is what it is and how it is written, where it is not as it was read.
    pub(super) fn alone(
        &self,
        top: &Written,
        queued: &Queued<'_, '_>,
        (link, (link_table, of_queues)): (Link, (Written, Tables)),
        passing: Passing,
    ) -> Result<Arc<Scenario>, Fault> {
        let experiment = Experiment {
            link,
            ..self.run.experiment(queued, passing.flows)
        };
        queued.fits(&experiment, &|flow| passing.begins[flow])?;
        let mut written = top.clone();
        written.write(keys::top::LINK.name, Value::Table(link_table));
        of_queues.into(&mut written);
        written.write(keys::top::FLOW.name, Value::Tables(passing.tables));
        Ok(Arc::new(Scenario {
            experiment,
            network: None,
            links: Vec::new(),
            resolved_toml: written.toml(),
            written,
            inputs: Vec::new(),
            notes: Vec::new(),
            readings: Vec::new(),
        }))
    }

    /// The table of a flow as on one link, where it names its class and no way.
    pub(super) fn of_one_link(&self, table: &Written, stop: &Stop<'_>) -> Written {
        use keys::flow::{BACK, CLASS, DSCP, FROM, PATH, TO};
        let names = &self.links[stop.at].classes.names;
        let class = names.iter().find(|(_, range)| **range == stop.classes);
        let class = class.map_or("", |(name, _)| name);
        let of_the_way = [
            BACK.name, CLASS.name, DSCP.name, FROM.name, PATH.name, TO.name,
        ];
        table.replaced(&of_the_way, CLASS.name, class.into())
    }

    /// An experiment with the keys of the run and one of the links, and without classes and flows.
    fn keys_of_the_run(&self, link: usize) -> Experiment {
        let mut experiment = self.run.experiment(&self.links[link], Vec::new());
        experiment.classes.clear();
        experiment.scheduler.qparams.clear();
        experiment
    }
}
