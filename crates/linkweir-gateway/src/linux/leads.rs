// SPDX-License-Identifier: BSD-3-Clause
//! Whether the system sends a datagram back into the tunnel that it would carry.

use std::net::SocketAddr;

use linkweir_plane::bytes::outbox::Source;

use crate::linux::paths;

/// What this end's datagrams are known by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// The number of the tunnel's device.
    pub(crate) device: u32,
    /// The mark of its datagrams.
    pub(crate) mark: Option<u32>,
    /// The port that they are sent from.
    pub(crate) port: u16,
    /// The number of the only device that they may leave through; none: any.
    pub(crate) only: Option<u32>,
}

impl Own {
    /// Whether datagrams from there to an address leave through the tunnel's own device. What has no route leaves nowhere.
    pub(crate) fn leads_into_itself(&self, to: SocketAddr, from: Source) -> bool {
        let scope = match to {
            SocketAddr::V6(to) => to.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let bound = [from.device, self.only.unwrap_or_default(), scope];
        match bound.into_iter().find(|device| *device != 0) {
            Some(device) => device == self.device,
            None => {
                paths::device_to(to.ip(), None, self.mark).is_ok_and(|device| device == self.device)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_keep_to_a_device_leave_through_it() {
        let own = |device, only| Own {
            device,
            only,
            ..Own::default()
        };
        // The first device of every network namespace is its loopback.
        let here: SocketAddr = "127.0.0.1:9".parse().unwrap();
        assert!(own(1, None).leads_into_itself(here, Source::default()));
        assert!(!own(2, None).leads_into_itself(here, Source::default()));
        assert!(!own(1, Some(7)).leads_into_itself(here, Source::default()));
        let from = Source {
            address: None,
            device: 2,
        };
        assert!(own(2, None).leads_into_itself(here, from));
        let scoped: SocketAddr = "[fe80::2%3]:9".parse().unwrap();
        assert!(own(3, None).leads_into_itself(scoped, Source::default()));
        let nowhere = "[2001:db8::77]:9".parse().unwrap();
        assert!(!own(2, None).leads_into_itself(nowhere, Source::default()));
    }
}
