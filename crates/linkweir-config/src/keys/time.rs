// SPDX-License-Identifier: BSD-3-Clause
//! Keys of a value over time.

use crate::keys;
use crate::limits;
use crate::units::Kind;

use super::form::{Real, Special, Whole, Words};
use super::hosts::WITH_ANOTHER;
use super::Shape;

keys! {
    /// A value as a function of time.
    OVER_TIME "over_time" {
        MEAN "mean": Special { shape: Shape::Value }, otherwise("none"), WITH_ANOTHER,
            "the mean of mean × (1 + amplitude × cos(2π t / period + phase))";
        AMPLITUDE "amplitude": Real { min: 0.0, max: 1.0 }, otherwise("required with mean"), WITH_ANOTHER,
            "relative amplitude";
        PERIOD "period": Whole { kind: Kind::Time, min: 1_000, max: limits::DURATION_NS }, otherwise("required with mean and with loop"), WITH_ANOTHER,
            "period of the cosine, or period after which the steps repeat", values "time";
        PHASE "phase": Real { min: -1e6, max: 1e6 }, otherwise("0.0"), WITH_ANOTHER,
            "in radian", values "-1000000 .. 1000000";
        STEPS "steps": Special { shape: Shape::Other("list of [time, value]") }, otherwise("none"), WITH_ANOTHER,
            "each value lasts until the next time";
        END "end": Words { of: &["loop", "hold", "stop"] }, otherwise("hold"), WITH_ANOTHER,
            "after the last step: repeat all steps, keep the last value, or change to 0";
        AT "at": Whole { kind: Kind::Time, min: 0, max: limits::DURATION_NS }, otherwise("required with stop"), WITH_ANOTHER,
            "when the last step ends", values "time";
        LINES "lines": Special { shape: Shape::Other("list of [time, value]") }, otherwise("none"), WITH_ANOTHER,
            "straight lines between the points; the last value stays";
    }
}
