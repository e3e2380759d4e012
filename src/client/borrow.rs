//! A backend for one command: in line if need be, and brought to the session's state.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::lend::{self, Unlent};
use super::registry::Summons;
use super::reply::Fault;
use super::serve::{Client, goodbye_of};
use super::turn::Next;
use crate::backend::{Class, Prefix, QueryError};
use crate::metrics::{ClientState, CloseReason, Goodbye, LeaseKind};
use crate::pool::{Lease, SchemaId, Server};
use crate::protocol::command::Command;
use crate::session::{Ask, BackendState, PinReason, Plan, Restore, UserVariables, falls_back, plan};
use crate::sql::{Effects, Flags};

/// How many backends are tried that cannot be brought out of their schema.
const EXCHANGES: usize = 4;

/// What waiting for a backend brought.
enum Taken {
    Leased(Lease<Server>),
    /// The session's last one, which nobody else could have.
    Kept(Lease<Server>),
}

/// Why a client waits no longer.
pub(super) enum Away {
    Gone(Goodbye),
    /// It is to go.
    Summoned(Summons),
}

impl Client {
    /// A backend in this session's state, or with what brings it there in front of the command.
    pub(super) async fn restored(
        &mut self,
        command: Command,
        effects: Option<&Effects>,
    ) -> Result<(Lease<Server>, Prefix), Next> {
        let mut opened_now = false;
        for _ in 0..EXCHANGES {
            let mut lease = match self.lease.take() {
                // Nobody else was on it: it is as this session left it.
                Some(lease) => {
                    let mut lease = self.resumed(lease).await?;
                    let mut prefix = Prefix::default();
                    if let Some(effects) = effects.filter(|effects| !effects.mentions.is_empty()) {
                        match Box::pin(self.erasure(&mut lease, command, effects)).await {
                            Some(erasure) => prefix = erasure,
                            None => return Err(self.lost(lease).await),
                        }
                    }
                    let asks = || effects.is_some_and(|it| it.may(Flags::READS_DIAGNOSTICS | Flags::EXECUTE));
                    // That is a statement, too.
                    if prefix.replies > 0 && asks() && !Box::pin(self.part_from_last(&mut lease, effects)).await {
                        return Err(self.lost(lease).await);
                    }
                    return Ok((lease, prefix));
                }
                None => match self.wait_for_lease(opened_now).await? {
                    Taken::Leased(lease) => lease,
                    Taken::Kept(lease) => {
                        Box::pin(self.adopt(lease)).await;
                        continue;
                    }
                },
            };
            lease = match self.take_over(lease).await? {
                Some(lease) => lease,
                None => continue,
            };
            if self.must_be_clean(&lease, command, effects) {
                match Box::pin(self.cleaned(lease)).await {
                    Some(clean) => lease = clean,
                    None => {
                        opened_now = true;
                        continue;
                    }
                }
            }
            let Some(way) = self.way(&mut lease).await else {
                opened_now = true;
                lease.discard(CloseReason::Stale);
                continue;
            };
            match way {
                Plan::Nothing => return Ok((lease, Prefix::default())),
                Plan::Restore(restore) => {
                    // Its user variables are there from here on, whatever comes of the command.
                    lease.served.begin(self.owner());
                    self.door.metrics.session.restores.inc();
                    let asks = effects.is_some_and(|effects| effects.plain.is_some());
                    if !asks && !restore.must_be_awaited() && self.door.proven.contains(self.session.state().id) {
                        let prefix = Prefix::of(&restore, &lease);
                        return Ok((lease, prefix));
                    }
                    return Box::pin(self.restore(lease, restore, command, effects)).await;
                }
                Plan::Unreachable => lease.discard(CloseReason::Dirty),
            }
        }
        Err(self.answer_fault(&Fault::NoPlainBackend).await)
    }

    /// How this backend comes to the session's state. None: it does not, since what a default is, it could only learn from
    /// the present.
    async fn way(&mut self, lease: &mut Lease<Server>) -> Option<Plan> {
        let held = self.session.held();
        note_erased(lease, &held);
        let mut way = plan(&lease.state, &held);
        let falls = falls_back(&lease.state.state, &held.state);
        if way != Plan::Nothing && !self.door.is_current(lease) && (way == Plan::Unreachable || falls) {
            return None;
        }
        if way == Plan::Unreachable && Box::pin(self.leave_schema(lease)).await {
            way = plan(&lease.state, &held);
        }
        let falls = matches!(way, Plan::Restore(_)) && falls_back(&lease.state.state, &held.state);
        (!falls || lend::may_fall_back(&self.door, lease).await).then_some(way)
    }

    /// What this session left on its last backend is settled, if this one was somebody else's. None if it must take that one
    /// back instead, which it has.
    async fn take_over(&mut self, mut lease: Lease<Server>) -> Result<Option<Lease<Server>>, Next> {
        // Until a statement of its own has run there, what the last one left is somebody else's.
        let of_others = lease.kind() != LeaseKind::Own;
        self.moved |= of_others;
        if !of_others {
            // Untouched: what was not known about it, and its warnings, only mattered to others.
            if self.loan.take().is_some() {
                lease.state.last_insert_id = self.session.held().last_insert_id;
            }
            lease.state.warned = false;
            return Ok(Some(lease));
        }
        let mut whole = Box::pin(self.move_on()).await;
        if self.session.pins().contains(PinReason::UserVariables) {
            // They could not be kept here, so their backend was kept for the session.
            if let Some(kept) = self.kept_for_us() {
                lend::give_back(lease, 0);
                Box::pin(self.adopt(kept)).await;
                return Ok(None);
            }
            whole = false;
        }
        if whole {
            return Ok(Some(lease));
        }
        lend::give_back(lease, 0);
        let reason = "the server closed the connection that alone knew a part of this session".into();
        let fault = Fault::BackendLost { reason };
        Err(ControlFlow::Break(self.last_words(1, &fault, Goodbye::BackendLost).await))
    }

    /// Whether the command names a user variable that this session never had, on a backend where others have been: then
    /// only a reset makes sure that it finds nothing of theirs.
    fn must_be_clean(&self, lease: &Lease<Server>, command: Command, effects: Option<&Effects>) -> bool {
        let may_stay = matches!(command, Command::StmtPrepare | Command::StmtSendLongData);
        if !may_stay && !command.runs_statement() {
            return false;
        }
        let of_others = lease.state.user_variables.as_deref();
        let there = |name: &str| lease.erased.contains(name) || of_others.is_some_and(|all| all.has(name));
        // What a sequence gave last is one of these as well. (On a backend of its own it may be what a DEFAULT has drawn.)
        let draws = self.moved && effects.is_some_and(|effects| effects.may(Flags::READS_SEQUENCE));
        // Once the session is pinned, it is too late for a reset.
        let wants_cursor = || command == Command::StmtExecute && self.argument().get(4).is_some_and(|it| it & 1 != 0);
        let stays = || (wants_cursor() || self.session.may_stay(command, effects)) && self.finds_any_foreign(lease);
        lease.served.others(self.owner())
            && (draws || self.session.reads_foreign(effects) || self.session.finds_foreign(effects, there) || stays())
    }

    /// Whether the backend has user variables that this session never had, or had some.
    fn finds_any_foreign(&self, lease: &Lease<Server>) -> bool {
        let of_others = lease.state.user_variables.as_deref().into_iter().flat_map(UserVariables::names);
        of_others.chain(lease.erased.iter().map(|name| &**name)).any(|name| !self.session.owns(name))
    }

    /// A backend as good as new. None if it is lost, or the session cannot leave it as it is.
    async fn cleaned(&mut self, mut lease: Lease<Server>) -> Option<Lease<Server>> {
        if !self.moved {
            if !self.pay(&mut lease).await {
                lease.discard(CloseReason::Lost);
                return None;
            }
            let _ = self.session.moved();
            self.moved = true;
            if self.is_pinned() {
                self.lease = Some(lease);
                return None;
            }
        }
        if !self.door.is_current(&lease) {
            lease.discard(CloseReason::Stale);
            return None;
        }
        self.door.metrics.session.resets.inc();
        if self.door.connector.reset(&mut lease).await.is_err() || lease.has_strange_role() {
            lease.discard(CloseReason::Lost);
            return None;
        }
        Some(lease)
    }

    /// Takes back the backend that this session must keep: somebody else has asked it what only it knew.
    pub(super) async fn adopt(&mut self, mut lease: Lease<Server>) {
        let _ = self.move_on().await;
        self.moved = true;
        lease.state = self.session.held();
        self.lease = Some(lease);
        self.show_pins();
    }

    /// Brings a backend out of its schema and into none; `false` if it is of no further use.
    async fn leave_schema(&mut self, lease: &mut Lease<Server>) -> bool {
        self.door.metrics.session.schema_exits.inc();
        match self.door.connector.change_user(lease, &self.guest.class.account).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(thread_id = lease.thread_id, %error, "a backend cannot leave its schema; closing it");
                false
            }
        }
    }

    /// Brings a backend to the session's state and waits for the outcome: a schema may have been dropped, a state is new
    /// to the server, and the command must not run without them. (What a server has accepted before goes out with the
    /// command.)
    async fn restore(
        &mut self,
        mut lease: Lease<Server>,
        restore: Restore,
        command: Command,
        effects: Option<&Effects>,
    ) -> Result<(Lease<Server>, Prefix), Next> {
        let state = self.session.state().id;
        let chooses = |effects: &Effects| effects.is_certain() && effects.may(Flags::USE);
        let needs_none = command == Command::InitDb || effects.is_some_and(chooses);
        let schema_first = restore.prelude.is_none() && restore.schema.is_some();
        let mut restored = lease.restore(&restore).await;
        if needs_none && matches!(restored, Err(QueryError::Refused { code: 1044 | 1049, .. })) {
            // The command chooses another schema: it may run in whichever the backend has.
            self.foreign_schema = true;
            restored = lease.restore(&Restore { schema: None, ..restore }).await;
        }
        match restored {
            Ok(()) => {
                self.door.proven.insert(state);
                lease.state = self.session.held();
                Ok((lease, Prefix::default()))
            }
            Err(QueryError::Refused { code, state, message }) => {
                self.door.metrics.session.restore_failures.inc();
                if schema_first && !self.foreign_schema && matches!(code, 1044 | 1049) {
                    // Nothing has changed yet but the list of warnings.
                    lease.state.warned = true;
                    lend::give_back(lease, 0);
                } else {
                    self.foreign_schema = false;
                    lease.discard(CloseReason::Dirty);
                }
                Err(self.answer_fault(&Fault::NotRestored { code, state, message }).await)
            }
            Err(error) => {
                self.foreign_schema = false;
                lease.discard(CloseReason::Lost);
                Err(self.answer_fault(&Fault::BackendLost { reason: error.to_string() }).await)
            }
        }
    }

    /// The session is on a backend that was somebody else's: what it left on its last one has been saved, or is lost.
    /// False if that was more than warnings or a number of rows: a private connection would have been lost with it.
    async fn move_on(&mut self) -> bool {
        let mut whole = true;
        if let Some(loan) = self.loan.take() {
            for (ask, rows) in loan.answers(|| Arc::strong_count(&loan) > 1).await {
                whole &= rows.is_some() || matches!(ask, Ask::Warnings | Ask::FoundRows);
                self.session.answer(&ask, rows);
            }
        }
        // What the old backend holds is no longer this session's affair.
        let _ = self.session.moved();
        whole
    }

    /// Its backends are of this class from now on. If they have other defaults, the session keeps those that it began with
    /// as if it had set them.
    fn move_to(&mut self, class: Class) {
        if class.era != self.guest.class.era {
            let lost = self.door.connector.defaults().lost(self.guest.class.era, class.era, &class.account);
            self.session.inherit(&class.inherited(lost));
        }
        self.guest.class = class;
    }

    /// A backend, now or in line; with an eye on the client, who may go away meanwhile. `opened_now`: not one of an era
    /// that is over.
    async fn wait_for_lease(&mut self, opened_now: bool) -> Result<Taken, Next> {
        let (owner, state, schema) = (self.owner(), self.session.state().id, self.limited_schema());
        if let Some(own) = Box::pin(self.begin_own()).await? {
            return Ok(Taken::Leased(own));
        }
        let is_over = opened_now && self.guest.class.era != self.door.connector.era();
        // Where others wait there is nothing to be had at once.
        if !is_over
            && !self.door.pool.has_waiters()
            && let Some(lease) = lend::take_now(&self.door, &self.guest.class, owner, state, schema)
            && let Some(lease) = lend::settled(&self.door, lease).await
        {
            return Ok(Taken::Leased(lease));
        }
        Box::pin(self.wait_in_line(schema)).await
    }

    /// A backend in order of arrival. No idle connection of the session's own time is left: what is opened now is as those
    /// of clients that came later.
    async fn wait_in_line(&mut self, schema: Option<SchemaId>) -> Result<Taken, Next> {
        let door = Arc::clone(&self.door);
        let (owner, state) = (self.owner(), self.session.state().id);
        let account = door.users.current(&self.guest.class.account);
        let mut class = door.class(account, self.guest.capabilities);
        let entry = Arc::clone(&self.registered.entry);
        let taken = {
            let mut taking = std::pin::pin!(lend::take(&door, &mut class, owner, state, schema));
            let ready = |cx: &mut Context<'_>| match entry.take_kept(owner) {
                Some(lease) => Poll::Ready(Ok(Taken::Kept(lease))),
                None => taking.as_mut().poll(cx).map(|taken| taken.map(Taken::Leased)),
            };
            self.in_line(ready).await
        };
        match taken {
            Ok(Ok(Taken::Leased(lease))) => {
                self.move_to(class);
                Ok(Taken::Leased(lease))
            }
            Ok(Ok(kept)) => Ok(kept),
            Ok(Err(unlent)) => Err(self.unlent(&unlent).await),
            Err(away) => Err(self.left_the_line(away).await),
        }
    }

    /// The backend that this session keeps, with the right to run its next turn.
    pub(super) async fn resumed(&mut self, mut lease: Lease<Server>) -> Result<Lease<Server>, Next> {
        match self.allowed(&mut lease).await {
            Ok(()) => Ok(lease),
            Err(next) => {
                // Whatever comes of it, the session has its backend.
                self.lease = Some(lease);
                Err(next)
            }
        }
    }

    /// Waits for the right to run the next turn on a backend that the session has.
    pub(super) async fn allowed(&mut self, lease: &mut Lease<Server>) -> Result<(), Next> {
        if lease.is_running() {
            return Ok(());
        }
        let limit = self.door.settings.queue_timeout;
        let resumed = {
            let mut resuming = Box::pin(lease.resume(limit));
            self.in_line(|cx| resuming.as_mut().poll(cx)).await
        };
        match resumed {
            Ok(Ok(())) => Ok(()),
            Ok(Err(unlent)) => Err(self.unlent(&unlent).await),
            Err(away) => Err(self.left_the_line(away).await),
        }
    }

    /// Waits in line, with an eye on the client.
    async fn in_line<T>(&mut self, ready: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Result<T, Away> {
        self.gauge.enter(ClientState::Waiting);
        self.buffer.park();
        self.unless_away(ready).await
    }

    /// Waits with an eye on the client, who may go away or be summoned meanwhile.
    pub(super) async fn unless_away<T>(
        &mut self,
        mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Away> {
        let entry = Arc::clone(&self.registered.entry);
        poll_fn(|cx| {
            if let Some(summons) = entry.watch_kill(cx) {
                return Poll::Ready(Err(Away::Summoned(summons)));
            }
            if let Poll::Ready(ready) = ready(cx) {
                return Poll::Ready(Ok(ready));
            }
            while !self.buffer.is_full() && self.stream.poll_readable(cx).is_ready() {
                match self.buffer.poll_fill(cx, &mut self.stream) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(Away::Gone(Goodbye::Closed))),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(Away::Gone(goodbye_of(&error)))),
                    Poll::Pending => break,
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The client went away, or is to go, while it waited.
    pub(super) async fn left_the_line(&mut self, away: Away) -> Next {
        ControlFlow::Break(match away {
            Away::Gone(goodbye) => goodbye,
            Away::Summoned(summons) => Box::pin(self.summoned_away(summons)).await,
        })
    }

    /// The session's schema, if that has limits of its own.
    fn limited_schema(&self) -> Option<SchemaId> {
        self.session.state().schema().and_then(|schema| self.door.schemas.find(schema))
    }

    /// There is no backend: says why.
    async fn unlent(&mut self, unlent: &Unlent) -> Next {
        if matches!(unlent, Unlent::Open(error) if error.code == 1045) {
            self.door.users.forget(&self.guest.user, &self.guest.class.account.password);
        }
        let fault = lend::fault(&self.door, unlent);
        self.answer_fault(&fault).await
    }
}

/// The restore will make NULL of what others have and this session has not.
fn note_erased(lease: &mut Lease<Server>, held: &BackendState) {
    let Some(there) = lease.state.user_variables.clone() else { return };
    let own = |name: &str| held.user_variables.as_ref().is_some_and(|all| all.has(name));
    lease.erased.extend(there.names().filter(|name| !own(name)).map(Box::from));
}
