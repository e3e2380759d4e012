//! All clients of a run, from the first login to the last good-bye.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::client::{self, Shared};
use super::plan::{Plan, PlanError};
use super::recorder::Recorder;
use super::report::{FailureKind, Phase, Report, Snapshot};
use super::usage;

/// Clients logging in at once. Well below the usual listen queue, so that a fast ramp is no SYN flood.
const LOGINS_AT_ONCE: usize = 256;
/// How often the ramp looks at what is due.
const RAMP_TICK: Duration = Duration::from_millis(5);
/// How often progress is told.
const PROGRESS_TICK: Duration = Duration::from_millis(100);
/// How long the last statements may take after the end, before they are cut off.
const GRACE: Duration = Duration::from_secs(10);

/// Connects and drives the clients of a plan, telling `progress` several times a second.
///
/// # Errors
/// If the plan makes no sense. What goes wrong for a client is in the report.
pub async fn run(plan: Plan, progress: impl Fn(&Snapshot)) -> Result<Report, PlanError> {
    let fleet = Fleet::connect(plan, &progress).await?;
    Ok(fleet.drive(&progress).await)
}

/// Clients that are connected and ask nothing yet. Dropping it cuts them off.
#[derive(Debug)]
pub struct Fleet {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    /// Tells the clients to begin, and until when.
    go: watch::Sender<Option<Instant>>,
    duration: Duration,
    clients: usize,
    /// What the clients' logins have added to this process, in bytes.
    memory: u64,
    connecting: Duration,
}

impl Fleet {
    /// Logs the clients in, and returns when each of them has or has given up.
    ///
    /// # Errors
    /// If the plan makes no sense. Clients that could not log in are in the report.
    pub async fn connect(plan: Plan, progress: impl Fn(&Snapshot)) -> Result<Self, PlanError> {
        let script = plan.check()?;
        let before = usage::resident();
        let (wanted, ramp, duration) = (plan.clients, plan.ramp_per_second, plan.duration);
        let shared = Arc::new(Shared { plan, script, recorder: Recorder::new() });
        let (go, begin) = watch::channel(None);
        let mut tasks = JoinSet::new();
        let start = Instant::now();
        let mut ticks = interval(RAMP_TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = start;
        while shared.recorder.settled_count() < wanted {
            ticks.tick().await;
            let spawned = tasks.len();
            let room = LOGINS_AT_ONCE.saturating_sub(spawned.saturating_sub(shared.recorder.settled_count()));
            let due = due(start.elapsed(), ramp, wanted).min(spawned.saturating_add(room));
            for index in spawned..due {
                tasks.spawn(client::live(Arc::clone(&shared), index, begin.clone()));
            }
            if told.elapsed() >= PROGRESS_TICK {
                told = Instant::now();
                progress(&shared.snapshot(Phase::Connecting, start.elapsed()));
            }
        }
        let clients = shared.recorder.connected_count();
        progress(&shared.snapshot(Phase::Idle, Duration::ZERO));
        let memory = usage::resident().saturating_sub(before);
        Ok(Self { shared, tasks, go, duration, clients, memory, connecting: start.elapsed() })
    }

    /// How many clients are connected now.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.shared.recorder.connected_count()
    }

    /// Lets the clients ask until the plan's time is over, then lets each finish its statement and say good-bye.
    pub async fn drive(self, progress: impl Fn(&Snapshot)) -> Report {
        self.drive_within(GRACE, progress).await
    }

    /// [`Fleet::drive`] with another time for the last statements.
    async fn drive_within(mut self, grace: Duration, progress: impl Fn(&Snapshot)) -> Report {
        let start = Instant::now();
        let end = start + self.duration;
        // Without clients there is nobody to tell, and that is all right.
        self.go.send_replace(Some(end));
        let cpu = usage::cpu();
        let elapsed = self.watch(Phase::Running, start, end, &progress).await;
        let cpu = usage::cpu().saturating_sub(cpu);
        let (in_time, asked_in_time, _) = self.shared.recorder.totals();
        // With a full line of clients, the last of them waits for as long as any before.
        let slowest = Duration::from_micros(self.shared.recorder.latency().max);
        let grace = grace.max(slowest * 2);
        let hold = self.shared.plan.hold;
        self.watch(Phase::Stopping, Instant::now(), Instant::now() + hold + grace, &progress).await;
        self.cut_off(grace).await;
        let recorder = &self.shared.recorder;
        let (work, statements, _) = recorder.totals();
        Report {
            clients: self.clients,
            connecting: self.connecting,
            elapsed,
            pauses: !self.shared.plan.think.is_zero() || self.shared.plan.rate > 0.0,
            work,
            least: recorder.least(),
            statements,
            rate: rate(asked_in_time, elapsed),
            pace: rate(in_time, elapsed),
            latency: recorder.latency(),
            logins: recorder.logins(),
            cpu,
            memory: self.memory,
            errors: recorder.errors(),
        }
    }

    /// Tells progress until `end` or until no client is left; returns how long that was.
    async fn watch(&mut self, phase: Phase, start: Instant, end: Instant, progress: &impl Fn(&Snapshot)) -> Duration {
        while !self.tasks.is_empty() && Instant::now() < end {
            let tick = end.min(Instant::now() + PROGRESS_TICK);
            // One at a time would be slow for thousands of good-byes; what is ready is taken in one go.
            if timeout_at(tick, self.tasks.join_next()).await.is_ok() {
                while self.tasks.try_join_next().is_some() {}
            }
            progress(&self.shared.snapshot(phase, start.elapsed()));
        }
        start.elapsed()
    }

    /// Ends clients whose statement is still not answered.
    async fn cut_off(&mut self, grace: Duration) {
        for index in 0..self.tasks.len() {
            let text = format!("no answer within {} s after the end of the run", grace.as_secs_f32());
            self.shared.recorder.failed(index, FailureKind::Unfinished, &text);
        }
        self.tasks.shutdown().await;
    }
}

/// How many clients should have begun to log in by now.
fn due(elapsed: Duration, ramp_per_second: usize, wanted: usize) -> usize {
    if ramp_per_second == 0 {
        return wanted;
    }
    let ramp = u128::try_from(ramp_per_second).unwrap_or(u128::MAX);
    let due = elapsed.as_micros().saturating_mul(ramp) / 1_000_000;
    usize::try_from(due).unwrap_or(usize::MAX).saturating_add(1).min(wanted)
}

#[expect(clippy::cast_precision_loss, reason = "a rate is for people")]
fn rate(statements: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64();
    if seconds > 0.0 { statements as f64 / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::load::Work;

    #[test]
    fn the_ramp_is_steady() {
        let at = |millis, ramp| due(Duration::from_millis(millis), ramp, 100);
        assert_eq!([at(0, 10), at(99, 10), at(100, 10), at(1000, 10)], [1, 1, 2, 11]);
        assert_eq!([at(20_000, 10), at(0, 0)], [100, 100]);
    }

    #[test]
    fn a_rate_needs_time() {
        assert_eq!((rate(10, Duration::ZERO), rate(10, Duration::from_secs(2))), (0.0, 5.0));
    }

    /// A server that lets everybody in and then never says a word.
    async fn mute_server() -> std::net::SocketAddr {
        // Version 8, id 1, a nonce of 'n', the flags of 4.1 with secure logins, mysql_native_password.
        const GREETING: &[u8] = b"\x47\0\0\0\x0a8.0\0\x01\0\0\0nnnnnnnn\0\0\x82\x2d\0\0\x08\0\x15\
            \0\0\0\0\0\0\0\0\0\0nnnnnnnnnnnn\0mysql_native_password\0";
        const OK: &[u8] = b"\x07\0\0\x02\0\0\0\x02\0\0\0";
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(GREETING).await.unwrap();
                stream.read_u8().await.unwrap();
                stream.write_all(OK).await.unwrap();
                held.push(stream);
            }
        });
        address
    }

    #[tokio::test]
    async fn a_mute_server_does_not_hold_the_end_up() {
        let plan = Plan {
            clients: 3,
            duration: Duration::from_millis(50),
            work: Work::Statements(vec!["SELECT 1".into()]),
            ..Plan::single(mute_server().await, "u", "", None)
        };
        let fleet = Fleet::connect(plan, |_| ()).await.unwrap();
        assert_eq!(fleet.connected(), 3, "{:?}", fleet.shared.recorder.errors());
        let report = fleet.drive_within(Duration::from_millis(50), |_| ()).await;
        assert_eq!((report.clients, report.statements), (3, 0));
        assert_eq!((report.errors[0].kind, report.errors[0].count), (FailureKind::Unfinished, 3));
    }
}
