//! Why the process ends early, and with which exit code.

use std::process::ExitCode;

use crate::config::Mistakes;

/// Why the process ends early. The exit codes are those of sysexits(3), so that a supervisor can tell a
/// configuration that will never work (78) from a host that may work later (69).
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line asks for what does not go together.
    #[error("{0}")]
    Usage(String),
    /// The settings are wrong.
    #[error("{0}")]
    Config(#[from] Mistakes),
    /// The settings are sound, but this host cannot give what they promise.
    #[error("{0}")]
    Host(String),
    /// Something that is needed is not available, such as an address to listen on.
    #[error("{0}")]
    Unavailable(String),
    /// Our own mistake, or the system's.
    #[error("{0}")]
    Internal(String),
}

impl Failure {
    /// The number of the exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 64,
            Self::Unavailable(_) => 69,
            Self::Internal(_) => 70,
            Self::Config(_) | Self::Host(_) => 78,
        }
    }
}

impl From<&Failure> for ExitCode {
    fn from(failure: &Failure) -> Self {
        failure.code().into()
    }
}
