// SPDX-License-Identifier: BSD-3-Clause
//! Forms of values: what a key may be, how it is read, and how it is written in full.

use crate::fault::Fault;
use crate::reader::{quote, show_number, show_ppm, Entry};
use crate::signal::Signal;
use crate::units::{self, Kind};
use crate::values::{self, Values};

use super::Table;

/// A form that is read without further knowledge.
pub trait Form {
    /// What is read.
    type Value;

    /// Reads a value.
    ///
    /// # Errors
    /// A value of another form or out of range.
    fn read(&self, entry: &Entry<'_, '_>) -> Result<Self::Value, Fault>;

    /// The value in TOML.
    fn show(&self, value: &Self::Value) -> String;

    /// What it is, to a reader of the reference.
    fn shape(&self) -> Shape;
}

/// What a value may be, to a reader of the reference.
#[derive(Clone, Copy)]
pub enum Shape {
    /// A number with a unit; the ends of its range as the unit's kind counts.
    Quantity(Kind, f64, f64),
    /// A bare whole number.
    Number(u64, u64),
    /// A bare number that may have a fraction.
    Real(f64, f64),
    /// True or false.
    Flag,
    /// A string; what it holds.
    Text(&'static str),
    /// One of these words.
    Words(&'static [&'static str]),
    /// A value, or one over time.
    OverTime(Kind, f64, f64),
    /// A table with keys of its own.
    Nested(&'static Table),
    /// A list of tables with keys of their own.
    Tables(&'static Table),
    /// A value, or a distribution from which each is drawn; without a kind it is a bare number.
    Random(Option<Kind>, f64, f64),
    /// The size of a packet, or a mix of sizes.
    Packets(u64),
    /// A fraction of packets, over time, or in bursts with keys of their own.
    Losses(&'static Table),
    /// Columns of a trace.
    Columns,
    /// Rules that say which packets belong to a class.
    Rules,
    /// A time up to the longest, ns, or a word.
    TimeOr(&'static str, f64),
    /// A bare number for all terminals, one for each, or the ends from which each is drawn.
    PerTerminal(f64, f64),
    /// The name of a policy, or a file with one.
    Policy,
    /// At most so many packets, or a time.
    Limit(u64),
    /// A play-out buffer, or a list of them.
    Playout,
    /// When transfers arrive.
    Arrivals,
    /// A list of rates.
    Rates,
    /// A value of the kind of the key that the table belongs to.
    Value,
    /// An address with prefix length, or several.
    Nets,
    /// A local or remote address with a port.
    Socket,
    /// An address or a name with a port.
    Endpoint,
    /// The name of a network device.
    Device,
    /// A string without blanks.
    Word,
    /// A key of WireGuard.
    PublicKey,
    /// A code point of DiffServ.
    CodePoint,
    /// Code points of DiffServ, one or several.
    CodePoints,
    /// Protocols above IP, one or several.
    Protocols,
    /// Ports or ranges of ports, one or several.
    Ports,
    /// True, false, or a table with keys of its own.
    FlagOr(&'static Table),
    /// The policy among peers.
    Across,
    /// As the key of this name in `[link]` of a scenario.
    OfScenario(&'static str),
    /// Something else; these words say what.
    Other(&'static str),
}

impl Shape {
    /// What the reference says of the values, in Markdown.
    #[must_use]
    pub fn cell(&self) -> String {
        match *self {
            Shape::Quantity(kind, least, most) => {
                format!("{} .. {}", end(least, kind), end(most, kind))
            }
            Shape::Number(least, most) => format!("{least} .. {most}"),
            Shape::Real(least, most) => format!("{least} .. {most}"),
            Shape::Flag => "true, false".to_owned(),
            Shape::Text(what) => what.to_owned(),
            Shape::Words(words) => words.join(", "),
            Shape::OverTime(kind, least, most) => format!(
                "{}, or [over time](#values-over-time)",
                Shape::Quantity(kind, least, most).cell()
            ),
            Shape::Nested(_) => "a table".to_owned(),
            Shape::Tables(_) => "list of tables".to_owned(),
            Shape::Random(Some(kind), least, most) => format!(
                "{}, or [random](#random-amounts)",
                Shape::Quantity(kind, least, most).cell()
            ),
            Shape::Random(None, least, most) => {
                format!("{least} .. {most}, or [random](#random-amounts)")
            }
            Shape::Packets(most) => format!(
                "{}, or [a mix](#packet-sizes)",
                Shape::Quantity(Kind::Size, 1.0, most as f64).cell()
            ),
            Shape::Losses(_) => format!(
                "{}, or [in bursts](#losses-in-bursts-and-reordering)",
                Shape::OverTime(Kind::Fraction, 0.0, 1.0)
                    .cell()
                    .replace(", or [over time](#values-over-time)", ", or over time")
            ),
            Shape::Rules => "list of rules".to_owned(),
            Shape::TimeOr(word, most) => {
                format!(
                    "{}, or {word}",
                    Shape::Quantity(Kind::Time, 0.0, most).cell()
                )
            }
            Shape::PerTerminal(least, most) => format!("{least} .. {most}"),
            Shape::Policy => "a name of a policy, or a file".to_owned(),
            Shape::Limit(most) => format!(
                "{}, or {}",
                Shape::Quantity(Kind::Packets, 1.0, most as f64).cell(),
                Shape::Quantity(Kind::Time, 1e6, 60e9).cell()
            ),
            Shape::Playout => "1ms .. 10s, adaptive, or a list of them".to_owned(),
            Shape::Arrivals | Shape::Columns => "table".to_owned(),
            Shape::Rates => "list of rates".to_owned(),
            Shape::Value => "a value".to_owned(),
            Shape::Nets => "address with prefix length, or a list".to_owned(),
            Shape::Socket => "address:port".to_owned(),
            Shape::Endpoint => "address:port, or name:port".to_owned(),
            Shape::Device => "a network device".to_owned(),
            Shape::Word => "a word".to_owned(),
            Shape::PublicKey => "32 bytes in base64".to_owned(),
            Shape::CodePoint | Shape::CodePoints => "a code point".to_owned(),
            Shape::Protocols => "a protocol".to_owned(),
            Shape::Ports => "1 .. 65535".to_owned(),
            Shape::FlagOr(_) => "true, false, or a table".to_owned(),
            Shape::Across => "a table".to_owned(),
            Shape::OfScenario(_) => "as in scenarios".to_owned(),
            Shape::Other(words) => words.to_owned(),
        }
    }
}

/// An end of a range, as messages show it.
fn end(value: f64, kind: Kind) -> String {
    if value >= 0.0 && value.fract() == 0.0 && !matches!(kind, Kind::Fraction | Kind::Seconds) {
        return units::show_whole(value as u64, kind);
    }
    units::show_real(value, kind)
}

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

    fn show(&self, value: &u64) -> String {
        quote(&units::show_whole(*value, self.kind))
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

    fn show(&self, value: &u32) -> String {
        quote(&units::show_whole((*value).into(), self.kind))
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

    fn show(&self, value: &i64) -> String {
        let sign = if *value < 0 { "-" } else { "" };
        quote(&format!(
            "{sign}{}",
            units::show_whole(value.unsigned_abs(), self.kind)
        ))
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

    fn show(&self, value: &f64) -> String {
        match self.kind {
            Kind::Fraction => show_number(*value),
            kind => quote(&units::show_real(*value, kind)),
        }
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

    fn show(&self, value: &u64) -> String {
        quote(&show_ppm(*value))
    }

    fn shape(&self) -> Shape {
        Shape::Quantity(Kind::Fraction, self.min as f64 / 1e6, self.max as f64 / 1e6)
    }
}

/// A value over time.
impl Form for Values {
    type Value = Signal;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<Signal, Fault> {
        values::read(entry, *self).map(|(signal, _)| signal)
    }

    fn show(&self, value: &Signal) -> String {
        values::show(value, *self)
    }

    fn shape(&self) -> Shape {
        Shape::OverTime(self.kind, self.min, self.max)
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

    fn show(&self, value: &u64) -> String {
        value.to_string()
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

    fn show(&self, value: &f64) -> String {
        show_number(*value)
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

    fn show(&self, value: &bool) -> String {
        value.to_string()
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

    fn show(&self, value: &usize) -> String {
        quote(self.of.get(*value).copied().unwrap_or_default())
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

    fn show(&self, value: &String) -> String {
        quote(value)
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

    fn show(&self, value: &Self::Value) -> String {
        match *value {}
    }

    fn shape(&self) -> Shape {
        self.shape
    }
}
