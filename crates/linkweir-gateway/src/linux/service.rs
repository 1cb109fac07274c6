// SPDX-License-Identifier: BSD-3-Clause
//! Notifies a service manager such as systemd, if one started the gateway: ready, alive, stopping.

use sd_notify::NotifyState;

/// The service manager's requests. Without a service manager, notifications go nowhere.
pub(crate) struct Service {
    /// Time between notifications that the gateway is alive, ns.
    period_ns: Option<u64>,
    next_ns: u64,
}

impl Service {
    /// Notifies that packets are carried from now on.
    #[must_use]
    pub(crate) fn ready(now_ns: u64) -> Service {
        notify(&NotifyState::Ready);
        // Twice within the watchdog's time, so that a late notification is not taken for a missing one.
        let period_ns = sd_notify::watchdog_enabled().map(|most| most.as_nanos() as u64 / 2);
        Service {
            period_ns,
            next_ns: now_ns,
        }
    }

    /// Notifies that the gateway is alive when that is due; returns when it is due again.
    pub(crate) fn alive(&mut self, now_ns: u64) -> Option<u64> {
        let period_ns = self.period_ns?;
        if self.next_ns <= now_ns {
            notify(&NotifyState::Watchdog);
            self.next_ns = now_ns + period_ns;
        }
        Some(self.next_ns)
    }

    /// Notifies that the gateway is about to end.
    pub(crate) fn stopping(&self) {
        notify(&NotifyState::Stopping);
    }
}

/// Errors are ignored: packets are carried even if the manager cannot be reached.
fn notify(state: &NotifyState<'_>) {
    let _ = sd_notify::notify(std::slice::from_ref(state));
}
