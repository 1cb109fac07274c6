// SPDX-License-Identifier: BSD-3-Clause
//! A link as a process of a network.

use linkweir_core::{Distribution, Stat};

use crate::metrics::Recorder;
use crate::table::Sink;

use super::super::agenda::Entry;
use super::super::bottleneck::Bottleneck;
use super::super::flow::Kind;
use super::super::medium::Medium;
use super::super::station::{Arriving, Inbox, Mail, Station};
use super::super::transport;
use super::super::Engine;
use super::earliest::NEVER;

/// A link with its own order of events.
pub(super) trait Process: Send {
    /// When its next event is; the end of time if it has none.
    fn first_ns(&self) -> u64;

    /// Runs the next event or takes the next message, and goes on up to a time; returns how many it were, and when the next one
    /// is. What it sends goes into `mail`, which is empty before.
    fn run(&mut self, until_ns: u64, mail: &mut Mail) -> (u64, u64);

    fn inbox(&mut self) -> &mut Inbox;

    // What tables need.

    /// Brings what is measured up to a time before which all events have been run.
    fn settle(&mut self, now_ns: u64);

    /// The run ends: takes messages about packets of the flows whose ends are here that have not arrived yet, and asks viewers.
    fn end(&mut self) {}

    fn recorder(&mut self) -> &mut Recorder;

    /// What each class has sent since the start.
    fn sent_bytes(&self) -> Vec<u64>;

    /// Packets that the scheduler handed to the link.
    fn packets(&self) -> u64;

    /// Bits offered and carried since this was last asked.
    fn measure(&mut self, now_ns: u64) -> (f64, f64);

    /// The statistics of its policy, and their values for each class.
    fn stats(&self) -> &'static [Stat];

    fn levels(&mut self, each: &mut dyn FnMut(usize, &[i64])) {
        let _ = each;
    }

    /// Totals count from now on.
    fn begin_totals(&mut self);

    /// The recorder, and the waiting times of each class.
    fn totals(&mut self) -> (&mut Recorder, Vec<&Distribution>);

    /// Ends the medium's bin of the series.
    ///
    /// # Errors
    /// The sink's.
    fn end_bin(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        let _ = sink;
        Ok(())
    }

    /// Writes the medium's totals.
    ///
    /// # Errors
    /// The sink's.
    fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        let _ = sink;
        Ok(())
    }
}

impl<M: Medium + Send> Process for Engine<M> {
    #[inline]
    fn first_ns(&self) -> u64 {
        let at = &self.bottleneck;
        let own_ns = at.agenda.first().map_or(NEVER, Entry::time_ns);
        let station = at.station.as_ref();
        station.map_or(own_ns, |station| own_ns.min(station.inbox.first_ns()))
    }

    fn run(&mut self, until_ns: u64, mail: &mut Mail) -> (u64, u64) {
        std::mem::swap(mail, &mut self.station().mail);
        let mut events = 0;
        loop {
            self.step();
            events += 1;
            let next_ns = self.first_ns();
            if next_ns >= until_ns {
                std::mem::swap(mail, &mut self.station().mail);
                return (events, next_ns);
            }
        }
    }

    fn inbox(&mut self) -> &mut Inbox {
        &mut self.station().inbox
    }

    fn settle(&mut self, now_ns: u64) {
        let at = &mut self.bottleneck;
        at.now_ns = now_ns;
        transport::record(at);
    }

    fn end(&mut self) {
        while let Some(notice) = self.station().inbox.pop_notice() {
            self.learn(&notice);
        }
        let at = &mut self.bottleneck;
        for (index, flow) in at.flows.iter_mut().enumerate() {
            if let Kind::Application(application) = &mut flow.kind {
                if let Some(seen) = application.playback(at.now_ns) {
                    at.recorder.played(index, &seen);
                }
            }
        }
    }

    fn recorder(&mut self) -> &mut Recorder {
        &mut self.bottleneck.recorder
    }

    fn sent_bytes(&self) -> Vec<u64> {
        self.bottleneck.recorder.sent_bytes().collect()
    }

    fn packets(&self) -> u64 {
        self.bottleneck.packets
    }

    fn measure(&mut self, now_ns: u64) -> (f64, f64) {
        self.bottleneck.now_ns = now_ns;
        self.medium.measure(&mut self.bottleneck)
    }

    fn stats(&self) -> &'static [Stat] {
        self.bottleneck.mux.policy().stats()
    }

    fn levels(&mut self, each: &mut dyn FnMut(usize, &[i64])) {
        let at = &mut self.bottleneck;
        let mut values = vec![0; at.mux.policy().stats().len()];
        for class in 0..at.mux.nclasses() {
            at.mux.observe(at.now_ns, class, &mut values);
            each(class, &values);
        }
    }

    fn begin_totals(&mut self) {
        let at = &mut self.bottleneck;
        at.recorder.begin_totals(at.now_ns);
        self.medium.begin_totals(at);
        at.mux.reset_counters();
    }

    fn totals(&mut self) -> (&mut Recorder, Vec<&Distribution>) {
        let Bottleneck { recorder, mux, .. } = &mut self.bottleneck;
        let waits = (0..mux.nclasses()).map(|class| &mux.counters(class).sojourn_ns);
        (recorder, waits.collect())
    }

    fn end_bin(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.medium.end_bin(&mut self.bottleneck, sink)
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.medium.finish(&mut self.bottleneck, sink)
    }
}

impl<M: Medium> Engine<M> {
    fn station(&mut self) -> &mut Station {
        let station = self.bottleneck.station.as_mut();
        station.expect("a link of a network has one")
    }

    /// Runs the next event, or takes the next message.
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
                Some(Arriving::Packet(packet)) if self.admit(&packet) => {
                    self.bottleneck.enqueue(packet);
                    self.medium.start_device(&mut self.bottleneck);
                }
                Some(Arriving::Notice(notice)) => self.learn(&notice),
                Some(Arriving::Packet(_)) | None => {}
            }
        } else if let Some(first) = first {
            at.now_ns = first.time_ns();
            let again_ns = self.handle(first.event());
            self.bottleneck.agenda.done(first.event(), again_ns);
        }
        self.bottleneck.tell_ends();
    }
}
