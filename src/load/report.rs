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

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Clients that had logged in when the statements began.
    pub clients: usize,
    /// How long the logins took.
    pub connecting: Duration,
    /// How long the clients asked.
    pub elapsed: Duration,
    /// Statements answered; those answered with an error count as errors instead.
    pub statements: u64,
    /// Statements a second.
    pub rate: f64,
    /// From the first byte of a statement sent to the last byte of its reply received.
    pub latency: Latency,
    /// What went wrong, most frequent first.
    pub errors: Vec<ErrorCount>,
}

/// Latencies in microseconds, as upper ends of a histogram's buckets (three significant digits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Half were at most this.
    pub p50: u64,
    /// 95 % were at most this.
    pub p95: u64,
    /// 99 % were at most this.
    pub p99: u64,
    /// The slowest.
    pub max: u64,
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
