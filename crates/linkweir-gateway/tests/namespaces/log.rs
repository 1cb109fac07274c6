// SPDX-License-Identifier: BSD-3-Clause
//! A log that is not read, and programs that print too much: packets wait for neither.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::signal::{kill, Signal};
use nix::unistd::{pipe2, Pid};

use crate::clear::until;
use crate::life::comes_through;
use crate::place::{program, set_tos, Gateway, Tunnel, STRICT};
use crate::PATIENCE;

const HERE: &str = "10.77.0.1:5060";
const THERE: &str = "10.77.0.2:2000";

/// A pipe that is full: its reader's end and a program's.
pub fn full_pipe() -> (File, File) {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let mut writer = File::from(writer);
    let error = loop {
        if let Err(error) = writer.write_all(&[b'\n'; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (reader.into(), writer)
}

/// Starts the first end again, with this as its standard error.
fn restart(tunnel: &mut Tunnel, command: Command, stderr: File) {
    tunnel.gateways[0].signal(Signal::SIGKILL);
    tunnel.gateways[0].ended();
    start(tunnel, command, stderr);
}

fn start(tunnel: &mut Tunnel, mut command: Command, stderr: File) {
    command.stderr(stderr);
    let control = tunnel.folder.path("control1");
    tunnel.gateways[0] = Gateway::started(&tunnel.here, command, &control);
}

/// Link, configuration and peer change; after each, packets pass both ways and the gateway answers.
fn ordinary_events(tunnel: &mut Tunnel) {
    let (a, b) = (tunnel.here.socket(HERE), tunnel.there.socket(THERE));
    let passes = |tunnel: &Tunnel, word: &str| {
        comes_through(&a, &b, THERE, word.as_bytes());
        comes_through(&b, &a, HERE, word.as_bytes());
        tunnel.gateways[0].show();
    };
    passes(tunnel, "at first");
    tunnel.here.ip(&["link", "set", "lw0", "down"]);
    tunnel.here.ip(&["link", "set", "lw0", "up"]);
    passes(tunnel, "after the link was down");
    let file = tunnel.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let slower = text.replace("1Gbit", "900Mbit");
    fs::write(&file, &slower).unwrap();
    tunnel.gateways[0].signal(Signal::SIGHUP);
    tunnel.gateways[0].wait_until("the reload", |show| {
        show.peers[0].capacity_bps == 900_000_000
    });
    fs::write(&file, "[gateway]\n").unwrap();
    let watch = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
    watch
        .add_watch(&file, AddWatchFlags::IN_CLOSE_NOWRITE)
        .unwrap();
    tunnel.gateways[0].signal(Signal::SIGHUP);
    until("the file is read", || watch.read_events().is_ok());
    passes(tunnel, "after a reload");
    fs::write(&file, slower).unwrap();
    tunnel.gateways[1].signal(Signal::SIGKILL);
    tunnel.gateways[1].ended();
    tunnel.restart(2);
    passes(tunnel, "after the peer began again");
}

pub fn a_log_that_is_not_read_stops_nothing() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, _| text);
    let file = tunnel.folder.path("1.toml");
    let up = || {
        let mut command = program();
        command.arg("up").arg(&file);
        command
    };
    let (mut reader, writer) = full_pipe();
    restart(&mut tunnel, up(), writer);
    ordinary_events(&mut tunnel);
    // The thread that waits for the reader can do nothing else.
    let tasks = format!("/proc/{}/task", tunnel.gateways[0].pid());
    let mut names = Vec::new();
    for task in fs::read_dir(tasks).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap().trim().to_string()
        };
        for key in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(value(key), "0000000000000000", "{status}");
        }
        names.push(value("Name:"));
    }
    assert!(names.contains(&"log".to_string()), "{names:?}");
    assert_eq!(tunnel.gateways[0].show().log_lost_lines, 0);

    // Once it is read, all lines come in their order, also the last one.
    let text = thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    tunnel.gateways[0].signal(Signal::SIGTERM);
    assert!(tunnel.gateways[0].ended().success());
    let text = text.join().unwrap();
    let mut rest = text.as_str();
    for line in [
        "peer other: has a session at 192.0.2.2:51820\n",
        "lw0 is up again",
        "reloaded ",
        "nothing changed: ",
        "stopped; 0 packets waited and were dropped\n",
    ] {
        let found = rest.split_once(line);
        rest = found
            .unwrap_or_else(|| panic!("no {line} in {rest}\n{text}"))
            .1;
    }
    assert_eq!(rest, "", "the last line is the last");

    // Nothing waits for ever for a reader, and neither does the end.
    let (_reader, writer) = full_pipe();
    start(&mut tunnel, up(), writer);
    tunnel.gateways[0].signal(Signal::SIGTERM);
    assert!(tunnel.gateways[0].ended().success());
}

/// The journal's socket is there, and it takes nothing.
pub fn a_journal_that_is_stuck_stops_nothing() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, _| text);
    let folder = tunnel.folder.path("run");
    fs::create_dir_all(folder.join("systemd/journal")).unwrap();
    let journal = UnixDatagram::bind(folder.join("systemd/journal/socket")).unwrap();
    // Standard error goes there, too; it is a pipe of which the journal does not read.
    let (reader, writer) = full_pipe();
    let stream = writer.metadata().unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--mount", "sh", "-c"]);
    command.arg("mount --bind \"$0\" /run && exec \"$@\"");
    command
        .arg(&folder)
        .arg(env!("CARGO_BIN_EXE_linkweir-gateway"))
        .arg("up")
        .arg(tunnel.folder.path("1.toml"))
        .env(
            "JOURNAL_STREAM",
            format!("{}:{}", stream.dev(), stream.ino()),
        );
    restart(&mut tunnel, command, writer);
    ordinary_events(&mut tunnel);
    // More than a socket holds unread.
    let unread = fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").unwrap();
    let unread: usize = unread.trim().parse().unwrap();
    let (a, b) = (tunnel.here.socket(HERE), tunnel.there.socket(THERE));
    let text = fs::read_to_string(tunnel.folder.path("1.toml")).unwrap();
    for number in 0..unread + 10 {
        let mbit = 500 + number % 100;
        let changed = text.replace("900Mbit", &format!("{mbit}Mbit"));
        fs::write(tunnel.folder.path("1.toml"), changed).unwrap();
        tunnel.gateways[0].signal(Signal::SIGHUP);
        tunnel.gateways[0].wait_until("the reload", |show| {
            show.peers[0].capacity_bps == mbit as u64 * 1_000_000
        });
    }
    comes_through(&a, &b, THERE, b"after many lines");
    drop(reader);
    journal.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut entry = [0; 8192];
    let mut reloads = 0;
    while reloads < unread + 11 {
        let count = journal.recv(&mut entry).unwrap();
        let entry = String::from_utf8_lossy(&entry[..count]);
        assert!(entry.contains("SYSLOG_IDENTIFIER=linkweir-gateway\n"));
        reloads += usize::from(entry.starts_with("MESSAGE=reloaded "));
    }
    assert_eq!(tunnel.gateways[0].show().log_lost_lines, 0);
}

/// SIGTTOU would stop a gateway that writes to a terminal with `tostop` while it is in the background.
pub fn a_terminal_in_the_background_stops_nothing() {
    let mut tunnel = Tunnel::new(STRICT);
    tunnel.gateways[0].signal(Signal::SIGKILL);
    tunnel.gateways[0].ended();
    let script = format!(
        "setpriv --pdeathsig KILL {} up {} --cleartext &\necho $! > {}\nwait\n",
        env!("CARGO_BIN_EXE_linkweir-gateway"),
        tunnel.folder.path("1.toml").display(),
        tunnel.folder.path("pid").display(),
    );
    let script = tunnel.folder.write("script", &script);
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "script", "-qfec"]);
    // With -m, sh gives a job in the background a process group of its own.
    command.arg(format!("stty tostop; sh -m {}", script.display()));
    let terminal = tunnel.folder.path("terminal");
    command
        .arg(&terminal)
        .stdout(File::create("/dev/null").unwrap());
    let control = tunnel.folder.path("control1");
    tunnel.gateways[0] = Gateway::started(&tunnel.here, command, &control);
    let begun = Instant::now();
    let pid = loop {
        let text = fs::read_to_string(tunnel.folder.path("pid")).unwrap_or_default();
        if let Ok(pid) = text.trim().parse() {
            break Pid::from_raw(pid);
        }
        assert!(begun.elapsed() < PATIENCE, "the shell does not run");
    };
    kill(pid, Signal::SIGHUP).unwrap();
    while !fs::read_to_string(&terminal).unwrap().contains("reloaded") {
        assert!(begun.elapsed() < PATIENCE, "the log says nothing");
        thread::sleep(Duration::from_millis(5));
    }
    let (a, b) = (tunnel.here.socket(HERE), tunnel.there.socket(THERE));
    comes_through(&a, &b, THERE, b"as before");
    kill(pid, Signal::SIGKILL).unwrap();
}

/// It reads no sign of life.
pub fn a_service_manager_that_is_stuck_stops_nothing() {
    let mut tunnel = Tunnel::new(STRICT);
    let path = tunnel.folder.path("manager");
    let manager = UnixDatagram::bind(&path).unwrap();
    let mut command = program();
    command
        .args(["up", "--cleartext"])
        .arg(tunnel.folder.path("1.toml"))
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "10000");
    restart(&mut tunnel, command, File::create("/dev/null").unwrap());
    // Until the socket is full.
    let sender = UnixDatagram::unbound().unwrap();
    sender.set_nonblocking(true).unwrap();
    let begun = Instant::now();
    while sender.send_to(b"", &path).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it is never full");
    }
    let (a, b) = (tunnel.here.socket(HERE), tunnel.there.socket(THERE));
    for _ in 0..20 {
        comes_through(&a, &b, THERE, b"as before");
        thread::sleep(Duration::from_millis(5));
    }
    // Once it reads, it learns that the gateway is ready.
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut state = [0; 200];
    loop {
        let count = manager.recv(&mut state).unwrap();
        if &state[..count] == b"READY=1\n" {
            break;
        }
    }
    tunnel.gateways[0].signal(Signal::SIGTERM);
    assert!(tunnel.gateways[0].ended().success());
}

fn with_program(script: &str) -> Tunnel {
    let command = format!("rate = \"1Gbit\"\ncommand = [\"sh\", \"-c\", \"{script}\"]");
    Tunnel::clear(STRICT, |text, last| match last {
        1 => text.replace("rate = \"1Gbit\"", &command),
        _ => text,
    })
}

/// Its newest value counts.
pub fn a_program_that_floods_delays_no_packet() {
    // LINKWEIR_FLOOD_S=60 prints how long packets took.
    let time =
        Duration::from_secs(std::env::var("LINKWEIR_FLOOD_S").map_or(1, |s| s.parse().unwrap()));
    // The flood may end within a line.
    let tunnel =
        with_program("yes 18Mbit & echo $! > flood; wait; echo; echo 12Mbit; exec sleep 1000");
    let gateway = &tunnel.gateways[0];
    gateway.wait_until("the flood", |show| show.peers[0].capacity_bps == 18_000_000);
    let (a, b) = (tunnel.here.socket(HERE), tunnel.there.socket(THERE));
    set_tos(&a, 46 << 2);
    let pkts = 200 * time.as_secs();
    let begun = Instant::now();
    let receiver = thread::spawn(move || {
        let mut took_us = Vec::new();
        let mut buffer = [0; 200];
        while (took_us.len() as u64) < pkts && b.recv(&mut buffer).is_ok() {
            let sent_us = u64::from_ne_bytes(buffer[..8].try_into().unwrap());
            took_us.push(begun.elapsed().as_micros() as u64 - sent_us);
        }
        took_us
    });
    for number in 0..pkts {
        thread::sleep(
            (begun + Duration::from_millis(5 * number)).saturating_duration_since(Instant::now()),
        );
        let mut packet = [0; 200];
        packet[..8].copy_from_slice(&(begun.elapsed().as_micros() as u64).to_ne_bytes());
        a.send_to(&packet, THERE).unwrap();
    }
    let mut took_us = receiver.join().unwrap();
    took_us.sort_unstable();
    let at = |part: usize| took_us.get(took_us.len() * part / 100).copied();
    println!(
        "{} of {pkts} packets; median {:?} us, p99 {:?} us",
        took_us.len(),
        at(50),
        at(99)
    );
    assert_eq!(took_us.len() as u64, pkts);
    assert_eq!(gateway.show().peers[0].capacity_bps, 18_000_000);
    let pid = fs::read_to_string(tunnel.folder.path("flood")).unwrap();
    assert!(Command::new("kill")
        .arg(pid.trim())
        .status()
        .unwrap()
        .success());
    gateway.wait_until("the newest value", |show| {
        show.peers[0].capacity_bps == 12_000_000
    });
}

pub fn what_a_program_prints_does_not_fill_the_log() {
    let mut tunnel = with_program(
        "yes 'no signal' | head -n 500000 >&2; yes nonsense | head -n 500000; echo 12Mbit; exec sleep 1000",
    );
    let log = tunnel.restart_logged(1, Signal::SIGKILL, program());
    let gateway = &mut tunnel.gateways[0];
    let show = gateway.wait_until("the value", |show| show.peers[0].capacity_bps == 12_000_000);
    let left_out = show.peers[0].program_unlogged_lines.unwrap();
    gateway.signal(Signal::SIGTERM);
    gateway.ended();
    let text = fs::read_to_string(&log).unwrap();
    let said = "linkweir-gateway: peer other: its program says: no signal";
    assert_eq!(text.matches(said).count(), 30, "{text}");
    let malformed = "linkweir-gateway: peer other: its program printed \"nonsense\": ";
    assert_eq!(text.matches(malformed).count(), 5, "{text}");
    assert!(text.len() < 20_000, "{} bytes", text.len());
    // Of standard output one line of a part counts.
    assert!(
        (499_970..500_970 + 500_000).contains(&left_out),
        "{left_out}"
    );
}
