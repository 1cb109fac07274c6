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
/// The way of a path is known for so long after a probe, ns: one that carries packets is probed every 10 s at least, and several
/// probes may be lost.
const KNOWN_NS: u64 = 60_000_000_000;
/// A probe that comes so long after the one before counts alone, ns: clocks drift, and the way may have changed. An earlier one
/// counts in part, but for this part at least.
const ALONE_NS: u64 = 1_000_000_000;
const LEAST_PART: u64 = 8;
/// A class uses a path over which it came within this time, ns.
const USED_NS: u64 = 10_000_000_000;

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

/// What came of a class over a path.
#[derive(Clone, Copy, Debug, Default)]
struct Came {
    /// When the last packet came, ns; none did before the first.
    last_ns: Option<u64>,
    /// How many came too late since the last look.
    late_pkts: u64,
}

/// What is known of a way.
#[derive(Clone, Debug, Default)]
struct Way {
    /// The time of arrival on this end's clock less that of sending on the peer's, smoothed, ns.
    offset_ns: Option<i64>,
    /// When the last probe came, ns.
    probed_ns: u64,
    /// Packets that came since the last look, and datagrams that were refused as replays or as forged.
    pkts: u64,
    refused_pkts: u64,
    /// What came with a number, by class.
    classes: Vec<Came>,
}

impl Way {
    /// Whether a class came over it lately.
    fn is_used(&self, now_ns: u64, class: usize) -> bool {
        let last_ns = self.classes.get(class).and_then(|came| came.last_ns);
        last_ns.is_some_and(|ns| now_ns.saturating_sub(ns) < USED_NS)
    }

    /// Its offset, if that is known at present, ns.
    fn known_ns(&self, now_ns: u64) -> Option<i64> {
        let is_known = now_ns.saturating_sub(self.probed_ns) < KNOWN_NS;
        self.offset_ns.filter(|_| is_known)
    }
}

/// The ways from a peer.
#[derive(Clone, Debug)]
pub struct LatePaths {
    ways: Vec<Way>,
    looked_ns: u64,
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
            found_ns: BTreeMap::new(),
        }
    }

    /// The peer's clock may have begun anew.
    pub fn forget(&mut self) {
        for way in &mut self.ways {
            way.offset_ns = None;
        }
    }

    /// A probe that the peer sent at a time on its clock, ns, came over a path.
    pub fn probed(&mut self, now_ns: u64, path: usize, sent_ns: u64) {
        let Some(way) = self.ways.get_mut(path) else {
            return;
        };
        let offset_ns = now_ns.wrapping_sub(sent_ns) as i64;
        let known_ns = way.offset_ns.unwrap_or(offset_ns);
        let passed_ns = now_ns.saturating_sub(way.probed_ns).max(1);
        let part = (ALONE_NS / passed_ns).clamp(1, LEAST_PART) as i64;
        way.offset_ns = Some(known_ns.saturating_add(offset_ns.saturating_sub(known_ns) / part));
        way.probed_ns = now_ns;
    }

    /// A packet came over a path.
    #[inline]
    pub fn came(&mut self, path: usize) {
        if let Some(way) = self.ways.get_mut(path) {
            way.pkts += 1;
        }
    }

    /// That packet has a number of this class; it came too late or not.
    pub fn came_of(&mut self, now_ns: u64, path: usize, class: usize, is_late: bool) {
        let Some(way) = self.ways.get_mut(path) else {
            return;
        };
        if way.classes.len() <= class {
            way.classes.resize(class + 1, Came::default());
        }
        way.classes[class].last_ns = Some(now_ns);
        way.classes[class].late_pkts += u64::from(is_late);
    }

    /// A datagram that came over a path was refused as a replay or as forged.
    pub fn refused(&mut self, path: usize) {
        if let Some(way) = self.ways.get_mut(path) {
            way.refused_pkts += 1;
        }
    }

    /// Of the paths for which that holds: the one whose packets come first, if that is known, and its offset, ns.
    fn first(&self, now_ns: u64, holds: impl Fn(&Way) -> bool) -> Option<(usize, i64)> {
        let ways = self.ways.iter().enumerate();
        let known = ways.filter(|(_, way)| holds(way));
        let known = known.filter_map(|(at, way)| Some((at, way.known_ns(now_ns)?)));
        known.min_by_key(|(_, offset_ns)| *offset_ns)
    }

    /// Whether it is time to look whether packets come too late.
    #[must_use]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.looked_ns) >= LOOK_NS
    }

    /// Looks whether packets come too late, once a second; `waits_ns` is how long each class waits. Returns the paths of which
    /// that is news, or has been for a minute.
    pub fn find(&mut self, now_ns: u64, waits_ns: &[u64]) -> Vec<Late> {
        if !self.is_due(now_ns) {
            return Vec::new();
        }
        let passed_ns = now_ns.saturating_sub(self.looked_ns);
        let is_first = self.looked_ns == 0;
        self.looked_ns = now_ns;
        let mut found = match is_first {
            true => Vec::new(),
            false => self.found(now_ns, passed_ns, waits_ns),
        };
        for way in &mut self.ways {
            (way.pkts, way.refused_pkts) = (0, 0);
            way.classes.iter_mut().for_each(|came| came.late_pkts = 0);
        }
        found.retain(|late| self.is_news(now_ns, late));
        found
    }

    /// What came too late since the last look, of each path and cause. A packet is laid to the path over which it came, and
    /// compared with those paths only that carry the same: others have no part in it.
    fn found(&self, now_ns: u64, passed_ns: u64, waits_ns: &[u64]) -> Vec<Late> {
        let pkts: u64 = self.ways.iter().map(|way| way.pkts).sum();
        let of_all = self.first(now_ns, |way| way.pkts > 0);
        let of_classes =
            (0..waits_ns.len()).map(|class| self.first(now_ns, |way| way.is_used(now_ns, class)));
        let of_classes: Vec<Option<(usize, i64)>> = of_classes.collect();
        let mut found = Vec::new();
        for (path, way) in self.ways.iter().enumerate() {
            let Some((own_ns, (first, first_ns))) = way.known_ns(now_ns).zip(of_all) else {
                continue;
            };
            let behind = |least_ns: i64| {
                let behind_ns = own_ns.saturating_sub(least_ns).max(0) as u64;
                Some(behind_ns)
                    .filter(|ns| *ns <= MOST_BEHIND_NS)
                    .unwrap_or(0)
            };
            let behind_ns = behind(first_ns);
            let behind_pkts = u128::from(behind_ns) * u128::from(pkts) / u128::from(passed_ns);
            let behind_pkts = u64::try_from(behind_pkts).unwrap_or(u64::MAX);
            let is_outside = behind_pkts > u64::from(WINDOW) * 3 / 4;
            let mut outside_pkts = if is_outside { way.refused_pkts } else { 0 };
            for (class, (wait_ns, first)) in waits_ns.iter().zip(&of_classes).enumerate() {
                let Some((first, first_ns)) = *first else {
                    continue;
                };
                let late_pkts = way.classes.get(class).map_or(0, |came| came.late_pkts);
                let (wait_ns, behind_ns) = (*wait_ns, behind(first_ns));
                if wait_ns > 0 && behind_ns > wait_ns {
                    found.push(Late {
                        path,
                        first,
                        behind_ns,
                        late_pkts,
                        cause: Cause::Order { class, wait_ns },
                    });
                } else if is_outside {
                    outside_pkts += late_pkts;
                }
            }
            found.push(Late {
                path,
                first,
                behind_ns,
                late_pkts: outside_pkts,
                cause: Cause::Window { behind_pkts },
            });
        }
        found.retain(|late| late.late_pkts >= LATE_PKTS);
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
