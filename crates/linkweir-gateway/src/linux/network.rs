// SPDX-License-Identifier: BSD-3-Clause
//! What a gateway sets up in the system's network: addresses of its device, routes, and rules. It is compared with what the
//! system has, and what is missing is added.
//!
//! A route to all addresses is in a table of its own, of the mark's number, and rules lead there, as those of wg-quick do:
//!
//! | priority | packets | go |
//! |---|---|---|
//! | 32700 | without the mark | where the main table says, unless it only has a default route for them |
//! | 32701 | without the mark | where the tunnel's table says: into the tunnel |
//! | 32702 | without the mark | nowhere, with `leak = "refuse"`: the tunnel's route is missing |
//!
//! So the tunnel's own datagrams, which have the mark, and packets to networks that this host is in, go the way they went
//! before. Each rule has the mark, so that two gateways never share one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netlink_packet_core::{NetlinkPayload, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::libc;

use crate::linux::netlink;

/// The main routing table.
const MAIN: u32 = 254;
/// Priorities of the rules: after those that other programs choose, before that of the main table, 32766.
const NETWORKS: u32 = 32_700;
const TUNNEL: u32 = 32_701;
const REFUSED: u32 = 32_702;
/// The protocol of the rules, and of the routes that lead nowhere. When it starts, systemd-networkd removes the rules of all
/// other protocols, and the routes of all other protocols that have no device.
const PROTOCOL: RouteProtocol = RouteProtocol::Kernel;
/// The metrics of routes: IPv4's best, what IPv6 gives to routes of users, and to those of its addresses.
const METRIC_V4: u32 = 0;
const METRIC_V6: u32 = 1024;
const METRIC_OF_ADDRESS_V6: u32 = 256;
const ADD: u16 = NLM_F_CREATE | NLM_F_EXCL;

/// What a gateway sets up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// The number of its device.
    pub(crate) device: u32,
    /// The device's MTU, bytes.
    pub(crate) mtu: u32,
    /// The mark of the tunnel's datagrams; it is there if a route to all addresses is.
    pub(crate) mark: Option<u32>,
    /// Whether packets to addresses behind peers are refused while the tunnel's route is missing.
    pub(crate) refuses: bool,
    /// The metric of its routes that lead nowhere, see [`last_metric`].
    pub(crate) last_metric: u32,
    /// The device's addresses.
    pub(crate) addresses: Vec<IpNet>,
    /// What is routed through the device, besides the networks of its addresses.
    pub(crate) nets: BTreeSet<IpNet>,
}

/// How much was missing and was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Restored {
    pub(crate) rules: u64,
    pub(crate) routes: u64,
    pub(crate) addresses: u64,
    /// How often the device had another MTU.
    pub(crate) mtus: u64,
}

impl Restored {
    pub(crate) fn add(&mut self, more: Restored) {
        self.rules += more.rules;
        self.routes += more.routes;
        self.addresses += more.addresses;
        self.mtus += more.mtus;
    }
}

/// What is missing and cannot be added now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Missing {
    /// Another route has the place of that to this prefix, or is preferred to it.
    Taken { net: IpNet, table: u32, by: String },
    /// A route in the table of the tunnel that leads elsewhere.
    Foreign { route: String },
    /// IPv6 is disabled, or this kernel has none.
    NoIpv6,
    /// The system refuses something.
    Failed(String),
}

impl Missing {
    /// Whether another program, such as a second gateway, has its route to all addresses in the tunnel's table.
    pub(crate) fn shares_table(&self) -> bool {
        matches!(self, Missing::Taken { table, .. } if *table != MAIN)
    }

    /// Whether another program's route is where this gateway's is to be.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Missing::Taken { .. } | Missing::Foreign { .. })
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Taken { net, table, by } if *table != MAIN => write!(
                f,
                "{net} is not routed through the tunnel, because another route is in its table: {by}; remove it with \
                 `ip route del {by}`, or choose another gateway.fwmark if that is another tunnel's"
            ),
            Missing::Taken { net, by, .. } => write!(
                f,
                "{net} is not routed through the tunnel, because another route is there: {by}; \
                 remove it with `ip route del {by}`, or take {net} out of allowed_ips"
            ),
            Missing::Foreign { route } => write!(
                f,
                "a route that leads past the tunnel is in its table: {route}; \
                 remove it with `ip route del {route}`, or choose another gateway.fwmark"
            ),
            Missing::NoIpv6 => f.write_str(
                "IPv6 is disabled on the tunnel's device (sysctl net.ipv6.conf.*.disable_ipv6), or this kernel has none; \
                 its addresses and routes of IPv6 are added once it is enabled",
            ),
            Missing::Failed(why) => f.write_str(why),
        }
    }
}

/// What was added, and what could not be.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) restored: Restored,
    pub(crate) missing: BTreeSet<Missing>,
}

/// An entry among the system's rules and routes that a reload may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    Rule {
        priority: u32,
        is_v6: bool,
    },
    /// A route through the device.
    Route(IpNet),
    /// A route that leads nowhere.
    Refusal(IpNet),
}

impl Entry {
    /// Whether it stays when the device disappears.
    pub(crate) fn outlives_device(&self) -> bool {
        !matches!(self, Entry::Route(_))
    }
}

/// A route of another program, or of this one.
struct Found {
    metric: u32,
    /// That of another program; none: it is this gateway's.
    foreign: Option<RouteMessage>,
}

/// A route that is wanted.
struct Wanted {
    net: IpNet,
    metric: u32,
    /// The device's address that it is the network of.
    source: Option<IpAddr>,
}

/// The metric of the routes of a device that lead nowhere: every other route is preferred. It depends on the device's name, so
/// that two gateways on a host do not take each other's routes for their own, and that a gateway finds those that it left when
/// it was killed. Of 65,536 metrics two names have the same once in 65,536 pairs; then the two share these routes.
pub(crate) fn last_metric(device: &str) -> u32 {
    // FNV-1a of 32 bits, folded to 16 (Fowler, Noll, Vo).
    let hash = device.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    u32::MAX - (hash >> 16 ^ hash & 0xffff)
}

impl Network {
    /// The routes of other programs where those of this gateway are to be, before anything is set up.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn conflicts(&self) -> io::Result<BTreeSet<Missing>> {
        let mut missing = BTreeSet::new();
        self.compare(&mut missing)?;
        Ok(missing)
    }

    /// Adds everything that is missing.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn restore(&self) -> io::Result<Outcome> {
        // Rules first: without them packets leave in the clear.
        let mut outcome = self.restore_rules()?;
        let rest = self.restore_rest()?;
        outcome.restored.add(rest.restored);
        outcome.missing.extend(rest.missing);
        Ok(outcome)
    }

    /// Adds the rules that are missing.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn restore_rules(&self) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        let rules = self.rule_entries().filter_map(|entry| match entry {
            Entry::Rule { priority, is_v6 } => Some(self.rule(priority, is_v6)),
            _ => None,
        });
        let rules: Vec<RuleMessage> = rules.collect();
        let new = rules
            .iter()
            .map(|rule| (RouteNetlinkMessage::NewRule(rule.clone()), ADD));
        for (rule, added) in rules.iter().zip(netlink::change_all(new.collect())?) {
            match added {
                Ok(()) => outcome.restored.rules += 1,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if rule.header.family == AddressFamily::Inet6 && has_no_v6(&error) => {
                    outcome.missing.insert(Missing::NoIpv6);
                }
                Err(error) => {
                    let what = "cannot add a rule that leads into the tunnel";
                    outcome.missing.insert(failed(what, &error));
                }
            }
        }
        Ok(outcome)
    }

    /// Adds routes and addresses that are missing, and sets the device's MTU.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn restore_rest(&self) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        self.add_unreachable(&mut outcome)?;
        let is_up = self.check_device(&mut outcome)?;
        // A device that is down can have neither: they come when it is up.
        if is_up {
            self.add_addresses(&mut outcome)?;
            self.add_routes(&mut outcome)?;
        }
        Ok(outcome)
    }

    /// Removes what stays when the device disappears.
    ///
    /// # Errors
    /// Those of the system; that something is not there is none.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let all = self.rule_entries().chain(self.refusals());
        self.remove_entries(&all.collect()).map(drop)
    }

    /// Removes these entries; those that could not be removed, and why. That one is not there is no fault.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn remove_entries(
        &self,
        entries: &BTreeSet<Entry>,
    ) -> io::Result<BTreeMap<Entry, io::Error>> {
        let all = entries.iter().map(|entry| (self.removal(*entry), 0));
        let removed = netlink::change_all(all.collect())?;
        let with = entries.iter().copied().zip(removed);
        let failed = with.filter_map(|(entry, removed)| Some((entry, removed.err()?)));
        Ok(failed.filter(|(_, error)| !is_gone(error)).collect())
    }

    fn removal(&self, entry: Entry) -> RouteNetlinkMessage {
        match entry {
            Entry::Rule { priority, is_v6 } => {
                RouteNetlinkMessage::DelRule(self.rule(priority, is_v6))
            }
            Entry::Route(net) => RouteNetlinkMessage::DelRoute(self.route(&Wanted {
                net,
                metric: metric(&net),
                source: None,
            })),
            Entry::Refusal(net) => RouteNetlinkMessage::DelRoute(self.refusal(&net)),
        }
    }

    /// The rules of both versions of IP that routes to all addresses need.
    pub(crate) fn rule_entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let all = self.nets.iter().filter(|net| net.prefix_len() == 0);
        let all = all.filter(|_| self.mark.is_some());
        all.flat_map(|net| {
            let refused = self.refuses.then_some(REFUSED);
            // In this order: without the last, packets to this host's networks go into the tunnel, not into the clear.
            let priorities = refused.into_iter().chain([TUNNEL, NETWORKS]);
            priorities.map(|priority| Entry::Rule {
                priority,
                is_v6: is_v6(net),
            })
        })
    }

    /// The routes that a reload may remove, and those that lead nowhere.
    pub(crate) fn route_entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let routes = self.nets.iter().copied().map(Entry::Route);
        routes.chain(self.refusals())
    }

    /// The routes that lead nowhere, of prefixes in the main table and of the networks of the device's addresses.
    fn refusals(&self) -> impl Iterator<Item = Entry> + '_ {
        let own: BTreeSet<IpNet> = self.own().map(|own| own.net).collect();
        let nets: BTreeSet<IpNet> = self.nets.union(&own).copied().collect();
        let nets = nets.into_iter().filter(|_| self.refuses);
        nets.filter(|net| self.table(net) == MAIN)
            .map(Entry::Refusal)
    }

    /// Whether something may be missing after a message of the kernel. While something is `missing` already, its place may
    /// become free without a message about it, as when the device of another route disappears.
    pub(crate) fn is_touched(&self, message: &RouteNetlinkMessage, missing: bool) -> bool {
        match message {
            RouteNetlinkMessage::DelRule(_) => self.has_rules(),
            RouteNetlinkMessage::NewLink(link) | RouteNetlinkMessage::DelLink(link) => {
                missing || link.header.index == self.device
            }
            RouteNetlinkMessage::DelAddress(address) => {
                missing || address.header.index == self.device
            }
            // Of ours, only that IPv6 begins is news. When the kernel loads IPv6, devices get addresses of it.
            RouteNetlinkMessage::NewAddress(address) => {
                let is_v6 = address.header.family == AddressFamily::Inet6;
                missing && (is_v6 || address.header.index == self.device)
            }
            RouteNetlinkMessage::NewRoute(route) => {
                self.is_wanted(route) && oif(route) != Some(self.device)
            }
            RouteNetlinkMessage::DelRoute(route) => self.is_wanted(route),
            _ => false,
        }
    }

    /// Whether a route is to a prefix that is wanted, or in the tunnel's table.
    fn is_wanted(&self, route: &RouteMessage) -> bool {
        let table = table_of(route);
        if Some(table) == self.mark {
            return true;
        }
        let Some(net) = destination(route) else {
            return false;
        };
        table == MAIN && (self.nets.contains(&net) || self.own().any(|own| own.net == net))
    }

    fn has_rules(&self) -> bool {
        self.mark.is_some() && self.nets.iter().any(|net| net.prefix_len() == 0)
    }

    fn rule(&self, priority: u32, is_v6: bool) -> RuleMessage {
        let mut rule = RuleMessage::default();
        rule.header.family = family_of(is_v6);
        rule.header.flags = RuleFlags::Invert;
        rule.attributes = vec![
            RuleAttribute::Priority(priority),
            RuleAttribute::FwMark(self.mark.unwrap_or_default()),
            RuleAttribute::Protocol(PROTOCOL),
        ];
        rule.header.action = RuleAction::ToTable;
        match priority {
            REFUSED => rule.header.action = RuleAction::Unreachable,
            TUNNEL => rule.attributes.extend(self.mark.map(RuleAttribute::Table)),
            _ => rule.attributes.extend([
                RuleAttribute::Table(MAIN),
                RuleAttribute::SuppressPrefixLen(0),
            ]),
        }
        rule
    }

    /// A route that leads nowhere.
    fn refusal(&self, net: &IpNet) -> RouteMessage {
        let mut route = route_to(net, self.last_metric);
        route.header.table = MAIN as u8;
        route.header.protocol = PROTOCOL;
        route.header.scope = RouteScope::Universe;
        route.header.kind = RouteType::Unreachable;
        route
    }

    fn add_unreachable(&self, outcome: &mut Outcome) -> io::Result<()> {
        let new = self.refusals().filter_map(|entry| match entry {
            Entry::Refusal(net) => Some((RouteNetlinkMessage::NewRoute(self.refusal(&net)), ADD)),
            _ => None,
        });
        for added in netlink::change_all(new.collect())? {
            match added {
                Ok(()) => outcome.restored.routes += 1,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists || has_no_v6(&error) => {
                }
                Err(error) => {
                    let what = "cannot refuse what would leave in the clear";
                    outcome.missing.insert(failed(what, &error));
                }
            }
        }
        Ok(())
    }

    /// Sets the device's MTU again. Returns whether it is up.
    fn check_device(&self, outcome: &mut Outcome) -> io::Result<bool> {
        let mut link = LinkMessage::default();
        link.header.index = self.device;
        let answer = netlink::ask(RouteNetlinkMessage::GetLink(link.clone()), 0)?;
        let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(now)) = answer else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let has = |mtu: &u32| now.attributes.contains(&LinkAttribute::Mtu(*mtu));
        if !has(&self.mtu) {
            link.attributes.push(LinkAttribute::Mtu(self.mtu));
            let set = netlink::change_all(vec![(RouteNetlinkMessage::SetLink(link), 0)])?;
            match set.into_iter().find_map(Result::err) {
                None => outcome.restored.mtus += 1,
                Some(error) => {
                    let what = format!("cannot set the MTU of {} bytes", self.mtu);
                    outcome.missing.insert(failed(&what, &error));
                }
            }
        }
        Ok(now.header.flags.contains(LinkFlags::Up))
    }

    fn add_addresses(&self, outcome: &mut Outcome) -> io::Result<()> {
        let new = self.addresses.iter().map(|net| {
            let mut address = AddressMessage::default();
            address.header.family = family(net);
            address.header.prefix_len = net.prefix_len();
            address.header.index = self.device;
            address.attributes = vec![
                AddressAttribute::Address(net.addr()),
                AddressAttribute::Local(net.addr()),
            ];
            (RouteNetlinkMessage::NewAddress(address), ADD)
        });
        let added = netlink::change_all(new.collect())?;
        for (net, added) in self.addresses.iter().zip(added) {
            match added {
                Ok(()) => outcome.restored.addresses += 1,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if is_v6(net) && has_no_v6(&error) => {
                    outcome.missing.insert(Missing::NoIpv6);
                }
                Err(error) => {
                    let what = format!("cannot give {net} to the tunnel's device");
                    outcome.missing.insert(failed(&what, &error));
                }
            }
        }
        Ok(())
    }

    /// The routes that can be added; those whose place another one has are `missing`.
    fn compare(&self, missing: &mut BTreeSet<Missing>) -> io::Result<Vec<Wanted>> {
        let wanted: Vec<Wanted> = self
            .nets
            .iter()
            .map(|net| Wanted {
                net: *net,
                metric: metric(net),
                source: None,
            })
            .chain(self.own())
            .collect();
        let there = self.find(&wanted, missing)?;
        let mut free = Vec::new();
        for one in wanted {
            let found = there
                .get(&(self.table(&one.net), one.net))
                .map_or(&[][..], Vec::as_slice);
            let ours = found.iter().position(|found| found.foreign.is_none());
            // The kernel prefers the least metric and, of equal ones, the first.
            let before = found[..ours.unwrap_or(found.len())].iter();
            let taker = before
                .filter(|other| other.metric <= one.metric)
                .min_by_key(|other| other.metric);
            if let Some(taker) = taker.and_then(|taker| taker.foreign.as_ref()) {
                missing.insert(Missing::Taken {
                    net: one.net,
                    table: self.table(&one.net),
                    by: words(taker, one.net, self.table(&one.net)),
                });
            } else if ours.is_none() {
                free.push(one);
            }
        }
        Ok(free)
    }

    /// Adds the routes that are missing, if no other route has their place.
    fn add_routes(&self, outcome: &mut Outcome) -> io::Result<()> {
        let missing = self.compare(&mut outcome.missing)?;
        let new = missing
            .iter()
            .map(|one| (RouteNetlinkMessage::NewRoute(self.route(one)), ADD));
        let added = netlink::change_all(new.collect())?;
        for (one, added) in missing.iter().zip(added) {
            match added {
                Ok(()) => outcome.restored.routes += 1,
                // Added meanwhile: if it is that of another program, the kernel's message about it is on its way.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if is_v6(&one.net) && has_no_v6(&error) => {
                    outcome.missing.insert(Missing::NoIpv6);
                }
                // The device went down meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {}
                Err(error) => {
                    let what = format!("cannot route {} through the tunnel", one.net);
                    outcome.missing.insert(failed(&what, &error));
                }
            }
        }
        Ok(())
    }

    /// The routes that the system has to what is wanted, by table and prefix, the preferred ones first. Those in the tunnel's
    /// table that lead elsewhere are `missing`.
    fn find(
        &self,
        wanted: &[Wanted],
        missing: &mut BTreeSet<Missing>,
    ) -> io::Result<BTreeMap<(u32, IpNet), Vec<Found>>> {
        let places: BTreeSet<(u32, IpNet)> = wanted
            .iter()
            .map(|one| (self.table(&one.net), one.net))
            .collect();
        let kinds: BTreeSet<(u32, bool)> = places
            .iter()
            .map(|(table, net)| (*table, is_v6(net)))
            .collect();
        let mut there: BTreeMap<(u32, IpNet), Vec<Found>> = BTreeMap::new();
        for (table, v6) in kinds {
            let mut request = RouteMessage::default();
            request.header.address_family = family_of(v6);
            request.attributes.push(RouteAttribute::Table(table));
            let dumped = netlink::dump(RouteNetlinkMessage::GetRoute(request), |message| {
                let RouteNetlinkMessage::NewRoute(route) = message else {
                    return;
                };
                let (true, Some(net)) = (table_of(&route) == table, destination(&route)) else {
                    return;
                };
                let ours = oif(&route) == Some(self.device);
                // Other kinds of routes lead nowhere.
                let kinds = [RouteType::Unicast, RouteType::Throw];
                let past = !ours && kinds.contains(&route.header.kind);
                if past && Some(table) == self.mark && !places.contains(&(table, net)) {
                    missing.insert(Missing::Foreign {
                        route: words(&route, net, table),
                    });
                }
                if route.header.tos == 0 && places.contains(&(table, net)) {
                    there.entry((table, net)).or_default().push(Found {
                        metric: priority(&route),
                        foreign: (!ours).then_some(route),
                    });
                }
            });
            match dumped {
                // There is no such table yet.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) || has_no_v6(&error) => {}
                other => other?,
            }
        }
        for found in there.values_mut() {
            found.sort_by_key(|found| found.metric);
        }
        Ok(there)
    }

    /// The routes to the networks of the device's addresses, which the kernel adds with the addresses.
    fn own(&self) -> impl Iterator<Item = Wanted> + '_ {
        let nets = self.addresses.iter().filter(|net| {
            let bits = if is_v6(net) { 128 } else { 32 };
            net.prefix_len() < bits && net.prefix_len() > 0
        });
        nets.map(|net| Wanted {
            net: net.trunc(),
            metric: if is_v6(net) {
                METRIC_OF_ADDRESS_V6
            } else {
                METRIC_V4
            },
            source: Some(net.addr()),
        })
    }

    /// The table of the route to `net`.
    fn table(&self, net: &IpNet) -> u32 {
        let own = self.mark.filter(|_| net.prefix_len() == 0);
        own.unwrap_or(MAIN)
    }

    /// A route through the device.
    fn route(&self, wanted: &Wanted) -> RouteMessage {
        let mut route = route_to(&wanted.net, wanted.metric);
        route.header.scope = RouteScope::Link;
        route.header.kind = RouteType::Unicast;
        route.header.protocol = RouteProtocol::Static;
        route.attributes.push(RouteAttribute::Oif(self.device));
        if let Some(source) = wanted.source {
            route.header.protocol = RouteProtocol::Kernel;
            if !is_v6(&wanted.net) {
                let source = RouteAttribute::PrefSource(address(source));
                route.attributes.push(source);
            }
        }
        match self.table(&wanted.net) {
            MAIN => route.header.table = MAIN as u8,
            table => route.attributes.push(RouteAttribute::Table(table)),
        }
        route
    }
}

fn route_to(net: &IpNet, metric: u32) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header.address_family = family(net);
    route.header.destination_prefix_length = net.prefix_len();
    route.attributes = vec![
        RouteAttribute::Destination(address(net.network())),
        RouteAttribute::Priority(metric),
    ];
    route
}

fn metric(net: &IpNet) -> u32 {
    if is_v6(net) {
        METRIC_V6
    } else {
        METRIC_V4
    }
}

fn failed(what: &str, error: &io::Error) -> Missing {
    let cure = match error.raw_os_error() {
        Some(libc::EPERM) => "; run as root or with CAP_NET_ADMIN",
        _ => "",
    };
    Missing::Failed(format!("{what}: {error}{cure}"))
}

/// Whether an error says that IPv6 is disabled on a device, or that this kernel has none.
fn has_no_v6(error: &io::Error) -> bool {
    let none = [libc::EACCES, libc::EAFNOSUPPORT, libc::EOPNOTSUPP];
    error
        .raw_os_error()
        .is_some_and(|code| none.contains(&code))
}

/// Whether an error says that what is to be removed is not there.
fn is_gone(error: &io::Error) -> bool {
    let gone = [libc::ENOENT, libc::ESRCH, libc::ENODEV];
    let code = error.raw_os_error();
    code.is_some_and(|code| gone.contains(&code)) || has_no_v6(error)
}

fn is_v6(net: &IpNet) -> bool {
    matches!(net, IpNet::V6(_))
}

fn family(net: &IpNet) -> AddressFamily {
    family_of(is_v6(net))
}

fn family_of(v6: bool) -> AddressFamily {
    if v6 {
        AddressFamily::Inet6
    } else {
        AddressFamily::Inet
    }
}

fn address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

fn oif(route: &RouteMessage) -> Option<u32> {
    route.attributes.iter().find_map(|one| match one {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

fn priority(route: &RouteMessage) -> u32 {
    let priority = route.attributes.iter().find_map(|one| match one {
        RouteAttribute::Priority(metric) => Some(*metric),
        _ => None,
    });
    priority.unwrap_or_default()
}

fn table_of(route: &RouteMessage) -> u32 {
    let table = route.attributes.iter().find_map(|one| match one {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    table.unwrap_or_else(|| route.header.table.into())
}

/// The prefix that a route leads to.
fn destination(route: &RouteMessage) -> Option<IpNet> {
    let bits = route.header.destination_prefix_length;
    let named = route.attributes.iter().find_map(|one| match one {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => {
            Some(IpNet::new(IpAddr::V4(*address), bits))
        }
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => {
            Some(IpNet::new(IpAddr::V6(*address), bits))
        }
        _ => None,
    });
    // A route to all addresses names none.
    match (named, route.header.address_family) {
        (Some(net), _) => net.ok(),
        (None, AddressFamily::Inet) if bits == 0 => Some(Ipv4Net::default().into()),
        (None, AddressFamily::Inet6) if bits == 0 => Some(Ipv6Net::default().into()),
        _ => None,
    }
}

/// A route as `ip route` writes it, so that it can be given to `ip route del`.
fn words(route: &RouteMessage, net: IpNet, table: u32) -> String {
    let mut words = match route.header.kind {
        RouteType::BlackHole => "blackhole ".to_string(),
        RouteType::Unreachable => "unreachable ".to_string(),
        RouteType::Prohibit => "prohibit ".to_string(),
        RouteType::Throw => "throw ".to_string(),
        _ => String::new(),
    };
    words += &net.to_string();
    for one in &route.attributes {
        match one {
            RouteAttribute::Gateway(RouteAddress::Inet(to)) => words += &format!(" via {to}"),
            RouteAttribute::Gateway(RouteAddress::Inet6(to)) => words += &format!(" via {to}"),
            _ => {}
        }
    }
    if let Some(index) = oif(route).filter(|_| route.header.kind == RouteType::Unicast) {
        let mut link = LinkMessage::default();
        link.header.index = index;
        let name = name_of(link).unwrap_or_else(|| format!("number {index}"));
        words += &format!(" dev {name}");
    }
    match priority(route) {
        0 => {}
        metric => words += &format!(" metric {metric}"),
    }
    if table != MAIN {
        words += &format!(" table {table}");
    }
    words
}

fn name_of(link: LinkMessage) -> Option<String> {
    let answer = netlink::ask(RouteNetlinkMessage::GetLink(link), 0).ok()?;
    let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) = answer else {
        return None;
    };
    link.attributes.into_iter().find_map(|one| match one {
        LinkAttribute::IfName(name) => Some(name),
        _ => None,
    })
}
