// SPDX-License-Identifier: BSD-3-Clause
//! What decides: classes, queues, pace and capacity. No clock, socket or file.

pub mod below;
pub mod classify;
pub mod conveyor;
pub mod feedback;
pub mod hub;
pub mod link;
pub mod mss;
pub mod pace;
pub mod routing;
pub mod setup;
pub mod tos;
