// SPDX-License-Identifier: BSD-3-Clause
//! `across`: the policy among peers that share one link, in `[link]`, and its parameters of each peer, in `[[peer]]`.

use linkweir_config::parameters;
use linkweir_config::reader::{Entry, Section};
use linkweir_config::signal;
use linkweir_config::Fault;
use linkweir_core::PolicyInfo;
use linkweir_plane::setup::{Capacity, Scheduler};

/// The policy among peers as `[link]` has it.
pub(super) struct Across<'s, 'i> {
    section: Section<'s, 'i>,
    info: &'static PolicyInfo,
    params: Vec<u64>,
    /// Its parameters for a peer that does not give its own.
    row: Vec<u64>,
}

impl<'s, 'i> Across<'s, 'i> {
    /// Reads `link.across`, if it is given.
    pub(super) fn read(link: &mut Section<'s, 'i>) -> Result<Option<Across<'s, 'i>>, Fault> {
        let Some(entry) = link.find("across") else {
            return Ok(None);
        };
        let mut section = table(&entry, "{ policy = \"pf\" }")?;
        let known = linkweir_core::policies().iter();
        let nesting: Vec<&'static PolicyInfo> = known.filter(|info| info.nests()).collect();
        let names: Vec<&str> = nesting.iter().map(|info| info.name).collect();
        let info = nesting[section.need("policy", "\"pf\"")?.choice(&names)?];
        let mut read = |param| parameters::read(&mut section, param);
        let params = info
            .params
            .iter()
            .map(&mut read)
            .collect::<Result<_, _>>()?;
        let row = info
            .qparams
            .iter()
            .map(&mut read)
            .collect::<Result<_, _>>()?;
        section.known()?;
        Ok(Some(Across {
            section,
            info,
            params,
            row,
        }))
    }

    /// Refuses capacities that a shared link cannot have: there, the time of a packet follows from the rate to its peer.
    pub(super) fn fits(&self, capacity: &Capacity, place: &Section<'_, '_>) -> Result<(), Fault> {
        match capacity.offered {
            signal::Capacity::Rate(_) => Ok(()),
            signal::Capacity::Opportunities { .. } => Err(place.fault_at(
                "trace",
                "lists the times at which packets may leave, which peers cannot share; give a trace of rates, t_s,capacity_bps",
            )),
        }
    }

    /// The policy among peers with the `rows` and `sections` of all peers; `fastest_bps` is the first rate it is given.
    pub(super) fn scheduler(
        &self,
        fastest_bps: u64,
        rows: Vec<Vec<u64>>,
        sections: &[Option<Section<'s, 'i>>],
    ) -> Result<Scheduler, Fault> {
        let qparams = rows.concat();
        let places: Vec<&Section<'s, 'i>> = sections
            .iter()
            .map(|section| section.as_ref().unwrap_or(&self.section))
            .collect();
        parameters::check(
            self.info,
            fastest_bps,
            &self.params,
            &qparams,
            &self.section,
            &places,
        )?;
        Ok(Scheduler {
            info: self.info,
            params: self.params.clone(),
            qparams,
        })
    }
}

/// A peer's parameters, and their table if there is one.
pub(super) type PeerParams<'s, 'i> = (Vec<u64>, Option<Section<'s, 'i>>);

/// Reads the parameters of a peer.
pub(super) fn of_peer<'s, 'i>(
    across: Option<&Across<'_, '_>>,
    peer: &mut Section<'s, 'i>,
) -> Result<PeerParams<'s, 'i>, Fault> {
    let entry = peer.find("across");
    let Some(across) = across else {
        return match entry {
            Some(entry) => Err(entry.fault(
                "is only for a link that peers share; write across = { policy = \"pf\" } in [link]",
            )),
            None => Ok((Vec::new(), None)),
        };
    };
    let Some(entry) = entry else {
        return Ok((across.row.clone(), None));
    };
    let mut section = table(&entry, "{ weight = 2 }")?;
    let mut row = across.row.clone();
    for (value, param) in row.iter_mut().zip(&across.info.qparams) {
        if section.find(param.name).is_some() {
            *value = parameters::read(&mut section, param)?;
        }
    }
    section.known()?;
    Ok((row, Some(section)))
}

fn table<'s, 'i>(entry: &Entry<'s, 'i>, example: &str) -> Result<Section<'s, 'i>, Fault> {
    let wanted = || entry.fault(format!("must be a table like {example}"));
    entry.table().ok_or_else(wanted)
}
