// SPDX-License-Identifier: BSD-3-Clause
//! Notifies a service manager such as systemd, if one started the gateway: ready, alive, stopping. A thread sends, since packets
//! do not wait for a manager that does not read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;

use crate::linux::queue::{self, Queue};

/// Most notifications that wait.
const WAITING: usize = 8;
/// How long the end of the gateway waits for them.
const PATIENCE: Duration = Duration::from_secs(1);

/// The service manager's requests, and what it is sent.
pub(crate) struct Service {
    /// Time between notifications that the gateway is alive, ns.
    period_ns: Option<u64>,
    next_ns: u64,
    /// None without a service manager.
    notifications: Option<Arc<Queue<NotifyState<'static>>>>,
}

impl Service {
    /// Notifies that packets are carried from now on.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub(crate) fn ready(now_ns: u64) -> io::Result<Service> {
        // Twice within the watchdog's time, so that a late notification is not taken for a missing one.
        let period_ns = sd_notify::watchdog_enabled().map(|most| most.as_nanos() as u64 / 2);
        let mut service = Service {
            period_ns,
            next_ns: now_ns,
            notifications: None,
        };
        if std::env::var_os("NOTIFY_SOCKET").is_some() {
            // Of those that were lost, a sign of life is enough.
            let queue = Arc::new(Queue::new(WAITING, |_| NotifyState::Watchdog));
            // Errors are ignored: packets are carried even if the manager cannot be reached.
            queue::start(queue.clone(), |state| {
                let _ = sd_notify::notify(std::slice::from_ref(state));
                Ok(())
            })?;
            service.notifications = Some(queue);
        }
        service.notify(NotifyState::Ready);
        Ok(service)
    }

    /// Notifies that the gateway is alive when that is due; returns when it is due again.
    pub(crate) fn alive(&mut self, now_ns: u64) -> Option<u64> {
        let period_ns = self.period_ns?;
        if self.next_ns <= now_ns {
            self.notify(NotifyState::Watchdog);
            self.next_ns = now_ns + period_ns;
        }
        Some(self.next_ns)
    }

    /// Notifies that the gateway is about to end.
    pub(crate) fn stopping(&self) {
        self.notify(NotifyState::Stopping);
        if let Some(notifications) = &self.notifications {
            notifications.flush(PATIENCE);
        }
    }

    fn notify(&self, state: NotifyState<'static>) {
        if let Some(notifications) = &self.notifications {
            notifications.push(state);
        }
    }
}
