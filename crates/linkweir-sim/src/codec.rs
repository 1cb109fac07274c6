// SPDX-License-Identifier: BSD-3-Clause
//! Codecs of voice: what they send, and how they suffer. The one list of them: scenarios read it, and the Python package
//! takes the impairments for the E-model from it.
//!
//! A packet holds the frames of one interval, in the RTP payload format of the codec: RFC 3551 (G.711, G.722, G.723.1,
//! G.729, GSM-EFR), RFC 4867 in its bandwidth-efficient mode (AMR-WB at 12.65 kbit/s), RFC 7587 (Opus at 24 kbit/s). The
//! impairments are those of ITU-T G.113, appendix I, for narrowband calls with random loss, which is what the E-model of
//! G.107 takes. A wideband codec has none there.

/// A codec with its usual packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codec {
    /// Name in scenarios.
    pub name: &'static str,
    /// Payload of a packet, bytes.
    pub payload_bytes: u32,
    /// From packet to packet, ns.
    pub interval_ns: u64,
    /// How far the codec looks ahead, ns.
    pub look_ahead_ns: u64,
    /// Equipment impairment factor Ie and packet-loss robustness factor Bpl.
    pub impairment: Option<(f64, f64)>,
}

impl Codec {
    const fn ahead(self, look_ahead_ns: u64) -> Codec {
        Codec {
            look_ahead_ns,
            ..self
        }
    }

    /// From the mouth to the end of a packet, s: the speech in a packet, and what the codec looks ahead.
    #[must_use]
    pub fn delay_s(&self) -> f64 {
        (self.interval_ns + self.look_ahead_ns) as f64 / 1e9
    }
}

/// IPv4, UDP and RTP headers, bytes.
pub const HEADER_BYTES: u32 = 40;

const MS: u64 = 1_000_000;

/// All codecs.
pub const CODECS: &[Codec] = &[
    codec("g711", 160, 20 * MS, Some((0.0, 4.3))),
    codec("g711-plc", 160, 20 * MS, Some((0.0, 25.1))),
    // Annex A with silence suppression, as G.113 gives it.
    codec("g729", 20, 20 * MS, Some((11.0, 19.0))).ahead(5 * MS),
    // At 6.3 kbit/s, with silence suppression.
    codec("g723.1", 24, 30 * MS, Some((15.0, 16.1))).ahead(15 * MS / 2),
    codec("gsm-efr", 31, 20 * MS, Some((5.0, 10.0))),
    codec("g722", 160, 20 * MS, None),
    codec("amr-wb", 33, 20 * MS, None),
    codec("opus", 60, 20 * MS, None),
];

/// Names of all codecs.
pub const NAMES: [&str; CODECS.len()] = {
    let mut names = [""; CODECS.len()];
    let mut at = 0;
    while at < CODECS.len() {
        names[at] = CODECS[at].name;
        at += 1;
    }
    names
};

/// Mean length of a talk spurt, ns: ITU-T P.59 (03/1993), table 1.
pub const TALKSPURT_NS: u64 = 1004 * MS;
/// Mean length of a pause, ns: the same table.
pub const PAUSE_NS: u64 = 1587 * MS;

const fn codec(
    name: &'static str,
    payload_bytes: u32,
    interval_ns: u64,
    impairment: Option<(f64, f64)>,
) -> Codec {
    Codec {
        name,
        payload_bytes,
        interval_ns,
        look_ahead_ns: 0,
        impairment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Payload rates from the codecs' own bit rates, kbit/s.
    #[test]
    fn payloads_have_the_rates_of_the_codecs() {
        for (name, kbps) in [
            ("g711", 64.0),
            ("g711-plc", 64.0),
            ("g729", 8.0),
            ("g723.1", 6.4),
            ("gsm-efr", 12.4),
            ("g722", 64.0),
            ("amr-wb", 13.2),
            ("opus", 24.0),
        ] {
            let codec = CODECS.iter().find(|codec| codec.name == name).unwrap();
            let found = f64::from(codec.payload_bytes) * 8e6 / codec.interval_ns as f64;
            assert!((found - kbps).abs() < 1e-9, "{name}: {found} kbit/s");
        }
        assert_eq!(CODECS.len(), 8);
    }
}
