// SPDX-License-Identifier: BSD-3-Clause
//! Which packets belong to a class: the key `match` of a class, a list of rules, in gateways and in scenarios.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;

use crate::keys::gateway::{
    DESTINATION, DESTINATION_PORT, MATCH, ORDER, PORT, PROTOCOL, RULE_ADDRESS, RULE_DSCP, SOURCE,
    SOURCE_PORT,
};
use crate::reader::{Entry, Section, Value, Written};
use crate::Fault;

/// Most rules of a class, and most values of one key of a rule.
const MOST: usize = 1024;

/// The conditions of a rule. An empty one matches every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Class of the packets that match.
    pub class: usize,
    /// Rules with a smaller order are tried first, whichever class they belong to.
    pub order: u16,
    /// Code points, as a set of bits.
    pub dscp: Option<u64>,
    /// Protocols above IP.
    pub protocols: Vec<u8>,
    /// Source or destination ports.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Source ports.
    pub source_ports: Vec<RangeInclusive<u16>>,
    /// Destination ports.
    pub destination_ports: Vec<RangeInclusive<u16>>,
    /// Source or destination addresses.
    pub addresses: Vec<IpNet>,
    /// Source addresses.
    pub sources: Vec<IpNet>,
    /// Destination addresses.
    pub destinations: Vec<IpNet>,
}

impl Rule {
    /// Whether it names one of these code points.
    #[must_use]
    pub fn names(&self, code_point: u8) -> bool {
        self.dscp.is_some_and(|set| set >> code_point & 1 == 1)
    }

    /// Whether code points are its only condition.
    #[must_use]
    pub fn is_of_code_points(&self) -> bool {
        *self == self.dscp_alone(self.dscp)
    }

    /// Whether it has no condition; its order is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == self.dscp_alone(None)
    }

    /// Whether a rule that is written later takes no packet because of this one, or all of this one's.
    #[must_use]
    pub fn excludes(&self, later: &Rule) -> bool {
        self.hides(later) || later.precedes(self)
    }

    /// Whether it is tried before a rule that is written later, and takes all its packets.
    fn hides(&self, later: &Rule) -> bool {
        self.order <= later.order && self.covers(later)
    }

    /// Whether it is tried before a rule that is written earlier, and takes all its packets.
    fn precedes(&self, earlier: &Rule) -> bool {
        self.order < earlier.order && self.covers(earlier)
    }

    fn dscp_alone(&self, dscp: Option<u64>) -> Rule {
        Rule {
            class: self.class,
            order: self.order,
            dscp,
            ..Rule::default()
        }
    }

    /// Whether it matches every packet that `later` matches. This is only found where both rules are equal, or where this
    /// one has code points alone.
    fn covers(&self, later: &Rule) -> bool {
        let inside = match (self.dscp, later.dscp) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(later)) => later & !own == 0,
        };
        let equal = Rule {
            class: self.class,
            order: self.order,
            ..later.clone()
        };
        (self.is_of_code_points() && inside) || *self == equal
    }
}

/// Rules in order, and the class of packets that match none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The rules. The first that matches counts.
    pub rules: Vec<Rule>,
    /// Class of all other packets.
    pub rest: usize,
}

impl Rules {
    /// Rules as the file has them, class by class, and the class of all other packets.
    #[must_use]
    pub fn new(mut rules: Vec<Rule>, rest: usize) -> Rules {
        rules.sort_by_key(|rule| rule.order);
        Rules { rules, rest }
    }
}

/// Which packets belong to one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Its rules.
    pub rules: Vec<Rule>,
    /// Whether it also takes what no rule of any class matches: it has no `match`, or its last rule is empty.
    pub rest: bool,
}

/// Reads the key `match` of class number `class`. `earlier` are the rules of the classes before, and `names` their names
/// and that of this one.
///
/// # Errors
/// A rule that is not allowed, or that matches no packet because an earlier one takes them all.
pub fn read(
    section: &mut Section<'_, '_>,
    class: usize,
    earlier: &[Rule],
    names: &[&str],
) -> Result<Own, Fault> {
    let Some(entry) = section.find(MATCH.name) else {
        return Ok(Own {
            rules: Vec::new(),
            rest: true,
        });
    };
    let mut own = Own::default();
    let items = if entry.is_empty_list() {
        Vec::new()
    } else {
        entry.list(MOST)?
    };
    for (at, item) in items.iter().enumerate() {
        let rule = rule(item, class)?;
        if rule.is_empty() {
            if at + 1 < items.len() || rule.order > 0 {
                return Err(item.fault(
                    "is empty and would take everything; write {} as the last rule of the class that takes the rest",
                ));
            }
            own.rest = true;
            break;
        }
        for one in earlier.iter().chain(&own.rules) {
            let name = names.get(one.class).unwrap_or(&"");
            if one.hides(&rule) {
                return Err(item.fault(format!(
                    "matches no packet: class \"{name}\" comes before and takes all of these; leave this out or put it first"
                )));
            }
            if rule.precedes(one) {
                return Err(item.fault(format!(
                    "takes all packets of a rule of class \"{name}\", which comes later by its order; leave that one out"
                )));
            }
        }
        own.rules.push(rule);
    }
    section.write(MATCH.name, written(&own));
    Ok(own)
}

fn rule(entry: &Entry<'_, '_>, class: usize) -> Result<Rule, Fault> {
    let Some(mut table) = entry.table() else {
        return Err(entry.fault(
            "must be a table like { dscp = \"EF\" } or { protocol = \"udp\", port = 5060 }",
        ));
    };
    let mut rule = Rule {
        class,
        ..Rule::default()
    };
    if let Some(entry) = table.find(RULE_DSCP.name) {
        let mut set = 0_u64;
        for entry in one_or_more(&entry)? {
            set |= 1 << code_point(&entry)?;
        }
        rule.dscp = Some(set);
    }
    if let Some(entry) = table.find(PROTOCOL.name) {
        for entry in one_or_more(&entry)? {
            rule.protocols.extend(protocol(&entry)?);
        }
    }
    for (key, ranges) in [
        (PORT.name, &mut rule.ports),
        (SOURCE_PORT.name, &mut rule.source_ports),
        (DESTINATION_PORT.name, &mut rule.destination_ports),
    ] {
        if let Some(entry) = table.find(key) {
            for entry in one_or_more(&entry)? {
                ranges.push(port(&entry)?);
            }
        }
    }
    for (key, list) in [
        (RULE_ADDRESS.name, &mut rule.addresses),
        (SOURCE.name, &mut rule.sources),
        (DESTINATION.name, &mut rule.destinations),
    ] {
        if let Some(entry) = table.find(key) {
            *list = nets(&entry)?;
        }
    }
    rule.order = table.given(&ORDER)?.unwrap_or(0) as u16;
    // Before the test for an empty rule, so that a misspelt key is named and not reported as "is empty".
    table.finish()?;
    Ok(rule)
}

fn one_or_more<'s, 'i>(entry: &Entry<'s, 'i>) -> Result<Vec<Entry<'s, 'i>>, Fault> {
    if entry.is_list() {
        entry.list(MOST)
    } else {
        Ok(vec![entry.clone()])
    }
}

/// A code point by name or number.
///
/// # Errors
/// Something else.
pub fn code_point(entry: &Entry<'_, '_>) -> Result<u8, Fault> {
    if let Ok(text) = entry.text() {
        return dscp(text)
            .ok_or_else(|| entry.fault(format!("must be a code point: {CODE_POINTS}")));
    }
    entry.number((0, 63)).map(|number| number as u8)
}

/// Addresses with prefix lengths: one, or a list.
///
/// # Errors
/// Something else.
pub fn nets(entry: &Entry<'_, '_>) -> Result<Vec<IpNet>, Fault> {
    let net = |entry: &Entry<'_, '_>| {
        let text = entry.text()?;
        let net = text.parse::<IpNet>();
        net.or_else(|_| text.parse().map(|address: IpAddr| address.into()))
            .map_err(|_| {
                entry.fault(
                    "must be an address with a prefix length, like \"10.0.0.0/8\" or \"fd00::/8\"",
                )
            })
    };
    one_or_more(entry)?.iter().map(net).collect()
}

fn protocol(entry: &Entry<'_, '_>) -> Result<Vec<u8>, Fault> {
    if let Ok(text) = entry.text() {
        return match PROTOCOLS.iter().find(|(name, _)| *name == text) {
            Some((_, numbers)) => Ok(numbers.to_vec()),
            None => {
                let names = PROTOCOLS.map(|(name, _)| name).join(", ");
                Err(entry.fault(format!("must be one of {names}, or a number 0 .. 255")))
            }
        };
    }
    entry.number((0, 255)).map(|number| vec![number as u8])
}

fn port(entry: &Entry<'_, '_>) -> Result<RangeInclusive<u16>, Fault> {
    let Ok(text) = entry.text() else {
        return entry
            .number((1, 65_535))
            .map(|port| port as u16..=port as u16);
    };
    let range = text.split_once('-').and_then(|(first, last)| {
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (0 < first && first <= last).then_some(first..=last)
    });
    range.ok_or_else(|| entry.fault("must be a port 1 .. 65535 or a range like \"16384-32767\""))
}

/// What [`dscp`] knows, in words.
const CODE_POINTS: &str = "EF, VOICE-ADMIT, AF11 .. AF43, CS0 .. CS7, LE, DF or 0 .. 63";

/// A code point by name (RFC 2474, 2597, 3246, 5865, 8622) or number.
fn dscp(name: &str) -> Option<u8> {
    if let Ok(number) = name.parse::<u8>() {
        return (number < 64).then_some(number);
    }
    let name = name.to_ascii_uppercase();
    let digit = |at: usize| name.as_bytes().get(at).map(|b| b.wrapping_sub(b'0'));
    match (name.as_str(), name.len()) {
        ("EF", _) => Some(46),
        ("VOICE-ADMIT" | "VA", _) => Some(44),
        ("LE", _) => Some(1),
        ("DF" | "BE", _) => Some(0),
        (_, 3) if name.starts_with("CS") => digit(2).filter(|x| *x < 8).map(|x| 8 * x),
        (_, 4) if name.starts_with("AF") => match (digit(2)?, digit(3)?) {
            (x @ 1..=4, y @ 1..=3) => Some(8 * x + 2 * y),
            _ => None,
        },
        _ => None,
    }
}

/// A code point as it is written: by name if it has one.
#[must_use]
pub fn written_code_point(code_point: u8) -> Value {
    match (code_point >> 3, code_point & 7) {
        _ if code_point == 46 => "EF".into(),
        _ if code_point == 44 => "VOICE-ADMIT".into(),
        _ if code_point == 1 => "LE".into(),
        _ if code_point == 0 => "DF".into(),
        (class, 0) => format!("CS{class}").into(),
        (class @ 1..=4, drop @ (2 | 4 | 6)) => format!("AF{class}{}", drop / 2).into(),
        _ => Value::Number(code_point.into()),
    }
}

/// Protocols by name; `icmp` is that of either version of IP.
const PROTOCOLS: [(&str, &[u8]); 6] = [
    ("tcp", &[6]),
    ("udp", &[17]),
    ("icmp", &[1, 58]),
    ("sctp", &[132]),
    ("esp", &[50]),
    ("gre", &[47]),
];

/// The value of the key `match`.
#[must_use]
pub fn written(own: &Own) -> Value {
    let mut rules: Vec<Value> = own.rules.iter().map(written_rule).collect();
    if own.rest {
        rules.push(Value::Inline(Written::default()));
    }
    Value::List(rules)
}

fn written_rule(rule: &Rule) -> Value {
    let mut table = Written::default();
    let mut key = |name: &str, mut values: Vec<Value>| {
        let value = if values.len() > 1 {
            Some(Value::List(values))
        } else {
            values.pop()
        };
        if let Some(value) = value {
            table.write(name, value);
        }
    };
    let points = (0..64).filter(|point| rule.names(*point));
    key("dscp", points.map(written_code_point).collect());
    key("protocol", written_protocols(&rule.protocols));
    for (name, ranges) in [
        ("port", &rule.ports),
        ("source_port", &rule.source_ports),
        ("destination_port", &rule.destination_ports),
    ] {
        key(name, ranges.iter().map(written_port).collect());
    }
    for (name, nets) in [
        ("address", &rule.addresses),
        ("source", &rule.sources),
        ("destination", &rule.destinations),
    ] {
        key(
            name,
            nets.iter().map(|net| net.to_string().into()).collect(),
        );
    }
    if rule.order > 0 {
        key("order", vec![Value::Number(rule.order.into())]);
    }
    Value::Inline(table)
}

fn written_protocols(numbers: &[u8]) -> Vec<Value> {
    let mut written = Vec::new();
    let mut rest = numbers;
    while let Some((number, others)) = rest.split_first() {
        let named = PROTOCOLS.iter().find(|(_, all)| rest.starts_with(all));
        let (value, taken) = named.map_or_else(
            || (Value::Number((*number).into()), 1),
            |(name, all)| (Value::from(*name), all.len()),
        );
        written.push(value);
        rest = others.get(taken - 1..).unwrap_or_default();
    }
    written
}

fn written_port(range: &RangeInclusive<u16>) -> Value {
    let (first, last) = (range.start(), range.end());
    if first == last {
        Value::Number((*first).into())
    } else {
        format!("{first}-{last}").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Source;

    fn of(text: &str) -> Result<(Own, String), Fault> {
        let source = Source::new(text, None);
        let document = source.parse(10_000)?;
        let mut section = Section::new(&source, document.get_ref(), String::new(), 0);
        let own = read(&mut section, 0, &[], &["voice"])?;
        Ok((own, section.finish()?.toml()))
    }

    #[test]
    fn rules_are_read_back_as_they_are_written() {
        for text in [
            r#"match = [{ dscp = "EF" }]"#,
            r#"match = [{ dscp = ["DF", "LE", "CS1", "AF11", "AF43", "VOICE-ADMIT", "EF", 63] }]"#,
            r#"match = [{ protocol = ["tcp", "icmp", 200], port = [1, "5060-5061"] }]"#,
            r#"match = [{ source_port = 7, destination_port = "1-65535" }, { address = "10.0.0.0/8" }]"#,
            r#"match = [{ source = ["fd00::/8", "192.0.2.1/32"], destination = "::/0" }]"#,
            r#"match = [{ dscp = "EF", order = 65535 }]"#,
            r#"match = [{ dscp = "EF" }, {}]"#,
            "match = [{}]",
            "match = []",
        ] {
            let (rules, written) = of(text).unwrap();
            assert_eq!(written.trim_end(), text);
            assert_eq!(of(&written).unwrap().0, rules);
        }
        let (_, written) =
            of(r#"match = [{ dscp = "0", protocol = 58, address = "fd00::1" }]"#).unwrap();
        let shortest = r#"match = [{ dscp = "DF", protocol = 58, address = "fd00::1/128" }]"#;
        assert_eq!(written.trim_end(), shortest);
    }

    #[test]
    fn each_code_point_is_read_as_it_is_shown() {
        for point in 0..64 {
            let shown = written_code_point(point).to_string();
            assert_eq!(dscp(shown.trim_matches('"')), Some(point), "{shown}");
        }
    }

    #[test]
    fn a_rule_that_takes_nothing_is_refused() {
        let fault =
            of(r#"match = [{ dscp = ["EF", "LE"] }, { dscp = "LE", port = 1 }]"#).unwrap_err();
        assert!(fault.to_string().starts_with("match[1] = "), "{fault}");
        assert!(
            fault.to_string().contains("class \"voice\" comes before"),
            "{fault}"
        );
    }

    #[test]
    fn a_smaller_order_comes_first() {
        let (own, _) = of(
            r#"match = [{ dscp = "EF", port = 1, order = 1 }, { dscp = "EF", order = 2 }, { dscp = "LE" }]"#,
        )
        .unwrap();
        let sorted: Vec<u16> = Rules::new(own.rules, 1)
            .rules
            .iter()
            .map(|rule| rule.order)
            .collect();
        assert_eq!(sorted, [0, 1, 2]);
        for (text, said) in [
            (
                r#"[{ dscp = "EF", order = 1 }, { dscp = "EF", port = 1, order = 2 }]"#,
                "match[1] = ",
            ),
            (
                r#"[{ dscp = "EF", port = 1, order = 2 }, { dscp = "EF", order = 1 }]"#,
                "takes all packets of a rule",
            ),
            (r#"[{ dscp = "EF", order = 65536 }]"#, "0 .. 65535"),
            (r#"[{ order = 1 }]"#, "is empty"),
            (r#"[{}, { dscp = "EF" }]"#, "is empty"),
        ] {
            let fault = of(&format!("match = {text}")).unwrap_err().to_string();
            assert!(fault.contains(said), "{fault}");
        }
    }

    #[test]
    fn code_points_have_names() {
        for (name, value) in [
            ("EF", 46),
            ("ef", 46),
            ("VOICE-ADMIT", 44),
            ("AF11", 10),
            ("AF43", 38),
            ("CS0", 0),
            ("CS7", 56),
            ("LE", 1),
            ("DF", 0),
            ("63", 63),
        ] {
            assert_eq!(dscp(name), Some(value), "{name}");
        }
        for name in [
            "",
            "AF14",
            "AF50",
            "CS8",
            "64",
            "-1",
            "AF",
            "EFX",
            "\u{e9}\u{e9}",
        ] {
            assert_eq!(dscp(name), None, "{name}");
        }
    }
}
