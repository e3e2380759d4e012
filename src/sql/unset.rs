//! A text in which user variables that its session never set are read under a name that nobody ever sets.
//!
//! On a connection that others have used, a variable of the same name may be theirs, and made NULL it is not as if it had
//! never been set: the columns of both differ. Only plain reading is put in other words; where a text may write the variable
//! before it reads it, or where reading one creates it (in a statement that changes rows), it stays as it is.

use super::reword::Asks;
use super::rules::Kind;
use super::tape::{Lexeme, Tape};
use super::{Flags, Mode, Word};

/// What stands for such a variable: a name that nobody has reason to use.
const NEVER_SET: &[u8] = b"@`myriad: nobody sets this`";

/// Where a text may be read by somebody else than we think.
const ODD: Flags = Flags::OPAQUE.and(Flags::COMPOUND).and(Flags::EXECUTABLE_COMMENT).and(Flags::SET_STATEMENT);

/// The text with that in the place of every variable that `is_unset`, and those of them that are still in it. None: it cannot
/// be done for any.
#[must_use]
pub fn reword_unset(text: &[u8], mode: Mode, is_unset: impl Fn(&str) -> bool) -> Option<(Vec<u8>, Vec<String>)> {
    let (effects, mut lexemes) = Tape::of(text, mode);
    let reads = matches!(effects.first, Word::Select | Word::Set | Word::Do) && effects.statements == 1;
    if !reads || effects.may(ODD) || effects.mentions.overflowed() {
        return None;
    }
    let end = lexemes.iter().position(|lexeme| lexeme.is_sign(b';')).unwrap_or(lexemes.len());
    lexemes.truncate(end);
    lexemes.iter_mut().for_each(|lexeme| lexeme.end = lexeme.whole_end(text));
    let named = |at: usize| Some((at, name_of(text, lexemes.get(at)?)?));
    let all: Vec<_> = (0..lexemes.len()).filter_map(named).filter(|(_, name)| is_unset(name)).collect();
    let stays = |name: &str| all.iter().any(|(at, other)| other == name && !is_read_as_before(text, &lexemes, *at));
    let (left, gone): (Vec<_>, Vec<_>) = all.iter().partition(|(_, name)| stays(name));
    let is_read = |at: &usize| !is_target(&lexemes, *at);
    let places: Vec<_> = gone.into_iter().map(|(at, _)| *at).filter(is_read).collect();
    let mut asks = Asks::new(text, mode);
    asks.replace(&lexemes, &places, NEVER_SET).ok()?;
    let mut left: Vec<_> = left.into_iter().map(|(_, name)| name.clone()).collect();
    left.dedup();
    (!places.is_empty()).then(|| (asks.edited(), left))
}

/// The name of the user variable that this token is, in lower case.
fn name_of(text: &[u8], lexeme: &Lexeme) -> Option<String> {
    if lexeme.kind != Kind::UserVariable {
        return None;
    }
    let name = lexeme.of(text).get(1..)?;
    let quoted = matches!(name, [open @ (b'\'' | b'"' | b'`'), .., close] if open == close);
    let name = if quoted { name.get(1..name.len() - 1)? } else { name };
    Some(String::from_utf8_lossy(name).to_ascii_lowercase())
}

/// Whether this token is what a `SET` assigns.
fn is_target(lexemes: &[Lexeme], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| lexemes.get(at));
    let assigned = lexemes.get(at + 1).is_some_and(|next| next.is_sign(b'=') || next.kind == Kind::Assign);
    let begins = before.is_some_and(|before| before.word == Word::Set || before.is_sign(b','));
    lexemes.first().is_some_and(|first| first.word == Word::Set) && begins && assigned && depth(lexemes, at) == 0
}

fn depth(lexemes: &[Lexeme], at: usize) -> usize {
    let count = |sign| lexemes.iter().take(at).filter(|lexeme| lexeme.is_sign(sign)).count();
    count(b'(').saturating_sub(count(b')'))
}

/// Whether the variable has still the value here that it had before the text, or is what a `SET` assigns.
fn is_read_as_before(text: &[u8], lexemes: &[Lexeme], at: usize) -> bool {
    let (Some(lexeme), Some(before)) = (lexemes.get(at), at.checked_sub(1).and_then(|at| lexemes.get(at))) else {
        return false;
    };
    let is_host =
        matches!(before.kind, Kind::Text | Kind::Name) || before.end == lexeme.start && before.kind == Kind::Word;
    let is_assigned = lexemes.get(at + 1).is_some_and(|next| next.kind == Kind::Assign) && !is_target(lexemes, at);
    if is_host || is_assigned || is_behind_into(lexemes, at) {
        return false;
    }
    // What the same SET has assigned to it before; in its own assignment it is still what it was.
    let name = name_of(text, lexeme);
    let first = (0..at).find(|at| is_target(lexemes, *at) && lexemes.get(*at).and_then(|it| name_of(text, it)) == name);
    let ends = |at: &usize| lexemes.get(*at).is_some_and(|it| it.is_sign(b',')) && depth(lexemes, *at) == 0;
    first.is_none_or(|first| !(first..at).any(|at| ends(&at)))
}

/// Whether this token is behind `INTO`, or behind others that are.
fn is_behind_into(lexemes: &[Lexeme], at: usize) -> bool {
    let mut at = at;
    while let Some(before) = at.checked_sub(1).and_then(|at| lexemes.get(at)) {
        if before.word == Word::Into {
            return true;
        }
        let joined = at.checked_sub(2).and_then(|at| lexemes.get(at)).is_some_and(|it| it.kind == Kind::UserVariable);
        if !before.is_sign(b',') || !joined {
            return false;
        }
        at -= 2;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::tests::{MARIA, MYSQL};

    /// The text with `@?` for what was put in, and behind it what is left.
    fn reworded(text: &str, mode: Mode) -> String {
        let own = |name: &str| name.starts_with("own");
        let Some((text, left)) = reword_unset(text.as_bytes(), mode, |name| !own(name)) else {
            return "none".to_owned();
        };
        let text = String::from_utf8(text).unwrap().replace(str::from_utf8(NEVER_SET).unwrap(), "@?");
        [text, left.join(" ")].join(" ").trim().to_owned()
    }

    #[test]
    fn only_plain_reading_is_put_in_other_words() {
        for (text, expected) in [
            ("SELECT @a", "SELECT @? AS `@a`"),
            ("SELECT @A, @own, @`b c`, 1", "SELECT @? AS `@A`, @own, @? AS `@``b c```, 1"),
            ("SELECT @a AS x, @b y, @c + 1;", "SELECT @? AS x, @? y, @? + 1 AS `@c + 1`;"),
            (
                "SELECT CONCAT(@a, @own) FROM t WHERE n = @b",
                "SELECT CONCAT(@?, @own) AS `CONCAT(@a, @own)` FROM t WHERE n = @?",
            ),
            ("SELECT HEX(@a)", "SELECT HEX(@?) AS `HEX(@a)`"),
            ("SELECT @a IS NULL", "none"),
            ("SELECT @a UNION SELECT @a", "SELECT @? AS `@a` UNION SELECT @? AS `@a`"),
            ("SELECT (SELECT @a)", "SELECT (SELECT @? AS `@a`) AS `(SELECT @a)`"),
            ("SELECT @own", "none"),
            ("SELECT @a := @a + 1", "none"),
            ("SELECT @a, @b := @b + 1", "SELECT @? AS `@a`, @b := @b + 1 b"),
            ("SELECT IF(@a, @b := 1, 2)", "SELECT IF(@?, @b := 1, 2) AS `IF(@a, @b := 1, 2)` b"),
            ("SELECT n FROM t WHERE v = @b INTO @a", "SELECT n FROM t WHERE v = @? INTO @a a"),
            ("SELECT @c INTO @a, @b", "SELECT @? AS `@c` INTO @a, @b a b"),
            ("SET @own = @a", "SET @own = @?"),
            ("SET @a = @a + 1", "SET @a = @? + 1"),
            ("SET @a = @a + 1, @own = @a", "none"),
            ("SET @own = @a, @b = @c, @c = @own", "SET @own = @?, @b = @?, @c = @own"),
            ("SET @own = IF(@a, @b = 1, 2)", "SET @own = IF(@?, @? = 1, 2)"),
            ("SET sql_mode = @a", "SET sql_mode = @?"),
            ("DO @a, @b := 1", "DO @?, @b := 1 b"),
            ("INSERT INTO t VALUES (@a)", "none"),
            ("SELECT @a; SELECT 1", "none"),
            ("SELECT 1 /*! + @a */", "none"),
            ("CALL p(@a)", "none"),
        ] {
            for mode in [MYSQL, MARIA] {
                assert_eq!(reworded(text, mode), expected, "{text}");
            }
        }
    }
}
