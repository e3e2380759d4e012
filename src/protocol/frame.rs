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
    let mut seq = seq;
    let mut rest = payload;
    loop {
        let (now, later) = rest.split_at(rest.len().min(MAX_PAYLOAD));
        out.reserve(HEADER + now.len());
        out.put_slice(&Header { len: now.len(), seq }.encode());
        out.put_slice(now);
        seq = seq.wrapping_add(1);
        rest = later;
        if now.len() < MAX_PAYLOAD {
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
    let Some(first) = Header::parse(input) else { return Ok(None) };
    if first.len > limit {
        return Err(FrameError::TooLarge { len: first.len, limit });
    }
    if first.is_full() {
        return take_joined(input, first, limit);
    }
    if input.len() < HEADER + first.len {
        return Ok(None);
    }
    let mut frame = input.split_to(HEADER + first.len);
    let payload = frame.split_off(HEADER).freeze();
    Ok(Some(Packet { seq: first.seq, payload }))
}

/// [`take_packet`] for a packet of several frames.
fn take_joined(input: &mut BytesMut, first: Header, limit: usize) -> Result<Option<Packet>, FrameError> {
    let mut total = first.len;
    let mut last = first;
    let mut end = HEADER + first.len;
    while last.is_full() {
        let Some(next) = input.get(end..).and_then(Header::parse) else { return Ok(None) };
        let expected = last.seq.wrapping_add(1);
        if next.seq != expected {
            return Err(FrameError::Sequence { expected, got: next.seq });
        }
        total += next.len;
        if total > limit {
            return Err(FrameError::TooLarge { len: total, limit });
        }
        end += HEADER + next.len;
        last = next;
    }
    if input.len() < end {
        return Ok(None);
    }
    let mut frames = input.split_to(end);
    let mut payload = BytesMut::with_capacity(total);
    while let Some(header) = Header::parse(&frames) {
        let mut frame = frames.split_to(HEADER + header.len);
        payload.put_slice(&frame.split_off(HEADER));
    }
    Ok(Some(Packet { seq: last.seq, payload: payload.freeze() }))
}
