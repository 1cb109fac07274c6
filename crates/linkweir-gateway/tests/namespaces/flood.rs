// SPDX-License-Identifier: BSD-3-Clause
//! Forged handshakes of a sender that knows only the gateway's public key, 100,000 a second from the gateway's own host.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use linkweir_gateway::tunnel::admission::OF_ONE;
use linkweir_gateway::tunnel::seal::{self, Identity, Session};
use nix::sys::signal::Signal;

use crate::life::comes_through;
use crate::place::{cost, environment, Tunnel, STRICT};

const TO: &str = "10.77.0.2:2000";
/// Forged handshakes a second, and in a portion.
const RATE: u64 = 100_000;
const PORTION: u64 = 500;

/// `LINKWEIR_FLOOD_S` is how long the flood lasts at least.
pub fn forged_handshakes_cost_little_and_keep_nobody_out() {
    let portions = environment("LINKWEIR_FLOOD_S", 2) * RATE / PORTION;
    let mut tunnel = Tunnel::sealed(STRICT, |text, _| text);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket(TO);
    comes_through(&a, &b, TO, b"before");

    // Whole handshakes with a valid first MAC: the most expensive an unauthenticated sender can cause.
    let gateway = Identity::new(seal::read_key(&tunnel.folder.path("key1")).unwrap()).public();
    let forged: Vec<Vec<u8>> = (0..=255)
        .map(|number| {
            let identity = Identity::new([number; 32]);
            let mut session = Session::new(&identity, gateway, None, None, 1);
            let mut buffer = [0; 256];
            session.want(0);
            let initiation = session.attempt(&identity, 0, 1, &mut buffer);
            initiation.unwrap().to_vec()
        })
        .collect();
    let forger = tunnel.here.socket("192.0.2.1:4000");
    let pid = tunnel.gateways[0].pid();
    let (cpu_s, first_kb) = cost(pid);
    let begun = Instant::now();
    let over = Arc::new(AtomicBool::new(false));
    let sent = Arc::new(AtomicU64::new(0));
    let flood = {
        let (over, sent) = (Arc::clone(&over), Arc::clone(&sent));
        thread::spawn(move || {
            let begun = Instant::now();
            // It lasts until the other end is done, too.
            for portion in 0.. {
                if portion >= portions && over.load(Ordering::Relaxed) {
                    return;
                }
                for number in portion * PORTION..(portion + 1) * PORTION {
                    let datagram = &forged[number as usize % forged.len()];
                    if forger.send_to(datagram, "192.0.2.1:51820").is_ok() {
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                }
                let due = Duration::from_micros((portion + 1) * PORTION * 1_000_000 / RATE);
                thread::sleep(due.saturating_sub(begun.elapsed()));
            }
        })
    };
    // An open session works on, and a new one can be opened.
    comes_through(&a, &b, TO, b"during");
    drop((a, b));
    tunnel.gateways[1].signal(Signal::SIGKILL);
    tunnel.gateways[1].ended();
    tunnel.restart(2);
    let a = tunnel.here.socket("10.77.0.1:1001");
    let b = tunnel.there.socket("10.77.0.2:2001");
    comes_through(&b, &a, "10.77.0.1:1001", b"a new session");
    comes_through(&a, &b, "10.77.0.2:2001", b"and back");
    over.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    let (took_s, sent) = (begun.elapsed().as_secs_f64(), sent.load(Ordering::Relaxed));
    let show = tunnel.gateways[0].show();
    let (cpu, kb) = cost(pid);
    let counted = |reason: &str| show.dropped_pkts.get(reason).copied().unwrap_or(0);
    let opened = counted("stranger");
    let received = counted("handshake_unproven") + counted("handshake_excess") + opened;
    println!(
        "{:.0} forged handshakes/s for {took_s:.1} s; received {received} of {sent} and opened {opened}: {:.1} % of a processor, \
         {:.2} us for each received; memory {first_kb} kB before, {kb} kB after",
        sent as f64 / took_s,
        (cpu - cpu_s) / took_s * 100.0,
        (cpu - cpu_s) * 1e6 / received as f64
    );
    // However many arrive, only a limited number cost more than a hash and a cookie. More than one second of the gateway's
    // limits may begin in between.
    let most = f64::from(OF_ONE) * (took_s.ceil() + 2.0);
    assert!(opened > 0 && opened as f64 <= most, "{opened} of {most}");
    assert!(received > opened, "{received} received, {opened} opened");
    // Nothing is stored about an unknown sender; memory grows only by pages touched for the first time.
    assert!(kb < first_kb + 4096, "{first_kb} kB grew to {kb} kB");
    assert_eq!(show.peers.len(), 1);
    comes_through(&a, &b, "10.77.0.2:2001", b"after");
}
