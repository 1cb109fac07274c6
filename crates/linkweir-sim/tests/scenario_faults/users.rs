// SPDX-License-Identifier: BSD-3-Clause
//! What is refused of users with several classes: place, key and cure.

use std::path::Path;

use linkweir_sim::scenario::parse;

/// Two users, each with two classes, on a satellite's link.
const TWO: &str = r#"duration = "1s"
[link]
rate = "1Mbit"
delay = "8ms"
[link.satellite]
packet = "1500B"
[scheduler]
policy = "strict"
across = { policy = "pf" }
[[class]]
name = "call"
count = 2
user = "u"
level = 0
coded = "own"
[[class]]
name = "data"
count = 2
user = "u"
level = 1
[[flow]]
class = "call"
count = 2
kind = "voice"
codec = "g711"
[[flow]]
class = "data"
count = 2
kind = "tcp"
"#;

fn fault(before: &str, after: &str) -> String {
    let text = TWO.replacen(before, after, 1);
    assert_ne!(text, TWO, "{before}");
    let found = parse(&text, Path::new("users.toml"));
    found.err().map_or(String::new(), |fault| fault.to_string())
}

#[test]
fn the_scenario_itself_is_right_and_its_resolved_form_means_the_same() {
    let read = |text: &str| parse(text, Path::new("users.toml")).unwrap();
    let first = read(TWO);
    let users: Vec<_> = first
        .experiment
        .classes
        .iter()
        .map(|c| c.user.clone())
        .collect();
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(
        users,
        [named("u-1"), named("u-2"), named("u-1"), named("u-2")]
    );
    let weighted = TWO.replacen("level = 1", "level = 1\nacross = { weight = 3 }", 1);
    for text in [TWO, &weighted] {
        let one = read(text);
        let again = read(&one.resolved_toml);
        assert_eq!(one.experiment.scheduler, again.experiment.scheduler);
        assert_eq!(one.experiment.classes, again.experiment.classes);
        assert_eq!(one.resolved_toml, again.resolved_toml);
    }
}

#[test]
fn faults_of_users_name_the_cure() {
    for (before, after, expected) in [
        (
            "user = \"u\"",
            "user = \"\"",
            "users.toml:13: class[0].user = \"\": must not be empty",
        ),
        (
            "user = \"u\"\nlevel = 1",
            "level = 1\n[[class]]\nname = \"u-1\"",
            "class[0].user = \"u\": is also the name of a class that is a user of its own; write user = \"u-1\" there, too, or rename one",
        ),
        (
            "packet = \"1500B\"",
            "packet = \"1500B\"\nusers = \"flows\"",
            "class[0].user = \"u\": is not for link.satellite.users = \"flows\"",
        ),
        (
            "coded = \"own\"",
            "coded = \"each\"",
            "users.toml:15: class[0].coded = \"each\": must be a size like \"210B\", or \"own\"",
        ),
        (
            "coded = \"own\"",
            "coded = \"9kB\"",
            "class[0].coded = \"9kB\": must be 1B .. 8191B",
        ),
        (
            "coded = \"own\"",
            "coded = \"100B\"",
            "makes packets of 200B, more than the 100B that link.satellite.packet codes, or coded of its class; lower it or raise that",
        ),
        (
            "packet = \"1500B\"",
            "packet = \"1500B\"\nesn0_db = 16",
            "class[0].coded = \"own\": needs link.satellite.esn0_db = 7 .. 13, not 16",
        ),
        (
            "[link.satellite]\npacket = \"1500B\"\n",
            "",
            "class[0].coded = \"own\": is only for a link with a table [link.satellite]; leave it out",
        ),
        (
            "{ policy = \"pf\" }",
            "\"pf\"",
            "users.toml:9: scheduler.across = \"pf\": must be a table like { policy = \"pf\" }",
        ),
        (
            "{ policy = \"pf\" }",
            "{ policy = \"codel\" }",
            "users.toml:9: scheduler.across.policy = \"codel\": must be one of ",
        ),
        (
            "{ policy = \"pf\" }",
            "{ policy = \"pf\", tc = \"1ms\" }",
            "scheduler.across.tc = \"1ms\": must be 10ms .. 100s",
        ),
        (
            "{ policy = \"pf\" }",
            "{ policy = \"rr\", tc = \"1s\" }",
            "scheduler.across.tc = \"1s\": unknown key",
        ),
        (
            "policy = \"strict\"",
            "policy = \"tauran_pf\"",
            "scheduler.across = { policy = \"pf\" }: needs a policy of `linkweir policies` inside each user, which tauran_pf is not",
        ),
        (
            "across = { policy = \"pf\" }\n[[class]]\nname = \"call\"",
            "[[class]]\nname = \"call\"\nacross = { weight = 2 }",
            "class[0].across = { weight = 2 }: is only for a policy across users; write across = { policy = \"pf\" } in [scheduler]",
        ),
        (
            "coded = \"own\"",
            "least = \"5%\"",
            "class[0].least = \"5%\": is a share of a link whose classes are not shared out among users",
        ),
        (
            "coded = \"own\"",
            "across = { wight = 2 }",
            "class[0].across.wight = 2: unknown key; did you mean weight?",
        ),
        (
            "level = 1",
            "level = 0",
            "class[1].level = 0: ",
        ),
    ] {
        let found = fault(before, after);
        assert!(found.contains(expected), "{after}: {found}");
    }
}

#[test]
fn two_classes_of_a_user_do_not_both_say_what_it_has_across() {
    let text = TWO.replace("level = ", "across = { weight = 2 }\nlevel = ");
    let fault = parse(&text, Path::new("users.toml"))
        .unwrap_err()
        .to_string();
    let expected = "is given by another class of this user, too; leave one out";
    assert!(
        fault.starts_with("users.toml:21: class[1].across") && fault.contains(expected),
        "{fault}"
    );
}

#[test]
fn a_beam_has_as_many_terminals_as_users() {
    let text = TWO
        .replace("rate = \"1Mbit\"\n", "")
        .replace(
            "[link.satellite]\npacket = \"1500B\"",
            "[link.beam]\nsymbol_rate = \"10MBd\"\nclear_sky_esn0_db = [9.0, 9.0, 9.0]",
        )
        .replace("coded = \"own\"\n", "");
    let fault = parse(&text, Path::new("users.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        fault.contains("has 3 values where there are 2 users; give one for each or one for all"),
        "{fault}"
    );
}
