//! The client's answer to the greeting (HandshakeResponse41), and its short form that asks for TLS first (SSLRequest).
//!
//! ```text
//!  4  capabilities      n  user, zero                            n  schema, zero   if CLIENT_CONNECT_WITH_DB
//!  4  largest packet    n  reply: length-encoded if              n  plugin, zero   if CLIENT_PLUGIN_AUTH
//!  1  collation            CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA, n  attributes     if CLIENT_CONNECT_ATTRS
//! 19  zeros                else one byte of length               1  level         if CLIENT_ZSTD_COMPRESSION_ALGORITHM
//!  4  MariaDB's extended capabilities if CLIENT_LONG_PASSWORD is off, else zeros
//! ```
//!
//! SSLRequest is the left column alone. See
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_response.html>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use crate::protocol::capability::{CapabilityFlags, held, on_wire};
use crate::protocol::wire::{Reader, WireError, put_lenenc_bytes, put_nul_bytes};

/// The capabilities that start every packet a client answers the greeting with.
#[must_use]
pub fn capabilities(payload: &[u8]) -> Option<CapabilityFlags> {
    Reader::new(payload).u32().ok().map(CapabilityFlags::from_bits_retain)
}

/// The packet's fixed part; alone, it is a request for TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslRequest {
    /// What the client can do and wants, CLIENT_SSL among it; MariaDB's extended flags as [`held`] here.
    pub capabilities: CapabilityFlags,
    /// The largest packet the client takes.
    pub max_packet: u32,
    /// The low byte of the collation's number.
    pub collation: u8,
}

impl SslRequest {
    /// Its length.
    pub const LEN: usize = 32;
    /// The zeros at its end, before MariaDB's extended capabilities.
    const FILLER: usize = 19;

    fn parse(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let capabilities = CapabilityFlags::from_bits_retain(reader.u32()?);
        let (max_packet, collation) = (reader.u32()?, reader.u8()?);
        reader.bytes(Self::FILLER)?;
        let extended = reader.u32()?;
        let has_them = !capabilities.contains(CapabilityFlags::CLIENT_LONG_PASSWORD);
        let capabilities = held(capabilities, if has_them { extended } else { 0 });
        Ok(Self { capabilities, max_packet, collation })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut BytesMut) {
        let (flags, extended) = on_wire(self.capabilities);
        out.put_u32_le(flags.bits());
        out.put_u32_le(self.max_packet);
        out.put_u8(self.collation);
        out.put_bytes(0, Self::FILLER);
        out.put_u32_le(extended);
    }
}

/// A HandshakeResponse41.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeResponse<'a> {
    /// The fixed part.
    pub head: SslRequest,
    /// Who wants in, in the client's character set.
    pub user: &'a [u8],
    /// The proof of the password.
    pub reply: &'a [u8],
    /// The default schema; absent without CLIENT_CONNECT_WITH_DB, or if it is empty.
    pub schema: Option<&'a [u8]>,
    /// The plugin that the reply is for; absent without CLIENT_PLUGIN_AUTH.
    pub plugin: Option<&'a [u8]>,
    /// What the client says about itself.
    pub attributes: Attributes<'a>,
    /// How hard zstd shall try; 0 without CLIENT_ZSTD_COMPRESSION_ALGORITHM.
    pub zstd_level: u8,
}

impl<'a> HandshakeResponse<'a> {
    /// Reads a payload.
    ///
    /// # Errors
    /// If a field is cut short. Left-over bytes are none of ours.
    pub fn parse(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        let head = SslRequest::parse(&mut reader)?;
        let user = reader.nul_bytes()?;
        let reply = if head.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            reader.lenenc_bytes()?
        } else {
            short_reply(&mut reader, head.capabilities)?
        };
        let mut this =
            Self { head, user, reply, schema: None, plugin: None, attributes: Attributes::default(), zstd_level: 0 };
        if head.capabilities.contains(CapabilityFlags::CLIENT_CONNECT_WITH_DB) {
            this.schema = Some(lenient_nul(&mut reader)).filter(|schema| !schema.is_empty());
        }
        if head.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) && !reader.is_empty() {
            this.plugin = Some(lenient_nul(&mut reader));
        }
        if head.capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS) {
            this.attributes = Attributes::parse(&mut reader)?;
        }
        if head.capabilities.contains(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM) {
            this.zstd_level = reader.u8().unwrap_or(0);
        }
        Ok(this)
    }

    /// Appends the payload. The capabilities say which fields are written.
    pub fn encode(&self, out: &mut BytesMut) {
        let has = |flag| self.head.capabilities.contains(flag);
        self.head.encode(out);
        put_nul_bytes(out, self.user);
        if has(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            put_lenenc_bytes(out, self.reply);
        } else {
            debug_assert!(self.reply.len() <= u8::MAX.into(), "no reply of ours is longer than 32 bytes");
            out.put_u8(self.reply.len() as u8);
            out.put_slice(self.reply);
        }
        if has(CapabilityFlags::CLIENT_CONNECT_WITH_DB) {
            put_nul_bytes(out, self.schema.unwrap_or_default());
        }
        if has(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
            put_nul_bytes(out, self.plugin.unwrap_or_default());
        }
        if has(CapabilityFlags::CLIENT_CONNECT_ATTRS) {
            self.attributes.encode(out);
        }
        if has(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM) {
            out.put_u8(self.zstd_level);
        }
    }
}

/// A reply of at most 255 bytes behind its length; before CLIENT_SECURE_CONNECTION, a string that ends with a zero.
pub(super) fn short_reply<'a>(reader: &mut Reader<'a>, client: CapabilityFlags) -> Result<&'a [u8], WireError> {
    if client.contains(CapabilityFlags::CLIENT_SECURE_CONNECTION) {
        let len = reader.u8()?;
        reader.bytes(len.into())
    } else {
        reader.nul_bytes()
    }
}

/// A string that ends with a zero, or (some clients, in the last field they send) with the packet.
pub(super) fn lenient_nul<'a>(reader: &mut Reader<'a>) -> &'a [u8] {
    reader.nul_bytes().unwrap_or_else(|_| reader.take_rest())
}

/// Connection attributes: pairs of length-encoded names and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    raw: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// What [`encode_attributes`] made.
    #[must_use]
    pub fn new(raw: &'a [u8]) -> Self {
        Self { raw }
    }

    /// Reads the block. Absent is the same as empty.
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let raw = if reader.is_empty() { &[] } else { reader.lenenc_bytes()? };
        Ok(Self { raw })
    }

    pub(super) fn encode(self, out: &mut BytesMut) {
        put_lenenc_bytes(out, self.raw);
    }

    /// Names and values in the order in which the client sent them, up to the first that makes no sense.
    pub fn pairs(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut reader = Reader::new(self.raw);
        std::iter::from_fn(move || Some((reader.lenenc_bytes().ok()?, reader.lenenc_bytes().ok()?)))
    }
}

/// The block of these pairs, without its length.
#[must_use]
pub fn encode_attributes(pairs: &[(String, String)]) -> BytesMut {
    let mut raw = BytesMut::new();
    for (name, value) in pairs {
        put_lenenc_bytes(&mut raw, name.as_bytes());
        put_lenenc_bytes(&mut raw, value.as_bytes());
    }
    raw
}

#[cfg(test)]
mod tests {
    use mysql_common::packets::AuthPlugin;
    use mysql_common::proto::MySerialize;
    use proptest::prelude::*;

    use super::*;

    const BASE: CapabilityFlags = CapabilityFlags::CLIENT_PROTOCOL_41.union(CapabilityFlags::CLIENT_SECURE_CONNECTION);

    #[test]
    fn what_another_implementation_writes_is_read() {
        for lenenc in [CapabilityFlags::empty(), CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA] {
            let attributes = Some([("_pid".to_owned(), "7".to_owned())].into());
            let plugin = Some(AuthPlugin::CachingSha2Password);
            let mut payload = Vec::new();
            mysql_common::packets::HandshakeResponse::new(
                Some(&[7; 32][..]),
                (9, 7, 4),
                Some(&b"app"[..]),
                Some(&b"test"[..]),
                plugin,
                BASE | lenenc,
                attributes,
                1 << 24,
            )
            .serialize(&mut payload);
            let read = HandshakeResponse::parse(&payload).unwrap();
            assert_eq!((read.head.max_packet, read.head.collation), (1 << 24, 45));
            assert_eq!((read.user, read.reply, read.schema), (&b"app"[..], &[7; 32][..], Some(&b"test"[..])));
            assert_eq!(read.plugin, Some(&b"caching_sha2_password"[..]));
            assert_eq!(read.attributes.pairs().collect::<Vec<_>>(), [(&b"_pid"[..], &b"7"[..])]);
        }
    }

    /// The fixed part with these capabilities, and then `tail`.
    fn payload(capabilities: CapabilityFlags, tail: &[u8]) -> Vec<u8> {
        let mut out = BytesMut::new();
        SslRequest { capabilities, max_packet: 0, collation: 8 }.encode(&mut out);
        out.put_slice(tail);
        out.to_vec()
    }

    #[test]
    fn odd_clients_are_read() {
        let schema = BASE | CapabilityFlags::CLIENT_CONNECT_WITH_DB;
        let plugin = schema | CapabilityFlags::CLIENT_PLUGIN_AUTH;
        let all = plugin | CapabilityFlags::CLIENT_CONNECT_ATTRS;
        // capabilities, tail, schema, plugin
        let (test, x) = (Some(&b"test"[..]), Some(&b"x"[..]));
        for (capabilities, tail, schema, plugin) in [
            (BASE, &b"app\0\0"[..], None, None),
            (BASE, b"app\0\0test\0", None, None),
            (schema, b"app\0\0test", test, None),
            (schema, b"app\0\0\0", None, None),
            (plugin, b"app\0\0test\0x", test, x),
            (plugin, b"app\0\0test\0", test, None),
            (all, b"app\0\0test\0x\0", test, x),
            (all, b"app\0\0\0x\0\x00trailing", None, x),
        ] {
            let bytes = payload(capabilities, tail);
            let read = HandshakeResponse::parse(&bytes).unwrap();
            assert_eq!((read.user, read.schema, read.plugin), (&b"app"[..], schema, plugin), "{tail:?}");
            assert_eq!(read.attributes.pairs().count(), 0);
        }
        let all_lenenc = all | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA;
        for (capabilities, tail) in [
            (BASE, &b""[..]),
            (BASE, b"app"),
            (BASE, b"app\0"),
            (BASE, b"app\0\x14short"),
            (all_lenenc, b"app\0\xfbtest\0x\0"),
            (all_lenenc, b"app\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff"),
            (all, b"app\0\0test\0x\0\x09short"),
        ] {
            assert!(HandshakeResponse::parse(&payload(capabilities, tail)).is_err(), "{tail:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            user in "[^\0]{0,40}",
            reply in proptest::collection::vec(any::<u8>(), 0..32),
            schema in proptest::option::of("[^\0]{1,40}"),
            pairs in proptest::collection::vec(("[a-z_]{0,300}", "[^\0]{0,100}"), 0..4),
            lenenc in any::<bool>(),
            zstd_level in 0_u8..=22,
        ) {
            let mut capabilities = BASE | CapabilityFlags::CLIENT_PLUGIN_AUTH | CapabilityFlags::CLIENT_CONNECT_ATTRS;
            capabilities.set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, schema.is_some());
            capabilities.set(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM, zstd_level > 0);
            capabilities.set(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA, lenenc);
            let attributes = encode_attributes(&pairs);
            let written = HandshakeResponse {
                head: SslRequest { capabilities, max_packet: 1 << 30, collation: 255 },
                user: user.as_bytes(),
                reply: &reply,
                schema: schema.as_deref().map(str::as_bytes),
                plugin: Some(b"mysql_native_password"),
                attributes: Attributes::new(&attributes),
                zstd_level,
            };
            let mut out = BytesMut::new();
            written.encode(&mut out);
            let read = HandshakeResponse::parse(&out).unwrap();
            prop_assert_eq!(&read, &written);
            let read_pairs: Vec<_> = read.attributes.pairs().collect();
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            prop_assert_eq!(read_pairs, pairs);
        }
    }
}
