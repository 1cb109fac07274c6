# SPDX-License-Identifier: GPL-2.0-only
"""The files of the series: those it adds, and its lines in files that the kernel and iproute2 have."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from facts import FIXED, OF_CLASS, UNSET, Attribute, parameters
from transform import algorithm, fill
from vectors import vectors

HERE = Path(__file__).parent

Text = dict[str, str]
"""Paths in a tree, and contents."""


def _words(attribute: Attribute) -> str:
    """What an attribute means, about classes and without the hint what 0 or unset stands for."""
    return attribute.help.split(";")[0].replace("queue", "class")


def _comment(attribute: Attribute) -> str:
    return {
        "flag": "flag",
        "bps": "u64, bit/s",
        "ns": "u64, ns",
        "bits": "u64, bits",
        "ppm": "u32, parts per million",
    }.get(
        attribute.unit,
        "u32, bytes" if attribute.unit == "bytes" else "u32, packets" if attribute.unit == "packets" else "u32",
    )


def _ceiling(attribute: Attribute) -> str:
    for bits in (60, 20):
        if attribute.high == 1 << bits:
            return f"1ULL << {bits}"
    return f"{attribute.high}{'ULL' if attribute.high >= 2**32 else ''}"


# The kernel's headers


def uapi(params: Iterable[Attribute]) -> str:
    """The part of include/uapi/linux/pkt_sched.h."""

    def members(prefix: str, attributes: Iterable[Attribute]) -> str:
        return "".join(f"\t{prefix}_{a.symbol},\t/* {_comment(a)} */\n" for a in attributes)

    return (
        "/* PSS */\n\n#define TC_PSS_MAX_CLASSES 4096\n\n"
        "enum {\n\tTCA_PSS_UNSPEC,\n\tTCA_PSS_PAD,\n"
        + members("TCA_PSS", FIXED)
        + "\tTCA_PSS_CLASS,\t/* nested TCA_PSS_CLASS_*, one for each class */\n\t__TCA_PSS_MAX\n};\n\n"
        "#define TCA_PSS_MAX (__TCA_PSS_MAX - 1)\n\n"
        "enum {\n\tTCA_PSS_CLASS_UNSPEC,\n\tTCA_PSS_CLASS_PAD,\n"
        + members("TCA_PSS_CLASS", [*OF_CLASS, *params])
        + "\t__TCA_PSS_CLASS_MAX\n};\n\n"
        "#define TCA_PSS_CLASS_MAX (__TCA_PSS_CLASS_MAX - 1)\n\n"
        "struct tc_pss_xstats {\n"
        "\t__u64 credit;\t/* bits sent ahead of the reserved rate */\n"
        "\t__u32 low;\t/* 1: the class is at its low level */\n"
        "\t__u32 pad;\n};\n\n"
    )


# net/sched


def _range(attribute: Attribute, prefix: str) -> str:
    name = f"pss_{prefix}{attribute.name}_range"
    values = f"\t.min = {attribute.low},\n\t.max = {_ceiling(attribute)},\n"
    return f"static const struct netlink_range_validation {name} = {{\n{values}}};\n"


def _policy(attribute: Attribute, prefix: str) -> str:
    name = f"TCA_PSS_{prefix.upper()}{attribute.symbol}"
    if attribute.unit == "flag":
        return f"\t[{name}] = {{ .type = NLA_FLAG }},\n"
    return f"\t[{name}] =\n\t\tNLA_POLICY_FULL_RANGE(NLA_U{attribute.bits}, &pss_{prefix}{attribute.name}_range),\n"


def qdisc(params: list[Attribute], settings: Path | None) -> str:
    """net/sched/sch_pss.c; `settings`: the kernel's .clang-format, without which the layout stays the core's."""
    defaults = ",\n".join(f"\t.{p.name} = {'PSS_UNSET' if p.default == UNSET else p.default}" for p in params)
    filled = {
        "FIELDS": "\n".join(f"\tu64 {p.name};" for p in params),
        "ALGORITHM": laid_out(algorithm(), settings) if settings else algorithm(),
        "RANGES": "\n".join(_range(a, "") for a in FIXED)
        + "\n"
        + "\n".join(_range(a, "class_") for a in [*OF_CLASS, *params] if a.bits)
        + f"\nstatic const struct pss_params pss_default_params = {{\n{defaults},\n}};",
        "POLICY": "".join(_policy(a, "") for a in FIXED).rstrip("\n"),
        "CLASS_POLICY": "".join(_policy(a, "class_") for a in [*OF_CLASS, *params]).rstrip("\n"),
        "SET_CLASS": "\n".join(
            f"\tif (tb[TCA_PSS_CLASS_{p.symbol}])\n"
            f"\t\tparams->{p.name} = nla_get_u{p.bits}(tb[TCA_PSS_CLASS_{p.symbol}]);"
            for p in params
        ),
        "PUT_CLASS": " ||\n".join(
            f"\t    pss_put_u{p.bits}(skb, TCA_PSS_CLASS_{p.symbol}, params->{p.name})" for p in params
        ),
    }
    return replaced((HERE / "kernel/sch_pss.c").read_text(), filled)


def replaced(text: str, filled: Text) -> str:
    for name, value in filled.items():
        text = text.replace(f"@{name}@", value)
    left = re.search(r"@[A-Z_]+@", text)
    if left:
        raise ValueError(f"{left[0]} has no value")
    return text


def laid_out(text: str, settings: Path) -> str:
    """By clang-format, with the kernel's settings, except that a text may reach beyond column 80.

    Otherwise lines would end in an open parenthesis.
    """
    chosen = settings.read_text()
    for penalty, value in {"PenaltyBreakBeforeFirstCallParameter": 1000, "PenaltyExcessCharacter": 20}.items():
        chosen, found = re.subn(rf"^{penalty}: .*$", f"{penalty}: {value}", chosen, flags=re.MULTILINE)
        if not found:
            raise ValueError(f"{settings} has no {penalty}")
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / ".clang-format"
        own.write_text(chosen)
        command = ["clang-format", f"--style=file:{own}", "--assume-filename=sch_pss.c"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def test(params: list[Attribute]) -> str:
    """net/sched/sch_pss_test.c."""
    fields = "\n".join(
        f'\t{{ "{p.name}", offsetof(struct pss_params, {p.name}),\n\t  TCA_PSS_CLASS_{p.symbol} }},' for p in params
    )
    return replaced((HERE / "kernel/sch_pss_test.c").read_text(), {"FIELDS": fields})


def vector_header() -> str:
    """net/sched/sch_pss_vectors.h: each vector as an array of lines."""
    out = ["/* SPDX-License-Identifier: GPL-2.0-only */\n/* Lives of a scheduler, for sch_pss_test.c. */\n"]
    found = vectors()
    for name, text in found.items():
        out.append(f"\nstatic const char *const {name.replace('-', '_')}[] = {{\n")
        out += [f"\t{json.dumps(line)},\n" for line in text.splitlines()]
        out.append("};\n")
    out.append("\nstatic const struct pss_vector pss_vectors[] = {\n")
    for name in found:
        symbol = name.replace("-", "_")
        out.append(f'\t{{ "{symbol}", {symbol},\n\t  ARRAY_SIZE({symbol}) }},\n')
    return "".join(out) + "};\n"


# Documentation/netlink/specs/tc.yaml


def _yaml_attribute(attribute: Attribute) -> str:
    lines = fill(_words(attribute).split(), 64)
    doc = "\n".join([f"        doc: {lines[0]}", *(f"             {line}" for line in lines[1:])]).replace(
        ": ", ": ", 1
    )
    kind = f"u{attribute.bits}" if attribute.bits else "flag"
    text = f"      -\n        name: {attribute.name.replace('_', '-')}\n        type: {kind}\n"
    checks = f"        checks:\n          min: {attribute.low}\n          max: {attribute.high}\n"
    return text + doc + "\n" + (checks if attribute.bits else "")


def _yaml_set(name: str, attributes: Iterable[Attribute], more: str = "") -> str:
    body = "".join(map(_yaml_attribute, attributes))
    pad = "      -\n        name: pad\n        type: pad\n"
    return f"  -\n    name: {name}-attrs\n    name-prefix: tca-{name}-\n    attributes:\n{pad}{body}{more}"


def yaml_sets(params: list[Attribute]) -> str:
    words = ["name: class", "type: nest", "nested-attributes: pss-class-attrs", "multi-attr: true"]
    nest = "      -\n" + "".join(f"        {word}\n" for word in words)
    return _yaml_set("pss", FIXED, nest) + _yaml_set("pss-class", [*OF_CLASS, *params])


YAML_XSTATS = """  -
    name: tc-pss-xstats
    type: struct
    members:
      -
        name: credit
        type: u64
        doc: Bits sent ahead of the reserved rate
      -
        name: low
        type: u32
        doc: Whether the class is at its low level
      -
        name: pad
        type: u32
"""

# Files that exist


def _before(text: str, mark: str, added: str, last: bool = False) -> str:
    at = text.rfind(mark) if last else text.find(mark)
    if at < 0:
        raise ValueError(f"{mark.strip()!r} is not there")
    return text[:at] + added + text[at:]


def _after(text: str, mark: str, added: str) -> str:
    at = text.rfind(mark)
    if at < 0:
        raise ValueError(f"{mark.strip()!r} is not there")
    end = at + len(mark)
    return text[:end] + added + text[end:]


def _message(text: str, section: str) -> str:
    """A line of a sub-message `section`, of which `text` has one."""
    begin = text.index(f"    name: {section}\n")
    return text[begin:]


def yaml(text: str, params: list[Attribute]) -> str:
    text = _before(text, "  -\n    name: tc-red-xstats\n", YAML_XSTATS)
    text = _before(text, "  -\n    name: qfq-attrs\n", yaml_sets(params))
    begin = text.index("    name: tca-stats-app-msg\n")
    options, stats = text[:begin], text[begin:]
    options = _before(
        options,
        "      -\n        value: qfq\n",
        "      -\n        value: pss\n        attribute-set: pss-attrs\n",
        True,
    )
    stats = _before(
        stats, "      -\n        value: red\n", "      -\n        value: pss\n        fixed-header: tc-pss-xstats\n"
    )
    return options + stats


LACKING = re.compile(
    r"\b(dscp|limit_bytes|memlimit|no-split-gso|overhead|mpu|atm|ptm|preset|unlimited)\b|qdisc change [^\"]*\bclasses\b"
)
"""What pss of kernel/ has and sch_pss.c has not."""


def cases() -> str:
    """The cases of tdc for kernel/'s pss that use nothing that is left out."""
    found = json.loads((HERE.parent / "tests/tdc/pss.json").read_text())
    kept = [case for case in found if not LACKING.search(json.dumps(case))]
    return json.dumps(kept, indent=4) + "\n"


MAINTAINERS = """PRIORITY SWITCHING SCHEDULER (PSS)
M:\t@AUTHOR@
L:\tnetdev@vger.kernel.org
S:\tMaintained
F:\tnet/sched/sch_pss.c

"""


def _covers(text: str, files: str, after: str) -> str:
    """Adds files to the entry."""
    return _after(text, f"F:\t{after}\n", f"F:\t{files}\n")


def _maintainers(text: str, author: str) -> str:
    """Between its neighbours in the alphabet."""
    title = MAINTAINERS.split("\n")[0]
    entries = list(re.finditer(r"^([A-Z0-9][A-Z0-9 /().,&+-]*)\n[A-Z]:\t", text, re.MULTILINE))
    before = max((entry for entry in entries if entry[1] < title), key=lambda entry: entry[1])
    at = text.index("\n\n", before.start()) + 2
    return text[:at] + MAINTAINERS.replace("@AUTHOR@", author) + text[at:]


Edit = Callable[[str], str]


def kernel_patches(settings: Path, author: str) -> list[tuple[str, Text, dict[str, Edit]]]:
    """For each patch its name, the files it adds, and its edits of existing files or of those added before."""
    params = parameters()
    code = qdisc(params, settings)
    included = (HERE / "kernel/test_included.c").read_text()
    testing = "tools/testing/selftests/tc-testing"
    return [
        (
            "qdisc",
            {"net/sched/sch_pss.c": code},
            {
                "include/uapi/linux/pkt_sched.h": lambda t: _before(t, "#endif", uapi(params), True),
                "net/sched/Kconfig": lambda t: _before(
                    t, "menuconfig NET_SCH_DEFAULT", (HERE / "kernel/Kconfig").read_text()
                ),
                "net/sched/Makefile": lambda t: _after(
                    t,
                    "obj-$(CONFIG_NET_SCH_DUALPI2)	+= sch_dualpi2.o\n",
                    "obj-$(CONFIG_NET_SCH_PSS)	+= sch_pss.o\n",
                ),
                "MAINTAINERS": lambda t: _maintainers(t, author),
            },
        ),
        (
            "kunit",
            {"net/sched/sch_pss_test.c": test(params), "net/sched/sch_pss_vectors.h": vector_header()},
            {
                "net/sched/sch_pss.c": lambda t: t + included,
                "MAINTAINERS": lambda t: t.replace("F:\tnet/sched/sch_pss.c\n", "F:\tnet/sched/sch_pss*\n"),
                "net/sched/Kconfig": lambda t: _before(
                    t, "menuconfig NET_SCH_DEFAULT", (HERE / "kernel/Kconfig.test").read_text()
                ),
            },
        ),
        ("ynl", {}, {"Documentation/netlink/specs/tc.yaml": lambda t: yaml(t, params)}),
        (
            "tdc",
            {f"{testing}/tc-tests/qdiscs/pss.json": cases()},
            {
                "MAINTAINERS": lambda t: _covers(t, f"{testing}/tc-tests/qdiscs/pss.json", "net/sched/sch_pss*"),
                f"{testing}/config": lambda t: _after(t, "CONFIG_NET_SCH_PRIO=m\n", "CONFIG_NET_SCH_PSS=m\n"),
                f"{testing}/tdc.sh": lambda t: _after(t, "try_modprobe sch_htb\n", "try_modprobe sch_pss\n"),
            },
        ),
    ]


def _row(attribute: Attribute, prefix: str) -> str:
    return f'"{attribute.name}", TCA_PSS_{prefix}{attribute.symbol}, PSS_{attribute.unit.upper()}'


def iproute2_patches(tree: Path) -> list[tuple[str, Text, dict[str, Edit]]]:
    """As kernel_patches(), for the tree of iproute2 of any version since 6.1."""
    params = parameters()
    filled = {
        "PARAMETERS": "\n".join(f"\t{{ {_row(p, 'CLASS_')} }}," for p in [OF_CLASS[2], *params]),
        **{a.symbol: _row(a, "") for a in FIXED if a.name in ("link", "bandwidth")},
    }
    code = replaced((HERE / "iproute2/q_pss.c").read_text(), filled)
    if "const struct qdisc_util *qu" not in (tree / "tc/tc_util.h").read_text():  # before 6.9
        code = code.replace("const struct qdisc_util *qu", "struct qdisc_util *qu")
    return [
        (
            "tc",
            {"tc/q_pss.c": code, "man/man8/tc-pss.8": (HERE / "iproute2/tc-pss.8").read_text()},
            {
                "tc/Makefile": lambda t: _after(t, "TCMODULES += q_prio.o\n", "TCMODULES += q_pss.o\n"),
                "include/uapi/linux/pkt_sched.h": lambda t: _before(t, "#endif", uapi(params), True),
            },
        )
    ]
