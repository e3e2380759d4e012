//! A stream whose bytes travel in compressed frames: see [`protocol::compression`](crate::protocol::compression).
//!
//! ```text
//!  read:   socket ──▶ [input, lent] ──unpack──▶ the caller's buffer
//!  write:  the caller's bytes ──pack──▶ [output, lent] ──▶ socket
//! ```
//!
//! An idle connection holds neither of the two. A frame that has come in part is unpacked as far as it has come: nobody
//! can make us hold 16 MiB by announcing them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::codec::{self, Frame};
use super::{Buffer, Stream};
use crate::protocol::compression::{Algorithm, HEADER, Header, Numbers, Renumber};

/// The most that one frame of ours becomes: as much as servers put into one, of rows.
const MOST: usize = 16 << 10;

/// See the module.
#[derive(Debug)]
pub struct Compressed {
    stream: Stream,
    algorithm: Algorithm,
    numbers: Numbers,
    renumber: Renumber,
    /// What was read and not yet unpacked.
    input: Buffer,
    /// Frames that are not written yet.
    output: Buffer,
    /// The frame that `input` begins in the middle of.
    frame: Option<Frame>,
}

impl Compressed {
    /// Compresses what goes over `stream` from here on. `buffer` bytes are borrowed at a time in either direction.
    pub(super) fn new(stream: Stream, algorithm: Algorithm, buffer: usize) -> Self {
        let (numbers, input, output) = (Numbers::default(), Buffer::new(buffer), Buffer::new(buffer));
        Self { stream, algorithm, numbers, renumber: Renumber::default(), input, output, frame: None }
    }

    /// What is under the frames.
    pub(super) fn inner(&self) -> &Stream {
        &self.stream
    }

    /// What is written from now on answers the next command, or nothing that was asked.
    pub(super) fn begin(&mut self) {
        self.numbers.begin();
    }

    /// [`Stream::poll_readable`]
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.input.is_empty() && self.frame.is_none() { self.stream.poll_readable(cx) } else { Poll::Ready(()) }
    }

    /// Unpacks what there is, as far as `out` has room.
    fn unpack(&mut self, out: &mut ReadBuf<'_>) -> io::Result<()> {
        loop {
            let data = self.input.data();
            let Some(frame) = &mut self.frame else {
                let Some(header) = Header::parse(data) else { return Ok(()) };
                if !self.numbers.receive(header.seq) {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a compressed frame is out of order"));
                }
                self.frame = Some(Frame::new(self.algorithm, header.len, header.plain)?);
                self.input.consume(HEADER);
                continue;
            };
            let room = out.initialize_unfilled();
            let step = frame.step(data, room)?;
            self.renumber.pass(room.get_mut(..step.written).unwrap_or_default());
            self.input.consume(step.read);
            out.advance(step.written);
            if step.done {
                self.frame = None;
            }
            if out.remaining() == 0 || (step.read == 0 && step.written == 0 && !step.done) {
                return Ok(());
            }
        }
    }

    /// Appends one frame; returns how many of the bytes it holds.
    fn pack(&mut self, plain: &[u8]) -> usize {
        let most = MOST.min(self.output.capacity().saturating_sub(HEADER)).max(1);
        let plain = plain.get(..most).unwrap_or(plain);
        let (seq, output) = (self.numbers.send(), &mut self.output);
        codec::pack(self.algorithm, plain, |packed| {
            let header = match packed {
                Some(packed) => Header { len: packed.len(), seq, plain: plain.len() },
                None => Header { len: plain.len(), seq, plain: 0 },
            };
            output.extend(&header.encode());
            output.extend(packed.unwrap_or(plain));
        });
        plain.len()
    }

    /// Writes the frames that are not written yet.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.output.is_empty() {
            let n = ready!(Pin::new(&mut self.stream).poll_write(cx, self.output.data()))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.output.consume(n);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Compressed {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = out.filled().len();
        loop {
            if let Err(error) = this.unpack(out) {
                // Whoever fails has read nothing.
                out.set_filled(before);
                return Poll::Ready(Err(error));
            }
            if out.filled().len() > before || out.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if ready!(this.input.poll_fill(cx, &mut this.stream))? == 0 {
                let whole = this.frame.is_none() && this.input.is_empty();
                return Poll::Ready(if whole { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) });
            }
        }
    }
}

impl AsyncWrite for Compressed {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let n = this.pack(buf);
        // What does not go at once goes with the next write, or when it is flushed.
        match this.poll_drain(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(n)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::*;
    use crate::protocol::compression::MIN_LENGTH;

    const ALGORITHMS: [Algorithm; 3] = [Algorithm::Zlib, Algorithm::Zstd { level: 3 }, Algorithm::Zstd { level: 22 }];

    /// Our end, and the client's.
    fn pair(algorithm: Algorithm) -> (Compressed, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Compressed::new(Stream::Unix(ours), algorithm, 4096), theirs)
    }

    /// A frame as a client writes it.
    fn frame(algorithm: Algorithm, seq: u8, plain: &[u8]) -> Vec<u8> {
        codec::pack(algorithm, plain, |packed| {
            let header = match packed {
                Some(packed) => Header { len: packed.len(), seq, plain: plain.len() },
                None => Header { len: plain.len(), seq, plain: 0 },
            };
            [&header.encode(), packed.unwrap_or(plain)].concat()
        })
    }

    /// What the frames hold, and their numbers.
    fn unpacked(algorithm: Algorithm, mut bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut plain, mut seqs) = (Vec::new(), Vec::new());
        while let Some(header) = Header::parse(bytes) {
            seqs.push(header.seq);
            let content = &bytes[HEADER..HEADER + header.len];
            let mut out = vec![0; header.len.max(header.plain)];
            let step = Frame::new(algorithm, header.len, header.plain).unwrap().step(content, &mut out).unwrap();
            assert!(step.done && step.read == header.len);
            plain.extend_from_slice(&out[..step.written]);
            bytes = &bytes[HEADER + header.len..];
        }
        (plain, seqs)
    }

    /// Some bytes that can be packed, and some that cannot.
    fn bytes(len: usize) -> Vec<u8> {
        let half = (0..len / 2).map(|n| b"packets of rows "[n % 16]);
        half.chain((len / 2..len).map(|_| rand::random())).collect()
    }

    #[tokio::test]
    async fn frames_are_read_however_they_are_cut() {
        for algorithm in ALGORITHMS {
            let (small, large) = (b"short", bytes(700));
            let sent = [frame(algorithm, 0, small), frame(algorithm, 1, &[]), frame(algorithm, 2, &large)].concat();
            let wanted = [small, &large[..]].concat();
            for cut in 1..sent.len() {
                let (mut ours, mut theirs) = pair(algorithm);
                theirs.write_all(&sent[..cut]).await.unwrap();
                let mut got = vec![0; wanted.len()];
                let mut seen = 0;
                while let Poll::Ready(n) = std::future::poll_fn(|cx| {
                    let mut room = ReadBuf::new(&mut got[seen..]);
                    let read =
                        Pin::new(&mut ours).poll_read(cx, &mut room).map(|read| read.map(|()| room.filled().len()));
                    Poll::Ready(read)
                })
                .await
                {
                    seen += n.unwrap();
                    if seen == wanted.len() {
                        break;
                    }
                }
                theirs.write_all(&sent[cut..]).await.unwrap();
                ours.read_exact(&mut got[seen..]).await.unwrap();
                assert_eq!(got, wanted, "{algorithm:?} cut at {cut}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_written_in_any_portions_arrives() {
        for algorithm in ALGORITHMS {
            let (mut ours, mut theirs) = pair(algorithm);
            let reader = tokio::spawn(async move {
                let mut all = Vec::new();
                theirs.read_to_end(&mut all).await.unwrap();
                all
            });
            let mut wanted = Vec::new();
            for _ in 0..200 {
                let portion = bytes(rand::random_range(0..10_000));
                ours.write_all(&portion).await.unwrap();
                if rand::random() {
                    ours.flush().await.unwrap();
                    assert!(ours.output.is_empty());
                }
                wanted.extend(portion);
            }
            ours.shutdown().await.unwrap();
            drop(ours);
            let (got, seqs) = unpacked(algorithm, &reader.await.unwrap());
            assert_eq!(got, wanted);
            assert!(seqs.iter().enumerate().all(|(n, seq)| *seq == n as u8), "they count on");
        }
    }

    #[tokio::test]
    async fn an_idle_connection_holds_nothing() {
        for algorithm in ALGORITHMS {
            let (mut ours, mut theirs) = pair(algorithm);
            let command = bytes(5000);
            theirs.write_all(&frame(algorithm, 0, &command)).await.unwrap();
            let mut got = vec![0; command.len()];
            ours.read_exact(&mut got).await.unwrap();
            // Its end may be noticed with the next look only.
            let nothing = std::future::poll_fn(|cx| {
                let mut room = [0; 8];
                Poll::Ready(Pin::new(&mut ours).poll_read(cx, &mut ReadBuf::new(&mut room)).is_pending())
            });
            assert!(nothing.await);
            assert!(ours.input.is_empty() && ours.frame.is_none());
            ours.begin();
            ours.write_all(&bytes(100)).await.unwrap();
            ours.flush().await.unwrap();
            assert!(ours.output.is_empty());
        }
    }

    #[tokio::test]
    async fn small_replies_and_what_does_not_shrink_go_as_they_are() {
        let (mut ours, mut theirs) = pair(Algorithm::Zlib);
        let noise: Vec<u8> = (0..1000).map(|_| rand::random()).collect();
        let (short, long) = ([b'x'; MIN_LENGTH - 1], [b'x'; MIN_LENGTH]);
        for portion in [&short[..], &long, &noise] {
            ours.write_all(portion).await.unwrap();
            ours.flush().await.unwrap();
        }
        drop(ours);
        let mut all = Vec::new();
        theirs.read_to_end(&mut all).await.unwrap();
        let mut plains = Vec::new();
        let mut rest = &all[..];
        while let Some(header) = Header::parse(rest) {
            plains.push(header.plain);
            rest = &rest[HEADER + header.len..];
        }
        assert_eq!(plains, [0, MIN_LENGTH, 0]);
    }

    #[tokio::test]
    async fn frames_that_make_no_sense_end_the_connection() {
        for algorithm in ALGORITHMS {
            let good = frame(algorithm, 0, &[b'x'; 1000]);
            let with = |header: Header, content: &[u8]| [&header.encode(), content].concat();
            let content = &good[HEADER..];
            let len = content.len();
            let half = &content[..len / 2];
            for (what, bytes) in [
                ("longer than it says", with(Header { len, seq: 0, plain: 999 }, content)),
                ("a bomb", with(Header { len, seq: 0, plain: 1 }, content)),
                ("cut short", with(Header { len: half.len(), seq: 0, plain: 1000 }, half)),
                ("garbage", with(Header { len: 20, seq: 0, plain: 1000 }, &[0xff; 20])),
                ("nothing", with(Header { len: 0, seq: 0, plain: 1000 }, &[])),
                ("out of order", with(Header { len, seq: 1, plain: 1000 }, content)),
                ("the end of the stream in a frame", good[..len - 1].to_vec()),
                ("the end of the stream in a header", good[..HEADER - 1].to_vec()),
            ] {
                let (mut ours, mut theirs) = pair(algorithm);
                theirs.write_all(&bytes).await.unwrap();
                drop(theirs);
                let mut all = Vec::new();
                assert!(ours.read_to_end(&mut all).await.is_err(), "{what}, {algorithm:?}");
                assert!(all.len() < 1000, "{what}");
            }
            // Servers take a length that was said to be more.
            let (mut ours, mut theirs) = pair(algorithm);
            theirs.write_all(&with(Header { len, seq: 0, plain: 0xff_ffff }, content)).await.unwrap();
            drop(theirs);
            let mut all = Vec::new();
            ours.read_to_end(&mut all).await.unwrap();
            assert_eq!(all, [b'x'; 1000]);
        }
    }

    #[tokio::test]
    async fn arbitrary_bytes_do_no_harm() {
        for algorithm in ALGORITHMS {
            for _ in 0..300 {
                let (mut ours, mut theirs) = pair(algorithm);
                let mut sent = frame(algorithm, 0, &bytes(rand::random_range(1..3000)));
                for _ in 0..rand::random_range(1..4) {
                    let at = rand::random_range(0..sent.len());
                    sent[at] = rand::random();
                }
                theirs.write_all(&sent).await.unwrap();
                drop(theirs);
                let mut all = Vec::new();
                let _ = ours.read_to_end(&mut all).await;
                assert!(all.len() < 1 << 24);
            }
        }
    }
}
