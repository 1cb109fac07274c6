// SPDX-License-Identifier: BSD-3-Clause
//! What a class may hold, and whether its flows are isolated: the keys `limit`, `limit_bytes`, `max_age`, `full`, `least` and
//! `flows` of scenarios and of gateways.

use linkweir_core::{Full, Isolation, Limit, TimeLimit};

use crate::reader::{show_ppm, Entry, Section, Value};
use crate::units::{self, Kind};
use crate::Fault;

/// A limit by time, ns.
const TIME_NS: (u64, u64) = (1_000_000, 60_000_000_000);
/// How long packets may wait, ns.
pub const AGE_NS: (u64, u64) = (1_000_000, 3_600_000_000_000);
/// Greatest least share of all classes together, millionths.
pub const MOST_LEAST_PPM: u32 = 900_000;
const ENDS: [&str; 2] = ["tail", "head"];

/// What differs between scenarios and gateways.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Most packets.
    pub pkts: u64,
    /// Most bytes.
    pub bytes: u64,
    /// Packets where no limit is given.
    pub default_pkts: u64,
    /// A limit by time is never below these bytes.
    pub least_bytes: u64,
    /// How long packets may wait where nothing is said, ns; none: for ever.
    pub default_age_ns: Option<u64>,
}

/// Reads what a class may hold.
///
/// # Errors
/// A value that is not allowed.
pub fn read(section: &mut Section<'_, '_>, bounds: Bounds) -> Result<Limit, Fault> {
    let bytes = match section.find("limit_bytes") {
        Some(entry) => Some(entry.whole(Kind::Size, (1, bounds.bytes))?),
        None => None,
    };
    let mut time = None;
    let pkts = match section.find("limit") {
        Some(entry) if is_time(&entry) => {
            let ns = entry.whole(Kind::Time, TIME_NS)?;
            section.write("limit", Value::Whole(ns, Kind::Time));
            time = Some(TimeLimit {
                ns,
                least_bytes: bounds.least_bytes,
            });
            None
        }
        Some(entry) => Some(entry.whole(Kind::Packets, (1, bounds.pkts))?),
        None if bytes.is_some() => None,
        None => Some(bounds.default_pkts),
    };
    if let Some(pkts) = pkts {
        section.write("limit", Value::Whole(pkts, Kind::Packets));
    }
    if let Some(bytes) = bytes {
        section.write("limit_bytes", Value::Whole(bytes, Kind::Size));
    }
    let max_age_ns = match section.find("max_age") {
        Some(entry) => Some(entry.whole(Kind::Time, AGE_NS)?),
        None => bounds.default_age_ns,
    };
    if let Some(ns) = max_age_ns {
        section.write("max_age", Value::Whole(ns, Kind::Time));
    }
    let end = match section.find("full") {
        Some(entry) => Some(entry.choice(&ENDS)?),
        None => max_age_ns.map(|_| 1),
    };
    if let Some(end) = end {
        section.write("full", ENDS[end]);
    }
    let least_ppm = match section.find("least") {
        Some(entry) => {
            let ppm = entry.ppm((0, MOST_LEAST_PPM.into()))?;
            section.write("least", Value::Ppm(ppm));
            u32::try_from(ppm).unwrap_or(MOST_LEAST_PPM)
        }
        None => 0,
    };
    Ok(Limit {
        pkts: pkts.map(|pkts| u32::try_from(pkts).unwrap_or(u32::MAX)),
        bytes,
        time,
        max_age_ns,
        full: if end == Some(1) {
            Full::Head
        } else {
            Full::Tail
        },
        least_ppm,
    })
}

/// Reads how the flows of a class are isolated from each other, below a policy of this name; `nests` says whether its queues
/// may be scheduled by other policies.
///
/// # Errors
/// A value that is not allowed, or any under a policy that does not nest.
pub fn isolation(
    section: &mut Section<'_, '_>,
    policy: &str,
    nests: bool,
) -> Result<Option<Isolation>, Fault> {
    let Some(entry) = section.find("flows") else {
        return Ok(None);
    };
    let isolation = Isolation::ALL[entry.choice(&Isolation::ALL.map(Isolation::name))?];
    if !nests {
        let known = linkweir_core::policies().iter().filter(|info| info.nests());
        let names: Vec<_> = known.map(|info| info.name).collect();
        return Err(entry.fault(format!(
            "needs a policy that leaves the choice among the packets of a class to another, and {policy} does not; leave flows out, or use one of {}",
            names.join(", ")
        )));
    }
    section.write("flows", isolation.name());
    Ok(Some(isolation))
}

/// Refuses least shares that leave the policy too little.
///
/// # Errors
/// When they are too much together; the fault is at the last of them.
pub fn shares<'l>(
    limits: impl Iterator<Item = &'l Limit>,
    last: impl FnOnce(&str) -> Fault,
) -> Result<(), Fault> {
    let sum: u64 = limits.map(|limit| u64::from(limit.least_ppm)).sum();
    if sum <= u64::from(MOST_LEAST_PPM) {
        return Ok(());
    }
    Err(last(&format!(
        "must leave the policy something: with the other classes it is {}, and at most {} may be",
        show_ppm(sum),
        show_ppm(MOST_LEAST_PPM.into())
    )))
}

/// What a limit is in words, with the units of configurations.
#[must_use]
pub fn describe(limit: &Limit) -> String {
    let mut words = Vec::new();
    if let Some(pkts) = limit.pkts {
        words.push(units::show_whole(pkts.into(), Kind::Packets));
    }
    if let Some(time) = limit.time {
        words.push(units::show_whole(time.ns, Kind::Time));
    } else if let Some(bytes) = limit.bytes {
        words.push(units::show_whole(bytes, Kind::Size));
    }
    let mut text = format!("limit {}", words.join(" and "));
    if let Some(ns) = limit.max_age_ns {
        text.push_str(&format!(", max_age {}", units::show_whole(ns, Kind::Time)));
    }
    text.push_str(&format!(", full {}", end_of(limit)));
    if limit.least_ppm > 0 {
        text.push_str(&format!(", least {}", show_ppm(limit.least_ppm.into())));
    }
    text
}

/// The end that a full class drops.
#[must_use]
pub fn end_of(limit: &Limit) -> &'static str {
    ENDS[usize::from(limit.full == Full::Head)]
}

fn is_time(entry: &Entry<'_, '_>) -> bool {
    entry
        .text()
        .is_ok_and(|text| units::parse(text, Kind::Time).is_ok())
}
