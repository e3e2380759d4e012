//! Looking at a server's greeting, together: a thousand clients who need it in the same moment make one look and not a
//! thousand, and all get what comes of it.
//!
//! A greeting is as the global variables are when it is sent (the character set, the kinds of compression). So each era
//! has a look of its own.

use std::future::Future;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::{Connector, OpenError};

type Look = OnceCell<Result<(), OpenError>>;

/// The look that is being taken, and in which era it began.
#[derive(Debug, Default)]
pub(super) struct Meeting(Mutex<(u64, Weak<Look>)>);

impl Meeting {
    /// What comes of the look that is being taken in this era: somebody else's, or this one. If whoever takes it goes away,
    /// another one begins anew.
    async fn join(&self, era: u64, look: impl Future<Output = Result<(), OpenError>>) -> Result<(), OpenError> {
        let shared = {
            let mut current = self.0.lock();
            let under_way = current.1.upgrade().filter(|it| current.0 == era && !it.initialized());
            under_way.unwrap_or_else(|| {
                let begun = Arc::default();
                *current = (era, Arc::downgrade(&begun));
                begun
            })
        };
        shared.get_or_init(|| look).await.clone()
    }
}

impl Connector {
    /// Makes sure that the server's greeting is known as it is in this era.
    ///
    /// # Errors
    /// As [`Connector::open`], if nothing at all is known of the server. (One that was met before and does not answer now is
    /// as it was, until a login says otherwise.)
    pub async fn meet(&self) -> Result<(), OpenError> {
        let era = self.era();
        let facts = self.facts();
        if facts.as_ref().is_some_and(|facts| facts.greeted == era) {
            return Ok(());
        }
        let met = Box::pin(self.meeting.join(era, self.probe())).await;
        if facts.is_some() { Ok(()) } else { met }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use tokio::sync::oneshot;

    use super::*;
    use crate::metrics::OpenResult;

    fn refused() -> Result<(), OpenError> {
        Err(OpenError::ours(OpenResult::Refused, "nobody is there"))
    }

    #[test]
    fn who_comes_meanwhile_gets_what_comes_of_it() {
        let (meeting, mut cx) = (Meeting::default(), Context::from_waker(Waker::noop()));
        let (answer, answered) = oneshot::channel();
        let mut first = pin!(meeting.join(3, async { answered.await.unwrap() }));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let mut second = pin!(meeting.join(3, async { panic!("a second look") }));
        assert!(second.as_mut().poll(&mut cx).is_pending());
        // In a later era it may be another one already.
        assert_eq!(pin!(meeting.join(4, ready(Ok(())))).poll(&mut cx), Poll::Ready(Ok(())));
        answer.send(refused()).unwrap();
        assert_eq!(first.poll(&mut cx), Poll::Ready(refused()));
        assert_eq!(second.poll(&mut cx), Poll::Ready(refused()));
        assert_eq!(pin!(meeting.join(3, ready(Ok(())))).poll(&mut cx), Poll::Ready(Ok(())), "anew");
    }

    #[test]
    fn another_one_looks_if_the_first_goes_away() {
        let (meeting, mut cx) = (Meeting::default(), Context::from_waker(Waker::noop()));
        let mut first = Box::pin(meeting.join(0, pending()));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let mut second = pin!(meeting.join(0, ready(Ok(()))));
        assert!(second.as_mut().poll(&mut cx).is_pending());
        drop(first);
        assert_eq!(second.poll(&mut cx), Poll::Ready(Ok(())));
    }
}
