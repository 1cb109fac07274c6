// SPDX-License-Identifier: BSD-3-Clause
//! Forms of values: what a key may be, how it is read, and how it is written in full.

use crate::fault::Fault;
use crate::reader::{Entry, Value};
use crate::units::Kind;

use super::{Form, Shape};

/// A quantity in whole base units.
pub struct Whole {
    /// Its kind.
    pub kind: Kind,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
}

impl Form for Whole {
    type Value = u64;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<u64, Fault> {
        entry.whole(self.kind, (self.min, self.max))
    }

    fn written(&self, value: &u64) -> Value {
        Value::Whole(*value, self.kind)
    }

    fn shape(&self) -> Shape {
        Shape::Quantity(self.kind, self.min as f64, self.max as f64)
    }
}

/// A quantity in whole base units below 2^32.
pub struct Small {
    /// Its kind.
    pub kind: Kind,
    /// Smallest value.
    pub min: u32,
    /// Largest value.
    pub max: u32,
}

impl Form for Small {
    type Value = u32;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<u32, Fault> {
        let value = entry.whole(self.kind, (self.min.into(), self.max.into()))?;
        Ok(u32::try_from(value).unwrap_or(self.max))
    }

    fn written(&self, value: &u32) -> Value {
        Value::Whole((*value).into(), self.kind)
    }

    fn shape(&self) -> Shape {
        Shape::Quantity(self.kind, self.min.into(), self.max.into())
    }
}

/// A quantity in whole base units, -`most` .. `most`.
pub struct Signed {
    /// Its kind.
    pub kind: Kind,
    /// Largest value.
    pub most: u64,
}

impl Form for Signed {
    type Value = i64;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<i64, Fault> {
        entry.signed(self.kind, self.most)
    }

    fn written(&self, value: &i64) -> Value {
        Value::Signed(*value, self.kind)
    }

    fn shape(&self) -> Shape {
        let most = self.most as f64;
        Shape::Quantity(self.kind, -most, most)
    }
}

/// A quantity that need not be whole.
pub struct Quantity {
    /// Its kind.
    pub kind: Kind,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl Form for Quantity {
    type Value = f64;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<f64, Fault> {
        entry.quantity(self.kind, self.min, self.max)
    }

    fn written(&self, value: &f64) -> Value {
        Value::Amount(*value, self.kind)
    }

    fn shape(&self) -> Shape {
        Shape::Quantity(self.kind, self.min, self.max)
    }
}

/// A fraction in millionths.
pub struct Ppm {
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
}

impl Form for Ppm {
    type Value = u64;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<u64, Fault> {
        entry.ppm((self.min, self.max))
    }

    fn written(&self, value: &u64) -> Value {
        Value::Ppm(*value)
    }

    fn shape(&self) -> Shape {
        Shape::Quantity(Kind::Fraction, self.min as f64 / 1e6, self.max as f64 / 1e6)
    }
}

/// A bare whole number.
pub struct Number {
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
}

impl Form for Number {
    type Value = u64;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<u64, Fault> {
        entry.number((self.min, self.max))
    }

    fn written(&self, value: &u64) -> Value {
        Value::Number(*value)
    }

    fn shape(&self) -> Shape {
        Shape::Number(self.min, self.max)
    }
}

/// A bare number that may have a fraction.
pub struct Real {
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl Form for Real {
    type Value = f64;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<f64, Fault> {
        entry.real(self.min, self.max)
    }

    fn written(&self, value: &f64) -> Value {
        Value::Real(*value)
    }

    fn shape(&self) -> Shape {
        Shape::Real(self.min, self.max)
    }
}

/// True or false.
pub struct Flag;

impl Form for Flag {
    type Value = bool;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<bool, Fault> {
        entry.flag()
    }

    fn written(&self, value: &bool) -> Value {
        Value::Flag(*value)
    }

    fn shape(&self) -> Shape {
        Shape::Flag
    }
}

/// One of some words, as its index.
pub struct Words {
    /// The words.
    pub of: &'static [&'static str],
}

impl Form for Words {
    type Value = usize;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<usize, Fault> {
        entry.choice(self.of)
    }

    fn written(&self, value: &usize) -> Value {
        self.of.get(*value).copied().unwrap_or_default().into()
    }

    fn shape(&self) -> Shape {
        Shape::Words(self.of)
    }
}

/// A string.
pub struct Text {
    /// What it holds, such as a path.
    pub what: &'static str,
}

impl Form for Text {
    type Value = String;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<String, Fault> {
        entry.text().map(str::to_owned)
    }

    fn written(&self, value: &String) -> Value {
        value.as_str().into()
    }

    fn shape(&self) -> Shape {
        Shape::Text(self.what)
    }
}

/// A value that a function of its own reads.
pub struct Special {
    /// What it is.
    pub shape: Shape,
}

impl Form for Special {
    type Value = std::convert::Infallible;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<Self::Value, Fault> {
        Err(entry.fault("has a function of its own to read it"))
    }

    fn written(&self, value: &Self::Value) -> Value {
        match *value {}
    }

    fn shape(&self) -> Shape {
        self.shape
    }
}
