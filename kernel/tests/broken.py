# SPDX-License-Identifier: GPL-2.0-only
"""Breaks the module on purpose, one line at a time, and checks that the suite notices.

    python3 broken.py RELEASE [NAME...]
    python3 broken.py RELEASE --debug kasan|kcsan --headers FOLDER --image FILE [NAME...]

Each mutant is the module with one text replaced, run with the script that must fail. The unchanged module must pass
those scripts first. This program fails if a mutant passes or does not build, or if its text is no longer found.
With --debug these are the mutants that only such a kernel notices for sure.

A NAME is that of a mutant, or of a script for all mutants that it must notice. Results are kept in
build/broken/noticed.json, so that an interrupted run can continue; they are valid while the module, the suite and the
kernel stay the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
FACTS = ("bounds", "choices", "defaults", "kinds")


@dataclass(frozen=True)
class Mutant:
    """One line of the module made wrong.

    Attributes:
        name: what is wrong.
        file: file of the staged tree.
        old: text, found once.
        new: what it becomes.
        script: guest script that must fail.
        on: the kernel, `stock` or a debug kernel.
        sign: what the failure must contain, a regular expression.
        facts: `NAME=VALUE` for the guest script, where its usual length is too short for this fault.
    """

    name: str
    file: str
    old: str
    new: str
    script: str
    on: str = "stock"
    sign: str = ""
    facts: tuple[str, ...] = ()


LONGER = ("parents=root htb", "stress_messages=2000")
"""More messages below fewer parents: the stress shows a race by chance only."""

MUTANTS = (
    Mutant(
        "parents get no report at enqueue",
        "plane.h",
        "linkweir_tell_parents(sch);\n\tlinkweir_compat_arrived(&s->late);",
        "s->gone_pkts = 0, s->gone_bytes = 0;",
        "conserve",
    ),
    Mutant(
        "parents get no report of drops when leaving",
        "drop.c",
        "if (known) {",
        "if (known && to_free) {",
        "conserve",
    ),
    Mutant(
        "a new packet that parents never counted is reported as gone",
        "drop.c",
        "u32 fresh = q == s->arriving ? s->stay : 0;",
        "u32 fresh = 0;",
        "conserve",
    ),
    Mutant("parents count a super-packet twice", "plane.h", "+ !!s->stay;", ";", "classify"),
    Mutant(
        "success for a packet that was dropped",
        "plane.h",
        "return s->stay ? NET_XMIT_SUCCESS : NET_XMIT_DROP;",
        "return NET_XMIT_SUCCESS;",
        "conserve",
    ),
    Mutant(
        "the new packet is dropped instead of the victim",
        "drop.c",
        "u32 q = victim & ~LW_FROM_HEAD;",
        "u32 q = s->arriving;",
        "change",
    ),
    Mutant("a bound in bytes is not kept", "linkweir.h", "<= class->limit_bytes;", "<= U64_MAX;", "conserve"),
    Mutant("no expired packet is dropped to make room", "drop.c", "|| !s->policy->expired)", "|| true)", "conserve"),
    Mutant("leaving is not judged", "plane.h", "if (likely(verdict != LW_DROP))", "if (true)", "conserve"),
    Mutant(
        "a change initialises the policy again",
        "qdisc.c",
        "policy->change(s->state, &s->view,",
        "policy->init(s->state, &s->view,",
        "change",
    ),
    Mutant(
        "a changed limit does not count",
        "qdisc.c",
        "linkweir_limits(s, set);\n\tlinkweir_shape(s, set);\n\tlinkweir_wake",
        "linkweir_shape(s, set);\n\tlinkweir_wake",
        "change",
    ),
    Mutant(
        "a reset initialises the policy again",
        "qdisc.c",
        "\tlinkweir_compat_late_reset(&s->late);\n",
        "\tlinkweir_begin(sch);\n",
        "carrier",
    ),
    Mutant(
        "a policy learns nothing of packets that a reset drops",
        "qdisc.c",
        "if (s->policy->dropped)\n\t\t\ts->policy->dropped(s->state, &s->view, q, bytes);",
        "",
        "carrier",
    ),
    Mutant(
        "the next packet begins when the timer woke us",
        "linkweir.h",
        "begin_ns = pace->free_ns;",
        "begin_ns = s->view.now_ns;",
        "shaper",
    ),
    Mutant(
        "a packet on the link takes as long after a change of the bandwidth",
        "shaper.c",
        "pace->free_ns = now_ns + min(left_ns, LW_MAX_NOW_NS);",
        "",
        "shaper",
    ),
    Mutant("a bandwidth is not the link's rate", "netlink.c", "set->link_bps = set->bandwidth_bps;", "", "shaper"),
    Mutant(
        "an unblocked class is not asked again",
        "qdisc.c",
        "linkweir_wake(sch, s->view.now_ns);     /* a class",
        "/* a class",
        "conserve",
    ),
    Mutant(
        "a child that dropped all it had is not asked again",
        "qdisc.c",
        "\t\tretry_ns = s->view.now_ns;",
        "\t\tretry_ns = LW_NEVER;",
        "conserve",
    ),
    Mutant("super-packets are not split", "plane.h", "unlikely(skb_is_gso(skb)) &&", "0 &&", "classify"),
    Mutant("no-split-gso does not count", "plane.h", "!READ_ONCE(s->whole)", "1", "classify"),
    Mutant(
        "a queue sends what belongs to another",
        "mq_plane.h",
        "linkweir_cb(s->classes[q].waiting.next)->txq == mine->index",
        "true",
        "queues",
    ),
    Mutant("the queue that is next is not scheduled", "mq_turn.c", "__netif_schedule(queue);", ";", "queues"),
    Mutant("packets of a queue that is reset stay", "mq.c", "linkweir_drop_waiting(sch, mine->index);", "", "queues"),
    Mutant(
        "a queue below mq is left out of what is reserved",
        "shaper.c",
        "if (txq == mine ||",
        "if (1 || txq == mine ||",
        "queues",
    ),
    Mutant("a lower limit drops nothing", "qdisc.c", "\tlinkweir_shed(sch);\n\treturn", "\treturn", "change"),
    Mutant(
        "packets of classes that are gone are not reported",
        "qdisc.c",
        "qdisc_tree_reduce_backlog(sch, pkts - sch->q.qlen, bytes - sch->qstats.backlog);",
        "(void)pkts, (void)bytes;",
        "change",
    ),
    Mutant("memory is not counted", "plane.h", "s->memory_bytes += skb->truesize;", ";", "change"),
    Mutant(
        "code points are shifted",
        "classify.h",
        "set->class_of[dsfield >> 2]",
        "set->class_of[dsfield >> 3]",
        "classify",
    ),
    Mutant(
        "code points keep their class when the default changes",
        "netlink.c",
        "\t\tset->class_of[i] = ",
        "\t\tif (!set->class_of[i])\n\t\t\tset->class_of[i] = ",
        "classify",
    ),
    Mutant(
        "IPv6 is taken for IPv4",
        "classify.c",
        "ipv6_get_dsfield(ipv6_hdr(skb)) : -1;",
        "ipv4_get_dsfield(ip_hdr(skb)) : -1;",
        "classify",
    ),
    Mutant("a filter's class is not looked at", "classify.c", "if (action >= 0 && q < nclasses)", "if (0)", "classify"),
    Mutant(
        "the priority is not looked at",
        "classify.c",
        "if (TC_H_MAJ(skb->priority) == sch->handle) {",
        "if (0) {",
        "classify",
    ),
    Mutant("drops are not reported to a policy", "drop.c", "if (s->policy->dropped)", "if (0)", "record"),
    Mutant(
        "the view does not show the next head packet",
        "linkweir.h",
        "if (--queue->backlog_pkts) {",
        "if (--queue->backlog_pkts && !sch) {",
        "record",
    ),
    Mutant(
        "a wrong length is reported to a policy",
        "plane.h",
        "sent(s->state, &s->view, q, bytes)",
        "sent(s->state, &s->view, q, 64)",
        "record",
    ),
    Mutant(
        "the other end of a queue is dropped",
        "drop.c",
        "victim & LW_FROM_HEAD, L",
        "!(victim & LW_FROM_HEAD), L",
        "record",
    ),
    Mutant(
        "a range is one too wide",
        "netlink.c",
        "if (value >= field->min && value <= field->max)",
        "if (value >= field->min && value <= field->max + 1)",
        "rows",
    ),
    Mutant("rules across parameters are not asked", "netlink.c", "if (!s->policy->check ||", "if (true ||", "rows"),
    Mutant(
        "a refused change leaves its first half",
        "netlink.c",
        "set->params = (u64 *)(set + 1);",
        "set->params = old ? old->params : (u64 *)(set + 1);",
        "rows",
    ),
    Mutant("a name is not needed", "netlink.c", "if (!tb[TCA_LINKWEIR_PARAM_NAME] ||", "if (", "malformed"),
    Mutant(
        "netlink's own text is kept",
        "netlink.c",
        "\tif (err)\n\t\tlinkweir_malformed(",
        "\tif (0)\n\t\tlinkweir_malformed(",
        "malformed",
    ),
    Mutant(
        "the attribute at fault is not pointed at",
        "netlink.c",
        "NL_SET_BAD_ATTR(extack, attr ? attr : nest);",
        "NL_SET_BAD_ATTR(extack, NULL);",
        "malformed",
    ),
    Mutant(
        "a vector expects another answer", "vectors.txt", "at 803444691486 pick none", "at 803444691486 pick 0", "rows"
    ),
    Mutant(
        "a vector has a line that is too long to read",
        "vectors.txt",
        "at 803444691486 pick none",
        "at 803444691486 pick none" + " " * 500,
        "rows",
    ),
    Mutant("drops by a filter are not counted as such", "plane.h", "s->filtered_pkts++;", "", "classify"),
    Mutant("split failures count as no room", "plane.h", "[LINKWEIR_SPLIT]", "[LINKWEIR_LIMIT]", "classify"),
    Mutant(
        "a drop when leaving has no reason",
        "drop.c",
        "qdisc_dequeue_drop(sch, skb, linkweir_kernel_reasons[reason])",
        "kfree_skb(skb)",
        "record",
    ),
    Mutant(
        "the pieces of a super-packet are not reported",
        "plane.h",
        "pkts - (int)sch->q.qlen + !!s->stay;",
        "0;",
        "stress",
    ),
    Mutant(
        "what is dropped to make room is not counted",
        "drop.c",
        "\tqdisc_qstats_drop(sch);\n\tif (reason",
        "\tif (reason",
        "stress",
    ),
    Mutant("the classes of a qdisc are not freed", "qdisc.c", "\tkvfree(arrays->class_memory);\n", "", "stress"),
    Mutant(
        "a packet that is dropped is not freed",
        "drop.c",
        "\t\t__qdisc_drop(skb, to_free);\n\t} else {",
        "\t\tskb->next = NULL;\n\t} else {",
        "stress",
    ),
    Mutant(
        "settings are used after they are freed",
        "qdisc.c",
        "kvfree(old);  ",
        "kvfree(set);  ",
        "stress",
        "kasan",
        "KASAN: .*use-after-free",
    ),
    Mutant(
        "a packet is read after it was dropped",
        "drop.c",
        "qdisc_dequeue_drop(sch, skb, linkweir_kernel_reasons[reason]);",
        "qdisc_dequeue_drop(sch, skb, linkweir_kernel_reasons[reason]), bytes += 0 * READ_ONCE(skb->len);",
        "conserve",
        "kasan",
        "KASAN: .*use-after-free",
    ),
    Mutant(
        "the lock is taken without regard to interrupts",
        "qdisc.c",
        "static int linkweir_dump_stats(",
        "#define sch_tree_lock(sch) spin_lock(qdisc_root_sleeping_lock(sch))\n"
        "#define sch_tree_unlock(sch) spin_unlock(qdisc_root_sleeping_lock(sch))\nstatic int linkweir_dump_stats(",
        "stress",
        "kasan",
        "inconsistent lock state",
    ),
    Mutant(
        "memory is asked for while the lock is held",
        "qdisc.c",
        "\tsch_tree_lock(sch);\n\tlinkweir_clock(s);\n\tif (arrays.state)",
        "\tsch_tree_lock(sch);\n\tkfree(kmalloc(64, GFP_KERNEL));\n\tlinkweir_clock(s);\n\tif (arrays.state)",
        "stress",
        "kcsan",
        "sleeping function called from invalid context",
    ),
    Mutant(
        "counters are read without the lock",
        "qdisc.c",
        "static int linkweir_dump_stats(",
        "#define sch_tree_lock(sch) local_bh_disable()\n#define sch_tree_unlock(sch) local_bh_enable()\n"
        "static int linkweir_dump_stats(",
        "stress",
        "kcsan",
        "KCSAN: data-race in .*linkweir_(class_)?dump_stats",
        LONGER,
    ),
    Mutant(
        "settings change without the lock",
        "qdisc.c",
        "/* Puts new settings in force",
        "#define sch_tree_lock(sch) local_bh_disable()\n#define sch_tree_unlock(sch) local_bh_enable()\n/* Puts",
        "stress",
        "kcsan",
        "KCSAN: data-race in .*linkweir_(apply|renew|rates|limits|shape)|unable to handle",
        LONGER,
    ),
    Mutant(
        "a policy picks the last instead of the first",
        "core/bitmap.h",
        "LW_CTZ64(set->summary)",
        "63 - LW_CLZ64(set->summary)",
        "rows",
    ),
)


@dataclass(frozen=True)
class Kernel:
    """What mutants run on.

    Attributes:
        release: of an installed kernel, or a name.
        headers: what modules are built against.
        image: of a debug kernel; Debian's of that release if None.
    """

    release: str
    headers: Path
    image: Path | None


def build(kernel: Kernel, mutant: Mutant | None) -> Path:
    """Builds the module with one mutant, or unchanged if there is none."""
    tree = BUILD / (f"broken-{kernel.release}" if kernel.image else "broken")
    tree.mkdir(parents=True, exist_ok=True)
    for source in (BUILD / "tree").rglob("*"):  # by content: an interrupted run may have left a fault
        target = tree / source.relative_to(BUILD / "tree")
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
    for stale in (path for path in tree.glob("kind_*.c") if not (BUILD / "tree" / path.name).exists()):
        stale.unlink()  # of a kind that an earlier tree had; Kbuild takes all that are there
    if mutant:
        text = (tree / mutant.file).read_text()
        if (found := text.count(mutant.old)) != 1:
            sys.exit(f"broken: {mutant.name}: {mutant.file} has this {found} times instead of once: {mutant.old}")
        (tree / mutant.file).write_text(text.replace(mutant.old, mutant.new))
    (tree / "sch_linkweir.ko").unlink(missing_ok=True)
    command = ["make", "-s", "-C", str(kernel.headers), f"M={tree}", "modules"]
    done = subprocess.run(command, capture_output=True, text=True)
    if mutant:
        shutil.copyfile(BUILD / "tree" / mutant.file, tree / mutant.file)
    if done.returncode:
        sys.exit(f"broken: {mutant.name if mutant else 'no fault'}: does not build: {done.stderr}")
    return tree / "sch_linkweir.ko"


def run(
    kernel: Kernel, module: Path, scripts: list[str], sign: str = "", facts: tuple[str, ...] = ()
) -> tuple[int, str]:
    """Runs the suite with `facts` on a module: the exit code, and the first failure that contains `sign`.

    Code 1 is a failed check or replay, or for `stress` and debug kernels, which look for crashes, also a complaint of
    the kernel. Code 2 is a guest that ended without any, which proves nothing.
    """
    command = [sys.executable, str(HERE / "run.py"), "--kernel", kernel.release, "--module", str(module)]
    command += ["--plugins", str(BUILD / "tc"), "--log", f"broken-{kernel.release}", "--checks", "first", *scripts]
    command += ["--processors", "4"] if scripts == ["stress"] else []
    command += ["--image", str(kernel.image)] if kernel.image else []
    command += ["--until", sign] if sign else []
    command += [word for fact in facts for word in ("--set", fact)]
    done = subprocess.run(command, capture_output=True, text=True)
    output = [line for line in done.stdout.splitlines() if " replayed: " not in line]
    crashes = scripts == ["stress"] or kernel.image
    failed = [
        line
        for line in output
        if (": not ok - " in line and "the guest did not end" not in line)
        or ": replay of " in line
        or (crashes and re.search(r": kernel log: .*(BUG|WARNING|Oops|fault|lock state)", line))
    ]
    signed = [line for line in failed if re.search(sign, line)]
    code = 2 if done.returncode == 1 and not signed else done.returncode
    return code, (signed or failed or output or [done.stderr.strip()])[0]


def digest(kernel: Kernel, mutants: list[Mutant], fault: bool) -> str:
    """A hash of everything that a result depends on: of a mutant, or of the unchanged module in the scripts of all."""
    image = [str(kernel.image), str(kernel.image.stat().st_mtime)] if kernel.image else []
    parts = [kernel.release, *image, repr(mutants[0]) if fault else repr(None)]
    scripts = {mutant.script for mutant in mutants}
    guest = [HERE / "guest/init", *(HERE / f"guest/{script}.sh" for script in {"checks", *scripts})]
    files = [*(BUILD / "tree").rglob("*"), *guest, *HERE.glob("*.[ch]"), HERE / "run.py", HERE / "trace_vectors.py"]
    files += [*(BUILD / "tc").glob("*.so"), *(BUILD / f"{facts}.txt" for facts in FACTS)]
    parts += [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files) if path.is_file()]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def chosen(names: list[str], on: str) -> list[Mutant]:
    """The mutants of such a kernel: all, or those of the names of mutants and scripts."""
    mutants = [mutant for mutant in MUTANTS if mutant.on == on]
    for name in names:
        if not any(name in (mutant.name, mutant.script) for mutant in mutants):
            sys.exit(f"broken: no fault for a {on} kernel and no script is called {name!r}; see {__file__}")
    return [mutant for mutant in mutants if not names or {mutant.name, mutant.script} & {*names}]


def main() -> int:
    parser = argparse.ArgumentParser(description="Breaks the module on purpose and checks that the suite notices.")
    parser.add_argument("release")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutants or guest scripts; all unless given")
    parser.add_argument("--debug", default="stock", choices=("kasan", "kcsan"), help="the mutants of such a kernel")
    parser.add_argument("--headers", type=Path, help="what its modules are built against")
    parser.add_argument("--image", type=Path, help="its image")
    args = parser.parse_args()
    kernel = Kernel(args.release, args.headers or Path(f"/lib/modules/{args.release}/build"), args.image)
    mutants = chosen(args.names, args.debug)
    (BUILD / "broken").mkdir(parents=True, exist_ok=True)
    store = BUILD / "broken" / "noticed.json"
    known: dict[str, str] = json.loads(store.read_text()) if store.exists() else {}

    def keep(key: str, first_line: str) -> None:
        known[key] = first_line
        store.write_text(json.dumps(known, indent=1))

    if (key := digest(kernel, mutants, fault=False)) not in known:
        module = build(kernel, None)
        scripts = list(dict.fromkeys(mutant.script for mutant in mutants))
        others = [script for script in scripts if script != "stress"]
        for several in filter(None, (others, ["stress"] if "stress" in scripts else [])):
            code, first_line = run(kernel, module, several)
            if code:
                sys.exit(f"broken: without any fault: {first_line}")
        keep(key, first_line)
    noticed = 0
    for mutant in mutants:
        key = digest(kernel, [mutant], fault=True)
        if (first_line := known.get(key, "")) != "":
            code = 1
        else:
            code, first_line = run(kernel, build(kernel, mutant), [mutant.script], mutant.sign, mutant.facts)
        if code == 1:
            keep(key, first_line)
            noticed += 1
        print(f"{'noticed' if code == 1 else 'NOT NOTICED'}: {mutant.name}: {first_line}", flush=True)
    print(f"{noticed} of {len(mutants)} faults noticed")
    return 0 if noticed == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
