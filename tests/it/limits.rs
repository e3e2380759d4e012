//! The line for a backend: first come, first served, within the limits, which are named when they say no.

use std::sync::Arc;
use std::time::{Duration, Instant};

use myriad::protocol::command::Command;
use tokio::task::JoinSet;

use crate::support::{Login, Setup, Wire, on_both, one_backend, own_backends};

/// Clients that come at once, and the backends they share.
const CLIENTS: usize = 1000;
const BACKENDS: usize = 20;

/// Clients that wait behind a statement that does not end.
const WAITERS: usize = 50;

on_both!(
    a_thousand_clients_on_twenty_backends,
    |config| {
        config.pool.max_connections = BACKENDS;
        own_backends(config);
    },
    |t| async move {
        let mut first = t.client().await;
        first.query("CREATE TABLE served (who INT, round INT)").await.expect_ok();
        let insert = format!("INSERT INTO {}.served VALUES", t.schema);
        let mut clients = JoinSet::new();
        for who in 0..CLIENTS {
            let (t, insert) = (Arc::clone(&t), insert.clone());
            clients.spawn(async move {
                let mut client = t.client_as(&Login { schema: None, ..t.app() }).await;
                for round in 0..2 {
                    client.query(&format!("{insert} ({who}, {round})")).await.expect_ok();
                }
            });
        }
        let mut admin = t.admin().await;
        let (mut most, mut waited) = (0, 0.0_f64);
        while !clients.is_empty() {
            most = most.max(t.threads(&mut admin).await.len());
            waited = waited.max(t.metric("myriad_pool_waiting", None));
            while let Ok(Some(done)) = tokio::time::timeout(Duration::from_millis(5), clients.join_next()).await {
                done.expect("a client that was served");
            }
        }
        let served = first.one("SELECT COUNT(DISTINCT who, round) FROM served").await;
        assert_eq!(served, (2 * CLIENTS).to_string());
        println!("{:?}: at most {most} connections, at most {waited} in line", t.kind);
        assert_eq!(most, BACKENDS);
        // The account has room for no more than the pool may have: one too many would have been refused.
        assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), BACKENDS as f64);
        assert_eq!(t.metric("myriad_backend_opens_total", None), BACKENDS as f64);
    }
);

on_both!(
    whoever_waits_too_long_is_told_and_the_rest_keep_their_order,
    |config| {
        one_backend(config);
        config.scheduler.queue_timeout = Duration::from_secs(3);
    },
    |t| async move {
        let mut slow = slow_statement(&t).await;
        let (mut expired, mut served) = (Vec::new(), Vec::new());
        for who in 0..WAITERS {
            expired.push(join_line(&t, who, who + 1).await);
        }
        t.until("myriad_pool_waiting", None, 0.0).await;
        for mut client in expired {
            let reply = client.reply(Command::Query).await.expect("a reply");
            let (code, message) = reply.error().expect("an error");
            assert_eq!((code, reply.raw.len()), (1040, 1));
            assert!(message.contains("scheduler.queue_timeout is 3000 ms"), "{message}");
            // It stays: perhaps next time.
            served.push(client);
        }
        assert_eq!(t.metric("myriad_refusals_total", Some("queue_timeout")), WAITERS as f64);
        for (who, client) in served.iter_mut().enumerate() {
            send(&t, client, who, who + 1).await;
        }
        slow.end().await;
        assert_served_in_order(&t, served).await;
    }
);

on_both!(
    the_line_has_an_end,
    |config| {
        one_backend(config);
        config.scheduler.max_waiting = 5;
        config.scheduler.queue_timeout = Duration::from_secs(30);
    },
    |t| async move {
        let mut late = t.client_as(&Login { schema: None, ..t.app() }).await;
        let mut slow = slow_statement(&t).await;
        let mut served = Vec::new();
        for who in 0..5 {
            served.push(join_line(&t, who, who + 1).await);
        }
        let started = Instant::now();
        for _ in 0..3 {
            let reply = late.query("SELECT 1").await;
            let (code, message) = reply.error().expect("an error");
            assert_eq!(code, 1040);
            assert!(message.contains("5 commands wait") && message.contains("scheduler.max_waiting"), "{message}");
        }
        assert!(started.elapsed() < Duration::from_secs(10), "told at once");
        assert_eq!(t.metric("myriad_refusals_total", Some("max_waiting")), 3.0);
        slow.end().await;
        assert_served_in_order(&t, served).await;
        assert_eq!(late.one("SELECT 1").await, "1");
    }
);

on_both!(those_who_leave_the_line_hold_nobody_up, one_backend, |t| async move {
    let mut slow = slow_statement(&t).await;
    let mut served = Vec::new();
    for who in 0..10 {
        let leaver = join_line(&t, 100 + who, who + 1).await;
        drop(leaver);
        t.until("myriad_pool_waiting", None, who as f64).await;
        served.push(join_line(&t, who, who + 1).await);
    }
    slow.end().await;
    assert_served_in_order(&t, served).await;
});

/// A client in the only backend, with a statement that goes on until it is told to end.
struct Slow {
    client: Wire,
    /// Holds what the client waits for.
    admin: Wire,
    lock: String,
}

async fn slow_statement(t: &Setup) -> Slow {
    let (mut client, mut admin, lock) = (t.client().await, t.admin().await, t.schema.clone());
    client.query("CREATE TABLE served (id INT AUTO_INCREMENT PRIMARY KEY, who INT)").await.expect_ok();
    assert_eq!(admin.one(&format!("SELECT GET_LOCK('{lock}', 1)")).await, "1");
    client.send(Command::Query, format!("SELECT GET_LOCK('{lock}', 1000)").as_bytes()).await;
    t.until("myriad_clients", Some("running"), 1.0).await;
    Slow { client, admin, lock }
}

impl Slow {
    async fn end(&mut self) {
        self.admin.query(&format!("DO RELEASE_LOCK('{}')", self.lock)).await.expect_ok();
        let reply = self.client.reply(Command::Query).await.expect("a reply");
        assert_eq!(reply.rows()[0][0].as_deref(), Some("1"));
        self.client.query(&format!("DO RELEASE_LOCK('{}')", self.lock)).await.expect_ok();
    }
}

/// A new client that asks for something and waits; as the last one of this many.
async fn join_line(t: &Setup, who: usize, length: usize) -> Wire {
    let mut client = t.client_as(&Login { schema: None, ..t.app() }).await;
    send(t, &mut client, who, length).await;
    client
}

async fn send(t: &Setup, client: &mut Wire, who: usize, length: usize) {
    let insert = format!("INSERT INTO {}.served (who) VALUES ({who})", t.schema);
    client.send(Command::Query, insert.as_bytes()).await;
    t.until("myriad_pool_waiting", None, length as f64).await;
}

async fn assert_served_in_order(t: &Setup, waiters: Vec<Wire>) {
    let wanted: Vec<String> = (0..waiters.len()).map(|who| who.to_string()).collect();
    for mut client in waiters {
        client.reply(Command::Query).await.expect("a reply").expect_ok();
    }
    let mut client = t.client().await;
    let rows = client.query("SELECT who FROM served ORDER BY id").await.rows();
    assert_eq!(rows.into_iter().flatten().flatten().collect::<Vec<_>>(), wanted);
}
