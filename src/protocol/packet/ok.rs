//! OK: a statement succeeded; with CLIENT_DEPRECATE_EOF also (starting with 0xFE) the end of rows.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use super::eof::EofPacket;
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

    /// The EOF that stands for it in the old dialect, which tells no changes.
    pub fn to_eof(&self) -> EofPacket {
        let status = self.status.difference(StatusFlags::SERVER_SESSION_STATE_CHANGED);
        EofPacket { warnings: self.warnings, status }
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
    let mut state: &[u8] = &[];
    if status.contains(StatusFlags::SERVER_SESSION_STATE_CHANGED) {
        // MariaDB fills up with zeros in front, where the schema's own character set has wide characters (ucs2, utf32).
        while state.is_empty() && !reader.is_empty() {
            state = reader.lenenc_bytes()?;
        }
    }
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

/// Any bytes as an OK: what is read and written again reads the same.
#[doc(hidden)]
pub fn fuzz_ok(data: &[u8]) {
    for session_track in [false, true] {
        let Ok(ok) = OkPacket::parse(data, session_track) else { continue };
        let mut out = BytesMut::new();
        ok.encode(&mut out, session_track);
        let again = OkPacket::parse(&out, session_track);
        let mut status = ok.status;
        if !session_track {
            status.remove(StatusFlags::SERVER_SESSION_STATE_CHANGED);
        }
        assert_eq!(again, Ok(OkPacket { status, ..ok }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(ok: &OkPacket<'_>, session_track: bool) -> Vec<u8> {
        let mut out = BytesMut::new();
        ok.encode(&mut out, session_track);
        out.to_vec()
    }

    /// As captured from both servers, for a client with CLIENT_SESSION_TRACK.
    const TRACKED: [&[u8]; 8] = [
        b"\0\0\0\x02\0\0\0",
        b"\0\0\0\x02\0\x01\0",
        b"\0\x02\x01\x02\0\0\0\x26Records: 2  Duplicates: 0  Warnings: 0",
        b"\0\xFD\xF0\x49\x02\0\x02\0\0\0\x2BRecords: 150000  Duplicates: 0  Warnings: 0",
        b"\0\0\0\0\x40\0\0\0\x11\0\x0F\x0Aautocommit\x03OFF",
        b"\0\x01\0\x22\x40\0\0\x28Rows matched: 1  Changed: 1  Warnings: 0\x16\0\x14\x0Cstatement_id\x06231095",
        b"\xFE\0\0\x23\x40\0\0\0\x0B\x05\x09\x08T_R___S_",
        // BEGIN in a transaction: something changed, but there is nothing to say.
        b"\0\0\0\x03\x40\0\0\0\0",
    ];

    #[test]
    fn tracked_packets_come_back() {
        for bytes in TRACKED {
            let ok = OkPacket::parse(bytes, true).unwrap();
            assert_eq!(encoded(&ok, true), bytes);
        }
        let update = OkPacket::parse(TRACKED[5], true).unwrap();
        assert_eq!((update.affected_rows, update.insert_id), (1, 0));
        assert_eq!(update.info, b"Rows matched: 1  Changed: 1  Warnings: 0");
        assert_eq!(update.session_state, b"\0\x14\x0Cstatement_id\x06231095");
        let end = OkPacket::parse(TRACKED[6], true).unwrap();
        assert_eq!((end.header, end.session_state), (OkPacket::END, &b"\x05\x09\x08T_R___S_"[..]));
    }

    #[test]
    fn without_session_track_the_info_is_length_encoded_and_the_flag_unset() {
        let insert: &[u8] = b"\0\x02\x01\x02\0\0\0\x26Records: 2  Duplicates: 0  Warnings: 0";
        let ok = OkPacket::parse(insert, false).unwrap();
        assert_eq!(ok.info, b"Records: 2  Duplicates: 0  Warnings: 0");
        assert_eq!(encoded(&ok, false), insert);
        let update = OkPacket::parse(TRACKED[5], true).unwrap();
        let plain = b"\0\x01\0\x22\0\0\0\x28Rows matched: 1  Changed: 1  Warnings: 0";
        assert_eq!(encoded(&update, false), plain);
        assert_eq!(encoded(&OkPacket::parse(TRACKED[4], true).unwrap(), false), b"\0\0\0\0\0\0\0");
        // As the manual has it, and no server sends.
        assert_eq!(OkPacket::parse(b"\0\0\0\x02\0\0\0done", false).unwrap().info, b"done");
    }

    #[test]
    fn other_entries() {
        let ok = OkPacket::parse(TRACKED[5], true).unwrap();
        let none = b"\0\x01\0\x22\0\0\0\x28Rows matched: 1  Changed: 1  Warnings: 0";
        assert_eq!(encoded(&ok.with_changes(false, &[]), true), none);
        let set = OkPacket::parse(TRACKED[0], true).unwrap().with_changes(true, b"\x01\x05\x04test");
        assert_eq!(encoded(&set, true), b"\0\0\0\x02\x40\0\0\0\x07\x01\x05\x04test");
        let eof = OkPacket::parse(TRACKED[6], true).unwrap().to_eof();
        assert_eq!((eof.status.bits(), eof.warnings), (0x0023, 0));
    }

    #[test]
    fn zeros_in_front_of_the_entries_are_passed_over() {
        // As MariaDB writes it in a schema of utf16, and of utf32.
        for zeros in [1, 3] {
            let raw = [&b"\0\x02\0\x21\x40\0\0\x01i"[..], &vec![0; zeros], b"\x03\x02\x011"].concat();
            let ok = OkPacket::parse(&raw, true).unwrap();
            assert_eq!((ok.info, ok.session_state), (&b"i"[..], &b"\x02\x011"[..]));
        }
    }

    #[test]
    fn malformed() {
        assert_eq!(OkPacket::parse(b"\x01\0\0", true), Err(PacketError::Header { what: "an OK", got: 1 }));
        for bytes in TRACKED {
            for len in 0..7 {
                assert!(OkPacket::parse(&bytes[..len], true).is_err());
            }
        }
        assert!(OkPacket::parse(&TRACKED[4][..12], true).is_err());
        assert_eq!(OkPacket::parse(b"\0\0\0\x02\0\0\0\0\x01x", true), Err(PacketError::Trailing(2)));
    }

    proptest! {
        #[test]
        fn smoke(data in proptest::collection::vec(any::<u8>(), 0..60), end in any::<bool>()) {
            fuzz_ok(&data);
            let header = if end { OkPacket::END } else { OkPacket::OK };
            let likely: Vec<u8> = [header, 1, 2].into_iter().chain(data).collect();
            fuzz_ok(&likely);
        }
    }
}
