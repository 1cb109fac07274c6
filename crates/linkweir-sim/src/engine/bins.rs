// SPDX-License-Identifier: BSD-3-Clause
//! Bins of the series and the end of the warm-up. They are no events: a bin ends before the first event at or after its end.

use crate::table::Sink;

use super::bottleneck::Bottleneck;
use super::flow::Kind;
use super::medium::Medium;
use super::transport;

/// Writes the tables as simulated time passes.
pub(super) struct Bins {
    /// A policy's statistics of one class.
    values: Vec<i64>,
}

impl Bins {
    /// For a policy with this number of statistics.
    pub(super) fn new(statistics: usize) -> Bins {
        Bins {
            values: vec![0; statistics],
        }
    }

    /// The state at the beginning of the run.
    pub(super) fn begin(&mut self, at: &mut Bottleneck) {
        self.sample_levels(at);
    }

    /// The next time at which a bin or the warm-up ends.
    pub(super) fn next_ns(&self, at: &Bottleneck) -> u64 {
        let bin_end_ns = bin_end_ns(at);
        let warmup_ns = at.times.warmup_ns;
        if warmup_ns > at.now_ns {
            return bin_end_ns.min(warmup_ns);
        }
        bin_end_ns
    }

    /// Simulated time reaches the end of a bin, of the warm-up, or of both.
    pub(super) fn cross(
        &mut self,
        boundary_ns: u64,
        at: &mut Bottleneck,
        medium: &mut impl Medium,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        at.now_ns = boundary_ns;
        transport::record(at);
        if boundary_ns == bin_end_ns(at) {
            self.end_bin(at, medium, sink)?;
        }
        if boundary_ns == at.times.warmup_ns {
            at.recorder.begin_totals(boundary_ns);
            medium.begin_totals(at);
            at.mux.reset_counters();
        }
        Ok(())
    }

    /// Ends the last bin and writes the totals.
    pub(super) fn finish(
        &mut self,
        at: &mut Bottleneck,
        medium: &mut impl Medium,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        transport::record(at);
        for (index, flow) in at.flows.iter_mut().enumerate() {
            if let Kind::Application(application) = &mut flow.kind {
                if let Some(seen) = application.playback(at.now_ns) {
                    at.recorder.played(index, &seen);
                }
            }
        }
        if at.now_ns > at.recorder.bin_ns() {
            self.end_bin(at, medium, sink)?;
        }
        let Bottleneck {
            recorder,
            mux,
            now_ns,
            ..
        } = at;
        recorder.finish(*now_ns, |class| &mux.counters(class).sojourn_ns, sink)?;
        medium.finish(at, sink)
    }

    fn end_bin(
        &mut self,
        at: &mut Bottleneck,
        medium: &mut impl Medium,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        medium.end_bin(at, sink)?;
        let (offered, carried) = medium.measure(at);
        at.recorder.end_bin(at.now_ns, offered, carried, sink)?;
        self.sample_levels(at);
        Ok(())
    }

    fn sample_levels(&mut self, at: &mut Bottleneck) {
        if self.values.is_empty() {
            return;
        }
        for class in 0..at.mux.nclasses() {
            at.mux.observe(at.now_ns, class, &mut self.values);
            at.recorder.level(at.now_ns, class, &self.values);
        }
    }
}

fn bin_end_ns(at: &Bottleneck) -> u64 {
    at.recorder.bin_ns().saturating_add(at.times.interval_ns)
}
