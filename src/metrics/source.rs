//! Local addresses and ports that backend connections come from.

use prometheus::{Histogram, IntCounter, IntGauge, IntGaugeVec, Opts, Registry};

use super::family::{Family, counter, counters, labelled, register, seconds};

labelled! {
    /// Why the system gave no connection from a port.
    pub enum PortRefusal {
        /// Somebody else has the port (EADDRINUSE).
        Port => "port_in_use",
        /// There is, or was until a moment ago, such a connection (EADDRNOTAVAIL at connect).
        Pair => "pair_in_use",
        /// The address is not this host's (EADDRNOTAVAIL at bind).
        Address => "address_not_ours",
    }
}

/// Metrics of `backend.source_addresses`.
#[derive(Debug)]
pub struct SourceMetrics {
    used: IntGaugeVec,
    left: IntGaugeVec,
    /// `myriad_source_refusals_total{reason}`
    pub refusals: Family<PortRefusal, IntCounter>,
    /// `myriad_source_connect_seconds`: from the choice of a port to the connection, without the login.
    pub connect_seconds: Histogram,
    /// `myriad_source_exhaustions_total`
    pub exhaustions: IntCounter,
}

impl SourceMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let by_pair =
            |name, help| register(registry, IntGaugeVec::new(Opts::new(name, help), &["source", "destination"]));
        Self {
            used: by_pair("myriad_source_ports_used", "Local ports in use, by local address and server."),
            left: by_pair(
                "myriad_source_ports_left",
                "Local ports that could still be used, by local address and server.",
            ),
            refusals: counters(
                registry,
                "myriad_source_refusals_total",
                "Local ports that the system refused, by reason; another one was tried.",
                "reason",
            ),
            connect_seconds: seconds(
                registry,
                "myriad_source_connect_seconds",
                "Time to connect to the server, the search for a local port included and the login not, in seconds.",
            ),
            exhaustions: counter(
                registry,
                "myriad_source_exhaustions_total",
                "Backend connections that were not opened since no local port was left.",
            ),
        }
    }

    /// `myriad_source_ports_used` and `myriad_source_ports_left` of a pair. Both must be named in the configuration; `any` is
    /// the source where the system picks.
    #[must_use]
    pub fn of(&self, source: &str, destination: &str) -> (IntGauge, IntGauge) {
        let labels = [source, destination];
        (self.used.with_label_values(&labels), self.left.with_label_values(&labels))
    }
}
