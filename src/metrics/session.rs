//! What sharing costs: pins by reason, restores, saves.

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

use super::family::{Family, counter, counters, gauge, labelled};

labelled! {
    /// Who answered a SET of literals.
    pub enum ChatterAnswer {
        /// Memory: a server has shown it before.
        Memory => "memory",
        /// A server.
        Server => "server",
    }
}

/// Metrics of sessions.
#[derive(Debug)]
pub struct SessionMetrics {
    pinned: IntGaugeVec,
    pins: IntCounterVec,
    /// `myriad_restores_total`: turns that first had to bring the backend to the session's state.
    pub restores: IntCounter,
    /// `myriad_restore_failures_total`: restores that the server refused.
    pub restore_failures: IntCounter,
    /// `myriad_schema_exits_total`: backends whose user was changed so that they are in no schema.
    pub schema_exits: IntCounter,
    /// `myriad_saves_total`: hand-overs that first saved what the old session would miss.
    pub saves: IntCounter,
    /// `myriad_asks_total`: questions put to a backend about the session's own state.
    pub asks: IntCounter,
    /// `myriad_resets_total`: backends reset because a session ended with something pinned.
    pub resets: IntCounter,
    /// `myriad_local_answers_total`: commands answered without a backend.
    pub local_answers: IntCounter,
    /// `myriad_unanswered_total`: statements refused since what they ask about another one is not known any more.
    pub unanswered: IntCounter,
    /// `myriad_remembered_prepares_total`: COM_STMT_PREPARE answered from what a backend told another client.
    pub remembered_prepares: IntCounter,
    /// `myriad_chatter_total{answer}`: what clients say when they connect, and who answered.
    pub chatter: Family<ChatterAnswer, IntCounter>,
    /// `myriad_chatter_entries`: how many of these statements are known.
    pub chatter_entries: IntGauge,
    /// `myriad_named_prepares_total`: statements with a name (text `PREPARE`) prepared again on another backend.
    pub named_prepares: IntCounter,
    /// `myriad_client_statements`: statements that clients have prepared and not closed.
    pub statements: IntGauge,
}

impl SessionMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        #[allow(clippy::expect_used, reason = "fixed names are valid and used once")]
        let (pinned, pins) = {
            let pinned =
                IntGaugeVec::new(Opts::new("myriad_pinned_clients", "Clients pinned now, by reason."), &["reason"])
                    .expect("a valid name");
            let pins = IntCounterVec::new(Opts::new("myriad_pins_total", "Pins set, by reason."), &["reason"])
                .expect("a valid name");
            registry.register(Box::new(pinned.clone())).expect("a name used once");
            registry.register(Box::new(pins.clone())).expect("a name used once");
            (pinned, pins)
        };
        Self {
            pinned,
            pins,
            restores: counter(registry, "myriad_restores_total", "Turns that first restored a session's state."),
            restore_failures: counter(registry, "myriad_restore_failures_total", "Restores that the server refused."),
            schema_exits: counter(
                registry,
                "myriad_schema_exits_total",
                "Backends brought out of their schema by COM_CHANGE_USER.",
            ),
            saves: counter(registry, "myriad_saves_total", "Hand-overs that first saved the old session's state."),
            asks: counter(registry, "myriad_asks_total", "Questions put to a backend about a session's own state."),
            resets: counter(registry, "myriad_resets_total", "Backends reset after a pinned session ended."),
            local_answers: counter(registry, "myriad_local_answers_total", "Commands answered without a backend."),
            unanswered: counter(
                registry,
                "myriad_unanswered_total",
                "Statements refused that ask about one whose backend has moved on (error 1235).",
            ),
            remembered_prepares: counter(
                registry,
                "myriad_remembered_prepares_total",
                "Preparations answered from what a backend told before.",
            ),
            chatter: counters(
                registry,
                "myriad_chatter_total",
                "SET statements of literals, by who answered: a server, or memory of what one did.",
                "answer",
            ),
            chatter_entries: gauge(
                registry,
                "myriad_chatter_entries",
                "SET statements of which it is known what they do.",
            ),
            named_prepares: counter(
                registry,
                "myriad_named_prepares_total",
                "Statements with a name (text PREPARE) prepared again on another backend.",
            ),
            statements: gauge(registry, "myriad_client_statements", "Statements that clients have prepared."),
        }
    }

    /// A session got this pin; `reason` is one of a fixed set. Pins are rare: the label is looked up each time.
    pub fn pin(&self, reason: &'static str) {
        self.pinned.with_label_values(&[reason]).inc();
        self.pins.with_label_values(&[reason]).inc();
    }

    /// A session lost this pin.
    pub fn unpin(&self, reason: &'static str) {
        self.pinned.with_label_values(&[reason]).dec();
    }
}
