// SPDX-License-Identifier: BSD-3-Clause
//! What applications draw: a value, or a distribution of values.

use linkweir_config::keys::Shape;
use linkweir_config::units::Kind;

use super::super::limits;

/// Bytes that a connection carries at once.
pub(super) const BYTES: Shape = Shape::Random(Some(Kind::Size), 1.0, limits::WRITE_BYTES as f64);
/// Lengths of pauses.
pub(super) const PAUSE: Shape = Shape::Random(Some(Kind::Time), 0.0, limits::DURATION_NS as f64);
/// Numbers of things.
pub(super) const COUNT: Shape = Shape::Random(None, 0.0, limits::OBJECTS as f64);
