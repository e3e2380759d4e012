//! Leases and the line of those who wait for one.

use prometheus::{Histogram, IntCounter, IntGauge, Registry};

use super::family::{Family, counters, gauge, labelled, seconds};

labelled! {
    /// What the backend of a lease was before. (Whether its taker had to wait is in `myriad_pool_wait_seconds`.)
    pub enum LeaseKind {
        /// The session's own last backend, untouched since.
        Own => "own",
        /// A backend that another session left in the same state.
        SameState => "same_state",
        /// A backend that another session left in another state.
        OtherState => "other_state",
        /// A backend that no session has used yet.
        Fresh => "fresh",
    }
}

/// Metrics of the pool.
#[derive(Debug)]
pub struct PoolMetrics {
    /// `myriad_pool_waiting`
    pub waiting: IntGauge,
    /// `myriad_pool_wait_seconds`: only of those who had to wait.
    pub wait_seconds: Histogram,
    /// `myriad_pool_leases_total{kind}`
    pub leases: Family<LeaseKind, IntCounter>,
    /// `myriad_pool_max_connections`
    pub max_connections: IntGauge,
}

impl PoolMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            waiting: gauge(registry, "myriad_pool_waiting", "Tickets waiting for a backend connection."),
            wait_seconds: seconds(
                registry,
                "myriad_pool_wait_seconds",
                "Time spent in line for a backend, in seconds.",
            ),
            leases: counters(
                registry,
                "myriad_pool_leases_total",
                "Leases granted, by what the backend was before.",
                "kind",
            ),
            max_connections: gauge(registry, "myriad_pool_max_connections", "The hard cap of backend connections."),
        }
    }
}
