//! One logged-in connection to a server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;

use super::dial::Held;
use super::eras::Falling;
use super::kill::Thread;
use super::query::append_command;
use super::{Loan, NamesThere, Prepared, QueryError, Role};
use crate::net::{Buffer, Stream};
use crate::protocol::capability::CapabilityFlags;
use crate::protocol::command::Command;
use crate::session::BackendState;

/// One logged-in connection to a server.
#[derive(Debug)]
pub struct Backend {
    /// The socket.
    pub stream: Stream,
    /// The local port that it comes from: free when the socket is closed, and not before.
    pub(super) _from: Held,
    /// What was read and not yet dealt with; empty between turns.
    pub buffer: Buffer,
    /// How long the server may take to answer a statement of our own.
    pub patience: Duration,
    /// The server's id of this connection.
    pub thread_id: u32,
    /// Its place among our threads.
    pub(super) _thread: Thread,
    /// What was agreed on.
    pub capabilities: CapabilityFlags,
    /// What the server's session holds now, as far as a session's state goes.
    pub state: BackendState,
    /// `backend.init_sql`
    pub init_sql: Arc<[String]>,
    /// Whose statements have run on it.
    pub served: Served,
    /// User variables that were made NULL for somebody: not the same as never set.
    pub erased: BTreeSet<Box<str>>,
    /// What the session that used it last would miss if another one took over.
    pub loan: Option<Arc<Loan>>,
    /// The statements that it has prepared.
    pub prepared: Prepared,
    /// The era of the server's global variables that its defaults are of: that of its class.
    pub era: u64,
    /// A global variable may have been changed while it was opened or reset: its defaults may be those of the next era.
    pub unsure: bool,
    /// Something is given its default in the turn at hand.
    pub(super) falling: Option<Falling>,
    /// Transactions are not tracked: see [`Backend::set_quiet`].
    pub(super) quiet: bool,
    /// The role that is active on it.
    pub role: Role,
    /// Names that were given to statements prepared as text.
    pub names: NamesThere,
}

/// Whose statements a backend has run since it logged in or was reset. Code that is not seen, such as a trigger, may have
/// left user variables that nobody knows of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Served {
    /// Nobody's.
    #[default]
    Nobody,
    /// This session's alone.
    One(u64),
    /// Those of several sessions.
    Several,
}

impl Served {
    /// From here on this session's too.
    pub fn begin(&mut self, session: u64) {
        *self = match *self {
            Self::Nobody => Self::One(session),
            Self::One(other) if other == session => *self,
            Self::One(_) | Self::Several => Self::Several,
        };
    }

    /// Whether others than this session have been there.
    #[must_use]
    pub fn others(self, session: u64) -> bool {
        !matches!(self, Self::Nobody) && self != Self::One(session)
    }
}

impl Backend {
    /// The turn is over in which something was given its default.
    pub fn defaults_given(&mut self) {
        self.falling = None;
    }

    /// Does it speak CLIENT_DEPRECATE_EOF?
    #[must_use]
    pub fn deprecates_eof(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    }

    /// Does it report what statements do to its session?
    #[must_use]
    pub fn tracks(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK)
    }

    /// Is this idle connection still open, and fit for its account's sessions? Costs a system call only if something happened to it.
    pub fn is_alive(&mut self) -> bool {
        !self.is_misfit() && self.buffer.is_empty() && self.stream.is_silent()
    }

    /// Switches our trackers on.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub async fn arm_trackers(&mut self) -> Result<(), QueryError> {
        if self.tracks() {
            self.query(TRACKERS).await?;
            self.quiet = false;
        }
        Ok(())
    }

    /// Says goodbye and waits until the server has hung up. What the last session would miss is saved first.
    pub async fn close(mut self: Box<Self>) {
        if let Some(loan) = self.loan.take()
            && Arc::strong_count(&loan) > 1
            && loan.settle(&mut self).await.is_err()
        {
            return;
        }
        let mut out = BytesMut::new();
        append_command(&mut out, Command::Quit, b"");
        if self.stream.write_all(&out).await.is_ok() {
            self.read_to_the_end().await;
        }
    }

    /// Says nothing more, and waits until the server has got over what it still runs and has hung up.
    pub async fn fall_silent(&mut self) {
        if self.stream.shutdown().await.is_ok() {
            self.read_to_the_end().await;
        }
    }

    /// What is still read is of something that the server need not have got over yet.
    async fn read_to_the_end(&mut self) {
        let mut read = 0;
        self.buffer.clear();
        while let Ok(n @ 1..) = self.buffer.fill(&mut self.stream).await {
            read += n;
            if read > LAST_WORDS {
                return;
            }
            self.buffer.clear();
        }
    }
}

/// How much is read behind a goodbye, in bytes; a server that has more to say is hung up on.
const LAST_WORDS: usize = 1 << 20;

/// What a session must be told to report; the same on MariaDB and MySQL.
pub(super) const TRACKERS: &str = "SET SESSION session_track_schema=ON, session_track_state_change=ON, \
     session_track_system_variables='*', session_track_transaction_info='CHARACTERISTICS'";
