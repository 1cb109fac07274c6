// SPDX-License-Identifier: BSD-3-Clause
//! Several ways to a peer: where each leads, and which of them is in use.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use linkweir_plane::bytes::outbox::Source;
use linkweir_plane::underlays::{Change, Underlays};

use crate::config::Peer;
use crate::linux::leads::Own;
use crate::linux::paths;
use crate::linux::tunnel_socket::{is_passing, Local};
use crate::show::figures::UnderlayShow;

/// Where a way leads.
struct UnderlayPath {
    name: String,
    /// None: the peer has not sent over it yet.
    endpoint: Option<SocketAddr>,
    /// What is configured, which is tried again when the peer is silent where it sent from last.
    configured: Option<SocketAddr>,
    /// Whether the peer sent from the endpoint without saying that it is this way.
    is_guessed: bool,
    /// Name of the device, and its number.
    device: Option<String>,
    number: u32,
    /// The address of this end.
    address: Option<IpAddr>,
    /// Whether that is configured, or else the one that the peer last sent to.
    is_fixed: bool,
    /// Whether it leads into the tunnel itself; none: routes may have changed.
    is_looped: Option<bool>,
}

impl UnderlayPath {
    /// Whether it is known to be this way which leads to its endpoint.
    fn is_named(&self) -> bool {
        self.is_fixed || self.configured.is_some() || !self.is_guessed
    }

    /// Whether what came in there may have come over this way.
    fn fits(&self, to: Local) -> bool {
        let device_fits = self.device.is_none() || self.number == to.device;
        let is_address = |address: IpAddr| address == to.address;
        device_fits && (!self.is_fixed || self.address.is_none_or(is_address))
    }
}

/// The numbers of devices by name, and whether they carry packets, while they are looked for.
pub(super) type Devices = HashMap<String, (u32, bool)>;

/// The ways to a peer.
pub(super) struct PeerUnderlays {
    pub(super) choice: Underlays,
    underlay_paths: Vec<UnderlayPath>,
    /// The index of the present session.
    session: Option<u32>,
    /// Handshakes that were sent to begin one since there was one.
    handshakes: u32,
    /// Whether the last of them went over all ways.
    last_went_over_all: bool,
    /// Whether a mute peer has answered such a handshake, maybe over another way than the preferred one, which may work, too.
    may_be_on_other_path: bool,
    /// Whether it was asked over a preferred way in this session.
    has_asked_preferred: bool,
}

/// Handshakes that a mute peer is sent over the way in use before it is sent them over all. Of these it answers the copy that comes
/// first, over whichever way, and stays there, so one that is not up yet has some time.
const HANDSHAKES: u32 = 3;

impl PeerUnderlays {
    /// The ways to a peer as they are configured; none: there is but one.
    pub(super) fn new(now_ns: u64, peer: &Peer) -> Option<PeerUnderlays> {
        let probing = peer.probing?;
        let path = |underlay: &crate::config::Underlay| UnderlayPath {
            name: underlay.name.clone(),
            endpoint: underlay.endpoint,
            configured: underlay.endpoint,
            is_guessed: false,
            device: underlay.device.clone(),
            number: 0,
            address: underlay.source,
            is_fixed: underlay.source.is_some() || underlay.device.is_some(),
            is_looped: None,
        };
        let mut found = PeerUnderlays {
            choice: Underlays::new(now_ns, probing, peer.underlays.len()),
            underlay_paths: peer.underlays.iter().map(path).collect(),
            session: None,
            handshakes: 0,
            last_went_over_all: false,
            may_be_on_other_path: false,
            has_asked_preferred: false,
        };
        found.find_leads();
        found.find_devices(now_ns, &mut Devices::new());
        Some(found)
    }

    fn find_leads(&mut self) {
        for (way, path) in self.underlay_paths.iter().enumerate() {
            self.choice.set_leads(way, path.endpoint.is_some());
        }
    }

    /// Takes over where the peer has sent from over ways of the same name, which are not configured, and which way is in use.
    pub(super) fn inherit(&mut self, now_ns: u64, before: &PeerUnderlays) {
        self.session = before.session;
        let in_use = &before.underlay_paths[before.current()].name;
        let mut names = self.underlay_paths.iter().map(|path| &path.name);
        let in_use = names.position(|name| name == in_use);
        self.choice.inherit(now_ns, &before.choice, in_use);
        for path in &mut self.underlay_paths {
            let mut known = before.underlay_paths.iter();
            let known = known.find(|other| other.name == path.name);
            if let (None, Some(known)) = (path.endpoint, known) {
                path.endpoint = known.endpoint;
                path.is_guessed = known.is_guessed;
                if !path.is_fixed {
                    path.address = known.address;
                }
            }
        }
        self.find_leads();
    }

    /// A datagram came in the session with this index. Returns whether that has begun.
    #[inline]
    pub(super) fn meets(&mut self, session: u32) -> bool {
        let is_new = self.session != Some(session);
        if is_new {
            self.session = Some(session);
            self.handshakes = 0;
            self.has_asked_preferred = false;
            self.may_be_on_other_path |= std::mem::take(&mut self.last_went_over_all);
        }
        is_new
    }

    /// Finds the numbers of the devices, which may have come or gone, and those that carry nothing. Returns whether a way is
    /// broken now, or no longer.
    pub(super) fn find_devices(&mut self, now_ns: u64, devices: &mut Devices) -> bool {
        let mut is_news = false;
        for (at, path) in self.underlay_paths.iter_mut().enumerate() {
            path.is_looped = None;
            let Some(name) = &path.device else {
                // What refused datagrams may have gone.
                is_news |= self.choice.set_broken(now_ns, at, false);
                continue;
            };
            if !self.choice.are_at_once() {
                path.number = paths::number_or_none(name);
                continue;
            }
            let (number, carries) = *devices.entry(name.clone()).or_insert_with(|| {
                let number = paths::number_or_none(name);
                (number, paths::carries(number))
            });
            path.number = number;
            is_news |= self.choice.set_broken(now_ns, at, !carries);
        }
        is_news
    }

    /// The way in use, or the first that leads somewhere while that one does not.
    pub(super) fn current(&self) -> usize {
        self.choice.current()
    }

    /// Where the way in use leads.
    pub(super) fn endpoint(&self) -> Option<SocketAddr> {
        self.underlay_paths[self.current()].endpoint
    }

    /// What the way in use sends from.
    pub(super) fn source(&self) -> Source {
        self.source_of(self.current())
    }

    /// Where a way leads, and what it sends from; none: the peer has not sent over it yet.
    pub(super) fn path(&self, way: usize) -> Option<(SocketAddr, Source)> {
        let endpoint = self.underlay_paths[way].endpoint?;
        Some((endpoint, self.source_of(way)))
    }

    /// The way that leads there.
    pub(super) fn way_of(&self, to: SocketAddr, from: Source) -> Option<usize> {
        let mut ways = 0..self.underlay_paths.len();
        ways.find(|way| self.path(*way) == Some((to, from)))
    }

    /// The way over which a mute peer, which names none, has sent from there to here; none: it came through a device or to an
    /// address of none of those that lead there.
    fn came_over(&self, from: SocketAddr, to: Option<Local>) -> Option<usize> {
        let (paths, current) = (&self.underlay_paths, self.current());
        let ways = || std::iter::once(current).chain(0..paths.len());
        let fits = |way: &usize| to.is_none_or(|to| paths[*way].fits(to));
        let leads_there = |way: &usize| paths[*way].endpoint == Some(from);
        if ways().any(|way| leads_there(&way)) {
            return ways().find(|way| leads_there(way) && fits(way));
        }
        let is_fixed = |way: &usize| paths[*way].is_fixed;
        let found = ways().find(|way| is_fixed(way) && fits(way));
        let free = || ways().find(|way| !is_fixed(way));
        Some(found.or_else(free).unwrap_or(current))
    }

    /// A mute peer has sent from there to here: it is sent to there, over the way by which that came. Returns the name of that
    /// way if another one was used before; none: it says nothing.
    pub(super) fn follow(&mut self, from: SocketAddr, to: Option<Local>) -> Option<Option<&str>> {
        let way = self.came_over(from, to)?;
        if !self.choice.is_mute() || self.choice.has_no_carrier(way) {
            return None;
        }
        self.learn(way, from, to, false);
        let is_other = self.choice.follow(way).is_some();
        Some(is_other.then_some(self.underlay_paths[way].name.as_str()))
    }

    /// The peer is silent where the way in use leads: another way is used if there is one, and of this one what is configured is
    /// tried next.
    pub(super) fn fell_silent(&mut self) -> Option<Change> {
        let way = self.current();
        let change = self.choice.fell_silent();
        let path = &mut self.underlay_paths[way];
        if self.choice.is_mute() && path.configured.is_some() && path.is_guessed {
            path.endpoint = path.configured;
            path.is_guessed = false;
            path.is_looped = None;
        }
        change
    }

    /// Whether a probe over a way may say its name: where it leads may have been guessed.
    pub(super) fn is_named(&self, way: usize) -> bool {
        self.underlay_paths[way].is_named()
    }

    /// The peer has sent over a way from there to here, and has named the way or not.
    pub(super) fn learn(&mut self, way: usize, from: SocketAddr, to: Option<Local>, names: bool) {
        let path = &mut self.underlay_paths[way];
        let address = match to {
            _ if path.is_fixed => path.address,
            Some(to) => Some(to.address),
            None => path.address,
        };
        if names || path.endpoint != Some(from) {
            path.is_guessed = !names;
        }
        if (path.endpoint, path.address) != (Some(from), address) {
            path.endpoint = Some(from);
            path.address = address;
            path.is_looped = None;
            self.choice.set_leads(way, true);
        }
        if !names {
            return;
        }
        // What was guessed to be another way is this one.
        for (other, path) in self.underlay_paths.iter_mut().enumerate() {
            if other != way && path.endpoint == Some(from) && !path.is_named() {
                path.endpoint = None;
                path.is_guessed = false;
                self.choice.set_leads(other, false);
            }
        }
    }

    /// A datagram was sent over a way, or the system has refused it.
    pub(super) fn sent(&mut self, now_ns: u64, way: usize, sent: &io::Result<()>) {
        let is_refused = sent.as_ref().is_err_and(|error| !is_passing(error));
        if is_refused && self.choice.are_at_once() {
            self.choice.refused(now_ns, way);
        }
    }

    /// Whether a way leads into the tunnel itself.
    pub(super) fn is_looped(&mut self, way: usize, own: &Own) -> bool {
        let Some((to, from)) = self.path(way) else {
            return false;
        };
        let path = &mut self.underlay_paths[way];
        *path
            .is_looped
            .get_or_insert_with(|| own.leads_into_itself(to, from))
    }

    fn source_of(&self, way: usize) -> Source {
        let path = &self.underlay_paths[way];
        Source {
            address: path.address,
            device: path.number,
        }
    }

    /// Over which ways a handshake goes: over all that lead past the tunnel, as which of them works is not known. One that may be
    /// mute would answer over any of them, so it is asked over the way in use first.
    pub(super) fn for_handshake(&mut self, own: &Own) -> Vec<usize> {
        self.handshakes = self.handshakes.saturating_add(1);
        let may_be_mute = self.choice.are_at_once() && self.choice.is_mute();
        let current = self.current();
        let is_first = may_be_mute && self.handshakes <= HANDSHAKES;
        let asks_one = is_first && !self.is_looped(current, own);
        self.last_went_over_all = may_be_mute && !asks_one;
        let ways = match asks_one {
            true => current..current + 1,
            false => 0..self.underlay_paths.len(),
        };
        ways.filter(|way| !self.is_looped(*way, own)).collect()
    }

    /// Over which way the handshake goes that changes the keys of a session: over the one in use. A mute peer that may be on
    /// another way than the preferred one is asked over the first preferred way that works, as far as is known, and uses that if
    /// it answers; if not, the protocol asks again in 5 s, while the session lasts. That holds once for each session, and only
    /// while the peer is heard over the way in use: a peer that fell silent needs the way that worked.
    pub(super) fn for_new_keys(&mut self, own: &Own, is_heard: bool) -> usize {
        let current = self.current();
        let may_be_on_other = self.may_be_on_other_path && self.choice.is_mute() && current > 0;
        self.may_be_on_other_path = may_be_on_other;
        if !may_be_on_other || !is_heard || self.has_asked_preferred {
            return current;
        }
        self.has_asked_preferred = true;
        let works = |way: &usize| !self.choice.is_broken(*way) && self.path(*way).is_some();
        let preferred: Vec<usize> = (0..current).filter(works).collect();
        let mut past = preferred
            .into_iter()
            .filter(|way| !self.is_looped(*way, own));
        past.next().unwrap_or(current)
    }

    /// Their figures.
    pub(super) fn show(&self, peer: &Peer) -> Vec<UnderlayShow> {
        let numbered = peer.underlays.iter().enumerate();
        let show = |(way, configured): (usize, &crate::config::Underlay)| {
            let (answers, rtt_ns) = self.choice.answers(way);
            Some(UnderlayShow {
                name: configured.name.clone(),
                endpoint: configured.endpoint?,
                in_use: way == self.choice.in_use(),
                answers_now: self.choice.is_good(way),
                answers,
                rtt_ns,
            })
        };
        numbered.filter_map(show).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUB: [&str; 2] = ["", ""];

    /// Ways to a peer whose two paths have these further keys.
    fn ways(keys: [&str; 2]) -> PeerUnderlays {
        let text = include_str!("../../configs/boat.toml");
        let at = text.find("[[peer.path]]").unwrap();
        let path = |(name, keys): (&str, &str)| {
            format!("[[peer.path]]\nname = \"{name}\"\nrate = \"8Mbit\"\n{keys}\n")
        };
        let paths = ["starlink", "lte"].into_iter().zip(keys).map(path);
        let text = text[..at].to_string() + &paths.collect::<String>();
        let config = crate::config::parse(&text, std::path::Path::new("boat.toml")).unwrap();
        let mut ways = PeerUnderlays::new(0, &config.peers[0]).unwrap();
        for (way, path) in ways.underlay_paths.iter_mut().enumerate() {
            if path.device.is_some() {
                path.number = way as u32 + 7;
                ways.choice.set_broken(0, way, false);
            }
        }
        ways
    }

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 51_820))
    }

    fn here(device: u32) -> Option<Local> {
        let address = IpAddr::from([198, 51, 100, 1]);
        Some(Local { address, device })
    }

    /// The endpoints of both ways.
    fn ends(ways: &PeerUnderlays) -> [Option<SocketAddr>; 2] {
        [0, 1].map(|way| ways.path(way).map(|(to, _)| to))
    }

    #[test]
    fn a_guess_is_not_named_and_gives_way_to_the_peers_word() {
        let mut ways = ways(HUB);
        assert_eq!(ways.endpoint(), None);
        assert_eq!(ways.follow(at(2), here(3)), Some(None));
        assert_eq!(ends(&ways), [Some(at(2)), None]);
        assert!(!ways.is_named(0));
        // It moves, or sends over the other path: that cannot be told.
        assert_eq!(ways.follow(at(3), here(4)), Some(None));
        assert_eq!(ends(&ways), [Some(at(3)), None]);
        // It says that this is the other path.
        ways.learn(1, at(3), here(4), true);
        assert_eq!(ends(&ways), [None, Some(at(3))]);
        assert_eq!(ways.current(), 1);
        assert!(ways.is_named(1));
        ways.learn(0, at(2), here(3), true);
        assert_eq!(ends(&ways), [Some(at(2)), Some(at(3))]);
        assert!(ways.is_named(0));
    }

    #[test]
    fn one_endpoint_behind_two_devices_is_told_by_these() {
        let key = |device: &str| format!("endpoint = \"192.0.2.2:51820\"\ndevice = \"{device}\"");
        let mut ways = ways([&key("lw-none1"), &key("lw-none2")]);
        assert_eq!(ways.follow(at(2), here(8)), Some(Some("lte")));
        assert_eq!(ways.follow(at(2), here(8)), Some(None));
        assert_eq!(ways.follow(at(2), here(9)), None, "a device of neither");
        // It has another port over the first one.
        assert_eq!(ways.follow(at(5), here(7)), Some(Some("starlink")));
        assert_eq!(ends(&ways), [Some(at(5)), Some(at(2))]);
        assert!(
            ways.is_named(0),
            "what is sent through this device is this path"
        );
        ways.choice.set_broken(0, 1, true);
        assert_eq!(ways.follow(at(6), here(8)), None, "without a carrier");
        assert_eq!(ends(&ways), [Some(at(5)), Some(at(2))]);
        assert_eq!(ways.fell_silent(), None, "the other one is broken");
        assert_eq!(ends(&ways), [Some(at(2)), Some(at(2))]);
    }

    #[test]
    fn a_handshake_goes_over_all_when_the_way_in_use_has_no_answer() {
        let own = Own::default();
        let key = |last: u8| format!("endpoint = \"192.0.2.{last}:51820\"");
        let mut ways = ways([&key(2), &key(3)]);
        let mut asked = || {
            let all = ways.for_handshake(&own);
            let to = all.into_iter().filter_map(|way| Some(ways.path(way)?.0));
            to.collect::<Vec<_>>()
        };
        for _ in 0..HANDSHAKES {
            assert_eq!(asked(), [at(2)]);
        }
        assert_eq!(asked(), [at(2), at(3)]);
        assert!(ways.meets(9));
        assert!(!ways.meets(9));
        assert_eq!(ways.for_handshake(&own).len(), 1);
    }

    /// Ways to a mute peer that answered a handshake over the second one.
    fn on_lte(own: &Own) -> PeerUnderlays {
        let key = |last: u8| format!("endpoint = \"192.0.2.{last}:51820\"");
        let mut ways = ways([&key(2), &key(3)]);
        let asked = (0..=HANDSHAKES).map(|_| ways.for_handshake(own).len());
        assert_eq!(asked.last(), Some(2));
        assert!(ways.meets(1));
        assert_eq!(ways.follow(at(3), None), Some(Some("lte")));
        ways
    }

    #[test]
    fn a_mute_peer_on_another_way_is_asked_over_the_preferred_one_when_keys_change() {
        let own = Own::default();
        let mut ways = on_lte(&own);
        // Once for each session: what has no answer is asked again over the way in use.
        for session in 2..5 {
            assert_eq!(ways.for_new_keys(&own, true), 0);
            assert_eq!(ways.for_new_keys(&own, true), 1);
            assert_eq!(ways.for_new_keys(&own, true), 1);
            assert!(ways.meets(session));
        }
        // It answers there, and leaves that way later because it is silent: then only the peer leads back.
        assert_eq!(ways.for_new_keys(&own, true), 0);
        assert_eq!(ways.follow(at(2), None), Some(Some("starlink")));
        assert!(ways.meets(5));
        assert_eq!(ways.for_new_keys(&own, true), 0);
        assert!(ways.fell_silent().is_some());
        assert!(ways.meets(6));
        assert_eq!(ways.for_new_keys(&own, true), 1);
        let mut ways = on_lte(&own);
        ways.choice.set_broken(0, 0, true);
        assert_eq!(ways.for_new_keys(&own, true), 1, "the system cannot use it");
    }

    #[test]
    fn a_silent_peer_is_asked_over_the_way_that_worked() {
        let own = Own::default();
        let mut ways = on_lte(&own);
        // The protocol asks because nothing came for 15 s, and again.
        for _ in 0..HANDSHAKES {
            assert_eq!(ways.for_new_keys(&own, false), 1);
        }
        // It is heard again, and then its keys grow old.
        assert_eq!(ways.for_new_keys(&own, true), 0);
        assert_eq!(ways.for_new_keys(&own, true), 1);
        // Of the handshakes that begin a session, those that changed keys are none.
        for _ in 0..HANDSHAKES {
            assert_eq!(ways.for_handshake(&own).len(), 1);
        }
        assert_eq!(ways.for_handshake(&own).len(), 2);
    }
}
