// SPDX-License-Identifier: BSD-3-Clause
//! The policy, its parameters and the classes. Names, units, ranges and defaults all come from the core's tables.

use std::collections::BTreeMap;

use linkweir_config::matching::{self, Rule};
use linkweir_config::parameters::Nominal;
use linkweir_config::reader::{Section, Value};
use linkweir_config::units::{self, Kind};
use linkweir_config::{parameters, queue, Fault};
use linkweir_core::{Declaration, PolicyInfo, View};

use crate::experiment::{Brought, Class, Link, Scheduler};
use crate::policies::{Own, OWN};

use super::brought;
use super::inputs::Input;
use super::keys::class::{ACROSS_USERS, COUNT, NAME, POLICY, QUEUE, USER};
use super::limits;
use super::overrides::Overrides;
use super::users;

/// A policy: one of the core with its tables, one of the simulator's own, or one that the user brings along.
pub(super) struct Chosen {
    pub(super) name: &'static str,
    info: Option<&'static PolicyInfo>,
    own: Option<Own>,
    pub(super) brought: Option<Brought>,
    /// Whether there is a policy across users, too.
    across: bool,
}

impl Chosen {
    /// The core's declaration, if it is one of the core.
    pub(super) fn of_the_core(&self) -> Option<&'static PolicyInfo> {
        self.info
    }

    fn declaration(&self) -> Option<&'static Declaration> {
        let brought = self.brought.as_ref().map(Brought::declaration);
        brought.or(self.info.map(|info| &**info))
    }
}

/// How long policies of the simulator let packets wait, ns.
const TIMEOUTS_NS: (u64, u64) = (1_000_000, 60_000_000_000);
/// Bytes that a limit by time leaves at any capacity: two packets of a common size.
const LEAST_BYTES: u64 = 3000;

/// Reads `[scheduler]` up to the policy's own parameters.
pub(super) fn policy(
    section: &mut Section<'_, '_>,
    overrides: &Overrides,
    inputs: &mut Vec<Input>,
    notes: &mut Vec<String>,
) -> Result<(Chosen, Vec<u64>), Fault> {
    let chosen = choose(section, overrides, inputs, notes)?;
    if let Some(name) = chosen.own.and_then(Own::timeout_parameter) {
        let timeout_ns = section.whole(name, Kind::Time, TIMEOUTS_NS, 100_000_000)?;
        return Ok((chosen, vec![timeout_ns]));
    }
    let params = chosen
        .declaration()
        .map_or(&[][..], |declared| &declared.params)
        .iter()
        .map(|param| parameters::read(section, param))
        .collect::<Result<_, _>>()?;
    Ok((chosen, params))
}

fn choose(
    section: &mut Section<'_, '_>,
    overrides: &Overrides,
    inputs: &mut Vec<Input>,
    notes: &mut Vec<String>,
) -> Result<Chosen, Fault> {
    let core = linkweir_core::policies();
    let own = OWN.iter().map(|(name, _)| *name);
    let names: Vec<&'static str> = core.iter().map(|p| p.name).chain(own).collect();
    let across = section.stray(ACROSS_USERS.name).is_some();
    let entry = section.entry_of(&POLICY)?;
    if let Some(table) = entry.table() {
        let (brought, written) = brought::read(&entry, table, overrides, inputs, notes)?;
        section.write(POLICY.name, written);
        return Ok(Chosen {
            name: brought.declaration().name,
            info: None,
            own: None,
            brought: Some(brought),
            across,
        });
    }
    // Those that only reproduce papers are named where these are reproduced, not to everyone.
    let at = entry.choice_of(&names, core.len())?;
    let own = at.checked_sub(core.len()).and_then(|at| OWN.get(at));
    section.write(POLICY.name, names[at]);
    Ok(Chosen {
        name: names[at],
        info: core.get(at),
        own: own.map(|(_, own)| *own),
        brought: None,
        across,
    })
}

/// Reads one `[[class]]`: its name, its classes, copies counted, and the row of policy parameters they have in common.
/// `params` are those of the scheduler.
pub(super) fn class<'s>(
    section: &mut Section<'s, '_>,
    chosen: &Chosen,
    params: &[u64],
    matched: &mut Matched<'s>,
) -> Result<(String, Vec<Class>, Vec<u64>), Fault> {
    let entry = section.entry_of(&NAME)?;
    let name = entry.text()?.to_string();
    if name.is_empty() {
        return Err(entry.fault("must not be empty"));
    }
    section.write(NAME.name, name.as_str());
    let count = section.take(&COUNT)?;
    let users_apart = chosen.across.then(|| section.stray(USER.name)).flatten();
    let user = users_apart.and_then(|entry| entry.text().ok());
    matched.read(section, &name, count, user)?;

    let defaults = queue::Defaults {
        least_bytes: LEAST_BYTES,
        age_ns: None,
    };
    let limit = queue::read(section, &QUEUE, defaults)?;
    let nests = chosen.info.is_some_and(PolicyInfo::nests);
    let flows = queue::isolation(section, &QUEUE, chosen.name, nests)?;
    let user = users::name(section)?;
    let coded = users::coded(section)?;
    let row = match (chosen.own, params) {
        (Some(Own::UbmtLike), [target_ns]) => targets(section, *target_ns)?,
        _ => chosen
            .declaration()
            .map_or(&[][..], |declared| &declared.qparams)
            .iter()
            .map(|param| parameters::read(section, param))
            .collect::<Result<_, _>>()?,
    };
    let classes = (1..=count)
        .map(|copy| Class {
            name: numbered(&name, copy, count),
            limit_pkts: limit.pkts,
            limit_bytes: limit.bytes,
            limit_time: limit.time,
            max_age_ns: limit.max_age_ns,
            full: limit.full,
            least_ppm: limit.least_ppm,
            flows,
            user: user.as_ref().map(|user| numbered(user, copy, count)),
            coded,
        })
        .collect();
    Ok((name, classes, row))
}

/// The name of a copy.
fn numbered(name: &str, copy: u64, count: u64) -> String {
    if count == 1 {
        name.to_owned()
    } else {
        format!("{name}-{copy}")
    }
}

/// Which packets belong to the classes so far. Flows name their classes, so the simulator only keeps it, for exports.
/// Behind a policy across users, a packet's user is known, and only the classes of one user compete for it.
#[derive(Default)]
pub(super) struct Matched<'i> {
    of_users: BTreeMap<Option<&'i str>, Known>,
}

#[derive(Default)]
struct Known {
    names: Vec<String>,
    rules: Vec<Rule>,
    /// The classes that take what no rule matches.
    rest: Vec<usize>,
}

impl<'i> Matched<'i> {
    /// The class of packets of which only the code point is known: of the first rule that asks for nothing else or, without
    /// one, of the only class that takes the rest. Behind a policy across users there is none, as the user is not known.
    pub(super) fn class_of(&self, code_point: u8) -> Option<&str> {
        let alone = self.of_users.len() == 1;
        let known = self.of_users.get(&None).filter(|_| alone)?;
        let mut rules: Vec<&Rule> = known.rules.iter().collect();
        rules.sort_by_key(|rule| rule.order);
        let takes = |rule: &&&Rule| rule.names(code_point) && rule.is_of_code_points();
        let matched = rules.iter().find(takes).map(|rule| rule.class);
        let only = match known.rest[..] {
            [only] => Some(only),
            _ => None,
        };
        let class = matched.or(only)?;
        known.names.get(class).map(String::as_str)
    }

    fn read(
        &mut self,
        section: &mut Section<'_, '_>,
        name: &str,
        count: u64,
        user: Option<&'i str>,
    ) -> Result<(), Fault> {
        let known = self.of_users.entry(user).or_default();
        let at = known.names.len();
        known.names.push(name.to_string());
        let names: Vec<&str> = known.names.iter().map(String::as_str).collect();
        let own = matching::read(section, at, &known.rules, &names)?;
        if own.rest {
            known.rest.push(at);
        }
        if own.rest && own.rules.is_empty() {
            return Ok(());
        }
        let addressed = |rule: &Rule| {
            [&rule.addresses, &rule.sources, &rule.destinations]
                .iter()
                .any(|nets| !nets.is_empty())
        };
        if count > 1 && user.is_none() && !own.rules.iter().all(addressed) {
            let message = "must have address, source or destination in each rule, as the class has copies, of which each takes the next address";
            return Err(section.fault_at("match", message));
        }
        known.rules.extend(own.rules);
        Ok(())
    }
}

/// A class's target under `ubmt_like`, see [`Own::timeout_parameter`].
fn targets(section: &mut Section<'_, '_>, default_ns: u64) -> Result<Vec<u64>, Fault> {
    let target = section.find("target");
    let target_ns = match &target {
        Some(entry) => entry.whole(Kind::Time, (0, TIMEOUTS_NS.1))?,
        None => default_ns,
    };
    if let Some(entry) = target.filter(|_| (1..TIMEOUTS_NS.0).contains(&target_ns)) {
        return Err(entry.fault("must be 0s, which makes the class elastic, or 1ms .. 60s"));
    }
    section.write("target", Value::Whole(target_ns, Kind::Time));
    let rate_bps = match section.find("target_rate") {
        Some(entry) if target_ns > 0 => {
            return Err(entry.fault("is only for an elastic class: target = \"0s\""));
        }
        Some(entry) => {
            let bps = entry.whole(Kind::Rate, (limits::NOMINAL_MIN_BPS, limits::RATE_BPS))?;
            section.write("target_rate", Value::Whole(bps, Kind::Rate));
            bps
        }
        None => 0,
    };
    Ok(vec![target_ns, rate_bps])
}

/// The policy's own parameter that says how many packets all queues hold together, and its value, if it has one.
pub(super) fn shared_limit(chosen: &Chosen, scheduler: &Scheduler) -> Option<(&'static str, u64)> {
    let declared = chosen.declaration()?;
    let at = declared.shared_limit?;
    Some((declared.params[at].name, scheduler.params[at]))
}

/// Asks the core whether the values fit together.
pub(super) fn check(
    chosen: &Chosen,
    scheduler: &Scheduler,
    (classes, link): (&[Class], &Link),
    section: &Section<'_, '_>,
    places: &[&Section<'_, '_>],
) -> Result<(), Fault> {
    let nominal = &nominal(link);
    let Scheduler {
        params, qparams, ..
    } = scheduler;
    if let Some(Brought(maker)) = &chosen.brought {
        let check = |view: &View<'_>| maker.check(view, params, qparams);
        return parameters::check_with(check, chosen.name, nominal, section, places);
    }
    let Some(info) = chosen.info else {
        return if link.satellite.is_some() || !chosen.own.is_some_and(Own::needs_satellite) {
            Ok(())
        } else {
            let message = "knows its users by a satellite's channel: add a table [link.satellite]";
            Err(section.fault_at(POLICY.name, message))
        };
    };
    if scheduler.across.is_some() {
        return users::check_inside(info, scheduler, (classes, link), section, places);
    }
    parameters::check(info, nominal, params, qparams, section, places)
}

/// The capacity that the policy is given first.
pub(super) fn nominal(link: &Link) -> Nominal {
    let bps = link.nominal_bps;
    let Some(bond) = &link.bond else {
        return Nominal::of_link(bps);
    };
    let shown = |bps| units::show_whole(bps, Kind::Rate);
    let each = bond.members.iter();
    let each = each.map(|member| format!("{} {}", member.name, shown(member.link.nominal_bps)));
    Nominal {
        bps,
        told: format!(
            "the nominal rates of its links are together {}: {}",
            shown(bps),
            each.collect::<Vec<_>>().join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::class::CLASS;
    use super::*;

    #[test]
    fn no_policy_takes_a_key_of_ours() {
        for info in linkweir_core::policies() {
            for param in &info.params {
                assert_ne!(param.name, POLICY.name, "{}", info.name);
            }
            for param in &info.qparams {
                assert!(
                    CLASS.keys().iter().all(|key| key.name() != param.name),
                    "{}: {}",
                    info.name,
                    param.name
                );
            }
        }
    }
}
