// SPDX-License-Identifier: BSD-3-Clause
//! `across`: a policy of the core across the users of a link, and its parameters for each user. The gateway's users are its
//! peers; a scenario's are those that its classes name.

use linkweir_core::PolicyInfo;

use crate::fault::Fault;
use crate::parameters::{self, Nominal};
use crate::reader::{Entry, Section, Written};

/// The policy across users as the link or the scheduler has it.
pub struct Across<'s, 'i> {
    section: Section<'s, 'i>,
    info: &'static PolicyInfo,
    params: Vec<u64>,
    /// Its parameters for a user who does not give their own.
    row: Vec<u64>,
}

/// The parameters of one user, and their table if there is one.
pub type OfUser<'s, 'i> = (Vec<u64>, Option<Section<'s, 'i>>);

impl<'s, 'i> Across<'s, 'i> {
    /// Reads the table.
    ///
    /// # Errors
    /// A value that is no table, a policy that cannot be used across users, a wrong parameter.
    pub fn read(entry: &Entry<'s, 'i>) -> Result<Across<'s, 'i>, Fault> {
        let mut section = table(entry, "{ policy = \"pf\" }")?;
        let known = linkweir_core::policies().iter();
        let nesting: Vec<&'static PolicyInfo> = known.filter(|info| info.nests()).collect();
        let names: Vec<&str> = nesting.iter().map(|info| info.name).collect();
        let info = nesting[section.need("policy", "\"pf\"")?.choice(&names)?];
        section.write("policy", info.name);
        let mut read = |param| parameters::read(&mut section, param);
        let params = info.params.iter().map(&mut read).collect::<Result<_, _>>();
        let params = params?;
        let row = info.qparams.iter().map(&mut read).collect::<Result<_, _>>();
        let row = row?;
        section.known()?;
        Ok(Across {
            section,
            info,
            params,
            row,
        })
    }

    /// The core's declaration of the policy.
    #[must_use]
    pub fn info(&self) -> &'static PolicyInfo {
        self.info
    }

    /// One value per parameter of the policy.
    #[must_use]
    pub fn params(&self) -> &[u64] {
        &self.params
    }

    /// The resolved form of the table.
    ///
    /// # Errors
    /// An unknown key.
    pub fn written(&self) -> Result<&Written, Fault> {
        self.section.known()
    }

    /// The parameters of a user, from their own table if they have one.
    ///
    /// # Errors
    /// A value that is no table, a wrong parameter.
    pub fn of_user(&self, entry: Option<Entry<'s, 'i>>) -> Result<OfUser<'s, 'i>, Fault> {
        let Some(entry) = entry else {
            return Ok((self.row.clone(), None));
        };
        let mut section = table(&entry, "{ weight = 2 }")?;
        let mut row = self.row.clone();
        for (value, param) in row.iter_mut().zip(&self.info.qparams) {
            if section.find(param.name).is_some() {
                *value = parameters::read(&mut section, param)?;
            }
        }
        section.known()?;
        Ok((row, Some(section)))
    }

    /// Asks the core whether the parameters of all users fit together, for a link whose capacity is first reported as
    /// `link_bps`; returns them, a row per user.
    ///
    /// # Errors
    /// What the policy refuses, at the user's table or at this one.
    pub fn fit(&self, link_bps: u64, users: &[&OfUser<'s, 'i>]) -> Result<Vec<u64>, Fault> {
        let rows: Vec<u64> = users.iter().flat_map(|(row, _)| row).copied().collect();
        let places: Vec<&Section<'s, 'i>> = users
            .iter()
            .map(|(_, own)| own.as_ref().unwrap_or(&self.section))
            .collect();
        parameters::check(
            self.info,
            &Nominal::of_link(link_bps),
            &self.params,
            &rows,
            &self.section,
            &places,
        )?;
        Ok(rows)
    }
}

fn table<'s, 'i>(entry: &Entry<'s, 'i>, example: &str) -> Result<Section<'s, 'i>, Fault> {
    let wanted = || entry.fault(format!("must be a table like {example}"));
    entry.table().ok_or_else(wanted)
}
