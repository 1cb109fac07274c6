// SPDX-License-Identifier: BSD-3-Clause
//! A beam: a carrier that serves one terminal after another, and the channel that decides how fast each is.
//!
//! At every tick each terminal's Es/N0 is that of the clear sky less what rain takes, and gives it a modulation and code;
//! the scheduler is told all rates at once. What is being sent keeps the rate it began with.

use crate::experiment::{Beam, ClearSky, Experiment, Weather};
use crate::metrics::beam::{Heard, Listener};
use crate::random::Random;
use crate::satellite::modcod::{Adaptation, ModCod};
use crate::satellite::rain::{Attenuation, Shower};
use linkweir_config::signal::Instant;
use crate::table::Sink;

use super::Engine;

/// Streams of the beam's random numbers, far from those of flows.
const CLEAR_SKY_STREAM: u64 = u64::MAX - 1;
const RAIN_STREAM: u64 = u64::MAX - 2;

/// The terminals of a beam.
#[derive(Debug)]
pub(super) struct Terminals {
    symbol_rate_bd: f64,
    tick_ns: u64,
    adaptation: Adaptation,
    fade: Fade,
    /// Without rain, dB.
    clear_sky_db: Vec<f64>,
    /// Places on the ladder of modulations and codes; none in an outage.
    modcods: Vec<Option<usize>>,
    rates_bps: Vec<u64>,
    begun: bool,
    listener: Listener,
}

/// What is taken off the clear sky.
#[derive(Debug)]
enum Fade {
    None,
    Rain(Shower),
    Recorded(Attenuation),
}

impl Terminals {
    pub(super) fn new(beam: &Beam, experiment: &Experiment) -> Terminals {
        let n = experiment.classes.len();
        let mut random = Random::new(beam.seed, CLEAR_SKY_STREAM);
        let clear_sky_db: Vec<f64> = match &beam.clear_sky {
            ClearSky::Same(db) => vec![*db; n],
            ClearSky::Each(all) => all.to_vec(),
            ClearSky::Between(least, most) => (0..n)
                .map(|_| least + (most - least) * random.unit())
                .collect(),
        };
        let fade = match &beam.weather {
            Weather::Clear => Fade::None,
            Weather::Rain(rain) => {
                let random = Random::new(beam.seed, RAIN_STREAM);
                Fade::Rain(Shower::new(rain, n, beam.tick_ns, random))
            }
            Weather::Recorded(attenuation) => Fade::Recorded(attenuation.clone()),
        };
        Terminals {
            symbol_rate_bd: beam.symbol_rate_bd,
            tick_ns: beam.tick_ns,
            adaptation: beam.adaptation.clone(),
            fade,
            listener: Listener::new(experiment, &clear_sky_db),
            clear_sky_db,
            modcods: vec![None; n],
            rates_bps: vec![0; n],
            begun: false,
        }
    }

    /// Looks at the sky; whether any rate changed.
    fn tick(&mut self, now_ns: u64) -> bool {
        if let (Fade::Rain(shower), true) = (&mut self.fade, self.begun) {
            shower.step();
        }
        self.listener.pass(now_ns);
        let mut changed = !self.begun;
        for terminal in 0..self.clear_sky_db.len() {
            let attenuation_db = match &self.fade {
                Fade::None => 0.0,
                Fade::Rain(shower) => shower.attenuation_db(terminal),
                Fade::Recorded(attenuation) => attenuation.at(now_ns, terminal),
            };
            let esn0_db = self.clear_sky_db[terminal] - attenuation_db;
            let before = self.modcods[terminal];
            let after = if self.begun {
                self.adaptation.next(before, esn0_db)
            } else {
                self.adaptation.first(esn0_db)
            };
            let modcod = after.map(|place| &self.adaptation.ladder()[place]);
            if after != before {
                self.modcods[terminal] = after;
                self.rates_bps[terminal] = rate_bps(self.symbol_rate_bd, modcod);
                changed = true;
            }
            self.listener.hear(
                terminal,
                Heard {
                    esn0_db,
                    attenuation_db,
                    rate_bps: self.rates_bps[terminal] as f64,
                    modcod: modcod.map(|m| m.name),
                },
            );
        }
        self.begun = true;
        changed
    }
}

/// bit/s, to the nearest.
fn rate_bps(symbol_rate_bd: f64, modcod: Option<&ModCod>) -> u64 {
    modcod.map_or(0, |modcod| {
        (symbol_rate_bd * modcod.efficiency + 0.5) as u64
    })
}

/// One packet at a time, each at the rate of its terminal.
#[derive(Debug)]
pub(super) struct Carrier {
    /// Class of each flow.
    classes: Box<[usize]>,
    rates_bps: Vec<f64>,
    /// The packet in front: its class, rate, beginning and end.
    front: Option<(usize, f64, Instant)>,
    ends: Instant,
    /// Time spent on each class up to the end of the last packet, ns.
    airtime_ns: Vec<f64>,
    greatest_bps: f64,
    /// Time up to which what was offered is added up, and the bits.
    offered: (u64, f64),
}

impl Carrier {
    pub(super) fn new(classes: &[usize]) -> Carrier {
        Carrier {
            classes: classes.into(),
            rates_bps: Vec::new(),
            front: None,
            ends: Instant::at(0),
            airtime_ns: Vec::new(),
            greatest_bps: 0.0,
            offered: (0, 0.0),
        }
    }

    fn set_rates(&mut self, now_ns: u64, rates_bps: &[u64]) {
        self.offered_bits(now_ns);
        self.rates_bps = rates_bps.iter().map(|bps| *bps as f64).collect();
        self.greatest_bps = self.rates_bps.iter().fold(0.0, |a, b| a.max(*b));
        self.airtime_ns.resize(rates_bps.len(), 0.0);
    }

    /// Begins a packet, at the end of the one before it if that was `follows`; returns when it will have left.
    #[inline(never)] // keeps the path of plain links short, here and below
    pub(super) fn begin(&mut self, now_ns: u64, follows: bool, bytes: u32, flow: u32) -> u64 {
        let class = self.classes[flow as usize];
        let rate_bps = self.rates_bps[class];
        debug_assert!(rate_bps > 0.0, "a policy picks no blocked queue");
        let begins = if follows {
            self.ends
        } else {
            Instant::at(now_ns)
        };
        self.ends = begins.plus(8e9 * f64::from(bytes) / rate_bps);
        self.front = Some((class, rate_bps, begins));
        self.ends.ns
    }

    /// The packet in front has left.
    #[inline(never)]
    pub(super) fn end(&mut self) {
        if let Some((class, rate_bps, began)) = self.front {
            self.airtime_ns[class] += self.ends.since(began);
            if rate_bps > self.greatest_bps {
                self.offered_bits(self.ends.ns);
            }
        }
        self.front = None;
    }

    /// Bits so far of the packet in front.
    pub(super) fn under_way_bits(&self, now_ns: u64) -> f64 {
        self.front.map_or(0.0, |(_, rate_bps, began)| {
            self.spent_ns(began, now_ns) * 1e-9 * rate_bps
        })
    }

    /// Time that the packet in front has had.
    fn spent_ns(&self, began: Instant, now_ns: u64) -> f64 {
        let until_now = Instant::at(now_ns).since(began);
        until_now.min(self.ends.since(began)).max(0.0)
    }

    /// Bits that the carrier could have sent since the start, had it always served the terminal with the greatest rate;
    /// where the packet in front began with a greater one that is gone, with that.
    pub(super) fn offered_bits(&mut self, now_ns: u64) -> f64 {
        let (since_ns, bits) = &mut self.offered;
        *bits += self.greatest_bps * (now_ns - *since_ns) as f64 * 1e-9;
        if let Some((_, rate_bps, _)) = self.front {
            if rate_bps > self.greatest_bps {
                let since = Instant::at(*since_ns);
                let longer_ns = Instant::at(now_ns).since(since).min(self.ends.since(since));
                *bits += (rate_bps - self.greatest_bps) * longer_ns.max(0.0) * 1e-9;
            }
        }
        *since_ns = now_ns;
        *bits
    }

    /// Time spent on each class since the start, ns.
    fn airtimes_ns(&self, now_ns: u64) -> Vec<f64> {
        let mut all = self.airtime_ns.clone();
        if let Some((class, _, began)) = self.front {
            all[class] += self.spent_ns(began, now_ns);
        }
        all
    }
}

impl Engine<'_> {
    /// The channel's tick; returns the time of the next one.
    pub(super) fn channel(&mut self) -> Option<u64> {
        let now_ns = self.now_ns;
        let terminals = self.terminals.as_mut()?;
        let again_ns = now_ns.saturating_add(terminals.tick_ns);
        if terminals.tick(now_ns) {
            let rates_bps = &terminals.rates_bps;
            self.mux.set_rates(now_ns, rates_bps.iter().copied());
            self.device.carrier()?.set_rates(now_ns, rates_bps);
            self.start_device();
        }
        Some(again_ns)
    }

    /// Terminals' totals count from now on.
    pub(super) fn begin_terminal_totals(&mut self) {
        if let (Some(terminals), Some(carrier)) = (&mut self.terminals, self.device.carrier()) {
            let airtimes_ns = carrier.airtimes_ns(self.now_ns);
            terminals.listener.begin_totals(self.now_ns, airtimes_ns);
        }
    }

    pub(super) fn end_terminal_bin(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        let (Some(terminals), Some(carrier)) = (&mut self.terminals, self.device.carrier()) else {
            return Ok(());
        };
        let airtimes_ns = carrier.airtimes_ns(self.now_ns);
        terminals.listener.end_bin(self.now_ns, &airtimes_ns, sink)
    }

    pub(super) fn finish_terminals(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        let (Some(terminals), Some(carrier)) = (&mut self.terminals, self.device.carrier()) else {
            return Ok(());
        };
        let airtimes_ns = carrier.airtimes_ns(self.now_ns);
        terminals.listener.finish(self.now_ns, &airtimes_ns, sink)
    }
}

/// What the engine relies on.
pub(super) fn validate(beam: &Beam, experiment: &Experiment) -> Result<(), String> {
    let refuse = |ok: bool, message: &str| if ok { Ok(()) } else { Err(message.to_owned()) };
    let classes = experiment.classes.len();
    let link = &experiment.link;
    refuse(
        link.satellite.is_none() && link.ring == 1 && !link.follow,
        "a beam's device pulls one packet at a time, and no other channel is followed",
    )?;
    refuse(beam.tick_ns > 0, "a beam's tick must be longer than 0")?;
    refuse(
        beam.symbol_rate_bd.is_finite() && beam.symbol_rate_bd >= 1.0,
        "a beam needs a symbol rate",
    )?;
    if let ClearSky::Each(all) = &beam.clear_sky {
        refuse(
            all.len() == classes,
            "every terminal needs an Es/N0 of its own, or all the same",
        )?;
    }
    if let Weather::Recorded(attenuation) = &beam.weather {
        refuse(
            [1, classes].contains(&attenuation.columns()),
            "a beam's attenuation needs one column for all terminals or one for each",
        )?;
    }
    Ok(())
}
