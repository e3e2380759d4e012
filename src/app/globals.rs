//! Looks at the server's global variables now and then, so that what others change is seen by new sessions.
//!
//! A connection keeps the defaults that it was opened with. When one has changed, new sessions get connections that are
//! opened from then on.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::backend::{Backend, Globals, GlobalsWatch, QueryError};
use crate::client::Door;
use crate::metrics::CloseReason;
use crate::session::{BackendState, Plan, StateSpec, plan};

/// How long a look may take.
const LIMIT: Duration = Duration::from_secs(5);
/// The pause before another try while there was no look yet: what changes before the first one is never noticed.
const IMPATIENCE: Duration = Duration::from_millis(100);

/// Looks every `pause`. Never waits for a connection and never opens one: while none is idle, there is no look.
pub(super) async fn watch(door: Arc<Door>, pause: Duration) {
    let mut watch = GlobalsWatch::default();
    loop {
        sleep(if watch.has_begun() { pause } else { pause.min(IMPATIENCE) }).await;
        let Some(globals) = look(&door).await else { continue };
        door.metrics.backend.global_looks.inc();
        let era = door.connector.era();
        let changes = watch.compare(globals.clone());
        if !changes.restless.is_empty() {
            let variables = changes.restless.join(" ");
            tracing::warn!(%variables, "these global variables keep changing; they are not looked at any more");
        }
        if !changes.changed.is_empty() && !door.connector.defaults().agree(era, &globals, &changes.changed) {
            let variables = changes.changed.join(" ");
            tracing::info!(%variables, "global variables have changed; clients that come from now on get connections that are opened from now on");
            door.globals_changed();
        }
    }
}

/// One look, on a connection that is idle.
async fn look(door: &Arc<Door>) -> Option<Globals> {
    let mut lease = door.pool.inspect()?;
    if !door.is_current(&lease) {
        // Without the variables of its last session it would have the defaults of later ones.
        lease.discard(CloseReason::Stale);
        return None;
    }
    match timeout(LIMIT, Box::pin(ask(door, &mut lease))).await {
        Ok(Ok(globals)) => {
            let state = lease.state.state.id;
            lease.inspected(state);
            globals
        }
        Ok(Err(QueryError::Refused { .. })) => {
            lease.discard(CloseReason::Dirty);
            None
        }
        Ok(Err(_)) | Err(_) => {
            lease.discard(CloseReason::Lost);
            None
        }
    }
}

/// Asks on a backend that the pool has lent. Its last session is served first, and its state is one in which every
/// look sees the same: `sql_select_limit` would leave rows out, `character_set_results` change their bytes.
async fn ask(door: &Arc<Door>, backend: &mut Backend) -> Result<Option<Globals>, QueryError> {
    if let Some(loan) = backend.loan.take().filter(|loan| Arc::strong_count(loan) > 1) {
        door.metrics.session.saves.inc();
        loan.settle(backend).await?;
    }
    let plain =
        BackendState { state: door.interner.intern(plain(backend.state.state.spec())), ..backend.state.clone() };
    if let Plan::Restore(restore) = plan(&backend.state, &plain) {
        backend.restore(&restore).await?;
    }
    backend.state = BackendState { warned: false, ..plain };
    match backend.globals().await {
        Ok(globals) => Ok(Some(globals)),
        Err(QueryError::Refused { .. }) => {
            backend.state.warned = true;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The same state without variables, and with results in UTF-8 or as the server has them.
fn plain(spec: &StateSpec) -> StateSpec {
    let mut plain = spec.clone();
    plain.variables.retain(|name, _| &**name == "sql_mode");
    if plain.charset.results.as_ref().is_some_and(|charset| !charset.starts_with("utf8")) {
        plain.charset.results = Some("utf8mb4".into());
        plain.charset.results_collation = None;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Charset;

    #[test]
    fn a_plain_state_keeps_schema_and_mode_and_loses_what_would_change_the_answer() {
        let spec = StateSpec {
            schema: Some(b"test"[..].into()),
            charset: Charset::names("latin1", "latin1_swedish_ci"),
            variables: [("sql_mode".into(), "ANSI".into()), ("sql_select_limit".into(), "1".into())].into(),
        };
        let plain_spec = plain(&spec);
        assert_eq!((&plain_spec.schema, plain_spec.charset.results.as_deref()), (&spec.schema, Some("utf8mb4")));
        assert_eq!(plain_spec.charset.client, spec.charset.client);
        assert_eq!(plain_spec.variables.keys().map(|name| &**name).collect::<Vec<_>>(), ["sql_mode"]);
        assert_eq!(plain(&plain_spec), plain_spec);
        for results in [None, Some("utf8mb3".into())] {
            let spec = StateSpec { charset: Charset { results, ..Charset::default() }, ..StateSpec::default() };
            assert_eq!(plain(&spec), spec);
        }
    }
}
