//! One command that a backend must answer: lease, restore, relay, observe, let go.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::echo::Asked;
use super::execute::Serving;
use super::named::Spoken;
use super::remember::may_redefine;
use super::reply::Fault;
use super::serve::{Client, Keeping};
use super::watch::Watch;
use crate::backend::Prefix;
use crate::metrics::{ClientState, CloseReason, Direction, Goodbye};
use crate::pool::{Lease, Server};
use crate::protocol::capability::CapabilityFlags;
use crate::protocol::command::Command;
use crate::protocol::packet::prepare::PrepareOk;
use crate::relay::{self, Broken, Channel, Dialect, Front, Order, Traffic};
use crate::session::{Recall, Session};
use crate::sql::{Effects, Flags, Word};

/// Whether the client stays.
pub(super) type Next = ControlFlow<Goodbye>;

/// How long the reply to a client that is gone is still read, so that its backend may live on.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a server may take to hang up behind a COMMIT RELEASE.
const RELEASE: Duration = Duration::from_millis(250);

/// A command to be relayed.
pub(super) struct Task {
    pub(super) command: Command,
    /// What its text does; none if the text is still on its way.
    pub(super) effects: Option<Effects>,
    /// What goes in front of it.
    pub(super) prefix: Prefix,
    /// What its own front becomes.
    pub(super) front: Option<Front>,
    /// The prepared statement that it is about.
    pub(super) statement: Option<Serving>,
    /// What it says about statements that have a name.
    pub(super) spoken: Option<Box<Spoken>>,
    /// It is a SET whose answer is worth remembering.
    pub(super) asked: Option<Box<Asked>>,
}

impl Task {
    /// A command as it came. In a box: futures hold only a pointer to it.
    pub(super) fn new(command: Command, effects: Option<Effects>) -> Box<Self> {
        let (prefix, front) = (Prefix::default(), None);
        Box::new(Self { command, effects, prefix, front, statement: None, spoken: None, asked: None })
    }

    /// It is about to be sent.
    fn begin(&self, session: &mut Session) {
        match &self.effects {
            Some(effects) => session.begin(self.command, effects),
            None => session.begin(self.command, &Effects::default()),
        }
    }
}

/// What passed by in a turn.
pub(super) struct Passed {
    /// The id that a preparation has used up, and what the server said of it.
    pub(super) prepared: Option<(u32, Option<PrepareOk>)>,
    /// What a text does that was read only then.
    pub(super) late: Option<Box<Effects>>,
}

impl Client {
    /// Relays the command at the buffer's front. `effects` is what its text does; none if the text is still on its way.
    pub(super) fn turn(&mut self, command: Command, effects: Option<&Effects>) -> impl Future<Output = Next> {
        self.turn_of(Task::new(command, effects.copied()))
    }

    /// The same, of a task.
    pub(super) async fn turn_of(&mut self, mut task: Box<Task>) -> Next {
        let (mut lease, mut prefix) = match self.restored(task.command, task.effects.as_ref()).await {
            Ok(ready) => ready,
            Err(next) => return next,
        };
        if task.command == Command::Query
            && let Err(error) = Box::pin(self.bring_names(&mut lease, &mut prefix, &task)).await
        {
            return Box::pin(self.unnamed(lease, error, &task)).await;
        }
        if self.parts_by_tuning(&lease, task.command, task.effects.as_ref())
            && !Box::pin(self.part_from_last(&mut lease, task.effects.as_ref())).await
        {
            return self.lost(lease).await;
        }
        if let Some(again) = self.session.show_again(task.effects.as_ref()) {
            prefix.append(again, &lease);
        }
        if let Some(mark) = self.session.mark(task.command, task.effects.as_ref()) {
            prefix.append(mark, &lease);
        }
        if let Some(count) = task.effects.as_ref().and_then(|effects| self.session.count_for_call(effects)) {
            prefix.append(count, &lease);
        }
        let recall = match &task.spoken {
            Some(spoken) => self.recalled_spoken(spoken, task.effects.as_ref()),
            None => self.recalled(task.command, task.effects.as_ref()),
        };
        match recall {
            Recall::Backend => {}
            Recall::Rows(plain, rows) => return Box::pin(self.substitute(lease, task.command, plain, rows)).await,
            Recall::Text(text) => self.replace_command(task.command, &text),
            Recall::Lost(what) => return Box::pin(self.refuse(lease, what)).await,
        }
        if self.moved
            && task.command == Command::Query
            && task.effects.is_none()
            && Box::pin(lease.query("SELECT 1")).await.is_err()
        {
            // A text that is not read yet may ask about the statement before it: another session's must be gone.
            lease.discard(CloseReason::Lost);
            return self.answer_fault(&Fault::BackendLost { reason: "the server hung up".into() }).await;
        }
        task.prefix = prefix;
        if task.command == Command::Query {
            task.asked = self.asks_to_be_shown(&lease, task.effects.as_ref());
        }
        let next = self.run(lease, &mut task).await;
        if let Some(asked) = task.asked.take() {
            self.keep_shown(*asked);
        }
        next
    }

    /// Relays the command at the buffer's front to this backend.
    pub(super) async fn run(&mut self, mut lease: Lease<Server>, task: &mut Task) -> Next {
        let command = task.command;
        lease.served.begin(self.owner());
        self.gauge.enter(ClientState::Running);
        let started = Instant::now();
        self.registered.entry.runs_on(lease.thread_id);
        let may = |flags| task.effects.as_ref().is_some_and(|effects| effects.may(flags));
        self.own_trackers = may(Flags::SET_TRACKER | Flags::READS_TRACKER) && lease.tracks();
        if command == Command::Query {
            self.doubt_routines(task.effects.as_ref());
            // What is executed by name calls what does not stand in its text.
            match &task.spoken {
                Some(_) => self.foresee_deed(task),
                None => self.foresee_calls(task.effects.as_ref()),
            }
        }
        let may_release = self.may_release(task);
        task.begin(&mut self.session);
        if self.own_trackers && Box::pin(lease.query(&self.session.wishes().statement())).await.is_err() {
            lease.discard(CloseReason::Lost);
            let fault = Fault::BackendLost { reason: "the server went away before the statement was sent".into() };
            return ControlFlow::Break(self.last_words(1, &fault, Goodbye::BackendLost).await);
        }
        if !self.tune(&mut lease, task).await {
            return self.lost(lease).await;
        }
        let option = self.argument().get(..2).and_then(|it| it.try_into().ok()).map(u16::from_le_bytes);
        let mut traffic = Traffic::default();
        let relayed = self.relay_in_time(&mut lease, task, &mut traffic).await;
        self.count(&traffic, started);
        let passed = match relayed {
            Ok(passed) => passed,
            Err(broken) => {
                if task.effects.as_ref().is_none_or(may_redefine) {
                    self.door.remembered.forget();
                }
                if task.effects.as_ref().is_some_and(|effects| effects.may(Flags::SET_GLOBAL)) {
                    self.door.globals_changed();
                }
                return Box::pin(self.broken(lease, broken)).await;
            }
        };
        if may_release && self.error == 0 && Box::pin(hangs_up(&mut lease)).await {
            lease.discard(CloseReason::Lost);
            return ControlFlow::Break(Goodbye::Quit);
        }
        if command.runs_statement() {
            self.moved = false;
        }
        if !lease.tracks() {
            self.keep_if_unreported(command, task.effects.as_ref());
        }
        if command == Command::SetOption && self.error == 0 {
            self.session.observe_option(option == Some(0));
        }
        if command == Command::Query {
            self.note_names(&mut lease, task, passed.late.as_deref());
        }
        if command == Command::StmtPrepare {
            self.prepared_privately(&mut lease, passed);
        }
        let unclean = task.statement.as_ref().is_some_and(|serving| self.served(&mut lease, command, serving));
        if unclean && !Box::pin(self.clean(&mut lease, task)).await {
            lease.discard(CloseReason::Lost);
            return ControlFlow::Break(Goodbye::BackendLost);
        }
        if command == Command::Query {
            self.doubt_routines(task.effects.as_ref());
        }
        self.after(lease).await
    }

    /// May the server hang up behind this statement: does it say RELEASE, or `completion_type` for it?
    fn may_release(&self, task: &Task) -> bool {
        let ends = |effects: &Effects| effects.may(Flags::COMMIT | Flags::ROLLBACK);
        if task.command != Command::Query || !task.effects.as_ref().is_some_and(ends) {
            return false;
        }
        let usual = self.session.state().variable("completion_type");
        let named = task.spoken.as_ref().and_then(|spoken| spoken.named.as_ref());
        let text = named.map_or_else(|| self.text(), |named| named.text.bytes());
        usual.is_some_and(|usual| matches!(usual, b"RELEASE" | b"2"))
            || text.windows(7).any(|word| word.eq_ignore_ascii_case(b"release"))
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
            command if command.runs_statement() => effects.is_some_and(harmless),
            Command::InitDb | Command::SetOption => false,
            _ => true,
        };
        if !shared {
            self.kept.get_or_insert(Keeping::Unreported);
        }
    }

    /// As [`Client::relay`], when nobody is in the way of what changes a global variable.
    async fn relay_in_time(
        &mut self,
        lease: &mut Lease<Server>,
        task: &mut Task,
        traffic: &mut Traffic,
    ) -> Result<Passed, Broken> {
        if !task.effects.as_ref().is_some_and(|effects| effects.may(Flags::SET_GLOBAL)) {
            return self.relay(lease, task, traffic).await;
        }
        let door = Arc::clone(&self.door);
        let _changing = door.changing(lease).await;
        Box::pin(self.relay(lease, task, traffic)).await
    }

    /// The turn's bytes, both ways.
    async fn relay(
        &mut self,
        lease: &mut Lease<Server>,
        task: &mut Task,
        traffic: &mut Traffic,
    ) -> Result<Passed, Broken> {
        let (command, effects) = (task.command, task.effects.as_ref());
        let wants_cursor = || self.argument().get(4).is_some_and(|flags| flags & 1 != 0);
        let dialect = Dialect { cursor: command == Command::StmtExecute && wants_cursor(), ..self.dialect(lease) };
        let prefix = std::mem::take(&mut task.prefix);
        let mut bytes = lease.prepared.closes();
        bytes.unsplit(prefix.bytes);
        let order = Order {
            prefix: bytes,
            prefix_replies: prefix.replies,
            front: task.front.take(),
            reply: command.reply(),
            max_packet: self.door.settings.max_packet,
            stall: self.door.settings.stall_timeout,
            patience: PATIENCE,
        };
        let prepares = (command == Command::StmtPrepare).then(|| self.session.next_statement_id());
        let backend = &mut **lease;
        let mut client = Channel { stream: &mut self.stream, buffer: &mut self.buffer };
        let mut server = Channel { stream: &mut backend.stream, buffer: &mut backend.buffer };
        let mut watch =
            Watch::new(&mut self.session, &mut self.status, &self.door, command, effects, self.own_trackers);
        watch.prepares = prepares.map(|id| (id, None));
        watch.asked = task.asked.as_deref_mut();
        if command == Command::Query {
            watch.skip_attributes(self.text_at);
        }
        let relayed = relay::turn(&mut client, &mut server, order, dialect, traffic, &mut watch).await;
        self.command_taken = watch.is_taken();
        self.error = watch.error();
        let passed = Passed { prepared: watch.prepares.take(), late: watch.late.take() };
        relayed.map(|()| passed)
    }

    /// What this client and this backend agreed on with us.
    pub(super) fn dialect(&self, lease: &Lease<Server>) -> Dialect {
        Dialect {
            client_deprecates_eof: self.guest.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
            backend_deprecates_eof: lease.deprecates_eof(),
            client_tracks: self.tracks(),
            backend_tracks: lease.tracks(),
            mariadb: self.session.mode().mariadb,
            cursor: false,
            status: self.status,
        }
    }

    pub(super) fn count_from_client(&self, n: usize) {
        self.door.metrics.relay.bytes.get(Direction::FromClients).inc_by(n as u64);
    }

    pub(super) fn count(&mut self, traffic: &Traffic, started: Instant) {
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

/// Does the server hang up now?
async fn hangs_up(lease: &mut Lease<Server>) -> bool {
    let backend = &mut **lease;
    tokio::time::timeout(RELEASE, backend.buffer.fill(&mut backend.stream)).await.is_ok()
}
