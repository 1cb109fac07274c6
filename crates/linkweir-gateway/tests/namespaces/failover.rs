// SPDX-License-Identifier: BSD-3-Clause
//! A site with two ways to its hub.
//!
//! ```text
//!                ┌ out1 192.0.2.1    ═══ out 192.0.2.2     ┐
//!   hub: gateway ┤                                         ├ gateway :ship
//!                └ out2 198.51.100.1 ═══ wwan 198.51.100.2 ┘
//! ```

use std::fs;
use std::time::{Duration, Instant};

use linkweir_gateway::show::figures::Show;

use crate::clear::{says, until};
use crate::life::comes_through;
use crate::place::{config, keygen, sealed, Folder, Gateway, Namespace, Socket, STRICT};

const TO_HUB: &str = "10.77.0.1:1000";
const TO_SHIP: &str = "10.77.0.2:2000";
const WAYS: &str = r#"underlays = [
  { name = "starlink", endpoint = "192.0.2.1:51820", device = "out" },
  { name = "lte", endpoint = "198.51.100.1:51820", device = "wwan" },
]
probe = { failback = "2s" }
"#;

struct Site {
    gateways: [Gateway; 2],
    hub: Namespace,
    ship: Namespace,
    log: std::path::PathBuf,
    _folder: Folder,
}

impl Site {
    fn new() -> Site {
        let (hub, ship) = (Namespace::new(), Namespace::new());
        let folder = Folder::new();
        hub.cable("out1", &ship);
        hub.ip(&["address", "add", "192.0.2.1/24", "dev", "out1"]);
        ship.ip(&["address", "add", "192.0.2.2/24", "dev", "out"]);
        // The second cable's end is renamed, as both are called `out` at first.
        ship.ip(&["link", "set", "out", "name", "sat"]);
        hub.cable("out2", &ship);
        ship.ip(&["link", "set", "out", "name", "wwan"]);
        ship.ip(&["link", "set", "sat", "name", "out"]);
        hub.ip(&["address", "add", "198.51.100.1/24", "dev", "out2"]);
        ship.ip(&["address", "add", "198.51.100.2/24", "dev", "wwan"]);
        for (namespace, device) in [
            (&hub, "out1"),
            (&hub, "out2"),
            (&ship, "out"),
            (&ship, "wwan"),
        ] {
            namespace.ip(&["link", "set", device, "up"]);
        }
        let publics = [1, 2].map(|last| keygen(&folder, last));
        let text = |last: u8| {
            let text = sealed(
                &config(&folder, last, STRICT),
                last,
                &publics[usize::from(2 - last)],
            );
            text.replace(
                &format!("listen = \"192.0.2.{last}:"),
                "listen = \"0.0.0.0:",
            )
        };
        let of_hub = text(1).replace("endpoint = \"192.0.2.2:51820\"\n", "");
        let of_ship = text(2).replace("endpoint = \"192.0.2.1:51820\"\n", WAYS);
        let log = folder.path("log");
        let gateways = [(&hub, 1, of_hub), (&ship, 2, of_ship)].map(|(namespace, last, text)| {
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
            _folder: folder,
        }
    }

    fn waits_for(&self, name: &str) {
        self.gateways[1].wait_until(name, |show| in_use(show) == name);
    }
}

fn in_use(show: &Show) -> &str {
    let way = show.peers[0].underlays.iter().find(|way| way.in_use);
    &way.unwrap().name
}

/// How many attempts in a row, one every 20 ms, had no answer, while the first way stops working.
fn longest_gap(ship: &Socket, hub: &Socket, mut fails: impl FnMut()) -> usize {
    hub.set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let (mut gap, mut longest) = (0, 0);
    for attempt in 0..150_u8 {
        if attempt == 20 {
            fails();
        }
        ship.send_to(&[attempt], TO_HUB).unwrap();
        let mut buffer = [0; 10];
        let came = loop {
            match hub.recv(&mut buffer) {
                Ok(1) if buffer[0] == attempt => break true,
                Ok(_) => {}
                Err(_) => break false,
            }
        };
        gap = if came { 0 } else { gap + 1 };
        longest = longest.max(gap);
    }
    longest
}

pub fn another_way_is_used_within_a_second_and_the_first_again_later() {
    let site = Site::new();
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    comes_through(&ship, &hub, TO_HUB, b"at first");
    comes_through(&hub, &ship, TO_SHIP, b"and back");
    site.gateways[1].wait_until("both ways answer", |show| {
        show.peers[0].underlays.iter().all(|way| way.answers_now)
    });
    site.waits_for("starlink");

    // No packet of the way passes, and nobody says so.
    let hub_device = |state: &str| site.hub.ip(&["link", "set", "out1", state]);
    let gap = longest_gap(&ship, &hub, || hub_device("down"));
    assert!((5..=50).contains(&gap), "{gap} attempts of 20 ms were lost");
    site.waits_for("lte");
    comes_through(&hub, &ship, TO_SHIP, b"to the other way");
    let endpoint = site.gateways[0].show().peers[0].endpoint;
    assert_eq!(endpoint, "198.51.100.2:51820".parse().ok());

    let begun = Instant::now();
    hub_device("up");
    site.waits_for("starlink");
    assert!(
        begun.elapsed() >= Duration::from_secs(2),
        "it must have answered for so long"
    );
    comes_through(&hub, &ship, TO_SHIP, b"to the first way");
    let said = [
        "starlink does not answer; lte is used",
        "starlink answers again; starlink is used",
    ];
    for said in said {
        until(said, || says(&site.log, &format!("peer other: {said}")));
    }
}

pub fn a_way_whose_device_goes_and_comes_is_found_again() {
    let site = Site::new();
    let (ship, hub) = (site.ship.socket(TO_SHIP), site.hub.socket(TO_HUB));
    comes_through(&ship, &hub, TO_HUB, b"at first");
    site.gateways[1].wait_until("both ways answer", |show| {
        show.peers[0].underlays.iter().all(|way| way.answers_now)
    });
    // The modem is pulled out and put in again: the device has another number then.
    site.hub.ip(&["link", "del", "out1"]);
    site.waits_for("lte");
    comes_through(&ship, &hub, TO_HUB, b"over the other");
    site.hub.cable("out1", &site.ship);
    site.hub
        .ip(&["address", "add", "192.0.2.1/24", "dev", "out1"]);
    site.ship
        .ip(&["address", "add", "192.0.2.2/24", "dev", "out"]);
    site.hub.ip(&["link", "set", "out1", "up"]);
    site.ship.ip(&["link", "set", "out", "up"]);
    site.waits_for("starlink");
    comes_through(&ship, &hub, TO_HUB, b"over the first");
}
