//! Killing statements: by a backend of the pool, or in need by one more.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::Door;
use super::lend::{self, Unlent};
use crate::backend::{Backend, Class, QueryError, Rows};
use crate::metrics::CloseReason;
use crate::pool::{Lease, LeaseError, Request, Server};
use crate::sql::Kill;

/// How long to wait in line for a backend of the pool: what is to be killed may be what keeps them all busy.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long the server may take to hang up on a connection that was only opened to kill by.
const GOODBYE: Duration = Duration::from_secs(1);

/// How long a killed statement keeps its room, at most, until it has ended.
const LAST_RITES: Duration = Duration::from_secs(10);

/// A connection that kills what another one of the same account runs.
pub(super) enum Killer {
    /// One of the pool.
    Pooled(Lease<Server>),
    /// One of `pool.kill_connections`, for as long as a KILL takes.
    Extra(Box<Backend>, OwnedSemaphorePermit),
}

impl Killer {
    /// A backend that is idle or becomes so in a moment; else one beyond the pool, if that is allowed at all.
    pub(super) async fn find(door: &Arc<Door>, class: &Class) -> Result<Self, Unlent> {
        let mut class = class.clone();
        if door.settings.kill_connections == 0 {
            return lend::take(door, &mut class, 0, 0, None).await.map(Self::Pooled);
        }
        class.era = door.connector.era();
        let (class, party) = (&class, &class.account.party);
        let request = Request { class, party, schema: None, owner: 0, state: 0, wait: PATIENCE };
        if let Ok(lease) = door.pool.lease(request).await
            && let Some(lease) = lend::settled(door, lease).await
        {
            return Ok(Self::Pooled(lease));
        }
        let room = Arc::clone(&door.killing).acquire_owned().await.map_err(|_| LeaseError::Closed)?;
        door.metrics.backend.kill_connections.inc();
        let backend = door.connector.open(class).await.map_err(LeaseError::Open)?;
        Ok(Self::Extra(Box::new(backend), room))
    }

    fn backend(&mut self) -> &mut Backend {
        match self {
            Self::Pooled(lease) => lease,
            Self::Extra(backend, _) => backend,
        }
    }

    /// The server's id of its connection.
    pub(super) fn thread_id(&mut self) -> u32 {
        self.backend().thread_id
    }

    /// May its account kill what others run?
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub(super) async fn may_kill_others(&mut self) -> Result<bool, QueryError> {
        self.backend().may_kill_others().await
    }

    /// Has the server kill a thread, or what it runs.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub(super) async fn kill(&mut self, thread_id: u32, kill: Kill) -> Result<(), QueryError> {
        let how = if kill.soft { "SOFT " } else { "" };
        let what = if kill.query_only { "QUERY " } else { "" };
        self.backend().query(&format!("KILL {how}{what}{thread_id}")).await.map(|_| ())
    }

    /// The same of a thread that works for a client, unless it is gone.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub(super) async fn kill_running(&mut self, thread_id: u32, kill: Kill) -> Result<(), QueryError> {
        match self.kill(thread_id, kill).await {
            Err(QueryError::Refused { code: 1094, .. }) => Ok(()),
            killed => killed,
        }
    }

    /// Kills the statement that runs on this thread, if one does.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub(super) async fn kill_query(&mut self, thread_id: u32) -> Result<(), QueryError> {
        self.kill_running(thread_id, Kill { query_only: true, soft: false, id: None }).await
    }

    /// Asks the server.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub(super) async fn query(&mut self, sql: &str) -> Result<Rows, QueryError> {
        self.backend().query(sql).await
    }

    /// The work is done; `sound`: the connection is not lost.
    pub(super) async fn end(self, sound: bool) {
        match self {
            Self::Pooled(mut lease) if sound => {
                lease.state.warned = true;
                lend::give_back(lease, 0);
            }
            Self::Pooled(lease) => lease.discard(CloseReason::Lost),
            Self::Extra(backend, _room) => {
                // A server that does not hang up in time is on its own.
                let _ = tokio::time::timeout(GOODBYE, backend.close()).await;
            }
        }
    }
}

/// Whether the connection that said this lives on.
pub(super) fn is_sound<T>(result: &Result<T, QueryError>) -> bool {
    matches!(result, Ok(_) | Err(QueryError::Refused { .. }))
}

/// A client is gone, its statement is not: kills it, and only then frees the room, so that the server does not see one
/// connection too many.
pub(super) fn undertake(door: &Arc<Door>, class: &Class, mut lease: Lease<Server>) {
    let (task_door, class) = (Arc::clone(door), class.clone());
    door.tasks.spawn(async move {
        if let Ok(mut killer) = Killer::find(&task_door, &class).await {
            let killed = killer.kill_query(lease.thread_id).await;
            killer.end(is_sound(&killed)).await;
        }
        // A statement that was killed has not ended yet: it may have much to take back.
        let _ = tokio::time::timeout(LAST_RITES, lease.fall_silent()).await;
        lease.discard(CloseReason::Dirty);
    });
}
