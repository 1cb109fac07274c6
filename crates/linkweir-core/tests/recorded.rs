// SPDX-License-Identifier: BSD-3-Clause
//! Recordings of calls, replayed by `core/tests/replay.c`, which knows nothing of the wrapper.

use std::fs::{self, File};
use std::io::BufWriter;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use linkweir_core::{policies, policy, Broken, CorePolicy, Full, Limit, Mux, Recorded};

const CLASSES: usize = 4;
const LINK_BPS: u64 = 20_000_000;

fn replay_program(folder: &Path) -> PathBuf {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core");
    let program = folder.join("replay");
    let sources = fs::read_dir(core.join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"));
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-I"])
        .arg(core.join("include"))
        .arg(core.join("tests/replay.c"))
        .args(sources)
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(built.success());
    program
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A run of random arrivals, departures and capacities, recorded in `file`; the number of packets that left.
fn record(name: &str, limit: Limit, steps: u64, file: &Path) -> u64 {
    let info = policy(name).unwrap();
    let (params, qparams) = (info.default_params(), info.default_qparams(CLASSES));
    let mut mux = Mux::new(0, LINK_BPS, &[limit; CLASSES], |view| {
        let inner = CorePolicy::new(info, view, &params, &qparams)?;
        let out = BufWriter::new(File::create(file).unwrap());
        Ok::<_, linkweir_core::Fault>(Recorded::new(inner, info, view, &params, &qparams, out))
    })
    .unwrap();
    let mut random = 1u64;
    let mut below = |most: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let mut left = 0;
    for step in 1..=steps {
        let now_ns = step * 600_000;
        for _ in 0..below(3) {
            let class = below(CLASSES as u64) as usize;
            mux.enqueue(now_ns, class, 40 + below(1_460) as u32, (), |(), _, _| {});
        }
        if below(50) == 0 {
            mux.set_link(now_ns, 1_000_000 * below(40));
        }
        if below(200) == 0 {
            mux.change(now_ns, &params, &qparams).unwrap();
        }
        let ecn = below(2) == 0;
        let departure = mux.dequeue(now_ns, |()| ecn, |(), _, _| {});
        left += u64::from(departure.is_some());
    }
    left
}

fn replayed(program: &Path, files: &[PathBuf]) -> Output {
    Command::new(program).args(files).output().unwrap()
}

#[test]
fn the_core_decides_the_same_given_the_recorded_calls() {
    let folder = folder("recorded");
    let program = replay_program(&folder);
    let limit = Limit {
        pkts: Some(60),
        ..Limit::NONE
    };
    let mut files = Vec::new();
    for info in policies() {
        let file = folder.join(format!("{}.vec", info.name));
        let left = record(info.name, limit, 4_000, &file);
        assert!(left > 1_000, "{}: {left} packets left", info.name);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.ends_with("\n# end\n"), "{}", info.name);
        assert_eq!(text.matches(" send ").count() as u64, left, "{}", info.name);
        files.push(file);
    }
    let output = replayed(&program, &files);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_changed_answer_is_found() {
    let folder = folder("changed");
    let program = replay_program(&folder);
    let file = folder.join("drr.vec");
    record("drr", Limit::NONE, 500, &file);
    let text = fs::read_to_string(&file).unwrap();
    let at = text.rfind("pick 1").unwrap();
    let changed = format!("{}pick 2{}", &text[..at], &text[at + 6..]);
    fs::write(&file, changed).unwrap();
    let output = replayed(&program, &[file]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("pick() answers 1, expected 2"));
}

#[test]
fn drops_that_a_vector_cannot_express_end_the_run() {
    let file = folder("aged").join("fifo.vec");
    let limit = Limit {
        pkts: Some(2),
        full: Full::Head,
        ..Limit::NONE
    };
    let panic = catch_unwind(AssertUnwindSafe(|| record("fifo", limit, 500, &file))).unwrap_err();
    let Broken(what) = panic.downcast_ref::<Broken>().unwrap();
    assert!(what.contains("dropped a waiting packet"), "{what}");
}
