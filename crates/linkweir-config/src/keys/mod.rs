// SPDX-License-Identifier: BSD-3-Clause
//! The keys of scenarios and of the gateway's files, each declared once: name, kind, unit, range, default, meaning, and what
//! each host does with it.
//!
//! A row of [`keys!`](macro@keys) is a key. The parsers read by it ([`Section::take`](crate::reader::Section::take)), so
//! ranges and defaults are written here only; the reference pages, the schemas for editors, the keys of sweeps, and the typed
//! scenario in Python are made of it. A row without a decision for every host does not compile: [`Hosts`] has no default.

pub mod form;
pub mod gateway;
pub mod hosts;
pub mod link;
mod reading;
pub mod time;

pub use form::{Form, Shape};
pub use hosts::{Hosts, Treatment};

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

/// The default is a value, and another one in a second case: of TCP's keys, with the profile `ns2`.
pub struct Twofold<V>(pub V, pub V);

/// What a default says to a reader.
pub trait Default<F: Form> {
    /// The cell of a reference page: code if it is a value.
    fn cell(&self, form: &F) -> String;

    /// The cell for the second case, if there is one.
    fn second(&self, _form: &F) -> Option<String> {
        None
    }
}

impl<F: Form> Default<F> for Twofold<F::Value> {
    fn cell(&self, form: &F) -> String {
        format!("`{}`", form.show(&self.0))
    }

    fn second(&self, form: &F) -> Option<String> {
        Some(format!("`{}`", form.show(&self.1)))
    }
}

impl<F: Form> Default<F> for Usual<F::Value> {
    fn cell(&self, form: &F) -> String {
        format!("`{}`", form.show(&self.0))
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
    /// The first version that has these keys.
    pub since: &'static str,
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
/// `after [...]` lists tables whose keys the table has, too. The default is `usual(value)`, `twofold(value, value in the second case)`, `required("an example")` or `otherwise("words")`. `values "words"` at the end of a row
/// replaces what the reference page says of the values.
#[macro_export]
macro_rules! keys {
    (
        $(#[$doc:meta])*
        $table:ident $path:literal since $since:literal $(after [$($before:expr),*])? {
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
            since: $since,
            after: &[$($($before),*)?],
            own: &[$(&$id),*],
        };
    };
    (@type usual $form:ident) => { $crate::keys::Usual<<$form as $crate::keys::Form>::Value> };
    (@type required $form:ident) => { $crate::keys::Required };
    (@type twofold $form:ident) => { $crate::keys::Twofold<<$form as $crate::keys::Form>::Value> };
    (@type otherwise $form:ident) => { $crate::keys::Otherwise };
    (@default usual $value:expr) => { $crate::keys::Usual($value) };
    (@default required $value:expr) => { $crate::keys::Required($value) };
    (@default twofold $value:literal $second:literal) => { $crate::keys::Twofold($value, $second) };
    (@default otherwise $value:expr) => { $crate::keys::Otherwise($value) };
    (@values) => { None };
    (@values $values:literal) => { Some($values) };
}
