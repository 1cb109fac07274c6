// SPDX-License-Identifier: BSD-3-Clause
//! A beam's carrier: how long packets take, who is blocked, and what is measured of it.

use linkweir_sim::experiment::{Beam, ClearSky, Experiment, Weather};
use linkweir_sim::run;
use linkweir_sim::satellite::modcod::{Adaptation, DVB_S2};
use linkweir_sim::satellite::rain::{Attenuation, Rain};
use linkweir_sim::table::Column;

use crate::build::{experiment, flow, greedy, packet, rate, scheduler, tables, Tables, MS, S};

/// Efficiencies of EN 302 307-1 at these Es/N0 (dB): QPSK 1/2, 8PSK 2/3, 32APSK 3/4.
const LOW: (f64, f64) = (1.5, 0.988858);
const MIDDLE: (f64, f64) = (7.0, 1.980636);
const HIGH: (f64, f64) = (13.0, 3.703295);

/// A carrier of 1 MBd without margin or hysteresis, to terminals with these Es/N0.
fn beam(policy: &str, esn0_db: &[f64], weather: Weather, duration_ns: u64) -> Experiment {
    let n = esn0_db.len();
    let chosen = scheduler(policy, &[], &vec![&[][..]; n]);
    let mut e = experiment(rate(4_453_027.0), 2_000_000, chosen, n, duration_ns);
    e.link.beam = Some(Beam {
        symbol_rate_bd: 1e6,
        clear_sky: ClearSky::Each(esn0_db.into()),
        adaptation: Adaptation::new(DVB_S2, 0.0, 0.0),
        tick_ns: 100 * MS,
        weather,
        seed: 1,
    });
    e
}

fn words(tables: &Tables, table: &str, column: &str) -> Vec<String> {
    match tables.column(table, column) {
        Column::Name(words) => words.clone(),
        other => panic!("{table}.{column} is {other:?}"),
    }
}

/// To a nanosecond and a half: event times are whole.
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1.5e-9, "{found}, not {expected}");
}

#[test]
fn packets_take_as_long_as_their_terminal_needs() {
    let mut e = beam("rr", &[LOW.0, MIDDLE.0], Weather::Clear, S);
    e.interval_ns = 500 * MS;
    // Both wait from the start: the first terminal's packet is followed by the second's, then the first's again.
    e.flows = vec![packet(0, 0, 1000), packet(1, 0, 1000), packet(0, 0, 500)];
    let found = tables(&e);
    let slow_s = |bytes: f64| 8.0 * bytes / (1e6 * LOW.1);
    let quick_s = 8000.0 / (1e6 * MIDDLE.1);
    let delays = found.numbers("flows", "delay_mean_s");
    close(delays[0], slow_s(1000.0));
    close(delays[1], slow_s(1000.0) + quick_s);
    close(delays[2], slow_s(1000.0) + quick_s + slow_s(500.0));
    // What was measured: 2500 bytes in all of the time they took, which lies in the first half second.
    let busy_s = slow_s(1500.0) + quick_s;
    let occupancy = found.numbers("carrier", "occupancy");
    assert!((occupancy[0] - 2.0 * busy_s).abs() < 1e-12 && occupancy[1] == 0.0);
    let airtime = found.numbers("terminals", "airtime");
    assert!((airtime[0] - slow_s(1500.0)).abs() < 1e-12);
    assert!((airtime[1] - quick_s).abs() < 1e-12);
    let used = found.numbers("link", "used_bps");
    assert!((used[0] - 40_000.0).abs() < 1e-6 && used[1] == 0.0);
    // The terminal with the best channel, served alone, would have had this.
    for capacity in found.numbers("link", "capacity_bps") {
        assert!((capacity - 1e6 * MIDDLE.1).abs() < 1e-6);
    }
    for mean in found.numbers("carrier", "rate_mean_bps") {
        assert!((mean - 0.5e6 * (LOW.1 + MIDDLE.1)).abs() < 1e-6);
    }
    assert_eq!(
        words(&found, "channel", "modcod")[..2],
        ["QPSK 1/2", "8PSK 2/3"]
    );
}

#[test]
fn the_largest_attenuation_is_of_the_time_after_the_warm_up() {
    let fades = Attenuation::new(vec![0, 300 * MS, 700 * MS], vec![9.0, 3.0, 4.0]).unwrap();
    let mut e = beam("rr", &[HIGH.0], Weather::Recorded(fades), S);
    e.warmup_ns = 500 * MS;
    let found = tables(&e);
    assert_eq!(found.numbers("terminals", "attenuation_max_db"), [4.0]);
    let mean_db = found.numbers("terminals", "attenuation_mean_db")[0];
    assert!((mean_db - (0.2 * 3.0 + 0.3 * 4.0) / 0.5).abs() < 1e-9);
}

/// A recorded fade of the first of two: an outage from 200 to 400 ms, and a worse code from 600 ms on; the channel is looked at every 100 ms.
#[test]
fn an_outage_blocks_and_a_packet_keeps_its_code() {
    let fades = Attenuation::new(
        vec![0, 150 * MS, 350 * MS, 600 * MS],
        vec![0.0, 0.0, 30.0, 0.0, 0.0, 0.0, 5.5, 0.0],
    )
    .unwrap();
    let mut e = beam("rr", &[MIDDLE.0; 2], Weather::Recorded(fades), S);
    e.flows = vec![
        packet(0, 250 * MS, 1000), // waits until 400 ms
        packet(1, 260 * MS, 1000), // does not
        packet(0, 598 * MS, 1000), // begins with 8PSK 2/3 and keeps it
        packet(0, 700 * MS, 1000), // QPSK 1/2
    ];
    let found = tables(&e);
    let quick_s = 8000.0 / (1e6 * MIDDLE.1);
    let delays = found.numbers("flows", "delay_mean_s");
    close(delays[0], 0.150 + quick_s);
    close(delays[1], quick_s);
    close(delays[2], quick_s);
    close(delays[3], 8000.0 / (1e6 * LOW.1));
    // Out from the tick at 200 ms to that at 400 ms; 5.5 dB from that at 600 ms on.
    let outage = found.numbers("terminals", "outage");
    assert!((outage[0] - 0.2).abs() < 1e-12 && outage[1] == 0.0);
    assert_eq!(found.numbers("terminals", "modcod_changes"), [3.0, 0.0]);
    let mean_db = found.numbers("terminals", "attenuation_mean_db");
    assert!(
        (mean_db[0] - (0.2 * 30.0 + 0.4 * 5.5)).abs() < 1e-9,
        "{mean_db:?}"
    );
    assert_eq!(
        found.numbers("terminals", "attenuation_max_db"),
        [30.0, 0.0]
    );
    let rates = found.numbers("terminals", "channel_rate_bps");
    let expected = 1e6 * (0.4 * MIDDLE.1 + 0.4 * LOW.1);
    assert!((rates[0] - expected).abs() < 1e-3, "{rates:?}");
    let esn0_db = found.numbers("terminals", "esn0_mean_db");
    assert!((esn0_db[0] - (MIDDLE.0 - mean_db[0])).abs() < 1e-9);
}

/// In turn, three backlogged terminals send the same and the slow one has most of the time; under proportional fairness
/// each has a third of the time; strict priority serves one.
#[test]
fn policies_share_the_carrier() {
    let all = [LOW, MIDDLE, HIGH];
    let esn0_db = all.map(|(db, _)| db);
    let per_bit: Vec<f64> = all
        .iter()
        .map(|(_, efficiency)| 1e-6 / efficiency)
        .collect();
    let whole: f64 = per_bit.iter().sum();
    for policy in ["rr", "drr"] {
        let mut e = beam(policy, &esn0_db, Weather::Clear, 100 * S);
        e.flows = (0..3).map(|class| flow(class, greedy(1500))).collect();
        let found = tables(&e);
        let airtime = found.numbers("terminals", "airtime");
        for class in 0..3 {
            let rate = found.numbers("classes", "rate_bps")[class];
            // Up to a packet at the end.
            assert!((rate - 1.0 / whole).abs() < 130.0, "{policy}: {rate}");
            assert!((airtime[class] - per_bit[class] / whole).abs() < 2e-4);
        }
        assert!(
            (airtime.iter().sum::<f64>() - 1.0).abs() < 1e-9,
            "{airtime:?}"
        );
        assert!((found.numbers("carrier", "occupancy")[0] - 1.0).abs() < 1e-9);
    }
    // A packet of the slow terminal lasts 12 ms, a thousandth of the means' memory.
    let mut e = beam("pf", &esn0_db, Weather::Clear, 100 * S);
    e.scheduler = scheduler("pf", &[("tc", "10000000000")], &[&[][..]; 3]);
    e.flows = (0..3).map(|class| flow(class, greedy(1500))).collect();
    let found = tables(&e);
    for (class, airtime) in found.numbers("terminals", "airtime").iter().enumerate() {
        assert!((airtime - 1.0 / 3.0).abs() < 1e-3, "{class}: {airtime}");
    }
    let mut e = beam("strict", &esn0_db, Weather::Clear, 100 * S);
    e.flows = (0..3).map(|class| flow(class, greedy(1500))).collect();
    let found = tables(&e);
    let rates = found.numbers("classes", "rate_bps");
    assert!((rates[0] - 1e6 * LOW.1).abs() < 130.0 && rates[1] == 0.0 && rates[2] == 0.0);
    // And the next when the first is in outage.
    let mut e = beam("strict", &[-5.0, MIDDLE.0, HIGH.0], Weather::Clear, 100 * S);
    e.flows = (0..3).map(|class| flow(class, greedy(1500))).collect();
    let found = tables(&e);
    let rates = found.numbers("classes", "rate_bps");
    assert!((rates[1] - 1e6 * MIDDLE.1).abs() < 130.0 && rates[0] == 0.0 && rates[2] == 0.0);
    assert_eq!(found.numbers("terminals", "outage"), [1.0, 0.0, 0.0]);
}

fn rain() -> Rain {
    Rain {
        m: 0.0,
        sigma: 1.5,
        probability: 0.6,
        correlation_time_s: 2.0,
        correlation: 0.3,
        start: None,
    }
}

/// Every code is in use as often as rain leaves it: the closed form of the attenuation against thresholds.
#[test]
fn rain_decides_how_often_each_code_is_used() {
    let n = 60;
    let mut e = beam("rr", &[8.0; 60], Weather::Rain(rain()), 1500 * S);
    e.interval_ns = S;
    if let Some(beam) = &mut e.link.beam {
        beam.tick_ns = S;
    }
    let found = tables(&e);
    let modcods = words(&found, "channel", "modcod");
    assert_eq!(modcods.len(), 1500 * n);
    // Every terminal with at least this Es/N0 has its code or a better one.
    for (code, threshold_db) in [("8PSK 3/4", 7.91), ("QPSK 9/10", 6.42), ("QPSK 1/2", 1.0)] {
        let ladder = Adaptation::new(DVB_S2, 0.0, 0.0);
        let better: Vec<&str> = ladder
            .ladder()
            .iter()
            .map(|m| m.name)
            .skip_while(|name| *name != code)
            .collect();
        let part = 1.0 - rain().exceedance(8.0 - threshold_db);
        let hits = modcods.iter().filter(|m| better.contains(&m.as_str()));
        let share = hits.count() as f64 / modcods.len() as f64;
        // A second keeps exp(-1/2) of the last one, so 4 of them make one sample; terminals with 0.3 in common make 3.2
        // of 60 at the most (1 / (0.3 + 0.7 / 60)). Four standard errors of 375 times 3.2.
        let slack = 4.0 * (part * (1.0 - part) / (375.0 * 3.2)).sqrt();
        assert!((share - part).abs() < slack, "{code}: {share}, not {part}");
    }
    let outage = found.numbers("terminals", "outage");
    let mean = outage.iter().sum::<f64>() / n as f64;
    let part = rain().exceedance(8.0 + 2.35);
    assert!((mean - part).abs() < 4.0 * (part * (1.0 - part) / 1200.0).sqrt());
}

/// What tables say of one interval fits together, in rain and with traffic.
#[test]
fn measurements_agree() {
    let mut e = beam("drr", &[9.0; 8], Weather::Rain(rain()), 60 * S);
    e.interval_ns = S;
    e.warmup_ns = 20 * S;
    if let Some(beam) = &mut e.link.beam {
        beam.tick_ns = S;
    }
    e.flows = (0..8)
        .map(|class| flow(class, greedy(100 + 150 * class as u32)))
        .collect();
    let found = tables(&e);
    let airtimes = found.numbers("channel", "airtime");
    let occupancy = found.numbers("carrier", "occupancy");
    let outage = found.numbers("carrier", "outage");
    for (bin, busy) in occupancy.iter().enumerate() {
        let sum: f64 = airtimes[bin * 8..bin * 8 + 8].iter().sum();
        assert!((sum - busy).abs() < 1e-9);
        // Always backlogged: idle only while all terminals are in outage.
        assert!(*busy <= 1.0 + 1e-9 && (*busy > 1.0 - 1e-9 || outage[bin] > 0.1));
    }
    let esn0_db = found.numbers("channel", "esn0_db");
    let lost_db = found.numbers("channel", "attenuation_db");
    for (now, lost) in esn0_db.iter().zip(&lost_db) {
        assert!((now + lost - 9.0).abs() < 1e-9);
    }
    // Totals are those of the bins they cover: every tick is a bin.
    let bins = |column: &'static str, class: usize| {
        let all = found.numbers("channel", column);
        (20..60).map(move |bin| all[bin * 8 + class])
    };
    for class in 0..8 {
        for (total, column) in [
            ("airtime", "airtime"),
            ("outage", "outage"),
            ("esn0_mean_db", "esn0_db"),
            ("attenuation_mean_db", "attenuation_db"),
            ("channel_rate_bps", "rate_bps"),
        ] {
            let mean = bins(column, class).sum::<f64>() / 40.0;
            let total = found.numbers("terminals", total)[class];
            assert!(
                (mean - total).abs() < 1e-9 * mean.abs().max(1.0),
                "{column}"
            );
        }
        let most = bins("attenuation_db", class).fold(0.0, f64::max);
        let total = found.numbers("terminals", "attenuation_max_db")[class];
        assert!((most - total).abs() < 1e-9, "{total}, not {most}");
    }
    let modcods = words(&found, "channel", "modcod");
    let changes = (20..60).filter(|bin| modcods[bin * 8] != modcods[bin * 8 - 8]);
    assert_eq!(
        found.numbers("terminals", "modcod_changes")[0],
        changes.count() as f64
    );
    // What the link carried is what classes sent, but for a packet under way at either end.
    let used: f64 = found.numbers("link", "used_bps")[20..].iter().sum();
    let sent: f64 = found.numbers("classes", "sent_bytes").iter().sum();
    assert!((used - 8.0 * sent).abs() <= 8.0 * 2.0 * 1150.0);
}

/// At time 0, the part of the weather that terminals share has the value of `start`.
#[test]
fn weather_starts_at_the_given_value() {
    let storm = Rain {
        correlation: 1.0,
        start: Some(0.02),
        ..rain()
    };
    let mut e = beam("rr", &[9.0; 3], Weather::Rain(storm.clone()), 2 * S);
    e.interval_ns = 100 * MS;
    let found = tables(&e);
    let lost_db = found.numbers("channel", "attenuation_db");
    for db in &lost_db[..3] {
        assert!((storm.exceedance(*db) - 0.02).abs() < 1e-9, "{db}");
    }
    assert!(lost_db[3] != lost_db[0] && lost_db[3] == lost_db[4]);
}

#[test]
fn the_seed_decides_the_weather() {
    let run_with = |seed| {
        let mut e = beam("rr", &[9.0; 4], Weather::Rain(rain()), 20 * S);
        if let Some(beam) = &mut e.link.beam {
            beam.seed = seed;
            beam.clear_sky = ClearSky::Between(5.0, 10.0);
        }
        e.flows = (0..4).map(|class| flow(class, greedy(1000))).collect();
        tables(&e).tables
    };
    assert_eq!(run_with(1), run_with(1));
    assert_ne!(run_with(1)["terminals"], run_with(2)["terminals"]);
    let spread = Tables {
        tables: run_with(3),
        ..Tables::default()
    };
    let clear_db = spread.numbers("terminals", "clear_sky_esn0_db");
    assert!(clear_db.iter().all(|db| (5.0..10.0).contains(db)));
    assert!(clear_db.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn contradictions_are_refused() {
    let sound = beam("rr", &[9.0; 4], Weather::Clear, S);
    let refused = |change: &dyn Fn(&mut Experiment, &mut Beam)| {
        let mut e = sound.clone();
        let mut beam = e.link.beam.take().unwrap();
        change(&mut e, &mut beam);
        e.link.beam = Some(beam);
        run(&e, &mut Tables::default()).unwrap_err().to_string()
    };
    let one_missing = refused(&|_, beam| beam.clear_sky = ClearSky::Each([1.0; 3].into()));
    assert!(one_missing.contains("Es/N0"), "{one_missing}");
    let columns = Attenuation::new(vec![0], vec![1.0; 3]).unwrap();
    let columns = refused(&|_, beam| beam.weather = Weather::Recorded(columns.clone()));
    assert!(columns.contains("one column"), "{columns}");
    assert!(refused(&|_, beam| beam.tick_ns = 0).contains("tick"));
    assert!(refused(&|_, beam| beam.symbol_rate_bd = 0.0).contains("symbol rate"));
    assert!(refused(&|e, _| e.link.ring = 2).contains("one packet at a time"));
    assert!(refused(&|e, _| e.link.follow = true).contains("followed"));
}
