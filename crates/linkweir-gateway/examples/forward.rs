// SPDX-License-Identifier: BSD-3-Clause
//! A TUN/UDP forwarder with the gateway's offloads and nothing else: no classes, no queues, no pace, no check of the sender.
//! The gateway's additional cost is that of scheduling.
//!
//! `forward DEVICE LOCAL PEER PORT` makes the device, which must then be given its address, and carries packets.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use linkweir_gateway::linux::device::Device;
use linkweir_gateway::linux::poll::Poll;
use linkweir_gateway::linux::tunnel_socket::TunnelSocket;
use linkweir_plane::bytes::outbox::{Destination, Outbox, Source};
use linkweir_plane::bytes::packet;

const DEVICE: u64 = 0;
const UNDERLAY: u64 = 1;
/// Packets read from one side before the other has its turn.
const BATCH: usize = 64;
/// Largest datagram, bytes.
const DATAGRAM_BYTES: usize = 65_536;
/// MTU of a link of 1500 bytes, less IPv4 and UDP.
const MTU: u32 = 1472;
/// Largest super-packet that leaves in one system call.
const SUPER_PACKET_BYTES: u32 = 62_810;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, local, peer, port] = &arguments[..] else {
        return Err("forward DEVICE LOCAL PEER PORT".into());
    };
    let port = port.parse()?;
    let address = |text: &str| -> Result<SocketAddr, Box<dyn Error>> {
        Ok(SocketAddr::new(text.parse::<IpAddr>()?, port))
    };
    let mut device = Device::create(name, MTU, SUPER_PACKET_BYTES, true)?;
    let mut underlay = TunnelSocket::bind(address(local)?)?;
    let destination = Destination {
        station: 0,
        to: address(peer)?,
        from: Source::default(),
        tos: 0,
    };
    let mut poll = Poll::new()?;
    poll.add(&device, DEVICE)?;
    poll.add(&underlay, UNDERLAY)?;
    let mut outbox = Outbox::default();
    let mut inbox = device.coalescer();
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let mut happened = Vec::new();
    loop {
        poll.wait(None, &mut happened)?;
        for key in &happened {
            let mut pkts = 0;
            while *key == DEVICE && pkts < BATCH {
                // Nothing more, or a device that is down.
                let Ok(received) = device.receive() else {
                    break;
                };
                pkts += 1;
                if let Ok(packet) = received {
                    pkts += packet.pkts() - 1;
                    outbox.add_clear(destination, packet);
                }
            }
            while *key == UNDERLAY && pkts < BATCH {
                let Ok(received) = underlay.receive(&mut buffer) else {
                    break;
                };
                pkts += received.datagrams();
                for place in received.places() {
                    if let Some(header) = packet::parse(&buffer[place.clone()]) {
                        inbox.add(&buffer, place, &header);
                    }
                }
                // A device that is down loses packets, as a cable would.
                inbox.deliver(&mut buffer, |whole| drop(device.send(&whole)));
            }
        }
        // So does a socket without room.
        let _ = underlay.send_all(&mut outbox, |_, _, _, _| {});
        outbox.clear(|packet| device.recycle(packet));
    }
}
