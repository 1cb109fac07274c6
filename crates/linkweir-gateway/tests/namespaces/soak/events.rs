// SPDX-License-Identifier: BSD-3-Clause
//! What happens to the network and around the gateways.

use std::fs;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use rand_pcg::rand_core::Rng;
use rand_pcg::Pcg64;

use super::sites::{address_of, connect, flood, Sites, ROUTERS, UPLINKS};
use super::traffic::Traffic;
use super::{Ledger, RECOVERY};
use crate::place::{keygen, program, Gateway};

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
    (
        "a neighbour gateway starts, or stops",
        false,
        Events::neighbour,
    ),
    ("the uplink is down for a while", true, Events::uplink_down),
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
        self.ledger.note(&what);
        let from_ns = self.ledger.now_ns();
        act(self, sites, at);
        let until_ns = self.ledger.now_ns();
        if takes_way {
            let again_ns = traffic.wait_for_voice(until_ns, RECOVERY, &format!("after: {what}"));
            self.ledger.gap(from_ns, again_ns, &what);
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

    fn no_route(&mut self, sites: &mut Sites, at: usize) {
        sites.site(at).ip(&["route", "del", "default"]);
        self.pause();
        connect(sites.site(at), at);
    }
}

/// The public key of a neighbour, which is made the first time.
fn keygen_once(sites: &Sites, last: u8) -> String {
    let file = sites.folder.path(&format!("key{last}"));
    let _ = fs::remove_file(&file);
    keygen(&sites.folder, last);
    // The peer that it never reaches.
    let _ = fs::remove_file(sites.folder.path(&format!("key{}", last + 10)));
    keygen(&sites.folder, last + 10)
}
