// SPDX-License-Identifier: BSD-3-Clause
//! Replays vectors (`vectors/README.md`) with a policy that runs in BPF: the program makes the calls, this is the data plane.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use linkweir_core::{policy, state_size, PolicyInfo, Queue, Unit, MOST_DROPS, UNSET};

use crate::kernel::Loaded;
use crate::layout::{row_words, Command, Op, SETTINGS_WORDS, VERDICTS};
use crate::Failure;

const NONE: u64 = u32::MAX as u64;
const FROM_HEAD: u64 = 1 << 31;
/// Words of `struct lw_settings` before the parameters.
const PARAMS_AT: usize = 3;

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Compared {
    pub files: usize,
    pub skipped: usize,
    pub picks: u64,
    pub drops: u64,
    pub verdicts: u64,
    pub observed: u64,
}

/// Objects by policy, loaded when first needed.
#[derive(Default)]
pub struct Objects {
    folder: PathBuf,
    loaded: BTreeMap<&'static str, Loaded>,
}

/// Room for the largest vectors: 4096 queues.
const ARENA_BYTES: usize = 16 << 20;

impl Objects {
    /// Objects of a folder.
    #[must_use]
    pub fn new(folder: &Path) -> Objects {
        Objects {
            folder: folder.to_owned(),
            loaded: BTreeMap::new(),
        }
    }

    fn of(&mut self, name: &'static str) -> Result<&Loaded, Failure> {
        if !self.loaded.contains_key(name) {
            let file = self.folder.join(format!("{name}.bpf.o"));
            self.loaded
                .insert(name, Loaded::without_packets(&file, ARENA_BYTES)?);
        }
        Ok(&self.loaded[name])
    }
}

struct Plane<'o> {
    info: &'static PolicyInfo,
    loaded: &'o Loaded,
    queues_at: u32,
    now_at: u32,
    stats_at: u32,
    started: bool,
    now_ns: u64,
    link_bps: u64,
    queues: Vec<Queue>,
    waiting: Vec<VecDeque<(u64, u32)>>,
    params: Vec<u64>,
    qparams: Vec<u64>,
    picked: Option<usize>,
    compared: Compared,
}

type Done = Result<(), Failure>;

fn wrong<T>(what: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Kernel(what.into()))
}

fn number<T: std::str::FromStr>(words: &[&str], at: usize) -> Result<T, Failure> {
    let word = words.get(at).copied().unwrap_or_default();
    word.parse()
        .map_err(|_| Failure::Input(format!("\"{word}\" is no number that fits")))
}

impl Plane<'_> {
    fn command(&self, op: Op, q: usize, bytes: u32) -> Result<u64, Failure> {
        let command = Command {
            q: q as u32,
            bytes,
            now_ns: self.now_ns,
            link_bps: self.link_bps,
            row: self.queues[q],
            ..Command::default()
        };
        self.loaded.command(op, &command)
    }

    fn write_queues(&self) -> Done {
        let words: Vec<u64> = self.queues.iter().flat_map(row_words).collect();
        self.loaded.write(self.queues_at, &words)
    }

    fn write_params(&self) -> Done {
        self.loaded
            .write(self.now_at + (PARAMS_AT * 8) as u32, &self.params)?;
        let rows_at = SETTINGS_WORDS + 3 * self.queues.len();
        self.loaded
            .write(self.now_at + (rows_at * 8) as u32, &self.qparams)
    }

    fn queue(&self, words: &[&str], at: usize) -> Result<usize, Failure> {
        let q: usize = number(words, at)?;
        if q < self.queues.len() {
            return Ok(q);
        }
        wrong(format!("there is no queue {q}"))
    }

    fn configure(&mut self, words: &[&str]) -> Done {
        let mut at = 0;
        while at < words.len() {
            let rest = words.get(at + 1..).unwrap_or_default();
            let end = rest
                .iter()
                .position(|w| *w == "queue" || *w == "set")
                .map_or(words.len(), |n| at + 1 + n);
            let (table, row, first) = if words[at] == "set" {
                (&self.info.params, &mut self.params[..], at + 1)
            } else {
                let q = self.queue(words, at + 1)?;
                let n = self.info.qparams.len();
                (
                    &self.info.qparams,
                    &mut self.qparams[q * n..(q + 1) * n],
                    at + 2,
                )
            };
            for word in words.get(first..end).unwrap_or_default() {
                let known = word.split_once('=').and_then(|(name, value)| {
                    let index = table.iter().position(|param| param.name == name)?;
                    let choice = || {
                        table[index]
                            .choices
                            .iter()
                            .position(|c| *c == value)
                            .map(|i| i as u64)
                    };
                    let value = match value {
                        "unset" => Some(UNSET),
                        _ if table[index].unit == Unit::Choice => choice(),
                        number => number.parse().ok(),
                    };
                    Some((index, value?))
                });
                let Some((index, value)) = known else {
                    return wrong(format!("\"{word}\" is no parameter with its value"));
                };
                row[index] = value;
            }
            at = end;
        }
        Ok(())
    }

    fn refresh(&mut self, q: usize) {
        let queue = &mut self.queues[q];
        queue.backlog_pkts = self.waiting[q].len() as u32;
        if let Some(head) = self.waiting[q].front() {
            (queue.head_arrival_ns, queue.head_bytes) = *head;
        }
    }

    fn drop_end(&mut self, q: usize, head: bool) -> Done {
        let waiting = &mut self.waiting[q];
        let end = if head {
            waiting.pop_front()
        } else {
            waiting.pop_back()
        };
        let Some((_, bytes)) = end else {
            return wrong(format!("queue {q} has no packet to drop"));
        };
        self.queues[q].backlog_bytes -= u64::from(bytes);
        self.refresh(q);
        if self.started {
            self.command(Op::Dropped, q, bytes)?;
        }
        Ok(())
    }

    fn enqueue(&mut self, q: usize, bytes: u32, expected: &[&str]) -> Done {
        self.waiting[q].push_back((self.now_ns, bytes));
        self.queues[q].backlog_bytes += u64::from(bytes);
        self.refresh(q);
        let mut victims = Vec::new();
        if self.started {
            self.command(Op::Enqueued, q, bytes)?;
            while victims.len() < MOST_DROPS as usize {
                let victim = self.command(Op::Victim, q, bytes)?;
                if victim == NONE {
                    break;
                }
                let (queue, head) = ((victim & !FROM_HEAD) as usize, victim & FROM_HEAD != 0);
                self.drop_end(queue, head)?;
                victims.push(format!("{}{queue}", if head { "h" } else { "" }));
            }
        }
        self.compared.drops += victims.len() as u64;
        if victims != expected {
            return wrong(format!("victims are {victims:?}, expected {expected:?}"));
        }
        Ok(())
    }

    fn pick(&mut self, expected: &str) -> Done {
        let answer = self.command(Op::Pick, 0, 0)?;
        let again = self.command(Op::Pick, 0, 0)?;
        self.picked = (answer != NONE).then_some(answer as usize);
        let expected = if expected == "none" {
            NONE
        } else {
            number(&[expected], 0)?
        };
        if answer != expected || again != expected {
            return wrong(format!(
                "pick() answers {answer}, then {again}; expected {expected} ({NONE} is none)"
            ));
        }
        self.compared.picks += 1;
        Ok(())
    }

    fn operate(&mut self, words: &[&str]) -> Done {
        self.now_ns = number(words, 1)?;
        match words.get(2).copied().unwrap_or_default() {
            "init" => {
                self.write_queues()?;
                self.write_params()?;
                self.command(Op::Init, 0, 0)?;
                self.started = true;
                Ok(())
            }
            "enqueue" => {
                let (q, bytes) = (self.queue(words, 3)?, number(words, 4)?);
                self.enqueue(q, bytes, words.get(6..).unwrap_or_default())
            }
            "pick" => self.pick(words.get(3).copied().unwrap_or_default()),
            "verdict" => {
                let q = self
                    .picked
                    .ok_or_else(|| Failure::Input("nothing was picked".to_owned()))?;
                let verdict =
                    self.command(Op::Leaving, q, u32::from(words.get(4) == Some(&"ecn")))?;
                let name = VERDICTS.get(verdict as usize).copied().unwrap_or("none");
                self.compared.verdicts += 1;
                if words.get(3) != Some(&name) {
                    return wrong(format!("leaving() says {name}"));
                }
                if name == "drop" {
                    self.drop_end(q, true)?;
                }
                Ok(())
            }
            "expired" => {
                let q = self.queue(words, 3)?;
                let expired = self.command(Op::Expired, q, 0)? != 0;
                self.compared.verdicts += 1;
                if words.get(4) != Some(&if expired { "yes" } else { "no" }) {
                    return wrong(format!("expired() says {expired}"));
                }
                if expired {
                    self.drop_end(q, true)?;
                }
                Ok(())
            }
            "send" => {
                let q = if words.len() > 3 {
                    self.queue(words, 3)?
                } else {
                    self.picked.unwrap_or(0)
                };
                let Some((_, bytes)) = self.waiting[q].pop_front() else {
                    return wrong(format!("queue {q} has no packet to send"));
                };
                self.queues[q].backlog_bytes -= u64::from(bytes);
                self.refresh(q);
                self.command(Op::Sent, q, bytes).map(drop)
            }
            "drop" => {
                let q = self.queue(words, 3)?;
                self.drop_end(q, false)
            }
            "rate" => {
                for at in (3..words.len()).step_by(2) {
                    let q = self.queue(words, at)?;
                    self.queues[q].rate_bps = number(words, at + 1)?;
                }
                self.rated()
            }
            "lead" => {
                let (q, place): (usize, usize) = (self.queue(words, 3)?, number(words, 4)?);
                if let Some(packet) = self.waiting[q].remove(place) {
                    self.waiting[q].push_front(packet);
                }
                self.refresh(q);
                self.rated()
            }
            "link" => {
                self.link_bps = number(words, 3)?;
                self.rated()
            }
            "change" => {
                let mut set = words[3..].to_vec();
                if set.first() != Some(&"queue") {
                    set.insert(0, "set");
                }
                self.configure(&set)?;
                self.write_params()?;
                self.command(Op::Change, 0, 0).map(drop)
            }
            "observe" => self.observe(words),
            other => wrong(format!("\"{other}\" is no operation")),
        }
    }

    fn rated(&mut self) -> Done {
        if !self.started {
            return Ok(());
        }
        self.write_queues()?;
        self.command(Op::Rated, 0, 0).map(drop)
    }

    fn observe(&mut self, words: &[&str]) -> Done {
        let q = self.queue(words, 3)?;
        self.command(Op::Observe, q, 0)?;
        let values = self.loaded.read(self.stats_at, self.info.stats.len())?;
        for word in &words[4..] {
            let (name, expected) = word.split_once('=').unwrap_or((word, ""));
            let shown = self
                .info
                .stats
                .iter()
                .position(|stat| stat.name == name)
                .map(|at| values[at] as i64);
            if shown != expected.parse().ok() {
                return wrong(format!(
                    "{name} of queue {q} is {shown:?}, expected {expected}"
                ));
            }
            self.compared.observed += 1;
        }
        Ok(())
    }
}

/// Replays a file. Lines that only ask the core's `check` are left out, because BPF does not have it.
///
/// # Errors
/// The first answer that is not the expected one, with file and line.
pub fn replay(objects: &mut Objects, file: &Path, compared: &mut Compared) -> Done {
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::Input(format!("{}: {error}", file.display())))?;
    let (mut info, mut nqueues, mut link_bps) = (None, 0_u32, 0);
    let mut lines = text.lines().enumerate().map(|(at, line)| {
        let words: Vec<&str> = line
            .split('#')
            .next()
            .unwrap_or("")
            .split_whitespace()
            .collect();
        (at + 1, words)
    });
    let mut held = Vec::new();
    for (at, words) in lines.by_ref() {
        match words.first().copied() {
            None | Some("linkweir-vectors" | "refuse") => {}
            Some("policy") => info = words.get(1).and_then(|name| policy(name)),
            Some("queues") => nqueues = number(&words, 1)?,
            Some("link") => link_bps = number(&words, 1)?,
            Some(_) => {
                held.push((at, words));
                break;
            }
        }
    }
    let Some(info) = info else {
        return Err(Failure::Input(format!(
            "{}: no policy that the core has",
            file.display()
        )));
    };
    compared.files += 1;
    if held.is_empty() {
        compared.skipped += 1;
        return Ok(());
    }
    let loaded = objects.of(info.name)?;
    let params = info.default_params();
    let mut plane = Plane {
        info,
        loaded,
        queues_at: 0,
        now_at: 0,
        stats_at: 0,
        started: false,
        now_ns: 0,
        link_bps,
        queues: vec![
            Queue {
                rate_bps: link_bps,
                ..Queue::default()
            };
            nqueues as usize
        ],
        waiting: vec![VecDeque::new(); nqueues as usize],
        qparams: info.default_qparams(nqueues as usize),
        params,
        picked: None,
        compared: *compared,
    };
    for (at, words) in held.into_iter().chain(lines) {
        let done = match words.first().copied() {
            None | Some("refuse") => Ok(()),
            Some("set" | "queue") => plane.configure(&words),
            Some("at") => {
                if words.get(2) == Some(&"init") {
                    let bytes = state_size(info, nqueues as usize, &plane.params);
                    let found = loaded.lay_out(nqueues, 1, bytes)?;
                    (plane.queues_at, plane.now_at, plane.stats_at) =
                        (found.queues_at, found.now_at, found.stats_at);
                }
                plane.operate(&words)
            }
            Some(other) => wrong(format!("\"{other}\" is no statement")),
        };
        done.map_err(|failure| Failure::Kernel(format!("{}:{at}: {failure}", file.display())))?;
    }
    *compared = plane.compared;
    Ok(())
}
