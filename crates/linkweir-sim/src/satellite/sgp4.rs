// SPDX-License-Identifier: BSD-3-Clause
//! Where a satellite is whose mean elements are known: SGP4, for satellites close to the earth.
//!
//! The sources are Hoots and Roehrich (1980), "Spacetrack Report No. 3", and Vallado, Crawford, Hujsak and Kelso (2006),
//! "Revisiting Spacetrack Report #3", AIAA 2006-6753, whose names the quantities have here, with the constants of WGS 72, in
//! which two-line elements are made. The mean elements contain what is periodic in a way of their own, so no other model may be used
//! with them. A satellite that takes 225 minutes or more for a revolution needs the attraction of moon and sun (SDP4), which is
//! not here.
//!
//! The functions are those of `libm`, so that results are the same on every machine. Units are minutes, radians
//! and radii of the earth, results km. The axes are those of the true equator and mean equinox.

use std::f64::consts::TAU;

use super::constellation::Point;

/// Radius of the earth in WGS 72, km.
const EARTH_KM: f64 = 6378.135;
const GRAVITY_KM3_S2: f64 = 398_600.8;
const J2: f64 = 0.001_082_616;
const J3: f64 = -0.000_002_538_81;
const J4: f64 = -0.000_001_655_97;
const J3_J2: f64 = J3 / J2;
/// Drag that is no drag carries a satellite away; what is further is taken for lost, radii of the earth.
const FAR: f64 = 100.0;
const TWO_THIRDS: f64 = 2.0 / 3.0;
/// The least period of a satellite that needs moon and sun, minutes.
pub const DEEP_MIN: f64 = 225.0;

/// Mean elements of a satellite at their epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elements {
    /// Angle between orbit and equator, rad.
    pub inclination: f64,
    /// Right ascension of the ascending node, rad.
    pub node: f64,
    /// From 0, below 1.
    pub eccentricity: f64,
    /// Angle from the node to the perigee, rad.
    pub perigee: f64,
    /// Mean anomaly, rad.
    pub anomaly: f64,
    /// Mean motion after Kozai, rad/min.
    pub motion: f64,
    /// Drag, 1/radii of the earth.
    pub bstar: f64,
}

/// What depends on the elements only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orbit {
    of: Elements,
    /// Mean motion after Brouwer, rad/min.
    motion: f64,
    /// Half the longer axis, radii of the earth.
    axis: f64,
    cosio: f64,
    sinio: f64,
    con41: f64,
    x1mth2: f64,
    x7thm1: f64,
    eta: f64,
    cc1: f64,
    cc4: f64,
    cc5: f64,
    mdot: f64,
    argpdot: f64,
    nodedot: f64,
    nodecf: f64,
    omgcof: f64,
    xmcof: f64,
    t2cof: f64,
    xlcof: f64,
    aycof: f64,
    delmo: f64,
    sinmao: f64,
    /// Further terms of drag; none if the perigee is below 220 km.
    drag: Option<Drag>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Drag {
    d2: f64,
    d3: f64,
    d4: f64,
    t3cof: f64,
    t4cof: f64,
    t5cof: f64,
}

fn powi(value: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * value)
}

/// Radians per minute of a satellite at one radius of the earth.
fn xke() -> f64 {
    60.0 / libm::sqrt(powi(EARTH_KM, 3) / GRAVITY_KM3_S2)
}

/// Mean motion after Brouwer, and half the longer axis.
fn unkozai(of: &Elements) -> (f64, f64) {
    let omeosq = 1.0 - of.eccentricity * of.eccentricity;
    let cosio = libm::cos(of.inclination);
    let ak = libm::pow(xke() / of.motion, TWO_THIRDS);
    let d1 = 0.75 * J2 * (3.0 * cosio * cosio - 1.0) / (libm::sqrt(omeosq) * omeosq);
    let del = d1 / (ak * ak);
    let adel = ak * (1.0 - del * del - del * (1.0 / 3.0 + 134.0 * del * del / 81.0));
    let motion = of.motion / (1.0 + d1 / (adel * adel));
    (motion, libm::pow(xke() / motion, TWO_THIRDS))
}

impl Orbit {
    /// None if the satellite needs moon and sun, or the elements are of no orbit around the earth.
    #[must_use]
    pub fn new(of: Elements) -> Option<Orbit> {
        let (motion, ao) = unkozai(&of);
        let eo = of.eccentricity;
        let rp = ao * (1.0 - eo);
        let is_orbit = (0.0..1.0).contains(&eo) && motion > 0.0 && rp > 1.0;
        if !is_orbit || TAU / motion >= DEEP_MIN {
            return None;
        }
        let (cosio, sinio) = (libm::cos(of.inclination), libm::sin(of.inclination));
        let cosio2 = cosio * cosio;
        let cosio4 = cosio2 * cosio2;
        let omeosq = 1.0 - eo * eo;
        let rteosq = libm::sqrt(omeosq);
        let con42 = 1.0 - 5.0 * cosio2;
        let con41 = 3.0 * cosio2 - 1.0;
        let x1mth2 = 1.0 - cosio2;

        let perige_km = (rp - 1.0) * EARTH_KM;
        let s_km = if perige_km < 98.0 {
            20.0
        } else if perige_km < 156.0 {
            perige_km - 78.0
        } else {
            78.0
        };
        let sfour = s_km / EARTH_KM + 1.0;
        let qzms24 = powi((120.0 - s_km) / EARTH_KM, 4);
        let pinvsq = 1.0 / powi(ao * omeosq, 2);
        let tsi = 1.0 / (ao - sfour);
        let eta = ao * eo * tsi;
        let etasq = eta * eta;
        let eeta = eo * eta;
        let psisq = (1.0 - etasq).abs();
        let coef = qzms24 * powi(tsi, 4);
        let coef1 = coef / libm::pow(psisq, 3.5);
        let cc2 = coef1
            * motion
            * (ao * (1.0 + 1.5 * etasq + eeta * (4.0 + etasq))
                + 0.375 * J2 * tsi / psisq * con41 * (8.0 + 3.0 * etasq * (8.0 + etasq)));
        let cc1 = of.bstar * cc2;
        let is_round = eo <= 1e-4;
        let cc3 = if is_round {
            0.0
        } else {
            -2.0 * coef * tsi * J3_J2 * motion * sinio / eo
        };
        let cc4 = 2.0
            * motion
            * coef1
            * ao
            * omeosq
            * (eta * (2.0 + 0.5 * etasq) + eo * (0.5 + 2.0 * etasq)
                - J2 * tsi / (ao * psisq)
                    * (-3.0 * con41 * (1.0 - 2.0 * eeta + etasq * (1.5 - 0.5 * eeta))
                        + 0.75
                            * x1mth2
                            * (2.0 * etasq - eeta * (1.0 + etasq))
                            * libm::cos(2.0 * of.perigee)));
        let cc5 = 2.0 * coef1 * ao * omeosq * (1.0 + 2.75 * (etasq + eeta) + eeta * etasq);

        let temp1 = 1.5 * J2 * pinvsq * motion;
        let temp2 = 0.5 * temp1 * J2 * pinvsq;
        let temp3 = -0.46875 * J4 * pinvsq * pinvsq * motion;
        let mdot = motion
            + 0.5 * temp1 * rteosq * con41
            + 0.0625 * temp2 * rteosq * (13.0 - 78.0 * cosio2 + 137.0 * cosio4);
        let argpdot = -0.5 * temp1 * con42
            + 0.0625 * temp2 * (7.0 - 114.0 * cosio2 + 395.0 * cosio4)
            + temp3 * (3.0 - 36.0 * cosio2 + 49.0 * cosio4);
        let xhdot1 = -temp1 * cosio;
        let nodedot = xhdot1
            + (0.5 * temp2 * (4.0 - 19.0 * cosio2) + 2.0 * temp3 * (3.0 - 7.0 * cosio2)) * cosio;
        let xmcof = if is_round {
            0.0
        } else {
            -TWO_THIRDS * coef * of.bstar / eeta
        };
        // An orbit that goes backwards above the equator.
        let rising = if (1.0 + cosio).abs() > 1.5e-12 {
            1.0 + cosio
        } else {
            1.5e-12
        };
        let drag = (perige_km >= 220.0).then(|| {
            let cc1sq = cc1 * cc1;
            let d2 = 4.0 * ao * tsi * cc1sq;
            let temp = d2 * tsi * cc1 / 3.0;
            let d3 = (17.0 * ao + sfour) * temp;
            let d4 = 0.5 * temp * ao * tsi * (221.0 * ao + 31.0 * sfour) * cc1;
            Drag {
                d2,
                d3,
                d4,
                t3cof: d2 + 2.0 * cc1sq,
                t4cof: 0.25 * (3.0 * d3 + cc1 * (12.0 * d2 + 10.0 * cc1sq)),
                t5cof: 0.2
                    * (3.0 * d4
                        + 12.0 * cc1 * d3
                        + 6.0 * d2 * d2
                        + 15.0 * cc1sq * (2.0 * d2 + cc1sq)),
            }
        });
        Some(Orbit {
            motion,
            axis: ao,
            cosio,
            sinio,
            con41,
            x1mth2,
            x7thm1: 7.0 * cosio2 - 1.0,
            eta,
            cc1,
            cc4,
            cc5,
            mdot,
            argpdot,
            nodedot,
            nodecf: 3.5 * omeosq * xhdot1 * cc1,
            omgcof: of.bstar * cc3 * libm::cos(of.perigee),
            xmcof,
            t2cof: 1.5 * cc1,
            xlcof: -0.25 * J3_J2 * sinio * (3.0 + 5.0 * cosio) / rising,
            aycof: -0.5 * J3_J2 * sinio,
            delmo: powi(1.0 + eta * libm::cos(of.anomaly), 3),
            sinmao: libm::sin(of.anomaly),
            drag,
            of,
        })
    }

    /// Half the longer axis, km.
    pub(super) fn axis_km(&self) -> f64 {
        self.axis * EARTH_KM
    }

    pub(super) fn inclination(&self) -> f64 {
        self.of.inclination
    }

    /// The ascending node, and the angle from there to the satellite in its plane, both without what is periodic, rad.
    pub(super) fn plane_at(&self, since_min: f64) -> (f64, f64) {
        (
            self.of.node + self.nodedot * since_min,
            self.of.perigee + self.of.anomaly + (self.argpdot + self.mdot) * since_min,
        )
    }

    /// Where the satellite is so many minutes after the epoch, km; none if it has come down by then.
    #[must_use]
    pub fn position_km(&self, since_min: f64) -> Option<Point> {
        let t = since_min;
        let t2 = t * t;
        // Secular gravity and drag.
        let xmdf = self.of.anomaly + self.mdot * t;
        let argpdf = self.of.perigee + self.argpdot * t;
        let node = self.of.node + self.nodedot * t + self.nodecf * t2;
        let (mut mm, mut argp) = (xmdf, argpdf);
        let mut tempa = 1.0 - self.cc1 * t;
        let mut tempe = self.of.bstar * self.cc4 * t;
        let mut templ = self.t2cof * t2;
        if let Some(drag) = &self.drag {
            let delm = self.xmcof * (powi(1.0 + self.eta * libm::cos(xmdf), 3) - self.delmo);
            let both = self.omgcof * t + delm;
            mm = xmdf + both;
            argp = argpdf - both;
            let (t3, t4) = (t2 * t, t2 * t2);
            tempa -= drag.d2 * t2 + drag.d3 * t3 + drag.d4 * t4;
            tempe += self.of.bstar * self.cc5 * (libm::sin(mm) - self.sinmao);
            templ += drag.t3cof * t3 + t4 * (drag.t4cof + t * drag.t5cof);
        }
        let am = self.axis * tempa * tempa;
        let em = self.of.eccentricity - tempe;
        if !(-0.001..1.0).contains(&em) || tempa <= 0.0 {
            return None;
        }
        let em = em.max(1e-6);
        mm += self.motion * templ;

        // Long periods.
        let axnl = em * libm::cos(argp);
        let temp = 1.0 / (am * (1.0 - em * em));
        let aynl = em * libm::sin(argp) + temp * self.aycof;
        let u = libm::fmod(mm + argp + temp * self.xlcof * axnl, TAU);
        let (sineo1, coseo1) = kepler(u, axnl, aynl);

        // Short periods.
        let ecose = axnl * coseo1 + aynl * sineo1;
        let esine = axnl * sineo1 - aynl * coseo1;
        let el2 = axnl * axnl + aynl * aynl;
        let pl = am * (1.0 - el2);
        if pl < 0.0 {
            return None;
        }
        let rl = am * (1.0 - ecose);
        let betal = libm::sqrt(1.0 - el2);
        let temp = esine / (1.0 + betal);
        let sinu = am / rl * (sineo1 - aynl - axnl * temp);
        let cosu = am / rl * (coseo1 - axnl + aynl * temp);
        let sin2u = 2.0 * cosu * sinu;
        let cos2u = 1.0 - 2.0 * sinu * sinu;
        let temp1 = 0.5 * J2 / pl;
        let temp2 = temp1 / pl;
        let radius =
            rl * (1.0 - 1.5 * temp2 * betal * self.con41) + 0.5 * temp1 * self.x1mth2 * cos2u;
        if !(1.0..FAR).contains(&radius) {
            return None;
        }
        let su = libm::atan2(sinu, cosu) - 0.25 * temp2 * self.x7thm1 * sin2u;
        let node = node + 1.5 * temp2 * self.cosio * sin2u;
        let tilt = self.of.inclination + 1.5 * temp2 * self.cosio * self.sinio * cos2u;

        let (sinsu, cossu) = (libm::sin(su), libm::cos(su));
        let (snod, cnod) = (libm::sin(node), libm::cos(node));
        let (sini, cosi) = (libm::sin(tilt), libm::cos(tilt));
        let km = radius * EARTH_KM;
        Some([
            km * (cnod * cossu - snod * cosi * sinsu),
            km * (snod * cossu + cnod * cosi * sinsu),
            km * sini * sinsu,
        ])
    }
}

/// Solves Kepler's equation: sine and cosine of the eccentric longitude.
fn kepler(u: f64, axnl: f64, aynl: f64) -> (f64, f64) {
    let mut eo1 = u;
    let (mut sin, mut cos) = (libm::sin(eo1), libm::cos(eo1));
    for _ in 0..10 {
        let step = (u - aynl * cos + axnl * sin - eo1) / (1.0 - cos * axnl - sin * aynl);
        let step = step.clamp(-0.95, 0.95);
        eo1 += step;
        (sin, cos) = (libm::sin(eo1), libm::cos(eo1));
        if step.abs() < 1e-12 {
            break;
        }
    }
    (sin, cos)
}

#[cfg(test)]
mod tests {
    use super::super::constellation::distance_km;
    use super::*;

    /// The published results of the authors' program for the satellites close to the earth of their test cases.
    const VERIFICATION: &str = include_str!("../../tests/ways/sgp4.txt");

    #[test]
    fn positions_are_the_published_ones() {
        let mut orbit = None;
        let mut compared = 0;
        let mut down = 0;
        for line in VERIFICATION.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<f64>().unwrap();
            if words[0] == "satellite" {
                orbit = Orbit::new(Elements {
                    inclination: number(2).to_radians(),
                    node: number(3).to_radians(),
                    eccentricity: number(4),
                    perigee: number(5).to_radians(),
                    anomaly: number(6).to_radians(),
                    motion: number(7) * TAU / 1440.0,
                    bstar: number(8),
                });
                assert!(orbit.is_some(), "{line}");
                continue;
            }
            let found = orbit.as_ref().unwrap().position_km(number(1));
            if words[2] == "down" {
                assert_eq!(found, None, "{line}");
                down += 1;
                continue;
            }
            let wanted = [2, 3, 4].map(number);
            let apart_km = distance_km(found.unwrap(), wanted);
            // They are printed with eight digits of a km.
            assert!(apart_km < 1e-5, "{line}: {apart_km} km");
            compared += 1;
        }
        assert!(compared > 100 && down > 1, "{compared}, {down}");
    }

    #[test]
    fn what_needs_moon_and_sun_or_is_no_orbit_is_refused() {
        let iridium = Elements {
            inclination: 1.5,
            node: 0.0,
            eccentricity: 0.0002,
            perigee: 1.0,
            anomaly: 2.0,
            motion: 14.342 * TAU / 1440.0,
            bstar: 1e-5,
        };
        assert!(Orbit::new(iridium).is_some());
        for (per_day, eccentricity, is_known) in [
            (6.45, 0.0002, true),
            (6.35, 0.0002, false),
            (14.3, 0.3, false),
            (18.0, 0.0, false),
            (14.3, 1.0, false),
        ] {
            let motion = per_day * TAU / 1440.0;
            let of = Elements {
                motion,
                eccentricity,
                ..iridium
            };
            assert_eq!(Orbit::new(of).is_some(), is_known, "{of:?}");
        }
    }
}
