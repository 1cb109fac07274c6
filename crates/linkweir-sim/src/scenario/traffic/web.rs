// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "web"`.

use linkweir_config::reader::Section;
use linkweir_config::Fault;

use crate::experiment::Session;

use super::super::limits;
use super::amount::{self, Files};

/// Connections that browsers open to a host over HTTP/1.1.
const DEFAULT_CONNECTIONS: u64 = 6;

pub(super) fn read(section: &mut Section<'_, '_>, files: &mut Files<'_>) -> Result<Session, Fault> {
    let main = amount::need(section, "main", amount::BYTES, files)?;
    let objects = amount::need(section, "objects", amount::COUNT, files)?;
    let object = amount::need(section, "object", amount::BYTES, files)?;
    let most = limits::PAGE_CONNECTIONS;
    let connections = section.number("connections", (1, most), DEFAULT_CONNECTIONS)?;
    Ok(Session::Web {
        main,
        objects,
        object,
        connections: u32::try_from(connections).unwrap_or(u32::MAX),
        server_ns: amount::find(section, "server_time", amount::PAUSE, 0.0, files)?,
        think_ns: amount::need(section, "think", amount::PAUSE, files)?,
    })
}
