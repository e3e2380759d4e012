//! Clients: how many in which state, logins, refusals, goodbyes.

use prometheus::{IntCounter, IntGauge, Registry};

use super::family::{Family, counter, counters, gauge, gauges, labelled};

labelled! {
    /// What a client is doing now.
    pub enum ClientState {
        /// Greeting and authentication.
        Handshake => "handshake",
        /// Logged in, nothing to do, no lease.
        Idle => "idle",
        /// Logged in, nothing to do, but pinned to a backend.
        Pinned => "pinned",
        /// In the line for a backend.
        Waiting => "waiting",
        /// A turn is under way.
        Running => "running",
    }
}

labelled! {
    /// How a login ended.
    pub enum LoginResult {
        /// Welcome.
        Ok => "ok",
        /// Wrong user or password (1045).
        Denied => "denied",
        /// The schema does not exist or is not for this account (1049, 1044).
        Schema => "schema",
        /// The server could not be asked.
        Backend => "backend",
        /// Not finished within `server.handshake_timeout`.
        Timeout => "timeout",
        /// Not the MySQL protocol.
        Garbage => "garbage",
        /// The client went away in the middle.
        Gone => "gone",
    }
}

labelled! {
    /// Which limit said no.
    pub enum Limit {
        /// `server.max_clients`
        MaxClients => "max_clients",
        /// `server.max_clients_per_address`
        MaxClientsPerAddress => "max_clients_per_address",
        /// `server.connect_rate_per_address`
        ConnectRatePerAddress => "connect_rate_per_address",
        /// `server.max_handshakes`
        MaxHandshakes => "max_handshakes",
        /// `auth.users.max_clients`
        UserMaxClients => "user_max_clients",
        /// `scheduler.max_waiting`
        MaxWaiting => "max_waiting",
        /// `auth.users.max_waiting`
        UserMaxWaiting => "user_max_waiting",
        /// `limits.schemas.max_clients`
        SchemaMaxClients => "schema_max_clients",
        /// `limits.schemas.max_waiting`
        SchemaMaxWaiting => "schema_max_waiting",
        /// `scheduler.queue_timeout`
        QueueTimeout => "queue_timeout",
        /// `limits.max_packet`
        MaxPacket => "max_packet",
        /// The process's open-file limit.
        OpenFiles => "open_files",
    }
}

labelled! {
    /// Why a client connection ended.
    pub enum Goodbye {
        /// COM_QUIT.
        Quit => "quit",
        /// The client closed the connection without COM_QUIT.
        Closed => "closed",
        /// A socket error.
        Io => "io",
        /// The client broke the protocol.
        Protocol => "protocol",
        /// The login did not succeed.
        Login => "login",
        /// A limit of the proxy.
        Limit => "limit",
        /// `server.idle_timeout`
        IdleTimeout => "idle_timeout",
        /// The backend was lost while the session was pinned to it, or in the middle of a reply.
        BackendLost => "backend_lost",
        /// KILL CONNECTION from another session.
        Killed => "killed",
        /// The proxy is shutting down.
        Drain => "drain",
        /// Our own mistake.
        Internal => "internal",
    }
}

/// Metrics of clients.
#[derive(Debug)]
pub struct ClientMetrics {
    /// `myriad_clients{state}`
    pub state: Family<ClientState, IntGauge>,
    /// `myriad_client_connections_total`
    pub accepted: IntCounter,
    /// `myriad_client_accept_delays_total`
    pub delays: IntCounter,
    /// `myriad_client_logins_waiting`
    pub in_line: IntGauge,
    /// `myriad_client_logins_joined_total`
    pub joined: IntCounter,
    /// `myriad_client_logins_total{result}`
    pub logins: Family<LoginResult, IntCounter>,
    /// `myriad_refusals_total{limit}`
    pub refusals: Family<Limit, IntCounter>,
    /// `myriad_client_goodbyes_total{reason}`
    pub goodbyes: Family<Goodbye, IntCounter>,
}

impl ClientMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            state: gauges(registry, "myriad_clients", "Client connections by state.", "state"),
            accepted: counter(registry, "myriad_client_connections_total", "Client connections accepted."),
            delays: counter(
                registry,
                "myriad_client_accept_delays_total",
                "Times that accepting paused for server.connect_rate.",
            ),
            in_line: gauge(registry, "myriad_client_logins_waiting", "Clients that wait in line to log in."),
            joined: counter(
                registry,
                "myriad_client_logins_joined_total",
                "Logins that were proven by another client's, which was under way.",
            ),
            logins: counters(registry, "myriad_client_logins_total", "Logins of clients by result.", "result"),
            refusals: counters(registry, "myriad_refusals_total", "Refusals by the limit that said no.", "limit"),
            goodbyes: counters(
                registry,
                "myriad_client_goodbyes_total",
                "Client connections ended, by reason.",
                "reason",
            ),
        }
    }
}
