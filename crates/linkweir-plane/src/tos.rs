// SPDX-License-Identifier: BSD-3-Clause
//! How code points (RFC 2983) and explicit congestion notification (RFC 6040) pass between inner and outer headers.

/// Not capable of ECN.
const NOT_ECT: u8 = 0;
/// Capable, codepoint 1.
const ECT1: u8 = 1;
/// Congestion was met.
pub const CE: u8 = 3;

/// How code points pass the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The outer header takes the inner code point; the inner one stays as it was.
    Out,
    /// It does, and on arrival the inner header takes the outer code point (the uniform model).
    Uniform,
    /// The outer header has this code point; the inner one stays as it was (the pipe model).
    Pipe(u8),
}

impl Model {
    /// The outer differentiated services field of a packet.
    #[must_use]
    pub fn encapsulate(self, inner: u8) -> u8 {
        match self {
            Model::Out | Model::Uniform => inner,
            Model::Pipe(dscp) => dscp << 2 | inner & 3,
        }
    }

    /// The inner field of a packet that leaves the tunnel; none when the packet must be dropped.
    #[must_use]
    pub fn decapsulate(self, inner: u8, outer: u8) -> Option<u8> {
        let dscp = match self {
            Model::Uniform => outer >> 2,
            Model::Out | Model::Pipe(_) => inner >> 2,
        };
        Some(dscp << 2 | decapsulated_ecn(inner & 3, outer & 3)?)
    }
}

/// RFC 6040, section 4.2: a packet that cannot carry a mark and met congestion is lost.
fn decapsulated_ecn(inner: u8, outer: u8) -> Option<u8> {
    match (inner, outer) {
        (NOT_ECT, CE) => None,
        (NOT_ECT, _) => Some(NOT_ECT),
        (_, CE) => Some(CE),
        (CE, _) => Some(CE),
        (_, ECT1) => Some(ECT1),
        (inner, _) => Some(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECT0: u8 = 2;

    #[test]
    fn every_cell_of_decapsulation() {
        // RFC 6040, figure 4: rows by inner, columns by outer Not-ECT, ECT(0), ECT(1), CE.
        let outer = [NOT_ECT, ECT0, ECT1, CE];
        let table = [
            (NOT_ECT, [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None]),
            (ECT0, [Some(ECT0), Some(ECT0), Some(ECT1), Some(CE)]),
            (ECT1, [Some(ECT1), Some(ECT1), Some(ECT1), Some(CE)]),
            (CE, [Some(CE), Some(CE), Some(CE), Some(CE)]),
        ];
        for (inner, row) in table {
            for (outer, expected) in outer.into_iter().zip(row) {
                for model in [Model::Out, Model::Pipe(46), Model::Uniform] {
                    let kept = if model == Model::Uniform { 12 } else { 10 };
                    assert_eq!(
                        model.decapsulate(10 << 2 | inner, 12 << 2 | outer),
                        expected.map(|ecn| kept << 2 | ecn),
                        "{model:?}: inner {inner}, outer {outer}"
                    );
                }
            }
        }
    }

    #[test]
    fn encapsulation_copies_ecn_and_sets_the_code_point() {
        for ecn in 0..4 {
            assert_eq!(Model::Out.encapsulate(46 << 2 | ecn), 46 << 2 | ecn);
            assert_eq!(Model::Uniform.encapsulate(46 << 2 | ecn), 46 << 2 | ecn);
            assert_eq!(Model::Pipe(8).encapsulate(46 << 2 | ecn), 8 << 2 | ecn);
        }
    }
}
