// SPDX-License-Identifier: BSD-3-Clause
//! The table `[constellation]`, which makes the links of a network.

use linkweir_config::keys;
use linkweir_config::keys::form::{Real, Special, Text, Whole, Words};
use linkweir_config::keys::hosts::{CARRIED, WITH_ANOTHER};
use linkweir_config::keys::Shape;
use linkweir_config::units::Kind;

use super::super::limits;
use super::class::{CLASS as CLASSES, SCHEDULER as POLICY};
use super::link::LINK;
use super::satellite::WALKER;

keys! {
    /// Satellites and stations, the links between them, and the ways over these links.
    CONSTELLATION "constellation" after [&WALKER] {
        TLE "tle": Text { what: "path" }, otherwise("none"), WITH_ANOTHER,
            "file of two-line elements in place of those keys; path relative to the scenario's folder";
        STATIONS "stations": Special { shape: Shape::Tables(&STATION) }, required("[{ name = \"paris\", latitude = 48.9, longitude = 2.4 }]"), WITH_ANOTHER,
            "places on the ground, which flows name in `from` and `to`";
        GROUND "ground": Special { shape: Shape::Nested(&GROUND_LINKS) }, required("rate = \"10Mbit\""), WITH_ANOTHER,
            "what each link between a station and a satellite is";
        ISL "isl": Special { shape: Shape::Nested(&SATELLITE_LINKS) }, otherwise("no such links"), WITH_ANOTHER,
            "what each link between satellites is";
        ROUTES "routes": Special { shape: Shape::Nested(&COMPUTED) }, computed("`{ every = \"1s\", metric = \"delay\" }`"), WITH_ANOTHER,
            "which ways flows take";
        ON_BREAK "on_break": Words { of: &["lose", "deliver"] }, usual(0), WITH_ANOTHER,
            "whether packets that wait for a link or travel on it are lost when it goes, or still sent and delivered";
    }
}

keys! {
    /// A place on the ground with a name.
    STATION "constellation.stations" {
        NAME "name": Text { what: "text" }, required("\"paris\""), WITH_ANOTHER,
            "must be unique";
        LATITUDE "latitude": Real { min: -90.0, max: 90.0 }, required("48.9"), WITH_ANOTHER,
            "degrees; south is negative";
        LONGITUDE "longitude": Real { min: -180.0, max: 180.0 }, required("2.4"), WITH_ANOTHER,
            "degrees; west is negative";
    }
}

keys! {
    /// The ways that flows take.
    COMPUTED "constellation.routes" {
        EVERY "every": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DELAY_NS }, usual(1_000_000_000), WITH_ANOTHER,
            "how often positions, links, delays and ways are computed";
        METRIC "metric": Words { of: &["delay", "hops"] }, usual(0), WITH_ANOTHER,
            "a way has the least delay, or the fewest links (of those, the least delay)";
    }
}

keys! {
    /// The links between stations and satellites.
    GROUND_LINKS "constellation.ground" after [&LINK] {
        MASK "mask": Real { min: 0.0, max: 90.0 }, usual(10.0), WITH_ANOTHER,
            "smallest elevation at which a station has a link to a satellite, degrees";
        GROUND_SCHEDULER "scheduler": Special { shape: Shape::Nested(&POLICY) }, required("policy = \"fifo\""), CARRIED,
            "the policy", values "table";
        GROUND_CLASS "class": Special { shape: Shape::Tables(&CLASSES) }, required(""), CARRIED,
            "the queues of the scheduler, in order";
    }
}

keys! {
    /// The links between satellites.
    SATELLITE_LINKS "constellation.isl" after [&LINK] {
        NEIGHBOURS "neighbours": Special { shape: Shape::Other("2, 4") }, otherwise("4"), WITH_ANOTHER,
            "links of each satellite: to two in its plane, with 4 also to one in each adjacent plane";
        ISL_SCHEDULER "scheduler": Special { shape: Shape::Nested(&POLICY) }, required("policy = \"fifo\""), CARRIED,
            "the policy", values "table";
        ISL_CLASS "class": Special { shape: Shape::Tables(&CLASSES) }, required(""), CARRIED,
            "the queues of the scheduler, in order";
    }
}
