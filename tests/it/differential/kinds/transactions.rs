//! Transactions of every kind.

use crate::differential::author::Author;

const WITHIN: &[&str] = &[
    "INSERT INTO {s}.t{c} (n) VALUES (50)",
    "INSERT INTO {s}.t{c} (v) VALUES ('a')",
    "UPDATE {s}.t{c} SET n = n + 1 WHERE id < 4",
    "DELETE FROM {s}.t{c} WHERE id = 2",
    "SELECT COUNT(*) FROM {s}.t{c}",
    "SELECT id FROM {s}.t{c} WHERE id = 1 FOR UPDATE",
    "SELECT COUNT(*) FROM {s}.shared",
    "SAVEPOINT one",
    "SAVEPOINT two",
    "ROLLBACK TO SAVEPOINT one",
    "ROLLBACK TO two",
    "RELEASE SAVEPOINT one",
    "SELECT * FROM nowhere",
    "SELECT LAST_INSERT_ID(), ROW_COUNT()",
    "SELECT @@transaction_isolation, @@transaction_read_only, @@autocommit",
    "SET @a = 'in a transaction'",
    "SET sql_notes = 1",
    "SELECT 1 / 0",
    "SHOW WARNINGS",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "BEGIN",
    "SELECT DATABASE()",
];

const AFTER: &[&str] = &[
    "SELECT COUNT(*) FROM {s}.t{c}",
    "SELECT ROW_COUNT()",
    "SELECT LAST_INSERT_ID()",
    "SELECT @@autocommit",
    "SELECT @a",
];

pub(super) fn transaction(a: &mut Author) {
    a.part().open = true;
    a.any(&[
        "BEGIN",
        "START TRANSACTION",
        "BEGIN WORK",
        "START TRANSACTION READ ONLY",
        "START TRANSACTION READ WRITE",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "/* a comment */ begin",
        "CALL {s}.p_open()",
    ]);
    a.some(WITHIN, 6);
    a.any(&[
        "COMMIT",
        "ROLLBACK",
        "COMMIT WORK",
        "COMMIT AND CHAIN",
        "ROLLBACK AND NO CHAIN",
        "CREATE TABLE IF NOT EXISTS {s}.own_{c} (id INT)",
        "SET autocommit = 1",
        "COMMIT WORK AND CHAIN RELEASE NOW",
    ]);
    a.any(&["COMMIT", "ROLLBACK"]);
    a.some(AFTER, 2);
}

pub(super) fn without_autocommit(a: &mut Author) {
    a.part().open = true;
    a.any(&["SET autocommit = 0", "SET @@autocommit = OFF", "SET SESSION autocommit=0, sql_notes = 1"]);
    for _ in 0..=a.dice.below(2) {
        a.some(WITHIN, 3);
        a.any(&["COMMIT", "ROLLBACK"]);
        a.any(AFTER);
    }
    a.any(&["SET autocommit = 1", "SET autocommit = DEFAULT", "SET SESSION autocommit = ON"]);
    a.some(AFTER, 2);
}

/// SET TRANSACTION for the next one, and for all.
pub(super) fn one_shot(a: &mut Author) {
    a.part().open = true;
    a.any(&[
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET TRANSACTION READ ONLY",
        "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED, READ WRITE",
        "SET @@transaction_isolation = 'SERIALIZABLE'",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION TRANSACTION READ ONLY",
        "SET SESSION transaction_isolation = 'REPEATABLE-READ'",
        "SET SESSION TRANSACTION READ WRITE",
        "SET SESSION transaction_read_only = 0",
        "SET TRANSACTION ISOLATION LEVEL NONSENSE",
        "SET TRANSACTION ISOLATION LEVEL DEFAULT",
    ]);
    a.some(
        &[
            "SELECT @@transaction_isolation, @@transaction_read_only",
            "SELECT @@session.transaction_isolation",
            "SELECT COUNT(*) FROM {s}.shared",
            "SELECT 1",
            "INSERT INTO {s}.t{c} (n) VALUES (51)",
            "SHOW WARNINGS",
        ],
        2,
    );
    if a.dice.chance(50) {
        a.query("BEGIN");
        a.any(&["INSERT INTO {s}.t{c} (n) VALUES (52)", "SELECT COUNT(*) FROM {s}.t{c}"]);
        a.any(&["COMMIT", "ROLLBACK"]);
        a.query("INSERT INTO {s}.t{c} (n) VALUES (53)");
    }
    a.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE");
}

pub(super) fn xa(a: &mut Author) {
    a.part().open = true;
    let id = a.text("'{s}.{c}'");
    a.query(&format!("XA START {id}"));
    a.some(
        &["INSERT INTO {s}.t{c} (n) VALUES (60)", "SELECT 1", "SELECT COUNT(*) FROM {s}.t{c}", "COMMIT", "BEGIN"],
        2,
    );
    a.query(&format!("XA END {id}"));
    if a.dice.chance(50) {
        a.query(&format!("XA PREPARE {id}"));
        let end = a.dice.pick(&["COMMIT", "ROLLBACK"]);
        a.query(&format!("XA {end} {id}"));
    } else {
        let end = a.dice.pick(&["ROLLBACK", "COMMIT"]);
        a.query(&format!("XA {end} {id}{}", if end == "COMMIT" { " ONE PHASE" } else { "" }));
    }
    // Nothing may stay prepared.
    a.query(&format!("XA ROLLBACK {id}"));
    a.query("SELECT COUNT(*) FROM {s}.t{c}");
}
