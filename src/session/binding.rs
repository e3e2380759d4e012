//! The types of a statement's parameters: what the server remembers of them, and what that changes.
//!
//! A server keeps the types that came with an execute for later ones without. And it keeps more than that. Measured:
//! MySQL decides by the first types what the expressions around the parameters are, and decides anew only if one of them
//! asks for more (whole numbers, decimals, floats, times, in this order): after 1.5 the string 'x' is the number 0.
//! MariaDB decides anew each time, but some expressions keep an earlier type's decimals. So one statement on a backend
//! serves only executes whose parameters come to the same [`Kind`]s: what one client binds never shows in another's
//! results.

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

    /// How much it asks for; none: it asks for itself.
    fn rank(self) -> Option<u8> {
        match self {
            Self::WEAK => Some(0),
            Self::SIGNED | Self::UNSIGNED => Some(1),
            Self::DECIMAL => Some(2),
            Self::FLOAT | Self::DOUBLE => Some(3),
            Self::DATE | Self::TIME | Self::DATETIME => Some(4),
            _ => None,
        }
    }

    /// Whether MySQL takes `new` for a parameter that is this, without thinking again.
    fn takes(self, new: Self) -> bool {
        self == new || matches!((self.rank(), new.rank()), (Some(old), Some(now)) if now < old)
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
    /// What comes of sending these types, after what was bound before.
    #[must_use]
    pub fn new(types: &[u8], before: Option<&Self>, state: &Arc<State>, mariadb: bool) -> Self {
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
            let new: Box<[u8]> = codes.map(|(_, new)| new).collect();
            let taken =
                earlier.len() == new.len() && earlier.iter().zip(&new).all(|(old, new)| Kind(*old).takes(Kind(*new)));
            if taken { earlier.into() } else { new }
        };
        Self { kinds, types: types.into(), state: Arc::clone(state) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Interner, StateSpec};

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
            .fold(None, |before: Option<Bound>, types| Some(Bound::new(types, before.as_ref(), &state, mariadb)));
        bound.unwrap().kinds().to_vec()
    }

    #[test]
    fn what_was_bound_before_counts_as_on_the_servers() {
        let long = Kind::SIGNED.0;
        for (sent, mysql, mariadb) in [
            (&[LONG][..], long, long),
            (&[NULL, LONG], long, long),
            (&[LONG, NULL], long, long),
            (&[TEXT, LONG], long, long),
            (&[LONG, TEXT], long, Kind::WEAK.0),
            (&[LONG, DOUBLE, LONG], Kind::DOUBLE.0, long),
            (&[DOUBLE, DATE, DOUBLE], Kind::DATE.0, Kind::DOUBLE.0),
            (&[DATE, YEAR], 13 | Kind::OTHER, 13 | Kind::OTHER),
            (&[YEAR, TEXT], Kind::WEAK.0, Kind::WEAK.0),
        ] {
            let sent: Vec<_> = sent.iter().map(|types| &types[..]).collect();
            assert_eq!((kinds(&sent, false), kinds(&sent, true)), (vec![mysql], vec![mariadb]), "{sent:?}");
        }
    }

    #[test]
    fn mysql_decides_about_all_parameters_together() {
        let two = |a: [u8; 2], b: [u8; 2]| [a, b].concat();
        let (weak, long) = (Kind::WEAK.0, Kind::SIGNED.0);
        for (first, second, mysql) in [
            ((LONG, TEXT), (TEXT, TEXT), [long, weak]),
            ((LONG, TEXT), (TEXT, LONG), [weak, long]),
            ((LONG, LONG), (TEXT, LONG), [long, long]),
            ((LONG, LONG), (NULL, DOUBLE), [weak, Kind::DOUBLE.0]),
        ] {
            let sent = [two(first.0, first.1), two(second.0, second.1)];
            assert_eq!(kinds(&[&sent[0], &sent[1]], false), mysql, "{sent:?}");
        }
    }

    #[test]
    fn the_same_types_in_another_character_set_are_not_the_same() {
        let interner = Interner::new();
        let state = |charset: &str| {
            let charset = crate::session::Charset::names(charset, "");
            interner.intern(StateSpec { charset, ..StateSpec::default() })
        };
        let bound = |types: &[u8], charset| Bound::new(types, None, &state(charset), true);
        let (one, other) = (bound(&TEXT, "utf8mb4"), bound(&TEXT, "latin1"));
        assert!(one.means(&bound(&TEXT, "utf8mb4")) && !one.means(&other) && !one.means(&bound(&LONG, "utf8mb4")));
        assert!(one.is_same(&one.clone()) && !one.is_same(&other) && !one.is(&LONG, &state("utf8mb4")));
    }
}
