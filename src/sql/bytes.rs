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

    /// Whether this is how MySQL 9 begins or ends a string: `$$`, `$tag$`.
    pub(super) fn may_quote(&self) -> bool {
        let dollar = |byte: &u8| *byte == b'$';
        self.bytes.first().is_some_and(dollar)
            && self.len > 1
            && self.bytes.get(1..self.len).is_none_or(|rest| rest.iter().any(dollar))
    }

    /// The word; nothing if it was too long.
    pub(super) fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// A hash of a name as spelled (FNV-1a), fed byte by byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hash {
    value: u64,
    /// Every byte means the same in every character set.
    lasting: bool,
}

impl Hash {
    pub(super) const NEW: Self = Self { value: 0xcbf2_9ce4_8422_2325, lasting: true };

    pub(super) const fn note(&mut self, byte: u8) {
        self.value = (self.value ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        self.lasting &= means_the_same(byte);
    }

    /// The hash, where the spelling will mean the same name later: not with a byte that another `character_set_client`
    /// reads otherwise, nor with an escape.
    pub(super) const fn lasting(self) -> Option<u64> {
        if self.lasting { Some(self.value) } else { None }
    }

    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut hash = Self::NEW;
        bytes.iter().for_each(|byte| hash.note(*byte));
        hash
    }
}

/// Whether a byte is one and the same character in every character set: not so the national letters of swe7, nor what
/// sjis has in place of a backslash and a tilde.
pub(super) const fn means_the_same(byte: u8) -> bool {
    byte < 0x80 && !matches!(byte, b'@' | b'[' | b'\\' | b']' | b'^' | b'`' | b'{' | b'|' | b'}' | b'~')
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
