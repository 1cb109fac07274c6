// SPDX-License-Identifier: BSD-3-Clause
//! Users with several classes: who they are, how their packets are coded, and the policy across them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use linkweir_config::across::{self, OfUser};
use linkweir_config::parameters;
use linkweir_config::reader::{quote, Section};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{first_classes, users, Across, Class, Coded, Link, Scheduler};
use crate::satellite::harq::Harq;

use super::keys::class::{self, ACROSS, CODED, LEAST, USER};
use super::keys::satellite::USERS;
use super::limits;
use super::scheduler::Chosen;

/// The word for packets that are coded at their own length.
const OWN: &str = "own";

/// The name of a class's user, without the number of a copy.
pub(super) fn name(section: &mut Section<'_, '_>) -> Result<Option<String>, Fault> {
    let Some(entry) = section.find(USER.name) else {
        return Ok(None);
    };
    let name = entry.text()?;
    if name.is_empty() {
        return Err(entry.fault("must not be empty"));
    }
    section.write(USER.name, quote(name));
    Ok(Some(name.to_owned()))
}

/// How a class's packets are coded.
pub(super) fn coded(section: &mut Section<'_, '_>) -> Result<Option<Coded>, Fault> {
    let Some(entry) = section.find(CODED.name) else {
        return Ok(None);
    };
    if entry.text() == Ok(OWN) {
        section.write(CODED.name, quote(OWN));
        return Ok(Some(Coded::Each));
    }
    let is_size = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    if !entry.text().is_ok_and(is_size) {
        return Err(entry.fault("must be a size like \"210B\", or \"own\""));
    }
    let bytes = entry.whole(Kind::Size, (1, limits::CODED_BYTES))?;
    section.write(CODED.name, quote(&units::show_whole(bytes, Kind::Size)));
    Ok(Some(Coded::Bytes(bytes as u32)))
}

/// Refuses users, codes and names that do not fit the link or each other. `places` has the table of each class.
pub(super) fn fit(
    classes: &[Class],
    link: &Link,
    places: &[&Section<'_, '_>],
) -> Result<(), Fault> {
    let alone: BTreeSet<&str> = classes
        .iter()
        .filter(|class| class.user.is_none())
        .map(|class| class.name.as_str())
        .collect();
    let by_flow = link.satellite.as_ref().is_some_and(|s| s.flows_are_users);
    for (class, section) in classes.iter().zip(places) {
        let Some(user) = &class.user else { continue };
        if by_flow {
            return Err(section.fault_at(
                USER.name,
                format!(
                    "is not for link.satellite.{} = \"flows\", where each flow is a user; leave one out",
                    USERS.name
                ),
            ));
        }
        if alone.contains(user.as_str()) {
            return Err(section.fault_at(
                USER.name,
                format!(
                    "is also the name of a class that is a user of its own; write user = {} there, too, or rename one",
                    quote(user)
                ),
            ));
        }
    }
    for (class, section) in classes.iter().zip(places) {
        let Some(coded) = class.coded else { continue };
        let Some(satellite) = &link.satellite else {
            let message = "is only for a link with a table [link.satellite]; leave it out";
            return Err(section.fault_at(CODED.name, message));
        };
        let shortest_bytes = match coded {
            Coded::Bytes(bytes) => bytes,
            Coded::Each => 1,
        };
        if Harq::designed(8 * shortest_bytes, satellite.harq.esn0_db as u32).is_none() {
            let message = format!(
                "needs link.satellite.esn0_db = 7 .. 13, not {}: above, there is no code for packets whose length is nearer to 210B than to 1115B",
                satellite.harq.esn0_db
            );
            return Err(section.fault_at(CODED.name, message));
        }
    }
    Ok(())
}

/// The link as the packets of a class see it: with the longest packet that is coded for the class.
pub(super) fn link_of<'l>(link: &'l Link, class: Option<&Class>) -> Cow<'l, Link> {
    let coded = class.and_then(|class| class.coded);
    let (Some(coded), Some(_)) = (coded, &link.satellite) else {
        return Cow::Borrowed(link);
    };
    let mut own = link.clone();
    if let Some(satellite) = &mut own.satellite {
        satellite.harq.packet_bits = match coded {
            Coded::Bytes(bytes) => 8 * bytes,
            Coded::Each => 8 * limits::CODED_BYTES as u32,
        };
    }
    Cow::Owned(own)
}

/// The policy across users as `[scheduler]` has it, and what its classes say of it.
pub(super) struct AcrossUsers<'s, 'i> {
    table: across::Across<'s, 'i>,
    /// The parameters of each table of classes that has its own.
    own: Vec<Option<OfUser<'s, 'i>>>,
}

impl<'s, 'i> AcrossUsers<'s, 'i> {
    /// Reads `across` of the scheduler and of the classes.
    pub(super) fn read(
        scheduler: &mut Section<'s, 'i>,
        chosen: &Chosen,
        classes: &mut [Section<'s, 'i>],
    ) -> Result<Option<AcrossUsers<'s, 'i>>, Fault> {
        let Some(entry) = scheduler.find(class::ACROSS_USERS.name) else {
            let stray = classes.iter_mut().find_map(|class| class.find(ACROSS.name));
            return match stray {
                Some(entry) => Err(entry.fault(
                    "is only for a policy across users; write across = { policy = \"pf\" } in [scheduler]",
                )),
                None => Ok(None),
            };
        };
        if chosen.of_the_core().is_none() {
            return Err(entry.fault(format!(
                "needs a policy of `linkweir policies` inside each user, which {} is not; change policy or leave across out",
                chosen.name
            )));
        }
        let table = across::Across::read(&entry)?;
        let mut own = Vec::new();
        for section in classes {
            if let Some(entry) = section.find(LEAST.name) {
                return Err(entry.fault(
                    "is a share of a link whose classes are not shared out among users; leave it or scheduler.across out",
                ));
            }
            let entry = section.find(ACROSS.name);
            own.push(match entry {
                Some(entry) => Some(table.of_user(Some(entry))?),
                None => None,
            });
        }
        Ok(Some(AcrossUsers { table, own }))
    }

    /// The policy with the parameters of each user; `owners` has the table of each class, `sections` all tables.
    pub(super) fn scheduler(
        &self,
        classes: &[Class],
        (owners, sections): (&[usize], &[Section<'s, 'i>]),
        link: &Link,
    ) -> Result<Across, Fault> {
        let default = self.table.of_user(None)?;
        let users = users(classes);
        let nusers = first_classes(&users).len();
        let mut given: Vec<Option<usize>> = vec![None; nusers];
        for (user, &at) in users.iter().zip(owners) {
            if self.own[at].is_none() {
                continue;
            }
            match given[*user] {
                Some(other) if other != at => {
                    let message = "is given by another class of this user, too; leave one out";
                    return Err(sections[at].fault_at(ACROSS.name, message));
                }
                _ => given[*user] = Some(at),
            }
        }
        let of_users: Vec<&OfUser<'s, 'i>> = given
            .iter()
            .map(|at| at.and_then(|at| self.own[at].as_ref()).unwrap_or(&default))
            .collect();
        Ok(Across {
            policy: self.table.info().name.to_owned(),
            params: self.table.params().to_vec(),
            qparams: self.table.fit(link.nominal_bps, &of_users)?,
        })
    }

    /// The resolved lines of `[scheduler.across]`.
    pub(super) fn lines(&self) -> Result<String, Fault> {
        Ok(format!("\n[scheduler.across]\n{}", self.table.lines()?))
    }

    /// The resolved lines of a table `[class.across]`, if there is one.
    pub(super) fn lines_of(&self, at: usize) -> Result<String, Fault> {
        let table = self.own[at].as_ref().and_then(|(_, own)| own.as_ref());
        table.map_or(Ok(String::new()), |own| {
            Ok(format!("\n[class.across]\n{}", own.known()?))
        })
    }
}

/// Asks the core whether the values of the policy inside each user fit together.
pub(super) fn check_inside(
    info: &'static linkweir_core::PolicyInfo,
    scheduler: &Scheduler,
    (classes, link): (&[Class], &Link),
    section: &Section<'_, '_>,
    places: &[&Section<'_, '_>],
) -> Result<(), Fault> {
    let users = users(classes);
    let n = info.qparams.len();
    for user in 0..first_classes(&users).len() {
        let own: Vec<usize> = (0..classes.len()).filter(|at| users[*at] == user).collect();
        let rows = own
            .iter()
            .flat_map(|at| &scheduler.qparams[at * n..(at + 1) * n]);
        let rows: Vec<u64> = rows.copied().collect();
        let places: Vec<&Section<'_, '_>> = own.iter().map(|at| places[*at]).collect();
        let params = &scheduler.params;
        parameters::check(info, link.nominal_bps, params, &rows, section, &places)?;
    }
    Ok(())
}
