//! The server's global variables, and which of them have changed between two looks.

use std::collections::HashMap;

use super::{Backend, QueryError};

/// In how many looks in a row a variable may change before it counts as one that moves by itself.
const RESTLESS: u8 = 5;

/// Variables that move by themselves as the server works, and mean nothing to a session.
const MOVING: [&[u8]; 8] = [
    b"gtid_binlog_pos",
    b"gtid_binlog_state",
    b"gtid_current_pos",
    b"gtid_executed",
    b"gtid_owned",
    b"gtid_purged",
    b"gtid_slave_pos",
    b"timestamp",
];

/// Names and values at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globals(HashMap<Vec<u8>, Option<Vec<u8>>>);

impl Globals {
    /// The value of the variable with this name; none if it is NULL, or there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name.as_bytes())?.as_deref()
    }

    /// Names and values, here, of what is something else there.
    pub(super) fn differing<'a>(&'a self, there: &'a Self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let differing = self.0.iter().filter(|(name, value)| there.0.get(*name) != Some(*value));
        differing.map(|(name, value)| (&**name, value.as_deref().unwrap_or_default()))
    }
}

impl FromIterator<(Vec<u8>, Option<Vec<u8>>)> for Globals {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, Option<Vec<u8>>)>>(variables: I) -> Self {
        Self(variables.into_iter().filter(|(name, _)| !MOVING.contains(&&**name)).collect())
    }
}

/// Does this variable move by itself?
pub(super) fn moves(name: &[u8]) -> bool {
    MOVING.contains(&name)
}

impl Backend {
    /// Asks for all global variables. Needs no privilege; about 650 rows or 18 kB, 1 to 3 ms of a server's time.
    ///
    /// # Errors
    /// As [`Backend::query`].
    pub async fn globals(&mut self) -> Result<Globals, QueryError> {
        let rows = self.query("SHOW GLOBAL VARIABLES").await?.decode();
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let mut fields = row.into_iter();
                Some((fields.next()??, fields.next()?))
            })
            .collect())
    }
}

/// What two looks in a row tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobalChanges {
    /// The names of those that have changed, in order.
    pub changed: Vec<String>,
    /// Those that from now on count as moving by themselves: their changes are not told any more.
    pub restless: Vec<String>,
}

/// Compares each look with the one before.
#[derive(Debug, Default)]
pub struct GlobalsWatch {
    last: Option<Globals>,
    /// In how many looks in a row, up to the last one, each has changed. Who reaches the limit stays.
    runs: HashMap<Vec<u8>, u8>,
}

impl GlobalsWatch {
    /// Was there a look?
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// What has changed since the last look; nothing at the first.
    pub fn compare(&mut self, now: Globals) -> GlobalChanges {
        let mut changes = GlobalChanges::default();
        let Some(last) = self.last.replace(now.clone()) else { return changes };
        if last == now {
            self.runs.retain(|_, run| *run >= RESTLESS);
            return changes;
        }
        let before = |name: &Vec<u8>| last.0.get(name) != now.0.get(name);
        let mut names: Vec<&Vec<u8>> = now.0.keys().filter(|name| before(name)).collect();
        names.extend(last.0.keys().filter(|name| !now.0.contains_key(*name)));
        names.sort_unstable();
        self.runs.retain(|name, run| *run >= RESTLESS || names.contains(&name));
        for name in names {
            let run = self.runs.entry(name.clone()).or_default();
            if *run >= RESTLESS {
                continue;
            }
            *run += 1;
            let text = String::from_utf8_lossy(name).into_owned();
            if *run >= RESTLESS { &mut changes.restless } else { &mut changes.changed }.push(text);
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globals(variables: &[(&str, &str)]) -> Globals {
        let variable = |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), Some(value.as_bytes().to_vec()));
        variables.iter().map(variable).collect()
    }

    fn changed(names: &[&str]) -> GlobalChanges {
        GlobalChanges { changed: names.iter().map(|name| (*name).to_owned()).collect(), restless: Vec::new() }
    }

    #[test]
    fn names_of_what_changed_came_and_went_are_told_once() {
        let mut watch = GlobalsWatch::default();
        let first = globals(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let second = globals(&[("a", "2"), ("c", "1"), ("d", "1")]);
        assert_eq!(watch.compare(first.clone()), changed(&[]));
        assert_eq!(watch.compare(first), changed(&[]));
        assert_eq!(watch.compare(second.clone()), changed(&["a", "b", "d"]));
        assert_eq!(watch.compare(second), changed(&[]));
    }

    #[test]
    fn what_moves_by_itself_is_left_out() {
        let mut watch = GlobalsWatch::default();
        watch.compare(globals(&[("gtid_executed", "1"), ("gtid_domain_id", "1")]));
        assert_eq!(watch.compare(globals(&[("gtid_executed", "2"), ("gtid_domain_id", "1")])), changed(&[]));
        assert_eq!(watch.compare(globals(&[("gtid_domain_id", "2")])), changed(&["gtid_domain_id"]));
    }

    #[test]
    fn what_changes_in_every_look_is_given_up_and_the_rest_is_not() {
        let mut watch = GlobalsWatch::default();
        let look = |n: u8, rest: &str| globals(&[("clock", &n.to_string()), ("rest", rest)]);
        watch.compare(look(0, "1"));
        for n in 1..RESTLESS {
            assert_eq!(watch.compare(look(n, "1")), changed(&["clock"]));
        }
        let given_up = GlobalChanges { changed: Vec::new(), restless: vec!["clock".into()] };
        assert_eq!(watch.compare(look(RESTLESS, "1")), given_up);
        assert_eq!(watch.compare(look(RESTLESS, "1")), changed(&[]));
        assert_eq!(watch.compare(look(50, "2")), changed(&["rest"]));
        assert_eq!(watch.compare(look(51, "2")), changed(&[]));
    }

    #[test]
    fn a_pause_is_no_unrest() {
        let mut watch = GlobalsWatch::default();
        watch.compare(globals(&[("a", "0")]));
        for n in 1..20 {
            assert_eq!(watch.compare(globals(&[("a", &n.to_string())])), changed(&["a"]));
            watch.compare(globals(&[("a", &n.to_string())]));
        }
    }
}
