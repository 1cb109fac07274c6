// SPDX-License-Identifier: BSD-3-Clause
//! The keys that all flows have.

use linkweir_config::keys;
use linkweir_config::keys::form::{Flag, Number, Special, Text, Whole, Words};
use linkweir_config::keys::hosts::WITH_ANOTHER;
use linkweir_config::keys::Treatment::{Carried, LeftOut, Silent};
use linkweir_config::keys::{Hosts, Shape};
use linkweir_config::units::Kind;

use super::super::limits;
use super::sources;

/// A real source takes its place.
const OF_A_SOURCE: Hosts = Hosts {
    laboratory: Carried,
    gateway: Silent,
    tc: Silent,
    ns3: Carried,
    bounds: Carried,
};
/// A program for ns-3 prints totals of classes.
const OF_DELAYS: Hosts = Hosts {
    laboratory: LeftOut("{key}: left out, the laboratory has no distributions of delays"),
    ns3: Silent,
    bounds: Silent,
    ..OF_A_SOURCE
};
const OF_CALLS: Hosts = Hosts {
    laboratory: LeftOut("{key}: left out, the laboratory does not rate calls"),
    ..OF_DELAYS
};
const BEFORE_THE_QUEUE: Hosts = Hosts {
    ns3: LeftOut("access_delay = {value} is left out"),
    ..OF_A_SOURCE
};

keys! {
    /// A source and its receiver, or several.
    FLOW "flow" {
        KIND "kind": Words { of: &sources::KIND_NAMES }, required("\"cbr\""), OF_A_SOURCE,
            "kind of traffic; each kind has the further keys below";
        NAME "name": Text { what: "text" }, computed("the kind and the entry's number"), OF_A_SOURCE,
            "shown in results; copies are numbered";
        CLASS "class": Special { shape: Shape::ClassName }, otherwise("required, or `dscp`"), OF_A_SOURCE,
            "the queue its packets join; in [a network](#networks) on every link of `path` and `back`, or a table with the class on each", values "name of a class; in a network also `{ link = \"class\", ... }`";
        DSCP "dscp": Special { shape: Shape::CodePoint }, otherwise("none"), WITH_ANOTHER,
            "code point of its packets, which join the class that takes it by `match` on each link; only in a network, instead of `class`";
        PATH "path": Special { shape: Shape::Names }, otherwise("the link, if there is one; else required"), WITH_ANOTHER,
            "the links that its packets pass, in order; only in a network", values "list of names of links";
        BACK "back": Special { shape: Shape::Names }, otherwise("none"), WITH_ANOTHER,
            "the links that acknowledgements and requests pass and wait in. Without, they only take the `return_delay` of each link of `path`; only in a network", values "list of names of links";
        FROM "from": Text { what: "name of a station" }, otherwise("required with `[constellation]`"), WITH_ANOTHER,
            "the station that sends, with [`[constellation]`](#constellation) only, instead of `path` and `back`; what answers goes back by links";
        TO "to": Text { what: "name of a station" }, otherwise("required with `[constellation]`"), WITH_ANOTHER,
            "the station that receives";
        START "start": Whole { kind: Kind::Time, min: 0, max: limits::DURATION_NS }, usual(0), OF_A_SOURCE,
            "time from which packets are created";
        STOP "stop": Whole { kind: Kind::Time, min: 0, max: limits::DURATION_NS }, computed("duration"), OF_A_SOURCE,
            "time after which no packet is created";
        ACCESS_DELAY "access_delay": Whole { kind: Kind::Time, min: 0, max: limits::DELAY_NS }, usual(0), BEFORE_THE_QUEUE,
            "one-way delay between source and queue; acknowledgements take it too, in addition to the link's `return_delay`; not with a satellite's delays";
        COUNT "count": Number { min: 1, max: limits::FLOWS }, usual(1), OF_A_SOURCE,
            "number of copies";
        STAGGER "stagger": Whole { kind: Kind::Time, min: 0, max: limits::DURATION_NS }, usual(0), OF_A_SOURCE,
            "each copy starts this much later than the one before";
        DELAYS "delays": Flag {}, usual(false), OF_DELAYS,
            "whether the results contain the [distribution of this flow's delays](quality.md#distributions-of-delays); those of classes are always there";
        PLAYOUT "playout": Special { shape: Shape::Playout }, otherwise("none"), OF_CALLS,
            "[play-out buffers](quality.md#calls) of the receivers; the flow's quality is then rated as that of a call; not with tcp";
    }
}
