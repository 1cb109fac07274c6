// SPDX-License-Identifier: BSD-3-Clause
//! The top level of a scenario.

use linkweir_config::keys;
use linkweir_config::keys::form::{Number, Special, Text, Whole, Words};
use linkweir_config::keys::hosts::{CARRIED, WITH_ANOTHER};
use linkweir_config::keys::Treatment::{Adapted, Carried, LeftOut, Refused, Silent};
use linkweir_config::keys::{Hosts, Shape};
use linkweir_config::units::Kind;

use super::super::limits;

/// What only a simulation has; a line of its own says so where a scenario is exported.
const OF_THE_RUN: Hosts = Hosts {
    laboratory: Carried,
    gateway: Silent,
    tc: Silent,
    ns3: Carried,
    bounds: Silent,
};
const OF_RANDOM_NUMBERS: Hosts = Hosts {
    ns3: Adapted("seed = {value}: ns-3 draws other random numbers"),
    ..OF_THE_RUN
};
/// A program for ns-3 prints totals and has no series.
const OF_SERIES: Hosts = Hosts {
    ns3: Silent,
    ..OF_THE_RUN
};
const OF_PACKETS: Hosts = Hosts {
    laboratory: LeftOut(
        "{key} = {value}: left out, also log_rows; the laboratory has no table of packets",
    ),
    ns3: LeftOut("{key} = {value}: left out, also log_rows; the program has no table of packets"),
    ..OF_THE_RUN
};

/// Links whose delays and ways change as satellites move.
const MODEL_OF_LINKS: Hosts = Hosts {
    laboratory: Refused("is not there in the laboratory, whose links and ways stay as they are; run this one in the simulator"),
    gateway: Refused("a gateway has one link; export a scenario with one [link]"),
    tc: Refused("its links are those of satellites; export a scenario with [link] or [[link]]"),
    ns3: Refused("the program has one link; export a scenario with one [link]"),
    bounds: Refused("no bound is known for links and ways that change; write the links of one instant as [[link]]"),
};

/// One scheduler over several paths.
const SEVERAL_PATHS: Hosts = Hosts {
    laboratory: Refused("is not there in the laboratory; run this one in the simulator"),
    gateway: Refused(
        "is exported only where it is the one bond and has all links; leave the others out",
    ),
    tc: Refused("has no queueing discipline, which has one device; export a scenario without it"),
    ns3: Refused("the program has one link; export a scenario with one [link]"),
    bounds: Carried,
};

keys! {
    /// The top level of a scenario.
    TOP "" {
        NAME "name": Text { what: "text" }, computed("the file's name"), OF_THE_RUN,
            "shown in reports";
        DURATION "duration": Whole { kind: Kind::Time, min: 1_000, max: limits::DURATION_NS }, required("\"100s\""), OF_THE_RUN,
            "simulated time";
        WARMUP "warmup": Whole { kind: Kind::Time, min: 0, max: limits::DURATION_NS }, usual(0), OF_THE_RUN,
            "totals and percentiles exclude this time; series do not", values "0s, below duration";
        INTERVAL "interval": Whole { kind: Kind::Time, min: 1_000, max: limits::DURATION_NS }, computed("1s, or duration if shorter"), OF_SERIES,
            "width of the bins of every series", values "1us, at most duration";
        SEED "seed": Number { min: 0, max: i64::MAX as u64 }, usual(1), OF_RANDOM_NUMBERS,
            "seed of every random number; the same seed gives the same results";
        LOG "log": Words { of: &["none", "packets"] }, usual(0), OF_PACKETS,
            "packets: a table of every packet's events, see [the log](log.md)";
        LOG_ROWS "log_rows": Number { min: 1, max: 100000000000 }, otherwise("100000000 with log = \"packets\""), WITH_ANOTHER,
            "most rows of the log; later events are not recorded";
        LINK "link": Special { shape: Shape::OneOrSeveral(&super::link::LINK, &super::link::LINKS) }, required("rate = \"20Mbit\""), CARRIED,
            "the bottleneck; or [several links](#networks), each with its scheduler and classes", values "table, or list of tables";
        CONSTELLATION "constellation": Special { shape: Shape::Nested(&super::constellation::CONSTELLATION) }, otherwise("none"), MODEL_OF_LINKS,
            "makes the links of [a network](#constellation) of satellites, instead of `link`, `scheduler` and `class`", values "table";
        BOND "bond": Special { shape: Shape::Tables(&super::bond::BOND) }, otherwise("none"), SEVERAL_PATHS,
            "[bonds](#bonds) of several `[[link]]`s behind one scheduler";
        SCHEDULER "scheduler": Special { shape: Shape::Nested(&super::class::SCHEDULER) }, otherwise("required with one link"), CARRIED,
            "the policy; not with `[[link]]`", values "table";
        CLASS "class": Special { shape: Shape::Tables(&super::class::CLASS) }, otherwise("required with one link"), CARRIED,
            "the queues of the scheduler, in order; not with `[[link]]`";
        FLOW "flow": Special { shape: Shape::Tables(&super::flow::FLOW) }, required(""), CARRIED,
            "the traffic";
    }
}
