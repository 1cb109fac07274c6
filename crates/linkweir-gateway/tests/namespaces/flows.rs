// SPDX-License-Identifier: BSD-3-Clause
//! Flows inside a class: a flow that fills its class neither keeps the packets of another out nor goes before them.

use std::time::Duration;

use linkweir_gateway::config::{self, Config};
use nix::sys::signal::Signal;

use crate::carry::Receiver;
use crate::place::{set_tos, Gateway, Socket, Tunnel};

const ONE_CLASS: &str = r#"[scheduler]
policy = "strict"
[[class]]
name = "all"
limit = "200p"
flows = "fq_codel"
"#;
const LIMIT_PKTS: u64 = 200;
const BULK_BYTES: usize = 1200;
const CALL_BYTES: usize = 172;
const TO: &str = "10.77.0.2:2000";

/// Fills the class in portions, because the device's own queue is short; what comes to a full class is dropped.
fn fill(gateway: &Gateway, bulk: &Socket, pkts: u64) {
    for portion in 1..=pkts / 100 {
        for _ in 0..100 {
            bulk.send_to(&[1; BULK_BYTES], TO).unwrap();
        }
        gateway.wait_until("the portion arrived", |show| {
            show.peers[0].classes[0].arrived_pkts >= 100 * portion
        });
    }
}

pub fn a_flow_that_fills_its_class_neither_keeps_others_out_nor_goes_before_them() {
    for flows in ["fq_codel", "drr"] {
        let tunnel = Tunnel::new(&ONE_CLASS.replace("fq_codel", flows));
        let gateway = &tunnel.gateways[0];
        let bulk = tunnel.here.socket("10.77.0.1:1000");
        // Two of them, as one of 1,024 calls shares the queue of the bulk.
        let calls = [1001, 1002].map(|port| tunnel.here.socket(&format!("10.77.0.1:{port}")));
        let there = tunnel.there.socket(TO);
        gateway.set_capacity(0);
        fill(gateway, &bulk, 400);
        for call in &calls {
            for _ in 0..5 {
                call.send_to(&[2; CALL_BYTES], TO).unwrap();
            }
        }
        let show = gateway.wait_until("the calls' packets arrived", |show| {
            show.peers[0].classes[0].arrived_pkts == 410
        });
        let class = &show.peers[0].classes[0];
        assert_eq!(class.backlog_pkts, LIMIT_PKTS as u32, "{show:?}");
        assert_eq!(class.dropped_limit_pkts, 410 - LIMIT_PKTS, "{show:?}");
        assert_eq!(class.dropped_policy_pkts, 0, "{show:?}");
        assert_eq!(class.flows.as_deref(), Some(flows));
        assert!(
            show.text().contains(&format!("flows {flows}")),
            "{}",
            show.text()
        );
        gateway.set_capacity(10_000_000);
        // Each round has at most two packets of the bulk, and all of a call's fit into the quantum of one.
        let mut buffer = [0; 2000];
        let mut came = 0;
        for _ in 0..10 {
            came += u64::from(there.recv(&mut buffer).unwrap() == CALL_BYTES);
        }
        assert!(came >= 5, "{flows}: {came}");
        gateway.wait_until("nothing waits", |show| {
            show.peers[0].classes[0].backlog_pkts == 0
        });
    }
}

/// Less waits than is judged by probability (two mtu), so only the step marks.
pub fn l4s_packets_that_waited_for_longer_than_the_step_are_marked() {
    const STEP: Duration = Duration::from_millis(500);
    const PKTS: u64 = 3;
    const CE: u8 = 3;
    let dual = "flows = \"dualpi2\"\nl4s_step = \"500ms\"";
    let scheduler = ONE_CLASS.replace("flows = \"fq_codel\"", dual);
    for sealed in [false, true] {
        let tunnel = if sealed {
            Tunnel::sealed(&scheduler, |text, _| text)
        } else {
            Tunnel::new(&scheduler)
        };
        let gateway = &tunnel.gateways[0];
        let mut there = Receiver::new(tunnel.there.socket(TO));
        let [classic, l4s] = [2, 1].map(|ecn| {
            let socket = tunnel.here.socket(&format!("10.77.0.1:100{ecn}"));
            set_tos(&socket, ecn);
            socket
        });
        let send = |socket: &Socket| {
            for _ in 0..PKTS {
                socket.send_to(&[1; 100], TO).unwrap();
            }
        };
        // The first packet may wait for the session.
        classic.send_to(&[1; 100], TO).unwrap();
        assert_eq!(there.tos(), 2, "{sealed}");
        send(&l4s);
        let before: Vec<u8> = (0..PKTS).map(|_| there.tos()).collect();
        assert_eq!(
            before, [1; PKTS as usize],
            "{sealed}: these waited for less"
        );
        gateway.set_capacity(0);
        send(&classic);
        send(&l4s);
        gateway.wait_until("all arrived", |show| {
            show.peers[0].classes[0].backlog_pkts == 2 * PKTS as u32
        });
        std::thread::sleep(2 * STEP);
        gateway.set_capacity(10_000_000);
        let mut after: Vec<u8> = (0..2 * PKTS).map(|_| there.tos()).collect();
        after.sort_unstable();
        assert_eq!(after, [2, 2, 2, CE, CE, CE], "{sealed}");
        send(&l4s);
        let later: Vec<u8> = (0..PKTS).map(|_| there.tos()).collect();
        assert_eq!(later, before, "{sealed}");
    }
}

pub fn flows_of_a_class_do_not_change_while_the_gateway_runs() {
    let tunnel = Tunnel::new(ONE_CLASS);
    let file = tunnel.folder.path("1.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let changed = text.replace("flows = \"fq_codel\"\n", "");
    let read = |text: &str| -> Config { config::parse(text, &file).unwrap() };
    assert!(read(&text).classes[0].flows.is_some() && read(&changed).classes[0].flows.is_none());
    tunnel
        .folder
        .write("1.toml", &changed.replace("200p", "100p"));
    let gateway = &tunnel.gateways[0];
    gateway.signal(Signal::SIGHUP);
    // It keeps what it has, and serves on.
    let here = tunnel.here.socket("10.77.0.1:1000");
    let there = tunnel.there.socket(TO);
    here.send_to(&[1; BULK_BYTES], TO).unwrap();
    assert_eq!(there.recv(&mut [0; 2000]).unwrap(), BULK_BYTES);
    assert_eq!(gateway.show().peers[0].classes[0].limit.pkts, Some(200));
}
