//! Stored routines that leave nothing in the session of who calls them: those that the operator vouches for, and those
//! whose bodies a session has read.
//!
//! What was read is believed for a few seconds, and not any longer than until a routine is changed through the proxy.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::serve::Client;
use crate::session::Target;
use crate::sql::{self, Effects, Flags};

/// How long a body that was read is believed: so long somebody who changes it behind the proxy's back goes unnoticed.
const BELIEVED: Duration = Duration::from_secs(5);

/// What is known of routines.
#[derive(Debug, Default)]
pub struct Routines {
    /// Names in lower case, with the schema where it is given.
    vouched: Vec<(Option<Box<str>>, Box<str>)>,
    /// By account: another one may not be allowed to read them.
    cleared: Mutex<HashMap<(u64, Target), Instant>>,
}

impl Routines {
    /// How many are known at most; then it starts over.
    const MAX: usize = 10_000;

    /// The operator vouches for these: `name` or `schema.name`.
    #[must_use]
    pub fn new(vouched: &[String]) -> Self {
        let split = |text: &String| match text.split_once('.') {
            Some((schema, name)) => (Some(schema.into()), name.to_ascii_lowercase().into()),
            None => (None, text.to_ascii_lowercase().into()),
        };
        Self { vouched: vouched.iter().map(split).collect(), cleared: Mutex::default() }
    }

    fn are_harmless(&self, account: u64, target: &Target, now: Instant) -> bool {
        let vouched = self.vouched.iter().any(|(schema, name)| {
            **name == *target.name && schema.as_ref().is_none_or(|schema| schema.as_bytes() == &*target.schema)
        });
        vouched || {
            let cleared = self.cleared.lock();
            cleared.get(&(account, target.clone())).is_some_and(|read| now.duration_since(*read) < BELIEVED)
        }
    }

    fn clear(&self, account: u64, targets: Vec<Target>, now: Instant) {
        let mut cleared = self.cleared.lock();
        if cleared.len() + targets.len() > Self::MAX {
            cleared.clear();
        }
        cleared.extend(targets.into_iter().map(|target| ((account, target), now)));
    }

    fn doubt_all(&self) {
        self.cleared.lock().clear();
    }
}

impl Client {
    /// Tells the session what the text calls, where that can be known by name.
    pub(super) fn foresee_calls(&mut self, effects: Option<&Effects>) {
        let Some(effects) = effects else { return };
        if !effects.may(Flags::CALL | Flags::CALLS_FUNCTION) || !effects.is_certain() {
            return;
        }
        let Some(calls) = sql::code(self.text(), self.session.mode()).calls else { return };
        let targets: Option<Vec<Target>> = calls.iter().map(|routine| self.session.target(routine)).collect();
        let Some(mut targets) = targets else { return };
        let (account, now) = (self.guest.class.account.id, Instant::now());
        targets.retain(|target| !self.door.routines.are_harmless(account, target, now));
        self.session.expect_calls(targets);
    }

    /// After a turn, and what the session asked for: keeps what it has learned of routines.
    pub(super) fn note_routines(&mut self) {
        let cleared = self.session.cleared();
        if !cleared.is_empty() {
            self.door.routines.clear(self.guest.class.account.id, cleared, Instant::now());
        }
    }

    /// A text may have changed a routine; one that was not read beforehand may do anything.
    pub(super) fn doubt_routines(&self, effects: Option<&Effects>) {
        if effects.is_none_or(|effects| effects.may(Flags::CHANGES_ROUTINE | Flags::EXECUTE | Flags::COMPOUND)) {
            self.door.routines.doubt_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(schema: &str, name: &str) -> Target {
        Target { schema: schema.as_bytes().into(), name: name.into(), procedure: true }
    }

    #[test]
    fn vouched_for_by_name_or_by_schema_and_name() {
        let routines = Routines::new(&["Slugify".into(), "shop.price_of".into()]);
        let now = Instant::now();
        for (schema, name, wanted) in [
            ("a", "slugify", true),
            ("b", "slugify", true),
            ("shop", "price_of", true),
            ("Shop", "price_of", false),
            ("a", "price_of", false),
            ("shop", "other", false),
        ] {
            assert_eq!(routines.are_harmless(1, &target(schema, name), now), wanted, "{schema}.{name}");
        }
    }

    #[test]
    fn what_was_read_is_believed_for_a_while_and_by_its_account() {
        let routines = Routines::new(&[]);
        let now = Instant::now();
        routines.clear(1, vec![target("a", "p")], now);
        assert!(routines.are_harmless(1, &target("a", "p"), now));
        assert!(!routines.are_harmless(2, &target("a", "p"), now));
        assert!(!routines.are_harmless(1, &Target { procedure: false, ..target("a", "p") }, now));
        assert!(!routines.are_harmless(1, &target("a", "p"), now + BELIEVED));
        routines.doubt_all();
        assert!(!routines.are_harmless(1, &target("a", "p"), now));
    }
}
