//! What the session of a client is, apart from any connection. Pure.

mod ask;
mod pin;
mod restore;
mod state;

use std::sync::Arc;

use crate::protocol::command::Command;
use crate::protocol::packet::ok::OkPacket;
use crate::protocol::packet::session_track::Wishes;
use crate::sql::{Effects, Mode, Plain};

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
    state: Arc<State>,
}

#[allow(unused_variables, reason = "bodies follow")]
impl Session {
    /// A session that has just logged in.
    #[must_use]
    pub fn new(initial: Arc<State>, interner: Arc<Interner>, options: Options) -> Self {
        todo!()
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Why it keeps its backend.
    #[must_use]
    pub fn pins(&self) -> PinSet {
        todo!()
    }

    /// Whether it keeps its backend.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        todo!()
    }

    /// How the server reads its texts.
    #[must_use]
    pub fn mode(&self) -> Mode {
        todo!()
    }

    /// What a backend must hold to serve it; after a turn, what its backend holds.
    #[must_use]
    pub fn held(&self) -> BackendState {
        todo!()
    }

    /// What the client asked to be told by the trackers.
    #[must_use]
    pub fn wishes(&self) -> &Wishes {
        todo!()
    }

    /// Whether the client changed the trackers, so that the proxy's own must be set again. Says so once.
    pub fn rearm_trackers(&mut self) -> bool {
        todo!()
    }

    /// A command is about to be sent (`effects`: of COM_QUERY's and COM_STMT_PREPARE's text, else the default).
    pub fn begin(&mut self, command: Command, effects: Effects) {
        todo!()
    }

    /// The text was lexed only while it was streamed: before the first `observe_*`.
    pub fn late_effects(&mut self, effects: Effects) {
        todo!()
    }

    /// An OK, or the end of rows (`rows`: how many there were).
    pub fn observe_ok(&mut self, ok: &OkPacket<'_>, rows: Option<u64>) {
        todo!()
    }

    /// An ERR.
    pub fn observe_err(&mut self, code: u16) {
        todo!()
    }

    /// A statement was prepared.
    pub fn observe_prepared(&mut self, statement_id: u32) {
        todo!()
    }

    /// COM_STMT_CLOSE was sent.
    pub fn observe_closed(&mut self, statement_id: u32) {
        todo!()
    }

    /// COM_SET_OPTION was answered: several statements in one text are allowed, or not.
    pub fn observe_option(&mut self, multi_statements: bool) {
        todo!()
    }

    /// The turn is over: what must be asked before the backend is let go.
    pub fn end(&mut self) -> Followup {
        todo!()
    }

    /// The answer to a question, `None` if it failed.
    pub fn answer(&mut self, ask: &Ask, rows: Option<Rows>) {
        todo!()
    }

    /// What must be asked before somebody else may use the backend (its hand-over), in this order.
    #[must_use]
    pub fn owes(&self) -> Vec<Ask> {
        todo!()
    }

    /// The backend now serves somebody else: from here on the memory is the only truth.
    pub fn moved(&mut self) {
        todo!()
    }

    /// What it remembers.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        todo!()
    }

    /// Whether this statement must be answered from memory, since the backend that could answer it has moved on.
    #[must_use]
    pub fn answers(&self, plain: Plain) -> bool {
        todo!()
    }

    /// COM_RESET_CONNECTION or COM_CHANGE_USER succeeded; `state` is what the server now has.
    pub fn reset(&mut self, state: Arc<State>) {
        todo!()
    }
}
