//! After a turn: what must be asked, what is kept or given back, and what a broken turn leaves.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::killer;
use super::lend;
use super::registry::Summons;
use super::reply::Fault;
use super::serve::{Client, goodbye_of};
use super::turn::Next;
use crate::backend::{Loan, QueryError};
use crate::metrics::{CloseReason, Goodbye};
use crate::pool::{Lease, Server};
use crate::relay::{Broken, TurnError};
use crate::session::{Ask, Followup};

/// The last insert id of a backend whose own is not known: no session wants this one, so each sets its own.
const UNKNOWN: u64 = u64::MAX;

impl Client {
    /// The turn is over: asks what the server did not report, and lets go if nothing pins.
    pub(super) async fn after(&mut self, mut lease: Lease<Server>) -> Next {
        let mut sound = match self.session.end() {
            Followup::None => true,
            Followup::Ask(first) => Box::pin(self.ask(&mut lease, first)).await,
        };
        self.note_routines();
        lease.defaults_given();
        if sound && self.session.rearm_trackers() {
            sound = Box::pin(lease.arm_trackers()).await.is_ok();
        }
        if self.registered.entry.runs_nothing().await && sound {
            // What absorbs a kill is a statement too: what it would wipe out is saved first.
            sound = Box::pin(self.pay(&mut lease)).await && Box::pin(absorb_kill(&mut lease)).await;
            self.session.overrun();
        }
        if !sound {
            lease.discard(CloseReason::Lost);
            return ControlFlow::Break(Goodbye::BackendLost);
        }
        let before = lease.state.state.id;
        lease.state = self.session.held();
        if std::mem::take(&mut self.foreign_schema) && lease.state.state.id == before {
            // The command did not choose a schema after all: the backend is still in somebody else's.
            lease.discard(CloseReason::Dirty);
            return ControlFlow::Continue(());
        }
        self.let_go(lease, ControlFlow::Continue(())).await
    }

    /// Asks the server what it did not report, until nothing is left to ask. False if the backend is lost.
    async fn ask(&mut self, lease: &mut Lease<Server>, first: Ask) -> bool {
        let mut next = Followup::Ask(first);
        while let Followup::Ask(ask) = next {
            self.door.metrics.session.asks.inc();
            match lease.ask(&ask).await {
                Ok(rows) if ask == Ask::Role => {
                    let role = rows.as_ref().and_then(|rows| rows.first()?.first()?.as_deref());
                    let own = rows.is_some() && lease.is_own_role(role);
                    self.session.answer(&ask, own.then(|| vec![vec![Some(b"1".to_vec())]]));
                }
                Ok(rows) => self.session.answer(&ask, rows),
                Err(_) => return false,
            }
            next = self.session.end();
        }
        true
    }

    /// Keeps the backend while something pins the session to it, else gives it back, with what it would miss.
    pub(super) async fn let_go(&mut self, mut lease: Lease<Server>, next: Next) -> Next {
        self.show_pins();
        if self.is_pinned() {
            self.lease = Some(lease);
            return next;
        }
        let owed = self.session.owes();
        if !owed.is_empty() {
            let loan = Arc::new(Loan::new(self.owner(), owed));
            self.loan = Some(Arc::clone(&loan));
            lease.loan = Some(loan);
            lease.state.last_insert_id = UNKNOWN;
        }
        lend::give_back(lease, self.owner());
        next
    }

    /// The turn broke: the backend goes, and the client hears why if it can.
    pub(super) async fn broken(&mut self, lease: Lease<Server>, broken: Broken) -> Next {
        let was_killed = self.registered.entry.runs_nothing().await;
        tracing::debug!(id = self.registered.entry.id, thread_id = lease.thread_id, error = %broken.error, was_killed, "a turn broke");
        let pinned = self.is_pinned();
        let foreign = std::mem::take(&mut self.foreign_schema);
        let (fault, goodbye, reason) = match broken.error {
            TurnError::ClientGone(error) => {
                if broken.finished_alone && !foreign {
                    // To be reset on the way out.
                    self.lease = Some(lease);
                } else {
                    killer::undertake(&self.door, &self.guest.class, lease);
                }
                return ControlFlow::Break(goodbye_of(&error));
            }
            TurnError::TooLarge { limit } => {
                self.door.metrics.client.refusals.get(crate::metrics::Limit::MaxPacket).inc();
                (Fault::PacketTooLarge { limit }, Some(Goodbye::Limit), CloseReason::Dirty)
            }
            TurnError::BackendLost(_) if self.registered.entry.summons() == Some(Summons::Kill) => {
                // Its connection to the server was killed with it: a server says nothing then.
                lease.discard(CloseReason::Lost);
                return ControlFlow::Break(Goodbye::Killed);
            }
            TurnError::BackendLost(_) if pinned || !self.command_taken => {
                // What it has is gone with its connection, and so is the client's: without a word, as at the server.
                lease.discard(CloseReason::Lost);
                return ControlFlow::Break(Goodbye::BackendLost);
            }
            TurnError::BackendLost(error) => {
                (Fault::BackendLost { reason: error.to_string() }, None, CloseReason::Lost)
            }
            TurnError::Restore { code, state, message } => {
                self.door.metrics.session.restore_failures.inc();
                self.door.proven.remove(self.session.state().id);
                (Fault::NotRestored { code, state, message }, Some(Goodbye::BackendLost), CloseReason::Dirty)
            }
            error @ (TurnError::BackendProtocol(_) | TurnError::BackendMalformed(_)) => {
                tracing::error!(id = self.registered.entry.id, %error, "closing a backend and its client");
                (Fault::BackendLost { reason: error.to_string() }, Some(Goodbye::Internal), CloseReason::Dirty)
            }
        };
        lease.discard(reason);
        match goodbye {
            Some(goodbye) if broken.reply_started => ControlFlow::Break(goodbye),
            Some(goodbye) => ControlFlow::Break(self.last_words(1, &fault, goodbye).await),
            // An answer has begun: nothing that is added now would be understood.
            None if broken.reply_started => ControlFlow::Break(Goodbye::BackendLost),
            None => self.say(&fault).await,
        }
    }
}

/// A KILL QUERY arrived on this backend, perhaps too late to hit its statement: it must hit nobody else's.
async fn absorb_kill(lease: &mut Lease<Server>) -> bool {
    for _ in 0..2 {
        match lease.query("DO 0").await {
            Ok(_) => return true,
            Err(QueryError::Refused { .. }) => {}
            Err(_) => return false,
        }
    }
    false
}
