// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "web"`.

use linkweir_config::reader::Section;
use linkweir_config::Fault;

use crate::experiment::Session;

use super::super::keys::kinds::{
    WEB_CONNECTIONS, WEB_MAIN, WEB_OBJECT, WEB_OBJECTS, WEB_SERVER_TIME, WEB_THINK,
};
use super::amount::{self, Files};

pub(super) fn read(section: &mut Section<'_, '_>, files: &mut Files<'_>) -> Result<Session, Fault> {
    let main = amount::need(section, &WEB_MAIN, files)?;
    let objects = amount::need(section, &WEB_OBJECTS, files)?;
    let object = amount::need(section, &WEB_OBJECT, files)?;
    let connections = section.take(&WEB_CONNECTIONS)?;
    Ok(Session::Web {
        main,
        objects,
        object,
        connections: u32::try_from(connections).unwrap_or(u32::MAX),
        server_ns: amount::find(section, &WEB_SERVER_TIME, 0.0, files)?,
        think_ns: amount::need(section, &WEB_THINK, files)?,
    })
}
