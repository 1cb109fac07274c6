// SPDX-License-Identifier: BSD-3-Clause
//! The flight recorder of running gateways.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linkweir_config::recording::{Bin, Recording};
use linkweir_gateway::show::figures::Show;
use nix::sys::signal::Signal;

use crate::clear::until;
use crate::life::comes_through;
use crate::place::{
    cabled, config, environment, program, pss, set_tos, Folder, Gateway, Socket, Tunnel, STRICT,
};
use crate::PATIENCE;

const TO: &str = "10.77.0.2:2000";
const CLASSES: [&str; 3] = ["ef", "af", "rest"];

/// A tunnel whose first end records into a folder of the test.
fn recording(scheduler: &str, keys: &str) -> Tunnel {
    Tunnel::clear(scheduler, |text, last| match last {
        1 => recorded(&text, keys),
        _ => text,
    })
}

fn recorded(text: &str, keys: &str) -> String {
    let text = text.replace("rate = \"1Gbit\"", "rate = \"20Mbit\"");
    format!("{text}[record]\nfolder = \"rec\"\n{keys}")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    files.sort();
    files
}

/// What is on disk so far; None: no file has its beginning yet.
pub fn read(folder: &Path) -> Option<Recording> {
    let contents = files(folder)
        .into_iter()
        .map(|file| fs::read(file).unwrap());
    Recording::new(contents.collect()).ok()
}

/// Sums of the classes over all of a recording.
fn sums(recording: &Recording, classes: &[&str]) -> Vec<Bin> {
    let (from_ns, to_ns) = recording.span_ns();
    let names: Vec<String> = classes.iter().map(ToString::to_string).collect();
    let rows = recording.sums("other", &names, (from_ns, to_ns), to_ns - from_ns);
    rows.into_iter().next().unwrap_or_default()
}

/// The capacities that a recording states, bit/s.
fn capacities(recording: &Recording) -> Vec<u64> {
    let (_, to_ns) = recording.span_ns();
    let changes = recording.capacity("other", (0, to_ns));
    changes.into_iter().map(|(_, bps)| bps).collect()
}

/// Sends packets of three classes, 24 Mbit/s together, for a time.
fn load(tunnel: &Tunnel, time: Duration) {
    let sockets = [1000, 3000, 4000].map(|port| tunnel.here.socket(&format!("10.77.0.1:{port}")));
    set_tos(&sockets[0], 46 << 2);
    // Bytes of the packets, and how often they are sent.
    let kinds = [(172, 1000), (1372, 1100), (1372, 1150)];
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    thread::scope(|scope| {
        for (socket, (bytes, per_second)) in sockets.iter().zip(kinds) {
            let stop = &stop;
            scope.spawn(move || {
                let mut sent = 0;
                while !stop.load(Ordering::Relaxed) {
                    let due = (begun.elapsed().as_secs_f64() * f64::from(per_second)) as u64;
                    while sent < due {
                        let _ = socket.send_to(&vec![0; bytes], TO);
                        sent += 1;
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
    });
}

fn all_sent(show: &Show) -> bool {
    show.peers[0]
        .classes
        .iter()
        .all(|class| class.backlog_pkts == 0)
}

pub fn a_recording_holds_what_the_figures_show() {
    for keys in ["", "packets = true\n"] {
        // LINKWEIR_RECORD_S=60 LINKWEIR_RECORD_TO=/tmp/kept for a recording to replay.
        let time = Duration::from_secs(environment("LINKWEIR_RECORD_S", 3));
        let mut tunnel = recording(&pss("rate = \"5Mbit\""), keys);
        let _there = tunnel.there.socket(TO);
        load(&tunnel, time);
        let gateway = &tunnel.gateways[0];
        gateway.wait_until("all are sent", all_sent);
        gateway.set_capacity(12_000_000);
        let show = gateway.show();
        let folder = tunnel.folder.path("rec");
        // The last second is written when it is over.
        until("all is on disk", || {
            read(&folder).is_some_and(|found| {
                let all = sums(&found, &CLASSES);
                let sent = all.iter().map(|bin| bin.sent_pkts);
                capacities(&found).len() == 2
                    && sent.eq(show.peers[0].classes.iter().map(|class| class.sent_pkts))
            })
        });
        let record = gateway.show().record.unwrap();
        assert_eq!((record.lost_blocks, record.fails), (0, false));
        // Whatever ends it, what was written is there.
        gateway.signal(Signal::SIGKILL);
        tunnel.gateways[0].ended();
        let found = read(&folder).unwrap();
        assert_eq!(found.damages, []);
        let text = &found.sections[0].settings;
        assert!(
            text.contains("policy = \"pss\"") && !text.contains("10.77"),
            "{text}"
        );
        for (bin, class) in sums(&found, &CLASSES).iter().zip(&show.peers[0].classes) {
            assert_eq!(bin.arrived_pkts, class.arrived_pkts, "{}", class.name);
            assert_eq!(bin.arrived_bytes, class.arrived_bytes, "{}", class.name);
            assert_eq!(bin.sent_pkts, class.sent_pkts, "{}", class.name);
            assert_eq!(bin.sent_bytes, class.sent_bytes, "{}", class.name);
            assert_eq!(bin.dropped_pkts, class.dropped_limit_pkts, "{}", class.name);
            assert_eq!(bin.tcp_pkts, 0);
        }
        assert_eq!(capacities(&found), [20_000_000, 12_000_000]);
        if let Ok(kept) = std::env::var("LINKWEIR_RECORD_TO") {
            fs::create_dir_all(&kept).unwrap();
            for file in files(&folder) {
                let name = format!(
                    "{}{}",
                    keys.len(),
                    file.file_name().unwrap().to_str().unwrap()
                );
                fs::copy(&file, Path::new(&kept).join(name)).unwrap();
            }
        }
    }
}

pub fn a_recording_goes_on_in_another_file_after_a_reload_and_a_restart() {
    let mut tunnel = recording(STRICT, "");
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:1000"),
        tunnel.there.socket(TO),
    );
    let folder = tunnel.folder.path("rec");
    let sent = Cell::new(0);
    let pass = |word: &[u8]| sent.set(sent.get() + comes_through(&a, &b, TO, word));
    // A late copy of a word may neither arrive without being recorded and leave with it, nor the other way.
    let all_left = |gateway: &Gateway| {
        gateway.wait_until("all that was sent has left", |show| {
            let class = &show.peers[0].classes[1];
            class.arrived_pkts >= sent.get() && class.backlog_pkts == 0
        });
    };
    pass(b"one");
    let text = fs::read_to_string(tunnel.folder.path("1.toml")).unwrap();
    let reload = |text: &str, count: usize| {
        tunnel.folder.write("1.toml", text);
        tunnel.gateways[0].signal(Signal::SIGHUP);
        tunnel.gateways[0].wait_until("it records", |show| show.record.is_some());
        let begun = Instant::now();
        while files(&folder).len() != count {
            assert!(begun.elapsed() < PATIENCE, "{:?}", files(&folder));
            pass(b"again");
            thread::sleep(Duration::from_millis(20));
        }
    };
    reload(&text.replace("20Mbit", "10Mbit"), 2);
    // Without the table nothing is recorded, and with it again.
    let without = text.split_once("[record]").unwrap().0;
    tunnel.folder.write("1.toml", without);
    all_left(&tunnel.gateways[0]);
    tunnel.gateways[0].signal(Signal::SIGHUP);
    tunnel.gateways[0].wait_until("it ends", |show| show.record.is_none());
    pass(b"not recorded");
    all_left(&tunnel.gateways[0]);
    reload(&text, 3);
    // A stop writes what it has.
    pass(b"the last");
    all_left(&tunnel.gateways[0]);
    tunnel.gateways[0].signal(Signal::SIGTERM);
    tunnel.gateways[0].ended();
    tunnel.restart(1);
    sent.set(0);
    pass(b"with the next one");
    all_left(&tunnel.gateways[0]);
    tunnel.gateways[0].signal(Signal::SIGTERM);
    tunnel.gateways[0].ended();
    let found = read(&folder).unwrap();
    assert_eq!((found.sections.len(), found.damages.len()), (4, 0));
    assert!(found
        .sections
        .windows(2)
        .all(|pair| pair[0].to_ns <= pair[1].from_ns));
    let sums = sums(&found, &["rest"]);
    assert!(sums[0].sent_pkts >= 4, "{sums:?}");
    assert_eq!(sums[0].arrived_pkts, sums[0].sent_pkts);
}

pub fn a_disk_that_is_full_or_missing_costs_no_packet() {
    let (here, there) = cabled();
    let folder = Folder::new();
    let far = folder.write("2.toml", &config(&folder, 2, STRICT));
    let _far = Gateway::start(&there, &far, &folder.path("control2"));
    let sockets = |port: u16| -> (Socket, Socket) {
        let to = format!("10.77.0.2:{port}");
        (here.socket(&format!("10.77.0.1:{port}")), there.socket(&to))
    };
    fs::create_dir(folder.path("rec")).unwrap();
    let control = folder.path("control1");

    // A disk of 16 kB of which a second of packets takes more.
    let text = recorded(&config(&folder, 1, STRICT), "packets = true\n");
    let file = folder.write("1.toml", &text);
    let mut command = program();
    let binary = command.get_args().last().unwrap().to_os_string();
    let mut words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    words.pop();
    command = std::process::Command::new("setpriv");
    command
        .args(words)
        .args(["unshare", "-m", "sh", "-c"])
        .arg(format!(
            "mount -t tmpfs -o size=16k none {} && exec {} up {} --cleartext",
            folder.path("rec").display(),
            Path::new(&binary).display(),
            file.display()
        ));
    let mut gateway = Gateway::started(&here, command, &control);
    let (a, b) = sockets(2000);
    let begun = Instant::now();
    while !gateway.show().record.unwrap().fails {
        assert!(begun.elapsed() < PATIENCE, "the disk is never full");
        for _ in 0..2000 {
            let _ = a.send_to(&[7; 100], "10.77.0.2:2000");
        }
        comes_through(&a, &b, "10.77.0.2:2000", b"all the same");
    }
    assert!(gateway.show().record.unwrap().lost_blocks > 0);
    gateway.signal(Signal::SIGTERM);
    gateway.ended();

    // A folder that cannot be made.
    let text = text.replace("folder = \"rec\"", "folder = \"1.toml/rec\"");
    let file = folder.write("1.toml", &text);
    let mut gateway = Gateway::start(&here, &file, &control);
    let (a, b) = sockets(2001);
    comes_through(&a, &b, "10.77.0.2:2001", b"without a folder");
    gateway.wait_until("it says so", |show| show.record.as_ref().unwrap().fails);
    gateway.signal(Signal::SIGTERM);
    gateway.ended();
}

/// The capacity that a file states by itself; a file whose beginning is not written yet states none.
fn capacity_in(file: &Path) -> Vec<u64> {
    let Ok(recording) = Recording::new(vec![fs::read(file).unwrap()]) else {
        return Vec::new();
    };
    let changes = recording.capacity("other", recording.span_ns());
    changes.into_iter().map(|(_, bps)| bps).collect()
}

pub fn a_file_that_is_removed_is_followed_by_one_that_can_be_read_alone() {
    let tunnel = recording(STRICT, "");
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:1000"),
        tunnel.there.socket(TO),
    );
    let folder = tunnel.folder.path("rec");
    let next_after = |before: Option<&PathBuf>| {
        let begun = Instant::now();
        loop {
            comes_through(&a, &b, TO, b"recorded");
            let found = files(&folder);
            // More than the beginning is in it.
            let last = found.last().filter(|file| Some(*file) > before);
            if let Some(file) = last.filter(|file| !capacity_in(file).is_empty()) {
                return file.clone();
            }
            assert!(begun.elapsed() < PATIENCE, "{found:?}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    let first = next_after(None);
    fs::remove_file(&first).unwrap();
    let second = next_after(Some(&first));
    assert_eq!(capacity_in(&second), [20_000_000]);
    fs::write(&second, "cut").unwrap();
    let third = next_after(Some(&second));
    assert_eq!(capacity_in(&third), [20_000_000]);
    assert_eq!(fs::read(&second).unwrap(), b"cut", "it is left alone");
    let record = tunnel.gateways[0].show().record.unwrap();
    assert_eq!((record.changed_files, record.fails), (2, false));
    assert_eq!(record.lost_blocks, 0);
}

/// SIGXFSZ would end the gateway when it writes to a log or a recording that is too long.
pub fn a_limit_of_file_sizes_ends_nothing() {
    let mut tunnel = recording(STRICT, "packets = true\n");
    tunnel.gateways[0].signal(Signal::SIGKILL);
    tunnel.gateways[0].ended();
    let folder = tunnel.folder.path("rec");
    fs::remove_dir_all(&folder).unwrap();
    const LIMIT_BYTES: usize = 20_000;
    let log = tunnel.folder.write("log", &"x".repeat(LIMIT_BYTES - 10));
    let log = fs::OpenOptions::new().append(true).open(log).unwrap();
    let mut command = std::process::Command::new("prlimit");
    command.arg(format!("--fsize={LIMIT_BYTES}"));
    command.args(["setpriv", "--pdeathsig", "KILL"]);
    command
        .arg(env!("CARGO_BIN_EXE_linkweir-gateway"))
        .args(["up", "--cleartext"])
        .arg(tunnel.folder.path("1.toml"))
        .stderr(log);
    let control = tunnel.folder.path("control1");
    tunnel.gateways[0] = Gateway::started(&tunnel.here, command, &control);
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:1000"),
        tunnel.there.socket(TO),
    );
    let begun = Instant::now();
    while files(&folder).len() < 3 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", files(&folder));
        // A second of them has room in a file.
        for _ in 0..20 {
            let _ = a.send_to(&[7; 100], TO);
        }
        comes_through(&a, &b, TO, b"all the same");
        thread::sleep(Duration::from_millis(10));
    }
    for file in files(&folder).iter().take(2) {
        assert_eq!(capacity_in(file), [20_000_000]);
        assert!(file.metadata().unwrap().len() <= LIMIT_BYTES as u64);
    }
    tunnel.here.ip(&["link", "set", "lw0", "down"]);
    tunnel.here.ip(&["link", "set", "lw0", "up"]);
    let show = tunnel.gateways[0].wait_until("the log is full", |show| show.log_lost_lines > 0);
    assert_eq!(show.record.unwrap().lost_blocks, 0);
    comes_through(&a, &b, TO, b"afterwards");
}
