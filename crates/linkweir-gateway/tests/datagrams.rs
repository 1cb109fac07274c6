// SPDX-License-Identifier: BSD-3-Clause
//! Datagrams as an adversary on the path would send them: replayed, truncated, reordered, changed, spliced, of random bytes,
//! and rubbish sealed by a peer that holds the key, through everything the gateway does with a datagram.
//!
//! What must hold: nothing crashes, nothing is opened twice or that was not sealed as it is, everything untouched is opened
//! however it is reordered, sessions survive it all, and memory does not grow.
//!
//! The number of datagrams is `LINKWEIR_DATAGRAMS`, the seed `LINKWEIR_SEED`; `make endure` runs more than `cargo test` does.

use std::collections::VecDeque;
use std::net::SocketAddr;

use linkweir_gateway::tunnel::seal::{Claim, Identity, Key, Opened, Session};
use linkweir_plane::bytes::packet;
use linkweir_plane::{mss, tos};
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Datagrams unless the environment says otherwise.
const DATAGRAMS: u64 = 200_000;
/// Datagrams between two handshakes.
const REKEY: u64 = 50_000;
/// Datagrams that overtake one another; the protocol allows a thousand, and what is held here grows some 400 old.
const HELD: usize = 32;
/// Datagrams remembered for replay.
const KEPT: usize = 256;
/// Growth of the process that is taken for a leak, kB.
const GROWTH_KB: u64 = 8192;

struct End {
    identity: Identity,
    session: Session,
    other: Key,
}

/// What became of a datagram.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// A packet with this content.
    Packet(Vec<u8>),
    /// This is to be sent back.
    Answer(Vec<u8>),
    Nothing,
    Refused,
}

fn from() -> SocketAddr {
    "192.0.2.1:51820".parse().expect("an address")
}

impl End {
    fn session(identity: &Identity, other: Key, index: u32) -> Session {
        Session::new(identity, other, None, None, index)
    }

    /// Takes a datagram as the gateway does.
    fn take(&mut self, datagram: &[u8], buffer: &mut [u8]) -> Fate {
        let ours = match self.identity.claim(datagram, from()) {
            Ok(Claim::Session(index)) => index == self.session.index(),
            Ok(Claim::Initiation) => self.identity.initiator(datagram) == Some(self.other),
            Err(_) => false,
        };
        if !ours {
            return Fate::Refused;
        }
        match self.session.open(datagram, from(), buffer) {
            Opened::Refused | Opened::Unproven(_) => Fate::Refused,
            Opened::Nothing => Fate::Nothing,
            Opened::Answer(answer) => Fate::Answer(answer.to_vec()),
            Opened::Packet(inside) => {
                if let Some(header) = packet::parse(inside) {
                    for outer in 0..4 {
                        if let Some(field) = tos::Model::Uniform.decapsulate(header.tos, outer) {
                            packet::set_tos(inside, field);
                        }
                    }
                    packet::set_tos(inside, header.tos);
                    mss::clamp(inside, &header, 1400);
                }
                Fate::Packet(inside.to_vec())
            }
        }
    }

    fn seal(&mut self, inside: &[u8], buffer: &mut [u8]) -> Vec<u8> {
        self.session
            .seal(inside, buffer)
            .expect("the session is open")
            .to_vec()
    }
}

/// A UDP packet that carries `number`.
fn numbered(number: u64) -> Vec<u8> {
    let length = 20 + 8 + 8 + number as usize % 1300;
    let mut packet = vec![0; length];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    packet[8] = 64;
    packet[9] = 17;
    packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    packet[28..36].copy_from_slice(&number.to_be_bytes());
    let sum = packet::checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

struct Exchange {
    random: Pcg64,
    ends: [End; 2],
    buffer: Vec<u8>,
    /// Datagrams on their way from the first end to the second, with what they carry.
    held: Vec<(Vec<u8>, u64)>,
    /// Datagrams that arrived.
    kept: VecDeque<Vec<u8>>,
    /// Number of the next packet.
    number: u64,
    opened: u64,
    refused: u64,
}

impl Exchange {
    fn new(seed: u64) -> Exchange {
        let identities = [Identity::new([1; 32]), Identity::new([2; 32])];
        let publics = [identities[1].public(), identities[0].public()];
        let mut at = 0;
        let ends = identities.map(|identity| {
            let other = publics[at];
            at += 1;
            let session = End::session(&identity, other, at as u32);
            End {
                identity,
                session,
                other,
            }
        });
        Exchange {
            random: Pcg64::seed_from_u64(seed),
            ends,
            buffer: vec![0; 70_000],
            held: Vec::new(),
            kept: VecDeque::new(),
            number: 0,
            opened: 0,
            refused: 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.random.next_u64() % bound as u64) as usize
    }

    /// A handshake whose messages also come changed and twice; the first end begins.
    fn shake_hands(&mut self) {
        // A session of its own begins without waiting for the one before to end, as after a restart.
        let index = self.ends[0].session.index() + 2;
        self.ends[0].session = End::session(
            &self.ends[0].identity,
            self.ends[0].other,
            index & 0xff_ffff,
        );
        for end in &mut self.ends {
            end.identity.tick();
        }
        let Exchange { ends, buffer, .. } = self;
        let End {
            identity, session, ..
        } = &mut ends[0];
        session.want(0);
        let init = session
            .attempt(identity, 0, 1, buffer)
            .expect("nothing is under way")
            .to_vec();
        for _ in 0..4 {
            let changed = self.changed_before_cookie(&init);
            let fate = self.ends[1].take(&changed, &mut self.buffer);
            assert_eq!(fate, Fate::Refused, "{changed:02x?}");
        }
        let Fate::Answer(response) = self.ends[1].take(&init, &mut self.buffer) else {
            panic!("a genuine handshake must be answered");
        };
        let replayed = self.ends[1].take(&init, &mut self.buffer);
        assert_eq!(replayed, Fate::Refused, "a replayed handshake");
        for _ in 0..4 {
            let changed = self.changed_before_cookie(&response);
            let fate = self.ends[0].take(&changed, &mut self.buffer);
            assert_eq!(fate, Fate::Refused, "{changed:02x?}");
        }
        let Fate::Answer(keepalive) = self.ends[0].take(&response, &mut self.buffer) else {
            panic!("a genuine answer must open the session");
        };
        assert_eq!(
            self.ends[0].take(&response, &mut self.buffer),
            Fate::Refused
        );
        assert_eq!(
            self.ends[1].take(&keepalive, &mut self.buffer),
            Fate::Nothing
        );
    }

    /// A datagram that differs from `datagram`.
    fn changed(&mut self, datagram: &[u8]) -> Vec<u8> {
        let mut changed = datagram.to_vec();
        match self.below(4) {
            0 => changed.truncate(self.below(datagram.len())),
            1 => {
                let more = 1 + self.below(64);
                changed.resize(datagram.len() + more, 0);
                self.random.fill_bytes(&mut changed[datagram.len()..]);
            }
            2 => {
                let at = self.below(changed.len());
                changed[at] ^= 1 << self.below(8);
            }
            _ => {
                let (one, two) = (self.below(changed.len()), self.below(changed.len()));
                let byte = changed[two];
                changed[one] =
                    byte.wrapping_add(1 + u8::from(changed[one] == byte.wrapping_add(1)));
            }
        }
        changed
    }

    /// The same of a handshake, whose last 16 bytes (mac2) are looked at under load only.
    fn changed_before_cookie(&mut self, datagram: &[u8]) -> Vec<u8> {
        let (signed, cookie) = datagram.split_at(datagram.len() - 16);
        let mut changed = self.changed(signed);
        changed.extend_from_slice(cookie);
        changed
    }

    /// A datagram that was not sealed.
    fn made_up(&mut self) -> Vec<u8> {
        let mut datagram = vec![0; self.below(1500)];
        self.random.fill_bytes(&mut datagram);
        if self.below(2) == 0 {
            // It looks like a message of the protocol, of the right length and for the session there is.
            let (kind, length) =
                [(1, 148), (2, 92), (3, 64), (4, 32 + 16 * self.below(90))][self.below(4)];
            datagram.resize(length, 0);
            datagram[..4].copy_from_slice(&[kind, 0, 0, 0]);
            let index = self.ends[1].session.index() << 8 | self.below(4) as u32;
            let at = if kind == 2 { 8 } else { 4 };
            datagram[at..at + 4].copy_from_slice(&index.to_le_bytes());
        }
        datagram
    }

    fn genuine(&mut self) -> (Vec<u8>, u64) {
        self.number += 1;
        let inside = numbered(self.number);
        let sealed = self.ends[0].seal(&inside, &mut self.buffer);
        (sealed, self.number)
    }

    /// The second end must open it, once, as it was sealed.
    fn arrives(&mut self, (datagram, number): (Vec<u8>, u64)) {
        let fate = self.ends[1].take(&datagram, &mut self.buffer);
        assert_eq!(fate, Fate::Packet(numbered(number)));
        self.opened += 1;
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(datagram);
    }

    fn refuses(&mut self, datagram: &[u8]) {
        let fate = self.ends[1].take(datagram, &mut self.buffer);
        assert_eq!(fate, Fate::Refused, "{datagram:02x?}");
        self.refused += 1;
    }

    fn step(&mut self) {
        match self.below(8) {
            0 => {
                let genuine = self.genuine();
                self.arrives(genuine);
            }
            1 => {
                let genuine = self.genuine();
                self.held.push(genuine);
                if self.held.len() == HELD {
                    let at = self.below(HELD);
                    let late = self.held.swap_remove(at);
                    self.arrives(late);
                    // The oldest must not fall out of the window while it waits for its turn.
                    self.held.sort_by_key(|(_, number)| *number);
                    let oldest = self.held.remove(0);
                    self.arrives(oldest);
                }
            }
            2 if !self.kept.is_empty() => {
                let at = self.below(self.kept.len());
                let replayed = self.kept[at].clone();
                self.refuses(&replayed);
            }
            3 | 4 => {
                let genuine = self.genuine();
                let changed = self.changed(&genuine.0);
                self.refuses(&changed);
                // What was refused does not spoil the original.
                self.arrives(genuine);
            }
            5 => {
                let (one, two) = (self.genuine(), self.genuine());
                let mut spliced = one.0.clone();
                let at = 16.min(spliced.len());
                spliced.truncate(at);
                spliced.extend_from_slice(&two.0[at..]);
                self.refuses(&spliced);
                self.arrives(two);
                self.arrives(one);
            }
            6 => {
                // A peer that holds the key seals rubbish.
                let mut inside = vec![0; 1 + self.below(200)];
                self.random.fill_bytes(&mut inside);
                if self.below(2) == 0 {
                    inside[0] = [0x45, 0x46, 0x4f, 0x60][self.below(4)];
                }
                let sealed = self.ends[0].seal(&inside, &mut self.buffer);
                match self.ends[1].take(&sealed, &mut self.buffer) {
                    Fate::Packet(opened) => assert!(opened.len() <= inside.len()),
                    Fate::Refused | Fate::Nothing => {}
                    Fate::Answer(answer) => panic!("rubbish was answered: {answer:02x?}"),
                }
            }
            _ => {
                let made_up = self.made_up();
                self.refuses(&made_up);
            }
        }
    }

    /// Everything that is still on its way arrives.
    fn settle(&mut self) {
        for genuine in std::mem::take(&mut self.held) {
            self.arrives(genuine);
        }
        let inside = numbered(7);
        let back = self.ends[1].seal(&inside, &mut self.buffer);
        assert_eq!(
            self.ends[0].take(&back, &mut self.buffer),
            Fate::Packet(inside)
        );
    }
}

fn environment(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} = {text}: must be a whole number")),
        Err(_) => otherwise,
    }
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1));
    kb.and_then(|kb| kb.parse().ok()).expect("VmRSS in kB")
}

#[test]
fn whatever_is_done_to_datagrams_only_genuine_ones_are_opened_and_only_once() {
    let datagrams = environment("LINKWEIR_DATAGRAMS", DATAGRAMS);
    let mut exchange = Exchange::new(environment("LINKWEIR_SEED", 1));
    let mut at_first_kb = None;
    let mut handshakes = 0;
    let mut next_handshake = 0;
    while exchange.opened + exchange.refused < datagrams {
        if next_handshake <= exchange.opened + exchange.refused {
            if handshakes > 0 {
                exchange.settle();
            }
            exchange.shake_hands();
            handshakes += 1;
            next_handshake += REKEY;
            if handshakes == 3 {
                at_first_kb = Some(resident_kb());
            }
        }
        exchange.step();
    }
    exchange.settle();
    let grown_kb = at_first_kb.map_or(0, |at_first_kb| resident_kb().saturating_sub(at_first_kb));
    println!(
        "{} datagrams opened, {} refused, {handshakes} handshakes; memory grew by {grown_kb} kB",
        exchange.opened, exchange.refused
    );
    assert!(grown_kb < GROWTH_KB, "{grown_kb} kB");
}
