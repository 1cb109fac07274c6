// SPDX-License-Identifier: BSD-3-Clause
//! What the core declares about its policies: names, parameters with units and ranges, statistics.

use std::ffi::{c_char, CStr};
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use crate::ffi;

/// A parameter that was not given.
pub const UNSET: u64 = u64::MAX;
/// Most queues a policy may have.
pub const MAX_QUEUES: usize = 65536;
/// Packets are shorter than this.
pub const MAX_PACKET_BYTES: u32 = 1 << 20;
/// Least rate of a link, and of a channel that is not blocked, bit/s.
pub const MIN_RATE_BPS: u64 = 1;
/// Greatest rate of a link or a channel, bit/s.
pub const MAX_RATE_BPS: u64 = 1_000_000_000_000;
/// Latest time, ns.
pub const MAX_NOW_NS: u64 = 1 << 62;
/// Most packets dropped for one arrival: so many victims, and so many expired packets to make room.
pub const MOST_DROPS: u32 = 64;

/// Unit of a parameter or statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Unit {
    /// A pure number.
    Number,
    /// Bit per second.
    Bps,
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Bits.
    Bits,
    /// Packets.
    Pkts,
    /// Millionths.
    Ppm,
    /// Index into the parameter's choices.
    Choice,
}

impl Unit {
    /// The unit of a number of `enum lw_unit`.
    #[must_use]
    pub fn from_number(raw: u32) -> Option<Unit> {
        match raw {
            0 => Some(Unit::Number),
            1 => Some(Unit::Bps),
            2 => Some(Unit::Ns),
            3 => Some(Unit::Bytes),
            4 => Some(Unit::Bits),
            5 => Some(Unit::Pkts),
            6 => Some(Unit::Ppm),
            7 => Some(Unit::Choice),
            _ => None,
        }
    }

    fn new(raw: u32) -> Unit {
        Unit::from_number(raw).unwrap_or_else(|| {
            panic!("the core declares unit {raw}, which this wrapper does not know")
        })
    }

    /// How the unit is written behind a number; empty for pure numbers and choices.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Number | Unit::Choice => "",
            Unit::Bps => "bit/s",
            Unit::Ns => "ns",
            Unit::Bytes => "bytes",
            Unit::Bits => "bits",
            Unit::Pkts => "packets",
            Unit::Ppm => "ppm",
        }
    }

    /// Ending of a column's name that holds values of this unit.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Number | Unit::Choice => "",
            Unit::Bps => "_bps",
            Unit::Ns => "_ns",
            Unit::Bytes => "_bytes",
            Unit::Bits => "_bits",
            Unit::Pkts => "_pkts",
            Unit::Ppm => "_ppm",
        }
    }
}

/// Declaration of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Words of a [`Unit::Choice`] in the order of their values; empty for other units.
    pub choices: Vec<&'static str>,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Default; [`UNSET`] when the parameter may be left out.
    pub default: u64,
    /// Whether a running policy keeps the value it started with.
    pub at_init: bool,
}

impl Param {
    /// Whether the value is in the range, or is [`UNSET`] and may be.
    #[must_use]
    pub fn admits(&self, value: u64) -> bool {
        (self.min..=self.max).contains(&value) || (value == UNSET && self.default == UNSET)
    }

    /// The range as people read it.
    #[must_use]
    pub fn range(&self) -> String {
        if self.unit == Unit::Choice {
            return self.choices.join(" | ");
        }
        let unit = self.unit.symbol();
        let space = if unit.is_empty() { "" } else { " " };
        format!("{} .. {}{space}{unit}", self.min, self.max)
    }

    /// A value as people read it.
    #[must_use]
    pub fn show(&self, value: u64) -> String {
        if value == UNSET {
            return "unset".to_owned();
        }
        if self.unit == Unit::Choice {
            if let Some(word) = usize::try_from(value)
                .ok()
                .and_then(|i| self.choices.get(i))
            {
                return (*word).to_owned();
            }
        }
        let unit = self.unit.symbol();
        let space = if unit.is_empty() { "" } else { " " };
        format!("{value}{space}{unit}")
    }
}

/// Declaration of a value that a policy reports for each queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// Its unit.
    pub unit: Unit,
}

/// Declaration of a policy, wherever it is: its name, its parameters and what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// Parameters of the policy.
    pub params: Vec<Param>,
    /// Parameters of each queue.
    pub qparams: Vec<Param>,
    /// Values it reports for each queue.
    pub stats: Vec<Stat>,
    /// Most queues it serves.
    pub max_queues: usize,
    /// Whether rates do not influence its choices, except that a rate of 0 blocks a channel.
    pub ignores_rates: bool,
    /// Whether queues whose `l4s` is yes hold the packets with ECT(1) or CE, all others the rest. Hosts that cannot sort packets
    /// so refuse the policy.
    pub sorted_by_ecn: bool,
    /// Index of the parameter that says how many packets all queues hold together, if it has such a limit.
    pub shared_limit: Option<usize>,
}

impl Declaration {
    /// Defaults of the policy's parameters.
    #[must_use]
    pub fn default_params(&self) -> Vec<u64> {
        self.params.iter().map(|p| p.default).collect()
    }

    /// Defaults of the per-queue parameters, one row per queue.
    #[must_use]
    pub fn default_qparams(&self, nqueues: usize) -> Vec<u64> {
        let row: Vec<u64> = self.qparams.iter().map(|p| p.default).collect();
        row.repeat(nqueues)
    }

    /// Index of a parameter of the policy.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    /// Index of a per-queue parameter.
    #[must_use]
    pub fn qparam(&self, name: &str) -> Option<usize> {
        self.qparams.iter().position(|p| p.name == name)
    }
}

/// A policy in C: its declaration and its functions.
pub struct PolicyInfo {
    declaration: Declaration,
    pub(crate) table: &'static ffi::Policy,
}

impl Deref for PolicyInfo {
    type Target = Declaration;

    fn deref(&self) -> &Declaration {
        &self.declaration
    }
}

impl fmt::Debug for PolicyInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyInfo")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl PolicyInfo {
    /// Whether each of its queues may represent several queues that another policy schedules. Then it must not drop tails,
    /// because only the other policy knows which packet is last. Nor may a verdict on a head change its state, because the
    /// other policy may drop a packet that this one let pass: so whether it drops heads must be answered by `expired`,
    /// which only reads the state.
    #[must_use]
    pub fn nests(&self) -> bool {
        self.table.victim.is_none() && self.table.leaving.is_some() == self.table.expired.is_some()
    }

    /// Whether classes can be withheld from it for a moment ([`Mux::allow`](crate::Mux::allow)) without a trace, as the paths of
    /// a [bond](crate::Bond) need it. A policy that keeps its queues in lists cannot: a queue that was blocked joins the list
    /// at its tail and has lost its turn, or its deficit. One that keeps means rounds them whenever a rate changes. Of a policy
    /// from a file this is not known.
    #[must_use]
    pub fn bonds(&self) -> bool {
        const FORGETFUL: [&str; 5] = ["strict", "fifo", "codel", "pss", "pds"];
        FORGETFUL.contains(&self.name)
            && policies()
                .iter()
                .any(|own| std::ptr::eq(own.table, self.table))
    }
}

/// Every policy of the core, in its own order.
pub fn policies() -> &'static [PolicyInfo] {
    static LIST: OnceLock<Vec<PolicyInfo>> = OnceLock::new();
    LIST.get_or_init(|| {
        // SAFETY: the core's registry is a constant array of lw_npolicies pointers, none of them null.
        let rows = unsafe {
            std::slice::from_raw_parts(
                (&raw const ffi::lw_policies).cast::<ffi::Row>(),
                ffi::lw_npolicies as usize,
            )
        };
        // SAFETY: every row points to a constant table of static lifetime.
        rows.iter()
            .map(|row| describe(unsafe { &*row.0 }))
            .collect()
    })
}

/// The policy of this name.
#[must_use]
pub fn policy(name: &str) -> Option<&'static PolicyInfo> {
    policies().iter().find(|p| p.name == name)
}

pub(crate) fn describe(table: &'static ffi::Policy) -> PolicyInfo {
    // SAFETY: the pointers of a policy table lead to NUL-terminated literals and to arrays of the stated lengths, all
    // of them constant data of static lifetime.
    let (name, help, shared_limit, params, qparams, stats) = unsafe {
        (
            text(table.name).expect("a policy has a name"),
            text(table.help),
            text(table.shared_limit),
            array(table.params, table.nparams),
            array(table.qparams, table.nqparams),
            array(table.stats, table.nstats),
        )
    };
    assert_eq!(
        table.abi,
        ffi::ABI,
        "policy {name} was compiled for another version of the contract"
    );
    let params: Vec<Param> = params.iter().map(param).collect();
    let declaration = Declaration {
        name,
        help: help.unwrap_or(""),
        max_queues: table.max_queues as usize,
        ignores_rates: table.traits & ffi::IGNORES_RATES != 0,
        sorted_by_ecn: table.traits & ffi::SORTED_BY_ECN != 0,
        shared_limit: shared_limit.map(|name| {
            let at = params.iter().position(|param| param.name == name);
            at.expect("the shared limit is a parameter of the policy")
        }),
        params,
        qparams: qparams.iter().map(param).collect(),
        stats: stats.iter().map(stat).collect(),
    };
    PolicyInfo { declaration, table }
}

fn param(raw: &'static ffi::Param) -> Param {
    // SAFETY: the texts of a parameter are null or NUL-terminated literals.
    let (name, help, choices) = unsafe { (text(raw.name), text(raw.help), text(raw.choices)) };
    Param {
        name: name.expect("a parameter has a name"),
        help: help.unwrap_or(""),
        unit: Unit::new(raw.unit),
        choices: choices.map(|c| c.split('|').collect()).unwrap_or_default(),
        min: raw.min,
        max: raw.max,
        default: raw.def,
        at_init: raw.flags & ffi::AT_INIT != 0,
    }
}

fn stat(raw: &'static ffi::Stat) -> Stat {
    // SAFETY: the texts of a statistic are null or NUL-terminated literals.
    let (name, help) = unsafe { (text(raw.name), text(raw.help)) };
    Stat {
        name: name.expect("a statistic has a name"),
        help: help.unwrap_or(""),
        unit: Unit::new(raw.unit),
    }
}

/// # Safety
/// `first` is null or the first of `count` values that live as long as the program and are never written.
unsafe fn array<T>(first: *const T, count: u32) -> &'static [T] {
    if count == 0 {
        return &[];
    }
    assert!(!first.is_null(), "a table of the core misses its rows");
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

/// # Safety
/// `raw` is null or a NUL-terminated text that lives as long as the program and is never written.
pub(crate) unsafe fn text(raw: *const c_char) -> Option<&'static str> {
    if raw.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(raw) };
    Some(text.to_str().expect("the core's texts are UTF-8"))
}
