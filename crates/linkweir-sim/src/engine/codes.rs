// SPDX-License-Identifier: BSD-3-Clause
//! How packets are coded on a link from a satellite: as the link's are, or as their classes say.

use crate::experiment::{Class, Coded, Experiment, Satellite};
use crate::satellite::harq::Harq;

/// All codes in use.
#[derive(Debug)]
pub(super) struct Codes {
    /// The first is the link's.
    all: Vec<Harq>,
    of_class: Vec<Coding>,
    /// The code for packets of each length in bytes, where packets are coded at their own length and one has been sent.
    of_bytes: Vec<Option<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    /// Every packet has this code.
    Fixed(u32),
    /// Each packet is coded at its own length.
    Each,
}

/// The code of the link.
const OF_THE_LINK: u32 = 0;

impl Codes {
    /// The codes of a link, which [`validate`] has accepted.
    pub(super) fn new(satellite: &Satellite, classes: &[Class]) -> Codes {
        let mut all = vec![satellite.harq.clone()];
        let mut coding = |class: &Class| match class.coded {
            None => Coding::Fixed(OF_THE_LINK),
            Some(Coded::Each) => Coding::Each,
            Some(Coded::Bytes(bytes)) => {
                all.push(designed(satellite, bytes));
                Coding::Fixed(all.len() as u32 - 1)
            }
        };
        Codes {
            of_class: classes.iter().map(&mut coding).collect(),
            all,
            of_bytes: Vec::new(),
        }
    }

    /// Whether packets of different classes or lengths may have different codes.
    pub(super) fn differ(&self) -> bool {
        let link = Coding::Fixed(OF_THE_LINK);
        self.of_class.iter().any(|coding| *coding != link)
    }

    /// The code of a packet of a class.
    #[inline]
    pub(super) fn of(&mut self, satellite: &Satellite, class: usize, bytes: u32) -> u32 {
        match self.of_class[class] {
            Coding::Fixed(code) => code,
            Coding::Each => self.of_length(satellite, bytes),
        }
    }

    /// The code that a class has before its first packet.
    pub(super) fn first_of(&self, class: usize) -> u32 {
        match self.of_class[class] {
            Coding::Fixed(code) => code,
            Coding::Each => OF_THE_LINK,
        }
    }

    fn of_length(&mut self, satellite: &Satellite, bytes: u32) -> u32 {
        let at = bytes as usize;
        if self.of_bytes.len() <= at {
            self.of_bytes.resize(at + 1, None);
        }
        let all = &mut self.all;
        *self.of_bytes[at].get_or_insert_with(|| {
            all.push(designed(satellite, bytes));
            all.len() as u32 - 1
        })
    }

    #[inline]
    pub(super) fn at(&self, code: u32) -> &Harq {
        &self.all[code as usize]
    }
}

/// The code for packets of so many bytes at the link's Es/N0.
fn designed(satellite: &Satellite, bytes: u32) -> Harq {
    of_length(satellite, bytes).expect("validate accepted the length")
}

fn of_length(satellite: &Satellite, bytes: u32) -> Option<Harq> {
    Harq::designed(bytes.checked_mul(8)?, satellite.harq.esn0_db as u32)
}

/// Refuses lengths for which there is no code at the link's Es/N0.
pub(super) fn validate(experiment: &Experiment) -> Result<(), String> {
    let Some(satellite) = &experiment.link.satellite else {
        return Ok(());
    };
    for class in &experiment.classes {
        let is_coded = match class.coded {
            None => true,
            Some(Coded::Bytes(bytes)) => of_length(satellite, bytes).is_some(),
            // The code for short packets has the narrower range.
            Some(Coded::Each) => of_length(satellite, 1).is_some(),
        };
        if !is_coded {
            return Err(format!(
                "class {}: there is no code for its packets at {} dB",
                class.name, satellite.harq.esn0_db
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published designs, by hand: 2 x 1145 coded bits for 1680 bits at 10 dB, and 2 x 5696 for 8920.
    #[test]
    fn a_packet_has_the_code_of_its_class_or_of_its_own_length() {
        let class = |coded| Class {
            name: String::new(),
            limit_pkts: None,
            limit_bytes: None,
            limit_time: None,
            max_age_ns: None,
            full: linkweir_core::Full::Tail,
            least_ppm: 0,
            flows: None,
            user: None,
            coded,
        };
        let satellite = Satellite {
            channel: crate::experiment::Channel::Recorded(
                crate::satellite::fading::Fading::new(1, vec![0.0]).unwrap(),
            ),
            user_offset_ns: 0,
            harq: Harq::designed(8920, 10).unwrap(),
            ground_delay_ns: 0,
            delays: None,
            flows_are_users: false,
            csi_tick_ns: 1,
            csi_age_ns: None,
            repeats_see_first_user: false,
            uncoded_too: false,
            reordering: None,
        };
        let classes = [None, Some(Coded::Bytes(210)), Some(Coded::Each)].map(class);
        let mut codes = Codes::new(&satellite, &classes);
        assert!(codes.differ() && !Codes::new(&satellite, &classes[..1]).differ());
        let mut first_bits = |class, bytes| {
            let code = codes.of(&satellite, class, bytes);
            codes.at(code).coded_bits(0)
        };
        assert_eq!([0, 1].map(|class| first_bits(class, 60)), [11_392, 2_290]);
        assert_eq!(
            [210, 1115, 210].map(|bytes| first_bits(2, bytes)),
            [2_290, 11_392, 2_290]
        );
        // Two lengths and the two codes of the other classes.
        assert_eq!(codes.all.len(), 4);
    }
}
