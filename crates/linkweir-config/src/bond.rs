// SPDX-License-Identifier: BSD-3-Clause
//! Bonds: how simulator and gateway read the keys of a class, and what they take for those that are left out.

use crate::fault::Fault;
use crate::reader::{nearest, quote, Entry};
use crate::units::Kind;

/// How a class uses the paths, if it does not name them.
pub const USES: [&str; 4] = ["best", "all", "spill", "stripe"];

/// How long the receiver restores the order unless the class says so, ns.
const USUAL_REORDER_NS: u64 = 50_000_000;

/// How long the receiver restores the order of a class, ns; none: it drops duplicates only. Packets that are sent over all
/// paths are not held: one that came over none of them would only delay those behind it.
#[must_use]
pub const fn reorder_ns(over_all: bool) -> Option<u64> {
    if over_all {
        None
    } else {
        Some(USUAL_REORDER_NS)
    }
}

/// Reads one of [`USES`].
///
/// # Errors
/// Another value: a name of a path belongs in a list.
pub fn uses(entry: &Entry<'_, '_>) -> Result<usize, Fault> {
    match entry.text() {
        Ok(text) if nearest(text, &USES).is_none() => Err(entry.fault(format!(
            "must be one of {}, or a list of names, like [{}]",
            USES.join(", "),
            quote(text)
        ))),
        _ => entry.choice(&USES),
    }
}

/// The end of a message about a name that no path has: one of [`USES`] belongs outside the list.
#[must_use]
pub fn meant(name: &str) -> String {
    if USES.contains(&name) {
        format!("; did you mean paths = {}, without a list?", quote(name))
    } else {
        String::new()
    }
}

/// Reads `reorder`, ns, within bounds; none: `"none"`.
///
/// # Errors
/// A value that is neither.
pub fn reorder(entry: &Entry<'_, '_>, bounds: (u64, u64)) -> Result<Option<u64>, Fault> {
    if entry.text() == Ok("none") {
        return Ok(None);
    }
    let given = entry.whole(Kind::Time, bounds).map(Some);
    given.map_err(|mut fault| {
        fault.message.push_str(", or \"none\"");
        fault
    })
}

/// What [`reorder_ns`] says, in words.
pub const REORDER: &str = "`\"50ms\"`, with `all` `\"none\"`";
