// SPDX-License-Identifier: BSD-3-Clause
//! Replays the lives in `tests/bonds`, which the naive model in `oracle/bonds.py` wrote and describes.

use std::fs;
use std::path::Path as File;

use linkweir_core::{
    policy, Arrived, Bond, CorePolicy, Limit, Mux, Path, Paths, Resequencer, Restoring, Sender, Why,
};

fn number<N: std::str::FromStr<Err: std::fmt::Debug>>(word: &str) -> N {
    word.parse().unwrap()
}

fn uses(word: &str) -> Paths {
    match word {
        "best" => Paths::Best,
        "all" => Paths::All,
        "spill" => Paths::Spill,
        "stripe" => Paths::Stripe,
        named => Paths::Named(named.split(',').map(|at| 1 << number::<u32>(at)).sum()),
    }
}

fn replay_sender(name: &str, lines: &[Vec<&str>]) -> usize {
    let rows = |key: &str| {
        lines
            .iter()
            .filter(|words| words[0] == key)
            .cloned()
            .collect::<Vec<_>>()
    };
    let paths: Vec<Path> = rows("path")
        .iter()
        .map(|words| Path {
            cost: number(words[1]),
            up: true,
            rate_bps: number(words[2]),
            delay_ns: number(words[3]),
        })
        .collect();
    let classes = rows("class");
    let bond = &rows("bond")[0];
    let of_classes: Vec<Paths> = classes.iter().map(|words| uses(words[1])).collect();
    let resend: Vec<bool> = classes.iter().map(|words| words[2] == "resend").collect();
    let bond_of_paths = Bond::new(&paths, &of_classes, number(bond[1]));
    let mut sender: Sender<()> =
        Sender::new(bond_of_paths, &resend, number(bond[3]), number(bond[2]));
    let info = policy("strict").unwrap();
    let limit = |words: &Vec<&str>| Limit {
        max_age_ns: (words[3] != "any").then(|| number(words[3])),
        ..Limit::NONE
    };
    let limits: Vec<Limit> = classes.iter().map(limit).collect();
    let mut mux: Mux<CorePolicy, ()> = Mux::new(0, 1_000_000, &limits, |view| {
        CorePolicy::new(info, view, &info.default_params(), &info.default_qparams(4))
    })
    .unwrap();
    let mut pulls = 0;
    for (at, words) in lines
        .iter()
        .enumerate()
        .filter(|(_, words)| words[0] == "at")
    {
        let now_ns = number(words[1]);
        match words[2] {
            "arrive" => mux.enqueue(
                now_ns,
                number(words[3]),
                number(words[4]),
                (),
                |(), _, _| {},
            ),
            "path" => {
                let path: usize = number(words[3]);
                let now = Path {
                    up: words[4] == "up",
                    rate_bps: number(words[5]),
                    delay_ns: number(words[6]),
                    ..sender.bond.paths()[path]
                };
                sender.set_path(path, now, number(words[7]));
            }
            _ => {
                let path = number(words[3]);
                mux.drop_aged(now_ns, u32::MAX, |(), _, _| {});
                let mut carried = sender
                    .before(&mut mux, now_ns, path)
                    .map(|c| (c.class, c.number, c.why));
                let mut found = None;
                if carried.is_none() {
                    sender.allow(&mut mux, now_ns, path);
                    let departure = mux.dequeue(now_ns, |()| false, |(), _, _| {});
                    found = departure.map(|d| (d.class, sender.left(now_ns, path, &d)));
                }
                if carried.is_none() && found.is_none() {
                    carried = sender
                        .after(now_ns, path)
                        .map(|c| (c.class, c.number, c.why));
                }
                let answer = match (found, carried) {
                    (Some((class, number)), _) => format!("{class} {number} first"),
                    (None, Some((class, number, why))) => {
                        let why = match why {
                            Why::Copy => "copy",
                            Why::Again => "again",
                        };
                        format!("{class} {number} {why}")
                    }
                    (None, None) => "none".to_owned(),
                };
                assert_eq!(answer, words[4..].join(" "), "{name}:{}", at + 1);
                pulls += 1;
            }
        }
    }
    pulls
}

fn replay_receiver(name: &str, lines: &[Vec<&str>]) -> usize {
    let head = &lines[0];
    let mut receiver: Resequencer<u32> = Resequencer::new(Restoring {
        wait_ns: (head[1] != "none").then(|| number(head[1])),
        most_pkts: number(head[2]),
        most_bytes: number(head[3]),
        window: number(head[4]),
    });
    for (at, words) in lines.iter().enumerate().skip(1) {
        let now_ns = number(words[1]);
        let mut out = Vec::new();
        let mut add = |arrived| {
            let (number, word) = match arrived {
                Arrived::Delivered(number) => (number, "given"),
                Arrived::Duplicate(number) => (number, "twice"),
                Arrived::Late(number) => (number, "late"),
            };
            out.push(format!("{number} {word}"));
        };
        let answered = if words[2] == "come" {
            let which = number(words[3]);
            receiver.arrive(now_ns, which, number(words[4]), which, &mut add);
            5
        } else {
            receiver.expire(now_ns, &mut add);
            3
        };
        assert_eq!(
            out.join(" "),
            words[answered..].join(" "),
            "{name}:{}",
            at + 1
        );
    }
    lines.len()
}

#[test]
fn a_naive_model_gives_the_same_answers() {
    let folder = File::new(env!("CARGO_MANIFEST_DIR")).join("tests/bonds");
    let (mut senders, mut receivers) = (0, 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        if name.starts_with("sender") {
            senders += replay_sender(&name, &lines);
        } else {
            receivers += replay_receiver(&name, &lines);
        }
    }
    assert!(
        senders > 800 && receivers > 1500,
        "{senders} pulls, {receivers} arrivals"
    );
}
