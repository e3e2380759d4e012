//! Restore: what brings a backend to a session's state.
//!
//! Every value in the text was reported by a server, but a client chose it, and it is read under whatever `sql_mode` and
//! `character_set_client` the backend has at that moment. So only two ways to write one are used: numbers as they are
//! (integer variables refuse quoted ones, text variables the others), and `'...'` around printable ASCII without quotes and backslash, which reads
//! alike in every mode and character set. Anything else is written as `_utf8mb4 0x..`.

use std::fmt::Write;
use std::sync::Arc;

use super::ask::quoted;
use super::state::{Charset, State, Value};
use super::user_variables::{self, UserVariables};

/// What a backend connection holds, or what a session wants it to hold.
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
    /// The user variables; `None`: there are none.
    pub user_variables: Option<Arc<UserVariables>>,
}

impl BackendState {
    /// A connection that has just logged in or was reset, and has this state.
    #[must_use]
    pub fn fresh(state: Arc<State>, multi_statements: bool) -> Self {
        Self { state, last_insert_id: 0, multi_statements, warned: false, user_variables: None }
    }

    /// Whether a session that wants `to` finds everything as it wants it: the fast path, a few comparisons.
    #[must_use]
    pub fn serves(&self, to: &Self) -> bool {
        Arc::ptr_eq(&self.state, &to.state)
            && self.last_insert_id == to.last_insert_id
            && self.multi_statements == to.multi_statements
            && user_variables::same(self.user_variables.as_ref(), to.user_variables.as_ref())
            && !self.warned
    }
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

/// Commands that bring a backend to a session's state. Each is answered by one OK, or an ERR: then the backend is
/// not in that state, and must not be used for the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restore {
    /// `SET NAMES utf8mb4`, where the schema's name could not be sent otherwise.
    pub prelude: Option<&'static str>,
    /// COM_INIT_DB. Must be awaited before the client's command is sent: it fails if the schema was dropped meanwhile.
    pub schema: Option<Vec<u8>>,
    /// One `SET` with all other differences.
    pub set: Option<String>,
    /// COM_SET_OPTION: allow several statements in one text, or not. The reply may be an EOF.
    pub multi_statements: Option<bool>,
    /// A statement that empties the list of warnings.
    pub clear: Option<&'static str>,
}

/// A statement that clears the warnings on both servers: MariaDB does so only for statements that use a table.
const CLEAR: &str = "DO (SELECT 1 FROM (SELECT 1) t)";
const UTF8: &str = "SET NAMES utf8mb4";

const COM_INIT_DB: u8 = 0x02;
const COM_QUERY: u8 = 0x03;
const COM_SET_OPTION: u8 = 0x1b;

impl Restore {
    /// The payloads of all commands, in the order in which they must be sent.
    #[must_use]
    pub fn commands(&self) -> Vec<Vec<u8>> {
        let command = |code: u8, rest: &[u8]| [&[code], rest].concat();
        let mut commands = Vec::new();
        commands.extend(self.prelude.map(|text| command(COM_QUERY, text.as_bytes())));
        commands.extend(self.schema.as_deref().map(|schema| command(COM_INIT_DB, schema)));
        commands.extend(self.set.as_deref().map(|text| command(COM_QUERY, text.as_bytes())));
        commands.extend(self.multi_statements.map(|on| command(COM_SET_OPTION, &[u8::from(!on), 0])));
        commands.extend(self.clear.map(|text| command(COM_QUERY, text.as_bytes())));
        commands
    }

    /// Whether the outcome must be known before the client's command is sent. If not, all may go in one write.
    #[must_use]
    pub fn must_be_awaited(&self) -> bool {
        self.schema.is_some()
    }
}

/// What is to be done before a session that wants `to` may use a backend that holds `from`.
#[must_use]
pub fn plan(from: &BackendState, to: &BackendState) -> Plan {
    if from.serves(to) {
        return Plan::Nothing;
    }
    let mut restore = Restore {
        multi_statements: (from.multi_statements != to.multi_statements).then_some(to.multi_statements),
        clear: from.warned.then_some(CLEAR),
        ..Restore::default()
    };
    let mut charset = from.state.charset();
    let utf8 = Charset::names("utf8mb4", "");
    match (from.state.schema(), to.state.schema()) {
        (Some(_), None) => return Plan::Unreachable,
        (before, Some(schema)) if before != Some(schema) => {
            // The server reads the name in the backend's character set; we have it in UTF-8.
            if !schema.is_ascii() && !charset.client.starts_with("utf8") {
                restore.prelude = Some(UTF8);
                charset = &utf8;
            }
            restore.schema = Some(schema.to_vec());
        }
        _ => {}
    }
    let (user_variables, may_warn) =
        user_variables::assignments(from.user_variables.as_deref(), to.user_variables.as_deref());
    if may_warn {
        restore.clear = Some(CLEAR);
    }
    restore.set = set(from, charset, to, &user_variables);
    if restore == Restore::default() { Plan::Nothing } else { Plan::Restore(restore) }
}

/// One `SET` that makes `to` of `from`, whose character sets are `charset` by now; with these assignments to user variables.
fn set(from: &BackendState, charset: &Charset, to: &BackendState, user_variables: &[String]) -> Option<String> {
    let mut text = String::new();
    let mut item = |args: std::fmt::Arguments<'_>| {
        text.push_str(if text.is_empty() { "SET " } else { ", " });
        let _ = text.write_fmt(args);
    };
    // Character sets first: whatever follows is ASCII, and none of it depends on them.
    if *charset != *to.state.charset() {
        set_charset(to.state.charset(), &mut item);
    }
    if from.last_insert_id != to.last_insert_id {
        item(format_args!("@@session.last_insert_id={}", to.last_insert_id));
    }
    for assignment in user_variables {
        item(format_args!("{assignment}"));
    }
    let (before, after) = (&from.state.spec().variables, &to.state.spec().variables);
    if !Arc::ptr_eq(&from.state, &to.state) {
        let mut limits = Vec::new();
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            if is_limit(name) {
                limits.push(unset(name));
            } else {
                item(format_args!("{}", unset(name)));
            }
        }
        for (name, value) in after.iter().filter(|(name, value)| before.get(*name) != Some(*value)) {
            if is_limit(name) {
                limits.push(assignment(name, value));
            } else {
                item(format_args!("{}", assignment(name, value)));
            }
        }
        // Last: the restore itself must not be cut short.
        for limit in limits {
            item(format_args!("{limit}"));
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The assignments that lead to these character sets from any others.
fn set_charset(to: &Charset, item: &mut impl FnMut(std::fmt::Arguments<'_>)) {
    let mut collation = "";
    let names = to.results.as_ref().filter(|_| to.results_collation.is_some() || to.is_uniform());
    if let Some(results) = names {
        // The only way to a collation of results that is not their character set's default.
        match &to.results_collation {
            Some(name) => {
                item(format_args!("NAMES {} COLLATE {}", literal(results.as_bytes()), literal(name.as_bytes())));
                collation = name;
            }
            None => item(format_args!("NAMES {}", literal(results.as_bytes()))),
        }
    }
    let already = names.map(|results| &**results);
    if already != Some(&to.client) {
        item(format_args!("@@session.character_set_client={}", literal(to.client.as_bytes())));
    }
    if already != Some(&to.connection) {
        item(format_args!("@@session.character_set_connection={}", literal(to.connection.as_bytes())));
        collation = "";
    }
    if already.is_none() {
        let results = to.results.as_ref().map_or("NULL".to_owned(), |name| literal(name.as_bytes()));
        item(format_args!("@@session.character_set_results={results}"));
    }
    // Last: setting character_set_connection chose that one's default collation.
    if !to.collation.is_empty() && *to.collation != *collation {
        item(format_args!("@@session.collation_connection={}", literal(to.collation.as_bytes())));
    }
}

/// Whether a variable that the one state has set is to have its default in the other: that of new sessions.
#[must_use]
pub fn falls_back(from: &State, to: &State) -> bool {
    from.spec().variables.keys().any(|name| !to.spec().variables.contains_key(name))
}

/// What gives a variable of the session this value, behind `SET`.
#[must_use]
pub fn assignment(name: &str, value: &Value) -> String {
    let value = if holds_text(name) { text_literal(&value.0) } else { literal(&value.0) };
    format!("@@session.{}={value}", quoted(name))
}

/// What gives a variable of the session its default, behind `SET`.
#[must_use]
pub fn unset(name: &str) -> String {
    format!("@@session.{}={}", quoted(name), default(name))
}

/// What sets this variable to what new sessions have.
fn default(name: &str) -> &'static str {
    match name {
        // MySQL 9.7 makes 0 of their DEFAULT, whatever the global value is.
        "foreign_key_checks" => "@@global.foreign_key_checks",
        "unique_checks" => "@@global.unique_checks",
        _ => "DEFAULT",
    }
}

/// How long a statement may run.
fn is_limit(name: &str) -> bool {
    matches!(name, "max_statement_time" | "max_execution_time")
}

/// Variables of free text: they refuse a number without quotes, and a value may look like one.
fn holds_text(name: &str) -> bool {
    matches!(
        name,
        "default_master_connection" | "innodb_ft_user_stopword_table" | "innodb_tmpdir" | "system_versioning_asof"
    )
}

/// A value as SQL.
fn literal(value: &[u8]) -> String {
    if is_number(value) { String::from_utf8_lossy(value).into_owned() } else { text_literal(value) }
}

/// A value as SQL text.
fn text_literal(value: &[u8]) -> String {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\'' | b'"' | b'\\');
    if value.iter().all(plain) {
        format!("'{}'", String::from_utf8_lossy(value))
    } else {
        let mut text = "_utf8mb4 0x".to_owned();
        for byte in value {
            let _ = write!(text, "{byte:02X}");
        }
        text
    }
}

/// Digits with at most one point among them, and perhaps a sign.
fn is_number(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let points = digits.iter().filter(|byte| **byte == b'.').count();
    digits.first().is_some_and(u8::is_ascii_digit)
        && digits.last().is_some_and(u8::is_ascii_digit)
        && points <= 1
        && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}
