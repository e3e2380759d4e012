//! Session state: what one client sets, or has open, is its own.

use super::{ALL, Form, TWO, case};
use crate::prepared::{execute, one, text};
use crate::support::{on_both, one_backend, own_backends};

case!(
    /// S1, S10, S11, S12
    variables,
    one_backend,
    ALL,
    &[
        "a: DROP TABLE IF EXISTS t",
        "a: CREATE TABLE t (n INT PRIMARY KEY, m INT)",
        "a: INSERT INTO t VALUES (1, 1), (2, 2)",
        "a: SET sql_mode = ''",
        "b: SELECT @@sql_mode",
        "a: SELECT @@sql_mode",
        "a: SET time_zone = ? <- +11:30",
        "b: SELECT @@time_zone, TIMEDIFF(NOW(), UTC_TIMESTAMP())",
        "a: SELECT @@time_zone, TIMEDIFF(NOW(), UTC_TIMESTAMP())",
        "a: SET sql_safe_updates = 1",
        "b: UPDATE t SET m = m + 1",
        "a: UPDATE t SET m = m + 1",
        "a: SHOW VARIABLES LIKE 'sql_safe_updates'",
        "a: SET TIMESTAMP = 1500000000",
        "b: SELECT NOW() > '2020-01-01'",
        "a: SELECT NOW()",
        "a-",
        "a: SELECT @@sql_mode, @@time_zone, @@sql_safe_updates, NOW() > '2020-01-01'",
        "b: UPDATE t SET m = m + 1",
        "a: UPDATE t SET m = m + 1",
        // S10
        "a: SET time_zone = '-3:30'",
        "a: SET @old = @@time_zone",
        "a: SET time_zone = '+1:00'",
        "b: SELECT @@time_zone",
        "a: SELECT @@time_zone",
        // S12
        "a: SET SESSION sql_mode = 'ANSI_QUOTES,NO_ZERO_DATE', NAMES utf8mb4, time_zone = '+2:00'",
        "b: SELECT @@sql_mode, @@time_zone, @@character_set_client",
        "a: SELECT @@sql_mode, @@time_zone, @@character_set_client",
        "a: SET SESSION time_zone = '+4:00', nobody_has_heard_of_this = 1",
        "a: SET nobody_has_heard_of_this = 1",
        "a: SELECT @@nobody_has_heard_of_this",
        "a: SELECT @@time_zone",
        "b: SELECT @@sql_mode, @@time_zone, @@character_set_client",
    ]
);

case!(
    /// S10
    a_value_is_put_back_from_a_user_variable,
    one_backend,
    TWO,
    &[
        "a: SET time_zone = '-3:30'",
        "a: SET @old = @@time_zone",
        "a: SET time_zone = '+1:00'",
        "b: SELECT @@time_zone, @old",
        "a! SET time_zone = @old",
        "a: SELECT @@time_zone, @old",
    ]
);

case!(
    /// S4
    temporary_tables,
    |config| config.pool.max_connections = 2,
    ALL,
    &[
        "a! CREATE TEMPORARY TABLE own (n INT)",
        "b: SELECT * FROM own",
        "a! INSERT INTO own VALUES (1), (2)",
        "b: CREATE TABLE IF NOT EXISTS common (n INT)",
        "a! SELECT * FROM own",
        "a: DROP TEMPORARY TABLE own",
        "a: SELECT * FROM own",
        "a! create /* of my own */ temporary\ttable\nown (n INT)",
        "b: SELECT * FROM own",
        "a! SELECT COUNT(*) FROM own",
        "a: DROP TABLE own",
        "a! CREATE TEMPORARY TABLE own AS SELECT 7 AS n",
        "b: SELECT * FROM own",
        "a! SELECT n FROM own",
        "a! ALTER TABLE own ADD COLUMN m INT",
        "a! SELECT * FROM own",
        "a! DROP TABLE own",
        "b: SELECT * FROM own",
        "a-",
        "a: SELECT * FROM own",
        "a! CREATE OR REPLACE TEMPORARY TABLE own (n INT)",
        "a! CREATE OR REPLACE TEMPORARY TABLE own (m INT)",
        "b: SELECT * FROM own",
        "a! SELECT * FROM own",
        "a-",
        "a: SELECT * FROM own",
    ]
);

case!(
    /// S5, S6
    transactions,
    |config| config.pool.max_connections = 2,
    ALL,
    &[
        "a: DROP TABLE IF EXISTS t",
        "a: CREATE TABLE t (n INT PRIMARY KEY)",
        "a: INSERT INTO t VALUES (1)",
        "a! START TRANSACTION",
        "a! SELECT * FROM t",
        "b: INSERT INTO t VALUES (2)",
        "b: SELECT * FROM t",
        "a! SELECT * FROM t",
        "a! INSERT INTO t VALUES (3)",
        "b: SELECT * FROM t",
        "a: COMMIT",
        "a: SELECT * FROM t",
        "b: SELECT * FROM t",
        "a: SET autocommit = 0",
        "a! INSERT INTO t VALUES (4)",
        "a! SELECT * FROM t",
        "b: SELECT * FROM t",
        "a: ROLLBACK",
        "a: SET @x = 1",
        "a! INSERT INTO t VALUES (5)",
        "b: SELECT * FROM t",
        "a! SET @x = 2",
        "a: ROLLBACK",
        "a! SELECT * FROM t",
        "a: COMMIT",
        "a! UPDATE t SET n = n + 10",
        "a: COMMIT",
        "b: SELECT * FROM t",
        "a: SET autocommit = 1",
        "a: DELETE FROM t WHERE n > 11",
        "b: SELECT * FROM t",
    ]
);

case!(
    /// S14: the next transaction only, and what it is shows by what it reads.
    one_transactions_isolation,
    |config| config.pool.max_connections = 2,
    ALL,
    &[
        "a: DROP TABLE IF EXISTS t",
        "a: CREATE TABLE t (n INT PRIMARY KEY)",
        "a! SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "b: INSERT INTO t VALUES (1)",
        "a! BEGIN",
        "a! SELECT * FROM t",
        "b: INSERT INTO t VALUES (2)",
        "a! SELECT * FROM t",
        "a: COMMIT",
        "a! BEGIN",
        "a! SELECT * FROM t",
        "b: INSERT INTO t VALUES (3)",
        "a! SELECT * FROM t",
        "a: COMMIT",
        // The session's own level is what it was, and another one's.
        "a: SELECT @@transaction_isolation",
        "a! SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED, READ ONLY",
        "b! BEGIN",
        "b! INSERT INTO t VALUES (4)",
        "a! BEGIN",
        "a! SELECT * FROM t",
        "a! INSERT INTO t VALUES (5)",
        "a! COMMIT",
        "a! BEGIN",
        "a! SELECT * FROM t",
        "a! INSERT INTO t VALUES (6)",
        "a: ROLLBACK",
        "b: ROLLBACK",
        // Without a transaction of its own the next statement uses it up.
        "a! SET TRANSACTION READ ONLY",
        "a! SELECT * FROM t",
        "a: INSERT INTO t VALUES (7)",
        // For the session it lasts.
        "a: SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "b: SELECT @@transaction_isolation",
        "a! BEGIN",
        "a! SELECT * FROM t",
        "b: INSERT INTO t VALUES (8)",
        "a! SELECT * FROM t",
        "a: COMMIT",
        "a: SELECT @@transaction_isolation",
    ]
);

case!(
    /// S7, S8
    rows_and_ids,
    one_backend,
    TWO,
    &[
        "a: DROP TABLE IF EXISTS t, u",
        "a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
        "a: CREATE TABLE u (n INT)",
        "a: INSERT INTO t (n) VALUES (?), (?) <- 5, 6",
        "b: INSERT INTO t (n) VALUES (7), (8), (9)",
        "a: SELECT LAST_INSERT_ID() AS x",
        "b: SELECT LAST_INSERT_ID() AS x FROM DUAL",
        "a: INSERT INTO u VALUES (LAST_INSERT_ID())",
        "a: SELECT LAST_INSERT_ID()",
        "a: SELECT * FROM u",
        "a: SELECT * FROM t WHERE id = LAST_INSERT_ID()",
        "a: SELECT SQL_CALC_FOUND_ROWS n FROM t LIMIT 1",
        "b: SELECT SQL_CALC_FOUND_ROWS n FROM t WHERE id < 3 LIMIT 1",
        "a: SELECT FOUND_ROWS()",
        "b: SELECT FOUND_ROWS()",
        "a: UPDATE t SET n = n + 1 WHERE id < 4",
        "b: SELECT ROW_COUNT()",
        "a: SELECT ROW_COUNT()",
        "a: INSERT INTO t (id, n) VALUES (100, 1)",
        "a: SELECT LAST_INSERT_ID()",
        "a: DO LAST_INSERT_ID(77)",
        "b: SELECT LAST_INSERT_ID()",
        "a: SELECT LAST_INSERT_ID(), @@identity",
    ]
);

case!(
    /// S17
    own_writes,
    |config| config.pool.max_connections = 2,
    ALL,
    &[
        "a: DROP TABLE IF EXISTS t",
        "a: CREATE TABLE t (n INT)",
        "a: INSERT INTO t VALUES (?) <- 1",
        "a: SELECT * FROM t",
        "b: INSERT INTO t VALUES (?) <- 2",
        "b: SELECT * FROM t",
        "a: DELETE FROM t WHERE n = ? <- 1",
        "a: SELECT * FROM t",
        "b: UPDATE t SET n = ? <- 9",
        "a: SELECT * FROM t",
        "b: SELECT * FROM t",
    ]
);

case!(
    /// S3: what a procedure leaves is its caller's alone. (Its own tables and variables are in `unseen`.)
    what_a_procedure_leaves,
    |config| config.pool.max_connections = 2,
    TWO,
    &[
        "a: DROP PROCEDURE IF EXISTS leaves",
        "a: CREATE PROCEDURE leaves(z VARCHAR(9)) BEGIN SET sql_mode = 'ANSI'; SET time_zone = z; \
         CREATE TEMPORARY TABLE own (n INT); SELECT 7 INTO @v; END",
        "a! CALL leaves(?) <- +9:00",
        "b: SELECT @@sql_mode, @@time_zone, @v",
        "b: SELECT * FROM own",
        "a! SELECT @@sql_mode = 'ANSI', @@time_zone, @v",
        "a! SELECT * FROM own",
        "a-",
        "a: SELECT @@sql_mode, @@time_zone, @v",
        "a: SELECT * FROM own",
    ]
);

case!(
    /// What lasts for one statement, and what holds several. (MySQL has neither: it must say the same.)
    for_one_statement,
    |config| config.pool.max_connections = 2,
    &[Form::Text],
    &[
        "a: SET STATEMENT sql_mode = 'ANSI', time_zone = '+05:00' FOR SELECT @@sql_mode, @@time_zone",
        "b: SELECT @@sql_mode, @@time_zone",
        "a: SELECT @@sql_mode, @@time_zone",
        "a: SET STATEMENT max_statement_time = 5 FOR SET time_zone = '+6:00'",
        "a: SELECT @@time_zone",
        "a: SET STATEMENT max_statement_time = 5 FOR SELECT CAST('x' AS SIGNED)",
        "b: SHOW WARNINGS",
        "a: SHOW WARNINGS",
        "a! BEGIN NOT ATOMIC SET time_zone = '+3:00'; SET @x = 5; SET sql_mode = ''; END",
        "b: SELECT @@time_zone, @@sql_mode",
        "a! SELECT @@time_zone, @@sql_mode, @x",
        "a-",
        "a: SELECT @@time_zone, @@sql_mode",
    ]
);

case!(
    /// What a sequence gave last is its session's own (MariaDB).
    sequences,
    one_backend,
    TWO,
    &[
        "a: CREATE SEQUENCE IF NOT EXISTS s",
        "a! CREATE TABLE IF NOT EXISTS drawn (id INT DEFAULT NEXTVAL(s), n INT)",
        "a-",
        "a: INSERT INTO drawn (n) VALUES (1), (2)",
        "b! SELECT LASTVAL(s)",
        "b! SELECT NEXTVAL(s)",
        "b! SELECT LASTVAL(s), PREVIOUS VALUE FOR s",
        "b-",
        "a! INSERT INTO drawn (n) VALUES (3)",
        "a! SELECT LASTVAL(s)",
        "a! SELECT NEXT VALUE FOR s",
        "a! SELECT LASTVAL(s)",
        "a-",
        "b: SELECT 1",
        "a: DROP TABLE drawn",
        "a: DROP SEQUENCE s",
    ]
);

on_both!(
    /// S2, prepared
    prepared_settings_outlive_their_backend,
    |config| {
        one_backend(config);
        own_backends(config);
    },
    |t| async move {
        let (mut client, mut other) = (t.client().await, t.client().await);
        for setting in ["SET sql_mode = ?", "SET time_zone = ?"] {
            let id = client.prepare(setting).await;
            let value = if setting.contains("zone") { "+11:30" } else { "ANSI" };
            execute(&mut client, id, &[text(value)]).await.expect_ok();
        }
        let look = "SELECT CONCAT(@@sql_mode, @@time_zone)";
        let (mine, theirs) = (client.prepare(look).await, other.prepare(look).await);
        let (own, usual) = (one(&mut client, mine, &[]).await, one(&mut other, theirs, &[]).await);
        assert!(own.contains("ANSI") && own.contains("+11:30") && !usual.contains("ANSI") && !usual.contains("+11:30"));
        for _ in 0..3 {
            t.kill_backends().await;
            assert_eq!(one(&mut client, mine, &[]).await, own);
            t.kill_backends().await;
            assert_eq!(one(&mut other, theirs, &[]).await, usual);
        }
    }
);
