// SPDX-License-Identifier: BSD-3-Clause
//! The resolver: a process of its own that asks for the addresses of names. The C library's resolver blocks, for 10 s and
//! longer if a name server is silent, and a thread of the gateway that begins before privileges are given up would keep its
//! capabilities. The process gives up all privileges before it reads the first name, and ends with the gateway.
//!
//! Each question has a thread of its own, so that a silent name server delays no other name. A line of a question is a port
//! and a name; that of an answer repeats them, and then has the addresses, or `!` and why there are none.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead, BufReader, Write};
use std::net::ToSocketAddrs;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

use crate::config::HostName;
use crate::linux::privileges;

/// The argument that makes this program a resolver.
pub const NAME: &str = "resolve-for-gateway";
/// Most questions under way, and most of those for names whose last answer took long.
const THREADS: usize = 32;
const SLOW_THREADS: usize = 16;
/// Most addresses of an answer, so that it fits into the line that the gateway takes: a name server may say thousands.
const ADDRESSES: usize = 128;
/// From when on an answer took long.
const SLOW: Duration = Duration::from_secs(2);
/// Room for what the C library's resolver keeps on the stack, bytes.
const STACK_BYTES: usize = 512 << 10;

/// What happens to a resolver.
enum Event {
    Question(HostName),
    /// The line of an answer, and whether it took long.
    Answer(HostName, String, bool),
    /// The gateway has ended.
    End,
}

/// Names that wait for a thread, and those that have one.
#[derive(Default)]
struct Questions {
    waiting: VecDeque<HostName>,
    under_way: BTreeSet<HostName>,
    /// Names whose last answer took long.
    slow: BTreeSet<HostName>,
}

impl Questions {
    /// Takes a question, unless it waits or is under way.
    fn put(&mut self, name: HostName) {
        if !self.under_way.contains(&name) && !self.waiting.contains(&name) {
            self.waiting.push_back(name);
        }
    }

    /// The next question that may begin. Names that take long leave threads to the others.
    fn next(&mut self) -> Option<HostName> {
        if self.under_way.len() >= THREADS {
            return None;
        }
        let slow = self.under_way.intersection(&self.slow).count();
        let may_begin = |name: &HostName| slow < SLOW_THREADS || !self.slow.contains(name);
        let at = self.waiting.iter().position(may_begin)?;
        let name = self.waiting.remove(at)?;
        self.under_way.insert(name.clone());
        Some(name)
    }

    /// A question has its answer.
    fn done(&mut self, name: &HostName, slow: bool) {
        self.under_way.remove(name);
        if slow {
            self.slow.insert(name.clone());
        } else {
            self.slow.remove(name);
        }
    }
}

/// Answers the gateway that started this process, at standard input, until that has ended.
///
/// # Errors
/// When it was not started by a gateway, or the system refuses.
pub fn serve(user: &str) -> io::Result<()> {
    // A service manager ends all processes of a service at once, and the gateway would start another resolver.
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]
        .into_iter()
        .collect();
    signals.thread_block()?;
    privileges::drop_rest(Some(user).filter(|user| !user.is_empty()))?;
    let mut stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let questions = BufReader::new(stream.try_clone()?);
    let (events, happened) = mpsc::channel();
    let read = events.clone();
    thread::spawn(move || {
        let names = questions.lines().map_while(Result::ok);
        for name in names.filter_map(|line| question(&line)) {
            let _ = read.send(Event::Question(name));
        }
        let _ = read.send(Event::End);
    });
    let mut questions = Questions::default();
    for event in happened {
        match event {
            Event::Question(name) => questions.put(name),
            Event::Answer(name, line, slow) => {
                questions.done(&name, slow);
                if stream.write_all(line.as_bytes()).is_err() {
                    return Ok(());
                }
            }
            Event::End => return Ok(()),
        }
        while let Some(name) = questions.next() {
            begin(name, events.clone());
        }
    }
    Ok(())
}

/// Begins a thread that asks for a name.
fn begin(name: HostName, events: Sender<Event>) {
    let asked = name.clone();
    let answers = events.clone();
    let begun = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let begun = Instant::now();
            let found = (asked.host.as_str(), asked.port).to_socket_addrs();
            let found = found.map(|found| found.map(|at| at.to_string()).collect::<Vec<_>>());
            let line = answer(&asked, found.map_err(|error| error.to_string()));
            let _ = answers.send(Event::Answer(asked, line, begun.elapsed() > SLOW));
        });
    if let Err(error) = begun {
        let line = answer(&name, Err(error.to_string()));
        let _ = events.send(Event::Answer(name, line, false));
    }
}

/// The line of an answer.
fn answer(name: &HostName, found: Result<Vec<String>, String>) -> String {
    let HostName { host, port } = name;
    match found {
        Ok(found) => {
            let found = &found[..found.len().min(ADDRESSES)];
            format!("{port} {host} {}\n", found.join(" "))
        }
        Err(why) => format!("{port} {host} ! {}\n", why.replace('\n', " ")),
    }
}

/// The name in a line of a question.
fn question(line: &str) -> Option<HostName> {
    let (port, host) = line.split_once(' ')?;
    Some(HostName {
        host: host.to_string(),
        port: port.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> HostName {
        HostName {
            host: format!("h{number}.example"),
            port: 51820,
        }
    }

    fn begun(questions: &mut Questions) -> usize {
        std::iter::from_fn(|| questions.next()).count()
    }

    #[test]
    fn a_question_is_not_repeated_while_it_waits_or_is_under_way() {
        let mut questions = Questions::default();
        questions.put(name(1));
        questions.put(name(1));
        assert_eq!(questions.next(), Some(name(1)));
        questions.put(name(1));
        assert_eq!(questions.next(), None);
        questions.done(&name(1), false);
        questions.put(name(1));
        assert_eq!(questions.next(), Some(name(1)));
    }

    #[test]
    fn threads_are_bounded_and_slow_names_leave_some_to_others() {
        let mut questions = Questions::default();
        (0..100).for_each(|at| questions.put(name(at)));
        assert_eq!(begun(&mut questions), THREADS, "nothing is known yet");
        for at in 0..THREADS {
            questions.done(&name(at), true);
            questions.put(name(at));
        }
        // The others begin before those that took long, and half of the threads are for them.
        assert_eq!(begun(&mut questions), THREADS);
        assert!((THREADS..2 * THREADS).all(|at| questions.under_way.contains(&name(at))));
        (THREADS..100).for_each(|at| {
            questions.done(&name(at), false);
            questions.waiting.retain(|waits| *waits != name(at));
        });
        assert_eq!(begun(&mut questions), SLOW_THREADS);
        questions.put(name(200));
        assert_eq!(questions.next(), Some(name(200)));
        questions.done(&name(0), false);
        assert_eq!(begun(&mut questions), 1, "another that took long");
    }

    #[test]
    fn lines_name_the_question() {
        let hub = HostName {
            host: "hub.example".to_string(),
            port: 7,
        };
        assert_eq!(question("7 hub.example"), Some(hub.clone()));
        assert_eq!(question("70000 hub.example"), None);
        assert_eq!(question("hub.example"), None);
        let found = vec!["192.0.2.1:7".to_string(), "[::1]:7".to_string()];
        assert_eq!(
            answer(&hub, Ok(found)),
            "7 hub.example 192.0.2.1:7 [::1]:7\n"
        );
        // As many as a name server can say, of the longest kind.
        let many = vec!["[2001:db8:1111:2222:3333:4444:5555:6666]:51820".to_string(); 2000];
        assert!(answer(&hub, Ok(many)).len() < super::super::names::LINE_BYTES);
        let why = Err("no\nsuch name".to_string());
        assert_eq!(answer(&hub, why), "7 hub.example ! no such name\n");
    }
}
