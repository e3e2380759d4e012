//! What the session of a client is, apart from any connection. Pure.

mod ask;
mod pin;
mod restore;
mod state;

use std::sync::Arc;

use crate::protocol::capability::StatusFlags;
use crate::protocol::command::Command;
use crate::protocol::packet::ok::OkPacket;
use crate::protocol::packet::session_track::{Change, changes};
use crate::protocol::packet::session_track::{Flavour, Wishes};
use crate::sql::{Effects, Flags, Locking, Mode, Plain};

pub use ask::{Ask, Followup, Rows};
pub use pin::{PinReason, PinSet};
pub use restore::{BackendState, Plan, Restore, plan};
pub use state::{Charset, Interner, State, StateSpec, Value};

/// What a session is told when it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The server is MariaDB.
    pub mariadb: bool,
    /// The client asked for CLIENT_MULTI_STATEMENTS.
    pub multi_statements: bool,
    /// The client asked for CLIENT_SESSION_TRACK.
    pub tracks: bool,
}

/// What the session remembers of its last statement, for the statements that ask about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// `ROW_COUNT()`
    pub row_count: i64,
    /// `FOUND_ROWS()`
    pub found_rows: u64,
    /// `@@warning_count`
    pub warnings: u64,
    /// `@@error_count`
    pub errors: u64,
    /// The rows of `SHOW WARNINGS`, if they were saved.
    pub list: Option<Rows>,
}

/// A client's session.
#[derive(Debug)]
pub struct Session {
    wanted: BackendState,
    pins: PinSet,
    options: Options,
    interner: Arc<Interner>,
    turn: Turn,
    doubts: Vec<Box<str>>,
    memory: Memory,
    in_transaction: bool,
    statements: Vec<u32>,
    prepared_effects: Flags,
    names: Vec<u64>,
    wishes: Wishes,
}
impl Session {
    /// .
    #[must_use]
    pub fn new(initial: Arc<State>, interner: Arc<Interner>, options: Options) -> Self {
        Self {
            wanted: BackendState {
                state: initial,
                last_insert_id: 0,
                multi_statements: options.multi_statements,
                warned: false,
            },
            pins: PinSet::default(),
            options,
            interner,
            turn: Turn::default(),
            doubts: vec![],
            memory: Memory { row_count: 0, found_rows: 0, warnings: 0, errors: 0, list: None },
            in_transaction: false,
            statements: vec![],
            prepared_effects: Flags::NONE,
            names: vec![],
            wishes: Wishes::new(if options.mariadb { Flavour::MariaDb } else { Flavour::MySql }),
        }
    }
    /// .
    #[must_use]
    pub fn state(&self) -> &Arc<State> {
        &self.wanted.state
    }
    /// .
    #[must_use]
    pub fn pins(&self) -> PinSet {
        self.pins
    }
    /// .
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        !self.pins.is_empty()
    }
    /// .
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.wanted.state.mode(self.options.mariadb)
    }
    /// .
    #[must_use]
    pub fn held(&self) -> BackendState {
        self.wanted.clone()
    }
    /// .
    #[must_use]
    pub fn wishes(&self) -> &Wishes {
        &self.wishes
    }
    /// .
    pub fn observe_option(&mut self, on: bool) {
        self.wanted.multi_statements = on;
    }
    /// .
    #[must_use]
    pub fn owes(&self) -> Vec<Ask> {
        vec![]
    }
    /// .
    pub fn moved(&mut self) {}
    /// .
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
    /// .
    #[must_use]
    pub fn answers(&self, _plain: Plain) -> bool {
        false
    }
    /// .
    pub fn reset(&mut self, state: Arc<State>) {
        let (i, o, m) = (Arc::clone(&self.interner), self.options, self.wanted.multi_statements);
        *self = Self::new(state, i, o);
        self.wanted.multi_statements = m;
    }
}
/// What is known of the turn under way.
#[derive(Debug, Default)]
struct Turn {
    command: Option<Command>,
    effects: Effects,
    /// Pins that this turn set on suspicion, and which end if the server refuses its only statement.
    suspected: PinSet,
    /// Our own trackers were changed.
    rearm: bool,
    failed: bool,
}

/// What a text may do, and the pin that it then sets. The last column: does the pin stand even if the statement fails?
const SUSPICIONS: &[(Flags, PinReason, bool)] = &[
    (Flags::WRITES_USER_VARIABLE, PinReason::UserVariables, true),
    (Flags::GET_LOCK, PinReason::UserLock, true),
    (Flags::CREATE_TEMPORARY, PinReason::TemporaryTable, false),
    (Flags::FLUSH_AND_LOCK, PinReason::GlobalReadLock, true),
    (Flags::LOCK_INSTANCE, PinReason::InstanceLock, false),
    (Flags::BACKUP_BEGIN, PinReason::BackupStage, true),
    (Flags::HANDLER_OPEN, PinReason::Handler, false),
    (Flags::CALC_FOUND_ROWS, PinReason::FoundRows, true),
    (Flags::PREPARE, PinReason::TextPrepare, false),
    (Flags::RUNS_UNSEEN, PinReason::Call, true),
    (Flags::XA_START, PinReason::Xa, false),
    (Flags::SET_ROLE, PinReason::Role, false),
    (Flags::SET_RESOURCE_GROUP, PinReason::ResourceGroup, false),
    (Flags::SET_TRANSACTION, PinReason::OneShotTransaction, false),
    (Flags::SET_ONE_SHOT, PinReason::WriteOnlyVariable, true),
    (Flags::SET_WRITE_ONLY, PinReason::WriteOnlyVariable, true),
    (Flags::READS_SEQUENCE, PinReason::Sequence, true),
    (Flags::BINLOG, PinReason::Call, true),
    (Flags::OPAQUE, PinReason::Unexplained, true),
];

/// What explains that the server reports a change without saying which.
const EXPLAINS_CHANGE: Flags = Flags::WRITES_USER_VARIABLE
    .and(Flags::CREATE_TEMPORARY)
    .and(Flags::DROP_TABLE)
    .and(Flags::DROP_TEMPORARY)
    .and(Flags::PREPARE)
    .and(Flags::DEALLOCATE)
    .and(Flags::RUNS_UNSEEN)
    .and(Flags::SET_ROLE);

/// Reported variables that are not carried as reported: they are used up, cannot be read back, or report a value that
/// means something else than setting it.
const NOT_CARRIED: &[&str] = &[
    "gtid_next",
    "gtid_seq_no",
    "gtid_domain_id",
    "server_id",
    "insert_id",
    "pseudo_replica_mode",
    "pseudo_slave_mode",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "skip_parallel_replication",
    "skip_replication",
    // Reports the time itself after SET timestamp=DEFAULT.
    "timestamp",
];

impl Session {
    /// A command is about to be sent. `effects` are its text's, or nothing if it has none (or is read as it goes).
    pub fn begin(&mut self, command: Command, effects: Effects) {
        self.turn = Turn { command: Some(command), effects, ..Turn::default() };
        if matches!(command, Command::StmtExecute | Command::StmtBulkExecute | Command::StmtFetch) {
            // Which of the open statements it is does not matter as long as they all pin.
            self.turn.effects.flags = self.prepared_effects;
            self.turn.effects.statements = 1;
        }
        if command != Command::StmtPrepare {
            self.suspect();
        }
    }

    /// The text was read only while it was sent: its effects come late, but before any observation.
    pub fn late_effects(&mut self, effects: Effects) {
        self.turn.effects = effects;
        if self.turn.command != Some(Command::StmtPrepare) {
            self.suspect();
        }
    }

    fn suspect(&mut self) {
        let effects = self.turn.effects;
        let before = self.pins;
        for (flags, reason, stands) in SUSPICIONS {
            if effects.may(*flags) {
                self.pins.insert(*reason);
                if !stands {
                    self.turn.suspected.insert(*reason);
                }
            }
        }
        self.turn.suspected = self.turn.suspected.without(before);
        if effects.may(Flags::SAVEPOINT) && !self.in_transaction {
            self.pins.insert(PinReason::AutocommitSavepoint);
        }
        if !self.options.tracks
            && effects.may(Flags::SET_VARIABLE | Flags::SET_CHARSET | Flags::USE | Flags::LOCK_TABLES)
        {
            self.pins.insert(PinReason::Unexplained);
        }
        if effects.may(Flags::SETS_LAST_INSERT_ID | Flags::RUNS_UNSEEN) {
            self.doubts.push("last_insert_id".into());
        }
        if effects.may(Flags::SET_COLLATION) {
            self.doubts.extend(
                ["character_set_client", "character_set_connection", "character_set_results", "collation_connection"]
                    .map(Into::into),
            );
        }
    }

    /// A statement's result ended well; `rows` is how many it sent, if it was a result set.
    pub fn observe_ok(&mut self, ok: &OkPacket<'_>, rows: Option<u64>) {
        self.observe_status(ok.status);
        self.turn.failed = false;
        let previous = self.memory.clone();
        self.memory = Memory {
            row_count: if rows.is_some() { -1 } else { i64::try_from(ok.affected_rows).unwrap_or(-1) },
            found_rows: rows.unwrap_or(previous.found_rows),
            warnings: u64::from(ok.warnings),
            errors: 0,
            list: None,
        };
        if ok.insert_id != 0 {
            self.doubts.push("last_insert_id".into());
        }
        if !ok.session_state.is_empty() {
            self.observe_changes(ok.session_state);
        }
        self.observe_ends();
    }

    /// A result's status flags, where it ended with an EOF packet.
    pub fn observe_status(&mut self, status: StatusFlags) {
        let open = StatusFlags::SERVER_STATUS_IN_TRANS | StatusFlags::SERVER_STATUS_IN_TRANS_READONLY;
        self.in_transaction = status.intersects(open);
        self.pins.put(PinReason::Transaction, self.in_transaction);
    }

    /// A statement failed.
    pub fn observe_err(&mut self, _code: u16) {
        self.turn.failed = true;
        self.memory = Memory { row_count: -1, found_rows: self.memory.found_rows, warnings: 1, errors: 1, list: None };
        if self.turn.effects.is_certain() {
            self.pins = self.pins.without(self.turn.suspected);
        }
    }

    /// COM_STMT_PREPARE was answered by a statement.
    pub fn observe_prepared(&mut self, statement_id: u32) {
        self.statements.push(statement_id);
        self.prepared_effects = self.prepared_effects | self.turn.effects.flags;
        self.pins.insert(PinReason::PreparedStatement);
    }

    /// COM_STMT_CLOSE was sent.
    pub fn observe_closed(&mut self, statement_id: u32) {
        self.statements.retain(|open| *open != statement_id);
        if self.statements.is_empty() {
            self.prepared_effects = Flags::NONE;
            self.pins.remove(PinReason::PreparedStatement);
        }
    }

    /// .
    pub fn end(&mut self) -> Followup {
        if !self.turn.effects.may(Flags::CALC_FOUND_ROWS) {
            self.pins.remove(PinReason::FoundRows);
        }
        if !self.pins.is_empty() || self.doubts.is_empty() {
            return Followup::None;
        }
        let mut names = std::mem::take(&mut self.doubts);
        names.sort();
        names.dedup();
        Followup::Ask(Ask::Variables(names))
    }
    /// .
    pub fn answer(&mut self, ask: &Ask, rows: Option<Rows>) {
        let (Ask::Variables(names), Some(row)) = (ask, rows.and_then(|r| r.into_iter().next())) else {
            self.pins.insert(PinReason::Unexplained);
            return;
        };
        for (name, value) in names.iter().zip(row) {
            let text = value.clone().and_then(|v| String::from_utf8(v).ok()).map(String::into_boxed_str);
            match &**name {
                "last_insert_id" => self.wanted.last_insert_id = text.and_then(|t| t.parse().ok()).unwrap_or(0),
                "character_set_client" => self.change(|s| s.charset.client = text.unwrap_or_default()),
                "character_set_connection" => self.change(|s| s.charset.connection = text.unwrap_or_default()),
                "character_set_results" => self.change(|s| s.charset.results = text),
                "collation_connection" => self.change(|s| s.charset.collation = text.unwrap_or_default()),
                _ => self.carry(name, &value.unwrap_or_default()),
            }
        }
    }
    fn change(&mut self, f: impl FnOnce(&mut StateSpec)) {
        self.wanted.state = self.interner.changed(&self.wanted.state, f);
    }
    fn carry(&mut self, name: &str, value: &[u8]) {
        self.change(|s| {
            s.variables.insert(name.into(), value.into());
        });
    }
    /// .
    pub fn rearm_trackers(&mut self) -> bool {
        std::mem::take(&mut self.turn.rearm)
    }

    /// Pins that end because this one statement succeeded.
    fn observe_ends(&mut self) {
        let effects = self.turn.effects;
        if !effects.is_certain() || self.turn.command != Some(Command::Query) {
            return;
        }
        for (flags, reason) in [
            (Flags::UNLOCK_TABLES, PinReason::GlobalReadLock),
            (Flags::UNLOCK_INSTANCE, PinReason::InstanceLock),
            (Flags::BACKUP_END, PinReason::BackupStage),
            (Flags::XA_FINISH, PinReason::Xa),
            (Flags::COMMIT, PinReason::AutocommitSavepoint),
            (Flags::ROLLBACK, PinReason::AutocommitSavepoint),
        ] {
            if effects.may(flags) {
                self.pins.remove(reason);
            }
        }
        if effects.locking == Some(Locking::ReleaseAll) {
            self.pins.remove(PinReason::UserLock);
        }
        self.observe_names(effects);
    }

    /// Text PREPARE and DEALLOCATE, by name.
    fn observe_names(&mut self, effects: Effects) {
        if effects.may(Flags::PREPARE) {
            match effects.name {
                Some(name) if !self.names.contains(&name) => self.names.push(name),
                Some(_) => {}
                // A name that nobody can deallocate for certain.
                None => self.names.push(0),
            }
        } else if effects.may(Flags::DEALLOCATE) {
            self.names.retain(|name| Some(*name) != effects.name);
            if self.names.is_empty() {
                self.pins.remove(PinReason::TextPrepare);
            }
        }
    }

    /// What the server reports.
    fn observe_changes(&mut self, raw: &[u8]) {
        let (mut named, mut unnamed) = (false, false);
        for change in changes(raw) {
            match change {
                Ok(Change::Variable { name, value }) => named |= self.observe_variable(name, value),
                Ok(Change::Schema(schema)) => {
                    named = true;
                    let schema = (!schema.is_empty()).then_some(schema);
                    self.change(|s| s.schema = schema.map(Into::into));
                }
                Ok(Change::StateChanged(changed)) => unnamed |= changed,
                Ok(Change::Characteristics(text)) => {
                    named = true;
                    self.pins.put(PinReason::OneShotTransaction, !text.is_empty() && !self.in_transaction);
                }
                Ok(Change::Transaction(state)) => {
                    named = true;
                    self.pins.put(PinReason::Locks, state.contains(&b'L'));
                    let open = self.in_transaction || state.first().is_some_and(|first| *first != b'_');
                    self.pins.put(PinReason::Transaction, open);
                }
                Ok(Change::Gtid(_)) => {}
                Ok(Change::Unknown { .. }) | Err(_) => {
                    self.pins.insert(PinReason::Unexplained);
                }
            }
        }
        if unnamed && !named && !self.turn.effects.may(EXPLAINS_CHANGE) {
            self.pins.insert(PinReason::Unexplained);
        }
    }

    /// A variable's new value; false if it does not count as a change.
    fn observe_variable(&mut self, name: &[u8], value: &[u8]) -> bool {
        let Ok(name) = str::from_utf8(name) else {
            self.pins.insert(PinReason::Unexplained);
            return true;
        };
        match name {
            // MySQL 9 reports it with every OK.
            "statement_id" => return false,
            "last_insert_id" | "identity" => self.doubts.push("last_insert_id".into()),
            "character_set_client" | "character_set_connection" | "character_set_results" | "collation_connection" => {
                self.doubts.extend(
                    [
                        "character_set_client",
                        "character_set_connection",
                        "character_set_results",
                        "collation_connection",
                    ]
                    .map(Into::into),
                )
            }
            _ if name.starts_with("session_track_") => {
                self.wishes.set(name.as_bytes(), value);
                self.turn.rearm = true;
            }
            _ if NOT_CARRIED.contains(&name) => {
                self.pins.insert(PinReason::WriteOnlyVariable);
            }
            _ if self.turn.effects.may(Flags::SET_STATEMENT) => self.doubts.push(name.into()),
            _ => self.carry(name, value),
        }
        true
    }
}
