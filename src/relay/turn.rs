//! The conduct of one turn: command, restored prefix, reply.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;

use super::scan::{Numbers, Pause, Scan};
use super::{Broken, Channel, Dialect, Order, Traffic, TurnError, Witness, command};
use crate::protocol::command::ReplyKind;
use crate::protocol::frame::{HEADER, Header};
use crate::protocol::packet::err::ErrPacket;
use crate::protocol::packet::prepare::PrepareOk;
use crate::protocol::response::End;

/// Relays one turn. The client's buffer starts with the command; what the client sends ahead stays there.
///
/// When this returns an error, or is dropped half way, the backend must not be used again.
///
/// # Errors
/// [`Broken`]: what happened, and whether the client has already seen a part of the reply.
pub async fn turn<W: Witness>(
    client: &mut Channel<'_>,
    backend: &mut Channel<'_>,
    mut order: Order,
    dialect: Dialect,
    traffic: &mut Traffic,
    witness: &mut W,
) -> Result<(), Broken> {
    debug_assert!(backend.buffer.is_empty(), "a reply left over from another turn");
    let before = |error| Broken { error, reply_started: false, finished_alone: false };
    let sent = command::send(client, backend, &mut order, traffic, witness).await.map_err(before)?;
    for _ in 0..order.prefix_replies {
        prefix_reply(client, backend, traffic).await.map_err(before)?;
    }
    let started = traffic.to_client;
    let mut scan = Scan::new(order.reply, dialect, sent.numbers);
    let replied = reply(client, backend, &mut scan, order.stall, traffic, witness).await;
    let mut broken = match replied {
        Ok(()) if sent.whole => return Ok(()),
        Ok(()) => before(TurnError::BackendLost(io::ErrorKind::BrokenPipe.into())),
        Err(error) => before(error),
    };
    broken.reply_started = traffic.to_client > started;
    if sent.whole && matches!(broken.error, TurnError::ClientGone(_)) {
        let alone = tokio::time::timeout(order.patience, finish_alone(backend, &mut scan, traffic, witness)).await;
        broken.finished_alone = matches!(alone, Ok(Ok(())));
    }
    Err(broken)
}

/// A command of our own on behalf of a client whose command waits in its buffer.
#[derive(Debug)]
pub struct Aside<'a> {
    /// The command as a whole, behind what must go in front of it.
    pub bytes: &'a [u8],
    /// How many packets in front of it are answered by OK or ERR.
    pub prefix_replies: usize,
    /// The sequence number of the command's last frame.
    pub seq: u8,
    /// The kind of reply the command leads to.
    pub reply: ReplyKind,
    /// The largest reply in bytes.
    pub limit: usize,
}

/// Runs a command of our own and returns its whole reply as the server wrote it, with an eye on the client.
///
/// # Errors
/// As [`turn`]: the backend must not be used again.
pub async fn aside(
    client: &mut Channel<'_>,
    backend: &mut Channel<'_>,
    aside: Aside<'_>,
    dialect: Dialect,
    traffic: &mut Traffic,
) -> Result<Vec<u8>, Broken> {
    let broken = |error| Broken { error, reply_started: false, finished_alone: false };
    let dialect = Dialect { client_deprecates_eof: dialect.backend_deprecates_eof, ..dialect };
    let asked = async {
        traffic.to_backend += aside.bytes.len() as u64;
        command::write(backend.stream, aside.bytes).await.map_err(TurnError::BackendLost)?;
        for _ in 0..aside.prefix_replies {
            prefix_reply(client, backend, traffic).await?;
        }
        let mut scan = Scan::new(aside.reply, dialect, Numbers { client: aside.seq, sent: aside.seq });
        let mut reply = Vec::new();
        loop {
            let (n, pause) = scan.scan(backend.buffer, &mut Unheard)?;
            reply.extend_from_slice(backend.buffer.data().get(..n).unwrap_or_default());
            backend.buffer.consume(n);
            match pause {
                Pause::Done => return Ok(reply),
                _ if reply.len() > aside.limit => return Err(TurnError::BackendMalformed("a reply that is too large")),
                Pause::Infile => return Err(TurnError::BackendMalformed("a file is wanted where none is sent")),
                Pause::More => read(client, backend, traffic).await?,
            }
        }
    };
    asked.await.map_err(broken)
}

/// The client does not see the reply, and the session is not changed by it.
pub(super) struct Unheard;

impl Witness for Unheard {
    fn command(&mut self, _: &[u8]) {}
    fn command_taken(&mut self) {}
    fn prepared(&mut self, prepared: &PrepareOk) -> u32 {
        prepared.statement_id
    }
    fn end(&mut self, _: &End<'_>) {}
    fn tell(&mut self, _: &[u8], _: &mut BytesMut) -> bool {
        false
    }
}

/// The client is gone, but the server does not know yet: reads its reply to the end, so that the backend may live on.
async fn finish_alone<W: Witness>(
    backend: &mut Channel<'_>,
    scan: &mut Scan,
    traffic: &mut Traffic,
    witness: &mut W,
) -> Result<(), TurnError> {
    loop {
        let (n, pause) = scan.scan(backend.buffer, witness)?;
        scan.sent();
        backend.buffer.consume(n);
        match pause {
            Pause::Done => return Ok(()),
            Pause::Infile => return Err(TurnError::BackendMalformed("a file is wanted of a client that is gone")),
            Pause::More => match backend.buffer.fill(backend.stream).await {
                Ok(0) => return Err(TurnError::BackendLost(io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => traffic.from_backend += n as u64,
                Err(error) => return Err(TurnError::BackendLost(error)),
            },
        }
    }
}

/// The answer to one packet of the prefix, which the client does not see.
async fn prefix_reply(
    client: &mut Channel<'_>,
    backend: &mut Channel<'_>,
    traffic: &mut Traffic,
) -> Result<(), TurnError> {
    loop {
        let data = backend.buffer.data();
        if let Some(header) = Header::parse(data) {
            if let Some(payload) = data.get(HEADER..HEADER + header.len) {
                match payload.first() {
                    Some(0x00 | 0xfe) => {}
                    Some(0xff) => return Err(refused(payload)),
                    _ => return Err(TurnError::BackendMalformed("neither OK nor an error after a restore")),
                }
                backend.buffer.consume(HEADER + header.len);
                return Ok(());
            }
            backend.buffer.reserve(HEADER + header.len);
        }
        read(client, backend, traffic).await?;
    }
}

fn refused(payload: &[u8]) -> TurnError {
    match ErrPacket::parse(payload) {
        Ok(err) => TurnError::Restore {
            code: err.code,
            state: err.state.unwrap_or(*b"HY000"),
            message: String::from_utf8_lossy(err.message).into_owned(),
        },
        Err(_) => TurnError::BackendMalformed("an error packet cut short"),
    }
}

/// Streams the reply until it is over.
async fn reply<W: Witness>(
    client: &mut Channel<'_>,
    backend: &mut Channel<'_>,
    scan: &mut Scan,
    stall: Duration,
    traffic: &mut Traffic,
    witness: &mut W,
) -> Result<(), TurnError> {
    if scan.is_done() {
        return Ok(());
    }
    loop {
        let (n, pause) = scan.scan(backend.buffer, witness)?;
        if pause == Pause::Done {
            scan.finish();
        }
        // What was translated goes out of `out`, what was not goes out as it is: never both.
        let front = backend.buffer.data().get(..n).unwrap_or_default();
        let bytes = if scan.translates() { &scan.out } else { front };
        if !bytes.is_empty() {
            traffic.to_client += bytes.len() as u64;
            if let Err(error) = command::write_within(client.stream, bytes, stall).await {
                backend.buffer.consume(n);
                return Err(TurnError::ClientGone(error));
            }
        }
        scan.sent();
        backend.buffer.consume(n);
        match pause {
            Pause::Done => return Ok(()),
            Pause::Infile => {
                command::send_file(client, backend, scan.last_seq, stall, traffic).await?;
                scan.infile_sent();
            }
            Pause::More => read(client, backend, traffic).await?,
        }
    }
}

/// Waits for bytes from the backend, with an eye on the client: it may go away, or send its next command ahead,
/// which is read as far as its buffer has room.
async fn read(client: &mut Channel<'_>, backend: &mut Channel<'_>, traffic: &mut Traffic) -> Result<(), TurnError> {
    poll_fn(|cx| {
        match backend.buffer.poll_fill(cx, backend.stream) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(TurnError::BackendLost(io::ErrorKind::UnexpectedEof.into()))),
            Poll::Ready(Ok(n)) => {
                traffic.from_backend += n as u64;
                return Poll::Ready(Ok(()));
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(TurnError::BackendLost(error))),
            Poll::Pending => {}
        }
        while !client.buffer.is_full() {
            match client.buffer.poll_fill(cx, client.stream) {
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(Err(TurnError::ClientGone(io::ErrorKind::UnexpectedEof.into())));
                }
                Poll::Ready(Ok(n)) => traffic.from_client += n as u64,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(TurnError::ClientGone(error))),
                Poll::Pending => break,
            }
        }
        Poll::Pending
    })
    .await
}
