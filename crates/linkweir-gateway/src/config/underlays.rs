// SPDX-License-Identifier: BSD-3-Clause
//! `underlays` of a peer: several ways to it, such as Starlink and LTE.

use std::net::SocketAddr;

use linkweir_config::reader::{Entry, Section};
use linkweir_config::units::Kind;
use linkweir_config::Fault;
use linkweir_plane::underlays::Probing;

use super::mode::Mode;
use super::names::{device, endpoint, word};

/// One of several ways to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Underlay {
    /// Its name in messages and figures.
    pub name: String,
    /// Where its datagrams are sent.
    pub endpoint: SocketAddr,
    /// The device through which they are sent; none: the one to which the routes lead.
    pub device: Option<String>,
}

/// Most ways to a peer.
const MOST: usize = 8;
const S: u64 = 1_000_000_000;
const DEFAULT: Probing = Probing {
    every_ns: S / 5,
    // With the time between probes it is less than a second from the first that has no answer.
    failover_ns: S * 4 / 5,
    failback_ns: 10 * S,
};

/// Reads the ways to a peer and when they are probed, if there are several.
pub(super) fn read(
    peer: &mut Section<'_, '_>,
    mode: Mode,
    listen: SocketAddr,
) -> Result<(Vec<Underlay>, Option<Probing>), Fault> {
    let probe = peer.find("probe");
    let Some(entry) = peer.find("underlays") else {
        return match probe {
            Some(probe) => Err(probe.fault("is only for a peer with underlays")),
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
    Ok((ways, Some(probing(probe.as_ref())?)))
}

fn way(entry: &Entry<'_, '_>, listen: SocketAddr) -> Result<Underlay, Fault> {
    const EXAMPLE: &str = "{ name = \"lte\", endpoint = \"192.0.2.1:51820\", device = \"wwan0\" }";
    let Some(mut table) = entry.table() else {
        return Err(entry.fault(format!("must be a table like {EXAMPLE}")));
    };
    let name = word(&table.need("name", "\"lte\"")?)?;
    let place = table.need("endpoint", "\"192.0.2.1:51820\"")?;
    let (endpoint, zone) = endpoint(&place, listen)?;
    let given = table.find("device");
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
        endpoint,
        device: given.or(zone),
    };
    table.finish()?;
    Ok(way)
}

fn probing(entry: Option<&Entry<'_, '_>>) -> Result<Probing, Fault> {
    let Some(entry) = entry else {
        return Ok(DEFAULT);
    };
    let Some(mut table) = entry.table() else {
        return Err(entry.fault("must be a table like { failover = \"800ms\" }"));
    };
    let every_ns = table.whole("every", Kind::Time, (S / 20, 10 * S), DEFAULT.every_ns)?;
    let failover_ns = table.whole(
        "failover",
        Kind::Time,
        (S / 10, 60 * S),
        DEFAULT.failover_ns,
    )?;
    let failback_ns = table.whole(
        "failback",
        Kind::Time,
        (S / 10, 3600 * S),
        DEFAULT.failback_ns,
    )?;
    if failover_ns < every_ns {
        return Err(table.fault_at(
            "failover",
            "must not be shorter than every, the time between two probes",
        ));
    }
    table.finish()?;
    Ok(Probing {
        every_ns,
        failover_ns,
        failback_ns,
    })
}
