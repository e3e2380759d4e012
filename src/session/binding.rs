//! The types of a statement's parameters: what the server remembers of them, and what that changes.
//!
//! A server keeps the types that came with an execute for later ones without. And it keeps more than that. Measured:
//! MySQL decides by the first types what the expressions around the parameters are, and decides anew only if one of them
//! asks for more (whole numbers, decimals, floats, times, in this order): after 1.5 the string 'x' is the number 0. A NULL
//! asks for nothing, whatever its type; where it decides anew, a NULL counts as a text.
//! MariaDB decides anew each time, but some expressions keep an earlier type's decimals. So one statement on a backend
//! serves only executes whose parameters come to the same [`Kind`]s: what one client binds never shows in another's
//! results. On MySQL these are the kinds of each execute that it has decided by, in order.

use std::sync::Arc;

use super::state::State;

/// A family of types that are the same to the server's expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind(u8);

impl Kind {
    /// Strings and NULL: no wish of their own.
    const WEAK: Self = Self(0);
    const SIGNED: Self = Self(1);
    const UNSIGNED: Self = Self(2);
    const DECIMAL: Self = Self(3);
    const FLOAT: Self = Self(4);
    const DOUBLE: Self = Self(5);
    const DATE: Self = Self(6);
    const TIME: Self = Self(7);
    const DATETIME: Self = Self(8);
    /// On MySQL, where it decides about other parameters, strings are not what NULL is.
    const TEXT: Self = Self(9);
    const BYTES: Self = Self(10);
    /// Any other type has its own number above this.
    const OTHER: u8 = 0x80;

    const NULL_TYPE: u8 = 6;

    fn of(code: u8, flags: u8) -> Self {
        match code {
            1 | 2 | 3 | 8 | 9 if flags & 0x80 != 0 => Self::UNSIGNED,
            1 | 2 | 3 | 8 | 9 => Self::SIGNED,
            0 | 0xf6 => Self::DECIMAL,
            4 => Self::FLOAT,
            5 => Self::DOUBLE,
            10 | 14 => Self::DATE,
            11 => Self::TIME,
            7 | 12 => Self::DATETIME,
            6 | 15 | 0xf5 | 0xf9..=0xfe => Self::WEAK,
            other => Self(other | Self::OTHER),
        }
    }

    /// The same for MySQL, of a value that may be NULL.
    fn wish(code: u8, flags: u8, is_null: bool) -> Self {
        match (code, Self::of(code, flags)) {
            _ if is_null => Self::WEAK,
            (Self::NULL_TYPE, _) => Self::WEAK,
            (0xf9..=0xfc, _) => Self::BYTES,
            (_, Self::WEAK) => Self::TEXT,
            (_, Self::FLOAT) => Self::DOUBLE,
            // It takes no such value.
            (_, Self(other)) if other & Self::OTHER != 0 => Self::WEAK,
            (_, kind) => kind,
        }
    }

    /// Whether it asks for nothing.
    fn is_weak(self) -> bool {
        matches!(self, Self::WEAK | Self::TEXT | Self::BYTES)
    }

    /// Whether MySQL takes `new` for a parameter that is this, without thinking again.
    fn takes(self, new: Self) -> bool {
        let is_number = matches!(new, Self::SIGNED | Self::UNSIGNED | Self::DECIMAL | Self::DOUBLE);
        match self {
            _ if new.is_weak() || self == new => true,
            Self::DECIMAL => matches!(new, Self::SIGNED | Self::UNSIGNED),
            Self::DOUBLE | Self::DATE => is_number,
            Self::TIME => is_number || new == Self::DATETIME,
            Self::DATETIME => is_number || matches!(new, Self::DATE | Self::TIME),
            _ => false,
        }
    }

    /// A type and a value of this kind, for an execute that nobody asked for. (A number that may be a date, as 0 may, would be
    /// taken for one where there was one before.)
    fn sample(self) -> ([u8; 2], &'static [u8]) {
        match self {
            Self::SIGNED => ([8, 0], &[2, 0, 0, 0, 0, 0, 0, 0]),
            Self::UNSIGNED => ([8, 0x80], &[2, 0, 0, 0, 0, 0, 0, 0]),
            Self::DECIMAL => ([0xf6, 0], b"\x0512.50"),
            Self::DOUBLE => ([5, 0], &[0, 0, 0, 0, 0, 0, 0xf8, 0x3f]),
            Self::DATE => ([10, 0], b"\x04\xd0\x07\x01\x01"),
            Self::TIME => ([11, 0], b"\0"),
            Self::DATETIME => ([12, 0], b"\x04\xd0\x07\x01\x01"),
            Self::BYTES => ([0xfc, 0], b"\0"),
            _ => ([0xfd, 0], b"\0"),
        }
    }
}

/// How many executes MySQL may have decided by that are told apart.
const MOST_STEPS: usize = 4;

/// What MySQL has decided by after one more execute with these wishes.
fn decided(steps: &[u8], wishes: &[u8]) -> Box<[u8]> {
    let len = wishes.len().max(1);
    let last = |at: usize| {
        Kind(steps.len().checked_sub(len).and_then(|from| steps.get(from + at)).copied().unwrap_or_default())
    };
    if wishes.iter().enumerate().all(|(at, new)| last(at).takes(Kind(*new))) {
        return steps.into();
    }
    // Of what was a text so far, it remains one however it is sent.
    let of_text = |at: usize, new: u8| if last(at).is_weak() && new == Kind::TEXT.0 { Kind::WEAK.0 } else { new };
    let step = wishes.iter().enumerate().map(|(at, new)| of_text(at, *new));
    let from = (steps.len() / len + 1).saturating_sub(MOST_STEPS) * len;
    steps.get(from..).unwrap_or_default().iter().copied().chain(step).collect()
}

/// An execute that has MySQL decide as an earlier one had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rehearsal {
    /// A bit for each parameter that is NULL.
    pub nulls: Vec<u8>,
    /// Two bytes for each parameter.
    pub types: Vec<u8>,
    /// The values of those that are not NULL.
    pub values: Vec<u8>,
}

impl Rehearsal {
    fn of(step: &[u8]) -> Self {
        let mut all = Self { nulls: vec![0; step.len().div_ceil(8)], ..Self::default() };
        for (at, kind) in step.iter().enumerate() {
            let (code, value) = Kind(*kind).sample();
            all.types.extend_from_slice(&code);
            match all.nulls.get_mut(at / 8) {
                Some(byte) if *kind == Kind::WEAK.0 => *byte |= 1 << (at % 8),
                _ => all.values.extend_from_slice(value),
            }
        }
        all
    }
}

/// Types as last bound, and under which character set. Shared by all that bind the same.
#[derive(Clone, Debug)]
pub struct Bound {
    /// As in the packet: two bytes for each parameter.
    types: Box<[u8]>,
    /// A [`Kind`] for each parameter.
    kinds: Box<[u8]>,
    /// The session's state then: strings are read in its `character_set_client`, and converted to its
    /// `collation_connection`, until types are sent again.
    state: Arc<State>,
}

impl Bound {
    /// What comes of sending these types, after what was bound before. `nulls`: a bit for each parameter.
    #[must_use]
    pub fn new(types: &[u8], nulls: &[u8], before: Option<&Self>, state: &Arc<State>, mariadb: bool) -> Self {
        let earlier = before.map(|before| &*before.kinds).unwrap_or_default();
        let codes = types.chunks_exact(2).map(|pair| {
            let &[code, flags] = pair.first_chunk().unwrap_or(&[0; 2]);
            (code, Kind::of(code, flags).0)
        });
        let kinds: Box<[u8]> = if mariadb {
            // A NULL is no type.
            let old = |at: usize, code| earlier.get(at).copied().filter(|_| code == Kind::NULL_TYPE);
            codes.enumerate().map(|(at, (code, new))| old(at, code).unwrap_or(new)).collect()
        } else {
            decided(earlier, &wishes(types, nulls))
        };
        Self { kinds, types: types.into(), state: Arc::clone(state) }
    }

    /// MySQL: executed with types as before; none if that changes nothing.
    #[must_use]
    pub fn executed(&self, nulls: &[u8]) -> Option<Self> {
        let kinds = decided(&self.kinds, &wishes(&self.types, nulls));
        (kinds != self.kinds).then(|| Self { kinds, ..self.clone() })
    }

    /// MySQL: what a statement that nobody has executed must go through first, so that it is what it would be after all
    /// that came before this execute.
    #[must_use]
    pub fn rehearsals(&self, nulls: &[u8]) -> Vec<Rehearsal> {
        let params = self.types.len() / 2;
        if params == 0 || decided(&[], &wishes(&self.types, nulls)) == self.kinds {
            return Vec::new();
        }
        self.kinds.chunks(params).map(Rehearsal::of).collect()
    }

    /// Two bytes for each parameter.
    #[must_use]
    pub fn types(&self) -> &[u8] {
        &self.types
    }

    /// What decides which statement on a backend may serve: equal bytes, equal answers.
    #[must_use]
    pub fn kinds(&self) -> &[u8] {
        &self.kinds
    }

    /// Whether an execute without types means the same by either.
    #[must_use]
    pub fn means(&self, other: &Self) -> bool {
        let same_charset = || self.state.charset() == other.state.charset();
        self.types == other.types && (Arc::ptr_eq(&self.state, &other.state) || same_charset())
    }

    /// Whether it is the same in every respect.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.is(&other.types, &other.state) && self.kinds == other.kinds
    }

    /// Whether sending these types again in this state changes nothing.
    #[must_use]
    pub fn is(&self, types: &[u8], state: &Arc<State>) -> bool {
        *self.types == *types && Arc::ptr_eq(&self.state, state)
    }
}

/// What an execute with these types and NULLs asks for.
fn wishes(types: &[u8], nulls: &[u8]) -> Box<[u8]> {
    let is_null = |at: usize| nulls.get(at / 8).is_some_and(|byte| byte & (1 << (at % 8)) != 0);
    let pairs = types.chunks_exact(2).enumerate();
    let wish = |(at, pair): (usize, &[u8])| {
        let &[code, flags] = pair.first_chunk().unwrap_or(&[0; 2]);
        Kind::wish(code, flags, is_null(at)).0
    };
    pairs.map(wish).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Interner, StateSpec};

    const SAMPLE_LONG: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 0];
    const SAMPLE_DOUBLE: [u8; 8] = [0, 0, 0, 0, 0, 0, 0xf8, 0x3f];
    const LONG: [u8; 2] = [3, 0];
    const TEXT: [u8; 2] = [0xfd, 0];
    const NULL: [u8; 2] = [6, 0];
    const DOUBLE: [u8; 2] = [5, 0];
    const DATE: [u8; 2] = [10, 0];
    const YEAR: [u8; 2] = [13, 0];

    fn kinds(sent: &[&[u8]], mariadb: bool) -> Vec<u8> {
        let state = Interner::new().intern(StateSpec::default());
        let bound = sent
            .iter()
            .fold(None, |before: Option<Bound>, types| Some(Bound::new(types, &[], before.as_ref(), &state, mariadb)));
        bound.unwrap().kinds().to_vec()
    }

    #[test]
    fn what_was_bound_before_counts_as_on_the_servers() {
        let (long, double, date) = (Kind::SIGNED.0, Kind::DOUBLE.0, Kind::DATE.0);
        for (sent, mysql, mariadb) in [
            (&[LONG][..], &[long][..], long),
            (&[NULL, LONG], &[long], long),
            (&[LONG, NULL], &[long], long),
            (&[TEXT, LONG], &[long], long),
            (&[LONG, TEXT], &[long], Kind::WEAK.0),
            (&[LONG, DOUBLE, LONG], &[long, double], long),
            (&[DOUBLE, DATE, DOUBLE], &[double, date], double),
            (&[DATE, YEAR], &[date], 13 | Kind::OTHER),
            (&[TEXT, NULL], &[], Kind::WEAK.0),
            (&[YEAR, TEXT], &[], Kind::WEAK.0),
        ] {
            let sent: Vec<_> = sent.iter().map(|types| &types[..]).collect();
            assert_eq!((kinds(&sent, false), kinds(&sent, true)), (mysql.to_vec(), vec![mariadb]), "{sent:?}");
        }
    }

    #[test]
    fn mysql_decides_about_all_parameters_together() {
        let two = |a: [u8; 2], b: [u8; 2]| [a, b].concat();
        let (weak, text, long, double) = (Kind::WEAK.0, Kind::TEXT.0, Kind::SIGNED.0, Kind::DOUBLE.0);
        for (first, second, mysql) in [
            ((LONG, TEXT), (TEXT, TEXT), &[long, weak][..]),
            ((LONG, TEXT), (TEXT, LONG), &[long, weak, text, long]),
            ((LONG, LONG), (TEXT, LONG), &[long, long]),
            ((LONG, LONG), (NULL, DOUBLE), &[long, long, weak, double]),
        ] {
            let sent = [two(first.0, first.1), two(second.0, second.1)];
            assert_eq!(kinds(&[&sent[0], &sent[1]], false), mysql, "{sent:?}");
        }
    }

    #[test]
    fn a_statement_that_is_new_goes_through_what_mysql_has_decided_by() {
        let state = Interner::new().intern(StateSpec::default());
        let types = [DOUBLE, LONG].concat();
        let first = Bound::new(&types, &[0], None, &state, false);
        assert!(first.rehearsals(&[0]).is_empty() && first.executed(&[3]).is_none());
        // A NULL asks for nothing, so this execute alone would come to something else.
        let all = first.rehearsals(&[1]);
        assert_eq!(
            all,
            [Rehearsal {
                nulls: vec![0],
                types: vec![5, 0, 8, 0],
                values: [&SAMPLE_DOUBLE[..], &SAMPLE_LONG].concat()
            }]
        );
        // The first one decided nothing about a NULL.
        let null = Bound::new(&types, &[1], None, &state, false);
        let then = null.executed(&[0]).unwrap();
        assert_eq!(then.rehearsals(&[0]).len(), 2);
        assert_eq!(
            then.rehearsals(&[0])[0],
            Rehearsal { nulls: vec![1], types: vec![0xfd, 0, 8, 0], values: SAMPLE_LONG.to_vec() }
        );
    }

    #[test]
    fn the_same_types_in_another_character_set_are_not_the_same() {
        let interner = Interner::new();
        let state = |charset: &str| {
            let charset = crate::session::Charset::names(charset, "");
            interner.intern(StateSpec { charset, ..StateSpec::default() })
        };
        let bound = |types: &[u8], charset| Bound::new(types, &[], None, &state(charset), true);
        let (one, other) = (bound(&TEXT, "utf8mb4"), bound(&TEXT, "latin1"));
        assert!(one.means(&bound(&TEXT, "utf8mb4")) && !one.means(&other) && !one.means(&bound(&LONG, "utf8mb4")));
        assert!(one.is_same(&one.clone()) && !one.is_same(&other) && !one.is(&LONG, &state("utf8mb4")));
    }
}
