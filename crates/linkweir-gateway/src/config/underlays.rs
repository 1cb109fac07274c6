// SPDX-License-Identifier: BSD-3-Clause
//! `underlays` of a peer: several ways to it, such as Starlink and LTE.

use std::net::{IpAddr, SocketAddr};

use linkweir_config::keys::gateway::{
    EVERY, FAILBACK, FAILOVER, PROBE, UNDERLAYS, UNDERLAY_DEVICE, UNDERLAY_ENDPOINT, UNDERLAY_NAME,
};
use linkweir_config::reader::{Entry, Section};
use linkweir_config::Fault;
use linkweir_plane::underlays::Probing;

use super::mode::Mode;
use super::names::{device, endpoint, word};

/// One of several ways to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Underlay {
    /// Its name in messages and figures.
    pub name: String,
    /// Where its datagrams are sent; none: the peer must send over it first, which is only for a path.
    pub endpoint: Option<SocketAddr>,
    /// The device through which they are sent; none: the one to which the routes lead.
    pub device: Option<String>,
    /// The address of this end that they are sent from; none: the system chooses one.
    pub source: Option<IpAddr>,
}

/// Most ways to a peer.
const MOST: usize = 8;
/// Time between two probes, and how long one may have no answer, ns. Of one underlay at a time it is less than a second from the
/// first probe that has no answer; of paths used at once less than 300 ms, at a higher cost.
const OF_UNDERLAYS: (u64, u64) = (200_000_000, 800_000_000);
const OF_PATHS: (u64, u64) = (50_000_000, 200_000_000);

/// Reads the ways to a peer and when they are probed, if there are several.
pub(super) fn read(
    peer: &mut Section<'_, '_>,
    mode: Mode,
    listen: SocketAddr,
) -> Result<(Vec<Underlay>, Option<Probing>), Fault> {
    let probe = peer.find(PROBE.name);
    let Some(entry) = peer.find(UNDERLAYS.name) else {
        return match probe {
            Some(probe) => Err(probe.fault("is only for a peer with underlays or paths")),
            None => Ok((Vec::new(), None)),
        };
    };
    if mode == Mode::Cleartext {
        return Err(entry.fault("is only for mode = \"wireguard\": in cleartext mode a peer is known by its one endpoint"));
    }
    if !listen.ip().is_unspecified() {
        let any = if listen.is_ipv6() { "[::]" } else { "0.0.0.0" };
        return Err(entry.fault(format!(
            "needs gateway.listen = \"{any}:{}\", as each way has an address of its own",
            listen.port()
        )));
    }
    let entries = entry.list(MOST)?;
    if entries.len() < 2 {
        return Err(entry.fault("must list two ways or more; for one write endpoint"));
    }
    let mut ways: Vec<Underlay> = Vec::new();
    for entry in &entries {
        let way = way(entry, listen)?;
        if ways.iter().any(|other| other.name == way.name) {
            return Err(entry.fault(format!("two ways are called {}; rename one", way.name)));
        }
        let same =
            |other: &&Underlay| (other.endpoint, &other.device) == (way.endpoint, &way.device);
        if let Some(other) = ways.iter().find(same) {
            return Err(entry.fault(format!(
                "is the same way as {}; give it another endpoint or device",
                other.name
            )));
        }
        ways.push(way);
    }
    Ok((ways, Some(probing(probe.as_ref(), false)?)))
}

/// Reads when the paths to a peer are probed.
pub(super) fn of_paths(peer: &mut Section<'_, '_>) -> Result<Probing, Fault> {
    let probe = peer.find(PROBE.name);
    probing(probe.as_ref(), true)
}

fn way(entry: &Entry<'_, '_>, listen: SocketAddr) -> Result<Underlay, Fault> {
    const EXAMPLE: &str = "{ name = \"lte\", endpoint = \"192.0.2.1:51820\", device = \"wwan0\" }";
    let Some(mut table) = entry.table() else {
        return Err(entry.fault(format!("must be a table like {EXAMPLE}")));
    };
    let name = word(&table.entry_of(&UNDERLAY_NAME)?)?;
    let place = table.entry_of(&UNDERLAY_ENDPOINT)?;
    let (endpoint, zone) = endpoint(&place, listen)?;
    let given = table.find(UNDERLAY_DEVICE.name);
    let given = given.map(|entry| device(&entry)).transpose()?;
    if let (Some(zone), Some(given)) = (&zone, &given) {
        if zone != given {
            return Err(place.fault(format!(
                "names the device {zone}, and device is {given}; write one of them"
            )));
        }
    }
    let way = Underlay {
        name,
        endpoint: Some(endpoint),
        device: given.or(zone),
        source: None,
    };
    table.finish()?;
    Ok(way)
}

fn probing(entry: Option<&Entry<'_, '_>>, at_once: bool) -> Result<Probing, Fault> {
    let (every_ns, failover_ns) = if at_once { OF_PATHS } else { OF_UNDERLAYS };
    let mut probing = Probing {
        every_ns,
        failover_ns,
        failback_ns: FAILBACK.default.0,
        at_once,
    };
    let Some(entry) = entry else {
        return Ok(probing);
    };
    let Some(mut table) = entry.table() else {
        return Err(entry.fault("must be a table like { failover = \"800ms\" }"));
    };
    probing.every_ns = table.given(&EVERY)?.unwrap_or(every_ns);
    probing.failover_ns = table.given(&FAILOVER)?.unwrap_or(failover_ns);
    probing.failback_ns = table.take(&FAILBACK)?;
    if probing.failover_ns < probing.every_ns {
        return Err(table.fault_at(
            FAILOVER.name,
            "must not be shorter than every, the time between two probes",
        ));
    }
    table.finish()?;
    Ok(probing)
}
