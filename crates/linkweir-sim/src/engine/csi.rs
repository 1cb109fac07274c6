// SPDX-License-Identifier: BSD-3-Clause
//! What a scheduler knows of the channels behind a satellite if it knows them at a fixed age.
//!
//! Whenever the device asks for a packet, the scheduler knows each class's channel as it was `age` before the first attempt
//! at the head of that class would be received if it were sent now. That time of reception is the end of the transmission
//! plus the propagation delay at that end, and not before what is in the air already. An empty class counts with the last
//! head it had.

use linkweir_core::Queue;

use crate::satellite::fading::Fading;

/// Looks ahead for every class, and remembers what they saw.
#[derive(Debug)]
pub(super) struct Csi {
    age_ns: u64,
    /// The end of the run: channels are not known beyond it.
    end_ns: u64,
    /// First attempts differ in length: they carry the packet uncoded, too, or have different codes.
    lengths_vary: bool,
    /// Bytes of the first attempt at each class's head.
    firsts_bytes: Vec<u32>,
    /// The sample of the fading that each class's channel is known by.
    samples: Vec<usize>,
    /// Times of the channel, ns, at which all classes see these samples: from the first up to the second.
    same_ns: (u64, u64),
}

impl Csi {
    /// `firsts_bytes` has the length of a first attempt of each class as long as it has had no head.
    pub(super) fn new(age_ns: u64, end_ns: u64, firsts_bytes: Vec<u32>, lengths_vary: bool) -> Csi {
        Csi {
            age_ns,
            end_ns,
            lengths_vary,
            samples: vec![usize::MAX; firsts_bytes.len()],
            firsts_bytes,
            same_ns: (0, 0),
        }
    }

    pub(super) fn samples(&self) -> &[usize] {
        &self.samples
    }

    /// Looks again; returns whether any class sees another sample than before. `first_bytes` has the length of the first
    /// attempt at the head of a class, `received_ns` says when an attempt of so many bytes would be received if it were sent
    /// now; `offsets_ns` are those of the classes into the fading.
    pub(super) fn look(
        &mut self,
        queues: &[Queue],
        fading: &Fading,
        offsets_ns: &[u64],
        (mut first_bytes, mut received_ns): (impl FnMut(usize) -> u32, impl FnMut(u32) -> u64),
    ) -> bool {
        let mut all_same = true;
        if self.lengths_vary {
            for (class, queue) in queues.iter().enumerate() {
                if queue.backlog_pkts > 0 {
                    self.firsts_bytes[class] = first_bytes(class);
                }
            }
            all_same = self.firsts_bytes.iter().all(|b| *b == self.firsts_bytes[0]);
        }
        let mut bytes = self.firsts_bytes[0];
        // Before the start the channel was as it is at the start.
        let (age_ns, end_ns) = (self.age_ns, self.end_ns);
        let mut known_at = |bytes| received_ns(bytes).saturating_sub(age_ns).min(end_ns);
        let mut known_ns = known_at(bytes);
        let (from_ns, until_ns) = self.same_ns;
        if all_same && (from_ns..until_ns).contains(&known_ns) {
            return false;
        }
        let mut changed = false;
        let mut lasts_ns = u64::MAX;
        let classes = self.firsts_bytes.iter().zip(&mut self.samples);
        for ((&length_bytes, sample), offset_ns) in classes.zip(offsets_ns) {
            if length_bytes != bytes {
                bytes = length_bytes;
                known_ns = known_at(bytes);
            }
            let seen = fading.index(known_ns + offset_ns);
            changed |= seen != *sample;
            *sample = seen;
            lasts_ns = lasts_ns.min(fading.lasts_ns(known_ns + offset_ns));
        }
        self.same_ns = if all_same {
            (known_ns, known_ns.saturating_add(lasts_ns))
        } else {
            (0, 0)
        };
        changed
    }
}
