//! Statement templates: `?1000` stands for a random number from 1 to 1,000.

use bytes::BufMut;
use rand::Rng;

/// A statement with its random places found, ready to be written out again and again.
///
/// `?N` (N a number from 1 on) becomes a random number from 1 to N, the same place a new one each time; a `?` without
/// digits stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Random(u64),
}

/// A template that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// Empty text.
    #[error("a statement is empty")]
    Empty,
    /// `?0`, or a number that does not fit.
    #[error("the placeholder {0} must be a number from 1 to {max}", max = u64::MAX)]
    Range(String),
}

impl Statement {
    /// Finds the placeholders.
    ///
    /// # Errors
    /// If the text is empty or a placeholder's number is zero or too large.
    pub fn parse(text: &str) -> Result<Self, StatementError> {
        if text.trim().is_empty() {
            return Err(StatementError::Empty);
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut pieces = text.split('?');
        plain.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = piece.strip_suffix(rest).unwrap_or_default();
            if digits.is_empty() {
                plain.push('?');
            } else {
                let high = digits.parse().ok().filter(|high| *high > 0);
                let high = high.ok_or_else(|| StatementError::Range(format!("?{digits}")))?;
                push_text(&mut parts, &mut plain);
                parts.push(Part::Random(high));
            }
            plain.push_str(rest);
        }
        push_text(&mut parts, &mut plain);
        Ok(Self { parts })
    }

    /// The text to be prepared: placeholders are `?`.
    #[must_use]
    pub fn to_prepare(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => text.to_string(),
            Part::Random(_) => "?".to_owned(),
        };
        self.parts.iter().map(text).collect()
    }

    /// Appends the packet's rest of an execute of the prepared statement `id`, with fresh numbers.
    pub(super) fn write_execute(&self, id: u32, rng: &mut impl Rng, out: &mut impl BufMut) {
        /// MYSQL_TYPE_LONGLONG, signed
        const NUMBER: u16 = 8;
        let highs = self.parts.iter().filter_map(|part| match part {
            Part::Random(high) => Some(*high),
            Part::Text(_) => None,
        });
        out.put_u32_le(id);
        // No cursor; one execution.
        out.put_u8(0);
        out.put_u32_le(1);
        let count = highs.clone().count();
        if count == 0 {
            return;
        }
        out.put_bytes(0, count.div_ceil(8));
        out.put_u8(1);
        (0..count).for_each(|_| out.put_u16_le(NUMBER));
        highs.for_each(|high| out.put_u64_le(rng.random_range(1..=high)));
    }

    /// Appends the statement with fresh numbers.
    pub fn write(&self, rng: &mut impl Rng, out: &mut impl BufMut) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.put_slice(text.as_bytes()),
                Part::Random(high) => out.put_slice(rng.random_range(1..=*high).to_string().as_bytes()),
            }
        }
    }
}

fn push_text(parts: &mut Vec<Part>, plain: &mut String) {
    if !plain.is_empty() {
        parts.push(Part::Text(std::mem::take(plain).into_boxed_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        Statement::parse(text).unwrap().write(&mut rand::rng(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plain_text_stays() {
        for text in ["SELECT 1", "SELECT '?'", "a ? b", "??", "ä ?ö"] {
            assert_eq!(written(text), text);
        }
    }

    #[test]
    fn placeholders_become_numbers() {
        assert_eq!(written("?1"), "1");
        assert_eq!(written("id=?1, k=?1;"), "id=1, k=1;");
        assert_eq!(written("??1"), "?1");
        for _ in 0..100 {
            let number: u64 = written("?3").parse().unwrap();
            assert!((1..=3).contains(&number));
        }
    }

    #[test]
    fn prepared_ones_carry_their_numbers_as_parameters() {
        let statement = Statement::parse("SELECT ?1 + ?1").unwrap();
        assert_eq!(statement.to_prepare(), "SELECT ? + ?");
        let mut out = Vec::new();
        statement.write_execute(7, &mut rand::rng(), &mut out);
        let one = [1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(out, [&[7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 8, 0][..], &one, &one].concat());
        let mut out = Vec::new();
        Statement::parse("SELECT 1").unwrap().write_execute(7, &mut rand::rng(), &mut out);
        assert_eq!(out, [7, 0, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn bad_placeholders_are_refused() {
        assert_eq!(Statement::parse(" "), Err(StatementError::Empty));
        assert_eq!(Statement::parse("SELECT ?0"), Err(StatementError::Range("?0".into())));
        assert!(matches!(Statement::parse("?99999999999999999999"), Err(StatementError::Range(_))));
    }
}
