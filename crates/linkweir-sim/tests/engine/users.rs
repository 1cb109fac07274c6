// SPDX-License-Identifier: BSD-3-Clause
//! Users with several classes on a satellite's link and in a beam. Expected values are worked by hand.

use std::path::Path;

use linkweir_sim::experiment::Channel;
use linkweir_sim::satellite::fading::Fading;
use linkweir_sim::scenario::parse;
use linkweir_sim::table::Column;

use crate::build::{tables, Tables, S};

/// Users are 50 s apart.
const SATELLITE: &str = "[link]\nrate = \"1Mbit\"\ndelay = \"10ms\"\n[link.satellite]\nuser_offset = \"50s\"\npacket = \"1115B\"\nesn0_db = 10\n";

/// Runs a scenario over a fading of 100 s: in the line of sight for the first half, 60 dB down for the second. So one user
/// has the good half while the other has the bad one.
fn run_text(text: &str) -> Tables {
    let mut scenario = parse(text, Path::new("users.toml")).unwrap();
    if let Some(satellite) = &mut scenario.experiment.link.satellite {
        satellite.channel = Channel::Recorded(Fading::new(50 * S, vec![0.0, -60.0]).unwrap());
    }
    tables(&scenario.experiment)
}

/// Two users, each with two classes and a source of 115 packets/s in each.
fn two_users(users: [&str; 4], coded: &str) -> String {
    let mut text = format!("duration = \"40s\"\n{SATELLITE}[scheduler]\npolicy = \"rr\"\n");
    for (at, user) in users.iter().enumerate() {
        let user = if user.is_empty() {
            String::new()
        } else {
            format!("user = \"{user}\"\n")
        };
        text += &format!("[[class]]\nname = \"c{at}\"\n{user}{coded}");
    }
    for at in 0..4 {
        text += &format!(
            "[[flow]]\nclass = \"c{at}\"\nkind = \"cbr\"\nrate = \"16.8kbit\"\npacket = \"210B\"\n"
        );
    }
    text
}

/// Part of each flow's packets that is decoded at the first attempt.
fn decoded_first(found: &Tables) -> Vec<f64> {
    let first = found.numbers("harq", "decoded_first_pkts");
    let given_up = found.numbers("harq", "given_up_pkts");
    let both = first.iter().zip(&given_up);
    both.map(|(first, given_up)| first / (first + given_up))
        .collect()
}

#[test]
fn classes_of_one_user_have_one_channel() {
    // Offsets 0 and 50 s: the first user is in the line of sight, the second in the fade.
    let shared = decoded_first(&run_text(&two_users(["a", "a", "b", "b"], "")));
    assert!(shared[0] > 0.99 && shared[1] > 0.99, "{shared:?}");
    assert!(shared[2] < 0.01 && shared[3] < 0.01, "{shared:?}");
    // Interleaved: users are numbered in the order of their first classes.
    let shared = decoded_first(&run_text(&two_users(["a", "b", "a", "b"], "")));
    assert!(shared[0] > 0.99 && shared[2] > 0.99, "{shared:?}");
    assert!(shared[1] < 0.01 && shared[3] < 0.01, "{shared:?}");
    // Without users every class is one: 0, 50, 100 and 150 s, of a round of 100 s.
    let own = decoded_first(&run_text(&two_users(["", "", "", ""], "")));
    assert!(own[0] > 0.99 && own[2] > 0.99, "{own:?}");
    assert!(own[1] < 0.01 && own[3] < 0.01, "{own:?}");
}

#[test]
fn a_packet_takes_the_bits_that_its_class_codes() {
    // In the line of sight the first attempt is enough. Coded bits of it: 2 x 5696 for 1115 bytes, 2 x 1145 for 210.
    let bits = |coded: &str| {
        let text = two_users(["a", "a", "a", "a"], coded);
        let found = run_text(&text);
        let of = |column| found.numbers("harq", column).iter().sum::<f64>();
        of("coded_bits") / of("decoded_first_pkts")
    };
    for (coded, expected) in [
        ("", 11_392.0),
        ("coded = \"1115B\"\n", 11_392.0),
        ("coded = \"210B\"\n", 2_290.0),
        ("coded = \"own\"\n", 2_290.0),
    ] {
        let found = bits(coded);
        assert!((found / expected - 1.0).abs() < 0.02, "{coded:?}: {found}");
    }
}

#[test]
fn users_who_take_turns_have_the_same_however_many_classes_they_have() {
    let mut text = format!("duration = \"20s\"\n{SATELLITE}[scheduler]\npolicy = \"strict\"\nacross = {{ policy = \"rr\" }}\n");
    let text_of = |name: &str, user: &str, level: u8| {
        format!("[[class]]\nname = \"{name}\"\nuser = \"{user}\"\nlevel = {level}\n[[flow]]\nclass = \"{name}\"\nkind = \"greedy\"\npacket = \"1115B\"\n")
    };
    text = text.replace("user_offset = \"50s\"", "user_offset = \"0s\"");
    text += &text_of("a0", "a", 0);
    text += &text_of("a1", "a", 1);
    text += &text_of("b0", "b", 0);
    let sent = run_text(&text).numbers("classes", "sent_pkts");
    // The first class was alone when it came, so its user was served twice at the start.
    assert!((sent[0] - sent[2]).abs() <= 2.0, "{sent:?}");
    assert_eq!(sent[1], 0.0, "the first class of the user goes first");
}

#[test]
fn a_beam_has_a_terminal_for_each_user() {
    let text = "duration = \"10s\"\n[link.beam]\nsymbol_rate = \"10MBd\"\nclear_sky_esn0_db = [13.0, 4.0]\n[scheduler]\npolicy = \"strict\"\nacross = { policy = \"pf\" }\n[[class]]\nname = \"call\"\ncount = 2\nuser = \"t\"\nlevel = 0\n[[class]]\nname = \"data\"\ncount = 2\nuser = \"t\"\nlevel = 1\n[[flow]]\nclass = \"data\"\ncount = 2\nkind = \"greedy\"\n[[flow]]\nclass = \"call\"\ncount = 2\nkind = \"cbr\"\nrate = \"80kbit\"\npacket = \"200B\"\n";
    let found = run_text(text);
    let names = Column::Name(vec!["t-1".to_owned(), "t-2".to_owned()]);
    assert_eq!(found.column("terminals", "class"), &names);
    let airtime = found.numbers("terminals", "airtime");
    // PF shares time, whatever the rates are.
    assert!((airtime[0] / airtime[1] - 1.0).abs() < 0.02, "{airtime:?}");
    assert_eq!(found.numbers("classes", "loss")[..2], [0.0, 0.0]);
}
