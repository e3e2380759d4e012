//! The server's packets in the middle of a login: use another plugin, and more data for the plugin in use.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_auth_switch_request.html>
//! and <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_auth_more_data.html>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use crate::protocol::wire::{Reader, put_nul_bytes};

/// AuthSwitchRequest: start again with this plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSwitch<'a> {
    /// The plugin's name. `mysql_old_password` if the packet (from before 5.5) names none.
    pub plugin: &'a [u8],
    /// What the plugin starts with: for those spoken here the nonce, whose terminating zero is not part of it.
    pub data: &'a [u8],
}

impl<'a> AuthSwitch<'a> {
    /// The first byte.
    pub const HEADER: u8 = 0xFE;

    /// Reads a payload.
    ///
    /// # Errors
    /// If it starts otherwise, or the name does not end.
    pub fn parse(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        match reader.u8()? {
            Self::HEADER => {}
            got => return Err(PacketError::Header { what: "an AuthSwitchRequest", got }),
        }
        if reader.is_empty() {
            return Ok(Self { plugin: b"mysql_old_password", data: &[] });
        }
        let plugin = reader.nul_bytes()?;
        let data = reader.take_rest();
        Ok(Self { plugin, data: data.strip_suffix(&[0]).unwrap_or(data) })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(Self::HEADER);
        put_nul_bytes(out, self.plugin);
        out.put_slice(self.data);
        out.put_u8(0);
    }
}

/// AuthMoreData: whatever the plugin in use has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthMoreData<'a> {
    /// The plugin knows what it means.
    pub data: &'a [u8],
}

impl<'a> AuthMoreData<'a> {
    /// The first byte.
    pub const HEADER: u8 = 0x01;

    /// Reads a payload.
    ///
    /// # Errors
    /// If it starts otherwise.
    pub fn parse(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        match reader.u8()? {
            Self::HEADER => Ok(Self { data: reader.take_rest() }),
            got => Err(PacketError::Header { what: "an AuthMoreData", got }),
        }
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(Self::HEADER);
        out.put_slice(self.data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_reads_back() {
        let mut out = BytesMut::new();
        AuthSwitch { plugin: b"mysql_native_password", data: b"12345678901234567890" }.encode(&mut out);
        assert_eq!(&out[..], b"\xfemysql_native_password\x0012345678901234567890\0");
        let read = AuthSwitch::parse(&out).unwrap();
        assert_eq!((read.plugin, read.data), (&b"mysql_native_password"[..], &b"12345678901234567890"[..]));
    }

    #[test]
    fn odd_switches() {
        for (payload, plugin, data) in [
            (&b"\xfe"[..], &b"mysql_old_password"[..], &b""[..]),
            (b"\xfemysql_clear_password\0", b"mysql_clear_password", b""),
            (b"\xfedialog\0\x04Password: ", b"dialog", b"\x04Password: "),
        ] {
            assert_eq!(AuthSwitch::parse(payload).unwrap(), AuthSwitch { plugin, data });
        }
        assert!(AuthSwitch::parse(b"").is_err());
        assert!(AuthSwitch::parse(b"\xfeno end").is_err());
        assert!(AuthSwitch::parse(b"\x00").is_err());
    }

    #[test]
    fn more_data_reads_back() {
        let mut out = BytesMut::new();
        AuthMoreData { data: &[4] }.encode(&mut out);
        assert_eq!(&out[..], [1, 4]);
        assert_eq!(AuthMoreData::parse(&out).unwrap().data, [4]);
        assert!(AuthMoreData::parse(&[1]).unwrap().data.is_empty());
        assert!(AuthMoreData::parse(&[]).is_err());
        assert!(AuthMoreData::parse(&[0, 4]).is_err());
    }
}
