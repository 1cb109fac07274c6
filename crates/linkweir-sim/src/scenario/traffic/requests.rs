// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "requests"`.

use linkweir_config::reader::Section;
use linkweir_config::Fault;

use crate::experiment::Session;

use super::super::keys::kinds::{REQUESTS_RESPONSE, REQUESTS_SERVER_TIME, REQUESTS_THINK};
use super::amount::{self, Files};

pub(super) fn read(section: &mut Section<'_, '_>, files: &mut Files<'_>) -> Result<Session, Fault> {
    Ok(Session::Requests {
        response: amount::need(section, &REQUESTS_RESPONSE, files)?,
        server_ns: amount::find(section, &REQUESTS_SERVER_TIME, 0.0, files)?,
        think_ns: amount::need(section, &REQUESTS_THINK, files)?,
    })
}
