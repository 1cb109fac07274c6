// SPDX-License-Identifier: BSD-3-Clause
//! What happens to the network and around the gateways.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rand_pcg::rand_core::Rng;
use rand_pcg::Pcg64;

use super::sites::{address_of, connect, flood, Sites, ROUTERS, UPLINKS};
use super::traffic::Traffic;
use super::{Ledger, RECOVERY};
use crate::place::{keygen, program, Gateway};

/// How soon a gateway must have made again what was removed.
const RESTORED: Duration = Duration::from_secs(3);

/// A kind of event: what it is called, whether it takes the only way away, and what it does to a site.
type Kind = (&'static str, bool, fn(&mut Events, &mut Sites, usize));

const KINDS: &[Kind] = &[
    (
        "a foreign route comes and goes",
        false,
        Events::foreign_route,
    ),
    (
        "a more specific route to the peer comes and goes",
        false,
        Events::way_to_peer,
    ),
    ("a foreign rule comes and goes", false, Events::foreign_rule),
    (
        "a foreign device comes and goes",
        false,
        Events::foreign_link,
    ),
    (
        "the uplink has a second address for a while",
        false,
        Events::second_address,
    ),
    ("the uplink's address is confirmed", false, Events::renewal),
    (
        "the uplink's MTU changes and changes back",
        false,
        Events::uplink_mtu,
    ),
    (
        "the peer's name has no address for a while",
        false,
        Events::no_name,
    ),
    (
        "the peer's name has another address for a while",
        false,
        Events::wrong_name,
    ),
    ("the configuration changes", false, Events::reload),
    (
        "the configuration is rubbish for a while",
        false,
        Events::rubbish,
    ),
    (
        "the program that reports the capacity floods",
        false,
        Events::floods,
    ),
    ("nobody reads the log for a while", false, Events::log_stops),
    (
        "a route into the tunnel is removed",
        false,
        Events::route_removed,
    ),
    (
        "a rule of the tunnel is removed",
        false,
        Events::rule_removed,
    ),
    (
        "the tunnel's device has a small MTU",
        false,
        Events::small_mtu,
    ),
    (
        "IPv6 is disabled on the tunnel's device for a while",
        false,
        Events::no_ipv6,
    ),
    (
        "a neighbour gateway starts, or stops",
        false,
        Events::neighbour,
    ),
    ("the uplink is down for a while", true, Events::uplink_down),
    (
        "the tunnel's device is down for a while",
        true,
        Events::device_down,
    ),
    (
        "the tunnel's address is removed",
        true,
        Events::address_removed,
    ),
    (
        "the route of the tunnel's address is removed",
        true,
        Events::own_route_removed,
    ),
    (
        "the uplink has no route for a while",
        true,
        Events::no_route,
    ),
];

pub struct Events {
    random: Pcg64,
    ledger: Ledger,
    /// Another gateway in each site.
    neighbours: [Option<Gateway>; 2],
}

impl Events {
    pub fn new(random: Pcg64, ledger: Ledger) -> Events {
        Events {
            random,
            ledger,
            neighbours: [None, None],
        }
    }

    /// Something happens to one of the sites, and is over on return.
    pub fn happen(&mut self, sites: &mut Sites, traffic: &Traffic) {
        let (name, takes_way, act) = KINDS[self.below(KINDS.len() as u32) as usize];
        let at = self.below(2) as usize;
        let what = format!("{}: {name}", ["here", "there"][at]);
        let came_ns = takes_way.then(|| {
            let (came_ns, voice) = traffic.judge(&self.ledger);
            let history = self.ledger.history();
            assert!(voice.lost.is_empty(), "{voice:?} before {what}\n{history}");
            came_ns
        });
        self.ledger.note(&what);
        act(self, sites, at);
        let until_ns = self.ledger.now_ns();
        if let Some(came_ns) = came_ns {
            let again_ns = traffic.wait_for_voice(until_ns, RECOVERY, &format!("after: {what}"));
            self.ledger.gap(came_ns, again_ns, &what);
            self.ledger.note(&format!(
                "back after {} ms",
                (again_ns - until_ns) / 1_000_000
            ));
        }
    }

    /// Ends what lasts.
    pub fn end(&mut self, _sites: &mut Sites, _traffic: &Traffic) {
        for mut gateway in self.neighbours.iter_mut().filter_map(Option::take) {
            gateway.signal(Signal::SIGTERM);
            gateway.ended();
        }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random.next_u32() % bound
    }

    /// Lets some time pass.
    fn pause(&mut self) {
        let ms = 20 + self.below(380);
        thread::sleep(Duration::from_millis(ms.into()));
    }

    fn foreign_route(&mut self, sites: &mut Sites, at: usize) {
        let third = self.below(250).to_string();
        let net = format!("10.200.{third}.0/24");
        for word in ["add", "del"] {
            sites
                .site(at)
                .ip(&["route", word, &net, "via", ROUTERS[at]]);
            self.pause();
        }
    }

    fn way_to_peer(&mut self, sites: &mut Sites, at: usize) {
        let peer = format!("{}/32", address_of(1 - at));
        for word in ["add", "del"] {
            sites
                .site(at)
                .ip(&["route", word, &peer, "via", ROUTERS[at]]);
            self.pause();
        }
    }

    fn foreign_rule(&mut self, sites: &mut Sites, at: usize) {
        let table = (300 + self.below(100)).to_string();
        for word in ["add", "del"] {
            sites
                .site(at)
                .ip(&["rule", word, "from", "10.250.0.1", "lookup", &table]);
            self.pause();
        }
    }

    fn foreign_link(&mut self, sites: &mut Sites, at: usize) {
        let site = sites.site(at);
        site.ip(&[
            "link", "add", "other", "type", "veth", "peer", "name", "another",
        ]);
        site.ip(&["address", "add", "172.31.0.1/24", "dev", "other"]);
        site.ip(&["link", "set", "other", "up"]);
        site.ip(&["link", "set", "another", "up"]);
        self.pause();
        sites.site(at).ip(&["link", "del", "other"]);
    }

    fn second_address(&mut self, sites: &mut Sites, at: usize) {
        let net = UPLINKS[at].rsplit_once('.').expect("four bytes").0;
        let second = format!("{net}.{}/24", 20 + self.below(200));
        for word in ["add", "del"] {
            sites.site(at).ip(&["address", word, &second, "dev", "out"]);
            self.pause();
        }
    }

    fn renewal(&mut self, sites: &mut Sites, at: usize) {
        let words = [
            "address",
            "change",
            UPLINKS[at],
            "dev",
            "out",
            "valid_lft",
            "3600",
            "preferred_lft",
            "3600",
        ];
        sites.site(at).ip(&words);
    }

    fn uplink_mtu(&mut self, sites: &mut Sites, at: usize) {
        // The tunnel's longest datagrams are shorter than the first.
        for mtu in ["1600", "1500"] {
            sites.site(at).ip(&["link", "set", "out", "mtu", mtu]);
            self.pause();
        }
    }

    fn no_name(&mut self, sites: &mut Sites, at: usize) {
        sites.name(at, "");
        self.pause();
        sites.name(at, address_of(1 - at));
    }

    fn wrong_name(&mut self, sites: &mut Sites, at: usize) {
        sites.name(at, "203.0.113.99");
        self.pause();
        sites.name(at, address_of(1 - at));
    }

    fn reload(&mut self, sites: &mut Sites, at: usize) {
        let third = u8::try_from(self.below(200)).unwrap_or_default();
        let changes = &mut sites.changes[at];
        match self.below(4) {
            0 => changes.rate_mbit = 4 + u64::from(self.below(3)),
            1 => changes.limit_pkts = 50 + u64::from(self.below(100)),
            2 => {
                changes.prefix = if changes.prefix.is_some() {
                    None
                } else {
                    Some(third)
                }
            }
            _ => changes.absent = !changes.absent,
        }
        sites.reload(at);
    }

    fn rubbish(&mut self, sites: &mut Sites, at: usize) {
        sites.reload_rubbish(at);
    }

    fn floods(&mut self, sites: &mut Sites, at: usize) {
        fs::write(flood(&sites.folder, at), "").unwrap();
    }

    /// More is to be logged than the pipe holds.
    fn log_stops(&mut self, sites: &mut Sites, at: usize) {
        sites.stop_reading(at, true);
        for _ in 0..40 {
            sites.reload(at);
            thread::sleep(Duration::from_millis(15));
        }
        sites.stop_reading(at, false);
    }

    fn neighbour(&mut self, sites: &mut Sites, at: usize) {
        if let Some(mut gateway) = self.neighbours[at].take() {
            let signal = [Signal::SIGTERM, Signal::SIGKILL][self.below(2) as usize];
            gateway.signal(signal);
            gateway.ended();
            return;
        }
        let last = 5 + at as u8;
        let public = keygen_once(sites, last);
        let control = sites.folder.path(&format!("control{last}"));
        let text = format!(
            "[gateway]\ndevice = \"lw1\"\naddress = \"10.99.{at}.1/24\"\nlisten = \"0.0.0.0:51821\"\nmode = \"wireguard\"\n\
             private_key_file = \"key{last}\"\nuser = \"root\"\ncontrol = \"{}\"\n[link]\nrate = \"1Mbit\"\n[scheduler]\n\
             policy = \"strict\"\n[[class]]\nname = \"all\"\n[[peer]]\nname = \"away\"\npublic_key = \"{public}\"\n\
             allowed_ips = \"10.98.0.0/16\"\n",
            control.display()
        );
        let file = sites.folder.write(&format!("{last}.toml"), &text);
        let mut command = program();
        command
            .arg("up")
            .arg(file)
            .stderr(std::process::Stdio::null());
        self.neighbours[at] = Some(Gateway::started(sites.site(at), command, &control));
    }

    fn uplink_down(&mut self, sites: &mut Sites, at: usize) {
        sites.site(at).ip(&["link", "set", "out", "down"]);
        self.pause();
        connect(sites.site(at), at);
    }

    fn device_down(&mut self, sites: &mut Sites, at: usize) {
        sites.site(at).ip(&["link", "set", "lw0", "down"]);
        self.pause();
        sites.site(at).ip(&["link", "set", "lw0", "up"]);
        restored(sites, at, &["route"], &routed(at));
        restored(
            sites,
            at,
            &["-6", "address"],
            &format!("fd77::{}/64", at + 1),
        );
    }

    fn route_removed(&mut self, sites: &mut Sites, at: usize) {
        let routed = routed(at);
        let words: Vec<&str> = ["route", "del"]
            .into_iter()
            .chain(routed.split(' '))
            .collect();
        sites.site(at).ip(&words);
        restored(sites, at, &["route"], &routed);
    }

    fn own_route_removed(&mut self, sites: &mut Sites, at: usize) {
        let words: Vec<&str> = ["route", "del"]
            .into_iter()
            .chain(OWN_NET.split(' '))
            .collect();
        sites.site(at).ip(&words);
        restored(sites, at, &["route"], OWN_NET);
    }

    fn address_removed(&mut self, sites: &mut Sites, at: usize) {
        let own = own_address(at);
        sites.site(at).ip(&["address", "del", &own, "dev", "lw0"]);
        restored(sites, at, &["address"], &own);
        restored(sites, at, &["route"], OWN_NET);
    }

    /// Only the first site has rules.
    fn rule_removed(&mut self, sites: &mut Sites, _at: usize) {
        let version = ["-4", "-6"][self.below(2) as usize];
        let rules = sites.print(0, "ip", &[version, "rule"]);
        let ours: Vec<&str> = rules
            .lines()
            .filter(|line| line.contains("fwmark"))
            .collect();
        let removed = ours[self.below(ours.len() as u32) as usize];
        let priority = removed.split_once(':').expect("rules have priorities").0;
        sites
            .site(0)
            .ip(&[version, "rule", "del", "priority", priority]);
        restored(sites, 0, &[version, "rule"], removed);
    }

    fn small_mtu(&mut self, sites: &mut Sites, at: usize) {
        sites.site(at).ip(&["link", "set", "lw0", "mtu", "1000"]);
        restored(sites, at, &["link", "show", "dev", "lw0"], "mtu 1440");
    }

    fn no_ipv6(&mut self, sites: &mut Sites, at: usize) {
        for value in ["1", "0"] {
            let write =
                move || fs::write("/proc/sys/net/ipv6/conf/lw0/disable_ipv6", value).unwrap();
            sites.site(at).inside(write);
            self.pause();
        }
        restored(
            sites,
            at,
            &["-6", "address"],
            &format!("fd77::{}/64", at + 1),
        );
    }

    fn no_route(&mut self, sites: &mut Sites, at: usize) {
        sites.site(at).ip(&["route", "del", "default"]);
        self.pause();
        connect(sites.site(at), at);
    }
}

/// Waits until a gateway has made again what `ip` prints.
fn restored(sites: &Sites, at: usize, words: &[&str], what: &str) {
    let begun = Instant::now();
    while !sites.print(at, "ip", words).contains(what) {
        assert!(
            begun.elapsed() < RESTORED,
            "ip {words:?} does not show again: {what}"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// What the gateway of a site routes into the tunnel, its own address, and that address's network.
fn routed(at: usize) -> String {
    format!("10.78.{}.0/24 dev lw0", 2 - at)
}

fn own_address(at: usize) -> String {
    format!("10.77.0.{}/24", at + 1)
}

const OWN_NET: &str = "10.77.0.0/24 dev lw0";

/// The public key of a neighbour, which is made the first time.
fn keygen_once(sites: &Sites, last: u8) -> String {
    let file = sites.folder.path(&format!("key{last}"));
    let _ = fs::remove_file(&file);
    keygen(&sites.folder, last);
    // The peer that it never reaches.
    let _ = fs::remove_file(sites.folder.path(&format!("key{}", last + 10)));
    keygen(&sites.folder, last + 10)
}
