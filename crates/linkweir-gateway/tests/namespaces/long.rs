// SPDX-License-Identifier: BSD-3-Clause
//! Tests that take many minutes, for `make test-long`.

use crate::place::environment;
use crate::soak::soak;

pub fn ten_minutes_of_events_take_nothing_from_voice_and_leak_nothing() {
    soak(environment("LINKWEIR_SOAK_LONG_S", 600));
}
