// SPDX-License-Identifier: BSD-3-Clause
//! Which class a packet belongs to: the first rule that matches, else the class without rules. Later fragments carry no
//! ports and follow their first.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;
use linkweir_config::matching::{Rule, Rules};

use crate::bytes::packet::Header;

/// Fragmented datagrams remembered at once.
const FRAGMENTED: usize = 4096;
/// How long one is remembered, ns: receivers wait no longer for the rest (RFC 8200, section 4.5).
const FRAGMENTED_NS: u64 = 60_000_000_000;

fn matches(rule: &Rule, header: &Header) -> bool {
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
    rule.dscp.is_none_or(|set| set >> header.dscp() & 1 == 1)
        && (rule.protocols.is_empty() || rule.protocols.contains(&header.protocol))
        && port(&rule.ports, &|(s, d)| [s, d])
        && port(&rule.source_ports, &|(s, _)| [s, s])
        && port(&rule.destination_ports, &|(_, d)| [d, d])
        && address(&rule.addresses, [source, destination])
        && address(&rule.sources, [source, source])
        && address(&rule.destinations, [destination, destination])
}

fn class_of(rules: &Rules, header: &Header) -> usize {
    rules
        .rules
        .iter()
        .find(|rule| matches(rule, header))
        .map_or(rules.rest, |rule| rule.class)
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
            return class_of(&self.rules, header);
        };
        let datagram = Datagram {
            source: header.source,
            destination: header.destination,
            id: fragment.id,
        };
        self.forget(now_ns);
        if fragment.first {
            let class = class_of(&self.rules, header);
            self.fragmented.insert(datagram, (class, now_ns));
            self.oldest_first.push_back((datagram, now_ns));
            return class;
        }
        match self.fragmented.get(&datagram) {
            Some((class, _)) => *class,
            None => class_of(&self.rules, header),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::packet::tests::{v4, v6};
    use crate::bytes::packet::{parse, ICMP, TCP, UDP};

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
}
