// SPDX-License-Identifier: BSD-3-Clause
//! Quantities as people write them, `20Mbit` or `1.5s`, and back.
//!
//! Decimals are kept exact until the very end: `13.2Mbit` is the number of bit/s nearest to 13 200 000, never 13.2 times
//! something, and what [`show_real`] and [`show_whole`] write reads back as the same value.

/// The kind of a quantity. Each has one base unit, in which all numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// bit/s.
    Rate,
    /// ns.
    Time,
    /// s; the same notation as [`Kind::Time`], for values that need not be whole nanoseconds.
    Seconds,
    /// bytes.
    Size,
    /// bit.
    Bits,
    /// packets.
    Packets,
    /// A pure ratio: `0.25` or `25%`.
    Fraction,
    /// symbols per second.
    SymbolRate,
}

/// A suffix: how many base units it is, as `factor * 10^exponent`.
struct Unit {
    suffix: &'static str,
    factor: u32,
    exponent: i32,
}

const fn unit(suffix: &'static str, factor: u32, exponent: i32) -> Unit {
    Unit {
        suffix,
        factor,
        exponent,
    }
}

/// Largest first: the order in which [`show`] tries them.
const BIT_UNITS: &[Unit] = &[
    unit("Gbit", 1, 9),
    unit("Mbit", 1, 6),
    unit("kbit", 1, 3),
    unit("bit", 1, 0),
];
const NS_UNITS: &[Unit] = &[
    unit("s", 1, 9),
    unit("ms", 1, 6),
    unit("us", 1, 3),
    unit("ns", 1, 0),
    unit("min", 60, 9),
    unit("h", 3600, 9),
];
const S_UNITS: &[Unit] = &[
    unit("s", 1, 0),
    unit("ms", 1, -3),
    unit("us", 1, -6),
    unit("ns", 1, -9),
    unit("min", 60, 0),
    unit("h", 3600, 0),
];
const BYTE_UNITS: &[Unit] = &[
    unit("GB", 1, 9),
    unit("MB", 1, 6),
    unit("kB", 1, 3),
    unit("B", 1, 0),
    unit("KiB", 1 << 10, 0),
    unit("MiB", 1 << 20, 0),
    unit("GiB", 1 << 30, 0),
];
const PACKET_UNITS: &[Unit] = &[unit("p", 1, 0)];
const SYMBOL_UNITS: &[Unit] = &[
    unit("GBd", 1, 9),
    unit("MBd", 1, 6),
    unit("kBd", 1, 3),
    unit("Bd", 1, 0),
];
const FRACTION_UNITS: &[Unit] = &[unit("%", 1, -2)];

impl Kind {
    fn units(self) -> &'static [Unit] {
        match self {
            Kind::Rate | Kind::Bits => BIT_UNITS,
            Kind::Time => NS_UNITS,
            Kind::Seconds => S_UNITS,
            Kind::Size => BYTE_UNITS,
            Kind::Packets => PACKET_UNITS,
            Kind::Fraction => FRACTION_UNITS,
            Kind::SymbolRate => SYMBOL_UNITS,
        }
    }

    /// The name of such a quantity.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Rate => "a rate",
            Kind::Time | Kind::Seconds => "a time",
            Kind::Size => "a size",
            Kind::Bits => "an amount of bits",
            Kind::Packets => "a number of packets",
            Kind::Fraction => "a fraction",
            Kind::SymbolRate => "a symbol rate",
        }
    }

    /// An example of such a quantity.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Kind::Rate => "\"20Mbit\"",
            Kind::Time | Kind::Seconds => "\"250ms\"",
            Kind::Size => "\"1500B\"",
            Kind::Bits => "\"60kbit\"",
            Kind::Packets => "\"80p\"",
            Kind::Fraction => "0.25 or \"25%\"",
            Kind::SymbolRate => "\"50MBd\"",
        }
    }

    /// The suffixes of all its units.
    #[must_use]
    pub fn unit_names(self) -> Vec<&'static str> {
        self.units().iter().map(|unit| unit.suffix).collect()
    }

    fn suffixes(self) -> String {
        self.unit_names().join(", ")
    }
}

/// An exact decimal, `digits * 10^exponent`, with its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    digits: u128,
    exponent: i32,
}

/// Digits beyond this are refused rather than rounded, as they are a mistake.
const MAX_DIGITS: u32 = 30;
/// Exponents beyond this are refused.
const MAX_EXPONENT: i32 = 99;

impl Decimal {
    /// Reads digits, an optional point and an optional exponent from the start of `text`; returns what follows.
    ///
    /// # Errors
    /// What is wrong with the number.
    pub fn split(text: &str) -> Result<(Decimal, &str), &'static str> {
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let mut digits: u128 = 0;
        let mut count = 0_u32;
        let mut seen = false;
        let mut exponent = 0_i32;
        let mut after_point = false;
        while let Some(&byte) = rest.as_bytes().first() {
            match byte {
                b'0'..=b'9' => {
                    seen = true;
                    if digits != 0 || byte != b'0' {
                        count += 1;
                    }
                    if count > MAX_DIGITS {
                        return Err("has too many digits");
                    }
                    digits = digits * 10 + u128::from(byte - b'0');
                    if after_point {
                        exponent -= 1;
                        if exponent < -MAX_EXPONENT {
                            return Err("has too many digits");
                        }
                    }
                }
                b'.' if !after_point => after_point = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        if !seen {
            return Err("is not a number");
        }
        if let Some((power, tail)) = split_exponent(rest) {
            let power = power.ok_or("has an exponent out of range")?;
            exponent += power;
            rest = tail;
        }
        Ok((
            Decimal {
                negative,
                digits,
                exponent,
            },
            rest,
        ))
    }

    /// A number with nothing around it.
    ///
    /// # Errors
    /// What is wrong with the number.
    pub fn parse(text: &str) -> Result<Decimal, &'static str> {
        match Decimal::split(text)? {
            (decimal, "") => Ok(decimal),
            _ => Err("is not a number"),
        }
    }

    fn times(self, factor: u32, exponent: i32) -> Decimal {
        // At most 30 digits times 3600 or 2^30 stays far below 2^128.
        Decimal {
            digits: self.digits * u128::from(factor),
            exponent: self.exponent + exponent,
            ..self
        }
    }

    /// Moves the decimal point to the right.
    #[must_use]
    pub fn shifted(self, exponent: i32) -> Decimal {
        self.times(1, exponent)
    }

    /// Without its sign.
    #[must_use]
    pub fn magnitude(self) -> Decimal {
        Decimal {
            negative: false,
            ..self
        }
    }

    /// Whether it is below zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.negative && self.digits != 0
    }

    /// The nearest double.
    #[must_use]
    pub fn real(self) -> f64 {
        let value: f64 = format!("{}e{}", self.digits, self.exponent)
            .parse()
            .unwrap_or(f64::INFINITY);
        if self.is_negative() {
            -value
        } else {
            value
        }
    }

    /// The nearest whole number (halves up) and whether it is exact; `None` when negative or beyond 64 bits.
    #[must_use]
    pub fn whole(self) -> Option<(u64, bool)> {
        if self.is_negative() {
            return None;
        }
        if self.digits == 0 {
            return Some((0, true));
        }
        if self.exponent >= 0 {
            let power = 10_u128.checked_pow(u32::try_from(self.exponent).ok()?)?;
            let value = self.digits.checked_mul(power)?;
            return Some((u64::try_from(value).ok()?, true));
        }
        let Some(divisor) = 10_u128.checked_pow(self.exponent.unsigned_abs()) else {
            return Some((0, false)); // digits < 2^128 < 10^39, so this is below one half
        };
        let (quotient, remainder) = (self.digits / divisor, self.digits % divisor);
        let up = u128::from(remainder >= divisor - remainder);
        Some((u64::try_from(quotient + up).ok()?, remainder == 0))
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Decimal {
        Decimal {
            negative: false,
            digits: value.into(),
            exponent: 0,
        }
    }
}

/// `e3`, `E-7`: the power (none when out of range) and what follows; `None` when there is no exponent here.
fn split_exponent(text: &str) -> Option<(Option<i32>, &str)> {
    let rest = text.strip_prefix(['e', 'E'])?;
    let (negative, rest) = match rest.as_bytes().first()? {
        b'-' => (true, &rest[1..]),
        b'+' => (false, &rest[1..]),
        _ => (false, rest),
    };
    let end = rest
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(rest.len());
    if end == 0 {
        return None;
    }
    let power = rest[..end]
        .parse::<i32>()
        .ok()
        .filter(|p| *p <= MAX_EXPONENT);
    Some((power.map(|p| if negative { -p } else { p }), &rest[end..]))
}

/// Reads a quantity with its unit, in base units.
///
/// # Errors
/// What is wrong and how to write it.
pub fn parse(text: &str, kind: Kind) -> Result<Decimal, String> {
    let trimmed = text.trim();
    let (number, rest) = Decimal::split(trimmed)
        .map_err(|what| format!("{what}; write {} like {}", kind.noun(), kind.example()))?;
    let suffix = rest.trim_start();
    if let Some(unit) = kind.units().iter().find(|u| u.suffix == suffix) {
        return Ok(number.times(unit.factor, unit.exponent));
    }
    if suffix.is_empty() {
        if kind == Kind::Fraction {
            return Ok(number);
        }
        return Err(needs_unit(kind));
    }
    let wrong = if matches!(kind, Kind::Rate | Kind::Bits)
        && suffix.to_ascii_lowercase().ends_with("bps")
    {
        "the suffix bps is refused because in tc it means bytes per second".to_string()
    } else {
        let shown = crate::fault::shorten(suffix);
        format!("unknown unit \"{shown}\" for {}", kind.noun())
    };
    let cure = meant(suffix, kind).map_or_else(String::new, |unit| {
        let number = crate::fault::shorten(&trimmed[..trimmed.len() - rest.len()]);
        format!("; did you mean \"{number}{unit}\"?")
    });
    Err(format!("{wrong}; use one of {}{cure}", kind.suffixes()))
}

/// The unit that is meant by a suffix that is not one of ours: other cases as in tc, longer names, a rate per second.
fn meant(suffix: &str, kind: Kind) -> Option<&'static str> {
    const NAMES: [(&str, &[&str]); 13] = [
        ("Gbit", &["g", "gbits", "gbps"]),
        ("Mbit", &["m", "mbits", "mbps"]),
        ("kbit", &["k", "kbits", "kbps"]),
        ("bit", &["bits", "bps"]),
        ("s", &["sec", "secs", "second", "seconds"]),
        ("ms", &["msec", "msecs"]),
        ("us", &["usec", "usecs", "\u{b5}s", "\u{3bc}s"]),
        ("ns", &["nsec", "nsecs"]),
        ("min", &["mins", "minute", "minutes"]),
        ("h", &["hr", "hour", "hours"]),
        ("B", &["byte", "bytes"]),
        ("p", &["pkt", "pkts", "packet", "packets"]),
        ("%", &["percent"]),
    ];
    let lower = suffix.to_lowercase();
    let name = match kind {
        Kind::Rate => lower.strip_suffix("/s").unwrap_or(&lower),
        _ => &lower,
    };
    kind.units().iter().map(|unit| unit.suffix).find(|unit| {
        let known = NAMES.iter().find(|(of, _)| of == unit);
        unit.eq_ignore_ascii_case(name) || known.is_some_and(|(_, names)| names.contains(&name))
    })
}

/// The message for a bare number where a unit is due.
#[must_use]
pub fn needs_unit(kind: Kind) -> String {
    format!(
        "needs a unit: one of {}, like {}",
        kind.suffixes(),
        kind.example()
    )
}

/// Writes a whole number of base units so that it reads back the same.
#[must_use]
pub fn show_whole(value: u64, kind: Kind) -> String {
    if kind == Kind::Size && value % 1000 != 0 {
        return format!("{value}B"); // not 1.5kB: packets are given in bytes
    }
    show(&value.to_string(), kind)
}

/// Writes a finite non-negative number of base units so that it reads back the same.
#[must_use]
pub fn show_real(value: f64, kind: Kind) -> String {
    show(&format!("{value}"), kind)
}

/// `plain` is a decimal without exponent; it is put in the largest SI unit that is not larger than it.
fn show(plain: &str, kind: Kind) -> String {
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let units = kind.units();
    let smallest = || {
        units
            .iter()
            .filter(|u| u.factor == 1)
            .map(|u| u.exponent)
            .min()
            .unwrap_or(0)
    };
    if plain == "0" {
        let suffix = match kind {
            Kind::Time => "s",
            kind => {
                kind.units()
                    .iter()
                    .find(|u| u.factor == 1 && u.exponent == 0)
                    .unwrap_or(&units[0])
                    .suffix
            }
        };
        return format!("0{suffix}");
    }
    // Position of the first significant digit, as a power of ten.
    let magnitude = match whole.trim_start_matches('0') {
        "" => {
            -1 - i32::try_from(fraction.bytes().position(|b| b != b'0').unwrap_or(0)).unwrap_or(0)
        }
        digits => i32::try_from(digits.len()).unwrap_or(0) - 1,
    };
    let unit = units
        .iter()
        .filter(|u| u.factor == 1)
        .find(|u| u.exponent <= magnitude)
        .or_else(|| {
            units
                .iter()
                .find(|u| u.factor == 1 && u.exponent == smallest())
        })
        .unwrap_or(&units[0]);
    format!(
        "{}{}",
        point_moved(whole, fraction, unit.exponent),
        unit.suffix
    )
}

/// `whole.fraction / 10^by`, without superfluous zeros.
fn point_moved(whole: &str, fraction: &str, by: i32) -> String {
    let mut digits = format!("{whole}{fraction}");
    let mut point = i64::try_from(whole.len()).unwrap_or(0) - i64::from(by);
    while point <= 0 {
        digits.insert(0, '0');
        point += 1;
    }
    let point = usize::try_from(point).unwrap_or(0);
    while digits.len() < point {
        digits.push('0');
    }
    let (left, right) = digits.split_at(point);
    let left = left.trim_start_matches('0');
    let left = if left.is_empty() { "0" } else { left };
    match right.trim_end_matches('0') {
        "" => left.to_string(),
        right => format!("{left}.{right}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str, kind: Kind) -> u64 {
        parse(text, kind).unwrap().whole().unwrap().0
    }

    #[test]
    fn units_are_si_and_exact() {
        assert_eq!(whole("20Mbit", Kind::Rate), 20_000_000);
        assert_eq!(whole("0.4 Gbit", Kind::Rate), 400_000_000);
        assert_eq!(whole("1.5h", Kind::Time), 5_400_000_000_000);
        assert_eq!(whole("2min", Kind::Time), 120_000_000_000);
        assert_eq!(whole("64KiB", Kind::Size), 65_536);
        assert_eq!(whole("64kB", Kind::Size), 64_000);
        assert_eq!(whole("1e3p", Kind::Packets), 1000);
        assert_eq!(
            parse("13.2Mbit", Kind::Rate).unwrap().real().to_bits(),
            13_200_000_f64.to_bits()
        );
        assert_eq!(
            parse("0.1s", Kind::Seconds).unwrap().real().to_bits(),
            0.1_f64.to_bits()
        );
        assert_eq!(
            parse("25%", Kind::Fraction).unwrap().real().to_bits(),
            0.25_f64.to_bits()
        );
    }

    #[test]
    fn rounding_is_to_nearest_and_reported() {
        assert_eq!(
            parse("1.4ns", Kind::Time).unwrap().whole(),
            Some((1, false))
        );
        assert_eq!(
            parse("1.5ns", Kind::Time).unwrap().whole(),
            Some((2, false))
        );
        assert_eq!(
            parse("1e-60s", Kind::Time).unwrap().whole(),
            Some((0, false))
        );
        assert_eq!(
            parse("18446744073709551615bit", Kind::Bits)
                .unwrap()
                .whole(),
            Some((u64::MAX, true))
        );
        assert_eq!(
            parse("18446744073709551616bit", Kind::Bits)
                .unwrap()
                .whole(),
            None
        );
        assert_eq!(parse("1e80bit", Kind::Bits).unwrap().whole(), None);
    }

    #[test]
    fn what_is_refused_says_how_to_write_it() {
        assert!(parse("20", Kind::Rate)
            .unwrap_err()
            .contains("needs a unit"));
        assert!(parse("20Mbps", Kind::Rate)
            .unwrap_err()
            .contains("bytes per second"));
        assert!(parse("20mbit", Kind::Rate)
            .unwrap_err()
            .ends_with("use one of Gbit, Mbit, kbit, bit; did you mean \"20Mbit\"?"));
        for (written, kind, meant) in [
            ("20 Mbit/s", Kind::Rate, "20Mbit"),
            ("20M", Kind::Rate, "20Mbit"),
            ("1.5e1Kbit", Kind::Rate, "1.5e1kbit"),
            ("20Mbps", Kind::Rate, "20Mbit"),
            ("5 sec", Kind::Time, "5s"),
            ("250 \u{b5}s", Kind::Seconds, "250us"),
            ("100 packets", Kind::Packets, "100p"),
            ("64KB", Kind::Size, "64kB"),
        ] {
            let cure = format!("did you mean \"{meant}\"?");
            assert!(
                parse(written, kind).unwrap_err().ends_with(&cure),
                "{written}"
            );
        }
        // Bytes or bits, minutes or milli: not to be guessed.
        for (written, kind) in [
            ("20MB", Kind::Rate),
            ("20M", Kind::Time),
            ("20m", Kind::Time),
        ] {
            assert!(!parse(written, kind).unwrap_err().contains("did you mean"));
        }
        assert!(parse("20ms", Kind::Rate)
            .unwrap_err()
            .contains("unknown unit \"ms\" for a rate"));
        for bad in [
            "",
            "Mbit",
            "nanMbit",
            "infMbit",
            ".Mbit",
            "--1Mbit",
            "1.2.3Mbit",
            "1eMbit",
            "1e999Mbit",
            "\u{ff11}Mbit",
        ] {
            assert!(parse(bad, Kind::Rate).is_err(), "{bad}");
        }
        assert!(parse(&"9".repeat(31), Kind::Rate)
            .unwrap_err()
            .contains("too many digits"));
    }

    #[test]
    fn shown_values_read_back_the_same() {
        for value in [
            0,
            1,
            9,
            10,
            999,
            1000,
            1500,
            1_000_001,
            20_000_000,
            400_000_000_000,
            u64::MAX,
        ] {
            for kind in [
                Kind::Rate,
                Kind::Time,
                Kind::Size,
                Kind::Bits,
                Kind::Packets,
            ] {
                let shown = show_whole(value, kind);
                assert_eq!(
                    parse(&shown, kind).unwrap().whole(),
                    Some((value, true)),
                    "{shown}"
                );
            }
        }
        for value in [
            0.0,
            1e-12,
            0.1,
            0.25,
            1.0 / 3.0,
            2.0,
            13.2e6,
            123_456_789.123,
            4e11,
            f64::MIN_POSITIVE.sqrt().sqrt(),
        ] {
            for kind in [Kind::Rate, Kind::Seconds, Kind::Fraction] {
                let shown = show_real(value, kind);
                assert_eq!(
                    parse(&shown, kind).unwrap().real().to_bits(),
                    value.to_bits(),
                    "{shown}"
                );
            }
        }
        assert_eq!(show_whole(20_000_000, Kind::Rate), "20Mbit");
        assert_eq!(show_whole(13_250_000, Kind::Rate), "13.25Mbit");
        assert_eq!(show_whole(250_000_000, Kind::Time), "250ms");
        assert_eq!(show_real(0.25, Kind::Seconds), "250ms");
        assert_eq!(show_real(0.0, Kind::Seconds), "0s");
        assert_eq!(show_whole(10, Kind::Rate), "10bit");
        assert_eq!(show_whole(1500, Kind::Size), "1500B");
        assert_eq!(show_whole(64_000, Kind::Size), "64kB");
    }
}
