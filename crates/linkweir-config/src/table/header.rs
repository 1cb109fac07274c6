// SPDX-License-Identifier: BSD-3-Clause
//! What the names of columns say: whether numbers are rates, times, delays or losses, and in which unit. A name says a unit
//! only by a word of its own: `submbit_id` says none, and `rx_mbit_peak` is no rate over time.

/// What a name says of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    /// A unit, as in quantities: `Mbit`, or `kB` for kB/s.
    Is(&'static str),
    /// Bits or bytes: it says one of these.
    Unclear([&'static str; 2]),
    /// Nothing.
    Missing,
}

/// Words by which a column is no rate of its line: it counts, sums up or is a statistic over more than the line.
const NO_RATE: [&str; 24] = [
    "id",
    "ids",
    "index",
    "no",
    "peak",
    "max",
    "maximum",
    "min",
    "minimum",
    "std",
    "stdev",
    "stddev",
    "dev",
    "var",
    "variance",
    "total",
    "totals",
    "cum",
    "cumulative",
    "sum",
    "acc",
    "accumulated",
    "count",
    "limit",
];
/// Words in front of `mbit` that do not change what it is.
const DIRECTIONS: [&str; 8] = ["dl", "ul", "down", "up", "rx", "tx", "download", "upload"];
const SECONDS: [&str; 5] = ["s", "sec", "second", "seconds", "per"];

/// The words of a name: letters and digits, cut where a small letter is followed by a capital.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        // Not before the B of `kBps`: cut there, it would say bytes instead of kilobytes.
        let starts =
            before.is_lowercase() && letter.is_uppercase() && !(before == 'k' && letter == 'B');
        if !letter.is_alphanumeric() || starts {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            if let Some(word) = words.last_mut() {
                word.push(letter);
            }
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether the words of a name exclude that it is a rate.
pub fn is_no_rate(name: &str) -> bool {
    words(name)
        .iter()
        .any(|word| NO_RATE.contains(&word.to_lowercase().as_str()))
}

/// The unit of a rate that a name states.
pub fn rate_unit(name: &str) -> RateUnit {
    let words = words(name);
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map(|next| next.to_lowercase());
        let per_second = next.is_some_and(|next| SECONDS.contains(&next.as_str()));
        let found = unit_word(word, per_second);
        if found != RateUnit::Missing {
            return found;
        }
    }
    RateUnit::Missing
}

fn unit_word(word: &str, per_second: bool) -> RateUnit {
    const BITS: [&str; 4] = ["bit", "kbit", "Mbit", "Gbit"];
    const BYTES: [&str; 4] = ["B", "kB", "MB", "GB"];
    let small = word.to_lowercase();
    let bare = DIRECTIONS
        .iter()
        .find_map(|direction| small.strip_prefix(direction))
        .filter(|rest| rest.ends_with("bit"))
        .unwrap_or(&small);
    let prefixed = |rest: &str| match rest {
        "" => Some(0),
        "k" | "kilo" => Some(1),
        "m" | "mega" => Some(2),
        "g" | "giga" => Some(3),
        _ => None,
    };
    let bits = bare.strip_suffix("bit").or(bare.strip_suffix("bits"));
    if let Some(scale) = bits.and_then(prefixed) {
        if scale > 0 || per_second {
            return RateUnit::Is(BITS[scale]);
        }
    }
    let bytes = bare.strip_suffix("byte").or(bare.strip_suffix("bytes"));
    if let (Some(scale), true) = (bytes.and_then(prefixed), per_second) {
        return RateUnit::Is(BYTES[scale]);
    }
    if let Some(scale) = small.strip_suffix("bps").and_then(prefixed) {
        // 'b' is bits and 'B' bytes, unless all letters are capitals.
        let letters = &word[word.len() - 3..];
        return match letters {
            "bps" => RateUnit::Is(BITS[scale]),
            "Bps" => RateUnit::Is(BYTES[scale]),
            _ => RateUnit::Unclear([BITS[scale], BYTES[scale]]),
        };
    }
    if let (Some(scale), true) = (
        word.strip_suffix('B')
            .and_then(|rest| prefixed(&rest.to_lowercase())),
        per_second,
    ) {
        return RateUnit::Is(BYTES[scale]);
    }
    RateUnit::Missing
}

/// The unit of times that a name states: `s`, `ms`, `us`, `ns`, `min` or `h`.
pub fn time_unit(name: &str) -> Option<&'static str> {
    words(name).iter().rev().find_map(|word| time_word(word))
}

fn time_word(word: &str) -> Option<&'static str> {
    Some(match word.to_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "ms" | "msec" | "msecs" | "millis" | "milliseconds" => "ms",
        "us" | "usec" | "usecs" | "micros" | "microseconds" => "us",
        "ns" | "nsec" | "nanos" | "nanoseconds" => "ns",
        _ => return None,
    })
}

/// Whether a name is that of a column of times.
pub fn is_time(name: &str) -> bool {
    const TIMES: [&str; 13] = [
        "t",
        "time",
        "timestamp",
        "ts",
        "datetime",
        "date",
        "epoch",
        "elapsed",
        "unix",
        "utc",
        "when",
        "stamp",
        "start",
    ];
    let words = words(name);
    let named = words
        .iter()
        .filter(|word| TIMES.contains(&word.to_lowercase().as_str()))
        .count();
    let units = words
        .iter()
        .filter(|word| time_word(word).is_some())
        .count();
    !words.is_empty()
        && named + units == words.len()
        && (named > 0 || words.len() == 1 && words[0].len() > 2)
}

/// The unit of losses that a name states: `%`.
pub fn loss_unit(name: &str) -> Option<&'static str> {
    let is_percent =
        |word: &String| ["pct", "percent", "percentage"].contains(&word.to_lowercase().as_str());
    (name.contains('%') || words(name).iter().any(is_percent)).then_some("%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_state_their_units_by_whole_words() {
        use RateUnit::{Is, Missing, Unclear};
        for (name, expected) in [
            ("dl_mbit", Is("Mbit")),
            ("DL_KBIT", Is("kbit")),
            ("dlmbit", Is("Mbit")),
            ("dl_mbps", Is("Mbit")),
            ("downloadMbps", Is("Mbit")),
            ("c_bps", Is("bit")),
            ("rate_Bps", Is("B")),
            ("rate_MBps", Is("MB")),
            ("kBps", Is("kB")),
            ("rxkBps", Missing),
            ("RATE_MBPS", Unclear(["Mbit", "MB"])),
            ("Rate (Mbit/s)", Is("Mbit")),
            ("Rate [MB/s]", Is("MB")),
            ("bits_per_second", Is("bit")),
            ("bytes_per_sec", Is("B")),
            ("DL_bitrate", Missing),
            ("submbit_id", Missing),
            ("bytes", Missing),
            ("bits", Missing),
            ("MB", Missing),
            ("RSRP", Missing),
            ("GB", Missing),
        ] {
            assert_eq!(rate_unit(name), expected, "{name}");
        }
        for name in [
            "submbit_id",
            "rx_mbit_peak",
            "total_mbit",
            "mbit_cumulative",
        ] {
            assert!(is_no_rate(name), "{name}");
        }
        assert!(!is_no_rate("dl_mbit") && !is_no_rate("video_mbit"));
    }

    #[test]
    fn names_of_times_and_losses() {
        for (name, is, unit) in [
            ("t_s", true, Some("s")),
            ("Timestamp", true, None),
            ("time_ms", true, Some("ms")),
            ("Time (s)", true, Some("s")),
            ("seconds", true, Some("s")),
            ("s", false, Some("s")),
            ("uptime", false, None),
            ("rtt_ms", false, Some("ms")),
        ] {
            assert_eq!((is_time(name), time_unit(name)), (is, unit), "{name}");
        }
        assert_eq!(loss_unit("loss (%)"), Some("%"));
        assert_eq!(loss_unit("loss"), None);
    }
}
