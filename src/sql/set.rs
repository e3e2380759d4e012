//! The statement `SET`: which variables it assigns, and how.

use super::rules::{Kind, Rules, Token};
use super::word::LONGEST;
use super::{Flags, Word};

/// Where in a `SET` statement we are.
#[derive(Debug)]
pub(super) struct Set {
    part: Part,
    /// The last scope that was named, in this assignment or an earlier one.
    global: bool,
    /// This assignment names its scope.
    scoped: bool,
    /// This assignment has `@@`.
    at: bool,
    name: Word,
    text: [u8; LONGEST],
    len: usize,
    depth: u32,
    /// `SET STATEMENT`: ends at `FOR`.
    for_statement: bool,
    timestamp: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Before the `=` (or what stands for it).
    Target,
    /// After it, up to a comma.
    Value,
    /// `SET PASSWORD`, `SET ROLE`, ...: no assignments, but accounts.
    Accounts,
}

/// What `timestamp` is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timestamp {
    Untouched,
    Next,
    Fixed,
    Freed,
    Unseen,
}

impl Set {
    pub(super) const fn new() -> Self {
        Self {
            part: Part::Target,
            global: false,
            scoped: false,
            at: false,
            name: Word::None,
            text: [0; LONGEST],
            len: 0,
            depth: 0,
            for_statement: false,
            timestamp: Timestamp::Untouched,
        }
    }

    pub(super) const fn begin(&mut self) {
        *self = Self::new();
    }

    /// Whether `name@name` is an account here.
    pub(super) fn names_accounts(&self) -> bool {
        self.part == Part::Accounts
    }

    /// Whether a user variable would be what is assigned here.
    pub(super) fn is_at_target(&self) -> bool {
        self.part == Part::Target
    }

    fn next_assignment(&mut self) {
        *self = Self { global: self.global, for_statement: self.for_statement, ..Self::new() };
    }

    fn target(&mut self, token: &Token<'_>) {
        self.name = token.word;
        self.len = token.text.len();
        for (to, byte) in self.text.iter_mut().zip(token.text) {
            *to = *byte;
        }
    }

    fn text(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}

impl Rules {
    /// A token of a `SET` statement, after the word itself.
    pub(super) fn set_token(&mut self, token: &Token<'_>, after_dot: bool) {
        match self.set.part {
            Part::Target => self.set_target(token, after_dot),
            Part::Value => self.set_value(token),
            Part::Accounts => {}
        }
    }

    /// The `SET` statement is over.
    pub(super) fn end_set(&mut self) {
        let flags = match self.set.timestamp {
            Timestamp::Untouched => Flags::NONE,
            Timestamp::Fixed => Flags::SET_TIMESTAMP,
            Timestamp::Freed => Flags::FREE_TIMESTAMP,
            Timestamp::Next | Timestamp::Unseen => Flags::SET_TIMESTAMP_UNSEEN,
        };
        self.set.timestamp = Timestamp::Untouched;
        self.flag(flags);
    }

    fn set_target(&mut self, token: &Token<'_>, after_dot: bool) {
        match token.kind {
            Kind::UserVariable => {
                self.flag(Flags::WRITES_USER_VARIABLE | Flags::CREATES_USER_VARIABLE);
                self.set.part = Part::Value;
            }
            Kind::SystemVariable => self.set.at = true,
            Kind::Word if !after_dot && self.set.name == Word::None => self.set_word(token),
            Kind::Word | Kind::Name => self.set.target(token),
            Kind::Punct(b'=') | Kind::Assign => {
                self.assign();
                self.set.part = Part::Value;
            }
            Kind::Punct(b',') => self.set.next_assignment(),
            _ => {}
        }
    }

    /// A word where a scope, a name, or another form of `SET` may stand.
    fn set_word(&mut self, token: &Token<'_>) {
        match token.word {
            Word::Global | Word::Persist | Word::PersistOnly => (self.set.global, self.set.scoped) = (true, true),
            Word::Session | Word::Local => (self.set.global, self.set.scoped) = (false, true),
            _ if self.set.at => self.set.target(token),
            Word::Names | Word::Charset | Word::Character | Word::Char => {
                self.flag(Flags::SET_VARIABLE.and(Flags::SET_CHARSET).and(Flags::SET_COLLATION));
                self.changes_lexing = true;
                self.set.part = Part::Value;
            }
            Word::Transaction => {
                let flags = match (self.set.scoped, self.set.global) {
                    (false, _) => Flags::SET_TRANSACTION,
                    (true, true) => Flags::SET_GLOBAL,
                    (true, false) => Flags::SET_VARIABLE,
                };
                self.flag(flags);
                self.set.part = Part::Accounts;
            }
            Word::Role | Word::Authorization => {
                self.flag(Flags::SET_ROLE);
                self.set.part = Part::Accounts;
            }
            Word::Resource => {
                self.flag(Flags::SET_RESOURCE_GROUP);
                self.set.part = Part::Accounts;
            }
            Word::Password | Word::Default => self.set.part = Part::Accounts,
            Word::Statement => {
                self.flag(Flags::SET_STATEMENT);
                self.set.for_statement = true;
            }
            _ => self.set.target(token),
        }
    }

    fn set_value(&mut self, token: &Token<'_>) {
        self.set.timestamp = match (self.set.timestamp, token.kind) {
            (before, Kind::Punct(b',')) if self.set.depth == 0 => before,
            (Timestamp::Next, Kind::Number { whole: true }) if token.number == Some(0) => Timestamp::Freed,
            (Timestamp::Next, Kind::Number { .. }) if token.number.is_some_and(|n| n > 0) => Timestamp::Fixed,
            (Timestamp::Next, Kind::Word) if token.word == Word::Default => Timestamp::Freed,
            (Timestamp::Untouched, _) => Timestamp::Untouched,
            _ => Timestamp::Unseen,
        };
        match token.kind {
            Kind::Punct(b'(') => self.set.depth += 1,
            Kind::Punct(b')') => self.set.depth = self.set.depth.saturating_sub(1),
            Kind::Punct(b',') if self.set.depth == 0 => {
                self.end_set();
                self.set.next_assignment();
            }
            Kind::Word if self.set.for_statement && self.set.depth == 0 && token.word == Word::For => {
                self.end_set();
                self.restart();
            }
            _ => {}
        }
    }

    /// An assignment to a system variable: name and scope are known.
    fn assign(&mut self) {
        let (name, scoped) = (self.set.name, self.set.scoped);
        if self.set.global {
            self.flag(Flags::SET_GLOBAL);
            // Whether an earlier GLOBAL still counts depends on the server's version: then both are assumed.
            if scoped {
                return;
            }
        }
        if let Some(tracker) = tracker(self.set.text()) {
            let is = |name: &[u8]| tracker.eq_ignore_ascii_case(name);
            self.flag(if is(b"schema") || is(b"gtids") { Flags::SET_MINOR_TRACKER } else { Flags::SET_TRACKER });
        } else {
            self.flag(Flags::SET_VARIABLE);
        }
        if name.is_one_shot() {
            self.flag(Flags::SET_ONE_SHOT);
        }
        if name.is_write_only() {
            self.flag(Flags::SET_WRITE_ONLY);
        }
        if name.is_charset() {
            self.flag(Flags::SET_CHARSET);
        }
        match name {
            Word::CollationConnection => self.flag(Flags::SET_COLLATION),
            Word::LastInsertId | Word::Identity => self.flag(Flags::SETS_LAST_INSERT_ID),
            Word::Timestamp => self.set.timestamp = Timestamp::Next,
            _ => {}
        }
        self.changes_lexing |= name.changes_lexing();
        if self.set.at && !scoped {
            if name.is_characteristic() {
                self.flag(Flags::SET_TRANSACTION);
            } else if self.mariadb && !self.set.for_statement {
                self.found.unreported.push(self.set.text.get(..self.set.len).unwrap_or_default());
            }
        }
    }
}

/// What follows `session_track_`.
pub(super) fn tracker(name: &[u8]) -> Option<&[u8]> {
    let (front, tracker) = name.split_at_checked(14)?;
    front.eq_ignore_ascii_case(b"session_track_").then_some(tracker)
}
