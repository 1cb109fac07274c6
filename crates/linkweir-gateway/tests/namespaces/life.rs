// SPDX-License-Identifier: BSD-3-Clause
//! Starting, changing, disturbing and stopping.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

use linkweir_gateway::show::figures::Show;
use nix::sys::signal::Signal;

use crate::place::{
    cabled, config, program, pss, rests, Folder, Gateway, Namespace, Socket, Tunnel, STRICT,
};
use crate::PATIENCE;

/// Sends until a datagram arrives, as a sender does that does not know the tunnel's state. Returns how many it has sent: where
/// they are late, copies arrive afterwards.
pub fn comes_through(a: &Socket, b: &Socket, to: &str, word: &[u8]) -> u64 {
    b.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let begun = Instant::now();
    let mut buffer = [0; 2000];
    let mut sent = 0;
    loop {
        sent += u64::from(a.send_to(word, to).is_ok());
        if b.recv(&mut buffer)
            .is_ok_and(|count| buffer[..count] == *word)
        {
            b.set_read_timeout(Some(PATIENCE)).unwrap();
            return sent;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "nothing comes through: {word:?}"
        );
    }
}

pub fn cleartext_must_be_asked_for_twice() {
    let folder = Folder::new();
    let file = folder.write("1.toml", &config(&folder, 1, STRICT));
    let output = Command::new(env!("CARGO_BIN_EXE_linkweir-gateway"))
        .arg("up")
        .arg(file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--cleartext"));
}

pub fn a_stop_removes_the_device_its_routes_and_the_control_socket() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let file = folder.write("1.toml", &config(&folder, 1, STRICT));
    let control = folder.path("control1");
    let mut gateway = Gateway::start(&here, &file, &control);
    let routes = here.run("ip", &["route"]);
    let routes = String::from_utf8(routes.stdout).unwrap();
    assert!(routes.contains("10.78.2.0/24 dev lw0"), "{routes}");
    gateway.signal(Signal::SIGTERM);
    assert!(gateway.ended().success());
    let left = String::from_utf8(here.run("ip", &["route"]).stdout).unwrap();
    assert!(!left.contains("lw0"), "{left}");
    assert!(!control.exists());
    Gateway::start(&here, &file, &control);
}

pub fn waiting_packets_may_leave_before_the_stop() {
    let mut tunnel = Tunnel::changed(STRICT, |text| {
        text.replace("mode =", "drain = \"30s\"\nmode =")
    });
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    tunnel.gateways[0].set_capacity(0);
    for _ in 0..50 {
        a.send_to(&[1; 500], "10.77.0.2:2000").unwrap();
    }
    tunnel.gateways[0].wait_until("all wait", |show| {
        show.peers[0].classes[1].backlog_pkts >= 50
    });
    tunnel.gateways[0].set_capacity(10_000_000);
    tunnel.gateways[0].signal(Signal::SIGTERM);
    let mut buffer = [0; 2000];
    for _ in 0..50 {
        assert_eq!(b.recv(&mut buffer).unwrap(), 500);
    }
    assert!(tunnel.gateways[0].ended().success());
}

/// After one signal it sends what waits; after a second it ends.
pub fn a_second_stop_is_immediate() {
    let mut tunnel = Tunnel::changed(STRICT, |text| {
        text.replace("mode =", "drain = \"60s\"\nmode =")
    });
    let a = tunnel.here.socket("10.77.0.1:1000");
    let gateway = &mut tunnel.gateways[0];
    gateway.set_capacity(0);
    let waiting = |show: &Show| show.peers[0].classes[1].backlog_pkts;
    let send = || {
        for _ in 0..50 {
            a.send_to(&[1; 500], "10.77.0.2:2000").unwrap();
        }
    };
    send();
    gateway.wait_until("all wait", |show| waiting(show) >= 50);
    gateway.signal(Signal::SIGTERM);
    // It may take the request before the first signal, but not before the second.
    gateway.show();
    let before = waiting(&gateway.show());
    send();
    gateway.show();
    assert_eq!(
        waiting(&gateway.show()),
        before,
        "what comes now stays outside"
    );
    // `drain` is twice as long as the test waits.
    gateway.signal(Signal::SIGTERM);
    assert!(gateway.ended().success());
}

/// The fields of a process' status that begin with these words.
fn status<const N: usize>(pid: u32, names: [&str; N]) -> [Vec<String>; N] {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    names.map(|name| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let words = line[name.len()..].split_whitespace();
        words.map(str::to_string).collect()
    })
}

/// The processes that a process started.
pub fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let pids = list.split_whitespace().map(|pid| pid.parse().unwrap());
    pids.collect()
}

/// Waits until a process has ended.
pub fn gone(pid: u32) {
    let begun = Instant::now();
    let lives = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status"));
        status.is_ok_and(|status| !status.contains("State:\tZ"))
    };
    while lives() {
        assert!(begun.elapsed() < PATIENCE, "process {pid} does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn privileges_are_given_up() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let text = config(&folder, 1, STRICT).replace("user = \"root\"\n", "");
    let file = folder.write("1.toml", &text);
    let mut gateway = Gateway::start(&here, &file, &folder.path("control1"));
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    let [uid, gid, groups, nnp] = status(gateway.pid(), ["Uid:", "Gid:", "Groups:", "NoNewPrivs:"]);
    assert_eq!(uid, vec![nobody.uid.to_string(); 4]);
    assert_eq!(gid, vec![nobody.gid.to_string(); 4]);
    assert_eq!(groups, Vec::<String>::new());
    assert_eq!(nnp, ["1"]);
    let sets = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"];
    for set in status(gateway.pid(), sets) {
        assert_eq!(set, ["0000000000000000"]);
    }
    // The process that reads the configuration again keeps what routes (CAP_NET_ADMIN, 12) and keys of other users
    // (CAP_DAC_READ_SEARCH, 2) need. It handles no packet, and ends with the gateway.
    let [keeper] = children(gateway.pid())[..] else {
        panic!("one process: {:?}", children(gateway.pid()));
    };
    let begun = Instant::now();
    while status(keeper, ["CapEff:"])[0] != ["0000000000001004"] {
        let now = status(keeper, ["CapEff:"]);
        assert!(begun.elapsed() < PATIENCE, "its capabilities are {now:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let [inherited, permitted, ambient, nnp] =
        status(keeper, ["CapInh:", "CapPrm:", "CapAmb:", "NoNewPrivs:"]);
    assert_eq!(permitted, ["0000000000001004"]);
    assert_eq!(inherited, ["0000000000000000"]);
    assert_eq!(ambient, ["0000000000000000"]);
    assert_eq!(nnp, ["1"]);
    let files = fs::read_dir(format!("/proc/{keeper}/fd")).unwrap();
    let links = files.map(|file| fs::read_link(file.unwrap().path()).unwrap_or_default());
    let links: Vec<_> = links.collect();
    assert!(!links.contains(&"/dev/net/tun".into()), "{links:?}");
    gateway.signal(Signal::SIGKILL);
    gateway.ended();
    gone(keeper);
}

/// With the privileges of an installed gateway, which may not even read its configuration.
pub fn a_reload_changes_routes() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let text = config(&folder, 1, STRICT).replace("user = \"root\"\n", "");
    let file = folder.write("1.toml", &text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let gateway = Gateway::start(&here, &file, &folder.path("control1"));
    here.ip(&["route", "add", "10.98.0.0/16", "via", "192.0.2.7"]);
    let routes = || {
        let of = |version| here.run("ip", &[version, "route", "show"]).stdout;
        String::from_utf8([of("-4"), of("-6")].concat()).unwrap()
    };
    let reload = |text: &str, peers: usize| {
        fs::write(&file, text).unwrap();
        gateway.signal(Signal::SIGHUP);
        gateway.wait_until("it is taken over", |show| show.peers.len() == peers);
    };
    // Routes follow.
    let becomes = |is_so: &dyn Fn(&str) -> bool| {
        let begun = Instant::now();
        while !is_so(&routes()) {
            assert!(begun.elapsed() < PATIENCE, "{}", routes());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let new = "[[peer]]\nname = \"new\"\nendpoint = \"192.0.2.9:51820\"\n\
               allowed_ips = [\"10.99.0.0/16\", \"fd99::/16\", \"10.98.0.0/16\"]\n";
    reload(&format!("{text}{new}"), 2);
    for net in ["10.78.2.0/24", "10.99.0.0/16", "fd99::/16"] {
        becomes(&|routes| routes.contains(&format!("{net} dev lw0")));
    }
    let moved = text.replace("10.78.2.0/24", "10.78.3.0/24");
    reload(&moved, 1);
    becomes(&|routes| routes.contains("10.78.3.0/24 dev lw0"));
    for net in ["10.78.2.0/24", "10.99.0.0/16", "fd99::/16"] {
        becomes(&|routes| !routes.contains(net));
    }
    let after = routes();
    assert!(after.contains("10.98.0.0/16 via 192.0.2.7"), "{after}");
    // What is refused changes no route.
    fs::write(&file, text.replace("lw0", "lw1")).unwrap();
    gateway.signal(Signal::SIGHUP);
    gateway.show();
    gateway.show();
    std::thread::sleep(Duration::from_millis(100));
    assert!(routes().contains("10.78.3.0/24 dev lw0"), "{}", routes());
}

pub fn rubbish_is_counted_and_harms_nobody() {
    let tunnel = Tunnel::new(STRICT);
    let (here, there) = (&tunnel.here, &tunnel.there);
    let a = here.socket("10.77.0.1:1000");
    let b = there.socket("10.77.0.2:2000");
    comes_through(&a, &b, "10.77.0.2:2000", b"before");

    let stranger = there.socket("192.0.2.2:4000");
    for datagram in [&b""[..], b"connexion", &[0x45; 1400], &[0; 1], &[0x60; 40]] {
        stranger.send_to(datagram, "192.0.2.1:51820").unwrap();
    }
    tunnel.gateways[0].wait_until("strangers are counted", |show| {
        show.dropped_pkts.get("stranger") == Some(&5)
    });
    // The same from the peer's own address.
    let mut tunnel = tunnel;
    tunnel.gateways[1].signal(Signal::SIGKILL);
    tunnel.gateways[1].ended();
    let peer = tunnel.there.socket("192.0.2.2:51820");
    for datagram in [&b""[..], b"connexion", &[0x45; 1400], &[0; 1], &[0x60; 40]] {
        peer.send_to(datagram, "192.0.2.1:51820").unwrap();
    }
    // A whole packet whose source is not behind this peer.
    let mut forged = vec![
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 99, 0, 1, 10, 77, 0, 1,
    ];
    forged.extend([0; 8]);
    peer.send_to(&forged, "192.0.2.1:51820").unwrap();
    tunnel.gateways[0].wait_until("rubbish of the peer is counted", |show| {
        let dropped = &show.peers[0].dropped_pkts;
        dropped.get("malformed") == Some(&5) && dropped.get("not_allowed") == Some(&1)
    });
    drop(peer);
    tunnel.restart(2);
    let a = tunnel.here.socket("10.77.0.1:1001");
    let b = tunnel.there.socket("10.77.0.2:2001");
    comes_through(&a, &b, "10.77.0.2:2001", b"after");
}

pub fn outages_of_anything_end() {
    let mut tunnel = Tunnel::new(STRICT);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    let to = "10.77.0.2:2000";
    comes_through(&a, &b, to, b"at first");

    for end in [1, 2] {
        tunnel.gateways[end - 1].signal(Signal::SIGKILL);
        tunnel.gateways[end - 1].ended();
        let _ = a.send_to(b"lost", to);
        tunnel.restart(end);
        let a = tunnel.here.socket("10.77.0.1:1001");
        let b = tunnel.there.socket("10.77.0.2:2001");
        comes_through(&a, &b, "10.77.0.2:2001", b"after a kill");
    }

    for device in ["out", "lw0"] {
        tunnel.here.ip(&["link", "set", device, "down"]);
        let _ = a.send_to(b"lost", to);
        let c = tunnel.there.socket("10.77.0.2:3000");
        let _ = c.send_to(b"lost", "10.77.0.1:1000");
        tunnel.here.ip(&["link", "set", device, "up"]);
        if device == "lw0" {
            // The kernel forgets routes and IPv6 addresses of a device that was down.
            tunnel
                .here
                .ip(&["route", "replace", "10.78.2.0/24", "dev", "lw0"]);
        }
        let a = tunnel.here.socket("10.77.0.1:1002");
        let b = tunnel.there.socket("10.77.0.2:2002");
        comes_through(&a, &b, "10.77.0.2:2002", b"after an outage");
    }
}

/// In none of these states there is anything to do, however long they last.
pub fn it_sleeps_while_there_is_nothing_to_do() {
    let tunnel = Tunnel::new(STRICT);
    let [one, two] = &tunnel.gateways;
    let a = tunnel.here.socket("10.77.0.1:1000");
    rests(one);
    one.set_capacity(0);
    for _ in 0..50 {
        a.send_to(&[1; 500], "10.77.0.2:2000").unwrap();
    }
    one.wait_until("all wait", |show| {
        show.peers[0].classes[1].backlog_pkts >= 50
    });
    rests(one);
    // A client asks and does not read the answer.
    let silent = std::os::unix::net::UnixStream::connect(tunnel.folder.path("control1")).unwrap();
    rests(one);
    drop(silent);
    tunnel.there.ip(&["link", "set", "lw0", "down"]);
    one.set_capacity(1_000_000_000);
    let show = two.wait_until("all have come", |show| {
        show.peers[0].dropped_pkts.get("device_down") >= Some(&50)
    });
    assert_eq!(show.dropped_pkts.get("malformed"), None, "{show:?}");
    rests(two);
    tunnel.here.ip(&["link", "set", "out", "down"]);
    for _ in 0..50 {
        a.send_to(&[1; 500], "10.77.0.2:2000").unwrap();
    }
    one.wait_until("all were tried", |show| {
        show.peers[0].dropped_pkts.get("underlay_down") >= Some(&50)
    });
    rests(one);
}

/// With the capabilities of its unit; an installed gateway has no others.
pub fn its_unit_gives_it_the_capabilities_it_needs() {
    let unit = include_str!("../../debian/linkweir-gateway@.service");
    let given = unit
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="))
        .unwrap();
    let given: Vec<String> = given
        .split(' ')
        .map(|name| format!("+{}", name.strip_prefix("CAP_").unwrap().to_lowercase()))
        .collect();
    let (here, there) = cabled();
    let folder = Folder::new();
    let start = |namespace: &Namespace, last: u8, bounding: String| {
        let text = config(&folder, last, STRICT).replace("user = \"root\"\n", "");
        let file = folder.write(&format!("{last}.toml"), &text);
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--no-new-privs", "--bounding-set"])
            .arg(bounding)
            .arg(env!("CARGO_BIN_EXE_linkweir-gateway"))
            .arg("up")
            .arg(file)
            .arg("--cleartext");
        let control = folder.path(&format!("control{last}"));
        Gateway::started(namespace, command, &control)
    };
    let _gateways = [(&here, 1), (&there, 2)]
        .map(|(namespace, last)| start(namespace, last, format!("-all,{}", given.join(","))));
    let (a, b) = (
        here.socket("10.77.0.1:1000"),
        there.socket("10.77.0.2:2000"),
    );
    comes_through(&a, &b, "10.77.0.2:2000", b"with few capabilities");
}

pub fn a_service_manager_is_notified() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    // Without privileges, as always.
    let text = config(&folder, 1, STRICT).replace("user = \"root\"\n", "");
    let file = folder.write("1.toml", &text);
    let manager = UnixDatagram::bind(folder.path("manager")).unwrap();
    fs::set_permissions(folder.path("manager"), fs::Permissions::from_mode(0o777)).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let receive = || {
        let mut buffer = [0; 200];
        let count = loop {
            match manager.recv(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                count => break count.expect("it says something"),
            }
        };
        String::from_utf8_lossy(&buffer[..count]).trim().to_string()
    };
    let mut command = program();
    command
        .arg("up")
        .arg(&file)
        .arg("--cleartext")
        .env("NOTIFY_SOCKET", folder.path("manager"))
        .env("WATCHDOG_USEC", "100000");
    let mut child = here.inside(move || command.spawn().unwrap());
    assert_eq!(receive(), "READY=1");
    for _ in 0..5 {
        assert_eq!(receive(), "WATCHDOG=1");
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
    let last = std::iter::repeat_with(receive).find(|state| state != "WATCHDOG=1");
    assert_eq!(last.as_deref(), Some("STOPPING=1"));
    assert!(child.wait().unwrap().success());
}

pub fn the_end_of_the_device_is_an_error_that_says_so() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let file = folder.write("1.toml", &config(&folder, 1, STRICT));
    let mut gateway = Gateway::start(&here, &file, &folder.path("control1"));
    here.ip(&["link", "delete", "lw0"]);
    assert_eq!(gateway.ended().code(), Some(1));
}

pub fn a_reload_loses_no_packet_and_changes_rate_and_rules() {
    let tunnel = Tunnel::new(STRICT);
    let gateway = &tunnel.gateways[0];
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    gateway.set_capacity(0);
    for number in 0..200_u8 {
        a.send_to(&[number; 300], "10.77.0.2:2000").unwrap();
    }
    gateway.wait_until("all wait", |show| {
        show.peers[0].classes[1].backlog_pkts >= 200
    });

    let file = tunnel.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    // Neither mistakes nor settings that need a restart change anything.
    for wrong in ["rate = \"1Gbit\"\nrat = 5", "rate = \"1Gbit\"\n[nonsense]"] {
        fs::write(&file, text.replace("rate = \"1Gbit\"", wrong)).unwrap();
        gateway.signal(Signal::SIGHUP);
    }
    fs::write(&file, text.replace("51820", "51821")).unwrap();
    gateway.signal(Signal::SIGHUP);
    gateway.set_capacity(0);

    let changed = text
        .replace("rate = \"1Gbit\"", "rate = \"30Mbit\"")
        .replace("port = 5060", "port = 1000");
    fs::write(&file, &changed).unwrap();
    gateway.signal(Signal::SIGHUP);
    gateway.wait_until("the new capacity", |show| {
        show.peers[0].capacity_bps == 30_000_000
    });
    a.send_to(&[200; 300], "10.77.0.2:2000").unwrap();
    let mut buffer = [0; 2000];
    let mut received: Vec<u8> = (0..201)
        .map(|_| {
            assert_eq!(b.recv(&mut buffer).unwrap(), 300);
            buffer[0]
        })
        .collect();
    let urgent = received.iter().position(|number| *number == 200).unwrap();
    received.remove(urgent);
    assert_eq!(received, (0..200).collect::<Vec<u8>>());
    let show = gateway.wait_until("the new rule", |show| {
        show.peers[0].classes[0].sent_pkts == 1
    });
    assert_eq!(
        show.peers[0].endpoint.unwrap().port(),
        51820,
        "a fixed value did not change"
    );
}

/// Parameters that the running policy refuses change nothing, at no peer.
pub fn a_reload_the_policy_refuses_changes_nothing() {
    let more = "[[peer]]\nname = \"first\"\nendpoint = \"192.0.2.9:51820\"\nallowed_ips = \"10.99.0.0/16\"\nrate = \"500Mbit\"\n";
    let tunnel = Tunnel::changed(&pss("rate = \"5Mbit\""), |text| {
        text.replace("rate = \"1Gbit\"", "rate = \"20Mbit\"")
            .replace("[[peer]]", &format!("{more}[[peer]]"))
    });
    let gateway = &tunnel.gateways[0];
    let file = tunnel.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let limits = |show: &Show| {
        let classes = show.peers.iter().map(|peer| &peer.classes[1]);
        classes
            .map(|class| class.parameters["rate_bps"])
            .collect::<Vec<_>>()
    };
    assert_eq!(limits(&gateway.show()), [5_000_000; 2]);
    // It would fit a link of 100 Mbit/s, which the scheduler was not given.
    let changed = text.replace("\"5Mbit\"", "\"30Mbit\"").replace(
        "rate = \"20Mbit\"",
        "rate = \"20Mbit\"\nnominal = \"100Mbit\"",
    );
    fs::write(&file, &changed).unwrap();
    gateway.signal(Signal::SIGHUP);
    gateway.show();
    let show = gateway.show();
    assert_eq!(limits(&show), [5_000_000; 2], "{show:?}");
    assert_eq!(show.peers[0].name, "first");
    // A faster link is set before the parameters.
    fs::write(&file, changed.replace("\"20Mbit\"", "\"100Mbit\"")).unwrap();
    gateway.signal(Signal::SIGHUP);
    gateway.wait_until("it is taken over", |show| limits(show) == [30_000_000; 2]);
}

pub fn peers_come_and_go_with_a_reload() {
    let tunnel = Tunnel::new(STRICT);
    let gateway = &tunnel.gateways[0];
    let file = tunnel.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let more = "[[peer]]\nname = \"new\"\nendpoint = \"192.0.2.9:51820\"\nallowed_ips = \"10.99.0.0/16\"\nrate = \"2Mbit\"\n";
    fs::write(
        &file,
        text.replacen("[[peer]]", &format!("{more}[[peer]]"), 1),
    )
    .unwrap();
    gateway.signal(Signal::SIGHUP);
    let show = gateway.wait_until("two peers", |show| show.peers.len() == 2);
    assert_eq!(
        (show.peers[0].name.as_str(), show.peers[0].capacity_bps),
        ("new", 2_000_000)
    );
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    comes_through(&a, &b, "10.77.0.2:2000", b"to the second peer");
    fs::write(&file, text).unwrap();
    gateway.signal(Signal::SIGHUP);
    gateway.wait_until("one peer", |show| {
        show.peers.len() == 1 && show.peers[0].name == "other"
    });
    comes_through(&a, &b, "10.77.0.2:2000", b"to the only peer");
}

/// There it is known by its endpoint.
pub fn a_renamed_peer_keeps_its_queue_in_cleartext() {
    let tunnel = Tunnel::new(STRICT);
    let gateway = &tunnel.gateways[0];
    let a = tunnel.here.socket("10.77.0.1:1000");
    gateway.set_capacity(0);
    for _ in 0..50 {
        a.send_to(&[1; 500], "10.77.0.2:2000").unwrap();
    }
    gateway.wait_until("all wait", |show| {
        show.peers[0].classes[1].backlog_pkts >= 50
    });
    let file = tunnel.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"other\"", "\"renamed\"")).unwrap();
    gateway.signal(Signal::SIGHUP);
    let show = gateway.wait_until("its name", |show| show.peers[0].name == "renamed");
    assert!(show.peers[0].classes[1].backlog_pkts >= 50, "{show:?}");
    assert_eq!(show.peers[0].capacity_bps, 0);
}

/// Also for the source of the last packet before the reload.
pub fn a_reload_takes_over_what_peers_may_send_from() {
    let tunnel = Tunnel::new(STRICT);
    let gateway = &tunnel.gateways[0];
    let behind = ["address", "add", "10.78.2.1/32", "dev", "lw0"];
    tunnel.there.ip(&behind);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.78.2.1:2000");
    let file = tunnel.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let refused = |show: &Show| {
        let dropped = &show.peers[0].dropped_pkts;
        dropped.get("not_allowed").copied().unwrap_or(0)
    };
    comes_through(&b, &a, "10.77.0.1:1000", b"before");
    let before = refused(&gateway.show());
    fs::write(&file, text.replace(", \"10.78.2.0/24\"", "")).unwrap();
    gateway.signal(Signal::SIGHUP);
    gateway.show();
    gateway.show();
    b.send_to(b"not any more", "10.77.0.1:1000").unwrap();
    // A late datagram from before the reload may have been refused as well.
    gateway.wait_until("it is refused", |show| refused(show) > before);
    fs::write(&file, text).unwrap();
    gateway.signal(Signal::SIGHUP);
    comes_through(&b, &a, "10.77.0.1:1000", b"again");
}

/// A program reports the capacity of its peer, also after peers change places.
pub fn programs_follow_their_peers() {
    let rates = Folder::new();
    for peer in ["other", "new"] {
        rates.write(peer, "5Mbit\n");
    }
    // Writes a line whenever the file changes.
    let script = rates.write(
        "script",
        "while sleep 0.05; do\nnow=$(cat \"$1/$LINKWEIR_PEER\")\ntest \"$now\" = \"$last\" || echo \"$now\"\nlast=$now\ndone\n",
    );
    let new = "[[peer]]\nname = \"new\"\nendpoint = \"192.0.2.9:51820\"\nallowed_ips = \"10.99.0.0/16\"\n";
    let tunnel = Tunnel::changed(STRICT, |text| {
        let command = format!(
            "command = [\"sh\", \"{}\", \"{}\"]\n{STRICT}",
            script.display(),
            script.parent().unwrap().display()
        );
        text.replace(STRICT, &command) + new
    });
    let gateway = &tunnel.gateways[0];
    let file = tunnel.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let swapped = text
        .replace(new, "")
        .replace("[[peer]]", &format!("{new}[[peer]]"));
    for (text, other, new) in [
        (&text, 6, 7),
        (&swapped, 8, 9),
        (&text, 8, 10),
        (&swapped, 11, 10),
    ] {
        fs::write(&file, text).unwrap();
        gateway.signal(Signal::SIGHUP);
        let first = if *text == swapped { "new" } else { "other" };
        gateway.wait_until("the order", |show| show.peers[0].name == first);
        for (peer, mbit) in [("other", other), ("new", new)] {
            rates.write("next", &format!("{mbit}Mbit\n"));
            fs::rename(rates.path("next"), rates.path(peer)).unwrap();
            gateway.wait_until("what its program says", |show| {
                let peer = show.peers.iter().find(|shown| shown.name == peer);
                peer.unwrap().capacity_bps == mbit * 1_000_000
            });
        }
    }
    // Another program, and none.
    let others = Folder::new();
    others.write("other", "12Mbit\n");
    others.write("new", "13Mbit\n");
    let argument = |folder: &Folder| {
        format!(
            ", \"{}\"]",
            folder.path("other").parent().unwrap().display()
        )
    };
    let another = swapped.replace(&argument(&rates), &argument(&others));
    let command = text.lines().find(|line| line.starts_with("command ="));
    let without = swapped.replace(command.unwrap(), "");
    for (text, mbit) in [(another, [13, 12]), (without, [1000, 1000])] {
        fs::write(&file, text).unwrap();
        gateway.signal(Signal::SIGHUP);
        gateway.wait_until("what is configured now", |show| {
            let bps = show.peers.iter().map(|peer| peer.capacity_bps);
            bps.eq(mbit.map(|mbit| mbit * 1_000_000))
        });
    }
}

pub fn memory_is_bounded_whatever_arrives() {
    let tunnel = Tunnel::new(STRICT);
    let gateway = &tunnel.gateways[0];
    gateway.set_capacity(0);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let resident_kb = || -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let mut dropped = 0;
    while dropped < 50_000 {
        for _ in 0..1000 {
            a.send_to(&[0; 1400], "10.77.0.2:2000").unwrap();
        }
        let class = &gateway.show().peers[0].classes[1];
        dropped = class.dropped_limit_pkts;
        assert!(class.backlog_pkts <= 1000);
    }
    assert!(resident_kb() < 64 * 1024, "{} kB", resident_kb());
}

pub fn a_program_reports_the_capacity() {
    let tunnel = Tunnel::changed(STRICT, |text| {
        text.replace(
            "rate = \"1Gbit\"",
            "rate = \"1Gbit\"\ncommand = [\"sh\", \"-c\", \"test $LINKWEIR_PEER = other; while echo 6Mbit; do sleep 0.1; done\"]",
        )
    });
    tunnel.gateways[0].wait_until("the program's rate", |show| {
        show.peers[0].capacity_bps == 6_000_000
    });
}

/// A program that is named by a path is the one next to the configuration, wherever the gateway was started.
pub fn a_program_is_started_where_it_was_found() {
    let script = "#!/bin/sh\ntest -e modem.sh && echo 6Mbit && exec sleep 1000\n";
    let (here, _there) = cabled();
    let folder = Folder::new();
    let modem = folder.write("modem.sh", script);
    let text = config(&folder, 1, STRICT).replace(
        "rate = \"1Gbit\"",
        "rate = \"1Gbit\"\ncommand = [\"./modem.sh\"]",
    );
    let file = folder.write("1.toml", &text);
    let check = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linkweir-gateway"));
        let check = command.args(["check", "--cleartext"]).arg(&file);
        check.output().unwrap()
    };
    let output = check();
    assert_eq!(output.status.code(), Some(2));
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(
        why.contains("modem.sh may not be executed; run chmod +x"),
        "{why}"
    );
    fs::set_permissions(&modem, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(check().status.success());
    let gateway = Gateway::start(&here, &file, &folder.path("control1"));
    gateway.wait_until("the program's rate", |show| {
        show.peers[0].capacity_bps == 6_000_000
    });
}

/// However the gateway leaves it: by a reload, by its own end, or killed. The same if the program ends by itself.
pub fn programs_end_with_all_they_started() {
    let script = "sleep 1000 & echo $! > pids.new; sleep 1001 & echo $! >> pids.new; mv pids.new pids; echo 6Mbit; $END";
    let (here, _there) = cabled();
    let folder = Folder::new();
    fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    let plain = config(&folder, 1, STRICT).replace("user = \"root\"\n", "");
    let with_program = |end: &str| {
        let command = format!(
            "rate = \"1Gbit\"\ncommand = [\"sh\", \"-c\", \"{}\"]",
            script.replace("$END", end)
        );
        plain.replace("rate = \"1Gbit\"", &command)
    };
    let file = folder.write("1.toml", &with_program("wait"));
    let control = folder.path("control1");
    // What the program started.
    let pids = || -> Vec<u32> {
        let begun = Instant::now();
        loop {
            if let Ok(text) = fs::read_to_string(folder.path("pids")) {
                fs::remove_file(folder.path("pids")).unwrap();
                return text.lines().map(|line| line.parse().unwrap()).collect();
            }
            assert!(begun.elapsed() < PATIENCE, "the program does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for end in ["reload", "stop", "kill"] {
        let mut gateway = Gateway::start(&here, &file, &control);
        let started = pids();
        assert_eq!(started.len(), 2);
        match end {
            "reload" => {
                fs::write(&file, &plain).unwrap();
                gateway.signal(Signal::SIGHUP);
            }
            "stop" => gateway.signal(Signal::SIGTERM),
            _ => gateway.signal(Signal::SIGKILL),
        }
        for pid in started {
            gone(pid);
        }
        fs::write(&file, with_program("wait")).unwrap();
        gateway.signal(Signal::SIGKILL);
        gateway.ended();
    }
    // It ends and leaves others behind: they end, and it is started again.
    fs::write(&file, with_program("exit")).unwrap();
    let _gateway = Gateway::start(&here, &file, &control);
    for _ in 0..2 {
        for pid in pids() {
            gone(pid);
        }
    }
}

/// A program reads the modem by a group of the user that the gateway becomes.
pub fn the_groups_of_its_user_are_kept() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let groups = fs::read_to_string("/etc/group").unwrap() + "modem:x:4242:nobody\n";
    let groups = folder.write("group", &groups);
    let text = config(&folder, 1, STRICT).replace("user = \"root\"\n", "");
    let file = folder.write("1.toml", &text);
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--mount", "sh", "-c"]);
    command.arg("mount --bind \"$0\" /etc/group && exec \"$@\"");
    command
        .arg(&groups)
        .arg(env!("CARGO_BIN_EXE_linkweir-gateway"));
    command.arg("up").arg(&file).arg("--cleartext");
    let gateway = Gateway::started(&here, command, &folder.path("control1"));
    assert_eq!(status(gateway.pid(), ["Groups:"]), [["4242"]]);
}
