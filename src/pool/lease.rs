//! A lease: the right to use one connection, as a guard.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use super::admission::{Grant, SlotId};
use super::queue::Turn;
use super::shell::now;
use super::{CloseReason, Connector, LeaseError, LeaseKind, Pool};

/// The right to use one connection.
///
/// It ends by [`Lease::release`], between two turns. Dropped in any other way, in a panic too, the connection is closed
/// and its room is free for the next.
pub struct Lease<C: Connector> {
    pool: Arc<Pool<C>>,
    /// `None` only while the lease is ending.
    conn: Option<C::Conn>,
    slot: SlotId,
    kind: LeaseKind,
    /// Does it count as running, if that is limited?
    running: bool,
}

impl<C: Connector> Lease<C> {
    pub(super) fn new(pool: &Arc<Pool<C>>, conn: C::Conn, grant: Grant) -> Self {
        Self { pool: Arc::clone(pool), conn: Some(conn), slot: grant.slot, kind: grant.kind, running: true }
    }

    /// What the connection was before.
    #[must_use]
    pub fn kind(&self) -> LeaseKind {
        self.kind
    }

    /// Between two turns, the session keeps it: others may run meanwhile.
    pub fn pause(&mut self) {
        if self.running && self.pool.limits_running() {
            self.running = false;
            self.pool.locked(|inner| inner.admission.pause(self.slot, now()));
        }
    }

    /// Is its session's turn running, as far as `scheduler.max_running` is concerned?
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// After [`Lease::pause`]: the right to run the next turn, now or when others have ended. Dropping the future gives up
    /// the place in line.
    ///
    /// # Errors
    /// [`LeaseError::QueueTimeout`]; the session still has its connection.
    pub async fn resume(&mut self, limit: Duration) -> Result<(), LeaseError<C::Error>> {
        if self.running {
            return Ok(());
        }
        if let Some((ticket, call)) = self.pool.locked(|inner| inner.resume(self.slot)) {
            Turn::new(&self.pool, ticket, call).wait(self.pool.wait_limit(limit)).await?;
        }
        self.running = true;
        Ok(())
    }

    /// Between two turns: back to the pool, at once to the oldest ticket that it can serve.
    pub fn release(mut self, owner: u64, state: u64) {
        if let Some(conn) = self.conn.take() {
            self.pool.locked(|inner| {
                inner.park(self.slot, conn);
                inner.admission.release(self.slot, owner, state, now());
            });
        }
    }

    /// After [`Pool::inspect`]: back to where it was, in this state.
    pub fn inspected(mut self, state: u64) {
        if let Some(conn) = self.conn.take() {
            self.pool.locked(|inner| {
                inner.park(self.slot, conn);
                inner.admission.inspected(self.slot, state, now());
            });
        }
    }

    /// Closes the connection and frees its room.
    pub fn discard(mut self, reason: CloseReason) {
        self.end(reason);
    }

    /// Back to the pool as it came.
    fn put_back(mut self) {
        if let Some(conn) = self.conn.take() {
            self.pool.locked(|inner| {
                inner.park(self.slot, conn);
                inner.admission.put_back(self.slot, now());
            });
        }
    }

    /// The connection is dead. Its slot is not free before the caller says so.
    pub(super) fn bury(mut self) -> SlotId {
        if let Some(conn) = self.conn.take() {
            self.pool.dispose(self.slot, conn, CloseReason::Lost);
        }
        self.slot
    }

    fn end(&mut self, reason: CloseReason) {
        if let Some(conn) = self.conn.take() {
            // Before the goodbye begins: its end, and with it the slot's, may come at any time from then on.
            self.pool.locked(|inner| inner.admission.closing(self.slot));
            if self.pool.dispose(self.slot, conn, reason) {
                self.pool.locked(|inner| inner.admission.closed(self.slot));
            }
        }
    }
}

impl<C: Connector> Drop for Lease<C> {
    fn drop(&mut self) {
        self.end(CloseReason::Dirty);
    }
}

impl<C: Connector> Deref for Lease<C> {
    type Target = C::Conn;

    fn deref(&self) -> &C::Conn {
        self.conn.as_ref().expect("a lease has its connection until it ends")
    }
}

impl<C: Connector> DerefMut for Lease<C> {
    fn deref_mut(&mut self) -> &mut C::Conn {
        self.conn.as_mut().expect("a lease has its connection until it ends")
    }
}

impl<C: Connector> fmt::Debug for Lease<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("slot", &self.slot).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A lease on its way to a waiter. If nobody opens it, it goes back unused, so that a vanished waiter loses nothing.
pub(super) struct Parcel<C: Connector>(Option<Lease<C>>);

impl<C: Connector> Parcel<C> {
    pub(super) fn new(lease: Lease<C>) -> Self {
        Self(Some(lease))
    }

    pub(super) fn open(mut self) -> Lease<C> {
        self.0.take().expect("a parcel is opened once")
    }
}

impl<C: Connector> Drop for Parcel<C> {
    fn drop(&mut self) {
        if let Some(lease) = self.0.take() {
            lease.put_back();
        }
    }
}
