// SPDX-License-Identifier: BSD-3-Clause
//! The flight recorder of a running gateway: connects the queues' counts with the thread that writes them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use linkweir_config::recording;
use linkweir_plane::recorder::{Block, Recorder, Tap};

use super::described::{describe, describe_peer, version_of};
use super::station::Station;
use crate::config::{Config, Record};
use crate::linux::recording_files::{self, RecordingFolder, Recordings};
use crate::show::figures::RecordShow;

/// What is recorded, and where.
pub(super) struct FlightRecorder {
    recorder: Rc<RefCell<Recorder>>,
    recordings: Recordings,
}

impl FlightRecorder {
    pub(super) fn show(&self) -> RecordShow {
        let status = &self.recordings.status;
        RecordShow {
            folder: self.recordings.place.folder.display().to_string(),
            written_bytes: status.bytes.load(Ordering::Relaxed),
            lost_blocks: status.lost_blocks.load(Ordering::Relaxed),
            changed_files: status.changed_files.load(Ordering::Relaxed),
            fails: status.fails.load(Ordering::Relaxed),
        }
    }

    /// Gives finished blocks to the thread that writes them.
    fn write(&mut self, blocks: Vec<Block>, config: &Config) {
        let addresses = config
            .record
            .as_ref()
            .is_some_and(|record| record.addresses);
        for block in blocks {
            for number in &block.peers {
                if let Some(peer) = config.peers.get(*number as usize) {
                    let text = describe_peer(peer, addresses);
                    self.recordings.describe(recording::peer(*number, &text));
                }
            }
            self.recordings.write(recording_files::Block {
                bytes: recording::frame(&block.body),
                bins: block.first_bin..block.first_bin + block.bins,
                known: recording_files::Known::new(block.capacities, block.paths),
            });
        }
    }

    /// Begins a section, as the configuration has it now; `before` is what was recorded until now.
    pub(super) fn begin(
        now_ns: u64,
        config: &Config,
        record: &Record,
        stations: &mut [Station],
        before: Option<FlightRecorder>,
    ) -> FlightRecorder {
        let place = RecordingFolder {
            folder: record.folder.clone(),
            device: config.device.clone(),
            size_bytes: record.size_bytes,
        };
        let mut recordings = match before.map(|recording| recording.recordings) {
            Some(recordings) if recordings.place == place => recordings,
            before => {
                if let Some(recordings) = before {
                    recordings.leave();
                }
                Recordings::new(place)
            }
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_ns = since_epoch.map_or(0, |since| since.as_nanos() as u64);
        let text = describe(config, record.addresses);
        let head = recording::settings(version_of(config), unix_ns, record.packets, &text);
        recordings.begin(head, recording::stamp(unix_ns));
        let recorder = Rc::new(RefCell::new(Recorder::new(now_ns, record.packets)));
        let classes = config.classes.len();
        for (at, station) in stations.iter_mut().enumerate() {
            let tap = Tap::new(recorder.clone(), at as u32, classes);
            station.link.record_to(Some(tap));
        }
        FlightRecorder {
            recorder,
            recordings,
        }
    }

    /// Ends the recording.
    pub(super) fn end(self, stations: &mut [Station]) {
        self.recordings.leave();
        for station in stations {
            station.link.record_to(None);
        }
    }

    /// Writes what has been counted, once its time has come or if this is the `end`; returns when more is due, ns.
    pub(super) fn tend(&mut self, now_ns: u64, end: bool, config: &Config) -> Option<u64> {
        let mut recorder = self.recorder.borrow_mut();
        if !end && recorder.due_ns().is_none_or(|ns| now_ns < ns) {
            return recorder.due_ns();
        }
        let blocks: Vec<Block> = if end {
            recorder.take_all(now_ns).collect()
        } else {
            recorder.take(now_ns).collect()
        };
        let due_ns = recorder.due_ns();
        drop(recorder);
        self.write(blocks, config);
        due_ns
    }
}
