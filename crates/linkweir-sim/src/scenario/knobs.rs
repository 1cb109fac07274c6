// SPDX-License-Identifier: BSD-3-Clause
//! Which keys of a scenario a page offers to change, and the values of each: what its policies have, and rates of flows.
//!
//! Names, meanings and ranges are those of the policies' own tables and of the declared keys. A range is cut to what the run can
//! tell apart: a rate is at most what the link carries, a time at most the duration, an amount at most what the link carries in
//! this time, and nothing is more than a thousand times as large or as small as the scenario's own value. A key whose every other
//! value the policy refuses, such as the rate of a class that may reserve none, is not offered.

use std::collections::BTreeSet;
use std::ops::Range;

use linkweir_config::keys::Shape;
use linkweir_config::parameters;
use linkweir_config::reader::{Value, Written};
use linkweir_config::signal::Signal;
use linkweir_config::units::Kind;
use linkweir_core::{Param, PolicyInfo, Queue, Unit, View};

use crate::experiment::{Link, Scheduler};

use super::checked::Scenario;
use super::keys;

/// The ends of a range are at most so many times as large or as small as the scenario's value.
const SPAN: u64 = 1000;
/// Bytes of a common packet.
const PACKET_BYTES: u128 = 1500;
const PERCENT_PPM: u64 = 10_000;

/// A key with the values that it may get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// The key as [`changed`](super::changed) takes it, by the names that the resolved form has.
    pub key: String,
    /// The table that it belongs to, such as `class voice`.
    pub table: String,
    /// Its name there.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Values as they are written in TOML, in rising order; one over time comes first.
    pub stops: Vec<String>,
    /// The place of the scenario's own value.
    pub at: usize,
}

/// What the run can tell apart.
#[derive(Clone, Copy)]
struct Reach {
    link_bps: u64,
    duration_ns: u64,
}

impl Reach {
    fn of(link: &Link, duration_ns: u64) -> Reach {
        Reach {
            link_bps: link.nominal_bps,
            duration_ns,
        }
    }

    fn most(self, unit: Unit) -> u64 {
        let carried_bits = u128::from(self.link_bps) * u128::from(self.duration_ns) / 1_000_000_000;
        let most = match unit {
            Unit::Bps => u128::from(self.link_bps),
            Unit::Ns => u128::from(self.duration_ns),
            Unit::Bits => carried_bits,
            Unit::Bytes => carried_bits / 8,
            Unit::Pkts => carried_bits / 8 / PACKET_BYTES,
            Unit::Number | Unit::Ppm | Unit::Choice => u128::from(u64::MAX),
        };
        u64::try_from(most).unwrap_or(u64::MAX).max(1)
    }
}

/// A policy of the core with the values that it has in the scenario.
struct Settings<'s> {
    info: &'static PolicyInfo,
    scheduler: &'s Scheduler,
    queues: Vec<Queue>,
    link_bps: u64,
}

impl Settings<'_> {
    /// Whether the policy takes one of these values of a parameter, its own or that of some classes, with all others as they are.
    fn take_one(&self, param: usize, classes: Option<Range<usize>>, values: &[u64]) -> bool {
        if self.scheduler.across.is_some() {
            return true; // it is asked about the classes of one user at a time
        }
        let mut params = self.scheduler.params.clone();
        let mut qparams = self.scheduler.qparams.clone();
        let view = View {
            now_ns: 0,
            link_bps: self.link_bps,
            queues: &self.queues,
        };
        values.iter().any(|value| {
            match &classes {
                None => params[param] = *value,
                Some(classes) => {
                    let rows = qparams.chunks_mut(self.info.qparams.len());
                    let rows = rows.skip(classes.start).take(classes.len());
                    rows.for_each(|row| row[param] = *value);
                }
            }
            linkweir_core::check(self.info, &view, &params, &qparams).is_ok()
        })
    }
}

impl Scenario {
    /// The keys that a page offers to change: parameters of the policies that have values, and rates of flows.
    #[must_use]
    pub fn knobs(&self) -> Vec<Knob> {
        let mut knobs = Vec::new();
        let duration_ns = self.experiment.duration_ns;
        let mut widest = Reach::of(&self.experiment.link, duration_ns);
        match &self.network {
            None => {
                let queues = (&self.experiment.scheduler, self.experiment.classes.len());
                of_queues(&self.written, ["", ""], widest, queues, &mut knobs);
            }
            Some(network) => {
                widest.link_bps = 0;
                for station in &network.links {
                    let reach = Reach::of(&station.link, duration_ns);
                    widest.link_bps = widest.link_bps.max(reach.link_bps);
                    let tables = self.written.tables(keys::top::LINK.name);
                    let mut named = tables
                        .iter()
                        .filter(|table| text(table, "name") == Some(&station.name));
                    if let Some(table) = named.next() {
                        let key = format!("link.{}.", station.name);
                        let shown = format!("{}: ", station.name);
                        let queues = (&station.scheduler, station.classes.len());
                        of_queues(table, [&key, &shown], reach, queues, &mut knobs);
                    }
                }
            }
        }
        for flow in self.written.tables(keys::top::FLOW.name) {
            knobs.extend(rate_of(flow, widest));
        }
        knobs
    }
}

fn text<'t>(table: &'t Written, key: &str) -> Option<&'t str> {
    match table.get(key) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

/// Knobs of the policy and the classes of a link; `before` is in front of keys, and of names of tables.
fn of_queues(
    above: &Written,
    before: [&str; 2],
    reach: Reach,
    (scheduler, queues): (&Scheduler, usize),
    knobs: &mut Vec<Knob>,
) {
    let [key, shown] = before;
    let Some(info) = scheduler.core() else { return };
    let settings = Settings {
        info,
        scheduler,
        queues: vec![Queue::default(); queues],
        link_bps: reach.link_bps,
    };
    let tables = above.tables(keys::top::SCHEDULER.name);
    if let Some(table) = tables.first() {
        let of_policy = (
            format!("{key}scheduler."),
            format!("{shown}policy {}", info.name),
        );
        for (at, param) in info.params.iter().enumerate() {
            let takes_one = |values: &[u64]| settings.take_one(at, None, values);
            knobs.extend(of_parameter(param, table, &of_policy, reach, takes_one));
        }
    }
    let mut next = 0;
    for table in above.tables(keys::top::CLASS.name) {
        let copies = match table.get(keys::class::COUNT.name) {
            Some(Value::Number(count)) => *count as usize,
            _ => 1,
        };
        let classes = next..next + copies;
        next = classes.end;
        let name = text(table, "name").unwrap_or_default();
        let of_class = (
            format!("{key}class.{name}."),
            format!("{shown}class {name}"),
        );
        for (at, param) in info.qparams.iter().enumerate() {
            let takes_one = |values: &[u64]| settings.take_one(at, Some(classes.clone()), values);
            knobs.extend(of_parameter(param, table, &of_class, reach, takes_one));
        }
    }
}

/// The knob of a parameter; none if the policy takes no other value of it than the scenario's.
fn of_parameter(
    param: &'static Param,
    table: &Written,
    (key, shown): &(String, String),
    reach: Reach,
    takes_one: impl Fn(&[u64]) -> bool,
) -> Option<Knob> {
    let (values, stops, at) = match table.get(param.name)? {
        Value::Text(word) => {
            let at = param.choices.iter().position(|choice| choice == word)?;
            let words = param.choices.iter();
            let stops: Vec<String> = words.map(|word| Value::from(*word).to_string()).collect();
            ((0..stops.len() as u64).collect(), stops, at)
        }
        Value::Whole(value, _) | Value::Ppm(value) | Value::Number(value) => {
            let bounds = (param.min, param.max.min(reach.most(param.unit)));
            let values = match param.unit {
                Unit::Ppm => percents(bounds, *value),
                unit => values(bounds, *value, unit == Unit::Number),
            };
            let written = |value: &u64| parameters::written(param, *value).to_string();
            let at = values.iter().position(|stop| stop == value)?;
            let stops = values.iter().map(written).collect();
            (values, stops, at)
        }
        _ => return None,
    };
    (takes_one(&values[..at]) || takes_one(&values[at + 1..])).then(|| Knob {
        key: format!("{key}{}", param.name),
        table: shown.clone(),
        name: param.name,
        meaning: param.help,
        stops,
        at,
    })
}

/// The rate of a flow, if its kind has one.
fn rate_of(flow: &Written, reach: Reach) -> Option<Knob> {
    let kind = text(flow, keys::flow::KIND.name)?;
    let kind = keys::sources::KINDS
        .iter()
        .find(|known| known.name == kind)?;
    let all = kind.keys.keys();
    let row = all.into_iter().find(|row| row.name() == "rate")?;
    let (Shape::Quantity(Kind::Rate, least, most) | Shape::OverTime(Kind::Rate, least, most)) =
        row.shape()
    else {
        return None;
    };
    let bounds = (least as u64, (most as u64).min(reach.link_bps));
    let written = flow.get(row.name())?;
    let constant = match written {
        Value::OverTime(Signal::Constant(value), _) => Some(*value),
        Value::OverTime(..) => None,
        value => value.amount().map(|(_, value)| value),
    };
    let own = constant.filter(|value| value.fract() == 0.0);
    let values = values(bounds, own.map_or(0, |value| value as u64), false);
    let mut stops: Vec<String> = values
        .iter()
        .map(|value| Value::Whole(*value, Kind::Rate).to_string())
        .collect();
    let at = match own {
        Some(own) => values.iter().position(|value| *value == own as u64)?,
        None => {
            stops.insert(0, written.to_string());
            0
        }
    };
    let name = text(flow, keys::flow::NAME.name)?;
    Some(Knob {
        key: format!("flow.{name}.rate"),
        table: format!("flow {name}"),
        name: row.name(),
        meaning: row.meaning(),
        stops,
        at,
    })
}

/// Steps of 1 % between the bounds, the bounds, and the value.
fn percents((least, most): (u64, u64), value: u64) -> Vec<u64> {
    let whole = (least.div_ceil(PERCENT_PPM)..=most / PERCENT_PPM).map(|step| step * PERCENT_PPM);
    let all: BTreeSet<u64> = whole.chain([least, most, value]).collect();
    all.into_iter().collect()
}

/// Values between the bounds, about 3 % apart, with few digits; the ends of the range, and the value itself.
fn values((least, most): (u64, u64), value: u64, is_bare: bool) -> Vec<u64> {
    let most = most.max(value).max(least);
    let middle = match value {
        0 if is_bare => 1,
        0 => (most / SPAN).max(1),
        value => value,
    };
    let from = least.max(middle / SPAN);
    let to = most.min(middle.saturating_mul(SPAN)).max(from);
    let mut all = BTreeSet::from([from, to, value]);
    if least == 0 {
        all.insert(0);
    }
    let hundredths = (100..200).step_by(5).chain((200..500).step_by(10));
    let hundredths: Vec<u128> = hundredths.chain((500..1000).step_by(25)).collect();
    let decades = (0..20).map(|power| 10_u128.pow(power));
    for decade in decades.take_while(|decade| *decade <= u128::from(to)) {
        let exact = hundredths.iter().filter(|part| *part * decade % 100 == 0);
        let found = exact.map(|part| part * decade / 100);
        let inside = found.filter_map(|found| u64::try_from(found).ok());
        all.extend(inside.filter(|found| (from..=to).contains(found)));
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::{changed, parse};

    const TEXT: &str = r#"
duration = "10s"
[link]
rate = "20Mbit"
[scheduler]
policy = "pss"
[[class]]
name = "af"
level = 0
low_level = 2
rate = "5Mbit"
memory = "2s"
[[class]]
name = "rest"
level = 1
[[flow]]
name = "voice"
class = "af"
kind = "cbr"
rate = "1Mbit"
[[flow]]
name = "rising"
class = "rest"
kind = "cbr"
rate = { lines = [["0s", "1Mbit"], ["9s", "2Mbit"]] }
[[flow]]
name = "all"
class = "rest"
kind = "greedy"
"#;

    fn knob(text: &str, key: &str) -> Option<Knob> {
        let scenario = parse(text, Path::new("one.toml")).unwrap();
        scenario.knobs().into_iter().find(|knob| knob.key == key)
    }

    fn ends(knob: &Knob) -> [&str; 3] {
        [
            &knob.stops[0],
            &knob.stops[knob.at],
            knob.stops.last().unwrap(),
        ]
    }

    #[test]
    fn ranges_are_those_of_the_policys_table_up_to_what_the_run_can_tell_apart() {
        let memory = knob(TEXT, "class.af.memory").unwrap();
        assert_eq!(ends(&memory), ["\"0s\"", "\"2s\"", "\"10s\""]);
        assert_eq!(memory.table, "class af");
        assert!(memory.meaning.contains("starvation"));
        let rate = knob(TEXT, "class.af.rate").unwrap();
        assert_eq!(ends(&rate), ["\"0bit\"", "\"5Mbit\"", "\"20Mbit\""]);
        // core/src/pss.c: burst 2 .. 2^20, of which ten seconds of the link hold 16666
        let burst = knob(TEXT, "class.af.burst").unwrap();
        assert_eq!(ends(&burst), ["\"2p\"", "\"20p\"", "\"16666p\""]);
        // a share, in place of a rate, is below 100 %
        let text = TEXT.replace("rate = \"5Mbit\"", "share = \"25%\"");
        let share = knob(&text, "class.af.share").unwrap();
        assert_eq!(ends(&share), ["\"0%\"", "\"25%\"", "\"99.9999%\""]);
    }

    #[test]
    fn words_are_those_of_the_table_and_what_is_not_given_has_no_knob() {
        let on_empty = knob(TEXT, "scheduler.on_empty").unwrap();
        assert_eq!(on_empty.stops, ["\"keep\"", "\"reset\""]);
        assert_eq!(on_empty.table, "policy pss");
        assert_eq!(knob(TEXT, "class.af.lr"), None);
    }

    #[test]
    fn a_flow_sends_up_to_what_the_link_carries() {
        let voice = knob(TEXT, "flow.voice.rate").unwrap();
        assert_eq!(ends(&voice), ["\"0bit\"", "\"1Mbit\"", "\"20Mbit\""]);
        let rising = knob(TEXT, "flow.rising.rate").unwrap();
        assert!(rising.stops[0].starts_with("{ lines = "));
        assert_eq!(ends(&rising)[1..], [&rising.stops[0], "\"20Mbit\""]);
        assert_eq!(knob(TEXT, "flow.all.rate"), None);
    }

    /// Rules about several keys, which a value within its own range may break: the knob, and how the parser's sentence begins.
    const RULES: [(&str, &str); 5] = [
        (
            "class.af.low_level",
            "low_level must be less urgent than level",
        ),
        ("class.af.low_level", "another queue has this level"),
        (
            "class.af.rate",
            "a queue with a low_level needs a reservation",
        ),
        (
            "class.af.rate",
            "the reservation must be below the link's capacity",
        ),
        ("class.rest.level", "another queue has this level"),
    ];
    #[test]
    fn every_value_is_one_that_the_parser_takes_but_for_rules_about_several_keys() {
        let scenario = parse(TEXT, Path::new("one.toml")).unwrap();
        let mut seen = BTreeSet::new();
        for knob in scenario.knobs() {
            let mut taken = 0;
            for (place, stop) in knob.stops.iter().enumerate() {
                let keys = [(knob.key.clone(), stop.clone())];
                let text = changed(&scenario.resolved_toml, None, &keys).unwrap();
                let Err(fault) = parse(&text, Path::new("one.toml")) else {
                    taken += 1;
                    continue;
                };
                assert_ne!(place, knob.at, "{}: its own value: {fault}", knob.key);
                let broken = RULES
                    .iter()
                    .find(|(key, rule)| *key == knob.key && fault.message.starts_with(rule));
                seen.insert(broken.unwrap_or_else(|| panic!("{} = {stop}: {fault}", knob.key)));
            }
            assert!(taken > 1, "{}: it takes no other value", knob.key);
        }
        assert_eq!(seen, RULES.iter().collect());
    }

    /// AF has a rate and no level between, `rest` has no low level, which a reservation needs.
    #[test]
    fn a_key_of_which_the_policy_takes_no_other_value_has_no_knob() {
        let useless = [
            ("class.af.level", "1", "another queue has this level"),
            ("class.af.level", "3", "low_level must be less urgent"),
            ("class.af.share", "\"1%\"", "rate and share are two names"),
            ("class.rest.rate", "\"1Mbit\"", "only a controlled queue"),
            ("class.rest.share", "\"1%\"", "only a controlled queue"),
        ];
        for (key, value, rule) in useless {
            assert_eq!(knob(TEXT, key), None, "{key}");
            let text = changed(TEXT, None, &[(key.to_owned(), value.to_owned())]).unwrap();
            let fault = parse(&text, Path::new("one.toml")).unwrap_err();
            assert!(fault.message.starts_with(rule), "{key}: {fault}");
        }
        assert!(knob(TEXT, "class.rest.level").is_some());
    }

    #[test]
    fn links_of_a_network_have_knobs_of_their_own() {
        let text = r#"
duration = "10s"
[[link]]
name = "feeder"
rate = "8Mbit"
[link.scheduler]
policy = "drr"
[[link.class]]
name = "all"
[[flow]]
name = "x"
class = "all"
path = ["feeder"]
kind = "poisson"
rate = "1Mbit"
"#;
        let quantum = knob(text, "link.feeder.class.all.quantum").unwrap();
        assert_eq!(quantum.table, "feeder: class all");
        let rate = knob(text, "flow.x.rate").unwrap();
        assert_eq!(rate.stops.last().unwrap(), "\"8Mbit\"");
    }

    #[test]
    fn values_are_few_digits_between_the_ends() {
        assert_eq!(values((0, 10), 1, true), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let found = values((0, 400_000_000_000), 10_000_000, false);
        assert!(found.contains(&12_500_000) && found.contains(&13_500_000));
        assert_eq!(found[..2], [0, 10_000]);
        assert_eq!(found.last(), Some(&10_000_000_000));
        assert_eq!(values((5, 5), 5, true), [5]);
        assert!(values((0, 2000), 1_234, true).binary_search(&1234).is_ok());
    }
}
