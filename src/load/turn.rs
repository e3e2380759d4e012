//! One command and its whole reply, without a buffer of its own: a thread's scratch space serves all its clients.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use super::report::FailureKind;
use super::statement::Statement;
use crate::protocol::command::{Command, ReplyKind};
use crate::protocol::frame::{self, HEADER, Header};
use crate::protocol::packet::err::ErrPacket;
use crate::protocol::response::{Body, Event, Reply};

/// Bytes read at once.
const SCRATCH: usize = 16 << 10;
/// The longest packet that must be looked at as a whole: OK, ERR and their like.
const LONGEST_LOOK: usize = 1 << 20;

thread_local! {
    /// Where a thread's clients read to and write from, one after the other; never held over an await.
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers { input: vec![0; SCRATCH].into(), output: BytesMut::new() });
}

struct Buffers {
    input: Box<[u8]>,
    output: BytesMut,
}

/// Why a turn or a login did not work.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) text: String,
}

impl Failure {
    pub(super) fn new(kind: FailureKind, text: impl ToString) -> Self {
        Self { kind, text: text.to_string() }
    }

    fn lost(error: &io::Error) -> Self {
        Self::new(FailureKind::Lost, error)
    }

    fn closed() -> Self {
        Self::new(FailureKind::Lost, "the server closed the connection")
    }

    pub(super) fn protocol(error: impl ToString) -> Self {
        Self::new(FailureKind::Protocol, error)
    }
}

/// A logged-in connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// Whether OK stands in the place of EOF.
    pub(super) deprecate_eof: bool,
    /// Whether OK packets carry what changed in the session.
    pub(super) session_track: bool,
}

impl Connection {
    /// Sends a statement and reads its reply to the end.
    ///
    /// # Errors
    /// [`FailureKind::Server`] if that is the server's answer; after any other the connection is of no more use.
    pub(super) async fn query(&mut self, statement: &Statement) -> Result<(), Failure> {
        self.turn(Command::Query, ReplyKind::Query, |out| statement.write(&mut rand::rng(), out)).await.map(drop)
    }

    /// Executes the prepared statement `id`.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub(super) async fn execute(&mut self, statement: &Statement, id: u32) -> Result<(), Failure> {
        let write = |out: &mut BytesMut| statement.write_execute(id, &mut rand::rng(), out);
        self.turn(Command::StmtExecute, ReplyKind::Query, write).await.map(drop)
    }

    /// Prepares a statement; returns its id.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub(super) async fn prepare(&mut self, statement: &Statement) -> Result<u32, Failure> {
        let text = statement.to_prepare();
        let prepared =
            self.turn(Command::StmtPrepare, ReplyKind::Prepare, |out| out.put_slice(text.as_bytes())).await?;
        prepared.ok_or_else(|| Failure::protocol("the server has prepared a statement without an id"))
    }

    /// Sends a command and reads its reply to the end; the id of a statement that it has prepared.
    async fn turn(
        &mut self,
        command: Command,
        kind: ReplyKind,
        write: impl FnOnce(&mut BytesMut),
    ) -> Result<Option<u32>, Failure> {
        self.send(command, write).await.map_err(|error| Failure::lost(&error))?;
        let mut reading = Reading::new(Reply::new(kind, self.deprecate_eof, self.session_track));
        loop {
            let outcome = poll_fn(|cx| read(&mut self.stream, cx, |bytes| reading.feed(bytes))).await;
            match outcome.map_err(|error| Failure::lost(&error))? {
                None => return Err(Failure::closed()),
                Some(Progress::More) => {}
                Some(Progress::Done) => return Ok(reading.prepared),
                Some(Progress::Failed(failure)) => return Err(failure),
            }
        }
    }

    /// Returns when the server says or does something though it was not asked.
    pub(super) async fn unasked(&self) -> Failure {
        let mut bytes = [0; 512];
        loop {
            if let Err(error) = self.stream.readable().await {
                return Failure::lost(&error);
            }
            match self.stream.try_read(&mut bytes) {
                Ok(0) => return Failure::closed(),
                Ok(n) => return last_words(bytes.get(HEADER..n).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Failure::lost(&error),
            }
        }
    }

    /// Says good-bye. A server that is gone already needs none.
    pub(super) async fn quit(mut self) {
        let _ = self.send(Command::Quit, |_| {}).await;
        let _ = self.stream.shutdown().await;
    }

    /// Sends a command.
    ///
    /// # Errors
    /// If the connection is lost.
    pub(super) async fn send(&mut self, command: Command, write: impl FnOnce(&mut BytesMut)) -> io::Result<()> {
        let rest = BUFFERS.with_borrow_mut(|buffers| {
            let output = &mut buffers.output;
            output.clear();
            frame::packet_with(output, 0, |out| {
                out.put_u8(command.byte());
                write(out);
            });
            match self.stream.try_write(output) {
                Ok(sent) => Ok(output.get(sent..).unwrap_or_default().to_vec()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(output.to_vec()),
                Err(error) => Err(error),
            }
        })?;
        // Almost always empty: then nothing was allocated and nothing is written.
        self.stream.write_all(&rest).await
    }
}

/// Reads what is there and hands it to `take`; nothing at the end of the stream.
fn read<T>(stream: &mut TcpStream, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> T) -> Poll<io::Result<Option<T>>> {
    BUFFERS.with_borrow_mut(|buffers| {
        let mut buffer = ReadBuf::new(&mut buffers.input);
        ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
        let bytes = buffer.filled();
        Poll::Ready(Ok((!bytes.is_empty()).then(|| take(bytes))))
    })
}

/// A server that closes a connection may say why.
fn last_words(payload: &[u8]) -> Failure {
    match ErrPacket::parse(payload) {
        Ok(error) => Failure::new(FailureKind::Lost, String::from_utf8_lossy(error.message)),
        Err(_) => Failure::protocol("the server sent something that nobody asked for"),
    }
}

/// How far a reply has been read.
struct Reading {
    reply: Reply,
    /// Bytes of the current frame that need not be looked at and have not come yet.
    skip: usize,
    /// The beginning of a frame that must be seen as a whole. Mostly empty.
    kept: Vec<u8>,
    failure: Option<Failure>,
    /// The id of the statement that was prepared.
    prepared: Option<u32>,
}

enum Progress {
    More,
    Done,
    Failed(Failure),
}

impl Reading {
    fn new(reply: Reply) -> Self {
        Self { reply, skip: 0, kept: Vec::new(), failure: None, prepared: None }
    }

    /// Takes the next bytes of the reply, cut anywhere.
    fn feed(&mut self, bytes: &[u8]) -> Progress {
        let joined;
        let mut rest = if self.kept.is_empty() {
            bytes
        } else {
            let mut kept = std::mem::take(&mut self.kept);
            kept.extend_from_slice(bytes);
            joined = kept;
            &joined
        };
        loop {
            let skipped = self.skip.min(rest.len());
            self.skip -= skipped;
            rest = rest.get(skipped..).unwrap_or_default();
            if self.reply.is_done() && self.skip == 0 {
                return match self.failure.take() {
                    Some(failure) => Progress::Failed(failure),
                    None if rest.is_empty() => Progress::Done,
                    None => Progress::Failed(Failure::protocol("the server sent more than its reply")),
                };
            }
            match self.frame(rest) {
                Ok(Some(taken)) => rest = rest.get(taken..).unwrap_or_default(),
                Ok(None) => {
                    self.kept.extend_from_slice(rest);
                    return Progress::More;
                }
                Err(failure) => return Progress::Failed(failure),
            }
        }
    }

    /// Takes one frame from the front of `bytes` (or its header, if the rest is of no interest): how many bytes, or
    /// nothing if more must come first.
    fn frame(&mut self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        let Some(header) = Header::parse(bytes) else { return Ok(None) };
        let first = bytes.get(HEADER).copied();
        if first.is_none() && header.len > 0 {
            return Ok(None);
        }
        let first = first.filter(|_| header.len > 0);
        let class = self.reply.classify(header, first).map_err(Failure::protocol)?;
        let (payload, taken) = if class.needs_payload() {
            if header.len > LONGEST_LOOK {
                let text = format!("the server sent a packet of {} bytes for an answer", header.len);
                return Err(Failure::protocol(text));
            }
            let end = HEADER + header.len;
            let Some(payload) = bytes.get(HEADER..end) else { return Ok(None) };
            (payload, end)
        } else {
            self.skip = header.len;
            (&[][..], HEADER)
        };
        match self.reply.accept(class, header, payload).map_err(Failure::protocol)? {
            Event::LocalInfile => return Err(Failure::protocol("the server asks for a file, which is not supported")),
            Event::Prepared(ok) => self.prepared = Some(ok.statement_id),
            Event::End(end) => {
                if let Body::Err(error) = end.body {
                    let text = String::from_utf8_lossy(error.message);
                    self.failure = Some(Failure::new(FailureKind::Server(error.code), text));
                }
            }
            _ => {}
        }
        Ok(Some(taken))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = BytesMut::new();
        let mut seq = 1;
        for payload in payloads {
            seq = frame::write_packet(&mut out, seq, payload);
        }
        out.to_vec()
    }

    /// Feeds `bytes` in pieces of these lengths and returns what came of it.
    fn outcome(bytes: &[u8], pieces: impl IntoIterator<Item = usize>) -> Result<(), Failure> {
        let mut reading = Reading::new(Reply::new(ReplyKind::Query, true, false));
        let mut rest = bytes;
        for piece in pieces.into_iter().chain(std::iter::repeat(usize::MAX)) {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            rest = later;
            match reading.feed(now) {
                Progress::More => assert!(!rest.is_empty(), "the reply should be complete"),
                Progress::Done => return Ok(()),
                Progress::Failed(failure) => return Err(failure),
            }
        }
        unreachable!("pieces never end")
    }

    const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
    const END: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];
    const ERR: &[u8] = b"\xFF\x28\x04#42000wrong";

    /// A definition of a column, which nobody looks at.
    const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x04\0\0\0\x08\0\0\0\0\0";

    fn replies() -> Vec<(Vec<u8>, Option<FailureKind>)> {
        let row = [&[0xFC, 0x10, 0x27][..], &[b'x'; 10_000]].concat();
        vec![
            (packets(&[OK]), None),
            (packets(&[ERR]), Some(FailureKind::Server(1064))),
            (packets(&[&[1], COLUMN, END]), None),
            (packets(&[&[1], COLUMN, b"\x011", &row, &[0xFB], END]), None),
            (packets(&[&[1], COLUMN, b"\x011", ERR]), Some(FailureKind::Server(1064))),
            (packets(&[&[0, 0, 0, 10, 0, 0, 0], &[1], COLUMN, END]), None),
            (packets(&[OK, OK]), Some(FailureKind::Protocol)),
            (packets(&[b"\xFBfile"]), Some(FailureKind::Protocol)),
            (packets(&[&[]]), Some(FailureKind::Protocol)),
        ]
    }

    #[test]
    fn replies_end_where_they_end() {
        for (bytes, expected) in replies() {
            assert_eq!(outcome(&bytes, []).err().map(|failure| failure.kind), expected, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(which in 0..6_usize, pieces in prop::collection::vec(1..40_usize, 0..400)) {
            let (bytes, expected) = replies().swap_remove(which);
            prop_assert_eq!(outcome(&bytes, pieces).err().map(|failure| failure.kind), expected);
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let mut reading = Reading::new(Reply::new(ReplyKind::Query, true, false));
            for byte in bytes {
                if !matches!(reading.feed(&[byte]), Progress::More) {
                    break;
                }
            }
        }
    }
}
