//! Waiting in line: one ticket, one answer, one deadline.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::admission::Ticket;
use super::lease::Parcel;
use super::{Connector, Lease, LeaseError, Pool};

/// What a waiter is told.
pub(super) type Answer<C> = Result<Parcel<C>, LeaseError<<C as Connector>::Error>>;

/// The holder of a ticket. Dropped, it leaves the line.
pub(super) struct Waiter<C: Connector> {
    pool: Arc<Pool<C>>,
    ticket: Ticket,
    answer: oneshot::Receiver<Answer<C>>,
    since: Instant,
    in_line: bool,
}

impl<C: Connector> Waiter<C> {
    pub(super) fn new(pool: &Arc<Pool<C>>, ticket: Ticket, answer: oneshot::Receiver<Answer<C>>) -> Self {
        Self { pool: Arc::clone(pool), ticket, answer, since: Instant::now(), in_line: true }
    }

    pub(super) async fn wait(mut self, limit: Duration) -> Result<Lease<C>, LeaseError<C::Error>> {
        let answer = match timeout(limit, &mut self.answer).await {
            Ok(answer) => Some(answer),
            Err(_) if self.leave() => None,
            // Too late to give up: the answer was decided before the ticket left, and is on its way.
            Err(_) => Some((&mut self.answer).await),
        };
        self.in_line = false;
        let waited = self.since.elapsed();
        self.pool.metrics.pool.wait_seconds.observe(waited.as_secs_f64());
        let Some(answer) = answer else { return Err(LeaseError::QueueTimeout { waited, limit }) };
        let lease = answer.unwrap_or(Err(LeaseError::Closed))?.open();
        self.pool.metrics.pool.leases.get(lease.kind()).inc();
        Ok(lease)
    }

    fn leave(&self) -> bool {
        self.pool.locked(|inner| inner.leave(self.ticket))
    }
}

impl<C: Connector> Drop for Waiter<C> {
    fn drop(&mut self) {
        // An answer that is on its way, or here already, is dropped with the receiver: a lease in it goes on.
        if self.in_line {
            self.leave();
        }
    }
}

/// The holder of a place among those who keep their connection and wait for their next turn. Dropped, it leaves.
pub(super) struct Turn<'a, C: Connector> {
    pool: &'a Arc<Pool<C>>,
    ticket: Ticket,
    call: oneshot::Receiver<()>,
    since: Instant,
    in_line: bool,
}

impl<'a, C: Connector> Turn<'a, C> {
    pub(super) fn new(pool: &'a Arc<Pool<C>>, ticket: Ticket, call: oneshot::Receiver<()>) -> Self {
        Self { pool, ticket, call, since: Instant::now(), in_line: true }
    }

    pub(super) async fn wait(mut self, limit: Duration) -> Result<(), LeaseError<C::Error>> {
        // One who is called in the very moment of giving up has the turn.
        let called = timeout(limit, &mut self.call).await.is_ok() || !self.stay();
        self.in_line = false;
        let waited = self.since.elapsed();
        self.pool.metrics.pool.wait_seconds.observe(waited.as_secs_f64());
        if called { Ok(()) } else { Err(LeaseError::QueueTimeout { waited, limit }) }
    }

    fn stay(&self) -> bool {
        self.pool.locked(|inner| inner.stay(self.ticket))
    }
}

impl<C: Connector> Drop for Turn<'_, C> {
    fn drop(&mut self) {
        if self.in_line {
            // Called meanwhile: whoever drops this holds the lease, and pauses or ends it.
            self.stay();
        }
    }
}
