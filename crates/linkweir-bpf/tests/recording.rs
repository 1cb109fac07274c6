// SPDX-License-Identifier: BSD-3-Clause
//! Calls that a program noted down become a vector, as `vectors/README.md` has it.

use std::path::Path;

use linkweir_bpf::layout::{join, Call};
use linkweir_bpf::recording::vector;
use linkweir_bpf::settings::Settings;

const NO_QUEUE: u32 = 0xff_ffff;
const INIT: u32 = 0;
const ENQUEUED: u32 = 1;
const VICTIM: u32 = 2;
const PICK: u32 = 3;
const LEAVING: u32 = 4;
const EXPIRED: u32 = 5;
const SENT: u32 = 6;
const CHANGE: u32 = 7;

fn settings() -> Settings {
    let text = r#"
link = { rate = "10Mbit" }
scheduler = { policy = "drr" }
class = [{ name = "a", match = [{ dscp = "EF" }], quantum = "3kB" }, { name = "b" }]
"#;
    Settings::parse(text, Path::new("up.toml"), None, 0).unwrap()
}

/// As `struct lw_call` has it.
fn call(now_ns: u64, called: u32, queue: u32, value: u32) -> Call {
    Call::new([now_ns, join(called | queue << 8, value)]).unwrap()
}

#[test]
fn calls_become_the_lines_of_a_vector() {
    let calls = [
        call(5, INIT, NO_QUEUE, 0),
        call(7, ENQUEUED, 1, 1000),
        call(7, VICTIM, 0, 1),
        call(7, VICTIM, 1, 0),
        call(8, ENQUEUED, 0, 60),
        call(9, EXPIRED, 0, 1),
        call(9, EXPIRED, 0, 0),
        call(10, PICK, 0, 0),
        call(10, LEAVING, 0, 2),
        call(10, PICK, 1, 0),
        call(10, LEAVING, 1, 0),
        call(10, SENT, 1, 1000),
        call(11, PICK, NO_QUEUE, 0),
    ];
    let text = vector(&settings(), &calls).unwrap();
    let (head, lines) = text.split_once("at 5 init\n").unwrap();
    assert!(
        head.starts_with("linkweir-vectors 1\npolicy drr\nqueues 2\nlink 10000000\n"),
        "{head}"
    );
    assert!(head.contains("queue 0 quantum=3000"), "{head}");
    assert_eq!(
        lines,
        "at 7 enqueue 1 1000 drops h0 1\nat 8 enqueue 0 60\nat 9 expired 0 yes\nat 9 expired 0 no\n\
         at 10 pick 0\nat 10 verdict drop\nat 10 pick 1\nat 10 verdict pass\nat 10 send 1\nat 11 pick none\n# end\n"
    );
}

#[test]
fn a_recording_that_is_not_whole_is_refused() {
    let begun = call(5, INIT, NO_QUEUE, 0);
    for (calls, said) in [
        (vec![], "LW_RECORD"),
        (vec![call(7, ENQUEUED, 1, 1000)], "LW_RECORD"),
        (
            vec![begun, call(7, CHANGE, NO_QUEUE, 0)],
            "settings changed",
        ),
        (vec![begun, call(7, VICTIM, 1, 0)], "no arrival asked for"),
        (vec![begun, call(7, LEAVING, 1, 3)], "no such verdict"),
        (vec![begun, call(7, 8, 1, 0)], "no such call"),
    ] {
        let fault = vector(&settings(), &calls).unwrap_err().to_string();
        assert!(fault.contains(said), "{fault}");
    }
    assert_eq!(Call::new([0, 0]), None, "room that was not used");
}
