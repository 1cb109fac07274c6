// SPDX-License-Identifier: BSD-3-Clause
//! What both ends send each other: marks and reports of the feedback, and probes of several underlays or paths to a peer, as
//! packets of the tunnel.

/// Marks the number of a probe that is as long as the packet in question, not one of a way: its other bits are the length in
/// bytes, or 0 for the small message sent with it ([`crate::path_mtu`]).
pub const OF_LENGTH: u64 = 1 << 63;

/// Length of a message as a packet in the tunnel, bytes.
pub const MESSAGE_BYTES: usize = HEADER.len() + 36;

/// Marks take at most one part in this many of the capacity, and so do reports.
const MARK_PART: u64 = 100;

/// IPv6 from fe80::1 to fe80::2 with 40 bytes of protocol 253, one hop; then four bytes that distinguish these messages
/// from other uses of that protocol.
const HEADER: [u8; 44] = [
    0x60, 0, 0, 0, 0, 40, 253, 1, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xfe, 0x80,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, b'L', b'w', b'f', b'b',
];

/// A message from one end to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A request for a report.
    Mark {
        /// When it was sent, on the sender's clock, ns.
        sent_ns: u64,
    },
    /// The answer to a mark.
    Report(Report),
    /// A question over one of several ways to the peer ([`crate::underlays`]), or of a length ([`crate::path_mtu`]).
    Probe(Probe),
    /// The answer to a probe, over the way it came.
    Echo(Probe),
    /// A question over one of several paths that are used at once ([`crate::paths`]).
    PathProbe(PathProbe),
    /// The answer to it, over the path it came.
    PathEcho(PathProbe),
}

/// What a probe of a path says, and its answer repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathProbe {
    /// When it was sent, on the sender's clock, ns.
    pub sent_ns: u64,
    /// A number that the sender drew when it began to number packets: with another, their numbers begin anew.
    pub epoch: u32,
    /// The number of the path, as the sender counts them.
    pub path: u8,
    /// How many classes the sender has, up to 255: numbers are those of a class, by its place.
    pub classes: u8,
    /// The [`PathProbe::tag`] of the epoch in which the receiver of this numbers its packets, as far as the sender knows it; 0: it
    /// knows none.
    pub known: u16,
    /// The name of the path, which both ends use.
    pub name: PathName,
}

/// The name of a path: 1 to 16 bytes, and zeros behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathName([u8; PathName::MOST_BYTES]);

impl PathName {
    /// Length of the longest name, bytes.
    pub const MOST_BYTES: usize = 16;

    /// The name; none: it is empty, too long, or has a zero byte.
    #[must_use]
    pub fn new(name: &str) -> Option<PathName> {
        let sound = (1..=PathName::MOST_BYTES).contains(&name.len()) && !name.contains('\0');
        let mut bytes = [0; PathName::MOST_BYTES];
        bytes
            .get_mut(..name.len())?
            .copy_from_slice(name.as_bytes());
        sound.then_some(PathName(bytes))
    }

    fn numbers(self) -> [u64; 2] {
        let whole = u128::from_be_bytes(self.0);
        [(whole >> 64) as u64, whole as u64]
    }

    /// The name in these numbers; none: it is empty, or has something behind a zero.
    fn of_numbers([high, low]: [u64; 2]) -> Option<PathName> {
        let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        let end = bytes.iter().position(|byte| *byte == 0);
        let end = end.unwrap_or(bytes.len());
        let sound = end > 0 && bytes[end..].iter().all(|byte| *byte == 0);
        sound.then_some(PathName(bytes))
    }
}

/// What a probe says, and its answer repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When it was sent, on the sender's clock, ns.
    pub sent_ns: u64,
    /// The number of the way, as the sender counts them, or [`OF_LENGTH`] and a length.
    pub way: u64,
}

/// The receiver's counts and times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// When the mark was sent, on the sender's clock, ns.
    pub sent_ns: u64,
    /// When it came, on the receiver's clock, ns.
    pub received_ns: u64,
    /// Packets received before it since the receiver began.
    pub pkts: u64,
    /// Their bytes, without outer headers.
    pub bytes: u64,
}

/// Behind the header: the kind of message, three bytes of 0, and four numbers.
const KIND: usize = HEADER.len();
const NUMBERS: usize = KIND + 4;
/// Kinds of messages.
const PROBE: u8 = 3;
const ECHO: u8 = 4;
const PATH_PROBE: u8 = 5;
const PATH_ECHO: u8 = 6;

/// Least time between messages, ns, with which they keep to their part of a link of this capacity, bit/s, that this many
/// peers share.
pub(super) fn apart_ns(wire_bytes: u32, capacity_bps: f64, peers: u64) -> u64 {
    let part = (MARK_PART * peers) as f64;
    (8e9 * f64::from(wire_bytes) * part / capacity_bps.max(1.0)) as u64
}

/// Whether a packet of the tunnel is a message, well formed or not.
#[must_use]
pub fn is_message(packet: &[u8]) -> bool {
    packet.starts_with(&HEADER)
}

/// The numbers of a probe.
fn of_probe(Probe { sent_ns, way }: Probe) -> Report {
    Report {
        sent_ns,
        received_ns: way,
        ..Report::default()
    }
}

impl PathProbe {
    /// A number for an epoch that is not 0, by which it is told from others of the same sender.
    #[must_use]
    pub fn tag(epoch: u32) -> u16 {
        ((epoch ^ epoch >> 16) as u16).max(1)
    }

    fn numbers(self) -> Report {
        let [pkts, bytes] = self.name.numbers();
        Report {
            sent_ns: self.sent_ns,
            received_ns: u64::from(self.epoch) << 32
                | u64::from(self.known) << 16
                | u64::from(self.classes) << 8
                | u64::from(self.path),
            pkts,
            bytes,
        }
    }

    fn of_numbers(numbers: Report) -> Option<PathProbe> {
        let whole = numbers.received_ns;
        Some(PathProbe {
            sent_ns: numbers.sent_ns,
            epoch: (whole >> 32) as u32,
            path: whole as u8,
            classes: (whole >> 8) as u8,
            known: (whole >> 16) as u16,
            name: PathName::of_numbers([numbers.pkts, numbers.bytes])?,
        })
    }
}

impl Message {
    /// Reads a packet; none when it is no message or malformed. Probes may be longer than they need.
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Message> {
        let (packet, padding) = packet.split_at_checked(MESSAGE_BYTES)?;
        if !is_message(packet) || !padding.is_empty() && packet[KIND] != PROBE {
            return None;
        }
        let (kind, numbers) = packet[KIND..].split_at(NUMBERS - KIND);
        let mut number = numbers
            .chunks_exact(8)
            .map(|bytes| bytes.try_into().map_or(0, u64::from_be_bytes));
        let mut next = || number.next().unwrap_or_default();
        let report = Report {
            sent_ns: next(),
            received_ns: next(),
            pkts: next(),
            bytes: next(),
        };
        let sent_ns = report.sent_ns;
        match kind {
            [1, 0, 0, 0] => (report
                == Report {
                    sent_ns,
                    ..Report::default()
                })
            .then_some(Message::Mark { sent_ns }),
            [2, 0, 0, 0] => Some(Message::Report(report)),
            [kind @ (PROBE | ECHO), 0, 0, 0] => {
                let way = report.received_ns;
                let whole = Report {
                    sent_ns,
                    received_ns: way,
                    ..Report::default()
                };
                let probe = Probe { sent_ns, way };
                (report == whole).then_some(if *kind == PROBE {
                    Message::Probe(probe)
                } else {
                    Message::Echo(probe)
                })
            }
            [PATH_PROBE, 0, 0, 0] => PathProbe::of_numbers(report).map(Message::PathProbe),
            [PATH_ECHO, 0, 0, 0] => PathProbe::of_numbers(report).map(Message::PathEcho),
            _ => None,
        }
    }

    /// The message as a packet of the tunnel.
    #[must_use]
    pub fn packet(&self) -> [u8; MESSAGE_BYTES] {
        let (kind, report) = match *self {
            Message::Mark { sent_ns } => (
                1,
                Report {
                    sent_ns,
                    ..Report::default()
                },
            ),
            Message::Report(report) => (2, report),
            Message::Probe(probe) => (PROBE, of_probe(probe)),
            Message::Echo(probe) => (ECHO, of_probe(probe)),
            Message::PathProbe(probe) => (PATH_PROBE, probe.numbers()),
            Message::PathEcho(probe) => (PATH_ECHO, probe.numbers()),
        };
        let mut packet = [0; MESSAGE_BYTES];
        packet[..KIND].copy_from_slice(&HEADER);
        packet[KIND] = kind;
        let numbers = [
            report.sent_ns,
            report.received_ns,
            report.pkts,
            report.bytes,
        ];
        for (place, number) in packet[NUMBERS..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        packet
    }
}
