// SPDX-License-Identifier: BSD-3-Clause
//! What a recording says of the configuration.

use std::fmt::Write as _;

use linkweir_config::matching::{self, Rule};
use linkweir_config::reader::{quote, show_ppm};
use linkweir_config::recording::Version;
use linkweir_config::units::{self, Kind};
use linkweir_config::{parameters, queue};
use linkweir_core::{Isolation, Limit, Param, UNSET};
use linkweir_plane::setup::{Class, Scheduler, Uses};

use crate::config::{Config, Peer};

/// The version of the recordings of this configuration.
#[must_use]
pub fn version_of(config: &Config) -> Version {
    if config.peers.iter().any(|peer| !peer.paths.is_empty()) {
        Version::Two
    } else {
        Version::One
    }
}

/// The configuration as recordings have it, TOML: without keys and secrets, and with addresses only if these are asked for.
#[must_use]
pub fn describe(config: &Config, addresses: bool) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "version = {}\ndevice = {}\nmode = {}\naddresses = {addresses}\n\n[link]\noverhead_bytes = {}\nmpu_bytes = {}",
        quote(env!("CARGO_PKG_VERSION")),
        quote(&config.device),
        quote(config.mode.name()),
        config.overhead_bytes,
        config.mpu_bytes,
    );
    if let Some(across) = &config.across {
        let _ = writeln!(text, "\n[across]");
        scheduler(&mut text, across);
    }
    let _ = writeln!(text, "\n[scheduler]");
    scheduler(&mut text, &config.scheduler);
    let info = config.scheduler.info;
    let mut earlier: Vec<Rule> = Vec::new();
    for (at, class) in config.classes.iter().enumerate() {
        let _ = writeln!(text, "\n[[class]]\nname = {}", quote(&class.name));
        limit(&mut text, &class.limit);
        if let Some(flows) = class.flows {
            let _ = writeln!(text, "flows = {}", quote(flows.name()));
            if let Isolation::DualPi2 { step_ns: Some(ns) } = flows {
                let step = units::show_whole(ns, Kind::Time);
                let _ = writeln!(text, "l4s_step = {}", quote(&step));
            }
        }
        if version_of(config) == Version::Two {
            uses(&mut text, class);
        }
        let row = &config.scheduler.qparams[at * info.qparams.len()..];
        values(&mut text, &info.qparams, row);
        let own = config.rules.rules.iter().filter(|rule| rule.class == at);
        let from = earlier.len();
        for rule in own.filter_map(|rule| shown(rule, addresses)) {
            // Without addresses two rules may be the same, of which a reader takes the first only.
            if !earlier.iter().any(|one| one.excludes(&rule)) {
                earlier.push(rule);
            }
        }
        let rules = earlier[from..].to_vec();
        let rest = config.rules.rest == at;
        // A class without `match` takes the rest.
        if !(rest && rules.is_empty()) {
            let own = matching::Own { rules, rest };
            let _ = writeln!(text, "match = {}", matching::written(&own));
        }
    }
    text
}

/// A peer as recordings have it, TOML.
#[must_use]
pub fn describe_peer(peer: &Peer, addresses: bool) -> String {
    let mut text = format!(
        "name = {}\nnominal = {}\nfollow = {}\n",
        quote(&peer.name),
        quote(&units::show_whole(peer.capacity.nominal_bps, Kind::Rate)),
        peer.capacity.follow,
    );
    if !peer.paths.is_empty() {
        let paths = peer.paths.iter().map(|path| quote(&path.name));
        let _ = writeln!(text, "paths = [{}]", paths.collect::<Vec<_>>().join(", "));
    }
    if addresses {
        let nets: Vec<String> = peer
            .allowed
            .iter()
            .map(|net| quote(&net.to_string()))
            .collect();
        let _ = writeln!(text, "allowed_ips = [{}]", nets.join(", "));
        if let Some(endpoint) = peer.endpoint {
            let _ = writeln!(text, "endpoint = {}", quote(&endpoint.to_string()));
        }
    }
    for path in &peer.paths {
        let _ = writeln!(
            text,
            "\n[[path]]\nname = {}\nnominal = {}\nfollow = {}\ncost = {}",
            quote(&path.name),
            quote(&units::show_whole(path.capacity.nominal_bps, Kind::Rate)),
            path.capacity.follow,
            path.cost,
        );
    }
    text
}

/// How a class uses several paths.
fn uses(text: &mut String, class: &Class) {
    let paths = match &class.uses {
        Uses::Best => quote("best"),
        Uses::All => quote("all"),
        Uses::Spill => quote("spill"),
        Uses::Stripe => quote("stripe"),
        Uses::Named(named) => {
            let names: Vec<String> = named.iter().map(|name| quote(name)).collect();
            format!("[{}]", names.join(", "))
        }
    };
    let reorder = class.reorder_ns.filter(|ns| *ns > 0);
    let reorder = reorder.map_or("none".into(), |ns| units::show_whole(ns, Kind::Time));
    let _ = writeln!(
        text,
        "paths = {paths}\nreorder = {}\nresend = {}",
        quote(&reorder),
        class.resend
    );
}

fn scheduler(text: &mut String, scheduler: &Scheduler) {
    let _ = writeln!(text, "policy = {}", quote(scheduler.info.name));
    values(text, &scheduler.info.params, &scheduler.params);
}

fn values(text: &mut String, params: &[Param], values: &[u64]) {
    for (param, value) in params.iter().zip(values) {
        if *value != UNSET {
            let _ = writeln!(
                text,
                "{} = {}",
                param.name,
                parameters::written(param, *value)
            );
        }
    }
}

fn limit(text: &mut String, limit: &Limit) {
    let mut write = |key: &str, value: String| {
        let _ = writeln!(text, "{key} = {}", quote(&value));
    };
    if let Some(pkts) = limit.pkts {
        write("limit", units::show_whole(pkts.into(), Kind::Packets));
    }
    // The bytes of a limit by time follow from the capacity.
    match (limit.time, limit.bytes) {
        (Some(time), _) => write("limit", units::show_whole(time.ns, Kind::Time)),
        (None, Some(bytes)) => write("limit_bytes", units::show_whole(bytes, Kind::Size)),
        (None, None) => {}
    }
    if let Some(ns) = limit.max_age_ns {
        write("max_age", units::show_whole(ns, Kind::Time));
    }
    write("full", queue::end_of(limit).to_string());
    if limit.least_ppm > 0 {
        write("least", show_ppm(limit.least_ppm.into()));
    }
}

/// A rule as it is recorded; none if nothing is left of it without addresses.
fn shown(rule: &Rule, addresses: bool) -> Option<Rule> {
    if addresses {
        return Some(rule.clone());
    }
    let rest = Rule {
        addresses: Vec::new(),
        sources: Vec::new(),
        destinations: Vec::new(),
        ..rule.clone()
    };
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::config::{parse, Record};

    const TEXT: &str = r#"[gateway]
device = "lw0"
listen = "192.0.2.1:51820"
mode = "wireguard"
private_key_file = "the-key"
[link]
rate = "20Mbit"
[scheduler]
policy = "pss"
[[class]]
name = "voice"
level = 0
match = [{ dscp = "EF", source = "10.0.0.0/8" }, { address = "10.9.0.0/16" }]
[[class]]
name = "video"
level = 1
low_level = 3
rate = "4Mbit"
limit = "300ms"
flows = "dualpi2"
l4s_step = "3ms"
least = "5%"
match = [{ dscp = "AF41" }]
[[class]]
name = "rest"
level = 2
flows = "fq_codel"
[[peer]]
name = "ship"
public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
endpoint = "198.51.100.7:51820"
allowed_ips = "10.77.0.2/32"
"#;

    fn config(more: &str) -> Config {
        parse(&format!("{TEXT}{more}"), Path::new("/etc/up.toml")).unwrap()
    }

    #[test]
    fn keys_have_defaults_and_bounds() {
        let record = config("[record]\nfolder = \"rec\"").record.unwrap();
        let expected = Record {
            folder: PathBuf::from("/etc/rec"),
            packets: false,
            addresses: false,
            size_bytes: 1_000_000_000,
        };
        assert_eq!(record, expected);
        assert_eq!(config("").record, None);
        for (keys, what) in [
            ("[record]\npackets = true", "record.folder"),
            ("[record]\nfolder = \"a\"\nsize = \"999kB\"", "1MB"),
            ("[record]\nfolder = \"a\"\nsise = \"1GB\"", "sise"),
        ] {
            let fault = parse(&format!("{TEXT}{keys}"), Path::new("up.toml"));
            let fault = fault.unwrap_err().to_string();
            assert!(fault.contains(what), "{fault}");
        }
    }

    /// The gateway's configuration with the classes of a description.
    fn read_back(described: &str) -> Config {
        let (_, classes) = described.split_once("[scheduler]").unwrap();
        let (head, _) = TEXT.split_once("[scheduler]").unwrap();
        let (_, peer) = TEXT.split_once("[[peer]]").unwrap();
        let text = format!("{head}[scheduler]{classes}[[peer]]{peer}");
        parse(&text, Path::new("/etc/up.toml")).unwrap_or_else(|fault| panic!("{fault}:\n{text}"))
    }

    #[test]
    fn a_described_configuration_can_be_read_back() {
        let classes = r#"[scheduler]
policy = "fifo"
[[class]]
name = "none"
match = []
[[class]]
name = "ours"
match = [{ source = "10.0.0.0/8", order = 3 }, { dscp = "EF", source = "10.0.0.0/8", order = 2 }, { port = 22 }]
[[class]]
name = "theirs"
match = [{ dscp = "EF", source = "192.168.0.0/16" }, { destination = "192.168.0.0/16" }]
[[class]]
name = "rest"
match = [{ dscp = "CS1" }, {}]
"#;
        let (head, _) = TEXT.split_once("[scheduler]").unwrap();
        let (_, peer) = TEXT.split_once("[[peer]]").unwrap();
        let text = format!("{head}{classes}[[peer]]{peer}");
        let config = parse(&text, Path::new("/etc/up.toml")).unwrap();
        assert_eq!(read_back(&describe(&config, true)).rules, config.rules);
        let described = describe(&config, false);
        for expected in [
            "name = \"none\"\nlimit = \"1000p\"\nfull = \"tail\"\nmatch = []\n",
            "match = [{ port = 22 }, { dscp = \"EF\", order = 2 }]\n",
            // Without its address this rule takes all packets of the one of EF above, which comes after it.
            "name = \"theirs\"\nlimit = \"1000p\"\nmax_age = \"200ms\"\nfull = \"head\"\nmatch = []\n",
            "match = [{ dscp = \"CS1\" }, {}]\n",
        ] {
            assert!(
                described.contains(expected),
                "{expected} is not in {described}"
            );
        }
        let rest = read_back(&described).rules.rest;
        assert_eq!(rest, 3);
    }

    /// What a replay must know: that the recorded capacity is a sum.
    #[test]
    fn several_paths_are_named() {
        let boat = include_str!("../../configs/boat.toml");
        let boat = parse(boat, Path::new("boat.toml")).unwrap();
        let text = describe_peer(&boat.peers[0], false);
        assert!(text.contains("paths = [\"starlink\", \"lte\"]\n"), "{text}");
        assert!(!describe_peer(&config("").peers[0], false).contains("paths"));
    }

    /// What a replay needs to share packets out as the gateway did; nothing of it without paths, whose recordings stay as they were.
    #[test]
    fn what_paths_cost_and_how_classes_use_them_is_described() {
        let text = include_str!("../../configs/boat.toml");
        let text = text
            .replace("paths = \"spill\"", "paths = [\"lte\", \"starlink\"]")
            .replace("floor = \"2Mbit\"", "nominal = \"40Mbit\"")
            .replace("floor = \"1Mbit\"", "nominal = \"30Mbit\"");
        let boat = parse(&text, Path::new("boat.toml")).unwrap();
        assert_eq!(version_of(&boat), Version::Two);
        let peer = describe_peer(&boat.peers[0], true);
        let tables =
            "\n[[path]]\nname = \"starlink\"\nnominal = \"40Mbit\"\nfollow = true\ncost = 1\n\
                      \n[[path]]\nname = \"lte\"\nnominal = \"30Mbit\"\nfollow = true\ncost = 10\n";
        assert!(peer.ends_with(tables), "{peer}");
        let described = describe(&boat, false);
        for uses in [
            "paths = \"all\"\nreorder = \"none\"\nresend = false\n",
            "paths = \"stripe\"\nreorder = \"400ms\"\nresend = true\n",
            "paths = [\"lte\", \"starlink\"]\nreorder = \"50ms\"\nresend = false\n",
        ] {
            assert!(described.contains(uses), "{uses} is not in {described}");
        }
        let one = config("");
        assert_eq!(version_of(&one), Version::One);
        let all = describe(&one, true) + &describe_peer(&one.peers[0], true);
        for key in ["paths", "[[path]]", "reorder", "resend"] {
            assert!(!all.contains(key), "{key} is in {all}");
        }
    }

    #[test]
    fn neither_keys_nor_addresses_are_described_unless_asked_for() {
        let config = config("");
        let text = describe(&config, false) + &describe_peer(&config.peers[0], false);
        for secret in ["10.", "198.51", "hSDw", "the-key"] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
        for expected in [
            "policy = \"pss\"",
            "name = \"video\"\nlimit = \"300ms\"\nfull = \"tail\"\nleast = \"5%\"\nflows = \"dualpi2\"\nl4s_step = \"3ms\"\n",
            "rate = \"4Mbit\"",
            "name = \"rest\"\nlimit = \"1000p\"\nfull = \"tail\"\nflows = \"fq_codel\"",
            "match = [{ dscp = \"EF\" }]",
            "max_age = \"200ms\"\nfull = \"head\"",
            "overhead_bytes = 60",
            "nominal = \"20Mbit\"\nfollow = true",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
        let text = describe(&config, true) + &describe_peer(&config.peers[0], true);
        for expected in ["10.9.0.0/16", "198.51.100.7", "10.77.0.2/32"] {
            assert!(text.contains(expected), "{expected}");
        }
        assert!(!text.contains("hSDw") && !text.contains("the-key"));
    }
}
