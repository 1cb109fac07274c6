// SPDX-License-Identifier: BSD-3-Clause
//! Paths whose packets come too late, seen from the receiving end.
//!
//! The sending end knows the round trip of each path, not how it is shared between the way there and the way back: 300 ms and
//! 20 ms look like 20 ms and 300 ms. Here the peer's probes come over all paths with times of one clock, so how much later those of
//! one path come than those of another is how much longer its way is.

use std::collections::BTreeMap;

use crate::restoring::WINDOW;

/// The longest time for which a class may wait for earlier packets, ns.
pub const MOST_REORDER_NS: u64 = 2_000_000_000;
/// How often packets that came too late are looked at, ns.
const LOOK_NS: u64 = 1_000_000_000;
/// So many packets between two looks are worth a word.
const LATE_PKTS: u64 = 10;
/// The same is found again after so long, ns.
const AGAIN_NS: u64 = 60_000_000_000;
/// A path that seems to be further behind than this is not: the peer's clock is wrong, or what it says of it, ns.
const MOST_BEHIND_NS: u64 = 60_000_000_000;
/// The way of a path is known for so long after a probe, ns.
const KNOWN_NS: u64 = 10_000_000_000;

/// Why packets of a path come too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A class waits for this long only, ns.
    Order {
        /// The class.
        class: usize,
        /// How long it waits, ns.
        wait_ns: u64,
    },
    /// So many packets pass meanwhile, and numbers of the last [`WINDOW`] are remembered.
    Window {
        /// Packets that pass meanwhile.
        behind_pkts: u64,
    },
}

/// A path whose packets come too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// The path.
    pub path: usize,
    /// The path whose packets come first.
    pub first: usize,
    /// How much later they come than those, ns.
    pub behind_ns: u64,
    /// How many came too late since the last look.
    pub late_pkts: u64,
    /// Why.
    pub cause: Cause,
}

impl Late {
    /// For how long the class must wait so that these packets come in time, ns: half as long again as they are late at present.
    /// None: longer than a class may wait, or it is not the class's time that they exceed.
    #[must_use]
    pub fn reorder_ns(&self) -> Option<u64> {
        let raised_ns = self.behind_ns.saturating_mul(3) / 2;
        let may = raised_ns <= MOST_REORDER_NS && matches!(self.cause, Cause::Order { .. });
        may.then_some(raised_ns)
    }
}

/// What came from a peer so far.
#[derive(Clone, Copy, Debug)]
pub struct Came<'a> {
    /// Packets over all paths.
    pub pkts: u64,
    /// Datagrams that were refused as replays or as forged.
    pub refused_pkts: u64,
    /// How long each class waits, ns, and how many of its packets came too late.
    pub classes: &'a [(u64, u64)],
}

/// What the probes show of a way.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// The time of arrival on this end's clock less that of sending on the peer's, smoothed, ns.
    offset_ns: Option<i64>,
    /// When the last probe came, ns.
    probed_ns: u64,
}

/// The ways from a peer.
#[derive(Clone, Debug)]
pub struct LatePaths {
    ways: Vec<Way>,
    looked_ns: u64,
    pkts: u64,
    refused_pkts: u64,
    late_pkts: Vec<u64>,
    /// When each was found last, ns, by path and class; without one: the window.
    found_ns: BTreeMap<(usize, Option<usize>), u64>,
}

impl LatePaths {
    /// So many paths, of which nothing is known.
    #[must_use]
    pub fn new(paths: usize) -> LatePaths {
        LatePaths {
            ways: vec![Way::default(); paths],
            looked_ns: 0,
            pkts: 0,
            refused_pkts: 0,
            late_pkts: Vec::new(),
            found_ns: BTreeMap::new(),
        }
    }

    /// The peer's clock may have begun anew.
    pub fn forget(&mut self) {
        self.ways.fill(Way::default());
    }

    /// A probe that the peer sent at a time on its clock, ns, came over a path.
    pub fn probed(&mut self, now_ns: u64, path: usize, sent_ns: u64) {
        let Some(way) = self.ways.get_mut(path) else {
            return;
        };
        let offset_ns = now_ns.wrapping_sub(sent_ns) as i64;
        let known_ns = way.offset_ns.unwrap_or(offset_ns);
        way.offset_ns = Some(known_ns.saturating_add(offset_ns.saturating_sub(known_ns) / 8));
        way.probed_ns = now_ns;
    }

    /// The path whose packets come first, and how much later those of each path come, ns; none: that is not known at present.
    fn behind(&self, now_ns: u64) -> Option<(usize, Vec<Option<u64>>)> {
        let known = |way: &Way| {
            let is_known = now_ns.saturating_sub(way.probed_ns) < KNOWN_NS;
            way.offset_ns.filter(|_| is_known)
        };
        let offsets: Vec<Option<i64>> = self.ways.iter().map(known).collect();
        let each = offsets.iter().enumerate();
        let each = each.filter_map(|(at, offset_ns)| Some((at, (*offset_ns)?)));
        let (first, least_ns) = each.min_by_key(|(_, offset_ns)| *offset_ns)?;
        let behind = |offset_ns: &Option<i64>| {
            let behind_ns = (*offset_ns)?.abs_diff(least_ns);
            Some(behind_ns).filter(|ns| *ns <= MOST_BEHIND_NS)
        };
        Some((first, offsets.iter().map(behind).collect()))
    }

    /// Whether it is time to look whether packets come too late.
    #[must_use]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.looked_ns) >= LOOK_NS
    }

    /// Looks whether packets come too late, once a second. Returns the paths of which that is news, or has been for a minute.
    pub fn find(&mut self, now_ns: u64, came: Came<'_>) -> Vec<Late> {
        if !self.is_due(now_ns) {
            return Vec::new();
        }
        let passed_ns = now_ns.saturating_sub(self.looked_ns);
        let is_first = self.looked_ns == 0;
        self.looked_ns = now_ns;
        let pkts = came
            .pkts
            .saturating_sub(std::mem::replace(&mut self.pkts, came.pkts));
        let refused_pkts = std::mem::replace(&mut self.refused_pkts, came.refused_pkts);
        let refused_pkts = came.refused_pkts.saturating_sub(refused_pkts);
        self.late_pkts.resize(came.classes.len(), 0);
        let mut late_pkts = Vec::new();
        for (known, (_, now)) in self.late_pkts.iter_mut().zip(came.classes) {
            late_pkts.push(now.saturating_sub(std::mem::replace(known, *now)));
        }
        if is_first {
            return Vec::new();
        }
        let Some((first, behind)) = self.behind(now_ns) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (path, behind_ns) in behind.into_iter().enumerate() {
            let behind_ns = behind_ns.unwrap_or(0);
            let behind_pkts = u128::from(behind_ns) * u128::from(pkts) / u128::from(passed_ns);
            let behind_pkts = u64::try_from(behind_pkts).unwrap_or(u64::MAX);
            let late = |late_pkts, cause| Late {
                path,
                first,
                behind_ns,
                late_pkts,
                cause,
            };
            let is_outside = behind_pkts > u64::from(WINDOW) * 3 / 4;
            let mut outside_pkts = if is_outside { refused_pkts } else { 0 };
            for (class, ((wait_ns, _), late_pkts)) in
                came.classes.iter().zip(&late_pkts).enumerate()
            {
                if *wait_ns > 0 && behind_ns > *wait_ns {
                    let wait_ns = *wait_ns;
                    found.push(late(*late_pkts, Cause::Order { class, wait_ns }));
                } else if is_outside {
                    outside_pkts += late_pkts;
                }
            }
            found.push(late(outside_pkts, Cause::Window { behind_pkts }));
        }
        found.retain(|late| late.late_pkts >= LATE_PKTS && self.is_news(now_ns, late));
        found
    }

    /// Whether this was not found within a minute; it was now.
    fn is_news(&mut self, now_ns: u64, late: &Late) -> bool {
        let class = match late.cause {
            Cause::Order { class, .. } => Some(class),
            Cause::Window { .. } => None,
        };
        let found_ns = self.found_ns.get(&(late.path, class));
        let is_news = found_ns.is_none_or(|ns| now_ns >= ns + AGAIN_NS);
        if is_news {
            self.found_ns.insert((late.path, class), now_ns);
        }
        is_news
    }
}
