//! Questions about a session inside a larger statement: where they stand, and the same text with the answers in it.
//!
//! `ROW_COUNT()` becomes `IF(1,5,ROW_COUNT())`. That has the value 5 and, as measured on both servers, the metadata of the
//! function itself wherever it may stand; and what the server thinks of the function (MySQL warns of `FOUND_ROWS()`) it
//! says as before. A column of a result that is named after its expression gets that name as an alias.

use std::ops::Range;

use super::rules::Kind;
use super::tape::{Lexeme, Tape};
use super::{Flags, Mode, Multibyte, Word};

/// What a statement asks about its session by a function or a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// `ROW_COUNT()`
    RowCount,
    /// `FOUND_ROWS()`
    FoundRows,
    /// `CONNECTION_ID()`, `@@pseudo_thread_id`
    ConnectionId,
    /// `@@warning_count`
    WarningCount,
    /// `@@error_count`
    ErrorCount,
    /// A user variable: see `unset`.
    UserVariable,
}

impl Question {
    /// How the client most likely wrote it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::RowCount => "ROW_COUNT()",
            Self::FoundRows => "FOUND_ROWS()",
            Self::ConnectionId => "CONNECTION_ID()",
            Self::WarningCount => "@@warning_count",
            Self::ErrorCount => "@@error_count",
            Self::UserVariable => "a user variable",
        }
    }

    /// An expression of this value and of the question's own type.
    fn answer(self, value: i128, question: &str) -> String {
        match self {
            Self::RowCount | Self::FoundRows => format!("IF(1,{value},{question})"),
            Self::ConnectionId | Self::WarningCount | Self::ErrorCount => {
                format!("IF(1,CAST({value} AS UNSIGNED),{question})")
            }
            Self::UserVariable => question.to_owned(),
        }
    }
}

/// What becomes of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reworded {
    /// Nothing in it is to be answered.
    AsIs,
    /// The text to send instead.
    Text(Vec<u8>),
    /// It asks this where it cannot be answered.
    Unclear(Question),
}

/// Puts the answers into a text. `answer` gives none to what the server itself can answer. Of several statements, only the
/// first can ask about the one before the text; the client's own number is meant in all of them.
#[must_use]
pub fn reword(text: &[u8], mode: Mode, answer: impl Fn(Question) -> Option<i128>) -> Reworded {
    let (effects, mut lexemes) = Tape::of(text, mode);
    lexemes.iter_mut().for_each(|lexeme| lexeme.end = lexeme.whole_end(text));
    let mut asks = Asks { executable: effects.may(Flags::EXECUTABLE_COMMENT), ..Asks::new(text, mode) };
    let opaque = effects.may(Flags::OPAQUE.and(Flags::COMPOUND));
    for (n, statement) in lexemes.split(|lexeme| lexeme.is_sign(b';')).enumerate() {
        if asks.writes_down_code(statement) {
            // What follows may belong to it, and is not run now.
            break;
        }
        let about = |question| if n == 0 || question == Question::ConnectionId { answer(question) } else { None };
        if let Err(question) = asks.statement(statement, &about, opaque) {
            return Reworded::Unclear(question);
        }
    }
    if asks.edits.is_empty() { Reworded::AsIs } else { Reworded::Text(asks.edited()) }
}

/// A text under work.
pub(super) struct Asks<'t> {
    text: &'t [u8],
    mode: Mode,
    /// What is to stand in place of what.
    edits: Vec<(Range<usize>, Vec<u8>)>,
    /// The text has a comment that servers may run or not.
    executable: bool,
}

/// Between two parentheses: the column of a select list that is being read.
#[derive(Clone, Copy, Default)]
struct Level {
    item: Option<usize>,
    asks: Option<Question>,
}

impl<'t> Asks<'t> {
    pub(super) fn new(text: &'t [u8], mode: Mode) -> Self {
        Self { text, mode, edits: Vec::new(), executable: false }
    }

    /// Puts `new` in the place of each of these tokens of a statement.
    pub(super) fn replace(&mut self, lexemes: &[Lexeme], places: &[usize], new: &[u8]) -> Result<(), Question> {
        let mut levels = vec![Level::default()];
        for (at, lexeme) in lexemes.iter().enumerate() {
            if places.contains(&at) {
                self.edits.push((lexeme.start..lexeme.end, new.to_vec()));
                levels.iter_mut().for_each(|level| level.asks = level.item.and(Some(Question::UserVariable)));
            }
            let after_dot = at.checked_sub(1).and_then(|at| lexemes.get(at)).is_some_and(|it| it.is_sign(b'.'));
            self.step(lexemes, at, after_dot, &mut levels)?;
        }
        levels.iter().rev().try_for_each(|level| self.end_item(lexemes, *level, lexemes.len()))
    }

    fn statement(
        &mut self,
        lexemes: &[Lexeme],
        answer: &impl Fn(Question) -> Option<i128>,
        opaque: bool,
    ) -> Result<(), Question> {
        let Some(asking) = self.asking(lexemes) else { return Ok(()) };
        // MariaDB names the columns of `VALUES (..)` after their first expressions.
        let unnamed = self.mode.mariadb && lexemes.get(asking).is_some_and(|first| first.word == Word::Values);
        let mut levels = vec![Level::default()];
        let mut skip = 0;
        for (at, lexeme) in lexemes.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| lexemes.get(at));
            let after_dot = before.is_some_and(|before| before.is_sign(b'.'));
            // MariaDB's `SQL%ROWCOUNT`, in sql_mode=ORACLE.
            if lexeme.word == Word::Rowcount && before.is_some_and(|before| before.is_sign(b'%')) {
                answer(Question::RowCount).map_or(Ok(()), |_| Err(Question::RowCount))?;
            }
            if let Some((question, len)) = self.question(lexemes, at).filter(|_| at >= asking && !after_dot)
                && !(levels.len() == 1 && is_target(lexemes, at, len))
                && let Some(value) = answer(question)
            {
                let own = question == Question::ConnectionId;
                if !own && (opaque || unnamed) {
                    return Err(question);
                }
                if !own || !(opaque || unnamed || self.means_the_servers_own(lexemes)) {
                    self.put_answer(lexemes, at..at + len, question, value);
                    levels.iter_mut().for_each(|level| level.asks = level.item.and(Some(question)));
                    skip = at + len;
                }
            }
            if at >= skip {
                self.step(lexemes, at, after_dot, &mut levels)?;
            }
        }
        levels.iter().rev().try_for_each(|level| self.end_item(lexemes, *level, lexemes.len()))
    }

    /// `CREATE PROCEDURE` and kin, whose bodies are kept as written.
    fn writes_down_code(&self, lexemes: &[Lexeme]) -> bool {
        let kinds = ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];
        let others = ["TABLE", "VIEW", "INDEX", "DATABASE", "SCHEMA", "USER", "ROLE", "SEQUENCE", "SERVER"];
        if !lexemes.first().is_some_and(|first| matches!(first.word, Word::Create | Word::Alter)) {
            return false;
        }
        let all = |lexeme: &&Lexeme| lexeme.is_any(self.text, &kinds) || lexeme.is_any(self.text, &others);
        lexemes.iter().find(all).is_some_and(|kind| kind.is_any(self.text, &kinds))
    }

    /// From which token on the statement's questions are answered while it runs; none if it only writes them down.
    fn asking(&self, lexemes: &[Lexeme]) -> Option<usize> {
        let first = lexemes.iter().position(|lexeme| !lexeme.is_sign(b'('))?;
        match lexemes.get(first)?.word {
            Word::Alter | Word::Desc | Word::Describe | Word::Drop | Word::Explain | Word::Analyze => None,
            Word::Create => {
                let table = lexemes.iter().take(first + 5).any(|lexeme| lexeme.word == Word::Table);
                // The definitions of columns are kept as written.
                lexemes.iter().position(|lexeme| lexeme.is(self.text, "SELECT")).filter(|_| table)
            }
            _ => Some(first),
        }
    }

    /// The question at this token, and how many tokens it has.
    fn question(&self, lexemes: &[Lexeme], at: usize) -> Option<(Question, usize)> {
        let lexeme = lexemes.get(at)?;
        let sign = |offset: usize, sign| lexemes.get(at + offset).is_some_and(|lexeme| lexeme.is_sign(sign));
        if lexeme.kind == Kind::SystemVariable {
            let scoped = sign(2, b'.');
            if scoped && !lexemes.get(at + 1)?.is_any(self.text, &["SESSION", "LOCAL"]) {
                return None;
            }
            let len = if scoped { 4 } else { 2 };
            let question = match lexemes.get(at + len - 1)?.word {
                Word::WarningCount => Question::WarningCount,
                Word::ErrorCount => Question::ErrorCount,
                Word::PseudoThreadId => Question::ConnectionId,
                _ => return None,
            };
            return Some((question, len));
        }
        let question = match lexeme.word {
            Word::RowCount => Question::RowCount,
            Word::FoundRows => Question::FoundRows,
            Word::ConnectionId => Question::ConnectionId,
            _ => return None,
        };
        (sign(1, b'(') && sign(2, b')')).then_some((question, 3))
    }

    /// The statement compares numbers that only the server can mean.
    fn means_the_servers_own(&self, lexemes: &[Lexeme]) -> bool {
        let tables = ["PROCESSLIST", "PERFORMANCE_SCHEMA", "INFORMATION_SCHEMA", "SYS", "MYSQL"];
        let functions = ["IS_USED_LOCK", "PS_THREAD_ID", "KILL"];
        let named = |lexeme: &Lexeme| {
            matches!(lexeme.kind, Kind::Word | Kind::Name) && {
                let name = lexeme.of(self.text);
                let name = name.strip_prefix(b"`").and_then(|name| name.strip_suffix(b"`")).unwrap_or(name);
                tables.iter().chain(&functions).any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
            }
        };
        lexemes.iter().any(named)
    }

    fn put_answer(&mut self, lexemes: &[Lexeme], tokens: Range<usize>, question: Question, value: i128) {
        let (Some(first), Some(last)) = (lexemes.get(tokens.start), lexemes.get(tokens.end.wrapping_sub(1))) else {
            return;
        };
        let place = first.start..last.end;
        let written = self.text.get(place.clone()).unwrap_or_default();
        // The question is written as the client wrote it, in its own character set.
        let answer = question.answer(value, "\0");
        let mut parts = answer.splitn(2, '\0');
        let (before, after) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        self.edits.push((place, [before.as_bytes(), written, after.as_bytes()].concat()));
    }

    /// Follows the select lists.
    fn step(
        &mut self,
        lexemes: &[Lexeme],
        at: usize,
        after_dot: bool,
        levels: &mut Vec<Level>,
    ) -> Result<(), Question> {
        let (Some(lexeme), Some(level)) = (lexemes.get(at), levels.last_mut()) else { return Ok(()) };
        match lexeme.kind {
            Kind::Punct(b'(') => levels.push(Level::default()),
            Kind::Punct(b')') => {
                let level = *level;
                levels.truncate(levels.len().saturating_sub(1).max(1));
                self.end_item(lexemes, level, at)?;
            }
            Kind::Punct(b',') if level.item.is_some() => {
                let ended = std::mem::replace(level, Level { item: Some(at + 1), asks: None });
                self.end_item(lexemes, ended, at)?;
            }
            Kind::Word if after_dot => {}
            Kind::Word if lexeme.is_any(self.text, &["SELECT", "RETURNING"]) => {
                *level = Level { item: Some(at + 1), asks: None };
            }
            Kind::Word if level.item == Some(at) && lexeme.is_any(self.text, MODIFIERS) => level.item = Some(at + 1),
            Kind::Word if level.item.is_some() && lexeme.is_any(self.text, ENDS_OF_LISTS) => {
                let ended = std::mem::take(level);
                self.end_item(lexemes, ended, at)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A column of a select list ends before this token: without an alias it gets the name it would have had.
    fn end_item(&mut self, lexemes: &[Lexeme], level: Level, end: usize) -> Result<(), Question> {
        let (Some(start), Some(question)) = (level.item, level.asks) else { return Ok(()) };
        let item = lexemes.get(start..end).unwrap_or_default();
        let (Some(first), Some(last)) = (item.first(), item.last()) else { return Ok(()) };
        if self.is_named(item).ok_or(question)? {
            return Ok(());
        }
        let name = self.text.get(first.start..last.end).unwrap_or_default();
        // Where a second byte of a character may look like a quote.
        let unreadable = !name.is_ascii() && !matches!(self.mode.multibyte, Multibyte::No | Multibyte::Single);
        if self.executable || unreadable || name.len() > LONGEST_NAME {
            return Err(question);
        }
        let mut alias = b" AS `".to_vec();
        for byte in name {
            alias.extend_from_slice(if *byte == b'`' { b"``" } else { std::slice::from_ref(byte) });
        }
        alias.push(b'`');
        self.edits.push((last.end..last.end, alias));
        Ok(())
    }

    /// Whether a column of a select list has an alias; none if that takes a parser to tell.
    fn is_named(&self, item: &[Lexeme]) -> Option<bool> {
        let back = |n: usize| item.len().checked_sub(n).and_then(|at| item.get(at));
        let last = back(1)?;
        if !matches!(last.kind, Kind::Word | Kind::Name | Kind::Text) {
            let ends = matches!(last.kind, Kind::Punct(b')') | Kind::Number { .. } | Kind::UserVariable);
            return ends.then_some(false);
        }
        let Some(previous) = back(2) else { return Some(false) };
        let count = |word| item.iter().filter(|lexeme| lexeme.is(self.text, word)).count();
        if last.is(self.text, "END") && count("CASE") == count("END") {
            return Some(false);
        }
        match previous.kind {
            Kind::Word if previous.is(self.text, "AS") => Some(true),
            Kind::Word if previous.is(self.text, "END") && count("CASE") == count("END") => Some(true),
            // `@@warning_count n`, `t.c n`
            Kind::Word | Kind::Name => {
                let full = back(3).is_some_and(|it| it.kind == Kind::SystemVariable || it.is_sign(b'.'));
                full.then_some(true)
            }
            Kind::SystemVariable => Some(false),
            Kind::Punct(b')') | Kind::Number { .. } | Kind::UserVariable => {
                (!last.is_any(self.text, UNITS)).then_some(true)
            }
            Kind::Punct(_) => Some(false),
            _ => None,
        }
    }

    pub(super) fn edited(self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.text.len() + self.edits.len() * 64);
        let mut at = 0;
        for (place, new) in self.edits {
            text.extend_from_slice(self.text.get(at..place.start).unwrap_or_default());
            text.extend_from_slice(&new);
            at = place.end;
        }
        text.extend_from_slice(self.text.get(at..).unwrap_or_default());
        text
    }
}

/// Servers cut the names of columns at 255 or 256 characters, and refuse a longer alias.
const LONGEST_NAME: usize = 250;

/// What may stand between `SELECT` and the first column.
const MODIFIERS: &[&str] = &[
    "ALL",
    "DISTINCT",
    "DISTINCTROW",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_CACHE",
    "SQL_NO_CACHE",
    "SQL_CALC_FOUND_ROWS",
];

/// Whether these tokens of a `SET` are what is to be set.
fn is_target(lexemes: &[Lexeme], at: usize, len: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| lexemes.get(at));
    let begins = before.is_some_and(|before| before.word == Word::Set || before.is_sign(b','));
    let assigned = |next: &Lexeme| next.is_sign(b'=') || next.kind == Kind::Assign;
    lexemes.first().is_some_and(|first| first.word == Word::Set)
        && begins
        && lexemes.get(at + len).is_some_and(assigned)
}

/// What ends a select list.
const ENDS_OF_LISTS: &[&str] = &[
    "FROM",
    "INTO",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "WINDOW",
    "PROCEDURE",
    "FOR",
    "LOCK",
    "ON",
];

/// `INTERVAL .. DAY`: what looks like an alias and is none.
const UNITS: &[&str] = &[
    "MICROSECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
    "SECOND_MICROSECOND",
    "MINUTE_MICROSECOND",
    "MINUTE_SECOND",
    "HOUR_MICROSECOND",
    "HOUR_SECOND",
    "HOUR_MINUTE",
    "DAY_MICROSECOND",
    "DAY_SECOND",
    "DAY_MINUTE",
    "DAY_HOUR",
    "YEAR_MONTH",
];
