//! The user variables that a text names.
//!
//! A name is kept only if its spelling means the same in every character set, and if no two spellings of one name differ
//! in more than their case (MySQL ignores spaces at the end, MariaDB does not). Any other name, and one too many, only
//! makes it known that names are missing.

use super::Flags;
use super::bytes::{is_ident, means_the_same};
use super::lexer::{Lexer, State};

/// Names of user variables, in lower case, in the order of the text; and of each, whether the text may read it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mentions {
    /// The names, each followed by [`READ`] or [`ASSIGNED`].
    bytes: [u8; Self::ROOM],
    /// Bytes used; more than there is room for: names are missing.
    len: u8,
}

/// One user variable of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention<'a> {
    /// Its name, in lower case: printable ASCII without quotes, backslash and comma.
    pub name: &'a str,
    /// The value that it has before the text may matter. If not, the text does nothing but assign it.
    pub is_read: bool,
}

const READ: u8 = b',';
const ASSIGNED: u8 = b'=';

impl Mentions {
    const ROOM: usize = 190;
    const MISSING: u8 = u8::MAX;

    /// Whether no user variable is named.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there were more names than fit, or one that cannot be known.
    #[must_use]
    pub const fn overflowed(&self) -> bool {
        self.len == Self::MISSING
    }

    /// The names that are known: none after an overflow.
    pub fn iter(&self) -> impl Iterator<Item = Mention<'_>> {
        let used = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        used.split_inclusive(|byte| is_end(*byte)).filter_map(|entry| {
            let (end, name) = entry.split_last()?;
            Some(Mention { name: std::str::from_utf8(name).ok()?, is_read: *end == READ })
        })
    }

    /// Takes the names of another text in.
    pub fn join(&mut self, other: &Self) {
        if other.overflowed() {
            self.overflow();
        }
        for mention in other.iter() {
            self.add(mention.name.as_bytes(), mention.is_read);
        }
    }

    /// Adds a name. True if it was not there yet.
    pub(super) fn add(&mut self, name: &[u8], is_read: bool) -> bool {
        if let Some(end) = self.find(name) {
            if is_read && let Some(byte) = self.bytes.get_mut(end) {
                *byte = READ;
            }
            return false;
        }
        let from = usize::from(self.len);
        match self.bytes.get_mut(from..from + name.len() + 1) {
            Some([room @ .., end]) if is_lasting_name(name) => {
                for (to, byte) in room.iter_mut().zip(name) {
                    *to = byte.to_ascii_lowercase();
                }
                *end = if is_read { READ } else { ASSIGNED };
                self.len += name.len() as u8 + 1;
            }
            _ => self.overflow(),
        }
        true
    }

    /// What was added last is assigned right there, and was not read before.
    pub(super) fn last_is_assigned(&mut self) {
        let last = usize::from(self.len).wrapping_sub(1);
        if let (false, Some(byte)) = (self.overflowed(), self.bytes.get_mut(last)) {
            *byte = ASSIGNED;
        }
    }

    pub(super) fn overflow(&mut self) {
        self.len = Self::MISSING;
    }

    /// Where this name ends, if it is there.
    fn find(&self, name: &[u8]) -> Option<usize> {
        let used = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        let mut at = 0;
        used.split_inclusive(|byte| is_end(*byte)).find_map(|entry| {
            at += entry.len();
            let (_, known) = entry.split_last()?;
            known.eq_ignore_ascii_case(name).then_some(at - 1)
        })
    }
}

const fn is_end(byte: u8) -> bool {
    byte == READ || byte == ASSIGNED
}

/// Whether this spelling of a user variable's name will mean the same one later, in every character set.
#[must_use]
pub fn is_lasting_name(name: &[u8]) -> bool {
    let may_stand = |byte: &u8| *byte >= b' ' && *byte != 0x7f && means_the_same(*byte) && !is_end(*byte);
    !name.is_empty() && !name.ends_with(b" ") && name.iter().all(may_stand)
}

impl Lexer {
    /// A byte of an unquoted name, or the one behind it.
    pub(super) fn in_user_variable(&mut self, byte: u8) {
        if self.is_doubtful(byte) {
            self.rules.flag(Flags::OPAQUE);
            self.rules.mention(b"");
            self.state = State::Start;
        } else if is_ident(byte) || byte == b'.' {
            self.word.push(byte);
        } else {
            self.rules.mention(self.word.text());
            self.restart(byte);
        }
        self.lead |= self.mode.multibyte.leads(byte);
    }

    /// The byte behind a quoted name.
    pub(super) fn after_user_variable(&mut self, byte: u8) {
        if byte == self.quote.mark {
            // A doubled quote stands for one in the name.
            self.word.push(byte);
            self.state = State::Quoted;
        } else {
            self.rules.mention(self.word.text());
            self.restart(byte);
        }
    }
}

impl Default for Mentions {
    fn default() -> Self {
        Self { bytes: [0; Self::ROOM], len: 0 }
    }
}

impl std::fmt::Debug for Mentions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.overflowed() {
            return f.write_str("[more than fit]");
        }
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::tests::{MARIA, MYSQL};
    use crate::sql::{Mode, Multibyte, effects};

    const SERVERS: [Mode; 2] = [MYSQL, MARIA];

    /// The names, each with a star if it is only assigned.
    fn names(text: &[u8], mode: Mode) -> String {
        let found = effects(text, mode).mentions;
        if found.overflowed() {
            return "overflow".to_owned();
        }
        let name = |it: Mention<'_>| format!("{}{}", it.name, if it.is_read { "" } else { "*" });
        found.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_name_is_kept_once_and_in_lower_case() {
        let table = [
            ("SELECT 1", ""),
            ("SELECT '@a', `@b`, \"@c\" -- @d", ""),
            ("SELECT @@a, @@session.b", ""),
            ("SELECT @A, @a, @`a`, @'A', @\"a\"", "a"),
            ("SELECT @a.b$c_1", "a.b$c_1"),
            ("SELECT @`my var`, @'it''s', @\"x-y\"", "my var it's x-y"),
            ("SELECT@a,@b", "a b"),
            ("SET @a = 1", "a*"),
            ("SET @a=@a+1", "a"),
            ("SET @a := @b, @c = 5, time_zone = @d", "a* b c* d"),
            ("SET @a = 1; SELECT @a", "a"),
            ("SET @a = (SELECT 1, @b), @c=1", "a* b c*"),
            ("SELECT @a := 1", "a*"),
            ("SELECT @a := @a + 1", "a"),
            ("SELECT @a, @a := 1", "a"),
            ("SELECT @n /* c */ := 1, @n", "n"),
            ("SELECT 1, 2, 3 INTO @a, @b, @c", "a* b* c*"),
            ("SELECT a FROM t WHERE b = @x INTO @a", "x a*"),
            ("SELECT a INTO @a FROM t WHERE b = @b", "a* b"),
            ("LOAD DATA INFILE 'f' INTO TABLE t (@a, b) SET c = @a", "a"),
            ("GET DIAGNOSTICS @n = NUMBER", "n*"),
            ("CALL p(@out, 5)", "out"),
            ("EXECUTE s USING @a, @b", "a b"),
            ("/*!50000 SET @a = 1 */", "a*"),
            ("SET STATEMENT max_statement_time=1 FOR SELECT @a", "a"),
            // Accounts.
            ("CREATE USER u@localhost, 'v'@'%', `w`@`h`", ""),
            ("SET PASSWORD FOR u@localhost = 'x'", ""),
        ];
        for (text, expected) in table {
            for mode in SERVERS {
                assert_eq!(names(text.as_bytes(), mode), expected, "{text}");
            }
        }
    }

    #[test]
    fn what_cannot_be_named_for_sure_overflows() {
        let many: String = (0..40).map(|n| format!("@variable_{n:02},")).collect();
        let long = format!("SELECT @{}", "a".repeat(65));
        let texts: [&[u8]; 15] = [
            "SELECT @\u{e9}".as_bytes(),
            "SELECT @`\u{e9}`".as_bytes(),
            b"SELECT @'a '",
            b"SELECT @`a,b`, @c",
            b"SELECT @`a=b`",
            b"SELECT @'a\\'b'",
            b"SELECT @`a\\b`",
            b"SELECT @`a``b`",
            b"SELECT @'a[b'",
            b"SELECT @''",
            b"SELECT @",
            b"SELECT @ a",
            b"SELECT @'a",
            many.as_bytes(),
            long.as_bytes(),
        ];
        for text in texts {
            for mode in SERVERS {
                let text = if text.starts_with(b"@") { [b"SELECT ", text, b"1"].concat() } else { text.to_vec() };
                assert_eq!(names(&text, mode), "overflow", "{}", text.escape_ascii());
            }
        }
        let sjis = Mode { multibyte: Multibyte::Sjis, ..SERVERS[0] };
        assert_eq!(names(b"SELECT @`\x83`\x83`, 5", sjis), "overflow");
    }

    #[test]
    fn two_texts_together() {
        let of = |text: &str| effects(text.as_bytes(), SERVERS[0]).mentions;
        let mut all = of("SET @a=1, @b=2");
        all.join(&of("SELECT @b, @c"));
        assert_eq!(format!("{all:?}").matches("is_read: true").count(), 2);
        all.join(&of("SELECT @''"));
        assert!(all.overflowed() && !all.is_empty() && all.iter().next().is_none());
    }
}
