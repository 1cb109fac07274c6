// SPDX-License-Identifier: BSD-3-Clause
//! Looks at the answers of a policy that nobody has proved: one that the contract does not allow ends the run.

use linkweir_core::{Broken, Pick, Policy, Queue, Verdict, Victim, View};

/// A policy whose answers are looked at.
#[derive(Debug)]
pub struct Watched<P> {
    policy: P,
    /// How messages call it.
    name: String,
}

impl<P: Policy> Watched<P> {
    /// A policy that messages call `name`.
    pub fn new(policy: P, name: String) -> Watched<P> {
        Watched { policy, name }
    }

    fn end_run(&self, view: &View<'_>, call: &str, what: &str) -> ! {
        broken(&self.name, view.now_ns, call, what).end_run()
    }
}

/// What a policy did in a call at a time.
pub(crate) fn broken(name: &str, now_ns: u64, call: &str, what: &str) -> Broken {
    Broken(format!(
        "{name}: {call} at {} s {what}",
        now_ns as f64 / 1e9
    ))
}

/// Why a queue cannot give up a packet, if it cannot.
fn unfit(view: &View<'_>, queue: usize) -> Option<String> {
    match view.queues.get(queue) {
        None => Some(format!(
            "named queue {queue}; there are 0 .. {}",
            view.queues.len() - 1
        )),
        Some(shown) if shown.backlog_pkts == 0 => {
            Some(format!("named queue {queue}, which is empty"))
        }
        Some(_) => None,
    }
}

impl<P: Policy> Policy for Watched<P> {
    fn pick(&mut self, view: &View<'_>) -> Pick {
        let pick = self.policy.pick(view);
        match pick {
            Pick::Queue(queue) => {
                let blocked = || {
                    let is_blocked = view.queues[queue].rate_bps == 0;
                    is_blocked
                        .then(|| format!("named queue {queue}, which is blocked (rate_bps = 0)"))
                };
                if let Some(what) = unfit(view, queue).or_else(blocked) {
                    self.end_run(view, "pick()", &what);
                }
            }
            Pick::Nothing {
                retry_ns: Some(retry_ns),
            } if retry_ns <= view.now_ns => {
                let what = format!("named no queue and a time to ask again that is not in the future ({retry_ns} ns)");
                self.end_run(view, "pick()", &what);
            }
            Pick::Nothing { retry_ns: None } => {
                let ready = |queue: &Queue| queue.backlog_pkts > 0 && queue.rate_bps > 0;
                if let Some(queue) = view.queues.iter().position(ready) {
                    let what = format!("named no queue and no time to ask again, though a packet of queue {queue} waits");
                    self.end_run(view, "pick()", &what);
                }
            }
            Pick::Nothing { .. } => {}
        }
        pick
    }

    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.policy.enqueued(view, q, bytes);
    }

    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.policy.sent(view, q, bytes);
    }

    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.policy.dropped(view, q, bytes);
    }

    fn rated(&mut self, view: &View<'_>) {
        self.policy.rated(view);
    }

    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        let victim = self.policy.victim(view, q, bytes)?;
        if let Some(what) = unfit(view, victim.queue) {
            self.end_run(view, "victim()", &what);
        }
        Some(victim)
    }

    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        let verdict = self.policy.leaving(view, q, ecn);
        if verdict == Verdict::Mark && !ecn {
            let what =
                format!("marked a packet of queue {q} that cannot carry a mark (ecn is false)");
            self.end_run(view, "leaving()", &what);
        }
        verdict
    }

    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        self.policy.expired(view, q)
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        self.policy.observe(view, q, values);
    }
}
