//! What all clients of one proxy share.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use super::chatter::Chatter;
use super::opening::Openings;
use super::pace::Pace;
use super::proofs::Proofs;
use super::registry::Registry;
use super::remember::Remembered;
use super::routines::Routines;
use super::schemas::Schemas;
use super::users::Users;
use crate::backend::{Account, Backend, Changing, Class, Connector};
use crate::config::{Config, PoolMode};
use crate::metrics::Metrics;
use crate::pool::{Pool, Server};
use crate::protocol::auth::rsa::Keys;
use crate::protocol::capability::CapabilityFlags;
use crate::session::{Interner, Texts};

/// What all clients of one proxy share: built once, read only.
pub struct Door {
    /// Who may come in.
    pub users: Users,
    /// Schemas with limits of their own.
    pub schemas: Schemas,
    /// Who is there.
    pub registry: Arc<Registry>,
    /// The backends.
    pub pool: Arc<Pool<Server>>,
    /// The server behind the pool.
    pub connector: Arc<Connector>,
    /// Session states.
    pub interner: Arc<Interner>,
    /// Texts of prepared statements.
    pub texts: Texts,
    /// Texts of statements that have a name: each is a whole `PREPARE`, and does what the statement in it does.
    pub named_texts: Texts,
    /// Answers to COM_STMT_PREPARE.
    pub remembered: Remembered,
    /// What a SET does.
    pub chatter: Chatter,
    /// States that a server has accepted as a whole.
    pub proven: Proven,
    /// What new sessions begin with.
    pub openings: Openings,
    /// The numbers.
    pub metrics: Arc<Metrics>,
    /// TLS, if it is offered.
    pub tls: Option<TlsAcceptor>,
    /// Is a client without TLS refused?
    pub tls_required: bool,
    /// For passwords without TLS.
    pub keys: Arc<Keys>,
    /// Room for logins.
    pub handshakes: Semaphore,
    /// When the next client is to be accepted, and from where.
    pub pace: Pace,
    /// Passwords that are being proven.
    pub proofs: Proofs,
    /// Room for connections beyond the pool, to kill by.
    pub killing: Arc<Semaphore>,
    /// Routines that leave nothing in a session.
    pub routines: Routines,
    /// The tasks of all clients.
    pub tasks: TaskTracker,
    /// The settings below, as configured.
    pub settings: Settings,
}

impl Door {
    /// Accounts or their rights were changed at the server.
    pub fn accounts_changed(&self) {
        self.users.renew();
    }

    /// A global variable was changed at the server: whoever comes from now on gets connections that are opened from now
    /// on, and what sessions begin with is learned anew. Those who are here share the connections that there are, as long
    /// as one of them is free, and then keep what they began with as if they had set it.
    pub fn globals_changed(&self) {
        self.connector.globals_changed();
        self.pool.forget_last_opened();
    }

    /// The class of connections for a session that begins now, or has none left of its own time.
    #[must_use]
    pub fn class(&self, account: Arc<Account>, capabilities: CapabilityFlags) -> Class {
        Class::new(account, capabilities, self.connector.era())
    }

    /// A statement is about to be sent on this backend that may change a global variable: once those have landed that are
    /// given their defaults on others. Who begins that later waits until what is returned is dropped.
    pub async fn changing(&self, backend: &Backend) -> Changing<'_> {
        let changing = self.connector.changing();
        self.connector.defaults_settle(backend).await;
        changing
    }

    /// Does this connection keep what it has by default, whatever is done to it? If not, a reset or a `DEFAULT` would
    /// give it what only later sessions have.
    #[must_use]
    pub fn is_current(&self, backend: &Backend) -> bool {
        backend.era == self.connector.era()
    }
}

/// The numbers of states that a server has accepted as a whole: restoring them needs no waiting.
#[derive(Debug, Default)]
pub struct Proven(Mutex<HashSet<u64>>);

impl Proven {
    /// How many are known at most; then it starts over.
    const MAX: usize = 100_000;

    /// Was this state accepted before?
    #[must_use]
    pub fn contains(&self, state: u64) -> bool {
        self.0.lock().contains(&state)
    }

    /// This state was accepted.
    pub fn insert(&self, state: u64) {
        let mut states = self.0.lock();
        if states.len() >= Self::MAX {
            states.clear();
        }
        states.insert(state);
    }

    /// This state was refused after all.
    pub fn remove(&self, state: u64) {
        self.0.lock().remove(&state);
    }
}

/// The settings that clients look at.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `server.max_clients`
    pub max_clients: usize,
    /// `server.max_clients_per_address`
    pub max_clients_per_address: usize,
    /// `server.max_handshakes`
    pub max_handshakes: usize,
    /// `server.connect_rate_per_address`
    pub connect_rate_per_address: u32,
    /// `server.handshake_timeout`
    pub handshake_timeout: Duration,
    /// `scheduler.queue_timeout`
    pub queue_timeout: Duration,
    /// `pool.max_connections`
    pub max_connections: usize,
    /// `pool.kill_connections`
    pub kill_connections: usize,
    /// `limits.max_packet`, in bytes
    pub max_packet: usize,
    /// `limits.stall_timeout`
    pub stall_timeout: Duration,
    /// `limits.buffer`, in bytes
    pub buffer: usize,
    /// `server.compression`
    pub compression: bool,
    /// `limits.user_variables`, in bytes
    pub user_variables: usize,
    /// `limits.max_prepared_statements`
    pub max_statements: usize,
    /// `pool.mode` is `session`
    pub session_mode: bool,
    /// `log.connections`
    pub log_connections: bool,
}

impl Settings {
    /// What clients need of the configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            max_clients: config.server.max_clients,
            max_clients_per_address: config.server.max_clients_per_address,
            max_handshakes: config.server.max_handshakes,
            connect_rate_per_address: config.server.connect_rate_per_address,
            handshake_timeout: config.server.handshake_timeout,
            queue_timeout: config.scheduler.queue_timeout,
            max_connections: config.pool.max_connections,
            kill_connections: config.pool.kill_connections,
            max_packet: config.limits.max_packet,
            stall_timeout: config.limits.stall_timeout,
            buffer: config.limits.buffer,
            compression: config.server.compression,
            user_variables: config.limits.user_variables,
            max_statements: config.limits.max_prepared_statements,
            session_mode: config.pool.mode == PoolMode::Session,
            log_connections: config.log.connections,
        }
    }
}
