//! What statements ask about their predecessors: row counts, warnings, the last insert id.

use super::*;

fn plain(text: &str) -> Plain {
    sql::effects(text.as_bytes(), Mode::default()).plain.expect("a plain form")
}

fn warning(level: &str) -> Vec<Option<Vec<u8>>> {
    vec![Some(level.as_bytes().to_vec()), Some(b"1292".to_vec()), Some(b"no number".to_vec())]
}

/// As measured on both servers.
#[test]
fn row_count_and_found_rows() {
    let table = [
        ("SELECT * FROM t", rows(3), (-1, 3)),
        ("SET @a=1", ok(), (0, 3)),
        ("INSERT INTO t VALUES (1)", ok().affected(1), (1, 3)),
        ("DO 1", ok(), (0, 3)),
        ("SELECT nope", err(1054), (-1, 3)),
        ("SHOW TABLES", rows(7), (-1, 7)),
        ("SHOW WARNINGS", rows(2), (-1, 7)),
        ("EXPLAIN SELECT 1", rows(1), (-1, 7)),
        ("SELECT 1", rows(1), (-1, 1)),
        ("UPDATE t SET a=1", ok().affected(4), (4, 1)),
        ("SELECT * FROM t WHERE 0", rows(0), (-1, 0)),
    ];
    for mut stage in Stage::both() {
        for (text, reply, expected) in &table {
            stage.query(text, std::slice::from_ref(reply));
            let memory = stage.session.memory();
            assert_eq!((memory.row_count, memory.found_rows), *expected, "{text}");
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
            assert!(!stage.session.answers(plain(text)), "{text}");
        }
        assert!(stage.session.answers(plain("SELECT CONNECTION_ID()")));
        assert_eq!(stage.session.owes(), []);
        assert!(!stage.session.moved().warned);
        for text in questions {
            assert!(stage.session.answers(plain(text)), "{text}");
        }
        assert_eq!(stage.session.memory().row_count, 4);
        stage.session.answered(plain("SELECT ROW_COUNT()"));
        assert_eq!(stage.session.memory().row_count, -1);
        // The next statement runs on a backend again.
        stage.query("UPDATE t SET a=1", &[ok().affected(2)]);
        assert!(!stage.session.answers(plain("SELECT ROW_COUNT()")));
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
        assert!(stage.session.answers(plain("SHOW WARNINGS")));
        let memory = stage.session.memory();
        assert_eq!((memory.warnings, memory.errors), (1, 0));
        assert_eq!(memory.list.as_deref(), Some(&vec![warning("Warning")]));
        // MySQL clears the list for every statement, MariaDB only for those with a table.
        stage.query("SET a=1", &[ok().set("a", "1")]);
        assert_eq!(stage.session.answers(plain("SHOW WARNINGS")), mariadb);
        stage.query("INSERT INTO t VALUES (1)", &[ok().affected(1)]);
        assert!(!stage.session.answers(plain("SHOW WARNINGS")));
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
        assert!(stage.session.answers(plain("SELECT @@error_count")));
    }
}

#[test]
fn commands_that_are_no_statements_leave_the_memory_alone() {
    for mut stage in Stage::both() {
        stage.query("UPDATE t SET a=1", &[ok().affected(4).warned(2)]);
        stage.command(Command::Ping, Effects::default(), &[ok()]);
        stage.command(Command::InitDb, Effects::default(), &[ok().schema("x")]);
        stage.command(Command::InitDb, Effects::default(), &[err(1049)]);
        assert_eq!(stage.session.end(), Followup::None);
        assert_eq!(stage.session.memory().row_count, 4);
        assert_eq!(stage.session.owes(), [Ask::Warnings]);
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
