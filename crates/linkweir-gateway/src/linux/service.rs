// SPDX-License-Identifier: BSD-3-Clause
//! What a service manager such as systemd hears of the gateway, if one started it: that it is ready, that it lives, that it ends.

use sd_notify::NotifyState;

/// Who is told; nobody without a service manager.
pub struct Service {
    /// How often it wants to hear that the gateway lives, ns.
    period_ns: Option<u64>,
    next_ns: u64,
}

impl Service {
    /// Says that packets are carried from now on.
    #[must_use]
    pub fn ready(now_ns: u64) -> Service {
        notify(&NotifyState::Ready);
        // Twice within the time it waits, so that one that comes late is none that is missing.
        let period_ns = sd_notify::watchdog_enabled().map(|most| most.as_nanos() as u64 / 2);
        Service {
            period_ns,
            next_ns: now_ns,
        }
    }

    /// Says that the gateway lives when that is due; returns when it is due again.
    pub fn alive(&mut self, now_ns: u64) -> Option<u64> {
        let period_ns = self.period_ns?;
        if self.next_ns <= now_ns {
            notify(&NotifyState::Watchdog);
            self.next_ns = now_ns + period_ns;
        }
        Some(self.next_ns)
    }

    /// Says that the gateway is about to end.
    pub fn stopping(&self) {
        notify(&NotifyState::Stopping);
    }
}

/// A manager that cannot be reached is no reason to carry no packets.
fn notify(state: &NotifyState<'_>) {
    let _ = sd_notify::notify(std::slice::from_ref(state));
}
