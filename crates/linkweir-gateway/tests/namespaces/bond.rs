// SPDX-License-Identifier: BSD-3-Clause
//! A site with two paths to its hub that are used at once. The hub has no endpoints: it learns them.
//!
//! ```text
//!                ┌ out1 192.0.2.1    ═══ out 192.0.2.2     ┐
//!   hub: gateway ┤                                         ├ gateway :ship
//!                └ out2 198.51.100.1 ═══ wwan 198.51.100.2 ┘
//! ```

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use linkweir_config::recording::Recording;
use linkweir_gateway::show::control::{Request, Response};
use linkweir_gateway::show::figures::{PathShow, PeerShow, RestoredShow, Show};
use linkweir_gateway::tunnel::seal::{self, Identity, Opened, Session};
use linkweir_plane::bytes::numbered::Number;
use linkweir_plane::feedback::{Message, PathName, PathProbe};
use nix::sys::signal::Signal;
use nix::sys::socket::{sendmsg, ControlMessage, MsgFlags, SockaddrStorage};

use crate::clear::{printed, until};
use crate::life::comes_through;
use crate::place::{config, keygen, sealed, set_tos, Folder, Gateway, Namespace, Socket, STRICT};
use crate::PATIENCE;

const TO_HUB: &str = "10.77.0.1:1000";
const TO_SHIP: &str = "10.77.0.2:2000";
/// What passes between two changes, while packets are sent.
const BETWEEN: Duration = Duration::from_millis(800);
/// The services field of voice.
const EF: u8 = 46 << 2;
/// What the ship's paths are, and those of the hub.
const OF_SHIP: &str = r#"
[[peer.path]]
name = "starlink"
endpoint = "192.0.2.1:51820"
device = "out"
rate = "RATE1"
cost = 1
[[peer.path]]
name = "lte"
endpoint = "198.51.100.1:51820"
device = "wwan"
rate = "RATE2"
cost = 10
"#;
const OF_HUB: &str = r#"
[[peer.path]]
name = "starlink"
rate = "RATE1"
[[peer.path]]
name = "lte"
rate = "RATE2"
"#;

pub struct Site {
    pub gateways: [Gateway; 2],
    pub hub: Namespace,
    pub ship: Namespace,
    pub log: std::path::PathBuf,
    folder: Folder,
}

/// The configuration of an end whose paths have these rates.
fn text(folder: &Folder, last: u8, public: &str, scheduler: &str, rates: [&str; 2]) -> String {
    let other = 3 - last;
    let paths = if last == 2 { OF_SHIP } else { OF_HUB };
    let paths = paths.replace("RATE1", rates[0]).replace("RATE2", rates[1]);
    let text = sealed(&config(folder, last, scheduler), last, public);
    let text = text
        .replace(
            &format!("listen = \"192.0.2.{last}:"),
            "listen = \"0.0.0.0:",
        )
        .replace(&format!("endpoint = \"192.0.2.{other}:51820\"\n"), "");
    text + &paths
}

/// Two cables between a hub and a ship.
fn cables() -> (Namespace, Namespace) {
    let (hub, ship) = (Namespace::new(), Namespace::new());
    hub.cable_named("out1", &ship, "out");
    hub.cable_named("out2", &ship, "wwan");
    for (namespace, device, address) in [
        (&hub, "out1", "192.0.2.1/24"),
        (&ship, "out", "192.0.2.2/24"),
        (&hub, "out2", "198.51.100.1/24"),
        (&ship, "wwan", "198.51.100.2/24"),
    ] {
        namespace.ip(&["address", "add", address, "dev", device]);
        namespace.ip(&["link", "set", device, "up"]);
    }
    (hub, ship)
}

impl Site {
    /// A site whose classes are these; both ends agree before it is returned.
    fn new(scheduler: &str, rates: [&str; 2]) -> Site {
        Site::started(scheduler, rates).agreed()
    }

    /// The same for what is measured while all paths work: a gateway that a busy machine does not run for a while takes no path
    /// for one that fails. A lost carrier is noticed all the same.
    fn patient(scheduler: &str, rates: [&str; 2]) -> Site {
        Site::probing("probe = { failover = \"10s\" }", scheduler, rates).agreed()
    }

    /// Waits until both ends agree and use both paths.
    pub fn agreed(self) -> Site {
        for gateway in &self.gateways {
            gateway.wait_until("both agree and both paths are used", |show| {
                show.peers[0].paths_agreed == Some(true)
                    && show.peers[0].paths.iter().all(|path| path.in_use)
            });
        }
        self
    }

    fn started(scheduler: &str, rates: [&str; 2]) -> Site {
        Site::probing("", scheduler, rates)
    }

    fn probing(probe: &str, scheduler: &str, rates: [&str; 2]) -> Site {
        Site::between(cables(), probe, scheduler, rates)
    }

    /// The same between two namespaces that the caller has set up.
    pub fn between(
        (hub, ship): (Namespace, Namespace),
        probe: &str,
        scheduler: &str,
        rates: [&str; 2],
    ) -> Site {
        let folder = Folder::new();
        let publics = [1, 2].map(|last| keygen(&folder, last));
        let log = folder.path("log");
        let gateways = [(&hub, 1), (&ship, 2)].map(|(namespace, last)| {
            let public = &publics[usize::from(2 - last)];
            let text = text(&folder, last, public, scheduler, rates);
            let text = text.replacen("\n[[peer.path]]", &format!("{probe}\n[[peer.path]]"), 1);
            let file = folder.write(&format!("{last}.toml"), &text);
            let mut command = crate::place::program();
            command.arg("up").arg(&file);
            if last == 2 {
                command.stderr(fs::File::create(&log).unwrap());
            }
            Gateway::started(namespace, command, &folder.path(&format!("control{last}")))
        });
        Site {
            gateways,
            hub,
            ship,
            log,
            folder,
        }
    }

    /// Changes the ship's configuration, and reloads it.
    fn reload(&self, change: impl Fn(String) -> String) {
        let file = self.folder.path("2.toml");
        let text = fs::read_to_string(&file).unwrap();
        let before = fs::read_to_string(&self.log).unwrap();
        let count = |text: &str| text.matches("reloaded ").count();
        fs::write(&file, change(text)).unwrap();
        self.gateways[1].signal(Signal::SIGHUP);
        let begun = Instant::now();
        while count(&fs::read_to_string(&self.log).unwrap()) == count(&before) {
            assert!(begun.elapsed() < PATIENCE, "it is not reloaded");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the ship's log has this, as it is written by a thread of its own.
    fn says(&self, what: &str) {
        let begun = Instant::now();
        loop {
            let log = fs::read_to_string(&self.log).unwrap();
            if log.contains(what) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "never said: {what}\n{log}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

pub fn peer(show: &Show) -> &PeerShow {
    &show.peers[0]
}

pub fn path<'s>(show: &'s Show, name: &str) -> &'s PathShow {
    let mut paths = peer(show).paths.iter();
    paths.find(|path| path.name == name).unwrap()
}

fn restored(show: &Show, class: &str) -> RestoredShow {
    let mut classes = peer(show).classes.iter();
    let class = classes.find(|other| other.name == class).unwrap();
    class.restored.clone().expect("numbered packets came")
}

/// The policy, with what a class says of its paths.
fn strict(ef: &str, rest: &str) -> String {
    let text = STRICT.replacen("full = \"tail\"\n", &format!("full = \"tail\"\n{ef}\n"), 1);
    format!("{text}{rest}\n")
}

/// Takes numbered datagrams until then, or until there are so many.
fn receive(to: &Socket, came: &mut Vec<u32>, until: Instant, wanted: usize) {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || came.len() >= wanted {
            return;
        }
        to.set_read_timeout(Some(left.max(Duration::from_millis(1))))
            .unwrap();
        let mut buffer = [0; 64];
        if let Ok(4) = to.recv(&mut buffer) {
            came.push(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
        }
    }
}

/// Takes what is missing of so many, and what comes twice after that.
fn receive_rest(to: &Socket, came: &mut Vec<u32>, sent: u32) {
    receive(to, came, Instant::now() + PATIENCE, sent as usize);
    let doubles = Instant::now() + Duration::from_millis(1500);
    receive(to, came, doubles, usize::MAX);
    to.set_read_timeout(Some(PATIENCE)).unwrap();
}

/// Sends so many numbered datagrams of voice at this interval while something happens at one of them; returns the numbers that
/// came, in order.
pub fn call(
    from: &Socket,
    to: &Socket,
    address: &str,
    (count, every): (u32, Duration),
    mut event: impl FnMut(u32),
) -> Vec<u32> {
    let mut came = Vec::new();
    let begun = Instant::now();
    for number in 0..count {
        event(number);
        from.send_to(&number.to_be_bytes(), address).unwrap();
        receive(to, &mut came, begun + every * (number + 1), usize::MAX);
    }
    receive_rest(to, &mut came, count);
    came
}

/// Sends numbered datagrams of voice, 50 a second, from before something happens until after it; returns the numbers that came.
/// All that were sent count: the last of them must come.
pub fn meanwhile(
    from: &Socket,
    to: &Socket,
    address: &str,
    event: impl FnOnce() + Send,
) -> Vec<u32> {
    const AROUND: u32 = 30;
    let mut came = Vec::new();
    let mut sent = 0_u32;
    let mut send = |came: &mut Vec<u32>| {
        from.send_to(&sent.to_be_bytes(), address).unwrap();
        sent += 1;
        receive(
            to,
            came,
            Instant::now() + Duration::from_millis(20),
            usize::MAX,
        );
    };
    (0..AROUND).for_each(|_| send(&mut came));
    thread::scope(|scope| {
        let happens = scope.spawn(event);
        while !happens.is_finished() {
            send(&mut came);
        }
        happens.join().unwrap();
    });
    (0..AROUND).for_each(|_| send(&mut came));
    receive_rest(to, &mut came, sent);
    assert!(came.contains(&(sent - 1)), "of {sent}: {came:?}");
    came
}

/// All that were sent came once, in whatever order.
pub fn all_came_once(came: &[u32], what: &str) {
    let once: BTreeSet<u32> = came.iter().copied().collect();
    let last = once.last().map_or(0, |last| *last as usize + 1);
    assert_eq!((once.len(), came.len()), (last, last), "{what}: {came:?}");
}

/// What leaves a device for a path that is always full, probes and answers to those of the far end included, is no more than the
/// path carries.
pub fn probes_are_part_of_what_a_path_carries() {
    const RATE_BPS: f64 = 100_000.0;
    // What may leave at once at the beginning, and the last packet.
    const SLACK_BITS: f64 = 8.0 * 4000.0;
    let site = Site::patient(&strict("", "paths = \"stripe\""), ["100kbit", "100kbit"]);
    let (ship, _hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    let left_bits = |device: &str| {
        let shown = site
            .ship
            .run("ip", &["-s", "-j", "link", "show", "dev", device]);
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        let left = &shown[0]["stats64"]["tx"];
        let read = |what: &str| left[what].as_f64().unwrap();
        // Without Ethernet's header.
        8.0 * (read("bytes") - 14.0 * read("packets"))
    };
    let devices = ["out", "wwan"];
    let begun = Instant::now();
    let before = devices.map(left_bits);
    let carried = |show: &Show| ["starlink", "lte"].map(|name| path(show, name).sent_pkts);
    let carried_before = carried(&site.gateways[1].show());
    while begun.elapsed() < Duration::from_secs(6) {
        // As long as the queue is never empty, more would only be dropped.
        ship.send_to(&[0; 1000], TO_HUB).unwrap();
        thread::sleep(Duration::from_millis(10));
    }
    let show = site.gateways[1].show();
    let backlog_pkts: u32 = peer(&show).classes.iter().map(|of| of.backlog_pkts).sum();
    assert!(backlog_pkts > 0, "{show:?}");
    for (now, before) in carried(&show).into_iter().zip(carried_before) {
        assert!(now >= before + 10, "{show:?}");
    }
    for (device, before) in devices.into_iter().zip(before) {
        let left = left_bits(device) - before;
        let most = RATE_BPS * begun.elapsed().as_secs_f64() + SLACK_BITS;
        assert!(left <= most, "{device}: {left} of {most} bits");
    }
}

/// `all`: 50 packets/s lose none and come once while either path is cut without a word and comes back.
pub fn copies_over_both_paths_lose_nothing_when_either_is_cut() {
    let site = Site::new(&strict("paths = \"all\"", ""), ["20Mbit", "5Mbit"]);
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    set_tos(&ship, EF);
    set_tos(&hub, EF);
    for cut in ["out1", "out2"] {
        for (from, to, address) in [(&ship, &hub, TO_HUB), (&hub, &ship, TO_SHIP)] {
            let came = call(
                from,
                to,
                address,
                (100, Duration::from_millis(20)),
                |number| match number {
                    // The far end's device goes down, which the ship cannot see but by its probes.
                    30 => site.hub.ip(&["link", "set", cut, "down"]),
                    70 => site.hub.ip(&["link", "set", cut, "up"]),
                    _ => {}
                },
            );
            assert_eq!(came, (0..100).collect::<Vec<_>>(), "{cut} to {address}");
        }
        site.gateways[1].wait_until("both are used again", |show| {
            peer(show).paths.iter().all(|path| path.in_use)
        });
    }
    let show = site.gateways[0].show();
    let ef = restored(&show, "ef");
    assert_eq!(ef.delivered_pkts, 200, "{ef:?}");
    // The 30 before each of two cuts came over both paths.
    assert!(ef.duplicate_pkts >= 60, "{ef:?}");
    assert_eq!((ef.late_pkts, ef.held_pkts), (0, 0), "{ef:?}");
    let show = site.gateways[1].show();
    let copied: u64 = peer(&show).paths.iter().map(|path| path.copied_pkts).sum();
    assert!(copied >= 60, "{copied}");
    site.says("peer other: has agreed to several paths");
    site.says("peer other: packets use lte: 5Mbit");
}

/// A carrier that goes is noticed at once: what is sent from then on comes through.
pub fn a_lost_carrier_is_noticed_at_once() {
    let site = Site::patient(STRICT, ["20Mbit", "20Mbit"]);
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    comes_through(&ship, &hub, TO_HUB, b"at first");
    site.ship.ip(&["link", "set", "out", "down"]);
    site.gateways[1].wait_until("it is broken", |show| {
        path(show, "starlink").broken && !path(show, "starlink").in_use
    });
    comes_through(&ship, &hub, TO_HUB, b"over the other");
    site.ship.ip(&["link", "set", "out", "up"]);
    site.gateways[1].wait_until("it is used again", |show| path(show, "starlink").in_use);
}

/// `stripe`: one flow uses both paths, comes in order and once, and takes the sum of their rates.
pub fn one_flow_is_striped_and_comes_in_order() {
    let rest = "paths = \"stripe\"\nreorder = \"200ms\"";
    let site = Site::patient(&strict("", rest), ["4Mbit", "2Mbit"]);
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    const COUNT: u32 = 900;
    for number in 0..COUNT {
        let mut packet = [0; 1000];
        packet[..4].copy_from_slice(&number.to_be_bytes());
        ship.send_to(&packet, TO_HUB).unwrap();
    }
    let mut buffer = [0; 2000];
    for number in 0..COUNT {
        assert_eq!(hub.recv(&mut buffer).unwrap(), 1000);
        let came = u32::from_be_bytes(buffer[..4].try_into().unwrap());
        assert_eq!(came, number);
    }
    let show = site.gateways[1].show();
    let sent = ["starlink", "lte"].map(|name| path(&show, name).sent_pkts as f64);
    let share = sent[0] / (sent[0] + sent[1]);
    assert!((0.6..0.73).contains(&share), "two of three: {sent:?}");
    let show = site.gateways[0].show();
    assert_eq!(restored(&show, "rest").delivered_pkts, u64::from(COUNT));
}

/// `spill` uses the expensive path only when the cheap one is full.
pub fn the_expensive_path_is_used_when_the_cheap_one_is_full() {
    let site = Site::patient(&strict("", "paths = \"spill\""), ["4Mbit", "4Mbit"]);
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    let before = site.gateways[1].show();
    for number in 0..20_u8 {
        comes_through(&ship, &hub, TO_HUB, &[number]);
    }
    let show = site.gateways[1].show();
    assert_eq!(
        path(&show, "lte").sent_pkts,
        path(&before, "lte").sent_pkts,
        "a few packets have room on the cheap one"
    );
    for _ in 0..200 {
        ship.send_to(&[0; 1000], TO_HUB).unwrap();
    }
    let mut buffer = [0; 2000];
    for _ in 0..200 {
        hub.recv(&mut buffer).unwrap();
    }
    let show = site.gateways[1].show();
    assert!(path(&show, "lte").sent_pkts > 50, "{:?}", peer(&show).paths);
}

/// A promise that the paths which are left cannot keep is said, by class and number, and so is its return.
pub fn a_promise_that_cannot_be_kept_is_said() {
    let pss = crate::place::pss("rate = \"8Mbit\"");
    let site = Site::patient(&pss, ["10Mbit", "5Mbit"]);
    site.ship.ip(&["link", "set", "out", "down"]);
    let show =
        site.gateways[1].wait_until("it is said", |show| peer(show).classes[1].promise.is_some());
    let promise = peer(&show).classes[1].promise.clone().unwrap();
    assert_eq!(
        (promise.reserved_bps, promise.kept_bps),
        (8_000_000, 5_000_000)
    );
    assert_eq!(peer(&show).told_bps, 5_000_000);
    site.ship.ip(&["link", "set", "out", "up"]);
    let show = site.gateways[1].wait_until("it is kept again", |show| {
        peer(show).classes[1].promise.is_none() && peer(show).told_bps == 15_000_000
    });
    assert!(!show.text().contains("are reserved, and"));
    for said in [
        "class af: 8Mbit are reserved, and the paths that are up carry 5Mbit of it",
        "class af: the paths that are up carry its reservation again",
    ] {
        site.says(&format!("peer other: {said}"));
    }
    // Nor when a path is up, and carries less.
    let less = Request::SetCapacity {
        peer: Some("other".to_string()),
        path: Some("starlink".to_string()),
        capacity_bps: 2_000_000,
    };
    assert_eq!(site.gateways[1].ask(&less), Response::Done);
    site.says(
        "peer other: class af: 8Mbit are reserved, and the paths that are up carry 7Mbit of it",
    );
}

/// Paths are changed, removed and added by reload while packets pass: none is lost, and the session stays.
pub fn paths_change_by_reload_under_load() {
    let site = Site::new(&strict("paths = \"all\"", ""), ["20Mbit", "5Mbit"]);
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    set_tos(&ship, EF);
    let lte = {
        let text = OF_SHIP.replace("RATE1", "20Mbit").replace("RATE2", "5Mbit");
        let at = text.rfind("[[peer.path]]").unwrap();
        text[at..].to_string()
    };
    let age_s = || peer(&site.gateways[1].show()).handshake_age_s.unwrap();
    let before_s = age_s();
    let begun = Instant::now();
    let came = meanwhile(&ship, &hub, TO_HUB, || {
        site.reload(|text| text.replace("rate = \"20Mbit\"", "rate = \"10Mbit\""));
        thread::sleep(BETWEEN);
        site.reload(|text| text.replace(&lte, ""));
        thread::sleep(BETWEEN);
        site.reload(|text| text + &lte);
    });
    all_came_once(&came, "");
    site.gateways[1].wait_until("both are used", |show| {
        let used = peer(show).paths.iter().filter(|path| path.in_use);
        used.count() == 2 && path(show, "starlink").capacity_bps == 10_000_000
    });
    assert!(
        age_s() >= before_s + begun.elapsed().as_secs_f64() - 1.0,
        "the session is that of before"
    );
}

/// The configuration without any path, at this rate; the ship must know where the hub is.
fn without_paths(text: &str, rate: &str) -> String {
    let text = &text[..text.find("\n[[peer.path]]").unwrap()];
    let text = text.replace("paths = \"all\"\n", "");
    let text = match text.find("probe = {") {
        Some(at) => &text[..at],
        None => &text,
    };
    let text = text.replace("rate = \"1Gbit\"", &format!("rate = \"{rate}\""));
    if text.contains("10.77.0.2/24") {
        text.replace("allowed_ips", "endpoint = \"192.0.2.1:51820\"\nallowed_ips")
    } else {
        text
    }
}

impl Site {
    /// Reloads this text at an end; then that has so many paths, and its device this MTU.
    fn turns(&self, end: usize, text: &str, (paths, mtu): (usize, &str)) {
        fs::write(self.folder.path(&format!("{}.toml", end + 1)), text).unwrap();
        self.gateways[end].signal(Signal::SIGHUP);
        self.gateways[end].wait_until("it is reloaded", |show| peer(show).paths.len() == paths);
        let namespace = [&self.hub, &self.ship][end];
        until("the device has another MTU", || {
            printed(namespace, "-o link show dev lw0").contains(&format!("mtu {mtu} "))
        });
    }
}

/// All paths go and come again by a reload of either end while packets pass, which lowers the MTU by what a number takes and
/// raises it: none is lost or comes twice, and the session stays.
pub fn all_paths_go_and_come_by_reload_under_load() {
    let site = Site::new(&strict("paths = \"all\"", ""), ["20Mbit", "5Mbit"]);
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    set_tos(&ship, EF);
    set_tos(&hub, EF);
    for end in [1, 0] {
        let with = fs::read_to_string(site.folder.path(&format!("{}.toml", end + 1))).unwrap();
        let without = without_paths(&with, "20Mbit");
        for (from, to, address) in [(&ship, &hub, TO_HUB), (&hub, &ship, TO_SHIP)] {
            let came = meanwhile(from, to, address, || {
                site.turns(end, &without, (0, "1440"));
                thread::sleep(BETWEEN);
                site.turns(end, &with, (2, "1428"));
            });
            all_came_once(&came, &format!("{end} to {address}"));
            for gateway in &site.gateways {
                let show = gateway.wait_until("both agree again", |show| {
                    peer(show).paths_agreed == Some(true)
                        && peer(show).paths.iter().all(|path| path.in_use)
                });
                assert_eq!(peer(&show).session, Some(true));
                assert_eq!(peer(&show).dropped_pkts.get("malformed"), None);
            }
        }
    }
    let said = fs::read_to_string(&site.log).unwrap();
    assert!(!said.contains("has no session any more"), "{said}");
}

/// The hub's paths go by a reload: until the agreement ends the ship's probes say only that its paths work, and that is answered,
/// so none of the packets that the ship goes on to send waits for 2 s.
pub fn the_far_end_goes_on_when_all_paths_go() {
    let scheduler = strict("paths = \"all\"", "").replace("\"3600s\"", "\"2s\"");
    let probe = "probe = { failover = \"1s\" }";
    let site = Site::probing(probe, &scheduler, ["20Mbit", "5Mbit"]).agreed();
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    set_tos(&ship, EF);
    let with = fs::read_to_string(site.folder.path("1.toml")).unwrap();
    let without = without_paths(&with, "20Mbit");
    let turns = || {
        site.turns(0, &without, (0, "1440"));
        site.gateways[1].wait_until("the agreement ends", |show| {
            peer(show).paths_agreed == Some(false)
        });
    };
    let came = meanwhile(&ship, &hub, TO_HUB, turns);
    all_came_once(&came, "");
    let said = fs::read_to_string(&site.log).unwrap();
    assert!(!said.contains("no path carries packets"), "{said}");
}

/// Packets as long as the MTU of before wait while the first paths come and the last go: all of them come, and once. Until the change
/// is over one packet takes more than a second, so most of them still wait then.
pub fn full_packets_that_wait_pass_while_the_mtu_changes() {
    const COUNT: u32 = 100;
    let site = Site::patient(&strict("paths = \"all\"", ""), ["8kbit", "8kbit"]);
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    set_tos(&ship, EF);
    let with = fs::read_to_string(site.folder.path("2.toml")).unwrap();
    let without = without_paths(&with, "8kbit");
    let paces = |paths: &[Option<&str>], capacity_bps| {
        for path in paths {
            let request = Request::SetCapacity {
                peer: Some("other".to_string()),
                path: path.map(str::to_string),
                capacity_bps,
            };
            assert_eq!(site.gateways[1].ask(&request), Response::Done);
        }
    };
    let (both, alone) = ([Some("starlink"), Some("lte")], [None]);
    let mut room = [0; 2000];
    let mut next = 0;
    for (text, (count, mtu), before, paths) in [
        (&without, (0, "1440"), 1428, &alone[..]),
        (&with, (2, "1428"), 1440, &both[..]),
    ] {
        // IPv4 and UDP take 28 bytes.
        let mut packet = vec![0; before - 28];
        for number in next..next + COUNT {
            packet[..4].copy_from_slice(&number.to_be_bytes());
            ship.send_to(&packet, TO_HUB).unwrap();
        }
        site.turns(1, text, (count, mtu));
        let show = site.gateways[1].wait_until("it uses what is configured now", |show| {
            count == 0 || peer(show).paths_agreed == Some(true)
        });
        let waits = peer(&show).classes[0].backlog_pkts;
        assert!(waits > 0, "nothing waits any more");
        paces(paths, 20_000_000);
        let mut came = Vec::new();
        for _ in 0..COUNT {
            assert_eq!(hub.recv(&mut room).unwrap(), before - 28);
            came.push(u32::from_be_bytes(room[..4].try_into().unwrap()));
        }
        came.sort_unstable();
        assert_eq!(came, (next..next + COUNT).collect::<Vec<_>>());
        next += COUNT;
        comes_through(&hub, &ship, TO_SHIP, b"and back");
        paces(paths, 8000);
    }
    let site = site.agreed();
    // A packet of the MTU of before and a number would not have fitted into one datagram.
    assert_eq!(counter(&site.ship, "FragCreates"), 0);
}

/// A counter of IPv4 in a namespace.
fn counter(namespace: &Namespace, name: &str) -> u64 {
    let printed = namespace.run("cat", &["/proc/net/snmp"]).stdout;
    let text = String::from_utf8(printed).unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("Ip: "));
    let mut words = || lines.next().unwrap().split(' ');
    let mut both = words().zip(words());
    let found = both.find(|(known, _)| *known == name).unwrap();
    found.1.parse().unwrap()
}

/// The end that receives gets other settings of its paths while packets are under way: their numbers stay known.
pub fn the_receiving_end_is_reloaded_under_load() {
    let site = Site::new(&strict("paths = \"all\"", ""), ["20Mbit", "5Mbit"]);
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    set_tos(&ship, EF);
    let file = site.folder.path("1.toml");
    let came = call(
        &ship,
        &hub,
        TO_HUB,
        (150, Duration::from_millis(20)),
        |number| {
            if number == 50 {
                let text = fs::read_to_string(&file).unwrap();
                let probe = "probe = { every = \"80ms\", failover = \"400ms\" }\n[[peer.path]]";
                fs::write(&file, text.replacen("[[peer.path]]", probe, 1)).unwrap();
                site.gateways[0].signal(Signal::SIGHUP);
            }
        },
    );
    assert_eq!(came, (0..150).collect::<Vec<_>>());
    let show = site.gateways[0].show();
    let unknown = peer(&show).dropped_pkts.get("unknown_number");
    assert_eq!(unknown, None, "{:?}", peer(&show).dropped_pkts);
}

/// A peer that is started again has forgotten the numbers: both begin anew, and packets of numbered classes come through.
pub fn a_peer_that_was_started_again_agrees_again() {
    let mut site = Site::new(
        &strict("paths = \"all\"", "paths = \"stripe\""),
        ["20Mbit", "5Mbit"],
    );
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    for number in 0..50_u8 {
        comes_through(&ship, &hub, TO_HUB, &[number]);
    }
    site.gateways[0].signal(Signal::SIGTERM);
    site.gateways[0].ended();
    let mut command = crate::place::program();
    command.arg("up").arg(site.folder.path("1.toml"));
    site.gateways[0] = Gateway::started(&site.hub, command, &site.folder.path("control1"));
    for number in 100..150_u8 {
        comes_through(&hub, &ship, TO_SHIP, &[number]);
    }
    for gateway in &site.gateways {
        gateway.wait_until("both agree again", |show| {
            peer(show).paths_agreed == Some(true) && peer(show).paths.iter().all(|path| path.in_use)
        });
    }
    // To another port: late copies of the first words may still come to this one.
    let apart = site.hub.socket("10.77.0.1:1001");
    let numbers: Vec<u8> = (150..200).collect();
    for number in &numbers {
        ship.send_to(&[*number], "10.77.0.1:1001").unwrap();
    }
    let mut buffer = [0; 8];
    for number in numbers {
        assert_eq!(apart.recv(&mut buffer).unwrap(), 1);
        assert_eq!(buffer[0], number, "in order and once");
    }
    let show = site.gateways[0].show();
    assert!(restored(&show, "rest").delivered_pkts >= 50);
}

/// A recording has what each path sent of each class, which the figures show in sum, and what each path was.
pub fn a_recording_has_what_each_path_sent() {
    let uses = strict("paths = \"all\"", "paths = \"spill\"");
    let mut site = Site::patient(&uses, ["4Mbit", "3Mbit"]);
    site.gateways[1].signal(Signal::SIGTERM);
    site.gateways[1].ended();
    let file = site.folder.path("2.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("[record]\nfolder = \"rec\"\n{text}")).unwrap();
    let mut command = crate::place::program();
    command.arg("up").arg(&file);
    site.gateways[1] = Gateway::started(&site.ship, command, &site.folder.path("control2"));
    let site = site.agreed();
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    let voice = site.ship.socket("10.77.0.2:2001");
    set_tos(&voice, EF);
    for number in 0..200_u32 {
        let packet = [number as u8; 1000];
        ship.send_to(&packet, TO_HUB).unwrap();
        voice.send_to(&packet[..100], TO_HUB).unwrap();
    }
    let mut buffer = [0; 2000];
    for _ in 0..400 {
        hub.recv(&mut buffer).unwrap();
    }
    let idle = |show: &Show| {
        peer(show)
            .classes
            .iter()
            .all(|class| class.backlog_pkts == 0)
    };
    site.gateways[1].wait_until("all are sent", idle);
    let classes = ["ef", "af", "rest"].map(String::from);
    let paths = ["starlink", "lte"].map(String::from);
    let carried = |found: &Recording| {
        let rows = found.carried("other", (&paths, &classes), found.span_ns());
        let sum = |row: &Vec<(u64, u64)>| {
            row.iter()
                .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
        };
        (rows.iter().map(sum).collect::<Vec<_>>(), rows)
    };
    let read = RefCell::new(None);
    until("the recording has what the figures show", || {
        let show = site.gateways[1].show();
        let shown: Vec<_> = peer(&show)
            .paths
            .iter()
            .map(|path| (path.sent_pkts, path.sent_bytes))
            .collect();
        let Ok(files) = fs::read_dir(site.folder.path("rec")) else {
            return false;
        };
        let contents = files.map(|file| fs::read(file.unwrap().path()).unwrap());
        let found = Recording::new(contents.collect()).ok();
        let is_all = found
            .as_ref()
            .is_some_and(|found| carried(found).0 == shown);
        *read.borrow_mut() = found;
        is_all
    });
    let found = read.into_inner().unwrap();
    let rows = carried(&found).1;
    // Each packet of voice went over both, and the rest over the second when the first was full.
    assert!(rows[0][0].0 >= 200 && rows[1][0].0 >= 200, "{rows:?}");
    assert!(rows[0][2].0 > rows[1][2].0 && rows[1][2].0 > 0, "{rows:?}");
    let states = found.path_states("other", &paths, found.span_ns());
    let lasts = states.iter().map(|of| of.last().unwrap().1);
    assert_eq!(
        lasts.map(|state| state.bps).collect::<Vec<_>>(),
        [4_000_000, 3_000_000]
    );
    let peer = found.sections[0].peers.values().next().unwrap();
    assert!(
        peer.contains("name = \"lte\"\nnominal = \"3Mbit\"\nfollow = true\ncost = 10\n"),
        "{peer}"
    );
    let settings = &found.sections[0].settings;
    assert!(
        settings.contains("paths = \"spill\"\nreorder = \"none\"\nresend = false\n"),
        "{settings}"
    );
    // A file that begins later says by itself what each path is.
    for file in fs::read_dir(site.folder.path("rec")).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    until("the next file says what each path is", || {
        comes_through(&ship, &hub, TO_HUB, b"recorded");
        let files = fs::read_dir(site.folder.path("rec")).unwrap();
        let contents = files.map(|file| fs::read(file.unwrap().path()).unwrap());
        Recording::new(contents.collect()).is_ok_and(|found| {
            let states = found.path_states("other", &paths, found.span_ns());
            let bps = states.iter().map(|of| of.first().map(|first| first.1.bps));
            bps.eq([Some(4_000_000), Some(3_000_000)])
        })
    });
}

/// The control socket sets the capacity of one path, which must be named.
pub fn the_capacity_of_a_path_is_set() {
    let site = Site::patient(STRICT, ["20Mbit", "5Mbit"]);
    let ask = |peer: Option<&str>, path: Option<&str>| {
        site.gateways[1].ask(&Request::SetCapacity {
            peer: peer.map(str::to_string),
            path: path.map(str::to_string),
            capacity_bps: 3_000_000,
        })
    };
    let refused = |what: &str| Response::Refused(what.to_string());
    assert_eq!(
        ask(None, None),
        refused("peer other has several paths; name one with --path")
    );
    assert_eq!(
        ask(Some("other"), Some("wifi")),
        refused("peer other has no path wifi")
    );
    assert_eq!(ask(Some("other"), Some("lte")), Response::Done);
    let show = site.gateways[1].show();
    assert_eq!(path(&show, "lte").capacity_bps, 3_000_000);
    assert_eq!(peer(&show).told_bps, 23_000_000);
}

/// A path's program says what the path carries; the other path keeps its rate. It knows both names, and what it complains of is in
/// the log with that of the path.
pub fn a_program_reports_the_capacity_of_a_path() {
    let site = Site::new(STRICT, ["20Mbit", "5Mbit"]);
    let program = |rate: &str| {
        format!(
            "rate = \"5Mbit\"\ncommand = [\"sh\", \"-c\", \"test $LINKWEIR_PEER$LINKWEIR_PATH = otherlte && echo {rate}; echo weak >&2; \
             exec sleep 100\"]\nstale = \"60s\"\nfloor = \"1Mbit\""
        )
    };
    site.reload(|text| text.replace("rate = \"5Mbit\"", &program("3Mbit")));
    let show = site.gateways[1].wait_until("it is reported", |show| {
        path(show, "lte").capacity_bps == 3_000_000
    });
    assert_eq!(path(&show, "starlink").capacity_bps, 20_000_000);
    site.says("peer other: path lte: its program says: weak");
    // Another program takes its place.
    site.reload(|text| text.replace("echo 3Mbit", "echo 2Mbit"));
    site.gateways[1].wait_until("the other one reports", |show| {
        path(show, "lte").capacity_bps == 2_000_000 && peer(show).told_bps == 22_000_000
    });
    site.reload(|text| text.replace(&program("2Mbit"), "rate = \"5Mbit\""));
    site.gateways[1].wait_until("the rate holds again", |show| {
        path(show, "lte").capacity_bps == 5_000_000
    });
}

/// Numbers belong to classes by their place, so ends with other numbers of classes do not agree: packets go over one path at a time,
/// without numbers, and the log says why. With the same number they agree.
pub fn ends_with_other_numbers_of_classes_use_one_path_at_a_time() {
    let mut site = Site::started(&strict("paths = \"all\"", ""), ["20Mbit", "5Mbit"]);
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    set_tos(&ship, EF);
    let file = site.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    // The names of classes need a restart.
    let restart = |site: &mut Site, text: &str| {
        fs::write(&file, text).unwrap();
        site.gateways[0].signal(Signal::SIGTERM);
        site.gateways[0].ended();
        let mut command = crate::place::program();
        command.arg("up").arg(&file);
        site.gateways[0] = Gateway::started(&site.hub, command, &site.folder.path("control1"));
    };
    let more = "[[class]]\nname = \"more\"\nmatch = [{ dscp = \"AF11\" }]\n\n[[peer]]";
    restart(&mut site, &text.replacen("[[peer]]", more, 1));
    site.says("peer other: has 3 classes and this end 2: packets use one path at a time until both list the same");
    for gateway in &site.gateways {
        let show = gateway.wait_until("they do not agree", |show| {
            let used = peer(show).paths.iter().filter(|path| path.in_use);
            peer(show).paths_agreed == Some(false) && used.count() == 1
        });
        assert_eq!(peer(&show).paths.len(), 2);
    }
    comes_through(&ship, &hub, TO_HUB, b"over one path");
    comes_through(&hub, &ship, TO_SHIP, b"and back");
    for gateway in &site.gateways {
        let show = gateway.show();
        assert!(peer(&show).classes[0].restored.is_none(), "no numbers");
    }
    let said = fs::read_to_string(&site.log).unwrap();
    assert_eq!(said.matches("has 3 classes").count(), 1, "once: {said}");
    restart(&mut site, &text);
    for gateway in &site.gateways {
        gateway.wait_until("they agree", |show| peer(show).paths_agreed == Some(true));
    }
}

/// A peer that knows no paths is served over one of them, and over the next when that is gone.
pub fn a_peer_without_paths_is_served_over_one_with_failover() {
    let site = Site::started(STRICT, ["20Mbit", "5Mbit"]);
    let file = site.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let at = text.find("\n[[peer.path]]").unwrap();
    fs::write(&file, &text[..at]).unwrap();
    let Site {
        gateways: [hub_gateway, ship_gateway],
        hub: hub_namespace,
        ship: ship_namespace,
        log: _,
        folder,
    } = site;
    drop(hub_gateway);
    let mut command = crate::place::program();
    command.arg("up").arg(&file);
    let _hub_gateway = Gateway::started(&hub_namespace, command, &folder.path("control1"));
    let (ship, hub) = (ship_namespace.socket(TO_SHIP), hub_namespace.socket(TO_HUB));
    comes_through(&ship, &hub, TO_HUB, b"over the first");
    let show = ship_gateway.wait_until("it has not agreed", |show| {
        peer(show).paths_agreed == Some(false)
    });
    assert_eq!(
        peer(&show).paths.iter().filter(|path| path.in_use).count(),
        1
    );
    comes_through(&hub, &ship, TO_SHIP, b"and back");
    hub_namespace.ip(&["link", "set", "out1", "down"]);
    ship_gateway.wait_until("the other is used", |show| path(show, "lte").in_use);
    comes_through(&ship, &hub, TO_HUB, b"over the other");
}

/// What is held for order comes on top of what a read brings: two long packets that wait, and then the one that they wait for
/// with sixty behind it, all in one read. A peer may send this, and must not end the gateway with it.
pub fn packets_that_waited_and_a_whole_read_are_handed_out_together() {
    let begun = Instant::now();
    // What a stalled machine lets wait for longer than `reorder` is not handed out together.
    while !handed_out_together() {
        assert!(begun.elapsed() < PATIENCE, "they never wait so long");
    }
}

/// Returns whether those that waited were still held when the whole read came.
fn handed_out_together() -> bool {
    let (hub, ship) = cables();
    let folder = Folder::new();
    let publics = [1, 2].map(|last| keygen(&folder, last));
    let scheduler = strict("reorder = \"2s\"", "");
    let text = text(&folder, 1, &publics[1], &scheduler, ["20Mbit"; 2]);
    let file = folder.write("1.toml", &text);
    let gateway = Gateway::start(&hub, &file, &folder.path("control1"));
    let key = |last| seal::read_key(&folder.path(&format!("key{last}"))).unwrap();
    let identity = Identity::new(key(2));
    let public = Identity::new(key(1)).public();
    let to: SocketAddr = "192.0.2.1:51820".parse().unwrap();
    let socket = ship.socket("192.0.2.2:4000");
    let mut session = Session::new(&identity, public, None, None, 7);
    let (mut room, mut came) = (vec![0; 70_000], [0; 2000]);
    session.want(0);
    socket
        .send_to(session.attempt(&identity, 0, 1, &mut room).unwrap(), to)
        .unwrap();
    while !session.is_open() {
        let bytes = socket.recv(&mut came).unwrap();
        if let Opened::Answer(answer) = session.open(&came[..bytes], to, &mut room) {
            socket.send_to(answer, to).unwrap();
        }
    }
    let probe = Message::PathProbe(PathProbe {
        sent_ns: 1,
        epoch: 5,
        path: 0,
        classes: 2,
        known: 0,
        name: PathName::new("starlink").unwrap(),
    });
    let mut seal = |packet: &[u8]| session.seal(packet, &mut room).unwrap().to_vec();
    socket.send_to(&seal(&probe.packet()), to).unwrap();
    let packet = |bytes: usize| {
        let mut packet = vec![0; bytes];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
        packet[8..10].copy_from_slice(&[64, 253]);
        packet[12..20].copy_from_slice(&[10, 77, 0, 2, 10, 77, 0, 1]);
        packet
    };
    let numbered = |sequence, bytes| {
        let number = Number {
            stream: 0,
            epoch: 5,
            sequence,
        };
        let header = number.header(bytes).unwrap();
        [&header[..], &packet(bytes)].concat()
    };
    for sequence in [1, 2] {
        socket
            .send_to(&seal(&numbered(sequence, 60_000)), to)
            .unwrap();
    }
    let given_up = |show: &Show| {
        let ef = peer(show).classes[0].restored.as_ref();
        ef.is_some_and(|ef| ef.given_up_pkts > 0)
    };
    gateway.wait_until("both wait", |show| {
        let ef = peer(show).classes[0].restored.as_ref();
        ef.is_some_and(|ef| ef.held_pkts == 2) || given_up(show)
    });
    let mut whole = seal(&numbered(0, 1000));
    let segment = whole.len() as u16;
    for _ in 0..60 {
        whole.extend(seal(&packet(1012)));
    }
    let segments = [ControlMessage::UdpGsoSegments(&segment)];
    let parts = [IoSlice::new(&whole)];
    let address = SockaddrStorage::from(to);
    sendmsg(
        socket.as_raw_fd(),
        &parts,
        &segments,
        MsgFlags::empty(),
        Some(&address),
    )
    .unwrap();
    let show = gateway.wait_until("all are handed out", |show| {
        given_up(show) || peer(show).received_pkts == 63 && peer(show).classes[0].restored.is_some()
    });
    !given_up(&show)
}
