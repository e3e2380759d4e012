//! Memory: what the last statement left for those that ask about it.
//!
//! As long as the session's backend has served nobody else, the server itself answers `ROW_COUNT()`, `SHOW WARNINGS` and
//! the like. After a hand-over (or a question of our own) only the memory knows. Measured on both servers: `ROW_COUNT()`
//! is what the OK says, -1 after rows and after an ERR. `FOUND_ROWS()` is the number of rows of the last `SELECT`; what
//! other statements make of it the manual calls undefined, and the servers differ: the common ones are followed.

use super::Rows;
use crate::protocol::command::Command;
use crate::protocol::packet::ok::OkPacket;
use crate::sql::{Effects, Flags, Plain, Window, Word};

/// What the session remembers of its last statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// `ROW_COUNT()`; `UNKNOWN_COUNT` where only the backend knows.
    pub row_count: i64,
    /// `FOUND_ROWS()`
    pub found_rows: u64,
    /// `@@warning_count`
    pub warnings: u64,
    /// `@@error_count`: exact once the list is saved.
    pub errors: u64,
    /// The rows of `SHOW WARNINGS` (level, code, message), if they were saved.
    pub list: Option<Box<Rows>>,
    /// SQLSTATE of the last error.
    state: [u8; 5],
    /// How many warnings MySQL counts in an OK to a command that is no statement.
    pub counted: u16,
    /// Who knows `FOUND_ROWS()`.
    pub(super) found: Found,
    /// The backend cannot say `ROW_COUNT()` any more.
    pub(super) count_moved: bool,
    /// The backend cannot say `FOUND_ROWS()` any more.
    pub(super) found_moved: bool,
    /// The backend does not have the list of warnings any more.
    pub(super) list_moved: bool,
    /// It has a mark in its place: see `mark`.
    pub(super) marked: bool,
    /// The last statement was answered without a server: see `shown`.
    shown: bool,
}

/// Who knows `FOUND_ROWS()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Found {
    /// The memory.
    #[default]
    Known,
    /// The session's own backend: there were more than came (`SQL_CALC_FOUND_ROWS`).
    OnBackend,
    /// Nobody: the backend was lost with it.
    Lost,
}

impl Memory {
    /// After a reset.
    pub(super) fn after_reset(&self) -> Self {
        let Self { found_rows, found, .. } = *self;
        Self { found_rows, found, found_moved: true, ..Self::default() }
    }

    /// Whether the list of warnings is known, or known to be empty.
    pub(super) fn knows_list(&self) -> bool {
        self.list.is_some() || self.warnings == 0
    }

    /// What this statement must be answered with once the backend does not have the list any more; none if it is not
    /// known.
    pub(super) fn rows(&self, plain: Plain) -> Option<Rows> {
        if !self.knows_list() {
            return None;
        }
        let list = self.list.iter().flat_map(|list| list.iter());
        let within = |window: Window, rows: &mut dyn Iterator<Item = &Vec<Option<Vec<u8>>>>| {
            let place = |n| usize::try_from(n).unwrap_or(usize::MAX);
            rows.skip(place(window.skip)).take(place(window.take)).cloned().collect()
        };
        Some(match plain {
            Plain::ShowWarnings(window) => within(window, &mut { list }),
            Plain::ShowErrors(window) => within(window, &mut list.filter(is_error)),
            Plain::CountWarnings => number(self.warnings),
            Plain::CountErrors => number(self.errors),
        })
    }

    /// A condition of the list, counted from 1.
    pub(super) fn condition(&self, n: u64, mariadb: bool) -> Option<Condition<'_>> {
        let row = self.list.as_deref()?.get(usize::try_from(n.checked_sub(1)?).ok()?)?;
        let [_, Some(code), Some(message)] = row.as_slice() else { return None };
        let code = str::from_utf8(code).ok()?.parse().ok()?;
        // Of several errors the last one is what the statement ended with.
        let is_last = self.list.as_deref()?.iter().rfind(is_error).is_some_and(|last| std::ptr::eq(last, row));
        let state = if is_last { Some(self.state) } else { state_of(code, mariadb) };
        Some(Condition { code, message, state })
    }

    /// A list was answered from here: that counts as the last statement from now on.
    pub(super) fn answered(&mut self, plain: Plain) {
        (self.row_count, self.count_moved, self.counted) = (-1, true, 0);
        if matches!(plain, Plain::CountWarnings | Plain::CountErrors) {
            self.save_found_rows(1);
            self.found_moved = true;
        }
    }

    /// A command that is no statement was refused with this row of the list of errors, which is now all there is.
    pub(super) fn refused_anew(&mut self, row: Vec<Option<Vec<u8>>>, here: bool, most: usize) {
        self.observe_err();
        if here {
            self.moved_with(row, most);
        }
    }

    /// The same on MySQL, which adds the row to the list: wherever that is. `afresh`: it has begun to count anew.
    pub(super) fn refused_too(&mut self, row: Vec<Option<Vec<u8>>>, (here, afresh): (bool, bool), most: usize) {
        self.counted = if afresh { 1 } else { self.counted.saturating_add(1) };
        self.row_count = -1;
        let known = self.knows_list();
        (self.warnings, self.errors) = (self.warnings + 1, self.errors + 1);
        if !here {
            self.count_moved = false;
        }
        if known && (here || self.list_moved) {
            self.moved_with(row, most);
        }
    }

    /// MySQL warns of a command that is no statement: the row is added to the list, wherever that is.
    pub(super) fn warned_too(&mut self, row: Vec<Option<Vec<u8>>>, most: usize) {
        let known = self.knows_list();
        (self.warnings, self.counted) = (self.warnings + 1, 0);
        if known && self.list_moved {
            self.moved_with(row, most);
        }
    }

    /// The backend does not have this last row of the list, which keeps so many of them.
    fn moved_with(&mut self, row: Vec<Option<Vec<u8>>>, most: usize) {
        let list = self.list.get_or_insert_default();
        if list.len() < most {
            list.push(row);
        }
        (self.count_moved, self.list_moved) = (true, true);
    }

    /// The list of warnings, as the server told it.
    pub(super) fn save(&mut self, rows: Rows) {
        self.errors = rows.iter().filter(is_error).count() as u64;
        let counts_all = u64::from(self.counted) == self.warnings;
        self.warnings = self.warnings.max(rows.len() as u64);
        if counts_all {
            self.counted = u16::try_from(self.warnings).unwrap_or(u16::MAX);
        }
        self.list = Some(Box::new(rows));
    }

    /// `FOUND_ROWS()`, as the server told it.
    pub(super) fn save_found_rows(&mut self, found_rows: u64) {
        (self.found_rows, self.found) = (found_rows, Found::Known);
    }

    /// The backend went to somebody else: what was not asked by now is lost.
    pub(super) fn left(&mut self) {
        if self.found == Found::OnBackend {
            self.found = Found::Lost;
        }
        self.moved();
    }

    /// A question was put to the backend, or it went to somebody else.
    pub(super) fn moved(&mut self) {
        (self.count_moved, self.found_moved, self.list_moved) = (true, true, true);
    }

    /// `SHOW WARNINGS` was put to the backend: that leaves everything but `ROW_COUNT()`.
    pub(super) fn asked_for_list(&mut self) {
        (self.count_moved, self.list_moved) = (true, true);
    }

    /// An OK ended a command that is no statement.
    pub(super) fn observe_other(&mut self, moved: bool) {
        (self.row_count, self.count_moved) = (0, moved);
    }

    /// What ends rows did.
    pub(super) fn observe_other_rows(&mut self) {
        (self.row_count, self.count_moved) = (-1, false);
    }

    /// An OK ended a statement (or one of several).
    pub(super) fn observe_ok(&mut self, ok: &OkPacket<'_>, rows: Option<u64>, about: &About) {
        self.counted = ok.warnings;
        if about.asks_for_list() && about.first == Word::Get {
            if ok.warnings > 0 {
                self.note_invalid_condition();
            }
            return;
        }
        self.count_moved = false;
        self.row_count = if rows.is_some() { -1 } else { i64::try_from(ok.affected_rows).unwrap_or(i64::MAX) };
        if about.bulk && !matches!(about.first, Word::Insert | Word::Replace) {
            // The last row's, of which the OK says nothing.
            self.row_count = UNKNOWN_COUNT;
        }
        self.observe_found_rows(ok, rows, about);
        let leaves = match about.fate() {
            Fate::Leaves => ok.warnings == 0 || about.asks_for_list(),
            Fate::Unsure => self.marked && ok.warnings == 0,
            Fate::Clears => false,
        };
        if !leaves {
            self.forget_list();
            self.warnings = ok.warnings.into();
        }
    }

    /// A statement was prepared, which MariaDB empties the list for as if it were run.
    pub(super) fn observe_prepared(&mut self, fate: Fate) {
        if fate == Fate::Clears || (fate == Fate::Unsure && !self.marked) {
            self.forget_list();
        }
    }

    /// A SET was answered without a server: what the backend would say is of an earlier statement.
    pub(super) fn observe_shown(&mut self, ok: &OkPacket<'_>, about: &About) {
        self.observe_ok(ok, None, about);
        (self.shown, self.count_moved, self.list_moved) = (true, true, true);
    }

    /// Whether that was the last statement, and nothing has taken its place: said once.
    pub(super) fn take_shown(&mut self) -> bool {
        std::mem::take(&mut self.shown) && self.count_moved && self.row_count == 0 && self.warnings == 0
    }

    /// A SET runs on the backend in its place.
    pub(super) fn shown_again(&mut self) {
        (self.count_moved, self.list_moved) = (false, false);
    }

    fn observe_found_rows(&mut self, ok: &OkPacket<'_>, rows: Option<u64>, about: &About) {
        let is_here = !self.found_moved;
        let found = found_rows(ok, rows, about);
        self.found_moved &= found.is_none();
        match found {
            Some(Some(found)) => self.save_found_rows(found),
            Some(None) => self.found = Found::OnBackend,
            None => {}
        }
        if rows.is_some() && is_here && about.is_odd() {
            // Some of these count what they return, others leave the number alone: the backend knows which.
            self.found = Found::OnBackend;
        }
    }

    /// `GET DIAGNOSTICS CONDITION n` of none: that is put on the list as well.
    fn note_invalid_condition(&mut self) {
        self.row_count = -1;
        if self.list_moved && self.knows_list() {
            let row = [&b"Error"[..], b"1758", b"Invalid condition number"].map(|it| Some(it.to_vec()));
            self.list.get_or_insert_default().push(row.to_vec());
            self.errors += 1;
        }
        self.warnings += 1;
        self.state = *b"35000";
    }

    /// An ERR ended a statement. It is in the list itself.
    pub(super) fn observe_err(&mut self) {
        self.forget_list();
        self.count_moved = false;
        (self.row_count, self.warnings, self.errors, self.counted) = (-1, 1, 1, 1);
    }

    pub(super) fn note_state(&mut self, state: [u8; 5]) {
        self.state = state;
    }

    /// KILL was answered without the backend. On MySQL this empties the list.
    pub(super) fn killed(&mut self, mariadb: bool, hit: u64) {
        self.observe_other(true);
        self.row_count = i64::try_from(hit).unwrap_or(i64::MAX);
        if !mariadb {
            self.forget_list();
            (self.list_moved, self.counted) = (true, 0);
        }
    }

    /// What MySQL counts in an OK to a command that is no statement, if the backend cannot say any more.
    pub(super) fn counts(&self) -> Option<u16> {
        (self.list_moved || self.count_moved).then_some(self.counted)
    }

    /// There are no warnings.
    pub(super) fn forget_list(&mut self) {
        (self.list_moved, self.marked) = (false, false);
        (self.warnings, self.errors, self.list) = (0, 0, None);
    }
}

/// No number of rows.
pub(super) const UNKNOWN_COUNT: i64 = i64::MIN;

/// The statement that a reply belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub flags: Flags,
    pub first: Word,
    pub mariadb: bool,
    /// `SHOW COUNT(*) WARNINGS`
    pub counts_list: bool,
    /// COM_STMT_BULK_EXECUTE
    pub bulk: bool,
}

/// What becomes of the list of earlier warnings at a statement, if that causes none itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stays.
    Leaves,
    /// It is emptied.
    Clears,
    /// Nobody knows.
    Unsure,
}

impl About {
    /// What a text of these effects is, run or prepared.
    pub(super) fn new(command: Command, effects: &Effects, mariadb: bool) -> Self {
        // Of several statements the first says nothing about the others.
        let several = command == Command::Query && effects.statements > 1;
        Self {
            flags: effects.flags,
            first: if several { Word::Other } else { effects.first },
            mariadb,
            counts_list: matches!(effects.plain, Some(Plain::CountWarnings | Plain::CountErrors)),
            bulk: command == Command::StmtBulkExecute,
        }
    }

    /// `SHOW WARNINGS`, `GET DIAGNOSTICS`: on both servers these leave the list alone.
    fn asks_for_list(&self) -> bool {
        matches!(self.first, Word::Show | Word::Get) && self.flags.any(Flags::READS_WARNINGS)
    }

    /// Whether what it makes of `FOUND_ROWS()` depends on more than is known of it here.
    fn is_odd(&self) -> bool {
        let shows = self.first == Word::Show && !self.flags.any(Flags::READS_WARNINGS);
        shows || matches!(self.first, Word::Explain | Word::Analyze | Word::Desc | Word::Describe)
    }

    /// What becomes of the list.
    pub(super) fn fate(&self) -> Fate {
        let uses_table = self.flags.any(Flags::READS_TABLE);
        match self.first {
            _ if self.asks_for_list() => Fate::Leaves,
            // Of several statements the last may have asked for what the others left.
            Word::Other if !self.mariadb && self.flags.any(Flags::READS_WARNINGS) => Fate::Unsure,
            _ if !self.mariadb => Fate::Clears,
            _ if self.flags.any(UNSURE) => Fate::Unsure,
            Word::Insert | Word::Update | Word::Delete | Word::Replace => Fate::Clears,
            // MariaDB empties it only for a table. A text of comments is nothing.
            Word::None
            | Word::Begin
            | Word::Commit
            | Word::Do
            | Word::Kill
            | Word::Release
            | Word::Rollback
            | Word::Savepoint
            | Word::Select
            | Word::Set
            | Word::Start
            | Word::Use => {
                if uses_table {
                    Fate::Clears
                } else {
                    Fate::Leaves
                }
            }
            _ => Fate::Unsure,
        }
    }
}

/// What may use a table that the text does not show, or may not be what it seems.
const UNSURE: Flags = Flags::RUNS_UNSEEN
    .and(Flags::READS_SEQUENCE)
    .and(Flags::EXECUTABLE_COMMENT)
    .and(Flags::OPAQUE)
    .and(Flags::SET_ROLE);

/// One condition of the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'a> {
    pub code: u16,
    pub message: &'a [u8],
    /// None where it is not known.
    pub state: Option<[u8; 5]>,
}

/// What a statement makes of `FOUND_ROWS()`, as measured; `Some(None)`: only the backend knows. What is not named here leaves
/// the number alone.
fn found_rows(ok: &OkPacket<'_>, rows: Option<u64>, about: &About) -> Option<Option<u64>> {
    let has_from = about.flags.any(Flags::READS_TABLE);
    Some(match (rows, about.first) {
        (Some(_), _) if about.flags.any(Flags::CALC_FOUND_ROWS) => None,
        // MariaDB has found nothing when it has explained a `SELECT` without a table.
        (Some(_), Word::Explain) if about.mariadb && !has_from => Some(0),
        (Some(_), Word::Explain | Word::Analyze | Word::Handler) => return None,
        (Some(_), Word::Desc | Word::Describe) if has_from => return None,
        (Some(_), Word::Show) if about.flags.any(Flags::READS_WARNINGS) && !about.counts_list => return None,
        (Some(rows), _) => Some(rows),
        // `SELECT .. INTO`
        (None, Word::Select) if about.mariadb && !has_from => Some(0),
        (None, Word::Select) => Some(ok.affected_rows),
        // What the procedure's last statement found.
        (None, Word::Call) => None,
        (None, Word::Do) if has_from || !about.mariadb => Some(1),
        (None, Word::Set) if has_from && about.mariadb => Some(1),
        (None, Word::Create) if has_from && about.mariadb => Some(ok.affected_rows),
        // How many were selected, not how many of those were new.
        (None, Word::Insert | Word::Replace) if has_from => None,
        (None, Word::Update) if !about.mariadb => Some(matched(ok.info).unwrap_or(ok.affected_rows)),
        (None, _) => return None,
    })
}

fn is_error(row: &&Vec<Option<Vec<u8>>>) -> bool {
    matches!(row.first(), Some(Some(level)) if level == b"Error")
}

/// The first number of `Rows matched: 4  Changed: 0  Warnings: 0`, in whatever language.
fn matched(info: &[u8]) -> Option<u64> {
    let from = info.iter().position(u8::is_ascii_digit)?;
    let digits = info.get(from..)?.split(|byte| !byte.is_ascii_digit()).next()?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// A result of one number.
fn number(value: u64) -> Rows {
    vec![vec![Some(value.to_string().into_bytes())]]
}

/// The SQLSTATE that servers give to a condition which did not end its statement, for those that are common.
fn state_of(code: u16, mariadb: bool) -> Option<[u8; 5]> {
    Some(*match code {
        1003 | 1007 | 1008 | 1094 | 1105 | 1235 | 1243 | 1260 | 1287 | 1295 | 1364 | 1421 | 1526 | 1681 | 1835 => {
            b"HY000"
        }
        1044 | 1227 | 1305 => b"42000",
        1047 => b"08S01",
        1048 | 1062 | 1452 => b"23000",
        1050 => b"42S01",
        1051 | 1146 => b"42S02",
        1054 => b"42S22",
        1264 => b"22003",
        1265 => b"01000",
        1292 => b"22007",
        1365 => b"22012",
        1366 if mariadb => b"22007",
        1366 => b"HY000",
        1406 => b"22001",
        1758 => b"35000",
        _ => return None,
    })
}
