//! EOF: ends rows and definitions in the old dialect (without CLIENT_DEPRECATE_EOF).
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_eof_packet.html>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use crate::protocol::capability::StatusFlags;
use crate::protocol::wire::Reader;

/// An EOF packet. Its payload is always five bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EofPacket {
    /// Number of warnings so far.
    pub warnings: u16,
    /// The session's status.
    pub status: StatusFlags,
}

impl EofPacket {
    /// The first byte.
    pub const HEADER: u8 = 0xFE;

    /// Reads a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        match reader.u8()? {
            Self::HEADER => {}
            got => return Err(PacketError::Header { what: "an EOF", got }),
        }
        let warnings = reader.u16()?;
        let status = StatusFlags::from_bits_retain(reader.u16()?);
        if !reader.is_empty() {
            return Err(PacketError::Trailing(reader.len()));
        }
        Ok(Self { warnings, status })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(Self::HEADER);
        out.put_u16_le(self.warnings);
        out.put_u16_le(self.status.bits());
    }
}
