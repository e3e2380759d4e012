//! What every session begins with: the server's `init_connect`, the operator's `backend.init_sql`, and what a connection
//! has after that.
//!
//! The server runs `init_connect` at a login, but neither at COM_RESET_CONNECTION nor at COM_CHANGE_USER, and not for
//! accounts that may connect in an emergency. It runs in the session that the handshake made, so what it leaves depends
//! on the client's character set: what a client's session begins with is found out by running it (`client/opening`).

use std::sync::Arc;

use super::connection::TRACKERS;
use super::globals::moves;
use super::role::ROLE;
use super::{Backend, QueryError};
use crate::protocol::capability::CapabilityFlags;
use crate::session::{Charset, StateSpec, Value, note_initial};

/// What the sessions of an account begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// In which era of the global variables this was learned: see [`Defaults`](super::Defaults).
    pub as_of: u64,
    /// What the server has every new session of this account run; empty if nothing.
    init_connect: String,
    /// The server has no `init_connect`, for whomever.
    unset: bool,
    /// `backend.init_sql`
    init_sql: Arc<[String]>,
}

impl Opening {
    /// The statements that a new session runs first; one that is not `fresh` has only changed its user.
    pub fn texts(&self, fresh: bool) -> impl Iterator<Item = &str> {
        let by_server = Some(self.init_connect.as_str()).filter(|text| fresh && !text.is_empty());
        by_server.into_iter().chain(self.init_sql.iter().map(String::as_str))
    }

    /// Does no session of any account run anything?
    pub(super) fn is_plain(&self) -> bool {
        self.unset && self.init_sql.is_empty()
    }

    /// Does the server run something of its own?
    pub(super) fn by_server(&self) -> bool {
        !self.init_connect.is_empty()
    }
}

const STATE: &str = "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, \
    @@collation_connection, @@sql_mode";

impl Backend {
    /// After a login or a reset: switches the trackers on, runs `backend.init_sql`, and tells what the session has then,
    /// all in one write.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub(super) async fn begin(&mut self) -> Result<StateSpec, QueryError> {
        let init_sql = Arc::clone(&self.init_sql);
        let mut statements = Vec::new();
        // What a flag of the handshake sets in a session: MySQL sets it again in a reset, MariaDB does not. (The other
        // one, CLIENT_IGNORE_SPACE, is part of `sql_mode`, and that is part of a session's state.)
        if self.capabilities.contains(CapabilityFlags::CLIENT_INTERACTIVE) {
            statements.push("SET SESSION wait_timeout=@@interactive_timeout");
        }
        if self.tracks() {
            statements.push(TRACKERS);
        }
        statements.extend(init_sql.iter().map(String::as_str));
        if self.role.is_known() {
            statements.push(ROLE);
        }
        statements.push(STATE);
        let answers = self.batch(&statements).await.map_err(|error| self.blame(error))?;
        self.quiet = false;
        if self.role.is_known()
            && let [.., role, _] = answers.as_slice()
        {
            self.role.note(role);
        }
        let fields = answers.last().map(|rows| rows.fields(0)).unwrap_or_default();
        let mut spec = state(fields);
        if self.has_init_sql() {
            self.read_variables(&mut spec).await?;
        }
        Ok(spec)
    }

    /// What the server refuses here can only be the operator's.
    fn blame(&self, error: QueryError) -> QueryError {
        match error {
            QueryError::Refused { code, state, message } if self.has_init_sql() => {
                QueryError::Refused { code, state, message: format!("backend.init_sql: {message}") }
            }
            other => other,
        }
    }

    /// What a session that has just begun has of a state. Its `sql_mode` is always part of it, and of every session's
    /// state: it decides how texts are read, so no session may come to another one by changing its backend.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub async fn read_state(&mut self) -> Result<StateSpec, QueryError> {
        self.read_state_by(STATE).await
    }

    pub(super) async fn read_state_by(&mut self, sql: &str) -> Result<StateSpec, QueryError> {
        Ok(state(self.query(sql).await?.fields(0)))
    }

    /// Notes in `spec` every variable that is not as the server gives it to new sessions.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub async fn read_variables(&mut self, spec: &mut StateSpec) -> Result<(), QueryError> {
        let answers = self.batch(&["SHOW GLOBAL VARIABLES", "SHOW SESSION VARIABLES"]).await?;
        let [global, own] = answers.as_slice() else { return Ok(()) };
        let global: std::collections::HashMap<_, _> = global.decode().into_iter().filter_map(pair).collect();
        let armed = self.capabilities.contains(CapabilityFlags::CLIENT_INTERACTIVE);
        for (name, value) in own.decode().into_iter().filter_map(pair) {
            let differs = !moves(&name) && global.get(&name).is_some_and(|other| *other != value);
            if differs && !(armed && name == b"wait_timeout") {
                note_initial(spec, &name, &value);
            }
        }
        Ok(())
    }

    /// Does an operator have statements of his own run?
    pub(super) fn has_init_sql(&self) -> bool {
        !self.init_sql.is_empty()
    }

    /// What sessions of this connection's account begin with.
    pub(super) async fn opening(&mut self, as_of: u64) -> Result<Opening, QueryError> {
        let init_sql = Arc::clone(&self.init_sql);
        let rows = match self.query("SELECT @@global.init_connect").await {
            // Not every server that speaks the protocol has it.
            Err(QueryError::Refused { .. }) => {
                return Ok(Opening { as_of, unset: true, init_sql, ..Opening::default() });
            }
            rows => rows?,
        };
        let text = rows.fields(0).into_iter().next().flatten().unwrap_or_default();
        let mut init_connect = String::from_utf8_lossy(&text).into_owned();
        let unset = init_connect.is_empty();
        if !unset && self.may_kill_others().await? {
            init_connect.clear();
        }
        Ok(Opening { as_of, init_connect, unset, init_sql })
    }
}

/// The answer to what [`STATE`] asks.
fn state(fields: Vec<Option<Vec<u8>>>) -> StateSpec {
    let mut fields = fields
        .into_iter()
        .map(|field| field.map(|field| String::from_utf8_lossy(&field).into_owned().into_boxed_str()));
    let mut next = || fields.next().flatten();
    let (client, connection, results, collation) = (next(), next(), next(), next());
    let mut charset = Charset {
        client: client.unwrap_or_default(),
        connection: connection.unwrap_or_default(),
        results,
        collation: collation.unwrap_or_default(),
        results_collation: None,
    };
    if charset.is_uniform() {
        charset.results_collation = Some(charset.collation.clone());
    }
    let sql_mode = next().map(|mode| ("sql_mode".into(), Value::from(&*mode)));
    StateSpec { schema: None, charset, variables: sql_mode.into_iter().collect() }
}

/// A row of SHOW VARIABLES.
fn pair(row: Vec<Option<Vec<u8>>>) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut fields = row.into_iter();
    Some((fields.next()??, fields.next()?.unwrap_or_default()))
}
