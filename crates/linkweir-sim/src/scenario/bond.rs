// SPDX-License-Identifier: BSD-3-Clause
//! Bonds: the tables `[[bond]]` over several `[[link]]`s.

use std::collections::BTreeSet;

use linkweir_config::bond::USES;
use linkweir_config::reader::{nearest, quote, Entry, Section, Value, Written};
use linkweir_config::units::{self, Kind};
use linkweir_config::values;
use linkweir_config::Fault;
use linkweir_core as core;
use linkweir_core::MOST_PATHS;

use crate::experiment::{Bond, Bonded, Capacity, Class, Link, Member, Paths, Signal};

use super::keys;
use super::keys::bond::{DETECT, LINKS, NAME, PATHS, REORDER, RESEND, ROOM};
use super::keys::class::{ACROSS_USERS, POLICY};
use super::keys::link::{DELAY, FOLLOW, LOSS, MPU, NOMINAL, OVERHEAD, RETURN_DELAY, RING};
use super::limits;
use super::scheduler::Chosen;

/// A table `[[bond]]` and the numbers of its members.
pub(super) struct Table<'s, 'i> {
    pub(super) name: String,
    pub(super) section: Section<'s, 'i>,
    pub(super) members: Vec<usize>,
}

/// The tables `[[bond]]`, with the numbers of their members among links of these names.
///
/// # Errors
/// Names that are missing, unknown or there twice, a link of two bonds.
pub(super) fn tables<'s, 'i>(
    top: &mut Section<'s, 'i>,
    links: &[&str],
) -> Result<Vec<Table<'s, 'i>>, Fault> {
    if top.find(keys::top::BOND.name).is_none() {
        return Ok(Vec::new());
    }
    let mut names: BTreeSet<&str> = links.iter().copied().collect();
    let mut bonded = BTreeSet::new();
    let mut bonds = Vec::new();
    for mut section in top.tables(keys::top::BOND.name, limits::LINKS)? {
        let entry = section.entry_of(&NAME)?;
        let name = entry.name()?;
        if !names.insert(name) {
            return Err(entry.fault("a link or another bond has this name; rename one"));
        }
        section.write(NAME.name, name);
        let entry = section.entry_of(&LINKS)?;
        let mut members = Vec::new();
        for member in entry.list(MOST_PATHS)? {
            let at = number_of(&member, links)?;
            if !bonded.insert(at) {
                return Err(member.fault("is a member already, of this bond or another; a link has one scheduler in front of it"));
            }
            members.push(at);
        }
        let written = members.iter().map(|at| Value::from(links[*at]));
        section.write(LINKS.name, Value::List(written.collect()));
        bonds.push(Table {
            name: name.to_owned(),
            section,
            members,
        });
    }
    Ok(bonds)
}

fn number_of(entry: &Entry<'_, '_>, links: &[&str]) -> Result<usize, Fault> {
    let wanted = entry.text()?;
    if let Some(at) = links.iter().position(|name| *name == wanted) {
        return Ok(at);
    }
    let cure = match nearest(wanted, links) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None => format!("there are {}", links.join(", ")),
    };
    Err(entry.fault(format!("no link has this name; {cure}")))
}

/// The link that a bond of these members is to all that knows one link, and the reading of the keys of its table.
pub(super) fn link(
    section: &mut Section<'_, '_>,
    members: Vec<(Member, Section<'_, '_>)>,
) -> Result<Link, Fault> {
    section.expect(&[NAME.name, LINKS.name]);
    let room_ns = section.take(&ROOM)?;
    let detect_ns = section.take(&DETECT)?;
    let (members, sections): (Vec<Member>, Vec<Section<'_, '_>>) = members.into_iter().unzip();
    let first = &members[0].link;
    for (member, of_member) in members.iter().zip(&sections) {
        if member.link.ring > 1 {
            return Err(of_member.fault_at(
                RING.name,
                "must be 1 in a bond: each packet chooses its link when one is free",
            ));
        }
        for (key, same) in [
            (
                OVERHEAD.name,
                member.link.overhead_bytes == first.overhead_bytes,
            ),
            (MPU.name, member.link.mpu_bytes == first.mpu_bytes),
        ] {
            if !same {
                let message = format!(
                    "must be as of {}: the scheduler of a bond counts a packet before it knows its link",
                    quote(&members[0].name)
                );
                return Err(of_member.fault_at(key, message));
            }
        }
    }
    let sum = members
        .iter()
        .map(|member| member.link.nominal_bps)
        .sum::<u64>();
    if sum > limits::RATE_BPS {
        let message = format!(
            "have {} together, more than {}; lower their nominal",
            units::show_whole(sum, Kind::Rate),
            units::show_whole(limits::RATE_BPS, Kind::Rate)
        );
        return Err(section.fault_at(LINKS.name, message));
    }
    let least_s = members
        .iter()
        .map(|member| values::first(&member.link.delay_s));
    let least_s = least_s.fold(f64::INFINITY, f64::min);
    let back_ns = members
        .iter()
        .map(|member| member.link.return_delay_ns)
        .min();
    Ok(Link {
        nominal_bps: sum,
        capacity: Capacity::Rate(Signal::Constant(sum as f64)),
        delay_s: Signal::Constant(least_s),
        return_delay_ns: back_ns.unwrap_or(0),
        overhead_bytes: first.overhead_bytes,
        mpu_bytes: first.mpu_bytes,
        bond: Some(Box::new(Bond {
            room_ns,
            detect_ns,
            classes: Vec::new(),
            members,
        })),
        ..Link::of_rate(sum)
    })
}

/// Reads how classes use the members. `owners` has the table of each class.
pub(super) fn classes(
    bond: &mut Bond,
    sections: &mut [Section<'_, '_>],
    owners: &[usize],
) -> Result<(), Fault> {
    let names: Vec<&str> = bond
        .members
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    let read = sections.iter_mut().map(|section| class(section, &names));
    let read = read.collect::<Result<Vec<_>, _>>()?;
    bond.classes = owners.iter().map(|at| read[*at]).collect();
    Ok(())
}

/// The words of [`linkweir_config::bond::USES`], in that order.
const WORDS: [Paths; 4] = [Paths::Best, Paths::All, Paths::Spill, Paths::Stripe];

fn class(section: &mut Section<'_, '_>, names: &[&str]) -> Result<Bonded, Fault> {
    let paths = match section.find(PATHS.name) {
        None => {
            section.write(PATHS.name, USES[0]);
            WORDS[0]
        }
        Some(entry) if entry.is_list() => {
            let mut named = 0;
            let mut written = Vec::new();
            for link in entry.list(MOST_PATHS)? {
                let at = number_of(&link, names).map_err(|mut fault| {
                    let meant = link.text().map(linkweir_config::bond::meant);
                    fault.message.push_str(&meant.unwrap_or_default());
                    fault
                })?;
                if named & 1 << at != 0 {
                    return Err(link.fault("is there twice; leave one out"));
                }
                named |= 1 << at;
                written.push(Value::from(names[at]));
            }
            section.write(PATHS.name, Value::List(written));
            Paths::Named(named)
        }
        Some(entry) => {
            let at = linkweir_config::bond::uses(&entry)?;
            section.write(PATHS.name, USES[at]);
            WORDS[at]
        }
    };
    let reorder_ns = match section.find(REORDER.name) {
        None => linkweir_config::bond::reorder_ns(paths == Paths::All),
        Some(entry) => linkweir_config::bond::reorder(&entry, (0, limits::DELAY_NS))?,
    };
    section.write(
        REORDER.name,
        reorder_ns.map_or(Value::from("none"), |ns| Value::Whole(ns, Kind::Time)),
    );
    let resend = section.take(&RESEND)?;
    if resend && paths == Paths::All {
        return Err(section.fault_at(
            RESEND.name,
            "has no use with paths = \"all\", as every link has a copy; leave it out",
        ));
    }
    Ok(Bonded {
        paths,
        reorder_ns,
        resend,
    })
}

/// Refuses, in a class of one link, keys that only classes of bonds have, unless the policy has parameters of these names.
pub(super) fn refuse_keys(sections: &[Section<'_, '_>], chosen: &Chosen) -> Result<(), Fault> {
    if chosen.brought.is_some() {
        return Ok(());
    }
    for section in sections {
        let keys = [PATHS.name, REORDER.name, RESEND.name];
        if let Some(entry) = keys.into_iter().find_map(|key| section.stray(key)) {
            return Err(entry.fault("belongs in [[bond.class]]; leave it out here"));
        }
    }
    Ok(())
}

/// Refuses a policy that cannot serve several paths.
pub(super) fn policy(section: &Section<'_, '_>, chosen: &Chosen) -> Result<(), Fault> {
    if let Some(entry) = section.stray(ACROSS_USERS.name) {
        return Err(entry.fault("is for one link; leave it out of a bond"));
    }
    if chosen.of_the_core().is_some_and(core::PolicyInfo::bonds) {
        return Ok(());
    }
    let known = core::policies().iter().filter(|info| info.bonds());
    let known: Vec<&str> = known.map(|info| info.name).collect();
    let message = format!(
        "cannot serve a bond: a class that may not use the link that is free would lose its turn; use one of {}",
        known.join(", ")
    );
    Err(section.fault_at(POLICY.name, message))
}

/// The keys of `[link]` that a bond has where it is looked at as one link.
pub(super) fn as_one_link(link: &Link) -> Written {
    let mut written = Written::default();
    let rate = &linkweir_config::keys::link::RATE;
    written.write(
        rate.name,
        Value::OverTime(Signal::Constant(link.nominal_bps as f64), Kind::Rate),
    );
    written.write(NOMINAL.name, Value::Whole(link.nominal_bps, Kind::Rate));
    written.write(FOLLOW.name, Value::Flag(true));
    written.write(
        DELAY.name,
        Value::OverTime(link.delay_s.clone(), Kind::Seconds),
    );
    written.write(
        RETURN_DELAY.name,
        Value::Whole(link.return_delay_ns, Kind::Time),
    );
    written.write(
        LOSS.name,
        Value::OverTime(Signal::Constant(0.0), Kind::Fraction),
    );
    written.write(RING.name, Value::Number(1));
    written.write(
        OVERHEAD.name,
        Value::Signed(link.overhead_bytes.into(), Kind::Size),
    );
    written.write(MPU.name, Value::Whole(link.mpu_bytes.into(), Kind::Size));
    written
}

/// What the scheduler promises and the members cannot carry: all together, or without one of them. A sentence for each class.
pub(super) fn broken_promises(
    name: &str,
    bond: &Bond,
    classes: &[Class],
    promised_bps: &[u64],
) -> Vec<String> {
    let mut found = bond.kept(promised_bps);
    if bond.members.len() == 1 {
        found.truncate(1); // without it, none can be kept
    }
    let down = bond.members.iter().map(|member| member.name.as_str());
    let when = std::iter::once(String::new())
        .chain(down.map(|name| format!(" while {} is down", quote(name))));
    let mut notes = Vec::new();
    for (all, when) in found.iter().zip(when) {
        for kept in all.iter().filter(|kept| kept.kept_bps < kept.promised_bps) {
            notes.push(format!(
                "bond.{name}: class {} has a reservation of {}, of which its links can carry {}{when}",
                quote(&classes[kept.class].name),
                units::show_whole(kept.promised_bps, Kind::Rate),
                units::show_whole(kept.kept_bps, Kind::Rate),
            ));
        }
    }
    notes
}
