// SPDX-License-Identifier: BSD-3-Clause
//! Table `delays`: distributions of delays as buckets of an HDR histogram.
//!
//! The bounds of the buckets are the same in every histogram: a bucket is at most 1/128 of its bounds wide. So
//! distributions of several runs are merged by adding the counts of equal buckets.

use linkweir_core::Distribution;

use crate::table::Sink;

use super::column::{packets, seconds, unitless, Column, TableOf};

pub(super) const NAME: &str = "delays";

/// One bucket of one distribution.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    class: String,
    flow: String,
    kind: &'static str,
    /// The least value in it, and the least one above it, ns.
    lower_ns: u64,
    upper_ns: u64,
    pkts: u64,
}

/// Columns of table `delays`.
pub(super) const DELAYS: &[Column<Bucket, ()>] = &[
    unitless("class", "Name of the class.").name(|b, ()| &b.class),
    unitless("flow", "Name of the flow; empty for all flows of the class.").name(|b, ()| &b.flow),
    unitless("kind", "The delay: queueing (in the queue of the class) or one-way (from the source to the receiver).").name(|b, ()| b.kind),
    seconds("lower_s", "Lower bound of the bucket, which belongs to it.").real(|b, ()| Some(b.lower_ns as f64 / 1e9)),
    seconds("upper_s", "Upper bound of the bucket, which belongs to the next one.").real(|b, ()| Some(b.upper_ns as f64 / 1e9)),
    packets("count_pkts", "Packets whose delay is in the bucket.").count(|b, ()| b.pkts),
];

/// The table, written distribution by distribution.
#[derive(Debug)]
pub(super) struct DelayTable {
    rows: TableOf<Bucket, ()>,
    bucket: Bucket,
}

impl DelayTable {
    pub(super) fn new() -> DelayTable {
        DelayTable {
            rows: TableOf::new(NAME, DELAYS),
            bucket: Bucket::default(),
        }
    }

    /// The table of a run over several links.
    pub(super) fn of_links() -> DelayTable {
        DelayTable {
            rows: TableOf::of_links(NAME, DELAYS, &[]),
            bucket: Bucket::default(),
        }
    }

    /// What is written next is of this link.
    pub(super) fn set_link(&mut self, name: &str) {
        self.rows.set_link(name);
    }

    /// Writes the buckets of a class, or of one of its flows, that hold a packet, if they are wanted.
    pub(super) fn add(
        &mut self,
        class: &str,
        flow: &str,
        kind: &'static str,
        distribution_ns: &Distribution,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        if !sink.wants(NAME) {
            return Ok(());
        }
        let Bucket {
            class: class_now,
            flow: flow_now,
            kind: kind_now,
            ..
        } = &mut self.bucket;
        class.clone_into(class_now);
        flow.clone_into(flow_now);
        *kind_now = kind;
        let histogram = distribution_ns.whole();
        for value in histogram.iter_recorded() {
            let ns = value.value_iterated_to();
            self.bucket.lower_ns = histogram.lowest_equivalent(ns);
            self.bucket.upper_ns = histogram.next_non_equivalent(ns);
            self.bucket.pkts = value.count_since_last_iteration();
            self.rows.add(&self.bucket, &());
        }
        self.rows.flush_full(sink)
    }

    /// Hands out all rows that wait.
    pub(super) fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.rows.flush(sink)
    }
}
