//! Why a backend connection could not be opened.

use std::net::IpAddr;

use crate::metrics::OpenResult;

/// Why a backend connection could not be opened: what kind, and the words for whoever waits for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    /// What kind of failure.
    pub kind: OpenResult,
    /// The server's error code; 1160 if it was not the server that spoke.
    pub code: u16,
    /// SQLSTATE.
    pub state: [u8; 5],
    /// The server's words, or ours.
    pub message: String,
    /// The address that the server saw us come from, if it was the server that spoke.
    pub from: Option<IpAddr>,
}

impl OpenError {
    /// A failure that is not an error packet of the server.
    #[must_use]
    pub fn ours(kind: OpenResult, message: impl Into<String>) -> Self {
        Self { kind, code: 1160, state: *b"08S01", message: message.into(), from: None }
    }

    /// The server answered the login with this error.
    #[must_use]
    pub fn server(code: u16, state: Option<[u8; 5]>, message: impl Into<String>) -> Self {
        let kind = match code {
            // ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED
            1040 | 1203 | 1226 => OpenResult::Full,
            // ER_HOST_IS_BLOCKED, ER_HOST_NOT_PRIVILEGED, ER_SERVER_SHUTDOWN: nobody gets in from here for now
            1053 | 1129 | 1130 => OpenResult::Refused,
            _ => OpenResult::Denied,
        };
        Self { kind, code, state: state.unwrap_or(*b"HY000"), message: message.into(), from: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_server_is_not_a_dead_one_and_a_wrong_password_is_neither() {
        assert_eq!(OpenError::server(1040, None, "").kind, OpenResult::Full);
        assert_eq!(OpenError::server(1203, None, "").kind, OpenResult::Full);
        assert_eq!(OpenError::server(1045, Some(*b"28000"), "").kind, OpenResult::Denied);
        assert_eq!(OpenError::server(1129, None, "").kind, OpenResult::Refused);
    }
}
