//! `GET DIAGNOSTICS`: what it asks, and the variables that it writes.

use super::rules::Kind;
use super::tape::{Lexeme, Tape};
use super::{Flags, Mode, Word};

/// `GET [CURRENT] DIAGNOSTICS ..` into user variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetDiagnostics {
    /// `CONDITION n`; none where it asks about the statement.
    pub condition: Option<u64>,
    /// Each variable as the text names it (`@a`), and what it is to get.
    pub items: Vec<(Vec<u8>, Item)>,
}

/// What `GET DIAGNOSTICS` can ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// `NUMBER`: how many conditions there are.
    Number,
    /// `ROW_COUNT`
    RowCount,
    /// `MYSQL_ERRNO`
    Errno,
    /// `MESSAGE_TEXT`
    Message,
    /// `RETURNED_SQLSTATE`
    State,
}

/// Reads a text that is one such statement and asks nothing but [`Item`]s.
#[must_use]
pub fn get_diagnostics(text: &[u8], mode: Mode) -> Option<GetDiagnostics> {
    let (effects, mut lexemes) = Tape::of(text, mode);
    let odd = Flags::OPAQUE.and(Flags::EXECUTABLE_COMMENT);
    if !effects.is_certain() || effects.may(odd) {
        return None;
    }
    lexemes.retain(|lexeme| !lexeme.is_sign(b';'));
    let mut rest = match lexemes.as_slice() {
        [get, diagnostics, rest @ ..] if get.word == Word::Get && diagnostics.word == Word::Diagnostics => rest,
        [get, current, diagnostics, rest @ ..]
            if get.word == Word::Get && current.is(text, "CURRENT") && diagnostics.word == Word::Diagnostics =>
        {
            rest
        }
        _ => return None,
    };
    let mut condition = None;
    if let [word, number, items @ ..] = rest
        && word.is(text, "CONDITION")
    {
        condition = Some(number.number.filter(|_| number.kind == Kind::Number { whole: true })?);
        rest = items;
    }
    let items = rest.split(|lexeme| lexeme.is_sign(b',')).map(|it| item(text, it, condition.is_some()));
    Some(GetDiagnostics { condition, items: items.collect::<Option<_>>()? })
}

/// `@a = MESSAGE_TEXT`
fn item(text: &[u8], lexemes: &[Lexeme], of_condition: bool) -> Option<(Vec<u8>, Item)> {
    let [variable, equals, what] = lexemes else { return None };
    if variable.kind != Kind::UserVariable || !equals.is_sign(b'=') {
        return None;
    }
    let name = text.get(variable.start..equals.start)?.trim_ascii_end();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'@' | b'`');
    let known: &[(&str, Item)] = if of_condition {
        &[("MYSQL_ERRNO", Item::Errno), ("MESSAGE_TEXT", Item::Message), ("RETURNED_SQLSTATE", Item::State)]
    } else {
        &[("NUMBER", Item::Number), ("ROW_COUNT", Item::RowCount)]
    };
    let item = known.iter().find(|(name, _)| what.is(text, name))?.1;
    name.iter().all(is_plain).then(|| (name.to_vec(), item))
}
