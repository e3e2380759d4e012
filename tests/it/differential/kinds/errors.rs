//! Statements that fail in all sorts of ways.

use crate::differential::author::Author;

pub(super) fn failing(a: &mut Author) {
    a.some(
        &[
            "SELEC 1",
            "SELECT",
            "",
            ";",
            "/* nothing */",
            "SELECT 'unfinished",
            "SELECT * FROM nowhere",
            "SELECT nothing FROM {s}.shared",
            "SELECT no_such_function(1)",
            "SELECT (1, 2) = 1",
            "INSERT INTO {s}.t{c} (id, v) VALUES (1, 'zz'), (2, 'zz')",
            "INSERT INTO {s}.t{c} (v, w) VALUES (1, 2)",
            "UPDATE {s}.t{c} SET nothing = 1",
            "CREATE TABLE {s}.shared (id INT)",
            "DROP TABLE {s}.nothing_{c}",
            "DROP DATABASE mysql",
            "SET GLOBAL max_connections = 1",
            "SELECT * FROM mysql.user",
            "KILL 0",
            "KILL QUERY 4000000000",
            "CALL nothing()",
            "EXECUTE nothing",
            "DEALLOCATE PREPARE nothing",
            "ROLLBACK TO SAVEPOINT nothing",
            "XA COMMIT '{s}.nothing'",
            "HANDLER nothing READ FIRST",
            "SELECT JSON_EXTRACT('{', '$')",
            "SELECT EXP(10000)",
            "SELECT 9223372036854775807 + 1",
            "LOAD DATA INFILE '/nowhere' INTO TABLE {s}.t{c}",
            "SELECT @a := nothing",
            "SET @a = nothing",
            "SET @a = 1, nobody = 2",
            "SELECT v INTO @b FROM {s}.shared",
            "CREATE TEMPORARY TABLE bad (a NOTYPE)",
            "PREPARE p FROM 'SELEC'",
            "SELECT GET_LOCK(REPEAT('{s}', 10), 0)",
            "BEGIN BEGIN",
            "USE nowhere",
        ],
        2,
    );
    a.any(&["SHOW WARNINGS", "SELECT @@error_count", "SELECT ROW_COUNT()", "SELECT @a, @b", "SELECT 1", "SHOW ERRORS"]);
}
