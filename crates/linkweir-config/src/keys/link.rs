// SPDX-License-Identifier: BSD-3-Clause
//! Keys of `[link]` that scenarios and gateways read with the same code: what the link carries.

use crate::keys;
use crate::limits;
use crate::units::Kind;
use crate::values::Values;

use super::form::Text;
use super::Hosts;
use super::Treatment::{Adapted, Carried};

const VARIES: &str = "{key} changes over time; {what} gets link.nominal, {nominal}";
const CAPACITY_OVER_TIME: Hosts = Hosts {
    laboratory: Carried,
    gateway: Adapted(VARIES),
    tc: Adapted(VARIES),
    ns3: Carried,
    bounds: Carried,
};
keys! {
    /// The capacity of a link.
    CAPACITY "capacity" {
        RATE "rate": Values { kind: Kind::Rate, min: 0.0, max: limits::RATE_BPS as f64 }, otherwise("none"), CAPACITY_OVER_TIME,
            "capacity; 0 is an outage";
        TRACE "trace": Text { what: "path" }, otherwise("none"), CAPACITY_OVER_TIME,
            "file with the capacity over time, see [traces](#traces); relative to the scenario's folder";
    }
}
