// SPDX-License-Identifier: BSD-3-Clause
//! Two sites, the network between them, and their gateways.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{ChildStderr, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::fcntl::{fcntl, FcntlArg};
use nix::sys::signal::Signal;

use crate::ordinary::{preloaded, NAME_SERVER};
use crate::place::{keygen, program, Folder, Gateway, Namespace};

/// The port of both tunnels.
pub const PORT: u16 = 51820;
/// Addresses of the two uplinks, the networks they are in, and their routers.
pub const UPLINKS: [&str; 2] = ["192.0.2.1/24", "198.51.100.2/24"];
pub const UPLINKS_V6: [&str; 2] = ["2001:db8:1::1/64", "2001:db8:2::2/64"];
pub const ROUTERS: [&str; 2] = ["192.0.2.254", "198.51.100.254"];
pub const ROUTERS_V6: [&str; 2] = ["2001:db8:1::fe", "2001:db8:2::fe"];
/// What a pipe to a reader of a log holds, bytes.
const PIPE_BYTES: i32 = 4096;
/// The end of a log that is kept, bytes.
const KEPT_BYTES: usize = 20_000;

/// A configuration's parts that events change.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub rate_mbit: u64,
    pub limit_pkts: u64,
    /// Another prefix behind the peer, by its third byte.
    pub prefix: Option<u8>,
    /// Another peer, which is not there.
    pub absent: bool,
}

pub struct Sites {
    // Gateways end before their namespaces, namespaces before the folder.
    pub gateways: [Gateway; 2],
    pub here: Namespace,
    pub there: Namespace,
    pub middle: Namespace,
    pub changes: [Changes; 2],
    publics: [String; 2],
    logs: [Log; 2],
    pub folder: Folder,
}

impl Sites {
    pub fn new() -> Sites {
        let [here, there, middle] = [(); 3].map(|()| Namespace::new());
        middle.inside(|| {
            for version in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                fs::write(format!("/proc/sys/net/{version}"), "1").unwrap();
            }
        });
        for (at, site) in [&here, &there].iter().enumerate() {
            let device = ["one", "two"][at];
            middle.cable(device, site);
            for (address, prefix) in [(ROUTERS[at], "24"), (ROUTERS_V6[at], "64")] {
                let address = format!("{address}/{prefix}");
                let add = ["address", "add", &address, "dev", device];
                middle.ip(&[&add[..], nodad(&address)].concat());
            }
            middle.ip(&["link", "set", device, "up"]);
            connect(site, at);
            // Networks behind the gateways.
            let behind = format!("10.78.{}.1/32", at + 1);
            site.ip(&["address", "add", &behind, "dev", "lo"]);
        }
        let folder = Folder::new();
        let publics = [1, 2].map(|last| keygen(&folder, last));
        let changes = [(); 2].map(|()| Changes {
            rate_mbit: 4,
            limit_pkts: 100,
            ..Changes::default()
        });
        let library = preloaded(&folder, "names", NAME_SERVER);
        let mut logs = Vec::new();
        let gateways = [0, 1].map(|at| {
            let file = folder.write(
                &format!("{}.toml", at + 1),
                &text(&folder, &publics, at, &changes[at]),
            );
            folder.write(&format!("hub{}", at + 1), address_of(1 - at));
            folder.write(&format!("capacity{}", at + 1), &capacity(&folder, at));
            let mut command = program();
            command
                .arg("up")
                .arg(file)
                .env("LD_PRELOAD", &library)
                .env("HUB", folder.path(&format!("hub{}", at + 1)))
                .stderr(Stdio::piped());
            let control = folder.path(&format!("control{}", at + 1));
            let site = [&here, &there][at];
            let (gateway, error) = Gateway::logged(site, command, &control);
            logs.push(Log::read(error.expect("a pipe")));
            gateway
        });
        Sites {
            gateways,
            here,
            there,
            middle,
            changes,
            publics,
            logs: logs.try_into().ok().expect("two logs"),
            folder,
        }
    }

    pub fn site(&self, at: usize) -> &Namespace {
        [&self.here, &self.there][at]
    }

    /// What a command prints in a site.
    pub fn print(&self, at: usize, program: &str, words: &[&str]) -> String {
        String::from_utf8(self.site(at).run(program, words).stdout).unwrap()
    }

    /// Writes the configuration of a site, as its changes say, and has it read.
    pub fn reload(&self, at: usize) {
        let text = text(&self.folder, &self.publics, at, &self.changes[at]);
        self.folder.write(&format!("{}.toml", at + 1), &text);
        self.gateways[at].signal(Signal::SIGHUP);
    }

    /// Has a configuration read that is none, and puts the right one back.
    pub fn reload_rubbish(&self, at: usize) {
        self.folder
            .write(&format!("{}.toml", at + 1), "[gateway]\ndevice = 7\n");
        self.gateways[at].signal(Signal::SIGHUP);
        thread::sleep(Duration::from_millis(200));
        self.reload(at);
    }

    /// What the name of the other site's uplink is, as seen from a site.
    pub fn name(&self, at: usize, address: &str) {
        self.folder.write(&format!("hub{}", at + 1), address);
    }

    /// Stops or continues to read the log of a site's gateway.
    pub fn stop_reading(&self, at: usize, stopped: bool) {
        self.logs[at].stopped.store(stopped, Ordering::Relaxed);
    }

    /// The last lines that the gateways wrote.
    pub fn said(&self) -> String {
        self.logs
            .iter()
            .map(Log::said)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The address of a site's uplink.
pub fn address_of(at: usize) -> &'static str {
    UPLINKS[at].split_once('/').expect("with a length").0
}

/// Gives a site its uplink, as a DHCP client does: addresses and routes.
pub fn connect(site: &Namespace, at: usize) {
    site.ip(&["link", "set", "out", "up"]);
    for (address, router) in [(UPLINKS[at], ROUTERS[at]), (UPLINKS_V6[at], ROUTERS_V6[at])] {
        let replace = ["address", "replace", address, "dev", "out"];
        site.ip(&[&replace[..], nodad(address)].concat());
        site.ip(&["route", "replace", "default", "via", router, "dev", "out"]);
    }
}

fn nodad(address: &str) -> &'static [&'static str] {
    if address.contains("::") {
        &["nodad"]
    } else {
        &[]
    }
}

/// A program that reports the capacity, and floods both its outputs when a file says so.
fn capacity(folder: &Folder, at: usize) -> String {
    let flood = flood(folder, at).display().to_string();
    format!(
        "while :; do\n  if [ -e {flood} ]; then rm {flood}; yes 4Mbit | head -c 4000000; yes rubbish | head -c 4000000 >&2; fi\n  \
         echo 4Mbit\n  sleep 0.2\ndone\n"
    )
}

/// The file whose presence makes the program of a site flood its outputs.
pub fn flood(folder: &Folder, at: usize) -> PathBuf {
    folder.path(&format!("flood{}", at + 1))
}

fn text(folder: &Folder, publics: &[String; 2], at: usize, changes: &Changes) -> String {
    let (last, other) = (at + 1, 2 - at);
    let path = |name: &str| folder.path(name).display().to_string();
    let behind = if at == 0 {
        "\"0.0.0.0/0\", \"::/0\", ".to_string()
    } else {
        String::new()
    };
    let prefix = changes
        .prefix
        .map(|third| format!(", \"10.79.{third}.0/24\""));
    let mut text = format!(
        r#"[gateway]
device = "lw0"
address = ["10.77.0.{last}/24", "fd77::{last}/64"]
listen = "0.0.0.0:{PORT}"
mode = "wireguard"
private_key_file = "key{last}"
user = "root"
leak = "refuse"
control = "{}"
[link]
rate = "{}Mbit"
command = ["/bin/sh", "{}"]
[scheduler]
policy = "strict"
[[class]]
name = "ef"
match = [{{ dscp = "EF" }}]
limit = "1000p"
max_age = "3600s"
full = "tail"
[[class]]
name = "rest"
limit = "{}p"
[[peer]]
name = "other"
public_key = "{}"
endpoint = "hub.example:{PORT}"
allowed_ips = [{behind}"10.77.0.{other}/32", "fd77::{other}/128", "10.78.{other}.0/24"{}]
"#,
        path(&format!("control{last}")),
        changes.rate_mbit,
        path(&format!("capacity{last}")),
        changes.limit_pkts,
        publics[1 - at],
        prefix.unwrap_or_default(),
    );
    if changes.absent {
        // Without a program of its own.
        text += &crate::ordinary::absent(at, false)
            .replace("allowed_ips", "rate = \"1Mbit\"\nallowed_ips");
    }
    text
}

/// What a gateway writes to standard error, read unless that is stopped.
pub struct Log {
    text: Arc<Mutex<String>>,
    stopped: Arc<AtomicBool>,
}

impl Log {
    fn read(mut error: ChildStderr) -> Log {
        fcntl(&error, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)).expect("a pipe can be made small");
        let log = Log {
            text: Arc::default(),
            stopped: Arc::default(),
        };
        let (text, stopped) = (log.text.clone(), log.stopped.clone());
        thread::spawn(move || {
            let mut part = [0; 1024];
            loop {
                while stopped.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(10));
                }
                match error.read(&mut part) {
                    Ok(0) | Err(_) => return,
                    Ok(bytes) => {
                        let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
                        text.push_str(&String::from_utf8_lossy(&part[..bytes]));
                        if text.len() > 2 * KEPT_BYTES {
                            let mut from = text.len() - KEPT_BYTES;
                            while !text.is_char_boundary(from) {
                                from += 1;
                            }
                            text.drain(..from);
                        }
                    }
                }
            }
        });
        log
    }

    fn said(&self) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = text.lines().rev().take(40).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}
