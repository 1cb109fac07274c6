// SPDX-License-Identifier: BSD-3-Clause
//! The keeper's own troubles: routes that take long to compare, a disk that hangs, a neighbour with the same prefixes.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use crate::clear::{comes_through_both, full, ip, printed, says, until};
use crate::everything::{rewrite, rules, text, FAR, FAR_V6};
use crate::life::{children, gone};
use crate::ordinary::preloaded;
use crate::place::{program, Gateway, Namespace, Tunnel, STRICT};
use crate::uplink::{Traffic, Uplink};

/// While a file is there, lists of routes have no end, a disk that holds a configuration does not answer, or the system refuses
/// a call. The kernel knows no rules of IPv6 while `ipv6` is there: they are asked for with an unknown family, which the real
/// kernel refuses as one without IPv6 does.
const HELD: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int is_there(const char *what)
{
	char file[4096];

	snprintf(file, sizeof(file), "%s.%s", getenv("HOLD"), what);
	return access(file, F_OK) == 0;
}

/* Only the keeper is meant, which the gateway starts by this name. */
static int is_refused(const char *what)
{
	return strcmp(program_invocation_name, "/proc/self/exe") == 0 && is_there(what);
}

static int is_refused_once(const char *what)
{
	char file[4096];

	snprintf(file, sizeof(file), "%s.%s", getenv("HOLD"), what);
	return is_refused(what) && unlink(file) == 0;
}

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
	if (count >= sizeof(*header) && header->nlmsg_type == RTM_DELRULE && is_refused("removals")) {
		errno = ENOBUFS;
		return -1;
	}
	if (count >= sizeof(*header) && header->nlmsg_type == RTM_NEWRULE && is_there("ipv6")) {
		char copy[65536];
		struct nlmsghdr *one = (struct nlmsghdr *)copy;
		size_t left = count;

		memcpy(copy, bytes, count);
		for (; NLMSG_OK(one, left); one = NLMSG_NEXT(one, left)) {
			struct rtmsg *rule = NLMSG_DATA(one);

			if (rule->rtm_family == AF_INET6)
				rule->rtm_family = AF_DECnet;
		}
		return real(fd, copy, count, flags);
	}
	return real(fd, bytes, count, flags);
}

int epoll_create1(int flags)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "epoll_create1");

	if (is_refused("epoll_create1")) {
		errno = EMFILE;
		return -1;
	}
	return real(flags);
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	int (*real)(int, struct epoll_event *, int, int) =
		(int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");

	if (is_refused("epoll_wait")) {
		errno = EBADF;
		return -1;
	}
	return real(fd, events, most, timeout);
}

int socketpair(int family, int kind, int protocol, int fds[2])
{
	int (*real)(int, int, int, int *) = (int (*)(int, int, int, int *))dlsym(RTLD_NEXT, "socketpair");

	if (is_refused("socketpair")) {
		errno = EMFILE;
		return -1;
	}
	return real(family, kind, protocol, fds);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))
			dlsym(RTLD_NEXT, "pthread_create");

	if (is_refused("pthread_create"))
		return EAGAIN;
	return real(thread, attributes, start, argument);
}

/* A keeper without a clock panics. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);

	if (real == NULL)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	if (is_refused_once("clock_gettime")) {
		errno = EINVAL;
		return -1;
	}
	return real(clock, now);
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
        let log = tunnel.folder.path("log");
        let stderr = fs::File::create(&log).unwrap();
        Held::start_with(tunnel, log, stderr.into(), &[])
    }

    /// The same with this standard error, and with `what` held up from the beginning.
    fn start_with(tunnel: &mut Tunnel, log: PathBuf, stderr: Stdio, what: &[&str]) -> Held {
        let keepers = children(tunnel.gateways[0].pid());
        tunnel.gateways[0].signal(Signal::SIGTERM);
        tunnel.gateways[0].ended();
        // A keeper that still removed rules would remove those of the next gateway, which its keeper would count.
        keepers.into_iter().for_each(gone);
        let hold = tunnel.folder.path("hold");
        let held = Held { hold, log };
        for one in what {
            held.begin(one);
        }
        let mut command = program();
        command
            .arg("up")
            .arg(tunnel.folder.path("1.toml"))
            .env("LD_PRELOAD", preloaded(&tunnel.folder, "held", HELD))
            .env("HOLD", &held.hold)
            .stderr(stderr);
        let control = tunnel.folder.path("control1");
        tunnel.gateways[0] = Gateway::started(&tunnel.here, command, &control);
        comes_through_both(tunnel);
        held
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
        self.allow(what);
    }

    /// No longer refuses `what`.
    fn allow(&self, what: &str) {
        fs::remove_file(self.hold.with_extension(what)).unwrap();
    }
}

/// Rules keep packets from leaving in the clear, so they stay while the gateway runs, whatever the system refuses.
pub fn a_reload_that_the_system_refuses_leaves_the_rules() {
    let mut tunnel = full();
    let held = Held::start(&mut tunnel);
    let before = rules(&tunnel.here);
    let said = |words: &str| {
        let log = fs::read_to_string(&held.log).unwrap();
        log.matches(words).count()
    };
    let calls = ["epoll_create1", "socketpair", "pthread_create"];
    for (at, call) in calls.iter().enumerate() {
        held.begin(call);
        tunnel.gateways[0].signal(Signal::SIGHUP);
        until("it is said", || {
            said("nothing changed: the system lacks") == at + 1
        });
        held.allow(call);
        assert_eq!(rules(&tunnel.here), before, "{call}");
        ip(&tunnel.here, "rule del priority 32701");
        until("the rules are as before", || rules(&tunnel.here) == before);
    }
    let another = text(&tunnel).replace("name = \"other\"", "name = \"another\"");
    rewrite(&tunnel, &another);
    until("it is taken over", || said("reloaded ") == 1);
    comes_through_both(&tunnel);
}

/// The kernel may load IPv6 after the gateway has started.
pub fn rules_of_ipv6_come_with_ipv6() {
    let mut tunnel = full();
    let log = tunnel.folder.path("log");
    let held = Held::start_with(&mut tunnel, log, Stdio::inherit(), &["ipv6"]);
    let is_there = || printed(&tunnel.here, "-6 rule").contains("lookup 51820");
    tunnel.gateways[0].wait_until("it is reported", |show| show.network.missing == 1);
    assert!(!is_there());
    held.allow("ipv6");
    // Each device gets an address then.
    ip(&tunnel.here, "-6 address add fd66::1/64 dev out");
    until("the rules are there", is_there);
    tunnel.gateways[0].wait_until("nothing is missing", |show| show.network.missing == 0);
}

/// A reload that leads to fewer addresses of IPv6.
fn narrow(tunnel: &Tunnel) {
    rewrite(tunnel, &text(tunnel).replace("\"::/0\"", "\"2000::/3\""));
}

fn has_rules_v6(tunnel: &Tunnel) -> bool {
    printed(&tunnel.here, "-6 rule").contains("0xca6c")
}

/// If rules went before the routes that take their place are there, packets would leave in the clear between.
pub fn a_reload_removes_rules_when_the_routes_instead_of_them_are_there() {
    let mut tunnel = full();
    let held = Held::start(&mut tunnel);
    let before = printed(&tunnel.here, "-4 rule");
    let uplink = Uplink::watch(&tunnel.here, &[FAR, FAR_V6]);
    let _traffic = Traffic::start(&tunnel.here, &["203.0.113.7:9", "[2001:db8:ffff::7]:9"]);
    held.begin("lists");
    ip(&tunnel.here, "route flush table 51820");
    held.wait();
    narrow(&tunnel);
    until("it is taken over", || says(&held.log, "reloaded "));
    // The thread of rules handles what was asked of it before what it hears.
    ip(&tunnel.here, "rule del priority 32701");
    until("the rules are as before", || {
        printed(&tunnel.here, "-4 rule") == before
    });
    assert!(has_rules_v6(&tunnel), "routes are still compared");
    held.end("lists");
    until("the rules go", || !has_rules_v6(&tunnel));
    comes_through_both(&tunnel);
    assert_eq!(uplink.in_the_clear(&tunnel.here), 0);
}

/// Rules that a reload could not remove are removed later, also by the end of the gateway.
pub fn what_a_reload_could_not_remove_goes_later() {
    for at_the_end in [false, true] {
        let mut tunnel = full();
        let held = Held::start(&mut tunnel);
        held.begin("removals");
        narrow(&tunnel);
        tunnel.gateways[0].wait_until("it is reported", |show| {
            let all = &show.network.missing_first;
            all.iter().any(|what| what.contains("cannot remove"))
        });
        assert!(has_rules_v6(&tunnel));
        if at_the_end {
            tunnel.gateways[0].signal(Signal::SIGSTOP);
            let [keeper] = children(tunnel.gateways[0].pid())[..] else {
                panic!("one keeper");
            };
            kill(Pid::from_raw(keeper as i32), Signal::SIGSTOP).unwrap();
            held.allow("removals");
            tunnel.gateways[0].signal(Signal::SIGKILL);
            tunnel.gateways[0].ended();
            kill(Pid::from_raw(keeper as i32), Signal::SIGCONT).unwrap();
        } else {
            held.allow("removals");
        }
        until("the rules go", || !has_rules_v6(&tunnel));
    }
}

/// A thread of the keeper fails: the keeper ends, which is said, and rules stay.
pub fn a_keeper_that_fails_ends_and_leaves_the_rules() {
    let mut tunnel = full();
    let held = Held::start(&mut tunnel);
    held.begin("epoll_wait");
    ip(&tunnel.here, "rule add priority 31000 table 99");
    ip(&tunnel.here, "rule del priority 31000");
    until("it is said", || says(&held.log, "restart the gateway"));
    assert!(!tunnel.gateways[0].show().network.watched);
    assert_eq!(rules(&tunnel.here).matches("0xca6c").count(), 6);
    comes_through_both(&tunnel);
}

/// Even if nothing takes what it writes.
pub fn a_keeper_that_panics_ends_while_its_log_is_not_read() {
    let mut tunnel = full();
    let (_reader, writer) = full_pipe();
    let log = tunnel.folder.path("log");
    let held = Held::start_with(&mut tunnel, log, writer.into(), &[]);
    held.begin("clock_gettime");
    ip(&tunnel.here, "rule add priority 31000 table 99");
    tunnel.gateways[0].wait_until("the keeper has ended", |show| !show.network.watched);
    assert_eq!(rules(&tunnel.here).matches("0xca6c").count(), 6);
    comes_through_both(&tunnel);
}

/// A pipe that takes no byte more.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = nix::unistd::pipe2(OFlag::O_CLOEXEC).unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while nix::unistd::write(&writer, &[0; 4096]).is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (reader, writer)
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
