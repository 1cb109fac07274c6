// SPDX-License-Identifier: BSD-3-Clause
//! Keys of a flow that ask for measurements of it.

use linkweir_config::reader::Section;
use linkweir_config::Fault;

use crate::experiment::Measures;

/// Reads `delays`.
pub(super) fn read(section: &mut Section<'_, '_>) -> Result<Measures, Fault> {
    Ok(Measures {
        delays: section.flag("delays", false)?,
    })
}
