// SPDX-License-Identifier: BSD-3-Clause
//! What the members of a bond carry, and what its receiver does with it.

use linkweir_core::ResequencerCounters;

use crate::experiment::Experiment;
use crate::table::Sink;

use super::column::{bits_per_second, packets, seconds, unitless, Column, TableOf};

/// Counters of a class on a member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    /// Packets that were sent over it, copies and repetitions included.
    pub(crate) sent_pkts: u64,
    /// Their accounted bytes.
    pub(crate) sent_bytes: u64,
    pub(crate) copied_pkts: u64,
    pub(crate) resent_pkts: u64,
    pub(crate) lost_pkts: u64,
    pub(crate) duplicate_pkts: u64,
    pub(crate) late_pkts: u64,
}

/// A class on a member.
#[derive(Debug)]
pub(super) struct Way {
    class: String,
    member: String,
    now: Carried,
    total: Carried,
}

/// A member over time.
#[derive(Debug)]
pub(super) struct Member {
    name: String,
    up: bool,
    /// Time that it was up in this bin, up to `BondRecorder::at_ns`, ns.
    up_ns: u64,
}

/// The receiver of a class.
#[derive(Debug)]
pub(super) struct Order {
    class: String,
    now: ResequencerCounters,
    total: ResequencerCounters,
}

/// Records what a bond does.
#[derive(Debug)]
pub(crate) struct BondRecorder {
    /// Of each class, and in it of each member.
    ways: Vec<Way>,
    members: Vec<Member>,
    orders: Vec<Order>,
    at_ns: u64,
    bin_ns: u64,
    total_ns: u64,
    series: TableOf<Member, Bin>,
    paths: TableOf<Way, f64>,
    receivers: TableOf<Order, ()>,
}

impl BondRecorder {
    pub(crate) fn new(experiment: &Experiment, members: &[String]) -> BondRecorder {
        let classes = &experiment.classes;
        let way = |class: &str, member: &String| Way {
            class: class.to_owned(),
            member: member.clone(),
            now: Carried::default(),
            total: Carried::default(),
        };
        BondRecorder {
            ways: classes
                .iter()
                .flat_map(|class| members.iter().map(|member| way(&class.name, member)))
                .collect(),
            members: members
                .iter()
                .map(|name| Member {
                    name: name.clone(),
                    up: true,
                    up_ns: 0,
                })
                .collect(),
            orders: classes
                .iter()
                .map(|class| Order {
                    class: class.name.clone(),
                    now: ResequencerCounters::default(),
                    total: ResequencerCounters::default(),
                })
                .collect(),
            at_ns: 0,
            bin_ns: 0,
            total_ns: experiment.warmup_ns,
            series: TableOf::new("members", MEMBERS),
            paths: TableOf::new("bond_paths", BOND_PATHS),
            receivers: TableOf::new("bond_receivers", BOND_RECEIVERS),
        }
    }

    /// That of a bond in a network.
    pub(crate) fn in_network(mut self, link: &str) -> BondRecorder {
        self.series = TableOf::of_links("members", MEMBERS, &[]);
        self.paths = TableOf::of_links("bond_paths", BOND_PATHS, &[]);
        self.receivers = TableOf::of_links("bond_receivers", BOND_RECEIVERS, &[]);
        self.series.set_link(link);
        self.paths.set_link(link);
        self.receivers.set_link(link);
        self
    }

    /// The counters of a class on a member.
    #[inline]
    pub(crate) fn of(&mut self, class: u32, member: u32) -> &mut Carried {
        let members = self.members.len();
        &mut self.ways[class as usize * members + member as usize].now
    }

    /// Whether a member is known to be up from now on.
    pub(crate) fn set_up(&mut self, now_ns: u64, member: usize, up: bool) {
        self.advance(now_ns);
        self.members[member].up = up;
    }

    fn advance(&mut self, now_ns: u64) {
        let span_ns = now_ns - self.at_ns;
        self.at_ns = now_ns;
        for member in &mut self.members {
            member.up_ns += u64::from(member.up) * span_ns;
        }
    }

    /// Totals count from now on; `orders` are the counters of the receivers.
    pub(crate) fn begin_totals<'r>(
        &mut self,
        now_ns: u64,
        orders: impl Iterator<Item = &'r ResequencerCounters>,
    ) {
        self.total_ns = now_ns;
        for way in &mut self.ways {
            way.total = way.now;
        }
        for (order, counters) in self.orders.iter_mut().zip(orders) {
            order.total = *counters;
        }
    }

    /// Ends the present bin, in which the members offered and carried these bits.
    pub(crate) fn end_bin(
        &mut self,
        now_ns: u64,
        bits: &[(f64, f64)],
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        self.advance(now_ns);
        let span_ns = (now_ns - self.bin_ns) as f64;
        let t_s = self.bin_ns as f64 / 1e9;
        for (member, (offered, carried)) in self.members.iter_mut().zip(bits) {
            let bin = Bin {
                t_s,
                span_ns,
                offered_bps: offered / (span_ns / 1e9),
                carried_bps: carried / (span_ns / 1e9),
            };
            self.series.add(member, &bin);
            member.up_ns = 0;
        }
        self.bin_ns = now_ns;
        self.series.flush_full(sink)
    }

    /// Writes the totals and hands out all rows that wait.
    pub(crate) fn finish<'r>(
        &mut self,
        now_ns: u64,
        orders: impl Iterator<Item = &'r ResequencerCounters>,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        self.series.flush(sink)?;
        let span_s = now_ns.saturating_sub(self.total_ns) as f64 / 1e9;
        for way in &self.ways {
            self.paths.add(way, &span_s);
        }
        self.paths.flush(sink)?;
        for (order, counters) in self.orders.iter_mut().zip(orders) {
            order.now = *counters;
            self.receivers.add(order, &());
        }
        self.receivers.flush(sink)
    }
}

/// A bin of the series.
#[derive(Debug)]
pub(super) struct Bin {
    t_s: f64,
    span_ns: f64,
    offered_bps: f64,
    carried_bps: f64,
}

/// Columns of table `members`.
pub(super) const MEMBERS: &[Column<Member, Bin>] = &[
    seconds("t_s", "Start of the bin.").real(|_, bin| Some(bin.t_s)),
    unitless("member", "Link of the bond.").name(|member, _| &member.name),
    unitless("up", "Part of the bin in which it was known to be up.")
        .real(|member, bin| Some(member.up_ns as f64 / bin.span_ns)),
    bits_per_second("capacity_bps", "Capacity it offered.").real(|_, bin| Some(bin.offered_bps)),
    bits_per_second("used_bps", "Capacity it used, overhead included.")
        .real(|_, bin| Some(bin.carried_bps)),
];

/// Columns of table `bond_paths`.
pub(super) const BOND_PATHS: &[Column<Way, f64>] = &[
    unitless("class", "Class.").name(|way, _| &way.class),
    unitless("member", "Link of the bond.").name(|way, _| &way.member),
    packets(
        "sent_pkts",
        "Packets of the class sent over it, copies and repetitions included.",
    )
    .count(|way, _| way.now.sent_pkts - way.total.sent_pkts),
    bits_per_second("sent_bps", "The same on the wire.").real(|way, span_s| {
        (*span_s > 0.0).then(|| 8.0 * (way.now.sent_bytes - way.total.sent_bytes) as f64 / span_s)
    }),
    packets(
        "copied_pkts",
        "Copies of packets that another link carried first.",
    )
    .count(|way, _| way.now.copied_pkts - way.total.copied_pkts),
    packets("resent_pkts", "Packets that a dead link had held.")
        .count(|way, _| way.now.resent_pkts - way.total.resent_pkts),
    packets("lost_pkts", "Packets lost on it, copies included.")
        .count(|way, _| way.now.lost_pkts - way.total.lost_pkts),
    packets(
        "duplicate_pkts",
        "Packets that had arrived before over it or another one.",
    )
    .count(|way, _| way.now.duplicate_pkts - way.total.duplicate_pkts),
    packets(
        "late_pkts",
        "Packets dropped as they arrived after they were given up.",
    )
    .count(|way, _| way.now.late_pkts - way.total.late_pkts),
];

/// Columns of table `bond_receivers`.
pub(super) const BOND_RECEIVERS: &[Column<Order, ()>] = &[
    unitless("class", "Class.").name(|order, ()| &order.class),
    packets("delivered_pkts", "Packets handed out.")
        .count(|order, ()| order.now.delivered_pkts - order.total.delivered_pkts),
    packets("duplicate_pkts", "Packets dropped as they came before.")
        .count(|order, ()| order.now.duplicate_pkts - order.total.duplicate_pkts),
    packets(
        "late_pkts",
        "Packets dropped as they came after they were given up.",
    )
    .count(|order, ()| order.now.late_pkts - order.total.late_pkts),
    packets(
        "given_up_pkts",
        "Missing packets that were no longer waited for.",
    )
    .count(|order, ()| order.now.given_up_pkts - order.total.given_up_pkts),
    packets("reordered_pkts", "Packets that came after a later one.")
        .count(|order, ()| order.now.reordered_pkts - order.total.reordered_pkts),
    packets(
        "held_pkts",
        "Packets held until missing ones came or were given up.",
    )
    .count(|order, ()| order.now.held_pkts - order.total.held_pkts),
];
