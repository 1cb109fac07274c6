// SPDX-License-Identifier: BSD-3-Clause
//! What applications draw: a value, or a distribution of values.

use std::convert::Infallible;

use linkweir_config::keys::{Form, Shape};
use linkweir_config::reader::{Entry, Value};
use linkweir_config::units::Kind;
use linkweir_config::Fault;

use super::super::limits;

/// What is drawn, and its range in base units.
#[derive(Clone, Copy)]
pub struct Measure {
    /// None: a bare number.
    pub kind: Option<Kind>,
    /// Smallest value.
    pub least: f64,
    /// Largest value.
    pub most: f64,
    /// A value, in TOML.
    pub example: &'static str,
}

/// Bytes that a connection carries at once.
pub(super) const BYTES: Measure = Measure {
    kind: Some(Kind::Size),
    least: 1.0,
    most: limits::WRITE_BYTES as f64,
    example: "\"100kB\"",
};
/// Lengths of pauses.
pub(super) const PAUSE: Measure = Measure {
    kind: Some(Kind::Time),
    least: 0.0,
    most: limits::DURATION_NS as f64,
    example: "\"5s\"",
};
/// Numbers of things.
pub(super) const COUNT: Measure = Measure {
    kind: None,
    least: 0.0,
    most: limits::OBJECTS as f64,
    example: "30",
};

/// A value, or a distribution, whose keys and files `traffic::amount` reads.
pub struct Drawn {
    /// What it is.
    pub of: Measure,
}

impl Form for Drawn {
    type Value = Infallible;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<Self::Value, Fault> {
        Err(entry.fault("has a function of its own to read it"))
    }

    fn written(&self, value: &Self::Value) -> Value {
        match *value {}
    }

    fn shape(&self) -> Shape {
        Shape::Random(self.of.kind, self.of.least, self.of.most)
    }
}
