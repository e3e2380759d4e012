//! The packets that are read or written as a whole.
//!
//! Parsing borrows from the payload and allocates nothing; encoding appends the payload (no header) to a buffer.
//! Tested from bytes captured from both servers.

pub mod attributes;
pub mod auth_switch;
pub mod change_user;
pub mod column;
pub mod eof;
pub mod err;
pub mod execute;
pub mod greeting;
pub mod handshake_response;
pub mod ok;
pub mod prepare;
pub mod session_track;
mod wishes;

use thiserror::Error;

use super::wire::WireError;

/// Why a payload is not the packet it should be. The fault is the peer's that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The payload does not start as this packet does.
    #[error("not {what}: it starts with 0x{got:02x}")]
    Header {
        /// The packet that was expected, with its article.
        what: &'static str,
        /// The first byte.
        got: u8,
    },
    /// A field is cut short, or a length makes no sense.
    #[error("malformed packet: {0}")]
    Wire(#[from] WireError),
    /// Bytes are left over after the last field.
    #[error("{0} bytes are left over after the last field")]
    Trailing(usize),
}
