//! What statements ask about their predecessors: row counts, warnings, the last insert id.

use super::*;

/// How the session would have a text answered.
fn recall(stage: &Stage, text: &str) -> Recall {
    let effects = sql::effects(text.as_bytes(), stage.session.mode());
    stage.session.recall(text.as_bytes(), &effects, 99)
}

fn text(sql: &str) -> Recall {
    Recall::Text(sql.as_bytes().to_vec())
}

fn is_remembered(stage: &Stage, text: &str) -> bool {
    recall(stage, text) != Recall::Backend
}

fn warning(level: &str) -> Vec<Option<Vec<u8>>> {
    vec![Some(level.as_bytes().to_vec()), Some(b"1292".to_vec()), Some(b"no number".to_vec())]
}

/// As measured on both servers: what MariaDB says and what MySQL says, where they differ.
#[test]
fn row_count_and_found_rows() {
    let table = [
        ("SELECT * FROM t", rows(3), (-1, 3), 3),
        ("SET @a=1", ok(), (0, 3), 3),
        ("INSERT INTO t VALUES (1)", ok().affected(1), (1, 3), 3),
        ("DO 1", ok(), (0, 3), 1),
        ("SELECT * FROM t LIMIT 5", rows(5), (-1, 5), 5),
        ("SELECT nope", err(1054), (-1, 5), 5),
        ("SHOW TABLES", rows(7), (-1, 7), 7),
        ("SHOW WARNINGS", rows(2), (-1, 7), 7),
        ("EXPLAIN SELECT * FROM t", rows(1), (-1, 7), 7),
        ("EXPLAIN SELECT 1", rows(1), (-1, 0), 7),
        ("DESC t", rows(2), (-1, 2), 2),
        ("DESC SELECT * FROM t", rows(6), (-1, 2), 2),
        ("SHOW COUNT(*) WARNINGS", rows(1), (-1, 1), 1),
        ("SELECT * FROM t", rows(8), (-1, 8), 8),
        ("UPDATE t SET a=1", ok().affected(4), (4, 8), 4),
        ("SELECT 1", rows(1), (-1, 1), 1),
        ("SELECT a FROM t LIMIT 3 INTO OUTFILE 'x'", ok().affected(3), (3, 3), 3),
        ("SET @a = (SELECT COUNT(*) FROM t)", ok(), (0, 1), 3),
        ("SELECT * FROM t WHERE 0", rows(0), (-1, 0), 0),
    ];
    for (mut stage, mariadb) in Stage::both().into_iter().zip([false, true]) {
        for (text, reply, expected, on_mysql) in &table {
            stage.query(text, std::slice::from_ref(reply));
            let memory = stage.session.memory();
            let found = if mariadb { expected.1 } else { *on_mysql };
            assert_eq!((memory.row_count, memory.found_rows), (expected.0, found), "{text} {mariadb}");
        }
        stage.query("INSERT INTO t VALUES (1); SELECT 1", &[ok().affected(1), rows(1)]);
        assert_eq!(stage.session.memory().row_count, -1);
    }
}

#[test]
fn the_server_answers_until_the_backend_has_moved() {
    let questions = ["SELECT ROW_COUNT()", "SELECT FOUND_ROWS()", "SHOW WARNINGS", "SELECT @@warning_count"];
    for mut stage in Stage::both() {
        stage.query("UPDATE t SET a=1", &[ok().affected(4)]);
        for text in questions {
            assert!(!is_remembered(&stage, text), "{text}");
        }
        assert!(is_remembered(&stage, "SELECT CONNECTION_ID()"));
        assert_eq!(stage.session.owes(), []);
        assert!(!stage.session.moved().warned);
        for text in questions {
            assert!(is_remembered(&stage, text), "{text}");
        }
        assert_eq!(recall(&stage, "SELECT ROW_COUNT() AS n"), text("SELECT IF(1,4,ROW_COUNT()) AS n"));
        stage.session.answered(Plain::CountWarnings);
        assert_eq!(
            recall(&stage, "DO ROW_COUNT(), FOUND_ROWS()"),
            text("DO IF(1,-1,ROW_COUNT()), IF(1,1,FOUND_ROWS())")
        );
        // The next statement runs on a backend again.
        stage.query("UPDATE t SET a=1", &[ok().affected(2)]);
        assert!(!is_remembered(&stage, "SELECT ROW_COUNT()"));
    }
}

#[test]
fn warnings_are_owed_and_saved() {
    for (mut stage, mariadb) in Stage::both().into_iter().zip([false, true]) {
        stage.query("SELECT CAST('x' AS SIGNED)", &[rows(1).warned(1)]);
        stage.query("SHOW COUNT(*) WARNINGS", &[rows(1)]);
        assert_eq!(stage.session.owes(), [Ask::Warnings]);
        stage.session.answer(&Ask::Warnings, Some(vec![warning("Warning")]));
        assert_eq!(stage.session.owes(), []);
        assert!(stage.session.moved().warned, "the backend still shows them");
        assert!(!stage.session.held().warned);
        assert!(is_remembered(&stage, "SHOW WARNINGS"));
        let memory = stage.session.memory();
        assert_eq!((memory.warnings, memory.errors), (1, 0));
        assert_eq!(memory.list.as_deref(), Some(&vec![warning("Warning")]));
        // MySQL clears the list for every statement, MariaDB only for those with a table.
        stage.query("SET a=1", &[ok().set("a", "1")]);
        assert_eq!(is_remembered(&stage, "SHOW WARNINGS"), mariadb);
        stage.query("INSERT INTO t VALUES (1)", &[ok().affected(1)]);
        assert!(!is_remembered(&stage, "SHOW WARNINGS"));
        assert_eq!(stage.session.memory().warnings, 0);
        assert_eq!(stage.session.owes(), []);
    }
}

#[test]
fn an_error_is_a_warning_too() {
    for mut stage in Stage::both() {
        stage.query("SELECT nope", &[err(1054)]);
        assert_eq!(stage.session.owes(), [Ask::Warnings]);
        stage.session.answer(&Ask::Warnings, Some(vec![warning("Warning"), warning("Error")]));
        stage.session.moved();
        let memory = stage.session.memory();
        assert_eq!((memory.row_count, memory.warnings, memory.errors), (-1, 2, 1));
        assert!(is_remembered(&stage, "SELECT @@error_count"));
    }
}

#[test]
fn commands_that_are_no_statements_leave_the_memory_alone() {
    for mut stage in Stage::both() {
        stage.query("UPDATE t SET a=1", &[ok().affected(4).warned(2)]);
        stage.command(Command::Ping, Effects::default(), &[ok()]);
        stage.command(Command::InitDb, Effects::default(), &[err(1049)]);
        assert_eq!(stage.session.end(), Followup::None);
        // Of the error the session is told by another way.
        assert_eq!(stage.session.memory().row_count, 0);
        assert_eq!(stage.session.owes(), [Ask::Warnings]);
        stage.command(Command::FieldList, Effects::default(), &[rows(1)]);
        assert_eq!(stage.session.memory().row_count, -1);
        stage.command(Command::InitDb, Effects::default(), &[ok().schema("x")]);
        assert_eq!(stage.session.memory().row_count, 0);
    }
}

#[test]
fn rows_that_were_not_sent_are_owed_and_saved() {
    for (mut stage, mariadb) in Stage::both().into_iter().zip([false, true]) {
        stage.query("SELECT SQL_CALC_FOUND_ROWS n FROM t LIMIT 1", &[rows(1)]).pinned(&[]);
        stage.query("UPDATE u SET a=1 WHERE b=2 AND 0", &[ok()]);
        stage.query("SELECT SQL_CALC_FOUND_ROWS n FROM t LIMIT 1", &[rows(1)]);
        stage.query("SHOW WARNINGS", &[rows(0)]);
        assert_eq!(stage.session.owes(), [Ask::FoundRows]);
        assert!(!is_remembered(&stage, "SELECT FOUND_ROWS()"));
        stage.session.answer(&Ask::FoundRows, Some(vec![vec![Some(b"71".to_vec())]]));
        assert_eq!(stage.session.owes(), []);
        assert_eq!(stage.session.moved().warned, !mariadb, "MySQL warns of the question");
        assert_eq!(recall(&stage, "DO FOUND_ROWS()"), text("DO IF(1,71,FOUND_ROWS())"));
        // Lost with the backend.
        stage.query("SELECT SQL_CALC_FOUND_ROWS n FROM t LIMIT 1", &[rows(1)]);
        stage.session.moved();
        assert_eq!(recall(&stage, "SELECT FOUND_ROWS()"), Recall::Lost("FOUND_ROWS()"));
        assert_eq!(stage.session.owes(), []);
        stage.query("SELECT 1", &[rows(1)]);
        assert!(!is_remembered(&stage, "SELECT FOUND_ROWS()"));
    }
}

#[test]
fn mariadb_keeps_the_list_over_selects_without_a_table() {
    for (mut stage, mariadb) in Stage::both().into_iter().zip([false, true]) {
        for (between, keeps) in
            [("SELECT 1", true), ("SELECT 1 FROM DUAL", true), ("SELECT 1 FROM t", false), ("SHOW TABLES", false)]
        {
            stage.query("SELECT CAST('x' AS SIGNED)", &[rows(1).warned(1)]);
            stage.session.answer(&Ask::Warnings, Some(vec![warning("Warning")]));
            stage.session.moved();
            stage.query(between, &[rows(1)]);
            stage.session.moved();
            assert_eq!(stage.session.memory().warnings, u64::from(keeps && mariadb), "{between}");
        }
    }
}

#[test]
fn lists_are_cut_as_asked() {
    for mut stage in Stage::both() {
        stage.query("SELECT nope", &[err(1054)]);
        let list = vec![warning("Warning"), warning("Error"), warning("Note"), warning("Error")];
        stage.session.answer(&Ask::Warnings, Some(list.clone()));
        stage.session.moved();
        let table: [(&str, &[usize]); 5] = [
            ("SHOW WARNINGS", &[0, 1, 2, 3]),
            ("SHOW WARNINGS LIMIT 2", &[0, 1]),
            ("SHOW WARNINGS LIMIT 1, 7", &[1, 2, 3]),
            ("SHOW ERRORS", &[1, 3]),
            ("SHOW ERRORS LIMIT 1 OFFSET 1", &[3]),
        ];
        for (text, wanted) in table {
            let Recall::Rows(_, rows) = recall(&stage, text) else { panic!("{text} is not remembered") };
            let wanted: Vec<_> = wanted.iter().map(|at| list[*at].clone()).collect();
            assert_eq!(rows, wanted, "{text}");
        }
    }
}

#[test]
fn diagnostics_become_assignments() {
    for mut stage in Stage::both() {
        stage.query("INSERT INTO t VALUES (1)", &[ok().affected(3)]);
        stage.session.moved();
        let get = "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT";
        assert_eq!(recall(&stage, get), text("SET @n = CAST(0 AS UNSIGNED), @r = 3"));
        // There is no condition; the server says so, and that is on the list then.
        assert_eq!(recall(&stage, "GET DIAGNOSTICS CONDITION 1 @n = MYSQL_ERRNO"), Recall::Backend);
        stage.query("GET DIAGNOSTICS CONDITION 1 @n = MYSQL_ERRNO", &[ok().warned(1)]);
        stage.session.moved();
        assert!(matches!(recall(&stage, "SHOW WARNINGS"), Recall::Rows(_, rows) if rows.len() == 1));

        stage.query("SELECT nope", &[err(1054)]);
        assert!(!is_remembered(&stage, get), "the server knows");
        stage.session.observe_state(Some(*b"42S22"));
        stage.session.answer(&Ask::Warnings, Some(vec![warning("Warning"), warning("Error")]));
        stage.session.moved();
        let state = "GET DIAGNOSTICS CONDITION 2 @s = RETURNED_SQLSTATE, @e = MYSQL_ERRNO";
        let set = "SET @s = CONCAT(LEFT(VERSION(),0),_utf8mb4 0x3432533232), @e = CAST(1292 AS UNSIGNED)";
        assert_eq!(recall(&stage, state), text(set));
        let message = "GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT";
        assert_eq!(recall(&stage, message), text("SET @m = CONCAT(LEFT(VERSION(),0),_utf8mb4 0x6E6F206E756D626572)"));
        let unusual = "GET DIAGNOSTICS CONDITION 1 @m = TABLE_NAME";
        assert_eq!(recall(&stage, unusual), Recall::Lost("the diagnostics"));
    }
}

#[test]
fn the_last_insert_id_is_asked_where_the_ok_does_not_settle_it() {
    let ask = Ask::Variables(vec!["last_insert_id".into()]);
    let unsettled = [
        // An id that the client chose is in the OK as well.
        ("INSERT INTO t VALUES (500)", ok().id(500)),
        ("UPDATE t SET a = LAST_INSERT_ID(a + 1)", ok().affected(1)),
        ("SELECT LAST_INSERT_ID(888)", rows(1)),
        ("DO LAST_INSERT_ID(5)", ok()),
        ("SET a = LAST_INSERT_ID(5)", ok().set("a", "5")),
        ("CALL p()", ok()),
        ("INSERT INTO t VALUES (1), ('x')", err(1406)),
    ];
    for (text, reply) in unsettled {
        for mut stage in Stage::both() {
            stage.query(text, std::slice::from_ref(&reply));
            assert!(stage.session.owes().contains(&ask), "{text}");
            stage.session.answer(&ask, Some(vec![vec![Some(b"71".to_vec())]]));
            assert!(!stage.session.owes().contains(&ask), "{text}");
            assert_eq!(stage.session.held().last_insert_id, 71);
            assert_eq!(stage.session.state().variable("last_insert_id"), None);
        }
    }
    let settled = [
        ("SELECT 1", rows(1)),
        ("SELECT LAST_INSERT_ID()", rows(1)),
        ("UPDATE t SET a=1", ok().affected(1)),
        ("INSERT IGNORE INTO t VALUES (1)", ok()),
        ("SELECT nope", err(1054)),
        ("SET a = = 1", err(1064)),
    ];
    for (text, reply) in settled {
        for mut stage in Stage::both() {
            stage.query("SET last_insert_id=7", &[ok().set("last_insert_id", "7")]);
            stage.query(text, std::slice::from_ref(&reply));
            assert!(!stage.session.owes().contains(&ask), "{text}");
            assert_eq!(stage.session.held().last_insert_id, 7, "{text}");
        }
    }
}

/// What a procedure's last statement found nobody counts.
#[test]
fn rows_found_by_a_procedure_are_asked_for() {
    for mut stage in Stage::both() {
        stage.query("SELECT 1", &[rows(1)]).query("CALL p()", &[rows(3), ok()]);
        assert!(stage.session.owes().contains(&Ask::FoundRows));
        stage.query("SELECT 1", &[rows(1)]);
        assert!(!stage.session.owes().contains(&Ask::FoundRows));
    }
}

/// MariaDB empties the list only for a table, and nobody knows what a procedure does: a mark on the backend's list tells.
#[test]
fn a_mark_tells_whether_the_list_was_left_alone() {
    let mark = vec![Some(b"Warning".to_vec()), Some(b"1292".to_vec()), Some(b"not 'myriad was here'".to_vec())];
    for (mut stage, mariadb) in Stage::both().into_iter().zip([false, true]) {
        let effects = stage.effects("SELECT 1; SELECT 2");
        assert_eq!(stage.session.mark(Command::Query, Some(&effects)), None, "there is no list");
        stage.query("SELECT CAST('x' AS SIGNED)", &[rows(1).warned(1)]);
        assert_eq!(stage.session.mark(Command::Query, Some(&effects)), None, "it is on the backend");
        stage.session.answer(&Ask::Warnings, Some(vec![warning("Warning")]));
        stage.session.moved();
        for sure in ["SELECT 1", "INSERT INTO t VALUES (1)", "SHOW WARNINGS"] {
            let effects = stage.effects(sure);
            assert_eq!(stage.session.mark(Command::Query, Some(&effects)), None, "{sure}");
        }
        assert_eq!(stage.session.mark(Command::Query, None).is_some(), mariadb, "an unknown text");
        if !mariadb {
            continue;
        }
        for (there, left) in [(vec![mark.clone()], 1), (vec![], 0), (vec![warning("Error"), warning("Error")], 2)] {
            stage.session.mark(Command::Query, Some(&effects)).expect("a statement");
            stage.command(Command::Query, effects, &[ok()]);
            assert_eq!(stage.session.end(), Followup::Ask(Ask::Mark));
            stage.session.answer(&Ask::Mark, Some(there));
            assert_eq!(stage.session.end(), Followup::None);
            assert_eq!((stage.session.memory().warnings, is_remembered(&stage, "SHOW WARNINGS")), (left, true));
            stage.query("SELECT CAST('x' AS SIGNED)", &[rows(1).warned(1)]);
            stage.session.answer(&Ask::Warnings, Some(vec![warning("Warning")]));
            stage.session.moved();
        }
        // What fails has a list of its own.
        stage.session.mark(Command::Query, Some(&effects)).expect("a statement");
        stage.query("SELECT 1; SELECT 2", &[err(1305)]);
        assert!(!is_remembered(&stage, "SHOW WARNINGS"));
    }
}
