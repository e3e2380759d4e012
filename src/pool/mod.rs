//! Who may use which backend connection, and when.
//!
//! Two layers. `admission` decides: events and `now` in, decisions out. The shell (`shell`, `queue`, `lease`, `dial`,
//! `keeper`) keeps it behind one mutex, parks the idle connections, runs the dials and carries out the decisions.
//!
//! ```text
//!            try_lease / lease                 release
//!   client ─────────────────────▶ Lease ───────────────────▶ handed to the oldest ticket, or idle
//!      │  nothing idle                │ discard, drop
//!      ▼                              ▼
//!   ticket in line ◀── grant ──   room freed ── dial for the oldest ticket that has none
//! ```
//!
//! With `scheduler.max_running` a lease also is the right to run one turn. A session that keeps its connection pauses
//! between turns ([`Lease::pause`]) and asks again ([`Lease::resume`]).
//!
//! Promises: never more than `max_connections` connections open, being opened or being closed; first come, first
//! served; a connection that was not expressly released is never used again.
//!
//! What it must not know: what a session is. A request carries a class (connections of one class are interchangeable),
//! an owner and a state as opaque numbers, and the time it may wait.
//!
//! Tests: `admission` from tables of events and against a model with random events, the shell with a dummy connector
//! and paused time.

mod admission;
mod dial;
mod keeper;
mod lease;
mod queue;
mod servers;
mod shell;
mod survey;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

pub use self::admission::Whose;
pub use self::lease::Lease;
pub use self::servers::Server;
pub use self::shell::Pool;
pub use crate::backend::Party;
pub use crate::metrics::{CloseReason, LeaseKind};

/// Opens connections for a [`Pool`], looks after idle ones, and closes them.
pub trait Connector: Send + Sync + 'static {
    /// A connection to the server. It is moved at every lease and release: keep it small, or in a box.
    type Conn: Send + 'static;
    /// Connections of one class are interchangeable. Cheap to clone (an `Arc` inside) and to hash.
    type Class: Clone + Eq + Hash + Send + Sync + 'static;
    /// Why a dial failed. One failure may answer many tickets.
    type Error: Clone + Send + Sync + std::fmt::Debug + 'static;

    /// Dials and logs in; has a deadline of its own. When it returns an error, or is dropped, nothing is left open.
    fn open(&self, class: &Self::Class) -> impl Future<Output = Result<Self::Conn, Failure<Self::Error>>> + Send;

    /// Is this idle connection still alive, with nothing to be read? Cheap, without a system call where possible, and
    /// without calling the pool.
    fn is_alive(&self, conn: &mut Self::Conn) -> bool;

    /// Says goodbye and waits, for a bounded time, until the server has let go: only then is the room free again.
    fn close(&self, conn: Self::Conn) -> impl Future<Output = ()> + Send + 'static;
}

/// A failed dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure<E> {
    /// What tickets are told.
    pub error: E,
    /// What the pool makes of it.
    pub kind: FailureKind,
}

/// What a failed dial says about the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// Nothing listens there. Nobody dials for a while; tickets that no open connection could serve fail at once.
    Refused,
    /// No answer in time. As `Refused`.
    Timeout,
    /// No room for anybody: the server's 1040, or no source port left. Tickets keep waiting; a retry after a while.
    Full,
    /// No room for this account: 1203, 1226. As `Full`, but other classes are not held back.
    AccountFull,
    /// The server rejects the account (1045 and kin). Fails this class's tickets, unless it has open connections.
    Account,
    /// Anything else. As `Account`, but only when no other dial of the class is under way.
    Other,
}

/// Somebody wants a connection.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a, K> {
    /// Which connections will do.
    pub class: &'a K,
    /// The user that all connections of this class are for.
    pub party: &'a Party,
    /// The schema of the session, if that has limits of its own.
    pub schema: Option<SchemaId>,
    /// Who asks: the session's number. A connection goes back to the one who had it last, if it is free.
    pub owner: u64,
    /// The state it needs; equal numbers need no restore.
    pub state: u64,
    /// How long it may wait; at most `scheduler.queue_timeout`.
    pub wait: Duration,
}

/// The place of a schema in `[[limits.schemas]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaId(pub u16);

/// No connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError<E> {
    /// `scheduler.queue_timeout`, or the request's own limit, ran out.
    #[error("waited {waited:?} for a backend connection (limit {limit:?})")]
    QueueTimeout {
        /// The time spent in line.
        waited: Duration,
        /// The limit that ran out.
        limit: Duration,
    },
    /// As many tickets are in line as may be.
    #[error("{limit} clients are waiting for a backend connection already ({whose:?})")]
    QueueFull {
        /// How many that is.
        limit: usize,
        /// Whose limit.
        whose: Whose,
    },
    /// A dial failed, and no open connection could serve instead.
    #[error("no backend connection could be opened: {0:?}")]
    Open(E),
    /// The pool is closed.
    #[error("the pool is closed")]
    Closed,
}

/// What there is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Being dialed and logged in.
    pub opening: usize,
    /// Nobody's.
    pub idle: usize,
    /// Leased.
    pub leased: usize,
    /// Being closed; room is free again when they are gone.
    pub closing: usize,
    /// Tickets in line.
    pub waiting: usize,
    /// Sessions that hold a connection and wait for their next turn.
    pub returning: usize,
    /// Turns that run, if their number is limited.
    pub running: usize,
    /// Turns that run for so long that they do not count any more.
    pub stalled: usize,
}

impl Counts {
    /// Connections that count against `max_connections`.
    #[must_use]
    pub fn total(&self) -> usize {
        self.opening + self.idle + self.leased + self.closing
    }
}
