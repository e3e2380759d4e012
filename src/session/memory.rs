//! Memory: what the last statement left for those that ask about it.
//!
//! As long as the session's backend has served nobody else, the server itself answers `ROW_COUNT()`, `SHOW WARNINGS` and
//! the like. After a hand-over (or a question of our own) only the memory knows. Measured on both servers: `ROW_COUNT()`
//! is what the OK says, -1 after rows and after an ERR. `FOUND_ROWS()` is the number of rows of the last `SELECT`;
//! after other statements the servers differ in ways the manual calls undefined, and the last value is kept.

use super::Rows;
use crate::protocol::packet::ok::OkPacket;
use crate::sql::{Flags, Plain, Word};

/// What the session remembers of its last statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// `ROW_COUNT()`
    pub row_count: i64,
    /// `FOUND_ROWS()`
    pub found_rows: u64,
    /// `@@warning_count`
    pub warnings: u64,
    /// `@@error_count`: exact once the list is saved.
    pub errors: u64,
    /// The rows of `SHOW WARNINGS` (level, code, message), if they were saved.
    pub list: Option<Box<Rows>>,
    /// The backend cannot say `ROW_COUNT()` and `FOUND_ROWS()` any more.
    pub(super) counts_moved: bool,
    /// The backend does not have the list of warnings any more.
    pub(super) list_moved: bool,
}

impl Memory {
    /// Whether this statement must be answered from here.
    pub(super) fn answers(&self, plain: Plain) -> bool {
        let known = self.list.is_some() || self.warnings == 0;
        match plain {
            // The server's number would be the backend's.
            Plain::ConnectionId(_) => true,
            Plain::RowCount(_) | Plain::FoundRows(_) => self.counts_moved,
            Plain::ShowWarnings | Plain::ShowErrors | Plain::CountWarnings | Plain::CountErrors => {
                self.list_moved && known
            }
            Plain::WarningCount(_) | Plain::ErrorCount(_) => self.list_moved && known,
        }
    }

    /// A statement was answered from here: it counts as the last one from now on.
    pub(super) fn answered(&mut self, plain: Plain, mariadb: bool) {
        self.row_count = -1;
        self.counts_moved = true;
        match plain {
            Plain::ShowWarnings | Plain::ShowErrors => {}
            Plain::CountWarnings | Plain::CountErrors => self.found_rows = 1,
            Plain::RowCount(_)
            | Plain::FoundRows(_)
            | Plain::ConnectionId(_)
            | Plain::WarningCount(_)
            | Plain::ErrorCount(_) => {
                self.found_rows = 1;
                // MariaDB keeps the list over statements without a table.
                if !mariadb {
                    self.forget_list();
                }
            }
        }
    }

    /// The list of warnings, as the server told it.
    pub(super) fn save(&mut self, rows: Rows) {
        let is_error = |row: &&Vec<Option<Vec<u8>>>| matches!(row.first(), Some(Some(level)) if level == b"Error");
        self.errors = rows.iter().filter(is_error).count() as u64;
        self.warnings = self.warnings.max(rows.len() as u64);
        self.list = Some(Box::new(rows));
    }

    /// A question was put to the backend, or it went to somebody else.
    pub(super) fn moved(&mut self) {
        self.counts_moved = true;
        self.list_moved = true;
    }

    /// An OK ended a statement (or one of several).
    pub(super) fn observe_ok(&mut self, ok: &OkPacket<'_>, rows: Option<u64>, about: &About) {
        self.counts_moved = false;
        self.row_count = if rows.is_some() { -1 } else { i64::try_from(ok.affected_rows).unwrap_or(i64::MAX) };
        match (rows, about.first) {
            (Some(_), _) if about.flags.any(Flags::CALC_FOUND_ROWS) => {}
            (Some(_), Word::Explain | Word::Analyze | Word::Desc | Word::Describe | Word::Handler) => {}
            (Some(_), Word::Show) if about.flags.any(Flags::READS_WARNINGS) => {}
            (Some(rows), _) => self.found_rows = rows,
            // `SELECT .. INTO`
            (None, Word::Select) => self.found_rows = if about.mariadb { 0 } else { ok.affected_rows },
            (None, _) => {}
        }
        if !about.leaves_list() || (ok.warnings > 0 && !about.asks_for_list()) {
            self.forget_list();
            self.warnings = ok.warnings.into();
        }
    }

    /// An ERR ended a statement. It is in the list itself.
    pub(super) fn observe_err(&mut self) {
        self.forget_list();
        self.counts_moved = false;
        (self.row_count, self.warnings, self.errors) = (-1, 1, 1);
    }

    /// There are no warnings.
    pub(super) fn forget_list(&mut self) {
        self.list_moved = false;
        (self.warnings, self.errors, self.list) = (0, 0, None);
    }
}

/// The statement that a reply belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub flags: Flags,
    pub first: Word,
    pub mariadb: bool,
}

impl About {
    /// `SHOW WARNINGS`, `GET DIAGNOSTICS`: on both servers these leave the list alone.
    fn asks_for_list(&self) -> bool {
        matches!(self.first, Word::Show | Word::Get) && self.flags.any(Flags::READS_WARNINGS)
    }

    /// Whether the list of earlier warnings outlives the statement, if it causes none itself.
    fn leaves_list(&self) -> bool {
        let without_table = matches!(
            self.first,
            Word::Begin
                | Word::Commit
                | Word::Do
                | Word::Release
                | Word::Rollback
                | Word::Savepoint
                | Word::Set
                | Word::Start
                | Word::Use
        );
        self.asks_for_list() || (self.mariadb && without_table)
    }

    /// Whether the backend's list is surely empty after this statement, if it caused no warning.
    pub(super) fn clears_list(&self) -> bool {
        if self.mariadb {
            // A SELECT may have no table, and then keeps the list.
            matches!(self.first, Word::Insert | Word::Update | Word::Delete | Word::Replace)
        } else {
            !self.asks_for_list()
        }
    }
}
