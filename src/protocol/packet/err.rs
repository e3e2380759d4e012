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

    /// Is it a progress report, not an error?
    pub fn is_progress(&self) -> bool {
        self.code == Self::PROGRESS
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
