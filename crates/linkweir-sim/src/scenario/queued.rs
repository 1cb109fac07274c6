// SPDX-License-Identifier: BSD-3-Clause
//! A link with the scheduler in front of it and its classes, as they were read.

use linkweir_config::queue::{self, Reserved};
use linkweir_config::reader::{quote, Section, Value, Written};
use linkweir_config::Fault;

use crate::experiment::{
    first_classes, users as users_of, Across, Class, Experiment, Link, Member, Scheduler,
};

use super::across::AcrossUsers;
use super::inputs::{Input, Told};
use super::keys;
use super::overrides::Overrides;
use super::route::Names;
use super::scheduler::{Chosen, Matched};
use super::{beam, bond, limits, link, scheduler, traffic, users};

/// The tables of a link's scheduler and classes in the resolved form.
#[derive(Clone)]
pub(super) struct Tables {
    scheduler: Written,
    classes: Vec<Written>,
}

impl Tables {
    /// Adds them to the table that they belong to.
    pub(super) fn into(self, above: &mut Written) {
        above.write(keys::top::SCHEDULER.name, Value::Table(self.scheduler));
        above.write(keys::top::CLASS.name, Value::Tables(self.classes));
    }
}

/// What reading a link takes.
pub(super) struct Context<'a> {
    pub(super) duration_ns: u64,
    /// Seed of what is drawn for this link.
    pub(super) seed: u64,
    pub(super) overrides: &'a Overrides,
    pub(super) inputs: &'a mut Vec<Input>,
    pub(super) told: &'a mut Told,
}

/// A link with its queues.
pub(super) struct Queued<'s, 'i> {
    pub(super) link: Link,
    pub(super) classes: Classes<'s>,
    /// How many users have the classes.
    users: usize,
    section: Section<'s, 'i>,
    scheduler: Section<'s, 'i>,
    policy: Chosen,
    params: Vec<u64>,
    class_sections: Vec<Section<'s, 'i>>,
    /// `across` as it is written, and what it means.
    across: Option<(AcrossUsers<'s, 'i>, Across)>,
}

impl<'s, 'i> Queued<'s, 'i> {
    /// Reads a link. Its scheduler and classes are tables of `above` or, without it, of the link itself.
    pub(super) fn read(
        mut section: Section<'s, 'i>,
        above: Option<&mut Section<'s, 'i>>,
        context: &mut Context<'_>,
    ) -> Result<Queued<'s, 'i>, Fault> {
        if above.is_none() {
            section.expect(&[keys::link::SCHEDULER.name, keys::link::CLASS.name]);
        }
        let link = link::read(
            &mut section,
            context.duration_ns,
            context.seed,
            context.overrides,
            context.inputs,
            context.told,
        )?;
        Queued::read_behind(link, section, above, context)
    }

    /// Reads a bond of members that were read, with their tables.
    pub(super) fn read_bond(
        mut section: Section<'s, 'i>,
        members: Vec<(Member, Section<'s, 'i>)>,
        context: &mut Context<'_>,
    ) -> Result<Queued<'s, 'i>, Fault> {
        section.expect(&[keys::bond::SCHEDULER.name, keys::bond::CLASS.name]);
        let link = bond::link(&mut section, members)?;
        Queued::read_behind(link, section, None, context)
    }

    /// Reads the scheduler and the classes of a link that was read.
    fn read_behind(
        mut link: Link,
        mut section: Section<'s, 'i>,
        above: Option<&mut Section<'s, 'i>>,
        context: &mut Context<'_>,
    ) -> Result<Queued<'s, 'i>, Fault> {
        section.known()?;
        let tables = above.unwrap_or(&mut section);
        let example = keys::bond::SCHEDULER.default.0;
        let mut scheduler = tables.need_table(keys::top::SCHEDULER.name, example)?;
        let notes = &mut context.told.notes;
        let (policy, params) =
            scheduler::policy(&mut scheduler, context.overrides, context.inputs, notes)?;
        let mut class_sections = tables.tables(keys::top::CLASS.name, limits::CLASSES)?;
        let classes = Classes::read(&mut class_sections, &policy, &params)?;
        if let Some(bond) = &mut link.bond {
            bond::policy(&scheduler, &policy)?;
            bond::classes(bond, &mut class_sections, &classes.owners)?;
        } else {
            bond::refuse_keys(&class_sections, &policy)?;
        }
        let across = AcrossUsers::read(&mut scheduler, &policy, &mut class_sections)?;
        let users = first_classes(&users_of(&classes.classes)).len();
        beam::fits(&mut section, &link, (users, classes.classes.len()))?;
        users::fit(&classes.classes, &link, &classes.places(&class_sections))?;
        let across = across.map(|across| {
            let tables = (&classes.owners[..], &class_sections[..]);
            let meant = across.scheduler(&classes.classes, tables, &link)?;
            Ok((across, meant))
        });
        let across = across.transpose()?;
        if across.is_none() {
            let starved = classes.starved(&policy, link.nominal_bps);
            context.told.notes.extend(starved);
        }
        Ok(Queued {
            link,
            classes,
            users,
            section,
            scheduler,
            policy,
            params,
            class_sections,
            across,
        })
    }

    /// The policy with its parameters.
    pub(super) fn scheduler(&self) -> Scheduler {
        Scheduler {
            across: self.across.as_ref().map(|(_, meant)| meant.clone()),
            policy: self.policy.name.to_string(),
            brought: self.policy.brought.clone(),
            params: self.params.clone(),
            qparams: self.classes.qparams.clone(),
        }
    }

    /// What the scheduler reserves for each class, bit/s.
    pub(super) fn reserved_bps(&self) -> Vec<u64> {
        let nominal_bps = self.link.nominal_bps;
        let Some(info) = self.policy.of_the_core().filter(|info| info.name == "pss") else {
            return vec![0; self.classes.classes.len()];
        };
        let (rate, share) = (info.qparam("rate"), info.qparam("share"));
        let rows = self.classes.qparams.chunks(info.qparams.len());
        let of = |row: &[u64], at: Option<usize>| at.map_or(0, |at| row[at]);
        rows.map(|row| {
            let share_bps = u128::from(nominal_bps) * u128::from(of(row, share)) / 1_000_000;
            of(row, rate).max(share_bps as u64)
        })
        .collect()
    }

    /// The resolved form of the link and of its scheduler and classes, of which all keys must be known.
    pub(super) fn written(&self) -> Result<(Written, Tables), Fault> {
        let link = self.section.known()?.clone();
        let mut tables = Tables {
            scheduler: self.scheduler.known()?.clone(),
            classes: all_written(&self.class_sections)?,
        };
        if let Some((across, _)) = &self.across {
            across.write(&mut tables.scheduler, &mut tables.classes)?;
        }
        Ok((link, tables))
    }

    /// Refuses a policy whose values do not fit together, and packets that do not fit into their queues. `experiment` is the
    /// run over this link; `begins` says which of its flows begin at this link.
    pub(super) fn fits(
        &self,
        experiment: &Experiment,
        begins: &dyn Fn(usize) -> bool,
    ) -> Result<(), Fault> {
        let Experiment {
            link,
            scheduler,
            classes,
            flows,
            ..
        } = experiment;
        let places = self.classes.places(&self.class_sections);
        let asked = (&classes[..], link);
        scheduler::check(&self.policy, scheduler, asked, &self.scheduler, &places)?;
        traffic::fits(classes, flows, begins, link, &places)?;
        traffic::carry_marks(&scheduler.l4s(), flows, &places)?;
        if let Some(limit) = scheduler::shared_limit(&self.policy, scheduler) {
            traffic::fits_all(limit, flows, begins, &self.scheduler)?;
        }
        Ok(())
    }

    /// The table of a class.
    pub(super) fn class_section(&self, class: usize) -> &Section<'s, 'i> {
        &self.class_sections[self.classes.owners[class]]
    }
}

/// All classes of a link, copies counted.
#[derive(Default)]
pub(super) struct Classes<'s> {
    pub(super) classes: Vec<Class>,
    qparams: Vec<u64>,
    /// The classes that a name means: one, or all copies of an entry.
    pub(super) names: Names,
    /// Which entry each class comes from.
    owners: Vec<usize>,
    /// Which packets belong to each entry.
    pub(super) matched: Matched<'s>,
}

impl<'s> Classes<'s> {
    /// The table of each class, of all tables.
    fn places<'a, 't, 'i>(&self, sections: &'a [Section<'t, 'i>]) -> Vec<&'a Section<'t, 'i>> {
        self.owners.iter().map(|at| &sections[*at]).collect()
    }

    /// The classes in which L4S flows starve, a sentence for each table.
    fn starved(&self, policy: &scheduler::Chosen, link_bps: u64) -> Vec<String> {
        let Some(info) = policy.of_the_core().filter(|info| !info.qparams.is_empty()) else {
            return Vec::new();
        };
        let rows = self.qparams.chunks(info.qparams.len());
        let mut notes: Vec<(usize, String)> = Vec::new();
        for ((class, row), owner) in self.classes.iter().zip(rows).zip(&self.owners) {
            let reserved = Reserved::of(info, row, link_bps);
            let cure = reserved.and_then(|reserved| queue::starves_l4s(class.flows?, &reserved));
            if let Some(cure) =
                cure.filter(|_| notes.last().is_none_or(|(other, _)| other != owner))
            {
                notes.push((*owner, format!("class {}: {cure}", quote(&class.name))));
            }
        }
        notes.into_iter().map(|(_, note)| note).collect()
    }

    fn read(
        sections: &mut [Section<'s, '_>],
        policy: &scheduler::Chosen,
        params: &[u64],
    ) -> Result<Classes<'s>, Fault> {
        let mut all = Classes::default();
        for (index, section) in sections.iter_mut().enumerate() {
            let (name, copies, row) = scheduler::class(section, policy, params, &mut all.matched)?;
            let first = all.classes.len();
            let range = first..first + copies.len();
            if range.end > limits::CLASSES {
                let message = format!(
                    "there would be more than {} classes; use fewer",
                    limits::CLASSES
                );
                return Err(section.fault_at(keys::class::COUNT.name, message));
            }
            let single = copies
                .iter()
                .zip(first..)
                .map(|(class, at)| (class.name.clone(), at..at + 1));
            let family = (copies.len() > 1).then(|| (name.clone(), range.clone()));
            for (name, range) in single.chain(family) {
                if all.names.insert(name, range).is_some() {
                    return Err(section.fault_at(
                        keys::class::NAME.name,
                        "two classes have this name; rename one",
                    ));
                }
            }
            let limits: Vec<_> = all
                .classes
                .iter()
                .chain(&copies)
                .map(Class::limit)
                .collect();
            queue::shares(limits.iter(), |message| {
                section.fault_at(keys::class::LEAST.name, message)
            })?;
            for class in copies {
                all.owners.push(index);
                all.classes.push(class);
                all.qparams.extend_from_slice(&row);
            }
        }
        Ok(all)
    }
}

/// The resolved forms of several tables, of which all keys must be known.
pub(super) fn all_written(sections: &[Section<'_, '_>]) -> Result<Vec<Written>, Fault> {
    let written = sections.iter().map(|section| section.known().cloned());
    written.collect()
}

/// Refuses queues that may hold too many packets together.
pub(super) fn held(top: &Section<'_, '_>, links: &[&Queued<'_, '_>]) -> Result<(), Fault> {
    let held_pkts = |queued: &Queued<'_, '_>| -> u64 {
        let limits = queued.classes.classes.iter().map(|class| class.limit_pkts);
        limits.map(|pkts| u64::from(pkts.unwrap_or(0))).sum()
    };
    let held: u64 = links.iter().map(|queued| held_pkts(queued)).sum();
    let Some(largest) = links.iter().rev().max_by_key(|queued| held_pkts(queued)) else {
        return Ok(());
    };
    if held <= limits::QUEUED_PKTS {
        return Ok(());
    }
    let key = keys::top::CLASS.name;
    let section = match top.stray(key) {
        Some(_) => top,
        None => &largest.section,
    };
    let message = format!(
        "the queues together may hold {held} packets, more than {}; lower limit",
        limits::QUEUED_PKTS
    );
    Err(section.fault_at(key, message))
}

/// Refuses series with too many rows.
pub(super) fn series_rows<'q>(
    top: &Section<'_, '_>,
    bins: u64,
    links: impl Iterator<Item = &'q Queued<'q, 'q>>,
    flows: usize,
) -> Result<(), Fault> {
    let (mut classes, mut terminals) = (0, 0);
    for queued in links {
        classes += queued.classes.classes.len();
        // In a beam each user also has a row in table `channel`.
        terminals += queued.link.beam.as_ref().map_or(0, |_| queued.users);
    }
    let rows = bins.saturating_mul((classes + terminals + flows) as u64);
    if rows > limits::SERIES_ROWS {
        let twice = if terminals > 0 {
            " (two rows each)"
        } else {
            ""
        };
        let message = format!(
            "{bins} bins for {classes} classes{twice} and {flows} flows are more than {} rows; raise interval",
            limits::SERIES_ROWS
        );
        return Err(top.fault_at(keys::top::INTERVAL.name, message));
    }
    Ok(())
}
