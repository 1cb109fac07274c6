// SPDX-License-Identifier: BSD-3-Clause
//! A whole recording: which peers and times are in it, sums over intervals, and a part cut out of it.

use std::collections::BTreeMap;

use linkweir_core::MOST_PATHS;

use super::bins::BIN_NS;
use super::entries::{Cell, Counts, Entry, PathState, Writer};
use super::frames::{self, Block, Damage};
use super::settings::{classes_of, configured, flag_of, name_of, number_of, paths_of};
use super::version::Version;
use crate::limits;

/// A block of counts ends when it is this long, bytes.
const BLOCK_BYTES: usize = 60_000;
/// A block of counts ends after so many bins: one second.
const BLOCK_BINS: u64 = 100;
/// Latest time 0 of a section on the clock of the recording, ns: what a stranger wrote must not be beyond all clocks.
const MOST_OFFSET_NS: u64 = limits::DURATION_NS;

/// A recording: files in the order of their names.
#[derive(Debug)]
pub struct Recording {
    files: Vec<Vec<u8>>,
    /// Its sections, in order. Times are on one clock for all of them.
    pub sections: Vec<Section>,
    /// What was left out of each file.
    pub damages: Vec<(usize, Damage)>,
}

/// What was recorded with the same settings.
#[derive(Debug)]
pub struct Section {
    /// The version of its format.
    version: Version,
    /// The settings, TOML.
    pub settings: String,
    /// Its time 0, ns of UNIX time.
    pub origin_unix_ns: u64,
    /// Its time 0 on the clock of the recording, ns.
    offset_ns: u64,
    /// When its first bin begins and its last one ends, ns on the clock of the recording.
    pub from_ns: u64,
    /// See `from_ns`.
    pub to_ns: u64,
    /// The peers by number, each with its TOML text.
    pub peers: BTreeMap<u32, String>,
    /// Gaps: begin and end, ns on the clock of the recording.
    pub gaps: Vec<(u64, u64)>,
}

/// When something changed, ns after a begin, and to what.
type Changes<T> = Vec<(u64, T)>;

/// Sums of a class over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Packets that arrived.
    pub arrived_pkts: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// How many of them were TCP's.
    pub tcp_pkts: u64,
    /// Packets sent.
    pub sent_pkts: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub dropped_pkts: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
}

impl Bin {
    fn add(&mut self, cell: &Cell) {
        let (pkts, bytes) = cell.arrived();
        self.arrived_pkts += pkts;
        self.arrived_bytes += bytes;
        self.tcp_pkts += cell.tcp_pkts;
        self.sent_pkts += cell.sent_pkts;
        self.sent_bytes += cell.sent_bytes;
        self.dropped_pkts += cell.dropped_pkts;
        self.dropped_bytes += cell.dropped_bytes;
    }
}

impl Recording {
    /// Reads the files of a recording, in order.
    ///
    /// # Errors
    /// When there is nothing in them that can be read.
    pub fn new(files: Vec<Vec<u8>>) -> Result<Recording, String> {
        let mut sections: Vec<Section> = Vec::new();
        let mut damages = Vec::new();
        for (number, file) in files.iter().enumerate() {
            // A file that was just begun is a part of its first bytes, or empty.
            if !frames::is_recording(file) && !frames::is_begun(file) {
                return Err(format!("file {} is no recording", number + 1));
            }
            let found = frames::read(file, |block| match (block, sections.last_mut()) {
                (Block::Settings(version, text), _) => sections.push(Section::new(version, text)),
                (_, None) => {}
                (Block::Peer(number, text), Some(section)) => {
                    section.peers.insert(number, text.to_string());
                }
                (Block::Counts(counts), Some(section)) => section.extend(counts),
                (Block::Gap(first, bins), Some(section)) => section.miss(first, bins),
            });
            damages.extend(found.into_iter().map(|damage| (number, damage)));
        }
        if sections.is_empty() {
            return Err(frames::unread(files.first().map_or(&[], Vec::as_slice)));
        }
        // Where the system's clock was set back between two runs, the second begins where the first ended.
        let origin_ns = sections[0].origin_unix_ns;
        let mut end_ns = 0;
        let mut before: Option<(u64, u64)> = None;
        for section in &mut sections {
            let since_ns = section.origin_unix_ns.saturating_sub(origin_ns);
            let wished_ns = since_ns / BIN_NS * BIN_NS;
            section.offset_ns = match before {
                Some((unix_ns, offset_ns)) if unix_ns == section.origin_unix_ns => offset_ns,
                _ => wished_ns.max(end_ns).min(MOST_OFFSET_NS),
            };
            before = Some((section.origin_unix_ns, section.offset_ns));
            let offset_ns = section.offset_ns;
            section.from_ns = section.from_ns.min(section.to_ns) + offset_ns;
            section.to_ns += offset_ns;
            for gap in &mut section.gaps {
                *gap = (gap.0 + offset_ns, gap.1 + offset_ns);
            }
            end_ns = end_ns.max(section.to_ns);
        }
        Ok(Recording {
            files,
            sections,
            damages,
        })
    }

    /// When it begins and ends, ns on its clock.
    #[must_use]
    pub fn span_ns(&self) -> (u64, u64) {
        let used = || self.sections.iter().filter(|one| one.from_ns < one.to_ns);
        let from_ns = used().map(|one| one.from_ns).min().unwrap_or(0);
        (from_ns, used().map(|one| one.to_ns).max().unwrap_or(0))
    }

    /// Calls `visit` with all entries about a peer, with their sections and times on the clock of the recording.
    fn visit(&self, peer: &str, mut visit: impl FnMut(usize, u64, Entry)) {
        let mut section = None;
        for file in &self.files {
            let mut number = None;
            frames::read(file, |block| {
                match block {
                    Block::Settings(..) => {
                        section = Some(section.map_or(0, |at| at + 1));
                        number = None;
                    }
                    Block::Peer(one, text) if name_of(text).as_deref() == Some(peer) => {
                        number = Some(one);
                    }
                    Block::Counts(counts) => {
                        let Some((at, known)) = section.zip(number) else {
                            return;
                        };
                        let offset_ns = self.sections[at].offset_ns;
                        for entry in counts.entries().filter(|one| one.peer() == known) {
                            visit(at, entry.at_ns() + offset_ns, entry);
                        }
                    }
                    Block::Peer(..) | Block::Gap(..) => {}
                };
            });
        }
    }

    /// Peers by name, with the sums of all their classes.
    #[must_use]
    pub fn peers(&self) -> BTreeMap<String, Bin> {
        let texts = self
            .sections
            .iter()
            .flat_map(|section| section.peers.values());
        let mut names: BTreeMap<String, Bin> = texts
            .filter_map(|text| Some((name_of(text)?, Bin::default())))
            .collect();
        let mut numbers: BTreeMap<u32, String> = BTreeMap::new();
        for file in &self.files {
            frames::read(file, |block| match block {
                Block::Settings(..) => numbers.clear(),
                Block::Peer(number, text) => {
                    if let Some(name) = name_of(text) {
                        numbers.insert(number, name);
                    }
                }
                Block::Counts(counts) => {
                    for entry in counts.entries() {
                        let name = numbers.get(&entry.peer());
                        if let Some(sum) = name.and_then(|name| names.get_mut(name)) {
                            sum.count(&entry);
                        }
                    }
                }
                Block::Gap(..) => {}
            });
        }
        names
    }

    /// Sums of the classes with these names over intervals of `interval_ns`, from one time to another: a row per interval.
    /// `interval_ns` is a whole number of bins, and there are at most a million sums.
    #[must_use]
    pub fn sums(
        &self,
        peer: &str,
        classes: &[String],
        (from_ns, to_ns): (u64, u64),
        interval_ns: u64,
    ) -> Vec<Vec<Bin>> {
        const MOST: u64 = 1_000_000;
        let interval_ns = interval_ns.max(BIN_NS);
        let rows = to_ns.saturating_sub(from_ns).div_ceil(interval_ns);
        let rows = rows.min(MOST / (classes.len() as u64).max(1));
        let mut sums = vec![vec![Bin::default(); classes.len()]; rows as usize];
        let places = self.places(classes);
        self.visit(peer, |section, at_ns, entry| {
            let class = match entry {
                Entry::Cell { class, .. } | Entry::Packet { class, .. } => class as usize,
                _ => return,
            };
            let place = places[section].get(class).copied().flatten();
            if let (Some(after_ns), Some(place)) = (at_ns.checked_sub(from_ns), place) {
                if let Some(row) = sums.get_mut((after_ns / interval_ns) as usize) {
                    row[place].count(&entry);
                }
            }
        });
        sums
    }

    /// Packets and bytes of the classes with these names that the paths with these names sent from one time to another, copies
    /// and repetitions included: a row per path.
    #[must_use]
    pub fn carried(
        &self,
        peer: &str,
        (paths, classes): (&[String], &[String]),
        (from_ns, to_ns): (u64, u64),
    ) -> Vec<Vec<(u64, u64)>> {
        let mut sums = vec![vec![(0, 0); classes.len()]; paths.len()];
        let (ways, places) = (self.ways(peer, paths), self.places(classes));
        self.visit(peer, |section, at_ns, entry| {
            let Entry::Carried {
                path,
                class,
                pkts,
                bytes,
                ..
            } = entry
            else {
                return;
            };
            let way = ways[section].get(usize::from(path)).copied().flatten();
            let place = places[section].get(class as usize).copied().flatten();
            if let (Some(way), Some(place), true) = (way, place, (from_ns..to_ns).contains(&at_ns))
            {
                let sum: &mut (u64, u64) = &mut sums[way][place];
                *sum = (sum.0 + pkts, sum.1 + bytes);
            }
        });
        sums
    }

    /// For each section the places of its classes in a list of names.
    fn places(&self, classes: &[String]) -> Vec<Vec<Option<usize>>> {
        let sections = self.sections.iter();
        let classes = listed(classes);
        sections
            .map(|section| places(&classes_of(&section.settings), &classes))
            .collect()
    }

    /// For each section the places of a peer's paths in a list of names.
    fn ways(&self, peer: &str, paths: &[String]) -> Vec<Vec<Option<usize>>> {
        let sections = self.sections.iter();
        let paths = listed(paths);
        sections
            .map(|section| {
                let text = section.text_of(peer).unwrap_or_default();
                places(&paths_of(text), &paths)
            })
            .collect()
    }

    /// The capacity towards a peer from one time to another: when it changed, ns after the first time, and to what, bit/s.
    #[must_use]
    pub fn capacity(&self, peer: &str, (from_ns, to_ns): (u64, u64)) -> Vec<(u64, u64)> {
        let mut changes = Vec::new();
        self.visit(peer, |_, at_ns, entry| {
            if let Entry::Capacity { bps, .. } = entry {
                if at_ns < to_ns {
                    change(&mut changes, at_ns.saturating_sub(from_ns), bps);
                }
            }
        });
        begin_at_once(&mut changes);
        changes
    }

    /// As [`Recording::capacity`], of the paths with these names: a list per path. One is empty where the recording does not say
    /// what the path was.
    #[must_use]
    pub fn path_states(
        &self,
        peer: &str,
        paths: &[String],
        (from_ns, to_ns): (u64, u64),
    ) -> Vec<Vec<(u64, PathState)>> {
        let mut changes = vec![Vec::new(); paths.len()];
        let ways = self.ways(peer, paths);
        self.visit(peer, |section, at_ns, entry| {
            if let Entry::Path { path, state, .. } = entry {
                let way = ways[section].get(usize::from(path)).copied().flatten();
                if let (Some(way), true) = (way, at_ns < to_ns) {
                    change(&mut changes[way], at_ns.saturating_sub(from_ns), state);
                }
            }
        });
        changes.iter_mut().for_each(begin_at_once);
        changes
    }

    /// For each section whether it says what each of the paths to a peer was; those of version 1 name them only.
    #[must_use]
    pub fn knows_paths(&self, peer: &str) -> Vec<bool> {
        let mut stated = vec![0u32; self.sections.len()];
        self.visit(peer, |section, _, entry| {
            if let Entry::Path { path, .. } = entry {
                stated[section] |= 1 << path;
            }
        });
        let of = |(section, stated): (&Section, u32)| {
            let paths = paths_of(section.text_of(peer).unwrap_or_default()).len();
            (1..=MOST_PATHS).contains(&paths) && stated & ((1 << paths) - 1) == (1 << paths) - 1
        };
        self.sections.iter().zip(stated).map(of).collect()
    }

    /// The part of a recording about a peer from one time to another, as a recording of one section that begins then.
    ///
    /// # Errors
    /// When there is no such section.
    pub fn cut(
        &self,
        peer: &str,
        section: usize,
        (from_ns, to_ns): (u64, u64),
    ) -> Result<Vec<u8>, String> {
        let settings = self.sections.get(section).ok_or("has no such section")?;
        let classes = classes_of(&settings.settings);
        let places = self.places(&classes);
        let text = settings.text_of(peer).unwrap_or_default();
        let ways = self.ways(peer, &paths_of(text));
        let from_ns = from_ns / BIN_NS * BIN_NS;
        let began_ns = from_ns.saturating_sub(settings.offset_ns);
        let mut cut = frames::settings(
            settings.version,
            settings.origin_unix_ns.saturating_add(began_ns),
            flag_of(&settings.settings, "packets"),
            &configured(&settings.settings),
        );
        cut.extend(frames::peer(0, text));
        let with_paths = settings.version == Version::Two;
        let mut block: Option<Writer> = None;
        self.visit(peer, |of, at_ns, entry| {
            let Some(after_ns) = at_ns.checked_sub(from_ns).filter(|_| at_ns < to_ns) else {
                return;
            };
            let bin = after_ns / BIN_NS;
            // Blocks that a stranger wrote may be in any order; of changes a late one is in order.
            let is_change = matches!(entry, Entry::Capacity { .. } | Entry::Path { .. });
            let full = |block: &Writer| {
                let goes_back = !is_change && bin < block.bin();
                goes_back || block.bytes() >= BLOCK_BYTES || bin >= block.first_bin() + BLOCK_BINS
            };
            if block.as_ref().is_some_and(full) {
                if let Some(block) = block.take() {
                    cut.extend(frames::frame(&block.into_body()));
                }
            }
            let block = block.get_or_insert_with(|| Writer::new(bin));
            let place = |class: u32| places[of].get(class as usize).copied().flatten();
            let way = |path: u8| {
                let way = ways[of].get(usize::from(path)).copied().flatten()?;
                u8::try_from(way).ok().filter(|_| with_paths)
            };
            match entry {
                Entry::Cell { class, cell, .. } => {
                    if let Some(class) = place(class) {
                        block.cell(bin, 0, class as u32, &cell);
                    }
                }
                Entry::Capacity { bps, .. } => block.capacity(after_ns, 0, bps),
                Entry::Packet {
                    class, bytes, tcp, ..
                } => {
                    if let Some(class) = place(class) {
                        block.packet(after_ns, 0, class as u32, (bytes, tcp));
                    }
                }
                Entry::Path { path, state, .. } => {
                    if let Some(path) = way(path) {
                        block.path(after_ns, 0, path, state);
                    }
                }
                Entry::Carried {
                    class,
                    path,
                    pkts,
                    bytes,
                    ..
                } => {
                    if let Some((class, path)) = place(class).zip(way(path)) {
                        block.carried(bin, (0, class as u32, path), (pkts, bytes));
                    }
                }
            }
        });
        if let Some(block) = block {
            cut.extend(frames::frame(&block.into_body()));
        }
        Ok(cut)
    }
}

impl Bin {
    fn count(&mut self, entry: &Entry) {
        match entry {
            Entry::Cell { cell, .. } => self.add(cell),
            Entry::Packet { bytes, tcp, .. } => {
                self.arrived_pkts += 1;
                self.arrived_bytes += u64::from(*bytes);
                self.tcp_pkts += u64::from(*tcp);
            }
            Entry::Capacity { .. } | Entry::Path { .. } | Entry::Carried { .. } => {}
        }
    }
}

/// Names with their places in a list, the first one of a name that is there twice.
fn listed(names: &[String]) -> BTreeMap<&str, usize> {
    let places = names.iter().enumerate().rev();
    places.map(|(at, name)| (name.as_str(), at)).collect()
}

/// The places of names in a list of them.
fn places(names: &[String], listed: &BTreeMap<&str, usize>) -> Vec<Option<usize>> {
    let place = |name: &String| listed.get(name.as_str()).copied();
    names.iter().map(place).collect()
}

/// Adds what holds from a time on, ns, to changes before it.
fn change<T: PartialEq>(changes: &mut Changes<T>, after_ns: u64, now: T) {
    // One that is reported late may be before another.
    while changes
        .last()
        .is_some_and(|(before_ns, _)| *before_ns > after_ns)
    {
        changes.pop();
    }
    match changes.last_mut() {
        Some((before_ns, before)) if *before_ns == after_ns => *before = now,
        Some((_, before)) if *before == now => {}
        _ => changes.push((after_ns, now)),
    }
}

/// Before the first packet it is not known what holds; it does not matter either.
fn begin_at_once<T>(changes: &mut Changes<T>) {
    if let Some((first_ns, _)) = changes.first_mut() {
        *first_ns = 0;
    }
}

impl Section {
    fn new(version: Version, settings: &str) -> Section {
        Section {
            version,
            settings: settings.to_string(),
            origin_unix_ns: number_of(settings, "origin_unix_ns"),
            offset_ns: 0,
            from_ns: u64::MAX,
            to_ns: 0,
            peers: BTreeMap::new(),
            gaps: Vec::new(),
        }
    }

    /// The text of the peer with this name.
    fn text_of(&self, peer: &str) -> Option<&str> {
        let mut texts = self.peers.values();
        let found = texts.find(|text| name_of(text).as_deref() == Some(peer));
        found.map(String::as_str)
    }

    fn extend(&mut self, counts: Counts<'_>) {
        self.from_ns = self.from_ns.min(counts.first_bin() * BIN_NS);
        for entry in counts.entries() {
            let bin = entry.at_ns() / BIN_NS;
            self.to_ns = self.to_ns.max((bin + 1) * BIN_NS);
        }
    }

    fn miss(&mut self, first: u64, bins: u64) {
        let from_ns = first.saturating_mul(BIN_NS);
        let to_ns = from_ns.saturating_add(bins.saturating_mul(BIN_NS));
        // Times of a damaged block could be beyond all clocks.
        if to_ns < u64::MAX / 4 {
            self.gaps.push((from_ns, to_ns));
        }
    }
}

/// A time as it stands in names of files: `20260131T120000Z`.
#[must_use]
pub fn stamp(unix_ns: u64) -> String {
    let seconds = i64::try_from(unix_ns / 1_000_000_000).unwrap_or(0);
    let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    time.to_string().replace(['-', ':'], "")
}
