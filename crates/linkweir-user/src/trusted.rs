// SPDX-License-Identifier: BSD-3-Clause
//! A user's C file in this process.

use linkweir_core::{CorePolicy, Declaration, Fault, Maker, Policy, PolicyInfo, View};

use crate::build::{Kind, Source};
use crate::watched::Watched;

/// Makes policies of a loaded library.
#[derive(Debug)]
pub(crate) struct Trusted {
    info: &'static PolicyInfo,
    shown: String,
}

/// Compiles and loads it. The library's file is removed; what is loaded stays until the program ends.
#[allow(unsafe_code)]
pub(crate) fn make(source: &Source) -> Result<(Trusted, String), String> {
    let built = source.build(Kind::Library)?;
    // SAFETY: the library was just compiled from the user's file and `harness/table.c`, which has the two functions and looks
    // at the table. That the user's functions keep to their state is what the user vouched for with `trusted = true`.
    let loaded = unsafe { linkweir_core::load(&built.file) };
    let info = loaded.map_err(|fault| format!("lw_policy_{}: {fault}", source.name))?;
    let shown = source.shown();
    Ok((Trusted { info, shown }, built.warnings.clone()))
}

impl Maker for Trusted {
    fn declaration(&self) -> &'static Declaration {
        self.info
    }

    fn check(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        linkweir_core::check(self.info, view, params, qparams)
    }

    fn start(
        &self,
        view: &View<'_>,
        params: &[u64],
        qparams: &[u64],
    ) -> Result<Box<dyn Policy + Send>, Fault> {
        let policy = CorePolicy::new(self.info, view, params, qparams)?;
        Ok(Box::new(Watched::new(policy, self.shown.clone())))
    }
}
