// SPDX-License-Identifier: BSD-3-Clause
//! The link: payloads around the simulator's engine.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};

use linkweir_sim::experiment::Experiment;
use linkweir_sim::scenario::{parse_with, Overrides};
use linkweir_sim::{Driven, Happened, Happening, Outside};

use crate::error::{Error, Refused};
use crate::inside::{Carried, Inside};
use crate::packet::{Counts, Dropped, Packet, Reason, Received};

/// A link in one direction, for packets that carry a `P`. See the [crate's page](crate) for how to use it.
pub struct Link<P> {
    engine: Driven,
    names: Vec<String>,
    now_ns: u64,
    packets: Packets<P>,
    is_broken: bool,
}

/// The packets that the link has for its user.
struct Packets<P> {
    /// Of each class.
    inside: Vec<Inside<P>>,
    counts: Vec<Counts>,
    received: VecDeque<Received<P>>,
    dropped: VecDeque<Dropped<P>>,
    keeps_dropped: bool,
}

impl<P> Packets<P> {
    fn note(&mut self, happened: Happened) {
        let class = happened.class as usize;
        let number = happened.number;
        let (inside, counts) = (&mut self.inside[class], &mut self.counts[class]);
        if happened.step == Happening::Left {
            if let Some(kept) = inside.get_mut(number) {
                kept.left_ns = happened.at_ns;
            }
            return;
        }
        let Some(kept) = inside.take(number) else {
            return;
        };
        match happened.step {
            Happening::Left => {}
            Happening::Arrived { marked } => {
                counts.arrived_pkts += 1;
                counts.marked_pkts += u64::from(marked);
                self.received.push_back(Received {
                    payload: kept.payload,
                    class,
                    bytes: kept.bytes,
                    sent_ns: kept.sent_ns,
                    left_ns: kept.left_ns,
                    arrived_ns: happened.at_ns,
                    marked,
                });
            }
            Happening::Gone(reason) => {
                counts.dropped_pkts += 1;
                if self.keeps_dropped {
                    self.dropped.push_back(Dropped {
                        payload: kept.payload,
                        class,
                        bytes: kept.bytes,
                        sent_ns: kept.sent_ns,
                        dropped_ns: happened.at_ns,
                        reason: Reason::named(reason),
                    });
                }
            }
        }
    }

    fn inside_pkts(&self) -> u64 {
        self.counts.iter().map(Counts::inside_pkts).sum()
    }
}

impl<P> Link<P> {
    /// The link of a scenario in TOML. Files that it names are relative to the working directory.
    ///
    /// # Errors
    /// The first thing wrong with it, with its line and key.
    pub fn from_toml(text: &str) -> Result<Link<P>, Error> {
        Link::parse(text, None, Overrides::default())
    }

    /// The same with a trace of the capacity in place of the link's `rate` or `trace`. `name` is that of the trace's file, which
    /// is not read; `content` is.
    ///
    /// # Errors
    /// The first thing wrong with the scenario or the trace.
    pub fn with_trace(text: &str, name: &str, content: &[u8]) -> Result<Link<P>, Error> {
        let overrides = Overrides {
            trace: Some(PathBuf::from(name)),
            trace_content: Some(content.to_vec()),
            ..Overrides::default()
        };
        Link::parse(text, None, overrides)
    }

    /// The same with more in place of the scenario's own keys. Files that the scenario names are in the folder of `file`, which
    /// is not read itself.
    ///
    /// # Errors
    /// The first thing wrong with the scenario.
    pub fn parse(text: &str, file: Option<&Path>, overrides: Overrides) -> Result<Link<P>, Error> {
        let overrides = Overrides {
            driven: true,
            ..overrides
        };
        let scenario = parse_with(text, file, &overrides)?;
        Link::new(&scenario.experiment)
    }

    /// The link of an experiment, as the simulator's parser or a program makes it. Its flows are other traffic on the link.
    ///
    /// # Errors
    /// Values that contradict each other, or that the policy refuses.
    pub fn new(experiment: &Experiment) -> Result<Link<P>, Error> {
        let names: Vec<String> = experiment.classes.iter().map(|c| c.name.clone()).collect();
        Ok(Link {
            engine: Driven::new(experiment)?,
            now_ns: 0,
            is_broken: false,
            packets: Packets {
                inside: names.iter().map(|_| Inside::new()).collect(),
                counts: vec![Counts::default(); names.len()],
                received: VecDeque::new(),
                dropped: VecDeque::new(),
                keeps_dropped: true,
            },
            names,
        })
    }

    /// The index of the class with this name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The names of the classes.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.names
    }

    /// Sends a packet of flow 0 that cannot be marked. Whether it arrives, [`Link::receive`] and [`Link::dropped`] tell.
    ///
    /// # Errors
    /// A packet that no link can carry, or that comes too late. The link stays as it was then, and the payload is lost.
    pub fn send(
        &mut self,
        now_ns: u64,
        class: usize,
        bytes: u32,
        payload: P,
    ) -> Result<(), Refused> {
        self.send_packet(now_ns, Packet::new(class, bytes), payload)
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// The same as for [`Link::send`].
    pub fn send_packet(&mut self, now_ns: u64, packet: Packet, payload: P) -> Result<(), Refused> {
        if self.is_broken {
            return Err(Refused::Broken);
        }
        let at_ns = self.now_ns.max(now_ns);
        let outside = Outside {
            class: u32::try_from(packet.class).map_err(|_| Refused::Class)?,
            flow: packet.flow,
            bytes: packet.bytes,
            ecn_capable: packet.ecn_capable,
            l4s: packet.l4s,
        };
        self.engine.takes(at_ns, outside)?;
        self.now_ns = at_ns;
        let carried = Carried {
            payload,
            bytes: packet.bytes,
            sent_ns: at_ns,
            left_ns: at_ns,
        };
        self.packets.inside[packet.class].put(carried);
        self.packets.counts[packet.class].sent_pkts += 1;
        self.is_broken = true; // stays so if a policy panics
        let Link {
            engine, packets, ..
        } = self;
        let taken = engine.arrive(at_ns, outside, &mut |happened| packets.note(happened));
        self.is_broken = false;
        Ok(taken?)
    }

    /// When to ask again, ns: nothing arrives or is dropped earlier unless another packet is sent. This is the present while a
    /// packet that has arrived was not taken out yet. Dropped packets that were not taken out do not count: after each time, take
    /// them out with [`Link::dropped`]. None: nothing will arrive or be dropped unless another packet is sent. Packets may still
    /// be inside, if the capacity stays 0 or the link's time is over.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        let packets = &self.packets;
        if !packets.received.is_empty() {
            return Some(self.now_ns);
        }
        if self.is_broken {
            return None;
        }
        let next_ns = self.engine.next_ns()?;
        (packets.inside_pkts() > 0).then_some(next_ns.max(self.now_ns))
    }

    /// The next packet that has arrived by this time, if there is one.
    pub fn receive(&mut self, now_ns: u64) -> Option<Received<P>> {
        self.advance(now_ns);
        self.packets.received.pop_front()
    }

    /// The next packet that was dropped or lost by this time, if there is one. The link keeps them in memory until they are taken
    /// out, unless [`Link::forget_dropped`] was called.
    pub fn dropped(&mut self, now_ns: u64) -> Option<Dropped<P>> {
        self.advance(now_ns);
        self.packets.dropped.pop_front()
    }

    /// Whether a policy that the program brings has panicked in an earlier call. The link refuses all packets then and nothing
    /// more happens in it; what had arrived or was dropped before can still be taken out.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Does not keep packets that are dropped or lost, from now on. They are still counted.
    pub fn forget_dropped(&mut self) {
        self.packets.keeps_dropped = false;
        self.packets.dropped.clear();
    }

    /// What became of the packets of a class, up to the latest time that the link was given.
    #[must_use]
    pub fn counts(&self, class: usize) -> Option<Counts> {
        self.packets.counts.get(class).copied()
    }

    /// The time at which the link ends, ns. What has not arrived by then never does.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.engine.end_ns()
    }

    fn advance(&mut self, now_ns: u64) {
        if self.is_broken {
            return;
        }
        self.now_ns = self.now_ns.max(now_ns);
        self.is_broken = true; // stays so if a policy panics
        let Link {
            engine, packets, ..
        } = self;
        engine.advance(self.now_ns, &mut |happened| packets.note(happened));
        self.is_broken = false;
    }
}

impl<P> fmt::Debug for Link<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("classes", &self.names)
            .field("now_ns", &self.now_ns)
            .field("counts", &self.packets.counts)
            .finish_non_exhaustive()
    }
}
