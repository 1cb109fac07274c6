// SPDX-License-Identifier: BSD-3-Clause
//! The tables `[scheduler]` and `[[class]]`.

use linkweir_config::keys;
use linkweir_config::keys::form::{Number, Ppm, Special, Text, Whole, Words};
use linkweir_config::keys::hosts::{CARRIED, WITH_ANOTHER};
use linkweir_config::keys::Treatment::{Adapted, Carried, LeftOut, Refused, Silent};
use linkweir_config::keys::{Hosts, Shape};
use linkweir_config::queue::{self, Length};
use linkweir_config::units::Kind;

use super::super::limits;

const NO_SUCH_LIMIT: &str = "queueing disciplines have no such limit";
/// How long packets wait, and which ones leave a full queue.
const OF_THE_QUEUE: Hosts = Hosts {
    laboratory: Refused("is not there in the laboratory; leave it out"),
    gateway: Carried,
    tc: LeftOut(NO_SUCH_LIMIT),
    ns3: LeftOut("queue discs have no such limit"),
    bounds: Refused("no bound is known with {key}"),
};
/// A bound holds if nothing is dropped, so it is the same for both ends.
const OF_A_FULL_QUEUE: Hosts = Hosts {
    bounds: Carried,
    ..OF_THE_QUEUE
};
const FLOWS_APART: Hosts = Hosts {
    tc: LeftOut("the queueing disciplines do not tell the flows of a class apart"),
    ns3: LeftOut("queue discs do not tell the flows of a class apart"),
    ..OF_THE_QUEUE
};
/// A policy across users: the gateway's peers.
const ACROSS_PEERS: Hosts = Hosts {
    laboratory: Refused("is not there in the laboratory, whose link has one user; leave it out"),
    gateway: Carried,
    tc: Refused("has no queueing discipline; leave it out, or export to the gateway"),
    ns3: Refused("has no queue disc; leave it out"),
    bounds: Refused("no bound is known across users; leave it out"),
};
const IN_TIME: &str = "became the bytes that the link carries in this time";
/// Of a limit that is a time.
const OF_A_LENGTH: Hosts = Hosts {
    laboratory: Refused("must be packets in the laboratory"),
    gateway: Carried,
    tc: Adapted(IN_TIME),
    ns3: Adapted(IN_TIME),
    bounds: Silent,
};
const OF_PACKETS: Hosts = Hosts {
    laboratory: Silent,
    ns3: LeftOut("left out, the program's packets carry the code point {code_point}"),
    bounds: Silent,
    ..CARRIED
};

keys! {
    /// The policy; its parameters are further keys.
    SCHEDULER "scheduler" {
        POLICY "policy": Special { shape: Shape::Policy }, required("\"pss\""), CARRIED,
            "the scheduling policy; or [one of your own](../howto/own-policy.md)", values "a name of `linkweir policies`, or `{ python = \"mine.py:Mine\" }`, `{ c = \"mine.c\" }`, `{ c = \"mine.c\", trusted = true }`";
        ACROSS_USERS "across": Special { shape: Shape::Across }, otherwise("none"), ACROSS_PEERS,
            "a policy across users, which chooses whose packet goes next; `policy` then chooses inside each user. See [users](#users-with-several-classes)", values "a table with `policy` and its parameters; those that [nest](../explanation/gateway.md#a-link-that-peers-share)";
    }
}

keys! {
    /// A queue, or several.
    CLASS "class" {
        NAME "name": Text { what: "text" }, required("\"ef\""), CARRIED,
            "flows refer to the class by this name; names must differ; copies are numbered, name-1 and so on";
        COUNT "count": Number { min: 1, max: limits::CLASSES as u64 }, usual(1), CARRIED,
            "number of copies; the copies of a flow that names the class without a number are distributed over them in turn";
        MATCH "match": Special { shape: Shape::Rules }, otherwise("none"), OF_PACKETS,
            "which packets belong to the class where the scenario is put to use, written as in [the gateway](gateway.md#scheduler-and-class). The simulator only keeps it: there each flow names its class. With `count`, each rule needs an address, of which each copy takes the next";
        LIMIT "limit": Length { pkts: limits::QUEUED_PKTS }, otherwise("1000p, or none with limit_bytes"), OF_A_LENGTH,
            "packets the queue holds; a packet that arrives when it is full is dropped. Or the time in which the link carries what the queue holds";
        LIMIT_BYTES "limit_bytes": Whole { kind: Kind::Size, min: 1, max: limits::QUEUED_BYTES }, otherwise("none"), CARRIED,
            "bytes the queue holds, counted as on the wire: each packet with the link's `overhead`, and as `mpu` if it is shorter; at least the largest packet of each of its flows";
        MAX_AGE "max_age": Whole { kind: Kind::Time, min: queue::AGE_NS.0, max: queue::AGE_NS.1 }, otherwise("none"), OF_THE_QUEUE,
            "a packet that has waited longer is dropped, also in an outage";
        FULL "full": Words { of: &queue::ENDS }, otherwise("head with max_age, otherwise tail"), OF_A_FULL_QUEUE,
            "what a full queue drops: the packet that comes, or its oldest ones";
        LEAST "least": Ppm { min: 0, max: queue::MOST_LEAST_PPM as u64 }, otherwise("none"), OF_THE_QUEUE,
            "least share of what leaves while packets wait, whatever the policy would do; all classes together at most 90 %";
        FLOWS "flows": Words { of: &queue::ISOLATIONS }, otherwise("none"), FLOWS_APART,
            "isolates the flows of the class from each other, below what the policy gives the class";
        L4S_STEP "l4s_step": Whole { kind: Kind::Time, min: queue::STEP_NS.0, max: queue::STEP_NS.1 }, otherwise("1ms with dualpi2"), FLOWS_APART,
            "[how long](gateway.md#flows-inside-a-class) an L4S packet may wait unmarked";
        USER "user": Text { what: "text" }, otherwise("a user of its own"), WITH_ANOTHER,
            "[the user](#users-with-several-classes) that the class belongs to; copies belong to users name-1 and so on";
        CODED "coded": Special { shape: Shape::SizeOr("own", limits::CODED_BYTES as f64) }, otherwise("the link's `packet`"), WITH_ANOTHER,
            "size to which the packets of the class are filled up before coding on a satellite's link; `\"own\"` codes each at its own length", values "1B .. 8191B, `\"own\"`";
        ACROSS "across": Special { shape: Shape::Across }, otherwise("that of `scheduler.across`"), WITH_ANOTHER,
            "parameters of the class's user under the policy across users, such as `{ weight = 2 }`";
    }
}

/// What a class may hold.
pub(in crate::scenario) static QUEUE: queue::Keys = queue::Keys {
    limit: &LIMIT,
    limit_bytes: &LIMIT_BYTES,
    max_age: &MAX_AGE,
    full: &FULL,
    least: &LEAST,
    flows: &FLOWS,
    l4s_step: &L4S_STEP,
};
