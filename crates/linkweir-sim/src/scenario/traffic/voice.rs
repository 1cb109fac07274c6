// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "voice"`.

use linkweir_config::reader::Section;
use linkweir_config::Fault;

use crate::codec::{CODECS, PAUSE_NS, TALKSPURT_NS};
use crate::experiment::Traffic;

use super::super::keys::kinds::{VOICE_CODEC, VOICE_HEADER, VOICE_JITTER, VOICE_TALKSPURTS};

pub(super) fn read(section: &mut Section<'_, '_>) -> Result<Traffic, Fault> {
    let codec = &CODECS[section.demand(&VOICE_CODEC)?];
    let header_bytes = section.take(&VOICE_HEADER)?;
    let talks = section.take(&VOICE_TALKSPURTS)?;
    Ok(Traffic::Voice {
        packet_bytes: codec.payload_bytes + header_bytes,
        interval_ns: codec.interval_ns,
        talkspurts_ns: talks.then_some((TALKSPURT_NS, PAUSE_NS)),
        jitter: section.take(&VOICE_JITTER)?,
    })
}
