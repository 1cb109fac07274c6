// SPDX-License-Identifier: BSD-3-Clause
//! Names, addresses and files that something else has, takes away or leaves.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::life::comes_through;
use crate::ordinary::preloaded;
use crate::place::{cabled, config, program, Folder, Gateway, Namespace, Tunnel, STRICT};
use crate::PATIENCE;

const TO: &str = "10.77.0.2:2000";
const BACK: &str = "10.77.0.1:1000";

/// Waits until something is so.
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Tries to start a gateway that is to fail.
fn fails(namespace: &Namespace, file: &Path) -> String {
    let mut command = Command::new("timeout");
    command
        .arg(PATIENCE.as_secs().to_string())
        .arg(program().get_program())
        .args(program().get_args())
        .arg("up")
        .arg(file)
        .arg("--cleartext");
    let output: Output = namespace.inside(move || command.output().unwrap());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    error
}

/// The kernel hands out a persistent TUN device of another program to whoever asks for its name.
pub fn a_device_of_the_same_name_is_left_alone() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let file = folder.write("1.toml", &config(&folder, 1, STRICT));
    let tun: &[&str] = &["tuntap", "add", "dev", "lw0", "mode", "tun"];
    let veth: &[&str] = &["link", "add", "lw0", "type", "veth", "peer", "name", "lw1"];
    for (make, kind) in [(tun, "a TUN device"), (veth, "of the kind veth")] {
        here.ip(make);
        let shown = || {
            let all = [
                here.run("ip", &["-details", "link", "show", "dev", "lw0"]),
                here.run("ip", &["address", "show", "dev", "lw0"]),
            ];
            all.map(|output| String::from_utf8(output.stdout).unwrap())
        };
        let before = shown();
        let error = fails(&here, &file);
        for expected in [
            "cannot make the TUN device lw0: there is a device of this name, ",
            kind,
            "choose another name, or remove it with `ip link delete lw0`",
        ] {
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(shown(), before);
        here.ip(&["link", "delete", "lw0"]);
    }
    Gateway::start(&here, &file, &folder.path("control1"));
}

/// However a gateway ends, and also without privileges of its own.
pub fn the_control_socket_goes_with_the_gateway() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let text = config(&folder, 1, STRICT).replace("user = \"root\"\n", "");
    let file = folder.write("1.toml", &text);
    let control = folder.path("control1");
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut gateway = Gateway::start(&here, &file, &control);
        gateway.signal(signal);
        gateway.ended();
        wait_for("the control socket goes", || !control.exists());
    }
}

/// Also when it was down so briefly that the gateway saw both together.
pub fn a_device_that_is_up_again_was_down_before() {
    let (tunnel, log) = logged(|text, _| text);
    let count = |what: &str| fs::read_to_string(&log).unwrap().matches(what).count();
    let down = "the device lw0 is down; nothing enters the tunnel until it is up";
    let up = "the device lw0 is up again; addresses and routes that it lost are being added again";
    for round in 1..4 {
        tunnel.gateways[0].signal(Signal::SIGSTOP);
        tunnel.here.ip(&["link", "set", "lw0", "down"]);
        tunnel.here.ip(&["link", "set", "lw0", "up"]);
        tunnel.gateways[0].signal(Signal::SIGCONT);
        wait_for(up, || count(up) == round);
        assert_eq!(count(down), round);
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.rfind(down) < text.rfind(up), "{text}");
    }
}

/// A start removes the socket of a gateway that was killed, and nothing else.
pub fn a_file_in_place_of_the_control_socket_is_left_alone() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let file = folder.write("1.toml", &config(&folder, 1, STRICT));
    let control = folder.path("control1");
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let mut gateway = Gateway::start(&here, &file, &control);
        gateway.signal(signal);
        gateway.ended();
    }
    folder.write("control1", "somebody's notes");
    let error = fails(&here, &file);
    assert!(error.contains("a file that is no socket"), "{error}");
    assert_eq!(fs::read_to_string(&control).unwrap(), "somebody's notes");
}

/// A tunnel whose first end writes its log to a file.
fn logged(change: impl Fn(String, u8) -> String) -> (Tunnel, std::path::PathBuf) {
    let mut tunnel = Tunnel::sealed(STRICT, change);
    let log = tunnel.restart_logged(1, Signal::SIGKILL, program());
    (tunnel, log)
}

/// A lease ends, and begins again.
pub fn an_address_that_is_gone_is_named_and_used_again() {
    let (tunnel, log) = logged(|text, _| text);
    let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
    comes_through(&a, &b, TO, b"at first");
    let count = |what: &str| fs::read_to_string(&log).unwrap().matches(what).count();
    let gone = "192.0.2.1 of gateway.listen is no address of this host any more; nothing is sent or received until it is";
    let back = "192.0.2.1 of gateway.listen is an address of this host again";
    for round in 1..3 {
        let address = ["192.0.2.1/24", "dev", "out"];
        tunnel
            .here
            .ip(&[&["address", "del"][..], &address].concat());
        wait_for(gone, || count(gone) == round);
        let _ = a.send_to(b"lost", TO);
        assert_eq!(count(back), round - 1);
        tunnel
            .here
            .ip(&[&["address", "add"][..], &address].concat());
        wait_for(back, || count(back) == round);
        comes_through(&a, &b, TO, b"again");
        comes_through(&b, &a, BACK, b"and back");
    }
    // Other addresses do not matter.
    tunnel
        .here
        .ip(&["address", "add", "192.0.2.7/24", "dev", "out"]);
    tunnel
        .here
        .ip(&["address", "del", "192.0.2.7/24", "dev", "out"]);
    comes_through(&a, &b, TO, b"still there");
    assert_eq!(count(gone), 2);
}

/// Gives the end with this last number a link-local address on its cable.
fn link_local(namespace: &Namespace, last: u8) {
    let address = format!("fe80::{last}/64");
    namespace.ip(&["address", "add", &address, "dev", "out", "nodad"]);
    namespace.ip(&["link", "set", "out", "up"]);
}

/// Also when the device comes again, with another number.
pub fn a_link_local_endpoint_names_its_device() {
    let change = |text: String, last: u8| {
        let other = 3 - last;
        text.replace(&format!("192.0.2.{last}:51820"), "[::]:51820")
            .replace(
                &format!("192.0.2.{other}:51820"),
                &format!("[fe80::{other}%out]:51820"),
            )
    };
    // Before the gateways start: a packet sent earlier has the global address, and the other end answers to that.
    let ends = || {
        let (here, there) = cabled();
        link_local(&here, 1);
        link_local(&there, 2);
        (here, there)
    };
    let tunnels = [
        Tunnel::clear_on(ends(), STRICT, change),
        Tunnel::sealed_on(ends(), STRICT, change),
    ];
    for tunnel in tunnels {
        let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
        comes_through(&a, &b, TO, b"on the link");
        comes_through(&b, &a, BACK, b"and back");
        let endpoint = tunnel.gateways[0].show().peers[0].endpoint.unwrap();
        assert!(endpoint.to_string().starts_with("[fe80::2%"), "{endpoint}");

        tunnel.here.ip(&["link", "delete", "out"]);
        // Its number is not the next one's.
        tunnel
            .here
            .ip(&["tuntap", "add", "dev", "between", "mode", "tun"]);
        tunnel.here.cable("out", &tunnel.there);
        link_local(&tunnel.here, 1);
        link_local(&tunnel.there, 2);
        comes_through(&a, &b, TO, b"on the new link");
        comes_through(&b, &a, BACK, b"and back");
        assert_ne!(tunnel.gateways[0].show().peers[0].endpoint, Some(endpoint));
    }
}

/// Counts the returns of epoll_wait(2) from a sleep, in a file.
const COUNTED_SLEEPS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	static int (*real)(int, struct epoll_event *, int, int);
	static volatile unsigned long *count;
	int answer;

	if (real == NULL) {
		int file = open(getenv("SLEEPS"), O_RDWR);

		real = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
		count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		close(file);
	}
	answer = real(fd, events, most, timeout);
	if (timeout != 0)
		++*count;
	return answer;
}
"#;

/// Peers that are away and have keepalives are asked together. With a timer for each handshake it would be 200 a second.
pub fn a_thousand_dead_endpoints_wake_it_a_few_times_a_second() {
    const ABSENT: usize = 1000;
    let (here, _there) = cabled();
    let folder = Folder::new();
    let public = crate::place::keygen(&folder, 1);
    let text = crate::place::sealed(&config(&folder, 1, STRICT), 1, &public)
        .replace("1000p", "20p")
        .replace("endpoint = \"192.0.2.2:51820\"\n", "")
        + &(0..ABSENT)
            .map(|at| {
                crate::ordinary::absent(at, true)
                    .replace("allowed_ips", "keepalive = \"25s\"\nallowed_ips")
            })
            .collect::<String>();
    let file = folder.write("1.toml", &text);
    let sleeps = folder.write("sleeps", &"\0".repeat(4096));
    let mut command: Command = program();
    command
        .arg("up")
        .arg(file)
        .env("LD_PRELOAD", preloaded(&folder, "sleeps", COUNTED_SLEEPS))
        .env("SLEEPS", &sleeps)
        .stderr(Stdio::null());
    let gateway = Gateway::started(&here, command, &folder.path("control1"));
    let count = || u64::from_le_bytes(fs::read(&sleeps).unwrap()[..8].try_into().unwrap());
    // The first attempts are made one after the other, which takes longer on a busy machine.
    let begun = Instant::now();
    let mut a_second = f64::MAX;
    // While it is behind with them, it does not sleep.
    while (count() == 0 || a_second >= 30.0) && begun.elapsed() < PATIENCE {
        let (before, since) = (count(), Instant::now());
        std::thread::sleep(Duration::from_secs(5));
        a_second = (count() - before) as f64 / since.elapsed().as_secs_f64();
    }
    assert!(count() > 0);
    drop(gateway);
    eprintln!("{a_second:.1} wake-ups a second with {ABSENT} dead endpoints");
    assert!(a_second < 30.0, "{a_second} wake-ups a second");
}
