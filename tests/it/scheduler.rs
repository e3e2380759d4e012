//! The scheduler: how many statements run at once, who goes first, and what one user or schema may have.

use std::sync::Arc;
use std::time::Duration;

use myriad::config::{Config, MaxRunning, SchemaLimits};
use myriad::protocol::command::Command;
use tokio::task::JoinSet;

use crate::support::{Login, Setup, Wire, on_both};

/// A limit of running statements, on more connections than that.
fn at(config: &mut Config, max_running: usize, max_connections: usize) {
    config.scheduler.max_running = MaxRunning::At(max_running);
    config.scheduler.oversubscribe = 0;
    config.pool.max_connections = max_connections;
}

/// Somebody beside the proxy who holds a row that statements wait for.
struct Latch {
    admin: Wire,
    table: String,
}

impl Latch {
    async fn shut(t: &Setup) -> Self {
        let (mut admin, table) = (t.admin().await, format!("{}.latch", t.schema));
        for text in [
            format!("CREATE TABLE {table} (id INT PRIMARY KEY, n INT) ENGINE=InnoDB"),
            format!("INSERT INTO {table} VALUES (1, 0)"),
            "BEGIN".to_owned(),
            format!("UPDATE {table} SET n = 1"),
        ] {
            admin.query(&text).await.expect_ok();
        }
        Self { admin, table }
    }

    /// Has this client wait until the latch opens.
    async fn wait(&self, client: &mut Wire) {
        client.send(Command::Query, format!("UPDATE {} SET n = n + 1", self.table).as_bytes()).await;
    }

    async fn open(&mut self) {
        self.admin.query("COMMIT").await.expect_ok();
    }
}

/// Another user.
fn other() -> Login {
    Login { user: "other", password: "other-secret", schema: None, ..Login::app() }
}

async fn without_schema(t: &Setup) -> Wire {
    t.client_as(&Login { schema: None, ..t.app() }).await
}

on_both!(only_so_many_statements_run, |config| at(config, 2, 8), |t| async move {
    let mut latch = Latch::shut(&t).await;
    let mut clients = Vec::new();
    for _ in 0..6 {
        clients.push(without_schema(&t).await);
    }
    for client in &mut clients {
        latch.wait(client).await;
    }
    t.until("myriad_pool_running", None, 2.0).await;
    t.until("myriad_pool_waiting", None, 4.0).await;
    assert_eq!(t.metric("myriad_backend_connections", Some("leased")), 2.0, "the others have no connection");
    latch.open().await;
    for mut client in clients {
        client.reply(Command::Query).await.expect("a reply").expect_ok();
    }
    t.until("myriad_pool_running", None, 0.0).await;
    assert_eq!(t.metric("myriad_pool_waiting", None), 0.0);
});

on_both!(
    whoever_waits_for_a_lock_does_not_stop_the_rest,
    |config| {
        at(config, 2, 10);
        config.scheduler.oversubscribe = 6;
        config.scheduler.stall_limit = Duration::from_millis(50);
    },
    |t| async move {
        let mut holder = t.client().await;
        holder.query("CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB").await.expect_ok();
        holder.query("INSERT INTO t VALUES (1, 0)").await.expect_ok();
        holder.query("BEGIN").await.expect_ok();
        holder.query("UPDATE t SET n = n + 1 WHERE id = 1").await.expect_ok();
        let mut waiters = Vec::new();
        for _ in 0..6 {
            let mut client = t.client().await;
            client.send(Command::Query, b"UPDATE t SET n = n + 1 WHERE id = 1").await;
            waiters.push(client);
        }
        let mut unrelated = t.client().await;
        assert_eq!(unrelated.one("SELECT 1").await, "1");
        // Six wait, and two at most may count.
        assert!(t.metric("myriad_pool_stalled", None) >= 4.0);
        for _ in 0..20 {
            assert_eq!(unrelated.one("SELECT 1").await, "1");
        }
        // The one who holds the lock must get its turn, too.
        holder.query("COMMIT").await.expect_ok();
        for mut client in waiters {
            client.reply(Command::Query).await.expect("a reply").expect_ok();
        }
        assert_eq!(unrelated.one("SELECT n FROM t").await, "7");
        t.until("myriad_pool_stalled", None, 0.0).await;
    }
);

on_both!(
    an_open_transaction_goes_before_new_work,
    |config| {
        at(config, 1, 4);
        config.scheduler.kickup = Duration::from_secs(3600);
    },
    |t| async move {
        let mut open = t.client().await;
        open.query("CREATE TABLE served (id INT AUTO_INCREMENT PRIMARY KEY, who INT) ENGINE=InnoDB").await.expect_ok();
        open.query("BEGIN").await.expect_ok();
        let (mut latch, mut slow) = (Latch::shut(&t).await, without_schema(&t).await);
        let mut late = [t.client().await, t.client().await, t.client().await];
        latch.wait(&mut slow).await;
        t.until("myriad_pool_running", None, 1.0).await;
        for (who, client) in late.iter_mut().enumerate() {
            client.send(Command::Query, format!("INSERT INTO served (who) VALUES ({who})").as_bytes()).await;
            t.until("myriad_pool_waiting", None, (who + 1) as f64).await;
        }
        open.send(Command::Query, b"INSERT INTO served (who) VALUES (100)").await;
        t.until("myriad_pool_returning", None, 1.0).await;
        latch.open().await;
        open.reply(Command::Query).await.expect("a reply").expect_ok();
        open.query("COMMIT").await.expect_ok();
        for mut client in late {
            client.reply(Command::Query).await.expect("a reply").expect_ok();
        }
        let rows = open.query("SELECT who FROM served ORDER BY id").await.rows();
        let order = rows.into_iter().flatten().flatten().collect::<Vec<_>>();
        assert_eq!(order, ["100", "0", "1", "2"]);
    }
);

on_both!(a_client_that_goes_while_it_waits_for_its_turn_frees_everything, |config| at(config, 1, 4), |t| async move {
    let mut open = t.client().await;
    open.query("CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB").await.expect_ok();
    open.query("BEGIN").await.expect_ok();
    open.query("INSERT INTO t VALUES (1)").await.expect_ok();
    let (mut latch, mut slow) = (Latch::shut(&t).await, without_schema(&t).await);
    latch.wait(&mut slow).await;
    t.until("myriad_pool_running", None, 1.0).await;
    open.send(Command::Query, b"COMMIT").await;
    t.until("myriad_pool_returning", None, 1.0).await;
    drop(open);
    t.until("myriad_pool_returning", None, 0.0).await;
    t.until("myriad_pinned_clients", Some("transaction"), 0.0).await;
    latch.open().await;
    slow.reply(Command::Query).await.expect("a reply").expect_ok();
    assert_eq!(t.client().await.one("SELECT COUNT(*) FROM t").await, "0", "the transaction is rolled back");
    t.until("myriad_pool_running", None, 0.0).await;
});

on_both!(
    a_turn_that_does_not_come_in_time_leaves_the_transaction_open,
    |config| {
        at(config, 1, 4);
        config.scheduler.queue_timeout = Duration::from_millis(300);
    },
    |t| async move {
        let mut open = t.client().await;
        open.query("CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB").await.expect_ok();
        open.query("BEGIN").await.expect_ok();
        open.query("INSERT INTO t VALUES (1)").await.expect_ok();
        let (mut latch, mut slow) = (Latch::shut(&t).await, without_schema(&t).await);
        latch.wait(&mut slow).await;
        t.until("myriad_pool_running", None, 1.0).await;
        let reply = open.query("INSERT INTO t VALUES (2)").await;
        assert_eq!(reply.error().expect("an error").0, 1040);
        latch.open().await;
        slow.reply(Command::Query).await.expect("a reply").expect_ok();
        open.query("COMMIT").await.expect_ok();
        assert_eq!(open.one("SELECT COUNT(*) FROM t").await, "1");
    }
);

on_both!(
    all_connections_in_transactions_and_a_crowd_waiting_comes_to_an_end,
    |config| at(config, 2, 6),
    |t| async move {
        let mut open = Vec::new();
        for _ in 0..6 {
            let mut client = t.client().await;
            client
                .query("CREATE TABLE IF NOT EXISTS t (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB")
                .await
                .expect_ok();
            client.query("BEGIN").await.expect_ok();
            client.query("INSERT INTO t VALUES ()").await.expect_ok();
            open.push(client);
        }
        let mut crowd = JoinSet::new();
        for _ in 0..200 {
            let (t, insert) = (Arc::clone(&t), format!("INSERT INTO {}.t VALUES ()", t.schema));
            crowd.spawn(async move {
                without_schema(&t).await.query(&insert).await.expect_ok();
            });
        }
        t.until("myriad_pool_waiting", None, 200.0).await;
        for client in &mut open {
            client.query("INSERT INTO t VALUES ()").await.expect_ok();
            client.query("COMMIT").await.expect_ok();
        }
        while let Some(done) = crowd.join_next().await {
            done.expect("a client that was served");
        }
        assert_eq!(open[0].one("SELECT COUNT(*) FROM t").await, "212");
        assert_eq!(t.metric("myriad_pool_waiting", None), 0.0);
    }
);

on_both!(
    a_user_with_one_client_is_not_behind_a_crowd_of_another,
    |config| config.pool.max_connections = 1,
    |t| async move {
        let mut admin = t.admin().await;
        let table = format!("{}.served", t.schema);
        admin.query(&format!("CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, who INT)")).await.expect_ok();
        let (mut latch, mut slow) = (Latch::shut(&t).await, without_schema(&t).await);
        latch.wait(&mut slow).await;
        t.until("myriad_clients", Some("running"), 1.0).await;
        let mut waiters = Vec::new();
        for who in 0..20 {
            // All but the last are one user's.
            let small = who == 19;
            let mut client = if small { t.client_as(&other()).await } else { without_schema(&t).await };
            client.send(Command::Query, format!("INSERT INTO {table} (who) VALUES ({who})").as_bytes()).await;
            t.until("myriad_pool_waiting", None, f64::from(who + 1)).await;
            waiters.push(client);
        }
        latch.open().await;
        for client in &mut waiters {
            client.reply(Command::Query).await.expect("a reply").expect_ok();
        }
        let before = format!("SELECT COUNT(*) FROM {table} WHERE id < (SELECT id FROM {table} WHERE who = 19)");
        let place = admin.one(&before).await.parse::<u32>().expect("a number");
        assert!(place <= 2, "{place} were before it");
    }
);

on_both!(
    a_user_has_limits_of_its_own,
    |config| {
        config.pool.max_connections = 4;
        let app = config.auth.users.iter_mut().find(|user| user.name == "app").expect("listed");
        (app.max_connections, app.max_waiting) = (1, 2);
    },
    |t| async move {
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(without_schema(&t).await);
        }
        let mut latch = Latch::shut(&t).await;
        for (n, client) in clients.iter_mut().take(3).enumerate() {
            latch.wait(client).await;
            t.until("myriad_pool_waiting", None, n as f64).await;
        }
        let reply = clients[3].query("SELECT 1").await;
        let (code, message) = reply.error().expect("an error");
        assert_eq!(code, 1040);
        assert!(message.contains("2 commands wait") && message.contains("the user's max_waiting"), "{message}");
        assert_eq!(t.metric("myriad_refusals_total", Some("user_max_waiting")), 1.0);
        assert_eq!(t.client_as(&other()).await.one("SELECT 1").await, "1", "others are not held up");
        assert!(t.metric("myriad_backend_connections", Some("leased")) <= 1.0);
        latch.open().await;
        for client in clients.iter_mut().take(3) {
            client.reply(Command::Query).await.expect("a reply").expect_ok();
        }
        t.until("myriad_pool_user_connections", Some("app"), 1.0).await;
    }
);

on_both!(
    a_schema_has_limits_of_its_own,
    |config| {
        config.pool.max_connections = 4;
        let limits = SchemaLimits { name: "test".into(), max_clients: 4, max_connections: 1, max_waiting: 2 };
        config.limits.schemas = vec![limits];
    },
    |t| async move {
        let in_test = Login { schema: Some("test".into()), ..t.app() };
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(t.client_as(&in_test).await);
        }
        let refused = Wire::connect(t.address, &in_test).await.err().expect("one too many");
        assert!(format!("{refused:?}").contains("limits.schemas.max_clients"), "{refused:?}");
        assert_eq!(t.metric("myriad_refusals_total", Some("schema_max_clients")), 1.0);
        let mut latch = Latch::shut(&t).await;
        for (n, client) in clients.iter_mut().take(3).enumerate() {
            latch.wait(client).await;
            t.until("myriad_pool_waiting", None, n as f64).await;
        }
        let reply = clients[3].query("SELECT 1").await;
        let (code, message) = reply.error().expect("an error");
        assert_eq!(code, 1040);
        assert!(message.contains("the schema's max_waiting"), "{message}");
        assert_eq!(without_schema(&t).await.one("SELECT 1").await, "1", "others are not held up");
        latch.open().await;
        for client in clients.iter_mut().take(3) {
            client.reply(Command::Query).await.expect("a reply").expect_ok();
        }
        assert_eq!(clients[3].one("SELECT 1").await, "1");
    }
);
