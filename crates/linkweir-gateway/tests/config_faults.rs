// SPDX-License-Identifier: BSD-3-Clause
//! Every mistake in a configuration is found, at its line, with what is allowed and what to do.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;

use linkweir_core::{Full, Isolation, Limit, PolicyInfo, TimeLimit};
use linkweir_gateway::config::{self, Config, Fault};

const SHIPPED: &str = include_str!("../configs/ground.toml");

fn parse(text: &str) -> Result<Config, Fault> {
    config::parse(text, Path::new("ground.toml"))
}

/// The shipped configuration with `old` replaced by `new` once.
fn changed(old: &str, new: &str) -> String {
    assert!(SHIPPED.contains(old), "{old}");
    SHIPPED.replacen(old, new, 1)
}

/// (what is replaced, by what, what is expected)
const MISTAKES: &[(&str, &str, &str)] = &[
    ("[gateway]", "[gatway]", "ground.toml:7: gatway: unknown key; did you mean [gateway]?"),
    ("device = \"lw0\"", "device = \"a name of too many words\"", "ground.toml:8: gateway.device = \"a name of too many words\": must be the name of a network device: 1 .. 15 letters, digits, _, - or ."),
    ("device = \"lw0\"", "device = \"all\"", "ground.toml:8: gateway.device = \"all\": is a name that the kernel keeps for itself; choose another, like \"lw0\""),
    ("device = \"lw0\"", "device = \"default\"", "ground.toml:8: gateway.device = \"default\": is a name that the kernel keeps for itself"),
    ("device = \"lw0\"", "device = \"lo\"", "ground.toml:8: gateway.device = \"lo\": is a name that the kernel keeps for itself"),
    ("fd77::1/64", "::1/128", "ground.toml:9: gateway.address = [\"10.77.0.1/24\", \"::1/128\"]: ::1 cannot be the address of a device; choose one like \"fd77::1/64\""),
    ("fd77::1/64", "::/64", "ground.toml:9: gateway.address = [\"10.77.0.1/24\", \"::/64\"]: :: cannot be the address of a device"),
    ("fd77::1/64", "ff02::5/64", "ground.toml:9: gateway.address = [\"10.77.0.1/24\", \"ff02::5/64\"]: ff02::5 cannot be the address of a device"),
    ("10.77.0.1/24", "fd77::1/48", "ground.toml:9: gateway.address = [\"fd77::1/48\", \"fd77::1/64\"]: has fd77::1 twice; leave one of them out"),
    ("0.0.0.0:51820", "[::ffff:192.0.2.1]:51820", "ground.toml:10: gateway.listen = \"[::ffff:192.0.2.1]:51820\": is an address of IPv4; write \"192.0.2.1:51820\""),
    ("0.0.0.0:51820", "[fe80::1]:51820", "ground.toml:10: gateway.listen = \"[fe80::1]:51820\": holds on one link only; write \"[::]:51820\", and listen_device = \"eth0\" next to it"),
    ("0.0.0.0:51820", "[ff02::1]:51820", "ground.toml:10: gateway.listen = \"[ff02::1]:51820\": holds on one link only"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\ncontrol = \"/\"", "ground.toml:12: gateway.control = \"/\": must be the path of a file"),
    ("device = \"lw0\"", "device = 5", "ground.toml:8: gateway.device = 5: must be a string, not a whole number"),
    ("device = \"lw0\"", "divice = \"lw0\"", "ground.toml:8: gateway.divice = \"lw0\": unknown key; did you mean device?"),
    ("10.77.0.1/24", "10.77.0.1/33", "ground.toml:9: gateway.address[0] = \"10.77.0.1/33\": must be an address with a prefix length, like \"10.0.0.0/8\" or \"fd00::/8\""),
    ("0.0.0.0:51820", "0.0.0.0", "ground.toml:10: gateway.listen = \"0.0.0.0\": must be an address and a port, like \"192.0.2.1:51820\" or \"[2001:db8::1]:51820\""),
    ("0.0.0.0:51820", "0.0.0.0:0", "ground.toml:10: gateway.listen = \"0.0.0.0:0\": must have a port 1 .. 65535"),
    ("0.0.0.0:51820", "0.0.0.0:99999", "ground.toml:10: gateway.listen = \"0.0.0.0:99999\": must be an address and a port, like \"192.0.2.1:51820\" or \"[2001:db8::1]:51820\""),
    ("mode = \"cleartext\"", "mode = \"cleartxt\"", "ground.toml:11: gateway.mode = \"cleartxt\": must be one of wireguard, cleartext; did you mean \"cleartext\"?"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nmtu = \"1500B\"", "ground.toml:12: gateway.mtu = \"1500B\": must be 1280B .. 1472B (28 bytes of outer headers below 1500 for IPv6)"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nmtu = 1400", "ground.toml:12: gateway.mtu = 1400: needs a unit: one of GB, MB, kB, B, KiB, MiB, GiB, like \"1500B\""),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nunderlay_mtu = \"1300B\"", "ground.toml:12: gateway.underlay_mtu = \"1300B\": leaves 1272 bytes inside the tunnel, and 1280 for IPv6 are needed; raise it to at least 1308B"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nuser = \"no body\"", "ground.toml:12: gateway.user = \"no body\": must be one word"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nlisten_device = \"lw0\"", "ground.toml:12: gateway.listen_device = \"lw0\": is the tunnel itself; name the device towards the peers"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nlisten_device = \"a b\"", "ground.toml:12: gateway.listen_device = \"a b\": must be the name of a network device: 1 .. 15 letters"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nleak = \"deny\"", "ground.toml:12: gateway.leak = \"deny\": must be one of refuse, allow"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nroutes = false\nleak = \"refuse\"", "ground.toml:13: gateway.leak = \"refuse\": is only for routes that the gateway sets; remove it, or routes = false"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nfwmark = 255", "ground.toml:12: gateway.fwmark = 255: must be a whole number 256 .. 4294967295"),
    ("endpoint =", "probe_mtu = true\nendpoint =", "ground.toml:42: peer[0].probe_mtu = true: is only for mode = \"wireguard\""),
    ("rate = \"20Mbit\"", "rate = 20", "ground.toml:14: link.rate = 20: needs a unit: one of Gbit, Mbit, kbit, bit, like \"20Mbit\""),
    ("rate = \"20Mbit\"", "rate = \"20Mbps\"", "ground.toml:14: link.rate = \"20Mbps\": the suffix bps is refused because in tc it means bytes per second; use one of Gbit, Mbit, kbit, bit"),
    ("rate = \"20Mbit\"", "rate = \"abc\"", "ground.toml:14: link.rate = \"abc\": is not a number; write a rate like \"20Mbit\""),
    ("rate = \"20Mbit\"", "rate = \"0Mbit\"", "ground.toml:14: link.rate = \"0Mbit\": must be at least 1kbit at some time"),
    ("rate = \"20Mbit\"", "rat = \"20Mbit\"", "ground.toml:14: link.rat = \"20Mbit\": unknown key; did you mean rate?"),
    ("rate = \"20Mbit\"", "trace = \"nowhere.csv\"", "ground.toml:14: link.trace = \"nowhere.csv\": nowhere.csv: cannot be read: No such file or directory (os error 2)"),
    ("rate = \"20Mbit\"", "rate = \"20Mbit\"\ntrace = \"nowhere.csv\"", "ground.toml:15: link.trace = \"nowhere.csv\": rate and trace exclude each other; leave one out"),
    ("rate = \"20Mbit\"", "trace = 5\ncolumns = { t = \"at\", capacity = \"c\" }", "ground.toml:15: link.columns.capacity = \"c\": does not say its unit; write { column = \"c\", unit = ... } with one of Gbit, Mbit, kbit, bit, or GB, MB, kB, B for bytes per second"),
    ("rate = \"20Mbit\"", "trace = \"\"", "ground.toml:14: link.trace = \"\": must be a path"),
    ("rate = \"20Mbit\"", "rate = \"20Mbit\"\ncolumns = { t = \"at\", capacity = \"c_bps\" }", "ground.toml:15: link.columns = { t = \"at\", capacity = \"c_bps\" }: is only for a link with a trace"),
    ("rate = \"20Mbit\"", "trace = \"nowhere.csv\"\ncolumns = { t = \"at\", capacity = \"c\" }", "ground.toml:15: link.columns.capacity = \"c\": does not say its unit; write { column = \"c\", unit = ... } with one of Gbit, Mbit, kbit, bit, or GB, MB, kB, B for bytes per second"),
    ("rate = \"20Mbit\"", "rate = \"20Mbit\"\nfloor = \"1Mbit\"", "ground.toml:15: link.floor = \"1Mbit\": needs stale, the time after which it holds"),
    ("rate = \"20Mbit\"", "rate = \"20Mbit\"\nstale = \"10s\"", "ground.toml:15: link.stale = \"10s\": needs floor, the rate that holds from then on"),
    ("rate = \"20Mbit\"", "rate = \"20Mbit\"\ncommand = [\"/nowhere/rate\"]", "ground.toml:15: link.command = [\"/nowhere/rate\"]: /nowhere/rate is not a file; name a program"),
    ("rate = \"20Mbit\"", "command = [\"modem\"]", "ground.toml:14: link.command = [\"modem\"]: needs a rate to begin with; write rate = \"20Mbit\" next to it"),
    ("rate = \"20Mbit\"", "rate = { mean = \"20Mbit\", amplitude = 0.3, period = \"15s\" }\ncommand = [\"modem\"]", "ground.toml:15: link.command = [\"modem\"]: needs a rate that does not change by itself; leave one out"),
    ("overhead = \"14B\"", "stale = \"2s\"\nfloor = \"1Mbit\"\nfeedback = true", "ground.toml:17: link.feedback = true: needs stale = \"3s\" at least, because an idle link is reported once a second"),
    ("overhead = \"14B\"", "feedback = 5", "ground.toml:15: link.feedback = 5: must be true, or a table like { ceiling = \"40Mbit\" }"),
    ("overhead = \"14B\"", "floor = \"30Mbit\"\nfeedback = true", "ground.toml:16: link.feedback = true: rate is the first capacity and must lie between floor and ceiling, 30Mbit .. 1Gbit"),
    ("overhead = \"14B\"", "stale = \"5s\"\nfloor = \"1Mbit\"\nfeedback = { ceiling = \"900kbit\" }", "ground.toml:17: link.feedback.ceiling = \"900kbit\": must be 1Mbit .. 400Gbit"),
    ("overhead = \"14B\"", "stale = \"5s\"\nfloor = \"1Mbit\"\nfeedback = { ceiling = \"10Mbit\" }", "ground.toml:17: link.feedback.ceiling = \"10Mbit\": rate is the first capacity and must lie between floor and ceiling, 1Mbit .. 10Mbit"),
    ("overhead = \"14B\"", "stale = \"5s\"\nfloor = \"1Mbit\"\nfeedback = { ceiling = \"40Mbit\", delay = \"2s\" }", "ground.toml:17: link.feedback.delay = \"2s\": must be 1ms .. 1s"),
    ("overhead = \"14B\"", "command = [\"modem\"]\nfeedback = { ceiling = \"40Mbit\" }", "ground.toml:16: link.feedback = { ceiling = \"40Mbit\" }: and command exclude each other: both report the capacity; leave one out"),
    ("rate = \"20Mbit\"", "feedback = false", "ground.toml:40: peer[0].rate: is missing here and in [link]; write rate = \"20Mbit\" in one of them"),
    ("endpoint =", "report = \"yes\"\nendpoint =", "ground.toml:42: peer[0].report = \"yes\": must be true or false, not a string"),
    ("overhead = \"14B\"", "below = \"1kB\"", "ground.toml:15: link.below = \"1kB\": must be 3kB .. 10MB"),
    ("overhead = \"14B\"", "below = 16000", "ground.toml:15: link.below = 16000: needs a unit: one of"),
    ("endpoint =", "below = \"16kB\"\nendpoint =", "ground.toml:42: peer[0].below = \"16kB\": unknown key;"),
    ("overhead = \"14B\"", "across = \"pf\"", "ground.toml:15: link.across = \"pf\": must be a table like { policy = \"pf\" }"),
    ("overhead = \"14B\"", "across = { tc = \"1s\" }", "ground.toml:15: link.across.policy: is missing; write policy = \"pf\""),
    ("overhead = \"14B\"", "across = { policy = \"codel\" }", "ground.toml:15: link.across.policy = \"codel\": must be one of {nesting}; did you mean \"codes\"?"),
    ("overhead = \"14B\"", "across = { policy = \"pf\", tc = \"1ms\" }", "ground.toml:15: link.across.tc = \"1ms\": must be 10ms .. 100s (time constant"),
    ("overhead = \"14B\"", "across = { policy = \"drr\", weight = 2 }", "ground.toml:15: link.across.weight = 2: unknown key;"),
    ("overhead = \"14B\"", "across = { policy = \"pss\", level = 1, low_level = 3, rate = \"21Mbit\" }", "ground.toml:15: link.across.rate = \"21Mbit\": "),
    ("endpoint =", "across = { weight = 2 }\nendpoint =", "ground.toml:42: peer[0].across = { weight = 2 }: is only for a link that peers share; write across = { policy = \"pf\" } in [link]"),
    ("overhead = \"14B\"", "overhead = \"14kB\"", "ground.toml:15: link.overhead = \"14kB\": must be whole and -1kB .. 1kB"),
    ("policy = \"pss\"", "policy = \"ps\"", "ground.toml:18: scheduler.policy = \"ps\": must be one of"),
    ("policy = \"pss\"", "policy = \"dualpi2\"", "ground.toml:18: scheduler.policy = \"dualpi2\": needs packets sorted by their ECN codepoint, which no match of the gateway does; name another policy, or write flows = \"dualpi2\" in a class"),
    ("policy = \"pss\"", "policy = \"pss\"\nsaturation = \"never\"", "ground.toml:19: scheduler.saturation = \"never\": unknown key;"),
    ("name = \"af\"", "name = \"ef\"", "ground.toml:27: class[1].name = \"ef\": two classes have this name; rename one"),
    ("\"EF\", \"VOICE-ADMIT\"", "\"EF\", \"AF14\"", "ground.toml:22: class[0].match[0].dscp[1] = \"AF14\": must be a code point: EF, VOICE-ADMIT, AF11 .. AF43, CS0 .. CS7, LE, DF or 0 .. 63"),
    ("\"EF\", \"VOICE-ADMIT\"", "64", "ground.toml:22: class[0].match[0].dscp[0] = 64: must be a whole number 0 .. 63"),
    ("protocol = \"udp\"", "protocol = \"upd\"", "ground.toml:22: class[0].match[1].protocol = \"upd\": must be one of tcp, udp, icmp, sctp, esp, gre, or a number 0 .. 255"),
    ("[5060, \"16384-32767\"]", "[5060, \"32767-16384\"]", "ground.toml:22: class[0].match[1].port[1] = \"32767-16384\": must be a port 1 .. 65535 or a range like \"16384-32767\""),
    ("[5060, \"16384-32767\"]", "70000", "ground.toml:22: class[0].match[1].port = 70000: must be a whole number 1 .. 65535"),
    ("match = [{ dscp = [\"AF11\"", "match = [{ }, { dscp = [\"AF11\"", "ground.toml:28: class[1].match[0] = { }: is empty and would take everything; write {} as the last rule of the class that takes the rest"),
    ("match = [{ dscp = [\"AF11\"", "match = [{ dscp = \"EF\" }, { dscp = [\"AF11\"", "ground.toml:28: class[1].match[0] = { dscp = \"EF\" }: matches no packet: class \"ef\" comes before and takes all of these; leave this out or put it first"),
    ("match = [{ dscp = [\"AF11\"", "level = 9\nmatch = [{}]\n[[class]]\nname = \"again\"\nmatch = [{}] # [{ dscp = [\"AF11\"", "ground.toml:32: class[2].match = [{}]: ends with {}, and only one class takes what no other does, \"af\"; write match = [{ dscp = \"EF\" }]"),
    ("match = [{ dscp = [\"AF11\"", "# match = [{ dscp = [\"AF11\"", "ground.toml:35: class[2].match: is missing, and only one class takes what no other does, \"af\"; write match = [{ dscp = \"EF\" }]"),
    ("name = \"rest\" ", "name = \"rest\"\nmatch = [{ dscp = 0 }] ", "ground.toml:37: class[2].match = [{ dscp = 0 }]: one class must take what no other does; leave match out there"),
    ("limit = \"100p\"", "limit = \"0p\"", "ground.toml:24: class[0].limit = \"0p\": must be 1p .. 1000000p"),
    ("limit = \"100p\"", "limit = \"1000000p\"", "ground.toml:20: class = [[class]]: 3 classes towards 1 peers may hold 1589612902B, more than 1GB; lower limit or limit_bytes"),
    ("limit = \"100p\"", "limit = \"0.1ms\"", "ground.toml:24: class[0].limit = \"0.1ms\": must be 1ms .. 60s"),
    ("limit = \"100p\"", "max_age = \"2h\"", "ground.toml:24: class[0].max_age = \"2h\": must be 1ms .. 3600s"),
    ("limit = \"100p\"", "full = \"front\"", "ground.toml:24: class[0].full = \"front\": must be one of tail, head"),
    ("limit = \"100p\"", "flows = \"sfq\"", "ground.toml:24: class[0].flows = \"sfq\": must be one of fq_codel, drr, dualpi2"),
    ("limit = \"100p\"", "flows = \"dualpi2\"\nl4s_step = \"5s\"", "ground.toml:25: class[0].l4s_step = \"5s\": must be 0s .. 4s"),
    ("limit = \"100p\"", "flows = \"drr\"\nl4s_step = \"2ms\"", "ground.toml:25: class[0].l4s_step = \"2ms\": is for L4S packets, which the class does not sort; add flows = \"dualpi2\", or leave it out"),
    ("limit = \"100p\"", "least = \"95%\"", "ground.toml:24: class[0].least = \"95%\": must be "),
    ("level = 2\n", "level = 2\nleast = \"50%\"\n[[class]]\nname = \"more\"\nmatch = [{ port = 7 }]\nlevel = 4\nleast = \"50%\"\n", "ground.toml:43: class[3].least = \"50%\": must leave the policy something: with the other classes it is "),
    ("low_level = 3", "low_level = 2", "ground.toml:37: class[2].level = 2: another queue has this level"),
    ("rate = \"5Mbit\"", "rate = \"25Mbit\"", "ground.toml:31: class[1].rate = \"25Mbit\": "),
    ("rate = \"5Mbit\"", "rate = \"-5Mbit\"", "ground.toml:31: class[1].rate = \"-5Mbit\": must be "),
    ("rate = \"5Mbit\"", "bw = 0.3", "ground.toml:31: class[1].bw = 0.3: unknown key;"),
    ("192.0.2.2:51820", "ship.example:51820", "ground.toml:42: peer[0].endpoint = \"ship.example:51820\": must be an address and a port, like \"192.0.2.1:51820\" or \"[2001:db8::1]:51820\""),
    ("192.0.2.2:51820", "[2001:db8::2]:51820", "ground.toml:42: peer[0].endpoint = \"[2001:db8::2]:51820\": must be IPv4, as gateway.listen is 0.0.0.0:51820; \"[::]:51820\" carries both"),
    ("10.77.0.2/32", "10.77.0.1/32", "ground.toml:43: peer[0].allowed_ips = [\"10.77.0.1/32\", \"fd77::2/128\", \"10.78.0.0/16\"]: 10.77.0.1/32 is an address of this gateway itself; leave it out, or correct gateway.address"),
    ("fd77::2/128", "fd77::1", "ground.toml:43: peer[0].allowed_ips = [\"10.77.0.2/32\", \"fd77::1\", \"10.78.0.0/16\"]: fd77::1/128 is an address of this gateway itself; leave it out"),
    ("192.0.2.2:51820", "[fe80::2%out]:51820", "ground.toml:42: peer[0].endpoint = \"[fe80::2%out]:51820\": must be IPv4, as gateway.listen is 0.0.0.0:51820; \"[::]:51820\" carries both"),
    ("192.0.2.2:51820", "[2001:db8::2%out]:51820", "ground.toml:42: peer[0].endpoint = \"[2001:db8::2%out]:51820\": names a device, which only a link-local address, fe80::/10, needs; leave out what follows the %"),
    ("192.0.2.2:51820", "[fe80::2%a b]:51820", "ground.toml:42: peer[0].endpoint = \"[fe80::2%a b]:51820\": must have the name of a network device behind the %, like \"[fe80::1%eth0]:51820\""),
    ("192.0.2.2:51820", "[fe80::2%]:51820", "ground.toml:42: peer[0].endpoint = \"[fe80::2%]:51820\": must have the name of a network device behind the %"),
    ("192.0.2.2:51820", "[fe80::2%out]:0", "ground.toml:42: peer[0].endpoint = \"[fe80::2%out]:0\": must have a port 1 .. 65535"),
    ("10.78.0.0/16", "128.0.0.0/1", "ground.toml:42: peer[0].endpoint = \"192.0.2.2:51820\": lies in 128.0.0.0/1, which would be routed into the tunnel itself; write 0.0.0.0/0 instead of 0.0.0.0/1 and 128.0.0.0/1: that route leaves the tunnel's own datagrams out"),
    ("allowed_ips", "alowed_ips", "ground.toml:43: peer[0].alowed_ips = [\"10.77.0.2/32\", \"fd77::2/128\", \"10.78.0.0/16\"]: unknown key; did you mean allowed_ips?"),
    ("allowed_ips", "networks", "ground.toml:40: peer[0].allowed_ips: is missing; write allowed_ips = [\"10.0.0.0/8\"]"),
    ("10.78.0.0/16\"]", "10.78.0.0/16\"]\n[[peer]]\nname = \"ship\"", "ground.toml:45: peer[1].name = \"ship\": two peers have this name; rename one"),
    ("10.78.0.0/16\"]", "10.78.0.0/16\"]\n[[peer]]\nname = \"boat\"\nendpoint = \"192.0.2.2:51820\"", "ground.toml:46: peer[1].endpoint = \"192.0.2.2:51820\": is that of peer \"ship\" too, and in cleartext mode peers are known by it alone; change one"),
    ("10.78.0.0/16\"]", "10.78.0.0/16\"]\n[[peer]]\nname = \"boat\"\nendpoint = \"192.0.2.3:51820\"\nallowed_ips = \"10.78.4.0/16\"", "ground.toml:47: peer[1].allowed_ips = \"10.78.4.0/16\": peer \"ship\" has 10.78.0.0/16 already; give it to one of them"),
    ("mode = \"cleartext\"", "mode = \"wireguard\"", "ground.toml:7: gateway.private_key_file: is missing; make a key with `linkweir-gateway keygen FILE` and write private_key_file = \"FILE\""),
    ("mode = \"cleartext\"", "mode = \"wireguard\"\nprivate_key_file = \"key\"", "ground.toml:41: peer[0].public_key: is missing; `linkweir-gateway keygen` prints that of a new key"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nprivate_key_file = \"key\"", "ground.toml:12: gateway.private_key_file = \"key\": is only for mode = \"wireguard\""),
    ("endpoint =", "public_key = \"abc\"\nendpoint =", "ground.toml:42: peer[0].public_key = \"abc\": is only for mode = \"wireguard\""),
    ("10.78.0.0/16", "192.0.2.0/24", "ground.toml:42: peer[0].endpoint = \"192.0.2.2:51820\": lies in 192.0.2.0/24, which would be routed into the tunnel itself; set gateway.routes = false and route by hand"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nouter_dscp = \"EF\"", "ground.toml:12: gateway.outer_dscp = \"EF\": is only for dscp = \"pipe\""),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\ndrain = 5", "ground.toml:12: gateway.drain = 5: needs a unit: one of"),
    ("[[peer]]", "[peer]", "ground.toml:40: peer: is one table [peer], and there may be several; write [[peer]] with two brackets"),
    ("[[peer]]", "[[peers]]", "ground.toml:40: peers: unknown key; did you mean [[peer]]?"),
    ("[[class]]", "[class]", "ground.toml:20: class: is written [class] here and [[class]] in line 26: use one form; [[class]] only for what may be there several times"),
    ("[scheduler]", "[link]", "ground.toml:17: link: is a second table [link]; the first is in line 13: put all keys under one"),
    ("rate = \"20Mbit\"", "rate = \"20Mbit\"\nrate = \"30Mbit\"", "ground.toml:15: link.rate = \"30Mbit\": is given twice, first in line 14; leave one of them out"),
    ("rate = \"20Mbit\"", "rate = \u{201c}20Mbit\u{201d}", "ground.toml:14: link.rate = \u{201c}20Mbit\u{201d}: \u{201c} is not a quotation mark of TOML; write rate = \"20Mbit\""),
    ("mode = \"cleartext\"", "mode = cleartext", "ground.toml:11: gateway.mode = cleartext: needs quotes; write mode = \"cleartext\""),
    ("rate = \"20Mbit\"", "rate = \"20mbit\"", "ground.toml:14: link.rate = \"20mbit\": unknown unit \"mbit\" for a rate; use one of Gbit, Mbit, kbit, bit; did you mean \"20Mbit\"?"),
    ("policy = \"pss\"", "policy = \"wfq\"", "ground.toml:18: scheduler.policy = \"wfq\": must be one of {policies}"),
    ("[gateway]", "[Interface]", "ground.toml:7: Interface: unknown key; did you mean [gateway]?"),
    ("listen = \"0.0.0.0:51820\"", "ListenPort = 51820", "ground.toml:10: gateway.ListenPort = 51820: unknown key; did you mean listen = \"0.0.0.0:51820\"?"),
    ("mode = \"cleartext\"", "mode = \"wireguard\"\nPrivateKey = \"abc\"", "ground.toml:12: gateway.PrivateKey = \"abc\": unknown key; did you mean private_key_file, the file that holds the key?"),
    ("mode = \"cleartext\"", "mode = \"wireguard\"\nprivate_key_fiel = \"key\"", "ground.toml:12: gateway.private_key_fiel = \"key\": unknown key; did you mean private_key_file?"),
    ("mode = \"cleartext\"", "mode = \"cleartext\"\nAddress = \"10.77.0.1/24\"", "ground.toml:12: gateway.Address = \"10.77.0.1/24\": unknown key; did you mean address?"),
    ("allowed_ips", "AllowedIPs", "ground.toml:43: peer[0].AllowedIPs = [\"10.77.0.2/32\", \"fd77::2/128\", \"10.78.0.0/16\"]: unknown key; did you mean allowed_ips?"),
    ("endpoint", "Endpoint", "ground.toml:42: peer[0].Endpoint = \"192.0.2.2:51820\": unknown key; did you mean endpoint?"),
    ("endpoint =", "endpiont =", "ground.toml:42: peer[0].endpiont = \"192.0.2.2:51820\": unknown key; did you mean endpoint?"),
    ("endpoint =", "PersistentKeepalive = 25\nendpoint =", "ground.toml:42: peer[0].PersistentKeepalive = 25: unknown key; did you mean keepalive = \"25s\"?"),
    ("level = 0", "level = 0 0", "ground.toml:23: is not TOML: "),
];

#[test]
fn the_shipped_configuration_is_sound() {
    let config = parse(SHIPPED).unwrap();
    assert_eq!(config.mtu, 1472, "1500 less 20 of IPv4 and 8 of UDP");
    assert_eq!(config.wire_bytes(1472), 1514, "with 14 of Ethernet");
    assert_eq!(config.rules.rest, 2);
    assert_eq!(config.peers[0].capacity.nominal_bps, 20_000_000);
}

#[test]
fn a_link_is_measured_where_its_interface_is_and_shared_where_peers_share_it() {
    for (line, measured, shared) in [
        ("overhead = \"14B\"", false, false),
        ("below = \"16kB\"", true, false),
        ("across = { policy = \"drr\" }", false, true),
    ] {
        let config = parse(&changed("overhead = \"14B\"", line)).unwrap();
        let setup = config.link_setup(&config.peers[0]);
        assert_eq!((setup.measured, setup.shared), (measured, shared), "{line}");
    }
}

#[test]
fn the_shipped_hub_is_sound() {
    let text = include_str!("../configs/hub.toml");
    let config = config::parse(text, Path::new("hub.toml")).unwrap();
    let across = config.across.as_ref().unwrap();
    assert_eq!(across.info.name, "pf");
    let weight = across.info.qparam("weight").unwrap();
    assert_eq!([across.qparams[weight], across.qparams[1 + weight]], [2, 1]);
    assert_eq!(config.fastest_bps(), 20_000_000);
}

/// A message with the policies of today: all, and those that can be nested.
fn with_policies(expected: &str) -> String {
    let names = |wanted: fn(&PolicyInfo) -> bool| {
        let known = linkweir_core::policies().iter();
        let found = known.filter(|info| !info.sorted_by_ecn && wanted(info));
        found.map(|info| info.name).collect::<Vec<_>>().join(", ")
    };
    expected
        .replace("{policies}", &names(|_| true))
        .replace("{nesting}", &names(PolicyInfo::nests))
}

#[test]
fn every_mistake_is_found_at_its_line() {
    for (old, new, expected) in MISTAKES {
        let expected = &with_policies(expected);
        let fault = parse(&changed(old, new)).expect_err(new).to_string();
        assert!(
            fault.starts_with(expected),
            "{new}\n  got      {fault}\n  expected {expected}"
        );
    }
}

#[test]
fn underlays_are_several_different_ways() {
    let peer = r#"[[peer]]
name = "one"
public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
allowed_ips = "10.1.0.0/16"
underlays = [
  { name = "starlink", endpoint = "192.0.2.1:51820", device = "wan0" },
  { name = "lte", endpoint = "192.0.2.1:51820", device = "wwan0" },
]
"#;
    let whole = |mode: &str, listen: &str, peer: &str| {
        let text = changed("mode = \"cleartext\"", mode);
        let text = text.replacen("0.0.0.0:51820", listen, 1);
        let at = text.find("[[peer]]").unwrap();
        parse(&format!("{}{peer}", &text[..at]))
    };
    let sealed = "mode = \"wireguard\"\nprivate_key_file = \"key\"";
    let any = "0.0.0.0:51820";
    let config = whole(sealed, any, peer).unwrap();
    let probing = config.peers[0].probing.unwrap();
    assert!(
        probing.every_ns + probing.failover_ns <= 1_000_000_000,
        "{probing:?}"
    );
    assert_eq!(config.peers[0].endpoint, "192.0.2.1:51820".parse().ok());
    for (old, new, expected) in [
        (
            "allowed_ips",
            "endpoint = \"192.0.2.1:51820\"\nallowed_ips",
            "endpoint = \"192.0.2.1:51820\": and underlays exclude each other",
        ),
        ("wwan0", "wan0", "underlays[1] = "),
        ("wwan0", "lw0", "device = \"lw0\" is the tunnel itself"),
        (
            "\"lte\"",
            "\"starlink\"",
            "two ways are called starlink; rename one",
        ),
        (
            "endpoint",
            "endpont",
            "endpont = \"192.0.2.1:51820\": unknown key; did you mean endpoint?",
        ),
        (
            "device = \"wan0\"",
            "device = \"a name too long for it\"",
            "must be the name of a network device",
        ),
        (
            "underlays = [",
            "probe = { every = \"1s\" }\nunderlays = [",
            "must not be shorter than every",
        ),
        (
            "underlays = [",
            "probe = { failback = \"1\" }\nunderlays = [",
            "probe.failback = \"1\"",
        ),
        (
            "underlays = [",
            "probe = { often = \"1s\" }\nunderlays = [",
            "known here: every, failover, failback",
        ),
    ] {
        assert!(peer.contains(old));
        let fault = whole(sealed, any, &peer.replacen(old, new, 1))
            .unwrap_err()
            .to_string();
        assert!(fault.contains(expected), "{new}: {fault}");
    }
    let fault = whole(sealed, "192.0.2.9:51820", peer)
        .unwrap_err()
        .to_string();
    assert!(
        fault.contains("needs gateway.listen = \"0.0.0.0:51820\""),
        "{fault}"
    );
    let keyless = peer.replace(
        "public_key = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\n",
        "",
    );
    let fault = whole("mode = \"cleartext\"", any, &keyless)
        .unwrap_err()
        .to_string();
    assert!(
        fault.contains("is only for mode = \"wireguard\""),
        "{fault}"
    );
    let alone = peer.replace(
        "  { name = \"lte\", endpoint = \"192.0.2.1:51820\", device = \"wwan0\" },\n",
        "",
    );
    let fault = whole(sealed, any, &alone).unwrap_err().to_string();
    assert!(
        fault.contains("must list two ways or more; for one write endpoint"),
        "{fault}"
    );
    let without = peer.replace("underlays = [\n", "probe = {}\nx = [\n");
    let fault = whole(sealed, any, &without).unwrap_err().to_string();
    assert!(
        fault.contains("is only for a peer with underlays"),
        "{fault}"
    );
}

#[test]
fn paths_are_several_and_classes_say_how_they_use_them() {
    let text = include_str!("../configs/boat.toml");
    let config = parse(text).unwrap();
    let peer = &config.peers[0];
    let names: Vec<&str> = peer.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["starlink", "lte"]);
    assert_eq!(peer.endpoint, "192.0.2.1:51820".parse().ok());
    let probing = peer.probing.unwrap();
    assert!(
        probing.at_once && probing.every_ns + probing.failover_ns < 300_000_000,
        "{probing:?}"
    );
    // 1500 bytes without IPv4, UDP, encryption and the number.
    assert_eq!(config.mtu, 1500 - 28 - 32 - 12);
    let reorder: Vec<Option<u64>> = config.classes.iter().map(|of| of.reorder_ns).collect();
    assert_eq!(reorder, [Some(0), Some(400_000_000), None]);
    let none = parse(&text.replace("reorder = \"400ms\"", "reorder = \"none\"")).unwrap();
    assert_eq!(none.classes[1].reorder_ns, Some(0));
    for (old, new, expected) in [
        (
            "keepalive",
            "endpoint = \"192.0.2.1:51820\"\nkeepalive",
            "endpoint = \"192.0.2.1:51820\": and [[peer.path]] exclude each other",
        ),
        (
            "keepalive",
            "probe_mtu = true\nkeepalive",
            "probe_mtu = true: and [[peer.path]] exclude each other",
        ),
        (
            "keepalive",
            "rate = \"20Mbit\"\nkeepalive",
            "rate = \"20Mbit\": is of the whole peer, and each [[peer.path]] has its own",
        ),
        (
            "\"lte\"",
            "\"starlink\"",
            "two paths are called starlink; rename one",
        ),
        (
            "\"lte\"",
            "\"a-name-of-seventee\"",
            "has 18 bytes; the name of a path has at most 16",
        ),
        (
            "\"lte\"",
            "\"l\\u001bte\"",
            "name = \"l\\u001bte\": must be one word",
        ),
        ("\"lte\"", "\"lte\\nup\"", "must be one word"),
        ("wwan0", "eth1", "is the same path as starlink"),
        (
            "\"wwan0\"",
            "\"lw0\"",
            "device = \"lw0\" is the tunnel itself",
        ),
        (
            "cost = 10",
            "source = \"eth0\"",
            "must be an address of this end, like \"192.0.2.2\"",
        ),
        (
            "cost = 10",
            "source = \"fd00::1\"",
            "must be of the same version of IP as endpoint",
        ),
        (
            "cost = 10",
            "command = [\"sh\"]\nrate = \"1Mbit\"",
            "exclude each other",
        ),
        ("cost = 10", "cost = 1000000001", "0 .. 1000000000"),
        ("cost = 10", "costs = 10", "unknown key; did you mean cost?"),
        (
            "feedback = { ceiling = \"30Mbit\" }\nfloor = \"1Mbit\"\n",
            "",
            "rate: is missing; write rate = \"20Mbit\", or feedback = true",
        ),
        (
            "\"spill\"",
            "\"spil\"",
            "must be one of best, all, spill, stripe",
        ),
        (
            "\"spill\"",
            "\"lte\"",
            "must be one of best, all, spill, stripe, or a list of names, like [\"lte\"]",
        ),
        (
            "\"spill\"",
            "[\"wifi\"]",
            "peer \"base\" has no path wifi; it has starlink, lte",
        ),
        (
            "\"spill\"",
            "[\"best\"]",
            "peer \"base\" has no path best; it has starlink, lte; did you mean paths = \"best\", without a list?",
        ),
        ("\"spill\"", "[\"lte\", \"lte\"]", "is there twice"),
        (
            "\"spill\"",
            "\"spill\"\nresend = true",
            "needs reorder, so that the far end can drop what had arrived; write reorder = \"375ms\"",
        ),
        (
            "paths = \"all\"",
            "paths = \"all\"\nresend = true",
            "is not for paths = \"all\"",
        ),
        (
            "reorder = \"400ms\"",
            "reorder = \"3s\"",
            "must be 1ms .. 2s, or \"none\"",
        ),
        (
            "[[peer.path]]",
            "[[peer.paths]]",
            "peer[0].paths: unknown key; did you mean path?",
        ),
        (
            "0.0.0.0:51820",
            "192.0.2.9:51820",
            "needs gateway.listen = \"0.0.0.0:51820\"",
        ),
        (
            "[link]",
            "[link]\nbelow = \"16kB\"",
            "measures one interface, and peer \"base\" has several paths",
        ),
        (
            "[link]",
            "[link]\nrate = \"1Mbit\"\nacross = { policy = \"drr\" }",
            "is not for peers that share one link; leave link.across out",
        ),
    ] {
        assert!(text.contains(old), "{old}");
        let fault = parse(&text.replacen(old, new, 1))
            .expect_err(new)
            .to_string();
        assert!(fault.contains(expected), "{new}: {fault}");
    }
    let strict = text
        .lines()
        .filter(|line| {
            !["level", "low_level"]
                .iter()
                .any(|key| line.starts_with(key))
        })
        .filter(|line| *line != "rate = \"4Mbit\"          # kept over the paths that are up")
        .collect::<Vec<_>>()
        .join("\n");
    assert!(parse(&strict.replace("\"pss\"", "\"strict\"")).is_ok());
    let fault = parse(&strict.replace("\"pss\"", "\"drr\""))
        .unwrap_err()
        .to_string();
    assert!(
        fault.contains("cannot serve several paths to a peer")
            && fault.ends_with("choose one of fifo, strict, pss, pds, codel"),
        "{fault}"
    );
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    let late =
        |reorder: &str| text.replace("reorder = \"400ms\"", &format!("reorder = \"{reorder}\""));
    let advice = |every: &str, failover: &str, reorder: &str| {
        let probe =
            format!("probe = {{ every = \"{every}\", failover = \"{failover}\" }}\n[[peer.path]]");
        let text = late(reorder).replacen("[[peer.path]]", &probe, 1);
        parse(&text).unwrap().warnings()
    };
    assert_eq!(
        advice("50ms", "200ms", "249ms"),
        [
            "class video: a path to peer base that falls silent is noticed after 250ms, or 50ms and two round trips if that is \
             longer, and reorder is 249ms, so what is sent again comes too late; raise reorder at both ends to 375ms, or to 75ms \
             and three round trips if that is longer"
        ]
    );
    // Repetitions begin then and take every second turn, so the last ones need half as long again.
    let some = advice("50ms", "200ms", "374ms");
    assert!(
        some[0].contains("and reorder is 374ms, so some of what is sent again comes too late; raise reorder at both ends to 375ms,"),
        "{some:?}"
    );
    assert!(advice("50ms", "200ms", "375ms").is_empty());
    // The greatest reorder is 2s.
    let far = advice("1s", "4s", "1900ms");
    assert!(
        far[0].ends_with("; lower every and failover of probe to 1.333s together, and raise reorder at both ends to 2s"),
        "{far:?}"
    );
    assert!(advice("333ms", "1s", "2s").is_empty());
    assert!(
        advice("500ms", "1s", "2s").is_empty(),
        "as long as it may be"
    );
    // Once a round trip is known, `show` has it in mind.
    let of_round_trip = |reorder: &str, rtt_ns: u64| {
        let config = parse(&late(reorder)).unwrap();
        config.sent_again_late(&config.peers[0], rtt_ns)
    };
    assert_eq!(of_round_trip("400ms", 108_000_000), None);
    assert!(of_round_trip("400ms", 109_000_000).is_some());
    assert_eq!(
        of_round_trip("400ms", 180_000_000).unwrap(),
        "class video: a path to peer base with a round trip of 180ms that falls silent is noticed after 410ms, and reorder is \
         400ms, so what is sent again comes too late; raise reorder at both ends to 615ms"
    );
    assert_eq!(of_round_trip("615ms", 180_000_000), None);
    let satellite = of_round_trip("2s", 1_000_000_000).unwrap();
    assert!(
        satellite.ends_with("; no reorder is long enough for this round trip: use paths = \"all\" for what must not be lost"),
        "{satellite}"
    );
    let at = text.find("[[peer.path]]").unwrap();
    let without = format!("{}\nrate = \"1Mbit\"", &text[..at]);
    let fault = parse(&without).unwrap_err().to_string();
    assert!(
        fault.ends_with("paths = \"all\": is only for peers with [[peer.path]]; leave it out, or give a peer [[peer.path]]"),
        "{fault}"
    );
}

const BOAT: &str = include_str!("../configs/boat.toml");

/// A list of several names is `stripe` over these, so packets get numbers by the same default; over one path none overtakes.
#[test]
fn packets_over_several_named_paths_are_numbered() {
    let of = |names: &str| {
        let config = parse(&BOAT.replace("\"spill\"", names)).unwrap();
        config.classes[2].reorder_ns
    };
    assert_eq!(of("\"stripe\""), Some(50_000_000));
    assert_eq!(of("[\"starlink\", \"lte\"]"), Some(50_000_000));
    assert_eq!(of("[\"lte\"]"), None);
    assert_eq!(of("[\"starlink\", \"lte\"]\nreorder = \"none\""), Some(0));
}

/// Who follows the cure of `resend` without `reorder` is not warned next.
#[test]
fn the_reorder_that_resend_asks_for_is_long_enough() {
    for (probe, cure) in [
        ("", "375ms"),
        (
            "probe = { every = \"100ms\", failover = \"500ms\" }\n",
            "900ms",
        ),
    ] {
        let text = BOAT.replacen("[[peer.path]]", &format!("{probe}[[peer.path]]"), 1);
        let fault = parse(&text.replace("\"spill\"", "\"spill\"\nresend = true"));
        let fault = fault.unwrap_err().to_string();
        let cure = format!("reorder = \"{cure}\"");
        assert!(fault.ends_with(&format!("write {cure}")), "{fault}");
        let text = text.replace("reorder = \"400ms\"", "reorder = \"2s\"");
        let cured = format!("\"spill\"\nresend = true\n{cure}");
        let warnings = parse(&text.replace("\"spill\"", &cured))
            .unwrap()
            .warnings();
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}

/// With feedback the policy begins with what each path begins with, and `[link]` has no part in it.
#[test]
fn a_reservation_beyond_the_paths_first_rates_says_where_these_are() {
    let text = BOAT.replace("rate = \"4Mbit\" ", "rate = \"25Mbit\"");
    let fault = parse(&text).unwrap_err().to_string();
    let cure = "peer base begins with 20Mbit: starlink with 10Mbit, lte with 10Mbit; write rate or nominal in its [[peer.path]])";
    assert!(fault.ends_with(cure), "{fault}");
    let cured = text.replace("cost = ", "nominal = \"30Mbit\"\ncost = ");
    assert!(parse(&cured).is_ok());
}

/// A capacity that nothing uses is not silently ignored.
#[test]
fn a_capacity_of_a_link_whose_peers_have_paths_is_named() {
    let with = |key: &str| parse(&BOAT.replace("[link]", &format!("[link]\n{key}")));
    let message = "is used by no peer: each [[peer.path]] has its own; move it there";
    assert!(parse(BOAT).unwrap().told.is_empty());
    for key in ["rate = \"200Mbit\"", "feedback = true"] {
        let name = key.split(' ').next().unwrap();
        assert_eq!(with(key).unwrap().told, [format!("link.{name} {message}")]);
    }
    // Without a capacity it says more of nothing.
    let fault = with("nominal = \"70Mbit\"").unwrap_err().to_string();
    assert!(
        fault.ends_with(&format!("link.nominal = \"70Mbit\": {message}")),
        "{fault}"
    );
    let direct = "[[peer]]\nname = \"van\"\npublic_key = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\nallowed_ips = \"10.78.0.0/24\"\n";
    let two = BOAT.replace("[link]", "[link]\nrate = \"200Mbit\"");
    assert!(parse(&format!("{two}{direct}")).unwrap().told.is_empty());
}

#[test]
fn a_floor_without_a_capacity_says_what_it_needs() {
    let without = |feedback: &str| {
        let text = BOAT.replace("feedback = { ceiling = \"30Mbit\" }", feedback);
        parse(&text).unwrap_err().to_string()
    };
    for feedback in ["", "feedback = false"] {
        let fault = without(feedback);
        let expected = "peer[0].path[1].floor = \"1Mbit\": needs a capacity; write rate, trace or feedback next to it";
        assert!(fault.ends_with(expected), "{fault}");
    }
}

/// docs/records/l4s.md, "Inside a class": turns of 20 packets, and a step below the time of two packets, starve L4S flows.
#[test]
fn a_reservation_that_starves_l4s_is_named_with_the_cure() {
    let warned = |rate: &str, keys: &str| {
        let rates = format!("rate = \"{rate}\"\nflows = \"dualpi2\"\n{keys}");
        let text = changed("rate = \"20Mbit\"", "rate = \"100Mbit\"");
        let text = text.replacen("rate = \"5Mbit\"", &rates, 1);
        parse(&text).unwrap().warnings()
    };
    assert_eq!(
        warned("40Mbit", ""),
        ["class af: in turns of 20 packets at 40Mbit, its L4S packets wait for longer than l4s_step = \"1ms\" and are all marked, \
          so that they get little of the class; write burst = \"2p\""]
    );
    assert!(warned("40Mbit", "burst = \"2p\"").is_empty());
    // Two packets of 1514 bytes take 2.019 ms at 12 Mbit/s.
    let slow = warned("12Mbit", "");
    assert!(
        slow[0].ends_with("; write burst = \"2p\" and l4s_step = \"2.1ms\""),
        "{slow:?}"
    );
    let step = warned("12Mbit", "burst = \"2p\"");
    assert!(
        step[0].ends_with("; write l4s_step = \"2.1ms\""),
        "{step:?}"
    );
    assert!(warned("12Mbit", "burst = \"2p\"\nl4s_step = \"2.1ms\"").is_empty());
}

#[test]
fn peers_of_a_sealed_tunnel_have_keys() {
    let sealed = |peers: &str| {
        let key_file = "mode = \"wireguard\"\nprivate_key_file = \"key\"";
        let text = changed("mode = \"cleartext\"", key_file);
        let at = text.find("[[peer]]").unwrap();
        parse(&format!("{}{peers}", &text[..at]))
    };
    let one = "[[peer]]\nname = \"one\"\npublic_key = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\nallowed_ips = \"10.1.0.0/16\"\n";
    let config = sealed(one).unwrap();
    assert_eq!(config.mtu, 1440, "1500 less 28 outside and 32 of the seal");
    assert_eq!(config.peers[0].endpoint, None, "it may speak first");
    for (old, new, expected) in [
        ("\"hSDw", "\"hSD", "peer[0].public_key = \"hSDCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\": must be a key: 32 bytes in base64, 44 characters"),
        ("public_key", "PublicKey", "peer[0].PublicKey = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\": unknown key; did you mean public_key?"),
        ("public_key", "public_kye", "peer[0].public_kye = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\": unknown key; did you mean public_key?"),
        ("allowed_ips", "PresharedKey = \"abc\"\nallowed_ips", "peer[0].PresharedKey = \"abc\": unknown key; did you mean preshared_key_file, the file that holds the key?"),
        ("allowed_ips", "endpoint = \"hub.example\"\nallowed_ips", "endpoint = \"hub.example\": must be an address and a port, like"),
        ("allowed_ips", "endpoint = \"hub.example:0\"\nallowed_ips", "must have a port 1 .. 65535"),
        ("allowed_ips", "endpoint = \"hub_.-example:1\"\nallowed_ips", "must be an address and a port, like"),
        ("allowed_ips", "keepalive = \"0s\"\nallowed_ips", "peer[0].keepalive = \"0s\": must be 1s .. 65535s"),
    ] {
        let fault = sealed(&one.replacen(old, new, 1)).unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}");
    }
    let two = one.replace("\"one\"", "\"two\"").replace("10.1", "10.2");
    let fault = sealed(&format!("{one}{two}")).unwrap_err().to_string();
    assert!(
        fault.contains("peer[1].public_key = ") && fault.contains("is that of peer \"one\" too"),
        "{fault}"
    );
}

#[test]
fn feedback_needs_no_number() {
    let alone = |link: &str| parse(&changed("rate = \"20Mbit\"", link)).unwrap();
    let of = |config: &Config| {
        let capacity = &config.peers[0].capacity;
        let bounds = capacity.feedback.unwrap();
        assert_eq!(bounds.delay_ns, 25_000_000);
        let begins_bps = capacity.nominal_bps;
        (
            begins_bps,
            bounds.floor_bps,
            bounds.ceiling_bps,
            capacity.stale_ns,
        )
    };
    let gbit = 1_000_000_000;
    for (link, expected) in [
        ("feedback = true", (10_000_000, 64_000, gbit, None)),
        ("feedback = {}", (10_000_000, 64_000, gbit, None)),
        (
            "feedback = true\nacross = { policy = \"pf\" }",
            (10_000_000, 64_000, gbit, None),
        ),
        (
            "rate = \"2Gbit\"\nfeedback = true",
            (2 * gbit, 64_000, 2 * gbit, None),
        ),
        (
            "floor = \"1Mbit\"\nfeedback = true",
            (10_000_000, 1_000_000, gbit, None),
        ),
        (
            "feedback = { ceiling = \"8Mbit\" }",
            (8_000_000, 64_000, 8_000_000, None),
        ),
        (
            "stale = \"3s\"\nfloor = \"1Mbit\"\nfeedback = true",
            (10_000_000, 1_000_000, gbit, Some(3_000_000_000)),
        ),
    ] {
        assert_eq!(of(&alone(link)), expected, "{link}");
    }
    let anticipates = |link: &str| alone(link).peers[0].capacity.feedback.unwrap().anticipate;
    assert!(!anticipates("feedback = true"));
    assert!(anticipates("feedback = { anticipate = true }"));
    let without = alone("rate = \"20Mbit\"\nfeedback = false");
    assert_eq!(without.peers[0].capacity.feedback, None);
}

#[test]
fn a_peer_may_have_a_capacity_of_its_own() {
    let text = changed("endpoint =", "rate = \"6Mbit\"\nendpoint =");
    assert_eq!(
        parse(&text).unwrap().peers[0].capacity.nominal_bps,
        6_000_000
    );
    // The reservation must fit there, too.
    let text = changed("endpoint =", "rate = \"4Mbit\"\nendpoint =");
    let fault = parse(&text).unwrap_err().to_string();
    assert!(
        fault.starts_with("ground.toml:31: class[1].rate = \"5Mbit\": "),
        "{fault}"
    );
}

#[test]
fn peers_that_share_a_link_have_parameters_of_their_own() {
    const TWO: &str = "10.78.0.0/16\"]\n[[peer]]\nname = \"boat\"\nendpoint = \"192.0.2.3:51820\"\nallowed_ips = \"10.79.0.0/16\"\n";
    let text = changed(
        "overhead = \"14B\"",
        "across = { policy = \"codes\", tc = \"2s\", timeout = \"80ms\" }",
    );
    let text = text.replace(
        "10.78.0.0/16\"]",
        &format!("{TWO}across = {{ weight = 3 }}"),
    );
    let across = parse(&text).unwrap().across.unwrap();
    assert_eq!(across.params[0], 2_000_000_000);
    assert_eq!(
        across.qparams,
        [1, 80_000_000, 3, 80_000_000],
        "weight and timeout of each"
    );
    for (old, new, expected) in [
        ("weight = 3", "weight = 0", "ground.toml:48: peer[1].across.weight = 0: must be a whole number 1 .. 65535 (multiplies"),
        ("weight = 3", "wight = 3", "ground.toml:48: peer[1].across.wight = 3: unknown key; did you mean weight?"),
        ("{ weight = 3 }", "3", "ground.toml:48: peer[1].across = 3: must be a table like { weight = 2 }"),
    ] {
        let fault = parse(&text.replace(old, new)).unwrap_err().to_string();
        assert!(fault.starts_with(expected), "{fault}\n  expected {expected}");
    }
    let folder = std::env::temp_dir().join(format!("linkweir-instants-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("instants"), "1\n2\n").unwrap();
    let text = text.replace(
        "rate = \"20Mbit\"",
        "trace = \"instants\"\ntrace_format = \"mahimahi\"",
    );
    let fault = config::parse(&text, &folder.join("ground.toml"))
        .unwrap_err()
        .to_string();
    fs::remove_dir_all(&folder).unwrap();
    assert!(
        fault.contains("ground.toml:14: link.trace = \"instants\": lists the times at which packets may leave, which peers cannot share"),
        "{fault}"
    );
}

#[test]
fn the_nominal_capacity_of_a_trace_is_its_mean() {
    let folder = std::env::temp_dir().join(format!("linkweir-mean-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let with_trace = |content: &str, keys: &str| {
        fs::write(folder.join("trace"), content).unwrap();
        let text = changed("rate = \"20Mbit\"", &format!("trace = \"trace\"\n{keys}"));
        config::parse(&text, &folder.join("ground.toml"))
    };
    // Four opportunities of 1500 bytes in 7 ms, and a rate that holds for an hour.
    let instants = with_trace("1\n3\n5\n7\n", "trace_format = \"mahimahi\"");
    let rates = with_trace("t_s,capacity_bps\n0,9000000.5\n", "");
    let slow = with_trace("t_s,capacity_bps\n0,999\n", "");
    fs::remove_dir_all(&folder).unwrap();
    let nominal_bps = |config: Config| config.peers[0].capacity.nominal_bps;
    assert_eq!(nominal_bps(instants.unwrap()), 6_857_142);
    assert_eq!(nominal_bps(rates.unwrap()), 9_000_001);
    let slow = slow.unwrap_err().to_string();
    let expected = "/trace: the mean capacity must be at least 1kbit";
    assert!(
        slow.contains("ground.toml:14: link.trace = \"trace\": ") && slow.ends_with(expected),
        "{slow}"
    );
}

#[test]
fn an_interface_of_many_peers_is_a_link_they_share() {
    let two = "10.78.0.0/16\"]\n[[peer]]\nname = \"boat\"\nendpoint = \"192.0.2.3:51820\"\nallowed_ips = \"10.79.0.0/16\"\n";
    let text = changed("10.78.0.0/16\"]", two).replace("overhead = \"14B\"", "below = \"16kB\"");
    let fault = parse(&text).unwrap_err().to_string();
    assert_eq!(fault, "ground.toml:15: link.below = \"16kB\": measures one interface, which 2 peers share; write across = { policy = \"drr\" } next to it");
    let text = text.replace("\"16kB\"", "\"16kB\"\nacross = { policy = \"drr\" }");
    assert_eq!(parse(&text).unwrap().below_bytes, Some(16_000));
}

#[test]
fn any_cut_or_changed_byte_is_refused_or_read_but_never_crashes() {
    let bytes = SHIPPED.as_bytes();
    for at in 0..bytes.len() {
        if let Ok(text) = std::str::from_utf8(&bytes[..at]) {
            let _ = parse(text);
        }
        for byte in [b'"', b'[', b'=', b'9', b'\n'] {
            let mut changed = bytes.to_vec();
            changed[at] = byte;
            if let Ok(text) = String::from_utf8(changed) {
                let _ = parse(&text);
            }
        }
    }
}

/// Files for `linkweir-gateway check`, gone with the test.
struct Checked(std::path::PathBuf);

impl Checked {
    fn new(name: &str) -> Checked {
        let name = format!("linkweir-check-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Checked(folder)
    }

    /// Exit code and standard error.
    fn check(&self, text: &[u8]) -> (Option<i32>, String) {
        fs::write(self.0.join("ground.toml"), text).unwrap();
        self.run(&["check", "--cleartext", "ground.toml"])
    }

    /// Makes a file that only some may read.
    fn secret(&self, name: &str, content: &str, mode: u32) {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Runs the program; returns its exit code and what it says.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_linkweir-gateway"))
            .args(arguments)
            .current_dir(&self.0)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), stderr)
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn check_reports_every_mistake_in_one_line_and_returns_2() {
    let checked = Checked::new("mistakes");
    assert_eq!(checked.check(SHIPPED.as_bytes()), (Some(0), String::new()));
    for (old, new, expected) in MISTAKES {
        let expected = &with_policies(expected);
        let (code, line) = checked.check(changed(old, new).as_bytes());
        assert_eq!(code, Some(2), "{new}");
        assert_eq!(line.lines().count(), 1, "{new}: {line}");
        let line = line.strip_prefix("linkweir-gateway: ").expect("who speaks");
        assert!(
            line.starts_with(expected),
            "{new}\n  got      {line}  expected {expected}"
        );
    }
    let (code, line) = checked.check(b"device = \"lw0\"");
    assert_eq!((code, line.lines().count()), (Some(2), 1), "{line}");
    let (code, line) = checked.check(b"\xff\xfe\0");
    assert_eq!((code, line.lines().count()), (Some(2), 1), "{line}");
}

/// A sealed configuration with a shared key; its keys are `key` and `shared` next to it.
fn with_keys() -> String {
    let text = changed(
        "mode = \"cleartext\"",
        "mode = \"wireguard\"\nprivate_key_file = \"key\"",
    );
    text.replace(
        "endpoint =",
        "public_key = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\npreshared_key_file = \"shared\"\nendpoint =",
    )
}

#[test]
fn bad_keys_are_bad_input() {
    let checked = Checked::new("keys");
    let text = with_keys();
    let sound = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n";
    let both = || {
        let (code, why) = checked.check(text.as_bytes());
        let up = checked.run(&["up", "--cleartext", "ground.toml"]);
        assert_eq!((code, &why), (up.0, &up.1), "both say the same");
        assert_eq!(code, Some(2), "{why}");
        why
    };
    let private = "linkweir-gateway: ground.toml:12: gateway.private_key_file = \"key\": key: ";
    let expect = |place: &str, what: &str| {
        let why = both();
        let begins = why.strip_prefix(place);
        let says = begins.is_some_and(|says| says.starts_with(what));
        assert!(says, "{why}  expected {place}{what}");
    };
    expect(
        private,
        "cannot be read: No such file or directory (os error 2); make a key with",
    );
    for (content, what) in [
        ("", "must hold one key of 32 bytes"),
        ("hSDwCYkwp1R0i33ctD73Wg2\n", "must hold one key of 32 bytes"),
        (&"A".repeat(5000), "is not a key file; make one with"),
    ] {
        checked.secret("key", content, 0o600);
        expect(private, what);
    }
    checked.secret("key", sound, 0o644);
    expect(private, "may be read by others; run chmod 600");
    checked.secret("key", sound, 0o600);
    expect(
        "linkweir-gateway: ground.toml:44: peer[0].preshared_key_file = \"shared\": shared: ",
        "cannot be read: No such file or directory",
    );
    checked.secret("shared", sound, 0o600);
    assert_eq!(checked.check(text.as_bytes()), (Some(0), String::new()));
}

/// Whatever `up` refuses before it touches the system, for the configuration or for an account that is not there.
#[test]
fn check_refuses_what_up_would_refuse() {
    let checked = Checked::new("refusals");
    let word = "mode = \"cleartext\"";
    // A socket's path has 108 bytes in Linux, the last of them 0: unix(7).
    let (longest, too_long) = ("/".repeat(106) + "c", "/".repeat(107) + "c");
    let with = |line: &str| changed(word, &format!("{word}\n{line}"));
    let nobody = |what: &str| with(&format!("{what} = \"no-{what}-of-this-host\""));
    let refused = |text: &str, arguments: &[&str]| {
        fs::write(checked.0.join("ground.toml"), text).unwrap();
        let said = ["check", "up"].map(|command| {
            let mut words = vec![command];
            words.extend(arguments);
            words.push("ground.toml");
            checked.run(&words)
        });
        assert_eq!(said[0], said[1], "both say the same");
        assert_eq!(said[0].0, Some(2), "{}", said[0].1);
        said[0].1.clone()
    };
    let why = refused(SHIPPED, &[]);
    assert!(why.contains("add --cleartext"), "{why}");
    let why = refused(&nobody("control_group"), &["--cleartext"]);
    assert!(
        why.contains("there is no group no-control_group-of-this-host"),
        "{why}"
    );
    let why = refused(
        &with(&format!("control = \"{too_long}\"")),
        &["--cleartext"],
    );
    assert!(
        why.contains("has 108 bytes, and a socket's path at most 107"),
        "{why}"
    );
    if nix::unistd::geteuid().is_root() {
        let why = refused(&nobody("user"), &["--cleartext"]);
        assert!(
            why.contains("there is no user no-user-of-this-host"),
            "{why}"
        );
    }
    let sound = with(&format!("control = \"{longest}\""));
    assert_eq!(checked.check(sound.as_bytes()), (Some(0), String::new()));
}

/// Who may read the configuration alone is told what was not looked at.
#[test]
fn keys_that_may_not_be_read_are_not_faults() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: keys of another user; missing: root");
        return;
    }
    let checked = Checked::new("denied");
    let sound = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n";
    checked.secret("key", sound, 0o600);
    checked.secret("shared", sound, 0o600);
    fs::write(checked.0.join("ground.toml"), with_keys()).unwrap();
    fs::copy(
        env!("CARGO_BIN_EXE_linkweir-gateway"),
        checked.0.join("gateway"),
    )
    .unwrap();
    let run = || {
        Command::new(checked.0.join("gateway"))
            .args(["check", "ground.toml"])
            .current_dir(&checked.0)
            .uid(65534)
            .gid(65534)
            .output()
    };
    // A test that starts a program at the same time may still hold the copy open for writing.
    let output = loop {
        match run() {
            Err(busy) if busy.kind() == ErrorKind::ExecutableFileBusy => thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    for (line, file) in stderr.lines().zip(["key", "shared"]) {
        assert!(
            line.starts_with("linkweir-gateway: not checked: ground.toml:")
                && line.contains(&format!("{file}: cannot be read: Permission denied")),
            "{line}"
        );
    }
    assert_eq!(stderr.lines().count(), 2, "{stderr}");
}

#[test]
fn there_are_more_than_thirty_mistakes_of_different_kinds() {
    // The message behind file, line and key; values stripped of their digits.
    let kind = |message: &str| -> String {
        let at = message.rfind(": ").map_or(0, |at| at + 2);
        message[at..]
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .collect()
    };
    let kinds: std::collections::BTreeSet<String> = MISTAKES
        .iter()
        .map(|(_, _, expected)| kind(expected))
        .collect();
    assert!(kinds.len() >= 30, "{} kinds", kinds.len());
}

const LINK: &str = include_str!("../configs/geo.toml");

/// (what is replaced, by what, what is expected)
const LINK_MISTAKES: &[(&str, &str, &str)] = &[
    ("device = \"sat0\"", "device = \"default\"", "geo.toml:11: a.device = \"default\": is a name that the kernel keeps for itself"),
    ("seed = 1", "sed = 1", "geo.toml:7: sed = 1: unknown key; did you mean seed?"),
    ("netns = \"ground\"", "netns = \"/nowhere\"", "geo.toml:10: a.netns = \"/nowhere\": /nowhere does not exist; make it with `ip netns add`, or give the path of a namespace"),
    ("netns = \"ship\"\n", "", "geo.toml:15: b.device = \"sat0\": is the name of the other end too; change one of them, or its netns"),
    ("rate = \"20Mbit\"", "", "geo.toml:19: a_to_b.rate: is missing; write rate = \"20Mbit\" or trace = \"capacity.csv\""),
    ("loss = 0.001", "loss = 1.5", "geo.toml:22: a_to_b.loss = 1.5: must be 0% .. 100%"),
    ("delay = \"250ms\"", "delay = 250", "geo.toml:21: a_to_b.delay = 250: needs a unit: one of"),
    ("jitter = \"2ms\"", "jitter = \"2m\"", "geo.toml:27: b_to_a.jitter = \"2m\": unknown unit \"m\" for a time; use one of"),
    ("limit = \"200p\"", "limit = \"200\"", "geo.toml:28: b_to_a.limit = \"200\": needs a unit: one of p, like \"80p\""),
    ("[a_to_b]", "[unknown]", "geo.toml:1: [a_to_b]: is missing; write a table [a_to_b], such as one with rate = \"20Mbit\""),
    ("[b_to_a]", "[unknown]", "geo.toml:1: [b_to_a]: is missing; write a table [b_to_a], such as one with rate = \"20Mbit\""),
    ("[a_to_b]", "[a_too_b]", "geo.toml:19: a_too_b: unknown key; did you mean [a_to_b]?"),
    ("[b_to_a]", "[b_too_a]", "geo.toml:24: b_too_a: unknown key; did you mean [b_to_a]?"),
];

#[test]
fn mistakes_in_a_link_are_found_at_their_lines() {
    // Both namespaces are this one, as far as the check sees; their devices differ then.
    let here = |text: &str| {
        let text = text.replacen("netns = \"ground\"", "netns = \"/proc/self/ns/net\"", 1);
        text.replacen(
            "netns = \"ship\"",
            "netns = \"/proc/thread-self/ns/net\"",
            1,
        )
    };
    let parse = |text: &str| config::emulate::parse(&here(text), Path::new("geo.toml"));
    let link = parse(LINK).unwrap();
    assert_eq!(link.directions[1].limit_pkts, 200);
    // Twice 20 Mbit/s times 250 ms in packets of 1500 bytes, and 100.
    assert_eq!(link.directions[0].limit_pkts, 933);
    for (old, new, expected) in LINK_MISTAKES {
        assert!(LINK.contains(old), "{old}");
        let text = if new.is_empty() && old.starts_with("netns") {
            // Without the other namespace both devices would be in the emulator's.
            LINK.replacen("netns = \"ground\"\n", "\n", 1)
                .replacen(old, "", 1)
        } else {
            LINK.replacen(old, new, 1)
        };
        let fault = parse(&text).expect_err(new).to_string();
        assert!(
            fault.starts_with(expected),
            "{new}\n  got      {fault}\n  expected {expected}"
        );
    }
}

#[test]
fn flows_are_isolated_below_policies_that_nest() {
    let flows = |text: &str| -> Vec<Option<Isolation>> {
        let classes = parse(text).unwrap().classes;
        classes.into_iter().map(|class| class.flows).collect()
    };
    assert_eq!(flows(SHIPPED), [None; 3]);
    let isolated = changed("limit = \"100p\"", "limit = \"100p\"\nflows = \"fq_codel\"");
    assert_eq!(flows(&isolated), [Some(Isolation::FqCodel), None, None]);
    for (step, step_ns) in [("", None), ("l4s_step = \"3ms\"", Some(3_000_000))] {
        let keys = format!("limit = \"100p\"\nflows = \"dualpi2\"\n{step}");
        let sorted = changed("limit = \"100p\"", &keys);
        let wanted = [Some(Isolation::DualPi2 { step_ns }), None, None];
        assert_eq!(flows(&sorted), wanted);
    }
    let (before, _) = SHIPPED.split_once("[scheduler]").unwrap();
    let (_, peers) = SHIPPED.split_once("[[peer]]").unwrap();
    let known = linkweir_core::policies().iter();
    for info in known.filter(|info| !info.sorted_by_ecn) {
        let text = format!(
            "{before}[scheduler]\npolicy = \"{}\"\n[[class]]\nname = \"all\"\nflows = \"drr\"\n[[peer]]{peers}",
            info.name
        );
        match parse(&text) {
            Ok(config) => {
                assert!(info.nests(), "{}", info.name);
                assert_eq!(config.classes[0].flows, Some(Isolation::Drr));
            }
            Err(fault) => {
                assert!(!info.nests(), "{fault}");
                let expected = with_policies(&format!(
                    "class[0].flows = \"drr\": needs a policy that leaves the choice among the packets of a class to another, and {} does not; leave flows out, or use one of {{nesting}}",
                    info.name
                ));
                assert!(fault.to_string().ends_with(&expected), "{fault}");
            }
        }
    }
}

#[test]
fn voice_ages_by_default_and_no_other_class_does() {
    let ms = 1_000_000;
    let limits = |text: &str| -> Vec<Limit> {
        let classes = parse(text).unwrap().classes;
        classes.into_iter().map(|class| class.limit).collect()
    };
    let shipped = limits(SHIPPED);
    let voice = Limit {
        pkts: Some(100),
        max_age_ns: Some(200 * ms),
        full: Full::Head,
        ..Limit::NONE
    };
    // Two packets of 1472 bytes with 42 below each; and twice what 20 Mbit/s are in 200 ms, whatever is reported.
    let time = TimeLimit {
        ns: 200 * ms,
        least_bytes: 3028,
    };
    let other = Limit {
        time: Some(time),
        bytes: Some(1_000_000),
        ..Limit::NONE
    };
    assert_eq!(shipped, [voice, other, other]);
    let own = limits(&changed(
        "limit = \"100p\"",
        "limit = \"100p\"\nmax_age = \"3600s\"\nfull = \"tail\"",
    ));
    assert_eq!(own[0].max_age_ns, Some(3_600_000 * ms));
    assert_eq!(own[0].full, Full::Tail);
    let by_port = limits(&changed("\"EF\", \"VOICE-ADMIT\"", "\"CS5\""));
    assert_eq!(by_port[0].max_age_ns, None, "EF is not named");
}

/// A trace of ten lines a second apart, but for one gap, in each place where a gateway or an emulator takes one.
#[test]
fn commands_say_what_a_trace_was_taken_for_and_what_is_doubtful() {
    let folder = std::env::temp_dir().join(format!("linkweir-told-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let lines = (0..10).map(|at| format!("{},50\n", if at < 9 { at } else { 40 }));
    let content = format!("t_s,down_mbit\n{}", lines.collect::<String>());
    fs::write(folder.join("drive.csv"), content).unwrap();
    let link = "rate = \"20Mbit\"";
    let trace = "trace = \"drive.csv\"";
    let of_peer = |text: &str| text.replacen("endpoint =", &format!("{trace}\nendpoint ="), 1);
    let emulated = format!(
        "[a]\ndevice = \"sat0\"\n[b]\ndevice = \"sat1\"\n[a_to_b]\n{trace}\n[b_to_a]\n{trace}\ndecimal = \".\"\n"
    );
    for (command, text) in [
        (&["check", "--cleartext"][..], changed(link, trace)),
        (&["check", "--cleartext"][..], of_peer(SHIPPED)),
        (
            &["up", "--cleartext", "--dry-run"][..],
            changed(link, trace),
        ),
        (&["emulate", "--check"][..], emulated),
    ] {
        let file = folder.join("it.toml");
        fs::write(&file, text).unwrap();
        let mut program = Command::new(env!("CARGO_BIN_EXE_linkweir-gateway"));
        let output = program.args(command).arg(&file).output().unwrap();
        let all = [&output.stdout[..], &output.stderr[..]].concat();
        let all = String::from_utf8_lossy(&all);
        let drive = folder.join("drive.csv");
        let drive = drive.display();
        for expected in [
            format!("read: {drive}: mbit; t from t_s, capacity from down_mbit in Mbit/s; 10 values, mostly every 1s; from 0;"),
            format!("note: {drive}: no lines for 32s before line 11, where 1s is usual"),
        ] {
            assert_eq!(all.matches(&expected).count(), 1, "{command:?}: {expected}: {all}");
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_of_wg_quick_becomes_files_that_check_finds_sound() {
    use std::os::unix::fs::PermissionsExt;

    let folder = std::env::temp_dir().join(format!("linkweir-import-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("wg0.conf");
    let sound = "[Interface]\nPrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\nAddress = 10.9.0.1/24\nDNS = 10.9.0.9\n\
[Peer]\nPublicKey = GtL7fZc/bLnqZldpVofMCD6hDjrK28SsdLxevJ+qtKU=\nAllowedIPs = 10.9.0.2/32\nEndpoint = 192.0.2.1:51820\n";
    std::fs::write(&file, sound).unwrap();
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_linkweir-gateway"));
        let output = command.args(words).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (conf, out) = (file.to_str().unwrap(), folder.to_str().unwrap());
    let words = ["import", conf, "--rate", "18Mbit", "--folder", out];
    let (code, printed, said) = run(&words);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(printed, format!("{out}/wg0.key\n{out}/wg0.toml\n"));
    assert!(said.contains("line 4: DNS is left out: "), "{said}");
    let mode = std::fs::metadata(folder.join("wg0.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let toml = folder.join("wg0.toml");
    let (code, printed, said) = run(&["check", toml.to_str().unwrap()]);
    assert!(
        code == Some(0) && printed.contains("valid; strict with 2 classes"),
        "{printed}{said}"
    );

    let (code, _, said) = run(&words);
    assert!(
        code == Some(2) && said.contains("wg0.key exists; nothing was written"),
        "{said}"
    );
    std::fs::write(&file, "[Interface]\nPrivateKey = abc\n").unwrap();
    let (code, _, said) = run(&words);
    assert!(
        code == Some(2) && said.contains("wg0.conf:2: PrivateKey: must be a key"),
        "{said}"
    );
    let (code, _, said) = run(&["import", conf, "--rate", "18"]);
    assert!(code == Some(2) && said.contains("18"), "{said}");
    // faults name the file that was read, and the one that is not there
    std::fs::remove_file(&toml).unwrap();
    std::fs::remove_file(folder.join("wg0.key")).unwrap();
    for (line, expected) in [
        (
            "MTU = 1450",
            "wg0.conf:4: MTU: 1450 must be at most 1420, or 1440 if",
        ),
        (
            "MTU = 575",
            "wg0.conf: gateway.mtu = \"575B\": must be 576B .. ",
        ),
    ] {
        std::fs::write(&file, sound.replace("DNS = 10.9.0.9", line)).unwrap();
        let (code, _, said) = run(&words);
        assert!(code == Some(2) && said.contains(expected), "{said}");
        let unwritten = format!("; {} was not written\n", toml.display());
        assert!(
            said.ends_with(&unwritten) && !said.contains("wg0.toml:"),
            "{said}"
        );
        assert!(!toml.exists());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
