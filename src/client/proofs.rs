//! Passwords that are being proven at the server just now: a thousand clients of one account who come in the same moment make
//! one proof and not a thousand.
//!
//! Who finds the same password of the same user being proven waits for the end of that, and then looks into what is
//! remembered, as if it had come a moment later. Nothing else is shared: what fails is tried anew by each.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::protocol::auth::Secret;

/// Passwords that are being proven.
#[derive(Debug, Default)]
pub struct Proofs(Mutex<HashMap<String, Vec<Arc<Proof>>>>);

#[derive(Debug)]
struct Proof {
    password: Secret,
    ended: Notify,
    is_over: std::sync::atomic::AtomicBool,
}

/// A proof under way, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Proving<'a> {
    proofs: &'a Proofs,
    user: String,
    proof: Arc<Proof>,
}

impl Proofs {
    /// The right to prove this password, now; none once somebody else, who was at it already, has come to an end.
    pub(super) async fn begin(&self, user: &str, password: &Secret) -> Option<Proving<'_>> {
        let under_way = {
            let mut all = self.0.lock();
            let of_user = all.entry(user.to_owned()).or_default();
            match of_user.iter().find(|it| it.password == *password) {
                Some(proof) => Arc::clone(proof),
                None => {
                    let proof = Arc::new(Proof {
                        password: password.clone(),
                        ended: Notify::new(),
                        is_over: std::sync::atomic::AtomicBool::new(false),
                    });
                    of_user.push(Arc::clone(&proof));
                    return Some(Proving { proofs: self, user: user.to_owned(), proof });
                }
            }
        };
        loop {
            let ended = under_way.ended.notified();
            if under_way.is_over.load(std::sync::atomic::Ordering::Acquire) {
                return None;
            }
            ended.await;
        }
    }
}

impl Drop for Proving<'_> {
    fn drop(&mut self) {
        let mut all = self.proofs.0.lock();
        if let Some(of_user) = all.get_mut(&self.user) {
            of_user.retain(|it| !Arc::ptr_eq(it, &self.proof));
            if of_user.is_empty() {
                all.remove(&self.user);
            }
        }
        self.proof.is_over.store(true, std::sync::atomic::Ordering::Release);
        self.proof.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn one_proves_and_the_others_wait_for_its_end() {
        let (proofs, password, other) = (Proofs::default(), Secret::from("x"), Secret::from("y"));
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(proving)) = pin!(proofs.begin("app", &password)).poll(&mut cx) else { panic!() };
        let mut waiting = pin!(proofs.begin("app", &password));
        let mut late = pin!(proofs.begin("app", &password));
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        // Another password, and another user, are another matter.
        assert!(matches!(pin!(proofs.begin("app", &other)).poll(&mut cx), Poll::Ready(Some(_))));
        assert!(matches!(pin!(proofs.begin("web", &password)).poll(&mut cx), Poll::Ready(Some(_))));
        assert!(late.as_mut().poll(&mut cx).is_pending());
        drop(proving);
        assert!(matches!(waiting.as_mut().poll(&mut cx), Poll::Ready(None)));
        assert!(matches!(late.as_mut().poll(&mut cx), Poll::Ready(None)));
        assert!(proofs.0.lock().is_empty());
        assert!(matches!(pin!(proofs.begin("app", &password)).poll(&mut cx), Poll::Ready(Some(_))), "anew");
    }
}
