//! From the client to the backend: the command behind its prefix, and the file of a LOCAL INFILE.

use std::io;

use tokio::io::AsyncWriteExt;

use super::frames::{Frames, Part};
use super::{Channel, Order, Traffic, TurnError, Witness};
use crate::net::Stream;
use crate::protocol::frame::HEADER;

/// How far a command got.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// All of it is on its way.
    pub(super) whole: bool,
    /// The sequence number of its last frame.
    pub(super) seq: u8,
}

/// Sends the prefix and the command, whose first frame is at the front of the client's buffer.
///
/// A server that stops listening half way may have said why: that is left to whoever reads its reply, so a failed
/// write is not an error here.
pub(super) async fn send<W: Witness>(
    client: &mut Channel<'_>,
    backend: &mut Stream,
    order: &mut Order,
    traffic: &mut Traffic,
    witness: &mut W,
) -> Result<Sent, TurnError> {
    let mut frames = Frames::default();
    loop {
        let n = frames.take(client.buffer.data(), |payload| witness.command(payload));
        if frames.total > order.max_packet {
            return Err(TurnError::TooLarge { limit: order.max_packet });
        }
        if n > 0 && !forward(client, backend, order, n, traffic).await {
            return Ok(Sent { whole: false, seq: frames.seq });
        }
        if frames.is_done() {
            witness.command_sent();
            return Ok(Sent { whole: true, seq: frames.seq });
        }
        read(client, traffic).await?;
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

/// Streams the packets of a LOCAL INFILE up to the empty one. The client counts on from what it has seen, which is
/// `shift` more than the server sent.
pub(super) async fn send_file(
    client: &mut Channel<'_>,
    backend: &mut Stream,
    shift: u8,
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
                    if let Some(seq) = data.get_mut(HEADER - 1) {
                        *seq = seq.wrapping_sub(shift);
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
        write(backend, client.buffer.data().get(..at).unwrap_or_default()).await.map_err(TurnError::BackendLost)?;
        client.buffer.consume(at);
        if last {
            return Ok(());
        }
        read(client, traffic).await?;
    }
}

async fn read(client: &mut Channel<'_>, traffic: &mut Traffic) -> Result<(), TurnError> {
    match client.buffer.fill(client.stream).await {
        Ok(0) => Err(TurnError::ClientGone(io::ErrorKind::UnexpectedEof.into())),
        Ok(n) => {
            traffic.from_client += n as u64;
            Ok(())
        }
        Err(error) => Err(TurnError::ClientGone(error)),
    }
}

/// Writes everything, and has it leave a TLS stream's own buffer.
pub(super) async fn write(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    if stream.is_tls() {
        stream.flush().await?;
    }
    Ok(())
}
