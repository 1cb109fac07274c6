// SPDX-License-Identifier: BSD-3-Clause
//! Settings of a discipline: what is read, what is refused, and the words that the program gets.

use std::path::Path;

use linkweir_bpf::layout::{halves, join, Command, Op, ANSWER_AT, SETTINGS_WORDS};
use linkweir_bpf::settings::Settings;
use linkweir_core::UNSET;

const GOOD: &str = r#"
[link]
rate = "10Mbit"
[scheduler]
policy = "pss"
[[class]]
name = "ef"
match = [{ dscp = "EF" }]
limit = "100p"
[[class]]
name = "af"
match = [{ dscp = ["AF11", "AF12"] }]
rate = "4Mbit"
low_level = 4
limit_bytes = "15kB"
[[class]]
name = "be"
"#;

fn read(text: &str) -> Result<Settings, String> {
    Settings::parse(text, Path::new("up.toml"), None, 0).map_err(|fault| fault.to_string())
}

#[test]
fn settings_become_the_words_of_plane_h() {
    let settings = read(GOOD).unwrap();
    let words = settings.words(12_000_000, 1);
    assert_eq!(words[..3], [10_000_000, 10_000_000, 12_000_000]);
    // three parameters of pss, then room for more
    assert_eq!(words[3..7], [0, 0, 0, 0]);
    let class_of = &words[19..83];
    assert_eq!(
        (class_of[46], class_of[10], class_of[12], class_of[0]),
        (0, 1, 1, 2)
    );
    assert_eq!(words[83], 2, "packets without code point");
    assert_eq!(words[84], 1, "the text with these settings");
    assert_eq!(words[85], 0, "neither marks nor rules");
    let limits = &words[SETTINGS_WORDS..SETTINGS_WORDS + 9];
    assert_eq!(limits[..3], [u64::MAX, UNSET, 100]);
    assert_eq!(limits[3..6], [15_000, UNSET, u64::MAX]);
    assert_eq!(limits[6..9], [u64::MAX, UNSET, 1000]);
    let af = &words[SETTINGS_WORDS + 9 + settings.info.qparams.len()..];
    assert_eq!(af[1..3], [4, 4_000_000], "low_level and rate");
    assert_eq!(
        words.len(),
        SETTINGS_WORDS + 9 + 3 * settings.info.qparams.len()
    );
}

#[test]
fn rules_with_ports_and_marks_become_words() {
    let text = GOOD
        .replacen(
            r#"{ dscp = "EF" }"#,
            r#"{ protocol = "udp", port = [5060, "6000-6010"], order = 1 }, { dscp = "EF" }]
mark = [7, 0x80000001"#,
            1,
        )
        .replacen(r#"["AF11", "AF12"] }"#, r#"1, source_port = 53 }"#, 1);
    let words = read(&text).unwrap().words(0, 0);
    assert_eq!(halves(words[85]), (2, 4), "marks, then rules");
    assert_eq!(words[86..89], [7, 0x8000_0001, 0]);
    let rules: Vec<&[u64]> = words[150..].chunks(7).collect();
    let (any, every) = (halves(u64::from(u32::MAX) << 16).0, u64::MAX);
    let range = |first: u32, last: u32| first | last << 16;
    // in the order in which they are tried: those of order 0, class by class, then that of order 1
    assert_eq!(rules[0][..5], [1 << 46, every, every, every, every]);
    assert_eq!(halves(rules[0][5]), (any, any));
    assert_eq!(halves(rules[0][6]), (any, 0));
    assert_eq!(rules[1][0], 1 << 1);
    assert_eq!(halves(rules[1][5]), (any, range(53, 53)));
    assert_eq!(halves(rules[1][6]), (any, 1));
    assert_eq!(rules[2][..5], [every, 1 << 17, 0, 0, 0]);
    assert_eq!(halves(rules[2][5]), (range(5060, 5060), any));
    assert_eq!(halves(rules[3][5]), (range(6000, 6010), any));
    assert!(rules[4].iter().all(|word| *word == 0));
}

#[test]
fn rules_that_need_more_room_than_there_is_are_refused() {
    let ports: Vec<String> = (1..=65).map(|port| port.to_string()).collect();
    let with = |ports: &[String]| {
        let rule = format!("{{ port = [{}] }}", ports.join(", "));
        GOOD.replacen(r#"{ dscp = "EF" }"#, &rule, 1)
    };
    // the other rule, AF11 and AF12, is the last one
    assert!(read(&with(&ports[..63])).is_ok());
    let fault = read(&with(&ports[..64])).unwrap_err();
    assert!(fault.contains("at most 64 rules"), "{fault}");
    let marks = |count: u32| {
        let list: Vec<String> = (1..=count).map(|mark| mark.to_string()).collect();
        GOOD.replacen(
            "limit = \"100p\"",
            &format!("mark = [{}]", list.join(", ")),
            1,
        )
    };
    assert!(read(&marks(64)).is_ok());
    assert!(read(&marks(65)).is_err());
}

#[test]
fn a_rate_reported_later_takes_the_place_of_the_file_s() {
    let settings = Settings::parse(GOOD, Path::new("up.toml"), Some(6_000_000), 0).unwrap();
    assert_eq!(
        settings.words(10_000_000, 0)[..3],
        [6_000_000, 6_000_000, 10_000_000]
    );
}

#[test]
fn what_a_discipline_cannot_do_is_refused_with_key_and_cure() {
    for (change, by, told) in [
        (
            r#"{ dscp = "EF" }"#,
            r#"{ address = "10.0.0.0/8" }"#,
            "no addresses; let the firewall mark",
        ),
        (
            r#"limit = "100p""#,
            r#"limit = "100ms""#,
            "packets and bytes only",
        ),
        (
            r#"limit = "100p""#,
            r#"max_age = "100ms""#,
            "packets and bytes only",
        ),
        (
            r#"rate = "4Mbit""#,
            r#"rate = "40Mbit""#,
            "below the link's capacity",
        ),
        (r#"policy = "pss""#, r#"policy = "psss""#, "pss"),
        (r#"rate = "10Mbit""#, r#"rate = "10""#, "needs a unit"),
        (
            "name = \"be\"",
            "name = \"be\"\nmatch = [{ dscp = \"LE\" }]",
            "one class must take what no other does",
        ),
        (
            "name = \"be\"",
            "name = \"ef\"",
            "two classes have this name",
        ),
        ("name = \"be\"", "name = \"be\"\nburts = \"3p\"", "burts"),
        (
            "name = \"be\"",
            "name = \"be\"\nmark = 7",
            "one class must take what no other does",
        ),
        (
            r#"{ dscp = "EF" }"#,
            r#"{}]
mark = [7, 7"#,
            "given before",
        ),
    ] {
        let text = GOOD.replacen(change, by, 1);
        assert_ne!(text, GOOD);
        let fault = read(&text).unwrap_err();
        assert!(
            fault.contains(told) && fault.starts_with("up.toml"),
            "{by}: {fault}"
        );
    }
}

/// Classes in BPF are sorted by code points, which do not contain the ECN codepoint.
#[test]
fn a_policy_of_packets_sorted_by_ecn_is_refused_for_that() {
    let text = GOOD
        .replace("rate = \"4Mbit\"\nlow_level = 4\n", "")
        .replace("\"pss\"", "\"dualpi2\"");
    let fault = read(&text).unwrap_err();
    assert!(
        fault.starts_with("up.toml:5") && fault.contains("ECN codepoint"),
        "{fault}"
    );
    assert!(!fault.contains("verifier"), "{fault}");
}

#[test]
fn policies_that_the_kernel_refuses_are_refused_before() {
    for policy in ["mlwdf", "exp_rule", "exp_pf"] {
        let text = GOOD
            .replace("rate = \"4Mbit\"\nlow_level = 4\n", "")
            .replace("\"pss\"", &format!("\"{policy}\""));
        let fault = read(&text).unwrap_err();
        assert!(
            fault.starts_with("up.toml:5") && fault.contains(policy),
            "{fault}"
        );
        assert!(fault.contains("the kernel refuses this policy"), "{fault}");
        assert!(fault.contains("kernel module, or another policy"));
    }
}

#[test]
fn a_command_has_the_layout_of_the_c_structure() {
    let command = Command {
        q: 7,
        to: 2,
        now_ns: 9,
        link_bps: 11,
        ..Command::default()
    };
    let bytes = command.bytes(Op::Init);
    let small = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let large = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!((small(0), small(4), small(28)), (16, 7, 2));
    assert_eq!((large(32), large(48), large(ANSWER_AT)), (9, 11, 0));
    assert_eq!(halves(join(3, 4)), (3, 4));
}
