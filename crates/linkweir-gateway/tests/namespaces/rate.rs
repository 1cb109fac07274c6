// SPDX-License-Identifier: BSD-3-Clause
//! `linkweir-gateway rate`: an HTB class follows a link of unknown capacity.
//!
//! ```text
//!   here: out 192.0.2.1, HTB ═══ 192.0.2.2 out :router: far 198.51.100.1, TBF ═══ out 198.51.100.2 :there
//! ```

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use crate::log::full_pipe;
use crate::place::{program, Namespace};
use crate::PATIENCE;

/// Whether the kernel has HTB.
pub fn has_htb() -> bool {
    let add = ["qdisc", "add", "dev", "lo", "root", "htb"];
    Namespace::new().run("tc", &add).status.success()
}

struct Link {
    here: Namespace,
    router: Namespace,
    there: Namespace,
}

fn tc(namespace: &Namespace, arguments: &str) {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let output = namespace.run("tc", &words);
    assert!(output.status.success(), "tc {arguments}: {output:?}");
}

impl Link {
    fn new(rate: &str) -> Link {
        let (here, router, there) = (Namespace::new(), Namespace::new(), Namespace::new());
        router.cable("far", &there);
        for (namespace, device, address) in [
            (&router, "far", "198.51.100.1/24"),
            (&there, "out", "198.51.100.2/24"),
        ] {
            namespace.ip(&["address", "add", address, "dev", device]);
            namespace.ip(&["link", "set", device, "up"]);
        }
        router.inside(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
        there.ip(&["route", "add", "192.0.2.0/24", "via", "198.51.100.1"]);
        tc(
            &router,
            &format!("qdisc add dev far root tbf rate {rate} burst 3000 limit 200000"),
        );
        let link = Link {
            here,
            router,
            there,
        };
        link.plug_in();
        link
    }

    /// Makes the device here, and the class.
    fn plug_in(&self) {
        self.here.cable("out", &self.router);
        for (namespace, last) in [(&self.here, 1), (&self.router, 2)] {
            let address = format!("192.0.2.{last}/24");
            namespace.ip(&["address", "add", &address, "dev", "out"]);
            namespace.ip(&["link", "set", "out", "up"]);
        }
        self.here
            .ip(&["route", "add", "198.51.100.0/24", "via", "192.0.2.2"]);
        tc(&self.here, "qdisc add dev out root handle 1: htb default 1");
        tc(
            &self.here,
            "class add dev out parent 1: classid 1:1 htb rate 6mbit ceil 7mbit burst 4k",
        );
        tc(&self.here, "qdisc add dev out parent 1:1 pfifo limit 50");
    }

    fn change(&self, rate: &str) {
        let arguments =
            format!("qdisc change dev far root tbf rate {rate} burst 3000 limit 200000");
        tc(&self.router, &arguments);
    }

    /// What tc prints of the class.
    fn class(&self) -> String {
        let output = self.here.run("tc", &["class", "show", "dev", "out"]);
        String::from_utf8(output.stdout).unwrap()
    }

    /// The rate of the class, Mbit/s.
    fn mbit(&self) -> f64 {
        let class = self.class();
        let mut words = class.split_whitespace();
        let rate = words
            .find(|word| *word == "rate")
            .and_then(|_| words.next());
        let Some(rate) = rate else { return 0.0 };
        let split = rate.find(|c: char| c.is_alphabetic()).unwrap();
        let factor = match &rate[split..] {
            "bit" => 1e-6,
            "Kbit" => 1e-3,
            "Mbit" => 1.0,
            unit => panic!("{unit}: {class}"),
        };
        rate[..split].parse::<f64>().unwrap() * factor
    }

    /// Waits until most of 50 looks at the rate in a second find it in this range: it is moved all the time.
    fn wait_until(&self, least: f64, most: f64, follower: &Follower) {
        let begun = Instant::now();
        loop {
            let mut rates: Vec<f64> = (0..25)
                .map(|_| {
                    thread::sleep(Duration::from_millis(20));
                    self.mbit()
                })
                .collect();
            rates.sort_by(f64::total_cmp);
            if (least..=most).contains(&rates[12]) {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{least} to {most}: {rates:?}; {}",
                follower.lines()
            );
        }
    }
}

/// The program, and what it printed.
struct Follower {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Follower {
    fn start(link: &Link, arguments: &[&str]) -> Follower {
        let mut command = program();
        command
            .args(["rate", "--device", "out"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = link.here.inside(move || command.spawn().unwrap());
        let output = BufReader::new(child.stdout.take().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        Follower { child, lines }
    }

    fn lines(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    fn wait_for(&self, what: &str) {
        let begun = Instant::now();
        while !self.lines().contains(what) {
            assert!(
                begun.elapsed() < PATIENCE,
                "never: {what}: {}",
                self.lines()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn stop(mut self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => thread::sleep(Duration::from_millis(5)),
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end");
        };
        assert!(status.success(), "{}", self.lines());
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends more than any link here carries while it lives.
struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Load {
    fn new(link: &Link) -> Load {
        let socket = link.here.socket("192.0.2.1:1000");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for _ in 0..4 {
                    let _ = socket.send_to(&[7; 1200], "198.51.100.2:9");
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        Load {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// The class follows the link, and has its rate again after the end.
pub fn output_that_is_not_read_stops_nothing() {
    let link = Link::new("8mbit");
    let before = link.class();
    let (_reader, writer) = full_pipe();
    let mut command = program();
    command
        .args(["rate", "--device", "out", "--reflector", "198.51.100.2"])
        .stdin(Stdio::null())
        .stdout(writer);
    let child = link.here.inside(move || command.spawn().unwrap());
    let follower = Follower {
        child,
        lines: Arc::default(),
    };
    let load = Load::new(&link);
    let mut rates = Vec::new();
    let begun = Instant::now();
    // It moves the rate all the time; a line is due every second at most.
    while rates.len() < 40 {
        assert!(begun.elapsed() < PATIENCE, "the rate stays: {rates:?}");
        thread::sleep(Duration::from_millis(100));
        let mbit = link.mbit();
        if rates.last() != Some(&mbit) {
            rates.push(mbit);
        }
    }
    drop(load);
    follower.stop();
    assert_eq!(link.class(), before);
}

pub fn a_class_follows_a_link_and_has_its_rate_again_after_the_end() {
    let link = Link::new("8mbit");
    let before = link.class();
    let follower = Follower::start(&link, &["--reflector", "198.51.100.2"]);
    let load = Load::new(&link);
    for (rate, least, most) in [
        ("8mbit", 6.0, 10.0),
        ("3mbit", 2.0, 4.0),
        ("8mbit", 6.0, 10.0),
    ] {
        link.change(rate);
        link.wait_until(least, most, &follower);
    }
    drop(load);
    assert!(
        follower.lines().contains("out 1:1: capacity "),
        "{}",
        follower.lines()
    );
    let status = fs::read_to_string(format!("/proc/{}/status", follower.child.id())).unwrap();
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap();
    // CAP_NET_ADMIN and CAP_NET_RAW are numbers 12 and 13.
    assert!(line("CapPrm:").ends_with("0000000000003000"), "{status}");
    assert!(!line("Uid:").contains("\t0"), "{status}");
    follower.stop();
    assert_eq!(link.class(), before);
}

pub fn a_device_that_comes_again_and_reflectors_that_are_silent_are_waited_for() {
    let link = Link::new("8mbit");
    let reflectors = [
        "--reflector",
        "198.51.100.99",
        "--reflector",
        "198.51.100.2",
    ];
    let follower = Follower::start(&link, &[&reflectors[..], &["--ceiling", "5Mbit"]].concat());
    follower.wait_for("to 198.51.100.2");
    link.here.ip(&["link", "del", "out"]);
    follower.wait_for("it is gone");
    link.plug_in();
    let load = Load::new(&link);
    link.wait_until(4.5, 5.0, &follower);
    link.router.ip(&["link", "set", "far", "down"]);
    follower.wait_for("the link seems interrupted");
    link.wait_until(0.064, 0.5, &follower);
    link.router.ip(&["link", "set", "far", "up"]);
    link.router
        .ip(&["route", "replace", "198.51.100.0/24", "dev", "far"]);
    link.wait_until(4.5, 5.0, &follower);
    drop(load);
    follower.stop();
}

pub fn reflectors_of_ipv6_answer_too() {
    let link = Link::new("8mbit");
    let there = &link.there;
    for (namespace, device, address) in [
        (&link.here, "out", "2001:db8:1::1/64"),
        (&link.router, "out", "2001:db8:1::2/64"),
        (&link.router, "far", "2001:db8:2::1/64"),
        (there, "out", "2001:db8:2::2/64"),
    ] {
        namespace.ip(&["address", "add", address, "dev", device, "nodad"]);
    }
    let forwarding = "/proc/sys/net/ipv6/conf/all/forwarding";
    link.router
        .inside(move || fs::write(forwarding, "1").unwrap());
    for (namespace, to, via) in [
        (&link.here, "2001:db8:2::/64", "2001:db8:1::2"),
        (there, "2001:db8:1::/64", "2001:db8:2::1"),
    ] {
        namespace.ip(&["route", "add", to, "via", via]);
    }
    let follower = Follower::start(&link, &["--reflector", "2001:db8:2::2"]);
    follower.wait_for("to 2001:db8:2::2");
    let load = Load::new(&link);
    link.change("3mbit");
    link.wait_until(2.0, 4.0, &follower);
    drop(load);
    follower.stop();
}

pub fn what_is_missing_is_said_with_its_cure() {
    let link = Link::new("8mbit");
    for (arguments, what) in [
        ("--device none", "no device none"),
        (
            "--device out --class 1:7",
            "tc class add dev out parent 1: classid 1:7 htb",
        ),
        (
            "--device lo",
            "tc qdisc replace dev lo root handle 1: htb default 1",
        ),
        (
            "--device out --floor 9Mbit --ceiling 8Mbit",
            "--floor must not be above",
        ),
        ("--device out --floor 0bit", "8kbit at least"),
        ("--device out --class 17", "such as 1:1"),
    ] {
        let mut command = program();
        command
            .args(["rate", "--reflector", "198.51.100.2"])
            .args(arguments.split(' '))
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let (code, text) = said(&link, command);
        assert_eq!(code, Some(2), "{arguments}: {text}");
        assert!(text.contains(what), "{arguments}: {text}");
    }
}

pub fn a_class_that_may_not_be_changed_is_named_with_the_cure() {
    let link = Link::new("8mbit");
    let mut command = Command::new("setpriv");
    let allowed = "-all,+net_raw";
    command.args([
        "--pdeathsig",
        "KILL",
        "--bounding-set",
        allowed,
        "--inh-caps",
        allowed,
    ]);
    command.arg(env!("CARGO_BIN_EXE_linkweir-gateway"));
    command.args(["rate", "--device", "out", "--reflector", "198.51.100.2"]);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let (_, text) = said(&link, command);
    let what = "cannot set class 1:1 of out to 6Mbit: Operation not permitted";
    assert!(text.contains(what), "{text}");
    assert!(text.contains("CAP_NET_ADMIN"), "{text}");
}

/// How the program ends, and its errors.
fn said(link: &Link, mut command: Command) -> (Option<i32>, String) {
    let mut child = link.here.inside(move || command.spawn().unwrap());
    let mut text = String::new();
    let mut errors = child.stderr.take().unwrap();
    errors.read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code(), text)
}
