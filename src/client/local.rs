//! Commands that mean the session and not a server connection: reset, change user, and questions about a statement whose
//! backend has moved on.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use super::lend;
use super::login::{self, Threshold};
use super::opening;
use super::reply::{self, Fault};
use super::serve::Client;
use super::turn::Next;
use crate::backend::{Class, QueryError};
use crate::metrics::{CloseReason, Goodbye, LoginResult};
use crate::pool::{Lease, Server};
use crate::protocol::command::Command;
use crate::protocol::handshake::ServerSide;
use crate::session::{Rows, StateSpec};
use crate::sql::{Effects, Flags, Plain};

/// How many changes of users may fail on one connection, as MariaDB has it.
const FAILED_CHANGES: u8 = 3;

/// How long MariaDB lets a client wait whose change of users failed: who guesses passwords guesses slowly.
const PENALTY: Duration = Duration::from_secs(1);

impl Client {
    /// COM_RESET_CONNECTION: on a real connection, since only the server knows what is left then.
    pub(super) async fn reset(&mut self) -> Next {
        let taken = match self.lease.take() {
            Some(lease) => Ok(lease),
            None => lend::take(&self.door, &self.class, self.owner(), self.session.state().id).await,
        };
        let mut lease = match taken {
            Ok(lease) => lease,
            Err(unlent) => {
                let fault = lend::fault(&self.door, &unlent);
                return self.answer_fault(&fault).await;
            }
        };
        if let Err(error) = lease.reset(&self.door.interner).await {
            lease.discard(CloseReason::Lost);
            return self.answer_fault(&Fault::BackendLost { reason: error.to_string() }).await;
        }
        let schema = self.session.state().schema().map(Into::into);
        // MySQL goes back to its own default, MariaDB to what the handshake said: the client's, not the backend's.
        let facts = self.door.connector.facts();
        let charset = match &facts {
            Some(facts) if facts.mariadb => facts.charset(self.guest.collation),
            _ => lease.state.state.charset().clone(),
        };
        let state = self.door.interner.intern(StateSpec { schema, charset, ..lease.state.state.spec().clone() });
        self.session.reset(state);
        // The last statement on this backend was ours: what a reset leaves for ROW_COUNT() and kin, memory knows.
        let _ = self.session.moved();
        self.loan = None;
        self.kept = self.door.settings.session_mode.then_some("session_mode");
        self.status = facts.map(|facts| facts.status).unwrap_or_default();
        self.consume_command();
        self.show_pins();
        if self.is_pinned() {
            self.lease = Some(lease);
        } else {
            lend::give_back(lease, self.owner());
        }
        self.answer_ok(0).await
    }

    /// COM_CHANGE_USER: another login on the same connection.
    pub(super) async fn change_user(&mut self) -> Next {
        if !self.is_whole() {
            return ControlFlow::Break(self.last_words(1, &Fault::PacketsOutOfOrder, Goodbye::Protocol).await);
        }
        let payload = self.argument().to_vec();
        self.consume_command();
        self.forget_backend().await;
        let Some(facts) = self.door.connector.facts() else {
            return ControlFlow::Break(Goodbye::Internal);
        };
        if self.failed_changes >= FAILED_CHANGES {
            tokio::time::sleep(PENALTY).await;
            if !self.back_to_the_start().await {
                return ControlFlow::Break(Goodbye::Internal);
            }
            return self.say(&Fault::UnknownCommand).await;
        }
        let greeting = login::greeting(&self.door, &facts, self.registered.entry.id);
        let policy = login::policy(&self.door, &self.stream);
        let keys = Arc::clone(&self.door.keys);
        let mut machine = ServerSide::new(greeting, self.guest.salt, keys, policy);
        let whole = [&[Command::ChangeUser.byte()][..], &payload].concat();
        let step = machine.change_user(&whole, self.guest.capabilities, self.stream.is_tls(), 0);
        let door = Arc::clone(&self.door);
        let mut threshold = Threshold {
            door: &door,
            buffer: &mut self.buffer,
            host: &self.host,
            owner: 0,
            salt: self.guest.salt,
            fresh: false,
            penalty: facts.mariadb.then_some(PENALTY),
        };
        let changed = Box::pin(login::change_user(&mut threshold, &mut self.stream, &mut machine, step));
        match tokio::time::timeout(door.settings.handshake_timeout, changed).await {
            Ok(Ok(guest)) => {
                door.metrics.client.logins.get(LoginResult::Ok).inc();
                self.registered.entry.logged_in(Arc::clone(&guest.user));
                self.class = Class::new(Arc::clone(&guest.account), guest.capabilities);
                self.session = login::session(&door, &guest);
                self.guest = guest;
                self.kept = door.settings.session_mode.then_some("session_mode");
                self.show_pins();
                ControlFlow::Continue(())
            }
            Ok(Err(turned)) => {
                door.metrics.client.logins.get(turned.result).inc();
                if facts.mariadb && matches!(turned.result, LoginResult::Denied | LoginResult::Schema) {
                    self.failed_changes += 1;
                    if self.back_to_the_start().await {
                        return ControlFlow::Continue(());
                    }
                }
                ControlFlow::Break(Goodbye::Login)
            }
            Err(_) => {
                door.metrics.client.logins.get(LoginResult::Timeout).inc();
                ControlFlow::Break(Goodbye::Login)
            }
        }
    }

    /// A change of users failed on MariaDB, which goes on with the old one, in the schema it was in and with nothing
    /// else of what it had. (MySQL hangs up.) False if what it begins with again cannot be found out.
    async fn back_to_the_start(&mut self) -> bool {
        let door = Arc::clone(&self.door);
        let schema = self.session.state().schema();
        let base = login::base(&door, schema, self.guest.collation, self.guest.capabilities);
        let Ok(start) = opening::start(&door, &self.class, self.owner(), base, false).await else { return false };
        self.guest.start = start;
        self.session = login::session(&door, &self.guest);
        self.kept = door.settings.session_mode.then_some("session_mode");
        self.status = door.connector.facts().map(|facts| facts.status).unwrap_or_default();
        self.show_pins();
        true
    }

    /// What the client's question about itself must be answered with, if its backend cannot know.
    pub(super) fn remembered(&self, effects: &Effects) -> Option<Result<(Plain, Rows), Fault>> {
        let plain = match effects.plain {
            Some(plain) if self.session.answers(plain) => plain,
            None if self.moved => return self.unanswerable(effects).map(|what| Err(Fault::DiagnosticsGone { what })),
            _ => return None,
        };
        let memory = self.session.memory();
        let rows = match plain {
            Plain::ShowWarnings => memory.list.as_deref().cloned().unwrap_or_default(),
            Plain::ShowErrors => {
                let is_error = |row: &Vec<_>| {
                    row.first().is_some_and(|level: &Option<Vec<u8>>| level.as_deref() == Some(b"Error"))
                };
                memory.list.iter().flat_map(|list| list.iter()).filter(|row| is_error(row)).cloned().collect()
            }
            Plain::CountWarnings | Plain::WarningCount(_) => number(memory.warnings),
            Plain::CountErrors | Plain::ErrorCount(_) => number(memory.errors),
            Plain::RowCount(_) => number(memory.row_count),
            Plain::FoundRows(_) => number(memory.found_rows),
            Plain::ConnectionId(_) => number(self.registered.entry.id),
        };
        Some(Ok((plain, rows)))
    }

    /// What a statement asks about the one before it that nobody can tell it any more. Of several statements, only the
    /// first can mean the one before the text.
    fn unanswerable(&self, effects: &Effects) -> Option<&'static str> {
        let asks = |flags| effects.first_flags.any(flags);
        if asks(Flags::READS_ROW_COUNT) {
            Some("ROW_COUNT()")
        } else if asks(Flags::READS_FOUND_ROWS) {
            Some("FOUND_ROWS()")
        } else if asks(Flags::READS_WARNINGS) && self.session.memory().warnings > 0 {
            Some("@@warning_count")
        } else {
            None
        }
    }

    /// Has the client's text answered by the lease, and puts other rows into the answer: so the columns are the
    /// server's.
    pub(super) async fn substitute(&mut self, mut lease: Lease<Server>, plain: Plain, rows: Rows) -> Next {
        self.door.metrics.session.local_answers.inc();
        if !self.is_pinned() && !self.pay(&mut lease).await {
            lease.discard(CloseReason::Lost);
            return self.answer_fault(&Fault::BackendLost { reason: "the server closed the connection".into() }).await;
        }
        let text = self.argument().to_vec();
        let answer = lease.command(Command::Query, &text).await;
        self.consume_command();
        let (next, alive) = match answer {
            Ok(answer) => {
                self.session.answered(plain);
                let mut out = BytesMut::new();
                reply::rows(&mut out, &answer, &rows, self.guest.capabilities);
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
    async fn pay(&mut self, lease: &mut Lease<Server>) -> bool {
        for ask in self.session.owes() {
            let rows = match lease.query(&ask.text()).await {
                Ok(rows) => Some(rows.decode()),
                Err(QueryError::Refused { .. }) => None,
                Err(_) => return false,
            };
            self.session.answer(&ask, rows);
        }
        lease.state.last_insert_id = self.session.held().last_insert_id;
        self.show_pins();
        true
    }
}

/// A result of one number.
fn number(value: impl ToString) -> Rows {
    vec![vec![Some(value.to_string().into_bytes())]]
}
