// SPDX-License-Identifier: BSD-3-Clause
//! Tables inside the tables of flows: random amounts, sizes of packets, and times of arrival.

use linkweir_config::keys;
use linkweir_config::keys::form::{Quantity, Real, Special, Text, Whole, Words};
use linkweir_config::keys::hosts::WITH_ANOTHER;
use linkweir_config::keys::Shape;
use linkweir_config::units::Kind;

use super::super::limits;

keys! {
    /// A distribution of amounts.
    RANDOM "random" {
        RANDOM_MEAN "mean": Special { shape: Shape::Value }, otherwise("none"), WITH_ANOTHER,
            "mean of a distribution";
        DISTRIBUTION "distribution": Words { of: &["exponential", "pareto", "lognormal"] }, otherwise("exponential"), WITH_ANOTHER,
            "the distribution";
        SHAPE "shape": Real { min: 1.01, max: 100.0 }, otherwise("1.5"), WITH_ANOTHER,
            "Pareto's shape; only with pareto. Below 2 the variance is infinite";
        DEVIATION "deviation": Special { shape: Shape::Value }, otherwise("required with lognormal"), WITH_ANOTHER,
            "standard deviation of the amount, not of its logarithm";
        RANDOM_MAX "max": Special { shape: Shape::Value }, otherwise("the largest possible"), WITH_ANOTHER,
            "a larger draw is replaced by this value, which lowers the mean";
        CDF "cdf": Special { shape: Shape::Other("list of [value, fraction]") }, otherwise("none"), WITH_ANOTHER,
            "a measured cumulative distribution: the fraction of amounts up to each value, rising to 1. It is interpolated linearly; the first value itself has the probability given with it";
        RANDOM_FILE "file": Text { what: "path" }, otherwise("none"), WITH_ANOTHER,
            "the same as a CSV file with the header `bytes,cumulative` (for times `s,cumulative`, for numbers `count,cumulative`)";
        RANDOM_DECIMAL "decimal": Words { of: &[".", ","] }, otherwise("as the numbers show"), WITH_ANOTHER,
            "mark in front of decimals in that file, \".\" or \",\"", values "text";
    }
}

keys! {
    /// Sizes of packets.
    PACKETS "packet" {
        SIZES "sizes": Special { shape: Shape::Other("list of sizes") }, otherwise("none"), WITH_ANOTHER,
            "the sizes that occur";
        WEIGHTS "weights": Special { shape: Shape::Other("list of numbers above 0") }, otherwise("all equal"), WITH_ANOTHER,
            "how often each size occurs, relative to the others";
        MIN "min": Whole { kind: Kind::Size, min: 1, max: limits::PACKET_BYTES as u64 }, otherwise("required without sizes"), WITH_ANOTHER,
            "smallest size; all sizes from here to max are equally likely";
        MAX "max": Whole { kind: Kind::Size, min: 1, max: limits::PACKET_BYTES as u64 }, otherwise("required without sizes"), WITH_ANOTHER,
            "largest size";
    }
}

keys! {
    /// When transfers arrive.
    ARRIVALS "arrivals" {
        EVERY "every": Quantity { kind: Kind::Time, min: 1.0, max: limits::DURATION_NS as f64 }, otherwise("none"), WITH_ANOTHER,
            "mean gap, or the gap of periodic arrivals";
        PROCESS "process": Words { of: &["poisson", "periodic"] }, otherwise("poisson"), WITH_ANOTHER,
            "whether gaps are random; only with every";
        LOAD "load": Quantity { kind: Kind::Rate, min: 1.0, max: limits::RATE_BPS as f64 }, otherwise("none"), WITH_ANOTHER,
            "the load that a Poisson process of arrivals offers";
        AT "at": Special { shape: Shape::Other("list of times") }, otherwise("none"), WITH_ANOTHER,
            "all times of arrival, after the start of the flow";
    }
}
