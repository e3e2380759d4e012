//! Questions about the statement before, in every form, while somebody else's statements run on the same backend in
//! between: packet by packet as on a private connection.

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::protocol::packet::prepare::PrepareOk;
use myriad::protocol::response::Class;

use crate::support::{Login, Twin, on_both, one_backend};

/// Statements that leave something to ask about; `t` has three rows.
const CAUSES: &[&str] = &[
    "INSERT INTO t VALUES (4), (5)",
    "UPDATE t SET n = n + 1 WHERE n > 2",
    "DELETE FROM t WHERE n > 5",
    "SELECT n, CAST('x' AS SIGNED) FROM t LIMIT 2",
    "SELECT SQL_CALC_FOUND_ROWS n FROM t LIMIT 1",
    "SELECT * FROM no_such_table",
    "SELEKT 1",
    "DROP TABLE IF EXISTS no_such_table, nor_this_one",
    "SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)",
    "SHOW TABLES LIKE 't'",
];

/// Questions that leave no user variable behind.
const QUESTIONS: &[&str] = &[
    "SELECT ROW_COUNT()",
    "SELECT ROW_COUNT() AS n",
    "select row_count ( ) n, 2 'm', found_rows()",
    "SELECT ROW_COUNT( /* mine */ ) -- indeed",
    "SELECT (ROW_COUNT())",
    "SELECT ROW_COUNT() + 1, -ROW_COUNT(), CONCAT('`', ROW_COUNT(), '`')",
    "SELECT IF(ROW_COUNT() > 1, 'many', 'few'), CASE WHEN ROW_COUNT() = 2 THEN 'two' ELSE ROW_COUNT() END",
    "(SELECT ROW_COUNT())",
    "SELECT ROW_COUNT() FROM DUAL",
    "SELECT DISTINCT ROW_COUNT() FROM t",
    "SELECT n, ROW_COUNT() FROM t WHERE n > ROW_COUNT() ORDER BY n LIMIT 2",
    "SELECT * FROM (SELECT ROW_COUNT(), 1 AS one) d",
    "SELECT (SELECT ROW_COUNT()) AS inner_one, EXISTS (SELECT 1 FROM t WHERE n = ROW_COUNT())",
    "SELECT ROW_COUNT() UNION SELECT 77",
    "SELECT SUM(ROW_COUNT()), MAX(ROW_COUNT()) FROM t",
    "SELECT FOUND_ROWS() AS total",
    "SELECT FOUND_ROWS() * 2, ROUND(FOUND_ROWS() / 3, 2)",
    "SELECT @@warning_count",
    "SELECT @@warning_count AS w, @@error_count e, @@session.warning_count, @@local.error_count",
    "SELECT @@warning_count + @@error_count > 0",
    "SELECT @@warning_count FROM t",
    "SELECT ROW_COUNT(), FOUND_ROWS(), @@warning_count, @@error_count, LAST_INSERT_ID(), @@identity",
    "SHOW WARNINGS",
    "SHOW WARNINGS LIMIT 1",
    "SHOW /* my */ WARNINGS LIMIT 1, 2",
    "SHOW WARNINGS LIMIT 2 OFFSET 1",
    "SHOW WARNINGS LIMIT 0",
    "SHOW ERRORS LIMIT 1",
    "SHOW COUNT(*) WARNINGS",
    "SHOW COUNT( * ) ERRORS",
    "INSERT INTO log VALUES (ROW_COUNT(), FOUND_ROWS(), @@warning_count)",
    "UPDATE log SET a = ROW_COUNT(), b = FOUND_ROWS(), c = @@error_count",
    "DELETE FROM log WHERE a = ROW_COUNT() - 1000",
    "INSERT INTO log SELECT ROW_COUNT(), FOUND_ROWS(), @@warning_count FROM t",
    "DO ROW_COUNT() + FOUND_ROWS()",
    "SET sql_select_limit = 1000 + ROW_COUNT()",
];

on_both!(every_form_of_a_question_is_answered, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&[
        "CREATE TABLE t (n INT)",
        "CREATE TABLE log (a BIGINT, b BIGINT, c BIGINT)",
        "INSERT INTO t VALUES (1), (2), (3)",
        "SELECT n FROM t",
    ])
    .await;
    for cause in CAUSES {
        for question in QUESTIONS {
            twin.queries(&[cause, question, "SELECT ROW_COUNT(), FOUND_ROWS()"]).await;
            twin.queries(&[cause, question, "SHOW WARNINGS", "SELECT a, b, c FROM log", "SELECT FOUND_ROWS()"]).await;
        }
        // A question is a statement too.
        let (before, after) = QUESTIONS.split_at(QUESTIONS.len() / 2);
        twin.query(cause).await;
        twin.queries(before).await;
        twin.query(cause).await;
        twin.queries(after).await;
    }
    assert_eq!(t.metric("myriad_unanswered_total", None), 0.0);
});

// MySQL warns of FOUND_ROWS() in the EOF behind the columns already, which the proxy has to make up.
on_both!(old_clients_ask_the_same, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app().old()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1), (2), (3)"]).await;
    for cause in CAUSES.iter().filter(|cause| !cause.contains("SQL_CALC_FOUND_ROWS")) {
        for question in ["SELECT ROW_COUNT() AS n", "SHOW WARNINGS LIMIT 1", "SELECT @@warning_count w"] {
            twin.queries(&[cause, question]).await;
        }
    }
});

// What FOUND_ROWS() says at first is, on MariaDB, what somebody else's connection left in the server's memory.
on_both!(a_new_session_has_nothing_to_tell, one_backend, |t| async move {
    for question in ["SELECT ROW_COUNT()", "SELECT ROW_COUNT() AS n", "SHOW WARNINGS", "SELECT @@warning_count"] {
        let mut twin = Twin::new(&t, &t.app()).await;
        twin.queries(&[question, "SHOW WARNINGS", "SELECT ROW_COUNT() + 1"]).await;
        twin.queries(&["CREATE TABLE IF NOT EXISTS own AS SELECT 1 AS n", "SELECT ROW_COUNT()", "SELECT n FROM own"])
            .await;
        twin.command(Command::ResetConnection, b"").await;
        twin.intrude().await;
        twin.queries(&[question, "SELECT ROW_COUNT(), FOUND_ROWS()"]).await;
    }
});

on_both!(commands_that_are_no_statements_count_too, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1), (2), (3)"]).await;
    for question in ["SELECT ROW_COUNT() AS n", "SELECT FOUND_ROWS(), ROW_COUNT()"] {
        twin.query("SELECT n FROM t LIMIT 2").await;
        twin.command(Command::Ping, b"").await;
        twin.query_and_keep(question).await;
        twin.query("SELECT n FROM t LIMIT 2").await;
        twin.command(Command::Ping, b"").await;
        twin.intrude().await;
        twin.query(question).await;
    }
});

on_both!(the_first_of_several_statements_asks_about_the_text_before, one_backend, |t| async move {
    let login = t.app().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS);
    let mut twin = Twin::new(&t, &login).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1), (2), (3)", "SELECT n FROM t"]).await;
    for cause in CAUSES {
        for text in [
            "SELECT ROW_COUNT(); SELECT ROW_COUNT()",
            "SELECT ROW_COUNT() AS n, FOUND_ROWS(); SELECT FOUND_ROWS(), ROW_COUNT()",
            "UPDATE t SET n = n + 1; SELECT ROW_COUNT()",
            "SELECT CAST('z' AS SIGNED); SHOW WARNINGS",
            "SELECT @@warning_count; SELECT n FROM t; SELECT @@warning_count, FOUND_ROWS()",
            "DO ROW_COUNT(); SELECT ROW_COUNT()",
        ] {
            twin.queries(&[cause, text]).await;
        }
    }
});

on_both!(what_is_only_written_down_is_not_answered, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&[
        "CREATE TABLE t (n INT)",
        "SELECT n FROM t",
        "INSERT INTO t VALUES (1), (2), (3)",
        "CREATE VIEW counts AS SELECT ROW_COUNT() AS n, FOUND_ROWS()",
        "INSERT INTO t VALUES (1), (2), (3)",
        "CREATE TABLE kept AS SELECT ROW_COUNT() AS n, FOUND_ROWS(), 7 AS m",
        "SELECT * FROM kept",
        "SHOW CREATE TABLE kept",
        "SHOW CREATE VIEW counts",
        "INSERT INTO t VALUES (1), (2), (3)",
        "CREATE PROCEDURE p() SELECT ROW_COUNT()",
    ])
    .await;
    assert_eq!(t.metric("myriad_unanswered_total", None), 0.0);
});

/// What `GET DIAGNOSTICS` is asked, into variables that are read afterwards.
const DIAGNOSTICS: &[&str] = &[
    "GET DIAGNOSTICS @a = NUMBER, @b = ROW_COUNT",
    "GET CURRENT DIAGNOSTICS CONDITION 1 @a = MYSQL_ERRNO, @b = MESSAGE_TEXT, @c = RETURNED_SQLSTATE",
    "get diagnostics condition 2 @`a` = message_text , @b=returned_sqlstate",
    "GET DIAGNOSTICS CONDITION 9 @a = MYSQL_ERRNO",
];

on_both!(diagnostics_are_ones_own, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1), (2), (3)", "SELECT n FROM t"]).await;
    for cause in CAUSES.iter().chain(&["SELECT * FROM `n\u{f8} such t\u{e5}ble`"]) {
        for question in DIAGNOSTICS {
            let values = "SELECT @a, @b, @c, CHARSET(@a), COLLATION(@b), COERCIBILITY(@c), @a + 1";
            twin.queries(&[cause, question, "SELECT ROW_COUNT(), FOUND_ROWS()", values]).await;
            twin.queries(&[cause, question, "SHOW WARNINGS", values]).await;
        }
    }
    for sql in ["SET @n = ROW_COUNT(), @m = @@warning_count", "SELECT ROW_COUNT(), @@error_count INTO @n, @m"] {
        twin.queries(&["SELECT n, CAST('x' AS SIGNED) FROM t", sql, "SELECT @n, @m"]).await;
    }
    assert_eq!(t.metric("myriad_unanswered_total", None), 0.0);
});

on_both!(what_cannot_be_answered_is_refused_and_counted, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    client.query("CREATE TABLE t (n INT)").await.expect_ok();
    let questions = ["SELECT ROW_COUNT() IS NULL", "GET DIAGNOSTICS CONDITION 1 @a = TABLE_NAME"];
    for (n, question) in questions.into_iter().enumerate() {
        client.query("SELECT * FROM no_such_table").await.expect_error(1146);
        other.query("SELECT 1").await.expect_ok();
        client.query(question).await.expect_error(1235);
        assert_eq!(t.metric("myriad_unanswered_total", None), (n + 1) as f64);
        // With nobody in between it works, and the client goes on.
        client.query("SELECT n FROM t").await.expect_ok();
    }
    client.query("INSERT INTO t VALUES (1)").await.expect_ok();
    assert_eq!(client.one("SELECT ROW_COUNT() IS NULL").await, "0");
});

/// Forms of the client's own number, and whether the type and name of the column are as on a connection of its own.
const NUMBERS: &[&str] = &[
    "SELECT CONNECTION_ID()",
    "SELECT connection_id ( ) AS id",
    "SELECT CONNECTION_ID(), @@version",
    "SELECT @@pseudo_thread_id",
    "SELECT CONNECTION_ID() FROM DUAL",
    "SELECT MAX(CONNECTION_ID()) FROM (SELECT 1) d",
];

on_both!(ones_own_number_is_the_same_in_every_form, one_backend, |t| async move {
    let (mut client, mut direct) = (t.client().await, t.direct(&t.app()).await);
    for sql in NUMBERS {
        let (got, wanted) = (client.query(sql).await, direct.query(sql).await);
        assert_eq!(got.rows()[0][0], Some(client.id.to_string()), "{sql}");
        // The definitions of the columns and everything else but the row.
        assert_eq!(got.raw.len(), wanted.raw.len(), "{sql}");
        let row = got.classes.iter().position(|class| *class == Class::Row).expect("a row");
        assert_eq!((&got.raw[..row], &got.raw[row + 1..]), (&wanted.raw[..row], &wanted.raw[row + 1..]), "{sql}");
    }
    client.query("CREATE TABLE t (id BIGINT, n INT DEFAULT 1)").await.expect_ok();
    client.query("INSERT INTO t (id) VALUES (CONNECTION_ID())").await.expect_ok();
    assert_eq!(client.one("SELECT id FROM t WHERE id = CONNECTION_ID()").await, client.id.to_string());
    client.query("UPDATE t SET id = CONNECTION_ID() + 1").await.expect_ok();
    assert_eq!(client.one("SELECT id - CONNECTION_ID() FROM t").await, "1");
    // Where the server's own numbers are, its own is meant.
    let own = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = CONNECTION_ID()";
    assert_eq!(client.one(own).await, "1");
    // A statement that is prepared knows whose it is.
    let prepared = client.command(Command::StmtPrepare, b"SELECT CONNECTION_ID() AS id").await;
    let id = PrepareOk::parse(&prepared.raw[0].1).expect("a prepared statement").statement_id;
    let argument = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
    let executed = client.command(Command::StmtExecute, &argument).await;
    let row = &executed.raw[executed.classes.iter().position(|class| *class == Class::Row).expect("a row")].1;
    assert_eq!(row[2..6], client.id.to_le_bytes());
});

on_both!(
    /// A regression: in all statements of a body but the first, the creator's number was written down for good.
    bodies_of_routines_are_kept_as_written, one_backend, |t| async move {
        let mut twin = Twin::new(&t, &t.app()).await;
        let body = "BEGIN DECLARE a INT; SET a = CONNECTION_ID(); SET @id = a; END";
        twin.query(&format!("CREATE PROCEDURE p() {body}")).await;
        twin.query("SELECT ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()").await;
        twin.query("CREATE TABLE t (n INT)").await;
        twin.query(&format!("CREATE TRIGGER r AFTER INSERT ON t FOR EACH ROW {body}")).await;
        twin.query("SELECT ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()").await;
    }
);

on_both!(
    /// A regression: what a SET assigns was taken for a question, and replaced by the answer.
    what_is_set_asks_nothing, one_backend, |t| async move {
        let mut twin = Twin::new(&t, &t.app()).await;
        for set in [
            "SET @@session.error_count = 1",
            "SET @@warning_count = 1",
            "SET @n = 1, @@error_count := 2",
            "SET @n = (@@error_count = 1), @@local.warning_count = 3",
        ] {
            twin.query("SELECT CAST('x' AS SIGNED)").await;
            twin.query(set).await;
        }
    }
);

on_both!(
    /// Whoever looks at traces or counters finds nothing there that he did not run himself.
    who_looks_at_traces_sees_his_own, one_backend, |t| async move {
        let mut twin = Twin::new(&t, &t.app()).await;
        twin.query("CREATE FUNCTION f() RETURNS INT RETURN 5").await;
        twin.query("CREATE PROCEDURE p() SELECT 5").await;
        drop(twin);
        let mut client = t.client_as(&Login { schema: Some(t.schema.clone()), ..Login::admin() }).await;
        client.query("FLUSH STATUS").await.expect_ok();
        let mut selects = Vec::new();
        for _ in 0..3 {
            let rows = client.query("SHOW SESSION STATUS LIKE 'Com_select'").await.rows();
            selects.push(rows[0][1].as_ref().unwrap().parse::<u32>().unwrap());
            assert_eq!(client.query("CALL p()").await.error(), None);
            client.one("SELECT f()").await;
        }
        assert_eq!([selects[1] - selects[0], selects[2] - selects[1]], [2, 2]);
        drop(client);
        let mut twin = Twin::new(&t, &t.app()).await;
        twin.query_and_keep("SET optimizer_trace = 'enabled=on'").await;
        twin.query_and_keep("SELECT f()").await;
        twin.query_and_keep("SELECT QUERY FROM information_schema.OPTIMIZER_TRACE").await;
    }
);

on_both!(what_is_found_by_statements_that_are_no_select, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1), (2), (3)"]).await;
    for sql in [
        "EXPLAIN SELECT 1",
        "EXPLAIN SELECT n FROM t",
        "EXPLAIN t",
        "DESC SELECT 1",
        "DESC t",
        "ANALYZE TABLE t",
        "SHOW CREATE TABLE t",
        "SHOW PROFILES",
        "SHOW PRIVILEGES",
        "SHOW ENGINES",
        "SHOW TABLES LIKE 't'",
        "SHOW OPEN TABLES LIKE 'nothing'",
        "WITH a AS (SELECT 1 AS x UNION SELECT 2) SELECT * FROM a",
    ] {
        // Nobody comes in between, so the backend can tell what it made of it.
        twin.query_and_keep("SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4").await;
        twin.query(sql).await;
        twin.query("SELECT FOUND_ROWS() AS f").await;
    }
    // After COM_CHANGE_USER and COM_RESET_CONNECTION it is what it was.
    twin.query("SELECT n FROM t").await;
    twin.command(Command::ResetConnection, b"").await;
    twin.query("SELECT FOUND_ROWS() AS f").await;
});

on_both!(a_procedure_that_runs_nothing_counts_what_was_counted_before, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1)", "CREATE PROCEDURE nothing() BEGIN END"]).await;
    for before in ["UPDATE t SET n = n + 1", "DO 1", "SELECT n FROM t", "UPDATE t SET n = n", "SELECT * FROM nowhere"] {
        twin.query(before).await;
        twin.query("CALL nothing()").await;
        twin.query("SELECT ROW_COUNT() AS r").await;
    }
});
