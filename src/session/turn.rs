//! A turn's beginning and end: what the text may begin, what it provably ended, what must be asked.

use std::ops::{Deref, DerefMut};

use super::memory::{About, Fate, Found};
use super::variables::{TRACKERS, linked};
use super::{Ask, Deed, Followup, PinReason, PinSet, Rare, Rows, Session};
use crate::protocol::command::Command;
use crate::sql::{Effects, Flags, Locking, Names, Plain, Word};

/// The turn at hand.
#[derive(Debug)]
pub(super) struct Turn {
    pub open: bool,
    pub command: Command,
    pub flags: Flags,
    pub first: Word,
    /// The text is one statement, known as a whole: what it does not fail to do, it did.
    pub certain: bool,
    pub locking: Option<Locking>,
    /// What becomes of the list of earlier warnings.
    pub fate: Fate,
    /// `SHOW COUNT(*) WARNINGS`
    pub counts_list: bool,
    pub name: Option<u64>,
    /// OK packets so far.
    pub oks: u32,
    pub failed: bool,
    /// An OK named an insert id.
    pub inserted: bool,
    /// OKs named `character_set_client`, `.._connection` and `.._results`.
    pub charsets_told: [bool; 3],
    /// An OK named a schema.
    pub schema_told: bool,
    /// The server said that the statement has a cursor, or that it was read to its end.
    pub cursor: Option<bool>,
    /// The server said "something changed", and only code that is not seen can have done it.
    pub surprised: bool,
    /// What is called does not exist: nothing ran, unless something that was called says so.
    pub missing: bool,
    /// The server could not read the text, or a text in it.
    pub unread: bool,
    /// What it does to a statement that has a name.
    pub deed: Option<Box<Deed>>,
    /// The same, where that is not known: the flags of its text.
    pub odd: Flags,
    /// Pins as they were before.
    pub before: PinSet,
}

/// The turn at hand, if there is one: an idle session holds none.
#[derive(Debug, Default)]
pub(super) struct AtHand(Option<Box<Turn>>);

/// What is at hand when nothing is.
static NOTHING: Turn = Turn::NOTHING;

impl Deref for AtHand {
    type Target = Turn;
    fn deref(&self) -> &Turn {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for AtHand {
    fn deref_mut(&mut self) -> &mut Turn {
        self.0.get_or_insert_with(|| Box::new(Turn::NOTHING))
    }
}

impl Turn {
    pub(super) const NOTHING: Self = Self {
        open: false,
        command: Command::Ping,
        flags: Flags::NONE,
        first: Word::None,
        certain: false,
        locking: None,
        fate: Fate::Unsure,
        counts_list: false,
        name: None,
        oks: 0,
        failed: false,
        inserted: false,
        charsets_told: [false; 3],
        schema_told: false,
        cursor: None,
        surprised: false,
        missing: false,
        unread: false,
        deed: None,
        odd: Flags::NONE,
        before: PinSet::EMPTY,
    };

    /// Whether a statement is run, not merely prepared or something about the connection asked.
    pub(super) fn runs_statement(&self) -> bool {
        self.command.runs_statement()
    }

    /// Whether a prepared statement is executed that fires no trigger.
    pub(super) fn executes_reading(&self) -> bool {
        let executes = self.command == Command::StmtExecute || self.flags.any(Flags::EXECUTE);
        executes && !self.writes_rows()
    }

    /// Whether a single statement may fire triggers.
    pub(super) fn writes_rows(&self) -> bool {
        matches!(self.first, Word::Insert | Word::Replace | Word::Update | Word::Delete | Word::Load)
    }

    /// What the memory wants to know of the statement.
    pub(super) fn about(&self, mariadb: bool) -> About {
        About {
            flags: self.flags,
            first: self.first,
            mariadb,
            counts_list: self.counts_list,
            bulk: self.command == Command::StmtBulkExecute,
        }
    }

    pub(super) fn succeeded(&self) -> bool {
        self.oks > 0 && !self.failed
    }

    /// Whether the text is one known statement, and it succeeded.
    pub(super) fn certainly_did(&self, flags: Flags) -> bool {
        self.certain && self.succeeded() && self.flags.any(flags)
    }
}

/// What a text may begin, and the pin for it.
const BEGINNINGS: &[(Flags, PinReason)] = &[
    (Flags::RUNS_UNSEEN, PinReason::Call),
    (Flags::GET_LOCK, PinReason::UserLock),
    (Flags::SERVICE_LOCK, PinReason::ServiceLock),
    (Flags::FLUSH_STATUS, PinReason::StatusCounters),
    (Flags::CREATE_TEMPORARY, PinReason::TemporaryTable),
    (Flags::FLUSH_AND_LOCK, PinReason::GlobalReadLock),
    (Flags::LOCK_INSTANCE, PinReason::InstanceLock),
    (Flags::BACKUP_BEGIN, PinReason::BackupStage),
    (Flags::HANDLER_OPEN, PinReason::Handler),
    (Flags::XA_START.and(Flags::XA_END).and(Flags::XA_PREPARE), PinReason::Xa),
    (Flags::SET_ROLE, PinReason::Role),
    (Flags::SET_RESOURCE_GROUP, PinReason::ResourceGroup),
    (Flags::READS_SEQUENCE, PinReason::Sequence),
    (Flags::OPAQUE, PinReason::Unexplained),
    // What it makes of the session outlives a reset, as what `pseudo_slave_mode` does.
    (Flags::BINLOG, PinReason::WriteOnlyVariable),
];

/// What may pin besides those, as the replies tell.
const MAY_PIN: Flags = Flags::BEGIN
    .and(Flags::COMMIT)
    .and(Flags::ROLLBACK)
    .and(Flags::LOCK_TABLES)
    .and(Flags::PREPARE)
    .and(Flags::SAVEPOINT)
    .and(Flags::SET_ONE_SHOT)
    .and(Flags::SET_TIMESTAMP_UNSEEN)
    .and(Flags::SET_TRACKER)
    .and(Flags::SET_TRANSACTION)
    .and(Flags::SET_WRITE_ONLY);

/// ER_PARSE_ERROR: nothing of the statement ran, or a function or trigger in it raised this code itself.
pub const PARSE_ERROR: u16 = 1064;

/// ER_SP_DOES_NOT_EXIST, and the same where a function of the server's own is spelled like that.
const NO_ROUTINE: u16 = 1305;
const NO_FUNCTION: u16 = 1630;

/// What may be there though the statement ended with [`PARSE_ERROR`]: what an expression does before another one fails.
const DONE_BY_EXPRESSIONS: PinSet = PinSet::of(PinReason::UserLock)
    .and(PinSet::of(PinReason::UserVariables))
    .and(PinSet::of(PinReason::TemporaryTable))
    .and(PinSet::of(PinReason::Sequence))
    .and(PinSet::of(PinReason::Call))
    .and(PinSet::of(PinReason::Unexplained));

/// The flags behind those.
const BY_EXPRESSIONS: Flags = Flags::GET_LOCK
    .and(Flags::WRITES_USER_VARIABLE)
    .and(Flags::CREATE_TEMPORARY)
    .and(Flags::READS_SEQUENCE)
    .and(Flags::SETS_LAST_INSERT_ID);

impl Session {
    /// Whether this command may pin the session to the backend that it runs on. (What a trigger does comes as a surprise.)
    #[must_use]
    pub fn may_stay(&self, command: Command, effects: Option<&Effects>) -> bool {
        let Some(effects) = effects.filter(|_| command != Command::StmtSendLongData) else { return true };
        if command == Command::StmtPrepare {
            return !self.options.mariadb && effects.reads_user_variables();
        }
        let mut begins = BEGINNINGS.iter().map(|(flags, _)| *flags).chain([MAY_PIN]);
        self.is_without_autocommit() || begins.any(|flags| effects.may(flags))
    }

    /// A command is about to be sent.
    ///
    /// `effects` are those of COM_QUERY's and COM_STMT_PREPARE's text, and of the statement that is executed.
    pub fn begin(&mut self, command: Command, effects: &Effects) {
        let deed = self.take_deed();
        *self.turn = Turn { open: true, command, before: self.pins, deed, ..Turn::NOTHING };
        // Among its bits are FLUSH TABLES WITH READ LOCK.
        if command == Command::Refresh {
            self.pins.insert(PinReason::GlobalReadLock);
        }
        self.note_effects(effects);
    }

    /// The text was lexed only while it was streamed: to be called before the first `observe_*`.
    pub fn late_effects(&mut self, effects: Effects) {
        self.note_effects(&effects);
    }

    fn note_effects(&mut self, effects: &Effects) {
        let turn = &mut *self.turn;
        turn.fate = About::new(turn.command, effects, self.options.mariadb).fate();
        if turn.command == Command::StmtPrepare {
            // Nothing happens before it is executed; but a variable that it assigns is there from here on.
            self.note_created(effects);
            return;
        }
        turn.flags = effects.flags;
        // Of several statements the first says nothing about the others.
        let several = turn.command == Command::Query && effects.statements > 1;
        turn.first = if several { Word::Other } else { effects.first };
        turn.certain = effects.is_certain() && turn.command.runs_statement();
        turn.locking = effects.locking;
        turn.counts_list = matches!(effects.plain, Some(Plain::CountWarnings | Plain::CountErrors));
        turn.name = effects.name;
        for (flags, reason) in BEGINNINGS {
            if effects.may(*flags) {
                self.pins.insert(*reason);
            }
        }
        self.begin_naming(effects);
        self.note_user_variables(effects);
        if effects.unreported.overflowed() {
            self.pins.insert(PinReason::Unexplained);
        }
        let doubtful = names(&effects.unreported);
        if !doubtful.is_empty() {
            self.rare().doubtful.extend(doubtful);
        }
        // Once a tracker is off, what else the text sets is not reported.
        let sets = effects.may(Flags::SET_VARIABLE) || effects.statements > 1;
        let unreported = effects.may(Flags::SET_TRACKER) && sets;
        if unreported || effects.may(Flags::READS_TRACKER) && (sets || effects.may(Flags::RUNS_UNSEEN)) {
            self.pins.insert(PinReason::Unexplained);
        }
        self.rearm |= effects.may(Flags::SET_MINOR_TRACKER | Flags::READS_TRACKER);
        if effects.may(Flags::SET_TRACKER) {
            self.rearm = true;
            self.rare().doubtful.extend(TRACKERS.iter().map(|name| Box::from(*name)));
        }
    }

    /// The SQLSTATE that came with an ERR, to be told after [`Session::observe_err`].
    pub fn observe_state(&mut self, state: Option<[u8; 5]>) {
        self.memory.note_state(state.unwrap_or(*b"HY000"));
    }

    /// An ERR.
    pub fn observe_err(&mut self, code: u16) {
        self.turn.failed = true;
        self.turn.missing = matches!(code, NO_ROUTINE | NO_FUNCTION) && self.turn.oks == 0;
        self.turn.unread = code == PARSE_ERROR;
        if !self.turn.runs_statement() && self.turn.command != Command::StmtPrepare {
            return;
        }
        self.note_way_back();
        if !self.resignals(code) {
            self.memory.observe_err();
        }
        self.warned = true;
        let unseen = self.turn.flags.any(Flags::RUNS_UNSEEN);
        if code == PARSE_ERROR && self.turn.oks == 0 && !unseen && self.turn.command == Command::Query {
            // No statement ran to its end, so what only a statement begins has not begun.
            self.pins = self.turn.before.and(self.pins.common(DONE_BY_EXPRESSIONS));
            self.turn.flags =
                Flags::each(BY_EXPRESSIONS).filter(|flag| self.turn.flags.any(*flag)).fold(Flags::NONE, Flags::and);
            if let Some(rare) = &mut self.rare {
                rare.doubtful.clear();
            }
        }
        if self.turn.runs_statement() {
            self.suspect_transaction();
        }
        let may_insert = !matches!(
            self.turn.first,
            Word::Select | Word::Set | Word::Show | Word::Prepare | Word::Execute | Word::Deallocate
        );
        let sets = Flags::SETS_LAST_INSERT_ID | Flags::RUNS_UNSEEN;
        if self.turn.runs_statement() && (may_insert || self.turn.flags.any(sets)) {
            // A failed insert may have generated an id.
            self.last_insert_id = None;
        }
        if self.turn.certain {
            self.undo_beginnings();
        }
    }

    /// One statement failed that begins one thing or nothing: what was not pinned before is not pinned by it.
    fn undo_beginnings(&mut self) {
        let turn = &self.turn;
        let mut undone =
            vec![PinReason::GlobalReadLock, PinReason::InstanceLock, PinReason::Role, PinReason::ResourceGroup];
        if turn.flags.any(Flags::XA_START) {
            undone.push(PinReason::Xa);
        }
        for reason in undone {
            if !turn.before.contains(reason) {
                self.pins.remove(reason);
            }
        }
    }

    /// A statement was prepared by the server, with so many warnings.
    pub fn observe_prepared(&mut self, warnings: u16) {
        if !self.options.mariadb {
            // The list of warnings is the preparation's by now.
            self.memory.forget_list();
            self.memory.warnings = warnings.into();
            self.memory.counted = warnings;
            self.warned = warnings > 0;
        } else {
            self.memory.observe_prepared(self.turn.fate);
        }
    }

    /// The client is idle: the last turn is of no interest any more, not even one that broke off with its backend.
    pub fn rest(&mut self) {
        self.turn = AtHand::default();
    }

    /// The turn is over: what must be asked on its backend before anybody else may have that.
    ///
    /// Call it again after each answer, until there is nothing left to ask.
    pub fn end(&mut self) -> Followup {
        if self.turn.open {
            self.turn.open = false;
            self.close_turn();
        }
        let Some(ask) = self.rare.as_ref().and_then(|rare| rare.asks.first()) else {
            self.forget_rare();
            return Followup::None;
        };
        let ask = ask.clone();
        // The question would clear the list.
        if self.warned && !self.memory.list_moved && self.memory.list.is_none() {
            return Followup::Ask(Ask::Warnings);
        }
        if self.memory.found == Found::OnBackend {
            return Followup::Ask(Ask::FoundRows);
        }
        Followup::Ask(ask)
    }

    /// The answer to a question of [`Session::end`] or [`Session::owes`]; `None` if it failed.
    pub fn answer(&mut self, ask: &Ask, rows: Option<Rows>) {
        match ask {
            Ask::Warnings => {
                if let Some(rare) = &mut self.rare {
                    rare.asks.retain(|other| other != ask);
                }
                // An error that was made up since has taken its place.
                if self.memory.list_moved {
                    return;
                }
                self.memory.save(rows.unwrap_or_default());
                return self.memory.asked_for_list();
            }
            Ask::Mark => {
                self.rare().asks.retain(|other| other != ask);
                return self.note_mark(rows.unwrap_or_default());
            }
            Ask::Routines(targets) => self.judge(targets, rows.unwrap_or_default()),
            Ask::FoundRows => {
                let field = rows.as_ref().and_then(|rows| rows.first()?.first()?.as_deref());
                match field.and_then(|text| str::from_utf8(text).ok()?.parse().ok()) {
                    Some(found) => self.memory.save_found_rows(found),
                    None => self.memory.found = Found::Lost,
                }
                // MySQL warns of the function.
                self.warned |= !self.options.mariadb;
            }
            Ask::Role => {
                self.rare().asks.retain(|other| other != ask);
                let own = rows.is_some_and(|rows| rows.first().is_some_and(|row| row == &[Some(b"1".to_vec())]));
                self.pins.put(PinReason::Role, !own);
            }
            Ask::Schema => {
                self.rare().asks.retain(|other| other != ask);
                self.note_schema(rows);
                self.note_told_way_back();
            }
            Ask::UserVariableNames => {
                self.rare().asks.retain(|other| other != ask);
                self.note_user_names(rows.as_ref());
            }
            Ask::UserVariables { names, room } => self.note_user_values(names, *room, rows.as_ref()),
            Ask::Variables(names) => {
                self.rare().asks.retain(|other| other != ask);
                let row = rows.and_then(|rows| rows.into_iter().next()).unwrap_or_default();
                if row.len() == names.len() {
                    self.note_answers(names, &row);
                } else {
                    self.pins.insert(PinReason::Unexplained);
                }
            }
        }
        self.memory.moved();
    }

    fn close_turn(&mut self) {
        self.end_naming();
        self.end_counted();
        self.end_plain();
        self.end_unseen();
        if std::mem::take(&mut self.memory.marked) {
            // Before anything else is asked.
            self.rare().asks.insert(0, Ask::Mark);
        }
        let turn = &self.turn;
        let did_something = turn.oks > 0 || !turn.failed;
        if turn.schema_told && turn.failed {
            // A procedure runs in its own schema and goes back to the caller's; of the way back an ERR reports nothing.
            self.rare().asks.push(Ask::Schema);
        }
        if self.turn.certainly_did(Flags::SET_ROLE) {
            self.rare().asks.push(Ask::Role);
        }
        let Some(rare) = &mut self.rare else { return };
        let mut doubtful = std::mem::take(&mut rare.doubtful);
        for at in 0..doubtful.len() {
            let along = doubtful.get(at).map_or(&[][..], |name| linked(name));
            doubtful.extend(along.iter().map(|name| Box::from(*name)));
        }
        doubtful.sort_unstable();
        doubtful.dedup();
        if !doubtful.is_empty() && did_something {
            rare.asks.push(Ask::Variables(doubtful));
        }
    }

    /// Gives the box back when nothing is in it.
    pub(super) fn forget_rare(&mut self) {
        let in_use = |rare: &Rare| {
            !(rare.statements.is_empty()
                && rare.asks.is_empty()
                && rare.doubtful.is_empty()
                && rare.unseen.is_none()
                && rare.names.is_empty()
                && [&rare.locks, &rare.tables, &rare.handlers].iter().all(|tally| tally.is_empty()))
        };
        if !self.rare.as_deref().is_some_and(in_use) {
            self.rare = None;
        }
    }
}

fn names(names: &Names) -> Vec<Box<str>> {
    names.iter().map(Box::from).collect()
}
