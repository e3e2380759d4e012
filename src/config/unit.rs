//! Times and sizes, with their units: `"30s"`, `"500ms"`, `"10min"`, `"8h"`, `"64KiB"`, `"1GiB"`.
//!
//! A plain number is bytes where a size is wanted, as for the server's own variables. Where a time is wanted it is
//! refused, since half the world would mean milliseconds; only 0 needs no unit.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeValue;

use super::shape::{Fault, Shape, Written, found, quoted};

/// Units of time, in milliseconds.
const TIMES: &[(&str, u64)] = &[("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];
/// Units of size, in bytes.
const SIZES: &[(&str, u64)] = &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
/// What people write for them elsewhere.
const ALIASES: &[(&str, &str)] = &[
    ("m", "min"),
    ("mins", "min"),
    ("minute", "min"),
    ("minutes", "min"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("hr", "h"),
    ("hour", "h"),
    ("hours", "h"),
    ("day", "d"),
    ("days", "d"),
    ("msec", "ms"),
    ("millis", "ms"),
    ("milliseconds", "ms"),
    ("k", "KiB"),
    ("kb", "KiB"),
    ("kib", "KiB"),
    ("mb", "MiB"),
    ("mib", "MiB"),
    ("g", "GiB"),
    ("gb", "GiB"),
    ("gib", "GiB"),
];

/// A time within a range.
pub(super) struct Time {
    min: Duration,
    max: Duration,
    /// Zero, or `"never"`, switches off what the time is for.
    never: bool,
}

/// A time from `range.start()` to `range.end()`.
pub(super) const fn time(range: RangeInclusive<Duration>) -> Time {
    Time { min: *range.start(), max: *range.end(), never: false }
}

/// The same, or never.
pub(super) const fn time_or_never(range: RangeInclusive<Duration>) -> Time {
    Time { min: *range.start(), max: *range.end(), never: true }
}

impl Shape for Time {
    type Value = Duration;

    fn read(&self, written: &Written<'_>) -> Result<Duration, Vec<Fault>> {
        let wrong = |what: String| Fault::of(written, format!("must be {}; {what}", self.range()));
        let time = match written.get_ref() {
            DeValue::String(text) if text == "never" && self.never => return Ok(Duration::ZERO),
            DeValue::String(text) => Duration::from_millis(number_and_unit(text, TIMES).map_err(wrong)?),
            DeValue::Integer(number) if number.as_str() == "0" => Duration::ZERO,
            DeValue::Integer(number) => return Err(wrong(format!("{number} needs a unit, as in \"{number}s\""))),
            other => return Err(wrong(format!("found {}", found(other)))),
        };
        if (self.never && time.is_zero()) || (self.min..=self.max).contains(&time) {
            return Ok(time);
        }
        Err(wrong(format!("found {}", found(written.get_ref()))))
    }

    fn show(&self, value: &Duration) -> String {
        if self.never && value.is_zero() { "\"never\"".into() } else { format!("\"{}\"", show_time(*value)) }
    }

    fn range(&self) -> String {
        let never = if self.never { ", or \"never\"" } else { "" };
        format!("{} to {}{never}", show_time(self.min), show_time(self.max))
    }
}

/// A size in bytes within a range.
pub(super) struct Size(pub(super) usize, pub(super) usize);

impl Shape for Size {
    type Value = usize;

    fn read(&self, written: &Written<'_>) -> Result<usize, Vec<Fault>> {
        let wrong = |what: String| Fault::of(written, format!("must be {}; {what}", self.range()));
        let bytes = match written.get_ref() {
            DeValue::String(text) => number_and_unit(text, SIZES).map_err(wrong)?,
            // What does not fit is far out of any range, and is told so.
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).unwrap_or(u64::MAX),
            other => return Err(wrong(format!("found {}", found(other)))),
        };
        usize::try_from(bytes)
            .ok()
            .filter(|bytes| (self.0..=self.1).contains(bytes))
            .ok_or_else(|| wrong(format!("found {}", found(written.get_ref()))))
    }

    fn show(&self, value: &usize) -> String {
        format!("\"{}\"", show_size(*value))
    }

    fn range(&self) -> String {
        format!("{} to {}", show_size(self.0), show_size(self.1))
    }
}

/// Minutes, as the standard library does not count them in constants yet.
pub(super) const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// Hours.
pub(super) const fn hours(count: u64) -> Duration {
    minutes(60 * count)
}

/// A time in the largest unit that shows it whole.
pub(super) fn show_time(time: Duration) -> String {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 { "0s".into() } else { largest_unit(millis, TIMES) }
}

/// A size in the largest unit that shows it whole.
fn show_size(bytes: usize) -> String {
    largest_unit(u64::try_from(bytes).unwrap_or(u64::MAX), SIZES)
}

fn largest_unit(value: u64, units: &[(&str, u64)]) -> String {
    let whole = units.iter().find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor));
    whole.or(units.last()).map_or_else(|| value.to_string(), |(unit, factor)| format!("{}{unit}", value / factor))
}

/// `"10min"` in the smallest of `units`, or what is wrong with it.
fn number_and_unit(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim();
    let smallest_last: Vec<_> = units.iter().map(|(unit, _)| *unit).rev().collect();
    let known = smallest_last.join(", ");
    if number.is_empty() || unit.starts_with('.') {
        return Err(format!("{} is not a whole number followed by a unit ({known})", quoted(text)));
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let lower = unit.to_ascii_lowercase();
        let meant = ALIASES.iter().find(|(alias, _)| *alias == lower).map_or(lower.as_str(), |(_, unit)| *unit);
        return Err(match units.iter().find(|(name, _)| *name == meant) {
            Some(_) => format!("write {} as \"{number}{meant}\"", quoted(text)),
            None if unit.is_empty() => format!("{} needs a unit ({known})", quoted(text)),
            None => format!("{} has no unit that is known here ({known})", quoted(text)),
        });
    };
    let value = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
    value.ok_or_else(|| format!("{} is too large", quoted(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<S: Shape>(shape: &S, value: &str) -> Result<S::Value, String> {
        let written = DeValue::parse(value).unwrap();
        shape.read(&written).map_err(|faults| faults[0].message.clone())
    }

    const SHORT: Time = time(Duration::from_millis(100)..=minutes(10));
    const LONG: Time = time_or_never(Duration::from_secs(1)..=hours(24));

    #[test]
    fn times() {
        for (value, expected) in [
            ("'500ms'", Duration::from_millis(500)),
            ("'30s'", Duration::from_secs(30)),
            ("'30 s'", Duration::from_secs(30)),
            ("'10min'", minutes(10)),
        ] {
            assert_eq!(read(&SHORT, value), Ok(expected), "{value}");
        }
        for value in ["0", "'never'", "'0s'", "'0ms'"] {
            assert_eq!(read(&LONG, value), Ok(Duration::ZERO), "{value}");
            assert!(read(&SHORT, value).is_err(), "{value}");
        }
        assert_eq!(read(&LONG, "'8h'"), Ok(hours(8)));
        assert_eq!(read(&LONG, "'1d'"), Ok(hours(24)));
    }

    #[test]
    fn times_explain() {
        for (value, message) in [
            ("30", "must be 100ms to 10min; 30 needs a unit, as in \"30s\""),
            ("'30'", "must be 100ms to 10min; \"30\" needs a unit (ms, s, min, h, d)"),
            ("'5m'", "must be 100ms to 10min; write \"5m\" as \"5min\""),
            ("'5 Seconds'", "must be 100ms to 10min; write \"5 Seconds\" as \"5s\""),
            ("'5KiB'", "must be 100ms to 10min; \"5KiB\" has no unit that is known here (ms, s, min, h, d)"),
            ("'1.5s'", "must be 100ms to 10min; \"1.5s\" is not a whole number followed by a unit (ms, s, min, h, d)"),
            ("'soon'", "must be 100ms to 10min; \"soon\" is not a whole number followed by a unit (ms, s, min, h, d)"),
            ("'1h'", "must be 100ms to 10min; found the text \"1h\""),
            ("'99999999999999999999s'", "must be 100ms to 10min; \"99999999999999999999s\" is too large"),
            ("true", "must be 100ms to 10min; found true"),
        ] {
            assert_eq!(read(&SHORT, value), Err(message.into()), "{value}");
        }
        assert_eq!(read(&LONG, "'2d'"), Err("must be 1s to 1d, or \"never\"; found the text \"2d\"".into()));
    }

    #[test]
    fn sizes() {
        let shape = Size(4 << 10, 1 << 30);
        for (value, expected) in [("'64KiB'", 64 << 10), ("'1GiB'", 1 << 30), ("4096", 4096), ("'4096B'", 4096)] {
            assert_eq!(read(&shape, value), Ok(expected), "{value}");
        }
        for (value, message) in [
            ("'64k'", "must be 4KiB to 1GiB; write \"64k\" as \"64KiB\""),
            ("'64KB'", "must be 4KiB to 1GiB; write \"64KB\" as \"64KiB\""),
            ("1", "must be 4KiB to 1GiB; found the number 1"),
            ("-1", "must be 4KiB to 1GiB; found the number -1"),
            ("'2GiB'", "must be 4KiB to 1GiB; found the text \"2GiB\""),
            ("'4096'", "must be 4KiB to 1GiB; \"4096\" needs a unit (B, KiB, MiB, GiB)"),
        ] {
            assert_eq!(read(&shape, value), Err(message.into()), "{value}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for millis in [1, 999, 1_000, 61_000, 3_600_000, 5_400_000, 86_400_000] {
            let time = Duration::from_millis(millis);
            let any = time_or_never(Duration::ZERO..=Duration::MAX);
            assert_eq!(read(&any, &any.show(&time)), Ok(time));
        }
        for bytes in [0, 1, 1023, 1024, 1 << 20, 3 << 30] {
            let any = Size(0, usize::MAX);
            assert_eq!(read(&any, &any.show(&bytes)), Ok(bytes));
        }
    }
}
