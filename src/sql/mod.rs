//! Just enough MySQL lexing to know what a statement does to a session. Pure.
//!
//! The server's trackers report most changes of a session's state; this room sees the few that they do not
//! (`SELECT .. INTO @a`, `GET_LOCK()`, `HANDLER .. OPEN`, ...). It is a lexer with a few rules about word order, not a
//! parser: it answers "might this text do X?", and where it cannot know it says yes. Two kinds of answers:
//!
//! - **may do** ([`Flags`]): set on the least suspicion, since a needless pin costs a connection and a missed one
//!   costs a wrong answer. The content of `/*! .. */` counts as code, whatever version it names.
//! - **is exactly** ([`Plain`], [`Locking`], [`Kill`], [`Effects::name`]): only when the whole text has one known
//!   form. Only such an answer may *end* a pin or be answered without the server.
//!
//! One pass over bytes that arrive in any pieces, no allocation; long string literals and comments are skipped by
//! `memchr`. Knows no other room. Tested from tables of statements, by feeding every table in random pieces, and by
//! the fuzz function in `lexer`.

mod builtin;
mod bytes;
mod calls;
mod code;
mod comment;
mod diagnostics;
mod effects;
mod flags;
mod kill;
mod lexer;
mod limit;
mod literals;
mod mentions;
mod named;
mod names;
mod reword;
mod rules;
mod set;
mod shape;
mod tape;
mod unset;
mod word;

#[cfg(test)]
mod tests;

pub use code::{Code, Routine, code};
pub use diagnostics::{GetDiagnostics, Item, get_diagnostics};
pub use effects::{Effects, Kill, Locking, Names, Plain, Window};
pub use flags::Flags;
pub use kill::{Whom, kill_whom};
pub use lexer::{Lexer, effects, fuzz};
pub use limit::obeys_select_limit;
pub use literals::is_literal_set;
pub use mentions::{Mention, Mentions, is_lasting_name};
pub use named::{Literal, Naming, naming};
pub use reword::{Question, Reworded, reword};
pub use unset::reword_unset;
pub use word::Word;

/// What of the session decides how its texts are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    /// `sql_mode` has ANSI_QUOTES: `"x"` is an identifier.
    pub ansi_quotes: bool,
    /// `sql_mode` has NO_BACKSLASH_ESCAPES.
    pub no_backslash_escapes: bool,
    /// `sql_mode` has IGNORE_SPACE: `COUNT (1)` is no call of a stored function.
    pub ignore_space: bool,
    /// The server is MariaDB: `/*M! .. */` is code.
    pub mariadb: bool,
    /// The server's version: 80,017 is 8.0.17. 0: not known.
    pub version: u32,
    /// How `character_set_client` joins bytes, where a second byte may look like a backslash or a backtick.
    pub multibyte: Multibyte,
}

/// How a client's character set joins bytes to characters, as far as that decides where a text's tokens end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Multibyte {
    /// UTF-8, ASCII, the EUC family: no byte below 0x80 that matters here is ever part of a longer character.
    #[default]
    No,
    /// One byte a character (`latin1`, `cp1251`, ...): some bytes from 0x80 on may count as white space.
    Single,
    /// `big5`
    Big5,
    /// `gbk`
    Gbk,
    /// `gb18030`
    Gb18030,
    /// `sjis`, `cp932`
    Sjis,
}

impl Multibyte {
    /// The rule for a value of `character_set_client`.
    #[must_use]
    pub fn of(charset: &str) -> Self {
        match charset {
            "big5" => Self::Big5,
            "gbk" => Self::Gbk,
            "gb18030" => Self::Gb18030,
            "sjis" | "cp932" => Self::Sjis,
            "utf8mb4" | "utf8mb3" | "utf8" | "ascii" | "binary" | "ujis" | "eucjpms" | "euckr" | "gb2312" | "" => {
                Self::No
            }
            _ => Self::Single,
        }
    }

    /// Whether `byte` may begin a character of two bytes.
    pub(crate) fn leads(self, byte: u8) -> bool {
        match self {
            Self::No | Self::Single => false,
            Self::Big5 => matches!(byte, 0xa1..=0xf9),
            Self::Gbk | Self::Gb18030 => matches!(byte, 0x81..=0xfe),
            Self::Sjis => matches!(byte, 0x81..=0x9f | 0xe0..=0xfc),
        }
    }

    /// Whether `byte` may end a character of two bytes.
    pub(crate) fn trails(self, byte: u8) -> bool {
        match self {
            Self::No | Self::Single => false,
            Self::Big5 => matches!(byte, 0x40..=0x7e | 0xa1..=0xfe),
            Self::Gbk | Self::Gb18030 => matches!(byte, 0x40..=0x7e | 0x80..=0xfe),
            Self::Sjis => matches!(byte, 0x40..=0x7e | 0x80..=0xfc),
        }
    }
}
