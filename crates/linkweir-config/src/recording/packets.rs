// SPDX-License-Identifier: BSD-3-Clause
//! Packets made of counts: as many as arrived in a bin, with as many bytes, spread over it.

use super::bins::{BIN_NS, SIZES};
use super::entries::{Entry, Sizes};
use super::frames::{self, Block};
use super::settings::classes_of;
use crate::fault::shorten;

/// Most packets that a recording is made into: 16 bytes of memory each.
pub const MOST_PKTS: usize = 200_000_000;

/// Adds the packets of a bin that begins at `begin_ns`, with their times and bytes.
///
/// Their times are evenly spread over the bin. The packets of a size class have its mean size, rounded up or down so that
/// their sum is exact. The order of sizes is random but always the same for the same bin and `seed`.
pub fn spread(begin_ns: u64, arrived: &Sizes, seed: u64, packets: &mut Vec<(u64, u32)>) {
    let first = packets.len();
    for (pkts, bytes) in &arrived[..SIZES] {
        if *pkts == 0 {
            continue;
        }
        let pkts = u64::from(*pkts);
        let (each, larger) = (bytes / pkts, bytes % pkts);
        packets.extend((0..pkts).map(|at| (0, (each + u64::from(at < larger)).max(1) as u32)));
    }
    let made = &mut packets[first..];
    let mut state = begin_ns ^ seed.rotate_left(32);
    for at in (1..made.len()).rev() {
        let other = ((u128::from(random(&mut state)) * (at as u128 + 1)) >> 64) as usize;
        made.swap(at, other);
    }
    let pkts = made.len() as u64;
    for (at, (at_ns, _)) in made.iter_mut().enumerate() {
        *at_ns = begin_ns + BIN_NS * (2 * at as u64 + 1) / (2 * pkts);
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The packets that arrived in a class, in order of time, with their times since the origin of the recording and their
/// bytes. The recording has one section and one peer, as a recording that was cut out of another has.
///
/// # Errors
/// Why it is no such recording, or what is wrong with the class.
pub fn packets_of(bytes: &[u8], class: &str) -> Result<Vec<(u64, u32)>, String> {
    let mut packets = Vec::new();
    let (mut settings, mut peers) = (Vec::new(), 0);
    let mut number = None;
    let mut many = false;
    frames::read(bytes, |block| match block {
        Block::Settings(_, text) => {
            settings.push(text);
            number = classes_of(text).iter().position(|name| name == class);
        }
        Block::Peer(..) => peers += 1,
        Block::Counts(counts) => {
            for entry in counts.entries() {
                match entry {
                    Entry::Cell {
                        bin, class, cell, ..
                    } if number == Some(class as usize) => {
                        let pkts = cell.arrived().0;
                        if packets.len() as u64 + pkts > MOST_PKTS as u64 {
                            many = true;
                            return;
                        }
                        spread(bin * BIN_NS, &cell.arrived, class.into(), &mut packets);
                    }
                    Entry::Packet {
                        at_ns,
                        class,
                        bytes,
                        ..
                    } if number == Some(class as usize) && packets.len() < MOST_PKTS => {
                        packets.push((at_ns, bytes));
                    }
                    _ => {}
                }
            }
        }
        Block::Gap(..) => {}
    });
    match settings[..] {
        [] => return Err(frames::unread(bytes)),
        [text] if number.is_none() => {
            let names: Vec<String> = classes_of(text).iter().map(|name| shorten(name)).collect();
            let names = names.join(", ");
            return Err(format!("has no class {class}; it has {names}"));
        }
        [_] if peers <= 1 => {}
        _ => {
            return Err(
                "has several peers or was written by several runs of a gateway; `linkweir replay` cuts one out of it".into(),
            )
        }
    }
    if many || packets.len() >= MOST_PKTS {
        return Err(format!(
            "holds more than {MOST_PKTS} packets of class {class}; replay a part of it (--from, --to)"
        ));
    }
    packets.sort_by_key(|(at_ns, _)| *at_ns);
    Ok(packets)
}
