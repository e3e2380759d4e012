//! MariaDB's query cache, which is not used for a session whose transactions are tracked.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Backend, Connector, QueryError};

const QUIET: &str = "SET SESSION session_track_transaction_info='OFF'";
const LOUD: &str = "SET SESSION session_track_transaction_info='CHARACTERISTICS'";

/// Whether results may come from a query cache, as of an era of the global variables.
#[derive(Debug, Default)]
pub(super) struct QueryCache(AtomicU64);

impl Connector {
    /// Whether results may come from a query cache; none if nobody has asked since a global variable was changed.
    #[must_use]
    pub fn has_query_cache(&self) -> Option<bool> {
        let known = self.query_cache.0.load(Ordering::Acquire);
        (known >> 1 == self.era() + 1).then_some(known & 1 == 1)
    }
}

impl Backend {
    /// Asks for it, on behalf of everybody.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub async fn ask_for_query_cache(&mut self, connector: &Connector) -> Result<bool, QueryError> {
        let era = connector.era();
        let sql = "SELECT @@global.query_cache_type <> 'OFF' AND @@global.query_cache_size > 0";
        let is_on = match self.query(sql).await {
            // Not every server has one.
            Err(QueryError::Refused { .. }) => false,
            rows => rows?.fields(0).into_iter().next().flatten().is_some_and(|value| value == b"1"),
        };
        connector.query_cache.0.store((era + 1) << 1 | u64::from(is_on), Ordering::Release);
        Ok(is_on)
    }

    /// Is the tracker of transactions off?
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// What switches the tracker of transactions off, or on again. To be sent before anything else.
    pub fn set_quiet(&mut self) -> &'static str {
        self.quiet = !self.quiet;
        if self.quiet { QUIET } else { LOUD }
    }
}
