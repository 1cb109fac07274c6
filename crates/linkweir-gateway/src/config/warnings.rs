// SPDX-License-Identifier: BSD-3-Clause
//! Settings that are valid and do not do on a slow link what they seem to: `check`, `up` and `show` name them with the cure.

use linkweir_config::queue::{self, Reserved};
use linkweir_config::units::{self, Kind};
use linkweir_plane::reservation::Reservation;

use super::peer_paths::{millis, with_turns, REORDER_NS, TURNS};
use super::{Config, Peer};
use linkweir_plane::setup::{Class, Scheduler};

/// Gaps between the turns of a class that are not worth a word, ns.
const GAP_NS: u64 = 1_000_000_000;
/// The least value of `burst`.
const LEAST_BURST_PKTS: u64 = 2;

impl Config {
    /// What to know about the link to a peer of this name while it carries `link_bps`: a sentence for each setting.
    #[must_use]
    pub fn warnings_at(&self, peer: &str, link_bps: u64) -> Vec<String> {
        let classes = 0..self.classes.len();
        let all = classes.flat_map(|at| {
            [
                self.too_young(at, peer, link_bps),
                self.far_apart(at, peer, link_bps),
                self.starves_l4s(at, link_bps),
            ]
        });
        all.flatten().collect()
    }

    /// The same of the slowest link, at the rate that is configured for it.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let slowest = self
            .peers
            .iter()
            .min_by_key(|peer| peer.capacity.nominal_bps);
        let mut all = slowest.map_or_else(Vec::new, |peer| {
            self.warnings_at(&peer.name, peer.capacity.nominal_bps)
        });
        all.extend(
            self.peers
                .iter()
                .find_map(|peer| self.sent_again_late(peer, 0)),
        );
        all
    }

    /// What a dead path had of a class is sent again when the path is known to be dead, and goes one way as the packets behind it
    /// did before: so those are held at the far end for as long as that takes, and until the repetitions have had their turns.
    /// `rtt_ns` is the longest round trip that is known; without one, the sentence says from when on it counts.
    #[must_use]
    pub fn sent_again_late(&self, peer: &Peer, rtt_ns: u64) -> Option<String> {
        let probing = peer.probing.filter(|probing| probing.at_once)?;
        let of_round_trip = 2 * rtt_ns > probing.failover_ns;
        let noticed_ns = probing.every_ns + probing.failover_ns.max(2 * rtt_ns);
        let raised_ns = with_turns(noticed_ns).min(REORDER_NS.1);
        let late = |class: &&Class| {
            class.resend
                && class
                    .reorder_ns
                    .is_some_and(|ns| (1..raised_ns.max(noticed_ns)).contains(&ns))
        };
        let class = self.classes.iter().find(late)?;
        let reorder_ns = class.reorder_ns?;
        let some = if reorder_ns < noticed_ns {
            ""
        } else {
            "some of "
        };
        let cure = if noticed_ns < REORDER_NS.1 {
            let raise = format!("raise reorder at both ends to {}", millis(raised_ns));
            if of_round_trip {
                raise
            } else {
                let every = millis(with_turns(probing.every_ns));
                format!("{raise}, or to {every} and three round trips if that is longer")
            }
        } else if of_round_trip {
            "no reorder is long enough for this round trip: use paths = \"all\" for what must not be lost".to_string()
        } else {
            let most_ns = REORDER_NS.1 / TURNS.0 * TURNS.1 / 1_000_000 * 1_000_000;
            format!(
                "lower every and failover of probe to {} together, and raise reorder at both ends to {}",
                units::show_whole(most_ns, Kind::Time),
                units::show_whole(REORDER_NS.1, Kind::Time)
            )
        };
        let (round_trip, or) = if of_round_trip {
            (
                format!(" with a round trip of {}", millis(rtt_ns)),
                String::new(),
            )
        } else {
            let every = units::show_whole(probing.every_ns, Kind::Time);
            let or = format!(", or {every} and two round trips if that is longer,");
            (String::new(), or)
        };
        Some(format!(
            "class {}: a path to peer {}{round_trip} that falls silent is noticed after {}{} and reorder is {}, so {some}what is \
             sent again comes too late; {cure}",
            class.name,
            peer.name,
            units::show_whole(noticed_ns, Kind::Time),
            if or.is_empty() { "," } else { &or },
            units::show_whole(reorder_ns, Kind::Time),
        ))
    }

    /// How long the largest packet occupies a link of this rate, ns.
    fn packet_ns(&self, link_bps: u64) -> u64 {
        self.wire().packet_ns(self.mtu as usize, link_bps)
    }

    /// A packet that comes while the largest one is sent would be too old before it could leave.
    fn too_young(&self, class: usize, peer: &str, link_bps: u64) -> Option<String> {
        let class = &self.classes[class];
        let (age_ns, packet_ns) = (class.limit.max_age_ns?, self.packet_ns(link_bps));
        (link_bps > 0 && age_ns <= packet_ns).then(|| {
            format!(
                "class {}: at {} the largest packet ({} bytes on the link) takes {} to peer {peer}, and max_age is {}, so \
                 packets that come meanwhile are dropped; raise max_age to {}, or lower gateway.mtu",
                class.name,
                units::show_whole(link_bps, Kind::Rate),
                self.wire_bytes(self.mtu as usize),
                millis(packet_ns),
                units::show_whole(age_ns, Kind::Time),
                millis(2 * packet_ns),
            )
        })
    }

    /// Flows of L4S below a reservation whose turns or packets take longer than these flows may wait unmarked.
    fn starves_l4s(&self, class: usize, link_bps: u64) -> Option<String> {
        let Class { name, flows, .. } = &self.classes[class];
        let Scheduler { info, qparams, .. } = &self.scheduler;
        let row = qparams.get(class * info.qparams.len()..)?;
        let reserved = Reserved::of(info, row, link_bps)?;
        let cure = queue::starves_l4s((*flows)?, &reserved)?;
        Some(format!("class {name}: {cure}"))
    }

    /// A reserved rate that comes in turns with long gaps between them.
    fn far_apart(&self, class: usize, peer: &str, link_bps: u64) -> Option<String> {
        let reservation = Reservation::of(&self.scheduler, class)?;
        let rate_bps = reservation.rate_bps(link_bps);
        let burst_pkts = reservation.burst_pkts();
        let gap_ns = reservation.gap_ns(link_bps, burst_pkts)?;
        if gap_ns <= GAP_NS || burst_pkts <= LEAST_BURST_PKTS || rate_bps >= link_bps {
            return None;
        }
        let fits = |burst: &u64| {
            reservation
                .gap_ns(link_bps, *burst)
                .is_some_and(|gap_ns| gap_ns <= GAP_NS)
        };
        let burst = (LEAST_BURST_PKTS..burst_pkts).rev().find(fits);
        let burst = burst.unwrap_or(LEAST_BURST_PKTS);
        Some(format!(
            "class {}: at {} its {} to peer {peer} come in turns of {burst_pkts} packets with gaps of {}; burst = \"{burst}p\" \
             makes these {}",
            self.classes[class].name,
            units::show_whole(link_bps, Kind::Rate),
            units::show_whole(rate_bps, Kind::Rate),
            millis(gap_ns),
            millis(reservation.gap_ns(link_bps, burst)?),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::parse;

    /// The warnings of a gateway with voice, a reservation, and the rest.
    fn warned(rate: &str, voice: &str, reserved: &str) -> Vec<String> {
        let text = format!(
            "[gateway]\ndevice = \"lw0\"\nlisten = \"0.0.0.0:51820\"\nmode = \"cleartext\"\nunderlay_mtu = \"1500B\"\n\
             [link]\nrate = \"{rate}\"\n[scheduler]\npolicy = \"pss\"\n\
             [[class]]\nname = \"ef\"\nmatch = [{{ dscp = \"EF\" }}]\nlevel = 0\n{voice}\n\
             [[class]]\nname = \"af\"\nmatch = [{{ port = 3000 }}]\nlevel = 1\nlow_level = 3\n{reserved}\n\
             [[class]]\nname = \"rest\"\nlevel = 2\n\
             [[peer]]\nname = \"hub\"\nendpoint = \"192.0.2.1:51820\"\nallowed_ips = \"10.78.0.0/24\"\n"
        );
        parse(&text, Path::new("gateway.toml")).unwrap().warnings()
    }

    const RESERVED: &str = "rate = \"8kbit\"\nburst = \"2p\"";

    #[test]
    fn an_age_below_the_time_of_a_packet_is_named_with_the_cure() {
        let young = "max_age = \"200ms\"";
        assert_eq!(
            warned("16kbit", young, RESERVED),
            [
                "class ef: at 16kbit the largest packet (1500 bytes on the link) takes 750ms to peer hub, and max_age is \
                 200ms, so packets that come meanwhile are dropped; raise max_age to 1.5s, or lower gateway.mtu"
            ]
        );
        // 1500 bytes take 200 ms at 60 kbit/s.
        assert_eq!(
            warned("60kbit", young, "rate = \"30kbit\"\nburst = \"2p\"").len(),
            1
        );
        assert!(warned("61kbit", young, "rate = \"30kbit\"\nburst = \"2p\"").is_empty());
        assert!(warned("16kbit", "max_age = \"751ms\"", RESERVED).is_empty());
        assert!(
            warned("16kbit", "", RESERVED).is_empty(),
            "the default follows"
        );
    }

    #[test]
    fn a_reserved_rate_in_turns_far_apart_is_named_with_the_cure() {
        let reserved = "rate = \"20kbit\"";
        // 19 packets of 1514 bytes times 44/64, and 1 such packet, at 20 kbit/s.
        assert_eq!(
            warned("64kbit", "", reserved),
            [
                "class af: at 64kbit its 20kbit to peer hub come in turns of 20 packets with gaps of 7.911s; burst = \"3p\" \
                 makes these 833ms"
            ]
        );
        assert!(warned("64kbit", "", "rate = \"20kbit\"\nburst = \"3p\"").is_empty());
        assert!(warned("2Mbit", "", "rate = \"500kbit\"").is_empty());
        assert!(warned(
            "64kbit",
            "",
            "rate = \"20kbit\"\nlr = \"30kbit\"\nlm = \"60kbit\""
        )
        .is_empty());
    }

    #[test]
    fn the_default_age_of_voice_follows_the_rate() {
        let text = |rate: &str| {
            format!(
                "[gateway]\ndevice = \"lw0\"\nlisten = \"0.0.0.0:51820\"\nmode = \"cleartext\"\n\
                 [scheduler]\npolicy = \"strict\"\n[link]\n\
                 [[class]]\nname = \"ef\"\nmatch = [{{ dscp = \"EF\" }}]\n[[class]]\nname = \"rest\"\n\
                 [[peer]]\nname = \"a\"\nrate = \"20Mbit\"\nendpoint = \"192.0.2.1:51820\"\nallowed_ips = \"10.1.0.0/24\"\n\
                 [[peer]]\nname = \"b\"\nrate = \"{rate}\"\nendpoint = \"192.0.2.2:51820\"\nallowed_ips = \"10.2.0.0/24\"\n"
            )
        };
        for (rate, age_ms) in [
            ("16kbit", 1500),
            ("64kbit", 375),
            ("120kbit", 200),
            ("20Mbit", 200),
        ] {
            let config = parse(&text(rate), Path::new("gateway.toml")).unwrap();
            let age_ns = config.classes[0].limit.max_age_ns;
            assert_eq!(age_ns, Some(age_ms * 1_000_000), "{rate}");
            assert_eq!(config.classes[1].limit.max_age_ns, None);
        }
    }
}
