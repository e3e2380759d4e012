//! `pool.mode = "session"`: a backend for each client, from its login to its goodbye.

use std::sync::Arc;
use std::time::Duration;

use myriad::config::{AuthMode, Config, MaxRunning, PoolMode};
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use myriad::protocol::handshake::LoginError;

use crate::support::{Login, Setup, Wire, on_both, own_backends};

/// The server's own number of the connection that a client has.
const OWN_ID: &str = "SELECT id FROM information_schema.processlist WHERE id = CONNECTION_ID()";

fn session_mode(config: &mut Config) {
    config.pool.mode = PoolMode::Session;
    config.pool.max_connections = 3;
    own_backends(config);
}

/// Waits, at most ten seconds, until the server has so many connections of the test's account.
async fn until_connected(t: &Setup, admin: &mut Wire, count: usize) {
    let limit = std::time::Instant::now() + Duration::from_secs(10);
    while t.threads(admin).await.len() != count {
        assert!(std::time::Instant::now() < limit, "{} and not {count}", t.threads(admin).await.len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

on_both!(
    the_server_has_one_connection_for_each_client,
    |config| {
        session_mode(config);
        config.scheduler.queue_timeout = Duration::from_millis(300);
    },
    |t| async move {
        let mut admin = t.admin().await;
        let mut clients = Vec::new();
        for count in 1..=3 {
            clients.push(t.client().await);
            // Before its first command.
            assert_eq!(t.threads(&mut admin).await.len(), count);
        }
        match Wire::connect(t.address, &t.app()).await.err() {
            Some(LoginError::Server { code: 1040, message, .. }) => {
                assert!(message.contains("pool.mode is \"session\"") && message.contains("all 3"), "{message}");
            }
            other => panic!("{other:?}"),
        }
        for client in &mut clients {
            client.query("SELECT 1").await.rows();
        }
        assert_eq!(t.threads(&mut admin).await.len(), 3);
        // One that says goodbye, one that does not.
        clients.remove(0).send(Command::Quit, b"").await;
        until_connected(&t, &mut admin, 2).await;
        drop(clients.remove(0));
        until_connected(&t, &mut admin, 1).await;
        clients.push(t.client().await);
        assert_eq!(t.threads(&mut admin).await.len(), 2);
        clients.clear();
        until_connected(&t, &mut admin, 0).await;
        assert_eq!(t.metric("myriad_backend_closes_total", Some("client_left")), 4.0);
    }
);

on_both!(whoever_waits_at_the_door_gets_the_place_of_one_that_left, session_mode, |t| async move {
    let mut clients = [t.client().await, t.client().await, t.client().await];
    let next = tokio::spawn({
        let t = Arc::clone(&t);
        async move { t.client().await }
    });
    t.until("myriad_pool_waiting", None, 1.0).await;
    clients[1].query("SET @a = 1").await.expect_ok();
    clients[1].send(Command::Quit, b"").await;
    let mut next = next.await.expect("a client");
    assert_eq!(next.query("SELECT @a").await.rows(), [[None]]);
});

on_both!(everything_stays_until_the_client_leaves, session_mode, |t| async move {
    let (mut one, mut other) = (t.client().await, t.client().await);
    let ids = [one.one(OWN_ID).await, other.one(OWN_ID).await];
    assert_ne!(ids[0], ids[1]);
    t.until("myriad_pinned_clients", Some("session_mode"), 2.0).await;
    let lock = format!("SELECT GET_LOCK('{}', 0)", t.schema);
    one.query("CREATE TEMPORARY TABLE own (n INT)").await.expect_ok();
    one.query("INSERT INTO own VALUES (1), (2)").await.expect_ok();
    one.query("SET @a = 1, time_zone = '+1:00'").await.expect_ok();
    assert_eq!(one.one(&lock).await, "1");
    for _ in 0..3 {
        assert_eq!([one.one(OWN_ID).await, other.one(OWN_ID).await], ids);
        assert_eq!(one.one("SELECT CONCAT(@a, @@time_zone, COUNT(*)) FROM own").await, "1+01:002");
        assert_eq!(other.query("SELECT @a").await.rows(), [[None]]);
        assert_eq!(other.one(&lock).await, "0");
        other.query("SELECT * FROM own").await.expect_error(1146);
    }
    // A reset takes it all, and not the connection.
    one.command(Command::ResetConnection, b"").await.expect_ok();
    assert_eq!(one.one(OWN_ID).await, ids[0]);
    assert_eq!(one.query("SELECT @a").await.rows(), [[None]]);
    assert_eq!(other.one(&lock).await, "1");
    // Another user is another connection.
    other.change_user(&Login { user: "other", password: "other-secret", ..t.app() }).await.expect("welcome");
    assert_eq!(one.one(&lock).await, "1");
    assert_ne!(other.one(OWN_ID).await, ids[1]);
    assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), 3.0);
});

on_both!(the_flags_of_the_handshake_are_the_clients_own, session_mode, |t| async move {
    let mut plain = t.client().await;
    let mut found = t.client_as(&t.app().with(CapabilityFlags::CLIENT_FOUND_ROWS)).await;
    plain.query("CREATE TABLE t (n INT)").await.expect_ok();
    plain.query("INSERT INTO t VALUES (7)").await.expect_ok();
    for _ in 0..2 {
        assert_eq!(plain.query("UPDATE t SET n = 7").await.ok().affected_rows, 0);
        assert_eq!(found.query("UPDATE t SET n = 7").await.ok().affected_rows, 1);
    }
});

on_both!(
    statements_wait_for_each_other_all_the_same,
    |config| {
        session_mode(config);
        config.scheduler.max_running = MaxRunning::At(1);
        config.scheduler.stall_limit = Duration::from_secs(3600);
    },
    |t| async move {
        // One that has not used its connection yet, and one that has.
        let (mut busy, mut fresh, mut used) = (t.client().await, t.client().await, t.client().await);
        assert_eq!(used.one("SELECT 1").await, "1");
        let statement = format!("SELECT SLEEP(100), '{}'", t.schema);
        busy.send(Command::Query, statement.as_bytes()).await;
        t.until_runs(&statement, true).await;
        for client in [&mut fresh, &mut used] {
            client.send(Command::Query, b"SELECT 2").await;
        }
        t.until("myriad_pool_returning", None, 2.0).await;
        let mut admin = t.admin().await;
        let rows = admin.query("SHOW PROCESSLIST").await.rows();
        let runs = |row: &&Vec<Option<String>>| row[7].as_ref().is_some_and(|text| text.contains(&statement));
        let id = rows.iter().find(runs).and_then(|row| row[0].clone()).expect("it runs");
        admin.query(&format!("KILL QUERY {id}")).await.expect_ok();
        for client in [&mut fresh, &mut used] {
            let reply = client.reply(Command::Query).await.expect("a reply");
            assert_eq!(reply.rows()[0][0].as_deref(), Some("2"));
        }
        busy.reply(Command::Query).await.expect("a reply");
    }
);

on_both!(
    the_login_that_proves_a_password_is_the_clients_connection,
    |config| {
        config.pool.mode = PoolMode::Session;
        config.auth.mode = AuthMode::Passthrough;
        config.auth.users.clear();
    },
    |t| async move {
        for opens in 1..=3 {
            let mut client = t.client().await;
            assert_eq!(client.one("SELECT 1").await, "1");
            assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), f64::from(opens));
            client.send(Command::Quit, b"").await;
            t.until("myriad_backend_connections", None, 0.0).await;
        }
    }
);

on_both!(a_connection_that_the_server_closed_is_replaced_before_its_first_command, session_mode, |t| async move {
    let mut client = t.client().await;
    t.kill_backends().await;
    assert_eq!(client.one("SELECT 1").await, "1");
    // From then on it is the session, and ends with it.
    t.kill_backends().await;
    assert!(client.frame().await.is_err(), "as silent an end as on a connection of its own");
});
