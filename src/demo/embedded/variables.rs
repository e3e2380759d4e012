//! The system variables that clients ask for when they connect.

use super::answer::Value;

/// The version it claims: what clients look at to decide which dialect to speak.
pub(crate) const VERSION: &str = "8.0.0-myriad-demo";

const KNOWN: &[(&str, Value)] = &[
    ("auto_increment_increment", Value::Int(1)),
    ("autocommit", Value::Int(1)),
    ("character_set_client", Value::Fixed("utf8mb4")),
    ("character_set_connection", Value::Fixed("utf8mb4")),
    ("character_set_database", Value::Fixed("utf8mb4")),
    ("character_set_results", Value::Fixed("utf8mb4")),
    ("character_set_server", Value::Fixed("utf8mb4")),
    ("collation_connection", Value::Fixed("utf8mb4_general_ci")),
    ("collation_database", Value::Fixed("utf8mb4_general_ci")),
    ("collation_server", Value::Fixed("utf8mb4_general_ci")),
    ("init_connect", Value::Fixed("")),
    ("interactive_timeout", Value::Int(28_800)),
    ("license", Value::Fixed("MIT")),
    ("lower_case_table_names", Value::Int(0)),
    ("max_allowed_packet", Value::Int(64 << 20)),
    ("max_connections", Value::Int(100_000)),
    ("net_buffer_length", Value::Int(16_384)),
    ("net_write_timeout", Value::Int(60)),
    ("performance_schema", Value::Int(0)),
    ("read_only", Value::Int(1)),
    ("socket", Value::Null),
    ("sql_mode", Value::Fixed("STRICT_TRANS_TABLES")),
    ("system_time_zone", Value::Fixed("UTC")),
    ("time_zone", Value::Fixed("SYSTEM")),
    ("transaction_isolation", Value::Fixed("REPEATABLE-READ")),
    ("transaction_read_only", Value::Int(0)),
    ("tx_isolation", Value::Fixed("REPEATABLE-READ")),
    ("tx_read_only", Value::Int(0)),
    ("version", Value::Fixed(VERSION)),
    ("version_comment", Value::Fixed("the embedded server of Myriad's demo")),
    ("version_compile_os", Value::Fixed(std::env::consts::OS)),
    ("wait_timeout", Value::Int(28_800)),
];

/// The value a session starts with.
pub(super) fn initial(name: &str) -> Option<Value> {
    KNOWN.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
}

/// All variables whose names match a LIKE pattern.
pub(super) fn like(pattern: &str) -> impl Iterator<Item = (&'static str, Value)> {
    let pattern: Vec<char> = pattern.to_ascii_lowercase().chars().collect();
    KNOWN.iter().filter(move |(name, _)| matches(name, &pattern)).map(|(name, value)| (*name, value.clone()))
}

/// LIKE: `%` is any text, `_` any character, and so is `\_`, near enough.
fn matches(name: &str, pattern: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['\\', rest @ ..] => matches(name, rest),
        ['%', rest @ ..] => (0..=name.len()).any(|at| name.get(at..).is_some_and(|tail| matches(tail, rest))),
        [wanted, rest @ ..] => {
            let mut chars = name.chars();
            chars.next().is_some_and(|c| (*wanted == '_' || c == *wanted) && matches(chars.as_str(), rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_case() {
        assert_eq!(initial("AutoCommit"), Some(Value::Int(1)));
        assert_eq!(initial("no_such_thing"), None);
    }

    #[test]
    fn like_finds_names() {
        let names = |pattern: &str| like(pattern).map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names("version"), ["version"]);
        assert_eq!(names("TX%"), ["tx_isolation", "tx_read_only"]);
        assert_eq!(names("%time_zone"), ["system_time_zone", "time_zone"]);
        assert_eq!(names("t_me_zone"), ["time_zone"]);
        assert_eq!(names("%").len(), KNOWN.len());
    }
}
