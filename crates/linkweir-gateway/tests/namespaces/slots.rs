// SPDX-License-Identifier: BSD-3-Clause
//! A link that changes in slots, as that of a Starlink terminal does, between gateways that are not told so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linkweir_config::recording::{Recording, BIN_NS};
use linkweir_gateway::show::figures::ClassShow;
use nix::sys::signal::Signal;
use nix::time::ClockId;

use crate::outage::{overtaken, send_voice_and_bulk, Came, Stop};
use crate::place::{config, set_tos, Emulated, Folder, Gateway, STRICT};
use crate::recorded::read;

/// The levels that take turns: capacity, bit/s, and delay, ms.
const LEVELS: [(u64, u64); 2] = [(12_000_000, 20), (6_000_000, 40)];
/// How many slots there are, when the first ends, and for how long each end interrupts the link.
const SLOTS: u32 = 24;
const FIRST: Duration = Duration::from_secs(2);
const INTERRUPTED: Duration = Duration::from_millis(60);
/// Packets of voice and of bulk, 16 Mbit/s, are sent so often.
const EVERY: [Duration; 2] = [Duration::from_millis(10), Duration::from_micros(600)];

/// What the sender is told of its link, in the table of its peer; and that it shall record.
const ANTICIPATES: &str = "feedback = { anticipate = true }\n[record]\nfolder = \"rec\"\n";

pub fn boundaries_of_slots_are_learned_and_anticipated() {
    are_anticipated(Duration::from_secs(5));
}

/// Those that take more than a minute.
pub mod long {
    use super::*;

    pub fn boundaries_every_15_s_are_learned_and_anticipated() {
        are_anticipated(Duration::from_secs(15));
    }
}

fn are_anticipated(slot: Duration) {
    // A machine with other work may keep gateways and emulator waiting for longer than the times that are looked at, but not
    // each time.
    assert!((0..3).any(|_| is_anticipated(slot)));
}

/// When the slot with this number begins, after the emulator's begin, and its level.
fn begins(number: u32, slot: Duration) -> (Duration, (u64, u64)) {
    let at = FIRST + slot * (number - 1);
    (at, LEVELS[number as usize % 2])
}

/// The link, in the emulator's words.
fn link(slot: Duration) -> String {
    let (bps, delay_ms) = LEVELS[0];
    let mut rates = format!("[\"0s\", \"{bps}bit\"]");
    let mut delays = format!("[\"0s\", \"{delay_ms}ms\"]");
    for number in 1..=SLOTS {
        let (at, (bps, delay_ms)) = begins(number, slot);
        let [stops, goes_on] = [at, at + INTERRUPTED].map(|at| at.as_millis());
        rates += &format!(", [\"{stops}ms\", \"0bit\"], [\"{goes_on}ms\", \"{bps}bit\"]");
        delays += &format!(", [\"{stops}ms\", \"{delay_ms}ms\"]");
    }
    format!("rate = {{ steps = [{rates}] }}\ndelay = {{ steps = [{delays}] }}\nlimit = \"100p\"")
}

fn now(clock: ClockId) -> Duration {
    clock.now().unwrap().into()
}

/// Whether the gateway learns when slots begin, sends less before that and soon as much as the next slot carries, and voice goes
/// first.
fn is_anticipated(slot: Duration) -> bool {
    let emulated = Emulated::new(&link(slot), "rate = \"20Mbit\"\ndelay = \"25ms\"");
    let folder = Folder::new();
    let scheduler = STRICT.replace(
        "name = \"rest\"\nlimit = \"1000p\"",
        "name = \"rest\"\nlimit = \"20p\"",
    );
    let mut gateways = [(&emulated.here, 1), (&emulated.there, 2)].map(|(namespace, last)| {
        let text = config(&folder, last, &scheduler);
        let text = match last {
            1 => text.replace("rate = \"1Gbit\"\n", "") + ANTICIPATES,
            _ => text + "report = true\n",
        };
        let file = folder.write(&format!("{last}.toml"), &text);
        Gateway::start(namespace, &file, &folder.path(&format!("control{last}")))
    });
    let voice = &emulated.here.socket("10.77.0.1:1000");
    set_tos(voice, 46 << 2);
    let bulk = &emulated.here.socket("10.77.0.1:3000");
    let there = &emulated.there.socket("10.77.0.2:2000");
    let begun = Instant::now();
    let stop = &AtomicBool::new(false);
    let (came, show, learned) = thread::scope(|scope| {
        let _stop = Stop(stop);
        scope.spawn(move || send_voice_and_bulk([voice, bulk], EVERY, begun, stop));
        let receiver = scope.spawn(move || {
            let mut came = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                came.push(Came::next(there, begun).unwrap());
            }
            came
        });
        let period = || {
            let show = gateways[0].show();
            show.peers[0].feedback.as_ref().unwrap().period_ns
        };
        // Each slot's end is a chance.
        while period() != Some(slot.as_nanos() as u64) && begun.elapsed() < slot * 12 {
            thread::sleep(Duration::from_millis(50));
        }
        let learned = now(ClockId::CLOCK_REALTIME);
        thread::sleep(slot * 3);
        let show = gateways[0].show();
        stop.store(true, Ordering::Relaxed);
        (receiver.join().unwrap(), show, learned)
    });
    gateways[0].signal(Signal::SIGTERM);
    gateways[0].ended();
    drop(gateways);
    let since_unix = now(ClockId::CLOCK_REALTIME) - now(ClockId::CLOCK_MONOTONIC);
    let report = emulated.report();
    let begin = since_unix + Duration::from_nanos(report["began_ns"].as_u64().unwrap());
    let sent = Sent(read(&folder.path("rec")).unwrap());
    let mut ends = Vec::new();
    for number in 1..SLOTS {
        let (at, (bps, _)) = begins(number, slot);
        let at = begin + at;
        if at < learned + Duration::from_secs(1) || at > learned + slot * 2 {
            continue;
        }
        let ms = Duration::from_millis;
        let before_bps = sent.bps(at - ms(1000), at - ms(100));
        let change_bps = sent.bps(at - ms(20), at + ms(20));
        let after_bps = sent.bps(at + ms(2000), at + slot - ms(500));
        ends.push((change_bps / before_bps, after_bps / bps as f64));
    }
    let is_learned =
        show.peers[0].feedback.as_ref().unwrap().period_ns == Some(slot.as_nanos() as u64);
    let mean_ns = |class: &ClassShow| class.sojourn_sum_ns / class.sent_pkts.max(1);
    let [ef_ns, rest_ns] = [0, 1].map(|class| mean_ns(&show.peers[0].classes[class]));
    let voice_pkts = came.iter().filter(|one| one.is_voice).count();
    let overtaken = overtaken(&came);
    println!(
        "learned: {is_learned}; at each end of a slot sent, of what was sent before, and later, of what the next slot carries: \
         {ends:.2?}; waited on average: voice {ef_ns} ns, bulk {rest_ns} ns; overtaken by bulk: {overtaken} of {voice_pkts}"
    );
    let less = ends.iter().all(|(change, _)| *change < 0.7);
    let used = ends.iter().all(|(_, later)| *later > 0.75);
    let first = 2 * ef_ns < rest_ns && overtaken * 1000 <= voice_pkts;
    is_learned && !ends.is_empty() && less && used && first
}

/// What the gateway recorded.
struct Sent(Recording);

impl Sent {
    /// What it sent in the bins between two times, bit/s on the link; times are those of UNIX.
    fn bps(&self, from: Duration, to: Duration) -> f64 {
        let origin_ns = self.0.sections[0].origin_unix_ns;
        let [from_ns, to_ns] = [from, to].map(|at| {
            let ns = (at.as_nanos() as u64).saturating_sub(origin_ns);
            ns / BIN_NS * BIN_NS
        });
        let names = ["ef", "rest"].map(ToString::to_string);
        let rows = self
            .0
            .sums("other", &names, (from_ns, to_ns), to_ns - from_ns);
        let bytes: u64 = rows.iter().flatten().map(|bin| bin.sent_bytes).sum();
        8e9 * bytes as f64 / (to_ns - from_ns) as f64
    }
}
