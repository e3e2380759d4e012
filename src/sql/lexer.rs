//! The lexer: bytes in, tokens out, in any pieces.
use super::{Effects, Mode};

/// Lexes a text that arrives in pieces.
#[derive(Debug)]
pub struct Lexer {}

impl Lexer {
    /// .
    #[must_use]
    pub fn new(_mode: Mode) -> Self { Self {} }
    /// .
    pub fn feed(&mut self, _bytes: &[u8]) {}
    /// .
    #[must_use]
    pub fn finish(self) -> Effects { Effects { statements: 1, ..Effects::default() } }
}
/// .
#[must_use]
pub fn effects(text: &[u8], mode: Mode) -> Effects {
    let mut lexer = Lexer::new(mode);
    lexer.feed(text);
    lexer.finish()
}
/// .
#[doc(hidden)]
pub fn fuzz(_data: &[u8]) {}
