// SPDX-License-Identifier: BSD-3-Clause
//! Channels that a scheduler knows at a fixed age. Expected times and choices are worked out by hand.

use linkweir_sim::experiment::{
    Capacity, Channel, Delays, End, Experiment, Outages, Satellite, Scheduler, Signal,
};
use linkweir_sim::satellite::fading::Fading;
use linkweir_sim::satellite::harq::Harq;

use crate::build::{cbr, experiment, flow, greedy, packet, rate, scheduler, tables, MS, S};

/// Those of the simulator have no parameters here: all queues of `ubmt_like` are elastic. It gets rates, `tauran_pf` reads the
/// fading, and both take the better channel of two users who were never served; `pf` does so once it has served them.
fn policy(name: &str, nclasses: usize) -> Scheduler {
    let qparams = match name {
        "pf" | "rr" => return scheduler(name, &[], &vec![&[][..]; nclasses]),
        "ubmt_like" => vec![0; 2 * nclasses],
        _ => Vec::new(),
    };
    Scheduler {
        policy: name.to_owned(),
        brought: None,
        params: Vec::new(),
        qparams,
        across: None,
    }
}

/// Users `user_offset_ns` apart in a fading of samples 1 ms long, over 1 Mbit/s and 10 ms; 286 coded bytes take 2.288 ms.
fn users(
    name: &str,
    n: usize,
    samples_db: Vec<f32>,
    user_offset_ns: u64,
    csi_age_ns: Option<u64>,
) -> Experiment {
    let mut e = experiment(rate(1e6), 1_000_000, policy(name, n), n, S);
    e.link.delay_s = Signal::Constant(0.010);
    e.link.satellite = Some(Satellite {
        channel: Channel::Recorded(Fading::new(MS, samples_db).unwrap()),
        user_offset_ns,
        flows_are_users: false,
        csi_tick_ns: 10 * MS,
        csi_age_ns,
        harq: Harq::designed(1680, 10).unwrap(),
        ground_delay_ns: 0,
        delays: None,
        repeats_see_first_user: false,
        uncoded_too: false,
        reordering: None,
    });
    e
}

/// Channels that are in turn bad and good for 10 ms each, one user's good while the other's is bad.
fn in_turn() -> Vec<f32> {
    [vec![-60.0; 10], vec![0.0; 10]].concat()
}

/// An attempt is received 12.288 ms after it began. A scheduler that knows that instant sends only what is decoded. One that
/// knows what was 10 ms before it always takes the wrong user.
#[test]
fn a_policy_chooses_by_the_channel_at_the_age() {
    let of = |name: &str, csi_age_ns| {
        let mut e = users(name, 2, in_turn(), 10 * MS, csi_age_ns);
        e.flows = (0..2).map(|class| flow(class, greedy(210))).collect();
        // The first choice is at 9.152 ms, and what it sends is received at 21.44: user 1 has the good channel.
        e.flows[1].start_ns = 8 * MS;
        e
    };
    for name in ["tauran_pf", "pf"] {
        let firsts = |csi_age_ns| {
            let found = tables(&of(name, csi_age_ns));
            let of = |column| found.numbers("harq", column).iter().sum::<f64>();
            (of("decoded_first_pkts"), of("coded_bits"))
        };
        // One after another in a second: 438 begin, and 432 have left by 990 ms.
        assert_eq!(firsts(Some(0)), (432.0, 438.0 * 2290.0), "{name}");
        // Four packets have no rival.
        assert_eq!(firsts(Some(10 * MS)).0, 4.0, "{name}");
    }
    // In flight: the published PF looks when it sends, at what was 12.288 ms before the reception.
    let late = tables(&of("tauran_pf", None)).tables;
    assert_eq!(late, tables(&of("tauran_pf", Some(12_288_000))).tables);
}

/// The user whose packet is sent first, by how long the packets waited.
fn first_of(e: &Experiment) -> usize {
    let waits = tables(e).numbers("classes", "delay_mean_s");
    usize::from(waits[1] < waits[0])
}

/// User 2's packet comes first; those of users 1 and 0 wait when it has left.
fn choice(name: &str, bytes: [u32; 2]) -> Experiment {
    let mut e = users(name, 3, vec![0.0], S, Some(0));
    e.flows = vec![
        packet(2, 0, 210),
        packet(1, MS / 4, bytes[1]),
        packet(0, MS / 2, bytes[0]),
    ];
    e
}

/// The first of the users 0 and 1 when user 0 has a good channel in the ms that begins at `good_ms` only, and user 1 a middling
/// one always.
fn first_sent(mut e: Experiment, good_ms: u64, csi_age_ns: u64) -> usize {
    let mut samples_db = vec![-60.0f32; 1000];
    samples_db[good_ms as usize] = 0.0;
    samples_db.extend(vec![-5.0; 3000]);
    let satellite = e.link.satellite.as_mut().unwrap();
    satellite.channel = Channel::Recorded(Fading::new(MS, samples_db).unwrap());
    satellite.csi_age_ns = Some(csi_age_ns);
    first_of(&e)
}

fn steps(points: &[(u64, f64)]) -> Signal {
    Signal::Steps {
        points: points.into(),
        end: End::Hold,
    }
}

fn delays(e: &mut Experiment, to_ground_s: Signal) {
    e.link.satellite.as_mut().unwrap().delays = Some(Delays {
        to_satellite_s: Signal::Constant(0.0),
        to_ground_s,
        start_ns: 0,
        shift_ns: 0,
        before_s: 0.0,
        outages: Outages::default(),
    });
}

/// The packet that is chosen is received at a known time, and the age counts from there to the nanosecond.
#[test]
fn the_age_counts_from_the_reception_of_the_packet() {
    for name in ["tauran_pf", "ubmt_like"] {
        let plain = || choice(name, [210, 210]);
        let mut cases = vec![("2.288 ms twice, and 10 ms to the user", plain(), 14_576_000)];

        let mut e = plain();
        e.link.satellite.as_mut().unwrap().uncoded_too = true;
        cases.push(("210 bytes more take 1.68 ms more, twice", e, 17_936_000));

        let mut e = plain();
        e.link.capacity = rate(3e6);
        cases.push((
            "762 2/3 us twice: a fraction is carried over",
            e,
            11_525_333,
        ));

        let mut e = plain();
        e.link.capacity = Capacity::Rate(steps(&[(0, 1e6), (3 * MS, 2e6)]));
        cases.push(("712 bits up to 3 ms, 1576 at twice the rate", e, 13_788_000));

        // User 2's packet takes 100 bytes at 0.1 and 3 ms, and 86 of the second 100 at 3 ms; the next one the other 14, and more
        // at 5 ms, where a round ends, at 5.1 and at 8.
        let mut e = plain();
        e.link.capacity = Capacity::Opportunities {
            at_ns: [MS / 10, 3 * MS, 3 * MS, 5 * MS].into(),
            bytes: 100,
        };
        cases.push(("opportunities", e, 18 * MS));

        let mut e = plain();
        delays(&mut e, steps(&[(0, 0.010), (4 * MS, 0.015)]));
        cases.push(("15 ms to the user at 4.576 ms", e, 19_576_000));

        // User 2's packet leaves at 2.288 ms and arrives at 12.288, the next would at 5.576.
        let mut e = plain();
        delays(&mut e, steps(&[(0, 0.010), (4 * MS, 0.001)]));
        cases.push(("no packet overtakes another in the air", e, 12_288_000));

        for (what, e, received_ns) in cases {
            let (ms, into_ns) = (received_ns / MS, received_ns % MS);
            let first = |good_ms, age_ns| first_sent(e.clone(), good_ms, age_ns);
            assert_eq!(first(ms, 0), 0, "{what}, {name}");
            assert_eq!(first(ms, into_ns), 0, "{what}, {name}");
            assert_eq!(first(ms, into_ns + 1), 1, "{what}, {name}");
            assert_eq!(first(ms - 1, into_ns), 1, "{what}, {name}");
            assert_eq!(first(ms - 1, into_ns + 1), 0, "{what}, {name}");
        }
    }
}

/// User 2's packet and its code leave after 3.968 ms. Then 100 bytes would be received at 17.056 ms, 210 at 17.936, over one
/// channel for all that is good for the 17th ms only. Of equals `tauran_pf` takes the first user, `ubmt_like` the first packet,
/// which is user 1's.
#[test]
fn every_head_has_its_own_reception() {
    let firsts = |name: &str, bytes: [u32; 2]| {
        [0, 56_000, 56_001, 936_000, 936_001].map(|csi_age_ns| {
            let mut samples_db = vec![-60.0f32; 100];
            samples_db[17] = 0.0;
            let mut e = choice(name, bytes);
            let satellite = e.link.satellite.as_mut().unwrap();
            satellite.uncoded_too = true;
            satellite.channel = Channel::Recorded(Fading::new(MS, samples_db).unwrap());
            satellite.user_offset_ns = 100 * MS;
            satellite.csi_age_ns = Some(csi_age_ns);
            first_of(&e)
        })
    };
    // Both channels are good, then that of the longer packet, then none.
    assert_eq!(firsts("tauran_pf", [100, 210]), [0, 0, 1, 1, 0]);
    assert_eq!(firsts("ubmt_like", [210, 100]), [1, 1, 0, 0, 1]);
}

/// At 1 bit/s every channel counts as 1 bit/s. Users 1 and 0 wait when the link has become faster, each still in the first
/// sample of its channel; the channel of user 0 is better. Of equals `ubmt_like` takes the first packet, which is user 1's.
#[test]
fn rates_of_channels_change_with_that_of_the_link() {
    let mut e = choice("ubmt_like", [210, 210]);
    e.flows[0] = packet(2, MS / 20, 210);
    e.link.capacity = Capacity::Rate(steps(&[(0, 1.0), (MS / 10, 1e6)]));
    e.link.follow = true;
    let satellite = e.link.satellite.as_mut().unwrap();
    satellite.user_offset_ns = 10 * S;
    let samples_db = vec![0.0, -5.0, -5.0];
    satellite.channel = Channel::Recorded(Fading::new(10 * S, samples_db).unwrap());
    assert_eq!(first_of(&e), 0);
}

/// A policy that does not look at channels is the same at every age.
#[test]
fn others_do_not_know_channels() {
    let run = |csi_age_ns| {
        let mut e = users("rr", 2, in_turn(), 10 * MS, csi_age_ns);
        e.flows = (0..2).map(|class| flow(class, cbr(400e3, 210))).collect();
        tables(&e).tables
    };
    assert_eq!(run(None), run(Some(0)));
}
