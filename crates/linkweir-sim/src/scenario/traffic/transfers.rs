// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "transfers"`.

use linkweir_config::reader::{quote, Section};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{Amount, Arrivals, Session};

use super::super::limits;
use super::amount::{self, Files};

const DEFAULT_CONCURRENT: u32 = 1000;

pub(super) fn read(section: &mut Section<'_, '_>, files: &mut Files<'_>) -> Result<Session, Fault> {
    let size = amount::need(section, "size", amount::BYTES, files)?;
    let arrivals = arrivals(section, &size)?;
    let concurrent = section.number(
        "concurrent",
        (1, limits::CONNECTIONS),
        DEFAULT_CONCURRENT.into(),
    )?;
    Ok(Session::Transfers {
        arrivals,
        size,
        concurrent: u32::try_from(concurrent).unwrap_or(u32::MAX),
    })
}

fn arrivals(section: &mut Section<'_, '_>, size: &Amount) -> Result<Arrivals, Fault> {
    const EXAMPLE: &str = "{ every = \"500ms\" }";
    let entry = section.need("arrivals", EXAMPLE)?;
    let Some(mut table) = entry.table() else {
        return Err(entry.fault(format!("must be a table, such as {EXAMPLE}")));
    };
    let gap = (1.0, limits::DURATION_NS as f64);
    let (arrivals, shown) = if let Some(times) = table.find("at") {
        listed(&times)?
    } else if let Some(load) = table.find("load") {
        let load_bps = load.quantity(Kind::Rate, 1.0, limits::RATE_BPS as f64)?;
        let mean_ns = 8e9 * amount::mean(size) / load_bps;
        if !(gap.0..=gap.1).contains(&mean_ns) {
            let shown = units::show_real(mean_ns, Kind::Time);
            let message = format!("gives a transfer every {shown}; raise it, or lower size");
            return Err(load.fault(message));
        }
        poisson(mean_ns)
    } else {
        let Some(every) = table.find("every") else {
            return Err(table.missing(
                "every",
                "is missing; write every = \"500ms\", load = \"5Mbit\" or at = [\"0s\", \"3s\"]",
            ));
        };
        let words = ["poisson", "periodic"];
        match table.find("process").map_or(Ok(0), |e| e.choice(&words))? {
            0 => poisson(every.quantity(Kind::Time, gap.0, gap.1)?),
            _ => {
                let every_ns = every.whole(Kind::Time, (1, limits::DURATION_NS))?;
                let shown = quote(&units::show_whole(every_ns, Kind::Time));
                (
                    Arrivals::Periodic { every_ns },
                    format!("{{ every = {shown}, process = \"periodic\" }}"),
                )
            }
        }
    };
    table.finish()?;
    section.write("arrivals", shown);
    Ok(arrivals)
}

fn poisson(mean_ns: f64) -> (Arrivals, String) {
    let shown = quote(&units::show_real(mean_ns, Kind::Time));
    (
        Arrivals::Poisson { mean_ns },
        format!("{{ every = {shown}, process = \"poisson\" }}"),
    )
}

fn listed(times: &linkweir_config::reader::Entry<'_, '_>) -> Result<(Arrivals, String), Fault> {
    let mut at_ns: Vec<u64> = Vec::new();
    for time in times.list(limits::POINTS)? {
        let ns = time.whole(Kind::Time, (0, limits::DURATION_NS))?;
        if at_ns.last().is_some_and(|before| *before > ns) {
            return Err(time.fault("times must not fall from one to the next"));
        }
        at_ns.push(ns);
    }
    let shown: Vec<String> = at_ns
        .iter()
        .map(|ns| quote(&units::show_whole(*ns, Kind::Time)))
        .collect();
    let shown = format!("{{ at = [{}] }}", shown.join(", "));
    Ok((Arrivals::At(at_ns.into()), shown))
}
