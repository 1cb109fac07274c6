// SPDX-License-Identifier: BSD-3-Clause
//! The policy across users: `across` of the scheduler and of the classes.

use linkweir_config::across::{self, OfUser};
use linkweir_config::reader::Section;
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
