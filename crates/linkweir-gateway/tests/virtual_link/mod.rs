// SPDX-License-Identifier: BSD-3-Clause
//! The queues of a gateway towards its first peer, with the flight recorder, in virtual time.

// A program uses a part of this.
#![allow(dead_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;

use linkweir_config::recording::{frame, peer, settings};
use linkweir_gateway::config::{self, Config};
use linkweir_gateway::run::described::{describe, describe_peer, version_of};
use linkweir_plane::link::{Link, Next};
use linkweir_plane::paths::{Carried, State};
use linkweir_plane::recorder::{Block, Recorder, Tap};

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    Nothing,
    Counts,
    Packets,
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at_ns: u64,
    pub class: usize,
    pub bytes: u32,
    pub tcp: bool,
}

pub struct VirtualLink {
    config: Config,
    link: Link,
    recorder: Rc<RefCell<Recorder>>,
    recorded: Recorded,
    blocks: Vec<Block>,
    now_ns: u64,
    /// Bytes that have been sent.
    pub sent_bytes: usize,
    /// Packets and bytes on the link that each of several paths has sent, by path and class.
    pub sent_over: BTreeMap<(usize, usize), (u64, u64)>,
}

/// Where a packet has its class and its bytes on the link: in no field that is looked at.
const CLASS_AT: usize = 40;
const BYTES_AT: std::ops::Range<usize> = 41..45;

impl VirtualLink {
    /// The link of a configuration.
    pub fn new(text: &str, recorded: Recorded) -> Result<VirtualLink, Box<dyn Error>> {
        let config = config::parse(text, Path::new("ground.toml"))?;
        let mut link = Link::new(0, config.link_setup(&config.peers[0]))?;
        let recorder = Recorder::new(0, recorded == Recorded::Packets);
        let recorder = Rc::new(RefCell::new(recorder));
        if recorded != Recorded::Nothing {
            link.record_to(Some(Tap::new(recorder.clone(), 0, config.classes.len())));
        }
        Ok(VirtualLink {
            config,
            link,
            recorder,
            recorded,
            blocks: Vec::new(),
            now_ns: 0,
            sent_bytes: 0,
            sent_over: BTreeMap::new(),
        })
    }

    /// Serves packets, which are in order of time, until a time.
    pub fn serve(&mut self, arrivals: impl IntoIterator<Item = Arrival>, until_ns: u64) {
        let mut arrivals = arrivals.into_iter().peekable();
        while self.now_ns < until_ns {
            while let Some(arrival) = arrivals.next_if(|one| one.at_ns <= self.now_ns) {
                let mut packet = [0; 60];
                packet[0] = 0x45;
                packet[9] = if arrival.tcp { 6 } else { 17 };
                let Arrival { class, bytes, .. } = arrival;
                packet[CLASS_AT] = class as u8;
                packet[BYTES_AT].copy_from_slice(&bytes.to_le_bytes());
                self.link.arrive(self.now_ns, class, bytes, &packet);
            }
            let arrival_ns = arrivals.peek().map_or(until_ns, |one| one.at_ns);
            match self.link.next(self.now_ns, |_| false) {
                Next::Send(packet, _) => {
                    self.sent_bytes += packet.len();
                    if let Some(over) = self.link.over() {
                        let bytes = u32::from_le_bytes(packet[BYTES_AT].try_into().unwrap());
                        let class = usize::from(packet[CLASS_AT]);
                        let sent = self.sent_over.entry((over.path, class)).or_default();
                        *sent = (sent.0 + 1, sent.1 + u64::from(bytes));
                    }
                }
                Next::At(ns) => self.now_ns = ns.min(arrival_ns),
                Next::Nothing => self.now_ns = arrival_ns,
            }
            let mut recorder = self.recorder.borrow_mut();
            if recorder.due_ns().is_some_and(|ns| ns <= self.now_ns) {
                self.blocks.extend(recorder.take(self.now_ns));
            }
        }
    }

    /// What probes have found of each of several paths, to which the peer has agreed.
    pub fn set_paths(&mut self, states: &[State]) {
        self.link.set_paths(self.now_ns, true, states);
    }

    /// What a path has carried.
    pub fn carried(&self, path: usize) -> Carried {
        self.link.carried(path)
    }

    /// Packets of a class that left, and those that were too old.
    pub fn sent_and_aged_pkts(&mut self, class: usize) -> (u64, u64) {
        let counters = self.link.mux().counters(class);
        (counters.sent_pkts, counters.dropped_age_pkts)
    }

    /// The recording until now, which began at this time.
    pub fn recording(mut self, began_unix_ns: u64) -> Vec<u8> {
        let rest = self
            .recorder
            .borrow_mut()
            .take_all(self.now_ns)
            .collect::<Vec<_>>();
        self.blocks.extend(rest);
        let packets = self.recorded == Recorded::Packets;
        let text = describe(&self.config, false);
        let mut bytes = settings(version_of(&self.config), began_unix_ns, packets, &text);
        for block in &self.blocks {
            for number in &block.peers {
                let text = describe_peer(&self.config.peers[*number as usize], false);
                bytes.extend(peer(*number, &text));
            }
            bytes.extend(frame(&block.body));
        }
        bytes
    }
}
