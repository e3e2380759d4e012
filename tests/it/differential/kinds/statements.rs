//! Statements, and what is asked about the one before.

use crate::differential::author::Author;
use crate::differential::script::Act;

const INSERTS: &[&str] = &[
    "INSERT INTO {s}.t{c} (n) VALUES (1)",
    "INSERT INTO {s}.t{c} (n) VALUES (1), (2), (3)",
    "INSERT INTO {s}.t{c} (id, n) VALUES (9000, 1)",
    "INSERT IGNORE INTO {s}.t{c} (v) VALUES ('a')",
    "INSERT IGNORE INTO {s}.t{c} (v) VALUES ('a'), (NULL)",
    "INSERT INTO {s}.t{c} (v) VALUES ('a')",
    "INSERT INTO {s}.t{c} (v) VALUES ('a') ON DUPLICATE KEY UPDATE n = n + 1",
    "INSERT INTO {s}.t{c} (v) VALUES ('b') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), n = n + 1",
    "INSERT INTO {s}.t{c} (id, n) VALUES (0, 5)",
    "INSERT INTO {s}.t{c} (id, n) VALUES (NULL, LAST_INSERT_ID())",
    "REPLACE INTO {s}.t{c} (v, n) VALUES ('c', 9)",
    "INSERT INTO {s}.t{c} (n) SELECT id FROM {s}.shared WHERE id < 4",
    "UPDATE {s}.t{c} SET n = LAST_INSERT_ID(n + 100) WHERE v = 'a'",
    "SELECT LAST_INSERT_ID(888)",
    "DO LAST_INSERT_ID(889)",
    "SET last_insert_id = 77",
    "SET insert_id = 5000",
    "INSERT INTO {s}.t{c} (v) VALUES ('this text is too long for it')",
    "INSERT INTO {s}.t{c} (n) VALUES (NULL)",
    "DELETE FROM {s}.t{c} WHERE id > 5",
    "SELECT 1",
];

const IDS: &[&str] = &[
    "SELECT LAST_INSERT_ID()",
    "SELECT LAST_INSERT_ID() AS id",
    "SELECT LAST_INSERT_ID() FROM DUAL",
    "SELECT @@last_insert_id, @@identity",
    "SELECT LAST_INSERT_ID() + 1, DATABASE()",
    "INSERT INTO {s}.t{c} (n) VALUES (LAST_INSERT_ID())",
    "SET @id = LAST_INSERT_ID()",
    "SELECT * FROM {s}.t{c} WHERE id = LAST_INSERT_ID()",
    "SELECT id FROM {s}.t{c} WHERE id IS NULL",
    "SELECT last_insert_id ()",
];

pub(super) fn insert_ids(a: &mut Author) {
    a.some(INSERTS, 2);
    a.some(IDS, 2);
}

const LEAVING: &[&str] = &[
    "UPDATE {s}.t{c} SET n = n + 1 WHERE id < 3",
    "UPDATE {s}.t{c} SET n = n WHERE id < 3",
    "DELETE FROM {s}.t{c} WHERE id = 4",
    "INSERT INTO {s}.t{c} (n) VALUES (1), (2)",
    "SELECT id FROM {s}.shared ORDER BY id",
    "SELECT id FROM {s}.shared ORDER BY id LIMIT 2",
    "SELECT SQL_CALC_FOUND_ROWS id FROM {s}.shared ORDER BY id LIMIT 2",
    "SELECT id FROM {s}.shared WHERE FALSE",
    "SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED), 1 / 0",
    "SELECT CAST(v AS SIGNED) FROM {s}.shared WHERE id < 4",
    "INSERT IGNORE INTO {s}.t{c} (v, n) VALUES ('a', NULL), ('b', 'x')",
    "SELECT nothing",
    "SELECT * FROM nowhere",
    "SELEC 1",
    "DROP TABLE IF EXISTS {s}.nothing_{c}",
    "SET @a = 1",
    "SET sort_buffer_size = 1",
    "DO CAST('z' AS SIGNED)",
    "CREATE TABLE IF NOT EXISTS {s}.shared (id INT)",
    "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'a warning'",
    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'signalled', MYSQL_ERRNO = 31337",
    "SHOW TABLES LIKE 'nothing'",
    "EXPLAIN SELECT 1",
    "SELECT 1 UNION SELECT 2",
    "SELECT 1",
    "CALL {s}.p_warn()",
    "CALL {s}.p_many()",
    "SELECT @a := 1, 1 / 0",
    "TRUNCATE TABLE {s}.g{c}",
    "ANALYZE TABLE {s}.shared",
];

const PLAIN: &[&str] = &[
    "SELECT ROW_COUNT()",
    "SELECT FOUND_ROWS()",
    "SHOW WARNINGS",
    "SHOW ERRORS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW COUNT(*) ERRORS",
    "SELECT @@warning_count",
    "SELECT @@error_count",
];

const LARGER: &[&str] = &[
    "SELECT ROW_COUNT() AS n",
    "SELECT ROW_COUNT(), LAST_INSERT_ID()",
    "SELECT FOUND_ROWS() + 1",
    "SELECT FOUND_ROWS() AS n, DATABASE()",
    "SHOW WARNINGS LIMIT 1",
    "SHOW WARNINGS LIMIT 1, 5",
    "SHOW ERRORS LIMIT 1",
    "SHOW /* these */ WARNINGS",
    "SELECT @@warning_count, @@error_count",
    "SELECT @@warning_count AS n",
    "SELECT @@session.warning_count + 1",
    "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT",
    "GET DIAGNOSTICS CONDITION 1 @code = MYSQL_ERRNO, @text = MESSAGE_TEXT",
    "SET @r = ROW_COUNT()",
    "SELECT id FROM {s}.shared WHERE id = ROW_COUNT()",
    "SELECT ROW_COUNT() INTO @r",
    "SHOW VARIABLES LIKE 'warning_count'",
    "SHOW VARIABLES LIKE 'error_count'",
    "DO ROW_COUNT()",
    "RESIGNAL",
];

pub(super) fn questions(a: &mut Author) {
    a.some(LEAVING, 2);
    for _ in 0..=a.dice.below(3) {
        let asked = if a.dice.chance(60) { PLAIN } else { LARGER };
        a.any(asked);
    }
    if a.dice.chance(20) {
        a.query("SELECT @n, @r, @code, @text");
    }
}

pub(super) fn reads(a: &mut Author) {
    a.some(
        &[
            "SELECT * FROM {s}.shared ORDER BY id",
            "SELECT COUNT(*), SUM(n), MIN(v) FROM {s}.shared",
            "SELECT id, v FROM {s}.altered ORDER BY id",
            "SELECT * FROM {s}.altered ORDER BY id",
            "SELECT a.id, b.id FROM {s}.shared AS a, {s}.shared AS b ORDER BY 1, 2",
            "SELECT * FROM {s}.t{c} ORDER BY id LIMIT 5",
            "SHOW COLUMNS FROM {s}.t{c}",
            "SHOW CREATE TABLE {s}.shared",
            "SELECT REPEAT('f', 20000), 1",
            "VALUES ROW(1, 'a'), ROW(2, 'b')",
            "WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < 40) SELECT i FROM s",
            "EXPLAIN SELECT * FROM {s}.shared WHERE id = 2",
            "SELECT RAND(5), RAND(6)",
            "SELECT UUID() = UUID(), SLEEP(0), BENCHMARK(1, 1)",
            "HELP 'nothing of this name'",
        ],
        2,
    );
}

pub(super) fn writes(a: &mut Author) {
    a.some(
        &[
            "UPDATE {s}.t{c} SET n = n + 1 WHERE id IN (1, 2)",
            "UPDATE {s}.t{c} SET n = 5",
            "DELETE FROM {s}.t{c}",
            "DELETE FROM {s}.t{c} WHERE id > 100",
            "INSERT INTO {s}.t{c} (v, n) VALUES (CONCAT('w', RAND(2)), 1)",
            "INSERT INTO {s}.t{c} (n) VALUES (RAND(3) * 100)",
            "TRUNCATE TABLE {s}.t{c}",
            "CREATE TABLE {s}.own_{c} (id INT)",
            "DROP TABLE {s}.own_{c}",
            "DROP TABLE IF EXISTS {s}.own_{c}",
            "ALTER TABLE {s}.t{c} COMMENT = 'altered'",
            "INSERT INTO {s}.t{c} (v, n) VALUES ('a', 1), ('b', 2), ('c', 3)",
            "INSERT INTO {s}.t{c} (v) VALUES ('r') RETURNING id, v",
        ],
        3,
    );
}

/// Several statements in one text; most clients may not, and get an error.
pub(super) fn several(a: &mut Author) {
    a.some(
        &[
            "SELECT 1; SELECT 2",
            "SET @a = 1; SELECT @a; SET @a = 2; SELECT @a",
            "UPDATE {s}.t{c} SET n = n + 1 WHERE id < 3; SELECT ROW_COUNT()",
            "SELECT ROW_COUNT(); SELECT 2",
            "INSERT INTO {s}.t{c} (n) VALUES (5); SELECT LAST_INSERT_ID()",
            "SELECT CAST('x' AS SIGNED); SHOW WARNINGS; SELECT @@warning_count",
            "SELECT 1; SELECT * FROM nowhere; SELECT 2",
            "SELECT 1; SELEC 2",
            "SET sql_mode = 'ANSI_QUOTES'; SELECT \"id\" FROM {s}.shared ORDER BY \"id\" LIMIT 1",
            "SET time_zone = '+03:00'; SET lc_time_names = 'es_ES'; SELECT @@time_zone",
            "USE {o}; SELECT DATABASE(), v FROM here",
            "USE {s}; SELECT * FROM nowhere; USE {o}",
            "BEGIN; INSERT INTO {s}.t{c} (n) VALUES (800); ROLLBACK; SELECT COUNT(*) FROM {s}.t{c}",
            "CALL {s}.p_many(); SELECT 'behind'",
            "SELECT SQL_CALC_FOUND_ROWS id FROM {s}.shared ORDER BY id LIMIT 1; SELECT FOUND_ROWS()",
            "SET NAMES latin1; SELECT '\u{e9}'; SET NAMES utf8mb4",
            "SELECT 1;",
            "SET @b = 'one'; SELECT 5 INTO @a; SET sql_notes = 0",
            "PREPARE p FROM 'SELECT 5'; EXECUTE p; DEALLOCATE PREPARE p",
            "DO GET_LOCK('{s}.m{c}', 0); DO RELEASE_LOCK('{s}.m{c}')",
            "CREATE TEMPORARY TABLE tmp_m (id INT); INSERT INTO tmp_m VALUES (1); DROP TEMPORARY TABLE tmp_m",
        ],
        2,
    );
    a.any(&["SELECT @a, @b, @@sql_mode, @@time_zone, DATABASE()", "SELECT ROW_COUNT()", "SHOW WARNINGS", "SELECT 1"]);
}

/// LOAD DATA LOCAL.
pub(super) fn files(a: &mut Author) {
    let sql = a.dice.pick(&[
        "LOAD DATA LOCAL INFILE 'x' IGNORE INTO TABLE {s}.t{c} (v, n)",
        "LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE {s}.t{c} (v, @n) SET n = @n + 1",
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE nowhere",
    ]);
    let file = a.dice.pick(&["l1\t1\nl2\t2\n", "", "a\t5\nl3\tno number\ntoo many\t1\t2\t3\n"]);
    let sql = a.text(sql);
    a.act(Act::Local(sql, file.into()));
    a.some(
        &["SHOW WARNINGS", "SELECT ROW_COUNT()", "SELECT @n", "SELECT LAST_INSERT_ID()", "SHOW COUNT(*) WARNINGS"],
        2,
    );
}

/// DDL on a table that others read and have prepared statements about.
pub(super) fn alter(a: &mut Author) {
    a.quiet();
    a.any(&[
        "ALTER TABLE {s}.altered ADD COLUMN w INT DEFAULT 5",
        "ALTER TABLE {s}.altered DROP COLUMN w",
        "ALTER TABLE {s}.altered MODIFY v VARCHAR(30)",
        "ALTER TABLE {s}.altered MODIFY v TEXT",
        "DROP TABLE {s}.altered",
        "CREATE TABLE IF NOT EXISTS {s}.altered (id INT PRIMARY KEY, v VARCHAR(20))",
        "INSERT IGNORE INTO {s}.altered (id, v) VALUES (3, 'c'), (4, 'd')",
        "UPDATE {s}.altered SET v = CONCAT(v, 'x')",
        "CREATE OR REPLACE VIEW {s}.a_view AS SELECT id FROM {s}.shared",
    ]);
    a.at_once();
}
