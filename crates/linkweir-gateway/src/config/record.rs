// SPDX-License-Identifier: BSD-3-Clause
//! `[record]`: the flight recorder.

use std::path::PathBuf;

use linkweir_config::keys::gateway::{ADDRESSES, FOLDER, PACKETS, RECORD, SIZE};
use linkweir_config::reader::Section;
use linkweir_config::Fault;

use super::paths::path;

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
    let Some(entry) = top.find(RECORD.path) else {
        return Ok(None);
    };
    let Some(mut section) = entry.table() else {
        return Err(
            entry.fault("must be a table: write [record] and folder = \"/var/lib/linkweir\" below")
        );
    };
    let folder = path(&section.entry_of(&FOLDER)?)?;
    let packets = section.take(&PACKETS)?;
    let addresses = section.take(&ADDRESSES)?;
    let size_bytes = section.take(&SIZE)?;
    section.finish()?;
    Ok(Some(Record {
        folder,
        packets,
        addresses,
        size_bytes,
    }))
}
