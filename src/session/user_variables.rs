//! User variables: which ones a session has, and their values as far as they were asked for.
//!
//! As long as the session is on the backend that it used last, the server knows them. Only what a text may have written
//! is remembered, by name; the values are asked for when somebody else is to have the backend, and set again on the next
//! one. Measured on both servers: a value set so is the same in every respect (type, sign, scale, character set,
//! collation, the length that a column of it has).
//!
//! A variable that was never set differs from one that is NULL, in the length of its column: nothing but a reset of the
//! connection brings that back.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;

use super::user_value::{self, UserValue, erasure};
use super::{Ask, PinReason, Rows, Session};
use crate::protocol::packet::column::ColumnDefinition;
use crate::sql::{Effects, Flags, Mention, Mentions, is_lasting_name, reword_unset};

/// How many variables of a session are carried. With more, it is pinned.
const MOST: usize = 64;

/// The user variables of a session, or what a backend has of them, by name in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserVariables {
    /// `None`: it may have been written since it was asked for.
    by_name: BTreeMap<Box<str>, Option<Arc<UserValue>>>,
}

impl UserVariables {
    /// Whether there is one of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Every name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(|name| &**name)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Those whose values only the backend knows.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.by_name.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| &**name)
    }

    /// Bytes of names and values that are known.
    pub(super) fn bytes(&self) -> usize {
        self.by_name.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, |value| value.len())).sum()
    }

    pub(super) fn is_unknown(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(Option::is_none)
    }

    /// It may have been written.
    pub(super) fn forget(&mut self, name: &str) {
        self.by_name.insert(name.into(), None);
    }

    /// What the server said of it; `None`: it was never set.
    pub(super) fn learn(&mut self, name: &str, value: Option<UserValue>) {
        match value {
            Some(value) => self.by_name.insert(name.into(), Some(Arc::new(value))),
            None => self.by_name.remove(name),
        };
    }
}

impl Session {
    /// What a text may write of them. With too many, or one that cannot be named, the session is pinned.
    pub(super) fn note_user_variables(&mut self, effects: &Effects) {
        let mentions = &effects.mentions;
        if effects.may(Flags::WRITES_USER_VARIABLE | Flags::RUNS_UNSEEN) {
            self.note_mentions(mentions);
        }
    }

    /// A text is prepared. Measured on both servers: what it assigns by `SET` or `:=` is there from then on, as a text that is
    /// NULL.
    pub(super) fn note_created(&mut self, effects: &Effects) {
        if self.creates(effects) {
            self.note_mentions(&effects.mentions);
        }
    }

    /// Whether preparing this text may give the session a user variable that it does not have.
    #[must_use]
    pub fn creates(&self, effects: &Effects) -> bool {
        let names = &effects.mentions;
        effects.may(Flags::CREATES_USER_VARIABLE) && (names.overflowed() || names.iter().any(|it| !self.owns(it.name)))
    }

    /// Each of these may have been written.
    pub(super) fn note_mentions(&mut self, mentions: &Mentions) {
        if mentions.is_empty() {
            return;
        }
        let mut too_many = mentions.overflowed();
        for Mention { name, .. } in mentions.iter() {
            let known = self.user_variables.get_or_insert_default();
            if !known.is_unknown(name) {
                Arc::make_mut(known).forget(name);
            }
            too_many |= known.len() > MOST;
        }
        if too_many {
            self.pins.insert(PinReason::UserVariables);
        }
    }

    /// Code ran that was not seen, on a backend that no other session had used: at the end of the turn the server is asked
    /// which user variables there are. False where it cannot be asked: only MariaDB tells every account.
    pub fn list_user_variables(&mut self) -> bool {
        let can = self.options.mariadb;
        if can && !self.rare().asks.contains(&Ask::UserVariableNames) {
            self.rare().asks.push(Ask::UserVariableNames);
        }
        can
    }

    /// The answer to that: any of them may have been written. Where the names are not known or too many, it pins.
    pub(super) fn note_user_names(&mut self, rows: Option<&Rows>) {
        let names = rows.map(|rows| rows.iter().map(|row| name_of(row)).collect::<Option<Vec<_>>>());
        let Some(names) = names.flatten().filter(|names| names.len() <= MOST) else {
            self.pins.insert(PinReason::UserVariables);
            return;
        };
        for name in names {
            let known = self.user_variables.get_or_insert_default();
            if !known.is_unknown(&name) {
                Arc::make_mut(known).forget(&name);
            }
        }
    }

    /// The question for what the next backend must have and only this one knows.
    pub(super) fn ask_user_variables(&self) -> Option<Ask> {
        let known = self.user_variables.as_ref()?;
        let names: Vec<_> = known.unknown().map(Box::from).collect();
        let room = self.options.user_variables.saturating_sub(known.bytes());
        (!names.is_empty()).then_some(Ask::UserVariables { names, room })
    }

    /// The answer to that. What cannot be kept stays where it is, and so does the session.
    pub(super) fn note_user_values(&mut self, names: &[Box<str>], room: usize, rows: Option<&Rows>) {
        let Some(values) = rows.and_then(|rows| read(names, room, rows)) else {
            self.pins.insert(PinReason::UserVariables);
            return;
        };
        let known = Arc::make_mut(self.user_variables.get_or_insert_default());
        for (name, value) in names.iter().zip(values) {
            known.learn(name, value);
        }
        if known.is_empty() {
            self.user_variables = None;
        }
    }

    /// Whether the text may read a user variable that the session does not have, and that others may have left on a
    /// backend unseen: by a trigger, say. `None`: the text is not known.
    #[must_use]
    pub fn reads_foreign(&self, effects: Option<&Effects>) -> bool {
        let Some(effects) = effects else { return true };
        effects.mentions.overflowed() || effects.may(Flags::RUNS_UNSEEN) || self.foreign(effects).next().is_some()
    }

    /// Whether the text names a user variable that the session does not have, but the backend may have, as `there` tells.
    /// (One that is NULL lends its collation to what it is set to; one that was never set does not.)
    #[must_use]
    pub fn finds_foreign(&self, effects: Option<&Effects>, there: impl Fn(&str) -> bool) -> bool {
        effects.is_some_and(|effects| effects.mentions.iter().any(|it| there(it.name) && !self.owns(it.name)))
    }

    /// Whether it has, or had, a user variable of this name.
    #[must_use]
    pub fn owns(&self, name: &str) -> bool {
        self.user_variables.as_ref().is_some_and(|known| known.has(name))
    }

    /// The same text without those that it only reads, which were never set then as far as it can tell; and a statement
    /// that makes NULL of the others. For a backend that the session cannot leave.
    #[must_use]
    pub fn without_foreign(&self, text: &[u8], effects: &Effects) -> (Option<Vec<u8>>, Option<String>) {
        let all: Vec<_> = self.foreign(effects).collect();
        match if all.is_empty() { None } else { reword_unset(text, self.mode(), |name| all.contains(&name)) } {
            Some((text, left)) => (Some(text), erase(left.iter().map(String::as_str))),
            None => (None, erase(all.into_iter())),
        }
    }

    /// The text without these, if they can be read under another name.
    #[must_use]
    pub fn without(&self, text: &[u8], names: &[String]) -> Option<Vec<u8>> {
        let is_named = |name: &str| names.iter().any(|other| other == name);
        reword_unset(text, self.mode(), is_named).map(|(text, _)| text)
    }

    /// A statement that makes NULL of those, where nothing better can be done.
    #[must_use]
    pub fn erasure(&self, effects: &Effects) -> Option<String> {
        erase(self.foreign(effects))
    }

    /// Those that the text reads and the session does not have.
    pub fn foreign<'e>(&self, effects: &'e Effects) -> impl Iterator<Item = &'e str> {
        effects.mentions.iter().filter(|it| it.is_read && !self.owns(it.name)).map(|it| it.name)
    }
}

fn erase<'n>(names: impl Iterator<Item = &'n str>) -> Option<String> {
    let all: Vec<_> = names.map(erasure).collect();
    (!all.is_empty()).then(|| format!("SET {}", all.join(", ")))
}

/// Whether two have the same variables, as far as can be told without a look at them.
pub(super) fn same(one: Option<&Arc<UserVariables>>, other: Option<&Arc<UserVariables>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

/// The assignments that make `to` of `from`, each as in a `SET`, and whether they may leave warnings.
pub(super) fn assignments(from: Option<&UserVariables>, to: Option<&UserVariables>) -> (Vec<String>, bool) {
    let (mut all, mut warn) = (Vec::new(), false);
    for name in from.iter().flat_map(|from| from.by_name.keys()) {
        if to.is_none_or(|to| !to.has(name)) {
            all.push(erasure(name));
        }
    }
    for (name, value) in to.iter().flat_map(|to| &to.by_name) {
        // One that is unknown is unknown because the session has not left its backend.
        let Some(value) = value else { continue };
        let before = from.and_then(|from| from.by_name.get(name)).and_then(Option::as_ref);
        if before.is_none_or(|before| before != value) {
            warn |= value.may_warn();
            all.push(value.assignment(name));
        }
    }
    (all, warn)
}

/// The question for all names.
pub(super) fn list() -> String {
    format!(
        "SELECT HEX(LOWER(CONVERT(variable_name USING utf8mb4))) FROM information_schema.user_variables LIMIT {}",
        MOST + 1
    )
}

/// A name in such an answer, if it is one that can be carried.
fn name_of(row: &[Option<Vec<u8>>]) -> Option<Box<str>> {
    let (pairs, rest) = row.first()?.as_deref()?.as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let name = pairs.iter().map(byte).collect::<Option<Vec<_>>>()?;
    (rest.is_empty() && is_lasting_name(&name)).then(|| String::from_utf8_lossy(&name).into())
}

/// The question for these variables: three columns for each. Longer values than `most` bytes come cut off, but longer
/// than that.
pub(super) fn question(names: &[Box<str>], most: usize) -> String {
    let mut text = "SELECT ".to_owned();
    for (n, name) in names.iter().enumerate() {
        let comma = if n == 0 { "" } else { ", " };
        // The type, without the value, which would be converted to character_set_results; the value; its collation.
        let _ = write!(
            text,
            "{comma}IF(FALSE, @`{name}`, NULL), LEFT(CAST(@`{name}` AS BINARY), {}), \
             CAST(COLLATION(CONCAT(@`{name}`)) AS BINARY)",
            most.saturating_add(1)
        );
    }
    text.push_str(" LIMIT 1");
    text
}

/// The answer to that: a row for each variable, of what it is, its collation and its value.
pub(super) fn describe(columns: &[Bytes], row: Vec<Option<Vec<u8>>>) -> Rows {
    let fields: Vec<_> = row.into_iter().collect();
    let each = columns.chunks(3).zip(fields.chunks(3));
    each.filter_map(|(columns, fields)| {
        let column = ColumnDefinition::parse(columns.first()?).ok()?;
        let [_, value, collation] = fields else { return None };
        let kind = user_value::kind(&column, value.is_none());
        Some(vec![Some(kind.into()), collation.clone(), value.clone()])
    })
    .collect()
}

/// The values in such an answer, `None` for a variable that was never set; nothing at all if they cannot be kept.
pub(super) fn read(names: &[Box<str>], room: usize, rows: &Rows) -> Option<Vec<Option<UserValue>>> {
    let values = rows.iter().map(|row| {
        let [Some(kind), collation, value] = row.as_slice() else { return None };
        if kind == user_value::NEVER.as_bytes() {
            return Some(None);
        }
        UserValue::of(kind, collation.as_deref().unwrap_or_default(), value.as_deref()).map(Some)
    });
    let values: Vec<_> = values.collect::<Option<_>>()?;
    let bytes: usize = values.iter().flatten().map(UserValue::len).sum();
    (values.len() == names.len() && bytes <= room).then_some(values)
}
