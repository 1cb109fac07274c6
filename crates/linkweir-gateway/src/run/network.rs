// SPDX-License-Identifier: BSD-3-Clause
//! Takes the keeper's reports of the system's network: what other programs removed, and what is missing.

use super::upkeep::Report;
use super::Gateway;
use crate::linux::journal::{tell, Event};
use crate::show::figures::NetworkShow;

impl Gateway {
    /// Takes the newest report, and says what is new in it.
    pub(super) fn take_network(&mut self) {
        match self.keeper.report() {
            Ok(None) => {}
            Ok(Some(report)) => {
                let show = NetworkShow::from(report);
                tell_changes(&self.network, &show, &self.config.device);
                self.network = show;
            }
            Err(_) => {
                let _ = self.poll.remove(&self.keeper);
                self.network.watched = false;
                let what = "the process that keeps rules, routes and addresses has ended: what other programs remove is not \
                            restored, and SIGHUP has no effect; restart the gateway";
                tell(Event::NetworkUnwatched, "", what);
            }
        }
    }
}

impl From<Report> for NetworkShow {
    fn from(report: Report) -> NetworkShow {
        NetworkShow {
            watched: true,
            restored_rules: report.rules,
            restored_routes: report.routes,
            restored_addresses: report.addresses,
            restored_mtus: report.mtus,
            contested: report.contested,
            missing: report.missing,
            missing_first: report.sentences,
        }
    }
}

fn tell_changes(before: &NetworkShow, now: &NetworkShow, device: &str) {
    if let Some(what) = restored(before, now) {
        let what = format!("another program changed what the tunnel needs; added again: {what}");
        tell(Event::NetworkRestored, "", &what);
    }
    if now.contested && !before.contested {
        let what = "another program removes the tunnel's rules, routes or addresses as fast as they are added; \
                    they are added again ten times a second at most: find that program and stop it";
        tell(Event::NetworkContested, "", what);
    }
    let new = |sentence: &&String| !before.missing_first.contains(sentence);
    for sentence in now.missing_first.iter().filter(new) {
        tell(Event::RouteMissing, "", sentence);
    }
    if now.missing == 0 && before.missing > 0 {
        let what = format!("all addresses, routes and rules of {device} are there now");
        tell(Event::RouteFound, "", &what);
    }
}

/// What was added again between two reports.
fn restored(before: &NetworkShow, now: &NetworkShow) -> Option<String> {
    let counts = [
        (now.restored_rules - before.restored_rules, "rules"),
        (now.restored_routes - before.restored_routes, "routes"),
        (
            now.restored_addresses - before.restored_addresses,
            "addresses",
        ),
        (now.restored_mtus - before.restored_mtus, "MTU"),
    ];
    let some = counts.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = some
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_restored_is_listed() {
        let before = NetworkShow::new();
        assert_eq!(restored(&before, &before), None);
        let now = NetworkShow {
            restored_rules: 6,
            restored_addresses: 1,
            ..NetworkShow::new()
        };
        assert_eq!(
            restored(&before, &now).as_deref(),
            Some("6 rules, 1 addresses")
        );
        assert_eq!(restored(&now, &now), None);
    }
}
