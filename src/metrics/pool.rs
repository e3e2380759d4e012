//! Leases and the line of those who wait for one.

use prometheus::{Gauge, Histogram, IntCounter, IntGauge, IntGaugeVec, Registry};

use super::family::{Family, by_user, counter, counters, float_gauge, float_gauges, gauge, labelled, seconds};

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

labelled! {
    /// Which queue somebody waits in.
    pub enum WaitQueue {
        /// For a connection.
        New => "new",
        /// With a connection, for its next turn.
        Returning => "returning",
    }
}

/// Metrics of the pool.
#[derive(Debug)]
pub struct PoolMetrics {
    /// `myriad_pool_waiting`
    pub waiting: IntGauge,
    /// `myriad_pool_returning`
    pub returning: IntGauge,
    /// `myriad_pool_running`
    pub running: IntGauge,
    /// `myriad_pool_stalled`
    pub stalled: IntGauge,
    /// `myriad_pool_running_limit`: -1 is none.
    pub running_limit: IntGauge,
    /// `myriad_pool_gradient`
    pub gradient: Gauge,
    /// `myriad_pool_gradient_samples_total`
    pub samples: IntCounter,
    /// `myriad_pool_stalls_total`
    pub stalls: IntCounter,
    /// `myriad_pool_oldest_wait_seconds{queue}`
    pub oldest_wait: Family<WaitQueue, Gauge>,
    user_connections: IntGaugeVec,
    user_waiting: IntGaugeVec,
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
            returning: gauge(
                registry,
                "myriad_pool_returning",
                "Sessions that hold a connection and wait for their next turn (scheduler.max_running).",
            ),
            running: gauge(registry, "myriad_pool_running", "Turns that count against scheduler.max_running."),
            stalled: gauge(
                registry,
                "myriad_pool_stalled",
                "Turns that have run for longer than scheduler.stall_limit and no longer count.",
            ),
            running_limit: gauge(
                registry,
                "myriad_pool_running_limit",
                "Turns that may run at once now (scheduler.max_running); -1 is no limit.",
            ),
            gradient: float_gauge(
                registry,
                "myriad_pool_gradient",
                "max_running = auto: by how much throughput follows the number of running turns, from 0 to 1.",
            ),
            samples: counter(
                registry,
                "myriad_pool_gradient_samples_total",
                "max_running = auto: comparisons made to find the gradient.",
            ),
            stalls: counter(
                registry,
                "myriad_pool_stalls_total",
                "Turns that ran for longer than scheduler.stall_limit while others waited.",
            ),
            oldest_wait: float_gauges(
                registry,
                "myriad_pool_oldest_wait_seconds",
                "How long the one has waited that has waited longest, by queue; looked at every second.",
                "queue",
            ),
            user_connections: by_user(
                registry,
                "myriad_pool_user_connections",
                "Backend connections of each configured user; looked at every second.",
            ),
            user_waiting: by_user(
                registry,
                "myriad_pool_user_waiting",
                "Tickets in line of each configured user; looked at every second.",
            ),
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

    /// `myriad_pool_user_connections{user}` and `myriad_pool_user_waiting{user}`; the name must be a configured one.
    pub fn show_user(&self, user: &str, connections: usize, waiting: usize) {
        let gauge = |number| i64::try_from(number).unwrap_or(i64::MAX);
        self.user_connections.with_label_values(&[user]).set(gauge(connections));
        self.user_waiting.with_label_values(&[user]).set(gauge(waiting));
    }
}
