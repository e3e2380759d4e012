//! Session trackers: what the server reports about the session in OK packets.
//!
//! The OK holds a list of entries: a byte that names the kind, then a length-encoded string with the kind's own fields.
//! Both servers send one entry for each variable. Which of them a client is told is decided by [`Wishes`].
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html#sect_protocol_basic_ok_packet_sessinfo>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
pub use super::wishes::{Flavour, Told, Wishes};
use crate::protocol::wire::{Reader, lenenc_len, put_lenenc_bytes, put_lenenc_int};

const VARIABLE: u8 = 0;
const SCHEMA: u8 = 1;
const STATE_CHANGED: u8 = 2;
const GTID: u8 = 3;
const CHARACTERISTICS: u8 = 4;
const TRANSACTION: u8 = 5;

/// One thing that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A system variable was set.
    Variable {
        /// Its name.
        name: &'a [u8],
        /// Its new value as text; empty also for NULL.
        value: &'a [u8],
    },
    /// The default schema is now this one (empty: none).
    Schema(&'a [u8]),
    /// Something of the session's state changed, whatever it was.
    StateChanged(bool),
    /// GTIDs of the transaction that was committed (MySQL).
    Gtid(&'a [u8]),
    /// Statements that start an equal transaction, e.g. `SET TRANSACTION ISOLATION LEVEL READ COMMITTED;`. Empty: the next
    /// transaction is an ordinary one.
    Characteristics(&'a [u8]),
    /// Transaction state: eight characters, e.g. `T_____W_`.
    Transaction(&'a [u8]),
    /// A kind that neither server documents.
    Unknown {
        /// Its number.
        kind: u8,
        /// What it holds.
        data: &'a [u8],
    },
}

impl Change<'_> {
    /// Appends the change as an entry of its own, byte for byte as the servers write it.
    pub fn encode(&self, out: &mut BytesMut) {
        match *self {
            Change::Variable { name, value } => {
                out.put_u8(VARIABLE);
                put_lenenc_int(out, lenenc_bytes_len(name) + lenenc_bytes_len(value));
                put_lenenc_bytes(out, name);
                put_lenenc_bytes(out, value);
            }
            Change::Schema(name) => put_string(out, SCHEMA, name),
            Change::StateChanged(changed) => out.put_slice(&[STATE_CHANGED, 1, if changed { b'1' } else { b'0' }]),
            Change::Gtid(gtids) => {
                out.put_u8(GTID);
                put_lenenc_int(out, 1 + lenenc_bytes_len(gtids));
                out.put_u8(0); // the only way to write GTIDs there is
                put_lenenc_bytes(out, gtids);
            }
            Change::Characteristics(statements) => put_string(out, CHARACTERISTICS, statements),
            Change::Transaction(state) => put_string(out, TRANSACTION, state),
            Change::Unknown { kind, data } => {
                out.put_u8(kind);
                put_lenenc_bytes(out, data);
            }
        }
    }
}

fn put_string(out: &mut BytesMut, kind: u8, string: &[u8]) {
    out.put_u8(kind);
    put_lenenc_int(out, lenenc_bytes_len(string));
    put_lenenc_bytes(out, string);
}

fn lenenc_bytes_len(bytes: &[u8]) -> u64 {
    let len = bytes.len() as u64;
    lenenc_len(len) as u64 + len
}

/// The changes in `raw`, an OK packet's [`session_state`](super::ok::OkPacket::session_state). Stops after the first error.
pub fn changes(raw: &[u8]) -> Changes<'_> {
    Changes { entries: Reader::new(raw), pairs: Reader::new(&[]) }
}

/// Iterator of [`changes`].
#[derive(Clone, Debug)]
pub struct Changes<'a> {
    /// What follows the current entry.
    entries: Reader<'a>,
    /// What is left of the current entry, if it holds variables.
    pairs: Reader<'a>,
}

impl<'a> Changes<'a> {
    fn read(&mut self) -> Result<Change<'a>, PacketError> {
        if self.pairs.is_empty() {
            let kind = self.entries.u8()?;
            let data = self.entries.lenenc_bytes()?;
            if kind != VARIABLE {
                return read_entry(kind, data);
            }
            self.pairs = Reader::new(data);
        }
        let name = self.pairs.lenenc_bytes()?;
        let value = self.pairs.lenenc_bytes()?;
        Ok(Change::Variable { name, value })
    }
}

impl<'a> Iterator for Changes<'a> {
    type Item = Result<Change<'a>, PacketError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.pairs.is_empty() && self.entries.is_empty() {
            return None;
        }
        let change = self.read();
        if change.is_err() {
            *self = changes(&[]);
        }
        Some(change)
    }
}

fn read_entry(kind: u8, data: &[u8]) -> Result<Change<'_>, PacketError> {
    let mut reader = Reader::new(data);
    let change = match kind {
        SCHEMA => Change::Schema(reader.lenenc_bytes()?),
        STATE_CHANGED => Change::StateChanged(reader.u8()? == b'1'),
        GTID => {
            reader.u8()?; // how they are written
            Change::Gtid(reader.lenenc_bytes()?)
        }
        CHARACTERISTICS => Change::Characteristics(reader.lenenc_bytes()?),
        TRANSACTION => Change::Transaction(reader.lenenc_bytes()?),
        _ => return Ok(Change::Unknown { kind, data }),
    };
    if !reader.is_empty() {
        return Err(PacketError::Trailing(reader.len()));
    }
    Ok(change)
}

/// Any bytes as entries: what is read and written again reads the same, and nothing wanted is lost.
#[doc(hidden)]
pub fn fuzz_session_track(data: &[u8]) {
    let read: Vec<Change<'_>> = changes(data).map_while(Result::ok).collect();
    let mut out = BytesMut::new();
    read.iter().for_each(|change| change.encode(&mut out));
    let again: Result<Vec<Change<'_>>, PacketError> = changes(&out).collect();
    assert_eq!(again.as_ref(), Ok(&read));

    let mut greedy = Wishes::default();
    for (name, value) in [("system_variables", "*"), ("state_change", "ON"), ("gtids", "ALL_GTIDS")] {
        greedy.set(format!("session_track_{name}").as_bytes(), value.as_bytes());
    }
    greedy.set(b"session_track_transaction_info", b"CHARACTERISTICS");
    let mut all = BytesMut::new();
    assert_eq!(greedy.filter(&mut Told::default(), data, &mut all), !read.is_empty());
    assert_eq!(all, out);
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        let mut some = BytesMut::new();
        Wishes::new(flavour).filter(&mut Told::default(), data, &mut some);
        assert!(changes(&some).all(|change| change.is_ok()), "a filtered list is well formed");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn captured_entries() {
        // The beginning of a transaction on MySQL that tracks everything, then others.
        let begin = b"\0\x14\x0Cstatement_id\x06170181\x05\x09\x08T_______\x04\x13\x12START TRANSACTION;";
        let expected = [
            Change::Variable { name: b"statement_id", value: b"170181" },
            Change::Transaction(b"T_______"),
            Change::Characteristics(b"START TRANSACTION;"),
        ];
        let cases: [(&[u8], &[Change<'_>]); 6] = [
            (b"", &[]),
            (begin, &expected),
            (b"\x01\x06\x05test2\x02\x011", &[Change::Schema(b"test2"), Change::StateChanged(true)]),
            (b"\x05\x09\x08________\x04\x01\0", &[Change::Transaction(b"________"), Change::Characteristics(b"")]),
            (b"\x03\x06\0\x04u:42\x02\x010", &[Change::Gtid(b"u:42"), Change::StateChanged(false)]),
            (b"\x09\x02ab\x01\x01\0", &[Change::Unknown { kind: 9, data: b"ab" }, Change::Schema(b"")]),
        ];
        for (raw, expected) in cases {
            let read: Result<Vec<_>, _> = changes(raw).collect();
            assert_eq!(read.as_deref(), Ok(expected));
            let mut out = BytesMut::new();
            expected.iter().for_each(|change| change.encode(&mut out));
            assert_eq!(out, raw);
        }
    }

    #[test]
    fn one_entry_may_hold_several_variables() {
        let raw = b"\0\x08\x01a\x01b\x01c\x01d\x02\x011";
        let read: Vec<_> = changes(raw).map(Result::unwrap).collect();
        let variable = |name, value| Change::Variable { name, value };
        assert_eq!(read, [variable(b"a", b"b"), variable(b"c", b"d"), Change::StateChanged(true)]);
    }

    #[test]
    fn a_malformed_entry_is_the_last() {
        let malformed: [&[u8]; 6] =
            [b"\x01", b"\x01\x09\x08", b"\x01\x03\x05ab", b"\x02\0", b"\x01\x03\x01ab", b"\0\x03\x01a\x05"];
        for bad in malformed {
            let raw = [b"\x02\x011", bad, b"\x02\x011"].concat();
            let read: Vec<_> = changes(&raw).collect();
            assert_eq!(read[0], Ok(Change::StateChanged(true)));
            assert!(read[1..].iter().rev().skip(1).all(Result::is_ok));
            let alone: Vec<_> = changes(bad).collect();
            assert!(matches!(alone[..], [Err(_)]), "{bad:?}: {alone:?}");
        }
    }

    proptest! {
        #[test]
        fn smoke(
            noise in proptest::collection::vec(any::<u8>(), 0..40),
            entries in proptest::collection::vec((0..7_u8, "(START TRANSACTION)?;?[a-z]{0,3}"), 0..8),
        ) {
            let mut raw = BytesMut::new();
            for (kind, text) in &entries {
                let text = text.as_bytes();
                match kind {
                    0 => Change::Variable { name: text, value: b"1" }.encode(&mut raw),
                    1 => Change::Schema(text).encode(&mut raw),
                    2 => Change::StateChanged(true).encode(&mut raw),
                    3 => Change::Gtid(text).encode(&mut raw),
                    4 => Change::Characteristics(text).encode(&mut raw),
                    5 => Change::Transaction(text).encode(&mut raw),
                    _ => Change::Unknown { kind: 77, data: text }.encode(&mut raw),
                }
            }
            fuzz_session_track(&raw);
            raw.extend_from_slice(&noise);
            fuzz_session_track(&raw);
            fuzz_session_track(&noise);
        }
    }
}
