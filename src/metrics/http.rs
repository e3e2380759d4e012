//! The page for operators: `/metrics`, `/live`, `/ready`.

use std::sync::Arc;

use tokio::net::TcpListener;

use super::Metrics;

/// Serves the page until the future is dropped.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>, ready: impl Fn() -> bool + Send + Sync + 'static) {
    let _ = (listener, metrics, ready());
    todo!()
}
