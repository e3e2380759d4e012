//! What a statement leaves for the next one of its client, and what a transaction sees: as on a private connection, while
//! others use the same backends.

use std::sync::Arc;

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use tokio::task::JoinSet;

use crate::support::{Setup, Twin, on_both, one_backend};

on_both!(last_insert_id_is_ones_own, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let id = "SELECT LAST_INSERT_ID()";
    twin.queries(&[
        "CREATE TABLE ids (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        id,
        "INSERT INTO ids (v) VALUES (1), (2), (3)",
        id,
        "SELECT LAST_INSERT_ID() AS x",
        "SELECT LAST_INSERT_ID() FROM DUAL",
        "/* mine */ select last_insert_id( ) + 0, @@last_insert_id, @@identity -- only mine",
        "INSERT INTO ids (v) VALUES (LAST_INSERT_ID() + 1000)",
        "SELECT * FROM ids WHERE id = LAST_INSERT_ID()",
        "SELECT v FROM ids WHERE id IN (SELECT LAST_INSERT_ID())",
        // Ids that the client chose, or that did not come to be.
        "INSERT INTO ids VALUES (100, 1)",
        id,
        "INSERT IGNORE INTO ids VALUES (100, 2)",
        id,
        "INSERT INTO ids VALUES (NULL, 7), (100, 7)",
        id,
        "INSERT INTO ids (id, v) VALUES (100, 5) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), v = 7",
        id,
        "REPLACE INTO ids VALUES (100, 8)",
        id,
        "INSERT INTO ids (v) SELECT v FROM ids WHERE id < 3",
        id,
        // Values that were never generated.
        "UPDATE ids SET v = LAST_INSERT_ID(v + 41) WHERE id = 100",
        id,
        "SELECT LAST_INSERT_ID(888)",
        id,
        "DO LAST_INSERT_ID(999)",
        id,
        "SET last_insert_id = 5",
        id,
        "SET @@session.identity = 18446744073709551615",
        id,
        "SELECT LAST_INSERT_ID(0)",
        id,
        "DROP TABLE ids",
        id,
    ])
    .await;
});

on_both!(asking_for_ones_own_number_gives_no_id_away, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    client.query("CREATE TABLE ids (id INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 77").await.expect_ok();
    client.query("INSERT INTO ids VALUES (NULL)").await.expect_ok();
    assert_eq!(client.one("SELECT CONNECTION_ID()").await, client.id.to_string());
    assert_eq!(other.one("SELECT LAST_INSERT_ID()").await, "0");
    assert_eq!(client.one("SELECT LAST_INSERT_ID()").await, "77");
    // The same with a list of warnings.
    client.query("SELECT CAST('x' AS SIGNED)").await.expect_ok();
    assert_eq!(client.one("SELECT CONNECTION_ID()").await, client.id.to_string());
    assert_eq!(other.query("SHOW WARNINGS").await.rows(), Vec::<Vec<_>>::new());
});

on_both!(row_count_is_ones_own, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    let count = "SELECT ROW_COUNT()";
    twin.queries(&["CREATE TABLE t (id INT PRIMARY KEY, v INT)", count]).await;
    for sql in [
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        "UPDATE t SET v = 2",
        "UPDATE t SET v = 2",
        "DELETE FROM t WHERE id = 1",
        "REPLACE INTO t VALUES (2, 9), (4, 4)",
        "SELECT * FROM t",
        "SHOW TABLES LIKE 't'",
        "SELECT * FROM nowhere",
        "SELEKT",
        "SET sql_mode = DEFAULT",
        "INSERT INTO t VALUES (2, 2)",
        "DO 1",
        "TRUNCATE t",
    ] {
        twin.queries(&[sql, count, count, sql, " select  row_count() ; "]).await;
    }
});

on_both!(found_rows_outlive_a_reset, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1), (2), (3)"]).await;
    for sql in ["SELECT n FROM t LIMIT 2", "SELECT SQL_CALC_FOUND_ROWS n FROM t LIMIT 1", "SELECT 1"] {
        for intruders in 0..4 {
            twin.query_and_keep(sql).await;
            if intruders & 1 != 0 {
                twin.intrude().await;
            }
            twin.command(Command::ResetConnection, b"").await;
            if intruders & 2 != 0 {
                twin.intrude().await;
            }
            twin.query_and_keep("SELECT FOUND_ROWS()").await;
        }
    }
});

on_both!(found_rows_are_ones_own, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1), (2), (3), (4), (5)"]).await;
    let found = "SELECT FOUND_ROWS()";
    for sql in ["SELECT n FROM t", "SELECT n FROM t LIMIT 2", "SELECT n FROM t WHERE n > 7", "SELECT 1 UNION SELECT 2"]
    {
        twin.queries(&[sql, found, found]).await;
    }
    for limit in [1, 3] {
        twin.query(&format!("SELECT SQL_CALC_FOUND_ROWS n FROM t WHERE n > 1 LIMIT {limit}")).await;
        twin.queries(&[found, found]).await;
    }
});

on_both!(ten_clients_each_count_their_own_rows, |t| async move {
    let mut first = t.client().await;
    first.query("CREATE TABLE t (n INT)").await.expect_ok();
    first.query("INSERT INTO t VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)").await.expect_ok();
    let mut clients = JoinSet::new();
    for wanted in 1..=10 {
        let t = Arc::clone(&t);
        clients.spawn(async move {
            let mut client = t.client().await;
            for _ in 0..20 {
                let sql = format!("SELECT SQL_CALC_FOUND_ROWS n FROM t WHERE n <= {wanted} LIMIT 1");
                client.query(&sql).await.expect_ok();
                assert_eq!(client.one("SELECT FOUND_ROWS()").await, wanted.to_string());
            }
        });
    }
    clients.join_all().await;
});

on_both!(warnings_are_ones_own, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n TINYINT)", "SET sql_mode = ''"]).await;
    for cause in [
        "SELECT CAST('x' AS SIGNED)",
        "INSERT INTO t VALUES (1000), (2), (-1000)",
        "DROP TABLE IF EXISTS no_such_table",
        "SELECT * FROM no_such_table",
        "SELEKT 1",
        "SELECT 1 FROM t WHERE n = 'y'",
        "INSERT INTO t VALUES (3)",
    ] {
        for question in [
            "SHOW WARNINGS",
            "SHOW /* my */ WARNINGS",
            "SHOW COUNT(*) WARNINGS",
            "SELECT @@warning_count",
            "SHOW ERRORS",
            "SHOW COUNT(*) ERRORS",
            "SELECT @@error_count",
        ] {
            twin.queries(&[cause, question, question]).await;
        }
        twin.queries(&[cause, "SHOW WARNINGS", "SHOW COUNT(*) WARNINGS", "SHOW ERRORS", "SELECT @@warning_count"])
            .await;
    }
});

on_both!(whoever_caused_no_warning_sees_none, one_backend, |t| async move {
    let (mut clumsy, mut neat) = (t.client().await, t.client().await);
    for cause in ["SELECT CAST('x' AS SIGNED)", "SELECT * FROM no_such_table", "DO CAST('x' AS SIGNED)"] {
        for question in ["SHOW WARNINGS", "SHOW ERRORS", "SHOW /**/ WARNINGS LIMIT 3"] {
            clumsy.query(cause).await;
            assert_eq!(neat.query(question).await.rows(), Vec::<Vec<_>>::new(), "{cause}; {question}");
        }
        for question in ["SELECT @@warning_count", "SHOW COUNT(*) WARNINGS", "SELECT @@warning_count + @@error_count"] {
            clumsy.query(cause).await;
            assert_eq!(neat.one(question).await, "0", "{cause}; {question}");
        }
    }
});

// Forms that cannot be answered from memory: the right answer, or an error that says so.
on_both!(an_unusual_question_is_never_answered_wrong, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    let mut direct = t.direct(&t.app()).await;
    client.query("CREATE TABLE t (n INT)").await.expect_ok();
    for cause in ["INSERT INTO t VALUES (1), (2)", "SELECT n, CAST('x' AS SIGNED) FROM t LIMIT 2"] {
        for question in [
            "SELECT ROW_COUNT() + 1",
            "SELECT ROW_COUNT(), 'and more'",
            "SELECT FOUND_ROWS() * 2",
            "SELECT @@warning_count > 0, @@error_count",
            "SELECT @@session.warning_count",
            "SHOW WARNINGS LIMIT 1",
            "SHOW WARNINGS LIMIT 1, 1",
        ] {
            direct.query(cause).await.expect_ok();
            let wanted = direct.query(question).await.rows();
            client.query(cause).await.expect_ok();
            other.query("SELECT n FROM t LIMIT 1").await.expect_ok();
            let got = client.query(question).await;
            match got.error() {
                None => assert_eq!(got.rows(), wanted, "{cause}; {question}"),
                Some((code, message)) => assert_eq!(code, 1235, "{message}"),
            }
            // With nobody in between it always works.
            client.query(cause).await.expect_ok();
            assert_eq!(client.query(question).await.rows(), wanted, "{cause}; {question}");
        }
    }
});

on_both!(diagnostics_of_somebody_elses_statement_are_refused, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    client.query("SELECT * FROM no_such_table").await.expect_error(1146);
    other.query("SELECT 1").await.expect_ok();
    let reply = client.query("GET DIAGNOSTICS CONDITION 1 @code = MYSQL_ERRNO").await;
    match reply.error() {
        None => assert_eq!(client.one("SELECT @code").await, "1146"),
        Some((code, message)) => assert_eq!(code, 1235, "{message}"),
    }
});

on_both!(diagnostics_of_ones_own_statement, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.query("SELECT * FROM no_such_table").await;
    // With nobody in between: the backend is still the client's own.
    for sql in [
        "SELECT * FROM no_such_table",
        "GET DIAGNOSTICS CONDITION 1 @code = MYSQL_ERRNO, @text = MESSAGE_TEXT",
        "SELECT @code, @text",
    ] {
        twin.query_and_keep(sql).await;
    }
});

on_both!(several_statements_in_one_text, one_backend, |t| async move {
    let login = t.app().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS);
    let mut twin = Twin::new(&t, &login).await;
    twin.queries(&[
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT); INSERT INTO t (v) VALUES (1), (2), (3)",
        "SELECT LAST_INSERT_ID()",
        "UPDATE t SET v = v + 1 WHERE id < 3; SELECT ROW_COUNT()",
        "SELECT 1; SELECT nothing FROM nowhere; SELECT 2",
        "SHOW WARNINGS",
        "SELECT 1; SELEKT; SELECT 2",
        "SHOW COUNT(*) ERRORS",
        "INSERT INTO t (v) VALUES (9); SELECT LAST_INSERT_ID(); SELECT FOUND_ROWS(), @@warning_count",
        "SELECT LAST_INSERT_ID()",
        "SET time_zone = '+3:00'; SELECT @@time_zone; SELECT CAST('x' AS SIGNED); SHOW WARNINGS",
        "SELECT @@time_zone",
        "BEGIN; INSERT INTO t (v) VALUES (10); ROLLBACK; SELECT COUNT(*) FROM t",
        "SELECT COUNT(*) FROM t",
    ])
    .await;
});

on_both!(a_transaction_reads_the_same_rows_twice, |t| async move {
    let (mut reader, mut writer) = (t.client().await, t.client().await);
    writer.query("CREATE TABLE t (n INT)").await.expect_ok();
    let others = noise(&t, 4);
    for round in 1..=20 {
        reader.query("START TRANSACTION").await.expect_ok();
        let before = reader.one("SELECT COUNT(*) FROM t").await;
        writer.query(&format!("INSERT INTO t VALUES ({round})")).await.expect_ok();
        assert_eq!(reader.one("SELECT COUNT(*) FROM t").await, before);
        reader.query("COMMIT").await.expect_ok();
        assert_eq!(reader.one("SELECT COUNT(*) FROM t").await, round.to_string());
    }
    end(others).await;
});

on_both!(what_is_rolled_back_is_gone, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    client.query("CREATE TABLE t (n INT)").await.expect_ok();
    for first in ["DO 0", "SET @x = 1"] {
        client.query(first).await.expect_ok();
        client.query("SET autocommit = 0").await.expect_ok();
        client.query("INSERT INTO t VALUES (1)").await.expect_ok();
        assert_eq!(client.one("SELECT COUNT(*) FROM t").await, "1");
        client.query("ROLLBACK").await.expect_ok();
        assert_eq!(client.one("SELECT COUNT(*) FROM t").await, "0");
        client.query("COMMIT").await.expect_ok();
        client.command(Command::ResetConnection, b"").await.expect_ok();
        assert_eq!(other.one("SELECT COUNT(*) FROM t").await, "0");
    }
});

on_both!(without_autocommit_the_backend_is_shared_after_each_commit, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    client.query("CREATE TABLE t (n INT)").await.expect_ok();
    client.query("SET autocommit = 0").await.expect_ok();
    for round in 1..=5 {
        client.query("INSERT INTO t VALUES (1)").await.expect_ok();
        t.until("myriad_pinned_clients", Some("transaction"), 1.0).await;
        client.query("COMMIT").await.expect_ok();
        t.until("myriad_pinned_clients", None, 0.0).await;
        assert_eq!(other.one("SELECT COUNT(*), @@autocommit FROM t").await, round.to_string());
        // Committed at once: this one is the other's.
        other.query("DELETE FROM t WHERE n = 2").await.expect_ok();
        other.query("INSERT INTO t VALUES (2)").await.expect_ok();
        other.query("ROLLBACK").await.expect_ok();
        assert_eq!(other.one("SELECT COUNT(*) FROM t WHERE n = 2").await, "1");
        other.query("DELETE FROM t WHERE n = 2").await.expect_ok();
        assert_eq!(client.one("SELECT @@autocommit").await, "0");
    }
    assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), 1.0);
});

on_both!(everybody_reads_what_it_wrote, |t| async move {
    let mut first = t.client().await;
    first.query("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, who INT, n INT)").await.expect_ok();
    let mut clients = JoinSet::new();
    for who in 0..8 {
        let t = Arc::clone(&t);
        clients.spawn(async move {
            let mut client = t.client().await;
            for n in 1..=50 {
                client.query(&format!("INSERT INTO t (who, n) VALUES ({who}, {n})")).await.expect_ok();
                let last = format!("SELECT MAX(n) FROM t WHERE who = {who}");
                assert_eq!(client.one(&last).await, n.to_string());
                assert_eq!(client.one("SELECT n FROM t WHERE id = LAST_INSERT_ID()").await, n.to_string());
            }
        });
    }
    clients.join_all().await;
});

/// Clients that keep the backends busy, each with a state of its own, until they are told to end.
fn noise(t: &Arc<Setup>, clients: usize) -> (JoinSet<()>, tokio::sync::watch::Sender<bool>) {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut others = JoinSet::new();
    for number in 0..clients {
        let (t, stopped) = (Arc::clone(t), stopped.clone());
        others.spawn(async move {
            let mut client = t.client().await;
            client.query(&format!("SET time_zone = '+0{number}:00'")).await.expect_ok();
            while !*stopped.borrow() {
                assert_eq!(client.one("SELECT @@time_zone").await, format!("+0{number}:00"));
            }
        });
    }
    (others, stop)
}

async fn end((others, stop): (JoinSet<()>, tokio::sync::watch::Sender<bool>)) {
    stop.send_replace(true);
    others.join_all().await;
}
