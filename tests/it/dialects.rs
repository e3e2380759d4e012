//! Clients that speak different dialects take turns on the same few backends: each gets what a connection of its own
//! would give it.

use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::Command;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::{Login, Packets, Setup, Wire, on_both, one_backend};

/// Turns in all.
const TURNS: usize = 300;

/// Ways to log in, and with what each alternates.
fn logins(t: &Setup) -> Vec<Login> {
    let without = |flags| Login { capabilities: t.app().capabilities - flags, ..t.app() };
    vec![
        t.app(),
        without(CapabilityFlags::CLIENT_SESSION_TRACK),
        without(CapabilityFlags::CLIENT_DEPRECATE_EOF),
        t.app().old(),
        t.app().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
        t.app().old().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
        t.app().with(CapabilityFlags::CLIENT_FOUND_ROWS),
        t.app().with(CapabilityFlags::CLIENT_FOUND_ROWS | CapabilityFlags::CLIENT_MULTI_STATEMENTS),
        t.app().with(CapabilityFlags::CLIENT_IGNORE_SPACE),
        without(CapabilityFlags::CLIENT_LOCAL_FILES),
        t.app().with(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES),
    ]
}

/// What each of them may ask, in any order.
const STATEMENTS: [&str; 12] = [
    "SELECT 1; SELECT 2",
    "UPDATE t SET v = 1",
    "SELECT * FROM t",
    "SELECT * FROM t WHERE v > 5",
    "SELECT COUNT (*) FROM t",
    "SET time_zone = '+1:00'",
    "SELECT @@time_zone",
    "SET time_zone = DEFAULT",
    "SELECT nothing",
    "SELECT CAST('x' AS SIGNED); SHOW WARNINGS",
    "DO 1",
    "LOAD DATA LOCAL INFILE 'empty' INTO TABLE t",
];

async fn table(t: &Setup) {
    let mut client = t.client().await;
    client.query("CREATE TABLE t (v INT)").await.expect_ok();
    client.query("INSERT INTO t VALUES (1), (1)").await.expect_ok();
}

/// In random order, each beside a private connection that logged in the same way.
async fn take_turns(t: &Setup, turns: usize) {
    table(t).await;
    let seed: u64 = rand::random();
    println!("{:?}: seed {seed}", t.kind);
    let mut random = StdRng::seed_from_u64(seed);
    let mut pairs = Vec::new();
    for login in logins(t) {
        pairs.push((t.client_as(&login).await, t.direct(&login).await));
    }
    for _ in 0..turns {
        let who = random.random_range(0..pairs.len());
        let (proxied, direct) = &mut pairs[who];
        let sql = STATEMENTS[random.random_range(0..STATEMENTS.len())];
        let wanted = query(direct, sql).await;
        let got = query(proxied, sql).await;
        assert_eq!(got.raw, wanted.raw, "{sql} of client {who}, seed {seed}");
    }
}

async fn query(wire: &mut Wire, sql: &str) -> Packets {
    wire.send(Command::Query, sql.as_bytes()).await;
    wire.reply_with(Command::Query, b"").await.expect("a reply")
}

on_both!(on_two_backends, |t| async move { take_turns(&t, TURNS).await });

on_both!(on_one_backend, one_backend, |t| async move { take_turns(&t, TURNS / 3).await });

on_both!(several_statements_only_for_whom_they_are_allowed, one_backend, |t| async move {
    let mut with = t.client_as(&t.app().with(CapabilityFlags::CLIENT_MULTI_STATEMENTS)).await;
    let mut without = t.client().await;
    let two = "SELECT 1; SELECT 2";
    let results = |packets: &Packets| packets.rows().len();
    for _ in 0..5 {
        assert_eq!(results(&with.query(two).await), 2);
        without.query(two).await.expect_error(1064);
    }
    // The option goes with its client, too.
    let set = |on: bool| [u8::from(!on), 0];
    without.command(Command::SetOption, &set(true)).await.expect_ok();
    with.command(Command::SetOption, &set(false)).await.expect_ok();
    for _ in 0..5 {
        with.query(two).await.expect_error(1064);
        assert_eq!(results(&without.query(two).await), 2);
    }
    // And outlives a reset.
    with.command(Command::ResetConnection, b"").await.expect_ok();
    without.command(Command::ResetConnection, b"").await.expect_ok();
    for _ in 0..5 {
        with.query(two).await.expect_error(1064);
        assert_eq!(results(&without.query(two).await), 2);
    }
    // One and the same backend all the time.
    assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), 1.0);
});

on_both!(rows_found_or_rows_changed, one_backend, |t| async move {
    table(&t).await;
    let mut found = t.client_as(&t.app().with(CapabilityFlags::CLIENT_FOUND_ROWS)).await;
    let mut changed = t.client().await;
    for _ in 0..3 {
        assert_eq!(found.query("UPDATE t SET v = 1").await.ok().affected_rows, 2);
        assert_eq!(changed.query("UPDATE t SET v = 1").await.ok().affected_rows, 0);
        assert_eq!(found.one("SELECT ROW_COUNT()").await, "2");
        assert_eq!(changed.one("SELECT ROW_COUNT()").await, "0");
    }
});
