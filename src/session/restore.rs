//! Restore: what brings a backend to a session's state.
use std::sync::Arc;

use super::state::State;

/// What a backend connection holds (or a session wants it to hold) of a session.
#[derive(Clone, Debug)]
pub struct BackendState {
    /// Schema, character sets, variables.
    pub state: Arc<State>,
    /// What `LAST_INSERT_ID()` returns.
    pub last_insert_id: u64,
    /// Whether several statements in one text are allowed (COM_SET_OPTION).
    pub multi_statements: bool,
    /// Whether the list of warnings may hold something.
    pub warned: bool,
}

/// How to get from one state to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing to do.
    Nothing,
    /// Send these first.
    Restore(Restore),
    /// The session has chosen no schema and the backend has one: nothing but a reset or another backend helps.
    Unreachable,
}

/// Commands that bring a backend to a session's state, in this order. Each is answered by one OK (or ERR).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restore {
    /// `SET NAMES utf8mb4`, where the schema's name could not be sent otherwise.
    pub prelude: Option<&'static str>,
    /// COM_INIT_DB. Must be awaited before the client's command is sent: it fails if the schema was dropped meanwhile.
    pub schema: Option<Vec<u8>>,
    /// One `SET` with all other differences.
    pub set: Option<String>,
    /// COM_SET_OPTION: allow several statements in one text, or not. The reply is an EOF (or OK).
    pub multi_statements: Option<bool>,
    /// A statement that empties the list of warnings.
    pub clear: Option<&'static str>,
}

/// What is to be done before a session that wants `to` may use a backend that holds `from`.
#[must_use]
pub fn plan(from: &BackendState, to: &BackendState) -> Plan {
    let _ = (from, to);
    todo!()
}
