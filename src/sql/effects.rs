//! What the lexer answers about one text.

use super::{Flags, Word};

/// What one text may do to its session, and what it exactly is where that is certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// What it may do.
    pub flags: Flags,
    /// The first keyword of the first statement (after `SET STATEMENT .. FOR`, of the statement that follows).
    pub first: Word,
    /// How many statements the text holds (not counting empty ones; stops counting at 65,535).
    pub statements: u16,
    /// The text is exactly one of the forms that can be answered from memory.
    pub plain: Option<Plain>,
    /// The text is exactly one statement that takes or releases user locks by literal names.
    pub locking: Option<Locking>,
    /// The text is exactly one `KILL`.
    pub kill: Option<Kill>,
    /// A hash of the statement's name, where the text is exactly one `PREPARE` or `DEALLOCATE`.
    pub name: Option<u64>,
}

impl Effects {
    /// Whether the text may do any of these.
    #[must_use]
    pub const fn may(&self, flags: Flags) -> bool {
        self.flags.any(flags)
    }

    /// Whether the text is one statement, all of which the server runs: only then may success end a pin.
    #[must_use]
    pub const fn is_certain(&self) -> bool {
        self.statements == 1
            && !self.flags.any(Flags::EXECUTABLE_COMMENT.and(Flags::OPAQUE).and(Flags::COMPOUND).and(Flags::SET_STATEMENT))
    }
}

/// Statements that a session can answer from what it has seen. The expression's own spelling names the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// `SHOW WARNINGS`
    ShowWarnings,
    /// `SHOW ERRORS`
    ShowErrors,
    /// `SHOW COUNT(*) WARNINGS`
    CountWarnings,
    /// `SHOW COUNT(*) ERRORS`
    CountErrors,
    /// `SELECT ROW_COUNT()`, and where the expression stands in the text
    RowCount(Span),
    /// `SELECT FOUND_ROWS()`
    FoundRows(Span),
    /// `SELECT CONNECTION_ID()`
    ConnectionId(Span),
    /// `SELECT @@warning_count`
    WarningCount(Span),
    /// `SELECT @@error_count`
    ErrorCount(Span),
}

/// A stretch of the text, in bytes: `text[start..end]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A text that is exactly one call of a lock function (`SELECT` or `DO`), its name a literal; the number is its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// `SELECT GET_LOCK('name', seconds)`
    Get(u64),
    /// `SELECT RELEASE_LOCK('name')`
    Release(u64),
    /// `SELECT RELEASE_ALL_LOCKS()`
    ReleaseAll,
}

/// `KILL [HARD | SOFT] [CONNECTION | QUERY] n`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// Only the running statement is meant, not the connection.
    pub query_only: bool,
    /// The thread's number; absent where the text computes it, names a user, or names a query (`QUERY ID n`).
    pub id: Option<u64>,
}
