//! The composition root: builds every room once and hands each its part of the configuration.

mod bench;
pub mod cli;
mod failure;
mod globals;
mod host;
pub mod logging;
mod preflight;
mod proxy;
pub mod runtime;
mod source_list;
mod sources;

use crate::config::Config;

pub use failure::Failure;
pub use proxy::{Proxy, StartError};

/// Serves clients until a signal ends it; a second signal ends it at once.
///
/// # Errors
/// If an address cannot be listened on, or a part cannot be built from its settings.
pub async fn serve(config: Config) -> Result<(), Failure> {
    let mut signals = runtime::Signals::install().map_err(|error| Failure::Internal(error.to_string()))?;
    let proxy = Proxy::start(config).await.map_err(|error| match error {
        StartError::Listen { .. } => Failure::Unavailable(error.to_string()),
        StartError::Tls(_) | StartError::Key { .. } | StartError::NoServer => Failure::Host(error.to_string()),
    })?;
    let signal = signals.next().await;
    tracing::info!(signal, "draining; a second signal ends the process at once");
    tokio::select! {
        () = proxy.drain() => tracing::info!("drained"),
        signal = signals.next() => tracing::warn!(signal, "ended before every client had left"),
    }
    Ok(())
}
