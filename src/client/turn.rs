//! One command that a backend must answer: lease, restore, relay, observe, let go.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::killer;
use super::lend::{self, Unlent};
use super::reply::Fault;
use super::serve::{Client, goodbye_of};
use super::watch::Watch;
use crate::backend::{Loan, Prefix, QueryError};
use crate::metrics::{ClientState, CloseReason, Direction, Goodbye, LeaseKind};
use crate::pool::{Lease, Server};
use crate::protocol::capability::CapabilityFlags;
use crate::protocol::command::Command;
use crate::relay::{self, Broken, Channel, Dialect, Order, Traffic, TurnError};
use crate::session::{Ask, Followup, Plan, Restore, Rows, plan};
use crate::sql::{Effects, Flags, Plain, Word};

/// The last insert id of a backend whose own is not known: no session wants this one, so each sets its own.
const UNKNOWN: u64 = u64::MAX;

/// Whether the client stays.
pub(super) type Next = ControlFlow<Goodbye>;

/// How long the reply to a client that is gone is still read, so that its backend may live on.
const PATIENCE: Duration = Duration::from_millis(250);

/// How many backends are tried that cannot be brought out of their schema.
const EXCHANGES: usize = 4;

impl Client {
    /// Relays the command at the buffer's front. `effects` is what its text does; none if the text is still on its way.
    pub(super) async fn turn(&mut self, command: Command, effects: Option<Effects>) -> Next {
        let (mut lease, prefix) = match self.restored(command, effects.as_ref()).await {
            Ok(ready) => ready,
            Err(next) => return next,
        };
        match self.answer_of_our_own(command, effects.as_ref()) {
            Some(Ok((plain, rows))) => return Box::pin(self.substitute(lease, plain, rows)).await,
            Some(Err(fault)) => {
                if self.is_pinned() {
                    self.lease = Some(lease);
                } else {
                    lend::give_back(lease, 0);
                }
                return self.answer_fault(&fault).await;
            }
            None => {}
        }
        if self.moved
            && command == Command::Query
            && effects.is_none()
            && Box::pin(lease.query("SELECT 1")).await.is_err()
        {
            // A text that is not read yet may ask about the statement before it: another session's must be gone.
            lease.discard(CloseReason::Lost);
            return self.answer_fault(&Fault::BackendLost { reason: "the server hung up".into() }).await;
        }
        self.gauge.enter(ClientState::Running);
        let started = Instant::now();
        self.registered.entry.runs_on(lease.thread_id);
        let argument = self.argument_id();
        let effects_of = match (command, argument) {
            (Command::StmtExecute, Some(id)) => self.session.effects_of(id),
            _ => effects.unwrap_or_default(),
        };
        self.own_trackers = effects_of.may(Flags::SET_TRACKER) && lease.tracks();
        if self.own_trackers && Box::pin(lease.query(&self.session.wishes().statement())).await.is_err() {
            lease.discard(CloseReason::Lost);
            let fault = Fault::BackendLost { reason: "the server went away before the statement was sent".into() };
            return ControlFlow::Break(self.last_words(1, &fault, Goodbye::BackendLost).await);
        }
        self.session.begin(command, effects_of);
        let option = self.argument().get(..2).and_then(|it| it.try_into().ok()).map(u16::from_le_bytes);
        let mut traffic = Traffic::default();
        let relayed = self.relay(&mut lease, command, effects.as_ref(), prefix, &mut traffic).await;
        self.count(&traffic, started);
        if let Err(broken) = relayed {
            return Box::pin(self.broken(lease, broken)).await;
        }
        if matches!(command, Command::Query | Command::StmtExecute) {
            self.moved = false;
        }
        if !lease.tracks() {
            self.keep_if_unreported(command, effects.as_ref());
        }
        match (command, argument) {
            (Command::StmtClose, Some(id)) => self.session.observe_closed(id),
            (Command::SetOption, _) if !self.failed => self.session.observe_option(option == Some(0)),
            _ => {}
        }
        self.after(lease).await
    }

    /// What the command must be answered with instead of what the backend would say.
    fn answer_of_our_own(&self, command: Command, effects: Option<&Effects>) -> Option<Result<(Plain, Rows), Fault>> {
        let id = self.argument_id();
        match (command, id) {
            (Command::StmtExecute, Some(id)) => self.remembered(&self.session.effects_of(id)),
            (Command::Query, _) => self.remembered(effects?),
            _ => None,
        }
    }

    /// The server cannot report what a statement does to its session: only what surely does nothing may be shared.
    fn keep_if_unreported(&mut self, command: Command, effects: Option<&Effects>) {
        let sets = Flags::SET_VARIABLE | Flags::SET_CHARSET | Flags::SET_COLLATION | Flags::SET_TRACKER;
        let changes = sets | Flags::USE | Flags::LOCK_TABLES | Flags::EXECUTABLE_COMMENT | Flags::SET_STATEMENT;
        let harmless = |effects: &Effects| {
            let reads =
                matches!(effects.first, Word::Select | Word::Show | Word::Begin | Word::Commit | Word::Rollback);
            let writes =
                matches!(effects.first, Word::Insert | Word::Update | Word::Delete | Word::Replace | Word::Start);
            effects.statements == 1 && (reads || writes) && !effects.may(changes)
        };
        let shared = match command {
            Command::Query | Command::StmtPrepare => effects.is_some_and(harmless),
            Command::InitDb | Command::SetOption => false,
            _ => true,
        };
        if !shared {
            self.kept.get_or_insert("unreported");
        }
    }

    /// A backend in this session's state, or with what brings it there in front of the command.
    pub(super) async fn restored(
        &mut self,
        command: Command,
        effects: Option<&Effects>,
    ) -> Result<(Lease<Server>, Prefix), Next> {
        for _ in 0..EXCHANGES {
            let mut lease = match self.lease.take() {
                // Nobody else was on it: it is as this session left it.
                Some(lease) => return Ok((lease, Prefix::default())),
                None => self.wait_for_lease().await?,
            };
            self.moved = lease.kind() != LeaseKind::Own;
            if self.moved {
                if !Box::pin(self.move_on()).await {
                    lend::give_back(lease, 0);
                    let reason = "the server closed the connection that knew this session's LAST_INSERT_ID()".into();
                    let fault = Fault::BackendLost { reason };
                    return Err(ControlFlow::Break(self.last_words(1, &fault, Goodbye::BackendLost).await));
                }
            } else {
                // Untouched: what was not known about it, and its warnings, only mattered to others.
                if self.loan.take().is_some() {
                    lease.state.last_insert_id = self.session.held().last_insert_id;
                }
                lease.state.warned = false;
            }
            let held = self.session.held();
            let mut way = plan(&lease.state, &held);
            if way == Plan::Unreachable && Box::pin(self.leave_schema(&mut lease)).await {
                way = plan(&lease.state, &held);
            }
            match way {
                Plan::Nothing => return Ok((lease, Prefix::default())),
                Plan::Restore(restore) => {
                    self.door.metrics.session.restores.inc();
                    let asks = effects.is_some_and(|effects| effects.plain.is_some());
                    if !asks && !restore.must_be_awaited() && self.door.proven.contains(self.session.state().id) {
                        return Ok((lease, Prefix::of(&restore)));
                    }
                    return Box::pin(self.restore(lease, restore, command, effects)).await;
                }
                Plan::Unreachable => lease.discard(CloseReason::Dirty),
            }
        }
        Err(self.answer_fault(&Fault::NoPlainBackend).await)
    }

    /// Brings a backend out of its schema and into none; `false` if it is of no further use.
    async fn leave_schema(&mut self, lease: &mut Lease<Server>) -> bool {
        self.door.metrics.session.schema_exits.inc();
        match self.door.connector.change_user(lease, &self.class.account).await {
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
    /// False if that was more than warnings: a private connection would have been lost with it.
    async fn move_on(&mut self) -> bool {
        let mut whole = true;
        if let Some(loan) = self.loan.take() {
            for (ask, rows) in loan.answers(|| Arc::strong_count(&loan) > 1).await {
                whole &= rows.is_some() || ask == Ask::Warnings;
                self.session.answer(&ask, rows);
            }
        }
        // What the old backend holds is no longer this session's affair.
        let _ = self.session.moved();
        whole
    }

    /// A backend, now or in line; with an eye on the client, who may go away meanwhile.
    async fn wait_for_lease(&mut self) -> Result<Lease<Server>, Next> {
        let (door, class) = (Arc::clone(&self.door), self.class.clone());
        let (owner, state) = (self.owner(), self.session.state().id);
        if let Some(lease) = lend::take_now(&door, &class, owner, state)
            && let Some(lease) = lend::settled(&door, lease).await
        {
            return Ok(lease);
        }
        self.gauge.enter(ClientState::Waiting);
        self.buffer.park();
        let entry = Arc::clone(&self.registered.entry);
        let taken = {
            let mut taking = Box::pin(lend::take(&door, &class, owner, state));
            let mut killed = std::pin::pin!(entry.killed());
            poll_fn(|cx| {
                if killed.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(Goodbye::Killed));
                }
                if let Poll::Ready(taken) = taking.as_mut().poll(cx) {
                    return Poll::Ready(Ok(taken));
                }
                while !self.buffer.is_full() && self.stream.poll_readable(cx).is_ready() {
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
            Err(Goodbye::Killed) => Err(ControlFlow::Break(self.last_words(1, &Fault::Killed, Goodbye::Killed).await)),
            Err(goodbye) => Err(ControlFlow::Break(goodbye)),
        }
    }

    /// There is no backend: says why.
    async fn unlent(&mut self, unlent: &Unlent) -> Next {
        if matches!(unlent, Unlent::Open(error) if error.code == 1045) {
            self.door.users.forget(&self.guest.user, &self.guest.account.password);
        }
        let fault = lend::fault(&self.door, unlent);
        self.answer_fault(&fault).await
    }

    /// The turn's bytes, both ways.
    async fn relay(
        &mut self,
        lease: &mut Lease<Server>,
        command: Command,
        effects: Option<&Effects>,
        prefix: Prefix,
        traffic: &mut Traffic,
    ) -> Result<(), Broken> {
        let dialect = Dialect {
            client_deprecates_eof: self.guest.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
            backend_deprecates_eof: lease.deprecates_eof(),
            client_tracks: self.tracks(),
            backend_tracks: lease.tracks(),
            mariadb: self.session.mode().mariadb,
            status: self.status,
        };
        let order = Order {
            prefix: prefix.bytes,
            prefix_replies: prefix.replies,
            reply: command.reply(),
            max_packet: self.door.settings.max_packet,
            stall: self.door.settings.stall_timeout,
            patience: PATIENCE,
        };
        let backend = &mut **lease;
        let mut client = Channel { stream: &mut self.stream, buffer: &mut self.buffer };
        let mut server = Channel { stream: &mut backend.stream, buffer: &mut backend.buffer };
        let mut watch =
            Watch::new(&mut self.session, &mut self.status, &self.door, command, effects, self.own_trackers);
        let relayed = relay::turn(&mut client, &mut server, order, dialect, traffic, &mut watch).await;
        self.command_sent = watch.is_sent();
        self.failed = watch.has_failed();
        relayed
    }

    pub(super) fn count_from_client(&self, n: usize) {
        self.door.metrics.relay.bytes.get(Direction::FromClients).inc_by(n as u64);
    }

    fn count(&mut self, traffic: &Traffic, started: Instant) {
        self.turns += 1;
        let relay = &self.door.metrics.relay;
        relay.turns.inc();
        relay.turn_seconds.observe(started.elapsed().as_secs_f64());
        relay.bytes.get(Direction::FromClients).inc_by(traffic.from_client);
        relay.bytes.get(Direction::ToClients).inc_by(traffic.to_client);
        relay.bytes.get(Direction::FromBackends).inc_by(traffic.from_backend);
        relay.bytes.get(Direction::ToBackends).inc_by(traffic.to_backend);
    }

    /// The turn is over: asks what the server did not report, and lets go if nothing pins.
    pub(super) async fn after(&mut self, mut lease: Lease<Server>) -> Next {
        let mut sound = match self.session.end() {
            Followup::None => true,
            Followup::Ask(first) => Box::pin(self.ask(&mut lease, first)).await,
        };
        if sound && self.session.rearm_trackers() {
            sound = Box::pin(lease.arm_trackers()).await.is_ok();
        }
        if self.registered.entry.runs_nothing().await && sound {
            sound = Box::pin(absorb_kill(&mut lease)).await;
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
            match lease.query(&ask.text()).await {
                Ok(rows) => self.session.answer(&ask, Some(rows.decode())),
                Err(QueryError::Refused { .. }) => self.session.answer(&ask, None),
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
            let loan = Arc::new(Loan::new(owed));
            self.loan = Some(Arc::clone(&loan));
            lease.loan = Some(loan);
            lease.state.last_insert_id = UNKNOWN;
        }
        lend::give_back(lease, self.owner());
        next
    }

    /// The turn broke: the backend goes, and the client hears why if it can.
    async fn broken(&mut self, lease: Lease<Server>, broken: Broken) -> Next {
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
                    killer::undertake(&self.door, &self.class, lease);
                }
                return ControlFlow::Break(goodbye_of(&error));
            }
            TurnError::TooLarge { limit } => {
                self.door.metrics.client.refusals.get(crate::metrics::Limit::MaxPacket).inc();
                (Fault::PacketTooLarge { limit }, Some(Goodbye::Limit), CloseReason::Dirty)
            }
            TurnError::BackendLost(error) => {
                let goodbye = (pinned || !self.command_sent).then_some(Goodbye::BackendLost);
                (Fault::BackendLost { reason: error.to_string() }, goodbye, CloseReason::Lost)
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
