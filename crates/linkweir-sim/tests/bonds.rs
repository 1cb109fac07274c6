// SPDX-License-Identifier: BSD-3-Clause
//! Bonds: promises over links that come and go, and what reaches the receivers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use linkweir_sim::table::{Column, Sink, Table};
use linkweir_sim::{run_network, scenario};

/// All rows of a run, by table.
#[derive(Default)]
struct Tables(BTreeMap<&'static str, Vec<(String, Column)>>);

impl Sink for Tables {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        let Some(columns) = self.0.get_mut(table.name) else {
            self.0.insert(table.name, table.columns);
            return Ok(());
        };
        for ((_, all), (_, more)) in columns.iter_mut().zip(table.columns) {
            match (all, more) {
                (Column::Real(all), Column::Real(more)) => all.extend(more),
                (Column::Count(all), Column::Count(more)) => all.extend(more),
                (Column::Whole(all), Column::Whole(more)) => all.extend(more),
                (Column::Name(all), Column::Name(more)) => all.extend(more),
                _ => return Err("a column changed its type".to_owned()),
            }
        }
        Ok(())
    }
}

impl Tables {
    fn column(&self, table: &str, column: &str) -> &Column {
        let columns = self
            .0
            .get(table)
            .unwrap_or_else(|| panic!("no table {table}"));
        let found = columns.iter().find(|(name, _)| name == column);
        &found.unwrap_or_else(|| panic!("{table} has no {column}")).1
    }

    fn names(&self, table: &str, column: &str) -> &[String] {
        match self.column(table, column) {
            Column::Name(names) => names,
            other => panic!("{table}.{column} is {other:?}"),
        }
    }

    fn counts(&self, table: &str, column: &str) -> &[u64] {
        match self.column(table, column) {
            Column::Count(counts) => counts,
            other => panic!("{table}.{column} is {other:?}"),
        }
    }

    /// A count of the row in which a name is in a column.
    fn count(&self, table: &str, (key, name): (&str, &str), column: &str) -> u64 {
        let at = self
            .names(table, key)
            .iter()
            .position(|other| other == name);
        self.counts(table, column)[at.unwrap()]
    }

    /// The deliveries of a flow: time in ns, number, bytes.
    fn deliveries(&self, flow: &str) -> Vec<(u64, u64, u64)> {
        self.steps(flow, "delivered")
    }

    /// The packets of a flow that such a step happened to: time in ns, number, bytes.
    fn steps(&self, flow: &str, step: &str) -> Vec<(u64, u64, u64)> {
        let (events, flows) = (
            self.names("packets", "event"),
            self.names("packets", "flow"),
        );
        let columns = ["t_ns", "number", "size_bytes"].map(|name| self.counts("packets", name));
        (0..events.len())
            .filter(|at| events[*at] == step && flows[*at] == flow)
            .map(|at| (columns[0][at], columns[1][at], columns[2][at]))
            .collect()
    }
}

fn run(text: &str) -> Tables {
    let scenario = scenario::parse(text, Path::new("bond.toml")).unwrap_or_else(|e| panic!("{e}"));
    let mut tables = Tables::default();
    run_network(&scenario.network.unwrap(), 1, &mut tables).unwrap_or_else(|e| panic!("{e}"));
    tables
}

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
/// How long receivers wait for missing packets, and the longest delay of a link, ns.
const REORDER_NS: u64 = 50 * MS;
const DELAY_NS: u64 = 45 * MS;

/// 500 Mbit/s for two links of 60 and 40 Mbit/s, with these keys for each.
fn overload(starlink: &str, lte: &str) -> String {
    format!(
        r#"
duration = "60s"
log = "packets"
[[link]]
name = "starlink"
delay = "30ms"
nominal = "60Mbit"
{starlink}
[[link]]
name = "lte"
delay = "45ms"
nominal = "40Mbit"
cost = 5
{lte}
[[bond]]
name = "boat"
links = ["starlink", "lte"]
[bond.scheduler]
policy = "pss"
[[bond.class]]
name = "heartbeat"
level = 0
paths = "all"
[[bond.class]]
name = "voice"
level = 1
paths = "best"
[[bond.class]]
name = "video"
level = 2
low_level = 5
rate = "20Mbit"
limit = "200p"
paths = "spill"
[[bond.class]]
name = "rest"
level = 4
limit = "200p"
mtu = "7000B"
paths = "stripe"
[[flow]]
name = "heartbeat"
path = ["boat"]
class = "heartbeat"
kind = "cbr"
rate = "80kbit"
packet = "200B"
[[flow]]
name = "voice"
path = ["boat"]
class = "voice"
kind = "cbr"
rate = "80kbit"
packet = "200B"
[[flow]]
name = "video"
path = ["boat"]
class = "video"
kind = "cbr"
rate = "20Mbit"
packet = "1250B"
[[flow]]
name = "rest"
path = ["boat"]
class = "rest"
kind = "cbr"
rate = "475Mbit"
packet = "7000B"
"#
    )
}

const UP: [&str; 2] = ["rate = \"60Mbit\"", "rate = \"40Mbit\""];

/// The overload with one link cut at 20 s and back at 40 s, so that it is known at once or only by what is lost.
fn cut(link: usize, silent: bool) -> String {
    let mut keys = UP.map(str::to_owned);
    if silent {
        keys[link] += "\nloss = { steps = [[\"0s\", 0.0], [\"20s\", 1.0], [\"40s\", 0.0]] }";
    } else {
        let rate = ["60Mbit", "40Mbit"][link];
        keys[link] = format!(
            "rate = {{ steps = [[\"0s\", \"{rate}\"], [\"20s\", \"0bit\"], [\"40s\", \"{rate}\"]] }}"
        );
    }
    overload(&keys[0], &keys[1])
}

/// No packet is there twice or out of order.
fn in_order_and_once(tables: &Tables, flow: &str) {
    let deliveries = tables.deliveries(flow);
    assert!(deliveries.len() > 1000, "{flow}: {}", deliveries.len());
    assert!(
        deliveries.windows(2).all(|two| two[0].1 < two[1].1),
        "{flow}"
    );
}

/// The reserved 20 Mbit/s in every second of those that begin at these times.
fn keeps_its_rate(packets: &[(u64, u64, u64)], counts: impl Fn(u64) -> bool, of: &str) {
    let starts = (100..58_900u64).step_by(10).map(|ms| ms * MS);
    for start_ns in starts.filter(|ns| counts(*ns)) {
        let from = packets.partition_point(|one| one.0 < start_ns);
        let until = packets.partition_point(|one| one.0 < start_ns + S);
        let bits: u64 = packets[from..until].iter().map(|one| 8 * one.2).sum();
        assert!(
            bits >= 19_800_000,
            "{of}: {bits} bits in the second from {start_ns} ns"
        );
    }
}

/// A class that wants more than it is promised is always full, so it uses both links. When it begins to use the longer one, the
/// receivers get its packets later by the difference, once; so the rate is that of what the scheduler sends.
#[test]
fn a_class_that_wants_more_than_its_promise_is_sent_its_promise() {
    let text = cut(0, true).replace("rate = \"20Mbit\"\npacket", "rate = \"25Mbit\"\npacket");
    let sent = run(&text).steps("video", "sent");
    keeps_its_rate(
        &sent,
        |ns| ns + S <= 20 * S || ns >= 20 * S + 200 * MS,
        "sent",
    );
}

#[test]
fn two_links_carry_their_sum_and_one_flow_gets_it() {
    let text = overload(UP[0], UP[1]);
    let tables = run(&text);
    let Column::Real(used) = tables.column("members", "used_bps") else {
        panic!("a rate")
    };
    let sum: f64 = used.iter().flatten().sum::<f64>() / 60.0;
    assert!((99.9e6..=100.0e6).contains(&sum), "{sum}");
    let rest: u64 = tables.deliveries("rest").iter().map(|one| one.2).sum();
    // 100 Mbit/s without 20 of video, one call, and a heartbeat on both links.
    let expected = (100e6 - 20e6 - 3.0 * 80e3) * 60.0 / 8.0;
    let found = rest as f64 / expected;
    assert!((0.99..=1.001).contains(&found), "{found}");
    // No packet of the class whose order is restored was dropped as late: 15 ms lie between the links.
    assert_eq!(
        tables.count("bond_receivers", ("class", "rest"), "late_pkts"),
        0
    );
    assert!(tables.count("bond_receivers", ("class", "rest"), "reordered_pkts") > 5_000);
    let copies: u64 = tables.counts("bond_paths", "copied_pkts").iter().sum();
    let duplicates = tables.count("bond_receivers", ("class", "heartbeat"), "duplicate_pkts");
    assert!(
        copies >= 2990 && duplicates + 5 >= copies,
        "{copies} copies, {duplicates} duplicates"
    );
}

/// A bond of one link, and the same link with the scheduler in front of it.
#[test]
fn a_bond_of_one_link_is_that_link() {
    let link = "name = \"wire\"\ndelay = { steps = [[\"0s\", \"5ms\"], [\"2s\", \"20ms\"]] }\nloss = 0.01\n";
    for rate in [
        "rate = \"5Mbit\"",
        "rate = { steps = [[\"0s\", \"5Mbit\"], [\"3s\", \"2Mbit\"]] }\nfollow = true",
        "rate = \"5Mbit\"\nreorder = { probability = 0.02, delay = \"9ms\" }",
    ] {
        for policy in ["fifo", "strict", "pds", "codel"] {
            let bonded = format!(
                "[[link]]\n{link}{rate}\n[[bond]]\nname = \"link\"\nlinks = [\"wire\"]\n[bond.scheduler]\npolicy = \"{policy}\"\n\
                 [[bond.class]]\nname = \"a\"\nlimit = \"50p\"\nreorder = \"none\"\n\
                 [[bond.class]]\nname = \"b\"\nlimit = \"50p\"\nreorder = \"none\"\npaths = [\"wire\"]\n"
            );
            let alone = format!(
                "[[link]]\n{link}{rate}\n[link.scheduler]\npolicy = \"{policy}\"\n\
                 [[link.class]]\nname = \"a\"\nlimit = \"50p\"\n[[link.class]]\nname = \"b\"\nlimit = \"50p\"\n"
            );
            let flows = |path: &str| {
                format!(
                    "[[flow]]\npath = [\"{path}\"]\nclass = \"a\"\nkind = \"poisson\"\nrate = \"3Mbit\"\n\
                     [[flow]]\npath = [\"{path}\"]\nclass = \"b\"\nkind = \"poisson\"\nrate = \"3Mbit\"\n\
                     [[flow]]\npath = [\"{path}\"]\nclass = \"b\"\nkind = \"tcp\"\n"
                )
            };
            let top = "duration = \"6s\"\nwarmup = \"1s\"\nlog = \"packets\"\n";
            let bond = run(&format!("{top}{bonded}{}", flows("link")));
            let link = run(&format!("{top}{alone}{}", flows("wire")));
            for (name, columns) in &link.0 {
                for (column, values) in columns.iter().filter(|(column, _)| column != "link") {
                    let found = bond.column(name, column);
                    assert_eq!(found, values, "{policy}, {rate}: {name}.{column}");
                }
            }
        }
    }
}

#[test]
fn each_member_has_its_row_and_each_packet_an_end() {
    let tables = run(&cut(1, true));
    for flow in ["heartbeat", "voice", "video", "rest"] {
        let count = |column: &str| tables.count("flows", ("flow", flow), column);
        let ends = count("delivered_pkts") + count("lost_link_pkts");
        let drops: u64 = [
            "dropped_limit_pkts",
            "dropped_policy_pkts",
            "dropped_age_pkts",
        ]
        .iter()
        .map(|column| count(column))
        .sum();
        // The rest is on its way or waits.
        let left = count("arrived_pkts") - ends - drops;
        assert!(left <= 1200, "{flow}: {left}");
    }
    let members: BTreeSet<&String> = tables.names("members", "member").iter().collect();
    assert_eq!(members.len(), 2);
    let Column::Real(up) = tables.column("members", "up") else {
        panic!("a part")
    };
    // Of lte in the seconds from 20 and from 40: down after 0.2 s, up after as long.
    let lte: Vec<f64> = up.iter().flatten().skip(1).step_by(2).copied().collect();
    let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    assert!(
        near(lte[19], 1.0) && near(lte[20], 0.2) && near(lte[30], 0.0),
        "{lte:?}"
    );
    assert!(near(lte[40], 0.8) && near(lte[41], 1.0), "{lte:?}");
    let paths = tables.names("bond_paths", "class").len();
    assert_eq!(paths, 8);
}

/// A slow link without delay that falls silent in the middle of a packet, and a longer one.
fn silence_on_a_slow_link(reorder: &str) -> Tables {
    run(&format!(
        r#"
duration = "12s"
log = "packets"
[[link]]
name = "slow"
rate = "1Mbit"
loss = {{ steps = [["0s", 0.0], ["5.001s", 1.0]] }}
[[link]]
name = "long"
rate = "10Mbit"
delay = "40ms"
[[bond]]
name = "boat"
links = ["slow", "long"]
[bond.scheduler]
policy = "strict"
[[bond.class]]
name = "tele"
paths = "best"
reorder = "{reorder}"
resend = true
[[flow]]
path = ["boat"]
name = "tele"
class = "tele"
kind = "cbr"
rate = "792kbit"
packet = "1500B"
stop = "10s"
"#
    ))
}

#[test]
fn all_of_a_silence_is_sent_again_and_each_packet_has_one_end() {
    // One packet in 15 ms, each 12 ms on the transmitter: one is there when the silence begins. The receiver may hold what
    // was sent again for longer than lost packets are looked for.
    for reorder in ["400ms", "2s"] {
        let tables = silence_on_a_slow_link(reorder);
        let numbers = |step| {
            let steps = tables.steps("tele", step);
            steps
                .iter()
                .map(|(_, number, _)| *number)
                .collect::<Vec<_>>()
        };
        let delivered = numbers("delivered");
        assert_eq!(
            delivered.len() as u64,
            tables.count("flows", ("flow", "tele"), "arrived_pkts")
        );
        assert!(delivered.is_sorted_by(|a, b| a < b), "in order, and once");
        assert_eq!(numbers("dropped"), [0u64; 0], "reorder {reorder}");
    }
}

#[test]
fn a_cheap_link_alone_carries_what_it_has_room_for() {
    let text = overload(UP[0], UP[1])
        .replace("rate = \"475Mbit\"", "rate = \"20Mbit\"")
        .replace("paths = \"stripe\"", "paths = \"spill\"");
    let tables = run(&text);
    let classes = tables.names("bond_paths", "class");
    let members = tables.names("bond_paths", "member");
    let sent = tables.counts("bond_paths", "sent_pkts");
    for at in 0..sent.len() {
        let dear = members[at] == "lte" && classes[at] != "heartbeat";
        assert!(
            !dear || sent[at] == 0,
            "{}: {} packets over lte",
            classes[at],
            sent[at]
        );
    }
}

fn fault(text: &str) -> String {
    let read = scenario::parse(text, Path::new("bond.toml"));
    read.expect_err("a fault").to_string()
}

#[test]
fn faults_name_the_key_and_the_cure() {
    let whole = overload(UP[0], UP[1]);
    let changed = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        fault(&whole.replacen(from, to, 1))
    };
    for (from, to, expected) in [
        ("policy = \"pss\"", "policy = \"drr\"", "bond[0].scheduler.policy = \"drr\": cannot serve a bond: a class that may not use the link that is free would lose its turn; use one of fifo, strict, pss, pds, codel"),
        ("[\"starlink\", \"lte\"]", "[\"starlink\", \"lt\"]", "bond[0].links[1] = \"lt\": no link has this name; did you mean \"lte\"?"),
        ("[\"starlink\", \"lte\"]", "[\"lte\", \"lte\"]", "is a member already"),
        ("[\"starlink\", \"lte\"]", "[\"lte\"]", "is missing"),
        ("name = \"boat\"", "name = \"lte\"", "a link or another bond has this name; rename one"),
        ("name = \"boat\"", "name = \"bo\\nat\"", "must be one line without control characters"),
        ("delay = \"30ms\"", "delay = \"30ms\"\nring = 2", "must be 1 in a bond"),
        ("delay = \"30ms\"", "delay = \"30ms\"\noverhead = \"40B\"", "must be as of"),
        ("delay = \"30ms\"", "delay = \"30ms\"\nscheduler = { policy = \"fifo\" }", "a link of a bond has no scheduler of its own"),
        ("paths = \"best\"", "paths = \"bets\"", "paths = \"bets\""),
        ("paths = \"best\"", "paths = [\"lte\", \"lte\"]", "is there twice"),
        ("paths = \"best\"", "paths = []", "must hold 1 .. 8 values; it holds 0"),
        ("paths = \"all\"", "paths = \"all\"\nresend = true", "has no use with paths = \"all\""),
        ("path = [\"boat\"]", "path = [\"lte\"]", "path"),
    ] {
        let found = changed(from, to);
        assert!(found.contains(expected), "{to}: {found}");
    }
    let one_more = "[[link]]\nname = \"other\"\nrate = \"1Mbit\"\ncost = 3\n[link.scheduler]\npolicy = \"fifo\"\n[[link.class]]\nname = \"a\"\n[[bond]]";
    let found = fault(&whole.replace("[[bond]]", one_more));
    assert!(found.contains("is for a link of a bond"), "{found}");
}

#[test]
fn a_resolved_scenario_is_the_same_again() {
    let read = |text: &str| {
        scenario::parse(text, Path::new("bond.toml")).unwrap_or_else(|e| panic!("{e}\n{text}"))
    };
    let first = read(&cut(1, true));
    let second = read(&first.resolved_toml);
    assert_eq!(first.network, second.network);
    assert_eq!(first.resolved_toml, second.resolved_toml);
}

#[test]
fn what_links_cannot_carry_is_noted_by_class_and_number() {
    let text = overload(UP[0], UP[1]).replace("rate = \"20Mbit\"", "rate = \"45Mbit\"");
    let scenario = scenario::parse(&text, Path::new("bond.toml")).unwrap();
    assert_eq!(
        scenario.notes,
        ["bond.boat: class \"video\" has a reservation of 45Mbit, of which its links can carry 40Mbit while \"starlink\" is down"]
    );
}

/// What `make check` leaves out.
mod slow {
    use super::*;

    #[test]
    fn promises_are_kept_while_a_link_is_cut() {
        for link in [0, 1] {
            for silent in [false, true] {
                let tables = run(&cut(link, silent));
                let of = format!("link {link}, silent: {silent}");
                for flow in ["heartbeat", "voice", "video", "rest"] {
                    in_order_and_once(&tables, flow);
                }
                let heartbeats = tables.deliveries("heartbeat");
                // What was created in the last delay is still on its way at the end.
                let most = 60 * 50;
                assert!(heartbeats.len() + 4 >= most, "{of}: {}", heartbeats.len());
                assert!(
                    heartbeats
                        .iter()
                        .zip(0..)
                        .all(|(one, number)| one.1 == number),
                    "{of}"
                );
                assert_eq!(
                    tables.count("flows", ("flow", "heartbeat"), "lost_link_pkts"),
                    0,
                    "{of}"
                );

                let voice = tables.deliveries("voice");
                let gap_ns = voice
                    .windows(2)
                    .map(|two| two[1].0 - two[0].0)
                    .max()
                    .unwrap();
                let most_ns = if silent { 300 * MS } else { 100 * MS };
                assert!(gap_ns <= most_ns, "{of}: a gap of {gap_ns} ns");

                // From when the cut is known, and what was sent then has arrived.
                let known_ns = 20 * S + if silent { 200 * MS } else { 0 };
                let settled_ns = known_ns + DELAY_NS + REORDER_NS;
                let video = tables.deliveries("video");
                keeps_its_rate(&video, |ns| ns + S <= 20 * S || ns >= settled_ns, &of);
            }
        }
    }

    /// A class that asks for repetition, and one that does not.
    #[test]
    fn what_a_dead_link_held_is_sent_again() {
        let lost_of =
            |tables: &Tables, flow: &str| tables.count("flows", ("flow", flow), "lost_link_pkts");
        let lost = |tables: &Tables| lost_of(tables, "video");
        let resent =
            |tables: &Tables| -> u64 { tables.counts("bond_paths", "resent_pkts").iter().sum() };
        let asks =
            |text: String| text.replace("paths = \"spill\"", "paths = \"spill\"\nresend = true");
        // The carrier tells at once: only the packet on the transmitter is lost, or sent again.
        let rest_too =
            |text: String| text.replace("paths = \"stripe\"", "paths = \"stripe\"\nresend = true");
        let losses = ["heartbeat", "voice", "video", "rest"];
        let without = run(&cut(0, false));
        assert_eq!(
            losses
                .map(|flow| lost_of(&without, flow))
                .iter()
                .sum::<u64>(),
            1
        );
        let with = run(&rest_too(asks(cut(0, false))));
        assert_eq!(losses.map(|flow| lost_of(&with, flow)), [0; 4]);
        assert!(resent(&with) > 0);
        in_order_and_once(&with, "video");
        // A silence is known after 200 ms, when the receiver no longer waits for what was lost in it.
        let silent = cut(0, true);
        assert!(lost(&run(&silent)) > 100);
        let patient =
            run(&asks(silent).replace("resend = true", "resend = true\nreorder = \"1s\""));
        assert_eq!(lost(&patient), 0);
        assert!(resent(&patient) > 100);
        in_order_and_once(&patient, "video");
    }

    #[test]
    fn threads_change_nothing() {
        let text = cut(0, false).replace("[[bond]]", "[[link]]\nname = \"feeder\"\nrate = \"200Mbit\"\ndelay = \"3ms\"\n[link.scheduler]\npolicy = \"fifo\"\n[[link.class]]\nname = \"all\"\n[[bond]]").replace(
        "path = [\"boat\"]\nclass = \"voice\"",
        "path = [\"feeder\", \"boat\"]\nclass = { feeder = \"all\", boat = \"voice\" }",
    );
        let scenario =
            scenario::parse(&text, Path::new("bond.toml")).unwrap_or_else(|e| panic!("{e}"));
        let network = scenario.network.unwrap();
        let tables = [1, 2].map(|threads| {
            let mut tables = Tables::default();
            run_network(&network, threads, &mut tables).unwrap();
            tables.0
        });
        assert_eq!(tables[0], tables[1]);
    }
}
