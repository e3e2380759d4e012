//! Code that the text does not show: procedures, functions, triggers.

use crate::differential::author::Author;
use crate::differential::script::Act;

pub(super) fn calls(a: &mut Author) {
    a.part().open = true;
    a.any(&[
        "CALL {s}.p_many()",
        "CALL {s}.p_none()",
        "CALL {s}.p_mode()",
        "CALL {s}.p_zone()",
        "CALL {s}.p_temp()",
        "CALL {s}.p_lock()",
        "CALL {s}.p_open()",
        "CALL {s}.p_fail()",
        "CALL {s}.p_warn()",
        "CALL {s}.p_out(@a, @b)",
        "CALL {s}.p_out(1, 2)",
        "CALL {s}.p_id(4444)",
        "CALL p_many()",
        "CALL nothing()",
    ]);
    a.some(
        &[
            "SELECT @@sql_mode, @@time_zone, @p",
            "SELECT * FROM {s}.tmp",
            "SELECT IS_FREE_LOCK('{s}.p')",
            "SELECT @a, @b",
            "SELECT ROW_COUNT()",
            "SHOW WARNINGS",
            "SELECT LAST_INSERT_ID()",
            "COMMIT",
            "SELECT 1",
        ],
        3,
    );
    if a.dice.chance(40) {
        a.act(Act::reset());
        a.part().slots = Default::default();
    } else {
        a.query("COMMIT");
    }
}

pub(super) fn functions(a: &mut Author) {
    a.some(
        &[
            "SELECT {s}.f_pure(21)",
            "SELECT {s}.f_var(5), @by_function",
            "SELECT {s}.f_var(id) FROM {s}.shared WHERE id < 3",
            "SET @a = {s}.f_pure(4)",
            "SELECT {s}.f_lock(1)",
            "SELECT {s}.f_var()",
            "DO {s}.f_var(7)",
        ],
        2,
    );
    a.some(&["SELECT @by_function", "SELECT 1", "SELECT IS_FREE_LOCK('{s}.f1')", "SELECT @a, @by_function"], 2);
    a.query("DO RELEASE_ALL_LOCKS()");
}

pub(super) fn triggers(a: &mut Author) {
    a.some(&["INSERT INTO {s}.g{c} (v) VALUES ('by trigger')", "INSERT INTO {s}.g{c} (v) VALUES ('x'), ('y')"], 2);
    a.some(&["SELECT @by_trigger", "SELECT LAST_INSERT_ID(), @by_trigger", "SELECT 1"], 2);
}
