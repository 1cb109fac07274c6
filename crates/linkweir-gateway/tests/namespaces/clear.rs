// SPDX-License-Identifier: BSD-3-Clause
//! Other programs change the system's network: nothing leaves in the clear, and what the gateway set up comes again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use linkweir_gateway::show::figures::Show;
use nix::sys::signal::Signal;

use crate::everything::{rewrite, rules, text, to_all, FAR, FAR_V6};
use crate::life::{children, comes_through};
use crate::ordinary::preloaded;
use crate::place::{cabled, config, program, Folder, Gateway, Namespace, Tunnel, STRICT};
use crate::uplink::{Traffic, Uplink};
use crate::PATIENCE;

/// Ports of the far end behind the tunnel.
const TO: [&str; 2] = ["203.0.113.7:2000", "[2001:db8:ffff::7]:2000"];

/// Waits until something holds.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What `ip` prints.
pub fn printed(namespace: &Namespace, words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    String::from_utf8(namespace.run("ip", &words).stdout).unwrap()
}

/// Runs `ip` with these words; what is not there need not be removed.
pub fn ip(namespace: &Namespace, words: &str) {
    namespace.run("ip", &words.split(' ').collect::<Vec<_>>());
}

/// Changes a setting of the kernel.
pub fn sysctl(namespace: &Namespace, setting: &str) {
    let output = namespace.run("sysctl", &["-q", "-w", setting]);
    assert!(output.status.success(), "{setting}: {output:?}");
}

/// Starts the first gateway again, whose log goes into a file.
pub fn logged(tunnel: &mut Tunnel) -> PathBuf {
    tunnel.restart_logged(1, Signal::SIGTERM, program())
}

/// Starts a gateway that is to be refused.
fn refused(namespace: &Namespace, config: &Path) -> Output {
    let gateway = env!("CARGO_BIN_EXE_linkweir-gateway");
    let words = ["20", gateway, "up", "--cleartext", config.to_str().unwrap()];
    namespace.run("timeout", &words)
}

pub fn says(log: &Path, words: &str) -> bool {
    fs::read_to_string(log).unwrap().contains(words)
}

/// A tunnel to all addresses on a host whose main table leads to all addresses as well.
pub fn full() -> Tunnel {
    let tunnel = to_all("");
    for (far, net) in [(FAR, 32), (FAR_V6, 128)] {
        let net = format!("{far}/{net}");
        tunnel.there.ip(&["address", "add", &net, "dev", "lo"]);
    }
    ip(&tunnel.here, "route add default via 192.0.2.2");
    ip(&tunnel.here, "-6 route add default via 2001:db8::2");
    tunnel
}

/// Waits until both versions of IP come through.
pub fn comes_through_both(tunnel: &Tunnel) {
    for (from, to) in ["10.77.0.1:0", "[fd77::1]:0"].into_iter().zip(TO) {
        let (a, b) = (tunnel.here.socket(from), tunnel.there.socket(to));
        comes_through(&a, &b, to, b"through the tunnel");
    }
}

/// Parts of what the gateway set up go while packets are sent all the time. The rest refuses them until all is there again.
pub fn nothing_leaves_in_the_clear_while_a_part_is_missing() {
    let tunnel = full();
    comes_through_both(&tunnel);
    let before = rules(&tunnel.here);
    let uplink = Uplink::watch(&tunnel.here, &[FAR, FAR_V6]);
    let traffic = Traffic::start(&tunnel.here, &["203.0.113.7:9", "[2001:db8:ffff::7]:9"]);
    let table = "lookup 51820";
    for disturbed in [
        &["route flush table 51820", "-6 route flush table 51820"][..],
        &[
            "rule del not fwmark 51820 table 51820",
            "-6 rule del not fwmark 51820 table 51820",
        ],
        &[
            "rule del table main suppress_prefixlength 0",
            "-6 rule del table main suppress_prefixlength 0",
        ],
        &["address flush dev lw0"],
        &["link set lw0 mtu 1000"],
        &["link set lw0 down", "link set lw0 up"],
    ] {
        for words in disturbed {
            ip(&tunnel.here, words);
        }
        comes_through_both(&tunnel);
        until("the rules are as before", || rules(&tunnel.here) == before);
        assert_eq!(uplink.in_the_clear(&tunnel.here), 0, "{disturbed:?}");
    }
    sysctl(&tunnel.here, "net.ipv6.conf.lw0.disable_ipv6=1");
    std::thread::sleep(Duration::from_millis(20));
    sysctl(&tunnel.here, "net.ipv6.conf.lw0.disable_ipv6=0");
    comes_through_both(&tunnel);
    assert_eq!(uplink.in_the_clear(&tunnel.here), 0, "IPv6 was disabled");
    assert!(rules(&tunnel.here).contains(table));
    drop(traffic);
}

/// A program that removes all rules and makes the system's own again.
pub fn rules_that_all_go_at_once_come_again() {
    let mut tunnel = full();
    let log = logged(&mut tunnel);
    comes_through_both(&tunnel);
    let ours = || {
        let all = rules(&tunnel.here);
        let ours = all.lines().filter(|line| line.contains("0xca6c"));
        ours.map(str::to_string).collect::<Vec<_>>()
    };
    let before = ours();
    assert_eq!(before.len(), 6);
    for (round, all) in ["-4", "-6", "-4"].iter().enumerate() {
        ip(&tunnel.here, &format!("{all} rule flush"));
        ip(
            &tunnel.here,
            &format!("{all} rule add table main priority 32766"),
        );
        ip(
            &tunnel.here,
            &format!("{all} rule add table default priority 32767"),
        );
        until("the rules are as before", || ours() == before);
        comes_through_both(&tunnel);
        tunnel.gateways[0].wait_until("it is counted", |show| {
            show.network.restored_rules >= 3 * (round as u64 + 1)
        });
    }
    until("it is said", || {
        says(
            &log,
            "another program changed what the tunnel needs; added again: ",
        )
    });
}

/// The firewall of the page about networks: without any rule of the gateway, and without a keeper that adds them.
pub fn a_firewall_refuses_what_rules_no_longer_do() {
    const PAGE: &str = include_str!("../../../../docs/howto/network.md");
    let tunnel = full();
    comes_through_both(&tunnel);
    let [keeper] = children(tunnel.gateways[0].pid())[..] else {
        panic!("one keeper");
    };
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(keeper as i32), Signal::SIGKILL).unwrap();
    let uplink = Uplink::watch(&tunnel.here, &[FAR, FAR_V6]);
    for priority in [32702, 32701, 32700] {
        ip(&tunnel.here, &format!("rule del priority {priority}"));
        ip(&tunnel.here, &format!("-6 rule del priority {priority}"));
    }
    let sockets = ["192.0.2.1:0", "[2001:db8::1]:0"].map(|from| tunnel.here.socket(from));
    let send = || {
        for _ in 0..5 {
            for (socket, to) in sockets.iter().zip(TO) {
                let _ = socket.send_to(b"in the clear", to);
            }
        }
    };
    let clear = || uplink.in_the_clear(&tunnel.here);
    send();
    until("nothing refuses them", || clear() == 10);
    let commands = PAGE
        .lines()
        .filter(|line| line.contains("tables -A OUTPUT"));
    let commands: Vec<String> = commands.map(|line| line.replace("eth0", "out")).collect();
    assert_eq!(commands.len(), 4);
    for words in commands {
        let words: Vec<&str> = words.split(' ').collect();
        let output = tunnel.here.run(words[0], &words[1..]);
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
    send();
    assert_eq!(clear(), 10, "the firewall refuses them");
    // The tunnel's own datagrams pass it.
    let before = tunnel.gateways[1].show().peers[0].received_bytes;
    ip(&tunnel.here, "route add 203.0.113.0/24 dev lw0");
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:0"),
        tunnel.there.socket(TO[0]),
    );
    comes_through(&a, &b, TO[0], b"through the tunnel");
    assert!(tunnel.gateways[1].show().peers[0].received_bytes > before);
}

/// The real one, started and stopped three times. It removes the rules and routes of other programs when it configures a
/// device, with the defaults of ManageForeignRoutingPolicyRules, ManageForeignRoutes and KeepConfiguration.
pub fn restarts_of_systemd_networkd_take_nothing_along() {
    const SCRIPT: &str = "set -e
mount -t sysfs -o ro none /sys
mount -t tmpfs none /run
mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp /run/systemd/network
printf '[Match]\\nName=late*\\n[Network]\\nLinkLocalAddressing=no\\nIPv6AcceptRA=no\\n[Route]\\nDestination=198.51.100.0/24\\nScope=link\\n' \
  > /run/systemd/network/10-late.network
chown -R systemd-network: /run/systemd/netif
for round in 1 2 3; do
  ip rule add fwmark 7 table 99 priority 31000 protocol static
  ip -6 rule add fwmark 7 table 99 priority 31000 protocol static
  ip route add unreachable 10.99.0.0/16 protocol static
  SYSTEMD_LOG_LEVEL=debug setpriv --pdeathsig KILL /lib/systemd/systemd-networkd > \"$1.$round\" 2>&1 &
  networkd=$!
  for try in $(seq 200); do grep -q 'Enumeration completed' \"$1.$round\" && break; sleep 0.05; done
  ip link add late$round type veth peer name peer$round
  ip link set late$round up
  for try in $(seq 200); do ip rule | grep -q 31000 || break; sleep 0.05; done
  for try in $(seq 200); do ip -6 rule | grep -q 31000 || break; sleep 0.05; done
  sleep 0.2
  kill $networkd
  wait $networkd
  { ip -4 rule; ip -6 rule; } > \"$1.rules.$round\"
  ip route > \"$1.routes.$round\"
done
";
    // One with a route that leads nowhere, too.
    let refusal = "unreachable 10.98.0.0/16 proto kernel";
    let tunnel = full();
    let more = text(&tunnel).replace("\"0.0.0.0/0\"", "\"0.0.0.0/0\", \"10.98.0.0/16\"");
    rewrite(&tunnel, &more);
    until("it is refused", || {
        printed(&tunnel.here, "route").contains(refusal)
    });
    comes_through_both(&tunnel);
    let before = rules(&tunnel.here);
    let uplink = Uplink::watch(&tunnel.here, &[FAR, FAR_V6]);
    let traffic = Traffic::start(&tunnel.here, &["203.0.113.7:9", "[2001:db8:ffff::7]:9"]);
    let log = tunnel.folder.path("networkd");
    let log = log.to_str().unwrap();
    let script = tunnel.folder.write("restart.sh", SCRIPT);
    let words = ["-m", "bash", script.to_str().unwrap(), log];
    let output = tunnel.here.run("unshare", &words);
    assert!(output.status.success(), "{output:?}");
    for round in 1..4 {
        let text = fs::read_to_string(format!("{log}.{round}")).unwrap();
        assert!(
            text.contains("Removing foreign routing policy rule"),
            "round {round}: {text}"
        );
        let kept = |what| fs::read_to_string(format!("{log}.{what}.{round}")).unwrap();
        assert_eq!(kept("rules"), before, "only foreign rules are removed");
        let routes = kept("routes");
        assert!(!routes.contains("10.99"), "foreign: {routes}");
        assert!(routes.contains(refusal), "ours: {routes}");
    }
    comes_through_both(&tunnel);
    assert_eq!(uplink.in_the_clear(&tunnel.here), 0);
    let network = tunnel.gateways[0].show().network;
    assert_eq!((network.restored_rules, network.restored_routes), (0, 0));
    drop(traffic);
}

/// A second gateway with a mark of its own comes and goes.
pub fn gateways_leave_each_others_rules_alone() {
    let tunnel = full();
    let before = rules(&tunnel.here);
    let other = text(&tunnel)
        .replace("lw0", "lw1")
        .replace("10.77.0.1/24", "10.88.0.1/24")
        .replace("fd77::1/64", "fd88::1/64")
        .replace("192.0.2.1:51820", "192.0.2.1:51821")
        .replace("192.0.2.2:51820", "192.0.2.2:51821")
        .replace("control1", "control3");
    // With the same mark it would share the table.
    tunnel.folder.write("3.toml", &other);
    let output = refused(&tunnel.here, &tunnel.folder.path("3.toml"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    for words in ["0.0.0.0/0", "dev lw0", "table 51820"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    assert_eq!(
        rules(&tunnel.here),
        before,
        "a start that failed leaves nothing"
    );

    let marked = other.replace("device =", "fwmark = 9999\ndevice =");
    tunnel.folder.write("3.toml", &marked);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let log = tunnel.folder.path("log3");
        let mut second = Gateway::with_log(&tunnel.here, &tunnel.folder, 3, program(), &log);
        assert_eq!(rules(&tunnel.here).matches("lookup 9999").count(), 2);
        second.signal(signal);
        second.ended();
        until("its rules go", || !rules(&tunnel.here).contains("0x270f"));
        assert_eq!(rules(&tunnel.here), before);
    }
    let show = tunnel.gateways[0].show();
    assert_eq!(show.network.restored_rules, 0, "{show:?}");
}

/// Routes of other programs to what is behind a peer: `ip route add` and what removes it.
fn foreign() -> [(&'static str, &'static str); 8] {
    [
        (
            "route add 10.78.2.0/24 via 192.0.2.2",
            "route del 10.78.2.0/24 via 192.0.2.2",
        ),
        (
            "address add 10.78.2.9/24 dev spare",
            "address del 10.78.2.9/24 dev spare",
        ),
        (
            "route add blackhole 10.78.2.0/24",
            "route del blackhole 10.78.2.0/24",
        ),
        ("route add 10.78.2.0/24 dev spare", "link del spare"),
        (
            "-6 route add fd99::/64 via 2001:db8::2",
            "-6 route del fd99::/64 via 2001:db8::2",
        ),
        (
            "-6 address add fd99::9/64 dev spare nodad",
            "-6 address del fd99::9/64 dev spare",
        ),
        (
            "-6 route add blackhole fd99::/64",
            "-6 route del blackhole fd99::/64",
        ),
        ("-6 route add fd99::/64 dev spare", "link del spare"),
    ]
}

fn add_spare(namespace: &Namespace) {
    ip(namespace, "link add spare type veth peer name spare2");
    ip(namespace, "link set spare2 up");
    ip(namespace, "link set spare up");
}

pub fn a_foreign_route_is_named_and_ours_is_added_when_it_goes() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let with = config(&folder, 1, STRICT)
        .replace("\"10.78.2.0/24\"]", "\"10.78.2.0/24\", \"fd99::/64\"]")
        .replace("user = \"root\"\n", "");
    let without = with.replace(", \"10.78.2.0/24\", \"fd99::/64\"]", "]");
    let log = folder.path("log");
    let routed = |words: &str| {
        let net = if words.contains("fd99") {
            "fd99::/64"
        } else {
            "10.78.2.0/24"
        };
        let ours = format!("{net} dev lw0");
        let version = if net.contains(':') {
            "-6 route"
        } else {
            "-4 route"
        };
        (net, move |here: &Namespace| {
            printed(here, version).contains(&ours)
        })
    };
    for (add, remove) in foreign() {
        let (net, ours) = routed(add);
        // It is there at the start.
        add_spare(&here);
        ip(&here, add);
        folder.write("1.toml", &with);
        let gateway = Gateway::with_log(&here, &folder, 1, program(), &log);
        until("it is named", || {
            says(&log, &format!("{net} is not routed through the tunnel"))
        });
        gateway.wait_until("it is shown", |show| show.network.missing == 1);
        ip(&here, remove);
        until("ours is there", || ours(&here));
        gateway.wait_until("nothing is missing", |show| show.network.missing == 0);
        until("it is said", || says(&log, "are there now"));

        // It is there when a reload would add ours.
        folder.write("1.toml", &without);
        gateway.signal(Signal::SIGHUP);
        until("ours goes", || !ours(&here));
        add_spare(&here);
        ip(&here, add);
        folder.write("1.toml", &with);
        gateway.signal(Signal::SIGHUP);
        gateway.wait_until("it is shown", |show| show.network.missing == 1);
        ip(&here, remove);
        until("ours is there", || ours(&here));
        ip(&here, "link del spare");

        // It replaces ours.
        let version = if net.contains(':') { "-6" } else { "-4" };
        let kind = if add.contains("blackhole") {
            "blackhole "
        } else {
            ""
        };
        let by = if kind.is_empty() { " dev out" } else { "" };
        ip(&here, &format!("{version} route del {net} dev lw0"));
        until("ours comes again", || ours(&here));
        ip(&here, &format!("{version} route replace {kind}{net}{by}"));
        gateway.wait_until("it is shown", |show| show.network.missing == 1);
        ip(&here, &format!("{version} route del {kind}{net}{by}"));
        until("ours is there", || ours(&here));
    }
    // With leak = "refuse" the start is refused.
    ip(&here, foreign()[0].0);
    folder.write(
        "1.toml",
        &with.replace("device =", "leak = \"refuse\"\ndevice ="),
    );
    let output = refused(&here, &folder.path("1.toml"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("10.78.2.0/24 via 192.0.2.2 dev out"),
        "{error}"
    );
}

/// A tunnel to a few prefixes, with the privileges of an installed gateway.
fn partial() -> Tunnel {
    Tunnel::sealed(STRICT, |text, _| text.replace("user = \"root\"\n", ""))
}

pub fn what_another_program_changes_of_the_device_is_restored() {
    let mut tunnel = partial();
    let log = logged(&mut tunnel);
    let here = &tunnel.here;
    let is_whole = || {
        let addresses = printed(here, "address show dev lw0");
        let routes = printed(here, "-4 route") + &printed(here, "-6 route");
        let has = |text: &str, all: &[&str]| all.iter().all(|one| text.contains(one));
        has(&addresses, &["10.77.0.1/24", "fd77::1/64", "mtu 1440"])
            && has(
                &routes,
                &[
                    "10.78.2.0/24 dev lw0",
                    "10.77.0.0/24 dev lw0",
                    "fd77::/64 dev lw0",
                ],
            )
    };
    until("it is whole", is_whole);
    let count = |show: &Show| {
        let network = &show.network;
        network.restored_routes + network.restored_addresses + network.restored_mtus
    };
    for words in [
        "route del 10.78.2.0/24 dev lw0",
        "route del 10.77.0.0/24 dev lw0",
        "-6 route del fd77::/64 dev lw0",
        "-4 address flush dev lw0",
        "-6 address flush dev lw0",
        "link set lw0 mtu 1279",
        "link set lw0 mtu 576",
        "link set lw0 mtu 9000",
    ] {
        let before = count(&tunnel.gateways[0].show());
        ip(here, words);
        tunnel.gateways[0].wait_until(words, |show| count(show) > before);
        until(words, is_whole);
    }
    sysctl(here, "net.ipv6.conf.lw0.disable_ipv6=1");
    tunnel.gateways[0].wait_until("IPv6 is missed", |show| show.network.missing == 1);
    until("it is said", || {
        says(&log, "IPv6 is disabled on the tunnel's device")
    });
    assert!(!printed(here, "address show dev lw0").contains("fd77"));
    sysctl(here, "net.ipv6.conf.lw0.disable_ipv6=0");
    until("IPv6 is there again", is_whole);
    tunnel.gateways[0].wait_until("nothing is missed", |show| show.network.missing == 0);
    for words in ["link set lw0 down", "link set lw0 up"] {
        ip(here, words);
    }
    until("it was down", is_whole);
}

/// Without all addresses, too, if that is asked for.
pub fn prefixes_are_refused_while_their_route_is_missing() {
    for refuses in [true, false] {
        let tunnel = Tunnel::sealed(STRICT, |text, _| match refuses {
            true => text.replace("device =", "leak = \"refuse\"\ndevice ="),
            false => text,
        });
        ip(&tunnel.here, "route add default via 192.0.2.2");
        let uplink = Uplink::watch(&tunnel.here, &["10.78.2.7"]);
        let traffic = Traffic::start(&tunnel.here, &["10.78.2.7:9"]);
        ip(&tunnel.here, "link set lw0 down");
        let clear = || uplink.in_the_clear(&tunnel.here);
        if refuses {
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(clear(), 0);
        } else {
            until("packets leave in the clear", || clear() > 0);
        }
        drop(traffic);
    }
}

/// A reload changes `leak`, of a tunnel to all addresses and of one to a prefix.
pub fn a_reload_may_allow_leaks_and_refuse_them() {
    let tunnel = to_all("");
    let all = text(&tunnel);
    let count = || {
        let routes = printed(&tunnel.here, "-4 route");
        rules(&tunnel.here).matches("unreachable").count()
            + routes.matches("unreachable 10.99").count()
    };
    assert_eq!(count(), 2, "a rule of each version of IP");
    let prefix = |text: &str| text.replace("\"0.0.0.0/0\"", "\"0.0.0.0/0\", \"10.99.0.0/16\"");
    for (text, expected) in [
        (all.replace("device =", "leak = \"allow\"\ndevice ="), 0),
        (prefix(&all), 3),
        (
            prefix(&all).replace("device =", "leak = \"allow\"\ndevice ="),
            0,
        ),
        (prefix(&all), 3),
        (all.clone(), 2),
    ] {
        rewrite(&tunnel, &text);
        until("it is taken over", || count() == expected);
    }
}

/// Another program adds its default route to the table of the tunnel.
pub fn a_foreign_route_in_the_tunnels_table_is_noticed() {
    let mut tunnel = full();
    let log = logged(&mut tunnel);
    for (foreign, missing) in [
        (
            "default via 192.0.2.2 dev out",
            "0.0.0.0/0 via 192.0.2.2 dev out table 51820",
        ),
        (
            "203.0.113.0/24 via 192.0.2.2 dev out",
            "203.0.113.0/24 via 192.0.2.2 dev out table 51820",
        ),
    ] {
        ip(
            &tunnel.here,
            &format!("route replace {foreign} table 51820"),
        );
        tunnel.gateways[0].wait_until(foreign, |show| show.network.missing == 1);
        until(foreign, || says(&log, missing));
        ip(&tunnel.here, &format!("route del {foreign} table 51820"));
        tunnel.gateways[0].wait_until(foreign, |show| show.network.missing == 0);
        comes_through_both(&tunnel);
    }
}

/// Another program removes a rule as soon as it is there.
pub fn two_programs_do_not_fight_at_full_speed() {
    let mut tunnel = full();
    let log = logged(&mut tunnel);
    let loops = "for i in $(seq 400); do ip rule del priority 32701 2>/dev/null; sleep 0.005; done";
    tunnel.here.run("bash", &["-c", loops]);
    until("it is said", || says(&log, "as fast as they are added"));
    let show = tunnel.gateways[0].show();
    // It took 2 s at least: 7 times until the pause is 0.1 s, and ten times a second from then on.
    assert!(show.network.contested, "{:?}", show.network);
    comes_through_both(&tunnel);
    // The other program has stopped.
    tunnel.gateways[0].wait_until("it is over", |show| !show.network.contested);
}

/// Counts what epoll_wait(2) of a gateway returns in a file: by key, from 30 on together, the timer's at 31, and the returns.
const COUNTED_EVENTS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	static int (*real)(int, struct epoll_event *, int, int);
	static volatile unsigned long *counts;
	int answer;

	if (real == NULL) {
		int file = open(getenv("EVENTS"), O_RDWR);

		real = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
		counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		close(file);
	}
	answer = real(fd, events, most, timeout);
	/* The keeper is another process, whose sleeps the system counts. */
	if (strcmp(program_invocation_name, "/proc/self/exe") == 0)
		return answer;
	for (int i = 0; i < answer; ++i) {
		unsigned long long key = events[i].data.u64;

		++counts[key == ~0ULL ? 31 : key < 30 ? key : 30];
	}
	++counts[32];
	return answer;
}
"#;

/// Switches of the context of these threads of a process so far.
fn switches(pid: u32, counts: impl Fn(u32) -> bool) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let numbers = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
    let counted = numbers.filter(|number| counts(number.parse().unwrap()));
    let statuses = counted
        .map(|number| fs::read_to_string(format!("/proc/{pid}/task/{number}/status")).unwrap());
    let all: String = statuses.collect();
    let lines = all.lines().filter(|line| line.contains("ctxt_switches"));
    let counts = lines.map(|line| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap());
    counts.sum()
}

/// Nothing happens, and nothing wakes up: neither the keeper, nor any thread of the gateway but the one of packets, and that
/// one for its timer alone: the tick of its sessions.
pub fn the_watch_sleeps_while_nothing_changes() {
    /// Events of the gateway's loop: the key of datagrams, those that the system, the keeper, the resolver and clients wake it
    /// by, its timer's, and the returns.
    const DATAGRAMS: usize = 1;
    const WATCHED: std::ops::Range<usize> = 2..31;
    const TIMER: usize = 31;
    const RETURNS: usize = 32;
    let mut tunnel = full();
    tunnel.gateways[0].signal(Signal::SIGTERM);
    tunnel.gateways[0].ended();
    // The kernel itself sends packets over a new device: it asks three times and more, seconds apart, for routers of IPv6.
    sysctl(&tunnel.here, "net.ipv6.conf.default.router_solicitations=0");
    let file = tunnel.folder.write("events", &"\0".repeat(4096));
    let mut command = program();
    command
        .arg("up")
        .arg(tunnel.folder.path("1.toml"))
        .env(
            "LD_PRELOAD",
            preloaded(&tunnel.folder, "sleeps", COUNTED_EVENTS),
        )
        .env("EVENTS", &file);
    let control = tunnel.folder.path("control1");
    tunnel.gateways[0] = Gateway::started(&tunnel.here, command, &control);
    comes_through_both(&tunnel);
    let gateway = tunnel.gateways[0].pid();
    let [keeper] = children(gateway)[..] else {
        panic!("one keeper");
    };
    // An address of IPv6 on the uplink is news when the kernel has found that no other host has it.
    until("nothing is tentative", || {
        printed(&tunnel.here, "-6 address show tentative").is_empty()
    });
    let seen = || {
        let bytes = fs::read(&file).unwrap();
        let counts = bytes
            .chunks_exact(8)
            .map(|one| u64::from_ne_bytes(one.try_into().unwrap()));
        let threads = (
            switches(keeper, |_| true),
            switches(gateway, |task| task != gateway),
        );
        (counts.take(33).collect::<Vec<_>>(), threads)
    };
    // What is still to be done about what was set up may take longer on a busy machine.
    let mut rest = seen();
    let settled = Instant::now();
    let (before, threads) = loop {
        std::thread::sleep(Duration::from_millis(300));
        let ((counts, threads), (counts_before, threads_before)) = (seen(), rest);
        let quiet = threads == threads_before
            && counts[0] == counts_before[0]
            && counts[WATCHED] == counts_before[WATCHED];
        if quiet || settled.elapsed() > PATIENCE {
            break (counts, threads);
        }
        rest = (counts, threads);
    };
    assert!(
        before[DATAGRAMS] > 0 && before[RETURNS] > 0,
        "counted: {before:?}"
    );
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(2));
    let (after, threads_after) = seen();
    let new: Vec<u64> = after
        .iter()
        .zip(&before)
        .map(|(after, before)| after - before)
        .collect();
    assert_eq!(
        threads_after, threads,
        "the keeper, or a thread of the gateway"
    );
    assert_eq!(new[0], 0, "packets: {new:?}");
    assert_eq!(new[WATCHED].iter().sum::<u64>(), 0, "{new:?}");
    // Sessions tick four times a second. Each tick wakes it twice, as the timer may have been set for an earlier alarm.
    let most = 8 * (begun.elapsed().as_secs() + 1) + 4 * new[DATAGRAMS];
    assert!(new[TIMER] <= most, "{new:?}");
}

/// Without its keeper nothing is restored, which must be said.
pub fn the_end_of_the_keeper_is_said() {
    let mut tunnel = full();
    let log = logged(&mut tunnel);
    let [keeper] = children(tunnel.gateways[0].pid())[..] else {
        panic!("one keeper");
    };
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(keeper as i32), Signal::SIGKILL).unwrap();
    until("it is said", || says(&log, "restart the gateway"));
    assert!(!tunnel.gateways[0].show().network.watched);
    comes_through_both(&tunnel);
    // The rules stay, so that nothing leaves in the clear. The next gateway takes them over, and removes them at its end.
    tunnel.gateways[0].signal(Signal::SIGKILL);
    tunnel.gateways[0].ended();
    assert!(rules(&tunnel.here).contains("unreachable"));
    tunnel.restart(1);
    comes_through_both(&tunnel);
    tunnel.gateways[0].signal(Signal::SIGTERM);
    tunnel.gateways[0].ended();
    until("its rules go", || !rules(&tunnel.here).contains("0xca6c"));
}
