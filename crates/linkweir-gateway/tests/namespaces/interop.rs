// SPDX-License-Identifier: BSD-3-Clause
//! A gateway and an unmodified WireGuard peer: wireguard-go.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linkweir_gateway::tunnel::seal::{self, Key};

use crate::life::comes_through;
use crate::place::{cabled, config, keygen, sealed, Folder, Gateway, Namespace, STRICT};
use crate::PATIENCE;

const TO: &str = "10.77.0.2:2000";
const BACK: &str = "10.77.0.1:1000";

/// wireguard-go at the second end, configured by its own socket.
pub struct Other {
    child: Child,
    socket: PathBuf,
}

fn hexadecimal(key: &Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Other {
    pub fn start(there: &Namespace, key_file: &Path, gateway: &str) -> Other {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let device = format!("wg{}x{count}", std::process::id());
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "wireguard-go", "-f", &device])
            .env("WG_I_PREFER_BUGGY_USERSPACE_TO_POLISHED_KMOD", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = there.inside(move || command.spawn().expect("setpriv is installed"));
        let other = Other {
            child,
            socket: PathBuf::from(format!("/var/run/wireguard/{device}.sock")),
        };
        let begun = Instant::now();
        while UnixStream::connect(&other.socket).is_err() {
            assert!(begun.elapsed() < PATIENCE, "wireguard-go makes no socket");
            thread::sleep(Duration::from_millis(5));
        }
        let gateway = hexadecimal(&seal::key(gateway).expect("a key"));
        other.set(&format!(
            "{}listen_port=51820\npublic_key={gateway}\nendpoint=192.0.2.1:51820\n\
             allowed_ip=10.77.0.1/32\nallowed_ip=fd77::1/128\n",
            private_key(key_file)
        ));
        for address in ["10.77.0.2/24", "fd77::2/64"] {
            there.ip(&["address", "add", address, "dev", &device]);
        }
        there.ip(&["link", "set", &device, "mtu", "1440", "up"]);
        other
    }

    /// Sends a request to the socket and checks that it was done.
    pub fn set(&self, what: &str) {
        let mut answers = self.ask(&format!("set=1\n{what}\n"));
        assert_eq!(answers.next().unwrap().unwrap(), "errno=0", "{what}");
    }

    fn ask(&self, request: &str) -> Lines<BufReader<UnixStream>> {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream).lines()
    }

    /// What it says of its only peer by this name, such as `endpoint`; empty if nothing.
    pub fn says(&self, name: &str) -> String {
        let lines = self.ask("get=1\n\n").map(Result::unwrap);
        let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let mut values = lines.iter().filter_map(|line| line.split_once('='));
        let found = values.find(|(key, _)| *key == name);
        found.map_or_else(String::new, |(_, value)| value.to_string())
    }

    /// The same of a number.
    pub fn number(&self, name: &str) -> u64 {
        self.says(name).parse().unwrap_or(0)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.socket);
    }
}

fn private_key(file: &Path) -> String {
    format!(
        "private_key={}\n",
        hexadecimal(&seal::read_key(file).unwrap())
    )
}

struct Pair {
    gateway: Gateway,
    other: Other,
    here: Namespace,
    there: Namespace,
    folder: Folder,
}

impl Pair {
    fn new() -> Pair {
        Pair::changed(|text| text)
    }

    /// The same with a gateway whose configuration is changed.
    fn changed(change: impl Fn(String) -> String) -> Pair {
        let (here, there) = cabled();
        let folder = Folder::new();
        let [own, others] = [1, 2].map(|last| keygen(&folder, last));
        let text = change(sealed(&config(&folder, 1, STRICT), 1, &others));
        let file = folder.write("1.toml", &text);
        let gateway = Gateway::start(&here, &file, &folder.path("control1"));
        let other = Other::start(&there, &folder.path("key2"), &own);
        Pair {
            gateway,
            other,
            here,
            there,
            folder,
        }
    }
}

pub fn an_unmodified_peer_is_reached() {
    let pair = Pair::new();
    let (a, b) = (pair.here.socket(BACK), pair.there.socket(TO));
    comes_through(&a, &b, TO, b"from the gateway");
    comes_through(&b, &a, BACK, b"from wireguard-go");
    let (c, d) = (
        pair.here.socket("[fd77::1]:1000"),
        pair.there.socket("[fd77::2]:2000"),
    );
    comes_through(&c, &d, "[fd77::2]:2000", &[7; 1392]);
    comes_through(&d, &c, "[fd77::1]:1000", &[8; 1392]);
    assert_eq!(pair.gateway.show().peers[0].session, Some(true));
    if crate::place::installed("ping") {
        for (namespace, to) in [(&pair.here, "10.77.0.2"), (&pair.there, "10.77.0.1")] {
            let output = namespace.run("ping", &["-c", "5", "-i", "0.2", "-W", "5", to]);
            let output_text = String::from_utf8_lossy(&output.stdout);
            assert!(output_text.contains(" 0% packet loss"), "{output_text}");
        }
    }
}

/// It knows nothing of several paths: one is used at a time.
pub fn an_unmodified_peer_is_served_over_one_of_several_paths() {
    let paths = "\n[[peer.path]]\nname = \"first\"\nendpoint = \"192.0.2.2:51820\"\nrate = \"20Mbit\"\n\
                 [[peer.path]]\nname = \"second\"\nendpoint = \"192.0.2.3:51820\"\ndevice = \"out\"\nrate = \"10Mbit\"\n";
    let pair = Pair::changed(|text| {
        let text = text.replace("listen = \"192.0.2.1:", "listen = \"0.0.0.0:");
        let text = text.replace("endpoint = \"192.0.2.2:51820\"\n", "");
        text.replace("[scheduler]", "[scheduler]\n") + paths
    });
    let (a, b) = (pair.here.socket(BACK), pair.there.socket(TO));
    comes_through(&a, &b, TO, b"from the gateway");
    comes_through(&b, &a, BACK, b"from wireguard-go");
    let show = pair.gateway.show();
    assert_eq!(show.peers[0].paths_agreed, Some(false));
    assert_eq!(show.peers[0].capacity_bps, 20_000_000, "of one path");
    assert!(show.peers[0]
        .classes
        .iter()
        .all(|class| class.restored.is_none()));
}

pub fn an_unmodified_peer_with_the_wrong_key_gets_nothing() {
    let pair = Pair::new();
    let (a, b) = (pair.here.socket(BACK), pair.there.socket(TO));
    comes_through(&a, &b, TO, b"at first");
    let received = pair.gateway.show().peers[0].received_pkts;
    keygen(&pair.folder, 3);
    pair.other.set(&private_key(&pair.folder.path("key3")));
    for _ in 0..20 {
        let _ = b.send_to(b"let me in", BACK);
    }
    let show = pair
        .gateway
        .wait_until("a stranger sent a handshake", |show| {
            show.dropped_pkts.contains_key("stranger")
        });
    assert_eq!(show.peers[0].received_pkts, received);
    // The right key again.
    pair.other.set(&private_key(&pair.folder.path("key2")));
    comes_through(&b, &a, BACK, b"at last");
}

pub fn iperf3_runs_both_ways() {
    let pair = Pair::new();
    let (a, b) = (pair.here.socket(BACK), pair.there.socket(TO));
    comes_through(&a, &b, TO, b"at first");
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "iperf3", "-s", "-B", "10.77.0.2"])
        .stdout(Stdio::null());
    let mut server = pair.there.inside(move || command.spawn().unwrap());
    for (direction, way) in [("there", &[][..]), ("back", &["-R"])] {
        let begun = Instant::now();
        let report = loop {
            let mut arguments = vec!["-J", "-c", "10.77.0.2", "-t", "2"];
            arguments.extend(way);
            let output = pair.here.run("iperf3", &arguments);
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            // The server takes a moment to begin.
            if report["error"].is_null() || begun.elapsed() > PATIENCE {
                break report;
            }
            thread::sleep(Duration::from_millis(50));
        };
        let received = &report["end"]["sum_received"];
        let bytes = received["bytes"].as_u64().unwrap_or(0);
        assert!(bytes > 1_000_000, "{report}");
        let bps = received["bits_per_second"].as_f64().unwrap();
        println!("iperf3 {direction}: {:.0} Mbit/s for 2 s", bps / 1e6);
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
