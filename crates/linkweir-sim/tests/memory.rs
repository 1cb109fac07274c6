// SPDX-License-Identifier: BSD-3-Clause
//! Memory does not grow with simulated time: a run a hundred times as long stays within 1.5 times the peak.
//!
//! The kernel's own figure of this process's peak is read, so everything counts: queues, metrics, result tables on their
//! way to the sink. This file holds one test alone, since tests of one file share a process.
#![cfg(target_os = "linux")]

use std::path::Path;

use linkweir_sim::table::{Sink, Table};
use linkweir_sim::{run, scenario};

/// A slow link that every kind of state grows on: TCP with losses, connections that come and go, a policy with levels to
/// trace, ten bins a second, distributions of a flow's delays, play-out buffers, and the log of packets.
const SCENARIO: &str = r#"
duration = "100s"
interval = "100ms"
log = "packets"
[link]
rate = { mean = "200kbit", amplitude = 0.3, period = "15s" }
delay = "50ms"
loss = 0.001
follow = true
[scheduler]
policy = "pss"
[[class]]
name = "ef"
level = 0
limit = "50p"
[[class]]
name = "af"
level = 1
low_level = 3
rate = "60kbit"
limit = "50p"
[[class]]
name = "cs0"
level = 2
limit = "50p"
[[flow]]
class = "ef"
kind = "poisson"
delays = true
playout = ["60ms", "adaptive"]
rate = "40kbit"
packet = "500B"
[[flow]]
class = "af"
kind = "tcp"
[[flow]]
class = "cs0"
kind = "tcp"
profile = "ns2"
[[flow]]
class = "ef"
kind = "transfers"
size = "5kB"
arrivals = { every = "1s", process = "periodic" }
"#;

/// Looks at the tables and lets go of them, as a sink that writes files does; or keeps them.
#[derive(Default)]
struct Rows {
    seen: usize,
    keep: bool,
    kept: Vec<Table>,
}

impl Sink for Rows {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        // Distributions have as many rows after 100 s as after 10,000 s.
        if table.name != "delays" {
            self.seen += table.columns[0].1.len();
        }
        if self.keep {
            self.kept.push(table);
        }
        Ok(())
    }
}

/// Most memory this process has had so far, KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Rows of the result and the peak after a run of this length.
fn peak_after(duration: &str, keep: bool) -> (usize, u64) {
    let text = SCENARIO.replace("100s", duration);
    let scenario = scenario::parse(&text, Path::new("memory.toml")).unwrap();
    let mut rows = Rows {
        keep,
        ..Rows::default()
    };
    let outcome = run(&scenario.experiment, &mut rows).unwrap();
    assert!(outcome.complete);
    (rows.seen, peak_kib())
}

#[test]
fn a_hundred_times_the_time_takes_no_more_memory() {
    let (rows, short_kib) = peak_after("100s", false);
    let (long_rows, long_kib) = peak_after("10000s", false);
    assert!(
        long_rows > 99 * rows,
        "the long run records as densely: {rows} and {long_rows} rows"
    );
    assert!(
        2 * long_kib <= 3 * short_kib,
        "{short_kib} KiB after 100 s, {long_kib} KiB after 10,000 s"
    );

    // The bound is one that a run which keeps its series breaks.
    let (_, kept_kib) = peak_after("10000s", true);
    assert!(
        2 * kept_kib > 3 * short_kib,
        "{short_kib} KiB after 100 s, {kept_kib} KiB with every row kept"
    );
}
