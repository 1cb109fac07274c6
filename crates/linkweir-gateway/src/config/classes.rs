// SPDX-License-Identifier: BSD-3-Clause
//! `[[class]]`: queues, their limits, the policy's parameters of each, and which packets go there.

use std::ops::RangeInclusive;

use linkweir_config::reader::{Entry, Section};
use linkweir_config::{parameters, queue, Fault};
use linkweir_core::PolicyInfo;

use super::names::{nets, word};
use linkweir_plane::classify::{self, Rule, Rules};
use linkweir_plane::setup::Class;

/// Most packets a queue may hold.
const LIMIT_PKTS: u64 = 1_000_000;
/// Most bytes a queue may hold.
const LIMIT_BYTES: u64 = 1_000_000_000;
/// Packets a queue may hold by default.
const DEFAULT_PKTS: u64 = 1000;
/// How long packets of a class of voice may wait by default, ns: a call can use nothing older.
const VOICE_AGE_NS: u64 = 200_000_000;
/// The code point of voice, expedited forwarding (RFC 3246).
const EF: u32 = 46;
/// Most rules of a class, and most values of one key of a rule.
const RULES: usize = 1024;

/// Reads all classes; also returns the rows of policy parameters.
pub(super) fn read(
    sections: &mut [Section<'_, '_>],
    info: &'static PolicyInfo,
) -> Result<(Vec<Class>, Rules, Vec<u64>), Fault> {
    let mut classes: Vec<Class> = Vec::new();
    let mut qparams = Vec::new();
    let mut rules: Vec<Rule> = Vec::new();
    let mut rest = None;
    for (at, section) in sections.iter_mut().enumerate() {
        let entry = section.need("name", "\"ef\"")?;
        let name = word(&entry)?;
        if classes.iter().any(|class| class.name == name) {
            return Err(entry.fault("two classes have this name; rename one"));
        }
        for param in &info.qparams {
            qparams.push(parameters::read(section, param)?);
        }
        match section.find("match") {
            Some(entry) => {
                for item in entry.list(RULES)? {
                    let rule = rule(&item, at)?;
                    if let Some(earlier) = rules.iter().find(|earlier| covers(earlier, &rule)) {
                        let taken = classes
                            .get(earlier.class)
                            .map_or(name.as_str(), |c| &c.name);
                        return Err(item.fault(format!(
                            "matches no packet: class \"{taken}\" comes before and takes all of these; leave this out or put it first"
                        )));
                    }
                    rules.push(rule);
                }
            }
            None => {
                if let Some(earlier) = rest.and_then(|at: usize| classes.get(at)) {
                    return Err(section.fault_at(
                        "match",
                        format!(
                            "is missing, and only one class takes what no other does, \"{}\"; write match = [{{ dscp = \"EF\" }}]",
                            earlier.name
                        ),
                    ));
                }
                rest = Some(at);
            }
        }
        let is_voice = rules
            .iter()
            .any(|rule| rule.class == at && rule.dscp.is_some_and(|points| points >> EF & 1 == 1));
        let bounds = queue::Bounds {
            pkts: LIMIT_PKTS,
            bytes: LIMIT_BYTES,
            default_pkts: DEFAULT_PKTS,
            least_bytes: 0,
            default_age_ns: is_voice.then_some(VOICE_AGE_NS),
        };
        let limit = queue::read(section, bounds)?;
        classes.push(Class { name, limit });
        let limits = classes.iter().map(|class| &class.limit);
        queue::shares(limits, |message| section.fault_at("least", message))?;
    }
    let Some(rest) = rest else {
        let last = &sections[sections.len() - 1];
        return Err(last.fault_at(
            "match",
            "one class must take what no other does; leave match out there",
        ));
    };
    Ok((classes, Rules { rules, rest }, qparams))
}

/// Whether every packet that `later` matches is matched by `earlier`. This is only found where both rules have code points
/// alone.
fn covers(earlier: &Rule, later: &Rule) -> bool {
    let dscp_alone = Rule {
        class: earlier.class,
        dscp: earlier.dscp,
        ..Rule::default()
    };
    let inside = match (earlier.dscp, later.dscp) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(earlier), Some(later)) => later & !earlier == 0,
    };
    (*earlier == dscp_alone && inside)
        || *earlier
            == Rule {
                class: earlier.class,
                ..later.clone()
            }
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
    if let Some(entry) = table.find("dscp") {
        let mut set = 0_u64;
        for entry in one_or_more(&entry)? {
            set |= 1 << code_point(&entry)?;
        }
        rule.dscp = Some(set);
    }
    if let Some(entry) = table.find("protocol") {
        for entry in one_or_more(&entry)? {
            rule.protocols.extend(protocol(&entry)?);
        }
    }
    for (key, ranges) in [
        ("port", &mut rule.ports),
        ("source_port", &mut rule.source_ports),
        ("destination_port", &mut rule.destination_ports),
    ] {
        if let Some(entry) = table.find(key) {
            for entry in one_or_more(&entry)? {
                ranges.push(port(&entry)?);
            }
        }
    }
    for (key, list) in [
        ("address", &mut rule.addresses),
        ("source", &mut rule.sources),
        ("destination", &mut rule.destinations),
    ] {
        if let Some(entry) = table.find(key) {
            *list = nets(&entry)?;
        }
    }
    // Before the test for an empty rule, so that a misspelt key is named and not reported as "is empty".
    table.finish()?;
    if rule
        == (Rule {
            class,
            ..Rule::default()
        })
    {
        return Err(entry.fault(
            "is empty and would take everything; leave match out in the class that takes the rest",
        ));
    }
    Ok(rule)
}

fn one_or_more<'s, 'i>(entry: &Entry<'s, 'i>) -> Result<Vec<Entry<'s, 'i>>, Fault> {
    if entry.is_list() {
        entry.list(RULES)
    } else {
        Ok(vec![entry.clone()])
    }
}

/// A code point by name or number.
pub(super) fn code_point(entry: &Entry<'_, '_>) -> Result<u8, Fault> {
    if let Ok(text) = entry.text() {
        return classify::dscp(text).ok_or_else(|| {
            entry.fault(format!("must be a code point: {}", classify::CODE_POINTS))
        });
    }
    entry.number((0, 63)).map(|number| number as u8)
}

fn protocol(entry: &Entry<'_, '_>) -> Result<Vec<u8>, Fault> {
    if let Ok(text) = entry.text() {
        let known = classify::PROTOCOLS;
        return match known.iter().find(|(name, _)| *name == text) {
            Some((_, numbers)) => Ok(numbers.to_vec()),
            None => {
                let names = known.map(|(name, _)| name).join(", ");
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
