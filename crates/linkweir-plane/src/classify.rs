// SPDX-License-Identifier: BSD-3-Clause
//! Which class a packet belongs to: the first rule that matches, else the class without rules. Later fragments carry no
//! ports and follow their first.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;

use crate::bytes::packet::{Header, ICMP, ICMP6, SCTP, TCP, UDP};

/// Fragmented datagrams remembered at once.
const FRAGMENTED: usize = 4096;
/// How long one is remembered, ns: receivers wait no longer for the rest (RFC 8200, section 4.5).
const FRAGMENTED_NS: u64 = 60_000_000_000;

/// The conditions of a rule. An empty one matches every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Class of the packets that match.
    pub class: usize,
    /// Code points, as a set of bits.
    pub dscp: Option<u64>,
    /// Protocols above IP.
    pub protocols: Vec<u8>,
    /// Source or destination ports.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Source ports.
    pub source_ports: Vec<RangeInclusive<u16>>,
    /// Destination ports.
    pub destination_ports: Vec<RangeInclusive<u16>>,
    /// Source or destination addresses.
    pub addresses: Vec<IpNet>,
    /// Source addresses.
    pub sources: Vec<IpNet>,
    /// Destination addresses.
    pub destinations: Vec<IpNet>,
}

impl Rule {
    fn matches(&self, header: &Header) -> bool {
        let port = |ranges: &[RangeInclusive<u16>], wanted: &dyn Fn((u16, u16)) -> [u16; 2]| {
            ranges.is_empty()
                || header.ports.is_some_and(|ports| {
                    let ports = wanted(ports);
                    ranges
                        .iter()
                        .any(|range| ports.iter().any(|port| range.contains(port)))
                })
        };
        let address = |nets: &[IpNet], addresses: [IpAddr; 2]| {
            nets.is_empty()
                || nets
                    .iter()
                    .any(|net| addresses.iter().any(|address| net.contains(address)))
        };
        let (source, destination) = (header.source, header.destination);
        self.dscp.is_none_or(|set| set >> header.dscp() & 1 == 1)
            && (self.protocols.is_empty() || self.protocols.contains(&header.protocol))
            && port(&self.ports, &|(s, d)| [s, d])
            && port(&self.source_ports, &|(s, _)| [s, s])
            && port(&self.destination_ports, &|(_, d)| [d, d])
            && address(&self.addresses, [source, destination])
            && address(&self.sources, [source, source])
            && address(&self.destinations, [destination, destination])
    }
}

/// Rules in order, and the class of packets that match none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The rules. The first that matches counts.
    pub rules: Vec<Rule>,
    /// Class of all other packets.
    pub rest: usize,
}

impl Rules {
    fn class(&self, header: &Header) -> usize {
        self.rules
            .iter()
            .find(|rule| rule.matches(header))
            .map_or(self.rest, |rule| rule.class)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Datagram {
    source: IpAddr,
    destination: IpAddr,
    id: u32,
}

/// Rules, and the classes of fragmented datagrams of which the first fragment was seen.
#[derive(Debug)]
pub struct Classifier {
    rules: Rules,
    fragmented: HashMap<Datagram, (usize, u64)>,
    oldest_first: VecDeque<(Datagram, u64)>,
}

impl Classifier {
    /// A classifier that has seen no packet.
    #[must_use]
    pub fn new(rules: Rules) -> Classifier {
        Classifier {
            rules,
            fragmented: HashMap::new(),
            oldest_first: VecDeque::new(),
        }
    }

    /// Replaces the rules. Fragmented datagrams keep their class if it still exists.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// The class of a packet that comes at `now_ns`.
    pub fn class(&mut self, now_ns: u64, header: &Header) -> usize {
        let Some(fragment) = header.fragment else {
            return self.rules.class(header);
        };
        let datagram = Datagram {
            source: header.source,
            destination: header.destination,
            id: fragment.id,
        };
        self.forget(now_ns);
        if fragment.first {
            let class = self.rules.class(header);
            self.fragmented.insert(datagram, (class, now_ns));
            self.oldest_first.push_back((datagram, now_ns));
            return class;
        }
        match self.fragmented.get(&datagram) {
            Some((class, _)) => *class,
            None => self.rules.class(header),
        }
    }

    fn forget(&mut self, now_ns: u64) {
        while let Some(&(datagram, at_ns)) = self.oldest_first.front() {
            if self.oldest_first.len() < FRAGMENTED && now_ns < at_ns + FRAGMENTED_NS {
                return;
            }
            self.oldest_first.pop_front();
            // Senders use an identification again, so it may be another datagram's by now.
            if self
                .fragmented
                .get(&datagram)
                .is_some_and(|(_, since_ns)| *since_ns == at_ns)
            {
                self.fragmented.remove(&datagram);
            }
        }
    }
}

/// What [`dscp`] knows, in words.
pub const CODE_POINTS: &str = "EF, VOICE-ADMIT, AF11 .. AF43, CS0 .. CS7, LE, DF or 0 .. 63";

/// A code point by name (RFC 2474, 2597, 3246, 5865, 8622) or number.
#[must_use]
pub fn dscp(name: &str) -> Option<u8> {
    if let Ok(number) = name.parse::<u8>() {
        return (number < 64).then_some(number);
    }
    let name = name.to_ascii_uppercase();
    let digit = |at: usize| name.as_bytes().get(at).map(|b| b.wrapping_sub(b'0'));
    match (name.as_str(), name.len()) {
        ("EF", _) => Some(46),
        ("VOICE-ADMIT" | "VA", _) => Some(44),
        ("LE", _) => Some(1),
        ("DF" | "BE", _) => Some(0),
        (_, 3) if name.starts_with("CS") => digit(2).filter(|x| *x < 8).map(|x| 8 * x),
        (_, 4) if name.starts_with("AF") => match (digit(2)?, digit(3)?) {
            (x @ 1..=4, y @ 1..=3) => Some(8 * x + 2 * y),
            _ => None,
        },
        _ => None,
    }
}

/// Protocols by name; `icmp` is that of either version of IP.
pub const PROTOCOLS: [(&str, &[u8]); 6] = [
    ("tcp", &[TCP]),
    ("udp", &[UDP]),
    ("icmp", &[ICMP, ICMP6]),
    ("sctp", &[SCTP]),
    ("esp", &[50]),
    ("gre", &[47]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::packet::tests::{v4, v6};
    use crate::bytes::packet::{parse, UDP};

    fn rules() -> Rules {
        let dscp = Rule {
            class: 0,
            dscp: Some(1 << 46),
            ..Rule::default()
        };
        let port = Rule {
            class: 1,
            protocols: vec![UDP],
            ports: vec![5060..=5061],
            ..Rule::default()
        };
        let address = Rule {
            class: 2,
            sources: vec!["fd00::/16".parse().unwrap()],
            ..Rule::default()
        };
        Rules {
            rules: vec![dscp, port, address],
            rest: 3,
        }
    }

    fn class(packet: &[u8]) -> usize {
        Classifier::new(rules()).class(0, &parse(packet).unwrap())
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        let sip = [0x13, 0xc4, 0, 1];
        let back = [0, 1, 0x13, 0xc5];
        let other = [0, 1, 0x13, 0xc6];
        assert_eq!(class(&v4(UDP, 46 << 2, 0, 0, &sip)), 0);
        assert_eq!(class(&v4(UDP, 46 << 2 | 3, 0, 0, &other)), 0);
        assert_eq!(class(&v4(UDP, 0, 0, 0, &sip)), 1);
        assert_eq!(class(&v4(UDP, 0, 0, 0, &back)), 1);
        assert_eq!(class(&v4(UDP, 0, 0, 0, &other)), 3);
        assert_eq!(class(&v4(TCP, 0, 0, 0, &sip)), 3);
        assert_eq!(class(&v6(UDP, 0, &other)), 2);
        assert_eq!(class(&v6(UDP, 0, &sip)), 1);
        assert_eq!(class(&v4(ICMP, 0, 0, 0, &[8, 0])), 3);
    }

    #[test]
    fn fragments_follow_their_first() {
        let mut classifier = Classifier::new(rules());
        let sip = [0x13, 0xc4, 0, 1];
        let mut of = |now_ns, id, fragment| {
            classifier.class(now_ns, &parse(&v4(UDP, 0, id, fragment, &sip)).unwrap())
        };
        assert_eq!(of(0, 7, 185), 3, "its first was not seen");
        assert_eq!(of(0, 7, 0x2000), 1);
        assert_eq!(of(1, 7, 0x2000 | 185), 1);
        assert_eq!(of(2, 7, 370), 1);
        assert_eq!(of(2, 8, 370), 3, "another datagram");
        assert_eq!(of(FRAGMENTED_NS, 7, 370), 3, "too late");
    }

    #[test]
    fn datagrams_in_pieces_take_bounded_room() {
        let mut classifier = Classifier::new(rules());
        for id in 0..60_000_u64 {
            let mut header = parse(&v4(UDP, 0, 0, 0x2000, &[0x13, 0xc4, 0, 1])).unwrap();
            header.fragment.as_mut().unwrap().id = id as u32 % 50_000;
            classifier.class(id, &header);
            assert!(classifier.fragmented.len() <= FRAGMENTED);
            assert!(classifier.oldest_first.len() <= FRAGMENTED);
        }
        assert_eq!(classifier.fragmented.len(), FRAGMENTED);
    }

    #[test]
    fn code_points_have_names() {
        for (name, value) in [
            ("EF", 46),
            ("ef", 46),
            ("VOICE-ADMIT", 44),
            ("AF11", 10),
            ("AF43", 38),
            ("CS0", 0),
            ("CS7", 56),
            ("LE", 1),
            ("DF", 0),
            ("63", 63),
        ] {
            assert_eq!(dscp(name), Some(value), "{name}");
        }
        for name in [
            "",
            "AF14",
            "AF50",
            "CS8",
            "64",
            "-1",
            "AF",
            "EFX",
            "\u{e9}\u{e9}",
        ] {
            assert_eq!(dscp(name), None, "{name}");
        }
    }
}
