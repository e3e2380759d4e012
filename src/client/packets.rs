//! Whole packets to and from a client, for conversations: logging in and changing the user.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::net::{Buffer, Stream};
use crate::protocol::frame::{HEADER, Header};

/// The largest packet of a login, in bytes: names, attributes and a password fit many times.
const MAX_PACKET: usize = 256 << 10;

/// Reads one packet and not a byte more, since TLS may start right behind it.
///
/// # Errors
/// What the socket says; `InvalidData` if the packet is too large to be part of a login.
pub(super) async fn read(stream: &mut Stream, buffer: &mut Buffer, payload: &mut Vec<u8>) -> io::Result<u8> {
    let mut header = [0; HEADER];
    read_exact(stream, buffer, &mut header).await?;
    let header = Header::parse(&header).unwrap_or(Header { len: 0, seq: 0 });
    if header.len > MAX_PACKET {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet too large for a login"));
    }
    payload.resize(header.len, 0);
    read_exact(stream, buffer, payload).await?;
    Ok(header.seq)
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
