// SPDX-License-Identifier: BSD-3-Clause
//! Which programs a peer has: one that knows what its link carries, or one for each path that has a `command`.

use linkweir_core::MOST_PATHS;

use crate::config::Peer;
use crate::linux::command::Running;

/// A program of a peer.
#[derive(Default)]
pub(super) struct Program {
    /// While it runs.
    pub(super) running: Option<Running>,
    /// When it is started, ns.
    pub(super) start_ns: Option<u64>,
}

/// The words of a program of a peer, by its number: that of a path, or 0 without paths.
pub(super) fn words_of(peer: &Peer, number: usize) -> Option<&[String]> {
    let capacity = match peer.paths.get(number) {
        Some(path) => &path.capacity,
        None => &peer.capacity,
    };
    capacity.command.as_deref()
}

/// Whether a peer has programs.
pub(super) fn has_programs(peer: &Peer) -> bool {
    (0..peer.paths.len().max(1)).any(|number| words_of(peer, number).is_some())
}

/// Whether a peer's programs are others than before, or know it or its paths by other names.
pub(super) fn differ(old: &Peer, new: &Peer) -> bool {
    let paths = |peer: &Peer| -> Vec<(String, Option<Vec<String>>)> {
        let paths = peer.paths.iter();
        paths
            .map(|path| (path.name.clone(), path.capacity.command.clone()))
            .collect()
    };
    let are_there = has_programs(old) || has_programs(new);
    let same = old.name == new.name
        && old.capacity.command == new.capacity.command
        && paths(old) == paths(new);
    are_there && !same
}

/// The programs of a peer, which are to be started; by number.
pub(super) fn programs(now_ns: u64, peer: &Peer) -> Vec<Program> {
    if !has_programs(peer) {
        return Vec::new();
    }
    let program = |number| Program {
        running: None,
        start_ns: words_of(peer, number).map(|_| now_ns),
    };
    (0..peer.paths.len().max(1)).map(program).collect()
}

/// The place of a program among those of all peers, by which the poll knows it: a peer has one for each path at most.
pub(super) fn place(peer: usize, number: usize) -> u64 {
    (peer * MOST_PATHS + number) as u64
}

/// The peer and the number of the program at a place.
pub(super) fn at_place(place: u64) -> (usize, usize) {
    let place = place as usize;
    (place / MOST_PATHS, place % MOST_PATHS)
}
