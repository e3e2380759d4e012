//! The first packet of the reply to COM_STMT_PREPARE.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_prepare.html>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use crate::protocol::wire::Reader;

/// A statement was prepared: its id, and how many definitions follow (parameters first, then columns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareOk {
    /// The statement's id on this connection.
    pub statement_id: u32,
    /// Columns of its result; 0 if it has none.
    pub columns: u16,
    /// Its parameters.
    pub params: u16,
    /// Number of warnings.
    pub warnings: u16,
}

impl PrepareOk {
    /// Where [`PrepareOk::statement_id`] stands in the payload, so that it can be replaced in place.
    pub const ID_AT: std::ops::Range<usize> = 1..5;

    /// Reads a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        match reader.u8()? {
            0x00 => {}
            got => return Err(PacketError::Header { what: "a COM_STMT_PREPARE OK", got }),
        }
        let statement_id = reader.u32()?;
        let columns = reader.u16()?;
        let params = reader.u16()?;
        reader.u8()?;
        // Servers before 4.1 end here; nobody else does, but a missing count is no reason to fail.
        let warnings = if reader.is_empty() { 0 } else { reader.u16()? };
        Ok(Self { statement_id, columns, params, warnings })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(0x00);
        out.put_u32_le(self.statement_id);
        out.put_u16_le(self.columns);
        out.put_u16_le(self.params);
        out.put_u8(0);
        out.put_u16_le(self.warnings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back() {
        let bytes = b"\0\x29\x01\0\0\x02\0\x03\0\0\x05\0";
        let ok = PrepareOk::parse(bytes).unwrap();
        assert_eq!(ok, PrepareOk { statement_id: 0x129, columns: 2, params: 3, warnings: 5 });
        assert_eq!(bytes[PrepareOk::ID_AT], 0x129_u32.to_le_bytes());
        let mut out = BytesMut::new();
        ok.encode(&mut out);
        assert_eq!(out, bytes[..]);
        assert_eq!(PrepareOk::parse(&bytes[..10]), Ok(PrepareOk { warnings: 0, ..ok }));
        assert!(PrepareOk::parse(&bytes[..9]).is_err());
        assert!(PrepareOk::parse(b"\xFF").is_err());
    }
}
