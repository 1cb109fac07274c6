// SPDX-License-Identifier: BSD-3-Clause
//! The tables `[link.satellite]` and `[link.satellite.constellation]`.

use linkweir_config::keys;
use linkweir_config::keys::form::{Number, Quantity, Real, Small, Special, Text, Whole, Words};
use linkweir_config::keys::hosts::WITH_ANOTHER;
use linkweir_config::keys::Shape;
use linkweir_config::units::Kind;

use super::super::limits;

keys! {
    /// A link from a satellite to moving users.
    SATELLITE "link.satellite" {
        FADING "fading": Text { what: "path" }, otherwise("none"), WITH_ANOTHER,
            "file with a time in s and a gain in dB relative to the line of sight per line (a fade is negative; the run notes a series that never is), at equal intervals; it repeats without end. It replaces the seven keys below";
        MODEL "model": Words { of: &["perez_fontan", "itu_p681"] }, usual(0), WITH_ANOTHER,
            "the model of the channel";
        ENVIRONMENT "environment": Words { of: &["intermediate_trees", "open", "suburban", "urban"] }, usual(0), WITH_ANOTHER,
            "where the vehicle drives; only `\"rural_wooded\"` with itu_p681. open, suburban and urban have their own Loo parameters, but the state transitions of intermediate_trees, see above";
        ELEVATION_DEG "elevation_deg": Number { min: 0, max: 90 }, usual(40), WITH_ANOTHER,
            "elevation of the satellite, required with itu_p681; it selects the model's parameters and determines the Doppler shift of the direct ray", values "40; with itu_p681 one of 20, 30, 45, 60, 70";
        SPEED_KMH "speed_kmh": Real { min: 0.1, max: 1000.0 }, usual(60.0), WITH_ANOTHER,
            "speed of the vehicle";
        CARRIER_GHZ "carrier_ghz": Real { min: 1.5, max: 3.0 }, usual(2.2), WITH_ANOTHER,
            "carrier frequency; with the speed it decides how fast the scattered signal varies";
        PERIOD "period": Whole { kind: Kind::Time, min: 1_000_000, max: 86_400_000_000_000 }, usual(600_000_000_000), WITH_ANOTHER,
            "time after which the drive starts again";
        FADING_SEED "fading_seed": Number { min: 0, max: i64::MAX as u64 }, otherwise("the scenario's seed"), WITH_ANOTHER,
            "seed of the drive";
        USER_OFFSET "user_offset": Whole { kind: Kind::Time, min: 0, max: limits::DURATION_NS }, usual(51_000_000_000), WITH_ANOTHER,
            "user k, counted from 0, starts k times this later in the same fading series";
        USERS "users": Words { of: &["classes", "flows"] }, usual(0), WITH_ANOTHER,
            "what counts as one user with its own offset in the fading series: a class with all its flows, or each flow";
        CSI_TICK "csi_tick": Whole { kind: Kind::Time, min: 1_000_000, max: 10_000_000_000 }, usual(10_000_000), WITH_ANOTHER,
            "how often the scheduler gets the rate of each class's channel (of its first flow, with `users = \"flows\"`); the rate is delayed by the time that a report takes to reach the satellite. Only with `csi_age = \"flight\"`";
        CSI_AGE "csi_age": Special { shape: Shape::TimeOr("flight", limits::DELAY_NS as f64) }, otherwise("`\"flight\"`"), WITH_ANOTHER,
            "how old the scheduler's knowledge of the channels is when a packet meets them, see [below](#how-old-the-schedulers-knowledge-is)";
        PACKET "packet": Whole { kind: Kind::Size, min: 1, max: limits::CODED_BYTES }, required("\"210B\""), WITH_ANOTHER,
            "size of a packet before coding: error rates are tabulated for 210B and 1115B; another size uses the nearer table, scaled in proportion";
        ESN0_DB "esn0_db": Number { min: 7, max: 20 }, usual(10), WITH_ANOTHER,
            "Es/N0 with a clear line of sight, dB; at most 13 with the code for 210B";
        GROUND_DELAY "ground_delay": Whole { kind: Kind::Time, min: 0, max: limits::DELAY_NS }, usual(0), WITH_ANOTHER,
            "from the satellite's receiver to the user";
        DELAYS "delays": Text { what: "path" }, otherwise("none"), WITH_ANOTHER,
            "file with the delays to and from the last satellite over time";
        DECIMAL "decimal": Words { of: &[".", ","] }, otherwise("as the numbers show"), WITH_ANOTHER,
            "mark in front of decimals in the files of `fading` and `delays`, \".\" or \",\"", values "text";
        CONSTELLATION "constellation": Special { shape: Shape::Nested(&SHELL) }, otherwise("none"), WITH_ANOTHER,
            "the delays are those through a constellation, see [below](#linksatelliteconstellation)";
        DELAYS_START "delays_start": Whole { kind: Kind::Time, min: 0, max: limits::DURATION_NS }, otherwise("0s"), WITH_ANOTHER,
            "time within the series of delays at which the run starts";
        DELAYS_SHIFT "delays_shift": Whole { kind: Kind::Time, min: 0, max: limits::DURATION_NS }, otherwise("0s"), WITH_ANOTHER,
            "for flow i, counted from 0 over all flows, the series of delays to the satellite begins i times this later";
        DELAYS_BEFORE "delays_before": Quantity { kind: Kind::Seconds, min: 0.0, max: limits::DELAY_S }, otherwise("the first delay"), WITH_ANOTHER,
            "delay to the satellite of a shifted flow until its series of delays begins; only with a delays_shift above 0";
        REPEATS_SEE "repeats_see": Words { of: &["own", "first_user"] }, usual(0), WITH_ANOTHER,
            "through whose channel a retransmission is sent: the user's own, or always the first user's; first_user is for reproducing Tauran et al. 2018";
        FIRST_ATTEMPT "first_attempt": Words { of: &["coded", "coded_and_plain"] }, usual(0), WITH_ANOTHER,
            "whether the first attempt also carries the packet uncoded; coded_and_plain is for reproducing Tauran et al. 2018";
        REORDER "reorder": Words { of: &["none", "shared", "per_flow"] }, usual(0), WITH_ANOTHER,
            "whether the receiver holds packets back until earlier ones have arrived, see below";
        REORDER_PKTS "reorder_pkts": Small { kind: Kind::Packets, min: 1, max: limits::REORDERED_PKTS }, usual(125), WITH_ANOTHER,
            "capacity of this buffer in packets: for all flows together (shared), or for each flow (per_flow); only with one of these";
        REORDER_TIMEOUT "reorder_timeout": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DELAY_NS }, usual(1_000_000_000), WITH_ANOTHER,
            "how long the buffer holds a packet at most; only with shared or per_flow";
    }
}

keys! {
    /// A shell of satellites after Walker.
    WALKER "walker" {
        PATTERN "pattern": Words { of: &["star", "delta"] }, usual(0), WITH_ANOTHER,
            "whether the planes' ascending nodes are spread over 180 degrees (star) or 360 degrees (delta)";
        SPACING_DEG "spacing_deg": Special { shape: Shape::Other("0.1, below 180 / (planes - 1)") }, otherwise("180 / planes"), WITH_ANOTHER,
            "only for a star: angle between adjacent planes. What remains of the 180 degrees is the seam. Iridium has 31.6 degrees and a seam of 22";
        PLANES "planes": Number { min: 1, max: 1000 }, required("6"), WITH_ANOTHER,
            "orbital planes";
        PER_PLANE "per_plane": Number { min: 1, max: 1000 }, required("11"), WITH_ANOTHER,
            "satellites in each plane";
        PHASING "phasing": Number { min: 0, max: 999 }, usual(0), WITH_ANOTHER,
            "Walker's F: satellites are ahead of those in the preceding plane by F × 360 degrees / number of all satellites", values "from 0, below planes";
        ALTITUDE_KM "altitude_km": Real { min: 160.0, max: 50000.0 }, required("800"), WITH_ANOTHER,
            "height above the ground";
        INCLINATION_DEG "inclination_deg": Real { min: 0.0, max: 180.0 }, required("86.4"), WITH_ANOTHER,
            "angle between planes and equator";
    }
}

keys! {
    /// The delays of a path through a constellation.
    SHELL "link.satellite.constellation" after [&WALKER] {
        MIN_ELEVATION_DEG "min_elevation_deg": Real { min: 0.0, max: 90.0 }, usual(10.0), WITH_ANOTHER,
            "smallest elevation at which a place on the ground has a link to a satellite";
        FROM "from": Special { shape: Shape::Nested(&PLACE) }, required("{ lat_deg = -33.9, lon_deg = 151.2 }"), WITH_ANOTHER,
            "where the sources are: `{ lat_deg = -33.9, lon_deg = 151.2 }`; south and west are negative", values "a place";
        TO "to": Special { shape: Shape::Nested(&PLACE) }, required("{ lat_deg = 40.7, lon_deg = -74.0 }"), WITH_ANOTHER,
            "where the users are", values "a place";
        STEP "step": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DELAY_NS }, usual(1_000_000_000), WITH_ANOTHER,
            "interval at which the delays are computed; the number of satellites times the number of steps may be 10 million at most";
    }
}

keys! {
    /// A place on the ground.
    PLACE "place" {
        LAT_DEG "lat_deg": Real { min: -90.0, max: 90.0 }, required("-33.9"), WITH_ANOTHER,
            "latitude; south is negative";
        LON_DEG "lon_deg": Real { min: -180.0, max: 180.0 }, required("151.2"), WITH_ANOTHER,
            "longitude; west is negative";
    }
}
