//! Which era of the server's global variables it is, and whether one may be about to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts eras: see [`Defaults`](super::Defaults).
#[derive(Debug, Default)]
pub(super) struct Eras {
    /// How many have ended.
    now: AtomicU64,
    /// How many statements were sent that may change a global variable.
    begun: AtomicU64,
    /// How many of them are not answered yet.
    running: AtomicU64,
    /// How many turns give something its default.
    falling: AtomicU64,
    /// One of either has ended.
    ended: Notify,
}

/// A moment at which no global variable was being changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Calm {
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

    /// Waits until no global variable is being changed.
    pub(super) async fn calmed(&self) {
        self.until(|| self.running.load(Ordering::SeqCst) == 0).await;
    }

    /// Waits until no turns give anything its default, but for so many.
    pub(super) async fn landed(&self, but: u64) {
        self.until(|| self.falling.load(Ordering::SeqCst) <= but).await;
    }

    async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            let ended = self.ended.notified();
            if holds() {
                return;
            }
            ended.await;
        }
    }

    /// A turn begins that gives something its default; none while a global variable is being changed.
    pub(super) fn fall(self: &Arc<Self>) -> Option<Falling> {
        self.falling.fetch_add(1, Ordering::SeqCst);
        let falling = Falling(Arc::clone(self));
        (self.running.load(Ordering::SeqCst) == 0).then_some(falling)
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
        self.0.ended.notify_waiters();
    }
}

/// A turn that gives something its default. Until it is over, whoever is about to change a global variable waits.
#[derive(Debug)]
pub(super) struct Falling(Arc<Eras>);

impl Drop for Falling {
    fn drop(&mut self) {
        self.0.falling.fetch_sub(1, Ordering::SeqCst);
        self.0.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn whoever_waits_goes_on_when_all_changes_are_answered() {
        let eras = Eras::default();
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(pin!(eras.calmed()).poll(&mut cx), Poll::Ready(()));
        let (one, other) = (eras.change(), eras.change());
        let mut calmed = pin!(eras.calmed());
        assert_eq!(calmed.as_mut().poll(&mut cx), Poll::Pending);
        drop(one);
        assert_eq!(calmed.as_mut().poll(&mut cx), Poll::Pending);
        drop(other);
        assert_eq!(calmed.as_mut().poll(&mut cx), Poll::Ready(()));
    }

    #[test]
    fn defaults_and_changes_do_not_meet() {
        let eras = Arc::<Eras>::default();
        let mut cx = Context::from_waker(Waker::noop());
        let turn = eras.fall().unwrap();
        let change = eras.change();
        assert!(eras.fall().is_none(), "not while one is under way");
        assert_eq!(pin!(eras.landed(1)).poll(&mut cx), Poll::Ready(()), "its own turn");
        let mut landed = pin!(eras.landed(0));
        assert_eq!(landed.as_mut().poll(&mut cx), Poll::Pending);
        drop(turn);
        assert_eq!(landed.as_mut().poll(&mut cx), Poll::Ready(()));
        drop(change);
        assert!(eras.fall().is_some());
    }

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
