//! Commands that mean the session and not a server connection: reset and change user.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::lend;
use super::login::{self, Threshold};
use super::opening;
use super::reply::Fault;
use super::serve::{Client, Keeping};
use super::turn::Next;
use crate::metrics::{CloseReason, Goodbye, LoginResult};
use crate::protocol::command::Command;
use crate::protocol::handshake::ServerSide;
use crate::session::StateSpec;

/// How many changes of users may fail on one connection, as MariaDB has it.
const FAILED_CHANGES: u8 = 3;

/// How long MariaDB lets a client wait whose change of users failed: who guesses passwords guesses slowly.
const PENALTY: Duration = Duration::from_secs(1);

impl Client {
    /// COM_RESET_CONNECTION: on a real connection, since only the server knows what is left then.
    pub(super) async fn reset(&mut self) -> Next {
        if let Err(next) = self.save_found_rows().await {
            return next;
        }
        if !self.session.bears_reset() {
            self.drop_lease(CloseReason::Dirty);
        }
        let mut kept = self.lease.take().or_else(|| self.kept_for_us()).or_else(|| self.take_own());
        if let Some(stale) = kept.take_if(|lease| !self.door.is_current(lease)) {
            stale.discard(CloseReason::Stale);
        }
        let mut class = self.guest.class.clone();
        let taken = match kept {
            Some(lease) => Ok(lease),
            None => lend::take(&self.door, &mut class, self.owner(), self.session.state().id, None).await,
        };
        let mut lease = match taken {
            Ok(lease) => lease,
            Err(unlent) => {
                let fault = lend::fault(&self.door, &unlent);
                return self.answer_fault(&fault).await;
            }
        };
        if let Err(error) = self.door.connector.reset(&mut lease).await {
            lease.discard(CloseReason::Lost);
            return self.answer_fault(&Fault::BackendLost { reason: error.to_string() }).await;
        }
        self.guest.class = class;
        let schema = self.session.state().schema().map(Into::into);
        // MySQL goes back to its own default, MariaDB to what the handshake said: the client's, not the backend's.
        let facts = self.door.connector.facts();
        let charset = match &facts {
            Some(facts) if facts.mariadb => facts.charset(self.guest.collation),
            _ => lease.state.state.charset().clone(),
        };
        let state = self.door.interner.intern(StateSpec { schema, charset, ..lease.state.state.spec().clone() });
        self.session.reset(state);
        if let Some(facts) = &facts {
            self.session.wish(facts.settings.wishes.clone());
        }
        if lease.has_strange_role() {
            self.session.keep_role();
        }
        // The last statement on this backend was ours: what a reset leaves for ROW_COUNT() and kin, memory knows.
        let _ = self.session.moved();
        self.loan = None;
        self.kept = Keeping::by_mode(&self.door);
        self.status = facts.map(|facts| facts.status).unwrap_or_default();
        self.consume_command();
        self.show_pins();
        self.show_statements();
        if self.is_pinned() {
            self.lease = Some(lease);
        } else {
            lend::give_back(lease, self.owner());
        }
        self.answer_ok(0).await
    }

    /// `FOUND_ROWS()` outlives both commands, and perhaps only the backend knows it.
    async fn save_found_rows(&mut self) -> Result<(), Next> {
        if self.session.misses_found_rows() { Box::pin(self.save_last()).await } else { Ok(()) }
    }

    /// COM_CHANGE_USER: another login on the same connection.
    pub(super) async fn change_user(&mut self) -> Next {
        if !self.is_whole() {
            return ControlFlow::Break(self.last_words(1, &Fault::PacketsOutOfOrder, Goodbye::Protocol).await);
        }
        if let Err(next) = self.save_found_rows().await {
            return next;
        }
        let payload = self.argument().to_vec();
        self.consume_command();
        self.forget_backend().await;
        // What it left on other backends is somebody else's from here on.
        self.tenancy = self.tenancy.wrapping_add(1);
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
            host: self.host,
            owner: 0,
            salt: self.guest.salt,
            first: None,
            fresh: false,
            penalty: facts.mariadb.then_some(PENALTY),
        };
        let changed = Box::pin(login::change_user(&mut threshold, &mut self.stream, &mut machine, step));
        match tokio::time::timeout(door.settings.handshake_timeout, changed).await {
            Ok(Ok(guest)) => {
                door.metrics.client.logins.get(LoginResult::Ok).inc();
                self.registered.entry.logged_in(Arc::clone(&guest.user));
                self.session = login::session(&door, &guest).after(&self.session);
                self.guest = guest;
                self.kept = Keeping::by_mode(&door);
                self.show_pins();
                self.show_statements();
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
        let facts = door.connector.facts();
        let era = facts.as_ref().map_or(self.guest.class.era, |facts| facts.settings.as_of);
        let asked = login::asked_again(facts.as_deref(), self.guest.capabilities);
        let base = login::base(&door, facts.as_deref(), schema, self.guest.collation, asked);
        let mut class = self.guest.class.clone();
        class.era = era;
        let Ok(start) = opening::start(&door, &class, self.owner(), base, false).await else { return false };
        (self.guest.start, self.guest.class) = (start, class);
        self.session = login::session(&door, &self.guest).after(&self.session);
        self.kept = Keeping::by_mode(&door);
        self.status = door.connector.facts().map(|facts| facts.status).unwrap_or_default();
        self.show_pins();
        true
    }
}
