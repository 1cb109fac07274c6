// SPDX-License-Identifier: BSD-3-Clause
//! The tables that grow during a run.

use linkweir_core::Stat;

use crate::table::Sink;

use super::application::TRANSFERS;
use super::class::{Bin, Class, SERIES, SERIES_OF_LINKS};
use super::column::{TableOf, LINK_NAME};
use super::flow::{Flow, FLOW_SERIES};
use super::link::{LinkBin, LINK};
use super::rows::{Kind, Rows};
use super::transfers::Transfer;

#[derive(Debug)]
pub(super) struct Tables {
    pub(super) series: TableOf<Class, Bin>,
    pub(super) link: TableOf<LinkBin, Bin>,
    pub(super) flow_series: TableOf<Flow, Bin>,
    /// A policy's statistics of each class: their columns are the policy's.
    pub(super) levels: Rows,
    pub(super) transfers: TableOf<Flow, Transfer>,
}

impl Tables {
    /// Of a run over one link, whose policy has these statistics.
    pub(super) fn new(stats: &[Stat]) -> Tables {
        let stats: Vec<String> = stats.iter().map(heading).collect();
        let mut levels = vec![("t_s", Kind::Real), ("class", Kind::Name)];
        levels.extend(stats.iter().map(|name| (name.as_str(), Kind::Whole)));
        Tables {
            series: TableOf::new("series", SERIES),
            link: TableOf::new("link", LINK),
            flow_series: TableOf::new("flow_series", FLOW_SERIES),
            levels: Rows::new("levels", levels),
            transfers: TableOf::new("transfers", TRANSFERS),
        }
    }

    /// Of a run over several links, whose policies together have statistics of these names. Their cells are empty where a
    /// link's policy has none of the name.
    pub(super) fn of_links(stats: &[String]) -> Tables {
        let mut levels = vec![
            (LINK_NAME, Kind::Name),
            ("t_s", Kind::Real),
            ("class", Kind::Name),
        ];
        levels.extend(stats.iter().map(|name| (name.as_str(), Kind::Real)));
        Tables {
            series: TableOf::of_links("series", SERIES, SERIES_OF_LINKS),
            link: TableOf::of_links("link", LINK, &[]),
            flow_series: TableOf::new("flow_series", FLOW_SERIES),
            levels: Rows::new("levels", levels),
            transfers: TableOf::new("transfers", TRANSFERS),
        }
    }

    /// Hands out full chunks of rows.
    pub(super) fn flush_full(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.series.flush_full(sink)?;
        self.link.flush_full(sink)?;
        self.flow_series.flush_full(sink)?;
        self.levels.flush_full(sink)?;
        self.transfers.flush_full(sink)
    }

    /// Hands out all rows of the series.
    pub(super) fn flush_series(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.series.flush(sink)?;
        self.link.flush(sink)?;
        self.flow_series.flush(sink)?;
        self.levels.flush(sink)
    }
}

/// The column of a statistic.
pub(super) fn heading(stat: &Stat) -> String {
    format!("{}{}", stat.name, stat.unit.suffix())
}
