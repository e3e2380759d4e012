//! KILL: of clients, by the ids that their greetings showed, and of the server's threads.
//!
//! `SHOW PROCESSLIST` is the server's and shows the ids of its threads. Of those that work for a client at this moment, the
//! client is meant, so that a kill never hits whoever uses the connection next; any other is the server's affair.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::killer::{self, Killer};
use super::lend;
use super::registry::{Entry, Registry, Summons};
use super::reply::Fault;
use super::serve::Client;
use super::turn::Next;
use crate::backend::QueryError;
use crate::metrics::Goodbye;
use crate::sql::Kill;

impl Client {
    /// COM_PROCESS_KILL
    pub(super) async fn process_kill(&mut self) -> Next {
        let id = self.argument_id();
        self.kill(Kill { query_only: false, id: id.map(u64::from) }).await
    }

    /// `KILL [CONNECTION | QUERY] n`
    pub(super) async fn kill(&mut self, kill: Kill) -> Next {
        let Some(id) = kill.id else {
            return self.answer_fault(&Fault::Unsupported { command: "KILL of anything but a number" }).await;
        };
        let Ok(number) = u32::try_from(id) else { return self.refuse_here(&Fault::UnknownThread { id }).await };
        let registry = Arc::clone(&self.door.registry);
        match registry.find(number).or_else(|| registry.find_by_thread(number)) {
            Some(target) => self.kill_client(&target, id, kill.query_only).await,
            None if Registry::is_id(number) => self.refuse_here(&Fault::UnknownThread { id }).await,
            None => self.kill_thread(number, kill.query_only).await,
        }
    }

    /// Kills another client's statement, or the client.
    async fn kill_client(&mut self, target: &Arc<Entry>, id: u64, query_only: bool) -> Next {
        let Some(user) = target.user() else { return self.refuse_here(&Fault::NotOwner { id }).await };
        let own = user == self.guest.user;
        if target.id == self.registered.entry.id {
            self.consume_command();
            if query_only {
                return self.say_to_kill(&Fault::Interrupted).await;
            }
            return ControlFlow::Break(self.last_words(1, &Fault::Interrupted, Goodbye::Killed).await);
        }
        self.consume_command();
        if !own || target.aim().is_some() {
            let mut killer = match self.killer().await {
                Ok(killer) => killer,
                Err(next) => return next,
            };
            let killed = kill_statement(&mut killer, target, own).await;
            if let Err(next) = self.killed(killer, killed, id).await {
                return next;
            }
        }
        if !query_only {
            target.summon(Summons::Kill);
        }
        self.kill_done().await
    }

    /// Has the server kill a thread that works for no client of ours at this moment.
    async fn kill_thread(&mut self, thread_id: u32, query_only: bool) -> Next {
        self.consume_command();
        // A connection of the pool that nobody uses runs nothing; what it runs next is not what was meant.
        if query_only && self.door.connector.has_thread(thread_id) {
            return self.kill_done().await;
        }
        let mut killer = match self.killer().await {
            Ok(killer) => killer,
            Err(next) => return next,
        };
        let (killed, own) = (killer.kill_thread(thread_id, query_only).await, killer.thread_id() == thread_id);
        if own {
            // It has hit itself, and does not live on.
            killer.end(false).await;
            return match self.is_pinned() {
                true => ControlFlow::Break(self.last_words(1, &Fault::Interrupted, Goodbye::Killed).await),
                false => self.kill_done().await,
            };
        }
        let killed = killed.map(|()| true);
        match self.killed(killer, killed, thread_id.into()).await {
            Ok(()) => self.kill_done().await,
            Err(next) => next,
        }
    }

    /// The backend for it comes first: a target waits for a kill that is aimed at it, and must not wait for one that waits
    /// for its own backend.
    async fn killer(&mut self) -> Result<Killer, Next> {
        let found = match self.lease.take() {
            Some(lease) => Ok(Killer::Pooled(lease)),
            None => Killer::find(&self.door, &self.class).await,
        };
        match found {
            Ok(killer) => Ok(killer),
            Err(unlent) => Err(self.say(&lend::fault(&self.door, &unlent)).await),
        }
    }

    /// What became of a kill: whether it was allowed, or why it failed.
    async fn killed(&mut self, killer: Killer, killed: Result<bool, QueryError>, id: u64) -> Result<(), Next> {
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

    async fn kill_done(&mut self) -> Next {
        self.session.observe_kill();
        self.answer_ok(0).await
    }
}

/// Kills what another client runs, if it runs anything; false if this account may not.
async fn kill_statement(killer: &mut Killer, target: &Arc<Entry>, own: bool) -> Result<bool, QueryError> {
    if !own && !killer.may_kill_others().await? {
        return Ok(false);
    }
    // If the statement is over meanwhile there is nothing to kill.
    if let Some(aim) = target.aim() {
        killer.kill_query(aim.thread_id).await?;
    }
    Ok(true)
}
