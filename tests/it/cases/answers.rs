//! Answers: warnings, several statements, prepared statements under definitions that change.

use super::{ALL, TWO, case};
use crate::support::{on_both, one_backend};

case!(
    /// W1
    warnings,
    one_backend,
    TWO,
    &[
        "a: DROP TABLE IF EXISTS t",
        "a: CREATE TABLE t (n TINYINT)",
        "a: SET sql_mode = ''",
        "a: SELECT CAST(? AS SIGNED) <- x",
        "b: SHOW WARNINGS",
        "a: SHOW WARNINGS",
        "a: SHOW /* hm */ COUNT(*) /* hm */ WARNINGS",
        "a: SELECT @@warning_count, @@error_count",
        "a: INSERT INTO t VALUES (1000), (?) <- x",
        "b: SELECT @@warning_count",
        "a: SHOW COUNT(*) WARNINGS",
        "a: SHOW WARNINGS LIMIT 1",
        "a: SELECT @@warning_count",
        "a: SELECT * FROM nowhere",
        "b: SHOW ERRORS",
        "a: SHOW ERRORS",
        "a: GET DIAGNOSTICS @n = NUMBER",
        "a: GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT, @c = MYSQL_ERRNO",
        "b: SELECT 1",
        "a: SHOW /**/ WARNINGS",
    ]
);

case!(
    /// P3, P4
    definitions_and_types,
    one_backend,
    ALL,
    &[
        "a: DROP TABLE IF EXISTS t",
        "a: CREATE TABLE t (n INT)",
        "a: INSERT INTO t VALUES (1)",
        "a: SELECT * FROM t",
        "b: ALTER TABLE t ADD COLUMN m INT DEFAULT 2",
        "a: SELECT * FROM t",
        "b: ALTER TABLE t MODIFY m VARCHAR(9)",
        "a: SELECT * FROM t WHERE m = ? <- 2",
        "b: DROP TABLE t",
        "a: SELECT * FROM t",
        "b: CREATE TABLE t (other DATE)",
        "a: SELECT * FROM t",
        "a: SELECT ? <- x",
        "a: SELECT ? + 1 <- 5",
    ]
);
