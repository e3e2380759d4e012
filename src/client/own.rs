//! `pool.mode = "session"`: the backend that a client has for itself, from its login to its goodbye.
//!
//! It is taken before the client is welcome, as a server has a thread for a client before it says so: whoever finds no room is
//! told 1040 at the login, and whoever is in will not have to wait for a connection. Until its first command the client only
//! holds it; from then on it is the session's as any that is pinned. With the client it is closed: what a private connection
//! leaves behind ends with it (locks, temporary tables, roles), and the server sees one connection less.

use std::sync::Arc;
use std::time::Duration;

use super::lend::{self, Unlent};
use super::serve::Client;
use super::turn::Next;
use super::{Door, Settings};
use crate::backend::Class;
use crate::metrics::CloseReason;
use crate::pool::{Lease, Server};
use crate::session::State;

/// A client's own backend, in a box: hardly any client has one that it has not used yet.
pub(super) type Own = Box<Lease<Server>>;

/// Who asks for it. Nobody gives a backend back under this number, so none is found to be one's own from before.
const NOBODY: u64 = u64::MAX;

/// How long a login may wait for a backend. In session mode that is how clients wait for each other to leave: there must be time
/// left to say that nobody did.
pub(super) fn patience(door: &Door) -> Duration {
    let Settings { session_mode, handshake_timeout, queue_timeout, .. } = door.settings;
    if session_mode { queue_timeout.min(handshake_timeout - handshake_timeout / 4) } else { queue_timeout }
}

/// In session mode, a backend for the session that is about to begin like this: the one that the login was tried on, or another.
///
/// # Errors
/// As [`lend::take_within`].
pub(super) async fn take(
    door: &Arc<Door>,
    class: &Class,
    start: &State,
    held: Option<Lease<Server>>,
) -> Result<Option<Own>, Unlent> {
    if !door.settings.session_mode {
        return Ok(None);
    }
    let mut lease = match held {
        Some(lease) => lease,
        None => {
            let schema = start.schema().and_then(|schema| door.schemas.find(schema));
            lend::take_within(door, &mut class.clone(), NOBODY, start.id, schema, patience(door)).await?
        }
    };
    lease.pause();
    Ok(Some(Box::new(lease)))
}

impl Client {
    /// The backend that the client got at its login, if it has not used it yet and it will do.
    pub(super) fn take_own(&mut self) -> Option<Lease<Server>> {
        let mut own = *self.guest.own.take()?;
        let current = self.door.users.current(&self.guest.class.account);
        if own.era == self.guest.class.era
            && current == self.guest.class.account
            && own.is_alive()
            && self.door.is_current(&own)
        {
            return Some(own);
        }
        own.discard(CloseReason::Stale);
        None
    }

    /// The same, with the right to run its first turn.
    ///
    /// # Errors
    /// What to do instead: the client was told that it waited too long, or is gone.
    pub(super) async fn begin_own(&mut self) -> Result<Option<Lease<Server>>, Next> {
        let Some(mut own) = self.take_own() else { return Ok(None) };
        match self.allowed(&mut own).await {
            Ok(()) => Ok(Some(own)),
            Err(next) => {
                self.guest.own = Some(Box::new(own));
                Err(next)
            }
        }
    }

    /// In session mode no backend survives its client.
    pub(super) fn close_own(&mut self) {
        if !self.door.settings.session_mode {
            return;
        }
        let kept = self.lease.take().or_else(|| self.kept_for_us());
        if let Some(own) = kept.or_else(|| self.guest.own.take().map(|own| *own)) {
            own.discard(CloseReason::ClientLeft);
        }
    }
}
