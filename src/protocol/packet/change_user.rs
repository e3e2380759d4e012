//! COM_CHANGE_USER: log in again on the same connection.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_change_user.html>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use super::handshake_response::{Attributes, lenient_nul, short_reply};
use crate::protocol::capability::CapabilityFlags;
use crate::protocol::wire::{Reader, put_nul_bytes};

/// A COM_CHANGE_USER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// Who wants in, in the client's character set.
    pub user: &'a [u8],
    /// The proof of the password, made for the connection's nonce; some clients leave it empty and wait to be asked.
    pub reply: &'a [u8],
    /// The default schema; absent if it is empty.
    pub schema: Option<&'a [u8]>,
    /// The collation's number; absent: as before.
    pub collation: Option<u16>,
    /// The plugin that the reply is for; absent without CLIENT_PLUGIN_AUTH.
    pub plugin: Option<&'a [u8]>,
    /// What the client says about itself.
    pub attributes: Attributes<'a>,
}

impl<'a> ChangeUser<'a> {
    /// The first byte.
    pub const HEADER: u8 = 0x11;

    /// Reads a payload, the command byte included, from a client with these capabilities.
    ///
    /// # Errors
    /// If it is another command or cut short.
    pub fn parse(payload: &'a [u8], client: CapabilityFlags) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        match reader.u8()? {
            Self::HEADER => {}
            got => return Err(PacketError::Header { what: "a COM_CHANGE_USER", got }),
        }
        let user = reader.nul_bytes()?;
        let reply = short_reply(&mut reader, client)?;
        let schema = Some(lenient_nul(&mut reader)).filter(|schema| !schema.is_empty());
        let mut this = Self { user, reply, schema, collation: None, plugin: None, attributes: Attributes::default() };
        // Clients before 5.1 stop here.
        if reader.is_empty() {
            return Ok(this);
        }
        this.collation = Some(reader.u16()?);
        if client.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) && !reader.is_empty() {
            this.plugin = Some(lenient_nul(&mut reader));
        }
        if client.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS) {
            this.attributes = Attributes::parse(&mut reader)?;
        }
        Ok(this)
    }

    /// Appends the payload, the command byte included, as from a client with these capabilities, which are those of
    /// 4.1 at least.
    pub fn encode(&self, client: CapabilityFlags, out: &mut BytesMut) {
        debug_assert!(self.reply.len() <= u8::MAX.into(), "no reply of ours is longer than 32 bytes");
        out.put_u8(Self::HEADER);
        put_nul_bytes(out, self.user);
        out.put_u8(self.reply.len() as u8);
        out.put_slice(self.reply);
        put_nul_bytes(out, self.schema.unwrap_or_default());
        let Some(collation) = self.collation else { return };
        out.put_u16_le(collation);
        if client.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
            put_nul_bytes(out, self.plugin.unwrap_or_default());
        }
        if client.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS) {
            self.attributes.encode(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use mysql_common::packets::{AuthPlugin, ComChangeUser, ComChangeUserMoreData};
    use mysql_common::proto::MySerialize;

    use super::*;

    const ALL: CapabilityFlags = CapabilityFlags::CLIENT_SECURE_CONNECTION
        .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
        .union(CapabilityFlags::CLIENT_CONNECT_ATTRS);

    #[test]
    fn what_another_implementation_writes_is_read() {
        let more = ComChangeUserMoreData::new(255)
            .with_auth_plugin(Some(AuthPlugin::MysqlNativePassword))
            .with_connect_attributes(Some([("_pid".to_owned(), "7".to_owned())].into()));
        let mut payload = Vec::new();
        ComChangeUser::new()
            .with_user(Some(&b"app"[..]))
            .with_database(Some(&b"test"[..]))
            .with_auth_plugin_data(Some(&[7; 20][..]))
            .with_more_data(Some(more))
            .serialize(&mut payload);
        let read = ChangeUser::parse(&payload, ALL).unwrap();
        assert_eq!((read.user, read.reply, read.schema), (&b"app"[..], &[7; 20][..], Some(&b"test"[..])));
        assert_eq!((read.collation, read.plugin), (Some(255), Some(&b"mysql_native_password"[..])));
        assert_eq!(read.attributes.pairs().collect::<Vec<_>>(), [(&b"_pid"[..], &b"7"[..])]);
        let mut written = BytesMut::new();
        read.encode(ALL, &mut written);
        assert_eq!(written, payload);
        for end in 0..payload.len() {
            let _ = ChangeUser::parse(&payload[..end], ALL);
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let full = ChangeUser {
            user: b"app",
            reply: b"",
            schema: None,
            collation: Some(0x0102),
            plugin: Some(b"caching_sha2_password"),
            attributes: Attributes::default(),
        };
        for (client, plugin) in [(ALL, full.plugin), (CapabilityFlags::CLIENT_SECURE_CONNECTION, None)] {
            let wanted = ChangeUser { plugin, ..full.clone() };
            let mut payload = BytesMut::new();
            full.encode(client, &mut payload);
            assert_eq!(ChangeUser::parse(&payload, client).unwrap(), wanted);
        }
        let short = ChangeUser { collation: None, plugin: None, schema: Some(b"test"), reply: &[7; 20], ..full };
        let mut payload = BytesMut::new();
        short.encode(ALL, &mut payload);
        assert_eq!(ChangeUser::parse(&payload, ALL).unwrap(), short);
    }

    #[test]
    fn old_and_odd_clients() {
        let bare = ChangeUser::parse(b"\x11app\0\0\0", ALL).unwrap();
        assert_eq!((bare.user, bare.reply, bare.schema, bare.collation), (&b"app"[..], &b""[..], None, None));
        let no_plugin = ChangeUser::parse(b"\x11app\0\0test\0\x2d\0", ALL).unwrap();
        assert_eq!((no_plugin.schema, no_plugin.collation, no_plugin.plugin), (Some(&b"test"[..]), Some(45), None));
        let without = ChangeUser::parse(b"\x11app\0\0test\0\x2d\0x\0", CapabilityFlags::CLIENT_SECURE_CONNECTION);
        assert_eq!(without.unwrap().plugin, None);
        for payload in [&b""[..], b"\x03app\0\0\0", b"\x11app", b"\x11app\0\x14short", b"\x11app\0\0\0\x2d"] {
            assert!(ChangeUser::parse(payload, ALL).is_err(), "{payload:?}");
        }
    }
}
