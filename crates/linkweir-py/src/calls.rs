// SPDX-License-Identifier: BSD-3-Clause
//! Runs whose policy's calls are recorded as a vector, to compare the simulator's decisions with those of other places.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linkweir_core::{
    check, CorePolicy, Declaration, Fault, Maker, Policy, PolicyInfo, Recorded, View,
};
use linkweir_sim::experiment::{Brought, Experiment};
use linkweir_sim::scenario::Scenario;

/// Makes a policy of the core that records its calls.
#[derive(Debug)]
struct Recorder {
    info: &'static PolicyInfo,
    path: PathBuf,
}

impl Maker for Recorder {
    fn declaration(&self) -> &'static Declaration {
        self.info
    }

    fn check(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        check(self.info, view, params, qparams)
    }

    fn start(
        &self,
        view: &View<'_>,
        params: &[u64],
        qparams: &[u64],
    ) -> Result<Box<dyn Policy + Send>, Fault> {
        let policy = CorePolicy::new(self.info, view, params, qparams)?;
        let file = File::create(&self.path).map_err(|error| Fault {
            policy: self.info.name,
            param: None,
            queue: None,
            value: None,
            range: None,
            cure: format!("cannot record calls in {}: {error}", self.path.display()),
        })?;
        let out = BufWriter::new(file);
        let recorded = Recorded::new(policy, self.info, view, params, qparams, out);
        Ok(Box::new(recorded))
    }
}

/// The experiment of a scenario, with the calls of its policy recorded in `path`.
///
/// # Errors
/// Its policy is not one of the core, or there are several links.
pub fn recorded(scenario: &Scenario, path: &Path) -> Result<Experiment, String> {
    if scenario.network.is_some() {
        return Err(
            "link: calls are recorded of one policy, and this scenario has [[link]]".to_owned(),
        );
    }
    let experiment = &scenario.experiment;
    let scheduler = &experiment.scheduler;
    let core = linkweir_core::policy(&scheduler.policy).filter(|_| scheduler.brought.is_none());
    let info = core.ok_or_else(|| {
        format!(
            "scheduler.policy: {} is no policy of the core, and only calls of those can be recorded",
            scheduler.policy
        )
    })?;
    let mut experiment = experiment.clone();
    let path = path.to_owned();
    experiment.scheduler.brought = Some(Brought(Arc::new(Recorder { info, path })));
    Ok(experiment)
}
