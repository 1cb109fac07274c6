// SPDX-License-Identifier: BSD-3-Clause
//! Delivery opportunities as mahimahi records them (Netravali et al. 2015).

use crate::fault::Fault;
use crate::limits;
use crate::signal::Capacity;
use crate::table::data_lines;
use crate::units::Decimal;

use super::described::Hints;
use super::file::Reader;
use super::format::{Format, TraceEnd};
use super::found::Trace;
use super::understood::Understood;

impl Reader {
    pub(super) fn mahimahi(&self, text: &str, hints: &Hints) -> Result<Trace, Fault> {
        if hints.end.is_some_and(|end| end != TraceEnd::Loop) {
            return Err(self.whole_fault(
                "a mahimahi trace always starts again; only end = \"loop\" is possible",
            ));
        }
        let mut at_ns: Vec<u64> = Vec::new();
        let mut last_ms = 0_u64;
        for (line, field) in data_lines(text) {
            let field = field.trim();
            let ms = self.milliseconds(line, field)?;
            if ms < last_ms {
                return Err(self.field_fault(
                    line,
                    "ms",
                    field,
                    format!("must not be less than the line before, {last_ms}"),
                ));
            }
            last_ms = ms;
            at_ns.push(ms * 1_000_000);
        }
        if at_ns.is_empty() {
            return Err(self.whole_fault("is empty; it must hold one whole number of ms per line"));
        }
        if last_ms == 0 {
            return Err(self.whole_fault("the last number is the period and must be larger than 0"));
        }
        let capacity = Capacity::Opportunities {
            at_ns: at_ns.into(),
            bytes: 1500,
        };
        let understood = Understood {
            columns: "each line is a time in ms at which 1500 bytes may leave".to_string(),
            ..Understood::of(&capacity)
        };
        Ok(Trace {
            capacity,
            delay_s: None,
            loss: None,
            format: Format::Mahimahi,
            column: None,
            columns: None,
            end: TraceEnd::Loop,
            hints: hints.clone(),
            understood,
            notes: Vec::new(),
        })
    }

    fn milliseconds(&self, line: usize, field: &str) -> Result<u64, Fault> {
        let max = limits::DURATION_NS / 1_000_000;
        let range = format!("must be a whole number of ms, 0 .. {max}");
        let decimal = Decimal::parse(field)
            .map_err(|what| self.field_fault(line, "ms", field, format!("{what}; {range}")))?;
        match decimal.whole() {
            Some((ms, true)) if ms <= max => Ok(ms),
            _ => Err(self.field_fault(line, "ms", field, range)),
        }
    }
}
