// SPDX-License-Identifier: BSD-3-Clause
//! A beam: the channel of each terminal, which decides how fast the carrier (`carrier.rs`) serves it.
//!
//! At every tick, each terminal's Es/N0 is that of the clear sky less the attenuation by rain, and selects its modulation and
//! code. All rates are reported to the scheduler at once.

use crate::experiment::{users, Beam, ClearSky, Experiment, Weather};
use crate::metrics::beam::{ChannelRecorder, ChannelState};
use crate::random::Random;
use crate::satellite::modcod::{Adaptation, ModCod};
use crate::satellite::rain::{Attenuation, Shower};
use crate::table::Sink;

use super::bottleneck::Bottleneck;
use super::event;
use super::medium::{Medium, PlainLink};
use super::packet::Packet;

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
    /// The terminal of each class.
    users: Vec<usize>,
    begun: bool,
    recorder: ChannelRecorder,
}

/// Where attenuation comes from.
#[derive(Debug)]
enum Fade {
    None,
    Rain(Shower),
    Recorded(Attenuation),
}

impl Terminals {
    pub(super) fn new(beam: &Beam, experiment: &Experiment) -> Terminals {
        let users = users(&experiment.classes);
        let n = terminals(&users);
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
            recorder: ChannelRecorder::new(experiment, &users, &clear_sky_db),
            users,
            clear_sky_db,
            modcods: vec![None; n],
            rates_bps: vec![0; n],
            begun: false,
        }
    }

    /// Takes one step of the channel; returns whether any rate changed.
    fn tick(&mut self, now_ns: u64) -> bool {
        if let (Fade::Rain(shower), true) = (&mut self.fade, self.begun) {
            shower.step();
        }
        self.recorder.advance(now_ns);
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
            self.recorder.set(
                terminal,
                ChannelState {
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

/// How many terminals there are.
fn terminals(users: &[usize]) -> usize {
    users.iter().max().map_or(0, |last| last + 1)
}

/// bit/s, to the nearest.
fn rate_bps(symbol_rate_bd: f64, modcod: Option<&ModCod>) -> u64 {
    modcod.map_or(0, |modcod| {
        (symbol_rate_bd * modcod.efficiency + 0.5) as u64
    })
}

/// A plain link whose device is a carrier, and the terminals whose channels give its rates.
#[derive(Debug)]
pub(super) struct BeamLink {
    link: PlainLink,
    terminals: Terminals,
}

impl BeamLink {
    pub(super) fn new(beam: &Beam, experiment: &Experiment) -> BeamLink {
        BeamLink {
            link: PlainLink::new(&experiment.link, experiment.seed),
            terminals: Terminals::new(beam, experiment),
        }
    }

    /// That of a link in a network.
    pub(super) fn in_network(mut self, link: &str) -> BeamLink {
        self.terminals.recorder = self.terminals.recorder.in_network(link);
        self
    }

    /// The channel's tick; returns the time of the next one.
    fn tick(&mut self, at: &mut Bottleneck) -> Option<u64> {
        let now_ns = at.now_ns;
        let again_ns = now_ns.saturating_add(self.terminals.tick_ns);
        if self.terminals.tick(now_ns) {
            let Terminals {
                rates_bps, users, ..
            } = &self.terminals;
            let of_classes_bps = users.iter().map(|user| rates_bps[*user]);
            at.mux.set_rates(now_ns, of_classes_bps);
            at.device.carrier()?.set_rates(now_ns, rates_bps);
            self.start_device(at);
        }
        Some(again_ns)
    }
}

impl Medium for BeamLink {
    fn begin(&mut self, at: &mut Bottleneck) {
        at.agenda.push(0, event::CHANNEL);
    }

    fn pull(&mut self, at: &mut Bottleneck) {
        self.link.pull(at);
    }

    fn leave(&mut self, at: &mut Bottleneck, packet: Packet) {
        self.link.leave(at, packet);
    }

    fn handle(&mut self, at: &mut Bottleneck, event: u32) -> Option<u64> {
        match event {
            event::CHANNEL => self.tick(at),
            _ => unreachable!("a beam has no event {event:#x}"),
        }
    }

    fn receiver_delay_ns(&mut self, now_ns: u64) -> u64 {
        self.link.receiver_delay_ns(now_ns)
    }

    fn begin_totals(&mut self, at: &mut Bottleneck) {
        let airtimes_ns = at.device.airtimes_ns(at.now_ns);
        self.terminals.recorder.begin_totals(at.now_ns, airtimes_ns);
    }

    fn end_bin(&mut self, at: &mut Bottleneck, sink: &mut dyn Sink) -> Result<(), String> {
        let airtimes_ns = at.device.airtimes_ns(at.now_ns);
        self.terminals
            .recorder
            .end_bin(at.now_ns, &airtimes_ns, sink)
    }

    fn finish(&mut self, at: &mut Bottleneck, sink: &mut dyn Sink) -> Result<(), String> {
        let airtimes_ns = at.device.airtimes_ns(at.now_ns);
        self.terminals
            .recorder
            .finish(at.now_ns, &airtimes_ns, sink)
    }
}

/// Checks the assumptions of the engine.
pub(super) fn validate(beam: &Beam, experiment: &Experiment) -> Result<(), String> {
    let refuse = |ok: bool, message: &str| if ok { Ok(()) } else { Err(message.to_owned()) };
    let terminals = terminals(&users(&experiment.classes));
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
            all.len() == terminals,
            "every terminal needs an Es/N0 of its own, or all the same",
        )?;
    }
    if let Weather::Recorded(attenuation) = &beam.weather {
        refuse(
            [1, terminals].contains(&attenuation.columns()),
            "a beam's attenuation needs one column for all terminals or one for each",
        )?;
    }
    Ok(())
}
