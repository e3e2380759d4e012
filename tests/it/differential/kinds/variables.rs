//! Session variables, the default schema, and user variables.

use myriad::protocol::command::Command;

use crate::differential::author::Author;
use crate::differential::script::Act;
use crate::support::Kind;

/// Variables that both servers have, and values.
const VALUES: &[(&str, &[&str])] = &[
    (
        "sql_mode",
        &[
            "''",
            "'ANSI_QUOTES'",
            "'NO_BACKSLASH_ESCAPES'",
            "'PIPES_AS_CONCAT,STRICT_ALL_TABLES'",
            "'ANSI'",
            "'TRADITIONAL'",
            "'NO_AUTO_VALUE_ON_ZERO'",
            "DEFAULT",
            "'NOTHING'",
            "CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')",
            "4",
        ],
    ),
    ("time_zone", &["'+02:00'", "'-05:30'", "'SYSTEM'", "DEFAULT", "'Mars/Olympus'", "'+00:00'"]),
    ("sql_safe_updates", &["1", "0", "ON", "DEFAULT", "2"]),
    ("timestamp", &["1500000000", "1600000000.25", "DEFAULT", "0"]),
    ("foreign_key_checks", &["0", "1", "OFF"]),
    ("unique_checks", &["0", "1"]),
    ("lc_time_names", &["'de_DE'", "'fr_FR'", "'en_US'", "'nowhere'", "DEFAULT"]),
    ("sql_select_limit", &["2", "1", "DEFAULT", "18446744073709551615", "'x'"]),
    ("group_concat_max_len", &["8", "5000", "DEFAULT", "-1"]),
    ("sort_buffer_size", &["300000", "1", "DEFAULT"]),
    ("div_precision_increment", &["0", "8", "DEFAULT", "1000"]),
    ("sql_auto_is_null", &["0", "1"]),
    ("sql_big_selects", &["0", "1"]),
    ("max_join_size", &["1000000", "DEFAULT"]),
    ("default_week_format", &["3", "0", "9"]),
    ("sql_warnings", &["1", "0"]),
    ("sql_notes", &["0", "1"]),
    ("max_error_count", &["1", "2", "DEFAULT", "0"]),
    ("auto_increment_increment", &["1", "5", "DEFAULT"]),
    ("wait_timeout", &["1000", "DEFAULT"]),
    ("net_write_timeout", &["77", "DEFAULT"]),
    ("tmp_table_size", &["2000000", "DEFAULT"]),
    ("last_insert_id", &["4242", "0"]),
    ("identity", &["4343"]),
    ("rand_seed1", &["5"]),
    ("sql_log_bin", &["0"]),
    ("max_connections", &["5"]),
    ("nobody_has_heard_of_this", &["1"]),
    ("collation_connection", &["utf8mb4_bin", "latin1_german1_ci", "DEFAULT"]),
    ("character_set_results", &["NULL", "latin1", "utf8mb4", "binary"]),
    ("character_set_client", &["utf8mb4", "latin1"]),
    ("character_set_connection", &["latin1", "utf8mb4"]),
    ("default_storage_engine", &["InnoDB", "MEMORY", "nothing"]),
    ("optimizer_switch", &["'mrr=on'", "DEFAULT"]),
    ("session_track_schema", &["ON"]),
];

const FORMS: &[&str] = &[
    "SET {n} = {v}",
    "SET SESSION {n} = {v}",
    "SET LOCAL {n}={v}",
    "SET @@{n} = {v}",
    "SET @@session.{n} := {v}",
    "set @@local.{n} = {v}",
    "SET /* why */ {n} = {v} ",
];

const CHARSETS: &[&str] = &[
    "SET NAMES latin1",
    "SET NAMES utf8mb4",
    "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci'",
    "SET NAMES latin1 COLLATE latin1_german2_ci",
    "SET NAMES DEFAULT",
    "SET NAMES nothing",
    "SET NAMES utf8mb4 COLLATE latin1_bin",
    "SET CHARACTER SET latin1",
    "SET CHARACTER SET DEFAULT",
    "SET CHARSET utf8mb4",
    "SET character_set_client = latin1, character_set_results = utf8mb4",
    "SET NAMES cp1251",
];

/// Questions about all of it.
const PROBES: &[&str] = &[
    "SELECT @@sql_mode, @@time_zone, @@sql_safe_updates, @@timestamp < 1650000000, @@autocommit",
    "SELECT @@foreign_key_checks, @@unique_checks, @@lc_time_names, @@sql_select_limit, @@group_concat_max_len",
    "SELECT @@sort_buffer_size, @@div_precision_increment, @@sql_auto_is_null, @@sql_big_selects, @@max_join_size",
    "SELECT @@default_week_format, @@sql_warnings, @@sql_notes, @@max_error_count, @@auto_increment_increment",
    "SELECT @@wait_timeout, @@net_write_timeout, @@tmp_table_size, @@sql_log_bin, @@default_storage_engine",
    "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection",
    "SELECT @@transaction_isolation, @@transaction_read_only, @@autocommit",
    "SELECT DATABASE(), SCHEMA(), CURRENT_USER()",
    "SELECT v, n FROM here",
    "SELECT 'a' = 'A', 'a' LIKE 'A', COLLATION('a'), CHARSET('a'), HEX('\u{e9}'), '\u{e9}'",
    "SELECT \"x\"",
    "SELECT 'a\\'b'",
    "SELECT 'a' || 'b', 1 || 0",
    "SELECT 1 / 3, 22 / 7",
    "SELECT MONTHNAME('2020-03-01'), DAYNAME('2020-03-01'), WEEK('2020-01-01')",
    "SELECT id, v, d, t FROM {s}.shared ORDER BY id",
    "SELECT GROUP_CONCAT(v ORDER BY id) FROM {s}.shared",
    "SELECT UNIX_TIMESTAMP('2020-01-01 12:00:00')",
    "SELECT @a, @b, @c, @d",
    "SELECT @a + 1, COLLATION(@b), CHARSET(@b), COERCIBILITY(@b), @c IS NULL, @d",
    "SELECT @A, @`b`, @'c', @\"d\"",
    "SELECT @e, @f, @g, @p, @x",
    "SELECT LAST_INSERT_ID()",
    "SELECT @@last_insert_id, @@identity",
    "SHOW VARIABLES LIKE 'character\\_set\\_%'",
    "SHOW SESSION VARIABLES LIKE 'sql\\_mode'",
    "SHOW VARIABLES WHERE Variable_name IN ('time_zone', 'collation_connection', 'lc_time_names')",
    "UPDATE {s}.t{c} SET n = n + 1",
    "SELECT COUNT(*) FROM {s}.t{c}",
];

pub(super) fn probe(a: &mut Author) {
    a.some(PROBES, 2);
}

pub(super) fn set(a: &mut Author) {
    if a.dice.chance(10) {
        let own: &[&str] = if a.kind == Kind::MariaDb {
            &[
                "SET max_statement_time = 50",
                "SET STATEMENT max_statement_time = 5 FOR SELECT @@max_statement_time",
                "SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT @@sql_mode",
                "SET STATEMENT nothing = 1 FOR SELECT 1",
                "SELECT @@max_statement_time",
                "SET ROLE NONE",
                "SET ROLE nothing",
                "SET SESSION sql_if_exists = 1",
                "SET in_predicate_conversion_threshold = 10",
                "SET old_mode = ''",
            ]
        } else {
            &[
                "SET max_execution_time = 50000",
                "SELECT @@max_execution_time",
                "SELECT /*+ SET_VAR(sort_buffer_size = 400000) */ @@sort_buffer_size",
                "SET SESSION cte_max_recursion_depth = 20",
                "SET ROLE NONE",
                "SET ROLE DEFAULT",
                "SET ROLE nothing",
                "SET default_collation_for_utf8mb4 = utf8mb4_general_ci",
                "SET windowing_use_high_precision = OFF",
                "SET SESSION information_schema_stats_expiry = 10",
                "SET SESSION show_create_table_verbosity = ON",
            ]
        };
        a.any(own);
    } else {
        let text = assignment(a);
        a.query(&text);
    }
    if a.dice.chance(60) {
        a.any(PROBES);
    }
}

fn assignment(a: &mut Author) -> String {
    let (name, values) = a.dice.pick(VALUES);
    let (form, value) = (a.dice.pick(FORMS), a.dice.pick(values));
    form.replace("{n}", name).replace("{v}", value)
}

pub(super) fn set_charset(a: &mut Author) {
    a.any(CHARSETS);
    a.some(&["SELECT '\u{e9}', HEX('\u{e9}'), LENGTH('\u{e9}')", PROBES[5], PROBES[9], PROBES[15]], 2);
}

/// Several variables in one statement, some of which may fail.
pub(super) fn several(a: &mut Author) {
    let mut text = "SET ".to_owned();
    for at in 0..=a.dice.below(3) {
        let (name, values) = a.dice.pick(&VALUES[..20]);
        let value = a.dice.pick(values);
        let scope = a.dice.pick(&["", "SESSION ", "@@", "@@session."]);
        text += &format!("{}{scope}{name} = {value}", if at == 0 { "" } else { ", " });
    }
    if a.dice.chance(30) {
        text += a.dice.pick(&[", @a = 'with others'", ", nobody_knows = 1", ", NAMES utf8mb4", ", @b := @@sql_mode"]);
    }
    a.query(&text);
    a.some(&PROBES[..6], 2);
}

pub(super) fn restore_from_variable(a: &mut Author) {
    let name = a.dice.pick(&["sql_mode", "time_zone", "foreign_key_checks", "character_set_client", "sql_notes"]);
    a.query(&format!("SET @old = @@{name}"));
    let text = assignment(a);
    a.query(&text);
    a.query(&format!("SET {name} = @old"));
    a.query(&format!("SELECT @old, @@{name}"));
}

pub(super) fn schema(a: &mut Author) {
    match a.dice.below(5) {
        0 => a.act(Act::Command(Command::InitDb, b"{s}".to_vec())),
        1 => a.act(Act::Command(Command::InitDb, b"{o}".to_vec())),
        2 => {
            let name = a.dice.pick(&["nowhere_to_be_found", "mysql", "", "test2"]);
            a.act(Act::Command(Command::InitDb, name.into()));
        }
        _ => a.any(&["USE {s}", "USE {o}", "use `{s}`", "USE nowhere_at_all", "USE test", "USE /* this */ {o} ;"]),
    }
    a.some(&["SELECT DATABASE()", "SELECT v, n FROM here", "SHOW TABLES LIKE 'h%'", "SELECT COUNT(*) FROM t{c}"], 2);
}

const ASSIGNMENTS: &[&str] = &[
    "SET @a = 1",
    "SET @a = -5, @b = 'text'",
    "SET @a = @a + 1",
    "SET @b = 'other', @c = NULL",
    "SET @c = 1.50",
    "SET @c = 2.5e0",
    "SET @d = x'00ff'",
    "SET @d = _latin1'abc' COLLATE latin1_german2_ci",
    "SET @b = 'caf\u{e9}'",
    "SET @a := 18446744073709551615",
    "SET @e = CAST('2020-01-01' AS DATE), @f = CAST('12:00:00.5' AS TIME(2))",
    "SET @g = TRUE, @x = CAST(7 AS UNSIGNED)",
    "SET @e = NOW() < '2000-01-01'",
    "SET @`b` = 'quoted', @'c' = 'in quotes'",
    "SET @b = ''",
    "SET @b = REPEAT('long', 100)",
    "SET @f = 1.0000000000000000000000001",
    "SET @a = (SELECT COUNT(*) FROM {s}.shared)",
    "SET @a = 5, @b = (SELECT v FROM nowhere)",
    "SET @d = b'101', @e = 0x41",
    "SET @b = 'quote '' and \\\\ slash'",
    "SET @b = JSON_OBJECT('k', 1)",
    "SELECT 5 INTO @a",
    "SELECT id, v FROM {s}.shared WHERE id = 3 INTO @a, @b",
    "SELECT id, v INTO @a, @b FROM {s}.shared WHERE id < 3",
    "SELECT v FROM {s}.shared WHERE id > 100 INTO @b",
    "SELECT @a := 10, @b := 'selected'",
    "SELECT @a := @a + id FROM {s}.shared ORDER BY id",
    "SELECT @c := v FROM {s}.shared WHERE id = 4",
    "DO @a := 77",
    "UPDATE {s}.t{c} SET n = (@a := n) WHERE v = 'a'",
    "SELECT IF(@a > 3, @b := 'much', @b := 'little')",
    "SET @`odd name` = 'odd', @x = 'x'",
    "SELECT SUM(n) FROM {s}.shared INTO @d",
    "SET @t = TIMESTAMP '2020-01-01 10:00:00', @x = @t + INTERVAL 1 DAY",
];

const READS: &[&str] = &[
    "SELECT @a, @b, @c, @d",
    "SELECT @e, @f, @g, @x",
    "SELECT @a + 0, CONCAT(@b, '!'), @c * 2, HEX(@d)",
    "SELECT COLLATION(@b), CHARSET(@d), COERCIBILITY(@a), @`odd name`",
    "SELECT * FROM {s}.shared WHERE id = @a",
    "SELECT v FROM {s}.shared WHERE v = @b OR n > @a ORDER BY id",
    "SELECT @nobody",
    "SET @b = CONCAT(@b, @a)",
];

pub(super) fn user_variables(a: &mut Author) {
    a.some(ASSIGNMENTS, 3);
    a.some(READS, 3);
}
