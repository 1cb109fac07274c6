// SPDX-License-Identifier: BSD-3-Clause
//! The log of packets: a row for every step of every packet, up to a number of rows.

use std::collections::BTreeMap;

use crate::table::Sink;

use super::column::{bytes, nanoseconds, unitless, Column, TableOf};
use super::seen::{Address, Seen};

/// A step of a packet's way.
#[derive(Debug, Default)]
pub(super) struct Step {
    t_ns: u64,
    event: &'static str,
    reason: &'static str,
    connection: u64,
    number: u64,
    again: bool,
    bytes: u32,
    created_ns: u64,
    flow: usize,
    back: bool,
}

/// A step that is not written now. In a network the links' steps are put in the order of time first; a caller that drives
/// the engine takes them itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    /// When the link noted it.
    pub(crate) at_ns: u64,
    pub(crate) t_ns: u64,
    pub(crate) event: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) packet: Seen,
}

/// Names of a flow and of its class.
pub(super) type Names = [(String, String)];

/// Numbers for the connections of an application, in the order of their first packets.
#[derive(Debug, Default)]
struct Connections {
    opened: u64,
    /// The latest connections of each place, the last one first: packets of earlier ones may still be under way.
    at: BTreeMap<u32, Vec<(u16, u64)>>,
}

impl Connections {
    /// Connections of a place that are remembered; an address comes back after many more.
    const REMEMBERED: usize = 8;

    /// The number of a connection, from 1.
    fn number(&mut self, (place, generation): Address) -> u64 {
        let known = self.at.entry(place).or_default();
        if let Some((_, number)) = known.iter().find(|(one, _)| *one == generation) {
            return *number;
        }
        self.opened += 1;
        known.insert(0, (generation, self.opened));
        known.truncate(Connections::REMEMBERED);
        self.opened
    }
}

/// What the log knows of a flow.
#[derive(Debug)]
pub(super) struct Logged {
    /// Its name and that of its class.
    pub(super) names: (String, String),
    /// Whether it is an application.
    pub(super) has_connections: bool,
}

/// The log of a run.
#[derive(Debug)]
pub(super) struct PacketLog {
    rows: TableOf<Step, Names>,
    names: Vec<(String, String)>,
    /// Of each flow that is an application.
    connections: Vec<Option<Connections>>,
    /// Rows that may still be written.
    left: u64,
    cut_ns: Option<u64>,
}

impl PacketLog {
    /// For these flows.
    pub(super) fn new(flows: Vec<Logged>, limit_rows: u64) -> PacketLog {
        let connections = flows
            .iter()
            .map(|flow| flow.has_connections.then(Connections::default));
        PacketLog {
            rows: TableOf::new("packets", PACKETS),
            connections: connections.collect(),
            names: flows.into_iter().map(|flow| flow.names).collect(),
            left: limit_rows,
            cut_ns: None,
        }
    }

    /// That of a network: `names` are those of flow and class at each entry of each link, and `flows` says which of them are
    /// applications.
    pub(super) fn of_links(
        names: Vec<(String, String)>,
        flows: impl Iterator<Item = bool>,
        limit_rows: u64,
    ) -> PacketLog {
        PacketLog {
            rows: TableOf::of_links("packets", PACKETS, PACKETS_OF_LINKS),
            connections: flows
                .map(|has_connections| has_connections.then(Connections::default))
                .collect(),
            names,
            left: limit_rows,
            cut_ns: None,
        }
    }

    /// The next rows are of this link.
    pub(super) fn set_link(&mut self, link: &str) {
        self.rows.set_link(link);
    }

    /// Writes a row; `reason` is empty unless the packet was dropped.
    pub(super) fn write(
        &mut self,
        t_ns: u64,
        event: &'static str,
        reason: &'static str,
        packet: &Seen,
    ) {
        let flow = packet.flow as usize;
        self.write_as((flow, flow, false), (t_ns, event, reason), packet);
    }

    /// The same for a packet whose names are at one place and whose flow is another; `back`: it goes back.
    pub(super) fn write_as(
        &mut self,
        (name, flow, back): (usize, usize, bool),
        (t_ns, event, reason): (u64, &'static str, &'static str),
        packet: &Seen,
    ) {
        if self.left == 0 {
            self.cut_ns.get_or_insert(t_ns);
            return;
        }
        self.left -= 1;
        let (connection, number) = match &mut self.connections[flow] {
            _ if back => (0, packet.number),
            None => (0, packet.number),
            Some(connections) => {
                let (address, number) = packet.in_connection;
                (connections.number(address), number)
            }
        };
        let step = Step {
            t_ns,
            event,
            reason,
            connection,
            number,
            again: packet.again,
            bytes: packet.bytes,
            created_ns: packet.created_ns,
            flow: name,
            back,
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

/// Further columns of table `packets` in a run over several links.
pub(super) const PACKETS_OF_LINKS: &[Column<Step, Names>] = &[unitless(
    "direction",
    "The way: there (from the source) or back (acknowledgements and requests, whose numbers are used again).",
)
.name(|s, _| if s.back { "back" } else { "there" })];

/// Columns of table `packets`.
pub(super) const PACKETS: &[Column<Step, Names>] = &[
    nanoseconds("t_ns", "Time.").count(|s, _| s.t_ns),
    unitless("event", "The step: created, enqueued, sent, delivered or dropped.").name(|s, _| s.event),
    unitless("reason", "Of a packet dropped: limit, policy, age, link, decoder, order, absent (the link) or way (none); otherwise empty.").name(|s, _| s.reason),
    unitless("class", "Name of the class.").context_name(|s, names| &names[s.flow].1),
    unitless("flow", "Name of the flow.").context_name(|s, names| &names[s.flow].0),
    unitless("connection", "Of transfers, requests, web and video: number of the TCP connection in its flow, from 1; otherwise 0.").count(|s, _| s.connection),
    unitless("number", "Number of the packet among those of its flow, from 0; of TCP that of the segment in its connection.").count(|s, _| s.number),
    unitless("retransmission", "TCP: 1 for a segment that was sent before, otherwise 0.").count(|s, _| u64::from(s.again)),
    bytes("size_bytes", "Its bytes, without the link's overhead.").count(|s, _| u64::from(s.bytes)),
    nanoseconds("created_ns", "When it was created.").count(|s, _| s.created_ns),
];
