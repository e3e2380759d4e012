//! Getting a backend, paying its last user's debts, and the words when there is none.

use std::sync::Arc;
use std::time::Duration;

use super::Door;
use super::reply::Fault;
use crate::backend::{Backend, Class, Loan, OpenError};
use crate::metrics::{CloseReason, LeaseKind, Limit, OpenResult};
use crate::pool::{Lease, LeaseError, Request, SchemaId, Server, Whose};

/// Why there is no backend.
pub(super) type Unlent = LeaseError<OpenError>;

/// A backend of this class, if one is idle. Its last user's debts are not paid yet.
pub(super) fn take_now(
    door: &Arc<Door>,
    class: &Class,
    owner: u64,
    state: u64,
    schema: Option<SchemaId>,
) -> Option<Lease<Server>> {
    loop {
        let lease = door.pool.try_lease(&request(door, class, owner, state, schema))?;
        if fits(door, &lease) {
            return Some(lease);
        }
        lease.discard(CloseReason::Stale);
    }
}

/// Has this backend the defaults of its class? One that was opened while a global variable was changed may have the new
/// one already: it has not if the change has come to nothing.
fn fits(door: &Door, backend: &Backend) -> bool {
    !backend.unsure || (!door.connector.is_changing() && door.is_current(backend))
}

/// May variables be given their defaults on this backend in the turn that begins now? Waits while a global variable is
/// being changed; no, if that has brought other defaults.
pub(super) async fn may_fall_back(door: &Door, backend: &mut Backend) -> bool {
    while !door.connector.defaults_begin(backend) {
        let answered = tokio::time::timeout(door.settings.queue_timeout, door.connector.calmed()).await;
        if answered.is_err() || !door.is_current(backend) {
            return false;
        }
    }
    true
}

/// As [`fits`], once the change has been answered, if it is in time.
async fn will_fit(door: &Door, backend: &Backend) -> bool {
    if backend.unsure {
        let answered = tokio::time::timeout(door.settings.queue_timeout, door.connector.calmed()).await;
        return answered.is_ok() && fits(door, backend);
    }
    true
}

/// A backend of this class, in whatever state, now or in order of arrival; what its last session would miss is saved.
/// The class becomes that of the present era, in which alone connections are opened, and of the account's present role.
pub(super) async fn take(
    door: &Arc<Door>,
    class: &mut Class,
    owner: u64,
    state: u64,
    schema: Option<SchemaId>,
) -> Result<Lease<Server>, Unlent> {
    take_within(door, class, owner, state, schema, door.settings.queue_timeout).await
}

/// The same within this time, if that is shorter than `scheduler.queue_timeout`.
pub(super) async fn take_within(
    door: &Arc<Door>,
    class: &mut Class,
    owner: u64,
    state: u64,
    schema: Option<SchemaId>,
    wait: Duration,
) -> Result<Lease<Server>, Unlent> {
    let mut moved = false;
    loop {
        class.era = door.connector.era();
        let lease = door.pool.lease(Request { wait, ..request(door, class, owner, state, schema) }).await?;
        if !will_fit(door, &lease).await {
            lease.discard(CloseReason::Stale);
        } else if lease.is_misfit() && !moved {
            // (Once only: where every login comes with another role, one is as good as the other.)
            moved = true;
            class.account = door.users.current(&class.account);
            lease.discard(CloseReason::Stale);
        } else if let Some(lease) = settled(door, lease).await {
            return Ok(lease);
        }
    }
}

fn request<'a>(door: &Door, class: &'a Class, owner: u64, state: u64, schema: Option<SchemaId>) -> Request<'a, Class> {
    let (party, wait) = (&class.account.party, door.settings.queue_timeout);
    Request { class, party, schema, owner, state, wait }
}

/// Pays the debts of whoever used this backend last, unless that was the same session, or it is gone. None if the
/// backend is lost.
pub(super) async fn settled(door: &Arc<Door>, mut lease: Lease<Server>) -> Option<Lease<Server>> {
    let Some(loan) = lease.loan.take() else { return Some(lease) };
    // Nobody but the backend holds it: the session is gone, and what it left stays unknown.
    if lease.kind() == LeaseKind::Own || Arc::strong_count(&loan) == 1 {
        return Some(lease);
    }
    door.metrics.session.saves.inc();
    let door = Arc::clone(door);
    // A task of its own: should this client go away half way, the other one still gets its answers.
    let settling = door.tasks.spawn(settle(Arc::clone(&door), loan, lease));
    settling.await.ok().flatten()
}

async fn settle(door: Arc<Door>, loan: Arc<Loan>, mut lease: Lease<Server>) -> Option<Lease<Server>> {
    match loan.settle(&mut lease).await {
        Ok(settlement) if settlement.binds() => {
            // What cannot be carried stays where it is: so the backend is its own again, before it learns why.
            match door.registry.find(loan.owner as u32) {
                Some(entry) => entry.keep(loan.owner, lease),
                None => lease.discard(CloseReason::Dirty),
            }
            None
        }
        Ok(_) => Some(lease),
        Err(_) => {
            lease.discard(CloseReason::Lost);
            None
        }
    }
}

/// Gives a backend back between two turns.
pub(super) fn give_back(mut lease: Lease<Server>, owner: u64) {
    lease.defaults_given();
    let state = lease.state.state.id;
    lease.release(owner, state);
}

/// Counts why there is no backend, and words it.
pub(super) fn fault(door: &Door, unlent: &Unlent) -> Fault {
    match unlent {
        LeaseError::QueueTimeout { waited, limit } => {
            door.metrics.client.refusals.get(Limit::QueueTimeout).inc();
            if let Some(reason) = door.connector.shortage() {
                return Fault::NoPorts { reason };
            }
            if door.settings.session_mode {
                return Fault::NoRoom { pool: door.settings.max_connections };
            }
            Fault::QueueTimeout {
                waited_ms: waited.as_millis(),
                limit_ms: limit.as_millis(),
                pool: door.settings.max_connections,
            }
        }
        LeaseError::QueueFull { limit, whose } => {
            let (counted, setting) = match whose {
                Whose::Everybody => (Limit::MaxWaiting, "scheduler.max_waiting"),
                Whose::User => (Limit::UserMaxWaiting, "the user's max_waiting in [[auth.users]]"),
                Whose::Schema => (Limit::SchemaMaxWaiting, "the schema's max_waiting in [[limits.schemas]]"),
            };
            door.metrics.client.refusals.get(counted).inc();
            Fault::QueueFull { limit: *limit, setting }
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
        OpenResult::Addresses => Fault::NoPorts { reason: error.message.clone() },
        _ => Fault::Unreachable { reason: error.message.clone() },
    }
}
