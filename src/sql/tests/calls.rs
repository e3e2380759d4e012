//! Which texts call a function that is not the server's own.

use super::*;

fn calls(text: &str, mode: Mode) -> bool {
    effects(text.as_bytes(), mode).may(Flags::CALLS_FUNCTION)
}

/// Where the grammar allows an expression, a function may be called.
const CALLS: &[&str] = &[
    "SELECT f()",
    "SELECT f(1), 2",
    "select\tF/* c */(1)",
    "SELECT f (SELECT_, 1)",
    "SELECT f((SELECT 1))",
    "SELECT `f`(1)",
    "SELECT `a b`(1)",
    "SELECT db.f(1)",
    "SELECT `db` . `f` (1)",
    "SELECT db.concat(1)",
    "SELECT db.`count`(1)",
    "SELECT é()",
    "SELECT 1f()",
    "SELECT $f()",
    "SELECT DISTINCT f(a) FROM t",
    "SELECT HIGH_PRIORITY f(1)",
    "SELECT SQL_NO_CACHE f(1)",
    "SELECT -f(1)",
    "SELECT NOT f(1), !f(1), ~f(1)",
    "SELECT 1 + f(1)",
    "SELECT a.b, f(1) FROM t",
    "SELECT t.*, f(1) FROM t",
    "SELECT CONCAT('a', f(1))",
    "SELECT CASE f(1) WHEN 1 THEN 2 END",
    "SELECT CASE WHEN 1 THEN f(1) ELSE 2 END",
    "SELECT CASE WHEN 1 THEN 1 ELSE f(1) END",
    "SELECT IF(1, f(1), 2)",
    "SELECT EXTRACT(DAY FROM f(1))",
    "SELECT TRIM(LEADING 'x' FROM f(1))",
    "SELECT SUBSTRING('a' FROM 1 FOR f(1))",
    "SELECT '2020-01-01' + INTERVAL f(1) DAY",
    "SELECT 'a' LIKE 'b' ESCAPE f(1)",
    "SELECT BINARY f(1)",
    "SELECT CAST(f(1) AS CHAR(10))",
    "SELECT {fn f(1)}",
    "SELECT {`fn` f(1)}",
    "SELECT SUM(a) OVER (PARTITION BY f(a) ORDER BY g(a)) FROM t",
    "SELECT GROUP_CONCAT(a ORDER BY f(a) SEPARATOR ',') FROM t",
    "SELECT 1 FROM t WHERE f(a)",
    "SELECT 1 FROM t WHERE (a) AND f(a)",
    "SELECT 1 FROM t WHERE a IN (1, f(2))",
    "SELECT 1 FROM t WHERE a = ANY (SELECT f(1))",
    "SELECT 1 FROM t WHERE a BETWEEN f(1) AND 2",
    "SELECT 1 FROM t JOIN u ON f(t.a)",
    "SELECT 1 FROM t JOIN u ON (f(t.a))",
    "SELECT 1 FROM (SELECT f(1)) AS t (a)",
    "SELECT 1 FROM t GROUP BY f(a)",
    "SELECT 1 FROM t GROUP BY a WITH ROLLUP HAVING f(a)",
    "SELECT 1 FROM t ORDER BY f(a)",
    "SELECT 1 UNION SELECT f(1)",
    "(SELECT f(1))",
    "WITH x (a) AS (SELECT f(1)), y (b) AS (SELECT 1) SELECT 1",
    "WITH x (a) AS (SELECT 1), y (b) AS (SELECT 1) SELECT 1, f(1)",
    "WITH x AS (SELECT 1) SELECT (1), f(1)",
    "WITH x AS (SELECT (1), f(2)) SELECT 1",
    "INSERT INTO t VALUES (f(1))",
    "INSERT INTO t (a) VALUES (1), (f(1))",
    "INSERT INTO t (a) VALUE (f(1))",
    "INSERT t SET a = f(1)",
    "INSERT INTO t (a) SELECT f(1)",
    "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = f(1)",
    "REPLACE INTO t VALUES (f(1))",
    "UPDATE t SET a = f(1)",
    "UPDATE t SET a = 1, b = f(1) WHERE g(1)",
    "DELETE FROM t WHERE f(1)",
    "DELETE FROM t ORDER BY f(a) LIMIT 1",
    "SET @a = f(1)",
    "SET a = 1, b = (f(1))",
    "DO f(1)",
    "DO 1, f(1)",
    "CALL p(f(1))",
    "SHOW TABLES WHERE f(1)",
    "EXPLAIN SELECT f(1)",
    "CREATE TABLE t AS SELECT f(1)",
    "CREATE TABLE t (a INT) SELECT f(1)",
    "CREATE TABLE t (a INT) VALUES ROW(f(1))",
    "CREATE TABLE t VALUES (f(1))",
    "LOAD DATA INFILE 'f' INTO TABLE t (a) SET b = f(1)",
    "HANDLER t READ FIRST WHERE f(1)",
    "PURGE BINARY LOGS BEFORE f(1)",
    "VALUES ROW(1, f(1))",
    "SELECT 1; SELECT f(1)",
    "/*!50000 SELECT f(1) */",
    "SELECT f /*!50000 (1) */",
    "SELECT `abs_`(1)",
    "SELECT `if`(1, 2, 3)",
    "SELECT `count`(1)",
    "SELECT f(",
];

/// What only looks like a call.
const NONE: &[&str] = &[
    "SELECT f",
    "SELECT f, (1)",
    "SELECT a.f FROM t WHERE a.f IN (1)",
    "SELECT ABS(1), abs (1), `abs`(1), `abs` (1)",
    "SELECT COUNT(*), count(1), MAX(a), NOW(), NOW(6), CURRENT_TIMESTAMP(), CURRENT_TIMESTAMP (6) FROM t",
    "SELECT IF(1, 2, 3), LEFT('a', 1), REPLACE('a', 'b', 'c'), INSERT('a', 1, 1, 'b'), VALUES(a), MOD (1, 2)",
    "SELECT CAST(a AS CHAR(10)), CAST(a AS DECIMAL(10,2)), CONVERT(a, DATETIME(6)), CONVERT(a USING utf8mb4)",
    "SELECT INTERVAL(1, 2), '2020-01-01' + INTERVAL (1) DAY, DATE '2020-01-01'",
    "SELECT CASE (1) WHEN (2) THEN (3) ELSE (4) END, NOT (1), 1 AND (1), 1 OR (1), 1 DIV (1), 1 XOR (0), 1 IS NULL",
    "SELECT a FROM t WHERE a IN (1, 2) AND b NOT IN (1) OR a BETWEEN (1) AND (2) AND a LIKE ('x') AND a REGEXP ('x')",
    "SELECT 1 FROM t WHERE EXISTS (SELECT 1) AND a = ANY (SELECT 1) AND a > ALL (SELECT 2) AND a = SOME (SELECT 3)",
    "SELECT 1 FROM t WHERE MATCH (a, b) AGAINST ('x' IN BOOLEAN MODE)",
    "SELECT 1 FROM t USE INDEX (i) IGNORE KEY FOR JOIN (j) FORCE INDEX FOR ORDER BY (k)",
    "SELECT 1 FROM t PARTITION (p0, p1) AS x JOIN u USING (a) JOIN (v, w) ON (1)",
    "SELECT 1 FROM t STRAIGHT_JOIN (SELECT 1) x, (SELECT 2) y (a, b), (SELECT 3) AS z(a)",
    "SELECT 1 FROM t WHERE (a, b) = (1, 2) AND ROW(a, b) = ROW (1, 2)",
    "SELECT SUM(a) OVER (PARTITION BY b), ROW_NUMBER() OVER w FROM t WINDOW w AS (ORDER BY a), v AS (w ROWS 1 PRECEDING)",
    "SELECT RANK() OVER (ORDER BY a), LAG(a, 1) OVER (ORDER BY a) FROM t",
    "SELECT DISTINCT (a), (b) FROM t LIMIT 1",
    "SELECT SQL_CALC_FOUND_ROWS (1)",
    "SELECT DEFAULT(a), DATABASE(), SCHEMA(), USER(), CURRENT_USER(), VERSION(), UUID(), RAND(), SLEEP(0) FROM t",
    "SELECT GET_FORMAT(DATE, 'ISO'), TIMESTAMPADD(DAY, 1, a), TIMESTAMPDIFF(DAY, a, b), EXTRACT(DAY FROM a) FROM t",
    "SELECT TRIM(LEADING 'x' FROM a), SUBSTRING(a FROM 1 FOR 2), POSITION('a' IN b), CHAR(65 USING utf8mb4) FROM t",
    "SELECT JSON_EXTRACT(a, '$'), JSON_ARRAYAGG(a), JSON_OBJECT('a', 1), ST_X(p), HEX(a), REGEXP_REPLACE(a, 'b', 'c') FROM t",
    "SELECT WEIGHT_STRING('a' AS CHAR(3)), GROUP_CONCAT(DISTINCT a ORDER BY b SEPARATOR ',') FROM t",
    "SELECT @a (1), @@a, @@session.a",
    "SELECT /*+ INDEX(t i) BKA(t) */ 1",
    "SELECT 1 /* f(1) */ -- f(1)",
    "SELECT 'f(1)', \"f(1)\", 'f' (1)",
    "(SELECT 1) UNION ALL (SELECT 2) EXCEPT (SELECT 3)",
    "SELECT 1 FROM t LIMIT 1 OFFSET 2 FOR UPDATE",
    "SELECT f(SELECT 1), f(*), COUNT (*)",
    "WITH x (a, b) AS (SELECT 1, 2), y (c) AS (SELECT 3), z AS (SELECT 4), w(d) AS (SELECT 5) SELECT * FROM x, y",
    "WITH RECURSIVE n (a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < 5) SELECT * FROM n",
    "SELECT * FROM (WITH x (a) AS (SELECT 1), y (b) AS (SELECT 2) SELECT * FROM x) z",
    "INSERT INTO t(a, b) VALUES (1, 2), (3, 4)",
    "INSERT INTO db.t (a) VALUES (1)",
    "INSERT INTO `db`.`t` (`a`) VALUES (1)",
    "INSERT t (a) VALUES (1)",
    "INSERT IGNORE t(a) VALUES (1)",
    "INSERT LOW_PRIORITY INTO t (a) VALUES (1)",
    "INSERT INTO t PARTITION (p) (a) VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a)",
    "INSERT INTO t (a) VALUES (1) AS new(b) ON DUPLICATE KEY UPDATE a = new.b",
    "INSERT INTO t VALUE (1)",
    "INSERT INTO value (a) VALUE (1)",
    "INSERT INTO t () VALUES ()",
    "INSERT INTO t (a) (SELECT 1)",
    "REPLACE t (a) VALUES (1)",
    "REPLACE INTO t(a) SELECT 1",
    "EXPLAIN INSERT INTO t (a) VALUES (1)",
    "EXPLAIN REPLACE t (a) VALUES (1)",
    "UPDATE t SET a = (1), b = NOW() WHERE (1)",
    "DELETE FROM t WHERE a IN (1)",
    "CALL p(1)",
    "CALL db.p (1)",
    "CREATE TABLE t (a INT(11) UNSIGNED, b VARCHAR(10) DEFAULT (UUID()), c DECIMAL(10,2), d ENUM('a'), PRIMARY KEY (a))",
    "CREATE TABLE IF NOT EXISTS db.t(a INT, KEY k (a), UNIQUE KEY u (a), INDEX i(a), CONSTRAINT c UNIQUE d (a))",
    "CREATE OR REPLACE TABLE t (a TEXT(10), FULLTEXT f (a), FULLTEXT INDEX g (a), SPATIAL KEY s (a))",
    "CREATE TEMPORARY TABLE t (a BIT(1), FOREIGN KEY f (a) REFERENCES u (a) ON DELETE CASCADE, CHECK (a > 1))",
    "CREATE TABLE t (a INT AS (1 + 1) STORED, b INT GENERATED ALWAYS AS (a) VIRTUAL, c MYTYPE(1))",
    "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN MAXVALUE)",
    "CREATE TABLE t (a INT) PARTITION BY LIST COLUMNS (a) SUBPARTITION BY HASH (a) (PARTITION p VALUES IN (1) (SUBPARTITION s))",
    "CREATE TABLE t (a INT) PARTITION BY KEY (a) PARTITIONS 4",
    "CREATE UNIQUE INDEX i ON t (a, b(10))",
    "CREATE VIEW v (a, b) AS SELECT 1, 2",
    "CREATE FUNCTION f(a INT) RETURNS CHAR(10) RETURN g(a)",
    "CREATE PROCEDURE p(IN a INT, OUT b DECIMAL(1,1)) SELECT 1",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')",
    "ALTER TABLE t ADD COLUMN (a INT, b MYTYPE(3)), ADD INDEX i (a), ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES u(a)",
    "ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (5))",
    "LOAD DATA INFILE 'f' INTO TABLE t (a, b)",
    "LOAD DATA INFILE 'f' INTO TABLE t CHARACTER SET utf8mb4 (a, b)",
    "LOAD DATA INFILE 'f' INTO TABLE t FIELDS TERMINATED BY ',' LINES TERMINATED BY ';' IGNORE 1 LINES (a, b)",
    "GRANT SELECT (a, b), INSERT (a), UPDATE (b), REFERENCES (a) ON t TO u",
    "SET NAMES utf8mb4",
    "SET @a = (1), b = (SELECT 1)",
    "DO (SELECT 1)",
    "SHOW COUNT(*) WARNINGS",
    "XA START 'x'",
    "KILL (5)",
    "TABLE t ORDER BY (1)",
    "SELECT f; (SELECT 1)",
];

#[test]
fn every_call_is_seen() {
    for mode in [MYSQL, MARIA, ANSI, SPACED, Mode { version: 0, ..MYSQL }] {
        for text in CALLS {
            assert!(calls(text, mode), "{text} as {mode:?}");
            // Past the short cut for long lists, and in the second of several statements.
            let list = "1, 'x', ".repeat(20);
            if let Some(rest) = text.strip_prefix("SELECT ") {
                assert!(calls(&format!("SELECT {list} {rest}"), mode), "after a long list: {text}");
            }
            assert!(calls(&format!("SELECT {list} 1; {text}"), mode), "as a second one: {text}");
        }
    }
}

#[test]
fn nothing_ordinary_is_a_call() {
    for mode in [MYSQL, MARIA, SPACED] {
        for text in NONE {
            assert!(!calls(text, mode), "{text} as {mode:?}");
        }
    }
}

#[test]
fn what_is_a_call_only_to_some() {
    let table: &[(Mode, &str, bool)] = &[
        // MySQL calls nothing by an unquoted keyword.
        (MYSQL, "SELECT HASH(1), COLUMNS(1), ESCAPE(1)", false),
        (MARIA, "SELECT HASH(1)", true),
        (MARIA, "SELECT ESCAPE(1)", true),
        (MYSQL, "SELECT `HASH`(1)", true),
        (
            MYSQL,
            "SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a INT PATH '$', NESTED PATH '$.x' COLUMNS(b TEXT(9) PATH '$'))) t",
            false,
        ),
        (MYSQL, "SELECT 1 MEMBER OF ('[1]')", false),
        (MYSQL, "SELECT 1 FROM t, LATERAL (SELECT 1) x", false),
        (MYSQL, "SELECT 1 FROM t GROUP BY ROLLUP (a)", false),
        (MARIA, "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a) OVER (PARTITION BY b) FROM t", false),
        (MARIA, "SELECT NVL(1, 2), TO_CHAR(a), MEDIAN(a) OVER () FROM t", false),
        (MYSQL, "SELECT NVL(1, 2)", true),
        (MYSQL, "SELECT UUID_TO_BIN(a), STRING_TO_VECTOR('[1]')", false),
        (MARIA, "SELECT UUID_TO_BIN(a)", true),
        (MARIA, "SELECT MD5('a'), SHA1('a')", false),
        (MYSQL, "SELECT MD5('a')", true),
        (Mode { version: 80_036, ..MYSQL }, "SELECT MD5('a')", false),
        // Shapes.
        (MYSQL, "SELECT POINT(1, 2), LINESTRING(a, b), POLYGON()", false),
        (MARIA, "SELECT LINESTRING(a, b), POLYGON (a)", false),
        (MARIA, "SELECT LINESTRING()", true),
        (MARIA, "SELECT `LINESTRING`(a)", false),
        (MARIA, "SELECT `LINESTRING`()", true),
        // What must touch the parenthesis.
        (MYSQL, "SELECT COUNT (1)", true),
        (MARIA, "SELECT COUNT\n(1)", true),
        (MYSQL, "SELECT COUNT/**/(1)", true),
        (SPACED, "SELECT COUNT (1)", false),
        (SPACED, "SELECT COUNT/**/(1)", true),
        (SPACED, "SELECT COUNT /**/ (1)", true),
        (MARIA, "SELECT RANK ()", true),
        (MYSQL, "SELECT RANK () OVER ()", false),
        // Names in quotes.
        (ANSI, "SELECT \"f\"(1)", true),
        (ANSI, "SELECT \"abs\"(1)", false),
        (MYSQL, "SELECT \"f\"(1)", false),
    ];
    for (mode, text, wanted) in table {
        assert_eq!(calls(text, *mode), *wanted, "{text} as {mode:?}");
    }
}

proptest! {
    /// Whatever stands around it: a name in quotes and its parenthesis is a call.
    #[test]
    fn a_call_is_seen_behind_anything(front in "[a-z0-9 ,.+=<>*-]{0,30}", back in "[a-z0-9 ,()]{0,20}") {
        let text = format!("SELECT 1 FROM t WHERE {front} , `no such name`(1) {back}");
        for mode in [MYSQL, MARIA] {
            prop_assert!(calls(&text, mode) || front.contains("--"), "{}", text);
        }
    }
}
