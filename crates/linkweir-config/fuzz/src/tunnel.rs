// SPDX-License-Identifier: BSD-3-Clause
//! Fuzzes what a peer that holds the key may put into the tunnel: messages, and packets with numbers in front of them. An input
//! is a list of packets: a byte each for the time that has passed and for the length, and the packet.
//!
//! Whatever they are, what is read is written back as it was, nothing is handed out twice, and what is held stays within
//! its bounds.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use linkweir_plane::bytes::numbered::{is_numbered, Number, HEADER_BYTES};
use linkweir_plane::bytes::packet;
use linkweir_plane::feedback::{is_message, Message, MESSAGE_BYTES};
use linkweir_plane::restoring::{Begun, Held, Restorer};

/// Class, epoch and number.
const NAME_BYTES: usize = 9;
const HELD_BYTES: u64 = 4000;
const MS: u64 = 1_000_000;

fuzz_target!(|input: &[u8]| {
    let mut restorer = Restorer::new(vec![5 * MS; 3], HELD_BYTES);
    restorer.begin(0, 0, (0, 0), |_| {});
    let mut out = BTreeSet::new();
    let mut epochs = BTreeSet::from([0]);
    let (mut now_ns, mut rest) = (0, input);
    while let [time, length, more @ ..] = rest {
        now_ns += u64::from(*time) * MS / 16;
        let (packet, more) = more.split_at(more.len().min(usize::from(*length)));
        rest = more;
        if is_message(packet) {
            let Some(message) = Message::read(packet) else {
                continue;
            };
            assert_eq!(message.packet()[..], packet[..MESSAGE_BYTES]);
            if let Message::PathProbe(probe) = message {
                let sent = (0, probe.sent_ns);
                let begun = restorer.begin(now_ns, probe.epoch, sent, |held| {
                    hand_out(&mut out, &held);
                });
                // A peer draws no epoch twice, and its clock does not go back within a session.
                if begun == Begun::New && !epochs.insert(probe.epoch) {
                    return;
                }
            }
        } else if is_numbered(packet) {
            assert_eq!(packet::parse(packet), None, "a number is no packet of IP");
            let Some(number) = Number::read(packet) else {
                continue;
            };
            let inside = &packet[HEADER_BYTES..];
            assert_eq!(
                number
                    .header(inside.len())
                    .as_ref()
                    .map(|header| &header[..]),
                packet.get(..HEADER_BYTES)
            );
            // What is handed out twice is known by its number, whichever of two arrivals it is.
            // Numbers that have wrapped are new ones.
            if number.sequence >> 31 != 0 {
                continue;
            }
            let named = [&packet[1..2], &packet[4..HEADER_BYTES], inside].concat();
            let held = Held {
                packet: named.into(),
                outer_tos: 0,
            };
            restorer.arrive(now_ns, number, held, |held| hand_out(&mut out, &held));
        }
        restorer.expire(now_ns, |held| hand_out(&mut out, &held));
        let held_bytes: u64 = (0..3).map(|class| restorer.held(class).1).sum();
        assert!(held_bytes <= HELD_BYTES, "{held_bytes} bytes are held");
        assert!(restorer.due_ns().is_none_or(|ns| ns > now_ns));
    }
});

fn hand_out(out: &mut BTreeSet<[u8; NAME_BYTES]>, held: &Held) {
    let name = held.packet.first_chunk().expect("it has a name");
    assert!(out.insert(*name), "handed out twice");
}
