//! A statement of our own on a backend, read as a whole.

use std::future::poll_fn;
use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt;

use super::Backend;
use crate::protocol::capability::{CapabilityFlags, StatusFlags};
use crate::protocol::command::Command;
use crate::protocol::frame::{HEADER, Header, packet_with};
use crate::protocol::packet::attributes;
use crate::protocol::packet::column::text_row;
use crate::protocol::packet::err::ErrPacket;
use crate::protocol::response::{Body, Class, Event, Reply, ReplyError};
use crate::session::{self, Ask};

/// How often a question is put that a KILL QUERY ends, but for the last time.
const ATTEMPTS: usize = 4;
const ER_QUERY_INTERRUPTED: u16 = 1317;

/// The largest reply that a question of ours may have, in bytes.
const MAX_REPLY: usize = 16 << 20;

/// What a statement of our own returned: raw packets, as the server wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Column definitions.
    pub columns: Vec<Bytes>,
    /// Text rows.
    pub rows: Vec<Bytes>,
    /// What the server says of its session at the end.
    pub status: StatusFlags,
    /// How many warnings the statement caused.
    pub warnings: u16,
}

impl Rows {
    /// Every field of every row.
    #[must_use]
    pub fn decode(&self) -> session::Rows {
        (0..self.rows.len()).map(|row| self.fields(row)).collect()
    }

    /// The fields of one row; empty if there is no such row.
    #[must_use]
    pub fn fields(&self, row: usize) -> Vec<Option<Vec<u8>>> {
        let Some(row) = self.rows.get(row) else { return Vec::new() };
        text_row(row).map(|field| field.map(<[u8]>::to_vec)).collect()
    }
}

/// Why a statement of our own failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The server refused it; the connection is as good as before.
    #[error("error {code}: {message}")]
    Refused {
        /// MySQL error code.
        code: u16,
        /// SQLSTATE.
        state: [u8; 5],
        /// The server's words.
        message: String,
    },
    /// The connection is lost.
    #[error("the server went away: {0}")]
    Lost(#[from] io::Error),
    /// The server said something that we do not understand.
    #[error("the server broke the protocol: {0}")]
    Protocol(#[from] ReplyError),
}

impl Backend {
    /// Runs one statement and reads its whole result.
    ///
    /// # Errors
    /// [`QueryError`]; after anything but `Refused` the connection is of no further use.
    pub async fn query(&mut self, sql: &str) -> Result<Rows, QueryError> {
        self.command(Command::Query, sql.as_bytes()).await
    }

    /// Runs several statements, sent in one write. The server has `backend.connect_timeout` for all of them.
    ///
    /// # Errors
    /// As [`Backend::query`]; the first refusal, after all answers were read.
    pub async fn batch(&mut self, statements: &[&str]) -> Result<Vec<Rows>, QueryError> {
        let mut out = BytesMut::new();
        for statement in statements {
            self.append(&mut out, Command::Query, statement.as_bytes());
        }
        let patience = self.patience;
        let all = async {
            self.stream.write_all(&out).await?;
            self.stream.flush().await?;
            let (mut answers, mut refused) = (Vec::new(), None);
            for _ in statements {
                match self.answer(Command::Query).await {
                    Ok(rows) => answers.push(rows),
                    Err(refusal @ QueryError::Refused { .. }) => refused = refused.or(Some(refusal)),
                    Err(error) => return Err(error),
                }
            }
            refused.map_or(Ok(answers), Err)
        };
        tokio::time::timeout(patience, all).await.map_err(late)?
    }

    /// Puts a question of a session; once more if a KILL QUERY, which was not meant for it, has ended it. `None` if the
    /// server refuses to answer.
    ///
    /// # Errors
    /// As [`Backend::query`], but not `Refused`.
    pub async fn ask(&mut self, ask: &Ask) -> Result<Option<session::Rows>, QueryError> {
        let text = ask.text();
        for _ in 0..ATTEMPTS {
            match self.query(&text).await {
                Err(QueryError::Refused { code: ER_QUERY_INTERRUPTED, .. }) => {}
                answer => return understood(ask, answer),
            }
        }
        understood(ask, self.query(&text).await)
    }

    /// Runs one command whose reply is an OK, an error or rows. The server has `backend.connect_timeout` to answer.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub async fn command(&mut self, command: Command, argument: &[u8]) -> Result<Rows, QueryError> {
        let limit = self.patience;
        tokio::time::timeout(limit, self.exchange(command, argument)).await.map_err(late)?
    }

    async fn exchange(&mut self, command: Command, argument: &[u8]) -> Result<Rows, QueryError> {
        let mut out = self.prepared.closes();
        self.append(&mut out, command, argument);
        self.stream.write_all(&out).await?;
        self.stream.flush().await?;
        self.answer(command).await
    }

    /// What this connection wants in front of a command's argument that has no attributes.
    pub(super) fn attributes(&self, command: Command) -> &'static [u8] {
        let wanted = self.capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);
        if wanted && command == Command::Query { &attributes::NONE } else { &[] }
    }

    /// Appends a command packet of our own, as this connection wants it.
    pub fn append(&self, out: &mut BytesMut, command: Command, argument: &[u8]) {
        let attributes = self.attributes(command);
        out.reserve(HEADER + 1 + attributes.len() + argument.len());
        packet_with(out, 0, |out| {
            out.extend_from_slice(&[command.byte()]);
            out.extend_from_slice(attributes);
            out.extend_from_slice(argument);
        });
    }

    /// Reads the answer to a command that was sent.
    async fn answer(&mut self, command: Command) -> Result<Rows, QueryError> {
        let mut reply = Reply::new(command.reply(), self.deprecates_eof(), self.tracks());
        let (mut rows, mut refused, mut total) = (Rows::default(), None, 0);
        while !reply.is_done() {
            let (class, packet) = self.packet(&mut reply, &mut rows, &mut refused).await?;
            total += packet.len();
            if total > MAX_REPLY {
                return Err(
                    io::Error::new(io::ErrorKind::InvalidData, "the answer to our question is too large").into()
                );
            }
            match class {
                Class::Column => rows.columns.push(packet),
                Class::Row => rows.rows.push(packet),
                _ => {}
            }
        }
        refused.map_or(Ok(rows), Err)
    }

    /// The next packet of a reply.
    async fn packet(
        &mut self,
        reply: &mut Reply,
        rows: &mut Rows,
        refused: &mut Option<QueryError>,
    ) -> Result<(Class, Bytes), QueryError> {
        loop {
            if let Some(header) = Header::parse(self.buffer.data()) {
                if let Some(payload) = self.buffer.data().get(HEADER..HEADER + header.len) {
                    let class = reply.classify(header, payload.first().copied())?;
                    if let Event::End(end) = reply.accept(class, header, payload)? {
                        match end.body {
                            Body::Ok(ok) | Body::RowsEnd(ok) => (rows.status, rows.warnings) = (ok.status, ok.warnings),
                            Body::RowsEndEof(eof) => (rows.status, rows.warnings) = (eof.status, eof.warnings),
                            Body::Err(err) => *refused = Some(refusal(&err)),
                            Body::Text => {}
                        }
                    }
                    let packet = Bytes::copy_from_slice(payload);
                    self.buffer.consume(HEADER + header.len);
                    return Ok((class, packet));
                }
                self.buffer.reserve(HEADER + header.len);
            }
            if poll_fn(|cx| self.buffer.poll_fill(cx, &mut self.stream)).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

fn late(_: tokio::time::error::Elapsed) -> QueryError {
    QueryError::Lost(io::Error::new(io::ErrorKind::TimedOut, "the server does not answer"))
}

/// The answer to a question, if the server gave one.
fn understood(ask: &Ask, answer: Result<Rows, QueryError>) -> Result<Option<session::Rows>, QueryError> {
    match answer {
        Ok(rows) => Ok(Some(ask.answer(&rows.columns, &rows.rows))),
        Err(QueryError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn refusal(err: &ErrPacket<'_>) -> QueryError {
    QueryError::Refused {
        code: err.code,
        state: err.state.unwrap_or(*b"HY000"),
        message: String::from_utf8_lossy(err.message).into_owned(),
    }
}

/// Appends a command packet; not of COM_QUERY, which depends on the connection.
pub(super) fn append_command(out: &mut BytesMut, command: Command, argument: &[u8]) {
    packet_with(out, 0, |out| {
        out.extend_from_slice(&[command.byte()]);
        out.extend_from_slice(argument);
    });
}
