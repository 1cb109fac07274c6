// SPDX-License-Identifier: BSD-3-Clause
//! The commands. Each holds the lock of all loaders while it works, so two never change a device at once.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command as Program;

use linkweir_bpf::kernel::{self, Loaded, Notes};
use linkweir_bpf::layout::{
    halves, turn, Command, Counters, Op, Plane, BEST_WORD, CLASS_WORDS, PLANE_WORDS, REASONS,
    SETTINGS_WORDS, TEXT_WORD,
};
use linkweir_bpf::recording;
use linkweir_bpf::replay::{self, Compared, Objects};
use linkweir_bpf::settings::{self, Settings};
use linkweir_bpf::Failure;
use linkweir_config::units::{self, Kind};
use linkweir_core::{state_size, PolicyInfo, Unit, MAX_RATE_BPS, MIN_RATE_BPS};
use nix::fcntl::{Flock, FlockArg};

const PINS: &str = "/sys/fs/bpf/linkweir";
const LOCK: &str = "/run/linkweir-bpf.lock";
/// Most bytes of a name of a discipline.
const ID_BYTES: usize = 15;
/// How often a change tries to begin while the discipline applies an earlier one, which takes microseconds.
const TRIES: u32 = 1000;

type Done = Result<(), Failure>;

pub(super) fn run(words: &[&str]) -> Done {
    match *words {
        ["add", device, file] => {
            sweep()?;
            add(&Device::new(device)?, Path::new(file))
        }
        ["change", device, file] => change(&Device::new(device)?, Path::new(file)),
        ["link", device, rate] => link(&Device::new(device)?, rate),
        ["follow", device] => follow(device),
        ["show", device] => show(&Device::new(device)?),
        ["calls", device] => calls(&Device::new(device)?),
        ["settings", device] => settings_in_force(&Device::new(device)?),
        ["del", device] => {
            sweep()?;
            del(&Device::new(device)?)
        }
        ["check", file] => settings::load(Path::new(file)).map(|_| ()),
        ["replay", ref files @ ..] if !files.is_empty() => replay_all(files),
        ["cost", ref policies @ ..] if !policies.is_empty() => cost(policies),
        _ => Err(Failure::Input(format!(
            "\"{}\" is no command; linkweir-bpf help lists them",
            words.join(" ")
        ))),
    }
}

/// A network device of this namespace, under the lock of all loaders.
struct Device {
    name: String,
    index: u32,
    pins: PathBuf,
    _lock: Flock<File>,
}

impl Device {
    fn new(name: &str) -> Result<Device, Failure> {
        let index = nix::net::if_::if_nametoindex(name).map_err(|_| {
            Failure::Input(format!("there is no device {name}; ip link lists them"))
        })?;
        Ok(Device {
            name: name.to_owned(),
            index,
            pins: Path::new(PINS).join(format!("{}-{index}", namespace()?)),
            _lock: lock()?,
        })
    }

    fn tc(&self, words: &[&str]) -> Result<String, Failure> {
        let mut all = vec!["qdisc", words[0], "dev", &self.name];
        all.extend(&words[1..]);
        let done = Program::new("tc")
            .args(&all)
            .output()
            .map_err(|error| Failure::Kernel(format!("tc: {error}; install iproute2")))?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        let text = String::from_utf8_lossy(&done.stderr)
            .trim()
            .replace('\n', "; ");
        Err(Failure::Kernel(format!("tc {}: {text}", all.join(" "))))
    }

    /// The kind of the discipline at the root.
    fn root(&self) -> Result<String, Failure> {
        let shown = self.tc(&["show", "root"])?;
        Ok(shown
            .split_whitespace()
            .nth(1)
            .unwrap_or_default()
            .to_owned())
    }

    /// Refuses a device with a root that somebody made: its handle is not 0, as that of a default is. Linux 7.3 was seen to replace an mq.
    fn expect_free_root(&self) -> Done {
        let shown = self.tc(&["show", "root"])?;
        let words: Vec<&str> = shown.split_whitespace().collect();
        match words[..] {
            ["qdisc", kind, handle, ..] if handle != "0:" => Err(Failure::Kernel(format!(
                "{} has the root {kind} {handle} already; to use another one, remove it: tc qdisc del dev {} root",
                self.name, self.name
            ))),
            _ => Ok(()),
        }
    }

    /// Whether a discipline that a loader made is the root of this device.
    fn is_ours(&self) -> Result<bool, Failure> {
        let root = self.root()?;
        Ok(root.starts_with(&format!("lw{}_", self.index))
            || root.starts_with(&format!("lw{}x", self.index)))
    }

    /// A number of the discipline of this device: another one has another number.
    fn made(&self) -> Result<u64, Failure> {
        use std::os::unix::fs::MetadataExt;

        match fs::metadata(&self.pins) {
            Ok(data) if self.is_ours()? => Ok(data.ino()),
            _ => Err(Failure::Kernel(format!(
                "{} has no discipline of linkweir-bpf; make one with add",
                self.name
            ))),
        }
    }

    fn open(&self) -> Result<Loaded, Failure> {
        self.made()?;
        let made_with = kernel::notes_of(&self.pins)?;
        let info = parse(&made_with, MAX_RATE_BPS)?.info;
        Loaded::reopen(&object_of(info.name)?, &self.pins)
    }
}

/// Settings that were accepted before.
fn parse(notes: &Notes, best_bps: u64) -> Result<Settings, Failure> {
    let place = Path::new("the settings in force");
    Ok(Settings::parse(
        &notes.text,
        place,
        notes.rate_bps,
        best_bps,
    )?)
}

/// Removes what devices of this namespace left that are gone.
fn sweep() -> Done {
    let Ok(found) = fs::read_dir(PINS) else {
        return Ok(());
    };
    let prefix = format!("{}-", namespace()?);
    let _lock = lock()?;
    // not if_indextoname of nix: it was seen to find devices that are gone
    let devices = nix::net::if_::if_nameindex()
        .map_err(|error| Failure::Kernel(format!("the devices cannot be listed: {error}")))?;
    let present: Vec<u32> = devices.iter().map(|device| device.index()).collect();
    for entry in found.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let index: Option<u32> = name
            .strip_prefix(&prefix)
            .and_then(|index| index.parse().ok());
        if index.is_some_and(|index| !present.contains(&index)) {
            kernel::unpin(&entry.path())?;
        }
    }
    Ok(())
}

/// The lock of all loaders.
fn lock() -> Result<Flock<File>, Failure> {
    let file = File::create(LOCK)
        .map_err(|error| Failure::Kernel(format!("{LOCK}: {error}; run this as root")))?;
    Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, error)| Failure::Kernel(format!("{LOCK}: {error}")))
}

/// A number for the network namespace of this process: devices of two of them may have the same index.
fn namespace() -> Result<u64, Failure> {
    use std::os::unix::fs::MetadataExt;

    let path = "/proc/self/ns/net";
    let data = fs::metadata(path).map_err(|error| Failure::Kernel(format!("{path}: {error}")))?;
    Ok(data.ino())
}

fn objects() -> PathBuf {
    std::env::var_os("LINKWEIR_BPF_OBJECTS")
        .map_or_else(|| PathBuf::from("/usr/lib/linkweir/bpf"), PathBuf::from)
}

fn object_of(policy: &str) -> Result<PathBuf, Failure> {
    let file = objects().join(format!("{policy}.bpf.o"));
    if file.exists() {
        return Ok(file);
    }
    let known: Vec<String> = fs::read_dir(objects())
        .map(|found| {
            let names = found
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned());
            names
                .filter_map(|name| name.strip_suffix(".bpf.o").map(str::to_owned))
                .collect()
        })
        .unwrap_or_default();
    Err(Failure::Input(format!(
        "{} is missing: {policy} is not offered in BPF, or LINKWEIR_BPF_OBJECTS names the wrong folder; offered: {}",
        file.display(),
        known.join(", ")
    )))
}

fn arena_bytes(settings: &Settings, slots: u32) -> usize {
    let n = settings.classes.len();
    let state = state_size(settings.info, n, &settings.params);
    let rows = n * (32 + CLASS_WORDS * 8 + 2 * 24 + 2 * 8 * settings.info.qparams.len());
    PLANE_WORDS * 8
        + 64
        + rows
        + 24 * slots as usize
        + state
        + 2 * 8 * SETTINGS_WORDS
        + 16 * 8
        + 8 * 64
}

fn add(device: &Device, file: &Path) -> Done {
    let (text, settings) = settings::load(file)?;
    if device.pins.exists() {
        if device.is_ours()? {
            return Err(Failure::Kernel(format!(
                "{} has a discipline of linkweir-bpf already; change its settings with change, or remove it with del",
                device.name
            )));
        }
        kernel::unpin(&device.pins)?; // a loader that was killed left them
    }
    device.expect_free_root()?;
    let object = object_of(settings.info.name)?;
    if !Path::new(PINS).exists() {
        fs::create_dir(PINS).map_err(|error| {
            Failure::Kernel(format!("{PINS}: {error}; mount -t bpf bpf /sys/fs/bpf"))
        })?;
    }
    fs::create_dir(&device.pins)
        .map_err(|error| Failure::Kernel(format!("{}: {error}", device.pins.display())))?;
    let done = make(device, &object, &text, &settings);
    if done.is_err() {
        kernel::unpin(&device.pins)?;
    }
    done
}

fn make(device: &Device, object: &Path, text: &str, settings: &Settings) -> Done {
    let slots = settings.slots();
    let n = settings.classes.len();
    let mut id = format!("lw{}_{}", device.index, settings.info.name);
    id.truncate(ID_BYTES);
    let mut loaded = Loaded::new(object, &id, slots, arena_bytes(settings, slots))?;
    let state = state_size(settings.info, n, &settings.params);
    let plane = loaded.lay_out(n as u32, slots, state)?;
    loaded.write(plane.now_at, &settings.words(0, 0))?;
    let start = Command {
        now_ns: now_ns()?,
        ..Command::default()
    };
    loaded.command(Op::Start, &start)?;
    loaded.keep_notes(0, 0, text)?;
    loaded.register(&device.pins)?;
    device
        .tc(&["add", "root", &id])
        .map(drop)
        .map_err(|failure| {
            Failure::Kernel(format!(
                "{failure}; if {} has a root of its own, remove it: tc qdisc del dev {} root",
                device.name, device.name
            ))
        })
}

/// The clock that the program reads, CLOCK_MONOTONIC.
fn now_ns() -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/uptime")
        .map_err(|error| Failure::Kernel(format!("/proc/uptime: {error}")))?;
    let seconds: f64 = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0);
    Ok((seconds * 1e9) as u64)
}

fn change(device: &Device, file: &Path) -> Done {
    let (text, _) = settings::load(file)?;
    let new = Notes {
        rate_bps: None,
        text,
    };
    hand_over(&device.open()?, file, &new)
}

/// Makes settings the next ones. The discipline applies them as a whole.
fn hand_over(loaded: &Loaded, file: &Path, notes: &Notes) -> Done {
    let plane = loaded.plane()?;
    let now = loaded.read(plane.now_at, SETTINGS_WORDS)?;
    let best_bps = now[BEST_WORD as usize];
    let new = Settings::parse(&notes.text, file, notes.rate_bps, best_bps)?;
    let old = parse(&loaded.notes(now[TEXT_WORD as usize])?, best_bps)?;
    same_shape(file, &old, &new)?;
    if new.slots() > plane.nslots {
        return Err(Failure::Input(format!(
            "{}: the limits add up to {} packets, more than the {} places that were made: lower them, or del and add",
            file.display(),
            new.slots(),
            plane.nslots
        )));
    }
    let plane = begin(loaded)?;
    // the text in force stays: it may be that of a change applied since it was read
    let text = 1 - loaded.read(plane.now_at + 8 * TEXT_WORD, 1)?[0].min(1);
    loaded.keep_notes(text, notes.rate_bps.unwrap_or(0), &notes.text)?;
    loaded.write(plane.next_at, &new.words(best_bps, text))?;
    turn_to(loaded, turn::WRITING, turn::READY).map(drop)
}

/// What a change must keep.
fn same_shape(file: &Path, old: &Settings, new: &Settings) -> Done {
    if new.info.name != old.info.name || new.classes.len() != old.classes.len() {
        return Err(Failure::Input(format!(
            "{}: a change keeps the policy ({}) and the number of classes ({}); to have others, del and add",
            file.display(),
            old.info.name,
            old.classes.len()
        )));
    }
    let of_policy = new.info.params.iter();
    let of_classes = new.info.qparams.iter().cycle();
    let fixed = of_policy
        .zip(old.params.iter().zip(&new.params))
        .chain(of_classes.zip(old.qparams.iter().zip(&new.qparams)))
        .find(|(param, (was, is))| param.at_init && was != is);
    fixed.map_or(Ok(()), |(param, _)| {
        Err(Failure::Input(format!(
            "{}: {} is fixed when the discipline is made: del and add",
            file.display(),
            param.name
        )))
    })
}

fn turn_to(loaded: &Loaded, from: u32, to: u32) -> Result<u32, Failure> {
    let command = Command {
        from,
        to,
        ..Command::default()
    };
    loaded.command(Op::Turn, &command).map(|was| was as u32)
}

/// Takes the settings that are next, even from a change that was not applied yet, or from a loader that was killed.
fn begin(loaded: &Loaded) -> Result<Plane, Failure> {
    for _ in 0..TRIES {
        let plane = loaded.plane()?;
        if plane.turn == turn::WRITING {
            return Ok(plane);
        }
        if plane.turn != turn::APPLYING && turn_to(loaded, plane.turn, turn::WRITING)? == plane.turn
        {
            return Ok(plane);
        }
    }
    Err(Failure::Kernel(
        "the discipline does not finish an earlier change; try again".to_owned(),
    ))
}

fn link(device: &Device, rate: &str) -> Done {
    let bps = read_rate(rate)?;
    report(&device.open()?, bps)
}

fn read_rate(rate: &str) -> Result<u64, Failure> {
    let parsed =
        units::parse(rate, Kind::Rate).map_err(|what| Failure::Input(format!("{rate}: {what}")))?;
    let bps = parsed
        .whole()
        .map(|(bps, _)| bps)
        .filter(|bps| (MIN_RATE_BPS..=MAX_RATE_BPS).contains(bps));
    bps.ok_or_else(|| {
        Failure::Input(format!(
            "{rate}: a rate is {} .. {}, like 12Mbit",
            units::show_whole(MIN_RATE_BPS, Kind::Rate),
            units::show_whole(MAX_RATE_BPS, Kind::Rate)
        ))
    })
}

/// Reads a rate from each line of standard input, until it ends, and reports it as the link's capacity. A line that is no rate is left out.
fn follow(name: &str) -> Done {
    let mut opened: Option<(u64, Loaded)> = None;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| Failure::Input(format!("standard input: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        match read_rate(line.trim()) {
            Ok(bps) => {
                let device = Device::new(name)?;
                let made = device.made()?;
                let loaded = match opened.take() {
                    Some((of, loaded)) if of == made => loaded,
                    _ => device.open()?,
                };
                report(&loaded, bps)?;
                opened = Some((made, loaded));
            }
            Err(failure) => eprintln!("linkweir-bpf: {failure}"),
        }
    }
    Ok(())
}

/// A new capacity of the link, with the settings handed over last.
fn report(loaded: &Loaded, rate_bps: u64) -> Done {
    let plane = loaded.plane()?;
    let settings_at = if plane.turn == turn::READY {
        plane.next_at
    } else {
        plane.now_at
    };
    let text = loaded.read(settings_at + 8 * TEXT_WORD, 1)?[0];
    let notes = Notes {
        rate_bps: Some(rate_bps),
        ..loaded.notes(text)?
    };
    hand_over(loaded, Path::new("the settings in force"), &notes)
}

fn show(device: &Device) -> Done {
    let loaded = device.open()?;
    print(&shown(device, &loaded)?)
}

/// Prints the settings in force as a file.
fn settings_in_force(device: &Device) -> Done {
    let loaded = device.open()?;
    let plane = loaded.plane()?;
    let text = loaded.read(plane.now_at + 8 * TEXT_WORD, 1)?[0];
    print(&loaded.notes(text)?.text)
}

/// Prints the calls of the policy as a vector.
fn calls(device: &Device) -> Done {
    let loaded = device.open()?;
    let settings = parse(&kernel::notes_of(&device.pins)?, MAX_RATE_BPS)?;
    print(&recording::vector(&settings, &loaded.calls()?)?)
}

/// Writes to standard output. A reader that ends early, such as `head`, is no fault.
fn print(text: &str) -> Done {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Kernel(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn shown(device: &Device, loaded: &Loaded) -> Result<String, Failure> {
    let plane = loaded.plane()?;
    let now = loaded.read(plane.now_at, plane.settings_words as usize)?;
    let text = now[TEXT_WORD as usize];
    let settings = parse(&loaded.notes(text)?, MAX_RATE_BPS)?;
    let waits = if plane.turn == turn::READY {
        ", a change waits for the next packet"
    } else {
        ""
    };
    let mut out = format!(
        "{} {} link {} {} of {} places used, {} changes{waits}\n",
        device.name,
        settings.info.name,
        units::show_whole(plane.link_bps, Kind::Rate),
        plane.used,
        plane.nslots,
        plane.applied
    );
    if plane.lost != 0 {
        out += &format!("  FAULT: {} packets without a place\n", plane.lost);
    }
    if now != settings.words(now[BEST_WORD as usize], text) {
        out += "  FAULT: the settings in force are not those of the text\n";
    }
    let n = settings.classes.len();
    let classes = loaded.read(plane.classes_at, n * CLASS_WORDS)?;
    let queues = loaded.read(plane.queues_at, n * 4)?;
    for (q, class) in settings.classes.iter().enumerate() {
        let counters = Counters::new(&classes[q * CLASS_WORDS..]);
        out += &shown_class(&class.name, &counters, &queues[q * 4..]);
        out += &shown_state(loaded, &plane, settings.info, q)?;
    }
    Ok(out)
}

/// A line with what a class counted; `queue` are the words of its `struct lw_queue`.
fn shown_class(name: &str, counters: &Counters, queue: &[u64]) -> String {
    let (pkts, _) = halves(queue[3]);
    let mean_ns = counters
        .sojourn_ns
        .checked_div(counters.sent_pkts)
        .unwrap_or(0);
    let mut line = format!(
        "  {name}: sent {} bytes {} pkt, backlog {} bytes {pkts} pkt, sojourn {} mean {} max, dropped",
        counters.sent_bytes,
        counters.sent_pkts,
        queue[0],
        units::show_whole(mean_ns, Kind::Time),
        units::show_whole(counters.sojourn_max_ns, Kind::Time),
    );
    for (reason, count) in REASONS.iter().zip(counters.dropped_pkts) {
        line += &format!(" {reason} {count}");
    }
    line + "\n"
}

/// A line with the policy's own statistics of a class.
fn shown_state(
    loaded: &Loaded,
    plane: &Plane,
    info: &PolicyInfo,
    q: usize,
) -> Result<String, Failure> {
    if info.stats.is_empty() {
        return Ok(String::new());
    }
    let command = Command {
        q: q as u32,
        now_ns: now_ns()?,
        ..Command::default()
    };
    loaded.command(Op::Show, &command)?;
    let values = loaded.read(plane.stats_at, info.stats.len())?;
    let words = info.stats.iter().zip(values).map(|(stat, value)| {
        let value = value as i64;
        let with_unit = u64::try_from(value)
            .ok()
            .and_then(|value| Some(units::show_whole(value, kind_of(stat.unit)?)));
        format!(" {} {}", stat.name, with_unit.unwrap_or(value.to_string()))
    });
    Ok(format!("   {}\n", words.collect::<String>()))
}

fn kind_of(unit: Unit) -> Option<Kind> {
    match unit {
        Unit::Bps => Some(Kind::Rate),
        Unit::Ns => Some(Kind::Time),
        Unit::Bytes => Some(Kind::Size),
        Unit::Bits => Some(Kind::Bits),
        Unit::Pkts => Some(Kind::Packets),
        Unit::Number | Unit::Ppm | Unit::Choice => None,
    }
}

fn del(device: &Device) -> Done {
    let ours = device.is_ours()?;
    if !ours && !device.pins.exists() {
        return Err(Failure::Kernel(format!(
            "{} has no discipline of linkweir-bpf",
            device.name
        )));
    }
    if ours {
        device.tc(&["del", "root"])?;
    }
    kernel::unpin(&device.pins)
}

fn replay_all(files: &[&str]) -> Done {
    let mut objects = Objects::new(&objects());
    let mut compared = Compared::default();
    let mut wrong = 0;
    for file in files {
        if let Err(failure) = replay::replay(&mut objects, Path::new(file), &mut compared) {
            println!("not ok - {failure}");
            wrong += 1;
        }
    }
    println!(
        "{} files, {} with refusals only, {wrong} wrong: {} picks, {} drops, {} verdicts, {} observed values",
        compared.files, compared.skipped, compared.picks, compared.drops, compared.verdicts, compared.observed
    );
    if wrong == 0 {
        return Ok(());
    }
    Err(Failure::Kernel(format!(
        "{wrong} of {} files are wrong",
        files.len()
    )))
}

fn cost(policies: &[&str]) -> Done {
    let mut refused = 0;
    for policy in policies {
        match Loaded::new(&object_of(policy)?, "lw_cost", 1000, 16 << 20) {
            Ok(loaded) => {
                let counts: Vec<String> = loaded
                    .verified()
                    .iter()
                    .map(|(name, count)| {
                        format!("{} {count}", name.trim_start_matches("linkweir_"))
                    })
                    .collect();
                println!("{policy}: {}", counts.join(", "));
            }
            Err(failure) => {
                println!("{policy}: {failure}");
                refused += 1;
            }
        }
    }
    if refused == 0 {
        return Ok(());
    }
    Err(Failure::Kernel(format!(
        "{refused} of {} policies are refused",
        policies.len()
    )))
}
