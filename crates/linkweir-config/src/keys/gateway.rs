// SPDX-License-Identifier: BSD-3-Clause
//! The keys of the gateway's configuration. They are here and not in the gateway, because the Python package makes the schema
//! for editors of them and does not contain the gateway.

use crate::bond;
use crate::keys;
use crate::limits;
use crate::queue::{self, Length};
use crate::units::Kind;
use crate::values::Values;

use super::form::{Flag, Number, Ppm, Signed, Small, Special, Text, Whole, Words};
use super::hosts::WITH_ANOTHER;
use super::{Shape, Table};

/// All tables, in the order of the reference.
pub static TABLES: [&Table; 10] = [
    &GATEWAY, &LINK, &FEEDBACK, &CLASS, &RULE, &PEER, &UNDERLAY, &PATH, &PROBED, &RECORD,
];

keys! {
    /// The tunnel at this end.
    GATEWAY "gateway" {
        DEVICE "device": Special { shape: Shape::Device }, required("\"lw0\""), WITH_ANOTHER,
            "name of the TUN device; it exists only while the gateway runs. A device of this name that exists already is refused and left as it is", values "1 .. 15 letters, digits, `_` `-` `.`; not `all`, `default` or `lo`";
        ADDRESS "address": Special { shape: Shape::Nets }, otherwise("none"), WITH_ANOTHER,
            "addresses of the device";
        LISTEN "listen": Special { shape: Shape::Socket }, required("\"0.0.0.0:51820\""), WITH_ANOTHER,
            "local end of the tunnel. `\"[::]:51820\"` carries both versions of IP; otherwise every endpoint must have the version of this address. If the system takes the address away, [the log](#the-log) names it, and it is used again when it is back";
        LISTEN_DEVICE "listen_device": Special { shape: Shape::Device }, otherwise("any"), WITH_ANOTHER,
            "the only device that the tunnel's datagrams pass, whatever the routes say. It may come and go";
        FWMARK "fwmark": Number { min: 256, max: u32::MAX as u64 }, otherwise("none; 51820 with routes to all addresses"), WITH_ANOTHER,
            "mark of the tunnel's datagrams, for the system's routing rules and firewall; also the number of [the table](#all-addresses) of routes to all addresses";
        MODE "mode": Words { of: &["wireguard", "cleartext"] }, required("\"wireguard\""), WITH_ANOTHER,
            "`cleartext` is for the laboratory and needs `--cleartext` after `up` or `check` as well: anyone on the path can read and forge packets";
        PRIVATE_KEY_FILE "private_key_file": Text { what: "path" }, otherwise("required with wireguard"), WITH_ANOTHER,
            "a key of 32 bytes in base64; only its owner may read it";
        UNDERLAY_MTU "underlay_mtu": Small { kind: Kind::Size, min: 576, max: 65_535 }, usual(1_500), WITH_ANOTHER,
            "largest IP packet that the underlying network carries";
        MTU "mtu": Small { kind: Kind::Size, min: 576, max: 65_535 }, otherwise("what fits"), WITH_ANOTHER,
            "MTU of the device. \"What fits\" is `underlay_mtu` minus 28 bytes of IPv4 and UDP headers (48 if `listen` is an IPv6 address, such as `[::]`) and, in wireguard mode, minus 32 bytes of encryption: 1440B over IPv4 and 1420B over IPv6 below Ethernet's 1500B", values "576B (1280B with IPv6) .. what fits";
        MSS_CLAMP "mss_clamp": Flag {}, usual(true), WITH_ANOTHER,
            "limits the MSS that TCP SYN segments announce, in both directions, to what fits into the MTU";
        OFFLOAD "offload": Flag {}, usual(true), WITH_ANOTHER,
            "whether kernel and gateway may exchange several packets per system call, see [speed](../explanation/gateway.md#speed)";
        DSCP "dscp": Words { of: &["out", "uniform", "pipe"] }, usual(0), WITH_ANOTHER,
            "code point (DSCP) of the outer header. out: copied from the inner header. uniform: copied from the inner header, and the far end copies the outer one back if it was changed on the way. pipe: always `outer_dscp`";
        OUTER_DSCP "outer_dscp": Special { shape: Shape::CodePoint }, otherwise("CS0"), WITH_ANOTHER,
            "only with pipe";
        ROUTES "routes": Flag {}, usual(true), WITH_ANOTHER,
            "whether the gateway adds routes for `allowed_ips` through the device";
        LEAK "leak": Words { of: &["refuse", "allow"] }, otherwise("refuse with routes to all addresses, otherwise allow"), WITH_ANOTHER,
            "what happens to packets for `allowed_ips` while the gateway's route is missing: refuse: their senders get \"unreachable\"; allow: they leave as the system's other routes say, in the clear. With refuse the gateway does not start while [another route](../howto/network.md#another-route-has-the-place) has the place of its own";
        USER "user": Special { shape: Shape::Word }, otherwise("`\"nobody\"`"), WITH_ANOTHER,
            "user the gateway changes to after set-up, with the groups this user is in. A system without a list of users still has nobody, 65534, and root. To reload by SIGHUP, this user must be able to read the traces that the configuration names", values "a user, or its number";
        CONTROL "control": Text { what: "path" }, otherwise("`/run/linkweir/DEVICE.sock`"), WITH_ANOTHER,
            "control socket; it is removed when the gateway ends, also when it is killed. A file at this path that is no socket is refused";
        CONTROL_GROUP "control_group": Special { shape: Shape::Word }, otherwise("none"), WITH_ANOTHER,
            "the group that may use the control socket, with root; its members may set capacities", values "a group";
        DRAIN "drain": Whole { kind: Kind::Time, min: 0, max: 60_000_000_000 }, usual(0), WITH_ANOTHER,
            "how long the gateway still sends waiting packets after it is told to stop";
    }
}

keys! {
    /// The link, as `[link]` and each peer may have it.
    LINK "link" {
        RATE "rate": Values { kind: Kind::Rate, min: 1e3, max: limits::RATE_BPS as f64 }, otherwise("none"), WITH_ANOTHER,
            "capacity", values "1kbit .. 400Gbit, or [over time](scenarios.md#values-over-time)";
        TRACE "trace": Special { shape: Shape::OfScenario("trace") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        TRACE_FORMAT "trace_format": Special { shape: Shape::OfScenario("trace_format") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        TRACE_COLUMN "trace_column": Special { shape: Shape::OfScenario("trace_column") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        COLUMNS "columns": Special { shape: Shape::OfScenario("columns") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        END "end": Special { shape: Shape::OfScenario("end") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        TRACE_UNIT "trace_unit": Special { shape: Shape::OfScenario("trace_unit") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        TRACE_INTERVAL "trace_interval": Special { shape: Shape::OfScenario("trace_interval") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        DECIMAL "decimal": Special { shape: Shape::OfScenario("decimal") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        ZONE "zone": Special { shape: Shape::OfScenario("zone") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        DATES "dates": Special { shape: Shape::OfScenario("dates") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        COVERS "covers": Special { shape: Shape::OfScenario("covers") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        EQUAL_TIMES "equal_times": Special { shape: Shape::OfScenario("equal_times") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        EARLIER_TIMES "earlier_times": Special { shape: Shape::OfScenario("earlier_times") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        GAP "gap": Special { shape: Shape::OfScenario("gap") }, otherwise("none"), WITH_ANOTHER,
            "capacity from a file, instead of `rate`", values "as in [scenarios](scenarios.md#traces)";
        COMMAND "command": Special { shape: Shape::Other("list of words") }, otherwise("none"), WITH_ANOTHER,
            "a program that prints a line with a rate, such as `18Mbit`, whenever the capacity changes. It is started once per peer or path, in the folder of the configuration, with the peer's name in `LINKWEIR_PEER`, and started again if it ends. A relative path with a `/` begins at that folder. When the program or the gateway ends, all processes that the program started are killed, unless they left its process group. A program that prints without end is read at up to 6.5 MB/s and waits otherwise; packets do not wait for it. [The log](#the-log) has what it writes to standard error";
        FEEDBACK_OF "feedback": Special { shape: Shape::FlagOr(&FEEDBACK) }, otherwise("`false`"), WITH_ANOTHER,
            "the capacity follows from [what the far end received](#feedback); `rate` may then be left out";
        BELOW "below": Small { kind: Kind::Size, min: 3_000, max: 10_000_000 }, otherwise("the system's default"), WITH_ANOTHER,
            "about how many bytes may wait in the operating system and the network interface below the gateway, before [they push back](../explanation/gateway.md#back-pressure-from-below); only in `[link]`";
        STALE "stale": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DURATION_NS }, otherwise("no limit"), WITH_ANOTHER,
            "how long a capacity from `command`, `set capacity`, `feedback` or `below` is valid", values "1ms ..";
        FLOOR "floor": Whole { kind: Kind::Rate, min: 1_000, max: limits::RATE_BPS }, otherwise("required with `stale`"), WITH_ANOTHER,
            "the capacity that is used when the reported one is no longer valid; with `feedback`, the smallest capacity";
        NOMINAL "nominal": Whole { kind: Kind::Rate, min: 1_000, max: limits::RATE_BPS }, otherwise("the mean of rate or trace"), WITH_ANOTHER,
            "capacity given to the scheduler at the start";
        FOLLOW "follow": Flag {}, usual(true), WITH_ANOTHER,
            "whether the scheduler gets the new capacity when it changes by more than 1 %";
        ACROSS "across": Special { shape: Shape::Across }, otherwise("none"), WITH_ANOTHER,
            "the policy among peers, where [they share one link](../explanation/gateway.md#a-link-that-peers-share)";
        OVERHEAD "overhead": Signed { kind: Kind::Size, most: 1_000 }, usual(0), WITH_ANOTHER,
            "bytes that the underlying link adds to an IP packet; only in `[link]`";
        MPU "mpu": Small { kind: Kind::Size, min: 0, max: 65_535 }, usual(0), WITH_ANOTHER,
            "minimum packet unit: a smaller packet counts as this size; only in `[link]`";
    }
}

keys! {
    /// Capacity by feedback.
    FEEDBACK "feedback" {
        CEILING "ceiling": Whole { kind: Kind::Rate, min: 1_000, max: limits::RATE_BPS }, usual(1_000_000_000), WITH_ANOTHER,
            "largest capacity that feedback may set; it is at least `rate`", values "floor .. 400Gbit";
        DELAY "delay": Whole { kind: Kind::Time, min: 1_000_000, max: 1_000_000_000 }, usual(25_000_000), WITH_ANOTHER,
            "twice the longest queue that feedback aims at below the gateway where delays differ by themselves; also how much later marks must become to count while little is sent";
        ANTICIPATE "anticipate": Flag {}, usual(false), WITH_ANOTHER,
            "whether so much less is sent that a fall to the lowest capacity of 3 s should add 15 ms at most to the queue below; no effect where jitter exceeds 1 ms";
    }
}

keys! {
    /// A queue.
    CLASS "class" {
        CLASS_NAME "name": Special { shape: Shape::Word }, required("\"ef\""), WITH_ANOTHER,
            "shown in statistics";
        MATCH "match": Special { shape: Shape::Rules }, otherwise("all other packets"), WITH_ANOTHER,
            "which packets belong to the class; exactly one class has no `match`, or ends it with `{}`";
        LIMIT "limit": Length { pkts: 1_000_000 }, otherwise("1000p, or none with limit_bytes"), WITH_ANOTHER,
            "packets that the class may hold for each peer; the packets in a super-packet count individually. Or [the time](#limits) in which the link carries what the class may hold";
        LIMIT_BYTES "limit_bytes": Whole { kind: Kind::Size, min: 1, max: 1_000_000_000 }, otherwise("none"), WITH_ANOTHER,
            "bytes that the class may hold for each peer, counted as on the link: with outer headers and the link's `overhead`, and as `mpu` if a packet is shorter";
        MAX_AGE "max_age": Whole { kind: Kind::Time, min: queue::AGE_NS.0, max: queue::AGE_NS.1 }, otherwise("200ms where a rule of `match` names EF, or the time of two packets of the MTU on the slowest link if that is more; otherwise none"), WITH_ANOTHER,
            "a packet that has waited longer is dropped, whatever it waited for";
        FULL "full": Words { of: &queue::ENDS }, otherwise("head with max_age, otherwise tail"), WITH_ANOTHER,
            "what a full class drops: the packet that comes, or its oldest ones";
        LEAST "least": Ppm { min: 0, max: queue::MOST_LEAST_PPM as u64 }, otherwise("none"), WITH_ANOTHER,
            "[least share](#least-shares) of what leaves while packets of the class wait";
        FLOWS "flows": Words { of: &queue::ISOLATIONS }, otherwise("none"), WITH_ANOTHER,
            "[isolates the flows](#flows-inside-a-class) of the class from each other, below what the policy gives the class";
        L4S_STEP "l4s_step": Whole { kind: Kind::Time, min: queue::STEP_NS.0, max: queue::STEP_NS.1 }, otherwise("1ms with dualpi2"), WITH_ANOTHER,
            "[how long](#flows-inside-a-class) an L4S packet may wait unmarked";
        CLASS_PATHS "paths": Special { shape: Shape::WordsOrNames(&bond::USES) }, otherwise("`\"best\"`"), WITH_ANOTHER,
            "[which paths](#several-paths-at-once) the class uses to a peer that has several", values "`best`, `all`, `spill`, `stripe`, or names of paths";
        REORDER "reorder": Special { shape: Shape::TimeOr("none", 2e9) }, otherwise("`\"50ms\"` with `stripe` or several names, `\"none\"` with `all`; otherwise packets are not numbered"), WITH_ANOTHER,
            "packets of the class are numbered, and the far end puts them in order and drops duplicates; a packet waits there for earlier ones for at most this long, or with `\"none\"` not at all", values "1ms .. 2s, or none";
        RESEND "resend": Flag {}, usual(false), WITH_ANOTHER,
            "whether packets that a path had when it died are sent again over others";
    }
}

/// What a class may hold.
pub static QUEUE: queue::Keys = queue::Keys {
    limit: &LIMIT,
    limit_bytes: &LIMIT_BYTES,
    max_age: &MAX_AGE,
    full: &FULL,
    least: &LEAST,
    flows: &FLOWS,
    l4s_step: &L4S_STEP,
};

keys! {
    /// A rule of `match`.
    RULE "match" {
        RULE_DSCP "dscp": Special { shape: Shape::CodePoints }, otherwise("none"), WITH_ANOTHER,
            "code points of the packet", values "`EF`, `VOICE-ADMIT`, `AF11` .. `AF43`, `CS0` .. `CS7`, `LE`, `DF`, or 0 .. 63";
        PROTOCOL "protocol": Special { shape: Shape::Protocols }, otherwise("none"), WITH_ANOTHER,
            "protocols above IP", values "`tcp`, `udp`, `icmp` (of either version), `sctp`, `esp`, `gre`, or 0 .. 255";
        PORT "port": Special { shape: Shape::Ports }, otherwise("none"), WITH_ANOTHER,
            "ports at either end", values "1 .. 65535, or `\"16384-32767\"`; `port` is either";
        SOURCE_PORT "source_port": Special { shape: Shape::Ports }, otherwise("none"), WITH_ANOTHER,
            "ports of the sender", values "1 .. 65535, or `\"16384-32767\"`; `port` is either";
        DESTINATION_PORT "destination_port": Special { shape: Shape::Ports }, otherwise("none"), WITH_ANOTHER,
            "ports of the receiver", values "1 .. 65535, or `\"16384-32767\"`; `port` is either";
        RULE_ADDRESS "address": Special { shape: Shape::Nets }, otherwise("none"), WITH_ANOTHER,
            "addresses at either end", values "`\"10.0.0.0/8\"`; `address` is either. `\"0.0.0.0/0\"` is every address of IPv4, `\"::/0\"` every one of IPv6";
        SOURCE "source": Special { shape: Shape::Nets }, otherwise("none"), WITH_ANOTHER,
            "addresses of the sender", values "`\"10.0.0.0/8\"`; `address` is either. `\"0.0.0.0/0\"` is every address of IPv4, `\"::/0\"` every one of IPv6";
        DESTINATION "destination": Special { shape: Shape::Nets }, otherwise("none"), WITH_ANOTHER,
            "addresses of the receiver", values "`\"10.0.0.0/8\"`; `address` is either. `\"0.0.0.0/0\"` is every address of IPv4, `\"::/0\"` every one of IPv6";
        ORDER "order": Number { min: 0, max: 65_535 }, otherwise("none"), WITH_ANOTHER,
            "place of the rule among those of all classes", values "0 .. 65535, default 0; rules with a smaller order are tried first, whichever class they belong to";
    }
}

keys! {
    /// The other end.
    PEER "peer" {
        PEER_NAME "name": Special { shape: Shape::Word }, required("\"ground\""), WITH_ANOTHER,
            "shown in statistics";
        ENDPOINT "endpoint": Special { shape: Shape::Endpoint }, otherwise("none"), WITH_ANOTHER,
            "address of the peer; a link-local address names its device, as in `\"[fe80::2%eth0]:51820\"`; without it, the peer must send first. [Names](#names) are resolved while the gateway runs. The address may change: the gateway sends to the address from which the last authentic datagram came";
        ALLOWED_IPS "allowed_ips": Special { shape: Shape::Nets }, required("[\"10.0.0.0/8\"]"), WITH_ANOTHER,
            "addresses behind the peer. Packets to these addresses go to this peer, and it may send only from these addresses; the longest matching prefix decides. A peer has at most 1,024 of them, and none is an address of the gateway itself";
        PUBLIC_KEY "public_key": Special { shape: Shape::PublicKey }, otherwise("required with wireguard"), WITH_ANOTHER,
            "identifies the peer; in cleartext mode the endpoint identifies it";
        PRESHARED_KEY_FILE "preshared_key_file": Text { what: "path" }, otherwise("none"), WITH_ANOTHER,
            "a further secret that both ends share";
        REPORT "report": Flag {}, usual(false), WITH_ANOTHER,
            "whether this end reports what it received, [when the peer asks](../explanation/gateway.md#capacity-by-feedback)";
        PROBE_MTU "probe_mtu": Flag {}, usual(false), WITH_ANOTHER,
            "whether the gateway [probes](#path-mtu) how long packets may be on the path to this peer, which must be a gateway of Linkweir too; only with wireguard";
        KEEPALIVE "keepalive": Whole { kind: Kind::Time, min: 1_000_000_000, max: 65_535_000_000_000 }, otherwise("none"), WITH_ANOTHER,
            "longest time between two datagrams to this peer";
        UNDERLAYS "underlays": Special { shape: Shape::Tables(&UNDERLAY) }, otherwise("none"), WITH_ANOTHER,
            "[several ways](#several-underlays) to the peer, instead of `endpoint`";
        PATHS "path": Special { shape: Shape::Tables(&PATH) }, otherwise("none"), WITH_ANOTHER,
            "[several paths](#several-paths-at-once) to the peer that are used at once, each a table `[[peer.path]]`; instead of `endpoint`, `underlays` and the capacity";
        PROBE "probe": Special { shape: Shape::Nested(&PROBED) }, otherwise("see there"), WITH_ANOTHER,
            "when underlays or paths are probed";
    }
}

keys! {
    /// A path to a peer, one of several that are used at once.
    PATH "path" {
        PATH_NAME "name": Special { shape: Shape::Word }, required("\"lte\""), WITH_ANOTHER,
            "the far end finds its path of the same name by it, so both ends name the paths alike", values "1 .. 16 bytes";
        PATH_ENDPOINT "endpoint": Special { shape: Shape::Socket }, otherwise("none"), WITH_ANOTHER,
            "address of the peer; without it, the peer must send over this path first";
        PATH_DEVICE "device": Special { shape: Shape::Device }, otherwise("the routes'"), WITH_ANOTHER,
            "device through which datagrams are sent, whatever the routes say";
        PATH_SOURCE "source": Special { shape: Shape::Word }, otherwise("the system's choice"), WITH_ANOTHER,
            "address of this end from which datagrams are sent", values "an address";
        PATH_COST "cost": Number { min: 0, max: 1_000_000_000 }, usual(1), WITH_ANOTHER,
            "cost for `spill`, in any unit: less first";
    }
}

keys! {
    /// A way to a peer.
    UNDERLAY "underlays" {
        UNDERLAY_NAME "name": Special { shape: Shape::Word }, required("\"lte\""), WITH_ANOTHER,
            "shown in the log and in figures";
        UNDERLAY_ENDPOINT "endpoint": Special { shape: Shape::Socket }, required("\"192.0.2.1:51820\""), WITH_ANOTHER,
            "address of the peer";
        UNDERLAY_DEVICE "device": Special { shape: Shape::Device }, otherwise("the routes'"), WITH_ANOTHER,
            "device through which datagrams are sent, whatever the routes say";
    }
}

keys! {
    /// When the ways are probed.
    PROBED "probe" {
        EVERY "every": Whole { kind: Kind::Time, min: 50_000_000, max: 10_000_000_000 }, otherwise("200ms, with paths 50ms"), WITH_ANOTHER,
            "time between two probes of the underlay in use, or of a path that carries packets; of other underlays five times that, of paths that carry nothing twenty times. A probe and its answer take 140 bytes each on an IPv4 network";
        FAILOVER "failover": Whole { kind: Kind::Time, min: 100_000_000, max: 60_000_000_000 }, otherwise("800ms, with paths 200ms"), WITH_ANOTHER,
            "how long a probe may have no answer", values "100ms .. 60s, not below `every`";
        FAILBACK "failback": Whole { kind: Kind::Time, min: 100_000_000, max: limits::DELAY_NS }, usual(10_000_000_000), WITH_ANOTHER,
            "how long a preferred underlay must have answered";
    }
}

keys! {
    /// The flight recorder.
    RECORD "record" {
        FOLDER "folder": Text { what: "path" }, required("\"/var/lib/linkweir\""), WITH_ANOTHER,
            "folder of the files. The gateway makes it at its start if the folder above exists; if not, it must belong to `gateway.user`";
        PACKETS "packets": Flag {}, usual(false), WITH_ANOTHER,
            "whether the time and size of every packet are recorded also where more than 25,000 arrive in a second; by default such times have counts by size. A time and size take about 6 bytes";
        ADDRESSES "addresses": Flag {}, usual(false), WITH_ANOTHER,
            "whether recordings contain addresses: those in `match`, in `allowed_ips` and in `endpoint` of peers. Addresses of packets, payload and keys are never recorded";
        SIZE "size": Whole { kind: Kind::Size, min: 1_000_000, max: 100_000_000_000_000 }, usual(1_000_000_000), WITH_ANOTHER,
            "bytes of all files together; before they would be more, the oldest file is removed";
    }
}
