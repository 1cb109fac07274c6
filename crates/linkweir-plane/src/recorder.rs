// SPDX-License-Identifier: BSD-3-Clause
//! The flight recorder: counts what arrives, leaves and is dropped, per peer and class, in bins of 10 ms.
//!
//! A packet costs a few additions in the cell of its class. When a bin is over, its cells are written to a block, and a
//! block is ready after a second; the caller takes it from there. Cells exist for what happened in the present bin only, so
//! memory does not grow with the number of peers. [`linkweir_config::recording`] has the format.
//!
//! The packets that arrive in a bin are listed with their times, since their order decides who is dropped. But only so many
//! may be listed, [`LISTED_PER_BIN`] on average: where more arrive, a bin has counts by size instead. So the length of a
//! recording has a bound, however many packets arrive.

use std::cell::RefCell;
use std::rc::Rc;

use linkweir_config::limits;
use linkweir_config::recording::{Cell, PathState, Writer, BIN_NS};

/// A block ends after so many bins: one second.
const BLOCK_BINS: u64 = 100;
/// A block ends when it is this long, bytes.
const BLOCK_BYTES: usize = 60_000;
/// Capacities that differ by one part in so many at most are recorded once per bin.
const NEAR: u64 = 128;
/// So many packets per bin are listed on average, 25,000 per second, unless all are to be recorded: 20 Mbit/s of packets of 100
/// bytes. At six bytes each this is 0.54 GB an hour.
pub const LISTED_PER_BIN: usize = 250;
/// Most packets that are listed in a bin after quiet times.
const MOST_LISTED: usize = 20 * LISTED_PER_BIN;

/// A finished block.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// Its body.
    pub body: Vec<u8>,
    /// Its first bin.
    pub first_bin: u64,
    /// How many bins it covers.
    pub bins: u64,
    /// Peers that appear in no block before it, by number.
    pub peers: Vec<u32>,
    /// The changes of capacities in it, in order: the peer and its capacity from then on, bit/s.
    pub capacities: Vec<(u32, u64)>,
    /// The changes of paths in it, in order: the peer and the path, and what that is from then on.
    pub paths: Vec<((u32, u8), PathState)>,
}

/// Counts of a gateway.
#[derive(Debug)]
pub struct Recorder {
    /// The caller's time at bin 0, ns.
    origin_ns: u64,
    /// Whether each packet is recorded.
    packets: bool,
    /// The present bin, and when it ends, ns of the caller's time.
    bin: u64,
    end_ns: u64,
    /// Latest time of an entry, ns since the origin.
    last_ns: u64,
    /// Counts of the present bin; those from `used` on are empty.
    cells: Vec<PeerClass>,
    used: usize,
    /// The packets that arrived in the present bin, in order, until it is `crowded`.
    listed: Vec<Listed>,
    /// How many packets the present bin may list.
    allowance: usize,
    /// Whether more arrived: they are counted in the cells.
    crowded: bool,
    block: Option<Writer>,
    ready: Vec<Block>,
    /// Which peers have been recorded, by number.
    seen: Vec<bool>,
    /// Those that are in no finished block yet.
    fresh: Vec<u32>,
    /// Changes of capacities and of paths in the block.
    capacities: Vec<(u32, u64)>,
    paths: Vec<((u32, u8), PathState)>,
}

/// A packet that arrived in the present bin.
#[derive(Clone, Copy, Debug)]
struct Listed {
    /// Since the origin, ns.
    at_ns: u64,
    /// The cell of its class.
    cell: usize,
    bytes: u32,
    tcp: bool,
}

/// The counts of a class towards a peer, or over one of several paths to it.
#[derive(Debug)]
struct PeerClass {
    peer: u32,
    class: u32,
    path: Option<u8>,
    cell: Cell,
}

impl Recorder {
    /// A recorder whose first bin begins now.
    #[must_use]
    pub fn new(now_ns: u64, packets: bool) -> Recorder {
        Recorder {
            origin_ns: now_ns,
            packets,
            bin: 0,
            end_ns: now_ns + BIN_NS,
            last_ns: 0,
            cells: Vec::new(),
            used: 0,
            listed: Vec::new(),
            allowance: MOST_LISTED,
            crowded: false,
            block: None,
            ready: Vec::new(),
            seen: Vec::new(),
            fresh: Vec::new(),
            capacities: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Goes to the bin of this time.
    #[inline]
    fn advance(&mut self, now_ns: u64) {
        if now_ns >= self.end_ns {
            self.close(now_ns);
        }
    }

    /// Writes the packets and cells of the bin that is over to the block.
    #[cold]
    fn close(&mut self, now_ns: u64) {
        if self.used > 0 {
            let block = self.block.get_or_insert_with(|| Writer::new(self.bin));
            self.allowance -= self.listed.len();
            for packet in self.listed.drain(..) {
                let place = &self.cells[packet.cell];
                block.packet(
                    packet.at_ns,
                    place.peer,
                    place.class,
                    (packet.bytes, packet.tcp),
                );
            }
            for place in &mut self.cells[..self.used] {
                let cell = &place.cell;
                if let Some(path) = place.path {
                    let sent = (cell.sent_pkts, cell.sent_bytes);
                    block.carried(self.bin, (place.peer, place.class, path), sent);
                } else if !cell.is_empty() {
                    block.cell(self.bin, place.peer, place.class, cell);
                }
                place.cell = Cell::default();
            }
            self.used = 0;
            self.crowded = false;
        }
        let before = self.bin;
        self.bin = now_ns.saturating_sub(self.origin_ns) / BIN_NS;
        let passed = usize::try_from(self.bin - before).unwrap_or(MOST_LISTED);
        let more = passed.min(MOST_LISTED) * LISTED_PER_BIN;
        self.allowance = (self.allowance + more).min(MOST_LISTED);
        self.end_ns = self.origin_ns + (self.bin + 1) * BIN_NS;
        let over = |block: &Writer| {
            self.bin >= block.first_bin() + BLOCK_BINS || block.bytes() >= BLOCK_BYTES
        };
        if self.block.as_ref().is_some_and(over) {
            self.finish(before);
        }
    }

    /// Ends the block, of which this is the last bin.
    fn finish(&mut self, last_bin: u64) {
        if let Some(block) = self.block.take() {
            self.ready.push(Block {
                first_bin: block.first_bin(),
                bins: last_bin + 1 - block.first_bin(),
                body: block.into_body(),
                peers: std::mem::take(&mut self.fresh),
                capacities: std::mem::take(&mut self.capacities),
                paths: std::mem::take(&mut self.paths),
            });
        }
    }

    /// The finished blocks, once the time has come for the one that is being written.
    pub fn take(&mut self, now_ns: u64) -> std::vec::Drain<'_, Block> {
        self.advance(now_ns);
        self.ready.drain(..)
    }

    /// All blocks, when nothing more will be counted.
    pub fn take_all(&mut self, now_ns: u64) -> std::vec::Drain<'_, Block> {
        self.close(now_ns.max(self.end_ns));
        self.finish(self.bin);
        self.ready.drain(..)
    }

    /// When [`Recorder::take`] has a block at the latest, ns; none: nothing has been counted.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        if !self.ready.is_empty() {
            return Some(self.origin_ns);
        }
        let open = self.used > 0;
        let first = self.block.as_ref().map(Writer::first_bin);
        let first = first.or_else(|| open.then_some(self.bin))?;
        Some(self.origin_ns + (first + BLOCK_BINS) * BIN_NS)
    }

    /// The block of the present bin.
    fn block(&mut self) -> &mut Writer {
        if self
            .block
            .as_ref()
            .is_some_and(|block| block.bytes() >= 4 * BLOCK_BYTES)
        {
            // Only where each packet is recorded is a bin so long.
            self.finish(self.bin);
        }
        let bin = self.bin;
        self.block.get_or_insert_with(|| Writer::new(bin))
    }

    /// A time since the origin, ns, in the present bin and not before that of the last entry.
    fn since(&mut self, now_ns: u64) -> u64 {
        let since_ns = now_ns.saturating_sub(self.origin_ns);
        self.last_ns = since_ns.max(self.last_ns).max(self.bin * BIN_NS);
        self.last_ns
    }

    /// Packets of the same size arrived in the class with this cell.
    #[inline]
    fn arrive(&mut self, now_ns: u64, cell: usize, pkts: u32, bytes: u32, tcp: bool) {
        if !self.crowded && self.listed.len() + pkts as usize <= self.allowance {
            let at_ns = self.since(now_ns);
            let packet = Listed {
                at_ns,
                cell,
                bytes,
                tcp,
            };
            self.listed
                .extend(std::iter::repeat_n(packet, pkts as usize));
            return;
        }
        if !self.crowded {
            self.crowd();
        }
        self.cells[cell].cell.arrive(pkts, bytes);
        self.cells[cell].cell.tcp_pkts += u64::from(tcp) * u64::from(pkts);
    }

    /// More packets arrive in this bin than may be listed: counts those that are.
    #[cold]
    fn crowd(&mut self) {
        self.crowded = true;
        for packet in self.listed.drain(..) {
            let cell = &mut self.cells[packet.cell].cell;
            cell.arrive(1, packet.bytes);
            cell.tcp_pkts += u64::from(packet.tcp);
        }
    }

    /// A peer is recorded.
    fn see(&mut self, peer: u32) {
        let at = peer as usize;
        if self.seen.len() <= at {
            self.seen.resize(at + 1, false);
        }
        if !self.seen[at] {
            self.seen[at] = true;
            self.fresh.push(peer);
        }
    }

    /// An empty cell in the present bin.
    fn place(&mut self, peer: u32, class: u32, path: Option<u8>) -> usize {
        self.see(peer);
        let at = self.used;
        match self.cells.get_mut(at) {
            Some(place) => (place.peer, place.class, place.path) = (peer, class, path),
            None => self.cells.push(PeerClass {
                peer,
                class,
                path,
                cell: Cell::default(),
            }),
        }
        self.used += 1;
        at
    }
}

/// Where the queues towards a peer are recorded.
#[derive(Debug)]
pub struct Tap {
    recorder: Rc<RefCell<Recorder>>,
    /// The peer's number.
    peer: u32,
    /// For each class the bin it was last counted in, and its cell then.
    cells: Box<[(u64, usize)]>,
    /// The same of each of several paths, and what is known of it; empty before one sent or was recorded.
    paths: Vec<PathTap>,
    /// Whether a packet has arrived.
    used: bool,
    /// End of the bin in which the capacity was looked at because a packet arrived, ns.
    checked_ns: u64,
    /// The capacity recorded last, bit/s, and in which bin.
    capacity: Option<(u64, u64)>,
    /// When the configured capacity changes next, ns; [`NEVER`] if that is not known.
    change_ns: u64,
}

/// One of several paths, as it is recorded.
#[derive(Clone, Debug)]
struct PathTap {
    cells: Box<[(u64, usize)]>,
    /// What was recorded last, whether the path was up, and in which bin; none: nothing was.
    known: Option<(PathState, bool, u64)>,
    /// When its configured capacity changes next, ns; [`NEVER`] if that is not known.
    change_ns: u64,
}

impl PathTap {
    /// The one with this place, of which there are at most as many as a peer has paths.
    fn of(paths: &mut Vec<PathTap>, path: usize, classes: usize) -> &mut PathTap {
        if paths.len() <= path {
            let new = PathTap {
                cells: vec![(NEVER, 0); classes].into(),
                known: None,
                change_ns: 0,
            };
            paths.resize(path + 1, new);
        }
        &mut paths[path]
    }
}

/// No bin, and no time.
const NEVER: u64 = u64::MAX;

/// Packets of one item that arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// How many.
    pub(crate) pkts: u32,
    /// Their bytes on the link.
    pub(crate) bytes: u32,
    /// Those of each but the last.
    pub(crate) each_bytes: u32,
    /// Whether they are TCP's.
    pub(crate) tcp: bool,
}

impl Tap {
    /// Records the queues towards a peer.
    #[must_use]
    pub fn new(recorder: Rc<RefCell<Recorder>>, peer: u32, classes: usize) -> Tap {
        Tap {
            recorder,
            peer,
            cells: vec![(NEVER, 0); classes].into(),
            paths: Vec::new(),
            used: false,
            checked_ns: 0,
            capacity: None,
            change_ns: 0,
        }
    }

    /// Changes the counts of a class, whose cell has this place.
    #[inline]
    fn count(&mut self, now_ns: u64, class: usize, change: impl FnOnce(&mut Recorder, usize)) {
        let mut recorder = self.recorder.borrow_mut();
        recorder.advance(now_ns);
        let (bin, at) = &mut self.cells[class];
        if *bin != recorder.bin {
            *at = recorder.place(self.peer, class as u32, None);
            *bin = recorder.bin;
        }
        change(&mut recorder, *at);
    }

    /// One of several paths.
    fn path(&mut self, path: usize) -> &mut PathTap {
        PathTap::of(&mut self.paths, path, self.cells.len())
    }

    /// A path sent packets of a class, perhaps copies or repetitions.
    #[inline]
    pub(crate) fn carried(
        &mut self,
        now_ns: u64,
        (class, path): (usize, usize),
        (pkts, bytes): (u32, u32),
    ) {
        let mut recorder = self.recorder.borrow_mut();
        recorder.advance(now_ns);
        let of = PathTap::of(&mut self.paths, path, self.cells.len());
        let (bin, at) = &mut of.cells[class];
        if *bin != recorder.bin {
            *at = recorder.place(self.peer, class as u32, Some(path as u8));
            *bin = recorder.bin;
        }
        let cell = &mut recorder.cells[*at].cell;
        cell.sent_pkts += u64::from(pkts);
        cell.sent_bytes += u64::from(bytes);
    }

    /// Packets arrived, also those that the class refuses.
    #[inline]
    pub(crate) fn arrived(&mut self, now_ns: u64, class: usize, arrival: Arrival) {
        let last_bytes = arrival.bytes - (arrival.pkts - 1) * arrival.each_bytes;
        if self.recorder.borrow().packets {
            self.list(now_ns, class, arrival, last_bytes);
            return;
        }
        self.count(now_ns, class, |recorder, cell| {
            if arrival.pkts > 1 {
                let each_bytes = arrival.each_bytes;
                recorder.arrive(now_ns, cell, arrival.pkts - 1, each_bytes, arrival.tcp);
            }
            recorder.arrive(now_ns, cell, 1, last_bytes, arrival.tcp);
        });
    }

    /// Lists packets that arrived.
    fn list(&mut self, now_ns: u64, class: usize, arrival: Arrival, last_bytes: u32) {
        let mut recorder = self.recorder.borrow_mut();
        recorder.advance(now_ns);
        recorder.see(self.peer);
        let at_ns = recorder.since(now_ns);
        for packet in 1..=arrival.pkts {
            let bytes = if packet < arrival.pkts {
                arrival.each_bytes
            } else {
                last_bytes
            };
            recorder
                .block()
                .packet(at_ns, self.peer, class as u32, (bytes, arrival.tcp));
        }
    }

    /// Packets were sent.
    #[inline]
    pub(crate) fn sent(&mut self, now_ns: u64, class: usize, pkts: u32, bytes: u32) {
        self.count(now_ns, class, |recorder, cell| {
            let cell = &mut recorder.cells[cell].cell;
            cell.sent_pkts += u64::from(pkts);
            cell.sent_bytes += u64::from(bytes);
        });
    }

    /// Packets were dropped.
    #[inline]
    pub(crate) fn dropped(&mut self, now_ns: u64, class: usize, pkts: u32, bytes: u32) {
        self.count(now_ns, class, |recorder, cell| {
            let cell = &mut recorder.cells[cell].cell;
            cell.dropped_pkts += u64::from(pkts);
            cell.dropped_bytes += u64::from(bytes);
        });
    }

    /// Whether a packet has arrived: before that nothing is recorded of a peer.
    pub(crate) fn is_used(&self) -> bool {
        self.used
    }

    /// A packet arrives; whether the capacity of the present bin is not known yet.
    pub(crate) fn lacks_capacity(&mut self, now_ns: u64) -> bool {
        self.used = true;
        let lacks = self.checked_ns <= now_ns;
        if lacks {
            let mut recorder = self.recorder.borrow_mut();
            recorder.advance(now_ns);
            self.checked_ns = recorder.end_ns;
        }
        lacks
    }

    /// Whether the time has passed at which the configured capacity changes.
    pub(crate) fn passes(&self, now_ns: u64) -> bool {
        self.change_ns <= now_ns
    }

    /// The configured capacity changes then, ns.
    pub(crate) fn set_change(&mut self, ns: Option<u64>) {
        self.change_ns = ns.unwrap_or(NEVER);
    }

    /// The capacity is this now, bit/s, or since the time at which it was to change, if that has passed. Small changes are
    /// recorded once per bin.
    #[inline]
    pub(crate) fn capacity(&mut self, now_ns: u64, bps: u64) {
        let bps = bps.min(limits::RATE_BPS);
        if self.capacity.is_some_and(|(known_bps, _)| known_bps == bps) {
            return;
        }
        let mut recorder = self.recorder.borrow_mut();
        recorder.advance(now_ns);
        let near = |(known_bps, bin): (u64, u64)| {
            bps.abs_diff(known_bps) <= known_bps / NEAR && bin == recorder.bin
        };
        if self.capacity.is_some_and(near) {
            return;
        }
        let known = self.capacity.is_some();
        self.capacity = Some((bps, recorder.bin));
        recorder.see(self.peer);
        let since_ns = if known {
            self.change_ns.min(now_ns)
        } else {
            now_ns
        };
        let at_ns = since_ns.saturating_sub(recorder.origin_ns);
        recorder.block().capacity(at_ns, self.peer, bps);
        recorder.capacities.push((self.peer, bps));
    }

    /// Whether the time has passed at which the configured capacity of a path changes.
    pub(crate) fn path_passes(&mut self, now_ns: u64, path: usize) -> bool {
        self.path(path).change_ns <= now_ns
    }

    /// The configured capacity of a path changes then, ns.
    pub(crate) fn set_path_change(&mut self, path: usize, ns: Option<u64>) {
        self.path(path).change_ns = ns.unwrap_or(NEVER);
    }

    /// As [`Tap::capacity`], of a path, which has a capacity of 0 while it is not up.
    #[inline]
    pub(crate) fn path_is(&mut self, now_ns: u64, path: usize, is_up: bool, state: PathState) {
        let bps = if is_up { state.bps } else { 0 };
        let state = PathState {
            bps: bps.min(limits::RATE_BPS),
            ..state
        };
        let of = self.path(path);
        let (known, change_ns) = (of.known, of.change_ns);
        if known.is_some_and(|(known, was_up, _)| (known, was_up) == (state, is_up)) {
            return;
        }
        let mut recorder = self.recorder.borrow_mut();
        recorder.advance(now_ns);
        let bin = recorder.bin;
        let mut since_ns = now_ns;
        if let Some((before, was_up, before_bin)) = known {
            let differs_bps = state.bps.abs_diff(before.bps);
            let is_near = differs_bps <= before.bps / NEAR && state.delay_ns == before.delay_ns;
            if is_near && was_up == is_up && before_bin == bin {
                return;
            }
            if was_up == is_up {
                since_ns = since_ns.min(change_ns);
            }
        }
        recorder.see(self.peer);
        let at_ns = since_ns.saturating_sub(recorder.origin_ns);
        recorder.block().path(at_ns, self.peer, path as u8, state);
        recorder.paths.push(((self.peer, path as u8), state));
        drop(recorder);
        self.paths[path].known = Some((state, is_up, bin));
    }
}

#[cfg(test)]
mod tests;
