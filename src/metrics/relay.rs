//! Turns, bytes and errors.

use prometheus::{Histogram, IntCounter, IntCounterVec, Opts, Registry};

use super::family::{Family, counter, counters, labelled, seconds};

labelled! {
    /// Which way the bytes went.
    pub enum Direction {
        /// Read from clients.
        FromClients => "from_clients",
        /// Written to clients.
        ToClients => "to_clients",
        /// Read from backends.
        FromBackends => "from_backends",
        /// Written to backends.
        ToBackends => "to_backends",
    }
}

/// Server errors that have a label of their own; every other code counts as `other`.
const KNOWN_CODES: [u16; 24] = [
    1040, 1044, 1045, 1046, 1049, 1050, 1051, 1054, 1062, 1064, 1146, 1153, 1205, 1213, 1227, 1290, 1305, 1317, 1364,
    1406, 1451, 1452, 1792, 3024,
];

/// Metrics of the relay.
#[derive(Debug)]
pub struct RelayMetrics {
    /// `myriad_turns_total`
    pub turns: IntCounter,
    /// `myriad_turn_seconds`
    pub turn_seconds: Histogram,
    /// `myriad_bytes_total{direction}`
    pub bytes: Family<Direction, IntCounter>,
    errors: IntCounterVec,
}

impl RelayMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        #[allow(clippy::expect_used, reason = "a fixed name is valid and used once")]
        let errors = {
            let errors = IntCounterVec::new(
                Opts::new(
                    "myriad_errors_total",
                    "Errors sent to clients, by MySQL error code (rare codes as `other`).",
                ),
                &["code"],
            )
            .expect("a valid name");
            registry.register(Box::new(errors.clone())).expect("a name used once");
            errors
        };
        Self {
            turns: counter(registry, "myriad_turns_total", "Commands relayed to a backend."),
            turn_seconds: seconds(
                registry,
                "myriad_turn_seconds",
                "Time from lease to the last byte of the reply, in seconds.",
            ),
            bytes: counters(registry, "myriad_bytes_total", "Bytes by direction.", "direction"),
            errors,
        }
    }

    /// Counts one error packet that a client was sent.
    pub fn error(&self, code: u16) {
        if KNOWN_CODES.contains(&code) {
            self.errors.with_label_values(&[code.to_string()]).inc();
        } else {
            self.errors.with_label_values(&["other"]).inc();
        }
    }
}
