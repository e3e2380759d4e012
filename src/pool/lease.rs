//! A lease: the right to use one connection, as a guard.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{CloseReason, Connector, LeaseKind, Pool};

/// The right to use one connection. Dropped without [`Lease::release`], the connection is closed and its room is free.
pub struct Lease<C: Connector> {
    pool: Arc<Pool<C>>,
    conn: Option<C::Conn>,
    kind: LeaseKind,
}

impl<C: Connector> Lease<C> {
    /// What the connection was before.
    #[must_use]
    pub fn kind(&self) -> LeaseKind {
        self.kind
    }

    /// Between two turns: back to the pool, at once to the oldest ticket that it can serve.
    pub fn release(self, owner: u64, state: u64) {
        todo!("{owner} {state}")
    }

    /// Closes the connection and frees its room.
    pub fn discard(self, reason: CloseReason) {
        todo!("{reason:?} {}", self.pool.waiting())
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
