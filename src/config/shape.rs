//! What a value may look like: each shape reads a TOML value, shows one as TOML, and words its range.
//!
//! A shape is where a bad value is explained, so its messages say what to write instead. Units are in `unit`,
//! addresses in `address`.

use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::DeValue;
use zeroize::Zeroizing;

use super::suggest::nearest;

/// A value as it was written, with its place in the text.
pub(super) type Written<'i> = Spanned<DeValue<'i>>;

/// What is wrong with (a part of) a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Which part of the text.
    pub(super) span: Range<usize>,
    /// What to write instead.
    pub(super) message: String,
}

impl Fault {
    /// The one thing wrong with a value.
    pub(super) fn of(written: &Written<'_>, message: impl Into<String>) -> Vec<Self> {
        vec![Self { span: written.span(), message: message.into() }]
    }
}

/// What a value may look like.
pub(super) trait Shape {
    /// What it is read into.
    type Value;
    /// The value, or everything that is wrong with it.
    fn read(&self, written: &Written<'_>) -> Result<Self::Value, Vec<Fault>>;
    /// The value as TOML; empty if it stands for "not given".
    fn show(&self, value: &Self::Value) -> String;
    /// Which values are allowed, in the words of the sample configuration.
    fn range(&self) -> String;
}

/// A whole number in a range.
pub(super) struct Whole<T>(pub(super) T, pub(super) T);

impl<T: Copy + PartialOrd + TryFrom<u64> + TryInto<u64>> Shape for Whole<T> {
    type Value = T;

    fn read(&self, written: &Written<'_>) -> Result<T, Vec<Fault>> {
        let integer = match written.get_ref() {
            DeValue::Integer(integer) => integer,
            other => {
                let message =
                    format!("must be a whole number without quotes, {}; found {}", self.range(), found(other));
                return Err(Fault::of(written, message));
            }
        };
        u64::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .and_then(|n| T::try_from(n).ok())
            .filter(|n| (self.0..=self.1).contains(n))
            .ok_or_else(|| Fault::of(written, format!("must be {}; found {integer}", self.range())))
    }

    fn show(&self, value: &T) -> String {
        grouped((*value).try_into().unwrap_or(u64::MAX))
    }

    fn range(&self) -> String {
        format!("{} to {}", self.show(&self.0), self.show(&self.1))
    }
}

/// `true` or `false`.
pub(super) struct YesNo;

impl Shape for YesNo {
    type Value = bool;

    fn read(&self, written: &Written<'_>) -> Result<bool, Vec<Fault>> {
        match written.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            other => Err(Fault::of(written, format!("must be {}; found {}", self.range(), found(other)))),
        }
    }

    fn show(&self, value: &bool) -> String {
        value.to_string()
    }

    fn range(&self) -> String {
        "true or false".into()
    }
}

/// One of a few words.
pub(super) struct Word<T: 'static>(pub(super) &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Shape for Word<T> {
    type Value = T;

    fn read(&self, written: &Written<'_>) -> Result<T, Vec<Fault>> {
        let word = text(written, &self.range())?;
        if let Some((_, value)) = self.0.iter().find(|(name, _)| *name == word) {
            return Ok(*value);
        }
        let hint = nearest(word, self.0.iter().map(|(name, _)| *name));
        let hint = hint.map(|name| format!(": did you mean \"{name}\"?")).unwrap_or_default();
        Err(Fault::of(written, format!("must be {}; found {}{hint}", self.range(), quoted(word))))
    }

    fn show(&self, value: &T) -> String {
        self.0.iter().find(|(_, v)| v == value).map(|(name, _)| format!("\"{name}\"")).unwrap_or_default()
    }

    fn range(&self) -> String {
        let words: Vec<_> = self.0.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        words.join(" | ")
    }
}

/// One of a few words, or something else: `"auto"` or a number.
pub(super) struct WordOr<T: 'static, V> {
    pub(super) words: Word<T>,
    pub(super) other: Whole<V>,
    /// What the other thing stands for, and back.
    pub(super) of: fn(V) -> T,
    pub(super) into: fn(T) -> Option<V>,
}

impl<T, V> Shape for WordOr<T, V>
where
    T: Copy + PartialEq,
    V: Copy + PartialOrd + TryFrom<u64> + TryInto<u64>,
{
    type Value = T;

    fn read(&self, written: &Written<'_>) -> Result<T, Vec<Fault>> {
        if let DeValue::Integer(_) = written.get_ref() {
            return self.other.read(written).map(self.of);
        }
        self.words
            .read(written)
            .map_err(|_| Fault::of(written, format!("must be {}; found {}", self.range(), found(written.get_ref()))))
    }

    fn show(&self, value: &T) -> String {
        (self.into)(*value).map_or_else(|| self.words.show(value), |number| self.other.show(&number))
    }

    fn range(&self) -> String {
        format!("{} | {}", self.words.range(), self.other.range())
    }
}

/// Text of a limited length, not empty, without control characters.
pub(super) struct Text {
    /// The most bytes.
    pub(super) max: usize,
}

impl Shape for Text {
    type Value = String;

    fn read(&self, written: &Written<'_>) -> Result<String, Vec<Fault>> {
        let text = text(written, "text in quotes")?;
        if text.is_empty() {
            return Err(Fault::of(written, "must not be empty"));
        }
        if text.len() > self.max {
            return Err(Fault::of(written, format!("must be {}; found {} bytes", self.range(), text.len())));
        }
        if text.chars().any(char::is_control) {
            return Err(Fault::of(written, "must not contain control characters"));
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        toml_text(value)
    }

    fn range(&self) -> String {
        format!("at most {} bytes", self.max)
    }
}

/// A password: any text that the protocol can carry. Its faults never repeat it.
pub(super) struct Secret;

impl Secret {
    /// Why this cannot be a password.
    pub(super) fn fault(password: &str) -> Option<String> {
        if password.contains('\0') {
            return Some("must not contain a NUL character".into());
        }
        (password.len() > Self::MAX).then(|| format!("must be at most {} bytes", Self::MAX))
    }

    const MAX: usize = 256;
}

impl Shape for Secret {
    type Value = Zeroizing<String>;

    fn read(&self, written: &Written<'_>) -> Result<Self::Value, Vec<Fault>> {
        let DeValue::String(password) = written.get_ref() else {
            return Err(Fault::of(written, format!("must be text in quotes; found {}", kind(written.get_ref()))));
        };
        match Self::fault(password) {
            Some(message) => Err(Fault::of(written, message)),
            None => Ok(Zeroizing::new(password.clone().into_owned())),
        }
    }

    fn show(&self, _: &Self::Value) -> String {
        String::new()
    }

    fn range(&self) -> String {
        format!("at most {} bytes", Self::MAX)
    }
}

/// The path of a file. Whether it can be read is checked later, where the file is known to be wanted.
pub(super) struct FilePath;

impl Shape for FilePath {
    type Value = PathBuf;

    fn read(&self, written: &Written<'_>) -> Result<PathBuf, Vec<Fault>> {
        Text { max: 4096 }.read(written).map(PathBuf::from)
    }

    fn show(&self, value: &PathBuf) -> String {
        toml_text(&value.to_string_lossy())
    }

    fn range(&self) -> String {
        "a path".into()
    }
}

/// An option that may be left out.
pub(super) struct Maybe<S>(pub(super) S);

impl<S: Shape> Shape for Maybe<S> {
    type Value = Option<S::Value>;

    fn read(&self, written: &Written<'_>) -> Result<Self::Value, Vec<Fault>> {
        self.0.read(written).map(Some)
    }

    fn show(&self, value: &Self::Value) -> String {
        value.as_ref().map(|value| self.0.show(value)).unwrap_or_default()
    }

    fn range(&self) -> String {
        self.0.range()
    }
}

/// One or several; a single one needs no brackets.
pub(super) struct Several<S>(pub(super) S);

impl<S: Shape> Shape for Several<S> {
    type Value = Vec<S::Value>;

    fn read(&self, written: &Written<'_>) -> Result<Self::Value, Vec<Fault>> {
        let DeValue::Array(items) = written.get_ref() else {
            return self.0.read(written).map(|one| vec![one]);
        };
        if items.is_empty() {
            return Err(Fault::of(written, "must name at least one"));
        }
        let mut values = Vec::new();
        let mut faults = Vec::new();
        for item in items.iter() {
            match self.0.read(item) {
                Ok(value) => values.push(value),
                Err(more) => faults.extend(more),
            }
        }
        if faults.is_empty() { Ok(values) } else { Err(faults) }
    }

    fn show(&self, value: &Self::Value) -> String {
        let items: Vec<_> = value.iter().map(|item| self.0.show(item)).collect();
        format!("[{}]", items.join(", "))
    }

    fn range(&self) -> String {
        self.0.range()
    }
}

/// Log levels: one for everything, and directives `module=level`.
pub(super) struct Levels;

impl Levels {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

    fn fault(directive: &str) -> Option<String> {
        let (target, level) = directive.split_once('=').unwrap_or(("", directive));
        if !target.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':') {
            return Some(format!("{} is not a module's name", quoted(target)));
        }
        if Self::LEVELS.contains(&level) {
            return None;
        }
        let hint = nearest(level, Self::LEVELS.into_iter());
        let hint = hint.map(|level| format!(": did you mean \"{level}\"?")).unwrap_or_default();
        Some(format!("{} is not a log level{hint}; levels are {}", quoted(level), Self::LEVELS.join(", ")))
    }
}

impl Shape for Levels {
    type Value = String;

    fn read(&self, written: &Written<'_>) -> Result<String, Vec<Fault>> {
        let levels = text(written, "text in quotes, as in \"info,myriad::pool=debug\"")?;
        match levels.split(',').find_map(|directive| Self::fault(directive.trim())) {
            Some(message) => Err(Fault::of(written, message)),
            None => Ok(levels.split(',').map(str::trim).collect::<Vec<_>>().join(",")),
        }
    }

    fn show(&self, value: &String) -> String {
        toml_text(value)
    }

    fn range(&self) -> String {
        Self::LEVELS.join(", ")
    }
}

/// The text of a value, or a fault that says `expected`.
pub(super) fn text<'w>(written: &'w Written<'_>, expected: &str) -> Result<&'w str, Vec<Fault>> {
    match written.get_ref() {
        DeValue::String(text) => Ok(text),
        other => Err(Fault::of(written, format!("must be {expected}; found {}", found(other)))),
    }
}

/// What somebody wrote, for a message.
pub(super) fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {}", quoted(text)),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(value) => value.to_string(),
        other => kind(other).into(),
    }
}

/// What kind of value somebody wrote, for a message that must not show it.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Somebody's text in quotes, on one line, not too long.
pub(super) fn quoted(text: &str) -> String {
    const MOST: usize = 60;
    let end = text.char_indices().nth(MOST).map_or(text.len(), |(end, _)| end);
    let dots = if end < text.len() { "..." } else { "" };
    format!("{:?}{dots}", text.get(..end).unwrap_or(text))
}

/// Text as TOML writes it.
pub(super) fn toml_text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// `1_000_000`: as people and TOML can both read it.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<S: Shape>(shape: &S, value: &str) -> Result<S::Value, String> {
        let written = DeValue::parse(value).unwrap();
        shape.read(&written).map_err(|faults| faults.iter().map(|f| f.message.as_str()).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn whole_numbers() {
        let shape = Whole(1_usize, 100_000);
        for (value, expected) in [("1", 1), ("0x10", 16), ("100_000", 100_000)] {
            assert_eq!(read(&shape, value), Ok(expected), "{value}");
        }
        for (value, message) in [
            ("0", "must be 1 to 100_000; found 0"),
            ("100001", "must be 1 to 100_000; found 100001"),
            ("-3", "must be 1 to 100_000; found -3"),
            ("99999999999999999999", "must be 1 to 100_000; found 99999999999999999999"),
            ("\"10\"", "must be a whole number without quotes, 1 to 100_000; found the text \"10\""),
            ("1.5", "must be a whole number without quotes, 1 to 100_000; found the number 1.5"),
        ] {
            assert_eq!(read(&shape, value), Err(message.into()), "{value}");
        }
    }

    #[test]
    fn words() {
        let shape = Word(&[("off", 0), ("optional", 1)]);
        assert_eq!(read(&shape, "\"optional\""), Ok(1));
        let error = read(&shape, "'optionl'").unwrap_err();
        assert_eq!(error, "must be \"off\" | \"optional\"; found \"optionl\": did you mean \"optional\"?");
        assert!(read(&shape, "true").unwrap_err().ends_with("found true"));
    }

    #[test]
    fn levels() {
        for value in ["info", "off", "warn,myriad::pool=debug", "info, myriad=trace"] {
            assert_eq!(read(&Levels, &toml_text(value)), Ok(value.replace(' ', "")));
        }
        for value in ["inof", "", "info,", "my-module=info", "myriad=", "=x", "INFO"] {
            assert!(read(&Levels, &toml_text(value)).is_err(), "{value}");
        }
    }

    #[test]
    fn a_secret_never_shows() {
        for value in ["{ a = 12345 }", "12345", "true", "\"hush\\u0000\""] {
            let error = read(&Secret, value).unwrap_err();
            assert!(!error.contains("12345") && !error.contains("hush"), "{error}");
        }
        assert_eq!(read(&Secret, "''").unwrap().as_str(), "");
    }

    #[test]
    fn every_item_of_a_list_is_checked() {
        let shape = Several(Whole(1_usize, 9));
        assert_eq!(read(&shape, "[1, 2]"), Ok(vec![1, 2]));
        assert_eq!(read(&shape, "3"), Ok(vec![3]));
        assert_eq!(read(&shape, "[0, 2, 10]").unwrap_err(), "must be 1 to 9; found 0; must be 1 to 9; found 10");
        assert_eq!(read(&shape, "[]").unwrap_err(), "must name at least one");
    }

    #[test]
    fn texts_are_quoted_on_one_line() {
        assert_eq!(quoted("a\nb"), "\"a\\nb\"");
        assert_eq!(quoted(&"é".repeat(61)), format!("\"{}\"...", "é".repeat(60)));
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1_000", "1_234_567"]);
    }
}
