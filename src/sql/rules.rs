//! What a sequence of tokens does to a session: word order, not grammar.
//!
//! Most rules look at a statement's first words; functions count anywhere; a word after a dot, inside quotes or after
//! `@@` is a name. `SET` has its own rules (`set`), and whole texts of a known form theirs (`shape`).

use super::calls::Calls;
use super::code::Collector;
use super::set::{Set, tracker};
use super::shape::Shape;
use super::tape::Tape;
use super::{Effects, Flags, Mode, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword or an identifier without quotes.
    Word,
    /// An identifier in quotes.
    Name,
    /// A string.
    Text,
    /// A number; `whole`: digits only.
    Number { whole: bool },
    /// `@name`
    UserVariable,
    /// `@@`; the name follows.
    SystemVariable,
    /// `:=`
    Assign,
    /// Any other byte.
    Punct(u8),
}

/// A token, with its position in the text.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub kind: Kind,
    pub word: Word,
    /// The word or name as spelled; with an opening parenthesis, the last one before it. Empty for other kinds, and for
    /// words too long to matter.
    pub text: &'a [u8],
    /// A hash of the string's bytes, where it was asked for and will mean the same later.
    pub hash: Option<u64>,
    /// Of a number, what stands before the point, if it fits.
    pub number: Option<u64>,
    pub start: u64,
    pub end: u64,
}

#[derive(Debug)]
pub(super) struct Rules {
    pub(super) mariadb: bool,
    pub(super) mode: Mode,
    pub(super) found: Effects,
    pub(super) statement: Statement,
    pub(super) set: Set,
    shape: Shape,
    /// Every token is kept, where the text must be understood more closely.
    pub(super) tape: Option<Box<Tape>>,
    /// An earlier statement may have changed how this one is read.
    unsure: bool,
    /// This statement may change how the next one is read.
    pub(super) changes_lexing: bool,
    /// A comment stands between the last token and the one to come.
    pub(super) commented: bool,
    /// The user variable at hand is only assigned.
    assigned: bool,
    /// It was not named before.
    fresh: bool,
    /// Names what is called, where that is asked for.
    pub(super) collector: Option<Box<Collector>>,
}

/// The statement at hand.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) first: Word,
    second: Word,
    /// How many tokens so far, not counting parentheses at the front.
    pub(super) index: u32,
    pub(super) previous: Kind,
    pub(super) previous_word: Word,
    pub(super) previous_end: u64,
    /// In `@@scope.name`.
    system: bool,
    /// A function's name; the parenthesis must follow.
    function: Word,
    /// `LAST_INSERT_ID(`: with an argument it writes.
    argument: bool,
    /// `ROLLBACK TO`
    to: bool,
    /// The last `@name` was an account's host.
    host: bool,
    pub(super) calls: Calls,
    /// The last `@name` was behind INTO, or behind others that were.
    into: bool,
}

impl Statement {
    const fn new() -> Self {
        Self {
            first: Word::None,
            second: Word::None,
            index: 0,
            previous: Kind::Punct(b';'),
            previous_word: Word::None,
            previous_end: 0,
            system: false,
            function: Word::None,
            argument: false,
            to: false,
            host: false,
            calls: Calls::new(),
            into: false,
        }
    }
}

impl Rules {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            mariadb: mode.mariadb,
            mode,
            found: Effects::default(),
            statement: Statement::new(),
            set: Set::new(),
            shape: Shape::new(),
            tape: None,
            unsure: false,
            changes_lexing: false,
            commented: false,
            assigned: false,
            fresh: false,
            collector: None,
        }
    }

    pub(super) const fn flag(&mut self, flags: Flags) {
        self.found.flags.set(flags);
    }

    /// Whether an earlier statement may have changed how this one is read.
    pub(super) const fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// Whether the token at `at` would follow a word without a gap: then a dot joins names.
    pub(super) fn follows_word(&self, at: u64) -> bool {
        self.statement.previous == Kind::Word && self.statement.previous_end == at
    }

    /// Whether the last token is a dot: then a digit begins a name.
    pub(super) fn follows_dot(&self) -> bool {
        self.statement.previous == Kind::Punct(b'.')
    }

    /// Whether the next string's hash is needed.
    pub(super) fn wants_hash(&self) -> bool {
        self.found.statements == 0 && self.shape.wants_hash()
    }

    /// Whether nothing but a few words could matter here, so that this sign or literal needs no look: the bulk of a long
    /// list of values.
    pub(super) fn pass(&mut self, kind: Kind, end: u64) -> bool {
        let statement = &mut self.statement;
        let idle = self.collector.is_none()
            && statement.index > 2
            && statement.first != Word::Set
            && statement.function == Word::None
            && !statement.argument
            && !statement.system
            && kind != Kind::Punct(b';')
            && statement.calls.may_pass(kind, statement.previous)
            && statement.previous_word != Word::From
            && self.tape.is_none()
            && (self.shape.is_full() || self.found.statements > 0);
        if idle {
            statement.system = false;
            statement.previous = kind;
            statement.previous_word = Word::Other;
            statement.previous_end = end;
            self.commented = false;
        }
        idle
    }

    pub(super) fn token(&mut self, token: &Token<'_>) {
        if let Some(tape) = &mut self.tape {
            tape.push(token);
        }
        if token.kind == Kind::Punct(b';') {
            self.end_statement();
            return;
        }
        if self.found.statements == 0 {
            self.shape.push(token);
        }
        if self.statement.index == 0 && token.kind == Kind::Punct(b'(') {
            return; // `(SELECT ..) UNION ..`
        }
        if self.statement.previous_word == Word::From && (token.kind, token.word) != (Kind::Word, Word::Dual) {
            self.flag(Flags::READS_TABLE);
        }
        let after_dot = self.follows_dot();
        let in_system = self.in_system(token.kind);
        let is_name = matches!(token.kind, Kind::Word | Kind::Name);
        self.function(token, is_name && !after_dot && !in_system);
        self.call(token, after_dot, in_system);
        if in_system && is_name {
            self.system_variable(token);
        }
        match token.kind {
            Kind::Word if !after_dot && !in_system => self.word(token.word),
            Kind::Word | Kind::Name if after_dot && token.word == Word::Currval => self.flag(Flags::READS_SEQUENCE),
            Kind::Word | Kind::Name if after_dot && token.word == Word::Nextval && self.mariadb => {
                self.flag(Flags::READS_SEQUENCE);
            }
            Kind::UserVariable => self.user_variable(token.start),
            Kind::Assign if self.statement.previous == Kind::UserVariable && !self.statement.host => {
                self.flag(Flags::WRITES_USER_VARIABLE | Flags::CREATES_USER_VARIABLE);
                if self.fresh {
                    self.found.mentions.last_is_assigned();
                }
            }
            // A label: only statements that hold others have one.
            Kind::Punct(b':') if self.statement.index == 1 => self.flag(Flags::COMPOUND),
            _ => {}
        }
        // `BEGIN NOT ATOMIC ..`; in sql_mode=ORACLE just `BEGIN ..`.
        if self.statement.first == Word::Begin && self.statement.index == 1 && token.word != Word::Work {
            self.flag(Flags::COMPOUND);
        }
        if self.statement.index == 0 && token.kind != Kind::Word {
            self.begin(Word::Other);
        }
        if self.statement.first == Word::Set && self.statement.index > 0 {
            self.set_token(token, after_dot);
        }
        if self.statement.first == Word::None {
            return; // `SET STATEMENT .. FOR`: what follows is a first word again
        }
        let statement = &mut self.statement;
        statement.system = in_system || token.kind == Kind::SystemVariable;
        statement.previous = token.kind;
        statement.previous_word = token.word;
        statement.previous_end = token.end;
        statement.index = statement.index.saturating_add(1);
    }

    /// Where it stands: it is large, and most texts are short.
    pub(super) fn finish(&mut self) -> Effects {
        self.end_statement();
        let mut found = self.found;
        if found.statements > 1 && found.flags.any(Flags::SET_MINOR_TRACKER) {
            // The statements after it may choose a schema.
            found.flags.set(Flags::SET_TRACKER);
        }
        if found.is_certain() {
            found.plain = self.shape.plain();
            found.locking = self.shape.locking();
            found.kill = self.shape.kill();
            found.name = self.shape.name();
        }
        found
    }

    /// After `SET STATEMENT .. FOR`: the statement proper begins.
    pub(super) fn restart(&mut self) {
        self.statement = Statement::new();
        self.found.first = Word::None;
    }

    pub(super) fn end_statement(&mut self) {
        if self.statement.index > 0 {
            self.found.statements = self.found.statements.saturating_add(1);
            if self.statement.first == Word::Rollback && !self.statement.to {
                self.flag(Flags::ROLLBACK);
            }
            if self.statement.first == Word::Show && self.statement.previous_word == Word::Variables {
                self.flag(Flags::READS_TRACKER);
            }
            self.end_set();
            self.end_call();
            self.unsure |= self.changes_lexing || self.found.flags.any(Flags::RUNS_UNSEEN);
            if self.found.statements == 1 {
                self.found.first_flags = self.found.flags;
            }
        }
        self.statement = Statement::new();
    }

    /// Whether this token belongs to `@@scope.name`.
    fn in_system(&self, kind: Kind) -> bool {
        self.statement.system
            && match kind {
                Kind::Word | Kind::Name => {
                    matches!(self.statement.previous, Kind::SystemVariable | Kind::Punct(b'.'))
                }
                Kind::Punct(b'.') => matches!(self.statement.previous, Kind::Word | Kind::Name),
                _ => false,
            }
    }

    fn system_variable(&mut self, token: &Token<'_>) {
        let is_read = self.statement.first != Word::Set || !self.set.is_at_target();
        self.flag(match token.word {
            Word::WarningCount | Word::ErrorCount => Flags::READS_WARNINGS,
            Word::LastInsertId | Word::Identity => Flags::READS_LAST_INSERT_ID,
            Word::PseudoThreadId => Flags::READS_CONNECTION_ID,
            _ if is_read && tracker(token.text).is_some() => Flags::READS_TRACKER,
            _ => Flags::NONE,
        });
    }

    /// Functions of the server's own: their names may be quoted, and space may stand before the parenthesis.
    fn function(&mut self, token: &Token<'_>, may_name: bool) {
        if self.statement.argument {
            self.statement.argument = false;
            if token.kind != Kind::Punct(b')') {
                self.flag(Flags::SETS_LAST_INSERT_ID);
            }
        }
        if token.kind == Kind::Punct(b'(') {
            self.statement.argument = self.statement.function == Word::LastInsertId;
            self.flag(match self.statement.function {
                Word::GetLock => Flags::GET_LOCK,
                Word::ReleaseLock => Flags::RELEASE_LOCK,
                Word::ReleaseAllLocks => Flags::RELEASE_ALL_LOCKS,
                Word::LastInsertId => Flags::READS_LAST_INSERT_ID,
                Word::RowCount => Flags::READS_ROW_COUNT,
                Word::FoundRows => Flags::READS_FOUND_ROWS,
                Word::ConnectionId => Flags::READS_CONNECTION_ID,
                Word::Lastval => Flags::READS_SEQUENCE,
                Word::ServiceGetReadLocks
                | Word::ServiceGetWriteLocks
                | Word::VersionTokensLockExclusive
                | Word::VersionTokensLockShared => Flags::SERVICE_LOCK,
                // On MySQL these are functions of somebody's own.
                Word::Nextval | Word::Setval if self.mariadb => Flags::READS_SEQUENCE,
                _ => Flags::NONE,
            });
        }
        self.statement.function = if may_name && token.word.is_function() { token.word } else { Word::None };
    }

    fn user_variable(&mut self, at: u64) {
        let statement = &mut self.statement;
        let adjacent_word = statement.previous == Kind::Word && statement.previous_end == at;
        statement.host = matches!(statement.previous, Kind::Text | Kind::Name)
            || (adjacent_word && (statement.first.names_accounts() || self.set.names_accounts()));
        if statement.host {
            return;
        }
        let after_into = statement.previous == Kind::Word && statement.previous_word == Word::Into;
        let into = after_into || (statement.into && statement.previous == Kind::Punct(b','));
        statement.into = into;
        let assigned = into || statement.first == Word::Get;
        self.assigned = assigned || (statement.first == Word::Set && self.set.is_at_target());
        let writes = into || matches!(statement.first, Word::Load | Word::Get | Word::Call);
        self.flag(Flags::USER_VARIABLE);
        if writes {
            self.flag(Flags::WRITES_USER_VARIABLE);
        }
    }

    /// The name of the user variable at hand, as far as it can be known.
    pub(super) fn mention(&mut self, name: &[u8]) {
        if !self.statement.host {
            self.fresh = self.found.mentions.add(name, !self.assigned);
        }
    }

    fn word(&mut self, word: Word) {
        match self.statement.index {
            0 => self.begin(word),
            1 => self.second(word),
            _ => self.later(word),
        }
        self.anywhere(word);
    }

    /// The first word of a statement.
    fn begin(&mut self, word: Word) {
        self.statement.first = word;
        if self.found.statements == 0 && self.found.first == Word::None {
            self.found.first = word;
        }
        self.flag(match word {
            Word::Begin => Flags::BEGIN,
            Word::Binlog => Flags::BINLOG,
            Word::Call => Flags::CALL,
            Word::Commit => Flags::COMMIT,
            Word::Deallocate => Flags::DEALLOCATE,
            Word::Execute => Flags::EXECUTE,
            Word::Grant | Word::Revoke => Flags::CHANGES_ACCOUNTS,
            Word::Kill => Flags::KILL,
            Word::Prepare => Flags::PREPARE,
            Word::Savepoint => Flags::SAVEPOINT,
            Word::Use => Flags::USE,
            _ if word.begins_compound() => Flags::COMPOUND,
            _ => Flags::NONE,
        });
        if word == Word::Set {
            self.set.begin();
        }
    }

    fn second(&mut self, word: Word) {
        self.statement.second = word;
        self.flag(match (self.statement.first, word) {
            (Word::Start, Word::Transaction) => Flags::BEGIN,
            (Word::Lock, Word::Table | Word::Tables) => Flags::LOCK_TABLES,
            (Word::Unlock, Word::Table | Word::Tables) => Flags::UNLOCK_TABLES,
            (Word::Lock, Word::Instance) => Flags::LOCK_INSTANCE,
            (Word::Unlock, Word::Instance) => Flags::UNLOCK_INSTANCE,
            (Word::Backup, Word::Lock) => Flags::BACKUP_BEGIN,
            (Word::Backup, Word::Unlock) => Flags::BACKUP_END,
            (Word::Drop, Word::Table | Word::Tables) => Flags::DROP_TABLE,
            (Word::Drop, Word::Temporary) => Flags::DROP_TEMPORARY,
            (Word::Drop, Word::Prepare) => Flags::DEALLOCATE,
            (Word::Alter | Word::Create | Word::Drop | Word::Rename, Word::User | Word::Role)
            | (Word::Set, Word::Password | Word::Default) => Flags::CHANGES_ACCOUNTS,
            (Word::Xa, Word::Start | Word::Begin) => Flags::XA_START,
            (Word::Xa, Word::End) => Flags::XA_END,
            (Word::Xa, Word::Prepare) => Flags::XA_PREPARE,
            (Word::Xa, Word::Commit | Word::Rollback) => Flags::XA_FINISH,
            _ => Flags::NONE,
        });
    }

    /// The third word and further ones.
    fn later(&mut self, word: Word) {
        let statement = &self.statement;
        self.found.flags.set(match (statement.first, word) {
            (Word::Backup, Word::End) if statement.second == Word::Stage => Flags::BACKUP_END,
            (Word::Backup, _) if statement.second == Word::Stage => Flags::BACKUP_BEGIN,
            (Word::Drop, Word::Table | Word::Tables) if statement.second == Word::Temporary => Flags::DROP_TABLE,
            (Word::Handler, Word::Open) => Flags::HANDLER_OPEN,
            (Word::Handler, Word::Close) => Flags::HANDLER_CLOSE,
            (Word::Flush, Word::Lock | Word::Export) => Flags::FLUSH_AND_LOCK,
            _ => Flags::NONE,
        });
    }

    fn anywhere(&mut self, word: Word) {
        let statement = &mut self.statement;
        statement.to |= word == Word::To;
        let after = if statement.previous == Kind::Word { statement.previous_word } else { Word::None };
        let flags = match (statement.first, word) {
            (Word::Create, Word::Temporary) => Flags::CREATE_TEMPORARY,
            (Word::Create, Word::User | Word::Role) if after == Word::Replace => Flags::CHANGES_ACCOUNTS,
            // (MySQL's costs are those of the moment of the login.)
            (Word::Flush, Word::Privileges | Word::UserResources | Word::OptimizerCosts) => Flags::CHANGES_ACCOUNTS,
            (Word::Flush, Word::Status) => Flags::FLUSH_STATUS,
            (Word::Load, Word::Local) => Flags::LOAD_LOCAL,
            (Word::Create | Word::Alter | Word::Drop, Word::Procedure | Word::Function) => Flags::CHANGES_ROUTINE,
            (Word::Show, Word::Warnings | Word::Errors) => Flags::READS_WARNINGS,
            (Word::Get, Word::Diagnostics) => Flags::READS_WARNINGS.and(Flags::READS_ROW_COUNT),
            (_, Word::SqlCalcFoundRows) => Flags::CALC_FOUND_ROWS,
            (_, Word::Value) if after == Word::Previous || (after == Word::Next && self.mariadb) => {
                Flags::READS_SEQUENCE
            }
            // MariaDB's `SQL%ROWCOUNT`, in sql_mode=ORACLE.
            (_, Word::Rowcount) if statement.previous == Kind::Punct(b'%') => Flags::READS_ROW_COUNT,
            _ => Flags::NONE,
        };
        self.flag(flags);
    }
}
