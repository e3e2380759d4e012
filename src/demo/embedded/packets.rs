//! One packet at a time. `opensrv_mysql` frees a packet's bytes before it has read them if the next one arrived with it
//! (`PacketReader::next_async` of 0.7 overwrites the buffer that the packet points into), and a proxy sends several in one write.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

use crate::protocol::frame::{HEADER, Header};

/// What is read at once; also what `opensrv_mysql` has room for without growing to a megabyte.
const CHUNK: usize = 4096;

/// Lets no read reach beyond the end of a packet, and has small packets whole in one read.
pub(super) struct Packets<R> {
    inner: R,
    /// What was read and not passed on; nothing is kept for it while there is none.
    ahead: BytesMut,
    /// What is missing of the packet that is being passed on, in bytes.
    left: usize,
}

impl<R> Packets<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, ahead: BytesMut::new(), left: 0 }
    }

    /// Passes on what there is of a packet; false if that is nothing.
    fn pass_on(&mut self, out: &mut ReadBuf<'_>) -> bool {
        if self.left == 0
            && let Some(header) = Header::parse(&self.ahead)
            && (self.ahead.len() >= HEADER + header.len || self.ahead.len() >= CHUNK)
        {
            self.left = HEADER + header.len;
        }
        let count = self.left.min(self.ahead.len()).min(out.remaining());
        out.put_slice(self.ahead.get(..count).unwrap_or_default());
        self.ahead.advance(count);
        self.left -= count;
        if self.ahead.is_empty() {
            self.ahead = BytesMut::new();
        }
        count > 0
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Packets<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while !self.pass_on(out) {
            let mut chunk = [0; CHUNK];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                break;
            }
            self.ahead.extend_from_slice(read.filled());
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn no_read_reaches_into_the_next_packet() {
        let packet = |len: usize, byte: u8| [&(len as u32).to_le_bytes()[..3], &[0], &vec![byte; len]].concat();
        let lengths = [1, 300, 0, 10_000, 7];
        let all: Vec<u8> = lengths.iter().zip(b'a'..).flat_map(|(len, byte)| packet(*len, byte)).collect();
        let mut packets = Packets::new(all.as_slice());
        for (len, byte) in lengths.iter().zip(b'a'..) {
            let (whole, mut got, mut buffer) = (packet(*len, byte), Vec::new(), vec![0; CHUNK]);
            while got.len() < whole.len() {
                let count = packets.read(&mut buffer).await.unwrap();
                assert!(count > 0 && (count == whole.len() || whole.len() > CHUNK), "{count}");
                got.extend_from_slice(&buffer[..count]);
            }
            assert_eq!(got, whole);
        }
        assert_eq!(packets.read(&mut [0; 9]).await.unwrap(), 0);
    }
}
