// SPDX-License-Identifier: BSD-3-Clause
//! The tables `[[bond]]` and `[[bond.class]]`.

use linkweir_config::keys;
use linkweir_config::keys::form::{Flag, Special, Text, Whole};
use linkweir_config::keys::hosts::{CARRIED, WITH_ANOTHER};
use linkweir_config::keys::Shape;
use linkweir_config::units::Kind;

use super::super::limits;

keys! {
    /// Several links behind one scheduler.
    BOND "bond" {
        NAME "name": Text { what: "text" }, required("\"boat\""), CARRIED,
            "flows name the bond so in `path` and `back`, as a link; must differ from all links";
        LINKS "links": Special { shape: Shape::Names }, required("[\"starlink\", \"lte\"]"), WITH_ANOTHER,
            "its members, 1 to 8 `[[link]]`s without scheduler and classes", values "list of names of links";
        ROOM "room": Whole { kind: Kind::Time, min: 0, max: limits::DELAY_NS }, usual(20_000_000), WITH_ANOTHER,
            "when links are full for a class that prefers them: a packet that came now would wait longer for them than this";
        DETECT "detect": Whole { kind: Kind::Time, min: 0, max: limits::DELAY_NS }, usual(200_000_000), WITH_ANOTHER,
            "after how long it is known that a link loses everything (`loss` is 1), or no longer does. A `rate` of 0 is known at once";
        SCHEDULER "scheduler": Special { shape: Shape::Nested(&super::class::SCHEDULER) }, required("policy = \"pss\""), WITH_ANOTHER,
            "the policy: fifo, strict, pss, pds or codel", values "table";
        CLASS "class": Special { shape: Shape::Tables(&BONDED) }, required(""), WITH_ANOTHER,
            "the queues of the scheduler, in order";
    }
}

keys! {
    /// A queue of a bond's scheduler.
    BONDED "bond.class" after [&super::class::CLASS] {
        PATHS "paths": Special { shape: Shape::Other("a word, or a list of names of links") }, otherwise("`\"best\"`"), WITH_ANOTHER,
            "the links that its packets may take: the one with the least delay that is not full, copies over all, the cheapest that is not full, any that is free, or any of those listed", values "best, all, spill, stripe, or a list of names";
        REORDER "reorder": Special { shape: Shape::TimeOr("none", limits::DELAY_NS as f64) }, otherwise(linkweir_config::bond::REORDER), WITH_ANOTHER,
            "how long the receiver holds a packet for missing ones before it; what comes later is dropped. `\"none\"` drops duplicates only";
        RESEND "resend": Flag {}, usual(false), WITH_ANOTHER,
            "whether what a link held is sent again over others when it is found dead; not with `all`";
    }
}
