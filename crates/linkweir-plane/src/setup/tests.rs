// SPDX-License-Identifier: BSD-3-Clause
//! Settings of links for the tests of this crate, read from text.

use linkweir_config::parameters;
use linkweir_config::reader::{Entry, Section, Source};
use linkweir_config::units::Kind;

use super::*;

/// A voice class first, a class with a reservation, and the rest.
pub(crate) const GROUND: &str = r#"[link]
rate = "20Mbit"
[scheduler]
policy = "pss"
[[class]]
name = "ef"
level = 0
limit = "100p"
[[class]]
name = "af"
level = 1
low_level = 3
rate = "5Mbit"
memory = "1s"
limit = "200p"
[[class]]
name = "rest"
level = 2
limit = "200p"
[[peer]]
name = "ship"
"#;

/// Settings of the links of a test.
#[derive(Clone)]
pub(crate) struct Links {
    pub(crate) scheduler: Scheduler,
    pub(crate) classes: Vec<Class>,
    pub(crate) peers: Vec<Capacity>,
    pub(crate) across: Option<Scheduler>,
    pub(crate) measured: bool,
}

impl Links {
    /// Reads them in the notation of the gateway's file, without that file's checks.
    pub(crate) fn parse(text: &str) -> Links {
        let source = Source::new(text, None);
        let document = source.parse(1 << 20).unwrap();
        let mut top = Section::new(&source, document.get_ref(), String::new(), 0);
        let mut link = top.need_table("link", "").unwrap();
        let whole_link = capacity(&mut link);
        let mut across = link.find("across").map(|entry| {
            let mut table = entry.table().unwrap();
            let scheduler = scheduler(&mut table);
            let row = rows(&mut table, scheduler.info);
            (scheduler, row)
        });
        let mut table = top.need_table("scheduler", "").unwrap();
        let mut scheduler = scheduler(&mut table);
        let mut classes = Vec::new();
        for mut section in top.tables("class", 256).unwrap() {
            let limit = section.find("limit");
            let pkts = limit.map_or(1000, |entry| whole(&entry, Kind::Packets) as u32);
            classes.push(Class {
                name: section.find("name").unwrap().text().unwrap().to_string(),
                limit: Limit {
                    pkts: Some(pkts),
                    ..Limit::NONE
                },
                flows: None,
                uses: Uses::default(),
                reorder_ns: None,
                resend: false,
            });
            let row = rows(&mut section, scheduler.info);
            scheduler.qparams.extend(row);
        }
        let mut peers = Vec::new();
        for mut section in top.tables("peer", 1024).unwrap() {
            peers.push(
                capacity(&mut section)
                    .or_else(|| whole_link.clone())
                    .unwrap(),
            );
            let Some((across, row)) = &mut across else {
                continue;
            };
            let mut own = row.clone();
            if let Some(entry) = section.find("across") {
                let mut table = entry.table().unwrap();
                for (value, param) in own.iter_mut().zip(&across.info.qparams) {
                    if table.find(param.name).is_some() {
                        *value = parameters::read(&mut table, param).unwrap();
                    }
                }
            }
            across.qparams.extend(own);
        }
        Links {
            scheduler,
            classes,
            peers,
            across: across.map(|(scheduler, _)| scheduler),
            measured: false,
        }
    }

    /// Settings of the link to a peer.
    pub(crate) fn of_peer(&self, at: usize) -> LinkSetup<'_> {
        LinkSetup {
            paths: &[],
            scheduler: &self.scheduler,
            classes: &self.classes,
            capacity: &self.peers[at],
            measured: self.measured,
            shared: self.across.is_some(),
        }
    }

    pub(crate) fn fastest_bps(&self) -> u64 {
        let peers = self.peers.iter();
        peers.map(|capacity| capacity.nominal_bps).max().unwrap()
    }
}

fn whole(entry: &Entry<'_, '_>, kind: Kind) -> u64 {
    entry.whole(kind, (0, 1 << 60)).unwrap()
}

fn capacity(section: &mut Section<'_, '_>) -> Option<Capacity> {
    let bps = whole(&section.find("rate")?, Kind::Rate);
    let nominal = section.find("nominal");
    let stale = section.find("stale");
    let floor = section.find("floor");
    let floor_bps = floor.map_or(1000, |entry| whole(&entry, Kind::Rate));
    let feedback = section.find("feedback").map(|entry| {
        let mut table = entry.table().unwrap();
        Bounds {
            floor_bps,
            ceiling_bps: whole(&table.need("ceiling", "").unwrap(), Kind::Rate),
            delay_ns: 25_000_000,
            anticipate: false,
        }
    });
    Some(Capacity {
        offered: signal::Capacity::Rate(Signal::Constant(bps as f64)),
        nominal_bps: nominal.map_or(bps, |entry| whole(&entry, Kind::Rate)),
        follow: true,
        command: None,
        stale_ns: stale.map(|entry| whole(&entry, Kind::Time)),
        floor_bps,
        feedback,
    })
}

/// The policy of a table, without rows of parameters.
fn scheduler(section: &mut Section<'_, '_>) -> Scheduler {
    let name = section.find("policy").unwrap().text().unwrap();
    let mut policies = linkweir_core::policies().iter();
    let info = policies.find(|info| info.name == name).unwrap();
    let params = info.params.iter();
    Scheduler {
        info,
        params: params
            .map(|param| parameters::read(section, param).unwrap())
            .collect(),
        qparams: Vec::new(),
    }
}

fn rows(section: &mut Section<'_, '_>, info: &'static PolicyInfo) -> Vec<u64> {
    let params = info.qparams.iter();
    params
        .map(|param| parameters::read(section, param).unwrap())
        .collect()
}
