//! Performances: a script, two worlds, and what is done when they differ.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::author;
use super::naive::{Leak, Naive};
use super::play::{Difference, Play, Trace};
use super::script::Script;
use super::shrink::shrink;
use super::stage;
use super::tally::Tally;
use super::world::World;
use crate::support::{Kind, Setup};

/// How much is played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    first_seed: u64,
    seeds: u64,
    steps: usize,
    clients: usize,
    backends: usize,
    /// How long a failing script may be shrunk.
    patience: Duration,
}

/// Where it is played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    pub(super) kind: Kind,
    pub(super) backends: usize,
    /// A multiplexer in the proxy's place, that forgets this.
    pub(super) leak: Option<Leak>,
}

/// A failed performance.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) what: String,
    /// Nothing came for too long.
    pub(super) waited: bool,
    /// What was played, the last step being the one that failed.
    pub(super) script: Script,
}

impl Plan {
    /// Short, unless the environment says otherwise.
    pub(super) fn from_environment() -> Self {
        let number = |name: &str, usual: u64| {
            std::env::var(name).map_or(usual, |value| value.parse().unwrap_or_else(|_| panic!("{name} is no number")))
        };
        let size = |name, usual| usize::try_from(number(name, usual)).expect("a small number");
        Self {
            first_seed: number("MYRIAD_TEST_SEED", 1),
            seeds: number("MYRIAD_TEST_SEEDS", 2),
            steps: size("MYRIAD_TEST_STEPS", 400),
            clients: size("MYRIAD_TEST_CLIENTS", 8),
            backends: size("MYRIAD_TEST_BACKENDS", 3),
            patience: Duration::from_secs(number("MYRIAD_TEST_SHRINK", 60)),
        }
    }
}

/// Plays every seed of the plan.
///
/// # Panics
/// At the end, if there were differences.
pub(super) async fn season(kind: Kind, plan: Plan) {
    let stage = Stage { kind, backends: plan.backends, leak: None };
    let mut all = Tally::default();
    let mut failed = Vec::new();
    for seed in plan.first_seed..plan.first_seed + plan.seeds {
        let script = author::write(kind, seed, plan.clients, plan.steps);
        if std::env::var("MYRIAD_TEST_SCRIPT").is_ok() {
            script.steps.iter().for_each(|step| println!("{step}"));
        }
        match Box::pin(stage.perform(&script)).await {
            None => return,
            Some(Ok(tally)) => all.add(&tally),
            Some(Err(failure)) => {
                println!("{kind:?}, seed {seed}, step {}: not the same", failure.script.steps.len());
                println!("{}", failure.what);
                let (stage, shrunk) = Box::pin(shrink(stage, failure, plan.patience)).await;
                println!("{kind:?}, seed {seed}, with {} backends:\n{shrunk}", stage.backends);
                failed.push(seed);
            }
        }
    }
    println!("{kind:?}: {all}");
    assert!(failed.is_empty(), "{kind:?}: through the proxy it is not the same, with seeds {failed:?}");
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Script { profiles, steps } = &self.script;
        for (client, profile) in profiles.iter().enumerate() {
            if steps.iter().any(|step| step.client == client) {
                writeln!(f, "client {client:2}: {profile}")?;
            }
        }
        for step in steps {
            writeln!(f, "{step}")?;
        }
        write!(f, "{}", self.what)
    }
}

impl Stage {
    /// Plays one script in new schemas, through a new proxy. `None`: there is no such server.
    pub(super) async fn perform(self, script: &Script) -> Option<Result<Tally, Failure>> {
        let Self { kind, backends, .. } = self;
        let setup = Setup::new(kind, |config| {
            config.pool.max_connections = backends;
            config.scheduler.queue_timeout = Duration::from_secs(5);
        })
        .await?;
        let mut clients: Vec<usize> = script.steps.iter().map(|step| step.client).collect();
        clients.sort_unstable();
        clients.dedup();
        stage::build(&setup, &clients).await;
        let trace = Trace::default();
        // A task of its own: a panic is a failure like others.
        let played = tokio::spawn(play(Arc::clone(&setup), self, script.clone(), Arc::clone(&trace))).await;
        let result = match played {
            Ok(Ok(tally)) => Ok(tally),
            Ok(Err(Difference { what })) => Err(what),
            Err(panic) => Err(format!("it panicked: {panic}")),
        };
        stage::clear(&setup).await;
        let result = match result {
            Ok(mut tally) => {
                tally.read(&setup.metrics);
                setup.finish().await;
                Ok(tally)
            }
            Err(what) => {
                // It may not be well: what it leaves behind is of no interest.
                let _ = tokio::spawn(async move { setup.finish().await }).await;
                let steps = trace.lock().expect("nobody else has it").clone();
                let waited = what.contains("no answer for too long");
                Err(Failure { what, waited, script: Script { steps, ..script.clone() } })
            }
        };
        Some(result)
    }
}

async fn play(setup: Arc<Setup>, stage: Stage, script: Script, trace: Trace) -> Result<Tally, Difference> {
    let (here, there) = stage::names(&setup);
    let clients = script.profiles.len();
    let naive = match stage.leak {
        Some(leak) => Some(Naive::new(setup.server, leak).await),
        None => None,
    };
    let address = naive.as_ref().map_or(setup.address, |naive| naive.address);
    let worlds = (World::new(setup.server, there, clients), World::new(address, here, clients));
    let proxy = naive.is_none().then(|| (Arc::clone(&setup.metrics), stage.backends - 1));
    let mut play = Play::new(setup.kind, worlds, proxy, setup.admin().await, trace);
    play.run(&script).await.map(|()| play.tally)
}
