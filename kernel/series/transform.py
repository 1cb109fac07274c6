# SPDX-License-Identifier: GPL-2.0-only
"""Writes the algorithm of sch_pss.c from the sources of the core and of the module.

`algorithm()` takes single definitions from `core/` and `kernel/`, leaves out what only serves reproduction (`sat`,
`early`, `on_empty`, channels of classes), replaces the view of a data plane by fields of the state, and gives all of it
the kernel's types and the prefix pss_. Each edit names the text that it replaces and must find it once; otherwise the
sources have changed and `DriftError` says where. clang-format, with the kernel's own settings, lays it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class DriftError(Exception):
    """A source no longer contains what this script expects."""


@dataclass(frozen=True)
class Part:
    """A definition: the file, its name there, and edits (old, new) that each match once before all names change."""

    file: str
    name: str
    edits: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Own:
    """A definition that the core has in another form, because it may not allocate or call the kernel."""

    text: str


LEVELS_CLASH = """/*
 * The first class that has a level which an earlier one has, or its own other level; seen: a bit for each level, all 0.
 */
static bool pss_levels_clash(const struct pss_params *params, u32 n, unsigned long *seen, u32 *clash, bool *low)
{
	for (*clash = 0; *clash < n; (*clash)++) {
		const struct pss_params *row = params + *clash;

		*low = false;
		if (__test_and_set_bit(pss_level_of(row->level, *clash), seen))
			return true;
		*low = true;
		if (row->low_level != PSS_UNSET && __test_and_set_bit(row->low_level, seen))
			return true;
	}
	return false;
}
"""

MATH, RESERVE, PSS = "core/include/linkweir/math.h", "core/src/pss_reserve.h", "core/src/pss.c"
BITMAP, LEVELS = "core/src/bitmap.h", "core/src/levels.h"
MODULE, SHAPER = "kernel/linkweir.h", "kernel/shaper.c"

STATE = """\tuint8_t paper, reset, ignore;
\tuint8_t unused;
\tstruct lw_bitmap ready;         /* current ranks of the eligible queues */
"""
STATE_HERE = """\tstruct lw_bitmap ready;         /* current ranks of the backlogged queues */

\tuint64_t now_ns;                /* set before each call */
\tuint64_t capacity_bps;          /* of the link as last reported */
\tuint32_t nqueues;
\tstruct pss_queue *queues;
\tstruct pss_setting *settings;
\tuint32_t *holders;              /* the queue of a rank, two for each queue */
\tuint32_t *lows;                 /* the low queues, unordered */
"""
FLOOR_NS = "st->reset || level_ns > queue->resume_ns ? queue->resume_ns : level_ns"
IGNORE = """\tif (st->ignore) {                               /* the time that the last packet gained does not count */
\t\tqueue->tat_ns = lw_excess(queue->tat_ns, lw_excess(queue->mark_ns, now));
\t\tqueue->mark_ns = now + tx_ns;
\t\tst->review_ns = 0;
\t}
"""
RECEIVE = "\tstruct pss_state *st = (struct pss_state *)state;\n"
CLOCK = ("lw_clock(&st->seen_ns, v)", "pss_clock(st)")
EVENT = ("void *state, const struct lw_view *v", "struct pss_state *st")
OCCUPY = "struct linkweir_sched *s, u32 bytes, bool more"

PARTS = (
    Part(MATH, "lw_pace", (("\tuint32_t unused;                /* keeps the struct free of padding */\n", ""),)),
    Part(BITMAP, "LW_BITMAP_SIZE"),
    Part(LEVELS, "LW_MAX_LEVEL"),
    Part(RESERVE, "PSS_PPM"),
    Part(RESERVE, "PSS_MIN_RATE_BPS"),
    Part(RESERVE, "PSS_MAX_CREDIT_BITS"),
    Part(RESERVE, "PSS_MAX_LEVEL_NS"),
    Part(BITMAP, "lw_bitmap"),
    Part(RESERVE, "pss_reserve"),
    Part(PSS, "pss_setting", (("uint64_t value[PSS_NQPARAMS];", "struct pss_params set;"),)),
    Part(
        PSS,
        "pss_queue",
        (
            ("\tuint64_t mark_ns;               /* early=ignore: nominal end of the last packet; otherwise 0 */\n", ""),
            ("\tuint32_t unused;\n", "\tuint32_t qlen;                  /* packets */\n"),
        ),
    ),
    Part(PSS, "pss_state", ((STATE, STATE_HERE),)),
    Part(
        "core/src/view.h",
        "lw_clock",
        (
            ("uint64_t *seen_ns, const struct lw_view *v", "struct pss_state *st"),
            ("v->now_ns > *seen_ns", "v->now_ns > st->seen_ns"),
            ("*seen_ns = v->now_ns", "st->seen_ns = v->now_ns"),
            ("return *seen_ns", "return st->seen_ns"),
        ),
    ),
    Part(MATH, "lw_excess"),
    Part(
        MATH,
        "lw_pace_of",
        (
            (
                "\tpace.mult = LW_DIV64(bit_ns, rate_bps);\n\trest = LW_MOD64(bit_ns, rate_bps);\n",
                "\tpace.mult = div64_u64_rem(bit_ns, rate_bps, &rest);\n",
            ),
            ("{ 0, 0, 0 }", "{}"),
        ),
    ),
    Part(MATH, "lw_pace_ns"),
    Part(BITMAP, "lw_has_bit"),
    Part(BITMAP, "lw_with_bit"),
    Part(BITMAP, "lw_without_bit"),
    Part(BITMAP, "lw_bitmap_clear"),
    Part(BITMAP, "lw_bitmap_has"),
    Part(BITMAP, "lw_bitmap_add"),
    Part(BITMAP, "lw_bitmap_del"),
    Part(BITMAP, "lw_bitmap_empty"),
    Part(BITMAP, "lw_bitmap_first"),
    Part(LEVELS, "lw_level"),
    Own(LEVELS_CLASH),
    Part(RESERVE, "pss_rho_bps"),
    Part(RESERVE, "pss_gain_bits"),
    Part(RESERVE, "pss_derive"),
    Part(RESERVE, "pss_refuse"),
    Part(RESERVE, "pss_check_queue"),
    Part(
        PSS,
        "pss_check",
        (
            (
                "const struct lw_view *v, const uint64_t *params, const uint64_t *qparams, struct lw_fault *fault",
                "uint64_t link_bps, uint32_t nqueues, const struct pss_params *qparams, unsigned long *seen, "
                "struct lw_fault *fault",
            ),
            ("\tuint32_t q, column, nlevels = 0;\n\n\t(void)params;\n", "\tuint32_t q, nlevels = 0;\n\tbool low;\n\n"),
            ("!v->link_bps", "!link_bps"),
            ("row, v->link_bps, q", "row, link_bps, q"),
            ("q < v->nqueues", "q < nqueues"),
            (
                "lw_levels_clash(qparams, v->nqueues, PSS_NQPARAMS, PSS_LEVEL, PSS_LOW_LEVEL, &q, &column)",
                "pss_levels_clash(qparams, nqueues, seen, &q, &low)",
            ),
            ('column == PSS_LEVEL ? "level" : "low_level"', 'low ? "low_level" : "level"'),
        ),
    ),
    Part(PSS, "pss_time_of"),
    Part(PSS, "pss_set_constants", (("pss_derive(setting->value,", "pss_derive(&setting->set,"),)),
    Part(PSS, "pss_level", (("pss_origin(queue, now)", "now"),)),
    Part(
        PSS,
        "pss_floor",
        (
            ("const struct pss_state *st, const struct pss_queue *queue", "const struct pss_queue *queue"),
            (FLOOR_NS, "min(level_ns, queue->resume_ns)"),
        ),
    ),
    Part(
        PSS,
        "pss_due",
        (
            (
                "\tuint64_t due = lw_excess(queue->tat_ns, queue->resume_ns);\n\n"
                "\treturn due <= queue->mark_ns ? 0 : due;\n",
                "\treturn lw_excess(queue->tat_ns, queue->resume_ns);\n",
            ),
            (
                " With early=ignore the level does not\n"
                " * fall before the mark, so a queue that would be due by then is due at once.",
                "",
            ),
        ),
    ),
    Part(PSS, "pss_switch"),
    Part(PSS, "pss_sink"),
    Part(PSS, "pss_rise"),
    Part(PSS, "pss_review"),
    Part(PSS, "pss_cost_ns"),
    Part(PSS, "pss_add", ((", bool paper", ""), ("paper && tat > full ? full : tat", "tat"))),
    Part(PSS, "pss_rest", (("const struct pss_state *st, struct pss_queue *queue", "struct pss_queue *queue"),)),
    Part(PSS, "pss_charge", ((IGNORE, ""), ("now, full, st->paper)", "now, full)"))),
    Part(
        PSS,
        "pss_pick",
        (
            ("void *state, const struct lw_view *v, uint64_t *retry_ns", EVENT[1]),
            (RECEIVE, ""),
            CLOCK,
            ("lw_answer(LW_NONE, retry_ns)", "LW_NONE"),
            (
                "lw_answer(pss_holders(st, v->nqueues)[lw_bitmap_first(&st->ready)], retry_ns)",
                "st->holders[lw_bitmap_first(&st->ready)]",
            ),
        ),
    ),
    Part(
        PSS,
        "pss_enqueued",
        (
            EVENT,
            (", uint32_t bytes)", ")"),
            (RECEIVE, ""),
            CLOCK,
            ("\t(void)bytes;\n", ""),
            ("pss_origin(queue, now)", "now"),
            ("\tif (v->queues[q].rate_bps)\n\t\tlw_bitmap_add", "\tlw_bitmap_add"),
        ),
    ),
    Part(
        PSS,
        "pss_shrink",
        (("lw_eligible(v, q)", "queue->qlen"), ("queue->empty = !v->queues[q].backlog_pkts;", "queue->empty = 1;")),
    ),
    Part(PSS, "pss_settle", (("\tif (st->paper)\n\t\tpss_saturate(st, v, now);\n", ""),)),
    Part(PSS, "pss_sent", (EVENT, (RECEIVE, ""), CLOCK, (" || st->paper", ""))),
    Part(
        PSS,
        "pss_dropped",
        (
            EVENT,
            (", uint32_t bytes)", ")"),
            (RECEIVE, ""),
            CLOCK,
            ("\t(void)bytes;\n", ""),
        ),
    ),
    Part(PSS, "pss_stand", (("pss_origin(queue, now)", "now"),)),
    Part(PSS, "pss_carry"),
    Part(PSS, "pss_rebuild"),
    Part(PSS, "pss_key"),
    Part(
        PSS,
        "pss_keys",
        (
            (
                "lw_put(key, n++, pss_key(settings[q].value[PSS_LEVEL], 0, q))",
                "key[n++] = pss_key(settings[q].value[PSS_LEVEL], 0, q)",
            ),
            (
                "lw_put(key, n++, pss_key(settings[q].value[PSS_LOW_LEVEL], 1, q))",
                "key[n++] = pss_key(settings[q].value[PSS_LOW_LEVEL], 1, q)",
            ),
            ("lw_sort(key, n)", "sort(key, n, sizeof(*key), pss_cmp, NULL)"),
        ),
    ),
    Part(PSS, "pss_tell"),
    Part(PSS, "pss_rank"),
    Part(PSS, "pss_follow"),
    Part(
        PSS, "pss_begin", (("\tqueue->mark_ns = 0;                             /* of an earlier reservation */\n", ""),)
    ),
    Part(
        PSS,
        "pss_renew",
        (
            ("\tif (!st->ignore)\n\t\tqueue->mark_ns = 0;\n", ""),
            (
                "== LW_UNSET)\n\t\tqueue->controlled = queue->low = 0;\n\telse if (queue->controlled)\n",
                "== LW_UNSET) {\n\t\tqueue->controlled = 0;\n\t\tqueue->low = 0;\n\t} else if (queue->controlled) {\n",
            ),
            (
                "setting, renewed, now);\n\telse\n\t\tpss_begin(st, q, setting, LW_UNSET, now);\n",
                "setting, renewed, now);\n\t} else {\n\t\tpss_begin(st, q, setting, LW_UNSET, now);\n\t}\n",
            ),
            (" `renewed`: it is, or the rules for all queues are.", " `renewed`: it is."),
        ),
    ),
    Part(
        PSS,
        "pss_init",
        (
            (
                "void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams",
                "struct pss_state *st, const struct pss_params *qparams",
            ),
            (RECEIVE, ""),
            ("\tmemset(st, 0, sizeof(*st));\n\tst->seen_ns = v->now_ns;\n", "\tst->seen_ns = v->now_ns;\n"),
            ("\tpss_configure(st, v, params);\n", "\tpss_follow(st, v->link_bps);\n"),
            (
                "\t\tmemset(pss_queues(st) + q, 0, sizeof(struct pss_queue));\n",
                "\t\tst->queues[q] = (struct pss_queue){ .qlen = st->queues[q].qlen };\n",
            ),
            (
                "holders[2 * (size_t)q] = holders[2 * (size_t)q + 1] = lows[q] = 0;",
                "holders[2 * q] = 0;\n\t\tholders[2 * q + 1] = 0;\n\t\tlows[q] = 0;",
            ),
            (
                "memcpy(setting->value, qparams + (size_t)q * PSS_NQPARAMS, sizeof(setting->value));",
                "setting->set = qparams[q];",
            ),
        ),
    ),
    Part(
        PSS,
        "pss_change",
        (
            (
                "void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams",
                "struct pss_state *st, const struct pss_params *qparams",
            ),
            (RECEIVE, ""),
            CLOCK,
            ("\tbool rules = pss_configure(st, v, params);\n", ""),
            ("\tuint32_t q;\n\n", "\tuint32_t q;\n\n\tpss_follow(st, v->link_bps);\n"),
            (
                "rules || memcmp(setting->value, row, sizeof(setting->value)) != 0",
                "memcmp(&setting->set, row, sizeof(*row)) != 0",
            ),
            ("memcpy(setting->value, row, sizeof(setting->value));", "setting->set = *row;"),
        ),
    ),
    Part(PSS, "pss_rated", (EVENT, (RECEIVE, ""), CLOCK)),
    Part(
        PSS,
        "pss_observe",
        (
            (
                "const void *state, const struct lw_view *v, uint32_t q, int64_t *values",
                "const struct pss_state *st, uint32_t q, uint64_t *credit_bits",
            ),
            ("\tconst struct pss_state *st = (const struct pss_state *)state;\n", ""),
            ("(const struct pss_queue *)(st + 1) + q;", "st->queues + q;"),
            ("(const struct pss_setting *)((const struct pss_queue *)(st + 1) + v->nqueues) + q;", "st->settings + q;"),
            (
                "\tvalues[PSS_SEE_CREDIT] = (int64_t)(bits >> 63 ? UINT64_MAX >> 1 : bits);\n"
                "\tvalues[PSS_SEE_LOW] = queue->low;\n",
                "\t*credit_bits = min(bits, UINT64_MAX >> 1);\n",
            ),
        ),
    ),
    Part(MODULE, "LINKWEIR_LATE_NS"),
    Part(MODULE, "LINKWEIR_OWED_NS"),
    Part(MODULE, "LINKWEIR_SHORTER"),
    Part(MODULE, "linkweir_pace"),
    Part(
        MODULE,
        "linkweir_occupy",
        (
            (OCCUPY, "struct linkweir_pace *pace, u64 now_ns, u32 bytes, bool more"),
            ("\tstruct linkweir_pace *pace = &s->pace;\n", ""),
            ("s->view.now_ns", "now_ns"),
        ),
    ),
    Part(MODULE, "linkweir_rest_pace"),
    Part(
        SHAPER,
        "linkweir_set_bandwidth",
        (
            (
                "struct linkweir_sched *s, u64 bandwidth_bps",
                "struct linkweir_pace *pace, u64 now_ns, u64 bandwidth_bps",
            ),
            ("\tstruct linkweir_pace *pace = &s->pace;\n", ""),
            ("u64 now_ns = s->view.now_ns, left_ns;", "u64 left_ns;"),
            ("void linkweir_set_bandwidth", "static void linkweir_set_bandwidth"),
        ),
    ),
)

NAMES = (
    (r"\(size_t\)", ""),
    (r"pss_(queues|settings|holders|lows)\(st(?:, v->nqueues)?\)", r"st->\1"),
    (r"pss_(floor|rest)\(st, ", r"pss_\1("),
    (r"lw_eligible\(v, q\)", "st->queues[q].qlen"),
    (r"v->queues\[q\]\.backlog_pkts", "st->queues[q].qlen"),
    (r"v->link_bps", "st->capacity_bps"),
    (r"v->(now_ns|nqueues)", r"st->\1"),
    (r", const struct lw_view \*v", ""),
    (r"\bst, v\b", "st"),
    (r"\b(settings?)\[q\]\.value\[PSS_(\w+)\]", lambda m: f"{m[1]}[q].set.{m[2].lower()}"),
    (r"\bsetting->value\[PSS_(\w+)\]", lambda m: f"setting->set.{m[1].lower()}"),
    (r"\brow\[PSS_(\w+)\]", lambda m: f"row->{m[1].lower()}"),
    (r"const uint64_t \*row = qparams \+ q \* PSS_NQPARAMS", "const struct pss_params *row = qparams + q"),
    (r"const uint64_t \*row", "const struct pss_params *row"),
    (r"\(\(uint64_t\)1 << (\d+)\)", r"BIT_ULL(\1)"),
    (r"\(uint64_t\)1 <<", "1ULL <<"),
    (r"LW_CTZ64\(", "__ffs64("),
    (r"LW_NOINLINE", "noinline"),
    (
        r"LW_NEVER|LW_UNSET|LW_NONE",
        lambda m: {"LW_NEVER": "U64_MAX", "LW_UNSET": "PSS_UNSET", "LW_NONE": "PSS_NONE"}[m[0]],
    ),
    (r"PSS_SECOND_NS", "NSEC_PER_SEC"),
    (r"UINT(32|64)_MAX", r"U\1_MAX"),
    (r"\buint(8|16|32|64)_t\b", r"u\1"),
    (r"\b(\d+)ull\b", r"\1ULL"),
    (r"lw_level\(", "pss_level_of("),
    (r"LINKWEIR_", "PSS_"),
    (r"linkweir_rest_pace", "pss_rest_shaper"),
    (r"linkweir_pace", "pss_shaper"),
    (r"linkweir_", "pss_"),
    (r"\blw_", "pss_"),
    (r"\bLW_", "PSS_"),
    (r"static inline|static __always_inline", "static"),
)
"""Regular expressions that apply to all parts, in this order."""


def _comment_before(text: str, start: int) -> int:
    """Where the comment begins that ends on the line above `start`; `start` if there is none."""
    if not text[:start].endswith("*/\n"):
        return start
    return text.rfind("\n/*", 0, start) + 1


def _without_annotations(text: str) -> str:
    """Without ACSL, which the kernel does not use."""
    text = re.sub(r"^[ \t]*/\*@.*?\*/\n", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^[ \t]*//@.*\n", "", text, flags=re.MULTILINE)


def extract(text: str, name: str, file: str) -> str:
    """The definition of a macro, structure or function, with the comment above it.

    Raises:
        DriftError: there is none.
    """
    macro = re.search(rf"^#define {name}\b.*\n", text, re.MULTILINE)
    if macro:
        return macro[0]
    struct = re.search(rf"^struct {name} \{{\n.*?^\}};\n", text, re.MULTILINE | re.DOTALL)
    function = re.search(rf"^[a-z][^\n;=(]*\b\*?{name}\([^;{{]*\)\n\{{\n.*?^\}}\n", text, re.MULTILINE | re.DOTALL)
    found = struct or function
    if found is None:
        raise DriftError(f"{file} no longer defines {name}")
    return text[_comment_before(text, found.start()) : found.end()]


def edited(part: Part) -> str:
    """A part with its edits, not yet renamed."""
    text = extract(_without_annotations((ROOT / part.file).read_text()), part.name, part.file)
    for old, new in part.edits:
        if text.count(old) != 1:
            raise DriftError(f"{part.file}: {part.name} contains {text.count(old)} times, expected once:\n{old}")
        text = text.replace(old, new)
    return text


def renamed(text: str) -> str:
    for pattern, new in NAMES:
        text = re.sub(pattern, new, text)
    return _plain_refusals(text)


def _plain_refusals(text: str) -> str:
    """Texts of refusals: about classes, without the advice, because an acknowledgement holds 80 characters."""

    def shorter(match: re.Match[str]) -> str:
        return (
            match[0].replace("queue", "class")
            if ":" not in match[1]
            else f'"{match[1].split(":")[0]}"'.replace("queue", "class")
        )

    return re.sub(r'"([^"\n]{12,})"', shorter, text)


LEFTOVERS = re.compile(
    r"\bv->|\bLW_|\blw_|linkweir|\buint\d+_t|\bUINT\d+_MAX|mark_ns|st->(paper|ignore|reset)|"
    r"PSS_N?Q?PARAMS|qparams \+ q \*"
)


def fill(words: Iterable[str], width: int) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def _block(indent: str, text: str) -> str:
    """A comment, on one line if it fits."""
    text = " ".join(re.sub(r"^[ \t]*\*(?!/)", "", text, flags=re.MULTILINE).split())
    width = 80 - len(indent.expandtabs(8))
    if len(text) + 6 <= width:
        return f"{indent}/* {text} */\n"
    lines = "".join(f"{indent} * {line}\n" for line in fill(text.split(), width - 3))
    return f"{indent}/*\n{lines}{indent} */\n"


def wrap_comments(text: str) -> str:
    """Comments of at most 80 columns, each on lines of its own unless it fits behind the code."""
    out: list[str] = []
    lines = text.splitlines(keepends=True)
    i = 0
    while i < len(lines):
        line = lines[i]
        own = re.match(r"^([ \t]*)/\*", line)
        if own:
            block = line
            while "*/" not in block:
                i += 1
                block += lines[i]
            out.append(_block(own[1], block.strip()[2:-2]))
        elif behind := re.match(r"^([ \t]*)(\S.*?)[ \t]+/\* (.*) \*/\n$", line):
            short = f"{behind[1]}{behind[2]}\t/* {behind[3]} */\n"
            if len(short.rstrip().expandtabs(8)) <= 80 and not behind[2].startswith("}"):
                out.append(short)
            elif behind[2].startswith("}"):
                out.append(f"{behind[1]}{behind[2]}\n" + _block(behind[1] + "\t", behind[3]))
            else:
                out.append(_block(behind[1], behind[3]) + f"{behind[1]}{behind[2]}\n")
        else:
            out.append(line)
        i += 1
    return "".join(out)


def algorithm() -> str:
    """The whole, before clang-format.

    Raises:
        DriftError: a source no longer contains what an edit replaces, or something of the core's is left.
    """
    parts: list[str] = []
    for part in PARTS:
        if isinstance(part, Own):
            parts.append(wrap_comments(part.text))
            continue
        text = wrap_comments(renamed(edited(part)))
        left = LEFTOVERS.search(text)
        if left:
            line = next(line for line in text.splitlines() if left[0] in line)
            raise DriftError(f"{part.file}: {part.name}: {left[0]!r} has no form here: {line.strip()}")
        parts.append(text)
    joined = ""
    for before, after in zip(["", *parts], parts, strict=False):
        both_macros = before.startswith("#define") and after.startswith("#define")
        joined += after if both_macros or not joined else "\n" + after
    return joined
