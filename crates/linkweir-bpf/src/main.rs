// SPDX-License-Identifier: BSD-3-Clause
//! linkweir-bpf: a policy of the core as the queueing discipline of a device, in BPF. Exit codes: 0 done, 1 the kernel refuses, 2 wrong
//! input.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(feature = "kernel")]
mod commands;

const HELP: &str = "\
Makes a policy the queueing discipline of a device, in BPF (Linux 6.16 or later).

    linkweir-bpf add DEV FILE       loads the settings of FILE and makes them the root of DEV
    linkweir-bpf change DEV FILE    new settings for DEV; packets and counters stay
    linkweir-bpf link DEV RATE      the capacity of DEV's link is now RATE, such as 12Mbit
    linkweir-bpf follow DEV         the same from each line of standard input, until it ends
    linkweir-bpf show DEV           what each class has sent, dropped and holds
    linkweir-bpf settings DEV       the settings in force, as a file
    linkweir-bpf del DEV            removes the discipline and drops its packets
    linkweir-bpf check FILE         reads settings and says what is wrong
    linkweir-bpf replay FILE...     replays test vectors in the kernel
    linkweir-bpf cost POLICY...     the verifier's count of instructions
    linkweir-bpf calls DEV          the policy's calls as a vector, of an object built to record them

FILE is TOML: [link] rate and shape, [scheduler] policy, [[class]] name, match, mark, limit and the policy's parameters.
LINKWEIR_BPF_OBJECTS names the folder of POLICY.bpf.o (/usr/lib/linkweir/bpf).
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if matches!(words[..], [] | ["help" | "--help" | "-h"]) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("linkweir-bpf: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

#[cfg(feature = "kernel")]
fn run(words: &[&str]) -> Result<(), linkweir_bpf::Failure> {
    commands::run(words)
}

#[cfg(not(feature = "kernel"))]
fn run(words: &[&str]) -> Result<(), linkweir_bpf::Failure> {
    use linkweir_bpf::{settings, Failure};

    if let ["check", file] = words {
        return settings::load(std::path::Path::new(file)).map(|_| ());
    }
    Err(Failure::Input(
        "this build reads settings only (check FILE); build it with cargo build --features kernel, which needs libelf-dev and zlib1g-dev"
            .to_owned(),
    ))
}
