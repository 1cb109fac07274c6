// SPDX-License-Identifier: BSD-3-Clause
//! Limits the handshakes that are opened. Opening one costs multiplications on an elliptic curve before the sender is
//! known. So there is a limit for one address, which a sender cannot pass by proving that it owns the address, and one
//! for all together.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Handshakes a second from one address, or one IPv6 network of 64 bits.
pub const OF_ONE: u32 = 50;
/// Handshakes a second from all addresses together.
pub const OF_ALL: u32 = 1000;

/// Handshakes admitted in this second.
#[derive(Default)]
pub struct Admission {
    by_source: HashMap<IpAddr, u32>,
    all: u32,
}

impl Admission {
    /// Whether another handshake from this address may be opened.
    pub fn admit(&mut self, from: IpAddr) -> bool {
        if self.all == OF_ALL {
            return false;
        }
        // At most `OF_ALL` entries, because each was made by an admitted handshake.
        let count = self.by_source.entry(network(from)).or_default();
        let admitted = *count < OF_ONE;
        if admitted {
            *count += 1;
            self.all += 1;
        }
        admitted
    }

    /// Another second begins.
    pub fn begin_second(&mut self) {
        self.by_source.clear();
        self.all = 0;
    }
}

/// A network of IPv6 counts as one address, because its owner has all of its addresses.
fn network(from: IpAddr) -> IpAddr {
    match from {
        IpAddr::V4(_) => from,
        IpAddr::V6(address) => {
            let bits = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn each_address_and_all_together_have_a_bound() {
        let mut admission = Admission::default();
        for second in 0..2 {
            let one = (0..200).filter(|_| admission.admit(v4(1))).count();
            assert_eq!(one, 50, "second {second}");
            let others = (2..5000).filter(|from| admission.admit(v4(*from))).count();
            assert_eq!(others, 950, "second {second}");
            assert!(admission.by_source.len() <= OF_ALL as usize);
            admission.begin_second();
        }
        assert!(admission.by_source.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let mut admission = Admission::default();
        let admitted = (0..200_u16)
            .filter(|last| {
                let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 1, 2, 3, *last);
                admission.admit(address.into())
            })
            .count();
        assert_eq!(admitted, 50);
        assert!(admission.admit(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 1, 2, 3, 4).into()));
    }
}
