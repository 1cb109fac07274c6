// SPDX-License-Identifier: BSD-3-Clause
//! Notations of trace files, and what follows their last line.

/// Notation of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own CSV.
    Linkweir,
    /// One millisecond number per delivery opportunity.
    Mahimahi,
    /// CSV with a time column and columns in Mbit/s.
    Mbit,
    /// CSV of which the scenario names the columns.
    Csv,
    /// JSON of `iperf3 --json`.
    Iperf3,
    /// JSON of a Starlink dish's history.
    Starlink,
    /// Rates at a fixed interval, without times.
    Rates,
}

impl Format {
    /// Names in scenarios, in the order of the variants.
    pub const NAMES: [&'static str; 7] = [
        "linkweir", "mahimahi", "mbit", "csv", "iperf3", "starlink", "rates",
    ];
    /// What a scenario may write: these names, or that the content is to tell.
    pub const CHOICES: [&'static str; Format::NAMES.len() + 1] = {
        let mut words = ["auto"; Format::NAMES.len() + 1];
        let mut at = 0;
        while at < Format::NAMES.len() {
            words[at + 1] = Format::NAMES[at];
            at += 1;
        }
        words
    };
    pub(super) const ALL: [Format; 7] = [
        Format::Linkweir,
        Format::Mahimahi,
        Format::Mbit,
        Format::Csv,
        Format::Iperf3,
        Format::Starlink,
        Format::Rates,
    ];

    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        Format::NAMES[self as usize]
    }
}

/// What follows the last line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEnd {
    /// It starts again.
    Loop,
    /// The last value stays.
    Hold,
    /// Nothing leaves any more.
    Stop,
}

impl TraceEnd {
    /// Names in scenarios and files, in the order of the variants.
    pub const NAMES: [&'static str; 3] = ["loop", "hold", "stop"];

    /// Its name in scenarios and files.
    pub fn name(self) -> &'static str {
        TraceEnd::NAMES[self as usize]
    }
}

/// Beginnings of files that are recognised, for faults.
pub(super) const FORMATS: &str = "a header t_s,capacity_bps (Linkweir), a header t_s,..._mbit (mbit), one whole number of ms per line (mahimahi), or JSON of iperf3 or Starlink; of other CSV, name the columns: columns = { t = \"...\", capacity = \"...\" }";
