//! A packet whose front is replaced on its way: its length changes, and with it perhaps the number of its frames.
//!
//! ```text
//!   read     |hdr|..skipped..|======================|hdr|=====|
//!   written  |hdr|..replacement..|==================|hdr|=========|
//! ```
//!
//! Streamed: nothing is kept but the position, and as many bytes as the front grows by where it is not known yet whether
//! the frame that they begin is the last.

use bytes::BytesMut;

use super::frames::{Frames, Part};
use crate::protocol::frame::{HEADER, Header, MAX_PAYLOAD};

/// What a packet's front becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// How many bytes of payload are left out; they are all in the first frame.
    pub skip: usize,
    /// What stands in their place: at least as many.
    pub bytes: Vec<u8>,
}

/// Rewrites one packet.
#[derive(Debug)]
pub(super) struct Reframe {
    front: Front,
    /// The largest payload of a frame (tests use small ones).
    full: usize,
    frames: Frames,
    /// Bytes of the front still to be skipped.
    skip: usize,
    /// Bytes of a frame whose length is not known yet: fewer than the front grows by.
    held: Vec<u8>,
    /// Payload bytes that will be written as far as the headers read tell, and that were written.
    known: usize,
    written: usize,
    /// Bytes still to be written to the frame at hand.
    left: usize,
    /// The frame at hand is full: another one follows.
    full_frame: bool,
    started: bool,
    /// No further frame will be read.
    last: bool,
    /// The sequence number of the next frame.
    seq: u8,
}

impl Reframe {
    pub(super) fn new(front: Front) -> Self {
        Self::with(front, MAX_PAYLOAD, Frames::default())
    }

    fn with(front: Front, full: usize, frames: Frames) -> Self {
        debug_assert!(front.bytes.len() >= front.skip && front.bytes.len() - front.skip < full, "a front may grow");
        let skip = front.skip;
        Self {
            front,
            full,
            frames,
            skip,
            held: Vec::new(),
            known: 0,
            written: 0,
            left: 0,
            full_frame: false,
            started: false,
            last: false,
            seq: 0,
        }
    }

    /// Takes what belongs to the packet off the front of `data`, and appends what goes out; how many bytes were taken.
    pub(super) fn take(&mut self, data: &[u8], out: &mut BytesMut) -> usize {
        let mut at = 0;
        loop {
            let rest = data.get(at..).unwrap_or_default();
            let before = self.frames.total;
            match self.frames.next(rest) {
                Part::Header => {
                    at += HEADER;
                    let len = self.frames.total - before;
                    (self.known, self.last) = (self.known + len, len < self.full);
                    let held = std::mem::take(&mut self.held);
                    if !self.started {
                        self.started = true;
                        self.known = (self.known + self.front.bytes.len()).saturating_sub(self.front.skip);
                        let bytes = std::mem::take(&mut self.front.bytes);
                        self.write(&bytes, out);
                    }
                    self.write(&held, out);
                }
                Part::Payload(n) => {
                    let payload = rest.get(..n).unwrap_or_default();
                    at += n;
                    let skipped = self.skip.min(n);
                    self.skip -= skipped;
                    self.write(payload.get(skipped..).unwrap_or_default(), out);
                }
                Part::End => return at,
                Part::Short => break,
            }
            if self.frames.is_done() {
                break;
            }
        }
        if self.frames.is_done() && self.left == 0 && (self.full_frame || self.written == 0) {
            // A packet that ends with a full frame has an empty one behind it.
            self.begin_frame(out);
        }
        at
    }

    fn write(&mut self, mut payload: &[u8], out: &mut BytesMut) {
        while !payload.is_empty() {
            if self.left == 0 {
                if !self.last && self.known - self.written < self.full {
                    self.held.extend_from_slice(payload);
                    return;
                }
                self.begin_frame(out);
            }
            let (now, later) = payload.split_at(payload.len().min(self.left));
            out.extend_from_slice(now);
            self.left -= now.len();
            self.written += now.len();
            payload = later;
        }
    }

    fn begin_frame(&mut self, out: &mut BytesMut) {
        let len = (self.known - self.written).min(self.full);
        out.extend_from_slice(&Header { len, seq: self.seq }.encode());
        self.seq = self.seq.wrapping_add(1);
        self.left = len;
        self.full_frame = len == self.full;
    }

    /// Has the whole packet passed?
    pub(super) fn is_done(&self) -> bool {
        self.frames.is_done()
    }

    /// Payload bytes read so far.
    pub(super) fn total(&self) -> usize {
        self.frames.total
    }

    /// The sequence number of the last frame read, and of the last one written.
    pub(super) fn seqs(&self) -> (u8, u8) {
        (self.frames.seq, self.seq.wrapping_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: usize = 8;

    /// A payload in frames of at most [`FULL`] bytes.
    fn framed(payload: &[u8]) -> BytesMut {
        let (mut out, mut rest, mut seq) = (BytesMut::new(), payload, 0);
        loop {
            let (now, later) = rest.split_at(rest.len().min(FULL));
            out.extend_from_slice(&Header { len: now.len(), seq }.encode());
            out.extend_from_slice(now);
            (rest, seq) = (later, seq + 1);
            if now.len() < FULL {
                return out;
            }
        }
    }

    #[test]
    fn a_longer_front_moves_every_boundary_however_it_is_cut() {
        let letters: Vec<u8> = (b'a'..=b'z').collect();
        for len in 3..letters.len() {
            let payload = &letters[..len];
            for (skip, new) in [(3, &b"123"[..]), (3, b"1234"), (2, b"12345"), (0, b"1"), (3, b"123456789")] {
                let (input, wanted) = (framed(payload), framed(&[new, &payload[skip..]].concat()));
                for cut in 0..=input.len() {
                    let front = Front { skip, bytes: new.to_vec() };
                    let mut reframe = Reframe::with(front, FULL, Frames::of(FULL));
                    let mut out = BytesMut::new();
                    let taken = reframe.take(&input[..cut], &mut out);
                    let rest = [&input[taken..], b"\x01\0\0\0next"].concat();
                    let more = if reframe.is_done() { 0 } else { reframe.take(&rest, &mut out) };
                    assert!(reframe.is_done());
                    assert_eq!((taken + more, &out), (input.len(), &wanted), "{len} {skip} {new:?} cut at {cut}");
                    let frames = |bytes: usize| (bytes / FULL) as u8;
                    assert_eq!(reframe.seqs(), (frames(len), frames(len - skip + new.len())));
                    assert_eq!(reframe.total(), len);
                }
            }
        }
    }
}
