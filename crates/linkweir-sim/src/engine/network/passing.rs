// SPDX-License-Identifier: BSD-3-Clause
//! Packets that leave a link of a network, and links that go.

use linkweir_core::Step;

use crate::network::OnBreak;

use super::super::bottleneck::Bottleneck;
use super::super::event;
use super::super::packet::Packet;

impl Bottleneck {
    /// In a network: sends a packet on to the next link of its way or to its end, which it reaches at `out_ns`.
    #[inline(never)] // a link alone has none of it in its way
    pub(in super::super) fn pass_on(&mut self, out_ns: u64, mut packet: Packet) {
        let Some(station) = &mut self.station else {
            return;
        };
        let out_ns = out_ns.max(station.last_out_ns);
        if station.breaks(self.now_ns, out_ns) {
            return self.recorder.lost(self.now_ns, &packet);
        }
        station.last_out_ns = out_ns;
        let Some(hop) = &station.hops[packet.flow as usize] else {
            return;
        };
        let next = hop.next;
        packet.flow = next.entry;
        if next.place == station.place {
            if let Some(first_ns) = self.propagation.push(out_ns, packet) {
                self.agenda.push(first_ns, event::ARRIVAL);
            }
        } else {
            station.mail.messages.push(next.message(out_ns, packet));
        }
    }

    /// In a network: whether the link does not exist now.
    #[inline]
    pub(in super::super) fn is_absent(&self) -> bool {
        let station = self.station.as_ref();
        station.is_some_and(|station| station.is_absent(self.now_ns))
    }

    /// In a network: whether a packet that leaves the device now is lost by `out_ns`, as the link goes.
    #[inline]
    pub(in super::super) fn breaks(&self, out_ns: u64) -> bool {
        let station = self.station.as_ref();
        station.is_some_and(|station| station.breaks(self.now_ns, out_ns))
    }

    /// Whether packets that wait or are being sent when the link goes are lost.
    pub(super) fn loses_all(&self) -> bool {
        let station = self.station.as_ref();
        station.is_some_and(|station| station.on_break == OnBreak::Lose)
    }

    /// The link has gone, and everything that waits or is being sent is lost.
    pub(super) fn lose_all(&mut self) {
        let now_ns = self.now_ns;
        for packet in self.device.abort(now_ns) {
            self.recorder.lost(now_ns, &packet);
        }
        self.agenda.cancel(event::SENT);
        for class in 0..self.mux.nclasses() {
            while let Some(Step::Dropped { item: packet, .. }) = self.mux.drop_head(now_ns, class) {
                self.recorder.lost_waiting(now_ns, &packet);
                self.lacking.left(&mut self.flows, packet.flow);
            }
        }
    }

    /// Whether an entry is that of a flow's ends.
    #[inline]
    pub(super) fn is_end(&self, entry: u32) -> bool {
        self.station
            .as_ref()
            .is_some_and(|station| station.is_end(entry))
    }

    /// Sends notices of the packets that were dropped or lost.
    #[inline]
    pub(super) fn tell_ends(&mut self) {
        let gone = self.recorder.gone();
        if gone.is_empty() {
            return;
        }
        if let Some(station) = &mut self.station {
            for packet in gone.drain(..) {
                station.tell(self.now_ns, packet);
            }
        }
    }
}
