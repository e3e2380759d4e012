//! What a client is doing, as a gauge that cannot lie.

use std::sync::Arc;

use crate::metrics::{ClientState, Metrics};

/// Counts one client under exactly one state until it is dropped.
#[derive(Debug)]
pub(super) struct StateGauge {
    metrics: Arc<Metrics>,
    now: ClientState,
}

impl StateGauge {
    pub(super) fn new(metrics: Arc<Metrics>, now: ClientState) -> Self {
        metrics.client.state.get(now).inc();
        Self { metrics, now }
    }

    pub(super) fn enter(&mut self, next: ClientState) {
        if next != self.now {
            self.metrics.client.state.get(self.now).dec();
            self.metrics.client.state.get(next).inc();
            self.now = next;
        }
    }
}

impl Drop for StateGauge {
    fn drop(&mut self) {
        self.metrics.client.state.get(self.now).dec();
    }
}
