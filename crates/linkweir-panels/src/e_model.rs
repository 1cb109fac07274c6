// SPDX-License-Identifier: BSD-3-Clause
//! The E-model of ITU-T G.107 (06/2015): how delay and loss impair a packet call without echo of its own (T = Ta, Tr = 2 T).

use libm::{exp, fabs, hypot, log10, log2, pow, sqrt};
use linkweir_sim::codec::Codec;

/// Beyond this delay the rating does not change any more, s.
const LONGEST_S: f64 = 60.0;
/// Greatest BurstR.
const MOST_BURSTS: f64 = 100.0;
/// Below this STMR, sidetone masks the talker's echo: half of Ist is added to TERV.
const LOUD_SIDETONE_DB: f64 = 9.0;
/// Above this STMR, nothing masks it: Ist is added to Idte as a root of squares.
const FAINT_SIDETONE_DB: f64 = 20.0;

/// The parameters besides delay, loss and codec; in dB unless stated otherwise. Names are the standard's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Line {
    pub slr: f64,
    pub rlr: f64,
    pub stmr: f64,
    pub lstr: f64,
    pub ds: f64,
    pub telr: f64,
    pub wepl: f64,
    /// Quantizing distortion units.
    pub qdu: f64,
    pub nc: f64,
    pub nfor: f64,
    pub ps: f64,
    pub pr: f64,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            slr: 8.0,
            rlr: 2.0,
            stmr: 15.0,
            lstr: 18.0,
            ds: 3.0,
            telr: 65.0,
            wepl: 110.0,
            qdu: 1.0,
            nc: -70.0,
            nfor: -64.0,
            ps: 35.0,
            pr: 35.0,
        }
    }
}

/// What the rating R = `basic` - `simultaneous` - `delay` - `equipment` is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Basic signal-to-noise ratio Ro.
    pub basic: f64,
    /// Simultaneous impairment Is.
    pub simultaneous: f64,
    /// Delay impairment Id.
    pub delay: f64,
    /// Equipment impairment with loss, Ie,eff.
    pub equipment: f64,
}

impl Quality {
    /// Transmission rating factor R.
    #[must_use]
    pub fn rating(&self) -> f64 {
        self.basic - self.simultaneous - self.delay - self.equipment
    }
}

/// A call: `delay_s` from mouth to ear, the part `loss` of packets that is not played, Ie and Bpl of the codec, and BurstR.
#[must_use]
pub fn rate(
    delay_s: f64,
    loss: f64,
    (impairment, robustness): (f64, f64),
    burst_r: f64,
    line: &Line,
) -> Quality {
    let delay_ms = 1e3 * delay_s;
    let (basic, noise) = basic(line);
    let sidetone = sidetone(line, delay_ms);
    let per_cent = 100.0 * loss;
    let spread = (per_cent / (per_cent / burst_r + robustness)).min(1.0);
    Quality {
        basic,
        simultaneous: simultaneous(line, basic, noise, sidetone),
        delay: delay(line, basic, noise, sidetone, delay_ms),
        equipment: impairment + (95.0 - impairment) * spread,
    }
}

/// Mean opinion score of a rating, annex B: 1 below 0, 4.5 above 100. The formula falls a hundredth below 1 between 0 and 6.5,
/// where this is 1.
#[must_use]
pub fn mos(rating: f64) -> f64 {
    if rating <= 0.0 {
        return 1.0;
    }
    if rating >= 100.0 {
        return 4.5;
    }
    let formula = 1.0 + 0.035 * rating + 7e-6 * rating * (rating - 60.0) * (100.0 - rating);
    formula.max(1.0)
}

/// MOS of a call behind a play-out buffer, whose delay is NaN if no packet was ever received; none for codecs without factors.
#[must_use]
pub fn of_codec(codec: &Codec, delay_s: f64, loss: f64, burst_r: f64) -> Option<f64> {
    let factors = codec.impairment?;
    let delay_s = if delay_s.is_nan() {
        0.0
    } else {
        delay_s + codec.delay_s()
    };
    let call = rate(
        delay_s.min(LONGEST_S),
        loss,
        factors,
        burst_r.min(MOST_BURSTS),
        &Line::default(),
    );
    Some(mos(call.rating()))
}

fn sum_db(levels: &[f64]) -> f64 {
    10.0 * log10(levels.iter().map(|level| pow(10.0, level / 10.0)).sum())
}

/// Ro and No: the talker's level over all noise, at the point where loudness ratings are defined.
fn basic(line: &Line) -> (f64, f64) {
    let square = |value: f64| value * value;
    let olr = line.slr + line.rlr;
    let send_room =
        line.ps - line.slr - line.ds - 100.0 + 0.004 * square(line.ps - olr - line.ds - 14.0);
    let effective = line.pr + 10.0 * log10(1.0 + pow(10.0, (10.0 - line.lstr) / 10.0));
    let receive_room = line.rlr - 121.0 + effective + 0.008 * square(effective - 35.0);
    let noise = sum_db(&[line.nc, send_room, receive_room, line.nfor + line.rlr]);
    (15.0 - 1.5 * (line.slr + noise), noise)
}

/// Ist: the talker hears their own voice too loudly, or not at all.
fn sidetone(line: &Line, delay_ms: f64) -> f64 {
    let direct = pow(10.0, -line.stmr / 10.0);
    let stmr = -10.0 * log10(direct + exp(-delay_ms / 4.0) * pow(10.0, -line.telr / 10.0));
    12.0 * pow(1.0 + pow(fabs((stmr - 13.0) / 6.0), 8.0), 1.0 / 8.0)
        - 28.0 * pow(1.0 + pow(fabs((stmr + 1.0) / 19.4), 35.0), 1.0 / 35.0)
        - 13.0 * pow(1.0 + pow(fabs((stmr - 3.0) / 33.0), 13.0), 1.0 / 13.0)
        + 29.0
}

/// Is: too loud, sidetone, quantizing.
fn simultaneous(line: &Line, basic: f64, noise: f64, sidetone: f64) -> f64 {
    let x = line.slr + line.rlr + 0.2 * (64.0 + noise - line.rlr);
    let loud = 20.0 * (pow(1.0 + pow(x / 8.0, 8.0), 1.0 / 8.0) - x / 8.0);
    let q = 37.0 - 15.0 * log10(line.qdu);
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let y = (basic - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    let quantizing = 15.0 * log10(1.0 + pow(10.0, y) + pow(10.0, z));
    loud + sidetone + quantizing
}

/// Id: the talker's echo, the listener's echo, and delay for its own sake.
fn delay(line: &Line, basic: f64, noise: f64, sidetone: f64, delay_ms: f64) -> f64 {
    let mut talker = 0.0;
    if delay_ms >= 1.0 {
        let falling = 40.0 * log10((1.0 + delay_ms / 10.0) / (1.0 + delay_ms / 150.0));
        let mut terv = line.telr - falling + 6.0 * exp(-0.3 * delay_ms * delay_ms);
        if line.stmr < LOUD_SIDETONE_DB {
            terv += sidetone / 2.0;
        }
        let half = (-1.5 * (noise - line.rlr) - (80.0 + 2.5 * (terv - 14.0))) / 2.0;
        talker = (half + sqrt(half * half + 100.0) - 1.0) * (1.0 - exp(-delay_ms));
        if line.stmr > FAINT_SIDETONE_DB {
            talker = hypot(talker, sidetone);
        }
    }
    let rle = 10.5 * (line.wepl + 7.0) * pow(2.0 * delay_ms + 1.0, -0.25);
    let half = (basic - rle) / 2.0;
    let listener = half + sqrt(half * half + 169.0);
    let mut absolute = 0.0;
    if delay_ms > 100.0 {
        let x = log2(delay_ms / 100.0);
        let sixth = |value: f64| pow(1.0 + pow(value, 6.0), 1.0 / 6.0);
        absolute = 25.0 * (sixth(x) - 3.0 * sixth(x / 3.0) + 2.0);
    }
    talker + listener + absolute
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ITU-T G.107: with all defaults R is 93.2; G.107 (06/2015), annex B: MOS of R.
    #[test]
    fn defaults_give_the_rating_of_the_standard() {
        let plain = rate(0.0, 0.0, (0.0, 4.3), 1.0, &Line::default());
        assert!((plain.rating() - 93.2).abs() < 0.05, "{plain:?}");
        assert_eq!((mos(-5.0), mos(3.0), mos(101.0)), (1.0, 1.0, 4.5));
        assert!((mos(80.4) - 4.04).abs() < 0.005);
    }

    #[test]
    fn a_codec_without_factors_is_not_rated() {
        let codec = |name| {
            linkweir_sim::codec::CODECS
                .iter()
                .find(move |codec| codec.name == name)
                .unwrap()
        };
        assert!(of_codec(codec("opus"), 0.1, 0.0, 1.0).is_none());
        assert!(of_codec(codec("g711"), f64::NAN, 1.0, 1.0).is_some_and(|mos| mos < 1.5));
    }
}
