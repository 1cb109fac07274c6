// SPDX-License-Identifier: BSD-3-Clause
//! The engine against numbers worked by hand, queueing theory and the specification of the schedulers.

mod applications;
mod beam;
mod build;
mod by_hand;
mod csi;
mod flows;
mod l4s;
mod measures;
mod networks;
mod published;
mod random_lives;
mod random_networks;
mod satellite;
mod snapshots;
mod theory;
mod users;
