//! The reply state machine: which packet is the last of a turn.

use thiserror::Error;

use super::command::ReplyKind;
use super::frame::Header;
use super::packet::PacketError;
use super::packet::eof::EofPacket;
use super::packet::err::ErrPacket;
use super::packet::ok::OkPacket;
use super::packet::prepare::PrepareOk;

/// Why a frame cannot be part of the reply: the server broke the protocol, and the connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// The reply was over already.
    #[error("the server sent more after the end of its reply")]
    AfterEnd,
    /// No packet that may come here starts like this.
    #[error("unexpected packet starting with 0x{first:02x}, {len} bytes long")]
    Unexpected {
        /// The first byte.
        first: u8,
        /// The frame's length.
        len: usize,
    },
    /// A packet without content where one must have some.
    #[error("unexpected empty packet")]
    Empty,
    /// A frame does not have the next sequence number.
    #[error("a frame has sequence number {got}, not {expected}")]
    Sequence {
        /// One more than the frame before.
        expected: u8,
        /// What it has.
        got: u8,
    },
    /// The command's reply is not one to relay (see [`ReplyKind::ChangeUser`], [`ReplyKind::Stream`]).
    #[error("the reply to this command cannot be relayed")]
    NotRelayed,
    /// A packet that must be understood is malformed.
    #[error(transparent)]
    Packet(#[from] PacketError),
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// How many columns the result has.
    ColumnCount,
    /// A column definition.
    Column,
    /// A row.
    Row,
    /// A parameter definition.
    Param,
    /// More of a packet that filled the frame before.
    Continuation,
    /// OK.
    Ok,
    /// OK in the place of EOF (new dialect).
    RowsEnd,
    /// ERR, or a progress report.
    Err,
    /// EOF (old dialect).
    Eof,
    /// The first packet of the reply to COM_STMT_PREPARE.
    PrepareOk,
    /// The server asks the client for a file.
    LocalInfile,
    /// A bare string.
    Text,
}

impl Class {
    /// Must [`Reply::accept`] see the whole payload? If not, it may be streamed blindly.
    pub fn needs_payload(self) -> bool {
        use Class::{ColumnCount, Eof, Err, Ok, PrepareOk, RowsEnd};
        matches!(self, ColumnCount | Ok | RowsEnd | Err | Eof | PrepareOk)
    }
}

/// What a frame means for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Nothing to know: pass it on.
    Forward,
    /// New dialect only: that was the last definition of a block of columns or parameters. The old dialect has an EOF
    /// here, except where the very next packet ends the result with SERVER_STATUS_CURSOR_EXISTS: then that one is it.
    ColumnsEnd,
    /// Old dialect only: an EOF inside the reply, which ends a block of definitions.
    Eof(EofPacket),
    /// The client must send a file now; see [`Reply::infile_sent`].
    LocalInfile,
    /// A statement was prepared.
    Prepared(PrepareOk),
    /// A statement's result ended. [`Reply::is_done`] says whether the reply did.
    End(End<'a>),
}

/// The end of a statement's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End<'a> {
    /// The packet that ended it.
    pub body: Body<'a>,
    /// Rows sent in this result set.
    pub rows: u64,
}

/// The packet that ends a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// OK.
    Ok(OkPacket<'a>),
    /// OK in the place of EOF: after rows, and where a command is answered by EOF in the old dialect.
    RowsEnd(OkPacket<'a>),
    /// EOF, in the same places (old dialect).
    RowsEndEof(EofPacket),
    /// ERR, also in the middle of rows. It always ends the whole reply.
    Err(ErrPacket<'a>),
    /// The bare string of COM_STATISTICS.
    Text,
}

/// How far the reply to one command has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {}

impl Reply {
    /// Before the first frame. The dialect is the one agreed on with the server that sends the reply.
    pub fn new(kind: ReplyKind, deprecate_eof: bool, session_track: bool) -> Reply {
        let _ = (kind, deprecate_eof, session_track);
        todo!()
    }

    /// Is the whole reply over?
    pub fn is_done(&self) -> bool {
        todo!()
    }

    /// What the frame with this header is. `first`: the first byte of its payload, `None` if that is empty.
    pub fn classify(&self, header: Header, first: Option<u8>) -> Result<Class, ReplyError> {
        let _ = (header, first);
        todo!()
    }

    /// Accepts the frame just classified. `payload`: all of it if [`Class::needs_payload`], else ignored.
    pub fn accept<'a>(&mut self, class: Class, header: Header, payload: &'a [u8]) -> Result<Event<'a>, ReplyError> {
        let _ = (class, header, payload);
        todo!()
    }

    /// After [`Event::LocalInfile`], when the client has sent its last (empty) packet: the reply goes on with OK or ERR.
    pub fn infile_sent(&mut self) {
        todo!()
    }
}
