// SPDX-License-Identifier: BSD-3-Clause
//! Sizes beyond which an input is refused, so that no typing error fills the memory or the disk.

/// Longest run, ns: ten years.
pub const DURATION_NS: u64 = 10 * 365 * 86_400 * 1_000_000_000;
const _: () = assert!(DURATION_NS <= linkweir_core::MAX_NOW_NS);
/// Fastest link and source, bit/s.
pub const RATE_BPS: u64 = 400_000_000_000;
const _: () = assert!(RATE_BPS <= linkweir_core::MAX_RATE_BPS);
/// Longest propagation delay, ns.
pub const DELAY_NS: u64 = 3_600_000_000_000;
/// Longest propagation delay, s.
pub const DELAY_S: f64 = DELAY_NS as f64 / 1e9;
/// Most points of a signal written into the scenario.
pub const POINTS: usize = 1_000_000;
/// Largest trace file, bytes.
pub const TRACE_BYTES: u64 = 512 << 20;
/// Most lines of a trace.
pub const TRACE_LINES: usize = 20_000_000;
/// Largest description of a trace, bytes.
pub const HINTS_BYTES: u64 = 1 << 20;
