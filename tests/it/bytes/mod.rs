//! What a client gets through the proxy is what it gets from the server, byte for byte.
//!
//! A script of some hundred statements and commands runs twice in a fresh schema of the same name: at the server, and
//! through the proxy. Every packet of every reply is compared, sequence numbers included. What may differ is in
//! [`normal`], with the reason; nothing else may.

mod normal;
mod player;
mod script;

use myriad::config::Config;
use myriad::protocol::capability::CapabilityFlags;

use crate::support::{Login, Setup, on_both};
use player::{Player, Recording};
use script::Step;

on_both!(to_a_modern_client, |t| async move { compare(&t, t.app(), Vec::new()).await });

on_both!(to_a_client_without_session_tracking, |t| async move {
    let login = Login { capabilities: t.app().capabilities - CapabilityFlags::CLIENT_SESSION_TRACK, ..t.app() };
    compare(&t, login, Vec::new()).await;
});

on_both!(to_an_old_client, |t| async move { compare(&t, t.app().old(), Vec::new()).await });

on_both!(to_a_client_that_tracks_everything, |t| async move {
    let trackers = [
        "SET SESSION session_track_system_variables = '*'",
        "SET SESSION session_track_state_change = ON",
        "SET SESSION session_track_transaction_info = 'CHARACTERISTICS'",
    ];
    compare(&t, t.app(), trackers.map(script::query).to_vec()).await;
});

on_both!(to_a_client_that_tracks_some_variables_and_the_state_of_its_transactions, |t| async move {
    let trackers = [
        "SET SESSION session_track_system_variables = 'sql_mode , TIME_ZONE,nobody_knows_this'",
        "SET SESSION session_track_schema = OFF",
        "SET SESSION session_track_transaction_info = 'STATE'",
    ];
    compare(&t, t.app(), trackers.map(script::query).to_vec()).await;
});

on_both!(with_multi_statements, |t| async move {
    let flags = CapabilityFlags::CLIENT_MULTI_STATEMENTS | CapabilityFlags::CLIENT_FOUND_ROWS;
    compare(&t, t.app().with(flags), Vec::new()).await;
});

/// Runs the script twice and compares.
async fn compare(t: &Setup, login: Login, first: Vec<Step>) {
    let steps: Vec<Step> = first.into_iter().chain(script::all(&t.schema)).collect();
    renew(t).await;
    let direct = record(Player::new(t.direct(&login).await, t.kind), &steps).await;
    renew(t).await;
    let proxied = record(Player::new(t.client_as(&login).await, t.kind), &steps).await;
    let (mut packets, mut excepted, mut differences) = (0, 0, String::new());
    for ((step, direct), proxied) in steps.iter().zip(&direct).zip(&proxied) {
        packets += direct.packets.len();
        if let Some(reason) = normal::exception(t.kind, &step.to_string()) {
            println!("not compared: {step}: {reason}");
            excepted += 1;
        } else if direct != proxied {
            differences += &format!("\n{step}\n{}", direct.differs_from(proxied));
        }
    }
    let compared = steps.len() - excepted;
    println!("{:?}: compared {compared} statements and commands, {packets} packets", t.kind);
    assert!(compared >= 200, "the script is too short to prove anything");
    assert!(differences.is_empty(), "through the proxy it is not the same:{differences}");
}

async fn record(mut player: Player, steps: &[Step]) -> Vec<Recording> {
    let mut recordings = Vec::with_capacity(steps.len());
    for step in steps {
        recordings.push(player.play(step).await);
    }
    recordings
}

/// The test's schema as it was at its start.
async fn renew(t: &Setup) {
    let mut admin = t.admin().await;
    admin.query(&format!("DROP DATABASE {}", t.schema)).await.expect_ok();
    admin.query(&format!("CREATE DATABASE {}", t.schema)).await.expect_ok();
}

/// A pool that all clients of a test must share.
fn one_backend(config: &mut Config) {
    config.pool.max_connections = 1;
}
