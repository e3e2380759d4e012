//! One dial, from the decision to its result.

use std::sync::Arc;

use super::admission::SlotId;
use super::shell::now;
use super::{Connector, Failure, FailureKind, Pool};

/// A dial under way. Dropped without a result (a panic, the end of the runtime), its slot is free again.
pub(super) struct Dial<C: Connector> {
    pool: Arc<Pool<C>>,
    slot: SlotId,
    ended: bool,
}

impl<C: Connector> Dial<C> {
    /// Dials in a task of its own: a waiter that vanishes must not take the dial with it.
    pub(super) fn begin(pool: &Arc<Pool<C>>, slot: SlotId, class: C::Class) {
        let dial = Self { pool: Arc::clone(pool), slot, ended: false };
        pool.runtime.spawn(async move {
            let open = dial.pool.connector.open(&class);
            if let Some(result) = dial.pool.stop.run_until_cancelled(open).await {
                dial.end(result);
            }
        });
    }

    fn end(mut self, result: Result<C::Conn, Failure<C::Error>>) {
        self.ended = true;
        self.pool.locked(|inner| match result {
            Ok(conn) => {
                inner.park(self.slot, conn);
                inner.admission.opened(self.slot, now());
            }
            Err(Failure { error, kind }) => {
                if matches!(kind, FailureKind::Refused | FailureKind::Timeout) {
                    inner.unreachable = Some(error.clone());
                }
                inner.this_error = Some(error);
                inner.admission.failed(self.slot, Some(kind), now());
            }
        });
    }
}

impl<C: Connector> Drop for Dial<C> {
    fn drop(&mut self) {
        if !self.ended {
            self.pool.locked(|inner| inner.admission.failed(self.slot, None, now()));
        }
    }
}
