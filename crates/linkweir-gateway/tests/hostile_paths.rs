// SPDX-License-Identifier: BSD-3-Clause
//! Datagrams over two paths of an adversary, who delays, duplicates, reorders, corrupts and replays them across the paths, through
//! the session and the numbers behind it, while the peer is started again and numbers begin anew.
//!
//! Each packet carries its epoch and a serial number of its own, which is what the test goes by: nothing is handed out twice, or
//! before an earlier one of its class and epoch, and what is held stays within its bounds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use linkweir_gateway::tunnel::seal::{Identity, Opened, Session};
use linkweir_plane::bytes::numbered::{is_numbered, Number, HEADER_BYTES};
use linkweir_plane::feedback::{Message, PathName, PathProbe};
use linkweir_plane::restoring::{Begun, Dropped, Held, Restorer, WINDOW};
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

const DATAGRAMS: u32 = 100_000;
const MS: u64 = 1_000_000;
const HELD_BYTES: u64 = 400_000;
/// After how many packets numbers begin anew.
const EPOCH_PKTS: u32 = 3000;
/// Longer than packets of the epoch before are taken.
const PAUSE_NS: u64 = 6000 * MS;
/// What is kept to be replayed.
const KEPT: usize = 2 * WINDOW as usize;

/// Opens a session of a sender that has just started, with this index.
fn started(receiver: &mut Session, index: u32) -> Session {
    let from: SocketAddr = "192.0.2.1:51820".parse().unwrap();
    let identity = Identity::new([1; 32]);
    let public = Identity::new([2; 32]).public();
    let mut sender = Session::new(&identity, public, None, None, index);
    let mut room = [0; 2048];
    sender.want(0);
    let asked = sender.attempt(&identity, 0, 1, &mut room).unwrap();
    let asked = asked.to_vec();
    let answer = match receiver.open(&asked, from, &mut room) {
        Opened::Answer(answer) => answer.to_vec(),
        other => panic!("{other:?}"),
    };
    let first = match sender.open(&answer, from, &mut room) {
        Opened::Answer(first) => first.to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(receiver.open(&first, from, &mut room), Opened::Nothing);
    sender
}

/// A packet that was handed out, or is to be: its class, epoch and serial number.
fn named(packet: &[u8]) -> (u8, u32, u32) {
    let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
    (packet[28], word(24), word(20))
}

struct Receiver {
    session: Session,
    restorer: Restorer,
    /// What was handed out, in order.
    out: Vec<(u8, u32, u32)>,
    refused: u32,
    duplicates: u32,
    late: u32,
    unknown: u32,
    /// Probes by what they said of their epoch: known, former, new, stale.
    probes: [u32; 4],
}

impl Receiver {
    fn take(&mut self, now_ns: u64, datagram: &[u8], from: SocketAddr) {
        let mut room = [0; 2048];
        let packet = match self.session.open(datagram, from, &mut room) {
            Opened::Packet(packet) => packet,
            Opened::Refused => {
                self.refused += 1;
                return;
            }
            other => panic!("{other:?}"),
        };
        let out = &mut self.out;
        if let Some(Message::PathProbe(probe)) = Message::read(packet) {
            // The index of this end's session, of which the last byte counts the handshakes.
            let index = u32::from_le_bytes(datagram[4..8].try_into().unwrap());
            let sent = (index, probe.sent_ns);
            let begun = self.restorer.begin(now_ns, probe.epoch, sent, |held| {
                out.push(named(&held.packet));
            });
            self.probes[match begun {
                Begun::Known => 0,
                Begun::Former => 1,
                Begun::New => 2,
                Begun::Stale => 3,
            }] += 1;
            return;
        }
        assert!(is_numbered(packet), "nothing else was sealed");
        let number = Number::read(packet).expect("it was sealed as it is");
        let held = Held {
            packet: packet[HEADER_BYTES..].into(),
            outer_tos: 0,
        };
        let dropped = self.restorer.arrive(now_ns, number, held, |held| {
            out.push(named(&held.packet));
        });
        match dropped {
            None => {}
            Some(Dropped::Duplicate) => self.duplicates += 1,
            Some(Dropped::Late) => self.late += 1,
            Some(Dropped::Unknown) => self.unknown += 1,
            Some(Dropped::Congested) => panic!("nothing was marked"),
        }
        self.check_held();
    }

    fn expire(&mut self, now_ns: u64) {
        let out = &mut self.out;
        self.restorer
            .expire(now_ns, |held| out.push(named(&held.packet)));
        self.check_held();
    }

    fn check_held(&self) {
        let held: u64 = [0, 1].map(|class| self.restorer.held(class).1).iter().sum();
        assert!(held <= HELD_BYTES, "{held} bytes are held");
    }
}

/// A peer that sends over both paths.
struct Sender {
    session: Session,
    epoch: u32,
    sequences: [u32; 2],
    /// When it started, ns: its clock begins there.
    since_ns: u64,
}

impl Sender {
    fn seal(&mut self, packet: &[u8]) -> Vec<u8> {
        let mut room = [0; 2048];
        let sealed = self.session.seal(packet, &mut room);
        sealed.expect("the session is open").to_vec()
    }

    fn probe(&mut self, now_ns: u64) -> Vec<u8> {
        let probe = Message::PathProbe(PathProbe {
            sent_ns: now_ns - self.since_ns,
            epoch: self.epoch,
            path: 0,
            classes: 2,
            known: 0,
            name: PathName::new("sat").unwrap(),
        });
        self.seal(&probe.packet())
    }

    /// The next packet of a class, with its number.
    fn packet(&mut self, class: u8, bytes: usize) -> Vec<u8> {
        let sequence = &mut self.sequences[usize::from(class)];
        let number = Number {
            stream: class,
            epoch: self.epoch,
            sequence: *sequence,
        };
        let mut packet = number.header(bytes).unwrap().to_vec();
        packet.resize(HEADER_BYTES + bytes, 0);
        packet[HEADER_BYTES] = 0x45;
        packet[HEADER_BYTES + 20..HEADER_BYTES + 24].copy_from_slice(&sequence.to_be_bytes());
        packet[HEADER_BYTES + 24..HEADER_BYTES + 28].copy_from_slice(&self.epoch.to_be_bytes());
        packet[HEADER_BYTES + 28] = class;
        *sequence += 1;
        packet
    }
}

#[test]
fn nothing_is_accepted_twice_over_two_hostile_paths() {
    let paths: [SocketAddr; 2] =
        ["192.0.2.1:51820", "198.51.100.1:51820"].map(|at| at.parse().unwrap());
    let sender_key = Identity::new([1; 32]).public();
    let mut session = Session::new(&Identity::new([2; 32]), sender_key, None, None, 8);
    let mut sender = Sender {
        session: started(&mut session, 7),
        epoch: 77,
        sequences: [0; 2],
        since_ns: 0,
    };
    let mut receiver = Receiver {
        session,
        restorer: Restorer::new(vec![30 * MS; 2], HELD_BYTES),
        out: Vec::new(),
        refused: 0,
        duplicates: 0,
        late: 0,
        unknown: 0,
        probes: [0; 4],
    };
    let mut random = Pcg32::seed_from_u64(49);
    let mut draw = move |below: u32| random.next_u32() % below;
    // What each path holds, and what the adversary keeps for later.
    let mut under_way: [VecDeque<Vec<u8>>; 2] = Default::default();
    let mut kept: VecDeque<Vec<u8>> = VecDeque::new();
    let (mut datagrams, mut now_ns, mut bad, mut sent) = (0, MS, 0, 0);
    let mut restarts = 0;
    while datagrams < DATAGRAMS {
        now_ns += u64::from(draw(100_000));
        if sent > 0 && sent % EPOCH_PKTS == 0 {
            // Every second time the peer is started again; every third time nothing comes for a while.
            let change = sent / EPOCH_PKTS;
            if change % 3 == 0 {
                now_ns += PAUSE_NS;
            }
            if change % 2 == 0 {
                sender.session = started(&mut receiver.session, 7 + change);
                sender.since_ns = now_ns;
                restarts += 1;
            }
            sender.epoch = sender.epoch.wrapping_mul(0x9e37_79b9).wrapping_add(1);
            sender.sequences = [0; 2];
        }
        if sent % 100 == 0 {
            for under_way in &mut under_way {
                let probe = sender.probe(now_ns);
                under_way.push_back(probe);
            }
        }
        sent += 1;
        let class = draw(2) as u8;
        let bytes = 29 + draw(1300) as usize;
        let packet = sender.packet(class, bytes);
        // The first class goes over both paths.
        let only = draw(2) as usize;
        for (path, under_way) in under_way.iter_mut().enumerate() {
            if class == 0 || path == only {
                under_way.push_back(sender.seal(&packet));
            }
        }
        for (path, under_way) in under_way.iter_mut().enumerate() {
            let most = if path == 0 { 4 } else { 60 };
            while under_way.len() > most {
                let at = draw(under_way.len() as u32) as usize;
                let datagram = under_way.remove(at).unwrap();
                if kept.len() > KEPT {
                    kept.pop_front();
                }
                match draw(20) {
                    0 => continue, // lost
                    1 => kept.push_back(datagram.clone()),
                    2 => {
                        let mut broken = datagram.clone();
                        let at = 16 + draw(broken.len() as u32 - 16) as usize;
                        broken[at] ^= 1 << draw(8);
                        receiver.take(now_ns, &broken, paths[path]);
                        (datagrams, bad) = (datagrams + 1, bad + 1);
                    }
                    3 => receiver.take(now_ns, &datagram, paths[1 - path]),
                    4 => {
                        // It comes for the first time when the adversary likes, perhaps epochs later.
                        kept.push_back(datagram);
                        continue;
                    }
                    _ => {}
                }
                receiver.take(now_ns, &datagram, paths[path]);
                datagrams += 1;
                if !kept.is_empty() && draw(6) == 0 {
                    let at = draw(kept.len() as u32) as usize;
                    let again = kept[at].clone();
                    receiver.take(now_ns, &again, paths[draw(2) as usize]);
                    datagrams += 1;
                }
            }
        }
        receiver.expire(now_ns);
    }
    let once: BTreeSet<_> = receiver.out.iter().collect();
    assert_eq!(once.len(), receiver.out.len(), "nothing twice");
    let mut last: BTreeMap<(u8, u32), u32> = BTreeMap::new();
    for (class, epoch, serial) in &receiver.out {
        let before = last.insert((*class, *epoch), *serial);
        assert!(
            before.is_none_or(|before| before < *serial),
            "class {class}, epoch {epoch}: {serial} after {before:?}"
        );
    }
    for class in [0, 1] {
        let of_class = receiver.out.iter().filter(|(of, ..)| *of == class);
        assert!(of_class.count() > 10_000, "class {class}");
    }
    let Receiver {
        refused,
        duplicates,
        late,
        unknown,
        probes: [_, former, new, stale],
        ..
    } = receiver;
    // What was corrupted or replayed never came through the session; copies did, and were dropped by their numbers.
    assert!(refused > bad && bad > 1000, "{refused} of {bad}");
    assert!(duplicates + late > 10_000, "{duplicates}, {late}");
    // Each epoch began once; what came of those that were over was dropped, and so were their probes.
    assert_eq!(new, (sent - 1) / EPOCH_PKTS + 1);
    assert!(restarts >= 5, "{restarts}");
    assert!(unknown > 100, "{unknown}");
    assert!(former > 10 && stale > 10, "{former}, {stale}");
}

/// Two copies of a packet of a class that waits for its order, of which one is marked on its path: in either order the packet that
/// is handed out has the mark, as RFC 3168, section 5.3, asks of fragments that are put together.
#[test]
fn a_mark_on_either_copy_is_handed_out() {
    const ECT: u8 = 0b10;
    const CE: u8 = 0b11;
    let number = |sequence| Number {
        stream: 0,
        epoch: 5,
        sequence,
    };
    let copy = |mark: u8| {
        let mut packet = vec![0; 40];
        packet[..2].copy_from_slice(&[0x45, ECT]);
        Held {
            packet: packet.into(),
            outer_tos: mark,
        }
    };
    for marks in [[CE, ECT], [ECT, CE], [ECT, ECT]] {
        let mut restorer = Restorer::new(vec![30 * MS], HELD_BYTES);
        restorer.begin(0, 5, (1, 1), |_| {});
        let mut out = Vec::new();
        for (mark, expected) in marks.into_iter().zip([None, Some(Dropped::Duplicate)]) {
            let dropped = restorer.arrive(0, number(1), copy(mark), |held| out.push(held));
            assert_eq!(dropped, expected);
        }
        assert!(out.is_empty(), "it waits for the first");
        restorer.arrive(0, number(0), copy(ECT), |held| out.push(held));
        let came: Vec<u8> = out.iter().map(|held| held.outer_tos).collect();
        let marked = if marks.contains(&CE) { CE } else { ECT };
        assert_eq!(came, [ECT, marked], "{marks:?}");
    }
    // Without an order the first copy goes on at once, and the mark of the second is too late.
    let mut restorer = Restorer::new(vec![0], HELD_BYTES);
    restorer.begin(0, 5, (1, 1), |_| {});
    let mut out = Vec::new();
    restorer.arrive(0, number(0), copy(ECT), |held| out.push(held.outer_tos));
    let dropped = restorer.arrive(0, number(0), copy(CE), |held| out.push(held.outer_tos));
    assert_eq!((dropped, &out[..]), (Some(Dropped::Duplicate), &[ECT][..]));
}
