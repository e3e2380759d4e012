//! Questions about a statement whose backend has moved on: refused, or put into the server's own answer.

use std::ops::ControlFlow;

use bytes::BytesMut;

use super::lend;
use super::reply::{self, Fault};
use super::serve::Client;
use super::turn::Next;
use crate::backend::QueryError;
use crate::metrics::{CloseReason, Goodbye};
use crate::pool::{Lease, Server};
use crate::protocol::command::Command;
use crate::session::{BackendState, Recall, Rows};
use crate::sql::{Effects, Plain};

impl Client {
    /// Where the command gets what it asks about its session.
    pub(super) fn recalled(&self, command: Command, effects: Option<&Effects>) -> Recall {
        let id = self.registered.entry.id;
        match (command, effects) {
            (Command::Query, Some(effects)) => self.session.recall(self.text(), effects, id),
            _ => Recall::Backend,
        }
    }

    /// Refuses what asks about a statement of which nothing is known any more.
    pub(super) async fn refuse(&mut self, lease: Lease<Server>, what: &'static str) -> Next {
        self.door.metrics.session.unanswered.inc();
        if self.is_pinned() {
            self.lease = Some(lease);
        } else {
            lend::give_back(lease, 0);
        }
        self.answer_fault(&Fault::DiagnosticsGone { what }).await
    }

    /// Has the client's command answered by the lease, and puts other rows into the answer: so the columns are the
    /// server's.
    pub(super) async fn substitute(
        &mut self,
        mut lease: Lease<Server>,
        command: Command,
        plain: Plain,
        rows: Rows,
    ) -> Next {
        self.door.metrics.session.local_answers.inc();
        if !self.is_pinned() && !self.pay(&mut lease).await {
            lease.discard(CloseReason::Lost);
            return self.answer_fault(&Fault::BackendLost { reason: "the server closed the connection".into() }).await;
        }
        let text = if command == Command::Query { self.text() } else { self.argument() }.to_vec();
        let answer = lease.command(command, &text).await;
        self.consume_command();
        let (next, alive) = match answer {
            Ok(answer) => {
                self.session.answered(plain);
                let mut out = BytesMut::new();
                let binary = command == Command::StmtExecute;
                let mut changes = BytesMut::new();
                self.session.filter(b"", &mut changes);
                reply::rows(&mut out, &answer, (&rows, binary), &changes, self.guest.capabilities);
                (self.send(&mut out).await, true)
            }
            Err(QueryError::Refused { code, state, message }) => {
                (self.say(&Fault::Server { code, state, message }).await, true)
            }
            Err(error) => {
                let fault = Fault::BackendLost { reason: error.to_string() };
                (ControlFlow::Break(self.last_words(1, &fault, Goodbye::BackendLost).await), false)
            }
        };
        if !alive {
            lease.discard(CloseReason::Lost);
        } else if self.is_pinned() {
            self.lease = Some(lease);
        } else {
            // On MariaDB a statement without a table leaves the list of the one before.
            lease.state.warned = true;
            lend::give_back(lease, 0);
        }
        next
    }

    /// Saves what the session would miss of the backend that it is about to lose. False if the backend is lost.
    pub(super) async fn pay(&mut self, lease: &mut Lease<Server>) -> bool {
        for ask in self.session.owes() {
            let Ok(rows) = lease.ask(&ask).await else { return false };
            self.session.answer(&ask, rows);
        }
        let BackendState { last_insert_id, user_variables, .. } = self.session.held();
        (lease.state.last_insert_id, lease.state.user_variables) = (last_insert_id, user_variables);
        self.show_pins();
        true
    }
}
