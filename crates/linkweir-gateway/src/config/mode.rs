// SPDX-License-Identifier: BSD-3-Clause
//! How packets travel between the ends.

use linkweir_config::keys::gateway::MODE;

use crate::tunnel::seal;

/// How packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sealed with the WireGuard protocol.
    Wireguard,
    /// In the clear, for the laboratory. Anyone on the path can read and forge them.
    Cleartext,
}

impl Mode {
    /// Its name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        MODE.form.of[self as usize]
    }

    /// Bytes a packet grows by inside UDP.
    #[must_use]
    pub fn overhead_bytes(self) -> u32 {
        match self {
            Mode::Wireguard => seal::OVERHEAD_BYTES,
            Mode::Cleartext => 0,
        }
    }
}
