// SPDX-License-Identifier: BSD-3-Clause
//! Users' C files: those that keep the contract answer as the core's own; what others do is told with the call that did it.

use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::time::{Duration, Instant};

use linkweir_core::{Broken, CorePolicy, Departure, Limit, Mux, Policy, PolicyInfo};
use linkweir_user::c_policy;

const CLASSES: usize = 3;
const LINK_BPS: u64 = 10_000_000;

/// Serves the queue whose head came first, with a state of eight bytes for each queue.
const OLDEST: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "linkweir/policy.h"

struct state { uint64_t served[1]; };

static size_t state_size(uint32_t n, const uint64_t *params)
{
	(void)params;
	return n * sizeof(uint64_t);
}

static void init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *classes)
{
	struct state *st = state;
	uint32_t q;

	(void)params, (void)classes;
	for (q = 0; q < v->nqueues; q++)
		st->served[q] = 0;
	/* in init */
}

static uint32_t pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct state *st = state;
	uint32_t q, best = LW_NONE;

	(void)st, (void)retry_ns;
	for (q = 0; q < v->nqueues; q++)
		if (v->queues[q].backlog_pkts && v->queues[q].rate_bps &&
		    (best == LW_NONE || v->queues[q].head_arrival_ns < v->queues[best].head_arrival_ns))
			best = q;
	/* in pick */
	return best;
}

static void sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct state *st = state;

	(void)v, (void)bytes;
	st->served[q]++;
	/* in sent */
}

static void observe(const void *state, const struct lw_view *v, uint32_t q, int64_t *values)
{
	const struct state *st = state;

	(void)v;
	/* in observe */
	values[0] = (int64_t)st->served[q];
}

static const struct lw_stat stats[] = { { .name = "served", .help = "packets sent", .unit = LW_PKTS } };

const struct lw_policy lw_policy_oldest = {
	.name = "oldest",
	.help = "the packet that has waited longest",
	.abi = LW_ABI,
	.max_queues = LW_MAX_QUEUES,
	.nstats = 1,
	.stats = stats,
	.state_size = state_size,
	.init = init,
	.pick = pick,
	.sent = sent,
	.observe = observe,
};
"#;

/// Classes in the order of their packets.
fn serve<P: Policy>(mux: &mut Mux<P, ()>) -> Vec<usize> {
    let mut order = Vec::new();
    for step in 0..400_u64 {
        let now_ns = 1000 * step;
        let class = (step * step % 7 % 3) as usize;
        mux.enqueue(now_ns, class, 100 + step as u32 % 900, (), |(), _, _| {});
        if step % 3 != 0 {
            let departure = mux.dequeue(now_ns + 500, |()| false, |(), _, _| {});
            order.extend(departure.map(|Departure { class, .. }| class));
        }
    }
    order
}

fn limits() -> [Limit; CLASSES] {
    [Limit {
        pkts: Some(20),
        ..Limit::NONE
    }; CLASSES]
}

fn written(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file
}

/// What a file's policy does with the traffic of `serve`, or what is wrong with it.
fn run(text: &str, name: &str, trusted: bool) -> Result<(Vec<usize>, Vec<i64>), String> {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), name, text);
    let maker = c_policy(&file, text.as_bytes(), trusted)?.maker;
    let declared = maker.declaration();
    let mux = Mux::new(0, LINK_BPS, &limits(), |view| {
        let (params, qparams) = (declared.default_params(), declared.default_qparams(CLASSES));
        maker.check(view, &params, &qparams)?;
        maker.start(view, &params, &qparams)
    });
    let mut mux = mux.map_err(|fault| fault.to_string())?;
    let shown = |mux: &mut Mux<_, ()>| {
        let order = serve(mux);
        let shown = (0..CLASSES).map(|class| {
            let mut values = [0];
            mux.observe(1_000_000, class, &mut values);
            values[0]
        });
        (order, shown.collect())
    };
    catch_unwind(AssertUnwindSafe(|| shown(&mut mux))).map_err(|payload| {
        let Broken(what) = payload.downcast_ref::<Broken>().expect("it was the policy");
        what.clone()
    })
}

fn core(info: &'static PolicyInfo) -> Vec<usize> {
    let mut mux = Mux::new(0, LINK_BPS, &limits(), |view| {
        CorePolicy::new(
            info,
            view,
            &info.default_params(),
            &info.default_qparams(CLASSES),
        )
    })
    .unwrap();
    serve(&mut mux)
}

#[test]
fn a_file_that_keeps_the_contract_serves_as_the_core_does() {
    let expected = core(linkweir_core::policy("fifo").unwrap());
    assert!(expected.len() > 200);
    for trusted in [false, true] {
        let (order, served) = run(OLDEST, "oldest.c", trusted).unwrap();
        assert_eq!(order, expected, "trusted: {trusted}");
        let counted = |class| order.iter().filter(|served| **served == class).count() as i64;
        assert_eq!(served, [0, 1, 2].map(counted));
    }
}

#[test]
fn a_policy_of_the_core_is_such_a_file_as_it_is() {
    let source = include_str!("../../../core/src/rr.c");
    let expected = core(linkweir_core::policy("rr").unwrap());
    for trusted in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path(), "rr.c", source);
        let maker = c_policy(&file, source.as_bytes(), trusted).unwrap().maker;
        let mut mux = Mux::new(0, LINK_BPS, &limits(), |view| maker.start(view, &[], &[])).unwrap();
        assert_eq!(serve(&mut mux), expected);
    }
}

/// What is put where, and how the run then ends.
const FAULTS: [(&str, &str, &str); 18] = [
    (
        "/* in init */",
        "st->served[v->nqueues] = 1;",
        "init() at 0 s reached 1 byte behind the end of its state (24 bytes)",
    ),
    (
        "/* in pick */",
        "return 2;",
        "named queue 2, which is empty",
    ),
    (
        "/* in pick */",
        "return 7;",
        "named queue 7; there are 0 .. 2",
    ),
    (
        "/* in pick */",
        "return LW_NONE;",
        "named no queue and no time to ask again, though a packet of queue 0 waits",
    ),
    (
        "/* in pick */",
        "*retry_ns = v->now_ns; return LW_NONE;",
        "named no queue and a time to ask again that is not in the future",
    ),
    (
        "/* in pick */",
        "if (best == 2) for (;;) st->served[0]++;",
        "did not return within 1 s of processor time",
    ),
    (
        "/* in pick */",
        "if (best == 2) ((struct lw_queue *)v->queues)[0].head_bytes = 1;",
        "wrote to the queues of the view, which it may only read here",
    ),
    (
        "/* in pick */",
        "if (best == 2) best = *(volatile uint32_t *)(v->nqueues - 3);",
        "used a null pointer",
    ),
    (
        "/* in pick */",
        "static uint32_t calls; if (++calls % 2 && v->queues[0].backlog_pkts) return 0;",
        "gave two answers to the same question, asked twice with no event between",
    ),
    (
        "/* in sent */",
        "st->served[-1] = 1;",
        "sent() of queue 0 at 0.0000015 s wrote in front of its state",
    ),
    (
        "/* in sent */",
        "volatile int zero = (int)(q - 2); if (q == 2) zero = 100 / zero;",
        DIVIDED,
    ),
    (
        "/* in sent */",
        "if (q == 2) __builtin_trap();",
        "ran into code that is none",
    ),
    (
        "/* in observe */",
        "((struct state *)(uintptr_t)st)->served[q] = 9;",
        "wrote to its state, which it may only read here",
    ),
    (
        "/* in pick */",
        "if (best == 2) best = *(volatile uint32_t *)0xa5a5a5a5a5a5a5a5;",
        "followed a wild pointer",
    ),
    ("/* in sent */", "if (q == 2) exit(3);", "sent() of queue 2"),
    ("/* in sent */", "if (q == 2) exit(0);", "called exit()"),
    (
        "/* in pick */",
        "if (best == 2) _exit(3);",
        "or an event before it ended the process (exit status: 3)",
    ),
    (
        "/* in pick */",
        "if (best == 2 && getchar() == EOF) return 7;",
        "named queue 7; there are 0 .. 2",
    ),
];
const DIVIDED: &str = "divided by 0";

#[test]
fn a_call_that_sleeps_is_named_though_it_takes_no_processor_time() {
    let text = OLDEST.replace("/* in sent */", "if (q == 2) for (;;) sleep(9);");
    let found = run(&text, "oldest.c", false).unwrap_err();
    assert!(found.contains("sent() of queue 2"), "{found}");
    assert!(found.contains("did not return within 20 s"), "{found}");
}

#[test]
fn a_state_of_a_size_that_cannot_be_is_refused() {
    for size in ["0", "(size_t)n << 45", "(size_t)-1"] {
        let text = OLDEST.replace("return n * sizeof(uint64_t);", &format!("return {size};"));
        assert_ne!(text, OLDEST);
        for trusted in [false, true] {
            let found = run(&text, "oldest.c", trusted).unwrap_err();
            assert!(
                found.contains("state_size() must be 1 byte .. 1 GiB"),
                "{size}: {found}"
            );
        }
    }
}

#[test]
fn a_function_of_the_file_is_its_own_also_when_the_c_library_has_one_of_that_name() {
    let text = OLDEST
        .replace("static size_t state_size", "char *index(const char *text, int letter);\nchar *index(const char *text, int letter)\n{\n\treturn text == NULL && letter == 7 ? (char *)1 : NULL;\n}\n\nstatic size_t state_size")
        .replace("/* in pick */", "if (index(NULL, 7) == NULL) return 7;");
    for trusted in [false, true] {
        let (order, _) = run(&text, "oldest.c", trusted).unwrap();
        assert!(order.len() > 200);
    }
}

#[test]
fn the_file_is_compiled_as_it_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "oldest.c", "this is not C");
    let maker = c_policy(&file, OLDEST.as_bytes(), true).unwrap().maker;
    assert_eq!(maker.declaration().name, "oldest");
}

#[test]
fn answers_are_looked_at_where_a_file_is_trusted_too() {
    for (fault, expected) in [
        ("return 7;", "named queue 7; there are 0 .. 2"),
        ("return LW_NONE;", "named no queue and no time to ask again"),
    ] {
        let text = OLDEST.replace("/* in pick */", fault);
        let found = run(&text, "oldest.c", true).unwrap_err();
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn what_is_no_policy_is_refused_with_the_cure() {
    for (name, text, expected) in [
        (
            "Oldest.c",
            OLDEST,
            "the file's name is the policy's: use lower-case letters",
        ),
        (
            "other.c",
            OLDEST,
            "defines no policy: a file other.c has a table `const struct lw_policy lw_policy_other",
        ),
        (
            "oldest.c",
            &OLDEST.replace("return best", "return bset"),
            "does not compile:",
        ),
        (
            "oldest.c",
            &OLDEST.replace("return best", "return (uint32_t)helper()"),
            "helper",
        ),
        (
            "oldest.c",
            &OLDEST.replace("static size_t state_size", "double sqrt(double x);\nstatic volatile double two = 2;\nstatic size_t state_size").replace("/* in pick */", "if (sqrt(two) > 2) best = 0;"),
            "uses sqrt, which the file does not define; a policy computes with integers",
        ),
        (
            "oldest.c",
            &OLDEST.replace("#include <stdio.h>", "#include <stdbol.h>"),
            "does not compile:",
        ),
        (
            "oldest.c",
            "/* const struct lw_policy lw_policy_oldest comes soon */",
            "defines no policy: lw_policy_oldest must be a table",
        ),
        (
            "oldest.c",
            &OLDEST.replace(
                "const struct lw_policy lw",
                "static const struct lw_policy lw",
            ),
            "lw_policy_oldest",
        ),
    ] {
        let found = run(text, name, false).unwrap_err();
        assert!(found.contains(expected), "{name}: {found}");
    }
}

#[test]
fn a_warning_of_the_compiler_is_handed_on() {
    let folder = tempfile::tempdir().unwrap();
    let text = OLDEST.replace("/* in pick */", "int unused;");
    let file = written(folder.path(), "oldest.c", &text);
    let policy = c_policy(&file, text.as_bytes(), false).unwrap();
    assert!(policy.warnings.contains("oldest.c"), "{}", policy.warnings);
    assert!(policy.warnings.contains("unused"), "{}", policy.warnings);
}

#[test]
fn a_process_ends_with_its_policy() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "oldest.c", OLDEST);
    let maker = c_policy(&file, OLDEST.as_bytes(), false).unwrap().maker;
    let children = || fs::read_to_string(format!("/proc/self/task/{}/children", gettid())).unwrap();
    let before = children();
    let mux: Mux<_, ()> =
        Mux::new(0, LINK_BPS, &limits(), |view| maker.start(view, &[], &[])).unwrap();
    assert_ne!(children(), before);
    drop(mux);
    let deadline = Instant::now() + Duration::from_secs(10);
    while children() != before {
        assert!(Instant::now() < deadline, "a process is left");
    }
}

/// The number of this thread.
fn gettid() -> String {
    let link = fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_string_lossy().into_owned()
}

/// What `make check` leaves out.
mod slow {
    use super::*;

    #[test]
    fn what_breaks_the_contract_is_told_with_the_call() {
        for (place, fault, expected) in FAULTS {
            assert!(OLDEST.contains(place));
            if expected == DIVIDED && !cfg!(target_arch = "x86_64") {
                continue; // others give 0
            }
            let found = run(&OLDEST.replace(place, fault), "oldest.c", false).expect_err(fault);
            assert!(found.contains("oldest.c: "), "{fault}: {found}");
            assert!(found.contains(expected), "{fault}: {found}");
        }
    }

    #[test]
    fn a_table_against_the_contract_is_refused_before_anything_runs() {
        for (from, to, expected) in [
        (
            ".abi = LW_ABI",
            ".abi = 2",
            ".abi = 2; it must be LW_ABI, which is 3 here",
        ),
        (
            ".name = \"oldest\"",
            ".name = \"older\"",
            ".name must be \"oldest\", as the file is called",
        ),
        (
            "	.pick = pick,\n",
            "",
            "state_size, init and pick must not be NULL",
        ),
        (
            ".max_queues = LW_MAX_QUEUES",
            ".max_queues = 0",
            ".max_queues = 0; it must be 1 .. LW_MAX_QUEUES",
        ),
        (
            "	.observe = observe,\n",
            "",
            "nstats = 1 needs stats and observe",
        ),
        (
            ".name = \"served\"",
            ".name = \"Served!\"",
            "stats[0] needs a name",
        ),
        (
            ".unit = LW_PKTS",
            ".unit = LW_CHOICE",
            "stats[0] needs a name of lower-case letters, digits and _, and a unit, which is not LW_CHOICE",
        ),
        (
            "	.nstats = 1,\n",
            "	.nparams = 1,\n	.params = &(const struct lw_param){ .name = \"mode\", .help = \"m\", .unit = LW_CHOICE, .choices = \"a|b\", .max = 5, .def = 4 },\n	.nstats = 1,\n",
            "mode: min and max of a choice are 0 and 1, the places of \"a|b\"",
        ),
    ] {
        let text = OLDEST.replace(from, to);
        assert_ne!(text, OLDEST);
        for trusted in [false, true] {
            let found = run(&text, "oldest.c", trusted).unwrap_err();
            assert!(found.contains(expected), "{to}: {found}");
        }
    }
    }
}
