//! What a run measured.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Clients are logging in.
    #[default]
    Connecting,
    /// All that could connect are connected and ask nothing yet.
    Idle,
    /// They ask.
    Running,
    /// They say good-bye.
    Stopping,
}

/// How far a run is; cheap enough to look at several times a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Where the run is.
    pub phase: Phase,
    /// Time since this phase began.
    pub elapsed: Duration,
    /// Clients that are logged in now.
    pub connected: usize,
    /// Statements answered so far.
    pub statements: u64,
    /// Errors of every kind so far.
    pub errors: u64,
}

impl Snapshot {
    /// The progress of several processes together: as far as the one that is behind.
    #[must_use]
    pub fn sum(all: &[Self]) -> Self {
        let behind = all.iter().min_by_key(|snapshot| snapshot.phase as u8).copied().unwrap_or_default();
        Self {
            connected: all.iter().map(|snapshot| snapshot.connected).sum(),
            statements: all.iter().map(|snapshot| snapshot.statements).sum(),
            errors: all.iter().map(|snapshot| snapshot.errors).sum(),
            ..behind
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Clients that had logged in when the statements began.
    pub clients: usize,
    /// How long the logins took.
    pub connecting: Duration,
    /// How long the clients asked.
    pub elapsed: Duration,
    /// Did clients pause between two pieces of work?
    pub pauses: bool,
    /// Pieces of work done: statements, or transactions.
    pub work: u64,
    /// Pieces of work of the client that did the least.
    pub least: u64,
    /// Statements answered; those answered with an error count as errors instead.
    pub statements: u64,
    /// Statements a second, of those that were answered before the end.
    pub rate: f64,
    /// Pieces of work a second, of those that were done before the end.
    pub pace: f64,
    /// Of a piece of work: from the first byte sent (churn: from before it connects; with a rate: from when it should
    /// have begun) to the last byte of its reply received.
    pub latency: Latency,
    /// Of connecting and logging in.
    pub logins: Latency,
    /// CPU time that the load generator itself took while the clients asked.
    pub cpu: Duration,
    /// What the load generator's memory grew by while the clients logged in, in bytes.
    pub memory: u64,
    /// What went wrong, most frequent first.
    pub errors: Vec<ErrorCount>,
}

/// Latencies in microseconds, as upper ends of a histogram's buckets (three significant digits).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The mean.
    pub mean: f64,
    /// Half were at most this.
    pub p50: u64,
    /// 95 % were at most this.
    pub p95: u64,
    /// 99 % were at most this.
    pub p99: u64,
    /// The slowest.
    pub max: u64,
    /// How many there were of each, so that those of several processes can be put together.
    pub counts: Vec<(u64, u64)>,
}

/// Errors of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// What kind.
    pub kind: FailureKind,
    /// How many.
    pub count: u64,
    /// The first one, in words.
    pub first: String,
}

/// What went wrong for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FailureKind {
    /// No connection.
    Connect,
    /// A connection, but no login.
    Login,
    /// The server answered a statement with this error.
    Server(u16),
    /// The connection was lost.
    Lost,
    /// The server sent what the protocol does not allow.
    Protocol,
    /// A client had to be cut off at the end of the run, since its statement was not answered.
    Unfinished,
}

impl Report {
    /// Puts the reports of processes together that ran at the same time.
    #[must_use]
    pub fn merge(reports: &[Self]) -> Self {
        let longest = |of: fn(&Self) -> Duration| reports.iter().map(of).max().unwrap_or_default();
        let mut errors: Vec<ErrorCount> = Vec::new();
        for error in reports.iter().flat_map(|report| &report.errors) {
            match errors.iter_mut().find(|known| known.kind == error.kind) {
                Some(known) => known.count += error.count,
                None => errors.push(error.clone()),
            }
        }
        errors.sort_by_key(|error| std::cmp::Reverse(error.count));
        Self {
            clients: reports.iter().map(|report| report.clients).sum(),
            connecting: longest(|report| report.connecting),
            elapsed: longest(|report| report.elapsed),
            pauses: reports.iter().any(|report| report.pauses),
            work: reports.iter().map(|report| report.work).sum(),
            least: reports.iter().map(|report| report.least).min().unwrap_or_default(),
            statements: reports.iter().map(|report| report.statements).sum(),
            rate: reports.iter().map(|report| report.rate).sum(),
            pace: reports.iter().map(|report| report.pace).sum(),
            latency: Latency::merge(reports.iter().map(|report| &report.latency)),
            logins: Latency::merge(reports.iter().map(|report| &report.logins)),
            cpu: reports.iter().map(|report| report.cpu).sum(),
            memory: reports.iter().map(|report| report.memory).sum(),
            errors,
        }
    }

    /// What a perfect first-come-first-served queue would make every client wait, in microseconds: all clients, each
    /// with one piece of work in it, served at this run's pace. None if clients pause, so that not all are in the queue.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub fn ideal(&self) -> Option<f64> {
        (!self.pauses && self.pace > 0.0).then(|| self.clients as f64 / self.pace * 1e6)
    }

    /// All errors together.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("could not connect"),
            Self::Login => f.write_str("could not log in"),
            Self::Server(code) => write!(f, "error {code}"),
            Self::Lost => f.write_str("connection lost"),
            Self::Protocol => f.write_str("protocol broken"),
            Self::Unfinished => f.write_str("not answered before the end"),
        }
    }
}
