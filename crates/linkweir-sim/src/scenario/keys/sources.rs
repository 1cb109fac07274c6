// SPDX-License-Identifier: BSD-3-Clause
//! The kinds of traffic.

use linkweir_config::keys::Treatment::{Carried, LeftOut, Refused, Silent};
use linkweir_config::keys::{Hosts, Table};

use super::kinds;

/// A kind of traffic: the value of `kind` in a table `[[flow]]`.
pub struct Traffic {
    /// Its name.
    pub name: &'static str,
    /// Its keys, beside those that all flows have.
    pub keys: &'static Table,
    /// Which hosts have it.
    pub hosts: Hosts,
}

/// Declares the kinds of traffic. Whoever matches on [`Source`] does not compile before a new kind has an arm.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $name:literal $keys:expr, $hosts:expr;)*) => {
        /// A kind of traffic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Source {
            $($(#[$doc])* $variant,)*
        }

        impl Source {
            /// All kinds, in the order of the reference.
            pub const ALL: &'static [Source] = &[$(Source::$variant),*];

            /// Its name in scenarios.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Source::$variant => $name,)*
                }
            }
        }

        /// The names of all kinds.
        pub const KIND_NAMES: [&str; Source::ALL.len()] = [$($name),*];

        /// All kinds with their keys, in the order of [`Source::ALL`].
        pub static KINDS: [Traffic; Source::ALL.len()] = [
            $(Traffic { name: $name, keys: $keys, hosts: $hosts },)*
        ];
    };
}

const NOT_IN_LABORATORY: &str = "must be cbr, poisson or tcp in the laboratory";
const NOT_IN_NS3: &str = "kind = {value} is left out; cbr, greedy, onoff and tcp have counterparts";
const NEVER_ENOUGH: &str =
    "sends as much as the link takes: no arrival curve unless something shapes it";

const EVERYWHERE: Hosts = Hosts {
    laboratory: Carried,
    gateway: Silent,
    tc: Silent,
    ns3: Carried,
    bounds: Carried,
};
const RANDOM_GAPS: Hosts = Hosts {
    ns3: LeftOut(NOT_IN_NS3),
    bounds: Refused("has random gaps, which may be arbitrarily short"),
    ..EVERYWHERE
};
const BURSTS: Hosts = Hosts {
    laboratory: Refused(NOT_IN_LABORATORY),
    ..EVERYWHERE
};
const GREEDY: Hosts = Hosts {
    bounds: Refused(NEVER_ENOUGH),
    ..BURSTS
};
const TCP: Hosts = Hosts {
    bounds: Refused(NEVER_ENOUGH),
    ..EVERYWHERE
};
const PACKET_TIMES: Hosts = Hosts {
    ns3: LeftOut(NOT_IN_NS3),
    ..BURSTS
};
const APPLICATION: Hosts = Hosts {
    bounds: Refused(NEVER_ENOUGH),
    ..PACKET_TIMES
};

kinds! {
    /// Packets at regular intervals.
    Cbr "cbr" &kinds::CBR, EVERYWHERE;
    /// A Poisson process.
    Poisson "poisson" &kinds::POISSON, RANDOM_GAPS;
    /// Bursts and silences.
    OnOff "onoff" &kinds::ONOFF, BURSTS;
    /// A source that always has packets to send.
    Greedy "greedy" &kinds::GREEDY, GREEDY;
    /// A bulk transfer.
    Tcp "tcp" &kinds::BULK, TCP;
    /// One direction of a call.
    Voice "voice" &kinds::VOICE, PACKET_TIMES;
    /// Recorded packets.
    Replay "replay" &kinds::REPLAY, PACKET_TIMES;
    /// Files of finite size.
    Transfers "transfers" &kinds::TRANSFERS, APPLICATION;
    /// Requests and responses.
    Requests "requests" &kinds::REQUESTS, APPLICATION;
    /// Pages of several objects.
    Web "web" &kinds::WEB, APPLICATION;
    /// Adaptive video.
    Video "video" &kinds::VIDEO, APPLICATION;
}
