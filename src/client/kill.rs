//! KILL: of clients, by the ids that their greetings showed, and of the server's threads.
//!
//! `SHOW PROCESSLIST` is the server's and shows the ids of its threads. Of those that work for a client at this moment, the
//! client is meant, so that a kill never hits whoever uses the connection next; any other is the server's affair.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::BytesMut;

use super::killer::{self, Killer};
use super::lend;
use super::registry::{Entry, Registry, Summons};
use super::reply::{self, Fault};
use super::serve::Client;
use super::turn::Next;
use crate::backend::QueryError;
use crate::metrics::Goodbye;
use crate::sql::{Effects, Kill};

impl Client {
    /// COM_PROCESS_KILL
    pub(super) async fn process_kill(&mut self) -> Next {
        match self.argument_id() {
            Some(id) => self.kill_number(Kill { query_only: false, soft: false, id: None }, id.into()).await,
            None => self.unknown_command_argument().await,
        }
    }

    /// `KILL`, of whatever the text names.
    pub(super) async fn kill(&mut self, kill: Kill, effects: Effects) -> Next {
        match kill.id {
            Some(id) => self.kill_number(kill, id).await,
            None => Box::pin(self.kill_whom(kill, effects)).await,
        }
    }

    /// Kills the client or the thread with this number.
    pub(super) async fn kill_number(&mut self, kill: Kill, id: u64) -> Next {
        // MySQL takes no more of it than fits.
        let id = if self.session.options().mariadb { id } else { id & u64::from(u32::MAX) };
        let Ok(number) = u32::try_from(id) else { return self.refuse_here(&Fault::UnknownThread { id }).await };
        let registry = Arc::clone(&self.door.registry);
        if Registry::is_id(number) {
            // One of another proxy's clients is nobody's here, and never a thread of the server.
            return match registry.find(number) {
                Some(target) => self.kill_client(&target, id, kill).await,
                None => self.refuse_here(&Fault::UnknownThread { id }).await,
            };
        }
        match registry.find_by_thread(number) {
            Some(target) => self.kill_client(&target, id, kill).await,
            None => self.kill_thread(number, kill).await,
        }
    }

    /// Kills another client's statement, or the client.
    async fn kill_client(&mut self, target: &Arc<Entry>, id: u64, kill: Kill) -> Next {
        let Some(user) = target.user() else { return self.refuse_here(&Fault::NotOwner { id }).await };
        let own = user == self.guest.user;
        if target.id == self.registered.entry.id {
            self.consume_command();
            if kill.query_only {
                return self.say_to_kill(&Fault::Interrupted).await;
            }
            return self.killed_itself().await;
        }
        self.consume_command();
        if !own || target.aim().is_some() {
            let mut killer = match self.killer().await {
                Ok(killer) => killer,
                Err(next) => return next,
            };
            let allowed = if own { Ok(true) } else { killer.may_kill_others().await };
            let killed = match allowed {
                Ok(true) => kill_entry(&mut killer, target, kill).await.map(|()| true),
                refused => refused,
            };
            if let Err(next) = self.killed(killer, killed, id).await {
                return next;
            }
        } else if !kill.query_only {
            target.summon(Summons::Kill);
        }
        self.kill_done(0).await
    }

    /// Has the server kill a thread that works for no client of ours at this moment.
    async fn kill_thread(&mut self, thread_id: u32, kill: Kill) -> Next {
        self.consume_command();
        // A connection of the pool that nobody uses runs nothing; what it runs next is not what was meant.
        if kill.query_only && self.door.connector.has_thread(thread_id) {
            return self.kill_done(0).await;
        }
        let mut killer = match self.killer().await {
            Ok(killer) => killer,
            Err(next) => return next,
        };
        let (killed, own) = (killer.kill(thread_id, kill).await, killer.thread_id() == thread_id);
        if own {
            // It has hit itself, and does not live on.
            killer.end(false).await;
            return match self.is_pinned() {
                true => self.killed_itself().await,
                false => self.kill_done(0).await,
            };
        }
        let killed = killed.map(|()| true);
        match self.killed(killer, killed, thread_id.into()).await {
            Ok(()) => self.kill_done(0).await,
            Err(next) => next,
        }
    }

    async fn killed_itself(&mut self) -> Next {
        let fault = if self.session.options().mariadb { Fault::Killed } else { Fault::Interrupted };
        ControlFlow::Break(self.last_words(1, &fault, Goodbye::Killed).await)
    }

    /// The backend for it comes first: a target waits for a kill that is aimed at it, and must not wait for one that waits
    /// for its own backend.
    pub(super) async fn killer(&mut self) -> Result<Killer, Next> {
        let found = match self.lease.take() {
            Some(lease) => Ok(Killer::Pooled(lease)),
            None => Killer::find(&self.door, &self.guest.class).await,
        };
        match found {
            Ok(killer) => Ok(killer),
            Err(unlent) => Err(self.say(&lend::fault(&self.door, &unlent)).await),
        }
    }

    /// What became of a kill: whether it was allowed, or why it failed.
    pub(super) async fn killed(
        &mut self,
        killer: Killer,
        killed: Result<bool, QueryError>,
        id: u64,
    ) -> Result<(), Next> {
        match killer {
            Killer::Pooled(lease) if self.is_pinned() && killer::is_sound(&killed) => self.lease = Some(lease),
            killer => killer.end(killer::is_sound(&killed)).await,
        }
        let fault = match killed {
            Ok(true) => return Ok(()),
            Ok(false) => Fault::NotOwner { id },
            Err(QueryError::Refused { code, state, message }) => Fault::Server { code, state, message },
            Err(error) => Fault::BackendLost { reason: error.to_string() },
        };
        if self.is_pinned() && self.lease.is_none() {
            return Err(ControlFlow::Break(self.last_words(1, &fault, Goodbye::BackendLost).await));
        }
        Err(self.say_to_kill(&fault).await)
    }

    /// An error as the answer to KILL.
    async fn say_to_kill(&mut self, fault: &Fault) -> Next {
        let (code, state) = fault.code();
        self.session.observe_refused(code, state, &fault.to_string());
        self.say(fault).await
    }

    /// The OK to a KILL, which has hit so many (MariaDB counts those of a user).
    pub(super) async fn kill_done(&mut self, hit: u64) -> Next {
        self.session.observe_kill(hit);
        let mut out = BytesMut::new();
        reply::changed(&mut out, 1, (self.status, self.tracks()), hit);
        self.send(&mut out).await
    }
}

/// Kills another client, or what it runs, if it runs anything.
pub(super) async fn kill_entry(killer: &mut Killer, target: &Arc<Entry>, kill: Kill) -> Result<(), QueryError> {
    // If the statement is over meanwhile there is nothing to kill.
    let aim = target.aim();
    if !kill.query_only {
        // It must know why when its connection to the server ends.
        target.summon(Summons::Kill);
    }
    match aim {
        Some(aim) => killer.kill_running(aim.thread_id, kill).await,
        None => Ok(()),
    }
}
