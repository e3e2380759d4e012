//! Interim.
use super::state::{Charset, StateSpec};
use std::fmt::Write;
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

/// What must be done to bring a backend that holds `from` to `to`.
#[must_use]
pub fn plan(from: &BackendState, to: &BackendState) -> Plan {
    let (before, after) = (from.state.spec(), to.state.spec());
    let mut set = String::new();
    if !Arc::ptr_eq(&from.state, &to.state) {
        if before.charset != after.charset {
            set_charset(&mut set, &after.charset);
        }
        set_variables(&mut set, before, after);
    }
    if from.last_insert_id != to.last_insert_id {
        assign(&mut set, "last_insert_id", &to.last_insert_id.to_string());
    }
    let schema_differs = before.schema != after.schema;
    if schema_differs && after.schema.is_none() {
        return Plan::Unreachable;
    }
    let restore = Restore {
        prelude: None,
        clear: None,
        schema: after.schema.as_deref().map(<[u8]>::to_vec).filter(|_| schema_differs),
        multi_statements: (from.multi_statements != to.multi_statements).then_some(to.multi_statements),
        set: (!set.is_empty()).then_some(set),
    };
    if restore == Restore::default() { Plan::Nothing } else { Plan::Restore(restore) }
}

/// Appends one assignment to a SET statement.
fn assign(set: &mut String, name: &str, value: &str) {
    set.push_str(if set.is_empty() { "SET " } else { ", " });
    // Writing to a String cannot fail.
    let _ = write!(set, "{name}={value}");
}

fn set_charset(set: &mut String, charset: &Charset) {
    if charset.client == charset.connection && charset.results.as_ref() == Some(&charset.client) {
        set.push_str("SET NAMES ");
        let _ = write!(set, "{} COLLATE {}", name(&charset.client), name(&charset.collation));
        return;
    }
    assign(set, "character_set_client", &literal(charset.client.as_bytes()));
    let results = charset.results.as_ref().map_or_else(|| "NULL".into(), |results| literal(results.as_bytes()));
    assign(set, "character_set_results", &results);
    // The collation brings its character set along.
    assign(set, "collation_connection", &literal(charset.collation.as_bytes()));
}

fn set_variables(set: &mut String, before: &StateSpec, after: &StateSpec) {
    for gone in before.variables.keys().filter(|name| !after.variables.contains_key(*name)) {
        assign(set, gone, "DEFAULT");
    }
    for (name, value) in &after.variables {
        if before.variables.get(name) != Some(value) {
            assign(set, name, &literal(&value.0));
        }
    }
}

/// A name of a character set or collation, which servers make of letters, digits and `_`.
fn name(name: &str) -> &str {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain && !name.is_empty() { name } else { "DEFAULT" }
}

/// A value as a literal that means the same whatever sql_mode and character set the backend has just now: numbers bare
/// (integer variables refuse quoted ones), harmless ASCII in quotes, everything else in hexadecimal.
fn literal(value: &[u8]) -> String {
    let text = str::from_utf8(value).unwrap_or("\\");
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().filter(|byte| *byte == b'.').count() <= 1;
    if number {
        return text.to_owned();
    }
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b" _,.:;+-=/()%@$*".contains(&byte);
    if text.bytes().all(harmless) {
        return format!("'{text}'");
    }
    value.iter().fold(String::from("X'"), |mut hex, byte| {
        let _ = write!(hex, "{byte:02X}");
        hex
    }) + "'"
}
