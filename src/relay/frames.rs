//! Where a packet of several frames ends, seen a few bytes at a time.

use crate::protocol::frame::{HEADER, Header, MAX_PAYLOAD};

/// Walks over the frames of one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames {
    /// Payload bytes of the current frame still to come.
    left: usize,
    /// Payload bytes seen so far, of all frames.
    pub(super) total: usize,
    /// The current frame is as large as a frame can be: another one follows.
    more: bool,
    /// The sequence number of the current frame.
    pub(super) seq: u8,
    /// At least one header was seen.
    started: bool,
    /// The largest payload of a frame (tests use small ones).
    full: usize,
}

impl Default for Frames {
    fn default() -> Self {
        Self::of(MAX_PAYLOAD)
    }
}

/// What the front of the data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A frame's header.
    Header,
    /// This many bytes of payload.
    Payload(usize),
    /// The packet is over.
    End,
    /// A header is cut short: more bytes are needed.
    Short,
}

impl Frames {
    /// Before the first frame; none is larger than this.
    pub(super) const fn of(full: usize) -> Self {
        Self { left: 0, total: 0, more: false, seq: 0, started: false, full }
    }

    /// What comes next, given the data from here on. The caller moves on by [`HEADER`] or the payload's length.
    pub(super) fn next(&mut self, data: &[u8]) -> Part {
        if self.left > 0 {
            let n = self.left.min(data.len());
            if n == 0 {
                return Part::Short;
            }
            self.left -= n;
            return Part::Payload(n);
        }
        if self.started && !self.more {
            return Part::End;
        }
        let Some(header) = Header::parse(data) else { return Part::Short };
        self.started = true;
        self.seq = header.seq;
        self.left = header.len;
        self.total += header.len;
        self.more = header.len == self.full;
        Part::Header
    }

    /// Is the whole packet over?
    pub(super) fn is_done(self) -> bool {
        self.started && !self.more && self.left == 0
    }

    /// How many bytes at the front of `data` belong to the packet; whether it ends with them is [`Frames::is_done`].
    /// `payload` sees every piece of payload.
    pub(super) fn take(&mut self, data: &[u8], mut payload: impl FnMut(&[u8])) -> usize {
        let mut at = 0;
        loop {
            match self.next(data.get(at..).unwrap_or_default()) {
                Part::Header => at += HEADER,
                Part::Payload(n) => {
                    payload(data.get(at..at + n).unwrap_or_default());
                    at += n;
                }
                Part::End | Part::Short => return at,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_ends_where_it_ends_however_it_is_cut() {
        let bytes = b"\x03\0\0\0abc\x01\0\0\0z";
        for cut in 0..bytes.len() {
            let (mut frames, mut seen) = (Frames::default(), Vec::new());
            let mut taken = frames.take(&bytes[..cut], |p| seen.extend_from_slice(p));
            taken += frames.take(&bytes[taken..], |p| seen.extend_from_slice(p));
            assert_eq!((taken, &seen[..], frames.is_done(), frames.total), (7, &b"abc"[..], true, 3), "cut at {cut}");
        }
    }

    #[test]
    fn an_exact_multiple_ends_with_an_empty_frame() {
        let mut bytes = vec![0xff, 0xff, 0xff, 0];
        bytes.resize(4 + MAX_PAYLOAD, 7);
        let mut frames = Frames::default();
        assert_eq!(frames.take(&bytes, |_| {}), bytes.len());
        assert!(!frames.is_done());
        assert_eq!(frames.take(&[0, 0, 0, 1, 9], |_| {}), 4);
        assert!(frames.is_done());
        assert_eq!(frames.total, MAX_PAYLOAD);
    }
}
