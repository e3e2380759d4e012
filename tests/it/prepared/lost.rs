//! The backend is lost while it prepares a statement once more: the execute is answered once.

use myriad::protocol::command::Command;

use super::{BLOB, execution};
use crate::support::{Setup, Wire, on_both, one_backend, own_backends};

/// A client whose next backend must prepare its statement again, and cannot before the other one has made the table.
async fn before_a_lock(t: &Setup) -> (Wire, u32, Wire) {
    let mut client = t.client().await;
    client.query("CREATE TABLE t (n INT)").await.expect_ok();
    let id = client.prepare("SELECT 'waits', ? FROM t").await;
    t.kill_backends().await;
    let mut maker = t.direct(&t.app()).await;
    maker.query("DROP TABLE t").await.expect_ok();
    maker
        .send(Command::Query, format!("CREATE TABLE t AS SELECT SLEEP(60) AS n, '{}' AS m", t.schema).as_bytes())
        .await;
    t.until_runs(&format!("'{}' AS m", t.schema), true).await;
    (client, id, maker)
}

/// Lets it be prepared.
async fn unlock(t: &Setup, mut maker: Wire) {
    t.admin().await.query(&format!("KILL QUERY {}", maker.id)).await.expect_ok();
    maker.reply(Command::Query).await.expect("an answer");
    t.direct(&t.app()).await.query("CREATE TABLE IF NOT EXISTS t (n INT)").await.expect_ok();
}

fn own_backend(config: &mut myriad::config::Config) {
    one_backend(config);
    own_backends(config);
}

on_both!(an_execute_whose_backend_is_lost_before_it, own_backend, |t| async move {
    let (mut client, id, maker) = before_a_lock(&t).await;
    let empty = [(BLOB, Some(vec![0]))];
    client.send(Command::StmtExecute, &execution(id, false, &empty, true)).await;
    t.until_runs("'waits'", true).await;
    t.kill_backends().await;
    client.reply(Command::StmtExecute).await.expect("an answer").expect_error(1158);
    unlock(&t, maker).await;
    assert_eq!(client.one("SELECT 'mine'").await, "mine");
    client.command(Command::StmtExecute, &execution(id, false, &empty, true)).await.expect_ok();
});

on_both!(long_data_whose_backend_is_lost, own_backend, |t| async move {
    let (mut client, id, maker) = before_a_lock(&t).await;
    let piece = [&id.to_le_bytes()[..], &0_u16.to_le_bytes(), b"data"].concat();
    client.send(Command::StmtSendLongData, &piece).await;
    t.until_runs("'waits'", true).await;
    t.kill_backends().await;
    unlock(&t, maker).await;
    t.until("myriad_clients", None, 0.0).await;
});
