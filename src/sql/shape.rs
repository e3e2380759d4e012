//! Whole texts of a known form: the first tokens of a text, compared with the few forms that may be acted upon.

use super::bytes::Hash;
use super::rules::{Kind, Token};
use super::{Kill, Locking, Plain, Window, Word};

/// Tokens that are kept. All known forms are shorter.
const ROOM: usize = 12;

/// A token, as far as a form distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lite {
    /// A word without quotes.
    W(Word),
    /// A quoted name.
    N,
    /// A string.
    S,
    /// A number; the value if it is whole and fits.
    Num(Option<u64>),
    /// Another byte.
    P(u8),
    /// Anything else.
    Other,
}

use Lite::{N, Num, P, S, W};

#[derive(Debug)]
pub(super) struct Shape {
    tokens: [Lite; ROOM],
    hashes: [Option<u64>; ROOM],
    /// How many tokens there were; may be more than there is room for.
    len: usize,
}

impl Shape {
    pub(super) const fn new() -> Self {
        Self { tokens: [Lite::Other; ROOM], hashes: [None; ROOM], len: 0 }
    }

    pub(super) fn push(&mut self, token: &Token<'_>) {
        let lite = match token.kind {
            Kind::Word => W(token.word),
            Kind::Name => N,
            Kind::Text => S,
            Kind::Number { whole } => Num(token.number.filter(|_| whole)),
            Kind::Punct(byte) => P(byte),
            Kind::SystemVariable | Kind::UserVariable | Kind::Assign => Lite::Other,
        };
        let may_name = self.may_name();
        if let (Some(slot), Some(hash)) = (self.tokens.get_mut(self.len), self.hashes.get_mut(self.len)) {
            *slot = lite;
            // A name too long to be kept has no hash either: then it is no known form.
            *hash = match token.kind {
                Kind::Word | Kind::Name if may_name && !token.text.is_empty() => Hash::of(token.text).lasting(),
                Kind::Text => token.hash,
                _ => None,
            };
        }
        self.len += 1;
    }

    /// Whether the next string names a lock.
    pub(super) fn wants_hash(&self) -> bool {
        self.len == 3
            && matches!(self.kept(), [W(Word::Select | Word::Do), W(Word::GetLock | Word::ReleaseLock), P(b'(')])
    }

    /// Whether this may be a form whose name counts.
    const fn may_name(&self) -> bool {
        matches!(self.tokens[0], W(Word::Prepare | Word::Deallocate | Word::Drop | Word::Create))
    }

    /// Whether further tokens only make the text longer than any known form.
    pub(super) const fn is_full(&self) -> bool {
        self.len > ROOM
    }

    fn kept(&self) -> &[Lite] {
        self.tokens.get(..self.len).unwrap_or(&self.tokens)
    }

    /// All tokens, if they fit.
    fn whole(&self) -> &[Lite] {
        self.tokens.get(..self.len).unwrap_or_default()
    }

    pub(super) fn plain(&self) -> Option<Plain> {
        match self.whole() {
            [W(Word::Show), W(Word::Warnings), limit @ ..] => window(limit).map(Plain::ShowWarnings),
            [W(Word::Show), W(Word::Errors), limit @ ..] => window(limit).map(Plain::ShowErrors),
            [W(Word::Show), W(Word::Count), P(b'('), P(b'*'), P(b')'), W(Word::Warnings)] => Some(Plain::CountWarnings),
            [W(Word::Show), W(Word::Count), P(b'('), P(b'*'), P(b')'), W(Word::Errors)] => Some(Plain::CountErrors),
            _ => None,
        }
    }

    pub(super) fn locking(&self) -> Option<Locking> {
        let [W(Word::Select | Word::Do), W(function), P(b'('), rest @ ..] = self.whole() else { return None };
        let name = self.hashes[3];
        let (locking, tail) = match (function, rest) {
            (Word::GetLock, [S, P(b','), Num(_), P(b')'), tail @ ..]) => (Locking::Get(name?), tail),
            (Word::GetLock, [S, P(b','), P(b'-'), Num(_), P(b')'), tail @ ..]) => (Locking::Get(name?), tail),
            (Word::ReleaseLock, [S, P(b')'), tail @ ..]) => (Locking::Release(name?), tail),
            (Word::ReleaseAllLocks, [P(b')'), tail @ ..]) => (Locking::ReleaseAll, tail),
            _ => return None,
        };
        // An alias, nothing else: with tables or conditions the function might run never or often.
        matches!(tail, [] | [W(_) | N | S] | [W(Word::As), W(_) | N | S]).then_some(locking)
    }

    pub(super) fn kill(&self) -> Option<Kill> {
        let [W(Word::Kill), rest @ ..] = self.kept() else { return None };
        let (soft, rest) = match rest {
            [W(how @ (Word::Hard | Word::Soft)), rest @ ..] => (*how == Word::Soft, rest),
            _ => (false, rest),
        };
        let (query_only, rest) = match rest {
            [W(Word::Query), rest @ ..] => (true, rest),
            [W(Word::Connection), rest @ ..] => (false, rest),
            _ => (false, rest),
        };
        let id = match rest {
            [Num(id)] if self.len <= ROOM => *id,
            _ => None,
        };
        Some(Kill { query_only, soft, id })
    }

    /// The hash of the one name that is prepared, deallocated, created or dropped.
    pub(super) fn name(&self) -> Option<u64> {
        let at = match self.kept() {
            [W(Word::Prepare), W(_) | N, W(Word::From), ..] => 1,
            [W(Word::Create), rest @ ..] => {
                let (replace, rest) = match rest {
                    [W(Word::Or), W(Word::Replace), rest @ ..] => (2, rest),
                    _ => (0, rest),
                };
                match rest {
                    [W(Word::Temporary), W(Word::Table), W(Word::If), W(Word::Not), W(Word::Exists), rest @ ..] => {
                        matches!(rest, [W(_) | N, W(_) | P(b'('), ..]).then_some(6 + replace)?
                    }
                    [W(Word::Temporary), W(Word::Table), rest @ ..] => {
                        matches!(rest, [W(_) | N, W(_) | P(b'('), ..]).then_some(3 + replace)?
                    }
                    _ => return None,
                }
            }
            _ => match self.whole() {
                [W(Word::Deallocate | Word::Drop), W(Word::Prepare), W(_) | N] => 2,
                [W(Word::Drop), W(Word::Table), W(_) | N] => 2,
                [W(Word::Drop), W(Word::Temporary), W(Word::Table), W(_) | N] => 3,
                [W(Word::Drop), W(Word::Table), W(Word::If), W(Word::Exists), W(_) | N] => 4,
                [W(Word::Drop), W(Word::Temporary), W(Word::Table), W(Word::If), W(Word::Exists), W(_) | N] => 5,
                _ => return None,
            },
        };
        self.hashes.get(at).copied().flatten()
    }
}

/// The rows that a `LIMIT` leaves, or all.
fn window(limit: &[Lite]) -> Option<Window> {
    match limit {
        [] => Some(Window::ALL),
        [W(Word::Limit), Num(Some(take))] => Some(Window { skip: 0, take: *take }),
        [W(Word::Limit), Num(Some(skip)), P(b','), Num(Some(take))]
        | [W(Word::Limit), Num(Some(take)), W(Word::Offset), Num(Some(skip))] => {
            Some(Window { skip: *skip, take: *take })
        }
        _ => None,
    }
}
