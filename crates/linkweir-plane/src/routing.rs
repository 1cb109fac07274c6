// SPDX-License-Identifier: BSD-3-Clause
//! Which peer an address is behind: the longest prefix that holds it.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

/// Prefixes of all peers, by length, the longest first.
#[derive(Clone, Debug, Default)]
pub struct Routing {
    v4: Vec<(u8, HashMap<IpAddr, usize>)>,
    v6: Vec<(u8, HashMap<IpAddr, usize>)>,
}

impl Routing {
    /// The prefixes of peer 0, of peer 1, and so on.
    pub fn new<'p>(peers: impl IntoIterator<Item = &'p [IpNet]>) -> Routing {
        let mut routing = Routing::default();
        for (peer, nets) in peers.into_iter().enumerate() {
            for net in nets {
                routing.insert(net, peer);
            }
        }
        for table in [&mut routing.v4, &mut routing.v6] {
            table.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        }
        routing
    }

    fn insert(&mut self, net: &IpNet, peer: usize) {
        let table = match net {
            IpNet::V4(_) => &mut self.v4,
            IpNet::V6(_) => &mut self.v6,
        };
        let length = net.prefix_len();
        let at = match table.iter().position(|(known, _)| *known == length) {
            Some(at) => at,
            None => {
                table.push((length, HashMap::new()));
                table.len() - 1
            }
        };
        table[at].1.insert(net.network(), peer);
    }

    /// The peer an address is behind.
    #[must_use]
    pub fn peer(&self, address: IpAddr) -> Option<usize> {
        let table = if address.is_ipv4() {
            &self.v4
        } else {
            &self.v6
        };
        table.iter().find_map(|(length, nets)| {
            let net = IpNet::new(address, *length).ok()?;
            nets.get(&net.network()).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_counts() {
        let nets =
            |texts: &[&str]| -> Vec<IpNet> { texts.iter().map(|t| t.parse().unwrap()).collect() };
        let peers = [
            nets(&["10.0.0.0/8", "fd00::/8"]),
            nets(&["10.1.0.0/16", "10.2.3.4/32", "fd00:1::/32"]),
            nets(&["10.1.2.0/24", "0.0.0.0/0"]),
        ];
        let routing = Routing::new(peers.iter().map(Vec::as_slice));
        for (address, peer) in [
            ("10.9.9.9", Some(0)),
            ("10.1.9.9", Some(1)),
            ("10.2.3.4", Some(1)),
            ("10.2.3.5", Some(0)),
            ("10.1.2.255", Some(2)),
            ("192.0.2.1", Some(2)),
            ("fd00:1::5", Some(1)),
            ("fd00:2::5", Some(0)),
            ("2001:db8::1", None),
        ] {
            assert_eq!(routing.peer(address.parse().unwrap()), peer, "{address}");
        }
    }
}
