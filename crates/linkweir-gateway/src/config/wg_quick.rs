// SPDX-License-Identifier: BSD-3-Clause
//! Reads a file of wg-quick(8) and writes a configuration of a gateway that does the same, with voice first.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

use ipnet::IpNet;

use linkweir_config::keys::gateway::{FWMARK, UNDERLAY_MTU as LINK_MTU};

use super::names::host_name_of;
use super::{OUTER_V4, OUTER_V6};
use crate::tunnel::seal::{self, Secret};

/// Port of a tunnel whose file names none.
const PORT: u16 = 51820;
/// The largest IP packet of the underlying network is assumed to be what a configuration has by default.
const UNDERLAY_MTU: u32 = LINK_MTU.default.0;
/// Largest MTU whose datagrams fit into [`UNDERLAY_MTU`] over IPv4: 20 bytes of IP, 8 of UDP and 32 of WireGuard are added.
const MTU_OVER_V4: u32 = UNDERLAY_MTU - OUTER_V4 - seal::OVERHEAD_BYTES;
/// The same over IPv6, whose header has 40 bytes; what fits here also fits over IPv4.
const MTU_OVER_V6: u32 = UNDERLAY_MTU - OUTER_V6 - seal::OVERHEAD_BYTES;

/// Where the system names services.
const SERVICES: &str = "/etc/services";

/// A configuration and the secrets that its files hold.
pub struct Imported {
    /// The configuration.
    pub text: String,
    /// Names of files for secret keys, and the keys.
    pub secrets: Vec<(String, Secret)>,
    /// What has no counterpart, and what to do about it.
    pub left_out: Vec<String>,
}

/// `[Interface]`.
#[derive(Default)]
struct Interface {
    private_key: Option<Secret>,
    addresses: Vec<IpNet>,
    port: Option<u16>,
    mtu: Option<Mtu>,
    mark: Option<u32>,
    no_routes: bool,
}

/// `MTU`, bytes, and the line that sets it.
#[derive(Clone, Copy)]
struct Mtu {
    line: usize,
    bytes: u32,
}

/// `[Peer]`.
#[derive(Default)]
struct Peer {
    line: usize,
    public_key: Option<String>,
    preshared_key: Option<Secret>,
    allowed: Vec<IpNet>,
    endpoint: Option<String>,
    keepalive_s: Option<u16>,
}

/// Where a line belongs.
enum Place {
    Nowhere,
    Interface,
    Peer,
}

/// The configuration for a device of this name and a link of this rate, as it is written.
///
/// # Errors
/// The number of the line that cannot be read, and why.
pub fn import(text: &str, device: &str, rate: &str) -> Result<Imported, (usize, String)> {
    let mut place = Place::Nowhere;
    let mut interface = Interface::default();
    let mut peers: Vec<Peer> = Vec::new();
    let mut left_out = Vec::new();
    let mut last = 0;
    let mut interface_at = None;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        last = number;
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if line.starts_with('[') {
            place = match line.to_ascii_lowercase().as_str() {
                "[interface]" => {
                    if let Some(first) = interface_at.replace(number) {
                        return Err((number, format!("a second [Interface]; a gateway has one: put what belongs to it below line {first}, and the rest into a file of its own")));
                    }
                    Place::Interface
                }
                "[peer]" => {
                    peers.push(Peer {
                        line: number,
                        ..Peer::default()
                    });
                    Place::Peer
                }
                _ => return Err((number, format!("{line}: must be [Interface] or [Peer]"))),
            };
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err((number, format!("{line}: must be Key = Value")));
        };
        let (key, value) = (key.trim(), value.trim());
        let read = match (&place, peers.last_mut()) {
            (Place::Interface, _) => interface.read(number, key, value),
            (Place::Peer, Some(peer)) => peer.read(key, value),
            _ => Err("stands before [Interface]".to_string()),
        };
        match read {
            Ok(None) => {}
            Ok(Some(cure)) => left_out.push(format!("line {number}: {key} is left out: {cure}")),
            Err(fault) => return Err((number, format!("{key}: {fault}"))),
        }
    }
    let Some(private_key) = interface.private_key.take() else {
        return Err((last.max(1), "[Interface] has no PrivateKey".to_string()));
    };
    let mut secrets = vec![(format!("{device}.key"), private_key)];
    let local = interface.local_address(&peers)?;
    if let (Some(mtu), IpAddr::V4(_)) = (interface.mtu, local) {
        left_out.push(format!(
            "line {}: MTU = {} fits over IPv4 only (over IPv6 at most {MTU_OVER_V6}), so the gateway does not listen on IPv6",
            mtu.line, mtu.bytes
        ));
    }
    let mut written = interface.write(device, rate, local);
    for (at, peer) in peers.iter_mut().enumerate() {
        let Some(public_key) = peer.public_key.take() else {
            return Err((peer.line, "[Peer] has no PublicKey".to_string()));
        };
        if peer.allowed.is_empty() {
            return Err((peer.line, "[Peer] has no AllowedIPs".to_string()));
        }
        let name = format!("peer{}", at + 1);
        peer.write(&name, &public_key, device, &mut written);
        if let Some(preshared) = peer.preshared_key.take() {
            secrets.push((format!("{device}.{name}.psk"), preshared));
        }
    }
    if peers.is_empty() {
        return Err((last.max(1), "there is no [Peer]".to_string()));
    }
    Ok(Imported {
        text: written,
        secrets,
        left_out,
    })
}

/// What to do about a key that has no counterpart; none: it was taken.
type Read = Result<Option<&'static str>, String>;

impl Interface {
    fn read(&mut self, line: usize, key: &str, value: &str) -> Read {
        match key.to_ascii_lowercase().as_str() {
            "privatekey" => self.private_key = Some(secret(value)?),
            "address" => self.addresses.extend(nets(value)?),
            "listenport" => {
                let port = Some(number(value, "a port, 0 .. 65535")?);
                self.port = port.filter(|port| *port != 0);
                if self.port.is_none() {
                    return Ok(Some("the system would choose another port at each start; the gateway listens on 51820"));
                }
            }
            "mtu" => {
                let bytes = number(value, "a number of bytes")?;
                self.mtu = Some(Mtu { line, bytes });
            }
            "dns" => return Ok(Some("set the resolver of the system instead")),
            "table" if value == "off" => self.no_routes = true,
            "table" if value == "auto" => {}
            "table" => {
                return Ok(Some(
                    "a gateway's routes go into the main table; routes = false leaves them to you",
                ))
            }
            "fwmark" if value == "off" => self.mark = None,
            "fwmark" => {
                let hex = value
                    .strip_prefix("0x")
                    .map(|hex| u32::from_str_radix(hex, 16));
                let mark = hex.unwrap_or_else(|| value.parse());
                let least = FWMARK.form.min as u32;
                let mark = mark.ok().filter(|mark| *mark == 0 || *mark >= least);
                let mark =
                    mark.ok_or("must be off or a number, 256 .. 4294967295, like 51820 or 0xca6c")?;
                self.mark = Some(mark).filter(|mark| *mark != 0);
            }
            "preup" | "postup" | "predown" | "postdown" => {
                return Ok(Some("put the command into a unit of systemd"));
            }
            "saveconfig" => return Ok(Some("a gateway never writes its configuration")),
            _ => return Err("is no key of [Interface]".to_string()),
        }
        Ok(None)
    }

    /// The address to listen on: both versions of IP, unless the MTU needs the shorter headers of IPv4 and all peers
    /// are known to use it.
    fn local_address(&self, peers: &[Peer]) -> Result<IpAddr, (usize, String)> {
        let Some(mtu) = self.mtu.filter(|mtu| mtu.bytes > MTU_OVER_V6) else {
            return Ok(Ipv6Addr::UNSPECIFIED.into());
        };
        let other = peers.iter().find(|peer| !peer.is_over_v4());
        let why = match other {
            _ if mtu.bytes > MTU_OVER_V4 => format!(
                "must be at most {MTU_OVER_V6}, or {MTU_OVER_V4} if all endpoints are IPv4 addresses; \
                 if the network carries longer packets, leave it out and set underlay_mtu in the configuration"
            ),
            None => return Ok(Ipv4Addr::UNSPECIFIED.into()),
            Some(Peer { endpoint: Some(endpoint), .. }) => format!(
                "must be at most {MTU_OVER_V6} because {endpoint} may be reached over IPv6; write its IPv4 address to use up to {MTU_OVER_V4}"
            ),
            Some(Peer { line, .. }) => format!(
                "must be at most {MTU_OVER_V6} because the peer of line {line} has no Endpoint and may come over IPv6"
            ),
        };
        let headers = format!(
            "the tunnel adds {} bytes over IPv4 and {} over IPv6, and {UNDERLAY_MTU} are assumed to fit",
            UNDERLAY_MTU - MTU_OVER_V4,
            UNDERLAY_MTU - MTU_OVER_V6
        );
        Err((mtu.line, format!("MTU: {} {why}: {headers}", mtu.bytes)))
    }

    fn write(&self, device: &str, rate: &str, local: IpAddr) -> String {
        let mut text = format!("[gateway]\ndevice = \"{device}\"\n");
        if !self.addresses.is_empty() {
            let _ = writeln!(text, "address = {}", listed(&self.addresses));
        }
        let port = self.port.unwrap_or(PORT);
        let _ = writeln!(text, "listen = \"{}\"", SocketAddr::new(local, port));
        if let Some(mark) = self.mark {
            let _ = writeln!(text, "fwmark = {mark}");
        }
        if self.no_routes {
            let _ = writeln!(text, "routes = false");
        }
        if let Some(mtu) = self.mtu {
            let _ = writeln!(text, "mtu = \"{}B\"", mtu.bytes);
        }
        let _ = write!(
            text,
            "mode = \"wireguard\"\nprivate_key_file = \"{device}.key\"\n\n[link]\nrate = \"{rate}\"\n\n[scheduler]\npolicy = \"strict\"\n\n\
             [[class]]\nname = \"ef\"\nmatch = [{{ dscp = [\"EF\", \"VOICE-ADMIT\"] }}]\n\n[[class]]\nname = \"rest\"\nlimit = \"200ms\"\n"
        );
        text
    }
}

impl Peer {
    fn read(&mut self, key: &str, value: &str) -> Read {
        match key.to_ascii_lowercase().as_str() {
            "publickey" => {
                seal::key(value).ok_or("must be a key: 32 bytes in base64, 44 characters")?;
                self.public_key = Some(value.to_string());
            }
            "presharedkey" => self.preshared_key = Some(secret(value)?),
            "allowedips" => self.allowed.extend(nets(value)?),
            "endpoint" => {
                self.endpoint = Some(endpoint(value)?);
            }
            "persistentkeepalive" if value == "off" => self.keepalive_s = None,
            "persistentkeepalive" => {
                self.keepalive_s = Some(number(value, "off or a number of seconds, 0 .. 65535")?);
            }
            _ => return Err("is no key of [Peer]".to_string()),
        }
        Ok(None)
    }

    /// Whether its packets are known to use IPv4: a name may stand for addresses of IPv6, and a peer without an endpoint
    /// may come from one.
    fn is_over_v4(&self) -> bool {
        let endpoint = self.endpoint.as_ref();
        endpoint.is_some_and(|endpoint| endpoint.parse::<SocketAddrV4>().is_ok())
    }

    fn write(&self, name: &str, public_key: &str, device: &str, text: &mut String) {
        let _ = write!(
            text,
            "\n[[peer]]\nname = \"{name}\"\npublic_key = \"{public_key}\"\n"
        );
        if let Some(endpoint) = &self.endpoint {
            let _ = writeln!(text, "endpoint = \"{endpoint}\"");
        }
        let _ = writeln!(text, "allowed_ips = {}", listed(&self.allowed));
        if self.preshared_key.is_some() {
            let _ = writeln!(text, "preshared_key_file = \"{device}.{name}.psk\"");
        }
        if let Some(keepalive_s) = self.keepalive_s.filter(|s| *s > 0) {
            let _ = writeln!(text, "keepalive = \"{keepalive_s}s\"");
        }
    }
}

/// An endpoint with the number of its port, which may be that of a service by name, as with wg(8).
fn endpoint(value: &str) -> Result<String, String> {
    let wanted = || "must be an address or a name, and a port".to_string();
    let (host, port) = value.rsplit_once(':').ok_or_else(wanted)?;
    let number = match port.parse::<u16>() {
        Ok(number) => number,
        Err(_) if port.is_empty() || !port.contains(|c: char| c.is_ascii_alphabetic()) => {
            return Err(wanted());
        }
        Err(_) => udp_port(port).ok_or_else(|| {
            format!("{port:?} is no port by number, and no service of UDP in {SERVICES}; write its number")
        })?,
    };
    let endpoint = format!("{host}:{number}");
    let is_scoped = host.starts_with("[fe80:") && host.ends_with(']') && host.contains('%');
    let is_known =
        is_scoped || endpoint.parse::<SocketAddr>().is_ok() || host_name_of(&endpoint).is_some();
    if number == 0 || !is_known {
        return Err(wanted());
    }
    Ok(endpoint)
}

/// The port of a service of UDP, as services(5) names it.
fn udp_port(service: &str) -> Option<u16> {
    let services = std::fs::read_to_string(SERVICES).ok()?;
    services.lines().find_map(|line| {
        let line = line.split('#').next()?;
        let mut words = line.split_whitespace();
        let (name, port) = (words.next()?, words.next()?);
        let port = port.strip_suffix("/udp")?.parse().ok()?;
        (name == service || words.any(|alias| alias == service)).then_some(port)
    })
}

fn secret(value: &str) -> Result<Secret, String> {
    let key = seal::key(value).ok_or("must be a key: 32 bytes in base64, 44 characters")?;
    Ok(Secret::new(key))
}

fn number<N: std::str::FromStr>(value: &str, what: &str) -> Result<N, String> {
    value
        .parse()
        .map_err(|_| format!("{value:?} must be {what}"))
}

fn nets(value: &str) -> Result<Vec<IpNet>, String> {
    let net = |word: &str| {
        let word = word.trim();
        word.parse::<IpNet>()
            .or_else(|_| word.parse::<IpAddr>().map(IpNet::from))
            .map_err(|_| format!("{word:?} must be an address with a prefix length"))
    };
    value.split(',').map(net).collect()
}

fn listed(nets: &[IpNet]) -> String {
    let nets: Vec<String> = nets.iter().map(|net| format!("\"{net}\"")).collect();
    format!("[{}]", nets.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rand_pcg::rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    const FILE: &str = "[Interface]
PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=  # ours
Address = 10.200.100.8/24, fd00::8/64
ListenPort = 51821
DNS = 10.200.100.1
MTU = 1420
PostUp = ip route add 10.9.0.0/16 dev %i

[peer]
publickey = GtL7fZc/bLnqZldpVofMCD6hDjrK28SsdLxevJ+qtKU=
PresharedKey = /UwcSPg38hW/D9Y3tcS1FOV0K1wuURMbS0sesJEP5ak=
AllowedIPs = 10.200.100.0/24, 10.8.0.0/16
Endpoint = demo.wireguard.com:51820
PersistentKeepalive = 25
";

    fn parsed(text: &str) -> crate::config::Config {
        crate::config::parse(text, Path::new("wg0.toml"))
            .unwrap_or_else(|fault| panic!("{fault}\n{text}"))
    }

    #[test]
    fn a_file_becomes_a_configuration_that_does_the_same() {
        let imported = import(FILE, "wg0", "20Mbit").unwrap();
        let config = parsed(&imported.text);
        assert_eq!(
            (config.device.as_str(), config.mtu, config.listen.port()),
            ("wg0", 1420, 51821)
        );
        assert_eq!(config.addresses.len(), 2);
        let peer = &config.peers[0];
        assert_eq!(peer.host.as_ref().unwrap().host, "demo.wireguard.com");
        assert_eq!((peer.allowed.len(), peer.keepalive_s), (2, Some(25)));
        let files: Vec<&str> = imported
            .secrets
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(files, ["wg0.key", "wg0.peer1.psk"]);
        assert!(
            !imported.text.contains("yAnz5TF"),
            "secrets have files of their own"
        );
        assert_eq!(imported.left_out.len(), 2, "{:?}", imported.left_out);
        assert!(imported.left_out[0].starts_with("line 5: DNS is left out: "));
    }

    /// IP, UDP and WireGuard's header and tag (Donenfeld 2017, section 5.4.6) around a packet of this MTU, in Ethernet's
    /// 1500 bytes: 20 + 8 + 16 + 16 = 60 over IPv4, 80 over IPv6.
    #[test]
    fn an_mtu_is_taken_where_its_packets_fit_over_ipv4_or_ipv6() {
        let literal = FILE.replace("demo.wireguard.com:51820", "192.0.2.1:51820");
        for (file, mtu, listen) in [
            (FILE, 1420, "[::]:51821"),
            (&literal, 1420, "[::]:51821"),
            (&literal, 1421, "0.0.0.0:51821"),
            (&literal, 1440, "0.0.0.0:51821"),
        ] {
            let file = file.replace("MTU = 1420", &format!("MTU = {mtu}"));
            let imported = import(&file, "wg0", "20Mbit").unwrap();
            let config = parsed(&imported.text);
            assert_eq!(
                (config.mtu, config.listen.to_string()),
                (mtu, listen.to_string())
            );
            let said = imported.left_out.iter().any(|note| {
                note.starts_with(&format!(
                    "line 6: MTU = {mtu} fits over IPv4 only (over IPv6 at most 1420)"
                ))
            });
            assert_eq!(said, mtu > 1420, "{:?}", imported.left_out);
        }
        let without = FILE.replace("Endpoint = demo", "# Endpoint = demo");
        let v6 = FILE.replace("demo.wireguard.com", "[2001:db8::1]");
        let adds =
            "the tunnel adds 60 bytes over IPv4 and 80 over IPv6, and 1500 are assumed to fit";
        for (file, mtu, expected) in [
            (FILE, 1440, "1440 must be at most 1420 because demo.wireguard.com:51820 may be reached over IPv6"),
            (&v6, 1421, "1421 must be at most 1420 because [2001:db8::1]:51820 may"),
            (&without, 1440, "1440 must be at most 1420 because the peer of line 9 has no Endpoint"),
            (&literal, 1441, "1441 must be at most 1420, or 1440 if all endpoints are IPv4 addresses"),
            (&literal, 1450, "1450 must be at most 1420, or 1440 if"),
        ] {
            let file = file.replace("MTU = 1420", &format!("MTU = {mtu}"));
            let (line, fault) = import(&file, "wg0", "20Mbit").err().unwrap();
            assert!(line == 6 && fault.starts_with("MTU: ") && fault.contains(expected), "{line}: {fault}");
            assert!(fault.contains(adds), "{fault}");
        }
    }

    #[test]
    fn all_addresses_go_through_the_tunnel_as_with_wg_quick() {
        let file = FILE.replace("10.200.100.0/24, 10.8.0.0/16", "0.0.0.0/0, ::/0");
        let imported = import(&file, "wg0", "20Mbit").unwrap();
        let config = parsed(&imported.text);
        assert_eq!((config.routes, config.fwmark), (true, Some(51_820)));

        for (line, routes, mark) in [
            ("FwMark = 0xca6d", true, 51_821),
            ("Table = auto", true, 51_820),
            ("Table = off\nFwMark = 700", false, 700),
        ] {
            let file = file.replace("DNS =", &format!("{line}\nDNS ="));
            let config = parsed(&import(&file, "wg0", "20Mbit").unwrap().text);
            assert_eq!(
                (config.routes, config.fwmark),
                (routes, Some(mark)),
                "{line}"
            );
        }
    }

    /// wg(8) asks getaddrinfo(3), which takes a dot at the end of a name and services by name.
    #[test]
    fn endpoints_are_taken_as_wg_takes_them() {
        for (endpoint, host, port) in [
            ("demo.wireguard.com.:51820", "demo.wireguard.com.", 51820),
            ("demo.wireguard.com:domain", "demo.wireguard.com", 53),
            ("demo.wireguard.com:ntp", "demo.wireguard.com", 123),
        ] {
            let file = FILE.replace("demo.wireguard.com:51820", endpoint);
            let imported = import(&file, "wg0", "20Mbit").unwrap();
            let host_name = parsed(&imported.text).peers[0].host.clone().unwrap();
            assert_eq!((host_name.host.as_str(), host_name.port), (host, port));
        }
        for (endpoint, zone) in [
            ("192.0.2.1:ntp", None),
            ("[fe80::2%eth0]:123", Some("eth0")),
        ] {
            let file = FILE.replace("demo.wireguard.com:51820", endpoint);
            let imported = import(&file, "wg0", "20Mbit").unwrap();
            let config = parsed(&imported.text);
            let peer = &config.peers[0];
            assert_eq!(peer.endpoint.map(|at| at.port()), Some(123));
            assert_eq!(peer.zone.as_deref(), zone);
        }
    }

    #[test]
    fn a_port_that_the_system_would_choose_is_said() {
        let file = FILE.replace("51821", "0");
        let imported = import(&file, "wg0", "20Mbit").unwrap();
        assert_eq!(parsed(&imported.text).listen.port(), 51_820);
        let said =
            "line 4: ListenPort is left out: the system would choose another port at each start";
        assert!(
            imported.left_out[0].starts_with(said),
            "{:?}",
            imported.left_out
        );
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        for (old, new, line, expected) in [
            (
                "PrivateKey = yAnz",
                "PrivateKey = ",
                2,
                "PrivateKey: must be a key",
            ),
            (
                "10.200.100.8/24",
                "10.200.100.8/99",
                3,
                "\"10.200.100.8/99\" must be an address",
            ),
            ("51821", "70000", 4, "\"70000\" must be a port"),
            (
                "[peer]",
                "[Interface]\nMTU = 1300\n[peer]",
                9,
                "a second [Interface]; a gateway has one: put what belongs to it below line 1",
            ),
            (
                "com:51820",
                "com:no-such-service",
                13,
                "\"no-such-service\" is no port by number",
            ),
            ("com:51820", "com:0", 13, "must be an address or a name"),
            ("com:51820", "com:-1", 13, "must be an address or a name"),
            (
                "DNS = 10",
                "FwMark = 10",
                5,
                "FwMark: must be off or a number",
            ),
            ("MTU", "Mtuu", 6, "Mtuu: is no key of [Interface]"),
            ("[peer]", "[per]", 9, "[per]: must be [Interface] or [Peer]"),
            (
                "Endpoint = demo",
                "Endpoint = :",
                13,
                "Endpoint: must be an address or a name",
            ),
            (
                "PersistentKeepalive = 25",
                "PersistentKeepalive 25",
                14,
                "must be Key = Value",
            ),
            ("publickey =", "# publickey =", 9, "[Peer] has no PublicKey"),
            ("[Interface]", "", 2, "stands before [Interface]"),
        ] {
            assert!(FILE.contains(old), "{old}");
            let (found, fault) = import(&FILE.replacen(old, new, 1), "wg0", "1Mbit")
                .err()
                .unwrap();
            assert!(
                found == line && fault.contains(expected),
                "{new}: {found}: {fault}"
            );
        }
        let (_, fault) = import("", "wg0", "1Mbit").err().unwrap();
        assert!(fault.contains("has no PrivateKey"), "{fault}");
    }

    #[test]
    fn any_changed_file_is_refused_or_becomes_a_sound_configuration() {
        let mut random = Pcg64::seed_from_u64(7);
        let mut sound = 0;
        for _ in 0..5000 {
            let mut bytes = FILE.as_bytes().to_vec();
            for _ in 0..1 + random.next_u32() % 3 {
                let at = random.next_u32() as usize % bytes.len();
                bytes[at] = (random.next_u32() % 256) as u8;
            }
            let text = String::from_utf8_lossy(&bytes);
            if let Ok(imported) = import(&text, "wg0", "20Mbit") {
                sound += usize::from(
                    crate::config::parse(&imported.text, Path::new("wg0.toml")).is_ok(),
                );
            }
        }
        assert!(sound > 300, "too few are sound to say anything: {sound}");
    }
}
