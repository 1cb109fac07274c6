// SPDX-License-Identifier: BSD-3-Clause
//! The keys of a scenario, each declared once. `linkweir_config::keys` says what a declaration is made of, and what is made
//! of it.

pub mod beam;
pub mod bond;
pub mod class;
pub mod constellation;
pub mod flow;
pub mod inner;
pub mod kinds;
pub mod link;
pub mod satellite;
pub mod shapes;
pub mod sources;
pub mod top;

use linkweir_config::keys::{time, Table};
use linkweir_config::trace;

/// All tables of a scenario, in the order of the reference.
pub static TABLES: [&Table; 38] = [
    &top::TOP,
    &link::LINK,
    &link::BURSTS,
    &link::REORDERED,
    &link::LINKS,
    &bond::BOND,
    &bond::BONDED,
    &satellite::SATELLITE,
    &satellite::WALKER,
    &satellite::SHELL,
    &satellite::PLACE,
    &beam::BEAM,
    &beam::RAINFALL,
    &constellation::CONSTELLATION,
    &constellation::STATION,
    &constellation::COMPUTED,
    &constellation::GROUND_LINKS,
    &constellation::SATELLITE_LINKS,
    &class::SCHEDULER,
    &class::CLASS,
    &flow::FLOW,
    &kinds::CBR,
    &kinds::POISSON,
    &kinds::ONOFF,
    &kinds::GREEDY,
    &kinds::TCP,
    &kinds::BULK,
    &kinds::VOICE,
    &kinds::REPLAY,
    &kinds::TRANSFERS,
    &kinds::REQUESTS,
    &kinds::WEB,
    &kinds::VIDEO,
    &inner::RANDOM,
    &inner::PACKETS,
    &inner::ARRIVALS,
    &time::OVER_TIME,
    &trace::keys::DESCRIBED,
];
