//! A session's state as the server reports it, interned: equal states are one object.
//!
//! 100,000 clients share a handful of states, so "same state" is one pointer comparison, and a switch of the backend
//! between two such clients costs nothing. A state is immutable; a change makes (or finds) another.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::shelf::{Place, Shelf};
use crate::sql::{Mode, Multibyte};

/// What a state consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StateSpec {
    /// The default schema, in UTF-8 as the tracker reports it; `None`: none chosen.
    pub schema: Option<Box<[u8]>>,
    /// Character sets and collation.
    pub charset: Charset,
    /// Every other session variable that was ever set, by lower-case name. What is not here has the server's default.
    pub variables: BTreeMap<Box<str>, Value>,
}

/// The character sets of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Charset {
    /// `character_set_client`
    pub client: Box<str>,
    /// `character_set_connection`
    pub connection: Box<str>,
    /// `character_set_results`; `None`: NULL, results are not converted.
    pub results: Option<Box<str>>,
    /// `collation_connection`
    pub collation: Box<str>,
    /// The collation that results are said to have, which no variable shows: of `SET NAMES`, or of the handshake.
    /// `None`: the default of their character set.
    pub results_collation: Option<Box<str>>,
}

impl Charset {
    /// As after `SET NAMES charset COLLATE collation`.
    #[must_use]
    pub fn names(charset: &str, collation: &str) -> Self {
        Self {
            client: charset.into(),
            connection: charset.into(),
            results: Some(charset.into()),
            collation: collation.into(),
            results_collation: Some(collation.into()),
        }
    }

    /// Whether all three are the same, as after `SET NAMES`.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.client == self.connection && self.results.as_ref() == Some(&self.client)
    }
}

/// A variable's value as the server wrote it, in UTF-8 where it is text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Value(pub Box<[u8]>);

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

/// An interned state. Compare with [`Arc::ptr_eq`] (or by [`State::id`]).
#[derive(Debug)]
pub struct State {
    /// Its number, never given twice by one interner.
    pub id: u64,
    spec: StateSpec,
    /// What `sql_mode` says about quotes, if it is set here: read once, asked for with every statement.
    quotes: Option<Quotes>,
    multibyte: Multibyte,
    place: Place<State>,
}

/// The words of `sql_mode` that change how a text is read.
#[derive(Clone, Copy, Debug)]
struct Quotes {
    ansi: bool,
    no_backslash_escapes: bool,
    ignore_space: bool,
}

impl Quotes {
    fn of(spec: &StateSpec) -> Option<Self> {
        let sql_mode = &spec.variables.get("sql_mode")?.0;
        let is = |name: &[u8]| sql_mode.split(|b| *b == b',').any(|word| word.eq_ignore_ascii_case(name));
        Some(Self {
            ansi: is(b"ANSI_QUOTES") || is(b"ANSI"),
            no_backslash_escapes: is(b"NO_BACKSLASH_ESCAPES"),
            ignore_space: is(b"IGNORE_SPACE"),
        })
    }
}

impl State {
    /// What it consists of.
    #[must_use]
    pub fn spec(&self) -> &StateSpec {
        &self.spec
    }

    /// The default schema.
    #[must_use]
    pub fn schema(&self) -> Option<&[u8]> {
        self.spec.schema.as_deref()
    }

    /// Character sets and collation.
    #[must_use]
    pub fn charset(&self) -> &Charset {
        &self.spec.charset
    }

    /// The value of a variable that was set, by lower-case name.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&[u8]> {
        self.spec.variables.get(name).map(|value| &*value.0)
    }

    /// How the server reads this session's texts; `server` says what holds as long as the session has not set it.
    #[must_use]
    pub fn mode(&self, server: Mode) -> Mode {
        let mut mode = Mode { multibyte: self.multibyte, ..server };
        if let Some(quotes) = self.quotes {
            mode.ansi_quotes = quotes.ansi;
            mode.no_backslash_escapes = quotes.no_backslash_escapes;
            mode.ignore_space = quotes.ignore_space;
        }
        mode
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.place.leave(self.id);
    }
}

/// Makes states, each only once.
#[derive(Debug, Default)]
pub struct Interner {
    shelf: Arc<Shelf<State>>,
}

impl Interner {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The one state with these contents.
    #[must_use]
    pub fn intern(&self, spec: StateSpec) -> Arc<State> {
        self.shelf.intern(
            spec,
            |state, spec| state.spec == *spec,
            |spec, id, place| {
                let (quotes, multibyte) = (Quotes::of(&spec), Multibyte::of(&spec.charset.client));
                State { id, spec, quotes, multibyte, place }
            },
        )
    }

    /// The state that differs from `from` as `change` says.
    #[must_use]
    pub fn changed(&self, from: &Arc<State>, change: impl FnOnce(&mut StateSpec)) -> Arc<State> {
        let mut spec = from.spec.clone();
        change(&mut spec);
        if spec == from.spec { Arc::clone(from) } else { self.intern(spec) }
    }

    /// How many states are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shelf.len()
    }

    /// Whether no state is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
