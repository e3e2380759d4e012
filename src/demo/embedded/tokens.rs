//! Cuts a statement into words, numbers, strings and signs: as much SQL as a toy server needs.

use std::borrow::Cow;
use std::ops::Range;

/// A piece of a statement and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) span: Range<usize>,
}

/// What a piece is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A keyword or a name, also in backticks.
    Word(&'a str),
    /// Digits.
    Number(&'a str),
    /// A quoted string, unescaped.
    Text(Cow<'a, str>),
    /// `@@name`, without the scope.
    System(&'a str),
    /// `@name`
    User(&'a str),
    /// Anything else.
    Sign(char),
}

impl Token<'_> {
    /// Is it this keyword?
    pub(super) fn is(&self, word: &str) -> bool {
        matches!(self.kind, Kind::Word(found) if found.eq_ignore_ascii_case(word))
    }
}

/// Cuts a statement up; nothing if a string or a comment does not end. Comments are skipped, a closing `;` too.
pub(super) fn tokens(sql: &str) -> Option<Vec<Token<'_>>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = sql.get(at..).filter(|rest| !rest.is_empty()) {
        let (kind, len) = next(rest)?;
        if let Some(kind) = kind {
            found.push(Token { kind, span: at..at + len });
        }
        at += len;
    }
    while found.last().is_some_and(|token| token.kind == Kind::Sign(';')) {
        found.pop();
    }
    Some(found)
}

/// The first token of `rest`, or how much to skip.
fn next(rest: &str) -> Option<(Option<Kind<'_>>, usize)> {
    let first = rest.chars().next()?;
    let skip = |len| Some((None, len));
    if first.is_whitespace() {
        return skip(first.len_utf8());
    }
    if first == '#' || rest.starts_with("-- ") {
        return skip(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return skip(rest.get(2..)?.find("*/")? + 4);
    }
    if let Some(name) = rest.strip_prefix("@@") {
        let len = name_len(name, true);
        return Some((Some(Kind::System(without_scope(name.get(..len)?))), len + 2));
    }
    if let Some(name) = rest.strip_prefix('@') {
        let len = name_len(name, true);
        return Some((Some(Kind::User(name.get(..len)?)), len + 1));
    }
    match first {
        '\'' | '"' => quoted(rest, first).map(|(text, len)| (Some(Kind::Text(text)), len)),
        '`' => {
            let name = rest.get(1..)?.split_once('`')?.0;
            Some((Some(Kind::Word(name)), name.len() + 2))
        }
        '0'..='9' => {
            let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            Some((Some(Kind::Number(rest.get(..len)?)), len))
        }
        _ if name_len(rest, false) > 0 => {
            let len = name_len(rest, false);
            Some((Some(Kind::Word(rest.get(..len)?)), len))
        }
        sign => Some((Some(Kind::Sign(sign)), sign.len_utf8())),
    }
}

fn name_len(text: &str, dots: bool) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$' || (dots && c == '.'))).unwrap_or(text.len())
}

fn without_scope(name: &str) -> &str {
    match name.split_once('.') {
        Some((scope, rest)) if ["session", "global", "local"].iter().any(|s| scope.eq_ignore_ascii_case(s)) => rest,
        _ => name,
    }
}

/// A quoted string at the front of `rest` and its length, quotes included.
fn quoted(rest: &str, quote: char) -> Option<(Cow<'_, str>, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => text.push(chars.next()?.1),
            _ if c == quote => {
                if chars.next_if(|(_, next)| *next == quote).is_none() {
                    return Some((Cow::Owned(text), at + 1));
                }
                text.push(quote);
            }
            _ => text.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(sql: &str) -> Vec<Kind<'_>> {
        tokens(sql).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn cuts_statements() {
        use Kind::{Number, Sign, System, Text, User, Word};
        let table: &[(&str, &[Kind<'_>])] = &[
            ("", &[]),
            ("SELECT 12;;", &[Word("SELECT"), Number("12")]),
            ("a=-1", &[Word("a"), Sign('='), Sign('-'), Number("1")]),
            ("/* x */ `b c` -- y\n# z", &[Word("b c")]),
            ("@@session.sql_mode @@x @v", &[System("sql_mode"), System("x"), User("v")]),
            (r"'it''s' 'a\'b' ''", &[Text("it's".into()), Text("a'b".into()), Text("".into())]),
            ("ä ?", &[Word("ä"), Sign('?')]),
        ];
        for (sql, expected) in table {
            assert_eq!(kinds(sql), *expected, "{sql}");
        }
    }

    #[test]
    fn what_does_not_end_is_refused() {
        for sql in ["'abc", "/* x", "`x", r"'\", "/*"] {
            assert_eq!(tokens(sql), None, "{sql}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(sql: String) {
            if let Some(tokens) = tokens(&sql) {
                for token in tokens {
                    assert!(sql.get(token.span).is_some());
                }
            }
        }
    }
}
