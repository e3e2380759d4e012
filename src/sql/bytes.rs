//! Bytes to words: classes of bytes, and the buffer that collects a word.

use super::word::LONGEST;

/// A word as spelled, as far as it fits.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Buffer {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; LONGEST], len: 0 }
    }

    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = byte;
        }
        self.len += 1;
    }

    pub(super) fn extend(&mut self, bytes: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
        }
        self.len += bytes.len();
    }

    /// The word; nothing if it was too long.
    pub(super) fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// A hash of a name as spelled (FNV-1a), fed byte by byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hash(pub(super) u64);

impl Hash {
    pub(super) const NEW: Self = Self(0xcbf2_9ce4_8422_2325);

    pub(super) const fn note(&mut self, byte: u8) {
        self.0 = (self.0 ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
    }

    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut hash = Self::NEW;
        bytes.iter().for_each(|byte| hash.note(*byte));
        hash
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
