// SPDX-License-Identifier: BSD-3-Clause
//! What a page asks for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use linkweir_sim::scenario::Overrides;

use crate::files::{Brought, Elsewhere};
use crate::parts;

/// A scenario to run, and what is wanted of the run.
///
/// As bytes it is a list of [`parts`], in any order:
///
/// | part | followed by |
/// |---|---|
/// | `scenario` | name of the file, its text |
/// | `key` | a key and the value that it gets, as TOML |
/// | `file` | path of a file that the scenario names, its content |
/// | `trace` | name of a trace in place of the link's rate, its content |
/// | `sent` | name of a class (of a network `link: class`), bytes that it sent in an earlier run: the order of many classes in charts |
/// | `points` | how many points a line over time has at most; 1000 without |
/// | `panel` | name of a panel that the charts are to have; all without |
/// | `want` | `charts`, `tables` or `knobs` |
#[derive(Debug, Default)]
pub struct Request {
    /// Name of the scenario's file; paths in it are relative to its folder.
    pub file: PathBuf,
    /// The scenario.
    pub text: String,
    /// What is changed in it, and the files that it names.
    pub overrides: Overrides,
    /// The numbers of charts are wanted.
    pub charts: bool,
    /// Names of the panels that the charts are to have; all if there is none.
    pub panels: Vec<String>,
    /// Points of a line over time, at most.
    pub points: Option<usize>,
    /// The tables are wanted.
    pub tables: bool,
    /// The keys that a page may change are wanted.
    pub knobs: bool,
    /// Bytes that classes sent in an earlier run.
    pub sent: BTreeMap<String, f64>,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// What it lacks.
    pub fn read(bytes: &[u8]) -> Result<Request, String> {
        let found = parts::read(bytes).ok_or("the request is cut off")?;
        let mut found = found.into_iter();
        let mut request = Request::default();
        let mut brought = Brought::default();
        while let Some(kind) = found.next() {
            let mut next = || found.next().ok_or("the request is cut off");
            match kind {
                b"scenario" => {
                    request.file = PathBuf::from(text(next()?)?);
                    request.text = text(next()?)?;
                }
                b"key" => {
                    let key = text(next()?)?;
                    request.overrides.keys.push((key, text(next()?)?));
                }
                b"file" => brought.add(text(next()?)?, next()?),
                b"trace" => {
                    request.overrides.trace = Some(PathBuf::from(text(next()?)?));
                    request.overrides.trace_content = Some(next()?.to_vec());
                }
                b"sent" => {
                    let class = text(next()?)?;
                    let bytes = text(next()?)?.parse();
                    let bytes = bytes.map_err(|_| format!("sent of {class:?} is no number"))?;
                    request.sent.insert(class, bytes);
                }
                b"panel" => request.panels.push(text(next()?)?),
                b"points" => {
                    let points = text(next()?)?.parse().ok().filter(|points| *points > 0);
                    request.points = Some(points.ok_or("points is no number from 1")?);
                }
                b"want" => match next()? {
                    b"charts" => request.charts = true,
                    b"knobs" => request.knobs = true,
                    b"tables" => request.tables = true,
                    other => return Err(unknown("wish", other)),
                },
                other => return Err(unknown("part", other)),
            }
        }
        request.overrides.files = Some(Arc::new(brought));
        request.overrides.policies = Some(Arc::new(Elsewhere));
        Ok(request)
    }
}

fn text(bytes: &[u8]) -> Result<String, String> {
    let text = String::from_utf8(bytes.to_vec());
    text.map_err(|_| "the file is not text (UTF-8)".to_owned())
}

fn unknown(what: &str, name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    format!("the request has an unknown {what} {name:?}")
}
