// SPDX-License-Identifier: BSD-3-Clause
//! The keys of scenarios and of the gateway's files, each declared once: name, kind, unit, range, default, meaning, and what
//! each host does with it.
//!
//! A row of [`keys!`](macro@crate::keys) is a key. The parsers read by it ([`Section::take`](crate::reader::Section::take)), so
//! ranges and defaults are written here only; the reference pages, the schemas for editors, the keys of sweeps, and the typed
//! scenario in Python are made of it. A row without a decision for every host does not compile: [`Hosts`] has no default.

pub mod form;
pub mod gateway;
pub mod hosts;
pub mod link;
mod reading;
pub mod time;

pub use hosts::{Hosts, Treatment};

use crate::fault::Fault;
use crate::reader::{Entry, Value};
use crate::units::{self, Kind};

/// A form that is read without further knowledge.
pub trait Form {
    /// What is read.
    type Value;

    /// Reads a value.
    ///
    /// # Errors
    /// A value of another form or out of range.
    fn read(&self, entry: &Entry<'_, '_>) -> Result<Self::Value, Fault>;

    /// The value as the resolved form has it.
    fn written(&self, value: &Self::Value) -> Value;

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
    /// A table, or a list of tables with other keys.
    OneOrSeveral(&'static Table, &'static Table),
    /// A list of names.
    Names,
    /// One of these words, or a list of names.
    WordsOrNames(&'static [&'static str]),
    /// The name of a class, or a table with the class on each link.
    ClassName,
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
    /// A size up to the largest, bytes, or a word.
    SizeOr(&'static str, f64),
    /// A bare number for all terminals, one for each, or the ends from which each is drawn.
    PerTerminal(f64, f64),
    /// The name of a policy, or a file with one.
    Policy,
    /// At most so many packets, or a time.
    Limit(u64, (u64, u64)),
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
            Shape::OneOrSeveral(..) => "a table, or list of tables".to_owned(),
            Shape::Names => "list of names".to_owned(),
            Shape::WordsOrNames(words) => format!("{}, or list of names", words.join(", ")),
            Shape::ClassName => {
                "name of a class, or a table with the class on each link".to_owned()
            }
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
            Shape::SizeOr(word, most) => {
                format!(
                    "{}, or {word}",
                    Shape::Quantity(Kind::Size, 1.0, most).cell()
                )
            }
            Shape::PerTerminal(least, most) => format!("{least} .. {most}"),
            Shape::Policy => "a name of a policy, or a file".to_owned(),
            Shape::Limit(most, (least_ns, most_ns)) => format!(
                "{}, or {}",
                Shape::Quantity(Kind::Packets, 1.0, most as f64).cell(),
                Shape::Quantity(Kind::Time, least_ns as f64, most_ns as f64).cell()
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

/// A key: what parsers read by.
pub struct Key<F: Form, D> {
    /// Its name in the table.
    pub name: &'static str,
    /// Kind, unit and range.
    pub form: F,
    /// What it is if it is not given.
    pub default: D,
    /// What the values are in words, if [`Shape::cell`] does not say it all.
    pub values: Option<&'static str>,
    /// Its meaning, in Markdown.
    pub meaning: &'static str,
    /// What each host does with it.
    pub hosts: Hosts,
}

/// The default is a value.
pub struct Usual<V>(pub V);
/// The key must be given; an example of its value, in TOML.
pub struct Required(pub &'static str);
/// The parser decides, as these words say: `none` if it is as if there were no such key.
pub struct Otherwise(pub &'static str);

/// The parser computes a value from others, as these words say.
pub struct Computed(pub &'static str);
/// The default is a value, and another one in a second case: of TCP's keys, with the profile `ns2`.
pub struct Twofold<V>(pub V, pub V);

/// What a default says to a reader.
pub trait Default<F: Form> {
    /// The cell of a reference page: code if it is a value.
    fn cell(&self, form: &F) -> String;

    /// Whether the key has a value even if it is not given.
    fn always(&self) -> bool {
        true
    }

    /// The cell for the second case, if there is one.
    fn second(&self, _form: &F) -> Option<String> {
        None
    }
}

impl<F: Form> Default<F> for Twofold<F::Value> {
    fn cell(&self, form: &F) -> String {
        format!("`{}`", form.written(&self.0))
    }

    fn second(&self, form: &F) -> Option<String> {
        Some(format!("`{}`", form.written(&self.1)))
    }
}

impl<F: Form> Default<F> for Usual<F::Value> {
    fn cell(&self, form: &F) -> String {
        format!("`{}`", form.written(&self.0))
    }
}

impl<F: Form> Default<F> for Required {
    fn cell(&self, _form: &F) -> String {
        "required".to_owned()
    }
}

impl<F: Form> Default<F> for Otherwise {
    fn cell(&self, _form: &F) -> String {
        self.0.to_owned()
    }

    fn always(&self) -> bool {
        false
    }
}

impl<F: Form> Default<F> for Computed {
    fn cell(&self, _form: &F) -> String {
        self.0.to_owned()
    }
}

/// A key as a reader of the reference sees it.
pub trait Row: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Kind, unit and range.
    fn shape(&self) -> Shape;
    /// Which values it may have, in Markdown.
    fn values(&self) -> String;
    /// Its default, in Markdown.
    fn default(&self) -> String;
    /// Whether it has a value in every resolved scenario that has its table.
    fn always(&self) -> bool;
    /// Its default in a second case, in Markdown, if the table knows one.
    fn second_default(&self) -> Option<String>;
    /// Its meaning, in Markdown.
    fn meaning(&self) -> &'static str;
    /// What each host does with it.
    fn hosts(&self) -> &Hosts;
}

impl<F: Form + Sync, D: Default<F> + Sync> Row for Key<F, D> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn shape(&self) -> Shape {
        self.form.shape()
    }

    fn values(&self) -> String {
        self.values
            .map_or_else(|| self.form.shape().cell(), str::to_owned)
    }

    fn default(&self) -> String {
        self.default.cell(&self.form)
    }

    fn always(&self) -> bool {
        self.default.always()
    }

    fn second_default(&self) -> Option<String> {
        self.default.second(&self.form)
    }

    fn meaning(&self) -> &'static str {
        self.meaning
    }

    fn hosts(&self) -> &Hosts {
        &self.hosts
    }
}

/// The keys of a table.
pub struct Table {
    /// How the table is called in messages and pages, such as `link.satellite`.
    pub path: &'static str,
    /// Tables whose keys it has, too, before its own.
    pub after: &'static [&'static Table],
    /// Its own keys, in the order of the reference.
    pub own: &'static [&'static dyn Row],
}

impl Table {
    /// All its keys, in the order of the reference.
    #[must_use]
    pub fn keys(&self) -> Vec<&'static dyn Row> {
        let before = self.after.iter().flat_map(|table| table.keys());
        before.chain(self.own.iter().copied()).collect()
    }
}

/// Declares the keys of a table, a row each:
///
/// `NAME "name": Form { range }, default, HOSTS, "meaning";`
///
/// `after [...]` lists tables whose keys the table has, too. The default is `usual(value)`, `twofold(value, value in the second case)`, `required("an example")`,
/// `computed("from what")` or `otherwise("words")`. `values "words"` at the end of a row
/// replaces what the reference page says of the values.
#[macro_export]
macro_rules! keys {
    (
        $(#[$doc:meta])*
        $table:ident $path:literal $(after [$($before:expr),*])? {
            $($id:ident $name:literal: $form:ident $args:tt, $default:ident($($value:expr),*), $hosts:expr, $meaning:literal
                $(, values $values:literal)?;)*
        }
    ) => {
        $(
            #[doc = $meaning]
            pub static $id: $crate::keys::Key<$form, $crate::keys!(@type $default $form)> = $crate::keys::Key {
                name: $name,
                form: $form $args,
                default: $crate::keys!(@default $default $($value)*),
                values: $crate::keys!(@values $($values)?),
                meaning: $meaning,
                hosts: $hosts,
            };
        )*
        $(#[$doc])*
        pub static $table: $crate::keys::Table = $crate::keys::Table {
            path: $path,
            after: &[$($($before),*)?],
            own: &[$(&$id),*],
        };
    };
    (@type usual $form:ident) => { $crate::keys::Usual<<$form as $crate::keys::Form>::Value> };
    (@type required $form:ident) => { $crate::keys::Required };
    (@type twofold $form:ident) => { $crate::keys::Twofold<<$form as $crate::keys::Form>::Value> };
    (@type computed $form:ident) => { $crate::keys::Computed };
    (@type otherwise $form:ident) => { $crate::keys::Otherwise };
    (@default usual $value:expr) => { $crate::keys::Usual($value) };
    (@default required $value:expr) => { $crate::keys::Required($value) };
    (@default twofold $value:literal $second:literal) => { $crate::keys::Twofold($value, $second) };
    (@default computed $value:expr) => { $crate::keys::Computed($value) };
    (@default otherwise $value:expr) => { $crate::keys::Otherwise($value) };
    (@values) => { None };
    (@values $values:literal) => { Some($values) };
}
