//! Backends that die, and a server that goes and comes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use myriad::protocol::command::Command;
use myriad::protocol::handshake::LoginError;
use tokio::task::JoinSet;

use crate::support::{Gate, Login, Setup, Wire, on_both, one_backend, own_backends};

on_both!(
    idle_backends_that_the_server_closed_are_replaced_unnoticed,
    |config| {
        config.pool.max_connections = 4;
        own_backends(config);
    },
    |t| async move {
        let mut clients = Vec::new();
        for number in 0..12 {
            let mut client = t.client().await;
            client.query(&format!("SET time_zone = '+0{}:00'", number % 10)).await.expect_ok();
            clients.push(client);
        }
        for _ in 0..3 {
            t.kill_backends().await;
            let mut busy = JoinSet::new();
            for (number, mut client) in clients.drain(..).enumerate() {
                busy.spawn(async move {
                    for _ in 0..5 {
                        assert_eq!(client.one("SELECT @@time_zone").await, format!("+0{}:00", number % 10));
                    }
                    (number, client)
                });
            }
            let mut all = busy.join_all().await;
            all.sort_by_key(|(number, _)| *number);
            clients = all.into_iter().map(|(_, client)| client).collect();
        }
        assert!(t.metric("myriad_backend_closes_total", Some("lost")) >= 3.0);
    }
);

on_both!(
    a_backend_lost_in_a_statement_is_an_error_and_no_more,
    |config| {
        one_backend(config);
        own_backends(config);
    },
    |t| async move {
        let mut client = t.client().await;
        client.query("SET time_zone = '+5:00'").await.expect_ok();
        let statement = format!("SELECT SLEEP(100), '{}'", t.schema);
        client.send(Command::Query, statement.as_bytes()).await;
        t.until_runs(&statement, true).await;
        t.kill_backends().await;
        let reply = client.reply(Command::Query).await.expect("a reply");
        // The server's last words, if it had any, or ours.
        assert!(matches!(reply.error(), Some((1317 | 1927 | 1158, _))), "{reply:?}");
        assert_eq!(client.one("SELECT @@time_zone").await, "+05:00");
    }
);

on_both!(
    a_write_is_never_repeated,
    |config| {
        one_backend(config);
        own_backends(config);
    },
    |t| async move {
        let mut client = t.client().await;
        client.query("CREATE TABLE t (n INT) ENGINE = MyISAM").await.expect_ok();
        // The row is there before the statement ends.
        let statement = format!("INSERT INTO t SELECT 1 FROM (SELECT SLEEP(0) UNION SELECT SLEEP(100)) {}", t.schema);
        client.send(Command::Query, statement.as_bytes()).await;
        t.until_runs(&statement, true).await;
        t.kill_backends().await;
        let reply = tokio::time::timeout(Duration::from_secs(5), client.reply(Command::Query)).await;
        assert!(reply.expect("not run once more").expect("a reply").error().is_some());
        let rows: u32 = client.one("SELECT COUNT(*) FROM t").await.parse().expect("a number");
        assert!(rows <= 2, "{rows}");
        t.until_runs("INSERT INTO t SELECT", false).await;
    }
);

on_both!(
    a_session_that_lost_what_only_its_backend_had_ends,
    |config| {
        one_backend(config);
        own_backends(config);
    },
    |t| async move {
        for sql in ["BEGIN", "CREATE TEMPORARY TABLE own (n INT)", "SET @a = 1", "SELECT GET_LOCK('{s}', 1)"] {
            let mut client = t.client().await;
            client.query(&sql.replace("{s}", &t.schema)).await.expect_ok();
            t.kill_backends().await;
            // Perhaps told before it asks; certainly when it does.
            client.send(Command::Query, b"SELECT 1").await;
            let heard = async {
                while let Ok((_, payload)) = client.frame().await {
                    assert_eq!(payload[0], 0xff, "{sql}: {payload:?}");
                }
            };
            tokio::time::timeout(Duration::from_secs(5), heard).await.expect("the connection ends");
            let mut next = t.client().await;
            assert_eq!(next.one("SELECT @a IS NULL").await, "1");
        }
    }
);

/// How many connections the pool may have.
const BACKENDS: usize = 2;

/// How long the server is away, and how many clients ask for it meanwhile.
const AWAY: Duration = Duration::from_millis(1500);
const ASKING: usize = 20;

on_both!(a_server_that_is_down_and_up_again, |t| async move {
    let gate = Gate::new(t.server);
    let t = behind(&t, &gate).await;
    let mut clients = Vec::new();
    for _ in 0..ASKING {
        let mut client = t.client().await;
        client.query("SET time_zone = '+1:00'").await.expect_ok();
        clients.push(client);
    }
    gate.shut().await;
    let dialed = |t: &Setup| t.metric("myriad_backend_opens_total", Some("refused"));
    let before = t.metric("myriad_backend_opens_total", None);
    let begin = Instant::now();
    let (mut errors, mut lost) = (0_u32, 0);
    while begin.elapsed() < AWAY {
        for client in &mut clients {
            let asked = Instant::now();
            let reply = client.query("SELECT 1").await;
            let (code, message) = reply.error().expect("the server is down");
            if code == 1158 && lost < BACKENDS {
                // A connection whose end had not arrived when it was lent.
                lost += 1;
                continue;
            }
            assert_eq!(code, 1160, "{message}");
            assert!(message.contains("refused"), "{message}");
            assert!(asked.elapsed() < Duration::from_secs(1), "an error as fast as this: {:?}", asked.elapsed());
            errors += 1;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let Err(LoginError::Server { code, .. }) = Wire::connect(t.address, &t.app()).await else { panic!("got in") };
    assert_eq!(code, 1160);
    let attempts = dialed(&t);
    println!("{:?}: {errors} errors, {attempts} attempts to connect", t.kind);
    assert!(errors > 100, "{errors}");
    // With pauses that double, not one for each who asks.
    assert!((1.0..=25.0).contains(&attempts), "{attempts} attempts");
    assert_eq!(t.metric("myriad_backend_opens_total", None) - before, attempts);
    gate.open();
    recovers(&mut clients).await;
    for client in &mut clients {
        assert_eq!(client.one("SELECT @@time_zone").await, "+01:00");
    }
    assert!(t.metric("myriad_backend_opens_total", Some("ok")) <= 2.0 * 2.0, "no stampede");
    drop(clients);
    t.finish().await;
});

on_both!(a_server_that_is_cut_off_in_the_middle_of_work, |t| async move {
    let gate = Gate::new(t.server);
    let t = behind(&t, &gate).await;
    let (mut runner, mut owner, mut waiter) = (t.client().await, t.client().await, t.client().await);
    owner.query("BEGIN").await.expect_ok();
    t.until("myriad_pinned_clients", Some("transaction"), 1.0).await;
    runner.send(Command::Query, format!("SELECT SLEEP(3), '{}'", t.schema).as_bytes()).await;
    t.until("myriad_clients", Some("running"), 1.0).await;
    waiter.send(Command::Query, b"SELECT 1").await;
    t.until("myriad_pool_waiting", None, 1.0).await;
    gate.shut().await;
    runner.reply(Command::Query).await.expect("a reply").expect_error(1158);
    waiter.reply(Command::Query).await.expect("a reply").expect_error(1160);
    assert!(owner.frame().await.is_err(), "its transaction is gone, and so is its connection");
    gate.open();
    recovers(&mut [runner, waiter]).await;
    t.finish().await;
});

on_both!(a_server_that_is_not_there_yet, |t| async move {
    let gate = Gate::new(t.server);
    gate.shut().await;
    let t = behind(&t, &gate).await;
    let Err(LoginError::Server { code, message, .. }) = Wire::connect(t.address, &t.app()).await else {
        panic!("got in")
    };
    assert_eq!(code, 1160, "{message}");
    gate.open();
    let limit = Instant::now() + Duration::from_secs(10);
    while let Err(error) = Wire::connect(t.address, &t.app()).await {
        assert!(Instant::now() < limit, "{error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(t.client().await.one("SELECT 1").await, "1");
    t.finish().await;
});

/// A proxy whose server is behind this gate.
async fn behind(t: &Setup, gate: &Gate) -> Arc<Setup> {
    let endpoint = gate.endpoint();
    let behind = Setup::new(t.kind, |config| {
        config.backend.servers = vec![endpoint];
        config.scheduler.queue_timeout = Duration::from_secs(10);
    });
    behind.await.expect("a server")
}

/// Soon everybody is served again, without anybody's help.
async fn recovers(clients: &mut [Wire]) {
    let limit = Instant::now() + Duration::from_secs(10);
    for client in clients {
        while let Some((code, message)) = client.query("SELECT 1").await.error() {
            assert_eq!(code, 1160, "{message}");
            assert!(Instant::now() < limit, "{message}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

on_both!(
    an_account_that_is_full_makes_clients_wait,
    |config| {
        config.pool.max_connections = 2;
        own_backends(config);
    },
    |t| async move {
        // Somebody else uses one of the account's two connections.
        let user: &'static str = t.schema.clone().leak();
        let other = t.direct(&Login { user, ..t.app() }).await;
        let mut clients = JoinSet::new();
        for _ in 0..8 {
            let t = Arc::clone(&t);
            clients.spawn(async move {
                let mut client = t.client().await;
                for _ in 0..5 {
                    client.query("SELECT SLEEP(0.005)").await.expect_ok();
                }
            });
        }
        clients.join_all().await;
        assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), 1.0);
        assert!(t.metric("myriad_backend_opens_total", Some("full")) > 0.0);
        drop(other);
    }
);
