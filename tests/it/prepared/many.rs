//! Many clients, many statements: what the servers are asked to prepare, and to keep, is bounded.

use std::sync::Arc;

use myriad::config::Config;
use myriad::protocol::command::Command;

use super::{execute, field, long};
use crate::support::{Setup, on_both};

fn two_backends_of_ten(config: &mut Config) {
    config.pool.max_connections = 2;
    config.pool.prepared_statements = 10;
}

on_both!(fifty_clients_execute_one_statement, |t| async move {
    let clients = (0..50).map(|n| tokio::spawn(executes(Arc::clone(&t), n)));
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("a client that is well");
    }
    let prepared = t.metric("myriad_backend_prepares_total", None);
    assert!(prepared <= 4.0, "one statement on two backends was prepared {prepared} times");
    t.until("myriad_pinned_clients", None, 0.0).await;
    assert_eq!(t.metric("myriad_pins_total", None), 0.0);
});

async fn executes(t: Arc<Setup>, n: i32) {
    let mut client = t.client().await;
    let id = client.prepare("SELECT ? + 1").await;
    for round in 0..40 {
        let reply = execute(&mut client, id, &[long(n * 100 + round)]).await;
        assert_eq!(field(&reply)[..4], (n * 100 + round + 1).to_le_bytes());
    }
}

on_both!(distinct_texts_do_not_pile_up, two_backends_of_ten, |t| async move {
    let clients = (0..20).map(|n| tokio::spawn(distinct(Arc::clone(&t), n)));
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("a client that is well");
    }
    assert!(t.metric("myriad_backend_statements", None) <= 20.0);
    // Each once, and again for an execute that found the other backend.
    let prepared = t.metric("myriad_backend_prepares_total", None);
    assert!((600.0..=800.0).contains(&prepared), "{prepared}");
    assert!(t.metric("myriad_backend_statement_evictions_total", None) >= 580.0);
    t.until("myriad_client_statements", None, 0.0).await;
    // What was evicted is closed with the next command.
    for _ in 0..2 {
        let mut client = t.client().await;
        client.query("SELECT 1").await.expect_ok();
        if t.kind == crate::support::Kind::MySql {
            let own = "SELECT COUNT(*) FROM performance_schema.prepared_statements_instances p JOIN \
                 performance_schema.threads t ON t.THREAD_ID = p.OWNER_THREAD_ID WHERE t.PROCESSLIST_ID = CONNECTION_ID()";
            let kept = client.query(own).await;
            if kept.error().is_none() {
                let kept: u32 = kept.rows()[0][0].as_ref().expect("a number").parse().expect("a number");
                assert!(kept <= 10, "{kept}");
            }
        }
    }
});

async fn distinct(t: Arc<Setup>, n: i32) {
    let mut client = t.client().await;
    let mut open = Vec::new();
    for round in 0..30 {
        let id = client.prepare(&format!("SELECT {n}, {round}, ?")).await;
        open.push(id);
        if round % 3 == 0 {
            let oldest = open.remove(0);
            execute(&mut client, id, &[long(1)]).await.expect_ok();
            client.send(Command::StmtClose, &oldest.to_le_bytes()).await;
        }
    }
}

on_both!(in_session_mode, |config| config.pool.mode = myriad::config::PoolMode::Session, |t| async move {
    let (mut client, mut other) = (t.client().await, t.client().await);
    for wire in [&mut client, &mut other] {
        let ids = [wire.prepare("SELECT ?").await, wire.prepare("SELECT ?").await];
        for id in ids {
            execute(wire, id, &[long(1)]).await.expect_ok();
        }
        wire.command(Command::ResetConnection, b"").await.expect_ok();
        execute(wire, ids[0], &[long(1)]).await.expect_error(1243);
    }
});
