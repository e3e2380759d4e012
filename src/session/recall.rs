//! Recall: what a statement asks about the one before it, answered from memory.
//!
//! A list (`SHOW WARNINGS`) is answered by other rows in the server's own result. Numbers and `GET DIAGNOSTICS` are
//! answered by the server itself, from a text that says what they were.

use std::fmt::Write;

use super::memory::{Found, UNKNOWN_COUNT};
use super::{PinReason, Rows, Session, Statement};
use crate::sql::{self, Effects, Flags, GetDiagnostics, Item, Mode, Plain, Question, Reworded, Word};

/// Where a statement gets its answer from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recall {
    /// From the backend, as it is.
    Backend,
    /// From the backend, with these rows in place of its own.
    Rows(Plain, Rows),
    /// From the backend, by this text in place of the client's.
    Text(Vec<u8>),
    /// From nobody: this is not known any more.
    Lost(&'static str),
}

const ASKING: Flags = Flags::READS_DIAGNOSTICS.and(Flags::READS_CONNECTION_ID);

impl Session {
    /// How a text that is about to be run gets its answer. `id` is the client's own number.
    #[must_use]
    pub fn recall(&self, text: &[u8], effects: &Effects, id: u32) -> Recall {
        if !effects.may(ASKING) {
            return Recall::Backend;
        }
        self.recall_from(text, self.mode(), effects, Some(id))
    }

    fn recall_from(&self, text: &[u8], mode: Mode, effects: &Effects, id: Option<u32>) -> Recall {
        let memory = &self.memory;
        if let Some(plain) = effects.plain {
            return self.recall_list(plain);
        }
        if effects.first_flags.any(Flags::READS_WARNINGS) && matches!(effects.first, Word::Get | Word::Show) {
            return self.recall_statement(text, mode, effects);
        }
        let uses_table = effects.first_flags.any(Flags::READS_TABLE)
            || matches!(effects.first, Word::Insert | Word::Replace | Word::Update | Word::Delete);
        // MariaDB empties the list before a statement that uses a table, MySQL when it warns of `FOUND_ROWS()`.
        let emptied = if self.options.mariadb { uses_table } else { effects.first_flags.any(Flags::READS_FOUND_ROWS) };
        let asks_for_list = memory.list_moved && !emptied;
        if asks_for_list && effects.first_flags.any(Flags::READS_WARNINGS) && !memory.knows_list() {
            return Recall::Lost(LIST);
        }
        let lost = memory.found_moved && memory.found == Found::Lost;
        if lost && effects.first_flags.any(Flags::READS_FOUND_ROWS) {
            return Recall::Lost(Question::FoundRows.text());
        }
        let unknown = memory.count_moved && memory.row_count == UNKNOWN_COUNT;
        if unknown && effects.first_flags.any(Flags::READS_ROW_COUNT) {
            return Recall::Lost(Question::RowCount.text());
        }
        let answer = |question| match question {
            Question::RowCount => memory.count_moved.then_some(memory.row_count.into()),
            Question::FoundRows => memory.found_moved.then_some(memory.found_rows.into()),
            Question::WarningCount => asks_for_list.then_some(memory.warnings.into()),
            Question::ErrorCount => asks_for_list.then_some(memory.errors.into()),
            Question::ConnectionId => id.and_then(|id| self.own_number(id)),
            Question::UserVariable => None,
        };
        match sql::reword(text, mode, answer) {
            Reworded::AsIs => Recall::Backend,
            Reworded::Text(text) => Recall::Text(text),
            Reworded::Unclear(question) => Recall::Lost(question.text()),
        }
    }

    /// A prepared statement that is about to be executed: a text is to be prepared in place of its own, rows are its own. (The client's
    /// number was put into that when it was prepared.)
    #[must_use]
    pub fn recall_execute(&self, statement: &Statement, effects: &Effects) -> Recall {
        if !effects.may(Flags::READS_DIAGNOSTICS) {
            return Recall::Backend;
        }
        if !statement.must_hold() {
            return self.recall_from(statement.text.bytes(), statement.text.mode(), effects, None);
        }
        self.recall_as_it_is(effects)
    }

    /// A statement that has a name is about to be executed: what it asks was fixed when it was prepared.
    #[must_use]
    pub fn recall_named(&self, effects: &Effects) -> Recall {
        match effects.plain {
            _ if !effects.may(Flags::READS_DIAGNOSTICS) => Recall::Backend,
            Some(plain) => self.recall_list(plain),
            None => self.recall_as_it_is(effects),
        }
    }

    /// The list of warnings.
    fn recall_list(&self, plain: Plain) -> Recall {
        match self.memory.rows(plain) {
            _ if !self.memory.list_moved => Recall::Backend,
            Some(rows) => Recall::Rows(plain, rows),
            None => Recall::Lost(LIST),
        }
    }

    /// A question that cannot be put in other words.
    fn recall_as_it_is(&self, effects: &Effects) -> Recall {
        let memory = &self.memory;
        if memory.count_moved && effects.may(Flags::READS_ROW_COUNT) {
            Recall::Lost(Question::RowCount.text())
        } else if memory.found_moved && effects.may(Flags::READS_FOUND_ROWS) {
            Recall::Lost(Question::FoundRows.text())
        } else if memory.list_moved && memory.warnings > 0 && effects.may(Flags::READS_WARNINGS) {
            Recall::Lost(LIST)
        } else {
            Recall::Backend
        }
    }

    /// A text that is about to be prepared: only the client's own number is known now.
    #[must_use]
    pub fn recall_number(&self, text: &[u8], effects: &Effects, id: u32) -> Recall {
        if !effects.may(Flags::READS_CONNECTION_ID) {
            return Recall::Backend;
        }
        let answer = |question| (question == Question::ConnectionId).then(|| self.own_number(id)).flatten();
        match sql::reword(text, self.mode(), answer) {
            Reworded::Text(text) => Recall::Text(text),
            Reworded::AsIs | Reworded::Unclear(_) => Recall::Backend,
        }
    }

    /// MySQL counts in the OK of a CALL what the statement before has counted, if the procedure runs none: what leaves the same
    /// number on a backend that has another one. (More than one cannot be left without a table.)
    #[must_use]
    pub fn count_for_call(&self, effects: &Effects) -> Option<&'static str> {
        let memory = &self.memory;
        let moved = !self.options.mariadb && effects.may(Flags::CALL) && memory.count_moved;
        moved.then_some(if memory.row_count == 1 { "SELECT 1 INTO @`myriad: one`" } else { "DO 0" })
    }

    /// None where the client has chosen another one (`SET pseudo_thread_id`).
    fn own_number(&self, id: u32) -> Option<i128> {
        (!self.pins.contains(PinReason::WriteOnlyVariable)).then_some(id.into())
    }

    /// `GET DIAGNOSTICS`, or `SHOW WARNINGS` in a form that cannot be told from its text alone.
    fn recall_statement(&self, text: &[u8], mode: Mode, effects: &Effects) -> Recall {
        let memory = &self.memory;
        if !memory.list_moved && !memory.count_moved {
            return Recall::Backend;
        }
        if effects.first == Word::Show {
            let gone = memory.list_moved && memory.warnings > 0;
            return if gone { Recall::Lost(LIST) } else { Recall::Backend };
        }
        let Some(get) = sql::get_diagnostics(text, mode) else { return Recall::Lost(DIAGNOSTICS) };
        let conditions = memory.list.as_deref().map_or(0, |list| list.len() as u64);
        let asks_for_list = get.condition.is_some() || get.items.iter().any(|(_, item)| *item == Item::Number);
        if asks_for_list && !memory.list_moved {
            let counts = get.items.iter().any(|(_, item)| *item == Item::RowCount);
            return if counts { Recall::Lost(DIAGNOSTICS) } else { Recall::Backend };
        }
        if asks_for_list && !memory.knows_list() {
            return Recall::Lost(DIAGNOSTICS);
        }
        match get.condition {
            // There is no such condition on the backend either, and the server says so.
            Some(n) if n == 0 || n > conditions => Recall::Backend,
            _ => self.as_assignments(&get).map_or(Recall::Lost(DIAGNOSTICS), Recall::Text),
        }
    }

    /// `SET` of the same variables to the same values, of the same types.
    fn as_assignments(&self, get: &GetDiagnostics) -> Option<Vec<u8>> {
        let memory = &self.memory;
        let mut text = b"SET ".to_vec();
        for (n, (variable, item)) in get.items.iter().enumerate() {
            let condition = match get.condition {
                Some(n) => Some(memory.condition(n, self.options.mariadb)?),
                None => None,
            };
            let value = match (item, condition) {
                (Item::RowCount, _) if memory.count_moved && memory.row_count == UNKNOWN_COUNT => return None,
                (Item::RowCount, _) if memory.count_moved => memory.row_count.to_string(),
                (Item::RowCount, _) => "ROW_COUNT()".to_owned(),
                (Item::Number, _) => unsigned(memory.list.as_deref().map_or(0, Vec::len)),
                (Item::Errno, Some(condition)) => unsigned(condition.code),
                (Item::Message, Some(condition)) => system_text(condition.message),
                (Item::State, Some(condition)) => system_text(&condition.state?),
                (_, None) => return None,
            };
            if n > 0 {
                text.extend_from_slice(b", ");
            }
            text.extend_from_slice(variable);
            text.extend_from_slice(b" = ");
            text.extend_from_slice(value.as_bytes());
        }
        Some(text)
    }
}

/// What refusals call the list.
const LIST: &str = "the list of warnings";
const DIAGNOSTICS: &str = "the diagnostics";

fn unsigned(number: impl std::fmt::Display) -> String {
    format!("CAST({number} AS UNSIGNED)")
}

/// Text in the server's own character set (that of `VERSION()`), whose name MySQL warns of.
fn system_text(text: &[u8]) -> String {
    let mut sql = "CONCAT(LEFT(VERSION(),0),_utf8mb4 0x".to_owned();
    for byte in text {
        let _ = write!(sql, "{byte:02X}");
    }
    if text.is_empty() {
        return "LEFT(VERSION(),0)".to_owned();
    }
    sql.push(')');
    sql
}
