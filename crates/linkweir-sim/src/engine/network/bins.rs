// SPDX-License-Identifier: BSD-3-Clause
//! When the tables of a network are written: as with one link, at the end of each bin and of the warm-up, for one link after
//! another.

use linkweir_core::Distribution;

use crate::experiment::Traffic;
use crate::metrics::network::NetworkTables;
use crate::metrics::Recorder;
use crate::network::Network;
use crate::table::Sink;

use super::partition::Partitions;
use super::plan::Plan;
use super::process::Process;

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
            .map(|process| process.stats())
            .collect();
        let times = (network.warmup_ns, network.duration_ns);
        let mut tables = NetworkTables::new(stats.into_iter(), times);
        if let Some(rows) = network.log_rows {
            let recorders: Vec<&mut Recorder> = processes
                .iter_mut()
                .map(|process| process.recorder())
                .collect();
            let flows = network.flows.iter();
            let applications =
                flows.map(|routed| matches!(routed.flow.traffic, Traffic::Application(_)));
            tables = tables.with_log(rows, &recorders, plan.entries(), applications);
        }
        NetworkBins {
            tables,
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
        let now_ns = 0;
        let mut processes = partitions.processes();
        for (place, process) in processes.iter_mut().enumerate() {
            self.sample_levels(place, now_ns, process);
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

    /// Writes the log up to now, if there is one.
    pub(super) fn write_log(
        &mut self,
        partitions: &mut Partitions<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let mut processes = partitions.processes();
        let names = self.names.iter().map(String::as_str);
        let recorders = processes.iter_mut().map(|process| process.recorder());
        let mut links: Vec<(&str, &mut Recorder)> = names.zip(recorders).collect();
        self.tables.write_log(&mut links, sink)
    }

    /// When the log was full, if it was.
    pub(super) fn log_cut_ns(&self) -> Option<u64> {
        self.tables.log_cut_ns()
    }

    /// Simulated time reaches the end of a bin, of the warm-up, or of both.
    pub(super) fn cross(
        &mut self,
        now_ns: u64,
        partitions: &mut Partitions<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        for process in &mut partitions.processes() {
            process.settle(now_ns);
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
            process.settle(now_ns);
            process.end();
        }
        if now_ns > self.bin_ns {
            self.end_bin(now_ns, partitions, sink)?;
        }
        let mut processes = partitions.processes();
        let mut links: Vec<(&str, &mut Recorder, Vec<&Distribution>)> = Vec::new();
        for (process, name) in processes.iter_mut().zip(&self.names) {
            let (recorder, waits) = process.totals();
            links.push((name, recorder, waits));
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
            let bits = process.measure(now_ns);
            let link = (self.names[place].as_str(), process.recorder());
            self.tables.end_bin(link, now_ns, bits);
        }
        for (home, entry) in &self.ends {
            let recorder = processes[*home as usize].recorder();
            self.tables.end_flow_bin(recorder, *entry, now_ns);
        }
        for (place, process) in processes.iter_mut().enumerate() {
            self.sample_levels(place, now_ns, process);
        }
        let mut recorders: Vec<&mut Recorder> = processes
            .iter_mut()
            .map(|process| process.recorder())
            .collect();
        self.tables.take_transfers(&mut recorders);
        self.bin_ns = now_ns;
        self.tables.bins_ended(recorders.into_iter(), now_ns, sink)
    }

    fn sample_levels(&mut self, place: usize, now_ns: u64, process: &mut Box<dyn Process + '_>) {
        let stats = process.stats();
        if stats.is_empty() {
            return;
        }
        let mut rows = Vec::new();
        process.levels(&mut |class, values| rows.push((class, values.to_vec())));
        for (class, values) in rows {
            let link = (self.names[place].as_str(), &*process.recorder());
            self.tables.level(link, now_ns, class, (stats, &values));
        }
    }
}
