//! Everybody at once: logins, connections faster than may come, and clients that vanish and come again.

mod descriptors;

use std::sync::Arc;
use std::time::{Duration, Instant};

use myriad::config::{AuthMode, Config};
use myriad::protocol::command::Command;
use tokio::task::{JoinHandle, JoinSet};

use crate::support::{Login, Setup, Wire, on_both, one_backend};

fn passthrough(config: &mut Config) {
    config.auth.mode = AuthMode::Passthrough;
    config.auth.users.clear();
    config.pool.max_connections = 16;
    config.scheduler.queue_timeout = Duration::from_secs(30);
}

/// So many logins at once; how many were let in.
async fn log_in_together(t: &Arc<Setup>, login: &Login, clients: usize) -> usize {
    let mut all = JoinSet::new();
    for _ in 0..clients {
        let (t, login) = (Arc::clone(t), login.clone());
        all.spawn(async move {
            match Wire::connect(t.address, &login).await {
                Ok(mut client) => {
                    assert_eq!(client.one("SELECT 1").await, "1");
                    true
                }
                Err(_) => false,
            }
        });
    }
    all.join_all().await.into_iter().filter(|let_in| *let_in).count()
}

/// The same of the test's own account, in the background.
fn logging_in(t: &Arc<Setup>, clients: usize) -> JoinHandle<usize> {
    let t = Arc::clone(t);
    tokio::spawn(async move { log_in_together(&t, &t.app(), clients).await })
}

on_both!(many_logins_of_one_account_are_proven_once, passthrough, |t| async move {
    let let_in = log_in_together(&t, &t.app(), 200).await;
    assert_eq!(let_in, 200);
    let joined = t.metric("myriad_client_logins_joined_total", None);
    assert!(joined > 0.0);
    // One that proves, and those that serve.
    let opened = t.metric("myriad_backend_opens_total", None);
    assert!(opened <= 17.0, "{opened} connections were opened, {joined} logins joined");
    let refused = t.metric("myriad_refusals_total", None);
    assert_eq!(refused, 0.0);
});

on_both!(a_wrong_password_is_tried_by_each, passthrough, |t| async move {
    let wrong = Login { password: "wrong", ..t.app() };
    assert_eq!(log_in_together(&t, &wrong, 20).await, 0);
    assert_eq!(t.metric("myriad_backend_opens_total", Some("denied")), 20.0);
    assert_eq!(t.metric("myriad_client_logins_joined_total", None), 0.0);
    // Together with the right one.
    let (let_in, turned_away) = {
        let (right, login) = (Arc::clone(&t), t.app());
        let right = tokio::spawn(async move { log_in_together(&right, &login, 20).await });
        (log_in_together(&t, &wrong, 20), right)
    };
    let (wrong, right) = tokio::join!(let_in, turned_away);
    assert_eq!((wrong, right.expect("no panic")), (0, 20));
});

on_both!(a_schema_is_asked_for_once, one_backend, |t| async move {
    let mut probe = t.client().await;
    let changes = async |probe: &mut Wire| {
        let rows = probe.query("SHOW SESSION STATUS LIKE 'Com_change_db'").await.rows();
        rows[0][1].clone()
    };
    let before = changes(&mut probe).await;
    for _ in 0..20 {
        drop(t.client().await);
    }
    assert_eq!(changes(&mut probe).await, before);
    // What is gone is gone.
    let schema = t.tenant(1);
    probe.query(&format!("CREATE DATABASE {schema}")).await.expect_ok();
    let login = Login { schema: Some(schema.clone()), ..t.app() };
    let mut inside = t.client_as(&login).await;
    drop(t.client_as(&login).await);
    inside.query(&format!("DROP DATABASE {schema}")).await.expect_ok();
    assert!(Wire::connect(t.address, &login).await.is_err());
    // And what another account may not choose, it may not.
    let login = Login { schema: Some("mysql".into()), ..t.app() };
    drop(Wire::connect(t.address, &Login { schema: Some("mysql".into()), ..Login::admin() }).await);
    assert!(Wire::connect(t.address, &login).await.is_err());
});

on_both!(
    /// Who has said nothing yet is in nobody's way; who has begun to log in is.
    logins_wait_for_their_turn, |config| {
        config.server.max_handshakes = 1;
        config.server.handshake_timeout = Duration::from_secs(30);
    }, |t| async move {
        drop(t.client().await);
        let mut silent = Vec::new();
        for _ in 0..5 {
            silent.push(Wire::open(t.address).await);
        }
        assert_eq!(log_in_together(&t, &t.app(), 20).await, 20);
        let mut slow = Wire::open(t.address).await;
        slow.frame().await.expect("a greeting");
        // A header, and nothing of what it promises.
        slow.write(&[100, 0, 0, 1]).await;
        // Its turn has come as soon as somebody has to wait.
        let first = loop {
            let first = logging_in(&t, 1);
            while !first.is_finished() && t.metric("myriad_client_logins_waiting", None) < 1.0 {
                tokio::task::yield_now().await;
            }
            if !first.is_finished() {
                break first;
            }
            assert_eq!(first.await.expect("no panic"), 1);
        };
        let others = logging_in(&t, 4);
        t.until("myriad_client_logins_waiting", None, 5.0).await;
        drop(slow);
        assert_eq!((first.await.expect("no panic"), others.await.expect("no panic")), (1, 4));
        t.until("myriad_client_logins_waiting", None, 0.0).await;
    }
);

on_both!(clients_are_accepted_as_fast_as_they_may_come, |config| config.server.connect_rate = 100, |t| async move {
    let before = Instant::now();
    assert_eq!(log_in_together(&t, &t.app(), 60).await, 60, "nobody is refused");
    // Ten at once, and each of the others a hundredth of a second later.
    assert!(before.elapsed() >= Duration::from_millis(400));
    assert!(t.metric("myriad_client_accept_delays_total", None) > 0.0);
});

on_both!(
    one_address_does_not_hold_up_the_others,
    |config| config.server.connect_rate_per_address = 1,
    |t| async move {
        drop(t.client().await);
        let refused = Wire::connect(t.address, &t.app()).await.err().map(|error| error.to_string()).unwrap_or_default();
        let words = "Too many connections: server.connect_rate_per_address is 1";
        assert!(refused.contains("1040") && refused.contains(words), "{refused}");
        assert_eq!(t.metric("myriad_refusals_total", Some("connect_rate_per_address")), 1.0);
    }
);

const CLIENTS: usize = 300;
const BACKENDS: usize = 8;
const ROUNDS: usize = 4;

/// Statements of this test that the server runs now.
async fn running(admin: &mut Wire, words: &str) -> usize {
    let rows = admin.query("SHOW PROCESSLIST").await.rows();
    rows.iter().filter(|row| row[7].as_ref().is_some_and(|text| text.contains(words))).count()
}

on_both!(
    /// Applications that lose patience: what they left behind must not pile up.
    who_vanishes_leaves_no_work_behind, |config| {
        config.pool.max_connections = BACKENDS;
        config.scheduler.queue_timeout = Duration::from_secs(60);
    }, |t| async move {
        let mut admin = t.admin().await;
        let words = format!("storm of {}", t.schema);
        let sql = format!("SELECT SLEEP(60) /* {words} */");
        for _ in 0..ROUNDS {
            let mut clients = Vec::new();
            for _ in 0..CLIENTS {
                clients.push(t.client().await);
            }
            for client in &mut clients {
                client.send(Command::Query, sql.as_bytes()).await;
            }
            let limit = Instant::now() + Duration::from_secs(20);
            // All of the pool works for those who are there, whatever the round before has left: its places in line and its
            // connections are theirs as soon as the server has heard of it.
            loop {
                let now = running(&mut admin, &words).await;
                assert!(now <= BACKENDS, "{now} statements run");
                let waiting = t.metric("myriad_pool_waiting", None);
                if now == BACKENDS && waiting == (CLIENTS - BACKENDS) as f64 {
                    break;
                }
                assert!(Instant::now() < limit, "{now} run, {waiting} wait");
            }
            drop(clients);
        }
        t.until("myriad_pool_waiting", None, 0.0).await;
        t.until_runs(&words, false).await;
        // And the pool is of use.
        assert_eq!(t.client().await.one("SELECT 1").await, "1");
    }
);
