// SPDX-License-Identifier: BSD-3-Clause
//! Keys of a flow that ask for measurements of it.

use linkweir_config::reader::{quote, Entry, Section};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{Measures, Playout, Traffic};

/// Lengths of a play-out buffer, ns.
const BUFFERS_NS: (u64, u64) = (1_000_000, 10_000_000_000);
/// Most buffers of a flow.
const BUFFERS: usize = 8;
const ADAPTIVE: &str = "adaptive";

/// Reads `delays` and `playout`.
pub(super) fn read(section: &mut Section<'_, '_>, traffic: &Traffic) -> Result<Measures, Fault> {
    Ok(Measures {
        delays: section.flag("delays", false)?,
        playout: playout(section, traffic)?,
    })
}

/// Reads `playout`: a buffer, or a list of them. TCP has none, as its receiver waits for what is late.
fn playout(section: &mut Section<'_, '_>, traffic: &Traffic) -> Result<Vec<Playout>, Fault> {
    if let Traffic::Tcp(_) = traffic {
        return Ok(Vec::new());
    }
    let Some(entry) = section.find("playout") else {
        section.remark("playout: none");
        return Ok(Vec::new());
    };
    let buffers = if entry.is_list() {
        let entries = entry.list(BUFFERS)?;
        entries.iter().map(buffer).collect::<Result<Vec<_>, _>>()?
    } else {
        vec![buffer(&entry)?]
    };
    for (index, one) in buffers.iter().enumerate() {
        if buffers[..index].contains(one) {
            return Err(entry.fault(format!("names {} twice; leave one out", quote(&one.name))));
        }
    }
    let names: Vec<String> = buffers.iter().map(|buffer| quote(&buffer.name)).collect();
    section.write("playout", format!("[{}]", names.join(", ")));
    Ok(buffers)
}

fn buffer(entry: &Entry<'_, '_>) -> Result<Playout, Fault> {
    if entry.text() == Ok(ADAPTIVE) {
        return Ok(Playout {
            name: ADAPTIVE.to_owned(),
            buffer_ns: None,
        });
    }
    let buffer_ns = entry.whole(Kind::Time, BUFFERS_NS).map_err(|mut fault| {
        fault.message.push_str(", or \"adaptive\"");
        fault
    })?;
    Ok(Playout {
        name: units::show_whole(buffer_ns, Kind::Time),
        buffer_ns: Some(buffer_ns),
    })
}
