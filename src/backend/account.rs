//! Who we are to a server: a user and its password.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::Opening;
use crate::protocol::auth::Secret;

/// A user at the server with its password, interned: the same user and password are the same account, so that
/// comparing two is comparing two numbers. Only whoever interns makes them.
#[derive(Debug)]
pub struct Account {
    /// Different for every account that was ever made by one [`AccountIds`]; never used twice.
    pub id: u64,
    /// The name at the server.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// Whose connections these are.
    pub party: Party,
    /// What its sessions begin with, as learned at its last login.
    pub(super) opening: ArcSwapOption<Opening>,
    /// Which variables it may set, of those that had another default once.
    settable: Mutex<HashMap<Box<str>, bool>>,
    /// The role that its first login came with.
    role: OnceLock<Option<Vec<u8>>>,
    /// A later login came with another role.
    outgrown: AtomicBool,
}

/// Who shares the server with others: a user of the proxy, with what it may have of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// The name that its clients give.
    pub name: Arc<str>,
    /// Is it in the configuration?
    pub listed: bool,
    /// Its part, where several parties wait. Zero counts as one.
    pub weight: u32,
    /// Connections at once; zero is no limit of its own.
    pub max_connections: usize,
    /// Commands in line at once; zero is no limit of its own.
    pub max_waiting: usize,
}

impl Account {
    /// What its sessions begin with, if that was learned in this era of the global variables.
    #[must_use]
    pub fn opening(&self, era: u64) -> Option<Arc<Opening>> {
        self.opening.load_full().filter(|opening| opening.as_of == era)
    }

    /// May it set this variable of its sessions, as far as it was tried?
    pub(super) fn may_set(&self, name: &str) -> bool {
        self.settable.lock().get(name).copied().unwrap_or(false)
    }

    pub(super) fn has_tried(&self, name: &str) -> bool {
        self.settable.lock().contains_key(name)
    }

    /// It tried to set this variable, and the server has accepted that or not.
    pub(super) fn tried(&self, name: &str, accepted: bool) {
        self.settable.lock().insert(name.into(), accepted);
    }

    /// Somebody has given it another role at the server, so a later login came with that: its connections are for those who
    /// are here, and not for new sessions.
    #[must_use]
    pub fn is_outgrown(&self) -> bool {
        self.outgrown.load(Ordering::Acquire)
    }

    /// A login came with this role. False if the first one came with another.
    pub(super) fn came_with(&self, role: Option<&[u8]>) -> bool {
        let same = self.role.get_or_init(|| role.map(<[u8]>::to_vec)).as_deref() == role;
        if !same {
            self.outgrown.store(true, Ordering::Release);
        }
        same
    }
}

impl PartialEq for Account {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Account {}

impl Hash for Account {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// Gives every account its number.
#[derive(Debug, Default)]
pub struct AccountIds(AtomicU64);

impl AccountIds {
    /// A new account, different from all others.
    #[must_use]
    pub fn make(&self, user: &str, password: &Secret, party: Party) -> Account {
        let id = self.0.fetch_add(1, Ordering::Relaxed);
        let (user, password) = (user.to_owned(), password.clone());
        Account {
            id,
            user,
            password,
            party,
            opening: ArcSwapOption::empty(),
            settable: Mutex::default(),
            role: OnceLock::new(),
            outgrown: AtomicBool::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_role_outgrows_an_account_for_good() {
        for (first, later) in [(None, Some(b"a".as_slice())), (Some(b"a".as_slice()), None), (Some(b"a"), Some(b"b"))] {
            let account = AccountIds::default().make("app", &Secret::from("x"), Party::default());
            assert!(account.came_with(first) && account.came_with(first) && !account.is_outgrown());
            assert!(!account.came_with(later) && account.is_outgrown());
            assert!(account.came_with(first) && account.is_outgrown());
        }
    }
}
