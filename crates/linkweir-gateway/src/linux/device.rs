// SPDX-License-Identifier: BSD-3-Clause
//! The gateway's end of its TUN device, with the kernel's offloads: super-packets both ways, and checksums left to the
//! receiver. Without offloads each system call carries one packet, and all else stays the same.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::uio::writev;
use nix::unistd::read;
use tun_rs::SyncDevice;

use crate::linux::tun;
use linkweir_plane::bytes::coalesce::{Coalescer, Whole};
use linkweir_plane::bytes::superpacket::{self, Malformed, Packet};
use linkweir_plane::bytes::vnet::{self, VnetHeader};

/// Room for the largest packet and the header before it, bytes.
const ROOM_BYTES: usize = vnet::BYTES + 65_536;
/// A packet that fills this much keeps the memory it was read into. Smaller ones are copied into memory of their size.
const KEPT_BYTES: usize = ROOM_BYTES / 8 * 7;
/// Most buffers kept for reuse.
const SPARE: usize = 32;
/// Length of the device's queue, packets. Linux's own 500 last 2 ms at 250,000 packets a second, less than the time for
/// which another program may hold the processor. Packets beyond are lost before any policy sees them.
pub const QUEUE_PKTS: u32 = 4096;

/// A TUN device.
pub struct Device {
    tun: SyncDevice,
    offloads: bool,
    room: Box<[u8]>,
    spare: Vec<Box<[u8]>>,
}

impl Device {
    /// Makes a device that is up and never blocks. It hands out super-packets of at most
    /// `most_bytes`; without `offloads`, or where the kernel has none, single packets.
    ///
    /// # Errors
    /// What went wrong and, where it is known, what to do.
    pub fn create(name: &str, mtu: u32, most_bytes: u32, offloads: bool) -> io::Result<Device> {
        let tun = tun::create_with(name, mtu, &[], offloads)?;
        // It works with the system's default, too.
        let _ = tun.set_tx_queue_len(QUEUE_PKTS);
        let offloads = tun.tcp_gso();
        if offloads {
            // It works with the default here, too; kernels before 4.16 have no such limit.
            let _ = tun::limit_super_packets(tun.if_index()?, most_bytes);
        }
        Ok(Device {
            tun,
            offloads,
            room: vec![0; ROOM_BYTES].into(),
            spare: Vec::new(),
        })
    }

    /// Its number among the system's devices.
    ///
    /// # Errors
    /// When it has gone.
    pub fn index(&self) -> io::Result<u32> {
        self.tun.if_index()
    }

    /// A coalescer that makes the kinds of super-packets this device accepts.
    #[must_use]
    pub fn coalescer(&self) -> Coalescer {
        Coalescer::new(self.offloads, self.offloads && self.tun.udp_gso())
    }

    /// The next packet from the system, if there is one.
    ///
    /// # Errors
    /// `WouldBlock` when there is none; others of the system.
    pub fn receive(&mut self) -> io::Result<Result<Packet, Malformed>> {
        let ahead = if self.offloads { vnet::BYTES } else { 0 };
        let bytes = read(&self.tun, &mut self.room)?;
        if bytes < ahead {
            return Ok(Err(Malformed));
        }
        let train = match VnetHeader::split(&self.room[..bytes]) {
            Some((work, _)) if self.offloads => {
                match superpacket::finish(work, &mut self.room[ahead..bytes]) {
                    Ok(train) => train,
                    Err(malformed) => return Ok(Err(malformed)),
                }
            }
            _ => None,
        };
        if bytes < KEPT_BYTES {
            return Ok(Ok(Packet::copy(&self.room[ahead..bytes], train)));
        }
        let next = self.spare.pop();
        let next = next.unwrap_or_else(|| vec![0; ROOM_BYTES].into());
        let room = std::mem::replace(&mut self.room, next);
        Ok(Ok(Packet::new(room, ahead..bytes, train)))
    }

    /// Takes back memory that is no longer needed.
    pub fn recycle(&mut self, packet: Packet) {
        if packet.buffer_bytes() == ROOM_BYTES && self.spare.len() < SPARE {
            self.spare.push(packet.into_buffer());
        }
    }

    /// Hands a packet or super-packet to the system.
    ///
    /// # Errors
    /// Those of the system.
    pub fn send(&self, whole: &Whole<'_>) -> io::Result<()> {
        let without_header = usize::from(!self.offloads);
        Ok(writev(&self.tun, &whole.parts[without_header..]).map(drop)?)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
