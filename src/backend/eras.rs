//! Which era of the server's global variables it is, and whether one may be about to end.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts eras: see [`Defaults`](super::Defaults).
#[derive(Debug, Default)]
pub(super) struct Eras {
    /// How many have ended.
    now: AtomicU64,
    /// How many statements were sent that may change a global variable.
    begun: AtomicU64,
    /// How many of them are not answered yet.
    running: AtomicU64,
}

/// A moment at which no global variable was being changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calm {
    now: u64,
    begun: u64,
}

impl Eras {
    /// The one that it is.
    pub(super) fn now(&self) -> u64 {
        self.now.load(Ordering::Acquire)
    }

    /// A global variable was changed.
    pub(super) fn end(&self) {
        self.now.fetch_add(1, Ordering::AcqRel);
    }

    /// A statement is sent that may change a global variable, and answered when this is dropped.
    pub(super) fn change(&self) -> Changing<'_> {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.begun.fetch_add(1, Ordering::SeqCst);
        Changing(self)
    }

    /// What to compare a later moment with; none while a global variable is being changed.
    pub(super) fn calm(&self) -> Option<Calm> {
        let begun = self.begun.load(Ordering::SeqCst);
        let idle = self.running.load(Ordering::SeqCst) == 0;
        idle.then(|| Calm { now: self.now(), begun })
    }

    /// May a global variable have been changed between that moment and now?
    pub(super) fn changed_since(&self, then: Option<Calm>) -> bool {
        then.is_none() || self.calm() != then
    }
}

/// A statement runs that may change a global variable.
#[derive(Debug)]
pub struct Changing<'a>(&'a Eras);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_noticed_whenever_it_begins_and_ends() {
        let eras = Eras::default();
        let calm = eras.calm();
        assert!(!eras.changed_since(calm));
        let change = eras.change();
        assert!(eras.changed_since(calm) && eras.calm().is_none());
        let during = eras.calm();
        drop(change);
        assert!(eras.changed_since(calm), "it came and went");
        assert!(eras.changed_since(during));
        let calm = eras.calm();
        assert!(!eras.changed_since(calm));
        eras.end();
        assert!(eras.changed_since(calm) && eras.now() == 1);
    }
}
