// SPDX-License-Identifier: BSD-3-Clause
//! Tunnels with the WireGuard protocol.

use std::fs;

use linkweir_gateway::show::figures::Show;
use linkweir_gateway::tunnel::seal::{self, Identity, Refused};
use nix::sys::signal::Signal;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::life::comes_through;
use crate::place::{cabled, config, keygen, sealed, Folder, Gateway, Tunnel, STRICT};
use crate::PATIENCE;

const TO: &str = "10.77.0.2:2000";

pub fn packets_come_through_both_ways_whoever_speaks_first() {
    // The first end does not know where the second is.
    let tunnel = Tunnel::sealed(STRICT, |text, last| match last {
        1 => text.replace("endpoint = \"192.0.2.2:51820\"\n", ""),
        _ => text,
    });
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket(TO);
    comes_through(&b, &a, "10.77.0.1:1000", b"from the second");
    comes_through(&a, &b, TO, b"from the first");
    let c = tunnel.here.socket("[fd77::1]:1000");
    let d = tunnel.there.socket("[fd77::2]:2000");
    comes_through(&c, &d, "[fd77::2]:2000", &[7; 1392]);
    let show = tunnel.gateways[0].show();
    assert_eq!(show.peers[0].endpoint, "192.0.2.2:51820".parse().ok());
    assert_eq!(show.peers[0].session, Some(true));
}

pub fn packets_wait_in_their_class_for_a_session() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, _| text);
    for gateway in &mut tunnel.gateways {
        gateway.signal(Signal::SIGKILL);
        gateway.ended();
    }
    tunnel.restart(1);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let urgent = tunnel.here.socket("10.77.0.1:5060");
    for number in 0..20 {
        a.send_to(&[number], TO).unwrap();
        urgent.send_to(&[100 + number], TO).unwrap();
    }
    tunnel.gateways[0].wait_until("all wait", |show| {
        let classes = &show.peers[0].classes;
        classes[0].backlog_pkts == 20 && classes[1].backlog_pkts >= 20
    });
    let show = tunnel.gateways[0].show();
    assert_eq!(show.peers[0].session, Some(false));
    // The other end appears; all must leave in the order of the policy, except what the device was not ready for.
    tunnel.restart(2);
    let b = tunnel.there.socket(TO);
    comes_through(&a, &b, TO, &[200]);
    let show = tunnel.gateways[0].wait_until("nothing waits", |show| {
        show.peers[0]
            .classes
            .iter()
            .all(|class| class.backlog_pkts == 0)
    });
    assert_eq!(show.peers[0].classes[0].sent_pkts, 20);
}

pub fn a_killed_end_comes_back() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, _| text);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket(TO);
    comes_through(&a, &b, TO, b"at first");
    for end in [1, 2] {
        tunnel.gateways[end - 1].signal(Signal::SIGKILL);
        tunnel.gateways[end - 1].ended();
        tunnel.restart(end);
        let a = tunnel.here.socket("10.77.0.1:1001");
        let b = tunnel.there.socket("10.77.0.2:2001");
        comes_through(&a, &b, "10.77.0.2:2001", b"after a kill");
    }
}

pub fn a_peer_that_moves_is_found_again() {
    let tunnel = Tunnel::sealed(STRICT, |text, _| {
        text.replace("listen = \"192.0.2.2:", "listen = \"0.0.0.0:")
    });
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket(TO);
    comes_through(&a, &b, TO, b"at first");
    // The address that it was asked at would be kept while it is there.
    for (word, address) in [("del", "192.0.2.2/24"), ("add", "192.0.2.77/24")] {
        tunnel.there.ip(&["address", word, address, "dev", "out"]);
    }
    comes_through(&b, &a, "10.77.0.1:1000", b"from elsewhere");
    let moved = "192.0.2.77:51820".parse().ok();
    tunnel.gateways[0].wait_until("it moved", |show| show.peers[0].endpoint == moved);
    comes_through(&a, &b, TO, b"to there");
}

pub fn the_wrong_key_gets_nothing() {
    let tunnel = Tunnel::sealed(STRICT, |text, _| text);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket(TO);
    comes_through(&a, &b, TO, b"at first");
    // The second end gets another key.
    let mut tunnel = tunnel;
    fs::remove_file(tunnel.folder.path("key2")).unwrap();
    keygen(&tunnel.folder, 2);
    tunnel.gateways[1].signal(Signal::SIGKILL);
    tunnel.gateways[1].ended();
    tunnel.restart(2);
    let received = tunnel.gateways[0].show().peers[0].received_pkts;
    let c = tunnel.there.socket("10.77.0.2:3000");
    for _ in 0..100 {
        let _ = c.send_to(b"let me in", "10.77.0.1:1000");
    }
    let show = tunnel.gateways[0].wait_until("a stranger sent a handshake", |show| {
        show.dropped_pkts.contains_key("stranger")
    });
    assert_eq!(show.peers[0].received_pkts, received);
}

pub fn rubbish_costs_little_and_harms_nobody() {
    let tunnel = Tunnel::sealed(STRICT, |text, _| text);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket(TO);
    comes_through(&a, &b, TO, b"before");
    let stranger = tunnel.there.socket("192.0.2.2:4000");
    let mut random = Pcg64::seed_from_u64(1);
    for round in 0..20_000_u32 {
        let mut datagram = vec![0; (random.next_u32() % 200) as usize];
        random.fill_bytes(&mut datagram);
        // Half of them look like messages of the protocol, of the right lengths.
        if round % 2 == 0 {
            let (kind, length) = [(1, 148), (2, 92), (3, 64), (4, 96)][(round / 2 % 4) as usize];
            datagram.resize(length, 0);
            datagram[..4].copy_from_slice(&[kind, 0, 0, 0]);
        }
        stranger.send_to(&datagram, "192.0.2.1:51820").unwrap();
    }
    let status = fs::read_to_string(format!("/proc/{}/status", tunnel.gateways[0].pid())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kb: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kb < 64 * 1024, "{line}");
    comes_through(&a, &b, TO, b"after");
    let dropped = tunnel.gateways[0].show().dropped_pkts;
    assert!(
        dropped["forged"] > 0 && dropped["stranger"] > 0,
        "{dropped:?}"
    );
}

/// Anyone who sees a handshake can answer it with a cookie, without having a key.
pub fn a_cookie_moves_no_peer() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, _| text);
    for gateway in &mut tunnel.gateways {
        gateway.signal(Signal::SIGKILL);
        gateway.ended();
    }
    let other = tunnel.there.socket("192.0.2.2:51820");
    let elsewhere = tunnel.there.socket("192.0.2.2:4000");
    tunnel.restart(1);
    let mut identity = Identity::new(seal::read_key(&tunnel.folder.path("key2")).unwrap());
    let from = "192.0.2.1:51820".parse().unwrap();
    let handshake = || {
        let mut buffer = [0; 2000];
        let bytes = other
            .recv(&mut buffer)
            .expect("it asks there for a session");
        assert_eq!((bytes, buffer[0]), (148, 1));
        buffer[..bytes].to_vec()
    };
    let mut asked = handshake();
    // Its last 16 bytes prove the address once a cookie came.
    while asked[132..] == [0; 16] {
        let cookie = (0..1000).find_map(|_| match identity.claim(&asked, from) {
            Err(Refused::Cookie(cookie)) => Some(cookie),
            _ => None,
        });
        let cookie = cookie.expect("there were too many");
        elsewhere.send_to(&cookie, "192.0.2.1:51820").unwrap();
        asked = handshake();
    }
    let endpoint = tunnel.gateways[0].show().peers[0].endpoint;
    assert_eq!(endpoint, "192.0.2.2:51820".parse().ok());
}

/// The peer cannot be reached at that address.
pub fn where_a_peer_was_by_another_version_of_ip_is_forgotten() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, last| match last {
        1 => text.replace("endpoint = \"192.0.2.2:51820\"\n", ""),
        _ => text,
    });
    for gateway in &mut tunnel.gateways {
        gateway.signal(Signal::SIGKILL);
        gateway.ended();
    }
    let key = Identity::new(seal::read_key(&tunnel.folder.path("key2")).unwrap()).public();
    for (endpoint, known) in [("[2001:db8::2]:51820", false), ("192.0.2.2:51820", true)] {
        let kept = format!("{} {endpoint}\n", seal::show_key(&key));
        tunnel.folder.write("control1.peers", &kept);
        tunnel.restart(1);
        let shown = tunnel.gateways[0].show().peers[0].endpoint;
        assert_eq!(shown, endpoint.parse().ok().filter(|_| known));
        tunnel.gateways[0].signal(Signal::SIGKILL);
        tunnel.gateways[0].ended();
    }
}

/// With another key a peer is a new peer, without queues or counters.
pub fn a_reload_takes_over_keys_of_peers() {
    let tunnel = Tunnel::sealed(STRICT, |text, _| text);
    let gateway = &tunnel.gateways[0];
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket(TO);
    comes_through(&a, &b, TO, b"at first");
    let file = tunnel.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let public = |last: u8| {
        let key = tunnel.folder.path(&format!("key{last}"));
        seal::show_key(&Identity::new(seal::read_key(&key).unwrap()).public())
    };
    keygen(&tunnel.folder, 3);
    fs::write(&file, text.replace(&public(2), &public(3))).unwrap();
    gateway.signal(Signal::SIGHUP);
    gateway.wait_until("it is another", |show| {
        show.peers[0].session == Some(false) && show.peers[0].received_pkts == 0
    });
    for _ in 0..20 {
        let _ = b.send_to(b"let me in", "10.77.0.1:1000");
    }
    let show = gateway.wait_until("a stranger comes", |show| {
        show.dropped_pkts.contains_key("stranger")
    });
    assert_eq!(show.peers[0].received_pkts, 0);
    fs::write(&file, text).unwrap();
    gateway.signal(Signal::SIGHUP);
    comes_through(&a, &b, TO, b"the right key again");
    comes_through(&b, &a, "10.77.0.1:1000", b"and back");
}

/// The first datagrams of a gateway that is started twice.
pub fn the_indices_of_sessions_are_random() {
    let folder = Folder::new();
    keygen(&folder, 1);
    let text = sealed(&config(&folder, 1, STRICT), 1, &keygen(&folder, 2));
    let file = folder.write("1.toml", &text);
    let indices = [(); 2].map(|()| {
        // A cable each: the first gateway may have sent a second handshake before it ended.
        let (here, there) = cabled();
        let peer = there.socket("192.0.2.2:51820");
        let mut gateway = Gateway::start(&here, &file, &folder.path("control1"));
        let mut datagram = [0; 2000];
        assert_eq!(peer.recv(&mut datagram).unwrap(), 148, "a handshake");
        gateway.signal(Signal::SIGKILL);
        gateway.ended();
        // The last byte numbers the handshakes of a session.
        <[u8; 3]>::try_from(&datagram[5..8]).unwrap()
    });
    assert_ne!(indices[0], indices[1]);
}

/// Another name, a keepalive and a shared key leave a peer what it had: its queue, its counters and the capacity that was
/// reported.
pub fn a_reload_keeps_a_peer_whose_key_stays() {
    // Neither end may read the keys any more once it runs.
    let tunnel = Tunnel::sealed(STRICT, |text, _| text.replace("user = \"root\"\n", ""));
    let [one, two] = &tunnel.gateways;
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket(TO);
    let sent = comes_through(&a, &b, TO, b"at first");
    comes_through(&b, &a, "10.77.0.1:1000", b"and back");
    one.wait_until("all that was sent has left", |show| {
        show.peers[0].classes[1].sent_pkts >= sent
    });
    let received = one.show().peers[0].received_pkts;
    one.set_capacity(0);
    // At another port, as the first word may come more than once.
    let many = tunnel.there.socket("10.77.0.2:2001");
    for number in 0..50 {
        a.send_to(&[number; 500], "10.77.0.2:2001").unwrap();
    }
    let waiting = |show: &Show| show.peers[0].classes[1].backlog_pkts;
    one.wait_until("all wait", |show| waiting(show) == 50);
    let file = tunnel.folder.path("1.toml");
    let reload = |change: &dyn Fn(String) -> String, done: &str| {
        fs::write(&file, change(fs::read_to_string(&file).unwrap())).unwrap();
        one.signal(Signal::SIGHUP);
        let show = one.wait_until(done, |show| show.peers[0].name == done);
        assert_eq!(waiting(&show), 50, "{done}");
        assert_eq!(show.peers[0].capacity_bps, 0, "{done}");
        assert!(show.peers[0].received_pkts >= received, "{done}");
        show
    };
    let show = reload(&|text| text.replace("\"other\"", "\"renamed\""), "renamed");
    assert_eq!(show.peers[0].session, Some(true));
    let alive = |text: String| text.replace("\"renamed\"", "\"alive\"\nkeepalive = \"1s\"");
    assert_eq!(reload(&alive, "alive").peers[0].session, Some(true));
    // Both ends take a shared key; each session begins again.
    keygen(&tunnel.folder, 3);
    let shared =
        |text: String| text.replace("public_key", "preshared_key_file = \"key3\"\npublic_key");
    let show = reload(
        &|text| shared(text).replace("\"alive\"", "\"shared\""),
        "shared",
    );
    assert_eq!(show.peers[0].session, Some(false));
    let far = tunnel.folder.path("2.toml");
    fs::write(&far, shared(fs::read_to_string(&far).unwrap())).unwrap();
    two.signal(Signal::SIGHUP);
    one.set_capacity(10_000_000);
    let mut buffer = [0; 2000];
    for number in 0..50 {
        assert_eq!(many.recv(&mut buffer).unwrap(), 500);
        assert_eq!(buffer[0], number);
    }
    comes_through(&b, &a, "10.77.0.1:1000", b"with the shared key");
    // How old its keys are is shown while there are some.
    let show = one.show();
    let age_s = show.peers[0].handshake_age_s.unwrap();
    assert!(age_s < PATIENCE.as_secs_f64(), "{age_s}");
    assert!(show.text().contains(", handshake "), "{}", show.text());
}
