//! Comments: those that hide text, those that are code to some servers, and hints.
//!
//! `/*!50000 .. */` is code to servers of at least that version and a comment to others. We take it for code; where the two
//! readings would end at different places, the text is flagged as opaque.

use super::Flags;
use super::lexer::{Lexer, State};

impl Lexer {
    pub(super) fn open_line(&mut self) {
        self.tail = 0;
        self.rules.commented = true;
        self.state = State::Line;
    }

    pub(super) fn in_line(&mut self, byte: u8) {
        if self.executable {
            self.watch_tail(byte);
        }
        if matches!(byte, b'\n' | 0) {
            self.state = State::Start;
        }
    }

    pub(super) fn in_comment(&mut self, byte: u8) {
        if self.hint {
            self.odd_quotes ^= match byte {
                b'\'' => 1,
                b'"' => 2,
                b'`' => 4,
                _ => 0,
            };
        }
        match (self.state, byte) {
            (State::CommentStar, b'/') => {
                if self.hint && self.odd_quotes != 0 {
                    self.rules.flag(Flags::OPAQUE);
                }
                self.state = State::Start;
            }
            (_, b'*') => self.state = State::CommentStar,
            _ => self.state = State::Comment,
        }
    }

    /// After `/*`, where it is decided what kind of comment this is.
    pub(super) fn opening_comment(&mut self, byte: u8) {
        self.rules.commented = true;
        match (self.state, byte) {
            (State::CommentOpen, b'!') => self.open_executable(),
            (State::CommentM, b'!') => self.open_executable(),
            (State::CommentOpen, b'M') if self.mode.mariadb => self.state = State::CommentM,
            (State::CommentOpen, b'+') => {
                self.hint = true;
                self.odd_quotes = 0;
                self.state = State::Comment;
            }
            (State::Version, b'0'..=b'9') => {}
            (State::Version, _) => self.restart(byte),
            _ => {
                self.hint = false;
                self.state = State::Comment;
                self.in_comment(byte);
            }
        }
    }

    fn open_executable(&mut self) {
        // One inside another: servers disagree with themselves about where the outer one ends.
        self.rules.flag(if self.executable { Flags::OPAQUE } else { Flags::EXECUTABLE_COMMENT });
        self.executable = true;
        self.state = State::Version;
    }

    /// Inside what hides the end of an executable comment from us, but not from a server that skips it.
    pub(super) fn watch_tail(&mut self, byte: u8) {
        if matches!((self.tail, byte), (b'*', b'/') | (b'/', b'*')) {
            self.rules.flag(Flags::OPAQUE);
        }
        self.tail = byte;
    }
}
