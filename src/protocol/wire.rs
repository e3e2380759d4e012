//! Integers and strings as the protocol writes them: little-endian numbers, length-encoded integers and strings.
//!
//! See <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_data_types.html>.

use bytes::{BufMut, BytesMut};
use thiserror::Error;

/// Why bytes could not be read. The fault is always the peer's that wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The payload ends in the middle of a field.
    #[error("the payload ends in the middle of a field")]
    Truncated,
    /// A length-encoded integer starts with 0xFB (NULL) or 0xFF where a number must stand.
    #[error("0x{0:02x} cannot start a length-encoded integer")]
    BadLength(u8),
}

/// Reads fields from the front of a payload. Every method consumes what it returns, or nothing at all.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes everything that has not been read yet (a `string<EOF>`).
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Has everything been read?
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes are left.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[b]| b)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Three bytes.
    pub fn u24(&mut self) -> Result<u32, WireError> {
        self.array().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer (1, 3, 4 or 9 bytes).
    pub fn lenenc_int(&mut self) -> Result<u64, WireError> {
        let mut at = *self;
        let value = match at.u8()? {
            small @ 0..=0xFA => u64::from(small),
            0xFC => u64::from(at.u16()?),
            0xFD => u64::from(at.u24()?),
            0xFE => at.u64()?,
            bad @ (0xFB | 0xFF) => return Err(WireError::BadLength(bad)),
        };
        *self = at;
        Ok(value)
    }

    /// A length-encoded string.
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let mut at = *self;
        let len = usize::try_from(at.lenenc_int()?).map_err(|_| WireError::Truncated)?;
        let bytes = at.bytes(len)?;
        *self = at;
        Ok(bytes)
    }

    /// A field of a text row: a length-encoded string, or NULL.
    pub fn lenenc_nullable(&mut self) -> Result<Option<&'a [u8]>, WireError> {
        match self.rest.split_first() {
            Some((0xFB, rest)) => {
                self.rest = rest;
                Ok(None)
            }
            _ => self.lenenc_bytes().map(Some),
        }
    }

    /// A string that ends with a zero byte, which is consumed and not returned.
    pub fn nul_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let end = memchr::memchr(0, self.rest).ok_or(WireError::Truncated)?;
        let bytes = self.bytes(end)?;
        self.u8()?;
        Ok(bytes)
    }
}

/// How many bytes [`put_lenenc_int`] writes for `value`.
pub fn lenenc_len(value: u64) -> usize {
    match value {
        0..=0xFA => 1,
        0xFB..=0xFFFF => 3,
        0x1_0000..=0xFF_FFFF => 4,
        _ => 9,
    }
}

/// Appends a length-encoded integer in its shortest form, as both servers do.
pub fn put_lenenc_int(out: &mut BytesMut, value: u64) {
    match lenenc_len(value) {
        1 => out.put_uint_le(value, 1),
        3 => {
            out.put_u8(0xFC);
            out.put_uint_le(value, 2);
        }
        4 => {
            out.put_u8(0xFD);
            out.put_uint_le(value, 3);
        }
        _ => {
            out.put_u8(0xFE);
            out.put_u64_le(value);
        }
    }
}

/// Appends a length-encoded string.
pub fn put_lenenc_bytes(out: &mut BytesMut, bytes: &[u8]) {
    put_lenenc_int(out, bytes.len() as u64);
    out.put_slice(bytes);
}

/// Appends a string and a zero byte. The string must hold no zero byte of its own.
pub fn put_nul_bytes(out: &mut BytesMut, bytes: &[u8]) {
    debug_assert!(!bytes.contains(&0), "a zero byte would end the string early");
    out.put_slice(bytes);
    out.put_u8(0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn length_encoded_integers() {
        let cases: [(u64, &[u8]); 9] = [
            (0, &[0]),
            (250, &[250]),
            (251, &[0xFC, 251, 0]),
            (0xFFFF, &[0xFC, 0xFF, 0xFF]),
            (0x1_0000, &[0xFD, 0, 0, 1]),
            (0xFF_FFFF, &[0xFD, 0xFF, 0xFF, 0xFF]),
            (0x100_0000, &[0xFE, 0, 0, 0, 1, 0, 0, 0, 0]),
            (0x8000_0000_0000_0000, &[0xFE, 0, 0, 0, 0, 0, 0, 0, 0x80]),
            (u64::MAX, &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
        ];
        for (value, bytes) in cases {
            let mut out = BytesMut::new();
            put_lenenc_int(&mut out, value);
            assert_eq!((out.as_ref(), lenenc_len(value)), (bytes, bytes.len()));
            let mut reader = Reader::new(&out);
            assert_eq!((reader.lenenc_int(), reader.is_empty()), (Ok(value), true));
            for len in 0..bytes.len() {
                let mut short = Reader::new(&bytes[..len]);
                assert_eq!((short.lenenc_int(), short.len()), (Err(WireError::Truncated), len));
            }
        }
    }

    #[test]
    fn what_cannot_be_a_length() {
        for byte in [0xFB, 0xFF] {
            let bytes = [byte, 0, 0];
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.lenenc_int(), Err(WireError::BadLength(byte)));
            assert_eq!(reader.len(), 3, "nothing is consumed");
        }
        assert_eq!(Reader::new(&[0xFB]).lenenc_nullable(), Ok(None));
        let huge = [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
        assert_eq!(Reader::new(&huge).lenenc_bytes(), Err(WireError::Truncated));
    }

    #[test]
    fn fixed_integers_and_strings() {
        let mut reader = Reader::new(b"\x01\x01\x02\x01\x02\x03\x01\x02\x03\x04\x01\0\0\0\0\0\0\x80ab\0cd");
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u16(), Ok(0x0201));
        assert_eq!(reader.u24(), Ok(0x03_0201));
        assert_eq!(reader.u32(), Ok(0x0403_0201));
        assert_eq!(reader.u64(), Ok(0x8000_0000_0000_0001));
        assert_eq!(reader.nul_bytes(), Ok(&b"ab"[..]));
        assert_eq!(reader.nul_bytes(), Err(WireError::Truncated));
        assert_eq!(reader.bytes(3), Err(WireError::Truncated));
        assert_eq!((reader.take_rest(), reader.is_empty()), (&b"cd"[..], true));
    }

    proptest! {
        #[test]
        fn strings_come_back(bytes in proptest::collection::vec(1..=u8::MAX, 0..600)) {
            let mut out = BytesMut::new();
            put_lenenc_bytes(&mut out, &bytes);
            put_nul_bytes(&mut out, &bytes);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.lenenc_bytes(), Ok(&bytes[..]));
            prop_assert_eq!(reader.nul_bytes(), Ok(&bytes[..]));
            prop_assert!(reader.is_empty());
        }
    }
}
