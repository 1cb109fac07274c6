// SPDX-License-Identifier: BSD-3-Clause
//! The table `[link]`.

use linkweir_config::keys;
use linkweir_config::keys::form::{Flag, Number, Quantity, Signed, Small, Special, Text, Whole};
use linkweir_config::keys::hosts::{CARRIED, WITH_ANOTHER};
use linkweir_config::keys::Treatment::{Adapted, Carried, LeftOut, Refused, Silent};
use linkweir_config::keys::{Hosts, Shape};
use linkweir_config::signal::Signal;
use linkweir_config::trace;
use linkweir_config::units::Kind;
use linkweir_config::values::Values;

use super::super::limits;

const REAL_LINK: &str = "{key}: the real link has its own";
const FADES: &str = "{key}: the real link fades by itself; {what} gets nominal = {nominal}";
const NOTHING_FOR_IT: &str = "{key}: left out, the program has nothing for it";
/// What the packet meets behind the scheduler.
const OF_THE_PATH: Hosts = Hosts {
    laboratory: Carried,
    gateway: LeftOut(REAL_LINK),
    tc: LeftOut(REAL_LINK),
    ns3: Carried,
    bounds: Silent,
};
const LOSSES: Hosts = Hosts {
    ns3: LeftOut(NOTHING_FOR_IT),
    ..OF_THE_PATH
};
/// Both directions have one delay in ns-3.
const RETURN: Hosts = Hosts {
    ns3: Adapted("{key} = {value}: both directions have the delay {delay}"),
    ..OF_THE_PATH
};
/// A channel that only the simulator models.
const MODEL: Hosts = Hosts {
    laboratory: Refused("is not there in the laboratory; run this one in the simulator"),
    gateway: LeftOut(FADES),
    tc: LeftOut(FADES),
    ns3: LeftOut(NOTHING_FOR_IT),
    bounds: Refused("no bound is known for a link with [{key}]"),
};
const DEVICE: &str = "{key} = {value}: the packets in a device's ring are those of its driver";
const OF_THE_DEVICE: Hosts = Hosts {
    laboratory: Refused("must be 1 in the laboratory"),
    gateway: Adapted(DEVICE),
    tc: Adapted(DEVICE),
    ns3: Carried,
    bounds: Carried,
};
const LEAST_LENGTH: Hosts = Hosts {
    laboratory: Refused("must be 0B in the laboratory"),
    ns3: LeftOut(NOTHING_FOR_IT),
    ..CARRIED
};
/// A qdisc is told a new rate by who changes it.
const REPORTED: Hosts = Hosts {
    tc: Silent,
    ..CARRIED
};

keys! {
    /// The one bottleneck link, with the scheduler in front of it.
    LINK "link" after [&keys::link::CAPACITY, &trace::keys::DESCRIBED] {
        NOMINAL "nominal": Whole { kind: Kind::Rate, min: limits::NOMINAL_MIN_BPS, max: limits::RATE_BPS }, computed("the mean capacity"), CARRIED,
            "capacity that the scheduler is configured with";
        FOLLOW "follow": Flag {}, usual(false), REPORTED,
            "whether the scheduler is notified of every change of the capacity; not with `satellite`";
        DELAY "delay": Values { kind: Kind::Seconds, min: 0.0, max: limits::DELAY_S }, usual(Signal::Constant(0.0)), OF_THE_PATH,
            "one-way propagation delay; packets never overtake each other; not with a satellite's delays";
        RETURN_DELAY "return_delay": Whole { kind: Kind::Time, min: 0, max: limits::DELAY_NS }, computed("the delay at the start"), RETURN,
            "propagation delay of acknowledgements; not with a satellite's delays";
        LOSS "loss": Special { shape: Shape::Losses(&BURSTS) }, computed("`0.0`"), LOSSES,
            "probability that a packet is lost on the link, after the scheduler; not with `satellite`";
        REORDER "reorder": Special { shape: Shape::Nested(&REORDERED) }, otherwise("none"), LOSSES,
            "holds some packets back so that later ones overtake them, see [below](#losses-in-bursts-and-reordering); not with `satellite` and `beam`";
        RING "ring": Number { min: 1, max: limits::RING_PKTS }, usual(1), OF_THE_DEVICE,
            "size of the device's transmit ring: packets it takes from the scheduler at once; it takes more when all have been sent";
        OVERHEAD "overhead": Signed { kind: Kind::Size, most: 1_000 }, usual(0), CARRIED,
            "bytes added to every packet on the wire; not with `satellite`";
        MPU "mpu": Small { kind: Kind::Size, min: 0, max: limits::PACKET_BYTES }, usual(0), LEAST_LENGTH,
            "minimum packet unit: a smaller packet takes this size on the wire, overhead included; not with `satellite`";
        SATELLITE "satellite": Special { shape: Shape::Nested(&super::satellite::SATELLITE) }, otherwise("none"), MODEL,
            "the link is the hop from a satellite to moving users, see [below](#linksatellite)";
        BEAM "beam": Special { shape: Shape::Nested(&super::beam::BEAM) }, otherwise("none"), MODEL,
            "the link is a satellite's beam to terminals in rain, see [below](#linkbeam); not with `satellite`";
    }
}

/// A host with one link refuses several; a name is there in each of them.
const SEVERAL_LINKS: Hosts = Hosts {
    laboratory: Carried,
    gateway: Refused("a gateway has one link, and this scenario has [[link]]; export a scenario with one [link]"),
    tc: Carried,
    ns3: Refused("the program has one link, and this scenario has [[link]]; export a scenario with one [link]"),
    bounds: Carried,
};

keys! {
    /// One of the links of a network, with the scheduler in front of it.
    LINKS "links" after [&LINK] {
        NAME "name": Text { what: "text" }, required("\"feeder\""), SEVERAL_LINKS,
            "flows name the link so in `path` and `back`; must be unique";
        LIKE "like": Text { what: "name of a link" }, otherwise("none"), WITH_ANOTHER,
            "takes the keys and tables that this link does not give from the link of this name, a table as a whole. A link with a `rate`, `trace` or `beam` takes none of the other's, nor keys of its trace, nor `nominal`";
        COST "cost": Number { min: 0, max: 1_000_000_000 }, usual(0), WITH_ANOTHER,
            "what the link costs, in any unit; a class of a bond with `paths = \"spill\"` prefers cheaper links; only in [a bond](#bonds)";
        SCHEDULER "scheduler": Special { shape: Shape::Nested(&super::class::SCHEDULER) }, otherwise("required, but not in a bond"), CARRIED,
            "the policy", values "table";
        CLASS "class": Special { shape: Shape::Tables(&super::class::CLASS) }, otherwise("required, but not in a bond"), CARRIED,
            "the queues of the scheduler, in order";
    }
}

keys! {
    /// Losses in bursts.
    BURSTS "link.loss" {
        MEAN_LOSS "mean": Quantity { kind: Kind::Fraction, min: 0.0, max: 1.0 }, otherwise("required with burst"), WITH_ANOTHER,
            "fraction of the packets that is lost, at most burst / (burst + 1)";
        BURST "burst": Quantity { kind: Kind::Packets, min: 1.0, max: 1e6 }, otherwise("none"), WITH_ANOTHER,
            "mean number of consecutive packets lost; not with `beam`";
    }
}

keys! {
    /// Packets that are held back.
    REORDERED "link.reorder" {
        PROBABILITY "probability": Quantity { kind: Kind::Fraction, min: 0.0, max: 1.0 }, required("\"1%\""), WITH_ANOTHER,
            "fraction of the packets that is held back";
        HELD_BACK "delay": Whole { kind: Kind::Time, min: 0, max: limits::DELAY_NS }, required("\"10ms\""), WITH_ANOTHER,
            "how long these packets are held back";
    }
}
