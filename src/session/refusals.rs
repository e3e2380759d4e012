//! Commands that run no statement: they, and above all their errors, count as the last statement all the same.
//!
//! Measured: `ROW_COUNT()` is -1 after such an error. MariaDB has nothing else on its list then; MySQL adds it to what is
//! there. Of KILL, which is a statement though the proxy answers it, both make a list of its own.
//! After an answer that is no error `ROW_COUNT()` is 0 if it was an OK, and -1 if it was what ends rows. MySQL warns of
//! COM_FIELD_LIST before it looks for the table.

use super::Session;
use super::memory::Found;
use crate::protocol::command::Command;
use crate::sql::Flags;

/// Errors of KILL, and of a preparation.
const OF_STATEMENTS: [u16; 5] = [1094, 1095, 1295, 1317, 1461];

/// Errors of commands about prepared statements, at which MySQL begins to count anew.
const ABOUT_STATEMENTS: [u16; 3] = [1210, 1243, 1421];

/// ER_WARN_DEPRECATED_SYNTAX of COM_FIELD_LIST
const DEPRECATED: &[u8] = b"'COM_FIELD_LIST' is deprecated and will be removed in a future release. \
    Please use SHOW COLUMNS FROM statement instead";

/// ER_RESIGNAL_WITHOUT_ACTIVE_HANDLER
const NO_HANDLER: u16 = 1645;

impl Session {
    /// Whether the list that the next error of this kind is added to is on the backend only.
    #[must_use]
    pub fn misses_list(&self) -> bool {
        !self.options.mariadb && !self.memory.list_moved && !self.memory.knows_list()
    }

    /// Whether only the backend knows `FOUND_ROWS()`.
    #[must_use]
    pub fn misses_found_rows(&self) -> bool {
        self.memory.found == Found::OnBackend
    }

    /// A command was refused with this error, without asking the server.
    pub fn observe_refused(&mut self, code: u16, state: [u8; 5], message: &str) {
        self.note_refusal(code, message.as_bytes(), true, ABOUT_STATEMENTS.contains(&code));
        self.observe_state(Some(state));
    }

    /// An answer without an error to a command that is no statement; `rows`: what ends rows, not an OK.
    pub(super) fn observe_other_ok(&mut self, rows: bool) {
        match self.turn.command {
            Command::StmtPrepare | Command::StmtSendLongData => return,
            Command::FieldList => self.note_deprecation(),
            _ => {}
        }
        if rows {
            self.memory.observe_other_rows();
        } else {
            self.memory.observe_other(false);
        }
    }

    /// MySQL's warning of COM_FIELD_LIST.
    fn note_deprecation(&mut self) {
        if !self.options.mariadb {
            self.memory.warned_too(row("Warning", 1287, DEPRECATED), self.longest_list());
            self.warned = true;
        }
    }

    /// How many rows the list may have.
    fn longest_list(&self) -> usize {
        let usual = if self.options.mariadb { 64 } else { 1024 };
        let set = self.state.variable("max_error_count").and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
        set.unwrap_or(usual)
    }

    /// The server's ERR to a command that is no statement, to be told after [`Session::observe_err`].
    pub fn observe_other_err(&mut self, code: u16, message: &[u8]) {
        if self.resignals(code) {
            return self.memory.refused_too(row("Error", code, message), (false, true), self.longest_list());
        }
        let command = self.turn.command;
        if self.turn.runs_statement() || command == Command::StmtPrepare {
            return;
        }
        if command == Command::FieldList {
            self.note_deprecation();
        }
        self.note_refusal(code, message, false, matches!(command, Command::StmtFetch | Command::StmtReset));
        self.warned = true;
    }

    /// The error that ended the statement is not on the backend's list of warnings; to be told after
    /// [`Session::observe_err`].
    pub fn observe_error_elsewhere(&mut self, code: u16, message: &[u8]) {
        self.memory.refused_anew(row("Error", code, message), true, self.longest_list());
        self.warned = false;
    }

    /// RESIGNAL outside of a handler: on both servers its error is added to the list.
    pub(super) fn resignals(&self, code: u16) -> bool {
        code == NO_HANDLER && self.turn.runs_statement() && !self.turn.flags.any(Flags::RUNS_UNSEEN)
    }

    fn note_refusal(&mut self, code: u16, message: &[u8], here: bool, afresh: bool) {
        let (row, most) = (row("Error", code, message), self.longest_list());
        if self.options.mariadb || OF_STATEMENTS.contains(&code) {
            self.memory.refused_anew(row, here, most);
        } else {
            self.memory.refused_too(row, (here, afresh), most);
        }
    }

    /// KILL was answered without asking the session's own backend; it has hit so many.
    pub fn observe_kill(&mut self, hit: u64) {
        self.memory.killed(self.options.mariadb, hit);
    }

    /// How many warnings an OK to a command that is no statement must count, if the backend does not know.
    #[must_use]
    pub fn counted_warnings(&self) -> Option<u16> {
        if self.options.mariadb { None } else { self.memory.counts() }
    }
}

/// A row of the list.
fn row(level: &str, code: u16, message: &[u8]) -> Vec<Option<Vec<u8>>> {
    [level.as_bytes(), code.to_string().as_bytes(), message].map(|field| Some(field.to_vec())).to_vec()
}
