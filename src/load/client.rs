//! One client: dial, log in, wait, ask until the end, say good-bye.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::login;
use super::plan::Plan;
use super::recorder::Recorder;
use super::report::{FailureKind, Phase, Snapshot};
use super::statement::Statement;
use super::turn::{Connection, Failure};
use super::work::Script;

/// How long a client may take to connect and log in.
const LOGIN_LIMIT: Duration = Duration::from_secs(60);
/// A random pause is at most this many times its mean, so that nobody sleeps through a short run.
const LONGEST_PAUSE: f64 = 10.0;

/// What the clients of a run have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) plan: Plan,
    pub(super) script: Script,
    pub(super) recorder: Recorder,
}

impl Shared {
    /// The state of the run, for progress.
    pub(super) fn snapshot(&self, phase: Phase, elapsed: Duration) -> Snapshot {
        let (_, statements, errors) = self.recorder.totals();
        Snapshot { phase, elapsed, connected: self.recorder.connected_count(), statements, errors }
    }
}

/// Lives the life of client `index`. `begin` holds the end of the run as soon as the clients may ask.
pub(super) async fn live(shared: Arc<Shared>, index: usize, mut begin: watch::Receiver<Option<Instant>>) {
    let recorder = &shared.recorder;
    let settled = recorder.settling();
    // Boxed, since a login's state is large and a client spends its life after it.
    let login = Box::pin(arrive(&shared, index)).await;
    let mut client = match login {
        Ok(client) => client,
        Err(failure) => return recorder.failed(index, failure.kind, &failure.text),
    };
    let _connected = recorder.connected();
    drop(settled);
    let end = match end_of_run(&client.connection, &mut begin).await {
        Ok(Some(end)) => end,
        Ok(None) => return,
        Err(failure) => return recorder.failed(index, failure.kind, &failure.text),
    };
    let done = if shared.plan.churn {
        client.connection.quit().await;
        come_and_go(&shared, index, end).await
    } else {
        let mut done = ask(&shared, index, &mut client, end).await;
        if done.is_ok() && !shared.plan.hold.is_zero() {
            done = pause(&client.connection, end + shared.plan.hold).await.map(|_| ());
        }
        if done.is_ok() {
            client.connection.quit().await;
        }
        done
    };
    if let Err(failure) = done {
        recorder.failed(index, failure.kind, &failure.text);
    }
}

/// A client that is logged in, with its statements prepared if they are to be.
struct Ready {
    connection: Connection,
    ids: Box<[u32]>,
}

/// Connects, logs in and prepares.
async fn arrive(shared: &Shared, index: usize) -> Result<Ready, Failure> {
    let began = Instant::now();
    let arriving = async {
        let mut connection = connect(&shared.plan, index).await?;
        shared.recorder.logged_in(index, began.elapsed());
        let mut ids = Vec::new();
        if let Script::Prepared(statements) = &shared.script {
            for statement in statements {
                ids.push(connection.prepare(statement).await?);
            }
        }
        Ok(Ready { connection, ids: ids.into() })
    };
    timeout(LOGIN_LIMIT, arriving).await.unwrap_or_else(|_| {
        Err(Failure::new(FailureKind::Login, format!("not logged in within {} s", LOGIN_LIMIT.as_secs())))
    })
}

/// When a client begins its next piece of work.
struct Beat {
    think: Duration,
    period: Option<Duration>,
    next: Instant,
}

impl Beat {
    /// A pause first, or all clients would begin in the same instant.
    fn new(plan: &Plan) -> Self {
        let (think, period) = (plan.think, plan.period());
        let first =
            period.map_or_else(|| exponential(think), |period| period.mul_f64(rand::rng().random_range(0.0..1.0)));
        Self { think, period, next: Instant::now() + first }
    }

    /// From when the piece of work that begins now is measured; and the next one is planned.
    fn begin(&mut self) -> Instant {
        match self.period {
            Some(period) => {
                let due = self.next;
                self.next += period;
                due
            }
            None => Instant::now(),
        }
    }

    fn done(&mut self) {
        if self.period.is_none() {
            self.next = Instant::now() + exponential(self.think);
        }
    }
}

/// Asks until the end of the run.
async fn ask(shared: &Shared, index: usize, client: &mut Ready, end: Instant) -> Result<(), Failure> {
    let mut tally = shared.recorder.tally();
    let mut beat = Beat::new(&shared.plan);
    while pause(&client.connection, beat.next.min(end)).await? < end {
        let since = beat.begin();
        match work(shared, client).await {
            Ok(0) => beat.next = end,
            Ok(statements) => {
                tally.count += 1;
                shared.recorder.done(index, statements, since.elapsed());
            }
            // The server said no to this statement; the connection is fine.
            Err(Failure { kind: kind @ FailureKind::Server(_), text }) => {
                shared.recorder.failed(index, kind, &text);
                give_up(shared, client).await?;
            }
            Err(lost) => return Err(lost),
        }
        beat.done();
    }
    Ok(())
}

/// Connects, works and says good-bye until the end of the run.
async fn come_and_go(shared: &Shared, index: usize, end: Instant) -> Result<(), Failure> {
    let mut tally = shared.recorder.tally();
    let mut beat = Beat::new(&shared.plan);
    while beat.next < end {
        sleep_until(beat.next).await;
        let since = beat.begin();
        let done = Box::pin(async {
            let mut client = arrive(shared, index).await?;
            let done = work(shared, &mut client).await?;
            client.connection.quit().await;
            Ok(done)
        });
        match done.await {
            Ok(statements) => {
                tally.count += 1;
                shared.recorder.done(index, statements, since.elapsed());
            }
            Err(Failure { kind, text }) => shared.recorder.failed(index, kind, &text),
        }
        beat.done();
    }
    Ok(())
}

/// One piece of work; of how many statements it was, none if there is nothing to do.
async fn work(shared: &Shared, client: &mut Ready) -> Result<u64, Failure> {
    let pick =
        |statements: &[Statement]| (!statements.is_empty()).then(|| rand::rng().random_range(0..statements.len()));
    match &shared.script {
        Script::Any(statements) => {
            let Some(statement) = pick(statements).and_then(|n| statements.get(n)) else { return Ok(0) };
            client.connection.query(statement).await?;
            Ok(1)
        }
        Script::Prepared(statements) => {
            let picked = pick(statements).and_then(|n| Some((statements.get(n)?, *client.ids.get(n)?)));
            let Some((statement, id)) = picked else { return Ok(0) };
            client.connection.execute(statement, id).await?;
            Ok(1)
        }
        Script::All(statements) => {
            for statement in statements {
                client.connection.query(statement).await?;
            }
            Ok(statements.len() as u64)
        }
    }
}

/// A statement of a transaction has failed: so has the transaction.
async fn give_up(shared: &Shared, client: &mut Ready) -> Result<(), Failure> {
    if let Script::All(_) = shared.script
        && let Ok(rollback) = Statement::parse("ROLLBACK")
    {
        client.connection.query(&rollback).await?;
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
    let target = plan.target(index);
    let stream = dial(target, plan, index)
        .await
        .map_err(|error| Failure::new(FailureKind::Connect, format!("could not connect to {target}: {error}")))?;
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
