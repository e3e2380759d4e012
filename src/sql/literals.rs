//! `SET` statements that assign nothing but literals to variables that are merely kept: what they do depends on the session's
//! state and on nothing else, and doing it again changes nothing.

use super::rules::Kind;
use super::tape::{Lexeme, Tape};
use super::{Effects, Flags, Mode, Word};

/// All that such a statement may do.
const MERELY: Flags = Flags::SET_VARIABLE.and(Flags::SET_CHARSET).and(Flags::SET_COLLATION);

/// Variables of the session that are merely kept: to set one acts on nothing else. What is not known here may.
const KEPT: [&str; 71] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "autocommit",
    "block_encryption_mode",
    "bulk_insert_buffer_size",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "completion_type",
    "cte_max_recursion_depth",
    "default_storage_engine",
    "default_week_format",
    "div_precision_increment",
    "end_markers_in_json",
    "eq_range_index_dive_limit",
    "expensive_subquery_limit",
    "explicit_defaults_for_timestamp",
    "foreign_key_checks",
    "group_concat_max_len",
    "idle_readonly_transaction_timeout",
    "idle_transaction_timeout",
    "idle_write_transaction_timeout",
    "information_schema_stats_expiry",
    "innodb_lock_wait_timeout",
    "innodb_strict_mode",
    "interactive_timeout",
    "join_buffer_size",
    "join_cache_level",
    "lc_messages",
    "lc_time_names",
    "lock_wait_timeout",
    "long_query_time",
    "low_priority_updates",
    "max_delayed_threads",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_seeks_for_key",
    "max_sort_length",
    "max_sp_recursion_depth",
    "max_statement_time",
    "min_examined_row_limit",
    "net_read_timeout",
    "net_retry_count",
    "net_write_timeout",
    "old_alter_table",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "query_cache_type",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_mode",
    "sql_notes",
    "sql_quote_show_create",
    "sql_safe_updates",
    "sql_select_limit",
    "sql_warnings",
    "time_zone",
    "tmp_table_size",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
    "tx_read_only",
    "unique_checks",
    "wait_timeout",
];

/// Words of `TRANSACTION ISOLATION LEVEL ..`.
const CHARACTERISTICS: [&str; 10] = [
    "ISOLATION",
    "LEVEL",
    "READ",
    "COMMITTED",
    "UNCOMMITTED",
    "REPEATABLE",
    "SERIALIZABLE",
    "WRITE",
    "ONLY",
    "TRANSACTION",
];

impl Effects {
    /// Whether the text may be a `SET` of literals; [`is_literal_set`] knows.
    #[must_use]
    pub fn may_set_literals(&self) -> bool {
        self.first == Word::Set
            && self.is_certain()
            && self.may(MERELY)
            && self.flags.without(MERELY).is_empty()
            && self.mentions.is_empty()
            && !self.unreported.overflowed()
    }
}

/// Whether the text is exactly a `SET` of literals, each for a variable of the session that is merely kept.
#[must_use]
pub fn is_literal_set(text: &[u8], mode: Mode) -> bool {
    let (effects, mut lexemes) = Tape::of(text, mode);
    while lexemes.last().is_some_and(|last| last.is_sign(b';')) {
        lexemes.pop();
    }
    let [set, rest @ ..] = lexemes.as_slice() else { return false };
    effects.may_set_literals()
        && set.word == Word::Set
        && (is_characteristics(text, rest)
            || rest.split(|lexeme| lexeme.is_sign(b',')).all(|assignment| is_assignment(text, assignment)))
}

/// `SESSION TRANSACTION ..`: without the scope it is for the next transaction only.
fn is_characteristics(text: &[u8], lexemes: &[Lexeme]) -> bool {
    let [scope, transaction, rest @ ..] = lexemes else { return false };
    is_own_scope(scope)
        && transaction.word == Word::Transaction
        && !rest.is_empty()
        && rest.iter().all(|lexeme| lexeme.is_sign(b',') || lexeme.is_any(text, &CHARACTERISTICS))
}

fn is_assignment(text: &[u8], lexemes: &[Lexeme]) -> bool {
    match lexemes {
        [names, charset] if names.word == Word::Names => is_charset(text, charset),
        [names, charset, collate, collation] if names.word == Word::Names => {
            is_charset(text, charset) && collate.is(text, "COLLATE") && is_charset(text, collation)
        }
        [charset, name] if charset.word == Word::Charset => is_charset(text, name),
        [character, set, name] if matches!(character.word, Word::Character | Word::Char) && set.word == Word::Set => {
            is_charset(text, name)
        }
        [at, scope, dot, rest @ ..] if at.kind == Kind::SystemVariable && is_own_scope(scope) && dot.is_sign(b'.') => {
            is_kept_and_literal(text, rest)
        }
        [at, rest @ ..] if at.kind == Kind::SystemVariable => is_kept_and_literal(text, rest),
        [scope, rest @ ..] if is_own_scope(scope) => is_kept_and_literal(text, rest),
        rest => is_kept_and_literal(text, rest),
    }
}

fn is_own_scope(lexeme: &Lexeme) -> bool {
    lexeme.kind == Kind::Word && matches!(lexeme.word, Word::Session | Word::Local)
}

fn is_charset(text: &[u8], lexeme: &Lexeme) -> bool {
    lexeme.kind == Kind::Text || is_value_word(text, lexeme)
}

/// `name = literal`
fn is_kept_and_literal(text: &[u8], lexemes: &[Lexeme]) -> bool {
    let [name, equals, value @ ..] = lexemes else { return false };
    let assigns = equals.is_sign(b'=') || equals.kind == Kind::Assign;
    let literal = match value {
        [only] => matches!(only.kind, Kind::Text | Kind::Number { .. }) || is_value_word(text, only),
        [sign, number] => (sign.is_sign(b'-') || sign.is_sign(b'+')) && matches!(number.kind, Kind::Number { .. }),
        _ => false,
    };
    assigns && literal && name.kind == Kind::Word && is_kept(name.of(text))
}

fn is_kept(name: &[u8]) -> bool {
    KEPT.iter().any(|kept| kept.as_bytes().eq_ignore_ascii_case(name))
}

/// Whether this word stands for itself: it is no default, and none of the functions that are called without parentheses.
fn is_value_word(text: &[u8], lexeme: &Lexeme) -> bool {
    let word = lexeme.of(text);
    let begins = |with: &str| word.get(..with.len()).is_some_and(|front| front.eq_ignore_ascii_case(with.as_bytes()));
    let plain = word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let called = ["CURRENT", "LOCALTIME", "UTC_", "DEFAULT", "SYS", "ROW", "SQL", "USER", "SESSION", "NOW"];
    lexeme.kind == Kind::Word && plain && (word.eq_ignore_ascii_case(b"SYSTEM") || !called.iter().any(|it| begins(it)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::effects;

    fn is_one(text: &str, mode: Mode) -> bool {
        is_literal_set(text.as_bytes(), mode)
    }

    #[test]
    fn what_clients_say_when_they_connect() {
        for text in [
            "SET NAMES utf8mb4",
            "set names 'utf8mb4' collate 'utf8mb4_unicode_ci'",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin, @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483",
            "SET autocommit=0",
            "/* driver */ SET SESSION autocommit = 1;",
            "SET CHARACTER SET latin1",
            "SET CHARSET 'latin1'",
            "SET sql_mode=''",
            "SET SESSION sql_mode='STRICT_TRANS_TABLES,NO_ZERO_DATE', time_zone='+00:00'",
            "SET character_set_results = NULL, sql_mode='STRICT_TRANS_TABLES', net_write_timeout=600",
            "SET time_zone = SYSTEM",
            "SET @@session.time_zone := '+1:00', @@lc_time_names = de_DE",
            "SET LOCAL wait_timeout = 28800",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            "SET transaction_isolation = 'READ-COMMITTED'",
            "SET sql_mode = TRADITIONAL",
            "SET default_week_format = -1",
        ] {
            assert!(is_one(text, Mode::default()), "{text}");
            assert!(is_one(text, Mode { mariadb: true, ..Mode::default() }), "{text}");
            assert!(effects(text.as_bytes(), Mode::default()).may_set_literals(), "{text}");
        }
    }

    #[test]
    fn what_depends_on_more_or_does_more() {
        for text in [
            "",
            "SELECT 1",
            "SET",
            "SET NAMES",
            "SET NAMES DEFAULT",
            "SET NAMES utf8mb4 COLLATE",
            "SET autocommit",
            "SET autocommit=DEFAULT",
            "SET autocommit=",
            "SET autocommit=1, ",
            "SET autocommit=1; SELECT 1",
            "SET GLOBAL autocommit=1",
            "SET PERSIST autocommit=1",
            "SET @@global.autocommit=1",
            "SET GLOBAL max_connections=1, autocommit=1",
            "SET @a=1",
            "SET autocommit=1, @a=1",
            "SET autocommit=@a",
            "SET time_zone=@@time_zone",
            "SET sql_mode=CONCAT(@@sql_mode, ',ANSI')",
            "SET sql_mode=CONCAT('', 'ANSI')",
            "SET sql_mode=(SELECT 'ANSI')",
            "SET sql_mode='ANSI' 'X'",
            "SET sql_mode=_utf8mb4'ANSI'",
            "SET sql_mode='it''s'",
            "SET autocommit=1+0",
            "SET autocommit=!0",
            "SET wait_timeout=f()",
            "SET wait_timeout=UTC_TIME",
            "SET lc_time_names=CURRENT_USER",
            "SET lc_time_names=LOCALTIMESTAMP",
            "SET lc_time_names=sysdate",
            "SET insert_id=5",
            "SET last_insert_id=5",
            "SET timestamp=5",
            "SET rand_seed1=5",
            "SET pseudo_thread_id=5",
            "SET gtid_next='AUTOMATIC'",
            "SET profiling=1",
            "SET optimizer_trace='enabled=on'",
            "SET debug_sync='now SIGNAL x'",
            "SET some.variable=1",
            "SET `autocommit`=1",
            "SET session_track_schema=ON",
            "SET TRANSACTION READ ONLY",
            "SET @@transaction_isolation='SERIALIZABLE'",
            "SET @@tx_read_only=1",
            "SET GLOBAL TRANSACTION READ ONLY",
            "SET ROLE r",
            "SET SESSION AUTHORIZATION u",
            "SET PASSWORD='x'",
            "SET DEFAULT ROLE NONE TO u",
            "SET RESOURCE GROUP g",
            "SET STATEMENT max_statement_time=1 FOR SELECT 1",
            "SET /*!50000 autocommit=1 */",
            "SET sql_log_bin=0",
        ] {
            assert!(!is_one(text, Mode::default()), "{text}");
            assert!(!is_one(text, Mode { mariadb: true, ..Mode::default() }), "{text}");
        }
        let ansi = Mode { ansi_quotes: true, ..Mode::default() };
        assert!(!is_one("SET sql_mode=\"ANSI\"", ansi) && is_one("SET sql_mode=\"ANSI\"", Mode::default()));
    }

    #[test]
    fn names_are_sorted() {
        assert!(KEPT.is_sorted());
    }
}
