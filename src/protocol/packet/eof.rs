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
    /// The payload's length.
    pub const LEN: usize = 5;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back() {
        let bytes = b"\xFE\x01\x00\x42\x00";
        let eof = EofPacket::parse(bytes).unwrap();
        let status = StatusFlags::SERVER_STATUS_CURSOR_EXISTS | StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        assert_eq!(eof, EofPacket { warnings: 1, status });
        let mut out = BytesMut::new();
        eof.encode(&mut out);
        assert_eq!(out, bytes[..]);
        for len in 0..bytes.len() {
            assert!(EofPacket::parse(&bytes[..len]).is_err());
        }
        assert_eq!(EofPacket::parse(b"\xFE\0\0\0\0\0\0"), Err(PacketError::Trailing(2)));
        assert_eq!(EofPacket::parse(b"\x00\0\0\0\0"), Err(PacketError::Header { what: "an EOF", got: 0 }));
    }
}
