//! Names and numbers: every metric the proxy exports, and the page that serves them.
//!
//! One [`Metrics`] a proxy, none global, so that two proxies fit in one process. Rooms receive handles at
//! construction and never look a label up on the hot path. Labels come from enums and configured names only,
//! never from what a peer sent. Knows no other room.

mod backend;
pub mod build;
mod client;
mod family;
pub mod http;
mod pool;
mod process;
mod relay;
mod session;
mod source;

use std::collections::HashMap;

use prometheus::Registry;

pub use backend::{BackendMetrics, BackendState, CloseReason, OpenResult};
pub use client::{ClientMetrics, ClientState, Goodbye, Limit, LoginResult};
#[allow(unused_imports, reason = "used by the rooms that label their own enums")]
pub(crate) use family::labelled;
pub use family::{Family, Labelled};
pub use pool::{LeaseKind, PoolMetrics, WaitQueue};
pub use relay::{Direction, RelayMetrics};
pub use session::{ChatterAnswer, SessionMetrics};
pub use source::{PortRefusal, SourceMetrics};

/// Every metric of one proxy.
#[derive(Debug)]
pub struct Metrics {
    /// Where they are registered; the HTTP page gathers from it.
    pub registry: Registry,
    /// Clients: how many in which state, logins, refusals, goodbyes.
    pub client: ClientMetrics,
    /// Connections to servers: dials, failures, closings.
    pub backend: BackendMetrics,
    /// Local addresses and ports.
    pub source: SourceMetrics,
    /// Leases and the line of those who wait for one.
    pub pool: PoolMetrics,
    /// Turns, bytes and errors.
    pub relay: RelayMetrics,
    /// Pins, restores, saves.
    pub session: SessionMetrics,
}

impl Metrics {
    /// A fresh set, of the only proxy there is.
    ///
    /// # Panics
    /// If two metrics share a name, which would be our own mistake.
    #[must_use]
    pub fn new() -> Self {
        Self::of(0)
    }

    /// A fresh set, registered under the prefix `myriad_`. Each has the label `instance`, unless that is 0.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    #[allow(clippy::expect_used, reason = "a registry refuses only an empty prefix, and there is none")]
    pub fn of(instance: u8) -> Self {
        let labels = (instance > 0).then(|| HashMap::from([("instance".to_owned(), instance.to_string())]));
        let registry = Registry::new_custom(None, labels).expect("no prefix");
        process::register(&registry);
        Self {
            client: ClientMetrics::new(&registry),
            backend: BackendMetrics::new(&registry),
            source: SourceMetrics::new(&registry),
            pool: PoolMetrics::new(&registry),
            relay: RelayMetrics::new(&registry),
            session: SessionMetrics::new(&registry),
            registry,
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_a_label_of_every_metric() {
        for (metrics, expected) in [(Metrics::new(), None), (Metrics::of(7), Some("7"))] {
            for family in metrics.registry.gather() {
                for metric in family.get_metric() {
                    let label = metric.get_label().iter().find(|pair| pair.name() == "instance");
                    assert_eq!(label.map(|pair| pair.value()), expected, "{}", family.name());
                }
            }
        }
    }

    #[test]
    fn the_readme_lists_every_metric() {
        let readme = include_str!("../../README.md");
        for family in Metrics::new().registry.gather() {
            let name = family.name();
            let listed = ["`", "{"].iter().any(|end| readme.contains(&format!("`{name}{end}")));
            assert!(listed || name.starts_with("process_"), "README.md does not list {name}");
        }
    }
}
