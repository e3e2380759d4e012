//! Framing: headers, packets of several frames, exact multiples of the largest payload.
//!
//! A frame is a header and up to [`MAX_PAYLOAD`] bytes; a packet goes on in the next frame as long as frames are full:
//!
//! ```text
//!  0      3   4
//!  +------+---+--------------------+    len  24 bits, little-endian
//!  | len  |seq|  payload (len)     |    seq  one more in each frame, wrapping; 0 in the first of a turn
//!  +------+---+--------------------+
//! ```
//!
//! So a packet of exactly N x (2^24 - 1) bytes ends with an empty frame. See
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_packets.html>.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

/// Bytes of a frame's header.
pub const HEADER: usize = 4;

/// The longest payload of one frame; a frame of this length is followed by another of the same packet.
pub const MAX_PAYLOAD: usize = 0xFF_FFFF;

/// What went wrong in framing: the peer's fault, and the connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The packet is larger than the receiver allows.
    #[error("a packet of at least {len} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// What its frames add up to, as far as they are known.
        len: usize,
        /// The limit given.
        limit: usize,
    },
    /// A packet's next frame does not have the next sequence number.
    #[error("a frame of a packet has sequence number {got}, not {expected}")]
    Sequence {
        /// One more than the frame before.
        expected: u8,
        /// What it has.
        got: u8,
    },
}

/// The four bytes in front of a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the payload in this frame, in bytes: 0 to [`MAX_PAYLOAD`].
    pub len: usize,
    /// Sequence number.
    pub seq: u8,
}

impl Header {
    /// Reads a header; `None` if there are fewer than four bytes.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let &[a, b, c, seq] = bytes.first_chunk::<HEADER>()?;
        Some(Header { len: u32::from_le_bytes([a, b, c, 0]) as usize, seq })
    }

    /// The header's bytes.
    pub fn encode(self) -> [u8; HEADER] {
        debug_assert!(self.len <= MAX_PAYLOAD, "a frame holds at most {MAX_PAYLOAD} bytes");
        let [a, b, c, _] = (self.len as u32).to_le_bytes();
        [a, b, c, self.seq]
    }

    /// Does the packet go on in another frame?
    pub fn is_full(self) -> bool {
        self.len == MAX_PAYLOAD
    }
}

/// Appends one packet, in as many frames as it takes; returns the next sequence number.
pub fn write_packet(out: &mut BytesMut, seq: u8, payload: &[u8]) -> u8 {
    write_split(out, seq, payload, MAX_PAYLOAD)
}

/// [`write_packet`] with frames of at most `full` bytes (tests use small ones).
fn write_split(out: &mut BytesMut, seq: u8, payload: &[u8], full: usize) -> u8 {
    let mut seq = seq;
    let mut rest = payload;
    loop {
        let (now, later) = rest.split_at(rest.len().min(full));
        out.reserve(HEADER + now.len());
        out.put_slice(&Header { len: now.len(), seq }.encode());
        out.put_slice(now);
        seq = seq.wrapping_add(1);
        rest = later;
        if now.len() < full {
            return seq;
        }
    }
}

/// Appends one packet whose payload `write` appends in place; returns the next sequence number.
///
/// `write` must only append. A payload of 16 MiB or more is copied once more to make room for the further headers.
pub fn packet_with(out: &mut BytesMut, seq: u8, write: impl FnOnce(&mut BytesMut)) -> u8 {
    let start = out.len();
    out.put_slice(&[0; HEADER]);
    write(out);
    let len = out.len().saturating_sub(start + HEADER);
    if len >= MAX_PAYLOAD {
        let payload = out.split_off(start + HEADER);
        out.truncate(start);
        return write_packet(out, seq, &payload);
    }
    if let Some(header) = out.get_mut(start..start + HEADER) {
        header.copy_from_slice(&Header { len, seq }.encode());
    }
    seq.wrapping_add(1)
}

/// A whole packet, its frames joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Sequence number of its last frame.
    pub seq: u8,
    /// The payload, without headers.
    pub payload: Bytes,
}

impl Packet {
    /// Sequence number of its first frame.
    pub fn first_seq(&self) -> u8 {
        self.seq.wrapping_sub((self.payload.len() / MAX_PAYLOAD) as u8)
    }
}

/// Takes the next whole packet from the front of `input`; `None` (and nothing taken) if it is not all there yet.
///
/// # Errors
/// [`FrameError::TooLarge`] as soon as the headers seen add up to more than `limit` bytes of payload;
/// [`FrameError::Sequence`] if the sequence numbers jump inside the packet.
pub fn take_packet(input: &mut BytesMut, limit: usize) -> Result<Option<Packet>, FrameError> {
    take_joined(input, limit, MAX_PAYLOAD)
}

/// [`take_packet`] with frames of at most `full` bytes (tests use small ones).
fn take_joined(input: &mut BytesMut, limit: usize, full: usize) -> Result<Option<Packet>, FrameError> {
    let Some(first) = Header::parse(input) else { return Ok(None) };
    let (mut last, mut len, mut end) = (first, first.len, HEADER + first.len);
    check_limit(len, limit)?;
    while last.len == full {
        let Some(next) = input.get(end..).and_then(Header::parse) else { return Ok(None) };
        let expected = last.seq.wrapping_add(1);
        if next.seq != expected {
            return Err(FrameError::Sequence { expected, got: next.seq });
        }
        len += next.len;
        check_limit(len, limit)?;
        end += HEADER + next.len;
        last = next;
    }
    if input.len() < end {
        return Ok(None);
    }
    let mut frames = input.split_to(end);
    if first.len < full {
        return Ok(Some(Packet { seq: last.seq, payload: frames.split_off(HEADER).freeze() }));
    }
    let mut payload = BytesMut::with_capacity(len);
    while let Some(header) = Header::parse(&frames) {
        let mut frame = frames.split_to(HEADER + header.len);
        payload.put_slice(&frame.split_off(HEADER));
    }
    Ok(Some(Packet { seq: last.seq, payload: payload.freeze() }))
}

fn check_limit(len: usize, limit: usize) -> Result<(), FrameError> {
    if len > limit { Err(FrameError::TooLarge { len, limit }) } else { Ok(()) }
}

/// Any bytes as frames: taken whole or in pieces, the packets are the same; written again, they are what was read.
#[doc(hidden)]
pub fn fuzz_frame(data: &[u8]) {
    let Some((&[full, limit, piece], stream)) = data.split_first_chunk::<3>() else { return };
    let (full, limit, piece) = (usize::from(full), usize::from(limit), usize::from(piece) + 1);
    // Headers in `data` rarely match `full`, so the payloads are framed here and `data` taken as it is, too.
    let mut framed = BytesMut::new();
    let mut seq = 0;
    for payload in stream.chunks(piece) {
        seq = write_split(&mut framed, seq, payload, full.max(1));
    }
    for stream in [stream, &framed] {
        let whole = drain(&mut BytesMut::from(stream), limit, full.max(1));
        let (mut input, mut pieces) = (BytesMut::new(), Vec::new());
        let mut outcome = Ok(());
        for bytes in stream.chunks(piece) {
            input.extend_from_slice(bytes);
            let (packets, result) = drain(&mut input, limit, full.max(1));
            pieces.extend(packets);
            outcome = result;
            if outcome.is_err() {
                break;
            }
        }
        assert_eq!(whole, (pieces, outcome));
    }
    let (packets, outcome) = drain(&mut framed.clone(), usize::MAX, full.max(1));
    assert_eq!(outcome, Ok(()));
    assert!(packets.iter().map(|packet| packet.payload.as_ref()).eq(stream.chunks(piece)));
}

fn drain(input: &mut BytesMut, limit: usize, full: usize) -> (Vec<Packet>, Result<(), FrameError>) {
    let mut packets = Vec::new();
    loop {
        match take_joined(input, limit, full) {
            Ok(Some(packet)) => packets.push(packet),
            Ok(None) => return (packets, Ok(())),
            Err(error) => return (packets, Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(seq: u8, payload: &[u8], full: usize) -> BytesMut {
        let mut out = BytesMut::new();
        write_split(&mut out, seq, payload, full);
        out
    }

    #[test]
    fn headers() {
        for (bytes, len, seq) in [
            (&[0, 0, 0, 0][..], 0, 0),
            (&[1, 2, 3, 4, 5], 0x03_02_01, 4),
            (&[0xFF, 0xFF, 0xFF, 0xFF], MAX_PAYLOAD, 255),
        ] {
            let header = Header::parse(bytes).unwrap();
            assert_eq!(header, Header { len, seq });
            assert_eq!(header.encode(), bytes[..4]);
        }
        assert_eq!(Header::parse(&[1, 0, 0]), None);
    }

    #[test]
    fn packets_are_split_and_exact_multiples_end_with_an_empty_frame() {
        let cases: [(&[u8], &[u8], u8); 6] = [
            (b"", b"\0\0\0\x05", 6),
            (b"ab", b"\x02\0\0\x05ab", 6),
            (b"abc", b"\x03\0\0\x05abc\0\0\0\x06", 7),
            (b"abcd", b"\x03\0\0\x05abc\x01\0\0\x06d", 7),
            (b"abcdef", b"\x03\0\0\x05abc\x03\0\0\x06def\0\0\0\x07", 8),
            (b"abcdefg", b"\x03\0\0\x05abc\x03\0\0\x06def\x01\0\0\x07g", 8),
        ];
        for (payload, bytes, next) in cases {
            let mut out = BytesMut::new();
            assert_eq!(write_split(&mut out, 5, payload, 3), next);
            assert_eq!(out, bytes);
            let packet = take_joined(&mut out, 7, 3).unwrap().unwrap();
            assert_eq!((packet.seq, packet.payload.as_ref()), (next - 1, payload));
            assert!(out.is_empty());
        }
    }

    #[test]
    fn the_largest_frames_are_what_the_protocol_says() {
        for len in [MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2 * MAX_PAYLOAD] {
            let mut payload = vec![7; len];
            payload.iter_mut().step_by(1 << 20).zip(0..).for_each(|(byte, mark)| *byte = mark);
            let frames = len / MAX_PAYLOAD + 1;
            let (mut out, mut same) = (BytesMut::new(), BytesMut::from(&b"before"[..]));
            assert_eq!(usize::from(write_packet(&mut out, 0, &payload)), frames);
            assert_eq!(packet_with(&mut same, 0, |out| out.put_slice(&payload)), frames as u8);
            assert!(same.split_off(6) == out);
            assert_eq!(out.len(), len + frames * HEADER);
            let packet = take_packet(&mut out, len).unwrap().unwrap();
            assert!(packet.payload == payload);
            assert_eq!((usize::from(packet.seq), packet.first_seq()), (frames - 1, 0));
        }
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut bytes = framed(254, b"abcdefg", 3);
        let packet = take_joined(&mut bytes, 10, 3).unwrap().unwrap();
        assert_eq!(packet.seq, 0);
        assert_eq!(Packet { seq: 0, payload: vec![0; 2 * MAX_PAYLOAD].into() }.first_seq(), 254);
    }

    #[test]
    fn an_incomplete_packet_is_left_alone() {
        let whole = framed(0, b"abcdef", 3);
        for len in 0..whole.len() {
            let mut part = BytesMut::from(&whole[..len]);
            assert_eq!(take_joined(&mut part, 6, 3), Ok(None));
            assert_eq!(part, whole[..len]);
        }
    }

    #[test]
    fn limits_and_sequence_are_checked_before_the_payload_is_there() {
        let mut bytes = BytesMut::from(&b"\x09\0\0\0"[..]);
        assert_eq!(take_packet(&mut bytes, 8), Err(FrameError::TooLarge { len: 9, limit: 8 }));
        assert_eq!(take_packet(&mut bytes, 9), Ok(None));
        let mut bytes = BytesMut::from(&b"\x03\0\0\0abc\x02\0\0\x01"[..]);
        assert_eq!(take_joined(&mut bytes, 4, 3), Err(FrameError::TooLarge { len: 5, limit: 4 }));
        let mut bytes = BytesMut::from(&b"\x03\0\0\0abc\x02\0\0\x02"[..]);
        assert_eq!(take_joined(&mut bytes, 9, 3), Err(FrameError::Sequence { expected: 1, got: 2 }));
    }

    proptest! {
        #[test]
        fn smoke(data in proptest::collection::vec(any::<u8>(), 0..200), full in 1..9_u8) {
            fuzz_frame(&data);
            let small: Vec<u8> = [full, 40, 5].into_iter().chain(data.iter().map(|byte| byte & 7)).collect();
            fuzz_frame(&small);
        }
    }
}
