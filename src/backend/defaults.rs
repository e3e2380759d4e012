//! What new sessions have by default, and had before a global variable was changed.
//!
//! An era lasts from one change to the next. A connection has the defaults of the era in which it was opened, and a
//! session those of the era in which it began. When a session comes to a connection of a later era, what has changed since
//! must be set there to what it was: as if the session had set it, which it had not.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

use super::{Account, Backend, Globals, QueryError};
use crate::session::{Value, assignment, is_inheritable, unset};

/// How many changes are remembered; then the oldest are forgotten, and with them what sessions of long ago began with.
const MOST: usize = 256;

/// What new sessions have by default, era after era.
#[derive(Debug, Default)]
pub struct Defaults(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// All global variables, and the era in which they were looked at.
    last: Option<(u64, Globals)>,
    /// Oldest first.
    changes: VecDeque<Change>,
}

/// A variable that a session can have a value of its own for was another one before this era.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    era: u64,
    name: Box<str>,
    before: Value,
}

impl Defaults {
    /// What all global variables are in this era.
    pub(super) fn learn(&self, era: u64, now: Globals) {
        let mut known = self.0.lock();
        if known.last.as_ref().is_some_and(|(of, _)| *of > era) {
            return;
        }
        if let Some((_, before)) = &known.last {
            let mut changes: Vec<Change> = before
                .differing(&now)
                .filter_map(|(name, value)| {
                    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
                    let change = || Change { era, name: name.as_str().into(), before: Value::from(value) };
                    is_inheritable(&name, value).then(change)
                })
                .collect();
            changes.sort_unstable_by(|one, other| one.name.cmp(&other.name));
            known.changes.extend(changes);
            let surplus = known.changes.len().saturating_sub(MOST);
            known.changes.drain(..surplus);
        }
        known.last = Some((era, now));
    }

    /// Are these the global variables of this era, as far as the ones with these names go?
    #[must_use]
    pub fn agree(&self, era: u64, now: &Globals, names: &[String]) -> bool {
        let known = self.0.lock();
        let last = known.last.as_ref().filter(|(of, _)| *of == era);
        last.is_some_and(|(_, last)| names.iter().all(|name| last.get(name) == now.get(name)))
    }

    /// What sessions of the era `from` have by default and those of the era `to` have not, as far as this account may set
    /// it.
    #[must_use]
    pub fn lost(&self, from: u64, to: u64, account: &Account) -> Vec<(Box<str>, Value)> {
        let known = self.0.lock();
        let mut at_first: BTreeMap<&str, &Value> = BTreeMap::new();
        let mut at_last: BTreeMap<&str, &Value> = BTreeMap::new();
        for change in known.changes.iter().filter(|change| change.era > from) {
            let values = if change.era <= to { &mut at_first } else { &mut at_last };
            values.entry(&change.name).or_insert(&change.before);
        }
        let now = |name: &str| known.last.as_ref().and_then(|(_, globals)| globals.get(name));
        let is_back = |name: &str, value: &Value| match at_last.get(name) {
            Some(last) => **last == *value,
            None => now(name) == Some(&*value.0),
        };
        let lost = at_first.into_iter().filter(|(name, value)| !is_back(name, value) && account.may_set(name));
        lost.map(|(name, value)| (name.into(), value.clone())).collect()
    }

    /// What has changed and this account has not tried to set yet.
    fn untried(&self, account: &Account) -> Vec<(Box<str>, Value)> {
        let known = self.0.lock();
        let untried = known.changes.iter().filter(|change| !account.has_tried(&change.name));
        let by_name: BTreeMap<_, _> = untried.map(|change| (&change.name, &change.before)).collect();
        by_name.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl Backend {
    /// Tries on a fresh connection what of the former defaults its account may set: some variables are the server's alone,
    /// some need a privilege. True: there may be warnings of that.
    pub(super) async fn try_defaults(&mut self, defaults: &Defaults, account: &Account) -> Result<bool, QueryError> {
        let untried = defaults.untried(account);
        for (name, value) in &untried {
            let accepted = self.accepts(&assignment(name, value)).await? && self.accepts(&unset(name)).await?;
            account.tried(name, accepted);
        }
        Ok(!untried.is_empty())
    }

    async fn accepts(&mut self, assignment: &str) -> Result<bool, QueryError> {
        match self.query(&format!("SET {assignment}")).await {
            Ok(_) => Ok(true),
            Err(QueryError::Refused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{AccountIds, Party};
    use crate::protocol::auth::Secret;

    fn globals(variables: &[(&str, &str)]) -> Globals {
        let variable = |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), Some(value.as_bytes().to_vec()));
        variables.iter().map(variable).collect()
    }

    fn account(may: &[&str]) -> Account {
        let account = AccountIds::default().make("app", &Secret::from("x"), Party::default());
        may.iter().for_each(|name| account.tried(name, true));
        account
    }

    fn lost(defaults: &Defaults, from: u64, to: u64, account: &Account) -> Vec<(String, String)> {
        let text = |value: &Value| String::from_utf8_lossy(&value.0).into_owned();
        defaults.lost(from, to, account).iter().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    fn all(variables: &[(&str, &str)]) -> Vec<(String, String)> {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn who_comes_from_an_earlier_era_keeps_what_was_then() {
        let defaults = Defaults::default();
        let app = account(&["a", "b", "c"]);
        defaults.learn(0, globals(&[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]));
        defaults.learn(2, globals(&[("a", "2"), ("b", "1"), ("c", "1"), ("d", "1")]));
        defaults.learn(3, globals(&[("a", "3"), ("b", "2"), ("c", "1"), ("d", "2")]));
        assert_eq!(lost(&defaults, 0, 3, &app), all(&[("a", "1"), ("b", "1")]), "d is not this account's to set");
        assert_eq!(lost(&defaults, 0, 2, &app), all(&[("a", "1")]));
        assert_eq!(lost(&defaults, 1, 3, &app), all(&[("a", "1"), ("b", "1")]), "nobody looked in era 1");
        assert_eq!(lost(&defaults, 2, 3, &app), all(&[("a", "2"), ("b", "1")]));
        assert_eq!(lost(&defaults, 3, 3, &app), []);
        // What is as it was needs no value of its own.
        defaults.learn(4, globals(&[("a", "1"), ("b", "2"), ("c", "1"), ("d", "2")]));
        assert_eq!(lost(&defaults, 0, 4, &app), all(&[("b", "1")]));
        assert_eq!(lost(&defaults, 0, 3, &app), all(&[("a", "1"), ("b", "1")]));
        // Somebody was slow to tell.
        defaults.learn(3, globals(&[("a", "9")]));
        assert_eq!(lost(&defaults, 3, 4, &app), all(&[("a", "3")]));
    }

    #[test]
    fn what_every_session_has_of_its_own_is_not_lost() {
        let defaults = Defaults::default();
        let names = ["sql_mode", "character_set_client", "collation_connection", "timestamp", "rand_seed1", "a"];
        defaults.learn(0, names.iter().map(|name| (name.as_bytes().to_vec(), Some(b"1".to_vec()))).collect());
        defaults.learn(1, names.iter().map(|name| (name.as_bytes().to_vec(), Some(b"2".to_vec()))).collect());
        assert_eq!(lost(&defaults, 0, 1, &account(&names)), all(&[("a", "1")]));
    }

    #[test]
    fn so_many_changes_are_remembered_and_no_more() {
        let defaults = Defaults::default();
        for era in 0..1_000 {
            defaults.learn(era, globals(&[("a", &era.to_string())]));
        }
        assert_eq!(defaults.0.lock().changes.len(), MOST);
        assert_eq!(lost(&defaults, 998, 999, &account(&["a"])), all(&[("a", "998")]));
    }

    #[test]
    fn names_are_tried_once() {
        let defaults = Defaults::default();
        let app = account(&[]);
        defaults.learn(0, globals(&[("a", "1")]));
        assert!(defaults.untried(&app).is_empty());
        defaults.learn(1, globals(&[("a", "2")]));
        assert_eq!(defaults.untried(&app), [("a".into(), Value::from("1"))]);
        app.tried("a", false);
        assert!(defaults.untried(&app).is_empty());
        assert_eq!(lost(&defaults, 0, 1, &app), []);
    }

    #[test]
    fn a_look_agrees_with_what_is_known_of_the_same_era() {
        let defaults = Defaults::default();
        let names = ["a".to_owned()];
        assert!(!defaults.agree(0, &globals(&[]), &names));
        defaults.learn(1, globals(&[("a", "1"), ("b", "1")]));
        assert!(defaults.agree(1, &globals(&[("a", "1"), ("b", "2")]), &names));
        assert!(
            !defaults.agree(1, &globals(&[("a", "2")]), &names) && !defaults.agree(2, &globals(&[("a", "1")]), &names)
        );
    }
}
