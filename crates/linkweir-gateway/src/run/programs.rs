// SPDX-License-Identifier: BSD-3-Clause
//! The programs that know what a link carries: one per peer that has a `command`.

use super::{Gateway, COMMANDS, ERRORS};
use crate::config;
use crate::linux::command::{self, Running, Said};
use crate::linux::journal::{tell, Event};

impl Gateway {
    /// Starts the programs that are due, and reads again from those that had printed too much.
    pub(super) fn start_commands(&mut self, now_ns: u64) {
        for &at in &self.peers.with_commands {
            let station = &mut self.peers.stations[at];
            if let Some(running) = &mut station.command {
                running.resume(now_ns, &self.poll);
            }
            if station.command_at_ns.is_none_or(|at_ns| now_ns < at_ns) {
                continue;
            }
            let peer = &self.config.peers[at];
            let Some(words) = &peer.capacity.command else {
                station.command_at_ns = None;
                continue;
            };
            let folder = config::paths::folder_of(&self.file);
            let keys = (COMMANDS + at as u64, ERRORS + at as u64);
            match Running::start(words, &folder, &peer.name, &self.poll, keys) {
                Ok(running) => {
                    station.command = Some(running);
                    station.command_at_ns = None;
                }
                Err(error) => {
                    let what = format!("{}: cannot be started: {error}", words[0]);
                    tell(Event::ProgramSaid, &peer.name, &what);
                    station.command_at_ns = Some(now_ns + command::RESTART_NS);
                }
            }
        }
    }

    /// When a program is started or read again, ns.
    pub(super) fn commands_ns(&self, now_ns: u64) -> Option<u64> {
        let times = self.peers.with_commands.iter().flat_map(|at| {
            let station = &self.peers.stations[*at];
            let running = station.command.as_ref();
            let resume_ns = running.and_then(|running| running.resume_ns(now_ns));
            station.command_at_ns.into_iter().chain(resume_ns)
        });
        times.min()
    }

    /// Reads a capacity from the program of a peer; one that ended is started again later.
    pub(super) fn read_command(&mut self, now_ns: u64, at: usize) {
        let Some(station) = self.peers.stations.get_mut(at) else {
            return;
        };
        let Some(running) = &mut station.command else {
            return;
        };
        match running.read(now_ns, &self.poll) {
            Ok(Some(line)) => match config::capacity_bps(&line) {
                Ok(bps) => self.peers.set_capacity(now_ns, at, bps),
                Err(fault) => {
                    let what = format!("its program printed {:?}: {fault}", line.trim());
                    self.tell_of_program(at, Event::ProgramMalformed, &what);
                }
            },
            Ok(None) => {}
            Err(_) => {
                let ended = station.command.take();
                station.command_at_ns = Some(now_ns + command::RESTART_NS);
                if let Some(running) = ended {
                    let said = running.end(&self.poll);
                    self.tell_said(at, said);
                }
            }
        }
    }

    /// Reads what the program of a peer wrote to standard error.
    pub(super) fn read_errors(&mut self, now_ns: u64, at: usize) {
        let station = self.peers.stations.get_mut(at);
        let Some(running) = station.and_then(|station| station.command.as_mut()) else {
            return;
        };
        let said = running.read_errors(now_ns, &self.poll);
        self.tell_said(at, said);
    }

    fn tell_said(&mut self, at: usize, said: Said) {
        self.peers.stations[at].unlogged_lines += said.left_out;
        for line in said.lines {
            // A guard of ours says why it cannot start the program.
            let line = line.strip_prefix("linkweir-gateway: ").unwrap_or(&line);
            self.tell_of_program(at, Event::ProgramSaid, &format!("its program says: {line}"));
        }
    }

    /// Writes a line about the program of a peer to the log, or counts it.
    fn tell_of_program(&mut self, at: usize, event: Event, what: &str) {
        if !tell(event, &self.config.peers[at].name, what) {
            self.peers.stations[at].unlogged_lines += 1;
        }
    }
}
