// SPDX-License-Identifier: BSD-3-Clause
//! All flows of a scenario.

use std::collections::BTreeSet;

use linkweir_config::reader::{quote, Section};
use linkweir_config::Fault;

use crate::experiment::Flow;

use super::inputs::{Input, Told};
use super::route::{Route, Ways};
use super::run_keys::Times;
use super::{keys, limits, measures, traffic};

/// The tables of flows.
pub(super) fn flow_tables<'s, 'i>(
    top: &mut Section<'s, 'i>,
) -> Result<Vec<Section<'s, 'i>>, Fault> {
    let most = usize::try_from(limits::FLOWS).unwrap_or(usize::MAX);
    top.tables(keys::top::FLOW.name, most)
}

/// All flows, copies counted, with names of their own.
pub(super) struct Sources<'a> {
    pub(super) flows: Vec<Flow>,
    /// Which entry each comes from.
    pub(super) entries: Vec<usize>,
    /// The way of each entry.
    pub(super) routes: Vec<Route<'a>>,
}

impl<'a> Sources<'a> {
    pub(super) fn read(
        sections: &mut [Section<'_, '_>],
        ways: &Ways<'a>,
        times: &Times,
        (inputs, told): (&mut Vec<Input>, &mut Told),
    ) -> Result<Sources<'a>, Fault> {
        let mut flows = Vec::new();
        let mut entries = Vec::new();
        let mut routes = Vec::new();
        for (index, section) in sections.iter_mut().enumerate() {
            let before = flows.len();
            let entry = (index, times.duration_ns);
            let files = (&mut *inputs, &mut *told);
            routes.push(traffic::read(section, entry, ways, files, &mut flows)?);
            entries.resize(entries.len() + flows.len() - before, index);
        }
        let too_large = traffic::too_many_connections(&flows)
            .or_else(|| measures::too_large(&flows, (times.warmup_ns, times.duration_ns)));
        if let Some((at, key, message)) = too_large {
            return Err(sections[entries[at]].fault_at(key, message));
        }
        let mut names = BTreeSet::new();
        for (flow, entry) in flows.iter().zip(&entries) {
            if !names.insert(flow.name.as_str()) {
                let message = format!("two flows are called {}; rename one", quote(&flow.name));
                return Err(sections[*entry].fault_at(keys::flow::NAME.name, message));
            }
        }
        Ok(Sources {
            flows,
            entries,
            routes,
        })
    }
}
