//! ERR: a statement failed, or (from MariaDB, when asked for) a report how far a long one has come.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_err_packet.html>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use crate::protocol::wire::Reader;

/// An ERR packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// The server's error number.
    pub code: u16,
    /// SQLSTATE; absent before the handshake has settled the protocol ("Too many connections").
    pub state: Option<[u8; 5]>,
    /// What went wrong, in the client's character set.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// The first byte.
    pub const HEADER: u8 = 0xFF;
    /// The code of MariaDB's progress reports, which are no errors and end nothing.
    pub const PROGRESS: u16 = 0xFFFF;

    /// Reads a payload.
    pub fn parse(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        match reader.u8()? {
            Self::HEADER => {}
            got => return Err(PacketError::Header { what: "an ERR", got }),
        }
        let code = reader.u16()?;
        let mut marked = reader;
        let state = match (marked.u8(), marked.array::<5>()) {
            (Ok(b'#'), Ok(state)) => {
                reader = marked;
                Some(state)
            }
            _ => None,
        };
        Ok(Self { code, state, message: reader.take_rest() })
    }

    /// Is it a progress report, not an error? (SIGNAL may raise an error of this number too: that has an SQLSTATE.)
    pub fn is_progress(&self) -> bool {
        self.code == Self::PROGRESS && self.state.is_none()
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(Self::HEADER);
        out.put_u16_le(self.code);
        if let Some(state) = &self.state {
            out.put_u8(b'#');
            out.put_slice(state);
        }
        out.put_slice(self.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back() {
        type Case = (&'static [u8], u16, Option<&'static [u8; 5]>, &'static [u8]);
        let cases: [Case; 7] = [
            (b"\xFF\x1E\x04#42S22Unknown column", 1054, Some(b"42S22"), b"Unknown column"),
            (b"\xFF\x10\x04Too many connections", 1040, None, b"Too many connections"),
            (b"\xFF\x10\x04#08004Too many connections", 1040, Some(b"08004"), b"Too many connections"),
            (b"\xFF\x10\x04#0800", 1040, None, b"#0800"),
            (b"\xFF\x10\x04", 1040, None, b""),
            (b"\xFF\xFF\xFF#HY000own", 0xFFFF, Some(b"HY000"), b"own"),
            (b"\xFF\xFF\xFF\x01\x01\x02\x0A\x1A\0\x04copy", 0xFFFF, None, b"\x01\x01\x02\x0A\x1A\0\x04copy"),
        ];
        for (bytes, code, state, message) in cases {
            let err = ErrPacket::parse(bytes).unwrap();
            assert_eq!(err, ErrPacket { code, state: state.copied(), message });
            assert_eq!(err.is_progress(), code == 0xFFFF && state.is_none());
            let mut out = BytesMut::new();
            err.encode(&mut out);
            assert_eq!(out, bytes);
        }
        assert!(ErrPacket::parse(b"\xFF\x10").is_err());
        assert_eq!(ErrPacket::parse(b"\0\x10\x04"), Err(PacketError::Header { what: "an ERR", got: 0 }));
    }
}
