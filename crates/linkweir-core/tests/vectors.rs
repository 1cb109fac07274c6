// SPDX-License-Identifier: BSD-3-Clause
//! Replays every vector of `vectors/` through the safe wrapper. The format is described in `vectors/README.md`.

mod made;

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use linkweir_core::{
    check, policy, CorePolicy, Pick, Policy, PolicyInfo, Queue, Unit, Verdict, View, MOST_DROPS,
    UNSET,
};

/// A data plane that does what the file says, whatever the policy picked.
struct Plane {
    info: &'static PolicyInfo,
    policy: Option<CorePolicy>,
    now_ns: u64,
    link_bps: u64,
    queues: Vec<Queue>,
    waiting: Vec<VecDeque<(u64, u32)>>,
    params: Vec<u64>,
    qparams: Vec<u64>,
    picked: Option<usize>,
}

fn words_of(line: &str) -> Vec<&str> {
    line.split('#')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect()
}

impl Plane {
    fn new(info: &'static PolicyInfo, nqueues: usize, link_bps: u64) -> Plane {
        Plane {
            info,
            policy: None,
            now_ns: 0,
            link_bps,
            queues: vec![
                Queue {
                    rate_bps: link_bps,
                    ..Queue::default()
                };
                nqueues
            ],
            waiting: vec![VecDeque::new(); nqueues],
            params: info.default_params(),
            qparams: info.default_qparams(nqueues),
            picked: None,
        }
    }

    fn view(&self) -> View<'_> {
        View {
            now_ns: self.now_ns,
            link_bps: self.link_bps,
            queues: &self.queues,
        }
    }

    /// Calls the policy with the present view; before init there is none.
    fn call<R>(&mut self, function: impl FnOnce(&mut CorePolicy, &View<'_>) -> R) -> Option<R> {
        let view = View {
            now_ns: self.now_ns,
            link_bps: self.link_bps,
            queues: &self.queues,
        };
        self.policy.as_mut().map(|policy| function(policy, &view))
    }

    fn configure(&mut self, words: &[&str]) {
        let mut at = 0;
        while at < words.len() {
            let end = words[at + 1..]
                .iter()
                .position(|w| *w == "queue" || *w == "set")
                .map_or(words.len(), |next| at + 1 + next);
            let (table, row, first) = match words[at] {
                "set" => (&self.info.params, &mut self.params[..], at + 1),
                "queue" => {
                    let q: usize = words[at + 1].parse().unwrap();
                    let n = self.info.qparams.len();
                    (
                        &self.info.qparams,
                        &mut self.qparams[q * n..(q + 1) * n],
                        at + 2,
                    )
                }
                other => panic!("expected set or queue, not {other}"),
            };
            for word in &words[first..end] {
                let (name, value) = word.split_once('=').unwrap();
                let index = table.iter().position(|p| p.name == name).unwrap();
                row[index] = match value {
                    "unset" => UNSET,
                    word if table[index].unit == Unit::Choice => table[index]
                        .choices
                        .iter()
                        .position(|c| *c == word)
                        .unwrap()
                        as u64,
                    number => number.parse().unwrap(),
                };
            }
            at = end;
        }
    }

    fn refresh(&mut self, q: usize) {
        let queue = &mut self.queues[q];
        queue.backlog_pkts = self.waiting[q].len() as u32;
        queue.backlog_bytes = self.waiting[q].iter().map(|p| u64::from(p.1)).sum();
        if let Some(head) = self.waiting[q].front() {
            (queue.head_arrival_ns, queue.head_bytes) = *head;
        }
    }

    /// Puts a packet in; returns the queues that lost a packet, with an h before those that lost their head.
    fn enqueue(&mut self, q: usize, bytes: u32) -> Vec<String> {
        self.waiting[q].push_back((self.now_ns, bytes));
        self.refresh(q);
        self.call(|p, v| p.enqueued(v, q, bytes));
        let mut victims = Vec::new();
        while victims.len() < MOST_DROPS as usize {
            let Some(victim) = self.call(|p, v| p.victim(v, q, bytes)).flatten() else {
                break;
            };
            self.drop_end(victim.queue, victim.head);
            victims.push(format!(
                "{}{}",
                if victim.head { "h" } else { "" },
                victim.queue
            ));
        }
        victims
    }

    fn drop_end(&mut self, q: usize, head: bool) {
        let waiting = &mut self.waiting[q];
        let end = if head {
            waiting.pop_front()
        } else {
            waiting.pop_back()
        };
        let (_, bytes) = end.expect("the queue has a packet to drop");
        self.refresh(q);
        self.call(|p, v| p.dropped(v, q, bytes));
    }

    fn send(&mut self, q: usize) {
        let (_, bytes) = self.waiting[q]
            .pop_front()
            .expect("the queue has a packet to send");
        self.refresh(q);
        self.call(|p, v| p.sent(v, q, bytes));
    }

    /// Asks twice, and once more after going back to a snapshot.
    fn pick(&mut self) -> Option<usize> {
        let before = self.policy.as_ref().expect("init comes first").snapshot();
        let first = self.call(|p, v| p.pick(v)).unwrap();
        assert_eq!(
            self.call(|p, v| p.pick(v)).unwrap(),
            first,
            "two picks differ"
        );
        self.policy.as_mut().unwrap().restore(&before);
        assert_eq!(
            self.call(|p, v| p.pick(v)).unwrap(),
            first,
            "a restored policy picks otherwise"
        );
        match first {
            Pick::Queue(q) => Some(q),
            Pick::Nothing { retry_ns } => {
                assert_eq!(retry_ns, None);
                None
            }
        }
    }

    /// `at TIME OPERATION ...`
    fn operate(&mut self, words: &[&str]) {
        self.now_ns = words[1].parse().unwrap();
        let queue = |at: usize| -> usize { words[at].parse().unwrap() };
        match words[2] {
            "init" => {
                let policy = CorePolicy::new(self.info, &self.view(), &self.params, &self.qparams);
                self.policy = Some(policy.unwrap_or_else(|fault| panic!("refused: {fault}")));
            }
            "enqueue" => {
                let victims = self.enqueue(queue(3), words[4].parse().unwrap());
                let expected = words.get(6..).unwrap_or_default();
                assert_eq!(victims, expected, "victims");
            }
            "pick" => {
                self.picked = self.pick();
                let expected = (words[3] != "none").then(|| queue(3));
                assert_eq!(self.picked, expected, "pick");
            }
            "verdict" => self.judge(words[3], words.get(4) == Some(&"ecn")),
            "expired" => {
                let expired = self.call(|p, v| p.expired(v, queue(3))).unwrap();
                assert_eq!(if expired { "yes" } else { "no" }, words[4]);
                if expired {
                    self.drop_end(queue(3), true);
                }
            }
            "send" => {
                let q = if words.len() > 3 {
                    Some(queue(3))
                } else {
                    self.picked
                };
                self.send(q.expect("something was picked"));
            }
            "drop" => self.drop_end(queue(3), false),
            "rate" => {
                for at in (3..words.len()).step_by(2) {
                    self.queues[queue(at)].rate_bps = words[at + 1].parse().unwrap();
                }
                self.call(|p, v| p.rated(v));
            }
            "lead" => {
                let (q, place) = (queue(3), queue(4));
                let packet = self.waiting[q].remove(place).expect("the packet waits");
                self.waiting[q].push_front(packet);
                self.refresh(q);
                self.call(|p, v| p.rated(v));
            }
            "link" => {
                self.link_bps = words[3].parse().unwrap();
                self.call(|p, v| p.rated(v));
            }
            "change" => self.change(&words[3..]),
            "observe" => self.observe(queue(3), &words[4..]),
            other => panic!("{other} is no operation"),
        }
    }

    /// Asks what becomes of the packet that was picked, and drops it if the answer is `drop`.
    fn judge(&mut self, expected: &str, ecn: bool) {
        let q = self.picked.expect("something was picked");
        let verdict = self.call(|p, v| p.leaving(v, q, ecn)).unwrap();
        let expected = match expected {
            "pass" => Verdict::Pass,
            "mark" => Verdict::Mark,
            "drop" => Verdict::Drop,
            other => panic!("{other} is no verdict"),
        };
        assert_eq!(verdict, expected, "verdict");
        if verdict == Verdict::Drop {
            self.drop_end(q, true);
        }
    }

    /// Gives the running policy new values. Parameters of the policy may come without `set` before them.
    fn change(&mut self, values: &[&str]) {
        let mut set = values.to_vec();
        if set.first() != Some(&"queue") {
            set.insert(0, "set");
        }
        self.configure(&set);
        let (params, qparams) = (self.params.clone(), self.qparams.clone());
        let changed = self.call(|p, v| p.change(v, &params, &qparams)).unwrap();
        changed.unwrap_or_else(|fault| panic!("refused: {fault}"));
    }

    /// Compares statistics of a queue with those expected, each `name=value`.
    fn observe(&mut self, q: usize, expected: &[&str]) {
        let mut values = vec![0; self.info.stats.len()];
        self.call(|p, v| p.observe(v, q, &mut values));
        for word in expected {
            let (name, value) = word.split_once('=').unwrap();
            let index = self.info.stats.iter().position(|s| s.name == name).unwrap();
            assert_eq!(values[index], value.parse::<i64>().unwrap(), "{name}");
        }
    }
}

fn refuse(info: &'static PolicyInfo, nqueues: usize, link_bps: u64, words: &[&str]) {
    let arrow = words.iter().position(|w| *w == "=>").unwrap();
    let mut plane = Plane::new(info, nqueues, link_bps);
    plane.configure(&words[1..arrow]);
    let fault =
        check(info, &plane.view(), &plane.params, &plane.qparams).expect_err("must be refused");
    assert_eq!(fault.param, Some(words[arrow + 1]), "{fault}");
    let queue = words[arrow + 2];
    assert_eq!(
        fault.queue.map_or("-".to_owned(), |q| q.to_string()),
        queue,
        "{fault}"
    );
    assert!(!fault.cure.is_empty() && fault.to_string().contains(words[arrow + 1]));
}

fn replay(file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let (mut info, mut nqueues, mut link_bps) = (None, 0, None);
    let mut plane: Option<Plane> = None;
    for (number, line) in text.lines().enumerate() {
        let words = words_of(line);
        let Some(first) = words.first() else { continue };
        // Shown by a failing assertion further down.
        let _place = Place(file, number + 1);
        match *first {
            "linkweir-vectors" => assert_eq!(words[1], "1"),
            "policy" => info = policy(words[1]),
            "queues" => nqueues = words[1].parse().unwrap(),
            "link" => link_bps = Some(words[1].parse().unwrap()),
            statement => {
                let (info, link_bps) = (info.expect("a known policy"), link_bps.expect("a link"));
                let plane = plane.get_or_insert_with(|| Plane::new(info, nqueues, link_bps));
                match statement {
                    "refuse" => refuse(info, nqueues, link_bps, &words),
                    "set" | "queue" => plane.configure(&words),
                    "at" => plane.operate(&words),
                    other => panic!("{other} is no statement"),
                }
            }
        }
    }
}

/// Names file and line when an assertion fails.
struct Place<'a>(&'a Path, usize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("at {}:{}", self.0.display(), self.1);
        }
    }
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "vec"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_policy_answers_its_vectors() {
    let vectors = made::vectors();
    for info in linkweir_core::policies() {
        let files = files_of(&vectors.join(info.name));
        assert!(files.iter().any(|f| f
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("hand-")));
        for file in files {
            replay(&file);
        }
    }
}
