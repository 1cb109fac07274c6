// SPDX-License-Identifier: BSD-3-Clause
//! Endpoints that have names: name servers that are silent, names with several addresses, and hubs that move.
//!
//! ```text
//!   here: hub 192.0.2.1 ═══ 192.0.2.2 client, and a name server at 127.0.0.53 :there
//! ```

use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use linkweir_gateway::tunnel::seal::{self, Identity};
use nix::sys::signal::Signal;

use crate::life::comes_through;
use crate::place::{Gateway, Tunnel, STRICT};

const TO: &str = "10.77.0.2:2000";
const BACK: &str = "10.77.0.1:1000";
const HUB: &str = "hub.example";
/// Addresses at which nothing answers: their datagrams leave and are lost, as behind a filter.
const DEAD: [&str; 2] = ["192.0.2.3", "2001:db8::3"];
const IPV4: u16 = 1;
const IPV6: u16 = 28;

/// A name server. A name that it does not know gets no answer.
#[derive(Clone, Default)]
struct NameServer {
    known: Arc<Mutex<BTreeMap<String, Vec<IpAddr>>>>,
}

impl NameServer {
    /// One that answers questions that come to this socket, until the test ends.
    fn new(socket: UdpSocket) -> NameServer {
        let server = NameServer::default();
        let known = Arc::downgrade(&server.known);
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Some(known) = known.upgrade() {
                let Ok((count, from)) = socket.recv_from(&mut question) else {
                    continue;
                };
                let answer = answer(&question[..count], &known.lock().unwrap());
                if let Some(answer) = answer {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        server
    }

    fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|one| one.parse().unwrap()).collect();
        let mut known = self.known.lock().unwrap();
        known.insert(name.to_string(), addresses);
    }
}

/// The answer to a question (RFC 1035, section 4.1), if the name is known.
fn answer(question: &[u8], known: &BTreeMap<String, Vec<IpAddr>>) -> Option<Vec<u8>> {
    let (mut labels, mut at) = (Vec::new(), 12);
    while *question.get(at)? > 0 {
        let end = at + 1 + usize::from(question[at]);
        labels.push(String::from_utf8_lossy(question.get(at + 1..end)?).into_owned());
        at = end;
    }
    let kind = u16::from_be_bytes(question.get(at + 1..at + 3)?.try_into().ok()?);
    let addresses = known.get(&labels.join("."))?;
    let records: Vec<Vec<u8>> = addresses
        .iter()
        .filter_map(|address| match (address, kind) {
            (IpAddr::V4(address), IPV4) => Some(address.octets().to_vec()),
            (IpAddr::V6(address), IPV6) => Some(address.octets().to_vec()),
            _ => None,
        })
        .collect();
    let mut answer = question[..2].to_vec();
    // An answer, recursion desired and available; one question, the records, nothing else.
    answer.extend([0x81, 0x80, 0, 1, 0, records.len() as u8, 0, 0, 0, 0]);
    answer.extend(&question[12..at + 5]);
    for record in records {
        // The name of the question, the kind, the Internet, kept for no time.
        answer.extend([0xc0, 12]);
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 0, 0, record.len() as u8]);
        answer.extend(record);
    }
    Some(answer)
}

/// A tunnel whose second end knows the first by name, a name server for it, and its log.
struct Named {
    tunnel: Tunnel,
    server: NameServer,
    log: PathBuf,
}

impl Named {
    /// The name has these addresses at first; `more` is added to the configuration of the second end.
    fn new(addresses: &[&str], more: &str) -> Named {
        let mut tunnel = Tunnel::sealed(STRICT, |text, last| match last {
            1 => text
                .replace("endpoint = \"192.0.2.2:51820\"\n", "")
                .replace("listen = \"192.0.2.1:", "listen = \"0.0.0.0:"),
            _ => {
                text.replace("endpoint = \"192.0.2.1:", "endpoint = \"hub.example:")
                    .replace("listen = \"192.0.2.2:", "listen = \"[::]:")
                    + more
            }
        });
        tunnel.gateways[1].signal(Signal::SIGKILL);
        tunnel.gateways[1].ended();
        for dead in DEAD {
            let nowhere = ["lladdr", "02:00:00:00:00:03", "nud", "permanent"];
            let neighbour = ["neigh", "add", dead, "dev", "out"];
            tunnel.there.ip(&[&neighbour[..], &nowhere].concat());
        }
        let socket = tunnel
            .there
            .inside(|| UdpSocket::bind("127.0.0.53:53").unwrap());
        let server = NameServer::new(socket);
        server.set(HUB, addresses);
        let log = tunnel.folder.path("log");
        let mut named = Named {
            tunnel,
            server,
            log,
        };
        named.start();
        named
    }

    /// Starts the second end.
    fn start(&mut self) {
        let folder = &self.tunnel.folder;
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", WITH_FILES, "sh"])
            .arg(folder.write("resolv.conf", "nameserver 127.0.0.53\n"))
            .arg(folder.write("nsswitch.conf", "hosts: dns\n"))
            .args(["setpriv", "--pdeathsig", "KILL"])
            .arg(env!("CARGO_BIN_EXE_linkweir-gateway"))
            .arg("up")
            .arg(folder.path("2.toml"))
            .stderr(std::fs::File::create(&self.log).unwrap());
        let control = folder.path("control2");
        self.tunnel.gateways[1] = Gateway::started(&self.tunnel.there, command, &control);
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn wait_for(&self, what: &str) {
        let begun = Instant::now();
        while !self.said().contains(what) {
            let said = self.said();
            assert!(begun.elapsed() < crate::PATIENCE, "never: {what}; {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A datagram goes from the client to the hub.
    fn comes_through(&self) {
        let tunnel = &self.tunnel;
        let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
        comes_through(&b, &a, BACK, b"found");
    }
}

/// Runs a program with another resolv.conf and nsswitch.conf than the system's.
const WITH_FILES: &str = "mount --make-rprivate / && mount --bind \"$1\" /etc/resolv.conf && \
     mount --bind \"$2\" /etc/nsswitch.conf && shift 2 && exec \"$@\"";

/// Peers whose names the name server does not answer.
fn silent(count: usize) -> String {
    let peer = |at: usize| {
        let key = seal::show_key(&Identity::new([0x55 + at as u8; 32]).public());
        format!(
            "[[peer]]\nname = \"p{at}\"\npublic_key = \"{key}\"\nendpoint = \"silent{at}.example:51820\"\n\
             allowed_ips = \"10.79.{at}.0/24\"\n"
        )
    };
    (0..count).map(peer).collect()
}

/// The resolver of glibc waits 10 s for a silent server. Six of these must not make a hub wait for a minute.
pub fn silent_name_servers_of_other_peers_delay_no_name() {
    let named = Named::new(&[DEAD[0]], &silent(6));
    named.wait_for("peer other: hub.example is 192.0.2.3:51820");
    named.server.set(HUB, &["192.0.2.1"]);
    named.wait_for("peer other: hub.example is 192.0.2.1:51820");
    named.comes_through();
}

/// IPv6 is filtered somewhere on the way, or the first of two addresses is out of order. The one that answers is remembered.
pub fn the_next_address_of_a_name_is_tried_when_one_does_not_answer() {
    for dead in DEAD {
        let mut named = Named::new(&[dead, "192.0.2.1"], "");
        named.comes_through();
        let tried = if dead == DEAD[1] {
            "[2001:db8::3]:51820; 192.0.2.1:51820"
        } else {
            "192.0.2.3:51820; 192.0.2.1:51820"
        };
        // Packets do not wait for the log, so the entry may be later.
        named.wait_for(&format!("hub.example does not answer at {tried} is tried"));
        // A restarted client asks first where the hub answered last.
        let saved = named.tunnel.folder.path("control2.peers");
        let begun = Instant::now();
        while !std::fs::read_to_string(&saved).is_ok_and(|text| text.contains(" 192.0.2.1:51820")) {
            assert!(begun.elapsed() < crate::PATIENCE, "it is not saved");
            std::thread::sleep(Duration::from_millis(20));
        }
        named.tunnel.gateways[1].signal(Signal::SIGKILL);
        named.tunnel.gateways[1].ended();
        named.start();
        named.comes_through();
        assert!(
            !named.said().contains("does not answer"),
            "{}",
            named.said()
        );
    }
}

/// The process that asks, and every thread of the gateway, have no capabilities, although the name server is silent from
/// before they were given up until long after.
pub fn who_asks_for_names_has_no_capabilities() {
    for user in ["root", "nobody"] {
        let mut named = Named::new(&["192.0.2.1"], "");
        let gateway = &mut named.tunnel.gateways[1];
        gateway.signal(Signal::SIGKILL);
        gateway.ended();
        let file = named.tunnel.folder.path("2.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text
            .replace("user = \"root\"", &format!("user = \"{user}\""))
            .replace("\"10.77.0.1/32\",", "\"0.0.0.0/0\",");
        std::fs::write(&file, text + &silent(2)).unwrap();
        named.start();
        let pid = named.tunnel.gateways[1].pid();
        let tasks = tasks_of(pid);
        for (task, status) in &tasks {
            for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
                let none = format!("{set}:\t0000000000000000\n");
                assert!(status.contains(&none), "user {user}, {task}: {status}");
            }
        }
        assert!(
            tasks.len() > 2,
            "one for each silent name, besides: {tasks:?}"
        );
    }
}

/// The threads of a gateway and of its resolver, with what the system says of them. Its keeper has capabilities and is left
/// out.
fn tasks_of(pid: u32) -> Vec<(String, String)> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let resolvers = children.split_whitespace().filter(|child| {
        let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("resolve-for-gateway")
    });
    let mut tasks = Vec::new();
    for process in resolvers.map(str::to_string).chain([pid.to_string()]) {
        for task in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
            let status = task.unwrap().path().join("status");
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            tasks.push((status.display().to_string(), text));
        }
    }
    tasks.retain(|(_, status)| !status.is_empty());
    tasks
}

pub mod long {
    use super::*;

    /// There is a session when the hub's provider gives it another address, and packets go on: its name is asked for when it
    /// has not answered for 15 s.
    pub fn a_hub_that_moves_while_there_is_a_session_is_found_within_30_s() {
        let named = Named::new(&["192.0.2.1"], &silent(3));
        named.comes_through();
        named
            .tunnel
            .here
            .ip(&["address", "del", "192.0.2.1/24", "dev", "out"]);
        named
            .tunnel
            .here
            .ip(&["address", "add", "192.0.2.11/24", "dev", "out"]);
        named.server.set(HUB, &["192.0.2.11"]);
        // It gives up after PATIENCE, 30 s.
        named.comes_through();
        let said = named.said();
        assert!(
            said.contains("peer other: hub.example is 192.0.2.11:51820"),
            "{said}"
        );
        assert!(!said.contains("no session any more"), "{said}");
    }
}
