//! What the lexer answers about one text.

use super::{Flags, Mentions, Word};

/// What one text may do to its session, and what it exactly is where that is certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// What it may do.
    pub flags: Flags,
    /// What its first statement may do: the only one that can ask about what ran before the text.
    pub first_flags: Flags,
    /// The first keyword of the first statement (after `SET STATEMENT .. FOR`, of the statement that follows).
    pub first: Word,
    /// How many statements the text holds (not counting empty ones; stops counting at 65,535).
    pub statements: u16,
    /// The text is exactly one of the forms that can be answered from memory.
    pub plain: Option<Plain>,
    /// The text is exactly one statement that takes or releases user locks by literal names.
    pub locking: Option<Locking>,
    /// The text is exactly one `KILL`.
    pub kill: Option<Kill>,
    /// A hash of the name (as spelled), where the text is exactly one `PREPARE` or `DEALLOCATE`, `CREATE TEMPORARY TABLE`
    /// or `DROP TABLE` of one name without a schema.
    pub name: Option<u64>,
    /// Variables set as `@@name` without a scope, which MariaDB does not report. (Only with [`Mode::mariadb`](super::Mode).)
    pub unreported: Names,
    /// The user variables that the text names. With [`Flags::WRITES_USER_VARIABLE`] it may write each of them.
    pub mentions: Mentions,
}

impl Effects {
    /// Whether the text may do any of these.
    #[must_use]
    pub const fn may(&self, flags: Flags) -> bool {
        self.flags.any(flags)
    }

    /// Whether the value may matter that a user variable has before the text.
    #[must_use]
    pub fn reads_user_variables(&self) -> bool {
        self.mentions.overflowed() || self.mentions.iter().any(|mention| mention.is_read)
    }

    /// Whether the text is one statement, all of which the server runs: only then may success end a pin.
    #[must_use]
    pub const fn is_certain(&self) -> bool {
        self.statements == 1
            && !self
                .flags
                .any(Flags::EXECUTABLE_COMMENT.and(Flags::OPAQUE).and(Flags::COMPOUND).and(Flags::SET_STATEMENT))
    }
}

/// Statements that a session can answer from what it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// `SHOW WARNINGS [LIMIT ..]`
    ShowWarnings(Window),
    /// `SHOW ERRORS [LIMIT ..]`
    ShowErrors(Window),
    /// `SHOW COUNT(*) WARNINGS`
    CountWarnings,
    /// `SHOW COUNT(*) ERRORS`
    CountErrors,
}

/// Which rows a `LIMIT` leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How many are left out at the front.
    pub skip: u64,
    /// How many there are at most.
    pub take: u64,
}

impl Window {
    /// Without a `LIMIT`.
    pub const ALL: Self = Self { skip: 0, take: u64::MAX };
}

/// A text that is exactly one call of a lock function (`SELECT` or `DO`), its name a literal; the number is its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// `SELECT GET_LOCK('name', seconds)`
    Get(u64),
    /// `SELECT RELEASE_LOCK('name')`
    Release(u64),
    /// `SELECT RELEASE_ALL_LOCKS()`
    ReleaseAll,
}

/// A few names of variables, in lower case. Too many, or too long ones, are only known to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// The names, each followed by a comma.
    bytes: [u8; Self::ROOM],
    /// Bytes used; more than there is room for: names are missing.
    len: u8,
}

impl Names {
    const ROOM: usize = 95;
    const MISSING: u8 = u8::MAX;

    /// Whether there is no name.
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
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let used = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        used.split(|b| *b == b',').filter_map(|name| std::str::from_utf8(name).ok()).filter(|name| !name.is_empty())
    }

    /// Adds a name. Only ASCII letters, digits, `_` and `$` make one; anything else overflows.
    pub(super) fn push(&mut self, name: &[u8]) {
        let from = usize::from(self.len);
        let plain = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$'));
        match self.bytes.get_mut(from..from + name.len() + 1) {
            Some([room @ .., comma]) if plain => {
                for (to, byte) in room.iter_mut().zip(name) {
                    *to = byte.to_ascii_lowercase();
                }
                *comma = b',';
                self.len += name.len() as u8 + 1;
            }
            _ => self.overflow(),
        }
    }

    pub(super) fn overflow(&mut self) {
        self.len = Self::MISSING;
    }
}

impl Default for Names {
    fn default() -> Self {
        Self { bytes: [0; Self::ROOM], len: 0 }
    }
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.overflowed() {
            return f.write_str("[more than fit]");
        }
        f.debug_list().entries(self.iter()).finish()
    }
}

/// `KILL [HARD | SOFT] [CONNECTION | QUERY] n`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// Only the running statement is meant, not the connection.
    pub query_only: bool,
    /// `SOFT` (MariaDB): what must not be interrupted half way is not.
    pub soft: bool,
    /// The thread's number; absent where the text computes it, names a user, or names a query (`QUERY ID n`): see
    /// [`kill_whom`](super::kill_whom).
    pub id: Option<u64>,
}
