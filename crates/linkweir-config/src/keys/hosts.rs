// SPDX-License-Identifier: BSD-3-Clause
//! What each host does with a key of a scenario.

/// What a host does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It has the same.
    Carried,
    /// It has something else in its place; the words that users see say what.
    Adapted(&'static str),
    /// It has nothing in its place, and goes on without; the words that users see say why.
    LeftOut(&'static str),
    /// It does not go on; the words that users see say what to do.
    Refused(&'static str),
    /// It has no use for the key, and needs no word about it.
    Silent,
}

/// A decision for every host but the simulator, which has all keys.
///
/// In words, `{key}` is the key, `{value}` its value, `{nominal}` is `link.nominal`, and `{what}` what gets a rate there. Users
/// see them only if the value is not the default or, without one, is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// `linkweir lab run`: Linux in virtual time.
    pub laboratory: Treatment,
    /// `linkweir export gateway`.
    pub gateway: Treatment,
    /// `linkweir export tc`.
    pub tc: Treatment,
    /// `linkweir export ns3`.
    pub ns3: Treatment,
    /// `linkweir bounds`, and `linkweir plan` with wishes.
    pub bounds: Treatment,
}

impl Hosts {
    /// The hosts with their decisions, by the names of the commands.
    #[must_use]
    pub fn by_name(&self) -> [(&'static str, Treatment); 5] {
        let Hosts {
            laboratory,
            gateway,
            tc,
            ns3,
            bounds,
        } = *self;
        [
            ("laboratory", laboratory),
            ("gateway", gateway),
            ("tc", tc),
            ("ns3", ns3),
            ("bounds", bounds),
        ]
    }

    /// The same, but for the laboratory.
    #[must_use]
    pub const fn in_laboratory(self, laboratory: Treatment) -> Hosts {
        Hosts { laboratory, ..self }
    }

    /// The same, but for ns-3.
    #[must_use]
    pub const fn in_ns3(self, ns3: Treatment) -> Hosts {
        Hosts { ns3, ..self }
    }

    /// The same, but for bounds.
    #[must_use]
    pub const fn in_bounds(self, bounds: Treatment) -> Hosts {
        Hosts { bounds, ..self }
    }
}

/// A key that every host has.
pub const CARRIED: Hosts = Hosts {
    laboratory: Treatment::Carried,
    gateway: Treatment::Carried,
    tc: Treatment::Carried,
    ns3: Treatment::Carried,
    bounds: Treatment::Carried,
};

/// A key that goes with another one, whose decision is also its own.
pub const WITH_ANOTHER: Hosts = Hosts {
    laboratory: Treatment::Silent,
    gateway: Treatment::Silent,
    tc: Treatment::Silent,
    ns3: Treatment::Silent,
    bounds: Treatment::Silent,
};

impl Treatment {
    /// Its name, and the words that users see.
    #[must_use]
    pub fn parts(self) -> (&'static str, Option<&'static str>) {
        match self {
            Treatment::Carried => ("carried", None),
            Treatment::Adapted(words) => ("adapted", Some(words)),
            Treatment::LeftOut(words) => ("left_out", Some(words)),
            Treatment::Refused(words) => ("refused", Some(words)),
            Treatment::Silent => ("silent", None),
        }
    }
}
