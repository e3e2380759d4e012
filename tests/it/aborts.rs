//! Clients that go away when it is least convenient: nothing is left of them.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use myriad::protocol::command::Command;
use myriad::protocol::frame::write_packet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::support::{Login, Setup, on_both, one_backend};

/// Connections of the test below, and how many of them at once.
const CONNECTS: usize = 2400;
const AT_ONCE: usize = 30;
const BACKENDS: usize = 16;

/// When a client goes away. The last five leave the proxy something to clear up at the server, which takes it a
/// moment: they come five times less often.
const PHASES: [&str; 14] = [
    "before the greeting is read",
    "after the greeting",
    "in the middle of its login",
    "logged in",
    "in the middle of a command's header",
    "in the middle of a command",
    "right after its command",
    "in a transaction",
    "as it should",
    "in the middle of a command that is on its way to the server",
    "while the server works",
    "in the middle of a large result",
    "asked for its file",
    "in the middle of its file",
];

async fn visit(t: &Setup, phase: usize, abruptly: bool) {
    if phase < 3 {
        return stay_outside(t, phase, abruptly).await;
    }
    let mut client = t.client_as(&Login { schema: None, ..t.app() }).await;
    let select = |sql: &str| sql.replace("{s}", &t.schema).into_bytes();
    match PHASES[phase] {
        "in the middle of a command's header" => client.write(&[9, 0]).await,
        "in the middle of a command" => client.write(b"\x40\0\0\0\x03SELECT 'half a").await,
        "in the middle of a command that is on its way to the server" => {
            let mut command = BytesMut::new();
            let text = [&b"\x03SELECT LENGTH('"[..], &[b'x'; 200_000]].concat();
            write_packet(&mut command, 0, &text);
            client.write(&command[..150_000]).await;
        }
        "right after its command" => client.send(Command::Query, b"SELECT 1").await,
        "while the server works" => {
            client.send(Command::Query, b"SELECT SLEEP(10)").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        "in the middle of a large result" => {
            client.send(Command::Query, &select("SELECT a.pad FROM {s}.wide a, {s}.wide b, {s}.wide c")).await;
            for _ in 0..10 {
                client.frame().await.expect("a packet of the result");
            }
        }
        "asked for its file" | "in the middle of its file" => {
            let load = select("LOAD DATA LOCAL INFILE 'x' INTO TABLE {s}.loaded");
            client.send(Command::Query, &load).await;
            let (_, request) = client.frame().await.expect("a request");
            assert_eq!(request[0], 0xfb, "{request:?}");
            if PHASES[phase] == "in the middle of its file" {
                let mut file = BytesMut::new();
                write_packet(&mut file, 2, b"1\n2\n3\n");
                client.write(&file).await;
            }
        }
        "in a transaction" => {
            for sql in ["BEGIN", "INSERT INTO {s}.loaded VALUES (4)"] {
                client.command(Command::Query, &select(sql)).await.expect_ok();
            }
        }
        "as it should" => client.send(Command::Quit, b"").await,
        _ => {}
    }
}

/// Goes away before it is logged in; abruptly: with a reset instead of an end.
async fn stay_outside(t: &Setup, phase: usize, abruptly: bool) {
    let socket = TcpSocket::new_v4().expect("a socket");
    let mut stream = socket.connect(t.address).await.expect("somebody listens");
    if phase > 0 {
        let mut greeting = [0; 20];
        stream.read_exact(&mut greeting).await.expect("a greeting");
    }
    if phase > 1 {
        stream.write_all(b"\x60\0\0\x01\x0d\xa6\x03\0half a login").await.expect("somebody listens");
    }
    if abruptly {
        stream.set_zero_linger().expect("an option");
    }
}

on_both!(
    nothing_is_left_of_clients_that_went_away,
    |config| {
        config.pool.max_connections = BACKENDS;
    },
    |t| async move {
        let mut first = t.client().await;
        for sql in [
            "CREATE TABLE loaded (n INT)",
            "CREATE TABLE wide (pad VARCHAR(200))",
            "INSERT INTO wide VALUES (REPEAT('x', 200)), (REPEAT('y', 200)), (REPEAT('z', 200))",
            "INSERT INTO wide SELECT a.pad FROM wide a, wide b, wide c",
        ] {
            first.query(sql).await.expect_ok();
        }
        drop(first);
        let mut visits = JoinSet::new();
        for number in 0..AT_ONCE {
            let t = Arc::clone(&t);
            visits.spawn(async move {
                for n in 0..CONNECTS / AT_ONCE {
                    let number = number * (CONNECTS / AT_ONCE) + n;
                    let phases = if number.is_multiple_of(5) { PHASES.len() } else { PHASES.len() - 5 };
                    visit(&t, number % phases, (number / phases).is_multiple_of(2)).await;
                }
            });
        }
        visits.join_all().await;
        for (name, label) in [
            ("myriad_clients", None),
            ("myriad_backend_connections", Some("leased")),
            ("myriad_backend_connections", Some("opening")),
            ("myriad_pool_waiting", None),
            ("myriad_pinned_clients", None),
        ] {
            t.until(name, label, 0.0).await;
        }
        let counted = |name| t.metric(name, None);
        assert_eq!(counted("myriad_client_connections_total"), (CONNECTS + 1) as f64);
        assert_eq!(counted("myriad_client_goodbyes_total"), (CONNECTS + 1) as f64);
        // Nothing that they began came to be, and all of the pool's room is there.
        let mut clients = Vec::new();
        for number in 1..=BACKENDS {
            let mut client = t.client().await;
            assert_eq!(client.one("SELECT COUNT(*) FROM loaded").await, "0");
            client.query("BEGIN").await.expect_ok();
            t.until("myriad_pinned_clients", Some("transaction"), number as f64).await;
            clients.push(client);
        }
    }
);

on_both!(the_statement_of_a_client_that_is_gone_ends, |t| async move { vanish(&t).await });

on_both!(the_statement_of_a_client_that_is_gone_ends_though_it_has_the_only_backend, one_backend, |t| async move {
    vanish(&t).await;
});

/// Somebody goes away while his statement runs, and somebody else waits for his backend.
async fn vanish(t: &Setup) {
    let statement = format!("SELECT SLEEP(1000), '{}'", t.schema);
    for abruptly in [true, false] {
        let mut sleepers = Vec::new();
        for _ in 0..t.metric("myriad_pool_max_connections", None) as usize {
            let mut sleeper = t.client().await;
            sleeper.send(Command::Query, statement.as_bytes()).await;
            sleepers.push(sleeper);
            t.until("myriad_clients", Some("running"), sleepers.len() as f64).await;
        }
        t.until_runs(&statement, true).await;
        let mut other = t.client_as(&Login { schema: None, ..t.app() }).await;
        other.send(Command::Query, b"SELECT 1").await;
        t.until("myriad_pool_waiting", None, 1.0).await;
        if !abruptly {
            for sleeper in &mut sleepers {
                sleeper.send(Command::Quit, b"").await;
            }
        }
        drop(sleepers);
        other.reply(Command::Query).await.expect("a reply").expect_ok();
        t.until_runs(&statement, false).await;
    }
}

on_both!(the_transaction_of_a_client_that_is_gone_is_rolled_back, one_backend, |t| async move {
    let mut other = t.client().await;
    other.query("CREATE TABLE t (n INT)").await.expect_ok();
    let mut client = t.client().await;
    client.query("BEGIN").await.expect_ok();
    client.query("INSERT INTO t VALUES (1)").await.expect_ok();
    drop(client);
    assert_eq!(other.one("SELECT COUNT(*) FROM t").await, "0");
});

// MariaDB loses what is prepared when its connection is reset: it says that it commits, and does not, and the connection
// inserts nothing any more.
on_both!(what_a_client_has_prepared_in_xa_outlives_it, one_backend, |t| async move {
    let mut other = t.client().await;
    other.query("CREATE TABLE t (n INT)").await.expect_ok();
    for (n, end) in [Command::Quit, Command::ChangeUser].into_iter().enumerate() {
        let mut client = t.client().await;
        let id = format!("'{}.{n}'", t.schema);
        for sql in ["XA START {id}", "INSERT INTO t VALUES (1)", "XA END {id}", "XA PREPARE {id}"] {
            client.query(&sql.replace("{id}", &id)).await.expect_ok();
        }
        if end == Command::Quit {
            drop(client);
            t.until("myriad_clients", None, 1.0).await;
        } else {
            client.change_user(&t.app()).await.expect("the same user");
        }
        other.query(&format!("XA COMMIT {id}")).await.expect_ok();
        assert_eq!(other.one("SELECT COUNT(*) FROM t").await, (2 * n + 1).to_string(), "{end:?}");
        other.query("INSERT INTO t VALUES (2)").await.expect_ok();
    }
});

// A reset loses it, but the connection that was reset is nobody's.
on_both!(a_reset_with_something_prepared_in_xa_harms_nobody_else, one_backend, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    other.query("CREATE TABLE t (n INT)").await.expect_ok();
    let id = format!("'{}'", t.schema);
    for sql in ["XA START {id}", "INSERT INTO t VALUES (1)", "XA END {id}", "XA PREPARE {id}"] {
        client.query(&sql.replace("{id}", &id)).await.expect_ok();
    }
    client.command(Command::ResetConnection, b"").await.expect_ok();
    other.query("INSERT INTO t VALUES (2)").await.expect_ok();
    client.query("INSERT INTO t VALUES (3)").await.expect_ok();
    other.query(&format!("XA ROLLBACK {id}")).await.expect_ok();
});
