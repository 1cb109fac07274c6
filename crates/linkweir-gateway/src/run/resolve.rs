// SPDX-License-Identifier: BSD-3-Clause
//! Asks for the names of endpoints, and takes the answers.

use std::net::SocketAddr;

use super::names::{self, Names};
use super::{Gateway, NAMES};
use crate::config::is_dual;
use crate::linux::journal::{tell, Event};

impl Gateway {
    /// Begins to resolve names if the configuration has any, and asks for them soon.
    pub(super) fn find_names(&mut self, now_ns: u64) -> Result<(), String> {
        if self.names.is_none() && names::of(&self.config).next().is_some() {
            let names = Names::new(now_ns).and_then(|names| {
                self.poll.add(&names, NAMES)?;
                Ok(names)
            });
            self.names = Some(names.map_err(|error| format!("names cannot be resolved: {error}"))?);
        }
        if let Some(names) = &mut self.names {
            names.again_ns = now_ns;
        }
        Ok(())
    }

    /// Asks for the names of peers without a session when it is time.
    pub(super) fn ask_names(&mut self, now_ns: u64) {
        let Some(names) = &mut self.names else {
            return;
        };
        if !names.is_due(now_ns) {
            return;
        }
        for (peer, station) in self.config.peers.iter().zip(&self.peers.stations) {
            let open = station
                .session
                .as_ref()
                .is_some_and(|session| session.is_open());
            if let (Some(name), false) = (&peer.host, open) {
                names.ask(name);
            }
        }
    }

    /// Takes the resolver's answers.
    pub(super) fn take_names(&mut self, now_ns: u64) {
        let Some(names) = &mut self.names else {
            return;
        };
        let listen = self.config.listen;
        for (name, found) in names.answers() {
            let fits = |at: &SocketAddr| is_dual(listen) || at.is_ipv4() == listen.is_ipv4();
            let found = found.map(|found| found.into_iter().filter(fits).collect::<Vec<_>>());
            for (at, peer) in self.config.peers.iter().enumerate() {
                let station = &mut self.peers.stations[at];
                let open = station
                    .session
                    .as_ref()
                    .is_some_and(|session| session.is_open());
                if peer.host.as_ref() != Some(&name) || open {
                    continue;
                }
                let first = match &found {
                    Ok(found) => found
                        .first()
                        .copied()
                        .ok_or("it has no address of the version of IP of gateway.listen"),
                    Err(error) => Err(error.as_str()),
                };
                match first {
                    Ok(endpoint) if station.endpoint == Some(endpoint) => {}
                    Ok(endpoint) => {
                        tell(
                            Event::EndpointFound,
                            &peer.name,
                            &format!("{} is {endpoint}", name.host),
                        );
                        station.endpoint = Some(endpoint);
                        station.forget_path();
                        if let Some(session) = &mut station.session {
                            session.want(now_ns);
                        }
                        self.peers.endpoints_changed = true;
                        self.peers.wakes.wake(at);
                    }
                    Err(why) => {
                        let what = format!(
                            "{} cannot be found: {why}; it is asked for again every 10 s",
                            name.host
                        );
                        tell(Event::EndpointUnknown, &peer.name, &what);
                    }
                }
            }
        }
    }
}
