//! Connections to servers: dials, failures, closings.

use prometheus::{Histogram, IntCounter, IntGauge, Registry};

use super::family::{Family, counter, counters, gauge, gauges, labelled, seconds};

labelled! {
    /// What a backend connection is doing now.
    pub enum BackendState {
        /// Being dialed and logged in.
        Opening => "opening",
        /// In the pool, nobody's.
        Idle => "idle",
        /// Leased to a client.
        Leased => "leased",
    }
}

labelled! {
    /// How the opening of a backend connection ended.
    pub enum OpenResult {
        /// Ready.
        Ok => "ok",
        /// Nothing listens there, or the network says no.
        Refused => "refused",
        /// `backend.connect_timeout` ran out.
        Timeout => "timeout",
        /// The server has no room (1040, 1203, 1226).
        Full => "full",
        /// The server rejects the account (1045 and kin).
        Denied => "denied",
        /// No source address or port is left.
        Addresses => "addresses",
        /// TLS failed.
        Tls => "tls",
        /// The server said something that we do not understand.
        Protocol => "protocol",
    }
}

labelled! {
    /// Why a backend connection was closed.
    pub enum CloseReason {
        /// `pool.idle_timeout`
        IdleTimeout => "idle_timeout",
        /// `pool.max_lifetime`
        MaxLifetime => "max_lifetime",
        /// Closed by the server while idle.
        Lost => "lost",
        /// A turn did not end as it should (client gone, server gone, protocol error).
        Dirty => "dirty",
        /// Its room was needed for another class.
        Displaced => "displaced",
        /// `pool.mode` is `session`, and its client is gone.
        ClientLeft => "client_left",
        /// Opened before something global changed.
        Stale => "stale",
        /// The proxy is shutting down.
        Drain => "drain",
    }
}

/// Metrics of backend connections.
#[derive(Debug)]
pub struct BackendMetrics {
    /// `myriad_backend_connections{state}`
    pub state: Family<BackendState, IntGauge>,
    /// `myriad_backend_opens_total{result}`
    pub opens: Family<OpenResult, IntCounter>,
    /// `myriad_backend_closes_total{reason}`
    pub closes: Family<CloseReason, IntCounter>,
    /// `myriad_backend_open_seconds`
    pub open_seconds: Histogram,
    /// `myriad_kill_connections_total`: connections opened for a KILL alone, beyond the pool.
    pub kill_connections: IntCounter,
    /// `myriad_global_looks_total`: looks at the server's global variables that saw them.
    pub global_looks: IntCounter,
    /// `myriad_backend_prepares_total`: statements prepared on backends.
    pub prepares: IntCounter,
    /// `myriad_backend_statements`: statements that backends have prepared now.
    pub statements: IntGauge,
    /// `myriad_backend_statement_evictions_total`: statements closed because a backend had too many.
    pub evictions: IntCounter,
}

impl BackendMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            state: gauges(registry, "myriad_backend_connections", "Backend connections by state.", "state"),
            opens: counters(registry, "myriad_backend_opens_total", "Backend connections opened, by result.", "result"),
            closes: counters(
                registry,
                "myriad_backend_closes_total",
                "Backend connections closed, by reason.",
                "reason",
            ),
            kill_connections: counter(
                registry,
                "myriad_kill_connections_total",
                "Backend connections opened for a KILL alone, beyond the cap.",
            ),
            global_looks: counter(registry, "myriad_global_looks_total", "Looks at the server's global variables."),
            prepares: counter(registry, "myriad_backend_prepares_total", "Statements prepared on backends."),
            statements: gauge(registry, "myriad_backend_statements", "Statements that backends have prepared now."),
            evictions: counter(
                registry,
                "myriad_backend_statement_evictions_total",
                "Statements closed on a backend to make room for others.",
            ),
            open_seconds: seconds(registry, "myriad_backend_open_seconds", "Time to dial and log in, in seconds."),
        }
    }
}
