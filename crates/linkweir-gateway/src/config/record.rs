// SPDX-License-Identifier: BSD-3-Clause
//! `[record]`: the flight recorder.

use std::path::PathBuf;

use linkweir_config::reader::Section;
use linkweir_config::units::Kind;
use linkweir_config::Fault;

use super::paths::path;

/// Bytes of all files of recordings.
const SIZE_BYTES: (u64, u64) = (1_000_000, 100_000_000_000_000);
const DEFAULT_BYTES: u64 = 1_000_000_000;

/// Settings of the flight recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Folder of the files.
    pub folder: PathBuf,
    /// Whether each packet is recorded, also where many arrive.
    pub packets: bool,
    /// Whether addresses are recorded.
    pub addresses: bool,
    /// Most bytes of all files.
    pub size_bytes: u64,
}

/// Reads `[record]`; none without it.
pub(super) fn read(top: &mut Section<'_, '_>) -> Result<Option<Record>, Fault> {
    let Some(entry) = top.find("record") else {
        return Ok(None);
    };
    let Some(mut section) = entry.table() else {
        return Err(
            entry.fault("must be a table: write [record] and folder = \"/var/lib/linkweir\" below")
        );
    };
    let folder = path(&section.need("folder", "\"/var/lib/linkweir\"")?)?;
    let packets = section.flag("packets", false)?;
    let addresses = section.flag("addresses", false)?;
    let size_bytes = section.whole("size", Kind::Size, SIZE_BYTES, DEFAULT_BYTES)?;
    section.finish()?;
    Ok(Some(Record {
        folder,
        packets,
        addresses,
        size_bytes,
    }))
}
