//! The tester itself is tested: put in front of a multiplexer that forgets something, it must notice.

use std::time::Duration;

use super::author;
use super::naive::Leak;
use super::shrink::shrink;
use super::theatre::{Failure, Stage};
use crate::support::Kind;

/// What is forgotten, one at a time.
const LEAKS: &[Leak] = &[
    Leak::After("SET sql_mode = 'ANSI'"),
    Leak::After("SET time_zone = '-07:00'"),
    Leak::After("SET NAMES latin1"),
    Leak::After("SET @a = 'somebody else', @b = 'is here'"),
    Leak::After("SELECT LAST_INSERT_ID(4711)"),
    Leak::After("DO CAST('x' AS SIGNED)"),
    Leak::After("DEALLOCATE PREPARE p"),
    Leak::After("DROP TEMPORARY TABLE IF EXISTS tmp"),
    Leak::After("COMMIT"),
    Leak::After("DO RELEASE_ALL_LOCKS()"),
    Leak::Schema("test"),
    Leak::SeveralStatements,
    Leak::Types,
    Leak::Statements,
];

const STEPS: usize = 400;

/// Plays scripts until one fails; at most three.
async fn caught(stage: Stage) -> Option<Failure> {
    for seed in 1..=3 {
        let script = author::write(stage.kind, seed, 6, STEPS);
        if let Err(failure) = Box::pin(stage.perform(&script)).await? {
            return Some(failure);
        }
    }
    None
}

async fn every_leak(kind: Kind) {
    let stage = |leak| Stage { kind, backends: 2, leak: Some(leak) };
    let script = author::write(kind, 1, 6, STEPS);
    match Box::pin(stage(Leak::Nothing).perform(&script)).await {
        None => return,
        Some(Err(failure)) => panic!("where nothing is forgotten, something differs:\n{failure}"),
        Some(Ok(_)) => {}
    }
    for leak in LEAKS {
        let failure = Box::pin(caught(stage(*leak))).await.unwrap_or_else(|| panic!("{leak:?} was not noticed"));
        println!("{kind:?}: {leak:?} was noticed after {} steps", failure.script.steps.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_leak_is_noticed_on_mariadb() {
    every_leak(Kind::MariaDb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_leak_is_noticed_on_mysql() {
    every_leak(Kind::MySql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_script_becomes_short() {
    let stage = Stage { kind: Kind::MariaDb, backends: 2, leak: Some(LEAKS[1]) };
    let Some(failure) = Box::pin(caught(stage)).await else { return };
    let long = failure.script.steps.len();
    let (_, short) = Box::pin(shrink(stage, failure, Duration::from_secs(20))).await;
    println!("of {long} steps these are left:\n{short}");
    // Somebody else's turn, and what is answered otherwise then.
    assert!(short.script.steps.len() <= 3, "{short}");
}
