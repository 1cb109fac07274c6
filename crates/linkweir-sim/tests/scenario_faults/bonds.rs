// SPDX-License-Identifier: BSD-3-Clause
//! What is wrong with bonds, and with keys and names that belong to them.

use std::path::Path;

use linkweir_sim::scenario::parse;

use crate::{fault_with, BASE as ONE_LINK};

const BASE: &str = r#"duration = "10s"

[[link]]
name = "starlink"
rate = "60Mbit"

[[link]]
name = "lte"
rate = "40Mbit"
cost = 5

[[bond]]
name = "boat"
links = ["starlink", "lte"]
[bond.scheduler]
policy = "pss"
[[bond.class]]
name = "video"
level = 1
low_level = 3
rate = "4Mbit"
paths = "stripe"
reorder = "400ms"
[[bond.class]]
name = "rest"
level = 2

[[flow]]
kind = "greedy"
path = ["boat"]
class = "rest"
"#;

#[track_caller]
fn ends(from: &str, to: &str, wanted: &str) {
    let fault = fault_with(BASE, "boat.toml", from, to);
    assert!(fault.ends_with(wanted), "{fault}");
}

#[test]
fn a_flow_over_a_link_of_a_bond_is_told_the_bond() {
    ends(
        r#"path = ["boat"]"#,
        r#"path = ["lte"]"#,
        r#"flow[0].path[0] = "lte": is a link of bond "boat"; flows name the bond: write ["boat"]"#,
    );
}

#[test]
fn a_reservation_beyond_the_links_names_their_rates() {
    ends(
        r#"rate = "4Mbit""#,
        r#"rate = "120Mbit""#,
        "(pss, the nominal rates of its links are together 100Mbit: starlink 60Mbit, lte 40Mbit)",
    );
}

#[test]
fn paths_are_a_word_or_a_list_of_names() {
    let given = r#"paths = "stripe""#;
    ends(
        given,
        r#"paths = "lte""#,
        r#"paths = "lte": must be one of best, all, spill, stripe, or a list of names, like ["lte"]"#,
    );
    ends(given, r#"paths = "strip""#, r#"did you mean "stripe"?"#);
    ends(
        given,
        r#"paths = ["best"]"#,
        r#"; did you mean paths = "best", without a list?"#,
    );
}

#[test]
fn the_range_of_reorder_has_the_word_none() {
    let given = r#"reorder = "400ms""#;
    ends(
        given,
        r#"reorder = "2h""#,
        r#"must be 0s .. 3600s, or "none""#,
    );
    ends(given, r#"reorder = "None""#, r#", or "none""#);
}

#[test]
fn the_cost_of_a_link_outside_the_bond_names_both_cures() {
    ends(
        r#"links = ["starlink", "lte"]"#,
        r#"links = ["starlink"]"#,
        r#"no [[bond]] has this one among its links; add "lte" to links of a [[bond]], or leave it out"#,
    );
}

#[test]
fn keys_of_a_bonds_classes_are_refused_elsewhere_with_their_place() {
    for key in [r#"paths = "all""#, r#"reorder = "none""#, "resend = true"] {
        let to = format!("low_level = 3\n{key}");
        let fault = fault_with(ONE_LINK, "geo.toml", "low_level = 3", &to);
        let wanted = format!("class[1].{key}: belongs in [[bond.class]]; leave it out here");
        assert!(fault.ends_with(&wanted), "{fault}");
    }
}

/// docs/records/l4s.md, "Inside a class".
#[test]
fn a_note_says_where_a_reservation_starves_l4s() {
    let notes = |keys: &str| {
        let text = ONE_LINK.replace(
            "\nrate = \"5Mbit\"\n\n[[class]]",
            &format!("\n{keys}\n\n[[class]]"),
        );
        assert_ne!(text, ONE_LINK);
        parse(&text, Path::new("geo.toml")).unwrap().notes
    };
    let dualpi2 = "rate = \"12Mbit\"\nflows = \"dualpi2\"";
    let starved = notes(dualpi2);
    assert!(
        starved.len() == 1
            && starved[0].starts_with("class \"af\": in turns of 20 packets at 12Mbit, ")
            && starved[0].ends_with("; write burst = \"2p\" and l4s_step = \"2.1ms\""),
        "{starved:?}"
    );
    assert!(notes(&format!("{dualpi2}\nburst = \"2p\"\nl4s_step = \"2.1ms\"")).is_empty());
    assert!(notes("rate = \"12Mbit\"").is_empty());
}
