// SPDX-License-Identifier: BSD-3-Clause
//! Several paths to one peer that carry packets at once: the paces of a [`crate::link::Link`] with one scheduler for all of them.
//!
//! Which class may use which path, copies, numbers and repetitions are the core's ([`linkweir_core::Bond`]). Here are the
//! capacity and the pace of each path. The scheduler gets the sum of the capacities of the paths that are up.
//!
//! Until the peer has agreed to several paths, one path at a time carries everything, and packets have no numbers.

use linkweir_config::recording::PathState;
use linkweir_core::{Bond, Departure, Kept, Mux, Path, Paths as Use, Queue, Sender, MOST_PATHS};

pub use crate::capacity::differs;
use crate::capacity::KnownCapacity;
use crate::deciding::Deciding;
use crate::recorder::Tap;
use crate::setup::{Class, PathSetup, Uses};
use crate::waiting::Waiting;

/// A class of `best` or `spill` uses the next path when a packet of it would wait for longer, ns.
pub const ROOM_NS: u64 = 10_000_000;
/// What each path has sent is remembered for so long, ns, and so many bytes, to be sent again if it dies.
const MEMORY_NS: u64 = 1_000_000_000;
const MEMORY_BYTES: u64 = 4_000_000;

/// Over which path a packet is sent, and with which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// The path.
    pub path: usize,
    /// Its class and its number since the peer agreed; none: it has none.
    pub number: Option<(u8, u32)>,
    /// Whether it was sent before: it is a copy, or a repetition.
    pub is_again: bool,
}

/// What is known of a path from its probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Whether it carries packets.
    pub is_up: bool,
    /// Its one-way delay, ns.
    pub delay_ns: u64,
    /// If it is not up: when the last packet was sent that is known to have arrived, ns.
    pub arrived_ns: u64,
}

/// What a path has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Packets, copies and repetitions included.
    pub pkts: u64,
    /// Their bytes on the link.
    pub bytes: u64,
    /// Copies among them.
    pub copied_pkts: u64,
    /// Packets among them that were sent again as another path died.
    pub resent_pkts: u64,
    /// Copies that were dropped, as too many waited.
    pub dropped_copies: u64,
}

/// The paths to a peer.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) sender: Sender<Waiting>,
    pub(crate) capacities: Vec<KnownCapacity>,
    /// What is known of each from its probes.
    states: Vec<State>,
    /// How each class uses them once the peer has agreed.
    uses: Vec<Use>,
    /// Which classes have numbers.
    numbered: Vec<bool>,
    /// How many packets of each class have left, and how many had when the peer agreed.
    next_numbers: Vec<u64>,
    first_numbers: Vec<u64>,
    /// Whether the peer has agreed.
    agreed: bool,
}

/// How a class uses these paths. Names that none of them has are left out; if none is left, it is as `best`.
fn uses(uses: &Uses, paths: &[PathSetup]) -> Use {
    match uses {
        Uses::Best => Use::Best,
        Uses::All => Use::All,
        Uses::Spill => Use::Spill,
        Uses::Stripe => Use::Stripe,
        Uses::Named(names) => {
            let named = paths.iter().enumerate();
            let named = named.filter(|(_, path)| names.contains(&path.name));
            match named.map(|(at, _)| 1 << at).sum() {
                0 => Use::Best,
                named => Use::Named(named),
            }
        }
    }
}

impl Paths {
    /// Paths of which none is up.
    pub(crate) fn new(now_ns: u64, paths: &[PathSetup], classes: &[Class]) -> Paths {
        debug_assert!((1..=MOST_PATHS).contains(&paths.len()));
        let path = |setup: &PathSetup| Path {
            cost: setup.cost.into(),
            up: false,
            rate_bps: setup.capacity.nominal_bps,
            delay_ns: 0,
        };
        let bonded: Vec<Path> = paths.iter().map(path).collect();
        let resend: Vec<bool> = classes.iter().map(|class| class.resend).collect();
        let bond = Bond::new(&bonded, &vec![Use::Stripe; classes.len()], ROOM_NS);
        let known = |setup: &PathSetup| KnownCapacity::new(now_ns, &setup.capacity, false);
        let mut made = Paths {
            sender: Sender::new(bond, &resend, MEMORY_NS, MEMORY_BYTES),
            capacities: paths.iter().map(known).collect(),
            states: vec![State::default(); paths.len()],
            uses: Vec::new(),
            numbered: Vec::new(),
            next_numbers: vec![0; classes.len()],
            first_numbers: vec![0; classes.len()],
            agreed: false,
        };
        made.set_classes(paths, classes);
        made
    }

    /// Takes over how classes use the paths.
    fn set_classes(&mut self, paths: &[PathSetup], classes: &[Class]) {
        self.uses = classes
            .iter()
            .map(|class| uses(&class.uses, paths))
            .collect();
        self.numbered = classes
            .iter()
            .map(|class| class.reorder_ns.is_some())
            .collect();
        if self.agreed {
            self.apply_uses();
        }
    }

    fn apply_uses(&mut self) {
        for (class, uses) in self.uses.iter().enumerate() {
            let uses = if self.agreed { *uses } else { Use::Stripe };
            self.sender.bond.set_class(class, uses);
        }
    }

    /// The peer has agreed to several paths, from which on packets have numbers, or is not known to any more. Returns whether
    /// that is news.
    pub(crate) fn set_agreed(&mut self, agreed: bool) -> bool {
        if self.agreed == agreed {
            return false;
        }
        self.agreed = agreed;
        self.first_numbers.clone_from(&self.next_numbers);
        self.apply_uses();
        true
    }

    /// Sets what is known of a path. Returns whether it came up or died.
    pub(crate) fn set_state(&mut self, now_ns: u64, at: usize, state: State) -> bool {
        let before = std::mem::replace(&mut self.states[at], state);
        self.update(now_ns, at, |_| true);
        let is_news = before.is_up != state.is_up;
        if is_news && !state.is_up {
            // It may have been left before, as it had no capacity.
            self.sender.lost_since(at, state.arrived_ns);
        }
        is_news
    }

    /// Tells the bond of a path if it carries packets or not since now, or if its rate has changed so that it `counts`. A path
    /// without capacity carries none: what is under way there goes over others.
    fn update(&mut self, now_ns: u64, at: usize, counts: impl FnOnce(Path) -> bool) {
        let State {
            is_up,
            delay_ns,
            arrived_ns,
        } = self.states[at];
        let capacity = &mut self.capacities[at];
        let known = self.sender.bond.paths()[at];
        let rate_bps = capacity.known_bps(now_ns);
        let now = Path {
            up: is_up && rate_bps > 0,
            delay_ns,
            rate_bps,
            ..known
        };
        if now == known || now.up == known.up && !counts(now) {
            return;
        }
        if !now.up {
            let mut since_ns = capacity.pace.under_way_since_ns(now_ns).unwrap_or(now_ns);
            if !is_up {
                since_ns = since_ns.min(arrived_ns);
            }
            capacity.pace.idle();
            self.sender.pause_path(at, now, since_ns);
        } else {
            self.sender.set_path(at, now, now_ns);
        }
    }

    /// Nothing waits in the queues: paths that are free and have nothing else to carry miss nothing.
    pub(crate) fn idle_if_free(&mut self, now_ns: u64) {
        for (at, capacity) in self.capacities.iter_mut().enumerate() {
            if !self.sender.waits(at) {
                capacity.pace.idle_if_free(now_ns);
            }
        }
    }

    /// Tells the bond rates that have changed by more than 1 %.
    pub(crate) fn refresh(&mut self, now_ns: u64) {
        self.sender.forget(now_ns);
        for at in 0..self.capacities.len() {
            let known_bps = self.sender.bond.paths()[at].rate_bps;
            self.update(now_ns, at, |now| differs(now.rate_bps, known_bps));
        }
    }

    /// The sum of the capacities of the paths that are up, bit/s.
    pub(crate) fn sum_bps(&mut self, now_ns: u64) -> u64 {
        let each = self.capacities.iter_mut().zip(self.sender.bond.paths());
        let up = each.filter(|(_, path)| path.up);
        up.map(|(capacity, _)| capacity.known_bps(now_ns)).sum()
    }

    /// Records what each path is; without a session none carries anything.
    pub(crate) fn record(&mut self, now_ns: u64, is_open: bool, tap: &mut Tap) {
        let paths = self.sender.bond.paths().iter();
        for (at, (path, capacity)) in paths.zip(&mut self.capacities).enumerate() {
            let state = PathState {
                bps: capacity.known_bps(now_ns),
                delay_ns: path.delay_ns,
            };
            tap.path_is(now_ns, at, path.up && is_open, state);
            if tap.path_passes(now_ns, at) {
                tap.set_path_change(at, capacity.pace.next_change_ns(now_ns));
            }
        }
    }

    /// Over which path a packet of a class with this number is sent; none: it is one of before the agreement that is sent
    /// again, which the far end could not tell from a new one.
    pub(crate) fn over(&self, path: usize, class: usize, number: u32) -> Option<Over> {
        if !self.agreed || !self.numbered[class] {
            return Some(Over {
                path,
                number: None,
                is_again: false,
            });
        }
        let next = self.next_numbers[class];
        let behind = (next as u32).wrapping_sub(number);
        let since = (next - u64::from(behind)).checked_sub(self.first_numbers[class])?;
        Some(Over {
            path,
            number: Some((u8::try_from(class).ok()?, since as u32)),
            is_again: false,
        })
    }

    /// A packet has left the queues for a path.
    pub(crate) fn left(
        &mut self,
        now_ns: u64,
        path: usize,
        departure: &Departure<Waiting>,
    ) -> Option<Over> {
        let class = departure.class;
        let number = self.sender.left(now_ns, path, departure);
        self.next_numbers[class] += 1;
        self.over(path, class, number)
    }

    /// A copy or repetition that goes over a path before the policy is asked.
    pub(crate) fn before(
        &mut self,
        mux: &mut Mux<Deciding, Waiting>,
        now_ns: u64,
        path: usize,
    ) -> Option<linkweir_core::Carried<Waiting>> {
        // Without numbers, what had arrived would be handed out twice.
        self.agreed.then(|| self.sender.before(mux, now_ns, path))?
    }

    /// A repetition that goes over a path when the policy had nothing for it.
    pub(crate) fn after(
        &mut self,
        now_ns: u64,
        path: usize,
    ) -> Option<linkweir_core::Carried<Waiting>> {
        self.agreed.then(|| self.sender.after(now_ns, path))?
    }

    /// Whether packets of a class have numbers once the peer has agreed.
    pub(crate) fn is_numbered(&self, class: usize) -> bool {
        self.numbered[class]
    }

    /// Whether the peer has agreed.
    pub(crate) fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// From when on an idle path may take what waits, ns.
    pub(crate) fn retry_ns(&self, path: usize, queues: &[Queue], now_ns: u64) -> Option<u64> {
        self.sender.bond.retry_ns(path, queues, now_ns)
    }

    /// What of these reservations the paths that are up can carry, as the classes use them.
    pub(crate) fn kept(&self, promised_bps: &[u64]) -> Vec<Kept> {
        self.sender.bond.kept(promised_bps)
    }

    /// What a path has carried.
    pub(crate) fn carried(&self, at: usize) -> Carried {
        let counters = self.sender.counters(at);
        Carried {
            pkts: counters.carried_pkts,
            bytes: counters.carried_bytes,
            copied_pkts: counters.copied_pkts,
            resent_pkts: counters.resent_pkts,
            dropped_copies: counters.dropped_copies,
        }
    }

    /// Takes over settings that leave the paths as they are, but for what they carry and cost.
    pub(crate) fn change(
        &mut self,
        now_ns: u64,
        (old, new): (&[PathSetup], &[PathSetup]),
        classes: &[Class],
    ) {
        for (at, (old, new)) in old.iter().zip(new).enumerate() {
            self.capacities[at].change(now_ns, &old.capacity, &new.capacity);
            let known = self.sender.bond.paths()[at];
            let cost = new.cost.into();
            self.sender.bond.set_path(at, Path { cost, ..known });
        }
        self.set_classes(new, classes);
        self.refresh(now_ns);
    }
}

#[cfg(test)]
mod tests;
