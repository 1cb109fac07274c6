// SPDX-License-Identifier: BSD-3-Clause
//! A link as a process of a network.

use crate::table::Sink;

use super::super::agenda::Entry;
use super::super::bottleneck::Bottleneck;
use super::super::medium::Medium;
use super::super::Engine;
use super::earliest::NEVER;
use super::inbox::Arriving;

/// A link with its own agenda and inbox.
pub(super) trait Process<'e>: Send {
    fn at(&mut self) -> &mut Bottleneck<'e>;

    fn peek(&self) -> &Bottleneck<'e>;

    /// Schedules the first events.
    fn begin(&mut self);

    /// When its next event is; the end of time if it has none.
    fn first_ns(&self) -> u64;

    /// Runs the next event, or takes the next message.
    fn step(&mut self);

    /// Totals count from now on.
    fn begin_totals(&mut self);

    /// Ends the medium's bin of the series.
    ///
    /// # Errors
    /// The sink's.
    fn end_bin(&mut self, sink: &mut dyn Sink) -> Result<(), String>;

    /// Writes the medium's totals.
    ///
    /// # Errors
    /// The sink's.
    fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), String>;
}

impl<'e, M: Medium + Send> Process<'e> for Engine<'e, M> {
    #[inline]
    fn at(&mut self) -> &mut Bottleneck<'e> {
        &mut self.bottleneck
    }

    fn peek(&self) -> &Bottleneck<'e> {
        &self.bottleneck
    }

    fn begin(&mut self) {
        self.schedule_first();
    }

    #[inline]
    fn first_ns(&self) -> u64 {
        let at = &self.bottleneck;
        let own_ns = at.agenda.first().map_or(NEVER, Entry::time_ns);
        let station = at.station.as_ref();
        station.map_or(own_ns, |station| own_ns.min(station.inbox.first_ns()))
    }

    #[inline]
    fn step(&mut self) {
        let at = &mut self.bottleneck;
        let first = at.agenda.first();
        let own_ns = first.map_or(NEVER, Entry::time_ns);
        let inbox = at.station.as_mut().map(|station| &mut station.inbox);
        if let Some(inbox) = inbox.filter(|inbox| inbox.first_ns() <= own_ns) {
            at.now_ns = inbox.first_ns();
            match inbox.pop() {
                Some(Arriving::Packet(packet)) if at.is_end(packet.flow) => self.deliver(packet),
                Some(Arriving::Packet(packet)) => {
                    at.enqueue(packet);
                    self.medium.start_device(&mut self.bottleneck);
                }
                Some(Arriving::Notice(notice)) => self.learn(&notice),
                None => {}
            }
        } else if let Some(first) = first {
            at.now_ns = first.time_ns();
            let again_ns = self.handle(first.event());
            self.bottleneck.agenda.done(first.event(), again_ns);
        }
        self.bottleneck.tell_ends();
    }

    fn begin_totals(&mut self) {
        let at = &mut self.bottleneck;
        at.recorder.begin_totals(at.now_ns);
        self.medium.begin_totals(at);
        at.mux.reset_counters();
    }

    fn end_bin(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.medium.end_bin(&mut self.bottleneck, sink)
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.medium.finish(&mut self.bottleneck, sink)
    }
}
