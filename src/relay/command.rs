//! From the client to the backend: the command behind its prefix, and the file of a LOCAL INFILE.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::frames::{Frames, Part};
use super::reframe::{Front, Reframe};
use super::scan::Numbers;
use super::{Channel, Order, Traffic, TurnError, Witness};
use crate::net::Stream;
use crate::protocol::frame::HEADER;

/// How far a command got.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// All of it is on its way.
    pub(super) whole: bool,
    /// The sequence number of its last frame.
    pub(super) numbers: Numbers,
}

/// Sends the prefix and the command, whose first frame is at the front of the client's buffer.
///
/// A server that stops listening half way may have said why: that is left to whoever reads its reply, so neither a
/// failed write nor a server that speaks too early is an error here.
pub(super) async fn send<W: Witness>(
    client: &mut Channel<'_>,
    backend: &mut Channel<'_>,
    order: &mut Order,
    traffic: &mut Traffic,
    witness: &mut W,
) -> Result<Sent, TurnError> {
    if let Some(front) = order.front.take() {
        return Box::pin(send_reframed(client, backend, order, front, traffic, witness)).await;
    }
    let mut frames = Frames::default();
    let sent = |whole, seq| Sent { whole, numbers: Numbers { client: seq, sent: seq } };
    loop {
        let n = frames.take(client.buffer.data(), |payload| witness.command(payload));
        if frames.total > order.max_packet {
            return Err(TurnError::TooLarge { limit: order.max_packet });
        }
        if frames.is_done() {
            witness.command_taken();
        }
        if n > 0 && !forward(client, backend.stream, order, n, traffic).await {
            return Ok(sent(false, frames.seq));
        }
        if frames.is_done() {
            return Ok(sent(true, frames.seq));
        }
        // The answers to a prefix are expected; anything else that the server says now is about this command.
        let watched = (order.prefix_replies == 0).then_some(&mut *backend);
        if !read(client, watched, order.stall, traffic).await? {
            return Ok(sent(false, frames.seq));
        }
    }
}

/// Sends the prefix and the command, whose front is another one than the client wrote.
async fn send_reframed<W: Witness>(
    client: &mut Channel<'_>,
    backend: &mut Channel<'_>,
    order: &mut Order,
    front: Front,
    traffic: &mut Traffic,
    witness: &mut W,
) -> Result<Sent, TurnError> {
    let mut reframe = Reframe::new(front);
    let sent = |whole, (client, sent)| Sent { whole, numbers: Numbers { client, sent } };
    loop {
        let mut out = std::mem::take(&mut order.prefix);
        let n = reframe.take(client.buffer.data(), &mut out);
        if reframe.total() > order.max_packet {
            return Err(TurnError::TooLarge { limit: order.max_packet });
        }
        client.buffer.consume(n);
        traffic.to_backend += out.len() as u64;
        if reframe.is_done() {
            witness.command_taken();
        }
        if !out.is_empty() && write(backend.stream, &out).await.is_err() {
            return Ok(sent(false, reframe.seqs()));
        }
        if reframe.is_done() {
            return Ok(sent(true, reframe.seqs()));
        }
        let watched = (order.prefix_replies == 0).then_some(&mut *backend);
        if !read(client, watched, order.stall, traffic).await? {
            return Ok(sent(false, reframe.seqs()));
        }
    }
}

/// Writes the first `n` bytes of the client's buffer, behind the prefix if there is one; false if that failed.
async fn forward(
    client: &mut Channel<'_>,
    backend: &mut Stream,
    order: &mut Order,
    n: usize,
    traffic: &mut Traffic,
) -> bool {
    let data = client.buffer.data().get(..n).unwrap_or_default();
    let written = if order.prefix.is_empty() {
        traffic.to_backend += n as u64;
        write(backend, data).await
    } else {
        order.prefix.extend_from_slice(data);
        let both = std::mem::take(&mut order.prefix);
        traffic.to_backend += both.len() as u64;
        write(backend, &both).await
    };
    client.buffer.consume(n);
    written.is_ok()
}

/// Streams the packets of a LOCAL INFILE up to the empty one. The server counts on from its request, `seq`; the client
/// from what it has seen, or, with compression, from something else.
pub(super) async fn send_file(
    client: &mut Channel<'_>,
    backend: &mut Channel<'_>,
    mut seq: u8,
    stall: Duration,
    traffic: &mut Traffic,
) -> Result<(), TurnError> {
    let mut packet = Frames::default();
    loop {
        let mut at = 0;
        let mut last = false;
        loop {
            let data = client.buffer.data_mut().get_mut(at..).unwrap_or_default();
            match packet.next(data) {
                Part::Header => {
                    seq = seq.wrapping_add(1);
                    if let Some(number) = data.get_mut(HEADER - 1) {
                        *number = seq;
                    }
                    at += HEADER;
                }
                Part::Payload(n) => at += n,
                Part::End if packet.total == 0 => {
                    last = true;
                    break;
                }
                Part::End => packet = Frames::default(),
                Part::Short => break,
            }
        }
        traffic.to_backend += at as u64;
        let file = client.buffer.data().get(..at).unwrap_or_default();
        write(backend.stream, file).await.map_err(TurnError::BackendLost)?;
        client.buffer.consume(at);
        if last {
            return Ok(());
        }
        if !read(client, Some(&mut *backend), stall, traffic).await? {
            return Err(TurnError::BackendLost(io::Error::other("the server did not wait for the whole file")));
        }
    }
}

/// Reads on from the client, who holds a backend meanwhile and may be silent for `limit`; false if the server speaks or
/// hangs up first.
async fn read(
    client: &mut Channel<'_>,
    backend: Option<&mut Channel<'_>>,
    limit: Duration,
    traffic: &mut Traffic,
) -> Result<bool, TurnError> {
    let reading = Box::pin(tokio::time::timeout(limit, read_or_hear(client, backend)));
    let n = match reading.await {
        Ok(read) => read.map_err(TurnError::ClientGone)?,
        Err(_) => {
            return Err(TurnError::ClientGone(io::Error::new(io::ErrorKind::TimedOut, "the client stopped half way")));
        }
    };
    traffic.from_client += n.unwrap_or(0) as u64;
    Ok(n.is_some())
}

/// How many bytes came from the client; none if the server spoke or hung up first. What it said is in its buffer.
async fn read_or_hear(client: &mut Channel<'_>, mut backend: Option<&mut Channel<'_>>) -> io::Result<Option<usize>> {
    poll_fn(|cx| {
        match client.buffer.poll_fill(cx, client.stream) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Poll::Ready(read) => return Poll::Ready(read.map(Some)),
            Poll::Pending => {}
        }
        let Some(backend) = &mut backend else { return Poll::Pending };
        backend.buffer.poll_fill(cx, backend.stream).map(|_| Ok(None))
    })
    .await
}

/// Writes to a client. One that takes nothing for `limit` is as good as gone.
pub(super) async fn write_within(stream: &mut Stream, bytes: &[u8], limit: Duration) -> io::Result<()> {
    let mut writing = std::pin::pin!(write(stream, bytes));
    // No timer for those who take it at once.
    let at_once = poll_fn(|cx| Poll::Ready(writing.as_mut().poll(cx))).await;
    match at_once {
        Poll::Ready(written) => written,
        Poll::Pending => {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the client has taken nothing for too long");
            Box::pin(tokio::time::timeout(limit, writing)).await.map_err(late)?
        }
    }
}

/// Writes everything, and has it leave the buffer that a stream of TLS or of compressed frames has.
pub(super) async fn write(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    if stream.holds_back() {
        stream.flush().await?;
    }
    Ok(())
}
