// SPDX-License-Identifier: BSD-3-Clause
//! Which class a packet belongs to: the first rule that matches, else the class without rules. In a class that isolates
//! flows, also which flow: a hash of addresses, protocol and ports, with a key that senders do not know; or whether it is an
//! L4S packet, if the class sorts by ECN. Later fragments carry no ports and follow their first.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;
use linkweir_config::matching::{Rule, Rules};
use linkweir_core::Isolation;

use crate::bytes::packet::Header;

/// The codepoint of L4S packets; CE has this bit, too.
const ECT1: u8 = 1;
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

/// What a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its class.
    pub class: usize,
    /// A hash of its flow; 0 in a class that does not isolate flows. In one that sorts by ECN, 1 for an L4S packet (ECT(1) or
    /// CE: RFC 9331, section 5.1), 0 for any other.
    pub flow: u32,
}

impl From<usize> for Label {
    /// A class whose flows are not isolated.
    fn from(class: usize) -> Label {
        Label { class, flow: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Datagram {
    source: IpAddr,
    destination: IpAddr,
    id: u32,
}

/// Rules, and the labels of fragmented datagrams of which the first fragment was seen.
#[derive(Debug)]
pub struct Classifier {
    rules: Rules,
    /// How classes isolate flows.
    isolating: Vec<Option<Isolation>>,
    key: [u64; 2],
    fragmented: HashMap<Datagram, (Label, u64)>,
    oldest_first: VecDeque<(Datagram, u64)>,
}

impl Classifier {
    /// A classifier that has seen no packet.
    #[must_use]
    pub fn new(rules: Rules) -> Classifier {
        Classifier {
            rules,
            isolating: Vec::new(),
            key: [0; 2],
            fragmented: HashMap::new(),
            oldest_first: VecDeque::new(),
        }
    }

    /// Tells flows apart in some classes. A sender that does not know `key` cannot choose flows that share a queue.
    #[must_use]
    pub fn isolating(
        mut self,
        classes: impl Iterator<Item = Option<Isolation>>,
        key: [u64; 2],
    ) -> Classifier {
        self.isolating = classes.collect();
        self.key = key;
        self
    }

    /// Replaces the rules. Fragmented datagrams keep their class if it still exists.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// The class of a packet that comes at `now_ns`, and its flow.
    pub fn label(&mut self, now_ns: u64, header: &Header) -> Label {
        let Some(fragment) = header.fragment else {
            return self.own_label(header);
        };
        let datagram = Datagram {
            source: header.source,
            destination: header.destination,
            id: fragment.id,
        };
        self.forget(now_ns);
        if fragment.first {
            let label = self.own_label(header);
            self.fragmented.insert(datagram, (label, now_ns));
            self.oldest_first.push_back((datagram, now_ns));
            return label;
        }
        match self.fragmented.get(&datagram) {
            Some((label, _)) => *label,
            None => self.own_label(header),
        }
    }

    /// What a packet's own header says.
    fn own_label(&self, header: &Header) -> Label {
        let class = class_of(&self.rules, header);
        let flow = match self.isolating.get(class).copied().flatten() {
            None => 0,
            Some(isolation) if isolation.sorts_by_ecn() => u32::from(header.ecn() & ECT1),
            Some(_) => self.flow_of(header),
        };
        Label { class, flow }
    }

    /// A hash of the flow. Queues are chosen by its remainder, so all bits count.
    fn flow_of(&self, header: &Header) -> u32 {
        // SipHash; the key comes first, because this hasher takes none.
        let mut hasher = DefaultHasher::new();
        self.key.hash(&mut hasher);
        header.source.hash(&mut hasher);
        header.destination.hash(&mut hasher);
        (header.protocol, header.ports).hash(&mut hasher);
        hasher.finish() as u32
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
        Classifier::new(rules())
            .label(0, &parse(packet).unwrap())
            .class
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

    /// RFC 9331, section 5.1: ECT(1) and CE are L4S packets; Not-ECT and ECT(0) are classic ones, whatever their flow.
    #[test]
    fn l4s_packets_are_those_with_ect1_or_ce() {
        let sorts = Some(Isolation::DualPi2 { step_ns: None });
        let mut classifier =
            Classifier::new(rules()).isolating([sorts, None, sorts, sorts].into_iter(), [3, 4]);
        let other = [0, 1, 0x13, 0xc6];
        for (ecn, flow) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
            let packets = [
                (0, v4(UDP, 46 << 2 | ecn, 0, 0, &other)),
                (2, v6(UDP, ecn, &other)),
                (3, v4(TCP, ecn, 0, 0, &other)),
            ];
            for (class, packet) in packets {
                let label = classifier.label(0, &parse(&packet).unwrap());
                assert_eq!(label, Label { class, flow }, "{ecn}");
            }
        }
    }

    #[test]
    fn fragments_follow_their_first() {
        let mut classifier = Classifier::new(rules());
        let sip = [0x13, 0xc4, 0, 1];
        let mut of = |now_ns, id, fragment| {
            classifier
                .label(now_ns, &parse(&v4(UDP, 0, id, fragment, &sip)).unwrap())
                .class
        };
        assert_eq!(of(0, 7, 185), 3, "its first was not seen");
        assert_eq!(of(0, 7, 0x2000), 1);
        assert_eq!(of(1, 7, 0x2000 | 185), 1);
        assert_eq!(of(2, 7, 370), 1);
        assert_eq!(of(2, 8, 370), 3, "another datagram");
        assert_eq!(of(FRAGMENTED_NS, 7, 370), 3, "too late");
    }

    fn isolating() -> Classifier {
        let drr = Some(Isolation::Drr);
        Classifier::new(rules()).isolating([None, drr, drr, drr].into_iter(), [3, 4])
    }

    #[test]
    fn packets_of_one_flow_have_one_hash() {
        let mut classifier = isolating();
        let mut flow = |packet: &[u8]| classifier.label(0, &parse(packet).unwrap()).flow;
        let ports = |to: u8, more: u8| [0x80, 0, 0, to, more, 9];
        let first = flow(&v4(UDP, 0, 1, 0, &ports(53, 0)));
        assert_eq!(
            first,
            flow(&v4(UDP, 8, 2, 0, &ports(53, 7))),
            "only the payload and the code point differ"
        );
        let others = [
            flow(&v4(UDP, 0, 1, 0, &ports(54, 0))),
            flow(&v4(TCP, 0, 1, 0, &ports(53, 0))),
            flow(&v6(UDP, 0, &ports(53, 0))),
            flow(&v4(ICMP, 0, 1, 0, &ports(53, 0))),
        ];
        assert!(!others.contains(&first));
        let header = parse(&v4(UDP, 0, 1, 0, &ports(53, 0))).unwrap();
        let mut keyed =
            Classifier::new(rules()).isolating([Some(Isolation::Drr); 4].into_iter(), [3, 5]);
        assert_ne!(keyed.label(0, &header).flow, first, "another key");
        // Expedited forwarding isolates no flows here, so no hash is computed.
        let voice = parse(&v4(UDP, 46 << 2, 1, 0, &ports(53, 0))).unwrap();
        assert_eq!(isolating().label(0, &voice), Label { class: 0, flow: 0 });
    }

    #[test]
    fn hashes_of_flows_spread_over_queues() {
        let mut classifier = isolating();
        let mut used = [0_u32; 1024];
        for port in 0..16 * used.len() as u32 {
            let ports = [0x80, 0, (port >> 8) as u8, port as u8];
            let header = parse(&v4(TCP, 0, 1, 0, &ports)).unwrap();
            used[classifier.label(0, &header).flow as usize % used.len()] += 1;
        }
        // The number of flows in a queue is binomial with mean 16: a queue has 45 or more, or none, less than once in 10^6.
        assert!(used.iter().all(|flows| (1..45).contains(flows)), "{used:?}");
    }

    #[test]
    fn fragments_belong_to_the_flow_of_their_first() {
        let mut classifier = isolating();
        let sip = [0x13, 0xc4, 0, 1];
        let other = [0x13, 0xc5, 0, 1];
        let mut of = |id, fragment, ports: &[u8]| {
            classifier.label(0, &parse(&v4(UDP, 0, id, fragment, ports)).unwrap())
        };
        let whole = of(1, 0, &sip);
        assert_eq!(of(7, 0x2000, &sip), whole);
        assert_eq!(of(7, 185, &[1, 2, 3, 4]), whole);
        assert_ne!(of(8, 0x2000, &other).flow, whole.flow);
        let lost = of(9, 185, &[1, 2, 3, 4]);
        assert_eq!(
            lost,
            of(10, 185, &[5, 6, 7, 8]),
            "by addresses and protocol"
        );
    }

    #[test]
    fn datagrams_in_pieces_take_bounded_room() {
        let mut classifier = Classifier::new(rules());
        for id in 0..60_000_u64 {
            let mut header = parse(&v4(UDP, 0, 0, 0x2000, &[0x13, 0xc4, 0, 1])).unwrap();
            header.fragment.as_mut().unwrap().id = id as u32 % 50_000;
            classifier.label(id, &header);
            assert!(classifier.fragmented.len() <= FRAGMENTED);
            assert!(classifier.oldest_first.len() <= FRAGMENTED);
        }
        assert_eq!(classifier.fragmented.len(), FRAGMENTED);
    }
}
