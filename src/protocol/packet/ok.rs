//! OK: a statement succeeded; with CLIENT_DEPRECATE_EOF also (starting with 0xFE) the end of rows.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use crate::protocol::capability::StatusFlags;
use crate::protocol::wire::{Reader, put_lenenc_bytes, put_lenenc_int};

/// An OK packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// [`OkPacket::OK`], or [`OkPacket::END`] where an EOF stood in the old dialect.
    pub header: u8,
    /// Rows changed (or found, with CLIENT_FOUND_ROWS).
    pub affected_rows: u64,
    /// The first id generated, 0 if none.
    pub insert_id: u64,
    /// The session's status.
    pub status: StatusFlags,
    /// Number of warnings, at most 65535.
    pub warnings: u16,
    /// A sentence for people, often empty.
    pub info: &'a [u8],
    /// The session trackers' entries as they stand in the packet (see `session_track`), empty if none.
    pub session_state: &'a [u8],
}

impl<'a> OkPacket<'a> {
    /// First byte of an OK that answers a statement.
    pub const OK: u8 = 0x00;
    /// First byte of an OK that ends rows.
    pub const END: u8 = 0xFE;

    /// Reads a payload. `session_track`: was CLIENT_SESSION_TRACK agreed on?
    pub fn parse(payload: &'a [u8], session_track: bool) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        let header = reader.u8()?;
        if header != Self::OK && header != Self::END {
            return Err(PacketError::Header { what: "an OK", got: header });
        }
        let affected_rows = reader.lenenc_int()?;
        let insert_id = reader.lenenc_int()?;
        let status = StatusFlags::from_bits_retain(reader.u16()?);
        let warnings = reader.u16()?;
        let (info, session_state) =
            if session_track { tracked_tail(&mut reader, status)? } else { (plain_info(reader.take_rest()), &[][..]) };
        Ok(Self { header, affected_rows, insert_id, status, warnings, info, session_state })
    }

    /// The same OK with other entries. `changed` becomes SERVER_SESSION_STATE_CHANGED: see
    /// [`Wishes::filter`](super::session_track::Wishes::filter).
    pub fn with_changes(mut self, changed: bool, session_state: &'a [u8]) -> Self {
        self.status.set(StatusFlags::SERVER_SESSION_STATE_CHANGED, changed);
        self.session_state = session_state;
        self
    }

    /// Appends the payload, byte for byte as both servers write it for a client with (`session_track`) or without
    /// CLIENT_SESSION_TRACK.
    ///
    /// Entries are written if `status` has SERVER_SESSION_STATE_CHANGED (which may be set without any: servers do that),
    /// and neither for a client without CLIENT_SESSION_TRACK. An empty info is written only in front of entries.
    pub fn encode(&self, out: &mut BytesMut, session_track: bool) {
        let changed = session_track && self.status.contains(StatusFlags::SERVER_SESSION_STATE_CHANGED);
        let mut status = self.status;
        status.set(StatusFlags::SERVER_SESSION_STATE_CHANGED, changed);
        out.put_u8(self.header);
        put_lenenc_int(out, self.affected_rows);
        put_lenenc_int(out, self.insert_id);
        out.put_u16_le(status.bits());
        out.put_u16_le(self.warnings);
        if changed || !self.info.is_empty() {
            put_lenenc_bytes(out, self.info);
        }
        if changed {
            put_lenenc_bytes(out, self.session_state);
        }
    }
}

/// The info and the trackers' entries. An absent info and an empty one are the same.
fn tracked_tail<'a>(reader: &mut Reader<'a>, status: StatusFlags) -> Result<(&'a [u8], &'a [u8]), PacketError> {
    if reader.is_empty() {
        return Ok((&[], &[]));
    }
    let info = reader.lenenc_bytes()?;
    let state: &[u8] = if status.contains(StatusFlags::SERVER_SESSION_STATE_CHANGED) && !reader.is_empty() {
        reader.lenenc_bytes()?
    } else {
        &[]
    };
    if !reader.is_empty() {
        return Err(PacketError::Trailing(reader.len()));
    }
    Ok((info, state))
}

/// The info without CLIENT_SESSION_TRACK: the manual says `string<EOF>`, both servers write it length-encoded.
fn plain_info(rest: &[u8]) -> &[u8] {
    let mut reader = Reader::new(rest);
    match reader.lenenc_bytes() {
        Ok(info) if reader.is_empty() => info,
        _ => rest,
    }
}
