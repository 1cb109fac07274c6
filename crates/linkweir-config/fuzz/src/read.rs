// SPDX-License-Identifier: BSD-3-Clause
//! Fuzzes the reader of measured series. The first line of an input has the keys of a trace, separated by `;`; the rest is the
//! file. Whatever they are, reading ends with a trace or a fault, and a trace has rising times and values in their ranges.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use linkweir_config::limits;
use linkweir_config::signal::{Capacity, Signal};
use linkweir_config::trace::{parse, parse_delays, Hints};

fuzz_target!(|input: &[u8]| {
    let cut = input.iter().position(|byte| *byte == b'\n');
    let (keys, content) = cut.map_or((&b""[..], input), |at| (&input[..at], &input[at + 1..]));
    let keys = String::from_utf8_lossy(keys).replace(';', "\n");
    let hints = Hints::parse(&keys).unwrap_or_default();
    let _ = parse_delays(content, Path::new("delays.csv"), hints.decimal);
    let Ok(trace) = parse(content, Path::new("trace"), &hints) else {
        return;
    };
    let _ = trace.reading(Path::new("trace"));
    if let Capacity::Rate(Signal::Steps { points, .. }) = &trace.capacity {
        assert_eq!(points[0].0, 0);
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let most = limits::RATE_BPS as f64 * (1.0 + 1e-9);
        assert!(points.iter().all(|point| (0.0..=most).contains(&point.1)));
    }
});
