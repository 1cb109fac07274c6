// SPDX-License-Identifier: BSD-3-Clause
//! The columns of table `link`.

use super::class::Bin;
use super::column::{bits_per_second, seconds, Column};

/// Bits that the link offered and carried in a bin.
#[derive(Debug)]
pub(super) struct LinkBin {
    pub(super) offered: f64,
    pub(super) carried: f64,
}

/// Columns of table `link`.
pub(super) const LINK: &[Column<LinkBin, Bin>] = &[
    seconds("t_s", "Start of the bin.").real(|_, bin| Some(bin.t_s)),
    bits_per_second("capacity_bps", "Rate that the link offered.")
        .real(|link, bin| Some(link.offered / bin.span_s)),
    bits_per_second(
        "used_bps",
        "Rate that it carried, the link's overhead included.",
    )
    .real(|link, bin| Some(link.carried / bin.span_s)),
];
