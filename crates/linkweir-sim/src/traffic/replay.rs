// SPDX-License-Identifier: BSD-3-Clause
//! Packets at the times at which they were recorded, once or again and again.

use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Replay {
    packets: Arc<[(u64, u32)]>,
    period_ns: Option<u64>,
    /// Start of this round.
    round_ns: u64,
    at: usize,
    stop_ns: u64,
}

impl Replay {
    /// Nothing is created at `stop_ns` or later. A period is longer than the last packet's time.
    pub(crate) fn new(
        packets: &Arc<[(u64, u32)]>,
        period_ns: Option<u64>,
        start_ns: u64,
        stop_ns: u64,
    ) -> Replay {
        Replay {
            packets: packets.clone(),
            period_ns,
            round_ns: start_ns,
            at: 0,
            stop_ns,
        }
    }

    /// When the next packet is created, if ever.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let (after_ns, _) = self.packets.get(self.at)?;
        let at_ns = self.round_ns.saturating_add(*after_ns);
        (at_ns < self.stop_ns).then_some(at_ns)
    }

    /// Creates the packet that is due; returns its bytes.
    pub(crate) fn create(&mut self) -> u32 {
        let bytes = self.packets[self.at].1;
        self.at += 1;
        if let (Some(period_ns), true) = (self.period_ns, self.at == self.packets.len()) {
            self.round_ns = self.round_ns.saturating_add(period_ns);
            self.at = 0;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(period_ns: Option<u64>, stop_ns: u64) -> Vec<(u64, u32)> {
        let packets = [(0, 40), (5, 1500), (5, 60)].into();
        let mut replay = Replay::new(&packets, period_ns, 100, stop_ns);
        std::iter::from_fn(|| Some((replay.next_ns()?, replay.create()))).collect()
    }

    #[test]
    fn packets_come_once_or_in_rounds() {
        let once = [(100, 40), (105, 1500), (105, 60)];
        assert_eq!(times(None, 10_000), once);
        assert_eq!(times(None, 105), once[..1]);
        let twice = [once, [(110, 40), (115, 1500), (115, 60)]].concat();
        assert_eq!(times(Some(10), 120), twice);
    }
}
