// SPDX-License-Identifier: BSD-3-Clause
//! The link and a run of the simulator do the same to the same packets at the same times: over 1,000 random links and lists of
//! packets, the log of a run whose flows replay the packets is what the link reports.

use std::sync::Arc;

use linkweir_link::experiment::{Delays, Experiment, Flow, Measures, Signal, Traffic};
use linkweir_link::{Link, Overrides, Packet};
use linkweir_sim::scenario::parse_with;
use linkweir_sim::table::{Column, Sink, Table};

const DURATION_NS: u64 = 2_000_000_000;

/// Random numbers of the tests (Steele, Lea and Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A packet of a script.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at_ns: u64,
    class: usize,
    bytes: u32,
}

/// What became of a packet: its class, its number there, when it left its queue, when it arrived or was dropped, and why.
type Fate = (String, u64, Option<u64>, Option<u64>, String);

/// A random link, as TOML.
fn scenario(random: &mut SplitMix) -> String {
    let kind = random.one_of(&["plain", "plain", "trace", "impaired", "satellite", "beam"]);
    let (least, most) = (random.between(100, 900), random.between(1_000, 9_000));
    let capacity = match random.below(3) {
        0 => format!("rate = \"{most}kbit\"\n"),
        1 => format!(
            "rate = {{ steps = [[\"0s\", \"{most}kbit\"], [\"{}ms\", \"{least}kbit\"], [\"{}ms\", \"0bit\"], [\"{}ms\", \"{most}kbit\"]] }}\n",
            random.between(1, 400), random.between(401, 900), random.between(901, 1_500)
        ),
        _ => format!(
            "rate = {{ mean = \"{most}kbit\", amplitude = 0.{}, period = \"{}ms\" }}\n",
            random.between(1, 9), random.between(50, 3_000)
        ),
    };
    let delay = format!("delay = \"{}us\"\n", random.between(0, 300_000));
    let follow = random.one_of(&["", "follow = true\n"]);
    let loss = random.one_of(&["", "", "loss = 0.05\n"]);
    let ring = format!("ring = {}\n", random.between(1, 5));
    let overhead = random.one_of(&[
        "",
        "overhead = \"14B\"\nmpu = \"64B\"\n",
        "overhead = \"-12B\"\n",
    ]);
    let link = match kind {
        "plain" => format!("{capacity}{delay}{follow}{loss}{ring}{overhead}"),
        "trace" => format!("trace = \"t\"\n{delay}{follow}{loss}{ring}{overhead}"),
        "impaired" => format!(
            "{capacity}{delay}{follow}{ring}{overhead}loss = {{ mean = \"{}%\", burst = \"{}p\" }}\nreorder = {{ probability = 0.{}, delay = \"{}us\" }}\n",
            random.between(1, 20), random.between(1, 9), random.between(1, 5), random.between(10, 90_000)
        ),
        "satellite" => format!(
            "rate = \"{most}kbit\"\n{delay}[link.satellite]\npacket = \"{}B\"\nesn0_db = {}\n{}",
            random.one_of(&["210", "1115"]),
            random.between(8, 12),
            random.one_of(&["", "reorder = \"per_flow\"\n", "reorder = \"shared\"\n", "first_attempt = \"coded_and_plain\"\n"]),
        ),
        _ => format!(
            "{delay}{overhead}[link.beam]\nsymbol_rate = \"{}kBd\"\nclear_sky_esn0_db = {{ min = 3.0, max = 12.0 }}\ntick = \"{}ms\"\n",
            random.between(100, 2_000), random.between(5, 200)
        ),
    };
    let classes = random.between(1, 3);
    let mut policies = vec![
        "fifo", "strict", "drr", "wrr", "rr", "pds", "fq_codel", "codel",
    ];
    if classes == 3 && kind != "beam" && kind != "satellite" {
        policies.push("pss");
    }
    if kind == "beam" || kind == "satellite" {
        policies.extend(["pf", "codes"]);
    }
    let policy = random.one_of(&policies);
    let mut text = format!(
        "duration = \"2s\"\nseed = {}\n[link]\n{link}[scheduler]\npolicy = \"{policy}\"\n",
        random.below(1_000_000)
    );
    if matches!(policy, "codel" | "fq_codel") {
        text += "ecn = \"yes\"\n";
    }
    for class in 0..classes {
        text += &format!("[[class]]\nname = \"c{class}\"\n");
        text += &match random.below(4) {
            0 => format!("limit = \"{}p\"\n", random.between(1, 60)),
            1 => format!("limit_bytes = \"{}kB\"\n", random.between(2, 90)),
            2 if policy != "pss" => format!("max_age = \"{}ms\"\n", random.between(1, 200)),
            _ => "limit = \"40p\"\n".to_owned(),
        };
        text += &match (policy, class) {
            ("pss", 0) => "level = 0\n".to_owned(),
            ("pss", 1) => {
                "level = 1\nlow_level = 3\nrate = \"80kbit\"\nmemory = \"1s\"\n".to_owned()
            }
            ("pss", _) => "level = 2\n".to_owned(),
            ("strict" | "drr", 0) => "flows = \"drr\"\n".to_owned(),
            ("codes", _) => format!("timeout = \"{}ms\"\n", random.between(10, 300)),
            _ => String::new(),
        };
    }
    if random.below(3) == 0 {
        text += "[[flow]]\nname = \"other\"\nclass = \"c0\"\nkind = \"poisson\"\nrate = \"300kbit\"\npacket = \"200B\"\n";
    } else if random.below(4) == 0 && kind != "satellite" {
        text += "[[flow]]\nname = \"other\"\nclass = \"c0\"\nkind = \"tcp\"\n";
    }
    text
}

/// A recorded capacity in mahimahi's format, for links that ask for one.
fn trace(random: &mut SplitMix) -> Vec<u8> {
    let mut at_ms = 0;
    let lines = (0..random.between(5, 400)).map(|_| {
        at_ms += random.below(12);
        format!("{at_ms}\n")
    });
    let text: String = lines.collect();
    (text + &format!("{}\n", at_ms + 1)).into_bytes()
}

/// Delays before and behind the last satellite that change, and a time without a path.
fn through_satellites(random: &mut SplitMix) -> Delays {
    let mut point = |at_ms: u64| (at_ms * 1_000_000, random.between(1, 90) as f64 / 1e3);
    let (first, second, third) = (point(0), point(700), point(1_400));
    Delays {
        to_satellite_s: Signal::Lines {
            points: Arc::from([first, second, third]),
        },
        to_ground_s: Signal::Constant(0.004),
        start_ns: random.below(500_000_000),
        shift_ns: random.below(50_000_000),
        before_s: 0.01,
        outages: Arc::from([(900_000_000, 950_000_000)]),
    }
}

/// Random packets in the order of time.
fn script(random: &mut SplitMix, classes: usize) -> Vec<Sent> {
    let mut at_ns = random.below(50_000_000);
    let gap_ns = random.between(100_000, 20_000_000);
    let mut all = Vec::new();
    while at_ns < DURATION_NS && all.len() < 400 {
        let class = random.below(classes as u64) as usize;
        // Some come in bursts.
        let burst = if random.below(8) == 0 {
            random.between(2, 12)
        } else {
            1
        };
        for _ in 0..burst {
            let bytes = random.between(20, 1_500) as u32;
            all.push(Sent {
                at_ns,
                class,
                bytes,
            });
        }
        at_ns += 1 + random.below(2 * gap_ns);
    }
    all
}

/// The run's log of packets.
#[derive(Default)]
struct Log(Vec<Vec<(String, Column)>>);

impl Sink for Log {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        if table.name == "packets" {
            self.0.push(table.columns);
        }
        Ok(())
    }
}

fn of_run(experiment: &Experiment, script: &[Sent]) -> Vec<Fate> {
    let mut experiment = experiment.clone();
    experiment.log_rows = Some(1 << 24);
    for class in 0..experiment.classes.len() {
        let packets = script.iter().filter(|sent| sent.class == class);
        let packets: Arc<[(u64, u32)]> = packets.map(|sent| (sent.at_ns, sent.bytes)).collect();
        experiment.flows.push(Flow {
            name: format!("replay {class}"),
            class,
            start_ns: 0,
            stop_ns: DURATION_NS,
            access_delay_ns: 0,
            // One without packets would have none of 1 byte or more.
            traffic: Traffic::Replay {
                packets: if packets.is_empty() {
                    Arc::from([(DURATION_NS, 1)])
                } else {
                    packets
                },
                period_ns: None,
            },
            measures: Measures::default(),
        });
    }
    let mut log = Log::default();
    linkweir_sim::run(&experiment, &mut log).expect("the experiment runs");
    let mut fates: Vec<Fate> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for columns in &log.0 {
        let names = |wanted: &str| match columns.iter().find(|(name, _)| name == wanted) {
            Some((_, Column::Name(values))) => values.clone(),
            _ => panic!("no names {wanted}"),
        };
        let counts = |wanted: &str| match columns.iter().find(|(name, _)| name == wanted) {
            Some((_, Column::Count(values))) => values.clone(),
            _ => panic!("no counts {wanted}"),
        };
        let (t_ns, event, reason) = (counts("t_ns"), names("event"), names("reason"));
        let (flow, class, number) = (names("flow"), names("class"), counts("number"));
        for row in 0..t_ns.len() {
            if !flow[row].starts_with("replay") {
                continue;
            }
            let key = (class[row].clone(), number[row]);
            let place = *places.entry(key.clone()).or_insert_with(|| {
                fates.push((key.0.clone(), key.1, None, None, String::new()));
                fates.len() - 1
            });
            let fate = &mut fates[place];
            match event[row].as_str() {
                "sent" => fate.2 = Some(t_ns[row]),
                "delivered" => fate.3 = Some(t_ns[row]),
                "dropped" => {
                    fate.3 = Some(t_ns[row]);
                    fate.4.clone_from(&reason[row]);
                }
                _ => {}
            }
        }
    }
    // Of a packet that was not settled, and of a dropped one, the link does not tell when it left its queue.
    fates.retain(|fate| fate.3.is_some());
    for fate in &mut fates {
        if !fate.4.is_empty() {
            fate.2 = None;
        }
    }
    fates.sort();
    fates
}

/// How the link is asked.
#[derive(Clone, Copy)]
enum Asking {
    /// Only at the end.
    Late,
    /// Whenever it says that something may happen.
    AsTold,
    /// At random times, too.
    Often(u64),
}

/// With `ecn`, every second packet can be marked; the reason of one that arrives with a mark is "marked". The packets of a run's
/// replay cannot.
fn of_link(experiment: &Experiment, script: &[Sent], asking: Asking, ecn: bool) -> Vec<Fate> {
    let mut link: Link<(usize, u64)> = Link::new(experiment).expect("the experiment is a link");
    let mut numbers = vec![0; experiment.classes.len()];
    let mut fates = Vec::new();
    let mut random = SplitMix(match asking {
        Asking::Often(seed) => seed,
        _ => 0,
    });
    let mut last_ns = 0;
    let mut take = |link: &mut Link<(usize, u64)>, now_ns: u64| {
        while let Some(packet) = link.receive(now_ns) {
            assert!(packet.arrived_ns <= now_ns && packet.left_ns <= packet.arrived_ns);
            assert!(packet.sent_ns <= packet.left_ns && packet.class == packet.payload.0);
            let class = experiment.classes[packet.class].name.clone();
            let (left_ns, arrived_ns) = (Some(packet.left_ns), Some(packet.arrived_ns));
            let mark = if packet.marked { "marked" } else { "" };
            fates.push((
                class,
                packet.payload.1,
                left_ns,
                arrived_ns,
                mark.to_owned(),
            ));
        }
        while let Some(packet) = link.dropped(now_ns) {
            let class = experiment.classes[packet.class].name.clone();
            let reason = packet.reason.name().to_owned();
            fates.push((
                class,
                packet.payload.1,
                None,
                Some(packet.dropped_ns),
                reason,
            ));
        }
    };
    let end = Sent {
        at_ns: DURATION_NS,
        class: usize::MAX,
        bytes: 0,
    };
    for sent in script.iter().chain([&end]) {
        match asking {
            Asking::Late => {}
            Asking::AsTold => {
                while let Some(next_ns) = link.next_ns().filter(|next_ns| *next_ns < sent.at_ns) {
                    take(&mut link, next_ns);
                }
            }
            Asking::Often(_) => {
                for _ in 0..random.below(3) {
                    last_ns += random.below((sent.at_ns - last_ns).max(1));
                    take(&mut link, last_ns);
                }
            }
        }
        last_ns = sent.at_ns;
        if sent.class < numbers.len() {
            let packet = Packet {
                flow: sent.class as u32,
                ecn_capable: ecn && numbers[sent.class] % 2 == 0,
                ..Packet::new(sent.class, sent.bytes)
            };
            let payload = (sent.class, numbers[sent.class]);
            link.send_packet(sent.at_ns, packet, payload)
                .expect("it is taken");
            numbers[sent.class] += 1;
        }
    }
    take(&mut link, DURATION_NS);
    assert_eq!(link.next_ns(), None);
    fates.sort();
    fates
}

fn case(seed: u64) -> Option<(Experiment, Vec<Sent>, String)> {
    let mut random = SplitMix(seed);
    let text = scenario(&mut random);
    let overrides = Overrides {
        trace: text.contains("trace =").then(|| "t.down".into()),
        trace_content: Some(trace(&mut random)),
        driven: true,
        ..Overrides::default()
    };
    let text = text.replace("trace = \"t\"\n", "");
    match parse_with(&text, None, &overrides) {
        Ok(mut scenario) => {
            if let Some(satellite) = &mut scenario.experiment.link.satellite {
                satellite.delays = (seed % 3 == 0).then(|| through_satellites(&mut random));
            }
            let script = script(&mut random, scenario.experiment.classes.len());
            Some((scenario.experiment, script, text))
        }
        Err(fault) => panic!("{fault}\n{text}"),
    }
}

#[test]
fn the_link_does_what_a_run_does_over_1000_random_scripts() {
    let (mut arrived, mut dropped) = (0, 0);
    let mut reasons = std::collections::BTreeSet::new();
    for seed in 0..1_000 {
        let (experiment, script, text) = case(seed).expect("a link");
        let expected = of_run(&experiment, &script);
        let asking = [Asking::Late, Asking::AsTold, Asking::Often(seed)][seed as usize % 3];
        let got = of_link(&experiment, &script, asking, false);
        assert_eq!(got, expected, "seed {seed}:\n{text}");
        dropped += expected.iter().filter(|fate| !fate.4.is_empty()).count();
        arrived += expected.iter().filter(|fate| fate.4.is_empty()).count();
        reasons.extend(expected.into_iter().map(|fate| fate.4));
    }
    // The scripts are not empty ones.
    assert!(
        arrived > 50_000 && dropped > 5_000,
        "{arrived} and {dropped}"
    );
    let met: Vec<&str> = reasons
        .iter()
        .map(String::as_str)
        .filter(|r| !r.is_empty())
        .collect();
    assert_eq!(met, ["age", "decoder", "limit", "link", "order", "policy"]);
}

#[test]
fn however_the_link_is_asked_it_does_the_same_twice() {
    let mut marked = 0;
    for seed in 5_000..5_100 {
        let (experiment, script, text) = case(seed).expect("a link");
        let first = of_link(&experiment, &script, Asking::Late, true);
        marked += first.iter().filter(|fate| fate.4 == "marked").count();
        for asking in [
            Asking::Late,
            Asking::AsTold,
            Asking::Often(1),
            Asking::Often(2),
        ] {
            assert_eq!(
                of_link(&experiment, &script, asking, true),
                first,
                "seed {seed}:\n{text}"
            );
        }
    }
    assert!(marked > 20, "{marked}");
}
