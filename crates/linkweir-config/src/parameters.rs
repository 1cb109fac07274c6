// SPDX-License-Identifier: BSD-3-Clause
//! Parameters of the core's policies in TOML. Names, units, ranges and defaults all come from the core's tables.

use linkweir_core::{Param, PolicyInfo, Queue, Unit, View, UNSET};

use crate::fault::Fault;
use crate::reader::{Entry, Section, Value};
use crate::units::{self, Kind};

fn kind(unit: Unit) -> Option<Kind> {
    match unit {
        Unit::Bps => Some(Kind::Rate),
        Unit::Ns => Some(Kind::Time),
        Unit::Bytes => Some(Kind::Size),
        Unit::Bits => Some(Kind::Bits),
        Unit::Pkts => Some(Kind::Packets),
        Unit::Number | Unit::Ppm | Unit::Choice => None,
    }
}

/// A value of a policy's parameter.
#[must_use]
pub fn written(param: &Param, value: u64) -> Value {
    match (param.unit, kind(param.unit)) {
        (_, Some(kind)) => Value::Whole(value, kind),
        (Unit::Ppm, _) => Value::Ppm(value),
        (Unit::Choice, _) => {
            let word = usize::try_from(value)
                .ok()
                .and_then(|i| param.choices.get(i))
                .copied()
                .unwrap_or_default();
            word.into()
        }
        _ => Value::Number(value),
    }
}

/// Reads a parameter and writes its resolved form; [`UNSET`] when it may stay away and does.
///
/// # Errors
/// A value that is no such quantity or out of its range.
pub fn read(section: &mut Section<'_, '_>, param: &'static Param) -> Result<u64, Fault> {
    let value = match section.find(param.name) {
        Some(entry) => given(&entry, param).map_err(|mut fault| {
            fault.message.push_str(&format!(" ({})", param.help));
            fault
        })?,
        None => param.default,
    };
    if value == UNSET {
        section.remark(&format!("{}: not given", param.name));
    } else {
        section.write(param.name, written(param, value));
    }
    Ok(value)
}

fn given(entry: &Entry<'_, '_>, param: &'static Param) -> Result<u64, Fault> {
    let bounds = (param.min, param.max);
    match (param.unit, kind(param.unit)) {
        (_, Some(kind)) => entry.whole(kind, bounds),
        (Unit::Ppm, _) => entry.ppm(bounds),
        (Unit::Choice, _) => entry.choice(&param.choices).map(|i| i as u64),
        _ => entry.number(bounds),
    }
}

/// The capacity for which parameters are checked.
pub struct Nominal {
    /// The capacity, bit/s.
    pub bps: u64,
    /// What it is and which key changes it, for messages.
    pub told: String,
}

impl Nominal {
    /// The key `link.nominal`.
    #[must_use]
    pub fn of_link(bps: u64) -> Nominal {
        let shown = units::show_whole(bps, Kind::Rate);
        Nominal {
            bps,
            told: format!("link.nominal = \"{shown}\", the mean capacity unless you give it"),
        }
    }
}

/// Asks the core whether values fit together. Its faults come back at the table of the
/// policy (`section`) or of the class they are about.
///
/// # Errors
/// A setting that the core refuses, as a fault.
pub fn check(
    info: &'static PolicyInfo,
    nominal: &Nominal,
    params: &[u64],
    qparams: &[u64],
    section: &Section<'_, '_>,
    classes: &[&Section<'_, '_>],
) -> Result<(), Fault> {
    let check = |view: &View<'_>| linkweir_core::check(info, view, params, qparams);
    check_with(check, info.name, nominal, section, classes)
}

/// As [`check`], for a policy called `name` that answers by itself whether it accepts values for the queues of a view.
/// # Errors
/// A setting that the policy refuses, as a fault.
pub fn check_with(
    check: impl FnOnce(&View<'_>) -> Result<(), linkweir_core::Fault>,
    name: &str,
    nominal: &Nominal,
    section: &Section<'_, '_>,
    classes: &[&Section<'_, '_>],
) -> Result<(), Fault> {
    let queues = vec![Queue::default(); classes.len()];
    let view = View {
        now_ns: 0,
        link_bps: nominal.bps,
        queues: &queues,
    };
    check(&view).map_err(|fault| {
        let place = fault
            .queue
            .and_then(|q| classes.get(q).copied())
            .unwrap_or(section);
        let told = if fault.cure.contains("link") {
            format!(", {}", nominal.told)
        } else {
            String::new()
        };
        let message = format!("{} ({name}{told})", fault.cure);
        match fault.param {
            Some(param) => place.fault_at(param, message),
            None => place.fault(message),
        }
    })
}
