//! The lexer: bytes in, tokens out, in any pieces.
//!
//! ```text
//!            letter            `'"                --  #              /*
//!   Start --------> Word --> Quoted <-> Escape    Line             CommentOpen --> Comment <-> CommentStar
//!     ^                |        |                  |                  |  ! or M!       |
//!     +----------------+--------+------------------+     Version <----+                |
//!     +----- digits of the version, then code until a closing star-slash ----- ... ----+
//! ```
//! All state is in the struct, so a text may be cut anywhere. Where the server could read the same bytes in two ways
//! (it skips a `/*!99999 .. */` that we take for code, and a quote inside hides its end) the text is flagged as opaque.

use memchr::{memchr, memchr2};

use super::bytes::{Buffer, Hash, is_ident, is_space, may_be_space};
use super::rules::{Kind, Rules, Token};
use super::tape::Lexeme;
use super::word::Word;
use super::{Effects, Flags, Mode, Multibyte};

/// Lexes a text that arrives in pieces.
#[derive(Debug)]
pub struct Lexer {
    pub(super) mode: Mode,
    pub(super) state: State,
    /// Absolute position of the byte at hand.
    at: u64,
    /// Where the current token began.
    start: u64,
    /// The first byte of a character of two was seen.
    pub(super) lead: bool,
    /// Inside `/*! .. */`.
    pub(super) executable: bool,
    /// The comment is an optimizer hint, in which quotes may hide its end.
    pub(super) hint: bool,
    /// Bit by kind of quote: an odd number of them so far in this hint.
    pub(super) odd_quotes: u8,
    /// The byte before, inside quotes and line comments of an executable comment.
    pub(super) tail: u8,
    pub(super) quote: Quote,
    pub(super) word: Buffer,
    /// Of the string at hand, where it is wanted.
    hash: Hash,
    number: Option<u64>,
    pub(super) rules: Rules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Start,
    Word,
    Number,
    Fraction,
    Dot,
    Colon,
    At,
    UserVariable,
    /// After a user variable's closing quote: another one would belong to the name.
    UserVariableEnd,
    Minus,
    MinusMinus,
    Slash,
    Star,
    CommentOpen,
    CommentM,
    Version,
    Comment,
    CommentStar,
    Line,
    Quoted,
    Escape,
}

/// What is inside the current quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quote {
    pub(super) mark: u8,
    escapes: bool,
    hashes: bool,
    kind: QuoteKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuoteKind {
    Text,
    Name,
    /// The name of a user variable, whose token is out already, and so will be its name.
    Variable,
}

/// What a whole text may do.
#[must_use]
pub fn effects(text: &[u8], mode: Mode) -> Effects {
    let mut lexer = Lexer::new(mode);
    lexer.feed(text);
    lexer.end();
    lexer.rules.finish()
}

impl Lexer {
    /// Before the first byte.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            state: State::Start,
            at: 0,
            start: 0,
            lead: false,
            executable: false,
            hint: false,
            odd_quotes: 0,
            tail: 0,
            quote: Quote { mark: 0, escapes: false, hashes: false, kind: QuoteKind::Text },
            word: Buffer::new(),
            hash: Hash::NEW,
            number: None,
            rules: Rules::new(mode),
        }
    }

    /// The next piece of the text, of any length.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            let skipped = match self.state {
                State::Word | State::Quoted | State::Comment | State::Line => self.skip(rest),
                _ => 0,
            };
            if skipped > 0 {
                self.at += skipped as u64;
                rest = rest.get(skipped..).unwrap_or_default();
            } else {
                self.step(byte);
                self.at += 1;
                rest = after;
            }
        }
    }

    /// No more bytes: what the text may do.
    #[must_use]
    pub fn finish(mut self) -> Effects {
        self.end();
        self.rules.finish()
    }

    /// No more bytes: what the text may do, and its tokens if they were kept.
    pub(super) fn finish_with_tape(mut self) -> (Effects, Vec<Lexeme>) {
        self.end();
        let tape = self.rules.tape.take().unwrap_or_default();
        (self.rules.finish(), tape.lexemes())
    }

    /// The last token ends with the text.
    pub(super) fn end(&mut self) {
        match self.state {
            State::Word => self.end_word(),
            State::Number | State::Fraction => self.end_number(),
            State::Dot => self.emit(Kind::Punct(b'.'), self.at),
            State::Colon => self.emit(Kind::Punct(b':'), self.at),
            State::At => {
                self.emit(Kind::UserVariable, self.at);
                self.rules.mention(b"");
            }
            State::UserVariable | State::UserVariableEnd => self.rules.mention(self.word.text()),
            // Without an end: the server refuses the text.
            State::Quoted | State::Escape if self.quote.kind == QuoteKind::Variable => self.rules.mention(b""),
            State::Minus => self.emit(Kind::Punct(b'-'), self.at),
            State::Slash => self.emit(Kind::Punct(b'/'), self.at),
            State::Star => self.emit(Kind::Punct(b'*'), self.at),
            _ => {}
        }
    }

    /// How many bytes at the front of `rest` change nothing but the word at hand.
    fn skip(&mut self, rest: &[u8]) -> usize {
        let end = |found: Option<usize>| found.unwrap_or(rest.len());
        match self.state {
            State::Word if self.mode.multibyte == Multibyte::No => {
                let len = end(rest.iter().position(|byte| !is_ident(*byte)));
                self.word.extend(rest.get(..len).unwrap_or_default());
                len
            }
            State::Quoted if self.may_skip_quoted() => {
                // A backslash is looked for even where it escapes nothing, if the server might see that differently.
                if self.quote.escapes || self.rules.is_unsure() {
                    end(memchr2(self.quote.mark, b'\\', rest))
                } else {
                    end(memchr(self.quote.mark, rest))
                }
            }
            State::Comment if !self.hint => end(memchr(b'*', rest)),
            State::Line if !self.executable => end(memchr2(b'\n', 0, rest)),
            _ => 0,
        }
    }

    fn may_skip_quoted(&self) -> bool {
        self.quote.kind == QuoteKind::Text
            && !self.quote.hashes
            && !self.executable
            && !self.lead
            && matches!(self.mode.multibyte, Multibyte::No | Multibyte::Single)
    }

    fn step(&mut self, byte: u8) {
        if self.lead && self.trail(byte) {
            return;
        }
        match self.state {
            State::Start => self.begin(byte),
            State::Word => self.in_word(byte),
            State::Number | State::Fraction => self.in_number(byte),
            State::UserVariable => self.in_user_variable(byte),
            State::UserVariableEnd => self.after_user_variable(byte),
            State::Quoted => self.in_quotes(byte),
            State::Escape => self.state = State::Quoted,
            State::Line => self.in_line(byte),
            State::Comment | State::CommentStar => self.in_comment(byte),
            State::CommentOpen | State::CommentM | State::Version => self.opening_comment(byte),
            State::Dot | State::Colon | State::At | State::Minus | State::MinusMinus | State::Slash | State::Star => {
                self.after_sign(byte);
            }
        }
    }

    /// White space in one character set, a letter in another.
    pub(super) fn is_doubtful(&self, byte: u8) -> bool {
        self.mode.multibyte == Multibyte::Single && may_be_space(byte)
    }

    /// The byte after the first of a character of two. `true`: it belongs to the character.
    fn trail(&mut self, byte: u8) -> bool {
        self.lead = false;
        if self.mode.multibyte.trails(byte) {
            if byte < 0x80 && self.rules.is_unsure() {
                self.rules.flag(Flags::OPAQUE);
            }
            if matches!(self.state, State::Word | State::UserVariable) || self.quote.kind != QuoteKind::Text {
                self.word.push(byte);
            } else if self.quote.hashes {
                self.hash.note(byte);
            }
            return true;
        }
        // Half a character. (gb18030 has characters of four bytes, the second a digit.)
        if !(self.mode.multibyte == Multibyte::Gb18030 && byte.is_ascii_digit()) {
            self.rules.flag(Flags::OPAQUE);
        }
        false
    }

    /// A token ends before this byte.
    pub(super) fn restart(&mut self, byte: u8) {
        self.state = State::Start;
        self.begin(byte);
    }

    /// The first byte of whatever comes.
    fn begin(&mut self, byte: u8) {
        if self.is_doubtful(byte) {
            self.rules.flag(Flags::OPAQUE);
            return;
        }
        if is_space(byte) {
            return;
        }
        self.start = self.at;
        match byte {
            b'\'' => self.open_quote(byte, QuoteKind::Text),
            b'"' if self.mode.ansi_quotes => self.open_quote(byte, QuoteKind::Name),
            b'"' => self.open_quote(byte, QuoteKind::Text),
            b'`' => self.open_quote(byte, QuoteKind::Name),
            b'#' => self.open_line(),
            b'-' => self.state = State::Minus,
            b'/' => self.state = State::Slash,
            b'*' if self.executable => self.state = State::Star,
            b':' => self.state = State::Colon,
            b'@' => self.state = State::At,
            b'.' if self.rules.follows_word(self.at) => self.emit(Kind::Punct(b'.'), self.at + 1),
            b'.' => self.state = State::Dot,
            b'0'..=b'9' if !self.rules.follows_dot() => {
                self.state = State::Number;
                self.number = Some(0);
                self.word.clear();
                self.in_number(byte);
            }
            _ if is_ident(byte) => {
                self.word.clear();
                self.state = State::Word;
                self.in_word(byte);
            }
            _ => self.emit(Kind::Punct(byte), self.at + 1),
        }
    }

    fn in_word(&mut self, byte: u8) {
        if self.is_doubtful(byte) {
            self.rules.flag(Flags::OPAQUE);
            self.end_word();
            self.state = State::Start;
        } else if is_ident(byte) {
            self.word.push(byte);
            self.lead = self.mode.multibyte.leads(byte);
        } else {
            self.end_word();
            self.restart(byte);
        }
    }

    fn in_number(&mut self, byte: u8) {
        match byte {
            b'0'..=b'9' => {
                self.word.push(byte);
                if self.state == State::Number {
                    let digit = u64::from(byte - b'0');
                    self.number = self.number.and_then(|n| n.checked_mul(10)?.checked_add(digit));
                }
            }
            b'.' if self.state == State::Number => self.state = State::Fraction,
            // `1e5`, `0x41` and names that begin with digits: nothing that matters looks like this.
            _ if is_ident(byte) && self.state == State::Number => {
                self.state = State::Word;
                self.in_word(byte);
            }
            _ => {
                self.end_number();
                self.restart(byte);
            }
        }
    }

    fn open_quote(&mut self, mark: u8, kind: QuoteKind) {
        if mark == b'"' && self.rules.is_unsure() {
            self.rules.flag(Flags::OPAQUE);
        }
        let named = mark == b'`' || (mark == b'"' && self.mode.ansi_quotes);
        let hashes = kind == QuoteKind::Text && self.rules.wants_hash();
        self.quote = Quote { mark, escapes: !named && !self.mode.no_backslash_escapes, hashes, kind };
        self.word.clear();
        self.hash = Hash::NEW;
        self.tail = 0;
        self.state = State::Quoted;
    }

    fn in_quotes(&mut self, byte: u8) {
        if self.executable {
            self.watch_tail(byte);
        }
        if byte == self.quote.mark {
            // A doubled quote is read as two tokens side by side: nobody who asks for exactness accepts those.
            self.state = State::Start;
            match self.quote.kind {
                QuoteKind::Text => self.emit(Kind::Text, self.at + 1),
                QuoteKind::Name => self.emit(Kind::Name, self.at + 1),
                QuoteKind::Variable => self.state = State::UserVariableEnd,
            }
            return;
        }
        if byte == b'\\' {
            if self.rules.is_unsure() {
                self.rules.flag(Flags::OPAQUE);
            }
            if self.quote.escapes {
                self.state = State::Escape;
            }
        }
        self.lead = self.mode.multibyte.leads(byte);
        if self.quote.kind != QuoteKind::Text {
            self.word.push(byte);
        } else if self.quote.hashes {
            self.hash.note(byte);
        }
    }

    /// The byte after one that alone does not say what it is.
    fn after_sign(&mut self, byte: u8) {
        match (self.state, byte) {
            (State::Dot, b'0'..=b'9') => {
                self.state = State::Fraction;
                self.number = Some(0);
                self.word.clear();
            }
            (State::Dot, _) => self.sign_was(b'.', byte),
            (State::Colon, b'=') => {
                self.state = State::Start;
                self.emit(Kind::Assign, self.at + 1);
            }
            (State::Colon, _) => self.sign_was(b':', byte),
            (State::At, _) => self.after_at(byte),
            (State::Minus, b'-') => self.state = State::MinusMinus,
            (State::Minus, _) => self.sign_was(b'-', byte),
            (State::MinusMinus, b'-') => {
                self.emit(Kind::Punct(b'-'), self.at - 1);
                self.start = self.at - 1;
            }
            (State::MinusMinus, 0..=b' ' | 0x7f) => {
                self.open_line();
                self.in_line(byte);
            }
            (State::MinusMinus, _) => {
                if byte >= 0x80 && self.mode.multibyte != Multibyte::No {
                    self.rules.flag(Flags::OPAQUE);
                }
                self.emit(Kind::Punct(b'-'), self.at - 1);
                self.start = self.at - 1;
                self.sign_was(b'-', byte);
            }
            (State::Slash, b'*') => self.state = State::CommentOpen,
            (State::Slash, _) => self.sign_was(b'/', byte),
            (State::Star, b'/') => {
                self.executable = false;
                self.state = State::Start;
            }
            _ => self.sign_was(b'*', byte),
        }
    }

    fn sign_was(&mut self, sign: u8, byte: u8) {
        self.emit(Kind::Punct(sign), self.at);
        self.restart(byte);
    }

    fn after_at(&mut self, byte: u8) {
        if byte == b'@' {
            self.state = State::Start;
            self.emit(Kind::SystemVariable, self.at + 1);
            return;
        }
        self.emit(Kind::UserVariable, self.at);
        if matches!(byte, b'\'' | b'"' | b'`') {
            self.open_quote(byte, QuoteKind::Variable);
        } else {
            self.word.clear();
            self.state = State::UserVariable;
            self.step(byte);
        }
    }

    fn end_word(&mut self) {
        if !self.mode.mariadb && self.word.may_quote() {
            self.rules.flag(Flags::OPAQUE);
        }
        let word = Word::of(self.word.text());
        self.emit_as(Kind::Word, word, self.at);
    }

    fn end_number(&mut self) {
        self.emit(Kind::Number { whole: self.state == State::Number }, self.at);
    }

    fn emit(&mut self, kind: Kind, end: u64) {
        if matches!(kind, Kind::Punct(_) | Kind::Number { .. } | Kind::Text) && self.rules.pass(kind, end) {
            return;
        }
        let word = if kind == Kind::Name { Word::of(self.word.text()) } else { Word::Other };
        self.emit_as(kind, word, end);
    }

    fn emit_as(&mut self, kind: Kind, word: Word, end: u64) {
        let text = if matches!(kind, Kind::Word | Kind::Name | Kind::Punct(b'(')) { self.word.text() } else { &[] };
        let (hash, number) = (self.hash.lasting(), self.number);
        self.rules.token(&Token { kind, word, text, hash, number, start: self.start, end });
    }
}

/// For the fuzzer: no input panics, and how a text is cut does not matter.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let Some(([settings, cut], text)) = data.split_first_chunk::<2>() else { return };
    let multibyte = match settings >> 3 & 7 {
        1 => Multibyte::Single,
        2 => Multibyte::Big5,
        3 => Multibyte::Gbk,
        4 => Multibyte::Gb18030,
        5 => Multibyte::Sjis,
        _ => Multibyte::No,
    };
    let mode = Mode {
        ansi_quotes: settings & 1 != 0,
        no_backslash_escapes: settings & 2 != 0,
        ignore_space: settings & 64 != 0,
        mariadb: settings & 4 != 0,
        version: 90_700,
        multibyte,
    };
    let whole = effects(text, mode);
    let mut pieces = Lexer::new(mode);
    for piece in text.chunks(usize::from(*cut).max(1)) {
        pieces.feed(piece);
    }
    assert_eq!(whole, pieces.finish(), "cut into pieces of {cut}");
    // Nor does anything asked of the text as a whole.
    let _ = super::reword(text, mode, |_| Some(1));
    let _ = super::get_diagnostics(text, mode);
    assert!(whole.statements <= 1 || (whole.plain.is_none() && whole.kill.is_none() && whole.locking.is_none()));
}
