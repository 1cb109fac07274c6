// SPDX-License-Identifier: BSD-3-Clause
//! Hybrid automatic repeat request, type II: a packet is coded once, sent piece by piece, and decoded as soon as the
//! receiver has gathered enough mutual information.
//!
//! The mother code has rate 1/6. Attempt k sends `symbols[k]` QPSK symbols that the receiver has not seen; the channel is
//! constant during an attempt, so it adds `C(Es/N0) symbols[k]` bits of information, and a packet of K bits is decoded
//! once the mean over the 3 K symbols of the whole code word reaches the capacity at -4.8612 dB: that is where a rate-1/6
//! turbo code works (Eb/N0 -0.09 dB). After four attempts the packet is given up.
//!
//! How many symbols an attempt has depends on the Es/N0 of the line of sight, as tables; those for 1680 and 8920 bits were
//! designed for given probabilities of success after one, two and three attempts on a channel of a land-mobile
//! satellite at 40 degrees (after Ali Ahmad et al. 2014; used by Tauran et al. 2018).

use super::qpsk;

/// Attempts at a packet.
pub const ATTEMPTS: usize = 4;
/// Es/N0 at which the rate-1/6 code decodes, dB.
const DECODES_DB: f64 = -4.8612;
/// QPSK symbols of the whole code word per bit of the packet: 6 coded bits, two to a symbol.
const MOTHER_SYMBOLS_PER_BIT: f64 = 3.0;

/// Symbols per attempt for packets of one length, from 7 dB up, a row per dB.
struct Design {
    packet_bits: u32,
    least_db: u32,
    rows: &'static [[u32; ATTEMPTS]],
}

const DESIGNS: &[Design] = &[
    Design {
        packet_bits: 1680,
        least_db: 7,
        rows: &[
            [1275, 614, 1115, 1883],
            [1238, 633, 1093, 2074],
            [1192, 556, 972, 2318],
            [1145, 540, 979, 2373],
            [1127, 512, 1048, 2352],
            [1103, 465, 1019, 2451],
            [1083, 475, 984, 2496],
        ],
    },
    Design {
        packet_bits: 8920,
        least_db: 7,
        rows: &[
            [6764, 3268, 5924, 10804],
            [6270, 2689, 4974, 14454],
            [5924, 2183, 4199, 14454],
            [5696, 1831, 3560, 15773],
            [5559, 1322, 3027, 16852],
            [5487, 955, 2572, 17746],
            [5455, 639, 2172, 18494],
            [5444, 387, 1805, 19124],
            [5441, 207, 1452, 19660],
            [5441, 95, 1110, 20114],
            [5441, 36, 790, 20493],
            [5441, 10, 513, 20796],
            [5441, 2, 296, 21021],
            [5441, 0, 149, 21170],
        ],
    },
];

/// How packets of one length are sent at one Es/N0.
#[derive(Clone, Debug, PartialEq)]
pub struct Harq {
    /// Length of the packets that are coded, bits; shorter ones are filled up.
    pub packet_bits: u32,
    /// QPSK symbols of each attempt.
    pub symbols: [u32; ATTEMPTS],
    /// Es/N0 of the line of sight, dB.
    pub esn0_db: f64,
    /// Information a packet needs, bit.
    needed_bits: f64,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The packet is decoded.
    Decoded,
    /// Another attempt is asked for.
    Again,
    /// It was the last one.
    GivenUp,
}

/// A packet under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Block {
    /// Information gathered, bit.
    gathered_bits: f64,
    /// Attempts received.
    pub attempts: u8,
}

impl Harq {
    /// The scheme for packets of `packet_bits` at a whole Es/N0 in dB; other lengths take the design of the nearest length
    /// in proportion. `None` outside 7 .. 13 dB (1680 bits) or 7 .. 20 dB (8920 bits).
    #[must_use]
    pub fn designed(packet_bits: u32, esn0_db: u32) -> Option<Harq> {
        let distance = |design: &&Design| {
            (libm::log(f64::from(packet_bits)) - libm::log(f64::from(design.packet_bits))).abs()
        };
        let design = DESIGNS
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let row = design
            .rows
            .get(esn0_db.checked_sub(design.least_db)? as usize)?;
        let scale = f64::from(packet_bits) / f64::from(design.packet_bits);
        let symbols = row.map(|symbols| libm::round(f64::from(symbols) * scale) as u32);
        (packet_bits > 0).then(|| Harq::new(packet_bits, symbols, f64::from(esn0_db)))
    }

    /// A scheme with symbols of one's own.
    #[must_use]
    pub fn new(packet_bits: u32, symbols: [u32; ATTEMPTS], esn0_db: f64) -> Harq {
        Harq {
            packet_bits,
            symbols,
            esn0_db,
            needed_bits: qpsk::capacity(DECODES_DB)
                * MOTHER_SYMBOLS_PER_BIT
                * f64::from(packet_bits),
        }
    }

    /// Coded bits of an attempt, from 0.
    #[must_use]
    pub fn coded_bits(&self, attempt: usize) -> u32 {
        2 * self.symbols[attempt]
    }

    /// Bits of packets per coded bit, over a channel that keeps this attenuation, dB: what the channel gives a user, as a
    /// part of the link. A packet takes its first attempt at least, and pieces as small as one likes after it.
    #[must_use]
    pub fn useful_part(&self, attenuation_db: f64) -> f64 {
        let bits_per_symbol = qpsk::capacity(self.esn0_db + attenuation_db);
        let symbols = (self.needed_bits / bits_per_symbol).max(f64::from(self.symbols[0]));
        f64::from(self.packet_bits) / (2.0 * symbols)
    }

    /// Mean coded bits of a packet, when these parts of the packets are decoded after one, two and three attempts.
    #[must_use]
    pub fn mean_coded_bits(&self, decoded: [f64; ATTEMPTS - 1]) -> f64 {
        let mut left = 1.0;
        let mut bits = f64::from(self.coded_bits(0));
        for (attempt, part) in decoded.iter().enumerate() {
            left -= part;
            bits += left * f64::from(self.coded_bits(attempt + 1));
        }
        bits
    }
}

impl Block {
    /// The next attempt arrives over a channel with this attenuation, dB.
    pub fn receive(&mut self, harq: &Harq, attenuation_db: f64) -> Outcome {
        let symbols = f64::from(harq.symbols[usize::from(self.attempts)]);
        self.gathered_bits += qpsk::capacity(harq.esn0_db + attenuation_db) * symbols;
        self.attempts += 1;
        if self.gathered_bits >= harq.needed_bits {
            Outcome::Decoded
        } else if usize::from(self.attempts) < ATTEMPTS {
            Outcome::Again
        } else {
            Outcome::GivenUp
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::satellite::fading::Fading;
    use crate::satellite::lms::Lms;
    use crate::satellite::perez_fontan::Environment;

    /// The average of the journal version of Tauran et al., equation (5): 16 890 bits for 8920 at 10 dB.
    #[test]
    fn mean_coded_bits_of_the_design() {
        let harq = Harq::designed(8920, 10).unwrap();
        let mean = harq.mean_coded_bits([0.51, 0.28, 0.14]);
        assert!((mean - 16_889.8).abs() < 0.1, "{mean}");
    }

    #[test]
    fn designs_scale_with_the_packet() {
        // The table known for 1000 bits is that for 1680 divided by 1.68.
        let harq = Harq::designed(1000, 10).unwrap();
        for (found, known) in harq.symbols.iter().zip([682, 322, 583, 1413]) {
            assert!(found.abs_diff(known) <= 1, "{found}, not {known}");
        }
        assert!(Harq::designed(1680, 6).is_none() && Harq::designed(1680, 14).is_none());
        assert!(Harq::designed(8920, 20).is_some() && Harq::designed(8920, 21).is_none());
        assert!(Harq::designed(0, 10).is_none());
    }

    #[test]
    fn what_a_channel_gives() {
        let harq = Harq::designed(1680, 10).unwrap();
        // In the line of sight the first attempt is enough: 1680 of 2290 bits.
        assert_eq!(harq.useful_part(0.0), 1680.0 / 2290.0);
        // Where a symbol carries 0.40657 bits the whole code word is needed: rate 1/6.
        assert!((harq.useful_part(DECODES_DB - 10.0) * 6.0 - 1.0).abs() < 1e-12);
        assert!(harq.useful_part(-60.0) > 0.0);
    }

    #[test]
    fn a_packet_worked_by_hand() {
        let harq = Harq::designed(1680, 10).unwrap();
        // In the line of sight a symbol carries 1.99351 bits: 2282.6 of the 2049.1 needed (0.40657 * 3 * 1680).
        assert_eq!(Block::default().receive(&harq, 0.0), Outcome::Decoded);
        // At -4.8612 - 10 dB it carries 0.40657: 1145, 1685, 2664, 5037 symbols have 465.5, 685.1, 1083.1, 2047.9 bits.
        let mut block = Block::default();
        let weak_db = DECODES_DB - 10.0;
        let all: Vec<Outcome> = (0..4).map(|_| block.receive(&harq, weak_db)).collect();
        assert_eq!(
            all,
            [
                Outcome::Again,
                Outcome::Again,
                Outcome::Again,
                Outcome::GivenUp
            ]
        );
        // A little stronger, the last attempt completes the information of 5040 symbols.
        let mut block = Block::default();
        let last = (0..4).map(|_| block.receive(&harq, weak_db + 0.01)).last();
        assert_eq!(last, Some(Outcome::Decoded));
    }

    /// Where the attempts of a packet look at the channel.
    #[derive(Clone, Copy, Debug)]
    enum Spacing {
        /// 20 ms apart on one channel.
        OneChannel,
        /// The first on the user's own channel, the others 20 ms apart on another.
        OthersElsewhere,
        /// Each at a time of its own.
        Independent,
    }

    /// Per cent of the packets decoded after one, two, three and four attempts, and given up.
    fn split(packet_bits: u32, spacing: Spacing, drives: &[Fading]) -> [f64; 5] {
        let harq = Harq::designed(packet_bits, 10).unwrap();
        let mut counts = [0u64; 5];
        for fading in drives {
            for start in (0..600_000).step_by(61) {
                let mut block = Block::default();
                let end = loop {
                    let attempt = u64::from(block.attempts);
                    let at = match spacing {
                        Spacing::OneChannel => start + 20 * attempt,
                        Spacing::OthersElsewhere => {
                            start + 20 * attempt + if attempt == 0 { 0 } else { 211_000 }
                        }
                        Spacing::Independent => start + 131_000 * attempt,
                    };
                    match block.receive(&harq, fading.at(at * STEP_NS)) {
                        Outcome::Decoded => break usize::from(block.attempts) - 1,
                        Outcome::GivenUp => break 4,
                        Outcome::Again => {}
                    }
                };
                counts[end] += 1;
            }
        }
        let all: u64 = counts.iter().sum();
        counts.map(|count| 100.0 * count as f64 / all as f64)
    }

    const STEP_NS: u64 = 1_000_000;

    /// Sampling by an independent program, of the same channel with a generator of its own. 24 drives of 600 s have about
    /// 10 000 independent stretches of 1.4 s: three standard errors of a half are 1.5 points.
    #[test]
    fn splits_by_number_of_attempts() {
        let lms = Lms::new(Environment::IntermediateTrees);
        let drives: Vec<Fading> = (0..24)
            .map(|seed| lms.generate(seed, STEP_NS, 600_000))
            .collect();
        for (packet_bits, spacing, known) in [
            (1680, Spacing::OneChannel, [51.4, 19.2, 18.8, 9.4, 1.2]),
            (1680, Spacing::OthersElsewhere, [51.3, 24.1, 19.9, 4.3, 0.5]),
            (1680, Spacing::Independent, [51.2, 24.3, 21.2, 3.2, 0.1]),
            (8920, Spacing::OneChannel, [43.2, 19.2, 18.0, 17.8, 1.8]),
            (8920, Spacing::OthersElsewhere, [43.0, 21.9, 24.5, 9.8, 0.8]),
            (8920, Spacing::Independent, [42.9, 22.1, 24.9, 9.9, 0.3]),
        ] {
            let found = split(packet_bits, spacing, &drives);
            for (attempts, (found, known)) in found.iter().zip(known).enumerate() {
                assert!(
                    (found - known).abs() < 1.5,
                    "{packet_bits} bits, {spacing:?}, {attempts}: {found:.1} %, not {known} %"
                );
            }
        }
    }
}
