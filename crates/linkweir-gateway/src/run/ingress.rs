// SPDX-License-Identifier: BSD-3-Clause
//! What packets pass on their way in: the classifier, and buffers between the socket and the device.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use linkweir_config::matching::Rules;
use linkweir_plane::bytes::coalesce::Coalescer;
use linkweir_plane::classify::Classifier;
use linkweir_plane::restoring::Held;
use linkweir_plane::setup::Class;

use crate::linux::device::Device;

/// Largest datagram and packet, bytes.
pub(super) const PACKET_BYTES: usize = 65_536;

/// The parts that packets pass on their way in.
pub(super) struct Ingress {
    /// Which class a packet of the device belongs to.
    pub(super) classifier: Classifier,
    /// Packets that go into the device next.
    pub(super) inbox: Coalescer,
    /// Source of the last packet of a batch, and the peer behind it.
    pub(super) last_source: Option<(IpAddr, usize)>,
    /// Datagrams read from the socket.
    pub(super) datagrams: Vec<u8>,
    /// Packets of one peer, opened and back to back.
    pub(super) opened: Vec<u8>,
    /// Packets with numbers of one peer that may be handed out.
    pub(super) released: Vec<Held>,
}

impl Ingress {
    pub(super) fn new(rules: &Rules, classes: &[Class], device: &Device) -> Ingress {
        // The keys of the standard library's hash tables come from the system's random numbers.
        let key = [0_u64, 1].map(|word| RandomState::new().hash_one(word));
        let isolating = classes.iter().map(|class| class.flows);
        Ingress {
            classifier: Classifier::new(rules.clone()).isolating(isolating, key),
            inbox: device.coalescer(),
            last_source: None,
            datagrams: vec![0; PACKET_BYTES],
            // The packets of a whole read fit behind each other, and the last needs room to be opened in.
            opened: vec![0; 2 * PACKET_BYTES],
            released: Vec::new(),
        }
    }
}
