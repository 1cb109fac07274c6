// SPDX-License-Identifier: BSD-3-Clause
//! Reading a table by the declarations of its keys.

use crate::fault::Fault;
use crate::reader::{Entry, Section};

use super::{Form, Key, Otherwise, Required, Usual};

impl<'s, 'i> Section<'s, 'i> {
    /// The value of a key, or its default, also written into the resolved form.
    ///
    /// # Errors
    /// A value of another form or out of range.
    pub fn take<F: Form>(&mut self, key: &Key<F, Usual<F::Value>>) -> Result<F::Value, Fault>
    where
        F::Value: Clone,
    {
        self.take_or(key, key.default.0.clone())
    }

    /// As [`Section::take`], with a default that depends on other keys.
    ///
    /// # Errors
    /// A value of another form or out of range.
    pub fn take_or<F: Form, D>(
        &mut self,
        key: &Key<F, D>,
        default: F::Value,
    ) -> Result<F::Value, Fault> {
        let value = self
            .find(key.name)
            .map_or(Ok(default), |entry| key.form.read(&entry))?;
        self.write(key.name, key.form.written(&value));
        Ok(value)
    }

    /// The value of a key that must be given, also written into the resolved form.
    ///
    /// # Errors
    /// When it is missing, of another form or out of range.
    pub fn demand<F: Form>(&mut self, key: &Key<F, Required>) -> Result<F::Value, Fault> {
        let value = key.form.read(&self.entry_of(key)?)?;
        self.write(key.name, key.form.written(&value));
        Ok(value)
    }

    /// The entry of a key that must be given.
    ///
    /// # Errors
    /// When it is missing.
    pub fn entry_of<F: Form>(&mut self, key: &Key<F, Required>) -> Result<Entry<'s, 'i>, Fault> {
        self.need(key.name, key.default.0)
    }

    /// Writes the value of a key into the resolved form, if it has one.
    pub fn write_given<F: Form, D>(&mut self, key: &Key<F, D>, value: Option<&F::Value>) {
        if let Some(value) = value {
            self.write(key.name, key.form.written(value));
        }
    }

    /// The value of a key, if it is given. Nothing is written into the resolved form.
    ///
    /// # Errors
    /// A value of another form or out of range.
    pub fn given<F: Form>(&mut self, key: &Key<F, Otherwise>) -> Result<Option<F::Value>, Fault> {
        self.find(key.name)
            .map(|entry| key.form.read(&entry))
            .transpose()
    }
}
