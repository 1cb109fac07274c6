// SPDX-License-Identifier: BSD-3-Clause
//! `[[peer.path]]`: several paths to a peer that are used at once, and how classes use them.

use std::net::{IpAddr, SocketAddr};

use linkweir_config::keys::gateway::{
    CLASS_PATHS, ENDPOINT, PATHS, PATH_COST, PATH_DEVICE, PATH_ENDPOINT, PATH_NAME, PATH_SOURCE,
    PROBE_MTU, RATE, REORDER, RESEND, UNDERLAYS,
};
use linkweir_config::reader::{Entry, Section};
use linkweir_config::signal::{self, Signal};
use linkweir_config::units::{self, Kind};
use linkweir_config::{bond, Fault};
use linkweir_core::MOST_PATHS;
use linkweir_plane::feedback::PathName;
use linkweir_plane::late_paths::MOST_REORDER_NS;
use linkweir_plane::setup::{Capacity, PathSetup, Uses};

use super::capacity;
use super::mode::Mode;
use super::names::{device, endpoint, word};
use super::underlays::Underlay;

/// Keys of a peer that a peer with paths has in each of these, or not at all.
const EXCLUDED: [&str; 3] = [ENDPOINT.name, UNDERLAYS.name, PROBE_MTU.name];
/// Least and greatest time for which packets wait for earlier ones, ns.
pub(super) const REORDER_NS: (u64, u64) = (1_000_000, MOST_REORDER_NS);
/// Repetitions take every second turn of a path: until all have come it takes so many times as long as until they begin.
pub(super) const TURNS: (u64, u64) = (3, 2);

/// Where paths lead, and what they carry.
pub(super) type Read = (Vec<Underlay>, Vec<PathSetup>);

/// Reads the paths to a peer, if it has any. What traces were taken for is added to `told`.
pub(super) fn read(
    peer: &mut Section<'_, '_>,
    (mode, listen): (Mode, SocketAddr),
    told: &mut Vec<String>,
) -> Result<Option<Read>, Fault> {
    let Some(entry) = peer.find(PATHS.name) else {
        return Ok(None);
    };
    if mode == Mode::Cleartext {
        return Err(entry.fault(
            "is only for mode = \"wireguard\": both ends agree on paths inside the tunnel",
        ));
    }
    if !listen.ip().is_unspecified() {
        let any = if listen.is_ipv6() { "[::]" } else { "0.0.0.0" };
        return Err(entry.fault(format!(
            "needs gateway.listen = \"{any}:{}\", as each path has an address of its own",
            listen.port()
        )));
    }
    if let Some(other) = EXCLUDED.into_iter().find_map(|key| peer.stray(key)) {
        return Err(other.fault("and [[peer.path]] exclude each other: leave it out"));
    }
    let entries = entry.list(MOST_PATHS)?;
    let (mut ways, mut paths): Read = (Vec::new(), Vec::new());
    for entry in &entries {
        let (way, path) = path(entry, listen, told)?;
        if ways.iter().any(|other| other.name == way.name) {
            let message = format!("two paths are called {}; rename one", way.name);
            return Err(entry.fault(message));
        }
        let place = |way: &Underlay| (way.endpoint, way.device.clone(), way.source);
        let same = |other: &&Underlay| way.endpoint.is_some() && place(other) == place(&way);
        if let Some(other) = ways.iter().find(same) {
            return Err(entry.fault(format!(
                "is the same path as {}; give it another endpoint, device or source",
                other.name
            )));
        }
        ways.push(way);
        paths.push(path);
    }
    Ok(Some((ways, paths)))
}

fn path(
    entry: &Entry<'_, '_>,
    listen: SocketAddr,
    told: &mut Vec<String>,
) -> Result<(Underlay, PathSetup), Fault> {
    let Some(mut table) = entry.table() else {
        return Err(entry.fault("must be a table [[peer.path]] with a name and a rate"));
    };
    let place = table.entry_of(&PATH_NAME)?;
    let name = word(&place)?;
    if PathName::new(&name).is_none() {
        return Err(place.fault(format!(
            "has {} bytes; the name of a path has at most {}",
            name.len(),
            PathName::MOST_BYTES
        )));
    }
    let (mut at, mut zone) = (None, None);
    if let Some(place) = table.find(PATH_ENDPOINT.name) {
        let (address, of_link) = endpoint(&place, listen)?;
        (at, zone) = (Some(address), of_link);
    }
    let given = table.find(PATH_DEVICE.name);
    let given = given.map(|entry| device(&entry)).transpose()?;
    if let (Some(zone), Some(given)) = (&zone, &given) {
        if zone != given {
            let message =
                format!("names the device {zone}, and device is {given}; write one of them");
            return Err(table.fault_at(PATH_ENDPOINT.name, message));
        }
    }
    let source = table.find(PATH_SOURCE.name);
    let source = source.map(|entry| source_of(&entry, at)).transpose()?;
    let cost = table.take(&PATH_COST)?;
    let Some(capacity) = capacity::read(&mut table, told)? else {
        return Err(table.missing(
            RATE.name,
            "is missing; write rate = \"20Mbit\", or feedback = true",
        ));
    };
    table.finish()?;
    let way = Underlay {
        name: name.clone(),
        endpoint: at,
        device: given.or(zone),
        source,
    };
    let path = PathSetup {
        name,
        capacity,
        cost: u32::try_from(cost).unwrap_or(u32::MAX),
    };
    Ok((way, path))
}

fn source_of(entry: &Entry<'_, '_>, endpoint: Option<SocketAddr>) -> Result<IpAddr, Fault> {
    let source: IpAddr = entry.text()?.parse().map_err(|_| {
        entry.fault("must be an address of this end, like \"192.0.2.2\" or \"2001:db8::2\"")
    })?;
    if endpoint.is_some_and(|at| at.is_ipv6() != source.is_ipv6()) {
        return Err(entry.fault("must be of the same version of IP as endpoint"));
    }
    Ok(source)
}

/// The capacity of all paths together, as far as it is known before the gateway runs.
pub(super) fn sum(paths: &[PathSetup]) -> Capacity {
    let sum = |of: &dyn Fn(&Capacity) -> u64| -> u64 {
        paths.iter().map(|path| of(&path.capacity)).sum()
    };
    let nominal_bps = sum(&|capacity| capacity.nominal_bps);
    Capacity {
        offered: signal::Capacity::Rate(Signal::Constant(nominal_bps as f64)),
        nominal_bps,
        follow: paths.iter().all(|path| path.capacity.follow),
        command: None,
        stale_ns: None,
        floor_bps: sum(&|capacity| capacity.floor_bps),
        feedback: None,
    }
}

/// How a class uses the paths, how long its packets wait for earlier ones, ns, 0 if not at all, and whether they are sent again; without a time
/// they are not numbered.
type UsesOfClass = (Uses, Option<u64>, bool);

/// Reads how a class uses the paths. `resend_ns` is the least `reorder` with which packets that are sent again come in time;
/// none: no peer has paths.
pub(super) fn uses(
    class: &mut Section<'_, '_>,
    resend_ns: Option<u64>,
) -> Result<UsesOfClass, Fault> {
    let uses = match class.find(CLASS_PATHS.name) {
        None => Uses::Best,
        Some(entry) if entry.is_list() => {
            let mut names: Vec<String> = Vec::new();
            for entry in &entry.list(MOST_PATHS)? {
                let name = word(entry)?;
                if names.contains(&name) {
                    return Err(entry.fault("is there twice; leave one of them out"));
                }
                names.push(name);
            }
            Uses::Named(names)
        }
        Some(entry) => match bond::uses(&entry)? {
            0 => Uses::Best,
            1 => Uses::All,
            2 => Uses::Spill,
            _ => Uses::Stripe,
        },
    };
    let given = match class.find(REORDER.name) {
        None => None,
        Some(entry) => Some(bond::reorder(&entry, REORDER_NS)?.unwrap_or(0)),
    };
    let usual_ns = || bond::reorder_ns(uses == Uses::All).unwrap_or(0);
    let numbered = match &uses {
        Uses::All | Uses::Stripe => true,
        Uses::Named(names) => names.len() > 1,
        Uses::Best | Uses::Spill => false,
    };
    let reorder_ns = given.or_else(|| numbered.then(usual_ns));
    let resend = class.take(&RESEND)?;
    if resend && uses == Uses::All {
        let message = "is not for paths = \"all\", of which the other paths have a copy";
        return Err(class.fault_at(RESEND.name, message));
    }
    if let (true, None, Some(resend_ns)) = (resend, reorder_ns, resend_ns) {
        let message = format!(
            "needs reorder, so that the far end can drop what had arrived; write reorder = \"{}\"",
            millis(resend_ns)
        );
        return Err(class.fault_at(RESEND.name, message));
    }
    Ok((uses, reorder_ns, resend))
}

/// How long packets wait for repetitions that begin after a time, ns.
pub(super) fn with_turns(ns: u64) -> u64 {
    ns.saturating_mul(TURNS.0) / TURNS.1
}

/// A time in whole milliseconds, rounded up, as configurations have it.
pub(super) fn millis(ns: u64) -> String {
    let ns = ns.div_ceil(1_000_000).saturating_mul(1_000_000);
    units::show_whole(ns, Kind::Time)
}

/// Whether each peer has paths.
fn have_paths(top: &Section<'_, '_>, peers: usize) -> Vec<bool> {
    let listed = top.stray("peer").and_then(|entry| entry.list(peers).ok());
    let has = |peer: Entry<'_, '_>| {
        peer.table()
            .is_some_and(|peer| peer.stray(PATHS.name).is_some())
    };
    listed.into_iter().flatten().map(has).collect()
}

/// Whether some peer has paths, so that packets may get numbers.
pub(super) fn are_given(top: &Section<'_, '_>, peers: usize) -> bool {
    have_paths(top, peers).contains(&true)
}

/// Whether all peers have paths, so that none uses the capacity of `[link]`.
pub(super) fn are_everywhere(top: &Section<'_, '_>, peers: usize) -> bool {
    let have = have_paths(top, peers);
    !have.is_empty() && !have.contains(&false)
}

/// Refuses classes that use paths where no peer has any, and names that some peer with paths has not. `peers` are those with
/// paths, by name.
pub(super) fn known(
    classes: &[Section<'_, '_>],
    read: &[Uses],
    peers: &[(&str, &[PathSetup])],
) -> Result<(), Fault> {
    for (section, uses) in classes.iter().zip(read) {
        if peers.is_empty() {
            let given = [CLASS_PATHS.name, REORDER.name, RESEND.name];
            match given.into_iter().find_map(|key| section.stray(key)) {
                Some(entry) => return Err(entry.fault(
                    "is only for peers with [[peer.path]]; leave it out, or give a peer [[peer.path]]",
                )),
                None => continue,
            }
        }
        let Uses::Named(names) = uses else {
            continue;
        };
        for name in names {
            let mut lacking = peers
                .iter()
                .filter(|(_, paths)| paths.iter().all(|path| path.name != *name));
            if let Some((peer, paths)) = lacking.next() {
                let there: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
                return Err(section.fault_at(
                    CLASS_PATHS.name,
                    format!(
                        "peer \"{peer}\" has no path {name}; it has {}{}",
                        there.join(", "),
                        bond::meant(name)
                    ),
                ));
            }
        }
    }
    Ok(())
}
