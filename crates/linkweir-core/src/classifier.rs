// SPDX-License-Identifier: BSD-3-Clause
//! Which class an item belongs to.

/// Names the class (queue) of an item.
pub trait Classifier<T> {
    /// Index of the item's class.
    fn class(&self, item: &T) -> usize;
}

impl<T, F: Fn(&T) -> usize> Classifier<T> for F {
    fn class(&self, item: &T) -> usize {
        self(item)
    }
}

/// Items that carry a differentiated-services code point (RFC 2474).
pub trait Dscp {
    /// The six bits.
    fn dscp(&self) -> u8;
}

/// Classes by code point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DscpMap {
    class_of: [usize; 64],
}

impl DscpMap {
    /// Default forwarding, the zero code point (RFC 2474).
    pub const CS0: u8 = 0;
    /// Expedited forwarding (RFC 3246).
    pub const EF: u8 = 46;
    /// Capacity-admitted traffic (RFC 5865).
    pub const VOICE_ADMIT: u8 = 44;

    /// Assured forwarding `AFxy` (RFC 2597): class x in 1..=4, drop precedence y in 1..=3.
    ///
    /// # Panics
    /// Outside these ranges.
    #[must_use]
    pub const fn af(x: u8, y: u8) -> u8 {
        assert!(
            1 <= x && x <= 4 && 1 <= y && y <= 3,
            "AFxy has x in 1..=4 and y in 1..=3"
        );
        8 * x + 2 * y
    }

    /// Everything in one class.
    #[must_use]
    pub fn new(class: usize) -> DscpMap {
        DscpMap {
            class_of: [class; 64],
        }
    }

    /// EF and VOICE-ADMIT in class `ef`, every AFxy in class `af`, CS0 and all others in class `rest`.
    #[must_use]
    pub fn ef_af_rest(ef: usize, af: usize, rest: usize) -> DscpMap {
        let mut map = DscpMap::new(rest)
            .with(DscpMap::EF, ef)
            .with(DscpMap::VOICE_ADMIT, ef);
        for x in 1..=4 {
            for y in 1..=3 {
                map = map.with(DscpMap::af(x, y), af);
            }
        }
        map
    }

    /// Puts one code point into a class.
    ///
    /// # Panics
    /// When `dscp` has more than six bits.
    #[must_use]
    pub fn with(mut self, dscp: u8, class: usize) -> DscpMap {
        self.class_of[usize::from(dscp)] = class;
        self
    }

    /// The class of a code point; the two bits above it are ignored.
    #[must_use]
    pub fn of(&self, dscp: u8) -> usize {
        self.class_of[usize::from(dscp & 63)]
    }
}

impl<T: Dscp> Classifier<T> for DscpMap {
    fn class(&self, item: &T) -> usize {
        self.of(item.dscp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_find_their_class() {
        assert_eq!(DscpMap::af(1, 1), 10);
        assert_eq!(DscpMap::af(4, 3), 38);
        let map = DscpMap::ef_af_rest(0, 1, 2);
        let af = [10, 12, 14, 18, 20, 22, 26, 28, 30, 34, 36, 38];
        for dscp in 0..64 {
            let expected = match dscp {
                44 | 46 => 0,
                d if af.contains(&d) => 1,
                _ => 2,
            };
            assert_eq!(map.of(dscp), expected, "code point {dscp}");
        }
    }
}
