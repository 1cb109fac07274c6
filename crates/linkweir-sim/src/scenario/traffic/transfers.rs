// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "transfers"`.

use linkweir_config::keys::Form;
use linkweir_config::reader::{Section, Value};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{Amount, Arrivals, Session};

use super::super::keys::inner::{AT, EVERY, LOAD, PROCESS};
use super::super::keys::kinds::{TRANSFERS_ARRIVALS, TRANSFERS_CONCURRENT, TRANSFERS_SIZE};
use super::super::limits;
use super::amount::{self, finish, Files};

pub(super) fn read(section: &mut Section<'_, '_>, files: &mut Files<'_>) -> Result<Session, Fault> {
    let size = amount::need(section, &TRANSFERS_SIZE, files)?;
    let arrivals = arrivals(section, &size)?;
    let concurrent = section.take(&TRANSFERS_CONCURRENT)?;
    Ok(Session::Transfers {
        arrivals,
        size,
        concurrent: u32::try_from(concurrent).unwrap_or(u32::MAX),
    })
}

fn arrivals(section: &mut Section<'_, '_>, size: &Amount) -> Result<Arrivals, Fault> {
    let entry = section.entry_of(&TRANSFERS_ARRIVALS)?;
    let Some(mut table) = entry.table() else {
        let example = TRANSFERS_ARRIVALS.default.0;
        return Err(entry.fault(format!("must be a table, such as {example}")));
    };
    let gap = (EVERY.form.min, EVERY.form.max);
    const ONE: &str = "at, load and every exclude each other; leave all but one out";
    let mut foreign = vec![
        (
            "shape",
            "is a key of size with distribution = \"pareto\"; process is poisson or periodic",
        ),
        (
            "concurrent",
            "is a key of the flow; write it beside arrivals",
        ),
    ];
    let (arrivals, written) = if let Some(times) = table.find(AT.name) {
        foreign.extend([
            (LOAD.name, ONE),
            (EVERY.name, ONE),
            (
                PROCESS.name,
                "is a key of every, and at gives all times; leave it out",
            ),
        ]);
        listed(&times)?
    } else if let Some(load) = table.find(LOAD.name) {
        let load_bps = LOAD.form.read(&load)?;
        foreign.extend([
            (EVERY.name, ONE),
            (
                PROCESS.name,
                "is a key of every, and load makes a Poisson process; leave it out",
            ),
        ]);
        let mean_ns = 8e9 * amount::mean(size) / load_bps;
        if !(gap.0..=gap.1).contains(&mean_ns) {
            let cure = match mean_ns < gap.0 {
                true => "lower it, or raise size",
                false => "raise it, or lower size",
            };
            let [shown, least, most] =
                [mean_ns, gap.0, gap.1].map(|ns| units::show_real(ns, Kind::Time));
            let message =
                format!("gives a transfer every {shown}, which must be {least} .. {most}; {cure}");
            return Err(load.fault(message));
        }
        poisson(mean_ns)
    } else {
        let every = table.find(EVERY.name);
        let process = table.find(PROCESS.name);
        let Some(every) = every else {
            finish(table, &foreign)?; // a key of another name tells more
            return Err(entry.fault(
                "must say when transfers arrive; add every = \"500ms\", load = \"5Mbit\" or at = [\"0s\", \"3s\"]",
            ));
        };
        match process.map_or(Ok(0), |e| PROCESS.form.read(&e))? {
            0 => poisson(EVERY.form.read(&every)?),
            _ => {
                let every_ns = every.whole(Kind::Time, (1, limits::DURATION_NS))?;
                let every = Value::Whole(every_ns, Kind::Time);
                (
                    Arrivals::Periodic { every_ns },
                    Value::inline([(EVERY.name, every), (PROCESS.name, "periodic".into())]),
                )
            }
        }
    };
    finish(table, &foreign)?;
    section.write(TRANSFERS_ARRIVALS.name, written);
    Ok(arrivals)
}

fn poisson(mean_ns: f64) -> (Arrivals, Value) {
    let every = Value::Amount(mean_ns, Kind::Time);
    (
        Arrivals::Poisson { mean_ns },
        Value::inline([(EVERY.name, every), (PROCESS.name, "poisson".into())]),
    )
}

fn listed(times: &linkweir_config::reader::Entry<'_, '_>) -> Result<(Arrivals, Value), Fault> {
    let mut at_ns: Vec<u64> = Vec::new();
    for time in times.list(limits::POINTS)? {
        let ns = time.whole(Kind::Time, (0, limits::DURATION_NS))?;
        if at_ns.last().is_some_and(|before| *before > ns) {
            return Err(time.fault("times must not fall from one to the next"));
        }
        at_ns.push(ns);
    }
    let times = at_ns.iter().map(|ns| Value::Whole(*ns, Kind::Time));
    let written = Value::inline([(AT.name, Value::List(times.collect()))]);
    Ok((Arrivals::At(at_ns.into()), written))
}
