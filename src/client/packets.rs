//! Whole packets to and from a client, for conversations: logging in and changing the user.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::net::{Buffer, Stream};
use crate::protocol::frame::{HEADER, Header};

/// Reads a packet's header and not a byte more, since TLS may start right behind the packet.
///
/// # Errors
/// What the socket says.
pub(super) async fn header(stream: &mut Stream, buffer: &mut Buffer) -> io::Result<Header> {
    let mut header = [0; HEADER];
    read_exact(stream, buffer, &mut header).await?;
    Header::parse(&header).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reads the payload behind a header that was found reasonable.
///
/// # Errors
/// What the socket says.
pub(super) async fn payload(
    stream: &mut Stream,
    buffer: &mut Buffer,
    header: Header,
    payload: &mut Vec<u8>,
) -> io::Result<()> {
    payload.resize(header.len, 0);
    read_exact(stream, buffer, payload).await
}

/// What was read ahead comes first.
async fn read_exact(stream: &mut Stream, buffer: &mut Buffer, into: &mut [u8]) -> io::Result<()> {
    let ahead = buffer.len().min(into.len());
    let (front, rest) = into.split_at_mut(ahead);
    front.copy_from_slice(buffer.data().get(..ahead).unwrap_or_default());
    buffer.consume(ahead);
    if !rest.is_empty() {
        stream.read_exact(rest).await?;
    }
    Ok(())
}

/// Sends and empties `out`.
///
/// # Errors
/// What the socket says.
pub(super) async fn write(stream: &mut Stream, out: &mut BytesMut) -> io::Result<()> {
    if !out.is_empty() {
        stream.write_all(out).await?;
        stream.flush().await?;
        out.clear();
    }
    Ok(())
}
