// SPDX-License-Identifier: BSD-3-Clause
//! Writes recordings to a folder, in a thread of its own, since packets must not wait for a disk.
//!
//! Files are made one after another; before a file could take the folder beyond its bound, the oldest are removed. What the
//! disk takes too slowly or not at all is left out and counted, and the next block says which bins are missing. Each file says
//! by itself what was in force when it began: settings, peers and capacities. So it can be read without those before it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, TrySendError};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use linkweir_config::recording::{self, PathState};
use nix::libc;
use nix::sys::resource::{getrlimit, Resource};
use nix::unistd::{chown, geteuid};

use crate::linux::journal::{tell, Event};
use crate::linux::privileges;

/// How file names end.
const ENDING: &str = ".lwrec";
/// Blocks that may wait for the disk.
const WAITING: usize = 64;
/// Largest file, bytes.
const FILE_BYTES: u64 = 64_000_000;
/// A folder holds so many files at least before the oldest is removed.
const FILES: u64 = 8;
/// How long after an error the disk is tried again.
const REST: Duration = Duration::from_secs(10);

/// How long the gateway's end waits for the disk.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a recorder writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingFolder {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// The device, with which file names begin.
    pub(crate) device: String,
    /// Most bytes of all its files.
    pub(crate) size_bytes: u64,
}

/// A block of what happened.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    /// The bins that it covers.
    pub(crate) bins: Range<u64>,
    /// What changed in it, as it is at its end.
    pub(crate) known: Known,
}

/// What is known of links and paths: by the number of the peer, and of one of several paths to it its number. Of a link only the
/// capacity is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Known(BTreeMap<(u32, Option<u8>), PathState>);

impl Known {
    /// Capacities by the number of the peer, bit/s, and paths by the numbers of the peer and the path; the last of each counts.
    pub(crate) fn new(
        capacities: impl IntoIterator<Item = (u32, u64)>,
        paths: impl IntoIterator<Item = ((u32, u8), PathState)>,
    ) -> Known {
        let link = |(peer, bps)| ((peer, None), PathState { bps, delay_ns: 0 });
        let path = |((peer, path), state)| ((peer, Some(path)), state);
        let links = capacities.into_iter().map(link);
        Known(links.chain(paths.into_iter().map(path)).collect())
    }

    /// Takes over what is known later.
    fn extend(&mut self, later: Known) {
        self.0.extend(later.0);
    }

    /// The block that states it at the beginning of a bin; nothing if nothing is known.
    fn stated(&self, bin: u64) -> Vec<u8> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let link = |((peer, path), state): (&(u32, Option<u8>), &PathState)| {
            path.is_none().then_some((*peer, state.bps))
        };
        let path = |((peer, path), state): (&(u32, Option<u8>), &PathState)| {
            path.map(|path| ((*peer, path), *state))
        };
        recording::capacities(
            bin,
            self.0.iter().filter_map(link),
            self.0.iter().filter_map(path),
        )
    }
}

/// Blocks in a row that were left out.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    /// The bins from the first to the last; empty if there are none.
    bins: Range<u64>,
    /// What changed in them.
    known: Known,
}

impl Missing {
    /// Adds bins that follow, not necessarily at once.
    fn add(&mut self, bins: Range<u64>, known: Known) {
        if self.bins.is_empty() {
            self.bins = bins;
        } else {
            self.bins.end = self.bins.end.max(bins.end);
        }
        self.known.extend(known);
    }
}

/// Something to write.
#[derive(Debug)]
pub(crate) enum Job {
    /// The beginning of a section, and the time in the names of its files.
    Section(Vec<u8>, String),
    /// A block that every later file of the section needs, too.
    Peer(Vec<u8>),
    /// What happened, and what is missing before it.
    Block(Missing, Block),
}

/// How writing goes.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// Bytes written since the start.
    pub(crate) bytes: AtomicU64,
    /// Blocks that were left out.
    pub(crate) lost_blocks: AtomicU64,
    /// Files that another program changed while they were written.
    pub(crate) changed_files: AtomicU64,
    /// Whether the last attempt to write failed.
    pub(crate) fails: AtomicBool,
}

/// The thread that writes.
#[derive(Debug)]
pub(crate) struct Recordings {
    pub(crate) place: RecordingFolder,
    pub(crate) status: Arc<Status>,
    /// Beginnings and peers for which there was no room; none of them may be lost.
    first: VecDeque<Job>,
    /// Blocks for which there was no room.
    missing: Missing,
    /// None only while it ends.
    jobs: Option<mpsc::SyncSender<Job>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Makes the folder, if it is missing, for the user that the gateway becomes. Whether that user can write there is seen later.
///
/// # Errors
/// When it cannot be made: a sentence with the folder, the reason and the cure.
pub(crate) fn make_folder(folder: &Path, user: Option<&str>) -> Result<(), String> {
    if folder.is_dir() {
        return Ok(());
    }
    let made = DirBuilder::new().mode(0o700).create(folder).and_then(|()| {
        if geteuid().is_root() {
            let owned = privileges::find(user).and_then(|user| {
                chown(folder, Some(user.uid), Some(user.gid)).map_err(io::Error::from)
            });
            if owned.is_err() {
                let _ = fs::remove_dir(folder);
            }
            owned?;
        }
        Ok(())
    });
    made.map_err(|error| {
        let user = user.unwrap_or(privileges::NOBODY);
        let folder = folder.display();
        format!("cannot make {folder} for recordings: {error}; run `install -d -o {user} -m 0700 {folder}`")
    })
}

impl Recordings {
    /// Writes to a place.
    pub(crate) fn new(place: RecordingFolder) -> Recordings {
        let status = Arc::new(Status::default());
        let (jobs, given) = mpsc::sync_channel(WAITING);
        let mut files = Files::new(place.clone(), status.clone());
        let thread = thread::spawn(move || files.take_all(&given));
        Recordings {
            place,
            status,
            first: VecDeque::new(),
            missing: Missing::default(),
            jobs: Some(jobs),
            thread: Some(thread),
        }
    }

    /// Begins a section soon: what its files begin with, and the time in their names.
    pub(crate) fn begin(&mut self, head: Vec<u8>, time: String) {
        self.missing = Missing::default();
        self.first.push_back(Job::Section(head, time));
        self.send_first();
    }

    /// Describes a peer soon, to every file of the section from now on.
    pub(crate) fn describe(&mut self, peer: Vec<u8>) {
        self.first.push_back(Job::Peer(peer));
        self.send_first();
    }

    /// Writes a block soon. False: there was no room for it, so it is left out; the next one says so.
    pub(crate) fn write(&mut self, block: Block) -> bool {
        self.send_first();
        let job = Job::Block(std::mem::take(&mut self.missing), block);
        let Err(job) = self.send(job) else {
            return true;
        };
        if let Job::Block(missing, block) = job {
            self.missing = missing;
            self.missing.add(block.bins, block.known);
        }
        self.status.lost_blocks.fetch_add(1, Ordering::Relaxed);
        false
    }

    fn send_first(&mut self) {
        while let Some(job) = self.first.pop_front() {
            let jobs = self.jobs.as_ref();
            let sent = jobs.map(|jobs| jobs.try_send(job));
            if let Some(Err(TrySendError::Full(job) | TrySendError::Disconnected(job))) = sent {
                self.first.push_front(job);
                return;
            }
        }
    }

    /// Sends a job, unless there is no room or one that must not be lost waits.
    fn send(&self, job: Job) -> Result<(), Job> {
        match &self.jobs {
            Some(jobs) if self.first.is_empty() => jobs.try_send(job).map_err(|error| {
                let (TrySendError::Full(job) | TrySendError::Disconnected(job)) = error;
                job
            }),
            _ => Err(job),
        }
    }

    /// Ends without waiting for the disk.
    pub(crate) fn leave(mut self) {
        self.jobs = None;
        self.thread = None;
    }
}

impl Drop for Recordings {
    /// Waits until all is written, but not without end for a disk that does not answer.
    fn drop(&mut self) {
        self.jobs = None;
        let begun = Instant::now();
        while let Some(thread) = &self.thread {
            if thread.is_finished() || begun.elapsed() > PATIENCE {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A file that is being written.
struct Open {
    name: String,
    file: File,
    /// Its length, bytes.
    written: u64,
}

impl Open {
    /// What another program did to the file, if it did something.
    fn change(&self, folder: &Path) -> Option<&'static str> {
        let found = fs::symlink_metadata(folder.join(&self.name));
        let (Ok(found), Ok(own)) = (found, self.file.metadata()) else {
            return Some("was removed or moved");
        };
        if (found.dev(), found.ino()) != (own.dev(), own.ino()) {
            return Some("was replaced");
        }
        (own.len() != self.written).then_some("was truncated or written to")
    }

    /// Appends bytes; a part of them is taken back, so that later blocks can be read.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            let _ = self.file.set_len(self.written);
            return Err(error);
        }
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// The files, as the thread has them.
struct Files {
    place: RecordingFolder,
    status: Arc<Status>,
    /// What each file of the section begins with.
    head: Vec<u8>,
    /// The time in the names of files, and the number of the last one.
    time: String,
    number: u64,
    file: Option<Open>,
    /// What is known at the end of the last block, and the bin after it.
    known: Known,
    next_bin: u64,
    /// The bins that are missing since the last block.
    missing: Range<u64>,
    rest_until: Option<Instant>,
    /// Names of the files made here that are still there, the oldest first.
    made: Vec<String>,
}

impl Files {
    fn new(place: RecordingFolder, status: Arc<Status>) -> Files {
        Files {
            place,
            status,
            head: Vec::new(),
            time: String::new(),
            number: 0,
            file: None,
            known: Known::default(),
            next_bin: 0,
            missing: 0..0,
            rest_until: None,
            made: Vec::new(),
        }
    }

    /// Does all jobs. A disk that failed is tried again also while there are none.
    fn take_all(&mut self, given: &mpsc::Receiver<Job>) {
        loop {
            let job = match self.rest_until {
                None => given.recv().map_err(RecvTimeoutError::from),
                Some(until) => given.recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            match job {
                Ok(job) => self.take(job),
                Err(RecvTimeoutError::Timeout) => drop(self.try_write(None)),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Section(head, time) => {
                self.head = head;
                self.time = time;
                self.file = None;
                self.known = Known::default();
                self.next_bin = 0;
                self.missing = 0..0;
            }
            Job::Peer(peer) => {
                // Where the file is not begun, or cannot be written, the next one begins with it.
                self.head.extend_from_slice(&peer);
                if self.file.is_some() {
                    self.attempt(|files| files.append(&peer));
                }
            }
            Job::Block(missing, block) => {
                self.miss(missing);
                if !self.try_write(Some(&block)) {
                    self.status.lost_blocks.fetch_add(1, Ordering::Relaxed);
                    self.miss(Missing {
                        bins: block.bins,
                        known: block.known,
                    });
                    return;
                }
                self.known.extend(block.known);
                self.next_bin = block.bins.end;
            }
        }
    }

    /// Blocks were left out.
    fn miss(&mut self, Missing { bins, known }: Missing) {
        if bins.is_empty() {
            return;
        }
        self.next_bin = bins.end;
        self.known.extend(known);
        if self.missing.is_empty() {
            self.missing = bins;
        } else {
            self.missing.end = bins.end;
        }
    }

    /// Writes a block to the file or to the next one, or only begins that; false: it failed, which was logged.
    fn try_write(&mut self, block: Option<&Block>) -> bool {
        let written = self.attempt(|files| files.write(block));
        if written {
            self.missing = 0..0;
        }
        written
    }

    /// Tries to write, unless the disk rests; false: it failed, which was logged.
    fn attempt(&mut self, write: impl FnOnce(&mut Files) -> io::Result<()>) -> bool {
        if self.rest_until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        let written = write(self);
        let folder = self.place.folder.display();
        match &written {
            Ok(()) => {
                if self.rest_until.take().is_some() {
                    let what = format!("recordings are written to {folder} again");
                    tell(Event::RecordResumed, "", &what);
                }
            }
            Err(error) => {
                let cure = match error.raw_os_error() {
                    Some(libc::EFBIG) => {
                        "raise the limit of file sizes, such as LimitFSIZE of a service"
                    }
                    _ => "make room, lower record.size or let the gateway's user write there",
                };
                let what = format!(
                    "cannot write recordings to {folder}: {error}; what happens is not recorded, and it is tried again every {} s; \
                     {cure}",
                    REST.as_secs()
                );
                tell(Event::RecordFailed, "", &what);
                self.file = None;
                self.rest_until = Some(Instant::now() + REST);
            }
        }
        let fails = written.is_err();
        self.status.fails.store(fails, Ordering::Relaxed);
        !fails
    }

    fn write(&mut self, block: Option<&Block>) -> io::Result<()> {
        self.leave_changed();
        let bin = block.map_or(self.next_bin, |block| block.bins.start);
        let Range { start, end } = self.missing;
        let misses = start < end;
        let mut content = Vec::new();
        if misses {
            content = recording::gap(start, end - start);
            // They may have changed in what was left out.
            content.extend(self.known.stated(bin));
        }
        content.extend_from_slice(block.map_or(&[], |block| &block.bytes));
        let most_bytes = self.most_bytes();
        let full = |open: &Open| open.written + content.len() as u64 > most_bytes;
        if self.file.as_ref().is_some_and(full) {
            self.file = None;
        }
        if self.file.is_none() {
            if !misses {
                content = [self.known.stated(bin), content].concat();
            }
            // What many peers make of a file's beginning or of a block may be longer than a file is meant to be.
            let least_bytes = (self.head.len() + content.len()) as u64;
            self.begin(most_bytes.max(least_bytes), &content)?;
        } else {
            self.append(&content)?;
        }
        let bytes = content.len() as u64;
        self.status.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.file {
            Some(open) => open.append(bytes),
            None => Err(io::Error::other("there is no file")),
        }
    }

    /// Most bytes of a file: also the system may limit it.
    fn most_bytes(&self) -> u64 {
        let allowed = getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(soft, _)| soft);
        (self.place.size_bytes / FILES).min(FILE_BYTES).min(allowed)
    }

    /// Leaves the file if another program has changed it, for the next one.
    fn leave_changed(&mut self) {
        let folder = &self.place.folder;
        let change = self.file.as_ref().and_then(|open| open.change(folder));
        let (Some(what), Some(open)) = (change, self.file.take_if(|_| change.is_some())) else {
            return;
        };
        self.made.retain(|made| *made != open.name);
        self.status.changed_files.fetch_add(1, Ordering::Relaxed);
        let message = format!(
            "the recording {} {what} by another program; the next file is begun",
            folder.join(&open.name).display()
        );
        tell(Event::RecordChanged, "", &message);
    }

    /// Begins the next file, with this as its first content.
    fn begin(&mut self, most_bytes: u64, content: &[u8]) -> io::Result<()> {
        self.make_room(most_bytes)?;
        let RecordingFolder { folder, device, .. } = &self.place;
        let (name, file) = loop {
            self.number += 1;
            let name = format!("{device}-{}-{:06}{ENDING}", self.time, self.number);
            let opened = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(folder.join(&name));
            match opened {
                // Of a gateway that began in the same second.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => break (name, opened?),
            }
        };
        let mut open = Open {
            name,
            file,
            written: 0,
        };
        if let Err(error) = open.append(&[&self.head, content].concat()) {
            // Otherwise a full disk would be given a file without content at each attempt.
            let _ = fs::remove_file(folder.join(&open.name));
            return Err(error);
        }
        self.made.push(open.name.clone());
        self.file = Some(open);
        Ok(())
    }

    /// Removes the oldest files, until one of this length has room. Those made here are the newest, whatever their names
    /// say: the system's clock may have been set back.
    fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.place.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Another program may remove it at this moment.
            if let (true, Ok(file)) = (is_own(&name, &self.place.device), entry.metadata()) {
                files.push((name, file.len()));
            }
        }
        let age = |name: &String| self.made.iter().position(|made| made == name);
        files.sort_by_cached_key(|(name, _)| (age(name), name.clone()));
        let mut held_bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        for (name, length) in files {
            if held_bytes + bytes <= self.place.size_bytes {
                break;
            }
            match fs::remove_file(self.place.folder.join(&name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            self.made.retain(|made| *made != name);
            held_bytes -= length;
        }
        Ok(())
    }
}

/// Whether a file was made here: device, time, number.
fn is_own(name: &str, device: &str) -> bool {
    let rest = name
        .strip_prefix(device)
        .and_then(|rest| rest.strip_prefix('-'));
    let rest = rest.and_then(|rest| rest.strip_suffix(ENDING));
    let parts = rest.and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(time, number)| {
        // Of bytes, because the names of others' files may have any characters.
        let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
        let (time, number) = (time.as_bytes(), number.as_bytes());
        time.len() == 16 && digits(&time[..8]) && number.len() >= 6 && digits(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_config::recording::{Cell, Recording, Version, Writer, BIN_NS};

    const CONFIGURED: &str = "[[class]]\nname = \"rest\"\n";

    fn folder(name: &str) -> PathBuf {
        let name = format!("linkweir-recordings-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        folder
    }

    fn place(folder: &Path, size_bytes: u64) -> RecordingFolder {
        RecordingFolder {
            folder: folder.to_path_buf(),
            device: "lw0".into(),
            size_bytes,
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    const TIME: &str = "20260131T120000Z";

    fn section() -> Job {
        Job::Section(b"HEAD".to_vec(), TIME.into())
    }

    fn block(bytes: &[u8], first_bin: u64, bins: u64) -> Block {
        Block {
            bytes: bytes.to_vec(),
            bins: first_bin..first_bin + bins,
            known: Known::default(),
        }
    }

    fn job(bytes: &[u8], first_bin: u64, bins: u64) -> Job {
        Job::Block(Missing::default(), block(bytes, first_bin, bins))
    }

    fn gap(first: u64, bins: u64) -> Vec<u8> {
        recording::gap(first, bins)
    }

    /// A section as a gateway writes it, with a peer.
    fn real_section() -> [Job; 2] {
        let head = recording::settings(Version::One, 1_000_000_000, false, CONFIGURED);
        let peer = recording::peer(7, "name = \"ship\"");
        [Job::Section(head, TIME.into()), Job::Peer(peer)]
    }

    /// A second in which packets were sent, and the capacity changed to this.
    fn second(number: u64, changes_to_bps: Option<u64>) -> Job {
        let bin = 100 * number;
        let mut cell = Cell::default();
        cell.arrive(1, 1000);
        (cell.sent_pkts, cell.sent_bytes) = (1, 1000);
        let mut counts = Writer::new(bin);
        counts.cell(bin, 7, 0, &cell);
        if let Some(bps) = changes_to_bps {
            counts.capacity((bin + 50) * BIN_NS, 7, bps);
        }
        let changes = changes_to_bps.map(|bps| (7, bps));
        let block = Block {
            bytes: recording::frame(&counts.into_body()),
            bins: bin..bin + 100,
            known: Known::new(changes, []),
        };
        Job::Block(Missing::default(), block)
    }

    /// What a file says by itself of the capacity: when it changed, in bins since the beginning of its section, and to what.
    fn capacity_in(file: &Path) -> Vec<(u64, u64)> {
        let recording = Recording::new(vec![fs::read(file).unwrap()]).unwrap();
        assert_eq!(recording.damages, []);
        let span_ns = recording.span_ns();
        let changes = recording.capacity("ship", span_ns).into_iter();
        changes
            .map(|(ns, bps)| ((span_ns.0 + ns) / BIN_NS, bps))
            .collect()
    }

    fn again(files: &mut Files) {
        files.rest_until = Some(Instant::now());
    }

    #[test]
    fn the_oldest_files_make_room_and_each_begins_as_the_first() {
        let folder = folder("ring");
        let others = [
            "lw0-b-20200101T000000Z-000001.lwrec",
            "lw0-€€€€€a-000001.lwrec",
            "notes.txt",
        ];
        for other in others {
            fs::write(folder.join(other), [0; 5000]).unwrap();
        }
        let mut recordings = Recordings::new(place(&folder, 800));
        recordings.begin(b"HEAD".to_vec(), TIME.into());
        recordings.describe(b"PEER".to_vec());
        let status = recordings.status.clone();
        for at in 0..50 {
            recordings.write(block(&[b'a' + at % 26; 40], at.into(), 1));
            let written = || status.bytes.load(Ordering::Relaxed);
            while written() < 40 * (u64::from(at) + 1) {
                thread::sleep(Duration::from_millis(1));
            }
        }
        drop(recordings);
        let own: Vec<String> = names(&folder)
            .into_iter()
            .filter(|name| is_own(name, "lw0"))
            .collect();
        assert_eq!(names(&folder).len(), own.len() + 3, "others are left alone");
        // 100 bytes hold two blocks of 40, and 800 bytes hold eight files.
        assert_eq!(own.len(), 8);
        assert_eq!(own[7], "lw0-20260131T120000Z-000025.lwrec");
        for name in &own {
            let bytes = fs::read(folder.join(name)).unwrap();
            assert!(bytes.starts_with(b"HEADPEER"), "{name}");
            assert_eq!(bytes.len(), 88);
        }
        assert_eq!(status.bytes.load(Ordering::Relaxed), 50 * 40);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn each_file_states_the_capacity_at_its_begin() {
        let folder = folder("alone");
        let mut files = Files::new(place(&folder, 8 * 600), Arc::default());
        real_section().into_iter().for_each(|job| files.take(job));
        // A rate that changes twice and then stays, over so many files that the oldest are removed.
        for number in 0..200 {
            let change = match number {
                0 => Some(20_000_000),
                5 => Some(12_000_000),
                _ => None,
            };
            files.take(second(number, change));
        }
        let found = names(&folder);
        assert!(files.number > found.len() as u64, "some were removed");
        for name in &found {
            let stated = capacity_in(&folder.join(name));
            assert!(
                matches!(stated[..], [(_, 12_000_000)]),
                "{name}: {stated:?}"
            );
        }
        // All that are left say the same as one recording.
        let contents = found
            .iter()
            .map(|name| fs::read(folder.join(name)).unwrap());
        let recording = Recording::new(contents.collect()).unwrap();
        let span_ns = recording.span_ns();
        assert_eq!(recording.capacity("ship", span_ns), [(0, 12_000_000)]);
        let sums = recording.sums("ship", &["rest".into()], span_ns, span_ns.1 - span_ns.0);
        assert_eq!(
            sums[0][0].sent_pkts,
            (span_ns.1 - span_ns.0).div_ceil(100 * BIN_NS)
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_change_in_what_was_left_out_is_stated_behind_it() {
        let folder = folder("changed-in-gap");
        let mut files = Files::new(place(&folder, 1_000_000), Arc::default());
        real_section().into_iter().for_each(|job| files.take(job));
        files.take(second(0, Some(20_000_000)));
        // Once because the thread had no room for it, in the same file, and once because the disk failed.
        let Job::Block(mut missing, block) = second(1, Some(9_000_000)) else {
            unreachable!();
        };
        missing.add(block.bins, block.known);
        let Job::Block(_, next) = second(2, None) else {
            unreachable!();
        };
        files.take(Job::Block(missing, next));
        let name = names(&folder)[0].clone();
        let expected = [(50, 20_000_000), (200, 9_000_000)];
        // Before the first change the capacity is not known, so that one begins the recording.
        let stated = capacity_in(&folder.join(&name));
        assert_eq!((stated[0].1, stated[1]), (expected[0].1, expected[1]));

        fs::rename(&folder, folder.with_extension("away")).unwrap();
        files.take(second(3, Some(5_000_000)));
        assert!(files.status.fails.load(Ordering::Relaxed));
        fs::create_dir(&folder).unwrap();
        again(&mut files);
        files.take(second(4, None));
        assert_eq!(
            capacity_in(&folder.join(&names(&folder)[0])),
            [(400, 5_000_000)]
        );
        fs::remove_dir_all(folder.with_extension("away")).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_another_program_changes_is_left_for_the_next() {
        let folder = folder("others");
        let mut files = Files::new(place(&folder, 1_000_000), Arc::default());
        real_section().into_iter().for_each(|job| files.take(job));
        files.take(second(0, Some(20_000_000)));
        let current = |files: &Files| folder.join(&files.file.as_ref().unwrap().name);
        let changes: [fn(&Path); 5] = [
            |file| fs::remove_file(file).unwrap(),
            |file| fs::rename(file, file.with_extension("moved")).unwrap(),
            |file| {
                let content = fs::read(file).unwrap();
                fs::remove_file(file).unwrap();
                fs::write(file, content).unwrap();
            },
            |file| File::create(file).map(drop).unwrap(),
            |file| {
                let mut file = OpenOptions::new().append(true).open(file).unwrap();
                file.write_all(b"appended").unwrap();
            },
        ];
        for (number, change) in (1..).zip(changes) {
            let before = current(&files);
            change(&before);
            let found = fs::read(&before).ok();
            files.take(second(number, None));
            assert_ne!(current(&files), before, "{number}");
            assert_eq!(fs::read(&before).ok(), found, "{number}: it is left alone");
            assert_eq!(files.status.changed_files.load(Ordering::Relaxed), number);
            let stated = capacity_in(&current(&files));
            assert_eq!(stated, [(100 * number, 20_000_000)], "{number}");
        }
        assert_eq!(files.status.lost_blocks.load(Ordering::Relaxed), 0);
        assert!(!files.status.fails.load(Ordering::Relaxed));
        // A file that nobody touched is written on.
        let before = current(&files);
        files.take(second(6, None));
        assert_eq!(current(&files), before);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn blocks_longer_than_a_file_keep_to_the_bound_of_the_folder() {
        let folder = folder("long-blocks");
        let mut files = Files::new(place(&folder, 800), Arc::default());
        files.take(section());
        for at in 0..20 {
            files.take(job(&[b'a'; 220], at, 1));
            let entries = fs::read_dir(&folder).unwrap();
            let lengths = entries.map(|entry| entry.unwrap().metadata().unwrap().len());
            let held_bytes: u64 = lengths.sum();
            assert!(held_bytes <= 800, "{held_bytes} bytes after {at}");
        }
        assert_eq!(names(&folder).len(), 3);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_named_later() {
        let folder = folder("gone");
        let place = place(&folder.join("later"), 1_000_000);
        let status = Arc::new(Status::default());
        let mut files = Files::new(place, status.clone());
        files.take(section());
        files.take(job(b"one", 0, 100));
        files.take(Job::Peer(b"PEER".to_vec()));
        files.take(job(b"two", 100, 50));
        assert_eq!(status.lost_blocks.load(Ordering::Relaxed), 2);
        assert!(status.fails.load(Ordering::Relaxed));
        fs::create_dir(folder.join("later")).unwrap();
        files.take(job(b"three", 150, 50));
        assert_eq!(
            status.lost_blocks.load(Ordering::Relaxed),
            3,
            "it rests first"
        );
        again(&mut files);
        files.take(job(b"four", 200, 50));
        assert!(!status.fails.load(Ordering::Relaxed));
        let name = &names(&folder.join("later"))[0];
        let bytes = fs::read(folder.join("later").join(name)).unwrap();
        assert_eq!(bytes, [b"HEADPEER", &gap(0, 200)[..], b"four"].concat());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_disk_that_has_room_again_is_found_while_nothing_is_recorded() {
        let folder = folder("idle");
        let place = place(&folder.join("later"), 1_000_000);
        let (jobs, given) = mpsc::sync_channel(9);
        let status = Arc::new(Status::default());
        let mut files = Files::new(place, status.clone());
        let [section, peer] = real_section();
        for job in [section, peer, second(0, Some(20_000_000))] {
            files.take(job);
        }
        assert!(status.fails.load(Ordering::Relaxed));
        fs::create_dir(folder.join("later")).unwrap();
        again(&mut files);
        let thread = thread::spawn(move || files.take_all(&given));
        let begun = Instant::now();
        while status.fails.load(Ordering::Relaxed) {
            assert!(begun.elapsed() < Duration::from_secs(20), "it still fails");
            thread::sleep(Duration::from_millis(1));
        }
        // The next packets come an hour later.
        jobs.send(second(3600, None)).unwrap();
        drop(jobs);
        thread.join().unwrap();
        let name = &names(&folder.join("later"))[0];
        let file = folder.join("later").join(name);
        assert_eq!(capacity_in(&file), [(100, 20_000_000)]);
        let recording = Recording::new(vec![fs::read(file).unwrap()]).unwrap();
        assert_eq!(recording.sections[0].gaps, [(0, 100 * BIN_NS)]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_full_disk_costs_blocks_and_no_more() {
        // Everything written to this device fails, as on a full disk.
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut open = Open {
            name: String::new(),
            file,
            written: 7,
        };
        let error = open.append(b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(open.written, 7);
    }

    #[test]
    fn a_disk_that_does_not_answer_delays_nothing() {
        let (jobs, given) = mpsc::sync_channel(1);
        let mut recordings = Recordings {
            place: place(Path::new("/nowhere"), 1),
            status: Arc::default(),
            first: VecDeque::new(),
            missing: Missing::default(),
            jobs: Some(jobs),
            thread: None,
        };
        recordings.begin(b"HEAD".to_vec(), TIME.into());
        recordings.describe(vec![1]);
        assert!(!recordings.write(block(&[2], 0, 1)));
        assert_eq!(recordings.first.len(), 1, "it is kept");
        assert_eq!(recordings.status.lost_blocks.load(Ordering::Relaxed), 1);
        // The next block names what is missing, also to the thread, which counts from there if it cannot write it.
        assert!(given.try_recv().is_ok());
        let changes = Block {
            known: Known::new([(7, 5000)], []),
            ..block(b"w", 1, 4)
        };
        assert!(!recordings.write(changes), "the peer took its place");
        assert!(given.try_recv().is_ok());
        assert!(recordings.write(block(b"x", 5, 1)));
        let Ok(Job::Block(missing, block)) = given.recv() else {
            panic!("no block was written");
        };
        assert_eq!((missing.bins, block.bins), (0..5, 5..6));
        assert_eq!(missing.known, Known::new([(7, 5000)], []));
    }

    #[test]
    fn files_of_a_clock_that_was_set_back_are_the_newest() {
        let folder = folder("clock");
        for number in 1..=8 {
            let name = format!("lw0-20260131T120000Z-{number:06}.lwrec");
            fs::write(folder.join(name), [0; 100]).unwrap();
        }
        let mut files = Files::new(place(&folder, 800), Arc::default());
        files.take(Job::Section(b"HEAD".to_vec(), "19700101T000003Z".into()));
        for at in 0..10 {
            files.take(job(&[7; 40], at, 1));
        }
        let found = names(&folder);
        let own = found.iter().filter(|name| name.contains("1970")).count();
        // Five of 84 bytes, and of the eight before the three newest.
        assert_eq!((own, found.len()), (5, 8), "{found:?}");
        assert!(found[5].ends_with("000006.lwrec"), "{found:?}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_start_in_the_same_second_takes_the_next_number() {
        let folder = folder("second");
        let name = "lw0-20260131T120000Z-000001.lwrec";
        fs::write(folder.join(name), b"before").unwrap();
        let mut files = Files::new(place(&folder, 1_000_000), Arc::default());
        files.take(section());
        files.take(job(b"one", 0, 100));
        assert_eq!(names(&folder).len(), 2);
        assert_eq!(fs::read(folder.join(name)).unwrap(), b"before");
        fs::remove_dir_all(folder).unwrap();
    }

    /// Writes to a folder in a process whose files may not be longer; returns the folder. In that process, which runs the
    /// test again: none.
    fn limited(test: &str, most_bytes: u64, write: impl FnOnce(Files)) -> Option<PathBuf> {
        const CHILD: &str = "LINKWEIR_TEST_OF_A_LIMIT";
        if let Some(folder) = std::env::var_os(CHILD) {
            crate::linux::signals::survive_writes().unwrap();
            write(Files::new(
                place(Path::new(&folder), 1_000_000),
                Arc::default(),
            ));
            return None;
        }
        let folder = folder(test);
        let done = std::process::Command::new("prlimit")
            .arg(format!("--fsize={most_bytes}"))
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &format!("linux::recording_files::tests::{test}")])
            .env(CHILD, &folder)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        Some(folder)
    }

    #[test]
    fn a_full_disk_gets_no_empty_files() {
        let folder = limited("a_full_disk_gets_no_empty_files", 0, |mut files| {
            files.take(section());
            files.take(job(b"one", 0, 100));
            assert!(files.status.fails.load(Ordering::Relaxed));
        });
        if let Some(folder) = folder {
            assert_eq!(names(&folder), [""; 0]);
            fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn a_block_for_which_there_is_no_room_leaves_no_file() {
        let folder = limited(
            "a_block_for_which_there_is_no_room_leaves_no_file",
            1000,
            |mut files| {
                real_section().into_iter().for_each(|job| files.take(job));
                for at in 0..3 {
                    files.take(job(&[7; 2000], at, 1));
                    again(&mut files);
                }
                assert_eq!(files.status.lost_blocks.load(Ordering::Relaxed), 3);
            },
        );
        if let Some(folder) = folder {
            assert_eq!(names(&folder), [""; 0]);
            fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn files_keep_to_the_limit_of_the_system() {
        let folder = limited(
            "files_keep_to_the_limit_of_the_system",
            1000,
            |mut files| {
                real_section().into_iter().for_each(|job| files.take(job));
                files.take(second(0, Some(20_000_000)));
                (1..100).for_each(|number| files.take(second(number, None)));
                assert_eq!(files.status.lost_blocks.load(Ordering::Relaxed), 0);
            },
        );
        let Some(folder) = folder else { return };
        let found = names(&folder);
        assert!(found.len() > 1, "{found:?}");
        for name in &found {
            let stated = capacity_in(&folder.join(name));
            assert!(
                matches!(stated[..], [(_, 20_000_000)]),
                "{name}: {stated:?}"
            );
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
