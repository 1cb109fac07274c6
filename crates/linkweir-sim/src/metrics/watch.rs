// SPDX-License-Identifier: BSD-3-Clause
//! Measurements packet by packet that only some runs ask for. Without them a run has no [`Watch`], and each packet costs
//! a comparison at each step of its way.

use linkweir_core::Distribution;

use crate::experiment::Experiment;

/// A packet as it is seen at one step of its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) flow: u32,
    /// Its own bytes, without the link's overhead.
    pub(crate) bytes: u32,
}

/// What is measured of the packets of all flows.
#[derive(Debug)]
pub(super) struct Watch {
    flows: Vec<Watched>,
}

/// What is measured of one flow.
#[derive(Debug)]
struct Watched {
    queueing_ns: Option<Box<Distribution>>,
}

impl Watch {
    /// What the experiment asks for, if anything.
    pub(super) fn new(experiment: &Experiment) -> Option<Box<Watch>> {
        let flows = experiment.flows.iter();
        let asked = flows.clone().any(|flow| flow.measures.delays);
        asked.then(|| {
            Box::new(Watch {
                flows: flows
                    .map(|flow| Watched {
                        queueing_ns: flow.measures.delays.then(Box::default),
                    })
                    .collect(),
            })
        })
    }

    pub(super) fn sent(&mut self, packet: &Seen, sojourn_ns: u64) {
        if let Some(queueing_ns) = &mut self.flows[packet.flow as usize].queueing_ns {
            queueing_ns.record(sojourn_ns);
        }
    }

    /// Distributions count from now on.
    pub(super) fn begin_totals(&mut self) {
        for queueing_ns in self
            .flows
            .iter_mut()
            .filter_map(|flow| flow.queueing_ns.as_mut())
        {
            queueing_ns.reset();
        }
    }

    /// Queueing delays of a flow, where they are asked for.
    pub(super) fn queueing_ns(&self, flow: usize) -> Option<&Distribution> {
        self.flows[flow].queueing_ns.as_deref()
    }
}
