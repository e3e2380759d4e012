//! Draining.

use std::sync::Arc;
use std::time::{Duration, Instant};

use myriad::protocol::command::Command;
use tokio::net::TcpStream;

use crate::support::{Setup, Wire, on_both};

/// Begins to drain in the background; returns when nobody new is let in.
async fn drain(t: &Arc<Setup>) -> tokio::task::JoinHandle<()> {
    let draining = tokio::spawn({
        let t = Arc::clone(t);
        async move { t.drain().await }
    });
    let limit = Instant::now() + Duration::from_secs(10);
    // A connection that the kernel has accepted and the proxy has not is closed without a word.
    while TcpStream::connect(t.address).await.is_ok() {
        assert!(Instant::now() < limit, "still open to new clients");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    draining
}

/// The one error that a client hears before the end of its connection.
async fn last_words(client: &mut Wire) -> u16 {
    let listen = async {
        let (header, payload) = client.frame().await.expect("last words");
        assert_eq!((header.seq, payload[0]), (1, 0xff), "{payload:?}");
        assert!(client.frame().await.is_err(), "nothing after the last words");
        u16::from_le_bytes([payload[1], payload[2]])
    };
    tokio::time::timeout(Duration::from_secs(10), listen).await.expect("an end")
}

const SHUTDOWN: u16 = 1053;

on_both!(a_drain_waits_for_what_is_open, |config| config.pool.max_connections = 8, |t| async move {
    let mut idle = t.client().await;
    idle.query("CREATE TABLE t (n INT)").await.expect_ok();
    idle.query("CREATE TABLE u (n INT)").await.expect_ok();
    let mut transaction = t.client().await;
    transaction.query("BEGIN").await.expect_ok();
    transaction.query("INSERT INTO t VALUES (1)").await.expect_ok();
    let mut locks = t.client().await;
    locks.query("LOCK TABLES u READ").await.expect_ok();
    let mut running = t.client().await;
    running.send(Command::Query, b"SELECT SLEEP(0.5), 'done'").await;
    // What is merely kept can be had again.
    let mut pinned = t.client().await;
    pinned.query("DO GET_LOCK(DATABASE(), 0)").await.expect_ok();
    t.until("myriad_pinned_clients", Some("user_lock"), 1.0).await;
    t.until("myriad_clients", Some("running"), 1.0).await;

    let draining = drain(&t).await;
    assert_eq!(last_words(&mut idle).await, SHUTDOWN);
    assert_eq!(last_words(&mut pinned).await, SHUTDOWN);
    // Goes on as long as it is open, and ends when it is not.
    for n in 2..=4 {
        transaction.query(&format!("INSERT INTO t VALUES ({n})")).await.expect_ok();
    }
    transaction.query("COMMIT").await.expect_ok();
    assert_eq!(last_words(&mut transaction).await, SHUTDOWN);
    locks.query("UNLOCK TABLES").await.expect_ok();
    assert_eq!(last_words(&mut locks).await, SHUTDOWN);
    let reply = running.reply(Command::Query).await.expect("a reply");
    assert_eq!(reply.rows()[0][1].as_deref(), Some("done"));
    assert_eq!(last_words(&mut running).await, SHUTDOWN);
    draining.await.expect("drained");
    assert_eq!(t.metric("myriad_client_goodbyes_total", Some("drain")), 5.0);
    assert_eq!(t.direct(&t.app()).await.one("SELECT COUNT(*) FROM t").await, "4");
});

on_both!(
    a_drain_does_not_wait_for_ever,
    |config| {
        config.server.drain_timeout = Duration::from_millis(500);
    },
    |t| async move {
        let mut client = t.client().await;
        client.query("CREATE TABLE t (n INT)").await.expect_ok();
        client.query("BEGIN").await.expect_ok();
        client.query("INSERT INTO t VALUES (1)").await.expect_ok();
        let begin = Instant::now();
        let draining = drain(&t).await;
        assert_eq!(last_words(&mut client).await, SHUTDOWN);
        draining.await.expect("drained");
        assert!(begin.elapsed() >= Duration::from_millis(500));
        assert_eq!(t.direct(&t.app()).await.one("SELECT COUNT(*) FROM t").await, "0");
    }
);

on_both!(who_waits_in_line_is_served_before_the_end, |config| config.pool.max_connections = 1, |t| async move {
    let (mut owner, mut waiter) = (t.client().await, t.client().await);
    owner.query("BEGIN").await.expect_ok();
    waiter.send(Command::Query, b"SELECT 7").await;
    t.until("myriad_pool_waiting", None, 1.0).await;
    let draining = drain(&t).await;
    owner.query("COMMIT").await.expect_ok();
    assert_eq!(last_words(&mut owner).await, SHUTDOWN);
    assert_eq!(waiter.reply(Command::Query).await.expect("a reply").rows()[0][0].as_deref(), Some("7"));
    assert_eq!(last_words(&mut waiter).await, SHUTDOWN);
    draining.await.expect("drained");
});
