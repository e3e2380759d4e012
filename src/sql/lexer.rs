//! The lexer: bytes in, tokens out, in any pieces.
use super::{Effects, Mode};

/// Lexes a text that arrives in pieces.
#[derive(Debug)]
pub struct Lexer {}

#[allow(unused_variables, reason = "bodies follow")]
impl Lexer {
    /// Before the first byte.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        todo!()
    }

    /// The next piece.
    pub fn feed(&mut self, bytes: &[u8]) {
        todo!()
    }

    /// No more bytes: what the text may do.
    #[must_use]
    pub fn finish(self) -> Effects {
        todo!()
    }
}

/// What a whole text may do.
#[must_use]
pub fn effects(text: &[u8], mode: Mode) -> Effects {
    let mut lexer = Lexer::new(mode);
    lexer.feed(text);
    lexer.finish()
}

/// For the fuzzer.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    todo!()
}
