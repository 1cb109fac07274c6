// SPDX-License-Identifier: BSD-3-Clause
//! How the `Linux` profile finds losses, repairs them and takes back reductions that were not needed, with every
//! acknowledgement written by hand.

use linkweir_sim::tcp::{Ack, Algorithm, Block, Config, Phase, Profile, Segment, Sender};

const MS: u64 = 1_000_000;

/// A connection of Reno with a round-trip time of 100 ms and ticks of 1 ms. At 100 ms the SYN is answered.
fn config(window: u32) -> Config {
    Config {
        tick_ns: MS,
        initial_window_segments: window,
        ..Config::new(Algorithm::Reno, Profile::Linux)
    }
}

struct Hand {
    sender: Sender,
    /// All that was sent.
    sent: Vec<Segment>,
    confirmed: bool,
}

impl Hand {
    /// Opens the connection; the initial window leaves at 100 ms.
    fn new(config: &Config) -> Hand {
        let mut hand = Hand {
            sender: Sender::new(config),
            sent: Vec::new(),
            confirmed: false,
        };
        assert_eq!(hand.send(0), [0]);
        let first: Vec<u64> = hand.ack(100 * MS, ack(1, &[], Some(0)));
        let window = u64::from(config.initial_window_segments);
        assert_eq!(first, (1..=window).collect::<Vec<_>>());
        hand
    }

    /// Sends what the sender has to send; returns its numbers. The acknowledgement that ends the handshake comes before the
    /// first data, and once.
    fn send(&mut self, now_ns: u64) -> Vec<u64> {
        let before = self.sent.len();
        while let Some(segment) = self.sender.next_segment(now_ns) {
            if segment.bare {
                assert!(self.sent.iter().all(|sent| sent.sequence == 0));
                assert!(!std::mem::replace(&mut self.confirmed, true));
                continue;
            }
            self.sent.push(segment);
        }
        self.sent[before..].iter().map(|s| s.sequence).collect()
    }

    fn ack(&mut self, now_ns: u64, ack: Ack) -> Vec<u64> {
        self.sender.on_ack(now_ns, &ack);
        self.send(now_ns)
    }

    /// Lets the timer fire when it is due; returns when that was and what was sent.
    fn wait(&mut self) -> (u64, Vec<u64>) {
        let at_ns = self.sender.deadline_ns().expect("a timer runs");
        self.sender.on_timer(at_ns);
        (at_ns, self.send(at_ns))
    }

    fn cwnd(&self) -> f64 {
        self.sender.window().cwnd_segments
    }

    fn ssthresh(&self) -> Option<f64> {
        self.sender.window().ssthresh_segments
    }

    fn timeouts(&self) -> u64 {
        self.sender.counters().timeouts
    }
}

fn ack(cumulative: u64, sacked: &[(u64, u64)], echo_ns: Option<u64>) -> Ack {
    let mut sack = [Block::default(); 4];
    for (block, &(start, end)) in sack.iter_mut().zip(sacked) {
        *block = Block { start, end };
    }
    Ack {
        cumulative,
        sack,
        nsack: sacked.len() as u8,
        window: 10_000,
        echo_ns,
        dsack: None,
        echoes_mark: false,
        marked: 0,
    }
}

/// `at_ns` is not before `earliest_ns`, and at most an eighth of `wait_ns` and two ticks late: the timer wheel.
fn assert_due(at_ns: u64, earliest_ns: u64, wait_ns: u64) {
    let latest_ns = earliest_ns + wait_ns / 8 + 2 * MS;
    assert!(
        (earliest_ns..=latest_ns).contains(&at_ns),
        "{at_ns} is not within {earliest_ns}..={latest_ns}"
    );
}

/// RFC 8985, section 6.2, step 5: the retransmission counts as lost when a segment sent after it is delivered. RFC 6298,
/// section 5: the timer starts with the retransmission of the head; without it this connection would time out at 500 ms.
#[test]
fn a_lost_retransmission_of_the_head_is_found_without_a_timeout_and_starts_the_timer_again() {
    let mut hand = Hand::new(&config(10));
    // Three SACKs of segments as old as 1: it is lost. PRR lets one new segment follow.
    assert_eq!(hand.ack(200 * MS, ack(1, &[(2, 5)], Some(0))), [1, 11]);
    let rto_ns = hand.sender.window().rto_ns;
    assert_due(
        hand.sender.deadline_ns().unwrap(),
        200 * MS + rto_ns,
        rto_ns,
    );
    // 11 was sent after the retransmission, which has been out for a round trip.
    let sent = hand.ack(300 * MS, ack(1, &[(11, 12), (2, 5)], Some(0)));
    assert_eq!(sent[0], 1);
    let rto_ns = hand.sender.window().rto_ns;
    assert_due(
        hand.sender.deadline_ns().unwrap(),
        300 * MS + rto_ns,
        rto_ns,
    );
    assert_eq!(hand.timeouts(), 0);
    assert_eq!(hand.sender.counters().recoveries, 1);
}

/// RFC 8985, section 6.2, step 4: a quarter of the least RTT, while fewer than three segments overtook.
#[test]
fn an_overtaken_segment_is_lost_after_a_quarter_of_the_least_round_trip() {
    let mut hand = Hand::new(&config(10));
    let sent = hand.ack(200 * MS, ack(1, &[(2, 3)], Some(0)));
    assert_eq!(sent, [11], "limited transmit");
    assert_ne!(hand.sender.window().phase, Phase::Recovery);
    let (at_ns, sent) = hand.wait();
    // Sent at 100 ms, 100 ms of RTT, 25 ms of window and 2 ms of the kernel's least timer.
    assert_due(at_ns, 227 * MS, 27 * MS);
    assert_eq!(sent, [1]);
    assert_eq!(hand.sender.window().phase, Phase::Recovery);
    assert_eq!((hand.timeouts(), hand.ssthresh()), (0, Some(5.0)));
}

/// RFC 8985, section 6.2, step 4: after a D-SACK, two quarters.
#[test]
fn the_reordering_window_grows_after_a_d_sack() {
    let mut hand = Hand::new(&config(10));
    // 1 arrives behind 2: reordering is seen.
    assert_eq!(hand.ack(200 * MS, ack(1, &[(2, 3)], Some(0))), [11]);
    hand.ack(201 * MS, ack(3, &[], Some(100 * MS)));
    // 3 comes so late that it is retransmitted after a quarter of the RTT, although six have overtaken it.
    hand.ack(202 * MS, ack(3, &[(4, 10)], Some(100 * MS)));
    assert_ne!(hand.sender.window().phase, Phase::Recovery);
    let (at_ns, sent) = hand.wait();
    assert_due(at_ns, 202 * MS + 27 * MS, 27 * MS);
    assert_eq!(sent[0], 3);
    // Now 3 arrives, and at 340 ms all the others, with the report of the copy of 3. A new window leaves.
    hand.ack(240 * MS, ack(11, &[], Some(100 * MS)));
    let end = hand.sent.iter().map(|s| s.sequence + 1).max().unwrap();
    let report = Ack {
        dsack: Some(3),
        ..ack(end, &[], Some(230 * MS))
    };
    let next = hand.ack(340 * MS, report);
    assert!(next.len() >= 5);
    let first = next[0];
    // Of this window the first segment is missing.
    let above = [(first + 1, first + 5)];
    hand.ack(440 * MS, ack(first, &above, Some(340 * MS)));
    assert_ne!(hand.sender.window().phase, Phase::Recovery);
    let (at_ns, sent) = hand.wait();
    assert_due(at_ns, 440 * MS + 52 * MS, 52 * MS);
    assert_eq!(sent[0], first);
}

/// RFC 4015 with the test of RFC 3522: the acknowledgement echoes a timestamp of before the retransmission.
#[test]
fn a_fast_retransmission_caused_by_reordering_is_undone_by_timestamps() {
    // With the acknowledgement that ends the recovery the window may grow again: by its seven segments in slow start, or by
    // one in congestion avoidance.
    for (echo_ns, cwnd) in [(100 * MS, 17.0), (200 * MS, 6.0)] {
        let mut hand = Hand::new(&config(10));
        assert_eq!(hand.ack(200 * MS, ack(1, &[(2, 5)], Some(0))), [1, 11]);
        assert_eq!(hand.ssthresh(), Some(5.0));
        hand.sender.on_ack(210 * MS, &ack(11, &[], Some(echo_ns)));
        assert_eq!(hand.cwnd(), cwnd);
        let undone = echo_ns == 100 * MS;
        assert_eq!(hand.ssthresh().is_none(), undone);
        assert_ne!(hand.sender.window().phase, Phase::Recovery);
    }
}

/// RFC 3708, section 3: all retransmissions of the recovery are reported as received twice.
#[test]
fn a_fast_retransmission_caused_by_reordering_is_undone_by_d_sack() {
    let mut config = config(10);
    config.timestamps = false;
    let mut hand = Hand::new(&config);
    assert_eq!(hand.ack(200 * MS, ack(1, &[(2, 5)], None)), [1, 11]);
    hand.ack(210 * MS, ack(11, &[], None));
    assert_eq!((hand.cwnd(), hand.ssthresh()), (6.0, Some(5.0)));
    let report = Ack {
        dsack: Some(1),
        ..ack(11, &[], None)
    };
    hand.sender.on_ack(300 * MS, &report);
    assert_eq!((hand.cwnd(), hand.ssthresh()), (10.0, None));
    // A second report changes nothing more.
    hand.sender.on_ack(301 * MS, &report);
    assert_eq!((hand.cwnd(), hand.ssthresh()), (10.0, None));
}

/// One of two retransmissions was needed: the reduction stays.
#[test]
fn one_d_sack_of_two_retransmissions_undoes_nothing() {
    let mut config = config(10);
    config.timestamps = false;
    let mut hand = Hand::new(&config);
    let sent = hand.ack(200 * MS, ack(1, &[(3, 8)], None));
    assert_eq!(sent[..2], [1, 2]);
    hand.ack(310 * MS, ack(12, &[], None));
    let report = Ack {
        dsack: Some(2),
        ..ack(12, &[], None)
    };
    hand.sender.on_ack(320 * MS, &report);
    assert_eq!(hand.ssthresh(), Some(5.0));
}

/// RFC 8985, section 7.3, with Linux's 2 ms: after two smoothed RTTs, not a timeout of 300 ms.
#[test]
fn the_probe_is_the_last_segment_if_there_is_nothing_new() {
    let mut config = config(10);
    config.bytes_to_send = Some(10 * u64::from(config.mss_bytes));
    let mut hand = Hand::new(&config);
    let sent = hand.ack(200 * MS, ack(6, &[], Some(100 * MS)));
    assert!(sent.is_empty());
    let (at_ns, sent) = hand.wait();
    assert_due(at_ns, 402 * MS, 202 * MS);
    assert_eq!(sent, [10]);
    assert!(hand.sent.last().unwrap().retransmission);
    assert_eq!(hand.timeouts(), 0);
    // There is no second probe before the timeout, which counts from the probe.
    let rto_ns = hand.sender.window().rto_ns;
    assert_due(hand.sender.deadline_ns().unwrap(), at_ns + rto_ns, rto_ns);
    // The probe's SACK shows that 6 to 9 are lost: no timeout is needed.
    let sent = hand.ack(at_ns + 100 * MS, ack(6, &[(10, 11)], Some(100 * MS)));
    assert_eq!(sent[0], 6);
    assert_eq!(hand.timeouts(), 0);
    assert_eq!(hand.sender.window().phase, Phase::Recovery);
}

/// RFC 8985, section 7.3: new data is preferred, even beyond the congestion window.
#[test]
fn the_probe_is_new_data_if_there_is_some() {
    let mut hand = Hand::new(&config(10));
    let (at_ns, sent) = hand.wait();
    // 100 ms is the only sample: SRTT is 100 ms.
    assert_due(at_ns, 302 * MS, 202 * MS);
    assert_eq!(sent, [11]);
    assert!(!hand.sent.last().unwrap().retransmission);
    assert_eq!(hand.sender.window().flight_segments, 11);
    assert_eq!((hand.timeouts(), hand.cwnd()), (0, 10.0));
}

/// With one segment outstanding the probe waits for a delayed acknowledgement as well: Linux adds the least timeout, but
/// the probe leaves at the time of the timeout at the latest.
#[test]
fn the_probe_of_a_single_segment_waits_for_a_delayed_acknowledgement() {
    let mut config = config(10);
    config.bytes_to_send = Some(u64::from(config.mss_bytes));
    let mut hand = Hand {
        sender: Sender::new(&config),
        sent: Vec::new(),
        confirmed: false,
    };
    hand.send(0);
    assert_eq!(hand.ack(100 * MS, ack(1, &[], Some(0))), [1]);
    let (at_ns, sent) = hand.wait();
    assert_due(at_ns, 400 * MS, 300 * MS);
    assert_eq!((sent, hand.timeouts()), (vec![1], 0));
}

/// RFC 8985, section 7.4.2: the probe repaired a loss, so the window is reduced.
#[test]
fn a_loss_that_the_probe_repaired_reduces_the_window() {
    // The ten acknowledged make the window 20, of which half is left.
    for (dsack, ssthresh) in [(None, Some(10.0)), (Some(10), None)] {
        let mut config = config(10);
        config.bytes_to_send = Some(0);
        let mut hand = Hand {
            sender: Sender::new(&config),
            sent: Vec::new(),
            confirmed: false,
        };
        hand.send(0);
        hand.ack(100 * MS, ack(1, &[], Some(0)));
        hand.sender.supply(100 * MS, 10);
        assert_eq!(hand.send(100 * MS), (1..=10).collect::<Vec<_>>());
        let (at_ns, sent) = hand.wait();
        assert_eq!(sent, [10]);
        let answer = Ack {
            dsack,
            ..ack(11, &[], Some(at_ns))
        };
        hand.sender.on_ack(at_ns + 100 * MS, &answer);
        // The next segment is acknowledged: by now a D-SACK would have come.
        hand.sender.supply(at_ns + 100 * MS, 1);
        assert_eq!(hand.send(at_ns + 100 * MS), [11]);
        hand.sender
            .on_ack(at_ns + 200 * MS, &ack(12, &[], Some(at_ns + 100 * MS)));
        assert_eq!(hand.ssthresh(), ssthresh, "{dsack:?}");
    }
}

/// Takes in SACKs of one segment after another, a millisecond apart; returns how much is sent after each.
fn clocked(hand: &mut Hand, first: u64, end: u64) -> Vec<Vec<u64>> {
    (first..end)
        .map(|n| hand.ack((200 + n) * MS, ack(1, &[(first, n + 1)], Some(0))))
        .collect()
}

/// RFC 6937, section 4, first example: 20 segments, the first is lost; PRR sends one for every second acknowledgement.
#[test]
fn the_window_is_reduced_in_proportion() {
    let mut hand = Hand::new(&config(20));
    let sent = clocked(&mut hand, 2, 21);
    let counts: Vec<usize> = sent.iter().map(Vec::len).collect();
    // N N R, and then none and one in turn.
    let mut expected = vec![1, 1, 1];
    for _ in 0..7 {
        expected.extend([0, 1]);
    }
    // Then ten are in the network.
    expected.extend([0, 0]);
    assert_eq!(counts, expected);
    assert_eq!(sent[2], [1]);
    assert_eq!((hand.cwnd(), hand.ssthresh()), (10.0, Some(10.0)));
}

/// RFC 6937, section 4, second example: 15 of 20 segments are lost; each acknowledgement lets one leave.
#[test]
fn packets_are_conserved_below_the_threshold() {
    let mut hand = Hand::new(&config(20));
    let sent = clocked(&mut hand, 16, 21);
    assert_eq!(sent, [[21], [22], [1], [2], [3]]);
    // 7 in the network: 21, 22 and three retransmissions, of which none has been answered, and none of the old ones.
    assert_eq!(hand.sender.window().flight_segments, 5);
    assert_eq!((hand.cwnd(), hand.ssthresh()), (5.0, Some(10.0)));
}

/// RFC 6937, section 3.1, slow start reduction bound: when the cumulative acknowledgement advances without a further
/// loss, one more may leave.
#[test]
fn progress_below_the_threshold_lets_one_more_leave() {
    let mut hand = Hand::new(&config(20));
    clocked(&mut hand, 16, 21);
    // The two new segments arrive, then the retransmission of 1.
    assert_eq!(hand.ack(316 * MS, ack(1, &[(16, 22)], Some(0))), [4]);
    assert_eq!(hand.ack(317 * MS, ack(1, &[(16, 23)], Some(0))), [5]);
    let sent = hand.ack(318 * MS, ack(2, &[(16, 23)], Some(218 * MS)));
    assert_eq!(sent, [6, 7]);
}

/// RFC 5682: two acknowledgements of segments sent once show that the timeout was spurious; here the timestamp shows it
/// with the first. Window and threshold are as before.
#[test]
fn a_spurious_timeout_is_undone() {
    for timestamps in [true, false] {
        let mut config = config(10);
        config.timestamps = timestamps;
        let echo = |ns: u64| timestamps.then_some(ns);
        let mut hand = Hand::new(&config);
        let mut probes = 0;
        while hand.timeouts() == 0 {
            let (_, sent) = hand.wait();
            probes += sent.len();
        }
        // The probe and the head.
        assert_eq!(probes, 2);
        assert_eq!((hand.cwnd(), hand.ssthresh()), (1.0, Some(5.0)));
        // The answers to the originals come.
        let now_ns = 1000 * MS;
        let first = hand.ack(now_ns, ack(2, &[], echo(100 * MS)));
        if !timestamps {
            // Step 2b of RFC 5682: new segments rather than the next one again.
            assert!(first.iter().all(|n| *n > 11), "{first:?}");
            hand.ack(now_ns + MS, ack(3, &[], None));
        }
        assert_eq!(hand.ssthresh(), None, "timestamps: {timestamps}");
        assert!(hand.cwnd() >= 10.0);
        assert_ne!(hand.sender.window().phase, Phase::Loss);
        assert_eq!(hand.sender.counters().retransmitted, 1);
    }
}

/// A real timeout keeps the threshold, and slow start repairs the window.
#[test]
fn a_real_timeout_is_not_undone() {
    let mut hand = Hand::new(&config(10));
    let mut at_ns = 0;
    while hand.timeouts() == 0 {
        (at_ns, _) = hand.wait();
    }
    let sent = hand.ack(at_ns + 100 * MS, ack(2, &[], Some(at_ns)));
    // F-RTO sends new segments first, and then the answer is a duplicate: it was a loss.
    assert!(sent.iter().all(|n| *n > 11), "{sent:?}");
    let sent = hand.ack(at_ns + 200 * MS, ack(2, &[(12, 13)], Some(at_ns)));
    assert_eq!(sent[0], 2);
    assert_eq!(hand.ssthresh(), Some(5.0));
    assert_eq!(hand.sender.window().phase, Phase::Loss);
}

/// RFC 2861: the window halves for each timeout of idleness, and not below the initial one.
#[test]
fn an_idle_connection_restarts_with_a_smaller_window() {
    for (idle_rtos_2, halvings) in [(1_u64, 0), (3, 1), (5, 2), (101, 10)] {
        let mut config = config(10);
        config.bytes_to_send = Some(0);
        let mut hand = Hand {
            sender: Sender::new(&config),
            sent: Vec::new(),
            confirmed: false,
        };
        hand.send(0);
        hand.ack(100 * MS, ack(1, &[], Some(0)));
        hand.sender.supply(100 * MS, 150);
        let mut now_ns = 100 * MS;
        while !hand.sender.is_done() {
            hand.send(now_ns);
            now_ns += 100 * MS;
            let end = hand.sent.iter().map(|s| s.sequence + 1).max().unwrap();
            hand.ack(now_ns, ack(end, &[], Some(now_ns - 100 * MS)));
        }
        let before = hand.cwnd();
        assert_eq!(
            before, 160.0,
            "all of 150 segments were in full windows but the last"
        );
        let last_ns = hand.sent.last().unwrap().sent_ns;
        let rto_ns = hand.sender.window().rto_ns;
        hand.sender.supply(last_ns + idle_rtos_2 * rto_ns / 2, 1);
        let expected = (before as u64 >> halvings).max(10);
        assert_eq!(hand.cwnd(), expected as f64, "{idle_rtos_2} half timeouts");
    }
}

/// RFC 7661 in Linux's way: in slow start the window stays below twice what the application used.
#[test]
fn an_application_that_writes_little_does_not_open_the_window() {
    for (segments, most) in [(4_u64, 10.0), (8, 16.0)] {
        let mut config = config(10);
        config.bytes_to_send = Some(0);
        let mut hand = Hand {
            sender: Sender::new(&config),
            sent: Vec::new(),
            confirmed: false,
        };
        hand.send(0);
        hand.ack(100 * MS, ack(1, &[], Some(0)));
        let mut end = 1;
        for round in 1..50_u64 {
            let now_ns = round * 100 * MS;
            hand.sender.supply(now_ns, segments);
            hand.send(now_ns);
            for _ in 0..segments {
                end += 1;
                hand.ack(now_ns + 99 * MS, ack(end, &[], Some(now_ns)));
            }
            assert!(hand.cwnd() <= most, "round {round}: {}", hand.cwnd());
        }
        assert_eq!(hand.cwnd(), most);
    }
}

/// Linux: a SYN sent more than twice leaves a window of one, unless the timestamp shows that the first one was answered.
#[test]
fn a_syn_lost_twice_leaves_a_window_of_one() {
    for (losses, echoes_first, window) in [(1, false, 10), (2, false, 1), (2, true, 10)] {
        let mut hand = Hand {
            sender: Sender::new(&config(10)),
            sent: Vec::new(),
            confirmed: false,
        };
        hand.send(0);
        let mut at_ns = 0;
        for nth in 1..=losses {
            let (fired_ns, sent) = hand.wait();
            at_ns = fired_ns;
            assert_eq!(sent, [0]);
            // Timeouts of 1 s that do not back off at first.
            assert_due(at_ns, nth * 1000 * MS, nth * 1000 * MS);
        }
        let echo_ns = if echoes_first { 0 } else { at_ns };
        let first = hand.ack(at_ns + 100 * MS, ack(1, &[], Some(echo_ns)));
        assert_eq!(first.len(), window, "{losses} {echoes_first}");
    }
}

/// The receive window bounds what is sent, the probe included.
#[test]
fn nothing_is_sent_beyond_the_receive_window() {
    let mut hand = Hand {
        sender: Sender::new(&config(10)),
        sent: Vec::new(),
        confirmed: false,
    };
    hand.send(0);
    let narrow = |cumulative: u64, window: u64| Ack {
        window,
        ..ack(cumulative, &[], Some(0))
    };
    assert_eq!(hand.ack(100 * MS, narrow(1, 4)), [1, 2, 3, 4]);
    let (_, probe) = hand.wait();
    assert_eq!(probe, [4], "no new segment fits");
    assert_eq!(hand.ack(310 * MS, narrow(3, 3)), [5]);
}
