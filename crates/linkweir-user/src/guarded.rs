// SPDX-License-Identifier: BSD-3-Clause
//! A user's C file in a process of its own, asked over a socket. `harness/guarded.c` is the other end.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linkweir_core::{
    in_range, refused, Broken, Declaration, Fault, Maker, Param, Pick, Policy, Queue, Stat, Unit,
    Verdict, Victim, View,
};

use crate::build::{Kind, Source};
use crate::watched::{broken, Watched};

/// How long we wait for an answer. The process itself ends a call after a second of processor time, or 20 s of real time, and
/// names it. Events may wait before a question, so this is longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Events wait for the next question until there are this many bytes of them.
const MOST_UNSENT: usize = 1 << 15;

/// Most bytes behind an answer: a table of parameters has the most.
const MOST_ANSWERED: usize = 1 << 20;

const NONE: u32 = u32::MAX;
const NEVER: u64 = u64::MAX;
const FROM_HEAD: u32 = 1 << 31;

/// `enum op`
#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Describe,
    Check,
    Init,
    Pick,
    Victim,
    Leaving,
    Expired,
    Observe,
    Enqueued,
    Sent,
    Dropped,
    Rated,
}

/// Calls as messages name them, in the order of [`Op`].
const CALLS: [&str; 12] = [
    "the table",
    "check()",
    "init()",
    "pick()",
    "victim()",
    "leaving()",
    "expired()",
    "observe()",
    "enqueued()",
    "sent()",
    "dropped()",
    "rated()",
];

/// What the table of a policy says that is there or not.
#[derive(Clone, Copy, Debug)]
struct Has {
    victim: bool,
    leaving: bool,
    expired: bool,
    check: bool,
}

/// Starts processes of a compiled policy.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// The program, of which only this descriptor is left: its file is removed.
    program: File,
    shown: String,
    declaration: &'static Declaration,
    has: Has,
}

/// Compiles it and asks it for its table.
pub(crate) fn make(source: &Source) -> Result<(Guarded, String), String> {
    let built = source.build(Kind::Program)?;
    let open = |error: io::Error| format!("{}: {error}", built.file.display());
    let program = File::open(&built.file).map_err(open)?;
    let shown = source.shown();
    let mut process = Process::start(&program, shown.clone())?;
    let answer = process.ask(Op::Describe, &EMPTY, Details::default(), &[]);
    let answer = answer.map_err(|Broken(what)| what)?;
    let name: &'static str = Box::leak(source.name.clone().into_boxed_str());
    let mut texts = Texts(Box::leak(answer.more.into_boxed_slice()).split(|byte| *byte == 0));
    let (declaration, has) = texts
        .table(name)
        .ok_or_else(|| format!("{shown}: its table has texts that are no UTF-8"))?;
    let maker = Guarded {
        program,
        shown,
        declaration: Box::leak(Box::new(declaration)),
        has,
    };
    Ok((maker, built.warnings.clone()))
}

const EMPTY: View<'_> = View {
    now_ns: 0,
    link_bps: 0,
    queues: &[],
};

impl Maker for Guarded {
    fn declaration(&self) -> &'static Declaration {
        self.declaration
    }

    fn check(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        in_range(self.declaration, view, params, qparams)?;
        if !self.has.check {
            return Ok(());
        }
        let values = [params, qparams].concat();
        let fault = |what: &str, param: Option<&str>, queue| {
            refused(self.declaration, Some(what), param, queue, params, qparams)
        };
        let answer = Process::start(&self.program, self.shown.clone())
            .and_then(|mut process| {
                let answer = process.ask(Op::Check, view, Details::default(), &values);
                answer.map_err(|Broken(what)| what)
            })
            .map_err(|what| fault(&what, None, None))?;
        if answer.value != 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&answer.more);
        let (what, param) = text.split_once('\0').unwrap_or((&text, ""));
        let queue = usize::try_from(answer.retry_ns).ok();
        let queue = queue.filter(|queue| *queue < view.queues.len());
        Err(fault(what, Some(param), queue))
    }

    fn start(
        &self,
        view: &View<'_>,
        params: &[u64],
        qparams: &[u64],
    ) -> Result<Box<dyn Policy + Send>, Fault> {
        let values = [params, qparams].concat();
        let process = Process::start(&self.program, self.shown.clone()).and_then(|mut process| {
            let answer = process.ask(Op::Init, view, Details::default(), &values);
            answer.map(|_| process).map_err(|Broken(what)| what)
        });
        let process = process
            .map_err(|what| refused(self.declaration, Some(&what), None, None, params, qparams))?;
        let policy = Remote {
            process: RefCell::new(process),
            has: self.has,
        };
        Ok(Box::new(Watched::new(policy, self.shown.clone())))
    }
}

/// A running process of a policy.
struct Process {
    child: Child,
    socket: UnixStream,
    name: String,
    /// Requests that are not sent yet.
    unsent: Vec<u8>,
    /// It could not be reached: nothing more is sent, as it may have got half of a request.
    lost: bool,
    /// The queues as the process knows them.
    known: Vec<Queue>,
}

/// What a call is about besides the view.
#[derive(Clone, Copy, Default)]
struct Details {
    q: usize,
    bytes: u32,
    ecn: bool,
}

/// `struct answer`, and what followed.
struct Answer {
    value: u32,
    retry_ns: u64,
    more: Vec<u8>,
}

impl Process {
    fn start(program: &File, name: String) -> Result<Process, String> {
        let failed = |error: io::Error| {
            format!("{name}: cannot be started: {error}; if TMPDIR lies where programs may not run, set it elsewhere")
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        ours.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), program.as_raw_fd());
        let child = Command::new(path)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .env_clear()
            .spawn()
            .map_err(failed)?;
        Ok(Process {
            child,
            socket: ours,
            name,
            unsent: Vec::new(),
            lost: false,
            known: Vec::new(),
        })
    }

    /// Puts a request behind those that wait to be sent.
    fn request(&mut self, op: Op, view: &View<'_>, details: Details, values: &[u64]) {
        if self.known.len() != view.queues.len() {
            self.known = vec![Queue::default(); view.queues.len()];
        }
        let changed: Vec<(usize, Queue)> = self
            .known
            .iter()
            .zip(view.queues)
            .enumerate()
            .filter(|(_, (known, now))| known != now)
            .map(|(at, (_, now))| (at, *now))
            .collect();
        let out = &mut self.unsent;
        for word in [
            op as u32,
            details.q as u32,
            details.bytes,
            u32::from(details.ecn),
        ] {
            out.extend(word.to_ne_bytes());
        }
        out.extend(view.now_ns.to_ne_bytes());
        out.extend(view.link_bps.to_ne_bytes());
        for count in [view.queues.len(), changed.len(), values.len(), 0] {
            out.extend((count as u32).to_ne_bytes());
        }
        for (at, queue) in changed {
            out.extend((at as u32).to_ne_bytes());
            out.extend(0_u32.to_ne_bytes());
            out.extend(queue.backlog_bytes.to_ne_bytes());
            out.extend(queue.head_arrival_ns.to_ne_bytes());
            out.extend(queue.rate_bps.to_ne_bytes());
            out.extend(queue.backlog_pkts.to_ne_bytes());
            out.extend(queue.head_bytes.to_ne_bytes());
            self.known[at] = queue;
        }
        for value in values {
            out.extend(value.to_ne_bytes());
        }
    }

    fn send(&mut self) -> io::Result<()> {
        if self.lost {
            self.unsent.clear();
            return Ok(());
        }
        let sent = self.socket.write_all(&self.unsent);
        self.lost = sent.is_err();
        self.unsent.clear();
        sent
    }

    fn receive(&mut self) -> io::Result<(u32, u32, Answer)> {
        let mut head = [0; 24];
        self.socket.read_exact(&mut head)?;
        let word =
            |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let mut long = [0; 8];
        long.copy_from_slice(&head[8..16]);
        let length = word(16) as usize;
        if length > MOST_ANSWERED {
            // The policy wrote to the socket itself.
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "an answer that is none",
            ));
        }
        let mut more = vec![0; length];
        self.socket.read_exact(&mut more)?;
        let answer = Answer {
            value: word(4),
            retry_ns: u64::from_ne_bytes(long),
            more,
        };
        Ok((word(0), word(20), answer))
    }

    /// Asks a question, which all events so far precede.
    fn ask(
        &mut self,
        op: Op,
        view: &View<'_>,
        details: Details,
        values: &[u64],
    ) -> Result<Answer, Broken> {
        self.request(op, view, details, values);
        // A process that ended could not read this; what it said before it ended can still be read.
        let sent = self.send();
        let call = CALLS[op as usize];
        match self.receive() {
            Ok((0, _, answer)) => Ok(answer),
            Ok((_, q, fault)) => {
                let what = String::from_utf8_lossy(&fault.more).into_owned();
                let call = CALLS.get(fault.value as usize).copied().unwrap_or(call);
                if fault.value == Op::Describe as u32 {
                    return Err(Broken(format!("{}: {what}", self.name)));
                }
                let about = if fault.value < Op::Victim as u32 || fault.value == Op::Rated as u32 {
                    call.to_owned()
                } else {
                    format!("{call} of queue {q}")
                };
                Err(broken(&self.name, fault.retry_ns, &about, &what))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let what = format!("did not return within {} s", PATIENCE.as_secs());
                Err(broken(&self.name, view.now_ns, call, &what))
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                let what = format!("or an event before it wrote over our connection ({error})");
                Err(broken(&self.name, view.now_ns, call, &what))
            }
            Err(error) => {
                let error = sent.err().unwrap_or(error);
                let how = self
                    .child
                    .wait()
                    .map_or(error.to_string(), |how| how.to_string());
                let what = format!("or an event before it ended the process ({how})");
                Err(broken(&self.name, view.now_ns, call, &what))
            }
        }
    }

    fn tell(&mut self, op: Op, view: &View<'_>, details: Details) {
        self.request(op, view, details, &[]);
        if self.unsent.len() > MOST_UNSENT {
            // If it ended, the next question finds out why.
            let _ = self.send();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may hang in the user's code. Neither can fail in a way that matters: it has ended, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A policy in another process.
struct Remote {
    process: RefCell<Process>,
    has: Has,
}

impl Remote {
    fn ask(&self, op: Op, view: &View<'_>, details: Details) -> Answer {
        let answer = self.process.borrow_mut().ask(op, view, details, &[]);
        answer.unwrap_or_else(|broken| broken.end_run())
    }

    fn tell(&mut self, op: Op, view: &View<'_>, q: usize, bytes: u32) {
        let details = Details {
            q,
            bytes,
            ecn: false,
        };
        self.process.get_mut().tell(op, view, details);
    }
}

impl Policy for Remote {
    fn pick(&mut self, view: &View<'_>) -> Pick {
        let answer = self.ask(Op::Pick, view, Details::default());
        if answer.value == NONE {
            return Pick::Nothing {
                retry_ns: (answer.retry_ns != NEVER).then_some(answer.retry_ns),
            };
        }
        Pick::Queue(answer.value as usize)
    }

    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.tell(Op::Enqueued, view, q, bytes);
    }

    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.tell(Op::Sent, view, q, bytes);
    }

    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.tell(Op::Dropped, view, q, bytes);
    }

    fn rated(&mut self, view: &View<'_>) {
        self.tell(Op::Rated, view, 0, 0);
    }

    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        if !self.has.victim {
            return None;
        }
        let ecn = false;
        let answer = self.ask(Op::Victim, view, Details { q, bytes, ecn }).value;
        (answer != NONE).then_some(Victim {
            queue: (answer & !FROM_HEAD) as usize,
            head: answer & FROM_HEAD != 0,
        })
    }

    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        if !self.has.leaving {
            return Verdict::Pass;
        }
        let bytes = 0;
        match self.ask(Op::Leaving, view, Details { q, bytes, ecn }).value {
            0 => Verdict::Pass,
            1 => Verdict::Mark,
            2 => Verdict::Drop,
            other => {
                let process = self.process.get_mut();
                let what = format!("gave the verdict {other}, which is none");
                broken(&process.name, view.now_ns, "leaving()", &what).end_run()
            }
        }
    }

    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        let details = Details {
            q,
            ..Details::default()
        };
        self.has.expired && self.ask(Op::Expired, view, details).value != 0
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        if values.is_empty() {
            return;
        }
        let details = Details {
            q,
            ..Details::default()
        };
        let answer = self.ask(Op::Observe, view, details);
        for (value, bytes) in values.iter_mut().zip(answer.more.chunks_exact(8)) {
            let mut long = [0; 8];
            long.copy_from_slice(bytes);
            *value = i64::from_ne_bytes(long);
        }
    }
}

/// The texts of a table, in the order in which `describe` of `harness/guarded.c` writes them.
struct Texts<I>(I);

impl<I: Iterator<Item = &'static [u8]>> Texts<I> {
    fn text(&mut self) -> Option<&'static str> {
        std::str::from_utf8(self.0.next()?).ok()
    }

    fn number<N: std::str::FromStr>(&mut self) -> Option<N> {
        self.text()?.parse().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        self.number::<u8>().map(|flag| flag != 0)
    }

    fn table(&mut self, name: &'static str) -> Option<(Declaration, Has)> {
        let help = self.text()?;
        let shared_limit = self.text()?;
        let max_queues = self.number()?;
        let traits: u32 = self.number()?;
        let has = Has {
            victim: self.flag()?,
            leaving: self.flag()?,
            expired: self.flag()?,
            check: self.flag()?,
        };
        let params = self.params()?;
        let qparams = self.params()?;
        let count: usize = self.number()?;
        let stats = (0..count).map(|_| {
            Some(Stat {
                name: self.text()?,
                help: self.text()?,
                unit: self.unit()?,
            })
        });
        let declaration = Declaration {
            name,
            help,
            shared_limit: params.iter().position(|param| param.name == shared_limit),
            stats: stats.collect::<Option<_>>()?,
            params,
            qparams,
            max_queues,
            ignores_rates: traits & 1 != 0,
            sorted_by_ecn: traits & 2 != 0,
        };
        Some((declaration, has))
    }

    fn params(&mut self) -> Option<Vec<Param>> {
        let count: usize = self.number()?;
        let params = (0..count).map(|_| {
            let (name, help, choices) = (self.text()?, self.text()?, self.text()?);
            let (min, max, default) = (self.number()?, self.number()?, self.number()?);
            let unit = self.unit()?;
            let flags: u32 = self.number()?;
            Some(Param {
                name,
                help,
                unit,
                choices: choices.split('|').filter(|word| !word.is_empty()).collect(),
                min,
                max,
                default,
                at_init: flags & 1 != 0,
            })
        });
        params.collect()
    }

    fn unit(&mut self) -> Option<Unit> {
        Unit::from_number(self.number()?)
    }
}
