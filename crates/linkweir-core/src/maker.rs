// SPDX-License-Identifier: BSD-3-Clause
//! What a policy that is not of the core gives instead of a table.

use std::fmt;

use crate::core_policy::Fault;
use crate::info::Declaration;
use crate::policy::{Policy, View};

/// A policy that a user brings along: how it is declared, checked and started.
pub trait Maker: fmt::Debug + Send + Sync {
    /// Its name, its parameters and what it shows.
    fn declaration(&self) -> &'static Declaration;

    /// Whether it accepts these values for the queues of `view`.
    ///
    /// # Errors
    /// The first value out of its range, or what the policy itself refuses.
    fn check(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault>;

    /// A policy for the queues of `view`, with values that [`Maker::check`] accepted.
    ///
    /// # Errors
    /// Why there is none.
    fn start(
        &self,
        view: &View<'_>,
        params: &[u64],
        qparams: &[u64],
    ) -> Result<Box<dyn Policy + Send>, Fault>;
}
