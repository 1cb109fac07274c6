// SPDX-License-Identifier: BSD-3-Clause
//! A gateway with two paths to an unmodified WireGuard peer, which knows nothing of paths: it sends to where the last datagram
//! came from.
//!
//! ```text
//!                   ┌ out1 192.0.2.1    ═══ out 192.0.2.2     ┐
//!   here: gateway   ┤                                         ├ wireguard-go :there
//!                   └ out2 198.51.100.1 ═══ wwan 198.51.100.2 ┘
//! ```

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use linkweir_gateway::show::figures::Show;

use crate::clear::{says, until};
use crate::interop::Other;
use crate::life::comes_through;
use crate::place::{config, keygen, sealed, Folder, Gateway, Namespace, STRICT};
use crate::PATIENCE;

const TO: &str = "10.77.0.2:2000";
const BACK: &str = "10.77.0.1:1000";
/// Where the peer knows this end over each path.
const HERE: [&str; 2] = ["192.0.2.1:51820", "198.51.100.1:51820"];
/// The peer's own address, where it has but one.
const ALONE: &str = "203.0.113.2";
/// What a few probes of the path in use take, sealed, bytes.
const PROBES_BYTES: u64 = 1000;

struct Site {
    gateway: Gateway,
    other: Other,
    here: Namespace,
    there: Namespace,
    log: PathBuf,
    _folder: Folder,
}

impl Site {
    /// A site whose peer has these addresses over the two paths.
    fn new(addresses: [&str; 2]) -> Site {
        Site::after(addresses, |_| {})
    }

    /// The same; `before` is done to the peer's namespace before anything is sent.
    fn after(addresses: [&str; 2], before: impl Fn(&Namespace)) -> Site {
        Site::over(
            addresses,
            ["device = \"out1\"", "device = \"out2\""],
            before,
        )
    }

    /// The same; the paths have these further keys.
    fn over(addresses: [&str; 2], keys: [&str; 2], before: impl Fn(&Namespace)) -> Site {
        let (here, there) = (Namespace::new(), Namespace::new());
        here.cable_named("out1", &there, "out");
        here.cable_named("out2", &there, "wwan");
        for (namespace, device, address) in [
            (&here, "out1", "192.0.2.1/24"),
            (&there, "out", "192.0.2.2/24"),
            (&here, "out2", "198.51.100.1/24"),
            (&there, "wwan", "198.51.100.2/24"),
        ] {
            namespace.ip(&["address", "add", address, "dev", device]);
            namespace.ip(&["link", "set", device, "up"]);
        }
        if addresses[0] == ALONE {
            there.ip(&["address", "add", ALONE, "dev", "lo"]);
            for (via, metric) in [("192.0.2.2", "1"), ("198.51.100.2", "2")] {
                here.ip(&["route", "add", ALONE, "via", via, "metric", metric]);
            }
        }
        before(&there);
        let folder = Folder::new();
        let [own, others] = [1, 2].map(|last| keygen(&folder, last));
        let paths = ["first", "second"].map(|name| {
            let (at, keys, rate) = match name {
                "first" => (addresses[0], keys[0], "20Mbit"),
                _ => (addresses[1], keys[1], "10Mbit"),
            };
            format!("[[peer.path]]\nname = \"{name}\"\nendpoint = \"{at}:51820\"\n{keys}\nrate = \"{rate}\"\n")
        });
        let text = sealed(&config(&folder, 1, STRICT), 1, &others)
            .replace("listen = \"192.0.2.1:", "listen = \"0.0.0.0:")
            .replace("endpoint = \"192.0.2.2:51820\"\n", "");
        let text = format!("{text}probe = {{ failback = \"1s\" }}\n{}", paths.concat());
        let file = folder.write("1.toml", &text);
        let log = folder.path("log");
        let mut command = crate::place::program();
        command
            .arg("up")
            .arg(file)
            .stderr(fs::File::create(&log).unwrap());
        let gateway = Gateway::started(&here, command, &folder.path("control1"));
        let other = Other::start(&there, &folder.path("key2"), &own);
        Site {
            gateway,
            other,
            here,
            there,
            log,
            _folder: folder,
        }
    }

    /// Packets come through both ways.
    fn carries(&self, word: &[u8]) {
        let (a, b) = (self.here.socket(BACK), self.there.socket(TO));
        comes_through(&a, &b, TO, word);
        comes_through(&b, &a, BACK, word);
    }

    /// Waits until this path alone is used, and the peer sends to this end over it.
    fn uses(&self, way: usize) {
        self.gateway
            .wait_until("it is used", |show| used(show) == [way == 0, way == 1]);
        until("the peer sends over it", || {
            self.other.says("endpoint") == HERE[way]
        });
    }

    /// While a few probes come to the peer, it sends over this path.
    fn stays(&self, way: usize) {
        let bytes = || self.other.number("rx_bytes");
        let (before, begun) = (bytes(), Instant::now());
        while bytes() < before + PROBES_BYTES {
            assert_eq!(self.other.says("endpoint"), HERE[way]);
            assert!(begun.elapsed() < PATIENCE, "no probes come");
            thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(used(&self.gateway.show()), [way == 0, way == 1]);
    }

    /// No session has ended, and the peer has not agreed to several paths.
    fn has_kept_its_session(&self) {
        let show = self.gateway.show();
        assert_eq!(show.peers[0].session, Some(true));
        assert_eq!(show.peers[0].paths_agreed, Some(false));
        assert!(!says(&self.log, "has no session any more"));
    }

    /// What comes to a device of the peer is dropped, and what leaves it, and nobody is told; or no longer.
    fn silences(there: &Namespace, device: &str, is_silent: bool) {
        let what = if is_silent { "-I" } else { "-D" };
        for (chain, direction) in [("INPUT", "-i"), ("OUTPUT", "-o")] {
            let arguments = [
                "-w", what, chain, direction, device, "-p", "udp", "-j", "DROP",
            ];
            let output = there.run("iptables", &arguments);
            assert!(output.status.success(), "{output:?}");
        }
    }
}

fn used(show: &Show) -> [bool; 2] {
    [0, 1].map(|way| show.peers[0].paths[way].in_use)
}

const TWO: [&str; 2] = ["192.0.2.2", "198.51.100.2"];

/// A probe over the second path would make the peer send over that.
pub fn probes_do_not_lead_an_unmodified_peer_to_a_path_that_is_not_in_use() {
    let site = Site::new(TWO);
    site.carries(b"over the first");
    site.uses(0);
    site.stays(0);
    site.carries(b"still");
    site.has_kept_its_session();
}

/// The path whose device loses its carrier is left at once, and used again a while after the carrier is back.
fn follows_the_carrier(site: &Site) {
    site.carries(b"over the first");
    site.uses(0);
    let handshake = site.other.says("last_handshake_time_nsec");
    for _ in 0..2 {
        site.here.ip(&["link", "set", "out1", "down"]);
        site.carries(b"over the second");
        site.uses(1);
        site.here.ip(&["link", "set", "out1", "up"]);
        if used_alone(site) {
            site.here
                .ip(&["route", "add", ALONE, "via", "192.0.2.2", "metric", "1"]);
        }
        site.uses(0);
        site.carries(b"over the first again");
    }
    assert_eq!(site.other.says("last_handshake_time_nsec"), handshake);
    site.has_kept_its_session();
}

fn used_alone(site: &Site) -> bool {
    let show = site.gateway.show();
    let ends = show.peers[0].paths.iter().map(|path| path.endpoint);
    ends.flatten().all(|end| end.ip().to_string() == ALONE)
}

pub fn an_unmodified_peer_follows_when_a_carrier_goes_and_comes() {
    follows_the_carrier(&Site::new(TWO));
}

/// Both paths lead to the same endpoint, through two devices.
pub fn an_unmodified_peer_with_one_address_follows_when_a_carrier_goes_and_comes() {
    follows_the_carrier(&Site::new([ALONE; 2]));
}

/// The system refuses datagrams to the peer's first address: the other path is used until it takes them again.
pub fn an_unmodified_peer_follows_when_the_system_refuses_a_path() {
    // Of a path with a device the system takes every datagram.
    let site = Site::over(TWO, ["", "device = \"out2\""], |_| {});
    site.carries(b"over the first");
    site.uses(0);
    site.here
        .ip(&["route", "add", "unreachable", "192.0.2.2/32"]);
    site.carries(b"over the second");
    site.uses(1);
    site.stays(1);
    site.here
        .ip(&["route", "del", "unreachable", "192.0.2.2/32"]);
    site.uses(0);
    site.carries(b"over the first again");
    site.has_kept_its_session();
}

/// A path that is silent is left, and nothing leads back to it but the peer, which sends over it.
pub fn an_unmodified_peer_follows_when_a_path_is_silent_and_comes_back_when_it_says_so() {
    let site = Site::new(TWO);
    site.carries(b"over the first");
    site.uses(0);
    // The system has told that this path can be used again: that is no reason to go back when it falls silent later.
    site.here.ip(&["link", "set", "out1", "down"]);
    site.uses(1);
    site.here.ip(&["link", "set", "out1", "up"]);
    site.uses(0);
    Site::silences(&site.there, "out", true);
    let (a, b) = (site.here.socket(BACK), site.there.socket(TO));
    a.send_to(b"lost", TO).unwrap();
    site.gateway
        .wait_until("the second is used", |show| used(show) == [false, true]);
    comes_through(&a, &b, TO, b"over the second");
    comes_through(&b, &a, BACK, b"and back");
    site.uses(1);
    Site::silences(&site.there, "out", false);
    site.stays(1);
    let gateway = site.other.says("public_key");
    let begun = Instant::now();
    while used(&site.gateway.show()) != [true, false] {
        // A probe that comes between the two lines has the peer send over the second once more.
        site.other.set(&format!(
            "public_key={gateway}\nupdate_only=true\nendpoint={}\n",
            HERE[0]
        ));
        comes_through(&b, &a, BACK, b"over the first again");
        assert!(begun.elapsed() < PATIENCE);
    }
    site.uses(0);
    site.stays(0);
    site.has_kept_its_session();
}

/// The peer has another port, then another address: it is sent to where it sends from, over the path that is used.
pub fn an_unmodified_peer_that_moves_is_found_again() {
    let site = Site::new(TWO);
    site.carries(b"at first");
    site.uses(0);
    let (a, b) = (site.here.socket(BACK), site.there.socket(TO));
    for (at, moves) in [
        (
            "192.0.2.2:51821",
            &(|| site.other.set("listen_port=51821\n")) as &dyn Fn(),
        ),
        ("192.0.2.7:51821", &|| {
            site.there
                .ip(&["address", "add", "192.0.2.7/24", "dev", "out"]);
            site.there
                .ip(&["address", "del", "192.0.2.2/24", "dev", "out"]);
            site.there
                .ip(&["address", "replace", "192.0.2.7/24", "dev", "out"]);
        }),
    ] {
        moves();
        comes_through(&b, &a, BACK, b"from elsewhere");
        site.gateway.wait_until("it is sent there", |show| {
            show.peers[0].paths[0].endpoint == at.parse().ok()
        });
        comes_through(&a, &b, TO, b"to elsewhere");
        site.uses(0);
    }
    site.has_kept_its_session();
    until("it is said", || {
        says(
            &site.log,
            "peer other: moved from 192.0.2.2:51820 to 192.0.2.2:51821",
        )
    });
}

/// No session begins over the first path, so the second has its turn.
pub fn an_unmodified_peer_is_found_where_the_first_path_is_silent_from_the_start() {
    let site = Site::after(TWO, |there| Site::silences(there, "out", true));
    let (a, b) = (site.here.socket(BACK), site.there.socket(TO));
    comes_through(&a, &b, TO, b"over the second");
    comes_through(&b, &a, BACK, b"and back");
    site.uses(1);
    site.stays(1);
    site.has_kept_its_session();
}

/// The system refuses the handshake over the first path, and the second is silent, too: that is used next all the same.
pub fn a_refused_handshake_leads_to_the_next_path() {
    let site = Site::over(TWO, ["", "device = \"out2\""], |there| {
        Site::silences(there, "out", true);
        Site::silences(there, "wwan", true);
    });
    site.here
        .ip(&["route", "add", "unreachable", "192.0.2.2/32"]);
    let a = site.here.socket(BACK);
    a.send_to(b"waits for a session", TO).unwrap();
    let show = site
        .gateway
        .wait_until("the second is used", |show| used(show) == [false, true]);
    assert_eq!(show.peers[0].session, Some(false));
    assert!(show.peers[0].paths[0].broken);
    until("it is said", || {
        says(&site.log, "first cannot be used; second is used")
    });
}

/// Those that take minutes.
pub mod long {
    use super::*;

    /// What the peer answered first came over the second path, as the first was silent; now it works. When the keys of the session
    /// change, 2 minutes later, the peer is asked over the first, and answers there.
    pub fn an_unmodified_peer_comes_back_to_the_first_path_when_keys_change() {
        let site = Site::after(TWO, |there| Site::silences(there, "out", true));
        site.carries(b"over the second");
        site.uses(1);
        Site::silences(&site.there, "out", false);
        let (a, b) = (site.here.socket(BACK), site.there.socket(TO));
        let begun = Instant::now();
        while used(&site.gateway.show()) != [true, false] {
            assert!(begun.elapsed() < 3 * PATIENCE + Duration::from_secs(120));
            comes_through(&a, &b, TO, b"meanwhile");
            thread::sleep(Duration::from_secs(1));
        }
        site.uses(0);
        comes_through(&a, &b, TO, b"over the first");
        comes_through(&b, &a, BACK, b"and back");
        site.has_kept_its_session();
    }
}
