//! Statements about statements that have a name: `PREPARE`, `EXECUTE`, `DEALLOCATE PREPARE`, and `EXECUTE IMMEDIATE`.
//!
//! Only whole texts of a known form, and only names whose spelling means the same on both servers (MySQL takes `é` for `e`,
//! and ignores spaces at the end). A literal is known as the server reads it if its characters are ASCII, or if the
//! client's character set is one in which a byte below 0x80 is never part of another character.

use std::ops::Range;

use super::rules::Kind;
use super::tape::{Lexeme, Tape};
use super::{Effects, Flags, Mode, Multibyte, Word};

/// What a text does with a statement that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `PREPARE name FROM ..`; without a literal the statement's text is not known.
    Prepare {
        /// In lower case.
        name: Box<str>,
        /// The name is spelled without quotes: the server refuses some of those.
        bare: bool,
        /// The statement.
        literal: Option<Literal>,
        /// Both servers read what the statement comes from, whatever they find in it.
        read: bool,
    },
    /// `EXECUTE name [USING ..]`
    Execute(Box<str>),
    /// `DEALLOCATE PREPARE name`, `DROP PREPARE name`
    Deallocate(Box<str>),
    /// `EXECUTE IMMEDIATE 'literal' [USING ..]` (MariaDB)
    Immediate(Literal),
}

/// A string in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// What it means.
    pub value: Vec<u8>,
    /// Where it stands, its quotes included.
    pub place: Range<usize>,
}

impl Literal {
    /// The text with another string in the place of this one.
    #[must_use]
    pub fn replaced(&self, text: &[u8], value: &[u8], mode: Mode) -> Vec<u8> {
        let (before, after) = (text.get(..self.place.start), text.get(self.place.end..));
        let mut out = before.unwrap_or_default().to_vec();
        out.push(b'\'');
        for byte in value {
            match byte {
                b'\'' => out.extend_from_slice(b"''"),
                b'\\' if !mode.no_backslash_escapes => out.extend_from_slice(b"\\\\"),
                byte => out.push(*byte),
            }
        }
        out.push(b'\'');
        out.extend_from_slice(after.unwrap_or_default());
        out
    }
}

/// Reads a text that is exactly one such statement.
#[must_use]
pub fn naming(text: &[u8], mode: Mode) -> Option<Naming> {
    let (effects, mut lexemes) = Tape::of(text, mode);
    if !effects.is_certain() || !effects.may(Flags::PREPARE | Flags::EXECUTE | Flags::DEALLOCATE) {
        return None;
    }
    while lexemes.last().is_some_and(|last| last.is_sign(b';')) {
        lexemes.pop();
    }
    let (first, rest) = lexemes.split_first()?;
    let using = |rest: &[Lexeme]| rest.first().is_none_or(|word| word.is(text, "USING"));
    match (first.word, rest) {
        (Word::Prepare, [named, from, source @ ..]) if from.word == Word::From => {
            let literal = literal(text, source, mode).filter(|(_, len)| *len == source.len());
            let literal = literal.map(|(literal, _)| literal);
            let (bare, read) = (named.kind == Kind::Word, literal.is_some() || is_plain_variable(text, source));
            Some(Naming::Prepare { name: name(text, named)?, bare, literal, read })
        }
        (Word::Execute, [immediate, source @ ..])
            if mode.mariadb && immediate.is(text, "IMMEDIATE") && !using(source) =>
        {
            let (literal, len) = literal(text, source, mode)?;
            using(source.get(len..)?).then_some(Naming::Immediate(literal))
        }
        (Word::Execute, [named, rest @ ..]) if using(rest) => Some(Naming::Execute(name(text, named)?)),
        (Word::Deallocate | Word::Drop, [prepare, named]) if prepare.word == Word::Prepare => {
            Some(Naming::Deallocate(name(text, named)?))
        }
        _ => None,
    }
}

impl Effects {
    /// What executing a statement does, of which this is what its text does, by a text that does `by`.
    #[must_use]
    pub fn executed(&self, by: &Self) -> Self {
        let and = |inner: Flags, outer: Flags| inner | outer.without(Flags::EXECUTE);
        let mut mentions = self.mentions;
        mentions.join(&by.mentions);
        Self { flags: and(self.flags, by.flags), first_flags: and(self.first_flags, by.first_flags), mentions, ..*self }
    }

    /// What executing a statement does that is not there.
    #[must_use]
    pub fn of_no_statement(&self) -> Self {
        let flags = self.flags.without(Flags::EXECUTE);
        Self { flags, first_flags: flags, ..*self }
    }
}

/// A name that means the same however it is spelled.
fn name(text: &[u8], lexeme: &Lexeme) -> Option<Box<str>> {
    let name = match lexeme.kind {
        Kind::Word => lexeme.of(text),
        Kind::Name => lexeme.of(text).get(1..)?.split_last()?.1,
        _ => return None,
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let lasts = name.len() <= 64 && name.iter().all(plain) && name.first().is_some_and(|byte| !byte.is_ascii_digit());
    lasts.then(|| String::from_utf8_lossy(name).to_ascii_lowercase().into())
}

/// A user variable, its name without quotes, and nothing else.
fn is_plain_variable(text: &[u8], lexemes: &[Lexeme]) -> bool {
    let [only] = lexemes else { return false };
    let name = text.get(only.start..).and_then(|rest| rest.strip_prefix(b"@")).unwrap_or_default();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b';' | b' ');
    only.kind == Kind::UserVariable && name.first().is_some_and(plain) && name.iter().all(plain)
}

/// The string at the front of these tokens, and how many of them it is: a doubled quote is read as two strings side by
/// side.
fn literal(text: &[u8], lexemes: &[Lexeme], mode: Mode) -> Option<(Literal, usize)> {
    let first = lexemes.first().filter(|first| first.kind == Kind::Text)?;
    let mark = *first.of(text).first()?;
    let mut end = first.end;
    let follows = |lexeme: &Lexeme, end: usize| {
        lexeme.kind == Kind::Text && lexeme.start == end && lexeme.of(text).first() == Some(&mark)
    };
    let mut len = 1;
    while let Some(next) = lexemes.get(len).filter(|next| follows(next, end)) {
        end = next.end;
        len += 1;
    }
    let place = first.start..end;
    let quoted = text.get(place.clone())?;
    if mode.multibyte != Multibyte::No && !quoted.is_ascii() {
        return None;
    }
    let inside = quoted.get(1..)?.strip_suffix(&[mark])?;
    Some((Literal { value: unescaped(inside, mark, mode), place }, len))
}

/// What stands between quotes, as the server reads it.
fn unescaped(inside: &[u8], mark: u8, mode: Mode) -> Vec<u8> {
    let mut out = Vec::with_capacity(inside.len());
    let mut rest = inside.iter().copied();
    while let Some(byte) = rest.next() {
        if byte == mark {
            // Doubled.
            rest.next();
            out.push(mark);
        } else if byte == b'\\' && !mode.no_backslash_escapes {
            match rest.next() {
                Some(b'n') => out.push(b'\n'),
                Some(b't') => out.push(b'\t'),
                Some(b'r') => out.push(b'\r'),
                Some(b'b') => out.push(8),
                Some(b'0') => out.push(0),
                Some(b'Z') => out.push(26),
                Some(sign @ (b'%' | b'_')) => out.extend_from_slice(&[b'\\', sign]),
                Some(other) => out.push(other),
                None => {}
            }
        } else {
            out.push(byte);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::effects;
    use crate::sql::tests::{MARIA, MYSQL};

    fn shown(text: &str, mode: Mode) -> String {
        let value = |literal: &Literal| String::from_utf8_lossy(&literal.value).into_owned();
        match naming(text.as_bytes(), mode) {
            None => "-".into(),
            Some(Naming::Prepare { name, bare, literal, read }) => {
                let literal = literal.as_ref().map_or(if read { "?" } else { "??" }.into(), value);
                format!("prepare {name}{}: {literal}", if bare { "" } else { " quoted" })
            }
            Some(Naming::Execute(name)) => format!("execute {name}"),
            Some(Naming::Deallocate(name)) => format!("deallocate {name}"),
            Some(Naming::Immediate(literal)) => format!("immediate: {}", value(&literal)),
        }
    }

    #[test]
    fn texts_of_a_known_form() {
        for (text, wanted) in [
            ("PREPARE P FROM 'SELECT 1'", "prepare p: SELECT 1"),
            ("prepare /* x */ `P` from \"SELECT ''\" ;", "prepare p quoted: SELECT ''"),
            ("PREPARE p FROM 'SELECT ''a'', \\'b\\', \"c\"'", "prepare p: SELECT 'a', 'b', \"c\""),
            ("PREPARE p FROM 'a\\nb\\%\\q\\\\'", "prepare p: a\nb\\%q\\"),
            ("PREPARE p FROM 'SELECT ''\u{e9}'''", "prepare p: SELECT '\u{e9}'"),
            ("PREPARE p FROM ''", "prepare p: "),
            ("PREPARE p FROM @a", "prepare p: ?"),
            ("PREPARE p FROM 'a' 'b'", "prepare p: ??"),
            ("PREPARE p FROM 'a' COLLATE x", "prepare p: ??"),
            ("PREPARE p FROM CONCAT('a')", "prepare p: ??"),
            ("PREPARE p FROM 'a", "prepare p: ??"),
            ("PREPARE p FROM 5", "prepare p: ??"),
            ("PREPARE p FROM @`a", "prepare p: ??"),
            ("PREPARE \u{e9} FROM 'a'", "-"),
            ("PREPARE `p ` FROM 'a'", "-"),
            ("PREPARE 1p FROM 'a'", "-"),
            ("PREPARE p.q FROM 'a'", "-"),
            ("PREPARE p FRM 'a'", "-"),
            ("PREPARE p FROM 'a'; SELECT 1", "-"),
            ("/*!50000 PREPARE p FROM 'a' */", "-"),
            ("EXECUTE P", "execute p"),
            ("EXECUTE `p` USING @a, @b;", "execute p"),
            ("EXECUTE p @a", "-"),
            ("EXECUTE immediate", "execute immediate"),
            ("EXECUTE immediate USING @a", "execute immediate"),
            ("DEALLOCATE PREPARE p", "deallocate p"),
            ("drop prepare `P`", "deallocate p"),
            ("DROP PREPARE p, q", "-"),
            ("DROP TABLE p", "-"),
            ("SELECT 1", "-"),
            ("", "-"),
        ] {
            for mode in [MYSQL, MARIA] {
                assert_eq!(shown(text, mode), wanted, "{text}");
            }
        }
        for (text, wanted) in [
            ("EXECUTE IMMEDIATE 'SELECT 1'", "immediate: SELECT 1"),
            ("EXECUTE IMMEDIATE 'SELECT ?' USING 5", "immediate: SELECT ?"),
            ("EXECUTE IMMEDIATE 'SELECT ' 'a'", "-"),
            ("EXECUTE IMMEDIATE @a", "-"),
        ] {
            assert_eq!((shown(text, MARIA), shown(text, MYSQL)), (wanted.into(), "-".into()), "{text}");
        }
    }

    #[test]
    fn texts_in_other_modes() {
        let ansi = Mode { ansi_quotes: true, ..MYSQL };
        assert_eq!(shown("PREPARE \"p\" FROM 'a'", ansi), "prepare p quoted: a");
        assert_eq!(shown("PREPARE p FROM \"a\"", ansi), "prepare p: ??");
        let plain = Mode { no_backslash_escapes: true, ..MYSQL };
        assert_eq!(shown("PREPARE p FROM 'a\\nb'", plain), "prepare p: a\\nb");
        let latin = Mode { multibyte: Multibyte::Single, ..MYSQL };
        assert_eq!(shown("PREPARE p FROM 'a'", latin), "prepare p: a");
        assert_eq!(shown("PREPARE p FROM '\u{e4}'", latin), "prepare p: ??");
    }

    #[test]
    fn another_string_in_its_place() {
        let text = b"PREPARE p FROM 'SELECT 1' ;";
        let Some(Naming::Prepare { literal: Some(literal), .. }) = naming(text, MYSQL) else { panic!() };
        assert_eq!(literal.replaced(text, b"a'b\\", MYSQL), b"PREPARE p FROM 'a''b\\\\' ;");
        let plain = Mode { no_backslash_escapes: true, ..MYSQL };
        assert_eq!(literal.replaced(text, b"b\\", plain), b"PREPARE p FROM 'b\\' ;");
    }

    #[test]
    fn what_is_executed_does_what_its_text_does() {
        let of = |text: &str| effects(text.as_bytes(), MARIA);
        let all = of("SET @b = 1").executed(&of("EXECUTE p USING @a"));
        assert_eq!(all.mentions, of("SELECT @b := 1, @a").mentions);
        assert!(all.may(Flags::WRITES_USER_VARIABLE) && !all.may(Flags::RUNS_UNSEEN) && all.first == Word::Set);
        assert!(all.is_certain());
        let all = of("CALL p()").executed(&of("EXECUTE p USING GET_LOCK('a', 1)"));
        assert!(all.may(Flags::CALL) && all.may(Flags::GET_LOCK) && !all.may(Flags::EXECUTE));
        let none = of("EXECUTE p").of_no_statement();
        assert!(none.is_certain() && !none.may(Flags::RUNS_UNSEEN) && none.first == Word::Execute);
    }
}
