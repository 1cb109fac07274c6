// SPDX-License-Identifier: BSD-3-Clause
//! What a class may hold, and whether its flows are isolated: the keys `limit`, `limit_bytes`, `max_age`, `full`, `least`,
//! `flows` and `l4s_step` of scenarios and of gateways.

use linkweir_core::{Full, Isolation, Limit, PolicyInfo, TimeLimit, UNSET};

use crate::fault::Fault;
use crate::keys::form::{Ppm, Whole, Words};
use crate::keys::{Form, Key, Otherwise, Shape};
use crate::reader::{show_ppm, Entry, Section, Value};
use crate::units::{self, Kind};

/// A limit by time, ns.
const TIME_NS: (u64, u64) = (1_000_000, 60_000_000_000);
/// How long packets may wait, ns.
pub const AGE_NS: (u64, u64) = (1_000_000, 3_600_000_000_000);
/// Greatest least share of all classes together, millionths.
pub const MOST_LEAST_PPM: u32 = 900_000;
/// What a full class drops: the packet that comes, or its oldest ones.
pub const ENDS: [&str; 2] = ["tail", "head"];
/// How the flows of a class may be isolated, in the order of [`Isolation::ALL`].
pub const ISOLATIONS: [&str; 3] = [
    Isolation::ALL[0].name(),
    Isolation::ALL[1].name(),
    Isolation::ALL[2].name(),
];
/// How long an L4S packet may wait unmarked, ns: the range of the core's parameter.
pub const STEP_NS: (u64, u64) = (0, 4_000_000_000);
/// Its default, as the tables of keys say: written or left out, it is the same setting.
const DEFAULT_STEP_NS: u64 = 1_000_000;
/// Packets where no limit is given.
const DEFAULT_PKTS: u64 = 1000;

/// The keys, as the table of a class declares them.
pub struct Keys {
    /// Packets, or a time.
    pub limit: &'static Key<Length, Otherwise>,
    /// Bytes.
    pub limit_bytes: &'static Key<Whole, Otherwise>,
    /// How long packets may wait.
    pub max_age: &'static Key<Whole, Otherwise>,
    /// One of [`ENDS`].
    pub full: &'static Key<Words, Otherwise>,
    /// Least share.
    pub least: &'static Key<Ppm, Otherwise>,
    /// One of [`ISOLATIONS`].
    pub flows: &'static Key<Words, Otherwise>,
    /// How long an L4S packet may wait unmarked.
    pub l4s_step: &'static Key<Whole, Otherwise>,
}

/// What differs between classes where nothing is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Defaults {
    /// A limit by time is never below these bytes.
    pub least_bytes: u64,
    /// How long packets may wait, ns; none: for ever.
    pub age_ns: Option<u64>,
}

/// The length of a queue.
pub struct Length {
    /// Most packets.
    pub pkts: u64,
}

/// A length in one of its units.
#[derive(Clone, Copy, Debug)]
pub enum Held {
    /// Packets.
    Pkts(u64),
    /// The time in which the link carries what the queue holds, ns.
    Ns(u64),
}

impl Form for Length {
    type Value = Held;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<Held, Fault> {
        if is_time(entry) {
            return entry.whole(Kind::Time, TIME_NS).map(Held::Ns);
        }
        entry.whole(Kind::Packets, (1, self.pkts)).map(Held::Pkts)
    }

    fn written(&self, value: &Held) -> Value {
        match *value {
            Held::Pkts(pkts) => Value::Whole(pkts, Kind::Packets),
            Held::Ns(ns) => Value::Whole(ns, Kind::Time),
        }
    }

    fn shape(&self) -> Shape {
        Shape::Limit(self.pkts, TIME_NS)
    }
}

/// Reads what a class may hold.
///
/// # Errors
/// A value that is not allowed.
pub fn read(
    section: &mut Section<'_, '_>,
    keys: &Keys,
    defaults: Defaults,
) -> Result<Limit, Fault> {
    let bytes = section.given(keys.limit_bytes)?;
    let held = section.given(keys.limit)?;
    let held = held.or(bytes.is_none().then_some(Held::Pkts(DEFAULT_PKTS)));
    section.write_given(keys.limit, held.as_ref());
    section.write_given(keys.limit_bytes, bytes.as_ref());
    let max_age_ns = section.given(keys.max_age)?.or(defaults.age_ns);
    section.write_given(keys.max_age, max_age_ns.as_ref());
    let end = section.given(keys.full)?.or(max_age_ns.map(|_| 1));
    section.write_given(keys.full, end.as_ref());
    let least_ppm = section.given(keys.least)?;
    section.write_given(keys.least, least_ppm.as_ref());
    let (pkts, time) = match held {
        Some(Held::Pkts(pkts)) => (Some(pkts), None),
        Some(Held::Ns(ns)) => (None, Some(ns)),
        None => (None, None),
    };
    Ok(Limit {
        pkts: pkts.map(|pkts| u32::try_from(pkts).unwrap_or(u32::MAX)),
        bytes,
        time: time.map(|ns| TimeLimit {
            ns,
            least_bytes: defaults.least_bytes,
        }),
        max_age_ns,
        full: if end == Some(1) {
            Full::Head
        } else {
            Full::Tail
        },
        least_ppm: least_ppm.map_or(0, |ppm| u32::try_from(ppm).unwrap_or(MOST_LEAST_PPM)),
    })
}

/// What a policy reserves for a class: a rate, in turns of so many packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// bit/s.
    pub rate_bps: u64,
    /// Packets that the class sends back to back.
    pub burst_pkts: u64,
    /// The largest packet.
    pub packet_bits: u64,
}

impl Reserved {
    /// What a policy with such parameters of a class reserves for it on a link that carries `link_bps`, if that is a part of the
    /// link and its turns follow from `burst`. Only pss has reservations; they are read by the names of its parameters.
    #[must_use]
    pub fn of(info: &PolicyInfo, row: &[u64], link_bps: u64) -> Option<Reserved> {
        let value = |name: &str| row.get(info.qparam(name)?).copied();
        let share = u128::from(link_bps) * u128::from(value("share")?) / 1_000_000;
        let rate_bps = value("rate")?.max(share as u64);
        let by_hand = [value("lr")?, value("lm")?] != [UNSET; 2];
        let is_part = (1..link_bps).contains(&rate_bps);
        (is_part && !by_hand).then_some(Reserved {
            rate_bps,
            burst_pkts: value("burst")?,
            packet_bits: value("mtu")?.saturating_mul(8),
        })
    }
}

/// Packets of a turn that L4S flows inside the class bear, and the packets that one may wait for unmarked (docs/records/l4s.md,
/// "Inside a class").
const L4S_BURST_PKTS: u64 = 2;
const L4S_STEP_PKTS: u64 = 2;
/// Steps are proposed in tenths of a millisecond.
const L4S_ROUND_NS: u64 = 100_000;

/// What starves L4S flows in a class with this reservation, with the cure: while the class waits for its next turn, or for the
/// packets before, its L4S packets wait for longer than their step, so that all are marked.
#[must_use]
pub fn starves_l4s(flows: Isolation, reserved: &Reserved) -> Option<String> {
    let Isolation::DualPi2 { step_ns } = flows else {
        return None;
    };
    let step_ns = step_ns.unwrap_or(DEFAULT_STEP_NS);
    let bits = u128::from(L4S_STEP_PKTS * reserved.packet_bits);
    let needed_ns = (bits * 1_000_000_000).div_ceil(u128::from(reserved.rate_bps.max(1)));
    let needed_ns = u64::try_from(needed_ns).unwrap_or(u64::MAX);
    let needed_ns = needed_ns.min(STEP_NS.1);
    let bursts = reserved.burst_pkts > L4S_BURST_PKTS;
    let marks = step_ns < needed_ns;
    if !bursts && !marks {
        return None;
    }
    let rounded_ns = needed_ns.div_ceil(L4S_ROUND_NS) * L4S_ROUND_NS;
    let step = format!(
        "l4s_step = \"{}\"",
        units::show_whole(rounded_ns, Kind::Time)
    );
    let burst = format!("burst = \"{L4S_BURST_PKTS}p\"");
    let cure = match (bursts, marks) {
        (true, true) => format!("{burst} and {step}"),
        (true, false) => burst,
        _ => step,
    };
    let (pkts, rate) = (
        reserved.burst_pkts,
        units::show_whole(reserved.rate_bps, Kind::Rate),
    );
    let step = units::show_whole(step_ns, Kind::Time);
    Some(format!(
        "in turns of {pkts} packets at {rate}, its L4S packets wait for longer than l4s_step = \"{step}\" and are all marked, so \
         that they get little of the class; write {cure}"
    ))
}

/// Reads how the flows of a class are isolated from each other, below a policy of this name; `nests` says whether its queues
/// may be scheduled by other policies.
///
/// # Errors
/// A value that is not allowed, any under a policy that does not nest, or a step without L4S packets.
pub fn isolation(
    section: &mut Section<'_, '_>,
    keys: &Keys,
    policy: &str,
    nests: bool,
) -> Result<Option<Isolation>, Fault> {
    let step_ns = section.given(keys.l4s_step)?;
    let chosen = section.given(keys.flows)?;
    let isolation = chosen.map(|at| Isolation::ALL[at]);
    let isolation = match (isolation, step_ns) {
        (Some(Isolation::DualPi2 { .. }), _) => Some(Isolation::DualPi2 {
            step_ns: step_ns.filter(|ns| *ns != DEFAULT_STEP_NS),
        }),
        (_, None) => isolation,
        (_, Some(_)) => {
            let message = "is for L4S packets, which the class does not sort; add flows = \"dualpi2\", or leave it out";
            return Err(section.fault_at(keys.l4s_step.name, message));
        }
    };
    section.write_given(keys.l4s_step, step_ns.as_ref());
    let Some(chosen) = chosen else {
        return Ok(None);
    };
    if !nests {
        let known = linkweir_core::policies().iter().filter(|info| info.nests());
        let names: Vec<_> = known.map(|info| info.name).collect();
        return Err(section.fault_at(keys.flows.name, format!(
            "needs a policy that leaves the choice among the packets of a class to another, and {policy} does not; leave flows out, or use one of {}",
            names.join(", ")
        )));
    }
    section.write_given(keys.flows, Some(&chosen));
    Ok(isolation)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The gateway and the simulator take what the policy takes.
    #[test]
    fn the_step_has_the_range_of_the_policys_parameter() {
        let info = Isolation::DualPi2 { step_ns: None }.info();
        let step = &info.params[info.param("step").unwrap()];
        assert_eq!((step.min, step.max), STEP_NS);
        assert_eq!(step.default, DEFAULT_STEP_NS);
    }
}
