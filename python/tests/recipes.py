# SPDX-License-Identifier: BSD-3-Clause
"""The changes of each recipe in CONTRIBUTING.md, for one example each: which files, and what is replaced by what.

test_recipes.py makes them in a copy of the repository and tests the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Edit:
    """A text that is in the file once, and the one that replaces it; or a new file, if there is no old text."""

    file: str
    old: str
    new: str

    def make(self, root: Path) -> None:
        """Makes the change in a copy of the repository."""
        path = root / self.file
        if self.old:
            before = path.read_text()
            assert before.count(self.old) == 1, (self.file, self.old)
            path.write_text(before.replace(self.old, self.new))
        else:
            assert not path.exists(), self.file
            path.write_text(self.new)


def behind(file: str, text: str, new: str) -> Edit:
    """Puts a text behind another one."""
    return Edit(file, text, text + new)


COLUMN = (
    behind(
        "crates/linkweir-sim/src/metrics/link.rs",
        "    .real(|link, bin| Some(link.carried / bin.span_s)),\n",
        """    bits_per_second("unused_bps", "Rate that it offered and did not carry.")
        .real(|link, bin| Some((link.offered - link.carried) / bin.span_s)),
""",
    ),
)
"""`unused_bps` of the table `link`."""

KEY = (
    behind(
        "crates/linkweir-sim/src/scenario/keys/link.rs",
        """            "propagation delay of acknowledgements; not with a satellite's delays";\n""",
        """        EXTRA_RETURN "extra_return": Whole { kind: Kind::Time, min: 0, max: limits::DELAY_NS }, usual(0), EXTRA,
            "delay of acknowledgements in addition to `return_delay`";
""",
    ),
    Edit(
        "crates/linkweir-sim/src/scenario/keys/link.rs",
        "/// A channel that only the simulator models.\n",
        """const EXTRA: Hosts = Hosts {
    laboratory: Refused("must be 0s in the laboratory"),
    gateway: LeftOut(REAL_LINK),
    tc: LeftOut(REAL_LINK),
    ns3: LeftOut(NOTHING_FOR_IT),
    bounds: Silent,
};
/// A channel that only the simulator models.
""",
    ),
    behind("crates/linkweir-sim/src/scenario/link.rs", "    BEAM, BURST, DELAY,", " EXTRA_RETURN,"),
    behind(
        "crates/linkweir-sim/src/scenario/link.rs",
        "delays(section, has_delays, source.delay_s, replaced)?;\n",
        "    let return_delay_ns = return_delay_ns + section.take(&EXTRA_RETURN)?;\n",
    ),
)
"""`link.extra_return`."""

SOURCE = (
    Edit(
        "crates/linkweir-sim/src/scenario/keys/kinds.rs",
        "keys! {\n    /// Bursts and silences.\n",
        """keys! {
    /// A packet at regular times.
    TICKS "flow.ticks" {
        TICKS_EVERY "every": Whole { kind: Kind::Time, min: 1_000, max: limits::DURATION_NS }, required("\\"1s\\""), WITH_ANOTHER,
            "time from packet to packet";
        TICKS_PACKET "packet": Special { shape: Shape::Packets(limits::PACKET_BYTES as u64) }, otherwise("`\\"1500B\\"`"), WITH_ANOTHER,
            "packet size";
    }
}

keys! {
    /// Bursts and silences.
""",
    ),
    behind(
        "crates/linkweir-sim/src/scenario/keys/sources.rs",
        '    Poisson "poisson" &kinds::POISSON, RANDOM_GAPS;\n',
        '    /// A packet at regular times.\n    Ticks "ticks" &kinds::TICKS, PACKET_TIMES;\n',
    ),
    Edit("crates/linkweir-sim/src/scenario/keys/mod.rs", "[&Table; 38]", "[&Table; 39]"),
    behind("crates/linkweir-sim/src/scenario/keys/mod.rs", "    &kinds::POISSON,\n", "    &kinds::TICKS,\n"),
    behind(
        "crates/linkweir-sim/src/experiment.rs",
        """    Poisson {
        /// bit/s.
        rate_bps: Signal,
        /// Packet sizes.
        packet: Sizes,
    },
""",
        """    /// A packet at regular times.
    Ticks {
        /// Time between packets, ns.
        every_ns: u64,
        /// Packet sizes.
        packet: Sizes,
    },
""",
    ),
    behind(
        "crates/linkweir-sim/src/scenario/traffic.rs",
        "TCP_WINDOW, TRANSFERS_CONCURRENT,",
        " TICKS_EVERY, TICKS_PACKET,",
    ),
    behind(
        "crates/linkweir-sim/src/scenario/traffic.rs",
        "        | Traffic::Poisson { packet, .. }\n",
        "        | Traffic::Ticks { packet, .. }\n",
    ),
    Edit(
        "crates/linkweir-sim/src/scenario/traffic.rs",
        "        Source::OnOff => on_off(section, path)?,\n",
        """        Source::Ticks => Traffic::Ticks {
            every_ns: section.demand(&TICKS_EVERY)?,
            packet: packet(section, TICKS_PACKET.name, path)?,
        },
        Source::OnOff => on_off(section, path)?,
""",
    ),
    behind(
        "crates/linkweir-sim/src/engine/build.rs",
        "        | Traffic::Poisson { packet, .. }\n",
        "        | Traffic::Ticks { packet, .. }\n",
    ),
    behind(
        "crates/linkweir-sim/src/engine/network/cut.rs",
        "        | Traffic::Poisson { rate_bps, packet } => Some((mean(rate_bps), bytes(packet))),\n",
        """        Traffic::Ticks { every_ns, packet } => {
            Some((8e9 * f64::from(bytes(packet)) / *every_ns as f64, bytes(packet)))
        }
""",
    ),
    behind(
        "crates/linkweir-sim/src/metrics/flow.rs",
        '            Traffic::Poisson { .. } => "poisson",\n',
        '            Traffic::Ticks { .. } => "ticks",\n',
    ),
    behind(
        "crates/linkweir-sim/src/metrics/watch.rs",
        "                | Traffic::Poisson { .. }\n",
        "                | Traffic::Ticks { .. }\n",
    ),
    Edit(
        "crates/linkweir-sim/src/traffic/open_loop.rs",
        """            Traffic::OnOff {
                rate_bps,
                on_ns,
""",
        """            Traffic::Ticks { every_ns, packet } => (
                Signal::Constant(8e9 * packet.mean_bytes() / *every_ns as f64),
                packet,
                Gaps::Regular,
            ),
            Traffic::OnOff {
                rate_bps,
                on_ns,
""",
    ),
    behind("python/linkweir/scenarios/kinds.py", 'OPEN_LOOP = ("cbr", "poisson",', ' "ticks",'),
    Edit(
        "docs/reference/scenarios.md",
        '### kind = "onoff"\n',
        '### kind = "ticks"\n\n<!-- keys: flow.ticks own -->\n\n| key | values | default | meaning |\n|---|---|---|---|\n\n'
        '<!-- end of keys -->\n\n### kind = "onoff"\n',
    ),
)
"""`kind = "ticks"`."""

PARAMETER = (
    behind(
        "core/src/rr.c",
        '#include "view.h"\n',
        "\nenum { RR_NEWCOMER, RR_NPARAMS };\nenum { RR_TAIL, RR_HEAD };\n",
    ),
    Edit("core/src/rr.c", "\tuint32_t unused;\n", "\tuint32_t newcomer;              /* RR_TAIL or RR_HEAD */\n"),
    behind(
        "core/src/rr.c",
        "\t\tlw_remove(links, &st->head, q);\n",
        "\tif (eligible && st->newcomer == RR_HEAD)\n\t\tst->head = q;          /* the list is circular */\n",
    ),
    Edit("core/src/rr.c", "\t(void)params, (void)qparams;\n", "\t(void)qparams;\n"),
    behind("core/src/rr.c", "\tmemset(st, 0, sizeof(*st));\n", "\tst->newcomer = (uint32_t)params[RR_NEWCOMER];\n"),
    Edit(
        "core/src/rr.c",
        "const struct lw_policy lw_policy_rr = {\n",
        "static const struct lw_param rr_params[RR_NPARAMS] = {\n"
        '\t{ "newcomer", "where a queue joins that becomes eligible", "tail|head",\n'
        "\t  RR_TAIL, RR_HEAD, RR_TAIL, LW_CHOICE, LW_AT_INIT },\n"
        "};\n\nconst struct lw_policy lw_policy_rr = {\n"
        "\t.nparams = RR_NPARAMS,\n"
        "\t.params = rr_params,\n",
    ),
    Edit("oracle/rr.py", "\nPARAMS = {}\n", '\nPARAMS = {"newcomer": "tail"}\n'),
    Edit(
        "oracle/rr.py",
        "        self.turn += [q for q in self.eligible() if q not in self.turn]\n",
        """        for q in self.eligible():
            if q not in self.turn:
                self.turn.insert(0 if self.params["newcomer"] == "head" else len(self.turn), q)
""",
    ),
    Edit(
        "vectors/rr/hand-newcomer.vec",
        "",
        """# Written by hand: newcomer=head. The queue that became eligible last is served first.
linkweir-vectors 1
policy rr
queues 3
link 8000000
set newcomer=head
at 0 init
at 0 enqueue 1 100
at 0 enqueue 1 100
at 0 enqueue 2 100
at 0 pick 2
at 0 send
at 0 pick 1
at 0 enqueue 0 100
at 0 pick 0
at 0 send
at 0 pick 1
at 0 send
""",
    ),
    behind(
        "docs/reference/policies/rr.md",
        "a queue that becomes empty or blocked leaves.",
        "\n\n**Parameter.** `newcomer`, `tail` or `head`: where a queue joins.",
    ),
)
"""`newcomer` of rr. The queue before which a newcomer is served becomes the second one."""

FORMAT = (
    Edit(
        "crates/linkweir-config/src/trace/kbit.rs",
        "",
        """// SPDX-License-Identifier: BSD-3-Clause
//! Rates in kbit/s, one per line, each for a second.

use crate::fault::Fault;
use crate::signal::{Capacity, Signal};
use crate::table::data_lines;
use crate::units::Decimal;

use super::described::Hints;
use super::file::Reader;
use super::format::{Format, TraceEnd};
use super::found::Trace;
use super::understood::Understood;

const SECOND_NS: u64 = 1_000_000_000;

impl Reader {
    pub(super) fn kbit(&self, text: &str, hints: &Hints) -> Result<Trace, Fault> {
        let mut points: Vec<(u64, f64)> = Vec::new();
        let mut end_ns = 0;
        for (line, field) in data_lines(text) {
            let rate = Decimal::parse(field.trim())
                .ok()
                .filter(|rate| !rate.is_negative())
                .ok_or_else(|| self.field_fault(line, "kbit", field, "must be a rate in kbit/s, 0 or more"))?;
            points.push((end_ns, rate.real() * 1000.0));
            end_ns += SECOND_NS;
        }
        if points.is_empty() {
            return Err(self.whole_fault("is empty; it must hold one rate in kbit/s per line"));
        }
        let end = hints.end.unwrap_or(TraceEnd::Hold);
        let capacity = Capacity::Rate(Signal::Steps {
            points: points.into(),
            end: self.after(end, Some(end_ns))?,
        });
        let understood = Understood {
            columns: "each line is a rate in kbit/s for a second".to_string(),
            length_ns: Some(end_ns),
            ..Understood::of(&capacity)
        };
        Ok(Trace {
            capacity,
            delay_s: None,
            loss: None,
            format: Format::Kbit,
            column: None,
            columns: None,
            end,
            hints: hints.clone(),
            understood,
            notes: Vec::new(),
        })
    }
}
""",
    ),
    behind(
        "crates/linkweir-config/src/trace/format.rs",
        "    /// Rates at a fixed interval, without times.\n    Rates,\n",
        "    /// Rates in kbit/s, one per second.\n    Kbit,\n",
    ),
    Edit("crates/linkweir-config/src/trace/format.rs", "NAMES: [&'static str; 7]", "NAMES: [&'static str; 8]"),
    behind("crates/linkweir-config/src/trace/format.rs", '"starlink", "rates",', ' "kbit",'),
    Edit("crates/linkweir-config/src/trace/format.rs", "ALL: [Format; 7]", "ALL: [Format; 8]"),
    behind("crates/linkweir-config/src/trace/format.rs", "        Format::Rates,\n", "        Format::Kbit,\n"),
    behind("crates/linkweir-config/src/trace/mod.rs", "mod found;\n", "mod kbit;\n"),
    behind(
        "crates/linkweir-config/src/trace/mod.rs",
        "        Format::Mahimahi => reader.mahimahi(text, hints),\n",
        "        Format::Kbit => reader.kbit(text, hints),\n",
    ),
    behind(
        "docs/reference/scenarios.md",
        "needs `trace_interval` and a unit |",
        "\n| **kbit** | rates in kbit/s, one per line, each for a second; it needs `trace_format` |",
    ),
)
"""`trace_format = "kbit"`."""

PAGE = (
    Edit("docs/howto/recipe.md", "", "# Try a recipe\n\nSee [terms](../reference/terms.md).\n"),
    behind(
        "docs/README.md",
        "* [Choose a policy](howto/choose.md); [the policies](reference/policies), a page each",
        "\n* [Try a recipe](howto/recipe.md)",
    ),
)
"""A how-to."""

RECIPES = {
    "A column of a table": COLUMN,
    "A key of `[link]`": KEY,
    "A traffic source": SOURCE,
    "A parameter of a policy": PARAMETER,
    "A trace format": FORMAT,
    "A page": PAGE,
}
"""By their headings in CONTRIBUTING.md."""
