//! The pool itself: admission behind a mutex, and what carries out its decisions.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Connector, Counts, Lease, LeaseError, Request};
use crate::config;
use crate::metrics::Metrics;

/// The connections to one server.
pub struct Pool<C: Connector> {
    connector: C,
    metrics: Arc<Metrics>,
}

impl<C: Connector> Pool<C> {
    /// An empty pool. Dials run on the runtime that this is called in.
    pub fn new(
        connector: C,
        settings: &config::Pool,
        scheduler: &config::Scheduler,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let _ = (settings, scheduler);
        Arc::new(Self { connector, metrics })
    }

    /// A connection that is idle now, if any; without waiting, without allocation.
    pub fn try_lease(self: &Arc<Self>, request: &Request<'_, C::Class>) -> Option<Lease<C>> {
        todo!("{} {}", request.owner, self.metrics.pool.waiting.get())
    }

    /// A connection, now or in order of arrival. Dropping the future gives up the ticket.
    pub async fn lease(self: &Arc<Self>, request: Request<'_, C::Class>) -> Result<Lease<C>, LeaseError<C::Error>> {
        todo!("{} {:p}", request.owner, &raw const self.connector)
    }

    /// Connections opened before now are closed when idle, or at release.
    pub fn retire_all(self: &Arc<Self>) {
        todo!()
    }

    /// As [`Pool::retire_all`], for one class.
    pub fn retire_class(self: &Arc<Self>, class: &C::Class) {
        let _ = class;
        todo!()
    }

    /// Tickets in line.
    pub fn waiting(&self) -> usize {
        todo!()
    }

    /// Is anybody in line? One atomic load.
    pub fn has_waiters(&self) -> bool {
        self.waiting() > 0
    }

    /// What there is now.
    pub fn counts(&self) -> Counts {
        todo!()
    }

    /// Looks after idle connections until `stop`: `idle_timeout`, `max_lifetime`, `min_idle`, those the server closed.
    pub async fn keeper(self: Arc<Self>, stop: CancellationToken) {
        stop.cancelled().await;
    }

    /// Takes nothing new, closes what is idle, and waits at most `limit` for leases to end.
    pub async fn close(self: &Arc<Self>, limit: Duration) {
        let _ = limit;
        todo!()
    }
}
