// SPDX-License-Identifier: BSD-3-Clause
//! What happens in ordinary life: several addresses, wrong clocks, peers that are away, devices that go down and up.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use linkweir_gateway::show::figures::{PeerShow, Show};
use linkweir_gateway::tunnel::seal::{self, Identity, Session};
use nix::sys::signal::Signal;

use crate::life::comes_through;
use crate::place::{cost, program, rests, Folder, Gateway, Tunnel, STRICT};

const TO: &str = "10.77.0.2:2000";
const BACK: &str = "10.77.0.1:1000";

/// A stateful firewall or a NAT in front of a client lets in only what comes from the address that the client asked.
pub fn a_hub_with_several_addresses_answers_from_the_one_that_was_asked() {
    for (second, mask, any) in [
        ("192.0.2.11", "24", "0.0.0.0"),
        ("2001:db8::11", "64", "[::]"),
    ] {
        let asked = if any == "[::]" {
            format!("[{second}]:51820")
        } else {
            format!("{second}:51820")
        };
        let mut tunnel = Tunnel::sealed(STRICT, |text, last| match last {
            1 => text
                .replace("endpoint = \"192.0.2.2:51820\"\n", "")
                .replace("listen = \"192.0.2.1:", &format!("listen = \"{any}:")),
            _ => text
                .replace("listen = \"192.0.2.2:", &format!("listen = \"{any}:"))
                .replace("192.0.2.1:51820", &asked),
        });
        let address = format!("{second}/{mask}");
        let mut add = vec!["address", "add", &address, "dev", "out"];
        if any == "[::]" {
            // Not the one that the system would choose by itself.
            add.extend(["nodad", "preferred_lft", "0"]);
        }
        tunnel.here.ip(&add);
        let firewall = if any == "[::]" {
            "ip6tables"
        } else {
            "iptables"
        };
        let stateful = ["-m", "conntrack", "!", "--ctstate", "ESTABLISHED"];
        let input = ["-A", "INPUT", "-i", "out", "-p", "udp"];
        let rule = [&input[..], &stateful, &["-j", "DROP"]].concat();
        assert!(tunnel.there.run(firewall, &rule).status.success());
        tunnel.gateways[1].signal(Signal::SIGKILL);
        tunnel.gateways[1].ended();
        tunnel.restart(2);
        let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
        comes_through(&b, &a, BACK, b"asked");
        comes_through(&a, &b, TO, b"answered");

        // An address that is gone is not the end: the system chooses another.
        tunnel.there.run(firewall, &["-F"]);
        tunnel.here.ip(&["address", "del", &address, "dev", "out"]);
        comes_through(&a, &b, TO, b"from another");
    }
}

/// A stand-in for a clock that is set while a program runs: it shifts the system's clock by the seconds in a file.
const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t which, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	long shift = 0;
	int answer;
	FILE *file;

	if (real == NULL)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	answer = real(which, now);
	file = which == CLOCK_REALTIME ? fopen(getenv("SHIFT"), "r") : NULL;
	if (file != NULL) {
		if (fscanf(file, "%ld", &shift) == 1)
			now->tv_sec += shift;
		fclose(file);
	}
	return answer;
}
"#;

/// Stands in for a kernel that is short of memory now and then: every third read from the device fails.
const FAILING_READS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

ssize_t read(int fd, void *to, size_t bytes)
{
	static ssize_t (*real)(int, void *, size_t);
	static unsigned calls;
	char path[64], name[64] = "";

	if (real == NULL)
		real = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, name, sizeof(name) - 1) > 0 && strcmp(name, "/dev/net/tun") == 0 && ++calls % 3 == 0) {
		errno = ENOMEM;
		return -1;
	}
	return real(fd, to, bytes);
}
"#;

/// A library that takes the place of functions of the C library in a program that is started with it.
pub fn preloaded(folder: &Folder, name: &str, source: &str) -> PathBuf {
    let source = folder.write(&format!("{name}.c"), source);
    let library = folder.path(&format!("{name}.so"));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source]);
    assert!(compiler.status().unwrap().success());
    library
}

pub fn an_error_of_the_device_is_counted_and_not_the_end() {
    let mut tunnel = Tunnel::new(STRICT);
    let gateway = &mut tunnel.gateways[0];
    gateway.signal(Signal::SIGKILL);
    gateway.ended();
    let mut command = program();
    command
        .arg("up")
        .arg(tunnel.folder.path("1.toml"))
        .arg("--cleartext")
        .env(
            "LD_PRELOAD",
            preloaded(&tunnel.folder, "reads", FAILING_READS),
        );
    let control = tunnel.folder.path("control1");
    tunnel.gateways[0] = Gateway::started(&tunnel.here, command, &control);
    let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
    for round in 0..20_u8 {
        comes_through(&a, &b, TO, &[round]);
    }
    tunnel.gateways[0].wait_until("errors are counted", |show| {
        show.dropped_pkts
            .get("device_error")
            .is_some_and(|count| *count >= 5)
    });
    rests(&tunnel.gateways[0]);
}

/// Stands in for a server of names: it answers with the address in a file.
pub const NAME_SERVER: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	char address[64] = "";
	FILE *file = fopen(getenv("HUB"), "r");

	if (real == NULL)
		real = (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
	if (file != NULL) {
		if (fscanf(file, "%63s", address) != 1)
			address[0] = 0;
		fclose(file);
	}
	if (strcmp(host, "hub.example") != 0 || address[0] == 0)
		return EAI_NONAME;
	return real(address, service, hints, found);
}
"#;

/// A hub's provider gives it another address now and then, and its name follows.
pub fn a_hub_is_found_by_name_also_when_its_address_changes() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, last| match last {
        1 => text
            .replace("endpoint = \"192.0.2.2:51820\"\n", "")
            .replace("listen = \"192.0.2.1:", "listen = \"0.0.0.0:"),
        _ => text.replace("endpoint = \"192.0.2.1:", "endpoint = \"hub.example:"),
    });
    let hub = tunnel.folder.write("hub", "");
    let mut command = program();
    let library = preloaded(&tunnel.folder, "names", NAME_SERVER);
    command.env("LD_PRELOAD", library).env("HUB", &hub);
    let log = tunnel.restart_logged(2, Signal::SIGKILL, command);
    let said = |what: &str| {
        let begun = Instant::now();
        while !std::fs::read_to_string(&log).unwrap().contains(what) {
            assert!(begun.elapsed() < crate::PATIENCE, "never said: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    said("peer other: hub.example cannot be found: ");
    std::fs::write(&hub, "192.0.2.99").unwrap();
    said("peer other: hub.example is 192.0.2.99:51820");
    std::fs::write(&hub, "192.0.2.1").unwrap();
    said("peer other: hub.example is 192.0.2.1:51820");
    let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
    comes_through(&b, &a, BACK, b"found");
    comes_through(&a, &b, TO, b"and back");
}

/// The system takes routes and addresses of IPv6 from a device that is set down; a gateway without privileges gives them back.
pub fn a_device_that_was_down_has_its_addresses_and_routes_again() {
    let tunnel = Tunnel::changed(STRICT, |text| text.replace("user = \"root\"\n", ""));
    let has = |words: &[&str], what: &str| {
        let output = tunnel.here.run("ip", words).stdout;
        String::from_utf8(output).unwrap().contains(what)
    };
    let address = || has(&["-6", "address", "show", "dev", "lw0"], "fd77::1/64");
    let route = || has(&["route"], "10.78.2.0/24 dev lw0");
    assert!(address() && route());
    for at_once in [false, true, true] {
        if at_once {
            // The gateway sees both together.
            tunnel.gateways[0].signal(Signal::SIGSTOP);
        }
        tunnel.here.ip(&["link", "set", "lw0", "down"]);
        assert!(!address() && !route());
        if !at_once {
            std::thread::sleep(Duration::from_millis(50));
        }
        tunnel.here.ip(&["link", "set", "lw0", "up"]);
        tunnel.gateways[0].signal(Signal::SIGCONT);
        let begun = Instant::now();
        while !(address() && route()) {
            assert!(begun.elapsed() < crate::PATIENCE, "they do not come back");
            std::thread::sleep(Duration::from_millis(20));
        }
        let (a, b) = (
            tunnel.here.socket("[fd77::1]:1000"),
            tunnel.there.socket("[fd77::2]:2000"),
        );
        comes_through(&a, &b, "[fd77::2]:2000", b"there");
        comes_through(&b, &a, "[fd77::1]:1000", b"and back");
    }
}

/// A machine without a battery begins long ago and gets the time from the network later.
pub fn a_clock_that_was_behind_at_the_start_locks_nobody_out() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, last| match last {
        // Only the second end asks for sessions.
        1 => text.replace("endpoint = \"192.0.2.2:51820\"\n", ""),
        _ => text,
    });
    let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
    comes_through(&b, &a, BACK, b"with the right time");
    tunnel.gateways[1].signal(Signal::SIGKILL);
    tunnel.gateways[1].ended();

    let shift = tunnel.folder.write("shift", "-86400");
    let mut command = program();
    command
        .arg("up")
        .arg(tunnel.folder.path("2.toml"))
        .env(
            "LD_PRELOAD",
            preloaded(&tunnel.folder, "clock", SHIFTED_CLOCK),
        )
        .env("SHIFT", &shift);
    let control = tunnel.folder.path("control2");
    tunnel.gateways[1] = Gateway::started(&tunnel.there, command, &control);
    let refused = |show: &Show| show.peers[0].dropped_pkts.get("not_genuine").copied();
    let before = refused(&tunnel.gateways[0].show());
    drop(b);
    let b = tunnel.there.socket("10.77.0.2:2001");
    let _ = b.send_to(b"with yesterday's time", BACK);
    tunnel.gateways[0].wait_until("a stamp of yesterday is refused", |show| {
        refused(show) > before
    });
    assert_eq!(tunnel.gateways[1].show().peers[0].session, Some(false));
    std::fs::write(&shift, "0").unwrap();
    comes_through(&b, &a, BACK, b"with the right time again");
}

/// Peers that are away take little time from those that are there, and those whose endpoint is not known take none.
pub fn absent_peers_cost_little() {
    const ABSENT: usize = 1000;
    for known in [false, true] {
        let tunnel = Tunnel::sealed(STRICT, |text, last| match last {
            1 => {
                // Together they may hold a gigabyte. Voice that waits while the gateway does not run is not dropped.
                text.replace("\"rest\"\nlimit = \"1000p\"", "\"rest\"\nlimit = \"20p\"")
                    .replace("1000p", "500p")
                    + &(0..ABSENT).map(|at| absent(at, known)).collect::<String>()
            }
            _ => text,
        });
        let gateway = &tunnel.gateways[0];
        let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
        comes_through(&a, &b, TO, b"at first");
        for at in 0..ABSENT {
            a.send_to(b"to one that is away", inside(at)).unwrap();
        }
        gateway.wait_until("a packet waits for each", |show| {
            let waits = |peer: &PeerShow| peer.classes[1].backlog_pkts > 0;
            show.peers[1..].iter().all(waits)
        });
        if !known {
            rests(gateway);
            continue;
        }
        // The second of a hundred packets of voice by what the gateway worked meanwhile: the best of several times, as the
        // test itself may be late to read. If all peers were asked together, again and again, it would be some 60 ms each time.
        let quick = (0..10).any(|_| work_before_voice(&tunnel, 100)[98] < 0.020);
        assert!(quick, "voice waits for handshakes");
    }
}

/// How much processor time the first gateway used while each of so many packets of voice was under way, one every 10 ms, in
/// order of length: s. Time in which other programs have the processor does not count.
fn work_before_voice(tunnel: &Tunnel, count: usize) -> Vec<f64> {
    let gateway = tunnel.gateways[0].pid();
    let voice = tunnel.here.socket("10.77.0.1:5060");
    let hears = tunnel.there.socket("10.77.0.2:5060");
    let listener = std::thread::spawn(move || {
        let mut buffer = [0; 100];
        let mut works: Vec<f64> = (0..count)
            .map(|_| {
                hears.recv(&mut buffer).unwrap();
                let before_s = f64::from_le_bytes(buffer[..8].try_into().unwrap());
                cost(gateway).0 - before_s
            })
            .collect();
        works.sort_by(f64::total_cmp);
        works
    });
    for _ in 0..count {
        let before_s = cost(gateway).0;
        voice
            .send_to(&before_s.to_le_bytes(), "10.77.0.2:5060")
            .unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    listener.join().unwrap()
}

/// Where the network behind an absent peer is.
fn inside(at: usize) -> String {
    format!("10.79.{}.{}:9", at / 256, at % 256)
}

/// A peer that is away, with an endpoint or without.
pub fn absent(at: usize, known: bool) -> String {
    let endpoint = if known {
        format!("endpoint = \"192.0.2.2:{}\"\n", 20_000 + at)
    } else {
        String::new()
    };
    let mut secret = [0x55; 32];
    secret[8..16].copy_from_slice(&at.to_le_bytes());
    let key = seal::show_key(&Identity::new(secret).public());
    let net = inside(at).replace(":9", "/32");
    format!(
        "[[peer]]\nname = \"p{at}\"\npublic_key = \"{key}\"\n{endpoint}allowed_ips = \"{net}\"\n"
    )
}

pub fn what_happens_to_peers_is_logged_but_not_without_end() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, last| match last {
        1 => text.replace("[link]\n", "[link]\nstale = \"300ms\"\nfloor = \"5Mbit\"\n"),
        _ => text.replace("listen = \"192.0.2.2:", "listen = \"0.0.0.0:"),
    });
    let log = tunnel.restart_logged(1, Signal::SIGKILL, program());
    let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
    comes_through(&b, &a, BACK, b"at first");
    // The rate that it starts with expires as well.
    let expires = || {
        tunnel.gateways[0].wait_until("the capacity expires", |show| {
            show.peers[0].capacity_bps == 5_000_000
        })
    };
    expires();
    tunnel.gateways[0].set_capacity(20_000_000);
    expires();
    let address = |word, address| {
        tunnel.there.ip(&["address", word, address, "dev", "out"]);
    };
    address("del", "192.0.2.2/24");
    address("add", "192.0.2.77/24");
    comes_through(&b, &a, BACK, b"from elsewhere");
    address("add", "192.0.2.2/24");

    let hub = seal::read_key(&tunnel.folder.path("key1")).unwrap();
    let stranger = Identity::new([9; 32]);
    let socket = tunnel.there.socket("192.0.2.2:4000");
    for number in 0..20 {
        let mut session = Session::new(
            &stranger,
            Identity::new(hub.clone()).public(),
            None,
            None,
            number,
        );
        let mut buffer = [0; 256];
        session.want(0);
        let initiation = session.attempt(&stranger, 0, 1, &mut buffer).unwrap();
        socket.send_to(initiation, "192.0.2.1:51820").unwrap();
    }
    tunnel.gateways[0].wait_until("strangers are counted", |show| {
        show.dropped_pkts.get("stranger") >= Some(&20)
    });
    // A thread of its own writes the log, and has written all of it at the end.
    tunnel.gateways[0].signal(Signal::SIGTERM);
    tunnel.gateways[0].ended();
    let text = std::fs::read_to_string(&log).unwrap();
    for (said, times) in [
        ("linkweir-gateway: peer other: has a session at 192.0.2.2:51820\n", 1),
        ("peer other: nothing has reported its capacity for too long; the floor of 5Mbit holds\n", 2),
        ("peer other: moved from 192.0.2.2:51820 to 192.0.2.77:51820\n", 1),
    ] {
        assert_eq!(text.matches(said).count(), times, "{said}{text}");
    }
    let key = seal::show_key(&stranger.public());
    let unknown = format!(
        "an unknown peer with the public key {key} asked for a session from 192.0.2.2:4000\n"
    );
    assert_eq!(text.matches(&unknown).count(), 5, "{text}");
}
