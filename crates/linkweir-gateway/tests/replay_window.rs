// SPDX-License-Identifier: BSD-3-Clause
//! Which late datagrams a session accepts: those among the last 8,192, once. The expected answers are those of a list of all
//! datagrams that came (RFC 6479 names what a window must do; its bits are what is tested).

use std::collections::BTreeSet;
use std::net::SocketAddr;

use linkweir_gateway::tunnel::seal::{Identity, Opened, Session};
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// The window of Linux's WireGuard (drivers/net/wireguard/messages.h, COUNTER_BITS_TOTAL).
const WINDOW: u64 = 8192;
/// The least packet: a header of IPv4.
const PACKET: [u8; 20] = [
    0x45, 0, 0, 20, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
];

fn from() -> SocketAddr {
    "192.0.2.1:51820".parse().unwrap()
}

/// The receiving end of a session, and the datagrams of the other end by their counters from 0.
struct Received {
    session: Session,
    datagrams: Vec<Vec<u8>>,
}

impl Received {
    /// A session in which so many datagrams were sent, and only the first came.
    fn new(count: u64) -> Received {
        let identities = [Identity::new([1; 32]), Identity::new([2; 32])];
        let mut sender = Session::new(&identities[0], identities[1].public(), None, None, 7);
        let mut session = Session::new(&identities[1], identities[0].public(), None, None, 8);
        let mut room = [0; 2048];
        sender.want(0);
        let asked = sender.attempt(&identities[0], 0, 1, &mut room);
        let asked = asked.expect("a handshake begins").to_vec();
        let answer = answered(session.open(&asked, from(), &mut room));
        let first = answered(sender.open(&answer, from(), &mut room));
        assert_eq!(session.open(&first, from(), &mut room), Opened::Nothing);
        let sealed = (1..count).map(|_| {
            let sealed = sender.seal(&PACKET, &mut room);
            sealed.expect("the session is open").to_vec()
        });
        let datagrams = [first].into_iter().chain(sealed).collect();
        Received { session, datagrams }
    }

    /// Whether the datagram with this counter is accepted now.
    fn accepts(&mut self, counter: u64) -> bool {
        let datagram = &self.datagrams[counter as usize];
        match self.session.open(datagram, from(), &mut [0; 2048]) {
            Opened::Packet(packet) => {
                assert_eq!(packet, PACKET);
                true
            }
            Opened::Refused => false,
            other => panic!("{other:?}"),
        }
    }
}

fn answered(opened: Opened<'_>) -> Vec<u8> {
    match opened {
        Opened::Answer(answer) => answer.to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_datagram_may_be_8191_behind_the_last_one() {
    // Last ones at both sides of the ends of words, and of the end of the bitmap.
    for last in [8192, 8255, 8256, 8257, 16_383, 16_384, 16_385, 20_000] {
        for (late, accepted) in [
            (1, true),
            (1024, true),
            (1025, true),
            (8190, true),
            (8191, true),
            (8192, false),
            (8193, false),
        ] {
            let Some(counter) = u64::checked_sub(last, late).filter(|at| *at > 0) else {
                continue;
            };
            let mut received = Received::new(last + 1);
            assert!(received.accepts(last));
            assert_eq!(received.accepts(counter), accepted, "{late} before {last}");
            assert!(!received.accepts(counter), "{late} before {last}, again");
            assert!(!received.accepts(last), "{last}, again");
        }
    }
}

#[test]
fn random_orders_are_answered_as_by_a_list_of_what_came() {
    const COUNT: u64 = 60_000;
    let mut received = Received::new(COUNT);
    let mut came = BTreeSet::from([0]);
    let mut random = Pcg32::seed_from_u64(1);
    let mut draw = |below: u64| u64::from(random.next_u32()) % below;
    let steps = [
        1, 1, 1, 2, 63, 64, 65, 127, 128, 129, 1024, 4000, 8127, 8128, 8129, 8191, 8192, 8193, 9000,
    ];
    let mut last = 0;
    let (mut accepted, mut refused) = (0, 0);
    loop {
        let step = steps[draw(steps.len() as u64) as usize];
        if last + step >= COUNT {
            break;
        }
        last += step;
        let late = (0..60).map(|_| draw(8400)).chain(8180..8200);
        for late in [0, 0, 1].into_iter().chain(late.collect::<Vec<_>>()) {
            let Some(counter) = last.checked_sub(late) else {
                continue;
            };
            let expected = late < WINDOW && came.insert(counter);
            assert_eq!(received.accepts(counter), expected, "{late} before {last}");
            accepted += u32::from(expected);
            refused += u32::from(!expected);
        }
    }
    assert!(accepted > 500 && refused > 100, "{accepted}, {refused}");
}
