// SPDX-License-Identifier: BSD-3-Clause
//! A beam's carrier: it serves one terminal after another, each at a rate of its own. A packet keeps the rate it began with.

use linkweir_config::signal::Instant;

/// One packet at a time, each at the rate of its terminal.
#[derive(Debug)]
pub(super) struct Carrier {
    /// Terminal of each flow.
    terminals: Box<[usize]>,
    rates_bps: Vec<f64>,
    /// The packet in front: its terminal, rate, beginning and end.
    front: Option<(usize, f64, Instant)>,
    ends: Instant,
    /// Time spent on each terminal up to the end of the last packet, ns.
    airtime_ns: Vec<f64>,
    greatest_bps: f64,
    /// Time up to which what was offered is added up, and the bits.
    offered: (u64, f64),
}

impl Carrier {
    pub(super) fn new(terminals: &[usize]) -> Carrier {
        Carrier {
            terminals: terminals.into(),
            rates_bps: Vec::new(),
            front: None,
            ends: Instant::at(0),
            airtime_ns: Vec::new(),
            greatest_bps: 0.0,
            offered: (0, 0.0),
        }
    }

    pub(super) fn set_rates(&mut self, now_ns: u64, rates_bps: &[u64]) {
        self.offered_bits(now_ns);
        self.rates_bps = rates_bps.iter().map(|bps| *bps as f64).collect();
        self.greatest_bps = self.rates_bps.iter().fold(0.0, |a, b| a.max(*b));
        self.airtime_ns.resize(rates_bps.len(), 0.0);
    }

    /// Begins a packet, at the end of the one before it if that is in this nanosecond; returns when it will have left.
    #[inline(never)] // keeps the path of plain links short, here and below
    pub(super) fn begin(&mut self, now_ns: u64, bytes: u32, flow: u32) -> u64 {
        let terminal = self.terminals[flow as usize];
        let rate_bps = self.rates_bps[terminal];
        debug_assert!(rate_bps > 0.0, "a policy picks no blocked queue");
        let begins = if self.ends.ns == now_ns {
            self.ends
        } else {
            Instant::at(now_ns)
        };
        self.ends = begins.plus(8e9 * f64::from(bytes) / rate_bps);
        self.front = Some((terminal, rate_bps, begins));
        self.ends.ns
    }

    /// The packet in front has left.
    #[inline(never)]
    pub(super) fn end(&mut self) {
        if let Some((terminal, rate_bps, began)) = self.front {
            self.airtime_ns[terminal] += self.ends.since(began);
            if rate_bps > self.greatest_bps {
                self.offered_bits(self.ends.ns);
            }
        }
        self.front = None;
    }

    /// Bits of the packet in front that have been sent.
    pub(super) fn under_way_bits(&self, now_ns: u64) -> f64 {
        self.front.map_or(0.0, |(_, rate_bps, began)| {
            self.spent_ns(began, now_ns) * 1e-9 * rate_bps
        })
    }

    /// Time that the packet in front has had.
    fn spent_ns(&self, began: Instant, now_ns: u64) -> f64 {
        let until_now = Instant::at(now_ns).since(began);
        until_now.min(self.ends.since(began)).max(0.0)
    }

    /// Bits that the carrier could have sent since the start, had it always served the terminal with the greatest rate;
    /// where the packet in front began with a greater one that is gone, with that.
    pub(super) fn offered_bits(&mut self, now_ns: u64) -> f64 {
        let (since_ns, bits) = &mut self.offered;
        *bits += self.greatest_bps * (now_ns - *since_ns) as f64 * 1e-9;
        if let Some((_, rate_bps, _)) = self.front {
            if rate_bps > self.greatest_bps {
                let since = Instant::at(*since_ns);
                let longer_ns = Instant::at(now_ns).since(since).min(self.ends.since(since));
                *bits += (rate_bps - self.greatest_bps) * longer_ns.max(0.0) * 1e-9;
            }
        }
        *since_ns = now_ns;
        *bits
    }

    /// Time spent on each terminal since the start, ns.
    pub(super) fn airtimes_ns(&self, now_ns: u64) -> Vec<f64> {
        let mut all = self.airtime_ns.clone();
        if let Some((terminal, _, began)) = self.front {
            all[terminal] += self.spent_ns(began, now_ns);
        }
        all
    }
}
