// SPDX-License-Identifier: BSD-3-Clause
//! Columns of the tables that not every run has.

use crate::table::Table;

use super::rows::{Kind, Rows};

type Columns = &'static [(&'static str, Kind)];

pub(super) const HARQ: Columns = &[
    ("flow", Kind::Name),
    ("class", Kind::Name),
    ("decoded_first_pkts", Kind::Count),
    ("decoded_second_pkts", Kind::Count),
    ("decoded_third_pkts", Kind::Count),
    ("decoded_fourth_pkts", Kind::Count),
    ("given_up_pkts", Kind::Count),
    ("coded_bits", Kind::Count),
    ("dropped_late_pkts", Kind::Count),
];

pub(super) const CHANNEL: Columns = &[
    ("t_s", Kind::Real),
    ("class", Kind::Name),
    ("esn0_db", Kind::Real),
    ("attenuation_db", Kind::Real),
    ("rate_bps", Kind::Real),
    ("outage", Kind::Real),
    ("airtime", Kind::Real),
    ("modcod", Kind::Name),
];

pub(super) const CARRIER: Columns = &[
    ("t_s", Kind::Real),
    ("occupancy", Kind::Real),
    ("rate_mean_bps", Kind::Real),
    ("outage", Kind::Real),
];

pub(super) const TERMINALS: Columns = &[
    ("class", Kind::Name),
    ("clear_sky_esn0_db", Kind::Real),
    ("esn0_mean_db", Kind::Real),
    ("attenuation_mean_db", Kind::Real),
    ("attenuation_max_db", Kind::Real),
    ("channel_rate_bps", Kind::Real),
    ("outage", Kind::Real),
    ("modcod_changes", Kind::Count),
    ("airtime", Kind::Real),
];

/// These tables without rows.
#[must_use]
pub fn optional_tables() -> Vec<Table> {
    [
        Rows::new("harq", HARQ),
        Rows::new("channel", CHANNEL),
        Rows::new("carrier", CARRIER),
        Rows::new("terminals", TERMINALS),
    ]
    .into_iter()
    .map(Rows::into_table)
    .collect()
}
