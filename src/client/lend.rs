//! Getting a backend, paying its last user's debts, and the words when there is none.

use std::sync::Arc;

use super::Door;
use super::reply::Fault;
use crate::backend::{Class, OpenError};
use crate::metrics::{CloseReason, LeaseKind, Limit, OpenResult};
use crate::pool::{Lease, LeaseError, Request, Server};

/// Why there is no backend.
pub(super) type Unlent = LeaseError<OpenError>;

/// A backend of this class, in whatever state; what its last session would miss has been saved.
pub(super) async fn take(door: &Arc<Door>, class: &Class, owner: u64, state: u64) -> Result<Lease<Server>, Unlent> {
    let request = Request { class, owner, state, wait: door.settings.queue_timeout };
    loop {
        let mut lease = match door.pool.try_lease(&request) {
            Some(lease) => lease,
            None => door.pool.lease(request).await?,
        };
        let Some(loan) = lease.loan.take() else { return Ok(lease) };
        if lease.kind() == LeaseKind::Own {
            return Ok(lease);
        }
        door.metrics.session.saves.inc();
        if loan.settle(&mut lease).await.is_ok() {
            return Ok(lease);
        }
        lease.discard(CloseReason::Lost);
    }
}

/// Gives a backend back between two turns.
pub(super) fn give_back(lease: Lease<Server>, owner: u64) {
    let state = lease.state.state.id;
    lease.release(owner, state);
}

/// Counts why there is no backend, and words it.
pub(super) fn fault(door: &Door, unlent: &Unlent) -> Fault {
    match unlent {
        LeaseError::QueueTimeout { waited, limit } => {
            door.metrics.client.refusals.get(Limit::QueueTimeout).inc();
            Fault::QueueTimeout {
                waited_ms: waited.as_millis(),
                limit_ms: limit.as_millis(),
                pool: door.settings.max_connections,
            }
        }
        LeaseError::QueueFull { limit } => {
            door.metrics.client.refusals.get(Limit::MaxWaiting).inc();
            Fault::QueueFull { limit: *limit }
        }
        LeaseError::Open(error) => fault_of(error),
        LeaseError::Closed => Fault::Shutdown,
    }
}

/// Words a failed dial.
pub(super) fn fault_of(error: &OpenError) -> Fault {
    match error.kind {
        OpenResult::Full | OpenResult::Denied => {
            Fault::Server { code: error.code, state: error.state, message: error.message.clone() }
        }
        _ => Fault::Unreachable { reason: error.message.clone() },
    }
}
