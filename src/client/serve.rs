//! The loop of one client: greet, then command after command, then goodbye.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use tokio::time::Instant;

use super::login::{self, Guest, Threshold, Turned};
use super::registry::{Registered, Summons};
use super::reply::Fault;
use super::state::StateGauge;
use super::{Door, Host, lend, packets, turnstile};
use crate::backend::Loan;
use crate::metrics::{ClientState, CloseReason, Goodbye, LoginResult};
use crate::net::{Buffer, Stream};
use crate::pool::{Lease, Server};
use crate::protocol::capability::{CapabilityFlags, StatusFlags};
use crate::protocol::command::Command;
use crate::protocol::frame::{HEADER, Header, write_packet};
use crate::session::{PinReason, PinSet, Session};

/// How long the last act of a session may take: resetting the backend it leaves behind.
const FAREWELL: Duration = Duration::from_secs(5);

/// One logged-in client.
pub(super) struct Client {
    pub(super) door: Arc<Door>,
    pub(super) stream: Stream,
    pub(super) buffer: Buffer,
    pub(super) registered: Registered,
    pub(super) gauge: StateGauge,
    pub(super) guest: Guest,
    pub(super) host: Host,
    pub(super) session: Session,
    /// The backend, while something pins the session to it.
    pub(super) lease: Option<Lease<Server>>,
    /// What must be saved from the last backend if another session takes it.
    pub(super) loan: Option<Arc<Loan>>,
    /// The pins as the metrics know them.
    shown: PinSet,
    /// `pool.mode` is `session`, or the server cannot report what was done to the session.
    pub(super) kept: Option<Keeping>,
    /// Is that shown by the metrics?
    kept_shown: bool,
    /// The backend is in another session's schema, which the command under way leaves.
    pub(super) foreign_schema: bool,
    /// The backend was somebody else's before the command under way: what the last statement left is gone.
    pub(super) moved: bool,
    /// The command under way sets trackers: for its turn the backend's are the client's own, so that the server tells
    /// what it would tell the client, and has the client's settings when it is asked for them.
    pub(super) own_trackers: bool,
    /// The last command was answered by this error; 0: by none.
    pub(super) error: u16,
    /// How many prepared statements the metrics know of.
    pub(super) shown_statements: u32,
    /// How often another user took this connection over: what an earlier one left is not this one's own.
    pub(super) tenancy: u32,
    /// How many changes of users have failed on this connection.
    pub(super) failed_changes: u8,
    /// Where the text of the COM_QUERY at hand begins, behind its attributes.
    pub(super) text_at: u32,
    /// The last command was taken from the buffer as a whole.
    pub(super) command_taken: bool,
    /// The status flags that the client saw last.
    pub(super) status: StatusFlags,
    /// Turns relayed.
    pub(super) turns: u64,
    /// When it came.
    since: Instant,
}

/// A client's whole life, from accept to goodbye. What the login needs is in a box of its own, and gone after it.
pub(super) fn welcome(
    door: Arc<Door>,
    stream: Stream,
    registered: Registered,
    address: Option<IpAddr>,
) -> impl Future<Output = ()> {
    let entering = Box::pin(enter(door, stream, registered, Host::of(address)));
    async move {
        let Some(mut client) = entering.await else { return };
        let goodbye = client.serve().await;
        Box::pin(client.leave(goodbye)).await;
    }
}

/// Makes a client of whoever is at the door, or turns it away.
async fn enter(door: Arc<Door>, stream: Stream, registered: Registered, host: Host) -> Option<Box<Client>> {
    let metrics = Arc::clone(&door.metrics);
    let (id, log) = (registered.entry.id, door.settings.log_connections);
    match admit(door, stream, registered, host).await {
        Ok(client) => {
            metrics.client.logins.get(LoginResult::Ok).inc();
            Some(client)
        }
        Err(turned) => {
            metrics.client.logins.get(turned.result).inc();
            metrics.client.goodbyes.get(Goodbye::Login).inc();
            if log {
                tracing::info!(id, %host, result = ?turned.result, why = %turned.why, "client turned away");
            }
            None
        }
    }
}

/// Greets, authenticates, and makes the client's session, all within `server.handshake_timeout`.
async fn admit(door: Arc<Door>, stream: Stream, registered: Registered, host: Host) -> Result<Box<Client>, Turned> {
    let since = Instant::now();
    let gauge = StateGauge::new(Arc::clone(&door.metrics), ClientState::Handshake);
    let limit = door.settings.handshake_timeout;
    let mut buffer = Buffer::new(door.settings.buffer);
    let id = registered.entry.id;
    let mut threshold = Threshold {
        door: &door,
        buffer: &mut buffer,
        host,
        owner: u64::from(id),
        salt: [0; 20],
        first: None,
        fresh: true,
        penalty: None,
    };
    let mut stream = stream;
    let too_long = |_| Turned {
        result: LoginResult::Timeout,
        why: Fault::HandshakeTimeout { seconds: limit.as_secs() }.to_string(),
    };
    let began = Instant::now();
    let greeting = Box::pin(login::greet(&mut threshold, &mut stream, id));
    let mut machine = tokio::time::timeout(limit, greeting).await.map_err(too_long)??;
    let left = limit.saturating_sub(began.elapsed());
    // What comes now is costly: not too many at once.
    let turn = Box::pin(turnstile::turn(&threshold, &mut stream, &registered.entry)).await?;
    let logging_in = Box::pin(login::log_in(&mut threshold, &mut stream, &mut machine));
    let guest = tokio::time::timeout(left, logging_in).await.map_err(too_long)??;
    drop((turn, machine));
    registered.entry.logged_in(Arc::clone(&guest.user));
    let session = login::session(&door, &guest);
    let status = door.connector.facts().map(|facts| facts.status).unwrap_or_default();
    // In a box, once and for all: a future that moves it holds it twice.
    Ok(Box::new(Client {
        kept: Keeping::by_mode(&door),
        door,
        stream,
        buffer,
        registered,
        gauge,
        guest,
        host,
        session,
        lease: None,
        loan: None,
        shown: PinSet::EMPTY,
        kept_shown: false,
        foreign_schema: false,
        moved: false,
        own_trackers: false,
        error: 0,
        shown_statements: 0,
        tenancy: 0,
        failed_changes: 0,
        text_at: 0,
        command_taken: true,
        status,
        turns: 0,
        since,
    }))
}

impl Client {
    /// Command after command.
    async fn serve(&mut self) -> Goodbye {
        loop {
            if let Some(lease) = &mut self.lease {
                lease.pause();
            }
            self.session.rest();
            self.gauge.enter(if self.lease.is_some() { ClientState::Pinned } else { ClientState::Idle });
            let command = match self.next_command().await {
                Ok(command) => command,
                Err(goodbye) => return goodbye,
            };
            self.registered.touch();
            // In a box of its own: what a turn needs must not weigh on an idle client.
            if let ControlFlow::Break(goodbye) = Box::pin(self.dispatch(command)).await {
                return goodbye;
            }
        }
    }

    /// Waits for a command, without a buffer as long as there is none. The buffer then holds its first frame, or as
    /// much of it as fits.
    async fn next_command(&mut self) -> Result<Command, Goodbye> {
        loop {
            if let Some(header) = Header::parse(self.buffer.data()) {
                let whole = HEADER + header.len;
                if header.seq != 0 && !self.ignore_number() {
                    return Err(Box::pin(self.last_words(1, &Fault::PacketsOutOfOrder, Goodbye::Protocol)).await);
                }
                if header.len == 0 {
                    return Err(Box::pin(self.last_words(1, &Fault::UnknownCommand, Goodbye::Protocol)).await);
                }
                if self.buffer.len() >= whole || self.buffer.is_full() {
                    let code = self.buffer.data().get(HEADER).copied().unwrap_or_default();
                    self.stream.begin_reply();
                    return Ok(Command::from_byte(code));
                }
            }
            match self.wait().await {
                Wake::Bytes(n) => self.count_from_client(n),
                Wake::Closed(Goodbye::Protocol) => {
                    return Err(Box::pin(self.last_words(1, &Fault::PacketsOutOfOrder, Goodbye::Protocol)).await);
                }
                Wake::Closed(goodbye) => return Err(goodbye),
                Wake::Kept(lease) => Box::pin(self.adopt(lease)).await,
                Wake::BackendGone => return Err(Box::pin(self.ended_by_server()).await),
                Wake::Summoned(summons) => return Err(Box::pin(self.summoned_away(summons)).await),
            }
        }
    }

    /// In compressed frames, servers look at the frames' numbers only: what a command has there is no mistake.
    fn ignore_number(&mut self) -> bool {
        let number = self.buffer.data_mut().get_mut(HEADER - 1);
        self.stream.is_compressed() && number.is_some_and(|number| std::mem::take(number) > 0)
    }

    /// Waits until the client says something, somebody else wants something of it, or its pinned backend dies.
    async fn wait(&mut self) -> Wake {
        let (owner, entry) = (self.owner(), &self.registered.entry);
        poll_fn(|cx| {
            match self.buffer.poll_fill(cx, &mut self.stream) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Wake::Closed(Goodbye::Closed)),
                Poll::Ready(Ok(n)) => return Poll::Ready(Wake::Bytes(n)),
                Poll::Ready(Err(error)) => return Poll::Ready(Wake::Closed(goodbye_of(&error))),
                Poll::Pending => {}
            }
            // What is open may be finished when the proxy drains; that has a limit of its own, and ends with a kill.
            let may_finish = |summons| summons == Summons::Drain && self.session.pins().intersects(PinSet::OPEN_WORK);
            if let Some(summons) = entry.watch(cx).filter(|summons| !may_finish(*summons)) {
                return Poll::Ready(Wake::Summoned(summons));
            }
            if let Some(lease) = entry.take_kept(owner) {
                return Poll::Ready(Wake::Kept(lease));
            }
            if let Some(lease) = &mut self.lease {
                let backend = &mut **lease;
                if backend.buffer.poll_fill(cx, &mut backend.stream).is_ready() {
                    return Poll::Ready(Wake::BackendGone);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Says goodbye to a client of whom somebody else wants that it goes. Whom a server kills it tells nothing.
    pub(super) async fn summoned_away(&mut self, summons: Summons) -> Goodbye {
        match summons {
            Summons::Kill => Goodbye::Killed,
            Summons::IdleTimeout => self.last_words(1, &Fault::IdleTimeout, Goodbye::IdleTimeout).await,
            Summons::Drain | Summons::CutOff => self.last_words(1, &Fault::Shutdown, Goodbye::Drain).await,
        }
    }

    /// The server has ended the connection that the session depends on. The client sees what it would see there: the
    /// server's own words, if it had any (MySQL's `wait_timeout`), and the end.
    async fn ended_by_server(&mut self) -> Goodbye {
        let heard = self.lease.as_ref().map(|lease| lease.buffer.data()).unwrap_or_default();
        let len = Header::parse(heard).map_or(0, |header| HEADER + header.len);
        let error = heard.get(..len).filter(|packet| packet.get(HEADER) == Some(&0xff));
        let mut out = BytesMut::from(error.unwrap_or_default());
        self.drop_lease(CloseReason::Lost);
        self.stream.begin_reply();
        let _ = tokio::time::timeout(Duration::from_secs(1), packets::write(&mut self.stream, &mut out)).await;
        Goodbye::BackendLost
    }

    /// Tells the client why the connection ends here; if it does not listen, so be it.
    pub(super) async fn last_words(&mut self, seq: u8, fault: &Fault, goodbye: Goodbye) -> Goodbye {
        let mut out = BytesMut::new();
        fault.write(&mut out, seq);
        self.stream.begin_reply();
        self.door.metrics.relay.error(fault.code().0);
        let _ = tokio::time::timeout(Duration::from_secs(1), packets::write(&mut self.stream, &mut out)).await;
        goodbye
    }

    /// Drops the first frame of the buffer, which was dealt with here.
    pub(super) fn consume_command(&mut self) {
        let len = Header::parse(self.buffer.data()).map_or(0, |header| HEADER + header.len);
        self.buffer.consume(len.min(self.buffer.len()));
    }

    /// Puts another command in the place of the one at the buffer's front, which is all there.
    pub(super) fn replace_command(&mut self, command: Command, argument: &[u8]) {
        let len = Header::parse(self.buffer.data()).map_or(0, |header| HEADER + header.len);
        let behind = self.buffer.data().get(len..).unwrap_or_default().to_vec();
        let attributes = if command == Command::Query { self.argument().get(..self.text_at as usize) } else { None };
        let mut frames = BytesMut::new();
        write_packet(&mut frames, 0, &[&[command.byte()], attributes.unwrap_or_default(), argument].concat());
        self.buffer.clear();
        self.buffer.extend(&frames);
        self.buffer.extend(&behind);
    }

    /// The payload of the command at the buffer's front, its code not included, as far as it has arrived.
    pub(super) fn argument(&self) -> &[u8] {
        let data = self.buffer.data();
        let len = Header::parse(data).map_or(0, |header| header.len);
        let end = (HEADER + len).min(data.len());
        data.get(HEADER + 1..end).unwrap_or_default()
    }

    /// The text of the COM_QUERY at the buffer's front, as far as it has arrived.
    pub(super) fn text(&self) -> &[u8] {
        self.argument().get(self.text_at as usize..).unwrap_or_default()
    }

    /// Do its texts and executes have room for attributes?
    pub(super) fn speaks_attributes(&self) -> bool {
        self.guest.capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES)
    }

    /// The id that the argument starts with: a statement's, or a client's.
    pub(super) fn argument_id(&self) -> Option<u32> {
        self.argument().get(..4).and_then(|id| id.try_into().ok()).map(u32::from_le_bytes)
    }

    /// Is the whole command in the buffer?
    pub(super) fn is_whole(&self) -> bool {
        Header::parse(self.buffer.data()).is_some_and(|header| self.buffer.len() >= HEADER + header.len)
    }

    pub(super) fn tracks(&self) -> bool {
        self.guest.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK)
    }

    pub(super) fn owner(&self) -> u64 {
        u64::from(self.tenancy) << 32 | u64::from(self.registered.entry.id)
    }

    /// The backend that somebody else gave back, since this session must keep it.
    pub(super) fn kept_for_us(&self) -> Option<Lease<Server>> {
        self.registered.entry.take_kept(self.owner())
    }

    pub(super) fn drop_lease(&mut self, reason: CloseReason) {
        if let Some(lease) = self.lease.take() {
            lease.discard(reason);
        }
    }

    /// Does anything keep the session on its backend?
    pub(super) fn is_pinned(&self) -> bool {
        self.session.is_pinned() || self.kept.is_some()
    }

    /// Shows the metrics which pins there are now.
    pub(super) fn show_pins(&mut self) {
        let now = self.session.pins();
        if now != self.shown || self.kept.is_some() != self.kept_shown {
            self.show(now, self.kept);
        }
    }

    fn show(&mut self, now: PinSet, kept: Option<Keeping>) {
        let metrics = &self.door.metrics.session;
        for reason in now.without(self.shown).iter() {
            metrics.pin(reason.label());
        }
        for reason in self.shown.without(now).iter() {
            metrics.unpin(reason.label());
        }
        match (self.kept_shown, kept) {
            (false, Some(why)) => metrics.pin(why.label()),
            (true, None) => metrics.unpin(self.kept.unwrap_or(Keeping::SessionMode).label()),
            _ => {}
        }
        self.kept_shown = kept.is_some();
        self.shown = now;
    }

    /// Shows the metrics how many statements it has prepared.
    pub(super) fn show_statements(&mut self) {
        self.show_as_statements(self.session.statement_count());
    }

    fn show_as_statements(&mut self, now: usize) {
        let now = u32::try_from(now).unwrap_or(u32::MAX);
        let before = std::mem::replace(&mut self.shown_statements, now);
        if now != before {
            self.door.metrics.session.statements.add(i64::from(now) - i64::from(before));
        }
    }

    async fn leave(&mut self, goodbye: Goodbye) {
        self.door.metrics.client.goodbyes.get(goodbye).inc();
        self.show(PinSet::EMPTY, None);
        self.show_as_statements(0);
        self.forget_backend().await;
        if self.door.settings.log_connections {
            let (id, user, turns) = (self.registered.entry.id, &self.guest.user, self.turns);
            let seconds = self.since.elapsed().as_secs_f64();
            tracing::info!(id, %user, host = %self.host, reason = ?goodbye, turns, seconds, "client left");
        }
    }

    /// Leaves nothing behind: a backend that something was pinned to is reset before anybody else may have it.
    pub(super) async fn forget_backend(&mut self) {
        self.loan = None;
        self.close_own();
        if !self.session.bears_reset() {
            self.drop_lease(CloseReason::Dirty);
        }
        let Some(mut lease) = self.lease.take().or_else(|| self.kept_for_us()) else { return };
        // MariaDB keeps what pseudo_slave_mode has made over a reset, MySQL perhaps its resource group.
        let lasting: PinSet = [PinReason::WriteOnlyVariable, PinReason::ResourceGroup].into_iter().collect();
        if self.session.pins().intersects(lasting) {
            lease.discard(CloseReason::Dirty);
            return;
        }
        if !self.door.is_current(&lease) {
            lease.discard(CloseReason::Stale);
            return;
        }
        self.door.metrics.session.resets.inc();
        let reset = tokio::time::timeout(FAREWELL, self.door.connector.reset(&mut lease)).await;
        match reset {
            Ok(Ok(())) if !lease.has_strange_role() => lend::give_back(lease, 0),
            _ => lease.discard(CloseReason::Dirty),
        }
    }
}

/// Why a session keeps its backend though nothing pins it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keeping {
    /// `pool.mode` is `session`.
    SessionMode,
    /// The server cannot report what was done to the session.
    Unreported,
}

impl Keeping {
    /// What `pool.mode` says.
    pub(super) fn by_mode(door: &Door) -> Option<Self> {
        door.settings.session_mode.then_some(Self::SessionMode)
    }

    /// Its name in the metrics.
    const fn label(self) -> &'static str {
        match self {
            Self::SessionMode => "session_mode",
            Self::Unreported => "unreported",
        }
    }
}

/// Why waiting ended.
enum Wake {
    Bytes(usize),
    Closed(Goodbye),
    /// The backend that the session used last is its own again.
    Kept(Lease<Server>),
    BackendGone,
    Summoned(Summons),
}

/// A socket error, as a goodbye.
pub(super) fn goodbye_of(error: &io::Error) -> Goodbye {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Goodbye::Closed,
        io::ErrorKind::InvalidData => Goodbye::Protocol,
        _ => Goodbye::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The future that `make` returns, without one being made.
    fn size_of_future<A, B, C, D, F: Future>(_make: fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    /// What 100,000 idle clients are made of: see docs/BENCHMARKS.md.
    #[test]
    fn an_idle_client_is_small() {
        let (client, task) = (size_of::<Client>(), size_of_future(welcome));
        assert!(client <= 512, "a client takes {client} bytes");
        assert!(task <= 192, "its task takes {task} bytes");
    }
}
