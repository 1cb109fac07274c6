// SPDX-License-Identifier: BSD-3-Clause
//! The channels of a beam's terminals over time, and how the carrier's time is shared among them.

use crate::experiment::{first_classes, Experiment};
use crate::table::Sink;

use super::column::{bits_per_second, decibels, seconds, unitless, Column, TableOf};

/// A terminal's channel between two ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChannelState {
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
pub(super) struct Terminal {
    name: String,
    clear_sky_db: f64,
    now: ChannelState,
    /// Its state was set before.
    begun: bool,
    sums: Sums,
    bin: Sums,
    total: Sums,
    total_max_db: f64,
}

/// Records the channels of all terminals.
#[derive(Debug)]
pub(crate) struct ChannelRecorder {
    terminals: Vec<Terminal>,
    /// Time up to which sums are added up, starts of the bin and of what totals cover.
    at_ns: u64,
    bin_ns: u64,
    total_ns: u64,
    /// Time on air of each terminal at both.
    bin_airtimes_ns: Vec<f64>,
    total_airtimes_ns: Vec<f64>,
    channel: TableOf<Terminal, Bin>,
    carrier: TableOf<Means, Bin>,
    totals: TableOf<Terminal, Total>,
}

impl ChannelRecorder {
    /// A terminal has the name of its user or, without one, of its class; `users` has the terminal of each class.
    pub(crate) fn new(
        experiment: &Experiment,
        users: &[usize],
        clear_sky_db: &[f64],
    ) -> ChannelRecorder {
        let classes = first_classes(users)
            .into_iter()
            .map(|at| &experiment.classes[at]);
        let terminals: Vec<Terminal> = classes
            .zip(clear_sky_db)
            .map(|(class, clear_sky_db)| Terminal {
                name: class.user.as_ref().unwrap_or(&class.name).clone(),
                clear_sky_db: *clear_sky_db,
                now: ChannelState::default(),
                begun: false,
                sums: Sums::default(),
                bin: Sums::default(),
                total: Sums::default(),
                total_max_db: 0.0,
            })
            .collect();
        let none = vec![0.0; terminals.len()];
        ChannelRecorder {
            terminals,
            at_ns: 0,
            bin_ns: 0,
            total_ns: experiment.warmup_ns,
            bin_airtimes_ns: none.clone(),
            total_airtimes_ns: none,
            channel: TableOf::new("channel", CHANNEL),
            carrier: TableOf::new("carrier", CARRIER),
            totals: TableOf::new("terminals", TERMINALS),
        }
    }

    /// That of a link in a network.
    pub(crate) fn in_network(mut self, link: &str) -> ChannelRecorder {
        self.channel = TableOf::of_links("channel", CHANNEL, &[]);
        self.carrier = TableOf::of_links("carrier", CARRIER, &[]);
        self.totals = TableOf::of_links("terminals", TERMINALS, &[]);
        self.channel.set_link(link);
        self.carrier.set_link(link);
        self.totals.set_link(link);
        self
    }

    /// Adds up the present states, which lasted up to now.
    pub(crate) fn advance(&mut self, now_ns: u64) {
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

    /// The state of a terminal from now on. All must have been advanced up to now.
    pub(crate) fn set(&mut self, terminal: usize, state: ChannelState) {
        let terminal = &mut self.terminals[terminal];
        if terminal.begun && terminal.now.modcod != state.modcod {
            terminal.sums.changes += 1;
        }
        terminal.begun = true;
        terminal.now = state;
    }

    /// Totals count from now on.
    pub(crate) fn begin_totals(&mut self, now_ns: u64, airtimes_ns: Vec<f64>) {
        self.advance(now_ns);
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
        self.advance(now_ns);
        let t_s = self.bin_ns as f64 / 1e9;
        let span = (now_ns - self.bin_ns) as f64;
        let n = self.terminals.len() as f64;
        let mut means = Means::default();
        for (index, terminal) in self.terminals.iter_mut().enumerate() {
            let airtime = (airtimes_ns[index] - self.bin_airtimes_ns[index]) / span;
            let bin = Bin { t_s, span, airtime };
            self.channel.add(terminal, &bin);
            means.occupancy += airtime;
            means.rate_bps += terminal.rate_bps(&bin) / n;
            means.outage += terminal.outage(&bin) / n;
            terminal.bin = terminal.sums;
        }
        let bin = Bin {
            t_s,
            span,
            airtime: means.occupancy,
        };
        self.carrier.add(&means, &bin);
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
        self.advance(now_ns);
        self.channel.flush(sink)?;
        self.carrier.flush(sink)?;
        let span = now_ns.saturating_sub(self.total_ns) as f64;
        for (index, terminal) in self.terminals.iter().enumerate() {
            let airtime_ns = airtimes_ns[index] - self.total_airtimes_ns[index];
            let airtime = airtime_ns / span;
            self.totals.add(terminal, &Total { span, airtime });
        }
        self.totals.flush(sink)
    }
}

impl Terminal {
    /// Mean rate in a bin, bit/s.
    fn rate_bps(&self, bin: &Bin) -> f64 {
        (self.sums.rate_bps - self.bin.rate_bps) / bin.span
    }

    /// Part of a bin in outage.
    fn outage(&self, bin: &Bin) -> f64 {
        (self.sums.outage_ns - self.bin.outage_ns) as f64 / bin.span
    }
}

/// A bin of a series: its start in s and its length in ns, and the part of it in which the carrier served the terminal.
#[derive(Debug)]
pub(super) struct Bin {
    t_s: f64,
    span: f64,
    airtime: f64,
}

/// The time that totals cover: its length in ns, and the part of it in which the carrier served the terminal.
#[derive(Debug)]
pub(super) struct Total {
    span: f64,
    airtime: f64,
}

/// Means over the terminals in a bin.
#[derive(Debug, Default)]
pub(super) struct Means {
    occupancy: f64,
    rate_bps: f64,
    outage: f64,
}

/// Columns of table `channel`.
pub(super) const CHANNEL: &[Column<Terminal, Bin>] = &[
    seconds("t_s", "Start of the bin.").real(|_, bin| Some(bin.t_s)),
    unitless("class", "Name of the class, which is a terminal.").name(|t, _| &t.name),
    decibels("esn0_db", "Mean Es/N0.")
        .real(|t, bin| Some((t.sums.esn0_db - t.bin.esn0_db) / bin.span)),
    decibels("attenuation_db", "Mean attenuation by rain.")
        .real(|t, bin| Some((t.sums.attenuation_db - t.bin.attenuation_db) / bin.span)),
    bits_per_second("rate_bps", "Mean rate that modulation and code give.")
        .real(|t, bin| Some(t.rate_bps(bin))),
    unitless("outage", "Part of the bin without any modulation and code.")
        .real(|t, bin| Some(t.outage(bin))),
    unitless(
        "airtime",
        "Part of the bin in which the carrier served the terminal.",
    )
    .real(|_, bin| Some(bin.airtime)),
    unitless("modcod", "Modulation and code at the end of the bin.")
        .name(|t, _| t.now.modcod.unwrap_or("none")),
];

/// Columns of table `carrier`.
pub(super) const CARRIER: &[Column<Means, Bin>] = &[
    seconds("t_s", "Start of the bin.").real(|_, bin| Some(bin.t_s)),
    unitless("occupancy", "Part of the bin in which the carrier sent.")
        .real(|means, _| Some(means.occupancy)),
    bits_per_second("rate_mean_bps", "Mean of the terminals' rates.")
        .real(|means, _| Some(means.rate_bps)),
    unitless(
        "outage",
        "Mean of the parts of the bin that terminals were in outage.",
    )
    .real(|means, _| Some(means.outage)),
];

/// Columns of table `terminals`.
pub(super) const TERMINALS: &[Column<Terminal, Total>] = &[
    unitless("class", "Name of the class, which is a terminal.").name(|t, _| &t.name),
    decibels("clear_sky_esn0_db", "Es/N0 without rain.").real(|t, _| Some(t.clear_sky_db)),
    decibels("esn0_mean_db", "Mean Es/N0.")
        .real(|t, total| Some((t.sums.esn0_db - t.total.esn0_db) / total.span)),
    decibels("attenuation_mean_db", "Mean attenuation by rain.")
        .real(|t, total| Some((t.sums.attenuation_db - t.total.attenuation_db) / total.span)),
    decibels("attenuation_max_db", "Greatest attenuation by rain.")
        .real(|t, _| Some(t.total_max_db)),
    bits_per_second(
        "channel_rate_bps",
        "Mean rate that modulation and code give.",
    )
    .real(|t, total| Some((t.sums.rate_bps - t.total.rate_bps) / total.span)),
    unitless(
        "outage",
        "Part of the time without any modulation and code.",
    )
    .real(|t, total| Some((t.sums.outage_ns - t.total.outage_ns) as f64 / total.span)),
    unitless("modcod_changes", "Changes of modulation and code.")
        .count(|t, _| t.sums.changes - t.total.changes),
    unitless(
        "airtime",
        "Part of the time in which the carrier served the terminal.",
    )
    .real(|_, total| Some(total.airtime)),
];
