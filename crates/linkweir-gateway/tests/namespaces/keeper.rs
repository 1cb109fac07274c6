// SPDX-License-Identifier: BSD-3-Clause
//! The keeper's own troubles: routes that take long to compare, a disk that hangs, a neighbour with the same prefixes.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use crate::clear::{comes_through_both, full, ip, printed, says, until};
use crate::everything::{rewrite, rules, text};
use crate::life::children;
use crate::ordinary::preloaded;
use crate::place::{program, Gateway, Namespace, Tunnel, STRICT};

/// While a file is there, lists of routes have no end, and a disk that holds a configuration does not answer.
const HELD: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void wait(const char *what)
{
	char hold[4096], held[4096];

	snprintf(hold, sizeof(hold), "%s.%s", getenv("HOLD"), what);
	if (access(hold, F_OK) != 0)
		return;
	snprintf(held, sizeof(held), "%s.held", getenv("HOLD"));
	mkdir(held, 0700);
	while (access(hold, F_OK) == 0)
		usleep(1000);
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
	ssize_t (*real)(int, const void *, size_t, int) =
		(ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
	const struct nlmsghdr *header = bytes;

	if (count >= sizeof(*header) && header->nlmsg_type == RTM_GETROUTE &&
	    (header->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP)
		wait("lists");
	return real(fd, bytes, count, flags);
}

int open64(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
	const char *end = strrchr(path, '.');
	va_list rest;
	int mode;

	va_start(rest, flags);
	mode = va_arg(rest, int);
	va_end(rest);
	if (end != NULL && strcmp(end, ".toml") == 0)
		wait("files");
	return real(path, flags, mode);
}
"#;

/// What holds up the first gateway of a tunnel, and its log.
struct Held {
    hold: PathBuf,
    log: PathBuf,
}

impl Held {
    /// Starts the first gateway again.
    fn start(tunnel: &mut Tunnel) -> Held {
        tunnel.gateways[0].signal(Signal::SIGTERM);
        tunnel.gateways[0].ended();
        let (hold, log) = (tunnel.folder.path("hold"), tunnel.folder.path("log"));
        let mut command = program();
        command
            .arg("up")
            .arg(tunnel.folder.path("1.toml"))
            .env("LD_PRELOAD", preloaded(&tunnel.folder, "held", HELD))
            .env("HOLD", &hold)
            .stderr(fs::File::create(&log).unwrap());
        let control = tunnel.folder.path("control1");
        tunnel.gateways[0] = Gateway::started(&tunnel.here, command, &control);
        comes_through_both(tunnel);
        Held { hold, log }
    }

    /// Holds up what it does with `files` or `lists` from now on.
    fn begin(&self, what: &str) {
        fs::write(self.hold.with_extension(what), "").unwrap();
    }

    /// Waits until it waits.
    fn wait(&self) {
        let held = self.hold.with_extension("held");
        until("it is held up", || held.exists());
    }

    fn end(&self, what: &str) {
        fs::remove_dir(self.hold.with_extension("held")).unwrap();
        fs::remove_file(self.hold.with_extension(what)).unwrap();
    }
}

/// Without rules packets leave in the clear, so they do not wait for routes.
pub fn a_rule_comes_again_while_routes_are_compared() {
    let mut tunnel = full();
    let held = Held::start(&mut tunnel);
    let before = rules(&tunnel.here);
    held.begin("lists");
    ip(&tunnel.here, "route flush table 51820");
    held.wait();
    // Twice, since a pause may follow what was restored.
    for _ in 0..2 {
        for priority in [32700, 32701, 32702] {
            ip(&tunnel.here, &format!("rule del priority {priority}"));
            ip(&tunnel.here, &format!("-6 rule del priority {priority}"));
        }
        until("the rules are as before", || rules(&tunnel.here) == before);
    }
    tunnel.gateways[0].wait_until("it is reported", |show| show.network.restored_rules == 12);
    assert_eq!(
        printed(&tunnel.here, "route show table 51820"),
        "",
        "routes were still compared"
    );
    held.end("lists");
    comes_through_both(&tunnel);
}

pub fn a_reload_waits_for_its_disk_and_rules_do_not() {
    let mut tunnel = full();
    let held = Held::start(&mut tunnel);
    let before = rules(&tunnel.here);
    held.begin("files");
    let another = text(&tunnel).replace("name = \"other\"", "name = \"another\"");
    rewrite(&tunnel, &another);
    held.wait();
    ip(&tunnel.here, "rule del priority 32701");
    until("the rules are as before", || rules(&tunnel.here) == before);
    until("it is said", || {
        says(&held.log, "is not read yet after 4 s")
    });
    let show = tunnel.gateways[0].show();
    assert_eq!(show.network.restored_rules, 1);
    assert_eq!(show.peers[0].name, "other");
    comes_through_both(&tunnel);
    // The disk answers.
    held.end("files");
    until("it is taken over", || says(&held.log, "reloaded "));
    assert_eq!(tunnel.gateways[0].show().peers[0].name, "another");
    comes_through_both(&tunnel);
}

/// A keeper that outlives its gateway would keep rules into a tunnel that is gone.
pub fn the_keeper_ends_with_its_gateway_while_its_disk_hangs() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut tunnel = full();
        let held = Held::start(&mut tunnel);
        held.begin("files");
        tunnel.gateways[0].signal(Signal::SIGHUP);
        held.wait();
        tunnel.gateways[0].signal(signal);
        tunnel.gateways[0].ended();
        until("its rules go", || !rules(&tunnel.here).contains("0xca6c"));
    }
}

/// How many routes that lead nowhere there are to each prefix.
fn refusals(namespace: &Namespace) -> [usize; 2] {
    [
        ("-4 route", "unreachable 10.78.2.0/24"),
        ("-6 route", "unreachable fd99::/64"),
    ]
    .map(|(words, route)| printed(namespace, words).matches(route).count())
}

/// Two gateways refuse what is for the same prefix: each has a route of its own, and takes no other along.
pub fn gateways_leave_each_others_refusals_alone() {
    let tunnel = Tunnel::sealed(STRICT, |text, last| match last {
        1 => text
            .replace("device =", "leak = \"refuse\"\ndevice =")
            .replace("\"10.78.2.0/24\"]", "\"10.78.2.0/24\", \"fd99::/64\"]"),
        _ => text,
    });
    let other = text(&tunnel)
        .replace("lw0", "lw1")
        .replace("10.77.0.1/24", "10.88.0.1/24")
        .replace("fd77::1/64", "fd88::1/64")
        .replace("\"10.77.0.2/32\", \"fd77::2/128\", ", "")
        .replace("192.0.2.1:51820", "192.0.2.1:51821")
        .replace("192.0.2.2:51820", "192.0.2.2:51821")
        .replace("control1", "control3");
    tunnel.folder.write("3.toml", &other);
    // While the first device is down, the prefixes have no other route.
    ip(&tunnel.here, "link set lw0 down");
    assert_eq!(refusals(&tunnel.here), [1, 1]);
    let restored = |tunnel: &Tunnel| tunnel.gateways[0].show().network.restored_routes;
    let before = restored(&tunnel);
    let log = tunnel.folder.path("log3");
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut second = Gateway::with_log(&tunnel.here, &tunnel.folder, 3, program(), &log);
        assert_eq!(refusals(&tunnel.here), [2, 2]);
        second.signal(signal);
        second.ended();
        until("its routes go", || refusals(&tunnel.here) == [1, 1]);
        assert_eq!(restored(&tunnel), before, "the first one's went along");
    }
    // What a gateway left that was killed with its keeper, the next one finds and removes.
    let mut second = Gateway::with_log(&tunnel.here, &tunnel.folder, 3, program(), &log);
    kill_with_keeper(&mut second);
    assert_eq!(refusals(&tunnel.here), [2, 2]);
    let mut third = Gateway::with_log(&tunnel.here, &tunnel.folder, 3, program(), Path::new(&log));
    assert_eq!(refusals(&tunnel.here), [2, 2]);
    third.signal(Signal::SIGTERM);
    third.ended();
    until("its routes go", || refusals(&tunnel.here) == [1, 1]);
    assert_eq!(restored(&tunnel), before, "the first one's went along");
}

fn kill_with_keeper(gateway: &mut Gateway) {
    let [keeper] = children(gateway.pid())[..] else {
        panic!("one keeper");
    };
    kill(Pid::from_raw(keeper as i32), Signal::SIGKILL).unwrap();
    gateway.signal(Signal::SIGKILL);
    gateway.ended();
}
