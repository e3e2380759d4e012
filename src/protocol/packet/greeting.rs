//! The greeting (HandshakeV10): the first packet on a connection, from the server.
//!
//! ```text
//!  1  10                     1  0                       1  length of the nonce + 1
//!  n  version, zero          2  capabilities, low       6  zeros
//!  4  connection id          1  collation               4  MariaDB's extended capabilities, else zeros
//!  8  nonce, first part      2  status                 13  nonce, second part, zero
//!                            2  capabilities, high      n  plugin, zero
//! ```
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_v10.html>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use crate::protocol::auth::Nonce;
use crate::protocol::capability::{CapabilityFlags, StatusFlags};
use crate::protocol::wire::{Reader, WireError, put_nul_bytes};

/// Bytes of the nonce in the first part.
const FIRST_PART: usize = 8;
/// Bytes of the second part, its terminating zero included.
const SECOND_PART: usize = 13;

/// A greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// The server's version, as it words it.
    pub version: &'a [u8],
    /// The server's number for this connection.
    pub connection_id: u32,
    /// What the client is to prove its password with.
    pub nonce: Nonce,
    /// What the server can do.
    pub capabilities: CapabilityFlags,
    /// What MariaDB can do beyond that (bits 32 and up of its capabilities); 0 from others.
    pub extended: u32,
    /// The server's default collation, the low byte of its number.
    pub collation: u8,
    /// The session's status.
    pub status: StatusFlags,
    /// The plugin that the nonce is for; absent without CLIENT_PLUGIN_AUTH.
    pub plugin: Option<&'a [u8]>,
}

impl<'a> Greeting<'a> {
    /// The only version of the protocol still spoken.
    pub const PROTOCOL: u8 = 10;

    /// Reads a payload.
    ///
    /// # Errors
    /// If it is no greeting of protocol 10, or has no nonce of 20 bytes (servers before 4.1).
    pub fn parse(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        match reader.u8()? {
            Self::PROTOCOL => {}
            got => return Err(PacketError::Header { what: "a greeting", got }),
        }
        let version = reader.nul_bytes()?;
        let connection_id = reader.u32()?;
        let first = reader.array::<FIRST_PART>()?;
        reader.u8()?;
        let low = reader.u16()?;
        let collation = reader.u8()?;
        let status = StatusFlags::from_bits_retain(reader.u16()?);
        let high = reader.u16()?;
        let capabilities = CapabilityFlags::from_bits_retain(u32::from(low) | u32::from(high) << 16);
        let nonce_len = usize::from(reader.u8()?);
        reader.bytes(6)?;
        let extended = reader.u32()?;
        // The manual's rule; the last of these bytes is a zero that some servers leave out.
        let second_len = nonce_len.saturating_sub(FIRST_PART).max(SECOND_PART);
        let second = reader.bytes(second_len.min(reader.len()))?;
        // Some servers leave out the zero after the name.
        let plugin = capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH).then(|| until_zero(reader.rest()));
        let nonce = join(first, second).ok_or(WireError::Truncated)?;
        Ok(Self { version, connection_id, nonce, capabilities, extended, collation, status, plugin })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut BytesMut) {
        let bits = self.capabilities.bits();
        let (first, second) = self.nonce.split_at(FIRST_PART);
        out.put_u8(Self::PROTOCOL);
        put_nul_bytes(out, self.version);
        out.put_u32_le(self.connection_id);
        out.put_slice(first);
        out.put_u8(0);
        out.put_u16_le(bits as u16);
        out.put_u8(self.collation);
        out.put_u16_le(self.status.bits());
        out.put_u16_le((bits >> 16) as u16);
        out.put_u8((FIRST_PART + SECOND_PART) as u8);
        out.put_bytes(0, 6);
        out.put_u32_le(self.extended);
        out.put_slice(second);
        out.put_u8(0);
        if let Some(plugin) = self.plugin {
            put_nul_bytes(out, plugin);
        }
    }
}

/// The bytes up to the first zero, or all.
fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or(bytes)
}

fn join(first: [u8; FIRST_PART], second: &[u8]) -> Option<Nonce> {
    let second = second.first_chunk::<{ SECOND_PART - 1 }>()?;
    let mut nonce = Nonce::default();
    for (to, from) in nonce.iter_mut().zip(first.iter().chain(second)) {
        *to = *from;
    }
    Some(nonce)
}
