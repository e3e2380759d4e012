//! Long data and cursors: as long as they last the backend's statement is the client's alone, and then everybody's again.

use myriad::protocol::command::Command;

use super::{BLOB, execution, text};
use crate::support::{Twin, on_both, one_backend};

fn piece(id: u32, param: u16, data: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &param.to_le_bytes(), data].concat()
}

on_both!(long_data, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.prepare("SELECT LENGTH(?), ? AS b").await;
    twin.prepare("SELECT LENGTH(?), ? AS b").await;
    let empty = || (BLOB, Some(Vec::new()));
    for id in [1, 2] {
        twin.send(Command::StmtSendLongData, &piece(id, 0, b"abc")).await;
        twin.send(Command::StmtSendLongData, &piece(id, 0, b"defg")).await;
    }
    // Each has its own.
    twin.command(Command::StmtExecute, &execution(1, false, &[text("short"), text("b")], true)).await;
    twin.command(Command::StmtExecute, &execution(2, false, &[empty(), text("b")], true)).await;
    twin.intrude().await;
    twin.execute(1, &[text("shorter"), text("b")]).await;
    twin.send(Command::StmtSendLongData, &piece(1, 0, b"dropped")).await;
    twin.command(Command::StmtReset, &1_u32.to_le_bytes()).await;
    twin.intrude().await;
    twin.execute(1, &[text("after"), text("reset")]).await;
    twin.send(Command::StmtSendLongData, &piece(1, 9, b"there is no such parameter")).await;
    twin.command(Command::StmtExecute, &execution(1, false, &[text("a"), text("b")], true)).await;
    twin.command(Command::StmtReset, &1_u32.to_le_bytes()).await;
    twin.intrude().await;
    // An execute that fails leaves nothing of it to others.
    twin.prepare("SELECT LENGTH(?), (SELECT 1 UNION SELECT ?)").await;
    twin.send(Command::StmtSendLongData, &piece(3, 0, b"abc")).await;
    twin.execute(3, &[empty(), text("q")]).await.expect_error(1242);
    twin.execute(3, &[text("12"), text("1")]).await;
    twin.send(Command::StmtSendLongData, &piece(3, 0, b"gone with it")).await;
    twin.send(Command::StmtClose, &3_u32.to_le_bytes()).await;
    twin.intrude().await;
});

on_both!(cursors, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.queries(&["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1), (2), (3)"]).await;
    let rows = "SELECT n FROM t ORDER BY n LIMIT 3";
    twin.prepare(rows).await;
    twin.prepare(rows).await;
    let open = |id| execution(id, true, &[], true);
    let fetch = |id: u32, rows: u32| [id.to_le_bytes(), rows.to_le_bytes()].concat();
    twin.command(Command::StmtFetch, &fetch(1, 1)).await.expect_error(1421);
    twin.command(Command::StmtExecute, &open(1)).await;
    twin.command(Command::StmtFetch, &fetch(1, 2)).await;
    twin.command(Command::StmtExecute, &open(2)).await;
    twin.command(Command::StmtFetch, &fetch(2, 1)).await;
    twin.command(Command::StmtFetch, &fetch(1, 2)).await;
    twin.command(Command::StmtFetch, &fetch(1, 2)).await;
    assert_eq!(t.metric("myriad_pinned_clients", Some("cursor")), 1.0, "the other one is open");
    twin.command(Command::StmtReset, &2_u32.to_le_bytes()).await;
    twin.intrude().await;
    twin.command(Command::StmtFetch, &fetch(2, 1)).await.expect_error(1421);
    twin.command(Command::StmtExecute, &open(1)).await;
    twin.command(Command::StmtFetch, &fetch(1, 100)).await;
    twin.intrude().await;
    twin.command(Command::StmtExecute, &open(2)).await;
    twin.send(Command::StmtClose, &2_u32.to_le_bytes()).await;
    twin.intrude().await;
    twin.command(Command::StmtFetch, &fetch(2, 1)).await.expect_error(1243);
    assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
});

// MySQL answers an execute without a cursor wrongly after one with: they have statements of their own.
on_both!(with_a_cursor_and_without, one_backend, |t| async move {
    let mut client = t.client().await;
    let id = client.prepare("SELECT 1 UNION SELECT 2").await;
    for _ in 0..3 {
        client.command(Command::StmtExecute, &execution(id, true, &[], true)).await.expect_ok();
        client.command(Command::StmtFetch, &[id.to_le_bytes(), 9_u32.to_le_bytes()].concat()).await.expect_ok();
        let reply = client.command(Command::StmtExecute, &execution(id, false, &[], true)).await;
        assert_eq!(reply.raw.len(), 5, "{reply:?}");
    }
});

on_both!(an_answer_put_into_a_cursor_is_not_given_again, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.query("CREATE TABLE t (n INT)").await;
    twin.prepare("SELECT ROW_COUNT() AS n").await;
    twin.query("INSERT INTO t VALUES (1), (2)").await;
    twin.command(Command::StmtExecute, &execution(1, true, &[], true)).await;
    let fetch = [1_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
    twin.query_and_keep("INSERT INTO t VALUES (3)").await;
    twin.command(Command::StmtExecute, &execution(1, true, &[], true)).await;
    twin.command(Command::StmtFetch, &fetch).await;
    twin.command(Command::StmtReset, &1_u32.to_le_bytes()).await;
    twin.intrude().await;
    assert_eq!(t.metric("myriad_pinned_clients", None), 0.0);
});

on_both!(what_failed_with_long_data_leaves_its_warnings, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.query("CREATE TABLE t (v VARCHAR(9) PRIMARY KEY)").await;
    twin.query("INSERT INTO t VALUES ('abc')").await;
    twin.prepare("INSERT INTO t VALUES (?)").await;
    for question in ["SHOW WARNINGS", "SELECT ROW_COUNT() AS n, @@error_count AS e", "SHOW COUNT(*) WARNINGS"] {
        for stays in [true, false] {
            twin.send(Command::StmtSendLongData, &piece(1, 0, b"abc")).await;
            let empty = (BLOB, Some(vec![0]));
            twin.command(Command::StmtExecute, &execution(1, false, &[empty], true)).await.expect_error(1062);
            if stays {
                twin.query_and_keep(question).await;
            } else {
                twin.intrude().await;
                twin.query(question).await;
            }
        }
    }
});
