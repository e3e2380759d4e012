//! What the replies say: trackers, status, insert ids.

use std::sync::Arc;

use super::memory::Fate;
use super::variables::{self, Verdict};
use super::{PinReason, Rows, Session, State, StateSpec};
use crate::protocol::capability::StatusFlags;
use crate::protocol::command::Command;
use crate::protocol::packet::ok::OkPacket;
use crate::protocol::packet::session_track::{Change, changes};
use crate::sql::{Flags, Word};

/// Texts that explain why the server says "the state changed", whatever else it says.
const EXPLAINING: Flags = Flags::WRITES_USER_VARIABLE
    .and(Flags::CREATE_TEMPORARY)
    .and(Flags::DROP_TABLE)
    .and(Flags::DROP_TEMPORARY)
    .and(Flags::PREPARE)
    .and(Flags::DEALLOCATE)
    .and(Flags::SET_ROLE)
    .and(Flags::SET_TRACKER)
    .and(Flags::SET_MINOR_TRACKER)
    .and(Flags::USE)
    .and(Flags::RUNS_UNSEEN);

/// The state as one OK changes it: copied at the first change, interned once at the end.
struct Draft {
    spec: Option<StateSpec>,
    /// Something was reported that explains "the state changed".
    explained: bool,
    state_changed: bool,
    /// `last_insert_id` was reported: as it is at the end of the statement.
    told_insert_id: bool,
}

impl Session {
    /// An OK, or the end of rows (`rows`: how many there were).
    pub fn observe_ok(&mut self, ok: &OkPacket<'_>, rows: Option<u64>) {
        self.turn.oks += 1;
        let told_insert_id = self.observe_changes(ok.session_state);
        self.observe_status(ok.status);
        if !self.turn.runs_statement() {
            return self.observe_other_ok(rows.is_some());
        }
        if ok.insert_id != 0 {
            // Perhaps what LAST_INSERT_ID() returns, perhaps an id that the client chose.
            self.turn.inserted = true;
            self.last_insert_id = None;
        }
        if self.turn.flags.any(Flags::SETS_LAST_INSERT_ID | Flags::RUNS_UNSEEN) && !told_insert_id {
            self.last_insert_id = None;
        }
        // MariaDB's `INSERT .. RETURNING`: its rows end with no insert id at all.
        let may_return =
            matches!(self.turn.first, Word::Insert | Word::Replace | Word::With | Word::Analyze | Word::Other);
        if rows.is_some() && self.options.mariadb && may_return && !told_insert_id {
            self.last_insert_id = None;
        }
        // Of many rows that an id was made for, which one the OK names is not what counts.
        if self.turn.command == Command::StmtBulkExecute && !told_insert_id {
            self.last_insert_id = None;
        }
        // A LOAD's OK has no insert id either, on both servers.
        let several = self.turn.command == Command::Query && self.turn.first == Word::Other;
        let may_load = several || self.turn.first == Word::Load || self.turn.flags.any(Flags::LOAD_LOCAL);
        if may_load && !told_insert_id {
            self.last_insert_id = None;
        }
        let about = self.turn.about(self.options.mariadb);
        self.memory.observe_ok(ok, rows, &about);
        if ok.warnings > 0 {
            self.warned = true;
        } else if about.fate() == Fate::Clears {
            self.warned = false;
        }
    }

    fn observe_status(&mut self, status: StatusFlags) {
        let open = StatusFlags::SERVER_STATUS_IN_TRANS | StatusFlags::SERVER_STATUS_IN_TRANS_READONLY;
        let in_transaction = status.intersects(open);
        let was_open = self.pins.contains(PinReason::Transaction);
        self.pins.put(PinReason::Transaction, in_transaction);
        let autocommit = status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT);
        self.autocommit = Some(autocommit);
        if was_open && !in_transaction {
            self.pins.remove(PinReason::AutocommitSavepoint);
        }
        if self.turn.flags.any(Flags::SAVEPOINT) && !in_transaction && !autocommit {
            self.pins.insert(PinReason::AutocommitSavepoint);
        }
        self.turn.cursor = match status {
            _ if status.contains(StatusFlags::SERVER_STATUS_LAST_ROW_SENT) => Some(false),
            _ if status.contains(StatusFlags::SERVER_STATUS_CURSOR_EXISTS) => Some(true),
            _ => self.turn.cursor,
        };
    }

    /// An ERR carries no status, and without autocommit the statement may have opened a transaction before it failed:
    /// taken for open until the next OK says.
    pub(super) fn suspect_transaction(&mut self) {
        if self.is_without_autocommit() {
            self.pins.insert(PinReason::Transaction);
        }
    }

    /// Whether any statement may open a transaction.
    pub(super) fn is_without_autocommit(&self) -> bool {
        let off = self.state.variable("autocommit").is_some_and(|value| matches!(value, b"OFF" | b"0"));
        off || self.autocommit == Some(false)
    }

    /// Returns whether `last_insert_id` was among the changes.
    fn observe_changes(&mut self, raw: &[u8]) -> bool {
        if raw.is_empty() {
            return false;
        }
        let mut draft = Draft { spec: None, explained: false, state_changed: false, told_insert_id: false };
        for change in changes(raw) {
            match change {
                // MySQL 9 puts it into every report; it says nothing about the session.
                Ok(Change::Variable { name: b"statement_id", .. }) => {}
                Ok(Change::Variable { name, value }) => self.observe_variable(&mut draft, name, value),
                Ok(Change::Schema(schema)) => {
                    self.turn.schema_told = true;
                    let spec = draft.spec.get_or_insert_with(|| self.state.spec().clone());
                    // Unseen code comes back to the schema that it was called from: that explains nothing else.
                    // (A statement that was prepared in another one is executed there.)
                    let back = spec.schema.as_deref().unwrap_or_default() == schema;
                    draft.explained |= !back || self.turn.executes_reading();
                    spec.schema = (!schema.is_empty()).then(|| schema.into());
                }
                Ok(Change::StateChanged(changed)) => draft.state_changed |= changed,
                Ok(Change::Characteristics(statements)) => {
                    draft.explained = true;
                    self.pins.put(PinReason::OneShotTransaction, is_one_shot(statements));
                }
                Ok(Change::Transaction(state)) => {
                    draft.explained = true;
                    self.pins.put(PinReason::Locks, state.get(7) == Some(&b'L'));
                }
                Ok(Change::Gtid(_)) => {}
                Ok(Change::Unknown { .. }) | Err(_) => {
                    self.pins.insert(PinReason::Unexplained);
                }
            }
        }
        // ALTER TABLE of a temporary table reports it too; that rows are written there does not.
        let explained = draft.explained
            || self.turn.flags.any(EXPLAINING)
            || (self.pins.contains(PinReason::TemporaryTable) && !self.turn.writes_rows())
            || self.turn.command == Command::InitDb;
        if draft.state_changed && !explained {
            self.pins.insert(PinReason::Unexplained);
        }
        let by_text = Flags::each(EXPLAINING).any(|flag| !Flags::RUNS_UNSEEN.any(flag) && self.turn.flags.any(flag));
        // (Bodies are read all the same, so here a schema explains it.)
        let told = draft.explained || self.turn.schema_told;
        self.turn.surprised |= draft.state_changed && !told && !by_text;
        self.adopt(draft.spec);
        draft.told_insert_id
    }

    fn observe_variable(&mut self, draft: &mut Draft, name: &[u8], value: &[u8]) {
        let Ok(name) = std::str::from_utf8(name).map(str::to_ascii_lowercase) else {
            self.pins.insert(PinReason::Unexplained);
            return;
        };
        draft.explained = true;
        if self.turn.flags.any(Flags::SET_STATEMENT) {
            // Gone already, or about to be: MariaDB reports it all the same.
            if variables::is_name(&name) {
                self.rare().doubtful.push(name.into());
            } else {
                self.pins.insert(PinReason::Unexplained);
            }
            return;
        }
        let spec = draft.spec.get_or_insert_with(|| self.state.spec().clone());
        let verdict = variables::note(spec, &name, Some(value));
        match &*name {
            "character_set_client" => self.turn.charsets_told[0] = true,
            "character_set_connection" => self.turn.charsets_told[1] = true,
            "character_set_results" => {
                self.turn.charsets_told[2] = true;
                // The default one, unless it was SET NAMES: see `note_answers`.
                spec.charset.results_collation = None;
            }
            _ => {}
        }
        draft.told_insert_id |= matches!(verdict, Verdict::LastInsertId(_));
        let along = variables::linked(&name);
        if !along.is_empty() {
            self.rare().doubtful.extend(along.iter().map(|name| Box::from(*name)));
        }
        if verdict == Verdict::Timestamp {
            self.note_timestamp(spec, value);
        } else {
            self.note_verdict(verdict, &name, value);
        }
    }

    /// The answer to [`Ask::Schema`].
    pub(super) fn note_schema(&mut self, rows: Option<Rows>) {
        let field = rows.and_then(|rows| rows.into_iter().next()).and_then(|row| row.into_iter().next());
        let schema = match field {
            Some(None) => Some(None),
            Some(Some(digits)) => unhex(&digits).map(|schema| Some(schema.into_boxed_slice())),
            None => None,
        };
        match schema {
            Some(schema) => self.adopt(Some(StateSpec { schema, ..self.state.spec().clone() })),
            None => self.pins.put(PinReason::Unexplained, true),
        }
    }

    /// What a question brought to light.
    pub(super) fn note_answers(&mut self, names: &[Box<str>], row: &[Option<Vec<u8>>]) {
        let mut spec = self.state.spec().clone();
        for (name, value) in names.iter().zip(row) {
            let value = value.as_deref();
            match variables::note(&mut spec, name, value) {
                // After SET STATEMENT it is what it was before.
                Verdict::Timestamp if self.turn.flags.any(Flags::SET_STATEMENT) => {}
                Verdict::Timestamp => self.note_timestamp(&mut spec, value.unwrap_or_default()),
                Verdict::OneShot => self.pins.put(PinReason::OneShotVariable, value != Some(b"0")),
                verdict => self.note_verdict(verdict, name, value.unwrap_or_default()),
            }
        }
        if self.turn.charsets_told == [true; 3] && spec.charset.is_uniform() {
            spec.charset.results_collation = Some(spec.charset.collation.clone());
        }
        self.adopt(Some(spec));
    }

    fn note_verdict(&mut self, verdict: Verdict, name: &str, value: &[u8]) {
        let pin = match verdict {
            Verdict::LastInsertId(id) => {
                self.last_insert_id = Some(id);
                return;
            }
            Verdict::Tracker => {
                Arc::make_mut(&mut self.wishes).set(name.as_bytes(), value);
                self.rearm |= self.turn.open;
                return;
            }
            Verdict::OneShot => PinReason::OneShotVariable,
            Verdict::WriteOnly => PinReason::WriteOnlyVariable,
            Verdict::Trace => PinReason::Trace,
            Verdict::Unknown => PinReason::Unexplained,
            Verdict::Carried | Verdict::Timestamp => return,
        };
        self.pins.insert(pin);
    }

    /// `timestamp` is reported as the statement's time even where it was set free; the text tells.
    fn note_timestamp(&mut self, spec: &mut StateSpec, value: &[u8]) {
        let forms = Flags::SET_TIMESTAMP | Flags::FREE_TIMESTAMP | Flags::SET_TIMESTAMP_UNSEEN;
        let is_only = |flag: Flags| self.turn.flags.contains(flag) && !is_any_but(self.turn.flags, forms, flag);
        if is_only(Flags::SET_TIMESTAMP) {
            spec.variables.insert("timestamp".into(), value.into());
        } else if is_only(Flags::FREE_TIMESTAMP) {
            spec.variables.remove("timestamp");
        } else {
            self.pins.insert(PinReason::WriteOnlyVariable);
        }
    }

    /// Takes the drafted state on.
    fn adopt(&mut self, spec: Option<StateSpec>) {
        let Some(spec) = spec.filter(|spec| spec != self.state.spec()) else { return };
        let state = self.interner.intern(spec);
        self.enter(state);
    }

    /// It is in this state from here on.
    pub(super) fn enter(&mut self, state: Arc<State>) {
        let before = self.mode();
        self.state = state;
        if let (true, Some(rare)) = (before != self.mode(), &mut self.rare) {
            // The same spelling may mean another name now.
            [&mut rare.locks, &mut rare.tables].into_iter().for_each(super::Tally::doubt);
        }
    }
}

/// Whether these characteristics are of the next transaction only. MariaDB writes them in wide characters where the
/// schema's own character set has them.
fn is_one_shot(statements: &[u8]) -> bool {
    let holds = |text: &[u8]| memchr::memmem::find(text, b"SET TRANSACTION").is_some();
    let is_wide = || memchr::memchr(0, statements).is_some();
    holds(statements) || (is_wide() && holds(&statements.iter().copied().filter(|b| *b != 0).collect::<Vec<_>>()))
}

/// Whether `flags` has any of `forms` other than `one`.
fn is_any_but(flags: Flags, forms: Flags, one: Flags) -> bool {
    Flags::each(forms).any(|form| form != one && flags.any(form))
}

/// Bytes from their hexadecimal digits.
fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    digits.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characteristics_of_the_next_transaction_only() {
        assert!(is_one_shot(b"SET TRANSACTION READ ONLY;"));
        assert!(is_one_shot(b"\0S\0E\0T\0 \0T\0R\0A\0N\0S\0A\0C\0T\0I\0O\0N\0 \0R"));
        assert!(!is_one_shot(b"START TRANSACTION;") && !is_one_shot(b"\0S\0T\0A\0R\0T\0 \0T") && !is_one_shot(b""));
    }
}
