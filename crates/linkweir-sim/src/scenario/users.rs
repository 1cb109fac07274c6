// SPDX-License-Identifier: BSD-3-Clause
//! Users with several classes: who they are, how their packets are coded, and the policy inside each.

use std::collections::BTreeSet;

use linkweir_config::parameters::{self, Nominal};
use linkweir_config::reader::{quote, Section, Value};
use linkweir_config::units::Kind;
use linkweir_config::Fault;

use crate::experiment::{first_classes, users, Class, Coded, Link, Scheduler};
use crate::satellite::harq::Harq;

use super::keys::class::{CODED, USER};
use super::keys::satellite::USERS;
use super::limits;

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
    section.write(USER.name, name);
    Ok(Some(name.to_owned()))
}

/// How a class's packets are coded.
pub(super) fn coded(section: &mut Section<'_, '_>) -> Result<Option<Coded>, Fault> {
    let Some(entry) = section.find(CODED.name) else {
        return Ok(None);
    };
    if entry.text() == Ok(OWN) {
        section.write(CODED.name, OWN);
        return Ok(Some(Coded::Each));
    }
    let is_size =
        |text: &str| text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    if !entry.text().is_ok_and(is_size) {
        return Err(entry.fault("must be a size like \"210B\", or \"own\""));
    }
    let bytes = entry.whole(Kind::Size, (1, limits::CODED_BYTES))?;
    section.write(CODED.name, Value::Whole(bytes, Kind::Size));
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

/// The longest packet that is coded for a class, bytes; none where nothing is coded.
pub(super) fn longest_coded_bytes(link: &Link, class: &Class) -> Option<u32> {
    let satellite = link.satellite.as_ref()?;
    Some(match class.coded {
        None => satellite.harq.packet_bits / 8,
        Some(Coded::Bytes(bytes)) => bytes,
        Some(Coded::Each) => limits::CODED_BYTES as u32,
    })
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
        parameters::check(
            info,
            &Nominal::of_link(link.nominal_bps),
            params,
            &rows,
            section,
            &places,
        )?;
    }
    Ok(())
}
