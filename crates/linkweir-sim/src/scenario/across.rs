// SPDX-License-Identifier: BSD-3-Clause
//! The policy across users: `across` of the scheduler and of the classes.

use linkweir_config::across::{self, OfUser};
use linkweir_config::reader::{Section, Value, Written};
use linkweir_config::Fault;

use crate::experiment::{first_classes, users, Across, Class, Link};

use super::keys::class::{ACROSS, ACROSS_USERS, LEAST};
use super::scheduler::Chosen;

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
        let Some(entry) = scheduler.find(ACROSS_USERS.name) else {
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

    /// Adds `across` to the resolved forms of the scheduler and of the classes that have their own.
    pub(super) fn write(
        &self,
        scheduler: &mut Written,
        classes: &mut [Written],
    ) -> Result<(), Fault> {
        let table = self.table.written()?.clone();
        scheduler.write(ACROSS_USERS.name, Value::Table(table));
        for (own, class) in self.own.iter().zip(classes) {
            if let Some((_, Some(section))) = own {
                class.write(ACROSS.name, Value::Table(section.known()?.clone()));
            }
        }
        Ok(())
    }
}
