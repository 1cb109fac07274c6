// SPDX-License-Identifier: BSD-3-Clause
//! Reloading the configuration while packets wait. Queues and credit stay.
//!
//! All that may fail is done first, in [`Plan::new`]; what follows cannot stop half way.

use std::collections::{HashMap, HashSet};

use linkweir_core::Isolation;
use linkweir_plane::hub::Hub;
use linkweir_plane::setup::{Class, Scheduler};

use super::peers::Peers;
use super::reloading::{Before, Done, Loaded};
use super::station::Station;
use super::{peer_programs, zones, Gateway};
use crate::config::{Config, Peer};
use crate::linux::journal::log;
use crate::tunnel::seal::Secret;

/// A new configuration that can be taken over.
struct Plan {
    config: Config,
    /// Which station each of its peers had; none: it is a new peer.
    places: Vec<Option<usize>>,
    /// Stations of the new peers, in their order.
    fresh: Vec<Station>,
    /// Keys shared with the peers of before, by their station then.
    preshared: Vec<Option<Secret>>,
    /// Another hub, where the peers are others or in another order.
    hub: Option<Hub>,
}

impl Plan {
    /// # Errors
    /// Why the running gateway cannot take the configuration over.
    fn new(
        now_ns: u64,
        old: &Config,
        peers: &mut Peers,
        new: Config,
        secrets: Vec<Option<Secret>>,
    ) -> Result<Plan, String> {
        fixed(old, &new)?;
        let places = places(&old.peers, &new.peers);
        let mut preshared = vec![None; old.peers.len()];
        let mut fresh = Vec::new();
        for ((peer, place), secret) in new.peers.iter().zip(&places).zip(secrets) {
            if let Some(place) = *place {
                preshared[place] = secret;
                continue;
            }
            let (identity, indices) = (peers.identity.as_ref(), &mut peers.indices);
            let station = Station::new(now_ns, &new, peer, (identity, secret), indices);
            fresh.push(station.map_err(|error| error.to_string())?);
        }
        for (peer, place) in new.peers.iter().zip(&places) {
            if let Some(place) = *place {
                let capacities = (&old.peers[place].capacity, &peer.capacity);
                let accepts = peers.stations[place]
                    .link
                    .accepts(&new.scheduler, capacities);
                accepts.map_err(|fault| format!("peer {}: {fault}", peer.name))?;
            }
        }
        let hub = Plan::hub(now_ns, peers, &new, &places)?;
        Ok(Plan {
            config: new,
            places,
            fresh,
            preshared,
            hub,
        })
    }

    /// A hub for other peers than before. The same peers keep theirs, which must accept the new parameters.
    fn hub(
        now_ns: u64,
        peers: &mut Peers,
        new: &Config,
        places: &[Option<usize>],
    ) -> Result<Option<Hub>, String> {
        let Some(across) = &new.across else {
            return Ok(None);
        };
        let mut numbered = places.iter().enumerate();
        let unmoved =
            places.len() == peers.stations.len() && numbered.all(|(at, place)| *place == Some(at));
        if unmoved {
            if let Some(running) = &peers.hub {
                let accepts = running.accepts(across);
                accepts.map_err(|fault| format!("link.across: {fault}"))?;
            }
            return Ok(None);
        }
        // The policy's state has one row per queue, so other queues need another state.
        let queues = places.iter().map(|place| {
            place.map_or_else(Default::default, |place| {
                peers.stations[place].link.as_queue(now_ns)
            })
        });
        let hub = Hub::new(now_ns, across, new.fastest_bps(), queues.collect());
        hub.map(Some).map_err(|fault| fault.to_string())
    }
}

impl Gateway {
    /// Continues a reload of which a step is done.
    pub(super) fn continue_reload(&mut self, now_ns: u64) {
        while let Some(done) = self.reloading.take() {
            match done {
                Done::Read(Ok(loaded)) => match self.take_over(now_ns, loaded) {
                    Ok((refused, before)) => self.reloading.route(refused, before),
                    Err(message) => self.nothing_changed(now_ns, &message),
                },
                Done::Read(Err(message)) => self.nothing_changed(now_ns, &message),
                Done::Routed(routed) => {
                    log(&format!("reloaded {}", self.file.display()));
                    self.warn();
                    for message in self.reloading.end(now_ns) {
                        log(&message);
                    }
                    if let Err(fault) = routed {
                        log(&fault);
                    }
                }
            }
        }
    }

    /// Says once that a reload's file cannot be read yet; returns when to look again, ns.
    pub(super) fn note_slow_reload(&mut self, now_ns: u64) -> Option<u64> {
        let slow_ns = self.reloading.slow_ns()?;
        if now_ns < slow_ns {
            return Some(slow_ns);
        }
        self.reloading.note_slow();
        let file = self.file.display();
        log(&format!(
            "{file} or a key file of it is not read yet after 4 s: does its disk answer? Until it is read the configuration \
             stays as it is, and packets, rules, routes and addresses are handled as before"
        ));
        None
    }

    fn nothing_changed(&mut self, now_ns: u64, why: &str) {
        log(&format!("nothing changed: {why}"));
        self.reloading.end(now_ns);
    }

    /// Takes a configuration over that was read again. Returns the parameters that a policy refused all the same, and what was
    /// before. Packets wait meanwhile, so this costs something per peer, but nothing per prefix.
    ///
    /// # Errors
    /// Why nothing was taken over.
    pub(super) fn take_over(
        &mut self,
        now_ns: u64,
        loaded: Loaded,
    ) -> Result<(Vec<String>, Before), String> {
        let Loaded {
            config: mut new,
            preshared,
            routing,
        } = loaded;
        zones::number(&mut new);
        let Plan {
            config: new,
            places,
            fresh,
            preshared,
            hub,
        } = Plan::new(now_ns, &self.config, &mut self.peers, *new, preshared)?;
        let (mut refused, sessions) = self.change_stations(now_ns, &new, &places, fresh, preshared);
        let Peers {
            stations,
            hub: running,
            ..
        } = &mut self.peers;
        if let (Some(across), Some(running)) = (&new.across, running) {
            if let Some(hub) = hub {
                let before = std::mem::replace(running, hub);
                running.take_over(before, &places);
            } else if let Err(fault) = running.change(now_ns, across) {
                refused.push(format!("link.across keeps its parameters: {fault}"));
            }
            for (at, station) in stations.iter_mut().enumerate() {
                running.channel_changed(now_ns, at, &mut station.link);
            }
        }
        self.egress
            .outbox
            .move_stations(|old| places.iter().position(|place| *place == Some(old)));
        self.ingress.classifier.set_rules(new.rules.clone());
        self.write_recording(now_ns, true);
        let routing = self.peers.index(&new.peers, routing);
        let before = std::mem::replace(&mut self.config, new);
        for at in sessions {
            let station = &mut self.peers.stations[at];
            if let (Some(session), Some(_)) = (&mut station.session, station.endpoint) {
                session.want(now_ns);
            }
            self.peers.wakes.wake(at);
        }
        self.egress.numbered_most = self.config.mtu as usize;
        self.find_names(now_ns);
        self.start_recording(now_ns);
        Ok((refused, (before, routing)))
    }

    /// Puts the stations into the order of the new configuration, with its settings; returns what policies refused, and
    /// the numbers of those whose session begins.
    fn change_stations(
        &mut self,
        now_ns: u64,
        new: &Config,
        places: &[Option<usize>],
        fresh: Vec<Station>,
        mut preshared: Vec<Option<Secret>>,
    ) -> (Vec<String>, Vec<usize>) {
        let mut fresh = fresh.into_iter();
        let Peers {
            stations,
            identity,
            indices,
            ..
        } = &mut self.peers;
        let mut old: Vec<Option<Station>> = stations.drain(..).map(Some).collect();
        let (mut refused, mut sessions) = (Vec::new(), Vec::new());
        for (at, (peer, place)) in new.peers.iter().zip(places).enumerate() {
            let mut begins = place.is_none();
            let kept = place.and_then(|place| old[place].take());
            let Some(mut station) = kept.or_else(|| fresh.next()) else {
                continue;
            };
            if let Some(place) = *place {
                let peers = (&self.config.peers[place], peer);
                if let Err(fault) = station.change(now_ns, new, peers) {
                    refused.push(format!("peer {} keeps its parameters: {fault}", peer.name));
                }
                let secrets = (identity.as_ref(), preshared[place].take());
                match station.change_session(peer, secrets, indices) {
                    Ok(another) => begins = another,
                    Err(error) => {
                        refused.push(format!("peer {} keeps its keys: {error}", peer.name));
                    }
                }
                // The programs are known to the poll by the number of their station, and know the name of their peer.
                if place != at || peer_programs::differ(peers.0, peer) {
                    station.programs = peer_programs::programs(now_ns, peer);
                }
            }
            if begins {
                sessions.push(at);
            }
            stations.push(station);
        }
        (refused, sessions)
    }
}

/// Which peer of before each new one is; none: it is a new peer. A peer is known by its key. In cleartext mode there is none:
/// then it is known by its name or, if that is new, by its endpoint.
fn places(old: &[Peer], new: &[Peer]) -> Vec<Option<usize>> {
    let numbered = || old.iter().enumerate();
    let by_key: HashMap<_, _> = numbered()
        .filter_map(|(at, peer)| Some((peer.public_key?, at)))
        .collect();
    let by_name: HashMap<_, _> = numbered().map(|(at, peer)| (&peer.name, at)).collect();
    let by_endpoint: HashMap<_, _> = numbered()
        .filter_map(|(at, peer)| Some((peer.endpoint?, at)))
        .collect();
    let known = new.iter().map(|peer| match &peer.public_key {
        Some(key) => by_key.get(key).copied(),
        None => by_name.get(&peer.name).copied(),
    });
    let mut places: Vec<Option<usize>> = known.collect();
    let mut taken: HashSet<usize> = places.iter().flatten().copied().collect();
    for (peer, place) in new.iter().zip(&mut places) {
        if let (None, None, Some(endpoint)) = (*place, &peer.public_key, peer.endpoint) {
            let at = by_endpoint.get(&endpoint).copied();
            *place = at.filter(|at| taken.insert(*at));
        }
    }
    places
}

/// Refuses changes that need a restart.
fn fixed(old: &Config, new: &Config) -> Result<(), String> {
    // All fields are listed, so that a new key does not compile until it is decided whether it needs a restart.
    let Config {
        device,
        addresses,
        mtu,
        number_bytes,
        listen,
        listen_device,
        fwmark,
        mode,
        private_key_file,
        user,
        control,
        control_group,
        routes,
        offload,
        below_bytes,
        across,
        scheduler:
            Scheduler {
                info,
                params: _,
                qparams: _,
            },
        classes,
        // These change while packets wait.
        refuses_leaks: _,
        mss_clamp: _,
        dscp: _,
        drain_ns: _,
        overhead_bytes: _,
        mpu_bytes: _,
        rules: _,
        peers: _,
        record: _,
        told: _,
    } = old;
    fn names(classes: &[Class]) -> impl Iterator<Item = &String> {
        classes.iter().map(
            |Class {
                 name,
                 limit: _,
                 flows: _,
                 uses: _,
                 reorder_ns: _,
                 resend: _,
             }| name,
        )
    }
    fn flows(classes: &[Class]) -> impl Iterator<Item = Option<Isolation>> + '_ {
        classes.iter().map(|class| class.flows)
    }
    let policy = |across: &Option<Scheduler>| across.as_ref().map(|across| across.info.name);
    let changed = [
        ("gateway.device", *device != new.device),
        ("gateway.address", *addresses != new.addresses),
        (
            "gateway.mtu",
            // The first path takes the bytes for a number from it, and the last one gives them back: datagrams stay as long.
            *mtu != new.mtu && mtu + number_bytes != new.mtu + new.number_bytes,
        ),
        ("gateway.listen", *listen != new.listen),
        ("gateway.listen_device", *listen_device != new.listen_device),
        (
            "gateway.fwmark, or whether allowed_ips of some peer are all addresses,",
            *fwmark != new.fwmark,
        ),
        ("gateway.mode", *mode != new.mode),
        (
            "gateway.private_key_file",
            *private_key_file != new.private_key_file,
        ),
        ("gateway.control", *control != new.control),
        ("gateway.control_group", *control_group != new.control_group),
        ("gateway.offload", *offload != new.offload),
        ("gateway.routes", *routes != new.routes),
        ("gateway.user", *user != new.user),
        ("scheduler.policy", info.name != new.scheduler.info.name),
        ("link.below", *below_bytes != new.below_bytes),
        (
            "link.across.policy, or whether there is one,",
            policy(across) != policy(&new.across),
        ),
        (
            "the names and the order of the classes",
            names(classes).ne(names(&new.classes)),
        ),
        (
            "flows or l4s_step of a class",
            flows(classes).ne(flows(&new.classes)),
        ),
    ];
    match changed.iter().find(|(_, changed)| *changed) {
        Some((what @ "gateway.mtu", _)) => Err(format!(
            "{what} cannot change while the gateway runs; write {}B, or restart it",
            (mtu + number_bytes).saturating_sub(new.number_bytes)
        )),
        Some((what, _)) => Err(format!(
            "{what} cannot change while the gateway runs; restart it"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::config::{self, Mode};

    const RUNNING: &str = r#"[gateway]
device = "lw0"
address = "10.77.0.1/24"
listen = "192.0.2.1:51820"
mode = "wireguard"
private_key_file = "key"
[link]
rate = "20Mbit"
[scheduler]
policy = "rr"
[[class]]
name = "first"
match = [{ dscp = "EF" }]
[[class]]
name = "rest"
[[peer]]
name = "ship"
public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
allowed_ips = "10.77.0.2/32"
"#;

    fn changed(old: &str, new: &str) -> Config {
        assert!(RUNNING.contains(old), "{old}");
        config::parse(&RUNNING.replacen(old, new, 1), Path::new("up.toml")).unwrap()
    }

    #[test]
    fn settings_of_set_up_need_a_restart() {
        let running = changed("", "");
        let mut cleartext = changed("rate", "nominal = \"20Mbit\"\nrate");
        cleartext.mode = Mode::Cleartext;
        let why = fixed(&running, &cleartext).unwrap_err();
        assert!(why.starts_with("gateway.mode cannot change"), "{why}");
        for (old, new, what) in [
            ("lw0", "lw1", "gateway.device"),
            ("10.77.0.1", "10.77.0.3", "gateway.address"),
            ("[link]", "mtu = \"1300B\"\n[link]", "gateway.mtu"),
            ("[link]", "underlay_mtu = \"1400B\"\n[link]", "gateway.mtu"),
            ("51820", "51821", "gateway.listen"),
            (
                "[link]",
                "listen_device = \"eth0\"\n[link]",
                "gateway.listen_device",
            ),
            ("[link]", "fwmark = 700\n[link]", "gateway.fwmark,"),
            ("10.77.0.2/32", "0.0.0.0/0", "gateway.fwmark,"),
            ("\"key\"", "\"another\"", "gateway.private_key_file"),
            ("[link]", "control = \"/run/lw\"\n[link]", "gateway.control"),
            (
                "[link]",
                "control_group = \"adm\"\n[link]",
                "gateway.control_group",
            ),
            ("[link]", "offload = false\n[link]", "gateway.offload"),
            ("[link]", "routes = false\n[link]", "gateway.routes"),
            ("[link]", "user = \"root\"\n[link]", "gateway.user"),
            ("\"rr\"", "\"drr\"", "scheduler.policy"),
            ("rate", "below = \"16kB\"\nrate", "link.below"),
            (
                "rate",
                "across = { policy = \"pf\" }\nrate",
                "link.across.policy,",
            ),
            (
                "\"rest\"",
                "\"last\"",
                "the names and the order of the classes",
            ),
            (
                "\"rest\"",
                "\"rest\"\nflows = \"drr\"",
                "flows or l4s_step of a class",
            ),
        ] {
            let why = fixed(&running, &changed(old, new)).unwrap_err();
            assert!(why.starts_with(&format!("{what} ")), "{new}: {why}");
        }
        let across = |policy: &str| changed("rate", &format!("across = {{ {policy} }}\nrate"));
        let (pf, drr) = (across("policy = \"pf\""), across("policy = \"drr\""));
        assert!(fixed(&pf, &drr).is_err());
        assert_eq!(fixed(&pf, &across("policy = \"pf\", tc = \"1s\"")), Ok(()));
        for (old, new) in [
            ("20Mbit", "5Mbit"),
            ("\"rest\"", "\"rest\"\nlimit = \"7p\""),
            ("\"EF\"", "\"AF11\""),
            ("\"ship\"", "\"boat\""),
            ("[link]", "leak = \"refuse\"\n[link]"),
            ("[link]", "drain = \"5s\"\ndscp = \"uniform\"\n[link]"),
        ] {
            assert_eq!(fixed(&running, &changed(old, new)), Ok(()), "{new}");
        }
        // Paths change the MTU by what a number takes, unless it is written.
        let path = "0.0.0.0:51820\"\nmode";
        let listens = |text: &str| {
            let text = text
                .replace("192.0.2.1:51820\"\nmode", path)
                .replace("\"rr\"", "\"fifo\"");
            config::parse(&text, Path::new("up.toml")).unwrap()
        };
        let paths = format!("{RUNNING}[[peer.path]]\nname = \"lte\"\nrate = \"1Mbit\"\n");
        let written = |text: &str| listens(&text.replace("[link]", "mtu = \"1300B\"\n[link]"));
        let (without, with) = (listens(RUNNING), listens(&paths));
        assert_eq!(without.mtu, with.mtu + 12);
        for (one, other) in [(&without, &with), (&written(RUNNING), &written(&paths))] {
            assert_eq!(fixed(one, other), Ok(()));
            assert_eq!(fixed(other, one), Ok(()));
        }
        let why = fixed(&without, &written(&paths)).unwrap_err();
        assert!(why.ends_with("; write 1428B, or restart it"), "{why}");
        let cure = |text: &str| listens(&text.replace("[link]", "mtu = \"1428B\"\n[link]"));
        assert_eq!(fixed(&without, &cure(&paths)), Ok(()));
    }
}
