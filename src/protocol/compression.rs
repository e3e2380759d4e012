//! Compressed frames: what carries the packets of a client that asked for compression, after its login.
//!
//! ```text
//!  0      3   4       7
//!  +------+---+-------+------------------+    len    24 bits, of the bytes that follow
//!  | len  |seq| plain |  bytes (len)     |    seq    one more in each frame, wrapping; 0 in the first of a command
//!  +------+---+-------+------------------+    plain  24 bits, their length unpacked; 0: they are not packed
//! ```
//!
//! Packets and frames do not know of each other: a frame holds parts of packets, or several. See
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression.html>.

use super::capability::CapabilityFlags;
use super::frame;

/// Bytes of a compressed frame's header.
pub const HEADER: usize = 7;

/// What is shorter is not worth packing; servers and clients have the same limit.
pub const MIN_LENGTH: usize = 50;

/// How the bytes of a connection's frames are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Each frame is a zlib stream.
    Zlib,
    /// Each frame is a zstd frame.
    Zstd {
        /// What the client asked for, 1 to 22.
        level: u8,
    },
}

/// A client wants zstd of a level that there is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLevel;

impl Algorithm {
    /// What a client gets that agreed to these capabilities and named this level. Of both, MySQL takes zlib.
    ///
    /// # Errors
    /// If it would be zstd of an impossible level.
    pub fn agreed(capabilities: CapabilityFlags, level: u8) -> Result<Option<Self>, BadLevel> {
        if capabilities.contains(CapabilityFlags::CLIENT_COMPRESS) {
            return Ok(Some(Self::Zlib));
        }
        match level {
            _ if !capabilities.contains(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM) => Ok(None),
            1..=22 => Ok(Some(Self::Zstd { level })),
            _ => Err(BadLevel),
        }
    }
}

/// The seven bytes in front of a frame's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How many bytes follow.
    pub len: usize,
    /// Sequence number.
    pub seq: u8,
    /// What they are the packed form of, in bytes; 0: of nothing, they are as they are.
    pub plain: usize,
}

impl Header {
    /// Reads a header; `None` if there are fewer than seven bytes.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, seq, d, e, f] = bytes.first_chunk::<HEADER>()?;
        let number = |a, b, c| u32::from_le_bytes([a, b, c, 0]) as usize;
        Some(Self { len: number(a, b, c), seq, plain: number(d, e, f) })
    }

    /// The header's bytes.
    #[must_use]
    pub fn encode(self) -> [u8; HEADER] {
        debug_assert!(self.len < 1 << 24 && self.plain < 1 << 24, "a length has 24 bits");
        let [a, b, c, _] = (self.len as u32).to_le_bytes();
        let [d, e, f, _] = (self.plain as u32).to_le_bytes();
        [a, b, c, self.seq, d, e, f]
    }
}

/// The sequence numbers of a connection's frames, seen from the server's end.
///
/// A reply counts on from its command's last frame. A client may send its next command, in frames that begin with 0
/// again, before it has read the reply; so that one's numbers are kept apart until it is begun with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Of the next frame in either direction.
    next: u8,
    /// Of the next frame of a command that was not begun with.
    ahead: Option<u8>,
    /// The last frame was sent and not received.
    sent: bool,
}

impl Default for Numbers {
    /// Those of a connection whose next frame begins a command.
    fn default() -> Self {
        Self { next: 0, ahead: None, sent: true }
    }
}

impl Numbers {
    /// A frame with this number has come. False if it cannot be the next one.
    #[must_use]
    pub fn receive(&mut self, seq: u8) -> bool {
        match self.ahead {
            Some(ahead) if ahead == seq => self.ahead = Some(seq.wrapping_add(1)),
            None if self.next == seq && !(seq == 0 && self.sent) => {
                (self.next, self.sent) = (seq.wrapping_add(1), false);
            }
            _ if seq == 0 => self.ahead = Some(1),
            _ => return false,
        }
        true
    }

    /// The number of a frame that is sent now.
    pub fn send(&mut self) -> u8 {
        self.sent = true;
        let seq = self.next;
        self.next = seq.wrapping_add(1);
        seq
    }

    /// What is sent from now on answers the next command, or nothing that was asked.
    pub fn begin(&mut self) {
        match self.ahead.take() {
            Some(ahead) => (self.next, self.sent) = (ahead, false),
            None if self.sent => self.next = 1,
            None => {}
        }
    }
}

/// Numbers the further frames of a packet. Servers look at the numbers of compressed frames only, and MariaDB's client
/// library does not count on inside them; a server at the end of a plain connection would refuse that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renumber {
    /// The length in a header that has come in part, and how many of its bytes have.
    len: [u8; 3],
    seen: u8,
    /// Payload bytes of the current frame still to come.
    left: usize,
    /// The next header is of the same packet.
    more: bool,
    seq: u8,
}

impl Renumber {
    /// The next bytes that were unpacked.
    pub fn pass(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let mut n = 1;
            if self.left > 0 {
                n = self.left.min(bytes.len());
                self.left -= n;
            } else if let (Some(byte), Some(first)) = (self.len.get_mut(usize::from(self.seen)), bytes.first()) {
                *byte = *first;
                self.seen += 1;
            } else if let Some(number) = bytes.first_mut() {
                if self.more {
                    *number = self.seq.wrapping_add(1);
                }
                let [a, b, c] = self.len;
                self.left = u32::from_le_bytes([a, b, c, 0]) as usize;
                (self.seq, self.seen, self.more) = (*number, 0, self.left == frame::MAX_PAYLOAD);
            }
            bytes = bytes.get_mut(n..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_frames_of_a_packet_count_on() {
        let packet = |seqs: &[u8]| {
            let mut bytes = vec![3, 0, 0, 0, b'a', b'b', b'c'];
            for (at, seq) in seqs.iter().enumerate() {
                let len = if at + 1 < seqs.len() { frame::MAX_PAYLOAD } else { 5 };
                bytes.extend(frame::Header { len, seq: *seq }.encode());
                bytes.extend(std::iter::repeat_n(b'x', len));
            }
            bytes.extend([0, 0, 0, 9, 1, 0, 0, 0, b'y']);
            bytes
        };
        let wanted = packet(&[7, 8, 9]);
        for portion in [1, 3, 4, 1000, usize::MAX] {
            let (mut bytes, mut renumber) = (packet(&[7, 7, 0]), Renumber::default());
            bytes.chunks_mut(portion).for_each(|bytes| renumber.pass(bytes));
            assert!(bytes == wanted, "in portions of {portion}");
        }
    }

    #[test]
    fn what_is_agreed() {
        let (zlib, zstd) = (CapabilityFlags::CLIENT_COMPRESS, CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM);
        for (capabilities, level, agreed) in [
            (CapabilityFlags::empty(), 0, Ok(None)),
            (CapabilityFlags::empty(), 3, Ok(None)),
            (zlib, 0, Ok(Some(Algorithm::Zlib))),
            (zlib | zstd, 23, Ok(Some(Algorithm::Zlib))),
            (zstd, 1, Ok(Some(Algorithm::Zstd { level: 1 }))),
            (zstd, 22, Ok(Some(Algorithm::Zstd { level: 22 }))),
            (zstd, 0, Err(BadLevel)),
            (zstd, 23, Err(BadLevel)),
        ] {
            assert_eq!(Algorithm::agreed(capabilities, level), agreed, "{capabilities:?} {level}");
        }
    }

    #[test]
    fn headers_read_back() {
        let header = Header { len: 0x01_02_03, seq: 9, plain: 0xff_ff_fe };
        assert_eq!(header.encode(), [3, 2, 1, 9, 0xfe, 0xff, 0xff]);
        assert_eq!(Header::parse(&header.encode()), Some(header));
        assert_eq!(Header::parse(&header.encode()[..6]), None);
    }

    /// What happens to the numbers.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        /// A frame comes, and is in order.
        Comes(u8),
        /// A frame comes that is not in order.
        Strays(u8),
        /// A frame goes, with this number.
        Goes(u8),
        Begin,
    }

    #[test]
    fn numbers_of_conversations() {
        use Event::{Begin, Comes, Goes, Strays};
        let tables: [&[Event]; 9] = [
            &[Comes(0), Begin, Goes(1), Goes(2), Comes(0), Begin, Goes(1)],
            // A command of three frames, of which two are there when it is begun with.
            &[Comes(0), Comes(1), Begin, Comes(2), Goes(3), Goes(4), Comes(0), Begin, Goes(1)],
            // A conversation: the file of LOAD DATA LOCAL, a change of users.
            &[Comes(0), Begin, Goes(1), Comes(2), Comes(3), Goes(4), Comes(0), Begin, Goes(1)],
            // Commands sent ahead, in frames of their own, in the middle of a reply.
            &[Comes(0), Comes(0), Begin, Goes(1), Goes(2), Begin, Goes(1)],
            &[Comes(0), Begin, Goes(1), Comes(0), Comes(1), Goes(2), Begin, Goes(2), Goes(3)],
            // Two commands in one frame.
            &[Comes(0), Begin, Goes(1), Goes(2), Begin, Goes(1)],
            // Something unasked, such as an idle client's last words.
            &[Comes(0), Begin, Goes(1), Goes(2), Goes(3), Begin, Goes(1)],
            &[Begin, Goes(1)],
            &[Strays(1), Comes(0), Strays(2), Begin, Goes(1), Strays(1), Comes(2), Strays(1)],
        ];
        for table in tables {
            let mut numbers = Numbers::default();
            for (at, event) in table.iter().enumerate() {
                match event {
                    Comes(seq) => assert!(numbers.receive(*seq), "{table:?} at {at}"),
                    Strays(seq) => assert!(!numbers.receive(*seq), "{table:?} at {at}"),
                    Goes(seq) => assert_eq!(numbers.send(), *seq, "{table:?} at {at}"),
                    Begin => numbers.begin(),
                }
            }
        }
    }

    #[test]
    fn numbers_wrap() {
        let mut numbers = Numbers::default();
        for n in 0..600_u16 {
            assert!(numbers.receive(n as u8));
        }
        numbers.begin();
        for n in 600..1200_u16 {
            assert_eq!(numbers.send(), n as u8);
        }
        // The answer to what was just asked, and not a command.
        assert!(numbers.receive(1200_u16 as u8));
        assert!(numbers.receive(0));
        numbers.begin();
        assert_eq!(numbers.send(), 1);
    }
}
