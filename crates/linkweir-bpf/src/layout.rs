// SPDX-License-Identifier: BSD-3-Clause
//! The memory of a discipline as `bpf/plane.h` lays it out, in words of eight bytes, and the commands that read and write it.

use linkweir_core::Queue;

/// Most words that one command carries.
pub const EXCHANGE_WORDS: usize = 4096;
/// Bytes of a text that is kept with a discipline, with the words before it.
pub const NOTES_BYTES: usize = 65536;
/// Number of `bpf/plane.h`. Raise it with each change there: a loader refuses disciplines of another number.
pub const VERSION: u64 = 3;
/// Words of `struct lw_settings`, which those of the classes follow.
pub const SETTINGS_WORDS: usize = TEXT_WORD as usize + 2 + MOST_MARKS + MOST_RULES * RULE_WORDS;
/// Most marks of the firewall in `struct lw_settings`.
pub const MOST_MARKS: usize = 64;
/// Most rules in `struct lw_settings`.
pub const MOST_RULES: usize = 64;
/// Words of `struct lw_rule`.
pub const RULE_WORDS: usize = 7;
/// The word of `struct lw_settings` with the largest capacity reported.
pub const BEST_WORD: u32 = 2;
/// The word of `struct lw_settings` that says which text has the settings.
pub const TEXT_WORD: u32 = 3 + 16 + 64 + 1;
/// Reasons of drops, in the order of `enum lw_reason`.
pub const REASONS: [&str; 6] = ["limit", "victim", "expired", "leaving", "reset", "memory"];
/// Verdicts, in the order of `enum lw_verdict`.
pub const VERDICTS: [&str; 3] = ["pass", "mark", "drop"];

/// `enum lw_op`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum Op {
    Layout,
    Start,
    Read,
    Write,
    Turn,
    Show,
    Pick,
    Enqueued,
    Sent,
    Dropped,
    Rated,
    Change,
    Victim,
    Leaving,
    Expired,
    Observe,
    Init,
}

/// `enum lw_turn`: who may use the settings that are next.
pub mod turn {
    /// Nobody uses them.
    pub const IDLE: u32 = 0;
    /// A loader writes them.
    pub const WRITING: u32 = 1;
    /// The discipline is to apply them.
    pub const READY: u32 = 2;
    /// It does.
    pub const APPLYING: u32 = 3;
}

/// `struct lw_command`
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Command {
    pub q: u32,
    pub bytes: u32,
    pub words: u32,
    pub nqueues: u32,
    pub nslots: u32,
    pub from: u32,
    pub to: u32,
    pub now_ns: u64,
    pub offset: u64,
    pub link_bps: u64,
    pub row: Queue,
}

/// Where the answer is in a command.
pub const ANSWER_AT: usize = 88;
/// Bytes of a command.
pub const COMMAND_BYTES: usize = 96;

impl Command {
    /// The bytes of the C structure.
    #[must_use]
    pub fn bytes(&self, op: Op) -> [u8; COMMAND_BYTES] {
        let mut bytes = [0; COMMAND_BYTES];
        let small = [
            op as u32,
            self.q,
            self.bytes,
            self.words,
            self.nqueues,
            self.nslots,
            self.from,
            self.to,
        ];
        for (place, value) in bytes.chunks_exact_mut(4).zip(small) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        let row = row_words(&self.row);
        let large = [
            self.now_ns,
            self.offset,
            self.link_bps,
            row[0],
            row[1],
            row[2],
            row[3],
        ];
        for (place, value) in bytes[32..].chunks_exact_mut(8).zip(large) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }
}

/// `struct lw_queue` as words.
#[must_use]
pub fn row_words(row: &Queue) -> [u64; 4] {
    [
        row.backlog_bytes,
        row.head_arrival_ns,
        row.rate_bps,
        join(row.backlog_pkts, row.head_bytes),
    ]
}

/// Two halves of a word in memory, the first one first.
#[must_use]
pub fn join(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// The halves of a word in memory.
#[must_use]
pub fn halves(word: u64) -> (u32, u32) {
    let bytes = word.to_ne_bytes();
    let half =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (half(0), half(4))
}

/// The start of `struct lw_plane`, as far as the loader reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Plane {
    pub link_bps: u64,
    pub nqueues: u32,
    pub nslots: u32,
    pub turn: u32,
    pub attached: u32,
    pub applied: u64,
    pub used: u32,
    pub queues_at: u32,
    pub classes_at: u32,
    pub state_at: u32,
    pub now_at: u32,
    pub next_at: u32,
    pub stats_at: u32,
    pub settings_words: u32,
    pub lost: u64,
}

/// Words of [`Plane`].
pub const PLANE_WORDS: usize = 10;

impl Plane {
    /// Reads it from the first words of the arena.
    #[must_use]
    pub fn new(words: &[u64; PLANE_WORDS]) -> Plane {
        let (nqueues, nslots) = halves(words[1]);
        let (turn, attached) = halves(words[2]);
        let (_, used) = halves(words[4]);
        let (queues_at, classes_at) = halves(words[5]);
        let (_, state_at) = halves(words[6]);
        let (now_at, next_at) = halves(words[7]);
        let (stats_at, settings_words) = halves(words[8]);
        Plane {
            link_bps: words[0],
            nqueues,
            nslots,
            turn,
            attached,
            applied: words[3],
            used,
            queues_at,
            classes_at,
            state_at,
            now_at,
            next_at,
            stats_at,
            settings_words,
            lost: words[9],
        }
    }
}

/// `enum lw_called`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Called {
    Init,
    Enqueued,
    Victim,
    Pick,
    Leaving,
    Expired,
    Sent,
    Change,
}

/// `struct lw_call`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Call {
    pub now_ns: u64,
    pub called: Option<Called>,
    pub queue: Option<u32>,
    pub value: u32,
}

/// Words of [`Call`].
pub const CALL_WORDS: usize = 2;

impl Call {
    /// Reads it; none where no call was noted down.
    #[must_use]
    pub fn new(words: [u64; CALL_WORDS]) -> Option<Call> {
        const KNOWN: [Called; 8] = [
            Called::Init,
            Called::Enqueued,
            Called::Victim,
            Called::Pick,
            Called::Leaving,
            Called::Expired,
            Called::Sent,
            Called::Change,
        ];
        let (what, value) = halves(words[1]);
        (words != [0, 0]).then_some(Call {
            now_ns: words[0],
            called: KNOWN.get((what & 0xff) as usize).copied(),
            queue: (what >> 8 != 0xff_ffff).then_some(what >> 8),
            value,
        })
    }
}

/// Words of `struct lw_class`.
pub const CLASS_WORDS: usize = 11;

/// What a class has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counters {
    pub sent_pkts: u64,
    pub sent_bytes: u64,
    pub dropped_pkts: [u64; REASONS.len()],
    pub sojourn_ns: u64,
    pub sojourn_max_ns: u64,
}

impl Counters {
    /// Reads them from a class.
    #[must_use]
    pub fn new(words: &[u64]) -> Counters {
        let mut dropped_pkts = [0; REASONS.len()];
        dropped_pkts.copy_from_slice(&words[3..3 + REASONS.len()]);
        Counters {
            sent_pkts: words[1],
            sent_bytes: words[2],
            dropped_pkts,
            sojourn_ns: words[9],
            sojourn_max_ns: words[10],
        }
    }
}
