// SPDX-License-Identifier: BSD-3-Clause
//! A fixed address to listen on: the system may take it away, as when a lease ends, and give it back.

use std::io;
use std::net::{IpAddr, UdpSocket};

use super::Gateway;
use crate::linux::journal::{tell, Event};

impl Gateway {
    /// Sees whether the address that the gateway listens on has gone or come again. While it is gone, nothing can be sent or
    /// received; then peers without a session are asked for one.
    pub(super) fn check_listen(&mut self, now_ns: u64) {
        let address = self.config.listen.ip();
        if address.is_unspecified() {
            return;
        }
        let is_gone = is_gone(address);
        if std::mem::replace(&mut self.listen_gone, is_gone) == is_gone {
            return;
        }
        if is_gone {
            let what = format!(
                "{address} of gateway.listen is no address of this host any more; nothing is sent or received until it is: \
                 give it back, or restart with listen = \"{}:{}\"",
                if address.is_ipv4() { "0.0.0.0" } else { "[::]" },
                self.config.listen.port()
            );
            tell(Event::ListenGone, "", &what);
            return;
        }
        let what = format!("{address} of gateway.listen is an address of this host again");
        tell(Event::ListenBack, "", &what);
        self.peers.want_sessions(now_ns);
        for at in 0..self.peers.stations.len() {
            self.peers.wakes.wake(at);
        }
    }
}

/// Whether an address is none of this host's.
fn is_gone(address: IpAddr) -> bool {
    let bound = UdpSocket::bind((address, 0));
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}
