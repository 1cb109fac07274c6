// SPDX-License-Identifier: BSD-3-Clause
//! The tables `[link.beam]` and `[link.beam.rain]`.

use linkweir_config::keys;
use linkweir_config::keys::form::{Number, Quantity, Real, Special, Text, Whole, Words};
use linkweir_config::keys::hosts::WITH_ANOTHER;
use linkweir_config::keys::Shape;
use linkweir_config::units::Kind;

use super::super::limits;

/// Es/N0 without rain, dB.
pub(in crate::scenario) const ESN0_DB: (f64, f64) = (-30.0, 60.0);

keys! {
    /// A satellite's beam to terminals in rain.
    BEAM "link.beam" {
        SYMBOL_RATE "symbol_rate": Quantity { kind: Kind::SymbolRate, min: 1e3, max: 1e10 }, required("\"50MBd\""), WITH_ANOTHER,
            "symbol rate of the carrier";
        CLEAR_SKY_ESN0_DB "clear_sky_esn0_db": Special { shape: Shape::PerTerminal(ESN0_DB.0, ESN0_DB.1) }, required("12.0"), WITH_ANOTHER,
            "Es/N0 without rain, dB: one value for all terminals; or a list, one per class; or `{ min = 8, max = 14 }`, drawn for each terminal from a uniform distribution";
        MODCODS "modcods": Words { of: &["dvb_s2", "dvb_s2x"] }, usual(0), WITH_ANOTHER,
            "the available ModCods; dvb_s2x includes those of dvb_s2";
        MARGIN_DB "margin_db": Real { min: 0.0, max: 20.0 }, usual(1.0), WITH_ANOTHER,
            "link margin: a ModCod is used only if Es/N0 is at least this much above its threshold";
        HYSTERESIS_DB "hysteresis_db": Real { min: 0.0, max: 20.0 }, usual(0.5), WITH_ANOTHER,
            "additional Es/N0 needed to change to a more efficient ModCod";
        TICK "tick": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DELAY_NS }, usual(100_000_000), WITH_ANOTHER,
            "how often the channel changes";
        CHANNEL_SEED "channel_seed": Number { min: 0, max: i64::MAX as u64 }, otherwise("the scenario's seed"), WITH_ANOTHER,
            "seed of the rain and of the drawn clear-sky values";
        RAIN "rain": Special { shape: Shape::Nested(&RAINFALL) }, otherwise("none"), WITH_ANOTHER,
            "rain attenuation from a model, see [below](#linkbeamrain)";
        ATTENUATION "attenuation": Text { what: "path" }, otherwise("none"), WITH_ANOTHER,
            "rain attenuation from a file instead; path relative to the scenario's folder";
        DECIMAL "decimal": Words { of: &[".", ","] }, otherwise("as the numbers show"), WITH_ANOTHER,
            "mark in front of decimals in that file, \".\" or \",\"", values "text";
    }
}

keys! {
    /// Rain attenuation from a model.
    RAINFALL "link.beam.rain" {
        EXCEEDED "exceeded": Special { shape: Shape::Other("list of [part of the time, dB]") }, otherwise("none"), WITH_ANOTHER,
            "attenuations and the part of the time in which each is exceeded, such as `[[\"0.01%\", 14.5], [\"1%\", 1.2]]`; below `probability`";
        M "m": Real { min: -20.0, max: 10.0 }, otherwise("required without exceeded"), WITH_ANOTHER,
            "mean of ln(attenuation in dB)";
        SIGMA "sigma": Real { min: 0.01, max: 10.0 }, otherwise("required without exceeded"), WITH_ANOTHER,
            "standard deviation of ln(attenuation in dB)";
        PROBABILITY "probability": Quantity { kind: Kind::Fraction, min: 1e-6, max: 1.0 }, usual(1.0), WITH_ANOTHER,
            "part of the time with rain; at 100 % there is no offset";
        CORRELATION_TIME "correlation_time": Whole { kind: Kind::Time, min: 1_000_000_000, max: limits::DURATION_NS }, usual(5_000_000_000_000), WITH_ANOTHER,
            "time after which the autocorrelation of x has fallen to 1/e; 5000 s is P.1853's beta of 2e-4 per second";
        CORRELATION "correlation": Real { min: 0.0, max: 1.0 }, usual(0.0), WITH_ANOTHER,
            "correlation of x between any two terminals, that is the fraction of the variance that is common to all terminals";
        START "start": Quantity { kind: Kind::Fraction, min: 1e-6, max: 0.999999 }, otherwise("drawn"), WITH_ANOTHER,
            "the common part of x starts at the value that it exceeds with this probability; a small value starts the run in bad weather";
    }
}
