//! What drivers say when they connect, over and over: the proxy answers it from memory.

use crate::differential::author::Author;

const SAID: &[&str] = &[
    "SET NAMES utf8mb4",
    "SET NAMES utf8mb4",
    "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci'",
    "SET NAMES latin1",
    "SET autocommit=1",
    "SET autocommit=1",
    "SET SESSION autocommit = 1, sql_mode = 'STRICT_TRANS_TABLES'",
    "SET sql_mode=''",
    "SET @@session.sql_mode = 'ANSI_QUOTES', @@sql_notes = 1;",
    "SET SESSION sql_mode='NO_ZERO_DATE'",
    "SET time_zone='+00:00'",
    "SET time_zone = SYSTEM",
    "SET SESSION wait_timeout=1000, net_write_timeout = 77",
    "SET character_set_results = NULL",
    "SET character_set_results=utf8mb4, character_set_client=utf8mb4",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET sql_safe_updates=0, sql_select_limit=1000",
    "SET SESSION div_precision_increment=1000",
    "SET CHARACTER SET utf8mb4",
    "SET lc_time_names='xx_YY'",
];

/// What may be asked about it, or about what was before.
const ASKED: &[&str] = &[
    "SELECT ROW_COUNT()",
    "SELECT ROW_COUNT() IS NULL AS n, @@warning_count",
    "SHOW WARNINGS",
    "SHOW COUNT(*) WARNINGS",
    "SELECT LAST_INSERT_ID()",
    "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT",
    "SELECT @@sql_mode, @@time_zone, @@wait_timeout, @@sql_select_limit",
    "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection",
    "SELECT \"x\", 'a' || 'b'",
    "INSERT INTO t{c} (n) VALUES (1)",
];

/// What leaves something to be asked about.
const BEFORE: &[&str] = &[
    "SELECT CAST('x' AS SIGNED)",
    "UPDATE t{c} SET n = n + 1 LIMIT 2",
    "SELECT id FROM {s}.shared",
    "SELECT nothing",
    "INSERT INTO t{c} (n) VALUES (5)",
    "SET @a = 5",
];

pub(super) fn chatter(a: &mut Author) {
    // From the second time on it leads to where it began, and from the third time on that is known.
    let said: Vec<_> = (0..=a.dice.below(2)).map(|_| a.dice.pick(SAID)).collect();
    let finds = a.dice.chance(20);
    if finds {
        a.query("SELECT id FROM {s}.shared");
    }
    for _ in 0..4 {
        if a.dice.chance(30) {
            a.any(BEFORE);
        }
        said.iter().for_each(|sql| a.query(sql));
        if finds {
            a.query("SELECT FOUND_ROWS(), 1");
        }
        if a.dice.chance(50) {
            a.some(ASKED, 2);
        }
    }
}
