//! The tokens of a whole text, for those few texts that must be understood more closely than by flags.

use super::bytes::is_ident;
use super::lexer::Lexer;
use super::rules::{Kind, Token};
use super::{Effects, Mode, Word};

/// A token, with its place in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexeme {
    pub kind: Kind,
    pub word: Word,
    pub number: Option<u64>,
    pub start: usize,
    /// One past the last byte; of a user variable, where its name begins.
    pub end: usize,
}

/// Every token in order.
#[derive(Debug, Default)]
pub(super) struct Tape(Vec<Lexeme>);

impl Tape {
    pub(super) fn push(&mut self, token: &Token<'_>) {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let (start, end) = (place(token.start), place(token.end));
        self.0.push(Lexeme { kind: token.kind, word: token.word, number: token.number, start, end });
    }

    /// A text's effects and tokens.
    pub(super) fn of(text: &[u8], mode: Mode) -> (Effects, Vec<Lexeme>) {
        let mut lexer = Lexer::new(mode);
        lexer.rules.tape = Some(Box::default());
        lexer.feed(text);
        lexer.finish_with_tape()
    }

    pub(super) fn lexemes(self) -> Vec<Lexeme> {
        self.0
    }
}

impl Lexeme {
    /// The bytes of the text that this is.
    pub(super) fn of<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether this is an unquoted word of the given spelling, in any case.
    pub(super) fn is(&self, text: &[u8], word: &str) -> bool {
        self.kind == Kind::Word && self.of(text).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Where it ends, of a user variable too.
    pub(super) fn whole_end(&self, text: &[u8]) -> usize {
        if self.kind != Kind::UserVariable {
            return self.end;
        }
        let name = text.get(self.end..).unwrap_or_default();
        let len = match name.first() {
            Some(mark @ (b'\'' | b'"' | b'`')) => {
                name.iter().skip(1).position(|byte| byte == mark).map_or(name.len(), |at| at + 2)
            }
            _ => name.iter().position(|byte| !is_ident(*byte) && *byte != b'.').unwrap_or(name.len()),
        };
        self.end + len
    }

    pub(super) fn is_any(&self, text: &[u8], words: &[&str]) -> bool {
        words.iter().any(|word| self.is(text, word))
    }

    pub(super) fn is_sign(&self, sign: u8) -> bool {
        self.kind == Kind::Punct(sign)
    }
}
