// SPDX-License-Identifier: BSD-3-Clause
//! Records the calls of a policy as a vector (`vectors/README.md`), which `core/tests/replay.c` then replays: the core,
//! given the same calls at the same times, must give the same answers.
//!
//! [`Recorded`] wraps a policy, so a data plane that records nothing pays nothing. A recording ends with the line `# end`; one
//! without it is incomplete.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::io::Write;

use crate::core_policy::{Adjust, CorePolicy, Fault};
use crate::info::{Param, PolicyInfo, Unit, UNSET};
use crate::policy::{Broken, Pick, Policy, Verdict, Victim, View};

/// A policy whose calls and answers are written as a vector. An event that vectors cannot express, or a failed write, ends the
/// run as [`Broken`]; no recording is ever silently incomplete.
pub struct Recorded<P, W: Write> {
    policy: P,
    info: &'static PolicyInfo,
    calls: RefCell<Calls<W>>,
}

struct Calls<W: Write> {
    out: W,
    /// The line that may still grow: an arrival to which victims are added.
    line: String,
    /// Lengths of the packets that wait in each queue.
    waiting: Vec<VecDeque<u32>>,
    rates_bps: Vec<u64>,
    link_bps: u64,
    /// A drop that the vector implies and that must come next: its queue, and whether the head goes.
    expected: Option<Victim>,
}

impl<P: Policy, W: Write> Recorded<P, W> {
    /// Records `policy`, which was started with `view`, empty queues and these values.
    pub fn new(
        policy: P,
        info: &'static PolicyInfo,
        view: &View<'_>,
        params: &[u64],
        qparams: &[u64],
        out: W,
    ) -> Recorded<P, W> {
        let rates_bps: Vec<u64> = view.queues.iter().map(|queue| queue.rate_bps).collect();
        let line = beginning(info, view, params, qparams);
        Recorded {
            policy,
            info,
            calls: RefCell::new(Calls {
                out,
                line,
                waiting: vec![VecDeque::new(); rates_bps.len()],
                rates_bps,
                link_bps: view.link_bps,
                expected: None,
            }),
        }
    }
}

/// The first lines of a vector, to the call with which the policy starts, without the end of the last line.
#[must_use]
pub fn beginning(
    info: &'static PolicyInfo,
    view: &View<'_>,
    params: &[u64],
    qparams: &[u64],
) -> String {
    let mut line = format!(
        "linkweir-vectors 1\npolicy {}\nqueues {}\nlink {}\n",
        info.name,
        view.queues.len(),
        view.link_bps
    );
    if !params.is_empty() {
        let _ = writeln!(line, "set{}", assignments(&info.params, params));
    }
    for words in of_queues(info, qparams) {
        let _ = writeln!(line, "{words}");
    }
    for (q, queue) in view.queues.iter().enumerate() {
        if queue.rate_bps != view.link_bps {
            let _ = writeln!(line, "at {} rate {q} {}", view.now_ns, queue.rate_bps);
        }
    }
    let _ = write!(line, "at {} init", view.now_ns);
    line
}

/// `queue N name=value ...` of every queue whose policy has parameters for queues.
fn of_queues<'a>(info: &'a PolicyInfo, qparams: &'a [u64]) -> impl Iterator<Item = String> + 'a {
    let rows = qparams.chunks(info.qparams.len().max(1)).enumerate();
    rows.map(|(q, row)| format!("queue {q}{}", assignments(&info.qparams, row)))
}

/// ` name=value` of every parameter, in the words of vectors.
fn assignments(params: &[Param], values: &[u64]) -> String {
    let mut text = String::new();
    for (param, &value) in params.iter().zip(values) {
        let _ = match (value, param.unit) {
            (UNSET, _) => write!(text, " {}=unset", param.name),
            (_, Unit::Choice) => {
                write!(text, " {}={}", param.name, param.choices[value as usize])
            }
            _ => write!(text, " {}={value}", param.name),
        };
    }
    text
}

impl<W: Write> Calls<W> {
    /// Begins a line; the one before is complete.
    fn begin(&mut self, now_ns: u64, what: fmt::Arguments<'_>) {
        if let Some(victim) = self.expected {
            broken(format!(
                "at {now_ns}: {what}, where a packet of queue {} had to be dropped",
                victim.queue
            ));
        }
        self.end_line();
        let _ = write!(self.line, "at {now_ns} {what}");
    }

    fn end_line(&mut self) {
        self.line.push('\n');
        if let Err(error) = self.out.write_all(self.line.as_bytes()) {
            broken(error.to_string());
        }
        self.line.clear();
    }

    fn removed(&mut self, view: &View<'_>, q: usize, bytes: u32, head: bool) {
        let queue = &mut self.waiting[q];
        let gone = if head {
            queue.pop_front()
        } else {
            queue.pop_back()
        };
        if gone != Some(bytes) {
            broken(format!(
                "at {}: a packet of {bytes} bytes left queue {q}, where {gone:?} was due: flows that are isolated from each \
                 other cannot be recorded",
                view.now_ns
            ));
        }
    }
}

fn broken(what: String) -> ! {
    Broken(format!("cannot record the policy's calls: {what}")).end_run()
}

impl<P: Policy, W: Write> Policy for Recorded<P, W> {
    fn pick(&mut self, view: &View<'_>) -> Pick {
        let answer = self.policy.pick(view);
        let calls = self.calls.get_mut();
        match answer {
            Pick::Queue(q) => calls.begin(view.now_ns, format_args!("pick {q}")),
            Pick::Nothing { .. } => calls.begin(view.now_ns, format_args!("pick none")),
        }
        answer
    }

    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.policy.enqueued(view, q, bytes);
        let calls = self.calls.get_mut();
        calls.begin(view.now_ns, format_args!("enqueue {q} {bytes}"));
        calls.waiting[q].push_back(bytes);
    }

    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.policy.sent(view, q, bytes);
        let calls = self.calls.get_mut();
        calls.begin(view.now_ns, format_args!("send {q}"));
        calls.removed(view, q, bytes, true);
    }

    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.policy.dropped(view, q, bytes);
        let calls = self.calls.get_mut();
        match calls.expected.take() {
            Some(victim) if victim.queue == q => calls.removed(view, q, bytes, victim.head),
            _ => broken(format!(
                "at {}: the data plane itself dropped a waiting packet of queue {q}: classes with max_age, or that drop their \
                 oldest packets where they are full, cannot be recorded",
                view.now_ns
            )),
        }
    }

    fn rated(&mut self, view: &View<'_>) {
        self.policy.rated(view);
        let calls = self.calls.get_mut();
        let mut changed = String::new();
        for (q, (queue, known)) in view.queues.iter().zip(&mut calls.rates_bps).enumerate() {
            if queue.rate_bps != *known {
                *known = queue.rate_bps;
                let _ = write!(changed, " {q} {known}");
            }
        }
        if !changed.is_empty() {
            calls.begin(view.now_ns, format_args!("rate{changed}"));
        }
        if changed.is_empty() || view.link_bps != calls.link_bps {
            calls.link_bps = view.link_bps;
            calls.begin(view.now_ns, format_args!("link {}", view.link_bps));
        }
    }

    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        let answer = self.policy.victim(view, q, bytes);
        if let Some(victim) = answer {
            let calls = self.calls.get_mut();
            if !calls.line.contains(" drops ") {
                calls.line.push_str(" drops");
            }
            let head = if victim.head { "h" } else { "" };
            let _ = write!(calls.line, " {head}{}", victim.queue);
            calls.expected = Some(victim);
        }
        answer
    }

    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        let answer = self.policy.leaving(view, q, ecn);
        let calls = self.calls.get_mut();
        let word = match answer {
            Verdict::Pass => "pass",
            Verdict::Mark => "mark",
            Verdict::Drop => "drop",
        };
        let ecn = if ecn { " ecn" } else { "" };
        calls.begin(view.now_ns, format_args!("verdict {word}{ecn}"));
        if answer == Verdict::Drop {
            calls.expected = Some(Victim {
                queue: q,
                head: true,
            });
        }
        answer
    }

    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        let answer = self.policy.expired(view, q);
        let mut calls = self.calls.borrow_mut();
        let word = if answer { "yes" } else { "no" };
        calls.begin(view.now_ns, format_args!("expired {q} {word}"));
        if answer {
            calls.expected = Some(Victim {
                queue: q,
                head: true,
            });
        }
        answer
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        self.policy.observe(view, q, values);
    }
}

impl<W: Write> Adjust for Recorded<CorePolicy, W> {
    fn change(&mut self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        self.policy.change(view, params, qparams)?;
        let policy = &self.policy;
        let mut words = assignments(&self.info.params, policy.params());
        for row in of_queues(self.info, policy.qparams()) {
            let _ = write!(words, " {row}");
        }
        let calls = self.calls.get_mut();
        calls.begin(view.now_ns, format_args!("change{words}"));
        Ok(())
    }

    fn accepts(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        self.policy.accepts(view, params, qparams)
    }
}

impl<P: fmt::Debug, W: Write> fmt::Debug for Recorded<P, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl<P, W: Write> Drop for Recorded<P, W> {
    fn drop(&mut self) {
        let calls = self.calls.get_mut();
        calls.line.push_str("\n# end\n");
        // A write that fails here leaves no `# end`, which tells that the recording is incomplete.
        let _ = calls
            .out
            .write_all(calls.line.as_bytes())
            .and_then(|()| calls.out.flush());
    }
}
