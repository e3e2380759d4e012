//! One client: dial, log in, wait, ask until the end, say good-bye.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::login;
use super::plan::Plan;
use super::recorder::Recorder;
use super::report::{FailureKind, Phase, Snapshot};
use super::statement::Statement;
use super::turn::{Connection, Failure};

/// How long a client may take to connect and log in.
const LOGIN_LIMIT: Duration = Duration::from_secs(60);
/// A random pause is at most this many times its mean, so that nobody sleeps through a short run.
const LONGEST_PAUSE: f64 = 10.0;

/// What the clients of a run have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) plan: Plan,
    pub(super) statements: Vec<Statement>,
    pub(super) recorder: Recorder,
}

impl Shared {
    /// The state of the run, for progress.
    pub(super) fn snapshot(&self, phase: Phase, elapsed: Duration) -> Snapshot {
        let (statements, errors) = self.recorder.totals();
        Snapshot { phase, elapsed, connected: self.recorder.connected_count(), statements, errors }
    }
}

/// Lives the life of client `index`. `begin` holds the end of the run as soon as the clients may ask.
pub(super) async fn live(shared: Arc<Shared>, index: usize, begin: watch::Receiver<Option<Instant>>) {
    let recorder = &shared.recorder;
    let settled = recorder.settling();
    // Boxed, since a login's state is large and a client spends its life after it.
    let login = Box::pin(timeout(LOGIN_LIMIT, connect(&shared.plan, index))).await;
    let mut connection = match login {
        Ok(Ok(connection)) => connection,
        Ok(Err(failure)) => return recorder.failed(index, failure.kind, &failure.text),
        Err(_) => {
            let text = format!("not logged in within {} s", LOGIN_LIMIT.as_secs());
            return recorder.failed(index, FailureKind::Login, &text);
        }
    };
    let _connected = recorder.connected();
    drop(settled);
    match ask(&shared, index, &mut connection, begin).await {
        Ok(()) => connection.quit().await,
        Err(failure) => recorder.failed(index, failure.kind, &failure.text),
    }
}

/// Asks until the end of the run.
async fn ask(
    shared: &Shared,
    index: usize,
    connection: &mut Connection,
    mut begin: watch::Receiver<Option<Instant>>,
) -> Result<(), Failure> {
    let Some(end) = end_of_run(connection, &mut begin).await? else { return Ok(()) };
    // A pause first, or all clients would begin in the same instant.
    let think = shared.plan.think;
    let mut next = Instant::now() + exponential(think);
    while pause(connection, next.min(end)).await? < end {
        let Some(statement) = shared.statements.choose(&mut rand::rng()) else {
            next = end;
            continue;
        };
        let asked = Instant::now();
        match connection.query(statement).await {
            Ok(()) => shared.recorder.answered(index, asked.elapsed()),
            // The server said no to this statement; the connection is fine.
            Err(Failure { kind: kind @ FailureKind::Server(_), text }) => shared.recorder.failed(index, kind, &text),
            Err(lost) => return Err(lost),
        }
        next = Instant::now() + exponential(think);
    }
    Ok(())
}

/// Waits for the run to begin and returns when it ends, or nothing if it was called off.
async fn end_of_run(
    connection: &Connection,
    begin: &mut watch::Receiver<Option<Instant>>,
) -> Result<Option<Instant>, Failure> {
    tokio::select! {
        begun = begin.wait_for(Option::is_some) => Ok(begun.ok().and_then(|end| *end)),
        unasked = connection.unasked() => Err(unasked),
    }
}

/// Waits until `then`; returns the time.
async fn pause(connection: &Connection, then: Instant) -> Result<Instant, Failure> {
    if then > Instant::now() {
        tokio::select! {
            () = sleep_until(then) => {}
            unasked = connection.unasked() => return Err(unasked),
        }
    }
    Ok(Instant::now())
}

/// Dials and logs in client `index` of a plan.
pub(super) async fn connect(plan: &Plan, index: usize) -> Result<Connection, Failure> {
    let stream = dial(plan.target, plan, index).await.map_err(|error| {
        Failure::new(FailureKind::Connect, format!("could not connect to {}: {error}", plan.target))
    })?;
    login::log_in(stream, plan).await
}

/// The load generator dials for itself: it plays the clients, and knows no backend.
async fn dial(target: SocketAddr, plan: &Plan, index: usize) -> io::Result<TcpStream> {
    let socket = if target.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = plan.source(index) {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.connect(target).await
}

/// A random pause with this mean.
fn exponential(mean: Duration) -> Duration {
    // 1 - x is never zero, so the logarithm is finite.
    let x: f64 = rand::rng().random_range(0.0..1.0);
    mean.mul_f64((-(1.0 - x).ln()).min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_their_mean() {
        let mean = Duration::from_millis(100);
        let count = 20_000;
        let total: Duration = (0..count).map(|_| exponential(mean)).sum();
        let measured = total / count;
        assert!(measured > mean.mul_f64(0.95) && measured < mean.mul_f64(1.05), "{measured:?}");
        assert_eq!(exponential(Duration::ZERO), Duration::ZERO);
    }
}
