//! The client's answer to the greeting (HandshakeResponse41), and its short form that asks for TLS first (SSLRequest).
//!
//! ```text
//!  4  capabilities      n  user, zero                            n  schema, zero   if CLIENT_CONNECT_WITH_DB
//!  4  largest packet    n  reply: length-encoded if              n  plugin, zero   if CLIENT_PLUGIN_AUTH
//!  1  collation            CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA, n  attributes     if CLIENT_CONNECT_ATTRS
//! 23  zeros                else one byte of length
//! ```
//!
//! SSLRequest is the left column alone. See
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_response.html>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use crate::protocol::capability::CapabilityFlags;
use crate::protocol::wire::{Reader, WireError, put_lenenc_bytes, put_nul_bytes};

/// The capabilities that start every packet a client answers the greeting with.
#[must_use]
pub fn capabilities(payload: &[u8]) -> Option<CapabilityFlags> {
    Reader::new(payload).u32().ok().map(CapabilityFlags::from_bits_retain)
}

/// The packet's fixed part; alone, it is a request for TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslRequest {
    /// What the client can do and wants, CLIENT_SSL among it.
    pub capabilities: CapabilityFlags,
    /// The largest packet the client takes.
    pub max_packet: u32,
    /// The low byte of the collation's number.
    pub collation: u8,
}

impl SslRequest {
    /// Its length.
    pub const LEN: usize = 32;
    /// The zeros at its end; MariaDB's clients use the last four when CLIENT_LONG_PASSWORD is not set, but only towards a
    /// server that left it out too.
    const FILLER: usize = 23;

    fn parse(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let capabilities = CapabilityFlags::from_bits_retain(reader.u32()?);
        let (max_packet, collation) = (reader.u32()?, reader.u8()?);
        reader.bytes(Self::FILLER)?;
        Ok(Self { capabilities, max_packet, collation })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u32_le(self.capabilities.bits());
        out.put_u32_le(self.max_packet);
        out.put_u8(self.collation);
        out.put_bytes(0, Self::FILLER);
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
        let mut this = Self { head, user, reply, schema: None, plugin: None, attributes: Attributes::default() };
        if head.capabilities.contains(CapabilityFlags::CLIENT_CONNECT_WITH_DB) {
            this.schema = Some(lenient_nul(&mut reader)).filter(|schema| !schema.is_empty());
        }
        if head.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) && !reader.is_empty() {
            this.plugin = Some(lenient_nul(&mut reader));
        }
        if head.capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS) {
            this.attributes = Attributes::parse(&mut reader)?;
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
            put_lenenc_bytes(out, self.attributes.raw);
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
