// SPDX-License-Identifier: BSD-3-Clause
//! Writes recordings to a folder, in a thread of its own, since packets must not wait for a disk.
//!
//! Files are made one after another; before a file could take the folder beyond its bound, the oldest are removed. What the
//! disk takes too slowly or not at all is left out and counted, and the next block says which bins are missing.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, TrySendError};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

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
pub(crate) struct Place {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// The device, with which file names begin.
    pub(crate) device: String,
    /// Most bytes of all its files.
    pub(crate) size_bytes: u64,
}

/// Something to write.
#[derive(Debug)]
pub(crate) enum Job {
    /// The beginning of a section, and the time in the names of its files.
    Section(Vec<u8>, String),
    /// A block that every later file of the section needs, too.
    Peer(Vec<u8>),
    /// A block, the first bin of which it says something and how many it covers.
    Block(Vec<u8>, u64, u64),
}

/// How writing goes.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// Bytes written since the start.
    pub(crate) bytes: AtomicU64,
    /// Blocks that were left out.
    pub(crate) lost_blocks: AtomicU64,
    /// Whether the last attempt to write failed.
    pub(crate) fails: AtomicBool,
}

/// Makes the block that says that so many bins from this one on are missing.
type Gap = fn(u64, u64) -> Vec<u8>;

/// The thread that writes.
#[derive(Debug)]
pub(crate) struct Recordings {
    pub(crate) place: Place,
    pub(crate) status: Arc<Status>,
    /// Beginnings and peers for which there was no room; none of them may be lost.
    first: VecDeque<Job>,
    /// Makes the block that says which bins are missing.
    gap: Gap,
    /// Bins of blocks for which there was no room: the first, and the one after the last.
    lost: Option<(u64, u64)>,
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
    pub(crate) fn new(place: Place, gap: Gap) -> Recordings {
        let status = Arc::new(Status::default());
        let (jobs, given) = mpsc::sync_channel(WAITING);
        let mut files = Files::new(place.clone(), status.clone(), gap);
        let thread = thread::spawn(move || {
            while let Ok(job) = given.recv() {
                files.take(job);
            }
        });
        Recordings {
            place,
            status,
            first: VecDeque::new(),
            gap,
            lost: None,
            jobs: Some(jobs),
            thread: Some(thread),
        }
    }

    /// Writes something soon. False: there was no room for a block, which is left out; the next one says so.
    pub(crate) fn write(&mut self, job: Job) -> bool {
        let Some(jobs) = &self.jobs else {
            return false;
        };
        let block = match job {
            Job::Block(block, first_bin, bins) => Some((block, first_bin, bins)),
            first => {
                if matches!(first, Job::Section(..)) {
                    self.lost = None;
                }
                self.first.push_back(first);
                None
            }
        };
        while let Some(job) = self.first.pop_front() {
            if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) =
                jobs.try_send(job)
            {
                self.first.push_front(job);
                break;
            }
        }
        let Some((block, first_bin, bins)) = block else {
            return true;
        };
        let missing = self.lost.map(|(first, end)| (self.gap)(first, end - first));
        let (first, _) = self.lost.unwrap_or((first_bin, first_bin));
        let end = first_bin + bins;
        let block = [missing.unwrap_or_default(), block].concat();
        // If the disk fails, what is missing begins where this block's gap does.
        let job = Job::Block(block, first, end - first);
        let sent = self.first.is_empty() && jobs.try_send(job).is_ok();
        if sent {
            self.lost = None;
        } else {
            self.lost = Some((first, end));
            self.status.lost_blocks.fetch_add(1, Ordering::Relaxed);
        }
        sent
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

/// The files, as the thread has them.
struct Files {
    place: Place,
    status: Arc<Status>,
    gap: Gap,
    /// What each file of the section begins with.
    head: Vec<u8>,
    /// The time in the names of files, and the number of the last one.
    time: String,
    number: u64,
    /// The file that is being written, and its length.
    file: Option<(File, u64)>,
    /// The bins that are missing since the last block: the first, and the one after the last.
    lost: Option<(u64, u64)>,
    rest_until: Option<Instant>,
    /// Names of the files made here that are still there, the oldest first.
    made: Vec<String>,
}

impl Files {
    fn new(place: Place, status: Arc<Status>, gap: Gap) -> Files {
        Files {
            place,
            status,
            gap,
            head: Vec::new(),
            time: String::new(),
            number: 0,
            file: None,
            lost: None,
            rest_until: None,
            made: Vec::new(),
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Section(head, time) => {
                self.head = head;
                self.time = time;
                self.file = None;
                self.lost = None;
            }
            Job::Peer(block) => {
                // Where the file is not begun, or cannot be written, the next one begins with it.
                self.head.extend_from_slice(&block);
                if self.file.is_some() {
                    self.try_write(&block);
                }
            }
            Job::Block(block, first_bin, bins) => {
                let missing = self.lost.map(|(first, end)| (self.gap)(first, end - first));
                let bytes = [missing.unwrap_or_default(), block].concat();
                if self.try_write(&bytes) {
                    self.lost = None;
                    return;
                }
                self.status.lost_blocks.fetch_add(1, Ordering::Relaxed);
                let (first, _) = self.lost.unwrap_or((first_bin, 0));
                self.lost = Some((first, first_bin + bins));
            }
        }
    }

    /// Writes to the file, or to the next one; false: it failed, which was logged.
    fn try_write(&mut self, bytes: &[u8]) -> bool {
        if self.rest_until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        match self.write(bytes) {
            Ok(()) => {
                if self.rest_until.take().is_some() {
                    let folder = self.place.folder.display();
                    tell(
                        Event::RecordResumed,
                        "",
                        &format!("recordings are written to {folder} again"),
                    );
                }
                self.status.fails.store(false, Ordering::Relaxed);
                true
            }
            Err(error) => {
                self.file = None;
                self.rest_until = Some(Instant::now() + REST);
                self.status.fails.store(true, Ordering::Relaxed);
                let folder = self.place.folder.display();
                let what = format!(
                    "cannot write recordings to {folder}: {error}; what happens is not recorded, and it is tried again every {} s; \
                     make room, lower record.size or let the gateway's user write there",
                    REST.as_secs()
                );
                tell(Event::RecordFailed, "", &what);
                false
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let most_bytes = (self.place.size_bytes / FILES).min(FILE_BYTES);
        let length = bytes.len() as u64;
        let full = |(_, written): &mut (File, u64)| *written + length > most_bytes;
        if self.file.as_mut().is_some_and(full) {
            self.file = None;
        }
        if self.file.is_none() {
            // What many peers make of a file's beginning or of a block may be longer than a file is meant to be.
            let least_bytes = self.head.len() as u64 + length;
            self.begin(most_bytes.max(least_bytes))?;
        }
        match &mut self.file {
            Some((file, written)) => append(file, written, bytes)?,
            None => return Err(io::Error::other("there is no file")),
        }
        self.status.bytes.fetch_add(length, Ordering::Relaxed);
        Ok(())
    }

    /// Begins the next file.
    fn begin(&mut self, most_bytes: u64) -> io::Result<()> {
        self.make_room(most_bytes)?;
        let Place { folder, device, .. } = &self.place;
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
        let (file, written) = self.file.insert((file, 0));
        if let Err(error) = append(file, written, &self.head) {
            // Otherwise a full disk would be given an empty file at each attempt.
            let _ = fs::remove_file(folder.join(&name));
            return Err(error);
        }
        self.made.push(name);
        Ok(())
    }

    /// Removes the oldest files, until one of this length has room. Those made here are the newest, whatever their names
    /// say: the system's clock may have been set back.
    fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.place.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_own(&name, &self.place.device) {
                files.push((name, entry.metadata()?.len()));
            }
        }
        let age = |name: &String| self.made.iter().position(|made| made == name);
        files.sort_by_cached_key(|(name, _)| (age(name), name.clone()));
        let mut held_bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        for (name, length) in files {
            if held_bytes + bytes <= self.place.size_bytes {
                break;
            }
            fs::remove_file(self.place.folder.join(&name))?;
            self.made.retain(|made| *made != name);
            held_bytes -= length;
        }
        Ok(())
    }
}

/// Appends bytes; a part of them is taken back, so that later blocks can be read.
fn append(file: &mut File, written: &mut u64, bytes: &[u8]) -> io::Result<()> {
    if let Err(error) = file.write_all(bytes) {
        let _ = file.set_len(*written);
        return Err(error);
    }
    *written += bytes.len() as u64;
    Ok(())
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

    fn gap(first: u64, bins: u64) -> Vec<u8> {
        format!("[{first}+{bins}]").into_bytes()
    }

    fn folder(name: &str) -> PathBuf {
        let name = format!("linkweir-recordings-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        folder
    }

    fn place(folder: &Path, size_bytes: u64) -> Place {
        Place {
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

    fn section() -> Job {
        Job::Section(b"HEAD".to_vec(), "20260131T120000Z".into())
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
        let mut recordings = Recordings::new(place(&folder, 800), gap);
        assert!(recordings.write(section()));
        assert!(recordings.write(Job::Peer(b"PEER".to_vec())));
        for at in 0..50 {
            while !recordings.write(Job::Block(vec![b'a' + at % 26; 40], at.into(), 1)) {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let status = recordings.status.clone();
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
    fn blocks_longer_than_a_file_keep_to_the_bound_of_the_folder() {
        let folder = folder("long-blocks");
        let mut files = Files::new(place(&folder, 800), Arc::default(), gap);
        files.take(section());
        for at in 0..20 {
            files.take(Job::Block(vec![b'a'; 220], at, 1));
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
        let mut files = Files::new(place, status.clone(), gap);
        files.take(section());
        files.take(Job::Block(b"one".to_vec(), 0, 100));
        files.take(Job::Peer(b"PEER".to_vec()));
        files.take(Job::Block(b"two".to_vec(), 100, 50));
        assert_eq!(status.lost_blocks.load(Ordering::Relaxed), 2);
        assert!(status.fails.load(Ordering::Relaxed));
        fs::create_dir(folder.join("later")).unwrap();
        files.take(Job::Block(b"three".to_vec(), 150, 50));
        assert_eq!(
            status.lost_blocks.load(Ordering::Relaxed),
            3,
            "it rests first"
        );
        files.rest_until = Some(Instant::now());
        files.take(Job::Block(b"four".to_vec(), 200, 50));
        assert!(!status.fails.load(Ordering::Relaxed));
        let name = &names(&folder.join("later"))[0];
        let bytes = fs::read(folder.join("later").join(name)).unwrap();
        assert_eq!(bytes, b"HEADPEER[0+200]four");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_full_disk_costs_blocks_and_no_more() {
        // Everything written to this device fails, as on a full disk.
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (mut file, mut written) = (full, 7);
        let error = append(&mut file, &mut written, b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(nix::libc::ENOSPC));
        assert_eq!(written, 7);
    }

    #[test]
    fn a_disk_that_does_not_answer_delays_nothing() {
        let (jobs, given) = mpsc::sync_channel(1);
        let mut recordings = Recordings {
            place: place(Path::new("/nowhere"), 1),
            status: Arc::default(),
            first: VecDeque::new(),
            gap,
            lost: None,
            jobs: Some(jobs),
            thread: None,
        };
        assert!(recordings.write(section()));
        assert!(recordings.write(Job::Peer(vec![1])), "it is kept");
        assert!(!recordings.write(Job::Block(vec![2], 0, 1)));
        assert_eq!(recordings.first.len(), 1);
        assert_eq!(recordings.status.lost_blocks.load(Ordering::Relaxed), 1);
        // The next block names what is missing, also to the thread, which counts from there if it cannot write it.
        assert!(given.try_recv().is_ok());
        assert!(
            !recordings.write(Job::Block(vec![b'w'], 1, 4)),
            "the peer took its place"
        );
        assert!(given.try_recv().is_ok());
        assert!(recordings.write(Job::Block(vec![b'x'], 5, 1)));
        let Ok(Job::Block(bytes, first_bin, bins)) = given.recv() else {
            panic!("no block was written");
        };
        assert_eq!((&bytes[..], first_bin, bins), (&b"[0+5]x"[..], 0, 6));
    }

    #[test]
    fn files_of_a_clock_that_was_set_back_are_the_newest() {
        let folder = folder("clock");
        for number in 1..=8 {
            let name = format!("lw0-20260131T120000Z-{number:06}.lwrec");
            fs::write(folder.join(name), [0; 100]).unwrap();
        }
        let mut files = Files::new(place(&folder, 800), Arc::default(), gap);
        files.take(Job::Section(b"HEAD".to_vec(), "19700101T000003Z".into()));
        for at in 0..10 {
            files.take(Job::Block(vec![7; 40], at, 1));
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
        let mut files = Files::new(place(&folder, 1_000_000), Arc::default(), gap);
        files.take(section());
        files.take(Job::Block(b"one".to_vec(), 0, 100));
        assert_eq!(names(&folder).len(), 2);
        assert_eq!(fs::read(folder.join(name)).unwrap(), b"before");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_full_disk_gets_no_empty_files() {
        const CHILD: &str = "LINKWEIR_TEST_OF_A_FULL_DISK";
        if let Some(folder) = std::env::var_os(CHILD) {
            let status = Arc::new(Status::default());
            let mut files = Files::new(place(Path::new(&folder), 1_000_000), status.clone(), gap);
            files.take(section());
            files.take(Job::Block(b"one".to_vec(), 0, 100));
            assert!(status.fails.load(Ordering::Relaxed));
            return;
        }
        let folder = folder("full");
        // This test again, in a process that may not write to files.
        let done = std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "linux::recordings::tests::a_full_disk_gets_no_empty_files",
            ])
            .env(CHILD, &folder)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        assert_eq!(names(&folder), [""; 0]);
        fs::remove_dir_all(folder).unwrap();
    }
}
