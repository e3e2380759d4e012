//! `myriad demo`: an embedded server, a proxy and the load generator in one command.

use crate::config::Endpoint;

/// What the command line asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How many clients; absent: 10,000, or what the open-file limit allows.
    pub clients: Option<usize>,
    /// How long the clients ask.
    pub seconds: u64,
    /// A server to use; absent: a private or an embedded one.
    pub backend: Option<Endpoint>,
    /// The account at that server.
    pub user: Option<String>,
    /// Its password; absent: none.
    pub password: Option<String>,
    /// End after the measurement instead of staying up.
    pub exit: bool,
}

/// Why the demo could not be shown. Each says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// What the command line asks for does not go together.
    #[error("{0}")]
    Usage(String),
}

/// Shows the demo.
///
/// # Errors
/// If something is missing; the message says what to do about it.
pub async fn run(options: Options) -> Result<(), DemoError> {
    Err(DemoError::Usage(format!("cannot show {} s yet", options.seconds)))
}
