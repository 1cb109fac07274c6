// SPDX-License-Identifier: BSD-3-Clause
//! `across`: the policy among peers that share one link, in `[link]`, and its parameters of each peer, in `[[peer]]`.

pub(super) use linkweir_config::across::Across;
use linkweir_config::across::OfUser;
use linkweir_config::keys::gateway::{ACROSS, TRACE};
use linkweir_config::reader::Section;
use linkweir_config::signal;
use linkweir_config::Fault;
use linkweir_plane::setup::{Capacity, Scheduler};

/// Reads `link.across`, if it is given.
pub(super) fn read<'s, 'i>(link: &mut Section<'s, 'i>) -> Result<Option<Across<'s, 'i>>, Fault> {
    let entry = link.find(ACROSS.name);
    entry.map(|entry| Across::read(&entry)).transpose()
}

/// Refuses capacities that a shared link cannot have: there, the time of a packet follows from the rate to its peer.
pub(super) fn fits(capacity: &Capacity, place: &Section<'_, '_>) -> Result<(), Fault> {
    match capacity.offered {
        signal::Capacity::Rate(_) => Ok(()),
        signal::Capacity::Opportunities { .. } => Err(place.fault_at(
            TRACE.name,
            "lists the times at which packets may leave, which peers cannot share; give a trace of rates, t_s,capacity_bps",
        )),
    }
}

/// The policy among peers with the parameters of all peers; `fastest_bps` is the first rate it is given.
pub(super) fn scheduler<'s, 'i>(
    across: &Across<'s, 'i>,
    fastest_bps: u64,
    peers: &[OfUser<'s, 'i>],
) -> Result<Scheduler, Fault> {
    let peers: Vec<&OfUser<'s, 'i>> = peers.iter().collect();
    Ok(Scheduler {
        info: across.info(),
        qparams: across.fit(fastest_bps, &peers)?,
        params: across.params().to_vec(),
    })
}

/// Reads the parameters of a peer.
pub(super) fn of_peer<'s, 'i>(
    across: Option<&Across<'s, 'i>>,
    peer: &mut Section<'s, 'i>,
) -> Result<OfUser<'s, 'i>, Fault> {
    let entry = peer.find(ACROSS.name);
    match (across, entry) {
        (Some(across), entry) => across.of_user(entry),
        (None, Some(entry)) => Err(entry.fault(
            "is only for a link that peers share; write across = { policy = \"pf\" } in [link]",
        )),
        (None, None) => Ok((Vec::new(), None)),
    }
}
