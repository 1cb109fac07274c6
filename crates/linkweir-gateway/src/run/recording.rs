// SPDX-License-Identifier: BSD-3-Clause
//! Begins, tends and ends the recording of a running gateway.

use super::flight_recorder::FlightRecorder;
use super::Gateway;

impl Gateway {
    /// Begins a section of the recording, as the configuration has it now, or ends it.
    pub(super) fn start_recording(&mut self, now_ns: u64) {
        self.write_recording(now_ns, true);
        let stations = &mut self.peers.stations;
        let before = self.recording.take();
        match (&self.config.record, before) {
            (Some(record), before) => {
                let begun = FlightRecorder::begin(now_ns, &self.config, record, stations, before);
                self.recording = Some(begun);
            }
            (None, Some(before)) => before.end(stations),
            (None, None) => {}
        }
    }

    /// Writes what has been counted, once its time has come or if this is the `end`; returns when more is due, ns.
    pub(super) fn write_recording(&mut self, now_ns: u64, end: bool) -> Option<u64> {
        let recording = self.recording.as_mut()?;
        recording.tend(now_ns, end, &self.config)
    }
}
