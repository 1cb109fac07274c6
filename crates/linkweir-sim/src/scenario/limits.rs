// SPDX-License-Identifier: BSD-3-Clause
//! Sizes beyond which an input is refused, so that no typing error fills the memory or the disk.

pub(super) use linkweir_config::limits::{DELAY_NS, DELAY_S, DURATION_NS, POINTS, RATE_BPS};

/// Most bins of a series.
pub(super) const BINS: u64 = 100_000_000;
/// Most rows of all series together.
pub(super) const SERIES_ROWS: u64 = 10_000_000_000;
/// Most sources, copies counted.
pub(super) const FLOWS: u64 = 100_000;
/// Most bytes of the histograms of delays that flows ask for.
pub(super) const DELAY_BYTES: u64 = 1_000_000_000;
/// Most rows of the table of calls.
pub(super) const VOICE_ROWS: u64 = 10_000_000;
/// Most links of a network.
pub(super) const LINKS: usize = 20_000;
/// Most classes of a link.
pub(super) const CLASSES: usize = linkweir_core::MAX_QUEUES;
/// Most packets all queues together may hold.
pub(super) const QUEUED_PKTS: u64 = 100_000_000;
/// Most bytes one queue may hold.
pub(super) const QUEUED_BYTES: u64 = 1_000_000_000_000;
/// Most packets of 1500 bytes on their way over the link.
pub(super) const IN_FLIGHT_PKTS: f64 = 50e6;
/// Least nominal capacity, bit/s.
pub(super) const NOMINAL_MIN_BPS: u64 = 1000;
/// Longest packet, bytes.
pub(super) const PACKET_BYTES: u32 = linkweir_core::MAX_PACKET_BYTES - 1;
/// Longest packet that is coded as one on a satellite's link, bytes.
pub(super) const CODED_BYTES: u64 = 8_191;
/// Most packets a device pulls at once.
pub(super) const RING_PKTS: u64 = 65_536;
/// Most packets a receiver holds to put them into order.
pub(super) const REORDERED_PKTS: u32 = 1_000_000;
/// Most sizes of a packet mix.
pub(super) const MIX_SIZES: usize = 1000;
/// Most places of satellites that are computed for the delays through a constellation.
pub(super) const SATELLITE_STEPS: u64 = 10_000_000;
/// Most satellites of a list.
pub(super) const SATELLITES: usize = 20_000;
/// Most stations on the ground.
pub(super) const STATIONS: usize = 10_000;
/// Most ways between stations that are computed.
pub(super) const WAYS: u64 = 1_000_000;
/// Most satellites that are visited to compute ways, those of each way counted.
pub(super) const VISITS: u64 = 2_000_000_000;
/// Most links of the ways of all flows, copies counted. Each takes 2.4 kB, and 3.2 kB with few packets. With more than 200 waiting times
/// that differ by 1 % it has a histogram: of 20 to 30 kB for waits of up to a minute, [`linkweir_core::Distribution::MOST_BYTES`] at the very most.
pub(super) const HOPS: u64 = 100_000;
/// What so many links take with few packets and with many whose waits differ widely, GB.
pub(super) const HOPS_GB: (f64, f64) = (0.3, 3.0);
/// Most delays of links that are computed.
pub(super) const LINK_STEPS: u64 = 5_000_000;
/// Most bytes that an application writes at once.
pub(super) const WRITE_BYTES: u64 = 1_000_000_000_000;
/// Most connections of a flow at once.
pub(super) const CONNECTIONS: u64 = 100_000;
/// Most connections of all flows at once.
pub(super) const ALL_CONNECTIONS: u64 = 1 << 18;
/// Most connections for a page.
pub(super) const PAGE_CONNECTIONS: u64 = 100;
/// Most objects of a page.
pub(super) const OBJECTS: u64 = 10_000;
/// Most rates of a video.
pub(super) const RUNGS: usize = 100;
/// Highest rate of a video, bit/s.
pub(super) const RUNG_BPS: f64 = 1e9;
/// Largest scenario file, bytes.
pub(super) const SCENARIO_BYTES: u64 = 64 << 20;
