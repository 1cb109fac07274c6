// SPDX-License-Identifier: BSD-3-Clause
//! The programs that know what a link carries: one per peer that has a `command`, or per path to it.

use super::peer_programs::{self, words_of};
use super::{Gateway, COMMANDS, ERRORS};
use crate::config;
use crate::linux::command::{self, Running, Said};
use crate::linux::journal::{tell, Event};

impl Gateway {
    /// Starts the programs that are due, and reads again from those that had printed too much.
    pub(super) fn start_commands(&mut self, now_ns: u64) {
        for &at in &self.peers.with_commands {
            let peer = &self.config.peers[at];
            for (number, program) in self.peers.stations[at].programs.iter_mut().enumerate() {
                if let Some(running) = &mut program.running {
                    running.resume(now_ns, &self.poll);
                }
                if program.start_ns.is_none_or(|at_ns| now_ns < at_ns) {
                    continue;
                }
                let Some(words) = words_of(peer, number) else {
                    program.start_ns = None;
                    continue;
                };
                let folder = config::paths::folder_of(&self.file);
                let place = peer_programs::place(at, number);
                let keys = (COMMANDS + place, ERRORS + place);
                let path = peer.paths.get(number).map(|path| path.name.as_str());
                match Running::start(words, &folder, (&peer.name, path), &self.poll, keys) {
                    Ok(running) => {
                        program.running = Some(running);
                        program.start_ns = None;
                    }
                    Err(error) => {
                        let what = format!("{}: cannot be started: {error}", words[0]);
                        tell(Event::ProgramSaid, &peer.name, &what);
                        program.start_ns = Some(now_ns + command::RESTART_NS);
                    }
                }
            }
        }
    }

    /// When a program is started or read again, ns.
    pub(super) fn commands_ns(&self, now_ns: u64) -> Option<u64> {
        let peers = self.peers.with_commands.iter();
        let programs = peers.flat_map(|at| &self.peers.stations[*at].programs);
        let times = programs.flat_map(|program| {
            let running = program.running.as_ref();
            let resume_ns = running.and_then(|running| running.resume_ns(now_ns));
            program.start_ns.into_iter().chain(resume_ns)
        });
        times.min()
    }

    /// Reads a capacity from a program of a peer; one that ended is started again later.
    pub(super) fn read_command(&mut self, now_ns: u64, place: (usize, usize)) {
        let (at, number) = place;
        let Some(program) = self
            .peers
            .stations
            .get_mut(at)
            .and_then(|station| station.programs.get_mut(number))
        else {
            return;
        };
        let Some(running) = &mut program.running else {
            return;
        };
        match running.read(now_ns, &self.poll) {
            Ok(Some(line)) => match config::capacity_bps(&line) {
                Ok(bps) if self.config.peers[at].paths.is_empty() => {
                    self.peers.set_capacity(now_ns, at, bps);
                }
                Ok(bps) => self.peers.set_path_capacity(now_ns, at, number, bps),
                Err(fault) => {
                    let what = format!("program printed {:?}: {fault}", line.trim());
                    self.tell_of_program(place, Event::ProgramMalformed, &what);
                }
            },
            Ok(None) => {}
            Err(_) => {
                let ended = program.running.take();
                program.start_ns = Some(now_ns + command::RESTART_NS);
                if let Some(running) = ended {
                    let said = running.end(&self.poll);
                    self.tell_said(place, said);
                }
            }
        }
    }

    /// Reads what a program of a peer wrote to standard error.
    pub(super) fn read_errors(&mut self, now_ns: u64, place: (usize, usize)) {
        let (at, number) = place;
        let station = self.peers.stations.get_mut(at);
        let program = station.and_then(|station| station.programs.get_mut(number));
        let Some(running) = program.and_then(|program| program.running.as_mut()) else {
            return;
        };
        let said = running.read_errors(now_ns, &self.poll);
        self.tell_said(place, said);
    }

    fn tell_said(&mut self, place: (usize, usize), said: Said) {
        self.peers.stations[place.0].unlogged_lines += said.left_out;
        for line in said.lines {
            // A guard of ours says why it cannot start the program.
            let line = line.strip_prefix("linkweir-gateway: ").unwrap_or(&line);
            self.tell_of_program(place, Event::ProgramSaid, &format!("program says: {line}"));
        }
    }

    /// Writes a line about a program of a peer to the log, or counts it.
    fn tell_of_program(&mut self, (at, number): (usize, usize), event: Event, what: &str) {
        let peer = &self.config.peers[at];
        let whose = match peer.paths.get(number) {
            Some(path) => format!("path {}: its {what}", path.name),
            None => format!("its {what}"),
        };
        if !tell(event, &peer.name, &whose) {
            self.peers.stations[at].unlogged_lines += 1;
        }
    }
}
