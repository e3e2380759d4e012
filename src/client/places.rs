//! Places for clients: so many of a user, or in a schema, and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places, of which each client takes one.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Zero is no limit.
    most: usize,
    taken: Arc<AtomicUsize>,
}

impl Places {
    /// So many; as many as are wanted if that is zero.
    pub(super) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// One of them, until it is dropped.
    ///
    /// # Errors
    /// How many there are, if all are taken.
    pub(super) fn take(&self) -> Result<Place, usize> {
        let most = if self.most == 0 { usize::MAX } else { self.most };
        let one_more = |taken| if taken < most { Some(taken + 1) } else { None };
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Place(Some(Arc::clone(&self.taken)))),
            Err(_) => Err(most),
        }
    }

    #[cfg(test)]
    pub(super) fn are_free(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == 0
    }
}

/// The right of one client to be here.
#[derive(Debug)]
#[must_use = "dropping it gives the place away"]
pub struct Place(Option<Arc<AtomicUsize>>);

impl Place {
    /// Where nothing is limited.
    pub(super) fn unlimited() -> Self {
        Self(None)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(taken) = &self.0 {
            taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
