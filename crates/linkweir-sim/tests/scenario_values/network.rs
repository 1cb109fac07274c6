// SPDX-License-Identifier: BSD-3-Clause
//! Several links become the network they say.

use linkweir_sim::experiment::{Capacity, Signal};
use linkweir_sim::network::{Hop, Network};

use super::*;

const TEXT: &str = r#"duration = "10s"

[[link]]
name = "unused"
like = "beam"

[[link]]
name = "beam"
like = "feeder"
rate = "20Mbit"
[link.scheduler]
policy = "fifo"
[[link.class]]
name = "all"
count = 2

[[link]]
name = "return"
rate = "1Mbit"
delay = "5ms"
[link.scheduler]
policy = "fifo"
[[link.class]]
name = "acks"
match = [{ dscp = ["AF21", "CS0"] }]
[[link.class]]
name = "others"

[[link]]
name = "feeder"
trace = "TRACE"
nominal = "30Mbit"
delay = "10ms"
overhead = "20B"
[link.scheduler]
policy = "strict"
[[link.class]]
name = "voice"
match = [{ dscp = "EF" }]
level = 0
[[link.class]]
name = "rest"
match = [{ dscp = "AF21", port = 80, order = 1 }, {}]
level = 1

[[flow]]
name = "call"
kind = "voice"
codec = "g711"
dscp = "EF"
path = ["feeder"]

[[flow]]
name = "load"
kind = "tcp"
class = { feeder = "rest", beam = "all", "return" = "acks" }
path = ["feeder", "beam"]
back = ["return"]
count = 3

[[flow]]
name = "plain"
kind = "tcp"
dscp = "AF21"
path = ["feeder"]
back = ["return"]
"#;

fn scenario() -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces");
    let trace = folder.join("starlink.csv");
    let text = TEXT.replace("TRACE", &trace.display().to_string());
    parse(&text, Path::new("net.toml")).unwrap()
}

fn network(scenario: &Scenario) -> &Network {
    scenario.network.as_ref().unwrap()
}

#[test]
fn links_come_in_the_order_of_their_first_use() {
    let scenario = scenario();
    let names: Vec<&str> = network(&scenario)
        .links
        .iter()
        .map(|l| l.name.as_str())
        .collect();
    assert_eq!(names, ["feeder", "beam", "return", "unused"]);
    let written: Vec<&str> = scenario
        .resolved_toml
        .lines()
        .scan("", |before, line| {
            let header = std::mem::replace(before, line);
            Some((header, line))
        })
        .filter(|(header, _)| *header == "[[link]]")
        .map(|(_, line)| line)
        .collect();
    let wanted = ["feeder", "beam", "return", "unused"].map(|name| format!("name = \"{name}\""));
    assert_eq!(written, wanted);
}

#[test]
fn where_links_are_written_changes_nothing() {
    let first = scenario();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces/starlink.csv");
    let text = TEXT.replace("TRACE", &folder.display().to_string());
    let starts: Vec<usize> = text.match_indices("[[link]]\n").map(|(at, _)| at).collect();
    let flows = text.find("[[flow]]").unwrap();
    let of_link = |n: usize| &text[starts[n]..starts.get(n + 1).copied().unwrap_or(flows)];
    let mut turned = text[..starts[0]].to_owned();
    for number in [2, 3, 0, 1] {
        turned.push_str(of_link(number));
    }
    turned.push_str(&text[flows..]);
    let second = parse(&turned, Path::new("net.toml")).unwrap();
    assert_eq!(first.resolved_toml, second.resolved_toml);
    assert_eq!(first.network, second.network);
}

#[test]
fn the_resolved_form_is_the_same_network() {
    let scenario = scenario();
    let read = again(&scenario);
    assert_eq!(network(&read), network(&scenario));
    assert_eq!(read.resolved_toml, scenario.resolved_toml);
}

#[test]
fn a_link_takes_from_another_what_it_does_not_give() {
    let scenario = scenario();
    let [feeder, beam, _, unused] = &network(&scenario).links[..] else {
        panic!("four links");
    };
    assert!(matches!(
        &feeder.link.capacity,
        Capacity::Rate(Signal::Steps { .. })
    ));
    assert_eq!(feeder.link.nominal_bps, 30_000_000);
    // A rate of its own excludes the other's trace and nominal rate, and a table counts as a whole.
    for link in [beam, unused] {
        assert_eq!(link.link.capacity, Capacity::Rate(Signal::Constant(20e6)));
        assert_eq!(link.link.nominal_bps, 20_000_000);
        assert_eq!(link.link.delay_s, Signal::Constant(0.01));
        assert_eq!(link.link.overhead_bytes, 20);
        assert_eq!(link.scheduler.policy, "fifo");
        let classes: Vec<&str> = link.classes.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(classes, ["all-1", "all-2"]);
    }
}

#[test]
fn flows_have_their_classes_on_each_link() {
    let scenario = scenario();
    let network = network(&scenario);
    let hop = |link, class| Hop { link, class };
    let ways: Vec<(&str, &[Hop], &[Hop])> = network
        .flows
        .iter()
        .map(|routed| {
            let back = routed.back.first().map_or(&[][..], |way| &way.hops[..]);
            (routed.flow.name.as_str(), &routed.there[0].hops[..], back)
        })
        .collect();
    let (feeder, beam, back) = (0, 1, 2);
    assert_eq!(
        ways,
        [
            ("call", &[hop(feeder, 0)][..], &[][..]),
            // The copies take the copies of the class in turn.
            ("load-1", &[hop(feeder, 1), hop(beam, 0)], &[hop(back, 0)]),
            ("load-2", &[hop(feeder, 1), hop(beam, 1)], &[hop(back, 0)]),
            ("load-3", &[hop(feeder, 1), hop(beam, 0)], &[hop(back, 0)]),
            // The rule with a port asks for more than the code point; the rest takes it.
            ("plain", &[hop(feeder, 1)], &[hop(back, 0)]),
        ]
    );
    assert!(network
        .flows
        .iter()
        .all(|routed| routed.flow.class == routed.there[0].hops[0].class as usize));
}

#[test]
fn a_link_alone_is_a_scenario_with_the_flows_that_pass_it() {
    let scenario = scenario();
    let of = |number: usize| {
        let flows = scenario.links[number].experiment.flows.iter();
        flows
            .map(|f| (f.name.as_str(), f.class))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(1), [("load-1", 0), ("load-2", 1), ("load-3", 0)]);
    assert_eq!(of(0).len(), 5);
    assert_eq!(of(2), []);
    let beam = &scenario.links[1];
    let read = again(beam);
    assert_eq!(read.experiment, beam.experiment);
    assert_eq!(read.resolved_toml, beam.resolved_toml);
}

#[test]
fn one_link_with_a_name_is_a_network() {
    let text = "duration = \"1s\"\n[[link]]\nname = \"only\"\nrate = \"1Mbit\"\n[link.scheduler]\npolicy = \"fifo\"\n\
                [[link.class]]\nname = \"all\"\n[[flow]]\nclass = \"all\"\nkind = \"tcp\"\n";
    let scenario = parse(text, Path::new("one.toml")).unwrap();
    let network = network(&scenario);
    assert_eq!(network.links.len(), 1);
    assert_eq!(network.flows[0].there[0].hops, [Hop { link: 0, class: 0 }]);
    assert!(scenario.resolved_toml.contains("path = [\"only\"]"));
}

/// What is drawn for a link depends on its name and on nothing else.
#[test]
fn another_link_changes_no_seed() {
    let rain = "symbol_rate = \"10MBd\"\nclear_sky_esn0_db = { min = 5.0, max = 9.0 }";
    let text = |before: &str| {
        format!(
            "duration = \"1s\"\n{before}[[link]]\nname = \"beam\"\ndelay = \"1ms\"\n[link.beam]\n{rain}\n[link.scheduler]\npolicy = \"fifo\"\n\
             [[link.class]]\nname = \"all\"\n[[flow]]\nclass = \"all\"\nkind = \"tcp\"\npath = [\"beam\"]\n"
        )
    };
    let other = "[[link]]\nname = \"other\"\nrate = \"1Mbit\"\n[link.scheduler]\npolicy = \"fifo\"\n[[link.class]]\nname = \"all\"\n";
    let read = |text: &str| parse(text, Path::new("net.toml")).unwrap().network.unwrap();
    let seed =
        |network: &Network, number: usize| network.links[number].link.beam.as_ref().unwrap().seed;
    let (alone, with_another) = (read(&text("")), read(&text(other)));
    assert_eq!(seed(&alone, 0), seed(&with_another, 0));
    let renamed = text("").replace("\"beam\"", "\"beam2\"");
    assert_ne!(seed(&alone, 0), seed(&read(&renamed), 0));
}
