//! The table of every option that exists. Whatever is not in it is refused; what is in it must stand in
//! `config/myriad.toml` with the same default and range, and a test sees to that.
//!
//! An option is one line: the field of [`Config`] it sets, and the [`Shape`] of its values. Its default is the field's.

use std::path::PathBuf;
use std::time::Duration;

use zeroize::Zeroizing;

use super::address::{IpPort, ListenAddress, ServerAddress};
use super::list::List;
use super::outgoing::{Addresses, Ports};
use super::settings::{AuthMode, BackendTlsMode, Config, LogFormat, MaxRunning, PoolMode, ServerTlsMode};
use super::shape::{Fault, FilePath, Levels, Maybe, Secret, Several, Shape, Text, Whole, Word, WordOr, Written, YesNo};
use super::unit::{Size, hours, minutes, time, time_or_never};

/// An option of a `T`.
pub(super) struct Opt<T: 'static> {
    /// As in `server.tls.mode`.
    pub(super) name: &'static str,
    /// Sets it.
    pub(super) read: fn(&mut T, &Written<'_>) -> Result<(), Vec<Fault>>,
    /// Its value as TOML; empty if it is not given.
    pub(super) show: fn(&T) -> String,
    /// Its range in words.
    pub(super) range: fn() -> String,
}

macro_rules! options {
    ($target:ty { $($first:ident $(. $rest:ident)*: $shape:expr),+ $(,)? }) => {
        &[$(Opt::<$target> {
            name: concat!(stringify!($first) $(, ".", stringify!($rest))*),
            read: |target, written| {
                target.$first $(. $rest)* = $shape.read(written)?;
                Ok(())
            },
            show: |target| $shape.show(&target.$first $(. $rest)*),
            range: || $shape.range(),
        }),+]
    };
}

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const TENTH: Duration = Duration::from_millis(100);
const DAY: Duration = hours(24);
const MONTH: Duration = hours(24 * 31);
const TEXT: Text = Text { max: 255 };
const STATEMENT: Text = Text { max: 4096 };

const SERVER_TLS: Word<ServerTlsMode> =
    Word(&[("off", ServerTlsMode::Off), ("optional", ServerTlsMode::Optional), ("required", ServerTlsMode::Required)]);
const BACKEND_TLS: Word<BackendTlsMode> = Word(&[
    ("off", BackendTlsMode::Off),
    ("preferred", BackendTlsMode::Preferred),
    ("required", BackendTlsMode::Required),
]);
const POOL_MODE: Word<PoolMode> = Word(&[("transaction", PoolMode::Transaction), ("session", PoolMode::Session)]);
const AUTH_MODE: Word<AuthMode> = Word(&[("users", AuthMode::Users), ("passthrough", AuthMode::Passthrough)]);
const LOG_FORMAT: Word<LogFormat> = Word(&[("text", LogFormat::Text), ("json", LogFormat::Json)]);

const MAX_RUNNING: WordOr<MaxRunning, usize> = WordOr {
    words: Word(&[("off", MaxRunning::Off), ("auto", MaxRunning::Auto)]),
    other: Whole(1, 100_000),
    of: MaxRunning::At,
    into: |value| match value {
        MaxRunning::At(limit) => Some(limit),
        MaxRunning::Off | MaxRunning::Auto => None,
    },
};

/// Every option but those of lists.
pub(super) const OPTIONS: &[Opt<Config>] = options!(Config {
    server.listen: Several(ListenAddress),
    server.max_clients: Whole(1, 1_000_000),
    server.max_clients_per_address: Whole(0, 1_000_000),
    server.max_handshakes: Whole(1, 100_000),
    server.connect_rate: Whole(0, 1_000_000),
    server.connect_rate_per_address: Whole(0, 1_000_000),
    server.handshake_timeout: time(TENTH..=minutes(10)),
    server.idle_timeout: time_or_never(SECOND..=MONTH),
    server.backlog: Whole(1, 65_535),
    server.reuse_port: YesNo,
    server.instance: Whole(0, 255),
    server.compression: YesNo,
    server.drain_timeout: time(Duration::ZERO..=DAY),
    server.tls.mode: SERVER_TLS,
    server.tls.certificate: Maybe(FilePath),
    server.tls.key: Maybe(FilePath),
    server.tls.client_ca: Maybe(FilePath),
    backend.servers: Several(ServerAddress),
    backend.source_addresses: Maybe(Several(Addresses)),
    backend.source_ports: Maybe(Ports),
    backend.connect_timeout: time(TENTH..=minutes(10)),
    backend.keepalive: time_or_never(SECOND..=hours(2)),
    backend.globals_interval: time_or_never(TENTH..=hours(1)),
    backend.init_sql: Maybe(Several(STATEMENT)),
    backend.tls.mode: BACKEND_TLS,
    backend.tls.ca: Maybe(FilePath),
    backend.tls.server_name: Maybe(TEXT),
    session.harmless_routines: Maybe(Several(TEXT)),
    pool.mode: POOL_MODE,
    pool.max_connections: Whole(1, 100_000),
    pool.min_idle: Whole(0, 100_000),
    pool.idle_timeout: time_or_never(SECOND..=MONTH),
    pool.max_lifetime: time_or_never(SECOND..=MONTH),
    pool.open_parallel: Whole(1, 1_000),
    pool.kill_connections: Whole(0, 16),
    pool.prepared_statements: Whole(1, 100_000),
    scheduler.max_running: MAX_RUNNING,
    scheduler.stall_limit: time(MS.saturating_mul(10)..=hours(1)),
    scheduler.oversubscribe: Whole(0, 100_000),
    scheduler.kickup: time(MS..=hours(1)),
    scheduler.high_priority_tickets: Whole(0, 1_000_000),
    scheduler.queue_timeout: time(MS..=hours(1)),
    scheduler.max_waiting: Whole(0, 1_000_000),
    limits.max_packet: Size(1 << 10, 1 << 30),
    limits.stall_timeout: time(SECOND..=DAY),
    limits.buffer: Size(4 << 10, 1 << 20),
    limits.user_variables: Size(0, 1 << 20),
    limits.max_prepared_statements: Whole(0, 1_000_000),
    auth.mode: AUTH_MODE,
    auth.remember: time(SECOND..=DAY),
    auth.remember_max: Whole(1, 1_000_000),
    auth.private_key: Maybe(FilePath),
    metrics.listen: Maybe(IpPort),
    runtime.threads: Whole(0, 1_024),
    log.format: LOG_FORMAT,
    log.level: Levels,
    log.connections: YesNo,
});

/// The users.
pub(super) const USERS: List<WrittenUser> = List { name: "auth.users", item: "user", options: USER_OPTIONS };

/// Schemas with limits of their own.
pub(super) const SCHEMAS: List<WrittenSchema> =
    List { name: "limits.schemas", item: "schema", options: SCHEMA_OPTIONS };

/// One of `[[auth.users]]`, as written: the password may still have to be fetched.
pub(super) struct WrittenUser {
    pub(super) name: Option<String>,
    pub(super) password: Option<Zeroizing<String>>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) password_env: Option<String>,
    pub(super) max_clients: usize,
    pub(super) max_connections: usize,
    pub(super) max_waiting: usize,
    pub(super) weight: u32,
    pub(super) backend_user: Option<String>,
}

impl Default for WrittenUser {
    fn default() -> Self {
        Self {
            name: None,
            password: None,
            password_file: None,
            password_env: None,
            max_clients: 0,
            max_connections: 0,
            max_waiting: 0,
            weight: 1,
            backend_user: None,
        }
    }
}

/// Every option of a user.
pub(super) const USER_OPTIONS: &[Opt<WrittenUser>] = options!(WrittenUser {
    name: Maybe(TEXT),
    password: Maybe(Secret),
    password_file: Maybe(FilePath),
    password_env: Maybe(TEXT),
    max_clients: Whole(0, 1_000_000),
    max_connections: Whole(0, 100_000),
    max_waiting: Whole(0, 1_000_000),
    weight: Whole(1, 1_000),
    backend_user: Maybe(TEXT),
});

/// One of `[[limits.schemas]]`, as written.
#[derive(Default)]
pub(super) struct WrittenSchema {
    pub(super) name: Option<String>,
    pub(super) max_clients: usize,
    pub(super) max_connections: usize,
    pub(super) max_waiting: usize,
}

/// Every option of a schema.
pub(super) const SCHEMA_OPTIONS: &[Opt<WrittenSchema>] = options!(WrittenSchema {
    name: Maybe(TEXT),
    max_clients: Whole(0, 1_000_000),
    max_connections: Whole(0, 100_000),
    max_waiting: Whole(0, 1_000_000),
});

/// The option of this name.
pub(super) fn option(name: &str) -> Option<&'static Opt<Config>> {
    OPTIONS.iter().find(|option| option.name == name)
}

/// Every full name, lists included.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().map(|option| option.name).chain([USERS.name, SCHEMAS.name])
}

/// The names one level below a section (`""` is the document), in the order of the table.
pub(super) fn children(section: &str) -> Vec<&'static str> {
    let mut children = Vec::new();
    for name in names() {
        let below =
            if section.is_empty() { Some(name) } else { name.strip_prefix(section).and_then(|n| n.strip_prefix('.')) };
        let child = below.and_then(|below| below.split('.').next());
        children.extend(child.filter(|child| !children.contains(child)));
    }
    children
}

/// Whether this is a section, as in `server` or `server.tls`.
pub(super) fn is_section(name: &str) -> bool {
    !children(name).is_empty()
}
