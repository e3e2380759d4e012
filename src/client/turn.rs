//! One command that a backend must answer: lease, restore, relay, observe, let go.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::reply::Fault;
use super::serve::Client;
use super::watch::Watch;
use crate::backend::Prefix;
use crate::metrics::{ClientState, CloseReason, Direction, Goodbye};
use crate::pool::{Lease, Server};
use crate::protocol::capability::CapabilityFlags;
use crate::protocol::command::Command;
use crate::relay::{self, Broken, Channel, Dialect, Order, Traffic};
use crate::session::Recall;
use crate::sql::{Effects, Flags, Word};

/// Whether the client stays.
pub(super) type Next = ControlFlow<Goodbye>;

/// How long the reply to a client that is gone is still read, so that its backend may live on.
const PATIENCE: Duration = Duration::from_millis(250);

impl Client {
    /// Relays the command at the buffer's front. `effects` is what its text does; none if the text is still on its way.
    pub(super) async fn turn(&mut self, command: Command, effects: Option<&Effects>) -> Next {
        let (mut lease, prefix) = match self.restored(command, effects).await {
            Ok(ready) => ready,
            Err(next) => return next,
        };
        lease.served.begin(self.owner());
        match self.recalled(command, effects) {
            Recall::Backend => {}
            Recall::Rows(plain, rows) => return Box::pin(self.substitute(lease, plain, rows)).await,
            Recall::Text(text) => self.replace_command(command, &text),
            Recall::Lost(what) => return Box::pin(self.refuse(lease, what)).await,
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
            _ => effects.copied().unwrap_or_default(),
        };
        self.own_trackers = effects_of.may(Flags::SET_TRACKER) && lease.tracks();
        self.session.begin(command, effects_of);
        if self.own_trackers && Box::pin(lease.query(&self.session.wishes().statement())).await.is_err() {
            lease.discard(CloseReason::Lost);
            let fault = Fault::BackendLost { reason: "the server went away before the statement was sent".into() };
            return ControlFlow::Break(self.last_words(1, &fault, Goodbye::BackendLost).await);
        }
        let option = self.argument().get(..2).and_then(|it| it.try_into().ok()).map(u16::from_le_bytes);
        let mut traffic = Traffic::default();
        let relayed = self.relay(&mut lease, command, effects, prefix, &mut traffic).await;
        self.count(&traffic, started);
        if let Err(broken) = relayed {
            return Box::pin(self.broken(lease, broken)).await;
        }
        if matches!(command, Command::Query | Command::StmtExecute) {
            self.moved = false;
        }
        if !lease.tracks() {
            self.keep_if_unreported(command, effects);
        }
        match (command, argument) {
            (Command::StmtClose, Some(id)) => self.session.observe_closed(id),
            (Command::SetOption, _) if !self.failed => self.session.observe_option(option == Some(0)),
            _ => {}
        }
        self.after(lease).await
    }

    /// The server cannot report what a statement does to its session: only what surely does nothing may be shared.
    fn keep_if_unreported(&mut self, command: Command, effects: Option<&Effects>) {
        let sets = Flags::SET_VARIABLE
            | Flags::SET_CHARSET
            | Flags::SET_COLLATION
            | Flags::SET_TRACKER
            | Flags::SET_MINOR_TRACKER;
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
}
