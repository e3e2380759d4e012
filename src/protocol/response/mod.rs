//! The reply state machine: which packet is the last of a turn.
//!
//! The relay reads a frame's header and first byte, asks [`Reply::classify`] what it is, and hands the payload to
//! [`Reply::accept`] only if [`Class::needs_payload`]; rows and definitions are streamed without being looked at.
//! Nothing here allocates. Two dialects are understood: the *old* one, where EOF packets end blocks of definitions and
//! rows, and the *new* one (CLIENT_DEPRECATE_EOF), where OK packets starting with 0xFE end rows only.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase.html>.

#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod tests;

use thiserror::Error;

use super::capability::StatusFlags;
use super::command::ReplyKind;
use super::frame::Header;
use super::packet::PacketError;
use super::packet::eof::EofPacket;
use super::packet::err::ErrPacket;
use super::packet::ok::OkPacket;
use super::packet::prepare::PrepareOk;
use super::wire::Reader;

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
    /// A result without columns.
    #[error("a result set without columns")]
    NoColumns,
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
    /// A packet that must be understood fills a whole frame (16 MiB): no server sends such.
    #[error("a packet that must be read as a whole fills a frame")]
    Oversized,
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
///
/// ```text
///          +---------------- MORE_RESULTS ----------------+
///          v                                              |
///  new -> Start -- count --> Definitions --> BlockEof --> Rows -- end --> Done
///          |                     |        (old dialect)    ^               ^ ^
///          |                     +------ (new dialect) ----+               | |
///          +-- OK, EOF, text ----------------------------------------------+ |
///          +-- 0xFB --> FileWanted -- infile_sent --> Start                  |
///          +-- PREPARE OK --> Definitions (parameters, then columns) --------+      ERR, anywhere --> Done
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    phase: Phase,
    kind: ReplyKind,
    deprecate_eof: bool,
    session_track: bool,
    /// The last frame was full: its packet goes on in the next one.
    unfinished: bool,
    /// The EOF after the columns promised further results (see [`Reply::eof`]).
    more_promised: bool,
    /// SERVER_STATUS_CURSOR_EXISTS can be about a cursor of the client's.
    cursors: bool,
    /// The next frame's sequence number; `None` after a file, whose frames are not seen here.
    next_seq: Option<u8>,
    /// Rows of this result so far.
    rows: u64,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first packet of the reply, or of its next result.
    Start,
    /// So many more definitions of this block; never 0.
    Definitions(Block, u64),
    /// The EOF that ends the block (old dialect).
    BlockEof(Block),
    /// Rows, and what ends them.
    Rows,
    /// Definitions without a count, and what ends them (COM_FIELD_LIST).
    Fields,
    /// Nothing, until the client has sent its file.
    FileWanted,
    /// Nothing.
    Done,
}

/// A block of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Columns of a result set; rows follow.
    Result,
    /// Parameters of a prepared statement; so many columns follow.
    Params(u16),
    /// Columns of a prepared statement.
    Prepared,
}

impl Block {
    /// What follows the block.
    fn next(self) -> Phase {
        match self {
            Block::Result => Phase::Rows,
            Block::Params(0) | Block::Prepared => Phase::Done,
            Block::Params(columns) => Phase::Definitions(Block::Prepared, u64::from(columns)),
        }
    }
}

impl Reply {
    /// Before the first frame. The dialect is the one agreed on with the server that sends the reply.
    pub fn new(kind: ReplyKind, deprecate_eof: bool, session_track: bool) -> Reply {
        let phase = match kind {
            ReplyKind::None => Phase::Done,
            ReplyKind::Fetch => Phase::Rows,
            ReplyKind::FieldList => Phase::Fields,
            _ => Phase::Start,
        };
        Reply {
            phase,
            kind,
            deprecate_eof,
            session_track,
            unfinished: false,
            more_promised: false,
            cursors: true,
            next_seq: Some(1),
            rows: 0,
        }
    }

    /// The reply to a command whose last frame had this sequence number, 0 unless it is larger than 16 MiB.
    #[must_use]
    pub fn to_frame(mut self, seq: u8) -> Self {
        self.next_seq = Some(seq.wrapping_add(1));
        self
    }

    /// The command opens no cursor: what replies say of one is about a procedure's own, and rows follow all the same.
    #[must_use]
    pub fn without_cursor(mut self) -> Self {
        self.cursors = false;
        self
    }

    /// Is the whole reply over?
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// What the frame with this header is. `first`: the first byte of its payload, `None` if that is empty.
    pub fn classify(&self, header: Header, first: Option<u8>) -> Result<Class, ReplyError> {
        let class = self.class_of(header, first)?;
        match self.next_seq {
            // An ERR may be a server's last words (shutdown, idle timeout), sent out of turn: it is passed on as it is.
            Some(expected) if header.seq != expected && class != Class::Err => {
                Err(ReplyError::Sequence { expected, got: header.seq })
            }
            _ => Ok(class),
        }
    }

    fn class_of(&self, header: Header, first: Option<u8>) -> Result<Class, ReplyError> {
        if self.unfinished {
            return Ok(Class::Continuation);
        }
        let Some(first) = first else {
            return match self.phase {
                Phase::Done => Err(ReplyError::AfterEnd),
                Phase::Start if self.kind == ReplyKind::Statistics => Ok(Class::Text),
                _ => Err(ReplyError::Empty),
            };
        };
        match self.phase {
            Phase::Rows => Ok(self.row_or_end(header, first, Class::Row)),
            Phase::Fields => Ok(self.row_or_end(header, first, Class::Column)),
            Phase::Start => self.start(header, first),
            Phase::Done => Err(ReplyError::AfterEnd),
            _ if first == ErrPacket::HEADER => Ok(Class::Err),
            Phase::Definitions(Block::Params(_), _) => Ok(Class::Param),
            Phase::Definitions(..) => Ok(Class::Column),
            Phase::BlockEof(_) if self.is_end(header, first) => Ok(Class::Eof),
            Phase::BlockEof(_) | Phase::FileWanted => Err(ReplyError::Unexpected { first, len: header.len }),
        }
    }

    /// A row cannot start with 0xFF. It can start with 0xFE, when its first field has 16 MiB or more: [`Reply::is_end`].
    fn row_or_end(&self, header: Header, first: u8, row: Class) -> Class {
        match first {
            ErrPacket::HEADER => Class::Err,
            EofPacket::HEADER if self.is_end(header, first) => self.end_class(),
            _ => row,
        }
    }

    /// Does a frame that starts like this end rows? Its length decides: a row that starts with 0xFE fills its first
    /// frame, an EOF has five bytes, an OK is never that long.
    fn is_end(&self, header: Header, first: u8) -> bool {
        first == EofPacket::HEADER && if self.deprecate_eof { !header.is_full() } else { header.len < 9 }
    }

    fn end_class(&self) -> Class {
        if self.deprecate_eof { Class::RowsEnd } else { Class::Eof }
    }

    fn start(&self, header: Header, first: u8) -> Result<Class, ReplyError> {
        match (self.kind, first) {
            (ReplyKind::ChangeUser | ReplyKind::Stream, _) => Err(ReplyError::NotRelayed),
            (_, ErrPacket::HEADER) => Ok(Class::Err),
            (ReplyKind::Statistics, _) => Ok(Class::Text),
            (ReplyKind::Prepare, 0x00) => Ok(Class::PrepareOk),
            (ReplyKind::Simple | ReplyKind::Query, 0x00) => Ok(Class::Ok),
            (ReplyKind::Simple, _) if self.is_end(header, first) => Ok(self.end_class()),
            (ReplyKind::Query, 0xFB) => Ok(Class::LocalInfile),
            (ReplyKind::Query, 0x01..=0xFA | 0xFC | 0xFD) => Ok(Class::ColumnCount),
            _ => Err(ReplyError::Unexpected { first, len: header.len }),
        }
    }

    /// Accepts the frame just classified. `payload`: all of it if [`Class::needs_payload`], else it is not looked at.
    ///
    /// # Errors
    /// [`ReplyError::Oversized`] and [`ReplyError::Packet`]; the reply must not be used any more then.
    pub fn accept<'a>(&mut self, class: Class, header: Header, payload: &'a [u8]) -> Result<Event<'a>, ReplyError> {
        self.next_seq = Some(header.seq.wrapping_add(1));
        if !class.needs_payload() {
            if class == Class::LocalInfile {
                self.phase = Phase::FileWanted;
            }
            self.unfinished = header.is_full();
            return Ok(if self.unfinished { Event::Forward } else { self.streamed() });
        }
        if header.is_full() {
            return Err(ReplyError::Oversized);
        }
        debug_assert_eq!(payload.len(), header.len, "{class:?} must be seen as a whole");
        match class {
            Class::ColumnCount => self.column_count(payload),
            Class::PrepareOk => self.prepare_ok(payload),
            Class::Eof => self.eof(payload),
            Class::Err => self.err(payload),
            // MySQL ends rows in the old way where a procedure's handler takes care of an error in the middle of them.
            Class::RowsEnd if payload.len() == EofPacket::LEN => {
                let eof = EofPacket::parse(payload)?;
                Ok(self.end(Body::RowsEndEof(eof), eof.status))
            }
            Class::RowsEnd => {
                let ok = OkPacket::parse(payload, self.session_track)?;
                Ok(self.end(Body::RowsEnd(ok), ok.status))
            }
            _ => {
                let ok = OkPacket::parse(payload, self.session_track)?;
                Ok(self.end(Body::Ok(ok), ok.status))
            }
        }
    }

    /// After [`Event::LocalInfile`], when the client has sent its last (empty) packet: the reply goes on with OK or ERR.
    pub fn infile_sent(&mut self) {
        debug_assert!(self.phase == Phase::FileWanted || self.is_done(), "no file was asked for");
        if self.phase == Phase::FileWanted {
            self.phase = Phase::Start;
            self.next_seq = None;
        }
    }

    /// The last frame of a packet that was not looked at.
    fn streamed(&mut self) -> Event<'static> {
        match self.phase {
            Phase::Rows => {
                self.rows += 1;
                Event::Forward
            }
            Phase::Definitions(block, left) if left > 1 => {
                self.phase = Phase::Definitions(block, left - 1);
                Event::Forward
            }
            Phase::Definitions(block, _) if self.deprecate_eof => {
                self.phase = block.next();
                Event::ColumnsEnd
            }
            Phase::Definitions(block, _) => {
                self.phase = Phase::BlockEof(block);
                Event::Forward
            }
            Phase::FileWanted => Event::LocalInfile,
            Phase::Start => self.end(Body::Text, StatusFlags::empty()),
            Phase::Fields | Phase::BlockEof(_) | Phase::Done => Event::Forward,
        }
    }

    fn column_count(&mut self, payload: &[u8]) -> Result<Event<'static>, ReplyError> {
        let mut reader = Reader::new(payload);
        let columns = reader.lenenc_int().map_err(PacketError::from)?;
        if !reader.is_empty() {
            return Err(PacketError::Trailing(reader.len()).into());
        }
        if columns == 0 {
            return Err(ReplyError::NoColumns);
        }
        self.phase = Phase::Definitions(Block::Result, columns);
        Ok(Event::Forward)
    }

    fn prepare_ok(&mut self, payload: &[u8]) -> Result<Event<'static>, ReplyError> {
        let ok = PrepareOk::parse(payload)?;
        self.phase = match ok.params {
            0 => Block::Params(ok.columns).next(),
            params => Phase::Definitions(Block::Params(ok.columns), u64::from(params)),
        };
        Ok(Event::Prepared(ok))
    }

    /// EOF: ends a block of definitions, rows, or the whole reply.
    ///
    /// Two flags of the one after a result's columns decide how the result goes on. With SERVER_STATUS_CURSOR_EXISTS no
    /// rows follow. With SERVER_PS_OUT_PARAMS more results follow, although MySQL forgets to say so after the only row.
    fn eof(&mut self, payload: &[u8]) -> Result<Event<'static>, ReplyError> {
        let eof = EofPacket::parse(payload)?;
        let Phase::BlockEof(block) = self.phase else { return Ok(self.end(Body::RowsEndEof(eof), eof.status)) };
        if block == Block::Result {
            if self.cursors && eof.status.contains(StatusFlags::SERVER_STATUS_CURSOR_EXISTS) {
                return Ok(self.end(Body::RowsEndEof(eof), eof.status));
            }
            let promise = StatusFlags::SERVER_PS_OUT_PARAMS.union(StatusFlags::SERVER_MORE_RESULTS_EXISTS);
            self.more_promised = eof.status.contains(promise);
        }
        self.phase = block.next();
        Ok(Event::Eof(eof))
    }

    fn err<'a>(&mut self, payload: &'a [u8]) -> Result<Event<'a>, ReplyError> {
        let err = ErrPacket::parse(payload)?;
        if err.is_progress() {
            return Ok(Event::Forward);
        }
        self.phase = Phase::Done;
        Ok(Event::End(End { body: Body::Err(err), rows: std::mem::take(&mut self.rows) }))
    }

    /// A result ended well; the reply goes on if the server says so.
    fn end<'a>(&mut self, body: Body<'a>, status: StatusFlags) -> Event<'a> {
        let more = self.more_promised || status.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS);
        self.phase = if more && self.kind == ReplyKind::Query { Phase::Start } else { Phase::Done };
        self.more_promised = false;
        Event::End(End { body, rows: std::mem::take(&mut self.rows) })
    }
}
