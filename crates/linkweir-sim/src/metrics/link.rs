// SPDX-License-Identifier: BSD-3-Clause
//! The columns of table `link`.

use super::class::Bin;
use super::column::{Column, Unit, Value};

/// Bits that the link offered and carried in a bin.
#[derive(Debug)]
pub(super) struct LinkBin {
    pub(super) offered: f64,
    pub(super) carried: f64,
}

/// Columns of table `link`.
pub(super) const LINK: &[Column<LinkBin, Bin>] = &[
    Column {
        name: "t_s",
        unit: Unit::Seconds,
        help: "Start of the bin.",
        value: Value::Real(|_, bin| Some(bin.t_s)),
    },
    Column {
        name: "capacity_bps",
        unit: Unit::BitsPerSecond,
        help: "Rate that the link offered.",
        value: Value::Real(|link, bin| Some(link.offered / bin.span_s)),
    },
    Column {
        name: "used_bps",
        unit: Unit::BitsPerSecond,
        help: "Rate that it carried, the link's overhead included.",
        value: Value::Real(|link, bin| Some(link.carried / bin.span_s)),
    },
];
