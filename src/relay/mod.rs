//! The hot path: one turn of bytes between two channels.
//!
//! A turn is a command and its whole reply. The command is streamed to the backend, behind whatever must restore
//! the session, in one write; the reply is streamed back, looking at headers only. Nothing here knows a client, a
//! pool or a session: what must be noticed on the way is told to a [`Witness`].
//!
//! ```text
//!  client ──command──▶ [client.buffer] ──(restore + command)──▶ backend
//!  client ◀──span────── [backend.buffer] ◀──────reply────────── backend
//!                        scanned: forward; the rest: wait for more
//! ```
//!
//! Memory is bounded by one buffer a direction: the next read happens only after the last write went through.
//! Tested with scripted streams in memory, and against real servers in tests/.

mod command;
mod dialect;
mod frames;
mod reframe;
mod scan;
mod turn;

use std::io;
use std::time::Duration;

use bytes::BytesMut;

use crate::net::{Buffer, Stream};
use crate::protocol::command::ReplyKind;
use crate::protocol::packet::prepare::PrepareOk;
use crate::protocol::response::{End, ReplyError};

pub use dialect::Dialect;
pub use reframe::Front;
pub use turn::{Aside, aside, turn};

/// One end of a turn: a stream and what was read from it.
#[derive(Debug)]
pub struct Channel<'a> {
    /// Where bytes come from and go to.
    pub stream: &'a mut Stream,
    /// What was read and not yet passed on.
    pub buffer: &'a mut Buffer,
}

/// What to send, and what reply to expect.
#[derive(Debug)]
pub struct Order {
    /// Whole packets that go in front of the client's command, in the same write.
    pub prefix: BytesMut,
    /// How many of them are there; each is answered by OK or ERR, which the client does not see.
    pub prefix_replies: usize,
    /// What the command's front becomes on the way, if it does not go as it came.
    pub front: Option<Front>,
    /// The kind of reply the command leads to.
    pub reply: ReplyKind,
    /// The largest command in bytes.
    pub max_packet: usize,
    /// How long a client may stop half way: send nothing of its command, or take nothing of its reply.
    pub stall: Duration,
    /// How long the rest of a reply is read for a client that is gone.
    pub patience: Duration,
}

/// What a turn tells whoever wants to know, as it passes.
pub trait Witness {
    /// A part of the command's payload, its first byte (the command code) included.
    fn command(&mut self, payload: &[u8]);
    /// The last byte of the command was taken from the client: what follows is the next one, whether this one gets there or not.
    fn command_taken(&mut self);
    /// A statement was prepared. Returns the id by which the client shall know it.
    fn prepared(&mut self, prepared: &PrepareOk) -> u32;
    /// The result of a statement ended.
    fn end(&mut self, end: &End<'_>);
    /// How many warnings the client is told of, where the server says so many.
    fn warnings(&self, said: u16) -> u16 {
        said
    }
    /// Appends those of the tracked changes that the client asked for. Is there anything to tell it?
    fn tell(&mut self, changes: &[u8], out: &mut BytesMut) -> bool;
}

/// What went over the wire in one turn, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Read from the client.
    pub from_client: u64,
    /// Written to the client.
    pub to_client: u64,
    /// Read from the backend.
    pub from_backend: u64,
    /// Written to the backend.
    pub to_backend: u64,
}

/// Why a turn did not come to its end. The backend is then in the middle of something and of no further use, unless
/// [`Broken::finished_alone`].
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The client closed its connection, or its socket failed.
    #[error("the client went away: {0}")]
    ClientGone(io::Error),
    /// The client's command is larger than allowed.
    #[error("the command is larger than {limit} bytes")]
    TooLarge {
        /// `limits.max_packet`
        limit: usize,
    },
    /// The server closed the connection, or its socket failed.
    #[error("the server went away: {0}")]
    BackendLost(io::Error),
    /// The server said something that we do not understand.
    #[error("the server broke the protocol: {0}")]
    BackendProtocol(#[from] ReplyError),
    /// The server sent a packet that cannot be right.
    #[error("the server broke the protocol: {0}")]
    BackendMalformed(&'static str),
    /// The server refused a prefix packet.
    #[error("the session could not be restored: error {code}: {message}")]
    Restore {
        /// MySQL error code.
        code: u16,
        /// SQLSTATE.
        state: [u8; 5],
        /// The server's words.
        message: String,
    },
}

/// How far a failed turn got.
#[derive(Debug)]
pub struct Broken {
    /// What happened.
    pub error: TurnError,
    /// Has the client seen a part of the reply? Then no error packet can be sent any more.
    pub reply_started: bool,
    /// The client went away, but the reply was read to its end: the backend is as good as after any other turn.
    pub finished_alone: bool,
}
