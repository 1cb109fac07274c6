// SPDX-License-Identifier: BSD-3-Clause
//! Asks for the names of endpoints, and takes the answers.

use std::net::SocketAddr;

use super::names::{self, Names, AGAIN_NS, SILENT_AGAIN_NS};
use super::{Gateway, NAMES};
use crate::linux::journal::{log, tell, Event};

impl Gateway {
    /// Begins to resolve names if the configuration has any, and asks for them soon.
    pub(super) fn find_names(&mut self, now_ns: u64) {
        if self.names.is_none() && names::of(&self.config).next().is_some() {
            self.names = Some(Names::new(now_ns));
        }
        if let Some(names) = &mut self.names {
            names.again_ns = now_ns;
        }
    }

    /// Asks for the names of peers that have no session or do not answer, when it is time.
    pub(super) fn ask_names(&mut self, now_ns: u64) {
        let Some(names) = &mut self.names else {
            return;
        };
        let silent = std::mem::take(&mut self.peers.named_is_silent);
        if !names.is_due(now_ns) && !silent {
            return;
        }
        let started = names.start(self.config.user.as_deref());
        let started = started.and_then(|started| match names.readable() {
            Some(readable) if started => self.poll.add(readable, NAMES),
            _ => Ok(()),
        });
        if let Err(error) = started {
            log(&format!(
                "names cannot be resolved: {error}; it is tried again every 10 s"
            ));
            return;
        }
        for (peer, station) in self.config.peers.iter().zip(&mut self.peers.stations) {
            let Some(name) = &peer.host else {
                continue;
            };
            let has_session = station.is_open() && station.endpoint.is_some();
            let wait_ns = if has_session {
                SILENT_AGAIN_NS
            } else {
                AGAIN_NS
            };
            if station.is_lost(now_ns) && station.candidates.ask(now_ns, wait_ns) {
                names.ask(name);
            }
        }
    }

    /// Takes the resolver's answers.
    pub(super) fn take_names(&mut self, now_ns: u64) {
        let Some(names) = &mut self.names else {
            return;
        };
        let answers = names.answers();
        if names.has_ended() {
            log("the process that resolves names has ended; another one is started within 10 s");
        }
        for (name, found) in answers {
            let fits = |at: &SocketAddr| self.socket.carries(at);
            let found = found.map(|found| found.into_iter().filter(fits).collect::<Vec<_>>());
            let found = match found {
                Ok(found) if found.is_empty() => {
                    Err("it has no address of the version of IP of gateway.listen".to_string())
                }
                found => found,
            };
            for (at, peer) in self.config.peers.iter().enumerate() {
                let station = &mut self.peers.stations[at];
                if peer.host.as_ref() != Some(&name) || !station.is_lost(now_ns) {
                    continue;
                }
                match &found {
                    Ok(found) => {
                        let next = station.candidates.found(found, station.endpoint);
                        let Some(endpoint) = next.filter(|next| station.endpoint != Some(*next))
                        else {
                            continue;
                        };
                        let what = format!("{} is {endpoint}", name.host);
                        tell(Event::EndpointFound, &peer.name, &what);
                        station.move_to(endpoint);
                        if let Some(session) = &mut station.session {
                            session.want(now_ns);
                            session.ask_anew();
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
