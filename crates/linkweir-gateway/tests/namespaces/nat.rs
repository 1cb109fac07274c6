// SPDX-License-Identifier: BSD-3-Clause
//! A ship whose two paths each pass a router that masquerades. The routers forget their mappings, and get other addresses.
//!
//! ```text
//!                ┌ out1 192.0.2.1    ═══ out 192.0.2.2     router in 10.1.0.1 ═══ out 10.1.0.2  ┐
//!   hub: gateway ┤                                                                              ├ gateway :ship
//!                └ out2 198.51.100.1 ═══ out 198.51.100.2  router in 10.2.0.1 ═══ wwan 10.2.0.2 ┘
//! ```

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::bond::{all_came_once, meanwhile, path, peer, Site};
use crate::clear::{says, sysctl};
use crate::place::{pss, set_tos, Namespace};
use crate::PATIENCE;

const TO_HUB: &str = "10.77.0.1:1000";
const TO_SHIP: &str = "10.77.0.2:2000";
const EF: u8 = 46 << 2;
const PATHS: [&str; 2] = ["starlink", "lte"];
/// The networks of the two paths towards the hub.
const NETS: [&str; 2] = ["192.0.2", "198.51.100"];

/// A router between a network of the hub and one of the ship.
struct Router {
    namespace: Namespace,
    net: &'static str,
    /// The last number of its public address.
    last: AtomicU8,
}

impl Router {
    fn new(hub: &Namespace, ship: &Namespace, way: usize) -> Router {
        let namespace = Namespace::new();
        let (net, inside) = (NETS[way], format!("10.{}.0", way + 1));
        let device = ["out", "wwan"][way];
        let of_hub = ["out1", "out2"][way];
        hub.cable_named(of_hub, &namespace, "out");
        namespace.cable_named("in", ship, device);
        for (place, device, address) in [
            (hub, of_hub, format!("{net}.1/24")),
            (&namespace, "out", format!("{net}.2/24")),
            (&namespace, "in", format!("{inside}.1/24")),
            (ship, device, format!("{inside}.2/24")),
        ] {
            place.ip(&["address", "add", &address, "dev", device]);
            place.ip(&["link", "set", device, "up"]);
        }
        let (to, via) = (format!("{net}.0/24"), format!("{inside}.1"));
        ship.ip(&["route", "add", &to, "via", &via]);
        sysctl(&namespace, "net.ipv4.ip_forward=1");
        let rule = "-w -t nat -A POSTROUTING -o out -p udp -j MASQUERADE --random";
        let output = namespace.run("iptables", &rule.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{output:?}");
        Router {
            namespace,
            net,
            last: AtomicU8::new(2),
        }
    }

    /// Another public address, or the same once more: the system forgets all mappings to an address that goes.
    fn remap(&self, last: u8) {
        let address = |last: u8| format!("{}.{last}/24", self.net);
        let before = self.last.swap(last, Ordering::Relaxed);
        self.namespace
            .ip(&["address", "del", &address(before), "dev", "out"]);
        self.namespace
            .ip(&["address", "add", &address(last), "dev", "out"]);
    }
}

/// What the hub sends to over each path.
fn seen(site: &Site, way: usize) -> Option<SocketAddr> {
    path(&site.gateways[0].show(), PATHS[way]).endpoint
}

/// Ports of both paths change, then addresses, while copies go over both: none is lost, the reservation stays kept, and so does
/// the session.
pub fn mappings_of_both_paths_change_and_nothing_is_lost() {
    let (hub, ship) = (Namespace::new(), Namespace::new());
    let routers = [0, 1].map(|way| Router::new(&hub, &ship, way));
    let scheduler = pss("rate = \"3Mbit\"\npaths = \"stripe\"");
    let scheduler = scheduler.replacen("level = 0\n", "level = 0\npaths = \"all\"\n", 1);
    // A path that a busy machine does not probe for a while does not fail.
    let probe = "probe = { failover = \"10s\" }";
    let site = Site::between((hub, ship), probe, &scheduler, ["20Mbit", "5Mbit"]).agreed();
    let (a, b) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    for socket in [&a, &b] {
        set_tos(socket, EF);
    }
    for (way, last) in [(0, 2), (1, 2), (0, 7), (1, 7)] {
        for (from, to, address) in [(&a, &b, TO_HUB), (&b, &a, TO_SHIP)] {
            let came = meanwhile(from, to, address, || {
                let before = seen(&site, way);
                let begun = Instant::now();
                while seen(&site, way) == before {
                    assert!(begun.elapsed() < PATIENCE, "the hub sees no other place");
                    routers[way].remap(last);
                    // A mapping may have the same port by chance: then another follows.
                    let asked = Instant::now();
                    while seen(&site, way) == before && asked.elapsed() < PATIENCE / 6 {
                        thread::sleep(Duration::from_millis(5));
                    }
                }
                let at = seen(&site, way).unwrap();
                assert_eq!(at.ip().to_string(), format!("{}.{last}", NETS[way]));
            });
            all_came_once(&came, &format!("{} to {address}", PATHS[way]));
        }
    }
    for gateway in &site.gateways {
        let show = gateway.wait_until("both paths are used", |show| {
            peer(show).paths.iter().all(|path| path.in_use)
        });
        assert_eq!(peer(&show).session, Some(true));
        assert_eq!(peer(&show).paths_agreed, Some(true));
        assert!(peer(&show)
            .classes
            .iter()
            .all(|class| class.promise.is_none()));
    }
    for never in [
        "has no session any more",
        "are reserved, and",
        "no path carries",
    ] {
        assert!(!says(&site.log, never), "{never}");
    }
}
