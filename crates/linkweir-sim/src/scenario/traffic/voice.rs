// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "voice"`.

use linkweir_config::reader::{quote, Section};
use linkweir_config::units::Kind;
use linkweir_config::Fault;

use crate::codec::{CODECS, HEADER_BYTES, PAUSE_NS, TALKSPURT_NS};
use crate::experiment::Traffic;

pub(super) fn read(section: &mut Section<'_, '_>) -> Result<Traffic, Fault> {
    let names: Vec<&str> = CODECS.iter().map(|codec| codec.name).collect();
    let chosen = section.need("codec", "\"g711\"")?.choice(&names)?;
    let codec = &CODECS[chosen];
    section.write("codec", quote(codec.name));
    let header_bytes = section.small("header", Kind::Size, (0, 1000), HEADER_BYTES)?;
    let talks = section.flag("talkspurts", false)?;
    Ok(Traffic::Voice {
        packet_bytes: codec.payload_bytes + header_bytes,
        interval_ns: codec.interval_ns,
        talkspurts_ns: talks.then_some((TALKSPURT_NS, PAUSE_NS)),
        jitter: section.real("jitter", 0.0, 1.0, 0.0)?,
    })
}
