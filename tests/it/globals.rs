//! Global variables: what is changed while connections are open.
//!
//! The servers may be shared: each test has a variable of its own that no test of another kind looks at, and they run one
//! after the other (`Setup::master`).

use std::time::{Duration, Instant};

use myriad::config::Config;
use myriad::protocol::command::Command;

use crate::support::{Login, Setup, Wire, on_both};

/// Sees changes soon, with room for three.
fn watchful(config: &mut Config) {
    config.backend.globals_interval = Duration::from_millis(20);
    config.pool.max_connections = 3;
}

fn roomy(config: &mut Config) {
    config.pool.max_connections = 3;
}

/// What a session that begins now sees.
async fn seen_by_a_new_session(t: &Setup, expression: &str) -> String {
    t.client().await.one(&format!("SELECT {expression}")).await
}

async fn set_global(admin: &mut Wire, name: &str, value: &str) {
    admin.query(&format!("SET GLOBAL {name} = {value}")).await.expect_ok();
}

/// The server's own value, whatever a test that failed may have left.
async fn initial(direct: &mut Wire, name: &str) -> String {
    set_global(direct, name, "DEFAULT").await;
    direct.one(&format!("SELECT @@GLOBAL.{name}")).await
}

/// Waits until new sessions see this value.
async fn until_new_sessions_see(t: &Setup, name: &str, value: &str) {
    let limit = Instant::now() + Duration::from_secs(10);
    while seen_by_a_new_session(t, &format!("@@{name}")).await != value {
        assert!(Instant::now() < limit, "new sessions do not see {name}={value}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for so many looks that began after now.
async fn looks(t: &Setup, more: f64) {
    let wanted = t.metric("myriad_global_looks_total", None) + more + 1.0;
    let limit = Instant::now() + Duration::from_secs(10);
    while t.metric("myriad_global_looks_total", None) < wanted {
        assert!(Instant::now() < limit, "nobody looks");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn stale(t: &Setup) -> f64 {
    t.metric("myriad_backend_closes_total", Some("stale"))
}

on_both!(
    /// Through the proxy, without anybody looking: seen as soon as it is answered.
    a_client_sets_a_global_variable,
    roomy,
    |t| async move {
        let mut direct = t.master().await;
        let name = "default_week_format";
        let before = initial(&mut direct, name).await;
        let mut admin = t.client_as(&Login::admin()).await;
        let (mut free, mut pinned) = (t.client().await, t.client().await);
        pinned.query("BEGIN").await.expect_ok();
        let look = format!("SELECT @@{name}");
        assert_eq!(free.one(&look).await, before);
        for value in ["3", "5"] {
            set_global(&mut admin, name, value).await;
            for _ in 0..3 {
                assert_eq!(seen_by_a_new_session(&t, &format!("@@{name}")).await, value);
            }
            assert_eq!(pinned.one(&look).await, before, "its connection is its own");
            assert_eq!(free.one(&look).await, before, "it had begun before");
        }
        // What is refused, or only prepared, changes nothing.
        let opened = t.metric("myriad_backend_opens_total", Some("ok"));
        admin.query(&format!("SET GLOBAL {name} = 'much'")).await.expect_error(1232);
        admin.query("SET GLOBAL no_such_variable = 1").await.expect_error(1193);
        let prepared = admin.prepare(&format!("SET GLOBAL {name} = 6")).await;
        assert_eq!(seen_by_a_new_session(&t, &format!("@@{name}")).await, "5");
        assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), opened);
        pinned.query("COMMIT").await.expect_ok();
        assert_eq!(pinned.one(&look).await, before);
        // Executed, it does.
        let execute = [&prepared.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
        admin.command(Command::StmtExecute, &execute).await.expect_ok();
        assert_eq!(seen_by_a_new_session(&t, &format!("@@{name}")).await, "6");
        set_global(&mut direct, name, &before).await;
    }
);

on_both!(
    /// A text that is too long to be read before it is sent counts too.
    a_client_sets_a_global_variable_in_a_long_text,
    |t| async move {
        let mut direct = t.master().await;
        let before = initial(&mut direct, "min_examined_row_limit").await;
        let mut admin = t.client_as(&Login::admin()).await;
        assert_eq!(seen_by_a_new_session(&t, "@@min_examined_row_limit").await, before);
        admin.query(&format!("SET /* {} */ GLOBAL min_examined_row_limit = 9", "x".repeat(100_000))).await.expect_ok();
        assert_eq!(seen_by_a_new_session(&t, "@@min_examined_row_limit").await, "9");
        set_global(&mut direct, "min_examined_row_limit", &before).await;
    }
);

on_both!(somebody_else_sets_a_global_variable, watchful, |t| async move {
    let mut direct = t.master().await;
    let name = "max_sort_length";
    let before = initial(&mut direct, name).await;
    let mut own = t.client().await;
    own.query(&format!("SET SESSION {name} = 777")).await.expect_ok();
    // A client that came during a look may have had one opened for itself.
    t.until("myriad_backend_connections", Some("opening"), 0.0).await;
    let opened = t.metric("myriad_backend_opens_total", Some("ok"));
    looks(&t, 3.0).await;
    assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), opened, "none is opened for a look");
    for value in ["1999", "2999"] {
        set_global(&mut direct, name, value).await;
        until_new_sessions_see(&t, name, value).await;
        assert_eq!(own.one(&format!("SELECT @@{name}")).await, "777", "what a session has set, it keeps");
    }
    set_global(&mut direct, name, &before).await;
    until_new_sessions_see(&t, name, &before).await;
});

on_both!(
    /// Whoever was on the connection before notices nothing of a look, and a look sees the same whoever that was.
    a_look_leaves_no_trace,
    |config| {
        watchful(config);
        config.pool.max_connections = 1;
    },
    |t| async move {
        let _quiet = t.master().await;
        let mut client = t.client().await;
        client.query("CREATE TABLE mine (id INT PRIMARY KEY AUTO_INCREMENT, n INT)").await.expect_ok();
        client.query("SET SESSION sql_select_limit=1, max_join_size=1000").await.expect_ok();
        client.query("SET NAMES latin1").await.expect_ok();
        for round in 1..4 {
            client.query("INSERT INTO mine (n) VALUES (1), (2)").await.expect_ok();
            looks(&t, 1.0).await;
            let id = client.one("SELECT LAST_INSERT_ID()").await;
            looks(&t, 1.0).await;
            assert_eq!(client.one("SELECT LAST_INSERT_ID()").await, id);
            client.query("SELECT CAST('x' AS SIGNED)").await.expect_ok();
            looks(&t, 1.0).await;
            assert_eq!(client.query("SHOW WARNINGS").await.rows().len(), 1, "round {round}");
            looks(&t, 1.0).await;
            let held = "SELECT CONCAT_WS(' ', @@sql_select_limit, @@max_join_size, @@character_set_results, DATABASE())";
            assert_eq!(client.one(held).await, format!("1 1000 latin1 {}", t.schema));
            client.query("SELECT 1 UNION SELECT 2").await.expect_ok();
        }
        assert_eq!(stale(&t), 0.0, "nothing has changed");
        assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), 1.0);
    }
);

on_both!(
    a_connection_that_is_only_looked_at_is_idle,
    |config| {
        watchful(config);
        config.pool.max_connections = 1;
        config.pool.idle_timeout = Duration::from_millis(400);
    },
    |t| async move {
        let _quiet = t.master().await;
        let mut client = t.client().await;
        client.query("SELECT 1").await.expect_ok();
        looks(&t, 2.0).await;
        t.until("myriad_backend_closes_total", Some("idle_timeout"), 1.0).await;
    }
);

on_both!(
    /// Nobody waits behind a look, and a look waits behind nobody.
    a_busy_pool_is_not_looked_at,
    |config| {
        watchful(config);
        config.pool.max_connections = 1;
    },
    |t| async move {
        let _quiet = t.master().await;
        let mut client = t.client().await;
        client.query("BEGIN").await.expect_ok();
        let before = t.metric("myriad_global_looks_total", None);
        // Longer than several looks would take to come.
        client.query("SELECT SLEEP(0.3)").await.expect_ok();
        assert!(t.metric("myriad_global_looks_total", None) <= before + 1.0);
        assert_eq!(t.metric("myriad_pool_waiting", None), 0.0);
        client.query("COMMIT").await.expect_ok();
        looks(&t, 1.0).await;
    }
);

// MySQL's status says "autocommit" until a first statement has run.
on_both!(
    apart where_autocommit_is_off_by_default_a_first_error_keeps_its_transaction,
    |config| config.pool.max_connections = 2,
    |t| async move {
        let mut direct = t.master().await;
        let mut first = t.client().await;
        first.query("CREATE TABLE t (n INT PRIMARY KEY)").await.expect_ok();
        let mut admin = t.client_as(&Login::admin()).await;
        set_global(&mut admin, "autocommit", "0").await;
        let (mut client, mut other) = (t.client().await, t.client().await);
        set_global(&mut direct, "autocommit", "1").await;
        client.query("INSERT INTO t VALUES (1), (2), (2)").await.expect_error(1062);
        t.until("myriad_pinned_clients", Some("transaction"), 1.0).await;
        client.query("INSERT INTO t VALUES (3)").await.expect_ok();
        client.query("ROLLBACK").await.expect_ok();
        t.until("myriad_pinned_clients", None, 0.0).await;
        assert_eq!(other.one("SELECT COUNT(*) FROM t").await, "0");
        other.query("COMMIT").await.expect_ok();
    }
);
