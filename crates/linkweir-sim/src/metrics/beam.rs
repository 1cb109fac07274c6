// SPDX-License-Identifier: BSD-3-Clause
//! What the terminals of a beam hear, and how the carrier's time is shared among them.

use crate::experiment::Experiment;
use crate::table::Sink;

use super::columns;
use super::rows::Rows;

/// What a terminal hears between two ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) esn0_db: f64,
    pub(crate) attenuation_db: f64,
    pub(crate) rate_bps: f64,
    /// None in an outage.
    pub(crate) modcod: Option<&'static str>,
}

/// Values added up over time, times ns.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    esn0_db: f64,
    attenuation_db: f64,
    rate_bps: f64,
    outage_ns: u64,
    changes: u64,
}

#[derive(Debug)]
struct Terminal {
    name: String,
    clear_sky_db: f64,
    now: Heard,
    /// Something was heard before.
    begun: bool,
    sums: Sums,
    bin: Sums,
    total: Sums,
    total_max_db: f64,
}

/// Hears for all terminals and writes it down.
#[derive(Debug)]
pub(crate) struct Listener {
    terminals: Vec<Terminal>,
    /// Time up to which sums are added up, starts of the bin and of what totals cover.
    at_ns: u64,
    bin_ns: u64,
    total_ns: u64,
    /// Time on air of each terminal at both.
    bin_airtimes_ns: Vec<f64>,
    total_airtimes_ns: Vec<f64>,
    channel: Rows,
    carrier: Rows,
}

impl Listener {
    pub(crate) fn new(experiment: &Experiment, clear_sky_db: &[f64]) -> Listener {
        let terminals: Vec<Terminal> = experiment
            .classes
            .iter()
            .zip(clear_sky_db)
            .map(|(class, clear_sky_db)| Terminal {
                name: class.name.clone(),
                clear_sky_db: *clear_sky_db,
                now: Heard::default(),
                begun: false,
                sums: Sums::default(),
                bin: Sums::default(),
                total: Sums::default(),
                total_max_db: 0.0,
            })
            .collect();
        let none = vec![0.0; terminals.len()];
        Listener {
            terminals,
            at_ns: 0,
            bin_ns: 0,
            total_ns: experiment.warmup_ns,
            bin_airtimes_ns: none.clone(),
            total_airtimes_ns: none,
            channel: Rows::new("channel", columns::CHANNEL),
            carrier: Rows::new("carrier", columns::CARRIER),
        }
    }

    /// What was heard last has been heard up to now.
    pub(crate) fn pass(&mut self, now_ns: u64) {
        let span_ns = now_ns - self.at_ns;
        self.at_ns = now_ns;
        let span = span_ns as f64;
        if span_ns == 0 {
            return;
        }
        for terminal in &mut self.terminals {
            let Terminal { now, sums, .. } = terminal;
            sums.esn0_db += now.esn0_db * span;
            sums.attenuation_db += now.attenuation_db * span;
            sums.rate_bps += now.rate_bps * span;
            if now.modcod.is_none() {
                sums.outage_ns += span_ns;
            }
            terminal.total_max_db = terminal.total_max_db.max(now.attenuation_db);
        }
    }

    /// What a terminal hears from now on, up to which the others have passed.
    pub(crate) fn hear(&mut self, terminal: usize, heard: Heard) {
        let terminal = &mut self.terminals[terminal];
        if terminal.begun && terminal.now.modcod != heard.modcod {
            terminal.sums.changes += 1;
        }
        terminal.begun = true;
        terminal.now = heard;
    }

    /// Totals count from now on.
    pub(crate) fn begin_totals(&mut self, now_ns: u64, airtimes_ns: Vec<f64>) {
        self.pass(now_ns);
        self.total_ns = now_ns;
        self.total_airtimes_ns = airtimes_ns;
        for terminal in &mut self.terminals {
            terminal.total = terminal.sums;
            terminal.total_max_db = 0.0;
        }
    }

    /// Ends the present bin, with the time on air of each terminal since the start.
    pub(crate) fn end_bin(
        &mut self,
        now_ns: u64,
        airtimes_ns: &[f64],
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        self.pass(now_ns);
        let t_s = self.bin_ns as f64 / 1e9;
        let span = (now_ns - self.bin_ns) as f64;
        let n = self.terminals.len() as f64;
        let (mut occupancy, mut rate_bps, mut outage) = (0.0, 0.0, 0.0);
        for (index, terminal) in self.terminals.iter_mut().enumerate() {
            let (now, then) = (&terminal.sums, &terminal.bin);
            let airtime = (airtimes_ns[index] - self.bin_airtimes_ns[index]) / span;
            let rate = (now.rate_bps - then.rate_bps) / span;
            let silent = (now.outage_ns - then.outage_ns) as f64 / span;
            self.channel
                .real(Some(t_s))
                .name(&terminal.name)
                .real(Some((now.esn0_db - then.esn0_db) / span))
                .real(Some((now.attenuation_db - then.attenuation_db) / span))
                .real(Some(rate))
                .real(Some(silent))
                .real(Some(airtime))
                .name(terminal.now.modcod.unwrap_or("none"));
            occupancy += airtime;
            rate_bps += rate / n;
            outage += silent / n;
            terminal.bin = terminal.sums;
        }
        self.carrier
            .real(Some(t_s))
            .real(Some(occupancy))
            .real(Some(rate_bps))
            .real(Some(outage));
        self.bin_ns = now_ns;
        self.bin_airtimes_ns.copy_from_slice(airtimes_ns);
        self.channel.flush_full(sink)?;
        self.carrier.flush_full(sink)
    }

    /// Writes the totals and hands out all rows that wait.
    pub(crate) fn finish(
        &mut self,
        now_ns: u64,
        airtimes_ns: &[f64],
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        self.pass(now_ns);
        self.channel.flush(sink)?;
        self.carrier.flush(sink)?;
        let span = now_ns.saturating_sub(self.total_ns) as f64;
        let mut rows = Rows::new("terminals", columns::TERMINALS);
        for (index, terminal) in self.terminals.iter().enumerate() {
            let (now, then) = (&terminal.sums, &terminal.total);
            let airtime_ns = airtimes_ns[index] - self.total_airtimes_ns[index];
            rows.name(&terminal.name)
                .real(Some(terminal.clear_sky_db))
                .real(Some((now.esn0_db - then.esn0_db) / span))
                .real(Some((now.attenuation_db - then.attenuation_db) / span))
                .real(Some(terminal.total_max_db))
                .real(Some((now.rate_bps - then.rate_bps) / span))
                .real(Some((now.outage_ns - then.outage_ns) as f64 / span))
                .count(now.changes - then.changes)
                .real(Some(airtime_ns / span));
        }
        rows.flush(sink)
    }
}
