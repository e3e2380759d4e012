//! The list of errors and warnings, and their number, after commands that run no statement, while somebody else uses the
//! backend in between: packet by packet as on a private connection.

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;

use crate::support::{Twin, on_both, one_backend};

/// What may be on the list already.
const CAUSES: &[&str] = &[
    "SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)",
    "SELECT * FROM no_such_table",
    "INSERT INTO t VALUES (1), (2)",
    "SELECT FOUND_ROWS()",
];

/// What is asked afterwards.
const QUESTIONS: &[&str] = &[
    "SHOW WARNINGS",
    "SHOW ERRORS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW COUNT(*) ERRORS",
    "SELECT ROW_COUNT(), FOUND_ROWS()",
    "SELECT @@error_count AS e, @@warning_count",
];

/// Commands that are refused though they run no statement, and one that is: KILL.
fn refused() -> Vec<(Command, Vec<u8>)> {
    let id = 999_999_u32.to_le_bytes();
    vec![
        (Command::StmtExecute, [&id[..], &[0, 1, 0, 0, 0]].concat()),
        (Command::StmtFetch, [id, 1_u32.to_le_bytes()].concat()),
        (Command::StmtReset, id.to_vec()),
        (Command::StmtExecute, Vec::new()),
        (Command::Connect, Vec::new()),
        (Command::Unknown(0x63), b"what?".to_vec()),
        (Command::Debug, Vec::new()),
        (Command::InitDb, b"no_such_schema".to_vec()),
        (Command::SetOption, vec![9, 0]),
        (Command::FieldList, b"no_such_table\0".to_vec()),
        (Command::Query, b"KILL 0".to_vec()),
        (Command::Query, b"KILL QUERY 999999999".to_vec()),
    ]
}

on_both!(commands_that_are_refused_are_remembered, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1)", "SELECT n FROM t"]).await;
    for (command, argument) in refused() {
        for cause in CAUSES {
            for question in QUESTIONS {
                // Somebody else comes before the command, after it, both, or not at all.
                for (before, after) in [(false, false), (true, false), (false, true), (true, true)] {
                    twin.query_and_keep(cause).await;
                    if before {
                        twin.intrude().await;
                    }
                    twin.command(command, &argument).await;
                    if after {
                        twin.intrude().await;
                    }
                    twin.query_and_keep(question).await;
                }
            }
        }
    }
    assert_eq!(t.metric("myriad_unanswered_total", None), 0.0);
});

on_both!(commands_that_are_no_statements_are_remembered, one_backend, |t| async move {
    let commands: [(Command, &[u8]); 3] =
        [(Command::FieldList, b"t\0"), (Command::SetOption, &[0, 0]), (Command::Ping, b"")];
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1)", "SET max_error_count = 3"]).await;
    for (command, argument) in commands {
        for cause in CAUSES {
            for question in QUESTIONS {
                for intruders in 0..4 {
                    twin.query_and_keep(cause).await;
                    if intruders & 1 != 0 {
                        twin.intrude().await;
                    }
                    for _ in 0..2 {
                        twin.command(command, argument).await;
                    }
                    if intruders & 2 != 0 {
                        twin.intrude().await;
                    }
                    twin.query_and_keep(question).await;
                }
            }
        }
    }
});

// MariaDB empties the list only where a table is used: there nobody can tell from the text.
on_both!(the_list_outlives_what_uses_no_table, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS)).await;
    twin.queries(&[
        "CREATE TABLE t (n INT)",
        "CREATE PROCEDURE nothing() BEGIN END",
        "CREATE PROCEDURE looks() SELECT COUNT(*) FROM t",
        "CREATE PROCEDURE warns() DO CAST('by a procedure' AS SIGNED)",
        "CREATE FUNCTION looks_too() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM t)",
        "CREATE FUNCTION pure() RETURNS INT DETERMINISTIC RETURN 1",
    ])
    .await;
    for cause in ["SELECT nothing", "SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)", "DO 1"] {
        for sql in [
            "CALL nothing()",
            "CALL looks()",
            "CALL warns()",
            "SELECT pure()",
            "SELECT looks_too()",
            "DO looks_too()",
            "SELECT 1; SELECT 2",
            "SELECT 1; SELECT COUNT(*) FROM t; SELECT 2",
            "SELECT CAST('z' AS SIGNED); SELECT 2",
            "SELECT CAST('z' AS SIGNED); SHOW WARNINGS",
            "/* nothing */",
            "/*! SELECT 1 */",
            "SHOW GRANTS",
            "SHOW TABLES LIKE 't'",
            "PREPARE p FROM 'SELECT 5'",
            "EXECUTE p",
            "DEALLOCATE PREPARE p",
            "LOCK TABLES t READ",
            "UNLOCK TABLES",
            "HANDLER t OPEN",
            "HANDLER t CLOSE",
            "SET @a = 1",
            "XA RECOVER",
            "HELP 'nothing'",
            "VALUES ROW(1)",
            "EXPLAIN SELECT 1",
            "SIGNAL SQLSTATE '01000'",
            "SELECT 1 UNION SELECT 2",
            "CREATE DATABASE IF NOT EXISTS mysql",
        ] {
            let pins = ["PREPARE", "EXECUTE", "LOCK", "HANDLER t OPEN"].iter().any(|word| sql.starts_with(word));
            for question in ["SHOW WARNINGS", "SELECT @@warning_count AS n"] {
                for intruders in 0..4 {
                    twin.query_and_keep(cause).await;
                    if intruders & 1 != 0 {
                        twin.intrude().await;
                    }
                    twin.query_and_keep(sql).await;
                    if intruders & 2 != 0 && !pins {
                        twin.intrude().await;
                    }
                    twin.query_and_keep(question).await;
                    twin.command(Command::ResetConnection, b"").await;
                }
            }
        }
    }
});

on_both!(a_preparation_empties_the_list_as_if_it_ran, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "CREATE PROCEDURE nothing() BEGIN END"]).await;
    for sql in ["SELECT 1", "SELECT n FROM t", "INSERT INTO t VALUES (?)", "DO 1", "CALL nothing()", "SELEC"] {
        for intruders in 0..4 {
            twin.query_and_keep("SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)").await;
            if intruders & 1 != 0 {
                twin.intrude().await;
            }
            twin.command(Command::StmtPrepare, sql.as_bytes()).await;
            if intruders & 2 != 0 {
                twin.intrude().await;
            }
            twin.query_and_keep("SHOW WARNINGS").await;
        }
    }
});

on_both!(what_cannot_be_prepared_is_on_the_list, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    for intruders in 0..4 {
        twin.command(Command::StmtPrepare, b"PREPARE p FROM 'SELECT 1'").await;
        if intruders & 1 != 0 {
            twin.intrude().await;
        }
        twin.command(Command::StmtExecute, &[255, 255, 255, 1, 0, 1, 0, 0, 0]).await;
        if intruders & 2 != 0 {
            twin.intrude().await;
        }
        twin.query_and_keep("SHOW WARNINGS").await;
    }
});

on_both!(resignal_adds_to_the_list, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "SELECT n FROM t"]).await;
    for cause in CAUSES {
        for question in QUESTIONS {
            for intruders in 0..4 {
                twin.query_and_keep(cause).await;
                if intruders & 1 != 0 {
                    twin.intrude().await;
                }
                twin.query_and_keep("RESIGNAL").await;
                if intruders & 2 != 0 {
                    twin.intrude().await;
                }
                twin.command(Command::Ping, b"").await;
                twin.query_and_keep(question).await;
            }
        }
    }
});

on_both!(one_refusal_after_another, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let commands = refused();
    for (n, (command, argument)) in commands.iter().enumerate() {
        let (other, its) = &commands[(n + 2) % commands.len()];
        for intruders in 0..4 {
            twin.query_and_keep(CAUSES[0]).await;
            twin.command(*command, argument).await;
            if intruders & 1 != 0 {
                twin.intrude().await;
            }
            twin.command(*other, its).await;
            if intruders & 2 != 0 {
                twin.intrude().await;
            }
            twin.command(Command::Ping, b"").await;
            twin.query("SHOW WARNINGS").await;
            twin.query("GET DIAGNOSTICS CONDITION 1 @a = MESSAGE_TEXT, @b = MYSQL_ERRNO, @c = RETURNED_SQLSTATE").await;
            twin.query("SELECT @a, @b, @c").await;
        }
    }
});

on_both!(the_warnings_that_a_command_counts_are_ones_own, one_backend, |t| async move {
    let counting = [(Command::Ping, &b""[..]), (Command::SetOption, &[1, 0]), (Command::InitDb, t.schema.as_bytes())];
    for login in [t.app(), t.app().old()] {
        // With nothing run yet.
        for (command, argument) in counting.iter().filter(|(command, _)| *command != Command::InitDb) {
            let mut twin = Twin::new(&t, &login).await;
            twin.command(*command, argument).await;
        }
        let mut twin = Twin::new(&t, &login).await;
        twin.queries(&["CREATE TABLE IF NOT EXISTS t (n INT)", "SELECT n FROM t"]).await;
        let between =
            ["SHOW WARNINGS", "SHOW COUNT(*) WARNINGS", "SELECT @@warning_count", "SELECT ROW_COUNT()", "DO 1"];
        // In the EOF behind the columns MySQL warns old clients of FOUND_ROWS() already.
        for cause in CAUSES.iter().filter(|cause| !cause.contains("FOUND_ROWS")) {
            for between in between.iter().map(Some).chain([None]) {
                for (command, argument) in counting {
                    twin.query(cause).await;
                    if let Some(sql) = between {
                        twin.query(sql).await;
                    }
                    // Each has a schema of its own.
                    if command == Command::InitDb {
                        twin.use_own_schema().await;
                    } else {
                        twin.command(command, argument).await;
                    }
                    twin.intrude().await;
                    twin.command(Command::Ping, b"").await;
                    twin.query("SHOW WARNINGS").await;
                    twin.use_own_schema().await;
                }
            }
        }
    }
});
