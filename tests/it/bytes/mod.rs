//! What a client gets through the proxy is what it gets from the server, byte for byte.
//!
//! A script of some hundred statements and commands runs twice in a fresh schema of the same name: at the server, and
//! through the proxy. Every packet of every reply is compared, sequence numbers included. What may differ is in
//! [`normal`], with the reason; nothing else may.

pub(crate) mod normal;
mod player;
mod script;

use std::sync::Arc;

use myriad::protocol::capability::CapabilityFlags;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::{Kind, Login, Setup, on_both};
use normal::Terms;
use player::{Player, Recording};
use script::Step;

on_both!(to_a_modern_client, |t| async move { compare(&t, t.app(), script::all(&t.schema)).await });

on_both!(to_a_client_without_session_tracking, |t| async move {
    let login = Login { capabilities: t.app().capabilities - CapabilityFlags::CLIENT_SESSION_TRACK, ..t.app() };
    compare(&t, login, script::all(&t.schema)).await;
});

on_both!(to_an_old_client, |t| async move { compare(&t, t.app().old(), script::all(&t.schema)).await });

on_both!(to_a_client_that_tracks_everything, |t| async move {
    let trackers = [
        "SET SESSION session_track_system_variables = '*'",
        "SET SESSION session_track_state_change = ON",
        "SET SESSION session_track_transaction_info = 'CHARACTERISTICS'",
    ];
    compare(&t, t.app(), behind(trackers, &t)).await;
});

on_both!(to_a_client_that_tracks_some_variables_and_the_state_of_its_transactions, |t| async move {
    let trackers = [
        "SET SESSION session_track_system_variables = 'sql_mode , TIME_ZONE,nobody_knows_this'",
        "SHOW WARNINGS",
        "SET SESSION session_track_schema = OFF",
        "SET SESSION session_track_transaction_info = 'STATE'",
    ];
    compare_on(&t, t.app(), behind(trackers, &t), Terms { blank: t.kind == Kind::MySql, ..Terms::default() }).await;
});

on_both!(with_multi_statements, |t| async move {
    let flags = CapabilityFlags::CLIENT_MULTI_STATEMENTS | CapabilityFlags::CLIENT_FOUND_ROWS;
    compare(&t, t.app().with(flags), script::all(&t.schema)).await;
});

on_both!(to_a_client_whose_backend_is_taken_all_the_time, |config| config.pool.max_connections = 1, |t| async move {
    let (stop, neighbour) = neighbour(&t);
    let terms = Terms { shared: true, ..Terms::default() };
    compare_on(&t, t.app(), with_resets(script::all(&t.schema)), terms).await;
    stop.cancel();
    let (turns, saves) = (neighbour.await.expect("the neighbour is well"), t.metric("myriad_saves_total", None));
    println!("{:?}: a neighbour had {turns} turns; the session's state was saved {saves} times", t.kind);
    assert!(turns > 100 && saves > 10.0, "the neighbour was not in the way: {turns} turns, {saves} saves");
});

/// Another client, with a state of its own, that wants a backend whenever there is one. Returns how many turns it had.
fn neighbour(t: &Arc<Setup>) -> (CancellationToken, JoinHandle<u32>) {
    let stop = CancellationToken::new();
    let (stopped, t) = (stop.clone(), Arc::clone(t));
    let busy = async move {
        let login = Login { schema: Some("test2".into()), collation: 8, ..t.app().old() };
        let mut client = t.client_as(&login).await;
        let state =
            "SET SESSION sql_mode = 'ANSI_QUOTES', time_zone = '+09:00', lc_time_names = 'de_DE', autocommit = 1";
        client.query(state).await.expect_ok();
        let mut turns = 0;
        while !stopped.is_cancelled() {
            client.query("SELECT CAST('neighbour' AS SIGNED), LAST_INSERT_ID(4711), '\u{e9}'").await.expect_ok();
            turns += 1;
        }
        turns
    };
    (stop, tokio::spawn(busy))
}

/// Now and then a reset, so that no pin lasts for long.
fn with_resets(steps: Vec<Step>) -> Vec<Step> {
    let parts = steps.chunks(7).map(<[Step]>::to_vec);
    parts
        .flat_map(|mut part| {
            part.push(script::reset());
            part
        })
        .collect()
}

/// The script, behind some statements.
fn behind<const N: usize>(first: [&str; N], t: &Setup) -> Vec<Step> {
    first.map(script::query).into_iter().chain(script::all(&t.schema)).collect()
}

/// Runs the script twice and compares.
async fn compare(t: &Setup, login: Login, steps: Vec<Step>) {
    compare_on(t, login, steps, Terms::default()).await;
}

async fn compare_on(t: &Setup, login: Login, steps: Vec<Step>, terms: Terms) {
    renew(t).await;
    let direct = record(Player::new(t.direct(&login).await, t.kind, terms), &steps).await;
    renew(t).await;
    let proxied = record(Player::new(t.client_as(&login).await, t.kind, terms), &steps).await;
    let (mut packets, mut excepted, mut differences) = (0, 0, String::new());
    for ((step, direct), proxied) in steps.iter().zip(&direct).zip(&proxied) {
        packets += direct.packets.len();
        if let Some(reason) = normal::exception(t.kind, terms, &step.to_string()) {
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
        let mut recording = player.play(step).await;
        // What others run in this moment cannot be put into the list of processes: it can be in the next one.
        for _ in 0..20 {
            if !recording.is_of_the_moment() {
                break;
            }
            recording = player.play(step).await;
        }
        recordings.push(recording);
    }
    recordings
}

/// The test's schema as it was at its start.
async fn renew(t: &Setup) {
    let mut admin = t.admin().await;
    admin.query(&format!("DROP DATABASE {}", t.schema)).await.expect_ok();
    admin.query(&format!("CREATE DATABASE {}", t.schema)).await.expect_ok();
}
