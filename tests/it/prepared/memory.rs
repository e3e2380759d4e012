//! Preparations that are answered from what a backend told before, and when they must not be.

use myriad::protocol::command::Command;

use super::{execute, execution};
use crate::support::{Kind, Packets, Setup, Twin, Wire, on_both, one_backend};

async fn prepared(client: &mut Wire, sql: &str) -> Packets {
    client.command(Command::StmtPrepare, sql.as_bytes()).await
}

fn remembered(t: &Setup) -> f64 {
    t.metric("myriad_remembered_prepares_total", None)
}

/// How often the only backend was asked to prepare.
async fn asked(t: &Setup) -> f64 {
    let mut client = t.client().await;
    let rows = client.query("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'").await.rows();
    let asked = rows[0][1].as_ref().expect("a number").parse::<f64>().expect("a number");
    assert_eq!(asked, t.metric("myriad_backend_prepares_total", None));
    asked
}

on_both!(many_clients_prepare_the_same, one_backend, |t| async move {
    t.client().await.query("CREATE TABLE t (id INT, v VARCHAR(9))").await.expect_ok();
    let texts = ["SELECT * FROM t WHERE id = ?", "INSERT INTO t VALUES (?, ?)", "SELECT 1", "DO 1"];
    let mut replies = Vec::new();
    for _ in 0..50 {
        let mut client = t.client().await;
        let mut mine = Vec::new();
        for sql in texts {
            mine.push(prepared(&mut client, sql).await.raw);
        }
        execute(&mut client, 3, &[]).await.expect_ok();
        replies.push(mine);
    }
    assert!(replies.iter().all(|reply| *reply == replies[0]));
    let asked = asked(&t).await;
    assert!((4.0..40.0).contains(&asked), "asked {asked} times");
    assert_eq!(remembered(&t) + asked, 200.0);
    t.until("myriad_client_statements", None, 0.0).await;
    assert!(t.metric("myriad_backend_statements", None) <= asked);
});

on_both!(what_was_redefined_is_asked_for_again, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    let select = "SELECT * FROM t";
    client.query("CREATE TABLE t (a INT)").await.expect_ok();
    for (n, sql) in
        ["ALTER TABLE t ADD COLUMN b INT", "CREATE OR REPLACE VIEW v AS SELECT 1", "RENAME TABLE t TO u, u TO t"]
            .iter()
            .enumerate()
    {
        let before = prepared(&mut client, select).await.raw.len();
        prepared(&mut other, select).await;
        let count = remembered(&t);
        // By text, and prepared.
        if n == 0 {
            other.query(sql).await.expect_ok();
        } else {
            let id = other.prepare(sql).await;
            execute(&mut other, id, &[]).await.expect_ok();
        }
        let after = prepared(&mut client, select).await.raw.len();
        assert_eq!(after, before + usize::from(n == 0), "{sql}");
        assert_eq!(remembered(&t), count, "{sql}");
    }
});

on_both!(memory_is_not_used_where_the_client_could_tell, one_backend, |t| async move {
    let mut client = t.client().await;
    client.query("CREATE TABLE t (a INT)").await.expect_ok();
    for _ in 0..2 {
        prepared(&mut client, "SELECT * FROM t").await.expect_ok();
    }
    assert_eq!(remembered(&t), 1.0);
    // Its own table of the same name.
    client.query("CREATE TEMPORARY TABLE t (a INT, b INT)").await.expect_ok();
    let columns = prepared(&mut client, "SELECT * FROM t").await.raw.len();
    assert_eq!((columns, remembered(&t)), (3, 1.0));
    client.query("DROP TEMPORARY TABLE t").await.expect_ok();
    prepared(&mut client, "SELECT * FROM t").await.expect_ok();
    assert_eq!(prepared(&mut client, "SELECT * FROM t").await.raw.len(), 2);
    // A list of warnings that a preparation empties: on MySQL any one does.
    client.query("SELECT CAST('x' AS SIGNED) FROM (SELECT 1) d").await.expect_ok();
    let before = remembered(&t) + f64::from(u8::from(t.kind == Kind::MySql));
    prepared(&mut client, "SELECT * FROM t").await.expect_ok();
    assert_eq!(remembered(&t), before);
    assert_eq!(client.query("SHOW WARNINGS").await.rows().len(), 0);
    // In a transaction it is.
    client.query("DELETE FROM t").await.expect_ok();
    client.query("BEGIN").await.expect_ok();
    prepared(&mut client, "SELECT * FROM t").await.expect_ok();
    assert_eq!(remembered(&t), before + 1.0);
    client.query("COMMIT").await.expect_ok();
});

on_both!(the_limit_of_one_client, |config| config.limits.max_prepared_statements = 2, |t| async move {
    let mut client = t.client().await;
    let first = client.prepare("SELECT 1").await;
    client.prepare("SELECT 2").await;
    let (code, words) = prepared(&mut client, "SELECT 3").await.error().expect("an error");
    assert_eq!((code, &*words), (1461, "Can't create more than max_prepared_stmt_count statements (current value: 2)"));
    assert_eq!(client.query("SHOW WARNINGS").await.rows()[0][1].as_deref(), Some("1461"));
    client.send(Command::StmtClose, &first.to_le_bytes()).await;
    let id = client.prepare("SELECT 3").await;
    client.command(Command::StmtExecute, &execution(id, false, &[], true)).await.expect_ok();
    assert_eq!(t.metric("myriad_client_statements", None), 2.0);
});

on_both!(
    /// MySQL cannot prepare BEGIN, whoever asks; and the next preparation empties the list that its error is on.
    what_cannot_be_prepared, one_backend, |t| async move {
        let mut twin = Twin::new(&t, &t.app()).await;
        twin.query("CREATE TABLE t (n INT)").await;
        for round in 0..4 {
            twin.query("SELECT CAST('x' AS SIGNED) FROM t").await;
            twin.command(Command::StmtPrepare, b"BEGIN").await;
            if round % 2 == 0 {
                twin.query("SELECT @@warning_count, ROW_COUNT()").await;
                twin.command(Command::StmtPrepare, b"BEGIN").await;
            }
            twin.query_and_keep("SHOW WARNINGS").await;
            twin.query("SHOW COUNT(*) ERRORS").await;
            twin.command(Command::StmtPrepare, b"BEGIN").await;
            twin.command(Command::StmtPrepare, b"SELECT n FROM t").await;
            twin.query_and_keep("SHOW WARNINGS").await;
            twin.command(Command::Ping, b"").await;
            twin.query_and_keep("SELECT @@error_count").await;
            twin.query("SHOW WARNINGS").await;
        }
        let asked = if t.kind == Kind::MySql { 2.0 } else { 20.0 };
        assert!(t.metric("myriad_backend_prepares_total", None) <= asked);
    }
);
