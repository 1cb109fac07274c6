// SPDX-License-Identifier: BSD-3-Clause
//! Voice and bulk between two sites, while something else changes the network, the gateway or its surroundings once a
//! second: an event of a random kind, from a seed that is printed (LINKWEIR_SOAK_SEED repeats it).
//!
//! ```text
//!   here: lw0 10.77.0.1 ── gateway ── out 192.0.2.1 ═══ middle ═══ out 198.51.100.2 ── gateway ── lw0 10.77.0.2 :there
//! ```
//!
//! It is judged by four rules:
//! * Each packet of voice arrives, in both directions, unless an event itself took the only way away when it was sent. Before
//!   such an event all voice that was sent has arrived; it notes that time, and until when the way was gone. That ends with the
//!   first packet of voice that arrives in each direction after the event has ended, which must be within [`RECOVERY`]. All
//!   other events forgive nothing.
//! * All frames in the middle are datagrams of the tunnel, or what systems say to each other to use a link (ARP, neighbour
//!   discovery, groups, ICMP errors about datagrams of the tunnel).
//! * In the last third neither gateway has more descriptors, or more memory, than in the first after the start.
//! * At the end both gateways still run and nothing of an event is left in their way.

mod capture;
mod events;
mod sites;
mod traffic;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand_pcg::rand_core::SeedableRng;
use rand_pcg::Pcg64;

use crate::place::environment;
use capture::Capture;
use events::Events;
use sites::Sites;
use traffic::Traffic;

/// How soon voice must arrive again after an event that took the way away.
const RECOVERY: Duration = Duration::from_secs(3);
/// What resident memory may vary by, kB: queues are filled and emptied.
const VARIES_KB: u64 = 2048;

/// Stops the threads of a soak, however it ends.
#[derive(Clone, Default)]
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// When events took the only way away, and what happened so far.
#[derive(Clone)]
pub struct Ledger {
    begun: Instant,
    gaps_ns: Arc<Mutex<Vec<(u64, u64, String)>>>,
    history: Arc<Mutex<Vec<String>>>,
}

impl Ledger {
    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// An event took the only way away from one time to another.
    fn gap(&self, from_ns: u64, until_ns: u64, event: &str) {
        let mut gaps = self.gaps_ns.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.push((from_ns, until_ns, event.to_string()));
    }

    fn note(&self, what: &str) {
        let line = format!("{:8.3} s: {what}", self.begun.elapsed().as_secs_f64());
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.push(line);
    }

    fn history(&self) -> String {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.join("\n")
    }

    /// Whether an event took the way from what was sent then.
    fn excuses(&self, sent_ns: u64) -> bool {
        let gaps = self.gaps_ns.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.iter()
            .any(|(from_ns, until_ns, _)| (from_ns..=until_ns).contains(&&sent_ns))
    }
}

/// Descriptors and resident memory of a gateway and its keeper.
#[derive(Clone, Debug, Default)]
struct Holds {
    /// What each of them is, sorted.
    descriptors: Vec<String>,
    memory_kb: u64,
}

impl Holds {
    /// What it holds at rest: descriptors of a question to the system are open for a moment only.
    fn at_rest(pid: u32) -> Holds {
        let samples = (0..6).map(|_| {
            thread::sleep(Duration::from_millis(20));
            Holds::of(pid)
        });
        let least = samples.min_by_key(|holds| holds.descriptors.len());
        least.expect("six samples")
    }

    fn of(pid: u32) -> Holds {
        let children = format!("/proc/{pid}/task/{pid}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        let keeper = children
            .split_whitespace()
            .filter_map(|child| child.parse::<u32>().ok())
            .filter(|child| {
                let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).contains("keep-for-gateway")
            });
        let mut holds = Holds::default();
        for process in keeper.chain([pid]) {
            let open = fs::read_dir(format!("/proc/{process}/fd"));
            let open = open.into_iter().flatten().flatten();
            let targets = open.filter_map(|one| fs::read_link(one.path()).ok());
            // Without numbers, which are others after a while.
            holds.descriptors.extend(targets.map(|target| {
                let target = target.display().to_string();
                target.split(":[").next().unwrap_or_default().to_string()
            }));
            let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            let line = status.lines().find(|line| line.starts_with("VmRSS:"));
            let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
            holds.memory_kb += kb.unwrap_or_default();
        }
        holds.descriptors.sort_unstable();
        holds
    }

    fn most(self, other: Holds) -> Holds {
        let memory_kb = self.memory_kb.max(other.memory_kb);
        let most = [self, other].into_iter();
        let most = most.max_by_key(|holds| holds.descriptors.len());
        Holds {
            memory_kb,
            ..most.unwrap_or_default()
        }
    }
}

pub fn a_minute_of_events_takes_nothing_from_voice_and_leaks_nothing() {
    soak(environment("LINKWEIR_SOAK_S", 60));
}

/// Runs events for so many seconds.
pub fn soak(seconds: u64) {
    let by_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = environment("LINKWEIR_SOAK_SEED", by_time.as_secs());
    eprintln!("soak of {seconds} s: LINKWEIR_SOAK_SEED={seed}");

    let ledger = Ledger {
        begun: Instant::now(),
        gaps_ns: Arc::default(),
        history: Arc::default(),
    };
    let mut sites = Sites::new();
    let capture = Capture::start(&sites.middle);
    let traffic = Traffic::start(&sites, &ledger);
    traffic.wait_for_voice(ledger.now_ns(), crate::PATIENCE, "at the start");

    // What is done for the first time may need memory for good.
    for at in 0..2 {
        sites.reload_rubbish(at);
    }

    let random = Pcg64::seed_from_u64(seed);
    let mut events = Events::new(random, ledger.clone());
    let end = Instant::now() + Duration::from_secs(seconds);
    let [mut first, mut last] = [(); 2].map(|()| [Holds::default(), Holds::default()]);
    let mut next = Instant::now();
    while next < end {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next = Instant::now() + Duration::from_secs(1);
        events.happen(&mut sites, &traffic);
        let left = end.saturating_duration_since(Instant::now()).as_secs();
        for (at, gateway) in sites.gateways.iter().enumerate() {
            let holds = Holds::at_rest(gateway.pid());
            // A start's own work is over after a few seconds.
            if left >= seconds * 2 / 3 && left + 5 < seconds {
                first[at] = std::mem::take(&mut first[at]).most(holds);
            } else if left < seconds / 3 {
                last[at] = std::mem::take(&mut last[at]).most(holds);
            }
        }
    }
    events.end(&mut sites, &traffic);
    traffic.wait_for_voice(ledger.now_ns(), RECOVERY, "at the end");

    let said = sites.said();
    let about = |what: &str| {
        format!(
            "LINKWEIR_SOAK_SEED={seed}: {what}\n{}\nwhat the gateways said last:\n{said}",
            ledger.history()
        )
    };
    let (_, voice) = traffic.judge(&ledger);
    let seen = capture.end();
    let held = [&first, &last].map(|all| {
        all.each_ref()
            .map(|holds| (holds.descriptors.len(), holds.memory_kb))
    });
    eprintln!("soak: {voice:?}; {seen}; descriptors and kB at first and at last: {held:?}");
    assert!(
        voice.lost.is_empty(),
        "{}",
        about(&format!("voice lost {:?}", voice.lost))
    );
    assert!(
        seen.leaks.is_empty(),
        "{}",
        about(&format!("in the clear: {:?}", seen.leaks))
    );
    assert!(
        seen.datagrams > seconds * 100,
        "{}",
        about("too few datagrams were seen")
    );
    for (first, last) in first.iter().zip(&last) {
        let grew = last.descriptors.len() > first.descriptors.len()
            || last.memory_kb > first.memory_kb + VARIES_KB;
        assert!(
            !grew,
            "{}",
            about(&format!("at first {first:?}, at last {last:?}"))
        );
    }
}
