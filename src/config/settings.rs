//! Settings as meant: checked, with units applied. What the other rooms receive.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use zeroize::Zeroizing;

/// Everything the proxy needs to know.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Where clients come in.
    pub server: Server,
    /// Where queries go.
    pub backend: Backend,
    /// What is known of sessions beyond what the server says.
    pub session: Session,
    /// How many connections, for how long.
    pub pool: Pool,
    /// Who is next.
    pub scheduler: Scheduler,
    /// What a client may not exceed.
    pub limits: Limits,
    /// Who may come in.
    pub auth: Auth,
    /// The page for operators.
    pub metrics: MetricsPage,
    /// Threads.
    pub runtime: Runtime,
    /// What is logged, and how.
    pub log: Log,
    /// What the operator should look at although it is no mistake; logged at start.
    pub warnings: Vec<String>,
}

/// One address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `HOST:PORT`; port 0 picks a free one.
    Tcp(SocketAddr),
    /// `unix:/path`
    Unix(PathBuf),
}

/// `[server]`
#[derive(Clone, Debug)]
pub struct Server {
    /// Addresses to listen on; at least one. Default `127.0.0.1:6033`.
    pub listen: Vec<Listen>,
    /// Clients at once, logging in included. Default 10,000; range 1 to 1,000,000.
    pub max_clients: usize,
    /// Clients at once from one IP address; 0 is no limit (the default).
    pub max_clients_per_address: usize,
    /// Logins at once: TLS, passwords and what the server is asked; others wait in line. Default 512; range 1 to 100,000.
    pub max_handshakes: usize,
    /// New connections per second, from everywhere; more wait to be accepted. 0 is no limit (the default).
    pub connect_rate: u32,
    /// New connections per second from one IP address; more are refused. 0 is no limit (the default).
    pub connect_rate_per_address: u32,
    /// Time for greeting, TLS and authentication together, without the time in line. Default 10 s.
    pub handshake_timeout: Duration,
    /// An idle client is disconnected after this time. Default 8 h (MySQL's wait_timeout); zero is never.
    pub idle_timeout: Duration,
    /// The listen queue, capped by net.core.somaxconn. Default 4,096.
    pub backlog: u32,
    /// Several proxy processes share one port (SO_REUSEPORT). Default false.
    pub reuse_port: bool,
    /// Which of the proxies that share a port this is, so that clients' ids differ. Default 0, the only one; range 0 to 255.
    pub instance: u8,
    /// Clients may compress what they send and get, as far as the server lets them. Default true.
    pub compression: bool,
    /// At SIGTERM, time for clients to finish before they are cut off. Default 30 s.
    pub drain_timeout: Duration,
    /// TLS with clients.
    pub tls: ServerTls,
}

/// How much TLS is wanted from clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerTlsMode {
    /// Not offered.
    Off,
    /// Offered.
    #[default]
    Optional,
    /// A client without TLS is refused.
    Required,
}

/// `[server.tls]`
#[derive(Clone, Debug, Default)]
pub struct ServerTls {
    /// Default `optional`.
    pub mode: ServerTlsMode,
    /// PEM chain; absent: a self-signed certificate is made at start, as MySQL does.
    pub certificate: Option<PathBuf>,
    /// PEM private key; given if and only if `certificate` is.
    pub key: Option<PathBuf>,
    /// PEM certificates that sign client certificates; absent: none is asked for.
    pub client_ca: Option<PathBuf>,
}

/// A server's name or address, and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A name or an IP address.
    pub host: String,
    /// 1 to 65,535; default 3306.
    pub port: u16,
}

/// Local addresses, from the first to the last; as a setting, never more than a thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceAddresses {
    /// The first.
    pub first: IpAddr,
    /// The last, of the same family and not before the first.
    pub last: IpAddr,
}

/// Local ports, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last, not before the first.
    pub last: u16,
}

/// `[backend]`
#[derive(Clone, Debug)]
pub struct Backend {
    /// The servers; exactly one for now. Default `127.0.0.1:3306`.
    pub servers: Vec<Endpoint>,
    /// Where connections come from: addresses of this host, each at most once, 1,024 at most. Default none: the system picks
    /// address and port.
    pub source_addresses: Option<Vec<SourceAddresses>>,
    /// Which ports of these addresses are used. Default none: those of net.ipv4.ip_local_port_range, without
    /// net.ipv4.ip_local_reserved_ports.
    pub source_ports: Option<PortRange>,
    /// Time to connect, negotiate TLS and log in, together. Default 10 s.
    pub connect_timeout: Duration,
    /// TCP keep-alive: idle time before the first probe. Default 60 s; zero switches it off.
    pub keepalive: Duration,
    /// How often the server's global variables are looked at, on an idle connection, so that new sessions see what
    /// was changed. Default 5 s; zero is never.
    pub globals_interval: Duration,
    /// Statements that every session begins with, also after a reset. Default none.
    pub init_sql: Option<Vec<String>>,
    /// TLS with the servers.
    pub tls: BackendTls,
}

/// `[session]`
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Stored procedures and functions that leave nothing behind in a session: `NAME`, or `SCHEMA.NAME`. Default none.
    pub harmless_routines: Option<Vec<String>>,
}

/// How much TLS is wanted with servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendTlsMode {
    /// Never.
    #[default]
    Off,
    /// If the server offers it.
    Preferred,
    /// A server without TLS is not used.
    Required,
}

/// `[backend.tls]`
#[derive(Clone, Debug, Default)]
pub struct BackendTls {
    /// Default `off`.
    pub mode: BackendTlsMode,
    /// PEM certificates that sign the server's; absent: the server's certificate is not verified.
    pub ca: Option<PathBuf>,
    /// The name that the server's certificate must carry; absent: the endpoint's host.
    pub server_name: Option<String>,
}

/// When a backend connection goes back to the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolMode {
    /// After each turn that leaves nothing behind.
    #[default]
    Transaction,
    /// When the client disconnects.
    Session,
}

/// `[pool]`
#[derive(Clone, Debug)]
pub struct Pool {
    /// Default `transaction`.
    pub mode: PoolMode,
    /// The hard cap of connections to one server. Default 32; range 1 to 100,000.
    pub max_connections: usize,
    /// Idle connections kept open. Default 0; at most `max_connections`.
    pub min_idle: usize,
    /// An idle connection is closed after this time. Default 10 min; zero is never.
    pub idle_timeout: Duration,
    /// A connection is replaced after this time, shortened by up to a tenth at random. Default 1 h; zero is never.
    pub max_lifetime: Duration,
    /// Connections being opened at once. Default 8.
    pub open_parallel: usize,
    /// Connections beyond `max_connections` that may be opened for a KILL alone. Default 1; range 0 to 16.
    pub kill_connections: usize,
    /// Prepared statements kept on each connection. Default 256.
    pub prepared_statements: usize,
}

/// How many statements may run at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxRunning {
    /// As many as there are connections.
    #[default]
    Off,
    /// As many as still make the server do more.
    Auto,
    /// So many.
    At(usize),
}

/// `[scheduler]`
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// Default `off`; else 1 to 100,000.
    pub max_running: MaxRunning,
    /// A statement that has run for so long no longer counts as running. Default 500 ms; range 10 ms to 1 h.
    pub stall_limit: Duration,
    /// How many such statements there may be beside those that count. Default 64; range 0 to 100,000.
    pub oversubscribe: usize,
    /// New work that has waited for so long goes with that of open transactions. Default 1 s; range 1 ms to 1 h.
    pub kickup: Duration,
    /// How many statements of one transaction go before new work. Default 1,000,000.
    pub high_priority_tickets: u32,
    /// How long a command may wait for a backend. Default 30 s.
    pub queue_timeout: Duration,
    /// How many may wait at once. Default 100,000.
    pub max_waiting: usize,
}

/// `[limits]`
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest command a client may send, in bytes. Default 1 GiB.
    pub max_packet: usize,
    /// How long a client may stop half way, in sending a command or in taking a reply, before it is cut off. Default 60 s.
    pub stall_timeout: Duration,
    /// One relay buffer, in bytes; a busy client uses at most a few. Default 16 KiB; range 4 KiB to 1 MiB.
    pub buffer: usize,
    /// How many bytes of user variables of one session are carried along; with more, it keeps its connection. Default
    /// 64 KiB; range 0 to 1 MiB.
    pub user_variables: usize,
    /// Statements that one client may have prepared. Default 16,382.
    pub max_prepared_statements: usize,
    /// What the clients of single schemas may have. Default nothing special.
    pub schemas: Vec<SchemaLimits>,
}

/// `[[limits.schemas]]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaLimits {
    /// The schema.
    pub name: String,
    /// Clients at once that log in to it; 0 is no limit (the default).
    pub max_clients: usize,
    /// Connections at once that sessions in it use; 0 is no limit (the default).
    pub max_connections: usize,
    /// Their commands in line at once; 0 is no limit of its own (the default).
    pub max_waiting: usize,
}

/// Where the proxy gets its clients' passwords from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthMode {
    /// From `[[auth.users]]`.
    #[default]
    Users,
    /// From the client, verified by logging in to the server with it, and remembered for a while.
    Passthrough,
}

/// `[auth]`
#[derive(Clone, Debug)]
pub struct Auth {
    /// Default `users`.
    pub mode: AuthMode,
    /// `passthrough`: how long a verified password is remembered. Default 10 min.
    pub remember: Duration,
    /// `passthrough`: how many accounts are remembered. Default 10,000.
    pub remember_max: usize,
    /// The RSA key for passwords of clients without TLS; one of our own if there is none.
    pub private_key: Option<PathBuf>,
    /// `users`: who may come in.
    pub users: Vec<User>,
}

/// `[[auth.users]]`
#[derive(Clone)]
pub struct User {
    /// The name that the client gives.
    pub name: String,
    /// In clear; from `password`, the file `password_file`, or the variable named by `password_env`.
    pub password: Zeroizing<String>,
    /// Clients of this user at once; 0 is no limit (the default).
    pub max_clients: usize,
    /// Connections to the server at once; 0 is no limit of its own (the default).
    pub max_connections: usize,
    /// Commands in line at once; 0 is no limit of its own (the default).
    pub max_waiting: usize,
    /// Its part of the server where several users wait. Default 1; range 1 to 1,000.
    pub weight: u32,
    /// The name to use at the server; absent: the same.
    pub backend_user: Option<String>,
}

impl Default for User {
    /// Nobody, without limits.
    fn default() -> Self {
        let (name, password) = (String::new(), Zeroizing::default());
        Self { name, password, max_clients: 0, max_connections: 0, max_waiting: 0, weight: 1, backend_user: None }
    }
}

/// Without the password, so that no log line and no panic message can show it.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("name", &self.name)
            .field("password", &"...")
            .field("max_clients", &self.max_clients)
            .field("max_connections", &self.max_connections)
            .field("max_waiting", &self.max_waiting)
            .field("weight", &self.weight)
            .field("backend_user", &self.backend_user)
            .finish()
    }
}

/// `[metrics]`
#[derive(Clone, Debug, Default)]
pub struct MetricsPage {
    /// Where the page is served; absent: nowhere.
    pub listen: Option<SocketAddr>,
}

/// `[runtime]`
#[derive(Clone, Debug, Default)]
pub struct Runtime {
    /// Worker threads; 0 (the default) is one per core.
    pub threads: usize,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For machines.
    Json,
}

/// `[log]`
#[derive(Clone, Debug)]
pub struct Log {
    /// Default `text`.
    pub format: LogFormat,
    /// `error`, `warn`, `info` (default), `debug`, `trace`, or directives as in `info,myriad::pool=debug`.
    pub level: String,
    /// One line for every client connection that ends. Default true.
    pub connections: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: vec![Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 6033)))],
            max_clients: 10_000,
            max_clients_per_address: 0,
            max_handshakes: 512,
            connect_rate: 0,
            connect_rate_per_address: 0,
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(8 * 3600),
            backlog: 4096,
            reuse_port: false,
            instance: 0,
            compression: true,
            drain_timeout: Duration::from_secs(30),
            tls: ServerTls::default(),
        }
    }
}

impl Default for Backend {
    fn default() -> Self {
        Self {
            servers: vec![Endpoint { host: "127.0.0.1".into(), port: 3306 }],
            source_addresses: None,
            source_ports: None,
            connect_timeout: Duration::from_secs(10),
            keepalive: Duration::from_secs(60),
            globals_interval: Duration::from_secs(5),
            init_sql: None,
            tls: BackendTls::default(),
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            mode: PoolMode::default(),
            max_connections: 32,
            min_idle: 0,
            idle_timeout: Duration::from_secs(600),
            max_lifetime: Duration::from_secs(3600),
            open_parallel: 8,
            kill_connections: 1,
            prepared_statements: 256,
        }
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            max_running: MaxRunning::default(),
            stall_limit: Duration::from_millis(500),
            oversubscribe: 64,
            kickup: Duration::from_secs(1),
            high_priority_tickets: 1_000_000,
            queue_timeout: Duration::from_secs(30),
            max_waiting: 100_000,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_packet: 1 << 30,
            stall_timeout: Duration::from_secs(60),
            buffer: 16 << 10,
            user_variables: 64 << 10,
            max_prepared_statements: 16_382,
            schemas: Vec::new(),
        }
    }
}

impl Default for Auth {
    fn default() -> Self {
        Self {
            mode: AuthMode::default(),
            remember: Duration::from_secs(600),
            remember_max: 10_000,
            private_key: None,
            users: Vec::new(),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::default(), level: "info".into(), connections: true }
    }
}
