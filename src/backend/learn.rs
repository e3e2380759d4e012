//! What is asked of a server at the first login of an era: all that the beginning of a session depends on.

use std::collections::HashMap;

use super::facts::Collation;
use super::{Backend, Globals, QueryError};
use crate::protocol::capability::CapabilityFlags;
use crate::session::{Charset, StateSpec};

/// What a connection gets whose client names no collation that the server knows.
pub(super) async fn default_charset(backend: &mut Backend) -> Result<Charset, QueryError> {
    let sql = "SELECT @@global.character_set_client, @@global.character_set_connection, \
               @@global.character_set_results, @@global.collation_connection";
    match backend.read_state_by(sql).await {
        Err(QueryError::Refused { .. }) => Ok(Charset::default()),
        other => Ok(other?.charset),
    }
}

/// The collation whose clients get the global character sets: the default one of the global `character_set_client`. As
/// long as nobody has changed any, there is nothing to tell apart.
pub(super) async fn defaulting(backend: &mut Backend) -> Result<Option<String>, QueryError> {
    let sql = "SELECT DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS \
               WHERE CHARACTER_SET_NAME=@@global.character_set_client \
               AND NOT (@@global.character_set_connection=@@global.character_set_client \
               AND @@global.character_set_results<=>@@global.character_set_client \
               AND @@global.collation_connection=@@global.collation_server)";
    match backend.query(sql).await {
        Err(QueryError::Refused { .. }) => Ok(None),
        rows => Ok(rows?.fields(0).into_iter().next().flatten().and_then(|name| String::from_utf8(name).ok())),
    }
}

/// The sql_mode that new sessions have: this one's (`init_connect` may have set it), unless its client asked for more.
pub(super) async fn sql_mode(backend: &mut Backend, initial: &StateSpec) -> Result<Option<String>, QueryError> {
    let text = |mode: &[u8]| String::from_utf8_lossy(mode).into_owned();
    if !backend.capabilities.contains(CapabilityFlags::CLIENT_IGNORE_SPACE) {
        return Ok(initial.variables.get("sql_mode").map(|mode| text(&mode.0)));
    }
    match backend.query("SELECT @@global.sql_mode").await {
        Err(QueryError::Refused { .. }) => Ok(None),
        rows => Ok(rows?.fields(0).into_iter().next().flatten().map(|mode| text(&mode))),
    }
}

/// All global variables, if the server has such things.
pub(super) async fn globals(backend: &mut Backend) -> Result<Globals, QueryError> {
    match backend.globals().await {
        Err(QueryError::Refused { .. }) => Ok(Globals::default()),
        globals => globals,
    }
}

/// Whether new sessions begin without autocommit.
pub(super) async fn autocommit_off(backend: &mut Backend) -> Result<bool, QueryError> {
    match backend.query("SELECT @@global.autocommit").await {
        Err(QueryError::Refused { .. }) => Ok(false),
        rows => Ok(rows?.fields(0).into_iter().next().flatten().is_some_and(|value| value == b"0")),
    }
}

/// What collation numbers mean to this server.
pub(super) async fn collations(backend: &mut Backend, mariadb: bool) -> Result<HashMap<u16, Collation>, QueryError> {
    // MariaDB keeps the numbers of its contextual collations in the second table only.
    let sql = if mariadb {
        "SELECT ID, CHARACTER_SET_NAME, FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    } else {
        "SELECT ID, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATIONS"
    };
    let rows = match backend.query(sql).await {
        Err(QueryError::Refused { .. }) if mariadb => {
            backend.query("SELECT ID, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATIONS").await?
        }
        // Not every server that speaks the protocol has these tables; then numbers mean nothing.
        Err(QueryError::Refused { .. }) => return Ok(HashMap::new()),
        other => other?,
    };
    let text = |field: Option<Vec<u8>>| field.and_then(|field| String::from_utf8(field).ok());
    Ok((0..rows.rows.len())
        .filter_map(|row| {
            let mut fields = rows.fields(row).into_iter();
            let id = text(fields.next()?)?.parse().ok()?;
            let charset = text(fields.next()?)?.into_boxed_str();
            let name = text(fields.next()?)?.into_boxed_str();
            Some((id, Collation { charset, name }))
        })
        .collect())
}
