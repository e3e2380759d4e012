//! One command that a backend must answer: lease, restore, relay, observe, let go.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use bytes::BytesMut;

use super::lend::{self, Unlent};
use super::reply::Fault;
use super::serve::{Client, goodbye_of};
use crate::backend::{Backend, Loan, QueryError};
use crate::metrics::{ClientState, CloseReason, Direction, Goodbye, LeaseKind, Metrics};
use crate::pool::{Lease, Server};
use crate::protocol::capability::{CapabilityFlags, StatusFlags};
use crate::protocol::command::Command;
use crate::protocol::packet::prepare::PrepareOk;
use crate::protocol::packet::session_track::Wishes;
use crate::protocol::response::{Body, End};
use crate::relay::{self, Broken, Channel, Dialect, Order, Traffic, TurnError, Witness};
use crate::session::{Followup, Restore, Session};
use crate::sql::{Effects, Lexer};

/// Whether the client stays.
pub(super) type Next = ControlFlow<Goodbye>;

impl Client {
    /// Relays the command at the buffer's front. `effects` is what its text does, if it was there to be read.
    pub(super) async fn turn(&mut self, command: Command, effects: Option<Effects>) -> Next {
        let mut lease = match self.lease.take() {
            Some(lease) => lease,
            None => match self.wait_for_lease().await {
                Ok(lease) => lease,
                Err(next) => return next,
            },
        };
        self.gauge.enter(ClientState::Running);
        let untouched = lease.kind() == LeaseKind::Own || self.turns_on_lease();
        if let Some(answer) = self.from_memory(untouched, effects.as_ref()).await {
            self.keep_or_release(lease);
            return answer;
        }
        let started = Instant::now();
        self.registered.entry.runs_on(lease.thread_id);
        let prefix = match self.restore(&mut lease, command, effects.as_ref()).await {
            Ok(prefix) => prefix,
            Err(fault) => return self.not_restored(lease, fault).await,
        };
        self.session.begin(command, effects.unwrap_or_default());
        let mut traffic = Traffic::default();
        let relayed = self.relay(&mut lease, command, effects.is_none(), prefix, &mut traffic).await;
        self.count(&traffic, started);
        match relayed {
            Ok(()) => self.after(lease).await,
            Err(broken) => self.broken(lease, broken).await,
        }
    }

    /// A backend, now or in line; with an eye on the client, who may go away meanwhile.
    async fn wait_for_lease(&mut self) -> Result<Lease<Server>, Next> {
        let (door, class) = (Arc::clone(&self.door), self.class.clone());
        let state = self.session.state().id;
        if let Some(lease) = lend::take_now(&door, &class, self.owner(), state).await {
            return Ok(lease);
        }
        self.gauge.enter(ClientState::Waiting);
        let taken = {
            let mut taking = Box::pin(lend::take(&door, &class, self.owner(), state));
            poll_fn(|cx| {
                if let Poll::Ready(taken) = taking.as_mut().poll(cx) {
                    return Poll::Ready(Ok(taken));
                }
                while !self.buffer.is_full() {
                    match self.buffer.poll_fill(cx, &mut self.stream) {
                        Poll::Ready(Ok(0)) => return Poll::Ready(Err(Goodbye::Closed)),
                        Poll::Ready(Ok(_)) => {}
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(goodbye_of(&error))),
                        Poll::Pending => break,
                    }
                }
                Poll::Pending
            })
            .await
        };
        match taken {
            Ok(Ok(lease)) => Ok(lease),
            Ok(Err(unlent)) => Err(self.unlent(&unlent).await),
            Err(goodbye) => Err(ControlFlow::Break(goodbye)),
        }
    }

    /// There is no backend: says why. The session goes on, unless its command cannot be skipped.
    async fn unlent(&mut self, unlent: &Unlent) -> Next {
        if let Unlent::Open(error) = unlent
            && error.code == 1045
        {
            self.door.users.forget(&self.guest.user, &self.guest.account.password);
        }
        let fault = lend::fault(&self.door, unlent);
        self.answer_fault(&fault).await
    }

    /// Brings the backend to the session's state: what must be certain first is done here, the rest is returned to go
    /// out with the command.
    async fn restore(
        &mut self,
        lease: &mut Lease<Server>,
        command: Command,
        effects: Option<&Effects>,
    ) -> Result<(BytesMut, usize), Fault> {
        if let Some(loan) = self.loan.take() {
            // If somebody else has taken our last backend, what it saved for us is there or will be at once.
            self.session.settle(loan.answers().await);
        }
        let Some(plan) = lease.state.plan(&self.session) else { return Ok((BytesMut::new(), 0)) };
        self.door.metrics.session.restores.inc();
        let backend: &mut Backend = lease;
        match backend.bring_to(plan, &self.session).await {
            Ok(prefix) => Ok(prefix),
            Err(QueryError::Refused { code, state, message }) => Err(Fault::NotRestored { code, state, message }),
            Err(error) => Err(Fault::BackendLost { reason: error.to_string() }),
        }
    }
}
