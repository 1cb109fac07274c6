// SPDX-License-Identifier: BSD-3-Clause
//! `policy = { c = "mine.c" }` and `policy = { python = "mine.py:Mine" }`: policies that the user brings along.

use std::path::Path;

use linkweir_config::reader::{Entry, Section, Value};
use linkweir_config::Fault;

use crate::experiment::Brought;

use super::inputs::{self, Input};
use super::overrides::Overrides;

/// Reads the table; the policy, and the table's resolved form.
pub(super) fn read(
    entry: &Entry<'_, '_>,
    mut table: Section<'_, '_>,
    overrides: &Overrides,
    inputs: &mut Vec<Input>,
    notes: &mut Vec<String>,
) -> Result<(Brought, Value), Fault> {
    let Some(finder) = &overrides.policies else {
        return Err(
            entry.fault("policies from files are for scenarios that run; name one of the core")
        );
    };
    if let Some(refusal) = finder.refusal() {
        return Err(entry.fault(refusal));
    }
    let folder = entry.source().file().and_then(Path::parent);
    let folder = folder.unwrap_or(Path::new("")).to_owned();
    let (c, python) = (table.find("c"), table.find("python"));
    let trusted = table.flag("trusted", false)?;
    let (file, found, written) = match (c, python) {
        (Some(file), None) => {
            let (path, bytes) = inputs::read(&file, "a policy in C", &folder)?;
            let found = finder.c(&path, &bytes, trusted);
            let kept = inputs::keep(path, bytes, inputs);
            (
                file,
                found,
                Value::inline([("c", kept.into()), ("trusted", trusted.into())]),
            )
        }
        (None, Some(file)) => {
            if let Some(key) = table.find("trusted") {
                return Err(key.fault(
                    "is for a policy in C only: one in Python always runs in this process",
                ));
            }
            let text = file.text()?;
            let (name, class) = text.rsplit_once(':').unwrap_or((text, ""));
            if name.is_empty() || class.is_empty() {
                return Err(
                    file.fault("must be a file and a class in it: \"mine.py:EarliestDeadline\"")
                );
            }
            let (path, bytes) = inputs::read_named(&file, name, "a policy in Python", &folder)?;
            let found = finder.python(&path, &bytes, class);
            let kept = inputs::keep(path, bytes, inputs);
            let kept = format!("{kept}:{class}");
            (file, found, Value::inline([("python", kept.into())]))
        }
        _ => {
            let message = "must be a policy's name, { c = \"mine.c\" } or { python = \"mine.py:EarliestDeadline\" }";
            return Err(entry.fault(message));
        }
    };
    table.known()?;
    let found = found.map_err(|what| file.fault(what))?;
    notes.extend(found.notes);
    Ok((Brought(found.maker), written))
}
