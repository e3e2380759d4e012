//! Bytes to words: classes of bytes, and the buffer that collects a word.

use super::word::LONGEST;

/// A word in upper case, as far as it fits, and a hash of all its bytes as spelled.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: [u8; LONGEST],
    len: usize,
    pub(super) hash: u64,
}

impl Buffer {
    /// FNV-1a
    const SEED: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;

    pub(super) const fn new() -> Self {
        Self { bytes: [0; LONGEST], len: 0, hash: Self::SEED }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.hash = Self::SEED;
    }

    pub(super) fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = byte.to_ascii_uppercase();
        }
        self.len += 1;
        self.note(byte);
    }

    pub(super) fn note(&mut self, byte: u8) {
        self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(Self::PRIME);
    }

    /// The word, or nothing if it is too long to be one that matters.
    pub(super) fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Letters, digits and all bytes from 0x80 on.
pub(super) const fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// Bytes that are white space in some character set of single bytes, and letters in others.
pub(super) const fn may_be_space(byte: u8) -> bool {
    matches!(byte, 0x9a | 0xa0 | 0xca | 0xff)
}
