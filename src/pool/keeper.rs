//! The keeper: looks after connections while nobody uses them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::shell::now;
use super::survey::Shown;
use super::{Connector, Pool};

/// How often the keeper looks, unless a timeout is shorter than twice this.
const TICK: Duration = Duration::from_secs(1);
/// The most often it looks.
const SHORTEST_TICK: Duration = Duration::from_millis(10);

impl<C: Connector> Pool<C> {
    /// Looks after idle connections until `stop`: `pool.idle_timeout`, `pool.max_lifetime`, `pool.min_idle`, and those
    /// that the server closed.
    pub async fn keeper(self: Arc<Self>, stop: CancellationToken) {
        let timeouts = [self.settings.idle_timeout, self.settings.max_lifetime];
        let shortest = timeouts.into_iter().filter(|timeout| !timeout.is_zero()).min();
        let tick = shortest.map_or(TICK, |shortest| (shortest / 2).clamp(SHORTEST_TICK, TICK));
        let mut ticks = interval(tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut shown = Shown::default();
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            shown.show(&self.survey(), &self.metrics.pool);
            self.locked(|inner| inner.admission.expire(now()));
            self.close_dead();
            self.locked(|inner| inner.admission.refill(now()));
        }
    }

    /// Closes idle connections that the server has closed. One critical section each, so that leases get in between.
    fn close_dead(self: &Arc<Self>) {
        let idle = self.locked(|inner| inner.admission.idle().collect::<Vec<_>>());
        for slot in idle {
            self.locked(|inner| {
                if inner.parked(slot).is_some_and(|conn| !self.connector.is_alive(conn)) {
                    inner.admission.lost(slot);
                }
            });
        }
    }
}
