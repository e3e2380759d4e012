//! What lives in the server's memory under a session: temporary tables, locks, handlers, statements prepared as text.

use crate::differential::author::Author;
use crate::differential::script::Act;

pub(super) fn temporary_tables(a: &mut Author) {
    a.any(&[
        "CREATE TEMPORARY TABLE tmp (id INT, v VARCHAR(10))",
        "CREATE TEMPORARY TABLE IF NOT EXISTS {s}.tmp (id INT PRIMARY KEY)",
        "CREATE OR REPLACE TEMPORARY TABLE tmp (id INT)",
        "CREATE /* odd */ TEMPORARY\tTABLE tmp AS SELECT id FROM {s}.shared",
        "CREATE TEMPORARY TABLE shared (id INT)",
        "CALL {s}.p_temp()",
    ]);
    a.some(
        &[
            "INSERT INTO tmp (id) VALUES (1), (2)",
            "SELECT * FROM tmp",
            "SELECT COUNT(*) FROM shared",
            "INSERT INTO {s}.tmp (id) VALUES (1)",
            "ALTER TABLE tmp ADD COLUMN w INT",
            "SELECT DATABASE()",
            "SELECT LAST_INSERT_ID()",
            "SHOW CREATE TABLE tmp",
            "TRUNCATE TABLE tmp",
        ],
        4,
    );
    a.any(&["DROP TEMPORARY TABLE tmp", "DROP TABLE tmp", "DROP TEMPORARY TABLE IF EXISTS tmp, {s}.tmp"]);
    a.query("DROP TEMPORARY TABLE IF EXISTS tmp, {s}.tmp, {o}.tmp, {s}.shared, {o}.shared");
    a.any(&["SELECT * FROM tmp", "SELECT COUNT(*) FROM {s}.shared", "SHOW WARNINGS"]);
    if a.dice.chance(30) {
        a.act(Act::reset());
    }
}

pub(super) fn lock_tables(a: &mut Author) {
    a.part().open = true;
    a.any(&[
        "LOCK TABLES {s}.t{c} WRITE",
        "LOCK TABLES {s}.t{c} READ, {s}.shared READ",
        "LOCK TABLE {s}.t{c} AS x WRITE",
        "LOCK TABLES nowhere READ",
        "LOCK TABLES {s}.shared READ LOCAL",
    ]);
    a.some(
        &[
            "INSERT INTO {s}.t{c} (n) VALUES (70)",
            "SELECT COUNT(*) FROM {s}.t{c}",
            "SELECT COUNT(*) FROM {s}.shared",
            "SELECT COUNT(*) FROM {s}.t{c} AS x",
            "SELECT 1",
            "BEGIN",
            "SELECT * FROM {s}.here",
        ],
        3,
    );
    a.any(&["UNLOCK TABLES", "UNLOCK TABLE", "START TRANSACTION"]);
    a.query("COMMIT");
    a.query("UNLOCK TABLES");
    a.any(&["SELECT COUNT(*) FROM {s}.here", "INSERT INTO {s}.t{c} (n) VALUES (71)"]);
}

pub(super) fn user_locks(a: &mut Author) {
    const NAMES: [&str; 4] = ["{s}.l{c}", "{s}.k{c}", "{s}.everybody", "{s}.f1"];
    for _ in 0..=a.dice.below(2) {
        let name = a.dice.pick(&NAMES);
        let form = a.dice.pick(&[
            "SELECT GET_LOCK('{n}', 0)",
            "DO GET_LOCK('{n}', 0)",
            "SELECT GET_LOCK('{n}', 0) AS got",
            "SELECT GET_LOCK('{n}', 0), GET_LOCK('{s}.k{c}', 0)",
            "SET @got = GET_LOCK('{n}', 0)",
            "SELECT /* x */ get_lock ( '{n}' , 0 )",
            "SELECT IF(1, GET_LOCK('{n}', 0), 5)",
            "SELECT GET_LOCK(NULL, 0)",
        ]);
        a.query(&form.replace("{n}", name));
    }
    for _ in 0..=a.dice.below(3) {
        let name = a.dice.pick(&NAMES);
        let form = a.dice.pick(&[
            "SELECT IS_FREE_LOCK('{n}')",
            "SELECT IS_USED_LOCK('{n}') IS NULL, IS_USED_LOCK('{n}') = CONNECTION_ID()",
            "SELECT RELEASE_LOCK('{n}')",
            "DO RELEASE_LOCK('{n}')",
            "SELECT 1",
            "SELECT RELEASE_LOCK('{n}') AS released, DATABASE()",
        ]);
        a.query(&form.replace("{n}", name));
    }
    if a.dice.chance(80) {
        a.any(&["SELECT RELEASE_ALL_LOCKS()", "DO RELEASE_ALL_LOCKS()"]);
    }
    if a.dice.chance(30) {
        a.act(Act::reset());
    }
}

pub(super) fn handler(a: &mut Author) {
    a.part().open = true;
    a.query("HANDLER {s}.t{c} OPEN AS h");
    a.some(
        &[
            "HANDLER h READ FIRST",
            "HANDLER h READ NEXT",
            "HANDLER h READ `PRIMARY` FIRST",
            "HANDLER h READ `PRIMARY` NEXT LIMIT 2",
            "HANDLER h READ `PRIMARY` = (2)",
            "HANDLER h READ nothing NEXT",
            "SELECT 1",
        ],
        4,
    );
    a.any(&["HANDLER h CLOSE", "HANDLER h OPEN"]);
    a.query("HANDLER h CLOSE");
    a.any(&["HANDLER h READ FIRST", "SELECT COUNT(*) FROM {s}.t{c}"]);
}

pub(super) fn text_prepare(a: &mut Author) {
    for _ in 0..=a.dice.below(2) {
        let name = a.dice.pick(&["p", "q", "`P`", "r"]);
        let text = a.dice.pick(&[
            "'SELECT ? + 1 AS x, ?'",
            "'SELECT 5'",
            "\"SELECT ? AS y\"",
            "'SELECT * FROM here'",
            "'SELECT id, v FROM {s}.altered ORDER BY id'",
            "'INSERT INTO {s}.t{c} (n) VALUES (?)'",
            "'SET @a = 5'",
            "'SET time_zone = ''+04:00'''",
            "'SELEC 1'",
            "'SELECT \"quoted\", ''it''''s'''",
            "@text",
            "CONCAT('SELECT ', '7')",
            "'SELECT @a, @b, LAST_INSERT_ID()'",
            "'UPDATE {s}.t{c} SET n = n + 1 WHERE id < 3'",
            "'SELECT CAST(\\'x\\' AS SIGNED), CONNECTION_ID() > 0'",
            "'DO GET_LOCK(\\'{s}.named\\', 0), RELEASE_LOCK(\\'{s}.named\\')'",
            "'SHOW WARNINGS'",
        ]);
        a.query(&format!("PREPARE {name} FROM {text}"));
    }
    if a.dice.chance(40) {
        a.any(&["SET @x = 41, @y = 'y'", "SET @text = 'SELECT 6'", "USE {o}", "SET sql_mode = 'ANSI_QUOTES'"]);
    }
    let forms = [
        "EXECUTE p USING @x, @y",
        "EXECUTE p USING @x",
        "EXECUTE p",
        "EXECUTE q",
        "EXECUTE q USING @x",
        "EXECUTE r",
        "EXECUTE P",
        "EXECUTE IMMEDIATE 'SELECT 5'",
        "EXECUTE IMMEDIATE 'SELECT ?, ROW_COUNT()' USING @x",
        "EXECUTE IMMEDIATE 'SET @z = 3'",
        "DEALLOCATE PREPARE Q",
        "SELECT ROW_COUNT()",
        "SELECT 1",
        "SHOW WARNINGS",
    ];
    a.some(&forms, 4);
    for name in ["p", "q", "r"] {
        if a.dice.chance(70) {
            let word = a.dice.pick(&["DEALLOCATE", "DROP"]);
            a.query(&format!("{word} PREPARE {name}"));
        }
    }
    if a.dice.chance(30) {
        a.some(&forms, 1);
    }
}
