//! The composition root: builds every room once and hands each its part of the configuration.

pub mod cli;
mod failure;
pub mod logging;
pub mod runtime;

use crate::config::Config;

pub use failure::Failure;

/// Serves clients until a signal ends it.
///
/// # Errors
/// If an address cannot be listened on, or the first part that fails to be built says so.
pub async fn serve(config: Config) -> Result<(), Failure> {
    Err(Failure::Internal(format!("cannot serve {} addresses yet", config.server.listen.len())))
}
