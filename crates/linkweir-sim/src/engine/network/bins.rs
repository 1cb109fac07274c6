// SPDX-License-Identifier: BSD-3-Clause
//! When the tables of a network are written: as with one link, at the end of each bin and of the warm-up, for one link after
//! another.

use linkweir_core::Distribution;

use crate::metrics::network::NetworkTables;
use crate::metrics::Recorder;
use crate::network::Network;
use crate::table::Sink;

use super::super::bottleneck::Bottleneck;
use super::super::flow::Kind;
use super::super::transport;
use super::partition::Partitions;
use super::plan::Plan;

pub(super) struct NetworkBins {
    tables: NetworkTables,
    names: Vec<String>,
    /// The process and entry of each flow's ends.
    ends: Vec<(u32, u32)>,
    interval_ns: u64,
    warmup_ns: u64,
    /// Start of the present bin.
    bin_ns: u64,
    warm: bool,
}

impl NetworkBins {
    pub(super) fn new(
        network: &Network,
        plan: &Plan,
        partitions: &mut Partitions<'_>,
    ) -> NetworkBins {
        let mut processes = partitions.processes();
        let stats: Vec<_> = processes
            .iter_mut()
            .map(|process| process.at().mux.policy().stats())
            .collect();
        NetworkBins {
            tables: NetworkTables::new(stats.into_iter(), (network.warmup_ns, network.duration_ns)),
            names: (0..plan.links()).map(|p| plan.name(p).to_owned()).collect(),
            ends: plan.flows.iter().map(|flow| flow.home).collect(),
            interval_ns: network.interval_ns,
            warmup_ns: network.warmup_ns,
            bin_ns: 0,
            warm: network.warmup_ns == 0,
        }
    }

    /// The state at the beginning of the run.
    pub(super) fn begin(&mut self, partitions: &mut Partitions<'_>) {
        let mut processes = partitions.processes();
        for (place, process) in processes.iter_mut().enumerate() {
            self.sample_levels(place, process.at());
        }
    }

    /// The next time at which a bin or the warm-up ends.
    pub(super) fn next_ns(&self) -> u64 {
        let bin_end_ns = self.bin_ns.saturating_add(self.interval_ns);
        if self.warm {
            return bin_end_ns;
        }
        bin_end_ns.min(self.warmup_ns)
    }

    /// Simulated time reaches the end of a bin, of the warm-up, or of both.
    pub(super) fn cross(
        &mut self,
        now_ns: u64,
        partitions: &mut Partitions<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        for process in &mut partitions.processes() {
            let at = process.at();
            at.now_ns = now_ns;
            transport::record(at);
        }
        if now_ns == self.bin_ns.saturating_add(self.interval_ns) {
            self.end_bin(now_ns, partitions, sink)?;
        }
        if now_ns == self.warmup_ns {
            self.warm = true;
            for process in &mut partitions.processes() {
                process.begin_totals();
            }
        }
        Ok(())
    }

    /// Ends the last bin and writes the totals.
    pub(super) fn finish(
        &mut self,
        now_ns: u64,
        plan: &Plan,
        partitions: &mut Partitions<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        for process in &mut partitions.processes() {
            let at = process.at();
            at.now_ns = now_ns;
            transport::record(at);
            played(at);
        }
        if now_ns > self.bin_ns {
            self.end_bin(now_ns, partitions, sink)?;
        }
        let mut processes = partitions.processes();
        let mut links: Vec<(&str, &mut Recorder, Vec<&Distribution>)> = Vec::new();
        for (process, name) in processes.iter_mut().zip(&self.names) {
            let Bottleneck { recorder, mux, .. } = process.at();
            let waits = (0..mux.nclasses()).map(|class| &mux.counters(class).sojourn_ns);
            links.push((name, recorder, waits.collect()));
        }
        self.tables.finish(&mut links, &plan.flows, now_ns, sink)?;
        for process in &mut processes {
            process.finish(sink)?;
        }
        Ok(())
    }

    fn end_bin(
        &mut self,
        now_ns: u64,
        partitions: &mut Partitions<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let mut processes = partitions.processes();
        for (place, process) in processes.iter_mut().enumerate() {
            process.end_bin(sink)?;
            let at = process.at();
            let bits = at.device.measure(now_ns);
            let link = (self.names[place].as_str(), &mut at.recorder);
            self.tables.end_bin(link, now_ns, bits);
        }
        for (home, entry) in &self.ends {
            let recorder = &mut processes[*home as usize].at().recorder;
            self.tables.end_flow_bin(recorder, *entry, now_ns);
        }
        for (place, process) in processes.iter_mut().enumerate() {
            self.sample_levels(place, process.at());
        }
        let mut recorders: Vec<&mut Recorder> = processes
            .iter_mut()
            .map(|process| &mut process.at().recorder)
            .collect();
        self.tables.take_transfers(&mut recorders);
        self.bin_ns = now_ns;
        self.tables.bins_ended(recorders.into_iter(), now_ns, sink)
    }

    fn sample_levels(&mut self, place: usize, at: &mut Bottleneck<'_>) {
        let stats = at.mux.policy().stats();
        if stats.is_empty() {
            return;
        }
        let mut values = vec![0; stats.len()];
        for class in 0..at.experiment.classes.len() {
            at.mux.observe(at.now_ns, class, &mut values);
            let link = (self.names[place].as_str(), &at.recorder);
            self.tables.level(link, at.now_ns, class, (stats, &values));
        }
    }
}

/// What the viewers of videos saw.
fn played(at: &mut Bottleneck<'_>) {
    for (index, flow) in at.flows.iter_mut().enumerate() {
        if let Kind::Application(application) = &mut flow.kind {
            if let Some(seen) = application.playback(at.now_ns) {
                at.recorder.played(index, &seen);
            }
        }
    }
}
