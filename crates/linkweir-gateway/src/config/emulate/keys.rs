// SPDX-License-Identifier: BSD-3-Clause
//! The keys of an emulated link, besides those of the capacity, which are the gateway's.

use linkweir_config::keys;
use linkweir_config::keys::form::{Number, Signed, Small, Special, Whole};
use linkweir_config::keys::hosts::WITH_ANOTHER;
use linkweir_config::keys::{Shape, Table};
use linkweir_config::units::Kind;
use linkweir_config::values::Values;

/// All tables, in the order of the reference.
pub static TABLES: [&Table; 3] = [&TOP, &END, &DIRECTION];

keys! {
    /// The link.
    TOP "top" {
        MTU "mtu": Small { kind: Kind::Size, min: 576, max: 65_535 }, usual(1_500), WITH_ANOTHER,
            "MTU of both devices";
        SEED "seed": Number { min: 0, max: i64::MAX as u64 }, usual(1), WITH_ANOTHER,
            "seed of losses and jitter";
    }
}

keys! {
    /// An end.
    END "`[a]`, `[b]`" {
        DEVICE "device": Special { shape: Shape::Device }, required("\"sat0\""), WITH_ANOTHER,
            "name of the device", values "as above";
        NETNS "netns": Special { shape: Shape::Word }, otherwise("the emulator's"), WITH_ANOTHER,
            "the network namespace of the device", values "a name of `ip netns`, or a path";
        ADDRESS "address": Special { shape: Shape::Nets }, otherwise("none"), WITH_ANOTHER,
            "addresses of the device", values "as above";
    }
}

keys! {
    /// A direction.
    DIRECTION "`[a_to_b]`, `[b_to_a]`" {
        DELAY "delay": Values { kind: Kind::Seconds, min: 0.0, max: 60.0 }, otherwise("`\"0s\"`"), WITH_ANOTHER,
            "one-way delay", values "0s .. 60s, or over time";
        JITTER "jitter": Whole { kind: Kind::Time, min: 0, max: 10_000_000_000 }, usual(0), WITH_ANOTHER,
            "largest additional delay, drawn for each packet; packets keep their order";
        LOSS "loss": Values { kind: Kind::Fraction, min: 0.0, max: 1.0 }, otherwise("`0`"), WITH_ANOTHER,
            "probability that a packet is lost behind the queue", values "0% .. 100%, or over time";
        LIMIT "limit": Small { kind: Kind::Packets, min: 1, max: 1_000_000 }, otherwise("twice the packets in flight, plus 100"), WITH_ANOTHER,
            "packets that may wait";
        OVERHEAD "overhead": Signed { kind: Kind::Size, most: 1_000 }, usual(0), WITH_ANOTHER,
            "bytes added to every packet";
    }
}
