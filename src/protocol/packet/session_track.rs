//! Session trackers: what the server reports about the session in OK packets.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html#sect_protocol_basic_ok_packet_sessinfo>.

use bytes::{BufMut, BytesMut};

use super::PacketError;
use crate::protocol::wire::{Reader, put_lenenc_bytes};

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
    /// Statements that start an equal transaction, e.g. `SET TRANSACTION ISOLATION LEVEL READ COMMITTED;`.
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

impl<'a> Iterator for Changes<'a> {
    type Item = Result<Change<'a>, PacketError>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

/// What a client asked to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wishes {}

impl Wishes {
    /// Notes `SET session_track_...`: `variable` and `value` as the server reported them. Other variables are ignored.
    pub fn set(&mut self, variable: &[u8], value: &[u8]) {
        let _ = (variable, value);
        todo!()
    }

    /// Appends those entries of `raw` that the client wants; `false` if there are none.
    pub fn filter(&self, raw: &[u8], out: &mut BytesMut) -> bool {
        let _ = (raw, out);
        todo!()
    }
}
