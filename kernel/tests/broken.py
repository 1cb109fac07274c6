# SPDX-License-Identifier: GPL-2.0-only
"""Breaks the module on purpose, one line at a time, and checks that the suite notices.

    python3 broken.py RELEASE [NAME...]

Each mutant is the module with one text replaced, run with the script that must fail. The unchanged module must pass
those scripts first. This program fails if a mutant passes or does not build, or if its text is no longer found.

Results are kept in build/broken/noticed.json, so that an interrupted run can continue; they are valid while the module,
the suite and the kernel stay the same.
"""

from __future__ import annotations

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
    """

    name: str
    file: str
    old: str
    new: str
    script: str


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
    Mutant("the queue that is next is not scheduled", "mq.c", "__netif_schedule(queue);", ";", "queues"),
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
        "s->gone_pkts += pkts - sch->q.qlen;",
        "",
        "change",
    ),
    Mutant("memory is not counted", "plane.h", "s->memory_bytes += skb->truesize;", ";", "change"),
    Mutant(
        "code points are shifted",
        "classify.h",
        "set->number_of[dsfield >> 2]",
        "set->number_of[dsfield >> 3]",
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
        "if (--queue->backlog_pkts && !head) {",
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
    Mutant("a drop when leaving has no reason", "drop.c", "linkweir_compat_drop(skb)", "kfree_skb(skb)", "record"),
    Mutant(
        "the lock is not taken",
        "qdisc.c",
        "/* Puts new settings in force",
        "#define sch_tree_lock(sch) local_bh_disable()\n#define sch_tree_unlock(sch) local_bh_enable()\n/* Puts",
        "stress",
    ),
    Mutant("the classes of a qdisc are not freed", "qdisc.c", "\tkvfree(s->classes);\n", "", "stress"),
    Mutant(
        "a packet that is dropped is not freed",
        "drop.c",
        "\tif (to_free)\n\t\t__qdisc_drop(skb, to_free);\n",
        "\tif (to_free)\n\t\tskb->next = NULL;\n",
        "stress",
    ),
    Mutant(
        "a policy picks the last instead of the first",
        "core/bitmap.h",
        "LW_CTZ64(set->summary)",
        "63 - LW_CLZ64(set->summary)",
        "rows",
    ),
)


def build(release: str, mutant: Mutant | None) -> Path:
    """Builds the module with one mutant, or unchanged if there is none."""
    tree = BUILD / "broken"
    for source in (BUILD / "tree").rglob("*"):  # by content: an interrupted run may have left a fault
        target = tree / source.relative_to(BUILD / "tree")
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
    if mutant:
        text = (tree / mutant.file).read_text()
        if (found := text.count(mutant.old)) != 1:
            sys.exit(f"broken: {mutant.name}: {mutant.file} has this {found} times instead of once: {mutant.old}")
        (tree / mutant.file).write_text(text.replace(mutant.old, mutant.new))
    (tree / "sch_linkweir.ko").unlink(missing_ok=True)
    command = ["make", "-s", "-C", f"/lib/modules/{release}/build", f"M={tree}", "modules"]
    done = subprocess.run(command, capture_output=True, text=True)
    if mutant:
        shutil.copyfile(BUILD / "tree" / mutant.file, tree / mutant.file)
    if done.returncode:
        sys.exit(f"broken: {mutant.name if mutant else 'no fault'}: does not build: {done.stderr}")
    return tree / "sch_linkweir.ko"


def run(release: str, module: Path, scripts: list[str]) -> tuple[int, str]:
    """Runs the suite on a module: the exit code, and the first failure.

    Code 1 is a failed check or replay, or for `stress`, which looks for crashes, also a complaint of the kernel. Code 2 is
    a guest that ended without any, which proves nothing.
    """
    command = [sys.executable, str(HERE / "run.py"), "--kernel", release, "--module", str(module)]
    command += ["--plugins", str(BUILD / "tc"), "--log", "broken", "--checks", "first", *scripts]
    command += ["--processors", "4"] if scripts == ["stress"] else []
    done = subprocess.run(command, capture_output=True, text=True)
    output = [line for line in done.stdout.splitlines() if " replayed: " not in line]
    failed = [
        line
        for line in output
        if (": not ok - " in line and "the guest did not end" not in line)
        or ": replay of " in line
        or (scripts == ["stress"] and re.search(r": kernel log: .*(BUG|WARNING|Oops|fault)", line))
    ]
    code = 2 if done.returncode == 1 and not failed else done.returncode
    return code, (failed or output or [done.stderr.strip()])[0]


def digest(release: str, mutant: Mutant | None) -> str:
    """A hash of everything that a result depends on."""
    parts = [release, repr(mutant)]
    scripts = {mutant.script} if mutant else {other.script for other in MUTANTS}
    guest = [HERE / "guest/init", *(HERE / f"guest/{script}.sh" for script in {"checks", *scripts})]
    files = [*(BUILD / "tree").rglob("*"), *guest, *HERE.glob("*.[ch]"), HERE / "run.py", HERE / "trace_vectors.py"]
    files += [*(BUILD / "tc").glob("*.so"), *(BUILD / f"{facts}.txt" for facts in FACTS)]
    parts += [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files) if path.is_file()]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def main() -> int:
    release, names = sys.argv[1], sys.argv[2:]
    mutants = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    (BUILD / "broken").mkdir(parents=True, exist_ok=True)
    store = BUILD / "broken" / "noticed.json"
    known: dict[str, str] = json.loads(store.read_text()) if store.exists() else {}

    def keep(mutant: Mutant | None, first_line: str) -> None:
        known[digest(release, mutant)] = first_line
        store.write_text(json.dumps(known, indent=1))

    if digest(release, None) not in known:
        modules = build(release, None)
        scripts = list(dict.fromkeys(mutant.script for mutant in MUTANTS if mutant.script != "stress"))
        for several in (scripts, ["stress"]):
            code, first_line = run(release, modules, several)
            if code:
                sys.exit(f"broken: without any fault: {first_line}")
        keep(None, first_line)
    noticed = 0
    for mutant in mutants:
        if (first_line := known.get(digest(release, mutant), "")) != "":
            code = 1
        else:
            code, first_line = run(release, build(release, mutant), [mutant.script])
        if code == 1:
            keep(mutant, first_line)
            noticed += 1
        print(f"{'noticed' if code == 1 else 'NOT NOTICED'}: {mutant.name}: {first_line}", flush=True)
    print(f"{noticed} of {len(mutants)} faults noticed")
    return 0 if noticed == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
