//! Calls of functions that are not the server's own: a name before a parenthesis, where a call may stand.
//!
//! No tracker and no text says what such a function does to the session, so none may be missed. A name is not called:
//!
//! - if it is the server's own (`builtin`);
//! - in what `CREATE`, `ALTER`, `INSERT` and `REPLACE` have in front of their first expression: names of tables, columns,
//!   types (what may be computed there, defaults and the like, is refused if it calls a stored function);
//! - behind what no expression can follow: another value, `INTO`, `AS`, a closing parenthesis, ...;
//! - as one of several names in a `WITH`;
//! - if a bare `SELECT` follows the parenthesis, for an argument would need parentheses of its own, or a `*`.

use super::builtin::{Spelling, is_builtin};
use super::rules::{Kind, Rules, Token};
use super::{Flags, Word};

/// Where in a statement we are, as far as calls are concerned.
#[derive(Debug)]
pub(super) struct Calls {
    /// The last name stands where a call may.
    callable: bool,
    /// The last name has another and a dot in front.
    qualified: bool,
    /// No expression has begun yet in which a function could be called.
    quiet: bool,
    /// There was a name and its parenthesis: the next token decides.
    pending: Pending,
    /// There was a `WITH`.
    with: bool,
    /// Open parentheses since then, the innermost one in the lowest bit; set: it follows an `AS`.
    nest: u64,
    /// The last token closed what `AS (` had opened.
    closed: bool,
    /// The last token is the comma between two names of a `WITH`.
    goes_on: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    No,
    /// A call, unless a bare `SELECT` follows.
    Call,
    /// A call only if nothing stands in the parentheses.
    WithoutArgument,
}

impl Calls {
    pub(super) const fn new() -> Self {
        Self {
            callable: false,
            qualified: false,
            quiet: false,
            pending: Pending::No,
            with: false,
            nest: 0,
            closed: false,
            goes_on: false,
        }
    }

    /// Whether a sign or a literal needs no look.
    pub(super) fn may_pass(&self, kind: Kind, previous: Kind) -> bool {
        let follows_name = matches!(previous, Kind::Word | Kind::Name);
        !self.with && self.pending == Pending::No && !(follows_name && kind == Kind::Punct(b'('))
    }

    fn note_sign(&mut self, sign: u8, previous: Word) {
        let closed = std::mem::take(&mut self.closed);
        self.goes_on = sign == b',' && closed;
        match sign {
            b'(' => {
                self.nest = self.nest << 1 | u64::from(previous == Word::As);
                self.quiet &= previous != Word::Values;
            }
            b')' => {
                self.closed = self.with && self.nest & 1 == 1;
                self.nest >>= 1;
            }
            _ => {}
        }
    }
}

impl Rules {
    /// Every token, in order.
    pub(super) fn call(&mut self, token: &Token<'_>, after_dot: bool, in_system: bool) {
        self.decide(token);
        self.collect_token(token, after_dot);
        let previous = self.statement.previous;
        match token.kind {
            Kind::Word | Kind::Name => self.name_may_call(token, after_dot, in_system),
            Kind::Punct(sign) => {
                if sign == b'(' && matches!(previous, Kind::Word | Kind::Name) && self.statement.calls.callable {
                    self.statement.calls.pending = self.is_call(token);
                    if let Some(collector) = &mut self.collector
                        && self.statement.calls.pending != Pending::No
                    {
                        collector.calls_function();
                    }
                }
                let word = if previous == Kind::Word { self.statement.previous_word } else { Word::None };
                self.statement.calls.note_sign(sign, word);
            }
            _ => self.statement.calls.note_sign(0, Word::None),
        }
        self.commented = false;
    }

    /// The statement is over.
    pub(super) fn end_call(&mut self) {
        if self.statement.calls.pending != Pending::No {
            self.flag(Flags::CALLS_FUNCTION);
        }
        if let Some(collector) = &mut self.collector {
            collector.end_call();
        }
    }

    /// The token after `name (`.
    fn decide(&mut self, token: &Token<'_>) {
        let calls = match std::mem::replace(&mut self.statement.calls.pending, Pending::No) {
            Pending::No => false,
            Pending::Call if token.kind == Kind::Punct(b'*') => false,
            Pending::Call => !(token.kind == Kind::Word && token.word == Word::Select),
            Pending::WithoutArgument => token.kind == Kind::Punct(b')'),
        };
        if calls {
            self.flag(Flags::CALLS_FUNCTION);
        }
    }

    fn name_may_call(&mut self, token: &Token<'_>, after_dot: bool, in_system: bool) {
        let place = self.may_stand_here();
        let statement = &mut self.statement;
        let calls = &mut statement.calls;
        calls.qualified = after_dot;
        if after_dot {
            return; // it stands where the first of the names does
        }
        let listed = std::mem::take(&mut calls.goes_on);
        calls.closed = false;
        if statement.index == 0 {
            let quiet = matches!(token.word, Word::Create | Word::Alter | Word::Insert | Word::Replace);
            calls.quiet = quiet && token.kind == Kind::Word;
        }
        calls.callable = statement.index > 0 && place && !calls.quiet && !listed && !in_system;
        if token.kind == Kind::Word {
            let inserts = matches!(statement.first, Word::Insert | Word::Replace);
            calls.quiet &= match token.word {
                Word::Select => false,
                Word::Set | Word::Values | Word::Value => !inserts,
                Word::Row => statement.previous_word != Word::Values,
                _ => true,
            };
            if token.word == Word::With && !calls.with {
                (calls.with, calls.nest) = (true, 0);
            }
        }
    }

    /// Whether an expression may stand after the last token.
    fn may_stand_here(&self) -> bool {
        match self.statement.previous {
            Kind::Word => !matches!(
                self.statement.previous_word,
                Word::As
                    | Word::Call
                    | Word::Charset
                    | Word::Insert
                    | Word::Into
                    | Word::Procedure
                    | Word::Recursive
                    | Word::Replace
                    | Word::Set
                    | Word::Table
                    | Word::With
            ),
            Kind::Text | Kind::Number { .. } | Kind::Punct(b')') => false,
            _ => true,
        }
    }

    fn is_call(&self, token: &Token<'_>) -> Pending {
        let statement = &self.statement;
        if statement.calls.qualified {
            return Pending::Call;
        }
        let touches = statement.previous_end == token.start;
        let spelling = match statement.previous {
            Kind::Name => Spelling::Quoted,
            _ if touches || (self.mode.ignore_space && !self.commented) => Spelling::Tight,
            _ => Spelling::Apart,
        };
        if is_builtin(token.text, spelling, self.mode) {
            Pending::No
        } else if self.mariadb && is_shape(token.text) {
            Pending::WithoutArgument
        } else {
            Pending::Call
        }
    }
}

/// What makes a shape of shapes on MariaDB. Without an argument it is the name of a stored function.
fn is_shape(name: &[u8]) -> bool {
    let shapes = ["GEOMETRYCOLLECTION", "LINESTRING", "MULTILINESTRING", "MULTIPOINT", "MULTIPOLYGON", "POLYGON"];
    shapes.iter().any(|shape| shape.as_bytes().eq_ignore_ascii_case(name))
}
