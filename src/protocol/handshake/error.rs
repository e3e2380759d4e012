//! What can go wrong in a login, whose fault it was, and what the peer is told.

use thiserror::Error;

use crate::protocol::auth::Plugin;
use crate::protocol::auth::rsa::RsaError;
use crate::protocol::packet::PacketError;

/// Whose fault an error was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The peer at the other end of this connection.
    Peer,
    /// The configuration: the peer and we work as we should, but do not fit together.
    Setup,
    /// This program.
    Us,
}

/// An ERR packet's content, worded as MySQL words it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The error number.
    pub code: u16,
    /// SQLSTATE
    pub state: [u8; 5],
    /// The sentence.
    pub message: &'static str,
}

/// Why a client's login cannot go on. (A wrong password is none of these: it is a
/// [`Step::Denied`](super::Step::Denied).)
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The client speaks another protocol, and would not understand an answer.
    #[error("the client speaks {0}, not MySQL")]
    NotMySql(&'static str),
    /// The packet's sequence number is not the next one.
    #[error("the client sent packet {got} where packet {expected} was due")]
    OutOfOrder {
        /// What came.
        got: u8,
        /// What was due.
        expected: u8,
    },
    /// Nobody needs that much to log in.
    #[error("the client's packet of {0} bytes is too large for a login")]
    TooLarge(usize),
    /// The client is from before MySQL 4.1.
    #[error("the client speaks the protocol from before MySQL 4.1")]
    TooOld,
    /// The clear password is needed (passthrough), and this client cannot be asked for it.
    #[error("the client knows no authentication plugins, so it cannot be asked for its password")]
    NoPlugins,
    /// A packet makes no sense.
    #[error("the client's packet is malformed: {0}")]
    Malformed(#[from] PacketError),
    /// It asked for TLS, which was not offered.
    #[error("the client asked for TLS, which is not offered")]
    TlsNotOffered,
    /// TLS is required, and the client went on without.
    #[error("the client did not ask for TLS, which is required")]
    TlsRequired,
    /// It asked for zstd of a level that there is not.
    #[error("the client asked for zstd compression of level {0}, where 1 to 22 are possible")]
    ZstdLevel(u8),
    /// Our RSA key failed us.
    #[error(transparent)]
    Rsa(RsaError),
    /// The machine was called when it was not its turn.
    #[error("the login was driven out of turn")]
    OutOfTurn,
}

impl HandshakeError {
    /// Whose fault it was.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::NotMySql(_)
            | Self::OutOfOrder { .. }
            | Self::TooLarge(_)
            | Self::Malformed(_)
            | Self::TlsNotOffered
            | Self::ZstdLevel(_) => Fault::Peer,
            Self::TooOld | Self::NoPlugins | Self::TlsRequired => Fault::Setup,
            Self::Rsa(_) | Self::OutOfTurn => Fault::Us,
        }
    }

    /// What to tell the client before closing; nothing if it would not understand.
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        let (code, state, message) = match self {
            Self::NotMySql(_) => return None,
            Self::OutOfOrder { .. } => (1156, b"08S01", "Got packets out of order"),
            Self::TooLarge(_) | Self::Malformed(_) | Self::TlsNotOffered => (1043, b"08S01", "Bad handshake"),
            Self::TooOld | Self::NoPlugins => (
                1251,
                b"08004",
                "Client does not support authentication protocol requested by server; consider upgrading MySQL client",
            ),
            Self::TlsRequired => (
                3159,
                b"HY000",
                "Connections using insecure transport are prohibited while --require_secure_transport=ON.",
            ),
            Self::ZstdLevel(_) => (3923, b"HY000", "Invalid zstd compression level for algorithm 'zstd'."),
            Self::Rsa(_) | Self::OutOfTurn => (1105, b"HY000", "Unknown error"),
        };
        Some(Answer { code, state: *state, message })
    }
}

/// Why we could not log in to a server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoginError {
    /// The server says no: a wrong password, too many connections, a host it does not let in.
    #[error("the server refuses: {message} ({code})")]
    Server {
        /// The server's error number.
        code: u16,
        /// SQLSTATE; absent before the protocol is settled.
        state: Option<[u8; 5]>,
        /// The server's words.
        message: String,
    },
    /// The account uses a plugin that is not spoken here.
    #[error(
        "the account uses {0} at the server, which is not supported: use caching_sha2_password or mysql_native_password"
    )]
    UnsupportedPlugin(Plugin),
    /// The server wants the password in clear, and the connection has no TLS.
    #[error("the server asks for the password in clear, which is sent inside TLS only: set backend.tls.mode")]
    ClearWithoutTls,
    /// TLS is required, and the server does not offer it.
    #[error("the server does not offer TLS, but backend.tls.mode is required")]
    TlsNotOffered,
    /// The server lacks what every server since 4.1 has.
    #[error("the server does not support {0}")]
    TooOld(&'static str),
    /// The server sent us from plugin to plugin.
    #[error("the server changed the authentication plugin more than {0} times")]
    TooManySwitches(u8),
    /// Encrypting the password failed.
    #[error(transparent)]
    Rsa(#[from] RsaError),
    /// A packet makes no sense.
    #[error("the server's packet is malformed: {0}")]
    Malformed(#[from] PacketError),
    /// A well-formed packet that does not belong here.
    #[error("the server sent a packet that starts with 0x{0:02x} in the middle of the login")]
    Unexpected(u8),
    /// The packet's sequence number is not the next one.
    #[error("the server sent packet {got} where packet {expected} was due")]
    OutOfOrder {
        /// What came.
        got: u8,
        /// What was due.
        expected: u8,
    },
    /// A user or schema with a zero byte in it, which no server can be told.
    #[error("the {0} holds a zero byte")]
    ZeroByte(&'static str),
    /// The machine was called when it was not its turn.
    #[error("the login was driven out of turn")]
    OutOfTurn,
}

impl LoginError {
    /// Whose fault it was. An ERR is nobody's until one has looked at its code.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Server { .. }
            | Self::TooManySwitches(_)
            | Self::Malformed(_)
            | Self::Unexpected(_)
            | Self::OutOfOrder { .. }
            | Self::Rsa(RsaError::BadKey) => Fault::Peer,
            Self::UnsupportedPlugin(_)
            | Self::ClearWithoutTls
            | Self::TlsNotOffered
            | Self::TooOld(_)
            | Self::ZeroByte(_)
            | Self::Rsa(RsaError::TooLong) => Fault::Setup,
            Self::Rsa(_) | Self::OutOfTurn => Fault::Us,
        }
    }
}
