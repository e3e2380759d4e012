//! From an address to a logged-in connection with its trackers on.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::BytesMut;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::dial::{Dialed, Dialer};
use super::eras::{Changing, Eras};
use super::facts::{Collation, Settings, version_number};
use super::kill::Threads;
use super::learn::{autocommit_off, collations, default_charset, defaulting, globals, sql_mode};
use super::meeting::Meeting;
use super::query_cache::QueryCache;
use super::{
    Account, Backend, Class, Defaults, NamesThere, OpenError, Prepared, QueryError, Role, Served, ServerFacts,
};
use crate::config::{self, BackendTlsMode, Endpoint};
use crate::metrics::{Metrics, OpenResult};
use crate::net::tls::{self, TlsError};
use crate::net::{Buffer, Stream};
use crate::protocol::capability::{BACKEND_ALWAYS, CapabilityFlags};
use crate::protocol::frame::{HEADER, Header};
use crate::protocol::handshake::{ClientSide, ClientStep, LoginError, LoginSpec, ServerGreeting, TlsWish};
use crate::protocol::packet::session_track::{Flavour, Wishes};
use crate::session::{BackendState, Interner, StateSpec};

/// The largest packet of a login, in bytes.
const MAX_LOGIN_PACKET: usize = 64 << 10;

/// How long a change of a global variable waits for turns in which variables get their default.
const LANDING: Duration = Duration::from_secs(1);
/// utf8mb4_general_ci: known to every server that we can talk to. What it becomes is read back after the login.
const LOGIN_COLLATION: u8 = 45;

/// Opens connections to one server.
pub struct Connector {
    endpoint: Endpoint,
    connect_timeout: Duration,
    dialer: Dialer,
    buffer: usize,
    prepared_statements: usize,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    tls_wish: TlsWish,
    init_sql: Arc<[String]>,
    threads: Arc<Threads>,
    facts: ArcSwapOption<ServerFacts>,
    eras: Arc<Eras>,
    pub(super) meeting: Meeting,
    /// Whether there is a query cache, and in which era.
    pub(super) query_cache: QueryCache,
    defaults: Defaults,
    interner: Arc<Interner>,
    metrics: Arc<Metrics>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Connector {
    /// A connector to `endpoint`; `buffer` is the size of a relay buffer in bytes, `prepared_statements` how many of them
    /// a connection keeps.
    ///
    /// # Errors
    /// If the settings for TLS cannot be used.
    pub fn new(
        endpoint: Endpoint,
        settings: &config::Backend,
        buffer: usize,
        prepared_statements: usize,
        interner: Arc<Interner>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, TlsError> {
        let (tls, tls_wish) = match settings.tls.mode {
            BackendTlsMode::Off => (None, TlsWish::Off),
            BackendTlsMode::Preferred => (Some(()), TlsWish::Preferred),
            BackendTlsMode::Required => (Some(()), TlsWish::Required),
        };
        let tls = match tls {
            None => None,
            Some(()) => {
                let name = tls::server_name(&settings.tls, &endpoint.host)?;
                Some((TlsConnector::from(tls::client_config(&settings.tls)?), name))
            }
        };
        Ok(Self {
            dialer: Dialer::new(endpoint.clone(), settings, Arc::clone(&metrics)),
            endpoint,
            connect_timeout: settings.connect_timeout,
            buffer,
            prepared_statements,
            tls,
            tls_wish,
            init_sql: settings.init_sql.iter().flatten().cloned().collect(),
            threads: Arc::default(),
            facts: ArcSwapOption::empty(),
            eras: Arc::default(),
            meeting: Meeting::default(),
            query_cache: QueryCache::default(),
            defaults: Defaults::default(),
            interner,
            metrics,
        })
    }

    /// What is known of the server; nothing before it was reached once.
    #[must_use]
    pub fn facts(&self) -> Option<Arc<ServerFacts>> {
        self.facts.load_full()
    }

    /// Is everything known that the state of this account's new sessions depends on? If not, its next login to the server
    /// learns it.
    #[must_use]
    pub fn is_sure(&self, account: &Account) -> bool {
        let era = self.era();
        let facts = self.facts.load();
        let Some(facts) = facts.as_ref().filter(|facts| facts.is_complete(era)) else { return false };
        facts.settings.begins_plain || account.opening(era).is_some()
    }

    /// The era of the server's global variables: how often one has changed.
    #[must_use]
    pub fn era(&self) -> u64 {
        self.eras.now()
    }

    /// What new sessions have by default.
    #[must_use]
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// A statement is sent that may change a global variable; to be dropped when it is answered.
    pub fn changing(&self) -> Changing<'_> {
        self.eras.change()
    }

    /// Is a global variable being changed?
    #[must_use]
    pub fn is_changing(&self) -> bool {
        self.eras.calm().is_none()
    }

    /// Waits until no global variable is being changed.
    pub async fn calmed(&self) {
        self.eras.calmed().await;
    }

    /// Does this thread of the server work for us?
    #[must_use]
    pub fn has_thread(&self, thread_id: u32) -> bool {
        self.threads.contains(thread_id)
    }

    /// A global variable was changed at the server: what new sessions begin with is to be learned anew.
    pub fn globals_changed(&self) {
        self.eras.end();
    }

    /// In which words there was no local port lately to connect from, if there was none.
    #[must_use]
    pub fn shortage(&self) -> Option<String> {
        self.dialer.shortage()
    }

    /// Where the server is.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Reads the server's greeting and hangs up, to learn who it is before any account is known.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub(super) async fn probe(&self) -> Result<(), OpenError> {
        let era = self.era();
        let greeted = async {
            let Dialed { stream, held: _held } = self.dialer.dial().await?;
            let mut stream = Stream::Tcp(stream);
            let mut payload = Vec::new();
            read_packet(&mut stream, &mut payload).await?;
            let greeting = ServerGreeting::parse(&payload).map_err(login_error)?;
            self.learn(&greeting, era, None);
            Ok(())
        };
        self.within_timeout(greeted).await
    }

    /// Opens a connection of this class, logged in, with its trackers on.
    ///
    /// # Errors
    /// [`OpenError`] says what kind of failure; every one is counted under its kind.
    pub async fn open(&self, class: &Class) -> Result<Backend, OpenError> {
        let started = Instant::now();
        let opened = self.within_timeout(Box::pin(self.log_in(class))).await;
        let result = opened.as_ref().map_or_else(|error| error.kind, |_| OpenResult::Ok);
        self.metrics.backend.opens.get(result).inc();
        self.metrics.backend.open_seconds.observe(started.elapsed().as_secs_f64());
        if let Err(error) = &opened {
            tracing::warn!(
                server = %self.endpoint, user = %class.account.user, kind = ?error.kind, code = error.code, %error,
                "cannot open a backend connection"
            );
        }
        opened
    }

    async fn within_timeout<T>(&self, opening: impl Future<Output = Result<T, OpenError>>) -> Result<T, OpenError> {
        timeout(self.connect_timeout, opening).await.unwrap_or_else(|_| {
            let (server, limit) = (&self.endpoint, self.connect_timeout.as_secs_f64());
            Err(OpenError::ours(
                OpenResult::Timeout,
                format!("{server} did not answer within {limit} s (backend.connect_timeout)"),
            ))
        })
    }

    /// [`Backend::change_user`], within `backend.connect_timeout`.
    ///
    /// # Errors
    /// As there, or that the time ran out.
    pub async fn change_user(&self, backend: &mut Backend, account: &Account) -> Result<(), OpenError> {
        let calm = self.eras.calm();
        let changed = self.within_timeout(Box::pin(backend.change_user(account, &self.interner))).await;
        backend.unsure |= self.eras.changed_since(calm);
        changed
    }

    /// In the turn that begins now something is given its default on this backend. False while a global variable is being
    /// changed: it could be the default of before or after.
    #[must_use]
    pub fn defaults_begin(&self, backend: &mut Backend) -> bool {
        backend.falling = self.eras.fall();
        backend.falling.is_some()
    }

    /// A global variable is about to be changed in a turn on this backend: waits for those turns on others that give
    /// something its default, so that it is the default of before; but not for long.
    pub async fn defaults_settle(&self, backend: &Backend) {
        let own = u64::from(backend.falling.is_some());
        let _ = timeout(LANDING, self.eras.landed(own)).await;
    }

    /// [`Backend::reset`]
    ///
    /// # Errors
    /// As there.
    pub async fn reset(&self, backend: &mut Backend) -> Result<(), QueryError> {
        let calm = self.eras.calm();
        let reset = backend.reset(&self.interner).await;
        backend.unsure |= self.eras.changed_since(calm);
        reset
    }

    async fn log_in(&self, class: &Class) -> Result<Backend, OpenError> {
        let calm = self.eras.calm();
        let greeted = self.era();
        let late = greeted != class.era;
        let dialed = self.dialer.dial().await?;
        let from = dialed.held;
        let mut stream = Stream::Tcp(dialed.stream);
        let capabilities = BACKEND_ALWAYS | class.flags();
        let mut conversation = ClientSide::new(login_spec(&class.account, capabilities, self.tls_wish));
        let (mut payload, mut out) = (Vec::new(), BytesMut::new());
        loop {
            let seq = read_packet(&mut stream, &mut payload).await?;
            let step = conversation.receive(seq, &payload, &mut out).map_err(|error| {
                let from = stream.local_address();
                OpenError { from, ..login_error(error) }
            })?;
            flush(&mut stream, &mut out).await?;
            match step {
                ClientStep::Read => {}
                ClientStep::Done => break,
                ClientStep::StartTls => {
                    stream = self.start_tls(stream).await?;
                    conversation.tls_done(&mut out);
                    flush(&mut stream, &mut out).await?;
                }
            }
        }
        if !conversation.capabilities().contains(class.flags() & CapabilityFlags::CLIENT_QUERY_ATTRIBUTES) {
            return Err(OpenError::ours(OpenResult::Protocol, "the server does not take query attributes any more"));
        }
        let greeting = conversation
            .greeting()
            .ok_or_else(|| OpenError::ours(OpenResult::Protocol, "the server accepted a login without greeting"))?;
        let mut backend = Backend {
            stream,
            _from: from,
            buffer: Buffer::new(self.buffer),
            patience: self.connect_timeout,
            thread_id: greeting.connection_id,
            _thread: self.threads.enter(greeting.connection_id),
            capabilities: conversation.capabilities(),
            state: BackendState::fresh(self.interner.intern(StateSpec::default()), false),
            init_sql: Arc::clone(&self.init_sql),
            served: Served::Nobody,
            erased: BTreeSet::new(),
            loan: None,
            role: Role::of(greeting.is_mariadb(), version_number(&greeting.version)),
            names: NamesThere::default(),
            prepared: Prepared::new(self.prepared_statements, Arc::clone(&self.metrics)),
            era: class.era,
            unsure: false,
            falling: None,
            quiet: false,
        };
        self.prepare(&mut backend, (greeting, greeted), &class.account).await.map_err(query_error)?;
        backend.unsure = late || self.eras.changed_since(calm);
        Ok(backend)
    }

    async fn start_tls(&self, stream: Stream) -> Result<Stream, OpenError> {
        let Some((connector, name)) = &self.tls else {
            return Err(OpenError::ours(OpenResult::Tls, "TLS is off in backend.tls.mode"));
        };
        stream.connect_tls(connector, name.clone()).await.map_err(|error| {
            OpenError::ours(OpenResult::Tls, format!("TLS with {}: {error} (see backend.tls)", self.endpoint))
        })
    }

    /// What a fresh connection needs: trackers on, its state known, and once for the server, its collations.
    async fn prepare(
        &self,
        backend: &mut Backend,
        (greeting, greeted): (&ServerGreeting, u64),
        account: &Account,
    ) -> Result<(), QueryError> {
        let as_of = self.era();
        let mut initial = backend.begin().await?;
        backend.role.logged_in(account);
        let opening = backend.opening(as_of).await?;
        if opening.by_server() && !backend.has_init_sql() {
            backend.read_variables(&mut initial).await?;
        }
        let begins_plain = opening.is_plain();
        account.opening.store(Some(Arc::new(opening)));
        let known = self.facts.load().as_ref().is_some_and(|facts| {
            facts.is_complete(as_of) && facts.version == greeting.version && facts.mariadb == greeting.is_mariadb()
        });
        if !known {
            let collations = match self.known_collations(greeting) {
                Some(collations) => collations,
                None => Arc::new(collations(backend, greeting.is_mariadb()).await?),
            };
            let default_charset = default_charset(backend).await?;
            let sql_mode = sql_mode(backend, &initial).await?;
            let autocommit_off = autocommit_off(backend).await?;
            let globals = globals(backend).await?;
            let flavour = if greeting.is_mariadb() { Flavour::MariaDb } else { Flavour::MySql };
            let wishes = Arc::new(Wishes::of(flavour, |name| globals.get(name)));
            self.defaults.learn(as_of, globals);
            let defaulting = if greeting.is_mariadb() { None } else { defaulting(backend).await? };
            let settings = Settings {
                collations,
                default_charset,
                defaulting,
                wishes,
                sql_mode,
                begins_plain,
                autocommit_off,
                as_of,
            };
            self.learn(greeting, greeted, Some(&settings));
            // Without autocommit these questions have begun a transaction.
            backend.query("ROLLBACK").await?;
        }
        let warned = backend.try_defaults(&self.defaults, account).await?;
        backend.state = BackendState { warned, ..BackendState::fresh(self.interner.intern(initial), false) };
        Ok(())
    }

    /// What collation numbers mean to a server of this version never changes.
    fn known_collations(&self, greeting: &ServerGreeting) -> Option<Arc<HashMap<u16, Collation>>> {
        let facts = self.facts();
        let same = facts.filter(|it| it.version == greeting.version && it.mariadb == greeting.is_mariadb());
        same.map(|it| Arc::clone(&it.settings.collations)).filter(|it| !it.is_empty())
    }

    /// What was learned later stays: a look at the greeting and a login, or two logins, may end in another order than they began.
    fn learn(&self, greeting: &ServerGreeting, greeted: u64, settings: Option<&Settings>) {
        self.facts.rcu(|before| {
            let known = before.as_ref().map(|facts| &facts.settings);
            let newer = |known: &&Settings| settings.is_none_or(|settings| settings.as_of < known.as_of);
            let settings = known.filter(newer).or(settings).cloned().unwrap_or_default();
            if let Some(facts) = before.as_ref().filter(|facts| facts.greeted > greeted) {
                return Some(Arc::new(ServerFacts { settings, ..ServerFacts::clone(facts) }));
            }
            Some(Arc::new(ServerFacts {
                version: greeting.version.clone(),
                capabilities: greeting.held(),
                collation: greeting.collation,
                status: greeting.status,
                mariadb: greeting.is_mariadb(),
                greeted,
                settings,
            }))
        });
    }
}

/// Who logs in, and how.
pub(super) fn login_spec(account: &Account, capabilities: CapabilityFlags, tls: TlsWish) -> LoginSpec {
    LoginSpec {
        user: account.user.clone(),
        password: account.password.clone(),
        schema: None,
        collation: LOGIN_COLLATION,
        capabilities,
        attributes: attributes(),
        tls,
    }
}

/// Connection attributes, as performance_schema.session_connect_attrs shows them.
fn attributes() -> Vec<(String, String)> {
    vec![
        ("_client_name".into(), "myriad".into()),
        ("_client_version".into(), env!("CARGO_PKG_VERSION").into()),
        ("_pid".into(), std::process::id().to_string()),
        ("program_name".into(), "myriad".into()),
    ]
}

pub(super) async fn read_packet(stream: &mut Stream, payload: &mut Vec<u8>) -> Result<u8, OpenError> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header).await.map_err(lost)?;
    let header = Header::parse(&header).unwrap_or(Header { len: 0, seq: 0 });
    if header.len > MAX_LOGIN_PACKET {
        return Err(OpenError::ours(OpenResult::Protocol, "the server does not speak the MySQL protocol"));
    }
    payload.resize(header.len, 0);
    stream.read_exact(payload).await.map_err(lost)?;
    Ok(header.seq)
}

pub(super) async fn flush(stream: &mut Stream, out: &mut BytesMut) -> Result<(), OpenError> {
    if !out.is_empty() {
        stream.write_all(out).await.map_err(lost)?;
        stream.flush().await.map_err(lost)?;
        out.clear();
    }
    Ok(())
}

fn lost(error: io::Error) -> OpenError {
    OpenError::ours(OpenResult::Refused, format!("the server hung up during the login: {error}"))
}

pub(super) fn login_error(error: LoginError) -> OpenError {
    match error {
        LoginError::Server { code, state, message } => OpenError::server(code, state, message),
        LoginError::TlsNotOffered | LoginError::ClearWithoutTls => OpenError::ours(OpenResult::Tls, error.to_string()),
        other => OpenError::ours(OpenResult::Protocol, other.to_string()),
    }
}

pub(super) fn query_error(error: QueryError) -> OpenError {
    match error {
        QueryError::Refused { code, state, message } => OpenError::server(code, Some(state), message),
        QueryError::Lost(error) => lost(error),
        QueryError::Protocol(error) => OpenError::ours(OpenResult::Protocol, error.to_string()),
    }
}
