//! Session variables by name: which can be carried to another backend, and which only seem to.

use super::state::{StateSpec, Value};

/// Longest value that is carried. A longer one pins instead.
const LONGEST_VALUE: usize = 16 * 1024;

/// What follows from a variable's new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is in the state now, or needs no carrying.
    Carried,
    /// `last_insert_id`
    LastInsertId(u64),
    /// A tracker of the client's own.
    Tracker,
    /// `timestamp`: whether it lasts only the text can tell.
    Timestamp,
    /// `insert_id`: for the next insert only.
    OneShot,
    /// Cannot be set elsewhere as it is reported.
    WriteOnly,
    /// It is in the state now, and the server begins to keep the session's statements.
    Trace,
    /// Not a name or a value that can be handled.
    Unknown,
}

/// All that `SET NAMES` sets. `collation_connection` is never reported along with the others.
const CHARSET: &[&str] =
    &["character_set_client", "character_set_connection", "character_set_results", "collation_connection"];

/// What a client can ask to be told.
pub(super) const TRACKERS: &[&str] = &[
    "session_track_system_variables",
    "session_track_schema",
    "session_track_state_change",
    "session_track_transaction_info",
];

/// Variables that change along with this one without being reported.
pub(super) fn linked(name: &str) -> &'static [&'static str] {
    match name {
        // Either sets the other.
        "character_set_connection" | "collation_connection" => CHARSET,
        "character_set_server" | "collation_server" => &["character_set_server", "collation_server"],
        "max_join_size" => &["sql_big_selects"],
        _ => &[],
    }
}

/// Two names of one variable: the last one set counts.
const ALIASES: &[(&str, &str)] = &[
    ("storage_engine", "default_storage_engine"),
    ("tx_isolation", "transaction_isolation"),
    ("tx_read_only", "transaction_read_only"),
];

/// Whether this is a name as variables have it: it goes into SQL text.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'$' | b'.'))
}

/// Notes in `spec` that the variable `name` (in lower case) now has this value; `None` is NULL.
pub(super) fn note(spec: &mut StateSpec, name: &str, value: Option<&[u8]>) -> Verdict {
    let bytes = value.unwrap_or_default();
    if !is_name(name) || bytes.len() > LONGEST_VALUE {
        return Verdict::Unknown;
    }
    match name {
        "character_set_client" | "character_set_connection" | "character_set_results" | "collation_connection" => {
            return note_charset(spec, name, bytes);
        }
        "last_insert_id" | "identity" => {
            let id = std::str::from_utf8(bytes).ok().and_then(|digits| digits.parse().ok());
            return id.map_or(Verdict::Unknown, Verdict::LastInsertId);
        }
        "timestamp" => return Verdict::Timestamp,
        "insert_id" => return Verdict::OneShot,
        // Of the last transaction (MariaDB with a binary log): reported, and read only.
        "last_gtid" => return Verdict::Carried,
        // What it is by default, and nothing else can be set back to it.
        "gtid_next" if bytes == b"AUTOMATIC" => return Verdict::Carried,
        // NULL by default, reported as nothing, and refused if set to nothing.
        "default_tmp_storage_engine"
        | "enforce_storage_engine"
        | "external_table_secondary_storage_engine"
        | "external_table_storage_engine"
        | "innodb_ft_user_stopword_table"
        | "innodb_tmpdir"
            if bytes.is_empty() =>
        {
            spec.variables.remove(name);
            return Verdict::Carried;
        }
        // The one tracker that is not ours on every backend.
        "session_track_gtids" => {
            spec.variables.insert(name.into(), Value::from(bytes));
            return Verdict::Tracker;
        }
        _ if name.starts_with("session_track_") => return Verdict::Tracker,
        _ if is_write_only(name) => return Verdict::WriteOnly,
        _ => {}
    }
    for (one, other) in ALIASES {
        if name == *one {
            spec.variables.remove(*other);
        } else if name == *other {
            spec.variables.remove(*one);
        }
    }
    spec.variables.insert(name.into(), Value::from(bytes));
    match name {
        "profiling" if !matches!(bytes, b"OFF" | b"0") => Verdict::Trace,
        "optimizer_trace" if memchr::memmem::find(bytes, b"enabled=on").is_some() => Verdict::Trace,
        _ => Verdict::Carried,
    }
}

/// Notes in `spec` what a session has from its beginning, if that can be carried to other connections.
pub fn note_initial(spec: &mut StateSpec, name: &[u8], value: &[u8]) {
    let Ok(name) = std::str::from_utf8(name).map(str::to_ascii_lowercase) else { return };
    if !CHARSET.contains(&&*name) {
        note(spec, &name, Some(value));
    }
}

/// Whether a session that has no value of its own for this variable can be given this one, so that it keeps what was the
/// default when it began.
#[must_use]
pub fn is_inheritable(name: &str, value: &[u8]) -> bool {
    // Every session has its own of these from its beginning.
    let own = CHARSET.contains(&name) || name == "sql_mode";
    let mut spec = StateSpec::default();
    !own && note(&mut spec, name, Some(value)) == Verdict::Carried && spec.variables.contains_key(name)
}

/// The name of a variable, and its other one if it has two.
pub(super) fn names_of(name: &str) -> impl Iterator<Item = &str> {
    let other = ALIASES.iter().find_map(|(one, other)| match name {
        _ if name == *one => Some(*other),
        _ if name == *other => Some(*one),
        _ => None,
    });
    std::iter::once(name).chain(other)
}

fn note_charset(spec: &mut StateSpec, name: &str, value: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(value) else { return Verdict::Unknown };
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Verdict::Unknown;
    }
    let charset = &mut spec.charset;
    match name {
        "character_set_client" => charset.client = text.into(),
        "character_set_connection" => charset.connection = text.into(),
        "character_set_results" => {
            let results = (!text.is_empty()).then(|| text.into());
            if charset.results != results {
                charset.results = results;
                charset.results_collation = None;
            }
        }
        _ => charset.collation = text.into(),
    }
    Verdict::Carried
}

fn is_write_only(name: &str) -> bool {
    matches!(
        name,
        // Reported as 0 by MySQL.
        "rand_seed1" | "rand_seed2"
        // Of one connection, or of one transaction of a replica.
        | "pseudo_thread_id" | "pseudo_slave_mode" | "pseudo_replica_mode"
        | "gtid_next" | "gtid_seq_no" | "original_commit_timestamp" | "original_server_version" | "immediate_server_version"
        // Follow the schema, whatever they were set to.
        | "character_set_database" | "collation_database"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let table: &[(&str, &str, Verdict)] = &[
            ("sql_mode", "", Verdict::Carried),
            ("character_set_client", "latin1", Verdict::Carried),
            ("character_set_connection", "latin1", Verdict::Carried),
            ("character_set_results", "x'; DROP", Verdict::Unknown),
            ("collation_connection", "latin1_bin", Verdict::Carried),
            ("last_insert_id", "7", Verdict::LastInsertId(7)),
            ("identity", "x", Verdict::Unknown),
            ("insert_id", "7", Verdict::OneShot),
            ("rand_seed1", "0", Verdict::WriteOnly),
            ("gtid_next", "AUTOMATIC", Verdict::Carried),
            ("gtid_next", "ANONYMOUS", Verdict::WriteOnly),
            ("last_gtid", "0-1-7", Verdict::Carried),
            ("session_track_gtids", "OFF", Verdict::Tracker),
            ("timestamp", "1", Verdict::Timestamp),
            ("default_tmp_storage_engine", "", Verdict::Carried),
            ("profiling", "ON", Verdict::Trace),
            ("profiling", "OFF", Verdict::Carried),
            ("optimizer_trace", "enabled=on,one_line=off", Verdict::Trace),
            ("max_join_size", "1", Verdict::Carried),
            ("a`b", "1", Verdict::Unknown),
            ("", "1", Verdict::Unknown),
        ];
        for (name, value, verdict) in table {
            assert_eq!(note(&mut StateSpec::default(), name, Some(value.as_bytes())), *verdict, "{name}={value}");
        }
        assert_eq!(note(&mut StateSpec::default(), "a", Some(&[b'x'; LONGEST_VALUE + 1])), Verdict::Unknown);
    }

    #[test]
    fn an_absent_value_is_the_default() {
        let mut spec = StateSpec::default();
        note(&mut spec, "default_tmp_storage_engine", Some(b"MyISAM"));
        note(&mut spec, "default_tmp_storage_engine", Some(b""));
        note(&mut spec, "innodb_ft_user_stopword_table", None);
        note(&mut spec, "enforce_storage_engine", Some(b""));
        assert!(spec.variables.is_empty());
        note(&mut spec, "sql_mode", Some(b""));
        assert_eq!(spec.variables.len(), 1);
    }

    #[test]
    fn of_two_names_the_last_one_counts() {
        let mut spec = StateSpec::default();
        note(&mut spec, "storage_engine", Some(b"MEMORY"));
        note(&mut spec, "default_storage_engine", Some(b"InnoDB"));
        assert!(spec.variables.keys().eq([&Box::from("default_storage_engine")]));
        note(&mut spec, "storage_engine", Some(b"MEMORY"));
        assert!(spec.variables.keys().eq([&Box::from("storage_engine")]));
    }
}
