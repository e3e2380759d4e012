//! Greeting and authentication of one client, and the check that the server would have it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use super::own::{self, Own};
use super::places::Place;
use super::reply::Fault;
use super::{Door, Host, lend, opening, packets, reply};
use crate::backend::{Account, Class, QueryError, ServerFacts};
use crate::metrics::{CloseReason, LoginResult};
use crate::net::{Buffer, Stream};
use crate::pool::{Lease, Server};
use crate::protocol::auth::{Nonce, Plugin, Secret};
use crate::protocol::capability::{COMPRESSION, CapabilityFlags, NEVER_OFFERED};
use crate::protocol::command::Command;
use crate::protocol::frame::Header;
use crate::protocol::handshake::{
    Answer, Fault as HandshakeFault, Greeting, HandshakeError, LoginRequest, Policy, ServerSide, Step,
};
use crate::session::{Options, Session, State, StateSpec, Value};

/// A client that may stay.
#[derive(Debug)]
pub(super) struct Guest {
    /// As the client gave it.
    pub(super) user: Arc<str>,
    /// Whose backends serve it: those of who it is at the server.
    pub(super) class: Class,
    /// The schema of the handshake; it exists and is open to this account.
    pub(super) schema: Option<Box<[u8]>>,
    /// What was agreed on.
    pub(super) capabilities: CapabilityFlags,
    /// The collation number of the handshake.
    pub(super) collation: u16,
    /// What the passwords of this connection are scrambled with.
    pub(super) salt: Nonce,
    /// What its session begins with.
    pub(super) start: Arc<State>,
    /// In session mode, its backend, until it is used for the first time.
    pub(super) own: Option<Own>,
    /// Its place among the user's clients.
    _places: (Place, Place),
}

/// A client that may not.
#[derive(Debug)]
pub(super) struct Turned {
    pub(super) result: LoginResult,
    pub(super) why: String,
}

impl Turned {
    pub(super) fn new(result: LoginResult, why: impl ToString) -> Self {
        Self { result, why: why.to_string() }
    }
}

/// Where a login takes place.
pub(super) struct Threshold<'a> {
    pub(super) door: &'a Arc<Door>,
    pub(super) buffer: &'a mut Buffer,
    /// The client's address, as the server would word it.
    pub(super) host: Host,
    /// The session's number, for the pool.
    pub(super) owner: u64,
    /// What passwords are scrambled with; made at the greeting.
    pub(super) salt: Nonce,
    /// What its answer to the greeting begins with.
    pub(super) first: Option<Header>,
    /// Is this a new connection, and not one that only changes its user?
    pub(super) fresh: bool,
    /// How long a refusal is held back.
    pub(super) penalty: Option<Duration>,
}

/// Greets a new client, and waits until it begins to answer.
pub(super) async fn greet(
    threshold: &mut Threshold<'_>,
    stream: &mut Stream,
    connection_id: u32,
) -> Result<ServerSide, Turned> {
    let door = threshold.door;
    let facts = match facts(door).await {
        Ok(facts) => facts,
        Err(fault) => return Err(refuse(threshold, stream, 0, &fault, LoginResult::Backend).await),
    };
    let greeting = greeting(door, &facts, connection_id);
    threshold.salt = salt();
    let mut machine = ServerSide::new(greeting, threshold.salt, Arc::clone(&door.keys), policy(door, stream));
    let mut out = BytesMut::new();
    machine.greet(&mut out);
    packets::write(stream, &mut out).await.map_err(gone)?;
    threshold.first = Some(packets::header(stream, threshold.buffer).await.map_err(gone)?);
    Ok(machine)
}

/// Authenticates a client that was greeted, and whose stream becomes TLS if it wants that.
pub(super) async fn log_in(
    threshold: &mut Threshold<'_>,
    stream: &mut Stream,
    machine: &mut ServerSide,
) -> Result<Guest, Turned> {
    Box::pin(follow(threshold, stream, machine, Ok(Step::Read), BytesMut::new())).await
}

/// Runs COM_CHANGE_USER, whose packet the machine has already seen.
pub(super) async fn change_user(
    threshold: &mut Threshold<'_>,
    stream: &mut Stream,
    machine: &mut ServerSide,
    step: Result<Step, HandshakeError>,
) -> Result<Guest, Turned> {
    Box::pin(follow(threshold, stream, machine, step, BytesMut::new())).await
}

/// How this client may log in.
pub(super) fn policy(door: &Door, stream: &Stream) -> Policy {
    let local = stream.is_local();
    Policy { tls_offered: door.tls.is_some() && !local, tls_required: door.tls_required, local }
}

/// The session of a client that has just logged in.
pub(super) fn session(door: &Arc<Door>, guest: &Guest) -> Session {
    let facts = door.connector.facts();
    let sql_mode = facts.as_ref().and_then(|facts| facts.sql_mode(guest.capabilities));
    let has = |word: &str| sql_mode.iter().flat_map(|mode| mode.split(',')).any(|mode| mode == word);
    let options = Options {
        mariadb: facts.as_ref().is_some_and(|facts| facts.mariadb),
        multi_statements: guest.capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
        tracks: guest.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK),
        ansi_quotes: has("ANSI_QUOTES"),
        no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
        ignore_space: has("IGNORE_SPACE"),
        autocommit_off: facts.as_ref().is_some_and(|facts| facts.settings.autocommit_off),
        version: facts.as_ref().map_or(0, |facts| facts.number()),
        user_variables: door.settings.user_variables,
    };
    let mut session = Session::new(Arc::clone(&guest.start), Arc::clone(&door.interner), options);
    if let Some(facts) = facts {
        session.wish(facts.settings.wishes.clone());
    }
    session
}

/// The state of a session that has just begun, as the server would make it from the handshake alone.
pub(super) fn base(
    door: &Door,
    facts: Option<&ServerFacts>,
    schema: Option<&[u8]>,
    collation: u16,
    capabilities: CapabilityFlags,
) -> Arc<State> {
    let charset = facts.map(|facts| facts.charset(collation)).unwrap_or_default();
    let schema = schema.filter(|schema| !schema.is_empty()).map(Into::into);
    let sql_mode = facts.and_then(|facts| facts.sql_mode(capabilities));
    let variables = sql_mode.as_deref().map(|mode| ("sql_mode".into(), Value::from(mode))).into_iter().collect();
    door.interner.intern(StateSpec { schema, charset, variables })
}

/// What of the handshake counts for the `sql_mode` after a change of users: MariaDB takes it back to the server's own.
pub(super) fn asked_again(facts: Option<&ServerFacts>, capabilities: CapabilityFlags) -> CapabilityFlags {
    if facts.is_some_and(|facts| facts.mariadb) { CapabilityFlags::empty() } else { capabilities }
}

/// A salt without zero bytes, as servers make it.
fn salt() -> Nonce {
    std::array::from_fn(|_| rand::random_range(1..128))
}

/// What is known of the server; looks at its greeting if this is the first client, or the first of an era.
async fn facts(door: &Door) -> Result<Arc<ServerFacts>, Fault> {
    door.connector.meet().await.map_err(|error| lend::fault_of(&error))?;
    door.connector.facts().ok_or_else(|| Fault::Unreachable { reason: "it has not introduced itself".into() })
}

/// The server's own greeting, minus what cannot be carried.
pub(super) fn greeting(door: &Door, facts: &ServerFacts, connection_id: u32) -> Greeting {
    let mut capabilities = (facts.capabilities - NEVER_OFFERED) | CapabilityFlags::CLIENT_LONG_PASSWORD;
    if !door.settings.compression {
        capabilities -= COMPRESSION;
    }
    let native = facts.mariadb && !door.users.is_passthrough();
    Greeting {
        version: facts.version.clone(),
        connection_id,
        capabilities,
        collation: facts.collation,
        status: facts.status,
        plugin: if native { Plugin::Native } else { Plugin::CachingSha2 },
    }
}

/// Follows the conversation from this step to its end, the last packet included.
async fn follow(
    threshold: &mut Threshold<'_>,
    stream: &mut Stream,
    machine: &mut ServerSide,
    step: Result<Step, HandshakeError>,
    mut out: BytesMut,
) -> Result<Guest, Turned> {
    let (password, verified) = Box::pin(identify(threshold, stream, machine, step, &mut out)).await?;
    let Some(request) = machine.request().cloned() else {
        return Err(Turned::new(LoginResult::Garbage, "a login without a user"));
    };
    match admit(threshold, &request, &password, verified).await {
        Ok(guest) => {
            let status = threshold.door.connector.facts().map(|facts| facts.status).unwrap_or_default();
            let tracks = guest.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK);
            let schema = guest.schema.as_deref().filter(|schema| !schema.is_empty());
            reply::welcome(&mut out, machine.next_seq(), status, schema, tracks);
            packets::write(stream, &mut out).await.map_err(gone)?;
            // Behind the last packet of the login, as servers do it.
            if let Some(algorithm) = request.compression {
                stream.compress(algorithm, threshold.door.settings.buffer);
            }
            Ok(guest)
        }
        Err((fault, result)) => {
            packets::write(stream, &mut out).await.map_err(gone)?;
            Err(refuse(threshold, stream, machine.next_seq(), &fault, result).await)
        }
    }
}

/// The conversation up to the password, and whether it is known to be right.
async fn identify(
    threshold: &mut Threshold<'_>,
    stream: &mut Stream,
    machine: &mut ServerSide,
    mut step: Result<Step, HandshakeError>,
    out: &mut BytesMut,
) -> Result<(Secret, bool), Turned> {
    let mut payload = Vec::new();
    loop {
        let current = match step {
            Ok(current) => current,
            Err(error) => return Err(misunderstood(threshold, stream, machine, &error).await),
        };
        let user = || machine.request().map(|request| request.user.clone()).unwrap_or_default();
        step = match current {
            Step::Read => {
                packets::write(stream, out).await.map_err(gone)?;
                let header = match threshold.first.take() {
                    Some(header) => header,
                    None => packets::header(stream, threshold.buffer).await.map_err(gone)?,
                };
                match machine.check_header(header.len, header.seq) {
                    Ok(()) => {
                        packets::payload(stream, threshold.buffer, header, &mut payload).await.map_err(gone)?;
                        machine.receive(header.seq, &payload, out)
                    }
                    Err(error) => Err(error),
                }
            }
            Step::StartTls => {
                let garbage = |error: io::Error| Turned::new(LoginResult::Garbage, format!("TLS: {error}"));
                match &threshold.door.tls {
                    Some(acceptor) => stream.accept_tls(acceptor).await.map_err(garbage)?,
                    None => return Err(Turned::new(LoginResult::Garbage, "TLS was not offered")),
                }
                machine.tls_done();
                Ok(Step::Read)
            }
            Step::Identify => {
                let known = threshold.door.users.look_up(&user(), std::time::Instant::now());
                machine.identified(known, out)
            }
            Step::Granted(password) => return Ok((password, true)),
            Step::AskServer { password } => return Ok((password, false)),
            Step::Denied { using_password } => {
                let fault = Fault::Denied { user: user(), host: threshold.host.to_string(), using_password };
                packets::write(stream, out).await.map_err(gone)?;
                return Err(refuse(threshold, stream, machine.next_seq(), &fault, LoginResult::Denied).await);
            }
        };
    }
}

/// The password is right, or the server will say: what else must hold before the client is welcome.
async fn admit(
    threshold: &Threshold<'_>,
    request: &LoginRequest,
    password: &Secret,
    mut verified: bool,
) -> Result<Guest, (Fault, LoginResult)> {
    let door = threshold.door;
    let places = places(door, request)?;
    let proving = match verified {
        true => None,
        false => door.proofs.begin(&request.user, password).await,
    };
    if !verified && door.users.has_proven(&request.user, password, std::time::Instant::now()) {
        door.metrics.client.joined.inc();
        verified = true;
    }
    let mut account = if verified {
        door.users.account(&request.user, password)
    } else {
        door.users.unproven_account(&request.user, password)
    };
    let mut class = door.class(Arc::clone(&account), request.capabilities);
    let known = door.connector.is_sure(&account);
    let schema = request.schema.as_deref().filter(|schema| !schema.is_empty());
    let is_there = |account: &Account| {
        let known = |schema| door.remembered.has_schema(account.id, schema, std::time::Instant::now());
        !door.settings.session_mode && schema.is_none_or(known)
    };
    let mut held = None;
    // Also where the schema is known to be there: a server that is gone, or would not have the account any more, says so.
    if !verified || request.schema.is_some() || !known {
        let (began, redefined) = (std::time::Instant::now(), door.remembered.era());
        let lease = lend::take_within(door, &mut class, threshold.owner, 0, None, own::patience(door)).await;
        let lease = lease.map_err(|error| denied(threshold, request, password, &error))?;
        // (One that was known may have another role by now.)
        account = if verified { Arc::clone(&class.account) } else { door.users.adopt_account(&account, began) };
        if !verified {
            door.users.remember(&request.user, password, began, std::time::Instant::now());
        }
        let shared = account == class.account;
        class.account = Arc::clone(&account);
        // Somebody else may have asked while this client waited.
        let asked = schema.filter(|_| !is_there(&account));
        held = check_schema(threshold, lease, asked, shared).await?;
        if let Some(schema) = asked {
            door.remembered.keep_schema(account.id, schema, redefined, std::time::Instant::now());
        }
    }
    drop(proving);
    let facts = door.connector.facts();
    if let Some(charset) = facts.as_ref().and_then(|facts| facts.unspoken_charset(request.collation)) {
        return Err((Fault::Charset { charset: charset.to_owned() }, LoginResult::Denied));
    }
    // What it begins with and what its connections have by default must be of the same time.
    class.era = facts.as_ref().map_or(class.era, |facts| facts.settings.as_of);
    let asked =
        if threshold.fresh { request.capabilities } else { asked_again(facts.as_deref(), request.capabilities) };
    let base = base(door, facts.as_deref(), request.schema.as_deref(), request.collation, asked);
    let keeps = threshold.fresh && opening::known(door, &class, &base, true).is_some();
    if let Some(lease) = held.take_if(|_| !keeps) {
        lend::give_back(lease, 0);
    }
    let start = opening::start(door, &class, threshold.owner, base, threshold.fresh).await;
    let start = start.map_err(|error| denied(threshold, request, password, &error))?;
    let own = own::take(door, &class, &start, held).await;
    let own = own.map_err(|error| denied(threshold, request, password, &error))?;
    Ok(Guest {
        user: Arc::from(request.user.as_str()),
        class,
        schema: request.schema.as_deref().map(Box::from),
        capabilities: request.capabilities,
        collation: request.collation,
        salt: threshold.salt,
        start,
        own,
        _places: places,
    })
}

/// The client's places among those of its user, and in its schema.
fn places(door: &Door, request: &LoginRequest) -> Result<(Place, Place), (Fault, LoginResult)> {
    let user_place = door.users.enter(&request.user).map_err(|limit| {
        door.metrics.client.refusals.get(crate::metrics::Limit::UserMaxClients).inc();
        (Fault::TooManyClients { limit: "auth.users.max_clients", value: limit.limit }, LoginResult::Denied)
    })?;
    let schema_place = door.schemas.enter(request.schema.as_deref()).map_err(|value| {
        door.metrics.client.refusals.get(crate::metrics::Limit::SchemaMaxClients).inc();
        (Fault::TooManyClients { limit: "limits.schemas.max_clients", value }, LoginResult::Denied)
    })?;
    Ok((user_place, schema_place))
}

/// The server would not have the client, or could not be asked.
fn denied(
    threshold: &Threshold<'_>,
    request: &LoginRequest,
    password: &Secret,
    error: &lend::Unlent,
) -> (Fault, LoginResult) {
    match error {
        lend::Unlent::Open(open) if open.code == 1045 => {
            threshold.door.users.forget(&request.user, password);
            // In the words that a direct connection would have got: the server's, who knows hosts by name, or, if we
            // come from elsewhere, with the client's own address.
            let fault = match open.from {
                Some(from) if threshold.host == Host::of(Some(from)) => {
                    Fault::Server { code: open.code, state: open.state, message: open.message.clone() }
                }
                _ => Fault::Denied {
                    user: request.user.clone(),
                    host: threshold.host.to_string(),
                    using_password: !password.is_empty(),
                },
            };
            (fault, LoginResult::Denied)
        }
        _ => (lend::fault(threshold.door, error), LoginResult::Backend),
    }
}

/// Is the schema there, and open to this account? The server words the answer (1049, 1044). `shared`: others can use the
/// connection afterwards; in session mode it stays with the client.
async fn check_schema(
    threshold: &Threshold<'_>,
    mut lease: Lease<Server>,
    schema: Option<&[u8]>,
    shared: bool,
) -> Result<Option<Lease<Server>>, (Fault, LoginResult)> {
    let mut refused = None;
    if let Some(schema) = schema.filter(|schema| !schema.is_empty()) {
        match lease.command(Command::InitDb, schema).await {
            Ok(_) => {
                let changed = |spec: &mut StateSpec| spec.schema = Some(schema.into());
                lease.state.state = threshold.door.interner.changed(&lease.state.state, changed);
            }
            Err(QueryError::Refused { code, state, message }) => {
                // The error is in its list of warnings now, which is for nobody else.
                lease.state.warned = true;
                refused = Some((Fault::Server { code, state, message }, LoginResult::Schema));
            }
            Err(error) => return Err((Fault::BackendLost { reason: error.to_string() }, LoginResult::Backend)),
        }
    }
    if shared && refused.is_none() && threshold.door.settings.session_mode {
        return Ok(Some(lease));
    }
    if shared {
        lend::give_back(lease, 0);
    } else {
        // It has proven the password; no client will ever have just this account.
        lease.discard(CloseReason::Displaced);
    }
    refused.map_or(Ok(None), Err)
}

/// Tells the client why it may not stay.
pub(super) async fn refuse(
    threshold: &Threshold<'_>,
    stream: &mut Stream,
    seq: u8,
    fault: &Fault,
    result: LoginResult,
) -> Turned {
    let mut out = BytesMut::new();
    fault.write(&mut out, seq);
    threshold.door.metrics.relay.error(fault.code().0);
    if let Some(penalty) = threshold.penalty {
        tokio::time::sleep(penalty).await;
    }
    // If it is gone it will not miss the answer.
    let _ = packets::write(stream, &mut out).await;
    Turned::new(result, fault)
}

/// The client does not speak the protocol, or not enough of it.
async fn misunderstood(
    threshold: &Threshold<'_>,
    stream: &mut Stream,
    machine: &ServerSide,
    error: &HandshakeError,
) -> Turned {
    let result = match error.fault() {
        HandshakeFault::Peer => LoginResult::Garbage,
        HandshakeFault::Setup | HandshakeFault::Us => LoginResult::Denied,
    };
    if let Some(Answer { code, state, message }) = error.answer() {
        let fault = Fault::Server { code, state, message: message.into() };
        refuse(threshold, stream, machine.next_seq(), &fault, result).await;
    }
    Turned::new(result, error)
}

fn gone(error: io::Error) -> Turned {
    let result = if error.kind() == io::ErrorKind::InvalidData { LoginResult::Garbage } else { LoginResult::Gone };
    Turned::new(result, error)
}
