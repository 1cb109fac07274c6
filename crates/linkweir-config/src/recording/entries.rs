// SPDX-License-Identifier: BSD-3-Clause
//! Entries of a block of counts.
//!
//! An entry begins with a byte: two bits for its kind, one that says that it is about the same peer as the entry before, and
//! five for the class. All numbers are those of `numbers.rs`.
//!
//! Entries about a path are in sections of [`Version::Two`] only. A capacity with a class other than 0 is that of the path
//! before this number; a cell of [`OF_A_PATH`] size classes, which there are not, is what the path in its three lowest bits sent.

use linkweir_core::MOST_PATHS;

use super::bins::{size_class, BIN_NS, BOUNDS_BYTES, SIZES};
use super::numbers::{put, take};
use super::version::Version;
use crate::limits;

/// The kind of a block of counts.
pub(super) const COUNTS: u8 = 3;
/// Most packets of a cell: more than 400 Gbit/s carry in a bin.
pub const MOST_CELL_PKTS: u64 = 10_000_000;
/// Latest bin: that of the longest simulation, ten years.
const MOST_BIN: u64 = 10 * 366 * 86_400 * 100;
/// Highest number of a peer and of a class.
const MOST_PEER: u64 = 65_535;
const MOST_CLASS: u64 = 255;
/// How long before the end of its bin a change of the capacity may be, ns.
const MOST_LATE_NS: u64 = 1_000_000_000;
/// Longest packet, bytes.
const MOST_PACKET_BYTES: u64 = 1 << 20;

const ADVANCE: u8 = 0;
const CELL: u8 = 1;
const CAPACITY: u8 = 2;
const PACKET: u8 = 3;
const SAME_PEER: u8 = 4;
/// Classes from this one on are written behind the first byte.
const FAR_CLASS: u8 = 31;

const HAS_SENT: u8 = 1;
const HAS_DROPPED: u8 = 2;
const HAS_TCP: u8 = 4;
/// In the place of the number of size classes: what a path sent.
const OF_A_PATH: u8 = 31;
const _: () = assert!(SIZES < OF_A_PATH as usize && MOST_PATHS == 8);

/// Packets and bytes of each size class.
pub type Sizes = [(u32, u64); SIZES];

/// What happened to the packets of a class towards a peer in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Packets that arrived and their bytes by size class; none where each packet is recorded.
    pub arrived: Sizes,
    /// How many of the packets that arrived were TCP's.
    pub tcp_pkts: u64,
    /// Packets sent.
    pub sent_pkts: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets dropped, also those refused on arrival.
    pub dropped_pkts: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
}

impl Cell {
    /// Counts packets of the same size that arrived.
    #[inline]
    pub fn arrive(&mut self, pkts: u32, each_bytes: u32) {
        let (all_pkts, all_bytes) = &mut self.arrived[size_class(each_bytes)];
        *all_pkts = all_pkts.saturating_add(pkts);
        *all_bytes += u64::from(pkts) * u64::from(each_bytes);
    }

    /// Packets that arrived, and their bytes.
    #[must_use]
    pub fn arrived(&self) -> (u64, u64) {
        let sum =
            |(pkts, bytes): (u64, u64), of: &(u32, u64)| (pkts + u64::from(of.0), bytes + of.1);
        self.arrived.iter().fold((0, 0), sum)
    }

    /// Whether nothing happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Cell::default()
    }
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// They are visited one by one and not kept.
#[allow(clippy::large_enum_variant)]
pub enum Entry {
    /// What happened in a bin.
    Cell {
        /// Number of the bin since the origin of the section.
        bin: u64,
        /// The peer.
        peer: u32,
        /// The class.
        class: u32,
        /// The counts.
        cell: Cell,
    },
    /// The capacity towards a peer from this time on.
    Capacity {
        /// Time since the origin, ns.
        at_ns: u64,
        /// The peer.
        peer: u32,
        /// The capacity, bit/s.
        bps: u64,
    },
    /// A packet that arrived.
    Packet {
        /// Time since the origin, ns.
        at_ns: u64,
        /// The peer.
        peer: u32,
        /// The class.
        class: u32,
        /// Its length on the link.
        bytes: u32,
        /// Whether it was TCP's.
        tcp: bool,
    },
    /// What one of several paths to a peer is from this time on.
    Path {
        /// Time since the origin, ns.
        at_ns: u64,
        /// The peer.
        peer: u32,
        /// The path, by its place in the peer's list.
        path: u8,
        /// What is known of it.
        state: PathState,
    },
    /// What one of several paths to a peer sent of a class in a bin, copies and repetitions included.
    Carried {
        /// Number of the bin since the origin of the section.
        bin: u64,
        /// The peer.
        peer: u32,
        /// The class.
        class: u32,
        /// The path, by its place in the peer's list.
        path: u8,
        /// Packets.
        pkts: u64,
        /// Their bytes.
        bytes: u64,
    },
}

/// What is known of one of several paths to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathState {
    /// Its capacity, bit/s; 0 while it carries nothing.
    pub bps: u64,
    /// Its one-way delay as the gateway took it, ns; 0 before it was measured.
    pub delay_ns: u64,
}

impl Entry {
    /// The peer that it is about.
    #[must_use]
    pub fn peer(&self) -> u32 {
        match self {
            Entry::Cell { peer, .. }
            | Entry::Capacity { peer, .. }
            | Entry::Packet { peer, .. }
            | Entry::Path { peer, .. }
            | Entry::Carried { peer, .. } => *peer,
        }
    }

    /// Its time, of what happened in a bin the bin's begin: ns since the origin.
    #[must_use]
    pub fn at_ns(&self) -> u64 {
        match self {
            Entry::Cell { bin, .. } | Entry::Carried { bin, .. } => bin * BIN_NS,
            Entry::Capacity { at_ns, .. }
            | Entry::Packet { at_ns, .. }
            | Entry::Path { at_ns, .. } => *at_ns,
        }
    }
}

/// The body of a block of counts: written entry by entry, in the order of time.
#[derive(Debug)]
pub struct Writer {
    body: Vec<u8>,
    first_bin: u64,
    bin: u64,
    peer: u32,
    packet_ns: u64,
}

impl Writer {
    /// A block without entries.
    #[must_use]
    pub fn new(first_bin: u64) -> Writer {
        let mut body = vec![COUNTS];
        put(&mut body, first_bin);
        Writer {
            body,
            first_bin,
            bin: first_bin,
            peer: 0,
            packet_ns: first_bin * BIN_NS,
        }
    }

    /// The bin in which it begins.
    #[must_use]
    pub fn first_bin(&self) -> u64 {
        self.first_bin
    }

    /// The bin of its last entry.
    #[must_use]
    pub fn bin(&self) -> u64 {
        self.bin
    }

    /// Its length so far, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    /// Adds what happened in a bin, not before that of the last entry.
    pub fn cell(&mut self, bin: u64, peer: u32, class: u32, cell: &Cell) {
        self.tag(bin, CELL, peer, class);
        let sizes = cell.arrived.iter().filter(|(pkts, _)| *pkts > 0).count() as u8;
        let sent = cell.sent_pkts > 0;
        let dropped = cell.dropped_pkts > 0;
        let tcp = cell.tcp_pkts > 0;
        self.body.push(
            (u8::from(sent) * HAS_SENT)
                | (u8::from(dropped) * HAS_DROPPED)
                | (u8::from(tcp) * HAS_TCP)
                | (sizes << 3),
        );
        for (class, (pkts, bytes)) in cell.arrived.iter().enumerate() {
            if *pkts > 0 {
                let least = u64::from(*pkts) * u64::from(BOUNDS_BYTES[class]);
                self.body.push(class as u8);
                put(&mut self.body, u64::from(*pkts));
                put(&mut self.body, bytes.saturating_sub(least));
            }
        }
        if tcp {
            put(&mut self.body, cell.tcp_pkts);
        }
        if sent {
            put(&mut self.body, cell.sent_pkts);
            put(&mut self.body, cell.sent_bytes);
        }
        if dropped {
            put(&mut self.body, cell.dropped_pkts);
            put(&mut self.body, cell.dropped_bytes);
        }
    }

    /// Adds the capacity towards a peer from this time on, which may be up to a second before the present bin.
    pub fn capacity(&mut self, at_ns: u64, peer: u32, bps: u64) {
        self.change(at_ns, peer, 0, bps);
    }

    /// Adds what a path is from this time on, in the same way. Only for [`Version::Two`].
    pub fn path(&mut self, at_ns: u64, peer: u32, path: u8, state: PathState) {
        self.change(at_ns, peer, u32::from(path) + 1, state.bps);
        put(&mut self.body, state.delay_ns.min(limits::DELAY_NS));
    }

    fn change(&mut self, at_ns: u64, peer: u32, class: u32, bps: u64) {
        self.tag(at_ns / BIN_NS, CAPACITY, peer, class);
        let end_ns = (self.bin + 1) * BIN_NS;
        put(
            &mut self.body,
            end_ns - at_ns.max(end_ns.saturating_sub(MOST_LATE_NS)),
        );
        put(&mut self.body, bps);
    }

    /// Adds what a path sent of a class in a bin, packets and their bytes. Only for [`Version::Two`].
    pub fn carried(
        &mut self,
        bin: u64,
        (peer, class, path): (u32, u32, u8),
        (pkts, bytes): (u64, u64),
    ) {
        self.tag(bin, CELL, peer, class);
        self.body.push(OF_A_PATH << 3 | path);
        put(&mut self.body, pkts);
        put(&mut self.body, bytes);
    }

    /// Adds a packet that arrived.
    pub fn packet(&mut self, at_ns: u64, peer: u32, class: u32, (bytes, tcp): (u32, bool)) {
        self.tag(at_ns / BIN_NS, PACKET, peer, class);
        put(&mut self.body, at_ns.saturating_sub(self.packet_ns));
        put(&mut self.body, u64::from(bytes) << 1 | u64::from(tcp));
        self.packet_ns = self.packet_ns.max(at_ns);
    }

    fn tag(&mut self, bin: u64, kind: u8, peer: u32, class: u32) {
        if self.bin < bin {
            self.body.push(ADVANCE);
            put(&mut self.body, bin - self.bin);
            self.bin = bin;
        }
        let same = peer == self.peer;
        let near = u8::try_from(class).unwrap_or(u8::MAX).min(FAR_CLASS);
        self.body
            .push(kind | (u8::from(same) * SAME_PEER) | (near << 3));
        if !same {
            put(&mut self.body, peer.into());
            self.peer = peer;
        }
        if near == FAR_CLASS {
            put(&mut self.body, class.into());
        }
    }

    /// The body.
    #[must_use]
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }
}

/// The entries of a block, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts<'b> {
    version: Version,
    first_bin: u64,
    entries: &'b [u8],
}

impl<'b> Counts<'b> {
    /// The entries in the body of a block, without its first byte; none if one of them is malformed.
    pub(super) fn new(version: Version, mut body: &'b [u8]) -> Option<Counts<'b>> {
        let first_bin = take(&mut body).filter(|bin| *bin <= MOST_BIN)?;
        let counts = Counts {
            version,
            first_bin,
            entries: body,
        };
        let mut entries = counts.entries();
        while entries.next().is_some() {}
        entries.rest.is_empty().then_some(counts)
    }

    /// The bin in which it begins.
    #[must_use]
    pub fn first_bin(&self) -> u64 {
        self.first_bin
    }

    /// The entries, in order.
    #[must_use]
    pub fn entries(&self) -> Entries<'b> {
        Entries {
            version: self.version,
            rest: self.entries,
            bin: self.first_bin,
            peer: 0,
            packet_ns: self.first_bin * BIN_NS,
        }
    }
}

/// Reads entries.
#[derive(Clone, Debug)]
pub struct Entries<'b> {
    version: Version,
    rest: &'b [u8],
    bin: u64,
    peer: u32,
    packet_ns: u64,
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let mut rest = self.rest;
        let entry = self.take(&mut rest)?;
        self.rest = rest;
        Some(entry)
    }
}

impl Entries<'_> {
    /// None at the end, and at a malformed entry, which stays in `rest`.
    fn take(&mut self, rest: &mut &[u8]) -> Option<Entry> {
        loop {
            let (tag, after) = rest.split_first()?;
            *rest = after;
            if tag & 3 == ADVANCE {
                let bins = take(rest)?;
                let bin = self.bin.checked_add(bins);
                self.bin = bin.filter(|bin| *tag == ADVANCE && *bin <= MOST_BIN)?;
                continue;
            }
            if tag & SAME_PEER == 0 {
                self.peer = take(rest).filter(|peer| *peer <= MOST_PEER)? as u32;
            }
            let mut class = u32::from(tag >> 3);
            if class == u32::from(FAR_CLASS) {
                class = take(rest).filter(|class| *class <= MOST_CLASS)? as u32;
            }
            return match tag & 3 {
                CELL => self.cell(rest, class),
                CAPACITY => {
                    let end_ns = (self.bin + 1) * BIN_NS;
                    let before_ns = take(rest).filter(|ns| (1..=MOST_LATE_NS).contains(ns))?;
                    let bps = take(rest).filter(|bps| *bps <= limits::RATE_BPS)?;
                    let at_ns = end_ns.saturating_sub(before_ns);
                    self.change(rest, class, (at_ns, bps))
                }
                _ => self.packet(rest, class),
            };
        }
    }

    /// A capacity from a time on, ns and bit/s, of the peer or of a path.
    fn change(&self, rest: &mut &[u8], class: u32, (at_ns, bps): (u64, u64)) -> Option<Entry> {
        let peer = self.peer;
        if self.version == Version::One || class == 0 {
            return Some(Entry::Capacity { at_ns, peer, bps });
        }
        let path = u8::try_from(class - 1).ok()?;
        let delay_ns = take(rest).filter(|ns| *ns <= limits::DELAY_NS)?;
        let state = PathState { bps, delay_ns };
        (usize::from(path) < MOST_PATHS).then_some(Entry::Path {
            at_ns,
            peer,
            path,
            state,
        })
    }

    fn cell(&self, rest: &mut &[u8], class: u32) -> Option<Entry> {
        let (mask, after) = rest.split_first()?;
        *rest = after;
        if self.version == Version::Two && mask >> 3 == OF_A_PATH {
            let (pkts, bytes) = counted(rest)?;
            return Some(Entry::Carried {
                bin: self.bin,
                peer: self.peer,
                class,
                path: mask & 7,
                pkts,
                bytes,
            });
        }
        let mut cell = Cell::default();
        for _ in 0..mask >> 3 {
            let (size, after) = rest.split_first()?;
            *rest = after;
            let least = *BOUNDS_BYTES.get(usize::from(*size))?;
            let (pkts, more) = (take(rest)?, take(rest)?);
            if !(1..=MOST_CELL_PKTS).contains(&pkts) || more > pkts * MOST_PACKET_BYTES {
                return None;
            }
            let counted = &mut cell.arrived[usize::from(*size)];
            if counted.0 > 0 {
                return None;
            }
            *counted = (pkts as u32, pkts * u64::from(least) + more);
        }
        if mask & HAS_TCP != 0 {
            cell.tcp_pkts = take(rest).filter(|pkts| *pkts <= MOST_CELL_PKTS)?;
        }
        if mask & HAS_SENT != 0 {
            (cell.sent_pkts, cell.sent_bytes) = counted(rest)?;
        }
        if mask & HAS_DROPPED != 0 {
            (cell.dropped_pkts, cell.dropped_bytes) = counted(rest)?;
        }
        Some(Entry::Cell {
            bin: self.bin,
            peer: self.peer,
            class,
            cell,
        })
    }

    fn packet(&mut self, rest: &mut &[u8], class: u32) -> Option<Entry> {
        let after_ns = take(rest)?;
        let length = take(rest)?;
        let bytes = length >> 1;
        let at_ns = self.packet_ns.checked_add(after_ns)?;
        if at_ns / BIN_NS != self.bin || !(1..=MOST_PACKET_BYTES).contains(&bytes) {
            return None;
        }
        self.packet_ns = at_ns;
        Some(Entry::Packet {
            at_ns,
            peer: self.peer,
            class,
            bytes: bytes as u32,
            tcp: length & 1 == 1,
        })
    }
}

/// Packets and their bytes.
fn counted(rest: &mut &[u8]) -> Option<(u64, u64)> {
    let (pkts, bytes) = (take(rest)?, take(rest)?);
    let sound = pkts <= MOST_CELL_PKTS && bytes <= pkts * MOST_PACKET_BYTES;
    sound.then_some((pkts, bytes))
}
