// SPDX-License-Identifier: BSD-3-Clause
//! Keys that describe a trace, of scenarios and of gateways.

use crate::keys;
use crate::keys::form::{Special, Text, Whole, Words};
use crate::keys::Treatment::{Carried, Silent};
use crate::keys::{Hosts, Shape};
use crate::limits;
use crate::table::Dates;
use crate::units::Kind;

use super::choices::{Covers, EarlierTimes, EqualTimes, Gap};
use super::format::{Format, TraceEnd};

/// What describes a trace goes with the trace.
const OF_A_TRACE: Hosts = Hosts {
    laboratory: Carried,
    gateway: Silent,
    tc: Silent,
    ns3: Silent,
    bounds: Carried,
};

keys! {
    /// Keys that describe a trace.
    DESCRIBED "trace" {
        FORMAT "trace_format": Words { of: &Format::CHOICES }, otherwise("auto"), OF_A_TRACE,
            "format of the trace; auto recognises it by its content";
        COLUMN "trace_column": Text { what: "text" }, otherwise("the first that fits, see [traces](#traces)"), OF_A_TRACE,
            "column of an mbit, iperf3 or starlink trace";
        COLUMNS "columns": Special { shape: Shape::Columns }, otherwise("none"), OF_A_TRACE,
            "columns of a csv or rates trace, see [traces](#traces)";
        END "end": Words { of: &TraceEnd::NAMES }, otherwise("as the trace says, else hold"), OF_A_TRACE,
            "what happens after the last line of the trace";
        UNIT "trace_unit": Text { what: "text" }, otherwise("as the header or `columns` say"), OF_A_TRACE,
            "unit of the trace's capacities: bit, kbit, Mbit, Gbit, or B, kB, MB, GB for bytes per second";
        INTERVAL "trace_interval": Whole { kind: Kind::Time, min: 1, max: limits::DURATION_NS }, otherwise("none"), OF_A_TRACE,
            "time from line to line of a rates trace, which has no times", values "time";
        DECIMAL "decimal": Words { of: &[".", ","] }, otherwise("as the trace's numbers show"), OF_A_TRACE,
            "mark in front of decimals, \".\" or \",\"", values "text";
        ZONE "zone": Text { what: "text" }, otherwise("UTC"), OF_A_TRACE,
            "zone of the trace's times that name none, such as Europe/Paris";
        DATES "dates": Words { of: &Dates::NAMES }, otherwise("none"), OF_A_TRACE,
            "order of dates like 31/1/2026";
        COVERS "covers": Words { of: Covers::NAMES }, otherwise("after"), OF_A_TRACE,
            "whether the value of a line counts for the time after the line or before it, see [which interval](#which-interval-a-value-belongs-to)";
        EQUAL_TIMES "equal_times": Words { of: EqualTimes::NAMES }, otherwise("refuse"), OF_A_TRACE,
            "lines with the same time: refuse them, take the last, their mean or their sum, or spread them evenly until the next time";
        EARLIER_TIMES "earlier_times": Words { of: EarlierTimes::NAMES }, otherwise("refuse"), OF_A_TRACE,
            "a line earlier than the one before: refuse it, begin another recording there, sort all lines, or leave the line out";
        GAP "gap": Words { of: Gap::NAMES }, otherwise("hold, with a note"), OF_A_TRACE,
            "the capacity in a time without lines that is longer than three times the usual interval";
    }
}
