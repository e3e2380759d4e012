//! Who may kill what others run, and which threads of the server are ours.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Backend, QueryError};

/// Of whoever may kill what others run, and connect in an emergency.
const ADMINISTERS: &str = "SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = CONCAT('''', \
    SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''') \
    AND PRIVILEGE_TYPE IN ('SUPER', 'CONNECTION ADMIN', 'CONNECTION_ADMIN') LIMIT 1";

impl Backend {
    /// Whether the account may kill what others run.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub async fn may_kill_others(&mut self) -> Result<bool, QueryError> {
        Ok(!self.query(ADMINISTERS).await?.rows.is_empty())
    }
}

/// The threads of the server that work for us.
#[derive(Debug, Default)]
pub(super) struct Threads(Mutex<HashSet<u32>>);

impl Threads {
    pub(super) fn contains(&self, thread_id: u32) -> bool {
        self.0.lock().contains(&thread_id)
    }

    /// This one does, until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>, thread_id: u32) -> Thread {
        self.0.lock().insert(thread_id);
        Thread { threads: Arc::clone(self), thread_id }
    }
}

/// A place among [`Threads`].
#[derive(Debug)]
pub(super) struct Thread {
    threads: Arc<Threads>,
    thread_id: u32,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.threads.0.lock().remove(&self.thread_id);
    }
}
