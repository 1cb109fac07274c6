// SPDX-License-Identifier: BSD-3-Clause
//! The log of packets: a row for every step of every packet, up to a number of rows.

use crate::table::Sink;

use super::column::{Column, TableOf, Unit, Value};
use super::seen::Seen;

/// A step of a packet's way.
#[derive(Debug, Default)]
pub(super) struct Step {
    t_ns: u64,
    event: &'static str,
    reason: &'static str,
    number: u64,
    again: bool,
    bytes: u32,
    created_ns: u64,
    flow: usize,
}

/// Names of a flow and of its class.
pub(super) type Names = [(String, String)];

/// The log of a run.
#[derive(Debug)]
pub(super) struct PacketLog {
    rows: TableOf<Step, Names>,
    names: Vec<(String, String)>,
    /// Rows that may still be written.
    left: u64,
    cut_ns: Option<u64>,
}

impl PacketLog {
    /// For flows with these names, their own and their class's.
    pub(super) fn new(names: Vec<(String, String)>, limit_rows: u64) -> PacketLog {
        PacketLog {
            rows: TableOf::new("packets", PACKETS),
            names,
            left: limit_rows,
            cut_ns: None,
        }
    }

    /// Writes a row; `reason` is empty unless the packet was dropped.
    pub(super) fn write(
        &mut self,
        t_ns: u64,
        event: &'static str,
        reason: &'static str,
        packet: &Seen,
    ) {
        if self.left == 0 {
            self.cut_ns.get_or_insert(t_ns);
            return;
        }
        self.left -= 1;
        let step = Step {
            t_ns,
            event,
            reason,
            number: packet.number,
            again: packet.again,
            bytes: packet.bytes,
            created_ns: packet.created_ns,
            flow: packet.flow as usize,
        };
        self.rows.add(&step, &self.names);
    }

    /// When the first row was left out, if any was.
    pub(super) fn cut_ns(&self) -> Option<u64> {
        self.cut_ns
    }

    pub(super) fn flush_full(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.rows.flush_full(sink)
    }

    pub(super) fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.rows.flush(sink)
    }
}

/// Columns of table `packets`.
pub(super) const PACKETS: &[Column<Step, Names>] = &[
    Column {
        name: "t_ns",
        unit: Unit::Nanoseconds,
        help: "Time.",
        value: Value::Count(|s, _| s.t_ns),
    },
    Column {
        name: "event",
        unit: Unit::None,
        help: "The step: created, enqueued, sent, delivered or dropped.",
        value: Value::Name(|s, _| s.event),
    },
    Column {
        name: "reason",
        unit: Unit::None,
        help: "Of a packet dropped: limit, policy, link, decoder or order; otherwise empty.",
        value: Value::Name(|s, _| s.reason),
    },
    Column {
        name: "class",
        unit: Unit::None,
        help: "Name of the class.",
        value: Value::Context(|s, names| &names[s.flow].1),
    },
    Column {
        name: "flow",
        unit: Unit::None,
        help: "Name of the flow.",
        value: Value::Context(|s, names| &names[s.flow].0),
    },
    Column {
        name: "number",
        unit: Unit::None,
        help: "Number of the packet among those of its flow, from 0; of TCP that of the segment.",
        value: Value::Count(|s, _| s.number),
    },
    Column {
        name: "retransmission",
        unit: Unit::None,
        help: "TCP: 1 for a segment that was sent before, otherwise 0.",
        value: Value::Count(|s, _| u64::from(s.again)),
    },
    Column {
        name: "size_bytes",
        unit: Unit::Bytes,
        help: "Its bytes, without the link's overhead.",
        value: Value::Count(|s, _| u64::from(s.bytes)),
    },
    Column {
        name: "created_ns",
        unit: Unit::Nanoseconds,
        help: "When it was created.",
        value: Value::Count(|s, _| s.created_ns),
    },
];
